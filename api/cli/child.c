/* child.c - real processes that this one starts, reads and never leaves behind; waiting for them. */
#include "api/cli/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"

enum { EXIT_CANNOT_RUN = 127 };

/* -- finding */

bool child_find_beside(const char *name, int mode, char path[CHILD_PATH_SIZE])
{
    ssize_t len = readlink("/proc/self/exe", path, CHILD_PATH_SIZE - 1);
    char *slash;
    size_t room;

    if (len <= 0)
        return false;
    path[len] = '\0';
    slash = strrchr(path, '/');
    room = (size_t)(path + CHILD_PATH_SIZE - slash - 1);
    return slash != NULL && (size_t)snprintf(slash + 1, room, "%s", name) < room && access(path, mode) == 0;
}

bool child_find(const char *name, char path[CHILD_PATH_SIZE])
{
    const char *given = getenv("PATH");
    struct bytes rest = bytes_of(given != NULL ? given : "/usr/local/bin:/usr/bin:/bin");

    if (child_find_beside(name, X_OK, path))
        return true;
    while (rest.len > 0) {
        struct bytes one = bytes_cut(&rest, ':');
        int wanted = snprintf(path, CHILD_PATH_SIZE, "%.*s/%s", (int)one.len, one.at, name);

        if (one.len > 0 && wanted < CHILD_PATH_SIZE && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* -- starting */

/* In the child, between fork and exec: in, out and error become its streams. */
static void child_exec(pid_t parent, int in, int out, int error, const char *const *argv)
{
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* SIGTERM would not end one that is stopped */
    if (getppid() != parent)
        _exit(EXIT_CANNOT_RUN); /* the parent died before it could be asked to take us along */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    execv(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "%s cannot be run: %s\n", argv[0], strerror(errno));
    _exit(EXIT_CANNOT_RUN);
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* fds: the pipe that is read, and what the child reads: a pipe or /dev/null. -1: not open. */
static bool pipes_open(int fds[4], enum child_streams streams)
{
    memset(fds, -1, 4 * sizeof(fds[0]));
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    if (streams == CHILD_TALKS)
        return pipe2(fds + 2, O_CLOEXEC) == 0;
    fds[2] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fds[2] >= 0;
}

bool child_start(struct child *child, const char *name, enum child_streams streams, const char *const *argv,
                 const char *const *variables)
{
    pid_t parent = getpid();
    /* It is configured by its words alone. */
    char **environment = environment_without((const char *const[]){"PAWL_", "NOTIFY_SOCKET=", NULL}, 0);
    int fds[4];
    bool open = pipes_open(fds, streams);
    pid_t pid = open ? fork() : -1;

    if (pid == 0) {
        environ = environment;
        for (; variables != NULL && *variables != NULL; variables++)
            putenv((char *)(uintptr_t)*variables);
        child_exec(parent, fds[2], fds[1], streams == CHILD_LOGS ? fds[1] : STDERR_FILENO, argv);
    }
    free(environment);
    if (pid < 0) {
        close_all(fds, 4);
        return false;
    }
    setpgid(pid, pid); /* both sides do it, so that it is done whichever comes first */
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

/* -- waiting for the next thing that happens */

static void signals_of_interest(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGCHLD);
}

void watch_open(struct watch *watch)
{
    sigset_t set;

    signals_of_interest(&set);
    *watch = (struct watch){.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (watch->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        abort();
    signal(SIGPIPE, SIG_IGN); /* of a child that reads no more the write says so */
    signal(SIGCHLD, SIG_DFL); /* ignored, as one may inherit it, the kernel would keep their ends from us */
}

void watch_close(struct watch *watch)
{
    sigset_t set;

    signals_of_interest(&set);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    close(watch->signal_fd);
}

void watch_add(struct watch *watch, struct child *child)
{
    for (unsigned i = 0; i < watch->count; i++)
        if (watch->children[i] == child)
            return;
    assert(watch->count < WATCH_CHILDREN_MAX);
    watch->children[watch->count++] = child;
}

/* -- lines */

static bool take_line(struct watch *watch, struct child *child)
{
    char *end = memchr(child->buf, '\n', child->len);
    size_t len = end != NULL ? (size_t)(end - child->buf) : child->len;

    /* What has no line feed is a line when it can grow no more. */
    if (child->len == 0 || (end == NULL && child->out_fd >= 0 && child->len < sizeof(child->buf) - 1))
        return false;
    memcpy(watch->line, child->buf, len);
    watch->line[len] = '\0';
    len += end != NULL;
    child->len -= len;
    memmove(child->buf, child->buf + len, child->len);
    watch->child = child;
    return true;
}

static void read_some(struct child *child)
{
    ssize_t got;

    if (child->out_fd < 0 || child->len >= sizeof(child->buf) - 1)
        return;
    got = read(child->out_fd, child->buf + child->len, sizeof(child->buf) - 1 - child->len);
    if (got > 0) {
        child->len += (size_t)got;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) || child->ended) {
        /* One that has ended says nothing more, even if a process that it left behind has its pipe open. */
        close(child->out_fd);
        child->out_fd = -1;
    }
}

/* -- what has happened so far, without waiting */

static bool child_event(struct watch *watch, struct child *child, enum watch_event *event)
{
    int status = 0;

    watch->child = child;
    if (!child->ended && waitpid(child->pid, &status, WNOHANG | WUNTRACED) == child->pid) {
        child->stopped = WIFSTOPPED(status);
        child->ended = !child->stopped;
        child->status = status;
    }
    read_some(child);
    *event = WATCH_LINE;
    if (take_line(watch, child))
        return true;
    *event = WATCH_STOPPED;
    if (child->stopped) {
        child->stopped = false;
        return true;
    }
    *event = WATCH_ENDED;
    if (!child->ended || child->out_fd >= 0)
        return false;
    if (child->in_fd >= 0) {
        close(child->in_fd);
        child->in_fd = -1;
    }
    child->pid = 0;
    return true;
}

static bool signal_event(struct watch *watch)
{
    struct signalfd_siginfo info;

    while (read(watch->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo != SIGCHLD) {
            watch->signal = (int)info.ssi_signo;
            return true;
        }
    }
    return false;
}

/* -- waiting */

static void wait_for_more(const struct watch *watch, uint64_t deadline_ms)
{
    struct pollfd fds[WATCH_CHILDREN_MAX + 1] = {{.fd = watch->signal_fd, .events = POLLIN}};
    uint64_t now = loop_now_ms();
    uint64_t left = deadline_ms > now ? deadline_ms - now : 0;
    nfds_t count = 1;

    for (unsigned i = 0; i < watch->count; i++) {
        const struct child *child = watch->children[i];

        if (child->pid != 0 && child->ended)
            return; /* the rest of its lines is there to be read */
        if (child->pid != 0 && child->out_fd >= 0)
            fds[count++] = (struct pollfd){.fd = child->out_fd, .events = POLLIN};
    }
    poll(fds, count, left < INT_MAX ? (int)left : INT_MAX);
}

enum watch_event watch_next(struct watch *watch, uint64_t deadline_ms)
{
    enum watch_event event;

    for (;;) {
        if (signal_event(watch))
            return WATCH_SIGNAL;
        for (unsigned i = 0; i < watch->count; i++)
            if (watch->children[i]->pid != 0 && child_event(watch, watch->children[i], &event))
                return event;
        if (loop_now_ms() >= deadline_ms)
            return WATCH_DEADLINE;
        wait_for_more(watch, deadline_ms);
    }
}
