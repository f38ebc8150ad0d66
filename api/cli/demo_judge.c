/* demo_judge.c - whether the demo of the stale holder showed what it claims. */
#include "api/cli/demo_judge.h"

#include <string.h>

#define FIRST_THAT_FAILS(checks) first_that_fails((checks), sizeof(checks) / sizeof((checks)[0]))

struct check {
    bool held;
    const char *otherwise;
};

static const char *first_that_fails(const struct check *checks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!checks[i].held) {
            return checks[i].otherwise;
        }
    }
    return NULL;
}

/* What both parts need, so that the late write is one of a stale holder at all. */
static const char *judge_stage(const struct demo_part *part)
{
    const struct check checks[] = {
        {part->token_a > 0, "A did not get the lease"},
        {part->a_first.end == DEMO_WRITTEN, "A's first write did not get through, though A held the lease"},
        {part->a_was_stopped, "A could not be stopped before its second write"},
        {part->token_b > 0 && part->b_came_while_a_was_stopped,
         "B did not get the lease while A was stopped"},
        {part->token_b > part->token_a, "B's token is not greater than A's"},
        {part->b_first.end == DEMO_WRITTEN, "B's write did not get through, though B held the lease"},
        {part->a_late.end != DEMO_NOT_TRIED, "A did not try its late write"},
    };

    return FIRST_THAT_FAILS(checks);
}

static const char *judge_loss(const struct demo_part *part)
{
    const struct check checks[] = {
        {part->a_late.end == DEMO_WRITTEN, "without the fence, A's late write was refused all the same"},
        {strcmp(part->after_late, DEMO_A_LATE) == 0, "without the fence, B's work was not lost"},
    };

    return FIRST_THAT_FAILS(checks);
}

static const char *judge_fence(const struct demo_part *part)
{
    const struct check checks[] = {
        {part->a_late.end == DEMO_REFUSED, "with the fence, A's late write got through"},
        {part->a_late.status == 412 && strcmp(part->a_late.code, "stale-token") == 0,
         "with the fence, A's late write was refused, but not as 412 stale-token"},
        {strcmp(part->after_late, DEMO_B_FIRST) == 0, "with the fence, the resource did not hold B's work"},
        {part->b_last.end == DEMO_WRITTEN, "with the fence, B could not go on writing"},
        {strcmp(part->at_end, DEMO_B_LAST) == 0,
         "with the fence, the resource did not hold B's last work at the end"},
    };

    return FIRST_THAT_FAILS(checks);
}

const char *demo_judge(const struct demo_part *without, const struct demo_part *with)
{
    const char *otherwise = judge_stage(without);

    otherwise = otherwise != NULL ? otherwise : judge_loss(without);
    otherwise = otherwise != NULL ? otherwise : judge_stage(with);
    return otherwise != NULL ? otherwise : judge_fence(with);
}
