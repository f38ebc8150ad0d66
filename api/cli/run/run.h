/* run.h - pawl run, inside: a command that runs while a lease is held.
 *
 * Two processes watch the command: this one, which holds the lease, and the watchdog, which knows until when
 * it is held. */
#ifndef PAWL_CLI_RUN_H
#define PAWL_CLI_RUN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#include "api/client/http_client.h"
#include "api/client/pawl.h"

/* -- all that the command is: a process group, and a cgroup where one can be had
 *
 * A process leaves its group with setsid(2), but never a cgroup that it may not write to. Both processes that
 * watch the command, pawl run and its watchdog, have a struct of their own; the cgroup is made before they
 * part. */

enum { RUN_GROUP_PATH_SIZE = 4096 };

struct run_group {
    pid_t pid;     /* of its leader, the command; 0: not started */
    int pidfd;     /* of it; -1: the kernel has none */
    int cgroup_fd; /* its folder; -1: there is none */
    int kill_fd;   /* its cgroup.kill */
    char path[RUN_GROUP_PATH_SIZE];
    const char *without; /* why there is no cgroup, static; NULL: there is one */
    int error;           /* of the kernel's with it; 0: none */
};

/* Makes a cgroup (version 2) below this process' own, if that is allowed and the kernel can end it as a
 * whole. */
void run_group_open(struct run_group *group);
/* Removes the cgroup, if nothing is left in it, and closes. */
void run_group_close(struct run_group *group);
/* fork(2) into the cgroup; where that cannot be done the group goes on without one. The child may only call
 * what is safe in a signal handler. */
pid_t run_group_fork(struct run_group *group);
/* false: the leader became another user's, and may not be signalled. */
bool run_group_may_signal(const struct run_group *group);
/* To the process group, and to its leader also when that has gone into another group. */
void run_group_signal(const struct run_group *group, int number);
/* SIGKILL to all of it. */
void run_group_kill(const struct run_group *group);
/* Until nothing runs in the cgroup any more, but no longer than that: false. */
bool run_group_wait_gone(const struct run_group *group, int64_t most_ms);

/* -- what pawl run says on standard error while its command runs (loop.c)
 *
 * Standard error may be a pipe that nobody reads, and pawl run, which must end a command in time, waits for
 * nobody: what does not fit there now is kept until the command is over. */

enum { RUN_DEFERRED_MAX = 6, RUN_LINE_SIZE = 768 };

enum run_line_kind { RUN_LINE_WRONG /* as cli_fail() */, RUN_LINE_HINT /* as cli_hint() */ };

struct run_deferred {
    unsigned count;
    struct run_line {
        enum run_line_kind kind;
        char text[RUN_LINE_SIZE];
    } lines[RUN_DEFERRED_MAX];
};

