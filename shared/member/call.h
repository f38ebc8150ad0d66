/* call.h - a script on a stripe: what every such call carries and what every answer teaches.
 *
 * member_run() adds the five arguments that shared/member/scripts/lib/stripe.lua wants, and refuses at once,
 * without the store, while this process is not admitted to the store's present epoch or the link is not to
 * the Redis that was admitted. member_problem() says what the end of the call means, and remembers the
 * sequence number before anybody is answered. */
#ifndef PAWL_SHARED_MEMBER_CALL_H
#define PAWL_SHARED_MEMBER_CALL_H

#include "shared/member/epoch.h"
#include "shared/store/store.h"
#include "shared/text/problem.h"

enum { MEMBER_ARGS = 5, MEMBER_NUMBER_SIZE = BYTES_NUMBER_SIZE };

/* A worker's way to the store: its link, and whether that link may be used, as last asked of the epoch. */
struct member_line {
    struct epoch *store_epoch;
    struct store *store;
    /* the line's own */
    uint64_t link;
    unsigned changes;
    enum problem problem;
    int64_t epoch;
    char stream[EPOCH_STREAM_SIZE];
};

void member_line_init(struct member_line *line, struct epoch *store_epoch, struct store *store);
/* Whether the worker's link stands, and to which Redis: "" while it does not. To be called in every turn of a
 * pulse: notices when a link is a new one. */
const char *member_line_run(struct member_line *line);

/* PROBLEM_NONE when a call may be made on this line now; else what member_run() would say. */
enum problem member_line_problem(struct member_line *line);

/* Of a token that names this store: PROBLEM_NONE; WRONG_STORE; or, as long as this process does not know its
 * own store, why it does not: nobody is told that a token is another's by one who cannot know. */
enum problem record_store_problem(struct member_line *line, struct bytes store);
/* Of one that does not know its own store: why. */
enum problem record_unknown_problem(struct member_line *line);

/* "grant", or "hold-off": while the store's settings can lose a lock, or this process's own floor is lost, no
 * script may grant, nor hand on; or "full": nor let anybody in line, for the store is. An argument of every
 * script that might. */
struct bytes record_may_grant(const struct member_line *line);

struct member_call {
    struct store_call store; /* done is set by the caller */
    struct epoch *store_epoch;
    unsigned stripe;
    int64_t epoch;
    char stream[EPOCH_STREAM_SIZE], number[3][MEMBER_NUMBER_SIZE];
};

/* PROBLEM_NONE: the call is under way and ends as store_run() says; argv must have room for MEMBER_ARGS more
 * behind its arg_count. Otherwise nothing was or will be sent: PROBLEM_STORE_NOT_ADMITTED, _NOT_OURS,
 * _UNAVAILABLE: it certainly did not happen. */
enum problem member_run(struct member_line *line, struct member_call *call, unsigned stripe,
                        const struct store_script *script, unsigned keys, unsigned args, struct bytes *argv);

/* PROBLEM_NONE when the script ran on a stripe that is ours: then the first word of the reply says the rest.
 * STORE_UNAVAILABLE, STORE_FULL, STORE_NOT_OURS, STORE_NOT_ADMITTED: it certainly did not happen.
 * OUTCOME_UNKNOWN: it may have happened. */
enum problem member_problem(struct member_call *call, enum store_outcome outcome,
                            const struct store_reply *reply);

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
/* The row of the reply's word. */
const struct script_answer *script_answer_of(const struct script_answer *answers,
                                             const struct store_reply *reply);

#endif
