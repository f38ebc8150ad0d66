/* test_staircase.c - the picture of a fence: what it looks like, and that it always fits. */
#include "api/cli/staircase.h"

#include <stdlib.h>

#include "tests/unit/check.h"

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

TEST(the_stale_holder_looks_like_this_in_plain_ascii)
{
    check_picture(STAIR_PLAIN, plain);
}

TEST(the_stale_holder_looks_like_this_in_unicode)
{
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
