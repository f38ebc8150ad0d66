/* server.c - the server and its connections: deadlines, clients that disconnect, limits. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

/* == deadlines on slow clients: one timer, and a list for each phase of a request.
 *
 * libmicrohttpd's own time-out counts idle time, so that one byte now and then outlives it (tried with
 * 0.9.75). */

enum { SEND_TIMEOUT_MS = 30000, LINGER_MS = 2000 };

static void clock_arm(struct http_clock *clock, uint64_t at_ms)
{
    uint64_t now_ms = loop_now_ms();

    clock->armed_ms = at_ms;
    loop_timer_arm(&clock->timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

static void clock_remove(struct http_clock *clock, struct http_deadline *deadline)
{
    if (deadline->phase != PHASE_NONE)
        TAILQ_REMOVE(&clock->lists[deadline->phase], deadline, place);
    deadline->phase = PHASE_NONE;
}

void http_clock_set(struct http_server *server, struct http_deadline *deadline, enum http_phase phase)
{
    struct http_clock *clock = &server->clock;

    clock_remove(clock, deadline);
    if (phase == PHASE_NONE)
        return;
    if (!server->runs.is_on) /* which may have been long ago */
        clock->now_ms = loop_now_ms();
    deadline->phase = phase;
    deadline->since_ms = clock->now_ms;
    TAILQ_INSERT_TAIL(&clock->lists[phase], deadline, place);
    if (clock->armed_ms > deadline->since_ms + clock->timeout_ms[phase])
        clock_arm(clock, deadline->since_ms + clock->timeout_ms[phase]);
}

static void clock_expire(struct http_server *server, struct http_deadline *deadline)
{
    enum http_phase phase = deadline->phase;
    struct http_conn *conn = container_of(deadline, struct http_conn, deadline); /* not of PHASE_LINGER */

    clock_remove(&server->clock, deadline);
    switch (phase) {
    case PHASE_HEAD: http_raw_timeout(conn); return;
    case PHASE_BODY:
        if (http_body_is_whole(conn->req))
            http_raw_timeout(conn);
        else
            http_body_reader_silent(conn->req);
        return;
    case PHASE_TAKE: http_response_look(conn); return;
    case PHASE_SEND:
        if (conn->kept != NULL) { /* a stream's rest; libmicrohttpd does not look at it */
            http_early_drop(conn->kept->response);
            return;
        }
        /* fall through */
    case PHASE_OVER: shutdown(conn->fd, SHUT_RDWR); return;
    case PHASE_LINGER: http_linger_end(deadline); return;
    case PHASE_NONE:
    case PHASE_COUNT: abort(); /* is on no list */
    }
}

static void clock_fired(struct loop_timer *timer)
{
    struct http_clock *clock = container_of(timer, struct http_clock, timer);
    struct http_server *server = container_of(clock, struct http_server, clock);
    uint64_t next_ms = UINT64_MAX;

    clock->now_ms = loop_now_ms();
    clock->armed_ms = UINT64_MAX;
    for (enum http_phase phase = PHASE_HEAD; phase < PHASE_COUNT; phase++) {
        struct http_deadline *first;

        while ((first = TAILQ_FIRST(&clock->lists[phase])) != NULL &&
               first->since_ms + clock->timeout_ms[phase] <= clock->now_ms)
            clock_expire(server, first);
        if (first != NULL && first->since_ms + clock->timeout_ms[phase] < next_ms)
            next_ms = first->since_ms + clock->timeout_ms[phase];
    }
    if (next_ms < clock->armed_ms)
        clock_arm(clock, next_ms);
}

static void clock_init(struct http_server *server)
{
    struct http_clock *clock = &server->clock;

    for (enum http_phase phase = PHASE_NONE; phase < PHASE_COUNT; phase++)
        TAILQ_INIT(&clock->lists[phase]);
    clock->timeout_ms[PHASE_HEAD] = server->options.header_timeout_ms;
    clock->timeout_ms[PHASE_BODY] = server->options.body_timeout_ms;
    clock->timeout_ms[PHASE_SEND] = server->options.send_timeout_ms > 0 ? server->options.send_timeout_ms
                                                                        : SEND_TIMEOUT_MS;
    clock->timeout_ms[PHASE_TAKE] = clock->timeout_ms[PHASE_SEND] / HTTP_RESPONSE_LOOKS + 1;
    clock->timeout_ms[PHASE_OVER] = LINGER_MS;
    clock->timeout_ms[PHASE_LINGER] = LINGER_MS;
    clock->now_ms = loop_now_ms();
    clock->armed_ms = UINT64_MAX;
    loop_timer_init(server->loop, &clock->timer, clock_fired);
}

/* == calls deferred to the end of the turn, each once: that a client has gone, that there is room again, the
 * rest of a body. An owner may do anything in its call, so each is taken off the list before, and the list is
 * read anew behind it. */

static void deferred_link(struct http_deferred **first, struct http_deferred *deferred)
{
    if (deferred->at != NULL)
        return;
    deferred->next = *first;
    deferred->at = first;
    if (deferred->next != NULL)
        deferred->next->at = &deferred->next;
    *first = deferred;
}

void http_deferred_add(struct http_server *server, struct http_deferred *deferred)
{
    server->disconnect.look = true;
    loop_again(server->loop); /* if this is the end of the turn, and our hook has already had its go */
    deferred_link(&server->disconnect.deferred, deferred);
}

void http_deferred_remove(struct http_deferred *deferred)
{
    if (deferred->at == NULL)
        return;
    *deferred->at = deferred->next;
    if (deferred->next != NULL)
        deferred->next->at = deferred->at;
    deferred->at = NULL;
}

static void deferred_run(struct http_server *server)
{
    struct http_deferred *deferred;

    while ((deferred = server->disconnect.deferred) != NULL) {
        http_deferred_remove(deferred);
        deferred->run(deferred);
        loop_again(server->loop); /* their calls to the store are to go out in this turn */
    }
}

/* == clients that have closed their side: libmicrohttpd is made to look again, and the owner of what waits
 * for them is called.
 *
 * libmicrohttpd 0.9.75 watches its sockets edge-triggered, and takes a short read for an empty socket
 * (daemon.c, recv_param_adapter): when a client's last bytes and its FIN arrive together, the read of the
 * bytes uses the only edge up, and the end is seen by a time-out alone. So the server watches every
 * connection for EPOLLRDHUP itself, and then makes new edges until libmicrohttpd has closed:
 * shutdown(SHUT_RD) wakes up who polls (inet_shutdown() in Linux' net/ipv4/af_inet.c), and takes away
 * nothing that has arrived.
 *
 * A suspended connection libmicrohttpd does not look at at all. Its end is noticed here, as are a reset and
 * the end of keep-alive (EPOLLHUP and EPOLLERR come unasked), and reported to the owner of the request. Bytes
 * that come behind the request are no end. Of a body that its owner does not read on, the end is looked for
 * as long as that lasts. */

enum { EVENTS_MAX = 64, AGAIN_MS = 20 };

static void disconnect_again(struct loop_timer *timer)
{
    container_of(timer, struct http_disconnect, timer)->look = true;
}

static void disconnect_ready(struct loop_watch *watch, int events)
{
    struct http_disconnect *disconnect = container_of(watch, struct http_disconnect, watch);
    struct epoll_event ended[EVENTS_MAX];
    int count = EVENTS_MAX;

    (void)events;
    while (count == EVENTS_MAX) {
        count = epoll_wait(disconnect->epoll_fd, ended, EVENTS_MAX, 0);
        for (int i = 0; i < count; i++) {
            struct http_conn *conn = ended[i].data.ptr;

            deferred_link(&disconnect->left, &conn->left);
            if (conn->kept != NULL)
                http_disconnect_report(conn->kept);
        }
    }
    disconnect->look = true;
}

static void disconnect_init(struct http_server *server)
{
    struct http_disconnect *disconnect = &server->disconnect;

    disconnect->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (disconnect->epoll_fd < 0) {
        fprintf(stderr, "pawl: epoll_create1 fails\n");
        abort();
    }
    loop_watch_init(server->loop, &disconnect->watch, disconnect->epoll_fd, disconnect_ready, LOOP_READ);
    loop_timer_init(server->loop, &disconnect->timer, disconnect_again);
}

/* After libmicrohttpd has run: what its own epoll had reported it has read by now. */
static void disconnect_poke(struct http_disconnect *disconnect)
{
    bool again = false;

    for (struct http_deferred *left = disconnect->left; left != NULL; left = left->next) {
        struct http_conn *conn = container_of(left, struct http_conn, left);

        if (conn->req != NULL && conn->req->rest.state != REST_NONE)
            http_body_reader_disconnected(conn->req);
        if (conn->kept == NULL) { /* else it is not looked at; a resumed one is, with or without an edge */
            shutdown(conn->fd, SHUT_RD);
            again = true;
        }
    }
    if (again)
        loop_timer_arm(&disconnect->timer, AGAIN_MS, 0);
}

void http_disconnect_report(struct http_kept *kept)
{
    if (!kept->is_gone) {
        kept->is_gone = true;
        http_deferred_add(kept->server, &kept->deferred);
    }
}

void http_disconnect_look(struct http_server *server)
{
    struct http_disconnect *disconnect = &server->disconnect;

    if (disconnect->look) {
        disconnect->look = false;
        disconnect_poke(disconnect);
        deferred_run(server);
    }
}

/* == the server */

enum { LIMIT_ABOVE = 16 };

/* -- libmicrohttpd's callbacks */

static void request_completed(struct http_request *req)
{
    struct http_server *server = req->server;

    req->conn->req = NULL;
    req->mhd = NULL;
    req->conn = NULL;
    http_request_unpoll(req);
    if (req->state == STATE_RUNNING) {
        http_body_reader_closed(req);
        return; /* the client has left; the continuation will come */
    }
    if (req->state == STATE_SENDING && req->queued_run == server->runs.count && server->runs.is_on)
        server->runs.unsent--;
    if ((req->state == STATE_ANSWERED || req->state == STATE_SENDING) && req->reply.response == NULL)
        server->open--;
    http_request_free(req);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = cls;
    struct http_conn *conn = *context;

    (void)mhd;
    *context = NULL;
    if (conn == NULL)
        return;
    server->runs.moved++;
    if (conn->client != NULL)
        http_peer_over(conn);
    http_clock_set(server, &conn->deadline,
                   conn->over || (conn->req != NULL && conn->req->state == STATE_ABORTED) ? PHASE_NONE
                                                                                          : PHASE_HEAD);
    if (conn->kept != NULL) /* a response: a suspended request is not completed before it is resumed */
        http_response_closed(conn->kept, code);
    conn->more = conn->more || conn->unread.len > 0;
    if (conn->req != NULL)
        request_completed(conn->req);
}

/* Whose it is, and whether it is one of the last. */
static void conn_know(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_peers *peers = server->options.peers;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn->mhd,
                                                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct in6_addr address;

    conn->is_unix = info != NULL && info->client_addr->sa_family == AF_UNIX;
    conn->is_own = http_conn_is_own(conn);
    conn->reserved = server->connections + server->options.connections_reserved >
                     server->options.connections_max;
    if (peers == NULL || info == NULL)
        return;
    address = http_peer_address(info->client_addr);
    if (http_peers_trust(peers, &address)) {
        conn->client = must_have(malloc(sizeof(*conn->client)));
        *conn->client = address;
    } else {
        address = conn->is_unix ? http_unix_peer(conn->fd) : address;
        conn->peer = http_peer_enter(peers, &address);
    }
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = cls;
    struct http_conn *conn = *context;
    struct epoll_event event;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        conn = must_have(malloc(sizeof(*conn)));
        *conn = (struct http_conn){
            .server = server,
            .mhd = mhd,
            .fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd};
        *context = conn;
        server->connections++;
        conn_know(conn);
        /* Once: every shutdown() would be reported here too. Without it the time-outs end the connection:
         * no reason to refuse it. */
        event = (struct epoll_event){.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = conn};
        (void)epoll_ctl(server->disconnect.epoll_fd, EPOLL_CTL_ADD, conn->fd, &event);
        http_socket_open(conn);
        http_recv_watch(conn);
        http_clock_set(server, &conn->deadline, PHASE_HEAD);
        return;
    }
    http_clock_set(server, &conn->deadline, PHASE_NONE);
    server->connections--;
    if (conn->req != NULL) /* refused before libmicrohttpd knew of it */
        request_completed(conn->req);
    http_recv_forget(conn);
    http_peer_over(conn);
    /* The descriptor would not leave the set by being closed: a lingering close has a copy of it (raw.c). */
    (void)epoll_ctl(server->disconnect.epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    http_deferred_remove(&conn->left);
    server->by_fd[conn->fd] = NULL;
    http_socket_close(conn);
    free(conn->client);
    free(conn);
}

static enum MHD_Result on_accept(void *cls, const struct sockaddr *address, socklen_t address_len)
{
    struct http_server *server = cls;
    const struct http_owner *owner = server->options.owner;
    struct http_peers *peers = server->options.peers;
    struct in6_addr peer = http_peer_address(address);
    bool is_full = server->connections >= server->options.connections_max;
    char text[HTTP_ADDRESS_SIZE];

    (void)address_len;
    if (!is_full && (peers == NULL || http_peers_trust(peers, &peer) || !http_peers_full(peers, &peer)))
        return MHD_YES;
    if (owner != NULL && owner->closed != NULL)
        owner->closed(owner, is_full ? HTTP_LIMIT_ALL : HTTP_LIMIT_ADDRESS, http_peer_text(&peer, text));
    return MHD_NO;
}

/* -- the server's epoch */

static struct MHD_Daemon *daemon_start(struct http_server *server)
{
    /* Connections beyond our limit are closed by on_accept(); libmicrohttpd would leave them in the kernel's
     * queue. */
    unsigned limit = server->options.connections_max + LIMIT_ABOVE;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, on_accept, server,
        http_on_request, server, MHD_OPTION_CONNECTION_LIMIT, limit, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        server->pool_bytes, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);

    if (daemon == NULL) {
        fprintf(stderr, "pawl: libmicrohttpd does not start\n");
        abort();
    }
    return daemon;
}

static void server_ready(struct loop_watch *watch, int events)
{
    struct http_server *server = container_of(watch, struct http_server, watch);

    (void)events;
    server->runs.is_due = true;
}

/* A UUID of version 8 (RFC 9562, 5.8): 74 random bits of this server, and 48 that count its requests. */
static void id_prefix_make(char prefix[HTTP_ID_SIZE - ID_DIGITS])
{
    uint8_t r[10];

    if (getentropy(r, sizeof(r)) != 0)
        abort();
    snprintf(prefix, HTTP_ID_SIZE - ID_DIGITS, "urn:uuid:%02x%02x%02x%02x-%02x%02x-8%x%02x-%02x%02x-", r[0],
             r[1], r[2], r[3], r[4], r[5], r[6] & 15, r[7], (r[8] & 0x3f) | 0x80, r[9]);
}

struct http_server *http_server_new(struct loop *loop, const struct http_options *options)
{
    struct http_server *server = must_have(malloc(sizeof(*server)));
    int epoll_fd;

    memset(server, 0, sizeof(*server));
    server->options = *options;
    server->loop = loop;
    server->reply_bytes_max = options->reply_head_max > REPLY_VALUES_BYTES ? options->reply_head_max
                                                                           : REPLY_VALUES_BYTES;
    assert(server->reply_bytes_max <= UINT16_MAX);
    server->reply_pool_bytes = server->reply_bytes_max;
    server->pool_bytes = POOL_BYTES + server->reply_pool_bytes - REPLY_VALUES_BYTES;
    if (server->options.head_max == 0)
        server->options.head_max = HTTP_HEAD_MAX;
    assert(server->options.head_max <= UINT16_MAX);
    snprintf(
        server->head_max_detail, sizeof(server->head_max_detail),
        "Request line and headers together may have %u bytes (--header-max). Send a shorter path or query, "
        "or fewer or shorter headers.",
        server->options.head_max);
    if (options->reply_head_max > 0)
        server->reply_bytes_max = HTTP_REPLY_LONG;
    id_prefix_make(server->id_prefix);
    clock_init(server);
    disconnect_init(server);
    http_request_pool_init(server);
    server->daemon = daemon_start(server);
    epoll_fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    loop_watch_init(loop, &server->watch, epoll_fd, server_ready, LOOP_READ);
    loop_hook_add(loop, &server->hook, http_turn_end);
    http_listeners_watch(server);
    return server;
}

unsigned http_server_open_requests(const struct http_server *server)
{
    return server->open;
}

unsigned http_server_running_requests(const struct http_server *server)
{
    return server->running;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->connections;
}

void http_server_drain(struct http_server *server)
{
    struct http_deadline *idle;

    if (server->draining)
        return;
    http_listeners_done(server);
    http_run(server);
    server->draining = true;
    TAILQ_FOREACH(idle, &server->clock.lists[PHASE_HEAD], place)
    {
        struct http_conn *conn = container_of(idle, struct http_conn, deadline);

        if (conn->req == NULL && conn->unread.len <= 2) /* which may be an empty line */
            http_socket_shut(conn, SHUT_RDWR);
    }
    http_run_soon(server);
}

void http_server_free(struct http_server *server)
{
    assert(server->running == 0);
    server->draining = true;
    http_early_stop(server);
    http_listeners_done(server);
    http_run(server); /* a last chance for answers to leave; starts nothing */
    loop_hook_remove(server->loop, &server->hook);
    loop_watch_done(&server->watch);
    MHD_stop_daemon(server->daemon);
    http_free_dead(server);
    while (!TAILQ_EMPTY(&server->clock.lists[PHASE_LINGER]))
        http_linger_end(TAILQ_FIRST(&server->clock.lists[PHASE_LINGER]));
    loop_timer_done(&server->clock.timer);
    loop_timer_done(&server->disconnect.timer);
    loop_watch_done(&server->disconnect.watch);
    close(server->disconnect.epoll_fd);
    http_request_pool_done(server);
    free(server->by_fd);
    free(server);
}
