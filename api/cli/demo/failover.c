/* failover.c - the master dies before its replica has the lock. */
#include "api/cli/demo/hazard.h"

static const struct scene scenes[] = {
    {TELL, "relay", "hold", 0, "from the master to its replica", "wire", "holding"},
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {PAUSE, NULL, NULL, 5, NULL, NULL, NULL},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "look", 0, NULL, "A late", "holds"},
    {CRASH, NULL, NULL, 0, NULL, "failover", NULL},
    {ASK, NULL, "EXISTS orders:41", 0, NULL, "lock on the replica", NULL},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "A", "toil", 5, STALE_A_LATE, "A late", "written|refused"},
    {TELL, "B", "read", 0, NULL, "after", "reads"},
    {0},
};

static const char *judge_failover(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_before(seen, "A takes", "granted", "failover", "promoted"), "A did not get it from the master"},
        {seen_before(seen, "A late", "holds", "failover", "promoted"), "the master died before A's look"},
        {seen_before(seen, "failover", "promoted", "B takes", "granted"), "B came before the failover"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_recipe(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_has(seen, "lock on the replica", "said") &&
             seen_find(seen, "lock on the replica", "said")->number == 0,
         "the replica had the lock"},
    };
    const char *otherwise = judge_failover(seen);

    otherwise = otherwise != NULL ? otherwise : SEEN_FIRST_OTHERWISE(checks);
    return otherwise != NULL ? otherwise : stale_judge_recipe_awake(seen);
}

static const char *judge_pawl(const struct seen *seen)
{
    const char *otherwise = judge_failover(seen);

    return otherwise != NULL ? otherwise : stale_judge_pawl(seen);
}

const struct hazard hazard_failover = {
    .name = "failover",
    .line = "the master dies before its replica has the lock: two holders",
    .intro = "A failover, with real processes: a master and a replica that lags, once with a lock on\n"
             "them and once with Pawl; and workers who want to work on the same order. About 6\n"
             "seconds.",
    .needs = NEEDS_REPLICA,
    .nodes = 1,
    .ttl_percent = 300,
    .parts =
        {
            {.headline = "1  The recipe: SET NX PX with a random value on a master; a plain file",
             .lock = "px",
             .scenes = scenes,
             .judge = judge_recipe,
             .lesson = "Both held it at once: the replica had never heard of A. B's work is lost."},
            {.headline = "2  With Pawl: the same failover of Pawl's own Redis",
             .lock = "pawl",
             .scenes = scenes,
             .then = stale_then_goes_on,
             .judge = judge_pawl,
             .lesson =
                 "The services saw that the store had forgotten: a new epoch, higher tokens, A is over."},
        },
    .verdict = "The fence held: a failover can end a lease early, but lets no stale write in.",
};
