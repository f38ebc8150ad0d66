/* name.h - lease names and resource keys as they come in a path (docs/contract.md, "Limits").
 *
 * A lease name is [A-Za-z0-9][A-Za-z0-9._:-]{0,127}. A resource key begins with the name of the lease that
 * guards it, then optionally '/' and segments: 512 bytes after percent-decoding, UTF-8, no control characters
 * (C0, C1, U+007F), no empty, "." or ".." segment. Decoded exactly once and judged then: %2F is a slash in a
 * resource key, and refused in a name; %00 is refused; no normalisation. */
#ifndef PAWL_SHARED_RECORD_NAME_H
#define PAWL_SHARED_RECORD_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/text/bytes.h"

enum { NAME_MAX_BYTES = 128, RESOURCE_KEY_MAX_BYTES = 512 };

/* Whether these bytes are a lease name. */
bool name_is_lease(struct bytes name);
/* Whether these bytes may begin one: for ?prefix=. Empty counts. */
bool name_is_prefix(struct bytes text);

/* NULL, or a static sentence that says what is wrong and what is right. On success buf holds the decoded text
 * and a NUL, out points into it. */
const char *name_from_path(struct bytes raw_segment, char buf[NAME_MAX_BYTES + 1], struct bytes *out);
/* raw is everything behind "/v1/resources/". lease: the first segment, a valid lease name. */
const char *resource_key_from_path(struct bytes raw, char buf[RESOURCE_KEY_MAX_BYTES + 1], struct bytes *key,
                                   struct bytes *lease);

/* The other texts of a client. */
bool name_is_lease_id(struct bytes text);        /* [A-Za-z0-9_-]{22,64} */
bool name_is_holder(struct bytes text);          /* 1 to 128 bytes of printable UTF-8 */
bool name_is_reason(struct bytes text);          /* 1 to 256 bytes of it: of a force-release */
bool name_is_idempotency_key(struct bytes text); /* 1 to 128 visible ASCII characters */
/* A fresh lease_id: 22 characters of base64url, 128 random bits, and a NUL. */
void name_new_lease_id(char buf[23]);

#endif
