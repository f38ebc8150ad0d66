/* member.h - a daemon as a member of its store: what it and its requests need of that.
 *
 * For the process there is one epoch (epoch.h), one state directory (state_file.h) and one member, which
 * joins, sends heartbeats, reports and leaves (membership.c: the drawing of its states); for each worker
 * a line to the store. Member and sweep run on the first worker.
 *
 * A request runs a script on a stripe with member_run(). It adds the five arguments that
 * shared/member/scripts/lib/stripe.lua wants, and refuses at once, without the store, while this process is
 * not admitted to the store's present epoch or the link is not to the Redis that was admitted.
 * member_problem() says what the end of the call means, and remembers the sequence number before anything is
 * answered. */
#ifndef PAWL_SHARED_MEMBER_H
#define PAWL_SHARED_MEMBER_H

#include "shared/member/epoch.h"
#include "shared/member/state_file.h"
#include "shared/service/service.h"

/* -- calls */

enum { MEMBER_ARGS = 3, MEMBER_NUMBER_SIZE = BYTES_NUMBER_SIZE };
enum { MEMBER_ADMITTED_SIZE = EPOCH_STREAM_SIZE + EPOCH_IDENTITY_SIZE + MEMBER_NUMBER_SIZE };

/* A worker's way to the store: its link, and whether that link may be used, as last asked of the epoch. */
struct member_line {
    struct epoch *store_epoch;
    struct store *store;
    /* the line's own */
    uint64_t link;
    unsigned changes, set; /* set: the number of the in-sync set that the link goes by */
    enum problem problem;
    int64_t epoch;
    char admitted
        [MEMBER_ADMITTED_SIZE]; /* which stream, store, and epoch: shared/member/scripts/lib/stripe.lua */
};

void member_line_init(struct member_line *line, struct epoch *store_epoch, struct store *store);
/* Whether the worker's link stands, and to which Redis: "" while it does not. To be called in every turn of a
 * heartbeat: notices when a link is a new one. */
const char *member_line_run(struct member_line *line);

/* PROBLEM_NONE when a call may be made on this line now; else what member_run() would say. */
enum problem member_line_problem(struct member_line *line);

/* Of a token that names this store: PROBLEM_NONE; WRONG_STORE; or, as long as this process does not know its
 * own store, why it does not: a process that cannot know says of no token that it is another's. */
enum problem member_store_problem(struct member_line *line, struct bytes store);
/* Of one that does not know its own store: why. */
enum problem member_unknown_problem(struct member_line *line);
/* The Fencing-Token of a request: PROBLEM_NONE, TOKEN_REQUIRED: there is none; MALFORMED_TOKEN,
 * BAD_SIGNATURE. claim is filled, if only for a refusal, with PROBLEM_NONE and BAD_SIGNATURE. */
enum problem member_token_read(const struct http_request *req, struct token_claim *claim);

/* "grant", or "hold-off": while the store's settings can lose a lock, or this process's own floor is lost, no
 * script may grant, nor hand on; or "full": nor let anybody in line, for the store is. An argument of every
 * script that might. */
struct bytes member_may_grant(const struct member_line *line);

struct member_call;
/* The end of a call. bad: what it means; PROBLEM_NONE when the script ran on a stripe that is ours: the
 * first word of the reply says the rest. STORE_UNAVAILABLE, STORE_FULL, STORE_NOT_OURS, STORE_NOT_ADMITTED:
 * it certainly did not happen. OUTCOME_UNKNOWN: it may have happened. */
typedef enum step member_done_fn(struct member_call *call, enum problem bad, const struct store_reply *reply);

struct member_call {
    struct store_call store;
    member_done_fn *done; /* set by the caller; NULL: store.done is, which asks member_problem() */
    struct epoch *store_epoch;
    unsigned stripe;
    int64_t epoch;
    char admitted[MEMBER_ADMITTED_SIZE], number[2][MEMBER_NUMBER_SIZE];
};

/* PROBLEM_NONE: the call is under way and ends as store_run() says; argv must have room for MEMBER_ARGS more
 * behind its arg_count. Otherwise nothing was or will be sent: PROBLEM_STORE_NOT_ADMITTED, _NOT_OURS,
 * _UNAVAILABLE: it certainly did not happen. */
enum problem member_run(struct member_line *line, struct member_call *call, unsigned stripe,
                        const struct store_script *script, unsigned keys, unsigned args, struct bytes *argv);

/* What a member_done_fn gets; remembers the sequence number. */
enum problem member_problem(struct member_call *call, enum store_outcome outcome,
                            const struct store_reply *reply);

/* -- messages (Redis Pub/Sub) that tell a client something: with an in-sync set they wait, as answers do,
 * until every node of it has what they tell of. */
