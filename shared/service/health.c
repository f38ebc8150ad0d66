/* health.c - the pages that every daemon has: livez, readyz, metrics, version, openapi.json, problems, and an
 * index of all addresses; and what is the matter with a service, for the overview. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "openapi.h"
#include "shared/access/access.h"
#include "shared/service/service.h"
#include "shared/text/memory.h"

/* Text as it stands in an element: https://html.spec.whatwg.org/multipage/syntax.html, "Text". */
static void put_text(struct json_out *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

    while (*text != '\0') {
        size_t plain = strcspn(text, special);

        json_out_append(out, (struct bytes){text, plain});
        text += plain;
        if (*text != '\0')
            json_out_append(out, bytes_of(entities[strchr(special, *text++) - special]));
    }
}

/* The exit statuses of the command line (docs/contract.md, "Commands"). */
static const char *exit_meaning(int exit_status)
{
    switch (exit_status) {
    case 1: return ": refused or not found";
    case 64: return ": wrong usage";
    case 69: return ": the service cannot be reached or cannot do it now";
    case 70: return ": a bug";
    case 75: return ": held by another";
    case 76: return ": fenced off or lost";
    case 77: return ": not allowed";
    case 78: return ": configuration";
    default: return "";
    }
}

/* \001 to \007 stand for the texts of the problem. */
static const char problem_html[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>\001 - Pawl</title>\n"
    "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}th{text-align:left;padding-right:1rem;vertical-align:top;font-weight:normal}"
    "</style>\n</head>\n<body>\n<h1>\002</h1>\n<p><code>\001</code></p>\n"
    "<h2>What it means, and what to do</h2>\n<p>\003</p>\n"
    "<p>The answer itself may say more, in its member <code>detail</code>.</p>\n"
    "<h2>For programs</h2>\n<table>\n<tr><th>HTTP status</th><td>\004</td></tr>\n"
    "<tr><th>Send it again, unchanged?</th><td>\005</td></tr>\n"
    "<tr><th>Exit status of pawl</th><td>\006\007</td></tr>\n</table>\n</body>\n</html>\n";

void problem_page_write(const struct problem_info *info, struct json_out *out)
{
    char status[12], exit_status[12];
    const char *const texts[] = {info->code,
                                 info->title,
                                 info->detail,
                                 status,
                                 info->retryable ? "Yes, later: it may succeed (retryable is true)."
                                                 : "No, it will not help (retryable is false).",
                                 exit_status,
                                 exit_meaning(info->exit_status)};

    snprintf(status, sizeof(status), "%u", info->status);
    snprintf(exit_status, sizeof(exit_status), "%d", info->exit_status);
    for (const char *at = problem_html; *at != '\0';) {
        size_t plain = strcspn(at, "\001\002\003\004\005\006\007");

        json_out_append(out, (struct bytes){at, plain});
        at += plain;
        if (*at != '\0')
            put_text(out, texts[*at++ - 1]);
    }
}

/* == the pages */

#define MEMORY "pawl_store_memory_bytes"
#define MEMORY_HELP "Of the store, as last asked; allowed 0: no bound is set."
#define CLOSED "pawl_http_connections_closed_total"
#define CLOSED_HELP "Connections closed at a limit, before anything was read from them."
#define HANDSHAKE(failure, reason)                                                                           \
    [METRIC_HANDSHAKE_FIRST + (failure)] = {"pawl_tls_handshake_failures_total", METRIC_COUNTER,             \
                                            "reason=\"" reason "\"",                                         \
                                            "Connections with which there was no TLS, by reason."}
#define REFUSALS "pawl_problems_total"
#define REFUSALS_HELP "Requests refused or failed, by code."
const struct metric service_metrics[SERVICE_METRICS] = {
    [METRIC_READY] = {"pawl_ready", METRIC_GAUGE, NULL, "1: /readyz of this service is 200."},
    [METRIC_CONNECTIONS] = {"pawl_http_connections", METRIC_GAUGE, NULL, "Open connections."},
    [METRIC_CLOSED_FIRST] = {CLOSED, METRIC_COUNTER, "reason=\"max-connections\"", CLOSED_HELP},
    [METRIC_CLOSED_ADDRESS] = {CLOSED, METRIC_COUNTER, "reason=\"max-connections-per-address\"", CLOSED_HELP},
    HANDSHAKE(TLS_FAILURE_PROTOCOL, "protocol"),
    HANDSHAKE(TLS_FAILURE_CERTIFICATE, "certificate"),
    HANDSHAKE(TLS_FAILURE_TIMEOUT, "timeout"),
    HANDSHAKE(TLS_FAILURE_CLOSED, "closed"),
    HANDSHAKE(TLS_FAILURE_OTHER, "other"),
    [METRIC_STORE_DONE] = {"pawl_store_calls_total", METRIC_COUNTER, "outcome=\"done\"",
                           "Calls to the store."},
    [METRIC_STORE_NOT_SENT] = {"pawl_store_calls_total", METRIC_COUNTER, "outcome=\"not-sent\"",
                               "Calls to the store."},
    [METRIC_STORE_UNKNOWN] = {"pawl_store_calls_total", METRIC_COUNTER, "outcome=\"unknown\"",
                              "Calls to the store."},
    [METRIC_STORE_TIME] = {"pawl_store_call_seconds", METRIC_HISTOGRAM_US, NULL,
                           "From a call of the store to its end, whether or not it is known how it ended."},
    [METRIC_STORE_RECONNECTS] = {"pawl_store_reconnects_total", METRIC_COUNTER, NULL,
                                 "Connections made anew."},
    [METRIC_STORE_FAILOVERS] = {"pawl_store_failovers_total", METRIC_COUNTER, NULL,
                                "How often another node has become primary (sentinel://)."},
    [METRIC_STORE_LOSSES] = {"pawl_store_losses_total", METRIC_COUNTER, NULL,
                             "How often this service has admitted a node that may lack what was answered, by "
                             "an operator's word (pawl store accept-loss)."},
    [METRIC_STORE_IN_FLIGHT] = {"pawl_store_calls_in_flight", METRIC_GAUGE, NULL, "Calls not yet answered."},
    [METRIC_STORE_MEMORY_USED] = {MEMORY, METRIC_GAUGE, "what=\"used\"", MEMORY_HELP},
    [METRIC_STORE_MEMORY_ALLOWED] = {MEMORY, METRIC_GAUGE, "what=\"allowed\"", MEMORY_HELP},
    [METRIC_STORE_KEPT] =
        {"pawl_store_kept", METRIC_GAUGE, NULL,
         "Nodes of Redis that must have a copy of what is answered, the primary counted; 0: there is "
         "no in-sync set."},
    [METRIC_STORE_KEEP_TIME] = {"pawl_store_keep_seconds", METRIC_HISTOGRAM_US, NULL,
                                "How long answers have waited until all of these had a copy."},
#define PROBLEM(name, code, status, retryable, exit_status, title, detail)                                   \
    [METRIC_PROBLEM_FIRST + PROBLEM_##name - 1] = {REFUSALS, METRIC_COUNTER, "code=\"" code "\"",            \
                                                   REFUSALS_HELP},
#include "api/problems.def"
#undef PROBLEM
};

static enum step live(struct http_request *req)
{
    struct json_out *json = http_json_begin(req);

    json_text(json, "status", BYTES("alive"));
    return http_json_end(req, 200);
}

/* -- readyz */

static const char *service_lacks(struct worker *worker, const char **member, char detail[READY_DETAIL_SIZE])
{
    const struct service_plan *plan = worker->service->plan;
    const char *lacking = plan->lacking != NULL ? plan->lacking(worker, member, detail) : NULL;
    const char *wrong = atomic_load(&worker->service->access_wrong);

    if (lacking != NULL)
        return lacking;
    if (wrong != NULL) {
        *member = "access";
        snprintf(detail, READY_DETAIL_SIZE, "The access file is wrong, and the one of before is in force: %s",
                 wrong);
        return "refused";
    }
    if (!atomic_load(&worker->service->tls_lacking))
        return NULL;
    *member = "tls";
    snprintf(detail, READY_DETAIL_SIZE,
             "Certificate, key, authorities or the list of revoked certificates could "
             "not be read on the last SIGHUP; those of before count. The log says why.");
    return "not-reloaded";
}

struct service_stand service_stand(struct worker *worker)
{
    struct service_stand stand = {0};

    if (worker->service->plan->stand != NULL)
        worker->service->plan->stand(worker, &stand);
    return stand;
}

/* Of a store with an in-sync set: who may take over, and who may not. */
static void nodes_tell(struct json_out *json, const struct store *store, bool is_joining)
{
    unsigned count, in_set;
    const struct store_node *nodes = store_nodes(store, &count, &in_set);
    uint64_t now_ms = loop_now_ms();

    if (nodes == NULL)
        return;
    in_set -= is_joining && in_set > 1;
    json_list(json, "kept");
    for (unsigned i = 0; i < in_set; i++)
        json_text(json, NULL, bytes_of(nodes[i].name));
    json_list_end(json);
    json_list(json, "away");
    for (unsigned i = 1; i < count; i++) {
        const char *why = nodes[i].why;

        if (why == NULL || (nodes[i].says != NULL && strcmp(why, "silent") == 0)) /* for a moment, often */
            why = nodes[i].says;
        if (i < in_set && why == NULL)
            continue;
        json_object(json, NULL);
        json_text(json, "node", bytes_of(nodes[i].name));
        json_text(json, "why",
                  bytes_of(why != NULL                 ? why
                           : is_joining && i == in_set ? "joining"
                                                       : "not-in-set"));
        json_int(json, "since_ms", nodes[i].why != NULL ? (int64_t)(now_ms - nodes[i].since_ms) : 0);
        json_object_end(json);
    }
    json_list_end(json);
}

static void heard_tell(struct json_out *json, const char *whom, unsigned heard, unsigned of)
{
    json_object(json, whom);
    json_int(json, "heard", heard);
    json_int(json, "of", of);
    json_object_end(json);
}

/* It may serve, and not do all of its work. */
static enum step ready_tell(struct http_request *req, struct worker *worker)
{
    const struct service_plan *plan = worker->service->plan;
    struct json_out *json = http_json_begin(req);
    struct service_stand stand = service_stand(worker);
    char own[READY_DETAIL_SIZE];
    const char *member = NULL, *lacking = service_lacks(worker, &member, own);
    const char *unloaded = store_not_loaded(worker->store);
    struct store_election election;

    if (stand.is_full)
        snprintf(own, sizeof(own), "%s", problem_info(PROBLEM_STORE_FULL)->detail);
    json_text(json, "status", BYTES("ready"));
    json_object(json, "checks");
    json_text(json, "store", stand.is_full ? BYTES("store-full") : BYTES("ok"));
    if (lacking != NULL)
        json_text(json, member, bytes_of(lacking));
    if (unloaded != NULL)
        json_text(json, "functions", BYTES("not-loaded"));
    json_object_end(json);
    if (stand.is_full || lacking != NULL || unloaded != NULL)
        json_text(json, "detail", bytes_of(stand.is_full || lacking != NULL ? own : unloaded));
    if (plan->quorum_of_stores) {
        plan->tell(worker, json);
        return http_json_end(req, 200);
    }
    json_object(json, "store_memory");
    json_int(json, "used_bytes", (int64_t)stand.used);
    json_int_or_null(json, "allowed_bytes", (int64_t)stand.allowed, 0);
    json_object_end(json);
    if (stand.registrars > 0)
        heard_tell(json, "registrars", stand.registrars_heard, stand.registrars);
    nodes_tell(json, worker->store, stand.is_joining);
    if (store_election(worker->store, &election))
        heard_tell(json, "sentinels", election.heard, election.sentinels);
    return http_json_end(req, 200);
}

static const char *service_not_ready(struct worker *worker, enum problem *problem,
                                     char detail[READY_DETAIL_SIZE])
{
    const struct service_plan *plan = worker->service->plan;
    const char *why = NULL, *remedy = store_misled(worker->store);
    const char *check = store_not_ready(worker->store, &why);
    const char *own = NULL;

    if (plan->quorum_of_stores)
        return plan->ready(worker, problem, detail);
    if (check == NULL || store_unsafe(worker->store) != NULL) {
        own = plan->ready != NULL ? plan->ready(worker, problem, detail) : NULL;
        if (own != NULL || check == NULL)
            return own;
        *problem = PROBLEM_STORE_UNSAFE;
        snprintf(detail, READY_DETAIL_SIZE, "%s", why);
        return check;
    }
    *problem = PROBLEM_STORE_UNAVAILABLE;
    snprintf(detail, READY_DETAIL_SIZE, "%s%s%s", why, remedy != NULL ? " " : "",
             remedy != NULL ? remedy : "");
    return check;
}

bool service_is_ready(struct worker *worker)
{
    enum problem problem;
    char detail[READY_DETAIL_SIZE];

    return service_not_ready(worker, &problem, detail) == NULL;
}

static enum step ready_page(struct http_request *req)
{
    enum problem problem = PROBLEM_NONE;
    char detail[READY_DETAIL_SIZE];
    const char *check = service_not_ready(worker_of(req), &problem, detail);
    bool may_observe = service_allows_some(req, ACCESS_OBSERVE);

    if (check != NULL) {
        struct json_out *json = http_problem_begin(req, problem, may_observe ? detail : NULL);

        json_text(json, "check", bytes_of(check));
        if (may_observe && worker_of(req)->service->plan->quorum_of_stores)
            worker_of(req)->service->plan->tell(worker_of(req), json);
        else if (may_observe && problem == PROBLEM_STORE_NOT_KEPT)
            nodes_tell(json, worker_of(req)->store, service_stand(worker_of(req)).is_joining);
        return http_problem_end(req, 503);
    }
    if (may_observe)
        return ready_tell(req, worker_of(req));
    json_text(http_json_begin(req), "status", BYTES("ready"));
    return http_json_end(req, 200);
}

/* -- the worst of it, and what to do: for the overview */

#define NOTHING_GOES                                                                                         \
    "Nothing is granted, renewed or written until then; who holds a lease keeps it for its ttl. "
#define OLD_FILES "All goes on by the files of before. "

/* Of each code the first row that it begins with: what goes on in spite of it and what does not; what to do.
 */
static const struct {
    const char *code, *remedy, *command;
} remedies[] = {
    {"draining", "Others serve. Wait until the service has stopped, and start it again.", NULL},
    {"store-connecting", NOTHING_GOES "Start Redis, or mend the way to it.", "pawl store status"},
    {"store-electing",
     NOTHING_GOES "Wait until the sentinels have elected a primary, or start a node that may be it.",
     "pawl store status"},
    {"store-auth", NOTHING_GOES "Give the service the password of Redis: --redis-password-file.", NULL},
    {"store-loading", NOTHING_GOES "Wait until Redis has loaded its data.", NULL},
    {"store-busy", NOTHING_GOES "Wait, or find out whose script keeps Redis busy.", "redis-cli script kill"},
    {"store-refuse", NOTHING_GOES "Mend what Redis says in the detail.", "pawl store status"},
    {"store-unsafe",
     "Nothing new is granted; renewals, releases and writes go on. Give Redis the settings that keep what it "
     "is "
     "told.",
     "pawl doctor"},
    {"store-not-ours", NOTHING_GOES "Name the Redis of this store with --redis.", "pawl store status"},
    {"access-missing", NOTHING_GOES "Start the service with --access FILE.", NULL},
    {"store-not-admitted", NOTHING_GOES "Start the lease services that the store waits for.",
     "pawl store status"},
    {"store-not-kept", NOTHING_GOES "Bring the nodes of Redis back that are away.", "pawl store status"},
    {"store-behind", NOTHING_GOES "Make one of the nodes of the in-sync set the primary.",
     "pawl store status"},
    {"store-full",
     "Nothing new is granted or written; renewals and releases go on. Give Redis more memory, or delete "
     "stored "
     "resources.",
     "pawl store status"},
    {"store-subscriber",
     "Nobody can wait in line; all else goes on. Give Redis' user the channels that deploy/redis.acl lists.",
     NULL},
    {"store-", NOTHING_GOES "See what the store needs.", "pawl store status"},
    {"state-dir",
     "This service grants nothing; all else goes on. Make room on the disk of the state directory, or give "
     "its "
     "owner the right to write.",
     NULL},
    {"member-silent", "All else goes on. Start it again. If it is gone for good, let the store forget it.",
     "pawl store status"},
    {"in-doubt",
     "Newer writes by ordered routes wait for those in doubt; all else goes on. Find out whether they have "
     "arrived, and say so.",
     "pawl resolve"},
    {"routes-differ",
     "This gateway forwards nothing; stored resources, checks and leases go on. Give all gateways the same "
     "route file.",
     "pawl routes adopt"},
    {"marks-lost",
     "What goes by the mark of that store takes no writes; all else goes on. Say below which token of "
     "that store nothing passes.",
     "pawl store marks"},
    {"access-refused", OLD_FILES "Mend the access file and send SIGHUP.", "pawl access check"},
    {"tls-not-reloaded", OLD_FILES "Mend the files and send SIGHUP.", NULL},
    {"functions-not-loaded", "All goes on, slower. Let Redis load the functions.", "pawl store status"},
    {"node-away",
     "All goes on; the next node that goes may be one too many. Bring it back, or say that it is gone: pawl "
     "store node forget.",
     "pawl store status"},
};

const char *service_condition_remedy(const char *code, const char **command)
{
    unsigned i = 0, count = sizeof(remedies) / sizeof(remedies[0]);

    while (i < count && strncmp(code, remedies[i].code, strlen(remedies[i].code)) != 0)
        i++;
    *command = i < count ? remedies[i].command : NULL;
    return i < count ? remedies[i].remedy : NULL;
}

/* One that had a copy, and is none of those who are waited for any more. */
static const char *node_away(const struct store *store, char detail[READY_DETAIL_SIZE])
{
    unsigned count, i;
    const struct store_node *nodes = store_nodes(store, &count, &i);

    while (i < count && !(nodes[i].was_in && nodes[i].why != NULL))
        i++;
    if (i >= count)
        return NULL;
    snprintf(detail, READY_DETAIL_SIZE, "%s, a node of Redis, is %s.", nodes[i].name, nodes[i].why);
    return "node-away";
}

const char *service_condition(struct worker *worker, char detail[READY_DETAIL_SIZE])
{
    enum problem problem;
    const char *member = NULL, *code = service_not_ready(worker, &problem, detail);

    if (code != NULL)
        return code;
    if (service_stand(worker).is_full) {
        snprintf(detail, READY_DETAIL_SIZE, "%s", problem_info(PROBLEM_STORE_FULL)->detail);
        return "store-full";
    }
    code = service_lacks(worker, &member, detail);
    if (code != NULL) {
        return strcmp(member, "access") == 0 ? "access-refused"
               : strcmp(member, "tls") == 0  ? "tls-not-reloaded"
                                             : code;
    }
    code = store_not_loaded(worker->store);
    snprintf(detail, READY_DETAIL_SIZE, "%s", code != NULL ? code : "");
    return code != NULL ? "functions-not-loaded" : node_away(worker->store, detail);
}

/* -- metrics. What this process uses, by the names that all clients of Prometheus share:
 * https://prometheus.io/docs/instrumenting/writing_clientlibs/, "Process metrics". */

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Linux 6.2 and later say the number as the folder's size. */
static unsigned long open_fds(void)
{
    struct stat info = {0};
    unsigned long count = 0;
    DIR *folder;

    if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
        return (unsigned long)info.st_size;
    folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count > 3 ? count - 3 : 0; /* ".", "..", and the folder itself */
}

/* In pages. */
static void memory_read(unsigned long *virtual, unsigned long *resident)
{
    char text[128] = "", *rest = text;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t len = read(fd, text, sizeof(text) - 1);

        text[len > 0 ? len : 0] = '\0';
        close(fd);
    }
    *virtual = strtoul(text, &rest, 10);
    *resident = strtoul(rest, NULL, 10);
}

