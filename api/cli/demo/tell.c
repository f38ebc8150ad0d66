/* tell.c - an event on the stage: printed as it comes, added to the timeline and to the picture. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/demo/demo_internal.h"

enum { SENTENCE_SIZE = 256, NOT_PAINTED = -1 };

/* How a word is printed and painted. In a sentence, {n} is its number, {s} the same as seconds, {t} its text,
 * {g} the same as seconds, and {o} the text of the order. */
static const struct saying {
    const char *word;
    int stair;                 /* enum stair_event_kind */
    const char *recipe, *pawl; /* pawl NULL: the same */
} sayings[] = {
    {"granted", STAIR_GRANTED, "gets the lock for {g} s", "gets the lease for {g} s: token {n}"},
    {"held", STAIR_WAITING, "wants it too: it is taken, so it asks again and again",
     "wants it too: held by {t}, so it stands in line"},
    {"vain", STAIR_RELEASED, "gives up: asked {n} times, in vain", NULL},
    {"set", STAIR_GRANTED, "SETNX: it has the lock; EXPIRE would come next", NULL},
    {"looked", NOT_PAINTED, "releases: GET says that the lock is its own; DEL comes next", NULL},
    {"holds", NOT_PAINTED, "looks at its clock: good for {s} s more", NULL},
    {"over", STAIR_RELEASED, "looks at its clock: it is over, so it does not write", NULL},
    {"written", STAIR_ACCEPTED, "writes \"{o}\"", NULL},
    {"refused", STAIR_REFUSED, "writes \"{o}\": refused, {n} {t}", NULL},
    {"failed", NOT_PAINTED, "fails: {t}", NULL},
    {"released", STAIR_RELEASED, "gives it back", NULL},
    {"deleted", STAIR_RELEASED, "releases: DEL removes {n} key, whosever it is", NULL},
    {"lost", STAIR_RELEASED, "releases, and is told only now that the lock had run out",
     "releases, and is told that the lease is over: {t}"},
    {"extended", NOT_PAINTED, "sets the end of the lock anew", NULL},
    {"reads", NOT_PAINTED, "reads  \"{t}\"", NULL},
    {"stopped", STAIR_STOPPED, "is stopped (SIGSTOP, as a garbage collection or a suspended machine does)",
     NULL},
    {"continued", STAIR_CONTINUED, "goes on (SIGCONT)", NULL},
    {"killed", STAIR_STOPPED, "is killed (SIGKILL)", NULL},
    {"holding", NOT_PAINTED, "a wire is slow from now on: {o}", NULL},
    {"kept", NOT_PAINTED, "the wire keeps {n} bytes back", NULL},
    {"passed", NOT_PAINTED, "the wire is well again: {n} bytes arrive", NULL},
    {"jumped", NOT_PAINTED, "the clock of Redis jumps forward by {n} s", NULL},
    {"promoted", NOT_PAINTED, "the master is killed; its replica is promoted and takes its place", NULL},
    {"said", NOT_PAINTED, "{t}: Redis says {n}", NULL},
};

static bool is_worker(const struct stage *stage, const struct actor *actor)
{
    return actor != NULL && actor != &stage->actors[ACTOR_RELAY];
}

static uint64_t since_begin_ms(const struct stage *stage, const struct timeline_event *event)
{
    return event->at_ms > stage->began_ms ? event->at_ms - stage->began_ms : 0;
}

/* -- printing */

static void value_put(char value[EVENT_TEXT_SIZE], char name, const struct timeline_event *event,
                      const char *order)
{
    switch (name) {
    case 'n': snprintf(value, EVENT_TEXT_SIZE, "%" PRId64, event->number); return;
    case 's': snprintf(value, EVENT_TEXT_SIZE, "%.1f", (double)event->number / 1000.0); return;
    case 't': snprintf(value, EVENT_TEXT_SIZE, "%s", event->text); return;
    case 'g': snprintf(value, EVENT_TEXT_SIZE, "%.1f", strtod(event->text, NULL) / 1000.0); return;
    case 'o': snprintf(value, EVENT_TEXT_SIZE, "%s", order); return;
    default: abort();
    }
}

