/* signing_keys.c - the key file of the fencing token: read it, make a line for it, compute with its keys. */
#include "shared/token/signing_keys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
    for (size_t i = 0; i < keys->count; i++) {
        if (bytes_equal(token_key_kid(&keys->key[i]), kid))
            return &keys->key[i];
    }
    return NULL;
}

void token_key_mac(const struct token_key *key, const struct bytes *parts, size_t count,
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
        const char *end = memchr(reader->rest.at, '\n', reader->rest.len);
        size_t len = end != NULL ? (size_t)(end - reader->rest.at) : reader->rest.len;

        *line = (struct bytes){reader->rest.at, len};
        reader->rest.at += len + (end != NULL);
        reader->rest.len -= len + (end != NULL);
        reader->line++;
        if (line->len > 0 && line->at[0] != '#')
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
    const char *colon = memchr(line.at, ':', line.len);

    if (line.at[line.len - 1] == '\r')
        return line_refuse(reader, "ends with a carriage return; lines end with a line feed alone");
    if (colon == NULL)
        return line_refuse(reader, "has no colon; a key is written kid:base64");
    parts->kid = (struct bytes){line.at, (size_t)(colon - line.at)};
    parts->text = (struct bytes){colon + 1, line.len - parts->kid.len - 1};
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

/* Reads to the end, or until buf is full. false: errno says why. */
static bool read_all(int fd, char *buf, size_t size, size_t *len)
{
    *len = 0;
    while (*len < size) {
        ssize_t n = read(fd, buf + *len, size - *len);

        if (n == 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        *len += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* others: who else can read or change it. That a group reads it is how systemd hands a credential on. */
static bool file_read(const char *path, char *buf, size_t size, size_t *len, bool *others)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat file;
    bool ok = fd >= 0 && fstat(fd, &file) == 0 && read_all(fd, buf, size, len);
    int error = errno;

    *others = ok && S_ISREG(file.st_mode) && (file.st_mode & (S_IRWXO | S_IWGRP)) != 0;
    if (fd >= 0)
        close(fd);
    errno = error;
    return ok;
}

struct token_keys *token_keys_load(const char *path, char *why, size_t why_size)
{
    char file[TOKEN_FILE_MAX_BYTES + 1]; /* one more, to see that it is too long */
    char reason[256];
    size_t len = 0;
    struct token_keys *keys = NULL;
    bool others;

    if (!file_read(path, file, sizeof(file), &len, &others)) {
        snprintf(why, why_size, "the key file %s cannot be read: %s", path, strerrordesc_np(errno));
    } else if (others) {
        snprintf(why, why_size,
                 "the key file %s is refused: others can read or change it, and make tokens; chmod 600",
                 path);
    } else {
        keys = token_keys_parse((struct bytes){file, len}, reason, sizeof(reason));
        if (keys == NULL)
            snprintf(why, why_size, "the key file %s is refused: %s", path, reason);
    }
    sodium_memzero(file, sizeof(file));
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
