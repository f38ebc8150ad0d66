/* group.c - all that the command of pawl run is: its process group, its cgroup, and its orphans. */
#include "api/cli/run/run.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/text/bytes.h"

enum {
    TEXT_SIZE = 4096,
    LOOK_AGAIN_MS = 2,
    SUFFIX_SIZE = 16,
    SUFFIX_MOST = 9,
    PATH_SIZE = 64,
    GONE_MOST_MS = 1000,
    FOLDERS_OPEN = 4
};

/* Linux 6.9, pidfd_send_signal(2). */
enum { SIGNAL_PROCESS_GROUP = 1 << 2 };

/* -- the cgroup */

static bool file_read(int folder, const char *name, char *text, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, size - 1) : -1;

    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* Where version 2 is mounted: alone, or beside version 1. */
static const char *cgroup_root(void)
{
    static const char *const usual[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};
    struct statfs about;

    for (const char *const *at = usual; *at != NULL; at++)
        if (statfs(*at, &about) == 0 && about.f_type == CGROUP2_SUPER_MAGIC)
            return *at;
    return NULL;
}

/* The line "0::/path" (cgroups(7)). */
static bool cgroup_own(char *path, size_t size)
{
    char text[TEXT_SIZE];
    const char *root = cgroup_root();
    struct bytes rest, at = {NULL, 0};
    bool found = false;

    if (root == NULL || !file_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)))
        return false;
    for (rest = bytes_of(text); rest.len > 0 && !found;) {
        at = bytes_cut(&rest, '\n');
        found = bytes_take(&at, BYTES("0::/"));
    }
    return found && !bytes_take(&at, BYTES("..")) &&
           snprintf(path, size, "%s%s%.*s/pawl-run-%d", root, at.len > 0 ? "/" : "", (int)at.len, at.at,
                    getpid()) < (int)size - SUFFIX_SIZE;
}

/* One of the same number may be left of a pawl run that was killed together with its watchdog, and what is in
 * it is not ours to end. */
static bool cgroup_make(char *path)
{
    char *end = path + strlen(path);
    bool made = mkdir(path, 0755) == 0;

    for (int more = 1; !made && errno == EEXIST && more <= SUFFIX_MOST; more++) {
        snprintf(end, SUFFIX_SIZE, ".%d", more);
        made = mkdir(path, 0755) == 0;
    }
    return made;
}

static void cgroup_missing(struct run_group *group, const char *why, int error)
{
    group->without = why;
    group->error = error;
}

void run_group_open(struct run_group *group)
{
    *group = (struct run_group){.pidfd = -1, .cgroup_fd = -1, .kill_fd = -1};
    if (!cgroup_own(group->path, sizeof(group->path))) {
        cgroup_missing(group, "none of version 2 is mounted where this process is", 0);
        return;
    }
    if (!cgroup_make(group->path)) {
        cgroup_missing(group, "it could not be made", errno);
        return;
    }
    group->cgroup_fd = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    group->kill_fd = openat(group->cgroup_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC); /* Linux 5.14 */
    if (group->kill_fd < 0) {
        cgroup_missing(group, "it cannot be killed as a whole", errno);
        run_group_close(group);
    }
}

static int folder_remove(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)where;
    if (type == FTW_DP)
        rmdir(path); /* one in which something runs stays */
    return 0;
}

