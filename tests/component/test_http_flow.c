/* test_http_flow.c - bodies in pieces, both ways: slow senders, slow readers, early answers, clients that go.
 */
#include "tests/component/http_flowing.h"
#include "tests/unit/drawing.h"

#define HOST "Host: x\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define LAST "0\r\nX-Trailer: of no use\r\n\r\n"

enum { HELD = HTTP_BODY_HELD_BYTES, LONG_BYTES = 1500000, NOTICE_MS = 100, SMALL_BYTES = 8192 };

/* Opens and sends a head; the length of the body, or -1: chunked. */
static void ask(struct client *c, const char *line, long length)
{
    char text[256], framing[64] = CHUNKED;

    if (length >= 0) {
        snprintf(framing, sizeof(framing), "Content-Length: %ld\r\n", length);
    }
    snprintf(text, sizeof(text), "%s HTTP/1.1\r\n" HOST "%s\r\n", line, framing);
    client_say(c, waiting.port, text);
}

/* -- bodies of requests */

static void check_body(size_t len, size_t chunk)
{
    struct flow_seat *seat = flow_prepare(1, PLAN_TAKE);
    char came[64];
    struct client c;

    seat->on_whole = PLAN_ANSWER;
    ask(&c, "POST /flow/1", chunk == 0 ? (long)len : -1);
    CHECK(client_pattern(&c, 0, len, chunk));
    client_text(&c, chunk > 0 ? LAST GET("/next") : GET("/next"));
    CHECK_INT(client_wait(&c), 200);
    snprintf(came, sizeof(came), "came %zu", len);
    CHECK_TEXT(c.body, bytes_of(came));
    CHECK(client_header(&c, "Connection").at == NULL);
    CHECK_INT(client_wait(&c), 200); /* what lies behind the body is the next request, no more and no less */
    CHECK(client_says(&c, "\"path\":\"/next\""));
    CHECK_INT(seat->held, len < HELD ? len : HELD);
    CHECK_INT(seat->was_whole, len <= HELD);
    CHECK_INT(seat->announced, chunk > 0 ? -1 : (long)len);
    CHECK_INT(seat->whole, 1);
    CHECK_INT(seat->broken, 0);
    CHECK(!seat->is_wrong);
    client_close(&c);
    check_flows_over();
}

TEST(a_body_up_to_the_limit_is_held_and_a_longer_one_comes_in_pieces)
{
    static const size_t lengths[] = {0, 1, 1000, HELD - 1, HELD, HELD + 1, HELD + 5000, LONG_BYTES};
    static const size_t chunks[] = {700, 5000, 65536, 1000000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        check_body(lengths[i], 0);
        for (size_t j = 0; j < sizeof(chunks) / sizeof(chunks[0]); j++) {
            check_body(lengths[i], chunks[j]);
        }
    }
    check_body(HELD + 3000, 1);
}

TEST(a_client_is_not_read_from_while_the_owner_has_no_room)
{
    struct flow_seat *seat = flow_prepare(1, PLAN_TAKE);
    static char block[65536];
    size_t sent = HELD, now;
    struct client c;

    seat->room = 1000;
    ask(&c, "POST /flow/1", 1 << 30);
    CHECK(client_pattern(&c, 0, HELD, 0));
    do { /* until the kernel takes no more */
        pattern_fill(block, sent, sizeof(block));
        now = client_push(&c, block, sizeof(block));
        sent += now;
        turns_in_ms(5);
    } while (now > 0);
    CHECK_INT(seat->came, HELD + 1000);
    CHECK(turns_in_ms(30) < 15); /* nothing to do, and no silence of the client's */
    turns_in_ms(2 * BODY_MS);
    CHECK_INT(seat->broken, 0);
    for (size_t came = seat->came; seat->came < sent; came = seat->came) {
        flow_more(seat, 70001);
        UNTIL(seat->came == came + 70001 || seat->came == sent);
    }
    CHECK(!seat->is_wrong);
    client_close(&c);
    UNTIL(seat->broken == 1);
    flow_answer(seat);
    check_flows_over();
}

/* Room for one byte now and then, in small chunks: every way to split. */
TEST(whatever_the_owner_takes_the_body_is_whole_and_in_order)
{
    for (size_t chunk = 0; chunk < 2000; chunk = chunk * 3 + 311) {
        enum { LEN = HELD + 40000 };
        struct flow_seat *seat = flow_prepare(1, PLAN_WAIT);
        struct client c;

        seat->on_whole = PLAN_ANSWER;
        seat->room = 1;
        ask(&c, "PUT /flow/1", chunk == 0 ? LEN : -1);
        CHECK(client_pattern(&c, 0, LEN, chunk));
        client_text(&c, chunk > 0 ? LAST GET("/next") : GET("/next"));
        UNTIL(seat->req != NULL);
        turns_in_ms(2);
        CHECK_INT(seat->came, HELD);
        flow_take(seat);
        for (size_t room = 1; seat->whole == 0 && !seat->is_wrong; room = room * 5 % 7919 + 1) {
            size_t came = seat->came;

            UNTIL(seat->room == 0 || seat->whole == 1);
            if (seat->whole == 0) {
                CHECK(seat->came > came || seat->room == 0);
                flow_more(seat, room);
            }
        }
        CHECK_INT(client_wait(&c), 200);
        CHECK_INT(client_wait(&c), 200);
        CHECK_INT(seat->came, LEN);
        CHECK(!seat->is_wrong);
        CHECK_INT(seat->broken, 0);
        client_close(&c);
        check_flows_over();
    }
}

