/* redis.c - the calls of a store on one Redis: taken, ended, counted. */
#include <assert.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"
#include "shared/text/memory.h"

enum { LOOK_MS = 10 * 1000, LOOK_AGAIN_MS = 100, NETWORK_DOUBT_US = 1000, ALONE_MS = 10 * 1000 };

static void store_turn_end(struct loop_hook *hook);
static void store_look(struct loop_timer *timer);

/* -- lists */

void call_list_init(struct call_list *list)
{
    list->head = NULL;
    list->tail = &list->head;
}

void call_list_append(struct call_list *list, struct store_call *call)
{
    call->next = NULL;
    *list->tail = call;
    list->tail = &call->next;
}

struct store_call *call_list_take(struct call_list *list)
{
    struct store_call *call = list->head;

    if (call != NULL) {
        list->head = call->next;
        if (list->head == NULL) {
            list->tail = &list->head;
        }
    }
    return call;
}

/* -- open and close */

struct store *store_open(struct loop *loop, const struct store_options *options)
{
    struct store *store = must_have(calloc(1, sizeof(*store)));
    const char *bad = store_url_read(options->url, &store->url);

    assert(bad == NULL);
    (void)bad;
    store->loop = loop;
    store->timeout_ms = options->timeout_ms;
    store->allow_unsafe = options->allow_unsafe;
    store->library = options->library;
    store->sends_whole = options->sends_whole;
    store->owner = options->owner;
    store->password = dial_password(&store->url, options->password);
    call_list_init(&store->ended);
    loop_hook_add(loop, &store->turn_end, store_turn_end);
    loop_timer_init(loop, &store->look_timer, store_look);
    store_look_every(store, LOOK_MS);
    link_open(store);
    return store;
}

static void calls_deliver(struct store_call *first)
{
    for (struct store_call *call = first, *next; call != NULL; call = next) {
        next = call->next; /* done may free the call, or run it again */
        call->done(call, (enum store_outcome)call->state, NULL);
    }
}

void store_close(struct store *store)
{
    assert(!store->in_turn_end);
    loop_hook_remove(store->loop, &store->turn_end);
    loop_timer_done(&store->look_timer);
    link_close(store);
    while (store->ended.head != NULL) {
        struct store_call *first = store->ended.head;
        call_list_init(&store->ended);
        calls_deliver(first);
    }
    assert(store->counts.in_flight == 0);
    dial_forget_password(store->password);
    free(store);
}

/* -- calls */

static void store_count(struct store *store, const struct store_call *call, enum store_outcome outcome)
{
    if (outcome != STORE_NOT_SENT && store->owner != NULL) {
        store->owner->answered(store->owner, loop_now_us() - call->began_us);
    }
    store->counts.in_flight--;
    store->counts.done += outcome == STORE_DONE;
    store->counts.not_sent += outcome == STORE_NOT_SENT;
    store->counts.unknown += outcome == STORE_UNKNOWN;
}

static void store_call_begin(struct store *store, struct store_call *call, enum call_state state)
{
    call->refusal = NULL;
    call->began_us = loop_now_us();
    call->number = ++store->counts.calls;
    store->counts.in_flight++;
    if (store->link.state != LINK_READY) {
        store_end_later(store, call, STORE_NOT_SENT);
        return;
    }
    call->state = state;
    call->deadline_ms = loop_now_ms() + store->timeout_ms;
    if (!store->in_turn_end) {
        loop_again(store->loop); /* when a later hook makes this call, it shall not wait for the next turn */
    }
    link_send(store, call);
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
    store_call_begin(store, call, store->link.by_name ? CALL_BY_NAME : CALL_WHOLE);
}

void store_ask(struct store *store, struct store_call *call, unsigned count, const struct bytes *words)
{
    call->script = NULL;
    call->argv = words;
    call->key_count = 0;
    call->arg_count = count;
    store_call_begin(store, call, CALL_COMMAND);
}

void store_end_later(struct store *store, struct store_call *call, enum store_outcome outcome)
{
    store_count(store, call, outcome);
    call->state = (unsigned)outcome;
    call_list_append(&store->ended, call);
    /* Not in this very turn once the hook runs: a continuation that tries again must not hold the loop up. */
    if (store->in_turn_end) {
        loop_wait_at_most(store->loop, 0);
    } else {
        loop_again(store->loop);
    }
}

