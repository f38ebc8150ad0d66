/* test_route.c - the route table: what is taken, what is refused and in which words, and its hash. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/route_sample.h"

struct table_case {
    const char *routes; /* in the list, with ' for " */
    const char *says;   /* NULL: taken */
};

static void try_tables(const struct table_case *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char why[ROUTE_WHY_SIZE];
        struct route_table *table = table_of(tests[i].routes, why);
        bool right = tests[i].says == NULL ? table != NULL
                                           : table == NULL && strstr(why, tests[i].says) != NULL;

        if (!CHECK(right))
            printf("# %s\n# %s\n", tests[i].routes, table == NULL ? why : "taken");
        route_table_free(table);
    }
}

#define TRY(cases) try_tables((cases), sizeof(cases) / sizeof((cases)[0]))

/* -- the whole */

TEST(a_table_is_one_object_with_a_list_of_routes)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"routes\":[]}", NULL},
        {" {\n\"routes\" : [ ] } ", NULL},
        {"", "one JSON object"},
        {"[]", "one JSON object"},
        {"{\"routes\":[],}", "one JSON object"},
        {"{\"routes\":[],\"routes\":[]}", "twice"},
        {"{}", "{\"routes\":[...]}"},
        {"{\"routes\":{}}", "{\"routes\":[...]}"},
        {"{\"routes\":null}", "{\"routes\":[...]}"},
        {"{\"routes\":[],\"x\":1}", "the member x is not known"},
        {"{\"routes\":[1]}", "routes[0]: a route is an object"},
        {"{\"routes\":[{}]}", "routes[0]: match is missing"},
        {"{\"routes\":[null]}", "routes[0]: a route is an object"},
    };
    char why[ROUTE_WHY_SIZE];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct route_table *table = route_table_parse(bytes_of(cases[i].text), false, why);

        CHECK((table != NULL) == (cases[i].says == NULL));
        CHECK(cases[i].says == NULL || strstr(why, cases[i].says) != NULL);
        route_table_free(table);
    }
}

TEST(what_is_wrong_is_told_with_the_route)
{
    static const struct table_case cases[] = {
        {"{" ANY("/a", "a") "},{" ANY("/b/{x}", "b:{y}") "}", "routes[1] (/b/{x}): lease"},
        {"{" ANY("/a", "a") ",'colour':1}", "routes[0] (/a): the member colour is not known here"},
        {"{" ANY("/a\\n\\u001b\\u00e9", "a") "}", "routes[0] (/a?\?\?\?): match"},
        {"{" ANY("/a", "a") "},{'lease':'a'}", "routes[1]: match is missing"},
    };

    TRY(cases);
}

TEST(a_file_is_named_too)
{
    const char *path = check_file(BYTES("{\"routes\":[{\"match\":\"a\"}]}"));
    char why[ROUTE_WHY_SIZE];
    struct route_table *table;

    CHECK(route_table_load(path, false, why) == NULL);
    CHECK(strstr(why, path) == why && strstr(why, "routes[0] (a): match must begin with a slash") != NULL);
    unlink(path);
    path = check_file(BYTES("{\"routes\":[]}"));
    table = route_table_load(path, false, why);
    CHECK(table != NULL);
    route_table_free(table);
    unlink(path);
    CHECK(route_table_load(path, false, why) == NULL && strstr(why, path) != NULL);
}

/* -- match and lease */

TEST(a_pattern_is_canonical_its_captures_are_whole_segments_and_pawls_own_addresses_are_none)
{
    static const struct table_case blank[] = {
        {"{" ANY("", "a") "}", "match must be a text that is not empty"},
        {"{" ANY("/a b", "a") "}", "canonical form, here as a%20b"},
    };
    static const struct {
        const char *says, *matches; /* with a blank between two */
    } cases[] = {
        {NULL, "/ /** /a/ /a/{x}/b/{y_2}/** /caf%C3%A9/%2A /{a2345678901234567890123456789012}"},
        {NULL, "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h} /v2/{x} /api/v1/** /{x}"},
        {"must begin with a slash", "a"},
        {"an empty segment", "/a//b //"},
        {"no segment . or ..", "/a/../b"},
        {"%2F", "/a%2Fb"},
        {"%3F", "/a?b"},
        {"canonical form, here as A", "/%41"},
        {"canonical form, here as caf%C3%A9", "/caf%c3%a9"},
        {"a whole segment", "/a{x} /{x}a /{x /x}"},
        {"[a-z][a-z0-9_]{0,31}", "/{} /{X} /{2} /{x-y} /{x**} /{a23456789012345678901234567890123}"},
        {"{x} twice", "/{x}/{x}"},
        {"** is the last segment", "/**/a /a** /*"},
        {"at most 8 captures", "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}"},
        {"/v1 is never forwarded", "/v1/leases/{x} /v1/** /v1"},
        {"never forwarded", "/livez /readyz /metrics/x /version /openapi.json /problems/{x} /ui/{x}"},
    };

    TRY(blank);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (const char *rest = cases[i].matches, *match; (match = check_word(&rest)) != NULL;)
            try_tables(&(struct table_case){textf("{" TO("%s", "a", UP) "}", match), cases[i].says}, 1);
}

