/* link.c - the one connection to Redis: a state machine.
 *
 *   IDLE        --store_open-->                                      CONNECTING
 *   CONNECTING  --the socket stands-->                               GREETING
 *   CONNECTING  --refused, or over the deadline-->                   WAITING
 *   GREETING    --every command of the greeting answered-->          READY
 *   GREETING    --an error, the link broken, over the deadline-->    WAITING
 *   READY       --the link broken, a call over its deadline-->       WAITING
 *   READY       --a script answered as by no master-->               LEAVING
 *   LEAVING     --the replies that are there taken, or it broken-->  WAITING
 *   WAITING     --the pause is over-->                               CONNECTING
 *   CONNECTING  --store_close-->                                     IDLE
 *   GREETING    --store_close-->                                     IDLE
 *   READY       --store_close-->                                     IDLE
 *   WAITING     --store_close-->                                     IDLE
 *
 * Only READY takes calls. The end of the link ends every call on it: UNKNOWN if the kernel has taken any of
 * its bytes, or of its batch's, else NOT_SENT. Redis answers in the order of asking, so the calls in flight
 * are a line, and an answer belongs to its head. LEAVING lasts no longer than one link_read(), and nothing
 * goes out in it: a Redis that says that it is no master may come back as one, its run_id the same and its
 * data another's, so everything begins anew with a greeting. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

enum {
    READER_KEEPS = 256 * 1024,
    FLUSH_COMMANDS = 16, /* Redis works on them while the turn goes on making more */
    /* Others wait for what one script does: of 32 that hand a lease on none is past BATCH_WORK
     * (shared/member/scripts/lib/batch.lua). */
    BATCH_MAX = 32,
    FLUSH_BYTES = 256 * 1024,
    READS_MAX = 16,       /* of one event: others want their turn too */
    READ_SIZE = 16 * 1024 /* of redisBufferRead() (hiredis.c of 0.14.1 and 1.2.0) */
};

static void connect_begin(struct store *store);
static void link_timer_fired(struct loop_timer *timer);
static void link_io(struct loop_watch *watch, int events);

static const bool arrows[LINK_STATES][LINK_STATES] = {
    [LINK_IDLE] = {[LINK_CONNECTING] = true},
    [LINK_CONNECTING] = {[LINK_GREETING] = true, [LINK_WAITING] = true, [LINK_IDLE] = true},
    [LINK_GREETING] = {[LINK_READY] = true, [LINK_WAITING] = true, [LINK_IDLE] = true},
    [LINK_READY] = {[LINK_LEAVING] = true, [LINK_WAITING] = true, [LINK_IDLE] = true},
    [LINK_LEAVING] = {[LINK_WAITING] = true},
    [LINK_WAITING] = {[LINK_CONNECTING] = true, [LINK_IDLE] = true},
};

bool link_allows(enum link_state from, enum link_state to)
{
    return arrows[from][to];
}

static void link_arm(struct store_link *link, uint64_t delay_ms)
{
    loop_timer_arm(&link->timer, delay_ms, 0);
    link->timer_armed = true;
}

/* The only place where the state changes. */
static void link_enter(struct store *store, enum link_state next)
{
    struct store_link *link = &store->link;

    assert(link_allows(link->state, next));
    link->walked[link->state] |= (unsigned char)(1u << next);
    link->state = next;
    loop_timer_disarm(&link->timer);
    link->timer_armed = false;
    switch (next) {
    case LINK_CONNECTING:
        link_arm(link, store->timeout_ms);
        connect_begin(store);
        return;
    case LINK_GREETING:
        link_arm(link, store->timeout_ms);
        handshake_greet(store);
        return;
    case LINK_WAITING: link_arm(link, dial_pause_ms(&link->attempts)); return;
    case LINK_READY: link->ready_us = loop_now_us(); return;
    case LINK_LEAVING:
    case LINK_IDLE:
    case LINK_STATES: return;
    }
}

