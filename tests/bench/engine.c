/* engine.c - many connections, each with one request under way, in one epoll loop.
 *
 *   warming ----> measuring ----> ending ----> over
 *
 * Answers are counted while measuring. When it is over, each connection ends the task that it is in, so that
 * no lease stays held. */
#include "tests/bench/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/wire.h"

enum { IN_BYTES = 4096, EVENTS = 256, SILENCE_MS = 5000 };

struct conn {
    int fd;
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
    unsigned busy; /* connections with a task */
    uint64_t next_name, began_ns, measure_ns, end_ns, now_ns;
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void conn_open(struct engine *e, struct conn *c, unsigned index)
{
    struct epoll_event want = {.events = EPOLLIN, .data.ptr = c};

    c->index = index;
    c->random = 0x9E3779B97F4A7C15U * (index + 1) ^ clock_ns() ^ (uint64_t)getpid() << 32;
    c->fd = wire_connect(e->plan->to);
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
    uint64_t mine = c->index + plan->connections * c->turn++;

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
    request_fill(&c->now->request, &c->values);
    c->sent_ns = e->now_ns;
    wire_send(c->fd, (struct bytes){c->now->request.text, c->now->request.len});
}

static void conn_begin(struct engine *e, struct conn *c)
{
    if (e->now_ns >= e->end_ns || !conn_choose(e, c)) {
        e->busy--;
        return;
    }
    c->step = 0;
    c->task_ns = e->now_ns;
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

static void conn_ended_step(struct engine *e, struct conn *c, struct bytes answer, struct bytes word)
{
    struct engine_result *result = e->result;
    int counts = e->now_ns >= e->measure_ns && e->now_ns < e->end_ns;

    if (!bytes_are(word, c->now->words[0]) && !(c->now->words[1] && bytes_are(word, c->now->words[1])))
        load_fail("wanted \"%s\", got: %.*s\nfor: %.*s", c->now->words[0], (int)answer.len, answer.at,
                  (int)c->now->request.len, c->now->request.text);
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
    if (counts) {
        result->tasks++;
        histogram_add(&result->task, e->now_ns - c->task_ns);
    }
    conn_begin(e, c);
}

static void conn_read(struct engine *e, struct conn *c)
{
    ssize_t got = read(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len);
    struct bytes word;
    long whole;

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
    e->now_ns = e->began_ns = clock_ns();
    e->measure_ns = e->began_ns;
    e->end_ns = UINT64_MAX;
    if (e->job->kind != JOB_HOLD) {
        e->measure_ns += (uint64_t)(plan->warm_s * 1e9);
        e->end_ns = e->measure_ns + (uint64_t)(plan->measure_s * 1e9);
    }
}

void engine_run(const struct engine_plan *plan, struct job *job, struct engine_result *result)
{
    struct engine e = {.plan = plan, .job = job, .result = result, .busy = plan->connections};
    struct epoll_event events[EVENTS];

    engine_open(&e);
    for (unsigned i = 0; i < plan->connections; i++)
        conn_begin(&e, &e.conns[i]);
    while (e.busy > 0) {
        int count = epoll_wait(e.epoll, events, EVENTS, SILENCE_MS);

        if (count == 0 || (count < 0 && errno != EINTR))
            load_fail("no answer for %d s, with %u connections waiting", SILENCE_MS / 1000, e.busy);
        for (int i = 0; i < count; i++)
            conn_read(&e, events[i].data.ptr);
    }
    result->measured_s = (double)((e.end_ns == UINT64_MAX ? clock_ns() : e.end_ns) - e.measure_ns) / 1e9;
}
