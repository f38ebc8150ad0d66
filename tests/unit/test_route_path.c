/* test_route_path.c - the canonical path: one spelling for each, and nothing that servers read in two ways.
 */
#include <stdlib.h>

#include "gateway/route/route.h"
#include "tests/unit/check.h"

static const struct {
    const char *raw;
    const char *path; /* NULL: it stays as it is */
} taken[] = {
    /* canonical */
    {"/", NULL},
    {"/orders", NULL},
    {"/orders/", NULL},
    {"/orders/7/lines", NULL},
    {"/-._~!$&'()*+,;=:@", NULL},
    {"/%20%22%25%3C%3E%5B%5D%5E%60%7B%7C%7D", NULL},
    {"/caf%C3%A9", NULL},
    {"/.../a..b/.c/..d", NULL},
    {"/%C2%A0", NULL},
    {"/a%3Fb%23", NULL},
    /* what never needs an escape is decoded, and what is needed is in capitals */
    {"/%41%7a%30%2D%2e1%5f%7E", "/Az0-.1_~"},
    {"/%6Frders/%37", "/orders/7"},
    {"/caf%c3%a9", "/caf%C3%A9"},
    {"/a%3ab", "/a%3Ab"},
    {"/a%2ab%3b%40%21", "/a%2Ab%3B%40%21"},
    {"/%e2%82%ac", "/%E2%82%AC"},
    /* what may not stand there as it is is escaped */
    {"/a b", "/a%20b"},
    {"/\"<>[]^`{|}", "/%22%3C%3E%5B%5D%5E%60%7B%7C%7D"},
    {"/caf\xc3\xa9", "/caf%C3%A9"},
    {"/\xc3%a9", "/%C3%A9"},
    {"/%c3\xa9", "/%C3%A9"},
    {"/\xf0\x9f\x98\x80", "/%F0%9F%98%80"},
    /* it is decoded once, not twice */
    {"/%2541", NULL},
    {"/%252e%252e/", NULL},
    {"/%252F", NULL},
    {"/%2500", NULL},
};

TEST(a_path_that_can_be_read_in_one_way_has_one_form)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        char path[ROUTE_PATH_MAX];
        size_t len = 0;

        if (CHECK(route_path_canonical(bytes_of(taken[i].raw), path, &len) == NULL)) {
            CHECK_TEXT(((struct bytes){path, len}),
                       bytes_of(taken[i].path != NULL ? taken[i].path : taken[i].raw));
            CHECK(path[len] == '\0');
        }
    }
}

static void check_refused(struct bytes raw, const char *says)
{
    char path[ROUTE_PATH_MAX];
    size_t len = 0;
    const char *why = route_path_canonical(raw, path, &len);

    if (!CHECK(why != NULL && strstr(why, says) != NULL))
        printf("# %.*s: %s\n", (int)raw.len, raw.at, why != NULL ? why : "taken");
}

TEST(what_servers_read_in_two_ways_is_refused)
{
    static const struct {
        const char *says, *raws; /* with a blank between two */
    } cases[] = {
        {"segment", "/. /.. /./a /a/../b /a/.. /a/%2e /a/%2E%2e/b /a/.%2e"},
        {"segment", "/..;/b /a/..;x=1/b /a/%2e%2e%3b/ /.;a /.%3Ba"},
        {"empty", "// //a /a//b /a// /a/b///c"},
        {"%2F", "/a%2Fb /a%2fb /%2F /..%2f"},
        {"%5C", "/a\\b /a%5Cb /a%5cb /..\\"},
        {"control", "/a%00b /%0a /a\r\n /%1F /%7f /\x7f /%C2%80 /\xc2\x9f"},
        {"UTF-8", "/%c0%af /\xff /%80 /%C3 /%C3/x /%C3%28 /%c0%80"},
        {"UTF-8", "/%ed%a0%80 /%f4%90%80%80 /%e2%82 /%f5%80%80%80"},
        {"hexadecimal", "/% /%4 /%4g /%%41 /%C3%"},
        {"%3F", "/a?b /a#b"},
        {"slash", "* a/b http://h/a %2Fa ?"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (const char *at = cases[i].raws; *at != '\0'; at += strspn(at, " ")) {
            size_t len = strcspn(at, " ");

            check_refused((struct bytes){at, len}, cases[i].says);
            at += len;
        }
    }
    check_refused(BYTES(""), "slash");
    check_refused(BYTES("/a\0b"), "control");
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
