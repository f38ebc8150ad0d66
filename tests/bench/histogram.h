/* histogram.h - times in nanoseconds, counted in buckets that are 1 % wide. */
#ifndef PAWL_TESTS_BENCH_HISTOGRAM_H
#define PAWL_TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>

/* 128 buckets to each power of two, exact below 128 ns, up to 2^40 ns (18 minutes), as in HdrHistogram. */
enum {
    HISTOGRAM_BITS = 7,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_BITS,
    HISTOGRAM_BUCKETS = (40 - HISTOGRAM_BITS + 1) * HISTOGRAM_STEPS
};

struct histogram {
    uint64_t count, longest_ns;
    uint32_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t ns);
/* The time that this share (0 to 1) of all were not longer than, in microseconds; 0 when there are none. */
double histogram_quantile_us(const struct histogram *h, double share);

#endif
