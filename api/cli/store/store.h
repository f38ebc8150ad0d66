/* store.h - pawl store: what is known of the store, what it means, and what an operator can do. */
#ifndef PAWL_CLI_STORE_H
#define PAWL_CLI_STORE_H

#include <stdio.h>

#include "api/cli/flags.h"
#include "shared/member/state_file.h"
#include "shared/store/store.h"
#include "shared/token/keys.h"

/* -- the inbox: a connection of its own to the store, and this machine's state directory (facts.c)
 *
 * Every call here waits; the loop is nobody else's. */

struct store_inbox {
    /* flags */
    const char *redis, *state_dir;
    struct store_files files;
    uint64_t timeout_ms;
    enum output output; /* json: also reports that something was not done, or may have been */
    /* of a quorum, whose nodes --redis names, each */
    unsigned count; /* of them, or 1 */
    char urls[STORE_LIST_MAX * STORE_URL_SIZE];
    /* the inbox's own */
    bool changed; /* a script that changes something has run */
    struct loop *loop;
    struct store *store;
    char *password;
};

/* Rows that every command has. */
enum { STORE_INBOX_FLAGS = 8 };
#define STORE_INBOX_ROWS(inbox)                                                                              \
    FLAG_ENV("redis", "URL",                                                                                 \
             "redis[s]://[user@]host:port[/db], unix:///path or "                                            \
             "sentinel[s]://[user@]host:port[,host:port...]/name (default " STORE_REDIS_DEFAULT ")",         \
             &(inbox)->redis),                                                                               \
        FLAG_ENV("redis-password-file", "FILE", "the password of the store", &(inbox)->files.password),      \
        FLAG_ENV("sentinel-password-file", "FILE", "of sentinel://: the password of the sentinels",          \
                 &(inbox)->files.sentinel_password),                                                         \
        FLAG_ENV("redis-ca", "FILE", "of rediss://: whom its certificate must come from",                    \
                 &(inbox)->files.ca),                                                                        \
        FLAG_ENV("redis-cert", "FILE", "of rediss://: a certificate to show", &(inbox)->files.cert),         \
        FLAG_ENV("redis-key", "FILE", "its key", &(inbox)->files.key),                                       \
        FLAG_ENV("state-dir", "DIR", "of the service on this machine (default as for the services)",         \
                 &(inbox)->state_dir),                                                                       \
        FLAG_ENV_MS("store-timeout", "DUR", "how long a call to the store may take (default 2s)",            \
                    &(inbox)->timeout_ms)
#define STORE_REDIS_DEFAULT "redis://127.0.0.1:6379"

/* Behind flags_read(), for a command that goes for a quorum, too: all that was said with --redis, and how
 * many that are. CLI_GO_ON, or the exit status. */
int store_inbox_collect(struct store_inbox *inbox, const struct option *flags, int argc, char **argv);
/* The same for a command that a quorum has not got: 64. */
int store_inbox_collect_one(struct store_inbox *inbox, const char *verb, const struct option *flags, int argc,
                            char **argv);
/* Of a quorum all of them, which connect; instead of store_inbox_open(). */
int store_inbox_open_all(struct store_inbox *inbox, struct store *stores[STORE_LIST_MAX]);
/* CLI_GO_ON when the store takes calls and its settings have been read, or the exit status: 69 it cannot be
 * reached, 78 a flag is wrong, or what is there can be no store (store_misled()). The settings are only
 * looked at: what they can lose is for status to tell. Owes store_inbox_close() in any case. */
int store_inbox_open(struct store_inbox *inbox);
void store_inbox_close(struct store_inbox *inbox);

/* One script, run to its end. The asker embeds it. */
struct store_ask {
    /* Set by the asker: what the reply means; CLI_GO_ON or an exit status. NULL: nothing. */
    int (*take)(struct store_ask *ask, const struct store_reply *reply);
    bool reads;          /* the script changes nothing, whatever becomes of it */
    bool may_be_refused; /* then CLI_GO_ON all the same, and call.refusal says why */
    bool is_quiet;       /* nothing is said when the script does not run to its end: it is run again */
    /* the inbox's own */
    struct store_call call;
    enum store_outcome outcome;
    bool over;
    int status;
};

