/* doctor.c - pawl doctor: what is wrong with an installation, and what to do.
 *
 *   doctor_read      flags                                    64 | 78, or go on
 *   doctor_service   each of the two: reachable, version, clock, ready
 *   doctor_access    do both judge by the same access file?
 *   doctor_store     Redis, when it was named                 78, or go on
 *   look_at_file     the key file
 *   probe            a lease of its own
 *   doctor_show      each finding with its remedy             0 | 1 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <time.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/request.h"
#include "api/cli/store/store.h"
#include "shared/access/access.h"
#include "shared/token/name.h"
#include "shared/token/token.h"

enum {
    CHECK_SIZE = 32,
    TEXT_SIZE = 1024,
    DOCTOR_FINDINGS_MAX = 40,
    OFFSET_MAX_MS = 2000,
    DATE_PRECISION_MS = 1000,
    MEMORY_WARN_PERCENT = 75,
    BACKLOG_S = 60,
    TRAFFIC_MS = 1000,
    TURN_MS = 10,
    PROBE_NAME_SIZE = 64
};

enum weight {
    OK,
    SKIPPED, /* not looked at; todo says how it would be */
    PROBLEM
};

struct finding {
    enum weight weight;
    char check[CHECK_SIZE]; /* "lease clock" */
    char what[TEXT_SIZE], todo[TEXT_SIZE];
};

struct doctor {
    /* flags */
    const char *lease_url, *gateway_url, *keys_file;
    struct store_inbox inbox;
    bool probe, trace;
    enum output output;
    /* what was found */
    struct finding findings[DOCTOR_FINDINGS_MAX];
    unsigned count;
};

struct service {
    const char *label, *program, *flag, *base; /* "lease", "pawl-lease" */
    enum request_service to;
};

static int doctor_read(struct doctor *d, int argc, char **argv)
{
    const struct option flags[] = {
        FLAG_OUTPUT_OBJECT(&d->output),
        FLAG_TRACE(&d->trace),
        FLAG_LEASE_URL(&d->lease_url),
        FLAG_GATEWAY_URL(&d->gateway_url),
        FLAG_ENV("keys", "FILE", "the key file of the services: look at it, too", &d->keys_file),
        FLAG_ON("probe", "take a lease of its own for a moment: do services, keys and store agree?",
                &d->probe),
        STORE_INBOX_ROWS(&d->inbox),
        {0},
    };

    int status = flags_read("doctor", flags, argc, argv, NULL);

    return status == CLI_GO_ON ? store_inbox_collect(&d->inbox, flags, argc, argv) : status;
}

/* -- findings */

/* of: "lease" or "gateway", in front of the check; or "". format: what was found; todo: the remedy, unless it
 * is OK. */
__attribute__((format(printf, 6, 7))) static void found(struct doctor *doctor, enum weight weight,
                                                        const char *of, const char *check, const char *todo,
                                                        const char *format, ...)
{
    unsigned at = doctor->count < DOCTOR_FINDINGS_MAX ? doctor->count++ : DOCTOR_FINDINGS_MAX - 1;
    struct finding *finding = &doctor->findings[at];
    va_list args;

    *finding = (struct finding){.weight = weight};
    snprintf(finding->check, sizeof(finding->check), "%s%s%s", of, *of != '\0' ? " " : "", check);
    snprintf(finding->todo, sizeof(finding->todo), "%s", weight == OK ? "" : todo);
    va_start(args, format);
    vsnprintf(finding->what, sizeof(finding->what), format, args);
    va_end(args);
}

/* theirs_ms was read between two looks at this machine's clock; precision_ms: what the reading may be wrong
 * by. */
