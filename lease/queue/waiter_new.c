/* waiter_new.c - one who waits, in little room. */
#include <stdlib.h>

#include "lease/queue/wait_internal.h"
#include "shared/text/memory.h"

void *wait_memory(size_t size)
{
    void *memory = must_have(calloc(1, size));

    return memory;
}

struct lease_worker *wait_worker(const struct waiter *waiter)
{
    return lease_worker_from(waiter->worker);
}

static char *text_put(char *at, struct bytes text)
{
    if (text.len > 0) {
        memcpy(at, text.at, text.len);
    }
    return at + text.len;
}

struct wait_request wait_request_of(const struct waiter *waiter)
{
    struct wait_request request = {
        .name = {waiter->texts, waiter->name_len},
        .lease_id = {waiter->texts + waiter->name_len, waiter->lease_id_len},
        .mode = (enum token_mode)waiter->mode,
        .started_us = waiter->started_us,
        .wait_ms = waiter->wait_ms,
        .keep_ms = waiter->keep_ms,
    };

    request.hold = (struct bytes){request.lease_id.at + request.lease_id.len, waiter->hold_len};
    request.extra = (struct bytes){request.hold.at + request.hold.len, waiter->extra_len};
    return request;
}

struct waiter *wait_new(struct worker *worker, const struct wait_kind *kind,
                        const struct wait_request *request)
{
    struct inbox *inbox = lease_worker_from(worker)->inbox;
    size_t texts = request->name.len + request->lease_id.len + request->hold.len + request->extra.len;
    struct waiter *waiter;

    if (!inbox_is_open(inbox)) {
        return NULL;
    }
    waiter = wait_memory(sizeof(*waiter) + texts);
    waiter->place.told = wait_told;
    waiter->alarm.rings = wait_late;
    waiter->parked.gone = wait_gone;
    waiter->worker = worker;
    waiter->kind = kind;
    waiter->started_us = request->started_us;
    waiter->wait_ms = (uint32_t)request->wait_ms;
    waiter->keep_ms = (uint16_t)request->keep_ms;
    waiter->mode = (unsigned char)request->mode;
    waiter->name_len = (unsigned char)request->name.len;
    waiter->lease_id_len = (unsigned char)request->lease_id.len;
    waiter->hold_len = (unsigned char)request->hold.len;
    waiter->extra_len = (uint32_t)request->extra.len;
    text_put(text_put(text_put(text_put(waiter->texts, request->name), request->lease_id), request->hold),
             request->extra);
    inbox_enter(inbox, &waiter->place);
    return waiter;
}

uint64_t wait_wid(const struct waiter *waiter)
{
    return waiter->place.wid;
}