/* argv as for store_run(): the keys, then the arguments. What take said; 69 when the script did not run to
 * its end, with a sentence (request.h): it was not done, or nobody knows; what the command has changed before
 * counts, too. */
int store_inbox_ask(struct store_inbox *inbox, struct store_ask *ask, const struct store_script *script,
                    unsigned key_count, unsigned arg_count, const struct bytes *argv);

/* recover.c: a command of its own, and a number as the contract writes tokens: no sign, no leading
 * zero, at most 15 digits; 0: it is none. */
int cli_store_recover(int argc, char **argv);
/* pawl-lease with this flag in front of those of argv, which it reads itself; returns only when it cannot. */
int cli_store_exec_lease(char **argv, int argc);
int64_t recover_token_number(struct bytes text);
/* failover.c: to this node, "": to any of the in-sync set; waits so long until it is admitted. */
int store_failover(struct store_inbox *inbox, const char *node, uint64_t wait_ms);

/* -- facts: all texts and numbers, so that what they mean (diagnosis.c) needs no store (facts.c) */

enum {
    FACT_ID_SIZE = 40,
    FACT_RUN_SIZE = 88, /* run_id and master_replid, a blank between (shared/member/scripts/lib/store.lua) */
    FACT_RUN_ID_LEN = 40,
    FACT_WORD_SIZE = 24,
    FACT_WHO_SIZE = 160,
    FACT_KEY_SIZE = 192,
    FACT_TEXT_SIZE = 256,
    FACT_WAITING_MAX = 16
};

enum fact_kind {
    FACT_STORE,    /* one that this release knows */
    FACT_EMPTY,    /* no trace of one */
    FACT_ANOTHER,  /* something that this release does not know */
    FACT_WRONG_KEY /* one of its keys is of a type that it cannot have: nothing else was looked at */
};

struct member_fact {
    char id[FACT_ID_SIZE], role[FACT_WORD_SIZE], state[FACT_WORD_SIZE], who[FACT_WHO_SIZE];
    char routes[FACT_RUN_SIZE * 2]; /* hash of a gateway's route table; "": not known, or none */
    int64_t floor, passed;          /* passed: highest token that a gateway let through, as it reported */
    int64_t roll, since;
    int64_t age_ms; /* since its last heartbeat; -1: not known */
    bool live, reported, registrar;
};

/* An incarnation of a gateway that has yet to say what it had sent, since the store has lost something. */
struct doubt_fact {
    char gateway[FACT_ID_SIZE], incarnation[FACT_ID_SIZE], state[FACT_WORD_SIZE]; /* "open" | "dead" */
    int64_t dead_ms; /* since when it is known to be dead; -1: it is not */
};

/* A node of Redis, of a store with an in-sync set. */
struct node_fact {
    char node[STORE_NODE_MAX];       /* "host:port" */
    char run[STORE_RUN_ID_LEN + 1];  /* of the set; "": it is not in it */
    bool kept, online;               /* in the set; in step, as the primary says */
    int64_t offset, lag_ms, gone_ms; /* gone_ms: since it was taken out; each -1: not known */
    /* as it says itself (nodes.c), when it is reached */
    bool reached;
    char own_run[STORE_RUN_ID_LEN + 1], stream[STORE_RUN_ID_LEN + 1], role[FACT_WORD_SIZE];
    char version[FACT_WORD_SIZE], diskless_load[FACT_WORD_SIZE], unsafe[FACT_TEXT_SIZE],
        advice[FACT_TEXT_SIZE];
    int64_t priority, clock_us, down_s, backlog; /* backlog: bytes; 0: not known */
    uint64_t asked_ms;                           /* when it said so, by cli_wall_ms() */
    const char *away;                            /* NULL: it keeps what it acknowledges */
    const char *why_not; /* NULL: it may take over; of the first, the primary, it means nothing */
    int64_t away_ms;     /* since it is away, -1: not known */
};

/* A lease service that is one, as it said last. */
struct registrar_fact {
    char id[FACT_ID_SIZE];
    int64_t promise, epoch,
        generation; /* what its state directory has recorded: promise 0: none; of the set */
    bool live;
    char address[STORE_ADDRESS_SIZE]; /* its own, as it speaks to Redis; "": not known */
};

