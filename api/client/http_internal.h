/* http_internal.h - what the files of the HTTP client share. Nobody else includes it.
 *
 *   http_exchange.c  one exchange: connect, send, receive, and which of the three ends it came to
 *   http_head.c      from a URL and headers to the text of a request
 *   http_dial.c      what bytes go through: waiting, the addresses of a name, a socket, and TLS over it */
#ifndef PAWL_CLIENT_HTTP_INTERNAL_H
#define PAWL_CLIENT_HTTP_INTERNAL_H

#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "api/client/http_client.h"
#include "api/client/pawl.h"
#include "shared/tls/tls.h"

enum { HTTP_HOST_SIZE = 256, HTTP_PORT_SIZE = 6, HTTP_ADDRESSES_MAX = 8 };

/* -- http_head.c */

struct http_place {
    bool is_tls, is_unix;
    /* An IPv6 address without its brackets; of a unix socket its path, which is the authority, too. */
    char host[HTTP_HOST_SIZE], port[HTTP_PORT_SIZE];
    struct bytes authority, target; /* in the URL; target empty: "/" */
};

/* NULL, or what is wrong: another scheme, a user, a fragment, a host that is no ASCII name or address, a port
 * that is not 1 to 65535, white space or a control character. */
const char *http_place_read(struct http_place *place, const char *url);

/* The request line and the header, with the access token as it is now; to be wiped and freed. NULL, and why.
 */
char *http_head_new(const struct http_client_request *request, const struct http_place *place, size_t *len,
                    const char **why);

/* -- http_dial.c */

enum http_wait {
    HTTP_READY,
    HTTP_STOPPED, /* one of stop_fds is readable */
    HTTP_LATE,
    HTTP_FAILED /* wire->why */
};

struct http_wire {
    const int *stop_fds; /* as in struct http_client_request */
    int fd;              /* -1: none */
    struct tls *tls;     /* NULL: plain */
    const char *why;     /* static; NULL: there is no memory */
};

/* Until one of fds is ready, at most HTTP_ADDRESSES_MAX of them; never waits behind until_ms. */
enum http_wait http_wire_wait(struct http_wire *wire, struct pollfd *fds, unsigned count, int64_t until_ms);
/* TLS over the socket that is connected. HTTP_READY: its other end is the host. */
enum http_wait http_wire_secure(struct http_wire *wire, const char *host,
                                const struct http_client_access *access, int64_t until_ms);
/* As sendmsg(2) and recv(2) that do not block: bytes; 0: the other side has closed; -1: errno is EAGAIN, or
 * why says what is wrong. Of first and then, not both empty, TLS takes one at a time. */
ssize_t http_wire_send(struct http_wire *wire, struct bytes first, struct bytes then);
ssize_t http_wire_receive(struct http_wire *wire, char *to, size_t size);
/* HTTP_RESET: what the kernel still has of the request does not arrive later. */
enum http_close { HTTP_CLOSE, HTTP_RESET };
void http_wire_close(struct http_wire *wire, enum http_close how);

struct http_address {
    struct sockaddr_storage at;
    socklen_t len;
};

struct http_addresses {
    struct http_address list[HTTP_ADDRESSES_MAX];
    unsigned count;
};

/* HTTP_READY, and wire->fd is connected. */
enum http_wait http_dial(struct http_wire *wire, const struct http_place *place, int64_t until_ms);
enum http_wait http_dial_any(struct http_wire *wire, const struct http_addresses *addresses,
                             int64_t until_ms);

#endif
