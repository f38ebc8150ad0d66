/* utf8_text.h - whether a text is UTF-8, and a character as UTF-8: what only tests ask. */
#ifndef PAWL_TESTS_UTF8_TEXT_H
#define PAWL_TESTS_UTF8_TEXT_H

#include <assert.h>

#include "shared/text/utf8.h"

static inline bool utf8_is_valid(struct bytes text)
{
    while (text.len > 0) {
        size_t length = utf8_length(text);

        if (length == 0)
            return false;
        text.at += length;
        text.len -= length;
    }
    return true;
}

/* Writes a character (no surrogate, at most U+10FFFF: asserted) and returns its length. */
static inline size_t utf8_encode(uint32_t character, char buf[4])
{
    static const unsigned char lead_marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    assert(character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF));
    for (size_t i = length - 1; i > 0; i--) {
        buf[i] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    buf[0] = (char)(lead_marks[length] | character);
    return length;
}

/* The code point at text, by arithmetic instead of by ranges; its length, or 0. */
static inline size_t plain_utf8(const unsigned char *text, size_t len, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80       ? 1
                    : text[0] >> 5 == 6  ? 2
                    : text[0] >> 4 == 14 ? 3
                    : text[0] >> 3 == 30 ? 4
                                         : 0;

    if (length == 0 || length > len)
        return 0;
    *code = length == 1 ? text[0] : text[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        *code = *code * 64 + text[i] % 64;
    }
    return *code < least[length] || *code > 0x10FFFF || *code / 0x800 == 0x1B ? 0 : length;
}

#endif
