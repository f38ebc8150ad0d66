/* forward_internal.h - what the files of forwarded requests share. Nobody else includes it.
 *
 *   request.c  the request itself, its body (TAKING), and the state machine that forward.h draws
 *   look.c     LOOKING, PROBING: what the upstream is asked before a write is sent
 *   admit.c    ASKING, QUEUED: the scripts that admit it; by which intent it goes
 *   send.c     SENDING, TELLING, LATE: the exchange with the upstream, and the heads of both ways
 *   safe.c     whether the store may be trusted with intents */
#ifndef PAWL_GATEWAY_FORWARD_INTERNAL_H
#define PAWL_GATEWAY_FORWARD_INTERNAL_H

#include "gateway/fenced_call.h"
#include "gateway/forward/forward.h"
#include "gateway/intent/intent.h"
#include "gateway/route/route.h"
#include "gateway/upstream/upstream.h"
#include "gateway/worker.h"
#include "shared/http/pieces.h"
#include "shared/loop/alarm.h"

enum {
    FORWARD_ID_SIZE = INTENT_ID_SIZE,
    FORWARD_REQUEST_ID_SIZE = 2 * MEMBER_ID_CHARS + 2 + FORWARD_ID_SIZE,
    FORWARD_ETAG_MAX = 256,
    LOOKS_MAX = 3
};

/* The request's body, where memory does not hold all of it. */
struct forward_body {
    struct http_body_reader reader;
    int fd;              /* what memory does not hold; -1: nothing */
    uint64_t len, at;    /* of that: taken; sent */
    uint64_t given;      /* streamed: so much of it has gone to the upstream */
    enum problem cut;    /* streamed: why its end is never sent */
    bool was_streamed;   /* a part has gone by: it cannot be sent again */
    bool is_being_taken; /* the rest is being taken from the client */
};

/* By what it is let through; id is a number that no request of this process had before. */
struct forward_by {
    struct intent *intent; /* asked for, or recorded as sending */
    struct sticky *sticky; /* in place of that: one that was open, or is to stay open */
    bool opens;            /* the intent that is asked for is one that stays open */
    int64_t mark;
    char id[FORWARD_ID_SIZE], request_id[FORWARD_REQUEST_ID_SIZE];
};

/* ASKING, QUEUED, PROBING: what it waits for. */
struct forward_turn {
    LIST_ENTRY(forward) queue; /* of those that are queued; of the spare ones */
    uint64_t until_ms, probed_ms;
    uint64_t asked_us; /* epoch_clock_us() */
    unsigned tries;
    bool is_shown;     /* what it waits for was applied */
    size_t queued_len; /* the text of the intent while it is queued, 0: it is not */
    char queued[INTENT_TEXT_MAX];
    size_t blocker_len; /* of the first that it waits for */
    char blocker[INTENT_TEXT_MAX];
    char unreported[2 * MEMBER_ID_CHARS + 2]; /* "GATEWAY INCARNATION" for which it waits; "": none */
};

/* if_match: which version is there. */
struct forward_look {
    unsigned count;
    bool is_due;     /* another write changed the version in between */
    bool with_get;   /* the upstream has no HEAD */
    size_t etag_len; /* 0: nothing is there */
    char etag[FORWARD_ETAG_MAX];
};

/* The exchange with the upstream. */
struct forward_exchange {
    struct upstream_call call;
    struct http_response_writer writer;
    uint64_t sent_ms;
    unsigned status;
    bool is_head;         /* the method is HEAD */
    bool is_last;         /* its connection may be its client's from now on */
    bool is_streamed;     /* the answer goes to the client in pieces */
    bool is_unsure;       /* the status says nothing of the write's end: the answer is not passed on */
    const char *identity; /* whose, when it is streamed */
    const char *why;      /* what went wrong, for the log and the answer; NULL: nothing yet */
    char status_text[48], promise[48];
};

struct forward {
    struct fenced_call fenced; /* fenced.req is NULL when the client has its answer */
    struct alarm alarm;
    struct gateway_worker *own;
    struct table_use *use;
    const struct route *route;
    LIST_ENTRY(forward) live; /* of all of the worker */
    enum forward_state state;
    bool is_write, is_fenced;
    bool is_barred; /* what it has shown was taken out, or its rule was, on the way */
    struct forward_body body;
    struct forward_by by;
    struct forward_turn turn;
    struct forward_look look;
    struct forward_exchange up;
    struct route_match match; /* the last: it is filled before it is read */
};

/* -- request.c */
/* The only place where the state changes. */
void forward_enter(struct forward *f, enum forward_state next);
/* The client has been answered, and nothing is under way: step is handed through. */
enum step forward_over(struct forward *f, enum step step);
void forward_alarm(struct forward *f, uint64_t in_ms);
/* What the contract calls it, for Fencing-Status. */
const char *forward_guarantee(struct forward *f);
/* A number that no request of this process had before: its id, and that of the upstream's request. */
void forward_number(struct forward *f);
/* A file in this folder without a name; -1: errno. */
int forward_body_file(int folder, const char *request_id);
void forward_put(struct forward *f);
void forward_stream(struct forward *f);
/* As it goes out; -1: in chunks. */
int64_t forward_body_length(const struct forward *f);
/* Its end was never sent, and the upstream's owner says that nothing is applied then. */
bool forward_never_applied(const struct forward *f);
/* 403, or of nobody 401: the end. */
enum step forward_forbid(struct forward *f);
/* Answers 413: the limit and its number. */
enum step forward_too_large(struct forward *f, const char *limit, uint64_t max);
#define FORWARD_MAX_BODY "max_body of the route"

/* -- look.c */
enum step forward_look(struct forward *f);
/* Whether a probe was begun. */
bool forward_probe(struct forward *f);

/* -- admit.c */
enum step forward_ask(struct forward *f);
/* The call of forward_ask() failed, or was not made. */
enum step forward_ask_failed(struct fenced_call *fenced, enum problem bad);
/* It is queued and may be able to go on. */
void forward_wake(struct forward *f);
/* The end of what was sent, or was not sent: of its intent, if it has one. */
void forward_intent_end(struct forward *f, enum intent_word word);
/* Of what the store has let through: whether its caller has begun the hold, if it may write with its own
 * holds only, perhaps since later than the store was asked. */
bool forward_is_its_own(const struct forward *f);
/* Ends a request; what was queued of it is taken back. */
enum step forward_away(struct forward *f, enum problem problem);
bool sticky_is(const struct sticky *sticky, struct bytes id);
void stickies_free(struct gateway_worker *own);

/* -- safe.c: whether the store is one that keeps what it has acknowledged. */
bool forward_store_is_safe(const struct forward *f);

/* -- send.c */
enum step forward_send(struct forward *f);
void forward_late(struct forward *f);
/* SENDING, TELLING: its client is to get no more of the answer. */
void forward_bar(struct forward *f);
enum { FORWARD_HEAD_MAX = SERVICE_HEAD_MAX + 8192 };
/* The fields of the request for the upstream; target gets prefix, path and query. false: too long. */
bool forward_head_make(struct forward *f, char fields[FORWARD_HEAD_MAX], size_t *fields_len,
                       char target[FORWARD_HEAD_MAX], size_t *target_len);
/* Whether a URI in a header is not of this route and lease: 400. */
bool forward_head_leads_elsewhere(const struct forward *f);

#endif
