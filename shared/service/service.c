/* service.c - the epoch of a daemon: settings, sockets, store, threads, signals, the end. */
#include "shared/service/service.h"

#include "shared/text/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { START_LOOK_MS = 10, STOP_WITHIN_MS = 4500 };

/* What only the main thread has. */
struct start {
    struct service *service;
    struct loop_signal term, interrupt, hangup;
    struct loop_timer deadline;
};

static void process_prepare(void)
{
    struct rlimit files;

    signal(SIGPIPE, SIG_IGN); /* a client or a store that has gone is told by the call that writes */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* One socket for each thread; the kernel shares the connections out (SO_REUSEPORT). Those of the service
 * manager take the place of --listen. */
static int service_listen(struct service *service)
{
    const char *why = NULL;
    unsigned threads = service->settings.threads;
    char address[128];

    snprintf(address, sizeof(address), "%s", service->settings.listen);
    service->workers = calloc(threads, sizeof(*service->workers));
    if (service->workers == NULL) {
        return SERVICE_BUG;
    }
    int given = activation_take(service);
    if (given != ACTIVATION_NONE) {
        return given;
    }
    for (unsigned i = 0; i < threads; i++) {
        int fd = i == 0 && !http_address_is_free(address, &why)
                     ? -1
                     : http_listen(address, &service->listen_port, &why);

        if (fd < 0) {
            fprintf(stderr, "%s: cannot listen on %s: %s\n", service->plan->name, address, why);
            return SERVICE_CONFIG;
        }
        service->workers[i].listen_fd = fd;
        char *port = strrchr(address, ':'); /* port 0: the others get the one that the first was given */
        snprintf(port, (size_t)(address + sizeof(address) - port), ":%u", service->listen_port);
    }
    return -1;
}

/* The rows of every daemon, then the plan's own; metrics_new() borrows the table. */
static void service_metrics_open(struct service *service)
{
    unsigned own = service->plan->metric_count;
    struct metric *all = must_have(calloc((size_t)SERVICE_METRICS + own, sizeof(*all)));

    memcpy(all, service_metrics, sizeof(service_metrics));
    memcpy(all + SERVICE_METRICS, service->plan->metrics, own * sizeof(*all));
    service->metric_table = all;
    service->metrics = metrics_new(all, (unsigned)SERVICE_METRICS + own, service->settings.threads);
}

static bool service_is_settled(const struct service *service)
{
    const struct store *first = service->workers[0].store;

    if (store_misled(first) != NULL) {
        return true;
    }
    for (unsigned i = 0; i < service->settings.threads; i++) {
        if (!store_checked(service->workers[i].store)) {
            return false;
        }
    }
    if (store_unsafe(first) != NULL) {
        return !store_unsafe_may_pass(first);
    }
    return service->plan->settled == NULL || service->plan->settled(service);
}

/* Waits until every worker's link has read the settings of the store once and it is known how things stand
 * with it, or until it is clear that it cannot be reached now: then the service starts all the same, answers
 * 503, and looks as soon as the store is there. */
static int service_look_at_store(struct service *service)
{
    unsigned threads = service->settings.threads;
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    const struct store *first;
    const char *detail = NULL;

    service_metrics_open(service);
    for (unsigned i = 0; i < threads; i++) {
        worker_open(&service->workers[i], service, i);
    }
    while (!service_is_settled(service) && loop_now_ms() < deadline_ms) {
        for (unsigned i = 0; i < threads; i++) {
            loop_turn(service->workers[i].loop, START_LOOK_MS / threads);
        }
    }
    first = service->workers[0].store;
    if (store_unsafe(first) != NULL) {
        fprintf(stderr, "%s: this Redis can lose locks: %s (--allow-unsafe-redis accepts that)\n",
                service->plan->name, store_unsafe(first));
        return SERVICE_CONFIG;
    }
    const char *check = store_not_ready(first, &detail);

    if (store_misled(first) != NULL) {
        fprintf(stderr, "%s: %s %s\n", service->plan->name, detail, store_misled(first));
        return SERVICE_CONFIG;
    }
    if (check != NULL) {
        struct log_field fields[] = {LOG_T("detail", bytes_of(detail)), LOG_END};
        log_event(&service->log, LOG_WARNING, "store-not-ready", fields);
    }
    return -1;
}

static void service_say_ready(struct service *service)
{
    const char *given = service->listen_given;
    const char *listen = given[0] != '\0' ? given : service->settings.listen;
    int host = (int)(strrchr(listen, ':') - listen);

    fprintf(stderr, "listening on http://%.*s:%u\n", host, listen, service->listen_port);
    service->watchdog = notify_watchdog_read();
    notify_send("READY=1");
}

/* -- serving */

static void *worker_thread(void *argument)
{
    worker_serve(argument);
    return NULL;
}

static void service_drain(struct start *start)
{
    if (!atomic_exchange(&start->service->draining, true)) {
        log_event(&start->service->log, LOG_INFO, "draining", NULL);
        notify_send("STOPPING=1");
        loop_timer_arm(&start->deadline, STOP_WITHIN_MS, 0);
    }
}

static void term_caught(struct loop_signal *signal)
{
    service_drain(container_of(signal, struct start, term));
}

static void interrupt_caught(struct loop_signal *signal)
{
    service_drain(container_of(signal, struct start, interrupt));
}

static void hangup_caught(struct loop_signal *signal)
{
    struct start *start = container_of(signal, struct start, hangup);

    notify_reloading();
    service_reload_keys(start->service);
    if (start->service->plan->reload != NULL) {
        start->service->plan->reload(start->service);
    }
    notify_send("READY=1");
}

/* The requests still open would have been answered by now if they ever were: go, in time, without tidying
 * up. */
static void stop_deadline(struct loop_timer *timer)
{
    struct start *start = container_of(timer, struct start, deadline);

    for (unsigned i = 0; i < start->service->settings.threads; i++) {
        loop_stop(start->service->workers[i].loop);
    }
}

/* Who asks a second time, in the last moments, shall not make a failure of an orderly end: libuv gives each
 * signal its default action back. */
static void signals_heard_enough(void)
{
    sigset_t heard;

    sigemptyset(&heard);
    sigaddset(&heard, SIGTERM);
    sigaddset(&heard, SIGINT);
    sigaddset(&heard, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &heard, NULL);
}

static void service_serve(struct service *service)
{
    unsigned threads = service->settings.threads;
    struct loop *loop = service->workers[0].loop;
    pthread_t thread[SERVICE_THREADS_MAX];
    struct start start = {.service = service};

    loop_signal_init(loop, &start.term, SIGTERM, term_caught);
    loop_signal_init(loop, &start.interrupt, SIGINT, interrupt_caught);
    loop_signal_init(loop, &start.hangup, SIGHUP, hangup_caught);
    loop_timer_init(loop, &start.deadline, stop_deadline);
    service_say_ready(service); /* whoever hears it may send a signal at once */
    for (unsigned i = 1; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, worker_thread, &service->workers[i]) != 0) {
            abort();
        }
    }
    worker_serve(&service->workers[0]);
    for (unsigned i = 1; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    loop_timer_done(&start.deadline);
    signals_heard_enough();
    loop_signal_done(&start.term);
    loop_signal_done(&start.interrupt);
    loop_signal_done(&start.hangup);
}