TEST(a_lease_is_made_of_captures_and_of_what_may_stand_in_a_name)
{
    static const struct table_case cases[] = {
        {"{" ANY("/{x}", "{x}") "}", NULL},
        {"{" ANY("/{x}/{y}", "a.b_c:{y}-{x}{x}") "}", NULL},
        {"{" ANY("/{x}", "7") "}", NULL},
        {"{" ANY("/{x}", "") "}", "lease must be a text"},
        {"{" ANY("/{x}", "a/{x}") "}", "a character that cannot stand there"},
        {"{" ANY("/{x}", "a {x}") "}", "a character that cannot stand there"},
        {"{" ANY("/{x}", "\\u00e9") "}", "a character that cannot stand there"},
        {"{" ANY("/{x}", "a}") "}", "a character that cannot stand there"},
        {"{" ANY("/{x}", ":{x}") "}", "begins with a letter or digit"},
        {"{" ANY("/{x}", "{x") "}", "a { without a }"},
        {"{" ANY("/{x}", "{}") "}", "that match does not have"},
        {"{" ANY("/{x}", "{y}") "}", "that match does not have"},
        {"{" ANY("/{x}/**", "{**}") "}", "that match does not have"},
        {"{" ANY("/{x}", NAME_127 "{x}") "}", NULL},
        {"{" ANY("/{x}", NAME_127 "a{x}") "}", "at most 128 characters"},
        {"{'match':'/a','upstream':'" UP "','guarantee':'admitted'}", "lease is missing"},
    };

    TRY(cases);
}

/* -- upstreams */

static const struct {
    const char *url, *host, *authority, *prefix;
    unsigned port;
} urls[] = {
    {"http://127.0.0.1:9000", "127.0.0.1", "127.0.0.1:9000", "", 9000},
    {"http://127.0.0.1", "127.0.0.1", "127.0.0.1", "", 80},
    {"http://h:80/", "h", "h", "", 80},
    {"https://H.example", "h.example", "h.example", "", 443},
    {"https://h:80", "h", "h:80", "", 80},
    {"http://h/api/v2", "h", "h", "/api/v2", 80},
    {"http://h/api/", "h", "h", "/api", 80},
    {"http://[::1]:9000", "::1", "[::1]:9000", "", 9000},
    {"http://[0:0::0001]", "::1", "[::1]", "", 80},
    {"unix:/run/a.sock", "/run/a.sock", "localhost", "", 0},
    {"unix:///run/a.sock", "/run/a.sock", "localhost", "", 0},
};
static const struct {
    const char *says, *urls; /* with a blank between two */
} bad_urls[] = {
    {"no user and no password", "http://u@h http://u:secret@h"},
    {"no query", "http://h?x"},
    {"no query and no fragment", "http://h/a#b"},
    {"must begin with http://", "ftp://h HTTP://h h:9000"},
    {"needs a host", "http:// http:///a http://:9000 http://a..b http://-a http://a,b http://127.1"},
    {"needs a host", "http://2130706433 http://0x7f000001 http://::1 http://[::g] http://[::1"},
    {"port", "http://h: http://h:0 http://h:65536 http://h:+1 http://h:090"},
    {"no segment", "http://h/a/../b"},
    {"empty segment", "http://h//"},
    {"canonical", "http://h/%41 http://h/{x}"},
    {"no captures", "http://h/a/**"},
    {"absolute path", "unix: unix:a unix://a/b"},
    {"socket has no segment", "unix:/a/../b unix:/a/"},
};

