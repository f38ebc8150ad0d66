/* signature.h - signatures of others' JWTs, by their public keys. */
#ifndef PAWL_SHARED_SIGNATURE_H
#define PAWL_SHARED_SIGNATURE_H

#include <stdbool.h>

#include "shared/text/bytes.h"

enum tls_algorithm {
    TLS_RS256, /* RSASSA-PKCS1-v1_5 with SHA-256, keys of 2,048 bits and more */
    TLS_ES256, /* ECDSA on P-256 with SHA-256, r and s of 32 bytes each */
    TLS_EDDSA, /* Ed25519 */
    TLS_ALGORITHMS
};

struct tls_public_key;

/* a: the modulus; or x; b: the exponent; or y; not used by Ed25519. Numbers of RFC 7518: big-endian, not
 * encoded. NULL: it is no such key. */
struct tls_public_key *tls_public_key_new(enum tls_algorithm algorithm, struct bytes a, struct bytes b);
void tls_public_key_free(struct tls_public_key *key); /* NULL is fine */
enum tls_algorithm tls_public_key_algorithm(const struct tls_public_key *key);
/* Safe in several threads. */
bool tls_public_key_verifies(const struct tls_public_key *key, struct bytes data, struct bytes signature);

#endif
