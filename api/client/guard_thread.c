/* guard_thread.c - the thread of a guard: renews until it is no longer held.
 *
 *   thread_wait     for the next renewal, the deadline, or the end    over, or go on
 *   thread_renew    PUT, once, no longer than the deadline            lost | renewed | again soon
 *   thread_tell     a loss, whoever noted it: the callback, once */
#include <poll.h>
#include <unistd.h>

#include "api/client/guard.h"

/* -- waiting */

/* true: it is RENEWING now. */
static bool thread_wait(struct pawl_guard *guard, struct pawl_grant *grant)
{
    struct pollfd ready[] = {{.fd = guard->timer_fd, .events = POLLIN},
                             {.fd = guard->wake_fd, .events = POLLIN}};
    bool held, renew;

    do {
        poll(ready, sizeof(ready) / sizeof(ready[0]), -1);
        pthread_mutex_lock(&guard->lock);
        held = guard_is_held(guard);
        renew = held && ready[1].revents != 0;
        if (renew) {
            guard_become(guard, GUARD_RENEWING);
            guard_clock_set(guard->wake_fd, 0, NULL);
            *grant = guard->grant;
        }
        pthread_mutex_unlock(&guard->lock);
    } while (held && !renew);
    return renew;
}

/* -- renewing */

/* Under the lock: what the end of a renewal means. true: it was renewed. */
static bool thread_end_renewal(struct pawl_guard *guard, const struct pawl_grant *grant,
                               enum pawl_outcome outcome, const struct pawl_problem *problem)
{
    bool good = outcome == PAWL_OK;

    if (!good && strcmp(problem->code, "cancelled") != 0) {
        snprintf(guard->last_wrong, sizeof(guard->last_wrong), "%s", problem->detail);
    }
    if (!guard_is_held(guard)) {
        return false;
    }
    if (outcome == PAWL_LOST) {
        guard_lose(guard, problem);
        return false;
    }
    if (good && !guard_clock_move(guard, grant->deadline_ms)) {
        guard_is_held(guard); /* it has passed: that is noted */
        return false;
    }
    /* Without a good end it is no loss: the deadline that was told still holds. */
    guard_become(guard, GUARD_HELD);
    if (good) {
        guard->grant = *grant;
        guard->last_wrong[0] = '\0';
    }
    guard_clock_set(guard->wake_fd, good ? guard_clock_next(grant) : guard_clock_again(grant), NULL);
    return good;
}

static void thread_renew(struct pawl_guard *guard, struct pawl_grant *grant)
{
    const int stops[] = {guard->timer_fd, guard->wake_fd, -1};
    struct hold_limits limits = {.attempts = 1, .timeout_ms = guard->pawl->timeout_ms, .stop_fds = stops};
    struct pawl_problem problem;
    enum pawl_outcome outcome;
    /* So that a request that hangs leaves time for another. */
    int64_t third_ms = grant->ttl_ms / 3;
    bool renewed;

    if (limits.timeout_ms > third_ms) {
        limits.timeout_ms = (unsigned)third_ms;
    }
    outcome = hold_renew(guard->pawl, grant, 0, &limits, &problem);
    pthread_mutex_lock(&guard->lock);
    renewed = thread_end_renewal(guard, grant, outcome, &problem);
    pthread_mutex_unlock(&guard->lock);
    if (renewed && guard->told.renewed != NULL) {
        guard->told.renewed(guard, grant->deadline_ms, guard->told.user);
    }
}

/* -- telling */

static void thread_tell(struct pawl_guard *guard)
{
    struct pawl_problem loss;
    bool lost;

    pthread_mutex_lock(&guard->lock);
    lost = guard->state == GUARD_LOST;
    if (lost) {
        guard_become(guard, GUARD_TOLD);
    }
    loss = guard->loss;
    pthread_mutex_unlock(&guard->lock);
    if (lost && guard->told.lost != NULL) {
        guard->told.lost(guard, &loss, guard->told.user);
    }
}

void *guard_thread_run(void *user)
{
    struct pawl_guard *guard = user;
    struct pawl_grant grant;

    atomic_store(&guard->tid, gettid());
    while (thread_wait(guard, &grant)) {
        thread_renew(guard, &grant);
    }
    thread_tell(guard);
    explicit_bzero(&grant, sizeof(grant));
    atomic_store(&guard->tid, 0); /* the number may be another thread's next */
    return NULL;
}
