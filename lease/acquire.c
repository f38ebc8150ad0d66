/* acquire.c - POST /v1/leases/{name}: lend the lease to one holder, or let him wait in line.
 *
 *   acquire_start    read the request, take a place to wait     400 | 422 | 503, or go on
 *   acquire_ask      run acquire.lua                        suspended
 *   acquire_answer   tell the holder                        201 | 200 | 403 | 409 | 410 | 422 | 503 | 504, or
 * wait (wait.h) acquire_again    the floor is just being raised: ask once more, for half a second
 *   acquire_claimed  he has waited, and it is his           201 */
#include "lease/acquire.h"

#include "lease/acquire_options.h"
#include "lease/operation.h"
#include "lease/queue/wait.h"
#include "lease/worker.h"
#include "scripts.h"

enum { AGAIN_MS = 5, PATIENCE_MS = 500 };

struct acquire {
    struct lease_call lease;
    struct lease_request request;
    struct acquire_options acquire_options;
    struct waiter *waiter; /* NULL: he does not want to wait */
    char hold[TOKEN_HOLD_MIN + 1];
    char ttl[LEASE_NUMBER_SIZE];
    char packed[ACQUIRE_OPTIONS_SIZE];
    struct loop_timer again;
    uint64_t patient_until_ms; /* 0: the ceiling was not met yet */
};

static bool acquire_wait(struct acquire *a);
static enum step acquire_ask(struct acquire *a);
static enum step acquire_run(struct acquire *a);
static store_done_fn acquire_answer;
static enum step acquire_claimed(struct http_request *req, const struct wait_request *request,
                                 const struct store_reply *reply, int64_t waited_ms);

enum step acquire_start(struct http_request *req)
{
    struct acquire *a = HTTP_SCRATCH(req, struct acquire);
    const char *bad = lease_call_init(&a->lease, req);
    struct request_fault wrong;

    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    lease_request_read(http_body(req), &a->request, &wrong);
    if (wrong.problem != PROBLEM_NONE) {
        return http_refuse_detail(req, wrong.problem, wrong.detail);
    }
    bad = acquire_options_read(&a->acquire_options, &a->request, req);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    lease_request_defaults(&a->request);
    token_hold_name(a->hold);
    return acquire_wait(a) ? acquire_ask(a) : acquire_no_inbox(req);
}

enum step acquire_no_inbox(struct http_request *req)
{
    enum problem problem = member_line_problem(member_line_of(req));

    if (problem != PROBLEM_NONE) {
        return http_refuse(req, problem);
    }
    return http_refuse_detail(
        req, PROBLEM_STORE_UNAVAILABLE,
        "Nothing was granted, and nobody can wait here just now: this service is finding its "
        "way to the store. Try again.");
}

static struct bytes acquire_lease_id(const struct acquire *a)
{
    return (struct bytes){a->request.lease_id, a->request.lease_id_len};
}

/* The place is taken first: that he was granted may be told before the script's own answer arrives. */
static bool acquire_wait(struct acquire *a)
{
    static const struct wait_kind kind = {&script_claim, &script_leave, false, acquire_claimed};
    struct wait_request request = {
        .name = a->lease.name,
        .lease_id = acquire_lease_id(a),
        .hold = {a->hold, TOKEN_HOLD_MIN},
        .mode = a->request.mode,
        .started_us = loop_now_us(),
        .wait_ms = a->request.wait_ms,
        .keep_ms = a->request.keep_place_ms,
    };

    if (a->request.wait_ms == 0) {
        return true;
    }
    a->waiter = wait_new(worker_of(a->lease.req), &kind, &request);
    return a->waiter != NULL;
}

static enum step acquire_ask(struct acquire *a)
{
    struct lease_call *lease = &a->lease;
    struct bytes inbox = a->waiter != NULL ? inbox_key(lease_worker_of(lease->req)->inbox) : BYTES("");
    uint64_t wid = a->waiter != NULL ? wait_wid(a->waiter) : 0;

    acquire_args(lease, &a->request, acquire_lease_id(a), a->hold, a->ttl);
    lease_call_arg(lease, 9,
                   acquire_options_write(&a->acquire_options, &a->request, inbox, wid, NULL, a->packed,
                                         sizeof(a->packed)));
    return acquire_run(a);
}

static enum step acquire_run(struct acquire *a)
{
    struct waiter *waiter = a->waiter;
    enum step step;

