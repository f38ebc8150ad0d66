/* listen.c - listening sockets, and what their address says. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"

enum { HOST_MAX = 64, PORT_DIGITS_MAX = 5, PORT_MAX = 65535, BACKLOG = 4096 };

/* A dead peer is known after 5 + 3 * 3 seconds. UNACKED_MS, where it is set, takes the place of the number of
 * probes, and is looked at when a probe is due (Linux, net/ipv4/tcp_timer.c, tcp_keepalive_timer()): that is
 * after 14 seconds too. (Tried with a peer whose packets were lost: 14.5 s where nothing was to be sent,
 * else 13.5.) */
enum { KEEPALIVE_IDLE_S = 5, KEEPALIVE_INTERVAL_S = 3, KEEPALIVE_PROBES = 3, UNACKED_MS = 13000 };

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int port_read(const char *text)
{
    int port = 0;
    size_t len = strlen(text);

    if (len == 0 || len > PORT_DIGITS_MAX) {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_digit(text[i])) {
            return -1;
        }
        port = port * 10 + (text[i] - '0');
    }
    return port <= PORT_MAX ? port : -1;
}

/* The length of the socket address, or 0. */
static socklen_t address_read(const char *text, union socket_address *address)
{
    char host[HOST_MAX + 1] = "";
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    int port = colon != NULL ? port_read(colon + 1) : -1;

    memset(address, 0, sizeof(*address));
    if (port < 0 || len == 0 || len > HOST_MAX) {
        return 0;
    }
    if (text[0] == '[' && text[len - 1] == ']') {
        memcpy(host, text + 1, len - 2);
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1 ? sizeof(address->v6) : 0;
    }
    memcpy(host, text, len);
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 ? sizeof(address->v4) : 0;
}

bool http_address_is_loopback(const char *text)
{
    union socket_address address;

    if (address_read(text, &address) == 0) {
        return false;
    }
    if (address.any.sa_family == AF_INET) {
        return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr) && address.v6.sin6_addr.s6_addr[12] == 127);
}

static int option_set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value));
}

/* On Linux accepted sockets inherit these, so that they cost nothing for each connection (tried; a test
 * looks). */
static int options_set(int fd)
{
    int bad = option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);

    bad |= option_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    bad |= option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    bad |= option_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    bad |= option_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    bad |= option_set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    return bad;
}

/* Keep-alive probes nobody to whom something is still to be sent: only retransmissions tell then, for 15
 * minutes (tcp(7), tcp_retries2), or this option. It counts for a peer that lives and does not read, too
 * (tried). */
void http_socket_hurry(int fd)
{
    (void)option_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS);
}

/* strerror() shares its buffer between threads; these are the ones that an operator meets. */
static const char *why_not(int error)
{
    switch (error) {
    case EADDRINUSE: return "the address is in use";
    case EADDRNOTAVAIL: return "this machine does not have the address";
    case EACCES: return "permission denied";
    case EMFILE:
    case ENFILE: return "too many open files";
    case EAFNOSUPPORT: return "this machine does not have this kind of address";
    default: return "the system refused";
    }
}

/* share_port: 1 sets SO_REUSEPORT, 0 does not. */
static int listen_on(const char *text, int share_port, unsigned *port, const char **why)
{
    union socket_address address;
    socklen_t len = address_read(text, &address);
    int fd;

    if (len == 0) {
        *why = "an address is written like 127.0.0.1:8700 or [::1]:8700";
        return -1;
    }
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *why = why_not(errno);
        return -1;
    }
    if (options_set(fd) != 0 || option_set(fd, SOL_SOCKET, SO_REUSEPORT, share_port) != 0 ||
        bind(fd, &address.any, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &address.any, &len) != 0) {
        *why = why_not(errno);
        close(fd);
        return -1;
    }
    *port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    return fd;
}

int http_listen(const char *text, unsigned *port, const char **why)
{
    return listen_on(text, 1, port, why);
}

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool http_listen_given(int fd, char address[HTTP_LISTEN_SIZE], unsigned *port, const char **why)
{
    union socket_address bound = {0};
    socklen_t len = sizeof(bound);
    char host[INET6_ADDRSTRLEN] = "";

    if (option_of(fd, SO_TYPE) != SOCK_STREAM || option_of(fd, SO_ACCEPTCONN) != 1 ||
        getsockname(fd, &bound.any, &len) != 0 ||
        (bound.any.sa_family != AF_INET && bound.any.sa_family != AF_INET6)) {
        *why = "it is not a listening TCP socket";
        return false;
    }
    if (options_set(fd) != 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        *why = why_not(errno);
        return false;
    }
    bool six = bound.any.sa_family == AF_INET6;
    *port = ntohs(six ? bound.v6.sin6_port : bound.v4.sin_port);
    inet_ntop(bound.any.sa_family, six ? (void *)&bound.v6.sin6_addr : (void *)&bound.v4.sin_addr, host,
              sizeof(host));
    snprintf(address, HTTP_LISTEN_SIZE, six ? "[%s]:%u" : "%s:%u", host, *port);
    return true;
}

bool http_address_is_free(const char *text, const char **why)
{
    unsigned port = 0;
    int fd = listen_on(text, 0, &port, why);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}
