/* response_writer.c - answers that are passed on: as much as the client takes, and the connection is kept.
 *
 * An outlet whose length is known is over for libmicrohttpd when so many bytes have been sent, and one
 * without a body at once: its owner may end it later, when the connection is busy with the next request. */
#include <assert.h>

#include "shared/http/flow.h"

static void response_writer_room(struct http_deferred *told)
{
    struct http_flow *flow = container_of(told, struct http_flow, room);

    flow->response_writer->room(flow->response_writer);
}

/* Its client has gone, and its owner knows. */
static bool response_writer_is_gone(const struct http_flow *flow)
{
    return flow->kept->is_gone && flow->kept->told.at == NULL;
}

enum step http_response_writer_begin(struct http_request *req, struct http_response_writer *response_writer,
                                     unsigned status, int64_t length)
{
    struct http_conn *conn = req->conn;
    bool early = http_reply_is_early(req);
    struct http_flow *flow;

    assert(req->state == STATE_RUNNING && !req->reply_overflow && length >= -1);
    http_body_reader_leave(req);
    flow = http_flow_new(req, status);
    flow->holds++;
    flow->response_writer = response_writer;
    flow->is_response_writer = true;
    flow->room.tell = response_writer_room;
    flow->length = status == MHD_HTTP_NO_CONTENT ? 0 : length;
    flow->left = flow->length;
    flow->no_body = req->method == HTTP_HEAD || status == MHD_HTTP_NO_CONTENT ||
                    status == MHD_HTTP_NOT_MODIFIED;
    flow->until_close = length < 0 && req->is_1_0;
    response_writer->flow = flow;
    http_state_set(req, STATE_ANSWERED);
    req->status = status;
    if (early) {
        http_early_flow(req);
    }
    if (conn == NULL || conn->hung_at != NULL) {
        http_disconnect_tell(flow->kept);
    }
    return http_flow_start(req);
}

size_t http_response_writer_write(struct http_response_writer *response_writer, struct bytes piece)
{
    struct http_flow *flow = response_writer->flow;
    size_t left = flow->unsent.len - flow->sent;
    size_t room = left < HTTP_RESPONSE_WRITER_UNSENT_MAX ? HTTP_RESPONSE_WRITER_UNSENT_MAX - left : 0;

    if (response_writer_is_gone(flow)) {
        return 0;
    }
    if (flow->no_body || flow->kept->conn == NULL) {
        return piece.len; /* nobody to send it to: who is not told yet will be */
    }
    assert(flow->left < 0 || piece.len <= (uint64_t)flow->left);
    flow->wants_room = flow->wants_room || piece.len > room;
    piece.len = piece.len < room ? piece.len : room;
    if (flow->left >= 0) {
        flow->left -= (int64_t)piece.len;
    }
    if (piece.len > 0) {
        http_early_chunk(flow, piece.len);
        http_flow_append(flow, piece);
        http_early_chunk_end(flow);
        http_flow_wake(flow);
    }
    return piece.len;
}

void http_response_writer_end(struct http_response_writer *response_writer, enum http_response_writer_end end)
{
    struct http_flow *flow = response_writer->flow;

    assert(flow->response_writer == response_writer);
    response_writer->flow = NULL;
    flow->end = end == HTTP_RESPONSE_WRITER_CUT || (flow->left > 0 && !flow->no_body) ? FLOW_CUT : FLOW_WHOLE;
    http_flow_wake(flow);
    http_flow_leave(flow);
}
