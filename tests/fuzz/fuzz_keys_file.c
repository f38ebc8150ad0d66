/* fuzz_keys_file.c - the key file: what is accepted has as many good keys as lines, what is refused says
 * where. */
#include <assert.h>
#include <string.h>

#include "shared/token/token.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Lines that are neither blank nor a comment, counted character by character. */
static size_t lines_of(const unsigned char *data, size_t size)
{
    size_t count = 0;
    bool counts = false, comment = false;

    for (size_t i = 0; i <= size; i++) {
        if (i == size || data[i] == '\n') {
            count += counts;
            counts = comment = false;
        } else {
            comment = comment || (data[i] == '#' && (i == 0 || data[i - 1] == '\n'));
            counts = counts || (!comment && data[i] != ' ' && data[i] != '\t');
        }
    }
    return count;
}

static void check_kid(struct bytes kid)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    assert(kid.len >= 1 && kid.len <= 32);
    for (size_t i = 0; i < kid.len; i++)
        assert(kid.at[i] != '\0' && strchr(allowed, kid.at[i]) != NULL);
}

static void check_accepted(const struct token_keys *keys, size_t lines)
{
    const struct token_claim claim = {.token = {1, 34},
                                      .lease = BYTES("orders:42"),
                                      .store = BYTES("Q2x8Zk3v9a1BQ2x8Zk3v9a1B"),
                                      .hold = BYTES("Zk3v9a1BQ2x8")};
    struct token_claim read;
    char buf[TOKEN_HEADER_SIZE];
    const struct token_key *key;
    size_t count = 0;

    for (; (key = token_keys_at(keys, count)) != NULL; count++) {
        check_kid(token_key_kid(key));
        assert(token_keys_find(keys, token_key_kid(key)) == key); /* no kid twice */
    }
    assert(count == lines && count > 0);
    assert(token_verify(keys, (struct bytes){buf, token_sign(keys, &claim, buf)}, &read) == TOKEN_GOOD);
}

static void check_sentence(const char *why)
{
    size_t len = strlen(why);

    assert(len > 10);
    for (size_t i = 0; i < len; i++)
        assert(why[i] >= ' ' && why[i] <= '~');
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char why[256] = "";
    struct token_keys *keys = token_keys_parse((struct bytes){(const char *)data, size}, why, sizeof(why));

    if (keys != NULL)
        check_accepted(keys, lines_of(data, size));
    else
        check_sentence(why);
    token_keys_free(keys);
    return 0;
}
