/* subscriber.c - the connection that hears messages: a state machine.
 *
 *   IDLE        --store_ear_open-->                                   CONNECTING
 *   CONNECTING  --the socket stands-->                                GREETING
 *   CONNECTING  --refused, or over the deadline-->                    WAITING
 *   GREETING    --every command of the greeting answered-->           STANDING
 *   GREETING    --an error, the link broken, over the deadline-->     WAITING
 *   STANDING    --the link broken, an error, silent for too long-->   WAITING
 *   WAITING     --the pause is over-->                                CONNECTING
 *   CONNECTING  --store_ear_close-->                                  IDLE
 *   GREETING    --store_ear_close-->                                  IDLE
 *   STANDING    --store_ear_close-->                                  IDLE
 *   WAITING     --store_ear_close-->                                  IDLE
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
    SIGN_MS = 1000,      /* a sign of life is asked for so often, */
    SIGNS_IN_TIMEOUT = 3 /* and at least so often */
};

static void ear_turn_end(struct loop_hook *hook);
static void ear_timer_fired(struct loop_timer *timer);
static void ear_connect(struct store_ear *ear);
static void ear_greet(struct store_ear *ear);
static void ear_begin(struct store_ear *ear);

static const bool arrows[EAR_STATES][EAR_STATES] = {
    [EAR_IDLE] = {[EAR_CONNECTING] = true},
    [EAR_CONNECTING] = {[EAR_GREETING] = true, [EAR_WAITING] = true, [EAR_IDLE] = true},
    [EAR_GREETING] = {[EAR_STANDING] = true, [EAR_WAITING] = true, [EAR_IDLE] = true},
    [EAR_STANDING] = {[EAR_WAITING] = true, [EAR_IDLE] = true},
    [EAR_WAITING] = {[EAR_CONNECTING] = true, [EAR_IDLE] = true},
};

bool ear_allows(enum ear_state from, enum ear_state to)
{
    return arrows[from][to];
}

/* The only place where the state changes. */
static void ear_enter(struct store_ear *ear, enum ear_state next)
{
    assert(ear_allows(ear->state, next));
    ear->walked[ear->state] |= (unsigned char)(1u << next);
    ear->state = next;
    loop_timer_disarm(&ear->timer);
    switch (next) {
    case EAR_CONNECTING:
        loop_timer_arm(&ear->timer, ear->timeout_ms, 0);
        ear_connect(ear);
        return;
    case EAR_GREETING:
        loop_timer_arm(&ear->timer, ear->timeout_ms, 0);
        ear_greet(ear);
        return;
    case EAR_STANDING: ear_begin(ear); return;
    case EAR_WAITING: loop_timer_arm(&ear->timer, dial_pause_ms(&ear->attempts), 0); return;
    case EAR_IDLE:
    case EAR_STATES: return;
    }
}

/* -- its life */

struct store_ear *store_ear_open(struct loop *loop, const struct store_options *options,
                                 struct store_ear_owner *owner)
{
    struct store_ear *ear = calloc(1, sizeof(*ear));
    const char *bad;

