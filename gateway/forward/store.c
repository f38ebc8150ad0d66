/* store.c - how a forwarded request is admitted, and how it waits for its turn.
 *
 *   forward_ask      run intent_admit.lua, _check.lua, _promote.lua or _read.lua    suspended
 *   ask_answer       sent on, or refused                                            4xx | 503, or
 *   forward_queue    something older is open: wait
 *   forward_wake     ask again, probe, or give up                                   503 in-doubt */
#include <assert.h>
#include <stdio.h>

#include "gateway/forward/forward_internal.h"
#include "gateway/forward/sticky.h"
#include "gateway/intent/given_up.h"
#include "gateway/intent/unreported.h"
#include "scripts.h"

/* How long a queued request waits before it asks again by itself: its turn may come at another gateway.
 * ASKED_MS: the first time, when another one was asked to close what it may only keep open (sticky.h). */
enum { ASK_AGAIN_MS = 10, ASK_AGAIN_MAX_MS = 100, ASK_AGAIN_DOUBLES = 4, ASKED_MS = 2 };

static store_done_fn ask_answer;
static enum step forward_queue(struct forward *f, const struct store_reply *reply);

static const char cancelled[] =
    "Nothing was sent on: while this write waited for its turn an operator took it out (pawl resolve --id), "
    "or "
    "the store lost that it waits. Whether it is still to be done, somebody has to say.";

static const char *kind_of(const struct forward *f)
{
    const struct route *route = f->route;

    if (route->guarantee == ROUTE_ORDERED) {
        return route->serial ? "o+" : f->opens ? "o~" : "o";
    }
    if (route->aid == ROUTE_AID_IF_MATCH) {
        /* "Nothing is there" is a version that comes back: made, deleted, and a late request makes it again.
         * Such a write is ordered, and conditional ones wait for it (tests/model/conditional.pml). */
        return f->etag_len > 0 ? "c" : "o";
    }
    return route->aid == ROUTE_AID_CHECKS ? "k" : "a";
}

static const struct store_script *ask_fill(struct forward *f)
{
    struct fenced_call *fenced = &f->fenced;

    fenced->keys = fenced->args = 0;
    fenced_add_key(fenced, fenced_stripe(fenced));
    fenced_add_fence(fenced);
    fenced_add(fenced, bytes_of(f->route->check_text));
    fenced_add(fenced, bytes_of(f->use->table->hash));
    if (!f->is_write) {
        fenced_add(fenced, bytes_of(f->route->unknown_text));
        return &script_intent_read;
    }
    if (f->sticky != NULL) {
        fenced_add(fenced, sticky_text(f->sticky));
        return &script_intent_check;
    }
    fenced_add(fenced, bytes_of(kind_of(f)));
    fenced_add(fenced, bytes_of(f->own->gateway->id));
    fenced_add(fenced, bytes_of(f->own->gateway->incarnation));
    fenced_add(fenced, bytes_of(f->id));
    fenced_add(fenced, bytes_of(f->route->unknown_text));
    if (f->queued_len == 0) {
        if (epoch_is_full(f->own->record.line.store_epoch)) {
            fenced_add(fenced, BYTES("full"));
        }
        return &script_intent_admit;
    }
    fenced_add(fenced, (struct bytes){f->queued, f->queued_len});
    return &script_intent_promote;
}

enum step forward_away(struct forward *f, enum problem problem)
{
    forward_withdraw(f);
    return forward_over(f, fenced_fail(&f->fenced, problem));
}

/* Into the list before the store can know of it (intents.h): reconcile.c closes what is not there. */
static void admission_begin(struct forward *f)
{
    char text[INTENT_TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%.*s %s %s %s", (int)f->fenced.lease.len, f->fenced.lease.at,
                       f->own->gateway->id, f->own->gateway->incarnation, f->id);

    assert(len > 0 && (size_t)len < sizeof(text));
    f->intent = intent_ask(&f->own->gateway->intents, keys_stripe_of(f->fenced.lease),
                           (struct bytes){text, (size_t)len});
}

enum step forward_ask(struct forward *f)
{
    struct fenced_call *fenced = &f->fenced;
    const struct store_script *script;
    enum problem bad;

