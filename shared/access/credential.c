/* credential.c - access tokens, names of certificates and uids: what each looks like, and whose it is.
 *
 * pawl_ 43 characters _ check: the 43 are 32 random bytes in base64url, the check is the first 6 hexadecimal
 * digits of the SHA-256 of the 48 characters in front of the last "_". */
#include <sodium.h>
#include <stdlib.h>

#include "shared/access/access_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

#define PREFIX "pawl_"

enum { RANDOM_BYTES = 32, RANDOM_TEXT = 43, CHECKED = sizeof(PREFIX) - 1 + RANDOM_TEXT, CHECK = 6 };

_Static_assert((int)CHECKED + 1 + CHECK + 1 == (int)ACCESS_TOKEN_SIZE, "pawl_, 43, _, 6 and a NUL");

static const char *const why_names[ACCESS_WHYS] = {
    [ACCESS_GOOD] = "good",           [ACCESS_NONE] = "none",
    [ACCESS_UNKNOWN] = "unknown",     [ACCESS_MALFORMED] = "malformed",
    [ACCESS_EXPIRED] = "expired",     [ACCESS_NOT_YET] = "not-yet",
    [ACCESS_ISSUER] = "issuer",       [ACCESS_AUDIENCE] = "audience",
    [ACCESS_SIGNATURE] = "signature", [ACCESS_CERTIFICATE] = "certificate",
};

const char *access_why_name(enum access_why why)
{
    return why_names[why];
}

/* -- access tokens */

static void digest_make(struct bytes text, unsigned char digest[ACCESS_DIGEST])
{
    crypto_hash_sha256(digest, (const unsigned char *)text.at, text.len);
}

void access_token_hash(struct bytes token, char hash[ACCESS_HASH_SIZE])
{
    unsigned char digest[ACCESS_DIGEST];

    digest_make(token, digest);
    sodium_bin2hex(hash, ACCESS_HASH_SIZE, digest, sizeof(digest));
}

static void check_make(const char *token, char check[CHECK])
{
    char hash[ACCESS_HASH_SIZE];

    access_token_hash((struct bytes){token, CHECKED}, hash);
    memcpy(check, hash, CHECK);
}

