/* service.h - what every Pawl daemon is made of: settings, threads, signals, health; knows neither leases
 * nor resources.
 *
 * service_main() reads the settings, checks them, opens the listening sockets, connects to the store,
 * refuses one that can lose locks, says that it is ready (stderr and sd_notify), serves, and drains on
 * SIGTERM or SIGINT. Each thread has one struct worker: its own loop, listener and connection to the
 * store. Worker 0 runs on the main thread. */
#ifndef PAWL_SHARED_SERVICE_H
#define PAWL_SHARED_SERVICE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "shared/access/access.h"
#include "shared/http/http_server.h"
#include "shared/service/log.h"
#include "shared/service/metrics.h"
#include "shared/service/options.h"
#include "shared/store/store.h"
#include "shared/token/token.h"

/* Everything that flags, environment and file can set. */
struct service_settings {
    const char *listen, *listen_unix, *redis, *redis_password_file, *sentinel_password_file, *keys, *access,
        *config, *state_dir, *routes, *check_store;
    const char *allow_hosts, *allow_origins, *trusted_proxies, *ui_peer, *ui_listen;
    const char *tls_cert, *tls_key, *tls_client_ca, *tls_crl, *redis_ca, *redis_cert, *redis_key;
    unsigned threads, connections_max, connections_per_address, token_block, registrars, copies;
    uint64_t store_timeout_ms, keep_wait_ms, max_ttl_ms, remember_ms, header_timeout_ms, body_timeout_ms;
    size_t floor, head_max, body_memory_max, body_disk_max, body_max, store_memory_max, remember_max;
    int log_format, log_level, check; /* check: 0 live, 1 mark */
    bool allow_anonymous, allow_plaintext, allow_unsafe_redis, check_config, init_store, suspend_always, ui;
};

/* A flag: its row, and which field of the settings it fills. */
struct service_flag {
    struct option option; /* place is left NULL */
    size_t offset;
};

/* The rest: its help, and of numbers the lowest and the highest. */
#define SERVICE_FLAG(flag, field, flag_kind, flag_value, ...)                                                \
    {                                                                                                        \
        {.name = (flag), .kind = (flag_kind), .value = (flag_value), .help = __VA_ARGS__},                   \
            offsetof(struct service_settings, field)                                                         \
    }

struct service;
struct worker;

enum { SERVICE_NODE_STATES_MAX = 8 };

/* How the store stands. In bytes; allowed 0: there is no bound. is_full: so much that nothing new is taken.
 * Registrars: of how many a majority must be heard, 0: all lease services must. */
struct service_stand {
    uint64_t used, allowed;
    bool is_full;
    bool is_joining; /* the last node that has to have a copy may not take over yet */
    unsigned registrars, registrars_heard;
    /* Of a quorum how many nodes are in which of these states, which ends with NULL. */
    const char *const *node_states;
    unsigned nodes[SERVICE_NODE_STATES_MAX];
};

enum { READY_DETAIL_SIZE = 512, SERVICE_THREADS_MAX = 64, SERVICE_HEAD_MAX = 32768 };

/* How often the service manager wants to hear that all goes on; interval_us 0: it does not ask. */
struct notify_watchdog {
    uint64_t interval_us, told_us;
};

