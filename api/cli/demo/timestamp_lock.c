/* timestamp_lock.c - a lock whose end is a time of day, compared with the clock of whoever wants it. */
#include "api/cli/demo/hazard.h"

static const struct scene scenes_recipe[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 5, NULL, NULL, NULL},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "look", 0, NULL, "A late", "holds"},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {ASK, NULL, "GET orders:41", 0, NULL, "end by B", NULL},
    {TELL, "A", "write", 0, STALE_A_LATE, "A late", "written|refused|over"},
    {TELL, "B", "read", 0, NULL, "after", "reads"},
    {TELL, "A", "extend", 0, NULL, "A extends", "extended"},
    {ASK, NULL, "GET orders:41", 0, NULL, "end by A", NULL},
    {0},
};

static const struct scene scenes_pawl[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 5, NULL, NULL, NULL},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "look", 0, NULL, "A late", "holds"},
    {TELL, "B", "take", 0, NULL, "B takes", "held|granted"},
    {TELL, "A", "write", 0, STALE_A_LATE, "A late", "written|refused|over"},
    {TELL, "A", "read", 0, NULL, "after", "reads"},
    {TELL, "A", "release", 0, NULL, "A releases", "released|lost"},
    {AWAIT, "B", NULL, 0, NULL, NULL, "granted"},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "toil", 5, STALE_A_FIRST, "A too late", "written|refused"},
    {TELL, "B", "read", 0, NULL, "end", "reads"},
    {0},
};

/* In milliseconds, of the hour by which B's clock is ahead. */
enum { AHEAD_MS = 3500000 };

static const char *judge_recipe(const struct seen *seen)
{
    int64_t by_b = seen_find(seen, "end by B", "said")->number;
    int64_t by_a = seen_find(seen, "end by A", "said")->number;
    const struct seen_check checks[] = {
        {seen_both_held(seen, "A late", "B takes"), "with the recipe, there were not two holders at once"},
        {seen_in_time(seen, "A late"), "A wrote when its lock was over by its own clock"},
        {by_a > 0 && by_b - by_a > AHEAD_MS, "they did not overwrite each other's end of the lock"},
        {seen_before(seen, "B takes", "granted", "A extends", "extended"), "A extended before B came"},
    };
    const char *otherwise = SEEN_FIRST_OTHERWISE(checks);

    return otherwise != NULL ? otherwise : stale_judge_recipe(seen);
}

static const char *judge_pawl(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_has(seen, "A takes", "granted"), "A did not get the lease"},
        {seen_has(seen, "A first", "written"),
         "A's first write did not get through, though A held the lease"},
        {seen_before(seen, "A late", "holds", "B takes", "held"), "B was not told that A holds the lease"},
        {seen_has(seen, "A late", "written"), "A's write did not get through, though A held the lease"},
        {seen_reads(seen, "after", STALE_A_LATE), "the resource did not hold A's work"},
        {seen_has(seen, "A releases", "released"), "A had lost the lease before it gave it back"},
        {seen_before(seen, "A releases", "leaving", "B takes", "granted"), "B got the lease while A held it"},
        {seen_token_rose(seen, "A takes", "B takes"), "B's token is not greater than A's"},
        {seen_has(seen, "B first", "written"), "B's write did not get through, though B held the lease"},
        {seen_refused(seen, "A too late", 412, "stale-token"),
         "A's write after B's grant was not refused as 412 stale-token"},
        {seen_reads(seen, "end", STALE_B_FIRST), "the resource did not hold B's work"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

const struct hazard hazard_timestamp_lock = {
    .name = "timestamp-lock",
    .line = "SETNX with a time as value, and GETSET: clients with different clocks both hold it",
    .intro = "A lock with a time in it, with real processes: a redis-server with a lock on it, Pawl,\n"
             "and workers. B's clock of the day is an hour ahead (a preloaded shim shifts it). About\n"
             "4 seconds.",
    .needs = NEEDS_CLOCK_OF_B,
    .nodes = 1,
    .ttl_percent = 200,
    .parts =
        {
            {.headline =
                 "1  The recipe: SETNX with the end as value; whoever finds it over takes it by GETSET",
             .lock = "timestamp",
             .scenes = scenes_recipe,
             .judge = judge_recipe,
             .lesson = "Both held it, each overwrote the other's end of the lock, and B's work is lost."},
            {.headline = "2  With Pawl: the same clocks. Only the store's counts, and answers say durations",
             .lock = "pawl",
             .scenes = scenes_pawl,
             .judge = judge_pawl,
             .lesson = "B had to wait until A gave it back, whatever B's clock said."},
        },
    .verdict = "Pawl held: no client's clock decides who holds a lease.",
};
