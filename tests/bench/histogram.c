/* histogram.c - times in nanoseconds, counted in buckets that are 1 % wide. */
#include "tests/bench/histogram.h"

static unsigned bucket_of(uint64_t ns)
{
    unsigned shift;

    if (ns < HISTOGRAM_STEPS)
        return (unsigned)ns;
    shift = 63 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(ns);
    if (shift + 2 > HISTOGRAM_BUCKETS / HISTOGRAM_STEPS)
        return HISTOGRAM_BUCKETS - 1;
    return (shift + 1) * HISTOGRAM_STEPS + (unsigned)((ns >> shift) - HISTOGRAM_STEPS);
}

/* The first time that is too long for the bucket. */
static uint64_t bucket_end_ns(unsigned bucket)
{
    unsigned shift = bucket / HISTOGRAM_STEPS;
    uint64_t step = bucket % HISTOGRAM_STEPS + 1;

    return shift == 0 ? step : (HISTOGRAM_STEPS + step) << (shift - 1);
}

void histogram_add(struct histogram *h, uint64_t ns)
{
    h->bucket[bucket_of(ns)]++;
    h->count++;
    if (ns > h->longest_ns)
        h->longest_ns = ns;
}

double histogram_quantile_us(const struct histogram *h, double share)
{
    uint64_t want = (uint64_t)(share * (double)h->count), seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen > want)
            return (double)bucket_end_ns(i) / 1000;
    }
    return (double)h->longest_ns / 1000;
}
