/* test_route_find.c - which route a request has, under which lease, and what the route lets through. */
#include <stdlib.h>

#include "gateway/route/route.h"
#include "tests/unit/check.h"
#include "tests/unit/route_sample.h"

enum { BAD_PATH = -3, BAD_LEASE = -2, NONE = -1 };

struct find_case {
    const char *path;
    int route;        /* or one of these */
    const char *says; /* of it: the lease, or a part of what is wrong */
};

static void try_finds(const char *routes, const struct find_case *tests, size_t count)
{
    static const enum route_found ends[] = {
        [-BAD_PATH] = ROUTE_BAD_PATH, [-BAD_LEASE] = ROUTE_BAD_LEASE, [-NONE] = ROUTE_NONE};
    struct route_table *table = table_good(routes);

    for (size_t i = 0; i < count; i++) {
        struct route_match match;
        const char *wrong = NULL;
        int route = tests[i].route;
        enum route_found found = route_find(table, bytes_of(tests[i].path), &match, &wrong);

        if (!CHECK_INT(found, route < 0 ? ends[-route] : ROUTE_FOUND))
            printf("# %s: %s\n", tests[i].path, wrong != NULL ? wrong : "");
        else if (found == ROUTE_FOUND)
            CHECK(CHECK_INT(match.route->index, route) &&
                  CHECK_TEXT(((struct bytes){match.lease, match.lease_len}), bytes_of(tests[i].says)));
        else
            CHECK(route == NONE || (wrong != NULL && strstr(wrong, tests[i].says) != NULL));
    }
    route_table_free(table);
}

#define TRY(routes, cases) try_finds((routes), (cases), sizeof(cases) / sizeof((cases)[0]))

TEST(a_capture_is_one_segment_and_the_rest_may_be_empty)
{
    static const struct find_case rest[] = {
        {"/orders/7", 0, "order:7"},       {"/orders/7/", 0, "order:7"},
        {"/orders/7/lines", 0, "order:7"}, {"/orders/7/a/b/", 0, "order:7"},
        {"/orders/%37/a", 0, "order:7"},   {"/orders", NONE, NULL},
        {"/orders/", NONE, NULL},          {"/order/7", NONE, NULL},
        {"/Orders/7", NONE, NULL},         {"/", NONE, NULL},
        {"/x/orders/7", NONE, NULL},
    };
    static const struct find_case exact[] = {
        {"/orders/7", 0, "order:7"},
        {"/orders/7/", NONE, NULL},
        {"/orders/7/a", NONE, NULL},
        {"/orders/", NONE, NULL},
    };
    static const struct find_case all[] = {
        {"/", 0, "all"},
        {"/a", 0, "all"},
        {"/a/", 0, "all"},
        {"/a/b/c%20d", 0, "all"},
    };
    static const struct find_case slash[] = {
        {"/a/7/", 0, "7"},
        {"/a/7", NONE, NULL},
        {"/a/7/b", NONE, NULL},
    };

    TRY("{" ANY("/orders/{id}/**", "order:{id}") "}", rest);
    TRY("{" ANY("/orders/{id}", "order:{id}") "}", exact);
    TRY("{" ANY("/**", "all") "}", all);
    TRY("{" ANY("/a/{x}/", "{x}") "}", slash);
}

TEST(the_first_route_that_matches_is_taken)
{
    static const char *const patterns[] = {"/a/b",     "/a/{x}",   "/a/{x}/c", "/{y}/x/d",
                                           "/b/{x}/e", "/{y}/{z}", "/a/**",    "/**"};
    static const struct find_case cases[] = {
        {"/a/b", 0, "r0"},       {"/a/c", 1, "r1"},   {"/a/b/c", 2, "r2"}, {"/a/x/c", 2, "r2"},
        {"/a/x/d", 3, "r3"},     {"/b/x/d", 3, "r3"}, {"/b/x/e", 4, "r4"}, {"/b/x", 5, "r5"},
        {"/a", 6, "r6"},         {"/a/", 6, "r6"},    {"/b", 7, "r7"},     {"/b/", 7, "r7"},
        {"/a/b/c/d/e", 6, "r6"},
    };
    static const struct find_case rests[] = {
        {"/a/b/c", 0, "r0"},
        {"/c/b/d", 1, "r1"},
        {"/c/b", 1, "r1"},
        {"/c/d", 2, "r2"},
    };
    char routes[2048];
    size_t len = 0;

    TRY("{" ANY("/a/**", "r0") "},{" ANY("/{x}/b/**", "r1") "},{" ANY("/c/**", "r2") "}", rests);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        len += (size_t)snprintf(routes + len, sizeof(routes) - len, "%s{" TO("%s", "r%zu", UP) "}",
                                i > 0 ? "," : "", patterns[i], i);
    }
    TRY(routes, cases);
}

