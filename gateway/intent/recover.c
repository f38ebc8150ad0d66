/* recover.c - what this gateway owes the store at the beginning of each of its lives there.
 *
 *   takeover_tick    is this a life that we have not looked at?
 *   doubt_ask        doubt_look.lua: may the store have lost what is open here?
 *   again_ask        intent_again.lua: all that is open here, some at a time
 *   takeover_take    recovery_dead.c: those of the dead
 *   stray_ask        reconcile.c: what has ended here, and is open again in a store that was set back
 *   leave_ask        doubt_leave.lua: that was all */
#include "gateway/intent/recovery_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "shared/text/memory.h"

/* SWEEP_AGAIN_MS, QUIET_MS: a call that was sent may still arrive for 2 s (AHEAD_MS in
 * shared/member/scripts/lib/stripe.lua): an admission of the dead; intents told again by a call without an
 * answer, which must not come back when closed. */
enum { SWEEP_AGAIN_MS = 3000, QUIET_MS = 2500 };
_Static_assert(AGAIN_MAX < ARGS_MAX, "a batch fits");

static void doubt_ask(struct takeover *takeover);
static store_done_fn doubt_answer;
static void again_ask(struct takeover *takeover);
static store_done_fn again_answer;
static void stray_ask(struct takeover *takeover);
static void strays_ended(struct strays *strays, bool good);
static void leave_ask(struct takeover *takeover);
static store_done_fn leave_answer;
static void takeover_sweep(struct takeover *takeover);

bool takeover_allows(enum takeover_state from, enum takeover_state to)
{
    static const bool arrows[TAKEOVER_STATES][TAKEOVER_STATES] = {
        [TAKEOVER_IDLE] = {[TAKEOVER_AGAIN] = true, [TAKEOVER_TAKING] = true},
        [TAKEOVER_AGAIN] = {[TAKEOVER_TAKING] = true, [TAKEOVER_IDLE] = true},
        [TAKEOVER_TAKING] = {[TAKEOVER_LEAVING] = true, [TAKEOVER_CLOSING] = true, [TAKEOVER_IDLE] = true},
        [TAKEOVER_CLOSING] = {[TAKEOVER_LEAVING] = true, [TAKEOVER_IDLE] = true},
        [TAKEOVER_LEAVING] = {[TAKEOVER_IDLE] = true},
    };

    return arrows[from][to];
}

static void takeover_enter(struct takeover *takeover, enum takeover_state next)
{
    assert(takeover_allows(takeover->state, next));
    takeover->state = next;
    atomic_store(&takeover->own->gateway->intents.again, next == TAKEOVER_AGAIN || takeover->quiet_ms > 0);
}

struct takeover *takeover_new(struct gateway_worker *own)
{
    struct takeover *takeover = must_have(calloc(1, sizeof(*takeover)));
    const struct gateway *gateway = own->gateway;

    takeover->own = own;
    takeover->strays = (struct strays){.own = own, .ended = strays_ended};
    if (!incarnations_begin(&takeover->dead, record_daemon_state_dir(gateway->service),
                            gateway->incarnation)) {
        struct log_field fields[] = {LOG_T("why", bytes_of(strerror(errno))), LOG_END};

        log_event(&gateway->service->log, LOG_WARNING, "incarnations-not-written", fields);
    }
    return takeover;
}

void takeover_stop(struct takeover *takeover)
{
    takeover->stopped = true;
}

void takeover_free(struct takeover *takeover)
{
    free(takeover);
}

/* From the beginning, at the next tick. */
static void takeover_fail(struct takeover *takeover)
{
    if (takeover->state == TAKEOVER_AGAIN && !takeover->waits) {
        takeover->quiet_ms = loop_now_ms() + QUIET_MS;
    }
    if (takeover->state != TAKEOVER_IDLE) {
        takeover_enter(takeover, TAKEOVER_IDLE);
    }
    takeover->is_done = takeover->waits = false;
}

void takeover_tick(struct takeover *takeover)
{
    struct record_line *line = &takeover->own->record.line;
    int64_t epoch = life_epoch(line->life);

    if (takeover->in_flight || takeover->stopped || record_line_problem(line) != PROBLEM_NONE ||
        loop_now_ms() < takeover->quiet_ms) {
        return;
    }
    takeover->quiet_ms = 0;
    if (takeover->epoch != epoch || (takeover->state != TAKEOVER_IDLE && !takeover->waits)) {
        takeover_fail(takeover);
    }
    if (takeover->waits) {
        again_ask(takeover);
        return;
    }
    if (takeover->is_done) {
        if (takeover->again_ms != 0 && loop_now_ms() >= takeover->again_ms) {
            takeover_sweep(takeover);
        }
        return;
    }
    if (takeover->epoch != epoch) {
        snprintf(takeover->roll, sizeof(takeover->roll), "0");
    }
    takeover->epoch = epoch;
    takeover_enter(takeover, TAKEOVER_AGAIN);
    intents_again(&takeover->own->gateway->intents);
    doubt_ask(takeover);
}

void takeover_run(struct takeover *takeover, unsigned stripe, const struct store_script *script,
                  unsigned args, store_done_fn *done)
{
    takeover->call.store.done = done;
    takeover->in_flight = record_run(&takeover->own->record.line, &takeover->call, stripe, script, 1,
                                     1 + args, takeover->argv) == PROBLEM_NONE;
    if (!takeover->in_flight) {
        takeover_fail(takeover);
    }
}

