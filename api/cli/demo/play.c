/* play.c - pawl demo: plays hazards with real processes, with a recipe that is widely used and with Pawl.
 *
 *   play         for each part: stage_begin, scenes, judge, lesson; then the picture of the last part
 *   play_scene   one thing happens
 *   event_add    an event is printed, added to the timeline and to the picture */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/demo/demo_internal.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"

enum {
    WIDTH = 80,
    TTL_MS = 2000,
    TTL_MS_MIN = 300,
    TTL_MS_MAX = 60000,
    HAZARDS_MAX = 16,
    SENTENCE_SIZE = 256,
    NOT_PAINTED = -1
};

/* -- events */

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

static void headline(const struct stage *stage, const char *text)
{
    bool colour = (stage->style & STAIR_COLOUR) != 0;

    printf("\n%s%s%s\n\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
    fflush(stdout);
}

static void sentence_put(char sentence[SENTENCE_SIZE], const char *form, const struct timeline_event *event,
                         const char *order)
{
    char *at = sentence, *end = sentence + SENTENCE_SIZE - EVENT_TEXT_SIZE;

    for (; *form != '\0' && at < end; form++) {
        if (*form != '{') {
            *at++ = *form;
            continue;
        }
        switch (form[1]) {
        case 'n': snprintf(at, EVENT_TEXT_SIZE, "%" PRId64, event->number); break;
        case 's': snprintf(at, EVENT_TEXT_SIZE, "%.1f", (double)event->number / 1000.0); break;
        case 'g': snprintf(at, EVENT_TEXT_SIZE, "%.1f", strtod(event->text, NULL) / 1000.0); break;
        default: snprintf(at, EVENT_TEXT_SIZE, "%s", form[1] == 't' ? event->text : order);
        }
        at += strlen(at);
        form += strlen("n}");
    }
    *at = '\0';
}

/* In the order in which they happened: a worker's line comes a little later. */
static void picture_add(struct picture *picture, const struct stair_event *event)
{
    size_t at = picture->count;

    if (at == PICTURE_MAX)
        return;
    for (; at > 0 && picture->events[at - 1].at_ms > event->at_ms; at--)
        picture->events[at] = picture->events[at - 1];
    picture->events[at] = *event;
    picture->count++;
}

static void event_show(struct stage *stage, const struct actor *actor, const struct timeline_event *event,
                       const struct saying *saying)
{
    static const char *const colours[] = {"\033[0;33m", "\033[0;36m", "\033[0;35m"}; /* as in the picture */
    bool is_worker = actor != NULL && actor != &stage->actors[ACTOR_RELAY];
    bool colour = (stage->style & STAIR_COLOUR) != 0 && is_worker;
    uint64_t since_ms = event->at_ms > stage->began_ms ? event->at_ms - stage->began_ms : 0;
    const char *order = actor != NULL && actor->text != NULL ? actor->text : "";
    char sentence[SENTENCE_SIZE];

    sentence_put(sentence, stage->is_pawl && saying->pawl != NULL ? saying->pawl : saying->recipe, event,
                 order);
    printf("  %2" PRIu64 ".%" PRIu64 " s  %s%s  %s%s\n", since_ms / 1000, since_ms % 1000 / 100,
           colour ? colours[actor - stage->actors] : "", is_worker ? actor->name : "*", sentence,
           colour ? "\033[0m" : "");
    fflush(stdout);
    if (saying->stair != NOT_PAINTED && is_worker) {
        bool shares = saying->stair == STAIR_GRANTED && actor->shares;

        picture_add(&stage->picture,
                    &(struct stair_event){since_ms,
                                          shares ? STAIR_SHARED : (enum stair_event_kind)saying->stair,
                                          actor->name, actor->token});
    }
}

static void event_add(struct stage *stage, struct actor *actor, const struct timeline_event *event)
{
    if (actor != NULL && strcmp(event->word, "granted") == 0)
        actor->token = event->number;
    timeline_add(&stage->timeline, event);
    for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++)
        if (strcmp(event->word, sayings[i].word) == 0)
            event_show(stage, actor, event, &sayings[i]);
}

bool stage_note(struct stage *stage, struct actor *actor, const char *label, const char *word, int64_t number,
                const char *text)
{
    struct timeline_event event = {.at_ms = loop_now_ms(), .label = label, .number = number};

    snprintf(event.word, sizeof(event.word), "%s", word);
    snprintf(event.text, sizeof(event.text), "%s", text);
    event_add(stage, actor, &event);
    return true;
}

