/* test_json_write.c - what the writer writes, character by character. */
#include "shared/text/json_write.h"
#include "tests/unit/check.h"
#include "tests/unit/utf8_text.h"

#define TEST_JSON(sentence) TEST_WITH(sentence, struct json_out, out, json_out_init(out), json_out_done(out))

TEST_JSON(a_grant_is_written_with_its_commas_in_place)
{
    json_object(out, NULL);
    json_text(out, "lease", BYTES("orders:42"));
    json_int(out, "token", 34);
    json_bool(out, "retryable", false);
    json_null(out, "next_cursor");
    json_list(out, "holders");
    json_object(out, NULL);
    json_raw(out, "meta", BYTES("{\"a\":[1,2]}"));
    json_object_end(out);
    json_object(out, NULL);
    json_object_end(out);
    json_text(out, NULL, BYTES("x"));
    json_int(out, NULL, -1);
    json_bool(out, NULL, true);
    json_list_end(out);
    json_list(out, "empty");
    json_list_end(out);
    json_int_or_null(out, "behind", 0, -1);
    json_int_or_null(out, "of", 0, 0);
    json_text_or_null(out, "by", BYTES("x"));
    json_text_or_null(out, "for", BYTES(""));
    json_object_end(out);
    CHECK_TEXT(json_out_bytes(out),
               BYTES("{\"lease\":\"orders:42\",\"token\":34,\"retryable\":false,\"next_cursor\":null,"
                     "\"holders\":[{\"meta\":{\"a\":[1,2]}},{},\"x\",-1,true],\"empty\":[],\"behind\":0,"
                     "\"of\":null,\"by\":\"x\",\"for\":null}"));
}

TEST_JSON(integers_are_exact_to_both_ends_of_int64)
{
    static const int64_t values[] = {
        0,        7, 10, -1, 1000000000000000, 999999999999999, 9007199254740993, INT64_MAX, INT64_MIN + 1,
        INT64_MIN};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_out_reset(out);
        json_int(out, NULL, values[i]);
        CHECK_TEXT(json_out_bytes(out), bytes_of(textf("%" PRId64, values[i])));
    }
}

static const struct {
    struct bytes value;
    const char *text;
} text_cases[] = {
    {{"", 0}, "\"\""},
    {{NULL, 0}, "\"\""},
    {{"a", 1}, "\"a\""},
    {{"12345678", 8}, "\"12345678\""},
    {{"123456789", 9}, "\"123456789\""},
    {{" ~/", 3}, "\" ~/\""},
    {{"\"", 1}, "\"\\\"\""},
    {{"\\", 1}, "\"\\\\\""},
    {{"1234567\"", 8}, "\"1234567\\\"\""},
    {{"12345678\"90", 11}, "\"12345678\\\"90\""},
    {{"\\2345678", 8}, "\"\\\\2345678\""},
    {{"\b\f\n\r\t", 5}, "\"\\b\\f\\n\\r\\t\""},
    {{"\0", 1}, "\"\\u0000\""},
    {{"\x01\x1f", 2}, "\"\\u0001\\u001f\""},
    {{"\x7f", 1}, "\"\x7f\""},
    {{"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x92", 11}, "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x92\""},
    {{"abcdefg\xc3\xa4", 9}, "\"abcdefg\xc3\xa4\""},
    /* no UTF-8: each wrong byte is one U+FFFD */
    {{"\xff", 1}, "\"\\ufffd\""},
    {{"a\xc3", 2}, "\"a\\ufffd\""},
    {{"\xed\xa0\x80", 3}, "\"\\ufffd\\ufffd\\ufffd\""},
    {{"\xc0\x80", 2}, "\"\\ufffd\\ufffd\""},
};

TEST_JSON(texts_are_escaped_where_they_must_be_and_nowhere_else)
{
    for (size_t i = 0; i < sizeof(text_cases) / sizeof(text_cases[0]); i++) {
        json_out_reset(out);
        json_text(out, NULL, text_cases[i].value);
        CHECK_TEXT(json_out_bytes(out), bytes_of(text_cases[i].text));
    }
}

