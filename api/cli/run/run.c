/* run.c - pawl run: a command that runs while a lease is held.
 *
 *   run_read           the flags                                   125, or go on
 *   run_prepare        signals, a cgroup, the watchdog             125, or go on
 *   run_hold_open      the lease, and the wait for it              75 | 125 | 128 and a signal, or go on
 *   run_command_start  the command                                 125, or go on
 *   run_loop           until it has ended, or is ended             its own status | 76 | 125
 *   run_hold_close     the release */
#include "api/cli/run/run.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/run/watchdog.h"
#include "shared/token/name.h"

enum { TTL_USUAL_MS = 30000, HOST_SIZE = 64, SIGNALS = 65 };

/* -- what was asked */

struct words {
    const char *signal, *on_lost;
    bool at_once;
};

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

static bool on_lost_read(const char *text, enum run_on_lost *on_lost)
{
    static const char *const names[] = {"term", "kill", "warn"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *on_lost = (enum run_on_lost)i;
            return true;
        }
    }
    return false;
}

static int run_check(struct run *run, const struct words *words)
{
    uint64_t ttl_ms = run->ttl_ms > 0 ? run->ttl_ms : TTL_USUAL_MS;

    if (words->at_once && run->wait_ms > 0) {
        return cli_fail(RUN_FAILED, "--no-wait and --wait exclude each other");
    }
    if (!signal_read(words->signal, &run->signal_number)) {
        return cli_fail(RUN_FAILED, "--signal takes a name like TERM, INT, HUP or USR1, or a number");
    }
    if (!on_lost_read(words->on_lost, &run->on_lost)) {
        return cli_fail(RUN_FAILED, "--on-lost takes term, kill or warn");
    }
    if (run->kill_after_ms > ttl_ms / 2) {
        return cli_fail(RUN_FAILED, "--kill-after can be half the ttl at most: the command is signalled so "
                                    "long before the hold ends, and every hitch would reach it");
    }
    if (run->holder != NULL && !name_is_holder(bytes_of(run->holder))) {
        return cli_fail(RUN_FAILED, "--holder takes 1 to 128 bytes of printable UTF-8");
    }
    run->wait_ms = words->at_once ? 0 : run->wait_ms > 0 ? run->wait_ms : PAWL_WAIT_FOREVER;
    return CLI_GO_ON;
}

/* Everything behind the first "--" is the command's. */
static int run_split(int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--") == 0) {
            return at;
        }
    }
    return argc;
}

static int run_read(struct run *run, struct words *words, int argc, char **argv)
{
    const struct option flags[] = {
        {.name = "no-wait",
         .letter = 'n',
         .kind = OPTION_FLAG,
         .place = &words->at_once,
         .help = "do not wait: exit status 75 if it is held"},
        flag_wait(&run->wait_ms, "wait so long at most (default: for ever)"),
        flag_ttl(&run->ttl_ms),
        FLAG_TEXT("signal", "SIGNAL", "what the command gets when the hold is about to end (default TERM)",
                  &words->signal),
        FLAG_MS("kill-after", "DUR",
                "and so long after it SIGKILL (default a quarter of the ttl, 5s at most)",
                &run->kill_after_ms),
        FLAG_TEXT("on-lost", "term|kill|warn", "signal and kill (default), kill at once, or only say it",
                  &words->on_lost),
        FLAG_ENV("holder", "TEXT", "who you are, for people who look (default user@host:pid)", &run->holder),
        flag_lease_url(&run->lease_url),
        flag_trace(&run->trace),
        {0},
    };
    const struct usage usage = {
        .name = "run",
        .arguments = "NAME [flags] -- CMD...",
        .examples = "  pawl run nightly-report -n -- ./report.sh       # 75 if somebody else is at it\n"
                    "  pawl run deploy:web -w 10m -- ./deploy.sh web\n"
                    "  pawl run orders:42 --ttl 10s -- sh -c 'echo packed | pawl put orders:42'\n",
        .summary =
            "Runs CMD while the lease NAME is held, and renews it. The command is stopped before the "
            "hold\n"
            "can end: it gets the signal early enough, and SIGKILL before anybody else can be granted the\n"
            "lease, also when pawl run is killed or stopped. It finds PAWL_LEASE, PAWL_TOKEN and\n"
            "PAWL_FENCING_TOKEN in its environment. What it leaves behind is killed when it ends.\n\n"
            "Exit status: the command's own; 75 not obtained, 76 lost while it ran, 125 Pawl failed, 126 "
            "and\n"
            "127 the command could not be executed or found, 128+n ended by signal n. See pawl-run(1).",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1] = {NULL};
    bool completes = flags_complete_wanted(argc, argv);
    int split = completes ? argc : run_split(argc, argv);
    int status = flags_read(&usage, split, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status == CLI_OK ? CLI_OK : RUN_FAILED;
    }
    if (split + 1 >= argc) {
        return cli_fail(RUN_FAILED, "what is to be run? It is pawl run NAME -- CMD");
    }
    run->name = arguments[0];
    run->argv = argv + split + 1;
    return run_check(run, words);
}

/* -- prepared */

/* Else a file of ours could get the number of one that the caller closed, and be taken for it. The command
 * finds it closed, as it would without us. */
static void fill_standard(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static const char *holder_usual(char buf[PAWL_HOLDER_SIZE])
{
    const char *user = getenv("USER");
    char host[HOST_SIZE] = "";

    gethostname(host, sizeof(host) - 1);
    if (user == NULL || *user == '\0') {
        user = "uid";
    }
    snprintf(buf, PAWL_HOLDER_SIZE, "%.40s@%s:%d", user, host[0] != '\0' ? host : "localhost", getpid());
    return name_is_holder(bytes_of(buf)) ? buf : "pawl run";
}

static int run_prepare(struct run *run)
{
    run_signals_open(run);
    run_strays_adopt(run);
    run_group_open(&run->group);
    run->watchdog_fd = run_watchdog_start(&run->group, run->signal_number, &run->watchdog_pid);
    run->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run->watchdog_fd < 0 || run->told_fd < 0) {
        return cli_fail(RUN_FAILED, "the watchdog could not be started; the command was not either");
    }
    return CLI_GO_ON;
}

int cli_run(int argc, char **argv)
{
    struct words words = {.signal = "TERM", .on_lost = "term"};
    struct run run = {.kill_ms = RUN_NEVER_MS, .watchdog_fd = -1, .told_fd = -1};
    char holder[PAWL_HOLDER_SIZE];
    int status = run_read(&run, &words, argc, argv);

    if (status != CLI_GO_ON) {
        return status;
    }
    fill_standard();
    if (run.holder == NULL) {
        run.holder = holder_usual(holder);
    }
    status = run_prepare(&run);
    if (status == CLI_GO_ON) {
        status = run_hold_open(&run);
    }
    if (status == CLI_GO_ON) {
        status = run_command_start(&run);
        if (status == CLI_GO_ON) {
            status = run_loop(&run);
        }
        status = run_hold_close(&run, status);
    }
    pawl_close(run.pawl);
    run_group_close(&run.group);
    return status;
}
