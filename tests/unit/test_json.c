/* test_json.c - what is JSON to Pawl and what is not, and what members are. */
#include <stdlib.h>
#include <time.h>

#include "shared/text/json.h"
#include "tests/unit/check.h"

enum { DEPTH = 8, BODY_MAX = 16 * 1024 };

static bool accepts(struct bytes text)
{
    struct json_fault fault = {.why = ""};
    struct json *json = json_parse(text, DEPTH, &fault);

    CHECK((json == NULL) == (fault.why[0] != '\0')); /* a refusal has its sentence */
    json_free(json);
    return json != NULL;
}

/* -- the grammar */

/* BYTES() is a compound literal: no constant for a static table. */
#define TEXT(literal)                                                                                        \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

static const struct bytes accepted[] = {
    TEXT("{}"),
    TEXT(" \t\r\n{ \t\r\n} \t\r\n"),
    TEXT("{\"a\":1}"),
    TEXT("{\"\":null}"),
    TEXT("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}"),
    TEXT("{ \"a\" : [ ] , \"b\" : [ 1 , true , false , null , \"x\" , { } ] }"),
    TEXT("{\"a\":[0,-0,-1,10,1.5,-0.0,0e1,1E+2,1e-2,123.456e789]}"),
    TEXT("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u00e4\\uD7FF\\uE000\\uFFFF\"}"),
    TEXT("{\"a\":\"\\ud83d\\udd12\\uDBFF\\uDFFF\\ud800\\udc00\"}"),
    TEXT("{\"a\":\"\x7f \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf "
         "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\"}"),
    TEXT("{\"a\":1,\"A\":2}"),
    TEXT("{\"a\":1,\"a\\u0062\":2}"),
    TEXT("{\"a\":1,\"a \":2}"),
};

static const struct bytes refused[] = {
    {NULL, 0},
    TEXT(""),
    TEXT(" "),
    TEXT("\0{}"),
    TEXT("{}\0"),
    TEXT("{} x"),
    TEXT("{\"a\":1 \"b\":2}"),
    TEXT("{\"a\" 1}"),
    TEXT("{\"a\":[1 2]}"),
    TEXT("{\"a\":1\0}"),
    TEXT("{\"a\":\"\0\"}"),
};

/* With a blank between two: what is no object, is not ended or has something behind it; commas, colons, names
 * and brackets; values; and repeated members, also inside, also written otherwise. */
static const char refused_words[] =
    "1 null \"a\" [] [{}] \xef\xbb\xbf{} \v{} \f{} \xc2\xa0{} "
    "{ {\" {\"a {\"a\" {\"a\": {\"a\":1 {\"a\":\"\\ {\"a\":\"\\u12 {\"a\":[ {\"a\":[1 {}{} {}, {}] "
    "{,} {\"a\":1,} {,\"a\":1} {\"a\":1,,\"b\":2} {\"a\"::1} {\"a\"} {a:1} {'a':1} {1:1} {null:1} "
    "{\"a\":[1,]} {\"a\":[,1]} {\"a\":[1} {\"a\":{1]} {\"a\":[}] {\"a\":/**/1} {\"a\":1//\n} {\"a\":} "
    "{\"\\u0000\":1} {\"a\\u0000b\":1} {\"\xff\":1} "
    "{\"a\":1,\"a\":1} {\"a\":1,\"b\":2,\"a\":3} {\"a\":1,\"\\u0061\":1} {\"\":1,\"\":2} "
    "{\"x\":{\"a\":1,\"a\":1}} {\"x\":[{},[{\"a\":1,\"a\":1}]]} {\"\xc3\xa4\":1,\"\\u00e4\":1} "
    "{\"\\ud83d\\udd12\":1,\"\xf0\x9f\x94\x92\":1} {\"/\":1,\"\\/\":1} "
    "{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"1\":0}";
