/* loop.c - pawl run, while the command runs.
 *
 *   a signal comes                    passed on to the command's group
 *   the command stops (Ctrl-Z)        we stop too, and give it the terminal again when we are continued
 *   the hold is lost                  said; the watchdog ends the command (or, "warn", it runs on)
 *   the watchdog says what it does    said: 76
 *   the watchdog is gone              the command is killed: 125
 *   the command has ended             what it left behind is killed: its own status, if nothing of that
 *
 * When the watchdog, which kills a margin before the deadline, has not, this process does it half a margin
 * before: two are slower to fail than one. */
#include "api/cli/run/run.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/request.h"

/* -- what is said on standard error, which waits for nobody */

/* A pipe that is ready takes PIPE_BUF bytes at least (pipe(7)), and no line is longer. */
static bool fits_now(void)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&ready, 1, 0) == 1;
}

static void line_say(const struct run_line *line)
{
    if (line->kind == RUN_LINE_WRONG)
        cli_fail(0, "%s", line->text);
    else
        cli_hint("%s", line->text);
}

void run_tell(struct run_deferred *deferred, enum run_line_kind kind, const char *format, ...)
{
    struct run_line line = {.kind = kind};
    va_list args;

    va_start(args, format);
    vsnprintf(line.text, sizeof(line.text), format, args);
    va_end(args);
    if (deferred->count == 0 && fits_now())
        line_say(&line);
    else if (deferred->count < RUN_DEFERRED_MAX)
        deferred->lines[deferred->count++] = line;
}

void run_tell_rest(struct run_deferred *deferred)
{
    for (unsigned i = 0; i < deferred->count; i++)
        line_say(&deferred->lines[i]);
    deferred->count = 0;
}

void run_trace_request(const struct http_client_request *request)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        return;
    trace_curl(out, request, NULL);
    if (fclose(out) == 0 && len <= PIPE_BUF && fits_now())
        (void)!write(STDERR_FILENO, text, len); /* in one piece, whichever thread it is */
    free(text);
}

/* -- while the command runs */

enum { KILLED_MOST_MS = 1000, WAIT_MOST_MS = 30000 };

enum watched { WATCHED_SIGNALS, WATCHED_DOG, WATCHED_LOSS, WATCHED_DEADLINE, WATCHED_COUNT };

struct watch_over {
    struct pollfd ready[WATCHED_COUNT];
    bool dog_gone;
    bool left_behind; /* something that could not be killed */
};

/* -- the hold is lost */

static void loss_tell(struct run *run, const char *why, const char *then)
{
    if (run->ended_in_time)
        return; /* we stood still, and hear only now of both */
    if (!run->lost) {
        run_tell(&run->deferred, RUN_LINE_WRONG, "the hold of %s is lost: %s", run->name, why);
        run_tell(&run->deferred, RUN_LINE_HINT, "%s", then);
    }
    run->lost = true;
}

static const char *loss_then(const struct run *run, enum run_on_lost how)
{
    if (how != RUN_ON_LOST_WARN && !run_group_may_signal(&run->group)) {
        return run->group.kill_fd >= 0
                   ? "The command became another user's: it cannot be signalled, and is killed by its cgroup."
                   : "The command became another user's: it can be neither signalled nor killed.";
    }
    switch (how) {
    case RUN_ON_LOST_TERM: return "The command is signalled now, and killed when its time is over.";
    case RUN_ON_LOST_KILL: return "The command is killed.";
    case RUN_ON_LOST_WARN: return "The command runs on, unprotected, as --on-lost warn says.";
    }
    return "";
}

static void loss_act(struct run *run, int64_t now_ms)
{
    int64_t deadline_ms = atomic_load(&run->deadline_ms);
    struct run_word word = {.kind = RUN_WORD_LOST, .signal_ms = now_ms};

    word.kill_ms = now_ms + run_hold_grace_ms(run, run->grant.ttl_ms);
    /* It may be reported only because the deadline has passed. */
    if (word.kill_ms > deadline_ms)
        word.kill_ms = deadline_ms;
    if (!run->killed)
        run->kill_ms = word.kill_ms;
    run_word_say(run->watchdog_fd, &word);
}

