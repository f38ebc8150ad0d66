/* dial.c - how a connection to an upstream is made: one address after the other, and TLS over it. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/memory.h"

enum {
    KEEPALIVE_S = 5,
    KEEPALIVE_TRIES = 2,  /* a dead host is noticed within 15 s */
    TRUST_KEPT_MS = 60000 /* then the file of authorities is read again, for the next connection */
};

void uplink_dial(struct upstream_link *link)
{
    link->connect_by_ms = loop_now_ms() + UPSTREAM_CONNECT_MS;
    if (addresses_known(link->pool)) {
        uplink_connect(link, NULL);
    } else {
        uplink_enter(link, UPLINK_NAMING);
    }
}

/* None of these can fail on a socket that is one; and if it did, only dead hosts would be noticed later. */
static void tune_socket(int fd, unsigned user_timeout_ms)
{
    const int on = 1, idle_s = KEEPALIVE_S, tries = KEEPALIVE_TRIES;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof(user_timeout_ms));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* 0, EINPROGRESS, or why not: then there is no socket. */
static int socket_connect(struct upstream_link *link, const struct upstream_address *address)
{
    int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;

    if (fd < 0) {
        return errno;
    }
    if (address->at.ss_family != AF_UNIX) {
        tune_socket(fd, link->pool->user_timeout_ms);
    }
    if (connect(fd, (const struct sockaddr *)&address->at, address->len) != 0) {
        error = errno == EINTR ? EINPROGRESS : errno; /* connect(2): it goes on all the same */
    }
    if (error != 0 && error != EINPROGRESS) {
        close(fd);
        return error;
    }
    link->fd = fd;
    link->watched = error == 0 ? LOOP_READ : LOOP_WRITE;
    loop_watch_init(link->pool->loop, &link->watch, fd, uplink_ready, link->watched);
    return error;
}

/* NULL: it cannot be read, and why. */
static struct tls_trust *trust_now(struct upstream_pool *pool, const char **why)
{
    uint64_t now_ms = loop_now_ms();

    if (pool->trust == NULL || now_ms >= pool->trust_until_ms) {
        tls_trust_free(pool->trust);
        pool->trust = tls_trust_new(pool->ca_file, why);
        pool->trust_until_ms = now_ms + TRUST_KEPT_MS;
    }
    return pool->trust;
}

static void handshake_begin(struct upstream_link *link)
{
    const char *why = NULL;
    struct tls_trust *trust = trust_now(link->pool, &why);

    uplink_enter(link, UPLINK_HANDSHAKE);
    if (trust == NULL) {
        uplink_over(link, UPSTREAM_NOT_SENT, why != NULL ? why : strerrordesc_np(ENOMEM));
        return;
    }
    link->tls = must_have(tls_open(trust, link->fd, link->pool->host));
    uplink_handshake(link);
}

void uplink_handshake(struct upstream_link *link)
{
    switch (tls_handshake(link->tls)) {
    case TLS_WAITS: return;
    case TLS_FAILED: uplink_over(link, UPSTREAM_NOT_SENT, uplink_why(link)); return;
    case TLS_DONE:
        uplink_enter(link, UPLINK_SENDING);
        uplink_flush(link);
        return;
    }
}

static void uplink_stands(struct upstream_link *link)
{
    if (link->pool->is_https) {
        handshake_begin(link);
    } else {
        uplink_enter(link, UPLINK_SENDING);
        uplink_flush(link);
    }
}

/* Those that are left share the time that is left. */
void uplink_connect(struct upstream_link *link, const char *why)
{
    const struct upstream_addresses *addresses = &link->pool->addresses;

    while (link->address < addresses->count) {
        uint64_t now_ms = loop_now_ms(), left_ms;
        unsigned left = addresses->count - link->address;
        int error;

        left_ms = link->connect_by_ms > now_ms ? link->connect_by_ms - now_ms : 0;
        uplink_enter(link, UPLINK_CONNECTING);
        error = socket_connect(link, &addresses->list[link->address++]);
        if (error == 0) {
            uplink_stands(link);
            return;
        }
        if (error == EINPROGRESS) {
            alarm_set(link->pool->clock, &link->alarm, now_ms + left_ms / left);
            return;
        }
        why = error == EAGAIN ? "its queue of connections is full" : strerrordesc_np(error); /* unix(7) */
    }
    uplink_over(link, UPSTREAM_NOT_SENT, why != NULL ? why : "it has no address");
}

/* A socket that is writable has been connected, or has failed to (connect(2), EINPROGRESS). */
void uplink_connected(struct upstream_link *link)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error == 0) {
        uplink_stands(link);
    } else {
        uplink_connect(link, strerrordesc_np(error));
    }
}
