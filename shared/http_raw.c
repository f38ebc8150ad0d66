/* http_raw.c - refusals past libmicrohttpd, and what becomes of the connection.
 *
 * libmicrohttpd takes an answer only before the body or behind it (connection.c, MHD_queue_response), never
 * in its middle, and needs room in its memory for it. A refusal that ends the connection is therefore written
 * by us: all earlier answers are in the kernel by then, because libmicrohttpd reads one request at a time.
 *
 * A socket that is closed with unread bytes sends a reset, which may overtake the refusal. So the connection
 * lingers: we keep a descriptor of our own, drop what still comes, and close when the client has, or after
 * two seconds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shared/http_internal.h"

enum { LINGER_CONNECTIONS = 256, LINGER_BYTES = 64 << 20, LINGER_READ = 16384, RAW_HEAD_BYTES = 512 };

struct http_linger {
    struct http_deadline deadline;
    struct http_server *server;
    struct loop_watch watch;
    int fd;
    size_t left;
};

/* -- lingering */

void http_linger_end(struct http_deadline *deadline)
{
    struct http_linger *linger = container_of(deadline, struct http_linger, deadline);

    http_clock_set(linger->server, deadline, PHASE_NONE);
    loop_watch_done(&linger->watch);
    close(linger->fd);
    linger->server->lingering--;
    free(linger);
}

static void linger_ready(struct loop_watch *watch, int events)
{
    struct http_linger *linger = container_of(watch, struct http_linger, watch);
    char dropped[LINGER_READ];
    ssize_t got = recv(linger->fd, dropped, sizeof(dropped), MSG_DONTWAIT);

    (void)events;
    if (got <= 0 || (size_t)got >= linger->left) {
        http_linger_end(&linger->deadline);
        return;
    }
    linger->left -= (size_t)got;
}

static void linger_begin(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_linger *linger;
    int fd = server->lingering < LINGER_CONNECTIONS ? fcntl(conn->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd < 0) {
        return;
    }
    linger = http_must_alloc(sizeof(*linger));
    *linger = (struct http_linger){.server = server, .fd = fd, .left = LINGER_BYTES};
    server->lingering++;
    loop_watch_init(server->loop, &linger->watch, fd, linger_ready, LOOP_READ);
    http_clock_set(server, &linger->deadline, PHASE_LINGER);
}

/* -- the refusal */

static size_t raw_head(char *buf, const struct http_request *req, const struct problem_info *info)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    int len;

    gmtime_r(&now, &utc);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S", &utc); /* no setlocale(): English */
    len = snprintf(buf, RAW_HEAD_BYTES,
                   "HTTP/1.1 %u %s\r\nDate: %s GMT\r\nConnection: close\r\nCache-Control: no-store\r\n"
                   "Content-Type: application/problem+json\r\nContent-Length: %zu\r\n",
                   info->status, MHD_get_reason_phrase_for(info->status), date, req->reply.len);
    for (unsigned i = 0; i < req->reply_field_count; i++) { /* Allow */
        len += snprintf(buf + len, RAW_HEAD_BYTES - (size_t)len, "%s: %s\r\n", req->reply_fields[i].name,
                        req->reply_values + req->reply_fields[i].value_at);
    }
    len += snprintf(buf + len, RAW_HEAD_BYTES - (size_t)len, "\r\n");
    return (size_t)len;
}

static void raw_write(struct http_request *req, enum problem problem, const char *detail)
{
    const struct problem_info *info = problem_info(problem);
    const struct http_owner *owner = req->server->options.owner;
    char head[RAW_HEAD_BYTES];

    http_problem_write(req, problem, detail);
    struct iovec parts[2] = {{head, raw_head(head, req, info)},
                             {(char *)(uintptr_t)req->reply.at, req->reply.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = req->method == HTTP_HEAD ? 1 : 2};
    /* A client whose socket is full gets no answer; the connection ends in any case. */
    (void)!sendmsg(req->conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    http_state_set(req, STATE_ABORTED);
    req->status = info->status;
    if (owner != NULL && owner->ended != NULL) {
        owner->ended(owner, req, req->status, 0);
    }
}

enum MHD_Result http_raw_refuse(struct http_request *req, enum problem problem, const char *detail)
{
    raw_write(req, problem, detail);
    linger_begin(req->conn);
    http_clock_set(req->server, &req->conn->deadline, PHASE_NONE);
    return MHD_NO;
}

void http_raw_timeout(struct http_conn *conn)
{
    /* Without a request line the client may just have nothing to say: it must not take an answer for that to
     * its next request. */
    if (conn->req != NULL && conn->req->state <= STATE_BODY) {
        raw_write(conn->req, PROBLEM_REQUEST_TIMEOUT, NULL);
    }
    shutdown(conn->fd, SHUT_RDWR);
}
