/* recovery_internal.h - what the files of the takeover share. Nobody else includes it.
 *
 *   recover.c        the machine that recovery.h draws: AGAIN, CLOSING, LEAVING
 *   recovery_dead.c  TAKING: those of former incarnations */
#ifndef PAWL_GATEWAY_RECOVERY_INTERNAL_H
#define PAWL_GATEWAY_RECOVERY_INTERNAL_H

#include "gateway/intent/incarnations.h"
#include "gateway/intent/reconcile.h"
#include "gateway/intent/recovery.h"

enum { AGAIN_MAX = 16, ARGS_MAX = 8 + INCARNATIONS_MAX };

struct recovery {
    struct gateway_worker *own;
    struct incarnations dead;
    enum recovery_state state;
    int64_t epoch; /* of the epoch that was looked at, or is being */
    bool is_done, in_flight, stopped;
    bool was_in_doubt; /* this epoch may have lost, or brought back, what is of this process */
    uint64_t again_ms; /* when the dead are looked for once more, 0: no more in this epoch */
    uint64_t quiet_ms; /* until when nothing may be closed; 0 */
    bool has_taken;    /* in some epoch: all that the dead had open is in the list */
    bool lost_unseen;  /* before that an epoch began that may have lost what they had open */
    bool waits;        /* for closers' calls to end: what is being closed must not come back */
    unsigned stripe, taken;
    struct member_call call;
    struct intent batch[AGAIN_MAX];
    char key[KEYS_STRIPE_SIZE], store_epoch[MEMBER_NUMBER_SIZE];
    char roll[MEMBER_NUMBER_SIZE]; /* at which state directories have the dead that were lost; "0" */
    size_t from_len;               /* where a stripe goes on */
    char from[INTENT_TEXT_MAX];
    struct bytes argv[ARGS_MAX + MEMBER_ARGS];
    struct reconcile reconcile;
};

/* The key, this gateway, and its incarnation that lives: argv[0] to argv[2]. */
void recovery_own(struct recovery *recovery, unsigned stripe);
/* argv has one key and so many arguments. */
void recovery_run(struct recovery *recovery, unsigned stripe, const struct store_script *script,
                  unsigned args, store_done_fn *done);
/* Whether the answer is this word; else it begins anew. */
bool recovery_told(struct recovery *recovery, enum store_outcome outcome, const struct store_reply *reply,
                   const char *word);

/* recovery_dead.c: in TAKING, from the first stripe on; then recovery_taken(), or it begins anew. */
void recovery_take(struct recovery *recovery);
void recovery_taken(struct recovery *recovery);

#endif
