/* test_demo_judge.c - a demo counts as good only if all that it claims was seen. */
#include <stdlib.h>

#include "api/cli/demo/hazard.h"
#include "tests/unit/check.h"

enum { TTL_MS = 1000, EVENTS_MAX = 32, WRONGS_MAX = 32 };

/* One thing that was seen otherwise. */
struct wrong {
    const char *label, *word;
    enum { WORD = 1, NUMBER, TEXT, AT } what;
    const char *text; /* the new word or text */
    int64_t number;   /* the new number or time */
};

struct sample {
    const struct hazard *hazard;
    unsigned part;
    struct seen_event good[EVENTS_MAX]; /* ends with label NULL */
    struct wrong wrongs[WRONGS_MAX];    /* ends with label NULL; each alone makes it bad */
};

#define STALE_BEGIN(number)                                                                                  \
    {0, "A takes", "granted", number, "1000"}, {100, "A first", "written", 0, "-"},                          \
    {                                                                                                        \
        200, "A late", "holds", 800, "-"                                                                     \
    }
#define STALE_STOPPED                                                                                        \
    {                                                                                                        \
        210, "A stops", "stopped", 0, ""                                                                     \
    }
#define STALE_B(number)                                                                                      \
    {1100, "B takes", "granted", number, "1000"},                                                            \
    {                                                                                                        \
        1200, "B first", "written", 0, "-"                                                                   \
    }
#define STALE_CONTINUED                                                                                      \
    {                                                                                                        \
        1300, "A continues", "continued", 0, ""                                                              \
    }
#define STALE_LOST                                                                                           \
    {1500, "A late", "written", 0, "-"},                                                                     \
    {                                                                                                        \
        1600, "after", "reads", 0, STALE_A_LATE                                                              \
    }
#define STALE_HELD                                                                                           \
    {1500, "A late", "refused", 412, "stale-token"}, {1600, "after", "reads", 200, STALE_B_FIRST},           \
        {1700, "B last", "written", 204, "-"},                                                               \
    {                                                                                                        \
        1800, "end", "reads", 200, STALE_B_LAST                                                              \
    }

/* What every late write must have been. */
#define WRONG_LOST                                                                                           \
    {"A late", "written", WORD, "refused", 0}, {"A late", "written", AT, NULL, 1150},                        \
        {"after", "reads", TEXT, STALE_B_FIRST, 0}, {"after", "reads", TEXT, "", 0},                         \
        {"B first", "written", WORD, "refused", 0},                                                          \
    {                                                                                                        \
        "B takes", "granted", AT, NULL, 150                                                                  \
    }
/* As if the fence had been gone around, and nearly so. */
#define WRONG_HELD                                                                                           \
    {"A late", "refused", WORD, "written", 0}, {"A late", "refused", NUMBER, NULL, 403},                     \
        {"A late", "refused", TEXT, "lease-expired", 0}, {"A late", "refused", TEXT, "", 0},                 \
        {"A late", "refused", AT, NULL, 1050}, {"after", "reads", TEXT, STALE_A_LATE, 0},                    \
        {"B last", "written", WORD, "refused", 0}, {"end", "reads", TEXT, STALE_B_FIRST, 0},                 \
        {"B takes", "granted", NUMBER, NULL, 1}, {"B takes", "granted", NUMBER, NULL, 0},                    \
        {"A takes", "granted", NUMBER, NULL, 0},                                                             \
    {                                                                                                        \
        "B takes", "granted", AT, NULL, 150                                                                  \
    }
#define WRONG_STOP                                                                                           \
    {"A stops", "stopped", AT, NULL, 150}, {"A stops", "stopped", AT, NULL, 1150},                           \
    {                                                                                                        \
        "A continues", "continued", AT, NULL, 1050                                                           \
    }

