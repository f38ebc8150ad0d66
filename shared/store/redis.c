/* redis.c - a call on the one Redis: taken, put on the wire with others, answered, ended.
 *
 *   store_run             taken, if the link stands; what is heavy waits while much of it is in flight
 *   link_send             gathered with others of the turn, or put on the wire
 *   link_flush            at the end of the turn, or when enough is there: written
 *   link_read             replies, in the order of the calls
 *   store_answer          ended, or sent once more
 *   store_turn_end        done is called of what has ended without a reply */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

enum {
    ALONE_MS = 10 * 1000,
    FLUSH_COMMANDS = 16, /* Redis works on them while the turn goes on making more */
    /* Others wait for what one script does: of 32 that hand a lease on none is past BATCH_WORK
     * (shared/member/scripts/lib/batch.lua). */
    BATCH_MAX = 32,
    FLUSH_BYTES = 256 * 1024,
    HEAVY_MOST = 64,
    HEAVY_BYTES = 64 * 1024,
    SOON_PART = 8, /* more than this part of the timeout is not soon */
    READS_MAX = 16 /* of one event: others want their turn too */
};

static const struct store_refusal overloaded = {"", "overloaded", "Too much is asked of Redis at once", NULL,
                                                STORE_REFUSED_BEFORE_START};

static const struct store_refusal script_ended = {
    "", "store-refused",
    "Redis ended a script with an error: its user may not give one of the commands in it (ACL LOG names it), "
    "or somebody has made something else of a key of Pawl's",
    "Give the user the rights that deploy/redis.acl lists.", STORE_REFUSED_BEFORE_START};

/* -- lists */

struct store_call *call_list_take(struct call_list *list)
{
    struct store_call *call = STAILQ_FIRST(list);

    if (call != NULL)
        STAILQ_REMOVE_HEAD(list, next);
    return call;
}

/* -- a call is taken, and ends */

/* What reads, perhaps much, or carries much. */
static bool is_heavy(const struct store_call *call)
{
    size_t size = 0;

    for (unsigned i = 0; i < call->arg_count; i++)
        size += call->argv[i].len;
    return call->script != NULL && (call->script->reads || size >= HEAVY_BYTES);
}

/* One more at once while Redis answers soon, else half as many: what takes it long, of however many services,
 * does not pile up in front of what keeps and gives back. A few in any case: it may be its disk that is slow,
 * for which all answers of a turn wait together. */
static void heavy_ended(struct store *store, uint64_t took_us)
{
    struct store_link *link = &store->link;
    bool soon = took_us <= store_network_us(store) + (uint64_t)store->timeout_ms * 1000 / SOON_PART;

    link->heavy--;
    if (!soon)
        link->heavy_may = link->heavy_may > 2 * HEAVY_LEAST ? link->heavy_may / 2 : HEAVY_LEAST;
    else if (link->heavy_may < HEAVY_MOST)
        link->heavy_may++;
}

static void store_count(struct store *store, const struct store_call *call, enum store_outcome outcome)
{
    if (call->is_heavy && call->state != CALL_NOT_YET)
        heavy_ended(store, loop_now_us() - call->began_us);
    if (outcome != STORE_NOT_SENT && store->owner != NULL)
        store->owner->answered(store->owner, loop_now_us() - call->began_us);
    store->counts.in_flight--;
    store->counts.done += outcome == STORE_DONE;
    store->counts.not_sent += outcome == STORE_NOT_SENT;
    store->counts.unknown += outcome == STORE_UNKNOWN;
}

static void store_call_take(struct store *store, struct store_call *call)
{
    if (store->link.state != LINK_READY || keep_refuses(store, call)) {
        store_end_later(store, call, STORE_NOT_SENT);
        return;
    }
    call->state = call->script == NULL ? CALL_COMMAND : store->link.by_name ? CALL_BY_NAME : CALL_WHOLE;
    call->began_us = loop_now_us();
    call->deadline_ms = loop_now_ms() + store->timeout_ms;
    store->link.heavy += call->is_heavy;
    if (!store->in_turn_end)
        loop_again(store->loop); /* when a later hook makes this call, it shall not wait for the next turn */
    link_send(store, call);
}

