/* flow.c - answers that come in pieces: kept until libmicrohttpd asks for them.
 *
 * libmicrohttpd asks its reader for more as soon as the last piece has left. A reader that has nothing
 * suspends the connection, else it would be asked at every run (0.9.75, connection.c,
 * MHD_CONNECTION_CHUNKED_BODY_UNREADY stays in the list of those that are ready, and MHD_get_timeout() says
 * 0; tried). A run after the resume asks, and the next one sends. A client of HTTP/1.0 gets the pieces as
 * they are and then the end of the connection (setup_reply_properties), unless their length is known. */
#include <assert.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "shared/http/flow.h"

/* libmicrohttpd's buffer for bodies that are not chunked; the chunks get as much as the connection's memory
 * has room for. */
enum { RESPONSE_WRITER_BLOCK_BYTES = 32768 };

void http_flow_release(struct http_flow *flow)
{
    if (--flow->holds > 0) {
        return;
    }
    http_deferred_remove(&flow->room);
    flow->kept->server->open--;
    http_kept_free(flow->kept);
    json_out_done(&flow->unsent);
    free(flow);
}

/* -- what libmicrohttpd asks */

static size_t flow_left(const struct http_flow *flow)
{
    return flow->unsent.len - flow->sent;
}

void http_flow_moved(struct http_flow *flow)
{
    flow->moved = true;
    if (flow->wants_room && flow_left(flow) <= HTTP_RESPONSE_WRITER_UNSENT_MAX / 2) {
        flow->wants_room = false;
        http_deferred_add(flow->kept->server, &flow->room);
    }
}

static ssize_t flow_take(struct http_flow *flow, char *buf, size_t size)
{
    size_t left = flow_left(flow), len = left < size ? left : size;

    memcpy(buf, flow->unsent.at + flow->sent, len);
    flow->sent += len;
    http_flow_moved(flow);
    return (ssize_t)len;
}

/* Most streams are silent for most of the time: none keeps a buffer for that. */
static ssize_t flow_wait(struct http_flow *flow)
{
    struct http_conn *conn = flow->kept->conn;

    if (flow_left(flow) == 0) {
        json_out_done(&flow->unsent);
        flow->sent = 0;
    }
    flow->waits = true;
    http_clock_set(conn->server, &conn->deadline, PHASE_NONE);
    MHD_suspend_connection(conn->mhd);
    return 0;
}

static ssize_t flow_read(void *cls, uint64_t position, char *buf, size_t size)
{
    struct http_flow *flow = cls;
    struct http_kept *kept = flow->kept;

    (void)position;
    if (flow->end == FLOW_CUT) {
        if (flow->until_close) {
            http_raw_reset(kept->conn->fd);
        }
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (flow->end == FLOW_OPEN && flow_left(flow) == 0) {
        return flow_wait(flow);
    }
    kept->server->moved++; /* only the next run sends it */
    kept->server->unsent++;
    return flow_left(flow) > 0 ? flow_take(flow, buf, size) : MHD_CONTENT_READER_END_OF_STREAM;
}

static void flow_freed(void *cls)
{
    http_flow_release(cls);
}

/* -- its head */

struct http_flow *http_flow_new(struct http_request *req, unsigned status)
{
    struct http_flow *flow = http_must_alloc(sizeof(*flow));

    *flow = (struct http_flow){.kept = http_kept_new(req), .length = -1, .left = -1, .status = status};
    flow->kept->flow = flow;
    flow->kept->told.tell = http_flow_told;
    req->flow = flow;
    if (req->conn != NULL) {
        req->conn->kept = flow->kept;
        flow->holds++;
    }
    return flow;
}

enum step http_flow_start(struct http_request *req)
{
    struct http_server *server = req->server;

    if (!req->in_handler) {
        server->must_run = true;
        loop_again(server->loop);
    }
    if (req->conn == NULL) {
        http_request_free(req);
    } else if (req->flow->early && !req->in_handler) {
        http_early_queue(req);
    } else if (req->suspended) {
        http_flow_queue(req);
    }
    return ANSWERED;
}

static struct MHD_Response *flow_response(struct http_flow *flow)
{
    uint64_t length = flow->length >= 0 ? (uint64_t)flow->length : MHD_SIZE_UNKNOWN;
    size_t block = RESPONSE_WRITER_BLOCK_BYTES;
    struct MHD_Response *response;

    if (length < block) {
        block = length > 0 ? (size_t)length : 1;
    }
    response = MHD_create_response_from_callback(length, block, flow_read, flow, flow_freed);
    if (flow->no_body && flow->length < 0) {
        /* Else it ends the body that is not there with a last chunk (0.9.75, connection.c,
         * MHD_CONNECTION_CHUNKED_BODY_UNREADY; tried). */
        (void)MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    }
    return response;
}

enum MHD_Result http_flow_queue(struct http_request *req)
{
    struct http_server *server = req->server;
    struct http_flow *flow = req->flow;
    struct http_conn *conn = req->conn;
    struct MHD_Response *response = flow_response(flow);
    bool suspended = req->suspended;
    enum MHD_Result good;

    http_reply_fields(req, response);
    http_state_set(req, STATE_SENDING);
    flow->holds++;
    conn->req = NULL;
    http_request_free(req);
    http_clock_set(server, &conn->deadline, PHASE_TAKE);
    (*(server->in_run ? &server->unsent : &server->unsent_next))++;
    good = MHD_queue_response(conn->mhd, flow->status, response);
    MHD_destroy_response(response);
    if (suspended) {
        MHD_resume_connection(conn->mhd);
    }
    return good;
}

/* -- its end */

/* Whether the client has been given all that there will be. */
static bool flow_is_done(const struct http_flow *flow)
{
    return flow->no_body || (flow_left(flow) == 0 && (flow->left == 0 || flow->end == FLOW_WHOLE));
}

void http_flow_closed(struct http_kept *kept, enum MHD_RequestTerminationCode code)
{
    struct http_flow *flow = kept->flow;

    if (kept->conn->hung_at != NULL) {
        kept->server->disconnect.look = true;
    }
    kept->conn->kept = NULL;
    kept->conn = NULL;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK || !flow_is_done(flow)) {
        http_disconnect_tell(kept);
    }
    http_flow_release(flow);
}

