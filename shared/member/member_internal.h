/* member_internal.h - this process as a member of the store: joins, sends heartbeats, reports, leaves. One in
 * each process, on its first worker's thread. And the sweep.
 *
 * Scripts: shared/member/scripts/heartbeat.lua, member_leave.lua; a lease service also has
 * lease/scripts/admit.lua. The protocol: docs/decisions/0009. */
#ifndef PAWL_SHARED_MEMBER_INTERNAL_H
#define PAWL_SHARED_MEMBER_INTERNAL_H

#include "shared/member/member.h"
#include "shared/service/log.h"

enum member_state {
    MEMBER_AWAY,
    MEMBER_PENDING,
    MEMBER_IN,
    MEMBER_GATED,
    MEMBER_REFUSED,
    MEMBER_LEFT,
    MEMBER_STATES
};

enum {
    MEMBER_HEARTBEAT_ARGS = 32,
    MEMBER_SAID_SIZE = STORE_NODES_MAX * (STORE_NODE_MAX + STRIPES * 21 + 64),
    MEMBER_WISH_SIZE = 64 + STORE_NODES_MAX * (STORE_NODE_MAX + STORE_RUN_ID_LEN + 2),
    MEMBER_SENT_MAX = 64, /* more than 3 s of heartbeats, one in each tick */
    MEMBER_ABOUT_SIZE = 96,
    MEMBER_CONDITION_SIZE = 32,
    MEMBER_BAR_MS = 5000, /* as shared/member/scripts/lib/bars.lua has it */
    MEMBER_TEXT_SIZE = 24,
    MEMBER_SEQS_SIZE = STRIPES * 16
};

/* The check of /readyz. */
#define MEMBER_ACCESS_MISSING "access-missing"
/* The event of an admission by an operator's order: what was answered may be lost. */
#define MEMBER_LOSS_ACCEPTED "store-loss-accepted"

struct member {
    struct worker *worker; /* the first one: what it has of plan and settings is the member's */
    struct member_line *line;
    struct state_file *state_file;
    const char *who; /* for people: "pawl-lease pid 12 on host3"; lives as long as the member */
    /* What is the matter with this process, for others to see ("": nothing); NULL: not asked for. */
    void (*condition)(struct member *member, char code[MEMBER_CONDITION_SIZE]);
    /* What happened that deserves a line in the log; called on the loop's thread. */
    void (*event)(struct member *member, enum log_level level, const char *event,
                  const struct log_field *fields);
    /* the member's own */
    const struct member_plan *plan;
    const struct service_settings *settings;
    struct epoch *store_epoch;
    struct store *store;
    int64_t block;  /* tokens to reserve ahead; a gateway's is 1 */
    bool is_leased; /* it answers only while enough others have read of its heartbeats (lease.c) */
    enum member_state state;
    struct loop_timer timer;
    struct store_call call; /* one at a time, the last command of a look among them */
    struct store_call aside[2];
    struct { /* what the commands before the last have shown */
        bool is_same, is_in;
        int64_t alarm_ms;
    } look;
    bool in_flight, leave_wanted, left;
    bool is_superseded; /* a lease service with a copy of its state directory goes on from it, in its place */
    char incarnation[MEMBER_ID_CHARS + 1], run[EPOCH_RUN_SIZE];
    uint64_t asked_link, asked_us, heartbeat_ms;
    /* as of the last heartbeat */
    int64_t epoch, beats, ceiling, members_version;
    int64_t listed_epoch; /* of our entry in the store, whether in or pending */
    struct {              /* what the bars have of this process; waiting: the one of `number` */
        struct member_bars told;
        int64_t number;
    } bar;
    char about[MEMBER_ABOUT_SIZE], bar_text[MEMBER_ABOUT_SIZE + 32];
    uint64_t began_ms;
    char gate[MEMBER_ID_CHARS + 1];
    bool settled_asked, unsettled, reported; /* a whole report for this gate was taken */
    uint64_t gated_ms, admit_ms;             /* admit_ms: not asked to begin a new epoch before that */
    unsigned admit_wait_ms, waits;
    struct {                               /* lease.c's */
        int64_t number;                    /* of the last heartbeat that was sent */
        uint64_t sent_us[MEMBER_SENT_MAX]; /* when, by number; epoch_clock_us() */
        bool was_echoed;
        uint64_t echoed_us;                /* when an echo was sent last, or may have been */
        char echo[STATE_MEMBERS_MAX * 60]; /* what was read of all members; "": nothing in this epoch */
        char text[2][MEMBER_TEXT_SIZE];
    } lease;
    char logged[EPOCH_DETAIL_SIZE];  /* the last reason why nothing happens: each is logged once */
    char missing[EPOCH_DETAIL_SIZE]; /* registrars, the same */
    /* arguments in flight */
    struct insync *insync; /* NULL: a gateway, which changes no set */
    char number[8][MEMBER_NUMBER_SIZE], copies[16], promise[2 * MEMBER_TEXT_SIZE], node[STORE_NODE_MAX],
        address[STORE_ADDRESS_SIZE], identity[EPOCH_IDENTITY_SIZE], nonce[MEMBER_ID_CHARS + 1], key[64];
    char seqs[MEMBER_SEQS_SIZE], granted[MEMBER_SEQS_SIZE], list[STATE_TEXT_MAX];
    struct bytes argv[MEMBER_HEARTBEAT_ARGS];
    /* bit t of element f: went from f to t; what the test of the drawing reads */
    unsigned char walked[MEMBER_STATES];
};