static void compare_clock(struct doctor *doctor, const char *of, const char *check, const char *whose,
                          int64_t theirs_ms, int64_t before_ms, int64_t after_ms, int64_t precision_ms)
{
    int64_t offset_ms = theirs_ms - (before_ms + (after_ms - before_ms) / 2);
    int64_t apart_ms = offset_ms < 0 ? -offset_ms : offset_ms;
    char duration[PRINT_DURATION_SIZE];

    precision_ms += after_ms - before_ms;
    bool differs = apart_ms > OFFSET_MAX_MS + precision_ms;
    if (differs) {
        found(doctor, PROBLEM, of, check,
              "Let NTP set the clocks of all hosts (chrony, systemd-timesyncd). No lease depends on it, but "
              "the times in histories and logs do.",
              "%s is %s %s this machine's", whose, print_duration(duration, apart_ms),
              offset_ms > 0 ? "ahead of" : "behind");
    } else {
        found(doctor, OK, of, check, "", "%s agrees with this machine's, as far as can be told", whose);
    }
}

static struct request ask(const struct doctor *doctor, const char *method, enum request_wants wants,
                          const char *needs)
{
    return (struct request){
        .what = "doctor", .wants = wants, .needs = needs, .trace = doctor->trace, .http.method = method};
}

/* -- both services, as their health pages tell it
 *
 *   /version   reachable; the right program, of this version; Date: its clock
 *   /readyz    200, or which of its checks fails */

/* Whether it is what it should be. */
static bool look_at_version(struct doctor *doctor, const struct service *service,
                            const struct request *request)
{
    struct bytes version = request_text(request->json, "version"), name = request_text(request->json, "name");
    bool same = bytes_are(version, PAWL_VERSION);
    char todo[TEXT_SIZE];

    if (request->answer.status != 200 || !bytes_are(name, service->program)) {
        snprintf(todo, sizeof(todo), "Is %s right? Something else may have the port, or stand in between.",
                 service->flag);
        found(doctor, PROBLEM, service->label, "service", todo, "%s answered %u, and not as %s does",
              request->url, request->answer.status, service->program);
        return false;
    }
    found(doctor, same ? OK : PROBLEM, service->label, "version", "Install the same version everywhere.",
          "%s is %.*s%s%s", service->program, (int)version.len, version.at, same ? "" : ", and this pawl is ",
          same ? "" : PAWL_VERSION);
    return true;
}

/* Before it is full: grants, sessions and writes end at 90 %. */
static void look_at_memory(struct doctor *doctor, const struct service *service, const struct json *memory)
{
    int64_t used = request_int(memory, "used_bytes"), allowed = request_int(memory, "allowed_bytes");
    bool fits = used / MEMORY_WARN_PERCENT < allowed / 100;

    if (allowed > 0 && used > 0) {
        found(doctor, fits ? OK : PROBLEM, service->label, "memory",
              "From 90 % on nothing new is granted, opened or written (store-full): give Redis more "
              "(maxmemory; --store-memory-max of both services), or delete stored resources.",
              "the store uses %" PRId64 " of the %" PRId64 " bytes that %s allows it", used, allowed,
              service->program);
    }
}

/* A problem says in its detail what is wrong and what to do now. */
static void look_at_ready(struct doctor *doctor, const struct service *service, struct request *request)
{
    bool answered = request_try(request) == HTTP_CLIENT_ANSWERED, good = request->answer.status == 200;
    struct bytes detail = request_text(request->json, "detail");
    bool whole = detail.len == 0;
    char todo[TEXT_SIZE];

    if (answered && good && bytes_are(request_text(request->json, "status"), "ready")) {
        found(doctor, whole ? OK : PROBLEM, service->label, "ready",
              "pawl store status, run where Redis can be reached, says more.", "%s %s%.*s", service->program,
              whole ? "is ready" : "serves, but not all of it: ", (int)detail.len, whole ? "" : detail.at);
        look_at_memory(doctor, service,
                       json_get_object(request->json, "store_memory", &(enum json_found){JSON_ABSENT}));
        return;
    }
    snprintf(todo, sizeof(todo),
             "pawl store status, run where Redis can be reached, says what the store needs; the log of %s "
             "has the rest.",
             service->program);
    if (answered && !good) {
        found(doctor, PROBLEM, service->label, "ready", todo, "%s is not ready (%u): %.*s", service->program,
              request->answer.status, (int)detail.len, whole ? "" : detail.at);
    } else {
        found(doctor, PROBLEM, service->label, "ready", todo, "%s did not say whether it is ready: %s",
              service->program, answered ? "it was answered 200, and not as Pawl does" : request->answer.why);
    }
}

