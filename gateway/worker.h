/* worker.h - what pawl-gateway and each of its workers have beside that of every daemon on the store
 * (shared/member/member.h). */
#ifndef PAWL_GATEWAY_WORKER_H
#define PAWL_GATEWAY_WORKER_H

#include <sys/queue.h>

#include "gateway/intent/intent.h"
#include "gateway/route/route.h"
#include "gateway/upstream/upstream.h"
#include "shared/loop/alarm.h"
#include "shared/member/member.h"

struct forward;
struct recovery;
struct unreported;

/* The route table as this worker uses it; another table is another struct. Stays for as long as a request is
 * under way by it. */
struct table_use {
    struct route_table *table;
    unsigned refs;
    struct table_use *next;        /* of the unused ones */
    struct upstream_pool *pools[]; /* by route_upstream.index */
};

/* For what is forwarded: how many incarnations have yet to report what they had sent, and the first of them,
 * as last looked at (intent/unreported.c). */
struct gateway_doubt {
    unsigned count;
    char first[2 * MEMBER_ID_CHARS + 2];
    char routes[ROUTE_HASH_CHARS + 1]; /* hash of the table that is served on this store; "": none is yet */
    char marks[ROUTE_STORE_SIZE];      /* first store of a `mark` route whose marks are lost; "": none */
};

/* Of the whole process: service->more. */
struct gateway {
    struct service *service;
    struct intents intents;
    struct probes probes;
    pthread_mutex_t doubt_mutex; /* the first worker writes; it alone may read without */
    struct gateway_doubt in_doubt;
    atomic_bool routes_differed;         /* a request was refused for that since in_doubt was looked at */
    atomic_int_fast64_t given_up;        /* as the last look says */
    atomic_uint_fast64_t body_disk;      /* bytes of bodies in files */
    pthread_mutex_t table_mutex;         /* for who takes a table into use, and for its users */
    _Atomic(struct route_table *) table; /* NULL: no routes */
    struct route_table *retired;         /* those of before */
    atomic_uint generation;              /* rises with every new table */
    _Atomic(const char *) sent_by; /* hash of the table by which the last write was let out; NULL: none was */
    atomic_bool routes_lacking;    /* the last SIGHUP found a table that cannot be served */
    bool has_recovered;            /* the first worker's: nothing of former incarnations rests on its word */
    const char *id, *incarnation;  /* as the store knows this process; set when the first worker opens */
};

/* service_plan: open, close, leave, reload. A process with open intents does not leave: it stays a member,
 * whose end is still to be learned. */
int gateway_open(struct service *service);
void gateway_close(struct service *service);
bool gateway_leave(struct service *service);
/* On SIGHUP. A file that cannot be served as it asks changes nothing: the table of before stays. */
void gateway_reload(struct service *service);
struct gateway *gateway_of(const struct service *service);

struct sticky;

enum { STICKY_SEEN_MAX = 4, GIVEN_UP_ARGS = 3 };

/* Intents that stay open (forward/admit.c). seen: the tokens of the latest first writes of each stripe. */
struct stickies {
    LIST_HEAD(, sticky) open[STRIPES];
    struct token seen[STRIPES][STICKY_SEEN_MAX];
    unsigned count;
    struct store_subscriber *subscriber; /* NULL: nothing was open yet */
    struct store_subscriber_owner subscriber_owner;
};

/* What is given up is removed when its gateway has reported that the connection is closed, or when that
 * gateway has been silent for 10 s. It may only have stood still, or its machine: then it does not send what
 * was admitted by an answer that is older than GIVEN_UP_SEND_MS, nor over a connection that was
 * UPSTREAM_CONNECT_MS in the making. What it had begun to send is not covered (docs/operations.md). */
enum { GIVEN_UP_LOOK_MS = 400, GIVEN_UP_AGAIN_MS = 50, GIVEN_UP_SEND_MS = 2000, GIVEN_UP_WAIT_MS = 3000 };

/* What a worker asks for what is given up (forward/send.c). */
struct given_up {
    struct gateway_worker *own;
    struct member_call call;
    bool in_flight;
    uint64_t asked_ms;
    int64_t asked; /* the number that the last question was about */
    char key[KEYS_STRIPE_SIZE];
    struct bytes argv[GIVEN_UP_ARGS + MEMBER_ARGS];
};

struct gateway_worker {
    struct member_worker record; /* worker->extra */
    struct worker *worker;
    struct gateway *gateway;
    struct intent_closer closer;
    struct alarm_clock *clock;
    struct table_use *use; /* NULL: no routes */
    struct table_use *unused;
    unsigned generation;
    struct recovery *recovery;     /* the first worker's, */
    struct unreported *unreported; /* and so is this */
    LIST_HEAD(, forward) waiting;  /* those in QUEUED */
    LIST_HEAD(, forward) live;     /* all that are under way */
    LIST_HEAD(, forward) spare;
    struct stickies stickies;
    struct given_up given_up;
    uint64_t drains_ms; /* since when the process ends; 0: it does not */
    unsigned forwards, spares;
    uint64_t numbers; /* of requests of this worker, in this incarnation */
};

/* service_plan: worker_open, worker_close, worker_free, worker_tick, drain. */
void gateway_worker_open(struct worker *worker);
void gateway_worker_close(struct worker *worker);
void gateway_worker_free(struct worker *worker);
void gateway_worker_tick(struct worker *worker);
/* member_plan: bars. */
void gateway_worker_bars(const struct service *service, struct member_bars *bars);
/* What is under way is ended, as far as that goes in a few seconds; true when nothing is. */
bool gateway_worker_drain(struct worker *worker);

struct gateway_worker *gateway_worker_from(const struct worker *worker);
struct gateway_worker *gateway_worker_of(const struct http_request *req);

/* The table in force, which a worker follows at its next tick: at once. NULL: none is. */
struct table_use *table_use_follow(struct gateway_worker *own);
/* A request goes by this table; it is given back when the request is over. */
struct table_use *table_use_take(struct gateway_worker *own);
void table_use_drop(struct gateway_worker *own, struct table_use *use);

#endif
