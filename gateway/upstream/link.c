/* link.c - the connections to an upstream: how one is made, kept, and used again; each is a state machine.
 *
 *   FRESH       --the address is known-->                               CONNECTING
 *   FRESH       --the name must be looked up-->                         NAMING
 *   NAMING      --looked up-->                                          CONNECTING
 *   NAMING      --no such name, over the deadline, aborted-->           OVER        not sent
 *   CONNECTING  --refused, or it takes long, and there is another-->    CONNECTING
 *   CONNECTING  --it stands-->                                          SENDING
 *   CONNECTING  --it stands, and TLS comes first-->                     HANDSHAKE
 *   CONNECTING  --refused by all, no descriptor, late, aborted-->       OVER        not sent
 *   HANDSHAKE   --the certificate is the host's, and trusted-->         SENDING
 *   HANDSHAKE   --it is not, no TLS, late, aborted-->                   OVER        not sent
 *   SENDING     --all of the request handed to the kernel-->            RECEIVING
 *   SENDING     --the other side takes no more of it-->                 LISTENING
 *   SENDING     --the answer complete, broken, malformed, aborted-->    OVER        whole, unknown, not sent
 *   RECEIVING   --the answer complete, and both go on-->                IDLE        whole
 *   RECEIVING   --complete, and one does not; broken, aborted ...-->    OVER        whole, unknown
 *   LISTENING   --the answer complete; the end, aborted ...-->          OVER        whole, unknown
 *   IDLE        --a request-->                                          SENDING
 *   IDLE        --it is closed, it speaks, its time is up, drained-->   OVER
 *
 * Whether the end without a whole answer is "not sent" or "unknown" does not depend on the state, but on
 * whether the kernel has taken, or may have taken, a byte of this request.
 *
 * LISTENING: the upstream may have answered before it closed, and that answer has come. But an error that
 * send(2) has reported is not reported again: the end of the stream then reads as a FIN and is none (Linux,
 * tcp_recvmsg_locked() and sock_error()), so an answer that only a FIN completes is not whole there. *
 * What was found for a name counts for a short while. */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/member/epoch.h"
#include "shared/text/memory.h"

static void uplink_late(struct alarm *alarm);
static void uplink_connect(struct upstream_link *link, const char *why);
static void uplink_connected(struct upstream_link *link);
static void uplink_handshake(struct upstream_link *link);
static void uplink_over(struct upstream_link *link, enum upstream_end end, const char *why);
static void pool_named(struct upstream_pool *pool, const char *why);
static void pool_turn_end(struct loop_hook *hook);
/* == the machine */

#define TO(state) (1u << UPLINK_##state)

bool uplink_allows(enum uplink_state from, enum uplink_state to)
{
    static const unsigned arrows[UPLINK_STATES] = {
        [UPLINK_FRESH] = TO(CONNECTING) | TO(NAMING),
        [UPLINK_NAMING] = TO(CONNECTING) | TO(OVER),
        [UPLINK_CONNECTING] = TO(CONNECTING) | TO(HANDSHAKE) | TO(SENDING) | TO(OVER),
        [UPLINK_HANDSHAKE] = TO(SENDING) | TO(OVER),
        [UPLINK_SENDING] = TO(RECEIVING) | TO(LISTENING) | TO(OVER),
        [UPLINK_RECEIVING] = TO(IDLE) | TO(OVER),
        [UPLINK_LISTENING] = TO(OVER),
        [UPLINK_IDLE] = TO(SENDING) | TO(OVER),
    };

    return arrows[from] >> to & 1;
}

static void uplink_hang_up(struct upstream_link *link)
{
    if (link->socket.tls != NULL && link->end != UPSTREAM_UNKNOWN)
        tls_bye(link->socket.tls);
    tls_close(link->socket.tls);
    link->socket.tls = NULL;
    if (link->socket.fd >= 0) {
        loop_watch_done(&link->socket.watch);
        close(link->socket.fd);
        link->socket.fd = -1;
    }
}

