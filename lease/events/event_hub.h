/* event_hub.h - what happens to leases, as it happens: messages of shared/member/scripts/lib/history.lua, for
 * those who listen (stream.c).
 *
 * An subscriber of each worker, which subscribes only to what somebody listens to. For those who listen to
 * all leases the last EVENT_HUB_KEPT items are kept, and for EVENT_HUB_LINGER_MS after the last of them has
 * gone, so that one who comes back with Last-Event-ID goes on where he was. One lease's items are in the
 * store (lease/scripts/history.lua). */
#ifndef PAWL_LEASE_FEED_H
#define PAWL_LEASE_FEED_H

#include "lease/events/events.h"
#include "shared/service/service.h"
#include "shared/store/store.h"

enum { EVENT_HUB_KEPT = 10000, EVENT_HUB_LINGER_MS = 60000 };

/* What many listen to is written once, and handed out as text, EVENT_HUB_SLICE listeners in a turn of the
 * loop so that others have their turns between. Up to EVENT_HUB_AT_ONCE items a second leave at once (the
 * answer to whoever made one goes first); beyond that they are gathered for EVENT_HUB_GATHER_MS, or until
 * there are EVENT_HUB_GATHER_BYTES of them. */
enum {
    EVENT_HUB_SLICE = 32,
    EVENT_HUB_AT_ONCE = 20,
    EVENT_HUB_SOON_MS = 2,
    EVENT_HUB_GATHER_MS = 100,
    EVENT_HUB_GATHER_BYTES = 65536
};

struct event_hub;

/* One who listens. Each of its functions may forget it and free it, and nobody else. */
struct event_listener {
    /* An item, packed as history.lua packs it, with the lease's name; both valid during the call only. Each
     * once, in the order in which they happened to their lease. */
    void (*item)(struct event_listener *listener, struct bytes lease, struct bytes item);
    /* In place of item() since event_hub_gather(): one item or several in the listener's form. false: it does
     * not listen any more. */
    bool (*text)(struct event_listener *listener, struct bytes text);
    /* From now on everything is heard. */
    void (*listens)(struct event_listener *listener);
    /* Something may be missed from now on, or nobody is to listen any more (event_hub_is_off()): to be
     * forgotten in this call. */
    void (*lost)(struct event_listener *listener);
    enum events_form form;
    /* the feed's own */
    bool gathers;
    uint64_t from; /* how much text of its form the channel had when it was last told */
    struct event_listener *prev, *next;
    struct event_channel *channel;
};

/* Its subscriber connects as options say. */
struct event_hub *event_hub_new(struct worker *worker, struct store_options options);
/* How long after the last who listened to all; EVENT_HUB_LINGER_MS unless a test is in a hurry. */
void event_hub_linger(struct event_hub *event_hub, unsigned linger_ms);
/* All who listen are told lost(). */
void event_hub_drain(struct event_hub *event_hub);
/* From now on nothing is asked of the store. */
void event_hub_stop(struct event_hub *event_hub);
/* All who listen are told lost(), and frees. */
void event_hub_free(struct event_hub *event_hub);
/* lease: a name, copied; or empty: all of them. true: everything is heard from now on; false: listens() will
 * be called, never from inside. */
bool event_hub_listen(struct event_hub *event_hub, struct event_listener *listener, struct bytes lease);
/* From the next item on it gets text(), not item(). May be called from inside its functions. */
void event_hub_gather(struct event_listener *listener);
void event_hub_forget(struct event_hub *event_hub, struct event_listener *listener);
/* Whether the store notes nothing of what happens, as it last said. */
bool event_hub_is_off(const struct event_hub *event_hub);
/* Whether the item "SS.EPOCH.SEQ.N" is one of those that are kept; then nothing that was heard after it is
 * missing. */
bool event_hub_has(const struct event_hub *event_hub, struct bytes id);
/* Hands to a listener to all leases what was heard after this item, oldest first, until he says false. item()
 * of his is not called. */
void event_hub_replay(const struct event_hub *event_hub, struct bytes id, struct event_listener *listener,
                      bool (*item)(struct event_listener *listener, struct bytes lease, struct bytes item));

#endif