static bool share_a_key(const struct store_call *a, const struct store_call *b)
{
    for (unsigned i = 0; i < a->key_count; i++) {
        for (unsigned k = 0; k < b->key_count; k++)
            if (a->argv[i].len == b->argv[k].len && memcmp(a->argv[i].at, b->argv[k].at, a->argv[i].len) == 0)
                return true;
    }
    return false;
}

/* Behind a write that waits nothing with a key of it goes first. */
static bool must_wait(const struct store_link *link, const struct store_call *call)
{
    if (call->is_heavy && link->heavy >= link->heavy_may)
        return true;
    for (const struct store_call *one = STAILQ_FIRST(&link->not_yet); one != NULL;
         one = STAILQ_NEXT(one, next))
        if (share_a_key(one, call))
            return true;
    return false;
}

static void store_call_begin(struct store *store, struct store_call *call)
{
    call->refusal = NULL;
    call->began_us = loop_now_us();
    call->number = ++store->counts.calls;
    call->state = CALL_NOT_YET;
    store->counts.in_flight++;
    call->is_heavy = is_heavy(call);
    if (must_wait(&store->link, call)) {
        call->deadline_ms = loop_now_ms() + store->timeout_ms / 2;
        STAILQ_INSERT_TAIL(call->script->reads ? &store->link.reads_not_yet : &store->link.not_yet, call,
                           next);
    } else {
        store_call_take(store, call);
    }
}

/* Those that may go by now, and those that have waited too long. While one waits, others are in flight:
 * the end of each, or of the link, leads here. */
static void store_take_waiting(struct store *store, struct call_list *list)
{
    struct store_link *link = &store->link;
    struct store_call *call;

    while ((call = STAILQ_FIRST(list)) != NULL) {
        bool is_late = call->deadline_ms <= loop_now_ms();

        if (!is_late && call->is_heavy && link->heavy >= link->heavy_may)
            return;
        call_list_take(list);
        if (!is_late) {
            store_call_take(store, call);
        } else {
            call->refusal = call->script->reads ? &overloaded : NULL;
            store_end_later(store, call, STORE_NOT_SENT);
        }
    }
}

bool store_call_was_overload(const struct store_call *call)
{
    return call->refusal == &overloaded;
}

void store_run(struct store *store, struct store_call *call, const struct store_script *script,
               unsigned key_count, unsigned arg_count, const struct bytes *argv)
{
    assert(key_count <= arg_count && arg_count <= STORE_ARGS_MAX);
    assert(script->library == store->library);
    call->script = script;
    call->argv = argv;
    call->key_count = key_count;
    call->arg_count = arg_count;
    store_call_begin(store, call);
}

void store_ask(struct store *store, struct store_call *call, unsigned count, const struct bytes *words)
{
    call->script = NULL;
    call->argv = words;
    call->key_count = 0;
    call->arg_count = count;
    store_call_begin(store, call);
}

void store_end_later(struct store *store, struct store_call *call, enum store_outcome outcome)
{
    store_count(store, call, outcome);
    call->state = (unsigned)outcome;
    STAILQ_INSERT_TAIL(&store->ended, call, next);
    /* Not in this very turn once the hook runs: a continuation that tries again must not hold the loop up. */
    if (store->in_turn_end)
        loop_wait_at_most(store->loop, 0);
    else
        loop_again(store->loop);
}

/* Whether a later call with a key of this one has left already: sent again, this one would be overtaken. */
static bool is_followed(const struct store *store, const struct store_call *call)
{
    for (const struct store_call *one = STAILQ_FIRST(&store->link.flight); one != NULL;
         one = STAILQ_NEXT(one, next))
        if (one->state != CALL_HANDSHAKE && one->number > call->number && share_a_key(one, call))
            return true;
    return false;
}

/* Redis does not have the function (FUNCTION FLUSH, another data set): it certainly did not run. Behind the
 * library, and once more; when that could not be loaded, whole. */
static bool store_finds_again(struct store *store, struct store_call *call)
{
    store->counts.not_found++;
    if (call->state == CALL_READ_ONLY || is_followed(store, call)) {
        handshake_load(store);
        return false;
    }
    if (call->state != CALL_AGAIN)
        handshake_load(store);
    call->state = call->state != CALL_AGAIN ? CALL_AGAIN : CALL_WHOLE;
    return true;
}

