/* acquire.c - POST /v1/leases/{name}: lend the lease to one holder.
 *
 *   acquire_start   read the ask             400 | 422, or go on
 *   acquire_ask     run acquire.lua          suspended
 *   acquire_answer  tell the holder          201 | 200 | 409 | 503 | 504
 *   acquire_again   the floor is just being raised: ask once more, for half a second */
#include <inttypes.h>
#include <stdio.h>

#include "lease/ask.h"
#include "lease/grant.h"
#include "lease/operation.h"
#include "lease_scripts.h"

enum { TTL_MS_DEFAULT = 30000, AGAIN_MS = 5, PATIENCE_MS = 500 };

struct acquire {
    struct lease_call lease;
    struct lease_ask ask;
    char hold[TOKEN_HOLD_MIN + 1];
    char ttl[LEASE_NUMBER_SIZE];
    struct loop_timer again;
    uint64_t patient_until_ms; /* 0: the ceiling was not met yet */
};

static enum step acquire_ask(struct acquire *a);
static enum step acquire_run(struct acquire *a);
static enum step acquire_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply);

/* An Idempotency-Key is only of use with a lease_id that the retry will bring too. */
static const char *idempotency_wrong(const struct http_request *req, const struct lease_ask *ask)
{
    unsigned count = 0;
    struct bytes key = http_header(req, "Idempotency-Key", &count);

    if (count > 1 || (count == 1 && !name_is_idempotency_key(key))) {
        return "The header Idempotency-Key must come once, with 1 to 128 visible ASCII characters.";
    }
    if (count == 1 && ask->lease_id_len == 0) {
        return "An acquire with an Idempotency-Key needs a lease_id of yours in its body.";
    }
    return NULL;
}

enum step acquire_start(struct http_request *req)
{
    struct acquire *a = HTTP_SCRATCH(req, struct acquire);
    const char *bad = lease_call_init(&a->lease, req);
    struct ask_wrong wrong;

    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    lease_ask_read(http_body(req), &a->ask, &wrong);
    if (wrong.problem != PROBLEM_NONE) {
        return http_refuse_detail(req, wrong.problem, wrong.detail);
    }
    bad = idempotency_wrong(req, &a->ask);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    return acquire_ask(a);
}

static void acquire_defaults(struct lease_ask *ask)
{
    if (ask->ttl_ms == 0) {
        ask->ttl_ms = TTL_MS_DEFAULT;
    }
    if (ask->holder_len == 0) {
        ask->holder_len = (size_t)snprintf(ask->holder, sizeof(ask->holder), "anonymous");
    }
    if (ask->lease_id_len == 0) {
        name_new_lease_id(ask->lease_id);
        ask->lease_id_len = strlen(ask->lease_id);
    }
}

/* Not while the store's settings can lose a lock, nor when this service's own floor is lost. */
static bool acquire_may_grant(const struct http_request *req)
{
    return store_unsafe(worker_of(req)->store) == NULL && !life_has_lost_its_floor(record_line_of(req)->life);
}

static enum step acquire_ask(struct acquire *a)
{
    struct lease_call *lease = &a->lease;
    struct bytes *args = &lease->argv[LEASE_KEYS];

    acquire_defaults(&a->ask);
    token_hold_name(a->hold);
    args[1] = (struct bytes){a->ask.lease_id, a->ask.lease_id_len};
    args[2] = (struct bytes){a->hold, TOKEN_HOLD_MIN};
    args[3] = (struct bytes){a->ask.holder, a->ask.holder_len};
    args[4] = (struct bytes){a->ttl, (size_t)snprintf(a->ttl, sizeof(a->ttl), "%" PRId64, a->ask.ttl_ms)};
    args[5] = (struct bytes){a->ask.meta, a->ask.meta_len};
    args[6] = lease_call_remember(lease);
    args[7] = acquire_may_grant(lease->req) ? BYTES("grant") : BYTES("hold-off");
    return acquire_run(a);
}

static enum step acquire_run(struct acquire *a)
{
    return lease_call_run(&a->lease, &script_acquire, 8, acquire_answer);
}

/* A counter that fell back under our hands. With one worker the answers come in the order of the grants; with
 * more the next pulse finds it. What was granted so is not told to anybody, and ends when the store is gated.
 */
static bool token_came_again(const struct acquire *a, const struct token *token)
{
    struct life *life = record_line_of(a->lease.req)->life;
    uint64_t most = life_granted_most(life, a->lease.stripe_number, token->epoch);
    bool again = worker_of(a->lease.req)->service->settings.threads == 1 && most >= (uint64_t)token->number;

    life_granted(life, a->lease.stripe_number, token->epoch, token->number);
    if (again) {
        life_want_pulse(life);
    }
    return again;
}