static const struct sample samples[] = {
    {&hazard_stale_holder,
     0,
     {STALE_BEGIN(0), STALE_STOPPED, STALE_B(0), STALE_CONTINUED, STALE_LOST},
     {WRONG_LOST, WRONG_STOP}},
    {&hazard_stale_holder,
     1,
     {STALE_BEGIN(1), STALE_STOPPED, STALE_B(2), STALE_CONTINUED, STALE_HELD},
     {WRONG_HELD, WRONG_STOP}},
    {&hazard_redlock_pause,
     0,
     {STALE_BEGIN(0), STALE_STOPPED, STALE_B(0), STALE_CONTINUED, STALE_LOST},
     {WRONG_LOST, WRONG_STOP}},
    {&hazard_redlock_pause,
     1,
     {STALE_BEGIN(1), STALE_STOPPED, STALE_B(2), STALE_CONTINUED, STALE_HELD},
     {WRONG_HELD, WRONG_STOP}},
    {&hazard_clock_jump,
     0,
     {{0, "A takes", "granted", 0, "1000"},
      {100, "A first", "written", 0, "-"},
      {200, "A late", "holds", 800, "-"},
      {300, "clock", "jumped", 3600, ""},
      {400, "B takes", "granted", 0, "1000"},
      {500, "B first", "written", 0, "-"},
      {600, "A late", "written", 0, "-"},
      {700, "after", "reads", 0, STALE_A_LATE}},
     {{"clock", "jumped", NUMBER, NULL, 2},
      {"clock", "jumped", AT, NULL, 150},
      {"clock", "jumped", AT, NULL, 450},
      {"A late", "holds", NUMBER, NULL, 150},
      {"A late", "written", AT, NULL, 1000},
      {"A late", "written", AT, NULL, 450},
      {"B takes", "granted", AT, NULL, 1000},
      {"after", "reads", TEXT, STALE_B_FIRST, 0}}},
    {&hazard_clock_jump,
     1,
     {STALE_BEGIN(1), {300, "clock", "jumped", 3600, ""}, STALE_B(2), STALE_HELD},
     {WRONG_HELD, {"clock", "jumped", NUMBER, NULL, 2}, {"clock", "jumped", AT, NULL, 150}}},
    {&hazard_slow_network,
     0,
     {STALE_BEGIN(0),
      {300, "wire", "kept", 60, "-"},
      STALE_B(0),
      {1400, "wire flows", "passed", 60, "-"},
      STALE_LOST},
     {WRONG_LOST,
      {"wire", "kept", NUMBER, NULL, 0},
      {"wire", "kept", AT, NULL, 1050},
      {"wire", "kept", AT, NULL, 150},
      {"wire", "kept", AT, NULL, 1150},
      {"wire flows", "passed", AT, NULL, 1150}}},
    {&hazard_slow_network,
     1,
     {STALE_BEGIN(1),
      {300, "wire", "kept", 60, "-"},
      STALE_B(2),
      {1400, "wire flows", "passed", 60, "-"},
      STALE_HELD},
     {WRONG_HELD, {"wire", "kept", NUMBER, NULL, 0}, {"wire flows", "passed", AT, NULL, 1150}}},
    {&hazard_failover,
     0,
     {{0, "A takes", "granted", 0, "1000"},
      {100, "A first", "written", 0, "-"},
      {200, "A late", "holds", 800, "-"},
      {300, "failover", "promoted", 0, ""},
      {310, "lock on the replica", "said", 0, ""},
      {400, "B takes", "granted", 0, "1000"},
      {500, "B first", "written", 0, "-"},
      {600, "A late", "written", 0, "-"},
      {700, "after", "reads", 0, STALE_A_LATE}},
     {{"lock on the replica", "said", NUMBER, NULL, 1},
      {"failover", "promoted", AT, NULL, 150},
      {"failover", "promoted", AT, NULL, 450},
      {"A late", "holds", NUMBER, NULL, 150},
      {"A late", "written", AT, NULL, 1000},
      {"after", "reads", TEXT, STALE_B_FIRST, 0}}},
    {&hazard_failover,
     1,
     {STALE_BEGIN(1), {300, "failover", "promoted", 0, ""}, STALE_B(1000001), STALE_HELD},
     {WRONG_HELD, {"failover", "promoted", AT, NULL, 150}, {"failover", "promoted", AT, NULL, 1150}}},
    {&hazard_crash_before_expire,
     0,
     {{0, "A takes", "set", 0, "-"},
      {10, "A dies", "killed", 0, ""},
      {3010, "B takes", "vain", 50, "-"},
      {3020, "time left", "said", -1, ""}},
     {{"A takes", "set", WORD, "granted", 0},
      {"A takes", "set", AT, NULL, 20},
      {"B takes", "vain", WORD, "granted", 0},
      {"B takes", "vain", NUMBER, NULL, 2},
      {"B takes", "vain", AT, NULL, 1500},
      {"time left", "said", NUMBER, NULL, 700},
      {"time left", "said", NUMBER, NULL, -2}}},
    {&hazard_crash_before_expire,
     1,
     {{0, "A takes", "granted", 1, "1000"},
      {10, "A dies", "killed", 0, ""},
      {1010, "B takes", "granted", 2, "1000"},
      {1100, "B first", "written", 204, "-"},
      {1200, "end", "reads", 200, STALE_B_FIRST}},
     {{"B takes", "granted", WORD, "vain", 0},
      {"B takes", "granted", AT, NULL, 5000},
      {"B takes", "granted", AT, NULL, 5},
      {"B takes", "granted", NUMBER, NULL, 1},
      {"B first", "written", WORD, "refused", 0},
      {"end", "reads", TEXT, STALE_A_FIRST, 0}}},
    {&hazard_timestamp_lock,
     0,
     {{0, "A takes", "granted", 0, "1000"},
      {100, "A first", "written", 0, "-"},
      {200, "A late", "holds", 800, "-"},
      {300, "B takes", "granted", 0, "1000"},
      {400, "B first", "written", 0, "-"},
      {410, "end by B", "said", 1700003601000, ""},
      {500, "A late", "written", 0, "-"},
      {600, "after", "reads", 0, STALE_A_LATE},
      {700, "A extends", "extended", 0, "-"},
      {710, "end by A", "said", 1700000001700, ""}},
     {{"A late", "holds", NUMBER, NULL, 50},
      {"B takes", "granted", AT, NULL, 1100},
      {"A late", "written", AT, NULL, 1050},
      {"end by A", "said", NUMBER, NULL, 1700003601000},
      {"end by A", "said", NUMBER, NULL, 0},
      {"end by B", "said", NUMBER, NULL, 1700000001000},
      {"after", "reads", TEXT, STALE_B_FIRST, 0},
      {"A extends", "extended", AT, NULL, 250}}},
    {&hazard_timestamp_lock,
     1,
     {{0, "A takes", "granted", 1, "1000"},
      {100, "A first", "written", 201, "-"},
      {200, "A late", "holds", 800, "-"},
      {300, "B takes", "held", 0, "A"},
      {400, "A late", "written", 204, "-"},
      {500, "after", "reads", 200, STALE_A_LATE},
      {590, "A releases", "leaving", 0, "-"},
      {600, "A releases", "released", 0, "-"},
      {600, "B takes", "granted", 2, "1000"},
      {700, "B first", "written", 204, "-"},
      {800, "A too late", "refused", 412, "stale-token"},
      {900, "end", "reads", 200, STALE_B_FIRST}},
     {{"B takes", "held", WORD, "granted", 0},
      {"B takes", "granted", AT, NULL, 450},
      {"A late", "written", WORD, "refused", 0},
      {"A releases", "released", WORD, "lost", 0},
      {"A too late", "refused", WORD, "written", 0},
      {"A too late", "refused", TEXT, "lease-expired", 0},
      {"B takes", "granted", NUMBER, NULL, 1},
      {"after", "reads", TEXT, STALE_A_FIRST, 0},
      {"end", "reads", TEXT, STALE_A_FIRST, 0}}},
    {&hazard_wrong_release,
     0,
     {{0, "A takes", "granted", 0, "1000"},
      {10, "A stops", "stopped", 0, ""},
      {1010, "B takes", "granted", 0, "1000"},
      {1100, "B first", "holds", 900, "-"},
      {1200, "A continues", "continued", 0, ""},
      {1300, "A releases", "deleted", 1, "-"},
      {1400, "C takes", "granted", 0, "1000"}},
     {{"A releases", "deleted", NUMBER, NULL, 0},
      {"A releases", "deleted", WORD, "lost", 0},
      {"C takes", "granted", WORD, "held", 0},
      {"C takes", "granted", AT, NULL, 1250},
      {"C takes", "granted", AT, NULL, 2100},
      {"B first", "holds", NUMBER, NULL, 200},
      {"A stops", "stopped", AT, NULL, 1050},
      {"A continues", "continued", AT, NULL, 1000}}},
    {&hazard_wrong_release,
     1,
     {{0, "A takes", "granted", 0, "1000"},
      {5, "A releases", "looked", 0, "-"},
      {10, "A stops", "stopped", 0, ""},
      {1010, "B takes", "granted", 0, "1000"},
      {1100, "B first", "holds", 900, "-"},
      {1200, "A continues", "continued", 0, ""},
      {1300, "A releases", "deleted", 1, "-"},
      {1400, "C takes", "granted", 0, "1000"}},
     {{"A releases", "looked", AT, NULL, 20},
      {"A releases", "deleted", NUMBER, NULL, 0},
      {"C takes", "granted", WORD, "held", 0},
      {"C takes", "granted", AT, NULL, 2100}}},
    {&hazard_wrong_release,
     2,
     {{0, "A takes", "granted", 1, "1000"},
      {10, "A stops", "stopped", 0, ""},
      {1010, "B takes", "granted", 2, "1000"},
      {1200, "A continues", "continued", 0, ""},
      {1300, "A releases", "lost", 410, "lease-lost"},
      {1400, "C takes", "held", 0, "B"},
      {1500, "B first", "written", 204, "-"},
      {1590, "B releases", "leaving", 0, "-"},
      {1600, "B releases", "released", 0, "-"},
      {1600, "C takes", "granted", 3, "1000"},
      {1700, "end", "reads", 200, STALE_B_FIRST}},
     {{"A releases", "lost", WORD, "released", 0},
      {"A releases", "lost", NUMBER, NULL, 503},
      {"C takes", "held", WORD, "granted", 0},
      {"C takes", "granted", AT, NULL, 1550},
      {"C takes", "granted", NUMBER, NULL, 2},
      {"B releases", "released", WORD, "lost", 0},
      {"B first", "written", WORD, "refused", 0},
      {"end", "reads", TEXT, STALE_A_FIRST, 0},
      {"B takes", "granted", NUMBER, NULL, 1}}},
    {&hazard_late_unlock,
     0,
     {{0, "A takes", "granted", 0, "1000"},
      {100, "B takes", "held", 0, "-"},
      {1010, "B takes", "granted", 0, "1000"},
      {1100, "B first", "written", 0, "-"},
      {1600, "A late", "written", 0, "-"},
      {1700, "after", "reads", 0, STALE_A_LATE},
      {1800, "A releases", "lost", 0, "-"}},
     {{"A releases", "lost", WORD, "released", 0},
      {"A releases", "lost", AT, NULL, 1550},
      {"A late", "written", AT, NULL, 1050},
      {"A late", "written", WORD, "refused", 0},
      {"after", "reads", TEXT, STALE_B_FIRST, 0},
      {"B takes", "held", AT, NULL, 1050}}},
    {&hazard_late_unlock,
     1,
     {{0, "A takes", "granted", 1, "1000"},
      {50, "A first", "written", 201, "-"},
      {100, "B takes", "held", 0, "A"},
      {1010, "B takes", "granted", 2, "1000"},
      {1100, "B first", "written", 204, "-"},
      {1600, "A late", "refused", 412, "stale-token"},
      {1700, "after", "reads", 200, STALE_B_FIRST},
      {1800, "A releases", "lost", 410, "lease-lost"}},
     {{"A late", "refused", WORD, "written", 0},
      {"A late", "refused", NUMBER, NULL, 503},
      {"A releases", "lost", WORD, "released", 0},
      {"A releases", "lost", NUMBER, NULL, 503},
      {"after", "reads", TEXT, STALE_A_LATE, 0},
      {"B takes", "granted", NUMBER, NULL, 1}}},
    {&hazard_read_lock_starvation,
     0,
     {{0, "A reads", "granted", 0, "1000"},
      {10, "C takes", "held", 0, "-"},
      {250, "reader", "granted", 0, "1000"},
      {500, "reader", "granted", 0, "1000"},
      {750, "reader", "granted", 0, "1000"},
      {1000, "reader", "granted", 0, "1000"},
      {1250, "reader", "granted", 0, "1000"},
      {1500, "reader", "granted", 0, "1000"},
      {2510, "C takes", "vain", 50, "-"}},
     {{"C takes", "vain", WORD, "granted", 0},
      {"C takes", "vain", AT, NULL, 1600},
      {"C takes", "vain", NUMBER, NULL, 1},
      {"reader", "granted", AT, NULL, 2600},
      {"reader", "granted", WORD, "held", 0},
      {"A reads", "granted", AT, NULL, 20}}},
    {&hazard_read_lock_starvation,
     1,
     {{0, "A reads", "granted", 1, "1000"},
      {10, "C takes", "held", 0, "A"},
      {250, "reader", "held", 0, "A"},
      {290, "A leaves", "leaving", 0, "-"},
      {300, "A leaves", "released", 0, "-"},
      {300, "C takes", "granted", 2, "1000"},
      {400, "C writes", "written", 201, "-"},
      {500, "C leaves", "released", 0, "-"},
      {500, "reader", "granted", 3, "1000"},
      {510, "A again", "granted", 4, "1000"},
      {600, "end", "reads", 200, READ_LOCK_NEWS}},
     {{"reader", "held", WORD, "granted", 0},
      {"reader", "granted", AT, NULL, 295},
      {"reader", "granted", AT, NULL, 350},
      {"A again", "granted", AT, NULL, 350},
      {"C takes", "granted", WORD, "vain", 0},
      {"C takes", "granted", AT, NULL, 280},
      {"C writes", "written", WORD, "refused", 0},
      {"A leaves", "released", WORD, "lost", 0},
      {"C leaves", "released", WORD, "lost", 0},
      {"end", "reads", TEXT, STALE_A_FIRST, 0}}},
};

enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static const char *judged(const struct sample *sample, const struct seen *seen)
{
    return sample->hazard->parts[sample->part].judge(seen);
}

/* All of the sample but the one event of this number. */
static void fill(struct seen *seen, const struct sample *sample, size_t without)
{
    *seen = (struct seen){.ttl_ms = TTL_MS};
    for (size_t i = 0; i < EVENTS_MAX && sample->good[i].label != NULL; i++) {
        if (i != without) {
            seen_add(seen, &sample->good[i]);
        }
    }
}

static void spoil(struct seen *seen, const struct wrong *wrong)
{
    struct seen_event *event = (struct seen_event *)(uintptr_t)seen_find(seen, wrong->label, wrong->word);

    if (!CHECK(*event->label != '\0')) {
        return;
    }
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

    for (unsigned i = 0; hazards[i] != NULL; i++) {
        for (unsigned part = 0; part < HAZARD_PARTS_MAX && hazards[i]->parts[part].headline != NULL; part++) {
            bool found = false;

            parts++;
            for (unsigned j = 0; j < SAMPLES; j++) {
                found = found || (samples[j].hazard == hazards[i] && samples[j].part == part);
            }
            CHECK(found);
        }
    }
    CHECK_INT(parts, SAMPLES);
}

TEST(what_should_be_seen_makes_it_good)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        struct seen seen;

        fill(&seen, &samples[i], EVENTS_MAX);
        if (!CHECK(judged(&samples[i], &seen) == NULL)) {
            printf("# %s, part %u: %s\n", samples[i].hazard->name, samples[i].part,
                   judged(&samples[i], &seen));
        }
    }
}

