/* main.c - pawl-lease: lends leases with fencing tokens. */
#include "lease/operation.h"
#include "lease/quorum/quorum.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/member/member.h"

enum { LEASE_SWEEP_MS = 2560 }; /* nobody waits longer than 3 s to see that a hold is over */

#define HOLDS "pawl_lease_operations_total"
#define HOLDS_HELP "What happened to holds."
#define WAITS "pawl_lease_waits_total"
#define WAITS_HELP "What became of those who waited in line here."
#define SESSIONS "pawl_lease_sessions_total"
#define SESSIONS_HELP "What happened to sessions."
static const struct metric lease_metrics[LEASE_COUNTS] = {
    [COUNT_GRANTED] = {HOLDS, METRIC_COUNTER, "what=\"granted\"", HOLDS_HELP},
    [COUNT_REPLAYED] = {HOLDS, METRIC_COUNTER, "what=\"replayed\"", HOLDS_HELP},
    [COUNT_ENTERED] = {HOLDS, METRIC_COUNTER, "what=\"entered\"", HOLDS_HELP},
    [COUNT_RENEWED] = {HOLDS, METRIC_COUNTER, "what=\"renewed\"", HOLDS_HELP},
    [COUNT_LEFT] = {HOLDS, METRIC_COUNTER, "what=\"left\"", HOLDS_HELP},
    [COUNT_RELEASED] = {HOLDS, METRIC_COUNTER, "what=\"released\"", HOLDS_HELP},
    [COUNT_FORCED] = {HOLDS, METRIC_COUNTER, "what=\"force-released\"", HOLDS_HELP},
    [COUNT_EXPIRED] = {HOLDS, METRIC_COUNTER, "what=\"expired-by-sweep\"", HOLDS_HELP},
    [COUNT_FORGOTTEN] = {HOLDS, METRIC_COUNTER, "what=\"forgotten-early\"", HOLDS_HELP},
    [COUNT_WAIT_QUEUED] = {WAITS, METRIC_COUNTER, "what=\"queued\"", WAITS_HELP},
    [COUNT_WAIT_GRANTED] = {WAITS, METRIC_COUNTER, "what=\"granted\"", WAITS_HELP},
    [COUNT_WAIT_TIMED_OUT] = {WAITS, METRIC_COUNTER, "what=\"timed-out\"", WAITS_HELP},
    [COUNT_WAIT_GONE] = {WAITS, METRIC_COUNTER, "what=\"gone\"", WAITS_HELP},
    [COUNT_WAIT_SUPERSEDED] = {WAITS, METRIC_COUNTER, "what=\"superseded\"", WAITS_HELP},
    [COUNT_WAIT_SENT_AWAY] = {WAITS, METRIC_COUNTER, "what=\"sent-away\"", WAITS_HELP},
    [COUNT_WAITING] = {"pawl_lease_waiting", METRIC_GAUGE, NULL, "Those who wait in line here, now."},
    [COUNT_WAIT_TIME] = {"pawl_lease_wait_seconds", METRIC_HISTOGRAM_US, NULL,
                         "From the request to the grant, of those who waited here and were granted."},
    [COUNT_SESSION_OPENED] = {SESSIONS, METRIC_COUNTER, "what=\"opened\"", SESSIONS_HELP},
    [COUNT_SESSION_RENEWED] = {SESSIONS, METRIC_COUNTER, "what=\"renewed\"", SESSIONS_HELP},
    [COUNT_SESSION_ENDED] = {SESSIONS, METRIC_COUNTER, "what=\"ended\"", SESSIONS_HELP},
    [COUNT_LISTENING] = {"pawl_lease_listening", METRIC_GAUGE, NULL, "Those who listen to events here, now."},
    [COUNT_REMEMBERED] =
        {"pawl_lease_remembered_bytes", METRIC_GAUGE, NULL,
         "What leases take that are over and remembered, about; 0: less than --remember-max."},
    [COUNT_HELD] =
        {"pawl_store_leases_held", METRIC_GAUGE, NULL,
         "Leases held in the whole store, as a sample says it each 20 s: exact while there are few."},
};