static struct route_table *table_to(const char *url, char why[ROUTE_WHY_SIZE])
{
    return table_of(textf("{" TO("/a", "a", "%s") "}", url), why);
}

TEST(an_upstream_is_a_url_without_user_and_query_or_a_socket)
{
    char why[ROUTE_WHY_SIZE];

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct route_table *table = table_to(urls[i].url, why);

        if (CHECK(table != NULL)) {
            const struct route_upstream *up = table->routes[0].upstream;

            CHECK_TEXT(bytes_of(up->host), bytes_of(urls[i].host));
            CHECK_TEXT(bytes_of(up->authority), bytes_of(urls[i].authority));
            CHECK_TEXT(bytes_of(up->prefix), bytes_of(urls[i].prefix));
            CHECK_INT(up->port, urls[i].port);
        }
        route_table_free(table);
    }
    for (size_t i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
        for (const char *rest = bad_urls[i].urls, *url; (url = check_word(&rest)) != NULL;) {
            struct route_table *table = table_to(url, why);

            if (!CHECK(table == NULL && strstr(why, bad_urls[i].says) != NULL))
                printf("# %s: %s\n", url, table == NULL ? why : "taken");
            CHECK(strstr(why, "secret") == NULL);
            route_table_free(table);
        }
    }
    CHECK(table_to("http://h h", why) == NULL && strstr(why, "visible") != NULL);
}

TEST(routes_to_one_place_share_an_upstream)
{
    static const char *const urls_of[] = {
        "http://H'",
        "http://h:80/'",
        "http://h/x'",
        "https://h'",
        "https://h','upstream_tls':{'ca_file':'/ca'}",
        "https://h','upstream_tls':{'ca_file':'/ca','cert_file':'/c','key_file':'/k'}"};
    char routes[1024];
    struct route_table *table;
    size_t len = 0;

    for (size_t i = 0; i < sizeof(urls_of) / sizeof(urls_of[0]); i++) {
        len += (size_t)snprintf(routes + len, sizeof(routes) - len,
                                "%s{'match':'/%zu','lease':'%zu','guarantee':'admitted','upstream':'%s}",
                                i > 0 ? "," : "", i, i, urls_of[i]);
    }
    table = table_good(routes);
    CHECK_INT(table->upstream_count, 5);
    CHECK(table->routes[0].upstream == table->routes[1].upstream);
    CHECK(table->routes[0].upstream != table->routes[2].upstream);
    CHECK(table->routes[3].upstream != table->routes[4].upstream);
    CHECK(table->routes[4].upstream != table->routes[5].upstream);
    for (unsigned i = 0; i < table->upstream_count; i++)
        CHECK_INT(table->upstreams[i]->index, i);
    route_table_free(table);
}

#define TLS(url, members) "{" TO("/a", "a", url) ",'upstream_tls':" members "}"
#define SHOWN "'cert_file':'/c.pem','key_file':'/c.key'"

TEST(certificates_are_for_https_and_an_authorization_is_pawls_or_the_callers)
{
    static const struct table_case cases[] = {
        {TLS("https://h", "{'ca_file':'/etc/ca.pem'}"), NULL},
        {TLS("https://h", "{" SHOWN "}"), NULL},
        {TLS("https://h", "{'ca_file':'/etc/ca.pem'," SHOWN "}"), NULL},
        {TLS("https://h", "{}"), "upstream_tls must have ca_file, or cert_file and key_file"},
        {TLS("https://h", "'/etc/ca.pem'"), "upstream_tls must be an object"},
        {TLS("https://h", "{'ca_file':'/etc/ca.pem','key':'/k'}"), "and nothing else"},
        {TLS("https://h", "{'cert_file':'/c.pem'}"), "go together"},
        {TLS("https://h", "{'ca_file':'/etc/ca.pem','key_file':'/c.key'}"), "go together"},
        {TLS("https://h", "{'ca_file':'ca.pem'}"), "ca_file must be the path of a file"},
        {TLS("https://h", "{'cert_file':'c.pem','key_file':'/c.key'}"), "cert_file must be the path"},
        {TLS("https://h", "{'ca_file':''}"), "ca_file must be a text that is not empty"},
        {TLS("http://h", "{'ca_file':'/etc/ca.pem'}"), "https://"},
        {TLS("http://h", "{" SHOWN "}"), "https://"},
        {TLS("unix:/a", "{'ca_file':'/etc/ca.pem'}"), "https://"},
        {"{" TO("/a", "a", "https://h") ",'ca_file':'/etc/ca.pem'}", "ca_file is not known"},
        {"{" TO("/a", "a", "http://h") ",'upstream_authorization_file':'/t','credential':'own'}", NULL},
        {"{" TO("/a", "a", "http://h") ",'upstream_authorization_file':'t'}", "must be the path of a file"},
        {"{" TO("/a", "a", "http://h") ",'upstream_authorization_file':'/t','credential':'upstream'}",
         "is for credential own"},
    };

    TRY(cases);
}

