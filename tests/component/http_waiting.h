/* http_waiting.h - a server in the test's own process, for requests that wait: the test is their owner. */
#ifndef PAWL_TESTS_HTTP_WAITING_H
#define PAWL_TESTS_HTTP_WAITING_H

#include <poll.h>

#include "shared/http/http_internal.h"
#include "shared/http/http_server.h"
#include "shared/http/pieces.h"
#include "tests/component/http_client.h"
#include "tests/unit/waited.h"

#define HOST "Host: x\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

enum { SEATS = 400, SEAT_WAIT_MS = 15000, SEND_BUFFER = 200000 };

/* In this time client and server, one process here, must get something done, also beside much else. */
#if defined(__SANITIZE_THREAD__) || defined(OVER_TLS)
enum { SEND_MS = 900 };
#else
enum { SEND_MS = 300 };
#endif

/* Who waits in the seat that the path names. */
struct seat {
    struct http_request *req; /* came to /later and was suspended */
    struct http_suspended suspended;
    struct http_response_writer stream;
    unsigned gone;      /* how often `gone` was called */
    bool answers;       /* in `gone` */
    struct seat *other; /* and answers this one too */
    char id[HTTP_ID_SIZE];
};

struct waiting {
    struct http_owner owner;
    struct loop *loop;
    struct http_server *http;
    unsigned port;
    bool inside; /* a call of the HTTP layer */
    unsigned ended, ended_status;
    char ended_id[HTTP_ID_SIZE], ended_path[HTTP_HEAD_MAX + 1];
    struct seat seats[SEATS];
};

static struct waiting waiting;

/* -- turns */

#define UNTIL(condition)                                                                                     \
    do {                                                                                                     \
        struct patience patience_ = patience_of(SEAT_WAIT_MS);                                               \
        bool held_;                                                                                          \
        while (!(held_ = (condition)) && patience_lasts(&patience_))                                         \
            waited_turn(waiting.loop, 1);                                                                    \
        check_true(held_, #condition, __FILE__, __LINE__);                                                   \
    } while (0)

/* How many turns the loop makes by itself. */
static inline unsigned turns_in_ms(unsigned ms)
{
    uint64_t end_ms = loop_now_ms() + ms;
    unsigned turns = 0;

    for (uint64_t now_ms; (now_ms = loop_now_ms()) < end_ms; turns++)
        waited_turn(waiting.loop, (unsigned)(end_ms - now_ms));
    return turns;
}

static inline bool has_come(const struct client *c)
{
    struct pollfd in = {c->fd, POLLIN, 0};

    return poll(&in, 1, 0) == 1;
}

/* Reads what has come, without waiting for more; how many bytes there are. */
static inline size_t client_len(struct client *c)
{
    while (!c->ended && has_come(c) && client_more(c)) {
    }
    return c->len;
}

/* The same; whether the text is in it. */
static inline bool client_got(struct client *c, const char *text)
{
    client_len(c);
    return c->len > 0 && memmem(c->buf, c->len, text, strlen(text)) != NULL;
}

/* What has come but the head, with the chunks taken off: how many bytes; -1 when they are not well made.
 * done: the last chunk has come. */
static inline long chunks_join(struct client *c, char *to, bool *done)
{
    const char *body = memmem(c->buf, c->len, "\r\n\r\n", 4);
    const char *end = c->buf + c->len;
    long len = 0;

    *done = false;
    for (const char *at = body != NULL ? body + 4 : end; at < end && !*done;) {
        char *digits_end;
        unsigned long size = strtoul(at, &digits_end, 16);

        if (digits_end == at || digits_end + 2 > end || memcmp(digits_end, "\r\n", 2) != 0)
            return -1;
        if ((size_t)(end - digits_end) < size + 4)
            return len; /* the rest is still to come */
        memcpy(to + len, digits_end + 2, size);
        len += (long)size;
        at = digits_end + 2 + size + 2;
        *done = size == 0;
    }
    return len;
}

/* What is sent, so that a byte that is lost, doubled or misplaced is noticed. */
static inline char pattern(size_t i)
{
    return (char)(i * 2654435761u >> 11);
}

static inline void pattern_fill(char *to, size_t from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = pattern(from + i);
}

static inline bool pattern_is(const char *at, size_t from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] != pattern(from + i))
            return false;
    return true;
}

/* Whether the answer is a whole one in chunks, of so many bytes of the pattern. */
static inline bool chunks_are(struct client *c, size_t wanted)
{
    char *joined = malloc(c->len + 1);
    bool done;
    long len = chunks_join(c, joined, &done);
    bool good = CHECK_INT(len, wanted) && CHECK(done) && CHECK(pattern_is(joined, 0, wanted));

    free(joined);
    return good;
}

