/* signature.c - signatures of others' JWTs: GnuTLS alone (RFC 7515, 7518, 8037). */
#include "shared/tls/signature.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

enum { RSA_BITS_MIN = 2048, NUMBER_BYTES = 32 };

struct tls_public_key {
    gnutls_pubkey_t key;
    enum tls_algorithm algorithm;
};

static gnutls_datum_t datum(struct bytes bytes)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)bytes.at, (unsigned)bytes.len};
}

static bool key_import(gnutls_pubkey_t key, enum tls_algorithm algorithm, struct bytes a, struct bytes b)
{
    gnutls_datum_t first = datum(a), second = datum(b);
    unsigned bits = 0;

    switch (algorithm) {
    case TLS_RS256:
        return gnutls_pubkey_import_rsa_raw(key, &first, &second) == 0 &&
               gnutls_pubkey_get_pk_algorithm(key, &bits) == GNUTLS_PK_RSA && bits >= RSA_BITS_MIN;
    case TLS_ES256:
        return a.len == NUMBER_BYTES && b.len == NUMBER_BYTES &&
               gnutls_pubkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_SECP256R1, &first, &second) == 0;
    case TLS_EDDSA:
        return a.len == NUMBER_BYTES &&
               gnutls_pubkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_ED25519, &first, NULL) == 0;
    case TLS_ALGORITHMS: break;
    }
    return false;
}

struct tls_public_key *tls_public_key_new(enum tls_algorithm algorithm, struct bytes a, struct bytes b)
{
    struct tls_public_key *key = calloc(1, sizeof(*key));

    if (key == NULL)
        return NULL;
    key->algorithm = algorithm;
    if (gnutls_pubkey_init(&key->key) == 0 && key_import(key->key, algorithm, a, b))
        return key;
    tls_public_key_free(key);
    return NULL;
}

void tls_public_key_free(struct tls_public_key *key)
{
    if (key != NULL) {
        gnutls_pubkey_deinit(key->key);
        free(key);
    }
}

enum tls_algorithm tls_public_key_algorithm(const struct tls_public_key *key)
{
    return key->algorithm;
}

/* ECDSA: GnuTLS wants r and s in DER. */
static bool verifies_es256(const struct tls_public_key *key, const gnutls_datum_t *data,
                           struct bytes signature)
{
    gnutls_datum_t r = datum((struct bytes){signature.at, NUMBER_BYTES});
    gnutls_datum_t s = datum((struct bytes){signature.at + NUMBER_BYTES, NUMBER_BYTES}), der;
    bool is_good;

    if (signature.len != (size_t)2 * NUMBER_BYTES || gnutls_encode_rs_value(&der, &r, &s) < 0)
        return false;
    is_good = gnutls_pubkey_verify_data2(key->key, GNUTLS_SIGN_ECDSA_SHA256, 0, data, &der) >= 0;
    gnutls_free(der.data);
    return is_good;
}

bool tls_public_key_verifies(const struct tls_public_key *key, struct bytes data, struct bytes signature)
{
    gnutls_datum_t text = datum(data), sig = datum(signature);

    switch (key->algorithm) {
    case TLS_RS256: return gnutls_pubkey_verify_data2(key->key, GNUTLS_SIGN_RSA_SHA256, 0, &text, &sig) >= 0;
    case TLS_ES256: return verifies_es256(key, &text, signature);
    case TLS_EDDSA:
        return gnutls_pubkey_verify_data2(key->key, GNUTLS_SIGN_EDDSA_ED25519, 0, &text, &sig) >= 0;
    case TLS_ALGORITHMS: break;
    }
    return false;
}
