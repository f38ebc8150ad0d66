/* test_http_response_writer.c - answers in pieces: slow readers, clients that go, heads from elsewhere. */
#include "tests/component/http_flowing.h"

enum { SMALL_BYTES = 8192 };

/* The same of a client that has little room. */
static void ask_small(struct flow_seat *seat, struct client *c)
{
    client_open_small(c, waiting.port, SMALL_BYTES);
    client_text(c, GET("/flow/1"));
    UNTIL(seat->handled == 1);
}

/* -- answers in pieces */

/* An answer of so many bytes, and the next one on the same connection. */
static void check_answer(struct flow_seat *seat, struct client *c, size_t len)
{
    for (size_t written = 0; written < len;) {
        size_t now = flow_write(seat, len - written);

        written += now;
        CHECK(now <= HTTP_RESPONSE_WRITER_UNSENT_MAX);
        UNTIL(written == len || seat->roomed > 0 || (client_len(c), false));
        seat->roomed = 0;
    }
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    client_text(c, GET("/next"));
    UNTIL(client_got(c, "\"path\":\"/next\""));
    CHECK_INT(seat->gone, 0);
}

TEST(an_answer_of_known_length_arrives_and_the_connection_is_kept)
{
    static const size_t lengths[] = {0, 1, 5000, 32768, 32769, LONG_BYTES};

    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct flow_seat *seat = flow_prepare(1, i % 2 == 0 ? PLAN_WAIT : PLAN_BEGIN);
        size_t len = lengths[i / 2];
        unsigned ended = waiting.ended;
        struct client c;

        seat->length = (int64_t)len;
        ask_get(seat, &c);
        if (seat->req != NULL) {
            turns_in_ms(25); /* suspended in any case */
            flow_begin(seat);
        }
        CHECK_INT(waiting.ended, ended);
        CHECK_INT(http_server_open_requests(waiting.http), 1);
        check_answer(seat, &c, len);
        CHECK_INT(client_read(&c, true), 200);
        CHECK(c.body.len == len && pattern_is(c.body.at, 0, len));
        CHECK(client_header(&c, "Connection").at == NULL && client_header(&c, "Date").len > 0);
        CHECK_INT(client_read(&c, true), 200);
        client_close(&c);
        CHECK_INT(waiting.ended, ended + 2);
        check_flows_over();
    }
}

TEST(an_answer_of_unknown_length_arrives_in_chunks_and_the_connection_is_kept)
{
    for (size_t len = 0; len < 3 * LONG_BYTES; len = len * 7 + 1) {
        struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
        struct client c;

        ask_get(seat, &c);
        check_answer(seat, &c, len < LONG_BYTES ? len : LONG_BYTES);
        CHECK(client_got(&c, "Transfer-Encoding: chunked\r\n"));
        c.len = client_find(&c, 12, "HTTP/1.1 200"); /* without the next one */
        chunks_are(&c, len < LONG_BYTES ? len : LONG_BYTES);
        client_close(&c);
        check_flows_over();
    }
}

TEST_FLOW_EACH(answers_without_a_body_have_none_and_the_connection_is_kept, 5, PLAN_BEGIN)
{
    static const struct {
        const char *method, *head, *line;
        unsigned status;
        int64_t length;
    } rows[] = {{"HEAD", "HTTP/1.1 200 ", "Content-Length: 123456\r\n", 200, 123456},
                {"HEAD", "HTTP/1.1 200 ", "Content-Length: 0\r\n", 200, 0},
                {"GET", "HTTP/1.1 304 ", "Content-Length: 77\r\n", 304, 77},
                {"GET", "HTTP/1.1 204 ", "X-Own: 1\r\n", 204, -1},
                {"DELETE", "HTTP/1.1 204 ", "X-Own: 1\r\n", 204, 0}};

    seat->status = rows[nth].status;
    seat->length = rows[nth].length;
    client_say(c, waiting.port, textf("%s /flow/1 HTTP/1.1\r\n" HOST "\r\n" GET("/next"), rows[nth].method));
    UNTIL(client_got(c, "\"path\":\"/next\"")); /* before it is ended */
    CHECK(memcmp(c->buf, rows[nth].head, 13) == 0 && client_got(c, rows[nth].line));
    CHECK_INT(client_find(c, 12, "HTTP/1.1 200 "), client_find(c, 0, "\r\n\r\n") + 4);
    CHECK_INT(flow_write(seat, 10), 10); /* and forgotten */
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    CHECK_INT(seat->gone, 0);
}