/* What makes a daemon this daemon. A function may be NULL. */
struct service_plan {
    const char *name, *summary, *examples;
    const char *listen; /* the default, as is head_max */
    size_t head_max;
    const struct service_flag *flags; /* beside the common ones; ends with option.name NULL */
    const struct http_route *routes;  /* without the health pages, which follow them */
    const struct http_route *rest;    /* one for whatever none of them matches; may be NULL */
    /* See struct http_options. */
    bool (*refuses)(struct http_request *req);
    /* Whether the request's Authorization is for the upstream, and not for this service. */
    bool (*authorization_is_upstreams)(struct http_request *req);
    const struct store_library *library;
    /* Its own settings, for --check-config too: an exit status, with the reason on stderr, or -1 to go on. */
    int (*check)(const struct service *service);
    /* The daemon's own for the whole process, before any worker is opened: an exit status, or -1 to go on. */
    int (*open)(struct service *service);
    void (*close)(struct service *service);
    /* On SIGHUP, beside the keys; on the first worker's thread. */
    void (*reload)(struct service *service);
    /* Called on the main thread when the worker's loop and store stand: worker->extra, what runs from the
     * beginning. At the end, on the main thread too: worker_close, then the store is closed, then
     * worker_free. */
    void (*worker_open)(struct worker *worker);
    void (*worker_close)(struct worker *worker);
    void (*worker_free)(struct worker *worker);
    /* Every 100 ms, on the worker's own thread. */
    void (*worker_tick)(struct worker *worker);
    /* The access file, or the certificates, may have changed: what waits or streams and is not allowed any
     * more is ended. On the worker's own thread. */
    void (*judge)(struct worker *worker);
    /* Whether it is known how things stand with the store: readiness is said after that, or after a time-out.
     */
    bool (*settled)(const struct service *service);
    /* The process is to end, and takes no request any more: on the worker's own thread, every 100 ms, until
     * it says true (or time is up): requests that wait longer than a call to the store takes are ended. */
    bool (*drain)(struct worker *worker);
    /* When every request of the process is answered, on the first worker's thread, until it says true (or
     * time is up): leaves the store. */
    bool (*leave)(struct service *service);
    /* For /readyz, beside what the store itself knows: NULL, or the check that fails, in one word. */
    const char *(*ready)(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);
    /* Whether this service is not to serve this store at all, and why: the exit status is 78 when it starts.
     */
    bool (*unfit)(const struct service *service, char detail[READY_DETAIL_SIZE]);
    /* For /readyz when it is ready: NULL, or what does not work all the same, in one word, and in which
     * member of checks; detail: a sentence. */
    const char *(*lacking)(struct worker *worker, const char **member, char detail[READY_DETAIL_SIZE]);
    /* For /readyz and the metrics. */
    void (*stand)(struct worker *worker, struct service_stand *stand);
    const struct metric *metrics; /* beside the common ones */
    unsigned metric_count;
    const void *own; /* of the functions above */
    /* The plan in the place of this one when --redis names several stores, of each of which a worker has a
     * link; NULL: it takes one. */
    const struct service_plan *quorum;
    /* Of such a plan: a store that has restarted is asked nothing, so its settings may be any; and further
     * members of /readyz. */
    bool quorum_of_stores;
    void (*tell)(struct worker *worker, struct json_out *json);
    /* Does the daemon's own one-off job (--init-store) in place of serving: the exit status. May be NULL. */
    int (*run_once)(struct service *service);
};

struct worker {
    struct http_owner owner;
    struct store_owner store_owner;
    struct service *service;
    unsigned index;
    struct loop *loop;
    struct store *store; /* the first of the stores */
    struct store *stores[STORE_LIST_MAX];
    unsigned store_count;
    struct http_server *http;
    struct metrics_block *metrics;
    const struct token_keys *keys; /* the ones in force; changes between turns only */
    unsigned judged_by;            /* rises when access, or the certificates, were read again */
    struct access_memo *memo;      /* NULL: without --access */
    const struct access *access;   /* the same; NULL: without --access */
    int listen_fd, unix_fd, ui_fd; /* the last two: 0: none */
    struct loop_timer tick;
    struct store_counts counted;           /* in the metrics already */
    unsigned failovers;                    /* the same */
    uint64_t logged_second, closed_second; /* of the last lines */
    unsigned logged;
    uint64_t unread_until_ms; /* while it drains: so long it waits for clients to read; 0: it does not */
    struct audit *audit;      /* audit.c's */
    atomic_uint keys_seen;    /* generation of the keys and the access file in use */
    atomic_bool alive;        /* has turned since worker 0 looked last */
    void *extra;              /* the daemon's own */
};

struct service {
    const struct service_plan *plan;
    struct service_settings settings;
    time_t began_s; /* since 1970 */
    struct options_text *texts;
    char *password;
    struct http_peers *peers;
    struct http_memory body_memory;
    struct tls_server *tls;  /* NULL: plain connections */
    atomic_bool tls_lacking; /* the last SIGHUP found other files, and they could not be read */
    struct log log;
    atomic_bool log_is_cut;                 /* log.is_cut */
    struct http_route *routes;              /* of every worker */
    unsigned operations;                    /* routes, and one for requests to none of them */
    unsigned metric_requests, metric_times; /* the first row of each: 4 an operation, 1 an operation */
    struct metric *metric_table;
    char *metric_labels;
    struct metrics *metrics;
    _Atomic(struct token_keys *) keys;
    struct token_keys *keys_retired;
    _Atomic(struct access *) access;
    struct access *access_retired;
    struct limits *limits; /* limits.c's; NULL without --access */
    /* What is wrong with the file as it is now, the one of before is in force; NULL: nothing. */
    _Atomic(char *) access_wrong;
    char *access_wrong_retired;
    atomic_uint keys_generation;
    bool reload_wanted;              /* worker 0's */
    struct notify_watchdog watchdog; /* worker 0's */
    atomic_bool draining;
    struct worker *workers;
    unsigned listen_port, ui_port;
    char listen_given[HTTP_LISTEN_SIZE]; /* of a socket that was passed; "": none was */
    atomic_uint idle_workers;            /* that have answered their last request */
    void *extra;                         /* what the daemon is to the store (shared/member/member.h) */
    void *more;                          /* the daemon's own beside that */
};

