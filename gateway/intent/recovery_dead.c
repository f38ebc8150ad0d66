/* recovery_dead.c - the intents of former incarnations of this gateway.
 *
 *   take_ask    intent_takeover.lua: those of the dead, one stripe after the other
 *   dead_ask    doubt_dead.lua: what a store may have lost of theirs nobody will record again */
#include "gateway/intent/recovery_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.h"

static void take_ask(struct takeover *takeover);
static store_done_fn take_answer;
static void dead_ask(struct takeover *takeover);
static store_done_fn dead_answer;

/* At least one word: none would mean all. */
static unsigned dead_put(struct takeover *takeover, unsigned at)
{
    takeover->argv[at] = BYTES("-");
    for (unsigned i = 0; i < takeover->dead.count; i++) {
        takeover->argv[at + i] = bytes_of(takeover->dead.dead[i]);
    }
    return takeover->dead.count > 0 ? takeover->dead.count : 1;
}

void takeover_take(struct takeover *takeover)
{
    take_ask(takeover);
}

static void take_ask(struct takeover *takeover)
{
    if (takeover->stripe == STRIPES) {
        dead_ask(takeover);
        return;
    }
    takeover_own(takeover, takeover->stripe);
    takeover->argv[3] = (struct bytes){takeover->from, takeover->from_len};
    takeover->argv[4] = BYTES("100");
    takeover_run(takeover, takeover->stripe, &script_intent_takeover, 4 + dead_put(takeover, 5), take_answer);
}

/* {"taken", seq, {texts of theirs that are open now}, where to go on} */
static enum step take_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct takeover *takeover = container_of(call, struct takeover, call.store);
    const struct store_reply *texts;
    struct bytes from;

    if (!takeover_told(takeover, outcome, reply, "taken")) {
        return ANSWERED;
    }
    texts = store_reply_list(reply, 2);
    from = store_reply_text(reply, 3);
    if (takeover->from_len == 0) {
        intents_age_kept(&takeover->own->gateway->intents, takeover->stripe);
    }
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        intents_keep(&takeover->own->gateway->intents, takeover->stripe, store_reply_text(texts, i));
        takeover->taken++;
    }
    takeover->from_len = from.len <= sizeof(takeover->from) ? from.len : 0;
    memcpy(takeover->from, from.at != NULL ? from.at : "", takeover->from_len);
    if (takeover->from_len == 0) {
        intents_forget_kept(&takeover->own->gateway->intents, takeover->stripe++);
    }
    take_ask(takeover);
    return ANSWERED;
}

/* Of whom nobody knows whether they are dead. */
static unsigned unproven_put(struct takeover *takeover, unsigned at)
{
    takeover->argv[at] = BYTES("open");
    for (unsigned i = 0; i < takeover->dead.others; i++) {
        takeover->argv[at + 1 + i] = bytes_of(takeover->dead.other[i]);
    }
    return 1 + takeover->dead.others;
}

static void dead_ask(struct takeover *takeover)
{
    bool is_lost = takeover->lost_unseen;
    unsigned args = 3;

    takeover_own(takeover, 0);
    /* A store was lost before we had seen what they had open: then only we know that they are in doubt. */
    takeover->argv[3] = is_lost ? BYTES("lost") : BYTES("these");
    args += dead_put(takeover, 1 + args);
    if (is_lost) {
        args += unproven_put(takeover, 1 + args);
    }
    takeover_run(takeover, 0, &script_doubt_dead, args, dead_answer);
}

static enum step dead_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct takeover *takeover = container_of(call, struct takeover, call.store);

    if (takeover_told(takeover, outcome, reply, "dead")) {
        int64_t roll = store_reply_integer(reply, 3);

        takeover->has_taken = true;
        if (roll > 0) {
            snprintf(takeover->roll, sizeof(takeover->roll), "%" PRId64, roll);
        }
        takeover_taken(takeover);
    }
    return ANSWERED;
}
