/* test_loop.c - timers, descriptors, hooks, jobs and signals of the event loop. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/loop/loop.h"
#include "tests/unit/check.h"
#include "tests/unit/waited.h"

#define TEST_LOOP(sentence) TEST_IN(sentence, struct loop *, loop, loop_new(), loop_free(loop))

enum { LONG_MS = 5000 };

/* Turns until *what is at least count, or for LONG_MS. */
static bool turn_until(struct loop *loop, const int *what, int count)
{
    struct patience patience = patience_of(LONG_MS);

    while (*what < count && patience_lasts(&patience))
        waited_turn(loop, 10);
    return *what >= count;
}

/* A few turns in which nothing that is ready could be missed. */
static void turn_some(struct loop *loop)
{
    for (int i = 0; i < 5; i++)
        loop_turn(loop, 0);
}

/* -- jobs: the first test, before this process has a second thread */

enum { JOBS = 200, RUNS = 3 };

struct watched_job {
    struct loop_job job;
    struct loop *loop;
    pthread_t worker, teller;
    int fds[2]; /* the test's end and the work's */
    int worked, done, *all_done;
};

static void job_work(struct loop_job *job)
{
    struct watched_job *watched = container_of(job, struct watched_job, job);

    watched->worker = pthread_self();
    watched->worked++;
}

/* Says that it works, goes on until it is told to end, and closes its end last. */
static void job_work_long(struct loop_job *job)
{
    struct watched_job *watched = container_of(job, struct watched_job, job);
    char byte = 0;

    job_work(job);
    if (write(watched->fds[1], "w", 1) != 1 || read(watched->fds[1], &byte, 1) != 1)
        watched->worked = -1;
    close(watched->fds[1]);
}

static void job_done(struct loop_job *job)
{
    struct watched_job *watched = container_of(job, struct watched_job, job);

    watched->teller = pthread_self();
    watched->done++;
}

static void job_done_again(struct loop_job *job)
{
    struct watched_job *watched = container_of(job, struct watched_job, job);

    CHECK_INT(watched->worked, watched->done + 1);
    job_done(job);
    if (watched->done < RUNS)
        loop_job_run(watched->loop, job);
}

static void job_done_free(struct loop_job *job)
{
    struct watched_job *watched = container_of(job, struct watched_job, job);

    CHECK_INT(watched->worked, 1);
    ++*watched->all_done;
    free(watched);
}

/* Returns when it works. */
static void long_job_run(struct loop *loop, struct watched_job *watched)
{
    char byte = 0;

    *watched = (struct watched_job){.job = {.work = job_work_long, .done = job_done}, .loop = loop};
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, watched->fds), 0);
    loop_job_run(loop, &watched->job);
    CHECK(read(watched->fds[0], &byte, 1) == 1 && byte == 'w');
}

/* Returns when its work is over. */
static void long_job_end(struct watched_job *watched)
{
    char byte;

    CHECK_INT(write(watched->fds[0], "e", 1), 1);
    CHECK_INT(read(watched->fds[0], &byte, 1), 0);
    close(watched->fds[0]);
}

static void loop_free_too_early(const void *of)
{
    struct loop *loop = loop_new();
    struct watched_job job;

    (void)of;
    long_job_run(loop, &job);
    loop_free(loop);
}

TEST(loop_is_not_freed_under_a_job)
{
    CHECK(check_aborts(loop_free_too_early, NULL));
}

/* -- timers */

struct counted_timer {
    struct loop_timer timer;
    int fired;
    uint64_t last_us;
    struct watched_job *job;
};

static void timer_count(struct loop_timer *timer)
{
    struct counted_timer *counted = container_of(timer, struct counted_timer, timer);

    counted->fired++;
    counted->last_us = loop_now_us();
}

static void timer_stop_itself(struct loop_timer *timer)
{
    timer_count(timer);
    loop_timer_disarm(timer);
}

static void timer_rearm_itself(struct loop_timer *timer)
{
    timer_count(timer);
    if (container_of(timer, struct counted_timer, timer)->fired < 3)
        loop_timer_arm(timer, 1, 0);
}

