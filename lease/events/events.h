/* events.h - what happens to leases: their histories, and streams of events as they happen.
 *
 *   history.c     GET /v1/leases/{name}/history; items and ids, packed and as users see them
 *   event_hub.c   Redis' messages to those who listen, one hub for each worker
 *   line.c        who waits for the leases that somebody listens to
 *   stream.c      GET /v1/events: one who listens; the states of a stream are drawn there */
#ifndef PAWL_LEASE_EVENTS_H
#define PAWL_LEASE_EVENTS_H

#include <sys/queue.h>

#include "shared/http/http.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/text/json_write.h"
#include "shared/token/random.h"

/* -- history: one thing that happened to a lease, as shared/member/scripts/lib/history.lua packs it.
 *
 * A user's id of it is "SS.EPOCH.SEQ.N": the stripe in two hex digits, then the store's id, which orders what
 * happened to one lease. So no two items of a store have the same id, and those of one lease can be compared.
 */
struct history_id {
    uint64_t epoch, seq, n;
};

/* "EPOCH.SEQ.N", decimals without a zero in front; false when it is not. */
bool history_id_read(struct bytes text, struct history_id *id);
/* A user's "SS.EPOCH.SEQ.N"; false when it is none. */
bool history_id_read_user(struct bytes text, unsigned *stripe, struct history_id *id);
/* Which was first: < 0, 0, > 0. */
int history_id_compare(const struct history_id *a, const struct history_id *b);

struct history_item {
    struct bytes id_text, type, holder, identity, reason,
        more; /* in what was read; more: behind the reason */
    struct history_id id;
    int64_t token, at_ms;
};

/* false when it is none of ours. */
bool history_item_read(struct bytes packed, struct history_item *item);

enum { HISTORY_ID_SIZE = 80 };
/* What users see, and a NUL; lease: the name. */
struct bytes history_id_write(char buf[HISTORY_ID_SIZE], struct bytes lease, struct bytes id_text);
/* As one JSON object, an element of a list or alone. */
void history_item_write(struct json_out *json, const struct worker *worker, struct bytes lease,
                        const struct history_item *item);

/* -- the hub: a subscriber of each worker, which subscribes only to what somebody listens to. For those who
 * listen to all leases the last EVENT_HUB_KEPT items are kept, and for EVENT_HUB_LINGER_MS after the last of
 * them has gone, so that one that comes back with Last-Event-ID goes on where it was. One lease's items are
 * in the store (lease/scripts/history.lua).
 *
 * What many listen to is written once, and handed out as text, EVENT_HUB_SLICE listeners in a turn of the
 * loop so that others have their turns between. Up to EVENT_HUB_AT_ONCE items a second leave at once (the
 * answer to the request that made one goes first); beyond that they are gathered for EVENT_HUB_GATHER_MS, or
 * until there are EVENT_HUB_GATHER_BYTES of them. */
enum { EVENT_HUB_KEPT = 10000, EVENT_HUB_LINGER_MS = 60000 };
enum {
    EVENT_HUB_SLICE = 32,
    EVENT_HUB_AT_ONCE = 20,
    EVENT_HUB_SOON_MS = 2,
    EVENT_HUB_GATHER_MS = 100,
    EVENT_HUB_GATHER_BYTES = 65536
};

enum events_form { EVENTS_SSE, EVENTS_NDJSON, EVENTS_FORMS };

struct event_hub;
struct lease_worker;

LIST_HEAD(event_listeners, event_listener);

/* One who listens. Each of its functions may forget it and free it, and nobody else. */
struct event_listener {
    /* An item, packed as history.lua packs it, with the lease's name; both valid during the call only. Each
     * once, in the order in which they happened to their lease. */
    void (*item)(struct event_listener *listener, struct bytes lease, struct bytes item);
    /* In place of item() since event_hub_gather(): one item or several in the listener's form; at any time:
     * who waits. false: it does not listen any more. */
    bool (*text)(struct event_listener *listener, struct bytes text);
    /* From now on everything is heard. */
    void (*listens)(struct event_listener *listener);
    /* Something may be missed from now on, or nobody is to listen any more (event_hub_is_off()): to be
     * forgotten in this call. */
    void (*lost)(struct event_listener *listener);
    enum events_form form;
    /* the hub's own */
    bool gathers, has_line; /* has_line: it was sent who waits */
    uint64_t from;          /* how much text of its form the channel had when it last got some */
    LIST_ENTRY(event_listener) entry;
    struct event_channel *channel;
};