    if (ear == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    bad = store_url_read(options->url, &ear->url);
    assert(bad == NULL);
    (void)bad;
    ear->loop = loop;
    ear->owner = owner;
    ear->timeout_ms = options->timeout_ms;
    ear->password = dial_password(&ear->url, options->password);
    loop_hook_add(loop, &ear->turn_end, ear_turn_end);
    loop_timer_init(loop, &ear->timer, ear_timer_fired);
    ear_enter(ear, EAR_CONNECTING);
    return ear;
}

static void ear_shut(struct store_ear *ear)
{
    if (ear->context != NULL) {
        loop_watch_done(&ear->watch);
        redisFree(ear->context);
        ear->context = NULL;
    }
    channels_end_link(&ear->channels);
    wire_reset(&ear->wire);
    ear->blocked = false;
    ear->told = false;
}

void store_ear_close(struct store_ear *ear)
{
    assert(!ear->in_callback);
    ear_shut(ear);
    ear_enter(ear, EAR_IDLE);
    loop_hook_remove(ear->loop, &ear->turn_end);
    loop_timer_done(&ear->timer);
    channels_free(&ear->channels);
    dial_forget_password(ear->password);
    free(ear);
}

void ear_drop(struct store_ear *ear)
{
    bool told = ear->told;

    if (ear->state == EAR_STANDING && dial_lasted(ear->since_us)) {
        ear->attempts = 0;
    }
    ear_shut(ear);
    ear_enter(ear, EAR_WAITING);
    if (told) {
        ear->in_callback = true;
        ear->owner->deaf(ear->owner);
        ear->in_callback = false;
    }
}

uint64_t store_ear_number(const struct store_ear *ear)
{
    return ear->number;
}

/* -- the way to a link that stands */

static void ear_connect(struct store_ear *ear)
{
    char why[DIAL_WHY_MAX];

    ear->context = dial_begin(&ear->url, why);
    if (ear->context == NULL) {
        ear_drop(ear);
        return;
    }
    loop_watch_init(ear->loop, &ear->watch, ear->context->fd, ear_io, LOOP_WRITE);
}

void ear_connected(struct store_ear *ear)
{
    if (dial_end(ear->context) != NULL) {
        ear_drop(ear);
        return;
    }
    loop_watch_set(&ear->watch, LOOP_READ);
    ear_enter(ear, EAR_GREETING);
}

static void ear_greet(struct store_ear *ear)
{
    ear->greeting_left = 1;
    if (dial_names_itself(&ear->url, ear->password)) {
        ear->greeting_left++;
        dial_put_auth(&ear->wire, &ear->url, ear->password);
    }
    wire_put_command(&ear->wire, &BYTES("PING"), 1);
}

static uint64_t sign_period_ms(const struct store_ear *ear)
{
    uint64_t most = ear->timeout_ms / SIGNS_IN_TIMEOUT + 1;

    return most < SIGN_MS ? most : SIGN_MS;
}

/* One timer for both: the next sign of life is to be asked for, or none has come for too long. */
static void ear_arm(struct store_ear *ear)
{
    uint64_t now_ms = loop_now_ms(), late_ms = ear->heard_ms + ear->timeout_ms;
    uint64_t next_ms = ear->ask_at_ms < late_ms ? ear->ask_at_ms : late_ms;

    loop_timer_arm(&ear->timer, next_ms > now_ms ? next_ms - now_ms : 1, 0);
}

void ear_stands(struct store_ear *ear)
{
    ear_enter(ear, EAR_STANDING);
}

static void ear_begin(struct store_ear *ear)
{
    ear->number++;
    ear->since_us = loop_now_us();
    ear->heard_ms = loop_now_ms();
    ear->ask_at_ms = ear->heard_ms + sign_period_ms(ear);
    channels_begin_link(&ear->channels, &ear->wire);
    loop_again(ear->loop);
    ear_arm(ear);
}

/* -- the timer */

/* A process that was held up finds signs that have come in time. */
static void ear_look_for_signs(struct store_ear *ear)
{
    if (loop_now_ms() >= ear->heard_ms + ear->timeout_ms) {
        ear_read(ear);
    }
    if (ear->state != EAR_STANDING) {
        return;
    }
    uint64_t now_ms = loop_now_ms();
    if (now_ms >= ear->heard_ms + ear->timeout_ms) {
        ear_drop(ear);
        return;
    }
    if (now_ms >= ear->ask_at_ms) {
        ear->ask_at_ms = now_ms + sign_period_ms(ear);
        wire_put_command(&ear->wire, &BYTES("PING"), 1);
    }
    ear_arm(ear);
}

static void ear_timer_fired(struct loop_timer *timer)
{
    struct store_ear *ear = container_of(timer, struct store_ear, timer);

    switch (ear->state) {
    case EAR_WAITING: ear_enter(ear, EAR_CONNECTING); return;
    case EAR_CONNECTING:
    case EAR_GREETING: ear_drop(ear); return;
    case EAR_STANDING: ear_look_for_signs(ear); return;
    case EAR_IDLE:
    case EAR_STATES: return;
    }
}

static void ear_turn_end(struct loop_hook *hook)
{
    ear_flush(container_of(hook, struct store_ear, turn_end));
}

/* -- what is heard */

void store_ear_subscribe(struct store_ear *ear, struct bytes name)
{
    struct ear_channel *channel = channel_add(&ear->channels, name);

    if (++channel->wanted == 1 && ear->state == EAR_STANDING) {
        channel_put_subscribe(&ear->wire, channel);
        loop_again(ear->loop); /* if this is the end of the turn, and our hook has already had its go */
    }
}

void store_ear_unsubscribe(struct store_ear *ear, struct bytes name)
{
    struct ear_channel *channel = channel_find(&ear->channels, name);

    assert(channel != NULL && channel->wanted > 0);
    if (--channel->wanted > 0) {
        return;
    }
    if (ear->state == EAR_STANDING) {
        channel_put_unsubscribe(&ear->wire, channel);
        loop_again(ear->loop);
    }
    if (channel->asked == 0) {
        channel_remove(&ear->channels, channel);
    }
}