static void sentence_put(char sentence[SENTENCE_SIZE], const char *form, const struct timeline_event *event,
                         const char *order)
{
    char value[EVENT_TEXT_SIZE];
    size_t len = 0;

    while (*form != '\0' && len < SENTENCE_SIZE - EVENT_TEXT_SIZE) {
        if (*form == '{') {
            value_put(value, form[1], event, order);
            len += (size_t)snprintf(sentence + len, SENTENCE_SIZE - len, "%s", value);
            form += strlen("{n}");
        } else {
            sentence[len++] = *form++;
        }
    }
    sentence[len] = '\0';
}

static void print_sentence(const struct stage *stage, const struct actor *actor,
                           const struct timeline_event *event, const char *sentence)
{
    static const char *const colours[] = {"\033[0;33m", "\033[0;36m", "\033[0;35m"}; /* as in the picture */
    bool colour = (stage->style & STAIR_COLOUR) != 0 && is_worker(stage, actor);
    uint64_t since_ms = since_begin_ms(stage, event);

    printf("  %2" PRIu64 ".%" PRIu64 " s  %s%s  %s%s\n", since_ms / 1000, since_ms % 1000 / 100,
           colour ? colours[actor - stage->actors] : "", is_worker(stage, actor) ? actor->name : "*",
           sentence, colour ? "\033[0m" : "");
    fflush(stdout);
}

void stage_headline(const struct stage *stage, const char *text)
{
    bool colour = (stage->style & STAIR_COLOUR) != 0;

    printf("\n%s%s%s\n\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
    fflush(stdout);
}

/* -- the picture */

/* In the order in which they happened: a worker's line comes a little later. */
static void picture_add(struct picture *picture, const struct stair_event *event)
{
    size_t at = picture->count;

    if (at == PICTURE_MAX) {
        return;
    }
    for (; at > 0 && picture->events[at - 1].at_ms > event->at_ms; at--) {
        picture->events[at] = picture->events[at - 1];
    }
    picture->events[at] = *event;
    picture->count++;
}

/* -- events */

void stage_note(struct stage *stage, struct actor *actor, const struct timeline_event *event)
{
    const char *order = actor != NULL && actor->text != NULL ? actor->text : "";
    char sentence[SENTENCE_SIZE];

    if (actor != NULL && strcmp(event->word, "granted") == 0) {
        actor->token = event->number;
    }
    timeline_add(&stage->timeline, event);
    for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
        const struct saying *saying = &sayings[i];
        bool shares = saying->stair == STAIR_GRANTED && actor != NULL && actor->shares;

        if (strcmp(event->word, saying->word) != 0) {
            continue;
        }
        sentence_put(sentence, stage->is_pawl && saying->pawl != NULL ? saying->pawl : saying->recipe, event,
                     order);
        print_sentence(stage, actor, event, sentence);
        if (saying->stair != NOT_PAINTED && is_worker(stage, actor)) {
            picture_add(&stage->picture,
                        &(struct stair_event){since_begin_ms(stage, event),
                                              shares ? STAIR_SHARED : (enum stair_event_kind)saying->stair,
                                              actor->name, actor->token});
        }
    }
}

/* "AT_MS WORD NUMBER TEXT" */
static bool line_read(const char *line, struct timeline_event *event)
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
    snprintf(event->text, sizeof(event->text), "%.*s", EVENT_TEXT_SIZE - 1, at + 1);
    return true;
}

bool stage_hear(struct stage *stage, struct actor *actor, const char *line)
{
    struct timeline_event event = {.label = actor->label != NULL ? actor->label : ""};

    if (!line_read(line, &event)) {
        cli_fail(CLI_BUG, "%s says something odd: %s", actor->name, line);
        return false;
    }
    memcpy(actor->word, event.word, sizeof(actor->word));
    actor->number = event.number;
    stage_note(stage, actor, &event);
    return true;
}
