/* header.c - signs and verifies the fencing token header, and tags cursors. */
#include "shared/token/token.h"

#include <assert.h>
#include <sodium.h>

#include "shared/token/random.h"
#include "shared/token/signing_keys.h"

enum { TAG_BYTES = 8, TAG_TEXT = 2 * TAG_BYTES };

/* libsodium writes a NUL behind base64 and hex. */
typedef char mac_text[TOKEN_MAC_TEXT + 1];
typedef char tag_text[TAG_TEXT + 1];

/* The kernel is asked each time: 0.3 us, and nothing has to be thought of when the process forks. */
void token_hold_name(char buf[TOKEN_HOLD_MIN + 1])
{
    random_text(buf, TOKEN_HOLD_MIN);
}

static void mac_write(const struct token_key *key, struct bytes signed_part, char *text)
{
    unsigned char mac[TOKEN_MAC_BYTES];

    token_key_mac(key, &signed_part, 1, mac);
    sodium_bin2base64(text, sizeof(mac_text), mac, sizeof(mac), sodium_base64_VARIANT_ORIGINAL);
}

size_t token_sign(const struct token_keys *keys, const struct token_claim *claim, char buf[TOKEN_HEADER_SIZE])
{
    static const char before[] = ";sig=:";
    const struct token_key *key = token_keys_at(keys, 0);
    size_t len;

    assert(token_claim_is_valid(claim));
    len = token_text_write(claim, token_key_kid(key), buf);
    memcpy(buf + len, before, sizeof(before) - 1);
    mac_write(key, (struct bytes){buf, len}, buf + len + sizeof(before) - 1);
    len += sizeof(before) - 1 + TOKEN_MAC_TEXT;
    memcpy(buf + len, ":", 2);
    return len + 1;
}

/* Base64 has one text for each MAC once spare bits are refused, so the texts are compared: nothing need be
 * decoded. */
enum token_verdict token_verify(const struct token_keys *keys, struct bytes header, struct token_claim *claim)
{
    const struct token_key *key;
    struct token_text text;
    mac_text right;

    if (!token_text_read(header, &text))
        return TOKEN_MALFORMED;
    *claim = text.claim;
    key = token_keys_find(keys, text.kid);
    if (key == NULL)
        return TOKEN_BAD_SIGNATURE;
    mac_write(key, text.signed_part, right);
    return sodium_memcmp(right, text.mac.at, TOKEN_MAC_TEXT) == 0 ? TOKEN_GOOD : TOKEN_BAD_SIGNATURE;
}

/* No header can pass for a tagged text or the other way round: only the latter has a NUL. */
static void tag_write(const struct token_key *key, const char *domain, struct bytes text, char *tag)
{
    const struct bytes parts[] = {{domain, strlen(domain) + 1}, text};
    unsigned char mac[TOKEN_MAC_BYTES];

    token_key_mac(key, parts, 2, mac);
    sodium_bin2hex(tag, sizeof(tag_text), mac, TAG_BYTES);
}

void token_tag(const struct token_keys *keys, const char *domain, struct bytes text, char tag[17])
{
    tag_write(token_keys_at(keys, 0), domain, text, tag);
}

bool token_tag_check(const struct token_keys *keys, const char *domain, struct bytes text, struct bytes tag)
{
    const struct token_key *key;
    bool found = false;
    tag_text right;

    if (tag.len != TAG_TEXT)
        return false;
    for (size_t i = 0; (key = token_keys_at(keys, i)) != NULL; i++) {
        tag_write(key, domain, text, right);
        found |= sodium_memcmp(right, tag.at, TAG_TEXT) == 0;
    }
    return found;
}
