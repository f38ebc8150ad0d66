/* watchdog.h - the process that ends the command of pawl run in time, whatever becomes of pawl run.
 *
 *   IDLE --the command is known--> WATCHING
 *   WATCHING --signal_ms--> SIGNALLED      the signal, to its process group
 *   WATCHING --kill_ms--> KILLED           (both were slept through, or there is no signal)
 *   SIGNALLED --kill_ms--> KILLED          SIGKILL, to all of it, again and again until somebody says "done"
 *   any --"done"--> over
 *   any --pawl run is gone--> over         SIGKILL, to all of it
 *
 * Only WATCHING hears of later times: what has been signalled is not spared by a renewal. Nothing that it
 * does waits for anything but the clock (CLOCK_BOOTTIME, which goes on while the machine sleeps). */
#ifndef PAWL_CLI_RUN_WATCHDOG_H
#define PAWL_CLI_RUN_WATCHDOG_H

#include "api/cli/run/group.h"

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

#endif
