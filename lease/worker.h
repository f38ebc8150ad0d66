/* worker.h - what a worker of pawl-lease has beside that of every daemon on the store
 * (shared/member/member.h). */
#ifndef PAWL_LEASE_WORKER_H
#define PAWL_LEASE_WORKER_H

#include "lease/events/events.h"
#include "lease/queue/queue.h"
#include "shared/member/member.h"

struct lease_worker {
    struct member_worker record; /* worker->extra */
    struct inbox *inbox;
    struct event_hub *event_hub;
    struct handoff *handoff; /* of every worker: leases that a script has left "more" to do on; the first one
                              * also looks at the alarms */
    struct remember *remember; /* of the first worker; NULL */
    struct turn turn;          /* for the scripts on several leases */
    struct event_streams streams;
    struct kept_places kept;
    unsigned leaving;           /* leave.lua under way (waiter.c) */
    wait_may_have_fn *may_have; /* NULL: everybody may */
    /* For the tests of the drawings: bit t of element f: a waiter, or a stream, went from f to t. */
    unsigned char walked[WAIT_STATES], events_walked[EVENTS_STATES];
};

/* service_plan: worker_open, worker_close, worker_free, worker_tick, settled, ready, drain. */
void lease_worker_open(struct worker *worker);
void lease_worker_close(struct worker *worker);
void lease_worker_free(struct worker *worker);
/* member_plan: alarm, bars. */
void lease_worker_alarm(struct worker *worker, int64_t in_ms);
void lease_worker_bars(const struct service *service, struct member_bars *bars);
void lease_worker_tick(struct worker *worker);
bool lease_worker_settled(const struct service *service);
const char *lease_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);
/* service_plan: judge. */
void lease_worker_judge(struct worker *worker);
/* Waiters get 503 draining, streams end; true when that is done and the inbox is shut. */
bool lease_worker_drain(struct worker *worker);

/* pawl-lease --init-store: makes a store in an empty Redis, and says so. The exit status: 0 created; 1 there
 * is one already; 69 the store cannot be reached; 78 it can lose locks. */
int init_store(struct service *service);

/* -- remember.c: bounds the memory of what is over and remembered (--remember-max): the oldest goes first.
 *
 * Nothing is counted while Redis uses less in all. Else every few seconds a sample of all leases says how
 * much it is, and for how long it is over; when it is more than the bound, what is over for longer than what
 * fits is forgotten. What must be remembered is not (lease/scripts/sweep_early.lua): when that alone is more,
 * nothing new is granted, while this service says so. */
struct remember *remember_new(struct worker *worker);
/* No new call begins; one in flight ends with the store. Then it is freed by free(3). */
void remember_stop(struct remember *remember);

struct lease_worker *lease_worker_from(const struct worker *worker);
struct lease_worker *lease_worker_of(const struct http_request *req);

#endif
