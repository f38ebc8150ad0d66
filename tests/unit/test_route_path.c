/* test_route_path.c - the canonical path: one spelling for each, and nothing that servers read in two ways.
 */
#include <stdlib.h>

#include "gateway/route/route.h"
#include "tests/unit/check.h"

struct path_case {
    struct bytes raw;
    const char *path; /* NULL: refused */
    const char *says; /* a part of the sentence */
};

static void try_path(const struct path_case *test)
{
    char path[ROUTE_PATH_MAX];
    size_t len = 0;
    const char *why = route_path_canonical(test->raw, path, &len);

    if (test->path == NULL) {
        CHECK(why != NULL && strstr(why, test->says) != NULL);
    } else if (CHECK(why == NULL)) {
        CHECK_TEXT(((struct bytes){path, len}), bytes_of(test->path));
        CHECK(path[len] == '\0');
    }
}

static void try_paths(const struct path_case *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        try_path(&tests[i]);
    }
}

#define TRY(cases) try_paths((cases), sizeof(cases) / sizeof((cases)[0]))
#define TAKEN(raw, path)                                                                                     \
    {                                                                                                        \
        {(raw), sizeof(raw) - 1}, (path), NULL                                                               \
    }
#define REFUSED(raw, says)                                                                                   \
    {                                                                                                        \
        {(raw), sizeof(raw) - 1}, NULL, (says)                                                               \
    }

TEST(a_path_that_is_canonical_stays_as_it_is)
{
    static const struct path_case cases[] = {
        TAKEN("/", "/"),
        TAKEN("/orders", "/orders"),
        TAKEN("/orders/", "/orders/"),
        TAKEN("/orders/7/lines", "/orders/7/lines"),
        TAKEN("/-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@"),
        TAKEN("/%20%22%25%3C%3E%5B%5D%5E%60%7B%7C%7D", "/%20%22%25%3C%3E%5B%5D%5E%60%7B%7C%7D"),
        TAKEN("/caf%C3%A9", "/caf%C3%A9"),
        TAKEN("/.../a..b/.c/..d", "/.../a..b/.c/..d"),
    };

    TRY(cases);
}

TEST(what_never_needs_an_escape_is_decoded_and_what_is_needed_is_in_capitals)
{
    static const struct path_case cases[] = {
        TAKEN("/%41%7a%30%2D%2e1%5f%7E", "/Az0-.1_~"),
        TAKEN("/%6Frders/%37", "/orders/7"),
        TAKEN("/caf%c3%a9", "/caf%C3%A9"),
        TAKEN("/a%3ab", "/a%3Ab"),
        TAKEN("/a%2ab%3b%40%21", "/a%2Ab%3B%40%21"),
        TAKEN("/%e2%82%ac", "/%E2%82%AC"),
    };

    TRY(cases);
}

TEST(what_may_not_stand_there_as_it_is_is_escaped)
{
    static const struct path_case cases[] = {
        TAKEN("/a b", "/a%20b"),
        TAKEN("/\"<>[]^`{|}", "/%22%3C%3E%5B%5D%5E%60%7B%7C%7D"),
        TAKEN("/caf\xc3\xa9", "/caf%C3%A9"),
        TAKEN("/\xc3%a9", "/%C3%A9"),
        TAKEN("/%c3\xa9", "/%C3%A9"),
        TAKEN("/\xf0\x9f\x98\x80", "/%F0%9F%98%80"),
    };

    TRY(cases);
}

TEST(it_is_decoded_once_and_not_twice)
{
    static const struct path_case cases[] = {
        TAKEN("/%2541", "/%2541"),
        TAKEN("/%252e%252e/", "/%252e%252e/"),
        TAKEN("/%252F", "/%252F"),
        TAKEN("/%2500", "/%2500"),
    };

    TRY(cases);
}

