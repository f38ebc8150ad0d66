/* acquire.c - POST /v1/leases/{name}: grant the lease, or queue the request; POST /v1/leases: the same with
 * several leases, all of them in one step.
 *
 *   acquire_start, acquire_several_start   read the request               400 | 422, or go on
 *   acquire_begin     take a place to wait                                503, or go on
 *   acquire_run       several: wait for the turn (queue.h)                503, or suspended
 *   acquire_send      run acquire.lua or acquire_all.lua                  403 | 503, or suspended
 *   acquire_answer    granted, or it is held already                      201 | 200
 *                     refused                                             403 | 409 | 410 | 422 | 503 | 504
 *                     queued: wait (queue.h)
 *                     the floor is being raised: again, for half a second
 *   one_claimed, several_claimed   it has waited, and was granted         201 */
#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/request.h"
#include "lease/worker.h"
#include "scripts.h"

enum { AGAIN_MS = 5, PATIENCE_MS = 500 };

/* One lease, or several. */
struct acquire_kind {
    const struct store_script *script;
    const struct script_answer *answers;
    struct wait_kind wait;
};

struct acquire {
    struct lease_call lease; /* of several: the first */
    const struct acquire_kind *kind;
    struct lease_request request;
    struct acquire_options options;
    enum access_quota over; /* of options.over */
    struct bytes lease_id;  /* in request */
    struct waiter *waiter;  /* NULL: the client does not want to wait */
    struct turn_call turn;  /* of several */
    unsigned judged_by;     /* by which rules it may be had */
    char hold[TOKEN_HOLD_MIN + 1];
    char ttl[LEASE_NUMBER_SIZE];
    struct loop_timer again;
    uint64_t patient_until_ms; /* 0: the ceiling was not met yet */
};

static member_done_fn acquire_answer;

/* -- the call */

/* wait_new() has given NULL: the reason for which nothing could be granted either, or this service is finding
 * its way to the store. */
static enum step acquire_no_inbox(struct http_request *req)
{
    enum problem problem = member_line_problem(member_line_of(req));

    if (problem != PROBLEM_NONE)
        return http_refuse(req, problem);
    return http_refuse_detail(
        req, PROBLEM_STORE_UNAVAILABLE,
        "Nothing was granted, and nobody can wait here just now: this service is finding its "
        "way to the store. Try again.");
}

/* Without the store. */
static enum step acquire_refuse(struct acquire *a, enum problem bad)
{
    if (a->waiter != NULL)
        wait_drop(a->waiter);
    return http_refuse(a->lease.req, bad);
}

/* The first that its caller may not have; empty: it may have all. */
static struct bytes several_denied(const struct http_request *req, const struct lease_names *names)
{
    for (unsigned i = 0; i < names->count; i++)
        if (!service_allows(req, ACCESS_ACQUIRE, names->name[i]))
            return names->name[i];
    return (struct bytes){NULL, 0};
}

/* The rules, or credentials, have changed while it waited: for its turn, or for a higher floor. */
static enum step acquire_judge(struct acquire *a)
{
    struct http_request *req = a->lease.req;
    struct lease_request request = {.ttl_ms = 0};
    struct lease_names names = {.name = {a->lease.name}, .count = a->kind->wait.in_turn ? 0 : 1};
    struct request_fault fault;
    struct bytes denied;

    if (a->kind->wait.in_turn)
        lease_request_several_read(http_body(req), &request, &names, &fault);
    denied = several_denied(req, &names);
    if (http_stands(req) && denied.len == 0)
        return SUSPENDED;
    if (a->waiter != NULL)
        wait_drop(a->waiter);
    return service_forbid(req, ACCESS_ACQUIRE, denied.len > 0 ? denied : a->lease.name);
}

static enum step acquire_send(struct acquire *a)
{
    struct waiter *waiter = a->waiter;
    enum step step;

