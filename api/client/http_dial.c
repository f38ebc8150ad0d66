/* http_dial.c - a connection to the first of a host's addresses that takes one.
 *
 * One after the other, and the next one beside it when one has not answered after a quarter of a second
 * (RFC 8305): an address that swallows everything must not cost all the time there is. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "api/client/http_internal.h"

enum { NEXT_AFTER_MS = 250 };

/* Attempts; fd -1: none, or none any more. */
struct dialling {
    const struct http_addresses *addresses;
    struct pollfd fds[HTTP_ADDRESSES_MAX];
    unsigned begun, open;
    int64_t next_ms; /* when the next is begun */
    const char *why; /* the last one failed */
};

static void attempt_failed(struct dialling *dialling, unsigned which, int error)
{
    if (dialling->fds[which].fd >= 0) {
        close(dialling->fds[which].fd);
        dialling->fds[which].fd = -1;
        dialling->open--;
    }
    dialling->why = strerrordesc_np(error);
    dialling->next_ms = http_now_ms();
}

static void attempt_begin(struct dialling *dialling)
{
    unsigned which = dialling->begun++;
    const struct http_address *address = &dialling->addresses->list[which];
    const int on = 1;
    int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    dialling->fds[which] = (struct pollfd){.fd = fd, .events = POLLOUT};
    dialling->open += fd >= 0;
    dialling->next_ms = http_now_ms() + NEXT_AFTER_MS;
    if (fd < 0) {
        attempt_failed(dialling, which, errno);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* When interrupted it goes on all the same (connect(2)). */
    if (connect(fd, (const struct sockaddr *)&address->at, address->len) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
        attempt_failed(dialling, which, errno);
    }
}

/* The first that is connected; -1: none yet. A socket that is writable is, or has failed to be (connect(2)).
 */
static int winner_take(struct dialling *dialling)
{
    for (unsigned i = 0; i < dialling->begun; i++) {
        int error = 0, fd = dialling->fds[i].fd;
        socklen_t len = sizeof(error);

        if (fd < 0 || dialling->fds[i].revents == 0) {
            continue;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
            error = errno;
        }
        if (error == 0) {
            dialling->fds[i].fd = -1;
            return fd;
        }
        attempt_failed(dialling, i, error);
    }
    return -1;
}

static enum http_wait dial_first(struct http_wire *wire, struct dialling *dialling, int64_t until_ms)
{
    enum http_wait went = HTTP_READY;

    while (went == HTTP_READY && wire->fd < 0) {
        bool is_more = dialling->begun < dialling->addresses->count;
        int64_t wait_until_ms = is_more && dialling->next_ms < until_ms ? dialling->next_ms : until_ms;

        if (is_more && http_now_ms() >= dialling->next_ms) {
            attempt_begin(dialling);
        } else if (!is_more && dialling->open == 0) {
            wire->why = dialling->why != NULL ? dialling->why : "it has no address";
            return HTTP_FAILED;
        }
        went = http_wire_wait(wire, dialling->fds, dialling->begun, wait_until_ms);
        if (went == HTTP_LATE && http_now_ms() < until_ms) {
            went = HTTP_READY; /* for the next */
        } else if (went == HTTP_READY) {
            wire->fd = winner_take(dialling);
        }
    }
    return went;
}

enum http_wait http_dial_any(struct http_wire *wire, const struct http_addresses *addresses, int64_t until_ms)
{
    struct dialling dialling = {.addresses = addresses};
    enum http_wait went = dial_first(wire, &dialling, until_ms);

    for (unsigned i = 0; i < dialling.begun; i++) {
        if (dialling.fds[i].fd >= 0) {
            close(dialling.fds[i].fd);
        }
    }
    return went;
}

enum http_wait http_dial(struct http_wire *wire, const struct http_place *place, int64_t until_ms)
{
    struct http_addresses addresses = {.count = 0};
    enum http_wait went = HTTP_READY;

    if (!http_address_literal(place, &addresses)) {
        went = http_lookup(wire, place, &addresses, until_ms);
    }
    return went == HTTP_READY ? http_dial_any(wire, &addresses, until_ms) : went;
}
