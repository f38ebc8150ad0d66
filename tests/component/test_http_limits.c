/* test_http_limits.c - sizes, times and numbers at, inside and outside their bounds. */
#include <poll.h>

#include "tests/component/http_client.h"
#include "tests/component/http_sample.h"

enum {
    HEADER_MS = 150,
    BODY_MS = 200,
    SEND_MS = 250,
    CONNECTIONS = 40,
    MEMORY_BYTES = 3 << 20,
    LATE_MS = 15000
};

static struct sample_child server, hasty; /* which gives nobody long */

#define HOST "Host: x\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define JSON "Content-Type: application/json\r\n"

/* -- the head */

/* Each of these asks on a connection of its own, in place of the one that was open. */

/* So many bytes that begin and end so, with a letter in between. */
static unsigned ask_filled(struct client *c, const char *begin, const char *end, size_t len)
{
    char *text = malloc(len + 1);
    size_t end_len = strlen(end);

    memset(text, 'a', len);
    memcpy(text, begin, strlen(begin));
    memcpy(text + len - end_len, end, end_len + 1);
    client_anew(c, server.port, text);
    free(text);
    return c->status;
}

static unsigned ask_with_head(struct client *c, const char *path, size_t len)
{
    return ask_filled(c, textf("GET %s HTTP/1.1\r\n" HOST "X-Test: ", path), "\r\n\r\n", len);
}

TEST_CLIENT(a_head_of_8192_bytes_is_read_and_one_of_8193_refused)
{
    CHECK_INT(ask_with_head(c, "/tell/x", HTTP_HEAD_MAX - 1), 200);
    CHECK_INT(ask_with_head(c, "/tell/x", HTTP_HEAD_MAX), 200);
    CHECK(client_says(c, "\"x_count\":1}"));
    CHECK_INT(client_next(c, GET("/headers/900")), 200);
    CHECK_INT(ask_with_head(c, "/headers/900", HTTP_HEAD_MAX), 200); /* with room for the answer's head */
    for (size_t len = HTTP_HEAD_MAX + 1; len < 70000; len += len < 9000 ? 111 : 7001) {
        CHECK_INT(ask_with_head(c, "/tell/x", len), 431);
        CHECK_TEXT(client_code(c), BYTES("header-too-large"));
        CHECK(client_says(c, "may have 8192 bytes (--header-max)"));
        CHECK(client_ends(c));
    }
}

TEST(a_head_may_come_byte_by_byte)
{
    static const char begin[] = "GET /tell/x HTTP/1.1\r\n" HOST "X-Test: ";

    for (size_t len = HTTP_HEAD_MAX; len <= HTTP_HEAD_MAX + 1; len++) {
        struct client c;

        client_open(&c, server.port);
        for (size_t i = 0; i < len; i++) {
            const char *at = i < sizeof(begin) - 1 ? begin + i : i < len - 4 ? "a" : &"\r\n\r\n"[i + 4 - len];

            client_send(&c, (struct bytes){at, 1});
        }
        CHECK_INT(client_read(&c, true), len == HTTP_HEAD_MAX ? 200 : 431);
        client_close(&c);
    }
}

static unsigned ask_with_target(struct client *c, size_t len)
{
    return ask_filled(c, "GET /tell/", " HTTP/1.1\r\n" HOST "\r\n", len);
}

TEST_CLIENT(a_target_may_use_up_the_head)
{
    static const size_t too_long[] = {HTTP_HEAD_MAX + 1, HTTP_HEAD_MAX + 2, 20000, 100000};

    CHECK_INT(ask_with_target(c, HTTP_HEAD_MAX), 200);
    CHECK(c->body.len > 2 * 8000); /* path and part, whole */
    for (size_t i = 0; i < sizeof(too_long) / sizeof(too_long[0]); i++) {
        CHECK_INT(ask_with_target(c, too_long[i]), 431);
        CHECK(client_ends(c));
    }
}

static unsigned ask_with_headers(struct client *c, const char *path, unsigned count)
{
    client_close(c);
    client_say(c, server.port, "GET ");
    client_text(c, path);
    client_text(c, " HTTP/1.1\r\n" HOST);
    for (unsigned i = 1; i < count; i++)
        client_text(c, "X-Test: a\r\n");
    client_text(c, "\r\n");
    return client_read(c, true);
}