/* Reads all until the server closes. */
static inline void client_drain(struct client *c)
{
    UNTIL((client_len(c), c->ended));
}

static inline void client_reset(struct client *c)
{
    struct linger reset = {1, 0};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    client_close(c);
}

/* Closed, reset, or half closed. */
enum { WAYS_TO_GO = 3 };

static inline void client_go(struct client *c, unsigned way)
{
    if (way == 0)
        client_close(c);
    else if (way == 1)
        client_reset(c);
    else
        shutdown(c->fd, SHUT_WR);
}

static inline unsigned client_wait(struct client *c)
{
    size_t used = c->status != 0 ? c->head.len + c->body.len : 0;

    if (c->len == used)
        UNTIL(has_come(c));
    return client_read(c, true);
}

/* -- what the handlers do */

static struct seat *seat_of(const struct http_request *req)
{
    return &waiting.seats[strtoul(http_path_part(req, 0).at, NULL, 10) % SEATS];
}

/* Says who it is. */
static inline enum step seat_answer(struct http_request *req)
{
    struct json_out *json = http_json(req);
    char id[HTTP_ID_SIZE];

    json_object(json, NULL);
    json_text(json, "id", bytes_of(http_request_id(req, id)));
    json_text(json, "path", http_path(req));
    json_text(json, "part", http_path_part(req, 0));
    json_int(json, "method", (int64_t)http_method(req));
    json_int(json, "body", (int64_t)http_body(req).len);
    json_int(json, "query", (int64_t)http_query(req).len);
    json_int(json, "host", (int64_t)http_header(req, "Host", NULL).len);
    json_object_end(json);
    http_reply_json(req);
    return http_answer(req, 200);
}

static inline void seat_gone(struct http_suspended *suspended)
{
    struct seat *seat = container_of(suspended, struct seat, suspended);

    CHECK(!waiting.inside && http_suspended_is_gone(suspended));
    seat->gone++;
    if (seat->answers)
        seat_answer(http_resume(suspended));
    if (seat->other != NULL && seat->other->suspended.kept != NULL)
        seat_answer(http_resume(&seat->other->suspended));
}

static inline void seat_stream_gone(struct http_response_writer *stream)
{
    struct seat *seat = container_of(stream, struct seat, stream);

    CHECK(!waiting.inside);
    seat->gone++;
    if (seat->answers)
        http_response_writer_end(stream, HTTP_RESPONSE_WRITER_WHOLE);
}

static inline void seat_take(struct seat *seat, struct http_request *req)
{
    http_request_id(req, seat->id);
    waiting.inside = true;
    seat->suspended.gone = seat_gone;
    http_suspend(req, &seat->suspended);
    waiting.inside = false;
}

static enum step seat_suspend(struct http_request *req)
{
    seat_take(seat_of(req), req);
    return SUSPENDED;
}

static enum step seat_later(struct http_request *req)
{
    seat_of(req)->req = req;
    return SUSPENDED;
}

static inline enum step seat_begin(struct seat *seat, struct http_request *req)
{
    enum step step;

    waiting.inside = true;
    seat->stream.gone = seat_stream_gone;
    step = http_stream_begin(req, &seat->stream, "text/event-stream");
    waiting.inside = false;
    return step;
}

static enum step seat_stream(struct http_request *req)
{
    return seat_begin(seat_of(req), req);
}

/* Written, and perhaps ended, before libmicrohttpd has seen the head. */
static enum step seat_early(struct http_request *req)
{
    struct seat *seat = seat_of(req);
    enum step step = seat_begin(seat, req);

    CHECK(http_stream_write(&seat->stream, BYTES("early")));
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    return step;
}

static enum step seat_hello(struct http_request *req)
{
    http_reply_body(req, "text/plain", BYTES("hello"));
    return http_answer(req, 200);
}

static const struct http_route waiting_routes[] = {
    {HTTP_GET | HTTP_POST, "/suspend/{seat}", HTTP_BODY_BYTES, 0, true, seat_suspend, NULL, 0},
    {HTTP_GET, "/suspend/{seat}/{rest**}", HTTP_BODY_NONE, 0, false, seat_suspend, NULL, 0},
    {HTTP_GET, "/later/{seat}", HTTP_BODY_NONE, 0, false, seat_later, NULL, 0},
    {HTTP_GET, "/stream/{seat}", HTTP_BODY_NONE, 0, false, seat_stream, NULL, 0},
    {HTTP_GET, "/early/{seat}", HTTP_BODY_NONE, 0, false, seat_early, NULL, 0},
    {HTTP_GET, "/hello", HTTP_BODY_NONE, 0, false, seat_hello, NULL, 0},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};