/* -- promises */

TEST(a_route_states_a_guarantee_that_can_be_kept)
{
    static const struct table_case cases[] = {
        {"{'match':'/a','lease':'a','upstream':'" UP "'}", "guarantee is missing"},
        {"{" G("/a", "a", "safe") "}", "guarantee must be one of: committed, ordered, admitted"},
        {"{" G("/a", "a", "ordered") ",'check':'mark','reads':'fenced','serial':true}", NULL},
        {"{" G("/a", "a", "ordered") ",'check':'none'}", "check must be one of: live, mark"},
        {"{" G("/a", "a", "ordered") ",'check':true}", "check must be a text"},
        {"{" G("/a", "a", "ordered") ",'reads':'closed'}", "reads must be one of: open, fenced"},
        {"{" G("/a", "a", "ordered") ",'serial':'yes'}", "serial must be true or false"},
        {"{" G("/a", "a", "committed") "}", "needs upstream_checks or if_match"},
        {"{" G("/a", "a", "committed") ",'upstream_checks':false}", "needs upstream_checks or if_match"},
        {"{" G("/a", "a", "committed") ",'upstream_checks':true,'reads':'fenced'}", NULL},
        {"{" G("/a", "a", "committed") ",'if_match':true}", NULL},
        {"{" G("/a", "a", "committed") ",'if_match':true,'upstream_checks':true}", "not both"},
        {"{" G("/a", "a", "ordered") ",'upstream_checks':true}",
         "upstream_checks is for guarantee committed"},
        {"{" G("/a", "a", "admitted") ",'if_match':true}", "if_match is for guarantee committed"},
        {"{" G("/a", "a", "admitted") ",'serial':true}", "serial is for guarantee ordered"},
        {"{" G("/a", "a", "admitted") ",'serial':false}", NULL},
        {"{" G("/a", "a", "admitted") ",'unknown':'hold'}", "unknown is for guarantee ordered"},
        {"{" G("/a", "a", "committed") ",'upstream_checks':true,'unknown':{'grace_ms':1000}}",
         "unknown is for"},
        {"{" G("/a", "a", "admitted") ",'reads':'fenced'}", "reads fenced needs"},
        {"{" G("/a", "a", "admitted") ",'reads':'open'}", NULL},
    };

    TRY(cases);
}

TEST(ordered_needs_a_store_that_does_not_lose)
{
    char why[ROUTE_WHY_SIZE];
    struct bytes ordered = BYTES("{\"routes\":[{\"match\":\"/a\",\"lease\":\"a\",\"upstream\":\"http://h\","
                                 "\"guarantee\":\"ordered\"}]}");
    struct bytes admitted = BYTES("{\"routes\":[{\"match\":\"/a\",\"lease\":\"a\",\"upstream\":\"http://h\","
                                  "\"guarantee\":\"admitted\"}]}");
    struct route_table *table = route_table_parse(ordered, false, why);

    CHECK(table != NULL);
    route_table_free(table);
    CHECK(route_table_parse(ordered, true, why) == NULL);
    CHECK(strstr(why, "routes[0] (/a)") != NULL && strstr(why, "--allow-unsafe-redis") != NULL);
    table = route_table_parse(admitted, true, why);
    CHECK(table != NULL);
    route_table_free(table);
}

#define ORDERED "{" G("/{x}/{y}", "{x}", "ordered")