TEST_CLIENT(a_hundred_and_twenty_eight_headers_are_read_and_one_more_refused)
{
    CHECK_INT(ask_with_headers(c, "/tell/x", 128), 200);
    CHECK(client_says(c, "\"x_count\":127}"));
    CHECK_INT(ask_with_headers(c, "/headers/900", 128), 200);
    CHECK_INT(client_header(c, "X-Long").len, 900);
    for (unsigned count = 129; count < 600; count += count + 1) {
        CHECK_INT(ask_with_headers(c, "/headers/900", count), 431);
        CHECK(client_says(c, "may have 128 header fields"));
    }
}

/* Of so many, and ever more of them. */
static void ask_with_many(struct client *c, const char *begin, const char *more, const char *end, size_t most,
                          size_t step)
{
    size_t each = strlen(more);
    char text[4096];

    for (size_t count = 1; count < most; count += step) {
        size_t len = (size_t)snprintf(text, sizeof(text), "%s", begin);

        for (size_t i = 1; i < count; i++, len += each)
            memcpy(text + len, more, each);
        snprintf(text + len, sizeof(text) - len, "%s", end);
        CHECK_INT(client_anew(c, server.port, text), 200);
    }
}

TEST_CLIENT(a_query_may_have_many_members_and_cookies_are_one_header)
{
    ask_with_many(c, "GET /tell/x?b=", "&b=", " HTTP/1.1\r\n" HOST "\r\n", 1000, 37);
    ask_with_many(c, "GET /tell/x HTTP/1.1\r\n" HOST "Cookie: a=b", ";a=b", "\r\n\r\n", 900, 29);
}

/* -- the body */

static unsigned ask_with_length(struct client *c, const char *line, size_t len, const char *more)
{
    char *body = malloc(len + 1);

    memset(body, 'b', len + 1);
    client_close(c);
    client_say(c, server.port,
               textf("%s HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n", line, more, len));
    client_send(c, (struct bytes){body, len});
    free(body);
    return client_read(c, true);
}

/* Clients that send all before they read must not find a reset in place of the answer. */
TEST_CLIENT(what_is_sent_behind_a_refusal_is_taken_and_dropped)
{
    for (unsigned i = 0; i < 20; i++) {
        CHECK_INT(ask_with_length(c, "PUT /echo", (2 + i % 2) * SAMPLE_BYTES_MAX, ""), 413);
        CHECK(client_ends(c) && !c->reset);
        CHECK_INT(ask_with_length(c, "POST /hello", SAMPLE_BYTES_MAX, ""), 405);
        CHECK(client_ends(c) && !c->reset);
    }
}

TEST_CLIENT(a_body_that_is_too_long_is_refused_before_it_is_sent)
{
    static const char *const lengths[] = {"Content-Length: 1048577",
                                          "Expect: 100-continue\r\nContent-Length: 999999999999999999"};

    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(client_anew(c, server.port, textf("PUT /echo HTTP/1.1\r\n" HOST "%s\r\n\r\n", lengths[i])),
                  413);
        CHECK(client_ends(c));
    }
}

/* Sends chunks of 4 KiB until the server has had enough: how many. */
static unsigned ask_with_chunks(struct client *c, const char *line, unsigned chunks, const char *more)
{
    char chunk[4096 + 8];

    memset(chunk, 'b', sizeof(chunk));
    memcpy(chunk, "1000\r\n", 6);
    memcpy(chunk + sizeof(chunk) - 2, "\r\n", 2);
    client_close(c);
    client_say(c, server.port,
               textf("%s HTTP/1.1\r\n" HOST "%sTransfer-Encoding: chunked\r\n\r\n", line, more));
    for (unsigned i = 0; i < chunks; i++)
        client_send(c, (struct bytes){chunk, sizeof(chunk)});
    client_text(c, "0\r\n\r\n");
    return client_read(c, true);
}

