/* test_token.c - the fencing token header: signing, verifying, and the one text that is accepted. */
#include <stdio.h>
#include <stdlib.h>

#include "shared/token/name.h"
#include "shared/token/random.h"
#include "shared/token/token.h"
#include "tests/unit/check.h"

#define KEY_1 "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define KEY_2 "k2:MDEyMzQ1Njc4OWFiY2RlZg==\n"
#define STORE "Q2x8Zk3v9a1BQ2x8Zk3v9a1B"
#define SIGNED_1                                                                                             \
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\""
/* Both computed with Python's hmac module over the text in front of ";sig=". */
#define SIG_1 ";sig=:SAr4sVvd9+8DMPXMA+P2/FVCA3d7DKH/u9zXKHlZE/I=:"
#define HEADER_2                                                                                             \
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k2\""     \
    ";sig=:8rU01nh0km1PqEi82ldTW1oQ/TIy3PJ9rEGjCXTzyMg=:"

_Static_assert((int)TOKEN_LEASE_MAX == (int)NAME_MAX_BYTES, "a header holds every lease name");

static const struct token_claim example = {
    {1, 34}, {"orders:42", 9}, {STORE, 24}, TOKEN_EXCLUSIVE, {"Zk3v9a1BQ2x8", 12}};

static struct token_keys *keys_of(const char *file)
{
    char why[256];
    struct token_keys *keys = token_keys_parse(bytes_of(file), why, sizeof(why));

    if (keys == NULL)
        abort();
    return keys;
}

static enum token_verdict verdict_of(const struct token_keys *keys, struct bytes header)
{
    struct token_claim claim;

    return token_verify(keys, header, &claim);
}

/* -- signing */

#define TEST_KEYS(sentence, lines)                                                                           \
    TEST_IN(sentence, struct token_keys *, keys, keys_of(lines), token_keys_free(keys))

TEST_KEYS(the_header_is_the_text_and_the_signature_that_others_compute_too, KEY_1 KEY_2)
{
    char buf[TOKEN_HEADER_SIZE];
    size_t len = token_sign(keys, &example, buf);

    CHECK_TEXT(((struct bytes){buf, len}), BYTES(SIGNED_1 SIG_1));
    CHECK_INT(buf[len], '\0');
}

static void sign_and_read_back(const struct token_keys *keys, const struct token_claim *claim)
{
    struct token_claim read;
    char buf[TOKEN_HEADER_SIZE];
    struct bytes header = {buf, token_sign(keys, claim, buf)};

    CHECK(header.len < TOKEN_HEADER_SIZE);
    CHECK_INT(token_verify(keys, header, &read), TOKEN_GOOD);
    CHECK_INT(read.token.number, claim->token.number);
    CHECK_INT(read.token.epoch, claim->token.epoch);
    CHECK_INT(read.mode, claim->mode);
    CHECK_TEXT(read.lease, claim->lease);
    CHECK_TEXT(read.store, claim->store);
    CHECK_TEXT(read.hold, claim->hold);
}

TEST_KEYS(what_was_signed_is_read_back_the_same_at_every_limit,
          "A.b_c-0123456789ABCDEFGHIJKLMNOP:AAECAwQFBgcICQoLDA0ODw==\n")
{
    static const int64_t numbers[] = {1, 9, 10, 34, 999999999999999};
    char name[NAME_MAX_BYTES];

    memset(name, 'n', sizeof(name));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct token_claim claim = {{numbers[i], numbers[4 - i]},
                                    {name, 1 + i * 127 / 4},
                                    BYTES("_-0Az_-0Az12_-0Az_-0Az12"),
                                    TOKEN_SHARED,
                                    BYTES("_-0Az_-0Az12")};

        claim.mode = (enum token_mode)(i % 3);
        claim.hold = (struct bytes){"_-0Az_-0Az_-0Az9", 12 + i};
        sign_and_read_back(keys, &claim);
    }
}

TEST_KEYS(hold_names_fit_the_header_and_differ, KEY_1)
{
    char a[TOKEN_HOLD_MIN + 1], b[TOKEN_HOLD_MIN + 1], alike = 0;

    for (int i = 0; i < 200; i++) {
        struct token_claim claim = example;

        token_hold_name(a);
        token_hold_name(b);
        alike = (char)(alike + (memcmp(a, b, TOKEN_HOLD_MIN) == 0));
        claim.hold = bytes_of(a);
        CHECK_INT(claim.hold.len, TOKEN_HOLD_MIN);
        sign_and_read_back(keys, &claim);
    }
    CHECK_INT(alike, 0);
}

/* -- verifying */