/* Whether it answered as it should. */
static bool doctor_service(struct doctor *doctor, const struct service *service)
{
    struct request version = ask(doctor, "GET", REQUEST_ANYTHING, NULL);
    struct request ready = ask(doctor, "GET", REQUEST_JSON, "status"); /* the rest is for who may observe */
    bool named = request_service(&version, service->to, service->base, "/version") == CLI_GO_ON,
         right = false;
    int64_t before_ms = cli_wall_ms();
    struct tm broken = {0};
    char todo[TEXT_SIZE];

    if (!named) {
        found(doctor, PROBLEM, service->label, "service", "Mend what standard error says of it.",
              "%s cannot be asked with these flags and variables", service->program);
    } else if (request_try(&version) == HTTP_CLIENT_ANSWERED) {
        right = look_at_version(doctor, service, &version);
    } else {
        const char *remedy = request_access_remedy(version.answer.why);

        snprintf(todo, sizeof(todo),
                 "Start %s, or say where it is: %s URL. (pawl dev starts one to try things out.)",
                 service->program, service->flag);
        found(doctor, PROBLEM, service->label, "service", remedy != NULL ? remedy : todo,
              "%s cannot be reached: %s", version.url, version.answer.why);
    }
    if (right) {
        if (strptime(version.answer.date, "%a, %d %b %Y %H:%M:%S GMT", &broken) != NULL) {
            compare_clock(doctor, service->label, "clock", service->program,
                          (int64_t)timegm(&broken) * 1000 + DATE_PRECISION_MS / 2, before_ms, cli_wall_ms(),
                          DATE_PRECISION_MS);
        } /* RFC 9110: it may be left out */
        request_service(&ready, service->to, service->base, "/readyz");
        look_at_ready(doctor, service, &ready);
    }
    request_done(&version);
    request_done(&ready);
    return right;
}

/* -- the access file, which each service judges by on its own */

/* hash: of the file; "none": it has none; "": it did not say. */
static void ask_access(struct doctor *doctor, const struct service *service, char hash[ACCESS_HASH_SIZE])
{
    struct request request = ask(doctor, "GET", REQUEST_JSON, "identity hash");
    bool answered = request_service(&request, service->to, service->base, "/v1/access") == CLI_GO_ON &&
                    request_try(&request) == HTTP_CLIENT_ANSWERED;
    struct bytes told = answered && request.answer.status == 200 ? request_text(request.json, "hash")
                        : answered && request_is_problem(&request, "not-found") ? BYTES("none")
                                                                                : BYTES("");

    snprintf(hash, ACCESS_HASH_SIZE, "%.*s", (int)told.len, told.at);
    if (*hash == '\0') {
        found(doctor, SKIPPED, service->label, "access",
              "Say who asks: --access-token-file FILE, or --cert and --cert-key.",
              "%s tells its access file only to who is in it", service->program);
    }
    request_done(&request);
}

static void doctor_access(struct doctor *doctor, const struct service *lease, const struct service *gateway)
{
    char first[ACCESS_HASH_SIZE], second[ACCESS_HASH_SIZE];
    bool same;

    ask_access(doctor, lease, first);
    ask_access(doctor, gateway, second);
    same = strcmp(first, second) == 0;
    if (*first != '\0' && *second != '\0') {
        found(doctor, same ? OK : PROBLEM, "", "access",
              "Give both the same file (--access), and send them SIGHUP.",
              "sha256 of the access file: pawl-lease %s, pawl-gateway %s", first, second);
    }
}

/* -- Redis: what it could lose, and the diagnosis of the store */