static void use_write(struct json_out *out, const char *name, enum metric_kind kind, const char *help,
                      double value)
{
    metric_head_write(&(struct metric){name, kind, NULL, help}, out);
    json_out_print(out, "%s %.15g\n", name, value);
}

static void process_metrics_write(const struct service *service, struct json_out *out)
{
    unsigned long virtual, resident;
    double page = (double)sysconf(_SC_PAGESIZE);
    struct rusage used = {0};
    struct rlimit files = {0};
    const struct metric info = {"pawl_build_info", METRIC_GAUGE, NULL, "Which program this is."};

    memory_read(&virtual, &resident);
    getrusage(RUSAGE_SELF, &used);
    getrlimit(RLIMIT_NOFILE, &files);
    metric_head_write(&info, out);
    json_out_print(out, "pawl_build_info{service=\"%s\",version=\"" PAWL_VERSION "\"} 1\n",
                   service->plan->name);
    use_write(out, "process_cpu_seconds_total", METRIC_COUNTER, "CPU time, user and system.",
              seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime));
    use_write(out, "process_resident_memory_bytes", METRIC_GAUGE, "Resident memory.",
              (double)resident * page);
    use_write(out, "process_virtual_memory_bytes", METRIC_GAUGE, "Virtual memory.", (double)virtual * page);
    use_write(out, "process_open_fds", METRIC_GAUGE, "Open file descriptors.", (double)open_fds());
    use_write(out, "process_max_fds", METRIC_GAUGE, "How many may be open.", (double)files.rlim_cur);
    use_write(out, "process_start_time_seconds", METRIC_GAUGE, "When it was started.",
              (double)service->began_s);
}

