/* worker.c - one thread of a daemon: its loop, its listener, its connection to the store. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/service/service.h"
#include "shared/text/memory.h"

/* FORWARDED_HEAD_MAX: of an answer that somebody else has given; 3 KiB more for each connection,
 * cleared behind each request. */
enum { TICK_MS = 100, UNREAD_MS = 3500, LOGGED_PER_SECOND_MAX = 10, FORWARDED_HEAD_MAX = 4096 };

/* The owner is const to the HTTP layer only. */
static struct worker *worker_from(const struct http_owner *owner)
{
    return container_of((char *)(uintptr_t)owner, struct worker, owner);
}

struct worker *worker_of(const struct http_request *req)
{
    return worker_from(http_owner(req));
}

void worker_count(struct worker *worker, unsigned row)
{
    metric_add(worker->metrics, (unsigned)SERVICE_METRICS + row, 1);
}

struct store_options service_store_options(const struct service *service)
{
    return (struct store_options){
        .url = service->settings.redis,
        .files = {service->settings.redis_ca, service->settings.redis_cert, service->settings.redis_key,
                  service->settings.redis_password_file, service->settings.sentinel_password_file},
        .finder = service->workers != NULL && service->workers[0].store != NULL
                      ? store_finder(service->workers[0].store)
                      : NULL,
        .password = service->password,
        .timeout_ms = (unsigned)service->settings.store_timeout_ms,
        .allow_unsafe = service->settings.allow_unsafe_redis || service->plan->quorum_of_stores,
        .library = service->plan->library,
    };
}

unsigned service_stores_open(const struct service *service, struct loop *loop,
                             const struct store_owner *owner, struct store *stores[STORE_LIST_MAX])
{
    struct store_options options = service_store_options(service);
    struct bytes list = bytes_of(service->settings.redis);
    char url[STORE_URL_SIZE];
    unsigned count = 0;

    options.owner = owner;
    options.url = url;
    while (count < STORE_LIST_MAX && store_url_take(&list, url))
        stores[count++] = store_open(loop, &options);
    explicit_bzero(url, sizeof(url));
    return count;
}

struct store *service_store_open(const struct service *service, struct loop *loop)
{
    struct store_options options = service_store_options(service);

    return store_open(loop, &options);
}

static void worker_take_keys(struct worker *worker)
{
    unsigned generation = atomic_load(&worker->service->keys_generation);
    bool is_new = generation != worker->judged_by;

    worker->keys = atomic_load(&worker->service->keys);
    worker->access = atomic_load(&worker->service->access);
    worker->judged_by = generation;
    atomic_store(&worker->keys_seen, generation);
    if (is_new && worker->service->plan->judge != NULL)
        worker->service->plan->judge(worker);
}

/* Once for the process: all its workers go to the same node. */
static void worker_tell_failovers(struct worker *worker)
{
    struct store_election now;

    if (!store_election(worker->store, &now) || now.failovers == worker->failovers)
        return;
    metric_add(worker->metrics, METRIC_STORE_FAILOVERS, now.failovers - worker->failovers);
    worker->failovers = now.failovers;
    struct log_field fields[] = {LOG_T("node", bytes_of(now.host)), LOG_I("port", now.port), LOG_END};
    log_event(&worker->service->log, LOG_WARNING, "store-failover-seen", fields);
}

static void worker_tell_store(struct worker *worker)
{
    struct store_counts now = {0};

    for (unsigned i = 0; i < worker->store_count; i++) {
        struct store_counts one = store_counts(worker->stores[i]);

        now.done += one.done;
        now.not_sent += one.not_sent;
        now.unknown += one.unknown;
        now.reconnects += one.reconnects;
        now.in_flight += one.in_flight;
    }
    metric_add(worker->metrics, METRIC_STORE_DONE, now.done - worker->counted.done);
    metric_add(worker->metrics, METRIC_STORE_NOT_SENT, now.not_sent - worker->counted.not_sent);
    metric_add(worker->metrics, METRIC_STORE_UNKNOWN, now.unknown - worker->counted.unknown);
    metric_add(worker->metrics, METRIC_STORE_RECONNECTS, now.reconnects - worker->counted.reconnects);
    metric_set(worker->metrics, METRIC_STORE_IN_FLIGHT, now.in_flight);
    metric_set(worker->metrics, METRIC_CONNECTIONS, http_server_connections(worker->http));
    if (worker->index == 0) { /* one store for all of them */
        struct service_stand stand = service_stand(worker);
        unsigned seen, kept;

        worker_tell_failovers(worker);
        metric_set(worker->metrics, METRIC_READY, service_is_ready(worker));
        store_nodes(worker->store, &seen, &kept);
        metric_set(worker->metrics, METRIC_STORE_KEPT, kept);
        metric_set(worker->metrics, METRIC_STORE_MEMORY_USED, stand.used);
        metric_set(worker->metrics, METRIC_STORE_MEMORY_ALLOWED, stand.allowed);
    }
    worker->counted = now;
}

