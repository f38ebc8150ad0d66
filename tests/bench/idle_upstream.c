/* idle_upstream.c - an upstream that does nothing: reads each request to its end and answers 204; or, for
 * GET /.../bytes/N, 200 with N bytes.
 *
 *   idle_upstream      listens on a port of 127.0.0.1 that the kernel picks, and prints it
 *
 * It stands behind nginx. Every cycle that it does not spend is nginx's on a machine with two cores, so it is
 * as small as can be: one read, one write. It understands a request in one piece with Content-Length,
 * as nginx sends it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_BYTES = 4096, EVENTS = 256 };

struct conn {
    int fd, epoll;
    size_t in_len;
    uint64_t skip, give; /* bytes of a body that are still to come; of an answer that are still to go */
    char in[IN_BYTES];
};

static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";

/* The length of the request at the head of in; 0 when it is not whole yet. */
static size_t request_len(const char *in, size_t len)
{
    static const char length[] = "\r\nContent-Length: ", lower[] = "\r\ncontent-length: ";
    const char *end = memmem(in, len, "\r\n\r\n", 4), *body;
    size_t want;

    if (!end)
        return 0;
    want = (size_t)(end - in) + 4;
    body = memmem(in, want, length, sizeof(length) - 1);
    if (!body)
        body = memmem(in, want, lower, sizeof(lower) - 1);
    if (body)
        want += strtoul(body + sizeof(length) - 1, NULL, 10);
    return want;
}

static void conn_close(struct conn *c)
{
    close(c->fd);
    free(c);
}

static void conn_want(struct conn *c, uint32_t events)
{
    struct epoll_event want = {.events = events, .data.ptr = c};

    epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->fd, &want);
}

static void conn_give(struct conn *c)
{
    static const char bytes[1 << 18];

    while (c->give > 0) {
        ssize_t put = write(c->fd, bytes, c->give < sizeof(bytes) ? (size_t)c->give : sizeof(bytes));

        if (put < 0 && errno == EAGAIN)
            return;
        if (put <= 0) {
            conn_close(c);
            return;
        }
        c->give -= (uint64_t)put;
    }
    fcntl(c->fd, F_SETFL, 0);
    conn_want(c, EPOLLIN);
}

/* 0: it could not be said. */
static int conn_answer(struct conn *c)
{
    const char *line_end = memchr(c->in, '\r', c->in_len), *bytes;
    char head[128];
    int len;

    bytes = line_end ? memmem(c->in, (size_t)(line_end - c->in), "/bytes/", 7) : NULL;
    if (!bytes)
        return write(c->fd, answer, sizeof(answer) - 1) == (ssize_t)(sizeof(answer) - 1);
    c->give = strtoull(bytes + 7, NULL, 10);
    len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n",
                   (unsigned long long)c->give);
    if (write(c->fd, head, (size_t)len) != len)
        return 0;
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    conn_want(c, EPOLLOUT);
    return 1;
}

static void conn_skip(struct conn *c)
{
    static char waste[1 << 18];
    ssize_t got = read(c->fd, waste, c->skip < sizeof(waste) ? (size_t)c->skip : sizeof(waste));

    if (got <= 0) {
        conn_close(c);
        return;
    }
    c->skip -= (uint64_t)got;
    if (c->skip == 0 && !conn_answer(c))
        conn_close(c);
    else if (c->skip == 0)
        c->in_len = 0;
}

static void conn_read(struct conn *c)
{
    ssize_t got;
    size_t len;

    if (c->skip > 0) {
        conn_skip(c);
        return;
    }
    got = read(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len);
    if (got <= 0) {
        conn_close(c);
        return;
    }
    c->in_len += (size_t)got;
    len = request_len(c->in, c->in_len);
    if (len == 0 && c->in_len < sizeof(c->in))
        return;
    if (len > c->in_len) {
        c->skip = len - c->in_len;
        return;
    }
    if (len != c->in_len || !conn_answer(c)) {
        fprintf(stderr, "idle_upstream: not one whole request: %.*s\n", (int)c->in_len, c->in);
        conn_close(c);
        return;
    }
    c->in_len = 0;
}

static void conn_accept(int epoll, int listener)
{
    struct conn *c = calloc(1, sizeof(*c));
    struct epoll_event want = {.events = EPOLLIN, .data.ptr = c};
    int on = 1;

    if (!c)
        abort();
    c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (c->fd < 0) {
        free(c);
        return;
    }
    c->epoll = epoll;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &want);
}

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
        fprintf(stderr, "idle_upstream: %s\n", strerror(errno));
        exit(1);
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(void)
{
    int listener = listen_anywhere(), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS], want = {.events = EPOLLIN, .data.ptr = NULL};

    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &want);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            struct conn *c = events[i].data.ptr;

            if (c && c->give > 0)
                conn_give(c);
            else if (c)
                conn_read(c);
            else
                conn_accept(epoll, listener);
        }
    }
}
