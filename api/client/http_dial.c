/* http_dial.c - what the bytes of a request go through: waiting, the addresses of a name, a connection to the
 * first of them that takes one, and TLS over it.
 *
 * A lookup that is given up goes on by itself: it belongs to the caller and to its thread, and the last of
 * the two to leave frees it.
 *
 * One address after the other, and the next one beside it when one has not answered after a quarter of a
 * second (RFC 8305): an address that swallows everything must not cost all the time there is. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/client/http_internal.h"

/* -- what bytes go through: waiting, a socket, TLS over it */

static int wait_ms(int64_t until_ms)
{
    int64_t left_ms = until_ms - pawl_now_ms();

    return left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

enum http_wait http_wire_wait(struct http_wire *wire, struct pollfd *fds, unsigned count, int64_t until_ms)
{
    struct pollfd all[HTTP_ADDRESSES_MAX + HTTP_CLIENT_STOPS_MAX];
    unsigned stops = 0;

    if (count > 0)
        memcpy(all, fds, count * sizeof(*fds));
    for (; wire->stop_fds != NULL && stops < HTTP_CLIENT_STOPS_MAX && wire->stop_fds[stops] >= 0; stops++)
        all[count + stops] = (struct pollfd){.fd = wire->stop_fds[stops], .events = POLLIN};
    for (;;) {
        int64_t now_ms = pawl_now_ms();
        int ready = poll(all, count + stops, wait_ms(until_ms));

        for (unsigned i = 0; ready > 0 && i < stops; i++)
            if (all[count + i].revents != 0)
                return HTTP_STOPPED;
        if (ready < 0 && errno != EINTR) {
            wire->why = strerrordesc_np(errno);
            return HTTP_FAILED;
        }
        if (ready > 0) { /* then there are some */
            memcpy(fds, all, count * sizeof(*fds));
            return now_ms < until_ms ? HTTP_READY : HTTP_LATE; /* a peer may always have something to say */
        }
        if (now_ms >= until_ms) /* what was ready by then has been looked at */
            return HTTP_LATE;
    }
}

/* Whom to trust: the system, or the file that is named; or that other programs are given by the same name. */
static enum http_wait tls_begin(struct http_wire *wire, const char *host,
                                const struct http_client_access *access)
{
    const char *const *text = access->text;
    const char *file = text[HTTP_ACCESS_CA_FILE] != NULL ? text[HTTP_ACCESS_CA_FILE]
                                                         : secure_getenv("SSL_CERT_FILE");
    const char *cert = text[HTTP_ACCESS_CERT_FILE], *key = text[HTTP_ACCESS_KEY_FILE];
    struct tls_trust *trust = tls_trust_new(file != NULL && *file != '\0' ? file : NULL, &wire->why);

    if (trust != NULL && (cert == NULL || tls_trust_show(trust, cert, key, &wire->why)))
        wire->tls = tls_open(trust, wire->fd, host);
    tls_trust_free(trust);
    return wire->tls != NULL ? HTTP_READY : HTTP_FAILED;
}

enum http_wait http_wire_secure(struct http_wire *wire, const char *host,
                                const struct http_client_access *access, int64_t until_ms)
{
    enum http_wait went = tls_begin(wire, host, access);

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
    if (len < 0 && errno != EAGAIN)
        wire->why = wire->tls != NULL ? tls_why(wire->tls) : strerrordesc_np(errno);
    return len;
}

ssize_t http_wire_send(struct http_wire *wire, struct bytes first, struct bytes then)
{
    struct iovec pieces[] = {{(void *)first.at, first.len}, {(void *)then.at, then.len}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    ssize_t len;

    if (wire->tls != NULL)
        return went_or_why(wire, tls_write(wire->tls, first.len > 0 ? first : then));
    do {
        len = sendmsg(wire->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (len < 0 && errno == EINTR);
    return went_or_why(wire, len);
}

ssize_t http_wire_receive(struct http_wire *wire, char *to, size_t size)
{
    ssize_t len;

    if (wire->tls != NULL)
        return went_or_why(wire, tls_read(wire->tls, to, size));
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
    if (wire->tls != NULL && how == HTTP_CLOSE)
        tls_bye(wire->tls);
    tls_close(wire->tls);
    wire->tls = NULL;
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
}

enum { NEXT_AFTER_MS = 250 };

/* -- the addresses */

struct lookup {
    atomic_uint owners;
    int ready; /* an eventfd: readable when it is done */
    atomic_bool is_done;
    char host[HTTP_HOST_SIZE], port[HTTP_PORT_SIZE];
    struct http_addresses found;
    const char *why; /* NULL: found */
};

/* NULL, or why not. */
static const char *resolve(const char *host, const char *port, int flags, struct http_addresses *found)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(host, port, &hints, &list);

    if (error != 0)
        return gai_strerror(error);
    for (const struct addrinfo *at = list; at != NULL && found->count < HTTP_ADDRESSES_MAX;
         at = at->ai_next) {
        memcpy(&found->list[found->count].at, at->ai_addr, at->ai_addrlen);
        found->list[found->count++].len = at->ai_addrlen;
    }
    freeaddrinfo(list);
    return NULL;
}

/* A unix socket, a literal address, and "localhost" (RFC 6761, 6.3), which need not be looked up. */
static bool address_literal(const struct http_place *place, struct http_addresses *found)
{
    struct sockaddr_un *at = (struct sockaddr_un *)&found->list[0].at;

    if (place->is_unix) {
        at->sun_family = AF_UNIX;
        memcpy(at->sun_path, place->host, strlen(place->host) + 1); /* http_place_read() has measured it */
        found->list[0].len = sizeof(*at);
        found->count = 1;
        return true;
    }
    if (strcasecmp(place->host, "localhost") == 0) {
        resolve("127.0.0.1", place->port, AI_NUMERICHOST, found);
        resolve("::1", place->port, AI_NUMERICHOST, found);
        return true;
    }
    return resolve(place->host, place->port, AI_NUMERICHOST, found) == NULL;
}

static void lookup_leave(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->owners, 1) == 1) {
        close(lookup->ready);
        free(lookup);
    }
}

static void *lookup_work(void *at)
{
    struct lookup *lookup = at;
    static const uint64_t one = 1;

    lookup->why = resolve(lookup->host, lookup->port, 0, &lookup->found);
    atomic_store(&lookup->is_done, true);
    while (write(lookup->ready, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    lookup_leave(lookup);
    return NULL;
}

int client_thread_start(pthread_t *thread, void *(*work)(void *of), void *of)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, work, of);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int client_fd_high(int fd)
{
    int higher;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return higher;
}

static struct lookup *lookup_begin(const struct http_place *place)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    pthread_t thread;

    if (lookup == NULL)
        return NULL;
    memcpy(lookup->host, place->host, sizeof(lookup->host));
    memcpy(lookup->port, place->port, sizeof(lookup->port));
    lookup->ready = client_fd_high(eventfd(0, EFD_CLOEXEC));
    atomic_init(&lookup->owners, 2);
    atomic_init(&lookup->is_done, false);
    if (lookup->ready < 0 || client_thread_start(&thread, lookup_work, lookup) != 0) {
        if (lookup->ready >= 0)
            close(lookup->ready);
        free(lookup);
        return NULL;
    }
    pthread_detach(thread);
    return lookup;
}

/* getaddrinfo(3) blocks for as long as the resolver does, and cannot be called back: so it has a thread of
 * its own. */
static enum http_wait lookup_run(struct http_wire *wire, const struct http_place *place,
                                 struct http_addresses *found, int64_t until_ms)
{
    struct lookup *lookup = lookup_begin(place);
    struct pollfd ready;
    enum http_wait went;

    if (lookup == NULL) {
        wire->why = "its name cannot be looked up: there is no memory, no thread or no descriptor for it";
        return HTTP_FAILED;
    }
    ready = (struct pollfd){.fd = lookup->ready, .events = POLLIN};
    went = http_wire_wait(wire, &ready, 1, until_ms);
    if (went == HTTP_READY && atomic_load(&lookup->is_done)) { /* always: it is set before the eventfd is */
        *found = lookup->found;
        wire->why = lookup->why;
        went = lookup->why == NULL ? HTTP_READY : HTTP_FAILED;
    }
    lookup_leave(lookup);
    return went;
}

/* -- the connection */

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
    dialling->next_ms = pawl_now_ms();
}

