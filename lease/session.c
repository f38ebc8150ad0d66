/* session.c - /v1/sessions: one keep-alive for many leases. The id of a session is public; its secret leaves
 * once, when the session is opened, and is never logged.
 *
 *   session_open_start   run session_open.lua             400 | 422 | 503, or suspended
 *   session_opened       send id and secret               201
 *   session_renew_start  run session_renew.lua            400, or suspended
 *   session_renewed      send what it holds               200
 *   session_look_start   run session_look.lua             400, or suspended
 *   session_looked       send what it holds               200
 *   session_end_start    read the secret                  400, or go on
 *   session_end_run      run session_end.lua              suspended
 *   session_end_answer   a rest is left: again; else      204
 *   session_force_end_start  an operator's end: read the request  400 | 422, or session_end_run; 200
 *
 * All others: 403 | 410 | 503 | 504. */
#include "lease/operation.h"
#include "lease/request.h"
#include "scripts.h"

/* The first step of an end has ended the session. Those after it only hand its leases on, STEP_LEASES at a
 * time, so that no script is long; if one fails, or this process dies, the sweep of any service does it.
 * STEPS_MAX: three times what the most leases that a session has would take. */
enum { STEPS_MAX = 500, SECRET_TEXT_SIZE = 23 };
#define STEP_LEASES "64"

struct session_open {
    struct lease_call session;
    struct lease_request request;
    char secret[SECRET_TEXT_SIZE], ttl[LEASE_NUMBER_SIZE];
};

struct session_end {
    struct lease_call session;
    struct force_request request; /* an operator's */
    bool is_forced;
    unsigned steps; /* that were done: the session is over */
    int64_t leases; /* that it held */
};

/* As lease_call_fill(), with the key of the session as third; the name is its id. */
static void session_fill(struct lease_call *session, struct http_request *req, struct bytes id)
{
    struct bytes key;

    lease_call_fill(session, worker_of(req), id);
    key = acquire_options_session_key(session->name_text, id);
    session->req = req;
    session->name = (struct bytes){key.at + key.len - id.len, id.len};
    session->keys = SESSION_KEYS;
    session->argv[SESSION_KEYS + 1] = session->argv[LEASE_KEYS + 1];
    session->argv[SESSION_KEYS] = session->name;
    session->argv[LEASE_KEYS] = key;
}

/* The id from the path; NULL, or what is wrong with it. */
static const char *session_init(struct lease_call *session, struct http_request *req)
{
    struct bytes id = http_path_part(req, 0);

    if (!request_is_session_id(id))
        return "The path does not end in the id of a session: 16 to 64 characters of A-Z a-z 0-9 _ -.";
    session_fill(session, req, id);
    return NULL;
}

/* The same, and the secret from its header. */
static const char *session_init_secret(struct lease_call *session, struct http_request *req)
{
    const char *bad = session_init(session, req);

    bad = bad != NULL ? bad : acquire_options_secret_read(req, session->secret);
    if (bad == NULL)
        lease_call_arg(session, 3, bytes_of(session->secret));
    return bad;
}

/* -- answers */

/* One hold is "NAME/LEASE_ID", behind a slash while it is not claimed; what was lost is "NAME". */
enum session_hold { HELD, LOST };

static void write_names(const struct http_request *req, struct json_out *json, const char *member,
                        const struct store_reply *reply, enum session_hold kind)
{
    const struct store_reply *holds = store_reply_list(reply, 7);
    size_t count = holds != NULL ? store_reply_count(holds) : 0;
    /* At what nobody opened anybody who is known may look: all of it is for who has the secret. */
    bool is_its = store_reply_is(reply, "renewed") || store_reply_text(reply, 8).len > 0;

    json_list(json, member);
    for (size_t i = 0; i < count; i++) {
        struct bytes hold = store_reply_text(holds, i),
                     name = bytes_cut(&(struct bytes){hold.at, hold.len}, '/');
        bool is_lost = name.len == hold.len;

        if (name.len > 0 && is_lost == (kind == LOST) && (is_its || service_allows(req, ACCESS_LOOK, name)))
            json_text(json, NULL, name);
    }
    json_list_end(json);
}

/* {word, seq, ttl_ms, ...} as scripts/lib/session.lua tells it. */
static enum step session_looked(struct member_call *call, const struct store_reply *reply)
{
    const struct lease_call *session = container_of(call, struct lease_call, record);
    struct json_out *json = http_json_begin(session->req);
    struct bytes meta = store_reply_text(reply, 6);

    json_text(json, "session", session->name);
    json_text(json, "holder", store_reply_text(reply, 5));
    lease_identity_write(json, worker_of(session->req), store_reply_text(reply, 8));
    json_int(json, "ttl_ms", store_reply_integer(reply, 2));
    json_int(json, "expires_in_ms", store_reply_integer(reply, 3));
    json_int(json, "open_for_ms", store_reply_integer(reply, 4));
    json_raw(json, "meta", meta.len > 0 ? meta : BYTES("{}"));
    write_names(session->req, json, "leases", reply, HELD);
    write_names(session->req, json, "lost", reply, LOST);
    return http_json_end(session->req, 200);
}

static enum step session_lost(struct member_call *call, const struct store_reply *reply)
{
    const struct lease_call *session = container_of(call, struct lease_call, record);
    struct json_out *json = http_problem_begin(session->req, PROBLEM_SESSION_LOST, NULL);

    json_text(json, "session", session->name);
    json_text(json, "ended", store_reply_text(reply, 2));
    return http_problem_end(session->req, 0);
}

/* -- the operations */

static script_answer_fn session_opened, session_renewed, session_ended;

