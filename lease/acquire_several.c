/* acquire_several.c - POST /v1/leases: lend several leases to one holder, all of them in one step, or let him
 * wait in the line of each.
 *
 *   all_start    read the request, take a place to wait     400 | 422 | 503, or go on
 *   all_ask      wait for the turn (turn.h)             503, or suspended
 *   all_goes     run acquire_all.lua                    suspended | 503
 *   all_answer   tell the holder                        201 | 200 | 403 | 409 | 410 | 422 | 503 | 504, or
 * wait (wait.h) all_again    the floor is just being raised: ask once more, for half a second all_claimed  he
 * has waited, and they are his        201 */
#include <stdio.h>

#include "lease/acquire.h"
#include "lease/acquire_options.h"
#include "lease/operation.h"
#include "lease/queue/wait.h"
#include "lease/worker.h"
#include "scripts.h"

struct all {
    struct lease_call lease; /* of the first */
    struct lease_request request;
    struct acquire_options acquire_options;
    struct waiter *waiter; /* NULL: he does not want to wait */
    struct turn_call turn;
    char hold[TOKEN_HOLD_MIN + 1];
    char ttl[LEASE_NUMBER_SIZE];
    struct loop_timer again;
    uint64_t patient_until_ms; /* 0: the ceiling was not met yet */
};

static bool all_wait(struct all *a, const struct lease_names *names);
static enum step all_ask(struct all *a, const struct lease_names *names);
static enum step all_run(struct all *a);
static void all_goes(struct turn_call *turn, enum problem bad);
static store_done_fn all_answer;
static enum step all_claimed(struct http_request *req, const struct wait_request *request,
                             const struct store_reply *reply, int64_t waited_ms);

enum step all_start(struct http_request *req)
{
    struct all *a = HTTP_SCRATCH(req, struct all);
    struct lease_names names = {.count = 0};
    struct request_fault wrong;
    const char *bad;

    lease_request_several_read(http_body(req), &a->request, &names, &wrong);
    if (wrong.problem != PROBLEM_NONE) {
        return http_refuse_detail(req, wrong.problem, wrong.detail);
    }
    a->lease.req = req;
    lease_call_fill(&a->lease, worker_of(req), names.name[0]);
    bad = a->request.reentrant ? "Several leases are not entered again. Leave the member reentrant out."
                               : acquire_options_read(&a->acquire_options, &a->request, req);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    lease_request_defaults(&a->request);
    token_hold_name(a->hold);
    return all_wait(a, &names) ? all_ask(a, &names) : acquire_no_inbox(req);
}

static struct bytes all_lease_id(const struct all *a)
{
    return (struct bytes){a->request.lease_id, a->request.lease_id_len};
}

/* A hundred names do not fit into the scratch space: until the answer is written they lie where it will be.
 */
static struct bytes all_pack(struct all *a, const struct lease_names *names)
{
    struct json_out *room = http_json(a->lease.req);
    struct bytes inbox = a->waiter != NULL ? inbox_key(lease_worker_of(a->lease.req)->inbox) : BYTES("");
    uint64_t wid = a->waiter != NULL ? wait_wid(a->waiter) : 0;

    json_out_reset(room);
    json_out_reserve(room, ACQUIRE_OPTIONS_ALL_SIZE);
    return acquire_options_write(&a->acquire_options, &a->request, inbox, wid, names, room->at,
                                 ACQUIRE_OPTIONS_ALL_SIZE);
}

/* The list [[stripe, name], ...]: what acquire_options_write() writes last, and no name has a bracket in it.
 */
static struct bytes all_list(struct bytes packed)
{
    const char *end = packed.at + packed.len - 1, *at = end;

    while (at > packed.at && !(at[0] == '[' && at[-1] == '[')) {
        at--;
    }
    return (struct bytes){at - 1, (size_t)(end - at) + 1};
}