static void timer_end_itself(struct loop_timer *timer)
{
    timer_count(timer);
    loop_timer_done(timer);
}

TEST_LOOP(timer_fires_once_and_never_early)
{
    struct counted_timer once = {0};
    uint64_t armed_us = loop_now_us();

    loop_timer_init(loop, &once.timer, timer_count);
    loop_timer_arm(&once.timer, 20, 0);
    CHECK(turn_until(loop, &once.fired, 1));
    /* libuv counts whole milliseconds from the cut-off time of arming. */
    CHECK(once.last_us + 1000 >= armed_us + 20000);
    turn_some(loop);
    loop_turn(loop, 30);
    CHECK_INT(once.fired, 1);
    loop_timer_done(&once.timer);
}

TEST_LOOP(timer_that_is_armed_anew_disarmed_or_done_does_not_fire_as_before)
{
    struct counted_timer late = {0}, idle = {0}, gone = {0}, tick = {0};

    loop_timer_init(loop, &late.timer, timer_count);
    loop_timer_init(loop, &idle.timer, timer_count);
    loop_timer_init(loop, &gone.timer, timer_count);
    loop_timer_init(loop, &tick.timer, timer_count);
    loop_timer_arm(&late.timer, 1, 1);
    loop_timer_arm(&idle.timer, 1, 1);
    loop_timer_arm(&gone.timer, 1, 1);
    loop_timer_arm(&tick.timer, 0, 2);
    loop_timer_arm(&late.timer, LONG_MS * 10, 0);
    loop_timer_disarm(&idle.timer);
    loop_timer_disarm(&idle.timer); /* is not armed: nothing */
    loop_timer_done(&gone.timer);
    memset(&gone.timer, 0xff, sizeof(gone.timer)); /* freed, and used for something else */
    CHECK(turn_until(loop, &tick.fired, 5));
    CHECK(late.fired == 0 && idle.fired == 0 && gone.fired == 0);
    loop_timer_done(&late.timer);
    loop_timer_done(&idle.timer);
    loop_timer_done(&tick.timer);
}

TEST_LOOP(timer_may_disarm_rearm_and_end_itself_while_it_fires)
{
    struct counted_timer stops = {0}, again = {0}, ends = {0};

    loop_timer_init(loop, &stops.timer, timer_stop_itself);
    loop_timer_init(loop, &again.timer, timer_rearm_itself);
    loop_timer_init(loop, &ends.timer, timer_end_itself);
    loop_timer_arm(&stops.timer, 0, 1);
    loop_timer_arm(&ends.timer, 0, 1);
    loop_timer_arm(&again.timer, 0, 0);
    CHECK(turn_until(loop, &again.fired, 3));
    loop_turn(loop, 5);
    CHECK_INT(stops.fired, 1);
    CHECK_INT(ends.fired, 1);
    CHECK_INT(again.fired, 3);
    loop_timer_done(&stops.timer);
    loop_timer_done(&again.timer);
}

/* -- descriptors */

struct counted_watch {
    struct loop_watch watch;
    int called, events;
};

static void watch_count(struct loop_watch *watch, int events)
{
    struct counted_watch *counted = container_of(watch, struct counted_watch, watch);

    counted->called++;
    counted->events |= events;
}

static void watch_end_itself(struct loop_watch *watch, int events)
{
    watch_count(watch, events);
    loop_watch_done(watch);
}