static bool share_a_key(const struct store_call *a, const struct store_call *b)
{
    for (unsigned i = 0; i < a->key_count; i++) {
        for (unsigned k = 0; k < b->key_count; k++) {
            if (a->argv[i].len == b->argv[k].len &&
                memcmp(a->argv[i].at, b->argv[k].at, a->argv[i].len) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a later call with a key of this one has left already: sent again, this one would be overtaken. */
static bool is_followed(const struct store *store, const struct store_call *call)
{
    for (const struct store_call *one = store->link.flight.head; one != NULL; one = one->next) {
        if (one->state != CALL_HANDSHAKE && one->number > call->number && share_a_key(one, call)) {
            return true;
        }
    }
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
    if (call->state != CALL_AGAIN) {
        handshake_load(store);
    }
    call->state = call->state != CALL_AGAIN ? CALL_AGAIN : CALL_WHOLE;
    return true;
}

/* It was batched and certainly did not run. */
static bool store_goes_alone(const struct store *store, struct store_call *call)
{
    if (store->link.state != LINK_READY || is_followed(store, call)) {
        return false;
    }
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
    if (store->link.state != LINK_READY || call->state == CALL_WHOLE || call->state == CALL_COMMAND) {
        return false;
    }
    if (reply_error_is_not_found(error)) {
        return store_finds_again(store, call);
    }
    /* It may have something to say that needs no write: that it was done before, or is refused. */
    if (call->state != CALL_READ_ONLY && call->script->head[0] == '\0' && reply_error_is_of_writes(error)) {
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

    if (reply_code_is_of_no_master(code)) {
        link_leave(store, code);
    }
    if (call->state == CALL_READ_ONLY || call->state == CALL_COMMAND) {
        return STORE_NOT_SENT;
    }
    if (call->state == CALL_BATCHED && reply_error_is_from_inside(error)) {
        return STORE_UNKNOWN; /* whatever it says: others may have written before */
    }
    if (!store_may_go_alone(call, error)) { /* else it is not this call that was refused */
        call->refusal = reply_refusal(code);
    }
    return reply_error_outcome(error);
}

static void store_end(struct store *store, struct store_call *call, enum store_outcome outcome,
                      const struct redisReply *reply)
{
    store_count(store, call, outcome);
    call->done(call, outcome, outcome == STORE_DONE ? reply_of(reply) : NULL);
}

static void store_send_again(struct store *store, struct store_call *call)
{
    if (store->link.context != NULL) {
        link_send(store, call);
    } else {
        store_end_later(store, call, STORE_NOT_SENT);
    }
}

void store_answer(struct store *store, struct store_call *call, const struct redisReply *reply)
{
    enum store_outcome outcome = STORE_DONE;

    if (reply->type == REDIS_REPLY_ERROR) {
        struct bytes error = {reply->str, reply->len};

        if (store_tries_again(store, call, error)) {
            store_send_again(store, call);
            return;
        }
        outcome = store_refused(store, call, error);
    } else {
        call->refusal = NULL;
    }
    store_end(store, call, outcome, reply);
}

/* One of a batch that has run. An error in it says nothing of what it has written, whatever its words are:
 * what Redis refuses before the start it refuses as a whole. */
static void store_answer_part(struct store *store, struct store_call *call, const struct redisReply *part)
{
    bool has_failed = part == NULL || part->type == REDIS_REPLY_ERROR;

    if (has_failed || !store_reply_is(reply_of(part), "again")) {
        store_end(store, call, has_failed ? STORE_UNKNOWN : STORE_DONE, part);
    } else if (store_goes_alone(store, call)) {
        store_send_again(store, call);
    } else {
        store_end(store, call, STORE_NOT_SENT, NULL);
    }
}

/* All are out of the flight list before the first ends: what its continuation does may end the link. */
void store_answer_batch(struct store *store, struct store_call *first, const struct redisReply *reply)
{
    bool is_refused = reply->type == REDIS_REPLY_ERROR;
    struct call_list calls;
    unsigned count = first->batch;

    call_list_init(&calls);
    call_list_append(&calls, first);
    while (--count > 0) {
        call_list_append(&calls, call_list_take(&store->link.flight));
    }
    if (is_refused && reply_error_is_of_writes((struct bytes){reply->str, reply->len})) {
        store->link.alone_ms = loop_now_ms() + store->timeout_ms + ALONE_MS;
    }
    for (size_t i = 0; calls.head != NULL; i++) {
        struct store_call *call = call_list_take(&calls);

        if (is_refused) {
            store_answer(store, call, reply);
        } else {
            store_answer_part(store, call, i < reply->elements ? reply->element[i] : NULL);
        }
    }
}

/* What ended goes first: what its continuations make leaves in the same write. */
static void store_turn_end(struct loop_hook *hook)
{
    struct store *store = container_of(hook, struct store, turn_end);
    struct store_call *first = store->ended.head;

    store->in_turn_end = true;
    call_list_init(&store->ended);
    calls_deliver(first);
    link_flush(store);
    store->in_turn_end = false;
}

/* -- what others may know */

void store_ready(struct store *store)
{
    store->counts.reconnects += store->link.number > 0;
    store->link.number++;
    store->safety.checked = store->safety.checked || store->allow_unsafe;
}

static void store_look(struct loop_timer *timer)
{
    struct store *store = container_of(timer, struct store, look_timer);

    if (store->link.state == LINK_READY && !store->allow_unsafe) {
        handshake_look(store);
    }
    if (store->link.state == LINK_READY && !store->link.by_name && !store->sends_whole) {
        handshake_load(store); /* there may be room, or the right, by now */
    }
}

/* A rewrite is over soon: it is not worth ten seconds. */
void store_looked(struct store *store)
{
    if (store->safety.passing) {
        loop_timer_arm(&store->look_timer, LOOK_AGAIN_MS, store->look_period_ms);
    }
}

bool store_unsafe_may_pass(const struct store *store)
{
    return store->safety.unsafe && store->safety.passing;
}

void store_look_every(struct store *store, unsigned period_ms)
{
    store->look_period_ms = period_ms;
    loop_timer_arm(&store->look_timer, period_ms, period_ms);
}

bool store_link_stands(const struct store *store)
{
    return store->link.state == LINK_READY;
}

uint64_t store_link_since_us(const struct store *store)
{
    return store->link.ready_us;
}

/* The least of five minutes (tcp_min_rtt_wlen; the looks at the settings are among them). A peer that is busy
 * may have acknowledged late all that time: the doubt is of that. */
uint64_t store_network_us(const struct store *store)
{
    struct tcp_info info = {.tcpi_min_rtt = 0};
    socklen_t len = sizeof(info);

    if (!store_link_stands(store) ||
        getsockopt(store->link.context->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        info.tcpi_min_rtt == UINT32_MAX || info.tcpi_min_rtt <= NETWORK_DOUBT_US) {
        return 0;
    }
    return info.tcpi_min_rtt - NETWORK_DOUBT_US;
}

uint64_t store_link_number(const struct store *store)
{
    return store->link.number;
}

const char *store_run_id(const struct store *store)
{
    return store_link_stands(store) ? store->link.run_id : "";
}

const char *store_not_ready(const struct store *store, const char **detail)
{
    if (store->link.state != LINK_READY) {
        *detail = store->link.detail;
        return store->link.check;
    }
    if (store_unsafe(store) != NULL) {
        *detail = store_unsafe(store);
        return "store-unsafe";
    }
    *detail = "Redis takes calls.";
    return NULL;
}

const char *store_misled(const struct store *store)
{
    return store->link.state != LINK_READY ? misled_remedy(store->link.check) : NULL;
}

const char *store_unsafe(const struct store *store)
{
    return store->safety.unsafe ? store->safety.verdict : NULL;
}

const char *store_advice(const struct store *store)
{
    return store->safety.advice;
}

const char *store_not_loaded(const struct store *store)
{
    const struct store_link *link = &store->link;

    return link->state == LINK_READY && !link->by_name && !store->sends_whole ? link->not_loaded : NULL;
}

bool store_checked(const struct store *store)
{
    return store->safety.checked;
}

struct store_counts store_counts(const struct store *store)
{
    return store->counts;
}
