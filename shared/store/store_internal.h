/* store_internal.h - what the files of the Redis store share. Only they and their tests include it.
 *
 *   redis.c       the calls: taken, ended, counted
 *   link.c        the one connection: a state machine; commands out, replies in
 *   handshake.c   the link's own commands: the greeting, the library, the look at the settings
 *   wire.c        commands as bytes, on their way to the kernel
 *   reply.c       replies, the lines of INFO, and what an error says
 *   dial.c        where Redis is, how a connection is made, and when again
 *   subscriber.c  the subscriber's connection: a state machine; its channels, messages in */
#ifndef PAWL_SHARED_STORE_INTERNAL_H
#define PAWL_SHARED_STORE_INTERNAL_H

#include "shared/store/store.h"

struct redisContext;
struct redisReply;

/* -- where it is. Texts end with NUL; an empty one is not given. */
enum { STORE_HOST_MAX = 255, STORE_PATH_MAX = 107, STORE_USER_MAX = 255, STORE_PASSWORD_MAX = 1023 };

struct store_url {
    char host[STORE_HOST_MAX + 1];
    char path[STORE_PATH_MAX + 1]; /* a unix socket's; then there is no host */
    char user[STORE_USER_MAX + 1];
    char password[STORE_PASSWORD_MAX + 1];
    unsigned port, db;
};

/* NULL, or what is wrong with it (a static sentence): then url is unusable. */
const char *store_url_read(const char *text, struct store_url *url);

/* -- bytes on their way to the kernel. Positions count the bytes of one link, from 0. */
struct store_wire {
    char *at;
    size_t from, to, size; /* what waits lies in [from, to) */
    uint64_t taken;        /* by the kernel */
};

enum wire_end { WIRE_EMPTY, WIRE_BLOCKED, WIRE_BROKEN };

void wire_put_command(struct store_wire *wire, const struct bytes *argv, unsigned argc);
void wire_put_fcall(struct store_wire *wire, const struct store_call *call);
void wire_put_eval(struct store_wire *wire, const struct store_call *call);
/* So many calls, linked by next, as one. */
void wire_put_batch(struct store_wire *wire, const struct store_call *first, unsigned count);
/* How many bytes a call takes in it. */
size_t wire_batch_size(const struct store_call *call);
/* Where the next command will begin. */
uint64_t wire_position(const struct store_wire *wire);
size_t wire_waiting(const struct store_wire *wire);
/* One write (more only when the kernel takes a part). WIRE_BROKEN: errno says why. */
enum wire_end wire_flush(struct store_wire *wire, int fd);
/* Forgets what waits and begins to count anew. */
void wire_reset(struct store_wire *wire);

/* -- how a connection is made, and when again */
enum { DIAL_WHY_MAX = 128 };
/* The password in use, a copy, or NULL; the one in the url is wiped. */
char *dial_password(struct store_url *url, const char *password);
/* Wiped and freed; NULL is none. */
void dial_forget_password(char *password);
/* A socket that is being connected: dial_end() when it is writable. NULL: it could not be begun, and why. */
struct redisContext *dial_begin(const struct store_url *url, char why[DIAL_WHY_MAX]);
/* NULL: it stands; else why not, good until the next call. */
const char *dial_end(const struct redisContext *context);
/* Whether AUTH is to be said, and AUTH. */
bool dial_names_itself(const struct store_url *url, const char *password);
void dial_put_auth(struct store_wire *wire, const struct store_url *url, const char *password);
/* How long to wait before the next attempt; counts it. attempts is 0 again when a connection has lasted. */
uint64_t dial_pause_ms(unsigned *attempts);
bool dial_lasted(uint64_t since_us);

/* -- replies */
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
/* The value of a line "name:value" of INFO; {NULL, 0} when there is none. */
struct bytes reply_info_field(struct bytes info, const char *name);

/* -- what can be no store, by a line of INFO */
enum { MISLED_TEXT_MAX = 160 };
/* NULL, or what to do; check: as misled_by() has given it, or any other one. */
const char *misled_remedy(const char *check);

/* -- settings that can lose locks */
enum { SAFETY_LOOKS = 7, SAFETY_TEXT_MAX = 448 };

/* What the looks so far have shown of the append-only file. A first rewrite, before which nothing is durable,
 * looks in INFO like any other one; only what came before distinguishes them. */
enum safety_aof { AOF_NOT_SEEN, AOF_SEEN_OFF, AOF_SEEN_WHOLE };