/* It was batched and certainly did not run. */
static bool store_goes_alone(const struct store *store, struct store_call *call)
{
    if (store->link.state != LINK_READY || is_followed(store, call))
        return false;
    call->state = CALL_ALONE;
    return true;
}

/* Redis refuses a batch as what may not run when it is full; this one may. */
static bool store_may_go_alone(const struct store_call *call, struct bytes error)
{
    return call->state == CALL_BATCHED && call->script->head[0] != '\0' && reply_error_is_of_writes(error);
}

/* What a refused call is to be sent as: false: it has ended. */
static bool store_tries_again(struct store *store, struct store_call *call, struct bytes error)
{
    if (store->link.state != LINK_READY || call->state == CALL_WHOLE || call->state == CALL_COMMAND)
        return false;
    if (reply_error_is_not_found(error))
        return store_finds_again(store, call);
    /* It may have something to say that needs no write: that it was done before, or is refused. */
    if (call->state != CALL_READ_ONLY && call->script->twice && reply_error_is_of_writes(error)) {
        call->refusal = reply_refusal(reply_error_code(error));
        call->state = CALL_READ_ONLY;
        return true;
    }
    return store_may_go_alone(call, error) && store_goes_alone(store, call);
}

/* Of one that may not write no error leaves anything open, and it failed for what refused the first one. */
static enum store_outcome store_refused(struct store *store, struct store_call *call, struct bytes error)
{
    struct bytes code = reply_error_code(error);
    enum store_outcome outcome = reply_error_outcome(error);

    if (reply_code_is_of_no_master(code))
        link_leave(store, code);
    if (call->state == CALL_COMMAND)
        call->refusal = reply_refusal(code);
    if (call->state == CALL_READ_ONLY || call->state == CALL_COMMAND)
        return STORE_NOT_SENT;
    if (call->state == CALL_BATCHED && reply_error_is_from_inside(error))
        return STORE_UNKNOWN;             /* whatever it says: others may have written before */
    if (!store_may_go_alone(call, error)) /* else it is not this call that was refused */
        call->refusal = outcome == STORE_UNKNOWN ? &script_ended : reply_refusal(code);
    return outcome;
}

void store_tell(struct store *store, struct store_call *call, enum store_outcome outcome,
                const struct redisReply *reply)
{
    store_count(store, call, outcome);
    call->done(call, outcome, outcome == STORE_DONE ? reply_of(reply) : NULL);
}

static void store_end(struct store *store, struct store_call *call, enum store_outcome outcome,
                      struct redisReply *reply)
{
    if (outcome == STORE_DONE && keep_waits(store, call))
        keep_hold(store, call, reply);
    else
        store_tell(store, call, outcome, reply);
}

static void store_send_again(struct store *store, struct store_call *call)
{
    if (store->dial.context != NULL)
        link_send(store, call);
    else
        store_end_later(store, call, STORE_NOT_SENT);
}

static void store_answer(struct store *store, struct store_call *call, struct redisReply *reply)
{
    enum store_outcome outcome = STORE_DONE;

    if (reply->type == REDIS_REPLY_ERROR) {
        struct bytes error = {reply->str, reply->len};

        if (store_tries_again(store, call, error)) {
            store_send_again(store, call);
            return;
        }
        outcome = store_refused(store, call, error);
    } else if (call->state != CALL_READ_ONLY) {
        call->refusal = NULL;
    }
    store_end(store, call, outcome, reply);
}

/* One of a batch that has run. An error in it says nothing of what it has written, whatever its words are:
 * what Redis refuses before the start it refuses as a whole. */
static void store_answer_part(struct store *store, struct store_call *call, struct redisReply *part)
{
    bool has_failed = part == NULL || part->type == REDIS_REPLY_ERROR;

    if (has_failed || !store_reply_is(reply_of(part), "again"))
        store_end(store, call, has_failed ? STORE_UNKNOWN : STORE_DONE, part);
    else if (store_goes_alone(store, call))
        store_send_again(store, call);
    else
        store_end(store, call, STORE_NOT_SENT, NULL);
}

