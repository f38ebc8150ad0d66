/* request.h - what a client may ask of an acquire or a renew, read and bounded (docs/contract.md, "Limits").
 */
#ifndef PAWL_LEASE_REQUEST_H
#define PAWL_LEASE_REQUEST_H

#include "shared/http/http.h"
#include "shared/token/name.h"
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
void lease_request_read(struct bytes body, struct lease_request *request, struct request_fault *wrong);
/* The same with names, which must be there: POST /v1/leases. */
void lease_request_several_read(struct bytes body, struct lease_request *request, struct lease_names *names,
                                struct request_fault *wrong);
/* The body of a renew: {"ttl_ms":n}, or empty. */
void renew_request_read(struct bytes body, struct lease_request *request, struct request_fault *wrong);
/* The body of a new session: ttl_ms, holder, meta, each optional. */
void session_request_read(struct bytes body, struct lease_request *request, struct request_fault *wrong);
/* {"reason":text,"expect_token":n}, each optional. */
void force_request_read(struct bytes body, struct force_request *request, struct request_fault *wrong);

/* What was not said: ttl_ms 30,000, holder "anonymous", a fresh lease_id. */
void lease_request_defaults(struct lease_request *request);

/* Whether these bytes are the public id of a session: 16 to 64 characters of A-Z a-z 0-9 _ -. */
bool request_is_session_id(struct bytes text);

#endif