TEST(a_literal_is_the_same_however_it_is_escaped)
{
    static const struct find_case cases[] = {
        {"/a:b/7", 0, "x7"},       {"/a%3Ab/7", 0, "x7"},       {"/a%3ab/7", 0, "x7"},
        {"/%61:b/7", 0, "x7"},     {"/caf\xc3\xa9", 1, "cafe"}, {"/caf%c3%a9", 1, "cafe"},
        {"/a%253Ab/7", 2, "rest"},
    };

    TRY("{" ANY("/a:b/{x}", "x{x}") "},{" ANY("/caf%C3%A9", "cafe") "},{" ANY("/**", "rest") "}", cases);
}

TEST(addresses_of_pawls_own_are_no_routes_however_they_are_escaped)
{
    static const struct find_case cases[] = {
        {"/v1/leases/a", NONE, NULL}, {"/v1", NONE, NULL},         {"/%76%31/x", NONE, NULL},
        {"/livez", NONE, NULL},       {"/problems/x", NONE, NULL}, {"/openapi.json", NONE, NULL},
        {"/v1x", 0, "all"},           {"/a/v1", 0, "all"},         {"/ui/", NONE, NULL},
    };

    TRY("{" ANY("/**", "all") "}", cases);
}

TEST(captures_are_decoded_once_for_the_lease)
{
    static const struct find_case cases[] = {
        {"/7/a", 0, "a:7-7"},
        {"/x%3Ay/b%2Dc", 0, "b-c:x:y-x:y"},
        {"/%41/%7a", 0, "z:A-A"},
    };

    TRY("{" ANY("/{x}/{y}", "{y}:{x}-{x}") "}", cases);
}

/* -- paths that are refused */

TEST(a_capture_that_makes_no_lease_is_refused_and_the_next_route_is_not_tried)
{
    static const struct find_case cases[] = {
        {"/a/7", 0, "7"},
        {"/a/x%20y", BAD_LEASE, "no lease name"},
        {"/a/x;y", BAD_LEASE, "no lease name"},
        {"/a/7;v=1", BAD_LEASE, "no lease name"},
        {"/a/caf%C3%A9", BAD_LEASE, "no lease name"},
        {"/a/x%2541", BAD_LEASE, "no lease name"},
        {"/a/-x", BAD_LEASE, "no lease name"},
        {"/a/~", BAD_LEASE, "no lease name"},
        {"/a/" NAME_127, 0, NAME_127},
        {"/a/" NAME_127 "b", 0, NAME_127 "b"},
        {"/a/" NAME_127 "bc", BAD_LEASE, "no lease name"},
        {"/a/../x", BAD_PATH, "segment"},
        {"/a/x%2Fy", BAD_PATH, "%2F"},
        {"/a/x%00", BAD_PATH, "control"},
        {"a", BAD_PATH, "slash"},
    };

    TRY("{" ANY("/a/{x}", "{x}") "},{" ANY("/**", "all") "}", cases);
}

TEST(a_lease_that_becomes_too_long_is_refused)
{
    static const struct find_case cases[] = {
        {"/ab/" NAME_127, BAD_LEASE, "no lease name"},
        {"/" NAME_127 NAME_127 NAME_127 NAME_127 "/b", BAD_LEASE, "no lease name"},
        {"/a/b", 0, "a-b"},
    };

    TRY("{" ANY("/{x}/{y}/**", "{x}-{y}") "}", cases);
}