/* All are out of the flight list before the first ends: what its continuation does may end the link. */
static void store_answer_batch(struct store *store, struct store_call *first, struct redisReply *reply)
{
    bool is_refused = reply->type == REDIS_REPLY_ERROR;
    struct call_list calls;
    unsigned count = first->batch;

    STAILQ_INIT(&calls);
    STAILQ_INSERT_TAIL(&calls, first, next);
    while (--count > 0) {
        struct store_call *call = call_list_take(&store->link.flight);

        STAILQ_INSERT_TAIL(&calls, call, next);
    }
    if (is_refused && reply_error_is_of_writes((struct bytes){reply->str, reply->len}))
        store->link.alone_ms = loop_now_ms() + store->timeout_ms + ALONE_MS;
    for (size_t i = 0; !STAILQ_EMPTY(&calls); i++) {
        struct store_call *call = call_list_take(&calls);

        if (is_refused)
            store_answer(store, call, reply);
        else
            store_answer_part(store, call, i < reply->elements ? reply->element[i] : NULL);
    }
}

/* -- commands out
 *
 * Calls that may be batched are gathered, at the end of the line of those in flight, until the turn ends,
 * FLUSH_COMMANDS are there (BATCH_MAX while Redis is at work), or another command comes: then they go on the
 * wire, in front of it, one as it is, more as one FCALL. So nothing overtakes anything. The first of a batch
 * knows how many answer with it. */

/* What is gathered goes on the wire, in its place in front of all that is put there later. */
static void link_put_gathered(struct store *store)
{
    struct store_link *link = &store->link;
    struct store_call *call = link->gathered;
    unsigned count = link->gathered_count;

    link->gathered = NULL;
    link->gathered_count = 0;
    link->gathered_bytes = 0;
    if (count == 1) {
        wire_put_fcall(&store->dial.wire, call);
    } else if (count > 1) {
        wire_put_batch(&store->dial.wire, call, count);
        call->batch = count;
        for (unsigned i = 0; i < count; i++, call = STAILQ_NEXT(call, next))
            call->state = CALL_BATCHED;
    }
}

static bool link_may_gather(const struct store *store, const struct store_call *call)
{
    return call->state == CALL_BY_NAME && call->script->batch && call->script->library->batch != NULL &&
           call->deadline_ms >= store->link.alone_ms;
}

/* All that are gathered begin where their batch will: nothing else goes on the wire before it. */
static void link_gather(struct store *store, struct store_call *call)
{
    struct store_link *link = &store->link;

    if (link->gathered_count == BATCH_MAX) {
        link_put_gathered(store);
        call->place = wire_position(&store->dial.wire);
    }
    link->gathered = link->gathered_count == 0 ? call : link->gathered;
    link->gathered_count++;
    link->gathered_bytes += wire_batch_size(call);
}

static void link_put(struct store *store, struct store_call *call)
{
    struct store_wire *wire = &store->dial.wire;

    link_put_gathered(store);
    call->place = wire_position(wire);
    switch ((enum call_state)call->state) {
    case CALL_BY_NAME:
    case CALL_BATCHED:
    case CALL_ALONE:
    case CALL_AGAIN:
    case CALL_READ_ONLY: wire_put_fcall(wire, call); break;
    case CALL_WHOLE: wire_put_eval(wire, call); break;
    case CALL_COMMAND: wire_put_command(wire, call->argv, call->arg_count); break;
    case CALL_NOT_YET:
    case CALL_OFFSET: break; /* keep_ask() puts it */
    case CALL_HANDSHAKE: handshake_put(store, container_of(call, struct handshake_call, call)); break;
    }
}

/* A Redis that has nothing to do begins at once; one that is at work gets whole batches, which cost it less.
 */
static unsigned link_flush_at(const struct store *store)
{
    return store->counts.in_flight > store->link.unflushed ? BATCH_MAX : FLUSH_COMMANDS;
}

static void link_write(struct store *store)
{
    enum wire_end end = dial_write(&store->dial);
    bool closed = end == WIRE_BROKEN && (errno == EPIPE || errno == ECONNRESET);

    store->link.unflushed = 0;
    if (end == WIRE_BROKEN && !closed) {
        link_drop(store, "store-connecting", "%s", strerror(errno));
    } else if (closed) {
        /* Redis may have answered before it closed: reading on shows that, and then the end. */
        store->dial.blocked = true;
        loop_watch_set(&store->dial.watch, LOOP_READ);
    }
}