static const char refused_values[] = /* with a blank between two */
    "nul nulll True undefined NaN Infinity -Infinity "
    "01 -01 00 - +1 .5 1. 1.e5 1e 1e+ 1e5.5 0x10 1_000 --1 1-1 1a "
    "\"\n\" \"\t\" \"\x1f\" \"\\0\" \"\\x41\" \"\\a\" \"\\'\" \"\\U0041\" \"\\u004\" \"\\u004g\" \"\\u+041\" "
    "\"\\u0000\" \"\\ud800\" \"\\udc00\" \"\\udfff\\ud800\" \"\\ud800x\" \"\\ud800\\n\" \"\\ud800\\ud800\" "
    "\"\\ud800\\u0041\" \"\\udbff\\ue000\" "
    "\"\xed\xa0\x80\" \"\xe2\x82\""; /* which bytes are UTF-8, test_json_write.c says */

TEST(what_rfc_8259_allows_is_accepted)
{
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++)
        if (!accepts(accepted[i]))
            CHECK_TEXT(accepted[i], BYTES("accepted"));
}

TEST(what_is_not_strictly_json_or_repeats_a_member_is_refused)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (accepts(refused[i]))
            CHECK_TEXT(refused[i], BYTES("refused"));
    for (const char *rest = refused_words, *text; (text = check_word(&rest)) != NULL;)
        if (accepts(bytes_of(text)))
            CHECK_TEXT(bytes_of(text), BYTES("refused"));
    for (const char *rest = refused_values, *value; (value = check_word(&rest)) != NULL;)
        if (accepts(bytes_of(textf("{\"a\":%s}", value))))
            CHECK_TEXT(bytes_of(value), BYTES("refused"));
}

/* An object around so many of the brackets, one in the other. */
static struct bytes nested(char *buf, unsigned levels, const char *open, const char *close)
{
    size_t len = 0;

    for (unsigned i = 0; i < levels; i++) {
        memcpy(buf + len, open, strlen(open));
        len += strlen(open);
    }
    buf[len++] = '1';
    for (unsigned i = 0; i < levels; i++)
        buf[len++] = *close;
    return (struct bytes){buf, len};
}

TEST(eight_levels_are_taken_and_nine_are_not)
{
    char buf[512] = "{\"a\":";
    struct bytes lists;

    CHECK(accepts(nested(buf, 8, "{\"a\":", "}")));
    CHECK(!accepts(nested(buf, 9, "{\"a\":", "}")));
    lists = nested(buf + 5, 7, "[", "]");
    memcpy(buf, "{\"a\":", 5);
    buf[5 + lists.len] = '}';
    CHECK(accepts((struct bytes){buf, lists.len + 6}));
    lists = nested(buf + 5, 8, "[", "]");
    buf[5 + lists.len] = '}';
    CHECK(!accepts((struct bytes){buf, lists.len + 6}));
    CHECK(json_parse(BYTES("{\"a\":{}}"), 1, NULL) == NULL);
}

TEST(a_refusal_names_the_limit_and_the_member)
{
    static const struct {
        const char *text, *why;
        bool has_nul;
    } rows[] = {
        {"[]", "The JSON text is not an object.", false},
        {"{\"b\":[],\"a\":{\"c\":[{}]}}", "The JSON text may have 3 levels, at the member a.", false},
        {"{\"b\":1,\"a\":01}", "A number is not written as JSON wants, at the member a.", false},
        {"{\"b\":1,\"a", "A text has no closing quote, at the member a.", false},
        {"{\"a\":1,\"\\u0061\":1}", "The member a stands there twice.", false},
        {"{\"b\":{\"d\":[{\"c\":1,\"c\":1}]}}", "The JSON text may have 3 levels, at the member b.", false},
        {"{\"b\":{\"x\":1,\"x\":1}}", "The member b.x stands there twice.", false},
        {"{\"a\":[{}],\"b\":[0,{\"x\":1,\"x\":1}]}", "The member b[1].x stands there twice.", false},
        {"{\"b\":0,\"a\":[\"\\u0000\"],\"c\":1}", "A text must not have \\u0000 in it, at the member a.",
         true},
        {"{\"a\":\"\\u0000\"} x", "Something stands behind the JSON object, at the member a.", false},
        {"{\"a\":\"\\u0000\",\"b\":01}", "A number is not written as JSON wants, at the member b.", false},
        {"{\"\\u0000\":1}", "A member's name must not have \\u0000 in it, at the member ?u0000.", false},
        {"{\"\x7f\xc3\xa4\":-}", "A number is not written as JSON wants, at the member ???.", false},
        {"{\"1234567890123456789012345678901234567890123456789012345678901234567890\":-}",
         "A number is not written as JSON wants, at the member "
         "1234567890123456789012345678901234567890123456789012345678901234.",
         false},
    };
    struct json_fault fault;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(json_parse(bytes_of(rows[i].text), 3, &fault) == NULL);
        CHECK_TEXT(bytes_of(fault.why), bytes_of(rows[i].why));
        CHECK(fault.has_nul == rows[i].has_nul);
    }
}

