/* demo.h - pawl demo: hazards, each played with real processes, first with a recipe and then with Pawl.
 *
 *   hazards.c   the tables: scenes (what happens, in order) and checks (what must have been observed), which
 *               judge() evaluates on the timeline
 *   play.c      the command; plays a part scene by scene, tells what happens, and has it judged
 *   stage.c     the processes: Redis servers, Pawl's services (api/cli/cluster.h), workers, the relay
 *   worker.c    a worker: takes locks and leases, and writes
 *   relay.c     a wire that can be slow
 *
 * A timeline has only events that processes reported or that the stage observed (a process stopped or ended,
 * an answer of Redis). Nothing is added because it was meant to happen. */
#ifndef PAWL_CLI_DEMO_H
#define PAWL_CLI_DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- the timeline of a part */

enum { TIMELINE_MAX = 160, EVENT_WORD_SIZE = 16, EVENT_TEXT_SIZE = 64 };

struct timeline_event {
    uint64_t at_ms;             /* of the monotonic clock, which all processes share */
    const char *label;          /* of the scene in which it happened: "A late" */
    char word[EVENT_WORD_SIZE]; /* worker.c and demo_internal.h say which there are */
    int64_t number;
    char text[EVENT_TEXT_SIZE];
};

struct timeline {
    unsigned ttl_ms; /* of the locks and leases of this part */
    size_t count;
    struct timeline_event events[TIMELINE_MAX]; /* as they came; what goes beyond is dropped */
};

void timeline_add(struct timeline *timeline, const struct timeline_event *event);
/* The first of "LABEL: WORD"; NULL: there is none. */
const struct timeline_event *timeline_find(const struct timeline *timeline, const char *name);

/* -- hazards */

/* One thing that happens. */
struct scene {
    enum {
        SCENES_END,
        ORDER,    /* actor gets the order; ends when it has reported one of until */
        AWAIT,    /* the same for the order that actor got before; a text is the label's */
        STOP,     /* SIGSTOP to actor */
        CONTINUE, /* SIGCONT to actor */
        KILL,     /* SIGKILL to actor */
        PAUSE,    /* time passes */
        JUMP,     /* the clock of Redis goes an hour forward */
        CRASH,    /* the master Redis is killed, its replica promoted and reachable under its address */
        ASK       /* order is a command to the recipe's Redis, which answers an integer */
    } act;
    const char *actor; /* "A"; "relay" */
    const char *order; /* worker.c */
    const char *label; /* of its events */
    const char *until; /* "granted|vain"; NULL: does not wait for it */
    const char *text;  /* in an order: what is written */
    unsigned percent;  /* of the ttl: the time of a PAUSE, or the one in an order; 0: none */
};

/* A condition on events, each named "LABEL: WORD". None holds without its events. */
struct check {
    enum {
        CHECKS_END,
        HAPPENED,    /* first is there */
        NEVER,       /* first is not there */
        BEFORE,      /* first, then then */
        IN_TIME,     /* first is a look at a clock; then comes before the end that the look reported */
        NUMBER_IS,   /* first, with this number */
        NUMBER_MIN,  /* first, with this number at least */
        TEXT_IS,     /* first, with the text then, and nothing more or less */
        STALE,       /* first is a refusal, 412 stale-token; and then is not there */
        TOKEN_ROSE,  /* two grants, the second with the greater token */
        TTLS_LATER,  /* then comes number ttls after first, or later */
        SOON_AFTER,  /* then comes at most a ttl and number ms after first */
        OVERWRITTEN, /* two ends of a lock: then's is more than number ms later than first's */
        PASSED_BY    /* between the two, at least number readers are let in ("reader: granted") */
    } kind;
    const char *first, *then;
    int64_t number;
    const char *otherwise; /* what went otherwise, if it does not hold */
};

enum { PART_LISTS_MAX = 6, HAZARD_PARTS_MAX = 3 };

/* The same fault, once with a recipe and once with Pawl. */
struct hazard_part {
    const char *headline;
    struct {
        const char *lock;                               /* worker.c; "pawl" or "pawl-quorum": Pawl's */
        const struct scene *scenes[PART_LISTS_MAX + 1]; /* lists that end with {0}, one after the other */
        const struct check *checks[PART_LISTS_MAX + 1]; /* the same */
    } with;
    const char *lesson; /* printed only if all checks hold */
};

enum hazard_needs {
    NEEDS_CLOCK_OF_REDIS = 1, /* the shim under each redis-server */
    NEEDS_CLOCK_OF_B = 2,     /* the shim under B, an hour ahead from the beginning */
    NEEDS_RELAY = 4,          /* A reaches its resource through the relay */
    NEEDS_REPLICA = 8         /* of each Redis, fed through the relay */
};

struct hazard {
    const char *name;
    const char *line;  /* in the list */
    const char *intro; /* a few lines */
    struct {
        unsigned needs;       /* enum hazard_needs, or'ed */
        unsigned nodes;       /* Redis servers of the recipe: 1, or 5 */
        unsigned ttl_percent; /* of the flag --ttl: how long the locks run */
    } on;
    struct hazard_part parts[HAZARD_PARTS_MAX]; /* the last one is Pawl's; without headline: none */
    const char *conclusion;
};

/* What the workers write. */
#define STALE_A_FIRST "packing, says A"
#define STALE_A_LATE "packed, says A"
#define STALE_B_FIRST "shipped, says B"
#define STALE_B_LAST "delivered, says B"
#define READ_LOCK_NEWS "news, says C"

/* In the order of the list; ends with name NULL. */
extern const struct hazard hazards[];

/* NULL: all checks of the part hold; else what the first that does not says. Pure. */
const char *judge(const struct hazard_part *part, const struct timeline *timeline);

#endif
