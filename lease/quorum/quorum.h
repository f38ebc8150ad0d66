/* quorum.h - leases on 2f+1 Redis, nodes, that know nothing of each other (docs/decisions/0046, 0051).
 *
 * A quorum belongs to one loop. It knows of each node what it is and asks several of them at once (nodes.c),
 * and makes operations on a lease of that (operations.c); requests.c is their HTTP, init_store.c makes a
 * store.
 *
 *   acquire  lock at all, commit to those that answered, with the highest number and one: a majority votes
 *   renew, release   one round to all; a majority has done it
 *   look     one round to all, and the highest number goes back to a majority before anybody hears of it
 *
 * A node that has restarted, was wiped or is behind is in quarantine: it is asked nothing until a majority
 * of well ones has given it the highest number, and the longest ttl is over. */
#ifndef PAWL_LEASE_QUORUM_H
#define PAWL_LEASE_QUORUM_H

#include "shared/access/access.h"
#include "shared/service/service.h"
#include "shared/store/store.h"
#include "shared/text/json_write.h"
#include "shared/text/problem.h"
#include "shared/token/name.h"
#include "shared/token/random.h"
#include "shared/token/token.h"

enum {
    QUORUM_NODES_MAX = STORE_LIST_MAX,
    QUORUM_ARGS_MAX = 7, /* of a script, behind those of node.lua */
    QUORUM_EPOCH = 1,    /* of all tokens: numbers never begin again */
};
#define QUORUM_NODE_KEY "pawl:{node}"

/* -- nodes */
enum quorum_node_state {
    NODE_GONE, /* no link */
    NODE_NEW,  /* what it is, is being asked */
    NODE_WELL,
    NODE_ILL,   /* in quarantine */
    NODE_OTHER, /* it is none of this store, or another one of it */
};

struct quorum_options {
    struct loop *loop;
    struct store *const *stores; /* of the library node_library, open until quorum_stop(); as many as nodes */
    unsigned count;              /* odd, at most QUORUM_NODES_MAX */
    unsigned timeout_ms;         /* of an operation */
    bool heals;                  /* it ends quarantines, too: one of a process does */
    const char *access;          /* "judged", "open" or "": quarantine.lua */
    int64_t floor;         /* by an operator's word no number is higher, and nobody else is asked; 0: none */
    const struct log *log; /* NULL: nothing is said */
};

struct quorum {
    struct quorum_options options;
    char store[TOKEN_STORE_CHARS + 1]; /* the id that all nodes share; "": a majority has not said it yet */
    int64_t max_ttl;                   /* 0: not known yet */
    /* Its own. */
    struct loop_timer look;
    bool is_stopped;
    struct quorum_node *nodes;
};

struct quorum *quorum_new(const struct quorum_options *options);
/* No callback comes any more. Then the stores are closed, then it is freed. */
void quorum_stop(struct quorum *quorum);
void quorum_free(struct quorum *quorum);

unsigned quorum_majority(const struct quorum *quorum);
/* Sets of nodes have a bit for each. Who may be asked; how many a set has. */
unsigned quorum_well(const struct quorum *quorum);
static inline unsigned quorum_bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}
/* It has a number so high, which it will not lose unless it is in quarantine. */
void node_seen(struct quorum *quorum, unsigned node, int64_t number);
int64_t quorum_node_highest(const struct quorum *quorum, unsigned node); /* that was seen so */
int64_t quorum_highest(const struct quorum *quorum);                     /* of all of them, and the floor */
enum quorum_node_state quorum_node_state(const struct quorum *quorum, unsigned node);
/* How long a node will be in quarantine at the least. */
int64_t quorum_node_ill_for_ms(const struct quorum *quorum, unsigned node);
/* PROBLEM_NONE while a majority is well; else STORE_UNAVAILABLE or STORE_NOT_OURS, with a sentence. */
enum problem quorum_problem(const struct quorum *quorum, char detail[READY_DETAIL_SIZE]);
/* What Redis says at so many nodes that are well that no majority takes writes; NULL: one does. */
const struct store_refusal *quorum_refusal(const struct quorum *quorum);
/* Whether it is known of all what they are, or that they have no store. */
bool quorum_is_known(const struct quorum *quorum);

/* -- rounds: a script at several nodes at once */

/* As it ended: which nodes count; have answered, and do not; of whom nobody knows. */
struct quorum_round {
    unsigned counted, refused, unknown;
    uint64_t sent_us; /* epoch_clock_us() */
};

struct quorum_asker;
/* A node has answered, in time: whether it counts. */
typedef bool quorum_heard_fn(struct quorum_asker *asker, unsigned node, const struct store_reply *reply);
/* Enough count, or can no longer; the round is not to be looked at after that. */
typedef void quorum_ended_fn(struct quorum_asker *asker, const struct quorum_round *round);

/* Who asks embeds it, and keeps it until `ended` is called, once. */
struct quorum_asker {
    quorum_heard_fn *heard; /* NULL: whatever it answers counts */
    quorum_ended_fn *ended;
};

