/* token.h - the fencing token and its header value.
 *
 *   34;lease="orders:42";store="Q2x8Zk3v9a1BQ2x8Zk3v9a1B";mode=exclusive;epoch=1;hold="Zk3v9a1BQ2x8";
 *   kid="k1";sig=:BASE64:
 *
 * A Structured Field Item (RFC 9651): an Integer and its parameters, in this order, and only this canonical
 * text: no spaces (it is one line), no leading zeros, padded base64 with zero spare bits (RFC 4648
 * section 3.5). sig is HMAC-SHA256 (RFC 2104), full length, with the key named kid over all bytes in front of
 * ";sig=". Anyone may read it; only the owners of the keys can make one. */
#ifndef PAWL_SHARED_TOKEN_H
#define PAWL_SHARED_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "shared/text/bytes.h"

enum {
    TOKEN_HEADER_MAX = 1024, /* bytes of a header value that are looked at; more is malformed */
    TOKEN_HEADER_SIZE = 512, /* enough for every one that token_sign() makes, with its NUL */
    TOKEN_LEASE_MAX = 128,   /* as NAME_MAX_BYTES of shared/token/name.h */
    TOKEN_STORE_CHARS = 24,  /* as STORE_ID_CHARS of shared/member/state_file.h: [A-Za-z0-9_-] */
    TOKEN_HOLD_MIN = 12,
    TOKEN_HOLD_MAX = 16, /* [A-Za-z0-9_-], random */
    TOKEN_KID_MAX = 32,
    TOKEN_DIGITS_MAX = 15,
    TOKEN_KEY_MIN_BYTES = 16, /* of a key, decoded */
    TOKEN_KEY_MAX_BYTES = 1024,
    TOKEN_FILE_MAX_BYTES = 65536, /* of a key file */
    TOKEN_KEY_LINE_SIZE = 80      /* enough for what token_keygen() writes, with its NUL */
};

/* Exact in JSON, JavaScript, Lua and as a Structured Field integer. */
#define TOKEN_NUMBER_MAX 999999999999999

/* A type of its own, so that a duration can never be passed for a token. */
struct token {
    int64_t epoch;  /* 1 to TOKEN_NUMBER_MAX */
    int64_t number; /* 1 to TOKEN_NUMBER_MAX */
};

enum token_mode { TOKEN_EXCLUSIVE, TOKEN_SHARED, TOKEN_PERMITS };

struct token_claim {
    struct token token;
    struct bytes lease; /* a valid lease name */
    struct bytes
        store; /* the id of the store that granted it: two stores have nothing to do with each other */
    enum token_mode mode;
    struct bytes hold;
};

const char *token_mode_name(enum token_mode mode);
/* Fills buf (TOKEN_HOLD_MIN characters and a NUL) with a fresh random hold name. */
void token_hold_name(char buf[TOKEN_HOLD_MIN + 1]);

/* -- keys: a file, one "kid:base64" a line, the first signs, all verify; lines of blanks and # comments
 * allowed. Lines end with a line feed alone. After token_keys_parse() the keys only change by
 * token_keys_free(): several threads may use them. */
struct token_keys;
/* NULL with a sentence (never a key) in why: a bad line by its number, a kid twice, a key under 16 bytes or
 * over 1,024, a file over 64 KiB, no key at all. */
struct token_keys *token_keys_parse(struct bytes file, char *why, size_t why_size);
/* The same of a file, which others than its owner and its group must not be able to read. */
struct token_keys *token_keys_load(const char *path, char *why, size_t why_size);
void token_keys_free(struct token_keys *keys); /* wipes */
/* One line with a fresh 32-byte key, its newline and a NUL into buf (size at least TOKEN_KEY_LINE_SIZE); the
 * length, or 0 when kid is not one. The caller wipes buf. */
size_t token_keygen(const char *kid, char *buf, size_t size);

/* Writes the header value; its length (always below TOKEN_HEADER_SIZE). The claim must be valid (assert). */
size_t token_sign(const struct token_keys *keys, const struct token_claim *claim,
                  char buf[TOKEN_HEADER_SIZE]);

enum token_verdict { TOKEN_GOOD, TOKEN_MALFORMED, TOKEN_BAD_SIGNATURE /* or unknown kid */ };
/* Reads and verifies; the bytes of claim point into header. MALFORMED comes before BAD_SIGNATURE. On
 * BAD_SIGNATURE claim is filled too (for the number in the refusal); it must not be believed.
 * Constant time in the signature. */
enum token_verdict token_verify(const struct token_keys *keys, struct bytes header,
                                struct token_claim *claim);
/* Whether this can be the id of a store. */
bool token_is_store(struct bytes text);
/* What node number N, of so many, of the store of a quorum whose id these bytes begin with says that it is:
 * "ID/N/COUNT". */
enum { TOKEN_NODE_SIZE = TOKEN_STORE_CHARS + 12 };
void token_node_id(char id[TOKEN_NODE_SIZE], const char *store, unsigned number, unsigned count);
/* The number of one that says this; 0: none. */
unsigned token_node_number(const char *said, const char *store, unsigned count);
/* Only the grammar; for tools without a key. */
bool token_read(struct bytes header, struct token_claim *claim, struct bytes *kid);

/* A text that nobody without a key can read or change, for cursors: base64url of a tag and of the text
 * (XChaCha20 under a key of its own, the tag as its nonce). context: what else must be the same when it is
 * opened. The same text gives the same sealed one. */
#define TOKEN_SEALED_CHARS(len) (((len) + TOKEN_SEAL_TAG) * 4 / 3 + 1)
enum { TOKEN_SEAL_TAG = 16, TOKEN_SEAL_MAX = 1536 };
/* len: at most TOKEN_SEAL_MAX; sealed: TOKEN_SEALED_CHARS(len) and a NUL. */
void token_seal(const struct token_keys *keys, const char *domain, struct bytes context, struct bytes text,
                char *sealed);
/* false: it is not one that was sealed so, of len bytes. */
bool token_open(const struct token_keys *keys, const char *domain, struct bytes context, struct bytes sealed,
                unsigned char *text, size_t len);

/* -- the text without a key, and what one key computes: for token.c and its tests. */
enum {
    TOKEN_MAC_BYTES = 32,
    TOKEN_MAC_TEXT = 44, /* the same in padded base64 */
    /* The longest text in front of ";sig=". */
    TOKEN_SIGNED_MAX = TOKEN_DIGITS_MAX +
                       sizeof(";lease=\"\";store=\"\";mode=exclusive;epoch=;hold=\"\";kid=\"\"") - 1 +
                       TOKEN_LEASE_MAX + TOKEN_STORE_CHARS + TOKEN_DIGITS_MAX + TOKEN_HOLD_MAX + TOKEN_KID_MAX
};

struct token_text {
    struct token_claim claim;
    struct bytes kid;
    struct bytes signed_part; /* all in front of ";sig=" */
    struct bytes mac;         /* TOKEN_MAC_TEXT characters: canonical base64 of TOKEN_MAC_BYTES bytes */
};

/* false: not the canonical text, text is untouched. All that is filled points into header. */
bool token_text_read(struct bytes header, struct token_text *text);

struct token_key; /* lives as long as its token_keys */

/* The i-th key of the file; NULL behind the last. The first, which is always there, signs. */
const struct token_key *token_keys_at(const struct token_keys *keys, size_t i);
/* NULL: no key of that name. */
const struct token_key *token_keys_find(const struct token_keys *keys, struct bytes kid);
struct bytes token_key_kid(const struct token_key *key);

#endif