/* An answer that its client does not read is waited for only so long that time is left to leave the store:
 * its request has nothing more to do there. */
static bool worker_is_open(struct worker *worker)
{
    uint64_t now_ms = loop_now_ms();

    if (worker->unread_until_ms == 0)
        worker->unread_until_ms = now_ms + UNREAD_MS;
    return now_ms < worker->unread_until_ms ? http_server_open_requests(worker->http) > 0
                                            : http_server_running_requests(worker->http) > 0;
}

/* The first worker goes last, for it is the one that leaves the store. */
static void worker_drain(struct worker *worker)
{
    struct service *service = worker->service;
    bool (*drain)(struct worker *) = service->plan->drain;
    bool is_open;

    http_server_drain(worker->http); /* again is nothing new */
    is_open = worker_is_open(worker);
    if ((drain != NULL && !drain(worker)) || is_open)
        return;
    if (worker->index != 0) {
        atomic_fetch_add(&service->idle_workers, 1);
        loop_stop(worker->loop);
    } else if (atomic_load(&service->idle_workers) + 1 >= service->settings.threads &&
               (service->plan->leave == NULL || service->plan->leave(service))) {
        loop_stop(worker->loop);
    }
}

/* Said only when every thread has turned since it was said last: one that hangs is not covered by the others.
 * The end has a deadline of its own, and threads that have ended turn no more. */
static void worker_tell_watchdog(struct worker *worker)
{
    struct service *service = worker->service;

    atomic_store(&worker->alive, true);
    if (worker->index != 0 || !notify_watchdog_due(&service->watchdog))
        return;
    for (unsigned i = 0; i < service->settings.threads; i++)
        if (!atomic_load(&service->workers[i].alive) && !atomic_load(&service->draining))
            return;
    for (unsigned i = 0; i < service->settings.threads; i++)
        atomic_store(&service->workers[i].alive, false);
    notify_watchdog_tell(&service->watchdog);
}

static void worker_tick(struct loop_timer *timer)
{
    struct worker *worker = container_of(timer, struct worker, tick);

    worker_take_keys(worker);
    worker_tell_store(worker);
    worker_tell_watchdog(worker);
    audit_tick(worker, false);
    if (worker->index == 0 && worker->service->reload_wanted && service_reload(worker->service))
        notify_send("READY=1");
    if (worker->service->plan->worker_tick != NULL)
        worker->service->plan->worker_tick(worker);
    if (atomic_load(&worker->service->draining))
        worker_drain(worker);
}

static bool keys_seen_by_all(const struct service *service)
{
    unsigned generation = atomic_load(&service->keys_generation);

    for (unsigned i = 0; i < service->settings.threads; i++)
        if (atomic_load(&service->workers[i].keys_seen) != generation)
            return false;
    return true;
}

static void reload_keys(struct service *service)
{
    char why[256];
    struct token_keys *keys = token_keys_load(service->settings.keys, why, sizeof(why));

    if (keys == NULL) {
        struct log_field fields[] = {LOG_T("why", bytes_of(why)), LOG_END};
        log_event(&service->log, LOG_ERROR, "keys-not-reloaded", fields);
        return;
    }
    token_keys_free(service->keys_retired);
    service->keys_retired = atomic_exchange(&service->keys, keys);
    log_event(&service->log, LOG_INFO, "keys-reloaded", NULL);
}

static void reload_access(struct service *service)
{
    char why[ACCESS_WHY_SIZE];
    struct access *access;

    if (service->settings.access == NULL)
        return;
    access = service_access_load(service, why);
    free(service->access_wrong_retired);
    service->access_wrong_retired = atomic_exchange(&service->access_wrong,
                                                    access == NULL ? must_have(strdup(why)) : NULL);
    if (access == NULL) {
        struct log_field fields[] = {LOG_T("file", bytes_of(service->settings.access)),
                                     LOG_T("why", bytes_of(why)), LOG_END};
        log_event(&service->log, LOG_ERROR, "access-refused", fields);
        return;
    }
    access_free(service->access_retired);
    service->access_retired = atomic_exchange(&service->access, access);
    struct log_field fields[] = {LOG_T("hash", bytes_of(access_hash(access))), LOG_END};
    log_event(&service->log, LOG_INFO, "access-loaded", fields);
}

