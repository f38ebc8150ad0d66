/* facts.h - what is known of the store, and of this machine's part in it: all texts and numbers, so
 * that what they mean (verdict.h) needs no store. */
#ifndef PAWL_CLI_STORE_FACTS_H
#define PAWL_CLI_STORE_FACTS_H

#include "api/cli/store/inbox.h"
#include "shared/member/state_file.h"
#include "shared/token/keys.h"

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

#define FACT_TOKEN_LAST 999999999999999

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
    int64_t age_ms; /* since its last pulse; -1: not known */
    bool live, reported;
};

/* An incarnation of a gateway that has yet to say what it had sent, since the store has lost something. */
struct doubt_fact {
    char gateway[FACT_ID_SIZE], incarnation[FACT_ID_SIZE], state[FACT_WORD_SIZE]; /* "open" | "dead" */
    int64_t dead_ms; /* since when it is known to be dead; -1: it is not */
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
    int64_t absent, shut; /* stripes: not there; whose epoch is negative */
    char first_absent[FACT_WORD_SIZE];
    int64_t epoch, roll, now_ms, clock_ms, ceiling, top; /* now_ms: by Redis' own clock */
    int64_t memory, maxmemory;                           /* bytes; maxmemory 0: no bound */
    char routes[FACT_RUN_SIZE * 2];                      /* hash of the table that is served; "": none yet */
    char marks_lost[FACT_ID_SIZE];                       /* first store whose marks are lost; "": none */
    char top_stripe[FACT_WORD_SIZE];
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

/* Both: CLI_GO_ON, or the exit status. facts is {0} at first and may be filled anew; owes store_facts_done().
 */

/* Everything: the keys, the store, its settings, the state directory. */
int store_facts_read(struct store_inbox *inbox, struct store_facts *facts);
/* The store alone, once more. */
int store_facts_refresh(struct store_inbox *inbox, struct store_facts *facts);
void store_facts_done(struct store_facts *facts);

/* Takes the TTL from all keys of ours. */
int store_facts_persist(struct store_inbox *inbox);

/* The store's id without its schema; "" when there is none. */
const char *store_facts_id(const struct store_facts *facts);
/* NULL: there is none. */
const struct member_fact *store_facts_member(const struct store_facts *facts, const char *id);
/* Not gated, whole, on the Redis that was admitted. */
bool store_facts_is_admitted(const struct store_facts *facts);
/* A lease service that is in and pulses. */
bool store_facts_is_live_lease(const struct member_fact *member);
bool store_facts_lease_lives(const struct store_facts *facts);

#endif
