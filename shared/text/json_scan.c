/* json_scan.c - a recursive descent over RFC 8259 that keeps nothing but where each value stands. */
#include "shared/text/json_scan.h"

#include <assert.h>
#include <stdlib.h>

#include "shared/text/ascii.h"
#include "shared/text/utf8.h"

struct scan {
    const char *start, *at, *end;
    unsigned depth, depth_max;
    struct json_spans *spans;
    const char *why;
};

static bool scan_value(struct scan *s);

static bool fail(struct scan *s, const char *why)
{
    s->why = why;
    return false;
}

/* -- plain bytes, eight at a time */

static const uint64_t ONES = 0x0101010101010101u, HIGHS = 0x8080808080808080u;

/* The first zero byte has its high bit set in the result; all bytes must be below 0x80. */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - ONES) & HIGHS;
}

static bool word_is_plain(uint64_t word)
{
    uint64_t below_space = (word - ONES * 0x20) & HIGHS;

    if (word & HIGHS)
        return false;
    return !(below_space | zero_bytes(word ^ ONES * '"') | zero_bytes(word ^ ONES * '\\'));
}

static bool char_is_plain(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

size_t json_plain_length(struct bytes text)
{
    size_t i = 0;
    uint64_t word;

    for (; i + sizeof(word) <= text.len; i += sizeof(word)) {
        memcpy(&word, text.at + i, sizeof(word));
        if (!word_is_plain(word))
            break;
    }
    while (i < text.len && char_is_plain(text.at[i]))
        i++;
    return i;
}

/* -- spans */

static bool spans_grow(struct json_spans *spans)
{
    unsigned size = spans->size * 2;
    struct json_span *old = spans->at == spans->few ? NULL : spans->at;
    struct json_span *at = realloc(old, size * sizeof(*at));

    if (at == NULL)
        return false;
    if (old == NULL)
        memcpy(at, spans->few, sizeof(spans->few));
    spans->at = at;
    spans->size = size;
    return true;
}

/* Opens the span of a value that begins here, and gives its number. */
static bool span_begin(struct scan *s, unsigned *number)
{
    struct json_spans *spans = s->spans;

    if (spans->count == spans->size && !spans_grow(spans))
        return fail(s, "There is no memory to read the JSON text.");
    spans->at[spans->count].start = (uint32_t)(s->at - s->start);
    *number = spans->count++;
    return true;
}

void json_spans_done(struct json_spans *spans)
{
    if (spans->at != spans->few)
        free(spans->at);
    spans->at = spans->few;
    spans->count = 0;
}

/* -- the grammar */

static char peek(const struct scan *s)
{
    return s->at < s->end ? *s->at
                          : '\0'; /* NUL is nowhere right outside of a text, so it may stand for the end */
}

static bool take(struct scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

/* The four digits behind "\u", or -1. */
static int scan_hex4(struct scan *s)
{
    int unit = 0;

    if (s->end - s->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = ascii_hex_value(*s->at++);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Behind "\u". */
static bool scan_unicode_escape(struct scan *s)
{
    int unit = scan_hex4(s);

    if (unit < 0)
        return fail(s, "\\u in a text needs four hexadecimal digits.");
    if (unit == 0)
        return fail(s, "\\u0000 is not taken in a text.");
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    if (unit <= 0xDBFF && take(s, '\\') && take(s, 'u')) {
        unit = scan_hex4(s);
        if (unit >= 0xDC00 && unit <= 0xDFFF)
            return true;
    }
    return fail(s, "A text has half of a surrogate pair.");
}

/* Behind the backslash. */
static bool scan_escape(struct scan *s)
{
    if (take(s, 'u'))
        return scan_unicode_escape(s);
    if (peek(s) == '\0' || strchr("\"\\/bfnrt", *s->at) == NULL)
        return fail(s, "A text has a backslash that JSON does not know.");
    s->at++;
    return true;
}

/* At a byte of a text that is not plain, and not its end. */
static bool scan_special(struct scan *s)
{
    size_t length;

    if (s->at == s->end)
        return fail(s, "A text has no closing quote.");
    if (take(s, '\\'))
        return scan_escape(s);
    if ((unsigned char)*s->at < 0x20)
        return fail(s, "A text has a control character that is not escaped.");
    length = utf8_length((struct bytes){s->at, (size_t)(s->end - s->at)});
    if (length == 0)
        return fail(s, "A text is not valid UTF-8.");
    s->at += length;
    return true;
}

/* At the opening quote. */
static bool scan_text(struct scan *s)
{
    s->at++;
    for (;;) {
        s->at += json_plain_length((struct bytes){s->at, (size_t)(s->end - s->at)});
        if (take(s, '"'))
            return true;
        if (!scan_special(s))
            return false;
    }
}

static bool scan_digits(struct scan *s)
{
    const char *first = s->at;

    while (ascii_is_digit(peek(s)))
        s->at++;
    return s->at > first;
}

static bool number_is_right(struct scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            take(s, '-');
        if (!scan_digits(s))
            return false;
    }
    return true;
}

static bool scan_number(struct scan *s)
{
    const char *first = s->at;

    if (!number_is_right(s) || ascii_is_digit(peek(s)))
        return fail(s, "A number is not written as JSON wants.");
    if (s->at - first > JSON_NUMBER_BYTES)
        return fail(s, "A number has more than 63 characters.");
    return true;
}

static bool scan_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i]);

        if ((size_t)(s->end - s->at) >= length && memcmp(s->at, words[i], length) == 0) {
            s->at += length;
            return true;
        }
    }
    return fail(s, s->at == s->end ? "The JSON text ends too early." : "A value is missing or is not JSON.");
}

