/* clock.c - deadlines on slow clients: one timer, and a list for each phase of a request.
 *
 * libmicrohttpd's own time-out counts idle time, so that one byte now and then outlives it (tried with
 * 0.9.75). */
#include <stdlib.h>
#include <sys/socket.h>

#include "shared/http/flow.h"

enum { SEND_TIMEOUT_MS = 30000, LINGER_MS = 2000 };

static void clock_fired(struct loop_timer *timer);

void http_clock_init(struct http_server *server)
{
    struct http_clock *clock = &server->clock;

    clock->timeout_ms[PHASE_HEAD] = server->options.header_timeout_ms;
    clock->timeout_ms[PHASE_BODY] = server->options.body_timeout_ms;
    clock->timeout_ms[PHASE_SEND] = server->options.send_timeout_ms > 0 ? server->options.send_timeout_ms
                                                                        : SEND_TIMEOUT_MS;
    clock->timeout_ms[PHASE_TAKE] = clock->timeout_ms[PHASE_SEND] / HTTP_FLOW_LOOKS + 1;
    clock->timeout_ms[PHASE_OVER] = LINGER_MS;
    clock->timeout_ms[PHASE_LINGER] = LINGER_MS;
    clock->now_ms = loop_now_ms();
    clock->armed_ms = UINT64_MAX;
    loop_timer_init(server->loop, &clock->timer, clock_fired);
}

void http_clock_done(struct http_server *server)
{
    loop_timer_done(&server->clock.timer);
}

static void clock_arm(struct http_clock *clock, uint64_t at_ms)
{
    uint64_t now_ms = loop_now_ms();

    clock->armed_ms = at_ms;
    loop_timer_arm(&clock->timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

static void clock_remove(struct http_clock *clock, struct http_deadline *deadline)
{
    enum http_phase phase = deadline->phase;

    if (phase == PHASE_NONE) {
        return;
    }
    *(deadline->prev != NULL ? &deadline->prev->next : &clock->first[phase]) = deadline->next;
    *(deadline->next != NULL ? &deadline->next->prev : &clock->last[phase]) = deadline->prev;
    deadline->phase = PHASE_NONE;
}

void http_clock_set(struct http_server *server, struct http_deadline *deadline, enum http_phase phase)
{
    struct http_clock *clock = &server->clock;

    clock_remove(clock, deadline);
    if (phase == PHASE_NONE) {
        return;
    }
    if (!server->in_run) { /* which may have been long ago */
        clock->now_ms = loop_now_ms();
    }
    deadline->phase = phase;
    deadline->since_ms = clock->now_ms;
    deadline->next = NULL;
    deadline->prev = clock->last[phase];
    *(deadline->prev != NULL ? &deadline->prev->next : &clock->first[phase]) = deadline;
    clock->last[phase] = deadline;
    if (clock->armed_ms > deadline->since_ms + clock->timeout_ms[phase]) {
        clock_arm(clock, deadline->since_ms + clock->timeout_ms[phase]);
    }
}

static void clock_expire(struct http_server *server, struct http_deadline *deadline)
{
    enum http_phase phase = deadline->phase;
    struct http_conn *conn = container_of(deadline, struct http_conn, deadline); /* not of PHASE_LINGER */

    clock_remove(&server->clock, deadline);
    switch (phase) {
    case PHASE_HEAD: http_raw_timeout(conn); return;
    case PHASE_BODY:
        if (http_body_is_whole(conn->req)) {
            http_raw_timeout(conn);
        } else {
            http_body_reader_silent(conn->req);
        }
        return;
    case PHASE_TAKE: http_flow_look(conn); return;
    case PHASE_SEND:
        if (conn->kept != NULL) { /* a stream's rest; libmicrohttpd does not look at it */
            http_early_drop(conn->kept->flow);
            return;
        }
        /* fall through */
    case PHASE_OVER: shutdown(conn->fd, SHUT_RDWR); return;
    case PHASE_LINGER: http_linger_end(deadline); return;
    case PHASE_NONE:
    case PHASE_COUNT: abort(); /* is on no list */
    }
}

static void clock_fired(struct loop_timer *timer)
{
    struct http_clock *clock = container_of(timer, struct http_clock, timer);
    struct http_server *server = container_of(clock, struct http_server, clock);
    uint64_t next_ms = UINT64_MAX;

    clock->now_ms = loop_now_ms();
    clock->armed_ms = UINT64_MAX;
    for (enum http_phase phase = PHASE_HEAD; phase < PHASE_COUNT; phase++) {
        struct http_deadline *first;

        while ((first = clock->first[phase]) != NULL &&
               first->since_ms + clock->timeout_ms[phase] <= clock->now_ms) {
            clock_expire(server, first);
        }
        if (first != NULL && first->since_ms + clock->timeout_ms[phase] < next_ms) {
            next_ms = first->since_ms + clock->timeout_ms[phase];
        }
    }
    if (next_ms < clock->armed_ms) {
        clock_arm(clock, next_ms);
    }
}