TEST_FLOW(an_owner_may_ask_for_more_from_inside, PLAN_TAKE)
{
    seat->on_whole = PLAN_ANSWER;
    seat->room = 10;
    seat->asks = true;
    ask(c, "POST /flow/1", LONG_BYTES);
    CHECK(client_pattern(c, 0, LONG_BYTES, 0));
    CHECK_INT(client_wait(c), 200);
    CHECK(seat->came == LONG_BYTES && !seat->is_wrong);
}

TEST_FLOW(expect_is_answered_before_the_body, PLAN_TAKE)
{
    seat->on_whole = PLAN_ANSWER;
    client_say(c, waiting.port,
               "PUT /flow/1 HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n");
    UNTIL(client_got(c, "HTTP/1.1 100 Continue\r\n\r\n"));
    CHECK_INT(seat->handled, 0);
    CHECK(client_pattern(c, 0, 100000, 0));
    UNTIL(client_got(c, "came 100000"));
}

TEST(what_its_head_refuses_is_not_told_to_go_on)
{
    static const char *const bodies[] = {"", "GET /hidden HTTP/1.1\r\n" HOST "\r\n"};

    for (unsigned i = 0; i < 4; i++) {
        struct flow_seat *seat = flow_prepare(1, PLAN_REFUSE);
        const char *length = i < 2 ? "Content-Length: 100000\r\n" : "Transfer-Encoding: chunked\r\n";
        struct client c;
        char text[512];

        snprintf(text, sizeof(text),
                 "PUT /flow/1 HTTP/1.1\r\n" HOST "X-Refuse: 1\r\nExpect: 100-Continue\r\n%s\r\n%s", length,
                 i == 3 ? "7\r\nhidden!\r\n" : bodies[i % 2]);
        client_say(&c, waiting.port, text);
        UNTIL(client_got(&c, "\"code\":\"lease-held\"") && c.ended);
        CHECK(!client_got(&c, "100 Continue") && !client_got(&c, "hidden") &&
              client_got(&c, "Connection: close"));
        CHECK_INT(seat->handled, 1);
        CHECK_INT(seat->came, 0);
        client_close(&c);
        check_flows_over();
    }
}

TEST_FLOW(only_who_waits_for_it_is_refused_by_his_head, PLAN_ANSWER)
{
    client_say(c, waiting.port, "PUT /flow/1 HTTP/1.1\r\n" HOST "X-Refuse: 1\r\nContent-Length: 5\r\n\r\n");
    loop_turn(waiting.loop, 20);
    CHECK_INT(seat->handled, 0);
    client_text(c, "hello");
    UNTIL(client_got(c, "came 5"));
}

/* Its time begins with the held part, and anew with each HTTP_BODY_TIMED_BYTES. Drops do not lengthen it. */
TEST_FLOW(a_body_has_time_for_each_mebibyte_and_none_for_drops, PLAN_TAKE)
{
    uint64_t from_ms;
    size_t sent = HELD + HTTP_BODY_TIMED_BYTES + 50000;

    ask(c, "POST /flow/1", LONG_BYTES);
    CHECK(client_pattern(c, 0, HELD + 1000, 0));
    UNTIL(seat->pieces > 0);
    turns_in_ms(BODY_MS / 2);
    CHECK(client_pattern(c, HELD + 1000, sent - HELD - 1000, 0));
    from_ms = loop_now_ms();
    turns_in_ms(BODY_MS * 3 / 4); /* more than its time since it began */
    CHECK_INT(seat->broken, 0);
    while (seat->broken == 0 && loop_now_ms() - from_ms < 20 * BODY_MS) {
        CHECK(client_pattern(c, sent, 1, 0));
        sent++;
        turns_in_ms(BODY_MS / 10);
    }
    CHECK_INT(seat->broken, 1);
    CHECK(loop_now_ms() - from_ms >= BODY_MS - 1);
    flow_answer(seat); /* who is only slow is told what its owner says */
    UNTIL(client_got(c, "came"));
}

/* All that it has sent had been read before there was room. */
TEST_FLOW(a_client_that_is_silent_when_there_is_room_again_is_told_of, PLAN_TAKE)
{
    seat->room = 0;
    ask(c, "POST /flow/1", LONG_BYTES);
    CHECK(client_pattern(c, 0, HELD + 100, 0));
    UNTIL(seat->pieces == 1);
    turns_in_ms(2 * BODY_MS);
    CHECK_INT(seat->broken, 0);
    flow_more(seat, SIZE_MAX);
    UNTIL(seat->broken == 1);
    CHECK_INT(seat->came, HELD + 100);
    flow_answer(seat);
}

