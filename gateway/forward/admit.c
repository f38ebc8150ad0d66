/* admit.c - how a forwarded request is admitted, by which intent it goes, and how it waits for its turn.
 *
 *   forward_ask       run intent_admit.lua, _check.lua, _promote.lua or _read.lua    suspended
 *   ask_answers       sent on, or refused                                            4xx | 503, or
 *   ask_queued        something older is open: wait
 *   forward_wake      ask again, probe, or give up                                   503 in-doubt
 *
 *   sticky_take       by which intent does a write go?
 *   sticky_recorded   the store has the intent that was asked for: does it stay open?
 *   sticky_leave      a write of it has ended
 *   sticky_end        nothing goes by it any more; closed at zero
 *
 * Intents that stay open over the writes of one worker with one token: kind o~ in
 * gateway/scripts/lib/intent.lua; tests/model/sticky.pml; docs/decisions/0030. Only for `ordered` routes with
 * an unknown outcome of `hold` or `grace` that are not serial. The first write of a token at a worker has an
 * intent of its own, as all others have; the second one opens an intent that stays, and each later one goes
 * by it when intent_check.lua finds it. A write is under way from before its check is sent until its whole
 * answer. The intent is closed when nothing of it is under way, STICKY_IDLE_MS after the last answer, or at
 * once when a write that waits asks for it; nothing goes by it from then on. An unknown end ends its use as
 * well: then it becomes unknown, with the numbers of all whose end is. Nothing here is shared between
 * threads: an intent belongs to its worker. */
#include "gateway/forward/forward_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "shared/text/memory.h"

enum {
    STICKY_IDLE_MS = 50,
    STICKY_UNSURE_MAX = 16,
    CHANNEL_SIZE = sizeof("pawl:{store}:i:") + MEMBER_ID_CHARS
};

struct sticky {
    LIST_ENTRY(sticky) open; /* of its worker and stripe */
    struct gateway_worker *own;
    struct intent *intent;
    struct token token;
    uint64_t idle_ms; /* since when nothing is under way */
    unsigned under_way, unsure;
    bool is_over; /* nothing goes by it any more */
    struct alarm alarm;
    char ids[INTENT_IDS_MAX]; /* of those whose end is unknown, "ID,ID" */
};

/* -- one that stays open */

/* The text under which the store has it; good as long as a write of it is under way. */
static struct bytes sticky_text(const struct sticky *sticky)
{
    return (struct bytes){sticky->intent->text, sticky->intent->len};
}

bool sticky_is(const struct sticky *sticky, struct bytes id)
{
    return bytes_equal(intent_part(sticky_text(sticky), INTENT_ID), id);
}

static bool intent_is_its_own(const struct forward *f, const struct intent *intent)
{
    return f->fenced.own.len == 0 ||
           bytes_equal(f->fenced.own,
                       intent_part((struct bytes){intent->text, intent->len}, INTENT_IDENTITY));
}

bool forward_is_its_own(const struct forward *f)
{
    return intent_is_its_own(f, f->by.sticky != NULL ? f->by.sticky->intent : f->by.intent);
}

static bool is_of(const struct sticky *sticky, struct bytes lease)
{
    return bytes_equal(intent_part(sticky_text(sticky), INTENT_NAME), lease);
}

/* Its last word. */
static void sticky_close(struct sticky *sticky)
{
    struct gateway_worker *own = sticky->own;

    assert(sticky->under_way == 0);
    LIST_REMOVE(sticky, open);
    own->stickies.count--;
    alarm_clear(own->clock, &sticky->alarm);
    if (sticky->unsure > 0)
        intent_add_ids(&own->gateway->intents, sticky->intent, bytes_of(sticky->ids));
    intent_end(&own->closer, sticky->intent, sticky->unsure > 0 ? INTENT_UNKNOWN : INTENT_CLOSE);
    free(sticky);
}

/* The store says that nothing is to go by it, or a write waits for it. */
static void sticky_end(struct sticky *sticky)
{
    sticky->is_over = true;
    if (sticky->under_way == 0) {
        intent_closer_hurry(&sticky->own->closer); /* a write waits for it */
        sticky_close(sticky);
    }
}

