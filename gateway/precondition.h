/* precondition.h - what a write or a read says about the version that it expects, and which request it is. */
#ifndef PAWL_GATEWAY_PRECONDITION_H
#define PAWL_GATEWAY_PRECONDITION_H

#include "gateway/fenced_call.h"
#include "shared/http/http.h"
#include "shared/token/random.h"

struct precondition {
    struct bytes if_match, if_none_match; /* as they came; empty when absent */
    struct bytes idempotency_key;         /* empty when absent */
    char digest_text[DIGEST_TEXT + 1];
    struct bytes digest; /* of the request, when it has an Idempotency-Key; else empty */
};

/* Reads and checks the headers. NULL, or what is wrong with one: 400. _read_tags: if_match and if_none_match
 * alone, whose Idempotency-Key is somebody else's. */
const char *precondition_read(struct precondition *precondition, const struct http_request *req);
const char *precondition_read_tags(struct precondition *precondition, const struct http_request *req);
/* Fills the digest of method, type, encoding, body and who asks (NULL: nobody). */
void precondition_digest(struct precondition *precondition, const char *identity, struct bytes method,
                         struct bytes type, struct bytes encoding, struct bytes body);

/* Adds the four keys and the first ten arguments that every script has which changes a resource
 * (scripts/lib/version.lua): the fence, the key of the resource, and this. */
void precondition_add(const struct precondition *precondition, struct fenced_call *fenced);

/* Whether this is one strong entity tag (RFC 9110 section 8.8.3). */
bool precondition_is_strong_tag(struct bytes value);
/* Whether if_match and if_none_match let through a write of the version with this strong tag; empty: nothing
 * is there. */
bool precondition_holds(const struct precondition *precondition, struct bytes tag);

#endif
