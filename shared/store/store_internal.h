/* store_internal.h - what the files of the Redis store share. Only they and their tests include it.
 *
 *   redis.c       a call: taken, put on the wire with others, answered, ended
 *   link.c        the one connection: a state machine; and what others may know of it
 *   handshake.c   the link's own commands: the greeting, the library, the look at the settings
 *   keep.c        answers that wait until every node of the in-sync set has them
 *   probe.c       another node, asked of itself
 *   wire.c        commands as bytes, on their way to the kernel
 *   reply.c       replies, the lines of INFO, and what an error says
 *   sentinel.c    which node is the primary that sentinels watch
 *   dial.c        where Redis is, how a connection is made, and when again
 *   subscriber.c  the subscriber's connection: a state machine; its channels, messages in */
#ifndef PAWL_SHARED_STORE_INTERNAL_H
#define PAWL_SHARED_STORE_INTERNAL_H

#include "shared/store/dial.h"

enum { SAFETY_LOOKS = 7, SAFETY_TEXT_MAX = 448 };

/* What the looks so far have shown of the append-only file. A first rewrite, before which nothing is durable,
 * looks in INFO like any other one; only what came before distinguishes them. */
enum safety_aof { AOF_NOT_SEEN, AOF_SEEN_OFF, AOF_SEEN_WHOLE };

struct store_safety {
    bool checked, unsafe, unread;
    bool passing, passing_found; /* nothing but a first rewrite: by the last look, by this one */
    enum safety_aof aof;
    unsigned left;                 /* replies still to come in this look */
    char found[SAFETY_TEXT_MAX];   /* by the look that is under way; empty: nothing */
    char verdict[SAFETY_TEXT_MAX]; /* of the last whole look */
    char advice[SAFETY_TEXT_MAX];  /* a setting that loses nothing, but is better another one; "": none */
};

/* -- the link */
enum link_state {
    LINK_IDLE,
    LINK_CONNECTING,
    LINK_GREETING,
    LINK_READY,
    LINK_LEAVING,
    LINK_WAITING,
    LINK_STATES
};

STAILQ_HEAD(call_list, store_call);

/* One of the link's own commands: a call without a script. */
enum handshake_kind {
    HANDSHAKE_AUTH,
    HANDSHAKE_RUN_ID,
    HANDSHAKE_ROLE,
    HANDSHAKE_SELECT,
    HANDSHAKE_LIBRARY,
    HANDSHAKE_LOAD,
    HANDSHAKE_LOOK
};
struct handshake_call {
    struct store_call call;
    enum handshake_kind kind;
    unsigned index; /* of the look's command */
};
enum { HANDSHAKE_CALLS = HANDSHAKE_LOOK + SAFETY_LOOKS };

struct store_link {
    enum link_state state;
    struct loop_timer timer; /* WAITING: the pause; CONNECTING, GREETING: its deadline; READY: the calls' */
    bool timer_armed;
    unsigned attempts;  /* in a row, without a link that lasted */
    unsigned unflushed; /* commands since the last write */
    uint64_t number;    /* of times that it became READY */
    uint64_t ready_us;
    char run_id[STORE_RUN_ID_LEN + 1];       /* as this greeting has read it */
    char stream[STORE_RUN_ID_LEN + 1];       /* its master_replid, in the same way */
    char auth_refused[16];                   /* the code of the error; "": taken, or not said */
    struct call_list flight;                 /* in the order of their replies */
    struct call_list not_yet, reads_not_yet; /* what waits until less that is heavy is in flight */
    unsigned heavy, heavy_may;               /* how much that is in flight; may be at once */
    struct store_call *gathered; /* the last of them, which are not on the wire yet, from this one on */
    unsigned gathered_count;
    size_t gathered_bytes;
    uint64_t alone_ms; /* calls whose deadline is before that are not batched */
    struct handshake_call handshake[HANDSHAKE_CALLS]; /* by kind; the look's are the last */
    unsigned greeting_left;
    bool by_name, is_loading; /* whether Redis has the library: else calls are sent whole */
    bool replaces;            /* what it has under the library's name may be another text */
    char not_loaded[160];     /* why it has not */
    const char *check;        /* for store_not_ready() while the state is not READY */
    char detail[544];
    unsigned char walked[LINK_STATES]; /* bit t of element f: went from f to t; for the test of the drawing */
};

