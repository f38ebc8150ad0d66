/* event_hub.c - what happens to leases, as it happens.
 *
 *   feed_heard     a message: to those who listen to its lease, then to those who listen to all
 *   channel_round  what was gathered: to a few of its listeners after the other
 *   feed_listens   Redis has confirmed a channel: the store is to publish, then its listeners are told
 *   feed_stands    the store publishes: the listeners of what Redis has confirmed are told
 *   feed_missed    all who listened are told, and what was kept is forgotten
 *   feed_off       the same, and all who wait to listen, too
 *   feed_deaf      the same as feed_missed(); nothing is confirmed any more
 *
 * A channel for each lease that somebody listens to, and a pattern for all of them. Redis tells what fits
 * both twice, one right behind the other (pubsubPublishMessageInternal of 7.0: to the channel's subscribers,
 * then to the patterns'), so the second is the one that is the same to the byte: no two items have the same
 * id. */
#include "lease/events/event_hub.h"

#include <assert.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

#include "lease/events/listen.h"
#include "lease/operation.h"
#include "shared/text/memory.h"

#define CHANNEL_PREFIX "pawl:e:"

enum {
    PREFIX_LEN = sizeof(CHANNEL_PREFIX) - 1,
    STRIPE_LEN = 3, /* a message is "SS ITEM" */
    CHANNEL_SIZE = PREFIX_LEN + NAME_MAX_BYTES + 1,
    SAME_MAX = 2048 /* bytes of the last message that are remembered, more than an item has */
};

/* One that is listened to; prev and next: all of them but that of all leases. A round hands text out up to
 * end; who begins to gather meanwhile has a place behind that. */
struct feed_channel {
    struct feed *feed;
    struct feed_channel *prev, *next;
    struct feed_listener *fresh, *gathering; /* those who get item(), and text() */
    struct feed_listener *at;                /* who is next in the round that is under way; NULL: none is */
    struct json_out gathered[EVENTS_FORMS];
    uint64_t begin[EVENTS_FORMS],
        end[EVENTS_FORMS]; /* of gathered, and of the round, counted from the first byte */
    unsigned readers[EVENTS_FORMS];
    struct loop_timer timer;
    bool armed, in_round;
    uint64_t earliest_us; /* what comes before this is gathered */
    char text[CHANNEL_SIZE];
    struct bytes name;          /* in text: the lease's; "*": all */
    bool subscribed, confirmed; /* by Redis */
    bool listens;               /* and what happens is published */
};

struct kept {
    struct bytes lease, message; /* behind the struct */
};

struct feed {
    struct worker *worker;
    struct store_ear *ear;
    struct store_ear_owner owner;
    struct listen listen;
    void *tree; /* of the channels, by name; tsearch(3) */
    struct feed_channel *channels;
    struct feed_channel all;
    struct loop_timer linger;
    unsigned linger_ms;
    struct kept **ring; /* FEED_KEPT of them while all leases are listened to, else NULL */
    unsigned oldest, kept;
    unsigned listeners;
    bool is_off;         /* as the store said last */
    char last[SAME_MAX]; /* the last message, its lease in front */
    size_t last_len;
};

static void feed_heard(struct store_ear_owner *owner, struct bytes channel, struct bytes message);
static void feed_listens(struct store_ear_owner *owner, struct bytes channel);
static void feed_deaf(struct store_ear_owner *owner);
static void feed_stands(struct listen *listen);
static void feed_missed(struct listen *listen);
static void feed_off(struct listen *listen);
static void feed_linger_over(struct loop_timer *timer);
static void channel_listens(struct feed_channel *one);
static void channel_round(struct loop_timer *timer);

static void channel_init(struct feed *feed, struct feed_channel *channel, struct bytes name)
{
    int len = snprintf(channel->text, sizeof(channel->text), CHANNEL_PREFIX "%.*s", (int)name.len, name.at);

    assert((size_t)len < sizeof(channel->text));
    channel->name = (struct bytes){channel->text + PREFIX_LEN, (size_t)len - PREFIX_LEN};
    channel->feed = feed;
    loop_timer_init(feed->worker->loop, &channel->timer, channel_round);
    for (unsigned i = 0; i < EVENTS_FORMS; i++) {
        json_out_init(&channel->gathered[i]);
    }
}

static void channel_done(struct feed_channel *channel)
{
    loop_timer_done(&channel->timer);
    for (unsigned i = 0; i < EVENTS_FORMS; i++) {
        json_out_done(&channel->gathered[i]);
    }
}

