/* precondition.h - what a write or a read says about the version that it expects, and which request it is. */
#ifndef PAWL_GATEWAY_CONDITION_H
#define PAWL_GATEWAY_CONDITION_H

#include "gateway/gate.h"
#include "shared/http/http.h"
#include "shared/token/random.h"

struct condition {
    struct bytes if_match, if_none_match; /* as they came; empty when absent */
    struct bytes idempotency_key;         /* empty when absent */
    char digest_text[DIGEST_TEXT + 1];
    struct bytes digest; /* of the request, when it has an Idempotency-Key; else empty */
};

/* Reads and checks the headers. NULL, or what is wrong with one: 400. */
const char *condition_read(struct condition *condition, const struct http_request *req);
/* Fills the digest of method, type, encoding and body. */
void condition_digest(struct condition *condition, struct bytes method, struct bytes type,
                      struct bytes encoding, struct bytes body);

/* Adds the four keys and the first ten arguments that every script has which changes a resource
 * (scripts/lib/admit.lua): the fence, the key of the resource, and this. */
void condition_add(const struct condition *condition, struct gate_call *gate);

/* Whether this is "*" or a list of entity tags (RFC 9110 section 8.8.3), at least one. */
bool condition_is_tag_list(struct bytes value);
/* Whether such a list (not "*") has this strong tag in it, by strong comparison. */
bool condition_lists(struct bytes list, struct bytes tag);

#endif
