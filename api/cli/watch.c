/* watch.c - waits for the next thing that happens. */
#include "api/cli/watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"

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
    if (watch->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        abort();
    }
    signal(SIGPIPE, SIG_IGN); /* a child that reads no more is told by the write */
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
    assert(watch->count < WATCH_CHILDREN_MAX);
    watch->children[watch->count++] = child;
}

/* -- lines */

static bool take_line(struct watch *watch, struct child *child)
{
    char *end = memchr(child->buf, '\n', child->len);
    size_t len = end != NULL ? (size_t)(end - child->buf) : child->len;

    /* What has no line feed is a line when it can grow no more. */
    if (child->len == 0 || (end == NULL && child->out_fd >= 0 && child->len < sizeof(child->buf) - 1)) {
        return false;
    }
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

    if (child->out_fd < 0 || child->len >= sizeof(child->buf) - 1) {
        return;
    }
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

static void look_at_process(struct child *child)
{
    int status = 0;

    if (!child->ended && waitpid(child->pid, &status, WNOHANG | WUNTRACED) == child->pid) {
        child->stopped = WIFSTOPPED(status);
        child->ended = !child->stopped;
        child->status = status;
    }
}

static bool child_event(struct watch *watch, struct child *child, enum watch_event *event)
{
    watch->child = child;
    look_at_process(child);
    read_some(child);
    *event = WATCH_LINE;
    if (take_line(watch, child)) {
        return true;
    }
    *event = WATCH_STOPPED;
    if (child->stopped) {
        child->stopped = false;
        return true;
    }
    *event = WATCH_ENDED;
    if (!child->ended || child->out_fd >= 0) {
        return false;
    }
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
    uint64_t now = cli_now_ms();
    uint64_t left = deadline_ms > now ? deadline_ms - now : 0;
    nfds_t count = 1;

    for (unsigned i = 0; i < watch->count; i++) {
        const struct child *child = watch->children[i];

        if (child->pid != 0 && child->ended) {
            return; /* the rest of its lines is there to be read */
        }
        if (child->pid != 0 && child->out_fd >= 0) {
            fds[count++] = (struct pollfd){.fd = child->out_fd, .events = POLLIN};
        }
    }
    poll(fds, count, left < INT_MAX ? (int)left : INT_MAX);
}

enum watch_event watch_next(struct watch *watch, uint64_t deadline_ms)
{
    enum watch_event event;

    for (;;) {
        if (signal_event(watch)) {
            return WATCH_SIGNAL;
        }
        for (unsigned i = 0; i < watch->count; i++) {
            if (watch->children[i]->pid != 0 && child_event(watch, watch->children[i], &event)) {
                return event;
            }
        }
        if (cli_now_ms() >= deadline_ms) {
            return WATCH_DEADLINE;
        }
        wait_for_more(watch, deadline_ms);
    }
}