enum { HEAVY_LEAST = 16 }; /* of one connection at once */

enum { KEEP_CALLS = 3, KEEP_CYCLES = 2 }; /* of a cycle: PUBLISH, WAIT, INFO */
/* Answers that wait until every node of the in-sync set has acknowledged them. */
struct store_keep {
    struct store *store;
    struct store *witness; /* a connection of its own, which may block in WAIT */
    struct loop_timer pause, due;
    uint64_t due_ms;                  /* when that fires; UINT64_MAX: not */
    struct call_list answered, named; /* in Redis' order; of the named the offset is known */
    bool unasked;                     /* calls have been put on the wire since the last ROLE */
    bool closing;
    /* -- the cycles; a second one is asked for behind that which is under way */
    struct keep_cycle {
        struct keep_call {
            struct store_call call;
            struct keep_cycle *cycle;
        } calls[KEEP_CALLS];
        struct store_keep *keep;
        bool under_way, whole;
        uint64_t began_us, waits_for; /* waits_for: the number of the call that was the first */
    } cycles[KEEP_CYCLES];
    uint64_t looked_us;    /* when the last whole one began */
    uint64_t seen_ms;      /* when the last whole one ended; 0: none since a node was added */
    struct bytes words[9]; /* of its commands */
    char wait_for[BYTES_NUMBER_SIZE];
    /* -- the set is the first count of them, its primary the very first; others that copy it are behind */
    struct store_node nodes[STORE_NODES_SEEN];
    unsigned count, joins, copies, seen; /* joins: the last of the set, which may not take over yet */
    int64_t syncs, syncs_seen;           /* connects of replicas: as many as must be, as are */
    uint64_t unsure_ms;                  /* since when they differ; 0: they do not */
    const struct store_refusal *refusal; /* of a command of the last cycle, if it was not whole */
    char not_kept[STORE_NODE_MAX + 80];
};

struct store {
    struct loop *loop; /* dial's, too */
    struct loop_hook turn_end;
    struct loop_timer look_timer;
    unsigned look_period_ms;
    struct call_list ended; /* whose done is called by the turn-end hook */
    struct store_counts counts;
    const struct store_owner *owner;
    unsigned timeout_ms;
    bool allow_unsafe, sends_whole, in_turn_end;
    bool is_probe; /* of any node, also a replica */
    const struct store_library *library;
    struct dial dial;
    bool has_own_finder;
    struct store_safety safety;
    struct store_link link;
    struct store_keep *keep; /* NULL: answers wait for nobody */
};

/* redis.c */
struct store_call *call_list_take(struct call_list *list);
void store_end_later(struct store *store, struct store_call *call, enum store_outcome outcome);
/* Calls done of those that have ended without a reply. */
void store_deliver(struct store *store);
/* Counts it and calls done. */
void store_tell(struct store *store, struct store_call *call, enum store_outcome outcome,
                const struct redisReply *reply);
void store_turn_end(struct loop_hook *hook);
/* Puts the call on the wire, or has it wait for others until the end of the turn; state and deadline are set.
 * Only in GREETING and READY. */
void link_send(struct store *store, struct store_call *call);
/* Takes what has come; calls done. */
void link_read(struct store *store);
void link_io(struct loop_watch *watch, int events);

