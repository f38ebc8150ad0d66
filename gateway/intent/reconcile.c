/* reconcile.c - what this process had closed, and a store that was set back has open again.
 *
 *   strays_begin   from the first stripe on
 *   strays_ask     intent_list.lua, a page of a stripe
 *   strays_told    those of ours that are not in the list of the process are closed */
#include "gateway/intent/reconcile.h"

#include "scripts.h"

static bool strays_ask(struct strays *strays);
static store_done_fn strays_told;

bool strays_begin(struct strays *strays)
{
    strays->stripe = strays->found = 0;
    strays->from_len = 0;
    return strays_ask(strays);
}

static bool strays_ask(struct strays *strays)
{
    strays->call.store.done = strays_told;
    strays->argv[0] = keys_stripe(strays->key, strays->stripe);
    strays->argv[1] = BYTES("");
    strays->argv[2] = (struct bytes){strays->from, strays->from_len};
    strays->argv[3] = BYTES("100");
    return record_run(&strays->own->record.line, &strays->call, strays->stripe, &script_intent_list, 1,
                      1 + STRAYS_PAGE_ARGS, strays->argv) == PROBLEM_NONE;
}

static bool is_own(const struct strays *strays, struct bytes text)
{
    const struct gateway *gateway = strays->own->gateway;

    return bytes_are(intent_part(text, INTENT_GATEWAY), gateway->id) &&
           bytes_are(intent_part(text, INTENT_INCARNATION), gateway->incarnation);
}

static void stray_close(struct strays *strays, struct bytes text)
{
    struct intents *intents = &strays->own->gateway->intents;

    if (text.len <= INTENT_TEXT_MAX && is_own(strays, text) && !intents_have(intents, strays->stripe, text)) {
        intent_end(&strays->own->closer, intent_new(intents, strays->stripe, text), INTENT_CLOSE);
        strays->found++;
    }
}

static void found_log(const struct strays *strays)
{
    struct log_field fields[] = {LOG_I("intents", (int64_t)strays->found), LOG_END};

    if (strays->found > 0) {
        log_event(&strays->own->gateway->service->log, LOG_WARNING, "intents-closed-again", fields);
    }
}

/* {"listed", seq, what to go on behind, or "", {texts}} */
static enum step strays_told(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct strays *strays = container_of(call, struct strays, call.store);
    enum problem bad = record_problem(&strays->call, outcome, reply);
    const struct store_reply *texts;
    struct bytes from;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "listed")) {
        strays->ended(strays, false);
        return ANSWERED;
    }
    from = store_reply_text(reply, 2);
    texts = store_reply_list(reply, 3);
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        stray_close(strays, store_reply_text(texts, i));
    }
    strays->from_len = from.len <= sizeof(strays->from) ? from.len : 0;
    memcpy(strays->from, from.at != NULL ? from.at : "", strays->from_len);
    strays->stripe += strays->from_len == 0;
    if (strays->stripe == STRIPES) {
        found_log(strays);
        strays->ended(strays, true);
    } else if (!strays_ask(strays)) {
        strays->ended(strays, false);
    }
    return ANSWERED;
}