    if (a->judged_by != worker_of(a->lease.req)->judged_by && acquire_judge(a) == ANSWERED)
        return ANSWERED;
    lease_call_arg(&a->lease, 8, grant_may_new(worker_of(a->lease.req)));
    step = lease_call_send(&a->lease, a->kind->script,
                           lease_call_asker(&a->lease, http_identity(a->lease.req), 9), acquire_answer);
    if (step == ANSWERED && waiter != NULL)
        wait_drop(waiter); /* refused, without the store */
    return step;
}

static void acquire_turn(struct turn_call *turn, enum problem bad)
{
    struct acquire *a = container_of(turn, struct acquire, turn);
    struct lease_worker *own = lease_worker_of(a->lease.req);

    if (bad != PROBLEM_NONE)
        acquire_refuse(a, bad);
    else if (acquire_send(a) == ANSWERED)
        turn_done(&own->turn, 0);
}

static enum step acquire_run(struct acquire *a)
{
    if (!a->kind->wait.in_turn)
        return acquire_send(a);
    a->turn.go = acquire_turn;
    return turn_wait(&lease_worker_of(a->lease.req)->turn, &a->turn, TURN_ACQUIRE)
               ? SUSPENDED
               : acquire_refuse(a, PROBLEM_OVERLOADED);
}

static void acquire_again(struct loop_timer *timer)
{
    loop_timer_done(timer);
    acquire_run(container_of(timer, struct acquire, again));
}

/* "ceiling": nothing was granted, and a higher floor is recorded within milliseconds where the disk is well.
 * false: that was waited for long enough. */
static bool acquire_is_patient(struct acquire *a)
{
    epoch_want_heartbeat(member_line_of(a->lease.req)->store_epoch);
    if (a->patient_until_ms == 0)
        a->patient_until_ms = loop_now_ms() + PATIENCE_MS;
    if (loop_now_ms() >= a->patient_until_ms)
        return false;
    loop_timer_init(worker_of(a->lease.req)->loop, &a->again, acquire_again);
    loop_timer_arm(&a->again, AGAIN_MS, 0);
    return true;
}

/* By its words, which the answers name but for those that refuse. */
static bool acquire_is_granted(const struct acquire *a, const struct store_reply *reply)
{
    const struct script_answer *answer = a->kind->answers;

    while (answer->word != NULL && !store_reply_is(reply, answer->word))
        answer++;
    return answer->word != NULL;
}

static enum step acquire_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct acquire *a = container_of(call, struct acquire, lease.record);
    struct http_request *req = a->lease.req;

    if (a->kind->wait.in_turn)
        turn_done(&lease_worker_of(req)->turn, store_network_us(worker_of(req)->store));
    if (bad == PROBLEM_NONE && a->waiter != NULL && store_reply_is(reply, "queued"))
        return wait_begin(a->waiter, req);
    if (bad == PROBLEM_NONE && store_reply_is(reply, "ceiling") && acquire_is_patient(a))
        return SUSPENDED;
    if (a->waiter != NULL && bad == PROBLEM_NONE && acquire_is_granted(a, reply))
        wait_drop_granted(a->waiter);
    else if (a->waiter != NULL)
        wait_drop(a->waiter);
    return bad != PROBLEM_NONE ? http_refuse(req, bad) : lease_answer(&a->lease, reply, a->kind->answers);
}

/* -- granted */

/* Of a sound grant that a script has just made: whether its counter fell back meanwhile. With one worker the
 * answers come in the order of the grants; with more the next heartbeat finds it. The token of a grant that
 * others may have made, some time ago, is only noted. */
static bool token_came_again(const struct http_request *req, const struct grant *grant)
{
    struct epoch *store_epoch = member_line_of(req)->store_epoch;
    unsigned stripe = keys_stripe_of(grant->lease);
    uint64_t most = epoch_granted_most(store_epoch, stripe, grant->token.epoch);

    epoch_granted(store_epoch, stripe, grant->token.epoch, grant->token.number);
    return worker_of(req)->service->settings.threads == 1 && most >= (uint64_t)grant->token.number;
}

