/* ask.h - what a client may ask of an acquire or a renew, read and bounded. */
#ifndef PAWL_LEASE_ASK_H
#define PAWL_LEASE_ASK_H

#include "shared/http.h"
#include "shared/record/name.h"

enum {
    ASK_META_MAX = 2048,
    ASK_HOLDER_MAX = 128,
    ASK_LEASE_ID_MAX = 64,
    ASK_LEVELS = 8,
    ASK_BODY_MAX = 16384
};

struct lease_ask {
    int64_t ttl_ms;                            /* 0: not said */
    size_t lease_id_len, holder_len, meta_len; /* 0: not said */
    char lease_id[ASK_LEASE_ID_MAX + 1], holder[ASK_HOLDER_MAX + 1], meta[ASK_META_MAX];
};

/* What is wrong with a request: which problem, and a sentence that names the member and the limit. */
struct ask_wrong {
    enum problem problem; /* PROBLEM_NONE: nothing */
    char detail[256];
};

/* The body of an acquire; an empty one asks for nothing in particular. */
void lease_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong);
/* The body of a renew: {"ttl_ms":n}, or empty. */
void renew_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong);

#endif
