/* event_hub.c - what happens to leases, as it happens.
 *
 *   event_hub_heard a message: to those who listen to its lease, then to those who listen to all
 *   channel_round  what was gathered: to a few of its listeners after the other
 *   event_hub_listens Redis has confirmed a channel: the store is to publish, then its listeners are told
 *   event_hub_stands the store publishes: the listeners of what Redis has confirmed are told
 *   event_hub_missed all who listened are told, and what was kept is forgotten
 *   event_hub_off  the same, and all who wait to listen, too
 *   event_hub_deaf the same as event_hub_missed(); nothing is confirmed any more
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
struct event_channel {
    struct event_hub *event_hub;
    struct event_channel *prev, *next;
    struct event_listener *fresh, *gathering; /* those who get item(), and text() */
    struct event_listener *at;                /* who is next in the round that is under way; NULL: none is */
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

struct event_hub {
    struct worker *worker;
    struct store_subscriber *subscriber;
    struct store_subscriber_owner owner;
    struct listen listen;
    void *tree; /* of the channels, by name; tsearch(3) */
    struct event_channel *channels;
    struct event_channel all;
    struct loop_timer linger;
    unsigned linger_ms;
    struct kept **ring; /* EVENT_HUB_KEPT of them while all leases are listened to, else NULL */
    unsigned oldest, kept;
    unsigned listeners;
    bool is_off;         /* as the store said last */
    char last[SAME_MAX]; /* the last message, its lease in front */
    size_t last_len;
};

static void event_hub_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message);
static void event_hub_listens(struct store_subscriber_owner *owner, struct bytes channel);
static void event_hub_deaf(struct store_subscriber_owner *owner);
static void event_hub_stands(struct listen *listen);
static void event_hub_missed(struct listen *listen);
static void event_hub_off(struct listen *listen);
static void event_hub_linger_over(struct loop_timer *timer);
static void channel_listens(struct event_channel *one);
static void channel_round(struct loop_timer *timer);

static void channel_init(struct event_hub *event_hub, struct event_channel *channel, struct bytes name)
{
    int len = snprintf(channel->text, sizeof(channel->text), CHANNEL_PREFIX "%.*s", (int)name.len, name.at);

    assert((size_t)len < sizeof(channel->text));
    channel->name = (struct bytes){channel->text + PREFIX_LEN, (size_t)len - PREFIX_LEN};
    channel->event_hub = event_hub;
    loop_timer_init(event_hub->worker->loop, &channel->timer, channel_round);
    for (unsigned i = 0; i < EVENTS_FORMS; i++) {
        json_out_init(&channel->gathered[i]);
    }
}

static void channel_done(struct event_channel *channel)
{
    loop_timer_done(&channel->timer);
    for (unsigned i = 0; i < EVENTS_FORMS; i++) {
        json_out_done(&channel->gathered[i]);
    }
}

struct event_hub *event_hub_new(struct worker *worker, struct store_options options)
{
    struct event_hub *event_hub = must_have(calloc(1, sizeof(*event_hub)));

    event_hub->worker = worker;
    event_hub->owner = (struct store_subscriber_owner){event_hub_heard, event_hub_listens, event_hub_deaf};
    event_hub->linger_ms = EVENT_HUB_LINGER_MS;
    channel_init(event_hub, &event_hub->all, BYTES("*"));
    loop_timer_init(worker->loop, &event_hub->linger, event_hub_linger_over);
    event_hub->listen = (struct listen){
        .stands = event_hub_stands, .missed = event_hub_missed, .off = event_hub_off};
    listen_init(&event_hub->listen, worker->loop, member_line_of_worker(worker));
    event_hub->subscriber = store_subscriber_open(worker->loop, &options, &event_hub->owner);
    return event_hub;
}

void event_hub_linger(struct event_hub *event_hub, unsigned linger_ms)
{
    event_hub->linger_ms = linger_ms;
}

/* -- what is kept for those who come back */

