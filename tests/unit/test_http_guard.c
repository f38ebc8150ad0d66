/* test_http_guard.c - heads that are not exactly one request are refused, with all that follows them. */
#include "tests/unit/http_client.h"
#include "tests/unit/http_sample.h"

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

/* Refused by us: 400 invalid-request, then the end. */
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
    ROW("folded twice", LINE "Host: x\r\nX-Test: a\r\n b\r\n c\r\n\r\n" NEXT),
    ROW("folded Host", LINE "Host: x\r\n y\r\n\r\n" NEXT),
    ROW("folded Content-Length", POST "Content-Length: 5\r\n 5\r\n\r\nhello" NEXT),
    ROW("fold before the first header", LINE " X: y\r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL in a value", LINE "Host: x\r\nX-Test: a\0b\r\n\r\n" NEXT),
    ROW("NUL at the end of a value", LINE "Host: x\r\nX-Test: a\0\r\n\r\n" NEXT),
    ROW("NUL at the begin of a value", LINE "Host: x\r\nX-Test:\0a\r\n\r\n" NEXT),
    ROW("NUL and white space", LINE "Host: x\r\nX-Test: \0 \r\n\r\n" NEXT),
    ROW("NUL in the last header", LINE "Host: x\0y\r\n\r\n" NEXT),
    ROW("NUL that hides a length", POST "X: a\0\r\nContent-Length: 5\r\n\r\nhello" NEXT),
    ROW("NUL that hides a line end", POST "X: a\0b\nContent-Length: 5\r\n\r\nhello" NEXT),
    ROW("a line that begins with NUL", LINE "Host: x\r\n\0Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    ROW("NUL as the empty line", LINE "Host: x\r\n\0\r\n" NEXT),
    ROW("bare line feed after a header", LINE "Host: x\nX-Test: a\r\n\r\n" NEXT),
    ROW("bare line feed as the empty line", LINE "Host: x\r\n\n" NEXT),
    ROW("bare line feed after the request line", "GET /tell/x HTTP/1.1\nHost: x\r\n\r\n" NEXT),
    ROW("bare line feeds only", "GET /tell/x HTTP/1.1\nHost: x\n\n" NEXT),
    ROW("bare carriage return in a value", LINE "Host: x\r\nX-Test: a\rb\r\n\r\n" NEXT),
    ROW("carriage return twice", LINE "Host: x\r\nX-Test: a\r\r\n\r\n" NEXT),
    ROW("control character in a value", LINE "Host: x\r\nX-Test: a\x01\r\n\r\n" NEXT),
    ROW("escape in a value", LINE "Host: x\r\nX-Test: \x1b[1m\r\n\r\n" NEXT),
    ROW("DEL in a value", LINE "Host: x\r\nX-Test: a\x7f\r\n\r\n" NEXT),
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
    ROW("NUL at the end of the target", "GET /tell/x\0 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL in the query", "GET /tell/x?a\0b HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("NUL in the method", "GE\0T /tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("control character in the target", "GET /tell/x\x01 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("DEL in the target", "GET /tell/x\x7f HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("high byte in the target", "GET /tell/\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("cut escape", "GET /tell/x%4 HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("lone percent", "GET /tell/x% HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("escape that is not hexadecimal", "GET /tell/x%4g HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("bad escape in the query", "GET /tell/x?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("method that is no token", "G@T /tell/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
    ROW("long method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG /any/x HTTP/1.1\r\nHost: x\r\n\r\n" NEXT),
};

/* Refused by libmicrohttpd before we are asked: with a page of its own, or by closing. */
static const struct guard_row closed[] = {
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
    for (size_t at = 0, step = how == AT_ONCE ? bytes.len : 1; at < bytes.len; at += step) {
        client_send(c, (struct bytes){bytes.at + at, step});
    }
}

static void check_refused(const struct guard_row *row, enum delivery how)
{
    struct client c;

    deliver(&c, row->bytes, how);
    bool good_answer = CHECK_INT(client_read(&c, true), 400) &&
                       CHECK_TEXT(client_code(&c), BYTES("invalid-request")) &&
                       CHECK_TEXT(client_header(&c, "Connection"), BYTES("close"));
    if (!CHECK(client_ends(&c)) || !good_answer) {
        printf("# %s, %d\n", row->what, (int)how);
    }
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

TEST(what_libmicrohttpd_refuses_by_itself_is_closed_too)
{
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
        for (enum delivery how = AT_ONCE; how <= BEHIND_ANOTHER; how++) {
            struct client c;
            unsigned status;

            deliver(&c, closed[i].bytes, how);
            status = client_read(&c, true);
            while (c.status != 0 && !c.ended && client_more(&c)) {
            }
            if (!CHECK((status == 0 || status >= 400) && c.ended &&
                       memmem(c.buf, c.len, "smuggled", 8) == NULL)) {
                printf("# %s, %d: %u\n", closed[i].what, (int)how, status);
            }
            client_close(&c);
        }
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
            if (!CHECK_INT(client_read(&c, true), 200) || !served) {
                printf("# %s, %d\n", good[i].what, (int)how);
            }
            client_close(&c);
        }
    }
}

TEST(the_refusal_says_nothing_to_a_head_request_but_the_head)
{
    struct client c;

    client_open(&c, server.port);
    client_text(&c, "HEAD /tell/x HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n");
    CHECK_INT(client_read(&c, false), 400);
    CHECK(client_ends(&c));
    client_close(&c);
}

TEST(bad_chunks_end_the_connection)
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
        struct client c;

        client_open(&c, server.port);
        client_text(&c, POST "Transfer-Encoding: chunked\r\n\r\n");
        client_text(&c, bodies[i]);
        client_text(&c, NEXT);
        CHECK(client_read(&c, true) != 200);
        while (!c.ended && client_more(&c)) {
        }
        CHECK(c.ended && memmem(c.buf, c.len, "smuggled", 8) == NULL);
        client_close(&c);
    }
}

int main(void)
{
    server = sample_start(sample_options());
    RUN(a_head_that_is_not_exactly_one_request_is_refused_and_the_connection_closed);
    RUN(what_libmicrohttpd_refuses_by_itself_is_closed_too);
    RUN(what_is_unusual_but_clear_is_served);
    RUN(the_refusal_says_nothing_to_a_head_request_but_the_head);
    RUN(bad_chunks_end_the_connection);
    client_stop(server.port);
    return sample_wait(server) == 0 ? check_done() : 1;
}
