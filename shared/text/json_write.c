/* json_write.c - JSON text into a growing buffer; integers and plain ASCII take the short way. */
#include "shared/text/json_write.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/text/json.h"
#include "shared/text/memory.h"
#include "shared/text/utf8.h"

enum { FIRST_SIZE = 512, INT_DIGITS_MAX = 20, PRINTED_FEW = 256 };

/* -- the buffer */

void json_out_init(struct json_out *out)
{
    *out = (struct json_out){NULL, 0, 0, 0, false};
}

void json_out_done(struct json_out *out)
{
    assert(out->depth == 0);
    free(out->at);
    json_out_init(out);
}

void json_out_reset(struct json_out *out)
{
    out->len = 0;
    out->depth = 0;
    out->comma = false;
}

struct bytes json_out_bytes(const struct json_out *out)
{
    assert(out->depth == 0);
    return (struct bytes){out->at, out->len};
}

static void grow(struct json_out *out, size_t more)
{
    size_t size = out->size ? out->size : FIRST_SIZE;

    if (more > SIZE_MAX / 4 - out->len)
        abort();
    while (size < out->len + more)
        size *= 2;
    out->at = must_have(realloc(out->at, size));
    out->size = size;
}

void json_out_reserve(struct json_out *out, size_t more)
{
    if (out->size - out->len < more)
        grow(out, more);
}

void json_out_append(struct json_out *out, struct bytes text)
{
    if (text.len == 0)
        return;
    json_out_reserve(out, text.len);
    memcpy(out->at + out->len, text.at, text.len);
    out->len += text.len;
}

void json_out_print(struct json_out *out, const char *format, ...)
{
    va_list args;
    size_t len, room;

    json_out_reserve(out, PRINTED_FEW);
    do {
        room = out->size - out->len;
        va_start(args, format);
        len = (size_t)vsnprintf(out->at + out->len, room, format, args);
        va_end(args);
        json_out_reserve(out, len + 1);
    } while (len >= room);
    out->len += len;
}

static void put(struct json_out *out, char c)
{
    json_out_reserve(out, 1);
    out->at[out->len++] = c;
}

/* -- text */

static void put_escaped(struct json_out *out, unsigned char c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof(shorts) - 1; i += 2) {
        if (shorts[i] == (char)c) {
            json_out_append(out, (struct bytes){(const char[]){'\\', shorts[i + 1]}, 2});
            return;
        }
    }
    json_out_append(out, (struct bytes){(const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6});
}

/* Writes the first character of text, which is not plain, and returns its length. */
static size_t put_special(struct json_out *out, struct bytes text)
{
    size_t length = utf8_length(text);

    if (length == 0) {
        /* What goes out is valid whatever came in: a reader would refuse all of it for one bad byte. */
        json_out_append(out, BYTES("\\ufffd"));
        return 1;
    }
    if (length == 1)
        put_escaped(out, (unsigned char)text.at[0]);
    else
        json_out_append(out, (struct bytes){text.at, length});
    return length;
}

/* What is behind the first plain characters. */
static void put_rest(struct json_out *out, struct bytes text)
{
    while (text.len > 0) {
        size_t length = json_plain_length(text);

        json_out_append(out, (struct bytes){text.at, length});
        if (length < text.len)
            length += put_special(out, (struct bytes){text.at + length, text.len - length});
        text.at += length;
        text.len -= length;
    }
    put(out, '"');
}

static void put_quoted(struct json_out *out, struct bytes text)
{
    size_t plain = json_plain_length(text);
    char *at;

    json_out_reserve(out, text.len + 2);
    at = out->at + out->len;
    *at++ = '"';
    if (plain > 0)
        memcpy(at, text.at, plain);
    out->len += plain + 1;
    if (plain < text.len) {
        put_rest(out, (struct bytes){text.at + plain, text.len - plain});
        return;
    }
    at[plain] = '"'; /* the usual end: all of it was plain */
    out->len++;
}

/* -- elements */

/* What stands in front of each element: the comma and the key. */
static void begin(struct json_out *out, const char *key)
{
    size_t len = key ? strlen(key) : 0;
    char *at;

    json_out_reserve(out, len + sizeof(",\"\":"));
    at = out->at + out->len;
    if (out->comma)
        *at++ = ',';
    out->comma = out->depth > 0; /* nothing parts the texts at the top: that is the caller's */
    if (key) {
        *at++ = '"';
        at = mempcpy(at, key, len);
        *at++ = '"';
        *at++ = ':';
    }
    out->len = (size_t)(at - out->at);
}

static void open_level(struct json_out *out, const char *key, char bracket)
{
    begin(out, key);
    put(out, bracket);
    out->depth++;
    out->comma = false;
}

static void close_level(struct json_out *out, char bracket)
{
    assert(out->depth > 0);
    put(out, bracket);
    out->depth--;
    out->comma = out->depth > 0;
}

void json_object(struct json_out *out, const char *key)
{
    open_level(out, key, '{');
}

void json_object_end(struct json_out *out)
{
    close_level(out, '}');
}

void json_list(struct json_out *out, const char *key)
{
    open_level(out, key, '[');
}

void json_list_end(struct json_out *out)
{
    close_level(out, ']');
}

void json_text(struct json_out *out, const char *key, struct bytes value)
{
    begin(out, key);
    put_quoted(out, value);
}

void json_out_append_int(struct json_out *out, int64_t value)
{
    char digits[INT_DIGITS_MAX];
    size_t i = sizeof(digits);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value; /* INT64_MIN has no positive twin */

    do {
        digits[--i] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        digits[--i] = '-';
    json_out_append(out, (struct bytes){digits + i, sizeof(digits) - i});
}

void json_int(struct json_out *out, const char *key, int64_t value)
{
    begin(out, key);
    json_out_append_int(out, value);
}

void json_bool(struct json_out *out, const char *key, bool value)
{
    begin(out, key);
    json_out_append(out, value ? BYTES("true") : BYTES("false"));
}

void json_null(struct json_out *out, const char *key)
{
    begin(out, key);
    json_out_append(out, BYTES("null"));
}

void json_text_or_null(struct json_out *out, const char *key, struct bytes value)
{
    if (value.len > 0)
        json_text(out, key, value);
    else
        json_null(out, key);
}

void json_int_or_null(struct json_out *out, const char *key, int64_t value, int64_t none)
{
    if (value != none)
        json_int(out, key, value);
    else
        json_null(out, key);
}

void json_raw(struct json_out *out, const char *key, struct bytes value)
{
    begin(out, key);
    json_out_append(out, value);
}
