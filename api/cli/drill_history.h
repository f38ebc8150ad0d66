/* drill_history.h - what the clients of a drill were told, in the order in which they were told it.
 *
 * There is one order: places are numbers that rise with each beginning and each end of a request of any
 * client. That a grant was announced before a write was begun is `grant.told < write.begun`, and then it was
 * so in real time too. */
#ifndef PAWL_CLI_DRILL_HISTORY_H
#define PAWL_CLI_DRILL_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum drill_event_kind {
    DRILL_ACQUIRE,
    DRILL_RENEW,
    DRILL_RELEASE,
    DRILL_WRITE,
    DRILL_READ,
    /* What the accident says, at one place (begun == told): */
    DRILL_ALL_OVER, /* every hold that was announced before is over: the store lost it */
    DRILL_CLOSED,   /* from here ... */
    DRILL_OPENED    /* ... to here no grant, renewal or write may be acknowledged */
};

enum drill_event_end {
    DRILL_OK,       /* 2xx: granted, renewed, released, written, read */
    DRILL_HELD,     /* 409: another has it */
    DRILL_OVER,     /* told that the hold is over: 410, or 412 of the fence (stale, expired, unissued) */
    DRILL_ODD,      /* refused in a way that no accident explains: 400, 401, 403, ... */
    DRILL_NOT_DONE, /* it certainly did not happen: 503, or nobody listened */
    DRILL_UNKNOWN   /* it may have happened: 504, a broken connection, 500 */
};

enum { DRILL_CODE_SIZE = 24 };

struct drill_event {
    enum drill_event_kind kind;
    enum drill_event_end end;
    unsigned client, lease;     /* numbers; the lease's is one of drill_load.h */
    uint64_t hold;              /* number of the acquire: one for each lease_id; never 0 */
    int64_t token, epoch;       /* of the grant, or that a renewal, release or write was made with; 0: none */
    uint64_t begun, told;       /* places; of a repeated acquire, begun is that of the first try */
    uint64_t begun_ms, told_ms; /* cli_now_ms() */
    uint64_t ttl_ms;            /* of a grant, or that was asked for with a renewal */
    uint64_t value; /* number of the write; of a read: of the write whose value was there, 0: none */
    char code[DRILL_CODE_SIZE]; /* of the problem, cut; "" without one */
};

struct drill_history {
    pthread_mutex_t lock;
    pthread_cond_t granted;
    struct drill_event *events; /* ordered by told */
    size_t count, room;
    uint64_t place, holds, values;
    uint64_t grants, last_grant_begun; /* acquires that ended well */
};

void drill_history_open(struct drill_history *history);
void drill_history_close(struct drill_history *history);

/* A place: for the beginning of a request, and for "since now". Any thread, as all that follow. */
uint64_t drill_history_place(struct drill_history *history);
uint64_t drill_history_new_hold(struct drill_history *history);
uint64_t drill_history_new_value(struct drill_history *history);
/* Fills told and told_ms and keeps a copy. */
void drill_history_tell(struct drill_history *history, struct drill_event *event);
/* DRILL_ALL_OVER, DRILL_CLOSED, DRILL_OPENED; returns the place. */
uint64_t drill_history_mark(struct drill_history *history, enum drill_event_kind kind);

/* Waits for a grant that was asked for after `since`; 0: none came until until_ms (cli_now_ms()), else when
 * it was told. */
uint64_t drill_history_await_grant(struct drill_history *history, uint64_t since, uint64_t until_ms);
/* How many grants were told so far. */
uint64_t drill_history_grants(struct drill_history *history);

#endif
