/* http_enter.c - a request from its head to its answer. libmicrohttpd enters for each request: once with the
 * head, once for each piece of the body, once when it is complete, and, as long as it then gets no answer,
 * again at each of its runs (0.9.75, connection.c, MHD_CONNECTION_FULL_REQ_RECEIVED: "try again next time";
 * tried). That is how a short wait costs no system call; a longer one is suspended, as documented. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/http_internal.h"

enum { POLL_MS = 20, POLLED_MAX = 512, FREE_MAX = 1024, SPARE_BYTES_MAX = 16384, BODY_FIRST_BYTES = 4096 };

void *http_must_alloc(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    return memory;
}

/* -- the states */

bool http_state_may(enum http_state from, enum http_state to)
{
    static const unsigned next[STATE_COUNT] = {
        [STATE_HEAD] = 1u << STATE_BODY | 1u << STATE_ABORTED,
        [STATE_BODY] = 1u << STATE_RUNNING | 1u << STATE_ABORTED,
        [STATE_RUNNING] = 1u << STATE_ANSWERED,
        [STATE_ANSWERED] = 1u << STATE_SENDING,
    };

    return next[from] >> to & 1u;
}

void http_state_set(struct http_request *req, enum http_state state)
{
    assert(http_state_may(req->state, state));
    req->state = state;
}

/* -- the struct */

static void id_write(struct http_server *server, char *id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    uint64_t number = server->id_next++;

    memcpy(id, server->id_prefix, ID_PREFIX_CHARS);
    for (unsigned i = ID_CHARS; i-- > ID_PREFIX_CHARS; number >>= 5) {
        id[i] = digits[number & 31];
    }
    id[ID_CHARS] = '\0';
}

struct http_request *http_request_new(struct http_conn *conn, struct MHD_Connection *mhd)
{
    struct http_server *server = conn->server;
    struct http_request *req = server->free;

    if (req != NULL) {
        server->free = req->next;
        server->free_count--;
    } else {
        req = http_must_alloc(sizeof(*req));
    }
    memset(req, 0, offsetof(struct http_request, reply_values));
    memset(req->scratch, 0, sizeof(req->scratch));
    req->server = server;
    req->conn = conn;
    req->mhd = mhd;
    req->head = req->inline_bytes;
    conn->req = req;
    id_write(server, req->id);
    return req;
}

void http_request_free(struct http_request *req)
{
    struct http_server *server = req->server;

    if (req->head != req->inline_bytes) {
        free(req->head);
    }
    if (req->body_size > 0) { /* else it lies behind the head */
        free(req->body);
    }
    server->body_memory -= req->reserved;
    json_out_reset(&req->out);
    if (req->out.at != NULL && req->out.size <= SPARE_BYTES_MAX && server->spare_count < SPARE_OUTS) {
        server->spare[server->spare_count++] = req->out;
    } else {
        json_out_done(&req->out);
    }
    if (server->free_count == FREE_MAX) {
        free(req);
        return;
    }
    req->next = server->free;
    server->free = req;
    server->free_count++;
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
    size_t size = req->body_size > 0 ? req->body_size : BODY_FIRST_BYTES;
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
    if (req->length == LENGTH_ANNOUNCED) {
        size = (size_t)req->announced;
    } else if (size > req->body_max) {
        size = req->body_max;
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

    req->server->moved++;
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

/* -- the head */

static enum MHD_Result enter_head(struct http_request *req, const char *method, const char *version)
{
    const char *detail = NULL;
    enum problem problem = http_head_read(req, method, version, &detail);

    if (problem != PROBLEM_NONE) {
        return http_raw_refuse(req, problem, detail);
    }
    http_route_find(req);
    if (req->refusal != PROBLEM_NONE && req->length != LENGTH_NONE) {
        return http_raw_refuse(req, req->refusal, req->refusal_detail); /* without reading the body */
    }
    http_state_set(req, STATE_BODY);
    if (req->length != LENGTH_NONE) {
        http_clock_set(req->server, &req->conn->deadline, PHASE_BODY);
    }
    return MHD_YES;
}

/* -- the whole request */

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

static void request_suspend(struct http_request *req)
{
    req->suspended = true;
    MHD_suspend_connection(req->mhd);
}

static enum MHD_Result enter_run(struct http_request *req)
{
    struct http_server *server = req->server;
    enum step step;

    http_state_set(req, STATE_RUNNING);
    http_clock_set(server, &req->conn->deadline, PHASE_NONE);
    server->running++;
    server->open++;
    req->started_us = loop_now_us();
    req->in_handler = true;
    step = request_start(req);
    req->in_handler = false;
    assert((step == ANSWERED) == (req->state == STATE_ANSWERED));
    if (step == ANSWERED) {
        return http_reply_queue(req);
    }
    if (server->options.suspend_always || server->polled >= POLLED_MAX) {
        request_suspend(req);
        return MHD_YES;
    }
    server->polled++;
    req->waiting_ms = server->clock.now_ms;
    return MHD_YES;
}

static enum MHD_Result enter_wait(struct http_request *req)
{
    struct http_server *server = req->server;

    if (server->clock.now_ms - req->waiting_ms > POLL_MS) {
        server->polled--;
        request_suspend(req);
    }
    return MHD_YES;
}

enum MHD_Result http_enter(struct http_request *req, const char *method, const char *version,
                           const char *upload, size_t *upload_len)
{
    struct bytes piece = {upload, *upload_len};

    switch (req->state) {
    case STATE_HEAD: return enter_head(req, method, version);
    case STATE_BODY:
        if (piece.len == 0) {
            return enter_run(req);
        }
        *upload_len = 0;
        return enter_body(req, piece);
    case STATE_RUNNING: return enter_wait(req);
    case STATE_ANSWERED: req->server->polled--; return http_reply_queue(req);
    case STATE_SENDING:
    case STATE_ABORTED:
    case STATE_COUNT: break;
    }
    return MHD_NO; /* refused already: libmicrohttpd closes */
}