TEST_JSON(every_byte_is_escaped_at_every_place_of_an_eight_byte_word)
{
    for (unsigned c = 0; c < 0x80; c++) {
        for (size_t place = 0; place < 17; place++) {
            char text[17];
            bool plain = c >= 0x20 && c != '"' && c != '\\';

            memset(text, 'x', sizeof(text));
            text[place] = (char)c;
            json_out_reset(out);
            json_text(out, NULL, (struct bytes){text, sizeof(text)});
            CHECK((json_out_bytes(out).len == sizeof(text) + 2) == plain);
            CHECK(plain == (memchr(out->at, '\\', out->len) == NULL));
        }
    }
}

TEST(a_long_text_grows_the_buffer_and_stays_whole)
{
    enum { LONG = 300000 };
    struct json_out out;

    json_out_init(&out);
    json_list(&out, NULL);
    for (int i = 0; i < LONG / 10; i++)
        json_text(&out, NULL, BYTES("0123456789"));
    json_list_end(&out);
    CHECK_INT(json_out_bytes(&out).len, LONG / 10 * 13 + 1);
    CHECK_TEXT(((struct bytes){out.at, 14}), BYTES("[\"0123456789\","));
    CHECK_TEXT(((struct bytes){out.at + out.len - 14, 14}), BYTES(",\"0123456789\"]"));
    json_out_done(&out);
    CHECK(out.at == NULL && out.len == 0);
}

TEST_JSON(texts_one_after_another_at_the_top_are_parted_by_the_caller)
{
    json_out_reserve(out, 8192);
    CHECK(out->size >= 8192);
    for (int i = 0; i < 2; i++) {
        json_object(out, NULL);
        json_int(out, "id", i);
        json_object_end(out);
        json_out_append(out, BYTES("\n"));
    }
    json_out_append_int(out, -12);
    CHECK_TEXT(json_out_bytes(out), BYTES("{\"id\":0}\n{\"id\":1}\n-12"));
}

static void misuse(const void *closes)
{
    struct json_out out;

    json_out_init(&out);
    if (closes != NULL)
        json_list_end(&out);
    json_object(&out, NULL);
    json_out_bytes(&out);
}

TEST(a_text_that_is_not_closed_or_closed_too_often_is_a_programmers_mistake)
{
    CHECK(check_aborts(misuse, NULL));
    CHECK(check_aborts(misuse, "closes"));
}

static void check_utf8(const char *text, size_t length, uint32_t wanted)
{
    uint32_t character = 0;
    char buf[4];

    CHECK_INT(utf8_length(bytes_of(text)), length);
    CHECK_INT(utf8_decode(bytes_of(text), &character), length);
    CHECK_INT(character, wanted);
    CHECK(utf8_is_valid(bytes_of(text)) == (length > 0));
    if (length > 0)
        CHECK_TEXT(((struct bytes){buf, utf8_encode(wanted, buf)}), bytes_of(text));
}

TEST(utf8_is_taken_to_its_bounds_and_not_beyond)
{
    static const uint32_t bounds[] = {'a',    0x7F,   0x80,   0x7FF,   0x800,
                                      0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
    const char *good = "a \x7f \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf "
                       "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf";
    const char *bad = "\x80 \xc1\xbf \xc2\x7f \xc2\xc0 \xe0\x9f\xbf \xed\xa0\x80 \xed\xbf\xbf \xe1\x80 "
                      "\xf0\x8f\xbf\xbf \xf4\x90\x80\x80 \xf5\x80\x80\x80 \xf1\x80\x80 \xf1\x80\x80\x41";

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        check_utf8(check_word(&good),
                   bounds[i] < 0x80      ? 1
                   : bounds[i] < 0x800   ? 2
                   : bounds[i] < 0x10000 ? 3
                                         : 4,
                   bounds[i]);
    for (const char *text; (text = check_word(&bad)) != NULL;)
        check_utf8(text, 0, 0);
    CHECK_INT(utf8_length((struct bytes){"", 0}), 0);
    CHECK(utf8_is_valid((struct bytes){"", 0}));
}

CHECK_MAIN
