/* sweep.h - walks over the stripes for ever and runs one bounded script on each: what expired or was
 * remembered long enough goes, a little at a time. One call is in flight at a time; a stripe with more to
 * do is visited again at once. */
#ifndef PAWL_SHARED_RECORD_SWEEP_H
#define PAWL_SHARED_RECORD_SWEEP_H

#include <stdint.h>

#include "shared/record/call.h"

enum { SWEEP_STEP = 100, SWEEP_ROUND_MS = 5120, SWEEP_KEYS = 3 };

struct sweep {
    struct record_line *line;
    const struct store_script *script;
    const char *index;   /* "due" | "gone": second key */
    const char *records; /* "l:" | "r:": third key, what every record of the stripe begins with */
    unsigned round_ms;   /* for a walk over all stripes; 0: SWEEP_ROUND_MS */
    bool may_grant; /* the script hands on what it ends: it is told whether it may (record_may_grant()) */
    /* Told after each step of how many were removed or ended; may be NULL. */
    void (*swept)(struct sweep *sweep, int64_t ended);
    /* the sweep's own */
    struct loop_timer timer;
    struct record_call call;
    unsigned stripe;
    bool running;
    char keys[SWEEP_KEYS][KEYS_STRIPE_SIZE];
    char remember[24], step[8];
    struct bytes argv[SWEEP_KEYS + 3 + RECORD_ARGS];
};

/* The fields above the sweep's own are set by the caller. remember_ms is handed to the script as its second
 * argument. */
void sweep_start(struct sweep *sweep, struct loop *loop, uint64_t remember_ms);
/* No new step begins; a step in flight ends with the store. */
void sweep_stop(struct sweep *sweep);

#endif
