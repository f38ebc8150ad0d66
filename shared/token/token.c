/* token.c - the fencing token: the text of its header, the keys that sign it, seals cursors; random texts
 * and digests. The only file with libsodium in it. */
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "shared/text/ascii.h"
#include "shared/text/read_all.h"
#include "shared/token/random.h"
#include "shared/token/token.h"

/* == the text of the fencing token header; one text for each claim, and no other */

_Static_assert(TOKEN_SIGNED_MAX + sizeof(";sig=::") + TOKEN_MAC_TEXT <= TOKEN_HEADER_SIZE,
               "every header fits");
_Static_assert((int)TOKEN_HEADER_SIZE <= (int)TOKEN_HEADER_MAX, "every header that is made can be read");

static const struct bytes mode_names[] = {
    [TOKEN_EXCLUSIVE] = {"exclusive", sizeof("exclusive") - 1},
    [TOKEN_SHARED] = {"shared", sizeof("shared") - 1},
    [TOKEN_PERMITS] = {"permits", sizeof("permits") - 1},
};

enum { MODES = sizeof(mode_names) / sizeof(mode_names[0]) };

const char *token_mode_name(enum token_mode mode)
{
    return mode_names[mode].at;
}

/* -- what the parts are */

static bool token_is_kid(struct bytes text)
{
    return text.len > 0 && text.len <= TOKEN_KID_MAX && ascii_is_word(text, BYTES("._-"));
}

static bool is_lease(struct bytes text)
{
    return text.len <= TOKEN_LEASE_MAX && ascii_is_name(text);
}

bool token_is_store(struct bytes text)
{
    return text.len == TOKEN_STORE_CHARS && ascii_is_word(text, BYTES("_-"));
}

void token_node_id(char id[TOKEN_NODE_SIZE], const char *store, unsigned number, unsigned count)
{
    snprintf(id, TOKEN_NODE_SIZE, "%.*s/%hhu/%hhu", TOKEN_STORE_CHARS, store, (unsigned char)number,
             (unsigned char)count);
}

unsigned token_node_number(const char *said, const char *store, unsigned count)
{
    char id[TOKEN_NODE_SIZE];

    for (unsigned number = 1; store[0] != '\0' && number <= count; number++) {
        token_node_id(id, store, number, count);
        if (strcmp(said, id) == 0)
            return number;
    }
    return 0;
}

static bool is_hold(struct bytes text)
{
    return text.len >= TOKEN_HOLD_MIN && text.len <= TOKEN_HOLD_MAX && ascii_is_word(text, BYTES("_-"));
}

static bool is_number(int64_t value)
{
    return value >= 1 && value <= TOKEN_NUMBER_MAX;
}

/* What token_text_read() would accept. */
static bool token_claim_is_valid(const struct token_claim *claim)
{
    return is_number(claim->token.number) && is_number(claim->token.epoch) && (unsigned)claim->mode < MODES &&
           is_lease(claim->lease) && token_is_store(claim->store) && is_hold(claim->hold);
}

/* Padded base64 of exactly 32 bytes (RFC 4648 section 4): 43 characters and one "=". The last character
 * carries four bits of the text and two spare ones, which are zero (section 3.5). */
static bool is_mac(struct bytes text)
{
    if (text.len != TOKEN_MAC_TEXT || text.at[TOKEN_MAC_TEXT - 1] != '=')
        return false;
    return ascii_is_word((struct bytes){text.at, TOKEN_MAC_TEXT - 1}, BYTES("+/")) &&
           strchr("AEIMQUYcgkosw048", text.at[TOKEN_MAC_TEXT - 2]) != NULL;
}

/* -- reading: each takes its part off rest, or returns false */

static bool take_number(struct bytes *rest, int64_t *value)
{
    struct bytes digits = {rest->at, 0};

    while (digits.len < rest->len && digits.len <= TOKEN_DIGITS_MAX && ascii_is_digit(rest->at[digits.len]))
        digits.len++;
    *value = bytes_number(digits, TOKEN_DIGITS_MAX);
    return *value >= 0 && digits.at[0] != '0' && bytes_take(rest, digits);
}

