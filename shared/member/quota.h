/* quota.h - how much identities hold, have open and have stored in the whole store, for the quotas of the access
 * file: into struct access_use (shared/access/access.h). One in each process, on its first worker's thread. */
#ifndef PAWL_SHARED_MEMBER_QUOTA_H
#define PAWL_SHARED_MEMBER_QUOTA_H

#include "shared/member/member.h"
#include "shared/token/keys.h"

enum { QUOTA_LOOK = 32 };

struct quota {
    struct worker *worker; /* the first */
    const struct member_plan *plan;
    struct member_call call;
    bool is_running;
    unsigned stripe, again; /* the next to be looked at; the last that was counted anew */
    char key[KEYS_STRIPE_SIZE], number[2][MEMBER_NUMBER_SIZE];
    struct bytes argv[3 + MEMBER_ARGS];
};

void quota_start(struct quota *quota, struct worker *worker, const struct member_plan *plan);
/* Every 100 ms. Nothing is asked while nobody has a quota of these. A call in flight ends with the store. */
void quota_tick(struct quota *quota);

#endif
