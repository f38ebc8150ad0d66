/* forward.h - a request that a route matches: checked, then forwarded, then its end is known or is not.
 *
 *   NEW      --a read that is not fenced-->                       SENDING
 *   NEW      --a write of a route with if_match-->                LOOKING    upstream: which version is
 * there? NEW      --any other, with a token-->                         ASKING     intent_admit.lua, or
 * intent_read.lua NEW      --refused-->                                         DONE       4xx LOOKING  --the
 * version is known-->                            ASKING LOOKING  --no answer, none with a version, not the
 * one-->     DONE       502, 412 ASKING   --"sending", "accepted"-->                           SENDING
 * upstream_begin() ASKING   --"queued", "wait"-->                                QUEUED ASKING   --refused,
 * in doubt, not sent, unknown-->            DONE       4xx, 503 QUEUED   --something of this lease was
 * closed, or a while passed--> ASKING  intent_promote.lua, intent_read.lua QUEUED   --what it waits for may
 * be shown to be applied-->    PROBING    upstream: the route's probe QUEUED   --its time is up, or its end
 * is in doubt-->          DONE       503 in-doubt PROBING  --answered, however--> ASKING SENDING  --the head
 * of the answer-->                          TELLING SENDING  --timeout_ms passed--> LATE       504, the
 * exchange goes on SENDING  --412 of a conditional write, of somebody's before-->LOOKING    again, at most
 * LOOKS_MAX times SENDING  --nothing was sent-->                                DONE       502 SENDING  --the
 * end is not known-->                            DONE       504 TELLING  --whole--> DONE       the upstream's
 * answer TELLING  --broken off-->                                      DONE       504, or the answer is cut
 *   TELLING  --timeout_ms passed, or the client has gone-->       LATE
 *   LATE     --ended, however-->                                  DONE
 *
 * In the store an intent is, seen from here: asked for (ASKING), queued (QUEUED, PROBING), sending and
 * nothing has left (SENDING, !upstream_has_sent()), sending (SENDING, TELLING, LATE), to be closed (DONE, in
 * the closer's line), closed.
 *
 * An admission that nobody knows the end of (504 of the store) is answered 503: nothing is ever sent then,
 * and what may have been recorded is taken back. */
#ifndef PAWL_GATEWAY_FORWARD_H
#define PAWL_GATEWAY_FORWARD_H

#include "gateway/gate.h"
#include "gateway/intents.h"
#include "gateway/route.h"
#include "gateway/upstream.h"
#include "gateway/worker.h"
#include "shared/alarm.h"

enum forward_state {
    FORWARD_NEW,
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

/* The process is to end: to be called again and again. Who is queued is sent away (503 draining), late
 * answers are not waited for any more, and at last no answer is. */
void forward_drain(struct gateway_worker *own);

#endif