/* All up to the next quote, and the quote. */
static bool take_quoted(struct bytes *rest, struct bytes *text)
{
    *text = bytes_cut(rest, '"');
    return rest->at != NULL;
}

static bool take_mode(struct bytes *rest, enum token_mode *mode)
{
    if (!bytes_take(rest, BYTES(";mode=")))
        return false;
    for (unsigned i = 0; i < MODES; i++) {
        if (bytes_take(rest, mode_names[i])) {
            *mode = (enum token_mode)i;
            return true;
        }
    }
    return false;
}

static bool take_signed_part(struct bytes *rest, struct token_claim *claim, struct bytes *kid)
{
    return take_number(rest, &claim->token.number) && bytes_take(rest, BYTES(";lease=\"")) &&
           take_quoted(rest, &claim->lease) && is_lease(claim->lease) &&
           bytes_take(rest, BYTES(";store=\"")) && take_quoted(rest, &claim->store) &&
           token_is_store(claim->store) && take_mode(rest, &claim->mode) &&
           bytes_take(rest, BYTES(";epoch=")) && take_number(rest, &claim->token.epoch) &&
           bytes_take(rest, BYTES(";hold=\"")) && take_quoted(rest, &claim->hold) && is_hold(claim->hold) &&
           bytes_take(rest, BYTES(";kid=\"")) && take_quoted(rest, kid) && token_is_kid(*kid);
}

/* The signature is the end. */
static bool take_mac(struct bytes *rest, struct bytes *mac)
{
    if (!bytes_take(rest, BYTES(";sig=:")) || rest->len != TOKEN_MAC_TEXT + 1)
        return false;
    *mac = (struct bytes){rest->at, TOKEN_MAC_TEXT};
    return is_mac(*mac) && rest->at[TOKEN_MAC_TEXT] == ':';
}

bool token_text_read(struct bytes header, struct token_text *text)
{
    struct bytes rest = header;
    struct token_text read;

    if (header.len > TOKEN_HEADER_MAX || !take_signed_part(&rest, &read.claim, &read.kid))
        return false;
    read.signed_part = (struct bytes){header.at, header.len - rest.len};
    if (!take_mac(&rest, &read.mac))
        return false;
    *text = read;
    return true;
}

bool token_read(struct bytes header, struct token_claim *claim, struct bytes *kid)
{
    struct token_text text;

    if (!token_text_read(header, &text))
        return false;
    *claim = text.claim;
    *kid = text.kid;
    return true;
}

/* -- writing: each returns where the next part goes */

static char *put(char *at, struct bytes text)
{
    memcpy(at, text.at, text.len);
    return at + text.len;
}

static char *put_number(char *at, int64_t value)
{
    char digits[BYTES_NUMBER_SIZE];

    return put(at, bytes_of_number(digits, value));
}

/* The part that is signed, without a NUL; its length. */
static size_t token_text_write(const struct token_claim *claim, struct bytes kid, char buf[TOKEN_SIGNED_MAX])
{
    char *at = put_number(buf, claim->token.number);

    at = put(put(at, BYTES(";lease=\"")), claim->lease);
    at = put(put(at, BYTES("\";store=\"")), claim->store);
    at = put(put(at, BYTES("\";mode=")), mode_names[claim->mode]);
    at = put_number(put(at, BYTES(";epoch=")), claim->token.epoch);
    at = put(put(at, BYTES(";hold=\"")), claim->hold);
    at = put(put(at, BYTES("\";kid=\"")), kid);
    at = put(at, BYTES("\""));
    return (size_t)(at - buf);
}

/* == the key file of the fencing token: read it, make a line for it, compute with its keys. */