TEST(an_unknown_outcome_holds_waits_a_grace_or_is_probed)
{
    static const struct table_case cases[] = {
        {ORDERED ",'unknown':'hold'}", NULL},
        {ORDERED ",'unknown':{'grace_ms':1000}}", NULL},
        {ORDERED ",'unknown':{'grace_ms':86400000}}", NULL},
        {ORDERED ",'unknown':{'grace_ms':999}}", "grace_ms must be 1000 to 86400000"},
        {ORDERED ",'unknown':{'grace_ms':86400001}}", "grace_ms must be"},
        {ORDERED ",'unknown':{'grace_ms':1e4}}", "grace_ms must be an integer"},
        {ORDERED ",'unknown':{'grace_ms':'5s'}}", "grace_ms must be an integer"},
        {ORDERED ",'unknown':{}}", "one of them"},
        {ORDERED ",'unknown':{'grace_ms':1000,'probe':'GET /a'}}", "one of them"},
        {ORDERED ",'unknown':{'hold':true}}", "nothing else"},
        {ORDERED ",'unknown':'grace'}", "unknown must be \"hold\""},
        {ORDERED ",'unknown':null}", "unknown must be \"hold\""},
        {ORDERED ",'unknown':true}", "unknown must be \"hold\""},
        {ORDERED ",'unknown':{'probe':'GET /{x}/last'}}", NULL},
        {ORDERED ",'unknown':{'probe':'HEAD /a/p-{x}'}}", NULL},
        {ORDERED ",'unknown':{'probe':'POST /a'}}", "GET /path"},
        {ORDERED ",'unknown':{'probe':'GET'}}", "GET /path"},
        {ORDERED ",'unknown':{'probe':'/a'}}", "GET /path"},
        {ORDERED ",'unknown':{'probe':'GET  /a'}}", "begins with a slash"},
        {ORDERED ",'unknown':{'probe':'GET /a?b'}}", "%3F"},
        {ORDERED ",'unknown':{'probe':'GET /%41'}}", "canonical"},
        {ORDERED ",'unknown':{'probe':'GET /{y}'}}", "that lease does not have"},
        {ORDERED ",'unknown':{'probe':'GET /{z}'}}", "that match does not have"},
        {ORDERED ",'unknown':{'probe':'GET /{x}/{x}'}}", "a capture twice"},
    };

    TRY(cases);
}

TEST(if_match_needs_one_url_for_each_lease)
{
    static const struct table_case cases[] = {
        {"{" IF_MATCH("/a/{x}", "a:{x}") "}", NULL},
        {"{" IF_MATCH("/a/{x}/{y}", "a:{y}:{x}") "}", NULL},
        {"{" IF_MATCH("/a/{x}/**", "a:{x}") "}", "match ends with **"},
        {"{" IF_MATCH("/a/{x}/{y}", "a:{x}") "}", "a capture that lease does not have"},
        {"{" IF_MATCH("/a/{x}/{y}", "a:{x}{y}") "}", "side by side"},
        {"{" IF_MATCH("/a/{x}", "a:{x}") "},{" IF_MATCH("/b/{x}", "b:{x}") "}", NULL},
        {"{" IF_MATCH("/a/{x}", "a:{x}") "},{" IF_MATCH("/b/{x}", "a:{x}") "}",
         "routes[0], and if_match needs one"},
        {"{" IF_MATCH("/a/{x}", "a:{x}") "},{" IF_MATCH("/a/{x}/l", "a:{x}:l") "}",
         "routes[0], and if_match needs"},
        {"{" IF_MATCH("/a/{x}", "a:{x}") "},{" TO("/b/{x}", "a:{x}", "http://other") "}",
         "routes[1] (/b/{x})"},
        {"{" TO("/b/{x}", "{x}", "http://other") "},{" IF_MATCH("/a/{x}", "a:{x}") "}", "routes[1] (/a/{x})"},
        {"{" IF_MATCH("/a/{x}", "a:{x}-end") "},{" IF_MATCH("/b/{x}", "a:{x}-End") "}", NULL},
    };

    TRY(cases);
}

/* -- two routes */

