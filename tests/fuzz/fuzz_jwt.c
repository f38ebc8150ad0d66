/* fuzz_jwt.c - a JWT that nobody has signed is nobody's, whatever it says: the input is its head, its body
 * and its signature, a line each, which are encoded here. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/access/access.h"

#define JWKS                                                                                                 \
    "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"a\","                                            \
    "\"x\":\"_ZAtAlI2QwbwAyN65cxT0OXTd0oX3_SghIXF28W-ixk\",\"y\":"                                           \
    "\"CWep2jbpcYFmvVXkxnTO58Uzl6u5x0FCPgDyzd7KH0A\"}]}"

enum { PARTS = 3, TEXT_SIZE = 8192 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct access *access_make(void)
{
    char path[] = "/tmp/pawl-fuzz-jwks-XXXXXX", text[512], why[ACCESS_WHY_SIZE];
    int fd = mkstemp(path), len;
    struct access *access;

    assert(fd >= 0 && write(fd, JWKS, sizeof(JWKS) - 1) == (ssize_t)sizeof(JWKS) - 1);
    len = snprintf(
        text, sizeof(text),
        "{\"issuers\":{\"i\":{\"iss\":\"https://i\",\"aud\":\"pawl\",\"jwks\":\"%s\",\"algs\":[\"ES256\"]}},"
        "\"identities\":{\"w\":{\"subjects\":{\"i\":[\"s\"]}}}}",
        path);
    access = access_parse((struct bytes){text, (size_t)len}, why, sizeof(why));
    assert(access != NULL && access_load_keys(access, why, sizeof(why)));
    close(fd);
    unlink(path);
    return access;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static struct access *access;
    struct access_moment moment = {.now_s = 1000, .steady_ms = 1};
    struct bytes left = {(const char *)data, size};
    enum access_why why = ACCESS_GOOD;
    char text[TEXT_SIZE];
    size_t len = 0;

    if (access == NULL)
        access = access_make();
    if (size > TEXT_SIZE / 2)
        return 0;
    for (unsigned i = 0; i < PARTS; i++) {
        struct bytes part = bytes_cut(&left, '\n');

        sodium_bin2base64(text + len, sizeof(text) - len, (const unsigned char *)part.at, part.len,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        len += strlen(text + len);
        if (i + 1 < PARTS)
            text[len++] = '.';
    }
    assert(access_of_jwt(access, (struct bytes){text, len}, &moment, &why) == NULL);
    assert(why != ACCESS_GOOD && why != ACCESS_NONE && why < ACCESS_WHYS);
    access_is_jwt((struct bytes){(const char *)data, size});
    return 0;
}