/* A service says so, or the guard's thread found that the deadline has passed. */
static void loss_heard(struct run *run, struct watch_over *over)
{
    uint64_t told;

    if (read(run->loss_fd, &told, sizeof(told)) != (ssize_t)sizeof(told))
        return; /* what the guard's thread has written before it is ours only behind this */
    over->ready[WATCHED_LOSS].fd = over->ready[WATCHED_DEADLINE].fd = -1;
    if (run->on_lost != RUN_ON_LOST_WARN)
        loss_act(run, pawl_now_ms());
    loss_tell(run, run->loss.detail, loss_then(run, run->on_lost));
}

/* Readable when the deadline has passed, and also just before the guard's thread reports a loss. */
static void deadline_passed(struct run *run, struct watch_over *over, int64_t now_ms)
{
    over->ready[WATCHED_DEADLINE].fd = -1;
    if (run->on_lost != RUN_ON_LOST_WARN && !run->killed && now_ms >= atomic_load(&run->deadline_ms))
        run->kill_ms = 0;
}

static int64_t last_ms(const struct run *run)
{
    return run->on_lost == RUN_ON_LOST_WARN || run->killed
               ? RUN_NEVER_MS
               : atomic_load(&run->deadline_ms) - run_hold_margin_ms(run->grant.ttl_ms) / 2;
}

static void kill_now(struct run *run)
{
    run_group_kill(&run->group);
    run->kill_ms = run->killed ? RUN_NEVER_MS : pawl_now_ms() + KILLED_MOST_MS;
    run->killed = true;
}

static void kill_when_due(struct run *run, int64_t now_ms)
{
    if (run->kill_ms == RUN_NEVER_MS || now_ms < run->kill_ms)
        return;
    if (run->killed) {
        run_tell(&run->deferred, RUN_LINE_WRONG,
                 "the command could not be killed within a second and still runs, unprotected: it is another "
                 "user's, or waits for a disk");
    }
    kill_now(run);
}

/* -- the watchdog */

static void dog_hear(struct run *run, struct watch_over *over)
{
    struct run_word word;
    enum run_heard heard;

    while ((heard = run_word_hear(run->watchdog_fd, &word)) == RUN_HEARD_WORD) {
        bool killed = word.kind == RUN_WORD_KILLED;

        if (word.kind == RUN_WORD_ENDED)
            run->ended_in_time = true;
        else if (killed || word.kind == RUN_WORD_SIGNALLED)
            loss_tell(run, "it could not be renewed in time.",
                      loss_then(run, killed ? RUN_ON_LOST_KILL : run->on_lost));
    }
    if (heard == RUN_HEARD_END && !over->dog_gone) {
        over->dog_gone = true;
        over->ready[WATCHED_DOG].fd = -1;
        kill_now(run);
        run_tell(&run->deferred, RUN_LINE_WRONG,
                 "the watchdog has gone; without it the command is not safe, and is killed");
    }
}

/* -- signals, and the terminal */

static void front_again(struct run *run)
{
    if ((run->terminal.at_once || run->terminal.given) && run_terminal_is_front(&run->terminal))
        run_terminal_give(&run->terminal, run->group.pid);
    run_group_signal(&run->group, SIGCONT);
}

static void signals_pass_on(struct run *run)
{
    int number;

    while ((number = run_signals_next(run)) != 0) {
        if (number == SIGCONT) {
            front_again(run);
        } else if (number == SIGTSTP) {
            run->stop_passed_on = true;
            run_group_signal(&run->group, number);
        } else if (number != SIGCHLD && number != SIGTTIN && number != SIGTTOU) {
            run_group_signal(&run->group, number);
        }
    }
}

