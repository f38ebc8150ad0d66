/* given_up.h - writes that are being sent, and that an operator gives up (resolve with force): the gateway
 * that sends them closes their connections, before anybody else resolves them (intent_resolve.lua).
 *
 * A worker asks the store while it has a write under way that is older than GIVEN_UP_LOOK_MS. */
#ifndef PAWL_GATEWAY_GIVEN_UP_H
#define PAWL_GATEWAY_GIVEN_UP_H

#include "shared/record/daemon.h"
#include "shared/record/keys.h"

struct gateway_worker;

/* After GIVEN_UP_WAIT_MS every gateway that can reach the store has looked. */
enum { GIVEN_UP_LOOK_MS = 400, GIVEN_UP_WAIT_MS = 1500, GIVEN_UP_ARGS = 3 };

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
