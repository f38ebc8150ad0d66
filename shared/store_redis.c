/* store_redis.c - the calls of a store on one Redis: taken, ended, counted. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store_redis_internal.h"

enum { LOOK_MS = 10 * 1000, LOOK_AGAIN_MS = 100 };

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

/* -- the store's life */

static void *must_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    return memory;
}

static void store_take_scripts(struct store *store, const struct store_script *const *scripts)
{
    store->scripts = scripts;
    while (scripts[store->script_count] != NULL) {
        assert(scripts[store->script_count]->index == store->script_count);
        store->script_count++;
    }
}

struct store *store_open(struct loop *loop, const struct store_options *options)
{
    struct store *store = must_have(calloc(1, sizeof(*store)));
    const char *bad = store_url_read(options->url, &store->url);

    assert(bad == NULL);
    (void)bad;
    store->loop = loop;
    store->timeout_ms = options->timeout_ms;
    store->allow_unsafe = options->allow_unsafe;
    store_take_scripts(store, options->scripts);
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
    house_free(store);
    dial_forget_password(store->password);
    free(store);
}

/* -- calls */

static void store_count(struct store *store, enum store_outcome outcome)
{
    store->counts.in_flight--;
    store->counts.done += outcome == STORE_DONE;
    store->counts.not_sent += outcome == STORE_NOT_SENT;
    store->counts.unknown += outcome == STORE_UNKNOWN;
}

void store_run(struct store *store, struct store_call *call, const struct store_script *script,
               unsigned key_count, unsigned arg_count, const struct bytes *argv)
{
    assert(key_count <= arg_count && arg_count <= STORE_ARGS_MAX);
    assert(script->index < store->script_count && store->scripts[script->index] == script);
    call->script = script;
    call->argv = argv;
    call->key_count = key_count;
    call->arg_count = arg_count;
    call->refusal = NULL;
    store->counts.calls++;
    store->counts.in_flight++;
    if (store->link.state != LINK_READY) {
        store_end_later(store, call, STORE_NOT_SENT);
        return;
    }
    call->state = CALL_BY_SHA;
    call->deadline_ms = loop_now_ms() + store->timeout_ms;
    if (!store->in_turn_end) {
        loop_again(store->loop); /* when a later hook makes this call, it shall not wait for the next turn */
    }
    link_send(store, call);
}

void store_end_later(struct store *store, struct store_call *call, enum store_outcome outcome)
{
    store_count(store, outcome);
    call->state = (unsigned)outcome;
    call_list_append(&store->ended, call);
    /* Not in this very turn once the hook runs: a continuation that tries again must not hold the loop up. */
    if (store->in_turn_end) {
        loop_wait_at_most(store->loop, 0);
    } else {
        loop_again(store->loop);
    }
}

/* Redis has forgotten the script (SCRIPT FLUSH, a restart behind a proxy): it certainly did not run. */
static void store_send_whole(struct store *store, struct store_call *call)
{
    store->counts.noscripts++;
    call->state = CALL_WHOLE;
    link_send(store, call);
    if (store->link.state == LINK_READY) {
        house_load(store);
    }
}

void store_answer(struct store *store, struct store_call *call, const struct redisReply *reply)
{
    enum store_outcome outcome = STORE_DONE;

    if (reply->type == REDIS_REPLY_ERROR) {
        struct bytes error = {reply->str, reply->len};
        struct bytes code = reply_error_code(error);
        bool again = call->state == CALL_BY_SHA && store->link.state == LINK_READY;

        if (again && bytes_are(code, "NOSCRIPT")) {
            store_send_whole(store, call);
            return;
        }
        if (reply_code_is_of_no_master(code)) {
            link_leave(store, code);
        }
        outcome = reply_error_outcome(error);
        call->refusal = reply_refusal(code);
    }
    store_count(store, outcome);
    call->done(call, outcome, outcome == STORE_DONE ? reply_of(reply) : NULL);
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
        house_look(store);
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

bool store_checked(const struct store *store)
{
    return store->safety.checked;
}

struct store_counts store_counts(const struct store *store)
{
    return store->counts;
}
