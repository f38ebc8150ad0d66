/* stream.c - answers without an end: a client that does not read is given up. */
#include <assert.h>

#include "shared/http/flow.h"

enum step http_stream_begin(struct http_request *req, struct http_stream *stream, unsigned status)
{
    struct http_conn *conn = req->conn;
    struct http_flow *flow;

    assert(!req->reply_overflow && http_body_is_whole(req));
    flow = http_flow_new(req, status);
    flow->holds++;
    flow->stream = stream;
    flow->no_body = req->method == HTTP_HEAD;
    flow->end = flow->no_body ? FLOW_WHOLE : FLOW_OPEN;
    flow->until_close = req->is_1_0;
    stream->flow = flow;
    http_state_set(req, STATE_ANSWERED);
    req->status = status;
    http_early_flow(req);
    if (conn == NULL || conn->hung_at != NULL || req->method == HTTP_HEAD) {
        http_disconnect_tell(flow->kept);
    }
    return http_flow_start(req);
}

bool http_stream_write(struct http_stream *stream, struct bytes piece)
{
    struct http_flow *flow = stream->flow;
    size_t left = flow->unsent.len - flow->sent;

    if (flow->kept->is_gone || piece.len + left > HTTP_STREAM_UNSENT_MAX) {
        return false;
    }
    if (piece.len > 0) {
        http_early_chunk(flow, piece.len);
        http_flow_append(flow, piece);
        http_early_chunk_end(flow);
        http_flow_wake(flow);
    }
    return true;
}

void http_stream_end(struct http_stream *stream)
{
    struct http_flow *flow = stream->flow;
    struct http_conn *conn = flow->kept->conn;

    assert(flow->stream == stream);
    stream->flow = NULL;
    if (flow->end == FLOW_OPEN) {
        flow->end = flow->kept->is_gone ? FLOW_CUT : FLOW_WHOLE;
    }
    if (conn != NULL && conn->req == NULL) {
        http_clock_set(conn->server, &conn->deadline, PHASE_SEND);
        http_flow_wake(flow);
    }
    http_flow_leave(flow);
}