    if (f->is_write && f->intent == NULL) {
        forward_number(f); /* an admission of before may come back with a store that is set back */
    }
    if (f->intent == NULL) {
        sticky_take(f);
    }
    script = ask_fill(f);
    forward_enter(f, FORWARD_ASKING);
    if (f->route->guarantee == ROUTE_ORDERED && !forward_store_is_safe(f)) {
        return forward_away(f, PROBLEM_STORE_UNSAFE);
    }
    if (f->is_write && f->intent == NULL && f->sticky == NULL) {
        admission_begin(f);
    }
    f->asked_ms = loop_now_ms();
    fenced->record.store.done = ask_answer;
    bad = member_run(&f->own->record.line, &fenced->record, keys_stripe_of(fenced->lease), script,
                     fenced->keys, fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : forward_away(f, bad);
}

/* -- what may have been recorded, and is not to be */

static void admission_end(struct forward *f, enum intent_word word)
{
    intent_end(&f->own->closer, f->intent, word);
    f->intent = NULL;
    intent_closer_hurry(&f->own->closer);
}

/* Certainly nothing of it is recorded. */
static void admission_drop(struct forward *f)
{
    f->queued_len = 0;
    if (f->intent != NULL) {
        intents_drop(&f->own->gateway->intents, f->intent);
        f->intent = NULL;
    }
}

void forward_intent_end(struct forward *f, enum intent_word word)
{
    if (f->sticky != NULL) {
        sticky_leave(f, word);
    } else if (f->intent != NULL) {
        intent_end(&f->own->closer, f->intent, word);
        f->intent = NULL;
    }
}

void forward_withdraw(struct forward *f)
{
    if (f->sticky != NULL) {
        sticky_leave(f, INTENT_CLOSE);
    }
    if (f->queued_len > 0) {
        intent_text(&f->own->gateway->intents, f->intent, (struct bytes){f->queued, f->queued_len});
        admission_end(f, INTENT_CLOSE);
    }
    admission_drop(f);
}

/* Whether it was recorded nobody knows; it is never sent. */
static void admission_forget(struct forward *f)
{
    if (f->intent != NULL && f->queued_len == 0) { /* else forward_withdraw() knows it */
        admission_end(f, INTENT_FORGET);
    }
}

static enum step ask_failed(struct forward *f, enum problem bad)
{
    if (bad == PROBLEM_OUTCOME_UNKNOWN) {
        admission_forget(f);
        bad = PROBLEM_STORE_UNAVAILABLE;
    }
    return forward_away(f, bad);
}

/* -- what the script said */

/* {"sending", seq, mark, text} | {"accepted", seq, mark} */
static enum step forward_admitted(struct forward *f, const struct store_reply *reply)
{
    struct bytes text = store_reply_text(reply, 3);

