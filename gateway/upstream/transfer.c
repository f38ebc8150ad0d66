/* transfer.c - an exchange with an upstream: a request, as bytes, to the kernel, and an answer to the owner.
 *
 * The request is gathered in one block, so that head and body of a small one leave in one send(2). A block
 * that has grown is not kept for the next request of a connection. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

/* -- bytes that wait for the kernel */

enum {
    OUT_FIRST = 2048,
    OUT_KEPT = 8192,
    FRAMING_MAX = 96, /* the field, the number, Connection, the empty line */
    CHUNK_HEAD_MAX = 24
};

/* Room for so many bytes more behind what waits. */
static char *out_room(struct uplink_request *out, size_t more)
{
    size_t waiting = out->to - out->from, size = out->size > 0 ? out->size : OUT_FIRST;

    if (out->size - out->to >= more)
        return out->at + out->to;
    if (out->from > 0) {
        memmove(out->at, out->at + out->from, waiting);
        out->from = 0;
        out->to = waiting;
    }
    while (size - waiting < more) {
        assert(size <= SIZE_MAX / 2);
        size *= 2;
    }
    if (size > out->size) {
        out->at = must_have(realloc(out->at, size));
        out->size = size;
    }
    return out->at + out->to;
}

static void out_put(struct uplink_request *out, struct bytes bytes)
{
    if (bytes.len > 0) {
        memcpy(out_room(out, bytes.len), bytes.at, bytes.len);
        out->to += bytes.len;
    }
}

static void out_empty(struct uplink_request *out)
{
    out->from = out->to = 0;
    if (out->size > OUT_KEPT) {
        free(out->at);
        out->at = NULL;
        out->size = 0;
    }
}

/* -- the request */

/* Whole lines, each a field, none of them about the framing: or the owner would have smuggled something. */
static bool are_fields(struct bytes fields)
{
    static const char *const framing[] = {"Content-Length", "Transfer-Encoding", "Connection", "Expect",
                                          NULL};

    while (fields.len > 0) {
        const char *end = memchr(fields.at, '\r', fields.len);
        const char *colon = memchr(fields.at, ':', fields.len);
        size_t len = end != NULL ? (size_t)(end - fields.at) : 0;
        struct bytes name = {fields.at, colon != NULL ? (size_t)(colon - fields.at) : 0};

        if (colon == NULL || end == NULL || colon >= end || len + 2 > fields.len || end[1] != '\n' ||
            memchr(fields.at, '\n', len) != NULL || memchr(fields.at, '\0', len) != NULL || name.len == 0 ||
            !ascii_is_visible(name) || bytes_are_among(name, framing))
            return false;
        fields.at += len + 2;
        fields.len -= len + 2;
    }
    return true;
}

static bool wants_length(const struct upstream_request *request)
{
    return request->body_length > 0 || bytes_are(request->method, "POST") ||
           bytes_are(request->method, "PUT") || bytes_are(request->method, "PATCH");
}

static void put_head(struct upstream_link *link, const struct upstream_request *request)
{
    struct uplink_request *out = &link->request;
    char number[BYTES_NUMBER_SIZE];

    out_room(out, request->method.len + request->target.len + request->fields.len + request->body.len +
                      FRAMING_MAX + CHUNK_HEAD_MAX);
    out_put(out, request->method);
    out_put(out, BYTES(" "));
    out_put(out, request->target);
    out_put(out, BYTES(" HTTP/1.1\r\n"));
    out_put(out, request->fields);
    if (request->body_length < 0) {
        out_put(out, BYTES("Transfer-Encoding: chunked\r\n"));
    } else if (wants_length(request)) {
        out_put(out, BYTES("Content-Length: "));
        out_put(out, bytes_of_number(number, request->body_length));
        out_put(out, BYTES("\r\n"));
    }
    out_put(out, out->says_close ? BYTES("Connection: close\r\n\r\n") : BYTES("\r\n"));
}

static void body_put(struct upstream_link *link, struct bytes piece)
{
    if (piece.len == 0)
        return; /* an empty chunk would be the last */
    if (link->request.body_left < 0) {
        char *to = out_room(&link->request, piece.len + CHUNK_HEAD_MAX);

        assert(link->request.body_open);
        link->request.to += (size_t)snprintf(to, CHUNK_HEAD_MAX, "%zx\r\n", piece.len);
        out_put(&link->request, piece);
        out_put(&link->request, BYTES("\r\n"));
        return;
    }
    assert(link->request.body_open);
    out_put(&link->request, piece);
    assert((int64_t)piece.len <= link->request.body_left);
    link->request.body_left -= (int64_t)piece.len;
    link->request.body_open = link->request.body_left > 0;
}