static void access_metrics_write(const struct access *access, struct json_out *out)
{
    static const struct metric file = {"pawl_access_file_info", METRIC_GAUGE, NULL,
                                       "The access file in force, by its SHA-256."};
    static const struct metric uses = {"pawl_access_token_uses_total", METRIC_COUNTER, NULL,
                                       "Requests with this access token, by 8 digits of its hash, since the "
                                       "file was read."};
    char digits[ACCESS_DIGITS_SIZE];
    uint64_t count;
    size_t at = 0;

    if (access == NULL)
        return;
    metric_head_write(&file, out);
    json_out_print(out, "%s{hash=\"%s\"} 1\n", file.name, access_hash(access));
    metric_head_write(&uses, out);
    while (access_token_use(access, &at, digits, &count))
        json_out_print(out, "%s{token=\"%s\"} %llu\n", uses.name, digits, (unsigned long long)count);
}

static void heard_metrics_write(const struct metric *metric, unsigned heard, unsigned of,
                                struct json_out *out)
{
    if (of == 0)
        return;
    metric_head_write(metric, out);
    json_out_print(out, "%s{what=\"heard\"} %u\n%s{what=\"of\"} %u\n", metric->name, heard, metric->name, of);
}

static void watchers_metrics_write(struct worker *worker, struct json_out *out)
{
    static const struct metric registrars = {"pawl_store_registrars", METRIC_GAUGE, NULL,
                                             "Of a store that a majority of registrars admits."},
                               sentinels = {"pawl_store_sentinels", METRIC_GAUGE, NULL,
                                            "That watch the primary (sentinel://)."};
    struct service_stand stand = service_stand(worker);
    struct store_election election;

    heard_metrics_write(&registrars, stand.registrars_heard, stand.registrars, out);
    if (store_election(worker->store, &election))
        heard_metrics_write(&sentinels, election.heard, election.sentinels, out);
}