TEST_FLOW(for_head_an_unknown_length_is_not_sent, PLAN_BEGIN)
{
    client_say(c, waiting.port, "HEAD /flow/1 HTTP/1.1\r\n" HOST "\r\n");
    client_drain(c);
    CHECK_INT(client_body_len(c), 0); /* nor a last chunk */
    CHECK(!client_got(c, "Content-Length"));
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
}

TEST_FLOW_EACH(a_client_of_http_1_0_is_served_too, 2, PLAN_WHOLE)
{
    seat->length = nth == 0 ? 1000 : -1;
    client_say(c, waiting.port, "GET /flow/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    UNTIL(client_got(c, "\r\n\r\n") && client_body_len(c) == 1000);
    CHECK(pattern_is(c->buf + c->len - 1000, 0, 1000) && !client_got(c, "chunked"));
    if (nth == 0) {
        client_text(c, GET("/next"));
        UNTIL(client_got(c, "\"path\":\"/next\""));
    } else {
        client_drain(c);
    }
}

/* Writes until nothing is taken any more, by the kernel neither. */
static void fill(struct flow_seat *seat)
{
    unsigned idle = 0;

    while (idle < 3) {
        idle = flow_write(seat, 100000) > 0 ? 0 : idle + 1;
        turns_in_ms(3);
    }
}

TEST_FLOW_EACH(a_reader_that_is_slow_holds_the_writer_back, 2, PLAN_BEGIN)
{
    uint64_t from_ms;

    seat->length = nth == 0 ? -1 : 1 << 30;
    ask_small(seat, c);
    fill(seat);
    seat->roomed = 0;
    from_ms = loop_now_ms();
    while (loop_now_ms() - from_ms < 2 * SEND_MS) { /* reads a little now and then: it is not gone */
        UNTIL(has_come(c));
        client_take(c, c->buf + c->len, 3000);
        turns_in_ms(SEND_MS / 20);
    }
    CHECK_INT(seat->gone, 0);
    UNTIL(seat->roomed == 1 || (client_len(c), c->len = 0, false));
    CHECK(flow_write(seat, 100000) > 0);
    flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
}

TEST_FLOW(a_client_that_stops_reading_is_gone, PLAN_BEGIN)
{
    uint64_t from_ms;

    ask_small(seat, c);
    fill(seat);
    from_ms = waited_ms();
    UNTIL(seat->gone == 1);
    CHECK(waited_ms() - from_ms < 3 * SEND_MS);
    turns_in_ms(30);
    CHECK(seat->gone == 1 && flow_write(seat, 1) == 0);
    flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
    UNTIL(http_server_open_requests(waiting.http) == 0);
}

/* The kernel watches no more than fs.epoll.max_user_watches of them. */
TEST_FLOW(a_client_that_cannot_be_watched_is_reported_when_its_connection_is_closed, PLAN_BEGIN)
{
    int epoll_fd = waiting.http->disconnect.epoll_fd;

    waiting.http->disconnect.epoll_fd = -1;
    ask_small(seat, c);
    waiting.http->disconnect.epoll_fd = epoll_fd;
    fill(seat);
    client_reset(c);
    UNTIL(seat->gone == 1);
    flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
}

TEST_FLOW(a_writer_with_nothing_to_say_is_waited_for, PLAN_BEGIN)
{
    ask_get(seat, c);
    flow_write(seat, 10);
    CHECK(turns_in_ms(2 * SEND_MS) < 60);
    CHECK_INT(seat->gone, 0);
    check_answer(seat, c, 5);
}

/* With much under way, or nothing. */
TEST_FLOW_EACH(a_client_that_goes_while_it_takes_is_reported_once, 2 * WAYS_TO_GO, PLAN_BEGIN)
{
    uint64_t from_ms;

    seat->length = nth < WAYS_TO_GO ? 1 << 30 : -1;
    ask_small(seat, c);
    if (nth % 2 == 0)
        fill(seat);
    from_ms = waited_ms();
    client_go(c, nth % WAYS_TO_GO);
    UNTIL(seat->gone == 1);
    CHECK(waited_ms() - from_ms < NOTICE_MS);
    CHECK_INT(flow_write(seat, 10), 0);
    turns_in_ms(25);
    CHECK_INT(seat->gone, 1);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
}

TEST_FLOW(nothing_is_reported_after_the_end, PLAN_BEGIN)
{
    ask_small(seat, c);
    fill(seat);
    client_close(c);
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(http_server_connections(waiting.http) == 0);
    CHECK_INT(seat->gone, 0);
}

TEST_FLOW(a_writer_that_has_ended_is_not_called_for_room, PLAN_BEGIN)
{
    unsigned roomed;

    ask_small(seat, c);
    fill(seat);
    roomed = seat->roomed;
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(client_got(c, "\r\n0\r\n\r\n"));
    chunks_are(c, seat->written);
    CHECK_INT(seat->roomed, roomed);
}

TEST_FLOW(what_was_written_whole_reaches_a_client_that_has_closed_its_side, PLAN_WHOLE)
{
    seat->length = 60000;
    client_say(c, waiting.port, GET("/flow/1"));
    shutdown(c->fd, SHUT_WR);
    client_drain(c);
    CHECK_INT(client_read(c, true), 200);
    CHECK(c->body.len == 60000 && pattern_is(c->body.at, 0, 60000));
    CHECK_INT(seat->gone, 0);
}

/* In chunks, of a length, too short for it, and up to the end. */
TEST_FLOW_EACH(an_answer_that_is_cut_is_seen_to_be, 4, PLAN_BEGIN)
{
    seat->length = nth == 1 || nth == 2 ? 5000 : -1;
    client_say(c, waiting.port, nth < 3 ? GET("/flow/1") GET("/next") : "GET /flow/1 HTTP/1.0\r\n\r\n");
    UNTIL(seat->handled == 1);
    CHECK_INT(flow_write(seat, 4999), 4999);
    UNTIL(client_got(c, "\r\n\r\n") && client_body_len(c) >= 4999);
    flow_end(seat, nth == 2 ? HTTP_RESPONSE_WRITER_WHOLE : HTTP_RESPONSE_WRITER_CUT);
    client_drain(c);
    CHECK(!client_got(c, "\r\n0\r\n\r\n") && !client_got(c, "/next"));
    CHECK(nth < 3 || c->reset); /* a mere end would look whole */
}

/* -- heads */

TEST_FLOW(every_path_and_method_is_given_as_it_came, PLAN_WAIT)
{
    client_say(c, waiting.port, "BREW / HTTP/1.1\r\n" HOST "X-One:  1 \r\nX-Empty:\r\nx-one: 2\r\n\r\n");
    CHECK_INT(client_wait(c), 200);
    CHECK_TEXT(c->body, BYTES("{\"method\":\"BREW\",\"path\":\"/\",\"query\":\"\",\"address\":\"127.0.0.1\","
                              "\"name\":\"Host\",\"value\":\"x\",\"name\":\"X-One\",\"value\":\"1\","
                              "\"name\":\"X-Empty\",\"value\":\"\",\"name\":\"x-one\",\"value\":\"2\"}"));
    client_text(c, GET("//a//b%2F/?x=y?z"));
    CHECK_INT(client_wait(c), 200);
    CHECK(client_says(c, "\"method\":\"GET\",\"path\":\"//a//b%2F/\",\"query\":\"x=y?z\""));
    client_text(c, "OPTIONS /o HTTP/1.1\r\n" HOST "\r\n");
    CHECK_INT(client_wait(c), 200);
    CHECK(client_says(c, "\"method\":\"OPTIONS\",\"path\":\"/o\""));
    client_text(c, "BREW /suspend/3 HTTP/1.1\r\n" HOST "\r\n");
    UNTIL(flow_seats[3].suspended.kept != NULL);
    flow_tell(http_resume(&flow_seats[3].suspended));
    CHECK_INT(client_wait(c), 200);
    CHECK(client_says(c, "\"method\":\"BREW\",\"path\":\"/suspend/3\""));
}

TEST(a_client_that_has_left_has_no_address)
{
    struct http_request *req = http_request_take(waiting.http, NULL);
    char text[HTTP_ADDRESS_SIZE];

    CHECK_TEXT(bytes_of(http_client_address(req, text)), BYTES("")); /* it has gone */
    http_request_free(req);
}

TEST_FLOW(the_head_of_an_answer_may_come_from_elsewhere, PLAN_WAIT)
{
    struct bytes a = BYTES("a");

    ask_get(seat, c);
    CHECK(http_reply_field(seat->req, BYTES("Gone"), a));
    http_reply_forget(seat->req);
    CHECK(http_reply_field(seat->req, BYTES("Set-Cookie"), BYTES("a=1")));
    CHECK(http_reply_field(seat->req, BYTES("X-Empty"), BYTES("")));
    CHECK(http_reply_field(seat->req, BYTES("set-cookie"), BYTES("b=2")));
    CHECK(!http_reply_field(seat->req, BYTES("content-length"), BYTES("5")));
    CHECK(!http_reply_field(seat->req, BYTES("Transfer-Encoding"), BYTES("chunked")));
    CHECK(!http_reply_field(seat->req, BYTES("connection"), BYTES("close")));
    CHECK(!http_reply_field(seat->req, BYTES("Date"), BYTES("now")));
    CHECK(!http_reply_field(seat->req, BYTES("X A"), a) && !http_reply_field(seat->req, BYTES("X:A"), a));
    CHECK(!http_reply_field(seat->req, BYTES(""), a) && !http_reply_field(seat->req, BYTES("X\r"), a));
    CHECK(!http_reply_field(seat->req, BYTES("X"), BYTES("a\r\nb")));
    CHECK(!http_reply_field(seat->req, BYTES("X"), BYTES("a\0b")));
    flow_begin(seat);
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(client_got(c, "0\r\n\r\n"));
    CHECK(client_got(c, "X-Own: 1\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n"));
    CHECK(!client_got(c, "X-Empty") && !client_got(c, "Cache-Control") && !client_got(c, "Gone"));
}

/* The whole memory of a connection is used: by the longest head that keeps it, the most fields, and as many
 * bytes of next requests as libmicrohttpd reads. */
TEST_FLOW(the_longest_head_of_an_answer_leaves_also_with_requests_behind, PLAN_TAKE)
{
    enum { LINES = 1200 };
    char value[HEAD_BYTES], *next = malloc(LINES * 40);
    size_t len = 0;

    memset(value, 'v', sizeof(value));
    for (unsigned i = 0; i < LINES; i++)
        len += (size_t)snprintf(next + len, 40, "GET /next HTTP/1.1\r\n" HOST "\r\n");
    client_say(c, waiting.port, "POST /flow/1 HTTP/1.1\r\n" HOST "Content-Length: 66000\r\n\r\n");
    CHECK(client_pattern(c, 0, 65900, 0));
    UNTIL(seat->came == 65900);
    pattern_fill(value, 65900, 100);
    memmove(next + 100, next, len);
    memcpy(next, value, 100);
    client_send(c, (struct bytes){next, len + 100}); /* read together with the end of the body */
    free(next);
    UNTIL(seat->whole == 1);
    memset(value, 'v', sizeof(value));
    http_reply_header(seat->req, "X-Own", BYTES("1"));
    for (unsigned i = 0; i < 63; i++)
        CHECK(http_reply_field(seat->req, BYTES("N"), (struct bytes){value, 95}));
    CHECK(http_reply_field(seat->req, BYTES("N"), (struct bytes){value, HEAD_BYTES - 6300 - 10 - 5}));
    http_answer(seat->req, 200);
    CHECK_INT(client_wait(c), 200);
    CHECK(c->head.len > HEAD_BYTES);
    for (unsigned i = 0; i < LINES; i++)
        if (!CHECK_INT(client_wait(c), 200))
            break;
}

TEST_FLOW(at_most_128_fields_are_copied, PLAN_WAIT)
{
    ask_get(seat, c);
    for (unsigned i = 0; i < 128; i++)
        CHECK(http_reply_field(seat->req, BYTES("N"), BYTES("v")));
    CHECK(!http_reply_field(seat->req, BYTES("N"), BYTES("v")));
    flow_answer(seat);
    CHECK_INT(client_wait(c), 200);
}

TEST(an_answer_under_way_is_finished_while_the_server_is_drained)
{
    struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
    struct flow_seat *early = flow_prepare(2, PLAN_BEGIN);
    struct client c, d;

    seat->length = LONG_BYTES;
    client_say(&c, waiting.port, GET("/flow/1"));
    ask(&d, "POST /flow/2", LONG_BYTES);
    CHECK(client_pattern(&d, 0, HELD, 0));
    UNTIL(seat->handled == 1 && early->handled == 1);
    flow_write(seat, 1000);
    http_server_drain(waiting.http);
    turns_in_ms(5);
    CHECK_INT(http_server_open_requests(waiting.http), 2);
    while (seat->written < LONG_BYTES) {
        flow_write(seat, LONG_BYTES - seat->written);
        UNTIL(seat->roomed > 0 || seat->written == LONG_BYTES || (client_len(&c), false));
        seat->roomed = 0;
    }
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    CHECK_INT(flow_write(early, 3000), 3000);
    flow_end(early, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(http_server_open_requests(waiting.http) == 0);
    CHECK_INT(client_wait(&c), 200);
    CHECK(c.body.len == LONG_BYTES && pattern_is(c.body.at, 0, LONG_BYTES));
    client_drain(&d);
    chunks_are(&d, 3000);
    client_close(&c);
    client_close(&d);
    check_flows_over();
}

WAITING_MAIN(flow_options())
