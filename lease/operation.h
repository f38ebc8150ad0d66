/* operation.h - what every operation on one lease has: the name, the keys, the call.
 *
 * An operation's struct begins with its own request and embeds a struct lease_call; it lives in the
 * request's scratch space. What waits, or runs without a request, may use it too (lease_call_fill). */
#ifndef PAWL_LEASE_OPERATION_H
#define PAWL_LEASE_OPERATION_H

#include "shared/http/http.h"
#include "shared/member/member.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/token/keys.h"
#include "shared/token/name.h"
#include "shared/token/random.h"

enum { LEASE_KEYS = 2, LEASE_ARGS_MAX = 9, LEASE_NUMBER_SIZE = 24 };

struct lease_call {
    struct member_call record;
    struct http_request *req; /* NULL without one */
    unsigned stripe_number;
    struct bytes name;  /* in name_text */
    struct bytes store; /* its id, which digests of secrets are keyed with; empty: not known, it is refused */
    char stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE], name_text[NAME_MAX_BYTES];
    char remember[LEASE_NUMBER_SIZE], lease_id[DIGEST_SECRET + 1];
    struct bytes argv[LEASE_KEYS + LEASE_ARGS_MAX + MEMBER_ARGS];
};

/* Fills the keys and the first two arguments that every script on a lease has: the name, and --remember. name
 * is a valid one, copied. */
void lease_call_fill(struct lease_call *call, const struct worker *worker, struct bytes name);
/* The same with the name from the path. NULL, or what is wrong with it: 400. */
const char *lease_call_init(struct lease_call *call, struct http_request *req);
/* Sets argument number i as the head of the script counts, ARGV[i]; 3 to LEASE_ARGS_MAX. */
void lease_call_arg(struct lease_call *call, unsigned i, struct bytes value);
/* ARGV[3] of every script that is about one: its digest (digest_secret()). The store, its files, its log and
 * its backups know no lease_id and no secret of a session; and since whatever comes from outside is hashed, a
 * digest found there opens nothing. */
void lease_call_id(struct lease_call *call, struct bytes lease_id);
/* Runs the script with so many arguments; done is called later, exactly once. Or refuses at once: 503. */
enum step lease_call_run(struct lease_call *call, const struct store_script *script, unsigned args,
                         store_done_fn *done);

/* The Lease-Id header. NULL, or what is wrong: 400. */
const char *lease_id_read(const struct http_request *req, struct bytes *lease_id);
/* The optional Fencing-Token of a renew or release: then they act on that very hold only. hold is empty
 * when there is none. */
enum problem lease_hold_read(const struct lease_call *call, struct bytes *hold);

/* Who holds it, as members of a problem, from elements at and behind: token, holder or "", expires in ms. */
void lease_held_write(struct json_out *json, struct bytes name, const struct store_reply *reply, size_t at);

/* Each ends the request.
 * PROBLEM_LEASE_HELD or PROBLEM_WAIT_TIMEOUT, with who holds it. */
enum step lease_held_answer(struct http_request *req, enum problem problem, struct bytes name,
                            const struct store_reply *reply, size_t at);
/* PROBLEM_LEASE_LOST or PROBLEM_HOLD_OVER, with how the hold ended, as a script says it. */
enum step lease_ended_answer(struct http_request *req, enum problem problem, struct bytes name,
                             struct bytes ended);
/* A problem with the name of the lease. */
enum step lease_refuse(struct http_request *req, enum problem problem, struct bytes name);
/* {"keys-full"}: the hold has seen as many Idempotency-Keys as are kept. */
enum step lease_keys_full_answer(struct http_request *req);
/* A grant could not be made: {"exhausted" | "ceiling" | "held-off"}. */
enum step lease_held_off_answer(struct http_request *req, const struct store_reply *reply);

/* What anybody may know of a lease, never a lease_id or a signature (look.c): one JSON object, from elements
 * at and behind: state, token, epoch, mode or "", how many wait, {{token, holder, expires in ms, held for ms,
 * holds, meta or ""}, ...}. */
void look_write(struct json_out *json, struct bytes name, const struct store_reply *reply, size_t at);

/* The plan's metric rows, in the order of lease_metrics (main.c). */
enum {
    COUNT_GRANTED, /* at once or after waiting */
    COUNT_REPLAYED,
    COUNT_ENTERED,
    COUNT_RENEWED,
    COUNT_LEFT,
    COUNT_RELEASED,
    COUNT_FORCED,
    COUNT_EXPIRED,
    COUNT_FORGOTTEN, /* before --remember was over */
    COUNT_WAIT_QUEUED,
    COUNT_WAIT_GRANTED,
    COUNT_WAIT_TIMED_OUT,
    COUNT_WAIT_GONE, /* the client has left */
    COUNT_WAIT_SUPERSEDED,
    COUNT_WAIT_SENT_AWAY, /* the inbox has closed */
    COUNT_WAITING,        /* gauge: queue/inbox.c */
    COUNT_SESSION_OPENED,
    COUNT_SESSION_RENEWED,
    COUNT_SESSION_ENDED,
    COUNT_LISTENING,  /* gauge: event_hub.c */
    COUNT_REMEMBERED, /* gauge: remember.c */
    LEASE_COUNTS
};

enum step acquire_start(struct http_request *req);
enum step renew_start(struct http_request *req);
enum step release_start(struct http_request *req);
enum step look_start(struct http_request *req);
enum step list_start(struct http_request *req);
enum step force_release_start(struct http_request *req);
/* Several leases at once: acquire_several.c */
enum step all_start(struct http_request *req);
/* history.c, stream.c */
enum step history_start(struct http_request *req);
enum step events_start(struct http_request *req);
/* session_*.c */
enum step session_open_start(struct http_request *req);
enum step session_renew_start(struct http_request *req);
enum step session_end_start(struct http_request *req);
enum step session_look_start(struct http_request *req);

/* Their addresses: routes.c. */
extern const struct http_route lease_routes[];

#endif