/* -- the server */

static void waiting_ended(const struct http_owner *owner, const struct http_request *req, unsigned status,
                          uint64_t took_us)
{
    struct bytes path = http_path(req);

    (void)owner;
    (void)took_us;
    waiting.ended++;
    waiting.ended_status = status;
    http_request_id(req, waiting.ended_id);
    memcpy(waiting.ended_path, path.at, path.len);
    waiting.ended_path[path.len] = '\0';
}

static inline struct http_options waiting_options(void)
{
    static struct http_memory memory = {.max = 64 << 20};

    return (struct http_options){.routes = waiting_routes,
                                 .owner = &waiting.owner,
                                 .connections_max = 2000,
                                 .body_max_default = 1 << 20,
                                 .memory = &memory,
                                 .header_timeout_ms = 4 * SEAT_WAIT_MS, /* it ends nothing here */
                                 .body_timeout_ms = 30000,
                                 .send_timeout_ms = SEND_MS};
}

#ifdef OVER_TLS
static inline void waiting_turn(void)
{
    waited_turn(waiting.loop, 1);
}
#endif

/* room: of a socket, for what its client has not taken. */
static inline void waiting_start_small(struct http_options options, int room)
{
    const char *why = NULL;

    memset(&waiting, 0, sizeof(waiting));
    waiting.owner.ended = waiting_ended;
    waiting.loop = loop_new();
#ifdef OVER_TLS
    over_tls.turn = waiting_turn;
    options.tls = over_tls_server();
#endif
    options.listen_fd = http_listen("127.0.0.1:0", &waiting.port, &why);
    setsockopt(options.listen_fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)); /* inherited */
    waiting.http = http_server_new(waiting.loop, &options);
}

static inline void waiting_start_with(struct http_options options)
{
    waiting_start_small(options, SEND_BUFFER);
}

static inline void waiting_stop(void)
{
    CHECK_INT(http_server_open_requests(waiting.http), 0);
    http_server_free(waiting.http);
    loop_free(waiting.loop);
}

/* Asks, and turns until the request has been taken to its seat. */
static inline struct seat *waiting_seat(struct client *c, const char *request, unsigned at)
{
    struct seat *seat = &waiting.seats[at];

    client_open(c, waiting.port);
    client_text(c, request);
    UNTIL(seat->req != NULL || seat->suspended.kept != NULL || seat->stream.response != NULL);
    return seat;
}

/* Nobody is there any more, and nothing is left of them. */
static inline void check_all_gone(void)
{
    UNTIL(http_server_open_requests(waiting.http) == 0 && http_server_connections(waiting.http) == 0);
    CHECK_INT(waiting.http->running, 0);
    CHECK_INT(waiting.http->polled, 0);
    CHECK(waiting.http->disconnect.deferred == NULL && waiting.http->disconnect.left == NULL);
    memset(waiting.seats, 0, sizeof(waiting.seats));
}

/* The client has gone, and the server knows: libmicrohttpd closes the connection, unless it is suspended, as
 * one that is polled is too after a while. */
static inline void until_left(void)
{
    UNTIL(waiting.http->disconnect.left != NULL ||
          (!waiting.http->options.suspend_always && http_server_connections(waiting.http) == 0));
}

static struct http_options waiting_as; /* of this part of the tests */

static inline void waiting_run_part(unsigned number)
{
    waiting_as.suspend_always = number % 2 == 1;
    waiting_start_with(waiting_as);
    check_share_as(number % 2 == 1 ? "when_suspended" : "when_polled", number / 2, 2);
    waiting_stop();
}

/* All tests of the program, twice; they mostly wait, and so each half of them has a server of its own. */
#define WAITING_MAIN(options)                                                                                \
    int main(void)                                                                                           \
    {                                                                                                        \
        waiting_as = options;                                                                                \
        check_parts(4, 4, waiting_run_part);                                                                 \
        exit(check_done());                                                                                  \
    }

/* A test with a client that waits in the first seat. */
#define TEST_SEAT(sentence, request)                                                                         \
    static void sentence##_in(struct seat *seat, struct client *c);                                          \
    TEST(sentence)                                                                                           \
    {                                                                                                        \
        struct client c;                                                                                     \
                                                                                                             \
        sentence##_in(waiting_seat(&c, request, 1), &c);                                                     \
        client_close(&c);                                                                                    \
        check_all_gone();                                                                                    \
    }                                                                                                        \
    static void sentence##_in(struct seat *seat, struct client *c)

#endif
