/* test_metrics.c - counts from several threads, and the text read back by a parser of its own. */
#include <pthread.h>
#include <stdlib.h>

#include "shared/service/metrics.h"
#include "tests/unit/check.h"

enum { ROW_OK, ROW_REFUSED, ROW_OPEN, ROW_TOOK_A, ROW_TOOK_B, ROWS };

static const struct metric table[ROWS] = {
    [ROW_OK] = {"pawl_requests_total", METRIC_COUNTER, "code=\"ok\"", "Requests by their end."},
    [ROW_REFUSED] = {"pawl_requests_total", METRIC_COUNTER, "code=\"stale-token\"", "Requests by their end."},
    [ROW_OPEN] = {"pawl_connections", METRIC_GAUGE, NULL, "Open now:\nback\\slash."},
    [ROW_TOOK_A] = {"pawl_took_seconds", METRIC_HISTOGRAM_US, "op=\"acquire\"", "How long it took."},
    [ROW_TOOK_B] = {"pawl_took_seconds", METRIC_HISTOGRAM_US, NULL, "How long it took."},
};

/* -- a small parser of the text format: NAME[{LABELS}] VALUE, and comments in front of their series */

struct series {
    char name[128], value[64];
};

struct scrape {
    struct series series[128];
    unsigned count;
    char typed[16][64]; /* the names that had a TYPE */
    unsigned typed_count;
};

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

static size_t name_length(const char *at)
{
    size_t len = 0;

    while (is_name_char(at[len]) || (len > 0 && at[len] >= '0' && at[len] <= '9'))
        len++;
    return len;
}

static bool was_typed(const struct scrape *scrape, const char *name, size_t len)
{
    for (unsigned i = 0; i < scrape->typed_count; i++) {
        if (strlen(scrape->typed[i]) == len && memcmp(scrape->typed[i], name, len) == 0)
            return true;
    }
    return false;
}

/* "# HELP name text" is followed by "# TYPE name kind", once for a name. */
static const char *parse_comments(struct scrape *scrape, const char *at)
{
    size_t len = name_length(at + 7);
    const char *name = at + 7, *end = strchr(at, '\n');

    CHECK(strncmp(at, "# HELP ", 7) == 0 && len > 0 && name[len] == ' ');
    at = end + 1;
    CHECK(strncmp(at, "# TYPE ", 7) == 0 && strncmp(at + 7, name, len) == 0 && at[7 + len] == ' ');
    CHECK(!was_typed(scrape, name, len) && scrape->typed_count < 16);
    snprintf(scrape->typed[scrape->typed_count++], 64, "%.*s", (int)len, name);
    at += 8 + len;
    end = strchr(at, '\n');
    CHECK(strncmp(at, "counter\n", 8) == 0 || strncmp(at, "gauge\n", 6) == 0 ||
          strncmp(at, "histogram\n", 10) == 0);
    return end + 1;
}

/* {name="value",...}: returns what is behind the brace. */
static const char *parse_labels(const char *at)
{
    do {
        size_t len = name_length(++at);

        CHECK(len > 0 && strncmp(at + len, "=\"", 2) == 0);
        at = strchr(at + len + 2, '"');
        CHECK(at != NULL);
        at++;
    } while (*at == ',');
    CHECK(*at == '}');
    return at + 1;
}

static const char *parse_series(struct scrape *scrape, const char *at)
{
    struct series *series = &scrape->series[scrape->count++];
    const char *first = at, *end = strchr(at, '\n');
    char *number_end;

    at += name_length(at);
    if (*at == '{')
        at = parse_labels(at);
    CHECK(at > first && *at == ' ');
    strtod(at + 1, &number_end);
    CHECK(number_end == end && end > at + 1);
    snprintf(series->name, sizeof(series->name), "%.*s", (int)(at - first), first);
    snprintf(series->value, sizeof(series->value), "%.*s", (int)(end - at - 1), at + 1);
    return end + 1;
}

static void scrape_metrics(const struct metrics *metrics, struct scrape *scrape)
{
    struct json_out out;
    const char *at;

    *scrape = (struct scrape){.count = 0};
    json_out_init(&out);
    metrics_write(metrics, &out);
    CHECK(out.len > 0 && out.at[out.len - 1] == '\n');
    json_out_append(&out, (struct bytes){"", 1}); /* its NUL */
    for (at = out.at; *at && scrape->count < 128;)
        at = *at == '#' ? parse_comments(scrape, at) : parse_series(scrape, at);
    json_out_done(&out);
}

static struct bytes value_of(const struct scrape *scrape, const char *name)
{
    for (unsigned i = 0; i < scrape->count; i++) {
        if (strcmp(scrape->series[i].name, name) == 0)
            return bytes_of(scrape->series[i].value);
    }
    return BYTES("(absent)");
}

/* -- tests */