/* A node of a quorum. */
struct quorum_fact {
    char node[STORE_NODE_MAX];
    const char *state; /* "well", "quarantine", "gone", "new", "not-ours" */
    int64_t for_ms;    /* quarantine: how long it will be at least; else -1 */
    bool reached;
    char id[FACT_ID_SIZE], run[FACT_ID_SIZE + 1], of_run[FACT_ID_SIZE + 1]; /* id: "STORE/NUMBER" */
    char own_run[FACT_ID_SIZE + 1], version[FACT_WORD_SIZE], policy[FACT_WORD_SIZE];
    int64_t highest, epoch, max_ttl_ms, since_ms, now_ms; /* -1: not known */
    int64_t asked_ms;                                     /* by cli_wall_ms() */
    const struct store_refusal *refusal;                  /* what it says to a write; NULL: nothing */
    char why[FACT_TEXT_SIZE]; /* it is not reached, in a sentence; "": it is, or nobody says */
};
struct quorum_facts {
    char store[STORE_ID_CHARS + 1];                  /* as a majority says; "": none does */
    unsigned count, majority, well, reached, taking; /* taking: well ones that take writes */
    struct quorum_fact nodes[STORE_LIST_MAX];
};

/* This machine's state directory. */
struct machine_facts {
    enum state_open found;
    char path[STATE_PATH_MAX], why[STATE_WHY_MAX];
    char member[MEMBER_ID_CHARS + 1], store[STORE_ID_CHARS + 1]; /* store "": none */
    int64_t floor, epoch, roll;
};

struct store_facts {
    enum fact_kind kind;
    char identity[FACT_ID_SIZE]; /* "SCHEMA:ID"; of FACT_ANOTHER whatever stands there */
    bool sound;                  /* stripes and record are whole and agree */
    bool has_record, open;
    bool outside;         /* gated, and a promoted Redis that is not of the in-sync set */
    int64_t absent, shut; /* stripes: not there; whose epoch is negative */
    char first_absent[FACT_WORD_SIZE];
    int64_t epoch, roll, now_ms, clock_ms, ceiling, top; /* now_ms: by Redis' own clock */
    int64_t registrars,
        majority; /* how many there are to be; how many must be heard, 0: all lease services */
    char form[FACT_WORD_SIZE], primary[STORE_NODE_MAX]; /* "sentinel"; the address that was asked */
    int64_t copies, generation;                         /* copies 0: there is no in-sync set */
    bool unasked; /* whether what its replicas acknowledge is on their disks is not known yet */
    char set_stream[STORE_RUN_ID_LEN + 1], growing[STORE_NODE_MAX];
    struct node_fact *nodes; /* store_facts_done() frees; the primary first; none without a set */
    unsigned node_count;
    struct registrar_fact *registrar; /* the same */
    unsigned registrar_count;
    int64_t memory, maxmemory;      /* bytes; maxmemory 0: no bound */
    char routes[FACT_RUN_SIZE * 2]; /* hash of the table that is served; "": none yet */
    char marks_lost[FACT_ID_SIZE];  /* first store whose marks are lost; "": none */
    char top_stripe[FACT_WORD_SIZE];
    char
        unaware[FACT_TEXT_SIZE]; /* lease services that lived at the last recover and do not know of it yet */
    char run[FACT_RUN_SIZE], gate[FACT_WORD_SIZE + 8], why[FACT_WORD_SIZE], how[FACT_WORD_SIZE];
    char redis_run[FACT_RUN_SIZE], redis_version[FACT_WORD_SIZE], redis_aof[FACT_WORD_SIZE];
    char redis_policy[FACT_WORD_SIZE], redis_role[FACT_WORD_SIZE];
    const struct store_refusal *refusal; /* what Redis says to a write; NULL: it takes it */
    char unsafe[FACT_TEXT_SIZE];         /* a setting that can lose locks; "": none */
    struct member_fact *members;         /* store_facts_done() frees */
    unsigned member_count;
    struct doubt_fact *doubts; /* the same */
    unsigned doubt_count;
    int64_t asked; /* as status.lua says */
    char waiting[FACT_WAITING_MAX][FACT_ID_SIZE];
    unsigned waiting_count;
    /* of all keys, when they were scanned */
    int64_t lease_top, lease_epoch, ending;
    char lease[FACT_KEY_SIZE]; /* that has lease_top */
    char ending_key[FACT_KEY_SIZE], wrong_key[FACT_KEY_SIZE], wrong_type[FACT_WORD_SIZE];
    struct machine_facts machine;
};