static void body_end_put(struct upstream_link *link)
{
    if (link->request.body_left < 0 && link->request.body_open) {
        out_put(&link->request, BYTES("0\r\n\r\n"));
        link->request.body_open = false;
    }
    assert(!link->request.body_open);
}

static void request_put(struct upstream_link *link, const struct upstream_request *request)
{
    bool is_head = bytes_are(request->method, "HEAD");

    assert(ascii_is_token(request->method));
    assert(request->target.len > 0 && ascii_is_visible(request->target) && are_fields(request->fields));
    assert(!request->body_is_whole || request->body_length < 0 ||
           (int64_t)request->body.len == request->body_length);
    link->request.sent = 0;
    link->request.unsure = link->request.blocked = link->request.wants_room = false;
    link->request.says_close = link->pool->draining || request->is_last;
    link->answer.taking = UPLINK_TAKES;
    link->request.body_left = request->body_length;
    link->request.body_open = request->body_length != 0;
    answer_init(&link->answer.parser, is_head ? ANSWER_TO_HEAD : ANSWER_TO_OTHER);
    put_head(link, request);
    body_put(link, request->body);
    if (request->body_is_whole)
        body_end_put(link);
}

size_t uplink_unsent(const struct upstream_link *link)
{
    return link->request.to - link->request.from;
}

/* -- to the kernel */

/* An error of send(2) on a stream means that nothing of this call was taken: what was taken would have been
 * reported instead (Linux, tcp_sendmsg_locked(), unix_stream_sendmsg()). That is relied on for the two errors
 * that say that the connection has ended. */
static void send_failed(struct upstream_link *link, int error)
{
    if (error != EPIPE && error != ECONNRESET)
        link->request.unsure = true;
    out_empty(&link->request); /* and what still comes is dropped */
    if (uplink_has_sent(link))
        uplink_enter(link, UPLINK_LISTENING);
    else
        uplink_broken(link, "it closed the connection before anything was sent");
}

