/* hold.c - pawl run: the lease is taken, waited for, and given back.
 *
 *   run_hold_open    the lease       75 | 125 | 128 and the signal that came meanwhile, or go on
 *   hold_renewed     (the guard's thread) the watchdog hears the later deadline
 *   hold_lost        (the guard's thread) the loop hears why
 *   run_hold_close   the release */
#include "api/cli/run/run.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/request.h"
#include "api/client/client.h"
#include "shared/text/utf8.h"

/* -- the line on the terminal: who holds the lease that is waited for */

enum { FIRST_MS = 300, AGAIN_MS = 1000, LOOK_MS = 1000, LINE_SIZE = 512 };

struct run_show {
    const char *name;
    struct pawl *pawl;
    pthread_t thread;
    pthread_mutex_t lock; /* of the line: nothing is drawn once it is over */
    bool over, drawn;
    int stop_fd;
    int terminal_fd; /* of its own, which waits for nobody: a terminal may stand still (Ctrl-S) */
};

/* Who writes from behind may be stopped for it (stty tostop). */
static bool is_in_front(void)
{
    return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static unsigned columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* How much of a text goes into so many places: whole characters. */
static int part_of(const char *text, size_t most)
{
    return (int)utf8_cut(bytes_of(text), most).len;
}

/* On a narrow terminal less, but always how long, and how many: the two names are cut. */
static void line_make(const struct run_show *show, const struct pawl_view *view, char line[LINE_SIZE])
{
    size_t most = columns() - 1, name_len = strlen(show->name), holder_len = strlen(view->holder), used, room;
    char held[PRINT_DURATION_SIZE], left[PRINT_DURATION_SIZE], rest[PRINT_DURATION_SIZE + 32];

    print_duration(held, view->held_for_ms);
    print_duration(left, view->expires_in_ms);
    if (view->state == PAWL_TAKEN) {
        snprintf(line, LINE_SIZE, "waiting for %s: held by %s for %s (ends in %s if not renewed); %u in line",
                 show->name, view->holder, held, left, view->waiting);
        snprintf(rest, sizeof(rest), ", %s left; %u in line", left, view->waiting);
        used = strlen(": held by ") + strlen(rest);
        room = most > used ? most - used : 0;
        if (strlen(line) > most) {
            size_t half = name_len < room / 2     ? room - name_len
                          : holder_len < room / 2 ? holder_len
                                                  : room / 2;

            snprintf(line, LINE_SIZE, "%.*s: held by %.*s%s", part_of(show->name, room - half), show->name,
                     part_of(view->holder, half), view->holder, rest);
        }
    } else {
        snprintf(line, LINE_SIZE, "waiting for %s: %s; %u in line", show->name,
                 view->state == PAWL_DELAYED ? "nobody holds it, but it is delayed after a loss"
                                             : "it is free",
                 view->waiting);
    }
}

static const char line_begin[] = "\r\033[K";

/* No longer than the terminal is wide: what has gone on to the next line cannot be drawn over. */
static void line_draw(struct run_show *show, const char *line)
{
    size_t len = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        return;
    fputs(line_begin, out);
    print_safe(out, (struct bytes){line, (size_t)part_of(line, columns() - 1)});
    pthread_mutex_lock(&show->lock);
    if (fclose(out) == 0 && !show->over && is_in_front()) {
        (void)!write(show->terminal_fd, text, len); /* what is not taken now is not shown */
        show->drawn = true;
    }
    pthread_mutex_unlock(&show->lock);
    free(text);
}

static void *show_run(void *user)
{
    struct run_show *show = user;
    struct pollfd stop = {.fd = show->stop_fd, .events = POLLIN};
    struct pawl_view view = {.size = sizeof(view)};
    char line[LINE_SIZE];

    for (int pause_ms = FIRST_MS; poll(&stop, 1, pause_ms) == 0; pause_ms = AGAIN_MS) {
        if (pawl_look(show->pawl, show->name, &view, NULL) == PAWL_OK)
            line_make(show, &view, line);
        else
            snprintf(line, sizeof(line), "waiting for the lease service: it cannot be reached");
        line_draw(show, line);
    }
    return NULL;
}

static void show_done(struct run_show *show)
{
    pawl_close(show->pawl);
    if (show->stop_fd >= 0)
        close(show->stop_fd);
    if (show->terminal_fd >= 0)
        close(show->terminal_fd);
    pthread_mutex_destroy(&show->lock);
    free(show);
}

struct run_show *run_show_begin(const char *name, const char *lease_url)
{
    struct pawl_options options = {
        .size = sizeof(options), .lease_url = lease_url, .timeout_ms = LOOK_MS, .attempts = 1};
    struct run_show *show;

    if (isatty(STDERR_FILENO) == 0 || !is_in_front())
        return NULL;
    show = cli_alloc(sizeof(*show));
    *show = (struct run_show){.name = name, .pawl = pawl_open(&options, NULL)};
    pthread_mutex_init(&show->lock, NULL);
    show->stop_fd = eventfd(0, EFD_CLOEXEC);
    show->terminal_fd = open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (show->pawl == NULL || show->stop_fd < 0 || show->terminal_fd < 0 ||
        client_thread_start(&show->thread, show_run, show) != 0) {
        show_done(show);
        return NULL;
    }
    return show;
}

void run_show_end(struct run_show *show)
{
    const uint64_t one = 1;

    if (show == NULL)
        return;
    (void)!write(show->stop_fd, &one, sizeof(one));
    pthread_mutex_lock(&show->lock);
    show->over = true;
    if (show->drawn && is_in_front())
        (void)!write(show->terminal_fd, line_begin, strlen(line_begin));
    pthread_mutex_unlock(&show->lock);
}

void run_show_free(struct run_show *show)
{
    if (show != NULL) {
        pthread_join(show->thread, NULL);
        show_done(show);
    }
}

enum {
    GRACE_MOST_MS = 5000, /* from the signal to SIGKILL, unless --kill-after says otherwise */
    MARGIN_LEAST_MS = 20, /* from SIGKILL to the end of the hold: until the machine has come to it */
    MARGIN_MOST_MS = 1000,
    RELEASE_MOST_MS = 3000
};

/* -- times */

int64_t run_hold_grace_ms(const struct run *run, int64_t ttl_ms)
{
    int64_t usual_ms = ttl_ms / 4 < GRACE_MOST_MS ? ttl_ms / 4 : GRACE_MOST_MS;

    if (run->on_lost != RUN_ON_LOST_TERM)
        return 0;
    return run->kill_after_ms > 0 ? (int64_t)run->kill_after_ms : usual_ms;
}

int64_t run_hold_margin_ms(int64_t ttl_ms)
{
    int64_t margin_ms = ttl_ms / 20;

    return margin_ms < MARGIN_LEAST_MS  ? MARGIN_LEAST_MS
           : margin_ms > MARGIN_MOST_MS ? MARGIN_MOST_MS
                                        : margin_ms;
}

void run_hold_times(const struct run *run, const struct pawl_grant *grant, int64_t *signal_ms,
                    int64_t *kill_ms)
{
    *signal_ms = *kill_ms = RUN_NEVER_MS;
    if (run->on_lost != RUN_ON_LOST_WARN)
        *kill_ms = grant->deadline_ms - run_hold_margin_ms(grant->ttl_ms);
    if (run->on_lost == RUN_ON_LOST_TERM)
        *signal_ms = *kill_ms - run_hold_grace_ms(run, grant->ttl_ms);
}

/* -- on the guard's thread */

static void hold_renewed(struct pawl_guard *guard, int64_t deadline_ms, void *user)
{
    struct run *run = user;
    struct pawl_grant grant = {.size = sizeof(grant)};
    struct run_word word = {.kind = RUN_WORD_TIMES};

    pawl_guard_grant(guard, &grant);
    grant.deadline_ms = deadline_ms;
    run_hold_times(run, &grant, &word.signal_ms, &word.kill_ms);
    /* One that is not heard: the watchdog is too early, not too late. */
    run_word_say(run->watchdog_fd, &word);
    atomic_store(&run->deadline_ms, deadline_ms);
    explicit_bzero(&grant, sizeof(grant));
}

static void hold_lost(struct pawl_guard *guard, const struct pawl_problem *problem, void *user)
{
    struct run *run = user;
    const uint64_t one = 1;

    (void)guard;
    run->loss = *problem;
    (void)!write(run->loss_fd, &one, sizeof(one));
}

/* -- taken */

static int hold_refused(const struct run *run, enum pawl_outcome outcome, const struct pawl_problem *problem)
{
    char left[PRINT_DURATION_SIZE], buf[LINE_SIZE * 2];
    struct bytes advice = cli_advice(bytes_of(problem->detail), buf, sizeof(buf));
    const char *remedy = request_access_remedy(problem->detail);

    if (outcome == PAWL_HELD && problem->holder[0] != '\0' && problem->expires_in_ms > 0)
        return cli_fail(RUN_NOT_OBTAINED, "%s is held by %s, for another %s if it is not renewed", run->name,
                        problem->holder, print_duration(left, problem->expires_in_ms));
    if (outcome == PAWL_HELD)
        return cli_fail(RUN_NOT_OBTAINED, "%s was not obtained: %.*s", run->name, (int)advice.len, advice.at);
    cli_fail(RUN_FAILED, "%s could not be acquired, and the command was not started: %.*s", run->name,
             (int)advice.len, advice.at);
    if (strcmp(problem->code, "not-sent") == 0)
        cli_hint("%s",
                 remedy != NULL ? remedy : "Is it running (pawl dev starts one), and is --lease-url right?");
    return RUN_FAILED;
}

int run_hold_open(struct run *run)
{
    const struct pawl_options options = {.size = sizeof(options), .lease_url = run->lease_url};
    const struct pawl_guard_options told = {
        .size = sizeof(told), .lost = hold_lost, .renewed = hold_renewed, .user = run};
    struct pawl_problem problem = {.size = sizeof(problem)};
    enum pawl_outcome outcome = PAWL_NOT_DONE;
    int number;

    run->pawl = pawl_open(&options, &problem);
    if (run->pawl != NULL) {
        run->pawl->sending = run->trace ? run_trace_request : NULL;
        run->show = run->ask.wait_ms > 0 && !run->trace ? run_show_begin(run->name, run->lease_url) : NULL;
        run->ask.cancel_fd = &run->signal_fd;
        outcome = pawl_guard_open(run->pawl, run->name, &run->ask, &told, &run->guard, &problem);
        run_show_end(run->show);
        if (outcome != PAWL_OK)
            run_show_free(run->show); /* else when the lease is given back */
    }
    if (outcome == PAWL_OK) {
        int64_t unknown = 0;

        run->grant.size = sizeof(run->grant);
        pawl_guard_grant(run->guard, &run->grant);
        /* A renewal may have set a later one already. */
        atomic_compare_exchange_strong(&run->deadline_ms, &unknown, run->grant.deadline_ms);
        return CLI_GO_ON;
    }
    number = outcome == PAWL_HELD ? 0 : run_signals_next(run);
    return number != 0 ? RUN_SIGNALLED + number : hold_refused(run, outcome, &problem);
}

/* -- given back */

struct release {
    struct run *run;
    enum pawl_outcome outcome;
    struct pawl_problem problem;
    int done_fd;
};

static void *release_run(void *user)
{
    struct release *release = user;
    const uint64_t one = 1;

    release->problem.size = sizeof(release->problem);
    release->outcome = pawl_guard_close(release->run->guard, &release->problem);
    (void)!write(release->done_fd, &one, sizeof(one));
    return NULL;
}

/* Whether it came to its end in time. */
static bool release_wait(struct release *release, pthread_t thread)
{
    struct pollfd done = {.fd = release->done_fd, .events = POLLIN};

    if (poll(&done, 1, RELEASE_MOST_MS) <= 0)
        return false;
    pthread_join(thread, NULL);
    return true;
}

static int release_tell(const struct release *release, int status)
{
    const struct run *run = release->run;

    if (release->outcome == PAWL_LOST && !run->lost && !run->ended_in_time) {
        cli_fail(RUN_LOST, "the hold of %s was over before the command was: %s", run->name,
                 release->problem.detail);
        return run->on_lost == RUN_ON_LOST_WARN && status != 0 ? status : RUN_LOST;
    }
    if (release->outcome == PAWL_NOT_DONE || release->outcome == PAWL_UNKNOWN) {
        cli_hint("%s was not given back (%s); it ends by itself within its ttl.", run->name,
                 release->problem.detail);
    }
    return status;
}

int run_hold_close(struct run *run, int status)
{
    struct release release = {.run = run, .done_fd = eventfd(0, EFD_CLOEXEC)};
    pthread_t thread;

    /* A thread, because a service that does not answer may take longer than anybody wants to wait. */
    if (release.done_fd < 0 || pthread_create(&thread, NULL, release_run, &release) != 0) {
        release_run(&release);
    } else if (!release_wait(&release, thread)) {
        run_tell_rest(&run->deferred);
        cli_hint("%s was not given back: the service does not answer. It ends by itself within its ttl.",
                 run->name);
        run_group_close(&run->group);
        fflush(NULL);
        _exit(status); /* that thread may be within a request */
    }
    close(release.done_fd);
    run_show_free(run->show);
    run_tell_rest(&run->deferred);
    return release_tell(&release, status);
}
