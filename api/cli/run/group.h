/* group.h - all that the command of pawl run is: a process group, and a cgroup where one can be had.
 *
 * A process leaves its group with setsid(2), but never a cgroup that it may not write to. Both processes that
 * watch the command, pawl run and its watchdog, have a struct of their own; the cgroup is made before they
 * part. */
#ifndef PAWL_CLI_RUN_GROUP_H
#define PAWL_CLI_RUN_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
/* The leader, and a descriptor of it, which is the group's from now on; -1: the kernel has none. */
void run_group_know(struct run_group *group, pid_t pid, int pidfd);
/* false: the leader became another user's, and may not be signalled. */
bool run_group_may_signal(const struct run_group *group);
/* To the process group, and to its leader also when that has gone into another group. */
void run_group_signal(const struct run_group *group, int number);
/* SIGKILL to all of it. */
void run_group_kill(const struct run_group *group);
/* Until nothing runs in the cgroup any more, but no longer than that: false. */
bool run_group_wait_gone(const struct run_group *group, int64_t most_ms);

#endif
