/* upstream_world.h - what the tests of the client of upstreams stand on: a pool, the owner of a call, which
 * keeps what befalls it, and the upstream's side of a connection, which the test plays by hand: over plain
 * TCP, or over TLS when world_over_tls is set. */
#ifndef PAWL_TESTS_UPSTREAM_WORLD_H
#define PAWL_TESTS_UPSTREAM_WORLD_H

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/upstream/upstream_internal.h"
#include "tests/component/loopback.h"
#include "tests/component/tls_peer.h"
#include "tests/unit/check.h"
#include "tests/unit/waited.h"

enum { WAIT_MS = 15000, USER_TIMEOUT_MS = 10000, BODY_MAX = 8 << 20, LARGE = 3 << 20 };

#define GET "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
#define NO_CONTENT "HTTP/1.1 204 No Content\r\n\r\n"

/* Every arrow that any connection of this program has gone. */
static unsigned walked[UPLINK_STATES];

/* -- the world: a loop, an upstream that listens, a pool of connections to it */

struct world {
    struct loop *loop;
    struct upstream_pool *pool;
    struct route_upstream upstream;
    int listener;
    char path[64];
    gnutls_certificate_credentials_t identity; /* of the upstream; NULL: plain */
};

static bool world_over_tls;

static uint64_t deadline_ms(void)
{
    return loop_now_ms() + WAIT_MS;
}

/* Turns until the condition holds. */
#define UNTIL(world, precondition)                                                                           \
    do {                                                                                                     \
        struct patience patience_ = patience_of(WAIT_MS);                                                    \
        bool holds = false;                                                                                  \
        while (!(holds = (precondition)) && patience_lasts(&patience_))                                      \
            waited_turn((world)->loop, 1);                                                                   \
        check_true(holds, #precondition, __FILE__, __LINE__);                                                \
    } while (0)

static inline void world_pool(struct world *world)
{
    world->loop = loop_new();
    world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
}

/* NULL: the system. */
static inline struct tls_trust *trust_of(const char *ca_file)
{
    const char *why;
    struct tls_trust *trust = tls_trust_new(ca_file, &why);

    CHECK(trust != NULL);
    return trust;
}

static inline struct world *world_open(void)
{
    struct world *world = calloc(1, sizeof(*world));
    static char host[] = "127.0.0.1";

    world->upstream = (struct route_upstream){.scheme = ROUTE_HTTP, .host = host};
    if (world_over_tls) {
        world->upstream.scheme = ROUTE_HTTPS;
        world->upstream.trust = trust_of(safe.authority.file);
        world->identity = safe.identity;
    }
    world->listener = loopback_listen(&world->upstream.port, 64, SOCK_NONBLOCK);
    world_pool(world);
    return world;
}

static inline struct world *world_open_unix(void)
{
    struct world *world = calloc(1, sizeof(*world));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *dir = getenv("TMPDIR");

    snprintf(world->path, sizeof(world->path), "%s/up%d", dir != NULL && strlen(dir) < 40 ? dir : "/tmp",
             getpid());
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", world->path);
    unlink(world->path);
    world->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(bind(world->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(world->listener, 64) == 0);
    world->upstream = (struct route_upstream){.scheme = ROUTE_UNIX, .host = world->path};
    world_pool(world);
    return world;
}

static inline void walked_add(const struct upstream_pool *pool)
{
    for (unsigned i = 0; i < UPLINK_STATES; i++)
        walked[i] |= pool->walked[i];
}

static inline void world_free(struct world *world)
{
    loop_jobs_wait(world->loop);
    loop_free(world->loop);
    tls_trust_free(world->upstream.trust);
    close(world->listener);
    if (world->path[0] != '\0')
        unlink(world->path);
    free(world);
}

static inline void world_close(struct world *world)
{
    if (!CHECK_INT(upstream_pool_open_calls(world->pool), 0))
        return; /* nothing can be freed then */
    upstream_pool_drain(world->pool);
    walked_add(world->pool);
    upstream_pool_free(world->pool);
    world_free(world);
}

/* -- the owner of a call */

struct asker {
    struct upstream_call call;
    struct world *world;
    bool inside; /* a call of the module is under way */
    unsigned heads, ends, rooms;
    unsigned status, fields;
    int64_t length;
    char field[64]; /* value of the last field */
    enum upstream_end end;
    const char *why;
    char *body;
    size_t body_len;
    size_t take_max;                      /* of the body, in all */
    void (*at_head)(struct asker *asker); /* what else it does then */
    void (*at_piece)(struct asker *asker);
    void (*at_end)(struct asker *asker);
};

static inline void asker_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct asker *asker = container_of(call, struct asker, call);
    struct bytes value = head->field_count > 0 ? head->fields[head->field_count - 1].value : BYTES("");

    CHECK(!asker->inside && asker->ends == 0);
    asker->heads++;
    asker->status = head->status;
    asker->length = head->length;
    asker->fields = head->field_count;
    snprintf(asker->field, sizeof(asker->field), "%.*s", (int)value.len, value.at);
    if (asker->at_head != NULL)
        asker->at_head(asker);
}

static inline size_t asker_piece(struct upstream_call *call, struct bytes piece)
{
    struct asker *asker = container_of(call, struct asker, call);
    size_t room = asker->take_max - asker->body_len, len = piece.len < room ? piece.len : room;

    CHECK(!asker->inside && asker->heads == 1 && asker->ends == 0 && piece.len > 0);
    memcpy(asker->body + asker->body_len, piece.at, len);
    asker->body_len += len;
    if (asker->at_piece != NULL)
        asker->at_piece(asker);
    return len;
}

static inline void asker_room(struct upstream_call *call)
{
    struct asker *asker = container_of(call, struct asker, call);

    CHECK(!asker->inside && asker->ends == 0);
    asker->rooms++;
}

static inline void asker_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct asker *asker = container_of(call, struct asker, call);

    CHECK(!asker->inside && call->link == NULL);
    asker->ends++;
    asker->end = end;
    asker->why = why;
    CHECK((why == NULL) == (end == UPSTREAM_WHOLE));
    if (asker->at_end != NULL)
        asker->at_end(asker);
}

