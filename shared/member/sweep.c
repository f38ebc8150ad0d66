/* sweep.c - looks for ever which stripes have something due, and runs one bounded script on each of them.
 *
 *   sweep_tick     SWEEP_LOOKS times a round: the next stripes, if the last ones are done
 *   sweep_look     which of them have something due?               suspended
 *   sweep_looked   note them
 *   sweep_go_on    the next of them; none left: the next stripes when their tick has come, else the next tick
 *   sweep_ask      run the script                                  suspended
 *   sweep_answer   full step: the same stripe again; else go on */
#include <stdio.h>

#include "scripts.h"
#include "shared/member/member_internal.h"

enum {
    SWEEP_STEP = 100,
    SWEEP_ROUND_MS = 5120,
    SWEEP_LOOK = 64, /* stripes at a look: 0.2 to 0.4 ms in Redis */
    SWEEP_LOOKS = STRIPES / SWEEP_LOOK
};

_Static_assert(SWEEP_LOOK <= 64 && STRIPES % SWEEP_LOOK == 0, "a bit for each stripe of a look");

static void sweep_tick(struct loop_timer *timer);
static void sweep_look(struct sweep *sweep);
static enum step sweep_looked(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply);
static void sweep_go_on(struct sweep *sweep);
static void sweep_ask(struct sweep *sweep);
static store_done_fn sweep_answer;

void sweep_start(struct sweep *sweep, struct worker *worker)
{
    const struct member_plan *plan = worker->service->plan->own;
    unsigned look_ms = (plan->sweep_round_ms > 0 ? plan->sweep_round_ms : SWEEP_ROUND_MS) / SWEEP_LOOKS;

    *sweep = (struct sweep){.worker = worker, .line = member_line_of_worker(worker), .plan = plan};
    loop_timer_init(worker->loop, &sweep->timer, sweep_tick);
    loop_timer_arm(&sweep->timer, look_ms, look_ms);
}

void sweep_stop(struct sweep *sweep)
{
    loop_timer_done(&sweep->timer);
    sweep->stopped = true;
}

static void sweep_tick(struct loop_timer *timer)
{
    struct sweep *sweep = container_of(timer, struct sweep, timer);

    sweep->late = true;
    if (!sweep->running)
        sweep_look(sweep);
}

/* -- which stripes */

static void sweep_look(struct sweep *sweep)
{
    sweep->late = false;
    sweep->first = (sweep->first + SWEEP_LOOK) % STRIPES;
    sweep->argv[0] = keys_stripe(sweep->keys[0], sweep->first);
    sweep->argv[1] = bytes_of_number(sweep->number[0], sweep->first);
    sweep->argv[2] = bytes_of_number(sweep->number[1], SWEEP_LOOK);
    sweep->argv[3] = bytes_of(sweep->plan->index);
    sweep->call.store.done = sweep_looked;
    sweep->running = member_run(sweep->line, &sweep->call, sweep->first, &script_due, 1, 4, sweep->argv) ==
                     PROBLEM_NONE;
}

static enum step sweep_looked(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct sweep *sweep = container_of(call, struct sweep, call.store);

    if (member_problem(&sweep->call, outcome, reply) == PROBLEM_NONE) {
        const struct store_reply *found = store_reply_list(reply, 2);

        for (size_t i = 0; found != NULL && i < store_reply_count(found); i++)
            sweep->due |= UINT64_C(1) << ((uint64_t)store_reply_integer(found, i) % SWEEP_LOOK);
    }
    sweep_go_on(sweep);
    return sweep->running ? SUSPENDED : ANSWERED;
}

/* -- one after the other */

/* What a step fails at waits for the next round; without a link that may be used all of it does. */
static void sweep_go_on(struct sweep *sweep)
{
    sweep->running = false;
    if (sweep->stopped)
        return;
    if (sweep->due != 0) {
        unsigned bit = (unsigned)__builtin_ctzll(sweep->due);

        sweep->due &= ~(UINT64_C(1) << bit);
        sweep->stripe = sweep->first + bit;
        sweep_ask(sweep);
    } else if (sweep->late) {
        sweep_look(sweep);
    }
}

static void sweep_ask(struct sweep *sweep)
{
    unsigned args = SWEEP_KEYS + 2;

    sweep->argv[0] = keys_stripe(sweep->keys[0], sweep->stripe);
    snprintf(sweep->keys[1], sizeof(sweep->keys[1]), "pawl:{%02x}:%s", sweep->stripe, sweep->plan->index);
    sweep->argv[1] = bytes_of(sweep->keys[1]);
    sweep->argv[SWEEP_KEYS] = bytes_of_number(sweep->number[0], SWEEP_STEP);
    sweep->argv[SWEEP_KEYS + 1] = bytes_of_number(sweep->number[1],
                                                  (int64_t)sweep->worker->service->settings.remember_ms);
    if (sweep->plan->sweep_may_grant)
        sweep->argv[args++] = member_may_grant(sweep->line);
    sweep->call.store.done = sweep_answer;
    sweep->running = member_run(sweep->line, &sweep->call, sweep->stripe, sweep->plan->sweep, SWEEP_KEYS,
                                args, sweep->argv) == PROBLEM_NONE;
    sweep->due = sweep->running ? sweep->due : 0;
}

static enum step sweep_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct sweep *sweep = container_of(call, struct sweep, call.store);
    bool has_more = false;

    if (member_problem(&sweep->call, outcome, reply) == PROBLEM_NONE) {
        if (sweep->plan->counts_swept && store_reply_count(reply) > 3)
            metric_add(sweep->worker->metrics, (unsigned)SERVICE_METRICS + sweep->plan->swept,
                       (uint64_t)store_reply_integer(reply, 3));
        has_more = store_reply_integer(reply, 2) >= SWEEP_STEP;
    }
    if (has_more && !sweep->stopped)
        sweep_ask(sweep);
    else
        sweep_go_on(sweep);
    return sweep->running ? SUSPENDED : ANSWERED;
}
