/* inspect.c - POST /v1/tokens/inspect: what the fence says to a token, without a write; or has refused.
 *
 *   inspect_start     read the body                                     400, or go on
 *   inspect_token     one that names this store and that may be looked at: inspect.lua   403, or suspended
 *   inspect_instance  refusal_find.lua                                  403, or suspended
 *   inspected         what the store knows of the token                 200
 *   instance_answer   the refusal, if it is kept                        200
 *
 * All others: 503 | 504. */
#include <stdio.h>
#include <string.h>

#include "scripts.h"
#include "shared/member/member.h"
#include "shared/text/json.h"
#include "shared/token/keys.h"
#include "shared/token/name.h"

enum { INSTANCE_CHARS = 36, INSPECT_ARGS = 5, INSPECT_LEVELS = 2 };

struct inspect {
    struct member_call call;
    struct http_request *req;
    char text[TOKEN_HEADER_MAX + 1], lease[NAME_MAX_BYTES + 1];
    struct bytes kid;
    struct token_claim claim; /* points into text */
    enum problem verdict;     /* before the store is asked */
    char key[KEYS_STRIPE_SIZE], number[2][BYTES_NUMBER_SIZE];
    struct bytes argv[1 + INSPECT_ARGS + MEMBER_ARGS];
};

/* -- a token */

static void claim_write(struct json_out *json, const struct inspect *i)
{
    const struct token_claim *claim = &i->claim;
    bool is_read = i->verdict != PROBLEM_MALFORMED_TOKEN, is_good = i->verdict != PROBLEM_BAD_SIGNATURE;
    bool has_key = token_keys_find(worker_of(i->req)->keys, i->kid) != NULL;
    const char *own = epoch_store(member_line_of(i->req)->store_epoch);

    json_int_or_null(json, "token", is_read ? claim->token.number : 0, 0);
    json_text_or_null(json, "lease", claim->lease);
    json_int_or_null(json, "epoch", is_read ? claim->token.epoch : 0, 0);
    json_text_or_null(json, "hold", claim->hold);
    json_text_or_null(json, "mode", bytes_of(is_read ? token_mode_name(claim->mode) : NULL));
    json_text_or_null(json, "store",
                      bytes_of(!is_read                       ? NULL
                               : bytes_are(claim->store, own) ? "ours"
                                                              : "another"));
    json_text_or_null(json, "signature",
                      bytes_of(!is_read  ? NULL
                               : is_good ? "good"
                               : has_key ? "bad"
                                         : "unknown-key"));
    json_text_or_null(json, "kid", i->kid);
}

static void hold_write(struct json_out *json, const struct store_reply *hold)
{
    if (hold == NULL || store_reply_count(hold) < 4) {
        json_null(json, "hold_state");
        return;
    }
    json_object(json, "hold_state");
    json_text(json, "holder", store_reply_text(hold, 0));
    json_int_or_null(json, "granted_at_ms", store_reply_integer(hold, 1), 0);
    json_text_or_null(json, "ended", store_reply_text(hold, 2));
    json_int_or_null(json, "ended_at_ms", store_reply_integer(hold, 3), 0);
    json_object_end(json);
}

/* reply NULL: the store was not asked. */
static enum step token_answer(const struct inspect *i, enum problem verdict, const struct store_reply *reply)
{
    struct json_out *json = http_json_begin(i->req);
    const struct problem_info *info = verdict != PROBLEM_NONE ? problem_info(verdict) : NULL;

    claim_write(json, i);
    json_object(json, "verdict");
    json_bool(json, "ok", info == NULL);
    json_text_or_null(json, "code", bytes_of(info != NULL ? info->code : NULL));
    json_text_or_null(json, "detail", bytes_of(info != NULL ? info->detail : NULL));
    json_object_end(json);
    hold_write(json, reply != NULL ? store_reply_list(reply, 6) : NULL);
    json_int_or_null(json, "grants_since", reply != NULL ? store_reply_integer(reply, 5) : -1, -1);
    json_int_or_null(json, "current_token", reply != NULL ? store_reply_integer(reply, 4) : 0, 0);
    json_int_or_null(json, "now_ms", reply != NULL ? store_reply_integer(reply, 2) : 0, 0);
    return http_json_end(i->req, 200);
}

/* {"inspected", seq, time, reason or "", ...} */
static enum step inspected(struct member_call *call, const struct store_reply *reply)
{
    const struct inspect *i = container_of(call, struct inspect, call);
    enum problem refused = problem_find(store_reply_text(reply, 3));

    return token_answer(i, i->verdict != PROBLEM_NONE ? i->verdict : refused, reply);
}

/* {"found", seq, time, code, at, token, holder, current token, gateway, what was asked for} | {"none", seq,
 * time} */
static enum step instance_answer(struct member_call *call, const struct store_reply *reply)
{
    const struct inspect *i = container_of(call, struct inspect, call);
    bool is_found = store_reply_is(reply, "found");
    struct json_out *json = http_json_begin(i->req);

