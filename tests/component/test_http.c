/* test_http.c - ordinary requests and answers, each by polling and by suspending. */
#include "tests/component/http_client.h"
#include "tests/component/http_sample.h"

#include <netinet/tcp.h>
#include <poll.h>

#include "shared/http/http_internal.h"
#include "tests/unit/drawing.h"

static struct sample_child server;

#define HOST "Host: x\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* For how many ms a request waits while others are made: handshakes take long. */
#ifdef OVER_TLS
#define WHILE "1000"
#else
#define WHILE "400"
#endif

TEST_CLIENT(a_handler_may_answer_at_once)
{
    CHECK_INT(client_ask(c, server.port, GET("/hello")), 200);
    CHECK_TEXT(c->body, BYTES("{\"hello\":\"world\"}"));
    CHECK_TEXT(client_header(c, "Content-Type"), BYTES("application/json"));
    CHECK_TEXT(client_header(c, "Cache-Control"), BYTES("no-store"));
    CHECK(client_header(c, "Date").len == 29);
    CHECK_INT(client_next(c, GET("/hello")), 200);
}

TEST_CLIENT(a_handler_may_answer_later)
{
    CHECK_INT(client_ask(c, server.port, GET("/later/3")), 200);
    CHECK_TEXT(c->body, BYTES("3"));
    CHECK_INT(client_next(c, GET("/turn")), 200);
    client_text(c, GET("/later/45")); /* longer than requests are polled */
    CHECK_INT(client_read(c, true), 200);
    CHECK_TEXT(c->body, BYTES("45"));
}

TEST_CLIENT(a_handler_reads_what_came)
{
    CHECK_INT(client_ask(c, server.port,
                         "DELETE /tell/a%41+b?b=&a=1%202+ HTTP/1.1\r\n" HOST
                         "x-TEST: \t v w \t \r\nX-Test:\r\n\r\n"),
              200);
    CHECK_TEXT(c->body,
               BYTES("{\"method\":16,\"path\":\"/tell/a%41+b\",\"part\":\"a%41+b\",\"query\":\"b=&a=1%202+\","
                     "\"a_len\":4,\"a\":\"1 2+\",\"x\":\"v w\",\"x_count\":2}"));
}

TEST_CLIENT(a_query_member_is_given_decoded_once_or_refused)
{
    static const struct {
        const char *query;
        long len;
    } rows[] = {
        {"", -1},         {"?", -1},          {"?b=2", -1},
        {"?a", 0},        {"?a=", 0},         {"?a=1", 1},
        {"?b=&a=12", 2},  {"?a=12345678", 8}, {"?a=123456789", -2},
        {"?a=1&a=1", -2}, {"?c=1", -2},       {"?a=1&c=", -2},
        {"?a=1&b", 1},    {"?a=1&", -2},      {"?&a=1", -2},
        {"?A=1", -2},     {"?%61=1", -2},     {"?a=%3d=%26", 3},
        {"?a=1&&b=", -2}, {"?a=%2541", 3},    {"?a=1%00", -2},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(client_anew(c, server.port, textf("GET /tell/x%s HTTP/1.1\r\n" HOST "\r\n", rows[i].query)),
                  200);
        CHECK_INT(client_number(c, "a_len"), rows[i].len);
    }
}

TEST_CLIENT(the_first_route_that_matches_is_taken)
{
    static const struct {
        const char *line;
        unsigned status;
    } rows[] = {
        {"GET /", 404},          {"GET /hello/", 404},       {"GET /hell", 404},     {"GET /helloo", 404},
        {"GET /tell", 404},      {"GET /tell/", 404},        {"GET /tell/x/y", 404}, {"GET //hello", 404},
        {"GET /two/a/x/b", 200}, {"GET /two/a/x/b//c", 200}, {"GET /two/a/x/", 404}, {"GET /two/a/x", 404},
        {"GET /two//x/b", 404},  {"GET /Hello", 404},        {"GET /%68ello", 404},  {"GET /hello?", 400},
        {"GET /plain/x?a", 400}, {"PUT /plain/x", 204},      {"POST /plain/x", 405}, {"BREW /hello", 405},
        {"BREW /any/x", 200},    {"TRACE /any/x", 200},      {"HEAD /json", 405},    {"PATCH /nope", 404},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        client_close(c);
        client_say(c, server.port, textf("%s HTTP/1.1\r\n" HOST "\r\n", rows[i].line));
        if (!CHECK_INT(client_read(c, rows[i].line[0] != 'H'), rows[i].status))
            printf("# %s\n", rows[i].line);
        /* None of these ends the connection. */
        CHECK_INT(client_next(c, GET("/two/first%2f/x/r/es/t")), 200);
        CHECK_TEXT(client_header(c, "X-First"), BYTES("first%2f"));
        CHECK_TEXT(client_header(c, "X-Rest"), BYTES("r/es/t"));
    }
}

