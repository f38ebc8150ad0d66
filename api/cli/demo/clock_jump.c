/* clock_jump.c - the clock of Redis jumps forward, and with it the end of every lock comes at once. */
#include "api/cli/demo/hazard.h"

static const struct scene scenes[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 5, NULL, NULL, NULL},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "look", 0, NULL, "A late", "holds"},
    {JUMP, NULL, NULL, 0, NULL, "clock", NULL},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "toil", 5, STALE_A_LATE, "A late", "written|refused"},
    {TELL, "B", "read", 0, NULL, "after", "reads"},
    {0},
};

static const char *judge_jump(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_find(seen, "clock", "jumped")->number >= 3500, "the clock of Redis did not jump"},
        {seen_before(seen, "A late", "holds", "clock", "jumped"), "the clock jumped before A's look"},
        {seen_before(seen, "clock", "jumped", "B takes", "granted"), "B came before the clock jumped"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_recipe(const struct seen *seen)
{
    const char *otherwise = judge_jump(seen);

    return otherwise != NULL ? otherwise : stale_judge_recipe_awake(seen);
}

static const char *judge_pawl(const struct seen *seen)
{
    const char *otherwise = judge_jump(seen);

    return otherwise != NULL ? otherwise : stale_judge_pawl(seen);
}

const struct hazard hazard_clock_jump = {
    .name = "clock-jump",
    .line = "Redis' clock jumps forward and a lock ends early: two holders, both awake",
    .intro = "A clock that jumps, with real processes: two redis-servers whose clock of the day is\n"
             "shifted by a preloaded shim, one with a lock on it, one with Pawl; and workers. About\n"
             "3 seconds.",
    .needs = NEEDS_CLOCK_OF_REDIS,
    .nodes = 1,
    .ttl_percent = 200,
    .parts =
        {
            {.headline =
                 "1  The recipe: SET NX PX with a random value; Redis ends keys by its clock of the day",
             .lock = "px",
             .scenes = scenes,
             .judge = judge_recipe,
             .lesson = "Both held it at once, nobody stood still, and B's work is lost."},
            {.headline = "2  With Pawl: the same jump. It ends A's lease early, and so A's token is over",
             .lock = "pawl",
             .scenes = scenes,
             .then = stale_then_goes_on,
             .judge = judge_pawl,
             .lesson = "A could not know that its lease was over. The gateway knew."},
        },
    .verdict = "The fence held: a wrong clock can end a lease early, but lets no stale write in.",
};