/* Of a store with an in-sync set, or of a quorum. */
static void nodes_metrics_write(struct worker *worker, struct json_out *out)
{
    static const struct metric metric = {"pawl_store_nodes", METRIC_GAUGE, NULL, "Nodes of Redis, by state."};
    static const char *const of_set[] = {"kept", "away", "other", NULL}; /* away: it was in the set */
    struct service_stand stand = service_stand(worker);
    unsigned count, in_set;
    const struct store_node *nodes = store_nodes(worker->store, &count, &in_set);

    if (nodes != NULL) {
        in_set -= stand.is_joining && in_set > 1;
        stand.node_states = of_set;
        for (unsigned i = 0; i < count; i++)
            stand.nodes[i < in_set ? 0 : nodes[i].was_in ? 1 : 2]++;
    }
    if (stand.node_states == NULL)
        return;
    metric_head_write(&metric, out);
    for (unsigned i = 0; stand.node_states[i] != NULL; i++)
        json_out_print(out, "%s{state=\"%s\"} %u\n", metric.name, stand.node_states[i], stand.nodes[i]);
}

static enum step metrics_page(struct http_request *req)
{
    struct json_out *out = http_json(req);

    metrics_write(worker_of(req)->service->metrics, out);
    process_metrics_write(worker_of(req)->service, out);
    access_metrics_write(worker_of(req)->access, out);
    watchers_metrics_write(worker_of(req), out);
    nodes_metrics_write(worker_of(req), out);
    service_tls_metrics(worker_of(req)->service, out);
    http_reply_body(req, "text/plain; version=0.0.4", json_out_bytes(out));
    return http_answer(req, 200);
}

