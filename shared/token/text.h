/* text.h - the text of the fencing token header, without a key. For token*.c alone; others include
 * token.h. */
#ifndef PAWL_SHARED_TOKEN_TEXT_H
#define PAWL_SHARED_TOKEN_TEXT_H

#include "shared/token/token.h"

enum {
    TOKEN_MAC_BYTES = 32,
    TOKEN_MAC_TEXT = 44, /* the same in padded base64 */
    /* The longest text in front of ";sig=". */
    TOKEN_SIGNED_MAX = TOKEN_DIGITS_MAX +
                       sizeof(";lease=\"\";store=\"\";mode=exclusive;epoch=;hold=\"\";kid=\"\"") - 1 +
                       TOKEN_LEASE_MAX + TOKEN_STORE_CHARS + TOKEN_DIGITS_MAX + TOKEN_HOLD_MAX + TOKEN_KID_MAX
};

struct token_text {
    struct token_claim claim;
    struct bytes kid;
    struct bytes signed_part; /* all in front of ";sig=" */
    struct bytes mac;         /* TOKEN_MAC_TEXT characters: canonical base64 of TOKEN_MAC_BYTES bytes */
};

bool token_is_kid(struct bytes text);
/* Within every limit of the header: what token_text_read() would accept. */
bool token_claim_is_valid(const struct token_claim *claim);
/* false: not the canonical text, text is untouched. All that is filled points into header. */
bool token_text_read(struct bytes header, struct token_text *text);
/* Writes the part that is signed, without a NUL; its length. claim and kid must be valid. */
size_t token_text_write(const struct token_claim *claim, struct bytes kid, char buf[TOKEN_SIGNED_MAX]);

#endif
