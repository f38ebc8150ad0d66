/* child.c - real processes that this one starts, reads and never leaves behind. */
#include "api/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/environment.h"

enum { EXIT_CANNOT_RUN = 127 };

/* -- finding */

bool child_find_beside(const char *name, int mode, char path[CHILD_PATH_SIZE])
{
    ssize_t len = readlink("/proc/self/exe", path, CHILD_PATH_SIZE - 1);
    char *slash;
    size_t room;

    if (len <= 0) {
        return false;
    }
    path[len] = '\0';
    slash = strrchr(path, '/');
    room = (size_t)(path + CHILD_PATH_SIZE - slash - 1);
    return slash != NULL && (size_t)snprintf(slash + 1, room, "%s", name) < room && access(path, mode) == 0;
}

bool child_find(const char *name, char path[CHILD_PATH_SIZE])
{
    const char *at = getenv("PATH");

    if (child_find_beside(name, X_OK, path)) {
        return true;
    }
    for (at = at != NULL ? at : "/usr/local/bin:/usr/bin:/bin"; *at != '\0'; at += *at == ':') {
        size_t len = strcspn(at, ":");
        int wanted = snprintf(path, CHILD_PATH_SIZE, "%.*s/%s", (int)len, at, name);

        if (len > 0 && wanted < CHILD_PATH_SIZE && access(path, X_OK) == 0) {
            return true;
        }
        at += len;
    }
    return false;
}

/* -- starting */

struct streams {
    int in, out, error; /* of the child */
};

/* In the child, between fork and exec. */
static void child_prepare(pid_t parent, const struct streams *streams)
{
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* SIGTERM would not end one that is stopped */
    if (getppid() != parent) {
        _exit(EXIT_CANNOT_RUN); /* the parent died before it could be asked to take us along */
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    dup2(streams->in, STDIN_FILENO);
    dup2(streams->out, STDOUT_FILENO);
    dup2(streams->error, STDERR_FILENO);
}

static void child_exec(const char *const *argv, char **environment)
{
    execve(argv[0], (char *const *)argv, environment);
    dprintf(STDERR_FILENO, "%s cannot be run: %s\n", argv[0], strerror(errno));
    _exit(EXIT_CANNOT_RUN);
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

/* fds: the pipe that is read, and what the child reads: a pipe or /dev/null. -1: not open. */
static bool pipes_open(int fds[4], enum child_streams streams)
{
    memset(fds, -1, 4 * sizeof(fds[0]));
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    if (streams == CHILD_TALKS) {
        return pipe2(fds + 2, O_CLOEXEC) == 0;
    }
    fds[2] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fds[2] >= 0;
}

bool child_start(struct child *child, const char *name, enum child_streams streams, const char *const *argv)
{
    pid_t parent = getpid();
    char **environment = environment_for_child();
    int fds[4];
    bool open = pipes_open(fds, streams);
    pid_t pid = open ? fork() : -1;

    if (pid == 0) {
        child_prepare(parent,
                      &(struct streams){fds[2], fds[1], streams == CHILD_LOGS ? fds[1] : STDERR_FILENO});
        child_exec(argv, environment);
    }
    free(environment);
    if (pid < 0) {
        close_all(fds, 4);
        return false;
    }
    setpgid(pid, pid); /* both sides do it, so that it is done whoever comes first */
    close_all(fds + 1, 2);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *child = (struct child){.name = name, .pid = pid, .in_fd = fds[3], .out_fd = fds[0]};
    return true;
}

/* -- talking */

bool child_say(const struct child *child, const char *line)
{
    size_t len = strlen(line);

    /* Lines are far shorter than PIPE_BUF, so they go whole or not at all (pipe(7)). */
    return child->in_fd >= 0 && write(child->in_fd, line, len) == (ssize_t)len;
}

bool child_signal(const struct child *child, int number)
{
    return child->pid != 0 && !child->ended && kill(child->pid, number) == 0;
}

void child_describe_end(const struct child *child, char *buf, size_t size)
{
    if (WIFSIGNALED(child->status)) {
        int sig = WTERMSIG(child->status);

        snprintf(buf, size, "signal %d (%s)", sig, strsignal(sig));
    } else {
        snprintf(buf, size, "exit status %d", WEXITSTATUS(child->status));
    }
}
