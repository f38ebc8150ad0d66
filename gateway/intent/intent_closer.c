/* intent_closer.c - how intents are closed in the store.
 *
 *   intent_end    into the closer's line
 *   intent_closer_poke at the end of the turn: are there enough for a call, or is it time?
 *   intent_closer_run intent_close.lua for as many as one call takes
 *   intent_closer_told done: forgotten, or kept as unknown; else the same again a little later
 *
 * No word overtakes the admission that it is about. A "close" or "settle" names a text that the admission's
 * answer has brought; a "forget" is asked for when the admission's call has ended: UNKNOWN, so its link is
 * gone with all that was on it (and the second "forget" follows what may still arrive), or with an answer. An
 * admission that is sent again (the library was loaded, a batch did not run) has not ended. */
#include "gateway/intent/intent_closer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "scripts.h"
#include "shared/text/memory.h"

/* FORGET_AGAIN_MS: a script is refused 2 s after it was sent (AHEAD_MS in
 * shared/member/scripts/lib/stripe.lua). GATHER_MS: a call for many costs the store a quarter of what a call
 * for each would (docs/bench.md); whoever waits for one of them waits so much longer. */
enum { GATHER_MS = 2, CLOSE_AGAIN_MS = 50, FORGET_AGAIN_MS = 3000 };

/* A call under way. */
struct closing {
    struct intent_closer *closer;
    struct member_call call;
    unsigned count, keys;
    struct intent *intents[CLOSE_MAX];
    char stripes[CLOSE_MAX][KEYS_STRIPE_SIZE];
    char texts[CLOSE_MAX][INTENT_TEXT_MAX + 16];
    struct bytes argv[2 * CLOSE_MAX + MEMBER_ARGS];
};

static bool intent_closer_run(struct intent_closer *closer);
static store_done_fn intent_closer_told;

void intent_closer_hurry(struct intent_closer *closer)
{
    closer->hurries = true;
}

static void intent_closer_line_up(struct intent_closer *closer, struct intent *intent)
{
    intent->after = NULL;
    *closer->end = intent;
    closer->end = &intent->after;
    closer->waiting++;
}

void intent_end(struct intent_closer *closer, struct intent *intent, enum intent_word word)
{
    intent_set_word(closer->intents, intent, word);
    intent_closer_line_up(closer, intent);
    loop_again(closer->loop); /* if our hook has had its go in this turn */
}

/* -- the closer */

static void intent_closer_hook(struct loop_hook *hook)
{
    intent_closer_poke(container_of(hook, struct intent_closer, hook));
}

/* Those whose time has come. */
static void forget_again(struct intent_closer *closer)
{
    uint64_t now_ms = loop_now_ms();

    while (closer->later != NULL && closer->later->due_ms <= now_ms) {
        struct intent *intent = closer->later;

        closer->later = intent->after;
        if (closer->later == NULL) {
            closer->later_end = &closer->later;
        }
        intent_closer_line_up(closer, intent);
    }
    if (closer->later != NULL) {
        loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
    }
}

static void forget_later(struct intent_closer *closer, struct intent *intent)
{
    intent->is_second = true;
    intent->due_ms = loop_now_ms() + FORGET_AGAIN_MS;
    intent->after = NULL;
    *closer->later_end = intent;
    closer->later_end = &intent->after;
    if (!closer->gathers && !closer->rests) {
        loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
    }
}

/* Nothing is asked before that. */
static void intent_closer_rest(struct intent_closer *closer)
{
    closer->rests = true;
    loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
}

static void intent_closer_tick(struct loop_timer *timer)
{
    struct intent_closer *closer = container_of(timer, struct intent_closer, timer);

    closer->gathers = closer->rests = false;
    forget_again(closer);
    while (closer->waiting > 0 && intent_closer_run(closer)) {
    }
}

void intent_closer_init(struct intent_closer *closer, struct loop *loop, struct member_line *line,
                        struct intents *intents)
{
    *closer = (struct intent_closer){.intents = intents, .line = line, .loop = loop};
    closer->end = &closer->first;
    closer->later_end = &closer->later;
    loop_timer_init(loop, &closer->timer, intent_closer_tick);
    loop_hook_add(loop, &closer->hook, intent_closer_hook);
}

void intent_closer_stop(struct intent_closer *closer)
{
    loop_timer_done(&closer->timer);
    loop_hook_remove(closer->loop, &closer->hook);
    closer->stopped = true;
}

bool intent_closer_is_idle(const struct intent_closer *closer)
{
    return closer->waiting == 0 && closer->later == NULL && closer->in_flight == 0;
}

void intent_closer_poke(struct intent_closer *closer)
{
    while (!closer->rests && (closer->waiting >= CLOSE_MAX || (closer->hurries && closer->waiting > 0)) &&
           intent_closer_run(closer)) {
    }
    closer->hurries = false;
    if (closer->waiting > 0 && !closer->rests && !closer->gathers) {
        closer->gathers = true;
        loop_timer_arm(&closer->timer, GATHER_MS, 0);
    }
}

/* -- a call */

