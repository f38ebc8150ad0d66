/* dial.c - how a connection to an upstream is made: where it is (a socket's path, a literal address, or a
 * name), one address after the other, and TLS.
 *
 * A name is looked up on another thread, since getaddrinfo(3) may block for as long as the resolver does, and
 * what was found counts for a short while. A lookup cannot be called back: it outlives the pool. */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/memory.h"

enum {
    PORT_CHARS = 16,
    NAME_KEPT_MS = 10000,
    KEEPALIVE_S = 5,
    KEEPALIVE_TRIES = 2,  /* a dead host is noticed within 15 s */
    TRUST_KEPT_MS = 60000 /* then the file of authorities is read again, for the next connection */
};

struct upstream_lookup {
    struct loop_job job;
    struct upstream_pool *pool; /* NULL: it is gone */
    const char *why;            /* NULL: found */
    struct upstream_address list[UPSTREAM_ADDRESSES_MAX];
    unsigned count;
    char port[PORT_CHARS];
    char host[];
};

/* NULL, or why not. */
static const char *resolve(const char *host, const char *port, int flags,
                           struct upstream_address list[UPSTREAM_ADDRESSES_MAX], unsigned *count)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);

    *count = 0;
    if (error != 0) {
        return gai_strerror(error);
    }
    for (const struct addrinfo *at = found; at != NULL && *count < UPSTREAM_ADDRESSES_MAX; at = at->ai_next) {
        memcpy(&list[*count].at, at->ai_addr, at->ai_addrlen);
        list[(*count)++].len = at->ai_addrlen;
    }
    freeaddrinfo(found);
    return NULL;
}

static void address_of_path(struct upstream_addresses *addresses, const char *path)
{
    struct sockaddr_un *address = (struct sockaddr_un *)(void *)&addresses->list[0].at;
    size_t len = strlen(path);

    assert(len < sizeof(address->sun_path));
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, len + 1);
    addresses->list[0].len = sizeof(*address);
    addresses->count = 1;
}

void addresses_init(struct upstream_pool *pool, const struct route_upstream *upstream)
{
    struct upstream_addresses *addresses = &pool->addresses;
    char port[PORT_CHARS];

    pool->host = must_have(strdup(upstream->host));
    pool->port = upstream->port;
    snprintf(port, sizeof(port), "%u", upstream->port);
    if (upstream->scheme == ROUTE_UNIX) {
        address_of_path(addresses, upstream->host);
    } else {
        resolve(upstream->host, port, AI_NUMERICHOST, addresses->list, &addresses->count);
    }
    addresses->until_ms = addresses->count > 0 ? UINT64_MAX : 0;
}

void addresses_done(struct upstream_pool *pool)
{
    if (pool->addresses.lookup != NULL) {
        pool->addresses.lookup->pool = NULL;
    }
}

static void lookup_work(struct loop_job *job)
{
    struct upstream_lookup *lookup = container_of(job, struct upstream_lookup, job);

    lookup->why = resolve(lookup->host, lookup->port, 0, lookup->list, &lookup->count);
}

static void lookup_done(struct loop_job *job)
{
    struct upstream_lookup *lookup = container_of(job, struct upstream_lookup, job);
    struct upstream_pool *pool = lookup->pool;
    const char *why = lookup->why;

    if (pool != NULL) {
        struct upstream_addresses *addresses = &pool->addresses;

        memcpy(addresses->list, lookup->list, sizeof(addresses->list));
        addresses->count = lookup->count;
        addresses->until_ms = why == NULL ? loop_now_ms() + NAME_KEPT_MS : 0;
        addresses->lookup = NULL;
        upstream_pool_named(pool, why);
    }
    free(lookup);
}

static void lookup_begin(struct upstream_pool *pool)
{
    size_t size = strlen(pool->host) + 1;
    struct upstream_lookup *lookup = must_have(calloc(1, sizeof(*lookup) + size));

    lookup->pool = pool;
    lookup->job.work = lookup_work;
    lookup->job.done = lookup_done;
    snprintf(lookup->port, sizeof(lookup->port), "%u", pool->port);
    memcpy(lookup->host, pool->host, size);
    pool->addresses.lookup = lookup;
    loop_job_run(pool->loop, &lookup->job);
}

static bool addresses_known(struct upstream_pool *pool)
{
    if (loop_now_ms() < pool->addresses.until_ms) {
        return true;
    }
    if (pool->addresses.lookup == NULL) {
        lookup_begin(pool);
    }
    return false;
}

/* -- the connection: one address after the other, and TLS over it */

void uplink_dial(struct upstream_link *link)
{
    link->connect_by_ms = loop_now_ms() + UPSTREAM_CONNECT_MS;
    link->keep_by_ms = loop_now_ms() + UPSTREAM_KEPT_MS;
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
    link->tls = tls_open(trust, link->fd, link->pool->host);
    if (link->tls == NULL) {
        uplink_over(link, UPSTREAM_NOT_SENT,
                    "TLS cannot be set up here: no memory, or wrong settings of GnuTLS");
        return;
    }
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

static void connection_stands(struct upstream_link *link)
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
            connection_stands(link);
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
        connection_stands(link);
    } else {
        uplink_connect(link, strerrordesc_np(error));
    }
}
