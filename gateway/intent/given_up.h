/* given_up.h - writes that are being sent, and that an operator gives up (resolve with force): the gateway
 * that sends them closes their connections, before anybody else resolves them (intent_resolve.lua).
 *
 * A worker asks the store while it has a write under way: when the member's look says that there is news, and
 * all the same every GIVEN_UP_LOOK_MS while one is older than that. */
#ifndef PAWL_GATEWAY_GIVEN_UP_H
#define PAWL_GATEWAY_GIVEN_UP_H

#include "shared/member/member.h"
#include "shared/token/keys.h"

struct gateway_worker;

/* What is given up is removed when its gateway has told that the connection is closed, or when that gateway
 * has been silent for 10 s. It may only have stood still: then it does not send what was admitted by an
 * answer that is older than GIVEN_UP_SEND_MS. What it had begun to send is not covered (docs/operations.md).
 */
enum { GIVEN_UP_LOOK_MS = 400, GIVEN_UP_AGAIN_MS = 50, GIVEN_UP_SEND_MS = 2000, GIVEN_UP_WAIT_MS = 3000 };

/* record_plan: given_up. */
void given_up_look(struct worker *first, int64_t number);
/* Every 100 ms. */
void given_up_tick(struct gateway_worker *own);

#endif
