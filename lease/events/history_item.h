/* history_item.h - one thing that happened to a lease: as shared/member/scripts/lib/history.lua packs it, and
 * as users see it.
 *
 * A user's id of it is "SS.EPOCH.SEQ.N": the stripe in two hex digits, then the store's id, which orders what
 * happened to one lease. So no two items of a store have the same id, and those of one lease can be compared.
 */
#ifndef PAWL_LEASE_HISTORY_ITEM_H
#define PAWL_LEASE_HISTORY_ITEM_H

#include <stdint.h>

#include "shared/text/bytes.h"
#include "shared/text/json_write.h"

struct history_id {
    uint64_t epoch, seq, n;
};

/* "EPOCH.SEQ.N", decimals without a zero in front; false when it is not. */
bool history_id_read(struct bytes text, struct history_id *id);
/* A user's "SS.EPOCH.SEQ.N"; false when it is none. */
bool history_id_read_told(struct bytes text, unsigned *stripe, struct history_id *id);
/* Which was first: < 0, 0, > 0. */
int history_id_compare(const struct history_id *a, const struct history_id *b);

struct history_item {
    struct bytes id_text, type, holder, reason; /* in what was read */
    struct history_id id;
    int64_t token, at_ms;
};

/* false when it is none of ours. */
bool history_item_read(struct bytes packed, struct history_item *item);

enum { HISTORY_ID_SIZE = 80 };
/* What users see, and a NUL; lease: the name. */
struct bytes history_id_write(char buf[HISTORY_ID_SIZE], struct bytes lease, struct bytes id_text);
/* As one JSON object, an element of a list or alone. */
void history_item_write(struct json_out *json, struct bytes lease, const struct history_item *item);

#endif
