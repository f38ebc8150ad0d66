/* renew.c - PUT /v1/sessions/{id}: the session and all its leases live on.
 *
 *   session_renew_start   read the secret          400, or go on
 *   session_renew_ask     run session_renew.lua    suspended
 *   session_renew_answer  tell what it holds       200 | 403 | 410 | 503 | 504 */
#include "lease/session/call.h"
#include "scripts.h"

static enum step session_renew_ask(struct session_call *session);
static store_done_fn session_renew_answer;

enum step session_renew_start(struct http_request *req)
{
    struct session_call *session = HTTP_SCRATCH(req, struct session_call);
    const char *bad = session_call_init(session, req);

    bad = bad != NULL ? bad : acquire_options_secret_read(req, session->secret);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    return session_renew_ask(session);
}

static enum step session_renew_ask(struct session_call *session)
{
    session_call_arg(session, 3, bytes_of(session->secret));
    return session_call_run(session, &script_session_renew, 3, session_renew_answer);
}

static enum step session_renew_answer(struct store_call *call, enum store_outcome outcome,
                                      const struct store_reply *reply)
{
    struct session_call *session = container_of(call, struct session_call, record.store);
    enum problem bad = member_problem(&session->record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return http_refuse(session->req, bad);
    }
    if (!store_reply_is(reply, "renewed")) {
        return session_refuse(session, reply);
    }
    worker_count(worker_of(session->req), COUNT_SESSION_RENEWED);
    return session_tell(session, reply);
}
