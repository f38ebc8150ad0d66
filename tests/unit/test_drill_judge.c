/* test_drill_judge.c - the judge of pawl drill finds each wrong that was planted, and nothing in a clean
 * history. */
#include "api/cli/drill_judge.h"

#include "api/cli/drill.h"
#include "shared/record/keys.h"
#include "tests/unit/check.h"

enum { EVENTS = 16, LEASES = 3, TTL_MS = 1000, SLACK_MS = 250 };

/* Leases 0 and 1 share a stripe. */
static const unsigned stripe_of[LEASES] = {7, 7, 8};

/* A history, written down in the order in which it was told: each event takes two places, its beginning and
 * its end, one directly after the other, and 10 ms, unless it is said otherwise. */
struct story {
    struct drill_event events[EVENTS];
    size_t count;
    uint64_t place, ms;
};

static struct drill_event *say(struct story *story, enum drill_event_kind kind, unsigned lease, uint64_t hold,
                               int64_t token)
{
    struct drill_event *event = &story->events[story->count++];

    *event = (struct drill_event){.kind = kind,
                                  .client = (unsigned)hold,
                                  .lease = lease,
                                  .hold = hold,
                                  .token = token,
                                  .epoch = 5,
                                  .ttl_ms = TTL_MS,
                                  .begun = story->place + 1,
                                  .told = story->place + 2,
                                  .begun_ms = story->ms,
                                  .told_ms = story->ms + 10};
    story->place += 2;
    story->ms += 10;
    return event;
}

static struct drill_event *grant(struct story *story, unsigned lease, uint64_t hold, int64_t token)
{
    return say(story, DRILL_ACQUIRE, lease, hold, token);
}

static struct drill_event *write_value(struct story *story, unsigned lease, uint64_t hold, int64_t token,
                                       uint64_t value)
{
    struct drill_event *event = say(story, DRILL_WRITE, lease, hold, token);

    event->value = value;
    return event;
}

static struct drill_event *read_value(struct story *story, unsigned lease, uint64_t value)
{
    struct drill_event *event = say(story, DRILL_READ, lease, 0, 0);

    event->value = value;
    return event;
}

static struct drill_event *ends(struct drill_event *event, enum drill_event_end end)
{
    event->end = end;
    return event;
}

static struct drill_counts judge_allowing(const struct story *story, unsigned allowed)
{
    const struct drill_rules rules = {stripe_of, LEASES, SLACK_MS, allowed};
    struct drill_counts counts;

    drill_judge(story->events, story->count, &rules, &counts);
    return counts;
}

static struct drill_counts judge(const struct story *story)
{
    return judge_allowing(story, 0);
}

static uint64_t wrongs(const struct drill_counts *counts)
{
    return counts->twice + counts->regressed + counts->stale + counts->revived + counts->outlived +
           counts->overlapped + counts->unadmitted + counts->odd + counts->lost + counts->ended_early;
}

/* Exactly this one is wrong, and a sentence says so. */
#define CHECK_ONLY(counts, name)                                                                             \
    do {                                                                                                     \
        CHECK_INT((counts).name, 1);                                                                         \
        CHECK_INT(wrongs(&(counts)), 1);                                                                     \
        CHECK((counts).first[0] != '\0');                                                                    \
        CHECK(!drill_counts_are_good(&(counts), 0));                                                         \
    } while (0)

#define CHECK_CLEAN(counts)                                                                                  \
    do {                                                                                                     \
        CHECK_INT(wrongs(&(counts)), 0);                                                                     \
        CHECK_TEXT(bytes_of((counts).first), BYTES(""));                                                     \
    } while (0)

/* -- clean ones */

TEST(an_ordinary_history_is_clean_and_counted)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    ends(grant(&s, 0, 2, 0), DRILL_HELD);
    say(&s, DRILL_RENEW, 0, 1, 34);
    write_value(&s, 0, 1, 34, 2);
    read_value(&s, 0, 2);
    say(&s, DRILL_RELEASE, 0, 1, 34);
    ends(write_value(&s, 0, 1, 34, 3), DRILL_OVER);
    grant(&s, 0, 3, 35);
    ends(write_value(&s, 0, 1, 34, 4), DRILL_OVER);
    write_value(&s, 0, 3, 35, 5);
    read_value(&s, 0, 5);
    ends(grant(&s, 1, 4, 0), DRILL_NOT_DONE);
    counts = judge(&s);
    CHECK_CLEAN(counts);
    CHECK(drill_counts_are_good(&counts, 0));
    CHECK_INT(counts.grants, 2);
    CHECK_INT(counts.writes, 3);
    CHECK_INT(counts.reads, 2);
    CHECK_INT(counts.renewals, 1);
    CHECK_INT(counts.releases, 1);
    CHECK_INT(counts.refused, 3);
    CHECK_INT(counts.fenced, 2);
    CHECK_INT(counts.not_done, 1);
}

