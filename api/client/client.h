/* client.h - the inside of libpawl: one call to a service, with its repeats, and what its end is worth. */
#ifndef PAWL_CLIENT_CLIENT_H
#define PAWL_CLIENT_CLIENT_H

#include "api/client/http_client.h"
#include "api/client/pawl.h"
#include "shared/text/json.h"

enum {
    CLIENT_JSON_LEVELS = 16,
    CLIENT_TTL_MAX_MS = 86400000,
    CLIENT_LEASE_ID_FRESH = 22, /* characters of base64url: 132 random bits */
    CLIENT_BODY_SIZE = 8192
};

/* Never changes once it is open: so any thread may use it. */
struct pawl {
    char *lease_url, *gateway_url; /* without a slash at their end, with a joint */
    unsigned timeout_ms, attempts;
    struct http_client_access access; /* texts of its own */
    /* Sees each attempt before it leaves, on whatever thread; of pawl run --trace. NULL: nobody does. */
    void (*sending)(const struct http_client_request *request);
};

/* -- problems */

/* Whether a struct of a caller's has at least the members of the first version. */
bool client_size_fits(size_t size, size_t first);
#define ASK_FIRST (offsetof(struct pawl_ask, cancel_fd) + sizeof(const int *))
#define GRANT_FIRST (offsetof(struct pawl_grant, deadline_ms) + sizeof(int64_t))
/* Copies what both know of a struct of the caller's; *size stays. */
void client_give(void *to, const void *from, size_t known);
void client_take(void *to, const void *from, size_t known);
/* A fresh problem, for the inside. */
void problem_reset(struct pawl_problem *problem);
/* Fills it and returns outcome. detail is cut where it must. */
enum pawl_outcome problem_say(struct pawl_problem *problem, enum pawl_outcome outcome, const char *code,
                              const char *detail);
/* The same of what the caller got wrong, and of memory that is not there: PAWL_NOT_DONE. */
enum pawl_outcome problem_wrong(struct pawl_problem *problem, const char *detail);
enum pawl_outcome problem_no_memory(struct pawl_problem *problem);
/* The last step of every call of pawl.h: gives the problem to the caller (who may want none). */
enum pawl_outcome problem_give(struct pawl_problem *to, const struct pawl_problem *from,
                               enum pawl_outcome outcome);
enum pawl_outcome problem_give_wrong(struct pawl_problem *to, const char *detail);
/* Cut to size at the end of a character, without control characters. */
void client_text(char *to, size_t size, struct bytes text);
struct bytes client_member(const struct json *json, const char *name); /* "" when it is missing */
int64_t client_number(const struct json *json, const char *name);      /* 0 when it is missing */

/* -- one call */

enum call_repeat {
    CALL_ONCE,
    CALL_READ,  /* changes nothing: the answer that came is the answer, whatever happened before it */
    CALL_STATE, /* acquire, renew, release, which name the hold they mean: once an attempt has had no known
                 * end, only "done" and "that hold is over" are certain, for the attempt may yet arrive */
    CALL_KEYED  /* has an Idempotency-Key: once an attempt has had no known end, only "done" is certain */
};

struct client_call {
    const struct pawl *pawl;
    enum call_repeat repeat;
    struct http_client_request request; /* without url and timeout */
    char *url;
    unsigned timeout_ms, wait_ms, attempts;
    /* Before each attempt, NULL: nothing to do. false: not to be sent any more; it has filled the problem. */
    bool (*prepare)(struct client_call *call, struct pawl_problem *problem);
    bool unreported; /* an attempt has had no known end */
    /* Of the attempt that was answered last, and of the first: pawl_now_ms() before it left. */
    int64_t sent_ms, first_sent_ms;
    enum http_client_outcome sent; /* of the last attempt, by itself */
    struct http_client_answer answer;
    struct json *json; /* of a 2xx answer that has a body, or NULL */
};

/* repeat and the limits are those of pawl. call_done() wipes and frees, in any state. */
void call_init(struct client_call *call, const struct pawl *pawl, const char *method,
               enum call_repeat repeat);
/* base + path + name, percent-encoded but for what stands for itself in a path. kept: a further character.
 * Without memory the call is not sent. */
void call_url(struct client_call *call, const char *base, const char *path, const char *name, char kept);
void call_header(struct client_call *call, const char *name, const char *value); /* NULL: none */
enum pawl_outcome call_run(struct client_call *call, struct pawl_problem *problem);
/* Before another attempt after so many failures: longer each time, most_ms at most. false: cancelled
 * meanwhile. */
bool call_pause(const struct client_call *call, unsigned failures, int64_t most_ms);
void call_done(struct client_call *call);
/* Whether json, the body of the answer, is a problem as Pawl writes it: its kind, its type with its code, its
 * status. Anything else came from a proxy. */
bool problem_is_pawls(const struct http_client_answer *answer, const struct json *json);
/* What one answer says by itself. */
enum pawl_outcome judge_answer(enum http_client_outcome outcome, const struct http_client_answer *answer,
                               struct pawl_problem *problem);

/* -- the small JSON object that a request carries */

struct client_body {
    struct bytes_out out; /* is_full: not to be sent */
    char text[CLIENT_BODY_SIZE];
};

void body_begin(struct client_body *body);
void body_text(struct client_body *body, const char *name, const char *value); /* NULL: not at all */
void body_number(struct client_body *body, const char *name, uint64_t value);
/* value is JSON already. */
void body_raw(struct client_body *body, const char *name, const char *value);
struct bytes body_end(struct client_body *body);

/* -- holds */

/* At least low, at most high, at random. */
int64_t client_random_between(int64_t low, int64_t high);

/* What pawl acquire gives and gets beyond that. */
struct hold_told {
    bool fresh;                       /* the lease_id of ask is this call's own: nobody else asks with it */
    bool unreported;                  /* an attempt had no known end */
    struct http_client_answer answer; /* to the last attempt; the caller's to free */
};

/* The whole structs of this version; the last may be NULL. */
enum pawl_outcome hold_acquire(const struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                               struct pawl_grant *grant, struct hold_told *told,
                               struct pawl_problem *problem);

/* How far a renewal may go. */
struct hold_limits {
    unsigned attempts, timeout_ms;
    const int *stop_fds;
};

enum pawl_outcome hold_renew(const struct pawl *pawl, struct pawl_grant *grant, uint64_t ttl_ms,
                             const struct hold_limits *limits, struct pawl_problem *problem);
enum pawl_outcome hold_release(const struct pawl *pawl, struct pawl_grant *grant, unsigned attempts,
                               struct pawl_problem *problem);

#endif
