/* subscriber_io.c - the subscriber's two directions: messages in, subscriptions out. */
#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

enum {
    MESSAGE_MAX = 16 * 1024, /* one that is larger ends the link: ours are some hundred bytes */
    READS_MAX = 16,          /* of one event: others want their turn too */
    READ_SIZE = 16 * 1024    /* of redisBufferRead() (hiredis.c of 0.14.1 and 1.2.0) */
};

/* -- what comes */

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

    if (channel.at == NULL || message.at == NULL || message.len > MESSAGE_MAX) {
        return false;
    }
    if (known == NULL || !known->listens) {
        return true; /* still from before it was unsubscribed from */
    }
    subscriber->in_callback = true;
    subscriber->owner->heard(subscriber->owner, channel, message);
    subscriber->in_callback = false;
    return true;
}

static bool take_confirmation(struct store_subscriber *subscriber, struct bytes name)
{
    struct subscriber_channel *channel = channel_find(&subscriber->channels, name);

    if (channel == NULL || channel->asked == 0) {
        return false;
    }
    if (--channel->asked > 0) {
        return true;
    }
    if (channel->wanted == 0) {
        channel_remove(&subscriber->channels, channel);
        return true;
    }
    channel->listens = true;
    subscriber->told = true;
    subscriber->in_callback = true;
    subscriber->owner->listens(subscriber->owner, name);
    subscriber->in_callback = false;
    return true;
}

/* RESP2 tells messages and confirmations apart by their first word only. */
static bool take_push(struct store_subscriber *subscriber, const redisReply *reply)
{
    struct bytes part[4] = {{NULL, 0}};

    if (reply->elements < 2 || reply->elements > 4) {
        return false;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        part[i] = text_of(reply->element[i]);
    }
    if (bytes_are(part[0], "message")) {
        return take_message(subscriber, part[1], part[1], part[2]);
    }
    if (bytes_are(part[0], "pmessage")) {
        return take_message(subscriber, part[1], part[2], part[3]);
    }
    if (bytes_are(part[0], "subscribe") || bytes_are(part[0], "psubscribe")) {
        return take_confirmation(subscriber, part[1]);
    }
    return bytes_are(part[0], "unsubscribe") || bytes_are(part[0], "punsubscribe") ||
           bytes_are(part[0], "pong");
}

static bool subscriber_take(struct store_subscriber *subscriber, const redisReply *reply)
{
    if (subscriber->state == SUBSCRIBER_GREETING) {
        if (reply->type != REDIS_REPLY_STATUS) {
            return false;
        }
        if (--subscriber->greeting_left == 0) {
            subscriber_stands(subscriber);
        }
        return true;
    }
    return reply->type == REDIS_REPLY_ARRAY ? take_push(subscriber, reply)
                                            : bytes_are(text_of(reply), "PONG");
}

/* Whether the link still stands. */
static bool subscriber_take_all(struct store_subscriber *subscriber)
{
    redisReader *reader = subscriber->context->reader;

    for (;;) {
        void *reply = NULL;
        bool good = redisReaderGetReply(reader, &reply) == REDIS_OK;

        if (good && reply == NULL && reader->len - reader->pos <= MESSAGE_MAX) {
            return true;
        }
        good = good && reply != NULL && subscriber_take(subscriber, reply);
        if (reply != NULL) {
            freeReplyObject(reply);
        }
        if (!good) {
            subscriber_drop(subscriber);
            return false;
        }
    }
}

void subscriber_read(struct store_subscriber *subscriber)
{
    size_t got = READ_SIZE;

    for (unsigned i = 0; got == READ_SIZE && i < READS_MAX; i++) {
        size_t before = subscriber->context->reader->len;

        if (redisBufferRead(subscriber->context) != REDIS_OK) {
            subscriber_drop(subscriber);
            return;
        }
        got = subscriber->context->reader->len - before;
        if (got > 0) {
            subscriber->heard_ms = loop_now_ms();
        }
        if (!subscriber_take_all(subscriber)) {
            return;
        }
    }
}

/* -- what goes */

static void subscriber_write(struct store_subscriber *subscriber)
{
    enum wire_end end = wire_flush(&subscriber->wire, subscriber->context->fd);

    if (end == WIRE_BROKEN) {
        subscriber_drop(subscriber);
    } else if (subscriber->blocked != (end == WIRE_BLOCKED)) {
        subscriber->blocked = end == WIRE_BLOCKED;
        loop_watch_set(&subscriber->watch, subscriber->blocked ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    }
}

void subscriber_flush(struct store_subscriber *subscriber)
{
    bool open = subscriber->state == SUBSCRIBER_STANDING || subscriber->state == SUBSCRIBER_GREETING;

    if (open && !subscriber->blocked && wire_waiting(&subscriber->wire) > 0) {
        subscriber_write(subscriber);
    }
}

void subscriber_io(struct loop_watch *watch, int events)
{
    struct store_subscriber *subscriber = container_of(watch, struct store_subscriber, watch);

    if (subscriber->state == SUBSCRIBER_CONNECTING) {
        subscriber_connected(subscriber);
        return;
    }
    if (events & (LOOP_READ | LOOP_HANGUP)) {
        subscriber_read(subscriber);
    }
    if (events & LOOP_WRITE && subscriber->context != NULL) {
        subscriber_write(subscriber);
    }
}