TEST_CLIENT(a_body_has_the_same_limit_announced_or_in_chunks)
{
    static const struct {
        const char *line, *more;
        size_t len;
        unsigned status;
        const char *says;
    } rows[] = {
        {"POST /json", JSON, SAMPLE_JSON_MAX, 200, "bbbb"},
        {"POST /json", JSON, SAMPLE_JSON_MAX + 1, 413, "may have 16384 bytes, and"},
        {"PUT /echo", "", SAMPLE_BYTES_MAX, 200, "bbbb"},
        {"PUT /echo", "", 3 * SAMPLE_BYTES_MAX, 413, "too-large"}, /* though all of it is sent */
        {"POST /drop", "", SAMPLE_BYTES_MAX, 204, NULL},
        {"POST /drop", "", SAMPLE_BYTES_MAX + 1, 413, "may have 1048576 bytes (--max-body), and"},
    };

    for (size_t i = 0; i < 2 * (sizeof(rows) / sizeof(rows[0])); i++) {
        size_t row = i / 2, len = rows[row].len;

        CHECK_INT(i % 2 ? ask_with_chunks(c, rows[row].line, (unsigned)((len + 4095) / 4096), rows[row].more)
                        : ask_with_length(c, rows[row].line, len, rows[row].more),
                  rows[row].status);
        CHECK(rows[row].says == NULL || client_says(c, rows[row].says));
        CHECK(rows[row].status != 200 || c->body.len == len);
        CHECK(rows[row].status != 413 || client_ends(c));
    }
}