/* What was in force before goes when every worker has been seen with what is now: until then a verification
 * may be using it. If that is not yet so, the next tick tries again. */
bool service_reload(struct service *service)
{
    service->reload_wanted = !keys_seen_by_all(service);
    if (service->reload_wanted)
        return false;
    reload_keys(service);
    reload_access(service);
    atomic_fetch_add(&service->keys_generation, 1);
    return true;
}

/* A store that is gone must not fill the disk with lines: at most so many of the same second. */
static bool worker_may_log(struct worker *worker)
{
    uint64_t second = loop_now_ms() / 1000;

    if (second != worker->logged_second) {
        worker->logged_second = second;
        worker->logged = 0;
    }
    return worker->logged++ < LOGGED_PER_SECOND_MAX;
}

static void worker_count_request(struct worker *worker, const struct http_route *route, unsigned status,
                                 uint64_t took_us)
{
    const struct service *service = worker->service;
    unsigned operation = route != NULL ? (unsigned)(route - service->routes) : service->operations - 1;
    unsigned kind = status >= 200 && status < 500 ? status / 100 - 2 : REQUEST_KINDS - 1;

    metric_add(worker->metrics, service->metric_requests + REQUEST_KINDS * operation + kind, 1);
    metric_observe_us(worker->metrics, service->metric_times + operation, took_us);
}

static void worker_store_answered(const struct store_owner *owner, uint64_t took_us)
{
    const struct worker *worker = container_of((char *)(uintptr_t)owner, struct worker, store_owner);

    metric_observe_us(worker->metrics, METRIC_STORE_TIME, took_us);
}

static void worker_store_kept(const struct store_owner *owner, uint64_t waited_us)
{
    const struct worker *worker = container_of((char *)(uintptr_t)owner, struct worker, store_owner);

    metric_observe_us(worker->metrics, METRIC_STORE_KEEP_TIME, waited_us);
}

static void worker_ended(const struct http_owner *owner, const struct http_request *req, unsigned status,
                         uint64_t took_us)
{
    struct worker *worker = worker_from(owner);
    const struct log *log = &worker->service->log;
    const struct http_ending ending = http_ending(req);
    enum problem problem = ending.problem;
    enum log_level level = status >= 500 ? LOG_WARNING : LOG_DEBUG;
    char peer[HTTP_ADDRESS_SIZE], id[HTTP_ID_SIZE];

    worker_count_request(worker, http_route(req), status, took_us);
    audit_request(worker, req, &ending);
    if (problem != PROBLEM_NONE)
        metric_add(worker->metrics, (unsigned)METRIC_PROBLEM_FIRST + (unsigned)problem - 1, 1);
    if (!log_wants(log, level) || (level == LOG_WARNING && !worker_may_log(worker)))
        return;
    struct log_field fields[] = {
        LOG_T("instance", bytes_of(http_request_id(req, id))),
        LOG_T("peer", bytes_of(http_client_address(req, peer))),
        LOG_T("method", http_method_text(req)),
        LOG_T("path", http_path(req)),
        LOG_T("lease", ending.lease),
        LOG_I("status", (int64_t)status),
        LOG_T("code", bytes_of(problem != PROBLEM_NONE ? problem_info(problem)->code : "")),
        LOG_T("why", bytes_of(ending.why)),
        LOG_I("took_us", (int64_t)took_us),
        LOG_END,
    };
    log_event(log, level, "request", fields);
}

/* The counter has all of them, the log the first of each second. */
static void worker_closed(const struct http_owner *owner, enum http_limit limit, const char *address)
{
    static const char *const limits[] = {
        [HTTP_LIMIT_ALL] = "--max-connections", [HTTP_LIMIT_ADDRESS] = "--max-connections-per-address"};
    struct worker *worker = worker_from(owner);
    uint64_t second = loop_now_ms() / 1000;
    struct log_field fields[] = {LOG_T("limit", bytes_of(limits[limit])), LOG_T("peer", bytes_of(address)),
                                 LOG_END};

    metric_add(worker->metrics, (unsigned)METRIC_CLOSED_FIRST + (unsigned)limit, 1);
    if (second != worker->closed_second) {
        worker->closed_second = second;
        log_event(&worker->service->log, LOG_WARNING, "connection-closed", fields);
    }
}