static void pair_open(int fds[2])
{
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static void pair_close(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

TEST_LOOP(readable_descriptor_is_told_until_it_is_read)
{
    struct counted_watch reader = {0};
    char byte;
    int fds[2];

    pair_open(fds);
    loop_watch_init(loop, &reader.watch, fds[0], watch_count, LOOP_READ);
    turn_some(loop);
    CHECK_INT(reader.called, 0);
    CHECK_INT(write(fds[1], "x", 1), 1);
    CHECK(turn_until(loop, &reader.called, 3)); /* level-triggered */
    CHECK_INT(reader.events, LOOP_READ);
    CHECK_INT(read(fds[0], &byte, 1), 1);
    reader.called = 0;
    turn_some(loop);
    CHECK_INT(reader.called, 0);
    loop_watch_done(&reader.watch);
    pair_close(fds);
}

TEST_LOOP(only_what_was_asked_for_is_told)
{
    struct counted_watch both = {0};
    int fds[2];

    pair_open(fds);
    CHECK_INT(write(fds[1], "x", 1), 1);
    loop_watch_init(loop, &both.watch, fds[0], watch_count, 0);
    turn_some(loop);
    CHECK_INT(both.called, 0);
    loop_watch_set(&both.watch, LOOP_WRITE);
    CHECK(turn_until(loop, &both.called, 1));
    CHECK_INT(both.events, LOOP_WRITE);
    both.called = both.events = 0;
    loop_watch_set(&both.watch, LOOP_READ);
    CHECK(turn_until(loop, &both.called, 1));
    CHECK_INT(both.events, LOOP_READ);
    both.called = 0;
    loop_watch_set(&both.watch, 0);
    turn_some(loop);
    CHECK_INT(both.called, 0);
    loop_watch_set(&both.watch, LOOP_READ | LOOP_WRITE);
    CHECK(turn_until(loop, &both.called, 1));
    CHECK_INT(both.events, LOOP_READ | LOOP_WRITE);
    loop_watch_done(&both.watch);
    pair_close(fds);
}

TEST_LOOP(peer_that_leaves_is_told_as_disconnect_though_nothing_is_read)
{
    struct counted_watch watch = {0};
    int fds[2];

    pair_open(fds);
    loop_watch_init(loop, &watch.watch, fds[0], watch_count, LOOP_HANGUP);
    CHECK_INT(write(fds[1], "x", 1), 1);
    turn_some(loop);
    CHECK_INT(watch.called, 0);
    CHECK_INT(shutdown(fds[1], SHUT_WR), 0);
    CHECK(turn_until(loop, &watch.called, 1));
    CHECK(watch.events & LOOP_HANGUP);
    loop_watch_done(&watch.watch);
    pair_close(fds);
}

TEST_LOOP(error_on_a_descriptor_is_told_as_what_was_asked_for)
{
    struct counted_watch writer = {0};
    int fds[2];

    CHECK_INT(pipe(fds), 0);
    loop_watch_init(loop, &writer.watch, fds[1], watch_count, LOOP_WRITE);
    close(fds[0]); /* the writing end is then in error, for good (poll(2), POLLERR) */
    CHECK(turn_until(loop, &writer.called, 1));
    CHECK(writer.events & LOOP_WRITE);
    loop_watch_done(&writer.watch);
    close(fds[1]);
}

TEST_LOOP(watch_may_end_itself_and_the_descriptor_stays_open)
{
    struct counted_watch watch = {0};
    int fds[2];

    pair_open(fds);
    loop_watch_init(loop, &watch.watch, fds[0], watch_end_itself, LOOP_WRITE);
    CHECK(turn_until(loop, &watch.called, 1));
    turn_some(loop);
    CHECK_INT(watch.called, 1);
    CHECK_INT(write(fds[0], "x", 1), 1);
    pair_close(fds);
}

/* -- hooks */

struct ordered_hook {
    struct loop_hook hook;
    struct loop *loop;
    char letter, *log;
    int again;
};

static void hook_log(struct loop_hook *hook)
{
    struct ordered_hook *ordered = container_of(hook, struct ordered_hook, hook);
    size_t len = strlen(ordered->log);

    if (len < 15)
        ordered->log[len] = ordered->letter;
    if (ordered->again > 0) {
        ordered->again--;
        loop_again(ordered->loop);
    }
}

static void hook_log_once(struct loop_hook *hook)
{
    struct ordered_hook *ordered = container_of(hook, struct ordered_hook, hook);

    hook_log(hook);
    loop_hook_remove(ordered->loop, hook);
}

TEST_LOOP(hooks_run_once_a_turn_in_their_order_or_once_more_when_one_asks_for_it_and_may_remove_themselves)
{
    static const struct {
        void (*first)(struct loop_hook *hook);
        int again, turns;
        const char *log;
    } rows[] = {{hook_log, 0, 2, "abab"}, {hook_log, 2, 1, "ababab"}, {hook_log_once, 0, 2, "abb"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char log[16] = "";
        struct ordered_hook a = {.letter = 'a', .log = log, .loop = loop}, b = a;

        b.letter = 'b';
        b.again = rows[i].again;
        loop_hook_add(loop, &a.hook, rows[i].first);
        loop_hook_add(loop, &b.hook, hook_log);
        for (int turn = 0; turn < rows[i].turns; turn++)
            loop_turn(loop, 0);
        CHECK_TEXT(bytes_of(log), bytes_of(rows[i].log));
        loop_hook_remove(loop, &a.hook); /* or it is not there: nothing */
        log[0] = log[1] = '\0';
        loop_turn(loop, 0);
        CHECK_INT(log[0], 'b');
        loop_hook_remove(loop, &b.hook);
        log[0] = '\0';
        loop_turn(loop, 0);
        CHECK_INT(log[0], '\0');
    }
}

/* -- waiting and stopping */

struct capping_hook {
    struct loop_hook hook;
    struct loop *loop;
    int turns;
};

static void hook_cap(struct loop_hook *hook)
{
    struct capping_hook *capping = container_of(hook, struct capping_hook, hook);

    capping->turns++;
    loop_wait_at_most(capping->loop, 0);
    if (capping->turns == 50)
        loop_stop(capping->loop);
}

static void hook_cap_long(struct loop_hook *hook)
{
    loop_wait_at_most(container_of(hook, struct capping_hook, hook)->loop, LONG_MS);
}

TEST_LOOP(wait_is_as_short_as_the_shortest_that_a_hook_asks_for_although_a_timer_is_far_off)
{
    struct counted_timer far = {0};
    struct capping_hook capping = {.loop = loop}, lengthy = {.loop = loop};
    uint64_t began_ms = loop_now_ms();

    loop_timer_init(loop, &far.timer, timer_count);
    loop_timer_arm(&far.timer, LONG_MS, 0);
    loop_hook_add(loop, &capping.hook, hook_cap);
    loop_hook_add(loop, &lengthy.hook, hook_cap_long);
    loop_run(loop);
    CHECK(capping.turns >= 50);
    CHECK(loop_now_ms() - began_ms < LONG_MS);
    CHECK_INT(far.fired, 0);
    loop_hook_remove(loop, &capping.hook);
    loop_hook_remove(loop, &lengthy.hook);
    loop_timer_done(&far.timer);
}

struct capped_by_timer {
    struct loop_timer timer;
    struct loop *loop;
};

static void timer_cap(struct loop_timer *timer)
{
    struct capped_by_timer *capped = container_of(timer, struct capped_by_timer, timer);

    loop_wait_at_most(capped->loop, 0);
}

TEST_LOOP(what_a_timer_asks_of_the_next_wait_is_kept)
{
    struct capped_by_timer capped = {.loop = loop};
    uint64_t began_ms = loop_now_ms();

    loop_timer_init(loop, &capped.timer, timer_cap);
    loop_timer_arm(&capped.timer, 5, 0);
    loop_turn(loop, LONG_MS); /* ends when the timer fires */
    loop_turn(loop, LONG_MS);
    CHECK(loop_now_ms() - began_ms < LONG_MS / 2);
    loop_timer_done(&capped.timer);
}

TEST_LOOP(turn_that_may_not_wait_does_not_wait)
{
    for (int i = 0; i < 1000; i++) {
        loop_turn(loop, 0);
        loop_turn(loop, 1); /* however the clock ticks between being asked and waiting */
    }
}

static void *thread_stop(void *loop)
{
    loop_stop(loop);
    return NULL;
}

static void hook_start_thread(struct loop_hook *hook)
{
    struct capping_hook *capping = container_of(hook, struct capping_hook, hook);
    pthread_t thread;

    if (capping->turns++ == 0) {
        CHECK_INT(pthread_create(&thread, NULL, thread_stop, capping->loop), 0);
        CHECK_INT(pthread_detach(thread), 0);
    }
}

TEST_LOOP(another_thread_stops_a_loop_that_waits_and_it_can_run_again)
{
    for (int i = 0; i < 20; i++) {
        struct capping_hook starts = {.loop = loop};

        loop_hook_add(loop, &starts.hook, hook_start_thread);
        loop_run(loop); /* would wait for ever */
        CHECK(starts.turns >= 1);
        loop_hook_remove(loop, &starts.hook);
    }
}

/* -- jobs, again */

TEST_LOOP(job_works_on_another_thread_and_is_done_once_and_later_on_the_loops_own)
{
    struct watched_job job;

    long_job_run(loop, &job);
    turn_some(loop);
    CHECK_INT(job.done, 0); /* the loop turns, and the job still works */
    long_job_end(&job);
    CHECK_INT(job.done, 0); /* it is over, and the loop has not turned */
    CHECK(turn_until(loop, &job.done, 1));
    CHECK_INT(job.worked, 1);
    CHECK(!pthread_equal(job.worker, pthread_self()));
    CHECK(pthread_equal(job.teller, pthread_self()));
    turn_some(loop);
    CHECK_INT(job.done, 1);
}

TEST_LOOP(jobs_all_end_once_and_may_run_again_or_be_freed_when_they_are_done)
{
    struct watched_job again[JOBS] = {{.loop = NULL}};
    int freed = 0;

    for (int i = 0; i < JOBS; i++) {
        struct watched_job *once = calloc(1, sizeof(*once));

        *once = (struct watched_job){.job = {.work = job_work, .done = job_done_free}, .all_done = &freed};
        again[i] = (struct watched_job){.job = {.work = job_work, .done = job_done_again}, .loop = loop};
        loop_job_run(loop, &once->job);
        loop_job_run(loop, &again[i].job);
    }
    loop_jobs_wait(loop);
    CHECK_INT(freed, JOBS);
    for (int i = 0; i < JOBS; i++) {
        CHECK_INT(again[i].worked, RUNS);
        CHECK_INT(again[i].done, RUNS);
    }
}

static void timer_end_job(struct loop_timer *timer)
{
    struct counted_timer *counted = container_of(timer, struct counted_timer, timer);

    timer_count(timer);
    long_job_end(counted->job);
}

TEST_LOOP(waiting_for_jobs_lasts_until_they_are_done_and_turns_the_loop)
{
    struct watched_job job;
    struct counted_timer timer = {.job = &job};

    loop_jobs_wait(loop); /* none: at once */
    long_job_run(loop, &job);
    loop_timer_init(loop, &timer.timer, timer_end_job);
    loop_timer_arm(&timer.timer, 10, 0);
    loop_jobs_wait(loop);
    CHECK_INT(timer.fired, 1);
    CHECK_INT(job.done, 1);
    loop_timer_done(&timer.timer);
}

/* -- signals, clock */

struct counted_signal {
    struct loop_signal signal;
    int caught;
};

static void signal_count(struct loop_signal *signal)
{
    container_of(signal, struct counted_signal, signal)->caught++;
}

TEST_LOOP(signal_is_caught_on_the_loop)
{
    struct counted_signal disconnect = {0}, user = {0};

    loop_signal_init(loop, &disconnect.signal, SIGHUP, signal_count);
    loop_signal_init(loop, &user.signal, SIGUSR1, signal_count);
    CHECK_INT(kill(getpid(), SIGHUP), 0);
    CHECK_INT(disconnect.caught, 0); /* later, from the loop, not from the handler */
    CHECK(turn_until(loop, &disconnect.caught, 1));
    CHECK_INT(user.caught, 0);
    CHECK_INT(kill(getpid(), SIGUSR1), 0);
    CHECK(turn_until(loop, &user.caught, 1));
    CHECK_INT(disconnect.caught, 1);
    loop_signal_done(&disconnect.signal);
    loop_signal_done(&user.signal);
}

int main(void)
{
    alarm(20); /* a loop that waits for ever must not */
    return check_all();
}