static inline void ask_request(struct asker *asker, struct world *world,
                               const struct upstream_request *request)
{
    char *body = asker->body != NULL ? asker->body : malloc(BODY_MAX);

    *asker = (struct asker){
        .world = world,
        .body = body,
        .take_max = asker->take_max,
        .at_head = asker->at_head,
        .at_piece = asker->at_piece,
        .at_end = asker->at_end,
        .call = {.head = asker_head, .piece = asker_piece, .room = asker_room, .ended = asker_ended}};
    asker->inside = true;
    upstream_begin(world->pool, &asker->call, request);
    asker->inside = false;
    CHECK(asker->ends == 0 && asker->call.link != NULL);
}

#define HOST BYTES("Host: h\r\n")

static inline void ask(struct asker *asker, struct world *world)
{
    ask_request(asker, world,
                &(struct upstream_request){
                    .method = BYTES("GET"), .target = BYTES("/x"), .fields = HOST, .body_is_whole = true});
}

static inline void ask_to_write(struct asker *asker, struct world *world)
{
    ask_request(asker, world,
                &(struct upstream_request){.method = BYTES("GET"),
                                           .target = BYTES("/x"),
                                           .fields = HOST,
                                           .body_is_whole = true,
                                           .is_write = true});
}

/* PUT with a body of so many bytes, -1: chunked, of which nothing is there yet. */
static inline void ask_body(struct asker *asker, struct world *world, int64_t length)
{
    ask_request(asker, world,
                &(struct upstream_request){
                    .method = BYTES("PUT"), .target = BYTES("/x"), .fields = HOST, .body_length = length});
}

static inline void asker_init(struct asker *asker)
{
    *asker = (struct asker){.take_max = BODY_MAX};
}

static inline void asker_done(struct asker *asker)
{
    free(asker->body);
}

static inline void asker_abort(struct asker *asker)
{
    asker->inside = true;
    upstream_abort(&asker->call);
    asker->inside = false;
}

