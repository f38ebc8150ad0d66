/* enter.c - a request from its head to its answer. libmicrohttpd enters for each request: once with the
 * head, once for each piece of the body, once when it is complete, and, as long as it then gets no answer,
 * again at each of its runs (0.9.75, connection.c, MHD_CONNECTION_FULL_REQ_RECEIVED: "try again next time";
 * tried). That is how a short wait costs no system call; a longer one is suspended, as documented. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/flow.h"

enum { POLL_MS = 20, POLLED_MAX = 512, BODY_FIRST_BYTES = 4096 };

/* -- the states */

bool http_state_may(enum http_state from, enum http_state to)
{
    static const unsigned next[STATE_COUNT] = {
        [STATE_HEAD] = 1u << STATE_BODY | 1u << STATE_ABORTED,
        [STATE_BODY] = 1u << STATE_RUNNING | 1u << STATE_ABORTED,
        [STATE_RUNNING] = 1u << STATE_PARKED | 1u << STATE_ANSWERED,
        [STATE_PARKED] = 1u << STATE_RUNNING,
        [STATE_ANSWERED] = 1u << STATE_SENDING,
    };

    return next[from] >> to & 1u;
}

void http_state_set(struct http_request *req, enum http_state state)
{
    assert(http_state_may(req->state, state));
    req->state = state;
}

/* -- the body */

const char http_no_body_detail[] = "This request takes no body. Send it without one.";

enum problem http_body_reserve(struct http_request *req, size_t size)
{
    struct http_server *server = req->server;
    size_t others = server->body_memory - req->reserved;

    if (others > server->options.body_memory_max || size > server->options.body_memory_max - others) {
        return PROBLEM_OVERLOADED;
    }
    server->body_memory = others + size;
    req->reserved = size;
    return PROBLEM_NONE;
}

static bool body_fits_inline(const struct http_request *req)
{
    return req->length == LENGTH_ANNOUNCED && req->head == req->inline_bytes &&
           req->announced <= INLINE_BYTES - req->head_len;
}

/* An announced body is given all its room at once, a chunked one more and more. */
static enum problem body_room(struct http_request *req, size_t len)
{
    size_t size = req->body_size > 0 ? req->body_size : BODY_FIRST_BYTES, max = req->body_max;
    char *body;

    if (body_fits_inline(req)) {
        req->body = req->inline_bytes + req->head_len; /* body_size stays 0 */
        return PROBLEM_NONE;
    }
    if (len <= req->body_size) {
        return PROBLEM_NONE;
    }
    while (size < len) {
        size *= 2;
    }
    if (req->route->body == HTTP_BODY_STREAMED && max > HTTP_BODY_HELD_BYTES) {
        max = HTTP_BODY_HELD_BYTES;
    }
    if (req->length == LENGTH_ANNOUNCED || size > max) {
        size = req->length == LENGTH_ANNOUNCED && req->announced < max ? (size_t)req->announced : max;
    }
    if (http_body_reserve(req, size) != PROBLEM_NONE) {
        return PROBLEM_OVERLOADED;
    }
    body = realloc(req->body, size);
    if (body == NULL) {
        return PROBLEM_OVERLOADED;
    }
    req->body = body;
    req->body_size = size;
    return PROBLEM_NONE;
}

static enum MHD_Result enter_body(struct http_request *req, struct bytes piece)
{
    size_t len = req->body_len + piece.len;
    enum problem problem = PROBLEM_NONE;
    const char *detail = NULL;

    if (req->route->body == HTTP_BODY_NONE) {
        problem = PROBLEM_INVALID_REQUEST;
        detail = http_no_body_detail;
    } else if (len > req->body_max) {
        problem = PROBLEM_TOO_LARGE;
    } else if (req->route->body == HTTP_BODY_JSON && !http_has_json_type(req)) {
        problem = PROBLEM_UNSUPPORTED_MEDIA_TYPE; /* known only now that a chunked body is not empty */
    } else if (req->route->body != HTTP_BODY_DROPPED) {
        problem = body_room(req, len);
    }
    if (problem != PROBLEM_NONE) {
        return http_raw_refuse(req, problem, detail);
    }
    if (req->route->body != HTTP_BODY_DROPPED) {
        memcpy(req->body + req->body_len, piece.at, piece.len);
    }
    req->body_len = len;
    return MHD_YES;
}

/* Is held up to HTTP_BODY_HELD_BYTES; then, if it is longer, the handler is called. */
static enum MHD_Result enter_streamed(struct http_request *req, struct bytes piece)
{
    size_t room = HTTP_BODY_HELD_BYTES - req->body_len;
    struct bytes held = {piece.at, piece.len < room ? piece.len : room};
    struct bytes rest = {piece.at + held.len, piece.len - held.len};

    req->received += piece.len;
    if (req->received > req->body_max) {
        return http_raw_refuse(req, PROBLEM_TOO_LARGE, NULL);
    }
    if (held.len > 0 && enter_body(req, held) == MHD_NO) {
        return MHD_NO;
    }
    if (rest.len > 0 || (req->body_len == HTTP_BODY_HELD_BYTES && req->announced > req->received)) {
        return http_body_reader_begin(req, rest);
    }
    return MHD_YES;
}

