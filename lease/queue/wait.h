/* wait.h - a client that waits in line for a lease: from "queued" to its answer.
 *
 *   REQUESTED  --acquire.lua: queued-->                      QUEUED
 *   REQUESTED  --queued, and "granted" was told before-->    CLAIMING    claim.lua
 *   REQUESTED  --any other answer-->                         DONE        (acquire.c answers)
 *   QUEUED    --told: granted-->                            CLAIMING    claim.lua
 *   QUEUED    --its time is up-->                           LEAVING     leave.lua "late"
 *   QUEUED    --its client has gone-->                      RETURNING   leave.lua "gone"
 *   QUEUED    --told: superseded, session-lost-->           DONE        409 superseded, 410 session-lost
 *   QUEUED    --the inbox has closed-->                     DONE        503 store-unavailable, or draining
 *   QUEUED    --the inbox has closed, a release perhaps granted--> AGAIN
 *   QUEUED    --a release here has granted it the lease-->  DONE        201
 *   QUEUED    --that, but its client has gone-->            RETURNING   leave.lua "gone"
 *   AGAIN     --the inbox is open: again.lua: queued-->     QUEUED
 *   AGAIN     --claimed-->                                  DONE        201
 *   AGAIN     --its client has gone-->                      RETURNING   leave.lua "gone"
 *   AGAIN     --the service is stopping-->                  LEAVING     leave.lua "late"
 *   AGAIN     --superseded, lost-->                         DONE        409 superseded; 409 hold-over or 503
 *   AGAIN     --no answer, or no inbox for 3 s-->           DONE        504
 *   CLAIMING  --claimed-->                                  DONE        201
 *   CLAIMING  --claimed, but its client has gone-->         RETURNING   leave.lua "gone"
 *   CLAIMING  --superseded, lost-->                         DONE        409 superseded; 409 hold-over or 503
 *   CLAIMING  --not sent, unknown-->                        DONE        504
 *   LEAVING   --left-->                                     DONE        409 wait-timeout
 *   LEAVING   --granted-->                                  CLAIMING    claim.lua
 *   LEAVING   --superseded-->                               DONE        409 superseded
 *   LEAVING   --not sent, unknown-->                        DONE        504
 *   RETURNING --answered, however-->                        DONE        to nobody
 *
 * What is told twice, or late, changes nothing. waited_ms is the time from the arrival of the request to the
 * sending of the claim, or of the release that granted it, rounded down: the ttl begins in the store then, so
 * a client that counts from there loses nothing and gains nothing.
 *
 * One to whom a release may have granted the lease, or may yet, never gets 503: who gets it is out of the
 * line, or stands at an inbox that no release names any more. What is offered to it goes on after 3 s; what a
 * release grants to one that has got 504 meanwhile, or has gone, is given back. */
#ifndef PAWL_LEASE_WAIT_H
#define PAWL_LEASE_WAIT_H

#include "lease/queue/inbox.h"
#include "shared/http/http.h"

struct waiter;
struct wait_kind;

/* What is waited for; copied. */
struct wait_request {
    struct bytes name, lease_id, hold; /* name: of the lease, or of the first of several */
    struct bytes extra;                /* handed to the scripts as it is: the names of several; else empty */
    enum token_mode mode;
    uint64_t started_us;      /* when the request arrived, loop_now_us() */
    int64_t wait_ms, keep_ms; /* keep_ms: for how long its place outlives its connection, 0 to 60000 */
};

/* One lease, or several: which scripts, and how the grant is told. Both get KEYS as lease/operation.h fills
 * them, answer as claim.lua and leave.lua do, and get extra as their last argument, if there is one:
 *   claim  ARGV: name, remember_ms, lease_id, hold, "grant" | "hold-off"
 *   leave  ARGV: name, remember_ms, lease_id, hold, "grant" | "hold-off", "gone" | "late"; of one lease also
 *          keep_place_ms */
struct wait_kind {
    const struct store_script *claim, *leave;
    bool in_turn; /* they wait for their turn (turn.h) */
    /* "claimed": 201. */
    enum step (*claimed)(struct http_request *req, const struct wait_request *request,
                         const struct store_reply *reply, int64_t waited_ms);
};

/* Takes a place at the worker's inbox, before acquire.lua is run; NULL while the inbox is not open: 503. */
struct waiter *wait_new(struct worker *worker, const struct wait_kind *kind,
                        const struct wait_request *request);
/* What the script is told of it: the inbox's key and this number. */
uint64_t wait_wid(const struct waiter *waiter);
/* It does not wait: acquire.lua has said something else than "queued". */
void wait_drop(struct waiter *waiter);
/* It waits: parks the request, SUSPENDED. Ends it later, however this ends. */
enum step wait_begin(struct waiter *waiter, struct http_request *req);
/* A release that was sent from here at that time has granted the lease of this name to one who waits here:
 * {"handed", ...}, release.lua. */
void wait_handed(struct worker *worker, struct bytes name, const struct store_reply *reply, uint64_t sent_us);
/* Elements of that reply, behind those of a grant. */
enum { WAIT_HANDED_MORE = 11, WAIT_HANDED_WID, WAIT_HANDED_ID, WAIT_HANDED_KEEP };

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

/* One who waits may take this much memory here, all counted: the struct, its place at the inbox, its alarm;
 * beside the texts of what is waited for. */
enum { WAIT_BYTES_MAX = 160 };

#endif
