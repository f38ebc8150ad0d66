/* name.c - lease names, resource keys and the other texts of a client: what is one and what is not. */
#include <assert.h>
#include <stdint.h>

#include "shared/text/ascii.h"
#include "shared/text/utf8.h"
#include "shared/token/keys.h"
#include "shared/token/name.h"
#include "shared/token/random.h"

enum {
    LEASE_ID_MIN = 22,
    LEASE_ID_MAX = 64,
    HOLDER_MAX_BYTES = 128,
    REASON_MAX_BYTES = 256,
    IDEMPOTENCY_KEY_MAX = 128,
    LEASE_ID_FRESH = 22 /* times 6 bits: 132 of them random */
};

static const char bad_name[] =
    "a lease name is 1 to 128 characters of A-Z a-z 0-9 . _ : -, beginning with a letter or digit";
static const char bad_percent[] =
    "a % in a path is followed by two hexadecimal digits; write a plain % as %25";
static const char bad_slash[] = "%2F is not taken in a path: a segment cannot contain a slash";
static const char bad_nul[] = "%00 is not taken in a path: a name or key cannot contain NUL";
static const char bad_length[] = "a resource key is 1 to 512 bytes after percent-decoding";
static const char bad_query[] = "a resource key has no query and no fragment; write ? as %3F and # as %23";
static const char bad_lease[] =
    "a resource key begins with the name of the lease that guards it: 1 to 128 characters of "
    "A-Z a-z 0-9 . _ : -, beginning with a letter or digit; then optionally / and segments";
static const char bad_segment[] = "the segments of a resource key are not empty and not . or ..";
static const char bad_text[] = "a resource key is UTF-8 without control characters";

/* -- lease names */

bool name_is_lease(struct bytes name)
{
    return name.len <= NAME_MAX_BYTES && ascii_is_name(name);
}

bool name_is_prefix(struct bytes text)
{
    return text.len == 0 || name_is_lease(text);
}

/* -- percent-decoding, exactly once (RFC 3986 section 2.1) */

/* Where the decoded text goes. */
struct decoded {
    char *at;
    size_t len, max;                      /* at holds max bytes and a NUL */
    const char *too_long, *escaped_slash; /* what is wrong with it; escaped_slash NULL: nothing, it is one */
};

static const char *decode(struct bytes raw, struct decoded *text)
{
    while (raw.len > 0) {
        char c;
        size_t taken = ascii_percent_decode(raw, &c);

        if (taken == 0)
            return bad_percent;
        if (taken > 1 && c == '/' && text->escaped_slash != NULL)
            return text->escaped_slash;
        if (taken > 1 && c == '\0')
            return bad_nul;
        if (text->len == text->max)
            return text->too_long;
        text->at[text->len++] = c;
        raw = (struct bytes){raw.at + taken, raw.len - taken};
    }
    text->at[text->len] = '\0';
    return NULL;
}

const char *name_from_path(struct bytes raw_segment, char buf[NAME_MAX_BYTES + 1], struct bytes *out)
{
    struct decoded text = {buf, 0, NAME_MAX_BYTES, bad_name, bad_slash};
    const char *why = decode(raw_segment, &text);

    if (why != NULL)
        return why;
    *out = (struct bytes){buf, text.len};
    return name_is_lease(*out) ? NULL : bad_name;
}

/* -- resource keys */

static bool is_control(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character <= 0x9F);
}

/* Valid UTF-8 without control characters: C0, U+007F, C1, which is all of Unicode's category Cc. */
static bool is_plain_text(struct bytes text)
{
    while (text.len > 0) {
        uint32_t character;
        size_t length = utf8_decode(text, &character);

        if (length == 0 || is_control(character))
            return false;
        text.at += length;
        text.len -= length;
    }
    return true;
}

static bool are_segments(struct bytes rest)
{
    while (rest.at != NULL) {
        struct bytes segment = bytes_cut(&rest, '/');

        if (segment.len == 0 || bytes_are(segment, ".") || bytes_are(segment, ".."))
            return false;
    }
    return true;
}

static const char *resource_key_check(struct bytes key, struct bytes *lease)
{
    struct bytes rest = key;

    *lease = bytes_cut(&rest, '/');
    if (!name_is_lease(*lease))
        return bad_lease;
    if (!are_segments(rest))
        return bad_segment;
    return is_plain_text(rest) ? NULL : bad_text;
}

const char *resource_key_from_path(struct bytes raw, char buf[RESOURCE_KEY_MAX_BYTES + 1], struct bytes *key,
                                   struct bytes *lease)
{
    struct decoded text = {buf, 0, RESOURCE_KEY_MAX_BYTES, bad_length, NULL};
    const char *why;

    if (raw.len > 0 && (memchr(raw.at, '?', raw.len) != NULL || memchr(raw.at, '#', raw.len) != NULL))
        return bad_query;
    why = decode(raw, &text);
    if (why != NULL)
        return why;
    *key = (struct bytes){buf, text.len};
    return resource_key_check(*key, lease);
}

/* -- the other texts of a client */

bool name_is_lease_id(struct bytes text)
{
    return text.len >= LEASE_ID_MIN && text.len <= LEASE_ID_MAX && ascii_is_word(text, BYTES("_-"));
}

/* Printable means: no control character. Let through is what only shows with Unicode's tables or is a
 * matter of taste: format characters (also those that turn the direction of writing), U+2028 and U+2029,
 * unassigned code points and noncharacters. Who shows a holder in a list escapes or isolates these. */
bool name_is_holder(struct bytes text)
{
    return text.len > 0 && text.len <= HOLDER_MAX_BYTES && is_plain_text(text);
}

bool name_is_reason(struct bytes text)
{
    return text.len > 0 && text.len <= REASON_MAX_BYTES && is_plain_text(text);
}

bool name_is_idempotency_key(struct bytes text)
{
    if (text.len == 0 || text.len > IDEMPOTENCY_KEY_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '!' || text.at[i] > '~')
            return false;
    return true;
}

void name_new_lease_id(char buf[23])
{
    char text[LEASE_ID_FRESH + 2 + 1]; /* random_text() makes multiples of four */

    random_text(text, sizeof(text) - 1);
    memcpy(buf, text, LEASE_ID_FRESH);
    buf[LEASE_ID_FRESH] = '\0';
}

/* == the names of the store's keys. */

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