/* link.c */
bool link_allows(enum link_state from, enum link_state to);
/* The socket can be written to, or has failed. */
void link_connected(struct store *store);
/* Every command of the greeting is answered: calls are taken from now on. */
void link_ready(struct store *store);
/* Has the link's timer fire: of the state that it is in. */
void link_arm(struct store_link *link, uint64_t delay_ms);
/* READY no more: a script was answered with this code. link_read() ends the link, in this turn. */
void link_leave(struct store *store, struct bytes code);
void link_end(struct store *store);
/* Another connection to the same Redis, for commands only. */
struct store *store_open_beside(const struct store *store);
/* A connection to this node, "host:port", be it a replica, for commands only. */
struct store *store_open_at(const struct store *store, const char *node);
/* Ends the link and every call on it, and says why; of the printf family, after the address and ": ". */
void link_drop(struct store *store, const char *check, const char *why, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends a link to what is not the primary any more. */
void link_follow(struct store *store);
/* How often the settings are read; 10 s unless a test is in a hurry. */
void store_look_every(struct store *store, unsigned period_ms);

/* keep.c */
/* Whether the call's answer is to wait. */
bool keep_waits(const struct store *store, const struct store_call *call);
/* Whether it is known that no answer can be kept; then it is the call's refusal. */
bool keep_refuses(struct store *store, struct store_call *call);
/* ROLE behind the calls of this flush, if any of them waits. */
void keep_ask(struct store *store);
/* The reply to it. */
void keep_name(struct store *store, struct store_call *role, const struct redisReply *reply);
/* Takes what is in the reply, which is nil then; the call ends later. */
void keep_hold(struct store *store, struct store_call *call, struct redisReply *reply);
/* The link has ended: what it answered may be of a stream that is no more. */
void keep_lose(struct store *store);
void keep_close(struct store *store);

/* handshake.c */
void handshake_new(struct store *store);
void handshake_greet(struct store *store);
/* FUNCTION LOAD, unless it is under way. */
void handshake_load(struct store *store);
void handshake_look(struct store *store);
void handshake_forget(struct store *store);
void handshake_put(struct store *store, const struct handshake_call *handshake);
void handshake_answer(struct store *store, struct handshake_call *handshake, const struct redisReply *reply);
/* reply.c */
const struct store_reply *reply_of(const struct redisReply *reply);
/* What is certain after this error reply to FCALL or EVAL. */
enum store_outcome reply_error_outcome(struct bytes error);
/* NULL: it is none that is known. */
const struct store_refusal *reply_refusal(struct bytes code);
/* Whether it came out of a script that ran. */
bool reply_error_is_from_inside(struct bytes error);
/* Whether Redis does not have the function: it certainly did not run. */
bool reply_error_is_not_found(struct bytes error);
/* Whether nothing ran because Redis takes no write now. What does not write may run all the same. */
bool reply_error_is_of_writes(struct bytes error);
/* The code that an error begins with, "OOM" for example. */
struct bytes reply_error_code(struct bytes error);
/* Whether a Redis that answers a script with this code is no master, or has no data yet. */
bool reply_code_is_of_no_master(struct bytes code);
/* sentinel.c: where the primary is that sentinels watch. */
/* Begins to ask, on this loop; url is of sentinel://, and password that of the nodes (NULL: none). */
struct store_finder *finder_open(struct loop *loop, const struct store_url *url,
                                 const struct store_options *options, const char *password);
/* After all that asks it. */
void finder_close(struct store_finder *finder);
/* -- from any thread */
/* Of a connection without a finder all is as it is. */
/* Host and port of the primary, into its url; false: why it is not known. */
bool finder_leads(struct dial *dial, char why[DIAL_WHY_MAX]);
/* Whether another node has been found to be primary since. */
bool finder_has_moved(const struct dial *dial);
/* The connection has ended. */
void finder_doubt(const struct dial *dial);
/* A pause before the next attempt is not long when the primary may be found any moment. */
uint64_t finder_pause_ms(const struct dial *dial, uint64_t pause_ms);

#endif
