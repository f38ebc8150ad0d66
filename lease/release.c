/* release.c - DELETE /v1/leases/{name}: end the hold of this lease_id, or leave it once.
 *
 *   release_start   run release.lua                        400 | 403, or suspended
 *   release_answer  the inbox learns how the call ended    503 | 504, or go on
 *   released        hand on                                204
 *   left            send how many holds remain             200
 *   lease_lost      how the hold ended                     410
 *
 * All others: 422. */
#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/request.h"
#include "lease/worker.h"
#include "scripts.h"

struct release {
    struct lease_call lease;
    struct acquire_options_key key;
    char inbox[INBOX_KEY_SIZE]; /* where the lease may be handed on in the release's own step */
    bool names_inbox;
    uint64_t sent_us;
};

/* {"released", seq, more, inbox, message}, or {"handed", ...}: most who wait stand at the inbox where the
 * holder releases. */
static enum step released(struct member_call *call, const struct store_reply *reply)
{
    struct release *r = container_of(call, struct release, lease.record);
    struct http_request *req = r->lease.req;
    struct lease_worker *own = lease_worker_of(req);
    bool handed = store_reply_is(reply, "handed");

    worker_count(worker_of(req), COUNT_RELEASED);
    if (handed)
        wait_handed(worker_of(req), r->lease.name, reply, r->sent_us);
    else
        inbox_hear(own->inbox, store_reply_text(reply, 3), store_reply_text(reply, 4));
    if (store_reply_text(reply, handed ? WAIT_HANDED_MORE : 2).len > 0)
        handoff_more(own->handoff, r->lease.name);
    return http_answer(req, 204);
}

/* {"left", seq, holds that remain} */
static enum step left(struct member_call *call, const struct store_reply *reply)
{
    struct http_request *req = container_of(call, struct lease_call, record)->req;

    worker_count(worker_of(req), COUNT_LEFT);
    json_int(http_json_begin(req), "holds", store_reply_integer(reply, 2));
    return http_json_end(req, 200);
}

static enum step release_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    static const struct script_answer answers[] = {
        {.word = "released", .ends = released},
        {.word = "handed", .ends = released},
        {.word = "left", .ends = left},
        {.word = "lost", .ends = lease_lost},
        {.word = "not-yours", .problem = PROBLEM_NOT_YOURS},
        {.word = "key-reused", .problem = PROBLEM_KEY_REUSED},
        {.word = "keys-full", .problem = PROBLEM_OUT_OF_RANGE, .detail = LEASE_KEYS_FULL},
        ANSWER_OTHER,
    };
    struct release *r = container_of(call, struct release, lease.record);
    struct http_request *req = r->lease.req;

    if (r->names_inbox) {
        inbox_release_ended(lease_worker_of(req)->inbox, r->lease.stripe_number,
                            bad != PROBLEM_OUTCOME_UNKNOWN && bad != PROBLEM_INTERNAL);
    }
    return bad != PROBLEM_NONE ? http_refuse(req, bad) : lease_answer(&r->lease, reply, answers);
}

const char *release_all_read(const struct http_request *req, bool *is_all)
{
    static const char *const known[] = {"all", NULL};

    return http_query_flag(req, known, "all", is_all) ? NULL : "The only query known here is ?all=true.";
}

enum step release_start(struct http_request *req)
{
    struct release *r = HTTP_SCRATCH(req, struct release);
    struct lease_call *lease = &r->lease;
    struct inbox *inbox = lease_worker_of(req)->inbox;
    const char *bad = lease_call_init(lease, req);
    struct bytes lease_id, hold;
    bool is_all;
    enum problem problem;
    enum step step;

    bad = bad != NULL ? bad : release_all_read(req, &is_all);
    bad = bad != NULL ? bad : lease_id_read(req, &lease_id);
    bad = bad != NULL ? bad : acquire_options_key_read(&r->key, req);
    if (bad != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    problem = lease_hold_read(lease, &hold);
    if (problem != PROBLEM_NONE)
        return http_refuse(req, problem);
    lease_call_secret(lease, lease_id);
    lease_call_arg(lease, 4, hold);
    lease_call_arg(lease, 5, grant_may(worker_of(req)));
    lease_call_arg(lease, 6, is_all ? BYTES("all") : BYTES("one"));
    lease_call_arg(lease, 7, r->key.key);
    lease_call_arg(lease, 8, bytes_of(r->key.digest));
    r->names_inbox = inbox_release_begins(inbox, lease->stripe_number, r->inbox);
    lease_call_arg(lease, 9, bytes_of(r->inbox));
    r->sent_us = loop_now_us();
    step = lease_call_send(lease, &script_release, lease_call_asker(lease, http_identity(req), 9),
                           release_answer);
    if (step == ANSWERED && r->names_inbox)
        inbox_release_ended(inbox, lease->stripe_number, true);
    return step;
}
