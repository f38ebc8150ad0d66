/* demo_stale_holder.c - pawl demo stale-holder.
 *
 *   play_part      A acquires, writes, works and is stopped; its lease expires; B acquires and writes; A goes
 * on and writes; B looks first          the workers write to a plain file: the lease is a lock and nothing
 * more then           the workers write through the gateway, which compares their tokens the picture, and the
 * verdict of demo_judge() */
#include "api/cli/demo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/demo_judge.h"
#include "api/cli/demo_stage.h"
#include "api/cli/print.h"

enum { TTL_MS = 2000, PAUSE_MS = 300, LONG_PAUSE_MS = 600, WIDTH = 80 };

/* -- single scenes; each false when the demo cannot go on */

static bool scene_acquire(struct stage *stage, struct stage_worker *worker, int64_t *token)
{
    struct worker_event event;
    char order[WORKER_TEXT_SIZE];

    snprintf(order, sizeof(order), "acquire %d\n", TTL_MS);
    if (!stage_tell_worker(worker, order) || !stage_expect(stage, worker, "granted", "held", &event)) {
        return false;
    }
    if (strcmp(event.word, "held") == 0) {
        stage_say(stage, worker, event.at_ms, "wants the lease too: held by %s, so it asks again and again",
                  event.text);
        if (!stage_expect(stage, worker, "granted", NULL, &event)) {
            return false;
        }
        stage_say(stage, worker, event.at_ms, "gets the lease, because A's has run out: token %" PRId64,
                  event.number);
    } else {
        stage_say(stage, worker, event.at_ms, "gets the lease for %.1f s: token %" PRId64, TTL_MS / 1000.0,
                  event.number);
    }
    *token = worker->token = event.number;
    stage_record(stage, worker, STAIR_GRANTED, event.at_ms);
    return true;
}

/* The end of a write that the worker is about. */
static bool scene_write_end(struct stage *stage, struct stage_worker *worker, const char *text,
                            struct demo_write *write)
{
    struct worker_event event;

    if (!stage_expect(stage, worker, "written", "refused", &event)) {
        return false;
    }
    if (strcmp(event.word, "written") == 0) {
        write->end = DEMO_WRITTEN;
        stage_say(stage, worker, event.at_ms, "writes \"%s\"", text);
        stage_record(stage, worker, STAIR_ACCEPTED, event.at_ms);
        return true;
    }
    write->end = DEMO_REFUSED;
    write->status = (unsigned)event.number;
    snprintf(write->code, sizeof(write->code), "%.*s", DEMO_TEXT_SIZE - 1, event.text);
    stage_say(stage, worker, event.at_ms, "writes \"%s\": refused, %u %s", text, write->status, write->code);
    stage_record(stage, worker, STAIR_REFUSED, event.at_ms);
    return true;
}

static bool scene_write(struct stage *stage, struct stage_worker *worker, const char *text,
                        struct demo_write *write)
{
    char order[WORKER_TEXT_SIZE];

    snprintf(order, sizeof(order), "write %s\n", text);
    return stage_tell_worker(worker, order) && scene_write_end(stage, worker, text, write) &&
           stage_pause(stage, PAUSE_MS);
}

static bool scene_read(struct stage *stage, struct stage_worker *worker, char text[DEMO_TEXT_SIZE])
{
    struct worker_event event;

    if (!stage_tell_worker(worker, "read\n") || !stage_expect(stage, worker, "reads", NULL, &event)) {
        return false;
    }
    snprintf(text, DEMO_TEXT_SIZE, "%.*s", DEMO_TEXT_SIZE - 1, event.text);
    stage_say(stage, worker, event.at_ms, "reads  \"%s\"", text);
    return true;
}

/* A looks whether its lease still runs, begins its work, and is stopped in the midst of it. */
static bool scene_stop(struct stage *stage, struct stage_worker *worker, bool *was_stopped)
{
    struct worker_event event;

    if (!stage_tell_worker(worker, "work " DEMO_A_LATE "\n") ||
        !stage_expect(stage, worker, "holds", NULL, &event)) {
        return false;
    }
    stage_say(stage, worker, event.at_ms,
              "looks at its clock: lease good for %.1f s; works on its next write",
              (double)event.number / 1000.0);
    if (!stage_stop(stage, worker)) {
        return false;
    }
    *was_stopped = true;
    stage_say(stage, worker, cli_now_ms(), "is stopped (SIGSTOP to pid %d), as a VM or a long GC may stop it",
              (int)worker->child.pid);
    stage_record(stage, worker, STAIR_STOPPED, cli_now_ms());
    return true;
}

