/* event_hub.c - what happens to leases, as it happens.
 *
 *   event_hub_heard   a message: held until its copies are there (member_held_take())
 *   event_hub_kept    to those who listen to its lease, then to those who listen to all
 *   channel_round     what was gathered: to a few of its listeners after the other
 *   event_hub_listens Redis has confirmed a channel: the store is to publish, then its listeners hear
 *   listen_run        run listen.lua: now, and LISTEN_AGAIN_MS after it was confirmed
 *   listen_answer     the store publishes: the listeners of what Redis has confirmed hear
 *                     something was missed: all who listen are lost, and what was kept is forgotten
 *                     nothing is noted: the same, and all who wait to listen, too
 *   channel_line      the line of a lease has changed (line.c): to those who listen to that lease
 *   event_hub_deaf    as if something was missed; nothing is confirmed any more
 *
 * A channel for each lease that somebody listens to, and a pattern for all of them. Redis sends what fits
 * both twice, one right behind the other (pubsubPublishMessageInternal of 7.0: to the channel's subscribers,
 * then to the patterns'), so the second is the one that is the same to the byte: no two items have the same
 * id.
 *
 * The store publishes only while somebody listens (scripts/listen.lua): each hub says so again and again for
 * as long as anybody does. It is silent while until is 0; while a call is under way what happens may not be
 * published. Whether something was missed (the store's clock leapt, it has lost content, this process stood
 * still, less was noted for a while) is found when it is said the next time; so is that nothing is noted any
 * more. */
#include <assert.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

#include "lease/events/events.h"
#include "lease/operation.h"
#include "scripts.h"
#include "shared/text/memory.h"

#define CHANNEL_PREFIX "pawl:e:"

enum {
    PREFIX_LEN = sizeof(CHANNEL_PREFIX) - 1,
    STRIPE_LEN = 3, /* a message is "SS ITEM" */
    CHANNEL_SIZE = PREFIX_LEN + NAME_MAX_BYTES + 1,
    SAME_MAX = 2048 /* bytes of the last message that are remembered, more than an item has */
};

/* One that is listened to. A round hands text out up to end; one that begins to gather meanwhile has a place
 * behind that. */
struct event_channel {
    struct event_hub *hub;
    LIST_ENTRY(event_channel) entry;
    struct event_listeners fresh, gathering; /* those that get item(), and text() */
    struct event_listener *at;               /* who is next in the round that is under way; NULL: none is */
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
    struct event_line line;     /* of the one lease */
};

struct kept {
    struct bytes lease, message; /* behind the struct */
};

/* For how long it is said, how often, and how soon after it could not be. */
enum { LISTEN_MS = 60000, LISTEN_AGAIN_MS = 5000, LISTEN_RETRY_MS = 100, LISTEN_NOTED_SIZE = 48 };

struct listen {
    struct member_call call;
    struct loop_timer timer;
    bool wanted, asked, is_stopped, is_stale; /* is_stale: what was asked is of before listen_forget() */
    int64_t until;                            /* store time; 0: it does not stand */
    int64_t now_ms;                           /* store time of its last answer */
    uint64_t answered_ms;                     /* when that came */
    char noted[LISTEN_NOTED_SIZE];            /* as the store says it: what, and since when */
    char stripe[KEYS_STRIPE_SIZE], ms[MEMBER_NUMBER_SIZE];
    struct bytes argv[2 + MEMBER_ARGS];
};

struct event_hub {
    struct worker *worker;
    struct event_lines *lines;
    struct store_subscriber *subscriber;
    struct store_subscriber_owner owner;
    struct member_held *held; /* items that have come, and are not sent yet */
    struct member_held_owner held_owner;
    struct listen listen;
    void *tree; /* of the channels, by name; tsearch(3) */
    LIST_HEAD(, event_channel) channels;
    struct event_channel *all; /* one of them, which stays */
    struct loop_timer linger;
    unsigned linger_ms;
    struct kept **ring; /* EVENT_HUB_KEPT of them while all leases are listened to, else NULL */
    unsigned oldest, kept;
    unsigned listeners;
    bool is_off;         /* as the store said last */
    char last[SAME_MAX]; /* the last message, its lease in front */
    size_t last_len;
};

static void channel_round(struct loop_timer *timer);
static member_done_fn listen_answer;

/* -- that the store publishes */

