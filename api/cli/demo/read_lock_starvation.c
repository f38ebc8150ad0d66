/* read_lock_starvation.c - readers who keep coming, and a writer who never gets in. */
#include <string.h>

#include "api/cli/demo/hazard.h"

/* B comes before A leaves, and A before B leaves. */
#define ROUND                                                                                                \
    {PAUSE, NULL, NULL, 25, NULL, NULL, NULL}, {TELL, "B", "share", 0, NULL, "reader", "granted"},           \
        {TELL, "A", "release", 0, NULL, "reader leaves", "released|lost"},                                   \
        {PAUSE, NULL, NULL, 25, NULL, NULL, NULL}, {TELL, "A", "share", 0, NULL, "reader", "granted"},       \
    {                                                                                                        \
        TELL, "B", "release", 0, NULL, "reader leaves", "released|lost"                                      \
    }

static const struct scene scenes_recipe[] = {
    {TELL, "A", "share", 0, NULL, "A reads", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "C", "take", 250, NULL, "C takes", "held|granted"},
    ROUND,
    ROUND,
    ROUND,
    ROUND,
    ROUND,
    {AWAIT, "C", NULL, 0, NULL, NULL, "vain|granted"},
    {0},
};

/* The same, as far as the readers get. */
static const struct scene scenes_pawl[] = {
    {TELL, "A", "share", 0, NULL, "A reads", "granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "C", "take", 0, NULL, "C takes", "held|granted"},
    {PAUSE, NULL, NULL, 25, NULL, NULL, NULL},
    {TELL, "B", "share", 0, NULL, "reader", "held|granted"},
    {PAUSE, NULL, NULL, 15, NULL, NULL, NULL},
    {TELL, "A", "release", 0, NULL, "A leaves", "released|lost"},
    {AWAIT, "C", NULL, 0, NULL, NULL, "granted"},
    {TELL, "A", "share", 0, NULL, "A again", "held|granted"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "C", "write", 0, READ_LOCK_NEWS, "C writes", "written|refused"},
    {PAUSE, NULL, NULL, 10, NULL, NULL, NULL},
    {TELL, "C", "release", 0, NULL, "C leaves", "released|lost"},
    {AWAIT, "B", NULL, 0, NULL, NULL, "granted"},
    {AWAIT, "A", NULL, 0, NULL, NULL, "granted"},
    {TELL, "B", "read", 0, NULL, "end", "reads"},
    {0},
};

enum { WAITED_TTLS = 2, PASSED_BY = 6, VAIN_TRIES = 3 };

/* Readers who were let in between two moments. */
static unsigned readers_between(const struct seen *seen, uint64_t from_ms, uint64_t to_ms)
{
    unsigned count = 0;

    for (size_t i = 0; i < seen->count; i++) {
        const struct seen_event *event = &seen->events[i];

        count += strcmp(event->label, "reader") == 0 && strcmp(event->word, "granted") == 0 &&
                 event->at_ms >= from_ms && event->at_ms <= to_ms;
    }
    return count;
}

static const char *judge_recipe(const struct seen *seen)
{
    const struct seen_event *asked = seen_find(seen, "C takes", "held");
    const struct seen_event *vain = seen_find(seen, "C takes", "vain");
    const struct seen_check checks[] = {
        {seen_before(seen, "A reads", "granted", "C takes", "held"), "C did not find a reader"},
        {!seen_has(seen, "C takes", "granted"), "with the recipe, the writer got in"},
        {seen_has(seen, "C takes", "vain") && vain->number >= VAIN_TRIES &&
             vain->at_ms >= asked->at_ms + (uint64_t)seen->ttl_ms * WAITED_TTLS,
         "the writer did not wait long enough to say that it waited in vain"},
        {readers_between(seen, asked->at_ms, vain->at_ms) >= PASSED_BY,
         "too few readers came while the writer waited"},
        {!seen_has(seen, "reader leaves", "lost"), "a reader's lock ran out"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_pawl(const struct seen *seen)
{
    const struct seen_check checks[] = {
        {seen_before(seen, "A reads", "granted", "C takes", "held"), "C did not find a reader"},
        {seen_before(seen, "C takes", "held", "C takes", "granted"), "the writer did not get in"},
        {seen_before(seen, "A leaves", "leaving", "C takes", "granted"),
         "the writer got in while a reader was there"},
        {seen_has(seen, "A leaves", "released"), "the reader's lease ran out"},
        {seen_before(seen, "C takes", "held", "reader", "held"), "the second reader did not have to wait"},
        {seen_has(seen, "C writes", "written"), "the writer could not write"},
        {seen_has(seen, "C leaves", "released"), "the writer's lease ran out"},
        {seen_before(seen, "C writes", "written", "reader", "granted"), "a reader overtook the writer"},
        {seen_before(seen, "C writes", "written", "A again", "granted"), "a reader got in beside the writer"},
        {seen_reads(seen, "end", READ_LOCK_NEWS), "the reader did not see what the writer wrote"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

const struct hazard hazard_read_lock_starvation = {
    .name = "read-lock-starvation",
    .line = "a read-write lock whose readers keep coming: the writer never gets in",
    .intro = "Readers and a writer, with real processes: a redis-server with a read-write lock on\n"
             "it, Pawl, two readers (A and B) who come again and again, and a writer (C). About 8\n"
             "seconds.",
    .nodes = 1,
    .ttl_percent = 100,
    .parts =
        {
            {.headline = "1  The recipe: any number of readers; a writer must find none",
             .lock = "readers",
             .scenes = scenes_recipe,
             .judge = judge_recipe,
             .lesson = "The writer asked all the time, and every reader who came later passed it by."},
            {.headline = "2  With Pawl: one line for readers and writers, first come, first served",
             .lock = "pawl",
             .scenes = scenes_pawl,
             .judge = judge_pawl,
             .lesson = "The writer got in when the reader before it had left; no reader passed it by."},
        },
    .verdict = "Pawl held: a waiting writer is not passed by.",
};
