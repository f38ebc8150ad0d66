/* upstream_internal.h - what the files of the upstream's client share; its test includes it, too.
 *
 *   pool.c      the connections of one upstream, kept or in use
 *   link.c      one connection: a state machine
 *   dial.c      how it is made
 *   transfer.c  what goes over it: the calls, a request as bytes, an answer to its owner */
#ifndef PAWL_GATEWAY_UPSTREAM_INTERNAL_H
#define PAWL_GATEWAY_UPSTREAM_INTERNAL_H

#include <sys/socket.h>

#include "gateway/upstream/upstream.h"
#include "shared/loop/alarm.h"
#include "shared/tls/tls.h"

enum { UPLINK_IN_SIZE = 65536, UPSTREAM_ADDRESSES_MAX = 8 };

/* A place in a ring; one that is in none points to itself. */
struct ring {
    struct ring *prev, *next;
};

static inline void ring_init(struct ring *ring)
{
    ring->prev = ring->next = ring;
}

static inline bool ring_is_empty(const struct ring *ring)
{
    return ring->next == ring;
}

static inline void ring_leave(struct ring *ring)
{
    ring->prev->next = ring->next;
    ring->next->prev = ring->prev;
    ring_init(ring);
}

/* Behind all others; it must be in none. */
static inline void ring_enter(struct ring *head, struct ring *ring)
{
    ring->prev = head->prev;
    ring->next = head;
    head->prev->next = ring;
    head->prev = ring;
}

/* -- a connection. What it is in each state is drawn in link.c. */
enum uplink_state {
    UPLINK_FRESH,
    UPLINK_NAMING,
    UPLINK_CONNECTING,
    UPLINK_HANDSHAKE,
    UPLINK_SENDING,
    UPLINK_RECEIVING,
    UPLINK_LISTENING,
    UPLINK_IDLE,
    UPLINK_OVER,
    UPLINK_STATES
};

/* What waits for the kernel lies in [from, to). */
struct uplink_out {
    char *at;
    size_t from, to, size;
};

/* How the owner stands to the body of the answer. */
enum uplink_taking {
    UPLINK_TAKES,
    UPLINK_PAUSED, /* piece() took less than all */
    UPLINK_RESUMES /* upstream_more() was called, and what is kept is not yet given */
};

struct upstream_link {
    struct upstream_pool *pool;
    struct upstream_call *call; /* NULL: none */
    enum uplink_state state;
    int fd; /* -1: none; else it has a watch */
    int watched;
    struct loop_watch watch;
    struct alarm alarm; /* NAMING, CONNECTING: an attempt takes too long; IDLE: not used any more */
    struct ring place;  /* NAMING: of those that wait for the name; IDLE: of the idle, the latest last */
    struct ring due;    /* of those that have something to do at the end of the turn */
    uint64_t connect_by_ms, keep_by_ms, idle_since_ms, idle_until_ms;
    unsigned address; /* the next to try */
    /* the request */
    struct uplink_out out;
    uint64_t sent;     /* bytes of it that the kernel has taken */
    bool unsure;       /* or may have taken */
    int64_t body_left; /* not yet given; -1: chunked */
    bool body_open;    /* more of it is to come */
    bool blocked;      /* the kernel takes no more for now */
    bool wants_room;   /* upstream_write() took less than all */
    bool says_close;
    /* the answer */
    struct answer answer;
    enum uplink_taking taking;
    struct bytes rest; /* has come, and the owner did not take it; in kept */
    char *kept;
    struct tls *tls; /* https, from HANDSHAKE on; else NULL */
    /* its end */
    enum upstream_end end;
    const char *why;
};

/* -- where the upstream is */
struct upstream_address {
    struct sockaddr_storage at;
    socklen_t len;
};

struct upstream_addresses {
    struct upstream_address list[UPSTREAM_ADDRESSES_MAX];
    unsigned count;
    uint64_t until_ms;              /* how long they count; UINT64_MAX: for ever */
    struct upstream_lookup *lookup; /* that is under way, or NULL */
};

