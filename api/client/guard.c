/* guard.c - a hold that renews itself: its clock, its thread, the arrows of its states (guard.h), whose it
 * is, and the calls of its owner. */
#include "api/client/guard.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* -- its deadline, which only the clock and a good renewal move */

enum { AGAIN_LEAST_MS = 20, AGAIN_MOST_MS = 2000, FIRE_MS = 100 };

void guard_clock_set(int fd, int64_t at_ms, bool *was_over)
{
    struct itimerspec at = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}}, was;

    timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, &was);
    if (was_over != NULL)
        *was_over = was.it_value.tv_sec == 0 && was.it_value.tv_nsec == 0;
}

void guard_clock_fire(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (poll(&ready, 1, 0) > 0)
        return; /* setting it, also to the past, would make it unreadable until the kernel's next interrupt */
    guard_clock_set(fd, 1, NULL);
    while (poll(&ready, 1, FIRE_MS) < 0 && errno == EINTR) {
    }
}

bool guard_clock_move(struct pawl_guard *guard, int64_t deadline_ms)
{
    int64_t before_ms = atomic_load(&guard->deadline_ms);
    bool was_over;

    if (before_ms == 0 || pawl_now_ms() >= before_ms)
        return false;
    guard_clock_set(guard->timer_fd, deadline_ms, &was_over);
    if (was_over) {
        atomic_store(&guard->deadline_ms, 0);
        return false;
    }
    return atomic_compare_exchange_strong(&guard->deadline_ms, &before_ms, deadline_ms);
}

/* When to renew after a good renewal. */
static int64_t clock_next(const struct pawl_grant *grant)
{
    /* A third of the ttl after it began; up to a fifth earlier, so that many do not renew as one. */
    int64_t third_ms = grant->ttl_ms / 3;
    int64_t next_ms = grant->deadline_ms - grant->ttl_ms + client_random_between(third_ms * 4 / 5, third_ms);
    int64_t now_ms = pawl_now_ms();

    return next_ms > now_ms ? next_ms : now_ms;
}

/* The same after one that failed. */
static int64_t clock_again(const struct pawl_grant *grant)
{
    int64_t most_ms = grant->ttl_ms / 20;

    most_ms = most_ms < AGAIN_LEAST_MS ? AGAIN_LEAST_MS : most_ms > AGAIN_MOST_MS ? AGAIN_MOST_MS : most_ms;
    return pawl_now_ms() + client_random_between(most_ms / 2, most_ms);
}

int64_t pawl_guard_remaining_ms(struct pawl_guard *guard)
{
    int64_t deadline_ms, left_ms;

    if (guard == NULL || !guard_is_ours(guard))
        return 0;
    deadline_ms = atomic_load(&guard->deadline_ms);
    while (deadline_ms != 0) {
        left_ms = deadline_ms - pawl_now_ms();
        if (left_ms > 0)
            return left_ms;
        if (atomic_compare_exchange_strong(&guard->deadline_ms, &deadline_ms, 0))
            break;
    }
    return 0;
}

/* -- the thread that keeps the hold */

/* true: it is RENEWING now. */
static bool thread_wait(struct pawl_guard *guard, struct pawl_grant *grant)
{
    struct pollfd ready[] = {{.fd = guard->timer_fd, .events = POLLIN},
                             {.fd = guard->wake_fd, .events = POLLIN}};
    bool held, renew;

    do {
        poll(ready, sizeof(ready) / sizeof(ready[0]), -1);
        pthread_mutex_lock(&guard->lock);
        held = guard_is_held(guard);
        renew = held && ready[1].revents != 0;
        if (renew) {
            guard_become(guard, GUARD_RENEWING);
            guard_clock_set(guard->wake_fd, 0, NULL);
            *grant = guard->grant;
        }
        pthread_mutex_unlock(&guard->lock);
    } while (held && !renew);
    return renew;
}

