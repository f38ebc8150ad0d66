/* test_demo_judge.c - the demo counts as good only if it showed all that it claims. */
#include "api/cli/demo_judge.h"

#include "tests/unit/check.h"

static const struct demo_part good_without = {
    .token_a = 1,
    .token_b = 2,
    .a_was_stopped = true,
    .b_came_while_a_was_stopped = true,
    .a_first = {.end = DEMO_WRITTEN},
    .b_first = {.end = DEMO_WRITTEN},
    .a_late = {.end = DEMO_WRITTEN},
    .after_late = DEMO_A_LATE,
};

static const struct demo_part good_with = {
    .token_a = 7,
    .token_b = 9,
    .a_was_stopped = true,
    .b_came_while_a_was_stopped = true,
    .a_first = {.end = DEMO_WRITTEN},
    .b_first = {.end = DEMO_WRITTEN},
    .a_late = {.end = DEMO_REFUSED, .status = 412, .code = "stale-token"},
    .b_last = {.end = DEMO_WRITTEN},
    .after_late = DEMO_B_FIRST,
    .at_end = DEMO_B_LAST,
};

/* Judges the good demo after one thing has been changed. */
#define OTHERWISE(change)                                                                                    \
    do {                                                                                                     \
        struct demo_part without = good_without, with = good_with;                                           \
        change;                                                                                              \
        CHECK(demo_judge(&without, &with) != NULL);                                                          \
    } while (0)

TEST(the_loss_and_the_refusal_make_it_good)
{
    CHECK(demo_judge(&good_without, &good_with) == NULL);
}

TEST(nothing_at_all_is_not_good)
{
    const struct demo_part nothing = {0};

    CHECK(demo_judge(&nothing, &nothing) != NULL);
    CHECK(demo_judge(&good_without, &nothing) != NULL);
    CHECK(demo_judge(&nothing, &good_with) != NULL);
}

TEST(without_the_fence_the_work_must_really_be_lost)
{
    OTHERWISE(without.a_late.end = DEMO_REFUSED);
    OTHERWISE(without.a_late.end = DEMO_NOT_TRIED);
    OTHERWISE(memcpy(without.after_late, DEMO_B_FIRST, sizeof(DEMO_B_FIRST)));
    OTHERWISE(without.after_late[0] = '\0');
}

TEST(with_the_fence_the_late_write_must_be_refused_as_stale)
{
    OTHERWISE(with.a_late.end = DEMO_WRITTEN); /* as if the gateway had been gone around */
    OTHERWISE(with.a_late.end = DEMO_NOT_TRIED);
    OTHERWISE(with.a_late.status = 403);
    OTHERWISE(memcpy(with.a_late.code, "lease-expired", sizeof("lease-expired")));
    OTHERWISE(with.a_late.code[0] = '\0');
}

TEST(with_the_fence_the_work_must_stand_and_go_on)
{
    OTHERWISE(memcpy(with.after_late, DEMO_A_LATE, sizeof(DEMO_A_LATE)));
    OTHERWISE(with.b_last.end = DEMO_REFUSED);
    OTHERWISE(with.b_last.end = DEMO_NOT_TRIED);
    OTHERWISE(memcpy(with.at_end, DEMO_B_FIRST, sizeof(DEMO_B_FIRST)));
}

TEST(in_both_parts_the_late_writer_must_be_a_stale_holder)
{
    OTHERWISE(without.a_was_stopped = false);
    OTHERWISE(with.a_was_stopped = false);
    OTHERWISE(without.b_came_while_a_was_stopped = false);
    OTHERWISE(with.b_came_while_a_was_stopped = false);
    OTHERWISE(without.token_b = without.token_a);
    OTHERWISE(with.token_b = with.token_a - 1);
    OTHERWISE(with.token_a = 0);
    OTHERWISE(without.a_first.end = DEMO_REFUSED);
    OTHERWISE(with.a_first.end = DEMO_REFUSED);
    OTHERWISE(without.b_first.end = DEMO_NOT_TRIED);
    OTHERWISE(with.b_first.end = DEMO_REFUSED);
}

int main(void)
{
    RUN(the_loss_and_the_refusal_make_it_good);
    RUN(nothing_at_all_is_not_good);
    RUN(without_the_fence_the_work_must_really_be_lost);
    RUN(with_the_fence_the_late_write_must_be_refused_as_stale);
    RUN(with_the_fence_the_work_must_stand_and_go_on);
    RUN(in_both_parts_the_late_writer_must_be_a_stale_holder);
    return check_done();
}