TEST(a_client_that_is_silent_before_the_held_part_is_there_gets_408)
{
    struct client c;

    flow_prepare(1, PLAN_TAKE);
    ask(&c, "POST /flow/1", LONG_BYTES);
    CHECK(client_pattern(&c, 0, 1000, 0));
    CHECK_INT(client_wait(&c), 408);
    CHECK(client_ends(&c));
    CHECK_INT(flow_seats[1].handled, 0);
    client_close(&c);
    check_flows_over();
}

TEST_FLOW(a_route_may_have_a_limit, PLAN_TAKE)
{
    ask(c, "POST /limit/1", LIMIT_BYTES + 1);
    CHECK_INT(client_wait(c), 413);
    client_close(c);
    CHECK_INT(seat->handled, 0);

    seat->on_whole = PLAN_ANSWER;
    ask(c, "POST /limit/1", -1);
    CHECK(client_pattern(c, 0, LIMIT_BYTES, 3000));
    client_text(c, LAST);
    CHECK_INT(client_wait(c), 200);
    CHECK_INT(seat->came, LIMIT_BYTES);
    client_close(c);

    flow_prepare(1, PLAN_TAKE);
    ask(c, "POST /limit/1", -1);
    CHECK(client_pattern(c, 0, LIMIT_BYTES + 1, 3000));
    UNTIL(seat->broken == 1);
    CHECK_INT(client_wait(c), 413);
    CHECK_TEXT(client_code(c), BYTES("too-large"));
    CHECK(seat->came <= LIMIT_BYTES && seat->whole == 0);
    flow_answer(seat);
}

TEST_FLOW(too_much_is_noticed_while_the_owner_has_no_room, PLAN_TAKE)
{
    char text[2000];

    ask(c, "POST /limit/1", -1);
    CHECK(client_pattern(c, 0, LIMIT_BYTES - 100, 2000));
    UNTIL(seat->came == LIMIT_BYTES - 100);
    seat->room = 0;
    memset(text, 'x', sizeof(text));
    memcpy(text, "5\r\n12345\r\n400\r\n", 15); /* the first suspends, and the next is read with it */
    client_send(c, (struct bytes){text, 15 + 0x400});
    UNTIL(seat->broken == 1);
    CHECK_INT(client_wait(c), 413);
    flow_answer(seat);
}

TEST_FLOW(a_body_that_breaks_its_chunks_is_broken, PLAN_TAKE)
{
    ask(c, "POST /flow/1", -1);
    CHECK(client_pattern(c, 0, HELD + 5000, 1000));
    client_text(c, "no-number\r\n" GET("/next"));
    UNTIL(seat->broken == 1);
    client_drain(c);
    CHECK(!client_got(c, "/next"));
    flow_answer(seat);
}

TEST(only_the_held_part_counts_as_memory)
{
    enum { FITS = MEMORY_BYTES / HELD };
    struct client c[FITS + 1];
    char line[32];

    for (unsigned i = 0; i < FITS; i++) {
        flow_prepare(i, PLAN_WAIT);
        snprintf(line, sizeof(line), "PUT /flow/%u", i);
        ask(&c[i], line, i % 2 == 0 ? 1 << 30 : -1);
        CHECK(client_pattern(&c[i], 0, HELD + 1000, i % 2 == 0 ? 0 : 1000));
        UNTIL(flow_seats[i].req != NULL);
    }
    CHECK_INT(waiting.http->body_memory, FITS * HELD);
    flow_prepare(FITS, PLAN_WAIT);
    ask(&c[FITS], "PUT /flow/6", 1 << 20);
    CHECK_INT(client_wait(&c[FITS]), 503);
    CHECK_TEXT(client_code(&c[FITS]), BYTES("overloaded"));
    client_close(&c[FITS]);
    for (unsigned i = 0; i < FITS; i++) {
        flow_answer(&flow_seats[i]);
        client_close(&c[i]);
    }
    check_flows_over();
}

/* -- clients that go while they send */

/* Where the body is when the client goes. */
static struct flow_seat *sending(struct client *c, enum plan plan, size_t room, long length)
{
    struct flow_seat *seat = flow_prepare(1, plan);

    seat->room = room;
    ask(c, "POST /flow/1", length);
    CHECK(client_pattern(c, 0, HELD + 9000, length < 0 ? 900 : 0));
    UNTIL(seat->req != NULL && seat->came >= (plan == PLAN_TAKE && room > 0 ? HELD + 1u : HELD));
    turns_in_ms(3);
    return seat;
}

static void check_broken(struct flow_seat *seat, uint64_t from_ms)
{
    UNTIL(seat->broken == 1);
    CHECK(waited_ms() - from_ms < NOTICE_MS);
    turns_in_ms(25);
    CHECK(seat->broken == 1 && seat->whole == 0);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    flow_answer(seat);
    check_flows_over();
}

