/* response_writer.c - answers that come in pieces: streams without an end, and bodies with back-pressure.
 *
 * libmicrohttpd asks its reader for more as soon as the last piece has left. A reader that has nothing
 * suspends the connection, else it would be asked at every run (0.9.75, connection.c,
 * MHD_CONNECTION_CHUNKED_BODY_UNREADY stays in the list of those that are ready, and MHD_get_timeout() says
 * 0; tried). A run after the resume asks, and the next one sends. A client of HTTP/1.0 gets the pieces as
 * they are and then the end of the connection (setup_reply_properties), unless their length is known.
 *
 * An answer whose length is known is over for libmicrohttpd when so many bytes have been sent, and one
 * without a body at once: its owner may end it later, when the connection is busy with the next request.
 *
 * Early answers come before the request's body is whole, or have a head that libmicrohttpd has no room for.
 * They and streams are written past libmicrohttpd, and the connection is closed behind them. Of a stream it
 * would send what fits into the connection's memory, some 3 KiB, with a copy, a resume and two runs for each:
 * a thousand clients that got 25 KB ten times a second cost four times as much of the processor.
 *
 * libmicrohttpd takes no answer in the middle of a body (0.9.75, connection.c, MHD_queue_response), and
 * reading the body to its end first may take as long as the client likes. A suspended connection it does not
 * touch: meanwhile the socket is ours. When all has been written, our side is closed, and libmicrohttpd is
 * resumed: the first piece that still comes begins a lingering close (raw.c), so that no reset
 * overtakes the answer, and the next request is never looked for in the middle of a body. */
#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

/* BLOCK_BYTES: libmicrohttpd's buffer for bodies that are not chunked; the chunks get as much as the
 * connection's memory has room for. */
enum { BLOCK_BYTES = 32768, CHUNK_HEAD_BYTES = 20 };

static void response_wake(struct http_response *response);
static void early_ready(struct loop_watch *watch, int events);
static void early_wake(struct http_response *response);
static enum MHD_Result early_queue(struct http_request *req);

static size_t response_left(const struct http_response *response)
{
    return response->unsent.len - response->sent;
}

static void response_release(struct http_response *response)
{
    if (--response->holds > 0)
        return;
    http_deferred_remove(&response->room);
    response->kept->server->open--;
    http_kept_free(response->kept);
    json_out_done(&response->unsent);
    free(response);
}

/* -- what libmicrohttpd asks */

/* libmicrohttpd, or the kernel, has taken something. */
static void response_moved(struct http_response *response)
{
    response->moved = true;
    if (response->wants_room && response_left(response) <= HTTP_RESPONSE_WRITER_UNSENT_MAX / 2) {
        response->wants_room = false;
        http_deferred_add(response->kept->server, &response->room);
    }
}

static ssize_t response_take(struct http_response *response, char *buf, size_t size)
{
    size_t left = response_left(response), len = left < size ? left : size;

    memcpy(buf, response->unsent.at + response->sent, len);
    response->sent += len;
    response_moved(response);
    return (ssize_t)len;
}

/* Most of them wait for most of the time: none keeps a buffer for that. */
static void response_drop_buffer(struct http_response *response)
{
    json_out_done(&response->unsent);
    response->sent = 0;
}

static ssize_t response_wait(struct http_response *response)
{
    struct http_conn *conn = response->kept->conn;

    response_drop_buffer(response);
    response->waits = true;
    http_clock_set(conn->server, &conn->deadline, PHASE_NONE);
    MHD_suspend_connection(conn->mhd);
    return 0;
}

