/* engine.c - many connections, each with one request under way, in one epoll loop.
 *
 *   warming ----> measuring ----> ending ----> over
 *
 * Answers are counted while measuring. When it is over, each connection ends the task that it is in, so that
 * no lease stays held.
 *
 * With a rate each task has a time at which it is due; it begins then, or when a connection is free, and is
 * timed from when it was due. All that were due while measuring count. */
#include "tests/bench/engine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/wire.h"

enum { IN_BYTES = 4096, EVENTS = 256, SILENCE_S = 5 };

static const uint64_t NS = 1000000000, SILENCE_NS = SILENCE_S * (uint64_t)1000000000;

struct conn {
    int fd;
    struct tls *tls; /* NULL: plain */
    unsigned index, step;
    uint64_t turn; /* which of its names or resources comes next */
    uint64_t task_ns, sent_ns;
    uint64_t random;
    struct job_step *now;             /* the request under way */
    struct job_step steps[STEPS_MAX]; /* lease, hold: copies of the job's, to write the values into */
    struct values values;
    size_t in_len;
    char in[IN_BYTES];
};

struct engine {
    const struct engine_plan *plan;
    struct job *job;
    struct engine_result *result;
    struct conn *conns;
    int epoll;
    unsigned busy;       /* connections with a task */
    struct conn **spare; /* with a rate: those without */
    unsigned spare_count;
    uint64_t next_name, began_ns, measure_ns, end_ns, now_ns, heard_ns;
    uint64_t due_ns; /* with a rate: when the next task is; else never */
};

static void conn_open(struct engine *e, struct conn *c, unsigned index)
{
    struct epoll_event want = {.events = EPOLLIN, .data.ptr = c};

    c->index = index;
    c->random = 0x9E3779B97F4A7C15U * (index + 1) ^ clock_ns() ^ (uint64_t)getpid() << 32;
    c->fd = wire_connect(e->plan->to);
    if (e->plan->trust != NULL)
        c->tls = wire_tls(e->plan->trust, c->fd);
    if (e->job->hello.len > 0) {
        struct bytes word;

        wire_send(c->fd, e->job->hello);
        wire_answer(c->fd, e->job->measure, c->in, sizeof(c->in), &word);
    }
    for (unsigned i = 0; i < e->job->step_count; i++) {
        c->steps[i] = e->job->steps[i];
        if (!job_has_holds(e->job->kind))
            request_copy(&c->steps[i].request, &e->job->steps[i].request);
    }
    if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, c->fd, &want) < 0)
        load_fail("epoll_ctl: %s", strerror(errno));
}

/* The next name or resource of its own. 0 when there is none. */
static int conn_choose(struct engine *e, struct conn *c)
{
    const struct engine_plan *plan = e->plan;
    uint64_t mine = c->index + plan->connections * (c->turn++ / plan->writes);

    switch (e->job->kind) {
    case JOB_HOLD:
        if (e->next_name == plan->names)
            return 0;
        values_name(&c->values, plan->first + e->next_name++);
        break;
    case JOB_LEASE:
        if (mine >= plan->names)
            c->turn = 1, mine = c->index;
        values_name(&c->values, plan->first + mine);
        break;
    case JOB_PUT:
    case JOB_READ:
    case JOB_CHECK:
        if (mine >= e->job->put_count)
            c->turn = 1, mine = c->index;
        c->now = &e->job->puts[mine];
        return 1;
    }
    c->now = &c->steps[0];
    return 1;
}

static void conn_send(struct engine *e, struct conn *c)
{
    struct bytes text;

    request_fill(&c->now->request, &c->values);
    c->sent_ns = e->now_ns;
    text = (struct bytes){c->now->request.text, c->now->request.len};
    if (c->tls == NULL)
        wire_send(c->fd, text);
    else if (tls_write(c->tls, text) != (ssize_t)text.len)
        load_fail("sending %zu bytes over TLS: %s", text.len, tls_why(c->tls));
}

static void conn_begin(struct engine *e, struct conn *c)
{
    c->task_ns = e->now_ns;
    if (e->spare && e->due_ns > e->now_ns) {
        e->spare[e->spare_count++] = c;
        e->busy--;
        return;
    }
    if (e->spare) {
        c->task_ns = e->due_ns;
        e->due_ns += (uint64_t)(1e9 / e->plan->rate);
    }
    if (c->task_ns >= e->end_ns || !conn_choose(e, c)) {
        e->due_ns = UINT64_MAX;
        e->busy--;
        return;
    }
    c->step = 0;
    values_random(&c->values, SLOT_LEASE_ID, &c->random);
    if (e->job->speech == SPEAK_RESP) { /* Pawl makes these for the client */
        values_random(&c->values, SLOT_HOLD, &c->random);
        values_random(&c->values, SLOT_ETAG, &c->random);
    }
    conn_send(e, c);
}

static void hold_write(struct engine *e, struct conn *c, struct bytes answer)
{
    struct bytes token = http_answer_header(answer, "Fencing-Token: ");

    if (token.len == 0)
        load_fail("a grant without a Fencing-Token: %.*s", (int)answer.len, answer.at);
    fprintf(e->plan->holds, "%.*s %.*s\n", NAME_BYTES, c->values.of[SLOT_NAME], (int)token.len, token.at);
}