    lease_call_arg(&a->lease, 8, grant_may_new(worker_of(a->lease.req)));
    step = lease_call_run(&a->lease, &script_acquire, 9, acquire_answer);
    if (step == ANSWERED && waiter != NULL) {
        wait_drop(waiter); /* refused, without the store */
    }
    return step;
}

void acquire_args(struct lease_call *lease, const struct lease_request *request, struct bytes lease_id,
                  const char hold[TOKEN_HOLD_MIN + 1], char ttl[LEASE_NUMBER_SIZE])
{
    lease_call_id(lease, lease_id);
    lease_call_arg(lease, 4, (struct bytes){hold, TOKEN_HOLD_MIN});
    lease_call_arg(lease, 5, (struct bytes){request->holder, request->holder_len});
    lease_call_arg(lease, 6, bytes_of_number(ttl, request->ttl_ms));
    lease_call_arg(lease, 7, (struct bytes){request->meta, request->meta_len});
}

void acquire_token_known(const struct http_request *req, const struct grant *grant)
{
    epoch_granted(member_line_of(req)->store_epoch, keys_stripe_of(grant->lease), grant->token.epoch,
                  grant->token.number);
}

bool acquire_token_came_again(const struct http_request *req, const struct grant *grant)
{
    struct epoch *store_epoch = member_line_of(req)->store_epoch;
    uint64_t most = epoch_granted_most(store_epoch, keys_stripe_of(grant->lease), grant->token.epoch);
    bool again = worker_of(req)->service->settings.threads == 1 && most >= (uint64_t)grant->token.number;

    acquire_token_known(req, grant);
    if (again) {
        epoch_want_pulse(store_epoch);
    }
    return again;
}

/* {"granted", seq, token, epoch, expires in ms, ttl_ms} */
static enum step acquire_granted(struct acquire *a, const struct store_reply *reply)
{
    struct grant grant = {
        .lease = a->lease.name,
        .token = {store_reply_integer(reply, 3), store_reply_integer(reply, 2)},
        .mode = a->request.mode,
        .hold = {a->hold, TOKEN_HOLD_MIN},
        .lease_id = acquire_lease_id(a),
        .holder = {a->request.holder, a->request.holder_len},
        .meta = {a->request.meta, a->request.meta_len},
        .holds = 1,
        .ttl_ms = store_reply_integer(reply, 5),
        .expires_in_ms = store_reply_integer(reply, 4),
    };

    if (acquire_token_came_again(a->lease.req, &grant)) {
        return http_refuse(a->lease.req, PROBLEM_OUTCOME_UNKNOWN);
    }
    worker_count(worker_of(a->lease.req), COUNT_GRANTED);
    return grant_answer(a->lease.req, &grant, 201);
}

/* A grant that others may have made, some time ago, and which is told now for the first time. */
static enum step claimed_answer(struct http_request *req, struct grant *grant)
{
    if (grant_is_sound(grant)) {
        acquire_token_known(req, grant);
    }
    worker_count(worker_of(req), COUNT_GRANTED);
    return grant_answer(req, grant, 201);
}

/* {"replayed" | "entered" | "claimed", seq, ...}: it has it already. */
static enum step acquire_has(struct acquire *a, const struct store_reply *reply)
{
    bool entered = store_reply_is(reply, "entered");
    struct grant grant;

    grant_read(&grant, reply);
    grant.lease = a->lease.name;
    grant.lease_id = acquire_lease_id(a);
    if (store_reply_is(reply, "claimed")) {
        return claimed_answer(a->lease.req, &grant);
    }
    worker_count(worker_of(a->lease.req), entered ? COUNT_ENTERED : COUNT_REPLAYED);
    return grant_answer(a->lease.req, &grant, 200);
}

enum step acquire_mismatch_answer(struct http_request *req, struct bytes name, int64_t permits)
{
    struct json_out *json = http_problem_begin(req, PROBLEM_PERMITS_MISMATCH, NULL);

    json_text(json, "lease", name);
    json_int(json, "permits", permits);
    return http_problem_end(req, 0);
}

static void acquire_again(struct loop_timer *timer)
{
    struct acquire *a = container_of(timer, struct acquire, again);

    loop_timer_done(timer);
    acquire_run(a);
}