/* Begins; the fields above the member's own are set by the caller, all others are 0. The state file has been
 * opened. */
void member_start(struct member *member);
/* Whether it is known where the process stands: in, or not to be for a reason that waiting will not mend
 * soon. Readiness is said after that, or after a time-out. */
bool member_is_settled(const struct member *member);
/* An orderly end: says so to the store, once no call is in flight. member_has_left(): it was answered, or
 * there is no store to ask. */
void member_leave(struct member *member);
bool member_has_left(const struct member *member);
void member_stop(struct member *member);

/* -- between the files */
bool member_allows(enum member_state from, enum member_state to);
/* The only place where the state changes. */
void member_enter(struct member *member, enum member_state next);
/* heartbeat.c: asks; what the answer means. member_identity(): "SCHEMA:ID" of the store that this process
 * belongs to: as it has learned, else as its state directory says, else "". */
void member_heartbeat(struct member *member);
struct bytes member_identity(struct member *member);
/* The list of members and doubts from a reply. False: no list, too many, one that is malformed or there
 * twice; record is as it was. */
bool member_list_read(const struct store_reply *list, struct state_record *record);
/* lease.c. At the start; the last three arguments of a heartbeat; what came back. */
void lease_begin(struct member *member);
void lease_put(struct member *member, struct bytes args[3]);
void lease_take(struct member *member, const struct store_reply *reply);
/* Says so when it is over. */
void lease_watch(struct member *member);
/* Asks the store to begin a new epoch; whether it is time to. */
bool member_may_admit(const struct member *member);
void member_admit(struct member *member);
/* No call of the process may go to a stripe: why, for the answers and for readyz. Logged when it is news. */
void member_forbid(struct member *member, enum problem problem, const char *check, const char *detail, ...)
    __attribute__((format(printf, 4, 5)));

/* -- insync.c: the in-sync set, as a lease service sees to it */
struct insync *insync_new(struct member *member);
void insync_free(struct insync *insync);
/* In each turn in which the member is in: asks the nodes, and finds out what to wish for. */
void insync_tick(struct insync *insync);
/* The set of a reply to a heartbeat: for all of the process. */
void insync_take(struct member *member, const struct store_reply *list);
/* What the next heartbeat asks for: insync_change() in lib/insync.lua; once. */
struct bytes insync_wish(struct insync *insync);
/* Redis was found to be behind (admit.lua): the other nodes of the set are asked what they have. */
void insync_behind(struct insync *insync, struct bytes text);
/* What they have said since the gate was shut, as admit.lua reads it. */
struct bytes insync_said(struct insync *insync);

/* -- the sweep: looks for ever which stripes have something due, and runs one bounded script on each of them:
 * what expired or was remembered long enough goes, a little at a time. One call is in flight at a time; a
 * stripe with more to do is visited again at once. A store in which nothing is due sees a few reads a
 * round. */
enum { SWEEP_KEYS = 2 };

struct sweep {
    struct worker *worker;
    struct member_line *line; /* its */
    const struct member_plan *plan;
    struct loop_timer timer;
    struct member_call call;
    unsigned first, stripe;      /* of the look; being swept */
    bool running, late, stopped; /* late: a tick came while it was running */
    uint64_t due;                /* bit i: first + i is to be swept */
    char keys[SWEEP_KEYS][KEYS_STRIPE_SIZE];
    char number[2][MEMBER_NUMBER_SIZE];
    struct bytes argv[SWEEP_KEYS + 3 + MEMBER_ARGS];
};

/* Of the first worker. */
void sweep_start(struct sweep *sweep, struct worker *worker);
/* No new step begins; a step in flight ends with the store. */
void sweep_stop(struct sweep *sweep);

/* quota.c: of the first worker; to be freed when the store is closed. Every 100 ms, with --access. */
struct quota *quota_new(struct worker *worker);
void quota_tick(struct quota *quota);

/* -- overview.c: one for each worker; freed by free(3) */
struct overview *overview_new(void);
/* Every 100 ms, on each worker's own thread. */
void overview_tick(struct worker *worker);

/* -- service->extra of a daemon (daemon.c) */
struct member_daemon {
    struct service *service;
    struct epoch *store_epoch;
    struct state_file state_file;
    struct member member;
    struct sweep sweep;
    struct quota *quota;
    struct overview *overview;
    struct overview_walk *overview_walk;
    char who[192];
};

#endif
