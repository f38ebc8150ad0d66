/* stale_holder.c - the holder stands still until its lock has run out, then goes on and writes. */
#include "api/cli/demo/hazard.h"

const struct hazard hazard_stale_holder = {
    .name = "stale-holder",
    .line = "the holder stands still past its TTL, another takes over, then the first one writes",
    .intro = "The stale holder, with real processes: a redis-server with a lock on it, Pawl with\n"
             "another one, and workers who want to work on the same order. About 10 seconds.",
    .nodes = 1,
    .ttl_percent = 100,
    .parts =
        {
            {.headline =
                 "1  Without the fence: SET NX PX with a random value, released by a script; a plain file",
             .lock = "px",
             .scenes = stale_scenes_stopped,
             .judge = stale_judge_recipe_stopped,
             .lesson = "B's work is lost: nobody knows any more that this order was shipped."},
            {.headline = "2  With the fence: the same, but they write through the gateway with their tokens",
             .lock = "pawl",
             .scenes = stale_scenes_stopped,
             .then = stale_then_goes_on,
             .judge = stale_judge_pawl_stopped,
             .lesson = "A's late write was refused, because B's token is the greater one."},
        },
    .verdict = "The fence held: the same late write, harmful in part 1, changed nothing in part 2.",
};
