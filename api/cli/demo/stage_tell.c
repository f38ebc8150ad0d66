/* stage_tell.c - what happens on the stage: printed as it comes, noted for the judge, kept for the picture.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/demo/stage.h"

enum { SENTENCE_SIZE = 256 };

/* -- printing */

static const char *colour_of(const struct stage *stage, const struct stage_worker *worker)
{
    static const char *const colours[] = {"\033[0;33m", "\033[0;36m", "\033[0;35m"}; /* as in the picture */

    if (!(stage->style & STAIR_COLOUR) || worker == NULL || worker == &stage->relay) {
        return "";
    }
    return colours[worker - stage->workers];
}

static void print_line(const struct stage *stage, const struct stage_worker *worker, uint64_t at_ms,
                       const char *sentence)
{
    uint64_t since_ms = at_ms > stage->began_ms ? at_ms - stage->began_ms : 0;
    const char *name = worker == NULL || worker == &stage->relay ? "*" : worker->name;
    const char *colour = colour_of(stage, worker);

    printf("  %2" PRIu64 ".%" PRIu64 " s  %s%s  %s%s\n", since_ms / 1000, since_ms % 1000 / 100, colour, name,
           sentence, *colour != '\0' ? "\033[0m" : "");
    fflush(stdout);
}

void stage_headline(const struct stage *stage, const char *text)
{
    bool colour = (stage->style & STAIR_COLOUR) != 0;

    printf("\n%s%s%s\n\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
    fflush(stdout);
}

/* -- sentences */

/* How a word is said: number and text are filled in by the kind. */
struct saying {
    const char *word;
    enum { PLAIN, WITH_NUMBER, WITH_TEXT, WITH_SECONDS, WITH_ORDER, WITH_REFUSAL, WITH_ANSWER } kind;
    const char *recipe, *pawl; /* pawl NULL: the same */
};

static const struct saying sayings[] = {
    {"held", WITH_TEXT, "wants it too: it is taken, so it asks again and again",
     "wants it too: held by %s, so it stands in line"},
    {"vain", WITH_NUMBER, "gives up: asked %" PRId64 " times, in vain", NULL},
    {"set", PLAIN, "SETNX: it has the lock; EXPIRE would come next", NULL},
    {"looked", PLAIN, "releases: GET says that the lock is its own; DEL comes next", NULL},
    {"holds", WITH_SECONDS, "looks at its clock: good for %.1f s more", NULL},
    {"over", PLAIN, "looks at its clock: it is over, so it does not write", NULL},
    {"written", WITH_ORDER, "writes \"%s\"", NULL},
    {"refused", WITH_REFUSAL, "writes \"%s\": refused, %" PRId64 " %s", NULL},
    {"failed", WITH_TEXT, "fails: %s", NULL},
    {"released", PLAIN, "gives it back", NULL},
    {"deleted", WITH_NUMBER, "releases: DEL removes %" PRId64 " key, whosever it is", NULL},
    {"lost", WITH_TEXT, "releases, and is told only now that the lock had run out",
     "releases, and is told that the lease is over: %s"},
    {"extended", PLAIN, "sets the end of the lock anew", NULL},
    {"reads", WITH_TEXT, "reads  \"%s\"", NULL},
    {"stopped", PLAIN, "is stopped (SIGSTOP, as a garbage collection or a suspended machine does)", NULL},
    {"continued", PLAIN, "goes on (SIGCONT)", NULL},
    {"killed", PLAIN, "is killed (SIGKILL)", NULL},
    {"holding", WITH_ORDER, "a wire is slow from now on: %s", NULL},
    {"kept", WITH_NUMBER, "the wire keeps %" PRId64 " bytes back", NULL},
    {"passed", WITH_NUMBER, "the wire is well again: %" PRId64 " bytes arrive", NULL},
    {"jumped", WITH_NUMBER, "the clock of Redis jumps forward by %" PRId64 " s", NULL},
    {"promoted", PLAIN, "the master is killed; its replica is promoted and takes its place", NULL},
    {"said", WITH_ANSWER, "%s: Redis says %" PRId64, NULL},
};

/* The formats stand in the table, each with the arguments of its kind. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void sentence_of(const struct saying *saying, const struct stage *stage,
                        const struct stage_worker *worker, const struct seen_event *event,
                        char sentence[SENTENCE_SIZE])
{
    const char *format = stage->is_pawl && saying->pawl != NULL ? saying->pawl : saying->recipe;
    const char *order = worker != NULL && worker->text != NULL ? worker->text : "";

    switch (saying->kind) {
    case PLAIN: snprintf(sentence, SENTENCE_SIZE, "%s", format); return;
    case WITH_NUMBER: snprintf(sentence, SENTENCE_SIZE, format, event->number); return;
    case WITH_TEXT: snprintf(sentence, SENTENCE_SIZE, format, event->text); return;
    case WITH_SECONDS: snprintf(sentence, SENTENCE_SIZE, format, (double)event->number / 1000.0); return;
    case WITH_ORDER: snprintf(sentence, SENTENCE_SIZE, format, order); return;
    case WITH_ANSWER: snprintf(sentence, SENTENCE_SIZE, format, event->text, event->number); return;
    case WITH_REFUSAL: snprintf(sentence, SENTENCE_SIZE, format, order, event->number, event->text); return;
    }
    abort();
}
#pragma GCC diagnostic pop

static void tell_granted(const struct stage *stage, const struct seen_event *event,
                         char sentence[SENTENCE_SIZE])
{
    double good_s = strtod(event->text, NULL) / 1000.0;

    if (stage->is_pawl) {
        snprintf(sentence, SENTENCE_SIZE, "gets the lease for %.1f s: token %" PRId64, good_s, event->number);
    } else {
        snprintf(sentence, SENTENCE_SIZE, "gets the lock for %.1f s", good_s);
    }
}

static void tell(const struct stage *stage, const struct stage_worker *worker, const struct seen_event *event)
{
    char sentence[SENTENCE_SIZE] = "";

    if (strcmp(event->word, "granted") == 0) {
        tell_granted(stage, event, sentence);
    }
    for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
        if (strcmp(event->word, sayings[i].word) == 0) {
            sentence_of(&sayings[i], stage, worker, event, sentence);
        }
    }
    if (*sentence != '\0') {
        print_line(stage, worker, event->at_ms, sentence);
    }
}

/* -- the picture */

/* In the order in which they happened: what a worker says comes a little later. */
static void picture_add(struct stage *stage, const struct stair_event *event)
{
    size_t at = stage->picture_count;

    if (at == STAGE_PICTURE_MAX) {
        return;
    }
    for (; at > 0 && stage->picture[at - 1].at_ms > event->at_ms; at--) {
        stage->picture[at] = stage->picture[at - 1];
    }
    stage->picture[at] = *event;
    stage->picture_count++;
}

static void paint(struct stage *stage, const struct stage_worker *worker, const struct seen_event *event)
{
    static const struct {
        const char *word;
        enum stair_event_kind kind;
    } kinds[] = {{"granted", STAIR_GRANTED},     {"set", STAIR_GRANTED},       {"written", STAIR_ACCEPTED},
                 {"refused", STAIR_REFUSED},     {"stopped", STAIR_STOPPED},   {"killed", STAIR_STOPPED},
                 {"continued", STAIR_CONTINUED}, {"released", STAIR_RELEASED}, {"lost", STAIR_RELEASED},
                 {"over", STAIR_RELEASED},       {"deleted", STAIR_RELEASED},  {"held", STAIR_WAITING},
                 {"vain", STAIR_RELEASED}};

    for (size_t i = 0; worker != NULL && worker != &stage->relay && i < sizeof(kinds) / sizeof(kinds[0]);
         i++) {
        if (strcmp(event->word, kinds[i].word) == 0) {
            uint64_t since_ms = event->at_ms > stage->began_ms ? event->at_ms - stage->began_ms : 0;

            enum stair_event_kind kind = kinds[i].kind;

            kind = kind == STAIR_GRANTED && worker->shares ? STAIR_SHARED : kind;
            picture_add(stage, &(struct stair_event){since_ms, kind, worker->name, worker->token});
        }
    }
}

/* -- what is heard and seen */

static void happen(struct stage *stage, struct stage_worker *worker, const struct seen_event *event)
{
    if (worker != NULL && strcmp(event->word, "granted") == 0) {
        worker->token = event->number;
    }
    seen_add(&stage->seen, event);
    tell(stage, worker, event);
    paint(stage, worker, event);
}

/* "AT_MS WORD NUMBER TEXT" */
static bool line_read(const char *line, struct seen_event *event)
{
    char *at = NULL;
    size_t len;

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
    snprintf(event->text, sizeof(event->text), "%.*s", SEEN_TEXT_SIZE - 1, at + 1);
    return true;
}

bool stage_hear(struct stage *stage, struct stage_worker *worker, const char *line)
{
    struct seen_event event = {.label = worker->label != NULL ? worker->label : ""};

    if (!line_read(line, &event)) {
        cli_fail(CLI_BUG, "%s says something odd: %s", worker->name, line);
        return false;
    }
    memcpy(worker->word, event.word, sizeof(worker->word));
    worker->number = event.number;
    happen(stage, worker, &event);
    return true;
}

void stage_note(struct stage *stage, struct stage_worker *worker, const char *label, const char *word,
                int64_t number)
{
    struct seen_event event = {.at_ms = cli_now_ms(), .label = label, .number = number};

    snprintf(event.word, sizeof(event.word), "%s", word);
    happen(stage, worker, &event);
}

void stage_note_answer(struct stage *stage, const char *label, const char *command, int64_t number)
{
    struct seen_event event = {.at_ms = cli_now_ms(), .label = label, .word = "said", .number = number};

    snprintf(event.text, sizeof(event.text), "%.*s", SEEN_TEXT_SIZE - 1, command);
    happen(stage, NULL, &event);
}
