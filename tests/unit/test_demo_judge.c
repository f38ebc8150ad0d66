/* test_demo_judge.c - a demo counts as good only if all that it claims was seen. */
#include <stdlib.h>

#include "api/cli/demo/demo.h"
#include "tests/unit/check.h"

enum { TTL_MS = 1000, EVENTS_MAX = 32, WRONGS_MAX = 32 };

/* One thing that was seen otherwise. */
struct wrong {
    const char *event; /* "LABEL: WORD" */
    enum { WORD = 1, NUMBER, TEXT, AT } what;
    const char *text; /* the new word or text */
    int64_t number;   /* the new number or time */
};

struct sample {
    struct {
        const char *hazard;
        unsigned part;
    } of;
    struct timeline_event good[EVENTS_MAX]; /* ends with label NULL */
    struct wrong wrongs[WRONGS_MAX];        /* ends with event NULL; each alone makes it bad */
};

/* When, what by whom, how it ended, with which number and text. */
#define SEEN(at_ms, label, word, number, text)                                                               \
    {                                                                                                        \
        at_ms, label, word, number, text                                                                     \
    }
/* The event whose word or text is another; and the one with another number or time. */
#define SPELT(event, what, text)                                                                             \
    {                                                                                                        \
        event, what, text, 0                                                                                 \
    }
#define MEANT(event, what, number)                                                                           \
    {                                                                                                        \
        event, what, NULL, number                                                                            \
    }
#define STALE_BEGIN(number)                                                                                  \
    SEEN(0, "A takes", "granted", number, "1000"), SEEN(100, "A first", "written", 0, "-"),                  \
        SEEN(200, "A late", "holds", 800, "-")
#define STALE_STOPPED SEEN(210, "A stops", "stopped", 0, "")
#define STALE_B(number)                                                                                      \
    SEEN(1100, "B takes", "granted", number, "1000"), SEEN(1200, "B first", "written", 0, "-")
#define STALE_CONTINUED SEEN(1300, "A continues", "continued", 0, "")
#define STALE_LOST SEEN(1500, "A late", "written", 0, "-"), SEEN(1600, "after", "reads", 0, STALE_A_LATE)
#define STALE_HELD                                                                                           \
    SEEN(1500, "A late", "refused", 412, "stale-token"), SEEN(1600, "after", "reads", 200, STALE_B_FIRST),   \
        SEEN(1700, "B last", "written", 204, "-"), SEEN(1800, "end", "reads", 200, STALE_B_LAST)

/* What every late write must have been. */
#define WRONG_LOST                                                                                           \
    SPELT("A late: written", WORD, "refused"), MEANT("A late: written", AT, 1150),                           \
        SPELT("after: reads", TEXT, STALE_B_FIRST), SPELT("after: reads", TEXT, ""),                         \
        SPELT("B first: written", WORD, "refused"), MEANT("B takes: granted", AT, 150)
/* As if the fence had been gone around, and nearly so. */
#define WRONG_HELD                                                                                           \
    SPELT("A late: refused", WORD, "written"), MEANT("A late: refused", NUMBER, 403),                        \
        SPELT("A late: refused", TEXT, "lease-expired"), SPELT("A late: refused", TEXT, ""),                 \
        MEANT("A late: refused", AT, 1050), SPELT("after: reads", TEXT, STALE_A_LATE),                       \
        SPELT("B last: written", WORD, "refused"), SPELT("end: reads", TEXT, STALE_B_FIRST),                 \
        MEANT("B takes: granted", NUMBER, 1), MEANT("B takes: granted", NUMBER, 0),                          \
        MEANT("A takes: granted", NUMBER, 0), MEANT("B takes: granted", AT, 150)
#define WRONG_STOP                                                                                           \
    MEANT("A stops: stopped", AT, 150), MEANT("A stops: stopped", AT, 1150),                                 \
        MEANT("A continues: continued", AT, 1050)