static void idle_begin(struct upstream_link *link)
{
    struct upstream_pool *pool = link->pool;

    link->ms.idle_since = loop_now_ms();
    link->ms.idle_until = link->ms.idle_since + link->answer.parser.keep_ms;
    if (link->ms.idle_until > link->ms.keep_by)
        link->ms.idle_until = link->ms.keep_by;
    alarm_set(pool->clock, &link->alarm, link->ms.idle_until);
    LIST_INSERT_HEAD(&pool->idle, link, place);
    pool->idle_count++;
}

/* The only place where the state changes. */
void uplink_enter(struct upstream_link *link, enum uplink_state next)
{
    struct upstream_pool *pool = link->pool;

    assert(uplink_allows(link->state, next));
    pool->walked[link->state] |= 1u << next;
    alarm_clear(pool->clock, &link->alarm);
    if (link->state == UPLINK_IDLE || link->state == UPLINK_NAMING)
        LIST_REMOVE(link, place);
    pool->idle_count -= link->state == UPLINK_IDLE;
    link->state = next;
    switch (next) {
    case UPLINK_NAMING:
        LIST_INSERT_HEAD(&pool->naming, link, place);
        alarm_set(pool->clock, &link->alarm, link->ms.connect_by);
        return;
    case UPLINK_HANDSHAKE: alarm_set(pool->clock, &link->alarm, link->ms.connect_by); return;
    case UPLINK_IDLE: idle_begin(link); return;
    case UPLINK_CONNECTING:
    case UPLINK_OVER: uplink_hang_up(link); return;
    case UPLINK_SENDING:
    case UPLINK_RECEIVING:
    case UPLINK_LISTENING:
    case UPLINK_FRESH:
    case UPLINK_STATES: return;
    }
}

struct upstream_link *uplink_new(struct upstream_pool *pool)
{
    struct upstream_link *link = must_have(calloc(1, sizeof(*link)));

    link->pool = pool;
    link->socket.fd = -1;
    link->alarm.rings = uplink_late;
    return link;
}

static void uplink_free(struct upstream_link *link)
{
    assert(link->socket.fd < 0 && link->state == UPLINK_OVER);
    if (link->is_due)
        LIST_REMOVE(link, due);
    answer_done(&link->answer.parser);
    free(link->request.at);
    free(link->answer.kept);
    free(link);
}

/* -- ends */

bool uplink_has_sent(const struct upstream_link *link)
{
    return link->request.sent > 0 || link->request.unsure;
}

bool uplink_is_open(const struct upstream_link *link)
{
    return link->state == UPLINK_SENDING || link->state == UPLINK_RECEIVING ||
           link->state == UPLINK_LISTENING;
}

void uplink_whole(struct upstream_link *link, size_t extra)
{
    const struct upstream_pool *pool = link->pool;
    bool both_go_on = link->state == UPLINK_RECEIVING && extra == 0 && link->answer.parser.keep_ms > 0 &&
                      loop_now_ms() < link->ms.keep_by && !link->request.says_close && !pool->draining &&
                      pool->idle_count < UPSTREAM_KEPT_MAX;

    if (!uplink_has_sent(link)) {
        uplink_broken(link, "it spoke before it was asked");
    } else if (both_go_on) {
        link->end = UPSTREAM_WHOLE;
        link->why = NULL;
        uplink_enter(link, UPLINK_IDLE);
    } else {
        uplink_over(link, UPSTREAM_WHOLE, NULL);
    }
}

