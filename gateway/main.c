/* main.c - pawl-gateway: stands in front of the resource and refuses the stale writer. */
#include "gateway/gate.h"
#include "gateway/routes.h"
#include "gateway_scripts.h"
#include "shared/record/daemon.h"

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
    /* The sweep forgets remembered deletions. */
    static const struct record_plan record = {
        .role = MEMBER_GATEWAY,
        .pulse = &script_pulse,
        .watch = &script_watch,
        .leave = &script_farewell,
        .sweep = &script_forget,
        .index = "gone",
        .records = "r:",
    };
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
        .metrics = gateway_metrics,
        .metric_count = GATE_COUNTS,
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
    };

    return service_main(&plan, argc, argv);
}
