/* test_name.c - lease names, resource keys and the other texts of a client, each at, inside and outside its
 * limits. */
#include "shared/token/keys.h"
#include "shared/token/name.h"
#include "tests/unit/check.h"

enum { ROOM = 4096 };

/* -- lease names */

TEST(a_lease_name_has_1_to_128_characters_of_its_alphabet_and_begins_with_a_letter_or_digit)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    char name[NAME_MAX_BYTES + 1];

    for (int c = 0; c < 256; c++) {
        char front[2] = {(char)(unsigned char)c, 'a'}, behind[2] = {'a', (char)(unsigned char)c};
        const char *found = c != 0 ? strchr(alphabet, c) : NULL;

        CHECK_INT(name_is_lease((struct bytes){front, 2}), found != NULL && found - alphabet < 62);
        CHECK_INT(name_is_lease((struct bytes){behind, 2}), found != NULL);
    }
    memset(name, 'n', sizeof(name));
    CHECK(!name_is_lease((struct bytes){name, 0}));
    CHECK(!name_is_lease((struct bytes){NULL, 0}));
    CHECK(name_is_lease((struct bytes){name, 1}));
    CHECK(name_is_lease((struct bytes){name, NAME_MAX_BYTES}));
    CHECK(!name_is_lease((struct bytes){name, NAME_MAX_BYTES + 1}));
}

TEST(a_prefix_is_the_front_of_a_name_or_empty)
{
    char text[NAME_MAX_BYTES + 1];

    memset(text, 'n', sizeof(text));
    CHECK(name_is_prefix(BYTES("")));
    CHECK(name_is_prefix((struct bytes){NULL, 0}));
    CHECK(name_is_prefix(BYTES("orders:")));
    CHECK(name_is_prefix((struct bytes){text, NAME_MAX_BYTES}));
    CHECK(!name_is_prefix((struct bytes){text, NAME_MAX_BYTES + 1}));
    CHECK(!name_is_prefix(BYTES(":")));
    CHECK(!name_is_prefix(BYTES("a*")));
}

/* -- names in a path */

struct path_case {
    const char *raws;    /* with a blank between two */
    const char *decoded; /* NULL: refused */
    const char *says;    /* a part of the sentence */
};

static void name_try(const char *raw, const struct path_case *test)
{
    char buf[NAME_MAX_BYTES + 1];
    struct bytes out;
    const char *why = name_from_path(bytes_of(raw), buf, &out);

    if (test->decoded == NULL) {
        CHECK(why != NULL && strstr(why, test->says) != NULL);
        return;
    }
    CHECK(why == NULL);
    CHECK_TEXT(out, bytes_of(test->decoded));
    CHECK(out.at == buf && buf[out.len] == '\0');
}

static const char says_name[] =
    "a lease name is 1 to 128 characters of A-Z a-z 0-9 . _ : -, beginning with a letter or digit";

TEST(a_name_in_a_path_is_decoded_once)
{
    static const struct path_case cases[] = {
        {"orders:42 orders%3A42 orders%3a42", "orders:42", NULL},
        {"%41", "A", NULL},
        {"%2541", NULL, says_name}, /* %41 after one decoding: no name */
        {"%2D1 a+b a/b .. a%C3%A9", NULL, says_name},
        {"a%2Fb a%2fb", NULL, "%2F"},
        {"a%00", NULL, "%00"},
        {"a% a%4 a%4g a%g4 a%%41 a%+1", NULL, "two hexadecimal digits"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (const char *rest = cases[i].raws, *raw; (raw = check_word(&rest)) != NULL;)
            name_try(raw, &cases[i]);
    name_try("", &(struct path_case){"", NULL, says_name});
}

static void put(char *at, struct bytes text)
{
    memcpy(at, text.at, text.len);
}

/* count times the text; it must fit. */
static struct bytes times(const char *text, size_t count, char *buf)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < count; i++)
        put(buf + i * len, bytes_of(text));
    return (struct bytes){buf, count * len};
}

TEST(the_limit_of_a_name_counts_decoded_characters)
{
    char raw[ROOM], buf[NAME_MAX_BYTES + 1];
    struct bytes out;

    CHECK(name_from_path(times("%41", 128, raw), buf, &out) == NULL);
    CHECK_INT(out.len, 128);
    CHECK(strcmp(name_from_path(times("%41", 129, raw), buf, &out), says_name) == 0);
    CHECK(name_from_path(times("A", 128, raw), buf, &out) == NULL);
    CHECK(strcmp(name_from_path(times("A", 129, raw), buf, &out), says_name) == 0);
    CHECK(strcmp(name_from_path(times("A", ROOM, raw), buf, &out), says_name) == 0);
}

