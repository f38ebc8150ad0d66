/* sticky.c - intents that stay open over the writes of one worker with one token.
 *
 *   sticky_take       by which intent does a write go?
 *   sticky_recorded   the store has the intent that was asked for: does it stay open?
 *   sticky_leave      a write of it has ended
 *   sticky_end        nothing goes by it any more; closed at zero */
#include "gateway/forward/sticky.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/forward/forward_internal.h"
#include "shared/text/memory.h"

enum { CHANNEL_SIZE = sizeof("pawl:{store}:i:") + MEMBER_ID_CHARS };

struct sticky {
    struct sticky *next, **at; /* of its worker and stripe */
    struct gateway_worker *own;
    struct intent *intent;
    struct token token;
    uint64_t idle_ms; /* since when nothing is under way */
    unsigned under_way, unsure;
    bool is_over; /* nothing goes by it any more */
    struct alarm alarm;
    char ids[INTENT_IDS_MAX]; /* of those whose end is unknown, "ID,ID" */
};

/* -- one */

struct bytes sticky_text(const struct sticky *sticky)
{
    return (struct bytes){sticky->intent->text, sticky->intent->len};
}

bool sticky_is(const struct sticky *sticky, struct bytes id)
{
    return bytes_equal(intent_part(sticky_text(sticky), INTENT_ID), id);
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
    *sticky->at = sticky->next;
    if (sticky->next != NULL) {
        sticky->next->at = sticky->at;
    }
    own->stickies.count--;
    alarm_clear(own->clock, &sticky->alarm);
    if (sticky->unsure > 0) {
        intent_add_ids(&own->gateway->intents, sticky->intent, bytes_of(sticky->ids));
    }
    intent_end(&own->closer, sticky->intent, sticky->unsure > 0 ? INTENT_UNKNOWN : INTENT_CLOSE);
    free(sticky);
}

void sticky_end(struct sticky *sticky)
{
    sticky->is_over = true;
    if (sticky->under_way == 0) {
        intent_closer_hurry(&sticky->own->closer); /* somebody waits for it */
        sticky_close(sticky);
    }
}

/* Set once for many writes: it finds out how long nothing was under way. */
static void sticky_rings(struct alarm *alarm)
{
    struct sticky *sticky = container_of(alarm, struct sticky, alarm);

    if (sticky->under_way > 0) {
        return;
    }
    if (loop_now_ms() - sticky->idle_ms >= STICKY_IDLE_MS) {
        sticky_close(sticky);
    } else {
        alarm_set(sticky->own->clock, alarm, sticky->idle_ms + STICKY_IDLE_MS);
    }
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

void sticky_leave(struct forward *f, enum intent_word word)
{
    struct sticky *sticky = f->sticky;

    assert(sticky->under_way > 0);
    f->sticky = NULL;
    sticky->under_way--;
    sticky->idle_ms = loop_now_ms();
    if (word == INTENT_UNKNOWN) {
        unsure_note(sticky, f->id);
    }
    if (sticky->under_way > 0) {
        return;
    }
    if (sticky->is_over) {
        sticky_end(sticky);
    } else if (sticky->alarm.place == 0) {
        alarm_set(sticky->own->clock, &sticky->alarm, sticky->idle_ms + STICKY_IDLE_MS);
    }
}

/* -- all of a worker */

/* Those of a lease, or all: a lease of no name. */
static void lease_end(struct gateway_worker *own, struct bytes lease)
{
    unsigned from = lease.len > 0 ? keys_stripe_of(lease) : 0, to = lease.len > 0 ? from + 1 : STRIPES;

    for (unsigned i = from; i < to && own->stickies.count > 0; i++) {
        for (struct sticky *one = own->stickies.first[i], *next; one != NULL; one = next) {
            next = one->next;
            if (lease.len == 0 || is_of(one, lease)) {
                sticky_end(one);
            }
        }
    }
}

void stickies_free(struct gateway_worker *own)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        while (own->stickies.first[i] != NULL) {
            struct sticky *one = own->stickies.first[i];

            own->stickies.first[i] = one->next;
            free(one);
        }
    }
    if (own->stickies.subscriber != NULL) {
        store_subscriber_close(own->stickies.subscriber);
    }
}

/* -- who waits asks (lib/intent.lua, routes_adopt.lua) */

static void subscriber_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct stickies *stickies = container_of(owner, struct stickies, subscriber_owner);

    (void)channel;
    lease_end(container_of(stickies, struct gateway_worker, stickies), message);
}

static void subscriber_listens(struct store_subscriber_owner *owner, struct bytes channel)
{
    (void)owner;
    (void)channel;
}

static void subscriber_deaf(struct store_subscriber_owner *owner)
{
    (void)owner;
}

static void subscriber_open(struct gateway_worker *own)
{
    struct store_options options = service_store_options(own->worker->service);
    char channel[CHANNEL_SIZE];

    snprintf(channel, sizeof(channel), "pawl:{store}:i:%s", own->gateway->id);
    own->stickies.subscriber_owner = (struct store_subscriber_owner){subscriber_heard, subscriber_listens,
                                                                     subscriber_deaf};
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

static bool is_usable(const struct sticky *sticky, const struct forward *f)
{
    return may_stay(f) && !sticky->is_over && is_same_token(sticky->token, f->fenced.claim.token) &&
           bytes_are(intent_part(sticky_text(sticky), INTENT_POLICY), f->route->unknown_text);
}

/* NULL: by none that is open. Those that it would wait for are to be closed. */
static struct sticky *sticky_find(const struct forward *f)
{
    struct token token = f->fenced.claim.token;

    for (struct sticky *one = f->own->stickies.first[keys_stripe_of(f->fenced.lease)], *next; one != NULL;
         one = next) {
        next = one->next;
        if (!is_of(one, f->fenced.lease)) {
            continue;
        }
        if (is_usable(one, f)) {
            return one;
        }
        if (is_newer(token, one->token) || (f->route->serial && is_same_token(token, one->token))) {
            sticky_end(one);
        }
    }
    return NULL;
}

void sticky_take(struct forward *f)
{
    f->sticky = sticky_find(f);
    f->opens = f->sticky == NULL && may_stay(f) && is_same_token(*seen_place(f), f->fenced.claim.token);
    if (f->sticky != NULL) {
        f->sticky->under_way++;
    } else {
        intent_closer_poke(&f->own->closer); /* who has just made room need not be waited for */
    }
}

static void sticky_open(struct forward *f)
{
    struct gateway_worker *own = f->own;
    struct sticky **list = &own->stickies.first[keys_stripe_of(f->fenced.lease)];
    struct sticky *sticky = must_have(calloc(1, sizeof(*sticky)));

    /* Another may be open by now, of a write that asked at the same time. */
    sticky->is_over = sticky_find(f) != NULL;
    sticky->own = own;
    sticky->intent = f->intent;
    sticky->token = f->fenced.claim.token;
    sticky->under_way = 1;
    sticky->alarm.rings = sticky_rings;
    sticky->at = list;
    sticky->next = *list;
    if (sticky->next != NULL) {
        sticky->next->at = &sticky->next;
    }
    *list = sticky;
    own->stickies.count++;
    f->intent = NULL;
    f->sticky = sticky;
    if (own->stickies.subscriber == NULL) {
        subscriber_open(own);
    }
}

void sticky_recorded(struct forward *f)
{
    if (f->opens) {
        sticky_open(f);
    } else if (may_stay(f)) {
        *seen_place(f) = f->fenced.claim.token;
    }
}
