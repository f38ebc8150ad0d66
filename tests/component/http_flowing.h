/* http_flowing.h - bodies that come in pieces, both ways: the test's own process is the server, and what
 * comes and goes is a pattern, so that a byte that is lost, doubled or misplaced is noticed. */
#ifndef PAWL_TESTS_HTTP_FLOWING_H
#define PAWL_TESTS_HTTP_FLOWING_H

#include "tests/component/http_waiting.h"

#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define LAST "0\r\nX-Trailer: of no use\r\n\r\n"

enum { HELD = HTTP_BODY_HELD_BYTES, LONG_BYTES = 1500000, NOTICE_MS = 100 };
enum { FLOW_SEATS = 8, BODY_MS = 2 * SEND_MS, MEMORY_BYTES = 400000, HEAD_BYTES = 9000 };

/* What a handler does at once; otherwise the test does it. */
enum plan { PLAN_WAIT, PLAN_TAKE, PLAN_ANSWER, PLAN_REFUSE, PLAN_BEGIN, PLAN_WHOLE };

struct flow_seat {
    struct http_request *req;
    struct http_body_reader body_reader;
    struct http_response_writer response_writer;
    struct http_suspended suspended;
    enum plan plan;
    unsigned status;
    int64_t length; /* of the answer */
    size_t room;    /* how many bytes more the body_reader takes */
    bool asks;      /* for more, from inside of piece() */
    enum plan on_piece, on_whole;
    /* what was seen */
    size_t came, held, written;
    int64_t announced;
    bool was_whole, is_wrong;
    unsigned handled, pieces, whole, broken, roomed, gone;
};

static struct flow_seat flow_seats[FLOW_SEATS];

/* -- what the server does */

static inline struct flow_seat *flow_seat_of(const struct http_request *req)
{
    return &flow_seats[strtoul(http_path_part(req, 0).at, NULL, 10) % FLOW_SEATS];
}

static inline enum step flow_do(struct flow_seat *seat, enum plan plan);

static inline size_t flow_piece(struct http_body_reader *body_reader, struct bytes piece)
{
    struct flow_seat *seat = container_of(body_reader, struct flow_seat, body_reader);
    size_t taken = piece.len < seat->room ? piece.len : seat->room;

    CHECK(!waiting.inside && piece.len > 0 && seat->whole + seat->broken == 0);
    seat->is_wrong = seat->is_wrong || !pattern_is(piece.at, seat->came, taken);
    seat->came += taken;
    seat->room -= seat->room == SIZE_MAX ? 0 : taken;
    seat->pieces++;
    if (seat->asks) {
        seat->asks = false;
        seat->room = SIZE_MAX;
        http_body_reader_more(body_reader);
    }
    flow_do(seat, seat->on_piece);
    return taken;
}

static inline void flow_whole(struct http_body_reader *body_reader)
{
    struct flow_seat *seat = container_of(body_reader, struct flow_seat, body_reader);

    CHECK(!waiting.inside && http_body_is_whole(seat->req));
    seat->whole++;
    flow_do(seat, seat->on_whole);
}

static inline void flow_broken(struct http_body_reader *body_reader)
{
    CHECK(!waiting.inside);
    container_of(body_reader, struct flow_seat, body_reader)->broken++;
}

static inline void flow_room(struct http_response_writer *response_writer)
{
    CHECK(!waiting.inside);
    container_of(response_writer, struct flow_seat, response_writer)->roomed++;
}

static inline void flow_gone(struct http_response_writer *response_writer)
{
    CHECK(!waiting.inside);
    container_of(response_writer, struct flow_seat, response_writer)->gone++;
}

static inline void flow_take(struct flow_seat *seat)
{
    waiting.inside = true;
    seat->body_reader = (struct http_body_reader){
        .piece = flow_piece, .whole = flow_whole, .broken = flow_broken};
    http_body_take(seat->req, &seat->body_reader);
    waiting.inside = false;
}

static inline void flow_more(struct flow_seat *seat, size_t room)
{
    seat->room = room;
    waiting.inside = true;
    http_body_reader_more(&seat->body_reader);
    waiting.inside = false;
}