/* -- resource keys */

struct key_case {
    const char *raws;  /* with a blank between two */
    const char *key;   /* NULL: refused */
    const char *lease; /* or a part of the sentence */
};

static void key_try(const char *raw, const struct key_case *test)
{
    char buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease;
    const char *why = resource_key_from_path(bytes_of(raw), buf, &key, &lease);

    if (test->key == NULL) {
        CHECK(why != NULL && strstr(why, test->lease) != NULL);
        return;
    }
    CHECK(why == NULL);
    CHECK_TEXT(key, bytes_of(test->key));
    CHECK_TEXT(lease, bytes_of(test->lease));
    CHECK(key.at == buf && lease.at == buf && buf[key.len] == '\0');
}

static void keys_try(const struct key_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (const char *rest = cases[i].raws, *raw; (raw = check_word(&rest)) != NULL;)
            key_try(raw, &cases[i]);
}

#define TRY_KEYS(cases) keys_try((cases), sizeof(cases) / sizeof((cases)[0]))

TEST(a_resource_key_is_decoded_once_and_begins_with_its_lease)
{
    static const struct key_case cases[] = {
        {"orders:42", "orders:42", "orders:42"},
        {"orders:42/lines/7", "orders:42/lines/7", "orders:42"},
        {"orders%3A42/lines", "orders:42/lines", "orders:42"},
        {"%41/%41", "A/A", "A"},
        {"a/%2541", "a/%41", "a"},
        {"a/%25", "a/%", "a"},
        {"a/b+c", "a/b+c", "a"},
        {"a/b%20c", "a/b c", "a"},
        {"a/%3Fx%23", "a/?x#", "a"},
        {"a/...", "a/...", "a"},
        {"a/.b", "a/.b", "a"},
        {"a/b.", "a/b.", "a"},
        {"a/\\", "a/\\", "a"},
    };

    TRY_KEYS(cases);
    key_try("a/b c", &(struct key_case){"", "a/b c", "a"});
}

TEST(a_resource_key_takes_any_utf8_and_is_not_normalised)
{
    static const struct key_case cases[] = {
        {"a/caf\xc3\xa9 a/caf%C3%A9", "a/caf\xc3\xa9", "a"},
        {"a/cafe%CC%81", "a/cafe\xcc\x81", "a"}, /* the same to the eye, another key */
        {"a/%C2%A0", "a/\xc2\xa0", "a"},         /* the first behind C1 */
        {"a/%F0%9F%94%92", "a/\xf0\x9f\x94\x92", "a"},
        {"a%2Fb", "a/b", "a"},
        {"a/b%2fc%2Fd", "a/b/c/d", "a"},
        {"a%252Fb", NULL, "name of the lease"}, /* %2F after one decoding */
        {"a/b%252Fc", "a/b%2Fc", "a"},
    };

    TRY_KEYS(cases);
}

TEST(a_resource_key_that_is_none_is_refused_with_what_is_right)
{
    static const struct key_case cases[] = {
        {"/ /a ../a -a/b caf%C3%A9/b %2Fa", NULL, "name of the lease"},
        {"a/ a//b a/b/ a/b%2f a%2F/b", NULL, "not empty"},
        {"a/. a/.. a/./b a/../b a/%2e a/%2E%2e/b a/.%2e a%2F..%2Fb a%2f%2e%2e/b", NULL, "not . or .."},
        {"a/%00", NULL, "%00"},
        {"a/% a/%4 a/%zz", NULL, "two hexadecimal digits"},
        {"a?b a/b?", NULL, "no query"},
        {"a#b", NULL, "no fragment"},
        {"a/%1F a/%7F a/\x01 a/%C2%80 a/%C2%9F", NULL, "UTF-8 without control characters"},
        {"a/%FF a/%C3/%A9 a/%ED%A0%80 a/%E2%82", NULL, "UTF-8 without control characters"},
    };
    char buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease;

    TRY_KEYS(cases);
    key_try("", &(struct key_case){"", NULL, "name of the lease"});
    CHECK(resource_key_from_path(BYTES("a/\0"), buf, &key, &lease) != NULL);
    CHECK(resource_key_from_path(BYTES("a\0"), buf, &key, &lease) != NULL);
}

