/* turn.h - the scripts that touch up to a hundred leases in one step (acquire_all, claim_all, leave_all): one
 * of them at a time in this service, and never more than a quarter of the store's time.
 *
 * Each costs the store a hundred times what a renewal costs, and must not be split. So after each one the
 * next waits for three times as long as that one took, from its sending to its answer, less what the network
 * takes at the least. Workers share nothing but that moment. Claims go first; leaves and acquires alternate.
 * An acquire waits for at most TURN_WAIT_MS, behind at most TURN_ACQUIRES_MAX others of this worker; else 503
 * overloaded, and nothing was asked of the store. */
#ifndef PAWL_LEASE_TURN_H
#define PAWL_LEASE_TURN_H

#include <stdatomic.h>

#include "shared/loop/loop.h"
#include "shared/text/problem.h"

enum { TURN_ACQUIRES_MAX = 128, TURN_WAIT_MS = 1000, TURN_PAUSE_MAX_MS = 500 };

enum turn_kind { TURN_CLAIM, TURN_LEAVE, TURN_ACQUIRE, TURN_KINDS };

struct turn_call { /* the owner embeds it */
    /* Once, later. PROBLEM_NONE: it is its turn, until turn_done(). PROBLEM_OVERLOADED: it waited for too
     * long. */
    void (*go)(struct turn_call *call, enum problem bad);
    /* the turn's own */
    struct turn_call *next;
    uint64_t until_ms;
};

struct turn_line {
    struct turn_call *head, **tail;
};

struct turn {
    struct loop *loop;
    struct loop_timer timer;
    /* The moment from which the slot is free, loop_now_us(); UINT64_MAX while a script is under way. It is
     * that of the service's first worker. */
    _Atomic uint64_t own, *slot;
    struct turn_line line[TURN_KINDS];
    bool asked_last;
    unsigned asks;
    uint64_t began_us;
};

/* slot: of the service's first worker; NULL: this is it. */
void turn_init(struct turn *turn, struct loop *loop, _Atomic uint64_t *slot);
/* Nobody waits any more (asserted). */
void turn_free(struct turn *turn);
/* false: too many ask; go() is never called. */
bool turn_wait(struct turn *turn, struct turn_call *call, enum turn_kind kind);
/* The script is over, however it ended, or was never sent. */
void turn_done(struct turn *turn, uint64_t network_us);

#endif
