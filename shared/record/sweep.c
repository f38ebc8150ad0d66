/* sweep.c - walks over the stripes for ever and runs one bounded script on each.
 *
 *   sweep_tick    so often that a round takes round_ms: the next stripe, if the last step has ended
 *   sweep_ask     run the script                                    suspended
 *   sweep_answer  full step: the same stripe again; else the next at the next tick */
#include "shared/record/sweep.h"

#include <stdio.h>

static void sweep_tick(struct loop_timer *timer);
static void sweep_ask(struct sweep *sweep);
static enum step sweep_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply);

void sweep_start(struct sweep *sweep, struct loop *loop, uint64_t remember_ms)
{
    unsigned step_ms = (sweep->round_ms > 0 ? sweep->round_ms : SWEEP_ROUND_MS) / STRIPES;

    snprintf(sweep->remember, sizeof(sweep->remember), "%llu", (unsigned long long)remember_ms);
    snprintf(sweep->step, sizeof(sweep->step), "%d", SWEEP_STEP);
    sweep->stripe = 0;
    sweep->running = false;
    loop_timer_init(loop, &sweep->timer, sweep_tick);
    loop_timer_arm(&sweep->timer, step_ms, step_ms);
}

void sweep_stop(struct sweep *sweep)
{
    loop_timer_done(&sweep->timer);
}

static void sweep_tick(struct loop_timer *timer)
{
    struct sweep *sweep = container_of(timer, struct sweep, timer);

    if (!sweep->running) {
        sweep->stripe = (sweep->stripe + 1) % STRIPES;
        sweep_ask(sweep);
    }
}

static void sweep_ask(struct sweep *sweep)
{
    static const char *const tails[SWEEP_KEYS] = {"", ":", ":"};
    const char *const names[SWEEP_KEYS] = {"", sweep->index, sweep->records};
    unsigned args = SWEEP_KEYS + 2;

    for (unsigned i = 0; i < SWEEP_KEYS; i++) {
        snprintf(sweep->keys[i], sizeof(sweep->keys[i]), "pawl:{%02x}%s%s", sweep->stripe, tails[i],
                 names[i]);
        sweep->argv[i] = bytes_of(sweep->keys[i]);
    }
    sweep->argv[SWEEP_KEYS] = bytes_of(sweep->step);
    sweep->argv[SWEEP_KEYS + 1] = bytes_of(sweep->remember);
    if (sweep->may_grant) {
        sweep->argv[args++] = record_may_grant(sweep->line);
    }
    sweep->call.store.done = sweep_answer;
    sweep->running = record_run(sweep->line, &sweep->call, sweep->stripe, sweep->script, SWEEP_KEYS, args,
                                sweep->argv) == PROBLEM_NONE;
}

static enum step sweep_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct sweep *sweep = container_of(call, struct sweep, call.store);

    sweep->running = false;
    if (record_problem(&sweep->call, outcome, reply) != PROBLEM_NONE) {
        return ANSWERED; /* the next tick tries the next stripe; what is left here waits for the next round */
    }
    if (sweep->swept != NULL && store_reply_count(reply) > 3) {
        sweep->swept(sweep, store_reply_integer(reply, 3));
    }
    if (store_reply_integer(reply, 2) >= SWEEP_STEP) {
        sweep_ask(sweep);
        return SUSPENDED;
    }
    return ANSWERED;
}
