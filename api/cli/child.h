/* child.h - real processes that this one starts, reads and never leaves behind.
 *
 * A child has a process group of its own (so that Ctrl-C reaches this process alone, which then ends the
 * children in order), no PAWL_ variables, and dies with this process, however that dies: PR_SET_PDEATHSIG,
 * which holds as long as the thread that forked lives, so start children from the main thread only. */
#ifndef PAWL_CLI_CHILD_H
#define PAWL_CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_LINE_SIZE = 4096, CHILD_PATH_SIZE = 4096 };

enum child_streams {
    CHILD_LOGS,  /* stdin is empty; stdout and stderr are read together */
    CHILD_TALKS, /* stdin is written to, stdout is read; stderr is this process's own */
};

struct child {
    const char *name; /* for people */
    pid_t pid;        /* 0: not started, or ended and reported */
    int in_fd;        /* its stdin; -1: none */
    int out_fd;       /* what is read of it; -1: at its end */
    int status;       /* of wait(2), once it has ended */
    bool ended;       /* but perhaps not all of its lines are read */
    bool stopped;     /* by a signal, and not reported yet */
    size_t len;
    char buf[CHILD_LINE_SIZE];
};

/* The program of this name beside this very program, else in PATH. false: there is none. */
bool child_find(const char *name, char path[CHILD_PATH_SIZE]);
/* The file of this name, which may lead from the directory of this very program ("../lib/pawl/x"), if we may
 * read or run it: mode as of access(2). */
bool child_find_beside(const char *name, int mode, char path[CHILD_PATH_SIZE]);
/* argv[0] is the path; variables: NAME=VALUE that it gets besides, up to a NULL; NULL: none. false: it could
 * not even be forked. */
bool child_start(struct child *child, const char *name, enum child_streams streams, const char *const *argv,
                 const char *const *variables);
/* A line to its stdin; false: it reads no more. */
bool child_say(const struct child *child, const char *line);
/* Only while it is there: once it has been waited for, its pid may be another's. false: it is not there. */
bool child_signal(const struct child *child, int number);
/* "exit status 78", "signal 9 (Killed)" */
void child_describe_end(const struct child *child, char *buf, size_t size);

/* -- waiting for the next thing that happens: a child's line, a child's end, a signal, or the deadline
 *
 * While a watch is open, SIGINT, SIGTERM and SIGHUP come here instead of ending the process. */

enum watch_event {
    WATCH_LINE,    /* child said line */
    WATCH_STOPPED, /* child was stopped by a signal */
    WATCH_ENDED,   /* child has ended, and all of its lines have been reported */
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
/* Once: one that was added before stays. */
void watch_add(struct watch *watch, struct child *child);
/* Children that have ended and been reported stay added, with pid 0. */
enum watch_event watch_next(struct watch *watch, uint64_t deadline_ms);

#endif
