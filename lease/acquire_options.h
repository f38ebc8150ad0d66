/* acquire_options.h - the rarer parts of an acquire, packed as JSON for the scripts: ARGV[9] of acquire.lua
 * (scripts/lib/grant.lua).
 *
 * Read from the body (request.h) and from two headers, Session-Secret and Idempotency-Key. */
#ifndef PAWL_LEASE_ACQUIRE_OPTIONS_H
#define PAWL_LEASE_ACQUIRE_OPTIONS_H

#include "lease/request.h"
#include "shared/member/call.h"
#include "shared/service/service.h"
#include "shared/token/random.h"

enum {
    ACQUIRE_OPTIONS_DIGEST = 24,
    ACQUIRE_OPTIONS_SECRET_MIN = 22,
    ACQUIRE_OPTIONS_SECRET_MAX = 64,
    ACQUIRE_OPTIONS_SESSION_KEY_SIZE = 16 + REQUEST_SESSION_MAX,
    /* Enough for the JSON of every request, also with a backslash in front of each character of the key. */
    ACQUIRE_OPTIONS_SIZE = 720,
    /* ... and for that of the most names that an all-or-none may have. */
    ACQUIRE_OPTIONS_ALL_SIZE = ACQUIRE_OPTIONS_SIZE + 8 + REQUEST_NAMES_MAX * (NAME_MAX_BYTES + 24)
};

/* An Idempotency-Key, and which request it came with: BLAKE2b over method, path, query and body. */
struct acquire_options_key {
    struct bytes key; /* empty: none. In the request's header */
    char digest[ACQUIRE_OPTIONS_DIGEST + 1];
};

struct acquire_options {
    struct acquire_options_key key;
    char secret[DIGEST_SECRET + 1]; /* of the session, its digest; without one not read */
};

/* NULL, or what is wrong with the header: 400. */
const char *acquire_options_key_read(struct acquire_options_key *key, const struct http_request *req);
/* The Session-Secret header, 22 to 64 characters of A-Z a-z 0-9 _ -: its digest, as that of a lease_id
 * (operation.h), for a call that was filled before. NULL, or what is wrong with it: 400. */
const char *acquire_options_secret_read(const struct http_request *req, char digest[DIGEST_SECRET + 1]);
/* Both headers of an acquire. NULL, or what is wrong: 400; also an Idempotency-Key without a lease_id of the
 * client's or a place to be kept without one, a session without its secret, a secret without a session. */
const char *acquire_options_read(struct acquire_options *acquire_options, const struct lease_request *request,
                                 const struct http_request *req);

/* Writes the JSON and a NUL; "" when nothing of it is asked. inbox, wid: who waits where; wid 0: nobody.
 * names: of an all-or-none, NULL for one lease. size is at least ACQUIRE_OPTIONS_SIZE, with names
 * ACQUIRE_OPTIONS_ALL_SIZE. */
struct bytes acquire_options_write(const struct acquire_options *acquire_options,
                                   const struct lease_request *request, struct bytes inbox, uint64_t wid,
                                   const struct lease_names *names, char *buf, size_t size);

/* Key of the record of a session, "pawl:{SS}:s:ID", in the stripe of its id (keys_stripe_of()); and a NUL. */
struct bytes acquire_options_session_key(char buf[ACQUIRE_OPTIONS_SESSION_KEY_SIZE], struct bytes id);

/* "grant" or "hold-off" (record_may_grant()): handed to every script that may grant or hand on. */
struct bytes grant_may(const struct worker *worker);
/* The same for one that nobody waits for yet: "full" also while too much must be remembered. */
struct bytes grant_may_new(const struct worker *worker);

#endif
