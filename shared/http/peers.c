/* peers.c - how many connections each address has, in the whole process, so that nobody has them all.
 *
 * An IPv6 client has a /64 to itself, so that counts as one address. What comes through a trusted proxy is
 * the client's that it names last in X-Forwarded-For: the proxy's own connections are not counted, but each
 * request on one counts as a connection of that client, for as long as it lasts. Threads share nothing else;
 * this is looked at when a connection begins and ends (and, behind a proxy, a request), under a lock. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/http_internal.h"
#include "shared/token/random.h"

enum { BUCKETS = 4096, BUCKET_BITS = 12, TRUSTED_MAX = 64, MAPPED_BITS = 96, SECRET_CHARS = 16 };

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

    if (address->sa_family == AF_INET6) {
        found = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    } else if (address->sa_family == AF_INET) {
        found = address_mapped(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    }
    return found;
}

const char *http_peer_text(const struct in6_addr *address, char text[HTTP_ADDRESS_SIZE])
{
    if (IN6_IS_ADDR_UNSPECIFIED(address)) {
        return "";
    }
    return IN6_IS_ADDR_V4MAPPED(address) /* one that came to [::] by IPv4 is shown as such, too */
               ? inet_ntop(AF_INET, &address->s6_addr[12], text, HTTP_ADDRESS_SIZE)
               : inet_ntop(AF_INET6, address, text, HTTP_ADDRESS_SIZE);
}

static bool address_parse(const char *text, struct in6_addr *address)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) == 1) {
        *address = address_mapped(&v4);
        return true;
    }
    return inet_pton(AF_INET6, text, address) == 1;
}

/* "1.2.3.4", "1.2.3.4:5", "::1", "[::1]", "[::1]:5" */
static bool address_read(struct bytes text, struct in6_addr *address)
{
    char host[INET6_ADDRSTRLEN];
    const char *end = memchr(text.at, text.len > 0 && text.at[0] == '[' ? ']' : ':', text.len);

    if (end != NULL && text.at[0] != '[' &&
        memchr(end + 1, ':', text.len - (size_t)(end + 1 - text.at)) != NULL) {
        end = NULL; /* an address of IPv6 */
    }
    if (end != NULL) {
        text.len = (size_t)(end - text.at);
    }
    if (text.len > 0 && text.at[0] == '[') {
        text = (struct bytes){text.at + 1, text.len - 1};
    }
    if (text.len >= sizeof(host)) {
        return false;
    }
    memcpy(host, text.at, text.len);
    host[text.len] = '\0';
    return address_parse(host, address);
}

static bool network_read(struct bytes text, struct network *network)
{
    const char *slash = memchr(text.at, '/', text.len);
    struct bytes host = {text.at, slash != NULL ? (size_t)(slash - text.at) : text.len};
    bool is_v4 = memchr(host.at, ':', host.len) == NULL;
    unsigned bits = is_v4 ? 32 : 128, given = 0;

    if (slash != NULL) {
        size_t digits = text.len - host.len - 1;

        if (digits == 0 || digits > 3 || strspn(slash + 1, "0123456789") < digits) {
            return false;
        }
        given = (unsigned)strtoul(slash + 1, NULL, 10);
        if (given > bits) {
            return false;
        }
        bits = given;
    }
    network->bits = bits + (is_v4 ? MAPPED_BITS : 0);
    return address_read(host, &network->address);
}

static bool network_has(const struct network *network, const struct in6_addr *address)
{
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    unsigned char differs = rest == 0 ? 0 : network->address.s6_addr[whole] ^ address->s6_addr[whole];

    return memcmp(&network->address, address, whole) == 0 && differs >> (8 - rest) == 0;
}

bool http_peers_trust(const struct http_peers *peers, const struct in6_addr *address)
{
    for (unsigned i = 0; i < peers->trusted_count; i++) {
        if (network_has(&peers->trusted[i], address)) {
            return true;
        }
    }
    return false;
}

struct http_peers *http_peers_new(unsigned per_address, const char *trusted, const char **why)
{
    struct http_peers *peers = http_must_alloc(sizeof(*peers));
    char secret[SECRET_CHARS + 1];

    memset(peers, 0, sizeof(*peers));
    peers->per_address = per_address;
    random_text(secret, SECRET_CHARS);
    memcpy(peers->secret, secret, sizeof(peers->secret));
    for (; trusted != NULL && *trusted != '\0'; trusted += trusted[0] == ',') {
        struct bytes one = {trusted, strcspn(trusted, ",")};

        if (peers->trusted_count == TRUSTED_MAX ||
            !network_read(one, &peers->trusted[peers->trusted_count])) {
            *why = "--trusted-proxy takes at most 64 addresses or networks like 10.0.0.0/8 or 2001:db8::/32";
            free(peers);
            return NULL;
        }
        peers->trusted_count++;
        trusted += one.len;
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

/* Where the entry of this address is linked in, or would be. */
static struct http_peer **peer_place(struct http_peers *peers, struct in6_addr *key)
{
    uint64_t halves[2];
    struct http_peer **at;

    if (!IN6_IS_ADDR_V4MAPPED(key)) {
        memset(&key->s6_addr[8], 0, 8);
    }
    memcpy(halves, key, sizeof(halves));
    at = &peers->buckets[(halves[0] * (peers->secret[0] | 1) + halves[1] * (peers->secret[1] | 1)) >>
                         (64 - BUCKET_BITS)];
    while (*at != NULL && memcmp(&(*at)->key, key, sizeof(*key)) != 0) {
        at = &(*at)->next;
    }
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
        *at = http_must_alloc(sizeof(**at));
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
        if (name.len == 15 && strncasecmp(name.at, "X-Forwarded-For", name.len) == 0) {
            last = value;
        }
    }
    for (const char *comma; last.len > 0 && (comma = memchr(last.at, ',', last.len)) != NULL;) {
        size_t skip = (size_t)(comma - last.at) + 1;

        last = (struct bytes){last.at + skip, last.len - skip};
    }
    while (last.len > 0 && (last.at[0] == ' ' || last.at[0] == '\t')) {
        last = (struct bytes){last.at + 1, last.len - 1};
    }
    return last.len > 0 && address_read(last, address);
}

bool http_peer_forwarded(struct http_request *req)
{
    struct http_conn *conn = req->conn;
    struct http_peers *peers = req->server->options.peers;

    if (conn->client == NULL) {
        return true;
    }
    if (!forwarded_last(req, conn->client)) {
        *conn->client = in6addr_any; /* the proxy itself asks */
        return true;
    }
    if (http_peers_full(peers, conn->client)) {
        return false;
    }
    conn->peer = http_peer_enter(peers, conn->client);
    return true;
}

void http_peer_over(struct http_conn *conn)
{
    if (conn->peer != NULL) {
        http_peer_leave(conn->server->options.peers, conn->peer);
        conn->peer = NULL;
    }
}