TEST(a_number_may_have_63_characters_and_not_64)
{
    char buf[128];

    for (int digits = 62; digits <= 65; digits++) {
        int len = snprintf(buf, sizeof(buf), "{\"a\":-%0*d}", digits - 1, 0);

        memset(buf + 6, '9', (size_t)digits - 1);
        CHECK(accepts((struct bytes){buf, (size_t)len}) == (digits <= 63));
    }
}

/* -- integers */

static const struct {
    const char *number;
    int64_t value;
} int_cases[] = {
    {"0", 0},
    {"-0", 0},
    {"100", 100},
    {"-7", -7},
    {"1000000000000000", 1000000000000000},
    {"9007199254740993", 9007199254740993},
    {"9223372036854775807", INT64_MAX},
    {"-9223372036854775808", INT64_MIN},
};

static void check_number(const char *number, enum json_found found, int64_t wanted)
{
    int64_t value = 42;
    struct json *json = json_parse(
        bytes_of(textf("{\"before\":[1,{\"n\":5}],\"n\": %s ,\"after\":2}", number)), DEPTH, NULL);

    if (!CHECK(json != NULL))
        return;
    CHECK_INT(json_get_int(json, "n", &value), found);
    CHECK_INT(value, wanted);
    CHECK_INT(json_get_int(json, "after", &value), JSON_FOUND);
    CHECK_INT(value, 2);
    CHECK_INT(json_get_int(json, "absent", &value), JSON_ABSENT);
    json_free(json);
}

TEST(integers_are_exact_within_int64_and_mistyped_otherwise)
{
    const char *mistyped = "9223372036854775808 -9223372036854775809 18446744073709551617 "
                           "99999999999999999999999999 1.0 1e3 1E0 0.5 -0.0 1e999 \"1\" true null [1] {}";

    for (size_t i = 0; i < sizeof(int_cases) / sizeof(int_cases[0]); i++)
        check_number(int_cases[i].number, JSON_FOUND, int_cases[i].value);
    for (const char *number; (number = check_word(&mistyped)) != NULL;)
        check_number(number, JSON_MISTYPED, 42);
}

/* -- members */

static struct json *parse(const char *text)
{
    struct json_fault fault;
    struct json *json = json_parse(bytes_of(text), DEPTH, &fault);

    if (!CHECK(json != NULL)) {
        printf("# %s\n", fault.why);
        exit(1);
    }
    return json;
}

TEST(texts_come_decoded)
{
    struct json *json = parse(
        "{\"a\":\"x\\\"\\\\\\/\\n\\u00e4\\ud83d\\udd12\",\"\\u0062\":\"\",\"c\":null,\"d\":7}");
    struct bytes value = BYTES("before");

    CHECK_INT(json_get_text(json, "a", &value), JSON_FOUND);
    CHECK_TEXT(value, BYTES("x\"\\/\n\xc3\xa4\xf0\x9f\x94\x92"));
    CHECK_INT(json_get_text(json, "b", &value), JSON_FOUND);
    CHECK_INT(value.len, 0);
    CHECK_INT(json_get_text(json, "c", &value), JSON_MISTYPED);
    CHECK_INT(json_get_text(json, "d", &value), JSON_MISTYPED);
    CHECK_INT(json_get_text(json, "A", &value), JSON_ABSENT); /* cJSON's own look-up would find "a" */
    json_free(json);
}