static void uplink_over(struct upstream_link *link, enum upstream_end end, const char *why)
{
    /* What the kernel still has of the request is not to arrive later. */
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (end == UPSTREAM_UNKNOWN && link->socket.fd >= 0)
        setsockopt(link->socket.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (link->state == UPLINK_CONNECTING || link->state == UPLINK_HANDSHAKE)
        link->pool->place.first = link->address;
    link->end = end;
    link->why = why;
    uplink_enter(link, UPLINK_OVER);
}

void uplink_broken(struct upstream_link *link, const char *why)
{
    uplink_over(link, uplink_has_sent(link) ? UPSTREAM_UNKNOWN : UPSTREAM_NOT_SENT, why);
}

const char *uplink_why(const struct upstream_link *link)
{
    const char *why = link->socket.tls != NULL && errno == EPROTO ? tls_why(link->socket.tls) : NULL;

    return why != NULL ? why : strerrordesc_np(errno);
}

/* TLS may have something to say to TLS: that is no word of the upstream's. */
static bool uplink_is_silent(struct upstream_link *link)
{
    char byte;
    ssize_t n = link->socket.tls != NULL ? tls_read(link->socket.tls, &byte, 1)
                                         : recv(link->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n < 0 && errno == EAGAIN && (link->socket.tls == NULL || !tls_is_midway(link->socket.tls));
}

/* -- events of the loop */

/* What is not watched for now is reported all the same when the descriptor is in error; then the watch has
 * stopped (libuv 1.44, unix/poll.c), and is set again. */
void uplink_watch(struct upstream_link *link)
{
    bool takes = link->answer.taking == UPLINK_TAKES;
    int wanted = 0;

    switch (link->state) {
    case UPLINK_CONNECTING: wanted = LOOP_WRITE; break;
    case UPLINK_HANDSHAKE: wanted = LOOP_READ | (tls_has_unsent(link->socket.tls) ? LOOP_WRITE : 0); break;
    case UPLINK_SENDING: wanted = (takes ? LOOP_READ : 0) | (link->request.blocked ? LOOP_WRITE : 0); break;
    case UPLINK_RECEIVING:
    case UPLINK_LISTENING: wanted = takes ? LOOP_READ : 0; break;
    case UPLINK_IDLE: wanted = LOOP_READ; break;
    case UPLINK_FRESH:
    case UPLINK_NAMING:
    case UPLINK_OVER:
    case UPLINK_STATES: return;
    }
    if (link->socket.fd >= 0 && wanted != link->socket.watched) {
        link->socket.watched = wanted;
        loop_watch_set(&link->socket.watch, wanted);
    }
}

static void uplink_settle(struct upstream_link *link)
{
    struct upstream_call *call = link->call;
    enum upstream_end end = link->end;
    const char *why = link->why;

    uplink_watch(link);
    if (link->state == UPLINK_OVER) {
        if (call != NULL)
            link->pool->calls--;
        uplink_free(link);
    } else if (link->state == UPLINK_IDLE && call != NULL) {
        link->pool->calls--;
        link->call = NULL;
    } else {
        return;
    }
    if (call != NULL) {
        call->link = NULL;
        call->ended(call, end, why);
    }
}

static void uplink_work(struct upstream_link *link)
{
    if (link->state == UPLINK_SENDING && !link->request.blocked)
        uplink_flush(link);
    if (uplink_is_open(link) && link->request.wants_room && uplink_unsent(link) <= UPSTREAM_UNSENT_MAX / 2) {
        link->request.wants_room = false;
        link->call->room(link->call);
    }
    if (uplink_is_open(link) && link->answer.taking == UPLINK_RESUMES)
        uplink_resume(link);
    uplink_settle(link);
}

static void uplink_ready(struct loop_watch *watch, int events)
{
    struct upstream_link *link = container_of(watch, struct upstream_link, socket.watch);

    if (events & LOOP_HANGUP)
        link->socket.watched = 0;
    if (link->state == UPLINK_CONNECTING) {
        uplink_connected(link);
    } else if (link->state == UPLINK_HANDSHAKE) {
        uplink_handshake(link);
    } else if (link->state == UPLINK_IDLE && !uplink_is_silent(link)) {
        uplink_over(link, UPSTREAM_WHOLE, NULL);
    } else if (uplink_is_open(link)) {
        if (events & LOOP_WRITE)
            link->request.blocked = false;
        if (events & LOOP_READ && link->answer.taking == UPLINK_TAKES)
            uplink_read(link);
    }
    uplink_work(link);
}

static void uplink_late(struct alarm *alarm)
{
    struct upstream_link *link = container_of(alarm, struct upstream_link, alarm);

    if (link->state == UPLINK_CONNECTING) {
        link->pool->place.first = link->address;
        uplink_connect(link, "no connection could be made in time");
    } else if (link->state == UPLINK_NAMING)
        uplink_over(link, UPSTREAM_NOT_SENT, "its name was not found in time");
    else if (link->state == UPLINK_HANDSHAKE)
        uplink_over(link, UPSTREAM_NOT_SENT, "TLS was not agreed upon in time");
    else
        uplink_over(link, UPSTREAM_WHOLE, NULL);
    uplink_settle(link);
}

/* == how one is made: a socket's path, an address or a name, one address after the other, and TLS */

enum {
    PORT_CHARS = 16,
    NAME_KEPT_MS = 10000,
    KEEPALIVE_S = 5,
    KEEPALIVE_TRIES = 2 /* a dead host is noticed within 15 s */
};

static void addresses_take(struct upstream_place *addresses, const struct addrinfo *found)
{
    addresses->count = 0;
    for (; found != NULL && addresses->count < UPSTREAM_ADDRESSES_MAX; found = found->ai_next) {
        memcpy(&addresses->list[addresses->count].at, found->ai_addr, found->ai_addrlen);
        addresses->list[addresses->count++].len = found->ai_addrlen;
    }
}

/* Of a path, and of a host that is an address itself, there is nothing to look up. */
static void addresses_init(struct upstream_place *addresses, const struct route_upstream *upstream)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct addrinfo *found = NULL,
                    of_path = {.ai_addr = (struct sockaddr *)&path, .ai_addrlen = sizeof(path)};
    char port[PORT_CHARS];

    addresses->host = must_have(strdup(upstream->host));
    addresses->port = upstream->port;
    snprintf(port, sizeof(port), "%u", addresses->port);
    if (upstream->scheme == ROUTE_UNIX) {
        assert(strlen(upstream->host) < sizeof(path.sun_path));
        memcpy(path.sun_path, upstream->host, strlen(upstream->host));
        addresses_take(addresses, &of_path);
    } else if (getaddrinfo(addresses->host, port, &hints, &found) == 0) {
        addresses_take(addresses, found);
        freeaddrinfo(found);
    }
    addresses->until_ms = addresses->count > 0 ? UINT64_MAX : 0;
}

static void host_found(struct loop_lookup *lookup, const struct addrinfo *found, const char *why)
{
    struct upstream_pool *pool = container_of(lookup, struct upstream_pool, place.lookup);

    addresses_take(&pool->place, found);
    pool->place.until_ms = why == NULL ? loop_now_ms() + NAME_KEPT_MS : 0;
    pool_named(pool, why);
}

/* -- the connection: one address after the other, and TLS over it */

void uplink_dial(struct upstream_link *link)
{
    struct upstream_pool *pool = link->pool;
    const char *why;

    link->dialed_us = epoch_clock_us();
    link->ms.connect_by = loop_now_ms() + UPSTREAM_CONNECT_MS;
    link->ms.keep_by = loop_now_ms() + UPSTREAM_KEPT_MS;
    if (loop_now_ms() < pool->place.until_ms) {
        uplink_connect(link, NULL);
        return;
    }
    why = loop_lookup_begin(pool->loop, &pool->place.lookup, pool->place.host, pool->place.port, host_found);
    if (why == NULL)
        uplink_enter(link, UPLINK_NAMING);
    else
        uplink_over(link, UPSTREAM_NOT_SENT, why);
}

/* None of these can fail on a socket that is one; and if it did, only dead hosts would be noticed later. */
static void tune_socket(int fd, unsigned user_timeout_ms)
{
    const int on = 1, idle_s = KEEPALIVE_S, tries = KEEPALIVE_TRIES;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof(user_timeout_ms));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* 0, EINPROGRESS, or why not: then there is no socket. */
static int socket_connect(struct upstream_link *link, const struct upstream_address *address)
{
    int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;

    if (fd < 0)
        return errno;
    if (address->at.ss_family != AF_UNIX)
        tune_socket(fd, link->pool->user_timeout_ms);
    if (connect(fd, (const struct sockaddr *)&address->at, address->len) != 0)
        error = errno == EINTR ? EINPROGRESS : errno; /* connect(2): it goes on all the same */
    if (error != 0 && error != EINPROGRESS) {
        close(fd);
        return error;
    }
    link->socket.fd = fd;
    link->socket.watched = error == 0 ? LOOP_READ : LOOP_WRITE;
    loop_watch_init(link->pool->loop, &link->socket.watch, fd, uplink_ready, link->socket.watched);
    return error;
}

/* Not by a process that has stood still since it was asked to, nor with its machine: meanwhile an operator
 * may have resolved it (gateway/worker.h). An alarm would ring only after this event, or not at all. */
static void sending_begin(struct upstream_link *link)
{
    if (epoch_clock_us() - link->dialed_us >= UPSTREAM_CONNECT_MS * 1000) {
        uplink_over(link, UPSTREAM_NOT_SENT, "it was too late to send anything when the connection stood");
        return;
    }
    uplink_enter(link, UPLINK_SENDING);
    uplink_flush(link);
}

static void uplink_handshake(struct upstream_link *link)
{
    switch (tls_handshake(link->socket.tls)) {
    case TLS_WAITS: return;
    case TLS_FAILED: uplink_over(link, UPSTREAM_NOT_SENT, uplink_why(link)); return;
    case TLS_DONE: sending_begin(link); return;
    }
}

static void connection_stands(struct upstream_link *link)
{
    if (link->pool->place.trust == NULL) {
        sending_begin(link);
        return;
    }
    uplink_enter(link, UPLINK_HANDSHAKE);
    link->socket.tls = tls_open(link->pool->place.trust, link->socket.fd, link->pool->place.host);
    if (link->socket.tls != NULL)
        uplink_handshake(link);
    else
        uplink_over(link, UPSTREAM_NOT_SENT,
                    "TLS cannot be set up here: no memory, or wrong settings of GnuTLS");
}

/* Those that are left share the time that is left. */
static void uplink_connect(struct upstream_link *link, const char *why)
{
    const struct upstream_place *addresses = &link->pool->place;

    if (link->state != UPLINK_CONNECTING) {
        link->address = addresses->first;
        link->left = addresses->count;
    }
    while (link->left > 0 && addresses->count > 0) {
        uint64_t now_ms = loop_now_ms(), left_ms;
        int error;

        left_ms = link->ms.connect_by > now_ms ? link->ms.connect_by - now_ms : 0;
        uplink_enter(link, UPLINK_CONNECTING);
        error = socket_connect(link, &addresses->list[link->address++ % addresses->count]);
        if (error == 0) {
            connection_stands(link);
            return;
        }
        if (error == EINPROGRESS) {
            alarm_set(link->pool->clock, &link->alarm, now_ms + left_ms / link->left--);
            return;
        }
        link->left--;
        why = error == EAGAIN ? "its queue of connections is full" : strerrordesc_np(error); /* unix(7) */
    }
    uplink_over(link, UPSTREAM_NOT_SENT, why != NULL ? why : "it has no address");
}

/* A socket that is writable has been connected, or has failed to (connect(2), EINPROGRESS). */
static void uplink_connected(struct upstream_link *link)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(link->socket.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error == 0)
        connection_stands(link);
    else
        uplink_connect(link, strerrordesc_np(error));
}