struct feed *feed_new(struct worker *worker, struct store_options options)
{
    struct feed *feed = must_have(calloc(1, sizeof(*feed)));

    feed->worker = worker;
    feed->owner = (struct store_ear_owner){feed_heard, feed_listens, feed_deaf};
    feed->linger_ms = FEED_LINGER_MS;
    channel_init(feed, &feed->all, BYTES("*"));
    loop_timer_init(worker->loop, &feed->linger, feed_linger_over);
    feed->listen = (struct listen){.stands = feed_stands, .missed = feed_missed, .off = feed_off};
    listen_init(&feed->listen, worker->loop, record_line_of_worker(worker));
    feed->ear = store_ear_open(worker->loop, &options, &feed->owner);
    return feed;
}

void feed_linger(struct feed *feed, unsigned linger_ms)
{
    feed->linger_ms = linger_ms;
}

/* -- what is kept for those who come back */

static void ring_empty(struct feed *feed)
{
    for (; feed->kept > 0; feed->kept--) {
        free(feed->ring[feed->oldest]);
        feed->oldest = (feed->oldest + 1) % FEED_KEPT;
    }
}

static void ring_drop(struct feed *feed)
{
    ring_empty(feed);
    free(feed->ring);
    feed->ring = NULL;
}

static void ring_add(struct feed *feed, struct bytes lease, struct bytes message)
{
    struct kept *one = must_have(malloc(sizeof(*one) + lease.len + message.len));
    char *at = (char *)(one + 1);

    if (feed->kept == FEED_KEPT) {
        free(feed->ring[feed->oldest]);
        feed->oldest = (feed->oldest + 1) % FEED_KEPT;
        feed->kept--;
    }
    memcpy(at, lease.at, lease.len);
    memcpy(at + lease.len, message.at, message.len);
    *one = (struct kept){{at, lease.len}, {at + lease.len, message.len}};
    feed->ring[(feed->oldest + feed->kept) % FEED_KEPT] = one;
    feed->kept++;
}

static struct bytes item_of(struct bytes message)
{
    return (struct bytes){message.at + STRIPE_LEN, message.len - STRIPE_LEN};
}

/* Whether the message is that of the item "SS.EPOCH.SEQ.N". */
static bool has_id(struct bytes message, struct bytes id)
{
    return id.len > STRIPE_LEN && message.len > id.len && memcmp(message.at, id.at, 2) == 0 &&
           memcmp(message.at + STRIPE_LEN, id.at + STRIPE_LEN, id.len - STRIPE_LEN) == 0 &&
           message.at[id.len] == '\t';
}

/* How many were kept before it and with it; 0: it is not there. */
static unsigned ring_find(const struct feed *feed, struct bytes id)
{
    for (unsigned i = feed->kept; i > 0; i--) {
        if (has_id(feed->ring[(feed->oldest + i - 1) % FEED_KEPT]->message, id)) {
            return i;
        }
    }
    return 0;
}

bool feed_has(const struct feed *feed, struct bytes id)
{
    return ring_find(feed, id) > 0;
}

void feed_replay(const struct feed *feed, struct bytes id, struct feed_listener *listener,
                 bool (*item)(struct feed_listener *listener, struct bytes lease, struct bytes item))
{
    unsigned begin = ring_find(feed, id);

    assert(begin > 0);
    for (unsigned i = begin; i < feed->kept; i++) {
        const struct kept *one = feed->ring[(feed->oldest + i) % FEED_KEPT];

        if (!item(listener, one->lease, item_of(one->message))) {
            return;
        }
    }
}

/* -- those who listen */

static int compare(const void *a, const void *b)
{
    struct bytes one = ((const struct feed_channel *)a)->name, other = ((const struct feed_channel *)b)->name;
    size_t len = one.len < other.len ? one.len : other.len;
    int order = memcmp(one.at, other.at, len);

    return order != 0 ? order : (one.len > other.len) - (one.len < other.len);
}

static struct feed_channel *channel_find(const struct feed *feed, struct bytes name)
{
    struct feed_channel wanted = {.name = name};
    struct feed_channel *const *found = tfind(&wanted, &feed->tree, compare);

    return found != NULL ? *found : NULL;
}

static struct feed_channel *channel_add(struct feed *feed, struct bytes name)
{
    struct feed_channel *channel = channel_find(feed, name);

