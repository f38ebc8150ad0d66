/* stray_processes.c - pawl run: what the command leaves behind.
 *
 * An orphan of the command becomes a child of this process (PR_SET_CHILD_SUBREAPER), also one that has a
 * session of its own: so it is found where there is no cgroup, and it is known when nothing is left. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/run/run.h"

enum { PATH_SIZE = 64, LIST_SIZE = 4096, GONE_MOST_MS = 1000, LOOK_AGAIN_MS = 2 };

void run_strays_adopt(struct run *run)
{
    siginfo_t unused;

    /* Who has children already was a shell that became us with exec: they are not the command's. */
    run->adopts = waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD &&
                  prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

bool run_strays_reap(const struct run *run, siginfo_t *end)
{
    for (;;) {
        *end = (siginfo_t){0};
        if (waitid(P_ALL, 0, end, WEXITED | WNOHANG | WNOWAIT) != 0 || end->si_pid == 0) {
            return false;
        }
        if (end->si_pid == run->group.pid) {
            return true;
        }
        waitid(P_PID, (id_t)end->si_pid, end, WEXITED | WNOHANG);
    }
}

/* A thread's children: numbers with a space behind each (proc(5)). A list that is longer is read again. */
static bool kill_children_of(const struct run *run, const char *thread)
{
    char path[PATH_SIZE], list[LIST_SIZE], *at = list;
    bool found = false;
    ssize_t len;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd >= 0 ? read(fd, list, sizeof(list) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    list[len > 0 ? len : 0] = '\0';
    while (isdigit((unsigned char)*at)) {
        pid_t pid = (pid_t)strtol(at, &at, 10);

        if (*at != ' ') {
            return true; /* cut: perhaps only the beginning of a number */
        }
        if (pid != run->watchdog_pid) {
            kill(pid, SIGKILL);
            found = true;
        }
        at++;
    }
    return found;
}

static bool kill_children(const struct run *run)
{
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *thread;
    bool found = false;

    while (threads != NULL && (thread = readdir(threads)) != NULL) {
        if (thread->d_name[0] != '.') {
            found |= kill_children_of(run, thread->d_name);
        }
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return found;
}

bool run_strays_end(const struct run *run)
{
    int64_t until_ms = pawl_now_ms() + GONE_MOST_MS;

    if (!run->adopts) {
        return run_group_wait_gone(&run->group, GONE_MOST_MS);
    }
    while (kill_children(run)) {
        if (pawl_now_ms() >= until_ms) {
            return false;
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return true;
}