static void tell_findings(struct doctor *doctor, const struct store_diagnosis *diagnosis)
{
    for (unsigned i = 0; i < diagnosis->count; i++)
        found(doctor, PROBLEM, "", "store", diagnosis->findings[i].todo, "%s", diagnosis->findings[i].what);
}

static void tell_store(struct doctor *doctor, const struct store_facts *facts)
{
    struct store_diagnosis diagnosis = {0};
    const char *advice = store_advice(doctor->inbox.store);

    store_diagnosis_make(facts, &diagnosis);
    tell_findings(doctor, &diagnosis);
    if (diagnosis.count == 0) {
        found(doctor, OK, "", "store", "",
              "Redis %s keeps what it is told, and the store is whole and admitted", facts->redis_version);
    }
    if (advice[0] != '\0') {
        found(doctor, OK, "", "redis settings", "",
              "%s, 0 is better: so long after a backup with --rdb, or after the last replica, a new "
              "replication stream begins, and the store is admitted once more",
              advice);
    }
}

/* -- the nodes of an in-sync set, and the sentinels that choose among them */

static void look_at_node(struct doctor *doctor, const struct store_facts *facts, const struct node_fact *node)
{
    struct {
        bool is_wrong;
        const char *what, *todo;
    } checks[] = {
        {node->unsafe[0] != '\0', node->unsafe, "Set it on each node, also in its configuration file."},
        {bytes_number((struct bytes){node->version, strcspn(node->version, ".")}, 9) < 7,
         "its Redis is older than 7.0", "Install 7.0 or later on each node."},
        {node->diskless_load[0] != '\0' && strcmp(node->diskless_load, "disabled") != 0,
         "repl-diskless-load is not disabled: it empties itself before it knows that all has come",
         "CONFIG SET repl-diskless-load disabled, also in its configuration file."},
        {node->kept && node->priority == 0, "its replica-priority is 0: no sentinel makes it the primary",
         "Give all nodes of the in-sync set the same priority above 0."},
        {node->priority > 0 && facts->nodes[1].priority > 0 && node->priority != facts->nodes[1].priority,
         "its replica-priority differs from that of another node: the lower one is promoted, also when it "
         "has "
         "less",
         "Give all nodes of the in-sync set the same priority above 0."},
    };

    for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (checks[i].is_wrong)
            found(doctor, PROBLEM, "", "node", checks[i].todo, "%s: %s", node->node, checks[i].what);
    compare_clock(doctor, "", "node clock", node->node, node->clock_us / 1000, (int64_t)node->asked_ms,
                  (int64_t)node->asked_ms, DATE_PRECISION_MS);
}

/* By the addresses that they have themselves: of one behind another address nothing is said. */
static void look_at_registrars_of(struct doctor *doctor, const struct store_facts *facts, const char *node)
{
    const char *colon = strrchr(node, ':');
    struct bytes host = {node, colon != NULL ? (size_t)(colon - node) : 0};
    unsigned count = facts->registrar_count, here = 0;

    for (unsigned i = 0; host.len > 0 && i < count; i++)
        here += bytes_are(host, facts->registrar[i].address);
    bool enough_elsewhere = count - here > count / 2;
    if (here > 0)
        found(doctor, enough_elsewhere ? OK : PROBLEM, "", "registrars", "Run them on three hosts.",
              "%u of %u are on the host of %s%s", here, count, node,
              enough_elsewhere ? ": a majority is elsewhere"
                               : ": when it is lost, nobody admits another node");
}

static void look_at_nodes(struct doctor *doctor, const struct store_facts *facts)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < facts->node_count; i++) {
        kept += facts->nodes[i].kept;
        if (facts->nodes[i].reached)
            look_at_node(doctor, facts, &facts->nodes[i]);
        else
            found(doctor, PROBLEM, "", "node", "Start it; pawl store status says more.",
                  "%s cannot be reached", facts->nodes[i].node);
        look_at_registrars_of(doctor, facts, facts->nodes[i].node);
    }
    if (facts->copies == 0)
        return;
    found(doctor, kept > facts->copies ? OK : PROBLEM, "", "copies", "Have one more node than --copies says.",
          kept > facts->copies ? "%u nodes have a copy, and %" PRId64 " must: one may be lost"
                               : "%u nodes have a copy, and %" PRId64
                                 " must: the loss of either stops grants",
          kept, facts->copies);
    found(doctor, facts->registrar_count > 2 ? OK : PROBLEM, "", "registrars",
          "Have three lease services, and pawl store registrar add ID; or make the "
          "store with --registrars 3.",
          "%u registrars%s", facts->registrar_count,
          facts->registrar_count > 2 ? "" : ": the restart of a lease service may stop the gateways");
}

