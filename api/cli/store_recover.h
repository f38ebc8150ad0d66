/* store_recover.h - pawl store recover: what its two ways have in common. */
#ifndef PAWL_CLI_STORE_RECOVER_H
#define PAWL_CLI_STORE_RECOVER_H

#include "api/cli/store_show.h"

enum { RECOVER_SEEN_MAX = 64, RECOVER_IDENTITY_SIZE = STORE_ID_CHARS + sizeof(KEYS_SCHEMA ":") };

/* A token that somebody has seen; epoch 0: not known. */
struct recover_seen {
    int64_t number, epoch;
};

struct recover {
    struct store_desk desk;
    const char *store_id; /* NULL: not given */
    bool force, yes, new_id;
    uint64_t wait_ms;
    int64_t floor; /* 0: not given */
    struct recover_seen seen[RECOVER_SEEN_MAX];
    unsigned seen_count;
    struct store_facts facts;
    struct store_verdict verdict;
    struct store_ask ask;
};

/* The id that the store must have: as the flag says, else as this machine's state directory does; "": any. */
const char *recover_wanted_id(const struct recover *r);
/* "SCHEMA:ID" */
void recover_identity(char buf[RECOVER_IDENTITY_SIZE], const char *id);
/* Not below any epoch that this machine has heard of, nor below the Unix time in seconds: a store that is
 * lost with everything around it does not begin again below the tokens of its former life. */
int64_t recover_epoch(const struct recover *r);
/* A number as the contract writes tokens: no sign, no leading zero, at most 15 digits; 0: it is none. */
int64_t recover_token_number(const char *text);
/* Prints how to find the number for --floor. */
void recover_say_floor(void);

/* store_recover_empty.c: Redis is empty, and the lease services still know their floors. facts are read. */
int recover_empty(struct recover *r);
/* store_recover_floor.c: the operator knows a number that no token is above. facts are read. */
int recover_floor(struct recover *r);

#endif
