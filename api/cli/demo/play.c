/* play.c - pawl demo: plays hazards with real processes, with a recipe that is widely used and with Pawl.
 *
 *   play         for each part: stage_begin, scenes, judge, lesson; then the picture of the last part
 *   play_scene   one thing happens */
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

enum { WIDTH = 80, TTL_MS = 2000, TTL_MS_MIN = 300, TTL_MS_MAX = 60000, HAZARDS_MAX = 16 };

struct play_plan {
    unsigned ttl_ms;
    const char *shim; /* its file; NULL: where the build or the installation has it */
};

/* -- one scene */

static bool play_order(struct stage *stage, const struct scene *scene, struct actor *actor, unsigned ms)
{
    char line[WORKER_LINE_SIZE];

    snprintf(line, sizeof(line), "%s %u %s\n", scene->order, ms, scene->text != NULL ? scene->text : "-");
    actor->label = scene->label;
    actor->text = scene->text;
    actor->shares = strcmp(scene->order, "share") == 0;
    actor->word[0] = '\0';
    if (!child_say(&actor->child, line)) {
        cli_fail(CLI_BUG, "%s does not listen", actor->name);
        return false;
    }
    return scene->until == NULL || stage_until(stage, actor, scene->until, STAGE_EVENT_MS);
}

/* Until it is stopped: only then it cannot do anything any more. */
static bool play_stop(struct stage *stage, struct actor *actor)
{
    uint64_t deadline_ms = cli_now_ms() + STAGE_EVENT_MS;
    enum watch_event event = WATCH_LINE;
    char word[EVENT_WORD_SIZE];

    memcpy(word, actor->word, sizeof(word));
    child_signal(&actor->child, SIGSTOP);
    while (event != WATCH_STOPPED || stage->cluster.watch.child != &actor->child) {
        if (!stage_next(stage, deadline_ms, &event)) {
            return false;
        }
        if (event == WATCH_DEADLINE || strcmp(word, actor->word) != 0) {
            cli_fail(CLI_REFUSED, "it went otherwise: %s could not be stopped in time", actor->name);
            return false;
        }
    }
    return true;
}

static bool play_continue(struct actor *actor)
{
    if (!child_signal(&actor->child, SIGCONT)) {
        cli_fail(CLI_BUG, "%s is gone", actor->name);
        return false;
    }
    return true;
}

/* What the stage does to a process, which is an event when it has worked. */
static bool play_signal(struct stage *stage, const struct scene *scene, struct actor *actor)
{
    struct timeline_event event = {.label = scene->label};
    bool done = scene->act == STOP       ? play_stop(stage, actor)
                : scene->act == CONTINUE ? play_continue(actor)
                                         : stage_kill(stage, &actor->child);

    event.at_ms = cli_now_ms();
    snprintf(event.word, sizeof(event.word), "%s",
             scene->act == STOP       ? "stopped"
             : scene->act == CONTINUE ? "continued"
                                      : "killed");
    if (done) {
        stage_note(stage, actor, &event);
    }
    return done;
}

static bool play_scene(struct stage *stage, const struct scene *scene)
{
    unsigned ms = stage->ttl_ms * scene->percent / 100;
    struct actor *actor = stage->actors;

    while (scene->actor != NULL && strcmp(actor->name, scene->actor) != 0) {
        actor++;
    }
    switch (scene->act) {
    case SCENES_END: return true;
    case ORDER: return play_order(stage, scene, actor, ms);
    case AWAIT: return stage_until(stage, actor, scene->until, STAGE_EVENT_MS);
    case STOP:
    case CONTINUE:
    case KILL: return play_signal(stage, scene, actor);
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
        for (const struct scene *scene = *list; scene->act != SCENES_END; scene++) {
            if (!play_scene(stage, scene)) {
                return false;
            }
        }
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

    stage_headline(stage, part->headline);
    played = stage_begin(stage, part) && play_scenes(stage);
    stage_end(stage);
    if (!played) {
        return cli_fail(CLI_REFUSED, "the demo could not be played to its end");
    }
    otherwise = judge(part, &stage->timeline);
    if (otherwise != NULL) {
        return cli_fail(CLI_REFUSED, "it went otherwise than it should: %s", otherwise);
    }
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

        if (status != CLI_GO_ON) {
            return status;
        }
    }
    snprintf(title, sizeof(title), "What happened in part %u: whatever lies below the stairs is refused",
             count);
    stage_headline(stage, title);
    show_picture(stage);
    stage_headline(stage, stage->hazard->conclusion);
    return CLI_OK;
}

