/* queue.h - clients that wait in line for leases, and what hands leases on to them (docs/decisions/0013).
 *
 *   waiter.c    one that waits, from "queued" to its answer         the states of a waiter are drawn there
 *   inbox.c     where a worker's waiters stand: Redis messages it   the states of an inbox are drawn there
 *   kept.c      the places of those who have left, for as long as they are kept
 *   turn.c      scripts on several leases: one at a time
 *   handoff.c   lines in which a hold has ended are looked at when it is time
 */
#ifndef PAWL_LEASE_QUEUE_H
#define PAWL_LEASE_QUEUE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "shared/http/http.h"
#include "shared/loop/alarm.h"
#include "shared/member/member.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/token/token.h"

/* -- waiters */

struct waiter;

/* What is waited for; copied. */
struct wait_request {
    struct bytes name, lease_id, hold; /* name: of the lease, or of the first of several */
    struct bytes extra;                /* handed to the scripts as it is: the names of several; else empty */
    const char *identity;              /* who waits; NULL: nobody. It outlives the request */
    bool is_counted;                   /* by service_waiting_take(): given back when it waits no more */
    uint64_t kept_ms;                  /* of the same */
    uint64_t started_us;               /* when the request arrived, loop_now_us() */
    int64_t wait_ms, keep_ms; /* keep_ms: for how long its place outlives its connection, 0 to 60000 */
};

/* Whether it may have this lease, by the rules of now. Who waited is judged so before its grant is sent, by
 * whichever way it was granted; what it may not have is given back, and the answer is 403 forbidden. */
typedef bool wait_may_have_fn(const struct worker *worker, const char *identity, struct bytes lease);

/* One lease, or several: which scripts, and how the grant is sent. Both get KEYS as lease/operation.h fills
 * them, answer as claim.lua and leave.lua do, and get extra as their last argument but who asks, if there is
 * one:
 *   claim  ARGV: name, remember_ms, lease_id, hold, "grant" | "hold-off"
 *   leave  ARGV: name, remember_ms, lease_id, hold, "grant" | "hold-off", "gone" | "late"; of one lease also
 *          keep_place_ms */
struct wait_kind {
    const struct store_script *claim, *leave;
    bool in_turn; /* they wait for their turn */
    /* "claimed" or "handed": 201. */
    enum step (*claimed)(struct http_request *req, const struct wait_request *request,
                         const struct store_reply *reply, int64_t waited_ms);
};

/* Takes a place at the worker's inbox, before acquire.lua is run; NULL while the inbox is not open: 503. It
 * is not counted any more then, either. */
struct waiter *wait_new(struct worker *worker, const struct wait_kind *kind,
                        const struct wait_request *request);
/* Names it to the script, beside the inbox's key. */
uint64_t wait_wid(const struct waiter *waiter);
/* It does not wait: acquire.lua has said something else than "queued". A place that it had before it has
 * still; granted: not that either. */
void wait_drop(struct waiter *waiter);
void wait_drop_granted(struct waiter *waiter);
/* It waits: parks the request, SUSPENDED. Ends it later, however this ends. */
enum step wait_begin(struct waiter *waiter, struct http_request *req);
/* A release that was sent from here at that time has granted the lease of this name to one that waits here:
 * {"handed", ...}, release.lua. */
void wait_handed(struct worker *worker, struct bytes name, const struct store_reply *reply, uint64_t sent_us);
/* Elements of that reply, behind those of a grant. */
enum { WAIT_HANDED_MORE = 11, WAIT_HANDED_WID, WAIT_HANDED_ID, WAIT_HANDED_KEEP, WAIT_HANDED_IDENTITY };

enum wait_state {
    WAIT_REQUESTED,
    WAIT_QUEUED,
    WAIT_CLAIMING,
    WAIT_LEAVING,
    WAIT_RETURNING,
    WAIT_AGAIN,
    WAIT_DONE,
    WAIT_STATES
};
bool wait_allows(enum wait_state from, enum wait_state to);

/* -- those who have left */

/* At most, of all identities: a client may leave again and again, and not all have a quota. The oldest is
 * forgotten then; when its turn comes, the store passes it over. */
enum { KEPT_MAX = 16384 };
struct kept_places {
    TAILQ_HEAD(, kept_place) list;
    unsigned count;
    bool has_more; /* not all are judged: kept_judge() at the next tick */
};
/* It waits here no more, and its place is kept for so long. */
void kept_add(struct worker *worker, const struct wait_request *request, uint64_t ms);
/* The rules have changed: what is kept for who may not have the lease any more is not; so many at once. */
void kept_judge(struct worker *worker);
void kept_free(struct kept_places *places);
/* A release has granted the lease to one that waits here no more: as wait_handed(). */
void kept_give_back(struct worker *worker, struct bytes name, const struct store_reply *reply);

/* -- the inbox of a worker */

enum { INBOX_ID_CHARS = 16, INBOX_HEARTBEAT_MS = 750, INBOX_SILENT_MS = 3000, INBOX_KEY_SIZE = 40 };
enum inbox_state { INBOX_CLOSED, INBOX_OPENING, INBOX_OPEN, INBOX_CLOSING, INBOX_SHUT, INBOX_STATES };
enum inbox_news {
    INBOX_NO_NEWS,
    INBOX_GRANTED,
    INBOX_SUPERSEDED,
    INBOX_SESSION_LOST,
    INBOX_HAS_CLOSED,
    INBOX_JUDGED
};

/* What the inbox knows of a waiter. wid is never 0, and never the same twice in the process. */
struct inbox_place {
    /* A message of the store, the inbox has closed, or the rules have changed; never from inside a call of
     * the inbox's. */
    void (*notify)(struct inbox_place *place, enum inbox_news news);
    uint64_t wid; /* the inbox's own */
};