static bool step_heard(const struct job_step *step, struct bytes answer, struct bytes word)
{
    if (step->part && !memmem(answer.at, answer.len, step->part, strlen(step->part)))
        return false;
    if (!step->words[0])
        return word.len > 0 && word.at[0] != '-';
    return bytes_are(word, step->words[0]) || (step->words[1] && bytes_are(word, step->words[1]));
}

static void conn_ended_step(struct engine *e, struct conn *c, struct bytes answer, struct bytes word)
{
    struct engine_result *result = e->result;
    uint64_t counted_ns = e->spare ? c->task_ns : e->now_ns;
    int counts = counted_ns >= e->measure_ns && counted_ns < e->end_ns;

    if (!step_heard(c->now, answer, word))
        load_fail("wanted \"%s\", got: %.*s\nfor: %.*s", c->now->words[0] ? c->now->words[0] : "no error",
                  (int)answer.len, answer.at, (int)c->now->request.len, c->now->request.text);
    if (e->plan->holds)
        hold_write(e, c, answer);
    result->requests_all++;
    if (counts) {
        result->requests++;
        histogram_add(&result->request, e->now_ns - c->sent_ns);
    }
    if (++c->step < e->job->step_count) {
        c->now = &c->steps[c->step];
        conn_send(e, c);
        return;
    }
    result->tasks_all++;
    if (counts) {
        result->tasks++;
        histogram_add(&result->task, e->now_ns - c->task_ns);
    }
    conn_begin(e, c);
}

static void conn_read(struct engine *e, struct conn *c)
{
    size_t room = sizeof(c->in) - c->in_len;
    ssize_t got = c->tls != NULL ? tls_read(c->tls, c->in + c->in_len, room)
                                 : read(c->fd, c->in + c->in_len, room);
    struct bytes word;
    long whole;

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0)
        load_fail("connection %u: %s", c->index, got < 0 ? strerror(errno) : "closed by the other side");
    c->in_len += (size_t)got;
    whole = e->job->measure((struct bytes){c->in, c->in_len}, &word);
    if (whole == ANSWER_PART && c->in_len < sizeof(c->in))
        return;
    /* One request, one answer: a byte too many is as wrong as one that is not understood. */
    if (whole <= 0 || (size_t)whole != c->in_len)
        load_fail("not one whole answer: %.*s", (int)c->in_len, c->in);
    c->in_len = 0;
    e->now_ns = clock_ns();
    conn_ended_step(e, c, (struct bytes){c->in, (size_t)whole}, word);
}

static void engine_open(struct engine *e)
{
    const struct engine_plan *plan = e->plan;

    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    e->conns = calloc(plan->connections, sizeof(*e->conns));
    if (e->epoll < 0 || !e->conns)
        load_fail("no epoll, or no memory");
    for (unsigned i = 0; i < plan->connections; i++)
        conn_open(e, &e->conns[i], i);
    e->now_ns = e->began_ns = e->heard_ns = clock_ns();
    e->due_ns = UINT64_MAX;
    if (plan->rate > 0) {
        e->spare = calloc(plan->connections, sizeof(struct conn *));
        e->due_ns = e->began_ns;
        if (!e->spare)
            load_fail("no memory");
    }
    e->measure_ns = e->began_ns;
    e->end_ns = UINT64_MAX;
    if (e->job->kind != JOB_HOLD) {
        e->measure_ns += (uint64_t)(plan->warm_s * 1e9);
        e->end_ns = e->measure_ns + (uint64_t)(plan->measure_s * 1e9);
    }
}

/* Takes what has come until a task is due. */
static void engine_turn(struct engine *e)
{
    uint64_t until_ns = e->spare_count > 0 && e->due_ns < e->now_ns + SILENCE_NS ? e->due_ns
                                                                                 : e->now_ns + SILENCE_NS;
    uint64_t wait_ns = until_ns > e->now_ns ? until_ns - e->now_ns : 0;
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / NS), .tv_nsec = (long)(wait_ns % NS)};
    struct epoll_event events[EVENTS];
    int count = epoll_pwait2(e->epoll, events, EVENTS, &wait, NULL);

    e->now_ns = clock_ns();
    if (count > 0)
        e->heard_ns = e->now_ns;
    if ((count < 0 && errno != EINTR) || (e->busy > 0 && e->now_ns - e->heard_ns >= SILENCE_NS))
        load_fail("no answer for %d s, with %u connections waiting", SILENCE_S, e->busy);
    for (int i = 0; i < count; i++)
        conn_read(e, events[i].data.ptr);
}

void engine_run(const struct engine_plan *plan, struct job *job, struct engine_result *result)
{
    struct engine e = {.plan = plan, .job = job, .result = result, .busy = plan->connections};

    engine_open(&e);
    for (unsigned i = 0; i < plan->connections; i++)
        conn_begin(&e, &e.conns[i]);
    while (e.busy > 0 || e.due_ns < UINT64_MAX) {
        engine_turn(&e);
        while (e.spare_count > 0 && e.due_ns <= e.now_ns) {
            e.busy++;
            conn_begin(&e, e.spare[--e.spare_count]);
        }
    }
    free(e.spare);
    result->measured_s = (double)((e.end_ns == UINT64_MAX ? clock_ns() : e.end_ns) - e.measure_ns) / 1e9;
}
