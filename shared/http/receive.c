/* receive.c - what libmicrohttpd receives: for each request a short head, and exactly its body.
 *
 * Its recv() is ours: a shared library's call of a function that the program has goes to the program's
 * (ld.so(8), symbol interposition). A head is gathered here until it is whole, read once by http_head.c, and
 * libmicrohttpd gets one in its place with nothing in it but what it must know (http_head_short()): of the
 * fields of a long one it would keep a record each in the memory that it clears for every connection behind
 * each request (0.9.75, MHD_pool_reset()), and it is lax about all of it.
 *
 * What comes behind a request waits in conn->unread. libmicrohttpd takes a read that is shorter than it asked
 * for as the last until its socket is told to be readable again (daemon.c, recv_param_adapter; it is told of
 * edges). So as much is read as fits, and a connection that may have more when its request is over is
 * suspended and resumed, because a resumed one is read from in any case (resume_suspended_connections()). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "shared/http/http_internal.h"

/* recv() has no argument that leads to it. */
static _Thread_local struct http_server *reading;

static const char chunks_detail[] = "The request is not framed as HTTP/1.1 has it: the sizes of chunks in "
                                    "hexadecimal, and each line ends with "
                                    "CR LF.";

/* -- what libmicrohttpd has not got; it counts as memory of bodies */

static void unread_append(struct http_conn *conn, struct bytes more)
{
    size_t before = conn->unread.size;

    json_out_append(&conn->unread, more);
    conn->server->body_memory += conn->unread.size - before;
}

static bool unread_add(struct http_conn *conn, struct bytes more)
{
    if (conn->server->body_memory + more.len > conn->server->options.body_memory_max) {
        return false;
    }
    unread_append(conn, more);
    return true;
}

void http_recv_forget(struct http_conn *conn)
{
    conn->server->body_memory -= conn->unread.size;
    json_out_done(&conn->unread);
}

/* The rest may stay for as long as a request is parked: it does not keep the room of a whole head. */
static void unread_drop(struct http_conn *conn, size_t len)
{
    struct json_out all = conn->unread;

    conn->scan = (struct http_scan){0, 0};
    conn->server->body_memory -= all.size;
    json_out_init(&conn->unread);
    unread_append(conn, (struct bytes){all.at + len, all.len - len});
    json_out_done(&all);
}

/* -- reading */

static ssize_t source_read(struct http_conn *conn, char *block, size_t size)
{
    ssize_t got = recvfrom(conn->fd, block, size, 0, NULL, NULL);

    conn->more = got == (ssize_t)size;
    return got;
}

/* What its owner has begun ends as if the client had gone, and if something may have been done, the client is
 * told nothing: it does not know either. */
static ssize_t refuse(struct http_request *req, enum problem problem, const char *detail)
{
    if (req->state <= STATE_BODY) {
        (void)http_raw_refuse(req, problem, detail);
    } else {
        if (req->body_reader != NULL && req->body_reader->keeps) {
            http_raw_say(req, problem);
        }
        http_linger_begin(req->conn);
    }
    errno = ECONNRESET;
    return -1;
}

static bool body_is_open(const struct http_request *req)
{
    return req->length == LENGTH_CHUNKED ? req->chunks.place != CHUNK_END : req->chunks.left > 0;
}

/* What is behind the body stays unread. */
static ssize_t body_read(struct http_conn *conn, char *block, size_t size)
{
    struct http_request *req = conn->req;
    bool is_kept = conn->unread.len > 0;
    ssize_t got = (ssize_t)(conn->unread.len < size ? conn->unread.len : size);
    size_t len;

    if (is_kept) {
        memcpy(block, conn->unread.at, (size_t)got);
    } else {
        got = source_read(conn, block, size);
    }
    if (got <= 0) {
        return got;
    }
    if (req->length == LENGTH_CHUNKED) {
        len = http_chunks_feed(&req->chunks, (struct bytes){block, (size_t)got});
    } else {
        len = (size_t)got < req->chunks.left ? (size_t)got : (size_t)req->chunks.left;
        req->chunks.left -= len;
    }
    if (req->chunks.place == CHUNK_WRONG) {
        return refuse(req, PROBLEM_INVALID_REQUEST, chunks_detail);
    }
    if (is_kept) {
        unread_drop(conn, len);
    } else if (len < (size_t)got && !unread_add(conn, (struct bytes){block + len, (size_t)got - len})) {
        return refuse(req, PROBLEM_OVERLOADED, NULL);
    }
    return (ssize_t)len;
}