void http_flow_told(struct http_deferred *told)
{
    struct http_flow *flow = container_of(told, struct http_kept, told)->flow;

    if (flow->stream != NULL && flow->stream->gone != NULL) {
        flow->stream->gone(flow->stream);
    } else if (flow->response_writer != NULL) {
        http_deferred_remove(&flow->room);
        flow->response_writer->gone(flow->response_writer);
    }
}

static void flow_tell_owner(const struct http_flow *flow)
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

void http_flow_leave(struct http_flow *flow)
{
    flow->stream = NULL;
    flow->response_writer = NULL;
    flow->wants_room = false;
    http_deferred_remove(&flow->room);
    flow->kept->server->running--;
    flow_tell_owner(flow);
    http_flow_release(flow);
}

/* -- pieces */

void http_flow_append(struct http_flow *flow, struct bytes piece)
{
    size_t left = flow_left(flow);

    /* Moved at most as often as it has been sent, or when it would grow beyond what may wait. */
    if (flow->sent > left ||
        (flow->is_response_writer && flow->unsent.len + piece.len > HTTP_RESPONSE_WRITER_UNSENT_MAX)) {
        memmove(flow->unsent.at, flow->unsent.at + flow->sent, left);
        flow->unsent.len = left;
        flow->sent = 0;
    }
    json_out_append(&flow->unsent, piece);
}

void http_flow_wake(struct http_flow *flow)
{
    struct http_server *server = flow->kept->server;
    struct http_conn *conn = flow->kept->conn;

    if (flow->begun) {
        http_early_wake(flow);
        return;
    }
    if (!flow->waits || conn == NULL) {
        return;
    }
    flow->waits = false;
    http_clock_set(server, &conn->deadline, PHASE_TAKE);
    MHD_resume_connection(conn->mhd);
    server->must_run = true;
    loop_again(server->loop);
}

/* -- does the client take anything? */

/* The kernel's queue is longer or shorter, or was given more: then the client has taken something. */
void http_flow_look(struct http_conn *conn)
{
    struct http_flow *flow = conn->kept->flow;
    int queued = 0;

    (void)ioctl(conn->fd, SIOCOUTQ, &queued);
    flow->idle_looks = flow->moved || queued != flow->queued ? 0 : flow->idle_looks + 1;
    flow->moved = false;
    flow->queued = queued;
    if (flow->idle_looks < HTTP_FLOW_LOOKS) {
        http_clock_set(conn->server, &conn->deadline, PHASE_TAKE);
    } else if (flow->begun) {
        http_early_drop(flow);
    } else {
        shutdown(conn->fd, SHUT_RDWR); /* libmicrohttpd notices, and closes */
    }
}
