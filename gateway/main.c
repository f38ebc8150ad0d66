/* main.c - pawl-gateway: stands in front of the resource and refuses the stale writer. */
#include <stdlib.h>

#include "gateway/gate.h"
#include "gateway/routes.h"
#include "gateway_scripts.h"
#include "shared/record/sweep.h"

static void gateway_worker_start(struct worker *worker);
static void gateway_worker_stop(struct worker *worker);

#define DEEDS "pawl_gateway_operations_total"
#define DEEDS_HELP "What the gate let through."
static const struct metric gateway_metrics[GATE_COUNTS] = {
    [COUNT_WRITTEN] = {DEEDS, METRIC_COUNTER, "what=\"written\"", DEEDS_HELP},
    [COUNT_REMOVED] = {DEEDS, METRIC_COUNTER, "what=\"removed\"", DEEDS_HELP},
    [COUNT_READ] = {DEEDS, METRIC_COUNTER, "what=\"read\"", DEEDS_HELP},
    [COUNT_READ_FENCED] = {DEEDS, METRIC_COUNTER, "what=\"read-fenced\"", DEEDS_HELP},
    [COUNT_CHECKED] = {DEEDS, METRIC_COUNTER, "what=\"checked\"", DEEDS_HELP},
    [COUNT_REPEATED] = {DEEDS, METRIC_COUNTER, "what=\"repeated\"", DEEDS_HELP},
};

static const struct service_flag gateway_flags[] = {
    {{"max-body", OPTION_BYTES, NULL, "BYTES", "of a stored resource", 1, 64 << 20, false},
     offsetof(struct service_settings, body_max)},
    {{0}, 0},
};

int main(int argc, char **argv)
{
    static const struct service_plan plan = {
        .name = "pawl-gateway",
        .summary = "stands in front of the resource and refuses the stale writer",
        .examples = "  pawl-gateway --redis unix:///run/redis/redis.sock --keys keys\n"
                    "  curl -X PUT -H \"Fencing-Token: $T\" --data-binary @order.json \\\n"
                    "       http://127.0.0.1:8701/v1/resources/orders:42\n",
        .listen = "127.0.0.1:8701",
        .flags = gateway_flags,
        .routes = gateway_routes,
        .scripts = gateway_scripts,
        .ready_script = &script_ready,
        .ready_key = {"pawl:{00}", 9},
        .metrics = gateway_metrics,
        .metric_count = GATE_COUNTS,
        .worker_start = gateway_worker_start,
        .worker_stop = gateway_worker_stop,
    };

    return service_main(&plan, argc, argv);
}

/* -- remembered deletions are forgotten by one sweep for each process, on its first worker */

static void gateway_worker_start(struct worker *worker)
{
    struct sweep *sweep;

    if (worker->index != 0) {
        return;
    }
    sweep = calloc(1, sizeof(*sweep));
    if (sweep == NULL) {
        abort();
    }
    *sweep = (struct sweep){
        .store = worker->store, .script = &script_forget, .index = "gone", .records = "r:"};
    worker->extra = sweep;
    sweep_start(sweep, worker->loop, worker->service->settings.remember_ms);
}

static void gateway_worker_stop(struct worker *worker)
{
    if (worker->extra != NULL) {
        sweep_stop(worker->extra);
    }
}