TEST_CLIENT(options_and_a_wrong_method_are_told_what_is_allowed)
{
    CHECK_INT(client_ask(c, server.port, "OPTIONS /plain/x HTTP/1.1\r\n" HOST "\r\n"), 204);
    CHECK_TEXT(client_header(c, "Allow"), BYTES("GET, HEAD, PUT, OPTIONS"));
    CHECK(client_header(c, "Content-Type").at == NULL && client_header(c, "Content-Length").at == NULL);
    CHECK_INT(client_next(c, "DELETE /json HTTP/1.1\r\n" HOST "\r\n"), 405);
    CHECK_TEXT(client_header(c, "Allow"), BYTES("POST, OPTIONS"));
    CHECK_TEXT(client_code(c), BYTES("method-not-allowed"));
    CHECK_INT(client_next(c, "OPTIONS /any/x HTTP/1.1\r\n" HOST "\r\n"),
              200); /* the route takes every method itself */
    CHECK_INT(client_next(c, "OPTIONS /nope HTTP/1.1\r\n" HOST "\r\n"), 404);
    CHECK_INT(client_next(c, "DELETE /json HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}"), 405);
    CHECK_TEXT(client_header(c, "Allow"), BYTES("POST, OPTIONS"));
    CHECK(client_ends(c));
}

TEST_CLIENT(head_gets_the_head_of_get_and_no_body)
{
    client_say(c, server.port,
               "HEAD /hello HTTP/1.1\r\n" HOST "\r\nHEAD /nope HTTP/1.1\r\n" HOST "\r\n" GET("/hello"));
    CHECK_INT(client_read(c, false), 200);
    CHECK_TEXT(client_header(c, "Content-Length"), BYTES("17"));
    CHECK_INT(client_read(c, false), 404);
    CHECK_INT(client_read(c, true), 200);
    CHECK_TEXT(c->body, BYTES("{\"hello\":\"world\"}"));
}

TEST_CLIENT(statuses_without_body_have_none)
{
    CHECK_INT(client_ask(c, server.port, GET("/nothing")), 204);
    CHECK(client_header(c, "Content-Type").at == NULL && client_header(c, "Content-Length").at == NULL);
    client_text(c, GET("/unchanged"));
    CHECK_INT(client_read(c, false), 304);
    CHECK(client_header(c, "Content-Type").at == NULL);
    CHECK_TEXT(client_header(c, "ETag"), BYTES("\"1\""));
    CHECK_INT(client_next(c, GET("/hello")), 200);
}

TEST_CLIENT(a_problem_says_all_that_the_contract_wants)
{
    char id[HTTP_ID_SIZE] = "";

    CHECK_INT(client_ask(c, server.port, GET("/problem")), 403);
    CHECK_TEXT(client_header(c, "Content-Type"), BYTES("application/problem+json"));
    CHECK_TEXT(client_header(c, "Cache-Control"), BYTES("no-store"));
    CHECK(client_says(
        c, "{\"type\":\"/problems/lease-held\",\"title\":\"The lease is held by another\",\"status\":403,"
           "\"detail\":\"Held.\",\"code\":\"lease-held\",\"retryable\":true,\"instance\":\""));
    CHECK(client_says(c, "\",\"current\":34}\n"));
    const char *at = memmem(c->body.at, c->body.len, "\"instance\":\"urn:uuid:", 21);
    memcpy(id, at + 12, HTTP_ID_SIZE - 1);
    CHECK(strlen(id) == HTTP_ID_SIZE - 1 && at[12 + HTTP_ID_SIZE - 1] == '"' && id[23] == '8');
    CHECK_INT(client_next(c, GET("/problem")), 403);
    CHECK(!client_says(c, id));
}

TEST_CLIENT(the_headers_of_an_answer_have_a_limit)
{
    CHECK_INT(client_ask(c, server.port, GET("/headers/900")), 200);
    CHECK_INT(client_header(c, "X-Long").len, 900);
    CHECK_INT(client_next(c, GET("/headers/0")), 200);
    CHECK(client_header(c, "X-Long").at == NULL);
}

TEST_CLIENT(pipelined_requests_are_answered_in_order)
{
    client_say(c, server.port,
               GET("/later/8") GET("/hello") GET("/turn") "PUT /later/2 HTTP/1.1\r\n" HOST
                                                          "Content-Length: 3\r\n\r\nabc" GET("/nope")
                                                              GET("/later/1") GET("/problem"));
    CHECK_INT(client_read(c, true), 200);
    CHECK_TEXT(c->body, BYTES("8"));
    CHECK_INT(client_read(c, true), 200);
    CHECK_INT(client_read(c, true), 200);
    CHECK_TEXT(c->body, BYTES("{\"hello\":\"world\"}"));
    CHECK_INT(client_read(c, true), 200);
    CHECK_TEXT(c->body, BYTES("abc"));
    CHECK_INT(client_read(c, true), 404);
    CHECK_INT(client_read(c, true), 200);
    CHECK_TEXT(c->body, BYTES("1"));
    CHECK_INT(client_read(c, true), 403);
}