static const struct service_flag lease_flags[] = {
    SERVICE_FLAG("init-store", init_store, OPTION_FLAG, NULL, "make a store in an empty Redis, and exit",
                 .command_line_only = true),
    SERVICE_FLAG("token-block", token_block, OPTION_UNSIGNED, "N", "how many tokens are reserved ahead", 1,
                 1000000000),
    SERVICE_FLAG("registrars", registrars, OPTION_UNSIGNED, "N",
                 "with --init-store: a majority of the first N lease services counts: 1, 3 or 5", 1, 5,
                 .command_line_only = true),
    SERVICE_FLAG(
        "max-ttl", max_ttl_ms, OPTION_DURATION, "DUR",
        "with --init-store and a quorum: no ttl is longer (default 5m); as long is a node in quarantine", 100,
        86400000),
    SERVICE_FLAG(
        "floor", floor, OPTION_BYTES, "N",
        "with --init-store and a quorum, most of whose nodes have lost their data: they go on above N", 1,
        TOKEN_NUMBER_MAX, .command_line_only = true),
    SERVICE_FLAG("remember-max", remember_max, OPTION_BYTES, "BYTES",
                 "above it the oldest of what is over is forgotten before --remember", 1 << 20, 1LL << 50),
    {{0}, 0},
};

static const struct service_plan quorum_plan = {
    .name = "pawl-lease",
    .listen = "127.0.0.1:8700",
    .head_max = HTTP_HEAD_MAX,
    .flags = lease_flags,
    .routes = lease_routes, /* with other handlers: quorum_worker_open() */
    .library = &node_library,
    .metrics = lease_metrics,
    .metric_count = LEASE_COUNTS,
    .worker_open = quorum_worker_open,
    .worker_close = quorum_worker_close,
    .worker_free = quorum_worker_free,
    .settled = quorum_settled,
    .ready = quorum_ready,
    .stand = quorum_stand,
    .tell = quorum_tell,
    .quorum_of_stores = true,
    .run_once = quorum_init_store,
};

int main(int argc, char **argv)
{
    static const struct member_plan record = {
        .role = MEMBER_LEASE,
        .admit = &script_admit,
        .sweep = &script_sweep,
        .use_again = &script_use_again,
        .use_kinds = "hs",
        .index = "due",
        .swept = COUNT_EXPIRED,
        .counts_swept = true,
        .sweep_may_grant = true,
        .sweep_round_ms = LEASE_SWEEP_MS,
        .alarm = lease_worker_alarm,
        .bars = lease_worker_bars,
    };
    static const struct service_plan plan = {
        .name = "pawl-lease",
        .summary = "lends leases with fencing tokens, over HTTP",
        .examples = "  pawl keygen --out keys\n"
                    "  pawl-lease --redis unix:///run/redis/redis.sock --init-store\n"
                    "  pawl-lease --redis unix:///run/redis/redis.sock --keys keys\n"
                    "  curl -X POST http://127.0.0.1:8700/v1/leases/orders:42\n",
        .quorum = &quorum_plan,
        .listen = "127.0.0.1:8700",
        .head_max = HTTP_HEAD_MAX,
        .flags = lease_flags,
        .routes = lease_routes,
        .library = &pawl_library,
        .metrics = lease_metrics,
        .metric_count = LEASE_COUNTS,
        .open = member_daemon_open,
        .close = member_daemon_close,
        .worker_open = lease_worker_open,
        .worker_close = lease_worker_close,
        .worker_free = lease_worker_free,
        .worker_tick = lease_worker_tick,
        .settled = lease_worker_settled,
        .judge = lease_worker_judge,
        .drain = lease_worker_drain,
        .leave = member_daemon_leave,
        .unfit = member_daemon_unfit,
        .ready = lease_worker_ready,
        .stand = member_worker_stand,
        .own = &record,
        .run_once = init_store,
    };

    return service_main(&plan, argc, argv);
}