static void listen_run(struct event_hub *hub)
{
    hub->listen.call.done = listen_answer;
    hub->listen.is_stale = false;
    hub->listen.asked = member_run(member_line_of_worker(hub->worker), &hub->listen.call, 0, &script_listen,
                                   1, 2, hub->listen.argv) == PROBLEM_NONE;
    if (!hub->listen.asked)
        loop_timer_arm(&hub->listen.timer, LISTEN_RETRY_MS, 0);
}

static void listen_again(struct loop_timer *timer)
{
    struct event_hub *hub = container_of(timer, struct event_hub, listen.timer);

    if (hub->listen.wanted && !hub->listen.asked)
        listen_run(hub);
}

static bool listen_want(struct event_hub *hub)
{
    hub->listen.wanted = !hub->listen.is_stopped;
    if (hub->listen.wanted && hub->listen.until == 0 && !hub->listen.asked)
        listen_run(hub);
    return hub->listen.until > 0;
}

static void listen_forget(struct event_hub *hub)
{
    hub->listen.until = 0;
    hub->listen.is_stale = hub->listen.asked;
    loop_timer_disarm(&hub->listen.timer);
}

static void listen_leave(struct event_hub *hub)
{
    hub->listen.wanted = false;
    listen_forget(hub);
}

/* -- what is kept for those who come back */

static void ring_empty(struct event_hub *hub)
{
    for (; hub->kept > 0; hub->kept--) {
        free(hub->ring[hub->oldest]);
        hub->oldest = (hub->oldest + 1) % EVENT_HUB_KEPT;
    }
}

static void ring_drop(struct event_hub *hub)
{
    ring_empty(hub);
    free(hub->ring);
    hub->ring = NULL;
}

