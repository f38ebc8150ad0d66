/* socket.c - what goes through a connection's socket, plain or in TLS (shared/tls/tls_server.h).
 *
 * TLS lies below libmicrohttpd, which knows nothing of it: its recv(), send(), sendmsg() and shutdown() are
 * ours, because a shared library's call of a function that the program has goes to the program's (ld.so(8),
 * symbol interposition). So what it does on plain connections it does on these: edges, pipelining, suspended
 * requests; and one whose handshake does not go on is an idle connection that has not said anything, while
 * those of libmicrohttpd's own TLS are asked again at every run (0.9.75; tried: a fifth of a processor for
 * each client that stops behind its ClientHello). */
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"
#include "shared/tls/tls_server.h"

/* They have no argument that leads to the server. */
static _Thread_local struct http_server *running, *in_tls;

static struct http_conn *conn_of(const struct http_server *server, int fd)
{
    return server != NULL && fd < server->fd_count ? server->by_fd[fd] : NULL;
}

/* NULL: a plain one, as those over a unix socket always are; or none of ours. */
static struct tls_peer *tls_of(int fd)
{
    const struct http_conn *conn = conn_of(in_tls, fd);

    return conn != NULL ? conn->tls : NULL;
}

void http_socket_run(struct http_server *server)
{
    running = server;
    in_tls = server->options.tls != NULL ? server : NULL;
    MHD_run(server->daemon);
    running = in_tls = NULL;
}

/* -- a handshake whose next part the kernel does not take: a long list of authorities, and a client that does
 * not read */

struct http_flush {
    struct loop_watch watch;
    struct http_conn *conn;
};

static void flush_end(struct http_conn *conn)
{
    if (conn->flush != NULL)
        loop_watch_done(&conn->flush->watch);
    free(conn->flush);
    conn->flush = NULL;
}

/* A resumed connection is read from in any case. */
static void flush_ready(struct loop_watch *watch, int events)
{
    struct http_conn *conn = container_of(watch, struct http_flush, watch)->conn;

    (void)events;
    flush_end(conn);
    MHD_suspend_connection(conn->mhd);
    MHD_resume_connection(conn->mhd);
    http_run_soon(conn->server);
}

/* -- bytes */

void http_socket_open(struct http_conn *conn)
{
    if (conn->server->options.tls != NULL && !conn->is_unix)
        conn->tls = must_have(tls_peer_open(conn->server->options.tls, conn->fd));
}

/* At the end of the service its clients' handshakes do not fail. */
static void handshake_tell(struct http_conn *conn)
{
    const struct http_owner *owner = conn->server->options.owner;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn->mhd,
                                                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char text[HTTP_ADDRESS_SIZE];
    enum tls_failure failure;
    struct in6_addr address;
    const char *why;

    if (conn->tls == NULL || owner == NULL || owner->handshake_failed == NULL || conn->server->draining ||
        info == NULL || !tls_peer_has_failed(conn->tls, conn->is_late, &failure, &why))
        return;
    address = http_peer_address(info->client_addr);
    owner->handshake_failed(owner, failure, why, http_peer_text(&address, text));
}

void http_socket_close(struct http_conn *conn)
{
    handshake_tell(conn);
    flush_end(conn);
    tls_peer_close(conn->tls);
}

ssize_t http_socket_read(struct http_conn *conn, char *block, size_t size)
{
    ssize_t got;

    if (conn->tls == NULL) {
        got = recvfrom(conn->fd, block, size, 0, NULL, NULL);
        conn->more = got == (ssize_t)size;
        return got;
    }
    got = tls_peer_read(conn->tls, block, size);
    conn->more = got == (ssize_t)size || tls_peer_has_ended(conn->tls);
    if (got < 0 && errno == EAGAIN && tls_peer_has_unsent(conn->tls) && conn->flush == NULL) {
        conn->flush = must_have(malloc(sizeof(*conn->flush)));
        conn->flush->conn = conn;
        loop_watch_init(conn->server->loop, &conn->flush->watch, conn->fd, flush_ready, LOOP_WRITE);
        errno = EAGAIN;
    }
    return got;
}

ssize_t http_socket_write(struct http_conn *conn, const struct iovec *parts, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};

    if (conn->tls != NULL)
        return tls_peer_write(conn->tls, parts, count);
    return syscall(SYS_sendmsg, conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void http_socket_shut(struct http_conn *conn, int how)
{
    if (conn->tls != NULL)
        tls_peer_bye(conn->tls);
    shutdown(conn->fd, how);
}

bool http_socket_lacks(const struct http_conn *conn, uint64_t wanted)
{
    int waiting = 0;

    if (ioctl(conn->fd, FIONREAD, &waiting) != 0)
        return false;
    return (conn->tls != NULL ? tls_peer_waiting(conn->tls, (size_t)waiting) : (size_t)waiting) < wanted;
}

bool http_is_over_tls(const struct http_request *req)
{
    return req->conn != NULL && req->conn->tls != NULL;
}

const struct tls_certificate *http_client_certificate(const struct http_request *req)
{
    return http_is_over_tls(req) ? tls_peer_certificate(req->conn->tls) : NULL;
}

/* -- libmicrohttpd's calls */

ssize_t http_recv(int fd, void *block, size_t len, int flags) __asm__("recv");
ssize_t http_recv(int fd, void *block, size_t len, int flags)
{
    struct http_conn *conn = conn_of(running, fd);

    return conn != NULL ? http_receive(conn, block, len) : recvfrom(fd, block, len, flags, NULL, NULL);
}

ssize_t http_send(int fd, const void *at, size_t len, int flags) __asm__("send");
ssize_t http_send(int fd, const void *at, size_t len, int flags)
{
    struct tls_peer *tls = tls_of(fd);
    const struct iovec part = {(void *)(uintptr_t)at, len};

    return tls != NULL ? tls_peer_write(tls, &part, 1) : sendto(fd, at, len, flags, NULL, 0);
}

ssize_t http_sendmsg(int fd, const struct msghdr *message, int flags) __asm__("sendmsg");
ssize_t http_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct tls_peer *tls = tls_of(fd);

    return tls != NULL ? tls_peer_write(tls, message->msg_iov, (int)message->msg_iovlen)
                       : syscall(SYS_sendmsg, fd, message, flags);
}

int http_shutdown(int fd, int how) __asm__("shutdown");
int http_shutdown(int fd, int how)
{
    struct tls_peer *tls = tls_of(fd);

    if (tls != NULL && how != SHUT_RD)
        tls_peer_bye(tls);
    return (int)syscall(SYS_shutdown, fd, how);
}
