/* test_log.c - a line for people and a line for machines, and what never gets into either. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/service/log.h"
#include "shared/text/json.h"
#include "tests/unit/check.h"

enum { LINE_MAX_BYTES = 4096, TIME_BYTES = 24 };

/* A log into a pipe, read from its other end. */
struct pipe_log {
    struct log log;
    int read_fd;
    char buf[65536];
};

static void open_log(struct pipe_log *p, enum log_level level, enum log_format format)
{
    int fds[2];

    if (pipe(fds) != 0)
        abort();
    p->log = (struct log){"pawl-lease", level, format, fds[1], NULL};
    p->read_fd = fds[0];
}

/* All that was logged; closes the log. */
static struct bytes read_log(struct pipe_log *p)
{
    size_t len = 0;
    ssize_t n;

    close(p->log.fd);
    while ((n = read(p->read_fd, p->buf + len, sizeof(p->buf) - len)) > 0)
        len += (size_t)n;
    close(p->read_fd);
    return (struct bytes){p->buf, len};
}

/* "2026-11-21T10:11:12.345Z" */
static bool is_time(struct bytes text)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ";

    if (text.len != TIME_BYTES)
        return false;
    for (size_t i = 0; i < TIME_BYTES; i++) {
        bool digit = text.at[i] >= '0' && text.at[i] <= '9';

        if (shape[i] == 'd' ? !digit : text.at[i] != shape[i])
            return false;
    }
    return true;
}

static struct bytes behind_time(struct bytes line)
{
    CHECK(line.len > TIME_BYTES && is_time((struct bytes){line.at, TIME_BYTES}));
    return (struct bytes){line.at + TIME_BYTES, line.len - TIME_BYTES};
}

TEST(a_text_line_is_time_level_event_and_fields)
{
    static struct pipe_log p;
    const struct log_field fields[] = {LOG_T("lease", BYTES("orders:42")), LOG_I("status", 201),
                                       LOG_I("took_us", 812), LOG_END};

    open_log(&p, LOG_INFO, LOG_TEXT);
    log_event(&p.log, LOG_INFO, "request", fields);
    CHECK_TEXT(behind_time(read_log(&p)), BYTES(" info  request  lease=orders:42 status=201 took_us=812\n"));
    open_log(&p, LOG_DEBUG, LOG_TEXT);
    log_event(&p.log, LOG_ERROR, "store-lost", NULL);
    CHECK_TEXT(behind_time(read_log(&p)), BYTES(" error store-lost\n"));
}

struct value_case {
    struct bytes value;
    const char *shown;
};

#define TEXT(literal)                                                                                        \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

static const struct value_case value_cases[] = {
    {TEXT("a/b:c-d_e.f"), "a/b:c-d_e.f"},
    {TEXT(""), "\"\""},
    {TEXT("two words"), "\"two words\""},
    {TEXT("a=b"), "\"a=b\""},
    {TEXT("a\"b\\c"), "\"a\\\"b\\\\c\""},
    {TEXT("line\nfeed"), "\"line\\nfeed\""},
    {TEXT("\0"), "\"\\x00\""},
    {TEXT("\x1b[31m"), "\"\\x1b[31m\""},
    {TEXT("\x7f"), "\"\\x7f\""},
    {TEXT("\xc2\x9b"), "\"\\xc2\\x9b\""}, /* C1: the other way to write ESC [ */
    {TEXT("\xc2\xa0"), "\xc2\xa0"},
    {TEXT("\xc3\xa4\xf0\x9f\x94\x92"), "\xc3\xa4\xf0\x9f\x94\x92"},
    {TEXT("\xff"), "\"\\xff\""},
};

TEST(nothing_in_a_value_can_make_a_second_line_a_field_or_move_the_cursor)
{
    for (size_t i = 0; i < sizeof(value_cases) / sizeof(value_cases[0]); i++) {
        static struct pipe_log p;
        const struct log_field fields[] = {LOG_T("v", value_cases[i].value), LOG_END};

        open_log(&p, LOG_INFO, LOG_TEXT);
        log_event(&p.log, LOG_WARNING, "e", fields);
        CHECK_TEXT(behind_time(read_log(&p)), bytes_of(textf(" warn  e  v=%s\n", value_cases[i].shown)));
    }
}

