/* handoff.c - leases in whose lines somebody waits are looked at when it is time.
 *
 *   handoff_alarm   every 50 ms: when does the next alarm ring?
 *   handoff_tick    it rings: run alarm.lua: which ones?
 *   look_answer     put their names into the list
 *   jobs_start      run handoff.lua for some of them at a time
 *   job_answer      "more": the same again; else the next of the list
 *
 * Whatever fails stays in the store's alarms, and is found when the next alarm is asked for. */
#include <stdlib.h>

#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "scripts.h"
#include "shared/text/memory.h"

enum { JOBS = 8, LOOK_KEYS = 2, LOOK_MOST = 80 };

#define NEVER UINT64_MAX

struct handoff_name {
    STAILQ_ENTRY(handoff_name) entry;
    size_t len;
    char text[];
};

struct handoff_job {
    struct lease_call lease;
    struct handoff *owner;
    bool running;
};

struct handoff {
    struct worker *worker;
    struct loop_timer timer;
    struct member_call call;
    bool looking, stopped;
    uint64_t look_at_ms; /* the next look */
    char stripe[KEYS_STRIPE_SIZE], most[MEMBER_NUMBER_SIZE];
    struct bytes argv[LOOK_KEYS + 1 + MEMBER_ARGS];
    STAILQ_HEAD(, handoff_name) names;
    unsigned running;
    struct handoff_job jobs[JOBS];
};

static void handoff_tick(struct loop_timer *timer);
static member_done_fn job_answer;

struct handoff *handoff_new(struct worker *worker)
{
    struct handoff *handoff = must_have(calloc(1, sizeof(*handoff)));

    handoff->worker = worker;
    handoff->look_at_ms = NEVER;
    STAILQ_INIT(&handoff->names);
    handoff->argv[0] = keys_stripe(handoff->stripe, 0); /* any: nothing of it is read */
    handoff->argv[1] = BYTES("pawl:{store}:alarm");
    handoff->argv[LOOK_KEYS] = bytes_of_number(handoff->most, LOOK_MOST);
    for (unsigned i = 0; i < JOBS; i++)
        handoff->jobs[i].owner = handoff;
    loop_timer_init(worker->loop, &handoff->timer, handoff_tick);
    return handoff;
}

static void name_forget(struct handoff *handoff)
{
    struct handoff_name *one = STAILQ_FIRST(&handoff->names);

    STAILQ_REMOVE_HEAD(&handoff->names, entry);
    free(one);
}

static void names_forget(struct handoff *handoff)
{
    while (!STAILQ_EMPTY(&handoff->names))
        name_forget(handoff);
}

void handoff_stop(struct handoff *handoff)
{
    loop_timer_done(&handoff->timer);
    names_forget(handoff);
    handoff->stopped = true;
}

static void name_add(struct handoff *handoff, struct bytes name)
{
    struct handoff_name *one = must_have(calloc(1, sizeof(*one) + name.len));

    memcpy(one->text, name.at, name.len);
    one->len = name.len;
    STAILQ_INSERT_TAIL(&handoff->names, one, entry);
}

/* -- one lease after the other, some at a time */

static bool job_run(struct handoff_job *job)
{
    struct handoff *handoff = job->owner;

    lease_call_arg(&job->lease, 3, grant_may(handoff->worker));
    job->running = lease_call_begin(&job->lease, handoff->worker, &script_handoff, 3, job_answer) ==
                   PROBLEM_NONE;
    handoff->running += job->running;
    return job->running;
}

/* The next look is when all are done: what is not yet done is still due. */
static void jobs_start(struct handoff *handoff)
{
    uint64_t now_ms = loop_now_ms();

    if (handoff->stopped) {
        names_forget(handoff);
        return;
    }
    for (unsigned i = 0; i < JOBS && !STAILQ_EMPTY(&handoff->names); i++) {
        const struct handoff_name *one = STAILQ_FIRST(&handoff->names);

        if (handoff->jobs[i].running)
            continue;
        lease_call_fill(&handoff->jobs[i].lease, handoff->worker, (struct bytes){one->text, one->len});
        name_forget(handoff);
        if (!job_run(&handoff->jobs[i]))
            names_forget(handoff);
    }
    if (handoff->look_at_ms == NEVER)
        loop_timer_disarm(&handoff->timer);
    else if (handoff->running == 0 && !handoff->looking)
        loop_timer_arm(&handoff->timer, handoff->look_at_ms > now_ms ? handoff->look_at_ms - now_ms : 1, 0);
}

static enum step job_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct handoff_job *job = container_of(call, struct handoff_job, lease.record);
    struct handoff *handoff = job->owner;

    job->running = false;
    handoff->running--;
    if (bad != PROBLEM_NONE)
        handoff->look_at_ms = NEVER;
    else if (!handoff->stopped && bytes_are(store_reply_text(reply, 2), "more"))
        job_run(job);
    jobs_start(handoff);
    return ANSWERED;
}

void handoff_more(struct handoff *handoff, struct bytes name)
{
    name_add(handoff, name);
    jobs_start(handoff);
}

/* -- which leases */

static uint64_t look_at(int64_t in_ms)
{
    return in_ms < 0 ? NEVER : loop_now_ms() + (uint64_t)in_ms;
}

void handoff_alarm(struct handoff *handoff, int64_t in_ms)
{
    handoff->look_at_ms = look_at(in_ms);
    jobs_start(handoff);
}

static enum step look_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct handoff *handoff = container_of(call, struct handoff, call);
    const struct store_reply *names;

    handoff->looking = false;
    if (bad == PROBLEM_NONE) {
        names = store_reply_list(reply, 3);
        handoff->look_at_ms = look_at(store_reply_integer(reply, 2));
        for (size_t i = 0; names != NULL && i < store_reply_count(names); i++)
            if (name_is_lease(store_reply_text(names, i))) /* a hand may have put something else there */
                name_add(handoff, store_reply_text(names, i));
    }
    jobs_start(handoff);
    return ANSWERED;
}

static void handoff_tick(struct loop_timer *timer)
{
    struct handoff *handoff = container_of(timer, struct handoff, timer);

    handoff->look_at_ms = NEVER;
    handoff->call.done = look_answer;
    handoff->looking = member_run(member_line_of_worker(handoff->worker), &handoff->call, 0, &script_alarm,
                                  LOOK_KEYS, LOOK_KEYS + 1, handoff->argv) == PROBLEM_NONE;
    jobs_start(handoff);
}