/* The place is taken first, as in acquire.c. */
static bool all_wait(struct all *a, const struct lease_names *names)
{
    static const struct wait_kind kind = {&script_claim_all, &script_leave_all, true, all_claimed};
    struct wait_request request = {
        .name = a->lease.name,
        .lease_id = all_lease_id(a),
        .hold = {a->hold, TOKEN_HOLD_MIN},
        .mode = a->request.mode,
        .started_us = loop_now_us(),
        .wait_ms = a->request.wait_ms,
    };

    if (a->request.wait_ms == 0) {
        return true;
    }
    request.extra = all_list(all_pack(a, names));
    a->waiter = wait_new(worker_of(a->lease.req), &kind, &request);
    return a->waiter != NULL;
}

static enum step all_ask(struct all *a, const struct lease_names *names)
{
    struct lease_call *lease = &a->lease;

    lease_call_arg(lease, 9, all_pack(a, names)); /* whether ttl_ms was stated is part of it */
    acquire_args(lease, &a->request, all_lease_id(a), a->hold, a->ttl);
    return all_run(a);
}

/* Refused without the store. */
static enum step all_sent_away(struct all *a, enum problem bad)
{
    if (a->waiter != NULL) {
        wait_drop(a->waiter);
    }
    return http_refuse(a->lease.req, bad);
}

static enum step all_run(struct all *a)
{
    a->turn.go = all_goes;
    return turn_wait(&lease_worker_of(a->lease.req)->turn, &a->turn, TURN_ACQUIRE)
               ? SUSPENDED
               : all_sent_away(a, PROBLEM_OVERLOADED);
}

static void all_goes(struct turn_call *turn, enum problem bad)
{
    struct all *a = container_of(turn, struct all, turn);
    struct lease_worker *own = lease_worker_of(a->lease.req);
    struct waiter *waiter = a->waiter;

    if (bad != PROBLEM_NONE) {
        all_sent_away(a, bad);
        return;
    }
    lease_call_arg(&a->lease, 8, grant_may_new(worker_of(a->lease.req)));
    if (lease_call_run(&a->lease, &script_acquire_all, 9, all_answer) == ANSWERED) {
        turn_done(&own->turn, 0);
        if (waiter != NULL) {
            wait_drop(waiter);
        }
    }
}

/* -- granted */

/* Element i of {{name, seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta, mode}, ...};
 * false: it is not one of ours. */
static bool all_grant_read(const struct store_reply *list, size_t i, struct grant *grant)
{
    const struct store_reply *one = store_reply_list(list, i);

    if (one == NULL) {
        return false;
    }
    grant_read(grant, one);
    grant->lease = store_reply_text(one, 0);
    return grant_is_sound(grant) && name_is_lease(grant->lease);
}

static enum step all_told(struct http_request *req, struct bytes lease_id, const struct store_reply *list,
                          int64_t waited_ms, unsigned status)
{
    struct json_out *json = http_json_begin(req);
    char header[TOKEN_HEADER_SIZE];
    struct grant grant;

    json_list(json, "grants");
    for (size_t i = 0; i < store_reply_count(list); i++) {
        if (!all_grant_read(list, i, &grant)) {
            return http_refuse(req, PROBLEM_INTERNAL);
        }
        grant.lease_id = lease_id;
        grant.waited_ms = waited_ms;
        grant_write(req, &grant, header);
    }
    json_list_end(json);
    return http_json_end(req, status);
}

static enum step all_granted(struct all *a, const struct store_reply *list)
{
    struct grant grant;
    bool again = false;

    for (size_t i = 0; i < store_reply_count(list); i++) {
        if (all_grant_read(list, i, &grant) && acquire_token_came_again(a->lease.req, &grant)) {
            again = true;
        }
    }
    if (again) {
        return http_refuse(a->lease.req, PROBLEM_OUTCOME_UNKNOWN);
    }
    worker_count(worker_of(a->lease.req), COUNT_GRANTED);
    return all_told(a->lease.req, all_lease_id(a), list, 0, 201);
}

/* Handed on to this lease_id before, and told now for the first time. */
static enum step all_handed_on(struct http_request *req, struct bytes lease_id,
                               const struct store_reply *list, int64_t waited_ms)
{
    struct grant grant;

    for (size_t i = 0; i < store_reply_count(list); i++) {
        if (all_grant_read(list, i, &grant)) {
            acquire_token_known(req, &grant);
        }
    }
    worker_count(worker_of(req), COUNT_GRANTED);
    return all_told(req, lease_id, list, waited_ms, 201);
}