static const struct sample samples[] = {
    {{"stale-holder", 0},
     {STALE_BEGIN(0), STALE_STOPPED, STALE_B(0), STALE_CONTINUED, STALE_LOST},
     {WRONG_LOST, WRONG_STOP}},
    {{"stale-holder", 1},
     {STALE_BEGIN(1), STALE_STOPPED, STALE_B(2), STALE_CONTINUED, STALE_HELD},
     {WRONG_HELD, WRONG_STOP}},
    {{"clock-jump", 0},
     {SEEN(0, "A takes", "granted", 0, "1000"), SEEN(100, "A first", "written", 0, "-"),
      SEEN(200, "A late", "holds", 800, "-"), SEEN(300, "clock", "jumped", 3600, ""),
      SEEN(400, "B takes", "granted", 0, "1000"), SEEN(500, "B first", "written", 0, "-"),
      SEEN(600, "A late", "written", 0, "-"), SEEN(700, "after", "reads", 0, STALE_A_LATE)},
     {MEANT("clock: jumped", NUMBER, 2), MEANT("clock: jumped", AT, 150), MEANT("clock: jumped", AT, 450),
      MEANT("A late: holds", NUMBER, 150), MEANT("A late: written", AT, 1000),
      MEANT("A late: written", AT, 450), MEANT("B takes: granted", AT, 1000),
      SPELT("after: reads", TEXT, STALE_B_FIRST)}},
    {{"clock-jump", 1},
     {STALE_BEGIN(1), SEEN(300, "clock", "jumped", 3600, ""), STALE_B(2), STALE_HELD},
     {WRONG_HELD, MEANT("clock: jumped", NUMBER, 2), MEANT("clock: jumped", AT, 150)}},
    {{"slow-network", 0},
     {STALE_BEGIN(0), SEEN(300, "wire", "kept", 60, "-"), STALE_B(0),
      SEEN(1400, "wire flows", "passed", 60, "-"), STALE_LOST},
     {WRONG_LOST, MEANT("wire: kept", NUMBER, 0), MEANT("wire: kept", AT, 1050), MEANT("wire: kept", AT, 150),
      MEANT("wire: kept", AT, 1150), MEANT("wire flows: passed", AT, 1150)}},
    {{"slow-network", 1},
     {STALE_BEGIN(1), SEEN(300, "wire", "kept", 60, "-"), STALE_B(2),
      SEEN(1400, "wire flows", "passed", 60, "-"), STALE_HELD},
     {WRONG_HELD, MEANT("wire: kept", NUMBER, 0), MEANT("wire flows: passed", AT, 1150)}},
    {{"crash-before-expire", 0},
     {SEEN(0, "A takes", "set", 0, "-"), SEEN(10, "A dies", "killed", 0, ""),
      SEEN(3010, "B takes", "vain", 50, "-"), SEEN(3020, "time left", "said", -1, "")},
     {SPELT("A takes: set", WORD, "granted"), MEANT("A takes: set", AT, 20),
      SPELT("B takes: vain", WORD, "granted"), MEANT("B takes: vain", NUMBER, 2),
      MEANT("B takes: vain", AT, 1500), MEANT("time left: said", NUMBER, 700),
      MEANT("time left: said", NUMBER, -2)}},
    {{"crash-before-expire", 1},
     {SEEN(0, "A takes", "granted", 1, "1000"), SEEN(10, "A dies", "killed", 0, ""),
      SEEN(1010, "B takes", "granted", 2, "1000"), SEEN(1100, "B first", "written", 204, "-"),
      SEEN(1200, "end", "reads", 200, STALE_B_FIRST)},
     {SPELT("B takes: granted", WORD, "vain"), MEANT("B takes: granted", AT, 5000),
      MEANT("B takes: granted", AT, 5), MEANT("B takes: granted", NUMBER, 1),
      SPELT("B first: written", WORD, "refused"), SPELT("end: reads", TEXT, STALE_A_FIRST)}},
    {{"timestamp-lock", 0},
     {SEEN(0, "A takes", "granted", 0, "1000"), SEEN(100, "A first", "written", 0, "-"),
      SEEN(200, "A late", "holds", 800, "-"), SEEN(300, "B takes", "granted", 0, "1000"),
      SEEN(400, "B first", "written", 0, "-"), SEEN(410, "end by B", "said", 1700003601000, ""),
      SEEN(500, "A late", "written", 0, "-"), SEEN(600, "after", "reads", 0, STALE_A_LATE),
      SEEN(700, "A extends", "extended", 0, "-"), SEEN(710, "end by A", "said", 1700000001700, "")},
     {MEANT("A late: holds", NUMBER, 50), MEANT("B takes: granted", AT, 1100),
      MEANT("A late: written", AT, 1050), MEANT("end by A: said", NUMBER, 1700003601000),
      MEANT("end by A: said", NUMBER, 0), MEANT("end by B: said", NUMBER, 1700000001000),
      SPELT("after: reads", TEXT, STALE_B_FIRST), MEANT("A extends: extended", AT, 250)}},
    {{"timestamp-lock", 1},
     {SEEN(0, "A takes", "granted", 1, "1000"), SEEN(100, "A first", "written", 201, "-"),
      SEEN(200, "A late", "holds", 800, "-"), SEEN(300, "B takes", "held", 0, "A"),
      SEEN(400, "A late", "written", 204, "-"), SEEN(500, "after", "reads", 200, STALE_A_LATE),
      SEEN(590, "A releases", "leaving", 0, "-"), SEEN(600, "A releases", "released", 0, "-"),
      SEEN(600, "B takes", "granted", 2, "1000"), SEEN(700, "B first", "written", 204, "-"),
      SEEN(800, "A too late", "refused", 412, "stale-token"), SEEN(900, "end", "reads", 200, STALE_B_FIRST)},
     {SPELT("B takes: held", WORD, "granted"), MEANT("B takes: granted", AT, 450),
      SPELT("A late: written", WORD, "refused"), SPELT("A releases: released", WORD, "lost"),
      SPELT("A too late: refused", WORD, "written"), SPELT("A too late: refused", TEXT, "lease-expired"),
      MEANT("B takes: granted", NUMBER, 1), SPELT("after: reads", TEXT, STALE_A_FIRST),
      SPELT("end: reads", TEXT, STALE_A_FIRST)}},
    {{"wrong-release", 0},
     {SEEN(0, "A takes", "granted", 0, "1000"), SEEN(10, "A stops", "stopped", 0, ""),
      SEEN(1010, "B takes", "granted", 0, "1000"), SEEN(1100, "B first", "holds", 900, "-"),
      SEEN(1200, "A continues", "continued", 0, ""), SEEN(1300, "A releases", "deleted", 1, "-"),
      SEEN(1400, "C takes", "granted", 0, "1000")},
     {MEANT("A releases: deleted", NUMBER, 0), SPELT("A releases: deleted", WORD, "lost"),
      SPELT("C takes: granted", WORD, "held"), MEANT("C takes: granted", AT, 1250),
      MEANT("C takes: granted", AT, 2100), MEANT("B first: holds", NUMBER, 200),
      MEANT("A stops: stopped", AT, 1050), MEANT("A continues: continued", AT, 1000)}},
    {{"wrong-release", 1},
     {SEEN(0, "A takes", "granted", 0, "1000"), SEEN(5, "A releases", "looked", 0, "-"),
      SEEN(10, "A stops", "stopped", 0, ""), SEEN(1010, "B takes", "granted", 0, "1000"),
      SEEN(1100, "B first", "holds", 900, "-"), SEEN(1200, "A continues", "continued", 0, ""),
      SEEN(1300, "A releases", "deleted", 1, "-"), SEEN(1400, "C takes", "granted", 0, "1000")},
     {MEANT("A releases: looked", AT, 20), MEANT("A releases: deleted", NUMBER, 0),
      SPELT("C takes: granted", WORD, "held"), MEANT("C takes: granted", AT, 2100)}},
    {{"wrong-release", 2},
     {SEEN(0, "A takes", "granted", 1, "1000"), SEEN(10, "A stops", "stopped", 0, ""),
      SEEN(1010, "B takes", "granted", 2, "1000"), SEEN(1200, "A continues", "continued", 0, ""),
      SEEN(1300, "A releases", "lost", 410, "lease-lost"), SEEN(1400, "C takes", "held", 0, "B"),
      SEEN(1500, "B first", "written", 204, "-"), SEEN(1590, "B releases", "leaving", 0, "-"),
      SEEN(1600, "B releases", "released", 0, "-"), SEEN(1600, "C takes", "granted", 3, "1000"),
      SEEN(1700, "end", "reads", 200, STALE_B_FIRST)},
     {SPELT("A releases: lost", WORD, "released"), MEANT("A releases: lost", NUMBER, 503),
      SPELT("C takes: held", WORD, "granted"), MEANT("C takes: granted", AT, 1550),
      MEANT("C takes: granted", NUMBER, 2), SPELT("B releases: released", WORD, "lost"),
      SPELT("B first: written", WORD, "refused"), SPELT("end: reads", TEXT, STALE_A_FIRST),
      MEANT("B takes: granted", NUMBER, 1)}},
    {{"failover", 0},
     {SEEN(0, "A takes", "granted", 0, "1000"), SEEN(100, "A first", "written", 0, "-"),
      SEEN(200, "A late", "holds", 800, "-"), SEEN(300, "failover", "promoted", 0, ""),
      SEEN(310, "lock on the replica", "said", 0, ""), SEEN(400, "B takes", "granted", 0, "1000"),
      SEEN(500, "B first", "written", 0, "-"), SEEN(600, "A late", "written", 0, "-"),
      SEEN(700, "after", "reads", 0, STALE_A_LATE)},
     {MEANT("lock on the replica: said", NUMBER, 1), MEANT("failover: promoted", AT, 150),
      MEANT("failover: promoted", AT, 450), MEANT("A late: holds", NUMBER, 150),
      MEANT("A late: written", AT, 1000), SPELT("after: reads", TEXT, STALE_B_FIRST)}},
    {{"failover", 1},
     {STALE_BEGIN(1), SEEN(300, "failover", "promoted", 0, ""), STALE_B(1000001), STALE_HELD},
     {WRONG_HELD, MEANT("failover: promoted", AT, 150), MEANT("failover: promoted", AT, 1150)}},
    {{"redlock-pause", 0},
     {STALE_BEGIN(0), STALE_STOPPED, STALE_B(0), STALE_CONTINUED, STALE_LOST},
     {WRONG_LOST, WRONG_STOP}},
    {{"redlock-pause", 1},
     {STALE_BEGIN(1), STALE_STOPPED, STALE_B(2), STALE_CONTINUED, STALE_HELD},
     {WRONG_HELD, WRONG_STOP}},
    {{"redlock-pause", 2},
     {STALE_BEGIN(1), STALE_STOPPED, SEEN(300, "clock", "jumped", 3600, ""),
      SEEN(400, "B takes", "granted", 2, "1000"), SEEN(500, "B first", "written", 0, "-"),
      SEEN(600, "A continues", "continued", 0, ""), STALE_HELD},
     {SPELT("A late: refused", WORD, "written"), MEANT("A late: refused", AT, 350),
      SPELT("after: reads", TEXT, STALE_A_LATE), MEANT("B takes: granted", NUMBER, 1),
      MEANT("B takes: granted", AT, 1000), MEANT("B first: written", AT, 1000),
      MEANT("A late: holds", NUMBER, 150), MEANT("clock: jumped", NUMBER, 2), MEANT("clock: jumped", AT, 150),
      MEANT("clock: jumped", AT, 450), MEANT("A stops: stopped", AT, 450),
      MEANT("A continues: continued", AT, 350)}},
    {{"late-unlock", 0},
     {SEEN(0, "A takes", "granted", 0, "1000"), SEEN(100, "B takes", "held", 0, "-"),
      SEEN(1010, "B takes", "granted", 0, "1000"), SEEN(1100, "B first", "written", 0, "-"),
      SEEN(1600, "A late", "written", 0, "-"), SEEN(1700, "after", "reads", 0, STALE_A_LATE),
      SEEN(1800, "A releases", "lost", 0, "-")},
     {SPELT("A releases: lost", WORD, "released"), MEANT("A releases: lost", AT, 1550),
      MEANT("A late: written", AT, 1050), SPELT("A late: written", WORD, "refused"),
      SPELT("after: reads", TEXT, STALE_B_FIRST), MEANT("B takes: held", AT, 1050)}},
    {{"late-unlock", 1},
     {SEEN(0, "A takes", "granted", 1, "1000"), SEEN(50, "A first", "written", 201, "-"),
      SEEN(100, "B takes", "held", 0, "A"), SEEN(1010, "B takes", "granted", 2, "1000"),
      SEEN(1100, "B first", "written", 204, "-"), SEEN(1600, "A late", "refused", 412, "stale-token"),
      SEEN(1700, "after", "reads", 200, STALE_B_FIRST), SEEN(1800, "A releases", "lost", 410, "lease-lost")},
     {SPELT("A late: refused", WORD, "written"), MEANT("A late: refused", NUMBER, 503),
      SPELT("A releases: lost", WORD, "released"), MEANT("A releases: lost", NUMBER, 503),
      SPELT("after: reads", TEXT, STALE_A_LATE), MEANT("B takes: granted", NUMBER, 1)}},
    {{"read-lock-starvation", 0},
     {SEEN(0, "A reads", "granted", 0, "1000"), SEEN(10, "C takes", "held", 0, "-"),
      SEEN(250, "reader", "granted", 0, "1000"), SEEN(500, "reader", "granted", 0, "1000"),
      SEEN(750, "reader", "granted", 0, "1000"), SEEN(1000, "reader", "granted", 0, "1000"),
      SEEN(1250, "reader", "granted", 0, "1000"), SEEN(1500, "reader", "granted", 0, "1000"),
      SEEN(2510, "C takes", "vain", 50, "-")},
     {SPELT("C takes: vain", WORD, "granted"), MEANT("C takes: vain", AT, 1600),
      MEANT("C takes: vain", NUMBER, 1), MEANT("reader: granted", AT, 2600),
      SPELT("reader: granted", WORD, "held"), MEANT("A reads: granted", AT, 20)}},
    {{"read-lock-starvation", 1},
     {SEEN(0, "A reads", "granted", 1, "1000"), SEEN(10, "C takes", "held", 0, "A"),
      SEEN(250, "reader", "held", 0, "A"), SEEN(290, "A leaves", "leaving", 0, "-"),
      SEEN(300, "A leaves", "released", 0, "-"), SEEN(300, "C takes", "granted", 2, "1000"),
      SEEN(400, "C writes", "written", 201, "-"), SEEN(500, "C leaves", "released", 0, "-"),
      SEEN(500, "reader", "granted", 3, "1000"), SEEN(510, "A again", "granted", 4, "1000"),
      SEEN(600, "end", "reads", 200, READ_LOCK_NEWS)},
     {SPELT("reader: held", WORD, "granted"), MEANT("reader: granted", AT, 295),
      MEANT("reader: granted", AT, 350), MEANT("A again: granted", AT, 350),
      SPELT("C takes: granted", WORD, "vain"), MEANT("C takes: granted", AT, 280),
      SPELT("C writes: written", WORD, "refused"), SPELT("A leaves: released", WORD, "lost"),
      SPELT("C leaves: released", WORD, "lost"), SPELT("end: reads", TEXT, STALE_A_FIRST)}},
};

enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static const struct hazard_part *part_of(const struct sample *sample)
{
    const struct hazard *hazard = hazards;

    while (strcmp(hazard->name, sample->of.hazard) != 0)
        hazard++;
    return &hazard->parts[sample->of.part];
}

static bool is_pawl(const struct hazard_part *part)
{
    return strncmp(part->with.lock, "pawl", strlen("pawl")) == 0;
}

/* All of the sample but the one event of this number. */
static struct timeline filled(const struct sample *sample, size_t without)
{
    struct timeline timeline = {.ttl_ms = TTL_MS};

    for (size_t i = 0; i < EVENTS_MAX && sample->good[i].label != NULL; i++)
        if (i != without)
            timeline_add(&timeline, &sample->good[i]);
    return timeline;
}

static bool check_not_good(const struct sample *sample, const struct timeline *timeline)
{
    if (CHECK(judge(part_of(sample), timeline) != NULL))
        return true;
    printf("# %s, part %u\n", sample->of.hazard, sample->of.part);
    return false;
}

static void spoil(struct timeline *timeline, const struct wrong *wrong)
{
    struct timeline_event *event = (struct timeline_event *)(uintptr_t)timeline_find(timeline, wrong->event);

    if (!CHECK(event != NULL))
        return;
    switch (wrong->what) {
    case WORD: snprintf(event->word, sizeof(event->word), "%s", wrong->text); return;
    case TEXT: snprintf(event->text, sizeof(event->text), "%s", wrong->text); return;
    case NUMBER: event->number = wrong->number; return;
    case AT: event->at_ms = (uint64_t)wrong->number; return;
    }
}