static ssize_t socket_write(struct upstream_link *link, struct bytes bytes)
{
    uint64_t before;
    ssize_t n;

    if (link->socket.tls == NULL)
        return send(link->socket.fd, bytes.at, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    before = tls_sent(link->socket.tls);
    n = tls_write(link->socket.tls, bytes);
    if (tls_sent(link->socket.tls) > before)
        link->request.unsure = true; /* a part of a record may be a part of it */
    return n;
}

void uplink_flush(struct upstream_link *link)
{
    struct uplink_request *out = &link->request;

    while (out->from < out->to) {
        ssize_t n = socket_write(link, (struct bytes){out->at + out->from, out->to - out->from});

        if (n >= 0) {
            out->from += (size_t)n;
            link->request.sent += (uint64_t)n;
        } else if (errno == EAGAIN) {
            link->request.blocked = true;
            return;
        } else if (errno != EINTR) {
            send_failed(link, errno);
            return;
        }
    }
    out_empty(out);
    if (!link->request.body_open)
        uplink_enter(link, UPLINK_RECEIVING);
}

/* -- the answer, from the kernel to the owner */

enum { READS_MAX = 4 }; /* of one event: others want their turn too */

static bool takes(const struct upstream_link *link)
{
    return uplink_is_open(link) && link->answer.taking == UPLINK_TAKES;
}

static void tell_head(struct upstream_link *link)
{
    struct answer_field fields[ANSWER_FIELDS_MAX];
    struct upstream_head head = {.status = link->answer.parser.status,
                                 .fields = fields,
                                 .field_count = answer_fields(&link->answer.parser, fields),
                                 .length = link->answer.parser.length};

    link->call->head(link->call, &head);
}

/* Within piece() the owner may say that it takes more again, or break off. */
static void tell_piece(struct upstream_link *link, struct bytes *in)
{
    struct bytes piece = link->answer.parser.piece;
    size_t taken;

    link->answer.taking = UPLINK_PAUSED;
    taken = link->call->piece != NULL ? link->call->piece(link->call, piece) : piece.len;
    assert(taken <= piece.len);
    answer_take(&link->answer.parser, in, taken);
    if (taken == piece.len)
        link->answer.taking = UPLINK_TAKES;
}

/* Gives on what has come; in is what the owner, or the end, has left of it. */
static void uplink_feed(struct upstream_link *link, struct bytes *in)
{
    while (takes(link)) {
        switch (answer_next(&link->answer.parser, in)) {
        case ANSWER_MORE: return;
        case ANSWER_HEAD: tell_head(link); break;
        case ANSWER_PIECE: tell_piece(link, in); break;
        case ANSWER_WHOLE: uplink_whole(link, in->len); return;
        case ANSWER_MALFORMED: uplink_broken(link, link->answer.parser.why); return;
        }
    }
}

/* The end completes an answer without a length: a FIN, with TLS a close_notify. */
static void answer_ended(struct upstream_link *link, const char *broken)
{
    if (answer_fin(&link->answer.parser) == ANSWER_WHOLE && broken == NULL)
        uplink_whole(link, 0);
    else
        uplink_broken(link, broken != NULL ? broken : link->answer.parser.why);
}

static const char broke_off[] = "it broke the connection off";

void uplink_read(struct upstream_link *link)
{
    char *buffer = link->pool->in;

    for (unsigned i = 0; i < READS_MAX && takes(link); i++) {
        ssize_t n = link->socket.tls != NULL ? tls_read(link->socket.tls, buffer, UPLINK_IN_SIZE)
                                             : recv(link->socket.fd, buffer, UPLINK_IN_SIZE, MSG_DONTWAIT);
        struct bytes in = {buffer, n > 0 ? (size_t)n : 0};

        if (n == 0)
            answer_ended(link, link->state == UPLINK_LISTENING ? broke_off : NULL);
        else if (n > 0)
            uplink_feed(link, &in);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            uplink_broken(link, link->state == UPLINK_LISTENING ? broke_off : uplink_why(link));
        if (uplink_is_open(link) && in.len > 0) {
            link->answer.kept = must_have(malloc(in.len));
            memcpy(link->answer.kept, in.at, in.len);
            link->answer.rest = (struct bytes){link->answer.kept, in.len};
        }
        if (n > 0 && n < UPLINK_IN_SIZE)
            return; /* that was all there is; the loop reports what comes next */
    }
}

void uplink_resume(struct upstream_link *link)
{
    link->answer.taking = UPLINK_TAKES;
    uplink_feed(link, &link->answer.rest);
    if (link->answer.rest.len == 0 || !uplink_is_open(link)) {
        free(link->answer.kept);
        link->answer.kept = NULL;
        link->answer.rest = (struct bytes){NULL, 0};
    }
}

/* -- the calls: begun, written to, broken off. None calls the owner back: it hears at the end of the turn */

void upstream_begin(struct upstream_pool *pool, struct upstream_call *call,
                    const struct upstream_request *request)
{
    struct upstream_link *link;

    link = upstream_pool_take(pool, request);
    if (link == NULL)
        link = uplink_new(pool);
    pool->calls++;
    call->link = link;
    link->call = call;
    request_put(link, request);
    if (link->state == UPLINK_IDLE) {
        uplink_enter(link, UPLINK_SENDING);
        uplink_flush(link);
    } else {
        uplink_dial(link);
    }
    uplink_watch(link);
    if (link->state == UPLINK_OVER)
        uplink_due(link);
}

/* What takes no more of the request lets all that comes pass: the owner hears the end, or has heard it. */
static bool takes_no_more(const struct upstream_link *link)
{
    return link == NULL || link->state == UPLINK_OVER || link->state == UPLINK_LISTENING ||
           link->state == UPLINK_IDLE;
}

size_t upstream_write(struct upstream_call *call, struct bytes piece)
{
    struct upstream_link *link = call->link;
    size_t unsent, room;
    struct bytes taken;

    if (takes_no_more(link))
        return piece.len;
    unsent = uplink_unsent(link);
    room = unsent < UPSTREAM_UNSENT_MAX ? UPSTREAM_UNSENT_MAX - unsent : 0;
    taken = (struct bytes){piece.at, piece.len < room ? piece.len : room};
    body_put(link, taken);
    link->request.wants_room = taken.len < piece.len;
    uplink_due(link);
    return taken.len;
}

void upstream_body_end(struct upstream_call *call)
{
    if (!takes_no_more(call->link)) {
        body_end_put(call->link);
        uplink_due(call->link);
    }
}

void upstream_more(struct upstream_call *call)
{
    struct upstream_link *link = call->link;

    if (link != NULL && uplink_is_open(link) && link->answer.taking == UPLINK_PAUSED) {
        link->answer.taking = UPLINK_RESUMES;
        uplink_due(link);
    }
}

void upstream_abort(struct upstream_call *call)
{
    struct upstream_link *link = call->link;

    if (link != NULL && link->state != UPLINK_OVER && link->state != UPLINK_IDLE) {
        uplink_broken(link, "it was broken off");
        uplink_due(link);
    }
}
