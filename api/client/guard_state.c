/* guard_state.c - the arrows of a guard (guard.h), and how it is lost. */
#include <assert.h>

#include "api/client/guard.h"

bool guard_allows(enum guard_state from, enum guard_state to)
{
    static const bool arrows[GUARD_STATES][GUARD_STATES] = {
        [GUARD_HELD] = {[GUARD_RENEWING] = true, [GUARD_LOST] = true, [GUARD_ENDED] = true},
        [GUARD_RENEWING] = {[GUARD_HELD] = true, [GUARD_LOST] = true, [GUARD_ENDED] = true},
        [GUARD_LOST] = {[GUARD_TOLD] = true},
    };

    return arrows[from][to];
}

void guard_become(struct pawl_guard *guard, enum guard_state next)
{
    assert(guard_allows(guard->state, next));
    guard->state = next;
}

void guard_lose(struct pawl_guard *guard, const struct pawl_problem *why)
{
    guard_become(guard, GUARD_LOST);
    guard->loss = *why;
    guard->released = why->status != 0;
    atomic_store(&guard->deadline_ms, 0);
    guard_clock_fire(guard->timer_fd);
}

static void guard_too_late(struct pawl_guard *guard)
{
    struct pawl_problem problem;
    char detail[PAWL_DETAIL_SIZE];

    snprintf(detail, sizeof(detail),
             "The hold could not be renewed in time: stop what it protected. The last attempt: %.*s",
             PAWL_DETAIL_SIZE - 128,
             guard->last_wrong[0] != '\0' ? guard->last_wrong : "none; this process stood still");
    problem_say(&problem, PAWL_LOST, "deadline-passed", detail);
    guard_lose(guard, &problem);
}

bool guard_is_held(struct pawl_guard *guard)
{
    bool held = guard->state == GUARD_HELD || guard->state == GUARD_RENEWING;

    if (held && pawl_guard_remaining_ms(guard) == 0) {
        guard_too_late(guard);
        return false;
    }
    return held;
}

void guard_end(struct pawl_guard *guard)
{
    guard->holds = 0;
    if (guard_is_held(guard)) {
        guard_become(guard, GUARD_ENDED);
        atomic_store(&guard->deadline_ms, 0);
        guard_clock_set(guard->timer_fd, 0, NULL);
        guard_clock_set(guard->wake_fd, 1, NULL);
    }
}
