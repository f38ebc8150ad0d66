/* recovery_dead.c - the intents of former incarnations of this gateway.
 *
 *   take_ask    intent_takeover.lua: those of the dead, one stripe after the other
 *   dead_ask    unreported_dead.lua: what a store may have lost of theirs nobody will record again */
#include "gateway/intent/recovery_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.h"

static void take_ask(struct recovery *recovery);
static store_done_fn take_answer;
static void dead_ask(struct recovery *recovery);
static store_done_fn dead_answer;

/* At least one word: none would mean all. */
static unsigned dead_put(struct recovery *recovery, unsigned at)
{
    recovery->argv[at] = BYTES("-");
    for (unsigned i = 0; i < recovery->dead.count; i++) {
        recovery->argv[at + i] = bytes_of(recovery->dead.dead[i]);
    }
    return recovery->dead.count > 0 ? recovery->dead.count : 1;
}

void recovery_take(struct recovery *recovery)
{
    take_ask(recovery);
}

static void take_ask(struct recovery *recovery)
{
    if (recovery->stripe == STRIPES) {
        dead_ask(recovery);
        return;
    }
    recovery_own(recovery, recovery->stripe);
    recovery->argv[3] = (struct bytes){recovery->from, recovery->from_len};
    recovery->argv[4] = BYTES("100");
    recovery_run(recovery, recovery->stripe, &script_intent_takeover, 4 + dead_put(recovery, 5), take_answer);
}

/* {"taken", seq, {texts of theirs that are open now}, where to go on} */
static enum step take_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct recovery *recovery = container_of(call, struct recovery, call.store);
    const struct store_reply *texts;
    struct bytes from;

    if (!recovery_told(recovery, outcome, reply, "taken")) {
        return ANSWERED;
    }
    texts = store_reply_list(reply, 2);
    from = store_reply_text(reply, 3);
    if (recovery->from_len == 0) {
        intents_age_kept(&recovery->own->gateway->intents, recovery->stripe);
    }
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        intents_keep(&recovery->own->gateway->intents, recovery->stripe, store_reply_text(texts, i));
        recovery->taken++;
    }
    recovery->from_len = from.len <= sizeof(recovery->from) ? from.len : 0;
    memcpy(recovery->from, from.at != NULL ? from.at : "", recovery->from_len);
    if (recovery->from_len == 0) {
        intents_forget_kept(&recovery->own->gateway->intents, recovery->stripe++);
    }
    take_ask(recovery);
    return ANSWERED;
}

/* Of whom nobody knows whether they are dead. */
static unsigned unproven_put(struct recovery *recovery, unsigned at)
{
    recovery->argv[at] = BYTES("open");
    for (unsigned i = 0; i < recovery->dead.others; i++) {
        recovery->argv[at + 1 + i] = bytes_of(recovery->dead.other[i]);
    }
    return 1 + recovery->dead.others;
}

static void dead_ask(struct recovery *recovery)
{
    bool is_lost = recovery->lost_unseen;
    unsigned args = 3;

    recovery_own(recovery, 0);
    /* A store was lost before we had seen what they had open: then only we know that they are in doubt. */
    recovery->argv[3] = is_lost ? BYTES("lost") : BYTES("these");
    args += dead_put(recovery, 1 + args);
    if (is_lost) {
        args += unproven_put(recovery, 1 + args);
    }
    recovery_run(recovery, 0, &script_unreported_dead, args, dead_answer);
}

static enum step dead_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct recovery *recovery = container_of(call, struct recovery, call.store);

    if (recovery_told(recovery, outcome, reply, "dead")) {
        int64_t roll = store_reply_integer(reply, 3);

        recovery->has_taken = true;
        if (roll > 0) {
            snprintf(recovery->roll, sizeof(recovery->roll), "%" PRId64, roll);
        }
        recovery_taken(recovery);
    }
    return ANSWERED;
}