static enum step all_claimed(struct http_request *req, const struct wait_request *request,
                             const struct store_reply *reply, int64_t waited_ms)
{
    const struct store_reply *list = store_reply_list(reply, 2);

    return list != NULL ? all_handed_on(req, request->lease_id, list, waited_ms)
                        : http_refuse(req, PROBLEM_INTERNAL);
}

static enum step all_has(struct all *a, const struct store_reply *reply, const struct store_reply *list)
{
    if (store_reply_is(reply, "granted")) {
        return all_granted(a, list);
    }
    if (store_reply_is(reply, "claimed")) {
        return all_handed_on(a->lease.req, all_lease_id(a), list, 0);
    }
    worker_count(worker_of(a->lease.req), COUNT_REPLAYED);
    return all_told(a->lease.req, all_lease_id(a), list, 0, 200);
}

/* -- not granted */

/* A list {{name, seq, token, holder or "", expires in ms}, ...} of those that are not free; the first is told
 * as that of an acquire of one. */
static enum step all_held(struct http_request *req, const struct store_reply *list)
{
    struct json_out *json = http_problem_begin(req, PROBLEM_LEASE_HELD, NULL);
    const struct store_reply *one;

    lease_held_write(json, store_reply_text(store_reply_list(list, 0), 0), store_reply_list(list, 0), 2);
    json_list(json, "leases");
    for (size_t i = 0; (one = store_reply_list(list, i)) != NULL; i++) {
        json_object(json, NULL);
        lease_held_write(json, store_reply_text(one, 0), one, 2);
        json_object_end(json);
    }
    json_list_end(json);
    return http_problem_end(req, 0);
}

static enum step all_refused(struct http_request *req, const struct store_reply *reply)
{
    const struct store_reply *list = store_reply_list(reply, 2);

    if (store_reply_is(reply, "held") && list != NULL && store_reply_list(list, 0) != NULL) {
        return all_held(req, list);
    }
    if (store_reply_is(reply, "over")) {
        return lease_ended_answer(req, PROBLEM_HOLD_OVER, store_reply_text(reply, 3),
                                  store_reply_text(reply, 2));
    }
    if (store_reply_is(reply, "differs")) {
        return lease_refuse(req, PROBLEM_HOLD_DIFFERS, store_reply_text(reply, 2));
    }
    if (store_reply_is(reply, "mismatch")) {
        return acquire_mismatch_answer(req, store_reply_text(reply, 3), store_reply_integer(reply, 2));
    }
    return acquire_refused_answer(req, reply);
}

static void all_again(struct loop_timer *timer)
{
    struct all *a = container_of(timer, struct all, again);

    loop_timer_done(timer);
    all_run(a);
}

static bool all_is_had(const struct store_reply *reply)
{
    return store_reply_is(reply, "granted") || store_reply_is(reply, "replayed") ||
           store_reply_is(reply, "claimed");
}

static enum step all_answer(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct all *a = container_of(call, struct all, lease.record.store);
    enum problem bad = member_problem(&a->lease.record, outcome, reply);
    const struct store_reply *list = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;

    turn_done(&lease_worker_of(a->lease.req)->turn, store_network_us(worker_of(a->lease.req)->store));
    if (bad == PROBLEM_NONE && store_reply_is(reply, "queued") && a->waiter != NULL) {
        return wait_begin(a->waiter, a->lease.req);
    }
    if (bad == PROBLEM_NONE && store_reply_is(reply, "ceiling") &&
        acquire_is_patient(a->lease.req, &a->patient_until_ms, &a->again, all_again)) {
        return SUSPENDED;
    }
    if (a->waiter != NULL) {
        wait_drop(a->waiter);
    }
    if (bad != PROBLEM_NONE) {
        return http_refuse(a->lease.req, bad);
    }
    return all_is_had(reply) && list != NULL ? all_has(a, reply, list) : all_refused(a->lease.req, reply);
}