void link_open(struct store *store)
{
    struct store_link *link = &store->link;

    call_list_init(&link->flight);
    loop_timer_init(store->loop, &link->timer, link_timer_fired);
    link->check = "store-connecting";
    snprintf(link->detail, sizeof(link->detail), "The connection to Redis is being made.");
    handshake_new(store);
    link_enter(store, LINK_CONNECTING);
}

static void connect_begin(struct store *store)
{
    struct store_link *link = &store->link;
    char why[DIAL_WHY_MAX];
    redisContext *context = dial_begin(&store->url, why);

    if (context == NULL) {
        link_drop(store, "store-connecting", "%s", why);
        return;
    }
    link->context = context;
    context->reader->maxbuf = READER_KEEPS;
    loop_watch_init(store->loop, &link->watch, context->fd, link_io, LOOP_WRITE);
}

static void link_connected(struct store *store)
{
    struct store_link *link = &store->link;
    const char *why = dial_end(link->context);

    if (why != NULL) {
        link_drop(store, "store-connecting", "%s", why);
        return;
    }
    loop_watch_set(&link->watch, LOOP_READ);
    link_enter(store, LINK_GREETING);
}

void link_ready(struct store *store)
{
    assert(store->link.run_id[0] != '\0' && !store->link.is_loading);
    store->link.check = NULL;
    store_ready(store);
    link_enter(store, LINK_READY);
}

/* -- ends */

static uint64_t oldest_deadline_ms(const struct store_link *link)
{
    uint64_t oldest_ms = UINT64_MAX;

    for (const struct store_call *call = link->flight.head; call != NULL; call = call->next) {
        oldest_ms = call->deadline_ms < oldest_ms ? call->deadline_ms : oldest_ms;
    }
    return oldest_ms;
}

/* One timer for all calls: it fires when the oldest one that was there when it was armed would be late, and
 * then looks who is the oldest now. A call that is sent whole keeps its deadline and has never left the
 * line's sight, so none that is in flight is due before the timer. */
static void link_look_at_deadlines(struct store *store)
{
    struct store_link *link = &store->link;
    uint64_t now_ms = loop_now_ms();

    link->timer_armed = false;
    if (oldest_deadline_ms(link) <= now_ms) {
        link_read(store); /* a process that was held up finds answers that have come in time */
    }
    if (link->state != LINK_READY || link->flight.head == NULL) {
        return;
    }
    if (oldest_deadline_ms(link) <= now_ms) {
        link_drop(store, "store-connecting", "no answer in %u ms", store->timeout_ms);
    } else {
        link_arm(link, oldest_deadline_ms(link) - now_ms);
    }
}

static void link_timer_fired(struct loop_timer *timer)
{
    struct store *store = container_of(timer, struct store, link.timer);

    switch (store->link.state) {
    case LINK_WAITING: link_enter(store, LINK_CONNECTING); return;
    case LINK_CONNECTING:
    case LINK_GREETING: link_drop(store, "store-connecting", "no answer in %u ms", store->timeout_ms); return;
    case LINK_READY: link_look_at_deadlines(store); return;
    case LINK_LEAVING:
    case LINK_IDLE:
    case LINK_STATES: return;
    }
}

static void link_shut(struct store *store)
{
    struct store_link *link = &store->link;
    uint64_t taken = link->wire.taken;

    if (link->context != NULL) {
        loop_watch_done(&link->watch);
        redisFree(link->context);
        link->context = NULL;
    }
    for (struct store_call *call; (call = call_list_take(&link->flight)) != NULL;) {
        if (call->state != CALL_HANDSHAKE) {
            store_end_later(store, call, call->place < taken ? STORE_UNKNOWN : STORE_NOT_SENT);
        }
    }
    handshake_forget(store);
    wire_reset(&link->wire);
    link->gathered = NULL;
    link->gathered_count = 0;
    link->gathered_bytes = 0;
    link->alone_ms = 0;
    link->blocked = false;
    link->unflushed = 0;
}

static void link_describe(struct store *store, const char *check, const char *why)
{
    struct store_link *link = &store->link;
    const struct store_url *url = &store->url;

    link->check = check;
    if (url->path[0] != '\0') {
        snprintf(link->detail, sizeof(link->detail), "Redis at %s: %s.", url->path, why);
    } else {
        snprintf(link->detail, sizeof(link->detail), "Redis at %s port %u: %s.", url->host, url->port, why);
    }
}