TEST(a_resource_key_has_512_bytes_after_decoding)
{
    char raw[ROOM], buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease;
    size_t len;

    put(raw, BYTES("a/"));
    memset(raw + 2, 'b', ROOM - 2);
    CHECK(resource_key_from_path((struct bytes){raw, 512}, buf, &key, &lease) == NULL);
    CHECK_INT(key.len, 512);
    CHECK(strstr(resource_key_from_path((struct bytes){raw, 513}, buf, &key, &lease), "512 bytes") != NULL);
    CHECK(strstr(resource_key_from_path((struct bytes){raw, ROOM}, buf, &key, &lease), "512 bytes") != NULL);
    len = 2 + times("%C3%A9", 255, raw + 2).len;
    CHECK(resource_key_from_path((struct bytes){raw, len}, buf, &key, &lease) == NULL);
    CHECK_INT(key.len, 512);
    raw[len] = 'c';
    CHECK(resource_key_from_path((struct bytes){raw, len + 1}, buf, &key, &lease) != NULL);
}

TEST(the_lease_of_a_resource_key_has_128_characters_at_most)
{
    char raw[ROOM], buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease;

    memset(raw, 'n', sizeof(raw));
    put(raw + 128, BYTES("/b"));
    CHECK(resource_key_from_path((struct bytes){raw, 130}, buf, &key, &lease) == NULL);
    CHECK_INT(lease.len, 128);
    put(raw + 128, BYTES("n/b"));
    CHECK(resource_key_from_path((struct bytes){raw, 131}, buf, &key, &lease) != NULL);
}

/* -- the other texts */

struct text_case {
    bool (*is)(struct bytes text);
    unsigned least, most;   /* bytes */
    const char *good, *bad; /* with a blank between two */
};

/* In a reason the tab separates the parts of a history's item. */
static const struct text_case text_cases[] = {
    {name_is_lease_id, 22, 64, "AZaz09_-AZaz09_-AZaz09",
     "AZaz09_-AZaz09_-AZaz0+ AZaz09_-AZaz09_-AZaz0= AZaz09_-AZaz09_-AZaz0."},
    {name_is_holder, 1, 128, "billing-7@host3 caf\xc3\xa9 \xc2\xa0", "a\nb \x1f \x7f \xc2\x80 \xc2\x9f \xff"},
    {name_is_reason, 1, 256, "it \xc3\xa4rgerlich", "a\tb \xff"},
    {name_is_idempotency_key, 1, 128, "! ~ 6f1c-...\"x\"", "a\t \x7f \x80 \xc3\xa9"},
};

TEST(a_lease_id_a_holder_a_reason_and_an_idempotency_key_have_their_lengths_and_characters)
{
    char text[258];

    for (size_t i = 0; i < sizeof(text_cases) / sizeof(text_cases[0]); i++) {
        const struct text_case *c = &text_cases[i];

        memset(text, 'x', sizeof(text));
        CHECK(!c->is((struct bytes){NULL, 0}) && !c->is((struct bytes){text, c->least - 1}));
        CHECK(c->is((struct bytes){text, c->least}) && c->is((struct bytes){text, c->most}));
        CHECK(!c->is((struct bytes){text, c->most + 1}));
        for (const char *rest = c->good, *one; (one = check_word(&rest)) != NULL;)
            if (!CHECK(c->is(bytes_of(one))))
                printf("# %s\n", one);
        for (const char *rest = c->bad, *one; (one = check_word(&rest)) != NULL;)
            if (!CHECK(!c->is(bytes_of(one))))
                printf("# %s\n", one);
        text[c->least] = '\0';
        CHECK(!c->is((struct bytes){text, c->least + 1}));
    }
    CHECK(name_is_holder(times("\xc3\xa9", 64, text)) && !name_is_holder(times("\xc3\xa9", 65, text)));
    CHECK(name_is_reason(BYTES("it hangs")) && name_is_holder(BYTES("a b")));
    CHECK(!name_is_idempotency_key(BYTES(" ")) && !name_is_idempotency_key(BYTES("a b")));
}

TEST(fresh_lease_ids_are_lease_ids_and_differ)
{
    char a[23], b[23];
    unsigned seen[22] = {0};

    for (int i = 0; i < 200; i++) {
        name_new_lease_id(a);
        name_new_lease_id(b);
        CHECK_INT(strlen(a), 22);
        CHECK(name_is_lease_id(bytes_of(a)));
        CHECK(strcmp(a, b) != 0);
        for (int c = 0; c < 22; c++)
            seen[c] += a[c] != b[c];
    }
    for (int c = 0; c < 22; c++)
        CHECK(seen[c] > 150); /* every place is random: 197 of 200 differ */
}

/* -- keys of the store, and the stripe that a lease belongs to */

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