TEST(a_client_that_goes_while_it_is_read_from_is_told_of)
{
    for (long length = -1; length < LONG_BYTES; length += LONG_BYTES) {
        for (unsigned reset = 0; reset < 2; reset++) {
            struct client c;
            struct flow_seat *seat = sending(&c, PLAN_TAKE, SIZE_MAX, length);

            (reset ? client_reset : client_close)(&c);
            check_broken(seat, waited_ms());
        }
    }
}

TEST(a_client_that_goes_while_the_owner_has_no_room_is_told_of)
{
    for (unsigned reset = 0; reset < 2; reset++) {
        struct client c;
        struct flow_seat *seat = sending(&c, PLAN_TAKE, 10, LONG_BYTES);

        (reset ? client_reset : client_close)(&c);
        check_broken(seat, waited_ms());
        seat = sending(&c, PLAN_TAKE, 0, LONG_BYTES);
        (reset ? client_reset : client_close)(&c);
        check_broken(seat, waited_ms());
    }
}

/* Whether the rest of a chunked body has come only reading tells. */
TEST(a_client_that_goes_in_a_chunked_body_is_told_of_when_what_has_come_was_taken)
{
    struct client c;
    struct flow_seat *seat = sending(&c, PLAN_TAKE, 10, -1);

    client_close(&c);
    turns_in_ms(50);
    CHECK_INT(seat->broken, 0);
    flow_more(seat, SIZE_MAX);
    check_broken(seat, waited_ms());
    CHECK(!seat->is_wrong);

    seat = sending(&c, PLAN_TAKE, 10, -1);
    client_reset(&c);
    check_broken(seat, waited_ms());
}

TEST(a_client_that_had_gone_before_the_rest_was_taken_is_told_of_then)
{
    struct client c;
    struct flow_seat *seat = sending(&c, PLAN_WAIT, SIZE_MAX, LONG_BYTES);

    client_close(&c);
    turns_in_ms(50);
    CHECK_INT(seat->broken, 0); /* there is nobody to be told yet */
    flow_take(seat);
    CHECK_INT(seat->broken, 0);
    check_broken(seat, waited_ms());
}

TEST(a_client_that_had_gone_and_of_whom_nobody_was_told_gets_no_answer)
{
    struct client c;
    struct flow_seat *seat = sending(&c, PLAN_WAIT, SIZE_MAX, LONG_BYTES);
    unsigned ended = waiting.ended;

    shutdown(c.fd, SHUT_WR);
    turns_in_ms(50);
    flow_answer(seat);
    client_drain(&c);
    CHECK_INT(c.len, 0);
    CHECK_INT(waiting.ended, ended + 1);
    client_close(&c);
    check_flows_over();
}

TEST(a_client_that_closes_its_side_behind_the_body_has_sent_it)
{
    for (long length = -1; length <= HELD + 9000; length += HELD + 9001) {
        struct client c;
        struct flow_seat *seat = sending(&c, PLAN_TAKE, 10, length);

        seat->on_whole = PLAN_ANSWER;
        if (length < 0) {
            client_text(&c, LAST);
        }
        shutdown(c.fd, SHUT_WR);
        turns_in_ms(50);
        CHECK_INT(seat->broken, 0);
        flow_more(seat, SIZE_MAX);
        CHECK_INT(client_wait(&c), 200);
        CHECK(seat->whole == 1 && seat->came == HELD + 9000 && !seat->is_wrong);
        client_close(&c);
        check_flows_over();
    }
}

/* -- answers before the body is whole */

/* The answer comes, the connection is closed behind it, and nothing of the body is taken for a request. */
static void check_early(struct client *c, unsigned status, const char *text)
{
    static const char more[] = GET("/next") GET("/next");

    UNTIL(client_got(c, text));
    CHECK_INT(strtoul(c->buf + 9, NULL, 10), status);
    CHECK(client_got(c, "Connection: close\r\n"));
    client_text(c, more);
    CHECK(client_pattern(c, 0, 30000, 0));
    client_text(c, more);
    client_drain(c);
    CHECK(!c->reset && !client_got(c, "/next"));
    client_close(c);
    check_flows_over();
}

TEST(a_handler_may_answer_before_the_body_is_whole)
{
    static const enum plan plans[] = {PLAN_ANSWER, PLAN_REFUSE};

    for (unsigned i = 0; i < 4; i++) {
        struct flow_seat *seat = flow_prepare(1, plans[i % 2]);
        unsigned ended = waiting.ended;
        struct client c;

        ask(&c, "POST /flow/1", i < 2 ? LONG_BYTES : -1);
        CHECK(client_pattern(&c, 0, HELD + 1000, i < 2 ? 0 : 500));
        check_early(&c, i % 2 == 0 ? 200 : 409,
                    i % 2 == 0 ? "\r\n\r\ncame 65536" : "\"code\":\"lease-held\"");
        (void)seat;
        CHECK_INT(waiting.ended, ended + 1);
    }
}

