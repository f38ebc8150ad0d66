/* run.c - pawl run: a command that runs while a lease is held.
 *
 *   run_read           the flags                                   125, or go on
 *   run_prepare        signals, a cgroup, the watchdog             125, or go on
 *   run_hold_open      the lease, and the wait for it              75 | 125 | 128 and a signal, or go on
 *   command_start      the command                                 125, or go on
 *   run_loop           until it has ended, or is ended             its own status | 76 | 125
 *   run_hold_close     the release
 *
 * The child tells the watchdog its pid itself, before it becomes the command: so nothing is ever run that the
 * watchdog does not know. */
#include "api/cli/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"

enum { TOKEN_SIZE = 32, TTL_USUAL_MS = 30000, SIGNALS = 65, WHY_SIZE = 512 };

/* -- what was asked */

static bool signal_read(const char *text, int *number)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;

    for (int n = 1; n < SIGNALS; n++) {
        const char *known = sigabbrev_np(n);
        char digits[16];

        snprintf(digits, sizeof(digits), "%d", n);
        if ((known != NULL && strcasecmp(name, known) == 0) || strcmp(text, digits) == 0) {
            *number = n;
            return true;
        }
    }
    return false;
}

static int run_read(struct run *run, int argc, char **argv)
{
    const char *end_by = "TERM", *holder = NULL, *mode = NULL;
    unsigned permits = 0;
    bool at_once = false;
    const struct option flags[] = {
        FLAG_ROW(OPTION_FLAG, bool, "no-wait", NULL, "do not wait: exit status 75 if it is held", &at_once,
                 .letter = 'n'),
        FLAG_WAIT("wait so long at most (default: for ever)",
                  "a duration above 0 with its unit (ms, s, m, h, d); to not wait, use --no-wait",
                  &run->ask.wait_ms),
        FLAG_TTL(&run->ask.ttl_ms),
        FLAG_TEXT("signal", "SIGNAL", "what the command gets when the hold is about to end (default TERM)",
                  &end_by),
        FLAG_MS("kill-after", "DUR",
                "and so long after it SIGKILL (default a quarter of the ttl, 5s at most)",
                &run->kill_after_ms),
        FLAG_ROW(OPTION_CHOICE, enum run_on_lost, "on-lost", "term|kill|warn",
                 "signal and kill (default), kill at once, or only say it", &run->on_lost,
                 .command_line_only = true),
        FLAG_MODE(&mode),
        FLAG_PERMITS(&permits),
        FLAG_HOLDER(&holder),
        FLAG_LEASE_URL(&run->lease_url),
        FLAG_TRACE(&run->trace),
        {0},
    };
    const char *arguments[ARGUMENTS_MAX + 1] = {NULL};
    bool completes = flags_complete_wanted(argc, argv);
    int split = completes ? argc : flags_split(flags, argc, argv); /* behind that all is its own */
    int status = flags_read("run", flags, split, argv, arguments);

    if (status != CLI_GO_ON)
        return status == CLI_OK ? CLI_OK : RUN_FAILED;
    if (split >= argc)
        return cli_fail(RUN_FAILED, "missing argument: CMD; see pawl run --help");
    run->name = arguments[0];
    run->argv = argv + split;
    if (at_once && run->ask.wait_ms > 0)
        return cli_fail(RUN_FAILED, "--no-wait and --wait exclude each other");
    if (!signal_read(end_by, &run->signal_number))
        return cli_fail(RUN_FAILED, "--signal takes a name like TERM, INT, HUP or USR1, or a number");
    if (run->kill_after_ms > (run->ask.ttl_ms > 0 ? run->ask.ttl_ms : TTL_USUAL_MS) / 2)
        return cli_fail(RUN_FAILED, "--kill-after can be half the ttl at most: the command is signalled so "
                                    "long before the hold ends, and every hitch would reach it");
    run->ask.size = sizeof(run->ask);
    run->ask.wait_ms = at_once ? 0 : run->ask.wait_ms > 0 ? run->ask.wait_ms : PAWL_WAIT_FOREVER;
    return cli_ask(RUN_FAILED, &run->ask, holder, mode, permits, run->holder);
}

/* -- what the command finds in its environment */

struct variables {
    char lease[sizeof("PAWL_LEASE=") + PAWL_NAME_SIZE], token[sizeof("PAWL_TOKEN=") + TOKEN_SIZE],
        fencing_token[sizeof("PAWL_FENCING_TOKEN=") + PAWL_FENCING_TOKEN_SIZE];
};

/* Made before the fork: a child of a process with threads must not allocate. The list is the caller's. */
static char **environment_new(const struct run *run, struct variables *own)
{
    /* PAWL_TOKEN_FILE beats PAWL_FENCING_TOKEN; LEASE_DEADLINE_MS is read by pawl-lease.sh. */
    static const char *const ours[] = {
        "PAWL_LEASE=",        "PAWL_TOKEN=",      "PAWL_FENCING_TOKEN=", "PAWL_LEASE_ID=",
        "PAWL_ACCESS_TOKEN=", "PAWL_TOKEN_FILE=", "LEASE_DEADLINE_MS=",  NULL};
    char *const texts[] = {own->lease, own->token, own->fencing_token};
    char **list = environment_without(ours, 3), **end = list;

    snprintf(own->lease, sizeof(own->lease), "PAWL_LEASE=%s", run->name);
    snprintf(own->token, sizeof(own->token), "PAWL_TOKEN=%lld", (long long)run->grant.token);
    snprintf(own->fencing_token, sizeof(own->fencing_token), "PAWL_FENCING_TOKEN=%s",
             run->grant.fencing_token);
    while (*end != NULL)
        end++;
    memcpy(end, texts, sizeof(texts));
    return list;
}

