/* handoff.c - leases in whose lines somebody waits are looked at when it is time.
 *
 *   hand_on_alarm   every 50 ms: when does the next alarm ring?
 *   hand_on_tick    it rings
 *   look_ask        run alarm.lua: which ones?
 *   look_answer     put their names into the list
 *   jobs_start      run hand_on.lua for some of them at a time
 *   job_answer      "more": the same again; else the next of the list
 *
 * Whatever fails stays in the store's alarms, and is found when the next alarm is asked for. */
#include "lease/queue/handoff.h"

#include <stdio.h>
#include <stdlib.h>

#include "lease/acquire_options.h"
#include "lease/operation.h"
#include "scripts.h"
#include "shared/text/memory.h"

enum { JOBS = 8, LOOK_KEYS = 2, LOOK_MOST = 80 };

#define NEVER UINT64_MAX

struct hand_on_name {
    struct hand_on_name *next;
    size_t len;
    char text[];
};

struct hand_on_job {
    struct lease_call lease;
    struct hand_on *owner;
    bool running;
};

struct hand_on {
    struct worker *worker;
    struct record_line *line;
    struct loop_timer timer;
    struct record_call call;
    bool looking, stopped;
    uint64_t look_at_ms; /* the next look */
    char stripe[KEYS_STRIPE_SIZE], most[RECORD_NUMBER_SIZE];
    struct bytes argv[LOOK_KEYS + 1 + RECORD_ARGS];
    struct hand_on_name *first, **end;
    unsigned running;
    struct hand_on_job jobs[JOBS];
};

static void hand_on_tick(struct loop_timer *timer);
static void look_ask(struct hand_on *hand_on);
static store_done_fn look_answer;
static void jobs_start(struct hand_on *hand_on);
static store_done_fn job_answer;

struct hand_on *hand_on_new(struct worker *worker, struct record_line *line)
{
    struct hand_on *hand_on = must_have(calloc(1, sizeof(*hand_on)));

    hand_on->worker = worker;
    hand_on->line = line;
    hand_on->look_at_ms = NEVER;
    hand_on->end = &hand_on->first;
    hand_on->argv[0] = keys_stripe(hand_on->stripe, 0); /* whichever: nothing of it is read */
    hand_on->argv[1] = BYTES("pawl:{store}:alarm");
    snprintf(hand_on->most, sizeof(hand_on->most), "%d", LOOK_MOST);
    hand_on->argv[LOOK_KEYS] = bytes_of(hand_on->most);
    for (unsigned i = 0; i < JOBS; i++) {
        hand_on->jobs[i].owner = hand_on;
    }
    loop_timer_init(worker->loop, &hand_on->timer, hand_on_tick);
    return hand_on;
}

static void names_forget(struct hand_on *hand_on)
{
    while (hand_on->first != NULL) {
        struct hand_on_name *next = hand_on->first->next;

        free(hand_on->first);
        hand_on->first = next;
    }
    hand_on->end = &hand_on->first;
}

void hand_on_stop(struct hand_on *hand_on)
{
    loop_timer_done(&hand_on->timer);
    names_forget(hand_on);
    hand_on->stopped = true;
}

void hand_on_free(struct hand_on *hand_on)
{
    free(hand_on);
}

static void name_add(struct hand_on *hand_on, struct bytes name)
{
    struct hand_on_name *one = must_have(calloc(1, sizeof(*one) + name.len));

    memcpy(one->text, name.at, name.len);
    one->len = name.len;
    *hand_on->end = one;
    hand_on->end = &one->next;
}

void hand_on_more(struct hand_on *hand_on, struct bytes name)
{
    name_add(hand_on, name);
    jobs_start(hand_on);
}

/* -- which ones */

void hand_on_alarm(struct hand_on *hand_on, int64_t in_ms)
{
    hand_on->look_at_ms = in_ms < 0 ? NEVER : loop_now_ms() + (uint64_t)in_ms;
    jobs_start(hand_on);
}

static void hand_on_tick(struct loop_timer *timer)
{
    struct hand_on *hand_on = container_of(timer, struct hand_on, timer);

    hand_on->look_at_ms = NEVER;
    look_ask(hand_on);
    jobs_start(hand_on);
}

static void look_ask(struct hand_on *hand_on)
{
    hand_on->call.store.done = look_answer;
    hand_on->looking = record_run(hand_on->line, &hand_on->call, 0, &script_alarm, LOOK_KEYS, LOOK_KEYS + 1,
                                  hand_on->argv) == PROBLEM_NONE;
}

static enum step look_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct hand_on *hand_on = container_of(call, struct hand_on, call.store);
    const struct store_reply *names;
    int64_t next_ms;

    hand_on->looking = false;
    if (record_problem(&hand_on->call, outcome, reply) == PROBLEM_NONE) {
        names = store_reply_list(reply, 3);
        next_ms = store_reply_integer(reply, 2);
        hand_on->look_at_ms = next_ms < 0 ? NEVER : loop_now_ms() + (uint64_t)next_ms;
        for (size_t i = 0; names != NULL && i < store_reply_count(names); i++) {
            name_add(hand_on, store_reply_text(names, i));
        }
    }
    jobs_start(hand_on);
    return ANSWERED;
}

/* -- one after the other, some at a time */

static bool job_run(struct hand_on_job *job)
{
    struct hand_on *hand_on = job->owner;

    lease_call_arg(&job->lease, 3, grant_may(hand_on->worker));
    job->lease.record.store.done = job_answer;
    job->running = record_run(hand_on->line, &job->lease.record, job->lease.stripe_number, &script_hand_on,
                              LEASE_KEYS, LEASE_KEYS + 3, job->lease.argv) == PROBLEM_NONE;
    hand_on->running += job->running;
    return job->running;
}

static bool job_take(struct hand_on_job *job)
{
    struct hand_on *hand_on = job->owner;
    struct hand_on_name *one = hand_on->first;

    lease_call_fill(&job->lease, hand_on->worker, (struct bytes){one->text, one->len});
    hand_on->first = one->next;
    if (hand_on->first == NULL) {
        hand_on->end = &hand_on->first;
    }
    free(one);
    return job_run(job);
}

/* The next look is when all are done: what is not yet done is still due. */
static void jobs_start(struct hand_on *hand_on)
{
    uint64_t now_ms = loop_now_ms();

    if (hand_on->stopped) {
        names_forget(hand_on);
        return;
    }
    for (unsigned i = 0; i < JOBS && hand_on->first != NULL; i++) {
        if (!hand_on->jobs[i].running && !job_take(&hand_on->jobs[i])) {
            names_forget(hand_on);
        }
    }
    if (hand_on->look_at_ms == NEVER) {
        loop_timer_disarm(&hand_on->timer);
    } else if (hand_on->running == 0 && !hand_on->looking) {
        loop_timer_arm(&hand_on->timer, hand_on->look_at_ms > now_ms ? hand_on->look_at_ms - now_ms : 1, 0);
    }
}

static enum step job_answer(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct hand_on_job *job = container_of(call, struct hand_on_job, lease.record.store);
    struct hand_on *hand_on = job->owner;
    enum problem bad = record_problem(&job->lease.record, outcome, reply);

    job->running = false;
    hand_on->running--;
    if (bad != PROBLEM_NONE) {
        hand_on->look_at_ms = NEVER;
    } else if (!hand_on->stopped && bytes_are(store_reply_text(reply, 2), "more")) {
        job_run(job);
    }
    jobs_start(hand_on);
    return ANSWERED;
}
