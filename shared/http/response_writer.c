/* response_writer.c - answers that are passed on: as much as the client takes, and the connection is kept.
 *
 * An outlet whose length is known is over for libmicrohttpd when so many bytes have been sent, and one
 * without a body at once: its owner may end it later, when the connection is busy with the next request. */
#include <assert.h>

#include "shared/http/flow.h"

static void outlet_room(struct http_told *told)
{
    struct http_flow *flow = container_of(told, struct http_flow, room);

    flow->outlet->room(flow->outlet);
}

/* Its client has gone, and its owner knows. */
static bool outlet_is_gone(const struct http_flow *flow)
{
    return flow->kept->is_gone && flow->kept->told.at == NULL;
}

enum step http_outlet_begin(struct http_request *req, struct http_outlet *outlet, unsigned status,
                            int64_t length)
{
    struct http_conn *conn = req->conn;
    bool early = http_reply_is_early(req);
    struct http_flow *flow;

    assert(req->state == STATE_RUNNING && !req->reply_overflow && length >= -1);
    http_intake_leave(req);
    flow = http_flow_new(req, status);
    flow->holds++;
    flow->outlet = outlet;
    flow->is_outlet = true;
    flow->room.tell = outlet_room;
    flow->length = status == MHD_HTTP_NO_CONTENT ? 0 : length;
    flow->left = flow->length;
    flow->no_body = req->method == HTTP_HEAD || status == MHD_HTTP_NO_CONTENT ||
                    status == MHD_HTTP_NOT_MODIFIED;
    flow->until_close = length < 0 && req->is_1_0;
    outlet->flow = flow;
    http_state_set(req, STATE_ANSWERED);
    req->status = status;
    if (early) {
        http_early_flow(req);
    }
    if (conn == NULL || conn->hung_at != NULL) {
        http_hangup_tell(flow->kept);
    }
    return http_flow_start(req);
}

size_t http_outlet_write(struct http_outlet *outlet, struct bytes piece)
{
    struct http_flow *flow = outlet->flow;
    size_t left = flow->unsent.len - flow->sent;
    size_t room = left < HTTP_OUTLET_UNSENT_MAX ? HTTP_OUTLET_UNSENT_MAX - left : 0;

    if (outlet_is_gone(flow)) {
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

void http_outlet_end(struct http_outlet *outlet, enum http_outlet_end end)
{
    struct http_flow *flow = outlet->flow;

    assert(flow->outlet == outlet);
    outlet->flow = NULL;
    flow->end = end == HTTP_OUTLET_CUT || (flow->left > 0 && !flow->no_body) ? FLOW_CUT : FLOW_WHOLE;
    http_flow_wake(flow);
    http_flow_leave(flow);
}
