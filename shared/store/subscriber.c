/* subscriber.c - the connection that hears messages: a state machine.
 *
 *   IDLE        --store_subscriber_open-->                            CONNECTING
 *   CONNECTING  --the socket stands, and TLS on it, if asked for-->   GREETING
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
 * The greeting is AUTH, where there is a user or a password, INFO, which tells the run_id, and a PING: a
 * Redis that is loading, and takes subscriptions all the same, refuses that. A database is not chosen:
 * channels belong to none. Replies come in the order of asking, so that of several SUBSCRIBE to one channel
 * the last confirmation is the one that counts: between two of them may lie an UNSUBSCRIBE. No callback is
 * called from inside the caller's own call, and none of those calls ends the link, store_subscriber_follow()
 * neither, which has it end with the turn: what they send leaves at the end of the turn. */
#include <assert.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"
#include "shared/store/subscriber.h"
#include "shared/text/memory.h"

enum {
    SIGN_MS = 1000,          /* a sign of life is asked for so often, */
    SIGNS_IN_TIMEOUT = 3,    /* and at least so often */
    MESSAGE_MAX = 16 * 1024, /* one that is larger ends the link: ours are some hundred bytes */
    READS_MAX = 16           /* of one event: others want their turn too */
};

/* -- the channels that it listens to, or is to listen to */

static int channel_compare(const void *a, const void *b)
{
    return bytes_compare(((const struct subscriber_channel *)a)->name,
                         ((const struct subscriber_channel *)b)->name);
}

struct subscriber_channel *channel_find(const struct subscriber_channels *channels, struct bytes name)
{
    struct subscriber_channel wanted = {.name = name};
    struct subscriber_channel *const *found = tfind(&wanted, &channels->tree, channel_compare);

    return found != NULL ? *found : NULL;
}

static struct subscriber_channel *channel_add(struct subscriber_channels *channels, struct bytes name)
{
    struct subscriber_channel *channel = channel_find(channels, name);
    char *at;

    if (channel != NULL)
        return channel;
    channel = must_have(calloc(1, sizeof(*channel) + name.len));
    at = (char *)(channel + 1);
    if (name.len > 0)
        memcpy(at, name.at, name.len);
    channel->name = (struct bytes){at, name.len};
    must_have(tsearch(channel, &channels->tree, channel_compare));
    return channel;
}

static void channel_remove(struct subscriber_channels *channels, struct subscriber_channel *channel)
{
    tdelete(channel, &channels->tree, channel_compare);
    free(channel);
}

/* word: with the P of a pattern's in front. */
static void channel_put(struct store_wire *wire, const struct subscriber_channel *channel, const char *word)
{
    struct bytes name = channel->name;
    bool is_pattern = name.len > 0 && name.at[name.len - 1] == '*';

    wire_put_command(wire, (struct bytes[]){bytes_of(is_pattern ? word : word + 1), name}, 2);
}

static void channel_subscribe(struct store_wire *wire, struct subscriber_channel *channel)
{
    channel->asked++;
    channel_put(wire, channel, "PSUBSCRIBE");
}

/* -- all of them; tsearch's tree is walked in order, each inner node three times (twalk_r(3)) */

static void subscribe_one(const void *node, VISIT visit, void *wire)
{
    if (visit == postorder || visit == leaf)
        channel_subscribe(wire, *(struct subscriber_channel *const *)node);
}

static void end_one(const void *node, VISIT visit, void *closure)
{
    struct subscriber_channel *channel = *(struct subscriber_channel *const *)node;
    struct subscriber_channel **unwanted = closure;

    if (visit != postorder && visit != leaf)
        return;
    channel->listens = false;
    channel->asked = 0;
    if (channel->wanted == 0) {
        channel->next = *unwanted;
        *unwanted = channel;
    }
}

/* -- the state machine */

static void subscriber_io(struct loop_watch *watch, int events);
static void subscriber_read(struct store_subscriber *subscriber);
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
        loop_timer_arm(&subscriber->timer,
                       finder_pause_ms(&subscriber->dial, dial_pause_ms(&subscriber->attempts)), 0);
        return;
    case SUBSCRIBER_IDLE:
    case SUBSCRIBER_STATES: return;
    }
}

/* -- open and close */

struct store_subscriber *store_subscriber_open(struct loop *loop, const struct store_options *options,
                                               struct store_subscriber_owner *owner)
{
    struct store_subscriber *subscriber = must_have(calloc(1, sizeof(*subscriber)));
    struct dial *dial = &subscriber->dial;
    const char *bad;

