/* test_answer.c - the parser of answers: what is whole, what is malformed, however it is cut. */
#include <stdlib.h>

#include "shared/http/answer.h"
#include "tests/unit/check.h"

enum { SAID_MAX = 4096, TAKE_ALL = 1 << 20 };

/* What the parser has said of a text: "STATUS LENGTH KEEP_MS |BODY| END". */
struct said {
    char text[SAID_MAX];
    size_t len;
    char body[SAID_MAX];
    size_t body_len;
    bool over;
};

static void said_put(struct said *said, const char *text)
{
    size_t len = strlen(text);

    len = len < SAID_MAX - 1 - said->len ? len : SAID_MAX - 1 - said->len;
    memcpy(said->text + said->len, text, len);
    said->len += len;
    said->text[said->len] = '\0';
}

static void said_over(struct said *said, const char *how, const char *why)
{
    said->body[said->body_len] = '\0';
    said_put(said, textf("|%s", said->over ? "twice" : ""));
    said_put(said, said->body);
    said_put(said, "| ");
    said_put(said, how);
    said_put(said, why);
    said->over = true;
}

static void said_head(struct said *said, const struct answer *answer)
{
    said_put(said, textf("%u %lld %u ", answer->status, (long long)answer->length, answer->keep_ms));
}

/* Gives the parser these bytes; take_max of a piece at once. */
static void give(struct said *said, struct answer *answer, struct bytes in, size_t take_max)
{
    while (!said->over) {
        switch (answer_next(answer, &in)) {
        case ANSWER_MORE: CHECK_INT(in.len, 0); return;
        case ANSWER_HEAD: said_head(said, answer); break;
        case ANSWER_PIECE: {
            size_t len = answer->piece.len < take_max ? answer->piece.len : take_max;

            memcpy(said->body + said->body_len, answer->piece.at, len);
            said->body_len += len;
            answer_take(answer, &in, len);
            break;
        }
        case ANSWER_WHOLE: said_over(said, "whole ", textf("%zu", in.len)); break;
        case ANSWER_MALFORMED: said_over(said, "malformed: ", answer->why); break;
        }
    }
}

static void give_fin(struct said *said, struct answer *answer)
{
    if (!said->over) {
        bool whole = answer_fin(answer) == ANSWER_WHOLE;

        said_over(said, whole ? "whole at the end" : "malformed: ", whole ? "" : answer->why);
    }
}

/* As it comes in two packets, in one when cut is 0; then the upstream closes. */
static void parse_cut(struct said *said, enum answer_to to, struct bytes text, size_t cut, size_t take_max)
{
    struct answer answer = {0};
    bool was_over;

    *said = (struct said){0};
    answer_init(&answer, to);
    give(said, &answer, (struct bytes){text.at, cut}, take_max);
    was_over = said->over;
    if (!was_over)
        give(said, &answer, (struct bytes){text.at + cut, text.len - cut}, take_max);
    give_fin(said, &answer);
    answer_done(&answer);
}

static void parse_bytes(struct said *said, enum answer_to to, struct bytes text)
{
    struct answer answer = {0};

    *said = (struct said){0};
    answer_init(&answer, to);
    for (size_t i = 0; i < text.len && !said->over; i++)
        give(said, &answer, (struct bytes){text.at + i, 1}, TAKE_ALL);
    give_fin(said, &answer);
    answer_done(&answer);
}

/* But for the number behind "whole", which says how many bytes were over in the last packet. */
static bool says_same(const struct said *got, const struct said *wanted)
{
    const char *end = strstr(wanted->text, "| whole ");
    size_t len = end != NULL ? (size_t)(end - wanted->text) + 8 : wanted->len;

    return strncmp(got->text, wanted->text, len) == 0 && (end != NULL || got->len == len);
}

static void check_answer(enum answer_to to, struct bytes text, const char *wanted)
{
    struct said at_once, said;

    parse_cut(&at_once, to, text, 0, TAKE_ALL);
    if (!CHECK_TEXT(bytes_of(at_once.text), bytes_of(wanted)))
        printf("# of %.*s\n", (int)text.len, text.at);
    for (size_t cut = 1; cut <= text.len; cut++) {
        parse_cut(&said, to, text, cut, cut % 3 + 1);
        if (!CHECK(says_same(&said, &at_once)))
            printf("# cut at %zu: %s\n", cut, said.text);
    }
    parse_bytes(&said, to, text);
    CHECK(says_same(&said, &at_once));
}

