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

struct wait_ask wait_ask_of(const struct waiter *waiter)
{
    struct wait_ask ask = {
        .name = {waiter->texts, waiter->name_len},
        .lease_id = {waiter->texts + waiter->name_len, waiter->lease_id_len},
        .mode = (enum token_mode)waiter->mode,
        .started_us = waiter->started_us,
        .wait_ms = waiter->wait_ms,
        .keep_ms = waiter->keep_ms,
    };

    ask.hold = (struct bytes){ask.lease_id.at + ask.lease_id.len, waiter->hold_len};
    ask.extra = (struct bytes){ask.hold.at + ask.hold.len, waiter->extra_len};
    return ask;
}

struct waiter *wait_new(struct worker *worker, const struct wait_kind *kind, const struct wait_ask *ask)
{
    struct inbox *inbox = lease_worker_from(worker)->inbox;
    size_t texts = ask->name.len + ask->lease_id.len + ask->hold.len + ask->extra.len;
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
    waiter->started_us = ask->started_us;
    waiter->wait_ms = (uint32_t)ask->wait_ms;
    waiter->keep_ms = (uint16_t)ask->keep_ms;
    waiter->mode = (unsigned char)ask->mode;
    waiter->name_len = (unsigned char)ask->name.len;
    waiter->lease_id_len = (unsigned char)ask->lease_id.len;
    waiter->hold_len = (unsigned char)ask->hold.len;
    waiter->extra_len = (uint32_t)ask->extra.len;
    text_put(text_put(text_put(text_put(waiter->texts, ask->name), ask->lease_id), ask->hold), ask->extra);
    inbox_enter(inbox, &waiter->place);
    return waiter;
}

uint64_t wait_wid(const struct waiter *waiter)
{
    return waiter->place.wid;
}