    if (channel != NULL) {
        return channel;
    }
    channel = must_have(calloc(1, sizeof(*channel)));
    channel_init(feed, channel, name);
    must_have(tsearch(channel, &feed->tree, compare));
    channel->next = feed->channels;
    if (channel->next != NULL) {
        channel->next->prev = channel;
    }
    feed->channels = channel;
    return channel;
}

static void channel_subscribe(struct feed *feed, struct feed_channel *channel)
{
    if (!channel->subscribed) {
        channel->subscribed = true;
        store_ear_subscribe(feed->ear, bytes_of(channel->text));
    }
}

static void channel_unsubscribe(struct feed *feed, struct feed_channel *channel)
{
    channel->subscribed = channel->confirmed = channel->listens = false;
    store_ear_unsubscribe(feed->ear, bytes_of(channel->text));
}

static void feed_leave_if_silent(struct feed *feed)
{
    if (feed->channels == NULL && !feed->all.subscribed) {
        listen_leave(&feed->listen);
    }
}

/* Nobody listens to it any more. */
static void channel_leave(struct feed *feed, struct feed_channel *channel)
{
    if (channel == &feed->all) {
        loop_timer_arm(&feed->linger, feed->linger_ms, 0);
        return;
    }
    channel_unsubscribe(feed, channel);
    tdelete(channel, &feed->tree, compare);
    *(channel->prev != NULL ? &channel->prev->next : &feed->channels) = channel->next;
    if (channel->next != NULL) {
        channel->next->prev = channel->prev;
    }
    channel_done(channel);
    free(channel);
    feed_leave_if_silent(feed);
}

static void feed_linger_over(struct loop_timer *timer)
{
    struct feed *feed = container_of(timer, struct feed, linger);

    channel_unsubscribe(feed, &feed->all);
    ring_drop(feed);
    feed_leave_if_silent(feed);
}

static void count_listeners(struct feed *feed, unsigned listeners)
{
    feed->listeners = listeners;
    metric_set(feed->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_LISTENING, listeners);
}

static void listener_put(struct feed_listener *listener, struct feed_listener **first)
{
    listener->prev = NULL;
    listener->next = *first;
    if (listener->next != NULL) {
        listener->next->prev = listener;
    }
    *first = listener;
}

bool feed_listen(struct feed *feed, struct feed_listener *listener, struct bytes lease)
{
    struct feed_channel *channel = lease.len > 0 ? channel_add(feed, lease) : &feed->all;

    if (channel == &feed->all) {
        loop_timer_disarm(&feed->linger);
        if (feed->ring == NULL) {
            feed->ring = must_have(calloc(FEED_KEPT, sizeof(struct kept *)));
        }
    }
    channel_subscribe(feed, channel);
    listener->channel = channel;
    listener->gathers = false;
    listener_put(listener, &channel->fresh);
    count_listeners(feed, feed->listeners + 1);
    if (channel->confirmed && !channel->listens) {
        listen_want(&feed->listen); /* nothing was noted when it was last asked */
    }
    return channel->listens;
}

static void listener_take(struct feed_listener *listener)
{
    struct feed_channel *channel = listener->channel;
    struct feed_listener **first = listener->gathers ? &channel->gathering : &channel->fresh;

    *(listener->prev != NULL ? &listener->prev->next : first) = listener->next;
    if (listener->next != NULL) {
        listener->next->prev = listener->prev;
    }
    channel->at = channel->at == listener ? listener->next : channel->at;
    channel->readers[listener->form] -= listener->gathers;
}

void feed_gather(struct feed_listener *listener)
{
    struct feed_channel *channel = listener->channel;
    unsigned form = listener->form;

    listener_take(listener);
    listener->gathers = true;
    listener->from = channel->begin[form] + channel->gathered[form].len;
    channel->readers[form]++;
    listener_put(listener, &channel->gathering);
}

static void channel_leave_if_empty(struct feed_channel *channel)
{
    if (!channel->in_round && channel->fresh == NULL && channel->gathering == NULL) {
        channel_leave(channel->feed, channel);
    }
}

void feed_forget(struct feed *feed, struct feed_listener *listener)
{
    struct feed_channel *channel = listener->channel;

    listener_take(listener);
    listener->channel = NULL;
    count_listeners(feed, feed->listeners - 1);
    channel_leave_if_empty(channel);
}

/* -- what is gathered */

/* Whether the items of the last second have been few, this one counted. */
static bool channel_is_calm(struct feed_channel *channel)
{
    uint64_t now_us = loop_now_us(), second_us = 1000000, each_us = second_us / FEED_AT_ONCE;

    if (channel->earliest_us + second_us < now_us) {
        channel->earliest_us = now_us - second_us;
    }
    channel->earliest_us += each_us;
    return channel->earliest_us <= now_us;
}

