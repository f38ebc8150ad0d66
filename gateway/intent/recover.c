/* recover.c - what this gateway owes the store at the beginning of each of its lives there.
 *
 *   recovery_tick    is this an epoch that we have not looked at?
 *   unreported_ask   unreported_look.lua: may the store have lost what is open here?
 *   again_ask        intent_again.lua: all that is open here, some at a time
 *   recovery_take    recovery_dead.c: those of the dead
 *   stray_ask        reconcile.c: what has ended here, and is open again in a store that was set back
 *   leave_ask        unreported_leave.lua: that was all */
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

static void unreported_ask(struct recovery *recovery);
static store_done_fn unreported_answer;
static void again_ask(struct recovery *recovery);
static store_done_fn again_answer;
static void stray_ask(struct recovery *recovery);
static void reconcile_ended(struct reconcile *reconcile, bool good);
static void leave_ask(struct recovery *recovery);
static store_done_fn leave_answer;
static void recovery_sweep(struct recovery *recovery);

bool recovery_allows(enum recovery_state from, enum recovery_state to)
{
    static const bool arrows[RECOVERY_STATES][RECOVERY_STATES] = {
        [RECOVERY_IDLE] = {[RECOVERY_AGAIN] = true, [RECOVERY_TAKING] = true},
        [RECOVERY_AGAIN] = {[RECOVERY_TAKING] = true, [RECOVERY_IDLE] = true},
        [RECOVERY_TAKING] = {[RECOVERY_LEAVING] = true, [RECOVERY_CLOSING] = true, [RECOVERY_IDLE] = true},
        [RECOVERY_CLOSING] = {[RECOVERY_LEAVING] = true, [RECOVERY_IDLE] = true},
        [RECOVERY_LEAVING] = {[RECOVERY_IDLE] = true},
    };

    return arrows[from][to];
}

static void recovery_enter(struct recovery *recovery, enum recovery_state next)
{
    assert(recovery_allows(recovery->state, next));
    recovery->state = next;
    atomic_store(&recovery->own->gateway->intents.again, next == RECOVERY_AGAIN || recovery->quiet_ms > 0);
}

struct recovery *recovery_new(struct gateway_worker *own)
{
    struct recovery *recovery = must_have(calloc(1, sizeof(*recovery)));
    const struct gateway *gateway = own->gateway;

    recovery->own = own;
    recovery->reconcile = (struct reconcile){.own = own, .ended = reconcile_ended};
    if (!incarnations_begin(&recovery->dead, record_daemon_state_dir(gateway->service),
                            gateway->incarnation)) {
        struct log_field fields[] = {LOG_T("why", bytes_of(strerror(errno))), LOG_END};

        log_event(&gateway->service->log, LOG_WARNING, "incarnations-not-written", fields);
    }
    return recovery;
}

void recovery_stop(struct recovery *recovery)
{
    recovery->stopped = true;
}

void recovery_free(struct recovery *recovery)
{
    free(recovery);
}

/* From the beginning, at the next tick. */
static void recovery_fail(struct recovery *recovery)
{
    if (recovery->state == RECOVERY_AGAIN && !recovery->waits) {
        recovery->quiet_ms = loop_now_ms() + QUIET_MS;
    }
    if (recovery->state != RECOVERY_IDLE) {
        recovery_enter(recovery, RECOVERY_IDLE);
    }
    recovery->is_done = recovery->waits = false;
}

void recovery_tick(struct recovery *recovery)
{
    struct member_line *line = &recovery->own->record.line;
    int64_t epoch = epoch_number(line->store_epoch);

    if (recovery->in_flight || recovery->stopped || member_line_problem(line) != PROBLEM_NONE ||
        loop_now_ms() < recovery->quiet_ms) {
        return;
    }
    recovery->quiet_ms = 0;
    if (recovery->epoch != epoch || (recovery->state != RECOVERY_IDLE && !recovery->waits)) {
        recovery_fail(recovery);
    }
    if (recovery->waits) {
        again_ask(recovery);
        return;
    }
    if (recovery->is_done) {
        if (recovery->again_ms != 0 && loop_now_ms() >= recovery->again_ms) {
            recovery_sweep(recovery);
        }
        return;
    }
    if (recovery->epoch != epoch) {
        snprintf(recovery->roll, sizeof(recovery->roll), "0");
    }
    recovery->epoch = epoch;
    recovery_enter(recovery, RECOVERY_AGAIN);
    intents_again(&recovery->own->gateway->intents);
    unreported_ask(recovery);
}

void recovery_run(struct recovery *recovery, unsigned stripe, const struct store_script *script,
                  unsigned args, store_done_fn *done)
{
    recovery->call.store.done = done;
    recovery->in_flight = member_run(&recovery->own->record.line, &recovery->call, stripe, script, 1,
                                     1 + args, recovery->argv) == PROBLEM_NONE;
    if (!recovery->in_flight) {
        recovery_fail(recovery);
    }
}

void recovery_own(struct recovery *recovery, unsigned stripe)
{
    const struct gateway *gateway = recovery->own->gateway;

    recovery->argv[0] = keys_stripe(recovery->key, stripe);
    recovery->argv[1] = bytes_of(gateway->id);
    recovery->argv[2] = bytes_of(gateway->incarnation);
}