/* Set once for many writes: it finds out how long nothing was under way. */
static void sticky_rings(struct alarm *alarm)
{
    struct sticky *sticky = container_of(alarm, struct sticky, alarm);

    if (sticky->under_way > 0)
        return;
    if (loop_now_ms() - sticky->idle_ms >= STICKY_IDLE_MS)
        sticky_close(sticky);
    else
        alarm_set(sticky->own->clock, alarm, sticky->idle_ms + STICKY_IDLE_MS);
}

static void unsure_note(struct sticky *sticky, const char *id)
{
    size_t len = strlen(sticky->ids);

    if (sticky->unsure++ <= STICKY_UNSURE_MAX) {
        snprintf(sticky->ids + len, sizeof(sticky->ids) - len, "%s%s", len > 0 ? "," : "",
                 sticky->unsure <= STICKY_UNSURE_MAX ? id : "more");
    }
    sticky->is_over = true;
}

/* The end of f, which is not under way any more. */
static void sticky_leave(struct forward *f, enum intent_word word)
{
    struct sticky *sticky = f->by.sticky;

    assert(sticky->under_way > 0);
    f->by.sticky = NULL;
    sticky->under_way--;
    sticky->idle_ms = loop_now_ms();
    if (word == INTENT_UNKNOWN)
        unsure_note(sticky, f->by.id);
    if (sticky->under_way > 0)
        return;
    if (sticky->is_over)
        sticky_end(sticky);
    else if (sticky->alarm.place == 0)
        alarm_set(sticky->own->clock, &sticky->alarm, sticky->idle_ms + STICKY_IDLE_MS);
}

/* -- all of a worker */

/* Those of a lease, or all: a lease of no name. */
static void lease_end(struct gateway_worker *own, struct bytes lease)
{
    unsigned from = lease.len > 0 ? keys_stripe_of(lease) : 0, to = lease.len > 0 ? from + 1 : STRIPES;

    for (unsigned i = from; i < to && own->stickies.count > 0; i++) {
        for (struct sticky *one = LIST_FIRST(&own->stickies.open[i]), *next; one != NULL; one = next) {
            next = LIST_NEXT(one, open);
            if (lease.len == 0 || is_of(one, lease))
                sticky_end(one);
        }
    }
}

void stickies_free(struct gateway_worker *own)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        while (!LIST_EMPTY(&own->stickies.open[i])) {
            struct sticky *one = LIST_FIRST(&own->stickies.open[i]);

            LIST_REMOVE(one, open);
            free(one);
        }
    }
    if (own->stickies.subscriber != NULL)
        store_subscriber_close(own->stickies.subscriber);
}

/* -- writes that wait ask for the close (lib/intent.lua, routes_adopt.lua) */

static void subscriber_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct stickies *stickies = container_of(owner, struct stickies, subscriber_owner);

    (void)channel;
    lease_end(container_of(stickies, struct gateway_worker, stickies), message);
}

static void subscriber_open(struct gateway_worker *own)
{
    struct store_options options = service_store_options(own->worker->service);
    char channel[CHANNEL_SIZE];

    snprintf(channel, sizeof(channel), "pawl:{store}:i:%s", own->gateway->id);
    own->stickies.subscriber_owner = (struct store_subscriber_owner){.heard = subscriber_heard};
    own->stickies.subscriber = store_subscriber_open(own->worker->loop, &options,
                                                     &own->stickies.subscriber_owner);
    store_subscriber_subscribe(own->stickies.subscriber, bytes_of(channel));
}

/* -- by which intent does a write go? */

static bool is_same_token(struct token a, struct token b)
{
    return a.epoch == b.epoch && a.number == b.number;
}

static bool is_newer(struct token a, struct token b)
{
    return a.epoch > b.epoch || (a.epoch == b.epoch && a.number > b.number);
}

/* Whether the route lets an intent stay open. */
static bool may_stay(const struct forward *f)
{
    return f->is_write && f->route->guarantee == ROUTE_ORDERED && !f->route->serial &&
           f->route->unknown != ROUTE_PROBE;
}

