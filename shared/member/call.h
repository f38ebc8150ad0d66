/* call.h - a script on a stripe: what every such call carries and what every answer teaches.
 *
 * record_run() adds the five arguments that shared/member/scripts/lib/stripe.lua wants, and refuses at once,
 * without the store, while this process is not admitted to the store's present life or the link is not to the
 * Redis that was admitted. record_problem() says what the end of the call means, and remembers the sequence
 * number before anybody is answered. */
#ifndef PAWL_SHARED_RECORD_CALL_H
#define PAWL_SHARED_RECORD_CALL_H

#include "shared/member/epoch.h"
#include "shared/store/store.h"
#include "shared/text/problem.h"

enum { RECORD_ARGS = 5, RECORD_NUMBER_SIZE = BYTES_NUMBER_SIZE };

/* A worker's way to the store: its link, and whether that link may be used, as last asked of the life. */
struct record_line {
    struct life *life;
    struct store *store;
    /* the line's own */
    uint64_t link;
    unsigned changes;
    enum problem problem;
    int64_t epoch;
    char stream[LIFE_STREAM_SIZE];
};

void record_line_init(struct record_line *line, struct life *life, struct store *store);
/* Whether the worker's link stands, and to which Redis: "" while it does not. To be called in every turn of a
 * pulse: notices when a link is a new one. */
const char *record_line_run(struct record_line *line);

/* PROBLEM_NONE when a call may be made on this line now; else what record_run() would say. */
enum problem record_line_problem(struct record_line *line);

/* Of a token that names this store: PROBLEM_NONE; WRONG_STORE; or, as long as this process does not know its
 * own store, why it does not: nobody is told that a token is another's by one who cannot know. */
enum problem record_store_problem(struct record_line *line, struct bytes store);
/* Of one that does not know its own store: why. */
enum problem record_unknown_problem(struct record_line *line);

/* "grant", or "hold-off": while the store's settings can lose a lock, or this process's own floor is lost, no
 * script may grant, nor hand on; or "full": nor let anybody in line, for the store is. An argument of every
 * script that might. */
struct bytes record_may_grant(const struct record_line *line);

struct record_call {
    struct store_call store; /* done is set by the caller */
    struct life *life;
    unsigned stripe;
    int64_t epoch;
    char stream[LIFE_STREAM_SIZE], number[3][RECORD_NUMBER_SIZE];
};

/* PROBLEM_NONE: the call is under way and ends as store_run() says; argv must have room for RECORD_ARGS more
 * behind its arg_count. Otherwise nothing was or will be sent: PROBLEM_STORE_NOT_ADMITTED, _NOT_OURS,
 * _UNAVAILABLE: it certainly did not happen. */
enum problem record_run(struct record_line *line, struct record_call *call, unsigned stripe,
                        const struct store_script *script, unsigned keys, unsigned args, struct bytes *argv);

/* PROBLEM_NONE when the script ran on a stripe that is ours: then the first word of the reply says the rest.
 * STORE_UNAVAILABLE, STORE_FULL, STORE_NOT_OURS, STORE_NOT_ADMITTED: it certainly did not happen.
 * OUTCOME_UNKNOWN: it may have happened. */
enum problem record_problem(struct record_call *call, enum store_outcome outcome,
                            const struct store_reply *reply);

#endif
