/* request.c - a request as bytes that are ready to be sent, but for the places that change each time. */
#include "tests/bench/request.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/token/keys.h"

static const unsigned char slot_bytes[SLOT_COUNT] = {
    [SLOT_NAME] = NAME_BYTES, [SLOT_STRIPE] = STRIPE_BYTES, [SLOT_LEASE_ID] = LEASE_ID_BYTES,
    [SLOT_HOLD] = HOLD_BYTES, [SLOT_ETAG] = ETAG_BYTES,     [SLOT_NUMBER] = NUMBER_BYTES,
};

void request_add(struct request *req, struct bytes text)
{
    while (req->len + text.len > req->size) {
        req->size = req->size ? 2 * req->size : 1024;
        req->text = realloc(req->text, req->size);
        if (!req->text)
            abort();
    }
    memcpy(req->text + req->len, text.at, text.len);
    req->len += text.len;
}

void request_addf(struct request *req, const char *format, ...)
{
    char line[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(line))
        abort();
    request_add(req, (struct bytes){line, (size_t)len});
}

/* A binary protocol has single bytes of these, too. */
static bool run_at(const struct request *req, size_t at, unsigned char c)
{
    for (size_t i = 0; i < slot_bytes[c]; i++)
        if (at + i == req->len || (unsigned char)req->text[at + i] != c)
            return false;
    return true;
}

void request_done(struct request *req)
{
    for (size_t at = 0; at < req->len; at++) {
        unsigned char c = (unsigned char)req->text[at];

        if (c == 0 || c >= SLOT_COUNT || !run_at(req, at, c))
            continue;
        if (req->spot_count == SPOTS_MAX)
            abort();
        req->spots[req->spot_count++] = (struct spot){(uint32_t)at, (enum slot)c};
        at += slot_bytes[c] - 1U;
    }
}

void request_fill(struct request *req, const struct values *values)
{
    for (unsigned i = 0; i < req->spot_count; i++) {
        struct spot spot = req->spots[i];

        memcpy(req->text + spot.at, values->of[spot.slot], slot_bytes[spot.slot]);
    }
}

void request_copy(struct request *to, const struct request *from)
{
    *to = *from;
    to->text = malloc(from->size);
    if (!to->text)
        abort();
    memcpy(to->text, from->text, from->len);
}

void values_name(struct values *values, uint64_t number)
{
    static const char hex[] = "0123456789abcdef";
    char *name = values->of[SLOT_NAME], *stripe = values->of[SLOT_STRIPE];
    unsigned of;

    memcpy(name, "bench:0000000000", NAME_BYTES);
    for (char *digit = name + NAME_BYTES - 1; number; number /= 10)
        *digit-- = (char)('0' + number % 10);
    memcpy(values->of[SLOT_NUMBER], "00", NUMBER_BYTES - 10);
    memcpy(values->of[SLOT_NUMBER] + NUMBER_BYTES - 10, name + NAME_BYTES - 10, 10);
    of = keys_stripe_of((struct bytes){name, NAME_BYTES});
    stripe[0] = hex[of / 16];
    stripe[1] = hex[of % 16];
}

void values_random(struct values *values, enum slot slot, uint64_t *random)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    uint64_t bits = 0;

    for (unsigned i = 0; i < slot_bytes[slot]; i++) {
        if (i % 10 == 0) { /* xorshift64: Marsaglia, "Xorshift RNGs", 2003 */
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            bits = *random;
        }
        values->of[slot][i] = letters[bits & 63];
        bits >>= 6;
    }
}
