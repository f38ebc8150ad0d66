/* random.c - unguessable texts and digests. */
#include "shared/token/random.h"

#include <assert.h>
#include <sodium.h>
#include <stdint.h>

void random_text(char *buf, size_t chars)
{
    unsigned char bytes[48];

    assert(chars % 4 == 0 && chars / 4 * 3 <= sizeof(bytes));
    randombytes_buf(bytes, chars / 4 * 3);
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
        if (parts[i].len > 0) {
            crypto_generichash_update(&state, (const unsigned char *)parts[i].at, parts[i].len);
        }
    }
    crypto_generichash_final(&state, sum, sizeof(sum));
    sodium_bin2base64(buf, DIGEST_TEXT + 1, sum, sizeof(sum), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void digest_secret(struct bytes key, struct bytes secret, char buf[DIGEST_SECRET + 1])
{
    unsigned char sum[16];

    crypto_generichash(sum, sizeof(sum), (const unsigned char *)secret.at, secret.len,
                       (const unsigned char *)key.at, key.len);
    sodium_bin2base64(buf, DIGEST_SECRET + 1, sum, sizeof(sum), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}