static void ring_add(struct event_hub *hub, struct bytes lease, struct bytes message)
{
    struct kept *one = must_have(malloc(sizeof(*one) + lease.len + message.len));
    char *at = (char *)(one + 1);

    if (hub->kept == EVENT_HUB_KEPT) {
        free(hub->ring[hub->oldest]);
        hub->oldest = (hub->oldest + 1) % EVENT_HUB_KEPT;
        hub->kept--;
    }
    memcpy(at, lease.at, lease.len);
    memcpy(at + lease.len, message.at, message.len);
    *one = (struct kept){{at, lease.len}, {at + lease.len, message.len}};
    hub->ring[(hub->oldest + hub->kept) % EVENT_HUB_KEPT] = one;
    hub->kept++;
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
static unsigned ring_find(const struct event_hub *hub, struct bytes id)
{
    for (unsigned i = hub->kept; i > 0; i--)
        if (has_id(hub->ring[(hub->oldest + i - 1) % EVENT_HUB_KEPT]->message, id))
            return i;
    return 0;
}

bool event_hub_has(const struct event_hub *hub, struct bytes id)
{
    return ring_find(hub, id) > 0;
}

void event_hub_replay(const struct event_hub *hub, struct bytes id, struct event_listener *listener,
                      bool (*item)(struct event_listener *listener, struct bytes lease, struct bytes item))
{
    unsigned begin = ring_find(hub, id);

    assert(begin > 0);
    for (unsigned i = begin; i < hub->kept; i++) {
        const struct kept *one = hub->ring[(hub->oldest + i) % EVENT_HUB_KEPT];

        if (!item(listener, one->lease, item_of(one->message)))
            return;
    }
}

/* -- channels */

static int compare(const void *a, const void *b)
{
    return bytes_compare(((const struct event_channel *)a)->name, ((const struct event_channel *)b)->name);
}

static struct event_channel *channel_find(const struct event_hub *hub, struct bytes name)
{
    struct event_channel wanted = {.name = name};
    struct event_channel *const *found = tfind(&wanted, &hub->tree, compare);

    return found != NULL ? *found : NULL;
}

static struct event_channel *channel_add(struct event_hub *hub, struct bytes name)
{
    struct event_channel *channel = channel_find(hub, name);
    int len;

    if (channel != NULL)
        return channel;
    channel = must_have(calloc(1, sizeof(*channel)));
    len = snprintf(channel->text, sizeof(channel->text), CHANNEL_PREFIX "%.*s", (int)name.len, name.at);
    assert((size_t)len < sizeof(channel->text));
    channel->name = (struct bytes){channel->text + PREFIX_LEN, (size_t)len - PREFIX_LEN};
    channel->line.name = channel->name;
    channel->hub = hub;
    loop_timer_init(hub->worker->loop, &channel->timer, channel_round);
    for (unsigned i = 0; i < EVENTS_FORMS; i++)
        json_out_init(&channel->gathered[i]);
    must_have(tsearch(channel, &hub->tree, compare));
    LIST_INSERT_HEAD(&hub->channels, channel, entry);
    return channel;
}

static void channel_free(struct event_hub *hub, struct event_channel *channel)
{
    tdelete(channel, &hub->tree, compare);
    LIST_REMOVE(channel, entry);
    event_line_forget(hub->lines, &channel->line);
    loop_timer_done(&channel->timer);
    for (unsigned i = 0; i < EVENTS_FORMS; i++)
        json_out_done(&channel->gathered[i]);
    free(channel);
}

static void channel_unsubscribe(struct event_hub *hub, struct event_channel *channel)
{
    channel->subscribed = channel->confirmed = channel->listens = false;
    store_subscriber_unsubscribe(hub->subscriber, bytes_of(channel->text));
}

static void event_hub_leave_if_silent(struct event_hub *hub)
{
    const struct event_channel *channel = LIST_FIRST(&hub->channels);

    while (channel != NULL && !channel->subscribed)
        channel = LIST_NEXT(channel, entry);
    if (channel == NULL)
        listen_leave(hub);
}

/* Nobody listens to it any more. */
static void channel_leave(struct event_hub *hub, struct event_channel *channel)
{
    if (channel == hub->all) {
        loop_timer_arm(&hub->linger, hub->linger_ms, 0);
        return;
    }
    channel_unsubscribe(hub, channel);
    channel_free(hub, channel);
    event_hub_leave_if_silent(hub);
}

static void event_hub_linger_over(struct loop_timer *timer)
{
    struct event_hub *hub = container_of(timer, struct event_hub, linger);

    channel_unsubscribe(hub, hub->all);
    ring_drop(hub);
    event_hub_leave_if_silent(hub);
}

/* -- those who listen */

static void count_listeners(struct event_hub *hub, unsigned listeners)
{
    hub->listeners = listeners;
    metric_set(hub->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_LISTENING, listeners);
}

bool event_hub_listen(struct event_hub *hub, struct event_listener *listener, struct bytes lease)
{
    struct event_channel *channel = lease.len > 0 ? channel_add(hub, lease) : hub->all;

    if (channel == hub->all) {
        loop_timer_disarm(&hub->linger);
        if (hub->ring == NULL)
            hub->ring = must_have(calloc(EVENT_HUB_KEPT, sizeof(struct kept *)));
    }
    if (!channel->subscribed) {
        channel->subscribed = true;
        store_subscriber_subscribe(hub->subscriber, bytes_of(channel->text));
    }
    listener->channel = channel;
    listener->gathers = listener->has_line = false;
    LIST_INSERT_HEAD(&channel->fresh, listener, entry);
    count_listeners(hub, hub->listeners + 1);
    if (channel->confirmed && !channel->listens)
        listen_want(hub); /* nothing was noted when it was last asked */
    return channel->listens;
}

static void listener_take(struct event_listener *listener)
{
    struct event_channel *channel = listener->channel;

    channel->at = channel->at == listener ? LIST_NEXT(listener, entry) : channel->at;
    LIST_REMOVE(listener, entry);
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
    LIST_INSERT_HEAD(&channel->gathering, listener, entry);
}

static bool channel_is_empty(const struct event_channel *channel)
{
    return LIST_EMPTY(&channel->fresh) && LIST_EMPTY(&channel->gathering);
}

static void channel_leave_if_empty(struct event_channel *channel)
{
    if (!channel->in_round && channel_is_empty(channel))
        channel_leave(channel->hub, channel);
}

void event_hub_forget(struct event_hub *hub, struct event_listener *listener)
{
    struct event_channel *channel = listener->channel;

    listener_take(listener);
    listener->channel = NULL;
    count_listeners(hub, hub->listeners - 1);
    channel_leave_if_empty(channel);
}

/* -- what is gathered */

/* Whether the items of the last second have been few, this one counted. */
static bool channel_is_calm(struct event_channel *channel)
{
    uint64_t now_us = loop_now_us(), second_us = 1000000, each_us = second_us / EVENT_HUB_AT_ONCE;

    if (channel->earliest_us + second_us < now_us)
        channel->earliest_us = now_us - second_us;
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

    if (LIST_EMPTY(&channel->gathering) || !history_item_read(packed, &item))
        return;
    for (unsigned form = 0; form < EVENTS_FORMS; form++)
        if (channel->readers[form] > 0)
            events_put_item(&channel->gathered[form], channel->hub->worker, (enum events_form)form, lease,
                            &item);
    if (channel->at == NULL && (is_calm || channel_has_much(channel)))
        channel_arm(channel, channel_has_much(channel) ? 0 : EVENT_HUB_SOON_MS);
    else if (!channel->armed)
        channel_arm(channel, EVENT_HUB_GATHER_MS);
}

/* What it has not got yet, up to end; false: it is no more. */
static bool listener_send(struct event_channel *channel, struct event_listener *listener, uint64_t end)
{
    const char *text = channel->gathered[listener->form].at;
    uint64_t begin = channel->begin[listener->form], from = listener->from;

    if (from >= end)
        return true;
    listener->from = end;
    return listener->text(listener, (struct bytes){text + (from - begin), (size_t)(end - from)});
}

/* Everybody has got what was gathered before it: it is forgotten. */
static void channel_round_end(struct event_channel *channel)
{
    bool more = false;

    for (unsigned form = 0; form < EVENTS_FORMS; form++) {
        struct json_out *text = &channel->gathered[form];
        size_t sent = (size_t)(channel->end[form] - channel->begin[form]), left = text->len - sent;

        if (left > 0) {
            memmove(text->at, text->at + sent, left);
            text->len = left;
        } else {
            json_out_done(text); /* most channels are silent for most of the time */
        }
        channel->begin[form] += sent;
        more = more || left > 0;
    }
    if (more)
        channel_arm(channel, channel_has_much(channel) ? 0 : EVENT_HUB_GATHER_MS);
}

static void channel_round(struct loop_timer *timer)
{
    struct event_channel *channel = container_of(timer, struct event_channel, timer);
    bool was_empty = channel_is_empty(channel);

    channel->armed = false;
    if (channel->at == NULL) {
        for (unsigned form = 0; form < EVENTS_FORMS; form++)
            channel->end[form] = channel->begin[form] + channel->gathered[form].len;
        channel->at = LIST_FIRST(&channel->gathering);
    }
    channel->in_round = true; /* the last of them may leave: the channel stays until this is over */
    for (unsigned i = 0; i < EVENT_HUB_SLICE && channel->at != NULL; i++) {
        struct event_listener *listener = channel->at;
        channel->at = LIST_NEXT(listener, entry);
        listener_send(channel, listener, channel->end[listener->form]);
    }
    channel->in_round = false;
    if (channel->at != NULL)
        channel_arm(channel, 0);
    else
        channel_round_end(channel);
    if (!was_empty)
        channel_leave_if_empty(channel);
}

/* With the last of them the channel goes. One that gathers gets what there is before. */
static void channel_lost(struct event_channel *channel)
{
    struct event_listener *gathering = LIST_FIRST(&channel->gathering), *next;

    for (struct event_listener *listener = LIST_FIRST(&channel->fresh); listener != NULL; listener = next) {
        next = LIST_NEXT(listener, entry);
        listener->lost(listener);
    }
    for (struct event_listener *listener = gathering; listener != NULL; listener = next) {
        unsigned form = listener->form;
        next = LIST_NEXT(listener, entry);
        if (listener_send(channel, listener, channel->begin[form] + channel->gathered[form].len))
            listener->lost(listener);
    }
}

void event_hub_drain(struct event_hub *hub)
{
    for (struct event_channel *channel = LIST_FIRST(&hub->channels), *next; channel != NULL; channel = next) {
        next = LIST_NEXT(channel, entry);
        channel_lost(channel);
    }
    assert(hub->listeners == 0);
}

/* -- messages */

/* Whether it is the last message once more; and remembers it. */
static bool is_heard_again(struct event_hub *hub, struct bytes lease, struct bytes message)
{
    size_t len = lease.len + message.len;

    if (len == hub->last_len && memcmp(hub->last, lease.at, lease.len) == 0 &&
        memcmp(hub->last + lease.len, message.at, message.len) == 0)
        return true;
    hub->last_len = 0;
    if (len <= sizeof(hub->last)) {
        memcpy(hub->last, lease.at, lease.len);
        memcpy(hub->last + lease.len, message.at, message.len);
        hub->last_len = len;
    }
    return false;
}

/* Gathered first: one that begins to gather now has got this one. */
static void channel_send(struct event_channel *channel, struct bytes lease, struct bytes item)
{
    channel_gather(channel, lease, item);
    for (struct event_listener *listener = LIST_FIRST(&channel->fresh), *next; listener != NULL;
         listener = next) {
        next = LIST_NEXT(listener, entry);
        listener->item(listener, lease, item);
    }
}

/* -- what the store and its subscriber say */

/* To those of a list that it is new to. */
static void listeners_line(struct event_listeners *list, enum events_form form, bool is_new,
                           struct bytes text)
{
    for (struct event_listener *listener = LIST_FIRST(list), *next; listener != NULL; listener = next) {
        bool wants = listener->form == form && (is_new || !listener->has_line);

        next = LIST_NEXT(listener, entry);
        listener->has_line = listener->has_line || wants;
        if (wants)
            listener->text(listener, text);
    }
}

static void channel_line(struct event_line *line, const struct store_reply *reply, bool is_new)
{
    struct event_channel *channel = container_of(line, struct event_channel, line);
    struct json_out text;

    channel->in_round = true; /* the last of them may leave: the channel stays until this is over */
    for (unsigned form = 0; form < EVENTS_FORMS && channel->listens; form++) {
        json_out_init(&text);
        events_put_line(&text, channel->hub->worker, (enum events_form)form, channel->name, reply);
        listeners_line(&channel->fresh, (enum events_form)form, is_new, json_out_bytes(&text));
        listeners_line(&channel->gathering, (enum events_form)form, is_new, json_out_bytes(&text));
        json_out_done(&text);
    }
    channel->in_round = false;
    channel_leave_if_empty(channel);
}

void event_hub_line(struct event_listener *listener)
{
    listener->has_line = false;
    event_line_tell(listener->channel->hub->lines, &listener->channel->line);
}

static void event_hub_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct event_hub *hub = container_of(owner, struct event_hub, owner);
    struct bytes lease = {channel.at + PREFIX_LEN, channel.len - PREFIX_LEN};
    struct event_channel *one;

    if (channel.len <= PREFIX_LEN || !name_is_lease(lease) || message.len <= STRIPE_LEN)
        return;
    one = channel_find(hub, lease);
    if (bytes_are(item_of(message), "line")) {
        if (one != NULL && one->listens)
            event_line_due(hub->lines, &one->line);
        return;
    }
    if (is_heard_again(hub, lease, message))
        return;
    if (hub->all->listens || (one != NULL && one->listens))
        member_held_take(hub->held, lease, message);
}

