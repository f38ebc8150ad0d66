/* daemon.h - what both daemons are to the store: the hooks of their service_plan, and how a request finds its
 * line.
 *
 * For the process: epoch, state directory, member. For each worker: a line to the store. On the first worker:
 * the member and one sweep. */
#ifndef PAWL_SHARED_RECORD_DAEMON_H
#define PAWL_SHARED_RECORD_DAEMON_H

#include "shared/member/member.h"
#include "shared/member/sweep.h"
#include "shared/service/service.h"

/* plan->own of both daemons. */
struct record_plan {
    enum member_role role;
    const struct store_script *pulse, *leave, *admit; /* admit: NULL for one that never admits */
    const struct store_script *sweep_look, *sweep;
    const char *index; /* of the sweep */
    unsigned swept;    /* the plan's own metric row that counts what the sweep ended; ignored without one */
    bool counts_swept;
    bool sweep_may_grant; /* the sweep's may_grant and round_ms */
    unsigned sweep_round_ms;
    /* When the next alarm rings (member_options.alarm), for the first worker; NULL: nobody asks. */
    void (*alarm)(struct worker *first, int64_t in_ms);
    void (*given_up)(struct worker *first, int64_t number); /* the same of member_options.given_up */
};

/* What worker->extra points to. A daemon that has more for each worker embeds it and finds itself with
 * container_of. */
struct record_worker {
    struct member_line line;
};

/* service_plan: open, close, worker_open, worker_close, worker_free, worker_tick, settled, leave, ready,
 * memory. */
int record_daemon_open(struct service *service);
void record_daemon_close(struct service *service);
void record_worker_open(struct worker *worker);
/* In place of it, with memory that is the daemon's, zeroed; it frees that itself. */
void record_worker_begin(struct worker *worker, struct record_worker *own);
void record_worker_close(struct worker *worker);
void record_worker_free(struct worker *worker);
void record_worker_tick(struct worker *worker);
bool record_daemon_settled(const struct service *service);
bool record_daemon_leave(struct service *service);
const char *record_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE]);
void record_worker_memory(struct worker *worker, struct service_memory *memory);

/* How the store knows this process, once record_worker_begin() was called for its first worker: member id and
 * incarnation; they live as long as the service. The descriptor of its state directory; -1: it has none. */
const char *record_daemon_id(const struct service *service);
const char *record_daemon_incarnation(const struct service *service);
int record_daemon_state_dir(const struct service *service);

/* The worker's line to the store; that of the worker that serves this request. */
struct member_line *member_line_of_worker(const struct worker *worker);
struct member_line *member_line_of(const struct http_request *req);

#endif