/* -- the head */

/* Its body shall not even be sent: of one that is small enough to be held the handler will see soon enough.
 */
static bool is_refused_by_head(struct http_request *req)
{
    return req->length != LENGTH_NONE && req->server->options.refuses != NULL &&
           req->route->body == HTTP_BODY_STREAMED &&
           (http_waits_for_continue(req) || http_body_announced(req) > HTTP_BODY_HELD_BYTES) &&
           req->server->options.refuses(req);
}

static enum step request_start(struct http_request *req)
{
    if (req->refusal == PROBLEM_METHOD_NOT_ALLOWED && req->asks_options) {
        return http_answer(req, MHD_HTTP_NO_CONTENT);
    }
    if (req->refusal != PROBLEM_NONE) {
        return http_refuse_detail(req, req->refusal, req->refusal_detail);
    }
    req->server->started++;
    return req->route->handle(req);
}

static enum step request_run(struct http_request *req)
{
    struct http_server *server = req->server;

    http_state_set(req, STATE_RUNNING);
    http_clock_set(server, &req->conn->deadline, PHASE_NONE);
    server->running++;
    server->open++;
    req->started_us = loop_now_us();
    req->in_handler = true;
    return request_start(req);
}

static enum MHD_Result enter_refusal(struct http_request *req)
{
    enum step step = request_run(req);

    assert(step == ANSWERED && req->state == STATE_ANSWERED);
    (void)step;
    return http_raw_answer(req);
}

static enum MHD_Result enter_head(struct http_request *req)
{
    http_route_find(req);
    if (req->refusal != PROBLEM_NONE && (req->length != LENGTH_NONE || req->conn->reserved)) {
        return http_raw_refuse(req, req->refusal, req->refusal_detail); /* without reading the body */
    }
    http_state_set(req, STATE_BODY);
    if (req->refusal == PROBLEM_NONE && is_refused_by_head(req)) {
        return enter_refusal(req);
    }
    if (req->length != LENGTH_NONE) {
        http_clock_set(req->server, &req->conn->deadline, PHASE_BODY);
    }
    return MHD_YES;
}

/* -- the whole request */

void http_request_suspend(struct http_request *req)
{
    req->suspended = true;
    MHD_suspend_connection(req->mhd);
}

void http_request_resume(struct http_request *req)
{
    req->suspended = false;
    MHD_resume_connection(req->mhd);
    req->server->must_run = true;
    loop_again(req->server->loop); /* if this is the end of the turn, and our hook has already had its go */
}

void http_request_unpoll(struct http_request *req)
{
    req->server->polled -= req->polled;
    req->polled = false;
}

enum MHD_Result http_enter_leave(struct http_conn *conn, struct http_request *req)
{
    struct http_server *server = conn->server;

    if (conn->req == NULL) { /* parked: the request's memory is not ours any more */
        return MHD_YES;
    }
    req->in_handler = false;
    if (req->state == STATE_ANSWERED) {
        return http_reply_queue(req);
    }
    if (server->options.suspend_always || server->polled >= POLLED_MAX) {
        http_request_suspend(req);
        return MHD_YES;
    }
    server->polled++;
    req->polled = true;
    req->waiting_ms = server->clock.now_ms;
    return MHD_YES;
}

enum MHD_Result http_enter_run(struct http_request *req, struct bytes rest)
{
    struct http_conn *conn = req->conn;
    enum step step = request_run(req);

    assert(conn->req == NULL ? step == SUSPENDED : (step == ANSWERED) == (req->state == STATE_ANSWERED));
    if (step == SUSPENDED && conn->req != NULL && !http_body_is_whole(req)) {
        req->in_handler = false;
        return http_body_reader_held(req, rest);
    }
    return http_enter_leave(conn, req);
}

static enum MHD_Result enter_wait(struct http_request *req)
{
    if (req->server->clock.now_ms - req->waiting_ms > POLL_MS) {
        http_request_unpoll(req);
        http_request_suspend(req);
    }
    return MHD_YES;
}

enum MHD_Result http_enter(struct http_conn *conn, const char *upload, size_t *upload_len)
{
    struct http_request *req = conn->req;
    struct bytes piece = {upload, *upload_len};

    if (conn->over) {
        return http_early_over(conn);
    }
    *upload_len = 0;
    if (req == NULL) { /* its early answer is being sent */
        assert(conn->kept != NULL && piece.len > 0);
        return MHD_YES;
    }
    switch (req->state) {
    case STATE_HEAD: return enter_head(req);
    case STATE_BODY:
        if (piece.len == 0) {
            return http_enter_run(req, piece);
        }
        req->server->moved++;
        return req->route->body == HTTP_BODY_STREAMED ? enter_streamed(req, piece) : enter_body(req, piece);
    case STATE_RUNNING: return http_body_is_whole(req) ? enter_wait(req) : http_body_reader_enter(req, piece);
    case STATE_ANSWERED: http_request_unpoll(req); return http_reply_queue(req);
    case STATE_PARKED:
    case STATE_SENDING:
    case STATE_ABORTED:
    case STATE_COUNT: break;
    }
    return MHD_NO; /* refused already: libmicrohttpd closes */
}