/* Never one of the first three, see client_fd_high(), nor a copy of one: who is about to print into it when
 * it is closed would still do so when its copy is connected. */
static int socket_open(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), higher;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    higher = socket_open(family);
    close(fd);
    return higher;
}

static void attempt_begin(struct dialling *dialling)
{
    unsigned which = dialling->begun++;
    const struct http_address *address = &dialling->addresses->list[which];
    const int on = 1;
    int fd = socket_open(address->at.ss_family);

    dialling->fds[which] = (struct pollfd){.fd = fd, .events = POLLOUT};
    dialling->open += fd >= 0;
    dialling->next_ms = pawl_now_ms() + NEXT_AFTER_MS;
    if (fd < 0) {
        attempt_failed(dialling, which, errno);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* When interrupted it goes on all the same (connect(2)). */
    if (connect(fd, (const struct sockaddr *)&address->at, address->len) != 0 && errno != EINPROGRESS &&
        errno != EINTR)
        attempt_failed(dialling, which, errno);
}

/* The first that is connected; -1: none yet. A socket that is writable is, or has failed to be (connect(2)).
 */
static int winner_take(struct dialling *dialling)
{
    for (unsigned i = 0; i < dialling->begun; i++) {
        int error = 0, fd = dialling->fds[i].fd;
        socklen_t len = sizeof(error);

        if (fd < 0 || dialling->fds[i].revents == 0)
            continue;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
            error = errno;
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

        if (is_more && pawl_now_ms() >= dialling->next_ms) {
            attempt_begin(dialling);
        } else if (!is_more && dialling->open == 0) {
            wire->why = dialling->why != NULL ? dialling->why : "it has no address";
            return HTTP_FAILED;
        }
        went = http_wire_wait(wire, dialling->fds, dialling->begun, wait_until_ms);
        if (went == HTTP_LATE && pawl_now_ms() < until_ms)
            went = HTTP_READY; /* for the next */
        else if (went == HTTP_READY)
            wire->fd = winner_take(dialling);
    }
    return went;
}

enum http_wait http_dial_any(struct http_wire *wire, const struct http_addresses *addresses, int64_t until_ms)
{
    struct dialling dialling = {.addresses = addresses};
    enum http_wait went = dial_first(wire, &dialling, until_ms);

    for (unsigned i = 0; i < dialling.begun; i++)
        if (dialling.fds[i].fd >= 0)
            close(dialling.fds[i].fd);
    return went;
}

enum http_wait http_dial(struct http_wire *wire, const struct http_place *place, int64_t until_ms)
{
    struct http_addresses addresses = {.count = 0};
    enum http_wait went = HTTP_READY;

    if (!address_literal(place, &addresses))
        went = lookup_run(wire, place, &addresses, until_ms);
    return went == HTTP_READY ? http_dial_any(wire, &addresses, until_ms) : went;
}