enum {
    KEY_TEXT_MAX = (TOKEN_KEY_MAX_BYTES + 2) / 3 * 4, /* base64 characters of the longest key */
    FRESH_KEY_BYTES = 32,                             /* as long as the MAC: RFC 2104 section 3 */
    FRESH_KEY_TEXT = 44
};

/* A key is kept only as the state of HMAC after it, which is copied for every MAC: saves half of the hashing.
 */
struct token_key {
    crypto_auth_hmacsha256_state keyed;
    char kid[TOKEN_KID_MAX];
    size_t kid_len;
};

/* In memory of sodium_malloc(): between guard pages, kept out of core dumps, wiped when it is freed. */
struct token_keys {
    size_t count;
    struct token_key key[];
};

/* What a line says; kid and text point into the file. */
struct key_line {
    struct bytes kid, text;
};

struct reader {
    struct bytes rest;
    unsigned line; /* number of the last line taken, from 1 */
    char *why;
    size_t why_size;
};

/* -- using keys */

const struct token_key *token_keys_at(const struct token_keys *keys, size_t i)
{
    return i < keys->count ? &keys->key[i] : NULL;
}

struct bytes token_key_kid(const struct token_key *key)
{
    return (struct bytes){key->kid, key->kid_len};
}

const struct token_key *token_keys_find(const struct token_keys *keys, struct bytes kid)
{
    for (size_t i = 0; i < keys->count; i++)
        if (bytes_equal(token_key_kid(&keys->key[i]), kid))
            return &keys->key[i];
    return NULL;
}

/* HMAC-SHA256 over the parts one after the other. */
static void key_mac(const struct token_key *key, const struct bytes *parts, size_t count,
                    unsigned char mac[TOKEN_MAC_BYTES])
{
    crypto_auth_hmacsha256_state state = key->keyed;

    for (size_t i = 0; i < count; i++)
        crypto_auth_hmacsha256_update(&state, (const unsigned char *)parts[i].at, parts[i].len);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof(state));
}

void token_keys_free(struct token_keys *keys)
{
    sodium_free(keys);
}

/* -- reading the file's text */

/* The next line that has a key, without its line feed; false at the end. */
static bool line_take(struct reader *reader, struct bytes *line)
{
    while (reader->rest.len > 0) {
        *line = bytes_cut(&reader->rest, '\n');
        reader->line++;
        if (bytes_trim(*line).len > 0 && line->at[0] != '#')
            return true;
    }
    return false;
}

static size_t lines_count(struct bytes file)
{
    struct reader reader = {.rest = file};
    struct bytes line;
    size_t count = 0;

    while (line_take(&reader, &line))
        count++;
    return count;
}

/* A sentence about the line; it never quotes the line, which may be a key in the wrong place. */
static bool line_refuse(const struct reader *reader, const char *sentence)
{
    snprintf(reader->why, reader->why_size, "line %u: %s", reader->line, sentence);
    return false;
}

static bool line_split(const struct reader *reader, struct bytes line, struct key_line *parts)
{
    if (line.at[line.len - 1] == '\r')
        return line_refuse(reader, "ends with a carriage return; lines end with a line feed alone");
    parts->text = line;
    parts->kid = bytes_cut(&parts->text, ':');
    if (parts->text.at == NULL)
        return line_refuse(reader, "has no colon; a key is written kid:base64");
    if (!token_is_kid(parts->kid))
        return line_refuse(reader, "what stands in front of the colon is no kid: 1 to 32 characters of "
                                   "A-Z a-z 0-9 . _ -, without spaces");
    return true;
}

/* Strict base64: sodium_base642bin() of 1.0.18 refuses what is not in the alphabet, a missing pad and spare
 * bits that are not zero, and with no place for the end all that stands behind (tried in
 * tests/unit/test_token_keys.c). */