/* == the connections of a pool, kept or in use */

struct upstream_pool *upstream_pool_new(struct loop *loop, const struct route_upstream *upstream,
                                        unsigned user_timeout_ms)
{
    struct upstream_pool *pool = must_have(calloc(1, sizeof(*pool)));

    pool->loop = loop;
    pool->user_timeout_ms = user_timeout_ms;
    pool->in = must_have(malloc(UPLINK_IN_SIZE));
    pool->clock = alarm_clock_new(loop);
    assert((upstream->scheme == ROUTE_HTTPS) == (upstream->trust != NULL));
    pool->place.trust = upstream->trust;
    addresses_init(&pool->place, upstream);
    loop_hook_add(loop, &pool->turn_end, pool_turn_end);
    return pool;
}

void upstream_pool_free(struct upstream_pool *pool)
{
    assert(pool->calls == 0);
    upstream_pool_drain(pool);
    assert(LIST_EMPTY(&pool->due) && LIST_EMPTY(&pool->naming));
    loop_hook_remove(pool->loop, &pool->turn_end);
    loop_lookup_end(&pool->place.lookup);
    alarm_clock_free(pool->clock);
    free(pool->place.host);
    free(pool->in);
    free(pool);
}

unsigned upstream_pool_open_calls(const struct upstream_pool *pool)
{
    return pool->calls;
}

