/* request.h - a request as bytes that are ready to be sent, but for the places that change each time.
 *
 * The text is written once. Where something changes, it holds a run of one of the bytes of enum slot, as many
 * as the value is long; request_done() finds these places, request_fill() puts the present values there. */
#ifndef PAWL_TESTS_BENCH_REQUEST_H
#define PAWL_TESTS_BENCH_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "shared/text/bytes.h"

enum slot { SLOT_NAME = 1, SLOT_STRIPE, SLOT_LEASE_ID, SLOT_HOLD, SLOT_ETAG, SLOT_NUMBER, SLOT_COUNT };
enum {
    NAME_BYTES = 16,
    STRIPE_BYTES = 2,
    LEASE_ID_BYTES = 22,
    HOLD_BYTES = 12,
    ETAG_BYTES = 16,
    NUMBER_BYTES = 12,
    VALUE_SIZE = 24
};
enum { SPOTS_MAX = 12 };

/* The runs, for texts made of literals. */
#define RUN_NAME "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
#define RUN_STRIPE "\2\2"
#define RUN_LEASE_ID "\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3\3"
#define RUN_HOLD "\4\4\4\4\4\4\4\4\4\4\4\4"
#define RUN_ETAG "\5\5\5\5\5\5\5\5\5\5\5\5\5\5\5\5"
#define RUN_NUMBER "\6\6\6\6\6\6\6\6\6\6\6\6"

struct values {
    char of[SLOT_COUNT][VALUE_SIZE];
};

struct request {
    char *text; /* its own, from malloc */
    size_t len, size;
    unsigned spot_count;
    struct spot {
        uint32_t at;
        enum slot slot;
    } spots[SPOTS_MAX];
};

void request_add(struct request *req, struct bytes text);
void request_addf(struct request *req, const char *format, ...) __attribute__((format(printf, 2, 3)));
void request_done(struct request *req);
void request_fill(struct request *req, const struct values *values);
void request_copy(struct request *to, const struct request *from);

/* The number as a name of 16 bytes, "bench:0000000042", and the stripe that it belongs to; and as 12 digits.
 */
void values_name(struct values *values, uint64_t number);
/* Fresh random characters of [A-Za-z0-9_-]; random is the state of a small generator, never 0. */
void values_random(struct values *values, enum slot slot, uint64_t *random);

#endif
