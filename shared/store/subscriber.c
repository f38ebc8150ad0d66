/* subscriber.c - the connection that hears messages: a state machine.
 *
 *   IDLE        --store_subscriber_open-->                            CONNECTING
 *   CONNECTING  --the socket stands-->                                GREETING
 *   CONNECTING  --refused, or over the deadline-->                    WAITING
 *   GREETING    --every command of the greeting answered-->           STANDING
 *   GREETING    --an error, the link broken, over the deadline-->     WAITING
 *   STANDING    --the link broken, an error, silent for too long-->   WAITING
 *   WAITING     --the pause is over-->                                CONNECTING
 *   CONNECTING  --store_subscriber_close-->                           IDLE
 *   GREETING    --store_subscriber_close-->                           IDLE
 *   STANDING    --store_subscriber_close-->                           IDLE
 *   WAITING     --store_subscriber_close-->                           IDLE
 *
 * The greeting is AUTH, where there is somebody to name, and a PING: a Redis that is loading, and takes
 * subscriptions all the same, refuses that. A database is not chosen: channels belong to none. Replies come
 * in the order of asking, so that of several SUBSCRIBE to one channel the last confirmation is the one that
 * counts: between two of them may lie an UNSUBSCRIBE. No callback is called from inside the caller's own
 * call, and none of those calls ends the link: what they send leaves at the end of the turn. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

enum {
    SIGN_MS = 1000,      /* a sign of epoch is asked for so often, */
    SIGNS_IN_TIMEOUT = 3 /* and at least so often */
};

static void subscriber_turn_end(struct loop_hook *hook);
static void subscriber_timer_fired(struct loop_timer *timer);
static void subscriber_connect(struct store_subscriber *subscriber);
static void subscriber_greet(struct store_subscriber *subscriber);
static void subscriber_begin(struct store_subscriber *subscriber);

static const bool arrows[SUBSCRIBER_STATES][SUBSCRIBER_STATES] = {
    [SUBSCRIBER_IDLE] = {[SUBSCRIBER_CONNECTING] = true},
    [SUBSCRIBER_CONNECTING] =
        {[SUBSCRIBER_GREETING] = true, [SUBSCRIBER_WAITING] = true, [SUBSCRIBER_IDLE] = true},
    [SUBSCRIBER_GREETING] =
        {[SUBSCRIBER_STANDING] = true, [SUBSCRIBER_WAITING] = true, [SUBSCRIBER_IDLE] = true},
    [SUBSCRIBER_STANDING] = {[SUBSCRIBER_WAITING] = true, [SUBSCRIBER_IDLE] = true},
    [SUBSCRIBER_WAITING] = {[SUBSCRIBER_CONNECTING] = true, [SUBSCRIBER_IDLE] = true},
};

bool subscriber_allows(enum subscriber_state from, enum subscriber_state to)
{
    return arrows[from][to];
}

/* The only place where the state changes. */
static void subscriber_enter(struct store_subscriber *subscriber, enum subscriber_state next)
{
    assert(subscriber_allows(subscriber->state, next));
    subscriber->walked[subscriber->state] |= (unsigned char)(1u << next);
    subscriber->state = next;
    loop_timer_disarm(&subscriber->timer);
    switch (next) {
    case SUBSCRIBER_CONNECTING:
        loop_timer_arm(&subscriber->timer, subscriber->timeout_ms, 0);
        subscriber_connect(subscriber);
        return;
    case SUBSCRIBER_GREETING:
        loop_timer_arm(&subscriber->timer, subscriber->timeout_ms, 0);
        subscriber_greet(subscriber);
        return;
    case SUBSCRIBER_STANDING: subscriber_begin(subscriber); return;
    case SUBSCRIBER_WAITING:
        loop_timer_arm(&subscriber->timer, dial_pause_ms(&subscriber->attempts), 0);
        return;
    case SUBSCRIBER_IDLE:
    case SUBSCRIBER_STATES: return;
    }
}

/* -- its epoch */

struct store_subscriber *store_subscriber_open(struct loop *loop, const struct store_options *options,
                                               struct store_subscriber_owner *owner)
{
    struct store_subscriber *subscriber = calloc(1, sizeof(*subscriber));
    const char *bad;

