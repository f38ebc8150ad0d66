/* test_cli.c - what the command line makes of names, keys, addresses and events; its picture of a fence. */
#include <stdlib.h>

#include "api/cli/cli.h"
#include "api/cli/events.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "api/cli/request.h"
#include "api/cli/staircase.h"
#include "api/cli/verb.h"
#include "tests/unit/check.h"
#include "tests/unit/utf8_text.h"

static void check_resource(const char *base, const char *key, const char *url)
{
    struct request request = {.what = "test"};

    if (CHECK_INT(request_resource(&request, base, key), CLI_GO_ON))
        CHECK_TEXT(bytes_of(request.url), bytes_of(url));
    request_done(&request);
}

TEST(a_key_is_percent_encoded_once_and_its_slashes_stay)
{
    check_resource(NULL, "orders:42", "http://127.0.0.1:8701/v1/resources/orders:42");
    check_resource("http://h:1", "a/b c", "http://h:1/v1/resources/a/b%20c");
    check_resource("http://h:1/", "a/100%", "http://h:1/v1/resources/a/100%25");
    check_resource("http://h:1//", "a/%2F", "http://h:1/v1/resources/a/%252F");
    check_resource("https://h/pawl", "a/?x=1#y", "https://h/pawl/v1/resources/a/%3Fx%3D1%23y");
    check_resource("http://h", "a/\xC3\xA9", "http://h/v1/resources/a/%C3%A9");
}

static int to_lease(struct request *request, const char *name)
{
    return request_lease(request, NULL, name, "");
}

static int to_resource(struct request *request, const char *key)
{
    return request_resource(request, "http://h", key);
}

static int at_base(struct request *request, const char *base)
{
    return request_service(request, REQUEST_LEASE_SERVICE, base, "/v1/leases");
}

TEST(what_is_no_key_no_name_or_no_address_is_refused_before_it_is_sent)
{
    static const struct {
        int (*of)(struct request *request, const char *text);
        const char *texts[12]; /* up to a NULL */
    } rows[] = {
        {to_resource, {"", "/", "a/", "a//b", "a/../b", "a/.", "-a", "a b", "a/\n", "a/\xFF", "a/\x7F"}},
        {to_lease, {"", "a/b", "a b", ".a", "a%41", "\xC3\xA9"}},
        {at_base,
         {"", "127.0.0.1:8700", "ftp://h", "http://", "http:///x", "http://h?a", "http://me:pw@h:1",
          "http://h#", "http://h\r\nX: y", "file:///etc/passwd"}}};
    struct request good = {.what = "test"};

    CHECK_INT(to_lease(&good, "orders:42"), CLI_GO_ON);
    CHECK_TEXT(bytes_of(good.url), BYTES("http://127.0.0.1:8700/v1/leases/orders:42"));
    request_done(&good);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (const char *const *text = rows[i].texts; *text != NULL; text++) {
            struct request request = {.what = "test"};

            CHECK_INT(rows[i].of(&request, *text), CLI_USAGE);
            request_done(&request);
        }
    }
}

TEST(a_query_is_encoded_and_members_are_put_one_after_the_other)
{
    struct request request = {.what = "test"};

    CHECK_INT(request_service(&request, REQUEST_LEASE_SERVICE, "http://h", "/v1/leases"), CLI_GO_ON);
    request_query(&request, "prefix", BYTES("a&b=c"));
    request_query(&request, "cursor", BYTES("0f.x/y"));
    CHECK_TEXT(bytes_of(request.url), BYTES("http://h/v1/leases?prefix=a%26b%3Dc&cursor=0f.x%2Fy"));
    request_done(&request);
}

static void check_duration(int64_t ms, const char *wanted)
{
    char text[PRINT_DURATION_SIZE];

    print_duration(text, ms);
    CHECK_TEXT(bytes_of(text), bytes_of(wanted));
}

TEST(durations_are_rounded_down_to_what_a_person_wants_to_know)
{
    check_duration(0, "0.0 s");
    check_duration(999, "0.9 s");
    check_duration(9999, "9.9 s");
    check_duration(59999, "59 s");
    check_duration(60000, "1 m 0 s");
    check_duration(3599999, "59 m 59 s");
    check_duration(86400000, "24 h 0 m");
}

/* What print_safe() makes of it. */
static void check_shown(const char *text, const char *wanted)
{
    char *shown = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&shown, &len);

    print_safe(out, bytes_of(text));
    fclose(out);
    CHECK_TEXT(((struct bytes){shown, len}), bytes_of(wanted));
    free(shown);
}