static void event_hub_kept(struct member_held_owner *owner, struct bytes lease, struct bytes message)
{
    struct event_hub *hub = container_of(owner, struct event_hub, held_owner);
    struct event_channel *one = channel_find(hub, lease);

    if (one != NULL && one->listens)
        channel_send(one, lease, item_of(message));
    if (hub->all->listens) {
        ring_add(hub, lease, message);
        channel_send(hub->all, lease, item_of(message));
    }
}

static void channel_listens(struct event_channel *one)
{
    one->listens = true;
    for (struct event_listener *listener = LIST_FIRST(&one->fresh), *next; listener != NULL;
         listener = next) {
        next = LIST_NEXT(listener, entry);
        listener->listens(listener);
    }
}

static void event_hub_listens(struct store_subscriber_owner *owner, struct bytes channel)
{
    struct event_hub *hub = container_of(owner, struct event_hub, owner);
    struct bytes name = {channel.at + PREFIX_LEN, channel.len - PREFIX_LEN};
    struct event_channel *one = channel_find(hub, name);

    one->confirmed = true;
    if (listen_want(hub))
        channel_listens(one);
}

static void event_hub_stands(struct event_hub *hub)
{
    hub->is_off = false;
    for (struct event_channel *channel = LIST_FIRST(&hub->channels), *next; channel != NULL; channel = next) {
        next = LIST_NEXT(channel, entry);
        if (channel->confirmed && !channel->listens)
            channel_listens(channel);
    }
}

