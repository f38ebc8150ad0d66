/* test_http_waiting.c - requests that wait for long: suspended, their client gone, answered; and answers
 * without an end: pieces as they come, slow readers, clients that go. */
#include <netinet/tcp.h>

#include "shared/http/http_internal.h"
#include "tests/component/http_waiting.h"

TEST_SEAT(a_suspended_request_is_answered_later_and_holds_no_struct_meanwhile,
          GET("/suspend/1") GET("/hello"))
{
    unsigned free_count = waiting.http->pool.free_count;

    CHECK_INT(http_server_open_requests(waiting.http), 1);
    CHECK(free_count > 0 && !has_come(c));
    CHECK(turns_in_ms(20) < 10);
    CHECK(!has_come(c) && !http_suspended_is_gone(&seat->suspended));
    seat_answer(http_resume(&seat->suspended));
    CHECK(seat->suspended.kept == NULL);
    CHECK_INT(client_wait(c), 200);
    CHECK(client_says(c, "\"path\":\"/suspend/1\""));
    CHECK_INT(client_wait(c), 200); /* the one behind it on the same connection */
    CHECK_TEXT(c->body, BYTES("hello"));
    UNTIL(http_server_open_requests(waiting.http) == 0);
    CHECK_INT(waiting.http->pool.free_count, free_count);
    CHECK_INT(seat->gone, 0);
}

enum { LONG_HEAD = 8000, UNREAD_MOST = 1024 };

/* Behind a head that came in two parts a few bytes of the next one: no more room is kept than they need. */
TEST(what_is_unread_behind_a_suspended_request_takes_little_memory)
{
    char head[LONG_HEAD + 1] = "GET /suspend/1 HTTP/1.1\r\nX: ";
    struct client c;
    struct seat *seat;

    memset(head + strlen(head), 'x', LONG_HEAD - strlen(head));
    seat = &waiting.seats[1];
    client_say(&c, waiting.port, head);
    UNTIL(waiting.http->options.memory->used >= LONG_HEAD);
    client_text(&c, "\r\n" HOST "\r\nGET /hello");
    UNTIL(seat->suspended.kept != NULL);
    CHECK(waiting.http->options.memory->used > 0 && waiting.http->options.memory->used <= UNREAD_MOST);
    client_text(&c, " HTTP/1.1\r\n" HOST "\r\n");
    seat_answer(http_resume(&seat->suspended));
    CHECK_INT(client_wait(&c), 200);
    CHECK_INT(client_wait(&c), 200);
    CHECK_TEXT(c.body, BYTES("hello"));
    CHECK_INT(waiting.http->options.memory->used, 0);
    client_close(&c);
    check_all_gone();
}

TEST_SEAT(nothing_is_kept_of_what_comes_behind_a_stream, GET("/stream/1") GET("/hello"))
{
    UNTIL(waiting.http->options.memory->used == 0);
    client_close(c);
    UNTIL(seat->gone == 1);
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
}

TEST_SEAT(a_continuation_may_suspend, GET("/later/1"))
{
    seat_take(seat, seat->req);
    CHECK_INT(waiting.http->polled, 0);
    CHECK(turns_in_ms(20) < 10);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    seat_answer(http_resume(&seat->suspended));
    CHECK_INT(client_wait(c), 200);
}

/* It is suspended again, and may be suspended again, and again. */
TEST_SEAT(a_resumed_request_may_wait_once_more, GET("/suspend/1"))
{
    for (unsigned i = 0; i < 3; i++) {
        seat->req = http_resume(&seat->suspended);
        turns_in_ms(30); /* longer than a request is polled */
        CHECK_INT(http_server_open_requests(waiting.http), 1);
        seat_take(seat, seat->req);
        turns_in_ms(2);
    }
    seat->req = http_resume(&seat->suspended);
    turns_in_ms(2);
    CHECK(!has_come(c));
    seat_answer(seat->req);
    CHECK_INT(client_wait(c), 200);
    CHECK_TEXT(bytes_of(waiting.ended_id), bytes_of(seat->id));
}