TEST(a_route_that_is_never_reached_is_refused)
{
    static const struct table_case cases[] = {
        {"{" ANY("/a", "a") "},{" ANY("/a", "b") "}", "routes[1] (/a): it is never reached: routes[0]"},
        {"{" ANY("/a/**", "a") "},{" ANY("/a", "b") "}", "never reached"},
        {"{" ANY("/a/**", "a") "},{" ANY("/a/", "b") "}", "never reached"},
        {"{" ANY("/a/**", "a") "},{" ANY("/a/{x}/b", "b") "}", "never reached"},
        {"{" ANY("/a/**", "a") "},{" ANY("/a/{x}/**", "b") "}", "never reached"},
        {"{" ANY("/**", "a") "},{" ANY("/", "b") "}", "never reached"},
        {"{" ANY("/{x}", "a") "},{" ANY("/b", "b") "}", "never reached"},
        {"{" ANY("/{x}/{y}", "a") "},{" ANY("/{y}/{x}", "b") "}", "never reached"},
        {"{" ANY("/a:b", "a") "},{" ANY("/a%3Ab", "b") "}", "never reached"},
        {"{" ANY("/a", "a") "},{" ANY("/a/**", "b") "}", NULL},
        {"{" ANY("/a/b", "a") "},{" ANY("/a/{x}", "b") "},{" ANY("/a/{x}/**", "c") "},{" ANY("/**", "d") "}",
         NULL},
        {"{" ANY("/a/{x}", "a") "},{" ANY("/a/", "b") "}", NULL},
        {"{" ANY("/a/{x}", "a") "},{" ANY("/a/**", "b") "}", NULL},
        {"{" ANY("/a/{x}/c", "a") "},{" ANY("/a/b/{x}", "b") "}", NULL},
    };

    TRY(cases);
}

/* Both to UP. */
#define PAIR(first, second) "{" G("/a/{x}", "l:{x}", first) "},{" G("/b/{x}", "l:{x}", second) "}"
#define APART(first, second)                                                                                 \
    "{" G("/a/{x}", "l:{x}", first) "},{'match':'/b/{x}','lease':'l:{x}','upstream':'http://other',"         \
                                    "'guarantee':'" second "'}"

TEST(routes_that_can_have_one_lease_at_one_upstream_agree_on_the_promise)
{
    static const struct table_case cases[] = {
        {PAIR("ordered", "ordered"), NULL},
        {PAIR("admitted", "admitted"), NULL},
        {PAIR("ordered", "admitted"), "only one of them is ordered"},
        {PAIR("admitted", "ordered"), "only one of them is ordered"},
        {PAIR("ordered", "committed','upstream_checks':true,'check':'live"), "only one of them is ordered"},
        {PAIR("admitted", "committed','upstream_checks':true,'check':'live"), NULL},
        {PAIR("admitted", "committed','upstream_checks':true,'reads':'fenced"), "older writes could land"},
        {PAIR("committed','upstream_checks':true,'reads':'fenced", "admitted"), "older writes could land"},
        {PAIR("ordered", "ordered','check':'mark"), "check live, the other mark"},
        {PAIR("admitted','check':'mark", "admitted"), "check live, the other mark"},
        {PAIR("ordered','unknown':{'grace_ms':5000},'reads':'open", "ordered"), "another grace_ms, or none"},
        {PAIR("ordered','unknown':{'grace_ms':5000},'reads':'open",
              "ordered','unknown':{'grace_ms':6000},'reads':'open"),
         "another grace_ms, or none"},
        {PAIR("ordered','unknown':{'grace_ms':5000},'reads':'open",
              "ordered','unknown':{'grace_ms':5000},'reads':'fenced"),
         NULL},
        {PAIR("ordered','unknown':{'probe':'GET /a/{x}'},'reads':'open", "ordered"), NULL},
        {PAIR("ordered','serial':true,'reads':'open", "ordered"), NULL},
        {APART("ordered", "admitted"), NULL},
        {APART("ordered", "ordered','check':'mark"), NULL},
        {APART("ordered", "admitted','check':'mark','store':'another-store-----------"), "different stores"},
        {PAIR("admitted", "admitted','check':'mark','store':'another-store-----------"), "different stores"},
        {"{" G("/a/{x}", "a:{x}", "ordered") "},{" G("/b/{x}", "b:{x}", "admitted") "}", NULL},
        {"{" G("/a/{x}", "a:{x}", "ordered") "},{" G("/b/{x}", "{x}", "admitted") "}", "only one of them"},
        {"{" G("/a/{x}", "{x}:a", "ordered") "},{" G("/b/{x}", "{x}:b", "admitted") "}", NULL},
        {"{" G("/a/{x}", "{x}:a", "ordered") "},{" G("/b/{x}", "b:{x}", "admitted") "}", "only one of them"},
        {"{" G("/a", "one", "ordered") "},{" G("/b", "one", "admitted") "}", "only one of them"},
        {"{" G("/a", "one", "ordered") "},{" G("/b", "one.", "admitted") "}", NULL},
        {"{" G("/a/{x}", "l", "ordered") "},{" G("/b/{x}", "l{x}", "admitted") "}", NULL},
        {"{" G("/a", "l", "ordered") "},{'match':'/b','lease':'l','upstream':'" UP
                                     "/api','guarantee':'admitted'}",
         "only one of them"},
        {"{'match':'/a','lease':'l','upstream':'http://h','guarantee':'ordered'},"
         "{'match':'/b','lease':'l','upstream':'https://h','guarantee':'admitted'}",
         "only one of them"},
        {"{'match':'/a','lease':'l','upstream':'http://h:1','guarantee':'ordered'},"
         "{'match':'/b','lease':'l','upstream':'http://h:2','guarantee':'admitted'}",
         NULL},
    };

    TRY(cases);
}