TEST(counters_and_gauges_are_summed_over_the_threads)
{
    struct metrics *metrics = metrics_new(table, ROWS, 3);
    static struct scrape scrape;

    for (unsigned i = 0; i < 3; i++) {
        metric_add(metrics_block(metrics, i), ROW_OK, i + 1);
        metric_set(metrics_block(metrics, i), ROW_OPEN, 10);
    }
    metric_add(metrics_block(metrics, 1), ROW_OK, 100);
    metric_set(metrics_block(metrics, 2), ROW_OPEN, 7);
    CHECK_INT(metric_total(metrics, ROW_OK), 106);
    CHECK_INT(metric_total(metrics, ROW_REFUSED), 0);
    CHECK_INT(metric_total(metrics, ROW_OPEN), 27);
    scrape_metrics(metrics, &scrape);
    CHECK_TEXT(value_of(&scrape, "pawl_requests_total{code=\"ok\"}"), BYTES("106"));
    CHECK_TEXT(value_of(&scrape, "pawl_requests_total{code=\"stale-token\"}"), BYTES("0"));
    CHECK_TEXT(value_of(&scrape, "pawl_connections"), BYTES("27"));
    metrics_free(metrics);
}

TEST(help_and_type_stand_once_for_each_name)
{
    struct metrics *metrics = metrics_new(table, ROWS, 1);
    static struct scrape scrape;
    struct json_out out;

    scrape_metrics(metrics, &scrape);
    CHECK_INT(scrape.typed_count, 3);
    CHECK_INT(scrape.count, 2 + 1 + 2 * 21);
    json_out_init(&out);
    metrics_write(metrics, &out);
    CHECK(memmem(out.at, out.len, "# HELP pawl_connections Open now:\\nback\\\\slash.\n", 48) != NULL);
    json_out_done(&out);
    metrics_free(metrics);
}

struct bucket {
    uint64_t bound_us;
    const char *le;
};

static const struct bucket buckets[] = {
    {50, "0.00005"},  {100, "0.0001"},  {250, "0.00025"},   {500, "0.0005"},  {1000, "0.001"},
    {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},    {25000, "0.025"}, {50000, "0.05"},
    {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},    {1000000, "1"},   {5000000, "5"},
    {20000000, "20"}, {60000000, "60"}, {300000000, "300"},
};

/* How many of one observation the bucket le counts. */
static struct bytes bucket_after(struct scrape *scrape, uint64_t us, const char *le)
{
    struct metrics *metrics = metrics_new(table, ROWS, 1);
    char name[128];

    metric_observe_us(metrics_block(metrics, 0), ROW_TOOK_A, us);
    scrape_metrics(metrics, scrape);
    metrics_free(metrics);
    snprintf(name, sizeof(name), "pawl_took_seconds_bucket{op=\"acquire\",le=\"%s\"}", le);
    return value_of(scrape, name);
}

TEST(a_bucket_counts_up_to_its_bound_and_not_beyond)
{
    static struct scrape scrape;

    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        CHECK_TEXT(bucket_after(&scrape, buckets[i].bound_us - 1, buckets[i].le), BYTES("1"));
        CHECK_TEXT(bucket_after(&scrape, buckets[i].bound_us, buckets[i].le), BYTES("1"));
        CHECK_TEXT(bucket_after(&scrape, buckets[i].bound_us + 1, buckets[i].le), BYTES("0"));
        CHECK_TEXT(bucket_after(&scrape, buckets[i].bound_us + 1, "+Inf"), BYTES("1"));
    }
}

TEST(a_histogram_is_cumulative_and_has_its_sum_in_seconds)
{
    static const uint64_t observed_us[] = {0, 50, 51, 700, 1000000, 1000001, 90000000};
    struct metrics *metrics = metrics_new(table, ROWS, 2);
    static struct scrape scrape;

    for (size_t i = 0; i < sizeof(observed_us) / sizeof(observed_us[0]); i++)
        metric_observe_us(metrics_block(metrics, i % 2), ROW_TOOK_B, observed_us[i]);
    scrape_metrics(metrics, &scrape);
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_bucket{le=\"0.00005\"}"), BYTES("2"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_bucket{le=\"0.0001\"}"), BYTES("3"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_bucket{le=\"0.0005\"}"), BYTES("3"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_bucket{le=\"0.001\"}"), BYTES("4"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_bucket{le=\"1\"}"), BYTES("5"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_bucket{le=\"+Inf\"}"), BYTES("7"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_count"), BYTES("7"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_sum"), BYTES("92.000802"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_count{op=\"acquire\"}"), BYTES("0"));
    CHECK_TEXT(value_of(&scrape, "pawl_took_seconds_sum{op=\"acquire\"}"), BYTES("0.000000"));
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
    uint64_t before = 0;
    static struct scrape scrape;

    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_up, metrics_block(metrics, i)) == 0);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t now = metric_total(metrics, ROW_OK);

        CHECK(now >= before);
        before = now;
        scrape_metrics(metrics, &scrape);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(metric_total(metrics, ROW_OK), THREADS * TIMES);
    CHECK_INT(metric_total(metrics, ROW_TOOK_A), THREADS * TIMES);
    CHECK_INT(metric_total(metrics, ROW_OPEN), THREADS * (TIMES - 1));
    metrics_free(metrics);
}

TEST(freeing_nothing_is_fine)
{
    metrics_free(NULL);
    CHECK(METRIC_BUCKETS == sizeof(buckets) / sizeof(buckets[0]) + 2);
}

CHECK_MAIN
