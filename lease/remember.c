/* remember.c - bounds the memory of what is over and remembered; counts what is held.
 *
 *   remember_tick    every REMEMBER_ROUND_MS, if Redis uses more than the bound; else each 8th time
 *   sample_run       run remembered.lua on SAMPLE_STRIPES stripes     suspended
 *   sample_answer    note them; the next ones, then the metric, and remember_judge if Redis uses more
 *   remember_judge   what is over for how long does not fit? All does: the next tick
 *   early_run        run sweep_early.lua on a stripe                  suspended
 *   early_answer     the rest of it, then the next stripe */
#include <stdlib.h>

#include "lease/operation.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/text/memory.h"

enum {
    REMEMBER_ROUND_MS = 2560,
    HELD_ROUNDS = 8,
    REMEMBER_LEAST_MS = 60000, /* as LEAST_MS in sweep_early.lua */
    SAMPLE_STRIPES = 64,
    SAMPLE_MOST = 4 * STRIPES, /* as SAMPLES in remembered.lua */
    EARLY_STEP = 100,
    ROOM_PERCENT = 90 /* of the bound: there is room for a round's ends */
};

struct sample {
    int64_t bytes, over_ms;
};

struct remember {
    struct worker *worker;
    struct loop_timer timer;
    struct member_call call;
    uint64_t most;
    bool running, stopped, is_more; /* is_more: Redis uses more than the bound */
    unsigned stripe, round;
    uint64_t held_thousandths;
    int64_t keep_ms, rank; /* of early_run */
    unsigned count;
    struct sample samples[SAMPLE_MOST];
    char keys[LEASE_KEYS][KEYS_STRIPE_SIZE], number[4][MEMBER_NUMBER_SIZE];
    struct bytes argv[LEASE_KEYS + 4 + MEMBER_ARGS];
};

static member_done_fn early_answer;
static member_done_fn sample_answer;

static struct bytes number_put(struct remember *remember, unsigned slot, int64_t value)
{
    return bytes_of_number(remember->number[slot], value);
}

/* -- which go */

static void early_run(struct remember *remember)
{
    struct bytes *args = remember->argv + LEASE_KEYS;

    remember->argv[0] = keys_stripe(remember->keys[0], remember->stripe);
    remember->argv[1] = keys_due(remember->keys[1], remember->stripe);
    args[0] = number_put(remember, 0, EARLY_STEP);
    args[1] = number_put(remember, 1, (int64_t)remember->worker->service->settings.remember_ms);
    args[2] = number_put(remember, 2, remember->keep_ms);
    args[3] = number_put(remember, 3, remember->rank);
    remember->call.done = early_answer;
    remember->running = member_run(member_line_of_worker(remember->worker), &remember->call, remember->stripe,
                                   &script_sweep_early, LEASE_KEYS, LEASE_KEYS + 4,
                                   remember->argv) == PROBLEM_NONE;
}

/* {"swept", seq, rank or -1, how many}. What fails is left to the next round. */
static enum step early_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct remember *remember = container_of(call, struct remember, call);

    remember->running = false;
    if (bad != PROBLEM_NONE || remember->stopped)
        return ANSWERED;
    metric_add(remember->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_FORGOTTEN,
               (uint64_t)store_reply_integer(reply, 3));
    remember->rank = store_reply_integer(reply, 2);
    if (remember->rank < 0) {
        remember->rank = 0;
        remember->stripe++;
    }
    if (remember->stripe < STRIPES)
        early_run(remember);
    return remember->running ? SUSPENDED : ANSWERED;
}

static void remember_report(struct remember *remember, uint64_t bytes, bool crowded)
{
    struct worker *worker = remember->worker;
    struct log_field fields[] = {LOG_I("remembered_bytes", (int64_t)bytes),
                                 LOG_I("remember_max", (int64_t)remember->most), LOG_END};

    metric_set(worker->metrics, (unsigned)SERVICE_METRICS + COUNT_REMEMBERED, bytes);
    if (epoch_set_crowded(member_line_of_worker(remember->worker)->store_epoch, crowded)) {
        log_event(&worker->service->log, crowded ? LOG_WARNING : LOG_INFO,
                  crowded ? "remember-full" : "remember-full-no-more", fields);
    }
}

