/* wait_internal.h - what the files of those who wait share. Nobody else includes it.
 *
 *   waiter.c       the state machine that wait.h draws
 *   waiter_new.c   one who waits, in little room */
#ifndef PAWL_LEASE_WAIT_INTERNAL_H
#define PAWL_LEASE_WAIT_INTERNAL_H

#include "lease/queue/wait.h"
#include "lease/worker.h"

/* Thousands wait at once: nothing is kept that can be made again. */
struct waiter {
    struct inbox_place place;
    struct alarm alarm;
    struct http_parked parked;
    struct worker *worker;
    const struct wait_kind *kind;
    uint64_t started_us;
    uint32_t wait_ms, extra_len;
    uint16_t keep_ms;
    unsigned char state, mode, name_len, lease_id_len, hold_len;
    unsigned char early; /* enum inbox_news: what was told while acquire.lua or again.lua was under way */
    unsigned char looks; /* for how often it has looked for an inbox to ask again from */
    char texts[];        /* name, lease_id, hold, extra */
};

enum { SLOT_BYTES = 16, ALARM_BYTES = 16, MALLOC_BYTES = 16 };
_Static_assert(sizeof(struct waiter) + SLOT_BYTES + ALARM_BYTES + MALLOC_BYTES <= WAIT_BYTES_MAX,
               "ten thousand may wait");

struct lease_worker *wait_worker(const struct waiter *waiter);
struct wait_request wait_request_of(const struct waiter *waiter);
/* Zeroed; or the process ends. */
void *wait_memory(size_t size);

/* What befalls one who waits: waiter.c. */
void wait_told(struct inbox_place *place, enum inbox_news news);
void wait_late(struct alarm *alarm);
void wait_gone(struct http_parked *parked);

#endif
