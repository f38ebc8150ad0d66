/* doctor_keys.c - the key file, and whether both services have the same keys and the same store.
 *
 * That the gateway takes what the lease service signs can only be seen by trying: --probe takes a lease with
 * a name that nobody else has, asks the gateway whether its token may act, and gives it back. */
#include <stdlib.h>

#include "api/cli/cli.h"
#include "api/cli/doctor.h"
#include "shared/json_write.h"
#include "shared/record/name.h"
#include "shared/token.h"

enum { PROBE_TTL_MS = 5000, PROBE_NAME_SIZE = 64, JSON_LEVELS = 16 };

struct probe {
    struct doctor *doctor;
    char name[PROBE_NAME_SIZE], lease_id[23], token[TOKEN_HEADER_SIZE];
};

/* -- the file */

static struct token_keys *look_at_file(struct doctor *doctor)
{
    char why[DOCTOR_TEXT_SIZE];
    struct token_keys *keys = token_keys_load(doctor->keys_file, why, sizeof(why));
    struct doctor_finding *finding = doctor_add(doctor, keys == NULL ? DOCTOR_PROBLEM : DOCTOR_OK,
                                                "key file");

    if (keys == NULL) {
        doctor_say(finding->what, "%.*s", DOCTOR_TEXT_SIZE - 1, why);
        doctor_say(finding->todo, "pawl keygen --out FILE makes one (after others could read one: a new "
                                  "one); both services read the same.");
    } else {
        doctor_say(finding->what, "%s can be used", doctor->keys_file);
    }
    return keys;
}

/* -- the probe */

