/* test_sse.c - server-sent events, in whatever pieces they come. */
#include "api/cli/events.h"

#include <stdlib.h>

#include "tests/unit/check.h"

enum { SEEN_SIZE = 512 };

struct seen {
    struct sse sse;
    char text[SEEN_SIZE];
};

static void event(struct sse *sse, struct bytes data)
{
    struct seen *seen = container_of(sse, struct seen, sse);
    size_t len = strlen(seen->text);

    snprintf(seen->text + len, SEEN_SIZE - len, "[%s|%.*s]", sse->id, (int)data.len, data.at);
}

static void check_stream(const char *text, const char *wanted, const char *id)
{
    size_t len = strlen(text);

    for (size_t piece = 1; piece <= len; piece++) {
        struct seen seen = {.text = ""};

        sse_init(&seen.sse, event);
        for (size_t at = 0; at < len; at += piece)
            CHECK(sse_feed(&seen.sse, (struct bytes){text + at, piece < len - at ? piece : len - at}));
        CHECK_TEXT(bytes_of(seen.text), bytes_of(wanted));
        CHECK_TEXT(bytes_of(seen.sse.id), bytes_of(id));
        sse_done(&seen.sse);
    }
}

TEST(an_event_has_the_id_and_the_data_in_front_of_the_empty_line)
{
    check_stream(": listening\n\nid: 1.2\nevent: granted\ndata: {\"a\":1}\n\n", "[1.2|{\"a\":1}]", "1.2");
    check_stream("data:x\ndata\ndata: y\n\ndata: z\n\n", "[|x\n\ny][|z]", "");
    check_stream("id: 7\ndata: x\n\ndata: y\n\n", "[7|x][7|y]", "7");
    check_stream("id: 7\r\ndata: x\r\n\r\ndata: y\r\rdata: z\n\n", "[7|x][7|y][7|z]", "7");
}

TEST(an_id_alone_counts_too_and_says_nothing)
{
    check_stream(": listening\nid: 5.6\n\n", "", "5.6");
}

TEST(half_an_event_has_not_been_seen)
{
    check_stream("id: 1\ndata: x\n\nid: 2\ndata: y", "[1|x]", "1");
    check_stream("id: 1\ndata: x\n\nid: 2\ndata: y\n", "[1|x]", "1");
}

TEST(a_new_stream_forgets_what_was_begun_and_keeps_the_id)
{
    struct seen seen = {.text = ""};

    sse_init(&seen.sse, event);
    CHECK(sse_feed(&seen.sse, BYTES("id: 1\ndata: x\n\nid: 2\ndata: y\nda")));
    sse_restart(&seen.sse);
    CHECK_TEXT(bytes_of(seen.sse.id), BYTES("1"));
    CHECK(sse_feed(&seen.sse, BYTES("data: z\n\n")));
    CHECK_TEXT(bytes_of(seen.text), BYTES("[1|x][1|z]"));
    sse_done(&seen.sse);
}

TEST(an_id_that_could_not_be_a_header_is_not_taken)
{
    check_stream("id: 1\n\nid: a b\n\nid: \x01\n\nid: \xc3\xa9\n\n", "", "1");
}

TEST(what_is_too_long_is_refused)
{
    struct seen seen = {.text = ""};
    char *line = malloc(SSE_LINE_MAX + 1);

    memset(line, 'x', SSE_LINE_MAX + 1);
    sse_init(&seen.sse, event);
    CHECK(sse_feed(&seen.sse, (struct bytes){line, SSE_LINE_MAX}));
    CHECK(!sse_feed(&seen.sse, (struct bytes){line, 1}));
    sse_restart(&seen.sse);
    memcpy(line, "data:", 5);
    for (unsigned i = 0; i < 2; i++) {
        bool taken = sse_feed(&seen.sse, (struct bytes){line, SSE_LINE_MAX}) &&
                     sse_feed(&seen.sse, BYTES("\n"));

        CHECK(taken == (i == 0));
    }
    sse_done(&seen.sse);
    free(line);
}

CHECK_MAIN
