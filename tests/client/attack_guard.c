/* attack_guard.c - guards: many threads at once, hundreds of them, without descriptors, and after fork(). */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/attack.h"

enum { THREADS = 8, MANY = 400, FDS_MAX = 4096, TTL_MS = 4000, FORKS = 100 };

/* -- many threads */

struct storm {
    struct pawl_guard *guard;
    pthread_t threads[THREADS];
    char code[THREADS][PAWL_CODE_SIZE]; /* each thread's own, of the first loss it was told */
    _Atomic int stop, next, told;
};

static void *storm_run(void *user)
{
    struct storm *storm = user;
    char *code = storm->code[storm->next++];
    struct pawl_problem problem = {.size = sizeof(problem)};

    while (!storm->stop) {
        enum pawl_outcome outcome = pawl_guard_enter(storm->guard, &problem);

        if (outcome == PAWL_OK) {
            CHECK(code[0] == '\0'); /* what is lost stays lost */
            outcome = pawl_guard_leave(storm->guard, &problem);
        }
        if (outcome != PAWL_OK) {
            CHECK(outcome == PAWL_LOST && pawl_guard_remaining_ms(storm->guard) == 0);
            CHECK(code[0] == '\0' || strcmp(code, problem.code) == 0);
            if (code[0] == '\0') {
                snprintf(code, PAWL_CODE_SIZE, "%s", problem.code);
                storm->told++;
            }
        }
    }
    return NULL;
}

/* A descriptor that was readable once, stays so. */
static void watch_descriptor(const struct storm *storm, const struct seen *seen)
{
    struct pollfd ready = {.fd = pawl_guard_fd(storm->guard), .events = POLLIN};

    CHECK(poll(&ready, 1, DEADLINE_MS) == 1);
    while ((seen->lost == 0 || storm->told < THREADS) && CHECK(poll(&ready, 1, 0) == 1)) {
    }
}

static void storm(const char *name, void (*end)(struct pawl_guard *guard))
{
    struct seen seen = {.lost = 0};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct storm storm = {.guard = guard_of(name, 1500, &seen)};

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&storm.threads[i], NULL, storm_run, &storm) == 0);
    end(storm.guard);
    watch_descriptor(&storm, &seen);
    wait_for(&seen.lost, 1);
    wait_for(&storm.told, THREADS);
    storm.stop = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(storm.threads[i], NULL);
        CHECK(strcmp(storm.code[i], seen.code) == 0);
    }
    SAID(pawl_guard_close(storm.guard, &problem), PAWL_LOST, seen.code);
    CHECK(seen.lost == 1);
}

static void attack_storm(const char *name)
{
    storm(name, take_away);
}

static void told_by_the_test(struct pawl_guard *guard)
{
    (void)guard;
    puts("go");
    fflush(stdout);
}

/* The service stands still: it is lost at its deadline. */
static void attack_deadline(const char *name)
{
    storm(name, told_by_the_test);
}

/* -- many guards, no descriptors */

static int entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void attack_many(const char *name)
{
    int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    struct rlimit limit;
    static struct pawl_guard *guards[MANY];
    struct seen seen = {.lost = 0};
    char one[PAWL_NAME_SIZE + 16];

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < FDS_MAX ? limit.rlim_max : FDS_MAX;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < MANY; i++) {
        snprintf(one, sizeof(one), "%.100s-%d", name, i);
        guards[i] = guard_of(one, 10000, &seen);
    }
    CHECK(entries("/proc/self/task") - threads >= MANY);
    CHECK(entries("/proc/self/fd") - fds >= 2 * MANY);
    wait_for(&seen.renewed, MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK(pawl_guard_remaining_ms(guards[i]) > 0);
        CHECK(pawl_guard_close(guards[i], NULL) == PAWL_OK);
    }
    CHECK(seen.lost == 0);
    CHECK(entries("/proc/self/fd") == fds);
}

static int take_descriptors(int *fds)
{
    int count = 0;

    while (count < FDS_MAX && (fds[count] = dup(0)) >= 0)
        count++;
    return count;
}