struct upstream_pool {
    struct loop *loop;
    struct loop_hook turn_end;
    struct alarm_clock *clock;
    char *host;
    unsigned port, user_timeout_ms;
    bool draining;
    bool freed;      /* within one of its own callbacks */
    unsigned inside; /* callbacks of the loop that are under way */
    unsigned calls;  /* begun, and not ended */
    unsigned idle_count;
    struct ring idle, naming, due;
    struct upstream_addresses addresses;
    bool is_https;
    char *ca_file;           /* NULL: the system's */
    struct tls_trust *trust; /* NULL: not read yet, or it cannot be */
    uint64_t trust_until_ms;
    char *in;                       /* where every read goes to */
    unsigned walked[UPLINK_STATES]; /* bit t of element f: a link went from f to t */
};

/* -- pool.c. Every callback of the loop is in between these two. The pool may be gone when the second
 * returns. */
void upstream_pool_enter(struct upstream_pool *pool);
void upstream_pool_leave(struct upstream_pool *pool);
/* A kept connection that is fit, or NULL. */
struct upstream_link *upstream_pool_take(struct upstream_pool *pool, const struct upstream_request *request);
/* At the end of this turn uplink_work() is called. */
void uplink_due(struct upstream_link *link);
/* The addresses are known, or why not; NULL: they are. */
void upstream_pool_named(struct upstream_pool *pool, const char *why);

/* -- dial.c. No callbacks. */
void addresses_init(struct upstream_pool *pool, const struct route_upstream *upstream);
void addresses_done(struct upstream_pool *pool);
/* FRESH: looks up where to (upstream_pool_named() follows, later), or connects. */
void uplink_dial(struct upstream_link *link);
/* The next address, if there is one. why: what became of the one before. */
void uplink_connect(struct upstream_link *link, const char *why);
/* The socket is writable for the first time: connected, or refused. */
void uplink_connected(struct upstream_link *link);
/* HANDSHAKE: goes on, as far as the socket lets it. */
void uplink_handshake(struct upstream_link *link);

/* -- link.c. The owner is called back by uplink_settle() alone, as the last thing of a callback of the loop;
 * the link may be gone when it returns. */
bool uplink_allows(enum uplink_state from, enum uplink_state to);
struct upstream_link *uplink_new(struct upstream_pool *pool);
void uplink_free(struct upstream_link *link);
/* The only place where the state changes. */
void uplink_enter(struct upstream_link *link, enum uplink_state next);
/* The answer is complete; extra: how many bytes have come behind it. */
void uplink_whole(struct upstream_link *link, size_t extra);
/* Closes it. */
void uplink_over(struct upstream_link *link, enum upstream_end end, const char *why);
/* The same, without a whole answer: NOT_SENT or UNKNOWN, as is true. */
void uplink_broken(struct upstream_link *link, const char *why);
bool uplink_has_sent(const struct upstream_link *link);
/* In an exchange: SENDING, RECEIVING or LISTENING. */
bool uplink_is_open(const struct upstream_link *link);
/* Open, and nothing unexpected has come. */
bool uplink_is_silent(struct upstream_link *link);
/* What errno says of its socket. */
const char *uplink_why(const struct upstream_link *link);
/* Watches the descriptor for what matters now. */
void uplink_watch(struct upstream_link *link);
/* What is due. */
void uplink_work(struct upstream_link *link);
void uplink_settle(struct upstream_link *link);
/* The loop has news of its socket. */
void uplink_ready(struct loop_watch *watch, int events);

/* -- transfer.c */
size_t uplink_unsent(const struct upstream_link *link);
/* SENDING: hands over what waits, as much as the kernel takes. No callbacks. */
void uplink_flush(struct upstream_link *link);
/* Both call head() and piece(). */
void uplink_read(struct upstream_link *link);
/* What was kept, after upstream_more(). */
void uplink_resume(struct upstream_link *link);

#endif
