/* unix_socket.c - clients of this machine, over a socket in the file system: the kernel says whose they are;
 * and all sockets that listen, also that for Pawl's own requests only (http_options, own_fd).
 *
 * libmicrohttpd listens on one socket only; and one from which it could not accept, since no descriptor was
 * left, it watches again in the run behind the one that frees a connection: that may never come (0.9.75,
 * daemon.c, at_limit; tried). So it listens on none, and is given each connection. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/read_all.h"

enum {
    UNIX_BACKLOG = 1024,
    UNIX_MODE = 0660,
    ACCEPTED_MAX = 64,
    AGAIN_MS = 100,
    KEPT_SHARE = 16, /* of all descriptors */
    UID_DIGITS_MAX = 10,
    UID_OF_OTHERS = 65534
};

/* Whether a socket lies there that nobody listens on. */
static bool is_left_behind(const struct sockaddr_un *address)
{
    struct stat found;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = lstat(address->sun_path, &found) == 0 && S_ISSOCK(found.st_mode) && fd >= 0 &&
                   connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
                   errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    return refused;
}

int http_listen_unix(const char *path, const char **why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (path[0] != '/' || strlen(path) >= sizeof(address.sun_path)) {
        *why = "it takes an absolute path of at most 107 bytes";
        errno = EINVAL;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    if (is_left_behind(&address))
        unlink(path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t mask = umask(0777 & ~UNIX_MODE); /* before any other thread is there */
    bool bound = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
    int error = errno;
    umask(mask);
    if (bound && listen(fd, UNIX_BACKLOG) == 0)
        return fd;
    *why = bound ? "the system refused" : strerrordesc_np(error);
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static bool uid_of(int fd, uid_t *uid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    *uid = peer.uid;
    return true;
}

struct in6_addr http_unix_peer(int fd)
{
    struct in6_addr address = {.s6_addr = {[3] = 1}}; /* in ::/8, where no client is */
    uid_t uid = UID_OF_OTHERS;

    (void)uid_of(fd, &uid);
    memcpy(&address.s6_addr[4], &uid, sizeof(uid));
    return address;
}

/* Nobody has all places of those who ask here. */
static bool has_its_share(const struct http_listener *listener, int fd)
{
    struct http_peers *peers = listener->server->options.peers;
    struct in6_addr address = http_unix_peer(fd);

    return listener == &listener->server->listeners[0] && peers != NULL && http_peers_full(peers, &address);
}

/* The last descriptors are not for clients: a link to the store that breaks must find one. */
static bool is_one_of_the_last(int fd)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) == 0 &&
           (rlim_t)fd >= files.rlim_cur - files.rlim_cur / KEPT_SHARE;
}

static void listener_accept(struct http_listener *listener)
{
    const struct http_owner *owner = listener->server->options.owner;

    for (unsigned i = 0; i < ACCEPTED_MAX; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof(from);
        int fd = accept4(listener->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            loop_watch_set(&listener->watch, 0); /* else it would be reported at once again */
            loop_timer_arm(&listener->again, AGAIN_MS, 0);
        }
        if (fd < 0)
            break;
        bool is_last = is_one_of_the_last(fd);
        if (is_last || has_its_share(listener, fd)) {
            close(fd);
            if (owner != NULL && owner->closed != NULL)
                owner->closed(owner, is_last ? HTTP_LIMIT_ALL : HTTP_LIMIT_ADDRESS, "");
            continue;
        }
        /* It closes the socket if it does not take it. */
        (void)MHD_add_connection(listener->server->daemon, fd, (struct sockaddr *)&from, size);
    }
    http_run_soon(listener->server);
}

static void listener_ready(struct loop_watch *watch, int events)
{
    (void)events;
    listener_accept(container_of(watch, struct http_listener, watch));
}

static void listener_again(struct loop_timer *timer)
{
    loop_watch_set(&container_of(timer, struct http_listener, again)->watch, LOOP_READ);
}

/* The uid of everybody who has no number here, being of another user namespace. */
static uid_t uid_of_others(void)
{
    char text[BYTES_NUMBER_SIZE];
    mode_t mode;
    ssize_t len = read_all_of("/proc/sys/kernel/overflowuid", text, sizeof(text), &mode);
    struct bytes left = {text, len > 0 ? (size_t)len : 0};
    int64_t uid = bytes_number(bytes_cut(&left, '\n'), UID_DIGITS_MAX);

    return uid > 0 ? (uid_t)uid : UID_OF_OTHERS;
}

void http_listeners_watch(struct http_server *server)
{
    const int fds[HTTP_LISTENERS] = {server->options.unix_fd, server->options.own_fd,
                                     server->options.listen_fd};

    server->uid_of_others = uid_of_others();
    for (unsigned i = 0; i < HTTP_LISTENERS; i++) {
        struct http_listener *listener = &server->listeners[i];

        listener->server = server;
        listener->fd = fds[i];
        if (fds[i] <= 0)
            continue;
        loop_timer_init(server->loop, &listener->again, listener_again);
        loop_watch_init(server->loop, &listener->watch, fds[i], listener_ready, LOOP_READ);
    }
}

void http_listeners_done(struct http_server *server)
{
    for (struct http_listener *listener = server->listeners; listener < server->listeners + HTTP_LISTENERS;
         listener++) {
        if (listener->fd <= 0)
            continue;
        listener_accept(listener);
        loop_timer_done(&listener->again);
        loop_watch_done(&listener->watch);
        close(listener->fd);
        listener->fd = 0;
    }
}

/* The port in network order, 0: none; own_fd has another one than listen_fd (http_server.h). */
static in_port_t port_of(int fd)
{
    struct sockaddr_in6 at = {0};
    socklen_t size = sizeof(at);
    bool is_known = getsockname(fd, (struct sockaddr *)&at, &size) == 0;

    return is_known && (at.sin6_family == AF_INET || at.sin6_family == AF_INET6) ? at.sin6_port : 0;
}

bool http_conn_is_own(const struct http_conn *conn)
{
    int own_fd = conn->server->listeners[1].fd;

    return own_fd > 0 && !conn->is_unix && port_of(conn->fd) == port_of(own_fd);
}

bool http_is_own(const struct http_request *req)
{
    return req->conn != NULL && req->conn->is_own;
}

bool http_client_uid(const struct http_request *req, uid_t *uid)
{
    return req->conn != NULL && req->conn->is_unix && uid_of(req->conn->fd, uid) &&
           *uid != req->server->uid_of_others;
}
