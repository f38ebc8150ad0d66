/* main.c - pawl-lease: lends leases with fencing tokens. */
#include <stdlib.h>

#include "lease/init_store.h"
#include "lease/operation.h"
#include "lease/routes.h"
#include "lease_scripts.h"
#include "shared/record/sweep.h"

static void lease_worker_start(struct worker *worker);
static void lease_worker_stop(struct worker *worker);

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
    {{0}, 0},
};

int main(int argc, char **argv)
{
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
        .ready_script = &script_ready,
        .ready_key = {"pawl:{00}", 9},
        .metrics = lease_metrics,
        .metric_count = LEASE_COUNTS,
        .worker_start = lease_worker_start,
        .worker_stop = lease_worker_stop,
        .run_once = init_store,
    };

    return service_main(&plan, argc, argv);
}

/* -- one sweep for each process, on its first worker */

static void swept(struct sweep *sweep, int64_t expired);

struct lease_sweep {
    struct sweep sweep;
    struct worker *worker;
};

static void lease_worker_start(struct worker *worker)
{
    struct lease_sweep *own;

    if (worker->index != 0) {
        return;
    }
    own = calloc(1, sizeof(*own));
    if (own == NULL) {
        abort();
    }
    own->worker = worker;
    own->sweep = (struct sweep){
        .store = worker->store, .script = &script_sweep, .index = "due", .records = "l:", .swept = swept};
    worker->extra = own;
    sweep_start(&own->sweep, worker->loop, worker->service->settings.remember_ms);
}

static void lease_worker_stop(struct worker *worker)
{
    struct lease_sweep *own = worker->extra;

    if (own != NULL) {
        sweep_stop(&own->sweep);
    }
}

static void swept(struct sweep *sweep, int64_t expired)
{
    struct lease_sweep *own = container_of(sweep, struct lease_sweep, sweep);

    metric_add(own->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_EXPIRED, (uint64_t)expired);
}