/* Where the value of a name in a reply of status.lua has its place, and what -o json calls it (NULL: it does
 * not). Each table ends with name NULL. */
struct fact_field {
    const char *name, *json;
    enum {
        FIELD_TEXT,
        FIELD_OPTIONAL, /* a text; "": there is none */
        FIELD_NUMBER,
        FIELD_FLAG,
        FIELD_AGE /* ms; -1: not known */
    } kind;
    size_t at, size;
};
extern const struct fact_field store_fields[], redis_fields[], member_fields[], doubt_fields[], node_fields[],
    own_fields[], registrar_fields[];
/* As much of it as has room, and a NUL. */
void fact_copy(struct bytes text, char *place, size_t size);
/* The text as that field of facts. */
void fact_take(const struct fact_field *field, struct bytes text, void *facts);

/* Both: CLI_GO_ON, or the exit status. facts is {0} at first and may be filled anew; owes store_facts_done().
 */

/* Everything: the keys, the store, its settings, the state directory. */
int store_facts_read(struct store_inbox *inbox, struct store_facts *facts);
/* The store alone, once more. */
int store_facts_refresh(struct store_inbox *inbox, struct store_facts *facts);
void store_facts_done(struct store_facts *facts);
/* The same, again and again until the store is admitted, or so much time is over (recover.c). */
int recover_wait(struct store_inbox *inbox, struct store_facts *facts, uint64_t wait_ms);
/* nodes.c: asks each node of a quorum; CLI_GO_ON, or the exit status. */
int store_quorum_read(struct store_inbox *inbox, struct quorum_facts *facts);
/* Asks each node of itself; who does not answer within the store's timeout is not reached. */
void store_nodes_ask(struct store_inbox *inbox, struct store_facts *facts);

/* Takes the TTL from all keys of ours. */
int store_facts_persist(struct store_inbox *inbox);

/* The store's id without its schema; "" when there is none. */
const char *store_facts_id(const struct store_facts *facts);
/* Not gated, whole, on the Redis that was admitted. */
bool store_facts_is_admitted(const struct store_facts *facts);
/* A lease service that is in and heartbeats. */
bool store_facts_is_live_lease(const struct member_fact *member);
bool store_facts_lease_lives(const struct store_facts *facts);

/* -- the diagnosis: what would be refused and why, and what to do, in plain sentences. Pure: the same facts,
 * the same diagnosis (diagnosis.c) */

enum { FINDING_TEXT_SIZE = 1024, FINDINGS_MAX = 16, MEMBER_TEXT_BYTES = 320 };

struct store_finding {
    enum { FINDING_REFUSED, FINDING_WARNING } weight; /* REFUSED: grants, or writes too, are */
    char what[FINDING_TEXT_SIZE];                     /* what happened */
    char todo[FINDING_TEXT_SIZE];                     /* what to do now */
};

struct store_diagnosis {
    struct store_finding findings[FINDINGS_MAX];
    unsigned count;
    int status; /* of pawl store status: 0 grants and writes are possible, 1 something is refused, 78 not ours
                 */
};

void store_diagnosis_quorum(const struct quorum_facts *facts, struct store_diagnosis *diagnosis);
void store_diagnosis_make(const struct store_facts *facts, struct store_diagnosis *diagnosis);

/* buf: "ID (pawl-lease pid 12 on host3, last seen 40 s ago)"; member may be NULL: only the id is known. */
const char *store_diagnosis_name(char buf[MEMBER_TEXT_BYTES], const char *id,
                                 const struct member_fact *member);

/* -- the facts of a store and what they mean, for people and for programs (show.c) */

/* On stdout. */
void store_show_text(const struct store_facts *facts, const struct store_diagnosis *diagnosis);
void store_show_json(const struct store_facts *facts, const struct store_diagnosis *diagnosis);
void store_show_quorum(const struct quorum_facts *facts, const struct store_diagnosis *diagnosis,
                       enum output output);
/* The sentence, and what is known of the store, on standard error; returns status. */
int store_refuse(const struct store_facts *facts, int status, const char *sentence);

#endif
