/* test_guard.c - the machine of a guard: what its header draws is what the code allows, and whoever notes a
 * loss first, everybody is told the same. Where it goes is asserted at each step (guard_become()). */
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "api/client/guard.h"
#include "tests/unit/drawing.h"

enum { ARROWS = 7, FAR_MS = 600000, WAIT_MS = 10000 };

/* A guard without a service, and with no thread but the test's own. */
struct alone {
    struct pawl_guard guard;
    unsigned times;
    char code[PAWL_CODE_SIZE];
};

static void alone_lost(struct pawl_guard *guard, const struct pawl_problem *problem, void *user)
{
    struct alone *alone = user;

    alone->times++;
    snprintf(alone->code, sizeof(alone->code), "%s", problem->code);
    CHECK_INT(guard->tid, gettid());
}

static void alone_open(struct alone *alone, int64_t left_ms)
{
    struct pawl_guard *guard = &alone->guard;

    *alone = (struct alone){.times = 0};
    guard->options = (struct pawl_guard_options){
        .size = sizeof(guard->options), .lost = alone_lost, .user = alone};
    CHECK(guard_process_take(guard));
    guard->holds = 1;
    guard->deadline_ms = pawl_now_ms() + left_ms;
    guard->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    guard->wake_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    guard_clock_set(guard->timer_fd, guard->deadline_ms, NULL);
    pthread_mutex_init(&guard->lock, NULL);
}

static void alone_close(struct alone *alone)
{
    guard_process_drop(&alone->guard);
    close(alone->guard.timer_fd);
    close(alone->guard.wake_fd);
    pthread_mutex_destroy(&alone->guard.lock);
}

static bool is_readable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    return poll(&ready, 1, 0) == 1;
}

static void enter_says(struct alone *alone, enum pawl_outcome outcome, const char *code)
{
    struct pawl_problem problem = {.size = sizeof(problem)};

    CHECK_INT(pawl_guard_enter(&alone->guard, &problem), outcome);
    CHECK_TEXT(bytes_of(problem.code), bytes_of(code));
}

static void service_ends(struct alone *alone)
{
    struct pawl_problem problem;

    problem_say(&problem, PAWL_LOST, "lease-lost", "d");
    problem.status = 410;
    guard_lose(&alone->guard, &problem);
}

TEST(the_drawing_of_a_guard_is_its_table)
{
    static const char *const names[GUARD_STATES] = {"HELD", "RENEWING", "LOST", "TOLD", "ENDED"};

    CHECK_INT(drawing_check("api/client/guard.h", names, GUARD_STATES, guard_allows, NULL), ARROWS);
}

#define TEST_ALONE(sentence, left_ms)                                                                        \
    TEST_WITH(sentence, struct alone, alone, alone_open(alone, left_ms), alone_close(alone))

TEST_ALONE(a_caller_who_sees_the_deadline_pass_notes_it_and_the_thread_tells_just_that, -10)
{
    enter_says(alone, PAWL_LOST, "deadline-passed");
    CHECK_INT(alone->guard.state, GUARD_LOST);
    CHECK(is_readable(alone->guard.timer_fd));
    CHECK_INT(alone->times, 0);
    guard_thread_run(&alone->guard);
    CHECK_INT(alone->guard.state, GUARD_TOLD);
    CHECK_INT(alone->guard.tid, 0); /* the number of a thread that ended may be another's */
    CHECK_INT(alone->times, 1);
    CHECK_TEXT(bytes_of(alone->code), BYTES("deadline-passed"));
    enter_says(alone, PAWL_LOST, "deadline-passed");
}

TEST_ALONE(what_the_service_said_first_is_told_by_all, FAR_MS)
{
    service_ends(alone);
    CHECK(is_readable(alone->guard.timer_fd));
    CHECK_INT(pawl_guard_remaining_ms(&alone->guard), 0);
    enter_says(alone, PAWL_LOST, "lease-lost");
    guard_thread_run(&alone->guard);
    CHECK_INT(alone->times, 1);
    CHECK_TEXT(bytes_of(alone->code), BYTES("lease-lost"));
    enter_says(alone, PAWL_LOST, "lease-lost");
}

TEST_ALONE(a_guard_that_ended_is_not_lost_later_and_nobody_is_told, FAR_MS)
{
    guard_end(&alone->guard);
    CHECK_INT(alone->guard.state, GUARD_ENDED);
    CHECK(!is_readable(alone->guard.timer_fd));
    guard_thread_run(&alone->guard); /* returns: it is woken */
    CHECK_INT(alone->times, 0);
    enter_says(alone, PAWL_NOT_DONE, "ended");
    CHECK(!is_readable(alone->guard.timer_fd));
}

TEST_ALONE(a_deadline_that_has_passed_is_not_moved_even_if_nobody_noted_it, -10)
{
    CHECK(!guard_clock_move(&alone->guard, pawl_now_ms() + FAR_MS));
    CHECK_INT(pawl_guard_remaining_ms(&alone->guard), 0);
    CHECK(is_readable(alone->guard.timer_fd));
}

TEST_ALONE(a_deadline_comes_nearer_when_another_has_made_the_ttl_shorter, FAR_MS)
{
    CHECK(guard_clock_move(&alone->guard, pawl_now_ms() + FAR_MS / 2));
    CHECK(pawl_guard_remaining_ms(&alone->guard) <= FAR_MS / 2);
}

TEST_ALONE(a_timer_that_is_readable_stays_so_and_another_is_when_it_was_fired, FAR_MS)
{
    struct itimerspec at = {.it_interval = {.tv_sec = 3600}, .it_value = {.tv_nsec = 1}};
    int fd;

    fd = alone->guard.timer_fd;
    CHECK(!is_readable(fd));
    guard_clock_fire(fd);
    CHECK(is_readable(fd));
    /* Setting it would take the interval away. */
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
    CHECK_INT(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS), 1);
    guard_clock_fire(fd);
    timerfd_gettime(fd, &at);
    CHECK_INT(at.it_interval.tv_sec, 3600);
}

CHECK_MAIN
