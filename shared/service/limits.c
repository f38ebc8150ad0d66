/* limits.c - how much a caller may use, with --access.
 *
 *   limits_rate      requests_per_s of its identity, in this process            429 rate-limited
 *   limits_fails     what is 401 of one address: after FAILURES_MAX a second    429 rate-limited
 *   service_quota_*  held, waiting, sessions, streams, stored_bytes             429 quota-exceeded
 *
 * waiting and streams are counted here, where they begin and end; the others in the store, by all services
 * (shared/member/quota.c). What keeps or gives back is never held up. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "shared/service/service.h"
#include "shared/text/memory.h"

enum { FAILURES_MAX = 20, FAILURE_BITS = 12, FAILURES = 1 << FAILURE_BITS, LEASE_ID_MAX = 64 };

/* A place in line that is kept for a client that has left: it counts as it did. */
struct kept_place {
    TAILQ_ENTRY(kept_place) entry;
    const char *identity;
    uint64_t until_ms;
    size_t len;
    char lease_id[LEASE_ID_MAX];
};

struct limits {
    /* Of addresses, by their hash: the hash's low half, 24 bits of a second, how many failures in it. Of two
     * that meet in one place the later one counts. */
    _Atomic uint64_t failures[FAILURES];
    pthread_mutex_t lock;
    TAILQ_HEAD(, kept_place) kept;
};

struct limits *limits_new(void)
{
    struct limits *limits = must_have(calloc(1, sizeof(*limits)));

    pthread_mutex_init(&limits->lock, NULL);
    TAILQ_INIT(&limits->kept);
    return limits;
}

void limits_free(struct limits *limits)
{
    struct kept_place *place;

    if (limits == NULL)
        return;
    while ((place = TAILQ_FIRST(&limits->kept)) != NULL) {
        TAILQ_REMOVE(&limits->kept, place, entry);
        free(place);
    }
    pthread_mutex_destroy(&limits->lock);
    free(limits);
}

/* -- 429 rate-limited */

static enum problem limits_refuse(struct http_request *req, const char *policy, int64_t most)
{
    char text[64];

    snprintf(text, sizeof(text), "\"%s\";q=%lld;w=1", policy, (long long)most);
    http_reply_header(req, "Retry-After", BYTES("1"));
    http_reply_header(req, "RateLimit-Policy", bytes_of(text));
    snprintf(text, sizeof(text), "\"%s\";r=0;t=1", policy);
    http_reply_header(req, "RateLimit", bytes_of(text));
    http_note_why(req, policy);
    return PROBLEM_RATE_LIMITED;
}

/* What keeps, gives back, or says how a write in doubt has ended. */
static bool is_exempt(const struct http_route *route)
{
    return route != NULL &&
           (route->methods & HTTP_KEEPS ||
            (route->methods & HTTP_COMMAND && route->needs == ACCESS_NEEDS(ACCESS_NAME, ACCESS_RESOLVE)));
}

enum problem limits_rate(struct http_request *req)
{
    const char *identity = http_identity(req);
    int64_t per_s = access_limits(worker_of(req)->access, identity).requests_per_s;

    if (per_s == 0 || is_exempt(http_route(req)) ||
        access_bucket_take(&access_use(identity)->bucket_ns, loop_now_us(), per_s))
        return PROBLEM_NONE;
    return limits_refuse(req, "requests", per_s);
}

/* -- failures of an address */

/* How many in this second, with so many more. */
static unsigned failures_of(const struct http_request *req, unsigned more)
{
    uint64_t hash = http_client_hash(req), second = loop_now_ms() / 1000 & 0xffffff;
    _Atomic uint64_t *place = &worker_of(req)->service->limits->failures[hash >> (64 - FAILURE_BITS)];
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed), now = hash << 32 | second << 8;

    now |= (before & ~(uint64_t)0xff) == now ? before & 0xff : 0;
    if (more == 0 || (now & 0xff) == 0xff)
        return now & 0xff;
    atomic_store_explicit(place, now + more, memory_order_relaxed); /* one more or less does not matter */
    return (unsigned)(now & 0xff) + more;
}

bool limits_is_failing(const struct http_request *req)
{
    return failures_of(req, 0) >= FAILURES_MAX;
}

bool limits_fails(const struct http_request *req)
{
    return failures_of(req, 1) > FAILURES_MAX;
}

enum problem limits_failing(struct http_request *req)
{
    http_refusal_detail(req,
                        "Nothing was done: too many requests from this address were refused with 401 in this "
                        "second. Look at your credential, and send it again later.");
    return limits_refuse(req, "failures", FAILURES_MAX);
}