TEST(a_continuation_may_answer_before_the_body_is_whole)
{
    for (unsigned i = 0; i < 4; i++) { /* not taken, read on, without room, and from inside of a piece */
        struct client c;
        struct flow_seat *seat = sending(&c, i == 0 ? PLAN_WAIT : PLAN_TAKE, i == 2 ? 10 : SIZE_MAX,
                                         i % 2 == 0 ? LONG_BYTES : -1);

        if (i == 3) {
            seat->on_piece = PLAN_REFUSE;
            client_text(&c, "5\r\n");
            client_pattern(&c, HELD + 9000, 5, 0);
            client_text(&c, "\r\n");
        } else {
            http_refuse(seat->req, PROBLEM_LEASE_HELD);
        }
        check_early(&c, 409, "\"code\":\"lease-held\"");
    }
}

TEST(an_early_answer_is_told_to_the_owner_once_and_has_its_fields)
{
    struct client c;
    struct flow_seat *seat = sending(&c, PLAN_WAIT, SIZE_MAX, LONG_BYTES);
    unsigned ended = waiting.ended;

    http_reply_header(seat->req, "X-Own", BYTES("own"));
    CHECK(http_reply_field(seat->req, BYTES("Set-Cookie"), BYTES("a=b")));
    CHECK(http_reply_field(seat->req, BYTES("Set-Cookie"), BYTES("c=d")));
    http_answer(seat->req, 204);
    CHECK_INT(waiting.ended, ended + 1);
    CHECK_INT(waiting.ended_status, 204);
    UNTIL(client_got(&c, "\r\n\r\n"));
    CHECK(client_got(&c, "HTTP/1.1 204 No Content\r\n") && client_got(&c, " GMT\r\nConnection: close\r\n"));
    CHECK(client_got(&c, "X-Own: own\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\n"));
    CHECK(!client_got(&c, "Content-Length"));
    check_early(&c, 204, "\r\n\r\n");
}

TEST(an_early_answer_of_any_size_arrives_whole)
{
    enum { BIG = 2500000 };
    struct client c;
    struct flow_seat *seat = sending(&c, PLAN_TAKE, SIZE_MAX, LONG_BYTES);
    char *body = malloc(BIG);

    pattern_fill(body, 0, BIG);
    http_reply_body(seat->req, "text/plain", (struct bytes){body, BIG});
    http_answer(seat->req, 200);
    free(body);
    client_drain(&c);
    CHECK_INT(client_read(&c, true), 200);
    CHECK(c.body.len == BIG && pattern_is(c.body.at, 0, BIG));
    client_close(&c);
    check_flows_over();
}

/* In pieces, with back-pressure: of a known length, in chunks, and up to the end of the connection. */
TEST(an_early_answer_may_come_in_pieces)
{
    enum { BIG = 1000000 };

    for (unsigned i = 0; i < 6; i++) {
        struct client c;
        struct flow_seat *seat = flow_prepare(1, i < 3 ? PLAN_WAIT : PLAN_BEGIN);
        static const char *const heads[] = {"HTTP/1.1\r\nHost: x", "HTTP/1.1\r\nHost: x", "HTTP/1.0"};
        char text[128];

        seat->length = i % 3 == 0 ? BIG : -1;
        snprintf(text, sizeof(text), "POST /flow/1 %s\r\nContent-Length: %d\r\n\r\n", heads[i % 3],
                 LONG_BYTES);
        client_say(&c, waiting.port, text);
        CHECK(client_pattern(&c, 0, HELD, 0));
        UNTIL(seat->handled == 1);
        if (i < 3) {
            flow_begin(seat);
        }
        turns_in_ms(3);
        for (size_t written = 0; written < BIG;) {
            written += flow_write(seat, BIG - written);
            UNTIL(seat->roomed > 0 || written == BIG || (client_len(&c), false));
            seat->roomed = 0;
        }
        flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
        client_drain(&c);
        CHECK_INT(seat->gone, 0);
        if (i % 3 == 1) {
            chunks_are(&c, BIG);
        } else {
            CHECK_INT(client_got(&c, "Content-Length: 1000000\r\n"), i % 3 == 0);
            CHECK(CHECK_INT(client_body_len(&c), BIG) && pattern_is(c.buf + c.len - BIG, 0, BIG));
        }
        client_close(&c);
        check_flows_over();
    }
}

TEST(an_early_answer_that_is_cut_is_seen_to_be)
{
    for (unsigned i = 0; i < 3; i++) {
        static const char *const heads[] = {"HTTP/1.1\r\nHost: x", "HTTP/1.1\r\nHost: x", "HTTP/1.0"};
        struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
        char text[128];
        struct client c;

        seat->length = i == 0 ? 5000 : -1;
        snprintf(text, sizeof(text), "POST /flow/1 %s\r\nContent-Length: %d\r\n\r\n", heads[i], LONG_BYTES);
        client_say(&c, waiting.port, text);
        CHECK(client_pattern(&c, 0, HELD, 0));
        UNTIL(seat->handled == 1);
        flow_write(seat, 3000);
        flow_end(seat, i == 0 ? HTTP_RESPONSE_WRITER_WHOLE
                              : HTTP_RESPONSE_WRITER_CUT); /* fewer than announced are not whole */
        client_drain(&c);
        CHECK(!client_got(&c, "\r\n0\r\n\r\n"));
        CHECK(i != 2 || c.reset);
        client_close(&c);
        check_flows_over();
    }
}

