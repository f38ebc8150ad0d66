/* body_reader.c - the rest of a body that is longer than what is held: given to its owner piece by piece.
 *
 *   NONE    --the held part is there, and more will come--> HELD
 *   HELD    --an owner takes it--> READING
 *   HELD    --an owner takes it, and something has been read already--> FULL
 *   READING --not all of a piece was taken--> FULL
 *   FULL    --what had been read has been taken--> READING
 *   READING --the body is whole--> NONE
 *   HELD    --the client has gone--> BROKEN
 *   READING --its time is up--> SILENT
 *   READING --the client has gone, or sends nonsense--> BROKEN
 *   SILENT  --the client has gone, too--> BROKEN
 *   FULL    --the client has gone--> BROKEN
 *
 * The connection is suspended in HELD, FULL and SILENT, because libmicrohttpd would go on reading, and ask
 * again at every run (0.9.75, connection.c, process_request_body). What it has read is taken off it in any
 * case: else its buffer grew with each resume, into the memory that the head of the answer needs
 * (try_grow_read_buffer). */
#include <assert.h>
#include <poll.h>
#include <sys/socket.h>

#include "shared/http/http_internal.h"

/* -- the states */

bool http_rest_may(enum http_rest_state from, enum http_rest_state to)
{
    static const unsigned next[REST_COUNT] = {
        [REST_NONE] = 1u << REST_HELD,
        [REST_HELD] = 1u << REST_READING | 1u << REST_FULL | 1u << REST_BROKEN,
        [REST_READING] = 1u << REST_FULL | 1u << REST_NONE | 1u << REST_SILENT | 1u << REST_BROKEN,
        [REST_SILENT] = 1u << REST_BROKEN,
        [REST_FULL] = 1u << REST_READING | 1u << REST_BROKEN,
    };

    return next[from] >> to & 1u;
}

static void rest_set(struct http_request *req, enum http_rest_state rest)
{
    assert(http_rest_may(req->rest.state, rest));
    req->rest.state = rest;
}

static void rest_break(struct http_request *req)
{
    rest_set(req, REST_BROKEN);
    if (req->rest.reader != NULL)
        http_deferred_add(req->server, &req->rest.deferred);
}

/* Reset, or both sides are closed: seen in the kernel, before a run of the loop tells it. */
static bool body_reader_is_cut(const struct http_request *req)
{
    struct pollfd end = {.fd = req->conn->fd};

    return poll(&end, 1, 0) > 0;
}

bool http_body_is_broken(const struct http_request *req)
{
    return req->rest.state == REST_BROKEN || (req->rest.state == REST_HELD && body_reader_is_cut(req));
}

bool http_body_is_whole(const struct http_request *req)
{
    return req->rest.state == REST_NONE;
}

int64_t http_body_announced(const struct http_request *req)
{
    return req->head.length == LENGTH_CHUNKED ? -1 : (int64_t)req->head.announced;
}

void http_body_reader_leave(struct http_request *req)
{
    req->rest.reader = NULL;
    http_deferred_remove(&req->rest.deferred);
}

/* -- pieces */

/* Nobody takes them now: the client is not read from. */
static void body_reader_keep(struct http_request *req, struct bytes piece)
{
    json_out_append(&req->rest.unshown, piece);
    if (!req->suspended) {
        http_clock_set(req->server, &req->conn->deadline, PHASE_NONE);
        http_connection_suspend(req);
    }
}

static void body_reader_go_on(struct http_request *req)
{
    http_connection_resume(req);
    http_clock_set(req->server, &req->conn->deadline, PHASE_BODY);
}

/* Who drips does not get more time with each drop. */
static void body_reader_time(struct http_request *req)
{
    struct http_deadline *deadline = &req->conn->deadline;

    if (deadline->phase != PHASE_BODY || req->rest.received - req->rest.timed >= HTTP_BODY_TIMED_BYTES) {
        req->rest.timed = req->rest.received;
        http_clock_set(req->server, deadline, PHASE_BODY);
    }
}

/* In a run of libmicrohttpd. */
static enum MHD_Result body_reader_show(struct http_request *req, struct bytes piece)
{
    size_t taken = 0;

    if (piece.len > 0) {
        req->server->runs.shown++;
        req->rest.again = false;
        req->in_handler = true;
        taken = req->rest.reader->piece(req->rest.reader, piece);
        req->in_handler = false;
    }
    if (req->state == STATE_ANSWERED)
        return http_reply_queue(req);
    assert(taken <= piece.len);
    if (taken == piece.len) {
        body_reader_time(req);
        return MHD_YES;
    }
    rest_set(req, REST_FULL);
    body_reader_keep(req, (struct bytes){piece.at + taken, piece.len - taken});
    if (req->rest.again)
        http_deferred_add(req->server, &req->rest.deferred);
    return MHD_YES;
}

