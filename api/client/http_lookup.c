/* http_lookup.c - the addresses of a name.
 *
 * A lookup that is given up goes on by itself: it belongs to the asker and to its thread, and the last of the
 * two to leave frees it. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/client/http_internal.h"

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

    if (error != 0) {
        return gai_strerror(error);
    }
    for (const struct addrinfo *at = list; at != NULL && found->count < HTTP_ADDRESSES_MAX;
         at = at->ai_next) {
        memcpy(&found->list[found->count].at, at->ai_addr, at->ai_addrlen);
        found->list[found->count++].len = at->ai_addrlen;
    }
    freeaddrinfo(list);
    return NULL;
}

bool http_address_literal(const struct http_place *place, struct http_addresses *found)
{
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

/* The program's signals are not for this thread. */
static bool thread_begin(struct lookup *lookup)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    bool begun;

    if (pthread_attr_init(&attr) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    begun = pthread_create(&thread, &attr, lookup_work, lookup) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return begun;
}

static struct lookup *lookup_begin(const struct http_place *place)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));

    if (lookup == NULL) {
        return NULL;
    }
    memcpy(lookup->host, place->host, sizeof(lookup->host));
    memcpy(lookup->port, place->port, sizeof(lookup->port));
    lookup->ready = eventfd(0, EFD_CLOEXEC);
    atomic_init(&lookup->owners, 2);
    atomic_init(&lookup->is_done, false);
    if (lookup->ready < 0 || !thread_begin(lookup)) {
        if (lookup->ready >= 0) {
            close(lookup->ready);
        }
        free(lookup);
        return NULL;
    }
    return lookup;
}

enum http_wait http_lookup(struct http_wire *wire, const struct http_place *place,
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
    if (went == HTTP_READY &&
        !atomic_load(&lookup->is_done)) { /* never: it stands before the eventfd's write */
        went = HTTP_FAILED;
    } else if (went == HTTP_READY && lookup->why != NULL) {
        wire->why = lookup->why;
        went = HTTP_FAILED;
    } else if (went == HTTP_READY) {
        *found = lookup->found;
    }
    lookup_leave(lookup);
    return went;
}
