/* force_release.c - POST /v1/leases/{name}/force-release: an administrator ends every hold, or the one of a
 * token.
 *
 *   force_release_start   read the request                              400 | 422, or go on
 *   force_release_run     run force_release.lua                         suspended
 *   force_release_answer  refused in the middle, some ended: 504        503 | 504
 *   forced                a rest is left: again, STEPS_MAX times and while it may; else  200
 *   moved_on              send the token that it has now                412 */
#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/request.h"
#include "lease/worker.h"
#include "scripts.h"

/* Enough for all permits of a lease, at 250 holds a step; others may go on entering a shared one meanwhile.
 */
enum { STEPS_MAX = 5000 };

struct force_release {
    struct lease_call lease;
    struct force_request request;
    char expected[LEASE_NUMBER_SIZE];
    unsigned steps;  /* that have ended holds */
    int64_t highest; /* token that was ended; 0: none */
};

static member_done_fn force_release_answer;

static enum step force_release_run(struct force_release *f)
{
    struct lease_call *lease = &f->lease;
    int64_t expected = f->request.expect_token;

    lease_call_arg(lease, 3, grant_may(worker_of(lease->req)));
    lease_call_arg(lease, 4, expected > 0 ? bytes_of_number(f->expected, expected) : BYTES(""));
    lease_call_arg(lease, 5, (struct bytes){f->request.reason, f->request.reason_len});
    return lease_call_send(lease, &script_force_release, 5, force_release_answer);
}

enum step force_release_start(struct http_request *req)
{
    struct force_release *f = HTTP_SCRATCH(req, struct force_release);
    const char *bad = lease_call_init(&f->lease, req);
    struct request_fault fault;

    if (bad != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    force_request_read(http_body(req), &f->request, &fault);
    http_note_reason(req, (struct bytes){f->request.reason, f->request.reason_len});
    return fault.problem != PROBLEM_NONE ? http_refuse_detail(req, fault.problem, fault.detail)
                                         : force_release_run(f);
}

/* Before its last step it must not be said that nothing happened. */
static enum step force_release_failed(struct force_release *f, enum problem bad)
{
    static const char partly[] = "Some of the holds were ended, perhaps not all. Send it again.";

    return f->steps > 0 ? http_refuse_detail(f->lease.req, PROBLEM_OUTCOME_UNKNOWN, partly)
                        : http_refuse(f->lease.req, bad);
}

static void force_release_handoff(const struct force_release *f, struct bytes more)
{
    if (more.len > 0)
        handoff_more(lease_worker_of(f->lease.req)->handoff, f->lease.name);
}

/* {"forced", seq, "rest" | "more" | "", token} */
static enum step forced(struct member_call *call, const struct store_reply *reply)
{
    struct force_release *f = container_of(call, struct force_release, lease.record);
    struct http_request *req = f->lease.req;
    struct bytes more = store_reply_text(reply, 2);
    int64_t token = store_reply_integer(reply, 3);
    enum problem bad;

    f->highest = token > f->highest ? token : f->highest;
    f->steps++;
    if (bytes_are(more, "rest")) {
        bad = member_line_problem(member_line_of(req));
        return f->steps < STEPS_MAX && bad == PROBLEM_NONE &&
                       service_still_allows(req, ACCESS_FORCE_RELEASE, f->lease.name)
                   ? force_release_run(f)
                   : force_release_failed(f, bad);
    }
    force_release_handoff(f, more);
    if (f->highest > 0)
        worker_count(worker_of(req), COUNT_FORCED);
    json_int(http_json_begin(req), "released_token", f->highest);
    return http_json_end(req, 200);
}

/* {"moved-on", seq, token, more} */
static enum step moved_on(struct member_call *call, const struct store_reply *reply)
{
    struct force_release *f = container_of(call, struct force_release, lease.record);
    struct json_out *json;

    force_release_handoff(f, store_reply_text(reply, 3));
    json = http_problem_begin(f->lease.req, PROBLEM_TOKEN_MOVED_ON, NULL);
    json_text(json, "lease", f->lease.name);
    json_int(json, "token", store_reply_integer(reply, 2));
    return http_problem_end(f->lease.req, 0);
}

static enum step force_release_other(struct member_call *call, const struct store_reply *reply)
{
    (void)reply;
    return force_release_failed(container_of(call, struct force_release, lease.record), PROBLEM_INTERNAL);
}

static enum step force_release_answer(struct member_call *call, enum problem bad,
                                      const struct store_reply *reply)
{
    static const struct script_answer answers[] = {
        {.word = "forced", .ends = forced},
        {.word = "moved-on", .ends = moved_on},
        {.word = NULL, .ends = force_release_other},
    };
    struct force_release *f = container_of(call, struct force_release, lease.record);

    return bad != PROBLEM_NONE ? force_release_failed(f, bad) : lease_answer(&f->lease, reply, answers);
}
