/* demo_worker.h - what a worker of the demo is told, and what it tells.
 *
 * A worker is a process of its own that reads a line for each thing to do:
 *   acquire TTL_MS    asks again until it is granted
 *   write TEXT        looks at its clock whether it still holds, and writes
 *   work TEXT         looks at its clock whether it still holds, works for a while, and writes
 *   read
 * and says a line for each thing that happened: "AT_MS WORD NUMBER TEXT", AT_MS on the monotonic clock:
 *   held TOKEN HOLDER       another has the lease (said once)
 *   granted TOKEN -         holds STILL_MS -         working: it holds the lease, as far as it knows
 *   over 0 -                by its own clock it holds no more, so it does not write
 *   written STATUS -        refused STATUS CODE      failed STATUS WHAT
 *   reads 0 TEXT */
#ifndef PAWL_CLI_DEMO_WORKER_H
#define PAWL_CLI_DEMO_WORKER_H

#include <stdint.h>

enum { WORKER_TEXT_SIZE = 128, WORKER_WORD_SIZE = 16, WORKER_RETRY_MS = 100, WORKER_WORK_STEPS = 8 };

struct worker_event {
    uint64_t at_ms;
    char word[WORKER_WORD_SIZE];
    int64_t number;
    char text[WORKER_TEXT_SIZE];
};

#endif