void link_leave(struct store *store, struct bytes code)
{
    char why[80];

    if (store->link.state != LINK_READY) {
        return; /* it has left before */
    }
    snprintf(why, sizeof(why), "a script was answered with %.*s, so it is greeted anew", (int)code.len,
             code.at);
    link_describe(store, reply_refusal(code)->check, why);
    link_enter(store, LINK_LEAVING);
}

static void link_end(struct store *store)
{
    struct store_link *link = &store->link;
    bool stood = link->state == LINK_READY || link->state == LINK_LEAVING;

    if (stood && dial_lasted(link->ready_us)) {
        link->attempts = 0;
    }
    link_shut(store);
    link_enter(store, LINK_WAITING);
}

void link_drop(struct store *store, const char *check, const char *why, ...)
{
    char text[240];
    va_list args;

    va_start(args, why);
    vsnprintf(text, sizeof(text), why, args);
    va_end(args);
    link_describe(store, check, text);
    link_end(store);
}

void link_close(struct store *store)
{
    struct store_link *link = &store->link;

    link_shut(store);
    link_enter(store, LINK_IDLE);
    loop_timer_done(&link->timer);
}

/* -- commands out
 *
 * Calls that may be batched are gathered, at the end of the line of those in flight, until the turn ends,
 * FLUSH_COMMANDS are there (BATCH_MAX while Redis is at work), or another command comes: then they go on the
 * wire, in front of it, one as it is, more as one FCALL. So nothing overtakes anything. The first of a batch
 * knows how many answer with it. */

/* What is gathered goes on the wire, in its place in front of all that is put there later. */
static void link_put_gathered(struct store_link *link)
{
    struct store_call *call = link->gathered;
    unsigned count = link->gathered_count;

    link->gathered = NULL;
    link->gathered_count = 0;
    link->gathered_bytes = 0;
    if (count == 1) {
        wire_put_fcall(&link->wire, call);
    } else if (count > 1) {
        wire_put_batch(&link->wire, call, count);
        call->batch = count;
        for (unsigned i = 0; i < count; i++, call = call->next) {
            call->state = CALL_BATCHED;
        }
    }
}

static bool link_may_gather(const struct store *store, const struct store_call *call)
{
    return call->state == CALL_BY_NAME && call->script->batch && call->script->library->batch != NULL &&
           call->deadline_ms >= store->link.alone_ms;
}

/* All that are gathered begin where their batch will: nothing else goes on the wire before it. */
static void link_gather(struct store_link *link, struct store_call *call)
{
    if (link->gathered_count == BATCH_MAX) {
        link_put_gathered(link);
        call->place = wire_position(&link->wire);
    }
    link->gathered = link->gathered_count == 0 ? call : link->gathered;
    link->gathered_count++;
    link->gathered_bytes += wire_batch_size(call);
}

static void link_put(struct store *store, struct store_call *call)
{
    struct store_link *link = &store->link;

    link_put_gathered(link);
    call->place = wire_position(&link->wire);
    switch ((enum call_state)call->state) {
    case CALL_BY_NAME:
    case CALL_BATCHED:
    case CALL_ALONE:
    case CALL_AGAIN:
    case CALL_READ_ONLY: wire_put_fcall(&link->wire, call); break;
    case CALL_WHOLE: wire_put_eval(&link->wire, call); break;
    case CALL_COMMAND: wire_put_command(&link->wire, call->argv, call->arg_count); break;
    case CALL_HANDSHAKE: handshake_put(store, container_of(call, struct handshake_call, call)); break;
    }
}

/* A Redis that has nothing to do begins at once; one that is at work gets whole batches, which cost it less.
 */
static unsigned link_flush_at(const struct store *store)
{
    return store->counts.in_flight > store->link.unflushed ? BATCH_MAX : FLUSH_COMMANDS;
}

