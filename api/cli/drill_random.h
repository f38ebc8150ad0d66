/* drill_random.h - the choices of a drill, all from one seed: splitmix64 (Steele, Lea, Flood, "Fast
 * Splittable Pseudorandom Number Generators", 2014). */
#ifndef PAWL_CLI_DRILL_RANDOM_H
#define PAWL_CLI_DRILL_RANDOM_H

#include <stdint.h>

struct drill_random {
    uint64_t state; /* begins with the seed */
};

uint64_t drill_random_next(struct drill_random *random);
/* From low to high, both included; low <= high. */
uint64_t drill_random_between(struct drill_random *random, uint64_t low, uint64_t high);
/* Another sequence for each number: one for each client. */
struct drill_random drill_random_split(uint64_t seed, uint64_t number);

#endif