TEST(what_deceives_the_eye_is_not_shown)
{
    static const uint32_t hidden[] = {0x1,    0x7,    0x9,     0xa,     0xd,    0x1b,   0x1f,   0x7f,
                                      0x80,   0x85,   0x9b,    0x9f,    0x61c,  0x200b, 0x200c, 0x200d,
                                      0x200e, 0x200f, 0x2028,  0x2029,  0x202a, 0x202b, 0x202c, 0x202d,
                                      0x202e, 0x2060, 0x2064,  0x2066,  0x2067, 0x2068, 0x2069, 0x206a,
                                      0x206f, 0xfeff, 0xe0001, 0xe0041, 0xe007f};
    static const uint32_t shown[] = {0x20,   0x7e,   0xa0,   0xe9,   0x61b,   0x61d,
                                     0x627,  0x200a, 0x2010, 0x2027, 0x202f,  0x205f,
                                     0x2070, 0x4e2d, 0xfefe, 0xff00, 0x1f600, 0xe0080};
    char wanted[16];

    for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        char buf[4];

        check_shown(textf("a%.*sb", (int)utf8_encode(hidden[i], buf), buf), "a?b");
    }
    for (unsigned i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        char buf[4];

        snprintf(wanted, sizeof(wanted), "a%.*sb", (int)utf8_encode(shown[i], buf), buf);
        check_shown(wanted, wanted);
    }
    check_shown("a\x80"
                "b\xC2",
                "a?b?"); /* no UTF-8 at all */
    check_shown("a\xED\xA0\x80", "a???");
}

/* -- server-sent events, in whatever pieces they come */

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
    check_stream(": listening\nid: 5.6\n\n", "", "5.6");            /* an id alone counts, too */
    check_stream("id: 1\ndata: x\n\nid: 2\ndata: y", "[1|x]", "1"); /* half an event has not been seen */
    check_stream("id: 1\ndata: x\n\nid: 2\ndata: y\n", "[1|x]", "1");
    check_stream("id: 1\n\nid: a b\n\nid: \x01\n\nid: \xc3\xa9\n\n", "", "1"); /* an id is a header */
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

/* -- the picture of a fence: what it looks like, and that it always fits */

/* A holds, writes, is stopped; B takes over and writes; A goes on, writes and is refused; B writes again. */
static const struct stair_event stale_holder[] = {
    {5, STAIR_GRANTED, "A", 33},    {310, STAIR_ACCEPTED, "A", 33},  {620, STAIR_STOPPED, "A", 33},
    {2030, STAIR_GRANTED, "B", 34}, {2340, STAIR_ACCEPTED, "B", 34}, {2640, STAIR_CONTINUED, "A", 33},
    {3350, STAIR_REFUSED, "A", 33}, {3700, STAIR_ACCEPTED, "B", 34},
};

enum { EVENTS = sizeof(stale_holder) / sizeof(stale_holder[0]) };

/* clang-format off */
static const char plain[] =
    "       A  ==========///////////////////////////////////------------\n"
    "       B                                    ====================================\n"
    "\n"
    "   token |                                        B                      B\n"
    "      34 +                                  +=====o======================o======\n"
    "         |                                  |...................................\n"
    "         |     A                            |...................................\n"
    "      33 +=====o============================+ A, token 33: refused X............\n"
    "         |......................................................................\n"
    "         |..................... below the stairs: refused ......................\n"
    "         ++----------------+----------------+----------------+----------------->\n"
    "          0 s              1                2                3              time\n"
    "\n"
    "  === holds   /// silent   --- believes that it holds   o written   X refused\n";

static const char unicode[] =
    "       A  ━━━━━━━━━━╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╌╌╌╌╌╌╌╌╌╌╌╌\n"
    "       B                                    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
    "\n"
    "   token │                                        B                      B\n"
    "      34 ┤                                  ┏━━━━━●━━━━━━━━━━━━━━━━━━━━━━●━━━━━━\n"
    "         │                                  ┃░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
    "         │     A                            ┃░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
    "      33 ┤━━━━━●━━━━━━━━━━━━━━━━━━━━━━━━━━━━┛ A, token 33: refused ✕░░░░░░░░░░░░\n"
    "         │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
    "         │░░░░░░░░░░░░░░░░░░░░░ below the stairs: refused ░░░░░░░░░░░░░░░░░░░░░░\n"
    "         └┴────────────────┴────────────────┴────────────────┴─────────────────→\n"
    "          0 s              1                2                3              time\n"
    "\n"
    "  ━━━ holds   ╱╱╱ silent   ╌╌╌ believes that it holds   ● written   ✕ refused\n";
/* clang-format on */

static void check_picture(unsigned style, const char *wanted)
{
    char *text = staircase_draw(stale_holder, EVENTS, 80, style, STAIR_STEPS);

    CHECK_TEXT(bytes_of(text), bytes_of(wanted));
    free(text);
}

TEST(the_stale_holder_looks_like_this_in_plain_ascii_and_in_unicode)
{
    check_picture(STAIR_PLAIN, plain);
    check_picture(STAIR_UNICODE, unicode);
}

/* The text without its colours. */
static void strip_colours(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0';)
        if (*from == '\033')
            from += strcspn(from, "m") + 1;
        else
            *to++ = *from++;
    *to = '\0';
}

