/* address.c - where an upstream is: a socket's path, a literal address, or a name.
 *
 * A name is looked up on another thread, since getaddrinfo(3) may block for as long as the resolver does, and
 * what was found counts for a short while. A lookup cannot be called back: it outlives the pool. */
#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/memory.h"

enum { PORT_CHARS = 16 };

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
        addresses->until_ms = why == NULL ? loop_now_ms() + UPSTREAM_NAME_KEPT_MS : 0;
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

bool addresses_known(struct upstream_pool *pool)
{
    if (loop_now_ms() < pool->addresses.until_ms) {
        return true;
    }
    if (pool->addresses.lookup == NULL) {
        lookup_begin(pool);
    }
    return false;
}
