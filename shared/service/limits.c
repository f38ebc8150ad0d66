/* limits.c - how much a caller may use, with --access.
 *
 *   limits_rate      requests_per_s of its identity, in this process            429 rate-limited
 *   limits_fails     what is 401 of one address: after FAILURES_MAX a second    429 rate-limited
 *   limits_forges    its JWTs that were verified in vain: as many               no other is verified
 *   service_quota_*  held, waiting, sessions, streams, stored_bytes             429 quota-exceeded
 *
 * waiting and streams are counted here, where they begin and end; the others in the store, by all services
 * (shared/member/quota.c). What keeps or gives back is never held up. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "shared/service/service.h"
#include "shared/text/memory.h"
#include "shared/token/name.h"

enum { FAILURES_MAX = 20, FAILURE_BITS = 12, FAILURES = 1 << FAILURE_BITS, LEASE_ID_MAX = 64 };
enum failure { FAILED, FAILED_COSTLY, FAILURE_KINDS };

/* A place in line that is kept for a client that has left: it counts as it did. */
struct kept_place {
    LIST_ENTRY(kept_place) entry; /* of its identity */
    uint64_t until_ms;
    size_t lease_len, lease_id_len;
    char lease[NAME_MAX_BYTES], lease_id[LEASE_ID_MAX];
};

struct limits {
    /* Of addresses, by their hash: the hash's low half, 24 bits of a second, how many failures in it. Of two
     * that meet in one place the later one counts. */
    _Atomic uint64_t failures[FAILURE_KINDS][FAILURES];
    pthread_mutex_t lock; /* of all kept places */
};

struct limits *limits_new(void)
{
    struct limits *limits = must_have(calloc(1, sizeof(*limits)));

    pthread_mutex_init(&limits->lock, NULL);
    return limits;
}

