/* test_http_guard.c - heads that are not exactly one request are refused, with all that follows them. */
#include "tests/component/http_client.h"
#include "tests/component/http_sample.h"

static struct sample_child server;

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define NEXT GET("/tell/smuggled")
#define LINE "GET /tell/x HTTP/1.1\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: x\r\n"

struct guard_row {
    const char *what;
    struct bytes bytes;
};

#define ROW(what, text)                                                                                      \
    {                                                                                                        \
        what,                                                                                                \
        {                                                                                                    \
            text, sizeof(text) - 1                                                                           \
        }                                                                                                    \
    }

/* 400 invalid-request, then the end. */
static const struct guard_row refused[] = {
    ROW("two Content-Length", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" NEXT),
    ROW("two Content-Length that differ", POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\nhello" NEXT),
    ROW("length and coding", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    ROW("coding and length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" NEXT),
    ROW("two codings", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    ROW("a coding before chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT),
    ROW("identity", POST "Transfer-Encoding: identity\r\n\r\n" NEXT),
    ROW("chunked with a parameter", POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n" NEXT),
    ROW("quoted chunked", POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" NEXT),
    ROW("empty coding", POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n" NEXT),
    ROW("chunked in HTTP/1.0",
        "POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    ROW("19 digits of length", POST "Content-Length: 0000000000000000005\r\n\r\nhello" NEXT),
    ROW("no Host", "GET /tell/x HTTP/1.1\r\n\r\n" NEXT),
    ROW("two Hosts", LINE "Host: x\r\nHost: x\r\n\r\n" NEXT),
    ROW("two Hosts in HTTP/1.0", "GET /tell/x HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n" NEXT),
    ROW("a Host with a path", LINE "Host: x/y\r\n\r\n" NEXT),
    ROW("a Host with a space", LINE "Host: x y\r\n\r\n" NEXT),
    ROW("a Host with a user", LINE "Host: u@x\r\n\r\n" NEXT),
    ROW("folded value", LINE "Host: x\r\nX-Test: a\r\n b\r\n\r\n" NEXT),
    ROW("folded by a tab", LINE "Host: x\r\nX-Test: a\r\n\tb\r\nY: z\r\n\r\n" NEXT),
    ROW("folded Content-Length", POST "Content-Length: 5\r\n 5\r\n\r\nhello" NEXT),
    ROW("fold before the first header", LINE " X: y\r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL in a value", LINE "Host: x\r\nX-Test: a\0b\r\n\r\n" NEXT),
    ROW("NUL that hides a length", POST "X: a\0\r\nContent-Length: 5\r\n\r\nhello" NEXT),
    ROW("a line that begins with NUL", LINE "Host: x\r\n\0Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    ROW("NUL as the empty line", LINE "Host: x\r\n\0\r\n" NEXT),
    ROW("bare line feed after a header", LINE "Host: x\nX-Test: a\r\n\r\n" NEXT),
    ROW("bare line feed as the empty line", LINE "Host: x\r\n\n" NEXT),
    ROW("bare line feed after the request line", "GET /tell/x HTTP/1.1\nHost: x\r\n\r\n" NEXT),
    ROW("bare carriage return in a value", LINE "Host: x\r\nX-Test: a\rb\r\n\r\n" NEXT),
    ROW("carriage return twice", LINE "Host: x\r\nX-Test: a\r\r\n\r\n" NEXT),
    ROW("control character in a value", LINE "Host: x\r\nX-Test: 01234567\x01zyxwvut\r\n\r\n" NEXT),
    ROW("escape in a value", LINE "Host: x\r\nX-Test: \x1b[1m\r\n\r\n" NEXT),
    ROW("DEL in a value", LINE "Host: x\r\nX-Test: 01234567zyxwvut\x7f\r\n\r\n" NEXT),
    ROW("white space before the colon", LINE "Host: x\r\nX-Test : a\r\n\r\n" NEXT),
    ROW("white space before the colon of a length", POST "Content-Length : 5\r\n\r\nhello" NEXT),
    ROW("tab before the colon", LINE "Host: x\r\nX-Test\t: a\r\n\r\n" NEXT),
    ROW("empty name", LINE "Host: x\r\n: a\r\n\r\n" NEXT),
    ROW("space in a name", LINE "Host: x\r\nX Test: a\r\n\r\n" NEXT),
    ROW("slash in a name", LINE "Host: x\r\nX/Test: a\r\n\r\n" NEXT),
    ROW("control character in a name", LINE "Host: x\r\nX\x02Test: a\r\n\r\n" NEXT),
    ROW("high byte in a name", LINE "Host: x\r\nX\xe4: a\r\n\r\n" NEXT),
    ROW("HTTP/1.2", "GET /tell/x HTTP/1.2\r\nHost: x\r\n\r\n" NEXT),
    ROW("absolute form of another host", "GET http://y/tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("authority form", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("CONNECT of a path", "CONNECT /any/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("asterisk form", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("no slash", "GET tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("only a query", "GET ?a HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("fragment", "GET /tell/x#y HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("fragment in the query", "GET /tell/x?a#y HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("space in the target", "GET /tell/x y HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("two spaces before the target", "GET  /tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("two spaces behind the target", "GET /tell/x  HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("tab in the target", "GET /tell/x\ty HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL in the target", "GET /tell/x\0y HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL in the method", "GE\0T /tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("control character in the target", "GET /tell/x\x01 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("DEL in the target", "GET /tell/x\x7f HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("high byte in the target", "GET /tell/\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("cut escape", "GET /tell/x%4 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("escape that is not hexadecimal", "GET /tell/x%4g HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("bad escape in the query", "GET /tell/x?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("method that is no token", "G@T /tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("long method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG /any/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("signed length", POST "Content-Length: +5\r\n\r\nhello" NEXT),
    ROW("negative length", POST "Content-Length: -5\r\n\r\nhello" NEXT),
    ROW("hexadecimal length", POST "Content-Length: 0x5\r\n\r\nhello" NEXT),
    ROW("length with a fraction", POST "Content-Length: 5.0\r\n\r\nhello" NEXT),
    ROW("list of lengths", POST "Content-Length: 5, 5\r\n\r\nhello" NEXT),
    ROW("empty length", POST "Content-Length:\r\n\r\nhello" NEXT),
    ROW("huge length", POST "Content-Length: 99999999999999999999999\r\n\r\nhello" NEXT),
    ROW("no version", "GET /tell/x\r\nHost: x\r\n\r\n" NEXT),
    ROW("HTTP/0.9", "GET /tell/x HTTP/0.9\r\nHost: x\r\n\r\n" NEXT),
    ROW("HTTP/2.0", "GET /tell/x HTTP/2.0\r\nHost: x\r\n\r\n" NEXT),
    ROW("the begin of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" NEXT),
    ROW("version in lower case", "GET /tell/x http/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("version of two digits", "GET /tell/x HTTP/1.10\r\nHost: x\r\n\r\n" NEXT),
    ROW("white space behind the version", "GET /tell/x HTTP/1.1 \r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL behind the version", "GET /tell/x HTTP/1.1\0\nHost: x\r\n\r\n" NEXT),
    ROW("line without a colon", LINE "Host: x\r\nnonsense\r\n\r\n" NEXT),
    ROW("NUL in a name", LINE "Host: x\r\nX\0Y: a\r\n\r\n" NEXT),
    ROW("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n" NEXT),
    ROW("white space behind a length", POST "Content-Length: 5 \r\n\r\nhello" NEXT),
    ROW("white space behind a coding", POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n" NEXT),
    ROW("two empty lines before", "\r\n\r\n" LINE "Host: x\r\n\r\n" NEXT),
    ROW("an empty line before that ends otherwise", "\n" LINE "Host: x\r\n\r\n" NEXT),
    ROW("a carriage return alone in front of a field", LINE "Host: x\r\n\rX: a\r\n\r\n" NEXT),
    ROW("a NUL before the line feed", LINE "Host: x\0\n\r\n" NEXT),
};

/* What must not be taken for any of these. */
static const struct guard_row good[] = {
    ROW("nothing special", LINE "Host: x\r\n\r\n"),
    ROW("empty Host", LINE "Host:\r\n\r\n"),
    ROW("Host with a port", LINE "Host: [::1]:8700\r\n\r\n"),
    ROW("Host with white space around it", LINE "Host: \t x \t\r\n\r\n"),
    ROW("high bytes in a value", LINE "Host: x\r\nX-Test: \xc3\xa4\xff\r\n\r\n"),
    ROW("tab in a value", LINE "Host: x\r\nX-Test: a\tb\r\n\r\n"),
    ROW("empty values", LINE "Host: x\r\nX-Test:\r\nX-Test: \r\n\r\n"),
    ROW("colons in a value", LINE "Host: x\r\nX-Test: :a:b\r\n\r\n"),
    ROW("every token character", LINE "Host: x\r\n!#$%&'*+-.^_`|~09AZaz: a\r\n\r\n"),
    ROW("every other visible character in the target",
        "GET /tell/!\"$&'()*+,-.:;<=>@[\\]^_`{|}~?/?!\"$&'()*+,-.:;<=>@[\\]^_`{|}~ HTTP/1.1\r\nHost: "
        "x\r\n\r\n"),
    ROW("escapes", "GET /tell/%2F%00%2e?%0d%0A HTTP/1.1\r\nHost: x\r\n\r\n"),
    ROW("an empty line before", "\r\nGET /tell/x HTTP/1.1\r\nHost: x\r\n\r\n"),
    ROW("long method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF /any/x HTTP/1.1\r\nHost: x\r\n\r\n"),
    ROW("HTTP/1.0 without headers but one", "GET /tell/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
    ROW("coding in capitals", POST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
    ROW("length with zeros in front", POST "Content-Length: 000000000000000005\r\n\r\nhello"),
    ROW("length of nothing", POST "Content-Length: 0\r\n\r\n"),
    ROW("cookies", LINE "Host: x\r\nCookie: a=b; c=\"d\"\r\n\r\n"),
};

/* The guards must not depend on how the bytes come in. */
enum delivery { AT_ONCE, BYTE_BY_BYTE, BEHIND_ANOTHER };

static void deliver(struct client *c, struct bytes bytes, enum delivery how)
{
    client_open(c, server.port);
    if (how == BEHIND_ANOTHER) {
        static const char first[] = GET("/later/1");
        char text[2048];

        memcpy(text, first, sizeof(first) - 1);
        memcpy(text + sizeof(first) - 1, bytes.at, bytes.len);
        client_send(c, (struct bytes){text, sizeof(first) - 1 + bytes.len});
        CHECK_INT(client_read(c, true), 200);
        return;
    }
    for (size_t at = 0, step = how == AT_ONCE ? bytes.len : 1; at < bytes.len; at += step)
        client_send(c, (struct bytes){bytes.at + at, step});
}

static void check_refused(const struct guard_row *row, enum delivery how)
{
    struct client c;

    deliver(&c, row->bytes, how);
    bool good_answer = CHECK_INT(client_read(&c, true), 400) &&
                       CHECK_TEXT(client_code(&c), BYTES("invalid-request")) &&
                       CHECK_TEXT(client_header(&c, "Connection"), BYTES("close"));
    if (!CHECK(client_ends(&c)) || !good_answer)
        printf("# %s, %d\n", row->what, (int)how);
    client_close(&c);
}

TEST(a_head_that_is_not_exactly_one_request_is_refused_and_the_connection_closed)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        check_refused(&refused[i], AT_ONCE);
        check_refused(&refused[i], BYTE_BY_BYTE);
        check_refused(&refused[i], BEHIND_ANOTHER);
    }
}

TEST(what_is_unusual_but_clear_is_served)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        for (enum delivery how = AT_ONCE; how <= BEHIND_ANOTHER; how++) {
            struct client c;

            deliver(&c, good[i].bytes, how);
            bool served = CHECK_INT(client_read(&c, true), 200);
            client_text(&c, GET("/hello"));
            if (!CHECK_INT(client_read(&c, true), 200) || !served)
                printf("# %s, %d\n", good[i].what, (int)how);
            client_close(&c);
        }
    }
}

/* What was sent has been read when a later one has been answered. */
static void send_alone(struct client *c, struct client *other, struct bytes bytes)
{
    client_send(c, bytes);
    CHECK_INT(client_next(other, GET("/hello")), 200);
}

TEST(heads_and_bodies_may_be_cut_anywhere)
{
    static const char text[] = "\r\n" POST "Content-Length: 5\r\n\r\nhello" GET("/tell/x") POST
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n\r\n" GET("/hello");
    static const char *const said[] = {"hello", "\"part\":\"x\"", "abc", "world"};
    struct client c, other;

    client_open(&other, server.port);
    for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
        client_open(&c, server.port);
        send_alone(&c, &other, (struct bytes){text, cut});
        client_send(&c, (struct bytes){text + cut, sizeof(text) - 1 - cut});
        for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
            if (!CHECK_INT(client_read(&c, true), 200) || !CHECK(client_says(&c, said[i])))
                printf("# cut at %zu, answer %zu\n", cut, i);
        client_close(&c);
    }
    client_close(&other);
}

/* More of them than are read at once: heads, bodies and chunks end at every place of a read. */
TEST(many_requests_may_come_at_once)
{
    enum { REQUESTS = 120, HEAD = 200, EACH = 7100 };
    char *text = malloc((size_t)REQUESTS * EACH), *at = text;
    struct client c;

    for (unsigned i = 0; i < REQUESTS; i++) {
        size_t len = i * 57 % 6900 + 1;

        at += snprintf(at, HEAD,
                       i % 3 == 0 ? POST "Content-Length: %zu\r\n\r\n"
                                  : POST "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                       len);
        memset(at, 'a' + (int)(i % 26), len);
        at += len;
        at += i % 3 == 0 ? 0 : snprintf(at, HEAD, "\r\n0\r\n\r\n");
    }
    client_open(&c, server.port);
    client_send(&c, (struct bytes){text, (size_t)(at - text)});
    for (unsigned i = 0; i < REQUESTS; i++) {
        size_t len = i * 57 % 6900 + 1;

        if (!CHECK_INT(client_read(&c, true), 200) || !CHECK_INT(c.body.len, len) ||
            !CHECK(c.body.at[0] == 'a' + (int)(i % 26) && c.body.at[len - 1] == c.body.at[0])) {
            printf("# request %u\n", i);
            break;
        }
    }
    client_close(&c);
    free(text);
}

TEST_CLIENT(the_refusal_says_nothing_to_a_head_request_but_the_head)
{
    client_say(c, server.port, "HEAD /tell/x HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n");
    CHECK_INT(client_read(c, false), 400);
    CHECK(client_ends(c));
}

TEST_CLIENT(bad_chunks_end_the_connection)
{
    static const char *const bodies[] = {"x\r\n",
                                         "-1\r\na\r\n",
                                         "1\r\nabc",
                                         "0x1\r\na\r\n",
                                         "1 \r\na\r\n0\r\n\r\n",
                                         "fffffffffffffffff\r\na",
                                         "\r\n",
                                         ";\r\n",
                                         "1\r\na0\r\n\r\n"};

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        CHECK(client_anew(c, server.port,
                          textf("%s%s%s", POST "Transfer-Encoding: chunked\r\n\r\n", bodies[i], NEXT)) !=
              200);
        while (!c->ended && client_more(c)) {
        }
        CHECK(c->ended && memmem(c->buf, c->len, "smuggled", 8) == NULL);
    }
}

static unsigned ask_with_trailers(struct client *c, unsigned count)
{
    client_close(c);
    client_say(c, server.port, POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n");
    for (unsigned i = 0; i < count; i++)
        client_text(c, "a:\r\n");
    client_text(c, "\r\n" GET("/hello"));
    return client_read(c, true);
}

/* libmicrohttpd keeps a record of each, and has not room for all that would fit into their bytes. */
TEST_CLIENT(too_many_trailers_are_refused_before_libmicrohttpd_refuses_them)
{
    static const unsigned counts[] = {46, 200, 700};

    CHECK_INT(ask_with_trailers(c, 45), 200);
    CHECK_INT(client_read(c, true), 200);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        CHECK_INT(ask_with_trailers(c, counts[i]), 400);
        CHECK_TEXT(client_code(c), BYTES("invalid-request"));
        CHECK(client_ends(c));
    }
}

int main(void)
{
    struct http_options suspending = sample_options();
    struct sample_child polling;

    suspending.suspend_always = true;
    server = sample_start(suspending);
    RUN(a_head_that_is_not_exactly_one_request_is_refused_and_the_connection_closed);
    RUN(heads_and_bodies_may_be_cut_anywhere);
    polling = sample_start(sample_options());
    client_stop(server.port);
    CHECK_INT(sample_wait(server), 0);
    server = polling;
    check_all_as(NULL);
    client_stop(server.port);
    return sample_wait(server) == 0 ? check_done() : 1;
}
