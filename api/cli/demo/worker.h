/* worker.h - what a worker of a demo is told, and what it tells.
 *
 * A worker is a process of its own that reads a line "VERB MS TEXT" for each thing to do:
 *   take MS -         asks again until it has the lock, or for MS (0: as long as the demo waits)
 *   share MS -        the same, as one of any number of readers
 *   write 0 TEXT      looks at its clock whether it still holds, and writes
 *   look 0 -          looks at its clock whether it still holds
 *   work MS TEXT      looks at its clock whether it still holds, works for MS, and writes
 *   toil MS TEXT      works for MS, and writes: it never looks
 *   extend 0 -        sets the lock's end anew (timestamp)
 *   read 0 -
 *   release 0 -
 * and says a line for each thing that happened: "AT_MS WORD NUMBER TEXT", AT_MS on the monotonic clock:
 *   held 0 HOLDER           another has it (said once)
 *   granted TOKEN MS        good for MS by its own clock; TOKEN 0: a recipe, which has none
 *   vain TRIES -            gave up asking
 *   set 0 -                 SETNX is done, EXPIRE is to come (expire)
 *   looked 0 -              GET said that the lock is its own, DEL is to come (get-del)
 *   holds MS -              by its own clock it holds for MS more
 *   over 0 -                by its own clock it holds no more, so it does not write
 *   written STATUS -        refused STATUS CODE      failed STATUS WHAT
 *   leaving 0 -             begins to release
 *   released 0 -            it had the lock until then
 *   deleted N -             DEL removed N keys, whosever they were
 *   lost STATUS CODE        told at the release that it had lost the lock
 *   extended 0 -            reads 0 TEXT
 *
 * Locks: pawl, and the recipes (worker_recipe.c), of which docs/hazards.md says where they come from:
 *   px          SET NX PX with a random value, released by a script that compares it
 *   registry    the same, but its holder never looks at its clock
 *   expire      SETNX, then EXPIRE
 *   timestamp   SETNX with the end as value, and GETSET when that is over
 *   del         SET NX PX, released by DEL
 *   get-del     SET NX PX, released by GET and, when it is its own, DEL
 *   redlock     SET NX PX at most of several servers
 *   readers     a set of readers that a writer must find empty */
#ifndef PAWL_CLI_DEMO_WORKER_H
#define PAWL_CLI_DEMO_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/text/bytes.h"

enum { WORKER_LINE_SIZE = 256, WORKER_NODES_MAX = 5, WORKER_VALUE_SIZE = 32, WORKER_TOKEN_SIZE = 1100 };

struct worker {
    const char *name, *lock, *lease;     /* lease: also the key of the lock, and of the resource */
    const char *nodes[WORKER_NODES_MAX]; /* addresses of the recipe's Redis servers */
    unsigned node_count;
    const char *file, *store;            /* the unprotected resource: a file, or a value in a Redis; */
    const char *lease_url, *gateway_url; /* both NULL: the one behind the gateway */
    unsigned ttl_ms;
    uint64_t holds_until_ms;       /* by its own clock; 0: it does not hold */
    char value[WORKER_VALUE_SIZE]; /* of a recipe's lock, or the end that it set (timestamp) */
    char token[WORKER_TOKEN_SIZE]; /* the fencing token header */
    char lease_id[WORKER_TOKEN_SIZE];
};

enum worker_want { WANT_ALONE, WANT_SHARED };

/* What one try to take a lock came to. */
enum worker_try {
    TRY_GRANTED, /* holds_until_ms is set, and it has been said */
    TRY_HELD,    /* another has it, which has been said if it was new */
    TRY_LATER,   /* the service cannot say now */
    TRY_FAILED   /* it has been said */
};

void worker_say(const char *word, int64_t number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void worker_pass_ms(unsigned ms);
/* Counts from when it was asked. */
void worker_granted(struct worker *worker, int64_t token, uint64_t asked_ms, int64_t good_for_ms);

/* limit_ms: how long it may wait for its turn. told: whether it has said who holds it. */
enum worker_try worker_pawl_take(struct worker *worker, enum worker_want want, unsigned limit_ms, bool *told);
void worker_pawl_release(struct worker *worker);
void worker_pawl_write(const struct worker *worker, const char *text);
void worker_pawl_read(const struct worker *worker);

/* One try. */
enum worker_try worker_recipe_take(struct worker *worker, enum worker_want want);
void worker_recipe_release(struct worker *worker);
void worker_recipe_extend(struct worker *worker);

/* The resource that nothing protects. */
void worker_plain_write(const struct worker *worker, const char *text);
void worker_plain_read(const struct worker *worker);

/* One command to a Redis; its reply's first line, "" if there was none. */
enum { WORKER_REPLY_SIZE = 256 };
bool worker_ask(const char *address, const char *const *words, char reply[WORKER_REPLY_SIZE]);

#endif
