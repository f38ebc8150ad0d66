/* guard_clock.c - a guard's deadline, which only the clock and a good renewal move. */
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>

#include "api/client/guard.h"

enum { AGAIN_LEAST_MS = 20, AGAIN_MOST_MS = 2000, FIRE_MS = 100 };

void guard_clock_set(int fd, int64_t at_ms, bool *was_over)
{
    struct itimerspec at = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}}, was;

    timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, &was);
    if (was_over != NULL) {
        *was_over = was.it_value.tv_sec == 0 && was.it_value.tv_nsec == 0;
    }
}

void guard_clock_fire(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (poll(&ready, 1, 0) > 0) {
        return; /* setting it, also to the past, would make it unreadable until the kernel's next interrupt */
    }
    guard_clock_set(fd, 1, NULL);
    while (poll(&ready, 1, FIRE_MS) < 0 && errno == EINTR) {
    }
}

bool guard_clock_move(struct pawl_guard *guard, int64_t deadline_ms)
{
    int64_t before_ms = atomic_load(&guard->deadline_ms);
    bool was_over;

    if (before_ms == 0 || pawl_now_ms() >= before_ms) {
        return false;
    }
    if (deadline_ms <= before_ms) {
        return true; /* what was told is still true */
    }
    guard_clock_set(guard->timer_fd, deadline_ms, &was_over);
    if (was_over) {
        atomic_store(&guard->deadline_ms, 0);
        return false;
    }
    return atomic_compare_exchange_strong(&guard->deadline_ms, &before_ms, deadline_ms);
}

int64_t guard_clock_next(const struct pawl_grant *grant)
{
    /* A third of the ttl after it began; up to a fifth earlier, so that many do not renew as one. */
    int64_t third_ms = grant->ttl_ms / 3;
    int64_t next_ms = grant->deadline_ms - grant->ttl_ms + client_random_between(third_ms * 4 / 5, third_ms);
    int64_t now_ms = pawl_now_ms();

    return next_ms > now_ms ? next_ms : now_ms;
}

int64_t guard_clock_again(const struct pawl_grant *grant)
{
    int64_t most_ms = grant->ttl_ms / 20;

    most_ms = most_ms < AGAIN_LEAST_MS ? AGAIN_LEAST_MS : most_ms > AGAIN_MOST_MS ? AGAIN_MOST_MS : most_ms;
    return pawl_now_ms() + client_random_between(most_ms / 2, most_ms);
}

int64_t pawl_guard_remaining_ms(struct pawl_guard *guard)
{
    int64_t deadline_ms, left_ms;

    if (guard == NULL || !guard_is_ours(guard)) {
        return 0;
    }
    deadline_ms = atomic_load(&guard->deadline_ms);
    while (deadline_ms != 0) {
        left_ms = deadline_ms - pawl_now_ms();
        if (left_ms > 0) {
            return left_ms;
        }
        if (atomic_compare_exchange_strong(&guard->deadline_ms, &deadline_ms, 0)) {
            break;
        }
    }
    return 0;
}
