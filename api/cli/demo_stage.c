/* demo_stage.c - where a demo is played. */
#include "api/cli/demo_stage.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"

enum { EVENT_MS = 15000, END_MS = 5000, SENTENCE_SIZE = 256 };

/* -- telling */

static const char *colour_of(const struct stage *stage, const struct stage_worker *worker)
{
    if (!(stage->style & STAIR_COLOUR)) {
        return "";
    }
    return worker == &stage->a ? "\033[0;33m" : "\033[0;36m"; /* as in the picture */
}

void stage_say(const struct stage *stage, const struct stage_worker *worker, uint64_t at_ms,
               const char *format, ...)
{
    uint64_t since_ms = at_ms > stage->began_ms ? at_ms - stage->began_ms : 0;
    char sentence[SENTENCE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    printf("  %2" PRIu64 ".%" PRIu64 " s  %s%s  %s%s\n", since_ms / 1000, since_ms % 1000 / 100,
           colour_of(stage, worker), worker->name, sentence, stage->style & STAIR_COLOUR ? "\033[0m" : "");
    fflush(stdout);
}

void stage_headline(const struct stage *stage, const char *text)
{
    bool colour = (stage->style & STAIR_COLOUR) != 0;

    printf("\n%s%s%s\n\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
    fflush(stdout);
}

void stage_record(struct stage *stage, const struct stage_worker *worker, enum stair_event_kind kind,
                  uint64_t at_ms)
{
    if (stage->event_count < STAGE_EVENTS_MAX) {
        stage->events[stage->event_count++] = (struct stair_event){
            at_ms > stage->began_ms ? at_ms - stage->began_ms : 0, kind, worker->name, worker->token};
    }
}

/* -- the workers */

static bool worker_start(struct stage *stage, struct stage_worker *worker, const char *name,
                         const char *lease, const char *file)
{
    char self[CHILD_PATH_SIZE];
    const char *const argv[] = {self,
                                "demo-worker",
                                "--lease-url",
                                stage->cluster.lease_url,
                                "--gateway-url",
                                stage->cluster.gateway_url,
                                name,
                                lease,
                                file,
                                NULL};
    bool added = worker->name != NULL;

    if (!child_find("pawl", self) || !child_start(&worker->child, name, CHILD_TALKS, argv)) {
        cli_fail(CLI_BUG, "worker %s cannot be started", name);
        return false;
    }
    worker->name = name;
    if (!added) {
        watch_add(&stage->cluster.watch, &worker->child);
    }
    return true;
}

bool stage_begin(struct stage *stage, const char *lease, const char *file)
{
    stage->event_count = 0;
    if (!worker_start(stage, &stage->a, "A", lease, file) ||
        !worker_start(stage, &stage->b, "B", lease, file)) {
        return false;
    }
    stage->began_ms = cli_now_ms();
    return true;
}

static void worker_end(struct stage *stage, struct stage_worker *worker)
{
    uint64_t deadline_ms = cli_now_ms() + END_MS;

    if (worker->child.pid == 0) {
        return;
    }
    child_signal(&worker->child, SIGKILL); /* it has nothing to tidy up, and may be stopped */
    while (worker->child.pid != 0 && cluster_next(&stage->cluster, deadline_ms) != WATCH_DEADLINE) {
        /* what it still says does not matter */
    }
}

void stage_end(struct stage *stage)
{
    worker_end(stage, &stage->a);
    worker_end(stage, &stage->b);
}

bool stage_tell_worker(const struct stage_worker *worker, const char *order)
{
    return child_say(&worker->child, order) ||
           (cli_fail(CLI_BUG, "worker %s does not listen", worker->name), false);
}

/* "AT_MS WORD NUMBER TEXT" */
static bool event_read(const char *line, struct worker_event *event)
{
    char *at = NULL;
    size_t len;

    memset(event, 0, sizeof(*event));
    event->at_ms = strtoull(line, &at, 10);
    if (*at++ != ' ') {
        return false;
    }
    len = strcspn(at, " ");
    if (len == 0 || len >= sizeof(event->word) || at[len] != ' ') {
        return false;
    }
    memcpy(event->word, at, len);
    event->number = strtoll(at + len + 1, &at, 10);
    if (*at != ' ') {
        return false;
    }
    snprintf(event->text, sizeof(event->text), "%.*s", (int)sizeof(event->text) - 1, at + 1);
    return true;
}

/* -- waiting */

/* What ends the demo, whatever it is waiting for. */
static bool went_wrong(struct stage *stage, enum watch_event event, const char *waiting_for)
{
    struct watch *watch = &stage->cluster.watch;

    switch (event) {
    case WATCH_SIGNAL: cli_fail(CLI_REFUSED, "interrupted"); return true;
    case WATCH_ENDED:
        if (!cluster_tell_end(&stage->cluster)) {
            cli_fail(CLI_BUG, "worker %s has ended by itself", watch->child->name);
        }
        return true;
    case WATCH_DEADLINE: cli_fail(CLI_REFUSED, "waited in vain: %s", waiting_for); return true;
    case WATCH_LINE:
    case WATCH_STOPPED: return false;
    }
    abort();
}

bool stage_expect(struct stage *stage, struct stage_worker *worker, const char *word, const char *other,
                  struct worker_event *event)
{
    uint64_t deadline_ms = cli_now_ms() + EVENT_MS;
    const struct watch *watch = &stage->cluster.watch;

    for (;;) {
        enum watch_event what = cluster_next(&stage->cluster, deadline_ms);

        if (went_wrong(stage, what, word)) {
            return false;
        }
        if (what != WATCH_LINE || watch->child != &worker->child) {
            continue;
        }
        if (!event_read(watch->line, event)) {
            cli_fail(CLI_BUG, "worker %s says something odd: %s", worker->name, watch->line);
            return false;
        }
        if (strcmp(event->word, word) == 0 || (other != NULL && strcmp(event->word, other) == 0)) {
            return true;
        }
        cli_fail(CLI_REFUSED, "it went otherwise: worker %s was to be \"%s\", but: %s %" PRId64 " %s",
                 worker->name, word, event->word, event->number, event->text);
        return false;
    }
}

bool stage_stop(struct stage *stage, struct stage_worker *worker)
{
    uint64_t deadline_ms = cli_now_ms() + EVENT_MS;
    const struct watch *watch = &stage->cluster.watch;
    enum watch_event event = WATCH_LINE;

    child_signal(&worker->child, SIGSTOP);
    while (event != WATCH_STOPPED || watch->child != &worker->child) {
        event = cluster_next(&stage->cluster, deadline_ms);
        if (went_wrong(stage, event, "a worker to stop")) {
            return false;
        }
        if (event == WATCH_LINE && watch->child == &worker->child) {
            cli_fail(CLI_REFUSED, "it went otherwise: worker %s was done before it could be stopped",
                     worker->name);
            return false;
        }
    }
    return true;
}

bool stage_continue(const struct stage_worker *worker)
{
    return child_signal(&worker->child, SIGCONT) ||
           (cli_fail(CLI_BUG, "worker %s is gone", worker->name), false);
}

bool stage_pause(struct stage *stage, unsigned ms)
{
    uint64_t deadline_ms = cli_now_ms() + ms;

    for (;;) {
        enum watch_event event = cluster_next(&stage->cluster, deadline_ms);

        if (event == WATCH_DEADLINE) {
            return true;
        }
        if (went_wrong(stage, event, "time to pass")) {
            return false;
        }
    }
}
