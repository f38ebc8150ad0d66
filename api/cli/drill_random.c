/* drill_random.c - the choices of a drill, all from one seed. */
#include "api/cli/drill_random.h"

#include <assert.h>

uint64_t drill_random_next(struct drill_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t drill_random_between(struct drill_random *random, uint64_t low, uint64_t high)
{
    assert(low <= high);
    /* The remainder prefers some numbers by less than one in 2^40: these ranges are small. */
    return low + drill_random_next(random) % (high - low + 1);
}

struct drill_random drill_random_split(uint64_t seed, uint64_t number)
{
    struct drill_random from = {seed ^ (number * UINT64_C(0xd1342543de82ef95))};

    return (struct drill_random){drill_random_next(&from)};
}
