/* demo_judge.h - whether the demo of the stale holder showed what it claims. */
#ifndef PAWL_CLI_DEMO_JUDGE_H
#define PAWL_CLI_DEMO_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEMO_TEXT_SIZE = 64 };

/* What the workers write. */
#define DEMO_A_FIRST "packing, says A"
#define DEMO_A_LATE "packed, says A"
#define DEMO_B_FIRST "shipped, says B"
#define DEMO_B_LAST "delivered, says B"

/* The end of one write. */
struct demo_write {
    enum { DEMO_NOT_TRIED, DEMO_WRITTEN, DEMO_REFUSED } end;
    unsigned status;           /* HTTP, of a refusal */
    char code[DEMO_TEXT_SIZE]; /* of the problem */
};

/* What happened in one part. */
struct demo_part {
    int64_t token_a, token_b;
    bool a_was_stopped, b_came_while_a_was_stopped;
    struct demo_write a_first, b_first, a_late, b_last;
    char after_late[DEMO_TEXT_SIZE]; /* what the resource held after A's late write */
    char at_end[DEMO_TEXT_SIZE];     /* and at the end; only of the part with the fence */
};

/* NULL when B's work was really lost without the fence, and with it A was really refused as stale, B's work
 * stood and B could go on; else a static sentence: the first thing that went otherwise. */
const char *demo_judge(const struct demo_part *without, const struct demo_part *with);

#endif
