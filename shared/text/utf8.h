/* utf8.h - the one idea of what valid UTF-8 is: RFC 3629, so no surrogates and nothing overlong. */
#ifndef PAWL_SHARED_UTF8_H
#define PAWL_SHARED_UTF8_H

#include <stdint.h>

#include "shared/text/bytes.h"

/* How many bytes (1 to 4) the first character of text takes; 0: there is none. NUL is a character. */
size_t utf8_length(struct bytes text);
/* The same, and which character it is. */
size_t utf8_decode(struct bytes text, uint32_t *character);

/* So many bytes of it at most, without a half of a character at the end. */
static inline struct bytes utf8_cut(struct bytes text, size_t most)
{
    if (text.len > most)
        for (text.len = most; text.len > 0 && ((unsigned char)text.at[text.len] & 0xC0) == 0x80;)
            text.len--;
    return text;
}

#endif
