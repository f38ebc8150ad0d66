/* hazard.h - what a hazard is: scenes that are played with a recipe and then with Pawl, and what must have
 * been seen.
 *
 * A hazard is one file, and nearly all of it is tables. play.c plays them on the stage. */
#ifndef PAWL_CLI_DEMO_HAZARD_H
#define PAWL_CLI_DEMO_HAZARD_H

#include "api/cli/demo/seen.h"

/* One thing that happens. */
struct scene {
    enum {
        SCENES_END,
        TELL,     /* who gets the order; goes on when who has said one of until */
        AWAIT,    /* the same for an order that who got before; a text is the label's */
        STOP,     /* SIGSTOP to who */
        CONTINUE, /* SIGCONT to who */
        KILL,     /* SIGKILL to who */
        PAUSE,    /* time passes */
        JUMP,     /* the clock of Redis goes an hour forward */
        CRASH,    /* the Redis that is a master is killed, its replica promoted and found under its address */
        ASK       /* order is a command to the recipe's Redis; its integer is what was seen */
    } act;
    const char *who;   /* "A"; "relay" */
    const char *order; /* worker.h */
    unsigned percent;  /* of the ttl: the time of a PAUSE, or the one in an order; 0: none */
    const char *text;  /* in an order: what is written */
    const char *label; /* under which it is seen */
    const char *until; /* "granted|vain"; NULL: does not wait for it */
};

/* The same fault, once with a recipe and once with Pawl. */
struct hazard_part {
    const char *headline;
    const char *lock;           /* worker.h */
    const struct scene *scenes; /* each list ends with {0} */
    const struct scene *then;   /* NULL: nothing */
    /* NULL: it went as it should; else a static sentence. Pure. */
    const char *(*judge)(const struct seen *seen);
    const char *lesson; /* what was seen, in one sentence; said only if the judge agrees */
};

enum hazard_needs {
    NEEDS_CLOCK_OF_REDIS = 1, /* the shim under each redis-server */
    NEEDS_CLOCK_OF_B = 2,     /* the shim under B, an hour ahead from the beginning */
    NEEDS_RELAY = 4,          /* A reaches its resource through the relay */
    NEEDS_REPLICA = 8         /* of each Redis, fed through the relay */
};

enum { HAZARD_PARTS_MAX = 3 };

struct hazard {
    const char *name;
    const char *line;                           /* in the list */
    const char *intro;                          /* a few lines */
    unsigned needs;                             /* enum hazard_needs, or'ed */
    unsigned nodes;                             /* Redis servers of the recipe: 1, or 5 */
    unsigned ttl_percent;                       /* of the flag --ttl: how long the locks run */
    struct hazard_part parts[HAZARD_PARTS_MAX]; /* the last one is Pawl's; without headline: none */
    const char *verdict;
};

extern const struct hazard hazard_stale_holder, hazard_clock_jump, hazard_slow_network,
    hazard_crash_before_expire, hazard_timestamp_lock, hazard_wrong_release, hazard_failover,
    hazard_redlock_pause, hazard_late_unlock, hazard_read_lock_starvation;

/* In the order of the list; ends with NULL. */
extern const struct hazard *const hazards[];

/* What several of them have in common (stale_write.c): A writes late, B has written meanwhile. */
#define STALE_A_FIRST "packing, says A"
#define STALE_A_LATE "packed, says A"
#define STALE_B_FIRST "shipped, says B"
#define STALE_B_LAST "delivered, says B"
#define READ_LOCK_NEWS "news, says C"
extern const struct scene stale_scenes_stopped[], stale_then_goes_on[];
/* With the recipe both wrote, and B's work is lost. */
const char *stale_judge_recipe(const struct seen *seen);
/* The same, and A was awake: both held it at once, each by its own clock. */
const char *stale_judge_recipe_awake(const struct seen *seen);
/* With Pawl, A was refused, B's work stands and B could go on. */
const char *stale_judge_pawl(const struct seen *seen);
/* The same of hazards in which A was stopped before its late write. */
const char *stale_judge_recipe_stopped(const struct seen *seen);
const char *stale_judge_pawl_stopped(const struct seen *seen);

#endif
