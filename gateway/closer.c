/* closer.c - how intents are closed in the store.
 *
 *   intent_end    into the closer's line
 *   closer_poke   at the end of the turn: are there enough for a call, or is it time?
 *   closer_run    intent_close.lua for as many as one call takes
 *   closer_told   done: forgotten, or kept as unknown; else the same again a little later */
#include "gateway/intents.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway_scripts.h"

/* FORGET_AGAIN_MS: a script is refused 2 s after it was sent (AHEAD_MS in shared/record/stripe.lua). */
/* GATHER_MS: a call for many costs the store a quarter of what a call for each would (docs/bench.md); whoever
 * waits for one of them waits so much longer. */
enum { GATHER_MS = 2, CLOSE_AGAIN_MS = 50, FORGET_AGAIN_MS = 3000 };

static void closer_poke(struct closer *closer);
static void closer_run(struct closer *closer);
static enum step closer_told(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply);

void closer_hurry(struct closer *closer)
{
    closer->hurries = true;
}

static void closer_line_up(struct closer *closer, struct intent *intent)
{
    intent->after = NULL;
    *closer->end = intent;
    closer->end = &intent->after;
    closer->waiting++;
}

void intent_end(struct closer *closer, struct intent *intent, enum intent_word word)
{
    assert(intent->word == INTENT_OPEN && word != INTENT_OPEN);
    pthread_mutex_lock(&closer->intents->mutex);
    intent->word = word;
    pthread_mutex_unlock(&closer->intents->mutex);
    closer_line_up(closer, intent);
    loop_again(closer->loop); /* if our hook has had its go in this turn */
}

/* -- the closer */

static void closer_hook(struct loop_hook *hook)
{
    closer_poke(container_of(hook, struct closer, hook));
}

/* Those whose time has come. */
static void forget_again(struct closer *closer)
{
    uint64_t now_ms = loop_now_ms();

    while (closer->later != NULL && closer->later->due_ms <= now_ms) {
        struct intent *intent = closer->later;

        closer->later = intent->after;
        if (closer->later == NULL) {
            closer->later_end = &closer->later;
        }
        closer_line_up(closer, intent);
    }
    if (closer->later != NULL) {
        loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
    }
}

static void forget_later(struct closer *closer, struct intent *intent)
{
    intent->is_second = true;
    intent->due_ms = loop_now_ms() + FORGET_AGAIN_MS;
    intent->after = NULL;
    *closer->later_end = intent;
    closer->later_end = &intent->after;
    loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
}

static void closer_tick(struct loop_timer *timer)
{
    struct closer *closer = container_of(timer, struct closer, timer);

    closer->gathers = false;
    forget_again(closer);
    closer_run(closer);
}

void closer_init(struct closer *closer, struct loop *loop, struct record_line *line, struct intents *intents)
{
    *closer = (struct closer){.intents = intents, .line = line, .loop = loop};
    closer->end = &closer->first;
    closer->later_end = &closer->later;
    loop_timer_init(loop, &closer->timer, closer_tick);
    loop_hook_add(loop, &closer->hook, closer_hook);
}

void closer_stop(struct closer *closer)
{
    loop_timer_done(&closer->timer);
    loop_hook_remove(closer->loop, &closer->hook);
    closer->stopped = true;
}

bool closer_is_idle(const struct closer *closer)
{
    return closer->waiting == 0 && closer->later == NULL && !closer->in_flight;
}

static const char *word_of(const struct intent *intent)
{
    static const char *const words[] = {
        [INTENT_OPEN] = "",           [INTENT_CLOSE] = "close", [INTENT_SETTLE] = "settle",
        [INTENT_UNKNOWN] = "unknown", [INTENT_KEPT] = "",       [INTENT_FORGET] = "forget"};

    return words[intent->word];
}

