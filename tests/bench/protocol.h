/* protocol.h - as much of HTTP and of Redis' protocol as tells that an answer is whole, and what it says. */
#ifndef PAWL_TESTS_BENCH_PROTOCOL_H
#define PAWL_TESTS_BENCH_PROTOCOL_H

#include "shared/text/bytes.h"

/* The length of the answer at the head of in, ANSWER_PART when more must come, ANSWER_BAD when it is none.
 * word: what it says: the status ("201"), the first text of a reply ("granted") or a Redis error. */
enum { ANSWER_PART = 0, ANSWER_BAD = -1 };
typedef long protocol_measure(struct bytes in, struct bytes *word);

protocol_measure http_measure, resp_measure;

/* The value of a header of a whole answer, spelled just so ("Fencing-Token: "); {NULL, 0}: there is none. */
struct bytes http_answer_header(struct bytes answer, const char *name_and_colon);

#endif