static void idle_close(const struct upstream_pool *pool, struct upstream_link *link)
{
    uplink_over(link, UPSTREAM_WHOLE, NULL);
    assert(LIST_FIRST(&pool->idle) != link);
    uplink_free(link);
}

void upstream_pool_drain(struct upstream_pool *pool)
{
    pool->draining = true;
    while (!LIST_EMPTY(&pool->idle))
        idle_close(pool, LIST_FIRST(&pool->idle));
}

/* -- kept connections */

static bool link_is_young(const struct upstream_link *link, const struct upstream_request *request)
{
    uint64_t now_ms = loop_now_ms();

    return now_ms < link->ms.idle_until &&
           (!request->is_write || now_ms - link->ms.idle_since < UPSTREAM_IDLE_WRITE_MS);
}

/* The one that was used last; when that one is too old, most others are. Not every server leaves out the body
 * behind HEAD, and one that comes late is the next answer: never that to a write, or to another's GET. */
struct upstream_link *upstream_pool_take(struct upstream_pool *pool, const struct upstream_request *request)
{
    bool is_head = bytes_are(request->method, "HEAD");
    struct upstream_link *link, *next;

    for (link = LIST_FIRST(&pool->idle); link != NULL && link_is_young(link, request); link = next) {
        next = LIST_NEXT(link, place);
        if ((link->answer.parser.to == ANSWER_TO_HEAD) != is_head)
            continue;
        if (uplink_is_silent(link))
            return link;
        idle_close(pool, link);
    }
    return NULL;
}

