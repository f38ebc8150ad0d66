/* keys.c - the names of the store's keys. */
#include "shared/token/keys.h"

#include <assert.h>
#include <stdint.h>

#include "shared/token/name.h"

enum { STRIPE_KEY_BYTES = sizeof("pawl:{00}") - 1, KIND_BYTES = sizeof(":r:") - 1 };

_Static_assert(STRIPE_KEY_BYTES + sizeof(":gone") <= KEYS_STRIPE_SIZE, "the longest key of a stripe fits");
_Static_assert(STRIPE_KEY_BYTES + KIND_BYTES + RESOURCE_KEY_MAX_BYTES < KEYS_RESOURCE_SIZE,
               "the longest resource fits");

/* CRC-32 of IEEE 802.3, reflected (polynomial EDB88320), four bits at a time: names are short, and a table of
 * sixteen is easier to check than one of 256. */
static uint32_t crc32_of(struct bytes text)
{
    static const uint32_t of_nibble[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    uint32_t crc = 0xFFFFFFFF;

    for (size_t i = 0; i < text.len; i++) {
        crc ^= (unsigned char)text.at[i];
        crc = crc >> 4 ^ of_nibble[crc & 15];
        crc = crc >> 4 ^ of_nibble[crc & 15];
    }
    return ~crc;
}

unsigned keys_stripe_of(struct bytes lease)
{
    return crc32_of(lease) % STRIPES;
}

static struct bytes append(struct bytes key, char *buf, struct bytes more)
{
    memcpy(buf + key.len, more.at, more.len);
    buf[key.len + more.len] = '\0';
    return (struct bytes){buf, key.len + more.len};
}

struct bytes keys_stripe(char buf[KEYS_STRIPE_SIZE], unsigned stripe)
{
    static const char hex[] = "0123456789abcdef";
    struct bytes key = append((struct bytes){buf, 0}, buf, BYTES("pawl:{00}"));

    assert(stripe < STRIPES);
    buf[6] = hex[stripe / 16];
    buf[7] = hex[stripe % 16];
    return key;
}

struct bytes keys_due(char buf[KEYS_STRIPE_SIZE], unsigned stripe)
{
    return append(keys_stripe(buf, stripe), buf, BYTES(":due"));
}

struct bytes keys_gone(char buf[KEYS_STRIPE_SIZE], unsigned stripe)
{
    return append(keys_stripe(buf, stripe), buf, BYTES(":gone"));
}

struct bytes keys_resource(char buf[KEYS_RESOURCE_SIZE], struct bytes lease, struct bytes resource)
{
    struct bytes key = keys_stripe(buf, keys_stripe_of(lease));

    assert(lease.len > 0 && lease.len <= resource.len && resource.len <= RESOURCE_KEY_MAX_BYTES);
    assert(memcmp(lease.at, resource.at, lease.len) == 0);
    return append(append(key, buf, BYTES(":r:")), buf, resource);
}
