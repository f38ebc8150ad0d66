/* intents.c - the list of the intents of this process that are open, and how they are closed in the store.
 *
 *   intent_end           into the closer's line
 *   intent_closer_poke   at the end of the turn: are there enough for a call, or is it time?
 *   intent_closer_run    intent_close.lua for as many as one call takes
 *   closing_ended        done: forgotten, or kept as unknown; else the same again a little later
 *
 * No word overtakes the admission that it is about. A "close" or "settle" names a text that the admission's
 * answer has brought; a "forget" is asked for when the admission's call has ended: UNKNOWN, so its link is
 * gone with all that was on it (and the second "forget" follows what may still arrive), or with an answer. An
 * admission that is sent again (the library was loaded, a batch did not run) has not ended. */
#include "gateway/intent/intent.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "scripts.h"
#include "shared/text/memory.h"

void intents_init(struct intents *intents)
{
    *intents = (struct intents){.count = 0};
    if (pthread_mutex_init(&intents->mutex, NULL) != 0)
        abort();
}

void intents_done(struct intents *intents)
{
    while (!LIST_EMPTY(&intents->all)) {
        struct intent *one = LIST_FIRST(&intents->all);

        LIST_REMOVE(one, all);
        free(one);
    }
    pthread_mutex_destroy(&intents->mutex);
}

unsigned intents_count(struct intents *intents)
{
    unsigned count;

    pthread_mutex_lock(&intents->mutex);
    count = intents->count;
    pthread_mutex_unlock(&intents->mutex);
    return count;
}

unsigned intents_copy(struct intents *intents, struct intent *into, unsigned most)
{
    unsigned count = 0;
    struct intent *one;

    pthread_mutex_lock(&intents->mutex);
    LIST_FOREACH(one, &intents->all, all)
    {
        if (count < most && !one->is_copied && (count == 0 || one->stripe == into[0].stripe) &&
            (one->word == INTENT_OPEN || one->word == INTENT_UNKNOWN || one->word == INTENT_KEPT)) {
            one->is_copied = true;
            into[count].stripe = one->stripe;
            into[count].len = one->len;
            memcpy(into[count++].text, one->text, one->len);
        }
    }
    pthread_mutex_unlock(&intents->mutex);
    return count;
}

void intents_again(struct intents *intents)
{
    struct intent *one;

    pthread_mutex_lock(&intents->mutex);
    LIST_FOREACH(one, &intents->all, all)
    {
        one->is_copied = false;
    }
    pthread_mutex_unlock(&intents->mutex);
}

/* With the mutex held. */
static void intents_unlink(struct intents *intents, struct intent *intent)
{
    LIST_REMOVE(intent, all);
    intents->count -= intent->word != INTENT_ASKED;
}

void intents_drop(struct intents *intents, struct intent *intent)
{
    pthread_mutex_lock(&intents->mutex);
    intents_unlink(intents, intent);
    pthread_mutex_unlock(&intents->mutex);
    free(intent);
}

struct bytes intent_part(struct bytes text, enum intent_part part)
{
    unsigned at = part == INTENT_IDENTITY ? INTENT_POLICY : (unsigned)part;
    struct bytes policy;

    for (unsigned i = 0; i < at; i++)
        bytes_cut(&text, ' ');
    text = bytes_cut(&text, ' ');
    if (at != INTENT_POLICY)
        return text;
    policy = bytes_cut(&text, '@');
    return part == INTENT_IDENTITY ? text : policy;
}

struct intent *intent_new(struct intents *intents, unsigned stripe, struct bytes text, enum intent_word word)
{
    struct intent *intent = must_have(malloc(sizeof(*intent)));

    assert(text.len <= INTENT_TEXT_MAX);
    intent->word = word;
    intent->stripe = stripe;
    intent->is_copied = intent->is_second = intent->is_shown = false;
    intent->len = text.len;
    memcpy(intent->text, text.at, text.len);
    pthread_mutex_lock(&intents->mutex);
    LIST_INSERT_HEAD(&intents->all, intent, all);
    intents->count += word != INTENT_ASKED;
    pthread_mutex_unlock(&intents->mutex);
    return intent;
}

