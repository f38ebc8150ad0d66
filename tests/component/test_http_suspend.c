/* test_http_suspend.c - requests that wait for long: suspended, their client gone, answered. */
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
    UNTIL((client_len(c), c->ended));
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

static void check_gone_once(struct seat *seat)
{
    UNTIL(seat->gone == 1);
    turns_in_ms(20);
    CHECK_INT(seat->gone, 1);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    seat_answer(http_resume(&seat->suspended));
    CHECK_INT(waiting.ended_status, 200);
    check_all_gone();
}

TEST_SEAT(a_client_that_closes_is_reported_at_once_and_once, GET("/suspend/1"))
{
    uint64_t from_ms = waited_ms();

    client_close(c);
    UNTIL(seat->gone == 1);
    CHECK(waited_ms() - from_ms < 50);
    check_gone_once(seat);
}

TEST_SEAT(a_client_that_resets_is_reported, GET("/suspend/1"))
{
    client_reset(c);
    check_gone_once(seat);
}

TEST_SEAT(a_client_that_closes_its_side_only_counts_as_gone, GET("/suspend/1"))
{
    shutdown(c->fd, SHUT_WR);
    check_gone_once(seat);
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

/* -- many */

TEST(many_are_suspended_and_answered_while_the_server_is_drained)
{
    struct client *c = calloc(SEATS, sizeof(*c));
    char text[64];

    for (unsigned i = 0; i < SEATS; i++) {
        snprintf(text, sizeof(text), "GET /suspend/%u HTTP/1.1\r\n" HOST "\r\n", i);
        waiting_seat(&c[i], text, i);
    }
    CHECK_INT(http_server_open_requests(waiting.http), SEATS);
    http_server_drain(waiting.http);
    turns_in_ms(5);
    CHECK_INT(http_server_open_requests(waiting.http), SEATS);
    for (unsigned i = 0; i < SEATS; i += 3)
        client_close(&c[i]);
    for (unsigned i = 0; i < SEATS; i += 3)
        UNTIL(waiting.seats[i].gone == 1);
    for (unsigned i = 0; i < SEATS; i++)
        http_refuse(http_resume(&waiting.seats[i].suspended), PROBLEM_DRAINING);
    UNTIL(http_server_open_requests(waiting.http) == 0);
    for (unsigned i = 0; i < SEATS; i++) {
        if (i % 3 != 0) {
            CHECK_INT(client_wait(&c[i]), 503);
            CHECK_TEXT(client_code(&c[i]), BYTES("draining"));
            CHECK_TEXT(client_header(&c[i], "Connection"), BYTES("close"));
            CHECK_INT(waiting.seats[i].gone, 0);
            client_close(&c[i]);
        }
    }
    check_all_gone();
    free(c);
}

int main(void)
{
    waiting_run_all();
    return check_done();
}