/* Those who wait for a channel to be listened to have missed nothing: they go on waiting. */
static void event_hub_missed(struct event_hub *hub)
{
    member_held_forget(hub->held);
    ring_empty(hub);
    hub->last_len = 0;
    for (struct event_channel *channel = LIST_FIRST(&hub->channels), *next; channel != NULL; channel = next) {
        next = LIST_NEXT(channel, entry);
        if (channel->listens) {
            channel->listens = false;
            channel_lost(channel);
        }
    }
}

/* What comes from now on is heard and noted all the same. */
static void event_hub_unkept(struct member_held_owner *owner)
{
    struct event_hub *hub = container_of(owner, struct event_hub, held_owner);

    event_hub_missed(hub);
    if (hub->listen.until > 0)
        event_hub_stands(hub);
}

static void event_hub_deaf(struct store_subscriber_owner *owner)
{
    struct event_hub *hub = container_of(owner, struct event_hub, owner);

    for (struct event_channel *channel = LIST_FIRST(&hub->channels); channel != NULL;
         channel = LIST_NEXT(channel, entry))
        channel->confirmed = false;
    listen_forget(hub);
    event_hub_missed(hub);
}

/* {"listens", seq, until before, now, until, noted} */
static void listen_confirmed(struct event_hub *hub, const struct store_reply *reply)
{
    int64_t before = store_reply_integer(reply, 2), now = store_reply_integer(reply, 3);
    struct bytes noted = store_reply_text(reply, 5);
    bool has_gap = hub->listen.until > 0 && (before < hub->listen.until || now > hub->listen.until ||
                                             !bytes_are(noted, hub->listen.noted));

    hub->listen.until = store_reply_integer(reply, 4);
    hub->listen.now_ms = now;
    hub->listen.answered_ms = loop_now_ms();
    snprintf(hub->listen.noted, sizeof(hub->listen.noted), "%.*s", (int)noted.len, noted.at);
    loop_timer_arm(&hub->listen.timer, LISTEN_AGAIN_MS, 0);
    if (has_gap)
        event_hub_missed(hub);
    if (hub->listen.until > 0) /* the last of those who missed something may have left */
        event_hub_stands(hub);
}

