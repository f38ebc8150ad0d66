/* answer.h - an HTTP answer, parsed as it comes, strictly (RFC 9112). Pure: no I/O, no clock. The gateway
 * reads its upstreams by it, and libpawl the services.
 *
 * A lax parser would be fooled about where an answer ends, and then call an incomplete one whole, or take
 * another one's bytes for it. So whatever can be understood in two ways is malformed: a bare CR or LF, NUL
 * and other control characters, a folded line, white space before the colon, two Content-Length (also equal
 * ones, also in a list), Content-Length together with Transfer-Encoding, any Transfer-Encoding but exactly
 * "chunked" or any at all from HTTP/1.0, a chunk size that is not one to 15 hexadecimal digits, any other
 * version, a status that is not 100 to 599, 101 (nobody asks for another protocol), a head or a trailer over
 * ANSWER_HEAD_MAX bytes or ANSWER_FIELDS_MAX fields, more than ANSWER_INTERIM_MAX heads with 1xx. One
 * thing is taken that the grammar has not: a status line without the space before an empty reason.
 *
 * An answer to HEAD, and 204 and 304, has no body, whatever its fields say (a 204 that announces one is
 * whole, but nothing is to be read behind it: not kept). 205 is framed as any other. Chunk extensions and
 * trailers are checked and dropped.
 *
 * An answer with neither length nor chunks ends when the other side closes. A FIN shows that all bytes have
 * come that the other side's kernel was given, in order; not that its program wanted to end there: that of a
 * program that dies looks the same. Status and fields are proven by then, the body is as whole as it can be
 * known. Without memory for a long head the answer is malformed: never known, never wrong. */
#ifndef PAWL_SHARED_ANSWER_H
#define PAWL_SHARED_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/text/bytes.h"

enum {
    ANSWER_HEAD_MAX = 32768, /* status line and fields */
    ANSWER_FIELDS_MAX = 128,
    ANSWER_KEEP_MS = 1000, /* how long a connection is kept at most */
    ANSWER_INTERIM_MAX = 256,
    ANSWER_CHUNK_LINE_MAX = 256,
    ANSWER_NEAR = 1024
};

/* To what: of HEAD there is no body. */
enum answer_to { ANSWER_TO_HEAD, ANSWER_TO_OTHER };

enum answer_event {
    ANSWER_MORE,  /* all is taken, and it is not the end */
    ANSWER_HEAD,  /* the final head is there; once, and good until the next call */
    ANSWER_PIECE, /* of the body: answer->piece, which is the beginning of in; answer_take() what is used */
    ANSWER_WHOLE, /* complete; what is left of in does not belong to it */
    ANSWER_MALFORMED /* answer->why */
};

enum answer_place {
    ANSWER_AT_STATUS,
    ANSWER_AT_FIELD,
    ANSWER_AT_CHUNK_LINE,
    ANSWER_AT_CHUNK_END,
    ANSWER_AT_TRAILER, /* up to here: at a line */
    ANSWER_AT_LENGTH,  /* in a body with a length */
    ANSWER_AT_CLOSE,   /* in a body that ends when the other side closes */
    ANSWER_AT_CHUNK,
    ANSWER_AT_END,
    ANSWER_AT_FAULT
};

struct answer_field {
    struct bytes name, value; /* value without white space around it */
};

/* Places in text. */
struct answer_span {
    uint16_t name, name_len, value, value_len;
};

struct answer {
    /* To be read. From the final head on: */
    unsigned status;
    /* Of the body; -1: not known before its end (chunked, or until close). Of an answer to HEAD: what a body
     * would have, -1: it does not say. */
    int64_t length;
    unsigned keep_ms; /* how long the connection can be kept; 0: not at all */
    struct bytes piece;
    const char *why;
    /* The parser's own. */
    enum answer_place place;
    enum answer_to to;
    unsigned minor, interim, field_count;
    bool after_cr, head_told;
    int64_t left;     /* of the body, or of the chunk */
    size_t line, len; /* in text: where this line begins, and the end */
    char *text;       /* the head, or the trailer, or a chunk's line, as it came */
    char near[ANSWER_NEAR];
    struct answer_span fields[ANSWER_FIELDS_MAX];
};

/* A zeroed one may be set up; one that has been set up again and again, done once. */
void answer_init(struct answer *answer, enum answer_to to);
void answer_done(struct answer *answer);

/* What comes next in in, which is made shorter by what has been understood. WHOLE and MALFORMED stay. */
enum answer_event answer_next(struct answer *answer, struct bytes *in);
/* So many bytes of the piece have been used. */
void answer_take(struct answer *answer, struct bytes *in, size_t len);
/* The other side has closed, and all that came before has been given: WHOLE or MALFORMED. */
enum answer_event answer_fin(struct answer *answer);

/* The fields of the head, until the next call of answer_next(); how many. */
unsigned answer_fields(const struct answer *answer, struct answer_field fields[ANSWER_FIELDS_MAX]);
/* The first of this name; NULL: there is none. */
const struct answer_field *answer_field_find(const struct answer_field *fields, unsigned count,
                                             const char *name);

#endif
