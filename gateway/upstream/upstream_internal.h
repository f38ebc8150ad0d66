/* upstream_internal.h - what the files of the upstream's client share; its test includes it, too.
 *
 *   link.c      the connections: a state machine for each; how they are made, and kept
 *   transfer.c  what goes over them: the calls, a request as bytes, an answer to its owner */
#ifndef PAWL_GATEWAY_UPSTREAM_INTERNAL_H
#define PAWL_GATEWAY_UPSTREAM_INTERNAL_H

#include <sys/queue.h>
#include <sys/socket.h>

#include "gateway/upstream/upstream.h"
#include "shared/loop/alarm.h"
#include "shared/tls/tls.h"

enum { UPLINK_IN_SIZE = 65536, UPSTREAM_ADDRESSES_MAX = 8 };

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

/* The request. What waits for the kernel lies in at, [from, to). */
struct uplink_request {
    char *at;
    size_t from, to, size;
    uint64_t sent;     /* bytes of it that the kernel has taken */
    bool unsure;       /* or may have taken */
    int64_t body_left; /* not yet given; -1: chunked */
    bool body_open;    /* more of it is to come */
    bool blocked;      /* the kernel takes no more for now */
    bool wants_room;   /* upstream_write() took less than all */
    bool says_close;
};

/* How the owner stands to the body of the answer. */
enum uplink_taking {
    UPLINK_TAKES,
    UPLINK_PAUSED, /* piece() took less than all */
    UPLINK_RESUMES /* upstream_more() was called, and what is kept is not yet given */
};

struct uplink_socket {
    int fd; /* -1: none; else it has a watch */
    int watched;
    struct loop_watch watch;
    struct tls *tls; /* https, from HANDSHAKE on; else NULL */
};

struct upstream_link {
    struct upstream_pool *pool;
    struct upstream_call *call; /* NULL: none */
    enum uplink_state state;
    struct uplink_socket socket;
    struct alarm alarm; /* NAMING, CONNECTING: an attempt takes too long; IDLE: not used any more */
    LIST_ENTRY(upstream_link) place; /* NAMING: of those that wait for the name; IDLE: of the idle */
    LIST_ENTRY(upstream_link) due;   /* of those that have something to do at the end of the turn */
    bool is_due;
    unsigned address;   /* the next to try, going round */
    unsigned left;      /* so many are */
    uint64_t dialed_us; /* epoch_clock_us() */
    struct {
        uint64_t connect_by, keep_by, idle_since, idle_until;
    } ms;
    struct uplink_request request;
    struct {
        struct answer parser;
        enum uplink_taking taking;
        struct bytes rest; /* has come, and the owner did not take it; in kept */
        char *kept;
    } answer;
    /* its end */
    enum upstream_end end;
    const char *why;
};
LIST_HEAD(uplinks, upstream_link);

/* Where the upstream is, and whom its certificate must come from. */
struct upstream_address {
    struct sockaddr_storage at;
    socklen_t len;
};

struct upstream_place {
    char *host;
    unsigned port;
    struct upstream_address list[UPSTREAM_ADDRESSES_MAX];
    unsigned count;
    unsigned first;    /* to try, going round: behind one that took too long, or failed in TLS */
    uint64_t until_ms; /* how long they count; UINT64_MAX: for ever */
    struct loop_lookup lookup;
    struct tls_trust *trust; /* NULL: no https */
};

struct upstream_pool {
    struct loop *loop;
    struct loop_hook turn_end;
    struct alarm_clock *clock;
    struct upstream_place place;
    unsigned user_timeout_ms;
    bool draining;
    unsigned calls; /* begun, and not ended */
    unsigned idle_count;
    struct uplinks idle; /* the latest first */
    struct uplinks naming, due;
    char *in;                       /* where every read goes to */
    unsigned walked[UPLINK_STATES]; /* bit t of element f: a link went from f to t */
};

/* -- link.c. The owner is called back at the end of a callback of the loop alone; the link may then be gone.
 * A kept connection that is fit, or NULL. */
struct upstream_link *upstream_pool_take(struct upstream_pool *pool, const struct upstream_request *request);
struct upstream_link *uplink_new(struct upstream_pool *pool);
/* FRESH: looks up where to, or connects. */
void uplink_dial(struct upstream_link *link);
bool uplink_allows(enum uplink_state from, enum uplink_state to);
void uplink_enter(struct upstream_link *link, enum uplink_state next);
/* The owner is called back at the end of this turn, if there is something to say. */
void uplink_due(struct upstream_link *link);
/* Watches the descriptor for what matters now. */
void uplink_watch(struct upstream_link *link);
/* The answer is complete; extra: how many bytes have come behind it. */
void uplink_whole(struct upstream_link *link, size_t extra);
/* Closes it without a whole answer: NOT_SENT or UNKNOWN, as is true. */
void uplink_broken(struct upstream_link *link, const char *why);
bool uplink_has_sent(const struct upstream_link *link);
/* In an exchange: SENDING, RECEIVING or LISTENING. */
bool uplink_is_open(const struct upstream_link *link);
/* What errno says of its socket. */
const char *uplink_why(const struct upstream_link *link);

/* -- transfer.c */
size_t uplink_unsent(const struct upstream_link *link);
/* SENDING: hands over what waits, as much as the kernel takes. No callbacks. */
void uplink_flush(struct upstream_link *link);
/* Both call head() and piece(); the second with what was kept, after upstream_more(). */
void uplink_read(struct upstream_link *link);
void uplink_resume(struct upstream_link *link);

#endif