    bad = store_url_read(options->url, &dial->url);
    assert(bad == NULL && (options->finder != NULL) == (dial->url.sentinel_count > 0));
    (void)bad;
    subscriber->loop = dial->loop = loop;
    subscriber->owner = owner;
    subscriber->timeout_ms = options->timeout_ms;
    dial->files = options->files;
    dial->finder = options->finder;
    dial->password = dial_password(&dial->url, options->password);
    loop_hook_add(loop, &subscriber->turn_end, subscriber_turn_end);
    loop_timer_init(loop, &subscriber->timer, subscriber_timer_fired);
    subscriber_enter(subscriber, SUBSCRIBER_CONNECTING);
    return subscriber;
}

static void subscriber_shut(struct store_subscriber *subscriber)
{
    struct subscriber_channel *unwanted = NULL;

    dial_end(&subscriber->dial);
    twalk_r(subscriber->channels.tree, end_one, &unwanted);
    for (struct subscriber_channel *next; unwanted != NULL; unwanted = next) {
        next = unwanted->next;
        channel_remove(&subscriber->channels, unwanted);
    }
    subscriber->confirmed = subscriber->leaves = false;
    subscriber->run_id[0] = '\0';
}

void store_subscriber_close(struct store_subscriber *subscriber)
{
    assert(!subscriber->in_callback);
    subscriber_shut(subscriber);
    subscriber_enter(subscriber, SUBSCRIBER_IDLE);
    dial_close(&subscriber->dial);
    loop_hook_remove(subscriber->loop, &subscriber->turn_end);
    loop_timer_done(&subscriber->timer);
    tdestroy(subscriber->channels.tree, free);
    dial_forget_password(subscriber->dial.password);
    free(subscriber);
}

const char *store_subscriber_why(const struct store_subscriber *subscriber)
{
    return subscriber->why;
}

static void subscriber_drop(struct store_subscriber *subscriber, const char *why)
{
    bool confirmed = subscriber->confirmed;

    snprintf(subscriber->why, sizeof(subscriber->why), "%s", why);
    if (subscriber->state == SUBSCRIBER_STANDING && dial_lasted(subscriber->since_us))
        subscriber->attempts = 0;
    subscriber_shut(subscriber);
    subscriber_enter(subscriber, SUBSCRIBER_WAITING);
    if (confirmed && subscriber->owner->deaf != NULL) {
        subscriber->in_callback = true;
        subscriber->owner->deaf(subscriber->owner);
        subscriber->in_callback = false;
    }
}

/* -- the way to a link that stands */

static void subscriber_connect(struct store_subscriber *subscriber)
{
    char why[DIAL_WHY_MAX];

    if (!finder_leads(&subscriber->dial, why) || !dial_begin(&subscriber->dial, subscriber_io, why))
        subscriber_drop(subscriber, why);
}

static void subscriber_connected(struct store_subscriber *subscriber)
{
    const char *why;
    enum dial_step step = dial_go_on(&subscriber->dial, &why);

    if (step == DIAL_FAILED)
        subscriber_drop(subscriber, why);
    else if (step == DIAL_STANDS)
        subscriber_enter(subscriber, SUBSCRIBER_GREETING);
}

static void subscriber_greet(struct store_subscriber *subscriber)
{
    subscriber->greeting_left = 2;
    if (dial_names_itself(&subscriber->dial)) {
        subscriber->greeting_left++;
        dial_put_auth(&subscriber->dial);
    }
    wire_put_words(&subscriber->dial.wire, "INFO server");
    wire_put_command(&subscriber->dial.wire, &BYTES("PING"), 1);
}

static uint64_t sign_period_ms(const struct store_subscriber *subscriber)
{
    uint64_t most = subscriber->timeout_ms / SIGNS_IN_TIMEOUT + 1;

    return most < SIGN_MS ? most : SIGN_MS;
}

/* One timer for both: the next sign of life is to be asked for, or none has come for too long. */
static void subscriber_arm(struct store_subscriber *subscriber)
{
    uint64_t now_ms = loop_now_ms(), late_ms = subscriber->heard_ms + subscriber->timeout_ms;
    uint64_t next_ms = subscriber->ask_at_ms < late_ms ? subscriber->ask_at_ms : late_ms;

    loop_timer_arm(&subscriber->timer, next_ms > now_ms ? next_ms - now_ms : 1, 0);
}

static void subscriber_begin(struct store_subscriber *subscriber)
{
    subscriber->number++;
    subscriber->since_us = loop_now_us();
    subscriber->heard_ms = loop_now_ms();
    subscriber->ask_at_ms = subscriber->heard_ms + sign_period_ms(subscriber);
    twalk_r(subscriber->channels.tree, subscribe_one, &subscriber->dial.wire);
    loop_again(subscriber->loop);
    subscriber_arm(subscriber);
}