TEST(every_part_of_every_hazard_has_its_sample)
{
    unsigned parts = 0;

    for (const struct hazard *hazard = hazards; hazard->name != NULL; hazard++) {
        for (unsigned part = 0; part < HAZARD_PARTS_MAX && hazard->parts[part].headline != NULL; part++) {
            CHECK(parts < SAMPLES && strcmp(samples[parts].of.hazard, hazard->name) == 0 &&
                  samples[parts].of.part == part);
            parts++;
        }
    }
    CHECK_INT(parts, SAMPLES);
}

TEST(only_what_should_happen_is_good)
{
    for (const struct sample *sample = samples; sample < samples + SAMPLES; sample++) {
        struct timeline timeline = filled(sample, EVENTS_MAX), nothing = {.ttl_ms = TTL_MS};

        if (!CHECK(judge(part_of(sample), &timeline) == NULL)) {
            printf("# %s, part %u: %s\n", sample->of.hazard, sample->of.part,
                   judge(part_of(sample), &timeline));
        }
        check_not_good(sample, &nothing);
    }
}

TEST(whatever_is_missing_it_is_not_good)
{
    for (const struct sample *sample = samples; sample < samples + SAMPLES; sample++) {
        for (size_t i = 0; i < EVENTS_MAX && sample->good[i].label != NULL; i++) {
            struct timeline timeline = filled(sample, i);

            if (!check_not_good(sample, &timeline))
                printf("# without %s: %s\n", sample->good[i].label, sample->good[i].word);
        }
    }
}

TEST(whatever_went_otherwise_it_is_not_good)
{
    for (const struct sample *sample = samples; sample < samples + SAMPLES; sample++) {
        for (size_t i = 0; i < WRONGS_MAX && sample->wrongs[i].event != NULL; i++) {
            struct timeline timeline = filled(sample, EVENTS_MAX);

            spoil(&timeline, &sample->wrongs[i]);
            if (!check_not_good(sample, &timeline))
                printf("# wrong %zu: %s\n", i, sample->wrongs[i].event);
        }
    }
}

/* A recipe is no proof of Pawl, nor the other way round. */
TEST(the_judges_of_the_parts_do_not_agree_with_each_other)
{
    for (const struct sample *sample = samples; sample < samples + SAMPLES; sample++) {
        const struct hazard_part *own = part_of(sample), *parts = own - sample->of.part;
        struct timeline timeline = filled(sample, EVENTS_MAX);

        for (unsigned i = 0; i < HAZARD_PARTS_MAX && parts[i].headline != NULL; i++)
            CHECK(is_pawl(&parts[i]) == is_pawl(own) || judge(&parts[i], &timeline) != NULL);
    }
}

CHECK_MAIN