/* -- at the end of the turn, and when the name is known */

void uplink_due(struct upstream_link *link)
{
    if (!link->is_due) {
        link->is_due = true;
        LIST_INSERT_HEAD(&link->pool->due, link, due);
        loop_again(link->pool->loop);
    }
}

static void pool_turn_end(struct loop_hook *hook)
{
    struct upstream_pool *pool = container_of(hook, struct upstream_pool, turn_end);
    struct uplinks now = pool->due; /* what enters it meanwhile has a turn of its own */

    if (LIST_EMPTY(&now))
        return;
    LIST_FIRST(&now)->due.le_prev = &LIST_FIRST(&now);
    LIST_INIT(&pool->due);
    loop_again(pool->loop); /* the owner may have made work for hooks before this one */
    while (!LIST_EMPTY(&now)) {
        struct upstream_link *link = LIST_FIRST(&now);

        LIST_REMOVE(link, due);
        link->is_due = false;
        assert(LIST_FIRST(&now) != link);
        uplink_work(link);
    }
}

/* The addresses are known, or why not; NULL: they are. */
static void pool_named(struct upstream_pool *pool, const char *why)
{
    struct uplinks now = pool->naming; /* who asks again in the end of his call waits for another look-up */

    if (!LIST_EMPTY(&now))
        LIST_FIRST(&now)->place.le_prev = &LIST_FIRST(&now);
    LIST_INIT(&pool->naming);
    while (!LIST_EMPTY(&now)) {
        struct upstream_link *link = LIST_FIRST(&now);

        if (why != NULL)
            uplink_over(link, UPSTREAM_NOT_SENT, why);
        else
            uplink_connect(link, NULL);
        assert(LIST_FIRST(&now) != link);
        uplink_settle(link);
    }
}