TEST(every_key_of_the_file_verifies_and_only_the_first_signs)
{
    struct token_keys *both = keys_of(KEY_1 KEY_2), *turned = keys_of(KEY_2 KEY_1), *old = keys_of(KEY_1),
                      *other = keys_of("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh4=\n");
    char buf[TOKEN_HEADER_SIZE];

    CHECK_INT(verdict_of(both, BYTES(SIGNED_1 SIG_1)), TOKEN_GOOD);
    CHECK_INT(verdict_of(both, BYTES(HEADER_2)), TOKEN_GOOD);
    CHECK_INT(verdict_of(old, BYTES(HEADER_2)), TOKEN_BAD_SIGNATURE);
    CHECK_INT(verdict_of(other, BYTES(SIGNED_1 SIG_1)), TOKEN_BAD_SIGNATURE);
    CHECK_TEXT(((struct bytes){buf, token_sign(turned, &example, buf)}), BYTES(HEADER_2));
    token_keys_free(both);
    token_keys_free(turned);
    token_keys_free(old);
    token_keys_free(other);
}

/* Longer than a block of SHA-256: 131 bytes 0xaa, as in RFC 4231. */
TEST_KEYS(a_long_key_signs_as_others_do,
          "k3:qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"
          "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo=\n")
{
    static const char signature[] = "lTx//dQw271GaNm/JG/ZAIb0Q+4GFVD7FvkAmOEtx3M=";
    char buf[TOKEN_HEADER_SIZE];

    CHECK(token_sign(keys, &example, buf) > 0);
    CHECK(strstr(buf, signature) != NULL);
}

TEST(a_key_under_another_name_verifies_nothing_even_with_the_same_bytes)
{
    struct token_keys *here = keys_of("here:AAECAwQFBgcICQoLDA0ODw==\n");
    struct token_keys *there = keys_of("there:AAECAwQFBgcICQoLDA0ODw==\n");
    char buf[TOKEN_HEADER_SIZE];
    struct bytes header = {buf, token_sign(there, &example, buf)};

    CHECK_INT(verdict_of(there, header), TOKEN_GOOD);
    CHECK_INT(verdict_of(here, header), TOKEN_BAD_SIGNATURE);
    token_keys_free(here);
    token_keys_free(there);
}

TEST_KEYS(a_bad_signature_still_tells_what_the_header_claims, KEY_2)
{
    struct token_claim claim = {.mode = TOKEN_SHARED};

    CHECK_INT(token_verify(keys, BYTES(SIGNED_1 SIG_1), &claim), TOKEN_BAD_SIGNATURE);
    CHECK_INT(claim.token.number, 34);
    CHECK_INT(claim.token.epoch, 1);
    CHECK_INT(claim.mode, TOKEN_EXCLUSIVE);
    CHECK_TEXT(claim.lease, BYTES("orders:42"));
    CHECK_TEXT(claim.store, BYTES(STORE));
    CHECK_TEXT(claim.hold, BYTES("Zk3v9a1BQ2x8"));
}

TEST_KEYS(a_malformed_header_is_malformed_whatever_its_signature_and_key, KEY_1)
{
    static const char *const headers[] = {
        "0" SIGNED_1 SIG_1,
        "34;lease=\"orders:42\";store=\"" STORE
        "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"nobody\";sig=:AAAA:",
        SIGNED_1,
        "",
    };
    struct token_claim claim;

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        CHECK_INT(token_verify(keys, bytes_of(headers[i]), &claim), TOKEN_MALFORMED);
    CHECK_INT(token_verify(keys, (struct bytes){NULL, 0}, &claim), TOKEN_MALFORMED);
}

TEST_KEYS(every_alteration_of_a_single_byte_is_refused, KEY_1)
{
    char header[] = SIGNED_1 SIG_1;
    const size_t len = sizeof(header) - 1;
    unsigned good = 0, altered = 0;

    for (size_t i = 0; i < len; i++) {
        char right = header[i];

        for (int c = 0; c < 256; c++) {
            header[i] = (char)(unsigned char)c;
            altered += header[i] != right;
            good += header[i] != right && verdict_of(keys, (struct bytes){header, len}) == TOKEN_GOOD;
        }
        header[i] = right;
    }
    CHECK_INT(altered, len * 255);
    CHECK_INT(good, 0);
    CHECK_INT(verdict_of(keys, (struct bytes){header, len}), TOKEN_GOOD);
}

TEST_KEYS(every_byte_left_out_or_put_in_is_refused, KEY_1)
{
    static const char header[] = SIGNED_1 SIG_1;
    static const char put_in[] = "0 \"=;:A\t\n\r\\";
    const size_t len = sizeof(header) - 1;
    char buf[sizeof(header) + 1];

    for (size_t i = 0; i <= len; i++) {
        memcpy(buf, header, i);
        if (i < len) {
            memcpy(buf + i, header + i + 1, len - i - 1);
            CHECK(verdict_of(keys, (struct bytes){buf, len - 1}) != TOKEN_GOOD);
            CHECK_INT(verdict_of(keys, (struct bytes){header, i}), TOKEN_MALFORMED);
        }
        memcpy(buf + i + 1, header + i, len - i);
        for (size_t c = 0; c < sizeof(put_in); c++) { /* with its NUL */
            buf[i] = put_in[c];
            CHECK(verdict_of(keys, (struct bytes){buf, len + 1}) != TOKEN_GOOD);
        }
    }
}