static void command_stopped(struct run *run, int number)
{
    char left[PRINT_DURATION_SIZE];

    if (run->lost) {
        run_group_signal(&run->group, SIGCONT);
        return;
    }
    if ((number == SIGTTIN || number == SIGTTOU) && run_terminal_is_front(&run->terminal)) {
        run_terminal_give(&run->terminal, run->group.pid);
        run_group_signal(&run->group, SIGCONT);
        return;
    }
    if (!run->terminal.is_ours && !run->stop_passed_on)
        return; /* somebody else stopped it, and continues it; the lease is renewed */
    run->stop_passed_on = false;
    run_terminal_take(&run->terminal);
    run_tell(&run->deferred, RUN_LINE_HINT,
             "pawl: while it is stopped, %s is not renewed; it is held for another %s.", run->name,
             print_duration(left, pawl_guard_remaining_ms(run->guard)));
    run_signals_stop_self();
    front_again(run);
}

/* -- the command's end */

static bool command_ended(struct run *run, siginfo_t *end)
{
    *end = (siginfo_t){0};
    if (waitid(P_PID, (id_t)run->group.pid, end, WSTOPPED | WNOHANG) == 0 && end->si_pid != 0)
        command_stopped(run, end->si_status);
    return run_orphans_reap(run, end);
}

static int end_status(const struct run *run, const struct watch_over *over, const siginfo_t *end)
{
    int own = end->si_code == CLD_EXITED ? end->si_status : RUN_SIGNALLED + end->si_status;

    if (run->lost && run->on_lost == RUN_ON_LOST_WARN)
        return own != 0 ? own : RUN_LOST;
    if (own == 0 && over->left_behind)
        own = RUN_FAILED;
    return run->lost ? RUN_LOST : over->dog_gone ? RUN_FAILED : own;
}

static int command_over(struct run *run, struct watch_over *over, const siginfo_t *end)
{
    bool hold_over = pawl_guard_remaining_ms(run->guard) == 0;
    siginfo_t gone;

    dog_hear(run, over);
    if (!run->ended_in_time && hold_over)
        loss_tell(run, "it was over before the command was.", "The command has ended.");
    run_group_kill(&run->group);
    run_word_say(run->watchdog_fd, &(struct run_word){.kind = RUN_WORD_DONE});
    waitid(P_PID, (id_t)run->group.pid, &gone, WEXITED);
    over->left_behind = !run_orphans_end(run);
    if (over->left_behind) {
        run_tell(
            &run->deferred, RUN_LINE_WRONG,
            "what the command left behind could not be killed within a second, and runs on, unprotected");
    }
    run_terminal_take(&run->terminal);
    if (end->si_code != CLD_EXITED)
        run_terminal_restore(&run->terminal);
    return end_status(run, over, end);
}

/* -- the loop */

static int wait_ms(const struct run *run)
{
    int64_t until_ms = run->kill_ms < last_ms(run) ? run->kill_ms : last_ms(run);
    int64_t left_ms = until_ms - pawl_now_ms();

    return until_ms == RUN_NEVER_MS ? -1
           : left_ms < 0            ? 0
           : left_ms < WAIT_MOST_MS ? (int)left_ms
                                    : WAIT_MOST_MS;
}

int run_loop(struct run *run)
{
    struct watch_over over = {.ready = {{.fd = run->signal_fd, .events = POLLIN},
                                        {.fd = run->watchdog_fd, .events = POLLIN},
                                        {.fd = run->loss_fd, .events = POLLIN},
                                        {.fd = pawl_guard_fd(run->guard), .events = POLLIN}}};
    siginfo_t end;

    while (!command_ended(run, &end)) {
        int64_t now_ms;

        poll(over.ready, WATCHED_COUNT, wait_ms(run));
        /* The time first, then what the watchdog has seen until then: we may stand still anywhere. */
        now_ms = pawl_now_ms();
        dog_hear(run, &over);
        if (over.ready[WATCHED_LOSS].fd >= 0 && over.ready[WATCHED_LOSS].revents != 0)
            loss_heard(run, &over);
        if (over.ready[WATCHED_DEADLINE].fd >= 0 && over.ready[WATCHED_DEADLINE].revents != 0)
            deadline_passed(run, &over, now_ms);
        if (now_ms >= last_ms(run)) {
            loss_tell(run, "it could not be renewed in time.", loss_then(run, RUN_ON_LOST_KILL));
            run->kill_ms = 0;
        }
        kill_when_due(run, now_ms);
        signals_pass_on(run);
    }
    return command_over(run, &over, &end);
}
