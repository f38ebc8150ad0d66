/* forward.h - a request that a route matches: checked, then forwarded, then its end is known or is not.
 *
 *   NEW      --a read that is not fenced-->              SENDING
 *   NEW      --a write of a route with if_match-->       LOOKING    which version is there?
 *   NEW      --any other, with a token-->                ASKING     intent_admit.lua, _check.lua, _read.lua
 *   NEW      --refused-->                                DONE       4xx
 *   NEW      --its body is long, and not to be streamed-->  TAKING  into a file
 *   TAKING   --whole; then as from NEW-->                SENDING
 *   TAKING   --the same-->                               LOOKING
 *   TAKING   --the same-->                               ASKING
 *   TAKING   --too long, too slow, no room, the client has gone-->  DONE  413, 408, 503; nothing was sent
 *   LOOKING  --the version is known-->                   ASKING
 *   LOOKING  --none is known, or another is meant-->      DONE       502, 412
 *   ASKING   --"sending", "accepted"-->                  SENDING    upstream_begin()
 *   ASKING   --"missing": not by the open intent-->      ASKING     intent_admit.lua (admit.c)
 *   ASKING   --"queued", "wait"-->                       QUEUED
 *   ASKING   --refused, in doubt, not sent, unknown-->   DONE       4xx, 503
 *   QUEUED   --something was closed, or a while-->       ASKING     intent_promote.lua or intent_read.lua
 *   QUEUED   --what is older may have been applied-->    PROBING    the route's probe
 *   QUEUED   --its time is up, or an end is in doubt-->  DONE       503 in-doubt
 *   PROBING  --answered, however-->                      ASKING
 *   SENDING  --the head of the answer-->                 TELLING
 *   SENDING  --timeout_ms passed-->                      LATE       504, the exchange goes on
 *   SENDING  --nothing was sent, or its end is unknown-->  DONE     502, 504
 *   TELLING  --412: another version came between-->   LOOKING    again, at most LOOKS_MAX times
 *   TELLING  --whole, or broken off-->                   DONE       the upstream's answer; 504, or it is cut
 *   TELLING  --timeout_ms, the client has gone, or may see it no more-->  LATE
 *   LATE     --ended, or timeout_ms passed once more-->  DONE       the connection is closed
 *
 * In the store an intent is, seen from here: asked for (ASKING); queued (QUEUED, PROBING); sending, and
 * nothing has left (SENDING, before a byte of it may have); sending (SENDING, TELLING, LATE); to be closed
 * (DONE, in the closer's line); closed.
 *
 * An admission of unknown end (504 of the store) is answered 503: nothing is ever sent then, and what
 * may have been recorded is taken back. */
#ifndef PAWL_GATEWAY_FORWARD_H
#define PAWL_GATEWAY_FORWARD_H

#include "shared/http/http.h"
#include "shared/service/service.h"

struct gateway_worker;

enum forward_state {
    FORWARD_NEW,
    FORWARD_TAKING,
    FORWARD_LOOKING,
    FORWARD_ASKING,
    FORWARD_QUEUED,
    FORWARD_PROBING,
    FORWARD_SENDING,
    FORWARD_TELLING,
    FORWARD_LATE,
    FORWARD_DONE,
    FORWARD_STATES
};

bool forward_allows(enum forward_state from, enum forward_state to);

enum step forward_start(struct http_request *req);
/* Whether forward_start() refuses it by its head, without the store: no route, or a token that is missing,
 * malformed, forged or another lease's. */
bool forward_refuses(struct http_request *req);

/* Whether its Authorization is for the upstream of its route. */
bool forward_authorization_is_upstreams(struct http_request *req);

/* Something of this lease was closed: the writes that wait for it ask again. */
void forward_wake_lease(struct gateway_worker *own, struct bytes lease);

/* service_plan.judge. What has not left is refused, answers that are not whole are cut. */
void forward_judge(struct worker *worker);

/* The process is to end: to be called again and again. What is queued is refused (503 draining), late answers
 * are not waited for any more, and at last no answer is. */
void forward_drain(struct gateway_worker *own);
void forward_worker_free(struct gateway_worker *own);

/* Writes that are being sent, and that an operator gives up (resolve with force): the gateway that sends them
 * closes their connections, before anything else resolves them (intent_resolve.lua). A worker asks the store
 * while it has a write under way: when the member's look says that there is news (member_plan: given_up), and
 * all the same every GIVEN_UP_LOOK_MS while one is older than that. */
void given_up_look(struct worker *first, int64_t number);
/* Every 100 ms. */
void given_up_tick(struct gateway_worker *own);

#endif
