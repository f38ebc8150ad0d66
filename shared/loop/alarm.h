/* alarm.h - many deadlines on one timer of the loop: a heap. An entry that is not set costs its owner 16
 * bytes, one that is set another 16; setting, moving and clearing are O(log n). */
#ifndef PAWL_SHARED_ALARM_H
#define PAWL_SHARED_ALARM_H

#include <stdint.h>

#include "shared/loop/loop.h"

struct alarm_clock;

/* Embedded by the owner; zeroed means not set. */
struct alarm {
    void (*rings)(struct alarm *alarm);
    uint32_t place; /* the clock's own: 0: not set */
};

struct alarm_clock *alarm_clock_new(struct loop *loop);
/* Whatever is set is forgotten. Not from inside rings(). */
void alarm_clock_free(struct alarm_clock *clock);
/* Rings once, at_ms (of loop_now_ms()) or as soon as the loop can, never from inside this call; sets it anew
 * when it is set already. rings must be set. In rings() it is not set any more: the owner may set it again or
 * free itself. */
void alarm_set(struct alarm_clock *clock, struct alarm *alarm, uint64_t at_ms);
/* Also when it is not set. */
void alarm_clear(struct alarm_clock *clock, struct alarm *alarm);
unsigned alarm_count(const struct alarm_clock *clock);

#endif
