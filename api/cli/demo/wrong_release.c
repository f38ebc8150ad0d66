/* wrong_release.c - a holder that comes late releases the lock of its successor. */
#include "api/cli/demo/hazard.h"

static const struct scene scenes_del[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {STOP, "A", NULL, 0, NULL, "A stops", NULL},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "look", 0, NULL, "B first", "holds"},
    {CONTINUE, "A", NULL, 0, NULL, "A continues", NULL},
    {PAUSE, NULL, NULL, 5, NULL, NULL, NULL},
    {TELL, "A", "release", 0, NULL, "A releases", "deleted|lost"},
    {TELL, "C", "take", 0, NULL, "C takes", "granted|held"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused|over"},
    {PAUSE, NULL, NULL, 8, NULL, NULL, NULL},
    {0},
};

static const struct scene scenes_get_del[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "release", 0, NULL, "A releases", "looked"},
    {STOP, "A", NULL, 0, NULL, "A stops", NULL},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "look", 0, NULL, "B first", "holds"},
    {CONTINUE, "A", NULL, 0, NULL, "A continues", NULL},
    {PAUSE, NULL, NULL, 5, NULL, NULL, NULL},
    {AWAIT, "A", NULL, 0, NULL, NULL, "deleted|lost"},
    {TELL, "C", "take", 0, NULL, "C takes", "granted|held"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused|over"},
    {PAUSE, NULL, NULL, 8, NULL, NULL, NULL},
    {0},
};

static const struct scene then_pawl[] = {
    {TELL, "B", "release", 0, NULL, "B releases", "released|lost"},
    {AWAIT, "C", NULL, 0, NULL, NULL, "granted"},
    {PAUSE, NULL, NULL, 15, NULL, NULL, NULL},
    {TELL, "C", "read", 0, NULL, "end", "reads"},
    {0},
};

static const char *judge_stop(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_before(seen, "A takes", "granted", "A stops", "stopped"), "A was not stopped while it held"},
        {seen_before(seen, "A stops", "stopped", "B takes", "granted"), "B did not come while A was stopped"},
        {seen_before(seen, "B takes", "granted", "A continues", "continued"), "A went on before B had come"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_recipe(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_before(seen, "B takes", "granted", "A releases", "deleted"),
         "A did not release while B had the lock"},
        {seen_find(seen, "A releases", "deleted")->number == 1, "A's DEL removed nothing"},
        {seen_before(seen, "A releases", "deleted", "C takes", "granted"),
         "with the recipe, C did not get the lock after A's DEL"},
        {seen_both_held(seen, "B first", "C takes"), "with the recipe, there were not two holders at once"},
    };
    const char *otherwise = judge_stop(seen);

    return otherwise != NULL ? otherwise : SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_get_del(const struct seen *seen)
{
    if (!seen_before(seen, "A releases", "looked", "A stops", "stopped")) {
        return "A was not stopped between GET and DEL";
    }
    return judge_recipe(seen);
}

static const char *judge_pawl(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_token_rose(seen, "A takes", "B takes"), "B's token is not greater than A's"},
        {seen_before(seen, "B takes", "granted", "A releases", "lost"),
         "A was not told at its release that it had lost the lease"},
        {seen_find(seen, "A releases", "lost")->number == 410, "A's release was refused, but not as 410"},
        {!seen_has(seen, "A releases", "released"), "A's release was taken for good"},
        {seen_before(seen, "A releases", "lost", "C takes", "held"), "C was not told that B holds the lease"},
        {seen_has(seen, "B first", "written"), "B's write did not get through, though B held the lease"},
        {seen_has(seen, "B releases", "released"), "B had lost the lease before it gave it back"},
        {seen_before(seen, "B releases", "leaving", "C takes", "granted"), "C got the lease while B held it"},
        {seen_token_rose(seen, "B takes", "C takes"), "C's token is not greater than B's"},
        {seen_reads(seen, "end", STALE_B_FIRST), "the resource did not hold B's work"},
    };
    const char *otherwise = judge_stop(seen);

    return otherwise != NULL ? otherwise : SEEN_FIRST_OTHERWISE(checks);
}

const struct hazard hazard_wrong_release = {
    .name = "wrong-release",
    .line = "DEL without an owner check, or GET and then DEL: A releases B's lock",
    .intro = "A wrong release, with real processes: a redis-server with locks on it, Pawl, and three\n"
             "workers who want to work on the same order. About 15 seconds.",
    .nodes = 1,
    .ttl_percent = 150,
    .parts =
        {
            {.headline = "1  The recipe: SET NX PX, released by DEL without looking whose it is",
             .lock = "del",
             .scenes = scenes_del,
             .judge = judge_recipe,
             .lesson = "A has deleted B's lock, and so C holds it as well as B."},
            {.headline =
                 "2  The better recipe: GET, and when it is its own, DEL; A is stopped between the two",
             .lock = "get-del",
             .scenes = scenes_get_del,
             .judge = judge_get_del,
             .lesson = "A looked, and deleted B's lock all the same: C holds it as well as B."},
            {.headline = "3  With Pawl: a release names its hold, and is compared in one step",
             .lock = "pawl",
             .scenes = scenes_del,
             .then = then_pawl,
             .judge = judge_pawl,
             .lesson = "A's release changed nothing; C stood in line until B gave the lease back."},
        },
    .verdict = "Pawl held: nobody releases what another holds.",
};