/* A replica that was away for no longer goes on where it was; else it copies all, and is as long out of the
 * set. */
static void look_at_backlogs(struct doctor *doctor, const struct store_facts *facts)
{
    struct store_facts later = {0};
    uint64_t until_ms = loop_now_ms() + TRAFFIC_MS;
    int64_t took_ms, bytes_s;

    while (facts->node_count > 0 && loop_now_ms() < until_ms)
        loop_turn(doctor->inbox.loop, TURN_MS);
    if (facts->node_count == 0 || store_facts_refresh(&doctor->inbox, &later) != CLI_GO_ON)
        return;
    took_ms = later.now_ms - facts->now_ms;
    bytes_s = later.node_count > 0 && took_ms > 0
                  ? (later.nodes[0].offset - facts->nodes[0].offset) * 1000 / took_ms
                  : 0;
    for (unsigned i = 0; i < facts->node_count; i++)
        if (facts->nodes[i].backlog > 0 && facts->nodes[i].backlog < bytes_s * BACKLOG_S)
            found(doctor, PROBLEM, "", "node",
                  "CONFIG SET repl-backlog-size to what is written in a minute at most, also in its "
                  "configuration file.",
                  "%s: its repl-backlog-size of %" PRId64 " bytes is less than %d s of what is written now, "
                  "%" PRId64 " bytes a second: a replica that is away for longer than it lasts copies all",
                  facts->nodes[i].node, facts->nodes[i].backlog, BACKLOG_S, bytes_s);
    store_facts_done(&later);
}

static bool sentinel_answers(const struct store_sentinel *one)
{
    return one->names[0] != '\0' && one->known > 0;
}

static bool sentinels_answer(struct doctor *doctor, struct store_sentinel all[STORE_SENTINELS_MAX],
                             unsigned *count)
{
    uint64_t deadline_ms = loop_now_ms() + doctor->inbox.timeout_ms;
    bool is_whole;

    do {
        loop_turn(doctor->inbox.loop, TURN_MS);
        *count = store_sentinels(doctor->inbox.store, all);
        is_whole = true;
        for (unsigned i = 0; i < *count; i++)
            is_whole = is_whole && sentinel_answers(&all[i]);
    } while (!is_whole && loop_now_ms() < deadline_ms);
    return is_whole;
}

static void look_at_sentinels(struct doctor *doctor)
{
    struct store_sentinel all[STORE_SENTINELS_MAX];
    unsigned count = 0, most = 0, least = UINT_MAX, wrong = doctor->count;
    bool is_whole = sentinels_answer(doctor, all, &count), agree = true, one_host = count > 0;

    for (unsigned i = 0; i < count; i++) {
        if (!sentinel_answers(&all[i]))
            found(doctor, PROBLEM, "", "sentinels", "Start it, or name another one in --redis.",
                  "sentinel %s:%u does not answer", all[i].host, all[i].port);
        most = all[i].known > most ? all[i].known : most;
        least = all[i].quorum < least ? all[i].quorum : least;
        agree = agree && strcmp(all[i].names, all[0].names) == 0;
        one_host = one_host && strcmp(all[i].host, all[0].host) == 0;
    }
    struct {
        bool is_wrong;
        const char *what, *todo;
    } checks[] = {
        {is_whole && !agree, "they do not name the same primary",
         "Wait for the failover to end; if it stays so: SENTINEL RESET at the one that is wrong."},
        {is_whole && most % 2 == 0, "their number is even: half of them can elect nobody",
         "Have three or five."},
        {is_whole && least <= most / 2, "their quorum is less than a majority",
         "SENTINEL SET NAME quorum N."},
        {is_whole && (one_host || most == 1), "they are all on one host, and are lost with it",
         "Run them on three hosts."},
    };

    for (unsigned i = 0; count > 0 && i < sizeof(checks) / sizeof(checks[0]); i++)
        if (checks[i].is_wrong)
            found(doctor, PROBLEM, "", "sentinels", checks[i].todo, "of %u sentinels: %s",
                  most > count ? most : count, checks[i].what);
    if (count > 0 && wrong == doctor->count)
        found(doctor, OK, "", "sentinels", "", "%u sentinels name %s", most, all[0].names);
}

