/* parse.c - reads and writes the text of the fencing token header; one text for each claim, and no
 * other. */
#include "shared/text/ascii.h"
#include "shared/token/text.h"

_Static_assert(TOKEN_SIGNED_MAX + sizeof(";sig=::") + TOKEN_MAC_TEXT <= TOKEN_HEADER_SIZE,
               "every header fits");
_Static_assert((int)TOKEN_HEADER_SIZE <= (int)TOKEN_HEADER_MAX, "every header that is made can be read");

static const struct bytes mode_names[] = {
    [TOKEN_EXCLUSIVE] = {"exclusive", sizeof("exclusive") - 1},
    [TOKEN_SHARED] = {"shared", sizeof("shared") - 1},
    [TOKEN_PERMITS] = {"permits", sizeof("permits") - 1},
};

enum { MODES = sizeof(mode_names) / sizeof(mode_names[0]) };

const char *token_mode_name(enum token_mode mode)
{
    return mode_names[mode].at;
}

/* -- what the parts are */

bool token_is_kid(struct bytes text)
{
    return text.len > 0 && text.len <= TOKEN_KID_MAX && ascii_is_word(text, BYTES("._-"));
}

static bool is_lease(struct bytes text)
{
    return text.len <= TOKEN_LEASE_MAX && ascii_is_name(text);
}

bool token_is_store(struct bytes text)
{
    return text.len == TOKEN_STORE_CHARS && ascii_is_word(text, BYTES("_-"));
}

static bool is_hold(struct bytes text)
{
    return text.len >= TOKEN_HOLD_MIN && text.len <= TOKEN_HOLD_MAX && ascii_is_word(text, BYTES("_-"));
}

static bool is_number(int64_t value)
{
    return value >= 1 && value <= TOKEN_NUMBER_MAX;
}

bool token_claim_is_valid(const struct token_claim *claim)
{
    return is_number(claim->token.number) && is_number(claim->token.epoch) && (unsigned)claim->mode < MODES &&
           is_lease(claim->lease) && token_is_store(claim->store) && is_hold(claim->hold);
}

/* Padded base64 of exactly 32 bytes (RFC 4648 section 4): 43 characters and one "=". The last character
 * carries four bits of the text and two spare ones, which are zero (section 3.5). */
static bool is_mac(struct bytes text)
{
    if (text.len != TOKEN_MAC_TEXT || text.at[TOKEN_MAC_TEXT - 1] != '=')
        return false;
    return ascii_is_word((struct bytes){text.at, TOKEN_MAC_TEXT - 1}, BYTES("+/")) &&
           strchr("AEIMQUYcgkosw048", text.at[TOKEN_MAC_TEXT - 2]) != NULL;
}

/* -- reading: each takes its part off rest, or returns false */

static struct bytes take_bytes(struct bytes *rest, size_t len)
{
    struct bytes taken = {rest->at, len};

    rest->at += len;
    rest->len -= len;
    return taken;
}

static bool take_number(struct bytes *rest, int64_t *value)
{
    size_t digits = 0;

    *value = 0;
    while (digits < rest->len && digits <= TOKEN_DIGITS_MAX && ascii_is_digit(rest->at[digits]))
        *value = *value * 10 + (rest->at[digits++] - '0');
    if (digits == 0 || digits > TOKEN_DIGITS_MAX || rest->at[0] == '0')
        return false;
    take_bytes(rest, digits);
    return true;
}

/* All up to the next quote, and the quote. */
static bool take_quoted(struct bytes *rest, struct bytes *text)
{
    const char *quote = rest->len > 0 ? memchr(rest->at, '"', rest->len) : NULL;

    if (quote == NULL)
        return false;
    *text = take_bytes(rest, (size_t)(quote - rest->at));
    take_bytes(rest, 1);
    return true;
}

