/* crash_before_expire.c - a lock in two commands, and a holder that dies between them. */
#include <string.h>

#include "api/cli/demo/hazard.h"

static const struct scene scenes[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "set|granted"},
    {KILL, "A", NULL, 0, NULL, "A dies", NULL},
    {TELL, "B", "take", 300, NULL, "B takes", "granted|vain"},
    {ASK, NULL, "PTTL orders:41", 0, NULL, "time left", NULL},
    {0},
};

static const struct scene then[] = {
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "B", "read", 0, NULL, "end", "reads"},
    {0},
};

enum { WAITED_TTLS = 2, VAIN_TRIES = 3, LATE_MS = 3000, FOR_EVER = -1 };

static const char *judge_recipe(const struct seen *seen)
{
    const struct seen_event *dead = seen_find(seen, "A dies", "killed");
    const struct seen_event *vain = seen_find(seen, "B takes", "vain");
    const struct seen_check checks[] = {
        {seen_before(seen, "A takes", "set", "A dies", "killed"), "A did not die after SETNX"},
        {!seen_has(seen, "A takes", "granted"), "A came to its EXPIRE"},
        {!seen_has(seen, "B takes", "granted"), "with the recipe, B got the lock of the dead A"},
        {vain->number >= VAIN_TRIES && vain->at_ms >= dead->at_ms + (uint64_t)seen->ttl_ms * WAITED_TTLS,
         "B did not wait long enough to say that it waited in vain"},
        {seen_has(seen, "time left", "said") && seen_find(seen, "time left", "said")->number == FOR_EVER,
         "the lock of the dead A would have ended by itself"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_pawl(const struct seen *seen)
{
    const struct seen_event *granted = seen_find(seen, "A takes", "granted");
    const struct seen_event *next = seen_find(seen, "B takes", "granted");
    const struct seen_check checks[] = {
        {seen_before(seen, "A takes", "granted", "A dies", "killed"), "A did not die after its grant"},
        {seen_before(seen, "A dies", "killed", "B takes", "granted"),
         "B did not get the lease of the dead A"},
        {seen_token_rose(seen, "A takes", "B takes"), "B's token is not greater than A's"},
        {next->at_ms <= granted->at_ms + seen->ttl_ms + LATE_MS, "B got the lease long after A's ttl"},
        {seen_has(seen, "B first", "written"), "B could not write"},
        {seen_reads(seen, "end", STALE_B_FIRST), "the resource did not hold B's work"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

const struct hazard hazard_crash_before_expire = {
    .name = "crash-before-expire",
    .line = "SETNX, then EXPIRE: the holder dies between the two, and everybody waits for ever",
    .intro = "A crash between two commands, with real processes: a redis-server with a lock on it,\n"
             "Pawl, and workers who want to work on the same order. About 10 seconds.",
    .nodes = 1,
    .ttl_percent = 100,
    .parts =
        {
            {.headline = "1  The recipe: SETNX, and when that has worked, EXPIRE",
             .lock = "expire",
             .scenes = scenes,
             .judge = judge_recipe,
             .lesson = "The lock has no end (PTTL -1): B, and everybody after it, would wait for ever."},
            {.headline = "2  With Pawl: A dies just after its grant. A grant and its end are one step",
             .lock = "pawl",
             .scenes = scenes,
             .then = then,
             .judge = judge_pawl,
             .lesson = "B got the lease when A's had run out. There is no moment at which it had no end."},
        },
    .verdict = "Pawl held: there is no grant without an end.",
};
