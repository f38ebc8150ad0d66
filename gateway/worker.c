/* worker.c - what pawl-gateway has once for the whole process: the route table in force, and the open
 * intents; and what each of its workers has.
 *
 * A table that was replaced is emptied when the last request that goes by it has ended: the table is read
 * again on each SIGHUP, also when that was for a certificate. Its hash is kept, for a call may have it. */
#include "gateway/worker.h"

#include <stdio.h>
#include <stdlib.h>

#include "gateway/fenced_call.h"
#include "gateway/forward/forward.h"
#include "shared/text/memory.h"

/* == the process */

/* The table that --routes names; *why is "" when there is to be none. */
static struct route_table *table_load(const struct service *service, char why[ROUTE_WHY_SIZE])
{
    struct route_table *table;

    why[0] = '\0';
    if (service->settings.routes == NULL)
        return NULL;
    table = route_table_load(service->settings.routes, service->settings.allow_unsafe_redis, why);
    if (table != NULL)
        table->users = 1; /* as long as it is in force */
    return table;
}

/* The last one empties it. */
static void table_drop(struct gateway *gateway, struct route_table *table)
{
    unsigned users;

    pthread_mutex_lock(&gateway->table_mutex);
    users = --table->users;
    pthread_mutex_unlock(&gateway->table_mutex);
    if (users == 0)
        route_table_empty(table);
}

int gateway_open(struct service *service)
{
    struct gateway *gateway = must_have(calloc(1, sizeof(*gateway)));
    char why[ROUTE_WHY_SIZE];
    struct route_table *table;

    service->more = gateway;
    gateway->service = service;
    intents_init(&gateway->intents);
    pthread_mutex_init(&gateway->probes.mutex, NULL);
    pthread_mutex_init(&gateway->doubt_mutex, NULL);
    pthread_mutex_init(&gateway->table_mutex, NULL);
    table = table_load(service, why);
    atomic_store(&gateway->table, table);
    if (table == NULL && why[0] != '\0')
        return service_fail(service, "%s", why);
    return member_daemon_open(service);
}

void gateway_close(struct service *service)
{
    struct gateway *gateway = service->more;

    member_daemon_close(service);
    if (gateway == NULL)
        return;
    for (struct route_table *one = gateway->retired, *next; one != NULL; one = next) {
        next = one->next;
        route_table_free(one);
    }
    route_table_free(atomic_load(&gateway->table));
    intents_done(&gateway->intents);
    pthread_mutex_destroy(&gateway->probes.mutex);
    pthread_mutex_destroy(&gateway->doubt_mutex);
    pthread_mutex_destroy(&gateway->table_mutex);
    free(gateway);
}

bool gateway_leave(struct service *service)
{
    struct gateway *gateway = gateway_of(service);

    if (intents_count(&gateway->intents) > 0)
        return true;
    if (!member_daemon_leave(service))
        return false;
    if (gateway->has_recovered)
        incarnations_end(member_self(service).state_dir, gateway->incarnation);
    return true;
}

struct gateway *gateway_of(const struct service *service)
{
    return service->more;
}

void gateway_reload(struct service *service)
{
    struct gateway *gateway = gateway_of(service);
    char why[ROUTE_WHY_SIZE];
    struct route_table *table = table_load(service, why);
    struct route_table *before;

    atomic_store(&gateway->routes_lacking, why[0] != '\0');
    if (table == NULL) {
        struct log_field fields[] = {LOG_T("why", bytes_of(why)), LOG_END};

        if (why[0] != '\0')
            log_event(&service->log, LOG_ERROR, "routes-not-reloaded", fields);
        return;
    }
    pthread_mutex_lock(&gateway->table_mutex);
    before = atomic_exchange(&gateway->table, table);
    atomic_fetch_add(&gateway->generation, 1);
    pthread_mutex_unlock(&gateway->table_mutex);
    if (before != NULL) {
        before->next = gateway->retired;
        gateway->retired = before;
        table_drop(gateway, before);
    }
    struct log_field fields[] = {LOG_T("hash", bytes_of(table->hash)), LOG_I("routes", (int64_t)table->count),
                                 LOG_END};
    log_event(&service->log, LOG_INFO, "routes-reloaded", fields);
}

/* == a worker */

/* TCP_USER_TIMEOUT of upstream sockets: below every grace (1,000 ms is the shortest that a route may have).
 */
enum { USER_TIMEOUT_MS = 30000, GRACE_PARTS = 2 };

struct gateway_worker *gateway_worker_from(const struct worker *worker)
{
    return container_of(worker->extra, struct gateway_worker, record);
}

struct gateway_worker *gateway_worker_of(const struct http_request *req)
{
    return gateway_worker_from(worker_of(req));
}

static unsigned user_timeout_ms(const struct route_table *table)
{
    uint64_t least = USER_TIMEOUT_MS;

    for (unsigned i = 0; i < table->count; i++) {
        const struct route *route = &table->routes[i];

        if (route->unknown == ROUTE_GRACE && route->grace_ms / GRACE_PARTS < least)
            least = route->grace_ms / GRACE_PARTS;
    }
    return (unsigned)least;
}

struct table_use *table_use_take(struct gateway_worker *own)
{
    own->use->refs++;
    return own->use;
}

