/* play.c - plays a hazard: its scenes on the stage, then its judges.
 *
 *   play         for each part: stage_begin, scenes, judge, lesson; then the picture of the last part
 *   play_scene   one thing happens */
#include "api/cli/demo/play.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/demo/stage.h"
#include "api/cli/print.h"

enum { WIDTH = 80 };

/* -- one scene */

static unsigned time_of(const struct stage *stage, const struct scene *scene)
{
    return stage->ttl_ms * scene->percent / 100;
}

static bool play_tell(struct stage *stage, const struct scene *scene, struct stage_worker *worker)
{
    char line[WORKER_LINE_SIZE];

    snprintf(line, sizeof(line), "%s %u %s\n", scene->order, time_of(stage, scene),
             scene->text != NULL ? scene->text : "-");
    worker->label = scene->label;
    worker->text = scene->text;
    worker->shares = strcmp(scene->order, "share") == 0;
    worker->word[0] = '\0';
    if (!child_say(&worker->child, line)) {
        cli_fail(CLI_BUG, "%s does not listen", worker->name);
        return false;
    }
    return scene->until == NULL || stage_until(stage, worker, scene->until, STAGE_EVENT_MS);
}

/* Until it stands: only then it cannot do anything any more. */
static bool play_stop(struct stage *stage, const struct scene *scene, struct stage_worker *worker)
{
    uint64_t deadline_ms = cli_now_ms() + STAGE_EVENT_MS;
    enum watch_event event = WATCH_LINE;
    char word[SEEN_WORD_SIZE];

    memcpy(word, worker->word, sizeof(word));
    child_signal(&worker->child, SIGSTOP);
    while (event != WATCH_STOPPED || stage->cluster.watch.child != &worker->child) {
        if (!stage_next(stage, deadline_ms, &event)) {
            return false;
        }
        if (event == WATCH_DEADLINE || strcmp(word, worker->word) != 0) {
            cli_fail(CLI_REFUSED, "it went otherwise: %s could not be stopped in time", worker->name);
            return false;
        }
    }
    stage_note(stage, worker, scene->label, "stopped", 0);
    return true;
}

static bool play_continue(struct stage *stage, const struct scene *scene, struct stage_worker *worker)
{
    if (!child_signal(&worker->child, SIGCONT)) {
        cli_fail(CLI_BUG, "%s is gone", worker->name);
        return false;
    }
    stage_note(stage, worker, scene->label, "continued", 0);
    return true;
}

static bool play_kill(struct stage *stage, const struct scene *scene, struct stage_worker *worker)
{
    if (!stage_kill(stage, &worker->child)) {
        return false;
    }
    stage_note(stage, worker, scene->label, "killed", 0);
    return true;
}

static bool play_scene(struct stage *stage, const struct scene *scene)
{
    struct stage_worker *worker = stage_worker_find(stage, scene->who != NULL ? scene->who : "");

    switch (scene->act) {
    case SCENES_END: return true;
    case TELL: return play_tell(stage, scene, worker);
    case AWAIT: return stage_until(stage, worker, scene->until, STAGE_EVENT_MS);
    case STOP: return play_stop(stage, scene, worker);
    case CONTINUE: return play_continue(stage, scene, worker);
    case KILL: return play_kill(stage, scene, worker);
    case PAUSE: return stage_until(stage, worker, NULL, time_of(stage, scene));
    case JUMP: return stage_jump(stage, scene->label);
    case CRASH: return stage_crash(stage, scene->label);
    case ASK: return stage_ask(stage, scene->order, scene->label);
    }
    abort();
}

static bool play_scenes(struct stage *stage, const struct scene *scenes)
{
    for (; scenes != NULL && scenes->act != SCENES_END; scenes++) {
        if (!play_scene(stage, scenes)) {
            return false;
        }
    }
    return true;
}

/* -- a part */

static unsigned width_of_terminal(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col < WIDTH ? size.ws_col : WIDTH;
    }
    return WIDTH;
}

static void show_picture(const struct stage *stage)
{
    char *picture = staircase_draw(stage->picture, stage->picture_count, width_of_terminal(), stage->style,
                                   stage->is_pawl ? STAIR_STEPS : STAIR_FLAT);

    fputs(picture, stdout);
    free(picture);
    fflush(stdout);
}

/* CLI_GO_ON: it went as it should. */
static int play_part(struct stage *stage, unsigned index)
{
    const struct hazard_part *part = &stage->hazard->parts[index];
    const char *otherwise;
    bool played;

    stage_headline(stage, part->headline);
    played = stage_begin(stage, index) && play_scenes(stage, part->scenes) && play_scenes(stage, part->then);
    stage_end(stage);
    if (!played) {
        return cli_fail(CLI_REFUSED, "the demo could not be played to its end");
    }
    otherwise = part->judge(&stage->seen);
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
    char title[WIDTH + 1];
    int status = CLI_GO_ON;
    unsigned i;

    for (i = 0; status == CLI_GO_ON && i < HAZARD_PARTS_MAX && stage->hazard->parts[i].headline != NULL;
         i++) {
        status = play_part(stage, i);
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    snprintf(title, sizeof(title), "What happened in part %u: whatever lies below the stairs is refused", i);
    stage_headline(stage, title);
    show_picture(stage);
    stage_headline(stage, stage->hazard->verdict);
    return CLI_OK;
}

int play(const struct hazard *hazard, const struct play_plan *plan)
{
    struct stage *stage = cli_alloc(sizeof(*stage));
    int status;

    memset(stage, 0, sizeof(*stage));
    stage->hazard = hazard;
    stage->ttl_ms = plan->ttl_ms * hazard->ttl_percent / 100;
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