enum { LONG_BYTES = 2500000 };

static void answer_long(struct seat *seat)
{
    char *body = calloc(1, LONG_BYTES);
    struct http_request *req = http_resume(&seat->suspended);

    memcpy(body + LONG_BYTES - 4, "last", 4);
    http_reply_body(req, "text/plain", (struct bytes){body, LONG_BYTES});
    http_answer(req, 200);
    free(body);
}

/* The time that a client has for its answer does not begin before the answer. */
TEST_SEAT(a_long_answer_after_a_long_wait_arrives_whole, GET("/suspend/1"))
{
    turns_in_ms(SEND_MS * 3 / 2);
    answer_long(seat);
    turns_in_ms(SEND_MS / 4);
    UNTIL(client_len(c) > LONG_BYTES || c->ended);
    CHECK(client_got(c, "last"));
}

/* What it had sent behind the waiting request and its end have come together; libmicrohttpd sees only the
 * former. */
TEST_SEAT(a_client_that_closed_its_side_is_closed_when_all_its_requests_are_answered, GET("/suspend/1"))
{
    client_text(c, GET("/hello"));
    shutdown(c->fd, SHUT_WR);
    UNTIL(seat->gone == 1);
    answer_long(seat);
    client_drain(c);
    CHECK(client_got(c, "hello"));
}

