/* call.h - what every operation on one session has: the id, the keys, the call.
 *
 * An operation's struct embeds a struct session_call; it lives in the request's scratch space. The id of a
 * session is public, its secret is not: it is told once, when the session is opened, and is never logged. */
#ifndef PAWL_LEASE_SESSION_CALL_H
#define PAWL_LEASE_SESSION_CALL_H

#include "lease/acquire_options.h"
#include "lease/operation.h"

enum { SESSION_KEYS = 3, SESSION_ARGS_MAX = 6, SESSION_TEXT_SIZE = 23 };

struct session_call {
    struct member_call record;
    struct http_request *req;
    unsigned stripe_number;
    struct bytes id;    /* in key */
    struct bytes store; /* its id; empty: not known, the call is refused */
    char stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE], key[ACQUIRE_OPTIONS_SESSION_KEY_SIZE];
    char remember[LEASE_NUMBER_SIZE], secret[DIGEST_SECRET + 1]; /* its digest */
    struct bytes argv[SESSION_KEYS + SESSION_ARGS_MAX + MEMBER_ARGS];
};

/* Fills the keys and the first two arguments that every script on a session has: the id, and --remember. id
 * is a valid one, copied. */
void session_call_fill(struct session_call *call, struct http_request *req, struct bytes id);
/* The same with the id from the path. NULL, or what is wrong with it: 400. */
const char *session_call_init(struct session_call *call, struct http_request *req);
/* Sets ARGV[i] of the script, 3 to SESSION_ARGS_MAX. */
void session_call_arg(struct session_call *call, unsigned i, struct bytes value);
/* Runs the script with so many arguments; done is called later, exactly once. Or refuses at once: 503. */
enum step session_call_run(struct session_call *call, const struct store_script *script, unsigned args,
                           store_done_fn *done);

/* Each ends the request.
 * 200 with {word, seq, ttl_ms, ...} as scripts/lib/session.lua tells it. */
enum step session_tell(struct session_call *call, const struct store_reply *reply);
/* {"lost", seq, how}: 410, {"forbidden", seq}: 403. */
enum step session_refuse(struct session_call *call, const struct store_reply *reply);

#endif