TEST(a_json_line_has_time_level_program_event_and_fields)
{
    static struct pipe_log p;
    const struct log_field fields[] = {LOG_T("lease", BYTES("a\"\n\xc3\xa4")), LOG_I("took_us", INT64_MIN),
                                       LOG_END};
    struct json *json;
    struct bytes text, line;
    int64_t took;

    open_log(&p, LOG_INFO, LOG_JSON);
    log_event(&p.log, LOG_WARNING, "request", fields);
    line = read_log(&p);
    CHECK(line.len > 0 && memchr(line.at, '\n', line.len) == line.at + line.len - 1);
    json = json_parse(line, 1, NULL);
    if (!CHECK(json != NULL))
        return;
    CHECK(json_get_text(json, "time", &text) == JSON_FOUND && is_time(text));
    CHECK(json_get_text(json, "level", &text) == JSON_FOUND && bytes_are(text, "warning"));
    CHECK(json_get_text(json, "program", &text) == JSON_FOUND && bytes_are(text, "pawl-lease"));
    CHECK(json_get_text(json, "event", &text) == JSON_FOUND && bytes_are(text, "request"));
    CHECK(json_get_text(json, "lease", &text) == JSON_FOUND && bytes_are(text, "a\"\n\xc3\xa4"));
    CHECK(json_get_int(json, "took_us", &took) == JSON_FOUND && took == INT64_MIN);
    json_free(json);
}

TEST(only_levels_from_the_wanted_one_on_are_written)
{
    static const enum log_level levels[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR};

    for (size_t wanted = 0; wanted < 4; wanted++) {
        for (size_t level = 0; level < 4; level++) {
            static struct pipe_log p;

            open_log(&p, levels[wanted], LOG_TEXT);
            CHECK(log_wants(&p.log, levels[level]) == (level >= wanted));
            log_event(&p.log, levels[level], "e", NULL);
            CHECK((read_log(&p).len > 0) == (level >= wanted));
        }
    }
}

/* A value of so many bytes between two others; good until the next one. */
static struct bytes log_long(enum log_format format, const char *unit, size_t bytes)
{
    static struct pipe_log p;
    char *value = malloc(bytes + 4);
    const struct log_field fields[] = {LOG_I("before", 1), LOG_T("long", ((struct bytes){value, bytes})),
                                       LOG_I("after", 2), LOG_END};
    struct bytes line;

    if (value == NULL)
        abort();
    for (size_t i = 0; i < bytes; i++)
        value[i] = unit[i % strlen(unit)];
    open_log(&p, LOG_INFO, format);
    log_event(&p.log, LOG_INFO, "e", fields);
    line = read_log(&p);
    free(value);
    return line;
}

static bool has(struct bytes text, const char *part)
{
    return memmem(text.at, text.len, part, strlen(part)) != NULL;
}

/* Without the value and the mark this line has 56 bytes, and 16 are kept free for the mark and the end. */
TEST(a_text_line_is_at_most_4096_bytes_and_says_when_it_was_cut)
{
    for (size_t bytes = 3900; bytes < 4300; bytes++) {
        struct bytes line = log_long(LOG_TEXT, "x", bytes);

        CHECK(line.len <= LINE_MAX_BYTES && line.at[line.len - 1] == '\n');
        CHECK(has(line, " cut=true\n") == (bytes > 4096 - 16 - 56));
        /* where the value just fits and " after=2" behind it does not */
        CHECK(has(line, "x after=2") == (bytes <= 4024 || bytes > 4024 + 8));
    }
}

