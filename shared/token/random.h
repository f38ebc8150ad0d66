/* random.h - unguessable texts and digests; with token*.c the only door to libsodium. */
#ifndef PAWL_SHARED_RANDOM_H
#define PAWL_SHARED_RANDOM_H

#include <stddef.h>

#include "shared/text/bytes.h"

/* Fills buf with chars characters of [A-Za-z0-9_-], 6 random bits each, and a NUL. chars is a multiple of
 * 4, at most 64. The first is no "-": ids are words of command lines, where that would begin a flag. */
void random_text(char *buf, size_t chars);

enum { DIGEST_TEXT = 43 };
/* BLAKE2b-256 over the parts, each preceded by its length, as base64url text and a NUL. */
void digest_text(const struct bytes *parts, size_t count, char buf[DIGEST_TEXT + 1]);

enum { DIGEST_SECRET = 22 };
/* BLAKE2b-128 of a secret, keyed, as base64url text and a NUL: what may be kept of it where others can read.
 * key: at most 64 bytes. */
void digest_secret(struct bytes key, struct bytes secret, char buf[DIGEST_SECRET + 1]);

#endif