/* -- the child */

/* We may have stood still since the grant. */
static bool is_too_late(const struct run *run)
{
    struct pawl_grant grant = run->grant;
    int64_t now_ms = pawl_now_ms(), signal_ms, kill_ms;

    grant.deadline_ms = atomic_load(&run->deadline_ms);
    run_hold_times(run, &grant, &signal_ms, &kill_ms);
    return now_ms >= kill_ms || now_ms >= grant.deadline_ms;
}

static void say_wrong(const char *program, int error)
{
    const char *why = strerrordesc_np(error);
    const struct iovec parts[] = {{(void *)(uintptr_t) "pawl: ", 6},
                                  {(void *)(uintptr_t)program, strlen(program)},
                                  {(void *)(uintptr_t) ": ", 2},
                                  {(void *)(uintptr_t)why, strlen(why)},
                                  {(void *)(uintptr_t) "\n", 1}};

    (void)!writev(STDERR_FILENO, parts, sizeof(parts) / sizeof(parts[0]));
}

_Noreturn static void child_main(const struct run *run, char **environment, pid_t parent)
{
    const struct run_word word = {
        .kind = RUN_WORD_COMMAND, .pid = getpid(), .pidfd = pidfd_open(getpid(), 0)};
    int error;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !run_word_say(run->watchdog_fd, &word))
        _exit(RUN_FAILED);
    if (is_too_late(run))
        _exit(RUN_LOST);
    if (run->terminal.given)
        tcsetpgrp(STDIN_FILENO, getpid()); /* for its own group */
    run_signals_restore(run);
    execvpe(run->argv[0], run->argv, environment);
    error = errno;
    say_wrong(run->argv[0], error);
    _exit(error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE);
}

/* -- the command is started */

/* --trace, and without it when nothing is: by what that is caught which leaves the command's process group.
 */
static void catch_say(struct run *run)
{
    const struct run_group *group = &run->group;
    char why[WHY_SIZE] = "";

    if (group->without != NULL) {
        snprintf(why, sizeof(why), "%s%s%s", group->without, group->error != 0 ? ": " : "",
                 group->error != 0 ? strerrordesc_np(group->error) : "");
    }
    if (group->without == NULL && run->trace) {
        run_tell(&run->deferred, RUN_LINE_WRONG,
                 "what leaves the command's process group is caught by the cgroup %s", group->path);
    } else if (group->without != NULL && run->adopts && run->trace) {
        run_tell(&run->deferred, RUN_LINE_WRONG,
                 "what leaves the command's process group is caught when the command has ended, and only "
                 "while pawl run lives; there is no cgroup (%s)",
                 why);
    } else if (group->without != NULL && !run->adopts) {
        run_tell(&run->deferred, RUN_LINE_WRONG,
                 "what leaves the command's process group is not caught: there is no cgroup (%s), and pawl "
                 "run had children before, so that orphans are not surely the command's",
                 why);
    }
}

static int command_start(struct run *run)
{
    pid_t parent = getpid(), pid = -1;
    struct run_word times = {.kind = RUN_WORD_TIMES};
    struct variables own;
    char **environment;

    run_hold_times(run, &run->grant, &times.signal_ms, &times.kill_ms);
    if (!run_word_say(run->watchdog_fd, &times))
        return cli_fail(RUN_FAILED, "the watchdog has gone; the command was not started");
    run_signals_more(run);
    run_terminal_open(&run->terminal);
    run->terminal.given = run->terminal.at_once && run_terminal_is_front(&run->terminal);
    environment = environment_new(run, &own);
    pid = run_group_fork(&run->group);
    if (pid == 0)
        child_main(run, environment, parent);
    free(environment);
    catch_say(run);
    if (pid < 0)
        return cli_fail(RUN_FAILED, "no process could be started: %s", strerror(errno));
    setpgid(pid, pid); /* both sides do it; the second call may fail, which means nothing */
    run->group.pid = pid;
    run->group.pidfd = pidfd_open(pid, 0); /* nobody can have waited for it yet */
    return CLI_GO_ON;
}

/* -- prepared */

static int run_prepare(struct run *run)
{
    run_signals_open(run);
    run_orphans_adopt(run);
    run_group_open(&run->group);
    run->watchdog_fd = run_watchdog_start(&run->group, run->signal_number, &run->watchdog_pid);
    run->loss_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run->watchdog_fd < 0 || run->loss_fd < 0)
        return cli_fail(RUN_FAILED, "the watchdog could not be started; the command was not either");
    return CLI_GO_ON;
}

int cli_run(int argc, char **argv)
{
    struct run run = {.kill_ms = RUN_NEVER_MS, .watchdog_fd = -1, .loss_fd = -1};
    int status = run_read(&run, argc, argv);

    if (status != CLI_GO_ON)
        return status;
    status = run_prepare(&run);
    status = status == CLI_GO_ON ? run_hold_open(&run) : status;
    if (status == CLI_GO_ON) {
        status = command_start(&run);
        status = status == CLI_GO_ON ? run_loop(&run) : status;
        status = run_hold_close(&run, status);
    }
    pawl_close(run.pawl);
    run_group_close(&run.group);
    return status;
}