void link_send(struct store *store, struct store_call *call)
{
    struct store_link *link = &store->link;

    assert(link->state == LINK_READY || link->state == LINK_GREETING);
    call->batch = 1;
    call->place = wire_position(&link->wire);
    if (link_may_gather(store, call)) {
        link_gather(link, call);
    } else {
        link_put(store, call);
    }
    call_list_append(&link->flight, call);
    link->unflushed++;
    if (link->state != LINK_READY) {
        return; /* the greeting leaves at the end of the turn */
    }
    if (!link->timer_armed) {
        link_arm(link, store->timeout_ms);
    }
    if (!link->blocked && (link->unflushed >= link_flush_at(store) ||
                           wire_waiting(&link->wire) + link->gathered_bytes >= FLUSH_BYTES)) {
        link_flush(store);
    }
}

static void link_write(struct store *store)
{
    struct store_link *link = &store->link;
    enum wire_end end = wire_flush(&link->wire, link->context->fd);
    bool closed = end == WIRE_BROKEN && (errno == EPIPE || errno == ECONNRESET);

    link->unflushed = 0;
    if (end == WIRE_BROKEN && !closed) {
        link_drop(store, "store-connecting", "%s", strerror(errno));
    } else if (closed) {
        /* Redis may have answered before it closed: reading on shows that, and then the end. */
        link->blocked = true;
        loop_watch_set(&link->watch, LOOP_READ);
    } else if (link->blocked != (end == WIRE_BLOCKED)) {
        link->blocked = end == WIRE_BLOCKED;
        loop_watch_set(&link->watch, link->blocked ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    }
}

void link_flush(struct store *store)
{
    struct store_link *link = &store->link;
    bool open = link->state == LINK_READY || link->state == LINK_GREETING;

    link_put_gathered(link);
    if (open && !link->blocked && wire_waiting(&link->wire) > 0) {
        link_write(store);
    }
}

/* -- replies in */

static void link_take_reply(struct store *store, const redisReply *reply)
{
    struct store_call *call = call_list_take(&store->link.flight);

    if (call == NULL) {
        link_drop(store, "store-connecting", "it answers what was not asked");
    } else if (call->state == CALL_HANDSHAKE) {
        handshake_answer(store, container_of(call, struct handshake_call, call), reply);
    } else if (call->batch > 1) {
        store_answer_batch(store, call, reply);
    } else {
        store_answer(store, call, reply);
    }
}

/* A continuation may make calls, and sending one may show that the link is broken: no context then. */
static void link_take_replies(struct store *store, redisContext *context)
{
    while (store->link.context == context) {
        void *reply = NULL;

        if (redisGetReplyFromReader(context, &reply) != REDIS_OK) {
            link_drop(store, "store-connecting", "%s", context->reader->errstr);
            return;
        }
        if (reply == NULL) {
            return;
        }
        link_take_reply(store, reply);
        freeReplyObject(reply);
    }
}

/* A link that is left gets no other turn: all that has come is taken, which ends, since it takes no calls. */
void link_read(struct store *store)
{
    struct store_link *link = &store->link;
    redisContext *context = link->context;
    size_t got = READ_SIZE;

    for (unsigned i = 0; got == READ_SIZE && (i < READS_MAX || link->state == LINK_LEAVING); i++) {
        size_t before = context->reader->len;

        if (redisBufferRead(context) != REDIS_OK) {
            link_drop(store, "store-connecting", "%s", context->errstr);
            return;
        }
        got = context->reader->len - before;
        link_take_replies(store, context);
        if (link->context != context) {
            return;
        }
    }
    if (link->state == LINK_LEAVING) {
        link_end(store);
    }
}

static void link_io(struct loop_watch *watch, int events)
{
    struct store *store = container_of(watch, struct store, link.watch);
    struct store_link *link = &store->link;

    if (link->state == LINK_CONNECTING) {
        link_connected(store);
        return;
    }
    if (events & (LOOP_READ | LOOP_HANGUP)) {
        link_read(store);
    }
    if (events & LOOP_WRITE && link->context != NULL) {
        link_write(store);
    }
}