TEST(dots_and_empty_segments_are_refused_however_they_are_written)
{
    static const struct path_case cases[] = {
        REFUSED("/.", "segment"),
        REFUSED("/..", "segment"),
        REFUSED("/./a", "segment"),
        REFUSED("/a/../b", "segment"),
        REFUSED("/a/..", "segment"),
        REFUSED("/a/%2e", "segment"),
        REFUSED("/a/%2E%2e/b", "segment"),
        REFUSED("/a/.%2e", "segment"),
        REFUSED("/..;/b", "segment"),
        REFUSED("/a/..;x=1/b", "segment"),
        REFUSED("/a/%2e%2e%3b/", "segment"),
        REFUSED("/.;a", "segment"),
        REFUSED("/.%3Ba", "segment"),
        REFUSED("//", "empty"),
        REFUSED("//a", "empty"),
        REFUSED("/a//b", "empty"),
        REFUSED("/a//", "empty"),
        REFUSED("/a/b///c", "empty"),
    };

    TRY(cases);
}

TEST(slashes_and_backslashes_in_disguise_are_refused)
{
    static const struct path_case cases[] = {
        REFUSED("/a%2Fb", "%2F"), REFUSED("/a%2fb", "%2F"), REFUSED("/%2F", "%2F"),
        REFUSED("/a\\b", "%5C"),  REFUSED("/a%5Cb", "%5C"), REFUSED("/a%5cb", "%5C"),
        REFUSED("/..%2f", "%2F"), REFUSED("/..\\", "%5C"),  REFUSED("/%c0%af", "UTF-8"),
    };

    TRY(cases);
}

TEST(control_characters_are_refused)
{
    static const struct path_case cases[] = {
        REFUSED("/a%00b", "control"), REFUSED("/a\0b", "control"),   REFUSED("/%0a", "control"),
        REFUSED("/a\r\n", "control"), REFUSED("/%1F", "control"),    REFUSED("/%7f", "control"),
        REFUSED("/\x7f", "control"),  REFUSED("/%C2%80", "control"), REFUSED("/\xc2\x9f", "control"),
        TAKEN("/%C2%A0", "/%C2%A0"),
    };

    TRY(cases);
}

TEST(what_is_no_utf8_is_refused)
{
    static const struct path_case cases[] = {
        REFUSED("/\xff", "UTF-8"),         REFUSED("/%80", "UTF-8"),          REFUSED("/%C3", "UTF-8"),
        REFUSED("/%C3/x", "UTF-8"),        REFUSED("/%C3%28", "UTF-8"),       REFUSED("/%c0%80", "UTF-8"),
        REFUSED("/%ed%a0%80", "UTF-8"),    REFUSED("/%f4%90%80%80", "UTF-8"), REFUSED("/%e2%82", "UTF-8"),
        REFUSED("/%f5%80%80%80", "UTF-8"),
    };

    TRY(cases);
}

TEST(a_malformed_escape_a_query_and_what_begins_otherwise_are_refused)
{
    static const struct path_case cases[] = {
        REFUSED("/%", "hexadecimal"),    REFUSED("/%4", "hexadecimal"),   REFUSED("/%4g", "hexadecimal"),
        REFUSED("/%%41", "hexadecimal"), REFUSED("/%C3%", "hexadecimal"), REFUSED("/a?b", "%3F"),
        REFUSED("/a#b", "%3F"),          TAKEN("/a%3Fb%23", "/a%3Fb%23"), REFUSED("", "slash"),
        REFUSED("*", "slash"),           REFUSED("a/b", "slash"),         REFUSED("http://h/a", "slash"),
        REFUSED("%2Fa", "slash"),        REFUSED("?", "slash"),
    };

    TRY(cases);
}

TEST(a_canonical_path_has_at_most_4095_bytes)
{
    static char raw[ROUTE_PATH_MAX + 1];
    char path[ROUTE_PATH_MAX];
    size_t len = 0;

    memset(raw, 'a', sizeof(raw));
    raw[0] = '/';
    CHECK(route_path_canonical((struct bytes){raw, ROUTE_PATH_MAX - 1}, path, &len) == NULL);
    CHECK_INT(len, ROUTE_PATH_MAX - 1);
    CHECK(route_path_canonical((struct bytes){raw, ROUTE_PATH_MAX}, path, &len) != NULL);
    memset(raw + 1, ' ', 1365); /* each becomes three */
    CHECK(route_path_canonical((struct bytes){raw, 1365}, path, &len) == NULL);
    CHECK_INT(len, 1 + 3 * 1364);
    CHECK(route_path_canonical((struct bytes){raw, 1366}, path, &len) != NULL);
}

CHECK_MAIN