static bool channel_has_much(const struct feed_channel *channel)
{
    return channel->gathered[EVENTS_SSE].len + channel->gathered[EVENTS_NDJSON].len >= FEED_GATHER_BYTES;
}

static void channel_arm(struct feed_channel *channel, uint64_t delay_ms)
{
    channel->armed = true;
    loop_timer_arm(&channel->timer, delay_ms, 0);
}

static void channel_gather(struct feed_channel *channel, struct bytes lease, struct bytes packed)
{
    bool is_calm = channel_is_calm(channel);
    struct history_item item;

    if (channel->gathering == NULL || !history_item_read(packed, &item)) {
        return;
    }
    for (unsigned form = 0; form < EVENTS_FORMS; form++) {
        if (channel->readers[form] > 0) {
            events_put_item(&channel->gathered[form], (enum events_form)form, lease, &item);
        }
    }
    if (channel->at == NULL && (is_calm || channel_has_much(channel))) {
        channel_arm(channel, channel_has_much(channel) ? 0 : FEED_SOON_MS);
    } else if (!channel->armed) {
        channel_arm(channel, FEED_GATHER_MS);
    }
}

/* What it has not been told yet, up to end; false: it is no more. */
static bool listener_tell(struct feed_channel *channel, struct feed_listener *listener, uint64_t end)
{
    const char *text = channel->gathered[listener->form].at;
    uint64_t begin = channel->begin[listener->form], from = listener->from;

    if (from >= end) {
        return true;
    }
    listener->from = end;
    return listener->text(listener, (struct bytes){text + (from - begin), (size_t)(end - from)});
}

static void channel_round_begin(struct feed_channel *channel)
{
    for (unsigned form = 0; form < EVENTS_FORMS; form++) {
        channel->end[form] = channel->begin[form] + channel->gathered[form].len;
    }
    channel->at = channel->gathering;
}

/* Everybody has been told what was gathered before it: it is forgotten. */
static void channel_round_end(struct feed_channel *channel)
{
    bool more = false;

    for (unsigned form = 0; form < EVENTS_FORMS; form++) {
        struct json_out *text = &channel->gathered[form];
        size_t told = (size_t)(channel->end[form] - channel->begin[form]), left = text->len - told;

        if (left > 0) {
            memmove(text->at, text->at + told, left);
            text->len = left;
        } else {
            json_out_done(text); /* most channels are silent for most of the time */
        }
        channel->begin[form] += told;
        more = more || left > 0;
    }
    if (more) {
        channel_arm(channel, channel_has_much(channel) ? 0 : FEED_GATHER_MS);
    }
}

static void channel_round(struct loop_timer *timer)
{
    struct feed_channel *channel = container_of(timer, struct feed_channel, timer);
    bool was_empty = channel->fresh == NULL && channel->gathering == NULL;

    channel->armed = false;
    if (channel->at == NULL) {
        channel_round_begin(channel);
    }
    channel->in_round = true; /* the last of them may leave: the channel stays until this is over */
    for (unsigned i = 0; i < FEED_SLICE && channel->at != NULL; i++) {
        struct feed_listener *listener = channel->at;
        channel->at = listener->next;
        listener_tell(channel, listener, channel->end[listener->form]);
    }
    channel->in_round = false;
    if (channel->at != NULL) {
        channel_arm(channel, 0);
    } else {
        channel_round_end(channel);
    }
    if (!was_empty) {
        channel_leave_if_empty(channel);
    }
}

/* With the last of them the channel goes. Who gathers is told what there is before. */
static void channel_lost(struct feed_channel *channel)
{
    struct feed_listener *gathering = channel->gathering, *next;

    for (struct feed_listener *listener = channel->fresh; listener != NULL; listener = next) {
        next = listener->next;
        listener->lost(listener);
    }
    for (struct feed_listener *listener = gathering; listener != NULL; listener = next) {
        unsigned form = listener->form;
        next = listener->next;
        if (listener_tell(channel, listener, channel->begin[form] + channel->gathered[form].len)) {
            listener->lost(listener);
        }
    }
}

void feed_drain(struct feed *feed)
{
    while (feed->channels != NULL) {
        channel_lost(feed->channels);
    }
    channel_lost(&feed->all);
    assert(feed->listeners == 0);
}

