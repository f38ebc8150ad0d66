/* request.h - what a client may ask of an acquire or a renew, read and bounded (docs/contract.md, "Limits").
 */
#ifndef PAWL_LEASE_ASK_H
#define PAWL_LEASE_ASK_H

#include "shared/http/http.h"
#include "shared/token/name.h"
#include "shared/token/token.h"

enum {
    ASK_META_MAX = 2048,
    ASK_HOLDER_MAX = 128,
    ASK_LEASE_ID_MAX = 64,
    ASK_SESSION_MIN = 16,
    ASK_SESSION_MAX = 64,
    ASK_REASON_MAX = 256,
    ASK_NAMES_MAX = 100,
    ASK_LEVELS = 8,
    ASK_BODY_MAX = 16384
};

struct lease_ask {
    int64_t ttl_ms;                                /* 0: not said */
    int64_t wait_ms, lock_delay_ms, keep_place_ms; /* 0: none */
    int64_t permits; /* 2 or more with TOKEN_PERMITS, else 0: permits:1 is exclusive */
    enum token_mode mode;
    bool reentrant, ttl_stated;
    /* 0: not said */
    unsigned short lease_id_len, holder_len, meta_len, session_len;
    char lease_id[ASK_LEASE_ID_MAX + 1], holder[ASK_HOLDER_MAX + 1], session[ASK_SESSION_MAX + 1];
    char meta[ASK_META_MAX];
};

/* The names of an all-or-none, in the order in which they were given, each once. */
struct ask_names {
    unsigned count; /* 1 to ASK_NAMES_MAX */
    struct bytes name[ASK_NAMES_MAX];
    char text[ASK_NAMES_MAX * NAME_MAX_BYTES]; /* where they lie */
};

/* The body of a force-release. */
struct force_ask {
    int64_t expect_token;      /* 0: not said */
    unsigned short reason_len; /* 0: not said */
    char reason[ASK_REASON_MAX + 1];
};

/* What is wrong with a request: which problem, and a sentence that names the member and the limit. */
struct ask_wrong {
    enum problem problem; /* PROBLEM_NONE: nothing */
    char detail[256];
};

/* Each fills a struct that was zeroed; an empty body says nothing.
 * The body of an acquire. */
void lease_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong);
/* The same with names, which must be there: POST /v1/leases. */
void lease_ask_all_read(struct bytes body, struct lease_ask *ask, struct ask_names *names,
                        struct ask_wrong *wrong);
/* The body of a renew: {"ttl_ms":n}, or empty. */
void renew_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong);
/* The body of a new session: ttl_ms, holder, meta, each optional. */
void session_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong);
/* {"reason":text,"expect_token":n}, each optional. */
void force_ask_read(struct bytes body, struct force_ask *ask, struct ask_wrong *wrong);

/* What was not said: ttl_ms 30,000, holder "anonymous", a fresh lease_id. */
void lease_ask_defaults(struct lease_ask *ask);

/* Whether these bytes are the public id of a session: 16 to 64 characters of A-Z a-z 0-9 _ -. */
bool ask_is_session_id(struct bytes text);

#endif