/* Under the lock: what the end of a renewal means. true: it was renewed. */
static bool thread_end_renewal(struct pawl_guard *guard, const struct pawl_grant *grant,
                               enum pawl_outcome outcome, const struct pawl_problem *problem)
{
    bool good = outcome == PAWL_OK;

    if (!good && strcmp(problem->code, "cancelled") != 0)
        snprintf(guard->last_wrong, sizeof(guard->last_wrong), "%s", problem->detail);
    if (!guard_is_held(guard))
        return false;
    if (outcome == PAWL_LOST) {
        guard_lose(guard, problem);
        return false;
    }
    if (good && !guard_clock_move(guard, grant->deadline_ms)) {
        guard_is_held(guard); /* it has passed: that is noted */
        return false;
    }
    /* Without a good end it is no loss: the deadline that was reported still holds. */
    guard_become(guard, GUARD_HELD);
    if (good) {
        guard->grant = *grant;
        guard->last_wrong[0] = '\0';
    }
    guard_clock_set(guard->wake_fd, good ? clock_next(grant) : clock_again(grant), NULL);
    return good;
}

static void thread_renew(struct pawl_guard *guard, struct pawl_grant *grant)
{
    const int stops[] = {guard->timer_fd, guard->wake_fd, -1};
    struct hold_limits limits = {.attempts = 1, .timeout_ms = guard->pawl->timeout_ms, .stop_fds = stops};
    struct pawl_problem problem;
    enum pawl_outcome outcome;
    /* So that a request that hangs leaves time for another. */
    int64_t third_ms = grant->ttl_ms / 3;
    bool renewed;

    if (limits.timeout_ms > third_ms)
        limits.timeout_ms = (unsigned)third_ms;
    outcome = hold_renew(guard->pawl, grant, 0, &limits, &problem);
    pthread_mutex_lock(&guard->lock);
    renewed = thread_end_renewal(guard, grant, outcome, &problem);
    pthread_mutex_unlock(&guard->lock);
    if (renewed && guard->options.renewed != NULL)
        guard->options.renewed(guard, grant->deadline_ms, guard->options.user);
}

static void thread_tell(struct pawl_guard *guard)
{
    struct pawl_problem loss;
    bool lost;

    pthread_mutex_lock(&guard->lock);
    lost = guard->state == GUARD_LOST;
    if (lost)
        guard_become(guard, GUARD_TOLD);
    loss = guard->loss;
    pthread_mutex_unlock(&guard->lock);
    if (lost && guard->options.lost != NULL)
        guard->options.lost(guard, &loss, guard->options.user);
}

void *guard_thread_run(void *user)
{
    struct pawl_guard *guard = user;
    struct pawl_grant grant;

    atomic_store(&guard->tid, gettid());
    while (thread_wait(guard, &grant))
        thread_renew(guard, &grant);
    thread_tell(guard);
    explicit_bzero(&grant, sizeof(grant));
    atomic_store(&guard->tid, 0); /* the number may be another thread's next */
    return NULL;
}

#define GUARD_OPTIONS_FIRST (offsetof(struct pawl_guard_options, user) + sizeof(void *))

static const char other_process[] =
    "This guard is of the process that opened it, which goes on holding. A child opens its own.";

static const char in_callback[] = "Not from a callback: the guard's thread would wait for itself.";

/* -- whose guard it is
 *
 * A child has a copy of all memory, but no thread that keeps the hold. Its number alone does not show a
 * child: the first process of a namespace and the first of one that it made are both 1, and a number comes
 * back. So there is a page that the kernel clears in every child (madvise(2), MADV_WIPEONFORK). One that
 * shares the memory (vfork(2)) is known by its number. */

bool guard_process_take(struct pawl_guard *guard)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return false;
    (void)madvise(page, size, MADV_WIPEONFORK); /* before Linux 4.14 the number must do */
    *(char *)page = 1;
    guard->process_page = page;
    guard->process = getpid();
    return true;
}

void guard_process_drop(struct pawl_guard *guard)
{
    if (guard->process_page != NULL)
        munmap(guard->process_page, (size_t)sysconf(_SC_PAGESIZE));
}

