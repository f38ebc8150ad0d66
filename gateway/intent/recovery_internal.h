/* recovery_internal.h - what the files of the takeover share. Nobody else includes it.
 *
 *   recover.c        the machine that recovery.h draws: AGAIN, CLOSING, LEAVING
 *   recovery_dead.c  TAKING: those of former incarnations */
#ifndef PAWL_GATEWAY_TAKEOVER_INTERNAL_H
#define PAWL_GATEWAY_TAKEOVER_INTERNAL_H

#include "gateway/intent/incarnations.h"
#include "gateway/intent/reconcile.h"
#include "gateway/intent/recovery.h"

enum { AGAIN_MAX = 16, ARGS_MAX = 8 + INCARNATIONS_MAX };

struct takeover {
    struct gateway_worker *own;
    struct incarnations dead;
    enum takeover_state state;
    int64_t epoch; /* of the life that was looked at, or is being */
    bool is_done, in_flight, stopped;
    bool was_in_doubt; /* this life may have lost, or brought back, what is of this process */
    uint64_t again_ms; /* when the dead are looked for once more, 0: no more in this life */
    uint64_t quiet_ms; /* until when nothing may be closed; 0 */
    bool has_taken;    /* in some life: all that the dead had open is in the list */
    bool lost_unseen;  /* before that a life began that may have lost what they had open */
    bool waits;        /* for closers' calls to end: what is being closed must not come back */
    unsigned stripe, taken;
    struct record_call call;
    struct intent batch[AGAIN_MAX];
    char key[KEYS_STRIPE_SIZE], life[RECORD_NUMBER_SIZE];
    char roll[RECORD_NUMBER_SIZE]; /* at which state directories have the dead that were lost; "0" */
    size_t from_len;               /* where a stripe goes on */
    char from[INTENT_TEXT_MAX];
    struct bytes argv[ARGS_MAX + RECORD_ARGS];
    struct strays strays;
};

/* The key, this gateway, and its incarnation that lives: argv[0] to argv[2]. */
void takeover_own(struct takeover *takeover, unsigned stripe);
/* argv has one key and so many arguments. */
void takeover_run(struct takeover *takeover, unsigned stripe, const struct store_script *script,
                  unsigned args, store_done_fn *done);
/* Whether the answer is this word; else it begins anew. */
bool takeover_told(struct takeover *takeover, enum store_outcome outcome, const struct store_reply *reply,
                   const char *word);

/* recovery_dead.c: in TAKING, from the first stripe on; then takeover_taken(), or it begins anew. */
void takeover_take(struct takeover *takeover);
void takeover_taken(struct takeover *takeover);

#endif