struct quorum_question {
    const struct store_script *script; /* NULL: a command, args */
    struct bytes lease;                /* empty: of the node itself */
    unsigned asked;                    /* which nodes. Of those that are well, a majority is to count */
    bool is_of_itself; /* all that are asked, well or not, are to count, and what they say of that is heard */
    unsigned arg_count;
    uint64_t until_ms;        /* 0: as long as an operation may take */
    const struct bytes *args; /* copied; at most QUORUM_ARGS_MAX */
};

/* asker NULL: nobody waits for what comes of it. Whether anybody was asked; if not, nothing is called. */
bool quorum_ask(struct quorum *quorum, const struct quorum_question *question, struct quorum_asker *asker);

/* -- operations */

/* As operations.c draws them. */
enum acquire_state { ACQUIRE_LOCKING, ACQUIRE_COMMITTING, ACQUIRE_PAUSING, ACQUIRE_STATES };

/* What nodes say: of a lease with its number, of these two with the hold; and the rest. */
enum quorum_word {
    WORD_LOCKED,
    WORD_FREE,
    WORD_HELD,
    WORD_RENEWED,
    WORD_VOTED,
    WORD_RELEASED,
    WORD_RAISED,
    WORD_LOST,
    WORD_NOT_YOURS,
    WORD_TOO_LONG,
    QUORUM_WORDS
};

/* What a node has said of the lease, and of a hold (token 0: none, or a lock): lease_told() in node.lua. */
struct quorum_heard {
    char attempt[TOKEN_HOLD_MAX + 1], who[ACCESS_IDENTITY_MAX + 1];
    int64_t number, token, left_ms, ttl_ms, held_for_ms;
    struct json_out about;
    bool is_own; /* of this lease_id */
};

/* One operation; zeroed, and the first part filled, by the caller, who keeps it until done is called. */
struct quorum_call {
    struct quorum *quorum;
    struct bytes name;                /* of the lease; the bytes of these four are the caller's */
    struct bytes lease_id;            /* a digest */
    struct bytes who;                 /* the identity of who asks, or empty */
    struct bytes about;               /* of an acquire: what is kept beside the hold */
    int64_t ttl_ms;                   /* of a renewal 0: as it was */
    char attempt[TOKEN_HOLD_MIN + 1]; /* of a renewal or release: only of that hold, or "" */
    /* Later, once. NONE: it is so, as below. LEASE_HELD, LEASE_LOST, NOT_YOURS, OUT_OF_RANGE (the ttl),
     * TOKEN_EXHAUSTED, OUTCOME_UNKNOWN; STORE_UNAVAILABLE, STORE_NOT_OURS: it certainly did not happen. */
    void (*done)(struct quorum_call *call, enum problem problem);

    /* The hold that is, or that is in the way. */
    char hold[TOKEN_HOLD_MAX + 1]; /* "": none, or it is not known which */
    int64_t token, hold_ttl_ms, expires_in_ms;
    int64_t number, held_for_ms; /* of a look: of the lease, hold or not */
    struct bytes found;          /* what is kept beside it; of a grant nothing */
    bool is_replay;              /* this lease_id had it before */

    /* Its own. */
    struct quorum_asker asker;
    struct loop_timer pause;
    enum acquire_state state;
    uint64_t until_ms;
    struct quorum_heard heard[QUORUM_NODES_MAX];
    unsigned counting, said[QUORUM_WORDS]; /* which words count in this round; who has said which */
    char left[TOKEN_HOLD_MAX + 1]; /* by an earlier attempt of this lease_id, as the last round saw it */
    unsigned char walked[ACQUIRE_STATES]; /* for the test of the drawing: bit t of element f */
};

/* Each: PROBLEM_NONE, and done is called later; else it certainly did not happen, and done is not called.
 * quorum_call_free() in the end, in any case. */
enum problem quorum_acquire(struct quorum_call *call);
enum problem quorum_renew(struct quorum_call *call);
enum problem quorum_release(struct quorum_call *call);
enum problem quorum_look(struct quorum_call *call);
void quorum_call_free(struct quorum_call *call);
/* From least on, so many different ones: who asks again does it at a moment of its own. */
uint64_t quorum_random_ms(unsigned least, unsigned span);

/* -- the service: requests.c; of a struct service_plan */
void quorum_worker_open(struct worker *worker);
void quorum_worker_close(struct worker *worker);
void quorum_worker_free(struct worker *worker);
bool quorum_settled(const struct service *service);
const char *quorum_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);
void quorum_stand(struct worker *worker, struct service_stand *stand);
void quorum_tell(struct worker *worker, struct json_out *json);
/* init_store.c: pawl-lease --init-store: makes a store of empty nodes; with --floor ends the quarantine of
 * most. The exit status: 0 done; 1 nothing to do; 69 not reached, or nobody knows; 78 one has a store. */
int quorum_init_store(struct service *service);

#endif
