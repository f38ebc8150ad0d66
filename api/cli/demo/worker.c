/* worker.c - a worker of a demo: takes a lock or a lease, and writes, as told by worker.h.
 *
 * It is careful in the way in which most programs are: before it writes it looks whether its lock is still
 * running. Its mistake is that time passes between the look and the write. */
#include "api/cli/demo/worker.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"

enum { STEP_MS = 20, TAKE_MS = 30000, POLLS_PER_TTL = 20, POLL_MS_MIN = 10 };

void worker_say(const char *word, int64_t number, const char *format, ...)
{
    va_list args;

    printf("%" PRIu64 " %s %" PRId64 " ", cli_now_ms(), word, number);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* In steps, so that what is left of it after a pause still takes its time. */
void worker_pass_ms(unsigned ms)
{
    for (; ms > STEP_MS; ms -= STEP_MS) {
        poll(NULL, 0, STEP_MS);
    }
    poll(NULL, 0, (int)ms);
}

void worker_granted(struct worker *worker, int64_t token, uint64_t asked_ms, int64_t good_for_ms)
{
    worker->holds_until_ms = asked_ms + (uint64_t)good_for_ms;
    worker_say("granted", token, "%" PRId64, good_for_ms);
}

static bool is_pawl(const struct worker *worker)
{
    return strcmp(worker->lock, "pawl") == 0;
}

/* -- the lock */

static enum worker_try try_once(struct worker *worker, enum worker_want want, unsigned left_ms, bool *told)
{
    enum worker_try end;

    if (is_pawl(worker)) {
        return worker_pawl_take(worker, want, left_ms, told);
    }
    end = worker_recipe_take(worker, want);
    if (end == TRY_HELD && !*told) {
        worker_say("held", 0, "-");
        *told = true;
    }
    return end;
}

static void worker_take(struct worker *worker, enum worker_want want, unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + (limit_ms > 0 ? limit_ms : TAKE_MS), now_ms;
    unsigned pause_ms = worker->ttl_ms / POLLS_PER_TTL, tries = 0;
    bool told = false;

    pause_ms = pause_ms > POLL_MS_MIN ? pause_ms : POLL_MS_MIN;
    while ((now_ms = cli_now_ms()) < until_ms) {
        enum worker_try end = try_once(worker, want, (unsigned)(until_ms - now_ms), &told);

        tries++;
        if (end == TRY_GRANTED || end == TRY_FAILED) {
            return;
        }
        if (end == TRY_LATER || !is_pawl(worker)) {
            worker_pass_ms(pause_ms);
        }
    }
    worker_say("vain", tries, "-");
}

static void worker_release(struct worker *worker)
{
    worker_say("leaving", 0, "-");
    if (is_pawl(worker)) {
        worker_pawl_release(worker);
    } else {
        worker_recipe_release(worker);
    }
    worker->holds_until_ms = 0;
}

/* -- the resource */

static bool still_holds(const struct worker *worker)
{
    if (cli_now_ms() < worker->holds_until_ms) {
        return true;
    }
    worker_say("over", 0, "-");
    return false;
}

static void worker_write(const struct worker *worker, const char *text)
{
    if (worker->gateway_url == NULL) {
        worker_plain_write(worker, text);
    } else {
        worker_pawl_write(worker, text);
    }
}

/* text NULL: it looks and does nothing. */
static void worker_work(const struct worker *worker, unsigned ms, const char *text)
{
    if (!still_holds(worker)) {
        return;
    }
    worker_say("holds", (int64_t)(worker->holds_until_ms - cli_now_ms()), "-");
    if (text != NULL) {
        worker_pass_ms(ms);
        worker_write(worker, text);
    }
}

static void worker_read(const struct worker *worker)
{
    if (worker->gateway_url == NULL) {
        worker_plain_read(worker);
    } else {
        worker_pawl_read(worker);
    }
}

/* -- what it is told */

static void worker_do(struct worker *worker, const char *verb, unsigned ms, const char *text)
{
    if (strcmp(verb, "take") == 0) {
        worker_take(worker, WANT_ALONE, ms);
    } else if (strcmp(verb, "share") == 0) {
        worker_take(worker, WANT_SHARED, ms);
    } else if (strcmp(verb, "work") == 0) {
        worker_work(worker, ms, text);
    } else if (strcmp(verb, "look") == 0) {
        worker_work(worker, 0, NULL);
    } else if (strcmp(verb, "toil") == 0) {
        worker_pass_ms(ms);
        worker_write(worker, text);
    } else if (strcmp(verb, "write") == 0) {
        if (still_holds(worker)) {
            worker_write(worker, text);
        }
    } else if (strcmp(verb, "extend") == 0) {
        worker_recipe_extend(worker);
    } else if (strcmp(verb, "read") == 0) {
        worker_read(worker);
    } else if (strcmp(verb, "release") == 0) {
        worker_release(worker);
    } else {
        worker_say("failed", 0, "not understood: %s", verb);
    }
}

static void worker_obey(struct worker *worker, char *line)
{
    char *ms = strchr(line, ' '), *text = NULL;

    line[strcspn(line, "\n")] = '\0';
    if (ms != NULL) {
        *ms++ = '\0';
        text = strchr(ms, ' ');
    }
    if (text == NULL) {
        worker_say("failed", 0, "not understood: %s", line);
    } else {
        *text++ = '\0';
        worker_do(worker, line, (unsigned)strtoul(ms, NULL, 10), text);
    }
}

/* ADDRESS,ADDRESS: cut in place. */
static void nodes_read(struct worker *worker, char *list)
{
    while (list != NULL && worker->node_count < WORKER_NODES_MAX) {
        char *comma = strchr(list, ',');

        if (comma != NULL) {
            *comma++ = '\0';
        }
        worker->nodes[worker->node_count++] = list;
        list = comma;
    }
}

static int worker_run(struct worker *worker, const char *nodes)
{
    char line[WORKER_LINE_SIZE], *list = cli_alloc(strlen(nodes) + 1);

    memcpy(list, nodes, strlen(nodes) + 1);
    nodes_read(worker, list);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        worker_obey(worker, line);
    }
    free(list);
    return CLI_OK;
}

int cli_demo_worker(int argc, char **argv)
{
    struct worker worker = {0};
    const char *nodes = "";
    uint64_t ttl_ms = 0;
    const struct option flags[] = {
        flag_lease_url(&worker.lease_url),
        FLAG_ENV("gateway-url", "URL", "", &worker.gateway_url),
        FLAG_TEXT("nodes", "LIST", "", &nodes),
        FLAG_TEXT("file", "FILE", "", &worker.file),
        FLAG_TEXT("store", "ADDR", "", &worker.store),
        flag_ttl(&ttl_ms),
        {0},
    };
    const struct usage usage = {
        .name = "demo-worker",
        .arguments = "NAME LOCK LEASE",
        .examples = "  pawl demo stale-holder                   # starts its workers itself\n",
        .summary = "A worker of the demo; reads from standard input what to do.",
        .flags = flags,
        .arguments_min = 3,
        .arguments_max = 3,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    signal(SIGPIPE, SIG_IGN); /* redis_ask.h */
    worker.name = arguments[0];
    worker.lock = arguments[1];
    worker.lease = arguments[2];
    worker.ttl_ms = (unsigned)ttl_ms;
    return worker_run(&worker, nodes);
}