TEST(under_if_match_a_path_has_one_spelling_and_a_lease_one_path)
{
    static const struct find_case spelling[] = {
        {"/a:b/x:y", 0, "x:y"},
        {"/a:b/%78", 0, "x"}, /* forwarded as x */
        {"/a%3Ab/x", BAD_LEASE, "in one way only"},
        {"/a:b/x%3Ay", BAD_LEASE, "in one way only"},
    };
    static const struct find_case separator[] = {
        {"/s/1/2", 0, "o:1:2.x"},
        {"/s/1-3/2:4.5", 0, "o:1-3:2:4.5.x"},
        {"/s/1:2/3", BAD_LEASE, "two paths would have one lease"},
    };

    TRY("{" IF_MATCH("/a:b/{x}", "{x}") "}", spelling);
    TRY("{" IF_MATCH("/s/{x}/{y}", "o:{x}:{y}.x") "}", separator);
}

TEST_TABLE(more_segments_than_a_pattern_can_have_are_taken_by_the_rest_only,
           "{" ANY("/{x}", "{x}") "},{" ANY("/a/**", "a") "}")
{
    char path[2 * 100 + 1] = "";
    struct route_match match;
    const char *wrong;

    for (int i = 0; i < 100; i++)
        memcpy(path + 2 * i, "/a", 2);
    CHECK_INT(route_find(table, bytes_of(path), &match, &wrong), ROUTE_FOUND);
    CHECK_INT(match.route->index, 1);
    CHECK_INT(match.path_len, 200);
}

TEST_TABLE(captures_and_the_probe_are_as_they_stand_in_the_path,
           "{" G("/a/{x}/{y}/**", "{y}:{x}", "ordered") ",'unknown':{'probe':'HEAD /p/{x}-last/{y}'}}")
{
    char path[ROUTE_PATH_MAX];
    struct route_match match;
    const char *wrong;

    CHECK_INT(route_find(table, BYTES("/a/b%3ac/%37/rest"), &match, &wrong), ROUTE_FOUND);
    CHECK_TEXT(((struct bytes){match.path, match.path_len}), BYTES("/a/b%3Ac/7/rest"));
    CHECK_TEXT(match.captures[0], BYTES("b%3Ac"));
    CHECK_TEXT(match.captures[1], BYTES("7"));
    CHECK_TEXT(bytes_of(match.lease), BYTES("7:b:c"));
    CHECK_INT(route_probe_path(&match, path), strlen("/p/b%3Ac-last/7"));
    CHECK_TEXT(bytes_of(path), BYTES("/p/b%3Ac-last/7"));
    CHECK_TEXT(bytes_of(match.route->probe_method), BYTES("HEAD"));
    CHECK_TEXT(bytes_of(match.route->unknown_text), BYTES("p"));
}

/* -- methods, headers, statuses */

static void check_refused(const char *member, const char *says)
{
    char why[ROUTE_WHY_SIZE];
    struct route_table *table = table_of(textf("{" ANY("/a", "a") ",%s}", member), why);

    if (!CHECK(table == NULL && strstr(why, says) != NULL))
        printf("# %s: %s\n", member, table == NULL ? why : "taken");
    route_table_free(table);
}

TEST_TABLE(everything_but_what_the_route_calls_a_read_is_a_write,
           "{" ANY("/a", "a") "},{" ANY("/b", "b") ",'read_methods':['GET','POST','QUERY']},{" ANY(
               "/c", "c") ",'read_methods':[]}")
{
    const char *writes = "POST PUT PATCH DELETE get QUERY CONNECT TRACE GETX";

    CHECK(route_reads(&table->routes[0], BYTES("GET")) && route_reads(&table->routes[0], BYTES("HEAD")) &&
          route_reads(&table->routes[0], BYTES("OPTIONS")));
    for (const char *method = ""; method != NULL; method = check_word(&writes))
        CHECK(!route_reads(&table->routes[0], bytes_of(method)));
    CHECK(route_reads(&table->routes[1], BYTES("POST")) && route_reads(&table->routes[1], BYTES("QUERY")));
    CHECK(!route_reads(&table->routes[1], BYTES("HEAD")) && !route_reads(&table->routes[2], BYTES("GET")));
    check_refused("'read_methods':['PUT']", "PUT is a write by its definition");
    check_refused("'read_methods':['GET','DELETE']", "DELETE is a write");
    check_refused("'read_methods':['PATCH']", "PATCH is a write");
    check_refused("'read_methods':['CONNECT']", "CONNECT is never forwarded");
    check_refused("'read_methods':['TRACE']", "TRACE is never forwarded");
    check_refused("'read_methods':['get']", "written in capitals");
    check_refused("'read_methods':['GET','GET']", "GET twice");
    check_refused("'read_methods':['G T']", "names of methods");
    check_refused("'read_methods':['']", "names of methods");
    check_refused("'read_methods':[1]", "a list of texts");
    check_refused("'read_methods':'GET'", "must be a list");
}

