/* disconnect.c - clients that have closed their side: libmicrohttpd is made to look again, and who waits for
 * something on their behalf is told.
 *
 * libmicrohttpd 0.9.75 watches its sockets edge-triggered, and takes a short read for an empty socket
 * (daemon.c, recv_param_adapter): when a client's last bytes and its FIN arrive together, the read of the
 * bytes uses the only edge up, and the end is seen by a time-out alone. So the server watches every
 * connection for EPOLLRDHUP itself, and then makes new edges until libmicrohttpd has closed:
 * shutdown(SHUT_RD) wakes up who polls (inet_shutdown() in Linux' net/ipv4/af_inet.c), and takes away
 * nothing that has arrived.
 *
 * A suspended connection libmicrohttpd does not look at at all. Its end is noticed here, as are a reset and
 * the end of keep-alive (EPOLLHUP and EPOLLERR are told unasked), and told to the owner of the request. Bytes
 * that come behind the request are no end. Of a body that its owner does not read on, the end is looked for
 * as long as that lasts. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/http/http_internal.h"

enum { EVENTS_MAX = 64, AGAIN_MS = 20 };

static void disconnect_told(struct loop_watch *watch, int events);

static void disconnect_again(struct loop_timer *timer)
{
    container_of(timer, struct http_disconnect, timer)->look = true;
}

void http_disconnect_init(struct http_server *server)
{
    struct http_disconnect *disconnect = &server->disconnect;

    disconnect->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (disconnect->epoll_fd < 0) {
        fprintf(stderr, "pawl: epoll_create1 fails\n");
        abort();
    }
    disconnect->first = NULL;
    disconnect->to_tell = NULL;
    disconnect->look = false;
    loop_watch_init(server->loop, &disconnect->watch, disconnect->epoll_fd, disconnect_told, LOOP_READ);
    loop_timer_init(server->loop, &disconnect->timer, disconnect_again);
}

void http_disconnect_done(struct http_server *server)
{
    loop_timer_done(&server->disconnect.timer);
    loop_watch_done(&server->disconnect.watch);
    close(server->disconnect.epoll_fd);
}

void http_disconnect_watch(struct http_conn *conn)
{
    /* Once: every shutdown() would be told here too. */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = conn};

    /* Without it only the time-outs end the connection: no reason to refuse it. */
    (void)epoll_ctl(conn->server->disconnect.epoll_fd, EPOLL_CTL_ADD, conn->fd, &event);
}

/* The descriptor would not leave the set by being closed: a lingering close has a copy of it (raw.c). */
void http_disconnect_forget(struct http_conn *conn)
{
    (void)epoll_ctl(conn->server->disconnect.epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    if (conn->hung_at == NULL) {
        return;
    }
    *conn->hung_at = conn->hung_next;
    if (conn->hung_next != NULL) {
        conn->hung_next->hung_at = conn->hung_at;
    }
    conn->hung_at = NULL;
}

static void disconnect_add(struct http_disconnect *disconnect, struct http_conn *conn)
{
    if (conn->hung_at != NULL) {
        return;
    }
    conn->hung_next = disconnect->first;
    conn->hung_at = &disconnect->first;
    if (conn->hung_next != NULL) {
        conn->hung_next->hung_at = &conn->hung_next;
    }
    disconnect->first = conn;
}

static void disconnect_told(struct loop_watch *watch, int events)
{
    struct http_disconnect *disconnect = container_of(watch, struct http_disconnect, watch);
    struct epoll_event told[EVENTS_MAX];
    int count = EVENTS_MAX;

    (void)events;
    while (count == EVENTS_MAX) {
        count = epoll_wait(disconnect->epoll_fd, told, EVENTS_MAX, 0);
        for (int i = 0; i < count; i++) {
            struct http_conn *conn = told[i].data.ptr;

            disconnect_add(disconnect, conn);
            if (conn->kept != NULL) {
                http_disconnect_tell(conn->kept);
            }
        }
    }
    disconnect->look = true;
}

/* After libmicrohttpd has run: what it had been told of it has read by now. */
static void disconnect_poke(struct http_disconnect *disconnect)
{
    bool again = false;

    for (struct http_conn *conn = disconnect->first; conn != NULL; conn = conn->hung_next) {
        if (conn->req != NULL && conn->req->rest != REST_NONE) {
            http_body_reader_hung(conn->req);
        }
        if (conn->kept == NULL) { /* else it is not looked at; a resumed one is, with or without an edge */
            shutdown(conn->fd, SHUT_RD);
            again = true;
        }
    }
    if (again) {
        loop_timer_arm(&disconnect->timer, AGAIN_MS, 0);
    }
}

/* -- those who wait */

void http_disconnect_tell(struct http_kept *kept)
{
    if (!kept->is_gone) {
        kept->is_gone = true;
        http_deferred_add(kept->server, &kept->told);
    }
}

void http_disconnect_look(struct http_server *server)
{
    struct http_disconnect *disconnect = &server->disconnect;

    if (disconnect->look) {
        disconnect->look = false;
        disconnect_poke(disconnect);
        http_tell_all(server);
    }
}