/* What was granted so is sent to nobody, and ends when the store is gated. */
static enum step token_refuse(struct http_request *req)
{
    epoch_want_heartbeat(member_line_of(req)->store_epoch);
    return http_refuse(req, PROBLEM_OUTCOME_UNKNOWN);
}

/* {"granted", seq, token, epoch, expires in ms, ttl_ms} */
static enum step one_granted(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);
    struct http_request *req = a->lease.req;
    struct grant grant = {
        .lease = a->lease.name,
        .token = {store_reply_integer(reply, 3), store_reply_integer(reply, 2)},
        .mode = a->request.mode,
        .hold = {a->hold, TOKEN_HOLD_MIN},
        .lease_id = a->lease_id,
        .holder = {a->request.holder, a->request.holder_len},
        .identity = bytes_of(http_identity(req) != NULL ? http_identity(req) : ""),
        .meta = {a->request.meta, a->request.meta_len},
        .holds = 1,
        .ttl_ms = store_reply_integer(reply, 5),
        .expires_in_ms = store_reply_integer(reply, 4),
    };

    if (token_came_again(req, &grant))
        return token_refuse(req);
    worker_count(worker_of(req), COUNT_GRANTED);
    return grant_answer(req, &grant, 201);
}

/* {"replayed" | "entered", seq, ...}: it has it already. */
static enum step one_replayed(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);
    struct grant grant = grant_read(reply, a->lease.name, a->lease_id);

    worker_count(worker_of(a->lease.req), store_reply_is(reply, "entered") ? COUNT_ENTERED : COUNT_REPLAYED);
    return grant_answer(a->lease.req, &grant, 200);
}

static enum step one_claimed(struct http_request *req, const struct wait_request *request,
                             const struct store_reply *reply, int64_t waited_ms)
{
    struct grant grant = grant_read(reply, request->name, request->lease_id);
    bool again = grant_is_sound(&grant) && token_came_again(req, &grant);

    if (again && store_reply_is(reply, "handed"))
        return token_refuse(req);
    grant.waited_ms = waited_ms;
    worker_count(worker_of(req), COUNT_GRANTED);
    return grant_answer(req, &grant, 201);
}

/* Element i of {{name, seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta, mode}, ...};
 * false: it is not one of ours. */
static bool several_read(const struct store_reply *list, size_t i, struct bytes lease_id, struct grant *grant)
{
    const struct store_reply *one = store_reply_list(list, i);

    if (one == NULL)
        return false;
    *grant = grant_read(one, store_reply_text(one, 0), lease_id);
    return grant_is_sound(grant) && name_is_lease(grant->lease);
}

/* Whether the token of any came again; all are noted. */
static bool several_came_again(const struct http_request *req, const struct store_reply *list)
{
    bool again = false;
    struct grant grant;

    for (size_t i = 0; list != NULL && i < store_reply_count(list); i++)
        if (several_read(list, i, BYTES(""), &grant) && token_came_again(req, &grant))
            again = true;
    return again;
}

/* count: which metric. */
static enum step several_answer(struct http_request *req, struct bytes lease_id,
                                const struct store_reply *list, int64_t waited_ms, unsigned count)
{
    struct json_out *json;
    char header[TOKEN_HEADER_SIZE];
    struct grant grant;

    if (list == NULL)
        return http_refuse(req, PROBLEM_INTERNAL);
    worker_count(worker_of(req), count);
    json = http_json_begin(req);
    json_list(json, "grants");
    for (size_t i = 0; i < store_reply_count(list); i++) {
        if (!several_read(list, i, lease_id, &grant))
            return http_refuse(req, PROBLEM_INTERNAL);
        grant.waited_ms = waited_ms;
        grant_write(req, &grant, header);
    }
    json_list_end(json);
    return http_json_end(req, count == COUNT_GRANTED ? 201 : 200);
}