/* What any of their scripts may say. */
static const struct script_answer session_answers[] = {
    {.word = "opened", .ends = session_opened},   /* 201 */
    {.word = "renewed", .ends = session_renewed}, /* 200 */
    {.word = "looked", .ends = session_looked},   /* 200 */
    {.word = "ended", .ends = session_ended},     /* again, or 204 | 200 */
    {.word = "lost", .ends = session_lost},       /* 410 */
    {.word = "not-yours", .problem = PROBLEM_NOT_YOURS},
    ANSWER_OTHER,
};

static enum step session_opened(struct member_call *call, const struct store_reply *reply)
{
    struct session_open *o = container_of(call, struct session_open, session.record);
    struct http_request *req = o->session.req;
    struct json_out *json = http_json_begin(req);

    (void)reply;
    worker_count(worker_of(req), COUNT_SESSION_OPENED);
    json_text(json, "session", o->session.name);
    json_text(json, "session_secret", bytes_of(o->secret));
    json_int(json, "ttl_ms", o->request.ttl_ms);
    json_int(json, "expires_in_ms", o->request.ttl_ms);
    return http_json_end(req, 201);
}

enum step session_open_start(struct http_request *req)
{
    struct session_open *o = HTTP_SCRATCH(req, struct session_open);
    struct lease_call *session = &o->session;
    char id[SECRET_TEXT_SIZE];
    struct request_fault fault;

    session_request_read(http_body(req), &o->request, &fault);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    lease_request_defaults(&o->request, http_identity(req));
    name_new_lease_id(id);
    name_new_lease_id(o->secret);
    session_fill(session, req, bytes_of(id));
    if (epoch_is_full(member_line_of(req)->store_epoch))
        return http_refuse(req, PROBLEM_STORE_FULL);
    if (service_judges(req) && service_quota_room(req, ACCESS_SESSIONS) <= 0)
        return service_quota_refuse(req, ACCESS_SESSIONS);
    lease_call_secret(session, bytes_of(o->secret));
    lease_call_arg(session, 4, (struct bytes){o->request.holder, o->request.holder_len});
    lease_call_arg(session, 5, bytes_of_number(o->ttl, o->request.ttl_ms));
    lease_call_arg(session, 6, (struct bytes){o->request.meta, o->request.meta_len});
    return lease_call_run(session, &script_session_open, lease_call_asker(session, http_identity(req), 6),
                          session_answers);
}

static enum step session_renewed(struct member_call *call, const struct store_reply *reply)
{
    worker_count(worker_of(container_of(call, struct lease_call, record)->req), COUNT_SESSION_RENEWED);
    return session_looked(call, reply);
}

enum step session_renew_start(struct http_request *req)
{
    struct lease_call *session = HTTP_SCRATCH(req, struct lease_call);
    const char *bad = session_init_secret(session, req);

    return bad != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad)
                       : lease_call_run(session, &script_session_renew,
                                        lease_call_asker(session, http_identity(req), 3), session_answers);
}

enum step session_look_start(struct http_request *req)
{
    struct lease_call *session = HTTP_SCRATCH(req, struct lease_call);
    const char *bad = session_init(session, req);

    return bad != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad)
                       : lease_call_run(session, &script_session_look,
                                        lease_call_asker(session, http_identity(req), 2), session_answers);
}

static member_done_fn session_end_answer;

static enum step session_end_run(struct session_end *e)
{
    lease_call_arg(&e->session, 4, grant_may(worker_of(e->session.req)));
    lease_call_arg(&e->session, 5, BYTES(STEP_LEASES));
    return lease_call_send(&e->session, &script_session_end,
                           lease_call_asker(&e->session, http_identity(e->session.req), 5),
                           session_end_answer);
}

enum step session_end_start(struct http_request *req)
{
    struct session_end *e = HTTP_SCRATCH(req, struct session_end);
    const char *bad = session_init_secret(&e->session, req);

    return bad != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad) : session_end_run(e);
}

enum step session_force_end_start(struct http_request *req)
{
    struct session_end *e = HTTP_SCRATCH(req, struct session_end);
    const char *bad = session_init(&e->session, req);
    struct request_fault fault;

    if (bad != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    reason_request_read(http_body(req), &e->request, &fault);
    http_note_reason(req, (struct bytes){e->request.reason, e->request.reason_len});
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    e->is_forced = true;
    lease_call_arg(&e->session, 3, BYTES("")); /* no digest: an operator needs none */
    return session_end_run(e);
}

static enum step session_end_done(struct session_end *e)
{
    struct http_request *req = e->session.req;
    struct json_out *json;

    worker_count(worker_of(req), COUNT_SESSION_ENDED);
    if (!e->is_forced)
        return http_answer(req, 204);
    json = http_json_begin(req);
    json_text(json, "session", e->session.name);
    json_int(json, "leases", e->leases);
    return http_json_end(req, 200);
}

/* {"ended", seq, "more" or "", how many it held, or 0} */
static enum step session_ended(struct member_call *call, const struct store_reply *reply)
{
    struct session_end *e = container_of(call, struct session_end, session.record);
    struct http_request *req = e->session.req;

    e->steps++;
    e->leases += store_reply_integer(reply, 3);
    if (bytes_are(store_reply_text(reply, 2), "more") && e->steps < STEPS_MAX &&
        member_line_problem(member_line_of(req)) == PROBLEM_NONE)
        return session_end_run(e);
    return session_end_done(e);
}

static enum step session_end_answer(struct member_call *call, enum problem bad,
                                    const struct store_reply *reply)
{
    struct session_end *e = container_of(call, struct session_end, session.record);

    if (e->steps > 0 && (bad != PROBLEM_NONE || !store_reply_is(reply, "ended")))
        return session_end_done(e);
    return bad != PROBLEM_NONE ? http_refuse(e->session.req, bad)
                               : lease_answer(&e->session, reply, session_answers);
}