/* -- the one text that is accepted */

struct parts {
    const char *number, *lease, *store, *mode, *epoch, *hold, *kid, *sig;
};

#define SIG_ZERO "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static bool parts_are_read(struct parts p)
{
    char text[TOKEN_HEADER_MAX];
    struct token_claim claim;
    struct bytes kid;
    int len = snprintf(text, sizeof(text),
                       "%s;lease=\"%s\";store=\"%s\";mode=%s;epoch=%s;hold=\"%s\";kid=\"%s\";sig=:%s:",
                       p.number, p.lease, p.store, p.mode, p.epoch, p.hold, p.kid, p.sig);

    return token_read((struct bytes){text, (size_t)len}, &claim, &kid);
}

static struct parts usual(void)
{
    return (struct parts){"34", "orders:42", STORE, "exclusive", "1", "Zk3v9a1BQ2x8", "k1", SIG_ZERO};
}

static void part_check(size_t offset, const char *text, bool ok)
{
    struct parts parts = usual();

    memcpy((char *)&parts + offset, &text, sizeof(text));
    if (!CHECK_INT(parts_are_read(parts), ok))
        printf("# part at %zu: \"%s\"\n", offset, text);
}

/* Each of the good and bad texts, which have a blank between two, as the part that lies so many bytes into
 * the parts; a blank at its end, and nothing, are bad. */
static void part_try(size_t offset, const char *good, const char *bad)
{
    part_check(offset, "", false);
    for (const char *rest = good, *text; (text = check_word(&rest)) != NULL;) {
        part_check(offset, text, true);
        part_check(offset, textf("%s ", text), false);
    }
    for (const char *rest = bad, *text; (text = check_word(&rest)) != NULL;)
        part_check(offset, text, false);
}

#define TRY_PART(part, good, bad) part_try(offsetof(struct parts, part), (good), (bad))

/* Numbers have 1 to 15 digits without a leading zero or a sign; the signature is padded base64 of 32 bytes:
 * bad are 31 bytes, 33, without the pad, with too much of it, and base64url. */