/* With the mutex held. */
static void word_put(struct intents *intents, struct intent *intent, enum intent_word word)
{
    intents->count += intent->word == INTENT_ASKED;
    intent->word = word;
}

static void text_put(struct intent *intent, struct bytes text)
{
    assert(intent->word == INTENT_ASKED && text.len <= INTENT_TEXT_MAX);
    intent->len = text.len;
    memcpy(intent->text, text.at, text.len);
}

void intent_recorded(struct intents *intents, struct intent *intent, struct bytes text)
{
    pthread_mutex_lock(&intents->mutex);
    text_put(intent, text);
    word_put(intents, intent, INTENT_OPEN);
    intent->is_copied = true; /* this very store has it; else there would be no end of copying under load */
    pthread_mutex_unlock(&intents->mutex);
}

void intent_text(struct intents *intents, struct intent *intent, struct bytes text)
{
    pthread_mutex_lock(&intents->mutex);
    text_put(intent, text);
    pthread_mutex_unlock(&intents->mutex);
}

void intent_add_ids(struct intents *intents, struct intent *intent, struct bytes ids)
{
    struct bytes kind = intent_part((struct bytes){intent->text, intent->len}, INTENT_KIND);
    char *at = intent->text + (kind.at - intent->text) + kind.len;

    pthread_mutex_lock(&intents->mutex);
    assert(intent->word == INTENT_OPEN && kind.len > 0 && intent->len + ids.len <= INTENT_TEXT_MAX);
    memmove(at + ids.len, at, (size_t)(intent->text + intent->len - at));
    memcpy(at, ids.at, ids.len);
    intent->len += ids.len;
    pthread_mutex_unlock(&intents->mutex);
}

void intent_set_word(struct intents *intents, struct intent *intent, enum intent_word word)
{
    assert(word != INTENT_ASKED && word != INTENT_OPEN);
    pthread_mutex_lock(&intents->mutex);
    assert(intent->word == INTENT_ASKED || intent->word == INTENT_OPEN);
    word_put(intents, intent, word);
    pthread_mutex_unlock(&intents->mutex);
}

/* Both of this process. An admission that is under way is known by its number alone. */
static bool is_same(const struct intent *one, struct bytes text)
{
    const enum intent_part short_id = INTENT_SEQ; /* the last of its four words */
    static const enum intent_part parts[] = {INTENT_NAME,    INTENT_EPOCH,       INTENT_TOKEN, INTENT_SEQ,
                                             INTENT_GATEWAY, INTENT_INCARNATION, INTENT_ID};
    struct bytes own = {one->text, one->len};

    if (intent_part(own, INTENT_ID).len == 0)
        return bytes_equal(intent_part(own, short_id), intent_part(text, INTENT_ID));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!bytes_equal(intent_part(own, parts[i]), intent_part(text, parts[i])))
            return false;
    return true;
}

bool intents_have(struct intents *intents, unsigned stripe, struct bytes text)
{
    struct intent *one;
    bool has = false;

    pthread_mutex_lock(&intents->mutex);
    LIST_FOREACH(one, &intents->all, all)
    {
        if (one->stripe != stripe || !is_same(one, text))
            continue;
        has = true;
        one->is_second &= one->word != INTENT_UNKNOWN;
    }
    pthread_mutex_unlock(&intents->mutex);
    return has;
}

void intents_drop_unknown(struct intents *intents, unsigned stripe, struct bytes text)
{
    struct intent *one;

    pthread_mutex_lock(&intents->mutex);
    LIST_FOREACH(one, &intents->all, all)
    {
        struct bytes own = {one->text, one->len};

        if ((one->word != INTENT_OPEN && one->word != INTENT_UNKNOWN) || one->stripe != stripe ||
            !is_same(one, text))
            continue;
        if (one->word == INTENT_UNKNOWN && bytes_are(intent_part(own, INTENT_STATE), "u")) {
            intents_unlink(intents, one); /* no closer has it any more */
            free(one);
        } else {
            one->is_shown = true;
        }
        break;
    }
    pthread_mutex_unlock(&intents->mutex);
}

bool intents_keep(struct intents *intents, unsigned stripe, struct bytes text)
{
    return text.len <= INTENT_TEXT_MAX && intent_new(intents, stripe, text, INTENT_KEPT) != NULL;
}

