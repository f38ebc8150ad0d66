/* subscriber_io.c - the ear's two directions: messages in, subscriptions out. */
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
static bool take_message(struct store_ear *ear, struct bytes subscribed, struct bytes channel,
                         struct bytes message)
{
    const struct ear_channel *known = channel_find(&ear->channels, subscribed);

    if (channel.at == NULL || message.at == NULL || message.len > MESSAGE_MAX) {
        return false;
    }
    if (known == NULL || !known->listens) {
        return true; /* still from before it was unsubscribed from */
    }
    ear->in_callback = true;
    ear->owner->heard(ear->owner, channel, message);
    ear->in_callback = false;
    return true;
}

static bool take_confirmation(struct store_ear *ear, struct bytes name)
{
    struct ear_channel *channel = channel_find(&ear->channels, name);

    if (channel == NULL || channel->asked == 0) {
        return false;
    }
    if (--channel->asked > 0) {
        return true;
    }
    if (channel->wanted == 0) {
        channel_remove(&ear->channels, channel);
        return true;
    }
    channel->listens = true;
    ear->told = true;
    ear->in_callback = true;
    ear->owner->listens(ear->owner, name);
    ear->in_callback = false;
    return true;
}

/* RESP2 tells messages and confirmations apart by their first word only. */
static bool take_push(struct store_ear *ear, const redisReply *reply)
{
    struct bytes part[4] = {{NULL, 0}};

    if (reply->elements < 2 || reply->elements > 4) {
        return false;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        part[i] = text_of(reply->element[i]);
    }
    if (bytes_are(part[0], "message")) {
        return take_message(ear, part[1], part[1], part[2]);
    }
    if (bytes_are(part[0], "pmessage")) {
        return take_message(ear, part[1], part[2], part[3]);
    }
    if (bytes_are(part[0], "subscribe") || bytes_are(part[0], "psubscribe")) {
        return take_confirmation(ear, part[1]);
    }
    return bytes_are(part[0], "unsubscribe") || bytes_are(part[0], "punsubscribe") ||
           bytes_are(part[0], "pong");
}

static bool ear_take(struct store_ear *ear, const redisReply *reply)
{
    if (ear->state == EAR_GREETING) {
        if (reply->type != REDIS_REPLY_STATUS) {
            return false;
        }
        if (--ear->greeting_left == 0) {
            ear_stands(ear);
        }
        return true;
    }
    return reply->type == REDIS_REPLY_ARRAY ? take_push(ear, reply) : bytes_are(text_of(reply), "PONG");
}

/* Whether the link still stands. */
static bool ear_take_all(struct store_ear *ear)
{
    redisReader *reader = ear->context->reader;

    for (;;) {
        void *reply = NULL;
        bool good = redisReaderGetReply(reader, &reply) == REDIS_OK;

        if (good && reply == NULL && reader->len - reader->pos <= MESSAGE_MAX) {
            return true;
        }
        good = good && reply != NULL && ear_take(ear, reply);
        if (reply != NULL) {
            freeReplyObject(reply);
        }
        if (!good) {
            ear_drop(ear);
            return false;
        }
    }
}

void ear_read(struct store_ear *ear)
{
    size_t got = READ_SIZE;

    for (unsigned i = 0; got == READ_SIZE && i < READS_MAX; i++) {
        size_t before = ear->context->reader->len;

        if (redisBufferRead(ear->context) != REDIS_OK) {
            ear_drop(ear);
            return;
        }
        got = ear->context->reader->len - before;
        if (got > 0) {
            ear->heard_ms = loop_now_ms();
        }
        if (!ear_take_all(ear)) {
            return;
        }
    }
}

/* -- what goes */

static void ear_write(struct store_ear *ear)
{
    enum wire_end end = wire_flush(&ear->wire, ear->context->fd);

    if (end == WIRE_BROKEN) {
        ear_drop(ear);
    } else if (ear->blocked != (end == WIRE_BLOCKED)) {
        ear->blocked = end == WIRE_BLOCKED;
        loop_watch_set(&ear->watch, ear->blocked ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    }
}

void ear_flush(struct store_ear *ear)
{
    bool open = ear->state == EAR_STANDING || ear->state == EAR_GREETING;

    if (open && !ear->blocked && wire_waiting(&ear->wire) > 0) {
        ear_write(ear);
    }
}

void ear_io(struct loop_watch *watch, int events)
{
    struct store_ear *ear = container_of(watch, struct store_ear, watch);

    if (ear->state == EAR_CONNECTING) {
        ear_connected(ear);
        return;
    }
    if (events & (LOOP_READ | LOOP_HANGUP)) {
        ear_read(ear);
    }
    if (events & LOOP_WRITE && ear->context != NULL) {
        ear_write(ear);
    }
}