/* Where the worker notes that it has sent a write with this token. */
static struct token *seen_place(const struct forward *f)
{
    unsigned place = (unsigned)(f->fenced.claim.token.number % STICKY_SEEN_MAX);

    return &f->own->stickies.seen[keys_stripe_of(f->fenced.lease)][place];
}

/* One that a write by `mark` has opened knows of no identity that began the hold. */
static bool is_usable(const struct sticky *sticky, const struct forward *f)
{
    return may_stay(f) && !sticky->is_over && is_same_token(sticky->token, f->fenced.claim.token) &&
           intent_is_its_own(f, sticky->intent) &&
           bytes_are(intent_part(sticky_text(sticky), INTENT_POLICY), f->route->unknown_text);
}

/* NULL: by none that is open. Those that it would wait for are to be closed. */
static struct sticky *sticky_find(const struct forward *f)
{
    struct token token = f->fenced.claim.token;

    unsigned stripe = keys_stripe_of(f->fenced.lease);

    for (struct sticky *one = LIST_FIRST(&f->own->stickies.open[stripe]), *next; one != NULL; one = next) {
        next = LIST_NEXT(one, open);
        if (!is_of(one, f->fenced.lease))
            continue;
        if (is_usable(one, f))
            return one;
        if (is_newer(token, one->token) || (f->route->serial && is_same_token(token, one->token)))
            sticky_end(one);
    }
    return NULL;
}

/* A write, or a fenced read, is to ask the store. By which open intent it goes, f->by.sticky, and it is under
 * way from now on; or NULL: then f->by.opens says whether the intent that it asks for is one that stays, and
 * those of this worker that it would wait for are closed in front of it, if nothing of them is under way. */
static void sticky_take(struct forward *f)
{
    f->by.sticky = sticky_find(f);
    f->by.opens = f->by.sticky == NULL && may_stay(f) && is_same_token(*seen_place(f), f->fenced.claim.token);
    if (f->by.sticky != NULL)
        f->by.sticky->under_way++;
    else
        intent_closer_poke(&f->own->closer); /* what has just been closed need not be waited for */
}

static void sticky_open(struct forward *f)
{
    struct gateway_worker *own = f->own;
    struct sticky *sticky = must_have(calloc(1, sizeof(*sticky)));

    /* Another may be open by now, of a write that asked at the same time. */
    sticky->is_over = sticky_find(f) != NULL;
    sticky->own = own;
    sticky->intent = f->by.intent;
    sticky->token = f->fenced.claim.token;
    sticky->under_way = 1;
    sticky->alarm.rings = sticky_rings;
    LIST_INSERT_HEAD(&own->stickies.open[f->fenced.on], sticky, open);
    own->stickies.count++;
    f->by.intent = NULL;
    f->by.sticky = sticky;
    if (own->stickies.subscriber == NULL)
        subscriber_open(own);
}

/* -- asking the store */

/* How long a queued request waits before it asks again by itself: its turn may come at another gateway.
 * ASKED_MS: the first time, when another one was asked to close what it may only keep open (see above). */
enum { ASK_AGAIN_MS = 10, ASK_AGAIN_MAX_MS = 100, ASK_AGAIN_DOUBLES = 4, ASKED_MS = 2 };

static fenced_then_fn ask_admitted, ask_queued, ask_missing, ask_refused, ask_cancelled, ask_routes_differ,
    ask_store_full, ask_in_doubt;

static const struct fenced_answer ask_answers[] = {
    {"sending", ask_admitted},            /* sent on */
    {"accepted", ask_admitted},           /* the same: a read, or by the open intent */
    {"queued", ask_queued},               /* wait */
    {"wait", ask_queued},                 /* the same: a read */
    {"missing", ask_missing},             /* not by the open intent: ask again */
    {"refused", ask_refused},             /* 4xx */
    {"cancelled", ask_cancelled},         /* 4xx | 503 */
    {"routes-differ", ask_routes_differ}, /* 503 */
    {"store-full", ask_store_full},       /* 503 */
    {"in-doubt", ask_in_doubt},           /* 503 */
    {"full", ask_in_doubt},               /* 503 */
    {NULL, NULL},                         /* 500 */
};

