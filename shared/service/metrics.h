/* metrics.h - relaxed counters of all threads, written in Prometheus' text format 0.0.4.
 *
 * A metric is a static table entry; each thread has a block of its own counters (written with relaxed stores
 * by that thread alone), and a scrape sums the blocks. No label value comes from a client. */
#ifndef PAWL_SHARED_METRICS_H
#define PAWL_SHARED_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "shared/text/json_write.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM_US };

/* One row a series; rows of one metric (same name) stand together. labels: "code=\"stale-token\"" or NULL.
 * A histogram takes METRIC_BUCKETS slots; its name ends in _seconds and it is written in seconds. */
struct metric {
    const char *name;
    enum metric_kind kind;
    const char *labels;
    const char *help; /* one line, without a backslash */
};

enum { METRIC_BUCKETS = 20 };

struct metrics;       /* a table and the blocks of the threads */
struct metrics_block; /* one thread's */

struct metrics *metrics_new(const struct metric *table, unsigned count, unsigned threads);
void metrics_free(struct metrics *metrics);
struct metrics_block *metrics_block(struct metrics *metrics, unsigned thread);
void metric_add(struct metrics_block *block, unsigned row, uint64_t n);
void metric_set(struct metrics_block *block, unsigned row,
                uint64_t value); /* gauges; the blocks are summed */
void metric_observe_us(struct metrics_block *block, unsigned row, uint64_t us);
uint64_t metric_total(const struct metrics *metrics, unsigned row);
/* Appends the text to out (used as a plain buffer); the two lines in front of a metric's series. */
void metrics_write(const struct metrics *metrics, struct json_out *out);
void metric_head_write(const struct metric *metric, struct json_out *out);

#endif
