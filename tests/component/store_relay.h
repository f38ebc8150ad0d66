/* store_relay.h - a relay between store and Redis, on the store's own loop, that cuts, changes and adds
 * bytes. */
#ifndef PAWL_TESTS_STORE_RELAY_H
#define PAWL_TESTS_STORE_RELAY_H

#include "tests/component/store_world.h"

enum { RELAY_UP, RELAY_DOWN }; /* to Redis, to the store */

struct relay {
    struct loop *loop;
    const struct redis *redis;
    char path[40];
    int listener, fd[2]; /* fd[RELAY_UP] is Redis' */
    struct loop_watch accepts, watch[2];
    int64_t cut_after[2]; /* bytes yet to pass in that direction; -1: all */
    unsigned cuts;
    const char *replace, *with; /* in what goes down; of the same length */
};

static inline void relay_hang_up(struct relay *relay)
{
    for (int i = 0; i < 2; i++) {
        if (relay->fd[i] >= 0) {
            loop_watch_done(&relay->watch[i]);
            close(relay->fd[i]);
            relay->fd[i] = -1;
        }
    }
}

static inline void relay_replace(const struct relay *relay, char *at, size_t len)
{
    size_t size = relay->replace != NULL ? strlen(relay->replace) : 0;
    char *found;

    while (size > 0 && (found = memmem(at, len, relay->replace, size)) != NULL)
        memcpy(found, relay->with, size);
}

/* way: where it goes. */
static inline void relay_pass(struct relay *relay, int way)
{
    char buf[64 * 1024];
    int64_t left = relay->cut_after[way];
    size_t most = left >= 0 && left < (int64_t)sizeof(buf) ? (size_t)left : sizeof(buf);
    ssize_t n = most == 0 ? 0 : read(relay->fd[!way], buf, most);

    if (n > 0 && way == RELAY_DOWN)
        relay_replace(relay, buf, (size_t)n);
    if (n > 0 && send(relay->fd[way], buf, (size_t)n, MSG_NOSIGNAL) != n)
        n = 0;
    if (n > 0 && left >= 0)
        relay->cut_after[way] -= n;
    if (n <= 0 || relay->cut_after[way] == 0) {
        relay->cuts += relay->cut_after[way] == 0;
        relay->cut_after[RELAY_UP] = relay->cut_after[RELAY_DOWN] = -1;
        relay_hang_up(relay);
    }
}

/* What goes that way waits from now on, and passes again. Of a link that is gone nothing waits: the store has
 * given it up, on a machine that stood still for so long. */
static inline void relay_hold(struct relay *relay, int way)
{
    if (relay->fd[way] >= 0)
        loop_watch_set(&relay->watch[!way], 0);
}

static inline void relay_go_on(struct relay *relay, int way)
{
    if (relay->fd[way] >= 0)
        loop_watch_set(&relay->watch[!way], LOOP_READ);
}

static inline void relay_from_store(struct loop_watch *watch, int events)
{
    (void)events;
    relay_pass(container_of(watch, struct relay, watch[RELAY_DOWN]), RELAY_UP);
}

static inline void relay_from_redis(struct loop_watch *watch, int events)
{
    (void)events;
    relay_pass(container_of(watch, struct relay, watch[RELAY_UP]), RELAY_DOWN);
}

static inline void relay_accept(struct loop_watch *watch, int events)
{
    struct relay *relay = container_of(watch, struct relay, accepts);

    (void)events;
    relay_hang_up(relay);
    relay->fd[RELAY_DOWN] = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
    relay->fd[RELAY_UP] = redis_connect(relay->redis);
    if (relay->fd[RELAY_UP] < 0) {
        close(relay->fd[RELAY_DOWN]);
        relay->fd[RELAY_DOWN] = -1;
        return;
    }
    loop_watch_init(relay->loop, &relay->watch[RELAY_DOWN], relay->fd[RELAY_DOWN], relay_from_store,
                    LOOP_READ);
    loop_watch_init(relay->loop, &relay->watch[RELAY_UP], relay->fd[RELAY_UP], relay_from_redis, LOOP_READ);
}

static inline void relay_open(struct relay *relay, struct loop *loop, const struct redis *redis)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *relay = (struct relay){.loop = loop, .redis = redis, .fd = {-1, -1}, .cut_after = {-1, -1}};
    snprintf(relay->path, sizeof(relay->path), "%s/relay", redis->dir);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", relay->path);
    relay->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(relay->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
          listen(relay->listener, 8) == 0);
    loop_watch_init(loop, &relay->accepts, relay->listener, relay_accept, LOOP_READ);
}

static inline void relay_close(struct relay *relay)
{
    relay_hang_up(relay);
    loop_watch_done(&relay->accepts);
    close(relay->listener);
}

/* A world whose store reaches Redis through the relay, READY. */
static inline void relay_world_open(struct world *world, struct relay *relay, const struct redis *redis,
                                    unsigned timeout_ms, bool allow_unsafe)
{
    *world = (struct world){.loop = loop_new()};
    relay_open(relay, world->loop, redis);
    world->store = store_open(world->loop, &(struct store_options){.url = textf("unix://%s", relay->path),
                                                                   .timeout_ms = timeout_ms,
                                                                   .allow_unsafe = allow_unsafe,
                                                                   .library = &test_library});
    WAIT(world, world_ready(world), 3000);
}

static inline void relay_world_close(struct world *world, struct relay *relay)
{
    store_close(world->store);
    relay_close(relay);
    loop_free(world->loop);
    CHECK_INT(world->ended_inside, 0);
    CHECK_INT(world->open, 0);
}

/* A test with a store that reaches a Redis of its own through a relay. */
#define TEST_RELAY(sentence, timeout_ms, allow_unsafe)                                                       \
    static void sentence##_on(struct redis *redis, struct world *world, struct relay *relay);                \
    TEST_REDIS(sentence)                                                                                     \
    {                                                                                                        \
        struct world world;                                                                                  \
        struct relay relay;                                                                                  \
                                                                                                             \
        relay_world_open(&world, &relay, redis, timeout_ms, allow_unsafe);                                   \
        sentence##_on(redis, &world, &relay);                                                                \
        relay_world_close(&world, &relay);                                                                   \
    }                                                                                                        \
    static void sentence##_on(struct redis *redis __attribute__((unused)), struct world *world,              \
                              struct relay *relay)

#endif