static bool scene_continue(struct stage *stage, struct stage_worker *worker)
{
    uint64_t now = cli_now_ms();

    stage_say(stage, worker, now, "goes on (SIGCONT), and finishes what it had begun");
    stage_record(stage, worker, STAIR_CONTINUED, now);
    return stage_continue(worker);
}

/* -- a part */

static bool play_scenes(struct stage *stage, struct demo_part *part)
{
    if (!scene_acquire(stage, &stage->a, &part->token_a) || !stage_pause(stage, PAUSE_MS) ||
        !scene_write(stage, &stage->a, DEMO_A_FIRST, &part->a_first) ||
        !scene_stop(stage, &stage->a, &part->a_was_stopped) || !stage_pause(stage, PAUSE_MS) ||
        !scene_acquire(stage, &stage->b, &part->token_b)) {
        return false;
    }
    part->b_came_while_a_was_stopped = part->a_was_stopped; /* it goes on below, and not before */
    return stage_pause(stage, PAUSE_MS) && scene_write(stage, &stage->b, DEMO_B_FIRST, &part->b_first) &&
           scene_continue(stage, &stage->a) &&
           scene_write_end(stage, &stage->a, DEMO_A_LATE, &part->a_late) && stage_pause(stage, PAUSE_MS) &&
           scene_read(stage, &stage->b, part->after_late);
}

static bool play_last_write(struct stage *stage, struct demo_part *part)
{
    return scene_write(stage, &stage->b, DEMO_B_LAST, &part->b_last) &&
           scene_read(stage, &stage->b, part->at_end);
}

static bool play_without(struct stage *stage, struct demo_part *part)
{
    char file[CHILD_PATH_SIZE];
    bool played;

    snprintf(file, sizeof(file), "%.*s/order", CHILD_PATH_SIZE - 16, stage->cluster.files.run);
    stage_headline(stage, "1  Without the fence: both take the lease, then write to a plain file");
    played = stage_begin(stage, "orders:41", file) && play_scenes(stage, part);
    stage_end(stage);
    if (played && strcmp(part->after_late, DEMO_A_LATE) == 0) {
        puts("\n  B's work is lost: nobody knows any more that this order was shipped.");
    }
    return played;
}

static bool play_with(struct stage *stage, struct demo_part *part)
{
    bool played;

    stage_headline(stage,
                   "2  With the fence: the same, but they write through the gateway with their tokens");
    played = stage_begin(stage, "orders:42", NULL) && play_scenes(stage, part) &&
             play_last_write(stage, part);
    stage_end(stage);
    return played;
}

/* -- the picture and the end */

static unsigned width_of_terminal(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col < WIDTH ? size.ws_col : WIDTH;
    }
    return WIDTH;
}

static int verdict(const struct stage *stage, const struct demo_part *without, const struct demo_part *with)
{
    const char *otherwise = demo_judge(without, with);
    char *picture = staircase_draw(stage->events, stage->event_count, width_of_terminal(), stage->style);

    stage_headline(stage, "What happened in part 2: whatever lies below the stairs is refused");
    fputs(picture, stdout);
    free(picture);
    if (otherwise != NULL) {
        fflush(stdout);
        return cli_fail(CLI_REFUSED, "it went otherwise than it should: %s", otherwise);
    }
    stage_headline(stage,
                   "The fence held: the same late write, harmful in part 1, changed nothing in part 2.");
    return CLI_OK;
}

static int play(struct stage *stage)
{
    struct demo_part without = {0}, with = {0};

    if (!play_without(stage, &without) || !play_with(stage, &with)) {
        return cli_fail(CLI_REFUSED, "the demo could not be played to its end");
    }
    return verdict(stage, &without, &with);
}

int demo_stale_holder(void)
{
    struct stage stage = {.style = (print_utf8() ? STAIR_UNICODE : 0) |
                                   (print_colour(stdout) ? STAIR_COLOUR : 0)};
    const struct cluster_plan plan = {.listen_lease = "127.0.0.1:0", .listen_gateway = "127.0.0.1:0"};
    int status;

    puts("The stale holder, with real processes: a redis-server, the lease service, the gateway,\n"
         "and two workers, A and B, who want to work on the same order. About 10 seconds.");
    fflush(stdout);
    status = cluster_start(&stage.cluster, &plan);
    if (status == CLI_GO_ON) {
        status = play(&stage);
    } else if (status == CLI_OK) {
        status = CLI_REFUSED; /* interrupted: nothing was shown */
    }
    cluster_end(&stage.cluster);
    return status;
}
