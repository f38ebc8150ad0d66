/* http_stream.c - answers without an end: pieces are kept until libmicrohttpd asks for them.
 *
 * libmicrohttpd asks its reader for more as soon as the last piece has left. A reader that has nothing
 * suspends the connection, else it would be asked at every run (0.9.75, connection.c,
 * MHD_CONNECTION_CHUNKED_BODY_UNREADY stays in the list of those that are ready, and MHD_get_timeout() says
 * 0; tried). A run after the resume asks, and the next one sends. A client of HTTP/1.0 gets the pieces as
 * they are and then the end of the connection (setup_reply_properties). */
#include <assert.h>
#include <stdlib.h>

#include "shared/http_internal.h"

/* libmicrohttpd's buffer for a client of HTTP/1.0; the others get as much as the connection's memory has room
 * for. */
enum { BLOCK_BYTES = 1024 };

/* Held by its owner, by the connection, and by libmicrohttpd's response; the last of them ends the request.
 */
struct http_flow {
    struct http_kept *kept;
    struct http_stream *stream; /* NULL when its owner has ended it */
    struct json_out unsent;     /* a plain buffer, of which the first `sent` bytes have gone */
    size_t sent;
    unsigned status, holds;
    bool waits; /* suspended in libmicrohttpd: there was nothing to send */
};

static void flow_release(struct http_flow *flow)
{
    if (--flow->holds > 0) {
        return;
    }
    flow->kept->server->open--;
    http_kept_free(flow->kept);
    json_out_done(&flow->unsent);
    free(flow);
}

/* -- what libmicrohttpd asks */

static ssize_t stream_take(struct http_flow *flow, char *buf, size_t size)
{
    size_t left = flow->unsent.len - flow->sent, len = left < size ? left : size;

    memcpy(buf, flow->unsent.at + flow->sent, len);
    flow->sent += len;
    if (len == left) { /* most streams are silent for most of the time: none keeps a buffer for that */
        json_out_done(&flow->unsent);
        flow->sent = 0;
    }
    return (ssize_t)len;
}

static ssize_t stream_read(void *cls, uint64_t position, char *buf, size_t size)
{
    struct http_flow *flow = cls;
    struct http_kept *kept = flow->kept;

    (void)position;
    if (flow->stream == NULL && kept->is_gone) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (flow->stream != NULL && (kept->is_gone || flow->unsent.len == 0)) {
        flow->waits = true;
        MHD_suspend_connection(kept->conn->mhd);
        return 0;
    }
    kept->server->moved++; /* only the next run sends it */
    kept->server->unsent++;
    return flow->unsent.len > 0 ? stream_take(flow, buf, size) : MHD_CONTENT_READER_END_OF_STREAM;
}

static void stream_freed(void *cls)
{
    flow_release(cls);
}

enum MHD_Result http_stream_queue(struct http_request *req)
{
    struct http_server *server = req->server;
    struct http_flow *flow = req->flow;
    struct http_conn *conn = req->conn;
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                                      stream_read, flow, stream_freed);
    unsigned status = req->status;
    bool suspended = req->suspended;
    enum MHD_Result good;

    http_reply_fields(req, response);
    http_state_set(req, STATE_SENDING);
    flow->holds++;
    conn->req = NULL;
    http_request_free(req);
    http_socket_hurry(conn->fd);
    http_clock_set(server, &conn->deadline,
                   flow->stream == NULL || flow->kept->is_gone ? PHASE_SEND : PHASE_NONE);
    (*(server->in_run ? &server->unsent : &server->unsent_next))++;
    good = MHD_queue_response(conn->mhd, status, response);
    MHD_destroy_response(response);
    if (suspended) {
        MHD_resume_connection(conn->mhd);
    }
    return good;
}

void http_stream_closed(struct http_kept *kept)
{
    kept->conn->kept = NULL;
    kept->conn = NULL;
    http_hangup_tell(kept);
    flow_release(kept->flow);
}

void http_stream_tell(struct http_flow *flow)
{
    if (flow->stream != NULL && flow->stream->gone != NULL) {
        flow->stream->gone(flow->stream);
    }
}

/* -- what the owner does */

enum step http_stream_begin(struct http_request *req, struct http_stream *stream, unsigned status)
{
    struct http_server *server = req->server;
    struct http_flow *flow = http_must_alloc(sizeof(*flow));
    struct http_conn *conn = req->conn;

    assert(!req->reply_overflow);
    *flow = (struct http_flow){.kept = http_kept_new(req), .stream = stream, .status = status, .holds = 1};
    stream->flow = flow;
    flow->kept->flow = flow;
    http_state_set(req, STATE_ANSWERED);
    req->status = status;
    req->flow = flow;
    if (conn != NULL) {
        conn->kept = flow->kept;
        flow->holds++;
    }
    if (conn == NULL || conn->hung_at != NULL || req->method == HTTP_HEAD) {
        http_hangup_tell(flow->kept);
    }
    if (!req->in_handler) {
        server->must_run = true;
        loop_again(server->loop);
    }
    if (conn == NULL) {
        http_request_free(req);
    } else if (req->suspended) {
        http_stream_queue(req);
    }
    return ANSWERED;
}

/* libmicrohttpd asks again, if it waits. */
static void stream_wake(struct http_flow *flow)
{
    struct http_server *server = flow->kept->server;

    if (!flow->waits) {
        return;
    }
    flow->waits = false;
    MHD_resume_connection(flow->kept->conn->mhd);
    server->must_run = true;
    loop_again(server->loop);
}

bool http_stream_write(struct http_stream *stream, struct bytes piece)
{
    struct http_flow *flow = stream->flow;
    size_t left = flow->unsent.len - flow->sent;

    if (flow->kept->is_gone || piece.len > HTTP_STREAM_UNSENT_MAX - left) {
        return false;
    }
    if (flow->sent > left) { /* moved at most as often as it has been sent */
        memmove(flow->unsent.at, flow->unsent.at + flow->sent, left);
        flow->unsent.len = left;
        flow->sent = 0;
    }
    json_out_append(&flow->unsent, piece);
    if (piece.len > 0) {
        stream_wake(flow);
    }
    return true;
}

static void stream_tell_owner(const struct http_flow *flow)
{
    const struct http_owner *owner = flow->kept->server->options.owner;
    struct http_request *req;

    if (owner == NULL || owner->ended == NULL) {
        return;
    }
    req = http_kept_request(flow->kept, NULL);
    req->status = flow->status;
    owner->ended(owner, req, flow->status, loop_now_us() - req->started_us);
    http_request_free(req);
}

void http_stream_end(struct http_stream *stream)
{
    struct http_flow *flow = stream->flow;
    struct http_conn *conn = flow->kept->conn;

    assert(flow->stream == stream);
    stream->flow = NULL;
    flow->stream = NULL;
    flow->kept->server->running--;
    stream_tell_owner(flow);
    if (conn != NULL && conn->req == NULL) {
        http_clock_set(conn->server, &conn->deadline, PHASE_SEND);
        stream_wake(flow);
    }
    flow_release(flow);
}