struct store_safety {
    bool checked, unsafe, unread;
    bool passing,
        passing_found; /* nothing but a rewrite that may be the first: by the last look, by this one */
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

/* What store_call.state says of a call on the link. Once ended it is the outcome. */
enum call_state {
    CALL_BY_NAME,   /* FCALL, or part of one */
    CALL_BATCHED,   /* beside others: its answer is one of a list, or is that of all */
    CALL_ALONE,     /* FCALL of one that was batched, and did not run */
    CALL_AGAIN,     /* the same, behind the library, which Redis did not have */
    CALL_READ_ONLY, /* FCALL of what may not write, since Redis takes no write */
    CALL_WHOLE,     /* EVAL */
    CALL_COMMAND,   /* a command that changes nothing, without a script */
    CALL_HANDSHAKE
};

struct call_list {
    struct store_call *head, **tail;
};

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
    struct redisContext *context;
    struct loop_watch watch;
    struct loop_timer
        timer; /* WAITING: the pause; CONNECTING, GREETING: the step's deadline; READY: the calls' */
    bool timer_armed;
    bool blocked;       /* the kernel takes no more for now, or never again */
    unsigned attempts;  /* in a row, without a link that lasted */
    unsigned unflushed; /* commands since the last write */
    uint64_t number;    /* of times that it became READY */
    uint64_t ready_us;
    char run_id[STORE_RUN_ID_LEN + 1]; /* as this greeting has read it */
    char auth_refused[16];             /* the code of the error; "": taken, or not said */
    struct call_list flight;           /* in the order of their replies */
    struct store_call *gathered;       /* the last of them, which are not on the wire yet, from this one on */
    unsigned gathered_count;
    size_t gathered_bytes;
    uint64_t alone_ms; /* calls whose deadline is before that are not batched */
    struct store_wire wire;
    struct handshake_call handshake[HANDSHAKE_CALLS]; /* by kind; the look's are the last */
    unsigned greeting_left;
    bool by_name, is_loading; /* whether Redis has the library: else calls are sent whole */
    char not_loaded[160];     /* why it has not */
    const char *check;        /* for store_not_ready() while the state is not READY */
    char detail[544];
    unsigned char
        walked[LINK_STATES]; /* bit t of element f: went from f to t; what the test of the drawing reads */
};

struct store {
    struct loop *loop;
    struct loop_hook turn_end;
    struct loop_timer look_timer;
    unsigned look_period_ms;
    struct call_list ended; /* whose done is called by the turn-end hook */
    struct store_counts counts;
    const struct store_owner *owner;
    unsigned timeout_ms;
    bool allow_unsafe, sends_whole, in_turn_end;
    const struct store_library *library;
    struct store_url url;
    char *password; /* NULL: none */
    struct store_safety safety;
    struct store_link link;
};

void call_list_init(struct call_list *list);
void call_list_append(struct call_list *list, struct store_call *call);
struct store_call *call_list_take(struct call_list *list);

/* redis.c */
void store_end_later(struct store *store, struct store_call *call, enum store_outcome outcome);
void store_answer(struct store *store, struct store_call *call, const struct redisReply *reply);
/* The reply to a batch whose calls, first in front, are not in flight any more. */
void store_answer_batch(struct store *store, struct store_call *first, const struct redisReply *reply);
/* Calls are taken from now on. */
void store_ready(struct store *store);
/* A look at the settings is over. */
void store_looked(struct store *store);
/* How often the settings are read; 10 s unless a test is in a hurry. */
void store_look_every(struct store *store, unsigned period_ms);

/* link.c */
bool link_allows(enum link_state from, enum link_state to);
void link_open(struct store *store);
void link_close(struct store *store);
/* Puts the call on the wire, or has it wait for others until the end of the turn; state and deadline are set.
 * Only in GREETING and READY. */
void link_send(struct store *store, struct store_call *call);
void link_flush(struct store *store);
/* Takes what has come; calls done. */
void link_read(struct store *store);
/* Every command of the greeting is answered. */
void link_ready(struct store *store);
/* READY no more: a script was answered with this code. link_read() ends the link, in this turn. */
void link_leave(struct store *store, struct bytes code);
/* Ends the link and every call on it, and says why; of the printf family, after the address and ": ". */
void link_drop(struct store *store, const char *check, const char *why, ...)
    __attribute__((format(printf, 3, 4)));

/* handshake.c */
void handshake_new(struct store *store);
void handshake_greet(struct store *store);
/* FUNCTION LOAD, unless it is under way. */
void handshake_load(struct store *store);
void handshake_look(struct store *store);
void handshake_forget(struct store *store);
void handshake_put(struct store *store, const struct handshake_call *handshake);
void handshake_answer(struct store *store, struct handshake_call *handshake, const struct redisReply *reply);

/* -- the subscriber */
enum subscriber_state {
    SUBSCRIBER_IDLE,
    SUBSCRIBER_CONNECTING,
    SUBSCRIBER_GREETING,
    SUBSCRIBER_STANDING,
    SUBSCRIBER_WAITING,
    SUBSCRIBER_STATES
};

/* What is subscribed to, or was until just now. */
struct subscriber_channel {
    struct bytes name;               /* its bytes lie behind the struct */
    unsigned wanted;                 /* subscribes without unsubscribe */
    unsigned asked;                  /* SUBSCRIBEs on this link that Redis has not confirmed yet */
    bool listens;                    /* Redis has confirmed the last of them */
    struct subscriber_channel *next; /* channels_end_link()'s own */
};

struct subscriber_channels {
    void *tree; /* of tsearch(3) */
};

struct store_subscriber {
    struct loop *loop;
    struct store_subscriber_owner *owner;
    struct loop_hook turn_end;
    struct loop_watch watch;
    struct loop_timer
        timer; /* WAITING: the pause; CONNECTING, GREETING: the step's deadline; STANDING: signs of life */
    struct redisContext *context;
    struct store_wire wire;
    struct store_url url;
    char *password; /* NULL: none */
    struct subscriber_channels channels;
    enum subscriber_state state;
    bool blocked;   /* the kernel takes no more for now */
    bool confirmed; /* listens() was called on this link */
    bool in_callback;
    unsigned timeout_ms, greeting_left;
    unsigned attempts; /* in a row, without a link that lasted */
    uint64_t number;   /* of times that it came to stand */
    uint64_t since_us, heard_ms, ask_at_ms;
    unsigned char walked[SUBSCRIBER_STATES]; /* as in struct store_link */
};

bool subscriber_allows(enum subscriber_state from, enum subscriber_state to);

/* NULL: there is none. */
struct subscriber_channel *channel_find(const struct subscriber_channels *channels, struct bytes name);

#endif