/* Rows of the metrics that every daemon has; the plan's own begin at SERVICE_METRICS, and behind them stand
 * those of the requests, of each operation (service_metrics_open()). */
enum { REQUEST_KINDS = 4, METRIC_LABELS_SIZE = 64 }; /* 2xx to 5xx */
enum {
    METRIC_READY,
    METRIC_CONNECTIONS,
    METRIC_CLOSED_FIRST, /* a row for each enum http_limit */
    METRIC_CLOSED_ADDRESS,
    METRIC_HANDSHAKE_FIRST, /* a row for each enum tls_failure */
    METRIC_HANDSHAKE_LAST = METRIC_HANDSHAKE_FIRST + TLS_FAILURES - 1,
    METRIC_STORE_DONE,
    METRIC_STORE_NOT_SENT,
    METRIC_STORE_UNKNOWN,
    METRIC_STORE_TIME,
    METRIC_STORE_RECONNECTS,
    METRIC_STORE_FAILOVERS,
    METRIC_STORE_LOSSES,
    METRIC_STORE_IN_FLIGHT,
    METRIC_STORE_MEMORY_USED,
    METRIC_STORE_MEMORY_ALLOWED,
    METRIC_STORE_KEPT,
    METRIC_STORE_KEEP_TIME,
    METRIC_PROBLEM_FIRST,
    SERVICE_METRICS = METRIC_PROBLEM_FIRST + (int)PROBLEM_COUNT - 1
};

/* The whole epoch of a daemon; the exit status (0, 69, 70, 78). */
int service_main(const struct service_plan *plan, int argc, char **argv);

/* The worker that serves this request. */
struct worker *worker_of(const struct http_request *req);
/* Counts one more of the plan's own metric row. */
void worker_count(struct worker *worker, unsigned row);

/* health.c: the worst that /readyz says now, in one word, whether it is ready or not; NULL: nothing. */
const char *service_condition(struct worker *worker, char detail[READY_DETAIL_SIZE]);
/* What to do about it, in a sentence; the command that does or shows it: NULL: none. */
const char *service_condition_remedy(const char *code, const char **command);

/* access.c: what a handler asks of the caller (shared/access/access.h); without --access everything is
 * allowed, and everything covered. */
bool service_judges(const struct http_request *req); /* whether there is an --access */
bool service_allows(const struct http_request *req, enum access_verb verb, struct bytes lease);
/* In front of a later step of a deed: whether what it has shown stands, too (http_stands()). */
bool service_still_allows(struct http_request *req, enum access_verb verb, struct bytes lease);
bool service_allows_some(const struct http_request *req, enum access_verb verb);
bool service_covers(const struct http_request *req, enum access_verb verb, struct bytes prefix);
/* What it may know of who holds the lease: the identity, which is the holder if none was said, is for who
 * may look. */
struct bytes service_holder(const struct http_request *req, struct bytes lease, struct bytes holder);
/* Whether an access token of Pawl's stands in Authorization, in Basic's base64, too. */
bool service_sends_away_token(const struct http_request *req);
/* 403 forbidden, or, of nobody, 401; with the members of the problem. lease is the caller's until the
 * request is ended; {NULL, 0}: null. */
enum problem service_forbidden(struct http_request *req, enum access_verb verb, struct bytes lease);
enum step service_forbid(struct http_request *req, enum access_verb verb, struct bytes lease);

/* limits.c: quotas of who asks. Of nobody, and without --access, there are none. */
/* How many more it may have; INT64_MAX: there is no limit; not above 0: none. */
int64_t service_quota_room(const struct http_request *req, enum access_quota quota);
/* The members of a problem quota-exceeded; that problem, which ends the request. */
void service_quota_write(const struct http_request *req, struct json_out *json, enum access_quota quota);
enum step service_quota_refuse(struct http_request *req, enum access_quota quota);
/* One more of what this process counts, waiting or streams, if there is room; and back. */
bool service_quota_take(const struct worker *worker, const char *identity, enum access_quota quota);
void service_quota_give(const char *identity, enum access_quota quota);
void service_quota_count(const char *identity, enum access_quota quota); /* whether there is room or not */
/* The same of who waits, with --access: a place that is kept for so long after its client has left counts as
 * long, and not again when the same lease_id takes it up in the line of the same lease. kept_ms: for how long
 * it is still kept, if it had one; who does not take it up gives that back. */
bool service_waiting_take(const struct worker *worker, const char *identity, struct bytes lease,
                          struct bytes lease_id, uint64_t *kept_ms);