/* Its subscriber connects as options say. */
struct event_hub *event_hub_new(struct worker *worker, struct store_options options);
/* How long after the last that listened to all; EVENT_HUB_LINGER_MS unless a test is in a hurry. */
void event_hub_linger(struct event_hub *event_hub, unsigned linger_ms);
/* All who listen are lost(). */
void event_hub_drain(struct event_hub *event_hub);
/* From now on nothing is asked of the store. */
void event_hub_stop(struct event_hub *event_hub);
/* All who listen are lost(); frees. */
void event_hub_free(struct event_hub *event_hub);
/* lease: a name, copied; or empty: all of them. true: everything is heard from now on; false: listens() will
 * be called, never from inside. */
bool event_hub_listen(struct event_hub *event_hub, struct event_listener *listener, struct bytes lease);
/* From the next item on it gets text(), not item(). May be called from inside its functions. */
void event_hub_gather(struct event_listener *listener);
void event_hub_forget(struct event_hub *event_hub, struct event_listener *listener);
/* The store's time, about: as it last said it, and what has passed here since. */
int64_t event_hub_now_ms(const struct event_hub *event_hub);
/* Whether the store notes nothing of what happens, as it last said. */
bool event_hub_is_off(const struct event_hub *event_hub);
/* The line of the one lease that it listens to is sent, if somebody waits; later it is when it changes. */
void event_hub_line(struct event_listener *listener);
/* Whether the item "SS.EPOCH.SEQ.N" is one of those that are kept; then nothing that was heard after it is
 * missing. */
bool event_hub_has(const struct event_hub *event_hub, struct bytes id);
/* Hands to a listener to all leases what was heard after this item, oldest first, until item() is false. Its
 * own item() is not called. */
void event_hub_replay(const struct event_hub *event_hub, struct bytes id, struct event_listener *listener,
                      bool (*item)(struct event_listener *listener, struct bytes lease, struct bytes item));

/* -- lines: who waits for the leases that somebody listens to. The store says when one may have changed; then
 * it is asked, at most once in EVENT_LINE_APART_MS for a lease, and what is another than before is sent. */
enum { EVENT_LINE_APART_MS = 500 };

struct event_line {
    struct bytes name; /* of the lease; set by its owner */
    /* line.c's own */
    bool is_due, is_wanted;
    uint64_t at_ms;             /* not to be asked for before */
    char told[DIGEST_TEXT + 1]; /* digest of what was sent last; "": that nobody waits, or nothing */
    TAILQ_ENTRY(event_line) entry;
};

struct event_lines;
/* {"line", seq, how many wait, {{holder, ...}, ...}, store time} of this line, which may be forgotten in this
 * call; is_new: another than was sent last. */
typedef void event_line_fn(struct event_line *line, const struct store_reply *reply, bool is_new);

struct event_lines *event_lines_new(struct worker *worker, event_line_fn *changed);
/* Nothing is asked any more. Freed by free(3). */
void event_lines_stop(struct event_lines *lines);
/* It may have changed. */
void event_line_due(struct event_lines *lines, struct event_line *line);
/* It is sent, changed or not, unless nobody waits. */
void event_line_tell(struct event_lines *lines, struct event_line *line);
void event_line_forget(struct event_lines *lines, struct event_line *line);

/* -- streams */

/* An item behind what is in text, which goes to many. */
void events_put_item(struct json_out *text, const struct worker *worker, enum events_form form,
                     struct bytes lease, const struct history_item *item);

/* The same of who waits, from the reply of line.lua. */
void events_put_line(struct json_out *text, const struct worker *worker, enum events_form form,
                     struct bytes lease, const struct store_reply *reply);

LIST_HEAD(event_streams, listening);
/* The rules have changed: streams that are not allowed any more are ended. */
void events_judge(struct lease_worker *worker);

enum events_state { EVENTS_SUBSCRIBER, EVENTS_STORE, EVENTS_STREAM, EVENTS_DONE, EVENTS_STATES };
bool events_allows(enum events_state from, enum events_state to);

#endif