static void service_end(struct service *service)
{
    bool all_answered = true;

    for (unsigned i = 0; service->workers != NULL && i < service->settings.threads; i++) {
        struct worker *worker = &service->workers[i];
        all_answered = all_answered && (worker->http == NULL || http_server_open_requests(worker->http) == 0);
    }
    if (!all_answered) {
        return; /* the end of the process closes what is left */
    }
    for (unsigned i = 0; service->workers != NULL && i < service->settings.threads; i++) {
        if (service->workers[i].loop != NULL) {
            worker_close(&service->workers[i]);
        }
    }
    if (service->plan->close != NULL) {
        service->plan->close(service);
    }
    if (service->metrics != NULL) {
        metrics_free(service->metrics);
    }
    token_keys_free(atomic_load(&service->keys));
    token_keys_free(service->keys_retired);
    free(service->metric_table);
    options_texts_free(service->texts);
    free(service->password);
    http_peers_free(service->peers);
    free(service->workers);
    free(service);
}

int service_main(const struct service_plan *plan, int argc, char **argv)
{
    struct service *service = calloc(1, sizeof(*service));
    int status;

    if (service == NULL) {
        return SERVICE_BUG;
    }
    service->plan = plan;
    process_prepare();
    status = service_read_settings(service, argc, argv);
    service->log = (struct log){
        .program = plan->name,
        .level = (enum log_level)service->settings.log_level,
        .format = service->settings.log_format >= 0 ? (enum log_format)service->settings.log_format
                  : isatty(STDERR_FILENO)           ? LOG_TEXT
                                                    : LOG_JSON,
        .fd = STDERR_FILENO,
    };
    if (status < 0 && plan->run_once != NULL && service->settings.init_store) {
        status = plan->run_once(service);
    }
    if (status < 0 && plan->open != NULL) {
        status = plan->open(service);
    }
    if (status < 0) {
        status = service_listen(service);
    }
    if (status < 0) {
        status = service_look_at_store(service);
    }
    if (status < 0) {
        service_serve(service);
        status = SERVICE_OK;
    }
    service_end(service);
    return status;
}
