/* request.h - what a client may ask of an acquire or a renew, read and bounded (docs/contract.md, "Limits").
 */
#ifndef PAWL_LEASE_REQUEST_H
#define PAWL_LEASE_REQUEST_H

#include "shared/http/http.h"
#include "shared/text/json_write.h"
#include "shared/token/name.h"
#include "shared/token/random.h"
#include "shared/token/token.h"

enum {
    REQUEST_META_MAX = 2048,
    REQUEST_HOLDER_MAX = 128,
    REQUEST_LEASE_ID_MAX = 64,
    REQUEST_SESSION_MIN = 16,
    REQUEST_SESSION_MAX = 64,
    REQUEST_REASON_MAX = 256,
    REQUEST_NAMES_MAX = 100,
    REQUEST_LEVELS = 8,
    REQUEST_BODY_MAX = 16384
};

struct lease_request {
    int64_t ttl_ms;                                /* 0: not said */
    int64_t wait_ms, lock_delay_ms, keep_place_ms; /* 0: none */
    int64_t permits; /* 2 or more with TOKEN_PERMITS, else 0: permits:1 is exclusive */
    enum token_mode mode;
    bool reentrant, ttl_stated;
    /* 0: not said */
    unsigned short lease_id_len, holder_len, meta_len, session_len;
    char lease_id[REQUEST_LEASE_ID_MAX + 1], holder[REQUEST_HOLDER_MAX + 1], session[REQUEST_SESSION_MAX + 1];
    char meta[REQUEST_META_MAX];
};

/* The names of an all-or-none, in the order in which they were given, each once. */
struct lease_names {
    unsigned count; /* 1 to REQUEST_NAMES_MAX */
    struct bytes name[REQUEST_NAMES_MAX];
    char text[REQUEST_NAMES_MAX * NAME_MAX_BYTES]; /* where they lie */
};

/* The body of a force-release. */
struct force_request {
    int64_t expect_token;      /* 0: not said */
    unsigned short reason_len; /* 0: not said */
    char reason[REQUEST_REASON_MAX + 1];
};

/* What is wrong with a request: which problem, and a sentence that names the member and the limit. */
struct request_fault {
    enum problem problem; /* PROBLEM_NONE: nothing */
    char detail[256];
};

/* Each fills a struct that was zeroed; an empty body says nothing.
 * The body of an acquire. */
void lease_request_read(struct bytes body, struct lease_request *request, struct request_fault *fault);
/* The same with names, which must be there: POST /v1/leases. */
void lease_request_several_read(struct bytes body, struct lease_request *request, struct lease_names *names,
                                struct request_fault *fault);
/* The body of a renew: {"ttl_ms":n}, or empty. */
void renew_request_read(struct bytes body, int64_t *ttl_ms, struct request_fault *fault);
/* The body of a new session: ttl_ms, holder, meta, each optional. */
void session_request_read(struct bytes body, struct lease_request *request, struct request_fault *fault);
/* {"reason":text,"expect_token":n}, each optional. */
void force_request_read(struct bytes body, struct force_request *request, struct request_fault *fault);
/* {"reason":text}, optional: the body of an operator's end of a session. */
void reason_request_read(struct bytes body, struct force_request *request, struct request_fault *fault);

/* What was not said: ttl_ms 30,000, holder who asks, or "anonymous" (NULL: nobody), a fresh lease_id. */
void lease_request_defaults(struct lease_request *request, const char *identity);

/* Whether these bytes are the public id of a session: 16 to 64 characters of A-Z a-z 0-9 _ -. */
bool request_is_session_id(struct bytes text);

/* -- acquire_options.c: the rarer parts of an acquire, from the body and from two headers, Session-Secret and
 * Idempotency-Key, packed as JSON for the scripts: ARGV[9] of acquire.lua (scripts/lib/grant.lua). */
enum {
    ACQUIRE_OPTIONS_DIGEST = 24,
    ACQUIRE_OPTIONS_SECRET_MIN = 22,
    ACQUIRE_OPTIONS_SECRET_MAX = 64,
    ACQUIRE_OPTIONS_SESSION_KEY_SIZE = 16 + REQUEST_SESSION_MAX
};

/* An Idempotency-Key, and which request it came with: BLAKE2b over method, path, query, body and who asks. */
struct acquire_options_key {
    struct bytes key; /* empty: none. In the request's header */
    char digest[ACQUIRE_OPTIONS_DIGEST + 1];
};

struct acquire_options {
    struct acquire_options_key key;
    char secret[DIGEST_SECRET + 1]; /* of the session, its digest; without one not read */
    const char *over; /* the quota of who asks that is used up, "held" or "waiting"; NULL: none */
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

/* Whether there is anything to write of one lease, for which nobody waits. */
bool acquire_options_are_asked(const struct acquire_options *options, const struct lease_request *request);
/* Writes the JSON anew. inbox, wid: who waits where; wid 0: nobody. names: of several leases, in the last
 * member; NULL for one. */
struct bytes acquire_options_write(const struct acquire_options *options, const struct lease_request *request,
                                   struct bytes inbox, uint64_t wid, const struct lease_names *names,
                                   struct json_out *out);

/* Key of the record of a session, "pawl:{SS}:s:ID", in the stripe of its id (keys_stripe_of()); and a NUL. */
struct bytes acquire_options_session_key(char buf[ACQUIRE_OPTIONS_SESSION_KEY_SIZE], struct bytes id);

#endif