static int doctor_quorum(struct doctor *doctor)
{
    struct quorum_facts facts;
    struct store_diagnosis diagnosis;
    int status = store_quorum_read(&doctor->inbox, &facts);

    if (status != CLI_GO_ON)
        return status;
    store_diagnosis_quorum(&facts, &diagnosis);
    tell_findings(doctor, &diagnosis);
    if (diagnosis.count == 0)
        found(doctor, OK, "", "store", "", "all %u nodes of the quorum are well", facts.count);
    for (unsigned i = 0; i < facts.count; i++) {
        const struct quorum_fact *node = &facts.nodes[i];

        if (!node->reached)
            continue;
        if (strcmp(node->policy, "noeviction") != 0)
            found(doctor, PROBLEM, "", "node", "CONFIG SET maxmemory-policy noeviction, and in its file.",
                  "%s: maxmemory-policy is %s: it throws leases away", node->node, node->policy);
        compare_clock(doctor, "", "node clock", node->node, node->now_ms, node->asked_ms, node->asked_ms,
                      DATE_PRECISION_MS);
    }
    store_inbox_close(&doctor->inbox);
    return CLI_GO_ON;
}

static int doctor_store(struct doctor *doctor)
{
    struct store_inbox *inbox = &doctor->inbox;
    struct store_facts facts = {0};
    const char *detail = NULL, *misled;
    int64_t before_ms;
    int status;

    if (inbox->redis == NULL) {
        found(
            doctor, SKIPPED, "", "redis",
            "Say where it is: --redis URL, with --redis-password-file FILE if it has one; or set PAWL_REDIS.",
            "Redis itself was not looked at");
        return CLI_GO_ON;
    }
    if (inbox->count > 1)
        return doctor_quorum(doctor);
    status = store_inbox_open(inbox);
    before_ms = cli_wall_ms();
    status = status == CLI_GO_ON ? store_facts_read(inbox, &facts) : status;
    if (status == CLI_GO_ON) {
        int64_t after_ms = cli_wall_ms();

        store_nodes_ask(inbox, &facts);
        tell_store(doctor, &facts);
        look_at_nodes(doctor, &facts);
        look_at_backlogs(doctor, &facts);
        look_at_sentinels(doctor);
        if (facts.now_ms > 0) {
            compare_clock(doctor, "", "redis clock", "the clock of Redis' host", facts.now_ms, before_ms,
                          after_ms, 0);
        }
    }
    misled = inbox->store != NULL ? store_misled(inbox->store) : NULL;
    if (misled != NULL || status == CLI_UNREACHABLE) {
        /* Not its URL: PAWL_REDIS may have a password in it. */
        if (store_not_ready(inbox->store, &detail) == NULL)
            detail = "Redis does not do what is asked of it; standard error says more";
        found(doctor, PROBLEM, "", "redis",
              misled != NULL
                  ? misled
                  : "Start Redis, or say where it is: --redis URL; its user and password are in PAWL_REDIS "
                    "or --redis-password-file.",
              "%s", detail);
        status = CLI_GO_ON;
    }
    store_facts_done(&facts);
    store_inbox_close(inbox);
    return status;
}

