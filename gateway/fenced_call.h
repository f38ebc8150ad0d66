/* fenced_call.h - what every request at the gate has: a resource or a lease, a token, a call to the store.
 *
 * The order of the fence (docs/contract.md, "The check"): token-required, malformed-token, bad-signature,
 * wrong-store, wrong-lease are found here, without the store; wrong-mode, unissued-token, stale-token,
 * lease-expired, not-yours by the script, in one step with the deed (scripts/lib/fence.lua). Every checked
 * answer carries Fencing-Status. */
#ifndef PAWL_GATEWAY_GATE_H
#define PAWL_GATEWAY_GATE_H

#include "shared/http/http.h"
#include "shared/member/member.h"
#include "shared/member/walk.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/token/keys.h"
#include "shared/token/name.h"

enum {
    FENCED_KEYS_MAX = 3,
    FENCED_ARGS_MAX = 17,
    FENCED_FENCE_ARGS = 5,
    FENCED_NUMBER_SIZE = 24,
    FENCED_MODE_SIZE = 112,
    FENCED_CHECK_SIZE = sizeof("mark ") + TOKEN_STORE_CHARS
};

/* Which statuses a refusal has: its own, or those that the forward-auth protocols of proxies understand. */
enum fenced_status { FENCED_NATIVE, FENCED_FORWARD_AUTH };

enum { FENCED_HOLDER_MAX = 128, FENCED_ASKED_MAX = 128 };

/* What a script refused, kept while that is noted in the lease's history. */
struct fenced_refusal {
    enum problem problem;
    int64_t token, epoch, mark;
    unsigned holder_len;
    char holder[FENCED_HOLDER_MAX], instance[HTTP_ID_SIZE];
};

struct fenced_call;
typedef enum step fenced_then_fn(struct fenced_call *fenced, const struct store_reply *reply);

/* What a script may reply: its first word, and what follows. */
struct fenced_answer {
    const char *word;     /* NULL, in the last row: any other */
    fenced_then_fn *then; /* NULL: 500 */
};

struct fenced_call {
    struct member_call record;
    struct http_request *req;
    enum fenced_status statuses;
    struct bytes lease, resource; /* resource is empty for the check endpoint */
    struct bytes store;           /* whose tokens are taken; empty: those of the gateway's own */
    /* Of a caller that may write with its own holds only: its identity, which must have begun the hold.
     * Empty: not asked. Never with by_mark, which knows no hold. */
    struct bytes own;
    bool by_mark; /* the check `mark`: what it lets through says nothing of what the store has granted */
    char check[FENCED_CHECK_SIZE]; /* of what is no route's: as scripts have it; "": live */
    struct token_claim claim;
    const char *assumes; /* a refusal rests on this; NULL: on nothing */
    bool claimed;        /* claim says something, if only for the refusal */
    const struct fenced_answer *answers;
    enum step (*fail)(struct fenced_call *fenced, enum problem problem); /* NULL: fenced_fail() */
    enum step (*over)(struct fenced_call *fenced,
                      enum step step); /* after fenced_refuse_reply(); NULL: nothing */
    char text[RESOURCE_KEY_MAX_BYTES + 1];
    unsigned on; /* the stripe of the call */
    char stripe[KEYS_STRIPE_SIZE], gone[KEYS_STRIPE_SIZE];
    union {
        char resource_key[KEYS_RESOURCE_SIZE];
        struct fenced_refusal refusal; /* once that call has ended */
    };
    char number[3][FENCED_NUMBER_SIZE], mode[FENCED_MODE_SIZE];
    unsigned keys, args;
    struct bytes argv[FENCED_KEYS_MAX + FENCED_ARGS_MAX + MEMBER_ARGS];
};

/* Reads the key of a resource, or the name of a lease, from raw path text. NULL, or what is wrong with
 * it: 400. */
