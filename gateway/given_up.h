/* given_up.h - writes that are being sent, and that an operator gives up (resolve with force): the gateway
 * that sends them closes their connections, before anybody else resolves them (intent_resolve.lua).
 *
 * A worker asks the store while it has a write under way that is older than GIVEN_UP_LOOK_MS. */
#ifndef PAWL_GATEWAY_GIVEN_UP_H
#define PAWL_GATEWAY_GIVEN_UP_H

#include "shared/record/daemon.h"
#include "shared/record/keys.h"

struct gateway_worker;

/* An intent is removed by force LOOKED_MS (intent_resolve.lua: 2,500) after it was given up at the earliest.
 * By then its gateway has looked; or it has had no answer to the admission yet, and does not send what was
 * admitted by an answer as late as GIVEN_UP_SEND_MS. Who stands still is not covered (docs/operations.md). */
enum { GIVEN_UP_LOOK_MS = 400, GIVEN_UP_SEND_MS = 2000, GIVEN_UP_WAIT_MS = 3000, GIVEN_UP_ARGS = 3 };

struct given_up {
    struct gateway_worker *own;
    struct record_call call;
    bool in_flight;
    uint64_t asked_ms;
    char key[KEYS_STRIPE_SIZE];
    struct bytes argv[GIVEN_UP_ARGS + RECORD_ARGS];
};

/* Every 100 ms. */
void given_up_tick(struct gateway_worker *own);

#endif