/* The exit status: CLI_OK only if the recipe was observed to fail and Pawl to hold. */
static int play(const struct hazard *hazard, const struct play_plan *plan)
{
    struct stage *stage = cli_alloc(sizeof(*stage));
    int status;

    memset(stage, 0, sizeof(*stage));
    stage->hazard = hazard;
    stage->ttl_ms = plan->ttl_ms * hazard->on.ttl_percent / 100;
    stage->style = (print_utf8() ? STAIR_UNICODE : 0) | (print_colour(stdout) ? STAIR_COLOUR : 0);
    puts(hazard->intro);
    fflush(stdout);
    status = stage_open(stage, plan->shim);
    if (status == CLI_GO_ON) {
        status = play_parts(stage);
    } else if (status == CLI_OK) {
        status = CLI_REFUSED; /* interrupted: nothing was shown */
    }
    stage_close(stage);
    free(stage);
    return status;
}

/* -- the command */

static int list(void)
{
    for (const struct hazard *hazard = hazards; hazard->name != NULL; hazard++) {
        printf("%-22s %s\n", hazard->name, hazard->line);
    }
    return CLI_OK;
}

static int no_such_hazard(const char *name)
{
    const char *names[HAZARDS_MAX + 2] = {"all"};
    const char *near;

    for (unsigned i = 0; i < HAZARDS_MAX && hazards[i].name != NULL; i++) {
        names[i + 1] = hazards[i].name;
    }
    near = suggest(name, names);
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "there is no demo of \"%s\"; did you mean \"%s\"?", name, near);
    }
    cli_fail(CLI_USAGE, "there is no demo of \"%s\"", name);
    for (unsigned i = 1; names[i] != NULL; i++) {
        cli_hint("%s", names[i]);
    }
    return CLI_USAGE;
}

/* Each, whatever came of the others; an interruption ends them all. */
static int play_all(const struct play_plan *plan)
{
    unsigned good = 0, count = 0;

    for (; hazards[count].name != NULL; count++) {
        int status;

        printf("%s%s\n\n", count > 0 ? "\n\n" : "", hazards[count].name);
        status = play(&hazards[count], plan);
        if (status == CLI_CONFIG) {
            return status;
        }
        good += status == CLI_OK;
    }
    printf("\n%u of %u hazards: the recipe failed, and Pawl held\n", good, count);
    return good == count ? CLI_OK : cli_fail(CLI_REFUSED, "%u went otherwise than they should", count - good);
}

static int play_named(const char *name, const struct play_plan *plan)
{
    if (strcmp(name, "all") == 0) {
        return play_all(plan);
    }
    for (const struct hazard *hazard = hazards; hazard->name != NULL; hazard++) {
        if (strcmp(name, hazard->name) == 0) {
            return play(hazard, plan);
        }
    }
    return no_such_hazard(name);
}

int cli_demo(int argc, char **argv)
{
    uint64_t ttl_ms = TTL_MS;
    struct play_plan plan = {0};
    bool listed = false;
    const struct option flags[] = {
        FLAG_MS("ttl", "DURATION", "how long the locks run: everything takes so much longer or shorter (2s)",
                &ttl_ms),
        FLAG_TEXT("shim", "FILE", "what shifts a clock (default: the installed one)", &plan.shim),
        FLAG_ON("list", "the hazards, a line each (the same as no HAZARD)", &listed),
        {0},
    };
    const struct usage usage = {
        .name = "demo",
        .arguments = "[HAZARD]",
        .examples = "  pawl demo                        # which hazards there are\n"
                    "  pawl demo stale-holder\n"
                    "  pawl demo all --ttl 600ms\n",
        .summary =
            "Shows a hazard with real processes: first with a recipe that is widely used, then with Pawl.\n"
            "Without HAZARD: lists them. With \"all\": plays one after the other.\n"
            "Exit status 0: the recipe was seen to fail, and Pawl was seen to hold.",
        .flags = flags};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    if (ttl_ms < TTL_MS_MIN || ttl_ms > TTL_MS_MAX) {
        return cli_fail(CLI_USAGE, "--ttl is to be %d ms to %d s", TTL_MS_MIN, TTL_MS_MAX / 1000);
    }
    plan.ttl_ms = (unsigned)ttl_ms;
    return listed || arguments[0] == NULL ? list() : play_named(arguments[0], &plan);
}