void takeover_own(struct takeover *takeover, unsigned stripe)
{
    const struct gateway *gateway = takeover->own->gateway;

    takeover->argv[0] = keys_stripe(takeover->key, stripe);
    takeover->argv[1] = bytes_of(gateway->id);
    takeover->argv[2] = bytes_of(gateway->incarnation);
}

bool takeover_told(struct takeover *takeover, enum store_outcome outcome, const struct store_reply *reply,
                   const char *word)
{
    enum problem bad = record_problem(&takeover->call, outcome, reply);

    takeover->in_flight = false;
    if (takeover->stopped) {
        return false;
    }
    if (bad != PROBLEM_NONE || !store_reply_is(reply, word) || takeover->call.epoch != takeover->epoch) {
        takeover_fail(takeover);
        return false;
    }
    return true;
}

/* -- again */

/* Not without need: what an operator has resolved since would come back. */
static void doubt_ask(struct takeover *takeover)
{
    takeover_own(takeover, 0);
    takeover_run(takeover, 0, &script_doubt_look, 2, doubt_answer);
}

static enum step doubt_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct takeover *takeover = container_of(call, struct takeover, call.store);

    if (!takeover_told(takeover, outcome, reply, "doubt")) {
        return ANSWERED;
    }
    takeover->was_in_doubt = store_reply_integer(reply, 2) == 1;
    takeover->lost_unseen |= takeover->was_in_doubt && !takeover->has_taken;
    if (takeover->was_in_doubt) {
        again_ask(takeover);
    } else {
        takeover_sweep(takeover);
    }
    return ANSWERED;
}

static void again_ask(struct takeover *takeover)
{
    struct intents *intents = &takeover->own->gateway->intents;
    unsigned count;

    takeover->waits = atomic_load(&intents->closing) > 0;
    if (takeover->waits) {
        return;
    }
    count = intents_copy(intents, takeover->batch, AGAIN_MAX);
    if (count == 0) {
        takeover_sweep(takeover);
        return;
    }
    takeover->argv[0] = keys_stripe(takeover->key, takeover->batch[0].stripe);
    for (unsigned i = 0; i < count; i++) {
        takeover->argv[1 + i] = (struct bytes){takeover->batch[i].text, takeover->batch[i].len};
    }
    takeover_run(takeover, takeover->batch[0].stripe, &script_intent_again, count, again_answer);
}

static enum step again_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct takeover *takeover = container_of(call, struct takeover, call.store);

    if (takeover_told(takeover, outcome, reply, "recorded")) {
        again_ask(takeover);
    }
    return ANSWERED;
}

/* -- taking */

static void taken_log(const struct takeover *takeover)
{
    struct log_field fields[] = {LOG_I("intents", (int64_t)takeover->taken), LOG_END};

    if (takeover->taken > 0) {
        log_event(&takeover->own->gateway->service->log, LOG_WARNING, "intents-of-the-dead", fields);
    }
}

static void takeover_finish(struct takeover *takeover)
{
    taken_log(takeover);
    takeover->again_ms = takeover->is_done ? 0 : loop_now_ms() + SWEEP_AGAIN_MS;
    takeover->is_done = true;
    takeover_enter(takeover, TAKEOVER_IDLE);
}

static void takeover_sweep(struct takeover *takeover)
{
    takeover->again_ms = 0;
    takeover->stripe = takeover->taken = 0;
    takeover->from_len = 0;
    takeover_enter(takeover, TAKEOVER_TAKING);
    if (!takeover->dead.has_former) {
        takeover_taken(takeover);
        return;
    }
    takeover_take(takeover);
}

void takeover_taken(struct takeover *takeover)
{
    stray_ask(takeover);
}

/* -- leaving doubt */

static void stray_ask(struct takeover *takeover)
{
    if (!takeover->was_in_doubt) {
        leave_ask(takeover);
        return;
    }
    takeover_enter(takeover, TAKEOVER_CLOSING);
    takeover->in_flight = strays_begin(&takeover->strays);
    if (!takeover->in_flight) {
        takeover_fail(takeover);
    }
}

static void strays_ended(struct strays *strays, bool good)
{
    struct takeover *takeover = container_of(strays, struct takeover, strays);

    takeover->in_flight = false;
    if (takeover->stopped) {
        return;
    }
    if (good) {
        leave_ask(takeover);
    } else {
        takeover_fail(takeover);
    }
}

static void leave_ask(struct takeover *takeover)
{
    const struct route_table *table = atomic_load(&takeover->own->gateway->table);

    takeover_enter(takeover, TAKEOVER_LEAVING);
    takeover_own(takeover, 0);
    takeover->argv[3] = table != NULL ? bytes_of(table->hash) : BYTES("");
    snprintf(takeover->life, sizeof(takeover->life), "%lld", (long long)takeover->epoch);
    takeover->argv[4] = bytes_of(takeover->life);
    takeover->argv[5] = bytes_of(takeover->roll);
    takeover_run(takeover, 0, &script_doubt_leave, 5, leave_answer);
}

static enum step leave_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct takeover *takeover = container_of(call, struct takeover, call.store);

    if (takeover_told(takeover, outcome, reply, "left")) {
        takeover->lost_unseen = false;
        takeover_finish(takeover);
    }
    return ANSWERED;
}
