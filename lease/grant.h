/* grant.h - what a holder is told of its hold: the JSON of a grant, and the signed Fencing-Token header. */
#ifndef PAWL_LEASE_GRANT_H
#define PAWL_LEASE_GRANT_H

#include "lease/operation.h"

struct grant {
    struct token token;
    struct bytes hold, lease_id, holder, meta; /* meta: JSON text, or empty for {} */
    int64_t holds, ttl_ms, expires_in_ms;
};

/* Fills all but lease_id from {word, seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta}. */
void grant_read(struct grant *grant, const struct store_reply *reply);
/* Signs and answers: status is 201 or 200. Ends the request. */
enum step grant_answer(struct lease_call *call, const struct grant *grant, unsigned status);

#endif