TEST(colours_change_nothing_but_the_colour_and_end_with_each_line)
{
    char *text = staircase_draw(stale_holder, EVENTS, 80, STAIR_UNICODE | STAIR_COLOUR, STAIR_STEPS);

    CHECK(strstr(text, "\033[0;1;31m\xE2\x9C\x95") != NULL); /* a red cross */
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t len = strcspn(line, "\n");
        const char *colour = memrchr(line, '\033', len);

        CHECK(colour == NULL || memcmp(colour, "\033[0m", 4) == 0); /* the last of a line ends them all */
    }
    strip_colours(text);
    CHECK_TEXT(bytes_of(text), bytes_of(unicode));
    free(text);
}

static size_t places_of_longest_line(const char *text)
{
    size_t longest = 0, places = 0;

    for (; *text != '\0'; text++) {
        places = *text == '\n' ? 0 : places + ((*text & 0xc0) != 0x80); /* not what continues a character */
        longest = places > longest ? places : longest;
    }
    return longest;
}

TEST(no_line_is_wider_than_asked_for)
{
    for (unsigned width = STAIR_WIDTH_MIN; width <= STAIR_WIDTH_MAX; width += 4) {
        char *text = staircase_draw(stale_holder, EVENTS, width, STAIR_UNICODE, STAIR_STEPS);

        CHECK(places_of_longest_line(text) <= width);
        free(text);
    }
}

TEST(a_refusal_at_any_time_stays_inside_the_picture)
{
    for (uint64_t at_ms = 0; at_ms <= 10000; at_ms += 100) {
        const struct stair_event events[] = {{0, STAIR_GRANTED, "A", 1},
                                             {0, STAIR_GRANTED, "B", 2},
                                             {at_ms, STAIR_REFUSED, "A", 1},
                                             {10000, STAIR_ACCEPTED, "B", 2}};
        char *text = staircase_draw(events, 4, 80, STAIR_PLAIN, STAIR_STEPS);

        CHECK(places_of_longest_line(text) <= 80);
        CHECK(strstr(text, "A, token 1: refused") != NULL);
        free(text);
    }
}

TEST(what_goes_beyond_the_limits_is_left_out_and_nothing_breaks)
{
    static const char *const names[] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "a-name-that-is-much-too-long-to-show"};
    struct stair_event events[64];

    for (unsigned i = 0; i < 64; i++) {
        events[i] = (struct stair_event){i * 1000, i % 2 == 0 ? STAIR_GRANTED : STAIR_REFUSED, names[i % 9],
                                         999999999999900 + i};
    }
    for (size_t count = 0; count <= 64; count++) {
        char *text = staircase_draw(events, count, 10, STAIR_UNICODE, STAIR_STEPS);

        CHECK(strlen(text) > 0);
        free(text);
    }
}

/* Two hold a lock at once; a third waits. Nothing has a token. */
TEST(without_tokens_the_writes_lie_on_the_lanes)
{
    static const struct stair_event events[] = {
        {0, STAIR_GRANTED, "A", 0},     {400, STAIR_ACCEPTED, "A", 0},  {600, STAIR_WAITING, "C", 0},
        {1500, STAIR_GRANTED, "B", 0},  {2000, STAIR_ACCEPTED, "B", 0}, {2500, STAIR_ACCEPTED, "A", 0},
        {3000, STAIR_RELEASED, "C", 0},
    };
    static const char wanted[] =
        "       A  ========o======================----------------------o----------------\n"
        "       C              .waits.............................................\n"
        "       B                                 ===========o===========================\n"
        "         ++--------------------+--------------------+--------------------+----->\n"
        "          0 s                  1                    2                    3  time\n"
        "\n"
        "  === holds   /// silent   --- believes that it holds   o written\n";
    char *text = staircase_draw(events, sizeof(events) / sizeof(events[0]), 80, STAIR_PLAIN, STAIR_FLAT);

    CHECK_TEXT(bytes_of(text), bytes_of(wanted));
    free(text);
}

/* Whoever is granted ends the hold of the others, unless it is shared. */
TEST(a_shared_grant_leaves_the_others_holding)
{
    struct stair_event events[] = {
        {0, STAIR_SHARED, "A", 1}, {1000, STAIR_SHARED, "B", 2}, {2000, STAIR_RELEASED, "B", 2}};
    char *shared = staircase_draw(events, 3, 80, STAIR_PLAIN, STAIR_STEPS), *alone;

    events[1].kind = STAIR_GRANTED;
    alone = staircase_draw(events, 3, 80, STAIR_PLAIN, STAIR_STEPS);
    CHECK(strstr(shared, "=-") == NULL);
    CHECK(strstr(alone, "=-") != NULL);
    free(shared);
    free(alone);
}

/* Two readers who are let in together may be heard of in either order. */
TEST(the_stairs_only_rise)
{
    const struct stair_event events[] = {
        {0, STAIR_GRANTED, "C", 2}, {1000, STAIR_SHARED, "A", 4}, {1010, STAIR_SHARED, "B", 3}};
    char *text = staircase_draw(events, 3, 80, STAIR_PLAIN, STAIR_STEPS);
    const char *four = strstr(text, "\n       4 "), *three = strstr(text, "\n       3 ");
    const char *two = strstr(text, "\n       2 ");

    CHECK(four != NULL && three != NULL && two != NULL && four < three && three < two);
    free(text);
}

CHECK_MAIN
