/* alarm.c - many deadlines on one timer of the loop: a binary heap, the soonest on top. */
#include <assert.h>
#include <stdlib.h>

#include "shared/loop/alarm.h"
#include "shared/text/bytes.h"
#include "shared/text/memory.h"

enum { SLOTS_FIRST = 64 };

struct slot {
    uint64_t at_ms;
    struct alarm *alarm;
};

struct alarm_clock {
    struct loop_timer timer;
    struct slot *heap; /* from 1; the children of i are 2 i and 2 i + 1 */
    unsigned count, size;
    uint64_t armed_ms; /* what the timer is set for; UINT64_MAX: it is not */
    bool ringing;
};

static void clock_fired(struct loop_timer *timer);

struct alarm_clock *alarm_clock_new(struct loop *loop)
{
    struct alarm_clock *clock = must_have(calloc(1, sizeof(*clock)));

    clock->size = SLOTS_FIRST;
    clock->heap = must_have(calloc(clock->size, sizeof(*clock->heap)));
    clock->armed_ms = UINT64_MAX;
    loop_timer_init(loop, &clock->timer, clock_fired);
    return clock;
}

void alarm_clock_free(struct alarm_clock *clock)
{
    assert(!clock->ringing);
    for (unsigned i = 1; i <= clock->count; i++)
        clock->heap[i].alarm->place = 0;
    loop_timer_done(&clock->timer);
    free(clock->heap);
    free(clock);
}

unsigned alarm_count(const struct alarm_clock *clock)
{
    return clock->count;
}

/* -- the heap */

static void put(struct alarm_clock *clock, unsigned place, struct slot slot)
{
    clock->heap[place] = slot;
    slot.alarm->place = place;
}

/* The slot goes into the free place, or up or down from there to where it belongs. */
static void settle(struct alarm_clock *clock, unsigned place, struct slot slot)
{
    struct slot *heap = clock->heap;

    for (; place > 1 && slot.at_ms < heap[place / 2].at_ms; place /= 2)
        put(clock, place, heap[place / 2]);
    for (unsigned child; (child = 2 * place) <= clock->count; place = child) {
        child += child < clock->count && heap[child + 1].at_ms < heap[child].at_ms;
        if (heap[child].at_ms >= slot.at_ms)
            break;
        put(clock, place, heap[child]);
    }
    put(clock, place, slot);
}

static void take_out(struct alarm_clock *clock, struct alarm *alarm)
{
    unsigned place = alarm->place;
    struct slot last = clock->heap[clock->count--];

    assert(clock->heap[place].alarm == alarm);
    if (place <= clock->count)
        settle(clock, place, last);
    alarm->place = 0;
}

/* -- the timer */

/* One that is set for earlier than needed stays: when it fires it finds nothing to do and is set anew. Never
 * for 0 ms: libuv runs a timer that is due again before the turn goes on (uv__run_timers of 1.44). */
static void arm(struct alarm_clock *clock)
{
    uint64_t now_ms, at_ms;

    if (clock->ringing || clock->count == 0 || clock->heap[1].at_ms >= clock->armed_ms)
        return;
    now_ms = loop_now_ms();
    at_ms = clock->heap[1].at_ms;
    clock->armed_ms = at_ms;
    loop_timer_arm(&clock->timer, at_ms > now_ms ? at_ms - now_ms : 1, 0);
}

/* What is set while it rings counts from now on, and this turn rings no more of them than were there before:
 * those that are set anew at once come in the next turn, when others have had theirs. */
static void clock_fired(struct loop_timer *timer)
{
    struct alarm_clock *clock = container_of(timer, struct alarm_clock, timer);
    uint64_t now_ms = loop_now_ms();

    clock->armed_ms = UINT64_MAX;
    clock->ringing = true;
    for (unsigned left = clock->count; left > 0 && clock->count > 0; left--) {
        struct slot first = clock->heap[1];

        if (first.at_ms > now_ms)
            break;
        take_out(clock, first.alarm);
        first.alarm->rings(first.alarm);
    }
    clock->ringing = false;
    arm(clock);
}

void alarm_set(struct alarm_clock *clock, struct alarm *alarm, uint64_t at_ms)
{
    uint64_t now_ms = loop_now_ms();
    struct slot slot = {at_ms > now_ms ? at_ms : now_ms, alarm};

    assert(alarm->rings != NULL);
    if (alarm->place == 0) {
        if (clock->count + 1 == clock->size) {
            clock->size *= 2;
            clock->heap = must_have(realloc(clock->heap, clock->size * sizeof(*clock->heap)));
        }
        settle(clock, ++clock->count, slot);
    } else {
        assert(clock->heap[alarm->place].alarm == alarm);
        settle(clock, alarm->place, slot);
    }
    arm(clock);
}

void alarm_clear(struct alarm_clock *clock, struct alarm *alarm)
{
    if (alarm->place == 0)
        return;
    take_out(clock, alarm);
    if (clock->count == 0 && !clock->ringing) {
        loop_timer_disarm(&clock->timer);
        clock->armed_ms = UINT64_MAX;
    }
}
