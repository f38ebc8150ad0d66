/* stage.h - where a hazard is played: Redis servers, services, workers and a relay as real processes; what
 * they do is told as it happens, and noted for the judge and for the picture.
 *
 * Besides what workers say (worker.h) it is noted as seen: stopped, continued, killed (a process stands, was
 * told to go on, has ended), jumped SECONDS (by what Redis' own TIME says), promoted (a replica says that it
 * is a master), said NUMBER (Redis' answer).
 *
 * All that return false have said why: the demo cannot go on. */
#ifndef PAWL_CLI_DEMO_STAGE_H
#define PAWL_CLI_DEMO_STAGE_H

#include "api/cli/cluster.h"
#include "api/cli/demo/hazard.h"
#include "api/cli/demo/shim.h"
#include "api/cli/demo/worker.h"
#include "api/cli/staircase.h"

#define HOUR_NS INT64_C(3600000000000)

enum { STAGE_PICTURE_MAX = 128, STAGE_WORKERS = 3, STAGE_ADDRESS_SIZE = 192, STAGE_EVENT_MS = 30000 };

struct stage_worker {
    struct child child;
    const char *name;          /* "A", "B", "C"; the relay: "relay" */
    const char *label;         /* of the scene of its last order */
    const char *text;          /* in it */
    char word[SEEN_WORD_SIZE]; /* that it said last since then; "": nothing */
    int64_t number;
    bool shares;   /* its last order was to share */
    int64_t token; /* of its last grant */
};

struct stage {
    const struct hazard *hazard;
    const struct hazard_part *part;
    unsigned part_index;
    bool is_pawl; /* the part */
    unsigned ttl_ms;
    unsigned style; /* staircase.h */
    struct cluster cluster;
    struct child nodes[WORKER_NODES_MAX], replica; /* of the recipe; of either */
    struct stage_worker workers[STAGE_WORKERS], relay;
    struct shim redis_shim, b_shim;
    const struct child *doomed; /* its end is wanted */
    uint64_t began_ms;          /* this part */
    struct seen seen;           /* in this part */
    struct stair_event picture[STAGE_PICTURE_MAX];
    size_t picture_count;
};

/* What the whole demo needs: shims, and Pawl's own Redis and services. shim: its file, or NULL: where the
 * build or the installation has it. CLI_GO_ON, or the exit status; stage_close() in either case. */
int stage_open(struct stage *stage, const char *shim);
void stage_close(struct stage *stage);

/* What one part needs: the recipe's Redis servers, replica, relay, workers. */
bool stage_begin(struct stage *stage, unsigned part_index);
/* Ends it all, whatever it is doing. */
void stage_end(struct stage *stage);

/* Deals with what happens until the worker has said one of the words ("granted|vain") since its last order;
 * words NULL: until ms have passed. */
bool stage_until(struct stage *stage, struct stage_worker *worker, const char *words, unsigned ms);
/* One turn: deals with one thing that happens. false: the demo cannot go on; *event is what it was. */
bool stage_next(struct stage *stage, uint64_t deadline_ms, enum watch_event *event);
struct stage_worker *stage_worker_find(struct stage *stage, const char *name);
/* Sends SIGKILL, and waits for the end. */
bool stage_kill(struct stage *stage, struct child *child);
/* Adds it to what is watched, once. */
void stage_watch(struct stage *stage, struct child *child);

/* -- stage_redis.c: what is done with Redis */

bool stage_nodes_start(struct stage *stage);
void stage_node_address(const struct stage *stage, unsigned node, char address[STAGE_ADDRESS_SIZE]);
/* Of the part's Redis: the recipe's first, or Pawl's. */
void stage_redis_address(const struct stage *stage, char address[STAGE_ADDRESS_SIZE]);
bool stage_replica_start(struct stage *stage, unsigned relay_port);
/* Each notes what it saw under the label. */
bool stage_jump(struct stage *stage, const char *label);
bool stage_crash(struct stage *stage, const char *label);
bool stage_ask(struct stage *stage, const char *command, const char *label);

/* -- stage_tell.c: what is printed, noted and painted */

/* A line that a worker said. false: it makes no sense. */
bool stage_hear(struct stage *stage, struct stage_worker *worker, const char *line);
/* What the stage itself did or saw; worker NULL: with Redis. */
void stage_note(struct stage *stage, struct stage_worker *worker, const char *label, const char *word,
                int64_t number);
/* What Redis answered to a command. */
void stage_note_answer(struct stage *stage, const char *label, const char *command, int64_t number);
/* A sentence that matters, in bold where there are colours. */
void stage_headline(const struct stage *stage, const char *text);

#endif
