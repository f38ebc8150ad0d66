/* gate.h - what every request at the gate has: a resource or a lease, a token, one call to the store.
 *
 * The order of the fence (docs/contract.md, "The check"): token-required, malformed-token, bad-signature,
 * wrong-store, wrong-lease are found here, without the store; wrong-mode, unissued-token, stale-token,
 * lease-expired by the script, in one step with the deed (scripts/lib/fence.lua). Every checked answer
 * carries Fencing-Status. */
#ifndef PAWL_GATEWAY_GATE_H
#define PAWL_GATEWAY_GATE_H

#include "shared/http/http.h"
#include "shared/member/daemon.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/token/keys.h"
#include "shared/token/name.h"

enum { GATE_KEYS_MAX = 3, GATE_ARGS_MAX = 15, GATE_FENCE_ARGS = 5, GATE_NUMBER_SIZE = 24 };

/* Which statuses a refusal has: its own, or those that the forward-auth protocols of proxies understand. */
enum gate_status { GATE_NATIVE, GATE_FORWARD_AUTH };

struct gate_call {
    struct record_call record;
    struct http_request *req;
    enum gate_status statuses;
    struct bytes lease, resource; /* resource is empty for the check endpoint */
    struct bytes store;           /* whose tokens are taken; empty: those of the gateway's own */
    bool by_mark; /* the check `mark`: what it lets through says nothing of what the store has granted */
    struct token_claim claim;
    const char *assumes; /* a refusal rests on this; NULL: on nothing */
    bool claimed;        /* claim says something, if only to be told in the refusal */
    char text[RESOURCE_KEY_MAX_BYTES + 1];
    char stripe[KEYS_STRIPE_SIZE], gone[KEYS_STRIPE_SIZE];
    char resource_key[KEYS_RESOURCE_SIZE];
    char number[3][GATE_NUMBER_SIZE];
    unsigned keys, args;
    struct bytes argv[GATE_KEYS_MAX + GATE_ARGS_MAX + RECORD_ARGS];
};

/* Reads the key of a resource, or the name of a lease, from raw path text. NULL, or what is wrong with
 * it: 400. */
const char *gate_init_resource(struct gate_call *gate, struct http_request *req, struct bytes raw);
const char *gate_init_lease(struct gate_call *gate, struct http_request *req, struct bytes raw);

/* The Fencing-Token: PROBLEM_NONE, TOKEN_REQUIRED, MALFORMED_TOKEN, BAD_SIGNATURE, WRONG_STORE or
 * WRONG_LEASE; a 503 while this gateway does not know its own store. */
enum problem gate_read_token(struct gate_call *gate);
bool gate_has_token(const struct http_request *req);

/* Building the call: keys first, then arguments. gate_add_fence() adds the five that every fenced script
 * begins with; the mode that the header states is among them, but what the hold may do the store decides. */
void gate_add_key(struct gate_call *gate, struct bytes key);
void gate_add(struct gate_call *gate, struct bytes argument);
void gate_add_fence(struct gate_call *gate);
void gate_add_remember(struct gate_call *gate);
enum step gate_run(struct gate_call *gate, const struct store_script *script, store_done_fn *done);
/* The keys of the parts of the store that this request may touch. */
struct bytes gate_stripe(struct gate_call *gate);
struct bytes gate_gone(struct gate_call *gate);
struct bytes gate_resource_key(struct gate_call *gate);

/* Ends the request: the fence refused before the store was asked. */
enum step gate_refuse(struct gate_call *gate, enum problem problem);
/* Ends the request: {"refused", seq, reason, last token, its epoch, mark, holder}. */
enum step gate_refuse_reply(struct gate_call *gate, const struct store_reply *reply);
/* Ends the request as a script on a stored resource refuses it: the same, or the token was good, but
 * {"key-reused" | "full", seq, mark} or {"mismatch", seq, ..., mark}. Any other word is 500. */
enum step gate_refuse_stored(struct gate_call *gate, const struct store_reply *reply);
/* Ends the request: the store gave no answer, or one that nobody expects. */
enum step gate_fail(struct gate_call *gate, enum problem problem);
/* The same with a detail of its own (NULL: the problem's). */
enum step gate_fail_detail(struct gate_call *gate, enum problem problem, const char *detail);
/* The same, and to send the request again as it is would not be safe: not retryable, whatever the problem
 * says. */
enum step gate_fail_final(struct gate_call *gate, enum problem problem, const char *detail);
/* The store's script let the token through: that it was granted must not be forgotten. */
void gate_let_through(const struct gate_call *gate);
/* Puts Fencing-Status on an answer that the fence let through; guarantee: "committed" | "admitted". */
void gate_accept(struct gate_call *gate, int64_t mark, const char *guarantee);

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
    GATE_COUNTS
};

enum step write_start(struct http_request *req);
enum step remove_start(struct http_request *req);
enum step read_start(struct http_request *req);
enum step check_start(struct http_request *req);
enum step mark_start(struct http_request *req);
enum step resources_start(struct http_request *req);
enum step intents_all_start(struct http_request *req);
enum step intents_start(struct http_request *req);
enum step doubt_start(struct http_request *req);
enum step resolve_start(struct http_request *req);
enum step dead_start(struct http_request *req);
enum step routes_start(struct http_request *req);
enum step adopt_start(struct http_request *req);

/* Their addresses: routes.c. */
extern const struct http_route gateway_routes[];
/* What is not an address of its own: it is forwarded, if a route of the table matches. */
extern const struct http_route gateway_rest;

#endif
