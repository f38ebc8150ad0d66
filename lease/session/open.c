/* open.c - POST /v1/sessions: one keep-alive for many leases.
 *
 *   session_open_start   read the request              400 | 422, or go on
 *   session_open_ask     run session_open.lua      suspended
 *   session_open_answer  tell id and secret        201 | 503 | 504 */
#include <inttypes.h>
#include <stdio.h>

#include "lease/session/call.h"
#include "scripts.h"

struct session_open {
    struct session_call session;
    struct lease_request request;
    char secret[SESSION_TEXT_SIZE], ttl[LEASE_NUMBER_SIZE];
};

static enum step session_open_ask(struct session_open *o);
static store_done_fn session_open_answer;

enum step session_open_start(struct http_request *req)
{
    struct session_open *o = HTTP_SCRATCH(req, struct session_open);
    char id[SESSION_TEXT_SIZE];
    struct request_fault wrong;

    session_request_read(http_body(req), &o->request, &wrong);
    if (wrong.problem != PROBLEM_NONE) {
        return http_refuse_detail(req, wrong.problem, wrong.detail);
    }
    lease_request_defaults(&o->request);
    name_new_lease_id(id);
    name_new_lease_id(o->secret);
    session_call_fill(&o->session, req, bytes_of(id));
    return session_open_ask(o);
}

static enum step session_open_ask(struct session_open *o)
{
    struct session_call *session = &o->session;
    int len = snprintf(o->ttl, sizeof(o->ttl), "%" PRId64, o->request.ttl_ms);

    if (epoch_is_full(member_line_of(session->req)->store_epoch)) {
        return http_refuse(session->req, PROBLEM_STORE_FULL);
    }
    digest_secret(session->store, bytes_of(o->secret), session->secret);
    session_call_arg(session, 3, bytes_of(session->secret));
    session_call_arg(session, 4, (struct bytes){o->request.holder, o->request.holder_len});
    session_call_arg(session, 5, (struct bytes){o->ttl, (size_t)len});
    session_call_arg(session, 6, (struct bytes){o->request.meta, o->request.meta_len});
    return session_call_run(session, &script_session_open, 6, session_open_answer);
}

static enum step session_open_answer(struct store_call *call, enum store_outcome outcome,
                                     const struct store_reply *reply)
{
    struct session_open *o = container_of(call, struct session_open, session.record.store);
    struct http_request *req = o->session.req;
    enum problem bad = member_problem(&o->session.record, outcome, reply);
    struct json_out *json;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "opened")) {
        return http_refuse(req, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    worker_count(worker_of(req), COUNT_SESSION_OPENED);
    json = http_json_begin(req);
    json_text(json, "session", o->session.id);
    json_text(json, "session_secret", bytes_of(o->secret));
    json_int(json, "ttl_ms", o->request.ttl_ms);
    json_int(json, "expires_in_ms", o->request.ttl_ms);
    return http_json_end(req, 201);
}
