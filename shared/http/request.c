/* request.c - a request from its head to its answer. libmicrohttpd enters for each request: once with the
 * head, once for each piece of the body, once when it is complete, and, as long as it then gets no answer,
 * again at each of its runs (0.9.75, connection.c, MHD_CONNECTION_FULL_REQ_RECEIVED: "try again next time";
 * tried). That is how a short wait costs no system call; a longer one is suspended, as documented. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

enum { POLL_MS = 20, POLLED_MAX = 512, BODY_FIRST_BYTES = 4096, OUT_FIRST_BYTES = 8192, STATUS_CHARS = 3 };
enum { ANSWER_SHORT = 16384 };
enum { ROUNDS_MAX = 4, QUIET_RUNS = 8, TICK_US = 1000 };

/* -- the states */

bool http_state_may(enum http_state from, enum http_state to)
{
    static const unsigned next[STATE_COUNT] = {
        [STATE_HEAD] = 1u << STATE_BODY | 1u << STATE_ABORTED,
        [STATE_BODY] = 1u << STATE_RUNNING | 1u << STATE_ABORTED,
        [STATE_RUNNING] = 1u << STATE_SUSPENDED | 1u << STATE_ANSWERED,
        [STATE_SUSPENDED] = 1u << STATE_RUNNING,
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

const char *http_body_max_detail(struct http_request *req)
{
    const char *limit = req->route->body_max > 0                                ? ""
                        : req->body.max < req->server->options.body_max_default ? " (--max-body-memory)"
                                                                                : " (--max-body)";

    snprintf((char *)req->scratch, sizeof(req->scratch),
             "The body of this request may have %zu bytes%s, and this one has more. Send less.",
             req->body.max, limit);
    return (const char *)req->scratch;
}

enum problem http_body_reserve(struct http_request *req, size_t size)
{
    struct http_memory *memory = req->server->options.memory;
    size_t more = size - req->body.reserved, used = atomic_fetch_add(&memory->used, more) + more;

    if (used > memory->max) {
        atomic_fetch_sub(&memory->used, more);
        return PROBLEM_OVERLOADED;
    }
    req->body.reserved = size;
    return PROBLEM_NONE;
}

static bool body_fits_inline(const struct http_request *req)
{
    return req->head.length == LENGTH_ANNOUNCED && req->head.text == req->inline_bytes &&
           req->head.announced <= INLINE_BYTES - req->head.len;
}

/* An announced body is given all its room at once, a chunked one more and more. */
static enum problem body_room(struct http_request *req, size_t len)
{
    size_t size = req->body.size > 0 ? req->body.size : BODY_FIRST_BYTES, max = req->body.max;
    char *body;

    if (body_fits_inline(req)) {
        req->body.at = req->inline_bytes + req->head.len; /* body_size stays 0 */
        return PROBLEM_NONE;
    }
    if (len <= req->body.size)
        return PROBLEM_NONE;
    while (size < len)
        size *= 2;
    if (req->head.length == LENGTH_ANNOUNCED || size > max) {
        size = req->head.length == LENGTH_ANNOUNCED && req->head.announced < max ? (size_t)req->head.announced
                                                                                 : max;
    }
    if (http_body_reserve(req, size) != PROBLEM_NONE)
        return PROBLEM_OVERLOADED;
    body = realloc(req->body.at, size);
    if (body == NULL)
        return PROBLEM_OVERLOADED;
    req->body.at = body;
    req->body.size = size;
    return PROBLEM_NONE;
}

static enum MHD_Result enter_body(struct http_request *req, struct bytes piece)
{
    size_t len = req->body.len + piece.len;
    enum problem problem = PROBLEM_NONE;
    const char *detail = NULL;

    if (req->route->body == HTTP_BODY_NONE) {
        problem = PROBLEM_INVALID_REQUEST;
        detail = http_no_body_detail;
    } else if (len > req->body.max) {
        problem = PROBLEM_TOO_LARGE;
        detail = http_body_max_detail(req);
    } else if (req->route->body == HTTP_BODY_JSON && !http_has_json_type(req)) {
        problem = PROBLEM_UNSUPPORTED_MEDIA_TYPE; /* known only now that a chunked body is not empty */
    } else if (req->route->body != HTTP_BODY_DROPPED) {
        problem = body_room(req, len);
    }
    if (problem != PROBLEM_NONE)
        return http_raw_refuse(req, problem, detail);
    if (req->route->body != HTTP_BODY_DROPPED)
        memcpy(req->body.at + req->body.len, piece.at, piece.len);
    req->body.len = len;
    return MHD_YES;
}

/* Is held up to HTTP_BODY_HELD_BYTES; then, if it is longer, the handler is called. */
static enum MHD_Result enter_streamed(struct http_request *req, struct bytes piece)
{
    size_t room = HTTP_BODY_HELD_BYTES - req->body.len;
    struct bytes held = {piece.at, piece.len < room ? piece.len : room};
    struct bytes rest = {piece.at + held.len, piece.len - held.len};

    req->rest.received += piece.len;
    if (held.len > 0 && enter_body(req, held) == MHD_NO)
        return MHD_NO;
    if (rest.len > 0 || (req->body.len == HTTP_BODY_HELD_BYTES && req->head.announced > req->rest.received))
        return http_body_reader_begin(req, rest);
    return MHD_YES;
}

/* -- the head */

/* Its body shall not even be sent. Of one that is small enough to be held the handler decides soon enough. */
static bool is_refused_by_head(struct http_request *req)
{
    return req->head.length != LENGTH_NONE && req->server->options.refuses != NULL &&
           req->route->body == HTTP_BODY_STREAMED &&
           (http_waits_for_continue(req) || http_body_announced(req) > HTTP_BODY_HELD_BYTES) &&
           req->server->options.refuses(req);
}

static enum step request_start(struct http_request *req)
{
    if (req->refusal.problem == PROBLEM_NONE)
        http_judge_again(req);
    if (req->refusal.problem == PROBLEM_METHOD_NOT_ALLOWED && req->head.asks_options)
        return http_answer(req, MHD_HTTP_NO_CONTENT);
    if (req->refusal.problem != PROBLEM_NONE)
        return http_refuse_detail(req, req->refusal.problem, req->refusal.detail);
    req->server->runs.started++;
    req->was_handled = true;
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

static enum MHD_Result enter_head(struct http_request *req)
{
    http_route_find(req);
    if (req->refusal.problem != PROBLEM_NONE && (req->head.length != LENGTH_NONE || req->conn->reserved))
        return http_raw_refuse(req, req->refusal.problem, req->refusal.detail); /* without reading the body */
    http_state_set(req, STATE_BODY);
    if (req->refusal.problem == PROBLEM_NONE && is_refused_by_head(req)) {
        enum step step = request_run(req);

        assert(step == ANSWERED && req->state == STATE_ANSWERED);
        (void)step;
        return http_raw_answer(req);
    }
    if (req->head.length != LENGTH_NONE)
        http_clock_set(req->server, &req->conn->deadline, PHASE_BODY);
    return MHD_YES;
}

/* -- the whole request */

void http_connection_suspend(struct http_request *req)
{
    req->suspended = true;
    MHD_suspend_connection(req->mhd);
}

void http_connection_resume(struct http_request *req)
{
    req->suspended = false;
    MHD_resume_connection(req->mhd);
    http_run_soon(req->server);
}

void http_request_unpoll(struct http_request *req)
{
    req->server->polled -= req->polled;
    req->polled = false;
}

enum MHD_Result http_enter_leave(struct http_conn *conn, struct http_request *req)
{
    struct http_server *server = conn->server;

    if (conn->req == NULL) /* suspended: the request's memory is not ours any more */
        return MHD_YES;
    req->in_handler = false;
    if (req->state == STATE_ANSWERED)
        return http_reply_queue(req);
    if (server->options.suspend_always || server->polled >= POLLED_MAX) {
        http_connection_suspend(req);
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
        http_connection_suspend(req);
    }
    return MHD_YES;
}

static enum MHD_Result request_enter(struct http_conn *conn, const char *upload, size_t *upload_len)
{
    struct http_request *req = conn->req;
    struct bytes piece = {upload, *upload_len};

    if (conn->over)
        return http_early_over(conn);
    *upload_len = 0;
    if (req == NULL) { /* its early answer is being sent */
        assert(conn->kept != NULL && piece.len > 0);
        return MHD_YES;
    }
    switch (req->state) {
    case STATE_HEAD: return enter_head(req);
    case STATE_BODY:
        if (piece.len == 0)
            return http_enter_run(req, piece);
        req->server->runs.moved++;
        return req->route->body == HTTP_BODY_STREAMED ? enter_streamed(req, piece) : enter_body(req, piece);
    case STATE_RUNNING: return http_body_is_whole(req) ? enter_wait(req) : http_body_reader_enter(req, piece);
    case STATE_ANSWERED: http_request_unpoll(req); return http_reply_queue(req);
    case STATE_SUSPENDED:
    case STATE_SENDING:
    case STATE_ABORTED:
    case STATE_COUNT: break;
    }
    return MHD_NO; /* refused already: libmicrohttpd closes */
}

/* == the runs of libmicrohttpd.
 *
 * libmicrohttpd runs (MHD_run) at the end of a turn, when its epoll descriptor was ready or an answer has
 * come: all requests that have arrived are read and all answers of the turn are handed over in one run, and a
 * second run sends them.
 *
 * How long the loop may wait then: while no request is polled, MHD_get_timeout() says. While one is, it
 * always says 0; then the next run comes at once if this one moved something (a body half read, an answer
 * sent and perhaps the next request behind it), else after a millisecond at the latest. Polling ends after 20
 * ms at the latest. */

void http_run_soon(struct http_server *server)
{
    server->runs.is_due = true;
    loop_again(server->loop); /* if this is the end of the turn, and our hook has already been called */
}

void http_free_dead(struct http_server *server)
{
    while (server->pool.dead != NULL) {
        struct http_request *req = server->pool.dead;

        server->pool.dead = req->next;
        server->open -= req->reply.response == NULL; /* else the response is counted */
        http_request_free(req);
    }
}

/* Runs until all answers have been tried to be sent: one that was handed over in a run may be sent by the
 * next only. And where a long body came, more of it may be there: fewer turns make it faster by a fifth. */
void http_run(struct http_server *server)
{
    assert(!server->runs.is_on);
    server->clock.now_ms = loop_now_ms();
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        server->runs.is_due = false;
        server->runs.moved = 0;
        server->runs.shown = 0;
        server->runs.unsent = server->runs.unsent_next;
        server->runs.unsent_next = 0;
        server->runs.count++;
        server->runs.is_on = true;
        http_recv_run(server);
        server->runs.is_on = false;
        if (server->runs.unsent == 0 && server->runs.shown == 0)
            break;
    }
    server->runs.ended_us = loop_now_us();
    http_free_dead(server);
}

static void runs_plan(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    if (server->polled > 0) {
        server->runs.is_due = server->runs.is_due || server->runs.moved > 0 || server->runs.unsent > 0;
        loop_wait_at_most(server->loop, server->runs.is_due ? 0 : 1);
        return;
    }
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_NO) {
        server->runs.quiet = 0;
        return;
    }
    /* A chunk head longer than libmicrohttpd's memory makes it say 0 until the body's deadline (0.9.75,
     * connection.c, MHD_CONNECTION_CONTINUE_SENT): do not spin that long. */
    server->runs.quiet = server->runs.moved > 0 ? 0 : server->runs.quiet + 1;
    server->runs.is_due = timeout_ms == 0;
    loop_wait_at_most(server->loop, server->runs.quiet > QUIET_RUNS ? 1
                                    : timeout_ms < 1000             ? (unsigned)timeout_ms
                                                                    : 1000);
}

void http_turn_end(struct loop_hook *hook)
{
    struct http_server *server = container_of(hook, struct http_server, hook);

    if (server->runs.is_due || (server->polled > 0 && loop_now_us() - server->runs.ended_us >= TICK_US)) {
        server->runs.started = 0;
        http_run(server);
        if (server->runs.started > 0)
            loop_again(server->loop); /* their calls to the store are to go out in this turn */
    }
    http_disconnect_look(server);
    runs_plan(server);
}

/* url, method and version are those of the short head that it got (receive.c). */
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_len, void **context)
{
    (void)cls;
    (void)url;
    (void)method;
    (void)version;
    if (*context == NULL)
        *context = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    return request_enter(*context, upload, upload_len);
}

