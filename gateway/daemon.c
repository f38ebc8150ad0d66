/* daemon.c - what pawl-gateway has once for the whole process: the route table in force, and the open
 * intents.
 *
 * A table that was replaced is kept until the end of the process: a request may go by it for a long time, and
 * an operator does not change routes often. */
#include <stdio.h>
#include <stdlib.h>

#include "gateway/worker.h"
#include "shared/text/memory.h"

/* The table that --routes names; *why is "" when there is to be none. */
static struct route_table *table_load(const struct service *service, char why[ROUTE_WHY_SIZE])
{
    why[0] = '\0';
    if (service->settings.routes == NULL) {
        return NULL;
    }
    return route_table_load(service->settings.routes, service->settings.allow_unsafe_redis, why);
}

int gateway_open(struct service *service)
{
    struct gateway *gateway = must_have(calloc(1, sizeof(*gateway)));
    char why[ROUTE_WHY_SIZE];
    struct route_table *table;

    service->more = gateway;
    gateway->service = service;
    intents_init(&gateway->intents);
    pthread_mutex_init(&gateway->in_doubt.mutex, NULL);
    table = table_load(service, why);
    atomic_store(&gateway->table, table);
    if (table == NULL && why[0] != '\0') {
        fprintf(stderr, "%s: %s\n", service->plan->name, why);
        return SERVICE_CONFIG;
    }
    return record_daemon_open(service);
}

void gateway_close(struct service *service)
{
    struct gateway *gateway = service->more;

    record_daemon_close(service);
    if (gateway == NULL) {
        return;
    }
    for (struct retired_table *one = gateway->retired, *next; one != NULL; one = next) {
        next = one->next;
        route_table_free(one->table);
        free(one);
    }
    route_table_free(atomic_load(&gateway->table));
    intents_done(&gateway->intents);
    pthread_mutex_destroy(&gateway->in_doubt.mutex);
    free(gateway);
}

bool gateway_leave(struct service *service)
{
    return intents_count(&gateway_of(service)->intents) > 0 || record_daemon_leave(service);
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
    struct retired_table *before;

    if (table == NULL) {
        struct log_field fields[] = {LOG_T("why", bytes_of(why)), LOG_END};

        if (why[0] != '\0') {
            log_event(&service->log, LOG_ERROR, "routes-not-reloaded", fields);
        }
        return;
    }
    before = must_have(malloc(sizeof(*before)));
    before->table = atomic_exchange(&gateway->table, table);
    before->next = gateway->retired;
    gateway->retired = before;
    atomic_fetch_add(&gateway->generation, 1);
    struct log_field fields[] = {LOG_T("hash", bytes_of(table->hash)), LOG_I("routes", (int64_t)table->count),
                                 LOG_END};
    log_event(&service->log, LOG_INFO, "routes-reloaded", fields);
}
