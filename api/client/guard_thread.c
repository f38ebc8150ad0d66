/* guard_thread.c - the thread of a guard: renews until it is lost, or told to stop.
 *
 *   thread_wait     for the next renewal, the deadline, or the end    stop, or go on
 *   thread_renew    PUT, once, no longer than the deadline            lost | renewed | again soon
 *   thread_lose     the state, the clock, the callback: once */
#include <poll.h>
#include <unistd.h>

#include "api/client/guard.h"

enum { AGAIN_LEAST_MS = 20, AGAIN_MOST_MS = 2000 };

static void thread_lose(struct pawl_guard *guard, const struct pawl_problem *problem)
{
    bool mine;

    pthread_mutex_lock(&guard->lock);
    mine = guard->state == GUARD_HELD;
    if (mine) {
        guard->state = GUARD_LOST;
        guard->loss = *problem;
        guard->released = problem->status != 0;
        atomic_store(&guard->deadline_ms, 0);
        guard_clock_set(guard->timer_fd, 1, NULL);
    } else if (guard->state == GUARD_ENDED) {
        guard_clock_set(guard->timer_fd, 0, NULL); /* a renewal may just have set it */
    }
    pthread_mutex_unlock(&guard->lock);
    if (mine && guard->told.lost != NULL) {
        guard->told.lost(guard, problem, guard->told.user);
    }
}

static void thread_too_late(struct pawl_guard *guard)
{
    struct pawl_problem problem;
    char detail[PAWL_DETAIL_SIZE];

    snprintf(detail, sizeof(detail),
             "The hold could not be renewed in time: stop what it protected. The last attempt: %.*s",
             PAWL_DETAIL_SIZE - 128,
             guard->last_wrong.detail[0] != '\0' ? guard->last_wrong.detail
                                                 : "none; this process stood still");
    problem_say(&problem, PAWL_LOST, "deadline-passed", detail);
    thread_lose(guard, &problem);
}

/* -- renewing */

static void thread_renewed(struct pawl_guard *guard, const struct pawl_grant *grant)
{
    bool held;

    if (!guard_clock_move(guard, grant->deadline_ms)) {
        thread_too_late(guard);
        return;
    }
    pthread_mutex_lock(&guard->lock);
    held = guard->state == GUARD_HELD;
    if (held) {
        guard->grant = *grant;
    }
    pthread_mutex_unlock(&guard->lock);
    problem_reset(&guard->last_wrong);
    guard_clock_set(guard->renew_fd, guard_clock_next(grant), NULL);
    if (held && guard->told.renewed != NULL) {
        guard->told.renewed(guard, grant->deadline_ms, guard->told.user);
    }
}

static void thread_again(struct pawl_guard *guard, int64_t ttl_ms)
{
    int64_t most_ms = ttl_ms / 20;

    most_ms = most_ms < AGAIN_LEAST_MS ? AGAIN_LEAST_MS : most_ms > AGAIN_MOST_MS ? AGAIN_MOST_MS : most_ms;
    guard_clock_set(guard->renew_fd, pawl_now_ms() + client_random_between(most_ms / 2, most_ms), NULL);
}

static void thread_renew(struct pawl_guard *guard)
{
    const int stops[] = {guard->stop_fd, guard->timer_fd, -1};
    struct hold_limits limits = {.attempts = 1, .timeout_ms = guard->pawl->timeout_ms, .stop_fds = stops};
    struct pawl_grant grant;
    struct pawl_problem problem;
    int64_t third_ms;

    pthread_mutex_lock(&guard->lock);
    grant = guard->grant;
    pthread_mutex_unlock(&guard->lock);
    /* So that a request that hangs leaves time for another. */
    third_ms = grant.ttl_ms / 3;
    if (limits.timeout_ms > third_ms) {
        limits.timeout_ms = (unsigned)third_ms;
    }
    switch (hold_renew(guard->pawl, &grant, 0, &limits, &problem)) {
    case PAWL_OK: thread_renewed(guard, &grant); break;
    case PAWL_LOST: thread_lose(guard, &problem); break;
    case PAWL_HELD:
    case PAWL_NOT_DONE:
    case PAWL_UNKNOWN:
        /* Not a loss: the deadline that was told still holds. */
        if (strcmp(problem.code, "cancelled") != 0) {
            guard->last_wrong = problem;
        }
        thread_again(guard, grant.ttl_ms);
        break;
    }
    explicit_bzero(&grant, sizeof(grant));
}

/* -- waiting */

enum next { NEXT_RENEW, NEXT_TOO_LATE, NEXT_STOP };

static enum next thread_wait(struct pawl_guard *guard)
{
    struct pollfd ready[] = {{.fd = guard->stop_fd, .events = POLLIN},
                             {.fd = guard->timer_fd, .events = POLLIN},
                             {.fd = guard->renew_fd, .events = POLLIN}};

    for (;;) {
        poll(ready, sizeof(ready) / sizeof(ready[0]), -1);
        /* First: who ends a guard that is over must be told so. */
        if (ready[1].revents != 0 || pawl_guard_remaining_ms(guard) == 0) {
            return NEXT_TOO_LATE;
        }
        if (ready[0].revents != 0) {
            return NEXT_STOP;
        }
        if (ready[2].revents != 0) {
            return NEXT_RENEW;
        }
    }
}

void *guard_thread_run(void *user)
{
    struct pawl_guard *guard = user;

    atomic_store(&guard->tid, gettid());
    for (;;) {
        switch (thread_wait(guard)) {
        case NEXT_STOP: return NULL;
        case NEXT_TOO_LATE: thread_too_late(guard); return NULL;
        case NEXT_RENEW: thread_renew(guard); break;
        }
    }
}
