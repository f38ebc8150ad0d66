/* stale_write.c - what the hazards of a late write have in common: A writes late, after B has taken over. */
#include "api/cli/demo/hazard.h"

const struct scene stale_scenes_stopped[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "work", 50, STALE_A_LATE, "A late", "holds"},
    {STOP, "A", NULL, 0, NULL, "A stops", NULL},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {PAUSE, NULL, NULL, 15, NULL, NULL, NULL},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {CONTINUE, "A", NULL, 0, NULL, "A continues", NULL},
    {AWAIT, "A", NULL, 0, NULL, NULL, "written|refused"},
    {TELL, "B", "read", 0, NULL, "after", "reads"},
    {0},
};

const struct scene stale_then_goes_on[] = {
    {PAUSE, NULL, NULL, 15, NULL, NULL, NULL},
    {TELL, "B", "write", 0, STALE_B_LAST, "B last", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "read", 0, NULL, "end", "reads"},
    {0},
};

const char *stale_judge_recipe(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_has(seen, "A takes", "granted"), "A did not get the lock"},
        {seen_has(seen, "A first", "written"), "A's first write did not get through, though A held the lock"},
        {seen_has(seen, "A late", "holds"), "A did not believe that it held the lock"},
        {seen_before(seen, "A late", "holds", "B takes", "granted"), "B did not get the lock after A's look"},
        {seen_has(seen, "B first", "written"), "B's write did not get through, though B held the lock"},
        {seen_before(seen, "B first", "written", "A late", "written"),
         "with the recipe, A's late write did not get through after B's"},
        {seen_reads(seen, "after", STALE_A_LATE), "with the recipe, B's work was not lost"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

const char *stale_judge_recipe_awake(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_both_held(seen, "A late", "B takes"), "with the recipe, there were not two holders at once"},
        {seen_in_time(seen, "A late"), "A wrote when its lock was over by its own clock"},
    };
    const char *otherwise = SEEN_FIRST_OTHERWISE(checks);

    return otherwise != NULL ? otherwise : stale_judge_recipe(seen);
}

const char *stale_judge_pawl(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_has(seen, "A takes", "granted"), "A did not get the lease"},
        {seen_has(seen, "A first", "written"),
         "A's first write did not get through, though A held the lease"},
        {seen_has(seen, "A late", "holds"), "A did not believe that it held the lease"},
        {seen_before(seen, "A late", "holds", "B takes", "granted"),
         "B did not get the lease after A's look"},
        {seen_token_rose(seen, "A takes", "B takes"), "B's token is not greater than A's"},
        {seen_has(seen, "B first", "written"), "B's write did not get through, though B held the lease"},
        {!seen_has(seen, "A late", "written"), "with the fence, A's late write got through"},
        {seen_refused(seen, "A late", 412, "stale-token"),
         "with the fence, A's late write was not refused as 412 stale-token"},
        {seen_before(seen, "B takes", "granted", "A late", "refused"), "A was refused before B came"},
        {seen_reads(seen, "after", STALE_B_FIRST), "with the fence, the resource did not hold B's work"},
        {seen_has(seen, "B last", "written"), "with the fence, B could not go on writing"},
        {seen_reads(seen, "end", STALE_B_LAST),
         "with the fence, the resource did not hold B's last work at the end"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_stop(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_before(seen, "A late", "holds", "A stops", "stopped"),
         "A was not stopped before its late write"},
        {seen_before(seen, "A stops", "stopped", "B takes", "granted"), "B came before A was stopped"},
        {seen_before(seen, "B takes", "granted", "A continues", "continued"), "A went on before B had come"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

const char *stale_judge_recipe_stopped(const struct seen *seen)
{
    const char *otherwise = judge_stop(seen);

    return otherwise != NULL ? otherwise : stale_judge_recipe(seen);
}

const char *stale_judge_pawl_stopped(const struct seen *seen)
{
    const char *otherwise = judge_stop(seen);

    return otherwise != NULL ? otherwise : stale_judge_pawl(seen);
}
