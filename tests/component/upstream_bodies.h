/* upstream_bodies.h - bodies longer than what kernels and pools hold, for the tests of the client of
 * upstreams. */
#ifndef PAWL_TESTS_UPSTREAM_BODIES_H
#define PAWL_TESTS_UPSTREAM_BODIES_H

#include "tests/component/upstream_world.h"

/* Byte number i of a long body. */
static inline char pattern(size_t i)
{
    return (char)('a' + i % 23);
}

/* Writes of the body from at on, as much as is taken; where it has come to. */
static inline size_t write_more(struct asker *asker, size_t at, size_t all)
{
    char piece[10000];

    while (at < all) {
        size_t len = all - at < sizeof(piece) ? all - at : sizeof(piece), taken;

        for (size_t i = 0; i < len; i++) {
            piece[i] = pattern(at + i);
        }
        asker->inside = true;
        taken = upstream_write(&asker->call, (struct bytes){piece, len});
        asker->inside = false;
        at += taken;
        if (taken < len) {
            break;
        }
    }
    return at;
}

/* Until the kernel and the pool take no more, since the upstream does not read. */
static inline size_t write_until_full(struct asker *asker, size_t all)
{
    size_t at = 0;
    unsigned rooms;

    do {
        rooms = asker->rooms;
        at = write_more(asker, at, all);
        for (unsigned i = 0; i < 20 && asker->rooms == rooms; i++) {
            loop_turn(asker->world->loop, 1);
        }
    } while (asker->rooms > rooms);
    CHECK(at < all && asker->ends == 0);
    CHECK(uplink_unsent(asker->call.link) <= UPSTREAM_UNSENT_MAX + 1000);
    return at;
}

static inline void check_pattern(const char *text, size_t len)
{
    size_t wrong = 0;

    for (size_t i = 0; i < len; i++) {
        wrong += text[i] != pattern(i);
    }
    CHECK_INT(wrong, 0);
}

/* Puts the chunks behind the head together, in place; how long. */
static inline size_t chunks_join(char *text, size_t len, size_t from)
{
    size_t joined = 0;

    for (size_t at = from; at < len;) {
        char *end;
        size_t size = strtoul(text + at, &end, 16);
        size_t data = (size_t)(end - text) + 2;

        if (size == 0) {
            CHECK_INT(len - data, 2);
            break;
        }
        memmove(text + from + joined, text + data, size);
        joined += size;
        at = data + size + 2;
    }
    return joined;
}

/* Sends of the pattern as much as the kernel takes. */
static inline size_t peer_pour(struct peer *peer, size_t at, size_t all)
{
    char piece[10000];

    while (at < all) {
        size_t len = all - at < sizeof(piece) ? all - at : sizeof(piece);
        ssize_t n;

        for (size_t i = 0; i < len; i++) {
            piece[i] = pattern(at + i);
        }
        n = send(peer->fd, piece, len, MSG_NOSIGNAL);
        if (n <= 0) {
            break;
        }
        at += (size_t)n;
    }
    return at;
}

#endif