TEST_TABLE(headers_pass_as_the_lists_say_but_what_gives_the_message_its_meaning_always_does,
           "{" ANY("/a", "a") "},{" ANY(
               "/b", "b") ",'headers':{'request':{'deny':['Cookie']},'answer':{'allow':['ETag']}}},"
                          "{" ANY("/c", "c") ",'headers':{'request':{'allow':['Accept']},'answer':{'deny':['"
                                             "server','Cache-Control']}}}")
{
    const struct route *none = &table->routes[0], *b = &table->routes[1], *c = &table->routes[2];

    CHECK(route_passes_request(none, BYTES("Cookie")) && route_passes_answer(none, BYTES("Server")));
    CHECK(!route_passes_request(b, BYTES("cookie")) && !route_passes_request(b, BYTES("COOKIE")));
    CHECK(route_passes_request(b, BYTES("Cookie2")) && route_passes_request(b, BYTES("Accept")));
    CHECK(route_passes_answer(b, BYTES("etag")) && !route_passes_answer(b, BYTES("Server")));
    CHECK(route_passes_answer(b, BYTES("Content-Type")) &&
          route_passes_answer(b, BYTES("content-encoding")) &&
          route_passes_answer(b, BYTES("Content-Range")) && route_passes_answer(b, BYTES("Vary")) &&
          route_passes_answer(b, BYTES("Cache-Control")));
    CHECK(route_passes_request(c, BYTES("accept")) && !route_passes_request(c, BYTES("Cookie")));
    CHECK(route_passes_request(c, BYTES("If-Match")) && route_passes_request(c, BYTES("Content-Range")) &&
          route_passes_request(c, BYTES("if-none-match")) && route_passes_request(c, BYTES("Content-Type")));
    CHECK(!route_passes_answer(c, BYTES("Server")) && !route_passes_answer(c, BYTES("cache-control")));
    CHECK(route_passes_answer(c, BYTES("ETag")));
}

TEST(lists_of_headers_that_cannot_be_kept_are_refused)
{
    const char
        *never = "Connection X-HTTP-Method-Override X-Forwarded-Anything Anything-Override SCRIPT_NAME";

    check_refused("'headers':{'request':{'allow':['a'],'deny':['b']}}",
                  "request has allow or deny, not both");
    check_refused("'headers':{'answer':{'deny':['Content-Encoding']}}", "cannot be denied in an answer");
    check_refused("'headers':{'request':{'deny':['If-Match']}}", "cannot be denied in a request");
    check_refused("'headers':{'request':{'deny':['Fencing-Token']}}", "fencing-token is not for a list");
    check_refused("'headers':{'answer':{'allow':['Transfer-Encoding']}}",
                  "transfer-encoding is not for a list");
    for (const char *name; (name = check_word(&never)) != NULL;)
        check_refused(textf("'headers':{'request':{'allow':['%s']}}", name), " is not for a list");
    check_refused("'headers':{'request':{'deny':['Destination']}}", "cannot be denied in a request");
    check_refused("'headers':{'request':{'deny':['a','A']}}", "a twice");
    check_refused("'headers':{'request':{'deny':['a b']}}", "names of headers");
    check_refused("'headers':{'request':{'deny':['']}}", "names of headers");
    check_refused("'headers':{'request':{'deny':[1]}}", "a list of texts");
    check_refused("'headers':{'request':{'deny':'a'}}", "must be a list");
    check_refused("'headers':{'request':['a']}", "request must be an object");
    check_refused("'headers':{'request':{'drop':['a']}}", "allow or deny and nothing else");
    check_refused("'headers':{'response':{}}", "request and answer and nothing else");
    check_refused("'headers':[]", "headers must be an object");
}