void limits_free(struct limits *limits)
{
    if (limits == NULL)
        return;
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

/* What keeps, gives back, or says how a write in doubt has ended; and what everybody gets. */
static bool is_exempt(const struct http_route *route)
{
    return route != NULL &&
           (route->methods & HTTP_KEEPS || route->needs == ACCESS_OPEN ||
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
static unsigned failures_of(const struct http_request *req, enum failure kind, unsigned more)
{
    uint64_t hash = http_client_hash(req), second = loop_now_ms() / 1000 & 0xffffff;
    _Atomic uint64_t *place = &worker_of(req)->service->limits->failures[kind][hash >> (64 - FAILURE_BITS)];
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed), now = hash << 32 | second << 8;

    now |= (before & ~(uint64_t)0xff) == now ? before & 0xff : 0;
    if (more == 0 || (now & 0xff) == 0xff)
        return now & 0xff;
    atomic_store_explicit(place, now + more, memory_order_relaxed); /* one more or less does not matter */
    return (unsigned)(now & 0xff) + more;
}

bool limits_is_forging(const struct http_request *req)
{
    return failures_of(req, FAILED_COSTLY, 0) >= FAILURES_MAX;
}

void limits_forges(const struct http_request *req)
{
    failures_of(req, FAILED_COSTLY, 1);
}

bool limits_fails(const struct http_request *req)
{
    return failures_of(req, FAILED, 1) > FAILURES_MAX;
}

enum problem limits_failing(struct http_request *req)
{
    http_refusal_detail(req,
                        "Nothing was done: too many requests from this address were refused with 401 in this "
                        "second. Look at your credential, and send it again later.");
    return limits_refuse(req, "failures", FAILURES_MAX);
}

/* -- 429 quota-exceeded */

static int64_t quota_limit(const struct worker *worker, const char *identity, enum access_quota quota)
{
    struct access_limits limits = {0};

    if (worker->access != NULL && identity != NULL)
        limits = access_limits(worker->access, identity);
    return (&limits.held)[quota];
}

int64_t service_quota_room(const struct http_request *req, enum access_quota quota)
{
    const char *identity = http_identity(req);
    int64_t limit = quota_limit(worker_of(req), identity, quota);

    return limit == 0 ? INT64_MAX : limit - atomic_load(&access_use(identity)->used[quota]);
}

void service_quota_write(const struct http_request *req, struct json_out *json, enum access_quota quota)
{
    const char *identity = http_identity(req);

    json_text(json, "quota", bytes_of(access_quota_name(quota)));
    json_int(json, "limit", quota_limit(worker_of(req), identity, quota));
    json_int(json, "used", identity != NULL ? atomic_load(&access_use(identity)->used[quota]) : 0);
}

enum step service_quota_refuse(struct http_request *req, enum access_quota quota)
{
    service_quota_write(req, http_problem_begin(req, PROBLEM_QUOTA_EXCEEDED, NULL), quota);
    return http_problem_end(req, 0);
}

bool service_quota_take(const struct worker *worker, const char *identity, enum access_quota quota)
{
    int64_t limit = quota_limit(worker, identity, quota);

    if (identity == NULL)
        return true;
    if (atomic_fetch_add(&access_use(identity)->used[quota], 1) < limit || limit == 0)
        return true;
    service_quota_give(identity, quota);
    return false;
}

void service_quota_count(const char *identity, enum access_quota quota)
{
    atomic_fetch_add(&access_use(identity)->used[quota], 1);
}

void service_quota_give(const char *identity, enum access_quota quota)
{
    if (identity != NULL)
        atomic_fetch_sub(&access_use(identity)->used[quota], 1);
}

/* -- places in line that outlive their connections */

/* Takes out what is kept no more, and the place of this lease_id in this line: whether there was one, and for
 * how long it would still be kept. With the lock. No identity has more of them than it may have waiting. */
static bool kept_take(const char *identity, struct bytes lease, struct bytes lease_id, uint64_t *kept_ms)
{
    uint64_t now_ms = loop_now_ms();
    struct kept_place *place = identity != NULL ? LIST_FIRST(&access_use(identity)->kept) : NULL, *next;
    bool is_there = false;

    for (; place != NULL; place = next) {
        bool is_it = bytes_equal((struct bytes){place->lease_id, place->lease_id_len}, lease_id) &&
                     bytes_equal((struct bytes){place->lease, place->lease_len}, lease);

        next = LIST_NEXT(place, entry);
        is_there = is_there || is_it;
        if (!is_it && place->until_ms > now_ms)
            continue;
        if (is_it)
            *kept_ms = place->until_ms > now_ms ? place->until_ms - now_ms : 0;
        if (!is_it)
            service_quota_give(identity, ACCESS_WAITING);
        LIST_REMOVE(place, entry);
        free(place);
    }
    return is_there;
}

bool service_waiting_take(const struct worker *worker, const char *identity, struct bytes lease,
                          struct bytes lease_id, uint64_t *kept_ms)
{
    struct limits *limits = worker->service->limits;
    bool is_there;

    *kept_ms = 0;
    pthread_mutex_lock(&limits->lock);
    is_there = kept_take(identity, lease, lease_id, kept_ms);
    pthread_mutex_unlock(&limits->lock);
    return is_there || service_quota_take(worker, identity, ACCESS_WAITING);
}

void service_waiting_give(const struct worker *worker, const char *identity, struct bytes lease,
                          struct bytes lease_id, uint64_t kept_ms)
{
    struct limits *limits = worker->service->limits;
    struct kept_place *place;

    if (kept_ms == 0 || quota_limit(worker, identity, ACCESS_WAITING) == 0) {
        service_quota_give(identity, ACCESS_WAITING);
        return;
    }
    place = must_have(calloc(1, sizeof(*place)));
    place->until_ms = loop_now_ms() + kept_ms;
    place->lease_len = lease.len < NAME_MAX_BYTES ? lease.len : NAME_MAX_BYTES;
    memcpy(place->lease, lease.at, place->lease_len);
    place->lease_id_len = lease_id.len < LEASE_ID_MAX ? lease_id.len : LEASE_ID_MAX;
    memcpy(place->lease_id, lease_id.at, place->lease_id_len);
    pthread_mutex_lock(&limits->lock);
    if (kept_take(identity, lease, lease_id, &kept_ms)) /* it was superseded meanwhile, and counts once */
        service_quota_give(identity, ACCESS_WAITING);
    LIST_INSERT_HEAD(&access_use(identity)->kept, place, entry);
    pthread_mutex_unlock(&limits->lock);
}
