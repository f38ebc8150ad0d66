/* listen.c - listening sockets, and what their address says; how many connections each address has. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

enum { HOST_MAX = 64, PORT_DIGITS_MAX = 5, PORT_MAX = 65535, BACKLOG = 4096 };

/* A dead peer is known after 5 + 3 * 3 seconds. UNACKED_MS, where it is set, takes the place of the number of
 * probes, and is looked at when a probe is due (Linux, net/ipv4/tcp_timer.c, tcp_keepalive_timer()): that is
 * after 14 seconds too. (Tried with a peer whose packets were lost: 14.5 s where nothing was to be sent,
 * else 13.5.) */
enum { KEEPALIVE_IDLE_S = 5, KEEPALIVE_INTERVAL_S = 3, KEEPALIVE_PROBES = 3, UNACKED_MS = 13000 };

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The length of the socket address, or 0. */
static socklen_t address_read(const char *text, union socket_address *address)
{
    char host[HOST_MAX + 1] = "";
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    int64_t port = colon != NULL ? bytes_number(bytes_of(colon + 1), PORT_DIGITS_MAX) : -1;

    memset(address, 0, sizeof(*address));
    if (port < 0 || port > PORT_MAX || len == 0 || len > HOST_MAX)
        return 0;
    if (text[0] == '[' && text[len - 1] == ']') {
        memcpy(host, text + 1, len - 2);
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1 ? sizeof(address->v6) : 0;
    }
    memcpy(host, text, len);
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 ? sizeof(address->v4) : 0;
}

bool http_address_is_loopback(const char *text)
{
    union socket_address address;

    if (address_read(text, &address) == 0)
        return false;
    if (address.any.sa_family == AF_INET)
        return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr) && address.v6.sin6_addr.s6_addr[12] == 127);
}

static int option_set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value));
}

/* On Linux accepted sockets inherit these, so that they cost nothing for each connection (tried; a test
 * looks). */
static int options_set(int fd)
{
    int bad = option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);

    bad |= option_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    bad |= option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    bad |= option_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    bad |= option_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    bad |= option_set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    return bad;
}

/* Keep-alive sends no probe while something is still to be sent: only retransmissions end that, after 15
 * minutes (tcp(7), tcp_retries2), or this option. It counts for a peer that lives and does not read, too
 * (tried). */
void http_socket_hurry(int fd)
{
    (void)option_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS);
}

/* strerror() shares its buffer between threads; these are the ones that an operator meets. */
static const char *why_not(int error)
{
    switch (error) {
    case EADDRINUSE: return "the address is in use";
    case EADDRNOTAVAIL: return "this machine does not have the address";
    case EACCES: return "permission denied";
    case EMFILE:
    case ENFILE: return "too many open files";
    case EAFNOSUPPORT: return "this machine does not have this kind of address";
    default: return "the system refused";
    }
}

/* share_port: 1 sets SO_REUSEPORT, 0 does not. */
static int listen_on(const char *text, int share_port, unsigned *port, const char **why)
{
    union socket_address address;
    socklen_t len = address_read(text, &address);
    int fd;

    if (len == 0) {
        *why = "an address is written like 127.0.0.1:8700 or [::1]:8700";
        errno = EINVAL;
        return -1;
    }
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *why = why_not(errno);
        return -1;
    }
    if (options_set(fd) != 0 || option_set(fd, SOL_SOCKET, SO_REUSEPORT, share_port) != 0 ||
        bind(fd, &address.any, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &address.any, &len) != 0) {
        *why = why_not(errno);
        close(fd);
        return -1;
    }
    *port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    return fd;
}

int http_listen(const char *text, unsigned *port, const char **why)
{
    return listen_on(text, 1, port, why);
}

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool http_listen_given(int fd, char address[HTTP_LISTEN_SIZE], unsigned *port, const char **why)
{
    union socket_address bound = {0};
    socklen_t len = sizeof(bound);
    char host[INET6_ADDRSTRLEN] = "";

    if (option_of(fd, SO_TYPE) != SOCK_STREAM || option_of(fd, SO_ACCEPTCONN) != 1 ||
        getsockname(fd, &bound.any, &len) != 0 ||
        (bound.any.sa_family != AF_INET && bound.any.sa_family != AF_INET6)) {
        *why = "it is not a listening TCP socket";
        return false;
    }
    if (options_set(fd) != 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        *why = why_not(errno);
        return false;
    }
    bool six = bound.any.sa_family == AF_INET6;
    *port = ntohs(six ? bound.v6.sin6_port : bound.v4.sin_port);
    inet_ntop(bound.any.sa_family, six ? (void *)&bound.v6.sin6_addr : (void *)&bound.v4.sin_addr, host,
              sizeof(host));
    snprintf(address, HTTP_LISTEN_SIZE, six ? "[%s]:%u" : "%s:%u", host, *port);
    return true;
}

