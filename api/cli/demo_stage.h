/* demo_stage.h - where a demo is played: services and workers as real processes, what they do told as it
 * happens and kept for the picture. */
#ifndef PAWL_CLI_DEMO_STAGE_H
#define PAWL_CLI_DEMO_STAGE_H

#include "api/cli/cluster.h"
#include "api/cli/demo_worker.h"
#include "api/cli/staircase.h"

enum { STAGE_EVENTS_MAX = 64 };

struct stage_worker {
    struct child child;
    const char *name; /* "A" */
    int64_t token;    /* of its last grant */
};

struct stage {
    struct cluster cluster;
    struct stage_worker a, b;
    uint64_t began_ms; /* this part */
    unsigned style;    /* staircase.h */
    struct stair_event events[STAGE_EVENTS_MAX];
    size_t event_count;
};

/* Starts the two workers for one part; file NULL: they write through the gateway. false: it has been said
 * why. All that return false here mean that the demo cannot go on. */
bool stage_begin(struct stage *stage, const char *lease, const char *file);
/* Ends the two workers, whatever they are doing. */
void stage_end(struct stage *stage);

bool stage_tell_worker(const struct stage_worker *worker, const char *order);
/* Waits until the worker says one of two words (other may be NULL); fills event. */
bool stage_expect(struct stage *stage, struct stage_worker *worker, const char *word, const char *other,
                  struct worker_event *event);
/* SIGSTOP, and until it stands; SIGCONT. */
bool stage_stop(struct stage *stage, struct stage_worker *worker);
bool stage_continue(const struct stage_worker *worker);
/* Lets time pass. */
bool stage_pause(struct stage *stage, unsigned ms);

/* One line: when, who, what. */
void stage_say(const struct stage *stage, const struct stage_worker *worker, uint64_t at_ms,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A sentence that matters, in bold where there are colours. */
void stage_headline(const struct stage *stage, const char *text);
/* For the picture. */
void stage_record(struct stage *stage, const struct stage_worker *worker, enum stair_event_kind kind,
                  uint64_t at_ms);

#endif
