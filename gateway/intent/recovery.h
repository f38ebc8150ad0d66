/* recovery.h - what this gateway owes the store at the beginning of each of its lives there: one for each
 * process, on its first worker.
 *
 *   IDLE     --admitted to a life that we have not looked at-->  AGAIN
 *   AGAIN    --all that is open here is recorded again-->        TAKING   intent_again.lua
 *   AGAIN    --a call failed, or another life began-->           IDLE     and from the beginning
 *   TAKING   --all stripes looked at-->                          LEAVING  intent_takeover.lua, doubt_dead.lua
 *   TAKING   --the same, in a life that was in doubt of us-->    CLOSING
 *   TAKING   --a call failed, or another life began-->           IDLE     and from the beginning
 *   CLOSING  --what had ended is closed once more-->             LEAVING  reconcile.h
 *   CLOSING  --a call failed, or another life began-->           IDLE     and from the beginning
 *   LEAVING  --the store knows that that was all, or failed-->   IDLE     doubt_leave.lua
 *   IDLE     --3 s later, once more-->                           TAKING
 *
 * Again: a store that lost what it had must get the open intents of those who live before anybody is let
 * through (docs/guarantees.md).
 *
 * Taking: the intents of former incarnations of this gateway, which are known to be dead: this process holds
 * the lock of their state directory, and they ran under this very kernel (incarnations.h). For all others
 * there is `pawl resolve --gateway ID --dead`; a store that was lost before we had seen what they have open
 * is told that they are in doubt. */
#ifndef PAWL_GATEWAY_TAKEOVER_H
#define PAWL_GATEWAY_TAKEOVER_H

#include "gateway/worker.h"

enum takeover_state {
    TAKEOVER_IDLE,
    TAKEOVER_AGAIN,
    TAKEOVER_LEAVING,
    TAKEOVER_TAKING,
    TAKEOVER_CLOSING,
    TAKEOVER_STATES
};

struct takeover *takeover_new(struct gateway_worker *own);
/* Every 100 ms. */
void takeover_tick(struct takeover *takeover);
void takeover_stop(struct takeover *takeover);
/* The store has ended its calls. */
void takeover_free(struct takeover *takeover);
bool takeover_allows(enum takeover_state from, enum takeover_state to);

#endif