static inline enum step flow_begin(struct flow_seat *seat)
{
    struct http_request *req = seat->req;
    enum step step;

    seat->req = NULL;
    seat->response_writer = (struct http_response_writer){.room = flow_room, .gone = flow_gone};
    waiting.inside = true;
    http_reply_header(req, "X-Own", BYTES("1"));
    step = http_response_writer_begin(req, &seat->response_writer, seat->status, seat->length);
    waiting.inside = false;
    return step;
}

/* Writes up to `len` bytes of the pattern, or fewer if there is no room: how many. */
static inline size_t flow_write(struct flow_seat *seat, size_t len)
{
    static char piece[300000];
    size_t taken;

    len = len < sizeof(piece) ? len : sizeof(piece);
    pattern_fill(piece, seat->written, len);
    waiting.inside = true;
    taken = http_response_writer_write(&seat->response_writer, (struct bytes){piece, len});
    waiting.inside = false;
    seat->written += taken;
    return taken;
}

static inline void flow_end(struct flow_seat *seat, enum http_response_writer_end end)
{
    waiting.inside = true;
    http_response_writer_end(&seat->response_writer, end);
    waiting.inside = false;
}

static inline enum step flow_answer(struct flow_seat *seat)
{
    struct http_request *req = seat->req;
    char text[64];
    int len = snprintf(text, sizeof(text), "came %zu", seat->came);

    seat->req = NULL;
    http_reply_body(req, "text/plain", (struct bytes){text, (size_t)len});
    return http_answer(req, 200);
}

static inline enum step flow_do(struct flow_seat *seat, enum plan plan)
{
    struct http_request *req = seat->req;
    enum step step;

    switch (plan) {
    case PLAN_WAIT: return SUSPENDED;
    case PLAN_TAKE: flow_take(seat); return SUSPENDED;
    case PLAN_ANSWER: return flow_answer(seat);
    case PLAN_REFUSE: seat->req = NULL; return http_refuse(req, PROBLEM_LEASE_HELD);
    case PLAN_BEGIN: return flow_begin(seat);
    case PLAN_WHOLE:
        step = flow_begin(seat);
        flow_write(seat, (size_t)(seat->length >= 0 ? seat->length : 1000));
        flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
        return step;
    }
    abort();
}

static enum step flow_handle(struct http_request *req)
{
    struct flow_seat *seat = flow_seat_of(req);
    struct bytes body = http_body(req);

    CHECK(seat->req == NULL);
    seat->req = req;
    seat->handled++;
    seat->held = body.len;
    seat->was_whole = http_body_is_whole(req);
    seat->announced = http_body_announced(req);
    seat->is_wrong = !pattern_is(body.at, 0, body.len);
    seat->came = body.len;
    seat->whole = seat->was_whole;
    return flow_do(seat, seat->plan == PLAN_TAKE && seat->was_whole ? PLAN_ANSWER : seat->plan);
}

static enum step flow_suspend(struct http_request *req)
{
    http_suspend(req, &flow_seat_of(req)->suspended);
    return SUSPENDED;
}

/* Says all that it knows of the request. */
static inline enum step flow_tell(struct http_request *req)
{
    struct json_out *json = http_json(req);
    char address[HTTP_ADDRESS_SIZE];

    json_object(json, NULL);
    json_text(json, "method", http_method_text(req));
    json_text(json, "path", http_path(req));
    json_text(json, "query", http_query(req));
    json_text(json, "address", bytes_of(http_client_address(req, address)));
    for (unsigned i = 0; i < http_field_count(req); i++) {
        struct bytes name, value;

        http_field_at(req, i, &name, &value);
        json_text(json, "name", name);
        json_text(json, "value", value);
    }
    json_object_end(json);
    http_reply_json(req);
    return http_answer(req, 200);
}

static inline bool flow_refuses(struct http_request *req)
{
    return http_header(req, "X-Refuse", NULL).at != NULL;
}

static const struct http_route flow_routes[] = {
    {HTTP_ANY, "/flow/{seat}", HTTP_BODY_STREAMED, 0, false, flow_handle, NULL, 0},
    {HTTP_ANY, "/suspend/{seat}", HTTP_BODY_STREAMED, 0, false, flow_suspend, NULL, 0},
    {HTTP_ANY, "/**", HTTP_BODY_STREAMED, 0, true, flow_tell, NULL, 0},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};

static inline struct http_options flow_options(void)
{
    static struct http_memory memory = {.max = MEMORY_BYTES};
    struct http_options options = waiting_options();

    options.routes = flow_routes;
    options.refuses = flow_refuses;
    options.body_timeout_ms = BODY_MS;
    options.memory = &memory;
    options.reply_head_max = HEAD_BYTES;
    return options;
}