TEST(booleans_are_booleans_only)
{
    struct json *json = parse("{\"t\":true,\"f\":false,\"n\":null,\"one\":1,\"text\":\"true\"}");
    bool value = false;

    CHECK_INT(json_get_bool(json, "t", &value), JSON_FOUND);
    CHECK(value);
    CHECK_INT(json_get_bool(json, "f", &value), JSON_FOUND);
    CHECK(!value);
    CHECK_INT(json_get_bool(json, "n", &value), JSON_MISTYPED);
    CHECK_INT(json_get_bool(json, "one", &value), JSON_MISTYPED);
    CHECK_INT(json_get_bool(json, "text", &value), JSON_MISTYPED);
    CHECK_INT(json_get_bool(json, "absent", &value), JSON_ABSENT);
    json_free(json);
}

TEST(the_first_unknown_member_is_named)
{
    static const char *const names[] = {"ttl_ms", "holder", NULL};
    struct json *json = parse("{\"holder\":1,\"ttl_ms\":{\"x\":1,\"y\":2}}");

    CHECK(json_unknown(json, names) == NULL);
    json_free(json);
    json = parse("{\"holder\":1,\"\\u0074tl\":2,\"z\":3}");
    CHECK_TEXT(bytes_of(json_unknown(json, names)), BYTES("ttl"));
    json_free(json);
    json = parse("{}");
    CHECK(json_unknown(json, names) == NULL);
    json_free(json);
}

TEST(an_object_comes_minified_with_its_numbers_escapes_and_order_as_written)
{
    static const char text[] =
        "{\"meta\" : { \"z\" : 1.50 ,\n\t\"a\" : [ 1e2 , -0 , { } ] , \"k \\\" :\" : \"a \\\\\" , "
        "\"\\u0061b\":\" { } \" },\"other\":[ ]}";
    static const char minified[] =
        "{\"z\":1.50,\"a\":[1e2,-0,{}],\"k \\\" :\":\"a \\\\\",\"\\u0061b\":\" { } \"}";
    struct json *json = parse(text);
    char buf[sizeof(minified) - 1];
    size_t len = 0;

    CHECK_INT(json_get_object_raw(json, "meta", buf, sizeof(buf), &len), JSON_FOUND);
    CHECK_TEXT(((struct bytes){buf, len}), BYTES(minified));
    CHECK_INT(json_get_object_raw(json, "other", buf, sizeof(buf), &len), JSON_MISTYPED);
    CHECK_INT(json_get_object_raw(json, "absent", buf, sizeof(buf), &len), JSON_ABSENT);
    json_free(json);
}

TEST(an_object_longer_than_the_buffer_leaves_it_untouched_and_says_how_long_it_is)
{
    struct json *json = parse("{\"meta\":{ \"a\" : 1 }}"); /* 7 bytes minified */
    char buf[8] = "xxxxxxx";
    size_t len = 0;

    CHECK_INT(json_get_object_raw(json, "meta", buf, 6, &len), JSON_FOUND);
    CHECK_INT(len, 7);
    CHECK_TEXT(bytes_of(buf), BYTES("xxxxxxx"));
    CHECK_INT(json_get_object_raw(json, "meta", buf, 7, &len), JSON_FOUND);
    CHECK_INT(len, 7);
    CHECK_TEXT(bytes_of(buf), BYTES("{\"a\":1}"));
    json_free(json);
}