/* Pools may still be telling that an exchange has ended: they go at the next tick. */
void table_use_drop(struct gateway_worker *own, struct table_use *use)
{
    if (--use->refs == 0) {
        use->next = own->unused;
        own->unused = use;
    }
}

static void unused_free(struct gateway_worker *own)
{
    struct table_use **at = &own->unused;

    while (*at != NULL) {
        struct table_use *use = *at;
        unsigned open = 0;

        for (unsigned i = 0; i < use->table->upstream_count; i++)
            open += upstream_pool_open_calls(use->pools[i]);
        if (open > 0) {
            at = &use->next;
            continue;
        }
        *at = use->next;
        for (unsigned i = 0; i < use->table->upstream_count; i++)
            upstream_pool_free(use->pools[i]);
        table_drop(own->gateway, use->table);
        free(use);
    }
}

static void table_leave(struct gateway_worker *own)
{
    struct table_use *use = own->use;

    if (use != NULL) {
        own->use = NULL;
        for (unsigned i = 0; i < use->table->upstream_count; i++)
            upstream_pool_drain(use->pools[i]);
        table_use_drop(own, use);
    }
}

struct table_use *table_use_follow(struct gateway_worker *own)
{
    struct gateway *gateway = own->gateway;
    struct route_table *table = atomic_load(&gateway->table);

    if (atomic_load(&gateway->generation) == own->generation && (own->use != NULL || table == NULL))
        return own->use;
    pthread_mutex_lock(&gateway->table_mutex);
    own->generation = atomic_load(&gateway->generation);
    table = atomic_load(&gateway->table);
    if (table != NULL)
        table->users++;
    pthread_mutex_unlock(&gateway->table_mutex);
    table_leave(own);
    if (table == NULL)
        return NULL;
    own->use = must_have(
        calloc(1, sizeof(*own->use) + table->upstream_count * sizeof(struct upstream_pool *)));
    own->use->table = table;
    own->use->refs = 1;
    for (unsigned i = 0; i < table->upstream_count; i++)
        own->use->pools[i] = upstream_pool_new(own->worker->loop, table->upstreams[i],
                                               user_timeout_ms(table));
    return own->use;
}

static void worker_closed(struct intent_closer *closer, struct bytes lease)
{
    forward_wake_lease(container_of(closer, struct gateway_worker, closer), lease);
}

void gateway_worker_open(struct worker *worker)
{
    struct gateway_worker *own = must_have(calloc(1, sizeof(*own)));

    own->worker = worker;
    member_worker_begin(worker, &own->record);
    own->gateway = gateway_of(worker->service);
    if (worker->index == 0) {
        own->gateway->id = member_self(worker->service).id;
        own->gateway->incarnation = member_self(worker->service).incarnation;
        own->recovery = recovery_new(own);
        own->unreported = unreported_new(own);
    }
    own->clock = alarm_clock_new(worker->loop);
    intent_closer_init(&own->closer, worker->loop, &own->record.line, &own->gateway->intents);
    own->closer.closed = worker_closed;
    table_use_follow(own);
}

void gateway_worker_close(struct worker *worker)
{
    struct gateway_worker *own = gateway_worker_from(worker);

    intent_closer_stop(&own->closer);
    table_leave(own);
    member_worker_close(worker);
}

/* The store has ended every call of them. */
void gateway_worker_free(struct worker *worker)
{
    struct gateway_worker *own = gateway_worker_from(worker);

    unused_free(own);
    alarm_clock_free(own->clock);
    forward_worker_free(own);
    free(own->recovery);
    free(own->unreported);
    free(own);
}

/* What the fence has refused in one step with the store. */
void gateway_worker_bars(const struct service *service, struct member_bars *bars)
{
    static const enum problem refusals[] = {PROBLEM_STALE_TOKEN, PROBLEM_LEASE_EXPIRED,
                                            PROBLEM_UNISSUED_TOKEN, PROBLEM_WRONG_MODE};

    *bars = (struct member_bars){0};
    for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        bars->refused += metric_total(service->metrics, (unsigned)METRIC_PROBLEM_FIRST + refusals[i] - 1);
}

void gateway_worker_tick(struct worker *worker)
{
    struct gateway_worker *own = gateway_worker_from(worker);

    member_worker_tick(worker);
    table_use_follow(own);
    unused_free(own);
    given_up_tick(own);
    if (own->recovery != NULL) {
        recovery_tick(own->recovery);
        unreported_tick(own->unreported);
        metric_set(worker->metrics, (unsigned)SERVICE_METRICS + COUNT_IN_DOUBT, own->gateway->in_doubt.count);
    }
    metric_set(worker->metrics, (unsigned)SERVICE_METRICS + COUNT_FORWARDING, own->forwards);
    metric_set(worker->metrics, (unsigned)SERVICE_METRICS + COUNT_INTENTS,
               worker->index == 0 ? intents_count(&own->gateway->intents) : 0);
}

bool gateway_worker_drain(struct worker *worker)
{
    struct gateway_worker *own = gateway_worker_from(worker);

    forward_drain(own);
    return own->forwards == 0 && own->stickies.count == 0 && intent_closer_is_idle(&own->closer);
}