/* Never waits. What is beyond RUN_DEFERRED_MAX is dropped. */
void run_tell(struct run_deferred *deferred, enum run_line_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What was kept; waits for the reader. */
void run_tell_rest(struct run_deferred *deferred);

/* --trace, on any thread: the request as curl would send it. Never waits: a line that does not fit now is
 * left out. */
void run_trace_request(const struct http_client_request *request);

/* -- pawl run itself */

/* docs/contract.md, "Commands". */
enum run_status {
    RUN_NOT_OBTAINED = 75,
    RUN_LOST = 76,
    RUN_FAILED = 125,
    RUN_NOT_EXECUTABLE = 126,
    RUN_NOT_FOUND = 127,
    RUN_SIGNALLED = 128 /* and the signal's number */
};

enum run_on_lost { RUN_ON_LOST_TERM, RUN_ON_LOST_KILL, RUN_ON_LOST_WARN };

/* Who may read the terminal: the shell's job that we are, or the command's process group. */
struct run_terminal {
    bool is_ours; /* standard input is the terminal of our session */
    bool at_once; /* the command gets it when it starts; else when it asks for it (SIGTTIN, SIGTTOU) */
    bool given;
    struct termios modes; /* as they were */
};

struct run {
    /* what was asked */
    const char *name, *lease_url;
    char **argv;
    struct pawl_ask ask;
    char holder[PAWL_HOLDER_SIZE];
    uint64_t kill_after_ms; /* 0: not given */
    int signal_number;
    enum run_on_lost on_lost;
    bool trace;
    /* the command, and who ends it */
    struct run_group group;
    int watchdog_fd;
    pid_t watchdog_pid;
    bool adopts; /* orphans of the command become our children, and nobody else is one */
    struct run_terminal terminal;
    bool stop_passed_on; /* a SIGTSTP: when the command stops, so do we */
    /* signals: read from signal_fd; what was blocked and what ignored before, for the command */
    int signal_fd;
    sigset_t mask_before, ignored_before;
    /* the hold */
    struct pawl *pawl;
    struct pawl_guard *guard;
    struct pawl_grant grant;
    _Atomic int64_t deadline_ms;
    struct pawl_problem loss; /* there once loss_fd is readable */
    int loss_fd;
    /* how it goes */
    bool lost;          /* reported, or the command was signalled because of it */
    bool ended_in_time; /* the watchdog saw it */
    int64_t kill_ms;    /* when this process kills it too; RUN_NEVER_MS: not yet known */
    bool killed;        /* by this process, and it was still there */
    struct run_show *show;
    struct run_deferred deferred;
};

/* hold.c: takes the lease, and waits for it. CLI_GO_ON, or the exit status. */
int run_hold_open(struct run *run);
/* Gives it back, which takes no longer than a few seconds; status, or RUN_LOST when that was found out only
 * now. Does not return when the service does not answer. */
int run_hold_close(struct run *run, int status);
/* When the command is to be ended that is protected until deadline_ms. */
void run_hold_times(const struct run *run, const struct pawl_grant *grant, int64_t *signal_ms,
                    int64_t *kill_ms);
/* From SIGKILL to the end of the hold. */
int64_t run_hold_margin_ms(int64_t ttl_ms);
/* How long it has from the signal to SIGKILL. */
int64_t run_hold_grace_ms(const struct run *run, int64_t ttl_ms);

/* loop.c: until it has ended; its exit status, or that of the loss. Nothing of it is left then. */
int run_loop(struct run *run);

/* group.c: from now on orphans of the command become our children. Before there is any other. */
void run_orphans_adopt(struct run *run);
/* Waits for those that have ended. true, and how, when the command has: it is not waited for, so that its pid
 * stays its own until nobody can signal it any more. */
bool run_orphans_reap(const struct run *run, siginfo_t *end);
/* Kills all children but the watchdog, until none is left, or a second is over: false. */
bool run_orphans_end(const struct run *run);

/* terminal.c: reads the signals from now on, but for those that are ignored (nohup(1), "&" of a script):
 * they stay so. */
void run_signals_open(struct run *run);
/* From now on those, too, that matter only while there is a command. */
void run_signals_more(struct run *run);
/* The next one that has come; 0: none. */
int run_signals_next(const struct run *run);
/* As another program expects them; between fork and exec. */
void run_signals_restore(const struct run *run);
/* Stops this process as Ctrl-Z would; returns when it is continued, or at once when nobody could. */
void run_signals_stop_self(void);

/* In all of this SIGTTOU must be blocked: to set something from the background stops the
 * process that does it. */
void run_terminal_open(struct run_terminal *terminal);
/* Whether it is this job that may read it now. */
bool run_terminal_is_front(const struct run_terminal *terminal);
void run_terminal_give(struct run_terminal *terminal, pid_t group);
/* Back to us. */
void run_terminal_take(struct run_terminal *terminal);
/* What a command that was killed could not put back. */
void run_terminal_restore(const struct run_terminal *terminal);

/* -- the process that ends the command in time, whatever becomes of pawl run (watchdog.c) */

enum run_word_kind {
    /* to the watchdog */
    RUN_WORD_TIMES,   /* it is held longer: signal_ms, kill_ms; earlier ones than before are passed over */
    RUN_WORD_LOST,    /* it is held no longer: the signal now, and SIGKILL at kill_ms at the latest */
    RUN_WORD_COMMAND, /* pid, pidfd: from now on there is something to end; without TIMES before, at once */
    RUN_WORD_DONE,    /* nothing is left to end */
    /* from it, always before it does so */
    RUN_WORD_SIGNALLED,
    RUN_WORD_KILLED,
    RUN_WORD_ENDED /* as SIGNALLED or KILLED, but the command had ended in time: what it left is killed */
};

#define RUN_NEVER_MS INT64_MAX

struct run_word {
    enum run_word_kind kind;
    pid_t pid;
    int pidfd; /* of it, the hearer's own to close; -1: the kernel has none. Of COMMAND alone */
    int64_t signal_ms, kill_ms; /* as pawl_now_ms(); RUN_NEVER_MS */
};

/* Forks it; only while this process has one thread. The descriptor on which words go to and fro, which ends
 * when the watchdog does; -1: it could not be started. */
int run_watchdog_start(const struct run_group *group, int signal_number, pid_t *pid);
/* Never waits. false: it could not be said. Safe between fork and exec. */
bool run_word_say(int fd, const struct run_word *word);
enum run_heard { RUN_HEARD_WORD, RUN_HEARD_NOTHING, RUN_HEARD_END };
enum run_heard run_word_hear(int fd, struct run_word *word);

/* -- who holds the lease that pawl run waits for: one line on a terminal, drawn again and again (hold.c) */

/* NULL when standard error is no terminal on which we are in front, or it cannot be had: it is only shown. */
struct run_show *run_show_begin(const char *name, const char *lease_url);
/* The line is gone when it returns. It waits for nothing. */
void run_show_end(struct run_show *show);
/* Waits for a look that is under way, a second at most. NULL is fine. */
void run_show_free(struct run_show *show);

#endif