/* -- the timer */

/* A process that was held up finds signs that have come in time. */
static void subscriber_look_for_signs(struct store_subscriber *subscriber)
{
    if (loop_now_ms() >= subscriber->heard_ms + subscriber->timeout_ms)
        subscriber_read(subscriber);
    if (subscriber->state != SUBSCRIBER_STANDING)
        return;
    uint64_t now_ms = loop_now_ms();
    if (now_ms >= subscriber->heard_ms + subscriber->timeout_ms) {
        subscriber_drop(subscriber, "no answer in time");
        return;
    }
    if (now_ms >= subscriber->ask_at_ms) {
        subscriber->ask_at_ms = now_ms + sign_period_ms(subscriber);
        wire_put_command(&subscriber->dial.wire, &BYTES("PING"), 1);
    }
    subscriber_arm(subscriber);
}

static void subscriber_timer_fired(struct loop_timer *timer)
{
    struct store_subscriber *subscriber = container_of(timer, struct store_subscriber, timer);

    switch (subscriber->state) {
    case SUBSCRIBER_WAITING: subscriber_enter(subscriber, SUBSCRIBER_CONNECTING); return;
    case SUBSCRIBER_CONNECTING:
    case SUBSCRIBER_GREETING: subscriber_drop(subscriber, "no answer in time"); return;
    case SUBSCRIBER_STANDING: subscriber_look_for_signs(subscriber); return;
    case SUBSCRIBER_IDLE:
    case SUBSCRIBER_STATES: return;
    }
}

/* -- what is heard */

void store_subscriber_subscribe(struct store_subscriber *subscriber, struct bytes name)
{
    struct subscriber_channel *channel = channel_add(&subscriber->channels, name);

    if (++channel->wanted == 1 && subscriber->state == SUBSCRIBER_STANDING) {
        channel_subscribe(&subscriber->dial.wire, channel);
        loop_again(
            subscriber->loop); /* if this is the end of the turn, and our hook has already had its go */
    }
}

void store_subscriber_unsubscribe(struct store_subscriber *subscriber, struct bytes name)
{
    struct subscriber_channel *channel = channel_find(&subscriber->channels, name);

    assert(channel != NULL && channel->wanted > 0);
    if (--channel->wanted > 0)
        return;
    if (subscriber->state == SUBSCRIBER_STANDING) {
        channel->listens = false;
        channel_put(&subscriber->dial.wire, channel, "PUNSUBSCRIBE");
        loop_again(subscriber->loop);
    }
    if (channel->asked == 0)
        channel_remove(&subscriber->channels, channel);
}

void store_subscriber_leave(struct store_subscriber *subscriber)
{
    subscriber->leaves = true;
    loop_again(subscriber->loop);
}

bool store_subscriber_follow(struct store_subscriber *subscriber, const struct store *store)
{
    bool is_elsewhere = subscriber->run_id[0] != '\0' && store_link_stands(store) &&
                        strcmp(subscriber->run_id, store_run_id(store)) != 0;

    if (is_elsewhere)
        store_subscriber_leave(subscriber);
    return !is_elsewhere;
}

/* -- messages in */

static struct bytes text_of(const redisReply *reply)
{
    bool text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;

    return text ? (struct bytes){reply->str, reply->len} : (struct bytes){NULL, 0};
}

/* The takers are false when it makes no sense. */
static bool take_message(struct store_subscriber *subscriber, struct bytes subscribed, struct bytes channel,
                         struct bytes message)
{
    const struct subscriber_channel *known = channel_find(&subscriber->channels, subscribed);

    if (channel.at == NULL || message.at == NULL || message.len > MESSAGE_MAX)
        return false;
    if (known == NULL || !known->listens)
        return true; /* still from before it was unsubscribed from */
    subscriber->in_callback = true;
    subscriber->owner->heard(subscriber->owner, channel, message);
    subscriber->in_callback = false;
    return true;
}

static bool take_confirmation(struct store_subscriber *subscriber, struct bytes name)
{
    struct subscriber_channel *channel = channel_find(&subscriber->channels, name);

    if (channel == NULL || channel->asked == 0)
        return false;
    if (--channel->asked > 0)
        return true;
    if (channel->wanted == 0) {
        channel_remove(&subscriber->channels, channel);
        return true;
    }
    channel->listens = true;
    subscriber->confirmed = true;
    subscriber->why[0] = '\0';
    subscriber->in_callback = true;
    if (subscriber->owner->listens != NULL)
        subscriber->owner->listens(subscriber->owner, name);
    subscriber->in_callback = false;
    return true;
}