static enum step several_granted(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);
    const struct store_reply *list = store_reply_list(reply, 2);

    return several_came_again(a->lease.req, list)
               ? token_refuse(a->lease.req)
               : several_answer(a->lease.req, a->lease_id, list, 0, COUNT_GRANTED);
}

static enum step several_replayed(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);

    return several_answer(a->lease.req, a->lease_id, store_reply_list(reply, 2), 0, COUNT_REPLAYED);
}

static enum step several_claimed(struct http_request *req, const struct wait_request *request,
                                 const struct store_reply *reply, int64_t waited_ms)
{
    const struct store_reply *list = store_reply_list(reply, 2);

    several_came_again(req, list); /* only noted */
    return several_answer(req, request->lease_id, list, waited_ms, COUNT_GRANTED);
}

/* {"claimed", seq, ...}: it was handed on to this lease_id before, and is sent for the first time. */
static enum step acquire_claimed(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);
    const struct wait_request request = {.name = a->lease.name, .lease_id = a->lease_id};

    return a->kind->wait.claimed(a->lease.req, &request, reply, 0);
}

/* -- refused. Of several leases the scripts say which one they mean. */

static struct bytes acquire_name(const struct acquire *a, struct bytes said)
{
    return said.len > 0 ? said : a->lease.name;
}

/* {"held", seq, token, holder or "", expires in ms}; of several {"held", seq, {{name, seq, token, ...}, ..}}:
 * those that are not free, the first is the one of the problem itself. */
static enum step acquire_held(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);
    const struct store_reply *list = store_reply_list(reply, 2);
    const struct store_reply *one = list != NULL ? store_reply_list(list, 0) : reply;
    char seconds[BYTES_NUMBER_SIZE];
    struct json_out *json;

    if (one == NULL)
        return http_refuse(a->lease.req, PROBLEM_INTERNAL);
    /* A holder may renew or release; a delay ends when it said. */
    if (list == NULL && store_reply_text(one, 3).len == 0)
        http_reply_header(a->lease.req, "Retry-After",
                          bytes_of_number(seconds, store_reply_integer(one, 4) / 1000 + 1));
    json = http_problem_begin(a->lease.req, PROBLEM_LEASE_HELD, NULL);
    lease_held_write(json, a->lease.req, list != NULL ? store_reply_text(one, 0) : a->lease.name, one, 2);
    if (list != NULL) {
        json_list(json, "leases");
        for (size_t i = 0; (one = store_reply_list(list, i)) != NULL; i++) {
            json_object(json, NULL);
            lease_held_write(json, a->lease.req, store_reply_text(one, 0), one, 2);
            json_object_end(json);
        }
        json_list_end(json);
    }
    return http_problem_end(a->lease.req, 0);
}

static enum step acquire_over(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);

    return lease_ended_answer(a->lease.req, PROBLEM_HOLD_OVER, acquire_name(a, store_reply_text(reply, 3)),
                              store_reply_text(reply, 2));
}

static enum step acquire_differs(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);

    return lease_refuse(a->lease.req, PROBLEM_HOLD_DIFFERS, acquire_name(a, store_reply_text(reply, 2)));
}

static enum step acquire_mismatch(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);
    struct json_out *json = http_problem_begin(a->lease.req, PROBLEM_PERMITS_MISMATCH, NULL);

    json_text(json, "lease", acquire_name(a, store_reply_text(reply, 3)));
    json_int(json, "permits", store_reply_integer(reply, 2));
    return http_problem_end(a->lease.req, 0);
}

static enum step acquire_held_off(struct member_call *call, const struct store_reply *reply)
{
    struct http_request *req = container_of(call, struct acquire, lease.record)->lease.req;
    struct epoch *store_epoch = member_line_of(req)->store_epoch;
    char detail[EPOCH_DETAIL_SIZE];

    (void)reply;
    if (epoch_has_lost_its_floor(store_epoch) && epoch_trouble(store_epoch, detail))
        return http_refuse_detail(req, PROBLEM_FLOOR_REACHED, detail);
    return http_refuse(req, store_unsafe(member_line_of(req)->store) != NULL ? PROBLEM_STORE_UNSAFE
                                                                             : PROBLEM_STORE_FULL);
}

