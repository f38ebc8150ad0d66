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
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_alnum(text.at[i]) && memchr(others.at, text.at[i], others.len) == NULL)
            return false;
    }
    return true;
}

/* [A-Za-z0-9][A-Za-z0-9._:-]*: what is called a name everywhere, whatever its limit in length. */
static inline bool ascii_is_name(struct bytes text)
{
    return text.len > 0 && ascii_is_alnum(text.at[0]) && ascii_is_word(text, BYTES("._:-"));
}

#endif
