/* watchdog.c - the process that ends the command of pawl run in time, whatever becomes of pawl run.
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
#include "api/cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { AGAIN_MS = 50, GONE_MOST_MS = 1000, FD_MAX = 3 };

enum watchdog_state { WATCHDOG_IDLE, WATCHDOG_WATCHING, WATCHDOG_SIGNALLED, WATCHDOG_KILLED };

struct watchdog {
    enum watchdog_state state;
    struct run_group group;
    int fd, timer_fd;
    int signal_number;
    int64_t signal_ms, kill_ms;
    int64_t ended_ms; /* when the command was seen to have ended; 0: it has not */
};

/* -- words */

/* unix(7): room for one descriptor. */
union carried {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

/* The number alone may be another's when the word is heard: the hearer may have stood still. */
bool run_word_say(int fd, const struct run_word *word)
{
    union carried carried = {{0}};
    struct iovec part = {(void *)(uintptr_t)word, sizeof(*word)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (word->kind == RUN_WORD_COMMAND && word->pidfd >= 0) {
        message.msg_control = carried.room;
        message.msg_controllen = sizeof(carried.room);
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &word->pidfd, sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*word);
}

enum run_heard run_word_hear(int fd, struct run_word *word)
{
    union carried carried = {{0}};
    struct iovec part = {word, sizeof(*word)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    const struct cmsghdr *with;
    ssize_t got;

    do {
        message.msg_control = carried.room;
        message.msg_controllen = sizeof(carried.room);
        got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    word->pidfd = -1;
    with = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (with != NULL && with->cmsg_type == SCM_RIGHTS)
        memcpy(&word->pidfd, CMSG_DATA(with), sizeof(int));
    if (got == (ssize_t)sizeof(*word))
        return RUN_HEARD_WORD;
    return got < 0 && errno == EAGAIN ? RUN_HEARD_NOTHING : RUN_HEARD_END;
}

/* -- what it does */

static void watchdog_tell(const struct watchdog *dog, enum run_word_kind kind)
{
    run_word_say(dog->fd, &(struct run_word){.kind = kind});
}

static void watchdog_kill(struct watchdog *dog)
{
    run_group_kill(&dog->group);
    dog->state = WATCHDOG_KILLED;
}

/* The one place that acts on the clock. */
static void watchdog_look(struct watchdog *dog, int64_t now_ms)
{
    bool in_time = dog->ended_ms != 0 && dog->ended_ms < dog->kill_ms;
    bool due = now_ms >= dog->signal_ms || now_ms >= dog->kill_ms;

    switch (dog->state) {
    case WATCHDOG_IDLE: break;
    case WATCHDOG_WATCHING:
        if (due && (in_time || now_ms >= dog->kill_ms)) {
            watchdog_tell(dog, in_time ? RUN_WORD_ENDED : RUN_WORD_KILLED);
            watchdog_kill(dog);
        } else if (due) {
            watchdog_tell(dog, RUN_WORD_SIGNALLED);
            run_group_signal(&dog->group, dog->signal_number);
            run_group_signal(&dog->group, SIGCONT); /* a stopped process gets no other signal */
            dog->state = WATCHDOG_SIGNALLED;
        }
        break;
    case WATCHDOG_SIGNALLED:
        if (now_ms >= dog->kill_ms) {
            watchdog_tell(dog, RUN_WORD_KILLED);
            watchdog_kill(dog);
        }
        break;
    case WATCHDOG_KILLED: run_group_kill(&dog->group); break;
    }
}

static void watchdog_over(struct watchdog *dog, enum run_heard how)
{
    if (how == RUN_HEARD_END) {
        run_group_kill(&dog->group);
        run_group_wait_gone(&dog->group, GONE_MOST_MS);
        run_group_close(&dog->group);
    }
    _exit(0);
}

static void watchdog_take(struct watchdog *dog, const struct run_word *word)
{
    if (word->kind == RUN_WORD_COMMAND && dog->state == WATCHDOG_IDLE) {
        dog->group.pid = word->pid;
        dog->group.pidfd = word->pidfd;
        dog->state = WATCHDOG_WATCHING;
    } else if (word->kind == RUN_WORD_TIMES && dog->state <= WATCHDOG_WATCHING &&
               word->kill_ms > dog->kill_ms) {
        dog->signal_ms = word->signal_ms;
        dog->kill_ms = word->kill_ms;
    } else if (word->kind == RUN_WORD_LOST) {
        dog->signal_ms = word->signal_ms;
        dog->kill_ms = word->kill_ms < dog->kill_ms ? word->kill_ms : dog->kill_ms;
    }
}

static void watchdog_hear(struct watchdog *dog)
{
    struct run_word word;
    enum run_heard heard;

    while ((heard = run_word_hear(dog->fd, &word)) == RUN_HEARD_WORD) {
        if (word.kind == RUN_WORD_DONE)
            watchdog_over(dog, heard);
        watchdog_take(dog, &word);
    }
    if (heard == RUN_HEARD_END)
        watchdog_over(dog, heard);
}

/* -- its process */

static void watchdog_set_timer(const struct watchdog *dog, int64_t now_ms)
{
    int64_t at_ms = dog->state == WATCHDOG_KILLED      ? now_ms + AGAIN_MS
                    : dog->state == WATCHDOG_SIGNALLED ? dog->kill_ms
                    : dog->signal_ms < dog->kill_ms    ? dog->signal_ms
                                                       : dog->kill_ms;
    struct itimerspec at = {0};

    if (dog->state != WATCHDOG_IDLE && at_ms != RUN_NEVER_MS)
        at.it_value = (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 + 1};
    timerfd_settime(dog->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void watchdog_run(struct watchdog *dog)
{
    for (;;) {
        struct pollfd ready[FD_MAX] = {{.fd = dog->fd, .events = POLLIN},
                                       {.fd = dog->timer_fd, .events = POLLIN},
                                       {.fd = dog->ended_ms == 0 ? dog->group.pidfd : -1, .events = POLLIN}};

        watchdog_set_timer(dog, pawl_now_ms());
        poll(ready, FD_MAX, -1);
        if (ready[2].revents != 0)
            dog->ended_ms = pawl_now_ms();
        /* Words first: they cost nothing, and a later deadline that came in time is valid. */
        watchdog_hear(dog);
        watchdog_look(dog, pawl_now_ms());
    }
}

/* Nobody is to wait for a file that this process has open. */
static void keep_only(struct watchdog *dog, int fd)
{
    const struct run_group *group = &dog->group;
    int last = fd > group->kill_fd ? fd : group->kill_fd; /* made after the cgroup's folder */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int standard = 0; null >= 0 && standard < 3; standard++)
        dup2(null, standard);
    for (int one = 3; one < last; one++)
        if (one != fd && one != group->cgroup_fd && one != group->kill_fd)
            close(one);
    close_range((unsigned)last + 1, ~0U, 0);
}

/* As far as the machine allows: run first, end last. */
static void become_important(void)
{
    const struct sched_param first = {.sched_priority = 1};
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "-1000", 5);
        close(fd);
    }
    (void)!sched_setscheduler(0, SCHED_FIFO, &first);
}

static void watchdog_main(const struct run_group *group, int fd, int signal_number)
{
    struct watchdog dog = {.group = *group, .fd = fd, .signal_number = signal_number};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "pawl-watchdog");
    keep_only(&dog, fd);
    become_important();
    (void)!chdir("/");
    dog.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (dog.timer_fd >= 0)
        watchdog_run(&dog);
    _exit(1);
}

int run_watchdog_start(const struct run_group *group, int signal_number, pid_t *pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    *pid = fork();
    if (*pid == 0) {
        close(pair[0]);
        watchdog_main(group, pair[1], signal_number);
    }
    close(pair[1]);
    if (*pid < 0) {
        close(pair[0]);
        return -1;
    }
    return pair[0];
}