/* -- the rest */

static enum step version(struct http_request *req)
{
    struct json_out *json = http_json_begin(req);

    json_text(json, "name", bytes_of(worker_of(req)->service->plan->name));
    json_text(json, "version", BYTES(PAWL_VERSION));
    return http_json_end(req, 200);
}

static enum step openapi(struct http_request *req)
{
    http_reply_static(req, "application/json", (struct bytes){openapi_json, openapi_json_len});
    return http_answer(req, 200);
}

static enum step problem_text(struct http_request *req)
{
    enum problem problem = problem_find(http_path_part(req, 0));
    struct json_out *out = http_json(req);

    if (problem == PROBLEM_NONE)
        return http_refuse_detail(req, PROBLEM_NOT_FOUND, "There is no problem with this code.");
    problem_page_write(problem_info(problem), out);
    http_reply_body(req, "text/html; charset=utf-8", json_out_bytes(out));
    return http_answer(req, 200);
}

/* -- all of them */

static const struct http_route health_routes[] = {
    {HTTP_GET, "/", HTTP_BODY_NONE, 0, false, service_index, "getIndex", ACCESS_OPEN},
    {HTTP_GET | HTTP_ANY_SITE | HTTP_KEEPS, "/livez", HTTP_BODY_NONE, 0, false, live, "getLiveness",
     ACCESS_OPEN},
    {HTTP_GET | HTTP_ANY_SITE | HTTP_KEEPS, "/readyz", HTTP_BODY_NONE, 0, false, ready_page, "getReadiness",
     ACCESS_OPEN},
    {HTTP_GET, "/metrics", HTTP_BODY_NONE, 0, false, metrics_page, "getMetrics",
     ACCESS_NEEDS(ACCESS_SOME, ACCESS_OBSERVE)},
    {HTTP_GET, "/v1/access", HTTP_BODY_NONE, 0, true, access_page, "getAccess", ACCESS_KNOWN},
    {HTTP_GET, "/version", HTTP_BODY_NONE, 0, false, version, "getVersion", ACCESS_OPEN},
    {HTTP_GET, "/openapi.json", HTTP_BODY_NONE, 0, false, openapi, "getOpenapi", ACCESS_OPEN},
    {HTTP_GET, "/ui", HTTP_BODY_NONE, 0, false, ui_slash_page, "getUiSlash", ACCESS_OPEN},
    {HTTP_GET, "/ui/", HTTP_BODY_NONE, 0, true, ui_overview_page, "getUi", ACCESS_OPEN},
    {HTTP_GET, "/ui/{file}", HTTP_BODY_NONE, 0, true, ui_file_page, "getUiFile", ACCESS_OPEN},
    {HTTP_GET, "/problems/{code}", HTTP_BODY_NONE, 0, false, problem_text, "getProblem", ACCESS_OPEN},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};