bool recovery_told(struct recovery *recovery, enum store_outcome outcome, const struct store_reply *reply,
                   const char *word)
{
    enum problem bad = member_problem(&recovery->call, outcome, reply);

    recovery->in_flight = false;
    if (recovery->stopped) {
        return false;
    }
    if (bad != PROBLEM_NONE || !store_reply_is(reply, word) || recovery->call.epoch != recovery->epoch) {
        recovery_fail(recovery);
        return false;
    }
    return true;
}

/* -- again */

/* Not without need: what an operator has resolved since would come back. */
static void unreported_ask(struct recovery *recovery)
{
    recovery_own(recovery, 0);
    recovery_run(recovery, 0, &script_unreported_look, 2, unreported_answer);
}

static enum step unreported_answer(struct store_call *call, enum store_outcome outcome,
                                   const struct store_reply *reply)
{
    struct recovery *recovery = container_of(call, struct recovery, call.store);

    if (!recovery_told(recovery, outcome, reply, "doubt")) {
        return ANSWERED;
    }
    recovery->was_in_doubt = store_reply_integer(reply, 2) == 1;
    recovery->lost_unseen |= recovery->was_in_doubt && !recovery->has_taken;
    if (recovery->was_in_doubt) {
        again_ask(recovery);
    } else {
        recovery_sweep(recovery);
    }
    return ANSWERED;
}

static void again_ask(struct recovery *recovery)
{
    struct intents *intents = &recovery->own->gateway->intents;
    unsigned count;

    recovery->waits = atomic_load(&intents->closing) > 0;
    if (recovery->waits) {
        return;
    }
    count = intents_copy(intents, recovery->batch, AGAIN_MAX);
    if (count == 0) {
        recovery_sweep(recovery);
        return;
    }
    recovery->argv[0] = keys_stripe(recovery->key, recovery->batch[0].stripe);
    for (unsigned i = 0; i < count; i++) {
        recovery->argv[1 + i] = (struct bytes){recovery->batch[i].text, recovery->batch[i].len};
    }
    recovery_run(recovery, recovery->batch[0].stripe, &script_intent_again, count, again_answer);
}

static enum step again_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct recovery *recovery = container_of(call, struct recovery, call.store);

    if (recovery_told(recovery, outcome, reply, "recorded")) {
        again_ask(recovery);
    }
    return ANSWERED;
}

/* -- taking */

static void taken_log(const struct recovery *recovery)
{
    struct log_field fields[] = {LOG_I("intents", (int64_t)recovery->taken), LOG_END};

    if (recovery->taken > 0) {
        log_event(&recovery->own->gateway->service->log, LOG_WARNING, "intents-of-the-dead", fields);
    }
}

static void recovery_finish(struct recovery *recovery)
{
    taken_log(recovery);
    recovery->again_ms = recovery->is_done ? 0 : loop_now_ms() + SWEEP_AGAIN_MS;
    recovery->is_done = true;
    recovery_enter(recovery, RECOVERY_IDLE);
}

static void recovery_sweep(struct recovery *recovery)
{
    recovery->again_ms = 0;
    recovery->stripe = recovery->taken = 0;
    recovery->from_len = 0;
    recovery_enter(recovery, RECOVERY_TAKING);
    if (!recovery->dead.has_former) {
        recovery_taken(recovery);
        return;
    }
    recovery_take(recovery);
}

void recovery_taken(struct recovery *recovery)
{
    stray_ask(recovery);
}

/* -- leaving doubt */

static void stray_ask(struct recovery *recovery)
{
    if (!recovery->was_in_doubt) {
        leave_ask(recovery);
        return;
    }
    recovery_enter(recovery, RECOVERY_CLOSING);
    recovery->in_flight = reconcile_begin(&recovery->reconcile);
    if (!recovery->in_flight) {
        recovery_fail(recovery);
    }
}

static void reconcile_ended(struct reconcile *reconcile, bool good)
{
    struct recovery *recovery = container_of(reconcile, struct recovery, reconcile);

    recovery->in_flight = false;
    if (recovery->stopped) {
        return;
    }
    if (good) {
        leave_ask(recovery);
    } else {
        recovery_fail(recovery);
    }
}

static void leave_ask(struct recovery *recovery)
{
    const struct route_table *table = atomic_load(&recovery->own->gateway->table);

    recovery_enter(recovery, RECOVERY_LEAVING);
    recovery_own(recovery, 0);
    recovery->argv[3] = table != NULL ? bytes_of(table->hash) : BYTES("");
    snprintf(recovery->store_epoch, sizeof(recovery->store_epoch), "%lld", (long long)recovery->epoch);
    recovery->argv[4] = bytes_of(recovery->store_epoch);
    recovery->argv[5] = bytes_of(recovery->roll);
    recovery_run(recovery, 0, &script_unreported_leave, 5, leave_answer);
}

static enum step leave_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct recovery *recovery = container_of(call, struct recovery, call.store);

    if (recovery_told(recovery, outcome, reply, "left")) {
        recovery->lost_unseen = false;
        recovery_finish(recovery);
    }
    return ANSWERED;
}