static const char cancelled[] =
    "Nothing was sent on: while this write waited for its turn an operator took it out (pawl resolve --id), "
    "or "
    "the store lost that it waits. Whether it is still to be done, somebody has to say.";

static const char *kind_of(const struct forward *f)
{
    const struct route *route = f->route;

    if (route->guarantee == ROUTE_ORDERED)
        return route->serial ? "o+" : f->by.opens ? "o~" : "o";
    if (route->aid == ROUTE_AID_IF_MATCH) {
        /* "Nothing is there" is a version that comes back: made, deleted, and a late request makes it again.
         * Such a write is ordered, and conditional ones wait for it (tests/model/conditional.pml). */
        return f->look.etag_len > 0 ? "c" : "o";
    }
    return route->aid == ROUTE_AID_CHECKS ? "k" : "a";
}

static const struct store_script *ask_fill(struct forward *f)
{
    struct fenced_call *fenced = &f->fenced;

    fenced_begin_lease(fenced);
    fenced_add_fence(fenced);
    fenced_add(fenced, bytes_of(f->route->check_text));
    fenced_add(fenced, bytes_of(f->use->table->hash));
    if (!f->is_write) {
        fenced_add(fenced, bytes_of(f->route->unknown_text));
        return &script_intent_read;
    }
    if (f->by.sticky != NULL) {
        fenced_add(fenced, sticky_text(f->by.sticky));
        return &script_intent_check;
    }
    fenced_add(fenced, bytes_of(kind_of(f)));
    fenced_add(fenced, bytes_of(f->own->gateway->id));
    fenced_add(fenced, bytes_of(f->own->gateway->incarnation));
    fenced_add(fenced, bytes_of(f->by.id));
    fenced_add(fenced, bytes_of(f->route->unknown_text));
    if (f->turn.queued_len == 0) {
        if (epoch_is_full(f->own->record.line.store_epoch))
            fenced_add(fenced, BYTES("full"));
        return &script_intent_admit;
    }
    fenced_add(fenced, (struct bytes){f->turn.queued, f->turn.queued_len});
    return &script_intent_promote;
}

/* Into the list before the store can know of it (intent.h): recovery.c closes what is not there. */
static void admission_begin(struct forward *f)
{
    char text[INTENT_TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%.*s %s %s %s", (int)f->fenced.lease.len, f->fenced.lease.at,
                       f->own->gateway->id, f->own->gateway->incarnation, f->by.id);

    assert(len > 0 && (size_t)len < sizeof(text));
    f->by.intent = intent_new(&f->own->gateway->intents, f->fenced.on, (struct bytes){text, (size_t)len},
                              INTENT_ASKED);
}

enum step forward_ask(struct forward *f)
{
    const struct store_script *script;

    if (f->is_write && f->by.intent == NULL)
        forward_number(f); /* an admission of before may come back with a store that is set back */
    if (f->by.intent == NULL)
        sticky_take(f);
    script = ask_fill(f);
    forward_enter(f, FORWARD_ASKING);
    if (f->route->guarantee == ROUTE_ORDERED && !forward_store_is_safe(f))
        return forward_away(f, PROBLEM_STORE_UNSAFE);
    if (f->is_write && f->by.intent == NULL && f->by.sticky == NULL)
        admission_begin(f);
    f->turn.asked_us = epoch_clock_us();
    return fenced_run(&f->fenced, script, ask_answers);
}

/* -- what may have been recorded, and is not to be */

static void admission_end(struct forward *f, enum intent_word word)
{
    intent_end(&f->own->closer, f->by.intent, word);
    f->by.intent = NULL;
    intent_closer_hurry(&f->own->closer);
}

/* Certainly nothing of it is recorded. */
static void admission_drop(struct forward *f)
{
    f->turn.queued_len = 0;
    if (f->by.intent != NULL) {
        intents_drop(&f->own->gateway->intents, f->by.intent);
        f->by.intent = NULL;
    }
}