/* Of a block that has so many bytes already: as much more as there is room for, or has come. */
static ssize_t body_receive(struct http_conn *conn, char *block, size_t size, size_t at)
{
    ssize_t got = 0;

    while (at < size && body_is_open(conn->req) && (at == 0 || conn->more || conn->unread.len > 0)) {
        got = body_read(conn, block + at, size - at);
        if (got <= 0) {
            break;
        }
        at += (size_t)got;
    }
    return at > 0 && (got >= 0 || errno == EAGAIN) ? (ssize_t)at : got;
}

/* The head at the begin of text, which is the block, or unread. */
static ssize_t head_take(struct http_conn *conn, struct bytes text, size_t head_len, char *block, size_t size)
{
    struct http_request *req = http_request_new(conn);
    struct bytes rest = {text.at + head_len, text.len - head_len};
    const char *detail = NULL;
    enum problem problem = http_head_read(req, (struct bytes){text.at, head_len}, &detail);

    conn->scan = (struct http_scan){0, 0};
    if (problem != PROBLEM_NONE) {
        return refuse(req, problem, detail);
    }
    if (conn->unread.len > 0) {
        unread_drop(conn, head_len);
    } else if (rest.len > 0 && !unread_add(conn, rest)) {
        return refuse(req, PROBLEM_OVERLOADED, NULL);
    }
    assert(size >= HEAD_SHORT_MAX);
    return body_receive(conn, block, size, http_head_short(req, block));
}

/* Reads until a head is whole, or longer than it may be. */
static ssize_t head_receive(struct http_conn *conn, char *block, size_t size)
{
    const struct json_out *unread = &conn->unread;
    size_t most = conn->server->options.head_max + 2; /* an empty line may stand in front */
    size_t len = unread->len > 0 ? http_head_end(&conn->scan, (struct bytes){unread->at, unread->len}) : 0;

    while (len == 0) {
        ssize_t got = source_read(conn, block, size);
        struct bytes came = {block, (size_t)got};

        if (got <= 0) {
            return got;
        }
        len = unread->len == 0 ? http_head_end(&conn->scan, came) : 0;
        if (len > 0) {
            return head_take(conn, came, len, block, size);
        }
        if (!unread_add(conn, came)) {
            return refuse(http_request_new(conn), PROBLEM_OVERLOADED, NULL);
        }
        len = http_head_end(&conn->scan, (struct bytes){unread->at, unread->len});
        if (len == 0 && unread->len > most) {
            len = unread->len;
        }
        if (len == 0 && !conn->more) {
            errno = EAGAIN;
            return -1;
        }
    }
    return head_take(conn, (struct bytes){unread->at, unread->len}, len, block, size);
}

ssize_t http_recv(int fd, void *block, size_t len, int flags) __asm__("recv");
ssize_t http_recv(int fd, void *block, size_t len, int flags)
{
    struct http_conn *conn = reading != NULL && fd < reading->fd_count ? reading->by_fd[fd] : NULL;

    if (conn == NULL || conn->over) {
        return recvfrom(fd, block, len, flags, NULL, NULL);
    }
    if (conn->req == NULL && conn->kept == NULL) {
        return head_receive(conn, block, len);
    }
    if (conn->req != NULL && conn->req->state == STATE_ABORTED) {
        return 0;
    }
    if (conn->req != NULL && body_is_open(conn->req)) {
        return body_receive(conn, block, len, 0);
    }
    errno = EAGAIN; /* a resumed connection is read from in any state, and this is the next request's */
    return -1;
}

/* -- around it */

/* Those whose requests are over stand at the end of the list. */
void http_recv_run(struct http_server *server)
{
    reading = server;
    MHD_run(server->daemon);
    reading = NULL;
    for (struct http_deadline *last = server->clock.last[PHASE_HEAD];
         last != NULL && last->since_ms == server->clock.now_ms; last = last->prev) {
        struct http_conn *conn = container_of(last, struct http_conn, deadline);

        if (conn->req == NULL && conn->more) {
            MHD_suspend_connection(conn->mhd);
            MHD_resume_connection(conn->mhd);
            server->shown++; /* another run at once */
            server->must_run = true;
            loop_again(server->loop);
        }
    }
}

struct http_request *http_recv_cut(struct http_conn *conn)
{
    const char *detail;

    if (conn->req == NULL && conn->scan.line > 2) {
        (void)http_head_read(http_request_new(conn), (struct bytes){conn->unread.at, conn->unread.len},
                             &detail);
    }
    return conn->req;
}

void http_recv_watch(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    if (conn->fd >= server->fd_count) {
        int count = conn->fd + 1024;
        size_t size = (size_t)count * sizeof(void *), before = (size_t)server->fd_count * sizeof(void *);
        struct http_conn **more = http_must_alloc(size);

        memset(more, 0, size);
        if (before > 0) {
            memcpy(more, server->by_fd, before);
        }
        free(server->by_fd);
        server->by_fd = more;
        server->fd_count = count;
    }
    server->by_fd[conn->fd] = conn;
}
