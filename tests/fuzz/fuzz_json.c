/* fuzz_json.c - what json.c accepts, a second, differently built grammar accepts; it reads the same again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "shared/text/json.h"
#include "shared/text/json_write.h"
#include "tests/unit/utf8_text.h"

enum { DEPTH = 8, STACK = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* -- the second grammar: a loop with a stack of what may come next, instead of a descent */

enum expect { VALUE, VALUE_OR_END, NAME, NAME_OR_END, COLON, COMMA_OR_END, NOTHING };

struct second {
    struct bytes left;
    char closing[STACK];
    int depth;
    enum expect expect;
};

static bool one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

static size_t digits(const char *at, size_t len)
{
    size_t n = 0;

    while (n < len && one_of(at[n], "0123456789"))
        n++;
    return n;
}

static size_t number_length(struct bytes t)
{
    size_t i = t.at[0] == '-', n = digits(t.at + i, t.len - i);

    if (n == 0 || (n > 1 && t.at[i] == '0'))
        return 0;
    i += n;
    if (i < t.len && t.at[i] == '.') {
        n = digits(t.at + i + 1, t.len - i - 1);
        i = n ? i + 1 + n : t.len + 1;
    }
    if (i < t.len && one_of(t.at[i], "eE")) {
        i += i + 1 < t.len && one_of(t.at[i + 1], "+-") ? 2 : 1;
        n = i <= t.len ? digits(t.at + i, t.len - i) : 0;
        i = n ? i + n : t.len + 1;
    }
    return i <= t.len ? i : 0;
}

static size_t text_length(struct bytes t)
{
    for (size_t i = 1; i < t.len; i++) {
        if (t.at[i] == '"')
            return i + 1;
        if ((unsigned char)t.at[i] < 0x20)
            return 0;
        if (t.at[i] != '\\')
            continue;
        if (++i == t.len || !one_of(t.at[i], "\"\\/bfnrtu"))
            return 0;
        for (size_t j = 1; t.at[i] == 'u' && j <= 4; j++)
            if (i + j >= t.len || !one_of(t.at[i + j], "0123456789abcdefABCDEF"))
                return 0;
    }
    return 0;
}

