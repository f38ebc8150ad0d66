/* event_hub.h - what happens to leases, as it happens: messages of shared/member/scripts/lib/history.lua, for
 * those who listen (stream.c).
 *
 * An ear of each worker, which subscribes only to what somebody listens to. For those who listen to all
 * leases the last FEED_KEPT items are kept, and for FEED_LINGER_MS after the last of them has gone, so that
 * one who comes back with Last-Event-ID goes on where he was. One lease's items are in the store
 * (lease/scripts/history.lua). */
#ifndef PAWL_LEASE_FEED_H
#define PAWL_LEASE_FEED_H

#include "lease/events/events.h"
#include "shared/service/service.h"
#include "shared/store/store.h"

enum { FEED_KEPT = 10000, FEED_LINGER_MS = 60000 };

/* What many listen to is written once, and handed out as text, FEED_SLICE listeners in a turn of the loop so
 * that others have their turns between. Up to FEED_AT_ONCE items a second leave at once (the answer to
 * whoever made one goes first); beyond that they are gathered for FEED_GATHER_MS, or until there are
 * FEED_GATHER_BYTES of them. */
enum {
    FEED_SLICE = 32,
    FEED_AT_ONCE = 20,
    FEED_SOON_MS = 2,
    FEED_GATHER_MS = 100,
    FEED_GATHER_BYTES = 65536
};

struct feed;

/* One who listens. Each of its functions may forget it and free it, and nobody else. */
struct feed_listener {
    /* An item, packed as history.lua packs it, with the lease's name; both valid during the call only. Each
     * once, in the order in which they happened to their lease. */
    void (*item)(struct feed_listener *listener, struct bytes lease, struct bytes item);
    /* In place of item() since feed_gather(): one item or several in the listener's form. false: it does not
     * listen any more. */
    bool (*text)(struct feed_listener *listener, struct bytes text);
    /* From now on everything is heard. */
    void (*listens)(struct feed_listener *listener);
    /* Something may be missed from now on, or nobody is to listen any more (feed_is_off()): to be forgotten
     * in this call. */
    void (*lost)(struct feed_listener *listener);
    enum events_form form;
    /* the feed's own */
    bool gathers;
    uint64_t from; /* how much text of its form the channel had when it was last told */
    struct feed_listener *prev, *next;
    struct feed_channel *channel;
};

/* Its ear connects as options say. */
struct feed *feed_new(struct worker *worker, struct store_options options);
/* How long after the last who listened to all; FEED_LINGER_MS unless a test is in a hurry. */
void feed_linger(struct feed *feed, unsigned linger_ms);
/* All who listen are told lost(). */
void feed_drain(struct feed *feed);
/* From now on nothing is asked of the store. */
void feed_stop(struct feed *feed);
/* All who listen are told lost(), and frees. */
void feed_free(struct feed *feed);
/* lease: a name, copied; or empty: all of them. true: everything is heard from now on; false: listens() will
 * be called, never from inside. */
bool feed_listen(struct feed *feed, struct feed_listener *listener, struct bytes lease);
/* From the next item on it gets text(), not item(). May be called from inside its functions. */
void feed_gather(struct feed_listener *listener);
void feed_forget(struct feed *feed, struct feed_listener *listener);
/* Whether the store notes nothing of what happens, as it last said. */
bool feed_is_off(const struct feed *feed);
/* Whether the item "SS.EPOCH.SEQ.N" is one of those that are kept; then nothing that was heard after it is
 * missing. */
bool feed_has(const struct feed *feed, struct bytes id);
/* Hands to a listener to all leases what was heard after this item, oldest first, until he says false. item()
 * of his is not called. */
void feed_replay(const struct feed *feed, struct bytes id, struct feed_listener *listener,
                 bool (*item)(struct feed_listener *listener, struct bytes lease, struct bytes item));

#endif