static void link_flush(struct store *store)
{
    struct store_link *link = &store->link;
    bool open = link->state == LINK_READY || link->state == LINK_GREETING;

    link_put_gathered(store);
    keep_ask(store);
    if (open && !store->dial.blocked && wire_waiting(&store->dial.wire) > 0)
        link_write(store);
}

void link_send(struct store *store, struct store_call *call)
{
    struct store_link *link = &store->link;

    assert(link->state == LINK_READY || link->state == LINK_GREETING);
    call->batch = 1;
    call->place = wire_position(&store->dial.wire);
    if (link_may_gather(store, call))
        link_gather(store, call);
    else
        link_put(store, call);
    STAILQ_INSERT_TAIL(&link->flight, call, next);
    link->unflushed++;
    if (link->state != LINK_READY)
        return; /* the greeting leaves at the end of the turn */
    if (keep_waits(store, call))
        store->keep->unasked = true;
    if (!link->timer_armed)
        link_arm(link, store->timeout_ms);
    if (!store->dial.blocked && (link->unflushed >= link_flush_at(store) ||
                                 wire_waiting(&store->dial.wire) + link->gathered_bytes >= FLUSH_BYTES))
        link_flush(store);
}

/* -- replies in */

static void link_take_reply(struct store *store, redisReply *reply)
{
    struct store_call *call = call_list_take(&store->link.flight);

    if (call == NULL)
        link_drop(store, "store-connecting", "it answers what was not asked");
    else if (call->state == CALL_HANDSHAKE)
        handshake_answer(store, container_of(call, struct handshake_call, call), reply);
    else if (call->state == CALL_OFFSET)
        keep_name(store, call, reply);
    else if (call->batch > 1)
        store_answer_batch(store, call, reply);
    else
        store_answer(store, call, reply);
}

/* A continuation may make calls, and sending one may show that the link is broken: no context then. */
static void link_take_replies(struct store *store, redisContext *context)
{
    while (store->dial.context == context) {
        void *reply = NULL;

        if (redisGetReplyFromReader(context, &reply) != REDIS_OK) {
            link_drop(store, "store-connecting", "%s", context->reader->errstr);
            return;
        }
        if (reply == NULL)
            return;
        link_take_reply(store, reply);
        freeReplyObject(reply);
    }
}

/* A link that is left gets no other turn: all that has come is taken, which ends, since it takes no calls. */
void link_read(struct store *store)
{
    struct store_link *link = &store->link;
    redisContext *context = store->dial.context;
    size_t got = DIAL_READ_SIZE;

    for (unsigned i = 0; got >= DIAL_READ_SIZE && (i < READS_MAX || link->state == LINK_LEAVING); i++) {
        size_t before = context->reader->len;

        if (dial_read(&store->dial) != REDIS_OK) {
            link_drop(store, "store-connecting", "%s", context->errstr);
            return;
        }
        got = context->reader->len - before;
        link_take_replies(store, context);
        if (store->dial.context != context)
            return;
    }
    if (link->state == LINK_LEAVING)
        link_end(store);
}

void link_io(struct loop_watch *watch, int events)
{
    struct store *store = container_of(watch, struct store, dial.watch);
    struct store_link *link = &store->link;

    if (link->state == LINK_CONNECTING) {
        link_connected(store);
        return;
    }
    if (events & (LOOP_READ | LOOP_HANGUP))
        link_read(store);
    if (events & LOOP_WRITE && store->dial.context != NULL)
        link_write(store);
}

/* -- the end of the turn */

void store_deliver(struct store *store)
{
    struct store_call *first = STAILQ_FIRST(&store->ended);

    STAILQ_INIT(&store->ended);
    for (struct store_call *call = first, *next; call != NULL; call = next) {
        next = STAILQ_NEXT(call, next); /* done may free the call, or run it again */
        call->done(call, (enum store_outcome)call->state, NULL);
    }
}

/* What ended goes first: what its continuations make leaves in the same write. */
void store_turn_end(struct loop_hook *hook)
{
    struct store *store = container_of(hook, struct store, turn_end);

    store->in_turn_end = true;
    link_follow(store);
    store_take_waiting(store, &store->link.not_yet);
    store_take_waiting(store, &store->link.reads_not_yet);
    store_deliver(store);
    link_flush(store);
    store->in_turn_end = false;
}