void access_token_new(char token[ACCESS_TOKEN_SIZE])
{
    unsigned char random[RANDOM_BYTES];
    char *at = token + sizeof(PREFIX) - 1;

    randombytes_buf(random, sizeof(random));
    memcpy(token, PREFIX, sizeof(PREFIX) - 1);
    sodium_bin2base64(at, RANDOM_TEXT + 1, random, sizeof(random), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(random, sizeof(random));
    token[CHECKED] = '_';
    check_make(token, token + CHECKED + 1);
    token[ACCESS_TOKEN_SIZE - 1] = '\0';
}

bool access_token_is_formed(struct bytes token)
{
    struct bytes random = token;
    char check[CHECK];

    if (token.len != ACCESS_TOKEN_SIZE - 1 || !bytes_take(&random, BYTES(PREFIX)))
        return false;
    random.len = RANDOM_TEXT;
    if (!ascii_is_word(random, BYTES("-_")) || token.at[CHECKED] != '_')
        return false;
    check_make(token.at, check);
    return memcmp(check, token.at + CHECKED + 1, CHECK) == 0;
}

bool access_digest_read(struct bytes text, unsigned char digest[ACCESS_DIGEST])
{
    size_t i = 0;

    if (!bytes_take(&text, BYTES("sha256:")) || text.len != 2 * ACCESS_DIGEST)
        return false;
    while (i < text.len && ascii_hex_value(text.at[i]) >= 0 && (text.at[i] < 'A' || text.at[i] > 'F'))
        i++;
    for (size_t n = 0; n < ACCESS_DIGEST && i == text.len; n++)
        digest[n] = (unsigned char)(ascii_hex_value(text.at[2 * n]) << 4 |
                                    ascii_hex_value(text.at[2 * n + 1]));
    return i == text.len;
}

/* -- certificates */

bool access_certificate_read(struct bytes text, char buf[ACCESS_CREDENTIAL_MAX], struct bytes *name)
{
    struct bytes rest = text;
    bool dns = bytes_take(&rest, BYTES("dns:"));

    if (text.len > ACCESS_CREDENTIAL_MAX || rest.len == 0 ||
        (!dns && !bytes_take(&rest, BYTES("uri:")) && !bytes_take(&rest, BYTES("cn:"))))
        return false;
    for (size_t i = 0; i < text.len; i++)
        buf[i] = dns ? ascii_lower(text.at[i]) : text.at[i];
    *name = (struct bytes){buf, text.len};
    return rest.len > 0;
}

/* -- whose it is */

static const char *identity_of(const struct access *access, enum access_kind kind, struct bytes key)
{
    const struct access_entry *entry = access_table_find(&access->table, kind, key);

    return entry != NULL ? access->who[entry->value].identity : NULL;
}

const char *access_identity(const struct access *access, struct bytes name)
{
    return identity_of(access, ACCESS_OF_NAME, name);
}

static const char *token_find(const struct access *access, struct bytes token, enum access_why *why,
                              atomic_uint_fast64_t **uses)
{
    unsigned char digest[ACCESS_DIGEST];
    const struct access_entry *entry;

    *why = ACCESS_MALFORMED;
    if (!access_token_is_formed(token))
        return NULL;
    digest_make(token, digest);
    entry = access_table_find(&access->table, ACCESS_OF_TOKEN,
                              (struct bytes){(const char *)digest, sizeof(digest)});
    *why = entry != NULL ? ACCESS_GOOD : ACCESS_UNKNOWN;
    if (entry == NULL)
        return NULL;
    *uses = &access->uses[entry - access->table.entries];
    atomic_fetch_add_explicit(*uses, 1, memory_order_relaxed);
    return access->who[entry->value].identity;
}

bool access_token_use(const struct access *access, size_t *at, char digits[ACCESS_DIGITS_SIZE],
                      uint64_t *count)
{
    while (*at < access->table.size &&
           (access->table.entries[*at].key.at == NULL || access->table.entries[*at].kind != ACCESS_OF_TOKEN))
        ++*at;
    if (*at == access->table.size)
        return false;
    sodium_bin2hex(digits, ACCESS_DIGITS_SIZE, (const unsigned char *)access->table.entries[*at].key.at,
                   ACCESS_DIGITS_SIZE / 2);
    *count = atomic_load_explicit(&access->uses[(*at)++], memory_order_relaxed);
    return true;
}

/* -- whose it is, remembered */

enum { MEMO_PLACES = 1024, PLACED = 16, LAST = ACCESS_TOKEN_SIZE - 1 - crypto_verify_32_BYTES };

struct access_memo {
    unsigned char key[crypto_shorthash_KEYBYTES]; /* who chooses access tokens does not choose their places */
    struct {
        uint64_t serial; /* of the file; 0: nothing is here */
        const char *identity;
        atomic_uint_fast64_t *uses;
        unsigned char token[ACCESS_TOKEN_SIZE];
    } places[MEMO_PLACES];
};

struct access_memo *access_memo_new(void)
{
    struct access_memo *memo = must_have(calloc(1, sizeof(*memo)));

    crypto_shorthash_keygen(memo->key);
    return memo;
}

void access_memo_free(struct access_memo *memo)
{
    if (memo != NULL)
        sodium_memzero(memo, sizeof(*memo));
    free(memo);
}

const char *access_of_token(struct access_memo *memo, const struct access *access, struct bytes token,
                            enum access_why *why)
{
    const unsigned char *at = (const unsigned char *)token.at, *kept;
    uint64_t hash;
    atomic_uint_fast64_t *uses;
    const char *identity;

    *why = ACCESS_MALFORMED;
    if (token.len != ACCESS_TOKEN_SIZE - 1)
        return NULL;
    crypto_shorthash((unsigned char *)&hash, at + sizeof(PREFIX) - 1, PLACED, memo->key);
    hash %= MEMO_PLACES;
    kept = memo->places[hash].token; /* compared by its two ends, which overlap: sodium_memcmp() is slow */
    if (memo->places[hash].serial == access->serial &&
        (crypto_verify_32(kept, at) | crypto_verify_32(kept + LAST, at + LAST)) == 0) {
        *why = ACCESS_GOOD;
        atomic_fetch_add_explicit(memo->places[hash].uses, 1, memory_order_relaxed);
        return memo->places[hash].identity;
    }
    identity = token_find(access, token, why, &uses);
    if (identity != NULL) {
        memo->places[hash].serial = access->serial;
        memo->places[hash].identity = identity;
        memo->places[hash].uses = uses;
        memcpy(memo->places[hash].token, token.at, token.len);
    }
    return identity;
}

const char *access_of_uid(const struct access *access, uid_t uid)
{
    char text[BYTES_NUMBER_SIZE];

    return identity_of(access, ACCESS_OF_UID, bytes_of_number(text, uid));
}

const char *access_of_certificate(const struct access *access, struct bytes name)
{
    char buf[ACCESS_CREDENTIAL_MAX];

    return access_certificate_read(name, buf, &name) ? identity_of(access, ACCESS_OF_CERTIFICATE, name)
                                                     : NULL;
}
