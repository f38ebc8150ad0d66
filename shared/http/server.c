/* server.c - the server: libmicrohttpd's callbacks, and how the loop runs it.
 *
 * libmicrohttpd runs (MHD_run) at the end of a turn, when its epoll descriptor was ready or an answer has
 * come: all requests that have arrived are read and all answers of the turn are handed over in one run, and a
 * second run sends them.
 *
 * How long the loop may wait then: while no request is polled, MHD_get_timeout() says. While one is, it
 * always says 0; then the next run comes at once if this one moved something (a body half read, an answer
 * sent and perhaps the next request behind it), else after a millisecond at the latest. Polling ends after 20
 * ms at the latest (enter.c). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/http/flow.h"
#include "shared/token/random.h"

enum { ROUNDS_MAX = 4, QUIET_RUNS = 8, TICK_US = 1000, LIMIT_ABOVE = 16 };

static void server_turn_end(struct loop_hook *hook);

/* -- what libmicrohttpd tells */

/* url, method and version are those of the short head that it got (receive.c). */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_len, void **context)
{
    (void)cls;
    (void)url;
    (void)method;
    (void)version;
    if (*context == NULL) {
        *context = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    }
    return http_enter(*context, upload, upload_len);
}

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
    if (req->state == STATE_SENDING && req->queued_run == server->run && server->in_run) {
        server->unsent--;
    }
    if ((req->state == STATE_ANSWERED || req->state == STATE_SENDING) && req->flow == NULL) {
        server->open--;
    }
    http_request_free(req);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = cls;
    struct http_conn *conn = *context;

    (void)mhd;
    *context = NULL;
    if (conn == NULL) {
        return;
    }
    server->moved++;
    if (conn->client != NULL) {
        http_peer_over(conn);
    }
    http_clock_set(server, &conn->deadline,
                   conn->over || (conn->req != NULL && conn->req->state == STATE_ABORTED) ? PHASE_NONE
                                                                                          : PHASE_HEAD);
    if (conn->kept != NULL) { /* a flow: a parked one is not completed before it is resumed */
        http_flow_closed(conn->kept, code);
    }
    conn->more = conn->more || conn->unread.len > 0;
    if (conn->req != NULL) {
        request_completed(conn->req);
    }
}

/* Whose it is, and whether it is one of the last. */
static void conn_know(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_peers *peers = server->options.peers;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn->mhd,
                                                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct in6_addr address;

    conn->reserved = server->connections + server->options.connections_reserved >
                     server->options.connections_max;
    if (peers == NULL || info == NULL) {
        return;
    }
    address = http_peer_address(info->client_addr);
    if (http_peers_trust(peers, &address)) {
        conn->client = http_must_alloc(sizeof(*conn->client));
        *conn->client = address;
    } else {
        conn->peer = http_peer_enter(peers, &address);
    }
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = cls;
    struct http_conn *conn = *context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        conn = http_must_alloc(sizeof(*conn));
        *conn = (struct http_conn){
            .server = server,
            .mhd = mhd,
            .fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd};
        *context = conn;
        server->connections++;
        conn_know(conn);
        http_disconnect_watch(conn);
        http_recv_watch(conn);
        http_clock_set(server, &conn->deadline, PHASE_HEAD);
        return;
    }
    http_clock_set(server, &conn->deadline, PHASE_NONE);
    server->connections--;
    if (conn->req != NULL) { /* refused before libmicrohttpd knew of it */
        request_completed(conn->req);
    }
    http_recv_forget(conn);
    http_peer_over(conn);
    http_disconnect_forget(conn);
    server->by_fd[conn->fd] = NULL;
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
    if (!is_full && (peers == NULL || http_peers_trust(peers, &peer) || !http_peers_full(peers, &peer))) {
        return MHD_YES;
    }
    if (owner != NULL && owner->closed != NULL) {
        owner->closed(owner, is_full ? HTTP_LIMIT_ALL : HTTP_LIMIT_ADDRESS, http_peer_text(&peer, text));
    }
    return MHD_NO;
}

/* -- the server's epoch */

static struct MHD_Daemon *daemon_start(struct http_server *server)
{
    /* Connections beyond our limit are closed by on_accept(); libmicrohttpd would leave them in the kernel's
     * queue. */
    unsigned limit = server->options.connections_max + LIMIT_ABOVE;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, on_accept, server, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, server->options.listen_fd, MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, server->pool_bytes, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);

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
    server->must_run = true;
}

struct http_server *http_server_new(struct loop *loop, const struct http_options *options)
{
    struct http_server *server = http_must_alloc(sizeof(*server));
    int epoll_fd;

