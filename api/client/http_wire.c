/* http_wire.c - what bytes go through: waiting, a socket, and TLS over it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/client/http_internal.h"

static int wait_ms(int64_t until_ms)
{
    int64_t left_ms = until_ms - pawl_now_ms();

    return left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

enum http_wait http_wire_wait(struct http_wire *wire, struct pollfd *fds, unsigned count, int64_t until_ms)
{
    struct pollfd all[HTTP_ADDRESSES_MAX + HTTP_CLIENT_STOPS_MAX];
    unsigned stops = 0;

    if (count > 0) {
        memcpy(all, fds, count * sizeof(*fds));
    }
    for (; wire->stop_fds != NULL && stops < HTTP_CLIENT_STOPS_MAX && wire->stop_fds[stops] >= 0; stops++) {
        all[count + stops] = (struct pollfd){.fd = wire->stop_fds[stops], .events = POLLIN};
    }
    for (;;) {
        int64_t now_ms = pawl_now_ms();
        int ready = poll(all, count + stops, wait_ms(until_ms));

        for (unsigned i = 0; ready > 0 && i < stops; i++) {
            if (all[count + i].revents != 0) {
                return HTTP_STOPPED;
            }
        }
        if (ready < 0 && errno != EINTR) {
            wire->why = strerrordesc_np(errno);
            return HTTP_FAILED;
        }
        if (ready > 0) { /* then there are some */
            memcpy(fds, all, count * sizeof(*fds));
            return HTTP_READY;
        }
        if (now_ms >= until_ms) { /* what was ready by then has been seen */
            return HTTP_LATE;
        }
    }
}

/* Whom to trust: the system, or the file that other programs are given by the same name. */
static enum http_wait tls_begin(struct http_wire *wire, const char *host)
{
    const char *file = secure_getenv("SSL_CERT_FILE");
    struct tls_trust *trust = tls_trust_new(file != NULL && *file != '\0' ? file : NULL, &wire->why);

    if (trust != NULL) {
        wire->tls = tls_open(trust, wire->fd, host);
        tls_trust_free(trust);
    }
    return wire->tls != NULL ? HTTP_READY : HTTP_FAILED;
}

enum http_wait http_wire_secure(struct http_wire *wire, const char *host, int64_t until_ms)
{
    enum http_wait went = tls_begin(wire, host);

    while (went == HTTP_READY) {
        struct pollfd ready = {.fd = wire->fd, .events = POLLIN};

        switch (tls_handshake(wire->tls)) {
        case TLS_DONE: return HTTP_READY;
        case TLS_FAILED: wire->why = tls_why(wire->tls); return HTTP_FAILED;
        case TLS_WAITS:
            ready.events |= tls_has_unsent(wire->tls) ? POLLOUT : 0;
            went = http_wire_wait(wire, &ready, 1, until_ms);
        }
    }
    return went;
}

static ssize_t went_or_why(struct http_wire *wire, ssize_t len)
{
    if (len < 0 && errno != EAGAIN) {
        wire->why = wire->tls != NULL ? tls_why(wire->tls) : strerrordesc_np(errno);
    }
    return len;
}

ssize_t http_wire_send(struct http_wire *wire, struct bytes first, struct bytes then)
{
    struct iovec pieces[] = {{(void *)first.at, first.len}, {(void *)then.at, then.len}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    ssize_t len;

    if (wire->tls != NULL) {
        return went_or_why(wire, tls_write(wire->tls, first.len > 0 ? first : then));
    }
    do {
        len = sendmsg(wire->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (len < 0 && errno == EINTR);
    return went_or_why(wire, len);
}

ssize_t http_wire_receive(struct http_wire *wire, char *to, size_t size)
{
    ssize_t len;

    if (wire->tls != NULL) {
        return went_or_why(wire, tls_read(wire->tls, to, size));
    }
    do {
        len = recv(wire->fd, to, size, MSG_DONTWAIT);
    } while (len < 0 && errno == EINTR);
    return went_or_why(wire, len);
}

void http_wire_close(struct http_wire *wire, enum http_close how)
{
    static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

    if (wire->fd >= 0 && how == HTTP_RESET) {
        /* Dissolves it (connect(2)), also when a child has a copy of the descriptor; with a reset, since then
         * nothing waits to be sent (tcp_disconnect() in Linux). */
        (void)!connect(wire->fd, &nowhere, sizeof(nowhere));
    }
    if (wire->tls != NULL && how == HTTP_CLOSE) {
        tls_bye(wire->tls);
    }
    tls_close(wire->tls);
    wire->tls = NULL;
    if (wire->fd >= 0) {
        close(wire->fd);
    }
    wire->fd = -1;
}
