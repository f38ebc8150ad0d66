/* demo_internal.h - the stage: Redis servers, services, workers and a relay as real processes. What they do
 * is printed as it happens, and kept for the judge and for the picture.
 *
 * Besides the words of workers (worker.c) and of the relay (relay.c) there are these events: stopped,
 * continued, killed (a process is stopped, was sent SIGCONT, has ended), jumped SECONDS (by Redis' own TIME),
 * promoted (a replica says that it is a master), said NUMBER (Redis' answer).
 *
 * All functions that return false have said why: the demo cannot go on. */
#ifndef PAWL_CLI_DEMO_INTERNAL_H
#define PAWL_CLI_DEMO_INTERNAL_H

#include "api/cli/cluster.h"
#include "api/cli/demo/demo.h"
#include "api/cli/demo/shim.h"
#include "api/cli/staircase.h"

enum {
    WORKER_LINE_SIZE = 256,
    WORKER_NODES_MAX = 5,
    PICTURE_MAX = 128,
    ADDRESS_SIZE = CLUSTER_SOCKET_SIZE,
    STAGE_EVENT_MS = 30000 /* for what is to happen at once */
};

enum { ACTOR_A, ACTOR_B, ACTOR_C, ACTOR_RELAY, ACTORS };

struct actor {
    struct child child;
    const char *name;           /* "A", "B", "C", "relay" */
    const char *label;          /* of the scene of its last order */
    const char *text;           /* in it */
    char word[EVENT_WORD_SIZE]; /* its last since then; "": none */
    int64_t number;
    bool shares;   /* its last order was to share */
    int64_t token; /* of its last grant */
};

struct stage {
    const struct hazard *hazard;
    const struct hazard_part *part;
    unsigned part_index;
    bool is_pawl, is_quorum; /* the part; is_quorum: Pawl on the nodes */
    unsigned ttl_ms;
    unsigned style; /* staircase.h */
    struct cluster cluster;
    struct child nodes[WORKER_NODES_MAX], replica; /* of the recipe or a quorum; of either */
    /* Sockets; redis_at is the first node's, or that of Pawl's Redis. */
    char node_at[WORKER_NODES_MAX][ADDRESS_SIZE], replica_at[ADDRESS_SIZE], redis_at[ADDRESS_SIZE];
    struct actor actors[ACTORS];
    struct shim redis_shim, b_shim;
    const struct child *doomed; /* its end is wanted */
    uint64_t began_ms;          /* this part */
    struct timeline timeline;   /* of this part */
    struct picture {
        struct stair_event events[PICTURE_MAX];
        size_t count;
    } picture; /* of this part */
};

/* Says why the demo cannot go on; false. */
#define STAGE_FAIL(...) (cli_fail(CLI_REFUSED, __VA_ARGS__) == CLI_OK)

/* What the whole demo needs: shims, and Pawl's own Redis and services. shim: its file, or NULL: where the
 * build or the installation has it. CLI_GO_ON, or the exit status; stage_close() in either case. */
int stage_open(struct stage *stage, const char *shim);
void stage_close(struct stage *stage);

/* What one part needs: the recipe's Redis servers, replica, relay, workers. */
bool stage_begin(struct stage *stage, const struct hazard_part *part);
/* Ends it all, whatever it is doing. */
void stage_end(struct stage *stage);

/* Handles what happens until the actor has reported one of the words ("granted|vain") since its last order;
 * words NULL: until ms have passed. */
bool stage_until(struct stage *stage, const struct actor *actor, const char *words, unsigned ms);
/* Handles one event. *event is what it was. */
bool stage_next(struct stage *stage, uint64_t deadline_ms, enum watch_event *event);
/* Sends SIGKILL, and waits for the end. */
bool stage_kill(struct stage *stage, struct child *child);

/* What is done with Redis. Each adds an event with this label. */
bool stage_jump(struct stage *stage, const char *label);
bool stage_crash(struct stage *stage, const char *label);
bool stage_ask(struct stage *stage, const char *command, const char *label);

/* -- play.c */

/* A line that an actor wrote. false: it makes no sense. */
bool stage_hear(struct stage *stage, struct actor *actor, const char *line);
/* What the stage itself did or observed, now; actor NULL: with Redis. true. */
bool stage_note(struct stage *stage, struct actor *actor, const char *label, const char *word, int64_t number,
                const char *text);

/* -- worker.c, and the relay: one line of either */
void worker_say(const char *word, int64_t number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