TEST_TABLE(a_status_that_does_not_say_how_the_write_ended_is_not_final,
           "{" ANY("/a", "a") "},{" ANY("/b", "b") ",'unsure_statuses':[599,200]},{" ANY(
               "/c", "c") ",'unsure_statuses':[]}")
{
    for (unsigned status = 0; status < 1000; status++) {
        bool known = status >= 200 && status <= 599;

        CHECK_INT(route_is_final(&table->routes[0], status),
                  known && strstr("202 408 502 503 504 520 521 522 523 524 525 526 527 530 598 599",
                                  textf("%03u", status)) == NULL);
        CHECK_INT(route_is_final(&table->routes[1], status), known && status != 200 && status != 599);
        CHECK_INT(route_is_final(&table->routes[2], status), known);
    }
    check_refused("'unsure_statuses':[199]", "200 to 599");
    check_refused("'unsure_statuses':[600]", "200 to 599");
    check_refused("'unsure_statuses':['502']", "200 to 599");
    check_refused("'unsure_statuses':[502.0]", "200 to 599");
    check_refused("'unsure_statuses':[502,502]", "502 twice");
    check_refused("'unsure_statuses':502", "must be a list");
}

/* -- the canonical path: one spelling for each, and nothing that servers read in two ways */

static void check_canonical(const char *raw, const char *wanted)
{
    char path[ROUTE_PATH_MAX];
    size_t len = 0;

    if (CHECK(route_path_canonical(bytes_of(raw), path, &len) == NULL)) {
        CHECK_TEXT(((struct bytes){path, len}), bytes_of(wanted));
        CHECK(path[len] == '\0');
    }
}

/* What never needs an escape is decoded, and what is needed is in capitals; what may not stand there as it is
 * is escaped; it is decoded once, not twice. */
TEST(a_path_that_can_be_read_in_one_way_has_one_form)
{
    static const char *const rows[][2] = {
        {"/%41%7a%30%2D%2e1%5f%7E", "/Az0-.1_~"},
        {"/%6Frders/%37", "/orders/7"},
        {"/caf%c3%a9", "/caf%C3%A9"},
        {"/a%3ab", "/a%3Ab"},
        {"/a%2ab%3b%40%21", "/a%2Ab%3B%40%21"},
        {"/%e2%82%ac", "/%E2%82%AC"},
        {"/a b", "/a%20b"},
        {"/\"<>[]^`{|}", "/%22%3C%3E%5B%5D%5E%60%7B%7C%7D"},
        {"/caf\xc3\xa9", "/caf%C3%A9"},
        {"/\xc3%a9", "/%C3%A9"},
        {"/%c3\xa9", "/%C3%A9"},
        {"/\xf0\x9f\x98\x80", "/%F0%9F%98%80"},
    };
    const char *canonical =
        "/ /orders /orders/ /orders/7/lines /-._~!$&'()*+,;=:@ /%20%22%25%3C%3E%5B%5D%5E%60%7B%7C%7D "
        "/caf%C3%A9 /.../a..b/.c/..d /%C2%A0 /a%3Fb%23 /%2541 /%252e%252e/ /%252F /%2500";

    for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
        check_canonical(rows[n][0], rows[n][1]);
    for (const char *path; (path = check_word(&canonical)) != NULL;)
        check_canonical(path, path);
}

static void check_unclear(struct bytes raw, const char *says)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (const char *rest = cases[i].raws, *raw; (raw = check_word(&rest)) != NULL;)
            check_unclear(bytes_of(raw), cases[i].says);
    check_unclear(BYTES(""), "slash");
    check_unclear(BYTES("/a\0b"), "control");
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
