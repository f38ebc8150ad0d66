/* waited.h - how long loops had to wait: what an upper bound on time may ask for.
 *
 * A test and what it tests are one process here. On a machine that does much else it does not run for a while
 * now and then, and that is nobody's fault: of each turn no more counts than the loop was told to wait at the
 * most. A lower bound is still measured with loop_now_ms(), from before the time that it is about could
 * begin. */
#ifndef PAWL_TESTS_WAITED_H
#define PAWL_TESTS_WAITED_H

#include "shared/loop/loop.h"

/* One test program is one process with one thread (check.h). */
static uint64_t waited_us;

static inline void waited_turn(struct loop *loop, unsigned wait_ms)
{
    uint64_t began_us = loop_now_us(), most_us = wait_ms * UINT64_C(1000), took_us;

    loop_turn(loop, wait_ms);
    took_us = loop_now_us() - began_us;
    waited_us += took_us < most_us ? took_us : most_us;
}

/* Since the program began; differences count. */
static inline uint64_t waited_ms(void)
{
    return waited_us / 1000;
}

/* How long a test waits for what must come: so long by the clock, and when the machine stood still meanwhile
 * also so long in turns. */
struct patience {
    uint64_t till_ms, till_waited_ms;
};

static inline struct patience patience_of(uint64_t ms)
{
    return (struct patience){loop_now_ms() + ms, waited_ms() + ms};
}

static inline bool patience_lasts(const struct patience *patience)
{
    return loop_now_ms() < patience->till_ms || waited_ms() < patience->till_waited_ms;
}

#endif
