/* late_unlock.c - a lock that ran out before unlock(): the loss is noticed, but only then. */
#include "api/cli/demo/hazard.h"

/* Nobody is stopped: A's work just takes longer than its lock runs. */
static const struct scene scenes[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {TELL, "B", "take", 0, NULL, "B takes", "held|granted"},
    {TELL, "A", "toil", 150, STALE_A_LATE, "A late", NULL},
    {AWAIT, "B", NULL, 0, NULL, NULL, "granted"},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {AWAIT, "A", NULL, 0, NULL, NULL, "written|refused"},
    {TELL, "B", "read", 0, NULL, "after", "reads"},
    {TELL, "A", "release", 0, NULL, "A releases", "released|lost"},
    {0},
};

static const char *judge_recipe(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_has(seen, "A takes", "granted"), "A did not get the lock"},
        {seen_before(seen, "B takes", "held", "B takes", "granted"), "B did not have to wait for A's lock"},
        {seen_before(seen, "B first", "written", "A late", "written"),
         "with the recipe, A's late write did not get through after B's"},
        {seen_reads(seen, "after", STALE_A_LATE), "with the recipe, B's work was not lost"},
        {seen_before(seen, "A late", "written", "A releases", "lost"),
         "with the recipe, A was not told after its write that it had lost the lock"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_pawl(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_has(seen, "A takes", "granted"), "A did not get the lease"},
        {seen_has(seen, "A first", "written"),
         "A's first write did not get through, though A held the lease"},
        {seen_before(seen, "B takes", "held", "B takes", "granted"), "B did not have to wait for A's lease"},
        {seen_token_rose(seen, "A takes", "B takes"), "B's token is not greater than A's"},
        {seen_has(seen, "B first", "written"), "B's write did not get through, though B held the lease"},
        {seen_refused(seen, "A late", 412, "stale-token"),
         "with Pawl, A's late write was not refused as 412 stale-token"},
        {seen_reads(seen, "after", STALE_B_FIRST), "with Pawl, the resource did not hold B's work"},
        {seen_before(seen, "A late", "refused", "A releases", "lost"),
         "A's release was not told that the lease is lost"},
        {seen_find(seen, "A releases", "lost")->number == 410, "A's release was refused, but not as 410"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

const struct hazard hazard_late_unlock = {
    .name = "late-unlock",
    .line = "a registry lock that ran out before unlock(): the loss is noticed only afterwards",
    .intro = "An unlock that comes too late, with real processes: a redis-server with a lock on it,\n"
             "Pawl, and workers. Nobody stands still; A's work just takes longer than its lock.\n"
             "About 8 seconds.",
    .nodes = 1,
    .ttl_percent = 100,
    .parts =
        {
            {.headline = "1  The recipe: a lock registry, lock(), work, unlock(); a plain file",
             .lock = "registry",
             .scenes = scenes,
             .judge = judge_recipe,
             .lesson = "unlock() says that something went wrong, when B's work is lost already."},
            {.headline = "2  With Pawl: the same work, too long by half",
             .lock = "pawl",
             .scenes = scenes,
             .judge = judge_pawl,
             .lesson = "A is told by its write, before anything is lost, and again by its release."},
        },
    .verdict = "The fence held: the loss is told where the harm would be done.",
};