static int probe_acquire(struct probe *p)
{
    struct ask ask = {.what = "doctor",
                      .wants = ASK_GRANT,
                      .lease_id = p->lease_id,
                      .trace = p->doctor->trace,
                      .request.method = "POST"};
    struct http_client_answer answer = {0};
    struct json_out body;
    struct json *json = NULL;
    int status = ask_lease(&ask, p->doctor->lease_url, p->name);

    json_out_init(&body);
    json_object(&body, NULL);
    json_text(&body, "lease_id", bytes_of(p->lease_id));
    json_text(&body, "holder", BYTES("pawl doctor"));
    json_int(&body, "ttl_ms", PROBE_TTL_MS);
    json_object_end(&body);
    if (status == CLI_GO_ON) {
        ask.request.body = json_out_bytes(&body);
        ask_header(&ask, "Content-Type", BYTES("application/json"));
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        json = ask_json(&ask, &answer);
        status = json != NULL ? CLI_GO_ON : CLI_BUG;
    }
    if (json != NULL) {
        struct bytes token = ask_text(json, "fencing_token");

        snprintf(p->token, sizeof(p->token), "%.*s", (int)token.len, token.at != NULL ? token.at : "");
    }
    json_free(json);
    json_out_done(&body);
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

static void probe_release(const struct probe *p)
{
    struct ask ask = {
        .what = "doctor", .wants = ASK_RELEASED, .trace = p->doctor->trace, .request.method = "DELETE"};
    struct http_client_answer answer = {0};

    if (ask_lease(&ask, p->doctor->lease_url, p->name) == CLI_GO_ON) {
        ask_header(&ask, "Lease-Id", bytes_of(p->lease_id));
        ask_try(&ask, &answer); /* if it does not arrive, the lease is over in a moment anyway */
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
}

static void probe_signature(const struct probe *p, const struct token_keys *keys)
{
    struct token_claim claim;
    bool good = token_verify(keys, bytes_of(p->token), &claim) == TOKEN_GOOD;
    struct doctor_finding *finding = doctor_add(p->doctor, good ? DOCTOR_OK : DOCTOR_PROBLEM, "signature");

    doctor_say(finding->what,
               good ? "pawl-lease signs with a key of %s" : "pawl-lease does not sign with a key of %s",
               p->doctor->keys_file);
    doctor_say(finding->todo, "%s",
               good ? "" : "Give pawl-lease this file (--keys), or send it SIGHUP to read it again.");
}

static const char *remedy_of(const struct http_client_answer *answer)
{
    if (ask_is_problem(answer, "bad-signature")) {
        return "Give both services the same key file (--keys), and send them SIGHUP to read it again.";
    }
    if (ask_is_problem(answer, "unissued-token") || ask_is_problem(answer, "stale-token") ||
        ask_is_problem(answer, "lease-expired") || ask_is_problem(answer, "wrong-store")) {
        return "Give both services the same Redis (--redis): the gateway does not know this grant.";
    }
    return "Its log says more; the code of the problem is in the answer.";
}

static void probe_check(const struct probe *p)
{
    struct ask ask = {
        .what = "doctor", .wants = ASK_ACCEPTED, .trace = p->doctor->trace, .request.method = "GET"};
    struct http_client_answer answer = {0};
    char path[PROBE_NAME_SIZE + sizeof("/v1/check/")];
    bool asked, good;
    struct doctor_finding *finding;

    snprintf(path, sizeof(path), "/v1/check/%s", p->name);
    asked = ask_gateway(&ask, p->doctor->gateway_url, path) == CLI_GO_ON;
    ask_header(&ask, "Fencing-Token", bytes_of(p->token));
    asked = asked && ask_try(&ask, &answer) == HTTP_CLIENT_ANSWERED;
    good = asked && answer.status == 200;
    finding = doctor_add(p->doctor, good ? DOCTOR_OK : DOCTOR_PROBLEM, "probe");
    if (good) {
        doctor_say(finding->what, "pawl-gateway takes a token that pawl-lease has just granted");
    } else if (asked) {
        doctor_say(finding->what, "pawl-gateway refuses a token that pawl-lease has just granted: %u %s",
                   answer.status, answer.fencing_status);
        doctor_say(finding->todo, "%s", remedy_of(&answer));
    } else {
        doctor_say(finding->what, "pawl-gateway did not answer: %s", answer.why);
        doctor_say(finding->todo, "Is --gateway-url right?");
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
}

static void probe(struct doctor *doctor, const struct token_keys *keys)
{
    struct probe p = {.doctor = doctor};
    struct doctor_finding *finding;

    name_new_lease_id(p.lease_id);
    snprintf(p.name, sizeof(p.name), "pawl-doctor:%s", p.lease_id);
    name_new_lease_id(p.lease_id); /* the name is public, the lease_id is not */
    if (probe_acquire(&p) != CLI_GO_ON) {
        finding = doctor_add(doctor, DOCTOR_PROBLEM, "probe");
        doctor_say(finding->what, "pawl-lease did not grant a lease that nobody else wants");
        doctor_say(finding->todo, "What it said stands on standard error.");
    } else {
        if (keys != NULL) {
            probe_signature(&p, keys);
        }
        probe_check(&p);
    }
    probe_release(&p);
    explicit_bzero(p.lease_id, sizeof(p.lease_id));
}

void doctor_keys(struct doctor *doctor)
{
    struct token_keys *keys = doctor->keys_file != NULL ? look_at_file(doctor) : NULL;
    struct doctor_finding *finding;

    if (doctor->keys_file == NULL) {
        finding = doctor_add(doctor, DOCTOR_SKIPPED, "key file");
        doctor_say(finding->what, "the key file was not looked at");
        doctor_say(finding->todo, "Name it: --keys FILE.");
    }
    if (doctor->probe && doctor->lease_answers && doctor->gateway_answers) {
        probe(doctor, keys);
    } else {
        finding = doctor_add(doctor, DOCTOR_SKIPPED, "probe");
        doctor_say(finding->what,
                   "whether both services have the same keys and the same store was not tried");
        doctor_say(finding->todo, "%s",
                   doctor->probe ? "Both services must answer for that."
                                 : "--probe takes a lease of its own for a moment.");
    }
    token_keys_free(keys);
}