static inline void ends(struct asker *asker, enum upstream_end end, const char *why)
{
    UNTIL(asker->world, asker->ends > 0);
    loop_turn(asker->world->loop, 0);
    CHECK_INT(asker->ends, 1);
    CHECK_INT(asker->end, end);
    if (why != NULL && !CHECK(asker->why != NULL && strstr(asker->why, why) != NULL))
        printf("# said: %s\n", asker->why != NULL ? asker->why : "nothing");
}

static inline void ends_whole(struct asker *asker, unsigned status, const char *body)
{
    ends(asker, UPSTREAM_WHOLE, NULL);
    CHECK_INT(asker->heads, 1);
    CHECK_INT(asker->status, status);
    CHECK_TEXT(((struct bytes){asker->body, asker->body_len}), bytes_of(body));
}

/* -- the upstream's side of a connection */

struct peer {
    int fd;
    gnutls_session_t tls; /* NULL: plain */
    char *text;
    size_t len;
    bool ended, reset;
};

/* What it sends is there at once, whatever is not acknowledged yet. */
static inline bool peer_try(struct peer *peer, struct world *world)
{
    const int on = 1;

    peer->fd = accept4(world->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return peer->fd >= 0;
}

/* Before any TLS. */
static inline void peer_accept_raw(struct peer *peer, struct world *world)
{
    *peer = (struct peer){.fd = -1, .text = malloc(BODY_MAX)};
    UNTIL(world, peer_try(peer, world));
}

/* What the peer's handshake comes to. */
static inline int peer_accept_as(struct peer *peer, struct world *world, const char *versions)
{
    int code = GNUTLS_E_AGAIN;

    peer_accept_raw(peer, world);
    peer->tls = session_open(world->identity, peer->fd, versions);
    UNTIL(world, session_is_through(peer->tls, &code));
    return code;
}

static inline void peer_accept(struct peer *peer, struct world *world)
{
    if (world->identity != NULL)
        CHECK_INT(peer_accept_as(peer, world, "NORMAL"), 0);
    else
        peer_accept_raw(peer, world);
}

/* Whether somebody else is at the door. */
static inline bool is_nobody_there(struct world *world)
{
    struct peer other;
    bool nobody = !peer_try(&other, world);

    if (!nobody)
        close(other.fd);
    return nobody;
}

/* As recv(2). */
static inline ssize_t peer_recv(struct peer *peer, char *to, size_t size)
{
    ssize_t n = peer->tls != NULL ? gnutls_record_recv(peer->tls, to, size) : recv(peer->fd, to, size, 0);

    if (peer->tls == NULL || n >= 0)
        return n;
    errno = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? EAGAIN : ECONNRESET;
    return n == GNUTLS_E_PREMATURE_TERMINATION ? 0 : -1;
}

static inline void peer_look(struct peer *peer)
{
    ssize_t n;

    while ((n = peer_recv(peer, peer->text + peer->len, BODY_MAX - peer->len)) > 0)
        peer->len += (size_t)n;
    peer->ended = peer->ended || n == 0;
    peer->reset = peer->reset || (n < 0 && errno == ECONNRESET);
}

static inline bool peer_has(struct peer *peer, size_t len)
{
    peer_look(peer);
    return peer->len >= len || peer->ended || peer->reset;
}

static inline bool peer_is_left(struct peer *peer)
{
    peer_look(peer);
    return peer->ended || peer->reset;
}

/* The whole of what has come is this, and it is forgotten. */
static inline void peer_got(struct peer *peer, struct world *world, const char *text)
{
    UNTIL(world, peer_has(peer, strlen(text)));
    CHECK_TEXT(((struct bytes){peer->text, peer->len}), bytes_of(text));
    peer->len = 0;
}

/* As send(2). */
static inline ssize_t peer_give(struct peer *peer, const char *at, size_t len)
{
    return peer->tls != NULL ? gnutls_record_send(peer->tls, at, len) : send(peer->fd, at, len, MSG_NOSIGNAL);
}

static inline void peer_send(struct peer *peer, const char *text)
{
    if (*text != '\0')
        CHECK_INT(peer_give(peer, text, strlen(text)), strlen(text));
}

/* Without a word of TLS. */
static inline void peer_cut(struct peer *peer)
{
    if (peer->tls != NULL)
        gnutls_deinit(peer->tls);
    if (peer->fd >= 0) {
        close(peer->fd);
        free(peer->text);
    }
    *peer = (struct peer){.fd = -1};
}

static inline void peer_close(struct peer *peer)
{
    if (peer->tls != NULL)
        gnutls_bye(peer->tls, GNUTLS_SHUT_WR);
    peer_cut(peer);
}

static inline void peer_reset(struct peer *peer)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_cut(peer);
}