TEST(a_client_that_goes_from_an_early_answer_is_told_of)
{
    for (unsigned i = 0; i < 3; i++) {
        struct client c;
        struct flow_seat *seat = sending(&c, PLAN_WAIT, SIZE_MAX, LONG_BYTES);
        uint64_t begun_ms = loop_now_ms(), from_ms;

        flow_begin(seat);
        while (i > 0 && flow_write(seat, 100000) > 0) {
            turns_in_ms(3);
        }
        from_ms = waited_ms();
        if (i < 2) {
            client_close(&c);
        }
        UNTIL(seat->gone == 1); /* or takes nothing */
        CHECK(waited_ms() - from_ms < (i < 2 ? NOTICE_MS : 3 * SEND_MS));
        CHECK(i < 2 || loop_now_ms() - begun_ms >= SEND_MS - 1);
        CHECK_INT(flow_write(seat, 10), 0);
        flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
        if (i == 2) {
            client_close(&c);
        }
        check_flows_over();
        CHECK_INT(flow_seats[1].gone, 0);
    }
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
        client_say(&c, waiting.port, GET("/flow/1"));
        UNTIL(seat->handled == 1);
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

        client_say(&c, waiting.port, GET("/flow/1"));
        UNTIL(seat->handled == 1);
        check_answer(seat, &c, len < LONG_BYTES ? len : LONG_BYTES);
        CHECK(client_got(&c, "Transfer-Encoding: chunked\r\n"));
        c.len = client_find(&c, 12, "HTTP/1.1 200"); /* without the next one */
        chunks_are(&c, len < LONG_BYTES ? len : LONG_BYTES);
        client_close(&c);
        check_flows_over();
    }
}

TEST(answers_without_a_body_have_none_and_the_connection_is_kept)
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

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
        char text[128];
        struct client c;

        seat->status = rows[i].status;
        seat->length = rows[i].length;
        snprintf(text, sizeof(text), "%s /flow/1 HTTP/1.1\r\n" HOST "\r\n" GET("/next"), rows[i].method);
        client_say(&c, waiting.port, text);
        UNTIL(client_got(&c, "\"path\":\"/next\"")); /* before it is ended */
        CHECK(memcmp(c.buf, rows[i].head, 13) == 0 && client_got(&c, rows[i].line));
        CHECK_INT(client_find(&c, 12, "HTTP/1.1 200 "), client_find(&c, 0, "\r\n\r\n") + 4);
        CHECK_INT(flow_write(seat, 10), 10); /* and forgotten */
        CHECK_INT(http_server_open_requests(waiting.http), 1);
        flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
        CHECK_INT(seat->gone, 0);
        client_close(&c);
        check_flows_over();
    }
}

TEST_FLOW(for_head_an_unknown_length_is_told_by_silence, PLAN_BEGIN)
{
    client_say(c, waiting.port, "HEAD /flow/1 HTTP/1.1\r\n" HOST "\r\n");
    client_drain(c);
    CHECK_INT(client_body_len(c), 0); /* nor a last chunk */
    CHECK(!client_got(c, "Content-Length"));
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
}

