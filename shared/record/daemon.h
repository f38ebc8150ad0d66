/* daemon.h - what both daemons are to the store: the hooks of their service_plan, and how a request finds its
 * line.
 *
 * For the process: life, state directory, member. For each worker: a line to the store. On the first worker:
 * the member and one sweep. */
#ifndef PAWL_SHARED_RECORD_DAEMON_H
#define PAWL_SHARED_RECORD_DAEMON_H

#include "shared/record/member.h"
#include "shared/record/sweep.h"
#include "shared/service.h"

/* plan->own of both daemons. */
struct record_plan {
    enum member_role role;
    const struct store_script *pulse, *watch, *leave, *admit; /* admit: NULL for one that never admits */
    const struct store_script *sweep;
    const char *index, *records; /* of the sweep */
    unsigned swept; /* the plan's own metric row that counts what the sweep ended; ignored without one */
    bool counts_swept;
};

/* service_plan: open, close, worker_open, worker_close, worker_free, worker_tick, settled, leave, ready. */
int record_daemon_open(struct service *service);
void record_daemon_close(struct service *service);
void record_worker_open(struct worker *worker);
void record_worker_close(struct worker *worker);
void record_worker_free(struct worker *worker);
void record_worker_tick(struct worker *worker);
bool record_daemon_settled(const struct service *service);
bool record_daemon_leave(struct service *service);
const char *record_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);

/* The line to the store of the worker that serves this request. */
struct record_line *record_line_of(const struct http_request *req);

#endif
