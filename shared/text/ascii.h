/* ascii.h - classes of ASCII characters; unlike <ctype.h> they know no locale and take any char. */
#ifndef PAWL_SHARED_ASCII_H
#define PAWL_SHARED_ASCII_H

#include "shared/text/bytes.h"

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_alnum(char c)
{
    return ascii_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static inline char ascii_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* The value of a hexadecimal digit of either case, or -1. */
static inline int ascii_hex_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Whether text is made of letters, digits and these others only. Empty is. */
static inline bool ascii_is_word(struct bytes text, struct bytes others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_alnum(text.at[i]) && memchr(others.at, text.at[i], others.len) == NULL)
            return false;
    return true;
}

/* Whether text has visible ASCII characters only: no blank, no control character. Empty has. */
static inline bool ascii_is_visible(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] <= ' ' || (unsigned char)text.at[i] >= 0x7f)
            return false;
    return true;
}

/* tchar of RFC 9110, 5.6.2: what names of header fields and methods are made of. */
static inline bool ascii_is_token_char(char c)
{
    return ascii_is_alnum(c) || c == '-' || (c != '\0' && strchr("!#$%&'*+.^_`|~", c) != NULL);
}

/* token of the same: some of these. */
static inline bool ascii_is_token(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_token_char(text.at[i]))
            return false;
    return text.len > 0;
}

/* What can stand in the value of a header field: no control character but the tab. */
static inline bool ascii_is_field_char(char c)
{
    return ((unsigned char)c >= ' ' && c != 0x7f) || c == '\t';
}

/* The first byte of text, which is not empty, percent-decoded (RFC 3986, 2.1): how many bytes of text it
 * takes; 0: a % that is not followed by two hexadecimal digits. */
static inline size_t ascii_percent_decode(struct bytes text, char *c)
{
    int high, low;

    *c = text.at[0];
    if (*c != '%')
        return 1;
    high = text.len >= 3 ? ascii_hex_value(text.at[1]) : -1;
    low = text.len >= 3 ? ascii_hex_value(text.at[2]) : -1;
    if (high < 0 || low < 0)
        return 0;
    *c = (char)(unsigned char)(high << 4 | low);
    return 3;
}

/* Text as a path or a query has it, with a percent and two digits for what does not stand for itself there
 * and is not kept. It takes three times as many bytes at most: how many it took. */
static inline size_t ascii_percent_encode(char *to, struct bytes text, char kept)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (ascii_is_alnum(c) || (c != '\0' && (strchr("-._~:", c) != NULL || c == kept))) {
            to[len++] = c;
        } else {
            to[len++] = '%';
            to[len++] = digits[(unsigned char)c >> 4];
            to[len++] = digits[(unsigned char)c & 15];
        }
    }
    return len;
}

/* [A-Za-z0-9][A-Za-z0-9._:-]*: what is called a name everywhere, whatever its limit in length. */
static inline bool ascii_is_name(struct bytes text)
{
    return text.len > 0 && ascii_is_alnum(text.at[0]) && ascii_is_word(text, BYTES("._:-"));
}

#endif