static void worker_handshake_failed(const struct http_owner *owner, enum tls_failure failure, const char *why,
                                    const char *address)
{
    static const char *const reasons[TLS_FAILURES] = {[TLS_FAILURE_PROTOCOL] = "protocol",
                                                      [TLS_FAILURE_CERTIFICATE] = "certificate",
                                                      [TLS_FAILURE_TIMEOUT] = "timeout",
                                                      [TLS_FAILURE_CLOSED] = "closed",
                                                      [TLS_FAILURE_OTHER] = "other"};
    struct worker *worker = worker_from(owner);

    metric_add(worker->metrics, (unsigned)METRIC_HANDSHAKE_FIRST + (unsigned)failure, 1);
    audit_handshake(worker, reasons[failure], why, address);
}

/* -- its begin and end */

void worker_open(struct worker *worker, struct service *service, unsigned index)
{
    worker->owner = (struct http_owner){worker_ended, worker_closed, worker_handshake_failed};
    worker->service = service;
    worker->index = index;
    worker->loop = loop_new();
    worker->audit = audit_new();
    worker->metrics = metrics_block(service->metrics, index);
    worker->keys = atomic_load(&service->keys);
    worker->access = atomic_load(&service->access);
    worker->memo = worker->access != NULL ? access_memo_new() : NULL;
    worker->store_owner.answered = worker_store_answered;
    worker->store_owner.kept = worker_store_kept;
    worker->store_count = service_stores_open(service, worker->loop, &worker->store_owner, worker->stores);
    worker->store = worker->stores[0];
    if (service->plan->worker_open != NULL)
        service->plan->worker_open(worker);
}

/* The listening socket is there, the store has been looked at: serve until the loop is stopped. */
void worker_serve(struct worker *worker)
{
    const struct service_settings *settings = &worker->service->settings;
    const char *given = worker->service->listen_given;
    struct http_options options = {
        .listen_fd = worker->listen_fd,
        .unix_fd = worker->unix_fd,
        .own_fd = worker->ui_fd,
        .tls = worker->service->tls,
        .routes = worker->service->routes,
        .owner = &worker->owner,
        .refuses = worker->service->plan->refuses,
        .judged_by = settings->access != NULL ? &worker->judged_by : NULL,
        .enter = settings->access != NULL ? access_enter : NULL,
        .stands = settings->access != NULL ? access_stands : NULL,
        .permits = settings->access != NULL ? access_permits : NULL,
        .on_loopback = http_address_is_loopback(given[0] != '\0' ? given : settings->listen),
        .own_on_loopback = settings->ui_listen != NULL && http_address_is_loopback(settings->ui_listen),
        .shares_origin = settings->routes != NULL,
        .allow_hosts = settings->allow_hosts,
        .allow_origins = settings->allow_origins,
        .connections_max = settings->connections_max / settings->threads + 1,
        .connections_reserved = settings->connections_max / 20 / settings->threads,
        .peers = worker->service->peers,
        .body_max_default = settings->body_max,
        .memory = &worker->service->body_memory,
        .head_max = (unsigned)settings->head_max,
        .header_timeout_ms = (unsigned)settings->header_timeout_ms,
        .body_timeout_ms = (unsigned)settings->body_timeout_ms,
        .reply_head_max = settings->routes != NULL ? FORWARDED_HEAD_MAX : 0,
        .suspend_always = settings->suspend_always,
    };

    worker->http = http_server_new(worker->loop, &options);
    loop_timer_init(worker->loop, &worker->tick, worker_tick);
    loop_timer_arm(&worker->tick, TICK_MS, TICK_MS);
    loop_run(worker->loop);
    audit_tick(worker, true);
    loop_timer_done(&worker->tick);
}

void worker_close(struct worker *worker)
{
    const struct service_plan *plan = worker->service->plan;

    if (plan->worker_close != NULL)
        plan->worker_close(worker);
    for (unsigned i = 0; i < worker->store_count; i++)
        store_close(worker->stores[i]);
    if (plan->worker_free != NULL)
        plan->worker_free(worker); /* a call that the store has just ended may have been in it */
    if (worker->http != NULL)
        http_server_free(worker->http);
    loop_turn(worker->loop, 0); /* takes the names in that are found */
    if (!loop_is_looking_up(worker->loop)) {
        loop_free(worker->loop);
        worker->loop = NULL;
    }
    free(worker->audit);
    access_memo_free(worker->memo);
}
