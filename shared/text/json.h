/* json.h - reads JSON text strictly: the only door to cJSON.
 *
 * cJSON 1.7.15 accepts "01", keeps a repeated member, cuts a text at \u0000 and does not check UTF-8: so the
 * text is scanned first (RFC 8259 grammar, valid UTF-8, no \u0000, no lone surrogate, at most depth_max
 * levels, the body's own object being the first, no number of more than 63 characters), and only then given
 * to cJSON; what it made is refused when it has a repeated member at any level ("a" and "\u0061" are the
 * same).
 *
 * Members are asked for with their kind; what was not asked for is found by json_unknown(). Numbers are
 * taken only as integers written without fraction or exponent, within int64. */
#ifndef PAWL_SHARED_JSON_H
#define PAWL_SHARED_JSON_H

#include <stdint.h>

#include "shared/text/bytes.h"

/* How many of the first bytes are ASCII without quote, backslash and control characters. */
size_t json_plain_length(struct bytes text);

struct json; /* a parsed object */

enum json_found { JSON_FOUND, JSON_ABSENT, JSON_MISTYPED };

/* Why a text is not taken: what, with its limit, and at which member of the object; no control character. */
struct json_fault {
    char why[160];
    bool has_nul;   /* it would be JSON, but has \u0000 in a text of this member */
    bool no_memory; /* for it: the text may well be right */
    size_t at;      /* how far it was read; 0: all of it, or nothing */
};

/* The text must be one object (white space around it allowed). NULL when it is not, or when memory is out,
 * with a sentence in fault, if that is not NULL. The text must outlive the result; raw members point into it.
 */
struct json *json_parse(struct bytes text, unsigned depth_max, struct json_fault *fault);
void json_free(struct json *json); /* NULL is fine */

/* null counts as mistyped. */
enum json_found json_get_int(const struct json *json, const char *key, int64_t *value);
enum json_found json_get_bool(const struct json *json, const char *key, bool *value);
/* value lives as long as json; decoded (no escapes). */
enum json_found json_get_text(const struct json *json, const char *key, struct bytes *value);
/* An object member as minified text, written to buf (size bytes). JSON_FOUND with len > size: it is longer,
 * buf untouched. Numbers and order are kept exactly as they were written. */
enum json_found json_get_object_raw(const struct json *json, const char *key, char *buf, size_t size,
                                    size_t *len);
/* The first member that is not in names (NULL-terminated), or NULL. */
const char *json_unknown(const struct json *json, const char *const *names);
/* Sub-objects and lists, for configuration files and tools. */
const struct json *json_get_object(const struct json *json, const char *key, enum json_found *found);
size_t json_list_count(const struct json *json, const char *key, enum json_found *found);
const struct json *json_list_object(const struct json *json, const char *key,
                                    size_t i); /* NULL: not an object */
bool json_list_text(const struct json *json, const char *key, size_t i, struct bytes *value);
bool json_list_int(const struct json *json, const char *key, size_t i, int64_t *value);
/* NULL: there is none of this name. */
const struct json *json_member(const struct json *json, const char *key);
/* Values one after the other, each in the same time, however many there are: of an object its members, of a
 * list its elements. before: the last one; NULL: the first is meant. NULL: no more, or neither object nor
 * list. */
const struct json *json_next(const struct json *json, const struct json *before);
/* What a member is called; lives as long as json. */
struct bytes json_name(const struct json *member);
enum json_kind { JSON_OBJECT, JSON_LIST, JSON_TEXT, JSON_OTHER };
enum json_kind json_kind(const struct json *json);
/* false: it is something else. */
bool json_is_text(const struct json *json, struct bytes *value);
bool json_is_int(const struct json *json, int64_t *value);

#endif
