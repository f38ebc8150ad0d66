/* redlock_pause.c - the majority of five Redis servers does not help a holder that stands still. */
#include "api/cli/demo/hazard.h"

const struct hazard hazard_redlock_pause = {
    .name = "redlock-pause",
    .line = "a majority of five Redis servers, and a holder that stands still: two holders",
    .intro = "Redlock and a pause, with real processes: five redis-servers with a lock on the\n"
             "majority of them, then Pawl, and workers who want to work on the same order. About 10\n"
             "seconds.",
    .nodes = 5,
    .ttl_percent = 100,
    .parts =
        {
            {.headline = "1  The recipe: SET NX PX on the majority of five independent servers; a plain file",
             .lock = "redlock",
             .scenes = stale_scenes_stopped,
             .judge = stale_judge_recipe_stopped,
             .lesson =
                 "B's work is lost. Five servers agreed twice, and no one asked them before the write."},
            {.headline =
                 "2  With Pawl: one Redis, the same pause; the token is compared where the write happens",
             .lock = "pawl",
             .scenes = stale_scenes_stopped,
             .then = stale_then_goes_on,
             .judge = stale_judge_pawl_stopped,
             .lesson = "A's late write was refused. One comparison did what a majority cannot."},
        },
    .verdict = "The fence held where the majority did not.",
};