    if (subscriber == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    bad = store_url_read(options->url, &subscriber->url);
    assert(bad == NULL);
    (void)bad;
    subscriber->loop = loop;
    subscriber->owner = owner;
    subscriber->timeout_ms = options->timeout_ms;
    subscriber->password = dial_password(&subscriber->url, options->password);
    loop_hook_add(loop, &subscriber->turn_end, subscriber_turn_end);
    loop_timer_init(loop, &subscriber->timer, subscriber_timer_fired);
    subscriber_enter(subscriber, SUBSCRIBER_CONNECTING);
    return subscriber;
}

static void subscriber_shut(struct store_subscriber *subscriber)
{
    if (subscriber->context != NULL) {
        loop_watch_done(&subscriber->watch);
        redisFree(subscriber->context);
        subscriber->context = NULL;
    }
    channels_end_link(&subscriber->channels);
    wire_reset(&subscriber->wire);
    subscriber->blocked = false;
    subscriber->told = false;
}

void store_subscriber_close(struct store_subscriber *subscriber)
{
    assert(!subscriber->in_callback);
    subscriber_shut(subscriber);
    subscriber_enter(subscriber, SUBSCRIBER_IDLE);
    loop_hook_remove(subscriber->loop, &subscriber->turn_end);
    loop_timer_done(&subscriber->timer);
    channels_free(&subscriber->channels);
    dial_forget_password(subscriber->password);
    free(subscriber);
}

void subscriber_drop(struct store_subscriber *subscriber)
{
    bool told = subscriber->told;

    if (subscriber->state == SUBSCRIBER_STANDING && dial_lasted(subscriber->since_us)) {
        subscriber->attempts = 0;
    }
    subscriber_shut(subscriber);
    subscriber_enter(subscriber, SUBSCRIBER_WAITING);
    if (told) {
        subscriber->in_callback = true;
        subscriber->owner->deaf(subscriber->owner);
        subscriber->in_callback = false;
    }
}

uint64_t store_subscriber_number(const struct store_subscriber *subscriber)
{
    return subscriber->number;
}

/* -- the way to a link that stands */

static void subscriber_connect(struct store_subscriber *subscriber)
{
    char why[DIAL_WHY_MAX];

    subscriber->context = dial_begin(&subscriber->url, why);
    if (subscriber->context == NULL) {
        subscriber_drop(subscriber);
        return;
    }
    loop_watch_init(subscriber->loop, &subscriber->watch, subscriber->context->fd, subscriber_io, LOOP_WRITE);
}

void subscriber_connected(struct store_subscriber *subscriber)
{
    if (dial_end(subscriber->context) != NULL) {
        subscriber_drop(subscriber);
        return;
    }
    loop_watch_set(&subscriber->watch, LOOP_READ);
    subscriber_enter(subscriber, SUBSCRIBER_GREETING);
}

static void subscriber_greet(struct store_subscriber *subscriber)
{
    subscriber->greeting_left = 1;
    if (dial_names_itself(&subscriber->url, subscriber->password)) {
        subscriber->greeting_left++;
        dial_put_auth(&subscriber->wire, &subscriber->url, subscriber->password);
    }
    wire_put_command(&subscriber->wire, &BYTES("PING"), 1);
}

static uint64_t sign_period_ms(const struct store_subscriber *subscriber)
{
    uint64_t most = subscriber->timeout_ms / SIGNS_IN_TIMEOUT + 1;

    return most < SIGN_MS ? most : SIGN_MS;
}

/* One timer for both: the next sign of epoch is to be asked for, or none has come for too long. */
static void subscriber_arm(struct store_subscriber *subscriber)
{
    uint64_t now_ms = loop_now_ms(), late_ms = subscriber->heard_ms + subscriber->timeout_ms;
    uint64_t next_ms = subscriber->ask_at_ms < late_ms ? subscriber->ask_at_ms : late_ms;

    loop_timer_arm(&subscriber->timer, next_ms > now_ms ? next_ms - now_ms : 1, 0);
}

void subscriber_stands(struct store_subscriber *subscriber)
{
    subscriber_enter(subscriber, SUBSCRIBER_STANDING);
}

static void subscriber_begin(struct store_subscriber *subscriber)
{
    subscriber->number++;
    subscriber->since_us = loop_now_us();
    subscriber->heard_ms = loop_now_ms();
    subscriber->ask_at_ms = subscriber->heard_ms + sign_period_ms(subscriber);
    channels_begin_link(&subscriber->channels, &subscriber->wire);
    loop_again(subscriber->loop);
    subscriber_arm(subscriber);
}

/* -- the timer */

/* A process that was held up finds signs that have come in time. */
static void subscriber_look_for_signs(struct store_subscriber *subscriber)
{
    if (loop_now_ms() >= subscriber->heard_ms + subscriber->timeout_ms) {
        subscriber_read(subscriber);
    }
    if (subscriber->state != SUBSCRIBER_STANDING) {
        return;
    }
    uint64_t now_ms = loop_now_ms();
    if (now_ms >= subscriber->heard_ms + subscriber->timeout_ms) {
        subscriber_drop(subscriber);
        return;
    }
    if (now_ms >= subscriber->ask_at_ms) {
        subscriber->ask_at_ms = now_ms + sign_period_ms(subscriber);
        wire_put_command(&subscriber->wire, &BYTES("PING"), 1);
    }
    subscriber_arm(subscriber);
}

static void subscriber_timer_fired(struct loop_timer *timer)
{
    struct store_subscriber *subscriber = container_of(timer, struct store_subscriber, timer);

    switch (subscriber->state) {
    case SUBSCRIBER_WAITING: subscriber_enter(subscriber, SUBSCRIBER_CONNECTING); return;
    case SUBSCRIBER_CONNECTING:
    case SUBSCRIBER_GREETING: subscriber_drop(subscriber); return;
    case SUBSCRIBER_STANDING: subscriber_look_for_signs(subscriber); return;
    case SUBSCRIBER_IDLE:
    case SUBSCRIBER_STATES: return;
    }
}

static void subscriber_turn_end(struct loop_hook *hook)
{
    subscriber_flush(container_of(hook, struct store_subscriber, turn_end));
}

/* -- what is heard */

void store_subscriber_subscribe(struct store_subscriber *subscriber, struct bytes name)
{
    struct subscriber_channel *channel = channel_add(&subscriber->channels, name);

    if (++channel->wanted == 1 && subscriber->state == SUBSCRIBER_STANDING) {
        channel_put_subscribe(&subscriber->wire, channel);
        loop_again(
            subscriber->loop); /* if this is the end of the turn, and our hook has already had its go */
    }
}

void store_subscriber_unsubscribe(struct store_subscriber *subscriber, struct bytes name)
{
    struct subscriber_channel *channel = channel_find(&subscriber->channels, name);

    assert(channel != NULL && channel->wanted > 0);
    if (--channel->wanted > 0) {
        return;
    }
    if (subscriber->state == SUBSCRIBER_STANDING) {
        channel_put_unsubscribe(&subscriber->wire, channel);
        loop_again(subscriber->loop);
    }
    if (channel->asked == 0) {
        channel_remove(&subscriber->channels, channel);
    }
}
