/* renew.c - PUT /v1/leases/{name}: set the ttl anew, for the lease_id that holds.
 *
 *   renew_start  run renew.lua          400 | 403 | 422, or suspended
 *   renewed      send the grant         200
 *   lease_lost   how the hold ended     410
 *
 * All others: 503 | 504. */
#include "lease/operation.h"
#include "lease/request.h"
#include "scripts.h"

struct renew {
    struct lease_call lease;
    struct bytes lease_id;
    char ttl[LEASE_NUMBER_SIZE];
};

static enum step renewed(struct member_call *call, const struct store_reply *reply)
{
    const struct renew *r = container_of(call, struct renew, lease.record);
    struct grant grant = grant_read(reply, r->lease.name, r->lease_id);

    worker_count(worker_of(r->lease.req), COUNT_RENEWED);
    return grant_answer(r->lease.req, &grant, 200);
}

enum step renew_start(struct http_request *req)
{
    static const struct script_answer answers[] = {
        {.word = "renewed", .ends = renewed},
        {.word = "lost", .ends = lease_lost},
        {.word = "not-yours", .problem = PROBLEM_NOT_YOURS},
        ANSWER_OTHER,
    };
    struct renew *r = HTTP_SCRATCH(req, struct renew);
    struct lease_call *lease = &r->lease;
    const char *bad = lease_call_init(lease, req);
    struct request_fault fault;
    struct bytes hold;
    int64_t ttl_ms = 0;

    bad = bad != NULL ? bad : lease_id_read(req, &r->lease_id);
    if (bad != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    renew_request_read(http_body(req), &ttl_ms, &fault);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    fault.problem = lease_hold_read(lease, &hold);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse(req, fault.problem);
    lease_call_secret(lease, r->lease_id);
    lease_call_arg(lease, 4, ttl_ms > 0 ? bytes_of_number(r->ttl, ttl_ms) : BYTES(""));
    lease_call_arg(lease, 5, hold);
    lease_call_arg(lease, 6, grant_may(worker_of(req)));
    return lease_call_run(lease, &script_renew, lease_call_asker(lease, http_identity(req), 6), answers);
}