bool http_address_is_free(const char *text, const char **why)
{
    unsigned port = 0;
    int fd = listen_on(text, 0, &port, why);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* == how many connections each address has, in the whole process, so that nobody has them all.
 *
 * An IPv6 client has a /64 to itself, so that counts as one address. What comes through a trusted proxy is
 * the client's that it names last in X-Forwarded-For: the proxy's own connections are not counted, but each
 * request on one counts as a connection of that client, for as long as it lasts. Threads share nothing else;
 * this is looked at when a connection begins and ends (and, behind a proxy, a request), under a lock. */

enum { BUCKETS = 4096, BUCKET_BITS = 12, TRUSTED_MAX = 64, MAPPED_BITS = 96 };

struct http_peer {
    struct http_peer *next;
    struct in6_addr key;
    unsigned count;
};

struct network {
    struct in6_addr address;
    unsigned bits;
};

struct http_peers {
    pthread_mutex_t lock;
    unsigned per_address;
    uint64_t secret[2]; /* who chooses addresses does not choose their bucket */
    struct network trusted[TRUSTED_MAX];
    unsigned trusted_count;
    struct http_peer *buckets[BUCKETS];
};

/* -- addresses: those of IPv4 as ::ffff:a.b.c.d */

static struct in6_addr address_mapped(const struct in_addr *v4)
{
    struct in6_addr mapped = IN6ADDR_ANY_INIT;

    memset(&mapped.s6_addr[10], 0xff, 2);
    memcpy(&mapped.s6_addr[12], v4, sizeof(*v4));
    return mapped;
}

struct in6_addr http_peer_address(const struct sockaddr *address)
{
    struct in6_addr found = IN6ADDR_ANY_INIT;

    if (address->sa_family == AF_INET6)
        found = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    else if (address->sa_family == AF_INET)
        found = address_mapped(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    return found;
}

const char *http_peer_text(const struct in6_addr *address, char text[HTTP_ADDRESS_SIZE])
{
    if (IN6_IS_ADDR_UNSPECIFIED(address))
        return "";
    return IN6_IS_ADDR_V4MAPPED(address) /* one that came to [::] by IPv4 is shown as such, too */
               ? inet_ntop(AF_INET, &address->s6_addr[12], text, HTTP_ADDRESS_SIZE)
               : inet_ntop(AF_INET6, address, text, HTTP_ADDRESS_SIZE);
}

/* "1.2.3.4", "1.2.3.4:5", "::1", "[::1]", "[::1]:5" */
static bool client_read(struct bytes text, struct in6_addr *address)
{
    char host[INET6_ADDRSTRLEN];
    struct in_addr v4;
    const char *end = memchr(text.at, text.len > 0 && text.at[0] == '[' ? ']' : ':', text.len);

    if (end != NULL && text.at[0] != '[' &&
        memchr(end + 1, ':', text.len - (size_t)(end + 1 - text.at)) != NULL)
        end = NULL; /* an address of IPv6 */
    if (end != NULL)
        text.len = (size_t)(end - text.at);
    if (text.len > 0 && text.at[0] == '[')
        text = (struct bytes){text.at + 1, text.len - 1};
    if (text.len >= sizeof(host))
        return false;
    memcpy(host, text.at, text.len);
    host[text.len] = '\0';
    if (inet_pton(AF_INET, host, &v4) != 1)
        return inet_pton(AF_INET6, host, address) == 1;
    *address = address_mapped(&v4);
    return true;
}

static bool network_read(struct bytes text, struct network *network)
{
    struct bytes host = bytes_cut(&text, '/');
    bool is_v4 = memchr(host.at, ':', host.len) == NULL;
    int64_t most = is_v4 ? 32 : 128, bits = text.at != NULL ? bytes_number(text, 3) : most;

    if (bits < 0 || bits > most)
        return false;
    network->bits = (unsigned)bits + (is_v4 ? MAPPED_BITS : 0);
    return client_read(host, &network->address);
}

static bool network_has(const struct network *network, const struct in6_addr *address)
{
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    unsigned char differs = rest == 0 ? 0 : network->address.s6_addr[whole] ^ address->s6_addr[whole];

    return memcmp(&network->address, address, whole) == 0 && differs >> (8 - rest) == 0;
}

bool http_peers_trust(const struct http_peers *peers, const struct in6_addr *address)
{
    for (unsigned i = 0; i < peers->trusted_count; i++)
        if (network_has(&peers->trusted[i], address))
            return true;
    return false;
}

struct http_peers *http_peers_new(unsigned per_address, const char *trusted, const char **why)
{
    struct http_peers *peers = must_have(malloc(sizeof(*peers)));

    memset(peers, 0, sizeof(*peers));
    peers->per_address = per_address;
    if (getentropy(peers->secret, sizeof(peers->secret)) != 0)
        abort();
    for (struct bytes left = bytes_of(trusted); left.len > 0;) {
        struct bytes one = bytes_cut(&left, ',');

        if (peers->trusted_count == TRUSTED_MAX ||
            !network_read(one, &peers->trusted[peers->trusted_count])) {
            *why = "--trusted-proxy takes at most 64 addresses or networks like 10.0.0.0/8 or 2001:db8::/32";
            free(peers);
            return NULL;
        }
        peers->trusted_count++;
    }
    pthread_mutex_init(&peers->lock, NULL);
    return peers;
}

void http_peers_free(struct http_peers *peers)
{
    if (peers != NULL) {
        pthread_mutex_destroy(&peers->lock);
        free(peers);
    }
}

/* -- counting */

uint64_t http_peers_hash(const struct http_peers *peers, struct in6_addr *key)
{
    uint64_t halves[2];

    if (!IN6_IS_ADDR_V4MAPPED(key))
        memset(&key->s6_addr[8], 0, 8);
    memcpy(halves, key, sizeof(halves));
    halves[0] = halves[0] * (peers->secret[0] | 1) + halves[1] * (peers->secret[1] | 1);
    return (halves[0] ^ halves[0] >> 32) * (peers->secret[0] | 1); /* what is in the high half is in both */
}

/* Where the entry of this address is linked in, or would be. */
static struct http_peer **peer_place(struct http_peers *peers, struct in6_addr *key)
{
    struct http_peer **at = &peers->buckets[http_peers_hash(peers, key) >> (64 - BUCKET_BITS)];

    while (*at != NULL && memcmp(&(*at)->key, key, sizeof(*key)) != 0)
        at = &(*at)->next;
    return at;
}

bool http_peers_full(struct http_peers *peers, const struct in6_addr *address)
{
    struct in6_addr key = *address;
    const struct http_peer *peer;
    bool full;

    pthread_mutex_lock(&peers->lock);
    peer = *peer_place(peers, &key);
    full = peer != NULL && peer->count >= peers->per_address;
    pthread_mutex_unlock(&peers->lock);
    return full;
}

struct http_peer *http_peer_enter(struct http_peers *peers, const struct in6_addr *address)
{
    struct in6_addr key = *address;
    struct http_peer **at, *peer;

    pthread_mutex_lock(&peers->lock);
    at = peer_place(peers, &key);
    if (*at == NULL) {
        *at = must_have(malloc(sizeof(**at)));
        **at = (struct http_peer){.key = key};
    }
    peer = *at; /* at leads through another peer, which may be freed as soon as the lock is */
    peer->count++;
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void http_peer_leave(struct http_peers *peers, struct http_peer *peer)
{
    pthread_mutex_lock(&peers->lock);
    if (--peer->count == 0) {
        struct http_peer **at = peer_place(peers, &peer->key);

        assert(*at == peer);
        *at = peer->next;
        free(peer);
    }
    pthread_mutex_unlock(&peers->lock);
}

/* -- what a trusted proxy says */

/* Nothing is written unless it names one. */
static bool forwarded_last(const struct http_request *req, struct in6_addr *address)
{
    struct bytes name, value, last = {NULL, 0};

    for (unsigned i = 0; i < http_field_count(req); i++) {
        http_field_at(req, i, &name, &value);
        if (bytes_equal_nocase(name, BYTES("X-Forwarded-For")))
            last = value;
    }
    for (struct bytes left = last; left.at != NULL;)
        last = bytes_cut(&left, ',');
    last = bytes_trim(last);
    return last.len > 0 && client_read(last, address);
}

bool http_peer_forwarded(struct http_request *req)
{
    struct http_conn *conn = req->conn;
    struct http_peers *peers = req->server->options.peers;

    if (conn->client == NULL)
        return true;
    if (!forwarded_last(req, conn->client)) {
        *conn->client = in6addr_any; /* the proxy itself asks */
        return true;
    }
    if (http_peers_full(peers, conn->client))
        return false;
    conn->peer = http_peer_enter(peers, conn->client);
    return true;
}

void http_peer_over(struct http_conn *conn)
{
    if (conn->peer != NULL) {
        http_peer_leave(conn->server->options.peers, conn->peer);
        conn->peer = NULL;
    }
    if (conn->client != NULL)
        *conn->client = in6addr_any; /* the next one's is not known yet */
}
