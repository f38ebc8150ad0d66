/* wire.c - sockets: connecting, and one question with its answer where nothing is measured. */
#include "tests/bench/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void load_fail(const char *format, ...)
{
    va_list args;

    fputs("load: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof(address.sun_path))
        load_fail("a path too long for a socket: %s", path);
    memcpy(address.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        load_fail("%s: %s", path, strerror(errno));
    return fd;
}

int wire_connect(const char *to)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *port = strrchr(to, ':');
    int fd, on = 1;

    if (strncmp(to, "unix:", 5) == 0)
        return connect_unix(to + 5);
    if (!port || strncmp(to, "127.0.0.1:", 10) != 0)
        load_fail("not 127.0.0.1:PORT or unix:/PATH: %s", to);
    address.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        load_fail("%s: %s", to, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

struct tls *wire_tls(struct tls_trust *trust, int fd)
{
    struct tls *tls = tls_open(trust, fd, "127.0.0.1");
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    enum tls_step step = TLS_FAILED;

    while (tls != NULL && (step = tls_handshake(tls)) == TLS_WAITS)
        poll(&wait, 1, -1);
    if (step != TLS_DONE)
        load_fail("no TLS: %s", tls != NULL && tls_why(tls) != NULL ? tls_why(tls) : "no memory");
    return tls;
}

void wire_send(int fd, struct bytes text)
{
    ssize_t sent = send(fd, text.at, text.len, MSG_NOSIGNAL);

    if (sent < 0 || (size_t)sent != text.len)
        load_fail("sending %zu bytes: %s", text.len, sent < 0 ? strerror(errno) : "not all were taken");
}

size_t wire_answer(int fd, protocol_measure *measure, char *buf, size_t size, struct bytes *word)
{
    size_t len = 0;
    long whole = ANSWER_PART;

    while (whole == ANSWER_PART) {
        ssize_t got = len < size ? read(fd, buf + len, size - len) : 0;

        if (got <= 0)
            load_fail("no whole answer: %s",
                      got < 0 ? strerror(errno) : "the other side closed, or it is too long");
        len += (size_t)got;
        whole = measure((struct bytes){buf, len}, word);
    }
    if (whole == ANSWER_BAD)
        load_fail("not an answer: %.*s", (int)len, buf);
    return (size_t)whole;
}