/* A request, as it comes on a new connection. */
static inline void peer_asked(struct peer *peer, struct asker *asker, struct world *world)
{
    ask(asker, world);
    peer_accept(peer, world);
    peer_got(peer, world, GET);
}

static inline void peer_answers(struct peer *peer, struct asker *asker)
{
    peer_send(peer, NO_CONTENT);
    ends_whole(asker, 204, "");
}

/* A connection over which a request has gone, and that is kept. */
static inline void peer_kept(struct peer *peer, struct asker *asker, struct world *world, const char *answer)
{
    peer_asked(peer, asker, world);
    peer_send(peer, answer);
    ends(asker, UPSTREAM_WHOLE, NULL);
    CHECK_INT(world->pool->idle_count, 1);
}

static inline void all_close(struct peer *peer, struct asker *asker, struct world *world)
{
    peer_close(peer);
    asker_done(asker);
    world_close(world);
}

/* -- bodies longer than what kernels and pools hold */

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

        for (size_t i = 0; i < len; i++)
            piece[i] = pattern(at + i);
        asker->inside = true;
        taken = upstream_write(&asker->call, (struct bytes){piece, len});
        asker->inside = false;
        at += taken;
        if (taken < len)
            break;
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
        for (unsigned i = 0; i < 20 && asker->rooms == rooms; i++)
            loop_turn(asker->world->loop, 1);
    } while (asker->rooms > rooms);
    CHECK(at < all && asker->ends == 0);
    CHECK(uplink_unsent(asker->call.link) <= UPSTREAM_UNSENT_MAX + 1000);
    return at;
}

static inline void check_pattern(const char *text, size_t len)
{
    size_t wrong = 0;

    for (size_t i = 0; i < len; i++)
        wrong += text[i] != pattern(i);
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

        for (size_t i = 0; i < len; i++)
            piece[i] = pattern(at + i);
        n = peer_give(peer, piece, len);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    return at;
}

/* The alarm of a connection that is being made rings now. */
static inline void late_now(struct asker *asker)
{
    CHECK(asker->call.link->state == UPLINK_CONNECTING || asker->call.link->state == UPLINK_NAMING ||
          asker->call.link->state == UPLINK_HANDSHAKE);
    alarm_set(asker->world->pool->clock, &asker->call.link->alarm, loop_now_ms());
}

/* A test in worlds of its own, one after the other, each with an owner of a call and a place for the
 * upstream's connection; opened and the test know which it is: nth. */
#define TEST_UPSTREAM_EACH(sentence, count, opened)                                                          \
    static void sentence##_in(unsigned nth, struct world *world, struct asker *asker, struct peer *peer);    \
    TEST(sentence)                                                                                           \
    {                                                                                                        \
        for (unsigned nth = 0; nth < (count); nth++) {                                                       \
            struct world *world = opened;                                                                    \
            struct asker asker;                                                                              \
            struct peer peer = {.fd = -1};                                                                   \
                                                                                                             \
            asker_init(&asker);                                                                              \
            sentence##_in(nth, world, &asker, &peer);                                                        \
            all_close(&peer, &asker, world);                                                                 \
        }                                                                                                    \
    }                                                                                                        \
    static void sentence##_in(unsigned nth __attribute__((unused)), struct world *world,                     \
                              struct asker *asker, struct peer *peer __attribute__((unused)))
#define TEST_UPSTREAM(sentence, opened) TEST_UPSTREAM_EACH(sentence, 1, opened)

#endif