/* -- limits */

TEST_TABLE(times_and_sizes_have_limits_and_defaults, "{" G("/a", "a", "ordered") "}")
{
    static const struct table_case cases[] = {
        {"{" ANY("/a", "a") ",'timeout_ms':100}", NULL},
        {"{" ANY("/a", "a") ",'timeout_ms':600000}", NULL},
        {"{" ANY("/a", "a") ",'timeout_ms':99}", "timeout_ms must be 100 to 600000"},
        {"{" ANY("/a", "a") ",'timeout_ms':600001}", "timeout_ms must be 100 to 600000"},
        {"{" ANY("/a", "a") ",'timeout_ms':'30s'}", "timeout_ms must be an integer"},
        {"{" ANY("/a", "a") ",'max_body':0}", NULL},
        {"{" ANY("/a", "a") ",'max_body':1099511627776}", NULL},
        {"{" ANY("/a", "a") ",'max_body':1099511627777}", "max_body must be 0 to"},
        {"{" ANY("/a", "a") ",'max_body':-1}", "max_body must be 0 to"},
    };

    TRY(cases);
    CHECK_INT(table->routes[0].timeout_ms, 30000);
    CHECK_INT(table->routes[0].max_body, 0);
    CHECK_INT(table->routes[0].check, ROUTE_LIVE);
    CHECK_INT(table->routes[0].reads, ROUTE_READS_OPEN);
    CHECK_INT(table->routes[0].unknown, ROUTE_HOLD);
    CHECK_INT(table->routes[0].aid, ROUTE_AID_NONE);
    CHECK_TEXT(bytes_of(table->routes[0].unknown_text), BYTES("h"));
    CHECK(!table->routes[0].serial);
}

TEST(a_table_has_at_most_1000_routes)
{
    char *text = malloc(200 * 1024), why[ROUTE_WHY_SIZE];
    struct route_table *table;
    size_t len = 0;

    for (int i = 0; i <= ROUTES_MAX; i++) {
        len += (size_t)snprintf(
            text + len, 200,
            "%s{'match':'/a%d/{x}','lease':'a%d:{x}','upstream':'http://h','guarantee':'ordered'}",
            i > 0 ? "," : "", i, i);
        if (i == ROUTES_MAX - 1) {
            table = table_of(text, why);
            CHECK(table != NULL && table->count == ROUTES_MAX);
            route_table_free(table);
        }
    }
    CHECK(table_of(text, why) == NULL && strstr(why, "at most 1000 routes") != NULL);
    free(text);
}

/* -- the hash */

static bool same_hash(const char *a, const char *b)
{
    struct route_table *one = table_good(a), *other = table_good(b);
    bool same = strcmp(one->hash, other->hash) == 0;

    CHECK(strlen(one->hash) == ROUTE_HASH_CHARS);
    route_table_free(one);
    route_table_free(other);
    return same;
}

#define BASE "'match':'/a/{x}/**','lease':'a:{x}','upstream':'http://h','guarantee':'ordered'"

