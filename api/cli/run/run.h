/* run.h - pawl run, inside: a command that runs while a lease is held.
 *
 * Two processes watch the command: this one, which holds the lease, and the watchdog (watchdog.h), which
 * knows until when it is held. */
#ifndef PAWL_CLI_RUN_H
#define PAWL_CLI_RUN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "api/cli/run/deferred.h"
#include "api/cli/run/group.h"
#include "api/client/pawl.h"

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
    const char *name, *holder, *lease_url;
    char **argv;
    uint64_t ttl_ms, wait_ms, kill_after_ms; /* 0: not given */
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
    struct pawl_problem loss; /* there once told_fd is readable */
    int told_fd;
    /* how it goes */
    bool lost;          /* told, or the command was signalled because of it */
    bool ended_in_time; /* the watchdog saw it */
    int64_t kill_ms;    /* when this process kills it too; RUN_NEVER_MS: not yet known */
    bool killed;        /* by this process, and it was still there */
    struct run_show *show;
    struct run_untold untold;
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

/* command.c: starts it. CLI_GO_ON, or the exit status. */
int run_command_start(struct run *run);
/* loop.c: until it has ended; its exit status, or that of the loss. Nothing of it is left then. */
int run_loop(struct run *run);

/* stray_processes.c: from now on orphans of the command become our children. Before there is any other. */
void run_strays_adopt(struct run *run);
/* Waits for those that have ended. true, and how, when the command has: it is not waited for, so that its pid
 * stays its own until nobody can signal it any more. */
bool run_strays_reap(const struct run *run, siginfo_t *end);
/* Kills all children but the watchdog, until none is left, or a second is over: false. */
bool run_strays_end(const struct run *run);

/* signals.c: reads the signals from now on, but for those that are ignored (nohup(1), "&" of a script):
 * they stay so. */
void run_signals_open(struct run *run);
/* From now on those, too, that matter only to who has a command. */
void run_signals_more(struct run *run);
/* The next one that has come; 0: none. */
int run_signals_next(const struct run *run);
/* As another program expects them; between fork and exec. */
void run_signals_restore(const struct run *run);
/* Stops this process as Ctrl-Z would; returns when it is continued, or at once when nobody could. */
void run_signals_stop_self(void);

/* terminal.c. In all of this SIGTTOU must be blocked: to set something from the background stops who does
 * it. */
void run_terminal_open(struct run_terminal *terminal);
/* Whether it is this job that may read it now. */
bool run_terminal_is_front(const struct run_terminal *terminal);
void run_terminal_give(struct run_terminal *terminal, pid_t group);
/* Safe between fork and exec: the command takes it for its own group. */
void run_terminal_give_self(const struct run_terminal *terminal);
/* Back to us. */
void run_terminal_take(struct run_terminal *terminal);
/* What a command that was killed could not put back. */
void run_terminal_restore(const struct run_terminal *terminal);

#endif
