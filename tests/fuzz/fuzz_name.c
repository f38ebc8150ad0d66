/* fuzz_name.c - names and resource keys: a second, plainer idea of the grammar must agree with the first. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "shared/token/name.h"
#include "tests/unit/utf8_text.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* -- the grammar of docs/contract.md, written again */

static bool plain_is_lease(const unsigned char *text, size_t len)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";

    if (len < 1 || len > 128)
        return false;
    for (size_t i = 0; i < len; i++) {
        const char *found = text[i] != 0 ? strchr(allowed, text[i]) : NULL;

        if (found == NULL || (i == 0 && found - allowed >= 62))
            return false;
    }
    return true;
}

static bool plain_is_text(const unsigned char *text, size_t len)
{
    uint32_t code = 0;

    for (size_t i = 0, length; i < len; i += length) {
        length = plain_utf8(text + i, len - i, &code);
        if (length == 0 || code <= 0x1F || (code >= 0x7F && code <= 0x9F))
            return false;
    }
    return true;
}

static bool plain_is_segment(const unsigned char *text, size_t len)
{
    return len > 0 && !(len == 1 && text[0] == '.') && !(len == 2 && text[0] == '.' && text[1] == '.');
}

static bool plain_is_key(const unsigned char *text, size_t len)
{
    size_t begin = 0;

    if (len > 512 || !plain_is_text(text, len))
        return false;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != '/')
            continue;
        if (begin == 0 ? !plain_is_lease(text, i) : !plain_is_segment(text + begin, i - begin))
            return false;
        begin = i + 1;
    }
    return true;
}

/* -- both ways */

/* Writes every byte but the slash as %XX. */
static struct bytes encode_all(struct bytes text, char *raw)
{
    static const char hex[] = "0123456789ABCDEFabcdef";
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        unsigned low = c % 16 >= 10 && i % 2 ? c % 16 + 6 : c % 16; /* both cases of letters */

        if (c == '/') {
            raw[len++] = '/';
            continue;
        }
        raw[len++] = '%';
        raw[len++] = hex[c / 16];
        raw[len++] = hex[low];
    }
    return (struct bytes){raw, len};
}

static void check_again(struct bytes key, struct bytes lease)
{
    char raw[3 * RESOURCE_KEY_MAX_BYTES], buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key_again, lease_again;

    assert(resource_key_from_path(encode_all(key, raw), buf, &key_again, &lease_again) == NULL);
    assert(bytes_equal(key, key_again) && bytes_equal(lease, lease_again));
}

static void check_key_of_path(struct bytes raw)
{
    char buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease;
    const char *why = resource_key_from_path(raw, buf, &key, &lease);
    const char *slash;

    if (why != NULL) {
        assert(strlen(why) > 10);
        return;
    }
    assert(plain_is_key((const unsigned char *)key.at, key.len) && key.at[key.len] == '\0');
    slash = memchr(key.at, '/', key.len);
    assert(lease.at == key.at && lease.len == (slash != NULL ? (size_t)(slash - key.at) : key.len));
    check_again(key, lease);
}

static void check_name_of_path(struct bytes raw)
{
    char buf[NAME_MAX_BYTES + 1], encoded[3 * NAME_MAX_BYTES], again[NAME_MAX_BYTES + 1];
    struct bytes name, name_again;

    if (name_from_path(raw, buf, &name) != NULL)
        return;
    assert(plain_is_lease((const unsigned char *)name.at, name.len) && name.at[name.len] == '\0');
    assert(name_from_path(encode_all(name, encoded), again, &name_again) == NULL);
    assert(bytes_equal(name, name_again));
}

/* The input as if it were decoded already: what the plain grammar takes, the path takes when it is encoded.
 */
static void check_decoded(const unsigned char *data, size_t size)
{
    char raw[3 * (RESOURCE_KEY_MAX_BYTES + 1)], buf[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease, text = {(const char *)data, size};
    bool accepted;

    if (size > RESOURCE_KEY_MAX_BYTES + 1)
        return;
    accepted = resource_key_from_path(encode_all(text, raw), buf, &key, &lease) == NULL;
    assert(accepted == plain_is_key(data, size));
    assert(!accepted || bytes_equal(key, text));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct bytes text = {(const char *)data, size};

    check_key_of_path(text);
    check_name_of_path(text);
    check_decoded(data, size);
    assert(name_is_lease(text) == plain_is_lease(data, size));
    assert(name_is_holder(text) == (size >= 1 && size <= 128 && plain_is_text(data, size)));
    return 0;
}