TEST(a_history_in_which_nothing_happened_is_not_good)
{
    struct story s = {.count = 0};
    struct drill_counts counts = judge(&s);

    CHECK_CLEAN(counts);
    CHECK(!drill_counts_are_good(&counts, 0));
    grant(&s, 0, 1, 34);
    counts = judge(&s);
    CHECK(!drill_counts_are_good(&counts, 0));
}

TEST(an_expired_hold_makes_room_for_another)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms += TTL_MS;
    grant(&s, 0, 2, 35);
    ends(write_value(&s, 0, 1, 34, 1), DRILL_OVER);
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(what_was_begun_before_the_newer_grant_was_announced_is_not_stale)
{
    struct story s = {.count = 0};
    struct drill_event *write;
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms += TTL_MS - 100;
    grant(&s, 0, 2, 35)->told_ms += 200;
    write = write_value(&s, 0, 1, 34, 1);
    write->begun = s.events[1].begun;
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(a_repeated_acquire_is_the_same_grant)
{
    struct story s = {.count = 0};
    struct drill_event *first, *again;
    struct drill_counts counts;

    first = ends(grant(&s, 0, 1, 34), DRILL_UNKNOWN);
    again = grant(&s, 0, 1, 34);
    again->begun = first->begun;
    again->begun_ms = first->begun_ms;
    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    counts = judge(&s);
    CHECK_CLEAN(counts);
    CHECK_INT(counts.unknown, 1);
}

TEST(what_has_no_known_end_is_held_against_nobody)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    ends(write_value(&s, 0, 1, 34, 1), DRILL_UNKNOWN);
    write_value(&s, 0, 1, 34, 2);
    read_value(&s, 0, 1); /* it came late */
    ends(say(&s, DRILL_RELEASE, 0, 1, 34), DRILL_UNKNOWN);
    grant(&s, 0, 2, 35); /* so it was released */
    ends(grant(&s, 2, 3, 0), DRILL_UNKNOWN);
    grant(&s, 2, 4, 9);
    ends(say(&s, DRILL_RENEW, 2, 4, 9), DRILL_UNKNOWN);
    s.ms += (uint64_t)10 * TTL_MS;
    write_value(&s, 2, 4, 9, 3); /* so it was renewed */
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(a_renewal_lengthens_what_a_hold_may_do)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms += TTL_MS - 100;
    say(&s, DRILL_RENEW, 0, 1, 34);
    s.ms += TTL_MS - 100;
    write_value(&s, 0, 1, 34, 1);
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(other_stripes_may_have_the_same_numbers)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    grant(&s, 2, 2, 34);
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(a_higher_epoch_with_a_higher_number_goes_forward)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_RELEASE, 0, 1, 34);
    grant(&s, 0, 2, 1035)->epoch = 6;
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

/* -- planted ones */

TEST(a_number_that_was_granted_twice_in_a_stripe_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    grant(&s, 1, 2, 34); /* another lease, the same counter */
    counts = judge(&s);
    CHECK_ONLY(counts, twice);
}

TEST(a_number_that_comes_again_in_a_later_epoch_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    grant(&s, 1, 2, 34)->epoch = 6;
    counts = judge(&s);
    CHECK_ONLY(counts, twice);
}

TEST(a_lease_id_that_was_granted_twice_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    grant(&s, 0, 1, 35);
    counts = judge(&s);
    CHECK_ONLY(counts, twice);
}

TEST(a_grant_that_went_back_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_RELEASE, 0, 1, 34);
    grant(&s, 0, 2, 33);
    counts = judge(&s);
    CHECK_ONLY(counts, regressed);
}

TEST(a_lower_number_in_a_higher_epoch_went_back_too)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_RELEASE, 0, 1, 34);
    grant(&s, 0, 2, 1)->epoch = 6;
    counts = judge(&s);
    CHECK_ONLY(counts, regressed);
}

TEST(a_higher_number_in_a_lower_epoch_went_back_too)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_RELEASE, 0, 1, 34);
    grant(&s, 0, 2, 35)->epoch = 4;
    counts = judge(&s);
    CHECK_ONLY(counts, regressed);
}