static const char *word_of(const struct intent *intent)
{
    static const char *const words[] = {
        [INTENT_ASKED] = "",        [INTENT_OPEN] = "",           [INTENT_CLOSE] = "close",
        [INTENT_SETTLE] = "settle", [INTENT_UNKNOWN] = "unknown", [INTENT_KEPT] = "",
        [INTENT_FORGET] = "forget"};

    return words[intent->word];
}

/* The place of its stripe among the keys; a new one behind them if need be. */
static unsigned stripe_place(struct closing *closing, unsigned stripe)
{
    char key[KEYS_STRIPE_SIZE];
    struct bytes wanted = keys_stripe(key, stripe);

    for (unsigned i = 0; i < closing->keys; i++) {
        if (bytes_equal(closing->argv[i], wanted)) {
            return i;
        }
    }
    closing->argv[closing->keys] = keys_stripe(closing->stripes[closing->keys], stripe);
    return closing->keys++;
}

static struct intent *line_take(struct intent_closer *closer)
{
    struct intent *intent = closer->first;

    closer->first = intent->after;
    if (closer->first == NULL) {
        closer->end = &closer->first;
    }
    closer->waiting--;
    return intent;
}

static struct closing *closing_new(struct intent_closer *closer)
{
    struct closing *closing = must_have(malloc(sizeof(*closing)));
    unsigned places[CLOSE_MAX];

    closing->closer = closer;
    closing->keys = 0;
    for (closing->count = 0; closing->count < CLOSE_MAX && closer->first != NULL; closing->count++) {
        closing->intents[closing->count] = line_take(closer);
        places[closing->count] = stripe_place(closing, closing->intents[closing->count]->stripe);
    }
    for (unsigned i = 0; i < closing->count; i++) {
        const struct intent *intent = closing->intents[i];
        int len = snprintf(closing->texts[i], sizeof(closing->texts[i]), "%u %s %.*s", places[i] + 1,
                           word_of(intent), (int)intent->len, intent->text);

        assert(len > 0 && (size_t)len < sizeof(closing->texts[i]));
        closing->argv[closing->keys + i] = (struct bytes){closing->texts[i], (size_t)len};
    }
    return closing;
}

/* Its intents go into the line again, in front. */
static void closing_back(struct closing *closing)
{
    struct intent_closer *closer = closing->closer;

    for (unsigned i = closing->count; i > 0; i--) {
        struct intent *intent = closing->intents[i - 1];

        intent->after = closer->first;
        if (closer->first == NULL) {
            closer->end = &intent->after;
        }
        closer->first = intent;
        closer->waiting++;
    }
    free(closing);
}

static bool intent_closer_ask(struct intent_closer *closer)
{
    struct closing *closing;

    if (member_line_problem(closer->line) != PROBLEM_NONE) {
        return false;
    }
    closing = closing_new(closer);
    assert(closing->count > 0); /* who calls has looked */
    closing->call.store.done = intent_closer_told;
    if (member_run(closer->line, &closing->call, closing->intents[0]->stripe, &script_intent_close,
                   closing->keys, closing->keys + closing->count, closing->argv) != PROBLEM_NONE) {
        closing_back(closing);
        return false;
    }
    closer->in_flight++;
    return true;
}

/* Whether a call is under way. */
static bool intent_closer_run(struct intent_closer *closer)
{
    atomic_fetch_add(&closer->intents->closing, 1);
    if (!atomic_load(&closer->intents->again) && intent_closer_ask(closer)) {
        return true;
    }
    atomic_fetch_sub(&closer->intents->closing, 1);
    intent_closer_rest(closer);
    return false;
}

static void one_told(struct intent_closer *closer, struct intent *intent)
{
    enum intent_word word = intent->word;
    char name[NAME_MAX_BYTES];
    struct bytes lease = intent_part((struct bytes){intent->text, intent->len}, INTENT_NAME);

    assert(lease.len <= sizeof(name));
    memcpy(name, lease.at, lease.len);
    lease.at = name;
    if (word == INTENT_UNKNOWN) {
        intents_unknown(closer->intents, intent);
    } else if (word == INTENT_FORGET && !intent->is_second) {
        forget_later(closer, intent);
    } else {
        intents_drop(closer->intents, intent);
    }
    if (closer->closed != NULL) {
        closer->closed(closer, lease);
    }
}

static enum step intent_closer_told(struct store_call *call, enum store_outcome outcome,
                                    const struct store_reply *reply)
{
    struct closing *closing = container_of(call, struct closing, call.store);
    struct intent_closer *closer = closing->closer;
    enum problem bad = member_problem(&closing->call, outcome, reply);

    closer->in_flight--;
    atomic_fetch_sub(&closer->intents->closing, 1);
    if (closer->stopped) {
        free(closing); /* they are the list's */
    } else if (bad != PROBLEM_NONE || !store_reply_is(reply, "closed")) {
        closing_back(closing);
        intent_closer_rest(closer);
    } else {
        for (unsigned i = 0; i < closing->count; i++) {
            one_told(closer, closing->intents[i]);
        }
        free(closing);
        intent_closer_poke(closer);
    }
    return ANSWERED;
}