const char *fenced_init_resource(struct fenced_call *fenced, struct http_request *req, struct bytes raw);
const char *fenced_init_lease(struct fenced_call *fenced, struct http_request *req, struct bytes raw);

/* The Fencing-Token: PROBLEM_NONE, TOKEN_REQUIRED, MALFORMED_TOKEN, BAD_SIGNATURE, WRONG_STORE or
 * WRONG_LEASE; a 503 while this gateway does not know its own store. */
enum problem fenced_read_token(struct fenced_call *fenced);
bool fenced_has_token(const struct http_request *req);

/* Of a write: sets own, if its caller may write with its own holds only. */
void fenced_judge_write(struct fenced_call *fenced);
/* Of what is no route's: the same; false: by mark there is no hold to be one's own. */
bool fenced_may_write(struct fenced_call *fenced);

/* Building a call: on which stripe, further keys, then arguments. fenced_add_fence() adds the five that every
 * fenced script begins with; the mode that the header states is among them, but what the hold may do the
 * store decides. */
void fenced_begin(struct fenced_call *fenced, unsigned stripe);
void fenced_begin_lease(struct fenced_call *fenced);
void fenced_add_key(struct fenced_call *fenced, struct bytes key);
void fenced_add(struct fenced_call *fenced, struct bytes argument);
void fenced_add_fence(struct fenced_call *fenced);
/* Runs the script. Its reply goes to the row of its first word, or to the last row, which has no word; a
 * failure to fenced->fail. */
enum step fenced_run(struct fenced_call *fenced, const struct store_script *script,
                     const struct fenced_answer *answers);
/* A walk over the stripes (shared/member/walk.h), with the keys and arguments that were added. */
enum step fenced_walk(struct fenced_call *fenced, struct walk *walk, const struct walk_plan *plan);

/* Ends the request: the fence refused before the store was asked. */
enum step fenced_refuse(struct fenced_call *fenced, enum problem problem);
/* Ends the request: {"refused", seq, reason, last token, its epoch, mark, holder, "note" or nothing}; with
 * "note" once that stands in the lease's history, or cannot be noted. */
fenced_then_fn fenced_refuse_reply;
/* Ends the request as a script on a stored resource refuses it: the same, or the token was good, but
 * {"key-reused" | "full" | "quota", seq, mark} or {"mismatch", seq, ..., mark}. Any other word is 500. */
fenced_then_fn fenced_refuse_stored;
/* Ends the request: the store gave no answer, or an unexpected one. */
enum step fenced_fail(struct fenced_call *fenced, enum problem problem);
/* The same with a detail of its own (NULL: the problem's). */
enum step fenced_fail_detail(struct fenced_call *fenced, enum problem problem, const char *detail);
/* The same, and to send the request again as it is would not be safe: not retryable, whatever the problem
 * says. */
enum step fenced_fail_final(struct fenced_call *fenced, enum problem problem, const char *detail);
/* The store's script let the token through: the process remembers that it was granted. */
void fenced_let_through(const struct fenced_call *fenced);
/* Puts Fencing-Status on an answer that the fence let through; guarantee: "committed" | "admitted". */
void fenced_accept(struct fenced_call *fenced, int64_t mark, const char *guarantee);
/* The same of what is no route's, which is "committed", but for the check by mark. */
void fenced_accept_stored(struct fenced_call *fenced, int64_t mark);

/* The plan's metric rows. */
enum {
    COUNT_WRITTEN,
    COUNT_REMOVED,
    COUNT_READ,
    COUNT_READ_FENCED,
    COUNT_CHECKED,
    COUNT_REPEATED,
    COUNT_FORWARDED,
    COUNT_FORWARDED_READ,
    COUNT_FORWARDING,
    COUNT_INTENTS,
    COUNT_IN_DOUBT,
    FENCED_COUNTS
};

/* Their addresses: routes.c. */
extern const struct http_route gateway_routes[];
/* What is not an address of its own: it is forwarded, if a route of the table matches. */
extern const struct http_route gateway_rest;

#endif
