/* metrics.c - counters that each thread writes alone and a scrape sums. */
#include "shared/service/metrics.h"

#include "shared/text/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* The slots of a histogram: one for each bound, one for what lies above all, and the sum. */
enum { BOUNDS = 18, SLOT_ABOVE = BOUNDS, SLOT_SUM, LINE_CACHE_BYTES = 64 };
_Static_assert(SLOT_SUM + 1 == METRIC_BUCKETS, "a histogram's slots");

struct bound {
    uint64_t us;
    const char *seconds;
};

static const struct bound bounds[BOUNDS] = {
    {50, "0.00005"},  {100, "0.0001"},  {250, "0.00025"},   {500, "0.0005"},  {1000, "0.001"},
    {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},    {25000, "0.025"}, {50000, "0.05"},
    {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},    {1000000, "1"},   {5000000, "5"},
    {20000000, "20"}, {60000000, "60"}, {300000000, "300"},
};

struct metrics_block {
    const struct metrics *metrics;
    _Atomic uint64_t slots[];
};

struct metrics {
    const struct metric *table;
    unsigned count, threads;
    struct metrics_block **blocks;
    unsigned first_slots[]; /* of each row */
};

/* -- the table and its blocks */

static bool rows_of_a_metric_stand_together(const struct metric *table, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        bool goes_on = strcmp(table[i].name, table[i - 1].name) == 0;

        if (goes_on && table[i].kind != table[i - 1].kind)
            return false;
        for (unsigned j = 0; j + 1 < i && !goes_on; j++)
            if (strcmp(table[i].name, table[j].name) == 0)
                return false;
    }
    return true;
}

static struct metrics_block *block_new(const struct metrics *metrics, unsigned slots)
{
    size_t bytes = sizeof(struct metrics_block) + slots * sizeof(_Atomic uint64_t);
    /* Whole cache lines, so that no two threads write to the same one. */
    size_t size = (bytes + LINE_CACHE_BYTES - 1) / LINE_CACHE_BYTES * LINE_CACHE_BYTES;
    struct metrics_block *block = must_have(aligned_alloc(LINE_CACHE_BYTES, size));

    block->metrics = metrics;
    for (unsigned i = 0; i < slots; i++)
        atomic_init(&block->slots[i], 0);
    return block;
}

struct metrics *metrics_new(const struct metric *table, unsigned count, unsigned threads)
{
    struct metrics *metrics = must_have(malloc(sizeof(*metrics) + count * sizeof(metrics->first_slots[0])));
    unsigned slots = 0;

    assert(threads > 0 && rows_of_a_metric_stand_together(table, count));
    metrics->table = table;
    metrics->count = count;
    metrics->threads = threads;
    for (unsigned i = 0; i < count; i++) {
        metrics->first_slots[i] = slots;
        slots += table[i].kind == METRIC_HISTOGRAM_US ? METRIC_BUCKETS : 1;
    }
    metrics->blocks = must_have(malloc(threads * sizeof(struct metrics_block *)));
    for (unsigned i = 0; i < threads; i++)
        metrics->blocks[i] = block_new(metrics, slots);
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    for (unsigned i = 0; i < metrics->threads; i++)
        free(metrics->blocks[i]);
    free(metrics->blocks);
    free(metrics);
}

struct metrics_block *metrics_block(struct metrics *metrics, unsigned thread)
{
    assert(thread < metrics->threads);
    return metrics->blocks[thread];
}

/* -- counting */

static _Atomic uint64_t *slot_of(struct metrics_block *block, unsigned row, enum metric_kind kind)
{
    const struct metrics *metrics = block->metrics;

    assert(row < metrics->count && metrics->table[row].kind == kind);
    return &block->slots[metrics->first_slots[row]];
}

/* No locked instruction: nobody else writes here. */
static void slot_add(_Atomic uint64_t *slot, uint64_t n)
{
    atomic_store_explicit(slot, atomic_load_explicit(slot, memory_order_relaxed) + n, memory_order_relaxed);
}

void metric_add(struct metrics_block *block, unsigned row, uint64_t n)
{
    slot_add(slot_of(block, row, METRIC_COUNTER), n);
}

void metric_set(struct metrics_block *block, unsigned row, uint64_t value)
{
    atomic_store_explicit(slot_of(block, row, METRIC_GAUGE), value, memory_order_relaxed);
}

void metric_observe_us(struct metrics_block *block, unsigned row, uint64_t us)
{
    _Atomic uint64_t *slots = slot_of(block, row, METRIC_HISTOGRAM_US);
    unsigned i = 0;

    while (i < BOUNDS && us > bounds[i].us)
        i++;
    slot_add(&slots[i], 1);
    slot_add(&slots[SLOT_SUM], us);
}

static uint64_t slot_total(const struct metrics *metrics, unsigned row, unsigned slot)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < metrics->threads; i++) {
        const struct metrics_block *block = metrics->blocks[i];

        total += atomic_load_explicit(&block->slots[metrics->first_slots[row] + slot], memory_order_relaxed);
    }
    return total;
}

uint64_t metric_total(const struct metrics *metrics, unsigned row)
{
    uint64_t total = 0;

    assert(row < metrics->count);
    if (metrics->table[row].kind != METRIC_HISTOGRAM_US)
        return slot_total(metrics, row, 0);
    for (unsigned i = 0; i <= SLOT_ABOVE; i++)
        total += slot_total(metrics, row, i);
    return total;
}

/* -- writing: https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format" */

void metric_head_write(const struct metric *metric, struct json_out *out)
{
    static const char *const kinds[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM_US] = "histogram"};

    json_out_print(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
                   kinds[metric->kind]);
}

/* The name with its suffix and, in braces, the row's labels. */
static void write_series(const struct metric *metric, const char *suffix, uint64_t value,
                         struct json_out *out)
{
    const char *labels = metric->labels != NULL ? metric->labels : "";

    json_out_print(out, *labels ? "%s%s{%s} %" PRIu64 "\n" : "%s%s%s %" PRIu64 "\n", metric->name, suffix,
                   labels, value);
}

static void write_histogram(const struct metrics *metrics, unsigned row, struct json_out *out)
{
    const struct metric *metric = &metrics->table[row];
    const char *labels = metric->labels != NULL ? metric->labels : "", *comma = *labels ? "," : "";
    uint64_t count = 0, sum_us = slot_total(metrics, row, SLOT_SUM);

    for (unsigned i = 0; i <= SLOT_ABOVE; i++) {
        count += slot_total(metrics, row, i);
        json_out_print(out, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", metric->name, labels, comma,
                       i == SLOT_ABOVE ? "+Inf" : bounds[i].seconds, count);
    }
    json_out_print(
        out, *labels ? "%s_sum{%s} %" PRIu64 ".%06" PRIu64 "\n" : "%s_sum%s %" PRIu64 ".%06" PRIu64 "\n",
        metric->name, labels, sum_us / 1000000, sum_us % 1000000);
    write_series(metric, "_count", count, out);
}

void metrics_write(const struct metrics *metrics, struct json_out *out)
{
    for (unsigned i = 0; i < metrics->count; i++) {
        const struct metric *metric = &metrics->table[i];

        if (i == 0 || strcmp(metric->name, metrics->table[i - 1].name) != 0)
            metric_head_write(metric, out);
        if (metric->kind == METRIC_HISTOGRAM_US)
            write_histogram(metrics, i, out);
        else
            write_series(metric, "", slot_total(metrics, i, 0), out);
    }
}