TEST(objects_and_lists_inside_are_found)
{
    struct json *json = parse(
        "{\"o\":{\"n\":1,\"o\":{\"n\":2}},\"l\":[{\"n\":3},\"t\",[],{\"n\":4},5],\"e\":[]}");
    enum json_found found;
    int64_t n = 0;
    struct bytes text = {NULL, 0};
    const struct json *inner = json_get_object(json, "o", &found);

    CHECK_INT(found, JSON_FOUND);
    inner = json_get_object(inner, "o", &found);
    CHECK_INT(json_get_int(inner, "n", &n), JSON_FOUND);
    CHECK_INT(n, 2);
    CHECK(json_get_object(inner, "o", &found) == NULL && found == JSON_ABSENT);
    CHECK(json_get_object(json, "l", &found) == NULL && found == JSON_MISTYPED);
    CHECK_INT(json_list_count(json, "l", &found), 5);
    CHECK_INT(found, JSON_FOUND);
    CHECK_INT(json_list_count(json, "e", &found), 0);
    CHECK_INT(found, JSON_FOUND);
    CHECK_INT(json_list_count(json, "o", &found), 0);
    CHECK_INT(found, JSON_MISTYPED);
    json_list_count(json, "absent", &found);
    CHECK_INT(found, JSON_ABSENT);
    CHECK_INT(json_get_int(json_list_object(json, "l", 3), "n", &n), JSON_FOUND);
    CHECK_INT(n, 4);
    CHECK(json_list_object(json, "l", 1) == NULL);
    CHECK(json_list_object(json, "l", 5) == NULL);
    CHECK(json_list_object(json, "e", 0) == NULL);
    CHECK(json_list_text(json, "l", 1, &text));
    CHECK_TEXT(text, BYTES("t"));
    CHECK(!json_list_text(json, "l", 4, &text));
    CHECK(!json_list_text(json, "l", 5, &text));
    CHECK(!json_list_text(json, "absent", 0, &text));
    CHECK(json_list_int(json, "l", 4, &n));
    CHECK_INT(n, 5);
    CHECK(!json_list_int(json, "l", 1, &n));
    CHECK(!json_list_int(json, "l", 5, &n));
    CHECK(!json_list_int(json, "absent", 0, &n));
    json_free(json);
}

TEST(values_follow_each_other_with_their_names_and_kinds)
{
    static const char text[] = "{\"o\":{\"x\":[]},\"l\":[1,\"a\"],\"\\u0074\":\"b\",\"n\":7,\"z\":null}";
    static const struct {
        const char *name;
        enum json_kind kind;
        unsigned inside;
    } rows[] = {{"o", JSON_OBJECT, 1},
                {"l", JSON_LIST, 2},
                {"t", JSON_TEXT, 0},
                {"n", JSON_OTHER, 0},
                {"z", JSON_OTHER, 0}};
    struct json *json = json_parse(bytes_of(text), DEPTH, NULL);
    const struct json *one = NULL, *last = NULL;
    struct bytes value;
    int64_t number = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && CHECK((one = json_next(json, one)) != NULL);
         i++) {
        unsigned inside = 0;

        for (last = NULL; (last = json_next(one, last)) != NULL;)
            inside++;
        CHECK_TEXT(json_name(one), bytes_of(rows[i].name));
        CHECK_INT(json_kind(one), rows[i].kind);
        CHECK_INT(inside, rows[i].inside);
        CHECK_INT(json_is_text(one, &value), rows[i].kind == JSON_TEXT);
        CHECK_INT(json_is_int(one, &number), rows[i].name[0] == 'n');
    }
    CHECK(one != NULL && json_next(json, one) == NULL);
    CHECK_INT(number, 7);
    json_free(json);
}

/* -- cost */

static struct bytes many_members(char *buf, size_t size, unsigned *count)
{
    size_t len = 0;

    buf[len++] = '{';
    for (*count = 0; len + 16 < size; (*count)++)
        len += (size_t)snprintf(buf + len, size - len, "%s\"%x\":0", *count ? "," : "", *count);
    buf[len++] = '}';
    return (struct bytes){buf, len};
}

static unsigned long long cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

static unsigned long long cheapest_parse_ns(struct bytes text)
{
    unsigned long long least = ~0ull;

    for (int i = 0; i < 5; i++) {
        unsigned long long before = cpu_ns(), took;

        CHECK(accepts(text));
        took = cpu_ns() - before;
        least = took < least ? took : least;
    }
    return least;
}

/* For sixteen times the members, their square is 256 times the time; 64 leaves room for noise. */
TEST(thousands_of_members_do_not_cost_their_square)
{
    static char small_buf[BODY_MAX], large_buf[16 * BODY_MAX];
    unsigned small_count, large_count;
    struct bytes small = many_members(small_buf, sizeof(small_buf), &small_count);
    struct bytes large = many_members(large_buf, sizeof(large_buf), &large_count);

    CHECK(small_count > 1500 && large_count > 10 * small_count);
    CHECK(cheapest_parse_ns(large) < 64 * cheapest_parse_ns(small));
}

CHECK_MAIN