static void cgroup_drop(struct run_group *group)
{
    if (group->cgroup_fd >= 0) {
        close(group->cgroup_fd);
        if (rmdir(group->path) != 0) /* another pawl run that was killed within it has left its own */
            nftw(group->path, folder_remove, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    }
    if (group->kill_fd >= 0)
        close(group->kill_fd);
    group->cgroup_fd = group->kill_fd = -1;
}

void run_group_close(struct run_group *group)
{
    cgroup_drop(group);
    if (group->pidfd >= 0)
        close(group->pidfd);
    group->pidfd = -1;
}

/* -- the processes */

/* Not by writing to cgroup.procs: moving a process there waits for a whole grace period of the kernel,
 * some ten milliseconds. */
pid_t run_group_fork(struct run_group *group)
{
    struct clone_args how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
    long pid = -1;

    if (group->cgroup_fd >= 0) {
        how.cgroup = (unsigned)group->cgroup_fd;
        pid = syscall(SYS_clone3, &how, sizeof(how));
        if (pid < 0) {
            cgroup_missing(group, "no process could be started in it", errno);
            cgroup_drop(group);
        }
    }
    return pid >= 0 ? (pid_t)pid : fork();
}

/* 0, or the error. */
static int leader_signal(const struct run_group *group, int number, unsigned flags)
{
    return syscall(SYS_pidfd_send_signal, group->pidfd, number, NULL, flags) == 0 ? 0 : errno;
}

bool run_group_may_signal(const struct run_group *group)
{
    return group->pidfd < 0 || leader_signal(group, 0, 0) != EPERM;
}

/* A number stays taken while a process has it, or a group: so once the leader has been waited for, a process
 * of its number is a stranger, and so is the group. */
static bool number_is_ours(const struct run_group *group)
{
    return group->pidfd < 0 || leader_signal(group, 0, 0) != ESRCH ||
           (kill(group->pid, 0) != 0 && errno == ESRCH);
}

void run_group_signal(const struct run_group *group, int number)
{
    if (group->pid <= 1)
        return;
    /* By the descriptor, where the kernel can: it never means another group that has got the same number. */
    if ((group->pidfd < 0 || leader_signal(group, number, SIGNAL_PROCESS_GROUP) == EINVAL) &&
        number_is_ours(group))
        kill(-group->pid, number);
    /* A leader may leave its group for another one of its session, with setpgid(2). */
    if (group->pidfd >= 0 && getpgid(group->pid) != group->pid)
        leader_signal(group, number, 0);
}

void run_group_kill(const struct run_group *group)
{
    run_group_signal(group, SIGKILL);
    if (group->kill_fd >= 0)
        (void)!write(group->kill_fd, "1", 1); /* it is gone when that fails */
}

static bool is_gone(const struct run_group *group)
{
    char text[TEXT_SIZE];

    return group->cgroup_fd < 0 || !file_read(group->cgroup_fd, "cgroup.events", text, sizeof(text)) ||
           strstr(text, "populated 0") != NULL;
}

bool run_group_wait_gone(const struct run_group *group, int64_t most_ms)
{
    int64_t until_ms = pawl_now_ms() + most_ms;

    while (!is_gone(group)) {
        if (pawl_now_ms() >= until_ms)
            return false;
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return true;
}

/* -- what the command leaves behind
 *
 * An orphan of the command becomes a child of this process (PR_SET_CHILD_SUBREAPER), also one that has a
 * session of its own: so it is found where there is no cgroup, and it is known when nothing is left. */

void run_orphans_adopt(struct run *run)
{
    siginfo_t unused;

    /* A process that has children already was a shell before exec: they are not the command's. */
    run->adopts = waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD &&
                  prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

bool run_orphans_reap(const struct run *run, siginfo_t *end)
{
    for (;;) {
        *end = (siginfo_t){0};
        if (waitid(P_ALL, 0, end, WEXITED | WNOHANG | WNOWAIT) != 0 || end->si_pid == 0)
            return false;
        if (end->si_pid == run->group.pid)
            return true;
        waitid(P_PID, (id_t)end->si_pid, end, WEXITED | WNOHANG);
    }
}

/* A thread's children: numbers with a space behind each (proc(5)). A list that is longer is read again. */
static bool kill_children_of(const struct run *run, const char *thread)
{
    char path[PATH_SIZE], list[TEXT_SIZE], *at = list;
    bool found = false;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);
    file_read(AT_FDCWD, path, list, sizeof(list));
    while (isdigit((unsigned char)*at)) {
        pid_t pid = (pid_t)strtol(at, &at, 10);

        if (*at != ' ')
            return true; /* cut: perhaps only the beginning of a number */
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

    while (threads != NULL && (thread = readdir(threads)) != NULL)
        if (thread->d_name[0] != '.')
            found |= kill_children_of(run, thread->d_name);
    if (threads != NULL)
        closedir(threads);
    return found;
}

/* Where /proc is missing, is another namespace's, or has no such lists, nobody is found: then all that is
 * known is whether there is a child, be it the watchdog. */
static bool has_children(const struct run *run)
{
    char path[PATH_SIZE];
    siginfo_t unused;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    if (access(path, R_OK) == 0)
        return kill_children(run);
    return waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool run_orphans_end(const struct run *run)
{
    int64_t until_ms = pawl_now_ms() + GONE_MOST_MS;

    if (!run->adopts)
        return run_group_wait_gone(&run->group, GONE_MOST_MS);
    while (has_children(run)) {
        if (pawl_now_ms() >= until_ms)
            return false;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return true;
}
