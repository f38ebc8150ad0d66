/* operation.h - what every operation on leases or sessions has: the name, the keys, the call, the grant.
 *
 * An operation's struct begins with a struct lease_call; it lives in the request's scratch space. What waits,
 * or runs without a request, may use one too (lease_call_fill). */
#ifndef PAWL_LEASE_OPERATION_H
#define PAWL_LEASE_OPERATION_H

#include "shared/http/http.h"
#include "shared/member/member.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/token/keys.h"
#include "shared/token/name.h"
#include "shared/token/random.h"
#include "shared/token/token.h"

enum { LEASE_KEYS = 2, SESSION_KEYS = 3, LEASE_ARGS_MAX = 10, LEASE_NUMBER_SIZE = 24 };

struct lease_call {
    struct member_call record;
    struct http_request *req;            /* NULL without one */
    const struct script_answer *answers; /* of lease_call_run() */
    unsigned stripe_number, keys;        /* keys: how many, LEASE_KEYS or SESSION_KEYS */
    bool has_access;                     /* lease_has_access() */
    struct bytes name;                   /* of the lease, or the id of the session; in name_text */
    struct bytes store;                  /* its id, which keys digests of secrets; empty: unknown, 503 */
    char stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE], name_text[NAME_MAX_BYTES];
    char remember[LEASE_NUMBER_SIZE], secret[DIGEST_SECRET + 1]; /* secret: a digest */
    struct bytes argv[LEASE_KEYS + LEASE_ARGS_MAX + MEMBER_ARGS];
};

/* Fills the keys and the first two arguments that every script on a lease has: the name, and --remember. name
 * is a valid one, copied. */
void lease_call_fill(struct lease_call *call, const struct worker *worker, struct bytes name);
/* The same with the name from the path. NULL, or what is wrong with it: 400. */
const char *lease_call_init(struct lease_call *call, struct http_request *req);
/* Sets argument number i as the head of the script counts, ARGV[i]; 3 to LEASE_ARGS_MAX. */
void lease_call_arg(struct lease_call *call, unsigned i, struct bytes value);
/* ARGV[3] of every script that is about one: the digest of a lease_id, or of a session's secret
 * (digest_secret()). The store, its files, its log and its backups know none of them; and since whatever
 * comes from outside is hashed, a digest found there opens nothing. */
void lease_call_secret(struct lease_call *call, struct bytes secret);
/* Adds who asks (NULL: nobody) behind so many arguments, if callers have identities here; how many they are
 * then (scripts/lib/own_hold.lua). */
unsigned lease_call_asker(struct lease_call *call, const char *identity, unsigned args);
/* Runs the script with so many arguments. Its end refuses the request (member_problem), or is the row of the
 * table. Or refuses at once: 503. */
enum step lease_call_run(struct lease_call *call, const struct store_script *script, unsigned args,
                         const struct script_answer *answers);
/* The same without a request, with a continuation, which is called later, exactly once. PROBLEM_NONE: it is
 * under way; else certainly nothing was sent. */
enum problem lease_call_begin(struct lease_call *call, const struct worker *worker,
                              const struct store_script *script, unsigned args, member_done_fn *done);
/* The same of a request's, which is refused at once if nothing was sent. */
enum step lease_call_send(struct lease_call *call, const struct store_script *script, unsigned args,
                          member_done_fn *done);
/* Starts an operation that only reads: the name from the path, ARGV[3] grant_may(), no more arguments. */
enum step lease_read(struct http_request *req, const struct store_script *script,
                     const struct script_answer *answers);
/* What a continuation does when member_problem() is PROBLEM_NONE. */
enum step lease_answer(struct lease_call *call, const struct store_reply *reply,
                       const struct script_answer *answers);

/* The Lease-Id header. NULL, or what is wrong: 400. */
const char *lease_id_read(const struct http_request *req, struct bytes *lease_id);
/* The query of a release: whether it is ?all=true, every hold, not one of them. NULL, or what is wrong: 400.
 */
const char *release_all_read(const struct http_request *req, bool *is_all);
/* The Fencing-Token that the request may have: PROBLEM_NONE, and claim is untouched if there is none; else
 * it is verified, and says nothing of store and lease yet. */
enum problem lease_claim_read(const struct http_request *req, struct token_claim *claim);
/* The optional Fencing-Token of a renew or release: then they act on that very hold only. hold is empty
 * when there is none. */
enum problem lease_hold_read(const struct lease_call *call, struct bytes *hold);