    json_text(json, "instance", bytes_of(i->text));
    json_bool(json, "found", is_found);
    json_text(json, "lease", bytes_of(i->lease));
    json_int(json, "now_ms", store_reply_integer(reply, 2));
    if (is_found) {
        json_text(json, "code", store_reply_text(reply, 3));
        json_int(json, "at_ms", store_reply_integer(reply, 4));
        json_int(json, "token", store_reply_integer(reply, 5));
        json_text_or_null(json, "holder", store_reply_text(reply, 6));
        json_int_or_null(json, "current_token", store_reply_integer(reply, 7), INT64_MIN);
        json_text_or_null(json, "gateway", store_reply_text(reply, 8));
        json_text_or_null(json, "resource", store_reply_text(reply, 9));
    }
    return http_json_end(i->req, 200);
}

/* -- the store is asked */

static enum step inspect_done(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    static const struct script_answer answers[] = {
        {.word = "inspected", .ends = inspected},
        {.word = "found", .ends = instance_answer},
        {.word = "none", .ends = instance_answer},
        ANSWER_OTHER,
    };
    struct http_request *req = container_of(call, struct inspect, call)->req;

    return bad == PROBLEM_NONE ? member_answer(call, req, answers, reply) : http_refuse(req, bad);
}

static enum step inspect_send(struct inspect *i, struct bytes lease, const struct store_script *script,
                              unsigned args)
{
    unsigned stripe = keys_stripe_of(lease);
    enum problem bad;

    i->argv[0] = keys_stripe(i->key, stripe);
    i->argv[1] = lease;
    i->call.done = inspect_done;
    bad = member_run(member_line_of(i->req), &i->call, stripe, script, 1, 1 + args, i->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(i->req, bad);
}

/* In the order of the fence. What is forged, and names this store, is looked up all the same. */
static enum step inspect_token(struct inspect *i)
{
    const struct token_claim *claim = &i->claim;
    struct bytes text = bytes_of(i->text);
    enum problem store;

    if (text.len > TOKEN_HEADER_MAX || !token_read(text, &i->claim, &i->kid)) {
        i->verdict = PROBLEM_MALFORMED_TOKEN;
        return token_answer(i, i->verdict, NULL);
    }
    if (!service_allows(i->req, ACCESS_LOOK, claim->lease))
        return service_forbid(i->req, ACCESS_LOOK, claim->lease);
    if (token_verify(worker_of(i->req)->keys, text, &i->claim) != TOKEN_GOOD)
        i->verdict = PROBLEM_BAD_SIGNATURE;
    store = member_store_problem(member_line_of(i->req), claim->store);
    if (store == PROBLEM_WRONG_STORE)
        return token_answer(i, i->verdict != PROBLEM_NONE ? i->verdict : store, NULL);
    if (store != PROBLEM_NONE)
        return http_refuse(i->req, store);
    i->argv[2] = bytes_of_number(i->number[0], claim->token.number);
    i->argv[3] = bytes_of_number(i->number[1], claim->token.epoch);
    i->argv[4] = claim->hold;
    i->argv[5] = bytes_of(token_mode_name(claim->mode));
    return inspect_send(i, claim->lease, &script_inspect, 5);
}

static enum step inspect_instance(struct inspect *i)
{
    struct bytes lease = bytes_of(i->lease), id = bytes_of(i->text);

    if (!bytes_take(&id, BYTES("urn:uuid:")) || id.len != INSTANCE_CHARS ||
        strspn(id.at, "0123456789abcdef-") != INSTANCE_CHARS) {
        return http_refuse_detail(i->req, PROBLEM_INVALID_REQUEST,
                                  "The member instance is \"urn:uuid:\" and a UUID, as a problem has it.");
    }
    if (!name_is_lease(lease))
        return http_refuse_detail(
            i->req, PROBLEM_INVALID_REQUEST,
            "Beside instance there must be lease, the name of the lease: an instance does "
            "not say it.");
    if (!service_allows(i->req, ACCESS_LOOK, lease))
        return service_forbid(i->req, ACCESS_LOOK, lease);
    i->argv[2] = id;
    return inspect_send(i, lease, &script_refusal_find, 2);
}

/* -- the body */

/* What does not fit, or has a NUL, is none of ours: it becomes the empty text. */
static bool text_take(const struct json *json, const char *key, char *buf, size_t size)
{
    struct bytes value = {NULL, 0};
    enum json_found found = json_get_text(json, key, &value);

    snprintf(buf, size, "%.*s", value.len < size ? (int)value.len : 0, value.len > 0 ? value.at : "");
    return found == JSON_FOUND;
}

enum step inspect_start(struct http_request *req)
{
    static const char *const names[] = {"fencing_token", "instance", "lease", NULL};
    struct inspect *i = HTTP_SCRATCH(req, struct inspect);
    struct json *json = json_parse(http_body(req), INSPECT_LEVELS, NULL);
    bool is_ours = json != NULL && json_unknown(json, names) == NULL;
    bool has_lease = is_ours && text_take(json, "lease", i->lease, sizeof(i->lease));
    bool has_instance = is_ours && text_take(json, "instance", i->text, sizeof(i->text));
    bool has_token = is_ours && !has_instance && text_take(json, "fencing_token", i->text, sizeof(i->text));

    is_ours = is_ours &&
              (has_instance ? json_member(json, "fencing_token") == NULL : has_token && !has_lease);
    json_free(json);
    i->req = req;
    if (!is_ours)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST,
                                  "The body is {\"fencing_token\":\"...\"}, or {\"instance\":\"...\","
                                  "\"lease\":\"...\"}.");
    return has_instance ? inspect_instance(i) : inspect_token(i);
}