static size_t scalar_length(struct bytes t)
{
    static const char *const words[] = {"true", "false", "null"};

    if (t.at[0] == '"')
        return text_length(t);
    for (size_t i = 0; i < 3; i++)
        if (t.len >= strlen(words[i]) && memcmp(t.at, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return number_length(t);
}

static enum expect behind_value(const struct second *s)
{
    return s->depth == 0 ? NOTHING : COMMA_OR_END;
}

/* Takes one token; how long it is, or 0: it may not stand here. */
static size_t second_step(struct second *s)
{
    char c = s->left.at[0];
    bool value = s->expect == VALUE || s->expect == VALUE_OR_END,
         name = s->expect == NAME || s->expect == NAME_OR_END;
    bool may_end = s->expect == VALUE_OR_END || s->expect == NAME_OR_END || s->expect == COMMA_OR_END;

    if (one_of(c, " \t\r\n"))
        return 1;
    if (may_end && s->depth > 0 && c == s->closing[s->depth - 1]) {
        s->depth--;
        s->expect = behind_value(s);
        return 1;
    }
    if (value && one_of(c, "{[") && s->depth < STACK) {
        s->closing[s->depth++] = c == '{' ? '}' : ']';
        s->expect = c == '{' ? NAME_OR_END : VALUE_OR_END;
        return 1;
    }
    if (s->expect == COMMA_OR_END && c == ',') {
        s->expect = s->closing[s->depth - 1] == '}' ? NAME : VALUE;
        return 1;
    }
    if (s->expect == COLON && c == ':') {
        s->expect = VALUE;
        return 1;
    }
    if (name && c == '"') {
        s->expect = COLON;
        return text_length(s->left);
    }
    if (value) {
        s->expect = behind_value(s);
        return scalar_length(s->left);
    }
    return 0;
}

static bool second_accepts(struct bytes text)
{
    struct second s = {.left = text, .expect = VALUE};
    int deepest = 0;

    if (!utf8_is_valid(text))
        return false;
    while (s.left.len > 0) {
        size_t length = second_step(&s);

        if (length == 0)
            return false;
        deepest = s.depth > deepest ? s.depth : deepest;
        s.left.at += length;
        s.left.len -= length;
    }
    return s.expect == NOTHING && deepest <= DEPTH;
}

/* -- properties */

/* Text as the member "m" of an object, minified by json.c into out (as large as text). */
static size_t minify(struct bytes text, char *out)
{
    struct json_out around;
    struct json *json;
    size_t len = 0;

    json_out_init(&around);
    json_object(&around, NULL);
    json_raw(&around, "m", text);
    json_object_end(&around);
    json = json_parse(json_out_bytes(&around), DEPTH + 1, NULL);
    assert(json);
    assert(json_get_object_raw(json, "m", out, text.len, &len) == JSON_FOUND && len <= text.len);
    json_free(json);
    json_out_done(&around);
    return len;
}

static void check_minified(struct bytes text)
{
    char *once = malloc(text.len), *twice = malloc(text.len);
    size_t once_len = minify(text, once), twice_len;

    assert(second_accepts((struct bytes){once, once_len}));
    twice_len = minify((struct bytes){once, once_len}, twice);
    assert(once_len == twice_len && memcmp(once, twice, once_len) == 0);
    free(once);
    free(twice);
}

/* The members that a fuzzer can be hoped to hit. */
static void check_members(const struct json *json)
{
    static const char *const none[] = {NULL};
    const char *name = json_unknown(json, none);
    struct bytes text;
    enum json_found found;
    int64_t number;
    bool yes;

    if (name == NULL)
        return;
    assert(utf8_is_valid(bytes_of(name)));
    if (json_get_text(json, name, &text) == JSON_FOUND)
        assert(utf8_is_valid(text) && json_get_int(json, name, &number) == JSON_MISTYPED);
    if (json_get_int(json, name, &number) == JSON_FOUND)
        assert(json_get_bool(json, name, &yes) == JSON_MISTYPED);
    if (json_get_object(json, name, &found))
        check_members(json_get_object(json, name, &found));
    for (size_t i = json_list_count(json, name, &found); i > 0; i--) {
        const struct json *object = json_list_object(json, name, i - 1);

        assert(!(object && json_list_text(json, name, i - 1, &text)));
        if (object)
            check_members(object);
    }
}

/* An accepted text with a member repeated is refused. */
static void check_repeated(struct bytes text, const struct json *json)
{
    static const char *const none[] = {NULL};
    const char *name = json_unknown(json, none);
    struct json_fault fault;
    const char *end = text.at + text.len;
    struct json_out out;

    if (name == NULL)
        return;
    while (*--end != '}')
        assert(end > text.at);
    json_out_init(&out);
    json_out_append(&out, (struct bytes){text.at, (size_t)(end - text.at)});
    json_out_append(&out, BYTES(","));
    json_text(&out, NULL, bytes_of(name));
    json_out_append(&out, BYTES(":null}"));
    assert(json_parse(json_out_bytes(&out), DEPTH, &fault) == NULL);
    assert(strstr(fault.why, " stands there twice."));
    json_out_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text = {(const char *)data, size};
    struct json_fault fault = {.why = ""};
    struct json *json = json_parse(text, DEPTH, &fault);

    if (json == NULL) {
        assert(fault.why[0] != '\0' && !fault.no_memory); /* cJSON takes whatever the scanner takes */
        return 0;
    }
    assert(second_accepts(text));
    check_minified(text);
    check_members(json);
    check_repeated(text, json);
    json_free(json);
    return 0;
}