TEST(a_stale_write_that_was_let_in_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms += TTL_MS;
    grant(&s, 0, 2, 35);
    write_value(&s, 0, 1, 34, 1);
    counts = judge(&s);
    CHECK_ONLY(counts, stale);
}

TEST(a_write_of_a_hold_that_the_store_had_lost_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_ALL_OVER, 0, 0, 0);
    write_value(&s, 0, 1, 34, 1);
    counts = judge(&s);
    CHECK_ONLY(counts, stale);
}

TEST(a_refused_value_that_is_read_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    ends(write_value(&s, 0, 1, 34, 1), DRILL_NOT_DONE);
    read_value(&s, 0, 1);
    counts = judge(&s);
    CHECK_ONLY(counts, stale);
}

TEST(a_released_hold_that_writes_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_RELEASE, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    counts = judge(&s);
    CHECK_ONLY(counts, revived);
}

TEST(a_hold_that_was_told_to_be_over_and_is_renewed_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms += TTL_MS;
    ends(write_value(&s, 0, 1, 34, 1), DRILL_OVER);
    say(&s, DRILL_RENEW, 0, 1, 34);
    counts = judge(&s);
    CHECK_ONLY(counts, revived);
}

TEST(a_hold_that_outlives_its_ttl_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms = 10 + TTL_MS + SLACK_MS;
    write_value(&s, 0, 1, 34, 1);
    counts = judge(&s);
    CHECK_CLEAN(counts);
    s.events[1].begun_ms++;
    counts = judge(&s);
    CHECK_ONLY(counts, outlived);
}

TEST(two_holders_at_once_are_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    s.ms += TTL_MS;
    grant(&s, 0, 2, 35);
    say(&s, DRILL_RENEW, 0, 1, 34);
    counts = judge(&s);
    CHECK_ONLY(counts, overlapped);
}

TEST(a_grant_by_a_store_that_had_to_refuse_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    say(&s, DRILL_CLOSED, 0, 0, 0);
    grant(&s, 2, 2, 35);
    say(&s, DRILL_OPENED, 0, 0, 0);
    grant(&s, 1, 3, 36);
    counts = judge(&s);
    CHECK_ONLY(counts, unadmitted);
    s.events[2].begun = s.events[1].told - 1; /* begun before: it may have happened before */
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(an_odd_answer_is_found)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    ends(write_value(&s, 0, 1, 34, 1), DRILL_ODD);
    counts = judge(&s);
    CHECK_ONLY(counts, odd);
}

/* -- what an accident may allow */

/* Counted either way; held against it only where it is not allowed. */
static void check_allowable(const struct story *s, uint64_t (*count_of)(const struct drill_counts *),
                            unsigned flag)
{
    struct drill_counts counts = judge(s), allowed = judge_allowing(s, flag);

    CHECK_INT(count_of(&counts), 1);
    CHECK_INT(wrongs(&counts), 1);
    CHECK(counts.first[0] != '\0');
    CHECK(!drill_counts_are_good(&counts, 0));
    CHECK_INT(count_of(&allowed), 1);
    CHECK(allowed.first[0] == '\0');
    CHECK(drill_counts_are_good(&allowed, flag));
}

static uint64_t lost_of(const struct drill_counts *counts)
{
    return counts->lost;
}

static uint64_t early_of(const struct drill_counts *counts)
{
    return counts->ended_early;
}

TEST(an_acknowledged_write_that_is_gone_is_found)
{
    struct story s = {.count = 0};

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    read_value(&s, 0, 0);
    check_allowable(&s, lost_of, DRILL_MAY_LOSE);
}

TEST(an_older_write_that_is_read_again_is_found)
{
    struct story s = {.count = 0};

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    write_value(&s, 0, 1, 34, 2);
    read_value(&s, 0, 1);
    check_allowable(&s, lost_of, DRILL_MAY_LOSE);
}

TEST(of_two_writes_at_the_same_time_either_may_be_read)
{
    struct story s = {.count = 0};
    struct drill_counts counts;

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    write_value(&s, 0, 1, 34, 2)->begun = s.events[1].begun;
    read_value(&s, 0, 1);
    counts = judge(&s);
    CHECK_CLEAN(counts);
}

TEST(a_value_that_nobody_wrote_is_found)
{
    struct story s = {.count = 0};

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    read_value(&s, 0, 77);
    check_allowable(&s, lost_of, DRILL_MAY_LOSE);
}