/* "AT_MS WORD NUMBER TEXT" */
static bool line_read(const char *line, struct timeline_event *event)
{
    struct bytes rest = bytes_of(line), at = bytes_cut(&rest, ' '), word = bytes_cut(&rest, ' ');
    struct bytes number = bytes_cut(&rest, ' ');

    if (word.len == 0 || word.len >= sizeof(event->word) || number.len == 0 || rest.at == NULL)
        return false;
    event->at_ms = strtoull(at.at, NULL, 10);
    memcpy(event->word, word.at, word.len);
    event->number = strtoll(number.at, NULL, 10);
    snprintf(event->text, sizeof(event->text), "%.*s", EVENT_TEXT_SIZE - 1, rest.at);
    return true;
}

bool stage_hear(struct stage *stage, struct actor *actor, const char *line)
{
    struct timeline_event event = {.label = actor->label != NULL ? actor->label : ""};

    if (!line_read(line, &event))
        return STAGE_FAIL("%s says something odd: %s", actor->name, line);
    memcpy(actor->word, event.word, sizeof(actor->word));
    actor->number = event.number;
    event_add(stage, actor, &event);
    return true;
}

/* -- one scene */

static bool play_order(struct stage *stage, const struct scene *scene, struct actor *actor, unsigned ms)
{
    char line[WORKER_LINE_SIZE];

    snprintf(line, sizeof(line), "%s %u %s\n", scene->order, ms, scene->text != NULL ? scene->text : "-");
    actor->label = scene->label;
    actor->text = scene->text;
    actor->shares = strcmp(scene->order, "share") == 0;
    actor->word[0] = '\0';
    if (!child_say(&actor->child, line))
        return STAGE_FAIL("%s does not listen", actor->name);
    return scene->until == NULL || stage_until(stage, actor, scene->until, STAGE_EVENT_MS);
}

/* Until it is stopped: only then it cannot do anything any more. */
static bool play_stop(struct stage *stage, struct actor *actor)
{
    uint64_t deadline_ms = loop_now_ms() + STAGE_EVENT_MS;
    enum watch_event event = WATCH_LINE;
    char word[EVENT_WORD_SIZE];

    memcpy(word, actor->word, sizeof(word));
    child_signal(&actor->child, SIGSTOP);
    while (event != WATCH_STOPPED || stage->cluster.watch.child != &actor->child) {
        if (!stage_next(stage, deadline_ms, &event))
            return false;
        if (event == WATCH_DEADLINE || strcmp(word, actor->word) != 0)
            return STAGE_FAIL("it went otherwise: %s could not be stopped in time", actor->name);
    }
    return true;
}

static bool play_scene(struct stage *stage, const struct scene *scene)
{
    unsigned ms = stage->ttl_ms * scene->percent / 100;
    struct actor *actor = stage->actors;

    while (scene->actor != NULL && strcmp(actor->name, scene->actor) != 0)
        actor++;
    switch (scene->act) {
    case SCENES_END: return true;
    case ORDER: return play_order(stage, scene, actor, ms);
    case AWAIT: return stage_until(stage, actor, scene->until, STAGE_EVENT_MS);
    case STOP: return play_stop(stage, actor) && stage_note(stage, actor, scene->label, "stopped", 0, "");
    case CONTINUE:
        return (child_signal(&actor->child, SIGCONT) || STAGE_FAIL("%s is gone", actor->name)) &&
               stage_note(stage, actor, scene->label, "continued", 0, "");
    case KILL:
        return stage_kill(stage, &actor->child) && stage_note(stage, actor, scene->label, "killed", 0, "");
    case PAUSE: return stage_until(stage, NULL, NULL, ms);
    case JUMP: return stage_jump(stage, scene->label);
    case CRASH: return stage_crash(stage, scene->label);
    case ASK: return stage_ask(stage, scene->order, scene->label);
    }
    abort();
}

static bool play_scenes(struct stage *stage)
{
    for (const struct scene *const *list = stage->part->with.scenes; *list != NULL; list++) {
        for (const struct scene *scene = *list; scene->act != SCENES_END; scene++)
            if (!play_scene(stage, scene))
                return false;
    }
    return true;
}

/* -- a part */

static void show_picture(const struct stage *stage)
{
    struct winsize size;
    bool narrow = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_col < WIDTH;
    char *picture = staircase_draw(stage->picture.events, stage->picture.count, narrow ? size.ws_col : WIDTH,
                                   stage->style, stage->is_pawl ? STAIR_STEPS : STAIR_FLAT);

    fputs(picture, stdout);
    free(picture);
    fflush(stdout);
}