static enum step acquire_over_quota(struct member_call *call, const struct store_reply *reply)
{
    const struct acquire *a = container_of(call, struct acquire, lease.record);

    (void)reply;
    return service_quota_refuse(a->lease.req, a->over);
}

static enum step acquire_refused(struct member_call *call, const struct store_reply *reply)
{
    static const struct script_answer answers[] = {
        {.word = "held", .ends = acquire_held},
        {.word = "over", .ends = acquire_over},
        {.word = "differs", .ends = acquire_differs},
        {.word = "mismatch", .ends = acquire_mismatch},
        {.word = "key-reused", .problem = PROBLEM_KEY_REUSED},
        {.word = "keys-full", .problem = PROBLEM_OUT_OF_RANGE, .detail = LEASE_KEYS_FULL},
        {.word = "session-lost", .problem = PROBLEM_SESSION_LOST},
        {.word = "not-yours", .problem = PROBLEM_NOT_YOURS},
        {.word = "session-full",
         .problem = PROBLEM_OUT_OF_RANGE,
         .detail = "A session may have 10000 leases. Nothing was granted. Release some, or open another "
                   "session."},
        {.word = "desk-gone",
         .problem = PROBLEM_STORE_UNAVAILABLE,
         .detail = "Nothing was granted, and nobody can wait here just now: this service was cut off from "
                   "the store. Try again."},
        {.word = "exhausted", .problem = PROBLEM_TOKEN_EXHAUSTED},
        {.word = "ceiling", .problem = PROBLEM_FLOOR_REACHED},
        {.word = "held-off", .ends = acquire_held_off},
        {.word = "quota", .ends = acquire_over_quota},
        ANSWER_OTHER,
    };

    return lease_answer(container_of(call, struct lease_call, record), reply, answers);
}

/* -- the request */

/* It lies where the answer will be written; an acquire that asks for none of it has no such place yet. */
static struct bytes acquire_pack(struct acquire *a, const struct lease_names *names)
{
    struct bytes inbox = a->waiter != NULL ? inbox_key(lease_worker_of(a->lease.req)->inbox) : BYTES("");
    uint64_t wid = a->waiter != NULL ? wait_wid(a->waiter) : 0;

    if (wid == 0 && names == NULL && !acquire_options_are_asked(&a->options, &a->request))
        return BYTES("");
    return acquire_options_write(&a->options, &a->request, inbox, wid, names, http_json(a->lease.req));
}

/* The list [[stripe, name], ...]: what acquire_options_write() writes last, and no name has a bracket in it.
 */
static struct bytes packed_names(struct bytes packed)
{
    const char *end = packed.at + packed.len - 1, *at = end;

    while (at > packed.at && !(at[0] == '[' && at[-1] == '['))
        at--;
    return (struct bytes){at - 1, (size_t)(end - at) + 1};
}

/* Whether it has as much as it may have. The store refuses for that last, and only what is new. is_counted:
 * it counts among those who wait; kept_ms: for how long a place of before is kept. */
static void acquire_count(struct acquire *a, const struct lease_names *names, bool *is_counted,
                          uint64_t *kept_ms)
{
    struct http_request *req = a->lease.req;

    if (!service_judges(req) || http_identity(req) == NULL)
        return;
    *is_counted = a->request.wait_ms > 0 && service_waiting_take(worker_of(req), http_identity(req),
                                                                 a->lease.name, a->lease_id, kept_ms);
    if (service_quota_room(req, ACCESS_HELD) < (names != NULL ? (int64_t)names->count : 1))
        a->over = ACCESS_HELD;
    else if (a->request.wait_ms > 0 && !*is_counted)
        a->over = ACCESS_WAITING;
    else
        return;
    a->options.over = access_quota_name(a->over);
}

/* names: of several; NULL for one. The place is taken first: the grant may be announced to it before the
 * script's own answer arrives. */
