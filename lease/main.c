/* main.c - pawl-lease: lends leases with fencing tokens. */
#include "lease/init_store.h"
#include "lease/operation.h"
#include "lease/routes.h"
#include "lease_scripts.h"
#include "shared/record/daemon.h"

#define HOLDS "pawl_lease_operations_total"
#define HOLDS_HELP "What happened to holds."
static const struct metric lease_metrics[LEASE_COUNTS] = {
    [COUNT_GRANTED] = {HOLDS, METRIC_COUNTER, "what=\"granted\"", HOLDS_HELP},
    [COUNT_REPLAYED] = {HOLDS, METRIC_COUNTER, "what=\"replayed\"", HOLDS_HELP},
    [COUNT_RENEWED] = {HOLDS, METRIC_COUNTER, "what=\"renewed\"", HOLDS_HELP},
    [COUNT_RELEASED] = {HOLDS, METRIC_COUNTER, "what=\"released\"", HOLDS_HELP},
    [COUNT_EXPIRED] = {HOLDS, METRIC_COUNTER, "what=\"expired-by-sweep\"", HOLDS_HELP},
};

static const struct service_flag lease_flags[] = {
    {{"init-store", OPTION_FLAG, NULL, NULL, "make a store in an empty Redis, and exit", 0, 0, true},
     offsetof(struct service_settings, init_store)},
    {{"token-block", OPTION_UNSIGNED, NULL, "N", "how many tokens are reserved ahead", 1, 1000000000, false},
     offsetof(struct service_settings, token_block)},
    {{0}, 0},
};

int main(int argc, char **argv)
{
    static const struct record_plan record = {
        .role = MEMBER_LEASE,
        .pulse = &script_pulse,
        .watch = &script_watch,
        .leave = &script_leave,
        .admit = &script_admit,
        .sweep = &script_sweep,
        .index = "due",
        .records = "l:",
        .swept = COUNT_EXPIRED,
        .counts_swept = true,
    };
    static const struct service_plan plan = {
        .name = "pawl-lease",
        .summary = "lends leases with fencing tokens, over HTTP",
        .examples = "  pawl keygen --out keys\n"
                    "  pawl-lease --redis unix:///run/redis/redis.sock --init-store\n"
                    "  pawl-lease --redis unix:///run/redis/redis.sock --keys keys\n"
                    "  curl -X POST http://127.0.0.1:8700/v1/leases/orders:42\n",
        .listen = "127.0.0.1:8700",
        .flags = lease_flags,
        .routes = lease_routes,
        .scripts = lease_scripts,
        .metrics = lease_metrics,
        .metric_count = LEASE_COUNTS,
        .open = record_daemon_open,
        .close = record_daemon_close,
        .worker_open = record_worker_open,
        .worker_close = record_worker_close,
        .worker_free = record_worker_free,
        .worker_tick = record_worker_tick,
        .settled = record_daemon_settled,
        .leave = record_daemon_leave,
        .ready = record_worker_ready,
        .own = &record,
        .run_once = init_store,
    };

    return service_main(&plan, argc, argv);
}