static void echo_exactly(const char *path, size_t size, const char *coding)
{
    struct client c;
    char *bytes = malloc(size), head[256];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    client_open(&c, server.port);
    snprintf(head, sizeof(head), "PUT %s HTTP/1.1\r\n" HOST "Content-Type: a/b\r\n%s: ", path, coding);
    client_text(&c, head);
    if (coding[0] == 'C') {
        snprintf(head, sizeof(head), "%zu\r\n\r\n", size);
        client_text(&c, head);
        client_send(&c, (struct bytes){bytes, size});
    } else {
        client_text(&c, "chunked\r\n\r\n");
        for (size_t at = 0, piece = 1; at < size; at += piece, piece = piece * 3 + 1) {
            piece = piece < size - at ? piece : size - at;
            snprintf(head, sizeof(head), at % 2 ? "%zx\r\n" : "%zX;ext=\"a b\";c\r\n", piece);
            client_text(&c, head);
            client_send(&c, (struct bytes){bytes + at, piece});
            client_text(&c, "\r\n");
        }
        client_text(&c, "0\r\nTrailer: x\r\nOther: y\r\n\r\n");
    }
    client_text(&c, GET("/hello")); /* nothing of the body is left over */
    CHECK_INT(client_read(&c, true), 200);
    CHECK(c.body.len == size && memcmp(c.body.at, bytes, size) == 0);
    CHECK_TEXT(client_header(&c, "Content-Type"), BYTES("a/b"));
    CHECK_INT(client_read(&c, true), 200);
    CHECK_TEXT(c.body, BYTES("{\"hello\":\"world\"}"));
    client_close(&c);
    free(bytes);
}

TEST(bodies_of_any_content_come_and_go_byte_by_byte)
{
    static const size_t sizes[] = {1, 100, 900, 4096, 65537, SAMPLE_BYTES_MAX};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        echo_exactly("/echo", sizes[i], "Content-Length");
        echo_exactly("/later/1", sizes[i], "Content-Length");
        echo_exactly("/echo", sizes[i], "Transfer-Encoding");
        echo_exactly("/later/1", sizes[i], "Transfer-Encoding");
    }
}

TEST_CLIENT(a_long_answer_arrives_whole_at_a_slow_reader)
{
    client_say(c, server.port, GET("/big/2500000"));
    for (unsigned i = 0; i < 4; i++) { /* others are served meanwhile */
        struct client other;

        CHECK_INT(client_ask(&other, server.port, GET("/later/1")), 200);
        client_close(&other);
    }
    CHECK_INT(client_read(c, true), 200);
    CHECK_INT(c->body.len, 2500000);
    for (size_t i = 0; i < c->body.len; i++) {
        if ((unsigned char)c->body.at[i] != i * 31 % 251) {
            CHECK_INT(i, -1);
            break;
        }
    }
}