bool guard_is_ours(const struct pawl_guard *guard)
{
    return guard->process == getpid() && *(const volatile char *)guard->process_page == 1;
}

/* -- its states, and how it is lost */

bool guard_allows(enum guard_state from, enum guard_state to)
{
    static const bool arrows[GUARD_STATES][GUARD_STATES] = {
        [GUARD_HELD] = {[GUARD_RENEWING] = true, [GUARD_LOST] = true, [GUARD_ENDED] = true},
        [GUARD_RENEWING] = {[GUARD_HELD] = true, [GUARD_LOST] = true, [GUARD_ENDED] = true},
        [GUARD_LOST] = {[GUARD_TOLD] = true},
    };

    return arrows[from][to];
}

void guard_become(struct pawl_guard *guard, enum guard_state next)
{
    assert(guard_allows(guard->state, next));
    guard->state = next;
}

void guard_lose(struct pawl_guard *guard, const struct pawl_problem *why)
{
    guard_become(guard, GUARD_LOST);
    guard->loss = *why;
    guard->released = why->status != 0;
    atomic_store(&guard->deadline_ms, 0);
    guard_clock_fire(guard->timer_fd);
}

static void guard_too_late(struct pawl_guard *guard)
{
    struct pawl_problem problem;
    char detail[PAWL_DETAIL_SIZE];

    snprintf(detail, sizeof(detail),
             "The hold could not be renewed in time: stop what it protected. The last attempt: %.*s",
             PAWL_DETAIL_SIZE - 128,
             guard->last_wrong[0] != '\0' ? guard->last_wrong : "none; this process stood still");
    problem_say(&problem, PAWL_LOST, "deadline-passed", detail);
    guard_lose(guard, &problem);
}

bool guard_is_held(struct pawl_guard *guard)
{
    bool held = guard->state == GUARD_HELD || guard->state == GUARD_RENEWING;

    if (held && pawl_guard_remaining_ms(guard) == 0) {
        guard_too_late(guard);
        return false;
    }
    return held;
}

void guard_end(struct pawl_guard *guard)
{
    guard->holds = 0;
    if (guard_is_held(guard)) {
        guard_become(guard, GUARD_ENDED);
        atomic_store(&guard->deadline_ms, 0);
        guard_clock_set(guard->timer_fd, 0, NULL);
        guard_clock_set(guard->wake_fd, 1, NULL);
    }
}

/* -- made and unmade */

static void guard_free(struct pawl_guard *guard)
{
    const int fds[] = {guard->timer_fd, guard->wake_fd};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    guard_process_drop(guard);
    explicit_bzero(&guard->grant, sizeof(guard->grant));
    free(guard);
}

static struct pawl_guard *guard_new(const struct pawl *pawl, const struct pawl_guard_options *options,
                                    struct pawl_problem *problem)
{
    struct pawl_guard *guard = calloc(1, sizeof(*guard));