static void attack_descriptors(const char *name)
{
    static int fds[FDS_MAX];
    struct rlimit limit = {64, 64};
    struct seen seen = {.lost = 0};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_guard *guard = guard_of(name, TTL_MS, &seen), *other = NULL;
    struct pawl_grant grant = {.size = sizeof(grant)};
    int count, before;

    setrlimit(RLIMIT_NOFILE, &limit);
    wait_for(&seen.renewed, 1);
    count = take_descriptors(fds);
    CHECK(count > 0 && errno == EMFILE);
    SAID(pawl_guard_open(pawl, "none", NULL, NULL, &other, &problem), PAWL_NOT_DONE, "no-resources");
    CHECK(other == NULL);
    CHECK(pawl_acquire(pawl, "none", NULL, &grant, &problem) == PAWL_NOT_DONE);
    close(fds[--count]);
    close(fds[--count]); /* enough for a guard, not for a question */
    CHECK(pawl_guard_open(pawl, "none", NULL, NULL, &other, &problem) == PAWL_NOT_DONE && other == NULL);
    fds[count++] = dup(0);
    fds[count++] = dup(0);
    /* A good renewal would have come by then: a renewal failed for want of them. */
    while (pawl_guard_remaining_ms(guard) > TTL_MS - TTL_MS / 3 - 100)
        poll(NULL, 0, 5);
    SAID(pawl_guard_enter(guard, &problem), PAWL_OK, "");
    before = seen.renewed;
    while (count > 0)
        close(fds[--count]);
    wait_for(&seen.renewed, before + 1);
    CHECK(seen.lost == 0);
    SAID(pawl_guard_close(guard, &problem), PAWL_OK, "");
}

/* -- fork */

/* other: a lease that it takes and gives back by the same client; NULL: it takes none. */
static int child_of(struct pawl_guard *guard, const char *other)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_grant grant = {.size = sizeof(grant)};

    failed = 0;
    CHECK(pawl_guard_remaining_ms(guard) == 0);
    SAID(pawl_guard_enter(guard, &problem), PAWL_NOT_DONE, "other-process");
    SAID(pawl_guard_leave(guard, &problem), PAWL_NOT_DONE, "other-process");
    pawl_guard_grant(guard, &grant);
    CHECK(grant.token > 0);
    SAID(pawl_guard_close(guard, &problem), PAWL_OK, "");
    if (other != NULL) {
        SAID(pawl_acquire(pawl, other, NULL, &grant, &problem), PAWL_OK, "");
        SAID(pawl_release(pawl, &grant, &problem), PAWL_OK, "");
    }
    return failed;
}

static void fork_once(struct pawl_guard *guard, const char *other)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(child_of(guard, other));
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

/* At any moment of the guard's thread and of others that enter and leave: a child waits for nobody's lock. */
static void attack_fork(const char *name)
{
    struct seen seen = {.lost = 0};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct storm storm = {.guard = guard_of(name, 300000, &seen)};

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&storm.threads[i], NULL, storm_run, &storm) == 0);
    for (int i = 0; i < FORKS; i++)
        fork_once(storm.guard, i == 0 ? "of-a-child" : NULL);
    storm.stop = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(storm.threads[i], NULL);
    SAID(pawl_guard_close(storm.guard, &problem), PAWL_OK, "");
    CHECK(seen.lost == 0);
}

/* The first process of a container that makes another: both are number 1. */
static void attack_namespace(const char *name)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_guard *guard;

    CHECK(getpid() == 1);
    guard = guard_of(name, 5000, NULL);
    CHECK(unshare(CLONE_NEWPID) == 0);
    fork_once(guard, NULL);
    SAID(pawl_guard_enter(guard, &problem), PAWL_OK, "");
    SAID(pawl_guard_close(guard, &problem), PAWL_OK, "");
}

int main(int argc, char **argv)
{
    static const struct attack attacks[] = {
        {"storm", attack_storm},
        {"deadline", attack_deadline},
        {"many", attack_many},
        {"fork", attack_fork},
        {"descriptors", attack_descriptors},
        {"namespace", attack_namespace},
        {NULL, NULL},
    };

    return attack_main(argc, argv, attacks);
}
