/* drill.h - pawl drill: accidents, played against a private Redis under load, and what came of them.
 *
 * A drill is one accident, repeated `rounds` times in one world: a private redis-server, one or more lease
 * services, a gateway, and at least 8 clients (threads) that acquire, write, pause and release all the while.
 * Everything that a client was told goes into one history, in the order in which it was told; the judge reads
 * it afterwards (drill_judge.h says what counts as wrong).
 *
 *   drill_world.c     the processes: started, killed, stopped, their data taken away and put back
 *   drill_client.c    one client's requests     drill_load.c   the clients, as threads
 *   drill_history.c   what they were told       drill_judge.c  from a history to counts; pure
 *   drill_play.c      one drill from its world to its result
 *   drill_redis.c     accidents of Redis        drill_service.c   of services, disks, clocks, counters
 *   drill.c           the command: flags, the table of accidents, the report
 *
 * An accident is a function of this form:
 *
 *   static enum drill_end play_flushall(struct drill *drill)
 *   {
 *       struct drill_world_plan plan = {.services = 2};
 *       bool on = drill_begin(drill, &plan);
 *
 *       for (unsigned i = 0; on && i < drill->rounds; i++) {
 *           on = flushall_round(drill) && drill_round_done(drill);
 *       }
 *       return drill_finish(drill, on);
 *   }
 *
 * in which whatever must hold beyond the counts ends in `return drill_wrong(drill, "...")`. */
#ifndef PAWL_CLI_DRILL_H
#define PAWL_CLI_DRILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/cli/drill_history.h"
#include "api/cli/drill_judge.h"
#include "api/cli/drill_load.h"
#include "api/cli/drill_random.h"
#include "api/cli/drill_world.h"

enum { DRILL_NOTE_SIZE = 512, DRILL_GAPS_MAX = 4096 };

enum drill_end {
    DRILL_PLAYED,  /* look at the result */
    DRILL_FAILED,  /* something that must hold did not, or a process did not do what it must: why says it */
    DRILL_NOT_RUN, /* this machine cannot play it: why says what is missing. Never a success */
    DRILL_INTERRUPTED /* by a signal */
};

/* What a drill came to. Acknowledged operations are counted so that a drill in which nothing happened is
 * seen.
 */
struct drill_result {
    unsigned rounds; /* played to the end */
    struct drill_counts counts;
    uint64_t gap_median_ms, gap_longest_ms; /* from the accident, or from Redis' return, to the next grant */
    char note[DRILL_NOTE_SIZE];             /* what else must be told: "Redis refused to start 231 times" */
};

struct drill_accident;

/* One drill. Only the main thread touches it; the history and the world's URLs are safe for the clients. */
struct drill {
    const struct drill_accident *accident;
    unsigned rounds, clients;
    uint64_t seed;
    uint64_t return_ms;         /* for grants, after Redis has returned complete */
    const char *keep;           /* where the world's files stay; NULL: nowhere */
    const char *shim;           /* --shim: what tests/torture/shim.c became; NULL: what needs it is not run */
    bool verbose;               /* a line for each round on stderr */
    struct drill_random random; /* of the accident's choices */
    struct drill_world world;
    struct drill_history history;
    struct drill_load *load; /* NULL: not running */
    struct drill_result result;
    uint64_t gaps_ms[DRILL_GAPS_MAX];
    unsigned gap_count;
    enum drill_end end; /* PLAYED until something goes otherwise */
    char why[DRILL_WHY_SIZE];
};

/* What an accident may do to holds and acknowledged writes; the rest of the counts must always be 0. */
enum {
    DRILL_MAY_LOSE = 1,      /* acknowledged writes and grants (lost) */
    DRILL_MAY_END_EARLY = 2, /* holds may end before their ttl is over (ended_early) */
};

/* One row of the table of accidents. */
struct drill_accident {
    const char *name;  /* "flushall" */
    const char *what;  /* one line for people */
    unsigned full;     /* rounds of make torture; the default is a tenth, rounded up */
    unsigned allowed;  /* DRILL_MAY_... */
    unsigned slack_ms; /* how much longer than its ttl a hold may write (drill_judge.h); 0: the usual */
    enum drill_end (*play)(struct drill *drill);
};

extern const struct drill_accident drill_redis_accidents[]; /* end with name NULL */
extern const struct drill_accident drill_service_accidents[];

/* -- for accidents (drill_play.c). All that return false mean that the drill cannot go on: drill->end and why
 * say it. */

/* Opens the world and starts the load. */
bool drill_begin(struct drill *drill, const struct drill_world_plan *plan);
/* The two halves of it, for who has something to do before the first grant. */
bool drill_begin_world(struct drill *drill, const struct drill_world_plan *plan);
bool drill_begin_load(struct drill *drill);
/* Stops the load, reads the history, closes the world; the end of the accident's function. on false: it did
 * not play to the end. */
enum drill_end drill_finish(struct drill *drill, bool on);
/* One round is over: counted, told with verbose. false: interrupted, or the history is full. */
bool drill_round_done(struct drill *drill);

/* Always false; the first one said stays. */
bool drill_wrong(struct drill *drill, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool drill_cannot(struct drill *drill, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ok, or the world's own why as the drill's. */
bool drill_world_ok(struct drill *drill, bool ok);
/* Adds a sentence to the note; again and again for counts: told once at the end is better. */
void drill_note(struct drill *drill, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits until a client has been told of a grant that it asked for after `since` (a place in the history),
 * within limit_ms from from_ms (cli_now_ms()); notes the time from from_ms to it as a gap. */
bool drill_await_grant(struct drill *drill, uint64_t since, uint64_t from_ms, unsigned limit_ms);
/* The same for n grants and without a gap: for letting the clients work. */
bool drill_let_work(struct drill *drill, unsigned grants, unsigned limit_ms);

/* A client of the main thread (number 0), for requests of the accident itself, with the spare leases. service
 * NULL: another each time. */
struct drill_client drill_main_client(struct drill *drill, const struct drill_service *service);
/* Asks the service for a lease, as a client of the main thread: true when it was refused with
 * this problem code. With anything else the drill is wrong. */
bool drill_expect_refusal(struct drill *drill, const struct drill_service *service, const char *code);

#endif
