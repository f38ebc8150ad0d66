/* unix_socket.c - clients of this machine, over a socket in the file system: the kernel says whose they are.
 *
 * libmicrohttpd listens on one socket only; the connections of this one it is given one by one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
    UNIX_AGAIN_MS = 100,
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
    return -1;
}

static void unix_ready(struct loop_watch *watch, int events)
{
    struct http_server *server = container_of(watch, struct http_server, unix_watch);

    (void)events;
    for (unsigned i = 0; i < ACCEPTED_MAX; i++) {
        struct sockaddr_un from = {.sun_family = AF_UNIX};
        int fd = accept4(server->options.unix_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            loop_watch_set(&server->unix_watch, 0); /* else it would be reported at once again */
            loop_timer_arm(&server->unix_again, UNIX_AGAIN_MS, 0);
        }
        if (fd < 0)
            break;
        /* It closes the socket if it does not take it. */
        (void)MHD_add_connection(server->daemon, fd, (struct sockaddr *)&from, sizeof(sa_family_t));
    }
    http_run_soon(server);
}

static void unix_again(struct loop_timer *timer)
{
    loop_watch_set(&container_of(timer, struct http_server, unix_again)->unix_watch, LOOP_READ);
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

void http_unix_watch(struct http_server *server)
{
    if (server->options.unix_fd <= 0)
        return;
    server->uid_of_others = uid_of_others();
    loop_timer_init(server->loop, &server->unix_again, unix_again);
    loop_watch_init(server->loop, &server->unix_watch, server->options.unix_fd, unix_ready, LOOP_READ);
}

void http_unix_done(struct http_server *server)
{
    if (server->options.unix_fd > 0) {
        loop_timer_done(&server->unix_again);
        loop_watch_done(&server->unix_watch);
        close(server->options.unix_fd);
        server->options.unix_fd = 0;
    }
}

bool http_client_uid(const struct http_request *req, uid_t *uid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (req->conn == NULL || !req->conn->is_unix ||
        getsockopt(req->conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    *uid = peer.uid;
    return peer.uid != req->server->uid_of_others;
}
