/* fuzz_route_path.c - the canonical path: a second, plainer idea of it must agree with the first, byte for
 * byte, and what comes out has nothing in it that two servers could read in two ways. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "gateway/route/route.h"
#include "tests/unit/utf8_text.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* -- the rules, written again: the whole path is decoded first, then looked at, then written */

struct plain {
    size_t len;
    unsigned char *byte;
    bool *escaped;
};

static int hex(unsigned char c)
{
    const char *digits = "0123456789abcdef", *at;

    if (c >= 'A' && c <= 'F')
        c = (unsigned char)(c + 32);
    at = c != 0 ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

static bool plain_decode(const unsigned char *text, size_t size, struct plain *plain)
{
    plain->len = 0;
    for (size_t i = 0; i < size; i++) {
        plain->escaped[plain->len] = text[i] == '%';
        plain->byte[plain->len] = text[i];
        if (text[i] == '%') {
            if (i + 2 >= size || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0)
                return false;
            plain->byte[plain->len] = (unsigned char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        }
        plain->len++;
    }
    return true;
}

static bool plain_characters_are_good(const struct plain *plain)
{
    uint32_t code = 0;

    for (size_t i = 0, length; i < plain->len; i += length) {
        length = plain_utf8(plain->byte + i, plain->len - i, &code);
        if (length == 0 || code <= 0x1F || (code >= 0x7F && code <= 0x9F) || code == '\\')
            return false;
        if (plain->escaped[i] ? code == '/' : code == '?' || code == '#')
            return false;
    }
    return true;
}

static bool plain_segment_is_good(const unsigned char *text, size_t len, bool last)
{
    static const char *const bad[] = {".", "..", ".;", "..;"};

    for (size_t i = 0; i < 4; i++) {
        size_t length = strlen(bad[i]);

        if (len >= length && memcmp(text, bad[i], length) == 0 && (i >= 2 || len == length))
            return false;
    }
    return len > 0 || last;
}

static bool plain_segments_are_good(const struct plain *plain)
{
    size_t begin = 1;

    if (plain->len == 0 || plain->byte[0] != '/' || plain->escaped[0])
        return false;
    for (size_t i = 1; i <= plain->len; i++) {
        if (i < plain->len && plain->byte[i] != '/')
            continue;
        if (!plain_segment_is_good(plain->byte + begin, i - begin, i == plain->len))
            return false;
        begin = i + 1;
    }
    return true;
}

static size_t plain_write(const struct plain *plain, char *out)
{
    static const char always[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static const char as_it_came[] = "/!$&'()*+,;=:@";
    size_t len = 0;

    for (size_t i = 0; i < plain->len; i++) {
        unsigned char c = plain->byte[i];

        if (strchr(always, c) != NULL || (!plain->escaped[i] && strchr(as_it_came, c) != NULL)) {
            out[len++] = (char)c;
        } else {
            out[len++] = '%';
            out[len++] = "0123456789ABCDEF"[c / 16];
            out[len++] = "0123456789ABCDEF"[c % 16];
        }
    }
    return len;
}

/* -- what must hold of what comes out */

static void check_nothing_in_two_ways(const char *path, size_t len)
{
    static const char *const never[] = {"//",  "/./", "/../", "/.;", "/..;", "%2F", "%2f",
                                        "%5C", "%5c", "%00",  "\\",  "?",    "#"};

    assert(path[0] == '/' && len < ROUTE_PATH_MAX && path[len] == '\0' && strlen(path) == len);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        assert(strstr(path, never[i]) == NULL);
    for (size_t i = 0; i < len; i++)
        assert(path[i] > ' ' && path[i] <= '~' && strchr("\"<>^`{|}", path[i]) == NULL);
    assert(len < 2 || strcmp(path + len - 2, "/.") != 0);
    assert(len < 3 || strcmp(path + len - 3, "/..") != 0);
}

static void check_again(const char *path, size_t len)
{
    char again[ROUTE_PATH_MAX];
    size_t again_len = 0;

    assert(route_path_canonical((struct bytes){path, len}, again, &again_len) == NULL);
    assert(again_len == len && memcmp(again, path, len) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct plain plain = {0, malloc(size + 1), malloc(size + 1)};
    char *wanted = malloc(3 * size + 1), path[ROUTE_PATH_MAX];
    size_t len = 0, wanted_len = 0;
    bool good = plain_decode(data, size, &plain) && plain_characters_are_good(&plain) &&
                plain_segments_are_good(&plain);
    const char *why = route_path_canonical((struct bytes){(const char *)data, size}, path, &len);

    if (good)
        wanted_len = plain_write(&plain, wanted);
    assert((why == NULL) == (good && wanted_len < ROUTE_PATH_MAX));
    if (why == NULL) {
        assert(len == wanted_len && memcmp(path, wanted, len) == 0);
        check_nothing_in_two_ways(path, len);
        check_again(path, len);
    } else {
        assert(strlen(why) > 10);
    }
    free(plain.byte);
    free(plain.escaped);
    free(wanted);
    return 0;
}