static bool key_fill(const struct reader *reader, const struct key_line *parts, struct token_key *key)
{
    unsigned char raw[TOKEN_KEY_MAX_BYTES + 2];
    size_t len = 0;
    bool decoded = parts->text.len <= KEY_TEXT_MAX &&
                   sodium_base642bin(raw, sizeof(raw), parts->text.at, parts->text.len, NULL, &len, NULL,
                                     sodium_base64_VARIANT_ORIGINAL) == 0;
    bool fits = decoded && len >= TOKEN_KEY_MIN_BYTES && len <= TOKEN_KEY_MAX_BYTES;

    if (fits) {
        crypto_auth_hmacsha256_init(&key->keyed, raw, len);
        memcpy(key->kid, parts->kid.at, parts->kid.len);
        key->kid_len = parts->kid.len;
    }
    sodium_memzero(raw, sizeof(raw));
    if (!decoded && parts->text.len <= KEY_TEXT_MAX)
        return line_refuse(reader,
                           "what stands behind the colon is not base64 (RFC 4648, padded with =, no spaces)");
    return fits || line_refuse(reader, "the key is not 16 to 1,024 bytes long; pawl keygen makes one of 32");
}

static bool keys_fill(struct reader *reader, struct token_keys *keys)
{
    struct bytes line;
    struct key_line parts;

    while (line_take(reader, &line)) {
        if (!line_split(reader, line, &parts))
            return false;
        if (token_keys_find(keys, parts.kid) != NULL)
            return line_refuse(reader, "this kid was given before; every key has a name of its own");
        if (!key_fill(reader, &parts, &keys->key[keys->count]))
            return false;
        keys->count++;
    }
    return true;
}

static struct token_keys *keys_new(size_t count_max)
{
    size_t size = sizeof(struct token_keys) + count_max * sizeof(struct token_key);
    struct token_keys *keys = sodium_malloc(size);

    if (keys != NULL)
        memset(keys, 0, size);
    return keys;
}

struct token_keys *token_keys_parse(struct bytes file, char *why, size_t why_size)
{
    struct reader reader = {file, 0, why, why_size};
    size_t count = lines_count(file);
    const char *bad = file.len > TOKEN_FILE_MAX_BYTES ? "a key file has at most 64 KiB"
                      : count == 0                    ? "there is no key in it; pawl keygen makes one"
                      : sodium_init() < 0             ? "libsodium cannot be initialised"
                                                      : NULL;
    struct token_keys *keys = bad == NULL ? keys_new(count) : NULL;

    if (keys == NULL) {
        snprintf(why, why_size, "%s", bad != NULL ? bad : "no memory for the keys");
        return NULL;
    }
    if (!keys_fill(&reader, keys)) {
        token_keys_free(keys);
        return NULL;
    }
    sodium_mprotect_readonly(keys);
    return keys;
}

/* -- reading the file */

/* That a group reads it is how systemd hands a credential on. */
struct token_keys *token_keys_load(const char *path, char *why, size_t why_size)
{
    char text[TOKEN_FILE_MAX_BYTES + 1]; /* one more, to see that it is too long */
    char reason[256];
    mode_t mode;
    ssize_t len = read_all_of(path, text, sizeof(text), &mode);
    struct token_keys *keys = NULL;

    if (len < 0) {
        snprintf(why, why_size, "the key file %s cannot be read: %s", path, strerrordesc_np(errno));
    } else if (S_ISREG(mode) && (mode & (S_IRWXO | S_IWGRP)) != 0) {
        snprintf(why, why_size,
                 "the key file %s is refused: others can read or change it, and make tokens; chmod 600",
                 path);
    } else {
        keys = token_keys_parse((struct bytes){text, (size_t)len}, reason, sizeof(reason));
        if (keys == NULL)
            snprintf(why, why_size, "the key file %s is refused: %s", path, reason);
    }
    sodium_memzero(text, sizeof(text));
    return keys;
}

/* -- making a key */