TEST(a_client_of_http_1_0_is_served_too)
{
    for (unsigned i = 0; i < 2; i++) {
        struct flow_seat *seat = flow_prepare(1, PLAN_WHOLE);
        struct client c;

        seat->length = i == 0 ? 1000 : -1;
        client_say(&c, waiting.port, "GET /flow/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        UNTIL(client_got(&c, "\r\n\r\n") && client_body_len(&c) == 1000);
        CHECK(pattern_is(c.buf + c.len - 1000, 0, 1000) && !client_got(&c, "chunked"));
        if (i == 0) {
            client_text(&c, GET("/next"));
            UNTIL(client_got(&c, "\"path\":\"/next\""));
        } else {
            client_drain(&c);
        }
        client_close(&c);
        check_flows_over();
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

TEST(a_reader_that_is_slow_holds_the_writer_back)
{
    for (int64_t length = -1; length < 3; length += 3) {
        struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
        uint64_t from_ms;
        struct client c;

        seat->length = length < 0 ? -1 : 1 << 30;
        client_open_small(&c, waiting.port, SMALL_BYTES);
        client_text(&c, GET("/flow/1"));
        UNTIL(seat->handled == 1);
        fill(seat);
        seat->roomed = 0;
        from_ms = loop_now_ms();
        while (loop_now_ms() - from_ms < 2 * SEND_MS) { /* reads a little now and then: it is not gone */
            size_t len = c.len;

            UNTIL(has_come(&c));
            recv(c.fd, c.buf + c.len, 3000, MSG_DONTWAIT);
            c.len = len;
            turns_in_ms(SEND_MS / 20);
        }
        CHECK_INT(seat->gone, 0);
        UNTIL(seat->roomed == 1 || (client_len(&c), c.len = 0, false));
        CHECK(flow_write(seat, 100000) > 0);
        flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
        client_close(&c);
        check_flows_over();
    }
}

TEST_FLOW(a_client_that_stops_reading_is_gone, PLAN_BEGIN)
{
    uint64_t from_ms;

    client_open_small(c, waiting.port, SMALL_BYTES);
    client_text(c, GET("/flow/1"));
    UNTIL(seat->handled == 1);
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
TEST(a_client_that_cannot_be_watched_is_told_of_when_its_connection_is_closed)
{
    struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
    int epoll_fd = waiting.http->disconnect.epoll_fd;
    struct client c;

    waiting.http->disconnect.epoll_fd = -1;
    client_open_small(&c, waiting.port, SMALL_BYTES);
    client_text(&c, GET("/flow/1"));
    UNTIL(seat->handled == 1);
    waiting.http->disconnect.epoll_fd = epoll_fd;
    fill(seat);
    client_reset(&c);
    UNTIL(seat->gone == 1);
    flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
    check_flows_over();
}

TEST_FLOW(a_writer_with_nothing_to_say_is_waited_for, PLAN_BEGIN)
{
    client_say(c, waiting.port, GET("/flow/1"));
    UNTIL(seat->handled == 1);
    flow_write(seat, 10);
    CHECK(turns_in_ms(2 * SEND_MS) < 60);
    CHECK_INT(seat->gone, 0);
    check_answer(seat, c, 5);
}

TEST(a_client_that_goes_while_it_takes_is_told_of_once)
{
    for (unsigned i = 0; i < 6; i++) { /* with much under way, or nothing; closed, reset, or half closed */
        struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
        uint64_t from_ms;
        struct client c;

        seat->length = i < 3 ? 1 << 30 : -1;
        client_open_small(&c, waiting.port, SMALL_BYTES);
        client_text(&c, GET("/flow/1"));
        UNTIL(seat->handled == 1);
        if (i % 2 == 0) {
            fill(seat);
        }
        from_ms = waited_ms();
        if (i % 3 == 0) {
            client_close(&c);
        } else if (i % 3 == 1) {
            client_reset(&c);
        } else {
            shutdown(c.fd, SHUT_WR);
        }
        UNTIL(seat->gone == 1);
        CHECK(waited_ms() - from_ms < NOTICE_MS);
        CHECK_INT(flow_write(seat, 10), 0);
        turns_in_ms(25);
        CHECK_INT(seat->gone, 1);
        CHECK_INT(http_server_open_requests(waiting.http), 1);
        flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
        if (i % 3 == 2) {
            client_close(&c);
        }
        check_flows_over();
    }
}

TEST(nobody_is_told_after_the_end)
{
    struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
    struct client c;

    client_open_small(&c, waiting.port, SMALL_BYTES);
    client_text(&c, GET("/flow/1"));
    UNTIL(seat->handled == 1);
    fill(seat);
    client_close(&c);
    flow_end(seat, HTTP_RESPONSE_WRITER_WHOLE);
    UNTIL(http_server_connections(waiting.http) == 0);
    CHECK_INT(seat->gone, 0);
    check_flows_over();
}

TEST_FLOW(who_has_ended_is_not_told_of_room, PLAN_BEGIN)
{
    unsigned roomed;

    client_open_small(c, waiting.port, SMALL_BYTES);
    client_text(c, GET("/flow/1"));
    UNTIL(seat->handled == 1);
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

TEST(an_answer_for_a_client_that_has_left_is_gone_from_the_beginning)
{
    struct flow_seat *seat = flow_prepare(1, PLAN_WAIT);
    struct client c;

    client_say(&c, waiting.port, GET("/flow/1"));
    UNTIL(seat->req != NULL);
    client_reset(&c);
    if (waiting.http->options.suspend_always) {
        UNTIL(waiting.http->disconnect.first != NULL);
    } else {
        UNTIL(http_server_connections(waiting.http) == 0);
    }
    flow_begin(seat);
    CHECK_INT(seat->gone, 0);
    UNTIL(seat->gone == 1);
    flow_end(seat, HTTP_RESPONSE_WRITER_CUT);
    check_flows_over();
}

TEST(an_answer_that_is_cut_is_seen_to_be)
{
    for (unsigned i = 0; i < 4; i++) { /* in chunks, of a length, too short for it, and up to the end */
        struct flow_seat *seat = flow_prepare(1, PLAN_BEGIN);
        struct client c;

        seat->length = i == 1 || i == 2 ? 5000 : -1;
        client_say(&c, waiting.port, i < 3 ? GET("/flow/1") GET("/next") : "GET /flow/1 HTTP/1.0\r\n\r\n");
        UNTIL(seat->handled == 1);
        CHECK_INT(flow_write(seat, 4999), 4999);
        UNTIL(client_got(&c, "\r\n\r\n") && client_body_len(&c) >= 4999);
        flow_end(seat, i == 2 ? HTTP_RESPONSE_WRITER_WHOLE : HTTP_RESPONSE_WRITER_CUT);
        client_drain(&c);
        CHECK(!client_got(&c, "\r\n0\r\n\r\n") && !client_got(&c, "/next"));
        CHECK(i < 3 || c.reset); /* a mere end would look whole */
        client_close(&c);
        check_flows_over();
    }
}

/* What its client has not read when the server is freed is lost, and nothing else. */
static void a_server_is_freed_with_an_early_answer_on_its_way(void)
{
    enum { BIG = 4000000 };
    struct client c;
    struct flow_seat *seat = sending(&c, PLAN_WAIT, SIZE_MAX, LONG_BYTES);
    char *body = calloc(1, BIG);

    http_reply_body(seat->req, "text/plain", (struct bytes){body, BIG});
    http_answer(seat->req, 200);
    free(body);
    turns_in_ms(5);
    CHECK_INT(http_server_open_requests(waiting.http), 1);
    http_server_free(waiting.http);
    loop_free(waiting.loop);
    client_close(&c);
}

/* -- heads */

TEST(every_path_and_method_is_told_as_it_came)
{
    struct client c;

    client_say(&c, waiting.port, "BREW / HTTP/1.1\r\n" HOST "X-One:  1 \r\nX-Empty:\r\nx-one: 2\r\n\r\n");
    CHECK_INT(client_wait(&c), 200);
    CHECK_TEXT(c.body, BYTES("{\"method\":\"BREW\",\"path\":\"/\",\"query\":\"\",\"address\":\"127.0.0.1\","
                             "\"name\":\"Host\",\"value\":\"x\",\"name\":\"X-One\",\"value\":\"1\","
                             "\"name\":\"X-Empty\",\"value\":\"\",\"name\":\"x-one\",\"value\":\"2\"}"));
    client_text(&c, GET("//a//b%2F/?x=y?z"));
    CHECK_INT(client_wait(&c), 200);
    CHECK(client_says(&c, "\"method\":\"GET\",\"path\":\"//a//b%2F/\",\"query\":\"x=y?z\""));
    client_text(&c, "OPTIONS /o HTTP/1.1\r\n" HOST "\r\n");
    CHECK_INT(client_wait(&c), 200);
    CHECK(client_says(&c, "\"method\":\"OPTIONS\",\"path\":\"/o\""));
    client_text(&c, "BREW /suspend/3 HTTP/1.1\r\n" HOST "\r\n");
    UNTIL(flow_seats[3].suspended.kept != NULL);
    flow_tell(http_resume(&flow_seats[3].suspended));
    CHECK_INT(client_wait(&c), 200);
    CHECK(client_says(&c, "\"method\":\"BREW\",\"path\":\"/suspend/3\""));
    client_close(&c);
    check_flows_over();
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

    client_say(c, waiting.port, GET("/flow/1"));
    UNTIL(seat->req != NULL);
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
    for (unsigned i = 0; i < LINES; i++) {
        len += (size_t)snprintf(next + len, 40, "GET /next HTTP/1.1\r\n" HOST "\r\n");
    }
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
    for (unsigned i = 0; i < 63; i++) {
        CHECK(http_reply_field(seat->req, BYTES("N"), (struct bytes){value, 95}));
    }
    CHECK(http_reply_field(seat->req, BYTES("N"), (struct bytes){value, HEAD_BYTES - 6300 - 10 - 5}));
    http_answer(seat->req, 200);
    CHECK_INT(client_wait(c), 200);
    CHECK(c->head.len > HEAD_BYTES);
    for (unsigned i = 0; i < LINES; i++) {
        if (!CHECK_INT(client_wait(c), 200)) {
            break;
        }
    }
}

TEST_FLOW(at_most_128_fields_are_copied, PLAN_WAIT)
{
    client_say(c, waiting.port, GET("/flow/1"));
    UNTIL(seat->req != NULL);
    for (unsigned i = 0; i < 128; i++) {
        CHECK(http_reply_field(seat->req, BYTES("N"), BYTES("v")));
    }
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

/* -- the states */

static void the_drawing_of_the_rest_and_the_code_agree(void)
{
    static const char *const names[REST_COUNT] = {"NONE", "HELD", "READING", "FULL", "SILENT", "BROKEN"};

    CHECK_INT(drawing_check("shared/http/body_reader.c", names, REST_COUNT, http_rest_may, NULL), 11);
}

static void all_of_it(unsigned suspend_always)
{
    const char *how = suspend_always ? "when_suspended" : "when_polled";
    struct http_options options = flow_options();
    char name[160];

    options.suspend_always = suspend_always;
    waiting_start_with(options);
    check_all_as(how);
    waiting_stop();
    waiting_start_with(options);
    snprintf(name, sizeof(name), "a_server_is_freed_with_an_early_answer_on_its_way_%s", how);
    check_run(name, a_server_is_freed_with_an_early_answer_on_its_way);
}

int main(void)
{
    check_parts(2, 2, all_of_it);
    RUN(the_drawing_of_the_rest_and_the_code_agree);
    return check_done();
}