struct member_held;
struct member_held_owner { /* the owner embeds it and finds itself with container_of */
    /* A message, in the order in which they were taken; while answers wait for nobody from inside of
     * member_held_take(). Both valid during the call only. */
    void (*kept)(struct member_held_owner *owner, struct bytes channel, struct bytes message);
    /* What waited is not handed on: it was too much, its copies were not known in the store's timeout, or the
     * lease on the epoch is over. */
    void (*missed)(struct member_held_owner *owner);
};
struct member_held *member_held_new(struct member_line *line, struct member_held_owner *owner);
/* The store has ended every call of the line. */
void member_held_free(struct member_held *held);
/* Both are copied, if they wait. */
void member_held_take(struct member_held *held, struct bytes channel, struct bytes message);
/* What waits is handed on to nobody. */
void member_held_forget(struct member_held *held);

/* What a script may answer: a row for each first word, the likeliest first; the last, ANSWER_OTHER or another
 * without a word, is for all else. */
typedef enum step script_answer_fn(struct member_call *call, const struct store_reply *reply);
struct script_answer {
    const char *word;
    script_answer_fn *ends; /* ends the request, or suspends it; NULL: it is refused with what follows */
    enum problem problem;
    const char *detail; /* NULL: the problem's own */
};
#define ANSWER_OTHER                                                                                         \
    {                                                                                                        \
        .word = NULL, .problem = PROBLEM_INTERNAL                                                            \
    }
/* Ends the request of the call, or suspends it, by the row of the reply's word. */
enum step member_answer(struct member_call *call, struct http_request *req,
                        const struct script_answer *answers, const struct store_reply *reply);

/* -- daemons: the hooks of their service_plan */

/* What the bars of an overview are made of (shared/member/scripts/lib/bars.lua): how many since the process
 * began, and how many wait now. */
struct member_bars {
    uint64_t grants, refused, waiting;
};

/* plan->own of both daemons. */
struct member_plan {
    enum member_role role;
    const struct store_script *admit;     /* NULL for one that never admits */
    const struct store_script *sweep;     /* runs on a stripe that due.lua names */
    const struct store_script *use_again; /* counts anew what identities use in a stripe */
    const char *use_kinds;                /* of these kinds: use.lua */
    const char *index;                    /* of the sweep, "due" | "gone": second key */
    unsigned swept; /* the plan's own metric row that counts what the sweep ended; ignored without one */
    bool counts_swept;
    bool sweep_may_grant;    /* the script hands on what it ends: it gets member_may_grant() */
    unsigned sweep_round_ms; /* in which all stripes are looked at; 0: 5,120 */
    /* Each on the first worker's thread; NULL: not asked for. When the next alarm of the store rings, in ms;
     * -1: none is set; 0: now, or it is not known, since a heartbeat took the place of the look. At each
     * look. */
    void (*alarm)(struct worker *first, int64_t in_ms);
    /* A number that changes when what a gateway sends is given up; as alarm. */
    void (*given_up)(struct worker *first, int64_t number);
    /* What this process has counted since it began, and who waits now; for each heartbeat. */
    void (*bars)(const struct service *service, struct member_bars *bars);
};

/* What worker->extra points to; the daemon embeds it, and finds itself with container_of. */
struct member_worker {
    struct member_line line;
    uint64_t apart_ms; /* since when its link is at another Redis than the first worker's; 0: it is not */
};

/* service_plan: open, close, worker_close, worker_tick, settled, leave, ready, memory; worker_open begins. */
int member_daemon_open(struct service *service);
void member_daemon_close(struct service *service);
/* own: zeroed, embedded in what worker->extra points to; it outlives the worker. */
void member_worker_begin(struct worker *worker, struct member_worker *own);
void member_worker_close(struct worker *worker);
void member_worker_tick(struct worker *worker);
bool member_daemon_settled(const struct service *service);
bool member_daemon_leave(struct service *service);
bool member_daemon_unfit(const struct service *service, char detail[READY_DETAIL_SIZE]);
const char *member_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);
void member_worker_stand(struct worker *worker, struct service_stand *stand);

/* How the store knows this process, once member_worker_begin() was called for its first worker; the texts
 * live as long as the service. */
struct member_self {
    const char *id, *incarnation;
    const char *who; /* for people: "pawl-lease pid 12 on host3" */
    int state_dir;   /* its descriptor; -1: it has none */
};
struct member_self member_self(const struct service *service);

/* The worker's line to the store; that of the worker that serves this request. */
struct member_line *member_line_of_worker(const struct worker *worker);
struct member_line *member_line_of(const struct http_request *req);

/* Handlers of both daemons. GET /v1/overview: how things stand, for people: the worst that is the matter, the
 * store, its members, and what has happened in the last ten minutes; once, or each second. */
enum step overview_start(struct http_request *req);
/* POST /v1/tokens/inspect: why is a write with this token refused, or would be? */
enum { INSPECT_BODY_MAX = 4096 };
enum step inspect_start(struct http_request *req);

#endif