void forward_intent_end(struct forward *f, enum intent_word word)
{
    if (f->by.sticky != NULL) {
        sticky_leave(f, word);
    } else if (f->by.intent != NULL) {
        intent_end(&f->own->closer, f->by.intent, word);
        f->by.intent = NULL;
    }
}

static void forward_withdraw(struct forward *f)
{
    if (f->by.sticky != NULL)
        sticky_leave(f, INTENT_CLOSE);
    if (f->turn.queued_len > 0) {
        intent_text(&f->own->gateway->intents, f->by.intent,
                    (struct bytes){f->turn.queued, f->turn.queued_len});
        admission_end(f, INTENT_CLOSE);
    }
    admission_drop(f);
}

enum step forward_away(struct forward *f, enum problem problem)
{
    forward_withdraw(f);
    return forward_over(f, fenced_fail(&f->fenced, problem));
}

/* It is not known whether it was recorded; it is never sent. */
static void admission_forget(struct forward *f)
{
    if (f->by.intent != NULL && f->turn.queued_len == 0) /* else forward_withdraw() knows it */
        admission_end(f, INTENT_FORGET);
}

enum step forward_ask_failed(struct fenced_call *fenced, enum problem bad)
{
    struct forward *f = container_of(fenced, struct forward, fenced);

    if (bad == PROBLEM_OUTCOME_UNKNOWN || bad == PROBLEM_INTERNAL)
        admission_forget(f);
    bad = bad == PROBLEM_OUTCOME_UNKNOWN ? PROBLEM_STORE_UNAVAILABLE : bad;
    return forward_away(f, bad);
}

/* -- what the script said */

/* {"sending", seq, mark, text} | {"accepted", seq, mark} */
static enum step ask_admitted(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct forward *f = container_of(fenced, struct forward, fenced);
    struct bytes text = store_reply_text(reply, 3);

    f->by.mark = store_reply_integer(reply, 2);
    f->turn.queued_len = 0;
    fenced_let_through(fenced);
    if (f->by.intent != NULL) {
        if (text.len == 0 || text.len > INTENT_TEXT_MAX) {
            admission_forget(f);
            return forward_away(f, PROBLEM_INTERNAL);
        }
        intent_recorded(&f->own->gateway->intents, f->by.intent, text);
    }
    /* A new epoch has begun since: what is open was recorded again in it, perhaps without this one. Only when
     * it is in the list can that be known (recovery.c records the list again when the epoch has changed). Or
     * an operator may have removed it by now (worker.h). */
    if (f->is_write && (fenced->record.epoch != epoch_number(f->own->record.line.store_epoch) ||
                        epoch_clock_us() - f->turn.asked_us >= GIVEN_UP_SEND_MS * 1000)) {
        forward_intent_end(f, INTENT_CLOSE);
        return forward_away(f, PROBLEM_STORE_UNAVAILABLE);
    }
    if (f->is_write)
        atomic_store(&f->own->gateway->sent_by, f->use->table->hash);
    if (f->by.intent != NULL && f->by.opens)
        sticky_open(f); /* that becomes f->by.sticky */
    else if (f->by.intent != NULL && may_stay(f))
        *seen_place(f) = f->fenced.claim.token;
    return forward_send(f);
}

/* "store", "GATEWAY INCARNATION" in place of a text: it waits for what that one has yet to say. */
static void unreported_keep(struct forward *f, const struct store_reply *reply, size_t at)
{
    struct bytes who = bytes_are(store_reply_text(reply, at), "store") ? store_reply_text(reply, at + 1)
                                                                       : BYTES("");

    snprintf(f->turn.unreported, sizeof(f->turn.unreported), "%.*s", (int)who.len,
             who.at != NULL ? who.at : "");
}

static enum step forward_in_doubt(struct forward *f)
{
    char detail[UNREPORTED_DETAIL_SIZE];

    if (f->turn.unreported[0] == '\0')
        return forward_away(f, PROBLEM_IN_DOUBT);
    unreported_detail(detail, "Nothing was sent on. ", bytes_of(f->turn.unreported));
    forward_withdraw(f);
    return forward_over(f, fenced_fail_detail(&f->fenced, PROBLEM_IN_DOUBT, detail));
}

