/* json_write.h - writes JSON text into a growing buffer. Knows only text; no cJSON here.
 *
 * Commas and quotes are put by the writer; nesting is the caller's (json_out_bytes and json_out_done assert
 * that all is closed; json_out_reset first when a text is given up). Integers are exact (int64). Text is
 * escaped as RFC 8259 wants and must be valid UTF-8 (a byte that is not is written as U+FFFD). Out of memory
 * aborts the process. */
#ifndef PAWL_SHARED_JSON_WRITE_H
#define PAWL_SHARED_JSON_WRITE_H

#include <stdint.h>

#include "shared/text/bytes.h"

struct json_out {
    char *at;
    size_t len, size;
    unsigned depth;
    bool comma; /* the next element needs one */
};

void json_out_init(struct json_out *out);
void json_out_done(struct json_out *out);  /* frees */
void json_out_reset(struct json_out *out); /* empty again, keeps its memory */
struct bytes json_out_bytes(const struct json_out *out);
/* Makes room for so many more bytes, so that what follows does not grow the buffer step by step. */
void json_out_reserve(struct json_out *out, size_t more);
/* The buffer as a plain one: bytes, the digits of an integer, or what printf(3) would print, as they are,
 * without comma or quotes. */
void json_out_append(struct json_out *out, struct bytes text);
void json_out_append_int(struct json_out *out, int64_t value);
void json_out_print(struct json_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In all of these key is NULL inside a list and at the top, else a name of ours, which needs no escapes. */
void json_object(struct json_out *out, const char *key);
void json_object_end(struct json_out *out);
void json_list(struct json_out *out, const char *key);
void json_list_end(struct json_out *out);
void json_text(struct json_out *out, const char *key, struct bytes value);
void json_int(struct json_out *out, const char *key, int64_t value);
void json_bool(struct json_out *out, const char *key, bool value);
void json_null(struct json_out *out, const char *key);
/* null: an empty value; this one. */
void json_text_or_null(struct json_out *out, const char *key, struct bytes value);
void json_int_or_null(struct json_out *out, const char *key, int64_t value, int64_t none);
/* value is JSON text already, put as it is. */
void json_raw(struct json_out *out, const char *key, struct bytes value);

#endif