/* -- the key file, and whether both services have the same keys and the same store
 *
 * That the gateway takes what the lease service signs can only be seen by trying: --probe takes a lease with
 * a name that nobody else has, asks the gateway whether its token may act, and gives it back. */

struct probe {
    struct doctor *doctor;
    char name[PROBE_NAME_SIZE], lease_id[23], token[TOKEN_HEADER_SIZE];
};

static struct token_keys *look_at_file(struct doctor *doctor)
{
    const char *file = doctor->keys_file;
    char why[TEXT_SIZE];
    struct token_keys *keys = file != NULL ? token_keys_load(file, why, sizeof(why)) : NULL;

    if (file == NULL) {
        found(doctor, SKIPPED, "", "key file", "Name it: --keys FILE.", "the key file was not looked at");
    } else if (keys == NULL) {
        found(doctor, PROBLEM, "", "key file",
              "pawl keygen --out FILE makes one (after others could read one: a new one); both services read "
              "the same.",
              "%s", why);
    } else {
        found(doctor, OK, "", "key file", "", "%s can be used", file);
    }
    return keys;
}

static int probe_acquire(struct probe *p)
{
    struct request request = ask(p->doctor, "POST", REQUEST_GRANT, NULL);
    char body[2 * PROBE_NAME_SIZE];
    int status = request_lease(&request, p->doctor->lease_url, p->name, "");

    request.lease_id = p->lease_id;
    if (status == CLI_GO_ON) {
        /* No ttl_ms: a quorum may have a longest one below any that is said here. */
        snprintf(body, sizeof(body), "{\"lease_id\":\"%s\",\"holder\":\"pawl doctor\"}", p->lease_id);
        request.http.body = bytes_of(body);
        request_header(&request, "Content-Type", BYTES("application/json"));
        status = request_send(&request);
    }
    if (status == CLI_GO_ON)
        snprintf(p->token, sizeof(p->token), "%s", request_text(request.json, "fencing_token").at);
    request_done(&request);
    return status;
}

static void probe_release(const struct probe *p)
{
    struct request request = ask(p->doctor, "DELETE", REQUEST_RELEASED, NULL);

    if (request_lease(&request, p->doctor->lease_url, p->name, "") == CLI_GO_ON) {
        request_header(&request, "Lease-Id", bytes_of(p->lease_id));
        request_try(&request); /* nobody else wants it: if it does not arrive, it ends by itself */
    }
    request_done(&request);
}

static void probe_signature(const struct probe *p, const struct token_keys *keys)
{
    struct token_claim claim;
    bool good = token_verify(keys, bytes_of(p->token), &claim) == TOKEN_GOOD;

    found(p->doctor, good ? OK : PROBLEM, "", "signature",
          "Give pawl-lease this file (--keys), or send it SIGHUP to read it again.",
          "pawl-lease %s with a key of %s", good ? "signs" : "does not sign", p->doctor->keys_file);
}

static const char *remedy_of(const struct request *request)
{
    static const char *const unknown[] = {"unissued-token", "stale-token", "lease-expired", "wrong-store"};

    if (request_is_problem(request, "bad-signature"))
        return "Give both services the same key file (--keys), and send them SIGHUP to read it again.";
    for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        if (request_is_problem(request, unknown[i]))
            return "Give both services the same Redis (--redis): the gateway does not know this grant.";
    return "Its log says more; the code of the problem is in the answer.";
}

static void probe_check(const struct probe *p)
{
    struct request request = ask(p->doctor, "GET", REQUEST_ACCEPTED, NULL);
    char path[PROBE_NAME_SIZE + sizeof("/v1/check/")];
    bool asked;

    snprintf(path, sizeof(path), "/v1/check/%s", p->name);
    asked = request_service(&request, REQUEST_GATEWAY, p->doctor->gateway_url, path) == CLI_GO_ON;
    request_header(&request, "Fencing-Token", bytes_of(p->token));
    asked = asked && request_try(&request) == HTTP_CLIENT_ANSWERED;
    if (asked && request.answer.status == 200) {
        found(p->doctor, OK, "", "probe", "", "pawl-gateway takes a token that pawl-lease has just granted");
    } else if (asked) {
        found(p->doctor, PROBLEM, "", "probe", remedy_of(&request),
              "pawl-gateway refuses a token that pawl-lease has just granted: %u %s", request.answer.status,
              request.answer.fencing_status);
    } else {
        found(p->doctor, PROBLEM, "", "probe", "Is --gateway-url right?", "pawl-gateway did not answer: %s",
              request.answer.why);
    }
    request_done(&request);
}