static enum step acquire_begin(struct acquire *a, const struct lease_names *names)
{
    struct lease_call *lease = &a->lease;
    const struct lease_request *request = &a->request;
    const char *bad = names != NULL && request->reentrant
                          ? "Several leases are not entered again. Leave the member reentrant out."
                          : acquire_options_read(&a->options, request, lease->req);
    bool is_counted = false;
    uint64_t kept_ms = 0;

    if (bad != NULL)
        return http_refuse_detail(lease->req, PROBLEM_INVALID_REQUEST, bad);
    a->judged_by = worker_of(lease->req)->judged_by;
    lease_request_defaults(&a->request, http_identity(lease->req));
    token_hold_name(a->hold);
    a->lease_id = (struct bytes){request->lease_id, request->lease_id_len};
    acquire_count(a, names, &is_counted, &kept_ms);
    if (request->wait_ms > 0) {
        a->waiter = wait_new(worker_of(lease->req), &a->kind->wait,
                             &(struct wait_request){
                                 .name = lease->name,
                                 .lease_id = a->lease_id,
                                 .hold = {a->hold, TOKEN_HOLD_MIN},
                                 .extra = names != NULL ? packed_names(acquire_pack(a, names)) : BYTES(""),
                                 .identity = http_identity(lease->req),
                                 .is_counted = is_counted,
                                 .kept_ms = kept_ms,
                                 .started_us = loop_now_us(),
                                 .wait_ms = request->wait_ms,
                                 .keep_ms = request->keep_place_ms,
                             });
        if (a->waiter == NULL)
            return acquire_no_inbox(lease->req);
    }
    lease_call_secret(lease, a->lease_id);
    lease_call_arg(lease, 4, (struct bytes){a->hold, TOKEN_HOLD_MIN});
    lease_call_arg(lease, 5, (struct bytes){request->holder, request->holder_len});
    lease_call_arg(lease, 6, bytes_of_number(a->ttl, request->ttl_ms));
    lease_call_arg(lease, 7, (struct bytes){request->meta, request->meta_len});
    lease_call_arg(lease, 9, acquire_pack(a, names));
    return acquire_run(a);
}

enum step acquire_start(struct http_request *req)
{
    static const struct script_answer answers[] = {
        {.word = "granted", .ends = one_granted},  {.word = "replayed", .ends = one_replayed},
        {.word = "entered", .ends = one_replayed}, {.word = "claimed", .ends = acquire_claimed},
        {.word = NULL, .ends = acquire_refused},
    };
    static const struct acquire_kind one = {
        &script_acquire, answers, {&script_claim, &script_leave, false, one_claimed}};
    struct acquire *a = HTTP_SCRATCH(req, struct acquire);
    const char *bad = lease_call_init(&a->lease, req);
    struct request_fault fault;

    if (bad != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    lease_request_read(http_body(req), &a->request, &fault);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    a->kind = &one;
    return acquire_begin(a, NULL);
}

enum step acquire_several_start(struct http_request *req)
{
    static const struct script_answer answers[] = {
        {.word = "granted", .ends = several_granted},
        {.word = "replayed", .ends = several_replayed},
        {.word = "claimed", .ends = acquire_claimed},
        {.word = NULL, .ends = acquire_refused},
    };
    static const struct acquire_kind several = {
        &script_acquire_all, answers, {&script_claim_all, &script_leave_all, true, several_claimed}};
    struct acquire *a = HTTP_SCRATCH(req, struct acquire);
    struct lease_names names = {.count = 0};
    struct request_fault fault;
    struct bytes denied;

    lease_request_several_read(http_body(req), &a->request, &names, &fault);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    denied = several_denied(req, &names);
    if (denied.len > 0)
        return service_forbid(req, ACCESS_ACQUIRE, denied);
    lease_call_fill(&a->lease, worker_of(req), names.name[0]);
    a->lease.req = req;
    a->kind = &several;
    return acquire_begin(a, &names);
}
