/* worker.h - what a worker of pawl-lease has beside that of every daemon on the store
 * (shared/member/member.h). */
#ifndef PAWL_LEASE_WORKER_H
#define PAWL_LEASE_WORKER_H

#include "lease/events/event_hub.h"
#include "lease/events/events.h"
#include "lease/queue/handoff.h"
#include "lease/queue/inbox.h"
#include "lease/queue/turn.h"
#include "lease/queue/wait.h"
#include "lease/remember.h"
#include "shared/member/member.h"

struct lease_worker {
    struct record_worker record; /* worker->extra */
    struct inbox *inbox;
    struct event_hub *event_hub;
    struct handoff *handoff; /* of every worker: leases that a script has left "more" to do on; the first one
                              * also looks at the alarms */
    struct remember *remember; /* of the first worker; NULL */
    struct turn turn;          /* for the scripts on several leases */
    unsigned leaving;          /* leave.lua under way (waiter.c) */
    /* bit t of element f: somebody who waited here (wait.h) went from f to t; what the test of the drawing
     * reads */
    unsigned char walked[WAIT_STATES];
    unsigned char events_walked[EVENTS_STATES]; /* the same of those who listen (events.h) */
};

/* service_plan: worker_open, worker_close, worker_free, worker_tick, settled, ready, drain. */
void lease_worker_open(struct worker *worker);
void lease_worker_close(struct worker *worker);
void lease_worker_free(struct worker *worker);
/* record_plan: alarm. */
void lease_worker_alarm(struct worker *worker, int64_t in_ms);
void lease_worker_tick(struct worker *worker);
bool lease_worker_settled(const struct service *service);
const char *lease_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);
/* Whoever waits is sent away (503 draining), whoever listens too; true when that is done and the inbox is
 * shut. */
bool lease_worker_drain(struct worker *worker);

struct lease_worker *lease_worker_from(const struct worker *worker);
struct lease_worker *lease_worker_of(const struct http_request *req);

#endif
