/* utf8.c - valid UTF-8 as RFC 3629 section 4 spells it out, byte range by byte range. */
#include "shared/text/utf8.h"

/* What the first byte says: the length, and the range of the second byte (the ranges that are not 80..BF
 * keep out overlong forms, surrogates, and what lies above U+10FFFF). */
struct lead {
    unsigned char first_min, first_max, length, second_min, second_max;
};

static const struct lead leads[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static const struct lead *lead_of(unsigned char first)
{
    for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
        if (first >= leads[i].first_min && first <= leads[i].first_max)
            return &leads[i];
    return NULL;
}

static unsigned char byte_at(struct bytes text, size_t i)
{
    return (unsigned char)text.at[i];
}

static size_t multibyte_length(struct bytes text)
{
    const struct lead *lead = lead_of(byte_at(text, 0));

    if (lead == NULL || text.len < lead->length)
        return 0;
    if (byte_at(text, 1) < lead->second_min || byte_at(text, 1) > lead->second_max)
        return 0;
    for (size_t i = 2; i < lead->length; i++)
        if ((byte_at(text, i) & 0xC0) != 0x80)
            return 0;
    return lead->length;
}

size_t utf8_length(struct bytes text)
{
    if (text.len == 0)
        return 0;
    return byte_at(text, 0) < 0x80 ? 1 : multibyte_length(text);
}

size_t utf8_decode(struct bytes text, uint32_t *character)
{
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t length = utf8_length(text);

    if (length == 0)
        return 0;
    *character = byte_at(text, 0) & lead_bits[length];
    for (size_t i = 1; i < length; i++)
        *character = *character << 6 | (byte_at(text, i) & 0x3F);
    return length;
}
