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

static void hangup_told(struct loop_watch *watch, int events);

static void hangup_again(struct loop_timer *timer)
{
    container_of(timer, struct http_hangup, timer)->look = true;
}

void http_hangup_init(struct http_server *server)
{
    struct http_hangup *hangup = &server->hangup;

    hangup->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (hangup->epoll_fd < 0) {
        fprintf(stderr, "pawl: epoll_create1 fails\n");
        abort();
    }
    hangup->first = NULL;
    hangup->to_tell = NULL;
    hangup->look = false;
    loop_watch_init(server->loop, &hangup->watch, hangup->epoll_fd, hangup_told, LOOP_READ);
    loop_timer_init(server->loop, &hangup->timer, hangup_again);
}

void http_hangup_done(struct http_server *server)
{
    loop_timer_done(&server->hangup.timer);
    loop_watch_done(&server->hangup.watch);
    close(server->hangup.epoll_fd);
}

void http_hangup_watch(struct http_conn *conn)
{
    /* Once: every shutdown() would be told here too. */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = conn};

    /* Without it only the time-outs end the connection: no reason to refuse it. */
    (void)epoll_ctl(conn->server->hangup.epoll_fd, EPOLL_CTL_ADD, conn->fd, &event);
}

/* The descriptor would not leave the set by being closed: a lingering close has a copy of it (raw.c). */
void http_hangup_forget(struct http_conn *conn)
{
    (void)epoll_ctl(conn->server->hangup.epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    if (conn->hung_at == NULL) {
        return;
    }
    *conn->hung_at = conn->hung_next;
    if (conn->hung_next != NULL) {
        conn->hung_next->hung_at = conn->hung_at;
    }
    conn->hung_at = NULL;
}

static void hangup_add(struct http_hangup *hangup, struct http_conn *conn)
{
    if (conn->hung_at != NULL) {
        return;
    }
    conn->hung_next = hangup->first;
    conn->hung_at = &hangup->first;
    if (conn->hung_next != NULL) {
        conn->hung_next->hung_at = &conn->hung_next;
    }
    hangup->first = conn;
}

static void hangup_told(struct loop_watch *watch, int events)
{
    struct http_hangup *hangup = container_of(watch, struct http_hangup, watch);
    struct epoll_event told[EVENTS_MAX];
    int count = EVENTS_MAX;

    (void)events;
    while (count == EVENTS_MAX) {
        count = epoll_wait(hangup->epoll_fd, told, EVENTS_MAX, 0);
        for (int i = 0; i < count; i++) {
            struct http_conn *conn = told[i].data.ptr;

            hangup_add(hangup, conn);
            if (conn->kept != NULL) {
                http_hangup_tell(conn->kept);
            }
        }
    }
    hangup->look = true;
}

/* After libmicrohttpd has run: what it had been told of it has read by now. */
static void hangup_poke(struct http_hangup *hangup)
{
    bool again = false;

    for (struct http_conn *conn = hangup->first; conn != NULL; conn = conn->hung_next) {
        if (conn->req != NULL && conn->req->rest != REST_NONE) {
            http_intake_hung(conn->req);
        }
        if (conn->kept == NULL) { /* else it is not looked at; a resumed one is, with or without an edge */
            shutdown(conn->fd, SHUT_RD);
            again = true;
        }
    }
    if (again) {
        loop_timer_arm(&hangup->timer, AGAIN_MS, 0);
    }
}

/* -- those who wait */

void http_hangup_tell(struct http_kept *kept)
{
    if (!kept->is_gone) {
        kept->is_gone = true;
        http_told_add(kept->server, &kept->told);
    }
}

void http_hangup_look(struct http_server *server)
{
    struct http_hangup *hangup = &server->hangup;

    if (hangup->look) {
        hangup->look = false;
        hangup_poke(hangup);
        http_tell_all(server);
    }
}
