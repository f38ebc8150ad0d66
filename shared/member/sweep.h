/* sweep.h - looks for ever which stripes have something due, and runs one bounded script on each of them:
 * what expired or was remembered long enough goes, a little at a time. One call is in flight at a time; a
 * stripe with more to do is visited again at once. A store in which nothing is due sees SWEEP_LOOKS reads a
 * round. */
#ifndef PAWL_SHARED_RECORD_SWEEP_H
#define PAWL_SHARED_RECORD_SWEEP_H

#include <stdint.h>

#include "shared/member/call.h"

enum {
    SWEEP_STEP = 100,
    SWEEP_ROUND_MS = 5120,
    SWEEP_KEYS = 2,
    SWEEP_LOOK = 64, /* stripes at a look: 0.2 to 0.4 ms in Redis */
    SWEEP_LOOKS = STRIPES / SWEEP_LOOK
};

struct sweep {
    struct member_line *line;
    const struct store_script *look, *script; /* due.lua; and what runs on a stripe that it names */
    const char *index;                        /* "due" | "gone": second key */
    unsigned round_ms;                        /* in which all stripes are looked at; 0: SWEEP_ROUND_MS */
    bool may_grant; /* the script hands on what it ends: it is told whether it may (record_may_grant()) */
    /* Told after each step of how many were removed or ended; may be NULL. */
    void (*swept)(struct sweep *sweep, int64_t ended);
    /* the sweep's own */
    struct loop_timer timer;
    struct member_call call;
    unsigned first, stripe;      /* of the look; being swept */
    bool running, late, stopped; /* late: a tick came while it was running */
    uint64_t due;                /* bit i: first + i is to be swept */
    char keys[SWEEP_KEYS][KEYS_STRIPE_SIZE];
    char remember[24], step[8], number[8], count[8];
    struct bytes argv[SWEEP_KEYS + 3 + MEMBER_ARGS];
};

/* The fields above the sweep's own are set by the caller. remember_ms is handed to the script as its second
 * argument. */
void sweep_start(struct sweep *sweep, struct loop *loop, uint64_t remember_ms);
/* No new step begins; a step in flight ends with the store. */
void sweep_stop(struct sweep *sweep);

#endif
