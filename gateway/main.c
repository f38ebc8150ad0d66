/* main.c - pawl-gateway: stands in front of the resource and refuses the stale writer. */
#include "gateway/fenced_call.h"
#include "gateway/forward/forward.h"
#include "gateway/intent/intent.h"
#include "gateway/route/route.h"
#include "gateway/worker.h"
#include "scripts.h"
#include "shared/member/member.h"

#define DEEDS "pawl_gateway_operations_total"
#define DEEDS_HELP "What the gate let through."
static const struct metric gateway_metrics[FENCED_COUNTS] = {
    [COUNT_WRITTEN] = {DEEDS, METRIC_COUNTER, "what=\"written\"", DEEDS_HELP},
    [COUNT_REMOVED] = {DEEDS, METRIC_COUNTER, "what=\"removed\"", DEEDS_HELP},
    [COUNT_READ] = {DEEDS, METRIC_COUNTER, "what=\"read\"", DEEDS_HELP},
    [COUNT_READ_FENCED] = {DEEDS, METRIC_COUNTER, "what=\"read-fenced\"", DEEDS_HELP},
    [COUNT_CHECKED] = {DEEDS, METRIC_COUNTER, "what=\"checked\"", DEEDS_HELP},
    [COUNT_FORWARDED] = {DEEDS, METRIC_COUNTER, "what=\"forwarded\"", DEEDS_HELP},
    [COUNT_FORWARDED_READ] = {DEEDS, METRIC_COUNTER, "what=\"forwarded-read\"", DEEDS_HELP},
    [COUNT_FORWARDING] = {"pawl_gateway_forwarding", METRIC_GAUGE, NULL,
                          "Forwarded requests that are under way, now."},
    [COUNT_INTENTS] = {"pawl_gateway_intents", METRIC_GAUGE, NULL,
                       "Writes sent on whose end is not recorded, now."},
    [COUNT_IN_DOUBT] = {"pawl_gateway_in_doubt", METRIC_GAUGE, NULL,
                        "Incarnations of gateways that have yet to say what they had sent on, now."},
    [COUNT_REPEATED] = {DEEDS, METRIC_COUNTER, "what=\"repeated\"", DEEDS_HELP},
};

static const struct service_flag gateway_flags[] = {
    SERVICE_FLAG("max-body", body_max, OPTION_BYTES, "BYTES", "of a stored resource", 1, 64 << 20),
    SERVICE_FLAG("max-body-disk", body_disk_max, OPTION_BYTES, "BYTES", "all request bodies in files at once",
                 65536, 1LL << 40),
    SERVICE_FLAG("routes", routes, OPTION_TEXT, "FILE",
                 "requests to forward (docs/routes.md); read again on SIGHUP", 0, 0),
    SERVICE_FLAG("check", check, OPTION_CHOICE, "live|mark",
                 "of stored resources and /v1/check: what a token must be (live)", 0, 0),
    SERVICE_FLAG("check-store", check_store, OPTION_TEXT, "ID",
                 "with --check mark: whose tokens are taken (this store's)", 0, 0),
    {{0}, 0},
};

/* A table that cannot be kept is an error before anything is opened. */
static int gateway_check(const struct service *service)
{
    const struct service_settings *settings = &service->settings;
    char why[ROUTE_WHY_SIZE];
    struct route_table *table;

    if (settings->check_store != NULL &&
        (settings->check == 0 || !token_is_store(bytes_of(settings->check_store))))
        return service_fail(service,
                            "--check-store is the id of a store, %d characters, and goes with --check mark",
                            TOKEN_STORE_CHARS);
    if (settings->routes == NULL)
        return -1;
    table = route_table_load(settings->routes, settings->allow_unsafe_redis, why);
    if (table == NULL)
        return service_fail(service, "%s", why);
    route_table_free(table);
    return -1;
}

int main(int argc, char **argv)
{
    /* The sweep forgets remembered deletions. */
    static const struct member_plan record = {
        .role = MEMBER_GATEWAY,
        .sweep = &script_forget,
        .use_again = &script_stored_again,
        .use_kinds = "b",
        .index = "gone",
        .given_up = given_up_look,
        .bars = gateway_worker_bars,
    };
    static const struct service_plan plan = {
        .name = "pawl-gateway",
        .summary = "stands in front of the resource and refuses the stale writer",
        .examples = "  pawl-gateway --redis unix:///run/redis/redis.sock --keys keys\n"
                    "  curl -X PUT -H \"Fencing-Token: $T\" --data-binary @order.json \\\n"
                    "       http://127.0.0.1:8701/v1/resources/orders:42\n",
        .listen = "127.0.0.1:8701",
        .head_max = SERVICE_HEAD_MAX, /* a caller's own headers go on to the upstream */
        .flags = gateway_flags,
        .routes = gateway_routes,
        .rest = &gateway_rest,
        .refuses = forward_refuses,
        .authorization_is_upstreams = forward_authorization_is_upstreams,
        .library = &pawl_library,
        .check = gateway_check,
        .metrics = gateway_metrics,
        .metric_count = FENCED_COUNTS,
        .open = gateway_open,
        .close = gateway_close,
        .reload = gateway_reload,
        .worker_open = gateway_worker_open,
        .worker_close = gateway_worker_close,
        .worker_free = gateway_worker_free,
        .worker_tick = gateway_worker_tick,
        .judge = forward_judge,
        .drain = gateway_worker_drain,
        .settled = member_daemon_settled,
        .leave = gateway_leave,
        .ready = member_worker_ready,
        .unfit = member_daemon_unfit,
        .lacking = unreported_lacking,
        .stand = member_worker_stand,
        .own = &record,
    };

    return service_main(&plan, argc, argv);
}
