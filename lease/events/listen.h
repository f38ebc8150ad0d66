/* listen.h - the store publishes what happens to leases only while somebody listens (scripts/listen.lua): one
 * for each feed, which says so again and again for as long as anybody does.
 *
 *   SILENT    nothing is said; it was never wanted, or is not any more
 *   ASKING    said, not yet confirmed: what happens may not be published
 *   STANDS    all that happens is published
 *
 * Whether something was missed while it stood (the store's clock leapt, it has lost content, this process
 * stood still, less was noted for a while) is found when it is said the next time, and told then; so is that
 * nothing is noted any more. */
#ifndef PAWL_LEASE_LISTEN_H
#define PAWL_LEASE_LISTEN_H

#include "shared/loop/loop.h"
#include "shared/member/member.h"
#include "shared/token/keys.h"

/* For how long it is said, how often, and how soon after it could not be. */
enum { LISTEN_MS = 60000, LISTEN_AGAIN_MS = 5000, LISTEN_RETRY_MS = 100, LISTEN_NOTED_SIZE = 48 };

struct listen {
    /* It stands: whatever was heard of from Redis' subscription on is complete from now on. */
    void (*stands)(struct listen *listen);
    /* Something may have been missed since it stood; stands() follows. */
    void (*missed)(struct listen *listen);
    /* The store notes nothing: it does not stand, and is not asked again before somebody wants it. */
    void (*off)(struct listen *listen);
    /* its own */
    struct member_line *line;
    struct member_call call;
    struct loop_timer timer;
    bool wanted, asked, is_stopped, is_stale; /* is_stale: what was asked is of before listen_forget() */
    int64_t until;                            /* store time; 0: it does not stand */
    char noted[LISTEN_NOTED_SIZE];            /* as the store says it: what, and since when */
    char stripe[KEYS_STRIPE_SIZE], ms[MEMBER_NUMBER_SIZE];
    struct bytes argv[2 + MEMBER_ARGS];
};

void listen_init(struct listen *listen, struct loop *loop, struct member_line *line);
/* No call is made any more; one that is under way still ends. */
void listen_stop(struct listen *listen);

/* Whether it stands; if not, it is said, and stands() is called later, never from inside. */
bool listen_want(struct listen *listen);
void listen_leave(struct listen *listen);
/* Redis may be another one by now: what was said counts no more. Wanted it still is, from listen_want() on.
 */
void listen_forget(struct listen *listen);

#endif