/* "grant" or "hold-off" (member_may_grant()): handed to every script that may grant or hand on. */
struct bytes grant_may(const struct worker *worker);
/* The same for an acquire: "full" also while too much must be remembered. */
struct bytes grant_may_new(const struct worker *worker);

/* Whether callers have identities here, which scripts get and answers have: --access. */
bool lease_has_access(const struct worker *worker);
/* The member identity, beside a holder: a text, or null; without --access nothing. */
void lease_identity_write(struct json_out *json, const struct worker *worker, struct bytes identity);

/* What a holder gets of its hold. */
struct grant {
    struct bytes lease, store; /* store: empty: that of this member */
    struct token token;
    enum token_mode mode;
    struct bytes hold, lease_id, holder, identity, meta; /* meta: JSON text, or empty for {} */
    int64_t holds, ttl_ms, expires_in_ms, waited_ms;
};

/* From {word, seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta, mode, identity or
 * nothing}, whose bytes it keeps; waited_ms is 0. {"handed", ...} has more in front of the identity. */
struct grant grant_read(const struct store_reply *reply, struct bytes lease, struct bytes lease_id);
/* Whether it can be signed: a record that is not one of ours must not reach the signature, which asserts. */
bool grant_is_sound(const struct grant *grant);
/* A sound grant as a JSON object into http_json(req); the value of its header, which lies in header. */
struct bytes grant_write(struct http_request *req, const struct grant *grant, char header[TOKEN_HEADER_SIZE]);

/* Who holds it, as members of a problem, from elements at and behind: token, holder or "", expires in ms. */
void lease_held_write(struct json_out *json, const struct http_request *req, struct bytes name,
                      const struct store_reply *reply, size_t at);
/* What anybody may know of a lease, never a lease_id or a signature (look.c): one JSON object, from elements
 * at and behind, as multi.tell() has them (scripts/lib/multi_hold.lua). */
void look_write(struct http_request *req, struct bytes name, const struct store_reply *reply, size_t at);
/* The member line, as line.told() has it (scripts/lib/line.lua). */
void look_line_write(struct json_out *json, const struct worker *worker, const struct store_reply *line,
                     int64_t now_ms);

/* Each ends the request. */
/* Signs and answers: status is 201 or 200; one that is not sound is 500. */
enum step grant_answer(struct http_request *req, const struct grant *grant, unsigned status);
/* PROBLEM_LEASE_LOST or PROBLEM_HOLD_OVER, with how the hold ended, as a script says it. */
enum step lease_ended_answer(struct http_request *req, enum problem problem, struct bytes name,
                             struct bytes ended);
/* {"lost", seq, how} of renew.lua and release.lua: 410. */
script_answer_fn lease_lost;
/* A problem with the name of the lease. */
enum step lease_refuse(struct http_request *req, enum problem problem, struct bytes name);
/* {"keys-full"}: PROBLEM_OUT_OF_RANGE. */
#define LEASE_KEYS_FULL                                                                                      \
    "This hold has seen 1000 Idempotency-Keys, and no more are kept. Nothing was changed. Go "               \
    "on without a key, or end it with ?all=true and acquire anew."

/* Of who waited: nobody reads it, but a client that has closed only its own side. */
#define LEASE_WAIT_CLOSED                                                                                    \
    "Nothing was granted: you closed your side of the connection while you waited, and that is leaving. "    \
    "Keep it open for as long as you wait."

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
    COUNT_WAIT_TIME,      /* histogram, of those granted */
    COUNT_SESSION_OPENED,
    COUNT_SESSION_RENEWED,
    COUNT_SESSION_ENDED,
    COUNT_LISTENING,  /* gauge: event_hub.c */
    COUNT_REMEMBERED, /* gauge: remember.c */
    COUNT_HELD,       /* gauge: remember.c */
    LEASE_COUNTS
};

/* Their addresses: routes.c. */
extern const struct http_route lease_routes[];
enum step acquire_start(struct http_request *req);
enum step acquire_several_start(struct http_request *req);
enum step renew_start(struct http_request *req);
enum step release_start(struct http_request *req);
enum step look_start(struct http_request *req);
enum step list_start(struct http_request *req);
enum step force_release_start(struct http_request *req);
enum step history_start(struct http_request *req); /* events/ */
enum step events_start(struct http_request *req);
enum step session_open_start(struct http_request *req);
enum step session_renew_start(struct http_request *req);
enum step session_end_start(struct http_request *req);
enum step session_look_start(struct http_request *req);
enum step session_list_start(struct http_request *req);
enum step session_force_end_start(struct http_request *req);

#endif
