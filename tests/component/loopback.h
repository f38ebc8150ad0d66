/* loopback.h - TCP on 127.0.0.1 for tests: a listener, a connection, and a queue that is full. */
#ifndef PAWL_TESTS_LOOPBACK_H
#define PAWL_TESTS_LOOPBACK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/check.h"

static inline struct sockaddr_in loopback_at(unsigned port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* At a port that nobody had. flags: of the socket, beside SOCK_CLOEXEC. */
static inline int loopback_listen(unsigned *port, int backlog, int flags)
{
    struct sockaddr_in address = loopback_at(0);
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    CHECK(bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* As connect(2). */
static inline int loopback_connect(int fd, unsigned port)
{
    const struct sockaddr_in address = loopback_at(port);

    return connect(fd, (const struct sockaddr *)&address, sizeof(address));
}

static inline int loopback_open(unsigned port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(loopback_connect(fd, port) == 0);
    return fd;
}

/* A listener that takes one or two connections: whoever comes behind these gets no answer. */
struct loopback_full {
    unsigned port;
    int listener, fds[4];
};

static inline void loopback_full_open(struct loopback_full *full)
{
    full->listener = loopback_listen(&full->port, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        full->fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        loopback_connect(full->fds[i], full->port);
    }
}

static inline void loopback_full_close(struct loopback_full *full)
{
    for (unsigned i = 0; i < 4; i++)
        close(full->fds[i]);
    close(full->listener);
}

#endif
