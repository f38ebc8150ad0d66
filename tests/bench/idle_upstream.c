/* idle_upstream.c - an upstream that does nothing: reads each request to its end and answers 204.
 *
 *   idle_upstream      listens on a port of 127.0.0.1 that the kernel picks, and prints it
 *
 * It stands behind nginx. Every cycle that it does not spend is nginx's on a machine with two cores, so it is
 * as small as can be: one read, one write. It understands a request in one piece with Content-Length,
 * as nginx sends it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_BYTES = 4096, EVENTS = 256 };

struct conn {
    int fd;
    size_t in_len;
    char in[IN_BYTES];
};

static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";

/* The length of the request at the head of in; 0 when it is not whole yet. */
static size_t request_len(const char *in, size_t len)
{
    static const char length[] = "\r\nContent-Length: ";
    const char *end = memmem(in, len, "\r\n\r\n", 4), *body;
    size_t want;

    if (!end)
        return 0;
    want = (size_t)(end - in) + 4;
    body = memmem(in, want, length, sizeof(length) - 1);
    if (body)
        want += strtoul(body + sizeof(length) - 1, NULL, 10);
    return want <= len ? want : 0;
}

static void conn_close(struct conn *c)
{
    close(c->fd);
    free(c);
}

static void conn_read(struct conn *c)
{
    ssize_t got = read(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len);
    size_t len;

    if (got <= 0) {
        conn_close(c);
        return;
    }
    c->in_len += (size_t)got;
    len = request_len(c->in, c->in_len);
    if (len == 0 && c->in_len < sizeof(c->in))
        return;
    if (len != c->in_len || write(c->fd, answer, sizeof(answer) - 1) != (ssize_t)(sizeof(answer) - 1)) {
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
            if (events[i].data.ptr)
                conn_read(events[i].data.ptr);
            else
                conn_accept(epoll, listener);
        }
    }
}