static void ring_empty(struct event_hub *event_hub)
{
    for (; event_hub->kept > 0; event_hub->kept--) {
        free(event_hub->ring[event_hub->oldest]);
        event_hub->oldest = (event_hub->oldest + 1) % EVENT_HUB_KEPT;
    }
}

static void ring_drop(struct event_hub *event_hub)
{
    ring_empty(event_hub);
    free(event_hub->ring);
    event_hub->ring = NULL;
}

static void ring_add(struct event_hub *event_hub, struct bytes lease, struct bytes message)
{
    struct kept *one = must_have(malloc(sizeof(*one) + lease.len + message.len));
    char *at = (char *)(one + 1);

    if (event_hub->kept == EVENT_HUB_KEPT) {
        free(event_hub->ring[event_hub->oldest]);
        event_hub->oldest = (event_hub->oldest + 1) % EVENT_HUB_KEPT;
        event_hub->kept--;
    }
    memcpy(at, lease.at, lease.len);
    memcpy(at + lease.len, message.at, message.len);
    *one = (struct kept){{at, lease.len}, {at + lease.len, message.len}};
    event_hub->ring[(event_hub->oldest + event_hub->kept) % EVENT_HUB_KEPT] = one;
    event_hub->kept++;
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
static unsigned ring_find(const struct event_hub *event_hub, struct bytes id)
{
    for (unsigned i = event_hub->kept; i > 0; i--) {
        if (has_id(event_hub->ring[(event_hub->oldest + i - 1) % EVENT_HUB_KEPT]->message, id)) {
            return i;
        }
    }
    return 0;
}

bool event_hub_has(const struct event_hub *event_hub, struct bytes id)
{
    return ring_find(event_hub, id) > 0;
}

void event_hub_replay(const struct event_hub *event_hub, struct bytes id, struct event_listener *listener,
                      bool (*item)(struct event_listener *listener, struct bytes lease, struct bytes item))
{
    unsigned begin = ring_find(event_hub, id);

    assert(begin > 0);
    for (unsigned i = begin; i < event_hub->kept; i++) {
        const struct kept *one = event_hub->ring[(event_hub->oldest + i) % EVENT_HUB_KEPT];

        if (!item(listener, one->lease, item_of(one->message))) {
            return;
        }
    }
}

/* -- those who listen */

static int compare(const void *a, const void *b)
{
    struct bytes one = ((const struct event_channel *)a)->name,
                 other = ((const struct event_channel *)b)->name;
    size_t len = one.len < other.len ? one.len : other.len;
    int order = memcmp(one.at, other.at, len);

    return order != 0 ? order : (one.len > other.len) - (one.len < other.len);
}

static struct event_channel *channel_find(const struct event_hub *event_hub, struct bytes name)
{
    struct event_channel wanted = {.name = name};
    struct event_channel *const *found = tfind(&wanted, &event_hub->tree, compare);

    return found != NULL ? *found : NULL;
}

static struct event_channel *channel_add(struct event_hub *event_hub, struct bytes name)
{
    struct event_channel *channel = channel_find(event_hub, name);

    if (channel != NULL) {
        return channel;
    }
    channel = must_have(calloc(1, sizeof(*channel)));
    channel_init(event_hub, channel, name);
    must_have(tsearch(channel, &event_hub->tree, compare));
    channel->next = event_hub->channels;
    if (channel->next != NULL) {
        channel->next->prev = channel;
    }
    event_hub->channels = channel;
    return channel;
}

static void channel_subscribe(struct event_hub *event_hub, struct event_channel *channel)
{
    if (!channel->subscribed) {
        channel->subscribed = true;
        store_subscriber_subscribe(event_hub->subscriber, bytes_of(channel->text));
    }
}

static void channel_unsubscribe(struct event_hub *event_hub, struct event_channel *channel)
{
    channel->subscribed = channel->confirmed = channel->listens = false;
    store_subscriber_unsubscribe(event_hub->subscriber, bytes_of(channel->text));
}

static void event_hub_leave_if_silent(struct event_hub *event_hub)
{
    if (event_hub->channels == NULL && !event_hub->all.subscribed) {
        listen_leave(&event_hub->listen);
    }
}

/* Nobody listens to it any more. */
static void channel_leave(struct event_hub *event_hub, struct event_channel *channel)
{
    if (channel == &event_hub->all) {
        loop_timer_arm(&event_hub->linger, event_hub->linger_ms, 0);
        return;
    }
    channel_unsubscribe(event_hub, channel);
    tdelete(channel, &event_hub->tree, compare);
    *(channel->prev != NULL ? &channel->prev->next : &event_hub->channels) = channel->next;
    if (channel->next != NULL) {
        channel->next->prev = channel->prev;
    }
    channel_done(channel);
    free(channel);
    event_hub_leave_if_silent(event_hub);
}

static void event_hub_linger_over(struct loop_timer *timer)
{
    struct event_hub *event_hub = container_of(timer, struct event_hub, linger);

    channel_unsubscribe(event_hub, &event_hub->all);
    ring_drop(event_hub);
    event_hub_leave_if_silent(event_hub);
}

static void count_listeners(struct event_hub *event_hub, unsigned listeners)
{
    event_hub->listeners = listeners;
    metric_set(event_hub->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_LISTENING, listeners);
}

static void listener_put(struct event_listener *listener, struct event_listener **first)
{
    listener->prev = NULL;
    listener->next = *first;
    if (listener->next != NULL) {
        listener->next->prev = listener;
    }
    *first = listener;
}

bool event_hub_listen(struct event_hub *event_hub, struct event_listener *listener, struct bytes lease)
{
    struct event_channel *channel = lease.len > 0 ? channel_add(event_hub, lease) : &event_hub->all;

    if (channel == &event_hub->all) {
        loop_timer_disarm(&event_hub->linger);
        if (event_hub->ring == NULL) {
            event_hub->ring = must_have(calloc(EVENT_HUB_KEPT, sizeof(struct kept *)));
        }
    }
    channel_subscribe(event_hub, channel);
    listener->channel = channel;
    listener->gathers = false;
    listener_put(listener, &channel->fresh);
    count_listeners(event_hub, event_hub->listeners + 1);
    if (channel->confirmed && !channel->listens) {
        listen_want(&event_hub->listen); /* nothing was noted when it was last asked */
    }
    return channel->listens;
}

static void listener_take(struct event_listener *listener)
{
    struct event_channel *channel = listener->channel;
    struct event_listener **first = listener->gathers ? &channel->gathering : &channel->fresh;

    *(listener->prev != NULL ? &listener->prev->next : first) = listener->next;
    if (listener->next != NULL) {
        listener->next->prev = listener->prev;
    }
    channel->at = channel->at == listener ? listener->next : channel->at;
    channel->readers[listener->form] -= listener->gathers;
}

void event_hub_gather(struct event_listener *listener)
{
    struct event_channel *channel = listener->channel;
    unsigned form = listener->form;

    listener_take(listener);
    listener->gathers = true;
    listener->from = channel->begin[form] + channel->gathered[form].len;
    channel->readers[form]++;
    listener_put(listener, &channel->gathering);
}

static void channel_leave_if_empty(struct event_channel *channel)
{
    if (!channel->in_round && channel->fresh == NULL && channel->gathering == NULL) {
        channel_leave(channel->event_hub, channel);
    }
}

void event_hub_forget(struct event_hub *event_hub, struct event_listener *listener)
{
    struct event_channel *channel = listener->channel;

    listener_take(listener);
    listener->channel = NULL;
    count_listeners(event_hub, event_hub->listeners - 1);
    channel_leave_if_empty(channel);
}

/* -- what is gathered */

/* Whether the items of the last second have been few, this one counted. */
static bool channel_is_calm(struct event_channel *channel)
{
    uint64_t now_us = loop_now_us(), second_us = 1000000, each_us = second_us / EVENT_HUB_AT_ONCE;

    if (channel->earliest_us + second_us < now_us) {
        channel->earliest_us = now_us - second_us;
    }
    channel->earliest_us += each_us;
    return channel->earliest_us <= now_us;
}

static bool channel_has_much(const struct event_channel *channel)
{
    return channel->gathered[EVENTS_SSE].len + channel->gathered[EVENTS_NDJSON].len >= EVENT_HUB_GATHER_BYTES;
}

static void channel_arm(struct event_channel *channel, uint64_t delay_ms)
{
    channel->armed = true;
    loop_timer_arm(&channel->timer, delay_ms, 0);
}

static void channel_gather(struct event_channel *channel, struct bytes lease, struct bytes packed)
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
        channel_arm(channel, channel_has_much(channel) ? 0 : EVENT_HUB_SOON_MS);
    } else if (!channel->armed) {
        channel_arm(channel, EVENT_HUB_GATHER_MS);
    }
}