static void probe(struct doctor *doctor, const struct token_keys *keys)
{
    struct probe p = {.doctor = doctor};

    name_new_lease_id(p.lease_id);
    snprintf(p.name, sizeof(p.name), "pawl-doctor:%s", p.lease_id);
    name_new_lease_id(p.lease_id); /* the name is public, the lease_id is not */
    if (probe_acquire(&p) != CLI_GO_ON) {
        found(doctor, PROBLEM, "", "probe", "What it said stands on standard error.",
              "pawl-lease did not grant a lease that nobody else wants");
    } else {
        if (keys != NULL)
            probe_signature(&p, keys);
        probe_check(&p);
    }
    probe_release(&p);
    explicit_bzero(p.lease_id, sizeof(p.lease_id));
}

/* -- telling */

static int doctor_show(const struct doctor *doctor)
{
    static const char *const weights[] = { [OK] = "ok", [SKIPPED] = "not checked", [PROBLEM] = "problem" };
    const struct finding *end = doctor->findings + doctor->count;
    bool healthy = true;
    struct json_out out;

    for (const struct finding *at = doctor->findings; at < end; at++)
        healthy = healthy && at->weight != PROBLEM;
    if (doctor->output == OUTPUT_JSON) {
        print_json_begin(&out);
        json_bool(&out, "healthy", healthy);
        json_list(&out, "findings");
    }
    for (const struct finding *at = doctor->findings; at < end; at++) {
        if (doctor->output == OUTPUT_JSON) {
            json_object(&out, NULL);
            json_text(&out, "check", bytes_of(at->check));
            json_text(&out, "status", bytes_of(weights[at->weight]));
            json_text(&out, "what", bytes_of(at->what));
            json_text(&out, "remedy", bytes_of(at->todo));
            json_object_end(&out);
            continue;
        }
        print_line(stdout, "%-11s  %-16s  %s", weights[at->weight], at->check, at->what);
        if (at->todo[0] != '\0')
            print_line(stdout, "%31s%s", "", at->todo);
    }
    if (doctor->output == OUTPUT_JSON) {
        json_list_end(&out);
        print_json_end(&out);
    }
    return healthy ? CLI_OK : CLI_REFUSED;
}

int cli_doctor(int argc, char **argv)
{
    struct doctor doctor = {0};
    int status = doctor_read(&doctor, argc, argv);
    const struct service lease = {"lease", "pawl-lease", "--lease-url", doctor.lease_url,
                                  REQUEST_LEASE_SERVICE};
    const struct service gateway = {"gateway", "pawl-gateway", "--gateway-url", doctor.gateway_url,
                                    REQUEST_GATEWAY};
    struct token_keys *keys;
    bool both = false;

    if (status == CLI_GO_ON) {
        both = doctor_service(&doctor, &lease);
        both = doctor_service(&doctor, &gateway) && both;
        if (both)
            doctor_access(&doctor, &lease, &gateway);
        status = doctor_store(&doctor);
    }
    if (status == CLI_GO_ON) {
        keys = look_at_file(&doctor);
        if (doctor.probe && both) {
            probe(&doctor, keys);
        } else {
            found(&doctor, SKIPPED, "", "probe",
                  doctor.probe ? "Both services must answer for that."
                               : "--probe takes a lease of its own for a moment.",
                  "whether both services have the same keys and the same store was not tried");
        }
        token_keys_free(keys);
        status = doctor_show(&doctor);
    }
    return status;
}
