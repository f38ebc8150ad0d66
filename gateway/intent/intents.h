/* intents.h - the intents of this process that are open: what it has said to the store that it is sending,
 * and has not yet closed there (gateway/scripts/lib/intent.lua has their form).
 *
 * An intent is opened by a script (store.c) before anything is sent, and closed by intent_close.lua
 * when its end is known; nobody waits for that, and it is tried again until the store has done it: what is
 * closed late keeps others waiting, and harms nobody. One whose end will never be known stays in this list,
 * for as long as the process lives: a store that has lost it gets it again (intent_again.lua).
 *
 * One struct intents for each process, shared by its threads; one struct intent_closer (intent_closer.h) for
 * each worker.
 */
#ifndef PAWL_GATEWAY_INTENTS_H
#define PAWL_GATEWAY_INTENTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "shared/member/member.h"
#include "shared/text/bytes.h"
#include "shared/token/name.h"

/* INTENT_IDS_MAX: of one that stays open, the numbers of 16 requests whose end is unknown. */
enum {
    INTENT_ID_SIZE = 24,
    INTENT_IDS_MAX = 16 * INTENT_ID_SIZE + 8,
    INTENT_TEXT_MAX = 384 + INTENT_IDS_MAX
};

enum intent_word {
    /* Its admission is on its way to the store, or it is queued there. text is "NAME GATEWAY INCARNATION ID".
     * It is in the list before the store can know of it, and until it is recorded, refused, or to be closed:
     * so whatever the store has of this process, and the list has not, will never be sent any more. */
    INTENT_ASKED,
    INTENT_OPEN,
    INTENT_CLOSE,   /* its end is known, or it was never sent */
    INTENT_SETTLE,  /* the same; a conditional write was applied, so older ones cannot be any more */
    INTENT_UNKNOWN, /* it was sent, and this process will not learn its end */
    INTENT_KEPT,    /* a former incarnation's, whose end nobody will learn (recover.c) */
    /* Nobody knows whether it was recorded: text is "NAME GATEWAY INCARNATION ID". Done twice: the script
     * that would record it may still be on its way in a link that has broken (intent_close.lua). */
    INTENT_FORGET
};

struct intent {
    struct intent *prev, *next; /* of all of the process */
    struct intent *after;       /* in its closer's line */
    enum intent_word word;
    unsigned stripe;
    bool told_again; /* copied since intents_again() */
    bool is_second;  /* INTENT_FORGET: for the second time; INTENT_KEPT: aged */
    bool is_shown;   /* by a probe, before its own end was known or told */
    uint64_t due_ms; /* of that */
    size_t len;
    char text[INTENT_TEXT_MAX];
};

struct intents {
    pthread_mutex_t mutex;
    struct intent *first;
    unsigned count; /* without those that are INTENT_ASKED */
    /* While a store gets again what it has lost nothing is closed: else what was closed in between would come
     * back. */
    atomic_bool again;
    atomic_uint closing; /* calls of closers that are under way */
};

void intents_init(struct intents *intents);
void intents_done(struct intents *intents);
unsigned intents_count(struct intents *intents);
/* All are to be told to the store again; then, call for call, at most `most` of one stripe of those that were
 * not yet copied since. How many. */
void intents_again(struct intents *intents);
unsigned intents_copy(struct intents *intents, struct intent *into, unsigned most);

/* Before the store is asked to record it. Then: the store says that it is recorded, to be sent; or that it is
 * queued, and is to be closed under this text. Or intent_end(), or intents_drop() when it certainly is not
 * recorded. */
struct intent *intent_ask(struct intents *intents, unsigned stripe, struct bytes text);
void intent_recorded(struct intents *intents, struct intent *intent, struct bytes text);
void intent_text(struct intents *intents, struct intent *intent, struct bytes text);
/* Of one that is open: more behind its kind (sticky.h). */
void intent_add_ids(struct intents *intents, struct intent *intent, struct bytes ids);
/* Of intent_closer.c. */
void intent_set_word(struct intents *intents, struct intent *intent, enum intent_word word);
/* Whether an intent that the store has of this very process is still in the list, in whatever way: what is
 * not has ended, and is not sent any more. The text is to have been listed before this is asked. */
bool intents_have(struct intents *intents, unsigned stripe, struct bytes text);
/* The store says that it is recorded. */
struct intent *intent_new(struct intents *intents, unsigned stripe, struct bytes text);
/* Its end is known after all, by a probe: nobody needs the one of this text that was unknown, or will be. */
void intents_drop_unknown(struct intents *intents, unsigned stripe, struct bytes text);
/* One of a former incarnation of this gateway, to be told to a store that loses it. Before a stripe is looked
 * through those of before are aged; when all that is there now is kept, the aged ones are forgotten. */
void intents_keep(struct intents *intents, unsigned stripe, struct bytes text);
void intents_age_kept(struct intents *intents, unsigned stripe);
void intents_forget_kept(struct intents *intents, unsigned stripe);
/* The store has it as u by now, and so has its text; freed when a probe had shown its end before. */
void intents_unknown(struct intents *intents, struct intent *intent);
/* Nobody needs it any more; freed. */
void intents_drop(struct intents *intents, struct intent *intent);

/* A part of a text: 0 name, 1 epoch, 2 token, 3 seq, 4 state, 5 kind, 6 gateway, 7 incarnation, 8 id,
 * 9 unknown, 10 at; empty when there is none. */
enum intent_part {
    INTENT_NAME,
    INTENT_EPOCH,
    INTENT_TOKEN,
    INTENT_SEQ,
    INTENT_STATE,
    INTENT_KIND,
    INTENT_GATEWAY,
    INTENT_INCARNATION,
    INTENT_ID,
    INTENT_POLICY,
    INTENT_AT
};
struct bytes intent_part(struct bytes text, enum intent_part part);

#endif
