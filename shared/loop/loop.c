/* loop.c - the event loop of one thread, on libuv. */
#include "shared/loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "shared/text/bytes.h"
#include "shared/text/memory.h"

#define WAIT_UNCAPPED UINT_MAX

struct loop {
    uv_loop_t uv;
    uv_prepare_t turn_end; /* runs just before libuv waits: the end of our turn */
    uv_timer_t wait_cap;
    unsigned wait_cap_ms; /* for the wait at the end of this turn; WAIT_UNCAPPED: none */
    uv_async_t stop;
    STAILQ_HEAD(, loop_hook) hooks;
    unsigned jobs;    /* whose done has not been called */
    unsigned lookups; /* under way, also those that nobody wants any more */
    bool again, stopping;
};

/* libuv says why only as a number; nothing here can be mended at run time. */
static void must(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "pawl: %s: %s\n", what, uv_strerror(rc));
        abort();
    }
}

static void wait_capped(uv_timer_t *timer)
{
    (void)timer;
}

/* The timer is set only here, between the timers of the turn and the wait: uv_run() would run one that was
 * set before, and then wait for the next (libuv 1.44, unix/core.c). */
static void wait_cap_set(struct loop *loop)
{
    if (loop->wait_cap_ms == WAIT_UNCAPPED) {
        uv_timer_stop(&loop->wait_cap);
        return;
    }
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->wait_cap, wait_capped, loop->wait_cap_ms, 0);
    loop->wait_cap_ms = WAIT_UNCAPPED;
}

static void turn_end_run(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;

    do {
        loop->again = false;
        for (struct loop_hook *hook = STAILQ_FIRST(&loop->hooks), *next; hook != NULL; hook = next) {
            next = STAILQ_NEXT(hook, place);
            hook->run(hook);
        }
    } while (loop->again);
    wait_cap_set(loop);
}

static void stop_asked(uv_async_t *async)
{
    struct loop *loop = async->data;

    loop->stopping = true;
}

struct loop *loop_new(void)
{
    struct loop *loop = must_have(calloc(1, sizeof(*loop)));

    must(uv_loop_init(&loop->uv), "uv_loop_init");
    must(uv_prepare_init(&loop->uv, &loop->turn_end), "uv_prepare_init");
    must(uv_prepare_start(&loop->turn_end, turn_end_run), "uv_prepare_start");
    must(uv_timer_init(&loop->uv, &loop->wait_cap), "uv_timer_init");
    must(uv_async_init(&loop->uv, &loop->stop, stop_asked), "uv_async_init");
    STAILQ_INIT(&loop->hooks);
    loop->turn_end.data = loop;
    loop->stop.data = loop;
    loop->wait_cap_ms = WAIT_UNCAPPED;
    return loop;
}

void loop_free(struct loop *loop)
{
    assert(loop->jobs == 0);
    uv_close((uv_handle_t *)&loop->turn_end, NULL);
    uv_close((uv_handle_t *)&loop->wait_cap, NULL);
    uv_close((uv_handle_t *)&loop->stop, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    must(uv_loop_close(&loop->uv), "something still hangs on the loop");
    free(loop);
}

void loop_run(struct loop *loop)
{
    while (!loop->stopping)
        uv_run(&loop->uv, UV_RUN_ONCE);
    loop->stopping = false;
}

void loop_turn(struct loop *loop, unsigned wait_ms)
{
    loop_wait_at_most(loop, wait_ms);
    uv_run(&loop->uv, UV_RUN_ONCE);
}

void loop_wait_at_most(struct loop *loop, unsigned wait_ms)
{
    if (wait_ms < loop->wait_cap_ms)
        loop->wait_cap_ms = wait_ms;
}

void loop_stop(struct loop *loop)
{
    must(uv_async_send(&loop->stop), "uv_async_send");
}

uint64_t loop_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t loop_now_ms(void)
{
    return loop_now_us() / 1000u;
}

/* -- hooks */

void loop_hook_add(struct loop *loop, struct loop_hook *hook, void (*run)(struct loop_hook *))
{
    hook->run = run;
    STAILQ_INSERT_TAIL(&loop->hooks, hook, place);
}

void loop_hook_remove(struct loop *loop, struct loop_hook *hook)
{
    struct loop_hook *at = STAILQ_FIRST(&loop->hooks);

    while (at != NULL && at != hook)
        at = STAILQ_NEXT(at, place);
    if (at != NULL) /* else it is not there: nothing */
        STAILQ_REMOVE(&loop->hooks, hook, loop_hook, place);
}

void loop_again(struct loop *loop)
{
    loop->again = true;
}

/* -- timers: the uv handle is a heap object of its own, because libuv keeps it until its close callback,
 * later than loop_timer_done() returns. */

static void handle_closed(uv_handle_t *handle)
{
    free(handle);
}

static void timer_fired(uv_timer_t *uv)
{
    struct loop_timer *timer = uv->data;

    timer->fire(timer);
}

void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*fire)(struct loop_timer *))
{
    uv_timer_t *uv = must_have(calloc(1, sizeof(*uv)));

    must(uv_timer_init(&loop->uv, uv), "uv_timer_init");
    uv->data = timer;
    timer->fire = fire;
    timer->impl = uv;
}