void intents_age(struct intents *intents, unsigned stripe, enum intent_word word)
{
    struct intent *one;

    pthread_mutex_lock(&intents->mutex);
    LIST_FOREACH(one, &intents->all, all)
    {
        struct bytes own = {one->text, one->len};

        one->is_second |= one->word == word && one->stripe == stripe &&
                          (word == INTENT_KEPT || bytes_are(intent_part(own, INTENT_STATE), "u"));
    }
    pthread_mutex_unlock(&intents->mutex);
}

void intents_forget_aged(struct intents *intents, unsigned stripe, enum intent_word word)
{
    pthread_mutex_lock(&intents->mutex);
    for (struct intent *one = LIST_FIRST(&intents->all), *next; one != NULL; one = next) {
        next = LIST_NEXT(one, all);
        if (one->word == word && one->is_second && one->stripe == stripe) {
            intents_unlink(intents, one);
            free(one);
        }
    }
    pthread_mutex_unlock(&intents->mutex);
}

void intents_unknown(struct intents *intents, struct intent *intent)
{
    struct bytes state = intent_part((struct bytes){intent->text, intent->len}, INTENT_STATE);

    pthread_mutex_lock(&intents->mutex);
    if (intent->is_shown) {
        intents_unlink(intents, intent);
        free(intent);
    } else if (state.len == 1) {
        intent->text[state.at - intent->text] = 'u';
    }
    pthread_mutex_unlock(&intents->mutex);
}

/* -- the closer */

/* FORGET_AGAIN_MS: a script is refused 2 s after it was sent (AHEAD_MS in
 * shared/member/scripts/lib/stripe.lua). GATHER_MS: a call for many costs the store a quarter of what a call
 * for each would (docs/bench.md); a write that waits for one of them waits so much longer. */
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
static member_done_fn closing_ended;

static void line_put(struct intent_line *line, struct intent *intent)
{
    STAILQ_INSERT_TAIL(&line->queue, intent, after);
    line->count++;
}

static struct intent *line_take(struct intent_line *line)
{
    struct intent *intent = STAILQ_FIRST(&line->queue);

    STAILQ_REMOVE_HEAD(&line->queue, after);
    line->count--;
    return intent;
}

void intent_closer_hurry(struct intent_closer *closer)
{
    closer->hurries = true;
}

void intent_end(struct intent_closer *closer, struct intent *intent, enum intent_word word)
{
    intent_set_word(closer->intents, intent, word);
    line_put(&closer->waiting, intent);
    loop_again(closer->loop); /* if our hook has had its go in this turn */
}

static void intent_closer_hook(struct loop_hook *hook)
{
    intent_closer_poke(container_of(hook, struct intent_closer, hook));
}

/* Those whose time has come. */
static void forget_again(struct intent_closer *closer)
{
    uint64_t now_ms = loop_now_ms();

    while (closer->later.count > 0 && STAILQ_FIRST(&closer->later.queue)->due_ms <= now_ms)
        line_put(&closer->waiting, line_take(&closer->later));
    if (closer->later.count > 0)
        loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
}

static void forget_later(struct intent_closer *closer, struct intent *intent)
{
    intent->is_second = true;
    intent->due_ms = loop_now_ms() + FORGET_AGAIN_MS;
    line_put(&closer->later, intent);
    if (!closer->gathers && !closer->rests)
        loop_timer_arm(&closer->timer, CLOSE_AGAIN_MS, 0);
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
    while (closer->waiting.count > 0 && intent_closer_run(closer)) {
    }
}

void intent_closer_init(struct intent_closer *closer, struct loop *loop, struct member_line *line,
                        struct intents *intents)
{
    *closer = (struct intent_closer){.intents = intents, .line = line, .loop = loop};
    STAILQ_INIT(&closer->waiting.queue);
    STAILQ_INIT(&closer->later.queue);
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
    return closer->waiting.count == 0 && closer->later.count == 0 && closer->in_flight == 0;
}

void intent_closer_poke(struct intent_closer *closer)
{
    unsigned least = closer->hurries ? 1 : CLOSE_MAX;

    while (!closer->rests && closer->waiting.count >= least && intent_closer_run(closer)) {
    }
    closer->hurries = false;
    if (closer->waiting.count > 0 && !closer->rests && !closer->gathers) {
        closer->gathers = true;
        loop_timer_arm(&closer->timer, GATHER_MS, 0);
    }
}

