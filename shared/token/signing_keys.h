/* signing_keys.h - the keys behind the fencing token, and what is computed with one. For token*.c alone;
 * others include token.h. */
#ifndef PAWL_SHARED_TOKEN_KEYS_H
#define PAWL_SHARED_TOKEN_KEYS_H

#include "shared/token/text.h"

struct token_key; /* lives as long as its token_keys */

/* The i-th key of the file; NULL behind the last. The first, which is always there, signs. */
const struct token_key *token_keys_at(const struct token_keys *keys, size_t i);
/* NULL: no key of that name. */
const struct token_key *token_keys_find(const struct token_keys *keys, struct bytes kid);
struct bytes token_key_kid(const struct token_key *key);
/* HMAC-SHA256 over the parts one after the other. */
void token_key_mac(const struct token_key *key, const struct bytes *parts, size_t count,
                   unsigned char mac[TOKEN_MAC_BYTES]);

#endif