TEST(a_hold_that_was_told_to_be_over_before_its_time_is_found)
{
    struct story s = {.count = 0};

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    ends(say(&s, DRILL_RENEW, 0, 1, 34), DRILL_OVER);
    ends(say(&s, DRILL_RENEW, 0, 1, 34), DRILL_OVER); /* counted once */
    check_allowable(&s, early_of, DRILL_MAY_END_EARLY);
}

TEST(a_hold_in_whose_time_another_was_granted_is_found)
{
    struct story s = {.count = 0};

    grant(&s, 0, 1, 34);
    write_value(&s, 0, 1, 34, 1);
    grant(&s, 0, 2, 35);
    check_allowable(&s, early_of, DRILL_MAY_END_EARLY);
}

TEST(a_grant_that_is_announced_after_its_successor_is_found)
{
    struct story s = {.count = 0};

    grant(&s, 0, 2, 35);
    write_value(&s, 0, 2, 35, 1);
    grant(&s, 0, 1, 34)->begun = 0; /* asked for before */
    check_allowable(&s, early_of, DRILL_MAY_END_EARLY);
}

/* -- what the judge lives on */

static unsigned stripe_of_lease(unsigned lease)
{
    char name[DRILL_LEASE_NAME_SIZE];

    drill_lease_name(lease, name);
    return keys_stripe_of(bytes_of(name));
}

TEST(leases_of_the_load_share_counters_two_by_two)
{
    for (unsigned i = 0; i < DRILL_LEASES / 2; i++) {
        CHECK_INT(stripe_of_lease(i), stripe_of_lease(i + DRILL_LEASES / 2));
        CHECK(stripe_of_lease(i) != stripe_of_lease((i + 1) % (DRILL_LEASES / 2)));
    }
}

TEST(the_same_seed_makes_the_same_choices)
{
    struct drill_random one = drill_random_split(42, 1), same = drill_random_split(42, 1),
                        other = drill_random_split(42, 2);
    unsigned equal = 0;

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t choice = drill_random_between(&one, 3, 102);

        CHECK(choice >= 3 && choice <= 102);
        CHECK_INT(drill_random_between(&same, 3, 102), choice);
        equal += drill_random_between(&other, 3, 102) == choice;
    }
    CHECK(equal < 100);
}

int main(void)
{
    RUN(an_ordinary_history_is_clean_and_counted);
    RUN(a_history_in_which_nothing_happened_is_not_good);
    RUN(an_expired_hold_makes_room_for_another);
    RUN(what_was_begun_before_the_newer_grant_was_announced_is_not_stale);
    RUN(a_repeated_acquire_is_the_same_grant);
    RUN(what_has_no_known_end_is_held_against_nobody);
    RUN(a_renewal_lengthens_what_a_hold_may_do);
    RUN(other_stripes_may_have_the_same_numbers);
    RUN(a_higher_epoch_with_a_higher_number_goes_forward);
    RUN(a_number_that_was_granted_twice_in_a_stripe_is_found);
    RUN(a_number_that_comes_again_in_a_later_epoch_is_found);
    RUN(a_lease_id_that_was_granted_twice_is_found);
    RUN(a_grant_that_went_back_is_found);
    RUN(a_lower_number_in_a_higher_epoch_went_back_too);
    RUN(a_higher_number_in_a_lower_epoch_went_back_too);
    RUN(a_stale_write_that_was_let_in_is_found);
    RUN(a_write_of_a_hold_that_the_store_had_lost_is_found);
    RUN(a_refused_value_that_is_read_is_found);
    RUN(a_released_hold_that_writes_is_found);
    RUN(a_hold_that_was_told_to_be_over_and_is_renewed_is_found);
    RUN(a_hold_that_outlives_its_ttl_is_found);
    RUN(two_holders_at_once_are_found);
    RUN(a_grant_by_a_store_that_had_to_refuse_is_found);
    RUN(an_odd_answer_is_found);
    RUN(an_acknowledged_write_that_is_gone_is_found);
    RUN(an_older_write_that_is_read_again_is_found);
    RUN(of_two_writes_at_the_same_time_either_may_be_read);
    RUN(a_value_that_nobody_wrote_is_found);
    RUN(a_hold_that_was_told_to_be_over_before_its_time_is_found);
    RUN(a_hold_in_whose_time_another_was_granted_is_found);
    RUN(a_grant_that_is_announced_after_its_successor_is_found);
    RUN(leases_of_the_load_share_counters_two_by_two);
    RUN(the_same_seed_makes_the_same_choices);
    return check_done();
}
