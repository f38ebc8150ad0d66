/* recovery.h - what this gateway owes the store at the beginning of each of its lives there: one for each
 * process, on its first worker.
 *
 *   IDLE     --admitted to an epoch that we have not looked at--> AGAIN
 *   AGAIN    --all that is open here is recorded again-->        TAKING   intent_again.lua
 *   AGAIN    --a call failed, or another epoch began-->          IDLE     and from the beginning
 *   TAKING   --all stripes looked at-->                          LEAVING  intent_takeover.lua,
 *                                                                         unreported_dead.lua
 *   TAKING   --the same, in an epoch that was in doubt of us-->  CLOSING
 *   TAKING   --a call failed, or another epoch began-->          IDLE     and from the beginning
 *   CLOSING  --what had ended is closed once more-->             LEAVING  reconcile.h
 *   CLOSING  --a call failed, or another epoch began-->          IDLE     and from the beginning
 *   LEAVING  --the store knows that that was all, or failed-->   IDLE     unreported_leave.lua
 *   IDLE     --3 s later, once more-->                           TAKING
 *
 * Again: a store that lost what it had must get the open intents of those who live before anybody is let
 * through (docs/guarantees.md).
 *
 * Taking: the intents of former incarnations of this gateway, which are known to be dead: this process holds
 * the lock of their state directory, and they ran under this very kernel (incarnations.h). For all others
 * there is `pawl resolve --gateway ID --dead`; a store that was lost before we had seen what they have open
 * is told that they are in doubt. */
#ifndef PAWL_GATEWAY_RECOVERY_H
#define PAWL_GATEWAY_RECOVERY_H

#include "gateway/worker.h"

enum recovery_state {
    RECOVERY_IDLE,
    RECOVERY_AGAIN,
    RECOVERY_LEAVING,
    RECOVERY_TAKING,
    RECOVERY_CLOSING,
    RECOVERY_STATES
};

struct recovery *recovery_new(struct gateway_worker *own);
/* Every 100 ms. */
void recovery_tick(struct recovery *recovery);
void recovery_stop(struct recovery *recovery);
/* The store has ended its calls. */
void recovery_free(struct recovery *recovery);
bool recovery_allows(enum recovery_state from, enum recovery_state to);

#endif
