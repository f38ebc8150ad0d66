/* command.c - pawl run: the command is started.
 *
 * The child tells the watchdog who it is itself, before it becomes the command: so nothing is ever run that
 * the watchdog does not know. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/run/run.h"
#include "api/cli/run/watchdog.h"

enum { TOKEN_SIZE = 32 };

/* -- what it finds in its environment */

static bool is_ours(const char *variable)
{
    static const char *const names[] = {
        "PAWL_LEASE=", "PAWL_TOKEN=", "PAWL_FENCING_TOKEN=", "PAWL_LEASE_ID=", NULL};

    for (const char *const *name = names; *name != NULL; name++) {
        if (strncmp(variable, *name, strlen(*name)) == 0) {
            return true;
        }
    }
    return false;
}

static char *variable_new(const char *name, const char *value)
{
    size_t size = strlen(name) + 1 + strlen(value) + 1;
    char *variable = cli_alloc(size);

    snprintf(variable, size, "%s=%s", name, value);
    return variable;
}

/* Made before the fork: a child of a process with threads must not allocate. The last three texts and the
 * list are the caller's. */
static char **environment_new(const struct run *run, size_t *kept)
{
    char token[TOKEN_SIZE];
    size_t count = 0;
    char **list;

    *kept = 0;
    while (environ[count] != NULL) {
        count++;
    }
    list = cli_alloc((count + 4) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(environ[i])) {
            list[(*kept)++] = environ[i];
        }
    }
    snprintf(token, sizeof(token), "%lld", (long long)run->grant.token);
    list[*kept] = variable_new("PAWL_LEASE", run->name);
    list[*kept + 1] = variable_new("PAWL_TOKEN", token);
    list[*kept + 2] = variable_new("PAWL_FENCING_TOKEN", run->grant.fencing_token);
    list[*kept + 3] = NULL;
    return list;
}

static void environment_free(char **list, size_t kept)
{
    for (size_t i = kept; list[i] != NULL; i++) {
        free(list[i]);
    }
    free(list);
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
    if (getppid() != parent || !run_word_say(run->watchdog_fd, &word)) {
        _exit(RUN_FAILED);
    }
    if (is_too_late(run)) {
        _exit(RUN_LOST);
    }
    run_terminal_give_self(&run->terminal);
    run_signals_restore(run);
    execvpe(run->argv[0], run->argv, environment);
    error = errno;
    say_wrong(run->argv[0], error);
    _exit(error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE);
}

/* -- the parent */

static bool times_say(const struct run *run)
{
    struct run_word word = {.kind = RUN_WORD_TIMES};

    run_hold_times(run, &run->grant, &word.signal_ms, &word.kill_ms);
    return run_word_say(run->watchdog_fd, &word);
}

int run_command_start(struct run *run)
{
    pid_t parent = getpid(), pid = -1;
    char **environment;
    size_t kept;

    if (!times_say(run)) {
        return cli_fail(RUN_FAILED, "the watchdog has gone; the command was not started");
    }
    run_signals_more(run);
    run_terminal_open(&run->terminal);
    run->terminal.given = run->terminal.at_once && run_terminal_is_front(&run->terminal);
    environment = environment_new(run, &kept);
    pid = run_group_fork(&run->group);
    if (pid == 0) {
        child_main(run, environment, parent);
    }
    environment_free(environment, kept);
    run_tell_catch(&run->untold, &run->group, run->adopts ? RUN_ORPHANS_ADOPTED : RUN_ORPHANS_NOT_OURS,
                   run->trace ? RUN_TRACE_YES : RUN_TRACE_NO);
    if (pid < 0) {
        return cli_fail(RUN_FAILED, "no process could be started: %s", strerror(errno));
    }
    setpgid(pid, pid); /* whoever comes first; afterwards it is an error that means nothing */
    run_group_know(&run->group, pid, pidfd_open(pid, 0)); /* nobody can have waited for it yet */
    return CLI_GO_ON;
}