size_t token_keygen(const char *kid, char *buf, size_t size)
{
    struct bytes name = bytes_of(kid);
    unsigned char raw[FRESH_KEY_BYTES];

    assert(size >= TOKEN_KEY_LINE_SIZE);
    if (!token_is_kid(name) || sodium_init() < 0)
        return 0;
    memcpy(buf, name.at, name.len);
    buf[name.len] = ':';
    randombytes_buf(raw, sizeof(raw));
    sodium_bin2base64(buf + name.len + 1, size - name.len - 1, raw, sizeof(raw),
                      sodium_base64_VARIANT_ORIGINAL);
    sodium_memzero(raw, sizeof(raw));
    memcpy(buf + name.len + 1 + FRESH_KEY_TEXT, "\n", 2);
    return name.len + 1 + FRESH_KEY_TEXT + 1;
}

/* == base64 of what is sent or is a digest, without padding, and a NUL: at a fifth of the cost of
 * sodium_bin2base64(), which takes the same time for all bits. Each alphabet is one line of a cache. */

static const alignas(64) char base64_standard[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const alignas(64) char base64_url[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static char *base64_write(char *to, const char alphabet[64], const unsigned char *raw, size_t len)
{
    unsigned bits = 0, have = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | raw[i];
        for (have += 8; have >= 6; have -= 6)
            *to++ = alphabet[bits >> (have - 6) & 63];
    }
    if (have > 0)
        *to++ = alphabet[bits << (6 - have) & 63];
    *to = '\0';
    return to;
}

/* == signs and verifies the fencing token header, and seals cursors. */

/* The kernel is asked each time: 0.3 us, and nothing has to be thought of when the process forks. */
void token_hold_name(char buf[TOKEN_HOLD_MIN + 1])
{
    random_text(buf, TOKEN_HOLD_MIN);
}

static void mac_write(const struct token_key *key, struct bytes signed_part, char *text)
{
    unsigned char mac[TOKEN_MAC_BYTES];

    key_mac(key, &signed_part, 1, mac);
    memcpy(base64_write(text, base64_standard, mac, sizeof(mac)), "=", 2);
}

size_t token_sign(const struct token_keys *keys, const struct token_claim *claim, char buf[TOKEN_HEADER_SIZE])
{
    static const char before[] = ";sig=:";
    const struct token_key *key = token_keys_at(keys, 0);
    size_t len;

    assert(token_claim_is_valid(claim));
    len = token_text_write(claim, token_key_kid(key), buf);
    memcpy(buf + len, before, sizeof(before) - 1);
    mac_write(key, (struct bytes){buf, len}, buf + len + sizeof(before) - 1);
    len += sizeof(before) - 1 + TOKEN_MAC_TEXT;
    memcpy(buf + len, ":", 2);
    return len + 1;
}

/* Base64 has one text for each MAC once spare bits are refused, so the texts are compared: nothing need be
 * decoded. */
enum token_verdict token_verify(const struct token_keys *keys, struct bytes header, struct token_claim *claim)
{
    const struct token_key *key;
    struct token_text text;
    char right[TOKEN_MAC_TEXT + 1];

    if (!token_text_read(header, &text))
        return TOKEN_MALFORMED;
    *claim = text.claim;
    key = token_keys_find(keys, text.kid);
    if (key == NULL)
        return TOKEN_BAD_SIGNATURE;
    mac_write(key, text.signed_part, right);
    return sodium_memcmp(right, text.mac.at, TOKEN_MAC_TEXT) == 0 ? TOKEN_GOOD : TOKEN_BAD_SIGNATURE;
}

/* Nobody knows of two texts with one tag, so no keystream is used twice. */
static void seal_tag(const struct token_key *key, const char *domain, struct bytes context, struct bytes text,
                     unsigned char tag[TOKEN_MAC_BYTES])
{
    uint64_t context_len = context.len;
    const struct bytes parts[] = {
        {domain, strlen(domain) + 1}, {(const char *)&context_len, sizeof(context_len)}, context, text};

    key_mac(key, parts, 4, tag);
}

static void seal_stream(const struct token_key *key, const unsigned char tag[TOKEN_SEAL_TAG],
                        unsigned char *text, size_t len)
{
    static const char domain[] = "pawl-seal-key";
    const struct bytes parts[] = {{domain, sizeof(domain)}};
    unsigned char secret[TOKEN_MAC_BYTES], nonce[crypto_stream_xchacha20_NONCEBYTES] = {0};

    key_mac(key, parts, 1, secret);
    memcpy(nonce, tag, TOKEN_SEAL_TAG);
    crypto_stream_xchacha20_xor(text, text, len, nonce, secret);
    sodium_memzero(secret, sizeof(secret));
}

void token_seal(const struct token_keys *keys, const char *domain, struct bytes context, struct bytes text,
                char *sealed)
{
    const struct token_key *key = token_keys_at(keys, 0);
    unsigned char whole[TOKEN_SEAL_TAG + TOKEN_SEAL_MAX], tag[TOKEN_MAC_BYTES];

    assert(text.len <= TOKEN_SEAL_MAX);
    seal_tag(key, domain, context, text, tag);
    memcpy(whole, tag, TOKEN_SEAL_TAG);
    memcpy(whole + TOKEN_SEAL_TAG, text.at, text.len);
    seal_stream(key, tag, whole + TOKEN_SEAL_TAG, text.len);
    sodium_bin2base64(sealed, TOKEN_SEALED_CHARS(text.len) + 1, whole, TOKEN_SEAL_TAG + text.len,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

bool token_open(const struct token_keys *keys, const char *domain, struct bytes context, struct bytes sealed,
                unsigned char *text, size_t len)
{
    unsigned char whole[TOKEN_SEAL_TAG + TOKEN_SEAL_MAX], tag[TOKEN_MAC_BYTES];
    const struct token_key *key;
    size_t whole_len = 0;

    if (len > TOKEN_SEAL_MAX ||
        sodium_base642bin(whole, sizeof(whole), sealed.at, sealed.len, NULL, &whole_len, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        whole_len != TOKEN_SEAL_TAG + len)
        return false;
    for (size_t i = 0; (key = token_keys_at(keys, i)) != NULL; i++) {
        memcpy(text, whole + TOKEN_SEAL_TAG, len);
        seal_stream(key, whole, text, len);
        seal_tag(key, domain, context, (struct bytes){(const char *)text, len}, tag);
        if (sodium_memcmp(tag, whole, TOKEN_SEAL_TAG) == 0)
            return true;
    }
    return false;
}

/* == unguessable texts and digests. */

void random_text(char *buf, size_t chars)
{
    unsigned char bytes[48];

    assert(chars % 4 == 0 && chars / 4 * 3 <= sizeof(bytes));
    do
        randombytes_buf(bytes, chars / 4 * 3);
    while (bytes[0] >> 2 == 62); /* "-" */
    sodium_bin2base64(buf, chars + 1, bytes, chars / 4 * 3, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void digest_text(const struct bytes *parts, size_t count, char buf[DIGEST_TEXT + 1])
{
    crypto_generichash_state state;
    unsigned char sum[32];

    crypto_generichash_init(&state, NULL, 0, sizeof(sum));
    for (size_t i = 0; i < count; i++) {
        uint64_t len = parts[i].len;

        crypto_generichash_update(&state, (const unsigned char *)&len, sizeof(len));
        if (parts[i].len > 0)
            crypto_generichash_update(&state, (const unsigned char *)parts[i].at, parts[i].len);
    }
    crypto_generichash_final(&state, sum, sizeof(sum));
    base64_write(buf, base64_url, sum, sizeof(sum));
}

void digest_secret(struct bytes key, struct bytes secret, char buf[DIGEST_SECRET + 1])
{
    unsigned char sum[16];

    crypto_generichash(sum, sizeof(sum), (const unsigned char *)secret.at, secret.len,
                       (const unsigned char *)key.at, key.len);
    base64_write(buf, base64_url, sum, sizeof(sum));
}