/* Between two runs: what was kept. */
static void body_reader_show_kept(struct http_request *req)
{
    struct json_out *unshown = &req->rest.unshown;
    size_t taken;

    req->rest.again = false;
    taken = req->rest.reader->piece(req->rest.reader, (struct bytes){unshown->at, unshown->len});
    if (req->state != STATE_RUNNING)
        return;
    assert(taken <= unshown->len);
    if (taken < unshown->len) {
        memmove(unshown->at, unshown->at + taken, unshown->len - taken);
        unshown->len -= taken;
        return;
    }
    unshown->len = 0;
    rest_set(req, REST_READING);
    body_reader_go_on(req);
}

static void body_reader_deferred(struct http_deferred *deferred)
{
    struct http_request *req = container_of(deferred, struct http_request, rest.deferred);
    struct http_body_reader *body_reader = req->rest.reader;

    if (req->rest.state == REST_BROKEN || req->rest.state == REST_SILENT) {
        http_body_reader_leave(req);
        body_reader->broken(body_reader);
    } else if (req->rest.state == REST_FULL) {
        body_reader_show_kept(req);
    }
}

/* -- called by libmicrohttpd */

enum MHD_Result http_body_reader_begin(struct http_request *req, struct bytes piece)
{
    rest_set(req, REST_HELD);
    req->rest.deferred.run = body_reader_deferred;
    return http_enter_run(req, piece);
}

enum MHD_Result http_body_reader_held(struct http_request *req, struct bytes piece)
{
    if (req->rest.state == REST_READING)
        return body_reader_show(req, piece);
    body_reader_keep(req, piece);
    return MHD_YES;
}

static enum MHD_Result body_reader_end(struct http_request *req)
{
    struct http_conn *conn = req->conn;
    struct http_body_reader *body_reader = req->rest.reader;

    if (req->rest.state != REST_READING)
        return MHD_NO; /* broken, just before it would have been whole */
    rest_set(req, REST_NONE);
    http_clock_set(req->server, &conn->deadline, PHASE_NONE);
    http_body_reader_leave(req);
    req->in_handler = true;
    body_reader->whole(body_reader);
    return http_enter_leave(conn, req);
}

/* libmicrohttpd goes on from chunk to chunk, suspended or not (0.9.75, process_request_body). */
enum MHD_Result http_body_reader_enter(struct http_request *req, struct bytes piece)
{
    req->server->runs.moved++;
    if (piece.len == 0)
        return body_reader_end(req);
    if (req->rest.state == REST_BROKEN || req->rest.state == REST_SILENT)
        return MHD_YES;
    req->rest.received += piece.len;
    return http_body_reader_held(req, piece);
}

/* -- the client goes */

/* What the kernel has still counts. Whether that is all of a chunked body is known only by reading it. */
static bool body_reader_is_lost(const struct http_request *req)
{
    uint64_t wanted = req->head.announced - req->rest.received, unread = req->conn->unread.len;

    return body_reader_is_cut(req) || (req->head.length == LENGTH_ANNOUNCED && wanted > unread &&
                                       http_socket_lacks(req->conn, wanted - unread));
}

void http_body_reader_disconnected(struct http_request *req)
{
    if (req->suspended && req->rest.state != REST_BROKEN && body_reader_is_lost(req))
        rest_break(req);
}

void http_body_reader_silent(struct http_request *req)
{
    rest_set(req, REST_SILENT);
    http_connection_suspend(req);
    http_deferred_add(req->server, &req->rest.deferred);
}

void http_body_reader_closed(struct http_request *req)
{
    if (req->rest.state != REST_NONE && req->rest.state != REST_BROKEN)
        rest_break(req);
}

/* -- what the owner does */

void http_body_take(struct http_request *req, struct http_body_reader *body_reader)
{
    assert(req->state == STATE_RUNNING && req->rest.reader == NULL);
    assert(req->rest.state == REST_HELD || req->rest.state == REST_BROKEN);
    req->rest.reader = body_reader;
    body_reader->req = req;
    if (req->rest.state == REST_BROKEN) {
        http_deferred_add(req->server, &req->rest.deferred);
    } else if (!req->suspended) {
        rest_set(req, REST_READING); /* the handler is still to return */
    } else if (req->rest.unshown.len > 0) {
        rest_set(req, REST_FULL);
        http_deferred_add(req->server, &req->rest.deferred);
    } else {
        rest_set(req, REST_READING);
        body_reader_go_on(req);
    }
}

void http_body_reader_more(struct http_body_reader *body_reader)
{
    struct http_request *req = body_reader->req;

    req->rest.again = true;
    if (req->rest.state == REST_FULL)
        http_deferred_add(req->server, &req->rest.deferred);
}
