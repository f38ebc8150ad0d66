/* end.c - DELETE /v1/sessions/{id}: the session and all its holds are over.
 *
 *   session_end_start   read the secret                      400, or go on
 *   session_end_ask     run session_end.lua                  suspended
 *   session_end_answer  leases are left to be handed on: ask again; else tell   204 | 403 | 410 | 503 | 504
 *
 * The first step has ended it. What comes after only hands its leases on, a few at a time, so that no script
 * is long; whatever goes wrong with that, or if this process dies, the sweep of any service does it. */
#include "lease/session/call.h"
#include "scripts.h"

/* Steps: three times what the most leases that a session has would take. */
enum { STEPS_MAX = 500 };
#define STEP_LEASES "64"

struct session_end {
    struct session_call session;
    unsigned steps; /* that were done: the session is over */
};

static enum step session_end_ask(struct session_end *e);
static store_done_fn session_end_answer;

enum step session_end_start(struct http_request *req)
{
    struct session_end *e = HTTP_SCRATCH(req, struct session_end);
    const char *bad = session_call_init(&e->session, req);

    bad = bad != NULL ? bad : acquire_options_secret_read(req, e->session.secret);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    return session_end_ask(e);
}

static enum step session_end_ask(struct session_end *e)
{
    session_call_arg(&e->session, 3, bytes_of(e->session.secret));
    session_call_arg(&e->session, 4, grant_may(worker_of(e->session.req)));
    session_call_arg(&e->session, 5, BYTES(STEP_LEASES));
    return session_call_run(&e->session, &script_session_end, 5, session_end_answer);
}

static enum step session_end_done(struct session_end *e)
{
    worker_count(worker_of(e->session.req), COUNT_SESSION_ENDED);
    return http_answer(e->session.req, 204);
}

static enum step session_end_answer(struct store_call *call, enum store_outcome outcome,
                                    const struct store_reply *reply)
{
    struct session_end *e = container_of(call, struct session_end, session.record.store);
    enum problem bad = member_problem(&e->session.record, outcome, reply);
    bool more = bad == PROBLEM_NONE && bytes_are(store_reply_text(reply, 2), "more");

    if (e->steps == 0 && bad != PROBLEM_NONE) {
        return http_refuse(e->session.req, bad);
    }
    if (e->steps == 0 && !store_reply_is(reply, "ended")) {
        return session_refuse(&e->session, reply);
    }
    e->steps++;
    more = more && member_line_problem(member_line_of(e->session.req)) == PROBLEM_NONE;
    return more && e->steps < STEPS_MAX ? session_end_ask(e) : session_end_done(e);
}
