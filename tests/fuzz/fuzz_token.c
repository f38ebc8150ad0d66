/* fuzz_token.c - the fencing token header: whatever is accepted is the one text of what it says. */
#include <assert.h>
#include <stdio.h>

#include "shared/token/token.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const struct token_keys *test_keys(void)
{
    static struct token_keys *keys;
    char why[256];

    if (keys == NULL)
        keys = token_keys_parse(BYTES("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), why, sizeof(why));
    assert(keys != NULL);
    return keys;
}

static int width(struct bytes text)
{
    return (int)text.len;
}

static void check_same_bytes(struct bytes header, const struct token_text *text)
{
    const struct token_claim *claim = &text->claim;
    char again[TOKEN_HEADER_SIZE];
    int len = snprintf(
        again, sizeof(again),
        "%lld;lease=\"%.*s\";store=\"%.*s\";mode=%s;epoch=%lld;hold=\"%.*s\";kid=\"%.*s\";sig=:%.*s:",
        (long long)claim->token.number, width(claim->lease), claim->lease.at, width(claim->store),
        claim->store.at, token_mode_name(claim->mode), (long long)claim->token.epoch, width(claim->hold),
        claim->hold.at, width(text->kid), text->kid.at, width(text->mac), text->mac.at);

    assert(len > 0 && (size_t)len < sizeof(again));
    assert(bytes_equal(header, (struct bytes){again, (size_t)len}));
}

/* What is accepted can be signed, and the signed one is good and says the same. */
static void check_signed(const struct token_claim *claim)
{
    struct token_claim read;
    char buf[TOKEN_HEADER_SIZE];
    struct bytes header = {buf, token_sign(test_keys(), claim, buf)};

    assert(token_verify(test_keys(), header, &read) == TOKEN_GOOD);
    assert(read.token.number == claim->token.number && read.token.epoch == claim->token.epoch &&
           read.mode == claim->mode);
    assert(bytes_equal(read.lease, claim->lease) && bytes_equal(read.store, claim->store) &&
           bytes_equal(read.hold, claim->hold));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct bytes header = {(const char *)data, size};
    struct token_text text;
    struct token_claim claim;
    bool accepted = token_text_read(header, &text);
    enum token_verdict verdict = token_verify(test_keys(), header, &claim);

    assert(accepted == (verdict != TOKEN_MALFORMED));
    if (accepted) {
        check_same_bytes(header, &text);
        check_signed(&text.claim);
    }
    return 0;
}
