/* outcome.h - what the end of a store call means for the request, the same for every operation. */
#ifndef PAWL_SHARED_RECORD_OUTCOME_H
#define PAWL_SHARED_RECORD_OUTCOME_H

#include "shared/problem.h"
#include "shared/store.h"

/* PROBLEM_NONE when the script ran on a store that is ours: then the first word of the reply says the
 * rest. STORE_UNAVAILABLE: it certainly did not happen. OUTCOME_UNKNOWN: it may have happened. These two
 * are never mixed up. */
enum problem record_problem(enum store_outcome outcome, const struct store_reply *reply);

#endif
