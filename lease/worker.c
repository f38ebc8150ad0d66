/* worker.c - what a worker of pawl-lease has beside that of every daemon on the store. */
#include "lease/worker.h"

#include <stdio.h>
#include <stdlib.h>

#include "lease/operation.h"
#include "shared/text/memory.h"

struct lease_worker *lease_worker_from(const struct worker *worker)
{
    return container_of(worker->extra, struct lease_worker, record);
}

struct lease_worker *lease_worker_of(const struct http_request *req)
{
    return lease_worker_from(worker_of(req));
}

static bool worker_may_have(const struct worker *worker, const char *identity, struct bytes lease)
{
    return access_allows(worker->access, identity, ACCESS_ACQUIRE, lease);
}

void lease_worker_open(struct worker *worker)
{
    struct lease_worker *own = must_have(calloc(1, sizeof(*own)));

    member_worker_begin(worker, &own->record);
    own->inbox = inbox_new(worker);
    own->event_hub = event_hub_new(worker, service_store_options(worker->service));
    own->handoff = handoff_new(worker);
    LIST_INIT(&own->streams);
    TAILQ_INIT(&own->kept.list);
    own->may_have = worker->access != NULL ? worker_may_have : NULL;
    own->remember = worker->index == 0 ? remember_new(worker) : NULL;
    turn_init(&own->turn, worker->loop,
              worker->index > 0 ? &lease_worker_from(&worker->service->workers[0])->turn.own : NULL);
}

void lease_worker_close(struct worker *worker)
{
    struct lease_worker *own = lease_worker_from(worker);

    if (own->remember != NULL)
        remember_stop(own->remember);
    handoff_stop(own->handoff);
    event_hub_stop(own->event_hub);
    member_worker_close(worker);
}

/* The store has ended every call of them. */
void lease_worker_free(struct worker *worker)
{
    struct lease_worker *own = lease_worker_from(worker);

    free(own->remember);
    free(own->handoff);
    event_hub_free(own->event_hub);
    inbox_free(own->inbox);
    kept_free(&own->kept);
    turn_free(&own->turn);
    free(own);
}

void lease_worker_alarm(struct worker *worker, int64_t in_ms)
{
    handoff_alarm(lease_worker_from(worker)->handoff, in_ms);
}

void lease_worker_bars(const struct service *service, struct member_bars *bars)
{
    *bars = (struct member_bars){
        .grants = metric_total(service->metrics, (unsigned)SERVICE_METRICS + COUNT_GRANTED),
        .waiting = metric_total(service->metrics, (unsigned)SERVICE_METRICS + COUNT_WAITING)};
}

void lease_worker_tick(struct worker *worker)
{
    member_worker_tick(worker);
    if (lease_worker_from(worker)->kept.has_more)
        kept_judge(worker);
    metric_set(worker->metrics, (unsigned)SERVICE_METRICS + COUNT_WAITING,
               inbox_count(lease_worker_from(worker)->inbox));
}

void lease_worker_judge(struct worker *worker)
{
    inbox_judge(lease_worker_from(worker)->inbox);
    kept_judge(worker);
    events_judge(lease_worker_from(worker));
}

static bool all_inboxes_are_open(const struct service *service)
{
    for (unsigned i = 0; i < service->settings.threads; i++)
        if (!inbox_is_open(lease_worker_from(&service->workers[i])->inbox))
            return false;
    return true;
}

bool lease_worker_settled(const struct service *service)
{
    const char *run = store_run_id(service->workers[0].store);

    if (!member_daemon_settled(service))
        return false;
    /* Who is not let in has no inbox, and it is known why. */
    return member_line_problem(member_line_of_worker(&service->workers[0])) != PROBLEM_NONE ||
           run[0] == '\0' || all_inboxes_are_open(service);
}

const char *lease_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE])
{
    const char *check = member_worker_ready(worker, problem, detail);
    const struct inbox *inbox = lease_worker_from(worker)->inbox;

    if (check != NULL || inbox_is_open(inbox))
        return check;
    *problem = PROBLEM_STORE_UNAVAILABLE;
    snprintf(
        detail, READY_DETAIL_SIZE,
        "Leases are granted, but nobody can wait in line: the connection on which Redis says who is next "
        "is being made%s%s",
        inbox_why(inbox)[0] != '\0' ? ": " : ".", inbox_why(inbox));
    return "store-subscriber";
}

bool lease_worker_drain(struct worker *worker)
{
    struct lease_worker *own = lease_worker_from(worker);

    inbox_drain(own->inbox);
    event_hub_drain(own->event_hub);
    return inbox_is_shut(own->inbox) && inbox_count(own->inbox) == 0;
}
