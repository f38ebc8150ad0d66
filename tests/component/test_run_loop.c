/* test_run_loop.c - pawl run beside a guard that is played here: what comes at the same time, or in an order
 * that chance gives rarely. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/run/run.h"
#include "tests/unit/check.h"

enum { TTL_MS = 60000, LATER_MS = 5000, DEADLINE_MS = 15000 };

/* -- the guard */

static struct {
    int fd;              /* as pawl_guard_fd() */
    int64_t deadline_ms; /* of the first grant */
    bool renews;         /* before pawl_guard_open() has returned, with a deadline that is LATER_MS later */
    void (*renewed)(struct pawl_guard *guard, int64_t deadline_ms, void *user);
} guard;

enum pawl_outcome pawl_guard_open(struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                                  const struct pawl_guard_options *options, struct pawl_guard **opened,
                                  struct pawl_problem *problem)
{
    (void)pawl, (void)name, (void)ask, (void)problem;
    *opened = NULL;
    if (guard.renews)
        options->renewed(NULL, guard.deadline_ms + LATER_MS, options->user);
    return PAWL_OK;
}

void pawl_guard_grant(const struct pawl_guard *unused, struct pawl_grant *grant)
{
    (void)unused;
    grant->ttl_ms = TTL_MS;
    grant->deadline_ms = guard.deadline_ms;
}

int64_t pawl_guard_remaining_ms(struct pawl_guard *unused)
{
    int64_t left_ms = guard.deadline_ms - pawl_now_ms();

    (void)unused;
    return left_ms > 0 ? left_ms : 0;
}

int pawl_guard_fd(const struct pawl_guard *unused)
{
    (void)unused;
    return guard.fd;
}

enum pawl_outcome pawl_guard_close(struct pawl_guard *unused, struct pawl_problem *problem)
{
    (void)unused, (void)problem;
    return PAWL_OK;
}

/* -- the command, and the watchdog's end of the socket */

struct played {
    struct run run;
    int dog_fd, says_fd;
    int status;
    pthread_t thread;
};

static void word_wait(int fd, struct run_word *word)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    CHECK(poll(&ready, 1, DEADLINE_MS) == 1);
    CHECK(run_word_hear(fd, word) == RUN_HEARD_WORD);
}

/* Until the command has written this character; its end is another. */
static void says_wait(const struct played *p, char wanted)
{
    struct pollfd ready = {.fd = p->says_fd, .events = POLLIN};
    char said = '\0';

    CHECK(poll(&ready, 1, DEADLINE_MS) == 1);
    CHECK(read(p->says_fd, &said, 1) == 1);
    CHECK(said == wanted);
}

static void add_one(int fd)
{
    const uint64_t one = 1;

    CHECK(write(fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

static int command_says = -1;

static void say_signalled(int number)
{
    (void)number;
    (void)!write(command_says, "s", 1);
}

static void command_main(int says_fd)
{
    struct sigaction says = {.sa_handler = say_signalled};

    command_says = says_fd;
    setpgid(0, 0);
    sigaction(SIGUSR1, &says, NULL);
    (void)!write(says_fd, "b", 1);
    for (;;)
        pause();
}

static void played_begin(struct played *p, int64_t deadline_ms)
{
    int dog[2], says[2];

    *p = (struct played){
        .run = {.name = "orders:42", .lease_url = "http://127.0.0.1:1", .kill_ms = RUN_NEVER_MS}};
    guard.deadline_ms = deadline_ms;
    guard.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, dog) == 0);
    CHECK(pipe2(says, O_CLOEXEC) == 0);
    run_signals_open(&p->run);
    run_signals_more(&p->run);
    p->run.watchdog_fd = dog[0];
    p->run.loss_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->dog_fd = dog[1];
    p->says_fd = says[0];
    p->run.group = (struct run_group){.cgroup_fd = -1, .kill_fd = -1, .pidfd = -1, .without = "not tried"};
    CHECK(run_hold_open(&p->run) == CLI_GO_ON);
    p->run.grant.ttl_ms = TTL_MS;
    p->run.group.pid = fork();
    CHECK(p->run.group.pid >= 0);
    if (p->run.group.pid == 0) {
        run_signals_restore(&p->run);
        command_main(says[1]);
    }
    close(says[1]);
    p->run.group.pidfd = pidfd_open(p->run.group.pid, 0);
    says_wait(p, 'b');
}

static void *played_run(void *user)
{
    struct played *p = user;

    p->status = run_loop(&p->run);
    return NULL;
}

static void played_start(struct played *p)
{
    CHECK(pthread_create(&p->thread, NULL, played_run, p) == 0);
}

static void played_end(struct played *p, int status)
{
    pthread_join(p->thread, NULL);
    CHECK_INT(p->status, status);
    pawl_close(p->run.pawl);
    run_group_close(&p->run.group);
    close(p->run.watchdog_fd);
    close(p->run.signal_fd);
    close(p->run.loss_fd);
    close(p->dog_fd);
    close(p->says_fd);
    close(guard.fd);
    run_signals_restore(&p->run);
    guard.renews = false;
}

/* -- */

TEST(the_first_deadline_is_known_before_any_renewal_and_one_that_was_told_first_stays)
{
    for (unsigned renews = 0; renews < 2; renews++) {
        struct played p;
        int64_t deadline_ms = pawl_now_ms() + TTL_MS;

        guard.renews = renews == 1;
        played_begin(&p, deadline_ms);
        CHECK_INT(atomic_load(&p.run.deadline_ms), deadline_ms + renews * LATER_MS);
        kill(p.run.group.pid, SIGKILL);
        played_start(&p);
        played_end(&p, RUN_SIGNALLED + SIGKILL);
    }
}

/* The guard's descriptor is readable a moment before its thread tells the loss. */
TEST(a_loss_that_shows_before_it_is_told_leaves_time_for_the_signal)
{
    struct played p;
    struct run_word word;

    played_begin(&p, pawl_now_ms() + TTL_MS);
    add_one(guard.fd);
    kill(getpid(), SIGUSR1); /* passed on behind what is done about the descriptor */
    played_start(&p);
    says_wait(&p, 's');
    add_one(p.run.loss_fd);
    word_wait(p.dog_fd, &word);
    CHECK_INT(word.kind, RUN_WORD_LOST);
    CHECK(word.kill_ms > word.signal_ms);
    kill(getpid(), SIGUSR1);
    says_wait(&p, 's');
    kill(p.run.group.pid, SIGTERM);
    played_end(&p, RUN_LOST);
}

/* The watchdog, which hears nothing here, would kill at the deadline; so must we. */
TEST(a_loss_that_is_told_because_the_deadline_has_passed_leaves_no_time)
{
    struct played p;
    struct run_word word;
    int64_t deadline_ms = pawl_now_ms();

    played_begin(&p, deadline_ms);
    add_one(guard.fd);
    add_one(p.run.loss_fd);
    kill(getpid(), SIGUSR1);
    played_start(&p);
    word_wait(p.dog_fd, &word);
    CHECK_INT(word.kind, RUN_WORD_LOST);
    CHECK(word.kill_ms <= deadline_ms);
    played_end(&p, RUN_LOST);
}

CHECK_MAIN
