/* early.c - answers that come before the request's body is whole, or whose head libmicrohttpd has no
 * room for, and streams: they are written past libmicrohttpd, and the connection is closed behind them.
 *
 * Of a stream it would send what fits into the connection's memory, some 3 KiB, with a copy, a resume and two
 * runs for each: a thousand who were told 25 KB ten times a second cost four times as much of the processor.
 *
 * libmicrohttpd takes no answer in the middle of a body (0.9.75, connection.c, MHD_queue_response), and
 * reading the body to its end first may take as long as the client likes. A suspended connection it does not
 * touch: meanwhile the socket is ours. When all has been written, our side is closed, and libmicrohttpd is
 * let go on: the first piece that still comes begins a lingering close (raw.c), so that no reset
 * overtakes the answer, and the next request is never looked for in the middle of a body. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "shared/http/flow.h"

enum { CHUNK_HEAD_BYTES = 20 };

static void early_ready(struct loop_watch *watch, int events);

/* -- its head, and its pieces */

void http_early_flow(struct http_request *req)
{
    req->flow->early = true;
    http_raw_head(req, req->flow->status, req->flow->length, &req->flow->unsent);
}

void http_early_answer(struct http_request *req)
{
    struct http_flow *flow = http_flow_new(req, req->status);

    flow->is_response_writer = true;
    flow->no_body = req->method == HTTP_HEAD || req->status == MHD_HTTP_NO_CONTENT ||
                    req->status == MHD_HTTP_NOT_MODIFIED;
    flow->length = (int64_t)req->reply.len;
    flow->left = 0;
    flow->end = FLOW_WHOLE;
    http_early_flow(req);
    if (!flow->no_body) {
        http_flow_append(flow, req->reply);
    }
    if (!req->in_handler) {
        http_early_queue(req);
    }
}

static bool is_chunked(const struct http_flow *flow)
{
    return flow->early && flow->length < 0 && !flow->until_close && !flow->no_body;
}

void http_early_chunk(struct http_flow *flow, size_t len)
{
    char head[CHUNK_HEAD_BYTES];

    if (is_chunked(flow)) {
        http_flow_append(flow, (struct bytes){head, (size_t)snprintf(head, sizeof(head), "%zx\r\n", len)});
    }
}

void http_early_chunk_end(struct http_flow *flow)
{
    if (is_chunked(flow)) {
        http_flow_append(flow, BYTES("\r\n"));
    }
}

/* -- sending */

/* libmicrohttpd has the connection again. */
static void early_leave(struct http_flow *flow)
{
    struct http_server *server = flow->kept->server;
    struct http_conn *conn = flow->kept->conn;

    if (flow->watched) {
        loop_watch_done(&flow->watch);
    }
    flow->begun = false;
    conn->over = true;
    conn->kept = NULL;
    flow->kept->conn = NULL;
    http_clock_set(server, &conn->deadline, PHASE_OVER);
    MHD_resume_connection(conn->mhd);
    server->disconnect.look = server->disconnect.look || conn->hung_at != NULL;
    server->must_run = true;
    loop_again(server->loop);
    http_flow_release(flow);
}

void http_early_drop(struct http_flow *flow)
{
    shutdown(flow->kept->conn->fd, SHUT_RDWR);
    http_disconnect_tell(flow->kept);
    early_leave(flow);
}

static void early_done(struct http_flow *flow)
{
    int fd = flow->kept->conn->fd;

    if (flow->end == FLOW_CUT && flow->until_close) {
        http_raw_reset(fd);
    } else {
        shutdown(fd, flow->end == FLOW_CUT ? SHUT_RDWR : SHUT_WR);
    }
    early_leave(flow);
}

static void early_wait(struct http_flow *flow, int events)
{
    struct http_conn *conn = flow->kept->conn;

    if (events == 0) {
        json_out_done(&flow->unsent); /* most streams are silent for most of the time */
        flow->sent = 0;
    }
    if (!flow->watched && events != 0) {
        flow->watched = true;
        loop_watch_init(conn->server->loop, &flow->watch, conn->fd, early_ready, events);
    } else if (flow->watched) {
        loop_watch_set(&flow->watch, events);
    }
    if (flow->is_response_writer) {
        http_clock_set(conn->server, &conn->deadline, events != 0 ? PHASE_TAKE : PHASE_NONE);
    }
}

static void early_send(struct http_flow *flow)
{
    size_t left;

    while ((left = flow->unsent.len - flow->sent) > 0) {
        ssize_t now = send(flow->kept->conn->fd, flow->unsent.at + flow->sent, left,
                           MSG_NOSIGNAL | MSG_DONTWAIT);

        if (now < 0 && errno != EAGAIN && errno != EINTR) {
            http_early_drop(flow);
            return;
        }
        if (now < 0) {
            break;
        }
        flow->sent += (size_t)now;
        http_flow_moved(flow);
    }
    if (left == 0 && flow->end != FLOW_OPEN) {
        early_done(flow);
    } else {
        early_wait(flow, left > 0 ? LOOP_WRITE : 0);
    }
}

static void early_ready(struct loop_watch *watch, int events)
{
    (void)events;
    early_send(container_of(watch, struct http_flow, watch));
}

void http_early_wake(struct http_flow *flow)
{
    if (flow->end == FLOW_CUT) {
        early_done(flow);
        return;
    }
    if (flow->end == FLOW_WHOLE && is_chunked(flow)) {
        http_flow_append(flow, BYTES("0\r\n\r\n"));
    }
    early_send(flow);
}

enum MHD_Result http_early_queue(struct http_request *req)
{
    struct http_flow *flow = req->flow;
    struct http_conn *conn = req->conn;
    bool suspended = req->suspended, broken = req->rest == REST_BROKEN;

    http_state_set(req, STATE_SENDING);
    conn->req = NULL;
    http_request_unpoll(req);
    http_request_bury(req);
    http_recv_forget(conn); /* no request is looked for behind it */
    if (!suspended) {
        MHD_suspend_connection(conn->mhd);
    }
    flow->begun = true;
    if (!flow->is_response_writer) {
        http_socket_hurry(conn->fd);
        http_clock_set(conn->server, &conn->deadline, flow->end == FLOW_OPEN ? PHASE_NONE : PHASE_SEND);
    }
    if (broken) {
        http_early_drop(flow);
    } else {
        http_early_wake(flow);
    }
    return MHD_YES;
}

/* -- afterwards */

enum MHD_Result http_early_over(struct http_conn *conn)
{
    http_linger_begin(conn);
    http_clock_set(conn->server, &conn->deadline, PHASE_NONE);
    return MHD_NO;
}

static void early_stop(struct http_deadline *deadline)
{
    for (struct http_deadline *next; deadline != NULL; deadline = next) {
        struct http_kept *kept = container_of(deadline, struct http_conn, deadline)->kept;

        next = deadline->next;
        if (kept != NULL && kept->flow->begun) {
            http_early_drop(kept->flow);
        }
    }
}

void http_early_stop(struct http_server *server)
{
    early_stop(server->clock.first[PHASE_TAKE]);
    early_stop(server->clock.first[PHASE_SEND]);
}