/* == what handlers answer, and how it gets to libmicrohttpd. */

/* -- headers */

/* A field whose name is NULL is left out. */
static void reply_header_forget(struct http_request *req, const char *name)
{
    for (unsigned i = 0; i < req->reply.field_count; i++)
        if (req->reply.fields[i].name != NULL && strcasecmp(req->reply.fields[i].name, name) == 0)
            req->reply.fields[i].name = NULL;
}

static bool is_one_line(struct bytes value)
{
    return value.len == 0 ||
           (memchr(value.at, '\0', value.len) == NULL && memchr(value.at, '\r', value.len) == NULL &&
            memchr(value.at, '\n', value.len) == NULL);
}

void http_reply_header(struct http_request *req, const char *name, struct bytes value)
{
    size_t bytes = strlen(name) + value.len + 4;

    assert(is_one_line(value));
    if (value.len == 0)
        return; /* libmicrohttpd has no empty values (response.c, add_response_entry) */
    if (strcasecmp(name, "Content-Type") == 0)
        reply_header_forget(req, name);
    if (req->reply.values_len + value.len + 1 > REPLY_VALUES_BYTES ||
        req->reply.bytes + bytes > req->server->reply_bytes_max ||
        req->reply.field_count == REPLY_FIELDS_MAX) {
        req->reply.overflow = true;
        return;
    }
    req->reply.fields[req->reply.field_count++] = (struct http_reply_field){name,
                                                                            (uint16_t)req->reply.values_len};
    memcpy(req->reply_values + req->reply.values_len, value.at, value.len);
    req->reply_values[req->reply.values_len + value.len] = '\0';
    req->reply.values_len += value.len + 1;
    req->reply.bytes += bytes;
}

