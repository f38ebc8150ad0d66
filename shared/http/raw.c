/* raw.c - refusals past libmicrohttpd, and what becomes of the connection.
 *
 * libmicrohttpd takes an answer only before the body or behind it (connection.c, MHD_queue_response), never
 * in its middle, and needs room in its memory for it. A refusal that ends the connection is therefore written
 * by us: all earlier answers are in the kernel by then, because libmicrohttpd reads one request at a time.
 *
 * A socket that is closed with unread bytes sends a reset, which may overtake the refusal. So the connection
 * lingers: we keep a descriptor of our own, drop what still comes, and close when the client has, or after
 * two seconds. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

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
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return; /* libmicrohttpd has read it in this very turn */
    if (got <= 0 || (size_t)got >= linger->left) {
        http_linger_end(&linger->deadline);
        return;
    }
    linger->left -= (size_t)got;
}

void http_linger_begin(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_linger *linger;
    int fd = server->lingering < LINGER_CONNECTIONS ? fcntl(conn->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd < 0)
        return;
    linger = must_have(malloc(sizeof(*linger)));
    *linger = (struct http_linger){.server = server, .fd = fd, .left = LINGER_BYTES};
    server->lingering++;
    loop_watch_init(server->loop, &linger->watch, fd, linger_ready, LOOP_READ);
    http_clock_set(server, &linger->deadline, PHASE_LINGER);
}

/* -- heads */

void http_raw_head(const struct http_request *req, unsigned status, int64_t length, struct json_out *out)
{
    const char *name, *value;
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;

    json_out_reserve(out, RAW_HEAD_BYTES);
    gmtime_r(&now, &utc);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &utc); /* no setlocale(): English */
    json_out_print(out, "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\n", status,
                   MHD_get_reason_phrase_for(status), date);
    for (unsigned i = 0; http_reply_at(req, i, &name, &value); i++)
        if (name != NULL)
            json_out_print(out, "%s: %s\r\n", name, value);
    if (length >= 0 && status != MHD_HTTP_NO_CONTENT)
        json_out_print(out, "Content-Length: %lld\r\n", (long long)length);
    else if (length < 0 && !req->head.is_1_0)
        json_out_append(out, BYTES("Transfer-Encoding: chunked\r\n"));
    json_out_append(out, BYTES("\r\n"));
}

/* -- the refusal */

static void raw_send(const struct http_request *req, unsigned status, struct http_conn *conn)
{
    struct json_out head = {.at = NULL};

    http_raw_head(req, status, (int64_t)req->reply.body.len, &head);
    struct iovec parts[2] = {{head.at, head.len},
                             {(char *)(uintptr_t)req->reply.body.at, req->reply.body.len}};
    /* A client whose socket is full gets no answer; the connection ends in any case. */
    (void)!http_socket_write(conn, parts, req->method == HTTP_HEAD ? 1 : 2);
    json_out_done(&head);
}

static void raw_write(struct http_request *req, enum problem problem, const char *detail)
{
    req->reply.status = problem_info(problem)->status;
    http_problem_write(req, problem, detail);
    raw_send(req, req->reply.status, req->conn);
    http_state_set(req, STATE_ABORTED);
    http_reply_report(req);
}

void http_raw_say(const struct http_request *req, enum problem problem)
{
    struct http_request *words = http_request_take(req->server, NULL);

    words->method = req->method;
    words->id = req->id;
    http_problem_write(words, problem, NULL);
    raw_send(words, problem_info(problem)->status, req->conn);
    http_request_free(words);
}

enum MHD_Result http_raw_refuse(struct http_request *req, enum problem problem, const char *detail)
{
    raw_write(req, problem, detail);
    http_linger_begin(req->conn);
    http_clock_set(req->server, &req->conn->deadline, PHASE_NONE);
    return MHD_NO;
}

enum MHD_Result http_raw_answer(struct http_request *req)
{
    raw_send(req, req->reply.status, req->conn);
    req->conn->over = true;
    http_linger_begin(req->conn);
    http_clock_set(req->server, &req->conn->deadline, PHASE_NONE);
    return MHD_NO;
}

void http_raw_timeout(struct http_conn *conn)
{
    /* Without a request line the client may just have nothing to say: it must not take an answer for that to
     * its next request. */
    struct http_request *req = http_recv_cut(conn);

    conn->is_late = true;
    if (req != NULL && req->state <= STATE_BODY)
        raw_write(req, PROBLEM_REQUEST_TIMEOUT, NULL);
    http_socket_shut(conn, SHUT_RDWR);
}

/* Linux, net/ipv4/tcp.c, tcp_disconnect(); a close would send what is still in the socket, and then an end.
 */
void http_raw_reset(int fd)
{
    static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    (void)connect(fd, &nobody, sizeof(nobody));
}
