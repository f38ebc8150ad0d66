/* bytes.h - a borrowed run of bytes: pointer and length, never owned, not NUL-terminated. */
#ifndef PAWL_SHARED_BYTES_H
#define PAWL_SHARED_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct bytes {
    const char *at; /* may be NULL only when len is 0 */
    size_t len;
};

/* A string literal as bytes. */
#define BYTES(literal) ((struct bytes){(literal), sizeof(literal) - 1})

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){text, text ? strlen(text) : 0};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool bytes_are(struct bytes a, const char *text)
{
    return bytes_equal(a, bytes_of(text));
}

/* Takes this off the beginning of text, or returns false: it begins otherwise. */
static inline bool bytes_take(struct bytes *text, struct bytes beginning)
{
    if (beginning.len == 0)
        return true;
    if (text->len < beginning.len || memcmp(text->at, beginning.at, beginning.len) != 0)
        return false;
    *text = (struct bytes){text->at + beginning.len, text->len - beginning.len};
    return true;
}

/* Equal but for the case of ASCII letters (no setlocale()). */
static inline bool bytes_equal_nocase(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.at, b.at, a.len) == 0);
}

/* Whether it is one of these, which end with NULL, but for the case of ASCII letters. */
static inline bool bytes_are_among(struct bytes text, const char *const *names)
{
    while (*names != NULL && !bytes_equal_nocase(text, bytes_of(*names)))
        names++;
    return *names != NULL;
}

static inline struct bytes bytes_trim(struct bytes text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = (struct bytes){text.at + 1, text.len - 1};
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* Takes what stands before the first separator off text, and the separator. Without one: all of it, and
 * text->at is NULL then. */
static inline struct bytes bytes_cut(struct bytes *text, char separator)
{
    const char *end = text->len > 0 ? (const char *)memchr(text->at, separator, text->len) : NULL;
    struct bytes part = {text->at, end != NULL ? (size_t)(end - text->at) : text->len};

    *text = end != NULL ? (struct bytes){end + 1, text->len - part.len - 1} : (struct bytes){NULL, 0};
    return part;
}

/* Their order, byte by byte, the shorter of two that begin alike first: < 0, 0, > 0. */
static inline int bytes_compare(struct bytes a, struct bytes b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.at, b.at, len) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Whether a list with commas has this member, but for the case of ASCII letters and white space around it. */
static inline bool bytes_list_has(struct bytes list, struct bytes member)
{
    while (list.len > 0)
        if (bytes_equal_nocase(bytes_trim(bytes_cut(&list, ',')), member))
            return true;
    return false;
}

/* A decimal number of at most digits_max digits (not more than 18), or -1. */
static inline int64_t bytes_number(struct bytes text, size_t digits_max)
{
    int64_t number = 0;

    if (text.len == 0 || text.len > digits_max)
        return -1;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return -1;
        number = number * 10 + (text.at[i] - '0');
    }
    return number;
}

enum { BYTES_NUMBER_SIZE = 24 };

/* A number that is not negative (else 0), in decimal, at the end of text. Takes a seventh of what snprintf()
 * does; each call of the store has several. */
static inline struct bytes bytes_of_number(char text[BYTES_NUMBER_SIZE], int64_t value)
{
    char *at = text + BYTES_NUMBER_SIZE;
    uint64_t left = value > 0 ? (uint64_t)value : 0;

    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    return (struct bytes){at, (size_t)(text + BYTES_NUMBER_SIZE - at)};
}

/* A text that is put together in room that is there. */
struct bytes_out {
    char *at;
    size_t len, size;
    bool is_full; /* something did not fit: it was left out */
};

static inline void bytes_put(struct bytes_out *out, struct bytes piece)
{
    if (piece.len > out->size - out->len) {
        out->is_full = true;
    } else if (piece.len > 0) {
        memcpy(out->at + out->len, piece.at, piece.len);
        out->len += piece.len;
    }
}

/* The struct that contains this member; the only way back from a callback's argument. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