/* CLI_GO_ON: it went as it should. */
static int play_part(struct stage *stage, const struct hazard_part *part)
{
    const char *otherwise;
    bool played;

    headline(stage, part->headline);
    played = stage_begin(stage, part) && play_scenes(stage);
    stage_end(stage);
    if (!played)
        return cli_fail(CLI_REFUSED, "the demo could not be played to its end");
    otherwise = judge(part, &stage->timeline);
    if (otherwise != NULL)
        return cli_fail(CLI_REFUSED, "it went otherwise than it should: %s", otherwise);
    printf("\n  %s\n", part->lesson);
    if (!stage->is_pawl) {
        putchar('\n');
        show_picture(stage);
    }
    return CLI_GO_ON;
}

static int play_parts(struct stage *stage)
{
    const struct hazard_part *parts = stage->hazard->parts;
    char title[WIDTH + 1];
    unsigned count = 0;

    for (; count < HAZARD_PARTS_MAX && parts[count].headline != NULL; count++) {
        int status = play_part(stage, &parts[count]);

        if (status != CLI_GO_ON)
            return status;
    }
    snprintf(title, sizeof(title), "What happened in part %u: whatever lies below the stairs is refused",
             count);
    headline(stage, title);
    show_picture(stage);
    headline(stage, stage->hazard->conclusion);
    return CLI_OK;
}

/* The exit status: CLI_OK only if the recipe was observed to fail and Pawl to hold. */
static int play(const struct hazard *hazard, uint64_t ttl_ms, const char *shim)
{
    struct stage *stage = cli_alloc(sizeof(*stage));
    int status;

    memset(stage, 0, sizeof(*stage));
    stage->hazard = hazard;
    stage->ttl_ms = (unsigned)ttl_ms * hazard->on.ttl_percent / 100;
    stage->style = (print_utf8() ? STAIR_UNICODE : 0) | (print_colour(stdout) ? STAIR_COLOUR : 0);
    puts(hazard->intro);
    fflush(stdout);
    status = stage_open(stage, shim);
    if (status == CLI_GO_ON)
        status = play_parts(stage);
    else if (status == CLI_OK)
        status = CLI_REFUSED; /* interrupted: nothing was shown */
    stage_close(stage);
    free(stage);
    return status;
}

/* -- the command */

static int list(void)
{
    for (const struct hazard *hazard = hazards; hazard->name != NULL; hazard++)
        printf("%-22s %s\n", hazard->name, hazard->line);
    return CLI_OK;
}

static int no_such_hazard(const char *name)
{
    const char *names[HAZARDS_MAX + 2] = {"all"};
    const char *near;

    for (unsigned i = 0; i < HAZARDS_MAX && hazards[i].name != NULL; i++)
        names[i + 1] = hazards[i].name;
    near = options_suggest(name, names);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "there is no demo of \"%s\"; did you mean \"%s\"?", name, near);
    cli_fail(CLI_USAGE, "there is no demo of \"%s\"", name);
    for (unsigned i = 1; names[i] != NULL; i++)
        cli_hint("%s", names[i]);
    return CLI_USAGE;
}

/* Each, whatever came of the others; an interruption ends them all. */
static int play_all(uint64_t ttl_ms, const char *shim)
{
    unsigned good = 0, count = 0;

    for (; hazards[count].name != NULL; count++) {
        int status;

        printf("%s%s\n\n", count > 0 ? "\n\n" : "", hazards[count].name);
        status = play(&hazards[count], ttl_ms, shim);
        if (status == CLI_CONFIG)
            return status;
        good += status == CLI_OK;
    }
    printf("\n%u of %u hazards: the recipe failed, and Pawl held\n", good, count);
    return good == count ? CLI_OK : cli_fail(CLI_REFUSED, "%u went otherwise than they should", count - good);
}

int cli_demo(int argc, char **argv)
{
    uint64_t ttl_ms = TTL_MS;
    const char *shim = NULL;
    bool listed = false;
    const struct option flags[] = {
        FLAG_MS("ttl", "DURATION", "how long the locks run: everything takes so much longer or shorter (2s)",
                &ttl_ms),
        FLAG_TEXT("shim", "FILE", "what shifts a clock (default: that of the package pawl-lab)", &shim),
        FLAG_ON("list", "the hazards, a line each (the same as no HAZARD)", &listed),
        {0},
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read("demo", flags, argc, argv, arguments);

    if (status != CLI_GO_ON)
        return status;
    if (ttl_ms < TTL_MS_MIN || ttl_ms > TTL_MS_MAX)
        return cli_fail(CLI_USAGE, "--ttl is to be %d ms to %d s", TTL_MS_MIN, TTL_MS_MAX / 1000);
    if (listed || arguments[0] == NULL)
        return list();
    if (strcmp(arguments[0], "all") == 0)
        return play_all(ttl_ms, shim);
    for (const struct hazard *hazard = hazards; hazard->name != NULL; hazard++)
        if (strcmp(arguments[0], hazard->name) == 0)
            return play(hazard, ttl_ms, shim);
    return no_such_hazard(arguments[0]);
}