struct inbox;

struct inbox *inbox_new(struct worker *worker);
/* All places have been left, and the store is closed. */
void inbox_free(struct inbox *inbox);
bool inbox_is_open(const struct inbox *inbox);
/* Of its subscriber. */
const char *inbox_why(const struct inbox *inbox);
/* Closes for good, also when called twice: in the store first, then for all that wait; then it is shut. */
void inbox_drain(struct inbox *inbox);
bool inbox_is_shut(const struct inbox *inbox);
/* The rules have changed: tells all who wait here INBOX_JUDGED, some in each turn of the loop. */
void inbox_judge(struct inbox *inbox);
/* Takes a place at an inbox that is open; notify is set by the caller. */
void inbox_enter(struct inbox *inbox, struct inbox_place *place);
void inbox_leave(struct inbox *inbox, struct inbox_place *place);
/* NULL: nobody waits under this number. */
struct inbox_place *inbox_place_of(const struct inbox *inbox, uint64_t wid);
unsigned inbox_count(const struct inbox *inbox);
/* Key of the inbox's record in the store, which is also its channel. */
struct bytes inbox_key(const struct inbox *inbox);
/* For deadlines of those that wait here. */
struct alarm_clock *inbox_clock(struct inbox *inbox);
/* 0: it is none. */
uint64_t inbox_wid_read(struct bytes text);
/* A message to the inbox of this key, read in a script's reply: who waits here need not wait for the
 * subscriber, which will say the same. Another inbox's: nothing happens. */
void inbox_hear(struct inbox *inbox, struct bytes key, struct bytes message);

/* A release is about to be sent: key gets the inbox's, which the release names and so may grant the lease to
 * a waiter here, in its own step; or "" and false: it must not, or nobody waits here. */
bool inbox_release_begins(struct inbox *inbox, unsigned stripe, char key[INBOX_KEY_SIZE]);
/* Of one for which that was true. is_heard: its reply was read, or it certainly did not run. */
void inbox_release_ended(struct inbox *inbox, unsigned stripe, bool is_heard);
/* Whether a release of a lease of this stripe is under way, or its reply was lost when the inbox closed: it
 * may have granted the lease to a waiter here. */
bool inbox_has_perhaps_granted(const struct inbox *inbox, unsigned stripe);

bool inbox_allows(enum inbox_state from, enum inbox_state to);
/* Whether this inbox has ever gone from one to the other; for the test of the drawing. */
bool inbox_has_gone(const struct inbox *inbox, enum inbox_state from, enum inbox_state to);

/* -- turns: the scripts that touch up to a hundred leases in one step (acquire_all, claim_all, leave_all),
 * one of them at a time in this service, and never more than a quarter of the store's time.
 *
 * Each costs the store a hundred times what a renewal costs, and must not be split. So after each one the
 * next waits for three times as long as that one took, from its sending to its answer, less what the network
 * takes at the least. Workers share nothing but that moment. Claims go first; leaves and acquires alternate.
 * An acquire waits for at most TURN_WAIT_MS, behind at most TURN_ACQUIRES_MAX others of this worker; else 503
 * overloaded, and nothing was asked of the store. */
enum { TURN_ACQUIRES_MAX = 128, TURN_WAIT_MS = 1000, TURN_PAUSE_MAX_MS = 500 };
enum turn_kind { TURN_CLAIM, TURN_LEAVE, TURN_ACQUIRE, TURN_KINDS };

struct turn_call { /* the owner embeds it */
    /* Once, later. PROBLEM_NONE: it is its turn, until turn_done(). PROBLEM_OVERLOADED: it waited for too
     * long. */
    void (*go)(struct turn_call *call, enum problem bad);
    /* the turn's own */
    STAILQ_ENTRY(turn_call) entry;
    uint64_t until_ms;
};

STAILQ_HEAD(turn_line, turn_call);

struct turn {
    struct loop *loop;
    struct loop_timer timer;
    /* The moment from which the slot is free, loop_now_us(); UINT64_MAX while a script is under way. It is
     * that of the service's first worker. */
    _Atomic uint64_t own, *slot;
    struct turn_line line[TURN_KINDS];
    bool acquired_last;
    unsigned acquires;
    uint64_t began_us;
};

/* slot: of the service's first worker; NULL: this is it. */
void turn_init(struct turn *turn, struct loop *loop, _Atomic uint64_t *slot);
/* Nobody waits any more (asserted). */
void turn_free(struct turn *turn);
/* false: too many acquires wait; go() is never called. */
bool turn_wait(struct turn *turn, struct turn_call *call, enum turn_kind kind);
/* The script is over, however it ended, or was never sent. */
void turn_done(struct turn *turn, uint64_t network_us);

/* -- handoff: handoff.lua on leases in whose lines somebody waits.
 *
 * Every service asks when the next alarm of all rings (the member's look, every 50 ms) and sets its own timer
 * for it, so a lease whose hold has ended is handed on within some milliseconds of its deadline, by any
 * service that lives. Several may do it at once: the script finds nothing left to do. */
struct handoff;

struct handoff *handoff_new(struct worker *worker);
/* When the next alarm rings, in ms; -1: none is set; 0: now, or unknown. Holds until the next call. */
void handoff_alarm(struct handoff *handoff, int64_t in_ms);
/* No new call is made; before the store is closed. Then it is freed by free(3). */
void handoff_stop(struct handoff *handoff);
/* A script has said "more": the lease is looked at again at once, until nothing is left to do. name is
 * copied. */
void handoff_more(struct handoff *handoff, struct bytes name);

#endif