static bool take_lease(struct bytes *rest, struct bytes *lease)
{
    return bytes_take(rest, BYTES(";lease=\"")) && take_quoted(rest, lease) && is_lease(*lease);
}

static bool take_store(struct bytes *rest, struct bytes *store)
{
    return bytes_take(rest, BYTES(";store=\"")) && take_quoted(rest, store) && token_is_store(*store);
}

static bool take_mode(struct bytes *rest, enum token_mode *mode)
{
    if (!bytes_take(rest, BYTES(";mode=")))
        return false;
    for (unsigned i = 0; i < MODES; i++) {
        if (bytes_take(rest, mode_names[i])) {
            *mode = (enum token_mode)i;
            return true;
        }
    }
    return false;
}

static bool take_epoch(struct bytes *rest, int64_t *epoch)
{
    return bytes_take(rest, BYTES(";epoch=")) && take_number(rest, epoch);
}

static bool take_hold(struct bytes *rest, struct bytes *hold)
{
    return bytes_take(rest, BYTES(";hold=\"")) && take_quoted(rest, hold) && is_hold(*hold);
}

static bool take_kid(struct bytes *rest, struct bytes *kid)
{
    return bytes_take(rest, BYTES(";kid=\"")) && take_quoted(rest, kid) && token_is_kid(*kid);
}

static bool take_signed_part(struct bytes *rest, struct token_claim *claim, struct bytes *kid)
{
    return take_number(rest, &claim->token.number) && take_lease(rest, &claim->lease) &&
           take_store(rest, &claim->store) && take_mode(rest, &claim->mode) &&
           take_epoch(rest, &claim->token.epoch) && take_hold(rest, &claim->hold) && take_kid(rest, kid);
}

/* The signature is the end. */
static bool take_mac(struct bytes *rest, struct bytes *mac)
{
    if (!bytes_take(rest, BYTES(";sig=:")) || rest->len != TOKEN_MAC_TEXT + 1)
        return false;
    *mac = take_bytes(rest, TOKEN_MAC_TEXT);
    return is_mac(*mac) && bytes_take(rest, BYTES(":"));
}

bool token_text_read(struct bytes header, struct token_text *text)
{
    struct bytes rest = header;
    struct token_text read;

    if (header.len > TOKEN_HEADER_MAX || !take_signed_part(&rest, &read.claim, &read.kid))
        return false;
    read.signed_part = (struct bytes){header.at, header.len - rest.len};
    if (!take_mac(&rest, &read.mac))
        return false;
    *text = read;
    return true;
}

bool token_read(struct bytes header, struct token_claim *claim, struct bytes *kid)
{
    struct token_text text;

    if (!token_text_read(header, &text))
        return false;
    *claim = text.claim;
    *kid = text.kid;
    return true;
}

/* -- writing: each returns where the next part goes */

static char *put(char *at, struct bytes text)
{
    memcpy(at, text.at, text.len);
    return at + text.len;
}

static char *put_number(char *at, int64_t value)
{
    char digits[TOKEN_DIGITS_MAX];
    size_t i = sizeof(digits);

    for (; value > 0; value /= 10)
        digits[--i] = (char)('0' + value % 10);
    return put(at, (struct bytes){digits + i, sizeof(digits) - i});
}

size_t token_text_write(const struct token_claim *claim, struct bytes kid, char buf[TOKEN_SIGNED_MAX])
{
    char *at = put_number(buf, claim->token.number);

    at = put(put(at, BYTES(";lease=\"")), claim->lease);
    at = put(put(at, BYTES("\";store=\"")), claim->store);
    at = put(put(at, BYTES("\";mode=")), mode_names[claim->mode]);
    at = put_number(put(at, BYTES(";epoch=")), claim->token.epoch);
    at = put(put(at, BYTES(";hold=\"")), claim->hold);
    at = put(put(at, BYTES("\";kid=\"")), kid);
    at = put(at, BYTES("\""));
    return (size_t)(at - buf);
}
