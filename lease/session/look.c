/* look.c - GET /v1/sessions/{id}: whose session it is and what it holds; never its secret.
 *
 *   session_look_start   run session_look.lua      400, or suspended
 *   session_look_answer  tell                      200 | 410 | 503 | 504 */
#include "lease/session/call.h"
#include "scripts.h"

static store_done_fn session_look_answer;

enum step session_look_start(struct http_request *req)
{
    struct session_call *session = HTTP_SCRATCH(req, struct session_call);
    const char *bad = session_call_init(session, req);

    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    return session_call_run(session, &script_session_look, 2, session_look_answer);
}

static enum step session_look_answer(struct store_call *call, enum store_outcome outcome,
                                     const struct store_reply *reply)
{
    struct session_call *session = container_of(call, struct session_call, record.store);
    enum problem bad = member_problem(&session->record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return http_refuse(session->req, bad);
    }
    return store_reply_is(reply, "looked") ? session_tell(session, reply) : session_refuse(session, reply);
}