TEST(nothing_at_all_is_not_good)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        const struct seen nothing = {.ttl_ms = TTL_MS};

        CHECK(judged(&samples[i], &nothing) != NULL);
    }
}

TEST(whatever_is_missing_it_is_not_good)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        for (size_t without = 0; without < EVENTS_MAX && samples[i].good[without].label != NULL; without++) {
            struct seen seen;

            fill(&seen, &samples[i], without);
            if (!CHECK(judged(&samples[i], &seen) != NULL)) {
                printf("# %s, part %u, without %s: %s\n", samples[i].hazard->name, samples[i].part,
                       samples[i].good[without].label, samples[i].good[without].word);
            }
        }
    }
}

TEST(whatever_went_otherwise_it_is_not_good)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        for (size_t wrong = 0; wrong < WRONGS_MAX && samples[i].wrongs[wrong].label != NULL; wrong++) {
            struct seen seen;

            fill(&seen, &samples[i], EVENTS_MAX);
            spoil(&seen, &samples[i].wrongs[wrong]);
            if (!CHECK(judged(&samples[i], &seen) != NULL)) {
                printf("# %s, part %u, wrong %zu: %s: %s\n", samples[i].hazard->name, samples[i].part, wrong,
                       samples[i].wrongs[wrong].label, samples[i].wrongs[wrong].word);
            }
        }
    }
}

/* A recipe is no proof of Pawl, nor the other way round. */
TEST(the_judges_of_the_parts_do_not_agree_with_each_other)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        const struct hazard *hazard = samples[i].hazard;
        struct seen seen;

        fill(&seen, &samples[i], EVENTS_MAX);
        for (unsigned part = 0; part < HAZARD_PARTS_MAX && hazard->parts[part].headline != NULL; part++) {
            bool of_pawl = strcmp(hazard->parts[part].lock, "pawl") == 0;
            bool is_pawl = strcmp(hazard->parts[samples[i].part].lock, "pawl") == 0;

            CHECK(of_pawl == is_pawl || hazard->parts[part].judge(&seen) != NULL);
        }
    }
}

int main(void)
{
    RUN(every_part_of_every_hazard_has_its_sample);
    RUN(what_should_be_seen_makes_it_good);
    RUN(nothing_at_all_is_not_good);
    RUN(whatever_is_missing_it_is_not_good);
    RUN(whatever_went_otherwise_it_is_not_good);
    RUN(the_judges_of_the_parts_do_not_agree_with_each_other);
    return check_done();
}
