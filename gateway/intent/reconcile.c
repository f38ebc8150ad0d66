/* reconcile.c - what this process had closed, and a store that was set back has open again.
 *
 *   reconcile_begin from the first stripe on
 *   reconcile_ask  intent_list.lua, a page of a stripe
 *   reconcile_told those of ours that are not in the list of the process are closed */
#include "gateway/intent/reconcile.h"

#include "scripts.h"

static bool reconcile_ask(struct reconcile *reconcile);
static store_done_fn reconcile_told;

bool reconcile_begin(struct reconcile *reconcile)
{
    reconcile->stripe = reconcile->found = 0;
    reconcile->from_len = 0;
    return reconcile_ask(reconcile);
}

static bool reconcile_ask(struct reconcile *reconcile)
{
    reconcile->call.store.done = reconcile_told;
    reconcile->argv[0] = keys_stripe(reconcile->key, reconcile->stripe);
    reconcile->argv[1] = BYTES("");
    reconcile->argv[2] = (struct bytes){reconcile->from, reconcile->from_len};
    reconcile->argv[3] = BYTES("100");
    return member_run(&reconcile->own->record.line, &reconcile->call, reconcile->stripe, &script_intent_list,
                      1, 1 + RECONCILE_PAGE_ARGS, reconcile->argv) == PROBLEM_NONE;
}

static bool is_own(const struct reconcile *reconcile, struct bytes text)
{
    const struct gateway *gateway = reconcile->own->gateway;

    return bytes_are(intent_part(text, INTENT_GATEWAY), gateway->id) &&
           bytes_are(intent_part(text, INTENT_INCARNATION), gateway->incarnation);
}

static void stray_close(struct reconcile *reconcile, struct bytes text)
{
    struct intents *intents = &reconcile->own->gateway->intents;

    if (text.len <= INTENT_TEXT_MAX && is_own(reconcile, text) &&
        !intents_have(intents, reconcile->stripe, text)) {
        intent_end(&reconcile->own->closer, intent_new(intents, reconcile->stripe, text), INTENT_CLOSE);
        reconcile->found++;
    }
}

static void found_log(const struct reconcile *reconcile)
{
    struct log_field fields[] = {LOG_I("intents", (int64_t)reconcile->found), LOG_END};

    if (reconcile->found > 0) {
        log_event(&reconcile->own->gateway->service->log, LOG_WARNING, "intents-closed-again", fields);
    }
}

/* {"listed", seq, what to go on behind, or "", {texts}} */
static enum step reconcile_told(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct reconcile *reconcile = container_of(call, struct reconcile, call.store);
    enum problem bad = member_problem(&reconcile->call, outcome, reply);
    const struct store_reply *texts;
    struct bytes from;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "listed")) {
        reconcile->ended(reconcile, false);
        return ANSWERED;
    }
    from = store_reply_text(reply, 2);
    texts = store_reply_list(reply, 3);
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        stray_close(reconcile, store_reply_text(texts, i));
    }
    reconcile->from_len = from.len <= sizeof(reconcile->from) ? from.len : 0;
    memcpy(reconcile->from, from.at != NULL ? from.at : "", reconcile->from_len);
    reconcile->stripe += reconcile->from_len == 0;
    if (reconcile->stripe == STRIPES) {
        found_log(reconcile);
        reconcile->ended(reconcile, true);
    } else if (!reconcile_ask(reconcile)) {
        reconcile->ended(reconcile, false);
    }
    return ANSWERED;
}
