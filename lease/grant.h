/* grant.h - what a holder is told of its hold: the JSON of a grant, and the signed Fencing-Token header. */
#ifndef PAWL_LEASE_GRANT_H
#define PAWL_LEASE_GRANT_H

#include "shared/http/http.h"
#include "shared/store/store.h"
#include "shared/token/token.h"

struct grant {
    struct bytes lease;
    struct token token;
    enum token_mode mode;
    struct bytes hold, lease_id, holder, meta; /* meta: JSON text, or empty for {} */
    int64_t holds, ttl_ms, expires_in_ms, waited_ms;
};

/* Fills all but lease, lease_id and waited_ms (0) from {word, seq, token, epoch, hold, holder, ttl_ms,
 * expires in ms, holds, meta, mode}; the bytes are the reply's. */
void grant_read(struct grant *grant, const struct store_reply *reply);
/* Whether it can be signed: a record that is not one of ours must not reach the signature, which asserts. */
bool grant_is_sound(const struct grant *grant);
/* One grant as a JSON object in a list (or alone), into http_json(req); the value of its header, which lies
 * in header. It must be sound. */
struct bytes grant_write(struct http_request *req, const struct grant *grant, char header[TOKEN_HEADER_SIZE]);
/* Signs and answers: status is 201 or 200; one that is not sound is 500. Ends the request. */
enum step grant_answer(struct http_request *req, const struct grant *grant, unsigned status);

#endif
