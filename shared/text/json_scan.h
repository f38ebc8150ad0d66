/* json_scan.h - the grammar of JSON (RFC 8259), strictly: json.c asks it before cJSON sees a text. */
#ifndef PAWL_SHARED_JSON_SCAN_H
#define PAWL_SHARED_JSON_SCAN_H

#include <stdint.h>

#include "shared/text/bytes.h"

enum {
    JSON_DEPTH_MOST = 64,   /* the largest depth_max; the scanner and json.c recurse so deep */
    JSON_NUMBER_BYTES = 63, /* cJSON 1.7.15 reads no further (number_c_string in parse_number, cJSON.c) */
    JSON_TEXT_BYTES = 256 * 1024 * 1024,
    JSON_SPANS_FEW = 48
};

/* Where a value stands in the text. */
struct json_span {
    uint32_t start, end;
};

struct json_spans {
    struct json_span *at; /* few, or malloc'd when there are more */
    unsigned count, size;
    struct json_span few[JSON_SPANS_FEW];
};

/* Whether text is one object with white space around it, nested at most depth_max levels; spans then has
 * every value in the order in which they begin, the object itself first. If not, *why is a static sentence.
 * Repeated members are not looked for here. In any case json_spans_done() follows. */
bool json_scan(struct bytes text, unsigned depth_max, struct json_spans *spans, const char **why);
void json_spans_done(struct json_spans *spans);

/* How many of the first bytes are ASCII without quote, backslash and control characters. */
size_t json_plain_length(struct bytes text);

#endif
