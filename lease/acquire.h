/* acquire.h - what an acquire of one lease (acquire.c) and one of several (acquire_several.c) have in common.
 */
#ifndef PAWL_LEASE_ACQUIRE_H
#define PAWL_LEASE_ACQUIRE_H

#include "lease/grant.h"
#include "lease/operation.h"
#include "lease/request.h"
#include "shared/http/http.h"
#include "shared/loop/loop.h"
#include "shared/store/store.h"

/* wait_new() has given NULL: nobody can wait here, for the reason for which nobody could be granted anything,
 * or because this service is finding its way to the store. */
enum step acquire_no_inbox(struct http_request *req);

/* Arguments 3 to 7 of either script: lease_id, hold, holder, ttl, meta. ttl gets its text; all outlive the
 * call. */
void acquire_args(struct lease_call *lease, const struct lease_request *request, struct bytes lease_id,
                  const char hold[TOKEN_HOLD_MIN + 1], char ttl[LEASE_NUMBER_SIZE]);

/* Of a sound grant that a script has made just now: whether its counter fell back under our hands. With one
 * worker the answers come in the order of the grants; with more the next pulse finds it. What was granted so
 * is not told to anybody, and ends when the store is gated. */
bool acquire_token_came_again(const struct http_request *req, const struct grant *grant);
/* One that others may have made, some time ago: from now on it is known. */
void acquire_token_known(const struct http_request *req, const struct grant *grant);

/* "ceiling": nothing was granted, and a higher floor is recorded within milliseconds where the disk is well.
 * again will ring, to ask once more; false: it was waited for long enough. until_ms: the caller's, 0 at
 * first. */
bool acquire_is_patient(const struct http_request *req, uint64_t *until_ms, struct loop_timer *again,
                        void (*rings)(struct loop_timer *timer));

/* Each ends the request. */
enum step acquire_mismatch_answer(struct http_request *req, struct bytes name, int64_t permits);
/* The words of acquire.lua that say all there is to say; any other is 500. */
enum step acquire_refused_answer(struct http_request *req, const struct store_reply *reply);

#endif