bool acquire_is_patient(const struct http_request *req, uint64_t *until_ms, struct loop_timer *again,
                        void (*rings)(struct loop_timer *timer))
{
    epoch_want_pulse(member_line_of(req)->store_epoch);
    if (*until_ms == 0) {
        *until_ms = loop_now_ms() + PATIENCE_MS;
    }
    if (loop_now_ms() >= *until_ms) {
        return false;
    }
    loop_timer_init(worker_of(req)->loop, again, rings);
    loop_timer_arm(again, AGAIN_MS, 0);
    return true;
}

/* Words that say all there is to say. */
static const struct {
    const char *word;
    enum problem problem;
    const char *detail; /* NULL: the problem's */
} plain_refusals[] = {
    {"key-reused", PROBLEM_KEY_REUSED, NULL},
    {"session-lost", PROBLEM_SESSION_LOST, NULL},
    {"forbidden", PROBLEM_FORBIDDEN, "Nothing was granted: the Session-Secret is not that of this session."},
    {"session-full", PROBLEM_OUT_OF_RANGE,
     "A session may have 10000 leases. Nothing was granted. Release some, or open another session."},
    {"desk-gone", PROBLEM_STORE_UNAVAILABLE,
     "Nothing was granted, and nobody can wait here just now: this service was cut off from the store. Try "
     "again."},
};

enum step acquire_refused_answer(struct http_request *req, const struct store_reply *reply)
{
    for (size_t i = 0; i < sizeof(plain_refusals) / sizeof(plain_refusals[0]); i++) {
        if (store_reply_is(reply, plain_refusals[i].word)) {
            return http_refuse_detail(req, plain_refusals[i].problem, plain_refusals[i].detail);
        }
    }
    if (store_reply_is(reply, "keys-full")) {
        return lease_keys_full_answer(req);
    }
    if (store_reply_is(reply, "exhausted") || store_reply_is(reply, "ceiling") ||
        store_reply_is(reply, "held-off")) {
        return lease_held_off_answer(req, reply);
    }
    return http_refuse(req, PROBLEM_INTERNAL);
}

static enum step acquire_refused(struct acquire *a, const struct store_reply *reply)
{
    struct http_request *req = a->lease.req;

    if (store_reply_is(reply, "held")) {
        return lease_held_answer(req, PROBLEM_LEASE_HELD, a->lease.name, reply, 2);
    }
    if (store_reply_is(reply, "over")) {
        return lease_ended_answer(req, PROBLEM_HOLD_OVER, a->lease.name, store_reply_text(reply, 2));
    }
    if (store_reply_is(reply, "differs")) {
        return lease_refuse(req, PROBLEM_HOLD_DIFFERS, a->lease.name);
    }
    if (store_reply_is(reply, "mismatch")) {
        return acquire_mismatch_answer(req, a->lease.name, store_reply_integer(reply, 2));
    }
    return acquire_refused_answer(req, reply);
}

static enum step acquire_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct acquire *a = container_of(call, struct acquire, lease.record.store);
    enum problem bad = member_problem(&a->lease.record, outcome, reply);

    if (bad == PROBLEM_NONE && store_reply_is(reply, "queued") && a->waiter != NULL) {
        return wait_begin(a->waiter, a->lease.req);
    }
    if (bad == PROBLEM_NONE && store_reply_is(reply, "ceiling") &&
        acquire_is_patient(a->lease.req, &a->patient_until_ms, &a->again, acquire_again)) {
        return SUSPENDED;
    }
    if (a->waiter != NULL) {
        wait_drop(a->waiter);
    }
    if (bad != PROBLEM_NONE) {
        return http_refuse(a->lease.req, bad);
    }
    if (store_reply_is(reply, "granted")) {
        return acquire_granted(a, reply);
    }
    if (store_reply_is(reply, "replayed") || store_reply_is(reply, "entered") ||
        store_reply_is(reply, "claimed")) {
        return acquire_has(a, reply);
    }
    return acquire_refused(a, reply);
}

static enum step acquire_claimed(struct http_request *req, const struct wait_request *request,
                                 const struct store_reply *reply, int64_t waited_ms)
{
    struct grant grant;

    grant_read(&grant, reply);
    grant.lease = request->name;
    grant.lease_id = request->lease_id;
    grant.waited_ms = waited_ms;
    if (store_reply_is(reply, "handed") && grant_is_sound(&grant) && acquire_token_came_again(req, &grant)) {
        return http_refuse(req, PROBLEM_OUTCOME_UNKNOWN);
    }
    return claimed_answer(req, &grant);
}
