/* watch.h - waits for the next thing that happens: a child's line, a child's end, a signal, or the deadline.
 *
 * While a watch is open, SIGINT, SIGTERM and SIGHUP come here instead of ending the process. */
#ifndef PAWL_CLI_WATCH_H
#define PAWL_CLI_WATCH_H

#include <stdint.h>

#include "api/cli/child.h"

enum watch_event {
    WATCH_LINE,    /* child said line */
    WATCH_STOPPED, /* child was stopped by a signal */
    WATCH_ENDED,   /* child has ended, and all that it said has been told */
    WATCH_SIGNAL,  /* signal came */
    WATCH_DEADLINE /* nothing else happened until then */
};

enum { WATCH_CHILDREN_MAX = 24 };

struct watch {
    int signal_fd;
    struct child *children[WATCH_CHILDREN_MAX]; /* those with pid 0 are passed over */
    unsigned count;
    /* what happened */
    struct child *child;
    int signal;
    char line[CHILD_LINE_SIZE]; /* without its line feed; cut when it is longer */
};

void watch_open(struct watch *watch);
void watch_close(struct watch *watch);
void watch_add(struct watch *watch, struct child *child);
/* Children that have ended and been told stay added, with pid 0. */
enum watch_event watch_next(struct watch *watch, uint64_t deadline_ms);

#endif