void service_waiting_give(const struct worker *worker, const char *identity, struct bytes lease,
                          struct bytes lease_id, uint64_t kept_ms);

/* -- between the files of this module */
enum { SERVICE_OK = 0, SERVICE_UNREACHABLE = 69, SERVICE_BUG = 70, SERVICE_CONFIG = 78 };
/* Says on stderr what is wrong, at most 1,023 bytes of the printf family; SERVICE_CONFIG. */
int service_fail(const struct service *service, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* worker.c */
void worker_open(struct worker *worker, struct service *service, unsigned index);
void worker_serve(struct worker *worker);
void worker_close(struct worker *worker);
/* The keys and the access file, each whole or not at all. false: not yet, worker 0's next tick does it. */
bool service_reload(struct service *service);
struct store_options service_store_options(const struct service *service);
struct store *service_store_open(const struct service *service, struct loop *loop);
/* All that --redis names; how many. owner may be NULL. */
unsigned service_stores_open(const struct service *service, struct loop *loop,
                             const struct store_owner *owner, struct store *stores[STORE_LIST_MAX]);
/* tls.c: -1 to go on, or an exit status, with the reason on stderr. */
int service_tls_open(struct service *service);
/* Whole or not at all; says which, in the log. */
void service_tls_reload(struct service *service);
void service_tls_metrics(const struct service *service, struct json_out *out);
/* ui.c: the web pages, where they are served; whether this request, of the index, is a browser's. */
enum step ui_overview_page(struct http_request *req);
enum step ui_slash_page(struct http_request *req);
enum step ui_file_page(struct http_request *req);
bool service_sends_to_ui(struct http_request *req);
/* audit.c: deeds of operators and refusals of callers, in the log. */
struct audit *audit_new(void); /* free(3) frees */
void audit_request(struct worker *worker, const struct http_request *req, const struct http_ending *ending);
void audit_handshake(struct worker *worker, const char *reason, const char *why, const char *address);
/* Every now and then; is_last: before the end. */
void audit_tick(struct worker *worker, bool is_last);
/* access.c: the file with the keys of its issuers, or NULL and why. */
struct access *service_access_load(const struct service *service, char why[ACCESS_WHY_SIZE]);
/* http_options.enter, stands and permits; GET /v1/access. */
enum problem access_enter(struct http_request *req);
bool access_stands(struct http_request *req);
enum problem access_permits(struct http_request *req);
enum step access_page(struct http_request *req);
/* limits.c */
struct limits *limits_new(void);
void limits_free(struct limits *limits);
/* Of who is known: PROBLEM_NONE, or RATE_LIMITED with its headers set; for access_enter(). */
enum problem limits_rate(struct http_request *req);
/* One more 401 from this address; whether it is to be 429 instead: limits_failing(). */
bool limits_fails(const struct http_request *req);
/* One more JWT of this address was verified in vain. And whether no other is to be, in this second. */
void limits_forges(const struct http_request *req);
bool limits_is_forging(const struct http_request *req);
enum problem limits_failing(struct http_request *req);
/* health.c: what /readyz says. */
bool service_is_ready(struct worker *worker);
struct service_stand service_stand(struct worker *worker);
/* The plan's own routes, and behind them the health pages; the caller frees. */
struct http_route *service_routes(const struct service_plan *plan);
/* "/": name and addresses. For the plan's rest, if nothing of it takes that. */
enum step service_index(struct http_request *req);
extern const struct metric service_metrics[SERVICE_METRICS];
/* Appends the page /problems/{code} to out (a plain buffer): HTML5 in UTF-8 that needs nothing else. */
void problem_page_write(const struct problem_info *info, struct json_out *out);
/* service.c: NULL, or what is wrong with an address to listen at, "ADDR:PORT"; goes on "it ...". */
const char *service_listen_wrong(const struct service_settings *settings, const char *address);
/* manager.c: fills listen_fd of every worker from the sockets that were passed, and listen_given;
 * ACTIVATION_NONE when there are none; else -1 to go on, or an exit status, with the reason on stderr. */
enum { ACTIVATION_NONE = -2 };
int activation_take(struct service *service);
/* One datagram to $NOTIFY_SOCKET, if there is one (sd_notify(3)); waits for a second at most. */
void notify_send(const char *state);
/* RELOADING=1 with the time of it, as Type=notify-reload wants it. READY=1 ends it. */
void notify_reloading(void);
/* What $WATCHDOG_USEC and $WATCHDOG_PID ask for: a message twice in that time. */
struct notify_watchdog notify_watchdog_read(void);
/* Whether it is time to send it. */
bool notify_watchdog_due(const struct notify_watchdog *watchdog);
void notify_watchdog_tell(struct notify_watchdog *watchdog);

#endif