void feed_stop(struct feed *feed)
{
    listen_stop(&feed->listen);
}

void feed_free(struct feed *feed)
{
    feed_drain(feed);
    store_ear_close(feed->ear);
    loop_timer_done(&feed->linger);
    ring_drop(feed);
    channel_done(&feed->all);
    free(feed);
}

/* -- what the ear says */

/* Whether it is the last message once more; and remembers it. */
static bool is_heard_again(struct feed *feed, struct bytes lease, struct bytes message)
{
    size_t len = lease.len + message.len;

    if (len == feed->last_len && memcmp(feed->last, lease.at, lease.len) == 0 &&
        memcmp(feed->last + lease.len, message.at, message.len) == 0) {
        return true;
    }
    feed->last_len = 0;
    if (len <= sizeof(feed->last)) {
        memcpy(feed->last, lease.at, lease.len);
        memcpy(feed->last + lease.len, message.at, message.len);
        feed->last_len = len;
    }
    return false;
}

/* Gathered first: who begins to gather now has been told this one. */
static void channel_tell(struct feed_channel *channel, struct bytes lease, struct bytes item)
{
    channel_gather(channel, lease, item);
    for (struct feed_listener *listener = channel->fresh, *next; listener != NULL; listener = next) {
        next = listener->next;
        listener->item(listener, lease, item);
    }
}

static void feed_heard(struct store_ear_owner *owner, struct bytes channel, struct bytes message)
{
    struct feed *feed = container_of(owner, struct feed, owner);
    struct bytes lease = {channel.at + PREFIX_LEN, channel.len - PREFIX_LEN};
    struct feed_channel *one;

    if (channel.len <= PREFIX_LEN || !name_is_lease(lease) || message.len <= STRIPE_LEN ||
        is_heard_again(feed, lease, message)) {
        return;
    }
    one = channel_find(feed, lease);
    if (one != NULL && one->listens) {
        channel_tell(one, lease, item_of(message));
    }
    if (feed->all.listens) {
        ring_add(feed, lease, message);
        channel_tell(&feed->all, lease, item_of(message));
    }
}

static void feed_listens(struct store_ear_owner *owner, struct bytes channel)
{
    struct feed *feed = container_of(owner, struct feed, owner);
    struct bytes name = {channel.at + PREFIX_LEN, channel.len - PREFIX_LEN};
    struct feed_channel *one = bytes_equal(name, feed->all.name) ? &feed->all : channel_find(feed, name);

    one->confirmed = true;
    if (listen_want(&feed->listen)) {
        channel_listens(one);
    }
}

static void channel_listens(struct feed_channel *one)
{
    one->listens = true;
    for (struct feed_listener *listener = one->fresh, *next; listener != NULL; listener = next) {
        next = listener->next;
        listener->listens(listener);
    }
}

static void feed_stands(struct listen *listen)
{
    struct feed *feed = container_of(listen, struct feed, listen);

    feed->is_off = false;
    for (struct feed_channel *channel = feed->channels, *next; channel != NULL; channel = next) {
        next = channel->next;
        if (channel->confirmed && !channel->listens) {
            channel_listens(channel);
        }
    }
    if (feed->all.confirmed && !feed->all.listens) {
        channel_listens(&feed->all);
    }
}

static void feed_deaf(struct store_ear_owner *owner)
{
    struct feed *feed = container_of(owner, struct feed, owner);

    feed->all.confirmed = false;
    for (struct feed_channel *channel = feed->channels; channel != NULL; channel = channel->next) {
        channel->confirmed = false;
    }
    listen_forget(&feed->listen);
    feed_missed(&feed->listen);
}

/* Those who wait for a channel to be listened to have missed nothing: they go on waiting. */
static void feed_missed(struct listen *listen)
{
    struct feed *feed = container_of(listen, struct feed, listen);

    ring_empty(feed);
    feed->last_len = 0;
    for (struct feed_channel *channel = feed->channels, *next; channel != NULL; channel = next) {
        next = channel->next;
        if (channel->listens) {
            channel->listens = false;
            channel_lost(channel);
        }
    }
    if (feed->all.listens) {
        feed->all.listens = false;
        channel_lost(&feed->all);
    }
}

bool feed_is_off(const struct feed *feed)
{
    return feed->is_off;
}

static void feed_off(struct listen *listen)
{
    struct feed *feed = container_of(listen, struct feed, listen);

    feed->is_off = true;
    ring_empty(feed);
    feed_drain(feed);
    feed->all.listens = false;
}
