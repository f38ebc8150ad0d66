/* io.c - the link's two directions: commands out, replies in.
 *
 * Calls that may be batched are gathered, at the end of the line of those in flight, until the turn ends,
 * FLUSH_COMMANDS are there (BATCH_MAX while Redis is at work), or another command comes: then they go on the
 * wire, in front of it, one as it is, more as one FCALL. So nothing overtakes anything. The first of a batch
 * knows how many answer with it. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

enum {
    FLUSH_COMMANDS = 16, /* Redis works on them while the turn goes on making more */
    /* Others wait for what one script does: of 32 that hand a lease on none is past BATCH_WORK
     * (shared/member/scripts/lib/batch.lua). */
    BATCH_MAX = 32,
    FLUSH_BYTES = 256 * 1024,
    READS_MAX = 16,       /* of one event: others want their turn too */
    READ_SIZE = 16 * 1024 /* of redisBufferRead() (hiredis.c of 0.14.1 and 1.2.0) */
};

/* -- out */

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
        /* Redis may have answered before it closed: reading on tells that, and then the end. */
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

/* -- in */

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

void link_io(struct loop_watch *watch, int events)
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
