/* attack_calls.c - every call of libpawl, without arguments, from callbacks, interrupted by signals, on a
 * little stack, in a language that writes 1,5, and where nothing is open to print to. */
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/client/attack.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THIN_STACK = 1048576 }; /* theirs need more */
#else
enum { THIN_STACK = 65536 };
#endif

/* -- no arguments */

static void without_arguments(void)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_grant grant = {.size = sizeof(grant)};
    struct pawl_view view = {.size = sizeof(view)};
    struct pawl_resource resource = {.size = sizeof(resource)};
    struct pawl_guard *guard = (struct pawl_guard *)&grant;

    SAID(pawl_acquire(NULL, "a", NULL, &grant, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_renew(NULL, &grant, 0, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_release(NULL, &grant, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_look(NULL, "a", &view, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_put(NULL, "a", "1", "x", 1, NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_delete(NULL, "a", "1", NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_get(NULL, "a", NULL, &resource, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_guard_open(NULL, "a", NULL, NULL, &guard, &problem), PAWL_NOT_DONE, "bad-argument");
    CHECK(guard == NULL);
    pawl_close(NULL);
    pawl_resource_done(NULL);
    CHECK(pawl_outcome_text((enum pawl_outcome)77) != NULL);
    SAID(pawl_acquire(pawl, NULL, NULL, &grant, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_acquire(pawl, "a", NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_renew(pawl, NULL, 0, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_renew(pawl, &grant, 0, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_release(pawl, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_release(pawl, &grant, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_look(pawl, NULL, &view, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_look(pawl, "a", NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_put(pawl, NULL, "1", "x", 1, NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_put(pawl, "a", NULL, "x", 1, NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_put(pawl, "a", "1", NULL, 1, NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_delete(pawl, NULL, "1", NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_delete(pawl, "a", NULL, NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_get(pawl, NULL, NULL, &resource, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_get(pawl, "a", NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_guard_open(pawl, NULL, NULL, NULL, &guard, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_guard_open(pawl, "a", NULL, NULL, NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    SAID(pawl_guard_enter(NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    CHECK(strstr(problem.detail, "no guard") != NULL);
    SAID(pawl_guard_leave(NULL, &problem), PAWL_NOT_DONE, "bad-argument");
    CHECK(strstr(problem.detail, "no guard") != NULL);
    SAID(pawl_guard_close(NULL, &problem), PAWL_OK, "");
    CHECK(pawl_guard_remaining_ms(NULL) == 0 && pawl_guard_fd(NULL) == -1);
    pawl_guard_grant(NULL, &grant);
    CHECK(pawl_guard_enter(NULL, NULL) == PAWL_NOT_DONE);
}

static void attack_null(const char *name)
{
    struct pawl_guard *guard = guard_of(name, 5000, NULL);

    without_arguments();
    pawl_guard_grant(guard, NULL);
    CHECK(pawl_guard_enter(guard, NULL) == PAWL_OK && pawl_guard_leave(guard, NULL) == PAWL_OK);
    CHECK(pawl_guard_close(guard, NULL) == PAWL_OK);
}

/* -- callbacks that call back */

static void use_and_release(struct pawl_guard *guard, const char *code)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pollfd ready = {.fd = pawl_guard_fd(guard), .events = POLLIN};

    CHECK(pawl_guard_remaining_ms(guard) == 0 && poll(&ready, 1, 0) == 1);
    SAID(pawl_guard_close(guard, &problem), PAWL_NOT_DONE, "in-callback");
    SAID(pawl_guard_enter(guard, &problem), PAWL_LOST, code);
    SAID(pawl_guard_leave(guard, &problem), PAWL_LOST, code);
    SAID(pawl_guard_leave(guard, &problem), PAWL_LOST, code);
    SAID(pawl_guard_enter(guard, &problem), PAWL_LOST, code);
}

/* Also a guard of another lease, from the first one's thread. */
static void use_another(struct pawl_guard *guard)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_grant grant = {.size = sizeof(grant)};
    char name[PAWL_NAME_SIZE + 8];
    struct pawl_guard *other;

    SAID(pawl_guard_enter(guard, &problem), PAWL_OK, "");
    SAID(pawl_guard_leave(guard, &problem), PAWL_OK, "");
    SAID(pawl_guard_leave(guard, &problem), PAWL_NOT_DONE, "in-callback");
    SAID(pawl_guard_close(guard, &problem), PAWL_NOT_DONE, "in-callback");
    pawl_guard_grant(guard, &grant);
    snprintf(name, sizeof(name), "%.100s-other", grant.name);
    other = guard_of(name, 5000, NULL);
    SAID(pawl_guard_close(other, &problem), PAWL_OK, "");
}

static void attack_callbacks(const char *name)
{
    struct seen seen = {.in_lost = use_and_release, .in_renewed = use_another};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_guard *guard = guard_of(name, 3000, &seen);

    wait_for(&seen.renewed, 2);
    take_away(guard);
    wait_for(&seen.lost, 1);
    SAID(pawl_guard_close(guard, &problem), PAWL_LOST, "lease-lost");
    CHECK(seen.lost == 1 && strcmp(seen.code, "lease-lost") == 0);
}

/* -- signals */

static _Atomic int signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void every_call(const char *name)
{
    struct pawl_resource resource = {.size = sizeof(resource)};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_grant grant = {.size = sizeof(grant)};
    struct pawl_view view = {.size = sizeof(view)};
    struct pawl_ask ask = asked(5000);

    SAID(pawl_acquire(pawl, name, &ask, &grant, &problem), PAWL_OK, "");
    SAID(pawl_renew(pawl, &grant, 6000, &problem), PAWL_OK, "");
    SAID(pawl_look(pawl, name, &view, &problem), PAWL_OK, "");
    SAID(pawl_put(pawl, name, grant.fencing_token, "xyz", 3, NULL, NULL, &problem), PAWL_OK, "");
    SAID(pawl_get(pawl, name, grant.fencing_token, &resource, &problem), PAWL_OK, "");
    CHECK(resource.len == 3);
    pawl_resource_done(&resource);
    SAID(pawl_delete(pawl, name, grant.fencing_token, NULL, NULL, &problem), PAWL_OK, "");
    SAID(pawl_release(pawl, &grant, &problem), PAWL_OK, "");
}

static void every_guard_call(const char *name)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct seen seen = {.lost = 0};
    struct pawl_guard *guard = guard_of(name, 1500, &seen);

    wait_for(&seen.renewed, 1);
    SAID(pawl_guard_enter(guard, &problem), PAWL_OK, "");
    SAID(pawl_guard_leave(guard, &problem), PAWL_OK, "");
    SAID(pawl_guard_leave(guard, &problem), PAWL_OK, "");
    SAID(pawl_guard_close(guard, &problem), PAWL_OK, "");
    CHECK(seen.lost == 0);
}

static void signals_begin(void)
{
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART */
    struct itimerval often = {{0, 500}, {0, 500}};

    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void attack_signals(const char *name)
{
    struct itimerval never = {{0, 0}, {0, 0}};

    signals_begin();
    for (int i = 0; i < 20; i++)
        every_call(name);
    every_guard_call(name);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(signals > 20);
}

/* The test cuts the first attempts, and measures what lies between them. */
static void attack_pauses(const char *name)
{
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_grant grant = {.size = sizeof(grant)};

    signals_begin();
    SAID(pawl_acquire(pawl, name, NULL, &grant, &problem), PAWL_OK, "");
    SAID(pawl_release(pawl, &grant, &problem), PAWL_OK, "");
}

/* -- many threads, and little stacks */

static void *all_run(void *name)
{
    for (int i = 0; i < 20; i++)
        every_call(name);
    every_guard_call(name);
    return NULL;
}

/* With one client. */
static void attack_threads(const char *name)
{
    char names[8][PAWL_NAME_SIZE + 8];
    pthread_t threads[8];

    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof(names[i]), "%.100s-%d", name, i);
        CHECK(pthread_create(&threads[i], NULL, all_run, names[i]) == 0);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

/* The guard's own thread has such a stack too. */
static void attack_stacks(const char *name)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    CHECK(pthread_attr_setstacksize(&attr, THIN_STACK) == 0);
    CHECK(pthread_setattr_default_np(&attr) == 0);
    CHECK(pthread_create(&thread, &attr, all_run, (void *)(uintptr_t)name) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

/* -- the language of the user */

static void attack_locale(const char *name)
{
    CHECK(setlocale(LC_ALL, "") != NULL && strcmp(localeconv()->decimal_point, ",") == 0);
    every_call(name);
    every_guard_call(name);
}

/* -- without standard output and error */

/* Past the thread sanitizer, to which a descriptor that others open and close meanwhile is a race. */
static void *prints(void *is_over)
{
    while (!*(_Atomic int *)is_over)
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
            (void)!syscall(SYS_write, fd, "printed\n", 8);
    return NULL;
}

static void attack_closed(const char *name)
{
    FILE *out = fdopen(dup(STDOUT_FILENO), "w");
    struct seen seen = {.lost = 0};
    struct pawl_guard *guard;
    _Atomic int is_over = 0;
    pthread_t thread;

    stdout = out; /* CHECK says there what fails */
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN);
    CHECK(pthread_create(&thread, NULL, prints, &is_over) == 0);
    for (int i = 0; i < 60; i++)
        every_call(name);
    is_over = 1;
    pthread_join(thread, NULL);
    guard = guard_of(name, 3000, &seen);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(fileno(out), fd); /* in the place of nothing of the guard's */
    wait_for(&seen.renewed, 2);
    CHECK(pawl_guard_close(guard, NULL) == PAWL_OK);
}

int main(int argc, char **argv)
{
    static const struct attack attacks[] = {
        {"null", attack_null},       {"callbacks", attack_callbacks}, {"signals", attack_signals},
        {"threads", attack_threads}, {"stacks", attack_stacks},       {"locale", attack_locale},
        {"pauses", attack_pauses},   {"closed", attack_closed},       {NULL, NULL},
    };

    return attack_main(argc, argv, attacks);
}
