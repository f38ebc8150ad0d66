/* link.c - one connection to an upstream: a state machine.
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
 * tcp_recvmsg_locked() and sock_error()), so an answer that only a FIN completes is not whole there. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/memory.h"

static void uplink_late(struct alarm *alarm);

bool uplink_allows(enum uplink_state from, enum uplink_state to)
{
    static const bool arrows[UPLINK_STATES][UPLINK_STATES] = {
        [UPLINK_FRESH] = {[UPLINK_CONNECTING] = true, [UPLINK_NAMING] = true},
        [UPLINK_NAMING] = {[UPLINK_CONNECTING] = true, [UPLINK_OVER] = true},
        [UPLINK_CONNECTING] = {[UPLINK_CONNECTING] = true,
                               [UPLINK_HANDSHAKE] = true,
                               [UPLINK_SENDING] = true,
                               [UPLINK_OVER] = true},
        [UPLINK_HANDSHAKE] = {[UPLINK_SENDING] = true, [UPLINK_OVER] = true},
        [UPLINK_SENDING] = {[UPLINK_RECEIVING] = true, [UPLINK_LISTENING] = true, [UPLINK_OVER] = true},
        [UPLINK_RECEIVING] = {[UPLINK_IDLE] = true, [UPLINK_OVER] = true},
        [UPLINK_LISTENING] = {[UPLINK_OVER] = true},
        [UPLINK_IDLE] = {[UPLINK_SENDING] = true, [UPLINK_OVER] = true},
    };

    return arrows[from][to];
}

static void uplink_hang_up(struct upstream_link *link)
{
    if (link->tls != NULL && link->end != UPSTREAM_UNKNOWN) {
        tls_bye(link->tls);
    }
    tls_close(link->tls);
    link->tls = NULL;
    if (link->fd >= 0) {
        loop_watch_done(&link->watch);
        close(link->fd);
        link->fd = -1;
    }
}

static void idle_begin(struct upstream_link *link)
{
    struct upstream_pool *pool = link->pool;

    link->idle_since_ms = loop_now_ms();
    link->idle_until_ms = link->idle_since_ms + link->answer.keep_ms;
    if (link->idle_until_ms > link->keep_by_ms) {
        link->idle_until_ms = link->keep_by_ms;
    }
    alarm_set(pool->clock, &link->alarm, link->idle_until_ms);
    ring_enter(&pool->idle, &link->place);
    pool->idle_count++;
}

/* The only place where the state changes. */
void uplink_enter(struct upstream_link *link, enum uplink_state next)
{
    struct upstream_pool *pool = link->pool;

    assert(uplink_allows(link->state, next));
    pool->walked[link->state] |= 1u << next;
    alarm_clear(pool->clock, &link->alarm);
    ring_leave(&link->place);
    pool->idle_count -= link->state == UPLINK_IDLE;
    link->state = next;
    switch (next) {
    case UPLINK_NAMING:
        ring_enter(&pool->naming, &link->place);
        alarm_set(pool->clock, &link->alarm, link->connect_by_ms);
        return;
    case UPLINK_HANDSHAKE: alarm_set(pool->clock, &link->alarm, link->connect_by_ms); return;
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
    link->fd = -1;
    link->alarm.rings = uplink_late;
    ring_init(&link->place);
    ring_init(&link->due);
    return link;
}

void uplink_free(struct upstream_link *link)
{
    assert(link->fd < 0 && ring_is_empty(&link->place));
    ring_leave(&link->due);
    answer_done(&link->answer);
    free(link->out.at);
    free(link->kept);
    free(link);
}

/* -- ends */

bool uplink_has_sent(const struct upstream_link *link)
{
    return link->sent > 0 || link->unsure;
}

bool uplink_is_open(const struct upstream_link *link)
{
    return link->state == UPLINK_SENDING || link->state == UPLINK_RECEIVING ||
           link->state == UPLINK_LISTENING;
}

void uplink_whole(struct upstream_link *link, size_t extra)
{
    const struct upstream_pool *pool = link->pool;
    bool both_go_on = link->state == UPLINK_RECEIVING && extra == 0 && link->answer.keep_ms > 0 &&
                      loop_now_ms() < link->keep_by_ms && !link->says_close && !pool->draining &&
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

void uplink_over(struct upstream_link *link, enum upstream_end end, const char *why)
{
    /* What the kernel still has of the request is not to arrive later. */
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (end == UPSTREAM_UNKNOWN && link->fd >= 0) {
        setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
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
    const char *why = link->tls != NULL && errno == EPROTO ? tls_why(link->tls) : NULL;

    return why != NULL ? why : strerrordesc_np(errno);
}

/* TLS may have something to say to TLS: that is no word of the upstream's. */
bool uplink_is_silent(struct upstream_link *link)
{
    char byte;
    ssize_t n = link->tls != NULL ? tls_read(link->tls, &byte, 1)
                                  : recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n < 0 && errno == EAGAIN && (link->tls == NULL || !tls_is_midway(link->tls));
}

/* -- events of the loop */

/* What is not watched for now is reported all the same when the descriptor is in error; then the watch has
 * stopped (libuv 1.44, unix/poll.c), and is set again. */
void uplink_watch(struct upstream_link *link)
{
    bool takes = link->taking == UPLINK_TAKES;
    int wanted = 0;

    switch (link->state) {
    case UPLINK_CONNECTING: wanted = LOOP_WRITE; break;
    case UPLINK_HANDSHAKE: wanted = LOOP_READ | (tls_has_unsent(link->tls) ? LOOP_WRITE : 0); break;
    case UPLINK_SENDING: wanted = (takes ? LOOP_READ : 0) | (link->blocked ? LOOP_WRITE : 0); break;
    case UPLINK_RECEIVING:
    case UPLINK_LISTENING: wanted = takes ? LOOP_READ : 0; break;
    case UPLINK_IDLE: wanted = LOOP_READ; break;
    case UPLINK_FRESH:
    case UPLINK_NAMING:
    case UPLINK_OVER:
    case UPLINK_STATES: return;
    }
    if (link->fd >= 0 && wanted != link->watched) {
        link->watched = wanted;
        loop_watch_set(&link->watch, wanted);
    }
}

void uplink_settle(struct upstream_link *link)
{
    struct upstream_call *call = link->call;
    enum upstream_end end = link->end;
    const char *why = link->why;

    uplink_watch(link);
    if (link->state == UPLINK_OVER) {
        if (call != NULL) {
            link->pool->calls--;
        }
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

void uplink_work(struct upstream_link *link)
{
    if (link->state == UPLINK_SENDING && !link->blocked) {
        uplink_flush(link);
    }
    if (uplink_is_open(link) && link->wants_room && uplink_unsent(link) <= UPSTREAM_UNSENT_MAX / 2) {
        link->wants_room = false;
        link->call->room(link->call);
    }
    if (uplink_is_open(link) && link->taking == UPLINK_RESUMES) {
        uplink_resume(link);
    }
    uplink_settle(link);
}

void uplink_ready(struct loop_watch *watch, int events)
{
    struct upstream_link *link = container_of(watch, struct upstream_link, watch);
    struct upstream_pool *pool = link->pool;

    upstream_pool_enter(pool);
    if (events & LOOP_HANGUP) {
        link->watched = 0;
    }
    if (link->state == UPLINK_CONNECTING) {
        uplink_connected(link);
    } else if (link->state == UPLINK_HANDSHAKE) {
        uplink_handshake(link);
    } else if (link->state == UPLINK_IDLE && !uplink_is_silent(link)) {
        uplink_over(link, UPSTREAM_WHOLE, NULL);
    } else if (uplink_is_open(link)) {
        if (events & LOOP_WRITE) {
            link->blocked = false;
        }
        if (events & LOOP_READ && link->taking == UPLINK_TAKES) {
            uplink_read(link);
        }
    }
    uplink_work(link);
    upstream_pool_leave(pool);
}

static void uplink_late(struct alarm *alarm)
{
    struct upstream_link *link = container_of(alarm, struct upstream_link, alarm);
    struct upstream_pool *pool = link->pool;

    upstream_pool_enter(pool);
    if (link->state == UPLINK_CONNECTING) {
        uplink_connect(link, "no connection could be made in time");
    } else if (link->state == UPLINK_NAMING) {
        uplink_over(link, UPSTREAM_NOT_SENT, "its name was not found in time");
    } else if (link->state == UPLINK_HANDSHAKE) {
        uplink_over(link, UPSTREAM_NOT_SENT, "TLS was not agreed upon in time");
    } else {
        uplink_over(link, UPSTREAM_WHOLE, NULL);
    }
    uplink_settle(link);
    upstream_pool_leave(pool);
}
