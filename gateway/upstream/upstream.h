/* upstream.h - requests to the servers behind the gateway, over HTTP/1.1: a pool of connections for each
 * upstream and worker, and an own strict parser of answers (RFC 9112; shared/http/answer.h says how strict).
 *
 * What can be relied on: a request is sent at most once, on one connection; it is never repeated, also not on
 * a kept connection that turns out dead. The end says which of three things is true, and never guesses:
 *
 *   UPSTREAM_WHOLE     a complete, well-formed final answer has been received
 *   UPSTREAM_NOT_SENT  certainly not one byte of the request was handed to the kernel
 *   UPSTREAM_UNKNOWN   anything else: reset, closed early, malformed answer, aborted, ...
 *
 * An exchange, step by step (link.c draws the machine of a connection):
 *
 *   upstream_begin()   the head is sent, and the body: what was given at once, then upstream_write() ...
 *   head()             the head of the final answer (1xx are dropped; 101 is malformed)
 *   piece() ...        its body
 *   ended()
 *
 * An answer that is complete before the whole request was sent is whole (the connection is then closed). One
 * that has neither a length nor chunks is whole when the upstream closes in order; that its program did not
 * break down in the middle cannot be known then, only that status and fields have come; and when the
 * connection is reset instead, the end is unknown, though head() was called. Over https it is whole with
 * TLS' own word for the end only (close_notify): all else an attacker could do. A connection that an end
 * without a whole answer leaves behind is reset: what the kernel still had of the request does not arrive
 * later.
 *
 * A connection is kept when both sides are at the end of a message and neither wants to close; behind HEAD
 * for HEAD only. It is used again only for so long as the other side is not likely to close it at the same
 * moment (UPSTREAM_IDLE_MS, or half of the answer's Keep-Alive timeout if that is shorter;
 * UPSTREAM_IDLE_WRITE_MS for a write), not after UPSTREAM_KEPT_MS in all, and after a look whether it is
 * still open and silent: an unexpected byte makes it unfit. No redirects are followed, no proxy environment
 * is looked at, nothing is decoded.
 *
 * A name is looked up again after 10 s. Another of its addresses is tried when no connection could be made to
 * the one before, while nothing has been sent; one that took too long, or where TLS failed, is the last to be
 * tried from then on. A process that has no memory for a request ends. */
#ifndef PAWL_GATEWAY_UPSTREAM_H
#define PAWL_GATEWAY_UPSTREAM_H

#include "gateway/route/route.h"
#include "shared/http/answer.h"
#include "shared/loop/loop.h"

enum {
    UPSTREAM_IDLE_MS = ANSWER_KEEP_MS,
    UPSTREAM_IDLE_WRITE_MS = 250, /* for a write: an end that it meets there is unknown */
    UPSTREAM_KEPT_MS = 60000,     /* since it was made: then its name and its certificate count anew */
    UPSTREAM_KEPT_MAX = 256,      /* idle connections of one pool */
    UPSTREAM_CONNECT_MS = 5000,
    UPSTREAM_UNSENT_MAX = 65536 /* of a request's body, waiting for the upstream */
};

enum upstream_end { UPSTREAM_WHOLE, UPSTREAM_NOT_SENT, UPSTREAM_UNKNOWN };

/* Valid during head(). */
struct upstream_head {
    unsigned status;
    const struct answer_field *fields; /* as they came, framing and hop-by-hop fields among them */
    unsigned field_count;
    int64_t length; /* as in struct answer */
};

/* The owner embeds it and keeps it until ended() was called. None of the functions is called from inside a
 * call of this module. */
struct upstream_call {
    void (*head)(struct upstream_call *call, const struct upstream_head *head);
    /* Returns how many bytes were taken; if not all, the upstream is not read from until upstream_more().
     * NULL: all are, and dropped. */
    size_t (*piece)(struct upstream_call *call, struct bytes piece);
    /* After upstream_write() took less than all: there is room again. */
    void (*room)(struct upstream_call *call);
    /* Exactly once, and last. why: for logs, a static text; NULL for UPSTREAM_WHOLE. */
    void (*ended)(struct upstream_call *call, enum upstream_end end, const char *why);
    struct upstream_link *link; /* the module's own */
};

struct upstream_request {
    struct bytes method, target; /* target: prefix and canonical path, and the query with its "?" */
    /* The field lines, each ended by CR LF, without framing (Content-Length, Transfer-Encoding, Connection,
     * Expect) and without the empty line; Host among them. Copied. */
    struct bytes fields;
    struct bytes body;   /* what of the body is there already; copied */
    int64_t body_length; /* of the whole body; -1: chunked; 0: none (then no Content-Length, but for POST, PUT
                            and PATCH) */
    bool body_is_whole;  /* body is all of it */
    bool is_write;       /* a connection that was idle for UPSTREAM_IDLE_WRITE_MS at most, or a fresh one */
    bool is_last;        /* the connection is not used again */
};

struct upstream_pool;
/* user_timeout_ms: TCP_USER_TIMEOUT of its sockets. upstream->trust outlives the pool. */
struct upstream_pool *upstream_pool_new(struct loop *loop, const struct route_upstream *upstream,
                                        unsigned user_timeout_ms);
/* No call is open any more (asserted), and none of its owners is being called. A name that is being looked up
 * meanwhile is a job of the loop that ends by itself: loop_jobs_wait() before loop_free(). */
void upstream_pool_free(struct upstream_pool *pool);
/* Idle connections are closed at once, those in use when their exchange has ended: before a table goes. */
void upstream_pool_drain(struct upstream_pool *pool);
unsigned upstream_pool_open_calls(const struct upstream_pool *pool);

/* Always ends later, also when there is no descriptor: UPSTREAM_NOT_SENT. What the request must be, whole
 * field lines without framing among it, is asserted. */
void upstream_begin(struct upstream_pool *pool, struct upstream_call *call,
                    const struct upstream_request *request);
/* More of the body; copied; how many bytes were taken. Never more than body_length in all (asserted). An
 * upstream that takes no more of the request lets all of it pass. This and the next three do nothing once
 * ended() was called, when call->link is NULL. */
size_t upstream_write(struct upstream_call *call, struct bytes piece);
/* A chunked body is at its end. (One with a length ends by itself.) */
void upstream_body_end(struct upstream_call *call);
/* After piece() took less than all. */
void upstream_more(struct upstream_call *call);
/* Breaks the connection off; ended() follows: UPSTREAM_NOT_SENT or UPSTREAM_UNKNOWN, as is true. */
void upstream_abort(struct upstream_call *call);

#endif