static enum step acquire_granted(struct acquire *a, const struct store_reply *reply)
{
    struct grant grant = {
        .token = {store_reply_integer(reply, 3), store_reply_integer(reply, 2)},
        .hold = {a->hold, TOKEN_HOLD_MIN},
        .lease_id = {a->ask.lease_id, a->ask.lease_id_len},
        .holder = {a->ask.holder, a->ask.holder_len},
        .meta = {a->ask.meta, a->ask.meta_len},
        .holds = 1,
        .ttl_ms = a->ask.ttl_ms,
        .expires_in_ms = a->ask.ttl_ms,
    };

    if (token_came_again(a, &grant.token)) {
        return http_refuse(a->lease.req, PROBLEM_OUTCOME_UNKNOWN);
    }
    worker_count(worker_of(a->lease.req), COUNT_GRANTED);
    return grant_answer(&a->lease, &grant, 201);
}

static enum step acquire_replayed(struct acquire *a, const struct store_reply *reply)
{
    struct grant grant;

    grant_read(&grant, reply);
    grant.lease_id = (struct bytes){a->ask.lease_id, a->ask.lease_id_len};
    worker_count(worker_of(a->lease.req), COUNT_REPLAYED);
    return grant_answer(&a->lease, &grant, 200);
}

static enum step acquire_held(struct acquire *a, const struct store_reply *reply)
{
    struct json_out *json = http_problem_begin(a->lease.req, PROBLEM_LEASE_HELD, NULL);

    json_text(json, "lease", a->lease.name);
    json_int(json, "token", store_reply_integer(reply, 2));
    json_text(json, "holder", store_reply_text(reply, 3));
    json_int(json, "expires_in_ms", store_reply_integer(reply, 4));
    return http_problem_end(a->lease.req, 0);
}

static enum step acquire_over(struct acquire *a, const struct store_reply *reply)
{
    struct json_out *json = http_problem_begin(a->lease.req, PROBLEM_HOLD_OVER, NULL);

    json_text(json, "lease", a->lease.name);
    json_text(json, "ended", store_reply_text(reply, 2));
    return http_problem_end(a->lease.req, 0);
}

static void acquire_again(struct loop_timer *timer)
{
    struct acquire *a = container_of(timer, struct acquire, again);

    loop_timer_done(timer);
    acquire_run(a);
}

/* Nothing was granted, and a higher floor is recorded within milliseconds where the disk is well. */
static enum step acquire_ceiling(struct acquire *a)
{
    struct worker *worker = worker_of(a->lease.req);

    life_want_pulse(record_line_of(a->lease.req)->life);
    if (a->patient_until_ms == 0) {
        a->patient_until_ms = loop_now_ms() + PATIENCE_MS;
    }
    if (loop_now_ms() >= a->patient_until_ms) {
        return http_refuse(a->lease.req, PROBLEM_FLOOR_REACHED);
    }
    loop_timer_init(worker->loop, &a->again, acquire_again);
    loop_timer_arm(&a->again, AGAIN_MS, 0);
    return SUSPENDED;
}

static enum step acquire_held_off(struct acquire *a)
{
    char detail[LIFE_DETAIL_SIZE];

    if (life_has_lost_its_floor(record_line_of(a->lease.req)->life) &&
        life_trouble(record_line_of(a->lease.req)->life, detail)) {
        return http_refuse_detail(a->lease.req, PROBLEM_FLOOR_REACHED, detail);
    }
    return http_refuse(a->lease.req, PROBLEM_STORE_UNSAFE);
}

static enum step acquire_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct acquire *a = container_of(call, struct acquire, lease.record.store);
    enum problem bad = record_problem(&a->lease.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return http_refuse(a->lease.req, bad);
    }
    if (store_reply_is(reply, "granted")) {
        return acquire_granted(a, reply);
    }
    if (store_reply_is(reply, "replayed")) {
        return acquire_replayed(a, reply);
    }
    if (store_reply_is(reply, "held")) {
        return acquire_held(a, reply);
    }
    if (store_reply_is(reply, "over")) {
        return acquire_over(a, reply);
    }
    if (store_reply_is(reply, "exhausted")) {
        return http_refuse(a->lease.req, PROBLEM_TOKEN_EXHAUSTED);
    }
    if (store_reply_is(reply, "ceiling")) {
        return acquire_ceiling(a);
    }
    if (store_reply_is(reply, "held-off")) {
        return acquire_held_off(a);
    }
    return http_refuse(a->lease.req, PROBLEM_INTERNAL);
}
