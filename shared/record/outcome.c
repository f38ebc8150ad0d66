/* outcome.c - what the end of a store call means for the request. */
#include "shared/record/outcome.h"

#include <stdlib.h>

enum problem record_problem(enum store_outcome outcome, const struct store_reply *reply)
{
    switch (outcome) {
    case STORE_DONE: return store_reply_is(reply, "not-ours") ? PROBLEM_STORE_NOT_OURS : PROBLEM_NONE;
    case STORE_NOT_SENT: return PROBLEM_STORE_UNAVAILABLE;
    case STORE_UNKNOWN: return PROBLEM_OUTCOME_UNKNOWN;
    }
    abort();
}