TEST(a_json_line_is_at_most_4096_bytes_and_still_json_when_it_was_cut)
{
    static const char *const units[] = {"x", "\x01", "\xc3\xa4", "\xf0\x9f\x94\x92", "\""};
    struct json *no_utf8 = json_parse(log_long(LOG_JSON, "\xff", 50000), 1, NULL);

    CHECK(no_utf8 != NULL);
    json_free(no_utf8);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        for (size_t n = 12; n < 60000; n = n * 5 / 4) {
            size_t bytes = n - n % strlen(units[i]);
            struct bytes line = log_long(LOG_JSON, units[i], bytes), text;
            struct json *json = json_parse(line, 1, NULL);
            bool cut = false;

            CHECK(line.len <= LINE_MAX_BYTES);
            if (!CHECK(json != NULL))
                continue;
            CHECK_INT(json_get_text(json, "long", &text), JSON_FOUND);
            CHECK((json_get_bool(json, "cut", &cut) == JSON_FOUND) == (text.len < bytes));
            CHECK(text.len % strlen(units[i]) == 0 && bytes >= text.len);
            json_free(json);
        }
    }
}

struct named {
    const char *key;
    enum log_level wanted;
};

static void log_secret(const void *of)
{
    const struct named *named = of;
    const struct log log = {"test", named->wanted, LOG_TEXT, STDERR_FILENO, NULL};
    const struct log_field fields[] = {LOG_I("status", 1), LOG_T(named->key, BYTES("x")), LOG_END};

    log_event(&log, LOG_DEBUG, "e", fields);
}

static bool logging_aborts(const char *key, enum log_level wanted)
{
    return check_aborts(log_secret, &(struct named){key, wanted});
}

TEST(a_secret_as_a_field_is_a_programmers_mistake_even_when_the_line_is_not_wanted)
{
    static const char *const secrets[] = {"lease_id",       "sig",      "signature", "secret",
                                          "session_secret", "password", "key",       "fencing_token",
                                          "authorization"};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        CHECK(logging_aborts(secrets[i], LOG_DEBUG));
        CHECK(logging_aborts(secrets[i], LOG_ERROR));
    }
    CHECK(!logging_aborts("token", LOG_DEBUG));
    CHECK(!logging_aborts("lease", LOG_DEBUG));
}

enum { THREADS = 4, LINES = 500 };

static void *log_lines(void *argument)
{
    const struct log *log = argument;
    const struct log_field fields[] = {LOG_T("v", BYTES("abcdefghijklmnopqrstuvwxyz")), LOG_END};

    for (int i = 0; i < LINES; i++)
        log_event(log, LOG_INFO, "e", fields);
    return NULL;
}

/* How many lines come, each of them whole. */
static void *read_lines(void *arg)
{
    struct pipe_log *p = arg;
    FILE *from = fdopen(p->read_fd, "r");
    ssize_t lines = 0;

    for (; fgets(p->buf, sizeof(p->buf), from) != NULL; lines++)
        CHECK_TEXT(behind_time(bytes_of(p->buf)), BYTES(" info  e  v=abcdefghijklmnopqrstuvwxyz\n"));
    fclose(from);
    return (void *)lines;
}

/* Of a pipe that does not block and is full, too. */
TEST(lines_of_several_threads_do_not_mix_and_none_is_left_out)
{
    static struct pipe_log p;
    pthread_t threads[THREADS], reader;
    void *lines;

    open_log(&p, LOG_INFO, LOG_TEXT);
    CHECK(fcntl(p.log.fd, F_SETPIPE_SZ, 4096) == 4096 && fcntl(p.log.fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK(pthread_create(&reader, NULL, read_lines, &p) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, log_lines, &p.log) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    close(p.log.fd);
    pthread_join(reader, &lines);
    CHECK_INT((ssize_t)lines, THREADS * LINES);
}

TEST(a_log_that_cannot_be_written_does_no_harm)
{
    const struct log log = {"test", LOG_DEBUG, LOG_TEXT, -1, NULL};

    log_event(&log, LOG_ERROR, "e", NULL);
    CHECK(log_wants(&log, LOG_ERROR)); /* still here */
}

CHECK_MAIN