    memset(server, 0, sizeof(*server));
    server->options = *options;
    server->loop = loop;
    server->reply_bytes_max = options->reply_head_max > REPLY_VALUES_BYTES ? options->reply_head_max
                                                                           : REPLY_VALUES_BYTES;
    assert(server->reply_bytes_max <= UINT16_MAX);
    server->reply_pool_bytes = server->reply_bytes_max;
    server->pool_bytes = POOL_BYTES + server->reply_pool_bytes - REPLY_VALUES_BYTES;
    if (server->options.head_max == 0) {
        server->options.head_max = HTTP_HEAD_MAX;
    }
    assert(server->options.head_max <= UINT16_MAX);
    snprintf(
        server->head_max_detail, sizeof(server->head_max_detail),
        "Request line and headers together may have %u bytes (--header-max). Send a shorter path or query, "
        "or fewer or shorter headers.",
        server->options.head_max);
    if (options->reply_head_max > 0) {
        server->reply_bytes_max = HTTP_REPLY_LONG;
    }
    random_text(server->id_prefix, ID_PREFIX_CHARS);
    http_clock_init(server);
    http_disconnect_init(server);
    http_request_pool_init(server);
    server->daemon = daemon_start(server);
    epoll_fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    loop_watch_init(loop, &server->watch, epoll_fd, server_ready, LOOP_READ);
    loop_hook_add(loop, &server->hook, server_turn_end);
    server->must_run = true; /* only a run begins to watch the listening socket */
    return server;
}

unsigned http_server_open_requests(const struct http_server *server)
{
    return server->open;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->connections;
}

static void server_run(struct http_server *server);

void http_server_drain(struct http_server *server)
{
    if (server->draining) {
        return;
    }
    server_run(server); /* takes what the kernel has already accepted for us */
    server->draining = true;
    close(MHD_quiesce_daemon(server->daemon));
    for (struct http_deadline *idle = server->clock.first[PHASE_HEAD]; idle != NULL; idle = idle->next) {
        struct http_conn *conn = container_of(idle, struct http_conn, deadline);

        if (conn->req == NULL && conn->unread.len <= 2) { /* which may be an empty line */
            shutdown(conn->fd, SHUT_RDWR);
        }
    }
    server->must_run = true;
    loop_again(server->loop);
}

static void server_free_dead(struct http_server *server)
{
    while (server->dead != NULL) {
        struct http_request *req = server->dead;

        server->dead = req->next;
        server->open -= req->flow == NULL; /* else the flow is counted */
        http_request_free(req);
    }
}

void http_server_free(struct http_server *server)
{
    assert(server->running == 0);
    server->draining = true;
    http_early_stop(server);
    server_run(server); /* a last chance for answers to leave; starts nothing */
    loop_hook_remove(server->loop, &server->hook);
    loop_watch_done(&server->watch);
    MHD_stop_daemon(server->daemon);
    server_free_dead(server);
    while (server->clock.first[PHASE_LINGER] != NULL) {
        http_linger_end(server->clock.first[PHASE_LINGER]);
    }
    http_clock_done(server);
    http_disconnect_done(server);
    http_request_pool_done(server);
    free(server->by_fd);
    free(server);
}

/* -- running libmicrohttpd */

/* Runs until all answers have been tried to be sent: one that was handed over in a run may be sent by the
 * next only. And where a long body came, more of it may be there: fewer turns make it faster by a fifth. */
static void server_run(struct http_server *server)
{
    assert(!server->in_run);
    server->clock.now_ms = loop_now_ms();
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        server->must_run = false;
        server->moved = 0;
        server->shown = 0;
        server->unsent = server->unsent_next;
        server->unsent_next = 0;
        server->run++;
        server->in_run = true;
        http_recv_run(server);
        server->in_run = false;
        if (server->unsent == 0 && server->shown == 0) {
            break;
        }
    }
    server->ran_us = loop_now_us();
    server_free_dead(server);
}

static void server_plan(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    if (server->polled > 0) {
        server->must_run = server->must_run || server->moved > 0 || server->unsent > 0;
        loop_wait_at_most(server->loop, server->must_run ? 0 : 1);
        return;
    }
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_NO) {
        server->quiet = 0;
        return;
    }
    /* A chunk head longer than libmicrohttpd's memory makes it say 0 until the body's deadline (0.9.75,
     * connection.c, MHD_CONNECTION_CONTINUE_SENT): do not spin that long. */
    server->quiet = server->moved > 0 ? 0 : server->quiet + 1;
    server->must_run = timeout_ms == 0;
    loop_wait_at_most(server->loop, server->quiet > QUIET_RUNS ? 1
                                    : timeout_ms < 1000        ? (unsigned)timeout_ms
                                                               : 1000);
}

static void server_turn_end(struct loop_hook *hook)
{
    struct http_server *server = container_of(hook, struct http_server, hook);

    if (server->must_run || (server->polled > 0 && loop_now_us() - server->ran_us >= TICK_US)) {
        server->started = 0;
        server_run(server);
        if (server->started > 0) {
            loop_again(server->loop); /* their calls to the store are to go out in this turn */
        }
    }
    http_disconnect_look(server);
    server_plan(server);
}
