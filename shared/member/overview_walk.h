/* overview_walk.h - how many leases are held, waited for, delayed, and which are worth a look. Found by a
 * walk, which goes on only while somebody wants it: nothing of it is counted when it happens. */
#ifndef PAWL_SHARED_MEMBER_OVERVIEW_WALK_H
#define PAWL_SHARED_MEMBER_OVERVIEW_WALK_H

#include "shared/member/member.h"
#include "shared/token/token.h"

enum walk_count { WALK_HELD, WALK_WAITING, WALK_DELAYED, WALK_SESSIONS, WALK_IN_DOUBT, WALK_COUNTS };
enum walk_kind { LOOK_IN_DOUBT, LOOK_REFUSED, LOOK_WAITING, LOOK_DELAYED, LOOK_KINDS };
enum { LOOK_KEPT = 16, LOOK_HOLDER_SIZE = 129, LOOK_CODE_SIZE = 32 };

/* One lease that is worth a look; the members are those of overview_walk.lua. */
struct walk_look {
    char lease[TOKEN_LEASE_MAX + 1], holder[LOOK_HOLDER_SIZE], code[LOOK_CODE_SIZE];
    int64_t ms;
};

/* What a walk has found: of each kind the LOOK_KEPT that are most worth it, in that order. */
struct walk_found {
    int64_t count[WALK_COUNTS], top_token;
    struct walk_look look[LOOK_KINDS][LOOK_KEPT];
    unsigned looks[LOOK_KINDS];
    uint64_t at_ms; /* when it was whole; 0: none was yet */
};

const char *walk_kind_name(enum walk_kind kind);

/* Of the process; it walks on the first worker's thread. */
struct overview_walk;
struct overview_walk *overview_walk_new(struct worker *first, struct member_line *line);
/* No new step begins; one in flight ends with the store. */
void overview_walk_stop(struct overview_walk *walk);
void overview_walk_free(struct overview_walk *walk);
/* On any thread: somebody looks, so it goes on for WALK_WANTED_MS. What the last whole walk has found. */
enum { WALK_WANTED_MS = 10000 };
void overview_walk_look(struct overview_walk *walk, struct walk_found *found);
/* Every 100 ms. */
void overview_walk_tick(struct overview_walk *walk);

#endif