/* -- a call */

/* The place of its stripe among the keys; a new one behind them if need be. */
static unsigned stripe_place(struct closing *closing, unsigned stripe)
{
    char key[KEYS_STRIPE_SIZE];
    struct bytes wanted = keys_stripe(key, stripe);

    for (unsigned i = 0; i < closing->keys; i++)
        if (bytes_equal(closing->argv[i], wanted))
            return i;
    closing->argv[closing->keys] = keys_stripe(closing->stripes[closing->keys], stripe);
    return closing->keys++;
}

static struct closing *closing_new(struct intent_closer *closer)
{
    /* Only these words come into a closer's line. */
    static const char *const words[] = {[INTENT_CLOSE] = "close",
                                        [INTENT_SETTLE] = "settle",
                                        [INTENT_UNKNOWN] = "unknown",
                                        [INTENT_FORGET] = "forget"};
    struct closing *closing = must_have(malloc(sizeof(*closing)));
    unsigned places[CLOSE_MAX];

    closing->closer = closer;
    closing->call = (struct member_call){0};
    closing->keys = 0;
    for (closing->count = 0; closing->count < CLOSE_MAX && closer->waiting.count > 0; closing->count++) {
        closing->intents[closing->count] = line_take(&closer->waiting);
        places[closing->count] = stripe_place(closing, closing->intents[closing->count]->stripe);
    }
    for (unsigned i = 0; i < closing->count; i++) {
        const struct intent *intent = closing->intents[i];
        int len = snprintf(closing->texts[i], sizeof(closing->texts[i]), "%u %s %.*s", places[i] + 1,
                           words[intent->word], (int)intent->len, intent->text);

        assert(len > 0 && (size_t)len < sizeof(closing->texts[i]));
        closing->argv[closing->keys + i] = (struct bytes){closing->texts[i], (size_t)len};
    }
    return closing;
}

/* Its intents go back to the front of the line. */
static void closing_back(struct closing *closing)
{
    struct intent_line *line = &closing->closer->waiting;

    for (unsigned i = closing->count; i > 0; i--)
        STAILQ_INSERT_HEAD(&line->queue, closing->intents[i - 1], after);
    line->count += closing->count;
    free(closing);
}

static bool intent_closer_ask(struct intent_closer *closer)
{
    struct closing *closing;

    if (member_line_problem(closer->line) != PROBLEM_NONE)
        return false;
    closing = closing_new(closer);
    assert(closing->count > 0); /* the caller has looked */
    closing->call.done = closing_ended;
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
    if (!atomic_load(&closer->intents->again) && intent_closer_ask(closer))
        return true;
    atomic_fetch_sub(&closer->intents->closing, 1);
    intent_closer_rest(closer);
    return false;
}

static void one_closed(struct intent_closer *closer, struct intent *intent)
{
    enum intent_word word = intent->word;
    char name[NAME_MAX_BYTES];
    struct bytes lease = intent_part((struct bytes){intent->text, intent->len}, INTENT_NAME);

    assert(lease.len <= sizeof(name));
    memcpy(name, lease.at, lease.len);
    lease.at = name;
    if (word == INTENT_UNKNOWN)
        intents_unknown(closer->intents, intent);
    else if (word == INTENT_FORGET && !intent->is_second)
        forget_later(closer, intent);
    else
        intents_drop(closer->intents, intent);
    if (closer->closed != NULL)
        closer->closed(closer, lease);
}

static enum step closing_ended(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct closing *closing = container_of(call, struct closing, call);
    struct intent_closer *closer = closing->closer;

    closer->in_flight--;
    atomic_fetch_sub(&closer->intents->closing, 1);
    if (closer->stopped) {
        free(closing); /* they are the list's */
    } else if (bad != PROBLEM_NONE || !store_reply_is(reply, "closed")) {
        closing_back(closing);
        intent_closer_rest(closer);
    } else {
        for (unsigned i = 0; i < closing->count; i++)
            one_closed(closer, closing->intents[i]);
        free(closing);
        intent_closer_poke(closer);
    }
    return ANSWERED;
}