/* A seat for the next request; what the handler is to do. */
static inline struct flow_seat *flow_prepare(unsigned at, enum plan plan)
{
    flow_seats[at] = (struct flow_seat){.plan = plan, .status = 200, .length = -1, .room = SIZE_MAX};
    return &flow_seats[at];
}

/* -- what the client does */

/* Sends as much as the kernel takes now. */
static inline size_t client_push(struct client *c, const char *from, size_t len)
{
#ifdef OVER_TLS
    ssize_t now = tls_write(c->tls, (struct bytes){from, len});
#else
    ssize_t now = send(c->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
#endif

    return now > 0 ? (size_t)now : 0;
}

/* The pattern, while the server takes it, in chunks of some size (0: as it is); false: it did not take it
 * all. */
static inline bool client_pattern(struct client *c, size_t from, size_t len, size_t chunk)
{
    size_t size = len + 64 + (chunk > 0 ? len / chunk * 16 : 0), full = 0, sent = 0;
    char *text = malloc(size);
    uint64_t end_ms = loop_now_ms() + SEAT_WAIT_MS;

    for (size_t at = 0; at < len;) {
        size_t now = chunk == 0 || chunk > len - at ? len - at : chunk;

        full += chunk > 0 ? (size_t)snprintf(text + full, size - full, "%zx\r\n", now) : 0;
        pattern_fill(text + full, from + at, now);
        full += now;
        memcpy(text + full, "\r\n", 2);
        full += chunk > 0 ? 2 : 0;
        at += now;
    }
    while (sent < full && loop_now_ms() < end_ms) {
        sent += client_push(c, text + sent, full - sent);
        loop_turn(waiting.loop, 0);
    }
    free(text);
    return sent == full;
}

/* Where the text is in what has come, from so many bytes on; the end when it is not there. */
static inline size_t client_find(const struct client *c, size_t from, const char *text)
{
    const char *at = memmem(c->buf + from, c->len - from, text, strlen(text));

    return at != NULL ? (size_t)(at - c->buf) : c->len;
}

/* How many bytes have come behind the first head. */
static inline size_t client_body_len(const struct client *c)
{
    size_t head = client_find(c, 0, "\r\n\r\n");

    return head < c->len ? c->len - head - 4 : 0;
}

/* Nobody is there any more, and nothing is left of them. */
static inline void check_flows_over(void)
{
    check_all_gone();
    CHECK_INT(waiting.http->options.memory->used, 0);
    memset(flow_seats, 0, sizeof(flow_seats));
}

/* Opens and sends a head; the length of the body, or -1: chunked. */
static inline void ask(struct client *c, const char *line, long length)
{
    char text[256], framing[64] = CHUNKED;

    if (length >= 0)
        snprintf(framing, sizeof(framing), "Content-Length: %ld\r\n", length);
    snprintf(text, sizeof(text), "%s HTTP/1.1\r\n" HOST "%s\r\n", line, framing);
    client_say(c, waiting.port, text);
}

/* A request whose handler has been called. */
static inline void ask_get(struct flow_seat *seat, struct client *c)
{
    client_say(c, waiting.port, GET("/flow/1"));
    UNTIL(seat->handled == 1);
}

/* A test with a client and the seat that it will ask for, so many times, one after the other; plan and the
 * test know which it is: nth. */
#define TEST_FLOW_EACH(sentence, count, plan)                                                                \
    static void sentence##_in(unsigned nth, struct flow_seat *seat, struct client *c);                       \
    TEST(sentence)                                                                                           \
    {                                                                                                        \
        for (unsigned nth = 0; nth < (count); nth++) {                                                       \
            struct client c = {.fd = -1};                                                                    \
                                                                                                             \
            sentence##_in(nth, flow_prepare(1, plan), &c);                                                   \
            client_close(&c);                                                                                \
            check_flows_over();                                                                              \
        }                                                                                                    \
    }                                                                                                        \
    static void sentence##_in(unsigned nth __attribute__((unused)),                                          \
                              struct flow_seat *seat __attribute__((unused)), struct client *c)
#define TEST_FLOW(sentence, plan) TEST_FLOW_EACH(sentence, 1, plan)

#endif