TEST_CLIENT(http_1_0_is_answered_and_closed_unless_it_asks_otherwise)
{
    CHECK_INT(client_ask(c, server.port, "GET /hello HTTP/1.0\r\n\r\n"), 200);
    CHECK(client_ended(c));
    CHECK_INT(client_ask(c, server.port, "GET /turn HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 200);
    CHECK_INT(client_next(c, "GET /turn HTTP/1.0\r\n\r\n"), 200);
    CHECK(client_ended(c));
    CHECK_INT(client_ask(c, server.port, "GET /turn HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"), 200);
    CHECK_TEXT(client_header(c, "Connection"), BYTES("close"));
    CHECK(client_ended(c));
}

TEST(a_client_that_leaves_harms_nobody)
{
    struct linger reset = {1, 0};
    struct client c[20];
    long before;

    CHECK_INT(client_ask(&c[0], server.port, GET("/stats")), 200);
    before = client_number(&c[0], "ended");
    client_close(&c[0]);
    for (unsigned i = 0; i < 20; i++)
        client_say(&c[i], server.port, i % 2 ? GET("/later/" WHILE) GET("/later/1") : GET("/later/" WHILE));
    CHECK(client_sees(server.port, "open", 21)); /* and the one that asks */
    for (unsigned i = 0; i < 20; i++) {
        if (i < 10)
            setsockopt(c[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        client_close(&c[i]);
    }
    CHECK(client_sees(server.port, "open", 1));
    CHECK(client_sees(server.port, "connections", 1));
    CHECK_INT(client_ask(&c[0], server.port, GET("/stats")), 200);
    CHECK(client_number(&c[0], "ended") >= before + 20); /* every continuation has run */
    client_close(&c[0]);
}

TEST(draining_answers_what_is_open_and_refuses_the_rest)
{
    struct client idle, waiting, half;

    client_open(&idle, server.port);
    client_open(&waiting, server.port);
    client_open(&half, server.port);
    CHECK_INT(client_next(&idle, GET("/hello")), 200);
    client_text(&half, "GET /hello HTTP/1.1\r\n");
    client_text(&waiting, GET("/later/" WHILE) GET("/hello"));
    CHECK(client_sees(server.port, "open", 2));
    client_stop(server.port);
    CHECK(client_ends(&idle));
    CHECK_INT(client_next(&half, HOST "\r\n"), 503);
    CHECK_TEXT(client_code(&half), BYTES("draining"));
    CHECK_TEXT(client_header(&half, "Connection"), BYTES("close"));
    CHECK(client_ends(&half));
    CHECK_INT(client_read(&waiting, true), 200);
    CHECK_TEXT(client_header(&waiting, "Connection"), BYTES("close"));
    CHECK(client_ends(&waiting));
    CHECK_INT(sample_wait(server), 0);
    client_close(&idle);
    client_close(&waiting);
    client_close(&half);
}

/* -- without a server */

static void listening_addresses_are_read_strictly(void)
{
    const char
        *rest = "8700 :8700 127.0.0.1 127.0.0.1: 127.0.0.1:65536 127.0.0.1:+1 127.0.0.1:0x1 localhost:1 "
                "127.0.0:1 [::1:1 ::1:1x [127.0.0.1]:1 []:1 [::1]1 1.2.3.4.5:1";

    for (const char *bad = ""; bad != NULL; bad = check_word(&rest)) {
        unsigned port = 0;
        const char *why = NULL;

        CHECK_INT(http_listen(bad, &port, &why), -1);
        CHECK(why != NULL && !http_address_is_loopback(bad));
    }
    CHECK(http_address_is_loopback("127.0.0.1:0") && http_address_is_loopback("127.9.9.9:1"));
    CHECK(http_address_is_loopback("[::1]:8700") && http_address_is_loopback("[::ffff:127.0.0.1]:1"));
    CHECK(!http_address_is_loopback("0.0.0.0:1") && !http_address_is_loopback("[::]:1"));
    CHECK(!http_address_is_loopback("128.0.0.1:1") && !http_address_is_loopback("[::ffff:1.2.3.4]:1"));
}

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t len = sizeof(value);

    getsockopt(fd, level, option, &value, &len);
    return value;
}

static void accepted_sockets_notice_a_dead_peer_within_15_s(void)
{
    unsigned port = 0;
    const char *why = NULL;
    int fd = http_listen("127.0.0.1:0", &port, &why);
    struct pollfd come = {fd, POLLIN, 0};
    struct client c;

    client_open(&c, port);
    CHECK(poll(&come, 1, 5000) == 1);
    int accepted = accept(fd, NULL, NULL);
    CHECK_INT(option_of(accepted, SOL_SOCKET, SO_KEEPALIVE), 1);
    CHECK_INT(option_of(accepted, IPPROTO_TCP, TCP_KEEPIDLE) +
                  option_of(accepted, IPPROTO_TCP, TCP_KEEPINTVL) *
                      option_of(accepted, IPPROTO_TCP, TCP_KEEPCNT),
              14);
    CHECK_INT(option_of(accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    http_socket_hurry(accepted);
    CHECK_INT(option_of(accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 13000);
    CHECK_INT(option_of(accepted, IPPROTO_TCP, TCP_NODELAY), 1);
    close(accepted);
    close(fd);
    client_close(&c);
}

static void the_drawing_of_the_states_and_the_code_agree(void)
{
    static const char *const names[STATE_COUNT] = {"HEAD",     "BODY",    "RUNNING", "SUSPENDED",
                                                   "ANSWERED", "SENDING", "ABORTED"};

    CHECK_INT(drawing_check("shared/http/http_internal.h", names, STATE_COUNT, http_state_may, NULL), 8);
}

int main(void)
{
    struct http_options options = sample_options();

    server = sample_start(options);
    check_all_as("when_polled");
    options.suspend_always = true;
    server = sample_start(options);
    check_all_as("when_suspended");
    RUN(listening_addresses_are_read_strictly);
#ifndef OVER_TLS /* whose server it is not */
    RUN(accepted_sockets_notice_a_dead_peer_within_15_s);
#else
    (void)accepted_sockets_notice_a_dead_peer_within_15_s;
#endif
    RUN(the_drawing_of_the_states_and_the_code_agree);
    return check_done();
}