TEST(a_request_is_still_the_same_after_a_suspension)
{
    static char text[HTTP_HEAD_MAX], path[3000];
    struct client c, other;
    struct seat *seat;

    memset(path, 'p', sizeof(path));
    snprintf(text, sizeof(text), "GET /suspend/7/%.*s HTTP/1.1\r\n" HOST "\r\n", (int)sizeof(path), path);
    seat = waiting_seat(&c, text, 7);  /* longer than what fits into the struct */
    client_open(&other, waiting.port); /* which has the memory meanwhile */
    client_text(&other, GET("/hello"));
    CHECK_INT(client_wait(&other), 200);
    client_close(&other);
    CHECK(strcmp(waiting.ended_id, seat->id) != 0);
    seat_answer(http_resume(&seat->suspended));
    CHECK_INT(client_wait(&c), 200);
    CHECK_TEXT(bytes_of(waiting.ended_id), bytes_of(seat->id));
    CHECK_INT(strlen(waiting.ended_path), sizeof("/suspend/7/") - 1 + sizeof(path));
    CHECK(client_says(&c, waiting.ended_path) && client_says(&c, "\"part\":\"7\",\"method\":1"));
    client_close(&c);

    seat = waiting_seat(&c, "POST /suspend/9%41?a=b HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 9);
    seat_answer(http_resume(&seat->suspended));
    CHECK_INT(client_wait(&c), 200);
    CHECK(client_says(&c, seat->id));
    CHECK(client_says(&c, "\"path\":\"/suspend/9%41\",\"part\":\"9%41\",\"method\":4,"
                          "\"body\":0,\"query\":0,\"host\":0}"));
    CHECK_TEXT(bytes_of(waiting.ended_path), BYTES("/suspend/9%41"));
    CHECK_TEXT(bytes_of(waiting.ended_id), bytes_of(seat->id));
    client_close(&c);
    check_all_gone();
}

/* -- clients that go */

/* Nobody is told twice, and until its owner ends it the request is open. */
static void check_gone_once(struct seat *seat)
{
    bool is_suspended;

    UNTIL(seat->gone == 1);
    is_suspended = seat->suspended.kept != NULL;
    CHECK(is_suspended || !http_stream_write(&seat->stream, BYTES("to nobody")));
    turns_in_ms(20);
    CHECK_INT(seat->gone, 1);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    if (is_suspended)
        seat_answer(http_resume(&seat->suspended));
    else
        http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    CHECK_INT(waiting.ended_status, 200);
    check_all_gone();
}

TEST(a_client_that_goes_in_any_way_is_reported_at_once_and_once)
{
    for (unsigned i = 0; i < 2 * WAYS_TO_GO; i++) {
        struct client c;
        struct seat *seat = waiting_seat(&c, i % 2 == 0 ? GET("/suspend/1") : GET("/stream/1"), 1);
        uint64_t from_ms;

        UNTIL(i % 2 == 0 || client_got(&c, "\r\n\r\n"));
        from_ms = waited_ms();
        client_go(&c, i / 2);
        UNTIL(seat->gone == 1);
        CHECK(waited_ms() - from_ms < 50);
        check_gone_once(seat);
        client_close(&c);
    }
}

TEST_SEAT(a_client_that_goes_with_a_request_behind_the_waiting_one_is_reported,
          GET("/suspend/1") GET("/hello"))
{
    client_text(c, GET("/hello") GET("/hello"));
    turns_in_ms(20);
    CHECK_INT(seat->gone, 0); /* it is there, and says more */
    client_close(c);
    check_gone_once(seat);
}

TEST_SEAT(an_owner_may_in_gone_answer_at_once, GET("/suspend/1"))
{
    seat->answers = true;
    client_close(c);
    UNTIL(seat->gone == 1);
    CHECK(seat->suspended.kept == NULL);
}

/* Both ends are noticed in one turn: the second is not reported any more. */
TEST(an_owner_may_in_gone_answer_another_that_was_to_be_called)
{
    struct client c[2];
    struct seat *first = waiting_seat(&c[0], GET("/suspend/1"), 1);
    struct seat *second = waiting_seat(&c[1], GET("/suspend/2"), 2);

    first->answers = second->answers = true;
    first->other = second;
    second->other = first;
    client_close(&c[0]);
    client_close(&c[1]);
    UNTIL(first->suspended.kept == NULL && second->suspended.kept == NULL);
    turns_in_ms(5);
    CHECK_INT(first->gone + second->gone, 1);
    check_all_gone();
}

/* The answer and the end come in the same turn: it is answered, so there is nothing to report. */
TEST_SEAT(a_request_that_was_resumed_is_not_reported, GET("/suspend/1"))
{
    client_close(c);
    seat_answer(http_resume(&seat->suspended));
    UNTIL(http_server_open_requests(waiting.http) == 0);
    CHECK_INT(seat->gone, 0);
}

TEST_SEAT(a_client_that_had_gone_before_a_handler_suspended_is_reported, GET("/later/1") GET("/suspend/2"))
{
    shutdown(c->fd, SHUT_WR);
    UNTIL(waiting.http->disconnect.left != NULL);
    CHECK(waiting.seats[2].suspended.kept == NULL); /* the first holds up the second */
    seat_answer(seat->req);
    check_gone_once(&waiting.seats[2]);
}

TEST_SEAT(a_client_that_had_gone_before_a_continuation_suspended_is_reported, GET("/later/1"))
{
    client_close(c);
    UNTIL(waiting.http->disconnect.left != NULL);
    seat_take(seat, seat->req);
    CHECK_INT(seat->gone, 0); /* later, not from inside */
    check_gone_once(seat);
}

/* libmicrohttpd closes a connection that is reset while it is polled: its request is left alone in the world.
 */
TEST_SEAT(a_connection_that_was_closed_before_a_continuation_suspended_is_reported, GET("/later/1"))
{
    client_reset(c);
    until_left();
    seat_take(seat, seat->req);
    CHECK((seat->suspended.kept->conn == NULL) == !waiting.http->options.suspend_always);
    CHECK_INT(seat->gone, 0);
    check_gone_once(seat);
}

TEST_SEAT(no_owner_needs_gone, GET("/suspend/1"))
{
    seat->suspended.gone = NULL;
    client_close(c);
    UNTIL(http_suspended_is_gone(&seat->suspended));
    turns_in_ms(20);
    seat_answer(http_resume(&seat->suspended));
}

/* -- answers without an end */

TEST_SEAT(pieces_arrive_as_they_are_written, GET("/stream/1"))
{
    unsigned ended = waiting.ended;
    char joined[64];
    bool done;

    UNTIL(client_got(c, "\r\n\r\n"));
    CHECK(client_got(c, "HTTP/1.1 200 ") && client_got(c, "Content-Type: text/event-stream\r\n"));
    CHECK(client_got(c, "Transfer-Encoding: chunked\r\n") && client_got(c, "Connection: close\r\n"));
    CHECK(client_got(c, "Cache-Control: no-store\r\n") && !client_got(c, "Content-Length"));
    CHECK(http_stream_write(&seat->stream, BYTES("one")));
    UNTIL(client_got(c, "\r\n\r\n3\r\none\r\n"));
    CHECK(turns_in_ms(20) < 10); /* nothing to do */
    CHECK(http_stream_write(&seat->stream, BYTES("")));
    CHECK(http_stream_write(&seat->stream, BYTES("t")) && http_stream_write(&seat->stream, BYTES("wo")));
    UNTIL(client_got(c, "one\r\n1\r\nt\r\n2\r\nwo\r\n"));
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    CHECK_INT(waiting.ended, ended);
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    CHECK(seat->stream.response == NULL);
    UNTIL(client_got(c, "0\r\n\r\n") && c->ended);
    CHECK_INT(chunks_join(c, joined, &done), 6);
    CHECK(done && memcmp(joined, "onetwo", 6) == 0);
    CHECK_INT(waiting.ended, ended + 1);
    CHECK_INT(waiting.ended_status, 200);
    CHECK_TEXT(bytes_of(waiting.ended_path), BYTES("/stream/1"));
    CHECK_INT(seat->gone, 0);
}

TEST(what_is_written_and_ended_before_the_head_has_left_arrives)
{
    struct client c;
    unsigned ended = waiting.ended;

    client_say(&c, waiting.port, GET("/early/1"));
    UNTIL(client_got(&c, "\r\n\r\n5\r\nearly\r\n0\r\n\r\n") && c.ended);
    CHECK_INT(waiting.ended, ended + 1);
    client_close(&c);
    check_all_gone();
}

TEST_SEAT(a_continuation_may_begin_a_stream, GET("/later/1"))
{
    const struct http_conn *conn;
    int unacked_ms = 0;
    socklen_t len = sizeof(unacked_ms);

    seat_begin(seat, seat->req);
    CHECK(http_stream_write(&seat->stream, BYTES("late")));
    UNTIL(client_got(c, "\r\n\r\n4\r\nlate\r\n"));
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(client_got(c, "0\r\n\r\n") && c->ended);
    client_close(c);

    seat = waiting_seat(c, GET("/suspend/2"), 2);
    conn = seat->suspended.kept->conn;
    seat_begin(seat, http_resume(&seat->suspended));
    CHECK(http_stream_write(&seat->stream, BYTES("later")));
    UNTIL(client_got(c, "later"));
    getsockopt(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, &len);
    CHECK_INT(unacked_ms, 13000); /* a dead client is noticed also when something is on its way to it */
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(client_got(c, "\r\n\r\n5\r\nlater\r\n0\r\n\r\n") && c->ended);
}

TEST_SEAT(a_client_of_http_1_0_gets_it_unchunked_and_closed,
          "GET /stream/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
{
    CHECK(http_stream_write(&seat->stream, BYTES("one")));
    UNTIL(client_got(c, "\r\n\r\none"));
    CHECK(turns_in_ms(20) < 10);
    CHECK(http_stream_write(&seat->stream, BYTES("two")));
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(client_got(c, "\r\n\r\nonetwo") && c->ended);
    CHECK(!client_got(c, "chunked"));
}

TEST_SEAT(for_head_there_is_only_the_head, "HEAD /stream/1 HTTP/1.1\r\n" HOST "\r\n")
{
    CHECK(!http_stream_write(&seat->stream, BYTES("one")));
    UNTIL(client_got(c, "\r\n\r\n") && c->ended);
    CHECK(client_got(c, "HTTP/1.1 200 ") && memcmp(c->buf + c->len - 4, "\r\n\r\n", 4) == 0);
    CHECK(!client_got(c, "0\r\n\r\n")); /* not a last chunk either */
    UNTIL(seat->gone == 1);
    CHECK_INT(http_server_open_requests(waiting.http), 1); /* its owner has not ended it */
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
}

static bool write_pattern(struct http_response_writer *stream, size_t from, size_t len)
{
    char piece[70000];

    pattern_fill(piece, from, len);
    return http_stream_write(stream, (struct bytes){piece, len});
}

TEST_SEAT(pieces_of_every_size_arrive_whole_and_in_order, GET("/stream/1"))
{
    size_t written = 0;

    for (size_t len = 1; written < 2 << 20; len = len * 3 % 69997 + 1) {
        UNTIL(write_pattern(&seat->stream, written, len) || (client_len(c), false));
        written += len;
    }
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    client_drain(c);
    chunks_are(c, written);
    CHECK_INT(seat->gone, 0);
}

/* A thousand may get the same: each piece is one chunk, without a run of libmicrohttpd, and no copy
 * stays. */
TEST_SEAT(a_long_piece_leaves_at_once_and_whole, GET("/stream/1"))
{
    unsigned long runs;
    char joined[70000];
    bool done;

    UNTIL(client_got(c, "\r\n\r\n"));
    runs = waiting.http->runs.count;
    CHECK(write_pattern(&seat->stream, 0, 60000));
    CHECK(waiting.http->runs.count == runs && seat->stream.response->unsent.at == NULL);
    UNTIL((client_len(c), chunks_join(c, joined, &done) == 60000));
    CHECK(client_got(c, "\r\n\r\nea60\r\n"));
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    client_drain(c);
    chunks_are(c, 60000);
}

/* Writes until it is refused, and the kernel takes nothing more either: how many bytes were taken. */
static size_t write_all(const struct client *c, struct http_response_writer *stream)
{
    size_t written = 0, before;
    int small = 65536;

    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    do {
        before = written;
        while (write_pattern(stream, written, 1000))
            written += 1000;
        turns_in_ms(10);
    } while (written > before);
    return written;
}

TEST_SEAT(a_reader_that_is_slow_is_refused_at_the_limit_and_gets_what_was_taken, GET("/stream/1"))
{
    size_t written = write_all(c, &seat->stream);

    CHECK(written > 2 * HTTP_STREAM_UNSENT_MAX); /* what the kernel has taken does not count */
    CHECK(waiting.http->open == 1 && seat->stream.response != NULL);
    CHECK(!write_pattern(&seat->stream, written, 1000)); /* it stays so */
    CHECK_INT(seat->gone, 0);
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    client_drain(c);
    chunks_are(c, written);
}

TEST_SEAT(exactly_the_limit_may_wait, GET("/stream/1"))
{
    static char full[HTTP_STREAM_UNSENT_MAX + 1];
    const struct http_response *response = seat->stream.response;
    size_t left, room;
    bool is_exact = false;

    CHECK(!http_stream_write(&seat->stream, (struct bytes){full, sizeof(full)}));
    write_all(c, &seat->stream);
    for (unsigned i = 0; i < 100 && !is_exact; i++) { /* the kernel may take some meanwhile */
        left = response->unsent.len - response->sent;
        room = left < HTTP_STREAM_UNSENT_MAX ? HTTP_STREAM_UNSENT_MAX - left
                                             : 0; /* chunks' heads come on top */
        is_exact = !http_stream_write(&seat->stream, (struct bytes){full, room + 1}) &&
                   http_stream_write(&seat->stream, (struct bytes){full, room}) &&
                   !http_stream_write(&seat->stream, (struct bytes){full, 1});
    }
    CHECK(is_exact);
    UNTIL((client_len(c), false) || http_stream_write(&seat->stream, (struct bytes){full, 1}));
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
}

/* -- clients of streams that go */

TEST_SEAT(an_owner_may_in_gone_end_at_once, GET("/stream/1"))
{
    seat->answers = true;
    client_close(c);
    UNTIL(seat->gone == 1);
}

TEST_SEAT(a_stream_for_a_client_that_has_left_is_gone_from_the_beginning, GET("/later/1"))
{
    client_reset(c);
    until_left();
    seat_begin(seat, seat->req);
    CHECK_INT(seat->gone, 0);
    check_gone_once(seat);
}

/* It has begun, and libmicrohttpd closes before it has asked for the answer. */
TEST_SEAT(a_client_that_goes_before_the_head_has_left_is_reported, GET("/later/1"))
{
    client_reset(c);
    seat_begin(seat, seat->req);
    check_gone_once(seat);
}

/* -- the end of a stream */

TEST_SEAT(a_client_that_does_not_read_the_rest_is_not_waited_for, GET("/stream/1"))
{
    const struct http_conn *conn = seat->stream.response->kept->conn;
    uint64_t from_ms;

    /* Else the kernel gives such a client up, too, within what a test waits. */
    setsockopt(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(int){0}, sizeof(int));
    write_all(c, &seat->stream);
    turns_in_ms(SEND_MS * 3 / 2); /* as long as it is open it may be slow */
    CHECK_INT(seat->gone, 0);
    from_ms = loop_now_ms();
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(http_server_connections(waiting.http) == 0);
    CHECK(loop_now_ms() - from_ms >= SEND_MS - 10);
}

/* Of six that wait three have streams, and the client of one goes. */
static void check_ended(struct client *c, unsigned i)
{
    char joined[64];
    bool done;

    if (i % 2 == 1) {
        client_drain(c);
        CHECK(chunks_join(c, joined, &done) == 6 && done && memcmp(joined, "onebye", 6) == 0);
    } else if (i % 6 != 0) {
        CHECK_INT(client_wait(c), 503);
        CHECK_TEXT(client_code(c), BYTES("draining"));
        CHECK_TEXT(client_header(c, "Connection"), BYTES("close"));
        CHECK_INT(waiting.seats[i].gone, 0);
    }
    client_close(c);
}

TEST(many_that_wait_are_answered_and_ended_while_the_server_is_drained)
{
    struct client *c = calloc(SEATS, sizeof(*c));

    for (unsigned i = 0; i < SEATS; i++) {
        waiting_seat(&c[i],
                     textf("GET /%s/%u HTTP/1.1\r\n" HOST "\r\n", i % 2 == 0 ? "suspend" : "stream", i), i);
        CHECK(i % 2 == 0 || http_stream_write(&waiting.seats[i].stream, BYTES("one")));
    }
    CHECK_INT(http_server_open_requests(waiting.http), SEATS);
    http_server_drain(waiting.http);
    turns_in_ms(5);
    CHECK_INT(http_server_open_requests(waiting.http), SEATS);
    for (unsigned i = 0; i < SEATS; i += 6)
        client_close(&c[i]);
    for (unsigned i = 0; i < SEATS; i += 6)
        UNTIL(waiting.seats[i].gone == 1);
    for (unsigned i = 0; i < SEATS; i++) {
        if (i % 2 == 0) {
            http_refuse(http_resume(&waiting.seats[i].suspended), PROBLEM_DRAINING);
            continue;
        }
        CHECK(http_stream_write(&waiting.seats[i].stream, BYTES("bye")));
        http_response_writer_end(&waiting.seats[i].stream, HTTP_RESPONSE_WRITER_WHOLE);
    }
    UNTIL(http_server_open_requests(waiting.http) == 0);
    for (unsigned i = 0; i < SEATS; i++)
        check_ended(&c[i], i);
    check_all_gone();
    free(c);
}

/* What its client has not read by then is lost. */
TEST(a_server_is_freed_with_the_rest_of_a_stream_on_its_way)
{
    struct client c;
    struct seat *seat = waiting_seat(&c, GET("/stream/1"), 1);

    write_all(&c, &seat->stream);
    http_response_writer_end(&seat->stream, HTTP_RESPONSE_WRITER_WHOLE);
    turns_in_ms(5);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    http_server_free(waiting.http);
    loop_free(waiting.loop);
    client_close(&c);
    waiting_start_with(waiting_as);
}

WAITING_MAIN(waiting_options())
