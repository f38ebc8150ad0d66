/* renew.c - PUT /v1/leases/{name}: set the ttl anew, for the lease_id that holds.
 *
 *   renew_start   read the request             400 | 403 | 422, or go on
 *   renew_ask     run renew.lua            suspended
 *   renew_answer  tell the holder          200 | 410 | 503 | 504 */
#include "lease/acquire_options.h"
#include "lease/grant.h"
#include "lease/operation.h"
#include "lease/request.h"
#include "scripts.h"

struct renew {
    struct lease_call lease;
    struct bytes lease_id, hold;
    int64_t ttl_ms;
    char ttl[LEASE_NUMBER_SIZE];
};

static enum step renew_ask(struct renew *r);
static store_done_fn renew_answer;

enum step renew_start(struct http_request *req)
{
    struct renew *r = HTTP_SCRATCH(req, struct renew);
    const char *bad = lease_call_init(&r->lease, req);
    struct lease_request request = {0};
    struct request_fault wrong;

    bad = bad != NULL ? bad : lease_id_read(req, &r->lease_id);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    renew_request_read(http_body(req), &request, &wrong);
    if (wrong.problem != PROBLEM_NONE) {
        return http_refuse_detail(req, wrong.problem, wrong.detail);
    }
    wrong.problem = lease_hold_read(&r->lease, &r->hold);
    if (wrong.problem != PROBLEM_NONE) {
        return http_refuse(req, wrong.problem);
    }
    r->ttl_ms = request.ttl_ms;
    return renew_ask(r);
}

static enum step renew_ask(struct renew *r)
{
    struct lease_call *lease = &r->lease;

    lease_call_id(lease, r->lease_id);
    lease_call_arg(lease, 4, r->ttl_ms > 0 ? bytes_of_number(r->ttl, r->ttl_ms) : BYTES(""));
    lease_call_arg(lease, 5, r->hold);
    lease_call_arg(lease, 6, grant_may(worker_of(lease->req)));
    return lease_call_run(lease, &script_renew, 6, renew_answer);
}

static enum step renew_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct renew *r = container_of(call, struct renew, lease.record.store);
    enum problem bad = member_problem(&r->lease.record, outcome, reply);
    struct grant grant;

    if (bad != PROBLEM_NONE) {
        return http_refuse(r->lease.req, bad);
    }
    if (store_reply_is(reply, "renewed")) {
        grant_read(&grant, reply);
        grant.lease = r->lease.name;
        grant.lease_id = r->lease_id;
        worker_count(worker_of(r->lease.req), COUNT_RENEWED);
        return grant_answer(r->lease.req, &grant, 200);
    }
    if (store_reply_is(reply, "lost")) {
        return lease_ended_answer(r->lease.req, PROBLEM_LEASE_LOST, r->lease.name,
                                  store_reply_text(reply, 2));
    }
    return http_refuse(r->lease.req, PROBLEM_INTERNAL);
}