static enum step listen_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct event_hub *hub = container_of(call, struct event_hub, listen.call);

    hub->listen.asked = false;
    if (!hub->listen.wanted || !store_subscriber_follow(hub->subscriber, hub->worker->store))
        return ANSWERED; /* of the latter it will be deaf */
    if (bad == PROBLEM_NONE && store_reply_is(reply, "listens") && !hub->listen.is_stale) {
        listen_confirmed(hub, reply);
    } else if (bad == PROBLEM_NONE && store_reply_is(reply, "off") && !hub->listen.is_stale) {
        listen_leave(hub);
        hub->is_off = true;
        member_held_forget(hub->held);
        ring_empty(hub);
        event_hub_drain(hub);
        hub->all->listens = false;
    } else {
        loop_timer_arm(&hub->listen.timer, hub->listen.is_stale ? 0 : LISTEN_RETRY_MS, 0);
    }
    return ANSWERED;
}

/* -- the hub */

struct event_hub *event_hub_new(struct worker *worker, struct store_options options)
{
    struct event_hub *hub = must_have(calloc(1, sizeof(*hub)));

    hub->worker = worker;
    hub->owner = (struct store_subscriber_owner){event_hub_heard, event_hub_listens, event_hub_deaf};
    hub->held_owner = (struct member_held_owner){event_hub_kept, event_hub_unkept};
    hub->held = member_held_new(member_line_of_worker(worker), &hub->held_owner);
    hub->linger_ms = EVENT_HUB_LINGER_MS;
    hub->lines = event_lines_new(worker, channel_line);
    hub->all = channel_add(hub, BYTES("*"));
    loop_timer_init(worker->loop, &hub->linger, event_hub_linger_over);
    loop_timer_init(worker->loop, &hub->listen.timer, listen_again);
    hub->listen.argv[0] = keys_stripe(hub->listen.stripe, 0);
    hub->listen.argv[1] = bytes_of_number(hub->listen.ms, LISTEN_MS);
    hub->subscriber = store_subscriber_open(worker->loop, &options, &hub->owner);
    return hub;
}

void event_hub_linger(struct event_hub *hub, unsigned linger_ms)
{
    hub->linger_ms = linger_ms;
}

int64_t event_hub_now_ms(const struct event_hub *hub)
{
    return hub->listen.now_ms + (int64_t)(loop_now_ms() - hub->listen.answered_ms);
}

bool event_hub_is_off(const struct event_hub *hub)
{
    return hub->is_off;
}

void event_hub_stop(struct event_hub *hub)
{
    listen_leave(hub);
    hub->listen.is_stopped = true;
    loop_timer_done(&hub->listen.timer);
    event_lines_stop(hub->lines);
}

void event_hub_free(struct event_hub *hub)
{
    event_hub_drain(hub);
    store_subscriber_close(hub->subscriber);
    member_held_free(hub->held);
    loop_timer_done(&hub->linger);
    ring_drop(hub);
    channel_free(hub, hub->all);
    free(hub->lines);
    free(hub);
}
