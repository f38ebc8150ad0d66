/* problem.c - the table that api/problems.def makes. */
#include "shared/text/problem.h"

#include <assert.h>

static const struct problem_info problems[PROBLEM_COUNT] = {
#define PROBLEM(name, code, status, retryable, exit_status, title, detail)                                   \
    [PROBLEM_##name] = {code, status, retryable, exit_status, title, detail},
#include "api/problems.def"
#undef PROBLEM
};

const struct problem_info *problem_info(enum problem problem)
{
    assert(problem > PROBLEM_NONE && problem < PROBLEM_COUNT);
    return &problems[problem];
}

enum problem problem_find(struct bytes code)
{
    for (unsigned i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++)
        if (bytes_are(code, problems[i].code))
            return (enum problem)i;
    return PROBLEM_NONE;
}