static bool scan_member(struct scan *s)
{
    skip_space(s);
    if (peek(s) != '"')
        return fail(s, "A member has no name in quotes.");
    if (!scan_text(s))
        return false;
    skip_space(s);
    if (!take(s, ':'))
        return fail(s, "A colon is missing behind a member's name.");
    return scan_value(s);
}

/* At the opening bracket; each element is read by scan_element. */
static bool scan_elements(struct scan *s, char closing, bool (*scan_element)(struct scan *s))
{
    if (s->depth == s->depth_max)
        return fail(s, "The JSON text is nested too deeply.");
    s->depth++;
    s->at++;
    skip_space(s);
    if (!take(s, closing)) {
        do {
            if (!scan_element(s))
                return false;
            skip_space(s);
        } while (take(s, ','));
        if (!take(s, closing))
            return fail(s, "A comma or a closing bracket is missing.");
    }
    s->depth--;
    return true;
}

static bool scan_bare_value(struct scan *s)
{
    char c = peek(s);

    if (c == '{')
        return scan_elements(s, '}', scan_member);
    if (c == '[')
        return scan_elements(s, ']', scan_value);
    if (c == '"')
        return scan_text(s);
    return c == '-' || ascii_is_digit(c) ? scan_number(s) : scan_word(s);
}

static bool scan_value(struct scan *s)
{
    unsigned span;

    skip_space(s);
    if (!span_begin(s, &span) || !scan_bare_value(s))
        return false;
    s->spans->at[span].end = (uint32_t)(s->at - s->start);
    return true;
}

static bool scan_all(struct scan *s)
{
    if (s->end - s->start > JSON_TEXT_BYTES)
        return fail(s, "The JSON text is too long.");
    skip_space(s);
    if (peek(s) != '{')
        return fail(s, "The JSON text is not an object.");
    if (!scan_value(s))
        return false;
    skip_space(s);
    if (s->at != s->end)
        return fail(s, "Something stands behind the JSON object.");
    return true;
}

bool json_scan(struct bytes text, unsigned depth_max, struct json_spans *spans, const char **why)
{
    struct scan s = {.depth_max = depth_max, .spans = spans};

    assert(depth_max >= 1 && depth_max <= JSON_DEPTH_MOST);
    spans->at = spans->few;
    spans->count = 0;
    spans->size = JSON_SPANS_FEW;
    s.start = s.at = text.len ? text.at : "";
    s.end = s.start + text.len;
    if (scan_all(&s))
        return true;
    *why = s.why;
    return false;
}