    f->mark = store_reply_integer(reply, 2);
    f->queued_len = 0;
    fenced_let_through(&f->fenced);
    if (f->intent != NULL) {
        if (text.len == 0 || text.len > INTENT_TEXT_MAX) {
            admission_forget(f);
            return forward_away(f, PROBLEM_INTERNAL);
        }
        intent_recorded(&f->own->gateway->intents, f->intent, text);
    }
    /* A new epoch has begun since: what is open has been told to it, perhaps without this one. Only when it
     * is in the list can that be known (recover.c tells the list when the epoch has changed). Or an operator
     * may have removed it by now (given_up.h). */
    if (f->is_write && (f->fenced.record.epoch != epoch_number(f->own->record.line.store_epoch) ||
                        loop_now_ms() - f->asked_ms >= GIVEN_UP_SEND_MS)) {
        forward_intent_end(f, INTENT_CLOSE);
        return forward_away(f, PROBLEM_STORE_UNAVAILABLE);
    }
    if (f->intent != NULL) {
        sticky_recorded(f);
    }
    return forward_send(f);
}

/* "store", "GATEWAY INCARNATION" in place of a text: it waits for what that one has yet to say. */
static void doubtful_keep(struct forward *f, const struct store_reply *reply, size_t at)
{
    struct bytes who = bytes_are(store_reply_text(reply, at), "store") ? store_reply_text(reply, at + 1)
                                                                       : BYTES("");

    snprintf(f->doubtful, sizeof(f->doubtful), "%.*s", (int)who.len, who.at != NULL ? who.at : "");
}

static enum step ask_answer(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct forward *f = container_of(call, struct forward, fenced.record.store);
    enum problem bad = member_problem(&f->fenced.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return ask_failed(f, bad);
    }
    if (store_reply_is(reply, "sending") || store_reply_is(reply, "accepted")) {
        return forward_admitted(f, reply);
    }
    if (store_reply_is(reply, "queued") || store_reply_is(reply, "wait")) {
        return forward_queue(f, reply);
    }
    if (store_reply_is(reply, "missing")) {
        sticky_end(f->sticky);
        forward_withdraw(f);
        return forward_ask(f);
    }
    if (store_reply_is(reply, "refused")) {
        admission_drop(f); /* the script has taken it out */
        return forward_over(f, fenced_refuse_reply(&f->fenced, reply));
    }
    if (store_reply_is(reply, "cancelled")) {
        admission_drop(f);
        return forward_over(f, store_reply_text(reply, 2).len > 0 /* else the token is good */
                                   ? fenced_refuse_reply(&f->fenced, reply)
                                   : fenced_fail_final(&f->fenced, PROBLEM_IN_DOUBT, cancelled));
    }
    if (store_reply_is(reply, "routes-differ")) {
        atomic_store(&f->own->gateway->routes_differed, true);
        return forward_away(f, PROBLEM_ROUTES_DIFFER);
    }
    if (store_reply_is(reply, "store-full")) {
        return forward_away(f, PROBLEM_STORE_FULL);
    }
    if (store_reply_is(reply, "in-doubt") || store_reply_is(reply, "full")) {
        doubtful_keep(f, reply, 3);
        return forward_in_doubt(f);
    }
    admission_forget(f);
    return forward_away(f, PROBLEM_INTERNAL);
}

/* -- waiting */

static void text_keep(char into[INTENT_TEXT_MAX], size_t *len, struct bytes text)
{
    *len = text.len <= INTENT_TEXT_MAX ? text.len : 0;
    memcpy(into, text.at != NULL ? text.at : "", *len);
}

/* Whether what it waits for will not end by itself: its gateway will not learn how it ended. */
static bool is_in_doubt(const struct forward *f)
{
    struct bytes blocker = {f->blocker, f->blocker_len};
    struct bytes state = intent_part(blocker, INTENT_STATE), policy = intent_part(blocker, INTENT_POLICY);

    if (bytes_are(blocker, "store")) {
        return true;
    }
    /* The grace of a dead one ends, and soon as a rule. */
    return bytes_are(state, "u") || (bytes_are(state, "d") && (policy.len == 0 || policy.at[0] != 'g'));
}

/* {"queued", seq, mark, text, text of the first that it waits for} | {"wait", seq, mark, the same} */
static enum step forward_queue(struct forward *f, const struct store_reply *reply)
{
    unsigned doubles = f->tries < ASK_AGAIN_DOUBLES ? f->tries : ASK_AGAIN_DOUBLES;
    uint64_t wait_ms = (uint64_t)ASK_AGAIN_MS << doubles, now_ms = loop_now_ms();

    f->mark = store_reply_integer(reply, 2);
    if (f->is_write) {
        text_keep(f->queued, &f->queued_len, store_reply_text(reply, 3));
    }
    text_keep(f->blocker, &f->blocker_len, store_reply_text(reply, f->is_write ? 4 : 3));
    doubtful_keep(f, reply, f->is_write ? 4 : 3);
    if (f->tries++ == 0 &&
        bytes_are(intent_part((struct bytes){f->blocker, f->blocker_len}, INTENT_KIND), "o~")) {
        wait_ms = ASKED_MS;
    }
    forward_enter(f, FORWARD_QUEUED);
    if (forward_probe(f)) {
        return SUSPENDED;
    }
    if ((is_in_doubt(f) && !f->is_shown) || now_ms >= f->until_ms ||
        atomic_load(&f->own->worker->service->draining)) {
        return forward_in_doubt(f);
    }
    wait_ms = wait_ms < ASK_AGAIN_MAX_MS ? wait_ms : ASK_AGAIN_MAX_MS;
    forward_alarm(f, wait_ms < f->until_ms - now_ms ? wait_ms : f->until_ms - now_ms);
    return SUSPENDED;
}

void forward_wake(struct forward *f)
{
    assert(f->state == FORWARD_QUEUED);
    forward_ask(f);
}

enum step forward_in_doubt(struct forward *f)
{
    char detail[UNREPORTED_DETAIL_SIZE];

    if (f->doubtful[0] == '\0') {
        return forward_away(f, PROBLEM_IN_DOUBT);
    }
    unreported_detail(detail, "Nothing was sent on. ", bytes_of(f->doubtful));
    forward_withdraw(f);
    return forward_over(f, fenced_fail_detail(&f->fenced, PROBLEM_IN_DOUBT, detail));
}