/* Whether libmicrohttpd would take it (response.c, add_response_entry), and it is not one of the server's. */
static bool is_field(struct bytes name, struct bytes value)
{
    static const char *const ours[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date", NULL};

    return name.len > 0 && !bytes_are_among(name, ours) && ascii_is_visible(name) &&
           memchr(name.at, ':', name.len) == NULL && is_one_line(value);
}

static uint16_t copies_add(struct http_reply_copies *copies, struct bytes text)
{
    size_t at = copies->len;

    memcpy(copies->text + at, text.at, text.len);
    copies->text[at + text.len] = '\0';
    copies->len += text.len + 1;
    return (uint16_t)at;
}

bool http_reply_is_early(const struct http_request *req)
{
    return !http_body_is_whole(req) || req->reply.bytes > req->server->reply_pool_bytes;
}

void http_reply_foreign(struct http_request *req)
{
    if (req->reply.copies == NULL) {
        req->reply.copies = must_have(malloc(sizeof(*req->reply.copies) + req->server->reply_bytes_max));
        req->reply.copies->count = 0;
        req->reply.copies->len = 0;
    }
}

bool http_reply_field(struct http_request *req, struct bytes name, struct bytes value)
{
    size_t bytes = name.len + value.len + 4, max = req->server->reply_bytes_max;
    struct http_reply_copies *copies;

    http_reply_foreign(req);
    copies = req->reply.copies;
    if (!is_field(name, value) || bytes > max - req->reply.bytes || copies->count == REPLY_COPIES_MAX)
        return false;
    if (value.len == 0)
        return true; /* as in http_reply_header() */
    copies->name_at[copies->count] = copies_add(copies, name);
    copies->value_at[copies->count++] = copies_add(copies, value);
    req->reply.bytes += bytes;
    return true;
}

void http_reply_forget(struct http_request *req)
{
    free(req->reply.copies);
    req->reply.copies = NULL;
    req->reply.field_count = 0;
    req->reply.values_len = 0;
    req->reply.bytes = 0;
    req->reply.overflow = false;
}

/* -- bodies */

struct json_out *http_json(struct http_request *req)
{
    struct http_server *server = req->server;

    if (req->reply.out.at == NULL && server->pool.out_count > 0)
        req->reply.out = server->pool.outs[--server->pool.out_count];
    else if (req->reply.out.at == NULL)
        json_out_reserve(&req->reply.out, OUT_FIRST_BYTES);
    return &req->reply.out;
}

void http_reply_json(struct http_request *req)
{
    req->reply.body = json_out_bytes(&req->reply.out);
    http_reply_header(req, "Content-Type", BYTES("application/json"));
}

struct json_out *http_json_begin(struct http_request *req)
{
    struct json_out *json = http_json(req);

    json_out_reset(json);
    json_object(json, NULL);
    return json;
}

enum step http_json_end(struct http_request *req, unsigned status)
{
    json_object_end(&req->reply.out);
    http_reply_json(req);
    return http_answer(req, status);
}

void http_reply_static(struct http_request *req, const char *type, struct bytes body)
{
    req->reply.body = body;
    if (type != NULL)
        http_reply_header(req, "Content-Type", bytes_of(type));
}

void http_reply_body(struct http_request *req, const char *type, struct bytes body)
{
    if (body.len == 0 || body.at != req->reply.out.at) {
        json_out_reset(&req->reply.out);
        json_out_reserve(&req->reply.out, body.len);
        json_out_append(&req->reply.out, body);
        body = json_out_bytes(&req->reply.out);
    }
    http_reply_static(req, type, body);
}

/* -- problems */

static struct json_out *problem_open(struct http_request *req, const struct problem_info *info,
                                     const char *detail)
{
    struct json_out *out = http_json_begin(req);
    char type[64] = "/problems/", id[HTTP_ID_SIZE];
    size_t prefix = strlen(type), code = strlen(info->code);

    assert(prefix + code < sizeof(type));
    memcpy(type + prefix, info->code, code);
    json_text(out, "type", (struct bytes){type, prefix + code});
    json_text(out, "title", bytes_of(info->title));
    json_int(out, "status", info->status);
    req->reply.status_at = out->len - STATUS_CHARS;
    json_text(out, "detail", bytes_of(detail != NULL ? detail : info->detail));
    json_text(out, "code", bytes_of(info->code));
    json_bool(out, "retryable", info->retryable);
    json_text(out, "instance", bytes_of(http_request_id(req, id)));
    for (unsigned i = 0; i < req->refusal.member_count; i++)
        if (req->refusal.members[i].value.at != NULL)
            json_text(out, req->refusal.members[i].name, req->refusal.members[i].value);
        else
            json_null(out, req->refusal.members[i].name);
    return out;
}

struct json_out *http_problem_begin(struct http_request *req, enum problem problem, const char *detail)
{
    req->reply.problem = problem;
    return problem_open(req, problem_info(problem), detail);
}

struct json_out *http_problem_begin_final(struct http_request *req, enum problem problem, const char *detail)
{
    struct problem_info info = *problem_info(problem);

    info.retryable = false;
    req->reply.problem = problem;
    return problem_open(req, &info, detail);
}

static void problem_close(struct http_request *req)
{
    json_object_end(&req->reply.out);
    json_out_append(&req->reply.out, BYTES("\n")); /* a shell's prompt does not follow it on its line */
    req->reply.body = json_out_bytes(&req->reply.out);
    http_reply_header(req, "Content-Type", BYTES("application/problem+json"));
}

enum step http_problem_end(struct http_request *req, unsigned status)
{
    unsigned number = status != 0 ? status : problem_info(req->reply.problem)->status;
    char *digits = req->reply.out.at + req->reply.status_at;

    assert(number >= 100 && number <= 999);
    digits[0] = (char)('0' + number / 100);
    digits[1] = (char)('0' + number / 10 % 10);
    digits[2] = (char)('0' + number % 10);
    problem_close(req);
    return http_answer(req, number);
}

void http_problem_write(struct http_request *req, enum problem problem, const char *detail)
{
    http_problem_begin(req, problem, detail);
    problem_close(req);
}

enum step http_refuse_detail(struct http_request *req, enum problem problem, const char *detail)
{
    http_problem_begin(req, problem, detail);
    return http_problem_end(req, 0);
}

enum step http_refuse(struct http_request *req, enum problem problem)
{
    return http_refuse_detail(req, problem, NULL);
}

/* -- the end of a request */

void http_reply_report(const struct http_request *req)
{
    const struct http_owner *owner = req->server->options.owner;

    if (owner != NULL && owner->ended != NULL)
        owner->ended(owner, req, req->reply.status,
                     req->started_us > 0 ? loop_now_us() - req->started_us : 0);
}

/* It stays until the client has taken it. Not refused: the only one; that something was done. */
static bool answer_reserve(struct http_request *req, unsigned status)
{
    struct http_memory *memory = req->server->options.memory;
    size_t size = req->reply.out.size, others;

    if (size <= ANSWER_SHORT || status != MHD_HTTP_OK || req->method != HTTP_GET)
        return true;
    others = atomic_fetch_add(&memory->untaken, size);
    if (others > 0 && others + size > memory->max) {
        atomic_fetch_sub(&memory->untaken, size);
        return false;
    }
    req->reply.untaken = size;
    return true;
}

enum step http_answer(struct http_request *req, unsigned status)
{
    struct http_server *server = req->server;

    assert(req->state == STATE_RUNNING);
    if (req->reply.overflow) {
        http_reply_forget(req);
        return http_refuse_detail(req, PROBLEM_INTERNAL,
                                  "The headers of the answer are longer than this service sends.");
    }
    if (!answer_reserve(req, status)) {
        json_out_done(&req->reply.out);
        http_reply_forget(req);
        return http_refuse(req, PROBLEM_OVERLOADED);
    }
    if (status == MHD_HTTP_NO_CONTENT)
        req->reply.body = (struct bytes){NULL, 0};
    if (status == MHD_HTTP_NO_CONTENT || status == MHD_HTTP_NOT_MODIFIED)
        reply_header_forget(req, "Content-Type");
    http_body_reader_leave(req);
    http_state_set(req, STATE_ANSWERED);
    req->reply.status = status;
    server->running--;
    http_reply_report(req);
    if (req->mhd == NULL) /* the client has left */
        http_request_bury(req);
    else if (http_reply_is_early(req))
        http_early_answer(req);
    else if (req->suspended)
        http_reply_queue(req);
    if (!req->in_handler)
        http_run_soon(server);
    return ANSWERED;
}

bool http_reply_at(const struct http_request *req, unsigned i, const char **name, const char **value)
{
    const struct http_reply_copies *copies = req->reply.copies;

    if (i < req->reply.field_count) {
        *name = req->reply.fields[i].name;
        *value = req->reply_values + req->reply.fields[i].value_at;
        return true;
    }
    i -= req->reply.field_count;
    if (copies == NULL) {
        *name = "Cache-Control";
        *value = "no-store";
        return i == 0;
    }
    if (i < copies->count) {
        *name = copies->text + copies->name_at[i];
        *value = copies->text + copies->value_at[i];
    }
    return i < copies->count;
}

void http_reply_fields(const struct http_request *req, struct MHD_Response *response)
{
    enum MHD_Result good = response != NULL;
    const char *name, *value;

    if (good != MHD_NO && req->server->draining)
        good = MHD_add_response_header(response, "Connection", "close");
    for (unsigned i = 0; good != MHD_NO && http_reply_at(req, i, &name, &value); i++)
        if (name != NULL)
            good = MHD_add_response_header(response, name, value);
    if (good == MHD_NO)
        abort(); /* out of memory, or a header name that is none */
}

enum MHD_Result http_reply_queue(struct http_request *req)
{
    struct http_server *server = req->server;
    /* The library does not write to the body, it only lacks the const. */
    char *body = req->reply.body.len > 0 ? (char *)(uintptr_t)req->reply.body.at : (char *)(uintptr_t) "";
    struct MHD_Response *response;
    enum MHD_Result good;

    if (req->reply.response != NULL)
        return http_response_queue(req);
    response = MHD_create_response_from_buffer(req->reply.body.len, body, MHD_RESPMEM_PERSISTENT);
    http_reply_fields(req, response);
    http_state_set(req, STATE_SENDING);
    http_clock_set(server, &req->conn->deadline, PHASE_SEND);
    req->queued_run = server->runs.is_on ? server->runs.count : server->runs.count + 1;
    (*(server->runs.is_on ? &server->runs.unsent : &server->runs.unsent_next))++;
    good = MHD_queue_response(req->mhd, req->reply.status, response);
    MHD_destroy_response(response);
    if (req->suspended)
        MHD_resume_connection(req->mhd);
    return good;
}