static int sample_compare(const void *a, const void *b)
{
    const struct sample *one = a, *other = b;

    return (one->over_ms > other->over_ms) - (one->over_ms < other->over_ms);
}

static void remember_judge(struct remember *remember)
{
    uint64_t room = remember->most / 100 * ROOM_PERCENT, bytes = 0, must = 0;

    qsort(remember->samples, remember->count, sizeof(remember->samples[0]), sample_compare);
    remember->keep_ms = -1;
    for (unsigned i = 0; i < remember->count; i++) {
        const struct sample *one = &remember->samples[i];

        bytes += (uint64_t)one->bytes;
        must = one->over_ms < REMEMBER_LEAST_MS ? bytes : must;
        if (bytes > room && remember->keep_ms < 0)
            remember->keep_ms = one->over_ms;
    }
    remember_report(remember, bytes, must > remember->most);
    if (bytes > remember->most) {
        remember->stripe = 0;
        remember->rank = 0;
        early_run(remember);
    }
}

/* -- how much it is */

static void sample_run(struct remember *remember)
{
    struct bytes *args = remember->argv + 1;

    remember->argv[0] = keys_stripe(remember->keys[0], remember->stripe);
    args[0] = number_put(remember, 0, remember->stripe);
    args[1] = number_put(remember, 1, (int64_t)remember->worker->service->settings.remember_ms);
    args[2] = number_put(remember, 2, SAMPLE_STRIPES);
    remember->call.done = sample_answer;
    remember->running = member_run(member_line_of_worker(remember->worker), &remember->call, remember->stripe,
                                   &script_remembered, 1, 4, remember->argv) == PROBLEM_NONE;
}

/* {"remembered", seq, {bytes, over ms, ...}, held}. A round that fails in the middle says nothing. */
static enum step sample_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct remember *remember = container_of(call, struct remember, call);
    const struct store_reply *found = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;

    remember->running = false;
    if (found == NULL || remember->stopped)
        return ANSWERED;
    for (size_t i = 0; i + 1 < store_reply_count(found) && remember->count < SAMPLE_MOST; i += 2) {
        remember->samples[remember->count++] = (struct sample){store_reply_integer(found, i),
                                                               store_reply_integer(found, i + 1)};
    }
    remember->held_thousandths += (uint64_t)store_reply_integer(reply, 3);
    remember->stripe += SAMPLE_STRIPES;
    if (remember->stripe < STRIPES) {
        sample_run(remember);
        return remember->running ? SUSPENDED : ANSWERED;
    }
    metric_set(remember->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_HELD,
               (remember->held_thousandths + 500) / 1000);
    if (remember->is_more)
        remember_judge(remember);
    return remember->running ? SUSPENDED : ANSWERED;
}

static void remember_tick(struct loop_timer *timer)
{
    struct remember *remember = container_of(timer, struct remember, timer);
    uint64_t used, allowed;

    if (remember->running)
        return;
    epoch_memory(member_line_of_worker(remember->worker)->store_epoch, &used, &allowed);
    remember->is_more = used >= remember->most;
    if (!remember->is_more)
        remember_report(remember, 0, false);
    if (remember->is_more || remember->round++ % HELD_ROUNDS == 0) {
        remember->stripe = remember->count = 0;
        remember->held_thousandths = 0;
        sample_run(remember);
    }
}

struct remember *remember_new(struct worker *worker)
{
    struct remember *remember = must_have(calloc(1, sizeof(*remember)));

    remember->worker = worker;
    remember->most = worker->service->settings.remember_max;
    loop_timer_init(worker->loop, &remember->timer, remember_tick);
    loop_timer_arm(&remember->timer, REMEMBER_ROUND_MS, REMEMBER_ROUND_MS);
    return remember;
}

void remember_stop(struct remember *remember)
{
    loop_timer_done(&remember->timer);
    remember->stopped = true;
}
