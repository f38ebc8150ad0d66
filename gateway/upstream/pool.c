/* pool.c - the connections to one upstream: kept ones, and those that have something to do. */
#include <assert.h>
#include <stdlib.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/memory.h"

static void pool_turn_end(struct loop_hook *hook);

struct upstream_pool *upstream_pool_new(struct loop *loop, const struct route_upstream *upstream,
                                        unsigned user_timeout_ms)
{
    struct upstream_pool *pool = must_have(calloc(1, sizeof(*pool)));

    pool->loop = loop;
    pool->user_timeout_ms = user_timeout_ms;
    pool->in = must_have(malloc(UPLINK_IN_SIZE));
    pool->clock = alarm_clock_new(loop);
    ring_init(&pool->idle);
    ring_init(&pool->naming);
    ring_init(&pool->due);
    pool->is_https = upstream->scheme == ROUTE_HTTPS;
    pool->ca_file = upstream->ca_file != NULL ? must_have(strdup(upstream->ca_file)) : NULL;
    addresses_init(pool, upstream);
    loop_hook_add(loop, &pool->turn_end, pool_turn_end);
    return pool;
}

static void pool_free_now(struct upstream_pool *pool)
{
    upstream_pool_drain(pool);
    assert(ring_is_empty(&pool->due) && ring_is_empty(&pool->naming));
    loop_hook_remove(pool->loop, &pool->turn_end);
    addresses_done(pool);
    tls_trust_free(pool->trust);
    alarm_clock_free(pool->clock);
    free(pool->ca_file);
    free(pool->host);
    free(pool->in);
    free(pool);
}

void upstream_pool_free(struct upstream_pool *pool)
{
    assert(pool->calls == 0);
    pool->freed = true;
    if (pool->inside == 0) {
        pool_free_now(pool);
    }
}

void upstream_pool_enter(struct upstream_pool *pool)
{
    pool->inside++;
}

void upstream_pool_leave(struct upstream_pool *pool)
{
    pool->inside--;
    if (pool->freed && pool->inside == 0) {
        pool_free_now(pool);
    }
}

unsigned upstream_pool_open_calls(const struct upstream_pool *pool)
{
    return pool->calls;
}

static struct upstream_link *link_at(struct ring *place)
{
    return container_of(place, struct upstream_link, place);
}

static void idle_close(struct upstream_link *link)
{
    uplink_over(link, UPSTREAM_WHOLE, NULL);
    uplink_free(link);
}

void upstream_pool_drain(struct upstream_pool *pool)
{
    pool->draining = true;
    while (!ring_is_empty(&pool->idle)) {
        idle_close(link_at(pool->idle.next));
    }
}

/* -- kept connections */

static bool link_is_young(const struct upstream_link *link, const struct upstream_request *request)
{
    uint64_t now_ms = loop_now_ms();

    return now_ms < link->idle_until_ms &&
           (!request->is_write || now_ms - link->idle_since_ms < UPSTREAM_IDLE_WRITE_MS);
}

/* The one that was used last; when that one is too old, most others are. */
struct upstream_link *upstream_pool_take(struct upstream_pool *pool, const struct upstream_request *request)
{
    while (!ring_is_empty(&pool->idle)) {
        struct upstream_link *link = link_at(pool->idle.prev);

        if (!link_is_young(link, request)) {
            return NULL;
        }
        if (uplink_is_silent(link)) {
            return link;
        }
        idle_close(link);
    }
    return NULL;
}

/* -- at the end of the turn, and when the name is known */

void uplink_due(struct upstream_link *link)
{
    if (ring_is_empty(&link->due)) {
        ring_enter(&link->pool->due, &link->due);
        loop_again(link->pool->loop);
    }
}

/* Those in a ring now, in a ring of their own: what enters it meanwhile has a turn of its own. */
static void ring_move(struct ring *from, struct ring *to)
{
    ring_init(to);
    if (!ring_is_empty(from)) {
        ring_enter(from, to);
        ring_leave(from);
    }
}

static void pool_turn_end(struct loop_hook *hook)
{
    struct upstream_pool *pool = container_of(hook, struct upstream_pool, turn_end);
    struct ring now;

    if (ring_is_empty(&pool->due)) {
        return;
    }
    upstream_pool_enter(pool);
    ring_move(&pool->due, &now);
    loop_again(pool->loop); /* the owner may have made work for hooks before this one */
    while (!ring_is_empty(&now)) {
        struct upstream_link *link = container_of(now.next, struct upstream_link, due);

        ring_leave(&link->due);
        uplink_work(link);
    }
    upstream_pool_leave(pool);
}

void upstream_pool_named(struct upstream_pool *pool, const char *why)
{
    struct ring now;

    upstream_pool_enter(pool);
    ring_move(&pool->naming, &now);
    while (!ring_is_empty(&now)) {
        struct upstream_link *link = link_at(now.next);

        if (why != NULL) {
            uplink_over(link, UPSTREAM_NOT_SENT, why);
        } else {
            uplink_connect(link, NULL);
        }
        uplink_settle(link);
    }
    upstream_pool_leave(pool);
}