static ssize_t response_read(void *cls, uint64_t position, char *buf, size_t size)
{
    struct http_response *response = cls;
    struct http_kept *kept = response->kept;

    (void)position;
    if (response->end == RESPONSE_CUT) {
        if (response->until_close)
            http_raw_reset(kept->conn->fd);
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (response->end == RESPONSE_OPEN && response_left(response) == 0)
        return response_wait(response);
    kept->server->runs.moved++; /* only the next run sends it */
    kept->server->runs.unsent++;
    return response_left(response) > 0 ? response_take(response, buf, size)
                                       : MHD_CONTENT_READER_END_OF_STREAM;
}

static void response_freed(void *cls)
{
    response_release(cls);
}

/* -- its head */

static void response_gone(struct http_deferred *deferred)
{
    struct http_response *response = container_of(deferred, struct http_kept, deferred)->response;
    struct http_response_writer *writer = response->writer;

    if (writer != NULL && writer->gone != NULL) {
        http_deferred_remove(&response->room);
        writer->gone(writer);
    }
}

static void response_room(struct http_deferred *deferred)
{
    struct http_response *response = container_of(deferred, struct http_response, room);

    response->writer->room(response->writer);
}

static struct http_response *response_new(struct http_request *req, unsigned status)
{
    struct http_response *response = must_have(malloc(sizeof(*response)));

    *response = (struct http_response){
        .kept = http_kept_new(req), .room.run = response_room, .length = -1, .left = -1, .status = status};
    response->kept->response = response;
    response->kept->deferred.run = response_gone;
    response->no_body = req->method == HTTP_HEAD || status == MHD_HTTP_NO_CONTENT ||
                        status == MHD_HTTP_NOT_MODIFIED;
    req->reply.response = response;
    if (req->conn != NULL) {
        req->conn->kept = response->kept;
        response->holds++;
    }
    return response;
}

static void early_begin(struct http_request *req)
{
    struct http_response *response = req->reply.response;

    response->early = true;
    http_raw_head(req, response->status, response->length, &response->unsent);
}

/* Hands it over, unless the handler is to return first. */
static enum step response_start(struct http_request *req, struct http_response_writer *writer)
{
    struct http_response *response = req->reply.response;

    http_body_reader_leave(req);
    response->holds++;
    response->writer = writer;
    writer->response = response;
    response->until_close = response->length < 0 && req->head.is_1_0;
    req->reply.status = response->status;
    http_state_set(req, STATE_ANSWERED);
    if (response->is_stream || http_reply_is_early(req))
        early_begin(req);
    if (req->conn == NULL || req->conn->left.at != NULL || (response->is_stream && response->no_body))
        http_disconnect_report(response->kept);
    if (!req->in_handler)
        http_run_soon(req->server);
    if (req->conn == NULL)
        http_request_free(req);
    else if (req->suspended || (response->early && !req->in_handler))
        http_response_queue(req);
    return ANSWERED;
}

enum step http_response_writer_begin(struct http_request *req, struct http_response_writer *writer,
                                     unsigned status, int64_t length)
{
    struct http_response *response;

    assert(req->state == STATE_RUNNING && !req->reply.overflow && length >= -1);
    response = response_new(req, status);
    response->length = response->left = status == MHD_HTTP_NO_CONTENT ? 0 : length;
    return response_start(req, writer);
}

enum step http_stream_begin(struct http_request *req, struct http_response_writer *writer, const char *type)
{
    struct http_response *response;

    http_reply_header(req, "Content-Type", bytes_of(type));
    http_reply_header(req, "X-Accel-Buffering", BYTES("no")); /* else nginx gathers 4 KiB before it sends */
    assert(!req->reply.overflow && http_body_is_whole(req));
    response = response_new(req, 200);
    response->is_stream = true;
    response->end = response->no_body ? RESPONSE_WHOLE : RESPONSE_OPEN;
    return response_start(req, writer);
}

static struct MHD_Response *response_for_mhd(struct http_response *response)
{
    uint64_t length = response->length >= 0 ? (uint64_t)response->length : MHD_SIZE_UNKNOWN;
    size_t block = BLOCK_BYTES;
    struct MHD_Response *mhd;

    if (length < block)
        block = length > 0 ? (size_t)length : 1;
    mhd = MHD_create_response_from_callback(length, block, response_read, response, response_freed);
    if (response->no_body && response->length < 0) {
        /* Else it ends the body that is not there with a last chunk (0.9.75, connection.c,
         * MHD_CONNECTION_CHUNKED_BODY_UNREADY; tried). */
        (void)MHD_set_response_options(mhd, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    }
    return mhd;
}

enum MHD_Result http_response_queue(struct http_request *req)
{
    struct http_server *server = req->server;
    struct http_response *response = req->reply.response;
    struct http_conn *conn = req->conn;
    bool suspended = req->suspended;
    struct MHD_Response *mhd;
    enum MHD_Result good;

    if (response->early)
        return early_queue(req);
    mhd = response_for_mhd(response);
    http_reply_fields(req, mhd);
    http_state_set(req, STATE_SENDING);
    response->holds++;
    conn->req = NULL;
    http_request_free(req);
    http_clock_set(server, &conn->deadline, PHASE_TAKE);
    (*(server->runs.is_on ? &server->runs.unsent : &server->runs.unsent_next))++;
    good = MHD_queue_response(conn->mhd, response->status, mhd);
    MHD_destroy_response(mhd);
    if (suspended)
        MHD_resume_connection(conn->mhd);
    return good;
}

/* -- its end */

/* Whether the client has been given all that there will be. */
static bool response_is_done(const struct http_response *response)
{
    return response->no_body ||
           (response_left(response) == 0 && (response->left == 0 || response->end == RESPONSE_WHOLE));
}

void http_response_closed(struct http_kept *kept, enum MHD_RequestTerminationCode code)
{
    struct http_response *response = kept->response;

    if (kept->conn->left.at != NULL)
        kept->server->disconnect.look = true;
    kept->conn->kept = NULL;
    kept->conn = NULL;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK || !response_is_done(response))
        http_disconnect_report(kept);
    response_release(response);
}

bool http_response_writer_stands(const struct http_response_writer *writer)
{
    return http_kept_stands(writer->response->kept);
}

void http_response_writer_end(struct http_response_writer *writer, enum http_response_writer_end end)
{
    struct http_response *response = writer->response;
    struct http_conn *conn = response->kept->conn;
    struct http_request *req;
    bool is_short = response->is_stream ? response->kept->is_gone : response->left > 0;

    assert(response->writer == writer);
    writer->response = NULL;
    response->end = end == HTTP_RESPONSE_WRITER_CUT || (is_short && !response->no_body) ? RESPONSE_CUT
                                                                                        : RESPONSE_WHOLE;
    if (response->is_stream && conn != NULL && conn->req == NULL)
        http_clock_set(conn->server, &conn->deadline, PHASE_SEND);
    response_wake(response);
    response->writer = NULL;
    response->wants_room = false;
    http_deferred_remove(&response->room);
    response->kept->server->running--;
    req = http_kept_request(response->kept, NULL);
    req->reply.status = response->status;
    http_reply_report(req);
    http_request_free(req);
    response_release(response);
}

/* -- pieces */

static void response_append(struct http_response *response, struct bytes piece)
{
    size_t left = response_left(response);

    /* Moved at most as often as it has been sent, or when it would grow beyond what may wait. */
    if (response->sent > left ||
        (!response->is_stream && response->unsent.len + piece.len > HTTP_RESPONSE_WRITER_UNSENT_MAX)) {
        memmove(response->unsent.at, response->unsent.at + response->sent, left);
        response->unsent.len = left;
        response->sent = 0;
    }
    json_out_append(&response->unsent, piece);
}

/* There is something to send, or the end. */
static void response_wake(struct http_response *response)
{
    struct http_conn *conn = response->kept->conn;

    if (response->begun) {
        assert(conn != NULL); /* it begins on one, and early_leave() ends both */
        early_wake(response);
        return;
    }
    if (!response->waits || conn == NULL)
        return;
    response->waits = false;
    http_clock_set(conn->server, &conn->deadline, PHASE_TAKE);
    MHD_resume_connection(conn->mhd);
    http_run_soon(conn->server);
}

static bool is_chunked(const struct http_response *response)
{
    return response->early && response->length < 0 && !response->until_close && !response->no_body;
}

static void response_put(struct http_response *response, struct bytes piece)
{
    char head[CHUNK_HEAD_BYTES];

    if (piece.len == 0)
        return;
    if (is_chunked(response)) {
        size_t len = (size_t)snprintf(head, sizeof(head), "%zx\r\n", piece.len);

        response_append(response, (struct bytes){head, len});
        response_append(response, piece);
        response_append(response, BYTES("\r\n"));
    } else {
        response_append(response, piece);
    }
    response_wake(response);
}

size_t http_response_writer_write(struct http_response_writer *writer, struct bytes piece)
{
    struct http_response *response = writer->response;
    size_t left = response_left(response);
    size_t room = left < HTTP_RESPONSE_WRITER_UNSENT_MAX ? HTTP_RESPONSE_WRITER_UNSENT_MAX - left : 0;

    if (response->kept->is_gone && response->kept->deferred.at == NULL)
        return 0; /* its client has gone, and its owner knows */
    if (response->no_body || response->kept->conn == NULL)
        return piece.len; /* nobody to send it to: an owner that does not know yet will */
    assert(response->left < 0 || piece.len <= (uint64_t)response->left);
    response->wants_room = response->wants_room || piece.len > room;
    piece.len = piece.len < room ? piece.len : room;
    if (response->left >= 0)
        response->left -= (int64_t)piece.len;
    response_put(response, piece);
    return piece.len;
}

bool http_stream_write(struct http_response_writer *writer, struct bytes piece)
{
    struct http_response *response = writer->response;

    if (response->kept->is_gone || piece.len + response_left(response) > HTTP_STREAM_UNSENT_MAX)
        return false;
    response_put(response, piece);
    return true;
}

/* -- does the client take anything? */

/* The kernel's queue is longer or shorter, or was given more: then the client has taken something. */
void http_response_look(struct http_conn *conn)
{
    struct http_response *response = conn->kept->response;
    int queued = 0;

    (void)ioctl(conn->fd, SIOCOUTQ, &queued);
    response->idle_looks = response->moved || queued != response->queued ? 0 : response->idle_looks + 1;
    response->moved = false;
    response->queued = queued;
    if (response->idle_looks < HTTP_RESPONSE_LOOKS)
        http_clock_set(conn->server, &conn->deadline, PHASE_TAKE);
    else if (response->begun)
        http_early_drop(response);
    else
        shutdown(conn->fd, SHUT_RDWR); /* libmicrohttpd notices, and closes */
}

/* -- past libmicrohttpd */

void http_early_answer(struct http_request *req)
{
    struct http_response *response = response_new(req, req->reply.status);

    response->length = (int64_t)req->reply.body.len;
    response->left = 0;
    response->end = RESPONSE_WHOLE;
    early_begin(req);
    if (!response->no_body)
        response_append(response, req->reply.body);
    if (!req->in_handler)
        early_queue(req);
}

/* libmicrohttpd has the connection again. */
static void early_leave(struct http_response *response)
{
    struct http_server *server = response->kept->server;
    struct http_conn *conn = response->kept->conn;

    if (response->watched)
        loop_watch_done(&response->watch);
    response->begun = false;
    conn->over = true;
    conn->kept = NULL;
    response->kept->conn = NULL;
    http_clock_set(server, &conn->deadline, PHASE_OVER);
    MHD_resume_connection(conn->mhd);
    server->disconnect.look = server->disconnect.look || conn->left.at != NULL;
    http_run_soon(server);
    response_release(response);
}

void http_early_drop(struct http_response *response)
{
    shutdown(response->kept->conn->fd, SHUT_RDWR);
    http_disconnect_report(response->kept);
    early_leave(response);
}

static void early_done(struct http_response *response)
{
    struct http_conn *conn = response->kept->conn;

    if (response->end == RESPONSE_CUT && response->until_close)
        http_raw_reset(conn->fd);
    else if (response->end == RESPONSE_CUT)
        shutdown(conn->fd, SHUT_RDWR);
    else
        http_socket_shut(conn, SHUT_WR);
    early_leave(response);
}

static void early_wait(struct http_response *response, int events)
{
    struct http_conn *conn = response->kept->conn;

    if (events == 0)
        response_drop_buffer(response);
    if (!response->watched && events != 0) {
        response->watched = true;
        loop_watch_init(conn->server->loop, &response->watch, conn->fd, early_ready, events);
    } else if (response->watched) {
        loop_watch_set(&response->watch, events);
    }
    if (!response->is_stream)
        http_clock_set(conn->server, &conn->deadline, events != 0 ? PHASE_TAKE : PHASE_NONE);
}

static void early_send(struct http_response *response)
{
    size_t left;

    while ((left = response_left(response)) > 0) {
        const struct iovec rest = {response->unsent.at + response->sent, left};
        ssize_t now = http_socket_write(response->kept->conn, &rest, 1);

        if (now < 0 && errno != EAGAIN && errno != EINTR) {
            http_early_drop(response);
            return;
        }
        if (now < 0)
            break;
        response->sent += (size_t)now;
        response_moved(response);
    }
    if (left == 0 && response->end != RESPONSE_OPEN)
        early_done(response);
    else
        early_wait(response, left > 0 ? LOOP_WRITE : 0);
}

static void early_ready(struct loop_watch *watch, int events)
{
    (void)events;
    early_send(container_of(watch, struct http_response, watch));
}

static void early_wake(struct http_response *response)
{
    if (response->end == RESPONSE_CUT) {
        early_done(response);
        return;
    }
    if (response->end == RESPONSE_WHOLE && is_chunked(response))
        response_append(response, BYTES("0\r\n\r\n"));
    early_send(response);
}

static enum MHD_Result early_queue(struct http_request *req)
{
    struct http_response *response = req->reply.response;
    struct http_conn *conn = req->conn;
    bool suspended = req->suspended, broken = req->rest.state == REST_BROKEN;

    http_state_set(req, STATE_SENDING);
    conn->req = NULL;
    http_request_unpoll(req);
    http_request_bury(req);
    http_recv_forget(conn); /* no request is looked for behind it */
    if (!suspended)
        MHD_suspend_connection(conn->mhd);
    response->begun = true;
    if (response->is_stream) {
        http_socket_hurry(conn->fd);
        http_clock_set(conn->server, &conn->deadline,
                       response->end == RESPONSE_OPEN ? PHASE_NONE : PHASE_SEND);
    }
    if (broken)
        http_early_drop(response);
    else
        early_wake(response);
    return MHD_YES;
}

enum MHD_Result http_early_over(struct http_conn *conn)
{
    http_linger_begin(conn);
    http_clock_set(conn->server, &conn->deadline, PHASE_NONE);
    return MHD_NO;
}

static void early_stop(struct http_deadlines *list)
{
    for (struct http_deadline *deadline = TAILQ_FIRST(list), *next; deadline != NULL; deadline = next) {
        struct http_kept *kept = container_of(deadline, struct http_conn, deadline)->kept;

        next = TAILQ_NEXT(deadline, place);
        if (kept != NULL && kept->response->begun)
            http_early_drop(kept->response);
    }
}

void http_early_stop(struct http_server *server)
{
    early_stop(&server->clock.lists[PHASE_TAKE]);
    early_stop(&server->clock.lists[PHASE_SEND]);
}