TEST_CLIENT(a_route_gets_the_kind_of_body_that_it_takes)
{
    static const struct {
        const char *type;
        unsigned status;
    } rows[] = {{"application/json", 200},
                {"Application/JSON", 200},
                {"application/json; charset=utf-8", 200},
                {"application/json ;charset=x", 200},
                {"application/json;", 200},
                {"text/json", 415},
                {"application/jsonx", 415},
                {"application/json,a", 415},
                {"", 415}};
    static const char *const bodies[] = {"Content-Length: 2\r\n\r\n{}",
                                         "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"};

    for (size_t i = 0; i < 2 * (sizeof(rows) / sizeof(rows[0])); i++)
        CHECK_INT(client_anew(c, server.port,
                              textf("POST /json HTTP/1.1\r\n" HOST "Content-Type: %s\r\n%s", rows[i / 2].type,
                                    bodies[i % 2])),
                  rows[i / 2].status);
    CHECK_INT(client_anew(c, server.port, "POST /json HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"), 200);
    CHECK_INT(client_next(c, "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              200);
    CHECK_INT(client_next(c, "GET /hello HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              200);
    CHECK_INT(client_next(c, "GET /hello HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"), 400);
    CHECK(client_ends(c));
    CHECK_INT(client_anew(c, server.port,
                          "GET /hello HTTP/1.1\r\n" HOST
                          "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
              400);
    CHECK(client_ends(c));
}

TEST_CLIENT(all_bodies_together_have_a_limit)
{
    struct client held[3];

    for (unsigned i = 0; i < 2; i++) { /* two MiB are announced, and come slowly */
        client_open(&held[i], server.port);
        client_text(&held[i],
                    "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 1048576\r\nExpect: 100-continue\r\n\r\n");
        CHECK_INT(client_read(&held[i], false), 100);
    }
    client_open(&held[2], server.port);
    CHECK_INT(client_next(&held[2], "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n"),
              413); /* a refused one takes nothing */
    CHECK_INT(ask_with_chunks(c, "PUT /echo", 255, ""), 200);
    client_close(&held[2]);
    client_open(&held[2], server.port);
    client_text(&held[2],
                "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 524288\r\nExpect: 100-continue\r\n\r\n");
    CHECK_INT(client_read(&held[2], false), 100);
    CHECK_INT(ask_with_length(c, "PUT /echo", 524289, ""), 503);
    CHECK_TEXT(client_code(c), BYTES("overloaded"));
    CHECK_INT(ask_with_chunks(c, "PUT /echo", 200, ""), 503);
    CHECK_TEXT(client_code(c), BYTES("overloaded"));
    CHECK_INT(ask_with_length(c, "PUT /echo", 524288, ""), 200);
    CHECK_INT(ask_with_length(c, "POST /drop", SAMPLE_BYTES_MAX, ""), 204); /* not kept, so not counted */
    for (unsigned i = 0; i < 3; i++)
        client_close(&held[i]);
}

/* -- numbers */

TEST(connections_beyond_the_limit_are_closed_and_later_ones_served)
{
    struct client c[CONNECTIONS], more;
    unsigned status = 0;
    uint64_t from_ms = loop_now_ms();

    for (unsigned i = 0; i < CONNECTIONS; i++)
        CHECK_INT(client_ask(&c[i], server.port, GET("/hello")), 200);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_INT(client_ask(&more, server.port, GET("/hello")), 0);
        CHECK(more.ended);
        client_close(&more);
    }
    for (unsigned i = 0; i < CONNECTIONS; i++) /* those that are there do not suffer */
        CHECK_INT(client_next(&c[i], GET("/turn")), 200);
    client_close(&c[0]);
    while (status != 200 && loop_now_ms() - from_ms < LATE_MS) { /* until it has seen that one has gone */
        status = client_ask(&more, server.port, GET("/hello"));
        client_close(&more);
    }
    CHECK_INT(status, 200);
    for (unsigned i = 1; i < CONNECTIONS; i++)
        client_close(&c[i]);
}

/* -- time */

/* Whether the server closes the connection, and not before so many milliseconds. */
static bool ends_after(struct client *c, uint64_t from_ms, unsigned ms)
{
    bool ends = CHECK(client_ends(c));
    uint64_t took_ms = loop_now_ms() - from_ms;

    return CHECK(took_ms >= ms - 10) && CHECK(took_ms < LATE_MS) && ends;
}

TEST(a_head_must_be_complete_in_time)
{
    struct client silent, line, partial, again;
    uint64_t from_ms = loop_now_ms();

    client_open(&silent, hasty.port);
    client_open(&line, hasty.port);
    client_text(&line, "GET /hel");
    client_open(&partial, hasty.port);
    client_text(&partial, "GET /hello HTTP/1.1\r\nHost:");
    client_open(&again, hasty.port);
    client_text(&again, GET("/later/100"));
    CHECK_INT(client_read(&partial, true), 408);
    CHECK_TEXT(client_code(&partial), BYTES("request-timeout"));
    ends_after(&partial, from_ms, HEADER_MS);
    ends_after(&silent, from_ms, HEADER_MS);
    ends_after(&line, from_ms, HEADER_MS);
    CHECK_INT(client_read(&again, true), 200);
    ends_after(&again, from_ms, 100 + HEADER_MS); /* counted from the end of the answer */
    client_close(&silent);
    client_close(&line);
    client_close(&partial);
    client_close(&again);
}

/* A byte now and then does not help. */
TEST_CLIENT(a_head_that_trickles_is_not_waited_for)
{
    struct timeval wait = {0, 20000};
    uint64_t from_ms = loop_now_ms();

    client_open(c, hasty.port);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    client_text(c, "GET /hello HTTP/1.1\r\n");
    for (unsigned i = 0; i < 100; i++)
        client_text(c, "X-Y: 0123456789\r\n");
    while (c->len == 0 && !c->ended && loop_now_ms() - from_ms < LATE_MS) {
        client_text(c, "x");
        client_more(c);
    }
    CHECK(loop_now_ms() - from_ms >= HEADER_MS - 10 && loop_now_ms() - from_ms < LATE_MS);
    CHECK_INT(client_read(c, true), 408);
}

TEST(a_body_must_be_complete_in_time)
{
    struct client c, chunked, endless;
    uint64_t from_ms = loop_now_ms();

    client_say(&c, hasty.port, "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n12345");
    client_open(&chunked, hasty.port);
    client_text(&chunked, "PUT /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n");
    client_open(&endless, hasty.port);
    client_text(&endless, "PUT /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5;");
    for (unsigned i = 0; i < 1000; i++)
        client_text(&endless, "an-extension-without-an-end"); /* more than anybody means */
    CHECK_INT(client_read(&c, true), 408);
    CHECK_TEXT(client_code(&c), BYTES("request-timeout"));
    ends_after(&c, from_ms, BODY_MS);
    CHECK_INT(client_read(&chunked, true), 408);
    ends_after(&chunked, from_ms, BODY_MS);
    CHECK_INT(client_read(&endless, true), 400);
    client_close(&c);
    client_close(&chunked);
    client_close(&endless);
}

TEST_CLIENT(a_client_that_does_not_read_is_not_waited_for)
{
    int small = 4096;
    uint64_t from_ms = loop_now_ms();

    client_open(c, hasty.port);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    client_text(c, GET("/big/30000000"));
    CHECK(client_sees(hasty.port, "connections", 1));
    CHECK(loop_now_ms() - from_ms >= SEND_MS - 10);
}

/* -- memory */

static long resident_kib(pid_t pid)
{
    char line[256];
    long kib = -1;

    FILE *file = fopen(textf("/proc/%d/status", (int)pid), "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib;
}

/* Sanitizers and valgrind (which is seen by its preload) keep memory of their own for each allocation. */
#ifdef __has_feature
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static bool memory_is_ours(void)
{
    return !SANITIZED && getenv("LD_PRELOAD") == NULL;
}

TEST(an_idle_connection_takes_at_most_8_kib)
{
    enum { WARM = 100, MANY = 800 };
    struct http_options options = sample_options();
    struct sample_child child = sample_start(options);
    struct client *c = calloc(MANY, sizeof(*c));
    long before_kib = 0, after_kib;

    for (unsigned i = 0; i < MANY; i++) {
        if (i == WARM)
            before_kib = resident_kib(child.pid);
        client_open(&c[i], child.port);
        CHECK_INT(client_next(&c[i],
                              "POST /turn HTTP/1.1\r\n" HOST JSON "Content-Length: 10\r\n\r\n{\"a\":\"bc\"}"),
                  200);
    }
    after_kib = resident_kib(child.pid);
    printf("# %ld bytes for each idle connection\n", (after_kib - before_kib) * 1024 / (MANY - WARM));
    CHECK(!memory_is_ours() || (after_kib - before_kib) * 1024 <= (MANY - WARM) * 8192L);
    for (unsigned i = 0; i < MANY; i++)
        client_close(&c[i]);
    client_stop(child.port);
    CHECK_INT(sample_wait(child), 0);
    free(c);
}

/* The memory of the requests goes back after a while. */
static long wait_resident_kib(pid_t pid, long wanted)
{
    uint64_t from_ms = loop_now_ms();
    long kib = resident_kib(pid);

    while (memory_is_ours() && kib > wanted && loop_now_ms() - from_ms < LATE_MS) {
        poll(NULL, 0, 10);
        kib = resident_kib(pid);
    }
    return kib;
}

/* All of them wait again on the connection of an answer before, whose memory libmicrohttpd has used in whole.
 */
TEST(a_suspended_request_takes_with_its_waiter_at_most_8_kib)
{
    enum { WARM = 100, MANY = 3100 };
    struct http_options options = sample_options();
    struct client *c = calloc(MANY, sizeof(*c));
    struct sample_child child;
    long before_kib = 0, after_kib, answered = 0;

    options.connections_max = MANY + 100;
    child = sample_start(options);
    for (unsigned i = 0; i < MANY; i++) {
        if (i == WARM)
            before_kib = resident_kib(child.pid);
        answered += client_ask(&c[i], child.port, GET("/turn")) == 200;
    }
    CHECK_INT(answered, MANY);
    for (unsigned i = 0; i < MANY; i++) { /* all at once */
        client_text(&c[i],
                    "PUT /turn/orders-4711 HTTP/1.1\r\n" HOST "User-Agent: pawl\r\nAccept: */*\r\n" JSON
                    "Content-Length: 39\r\n\r\n{\"holder\":\"billing-7\",\"wait_ms\":600000}");
    }
    CHECK(client_sees(child.port, "open", MANY + 1)); /* and the one that asks */
    after_kib = wait_resident_kib(child.pid, before_kib + (MANY - WARM) * 8L);
    printf("# %ld bytes for each suspended request\n", (after_kib - before_kib) * 1024 / (MANY - WARM));
    CHECK(!memory_is_ours() || after_kib <= before_kib + (MANY - WARM) * 8L);
    client_stop(child.port);
    answered = 0;
    for (unsigned i = 0; i < MANY; i++) {
        answered += client_read(&c[i], true) == 503;
        client_close(&c[i]);
    }
    CHECK_INT(answered, MANY);
    CHECK_INT(sample_wait(child), 0);
    free(c);
}

int main(void)
{
    static struct http_memory memory = {.max = MEMORY_BYTES};
    struct http_options options = sample_options();

    options.memory = &memory;
    options.connections_max = CONNECTIONS;
    server = sample_start(options);
    options.header_timeout_ms = HEADER_MS;
    options.body_timeout_ms = BODY_MS;
    options.send_timeout_ms = SEND_MS;
    hasty = sample_start(options);
    check_all_as(NULL);
    client_stop(server.port);
    client_stop(hasty.port);
    CHECK_INT(sample_wait(server), 0);
    return sample_wait(hasty) == 0 ? check_done() : 1;
}