void loop_timer_arm(struct loop_timer *timer, uint64_t delay_ms, uint64_t repeat_ms)
{
    uv_timer_t *uv = timer->impl;

    /* libuv counts from its cached time, which is old by the length of this turn (uv_timer_start(3)). */
    uv_update_time(uv->loop);
    must(uv_timer_start(uv, timer_fired, delay_ms, repeat_ms), "uv_timer_start");
}

void loop_timer_disarm(struct loop_timer *timer)
{
    uv_timer_stop(timer->impl);
}

void loop_timer_done(struct loop_timer *timer)
{
    uv_close(timer->impl, handle_closed);
    timer->impl = NULL;
}

/* -- descriptors */

static void watch_ready(uv_poll_t *uv, int status, int events)
{
    struct loop_watch *watch = uv->data;
    int now = 0;

    if (status < 0) {
        now = LOOP_READ | LOOP_WRITE | LOOP_HANGUP;
    } else {
        now |= events & UV_READABLE ? LOOP_READ : 0;
        now |= events & UV_WRITABLE ? LOOP_WRITE : 0;
        now |= events & UV_DISCONNECT ? LOOP_HANGUP : 0;
    }
    watch->ready(watch, now);
}

void loop_watch_init(struct loop *loop, struct loop_watch *watch, int fd,
                     void (*ready)(struct loop_watch *, int), int events)
{
    uv_poll_t *uv = must_have(calloc(1, sizeof(*uv)));

    must(uv_poll_init(&loop->uv, uv, fd), "uv_poll_init");
    uv->data = watch;
    watch->ready = ready;
    watch->impl = uv;
    loop_watch_set(watch, events);
}

void loop_watch_set(struct loop_watch *watch, int events)
{
    uv_poll_t *uv = watch->impl;
    int wanted = 0;

    wanted |= events & LOOP_READ ? UV_READABLE : 0;
    wanted |= events & LOOP_WRITE ? UV_WRITABLE : 0;
    wanted |= events & LOOP_HANGUP ? UV_DISCONNECT : 0;
    if (wanted == 0)
        uv_poll_stop(uv);
    else
        must(uv_poll_start(uv, wanted, watch_ready), "uv_poll_start");
}

void loop_watch_done(struct loop_watch *watch)
{
    uv_close(watch->impl, handle_closed);
    watch->impl = NULL;
}

/* -- jobs: the request is a heap object of its own, because libuv has it until after its callback, in which
 * the owner may free the job. */

struct job_request {
    uv_work_t uv;
    struct loop *loop;
    struct loop_job *job;
};

static void job_work(uv_work_t *uv)
{
    struct loop_job *job = container_of(uv, struct job_request, uv)->job;

    job->work(job);
}

/* status is 0: no job is ever cancelled. */
static void job_over(uv_work_t *uv, int status)
{
    struct job_request *request = container_of(uv, struct job_request, uv);
    struct loop_job *job = request->job;

    must(status, "a job of libuv's pool");
    request->loop->jobs--;
    free(request);
    job->done(job);
}