/* What it has not been told yet, up to end; false: it is no more. */
static bool listener_tell(struct event_channel *channel, struct event_listener *listener, uint64_t end)
{
    const char *text = channel->gathered[listener->form].at;
    uint64_t begin = channel->begin[listener->form], from = listener->from;

    if (from >= end) {
        return true;
    }
    listener->from = end;
    return listener->text(listener, (struct bytes){text + (from - begin), (size_t)(end - from)});
}

static void channel_round_begin(struct event_channel *channel)
{
    for (unsigned form = 0; form < EVENTS_FORMS; form++) {
        channel->end[form] = channel->begin[form] + channel->gathered[form].len;
    }
    channel->at = channel->gathering;
}

/* Everybody has been told what was gathered before it: it is forgotten. */
static void channel_round_end(struct event_channel *channel)
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
        channel_arm(channel, channel_has_much(channel) ? 0 : EVENT_HUB_GATHER_MS);
    }
}

static void channel_round(struct loop_timer *timer)
{
    struct event_channel *channel = container_of(timer, struct event_channel, timer);
    bool was_empty = channel->fresh == NULL && channel->gathering == NULL;

    channel->armed = false;
    if (channel->at == NULL) {
        channel_round_begin(channel);
    }
    channel->in_round = true; /* the last of them may leave: the channel stays until this is over */
    for (unsigned i = 0; i < EVENT_HUB_SLICE && channel->at != NULL; i++) {
        struct event_listener *listener = channel->at;
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
static void channel_lost(struct event_channel *channel)
{
    struct event_listener *gathering = channel->gathering, *next;

    for (struct event_listener *listener = channel->fresh; listener != NULL; listener = next) {
        next = listener->next;
        listener->lost(listener);
    }
    for (struct event_listener *listener = gathering; listener != NULL; listener = next) {
        unsigned form = listener->form;
        next = listener->next;
        if (listener_tell(channel, listener, channel->begin[form] + channel->gathered[form].len)) {
            listener->lost(listener);
        }
    }
}

void event_hub_drain(struct event_hub *event_hub)
{
    while (event_hub->channels != NULL) {
        channel_lost(event_hub->channels);
    }
    channel_lost(&event_hub->all);
    assert(event_hub->listeners == 0);
}

void event_hub_stop(struct event_hub *event_hub)
{
    listen_stop(&event_hub->listen);
}

void event_hub_free(struct event_hub *event_hub)
{
    event_hub_drain(event_hub);
    store_subscriber_close(event_hub->subscriber);
    loop_timer_done(&event_hub->linger);
    ring_drop(event_hub);
    channel_done(&event_hub->all);
    free(event_hub);
}

/* -- what the subscriber says */

/* Whether it is the last message once more; and remembers it. */
static bool is_heard_again(struct event_hub *event_hub, struct bytes lease, struct bytes message)
{
    size_t len = lease.len + message.len;

    if (len == event_hub->last_len && memcmp(event_hub->last, lease.at, lease.len) == 0 &&
        memcmp(event_hub->last + lease.len, message.at, message.len) == 0) {
        return true;
    }
    event_hub->last_len = 0;
    if (len <= sizeof(event_hub->last)) {
        memcpy(event_hub->last, lease.at, lease.len);
        memcpy(event_hub->last + lease.len, message.at, message.len);
        event_hub->last_len = len;
    }
    return false;
}

/* Gathered first: who begins to gather now has been told this one. */
static void channel_tell(struct event_channel *channel, struct bytes lease, struct bytes item)
{
    channel_gather(channel, lease, item);
    for (struct event_listener *listener = channel->fresh, *next; listener != NULL; listener = next) {
        next = listener->next;
        listener->item(listener, lease, item);
    }
}

static void event_hub_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct event_hub *event_hub = container_of(owner, struct event_hub, owner);
    struct bytes lease = {channel.at + PREFIX_LEN, channel.len - PREFIX_LEN};
    struct event_channel *one;

    if (channel.len <= PREFIX_LEN || !name_is_lease(lease) || message.len <= STRIPE_LEN ||
        is_heard_again(event_hub, lease, message)) {
        return;
    }
    one = channel_find(event_hub, lease);
    if (one != NULL && one->listens) {
        channel_tell(one, lease, item_of(message));
    }
    if (event_hub->all.listens) {
        ring_add(event_hub, lease, message);
        channel_tell(&event_hub->all, lease, item_of(message));
    }
}

static void event_hub_listens(struct store_subscriber_owner *owner, struct bytes channel)
{
    struct event_hub *event_hub = container_of(owner, struct event_hub, owner);
    struct bytes name = {channel.at + PREFIX_LEN, channel.len - PREFIX_LEN};
    struct event_channel *one = bytes_equal(name, event_hub->all.name) ? &event_hub->all
                                                                       : channel_find(event_hub, name);

    one->confirmed = true;
    if (listen_want(&event_hub->listen)) {
        channel_listens(one);
    }
}

static void channel_listens(struct event_channel *one)
{
    one->listens = true;
    for (struct event_listener *listener = one->fresh, *next; listener != NULL; listener = next) {
        next = listener->next;
        listener->listens(listener);
    }
}

static void event_hub_stands(struct listen *listen)
{
    struct event_hub *event_hub = container_of(listen, struct event_hub, listen);

    event_hub->is_off = false;
    for (struct event_channel *channel = event_hub->channels, *next; channel != NULL; channel = next) {
        next = channel->next;
        if (channel->confirmed && !channel->listens) {
            channel_listens(channel);
        }
    }
    if (event_hub->all.confirmed && !event_hub->all.listens) {
        channel_listens(&event_hub->all);
    }
}

static void event_hub_deaf(struct store_subscriber_owner *owner)
{
    struct event_hub *event_hub = container_of(owner, struct event_hub, owner);

    event_hub->all.confirmed = false;
    for (struct event_channel *channel = event_hub->channels; channel != NULL; channel = channel->next) {
        channel->confirmed = false;
    }
    listen_forget(&event_hub->listen);
    event_hub_missed(&event_hub->listen);
}

/* Those who wait for a channel to be listened to have missed nothing: they go on waiting. */
static void event_hub_missed(struct listen *listen)
{
    struct event_hub *event_hub = container_of(listen, struct event_hub, listen);

    ring_empty(event_hub);
    event_hub->last_len = 0;
    for (struct event_channel *channel = event_hub->channels, *next; channel != NULL; channel = next) {
        next = channel->next;
        if (channel->listens) {
            channel->listens = false;
            channel_lost(channel);
        }
    }
    if (event_hub->all.listens) {
        event_hub->all.listens = false;
        channel_lost(&event_hub->all);
    }
}

bool event_hub_is_off(const struct event_hub *event_hub)
{
    return event_hub->is_off;
}

static void event_hub_off(struct listen *listen)
{
    struct event_hub *event_hub = container_of(listen, struct event_hub, listen);

    event_hub->is_off = true;
    ring_empty(event_hub);
    event_hub_drain(event_hub);
    event_hub->all.listens = false;
}