/* In RESP2 messages and confirmations differ by their first word only. */
static bool take_push(struct store_subscriber *subscriber, const redisReply *reply)
{
    struct bytes part[4] = {{NULL, 0}};

    if (reply->elements < 2 || reply->elements > 4)
        return false;
    for (size_t i = 0; i < reply->elements; i++)
        part[i] = text_of(reply->element[i]);
    if (bytes_are(part[0], "message"))
        return take_message(subscriber, part[1], part[1], part[2]);
    if (bytes_are(part[0], "pmessage"))
        return take_message(subscriber, part[1], part[2], part[3]);
    if (bytes_are(part[0], "subscribe") || bytes_are(part[0], "psubscribe"))
        return take_confirmation(subscriber, part[1]);
    return bytes_are(part[0], "unsubscribe") || bytes_are(part[0], "punsubscribe") ||
           bytes_are(part[0], "pong");
}

/* INFO may not be allowed. */
static bool take_greeting(struct store_subscriber *subscriber, const redisReply *reply)
{
    struct bytes run_id = reply_info_field(text_of(reply), "run_id");
    bool is_info = --subscriber->greeting_left == 1;

    if (is_info && run_id.len == STORE_RUN_ID_LEN)
        memcpy(subscriber->run_id, run_id.at, run_id.len);
    if (!is_info && reply->type != REDIS_REPLY_STATUS)
        return false;
    if (subscriber->greeting_left == 0)
        subscriber_enter(subscriber, SUBSCRIBER_STANDING);
    return true;
}

static bool subscriber_take(struct store_subscriber *subscriber, const redisReply *reply)
{
    if (subscriber->state == SUBSCRIBER_GREETING)
        return take_greeting(subscriber, reply);
    return reply->type == REDIS_REPLY_ARRAY ? take_push(subscriber, reply)
                                            : bytes_are(text_of(reply), "PONG");
}

/* With what it makes no sense of; NULL: it is no reply. */
static void subscriber_refused(struct store_subscriber *subscriber, const redisReply *reply)
{
    bool is_error = reply != NULL && reply->type == REDIS_REPLY_ERROR;

    subscriber_drop(subscriber, is_error ? reply->str : "Redis says what makes no sense here");
}

/* Whether the link still stands. */
static bool subscriber_take_all(struct store_subscriber *subscriber)
{
    redisReader *reader = subscriber->dial.context->reader;

    for (;;) {
        void *reply = NULL;
        bool good = redisReaderGetReply(reader, &reply) == REDIS_OK;

        if (good && reply == NULL && reader->len - reader->pos <= MESSAGE_MAX)
            return true;
        good = good && reply != NULL && subscriber_take(subscriber, reply);
        if (!good)
            subscriber_refused(subscriber, reply);
        if (reply != NULL)
            freeReplyObject(reply);
        if (!good)
            return false;
    }
}

static void subscriber_read(struct store_subscriber *subscriber)
{
    size_t got = DIAL_READ_SIZE;

    for (unsigned i = 0; got >= DIAL_READ_SIZE && i < READS_MAX; i++) {
        size_t before = subscriber->dial.context->reader->len;

        if (dial_read(&subscriber->dial) != REDIS_OK) {
            subscriber_drop(subscriber, subscriber->dial.context->errstr);
            return;
        }
        got = subscriber->dial.context->reader->len - before;
        if (got > 0)
            subscriber->heard_ms = loop_now_ms();
        if (!subscriber_take_all(subscriber))
            return;
    }
}

/* -- subscriptions out */

static void subscriber_write(struct store_subscriber *subscriber)
{
    if (dial_write(&subscriber->dial) == WIRE_BROKEN)
        subscriber_drop(subscriber, "its connection broke");
}

static void subscriber_turn_end(struct loop_hook *hook)
{
    struct store_subscriber *subscriber = container_of(hook, struct store_subscriber, turn_end);
    bool open = subscriber->state == SUBSCRIBER_STANDING || subscriber->state == SUBSCRIBER_GREETING;

    if (open && (subscriber->leaves || finder_has_moved(&subscriber->dial)))
        subscriber_drop(subscriber, "another node is the primary");
    else if (open && !subscriber->dial.blocked && wire_waiting(&subscriber->dial.wire) > 0)
        subscriber_write(subscriber);
}

static void subscriber_io(struct loop_watch *watch, int events)
{
    struct store_subscriber *subscriber = container_of(watch, struct store_subscriber, dial.watch);

    if (subscriber->state == SUBSCRIBER_CONNECTING) {
        subscriber_connected(subscriber);
        return;
    }
    if (events & (LOOP_READ | LOOP_HANGUP))
        subscriber_read(subscriber);
    if (events & LOOP_WRITE && subscriber->dial.context != NULL)
        subscriber_write(subscriber);
}
