/* test_metrics.c - counts from several threads, and the text that a scrape gets. */
#include <pthread.h>
#include <stdlib.h>

#include "shared/service/metrics.h"
#include "tests/unit/check.h"

enum { ROW_OK, ROW_REFUSED, ROW_OPEN, ROW_TOOK_A, ROW_TOOK_B, ROWS };

static const struct metric table[ROWS] = {
    [ROW_OK] = {"pawl_requests_total", METRIC_COUNTER, "code=\"ok\"", "Requests by their end."},
    [ROW_REFUSED] = {"pawl_requests_total", METRIC_COUNTER, "code=\"stale-token\"", "Requests by their end."},
    [ROW_OPEN] = {"pawl_connections", METRIC_GAUGE, NULL, "Open now."},
    [ROW_TOOK_A] = {"pawl_took_seconds", METRIC_HISTOGRAM_US, "op=\"acquire\"", "How long it took."},
    [ROW_TOOK_B] = {"pawl_took_seconds", METRIC_HISTOGRAM_US, NULL, "How long it took."},
};

static struct bytes text_of(const struct metrics *metrics, struct json_out *out)
{
    json_out_reset(out);
    metrics_write(metrics, out);
    return json_out_bytes(out);
}

/* Whether the text has this line. */
static bool says(const struct metrics *metrics, const char *line)
{
    struct json_out out = {.at = NULL};
    struct bytes text = text_of(metrics, &out);
    char wanted[160];
    int len = snprintf(wanted, sizeof(wanted), "\n%s\n", line);
    bool found = memmem(text.at, text.len, wanted, (size_t)len) != NULL;

    if (!found)
        printf("# no line %s\n", line);
    json_out_done(&out);
    return found;
}

TEST(the_text_has_help_and_type_once_for_each_name_and_sums_over_the_threads)
{
    static const char wanted[] = "# HELP pawl_requests_total Requests by their end.\n"
                                 "# TYPE pawl_requests_total counter\n"
                                 "pawl_requests_total{code=\"ok\"} 106\n"
                                 "pawl_requests_total{code=\"stale-token\"} 0\n"
                                 "# HELP pawl_connections Open now.\n"
                                 "# TYPE pawl_connections gauge\n"
                                 "pawl_connections 27\n";
    struct metrics *metrics = metrics_new(table, ROW_TOOK_A, 3);
    struct json_out out = {.at = NULL};

    for (unsigned i = 0; i < 3; i++) {
        metric_add(metrics_block(metrics, i), ROW_OK, i + 1);
        metric_set(metrics_block(metrics, i), ROW_OPEN, 10);
    }
    metric_add(metrics_block(metrics, 1), ROW_OK, 100);
    metric_set(metrics_block(metrics, 2), ROW_OPEN, 7);
    CHECK_INT(metric_total(metrics, ROW_OK), 106);
    CHECK_INT(metric_total(metrics, ROW_REFUSED), 0);
    CHECK_INT(metric_total(metrics, ROW_OPEN), 27);
    CHECK_TEXT(text_of(metrics, &out), BYTES(wanted));
    json_out_done(&out);
    metrics_free(metrics);
}

TEST(a_bucket_counts_up_to_its_bound_and_not_beyond)
{
    static const struct {
        uint64_t bound_us;
        const char *le;
    } buckets[] = {
        {50, "0.00005"},  {100, "0.0001"},  {250, "0.00025"},   {500, "0.0005"},  {1000, "0.001"},
        {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},    {25000, "0.025"}, {50000, "0.05"},
        {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},    {1000000, "1"},   {5000000, "5"},
        {20000000, "20"}, {60000000, "60"}, {300000000, "300"},
    };

    CHECK(METRIC_BUCKETS == sizeof(buckets) / sizeof(buckets[0]) + 2);
    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        for (unsigned more = 0; more < 3; more++) {
            struct metrics *metrics = metrics_new(table, ROWS, 1);

            metric_observe_us(metrics_block(metrics, 0), ROW_TOOK_A, buckets[i].bound_us - 1 + more);
            CHECK(says(metrics, textf("pawl_took_seconds_bucket{op=\"acquire\",le=\"%s\"} %d", buckets[i].le,
                                      more < 2)));
            CHECK(says(metrics, "pawl_took_seconds_bucket{op=\"acquire\",le=\"+Inf\"} 1"));
            metrics_free(metrics);
        }
    }
}

TEST(a_histogram_is_cumulative_and_has_its_sum_in_seconds)
{
    static const uint64_t observed_us[] = {0, 50, 51, 700, 1000000, 1000001, 90000000};
    static const char *const lines[] = {"# TYPE pawl_took_seconds histogram",
                                        "pawl_took_seconds_bucket{le=\"0.00005\"} 2",
                                        "pawl_took_seconds_bucket{le=\"0.0001\"} 3",
                                        "pawl_took_seconds_bucket{le=\"0.0005\"} 3",
                                        "pawl_took_seconds_bucket{le=\"0.001\"} 4",
                                        "pawl_took_seconds_bucket{le=\"1\"} 5",
                                        "pawl_took_seconds_bucket{le=\"+Inf\"} 7",
                                        "pawl_took_seconds_count 7",
                                        "pawl_took_seconds_sum 92.000802",
                                        "pawl_took_seconds_count{op=\"acquire\"} 0",
                                        "pawl_took_seconds_sum{op=\"acquire\"} 0.000000"};
    struct metrics *metrics = metrics_new(table, ROWS, 2);

    for (size_t i = 0; i < sizeof(observed_us) / sizeof(observed_us[0]); i++)
        metric_observe_us(metrics_block(metrics, i % 2), ROW_TOOK_B, observed_us[i]);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        CHECK(says(metrics, lines[i]));
    CHECK_INT(metric_total(metrics, ROW_TOOK_B), 7);
    metrics_free(metrics);
}

enum { THREADS = 4, TIMES = 20000 };

static void *count_up(void *argument)
{
    struct metrics_block *block = argument;

    for (unsigned i = 0; i < TIMES; i++) {
        metric_add(block, ROW_OK, 1);
        metric_observe_us(block, ROW_TOOK_A, i);
        metric_set(block, ROW_OPEN, i);
    }
    return NULL;
}

TEST(threads_count_while_a_scrape_looks_and_nothing_is_lost)
{
    struct metrics *metrics = metrics_new(table, ROWS, THREADS);
    pthread_t threads[THREADS];
    struct json_out out = {.at = NULL};
    uint64_t before = 0;

    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_up, metrics_block(metrics, i)) == 0);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t now = metric_total(metrics, ROW_OK);

        CHECK(now >= before);
        before = now;
        CHECK(text_of(metrics, &out).len > 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(metric_total(metrics, ROW_OK), THREADS * TIMES);
    CHECK_INT(metric_total(metrics, ROW_TOOK_A), THREADS * TIMES);
    CHECK_INT(metric_total(metrics, ROW_OPEN), THREADS * (TIMES - 1));
    json_out_done(&out);
    metrics_free(metrics);
    metrics_free(NULL);
}

CHECK_MAIN