/* The place of its stripe among the keys; a new one behind them if need be. */
static unsigned stripe_place(struct closer *closer, unsigned stripe, unsigned *keys)
{
    char key[KEYS_STRIPE_SIZE];
    struct bytes wanted = keys_stripe(key, stripe);

    for (unsigned i = 0; i < *keys; i++) {
        if (bytes_equal(closer->argv[i], wanted)) {
            return i;
        }
    }
    closer->argv[*keys] = keys_stripe(closer->stripes[*keys], stripe);
    return (*keys)++;
}

static struct intent *line_take(struct closer *closer)
{
    struct intent *intent = closer->first;

    closer->first = intent->after;
    if (closer->first == NULL) {
        closer->end = &closer->first;
    }
    closer->waiting--;
    return intent;
}

static void batch_fill(struct closer *closer, unsigned *keys)
{
    unsigned places[CLOSE_MAX];

    *keys = 0;
    for (closer->batch = 0; closer->batch < CLOSE_MAX && closer->first != NULL; closer->batch++) {
        struct intent *intent = line_take(closer);

        closer->batched[closer->batch] = intent;
        places[closer->batch] = stripe_place(closer, intent->stripe, keys);
    }
    for (unsigned i = 0; i < closer->batch; i++) {
        const struct intent *intent = closer->batched[i];
        int len = snprintf(closer->texts[i], sizeof(closer->texts[i]), "%u %s %.*s", places[i] + 1,
                           word_of(intent), (int)intent->len, intent->text);

        assert(len > 0 && (size_t)len < sizeof(closer->texts[i]));
        closer->argv[*keys + i] = (struct bytes){closer->texts[i], (size_t)len};
    }
}

/* Into the line again, in front. */
static void batch_back(struct closer *closer)
{
    for (unsigned i = closer->batch; i > 0; i--) {
        struct intent *intent = closer->batched[i - 1];

        intent->after = closer->first;
        if (closer->first == NULL) {
            closer->end = &intent->after;
        }
        closer->first = intent;
        closer->waiting++;
    }
    closer->batch = 0;
    loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
}

/* Whether a call is under way. */
static bool closer_ask(struct closer *closer)
{
    unsigned keys;

    if (record_line_problem(closer->line) != PROBLEM_NONE) {
        return false;
    }
    batch_fill(closer, &keys);
    closer->call.store.done = closer_told;
    closer->in_flight = record_run(closer->line, &closer->call, closer->batched[0]->stripe,
                                   &script_intent_close, keys, keys + closer->batch,
                                   closer->argv) == PROBLEM_NONE;
    if (!closer->in_flight) {
        batch_back(closer);
    }
    return closer->in_flight;
}

static void closer_poke(struct closer *closer)
{
    if (closer->waiting >= CLOSE_MAX || closer->hurries) {
        closer->hurries = false;
        closer_run(closer);
    } else if (closer->waiting > 0 && !closer->in_flight && !closer->gathers) {
        closer->gathers = true;
        loop_timer_arm(&closer->timer, GATHER_MS, 0);
    }
}

static void closer_run(struct closer *closer)
{
    if (closer->first == NULL || closer->in_flight) {
        return;
    }
    atomic_fetch_add(&closer->intents->closing, 1);
    if (!atomic_load(&closer->intents->again) && closer_ask(closer)) {
        return;
    }
    atomic_fetch_sub(&closer->intents->closing, 1);
    loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
}
static void one_told(struct closer *closer, struct intent *intent)
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

static enum step closer_told(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct closer *closer = container_of(call, struct closer, call.store);
    enum problem bad = record_problem(&closer->call, outcome, reply);

    closer->in_flight = false;
    atomic_fetch_sub(&closer->intents->closing, 1);
    if (closer->stopped) {
        closer->batch = 0; /* they are the list's */
        return ANSWERED;
    }
    if (bad != PROBLEM_NONE || !store_reply_is(reply, "closed")) {
        batch_back(closer);
        return ANSWERED;
    }
    for (unsigned i = 0; i < closer->batch; i++) {
        one_told(closer, closer->batched[i]);
    }
    closer->batch = 0;
    closer_poke(closer);
    return ANSWERED;
}