    if (guard == NULL) {
        problem_no_memory(problem);
        return NULL;
    }
    guard->pawl = pawl;
    guard->holds = 1;
    if (options != NULL)
        client_take(&guard->options, options, sizeof(guard->options));
    guard->timer_fd = client_fd_high(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    guard->wake_fd = client_fd_high(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (guard->timer_fd < 0 || guard->wake_fd < 0 || !guard_process_take(guard) ||
        pthread_mutex_init(&guard->lock, NULL) != 0) {
        problem_say(problem, PAWL_NOT_DONE, "no-resources", "There are no descriptors left, or no memory.");
        guard_free(guard);
        return NULL;
    }
    return guard;
}

static enum pawl_outcome guard_begin(struct pawl_guard *guard, const char *name, const struct pawl_ask *ask,
                                     struct pawl_problem *problem)
{
    enum pawl_outcome outcome = hold_acquire(guard->pawl, name, ask, &guard->grant, NULL, problem);
    struct pawl_problem unused;

    if (outcome != PAWL_OK)
        return outcome;
    atomic_store(&guard->deadline_ms, guard->grant.deadline_ms);
    guard_clock_set(guard->timer_fd, guard->grant.deadline_ms, NULL);
    guard_clock_set(guard->wake_fd, clock_next(&guard->grant), NULL);
    if (client_thread_start(&guard->thread, guard_thread_run, guard) == 0)
        return PAWL_OK;
    outcome = hold_release(guard->pawl, &guard->grant, guard->pawl->attempts, &unused);
    return outcome == PAWL_OK || outcome == PAWL_LOST
               ? problem_say(problem, PAWL_NOT_DONE, "no-resources",
                             "No thread could be started; the lease was given back.")
               : problem_say(problem, PAWL_UNKNOWN, "no-resources",
                             "No thread could be started, and the lease may stay held until its ttl ends.");
}

static bool guard_ask_read(struct pawl_ask *known, const struct pawl_ask *ask,
                           const struct pawl_guard_options *options, struct pawl_problem *problem)
{
    *known = (struct pawl_ask){.size = sizeof(*known)};
    if ((ask != NULL && !client_size_fits(ask->size, ASK_FIRST)) ||
        (options != NULL && !client_size_fits(options->size, GUARD_OPTIONS_FIRST))) {
        problem_wrong(problem, "A struct has no right size.");
        return false;
    }
    if (ask != NULL)
        client_take(known, ask, sizeof(*known));
    if (known->session != NULL) {
        problem_wrong(problem, "The leases of a session are renewed by the session.");
        return false;
    }
    return true;
}

enum pawl_outcome pawl_guard_open(struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                                  const struct pawl_guard_options *options, struct pawl_guard **guard,
                                  struct pawl_problem *problem)
{
    enum pawl_outcome outcome = PAWL_NOT_DONE;
    struct pawl_guard *fresh = NULL;
    struct pawl_problem why;
    struct pawl_ask known;

    if (guard != NULL)
        *guard = NULL;
    if (pawl == NULL || guard == NULL)
        return problem_give_wrong(problem, "A guard and a struct pawl are needed.");
    if (guard_ask_read(&known, ask, options, &why))
        fresh = guard_new(pawl, options, &why);
    if (fresh != NULL) {
        outcome = guard_begin(fresh, name, &known, &why);
        if (outcome == PAWL_OK) {
            *guard = fresh;
        } else {
            pthread_mutex_destroy(&fresh->lock);
            guard_free(fresh);
        }
    }
    return problem_give(problem, &why, outcome);
}

/* -- asked */

int pawl_guard_fd(const struct pawl_guard *guard)
{
    return guard != NULL ? guard->timer_fd : -1;
}

void pawl_guard_grant(const struct pawl_guard *guard, struct pawl_grant *grant)
{
    struct pawl_guard *own = (struct pawl_guard *)(uintptr_t)guard; /* for its lock */

    if (guard == NULL || grant == NULL || !client_size_fits(grant->size, GRANT_FIRST))
        return;
    if (!guard_is_ours(guard)) {
        client_give(grant, &guard->grant, sizeof(guard->grant)); /* nobody changes it there */
        return;
    }
    pthread_mutex_lock(&own->lock);
    client_give(grant, &guard->grant, sizeof(guard->grant));
    pthread_mutex_unlock(&own->lock);
}

/* -- entered and left */

/* What every call says of a guard that was lost. */
static enum pawl_outcome say_lost(const struct pawl_guard *guard, struct pawl_problem *why)
{
    *why = guard->loss;
    return PAWL_LOST;
}

/* Only the process that opened it may: PAWL_OK, and it is locked. */
static enum pawl_outcome guard_lock(struct pawl_guard *guard, struct pawl_problem *why)
{
    problem_reset(why);
    if (guard == NULL)
        return problem_wrong(why, "There is no guard.");
    if (!guard_is_ours(guard))
        return problem_say(why, PAWL_NOT_DONE, "other-process", other_process);
    pthread_mutex_lock(&guard->lock);
    return PAWL_OK;
}

static enum pawl_outcome enter(struct pawl_guard *guard, struct pawl_problem *why)
{
    if (guard_is_held(guard)) {
        guard->holds++;
        return PAWL_OK;
    }
    return guard->state != GUARD_ENDED
               ? say_lost(guard, why)
               : problem_say(why, PAWL_NOT_DONE, "ended", "This guard was released. Open another.");
}

enum pawl_outcome pawl_guard_enter(struct pawl_guard *guard, struct pawl_problem *problem)
{
    struct pawl_problem why;
    enum pawl_outcome outcome = guard_lock(guard, &why);

    if (outcome == PAWL_OK) {
        outcome = enter(guard, &why);
        pthread_mutex_unlock(&guard->lock);
    }
    return problem_give(problem, &why, outcome);
}

/* Says to the service, unless it knows, that it is not held any more. */
static enum pawl_outcome guard_release(struct pawl_guard *guard, struct pawl_problem *problem)
{
    enum pawl_outcome outcome = PAWL_OK;
    struct pawl_grant grant;
    bool lost, released;

    pthread_mutex_lock(&guard->lock);
    lost = guard->state != GUARD_ENDED;
    released = guard->released;
    grant = guard->grant;
    pthread_mutex_unlock(&guard->lock);
    if (!released)
        outcome = hold_release(guard->pawl, &grant, lost ? 1 : guard->pawl->attempts, problem);
    explicit_bzero(&grant, sizeof(grant));
    pthread_mutex_lock(&guard->lock);
    guard->released = outcome == PAWL_OK || outcome == PAWL_LOST;
    if (lost)
        outcome = say_lost(guard, problem);
    pthread_mutex_unlock(&guard->lock);
    return outcome;
}

static bool is_its_thread(struct pawl_guard *guard)
{
    return atomic_load(&guard->tid) == gettid();
}

/* last: it is to be released. */
static enum pawl_outcome leave(struct pawl_guard *guard, bool *last, struct pawl_problem *why)
{
    bool held = guard_is_held(guard);

    if (guard->holds == 1) {
        if (held && is_its_thread(guard))
            return problem_say(why, PAWL_NOT_DONE, "in-callback", in_callback);
        guard_end(guard);
        *last = true;
        return PAWL_OK;
    }
    if (guard->state == GUARD_ENDED)
        return problem_say(why, PAWL_NOT_DONE, "ended", "This guard was left as often as it was entered.");
    guard->holds -= guard->holds > 0;
    return held ? PAWL_OK : say_lost(guard, why);
}

enum pawl_outcome pawl_guard_leave(struct pawl_guard *guard, struct pawl_problem *problem)
{
    struct pawl_problem why;
    enum pawl_outcome outcome = guard_lock(guard, &why);
    bool last = false;

    if (outcome == PAWL_OK) {
        outcome = leave(guard, &last, &why);
        pthread_mutex_unlock(&guard->lock);
    }
    if (last)
        outcome = guard_release(guard, &why);
    return problem_give(problem, &why, outcome);
}

enum pawl_outcome pawl_guard_close(struct pawl_guard *guard, struct pawl_problem *problem)
{
    struct pawl_problem why;
    enum pawl_outcome outcome = PAWL_OK;

    problem_reset(&why);
    if (guard != NULL && !guard_is_ours(guard)) {
        guard_free(guard);
    } else if (guard != NULL && is_its_thread(guard)) {
        outcome = problem_say(&why, PAWL_NOT_DONE, "in-callback", in_callback);
    } else if (guard != NULL) {
        pthread_mutex_lock(&guard->lock);
        guard_end(guard);
        pthread_mutex_unlock(&guard->lock);
        pthread_join(guard->thread, NULL);
        outcome = guard_release(guard, &why);
        pthread_mutex_destroy(&guard->lock);
        guard_free(guard);
    }
    return problem_give(problem, &why, outcome);
}