static void paths_write(const struct http_route *routes, struct json_out *json)
{
    for (const struct http_route *route = routes; route->path != NULL; route++) {
        const struct http_route *first = routes;

        while (strcmp(first->path, route->path) != 0)
            first++;
        if (first == route)
            json_text(json, NULL, bytes_of(route->path));
    }
}

enum step service_index(struct http_request *req)
{
    const struct service_plan *plan = worker_of(req)->service->plan;
    struct json_out *json = http_json_begin(req);

    if (service_sends_to_ui(req)) {
        http_reply_header(req, "Location", BYTES("ui/"));
        json_out_reset(json);
        return http_answer(req, 303);
    }
    json_text(json, "name", bytes_of(plan->name));
    json_text(json, "openapi", BYTES("/openapi.json"));
    json_list(json, "paths");
    paths_write(plan->routes, json);
    paths_write(health_routes, json);
    json_list_end(json);
    return http_json_end(req, 200);
}

struct http_route *service_routes(const struct service_plan *plan)
{
    size_t own = 0, skipped = plan->rest != NULL; /* which may take "/", and shows the index if it does not */

    while (plan->routes[own].path != NULL)
        own++;
    size_t health = sizeof(health_routes) / sizeof(health_routes[0]) - skipped;
    struct http_route *all = must_have(calloc(own + health + 1, sizeof(*all)));
    memcpy(all, plan->routes, own * sizeof(*all));
    memcpy(all + own, health_routes + skipped, health * sizeof(*all));
    if (plan->rest != NULL)
        all[own + health - 1] = *plan->rest; /* in place of the end; another follows */
    return all;
}