TEST(the_hash_does_not_see_how_a_table_is_written)
{
    static const char *const written[] = {
        "{ 'guarantee' : 'ordered',\n 'upstream':'http://h', 'lease':'a:{x}', 'match':'/a/{x}/**' }",
        "{'match':'/a/{id}/**','lease':'a:{id}','upstream':'http://H:80/','guarantee':'ordered'}",
        "{" BASE
        ",'check':'live','reads':'open','serial':false,'unknown':'hold','timeout_ms':30000,'max_body':0}",
        "{" BASE ",'read_methods':['OPTIONS','GET','HEAD'],'upstream_checks':false,'if_match':false}",
        "{" BASE
        ",'headers':{},'unsure_statuses':[599,598,530,527,526,525,524,523,522,521,520,504,503,502,408,202]}",
        "{" BASE ",'headers':{'request':{},'answer':{'deny':[]}}}",
    };

    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
        if (!CHECK(same_hash("{" BASE "}", written[i])))
            printf("# %s\n", written[i]);
    CHECK(same_hash("{" BASE ",'headers':{'request':{'deny':['Cookie','x-a']}}}",
                    "{" BASE ",'headers':{'request':{'deny':['X-A','cookie']}}}"));
    CHECK(same_hash("{" ANY("/a:b", "a") "}", "{" ANY("/a%3Ab", "a") "}"));
}

TEST(the_hash_sees_everything_that_a_table_means)
{
    static const char *const others[] = {
        "{'match':'/b/{x}/**','lease':'a:{x}','upstream':'http://h','guarantee':'ordered'}",
        "{'match':'/a/{x}','lease':'a:{x}','upstream':'http://h','guarantee':'ordered'}",
        "{'match':'/a/x/**','lease':'a:x','upstream':'http://h','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'b:{x}','upstream':'http://h','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'a:x','upstream':'http://h','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'a:{x}','upstream':'http://h:81','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'a:{x}','upstream':'https://h:80','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'a:{x}','upstream':'http://i','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'a:{x}','upstream':'http://h/p','guarantee':'ordered'}",
        "{'match':'/a/{x}/**','lease':'a:{x}','upstream':'http://h','guarantee':'admitted'}",
        "{'match':'/a/{x}/**','lease':'a:{x}','upstream':'http://"
        "h','guarantee':'committed','upstream_checks':true}",
        "{" BASE ",'check':'mark'}",
        "{" BASE ",'check':'mark','store':'aaaaaaaaaaaaaaaaaaaaaaaa'}",
        "{" BASE ",'check':'mark','store':'aaaaaaaaaaaaaaaaaaaaaaab'}",
        "{" BASE ",'reads':'fenced'}",
        "{" BASE ",'serial':true}",
        "{" BASE ",'unknown':{'grace_ms':5000}}",
        "{" BASE ",'unknown':{'grace_ms':5001}}",
        "{" BASE ",'unknown':{'probe':'GET /a'}}",
        "{" BASE ",'unknown':{'probe':'HEAD /a'}}",
        "{" BASE ",'unknown':{'probe':'GET /a/{x}'}}",
        "{" BASE ",'timeout_ms':30001}",
        "{" BASE ",'max_body':1}",
        "{" BASE ",'read_methods':[]}",
        "{" BASE ",'read_methods':['GET','HEAD']}",
        "{" BASE ",'headers':{'request':{'allow':[]}}}",
        "{" BASE ",'headers':{'answer':{'allow':[]}}}",
        "{" BASE ",'headers':{'request':{'deny':['a']}}}",
        "{" BASE ",'headers':{'request':{'allow':['a']}}}",
        "{" BASE ",'unsure_statuses':[]}",
        "{" BASE ",'unsure_statuses':[202,502,503]}",
        "{" BASE "},{" ANY("/z", "z") "}",
        "{" BASE "},{" ANY("/y", "z") "}",
        "{" ANY("/z", "z") "},{" BASE "}",
    };
    enum { COUNT = sizeof(others) / sizeof(others[0]) };

    for (size_t i = 0; i < COUNT; i++) {
        if (!CHECK(!same_hash("{" BASE "}", others[i])))
            printf("# %s\n", others[i]);
        for (size_t j = 0; j < i; j++)
            CHECK(!same_hash(others[i], others[j]));
    }
    CHECK(!same_hash("{" IF_MATCH("/a:b/{x}", "{x}") "}", "{" IF_MATCH("/a%3Ab/{x}", "{x}") "}"));
    CHECK(!same_hash("{" TO("/a", "a", "https://h") "}", TLS("https://h", "{'ca_file':'/ca'}")));
    CHECK(!same_hash("{" TO("/a", "a", "https://h") "}", TLS("https://h", "{" SHOWN "}")));
    CHECK(!same_hash("{" TO("/a", "a", "http://h") "}",
                     "{" TO("/a", "a", "http://h") ",'upstream_authorization_file':'/t'}"));
}

CHECK_MAIN