struct row {
    const char *text, *wanted;
};

#define CHECK_ROWS(rows, to) check_rows((rows), sizeof(rows) / sizeof((rows)[0]), (to))

static void check_rows(const struct row *rows, size_t count, enum answer_to to)
{
    for (size_t i = 0; i < count; i++)
        check_answer(to, bytes_of(rows[i].text), rows[i].wanted);
}

/* Each of the texts, which have a | between two, with this in front of it and behind. */
static void check_each(enum answer_to to, const char *front, const char *texts, const char *behind,
                       const char *wanted)
{
    char text[256]; /* what textf() gives does not last through a check */

    for (const char *part; (part = check_part(&texts, "|")) != NULL;) {
        snprintf(text, sizeof(text), "%s%s%s", front, part, behind);
        check_answer(to, bytes_of(text), wanted);
    }
}

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

TEST(an_answer_with_a_length_is_whole_at_its_last_byte_and_not_before)
{
    static const struct row rows[] = {
        {OK "Content-Length: 5\r\n\r\nhello", "200 5 1000 |hello| whole 0"},
        {OK "Content-Length: 5\r\n\r\nhell",
         "200 5 1000 |hell| malformed: it closed the connection within the body of its answer"},
        {OK "content-LENGTH:5\r\n\r\nhello", "200 5 1000 |hello| whole 0"},
        {OK "Content-Length: \t 005 \t\r\n\r\nhello", "200 5 1000 |hello| whole 0"},
        {OK "Content-Length: 0\r\n\r\n", "200 0 1000 || whole 0"},
        {OK "Content-Length: 5\r\n\r\nhello!", "200 5 1000 |hello| whole 1"},
        {OK "Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "200 0 1000 || whole 19"},
        {"HTTP/1.1 201\r\nContent-Length: 1\r\n\r\nx", "201 1 1000 |x| whole 0"},
        {"HTTP/1.1 201 \r\nContent-Length: 1\r\n\r\nx", "201 1 1000 |x| whole 0"},
        {"HTTP/1.1 599 a b\tc \xc3\xa4\r\nContent-Length: 1\r\n\r\nx", "599 1 1000 |x| whole 0"},
        {"HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n", "205 0 1000 || whole 0"},
        {OK "Content-Length: 999999999999999999\r\n\r\nx",
         "200 999999999999999999 1000 |x| malformed: it closed the connection within the body of its answer"},
    };

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
}

TEST(chunks_are_put_together_and_extensions_and_trailers_dropped)
{
    static const struct row rows[] = {
        {CHUNKED "5\r\nhello\r\n0\r\n\r\n", "200 -1 1000 |hello| whole 0"},
        {CHUNKED "0\r\n\r\n", "200 -1 1000 || whole 0"},
        {CHUNKED "1\r\nh\r\n0004\r\nello\r\n000\r\n\r\n", "200 -1 1000 |hello| whole 0"},
        {CHUNKED "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
         "200 -1 1000 |01234567890123456789| whole 0"},
        {CHUNKED "5;a=b;c=\"d\"\r\nhello\r\n0;last\r\n\r\n", "200 -1 1000 |hello| whole 0"},
        {CHUNKED "5 \t;a\r\nhello\r\n0\r\n\r\n", "200 -1 1000 |hello| whole 0"},
        {CHUNKED "5\r\nhello\r\n0\r\nX: y\r\nContent-Length: 7\r\n\r\n", "200 -1 1000 |hello| whole 0"},
        {CHUNKED "5\r\nhello\r\n0\r\n\r\nHTTP", "200 -1 1000 |hello| whole 4"},
        {CHUNKED "2\r\n\r\n\r\n0\r\n\r\n", "200 -1 1000 |\r\n| whole 0"},
        {OK "transfer-encoding:CHUNKED\r\n\r\n0\r\n\r\n", "200 -1 1000 || whole 0"},
    };

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
}

#define IN_BODY "malformed: it closed the connection within the body of its answer"
#define NO_SIZE "malformed: the size of a chunk of its answer is not a hexadecimal number"
#define NO_END "malformed: a chunk of its answer is not followed by a line end"

TEST(chunks_that_are_not_well_made_are_refused)
{
    static const struct row rows[] = {
        {CHUNKED "5\r\nhello\r\n", "200 -1 1000 |hello| " IN_BODY},
        {CHUNKED "5\r\nhello\r\n0\r\n", "200 -1 1000 |hello| " IN_BODY},
        {CHUNKED "5\r\nhello\r\n0\r\nX: y\r\n", "200 -1 1000 |hello| " IN_BODY},
        {CHUNKED "5\r\nhel", "200 -1 1000 |hel| " IN_BODY},
        {CHUNKED "5\r\nhello", "200 -1 1000 |hello| " IN_BODY},
        {CHUNKED "5\r\nhello!\r\n0\r\n\r\n", "200 -1 1000 |hello| " NO_END},
        {CHUNKED "0000000000000005\r\n",
         "200 -1 1000 || malformed: the size of a chunk of its answer has too many digits"},
        {CHUNKED "fffffffffffffff\r\nx", "200 -1 1000 |x| " IN_BODY},
        {CHUNKED "5\nhello\r\n0\r\n\r\n",
         "200 -1 1000 || malformed: its answer has a control character in it"},
        {CHUNKED "5\rhello\r\n0\r\n\r\n",
         "200 -1 1000 || malformed: its answer has a carriage return that ends no line"},
        {CHUNKED "0\r\n folded\r\n\r\n", "200 -1 1000 || malformed: its answer has a folded line"},
        {CHUNKED "0\r\nX : y\r\n\r\n", "200 -1 1000 || malformed: its answer has a line that is not a name "
                                       "directly followed by a colon"},
    };

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
    check_each(ANSWER_TO_OTHER, CHUNKED, "\r\n| 5|5 |5 x|0x5|-5|+5|;a=b|g", "\r\nhello\r\n",
               "200 -1 1000 || " NO_SIZE);
}

TEST(an_answer_until_close_is_whole_at_the_end_only)
{
    static const struct row rows[] = {
        {OK "\r\nhello", "200 -1 0 |hello| whole at the end"},
        {OK "\r\n", "200 -1 0 || whole at the end"},
        {"HTTP/1.0 200 OK\r\n\r\nhello", "200 -1 0 |hello| whole at the end"},
        {"HTTP/1.1 205 Reset\r\n\r\n", "205 -1 0 || whole at the end"},
        {OK, "|| malformed: it closed the connection within the head of its answer"},
        {OK "X: y\r\n", "|| malformed: it closed the connection within the head of its answer"},
        {OK "X: y\r\n\r", "|| malformed: it closed the connection within the head of its answer"},
        {"", "|| malformed: it closed the connection without an answer"},
        {"HTTP/1.1 2", "|| malformed: it closed the connection without an answer"},
    };

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
}

TEST(what_has_no_body_ends_with_its_head)
{
    static const struct row of_head[] = {
        {OK "Content-Length: 5\r\n\r\n", "200 5 1000 || whole 0"},
        {CHUNKED, "200 -1 1000 || whole 0"},
        {OK "\r\n", "200 -1 1000 || whole 0"},
        {OK "Content-Length: 5\r\n\r\nhello", "200 5 1000 || whole 5"},
        {"HTTP/1.1 404 No\r\nContent-Length: x\r\n\r\n",
         "|| malformed: the Content-Length of its answer is not a number"},
        {"HTTP/1.1 100 Go\r\n\r\n" OK "Content-Length: 7\r\n\r\n", "200 7 1000 || whole 0"},
    };
    static const struct row of_other[] = {
        {"HTTP/1.1 204 No\r\n\r\n", "204 0 1000 || whole 0"},
        {"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", "204 0 1000 || whole 0"},
        {"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "204 0 0 || whole 5"},
        {"HTTP/1.1 304 Not Modified\r\n\r\n", "304 0 1000 || whole 0"},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "304 0 0 || whole 0"},
        {"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", "304 0 0 || whole 0"},
    };

    CHECK_ROWS(of_head, ANSWER_TO_HEAD);
    CHECK_ROWS(of_other, ANSWER_TO_OTHER);
}

#define TWO "|| malformed: its answer has more than one Content-Length or Transfer-Encoding"
#define CODING "|| malformed: its answer has a Transfer-Encoding other than chunked"
#define NO_NUMBER "|| malformed: the Content-Length of its answer is not a number"

TEST(what_leaves_the_end_open_to_two_readings_is_malformed)
{
    static const struct row rows[] = {
        {OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", TWO},
        {OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", TWO},
        {OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", TWO},
        {OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", TWO},
        {OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", TWO},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "|| malformed: its answer has a Transfer-Encoding in HTTP/1.0"},
    };

    for (unsigned i = 0; i < 2; i++) {
        enum answer_to to = i == 0 ? ANSWER_TO_OTHER : ANSWER_TO_HEAD;

        CHECK_ROWS(rows, to);
        check_each(to, OK "Content-Length:", " | 5, 5| +5| -1| 0x5| 5 5| 5;| 1000000000000000000",
                   "\r\n\r\nhello", NO_NUMBER);
        check_each(to, OK "Transfer-Encoding:",
                   " gzip, chunked| chunked, identity| identity| \"chunked\"| | chunked;q=1", "\r\n\r\n",
                   CODING);
    }
}

#define NO_VERSION "|| malformed: its answer does not begin with HTTP/1.1 or HTTP/1.0 and a status"
#define NO_STATUS "|| malformed: the status of its answer is not a number from 100 to 599"
#define NO_FIELD "|| malformed: its answer has a line that is not a name directly followed by a colon"
#define CONTROL "|| malformed: its answer has a control character in it"
#define NO_LINE "|| malformed: its answer has a carriage return that ends no line"

TEST(a_head_that_is_not_well_made_is_refused)
{
    static const struct row rows[] = {
        {"HTTP/1.1 200 OK\n\n", CONTROL},
        {"HTTP/1.1 200 O\x01K\r\n\r\n", CONTROL},
        {"\x15\x03\x01", "|| malformed: it answers with TLS, not HTTP: its address begins with https://"},
        {OK "\x15\x03", CONTROL},
        {"HTTP/1.1 200 O\x7fK\r\n\r\n", CONTROL},
        {OK "X: a\nY: b\r\n\r\n", CONTROL},
        {OK "X: a\r\rY: b\r\n\r\n", NO_LINE},
        {OK "X: a\rb\r\n\r\n", NO_LINE},
        {OK "X: a\r\n\rY", NO_LINE},
    };
    static const char nul[] = OK "X: a\0b\r\n\r\n", nul_name[] = OK "X\0: b\r\n\r\n";

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
    check_each(
        ANSWER_TO_OTHER, "",
        "\r\nHTTP/1.1 200 OK| HTTP/1.1 200 OK|http/1.1 200 OK|HTTP/1.2 200 OK|HTTP/2 200|HTTP/1.1200 OK|"
        "HTTP/1.1\t200 OK|HTTP/1.1 20|ICY 200 OK of old",
        "\r\n\r\n", NO_VERSION);
    check_each(ANSWER_TO_OTHER, "HTTP/1.1 ", "2000 OK| 200 OK|099 OK|600 OK|2x0 OK|200\tOK", "\r\n\r\n",
               NO_STATUS);
    check_each(ANSWER_TO_OTHER, OK, "X : a|X\t: a|X Y: a|X|: a|X(: a|X\xc3\xa4: a", "\r\n\r\n", NO_FIELD);
    check_each(ANSWER_TO_OTHER, OK, "X: a\r\n b| X: a|\tX: a", "\r\n\r\n",
               "|| malformed: its answer has a folded line");
    check_answer(ANSWER_TO_OTHER, (struct bytes){nul, sizeof(nul) - 1}, CONTROL);
    check_answer(ANSWER_TO_OTHER, (struct bytes){nul_name, sizeof(nul_name) - 1}, CONTROL);
}

#define GO "HTTP/1.1 100 Continue\r\n\r\n"
#define HINT "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

TEST(heads_with_1xx_are_dropped_some_of_them)
{
    static const struct row rows[] = {
        {GO OK "Content-Length: 1\r\n\r\nx", "200 1 1000 |x| whole 0"},
        {GO HINT GO HINT GO HINT GO HINT "HTTP/1.1 204 No\r\n\r\n", "204 0 1000 || whole 0"},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n",
         "|| malformed: it changes to a protocol that nobody asked for"},
        {"HTTP/1.1 100 Go\r\nContent-Length: 0\r\n\r\n" OK "Content-Length: 0\r\n\r\n",
         "200 0 1000 || whole 0"},
        {"HTTP/1.1 100 Go\r\nContent-Length: 1\r\n\r\nx" OK "\r\n",
         "|| malformed: its answer has a body behind a head that can have none"},
        {"HTTP/1.1 100 Go\r\nTransfer-Encoding: chunked\r\n\r\n",
         "|| malformed: its answer has a body behind a head that can have none"},
        {GO, "|| malformed: it closed the connection without an answer"},
        {"HTTP/1.1 100 Go\r\nConnection: close\r\n\r\nHTTP/1.1 204 No\r\n\r\n", "204 0 1000 || whole 0"},
    };

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
}

TEST(too_many_heads_with_1xx_are_malformed)
{
    static const char go[] = GO, end[] = "HTTP/1.1 204 No\r\n\r\n";
    static char text[(ANSWER_INTERIM_MAX + 1) * sizeof(go) + sizeof(end)];
    size_t len = 0;

    for (unsigned i = 0; i < ANSWER_INTERIM_MAX; i++, len += sizeof(go) - 1)
        memcpy(text + len, go, sizeof(go) - 1);
    memcpy(text + len, end, sizeof(end) - 1);
    check_answer(ANSWER_TO_OTHER, (struct bytes){text, len + sizeof(end) - 1}, "204 0 1000 || whole 0");
    memcpy(text + len, go, sizeof(go) - 1);
    memcpy(text + len + sizeof(go) - 1, end, sizeof(end) - 1);
    check_answer(ANSWER_TO_OTHER, (struct bytes){text, len + sizeof(go) + sizeof(end) - 2},
                 "|| malformed: its answer has too many heads");
}

TEST(a_connection_is_kept_only_when_both_sides_know_it)
{
    static const struct row rows[] = {
        {"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.1 204 No\r\nConnection: Keep-Alive, Close\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.1 204 No\r\nConnection: ,x ,\tclose\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.1 204 No\r\nConnection: x\r\nConnection: close\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.1 204 No\r\nConnection: closed\r\n\r\n", "204 0 1000 || whole 0"},
        {"HTTP/1.0 204 No\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.0 204 No\r\nConnection: keep-alive\r\n\r\n", "204 0 1000 || whole 0"},
        {"HTTP/1.1 204 No\r\nKeep-Alive: timeout=1\r\n\r\n", "204 0 500 || whole 0"},
        {"HTTP/1.1 204 No\r\nKeep-Alive: max=100, Timeout=1\r\n\r\n", "204 0 500 || whole 0"},
        {"HTTP/1.1 204 No\r\nKeep-Alive: timeout=75, max=5\r\n\r\n", "204 0 1000 || whole 0"},
        {"HTTP/1.1 204 No\r\nKeep-Alive: timeout=0\r\n\r\n", "204 0 0 || whole 0"},
        {"HTTP/1.1 204 No\r\nKeep-Alive: timeout=x\r\n\r\n", "204 0 1000 || whole 0"},
    };

    CHECK_ROWS(rows, ANSWER_TO_OTHER);
}

TEST(fields_are_told_as_they_came_without_the_white_space_around_them)
{
    static const char text[] = OK "Server: \t a b \t\r\nX-Empty:\r\nx-empty: \r\nA:b:c\r\n"
                                  "Content-Length: 0\r\n\r\n";
    struct answer_field fields[ANSWER_FIELDS_MAX];
    struct answer answer = {0};
    struct bytes in = BYTES(text);

    answer_init(&answer, ANSWER_TO_OTHER);
    CHECK_INT(answer_next(&answer, &in), ANSWER_HEAD);
    CHECK_INT(answer_fields(&answer, fields), 5);
    CHECK_TEXT(fields[0].name, BYTES("Server"));
    CHECK_TEXT(fields[0].value, BYTES("a b"));
    CHECK_TEXT(fields[1].name, BYTES("X-Empty"));
    CHECK_TEXT(fields[1].value, BYTES(""));
    CHECK_TEXT(fields[2].name, BYTES("x-empty"));
    CHECK_TEXT(fields[2].value, BYTES(""));
    CHECK_TEXT(fields[3].name, BYTES("A"));
    CHECK_TEXT(fields[3].value, BYTES("b:c"));
    CHECK_TEXT(fields[4].value, BYTES("0"));
    answer_done(&answer);
}

/* -- limits */

/* A text that is made of parts. */
struct made {
    char at[3 * ANSWER_HEAD_MAX];
    size_t len;
};

static void made_put(struct made *made, const char *text)
{
    size_t len = strlen(text);

    memcpy(made->at + made->len, text, len);
    made->len += len;
}

static void made_fill(struct made *made, char c, size_t len)
{
    memset(made->at + made->len, c, len);
    made->len += len;
}

static void check_made(const struct made *made, const char *wanted)
{
    struct said said, by_byte;

    parse_cut(&said, ANSWER_TO_OTHER, (struct bytes){made->at, made->len}, 0, TAKE_ALL);
    CHECK_TEXT(bytes_of(said.text), bytes_of(wanted));
    parse_bytes(&by_byte, ANSWER_TO_OTHER, (struct bytes){made->at, made->len});
    CHECK(says_same(&by_byte, &said));
}

#define LONG_HEAD "|| malformed: the head or the trailer of its answer is too long"

TEST(a_head_may_be_as_long_as_the_limit_says_and_no_longer)
{
    static const char begin[] = "HTTP/1.1 204 No\r\nX: ";

    for (size_t over = 0; over < 3; over++) {
        struct made made = {.len = 0};

        made_put(&made, begin);
        made_fill(&made, 'x', ANSWER_HEAD_MAX - (sizeof(begin) - 1) - 4 + over);
        made_put(&made, "\r\n\r\n");
        CHECK_INT(made.len, ANSWER_HEAD_MAX + over);
        check_made(&made, over == 0 ? "204 0 1000 || whole 0" : LONG_HEAD);
    }
}

TEST(a_line_without_end_is_refused_in_time)
{
    struct made made = {.len = 0};

    made_fill(&made, 'x', ANSWER_HEAD_MAX + 1);
    check_made(&made, LONG_HEAD);
    made.len = 0;
    made_put(&made, CHUNKED "5;");
    made_fill(&made, 'x', ANSWER_CHUNK_LINE_MAX - 1);
    check_made(&made, "200 -1 1000 || malformed: the line of a chunk of its answer is too long");
    made.len = 0;
    made_put(&made, CHUNKED "0;");
    made_fill(&made, 'x', ANSWER_CHUNK_LINE_MAX - 4);
    made_put(&made, "\r\n\r\n");
    check_made(&made, "200 -1 1000 || whole 0");
    made.len = 0;
    made_put(&made, CHUNKED "0\r\nX: ");
    made_fill(&made, 'x', ANSWER_HEAD_MAX);
    check_made(&made, "200 -1 1000 " LONG_HEAD);
}

TEST(so_many_fields_and_no_more_in_a_head_and_in_a_trailer)
{
    for (unsigned over = 0; over < 2; over++) {
        struct made made = {.len = 0}, trailer = {.len = 0};

        made_put(&made, "HTTP/1.1 204 No\r\n");
        made_put(&trailer, CHUNKED "0\r\n");
        for (unsigned i = 0; i < ANSWER_FIELDS_MAX + over; i++) {
            made_put(&made, "X:\r\n");
            made_put(&trailer, "X:\r\n");
        }
        made_put(&made, "\r\n");
        made_put(&trailer, "\r\n");
        check_made(&made,
                   over == 0 ? "204 0 1000 || whole 0" : "|| malformed: its answer has too many fields");
        check_made(&trailer, over == 0 ? "200 -1 1000 || whole 0"
                                       : "200 -1 1000 || malformed: its answer has too many fields");
    }
}

TEST(one_parser_reads_many_answers)
{
    static const char first[] = OK "Content-Length: 2\r\nConnection: close\r\n\r\nab";
    struct answer answer = {0};
    struct said said;

    for (unsigned round = 0; round < 3; round++) {
        said = (struct said){0};
        answer_init(&answer, ANSWER_TO_OTHER);
        give(&said, &answer, BYTES(first), TAKE_ALL);
        CHECK_TEXT(bytes_of(said.text), BYTES("200 2 0 |ab| whole 0"));
        said = (struct said){0};
        answer_init(&answer, ANSWER_TO_OTHER);
        give(&said, &answer, BYTES(CHUNKED "1\r\nc"), TAKE_ALL);
        give_fin(&said, &answer);
        CHECK_TEXT(bytes_of(said.text), BYTES("200 -1 1000 |c| " IN_BODY));
    }
    answer_done(&answer);
}

CHECK_MAIN