void loop_job_run(struct loop *loop, struct loop_job *job)
{
    struct job_request *request = must_have(calloc(1, sizeof(*request)));

    request->loop = loop;
    request->job = job;
    job->impl = request;
    loop->jobs++;
    must(uv_queue_work(&loop->uv, &request->uv, job_work, job_over), "uv_queue_work");
}

void loop_jobs_wait(struct loop *loop)
{
    while (loop->jobs > 0)
        uv_run(&loop->uv, UV_RUN_ONCE);
}

/* -- names: again a heap object of its own, until its thread has ended and libuv has let go of it */

struct lookup_request {
    uv_async_t over;
    pthread_t thread;
    struct loop *loop;
    struct loop_lookup *lookup; /* NULL: nobody wants to know any more */
    struct addrinfo *list;
    int error, system_error;
    char service[16], host[];
};

static void *lookup_run(void *argument)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct lookup_request *request = argument;

    request->error = getaddrinfo(request->host, request->service, &hints, &request->list);
    request->system_error = errno;
    uv_async_send(&request->over);
    return NULL;
}

static void lookup_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct lookup_request, over));
}

static void lookup_over(uv_async_t *over)
{
    struct lookup_request *request = container_of(over, struct lookup_request, over);
    struct loop_lookup *lookup = request->lookup;
    struct addrinfo *list;
    const char *why;

    pthread_join(request->thread, NULL);
    list = request->error == 0 ? request->list : NULL;
    why = request->error == 0            ? NULL
          : request->error == EAI_SYSTEM ? strerrordesc_np(request->system_error)
                                         : gai_strerror(request->error);
    request->loop->lookups--;
    uv_close((uv_handle_t *)over, lookup_closed);
    if (lookup != NULL) {
        lookup->impl = NULL;
        lookup->found(lookup, list, why);
    }
    if (list != NULL)
        freeaddrinfo(list);
}

/* Signals are for the threads that have a loop. */
static int lookup_start(struct lookup_request *request)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&request->thread, NULL, lookup_run, request);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

const char *loop_lookup_begin(struct loop *loop, struct loop_lookup *lookup, const char *host, unsigned port,
                              void (*found)(struct loop_lookup *, const struct addrinfo *, const char *))
{
    size_t size = strlen(host) + 1;
    struct lookup_request *request;
    int error;

    if (lookup->impl != NULL)
        return NULL;
    request = must_have(calloc(1, sizeof(*request) + size));
    memcpy(request->host, host, size);
    snprintf(request->service, sizeof(request->service), "%u", port);
    request->loop = loop;
    request->lookup = lookup;
    must(uv_async_init(&loop->uv, &request->over, lookup_over), "uv_async_init");
    error = lookup_start(request);
    if (error != 0) {
        uv_close((uv_handle_t *)&request->over, lookup_closed);
        return strerrordesc_np(error);
    }
    loop->lookups++;
    lookup->found = found;
    lookup->impl = request;
    return NULL;
}

void loop_lookup_end(struct loop_lookup *lookup)
{
    struct lookup_request *request = lookup->impl;

    if (request != NULL)
        lookup->impl = request->lookup = NULL;
}

bool loop_is_looking_up(const struct loop *loop)
{
    return loop->lookups > 0;
}

/* -- signals */

static void signal_caught(uv_signal_t *uv, int signum)
{
    struct loop_signal *signal = uv->data;

    (void)signum;
    signal->caught(signal);
}

void loop_signal_init(struct loop *loop, struct loop_signal *signal, int signum,
                      void (*caught)(struct loop_signal *))
{
    uv_signal_t *uv = must_have(calloc(1, sizeof(*uv)));

    must(uv_signal_init(&loop->uv, uv), "uv_signal_init");
    uv->data = signal;
    signal->caught = caught;
    signal->impl = uv;
    must(uv_signal_start(uv, signal_caught, signum), "uv_signal_start");
}

void loop_signal_done(struct loop_signal *signal)
{
    uv_close(signal->impl, handle_closed);
    signal->impl = NULL;
}
