/* test_keys.c - the names of the store's keys and the stripe that a lease belongs to. */
#include "shared/token/keys.h"

#include "shared/token/name.h"
#include "tests/unit/check.h"

/* CRC-32 bit by bit, as IEEE 802.3 defines it: the other way to the same number. */
static unsigned stripe_bit_by_bit(struct bytes text)
{
    uint32_t crc = 0xFFFFFFFF;

    for (size_t i = 0; i < text.len; i++) {
        crc ^= (unsigned char)text.at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc & 0xFF;
}

TEST(the_stripe_is_the_low_byte_of_zlibs_crc32)
{
    static const struct {
        const char *lease;
        unsigned stripe;
    } cases[] = {
        /* zlib.crc32() of Python; 0xCBF43926 is the check value that every description of CRC-32 has. */
        {"123456789", 0x26},
        {"orders:42", 0xC5},
        {"a", 0x43},
        {"", 0x00},
    };
    char longest[NAME_MAX_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_INT(keys_stripe_of(bytes_of(cases[i].lease)), cases[i].stripe);
    memset(longest, 'A', sizeof(longest));
    CHECK_INT(keys_stripe_of((struct bytes){longest, sizeof(longest)}), 222);
}

TEST(the_table_agrees_with_the_definition_for_every_byte_and_length)
{
    char text[NAME_MAX_BYTES];

    for (int c = 0; c < 256; c++) {
        char one = (char)(unsigned char)c;

        CHECK_INT(keys_stripe_of((struct bytes){&one, 1}), stripe_bit_by_bit((struct bytes){&one, 1}));
    }
    for (size_t len = 0; len <= sizeof(text); len++) {
        CHECK_INT(keys_stripe_of((struct bytes){text, len}), stripe_bit_by_bit((struct bytes){text, len}));
        if (len < sizeof(text))
            text[len] = (char)('0' + len * 7 % 75);
    }
}

TEST(a_stripes_keys_carry_two_lower_case_hex_digits)
{
    static const struct {
        unsigned stripe;
        const char *hash, *due, *gone;
    } cases[] = {
        {0, "pawl:{00}", "pawl:{00}:due", "pawl:{00}:gone"},
        {9, "pawl:{09}", "pawl:{09}:due", "pawl:{09}:gone"},
        {16, "pawl:{10}", "pawl:{10}:due", "pawl:{10}:gone"},
        {175, "pawl:{af}", "pawl:{af}:due", "pawl:{af}:gone"},
        {255, "pawl:{ff}", "pawl:{ff}:due", "pawl:{ff}:gone"},
    };
    char buf[KEYS_STRIPE_SIZE];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_TEXT(keys_stripe(buf, cases[i].stripe), bytes_of(cases[i].hash));
        CHECK_TEXT(keys_due(buf, cases[i].stripe), bytes_of(cases[i].due));
        CHECK_TEXT(keys_gone(buf, cases[i].stripe), bytes_of(cases[i].gone));
    }
}

TEST(the_resources_of_a_lease_lie_in_its_slot)
{
    char resource[KEYS_RESOURCE_SIZE];

    CHECK_TEXT(keys_resource(resource, BYTES("orders:42"), BYTES("orders:42")),
               BYTES("pawl:{c5}:r:orders:42"));
    CHECK_TEXT(keys_resource(resource, BYTES("orders:42"), BYTES("orders:42/lines/7")),
               BYTES("pawl:{c5}:r:orders:42/lines/7"));
    CHECK_TEXT(bytes_of(resource), BYTES("pawl:{c5}:r:orders:42/lines/7"));
}

TEST(the_longest_name_fits_its_buffer)
{
    char resource[KEYS_RESOURCE_SIZE], name[RESOURCE_KEY_MAX_BYTES];
    struct bytes key;

    memset(name, 'A', sizeof(name));
    name[NAME_MAX_BYTES] = '/';
    key = keys_resource(resource, (struct bytes){name, NAME_MAX_BYTES}, (struct bytes){name, sizeof(name)});
    CHECK_INT(key.len, sizeof("pawl:{de}:r:") - 1 + RESOURCE_KEY_MAX_BYTES);
    CHECK(key.len < sizeof(resource) && resource[key.len] == '\0');
}

CHECK_MAIN