TEST(each_part_is_exactly_what_it_may_be)
{
    static const char good[] = "1 9 10 999999999999999 100000000000000",
                      bad[] = "1000000000000000 9999999999999999 18446744073709551617 0 00 01 "
                              "000000000000001 +1 -1 1.0 1e3 0x1 \xd9\xa1 1_000";
    const char *longest;

    TRY_PART(number, good, bad);
    TRY_PART(epoch, good, bad);
    longest = textf("%0*d", NAME_MAX_BYTES, 0);
    CHECK(name_is_lease(bytes_of(longest)));
    TRY_PART(lease, textf("%s 0.9_a:b-c", longest), textf("%s0 .a a\\\"b a;b caf\xc3\xa9", longest));
    TRY_PART(store, "AZaz09_-AZaz09_-AZaz09_- ------------------------",
             "AZaz09_-AZaz09_-AZaz09_ AZaz09_-AZaz09_-AZaz09_-A AZaz09_-AZaz09_-AZaz09_. "
             "5:Zaz09_-AZaz09_-AZaz09_-");
    TRY_PART(mode, "exclusive shared permits", "Exclusive exclusiv exclusives permit \"shared\"");
    TRY_PART(hold, "123456789012 1234567890123456 AZaz09_-AZaz",
             "12345678901 12345678901234567 AZaz09_-AZa. AZaz09_-AZa: AZaz09_-AZa=");
    TRY_PART(kid, "k ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_abc .",
             "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_abcd k:1 k/1 k\xc3\xa9");
    TRY_PART(sig, SIG_ZERO " +/+/AZaz09AZaz09AZaz09AZaz09AZaz09AZaz09AZ8=",
             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA== AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA "
             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA== "
             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-A= AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_A= "
             "AAAA=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= "
             "AAAA\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
}

#define SIG ";sig=:" SIG_ZERO ":"

static const char *const wrong_headers[] = {
    /* another order; the store stands behind the lease and nowhere else */
    "34;lease=\"orders:42\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG, /* as before */
    "34;store=\"" STORE "\";lease=\"orders:42\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";mode=exclusive;store=\"" STORE "\";epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\";store=\"" STORE "\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";store=\"" STORE
    "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;mode=exclusive;lease=\"orders:42\";store=\"" STORE "\";epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;kid=\"k1\";hold=\"Zk3v9a1BQ2x8\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\"" SIG
    ";kid=\"k1\"",
    /* one is missing */
    "34;mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;kid=\"k1\"" SIG,
    "34;lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\"" SIG,
    SIGNED_1,
    ";lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    /* one more, or twice */
    SIGNED_1 ";x=1" SIG,
    SIGNED_1 SIG ";x=1",
    SIGNED_1 SIG SIG,
    SIGNED_1 SIG ";",
    "34;a" SIG,
    "34;lease=\"a\";lease=\"orders:42\";store=\"" STORE
    "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    /* spaces, commas, quotes, names in capitals */
    " " SIGNED_1 SIG,
    SIGNED_1 SIG " ",
    SIGNED_1 " " SIG,
    SIGNED_1 SIG "," SIGNED_1 SIG,
    "\t" SIGNED_1 SIG,
    "34; lease=\"orders:42\";store=\"" STORE "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease= \"orders:42\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;Lease=\"orders:42\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease=orders:42;mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "34;lease='orders:42';mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    "\"34\";lease=\"orders:42\";store=\"" STORE
    "\";mode=exclusive;epoch=1;hold=\"Zk3v9a1BQ2x8\";kid=\"k1\"" SIG,
    SIGNED_1 ";sig=\"" SIG_ZERO "\"",
    SIGNED_1 ";sig=" SIG_ZERO,
    SIGNED_1 ";sig=:" SIG_ZERO,
    SIGNED_1 ";SIG=:" SIG_ZERO ":",
    "Fencing-Token: " SIGNED_1 SIG,
};

TEST(only_these_parameters_in_this_order_are_accepted)
{
    struct token_claim claim;
    struct bytes kid;

    CHECK(token_read(BYTES(SIGNED_1 SIG), &claim, &kid));
    CHECK_TEXT(kid, BYTES("k1"));
    for (size_t i = 0; i < sizeof(wrong_headers) / sizeof(wrong_headers[0]); i++) {
        if (token_read(bytes_of(wrong_headers[i]), &claim, &kid))
            printf("# accepted: %s\n", wrong_headers[i]);
        CHECK(!token_read(bytes_of(wrong_headers[i]), &claim, &kid));
    }
#undef SIG
}

TEST_KEYS(a_long_value_is_malformed_at_and_over_1_kib, KEY_1)
{
    char *text = malloc(TOKEN_HEADER_MAX + 1);

    memset(text, '1', TOKEN_HEADER_MAX + 1);
    memcpy(text, SIGNED_1 SIG_1, sizeof(SIGNED_1 SIG_1) - 1);
    CHECK_INT(verdict_of(keys, (struct bytes){text, TOKEN_HEADER_MAX}), TOKEN_MALFORMED);
    CHECK_INT(verdict_of(keys, (struct bytes){text, TOKEN_HEADER_MAX + 1}), TOKEN_MALFORMED);
    memset(text, '1', TOKEN_HEADER_MAX + 1);
    CHECK_INT(verdict_of(keys, (struct bytes){text, TOKEN_HEADER_MAX + 1}), TOKEN_MALFORMED);
    free(text);
}

/* -- seals */

TEST_KEYS(what_is_sealed_opens_with_its_domain_context_and_length_alone, KEY_1 KEY_2)
{
    char sealed[TOKEN_SEALED_CHARS(9) + 1];
    unsigned char text[10];

    token_seal(keys, "leases", BYTES("a"), BYTES("orders:42"), sealed);
    CHECK(token_open(keys, "leases", BYTES("a"), bytes_of(sealed), text, 9));
    CHECK_TEXT(((struct bytes){(const char *)text, 9}), BYTES("orders:42"));
    CHECK(!token_open(keys, "lease", BYTES("a"), bytes_of(sealed), text, 9));
    CHECK(!token_open(keys, "leases", BYTES("b"), bytes_of(sealed), text, 9));
    CHECK(!token_open(keys, "leases", BYTES("a"), bytes_of(sealed), text, 10));
    CHECK(!token_open(keys, "leases", BYTES("a"), BYTES(""), text, 9));
    sealed[0] = sealed[0] == 'A' ? 'B' : 'A';
    CHECK(!token_open(keys, "leases", BYTES("a"), bytes_of(sealed), text, 9));
}

/* -- random texts */

TEST(a_random_text_is_no_flag_where_it_is_a_word_of_a_command_line)
{
    char text[17];
    unsigned dashes = 0, inside = 0;

    for (unsigned i = 0; i < 4000; i++) {
        random_text(text, 16);
        dashes += text[0] == '-';
        inside += text[1] == '-';
    }
    CHECK_INT(dashes, 0);
    CHECK(inside > 20); /* 62 of 4,000 */
}

CHECK_MAIN