static enum step ask_missing(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct forward *f = container_of(fenced, struct forward, fenced);

    (void)reply;
    assert(f->by.sticky->under_way > 0); /* f */
    sticky_end(f->by.sticky);
    forward_withdraw(f);
    return forward_ask(f);
}

static enum step ask_refused_over(struct fenced_call *fenced, enum step step)
{
    return forward_over(container_of(fenced, struct forward, fenced), step);
}

static enum step ask_refused(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct forward *f = container_of(fenced, struct forward, fenced);

    admission_drop(f); /* the script has taken it out */
    fenced->over = ask_refused_over;
    return fenced_refuse_reply(fenced, reply);
}

static enum step ask_cancelled(struct fenced_call *fenced, const struct store_reply *reply)
{
    if (store_reply_text(reply, 2).len > 0) /* else the token is good */
        return ask_refused(fenced, reply);
    admission_drop(container_of(fenced, struct forward, fenced));
    return forward_over(container_of(fenced, struct forward, fenced),
                        fenced_fail_final(fenced, PROBLEM_IN_DOUBT, cancelled));
}

static enum step ask_routes_differ(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct forward *f = container_of(fenced, struct forward, fenced);

    (void)reply;
    atomic_store(&f->own->gateway->routes_differed, true);
    return forward_away(f, PROBLEM_ROUTES_DIFFER);
}

static enum step ask_store_full(struct fenced_call *fenced, const struct store_reply *reply)
{
    (void)reply;
    return forward_away(container_of(fenced, struct forward, fenced), PROBLEM_STORE_FULL);
}

static enum step ask_in_doubt(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct forward *f = container_of(fenced, struct forward, fenced);

    unreported_keep(f, reply, 3);
    return forward_in_doubt(f);
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
    struct bytes blocker = {f->turn.blocker, f->turn.blocker_len};
    struct bytes state = intent_part(blocker, INTENT_STATE), policy = intent_part(blocker, INTENT_POLICY);

    if (bytes_are(blocker, "store"))
        return true;
    /* The grace of a dead one ends, and soon as a rule. */
    return bytes_are(state, "u") || (bytes_are(state, "d") && (policy.len == 0 || policy.at[0] != 'g'));
}

/* {"queued", seq, mark, text, text of the first that it waits for} | {"wait", seq, mark, the same} */
static enum step ask_queued(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct forward *f = container_of(fenced, struct forward, fenced);
    unsigned doubles = f->turn.tries < ASK_AGAIN_DOUBLES ? f->turn.tries : ASK_AGAIN_DOUBLES;
    uint64_t wait_ms = (uint64_t)ASK_AGAIN_MS << doubles, now_ms = loop_now_ms();

    f->by.mark = store_reply_integer(reply, 2);
    if (f->is_write)
        text_keep(f->turn.queued, &f->turn.queued_len, store_reply_text(reply, 3));
    text_keep(f->turn.blocker, &f->turn.blocker_len, store_reply_text(reply, f->is_write ? 4 : 3));
    unreported_keep(f, reply, f->is_write ? 4 : 3);
    if (f->turn.tries++ == 0 &&
        bytes_are(intent_part((struct bytes){f->turn.blocker, f->turn.blocker_len}, INTENT_KIND), "o~"))
        wait_ms = ASKED_MS;
    forward_enter(f, FORWARD_QUEUED);
    if (forward_probe(f))
        return SUSPENDED;
    if ((is_in_doubt(f) && !f->turn.is_shown) || now_ms >= f->turn.until_ms ||
        atomic_load(&f->own->worker->service->draining))
        return forward_in_doubt(f);
    wait_ms = wait_ms < ASK_AGAIN_MAX_MS ? wait_ms : ASK_AGAIN_MAX_MS;
    forward_alarm(f, wait_ms < f->turn.until_ms - now_ms ? wait_ms : f->turn.until_ms - now_ms);
    return SUSPENDED;
}

void forward_wake(struct forward *f)
{
    assert(f->state == FORWARD_QUEUED);
    if (!f->is_barred) {
        forward_ask(f);
        return;
    }
    forward_withdraw(f);
    forward_forbid(f);
}
