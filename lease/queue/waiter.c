/* waiter.c - a client that waits in line for a lease: from "queued" to its answer.
 *
 *   wait_new       takes a place at the inbox                         503, or go on
 *   wait_begin     it is queued: park the request                     suspended
 *   wait_notified, wait_handed, wait_late, wait_gone: in line         201 | 409 | 410 | 503, or
 *   wait_claim     run claim.lua
 *   wait_claimed   send the grant                                     201 | 409 | 503 | 504
 *   wait_leave     run leave.lua
 *   wait_left      refuse, or claim after all                         409 | 503 | 504
 *   wait_look      it has perhaps been granted the lease: run again.lua when the inbox is open
 *   wait_found     send the grant, or it waits on                     201 | 409 | 503 | 504
 *
 *   REQUESTED --acquire.lua: queued-->                      QUEUED
 *   REQUESTED --queued, and "granted" came before-->        CLAIMING    claim.lua
 *   REQUESTED --any other answer-->                         DONE        (acquire.c answers)
 *   QUEUED    --message: granted-->                         CLAIMING    claim.lua
 *   QUEUED    --its time is up-->                           LEAVING     leave.lua "late"
 *   QUEUED    --its client has gone, or it may not have it any more--> RETURNING   leave.lua "gone"
 *   QUEUED    --message: superseded, session-lost-->        DONE        409 superseded, 410 session-lost
 *   QUEUED    --the inbox has closed-->                     DONE        503 store-unavailable, or draining
 *   QUEUED    --the inbox has closed, a release perhaps granted--> AGAIN
 *   QUEUED    --a release here has granted it the lease-->  DONE        201
 *   QUEUED    --that, but its client has gone-->            RETURNING   leave.lua "gone"
 *   AGAIN     --the inbox is open: again.lua: queued-->     QUEUED
 *   AGAIN     --claimed-->                                  DONE        201
 *   AGAIN     --its client has gone-->                      RETURNING   leave.lua "gone"
 *   AGAIN     --the service is stopping-->                  LEAVING     leave.lua "late"
 *   AGAIN     --superseded, lost-->                         DONE        409 superseded; 409 hold-over or 503
 *   AGAIN     --no answer, or no inbox for 3 s-->           DONE        504
 *   CLAIMING  --claimed-->                                  DONE        201
 *   CLAIMING  --claimed, but its client has gone-->         RETURNING   leave.lua "gone"
 *   CLAIMING  --superseded, lost-->                         DONE        409 superseded; 409 hold-over or 503
 *   CLAIMING  --not sent, unknown-->                        DONE        504
 *   LEAVING   --left-->                                     DONE        409 wait-timeout
 *   LEAVING   --granted-->                                  CLAIMING    claim.lua
 *   LEAVING   --superseded-->                               DONE        409 superseded
 *   LEAVING   --not sent, unknown-->                        DONE        504
 *   RETURNING --answered, however-->                        DONE        to nobody; or 403
 *
 * Whatever says superseded says not-yours, 403, in its place when the lease_id is another identity's by now.
 * Who is granted the lease and may not have it any more (wait_may_have_fn) goes to RETURNING as if its client
 * had gone, and gets 403 forbidden.
 *
 * A message that comes twice, or late, changes nothing. waited_ms is the time from the arrival of the request
 * to the sending of the claim, or of the release that granted it, rounded down: the ttl begins in the store
 * then, so a client that counts from there loses nothing and gains nothing.
 *
 * One to which a release may have granted the lease, or may yet, never gets 503: who gets it is out of the
 * line, or stands at an inbox that no release names any more. What is offered to it goes on after 3 s; what a
 * release grants to one that has got 504 meanwhile, or has gone, is given back. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/text/memory.h"

/* When thousands leave at once, because a client's machine has gone or all waited equally long, they leave in
 * turns: what others ask of the store must not wait behind all of them until its deadline. */
enum { LEAVING_MAX = 256, LATER_MS = 5, LATER_SPREAD_MS = 512 };
enum { LOOK_MS = 50, LOOKS_MAX = INBOX_SILENT_MS / LOOK_MS };

/* Thousands wait at once: nothing is kept that can be made again. */
struct waiter {
    struct inbox_place place;
    struct alarm alarm;
    struct http_suspended parked;
    struct worker *worker;
    const struct wait_kind *kind;
    const char *identity; /* NULL: nobody */
    uint64_t started_us;
    uint32_t wait_ms, extra_len;
    uint16_t keep_ms, kept_ms; /* kept_ms: for how long its place is kept when it goes now; 0: it is not */
    unsigned char state, name_len, lease_id_len, hold_len;
    unsigned char early; /* enum inbox_news: what came while acquire.lua or again.lua was under way */
    unsigned char looks; /* for how often it has looked for an inbox to ask again from */
    bool is_counted;     /* among those of its identity: service_waiting_take() */
    bool is_denied;      /* RETURNING, since it may not have the lease any more */
    char texts[];        /* name, lease_id, hold, extra */
};

/* All counted: the struct, its slot at the inbox, its alarm; beside the texts. */
enum { WAIT_BYTES_MAX = 160, SLOT_BYTES = 16, ALARM_BYTES = 16, MALLOC_BYTES = 16 };
_Static_assert(sizeof(struct waiter) + SLOT_BYTES + ALARM_BYTES + MALLOC_BYTES <= WAIT_BYTES_MAX,
               "ten thousand may wait");

/* Only while something is asked of the store. */
struct wait_call {
    struct lease_call lease;
    struct turn_call turn;
    struct waiter *waiter;
    const struct store_script *script;
    unsigned args;
    int64_t waited_ms;
    char inbox[INBOX_KEY_SIZE], wid[LEASE_NUMBER_SIZE]; /* of again.lua */
    char keep[LEASE_NUMBER_SIZE];                       /* of leave.lua */
};

#define TO(state) (1u << WAIT_##state)

bool wait_allows(enum wait_state from, enum wait_state to)
{
    static const unsigned arrows[WAIT_STATES] = {
        [WAIT_REQUESTED] = TO(QUEUED) | TO(CLAIMING) | TO(DONE),
        [WAIT_QUEUED] = TO(CLAIMING) | TO(LEAVING) | TO(RETURNING) | TO(AGAIN) | TO(DONE),
        [WAIT_CLAIMING] = TO(DONE) | TO(RETURNING),
        [WAIT_LEAVING] = TO(DONE) | TO(CLAIMING),
        [WAIT_RETURNING] = TO(DONE),
        [WAIT_AGAIN] = TO(QUEUED) | TO(LEAVING) | TO(RETURNING) | TO(DONE),
    };

    return arrows[from] >> to & 1;
}

static struct lease_worker *wait_worker(const struct waiter *waiter)
{
    return lease_worker_from(waiter->worker);
}

static struct wait_request wait_request_of(const struct waiter *waiter)
{
    struct wait_request request = {
        .name = {waiter->texts, waiter->name_len},
        .lease_id = {waiter->texts + waiter->name_len, waiter->lease_id_len},
        .identity = waiter->identity,
        .started_us = waiter->started_us,
        .wait_ms = waiter->wait_ms,
        .keep_ms = waiter->keep_ms,
    };

    request.hold = (struct bytes){request.lease_id.at + request.lease_id.len, waiter->hold_len};
    request.extra = (struct bytes){request.hold.at + request.hold.len, waiter->extra_len};
    return request;
}

uint64_t wait_wid(const struct waiter *waiter)
{
    return waiter->place.wid;
}

static uint64_t wait_late_ms(const struct waiter *waiter)
{
    return waiter->started_us / 1000 + waiter->wait_ms;
}

/* The only place where the state changes. */
static void wait_enter(struct waiter *waiter, enum wait_state next)
{
    assert(wait_allows(waiter->state, next));
    wait_worker(waiter)->walked[waiter->state] |= (unsigned char)(1u << next);
    waiter->state = (unsigned char)next;
    alarm_clear(inbox_clock(wait_worker(waiter)->inbox), &waiter->alarm);
}

void wait_drop(struct waiter *waiter)
{
    struct wait_request request = wait_request_of(waiter);

    wait_enter(waiter, WAIT_DONE);
    if (waiter->kept_ms > 0)
        kept_add(waiter->worker, &request, waiter->kept_ms);
    if (waiter->is_counted)
        service_waiting_give(waiter->worker, waiter->identity, request.name, request.lease_id,
                             waiter->kept_ms);
    inbox_leave(wait_worker(waiter)->inbox, &waiter->place);
    free(waiter);
}

void wait_drop_granted(struct waiter *waiter)
{
    waiter->kept_ms = 0;
    wait_drop(waiter);
}

/* -- how it ends. req: NULL when the request is parked. */

static enum step wait_refuse_detail(struct waiter *waiter, struct http_request *req, enum problem problem,
                                    const char *detail)
{
    enum step step = http_refuse_detail(req != NULL ? req : http_resume(&waiter->parked), problem, detail);

    wait_drop(waiter);
    return step;
}

/* Not granted, and it stands in line no more, or will be passed over. */
static enum step wait_sent_away(struct waiter *waiter, struct http_request *req)
{
    static const char cut_off[] =
        "Nothing was granted: this service was cut off from the store while you waited. Ask again: with the "
        "same lease_id you may still have your place in the line.";
    static const char stopping[] =
        "Nothing was granted: the service is stopping. Ask again, at another instance or a little later.";
    bool draining = atomic_load(&waiter->worker->service->draining);

    waiter->kept_ms = waiter->keep_ms;
    worker_count(waiter->worker, COUNT_WAIT_SENT_AWAY);
    return wait_refuse_detail(waiter, req, draining ? PROBLEM_DRAINING : PROBLEM_STORE_UNAVAILABLE,
                              draining ? stopping : cut_off);
}

/* The i-th lease that it waits for: of several the i-th name in [[stripe, name], ...]. None has a quote. */
static struct bytes wait_lease(const struct wait_request *request, unsigned i)
{
    struct bytes rest = request->extra, name = {NULL, 0};

    if (rest.len == 0)
        return i == 0 ? request->name : name;
    for (unsigned quotes = 0; quotes <= 4 * i + 3; quotes++)
        name = bytes_cut(&rest, '"');
    return rest.len > 0 ? name : (struct bytes){NULL, 0};
}

/* The first lease that it may not have any more; empty: it may have all. What it has shown may have been
 * taken out: then it may have none. */
static struct bytes wait_denied_lease(const struct waiter *waiter)
{
    struct wait_request request = wait_request_of(waiter);
    wait_may_have_fn *may_have = wait_worker(waiter)->may_have;
    struct bytes lease = {NULL, 0};

    if (!http_suspended_stands(&waiter->parked))
        return request.name;
    for (unsigned i = 0; may_have != NULL && (lease = wait_lease(&request, i)).len > 0; i++)
        if (!may_have(waiter->worker, waiter->identity, lease))
            break;
    return lease;
}

/* It has given back what it may not have any more. */
static enum step wait_denied(struct waiter *waiter)
{
    struct bytes denied = wait_denied_lease(waiter), name = wait_request_of(waiter).name;
    enum step step = service_forbid(http_resume(&waiter->parked), ACCESS_ACQUIRE,
                                    denied.len > 0 ? denied : name);

    worker_count(waiter->worker, COUNT_WAIT_SENT_AWAY);
    wait_drop(waiter);
    return step;
}

static enum step wait_superseded(struct waiter *waiter, struct http_request *req)
{
    enum step step = lease_refuse(req != NULL ? req : http_resume(&waiter->parked), PROBLEM_SUPERSEDED,
                                  wait_request_of(waiter).name);

    worker_count(waiter->worker, COUNT_WAIT_SUPERSEDED);
    wait_drop(waiter);
    return step;
}

/* {"superseded" | "not-yours", seq}; any other word is 500. */
static enum step wait_refused(struct waiter *waiter, const struct store_reply *reply)
{
    if (store_reply_is(reply, "superseded"))
        return wait_superseded(waiter, NULL);
    return wait_refuse_detail(
        waiter, NULL, store_reply_is(reply, "not-yours") ? PROBLEM_NOT_YOURS : PROBLEM_INTERNAL, NULL);
}

/* A call for it was not sent, or has no answer: it stands in line, or holds, or neither. */
static enum step wait_unheard(struct waiter *waiter)
{
    if (waiter->state == WAIT_RETURNING)
        worker_count(waiter->worker, COUNT_WAIT_GONE);
    return wait_refuse_detail(waiter, NULL, PROBLEM_OUTCOME_UNKNOWN, NULL);
}

/* Nobody reads it, but a client that has closed only its own side. */
static enum step wait_to_nobody(struct waiter *waiter)
{
    worker_count(waiter->worker, COUNT_WAIT_GONE);
    return wait_refuse_detail(waiter, NULL, PROBLEM_INVALID_REQUEST, LEASE_WAIT_CLOSED);
}

/* -- what is asked of the store */

static member_done_fn wait_left;

static enum problem wait_send(struct wait_call *call)
{
    struct waiter *waiter = call->waiter;
    enum problem bad;

    lease_call_arg(&call->lease, 5, grant_may(waiter->worker));
    call->waited_ms = (int64_t)((loop_now_us() - waiter->started_us) / 1000);
    bad = lease_call_begin(&call->lease, waiter->worker, call->script, call->args, call->lease.record.done);
    if (bad != PROBLEM_NONE)
        free(call);
    return bad;
}

static void wait_goes(struct turn_call *turn, enum problem bad)
{
    struct wait_call *call = container_of(turn, struct wait_call, turn);
    struct waiter *waiter = call->waiter;

    assert(bad == PROBLEM_NONE); /* only an acquire is refused */
    bad = wait_send(call);
    if (bad != PROBLEM_NONE) {
        turn_done(&wait_worker(waiter)->turn, 0);
        wait_worker(waiter)->leaving -= waiter->state != WAIT_CLAIMING;
        wait_unheard(waiter);
    }
}

/* why: of leave.lua; else NULL. */
static enum problem wait_run(struct waiter *waiter, const struct store_script *script, const char *why,
                             member_done_fn *done)
{
    struct wait_call *call = must_have(calloc(1, sizeof(*call)));
    struct wait_request request = wait_request_of(waiter);

    call->args = 5;
    lease_call_fill(&call->lease, waiter->worker, request.name);
    lease_call_secret(&call->lease, request.lease_id);
    lease_call_arg(&call->lease, 4, request.hold);
    if (why != NULL)
        lease_call_arg(&call->lease, ++call->args, bytes_of(why));
    if (why != NULL && !waiter->kind->in_turn)
        lease_call_arg(&call->lease, ++call->args,
                       bytes_of_number(call->keep, waiter->is_denied ? 0 : request.keep_ms));
    if (request.extra.len > 0)
        lease_call_arg(&call->lease, ++call->args, request.extra);
    if (waiter->state == WAIT_AGAIN) {
        snprintf(call->inbox, sizeof(call->inbox), "%s", inbox_key(wait_worker(waiter)->inbox).at);
        snprintf(call->wid, sizeof(call->wid), "%" PRIu64, wait_wid(waiter));
        lease_call_arg(&call->lease, ++call->args, bytes_of(call->inbox));
        lease_call_arg(&call->lease, ++call->args, bytes_of(call->wid));
    }
    call->args = lease_call_asker(&call->lease, waiter->identity, call->args);
    call->waiter = waiter;
    call->script = script;
    call->lease.record.done = done;
    if (!waiter->kind->in_turn)
        return wait_send(call);
    call->turn.go = wait_goes;
    turn_wait(&wait_worker(waiter)->turn, &call->turn, why == NULL ? TURN_CLAIM : TURN_LEAVE);
    return PROBLEM_NONE;
}

static void wait_call_end(struct wait_call *call)
{

    if (call->waiter->kind->in_turn)
        turn_done(&wait_worker(call->waiter)->turn, store_network_us(call->waiter->worker->store));
    free(call);
}

static enum step wait_leave(struct waiter *waiter, enum wait_state next)
{
    enum problem bad;

    wait_enter(waiter, next);
    bad = wait_run(waiter, waiter->kind->leave, next == WAIT_RETURNING ? "gone" : "late", wait_left);
    if (bad == PROBLEM_NONE) {
        wait_worker(waiter)->leaving++;
        return SUSPENDED;
    }
    return wait_unheard(waiter);
}

static enum step wait_granted(struct waiter *waiter, const struct store_reply *reply, int64_t waited_ms)
{
    struct wait_request request = wait_request_of(waiter);
    enum step step;

    waiter->is_denied = wait_denied_lease(waiter).len > 0;
    if (waiter->is_denied)
        return wait_leave(waiter, WAIT_RETURNING);
    step = waiter->kind->claimed(http_resume(&waiter->parked), &request, reply, waited_ms);
    worker_count(waiter->worker, COUNT_WAIT_GRANTED);
    metric_observe_us(waiter->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_WAIT_TIME,
                      1000 * (uint64_t)waited_ms);
    wait_drop(waiter);
    return step;
}

/* Of several leases the scripts say which one they mean. */
static struct bytes wait_name(const struct waiter *waiter, struct bytes said)
{
    return said.len > 0 ? said : wait_request_of(waiter).name;
}

/* It has gone on to the next, or an administrator has ended it. how: "returned" or "unknown" when it never
 * was a hold, so that the lease_id is still good. */
static enum step wait_lost(struct waiter *waiter, struct bytes how, struct bytes name)
{
    enum step step;

    if (waiter->state == WAIT_AGAIN && bytes_are(how, "unknown"))
        return wait_sent_away(waiter, NULL); /* it was passed over */
    if (bytes_are(how, "returned") || bytes_are(how, "unknown")) {
        worker_count(waiter->worker, COUNT_WAIT_SENT_AWAY);
        return wait_refuse_detail(
            waiter, NULL, PROBLEM_STORE_UNAVAILABLE,
            "Nothing was granted: the lease was handed to you, but it went on before this service could "
            "claim "
            "it; the service stood still, or an administrator ended the grant. Ask again: your place in line "
            "is gone.");
    }
    step = lease_ended_answer(http_resume(&waiter->parked), PROBLEM_HOLD_OVER, wait_name(waiter, name), how);
    wait_drop(waiter);
    return step;
}

/* What claim.lua has said, and again.lua may. */
static enum step wait_has(struct waiter *waiter, const struct store_reply *reply, int64_t waited_ms)
{
    if (store_reply_is(reply, "claimed")) {
        return http_suspended_is_gone(&waiter->parked) ? wait_leave(waiter, WAIT_RETURNING)
                                                       : wait_granted(waiter, reply, waited_ms);
    }
    return store_reply_is(reply, "lost")
               ? wait_lost(waiter, store_reply_text(reply, 2), store_reply_text(reply, 3))
               : wait_refused(waiter, reply);
}

static enum step wait_claimed(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct wait_call *own = container_of(call, struct wait_call, lease.record);
    struct waiter *waiter = own->waiter;
    int64_t waited_ms = own->waited_ms;

    wait_call_end(own);
    return bad == PROBLEM_NONE ? wait_has(waiter, reply, waited_ms) : wait_unheard(waiter);
}

/* What is not sent is unknown, too: a release may have granted it the lease before. */
static enum step wait_claim(struct waiter *waiter, struct http_request *req)
{
    wait_enter(waiter, WAIT_CLAIMING);
    if (wait_run(waiter, waiter->kind->claim, NULL, wait_claimed) == PROBLEM_NONE)
        return SUSPENDED;
    return wait_refuse_detail(waiter, req, PROBLEM_OUTCOME_UNKNOWN, NULL);
}

static enum step wait_timed_out(struct waiter *waiter, const struct store_reply *reply)
{
    struct http_request *req = http_resume(&waiter->parked);
    int64_t kept_ms = store_reply_integer(reply, 7);
    struct json_out *json = http_problem_begin(
        req, PROBLEM_WAIT_TIMEOUT,
        kept_ms > 0 ? "Nothing was granted. Your place in the line is kept: ask again with the same lease_id."
                    : NULL);

    lease_held_write(json, req, wait_name(waiter, store_reply_text(reply, 6)), reply, 3);
    if (kept_ms > 0)
        json_int(json, "place_kept_ms", kept_ms);
    worker_count(waiter->worker, COUNT_WAIT_TIMED_OUT);
    wait_drop(waiter);
    return http_problem_end(req, 0);
}

static enum step wait_left(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct wait_call *own = container_of(call, struct wait_call, lease.record);
    struct waiter *waiter = own->waiter;

    wait_call_end(own);
    wait_worker(waiter)->leaving--;
    if (bad == PROBLEM_NONE && store_reply_is(reply, "left"))
        waiter->kept_ms = (uint16_t)store_reply_integer(reply, 7);
    if (bad == PROBLEM_NONE && store_reply_is(reply, "left") && bytes_are(store_reply_text(reply, 2), "more"))
        handoff_more(wait_worker(waiter)->handoff, wait_request_of(waiter).name);
    if (bad != PROBLEM_NONE)
        return wait_unheard(waiter);
    if (waiter->state == WAIT_RETURNING)
        return waiter->is_denied ? wait_denied(waiter) : wait_to_nobody(waiter);
    if (store_reply_is(reply, "left")) {
        return loop_now_ms() < wait_late_ms(waiter) ? wait_sent_away(waiter, NULL)
                                                    : wait_timed_out(waiter, reply);
    }
    if (store_reply_is(reply, "granted"))
        return wait_claim(waiter, NULL);
    return wait_refused(waiter, reply);
}

/* -- in line */

/* Only a release that names the inbox grants without an offer, and only a lease alone. */
static bool wait_is_perhaps_granted(const struct waiter *waiter)
{
    return !waiter->kind->in_turn && inbox_has_perhaps_granted(wait_worker(waiter)->inbox,
                                                               keys_stripe_of(wait_request_of(waiter).name));
}

static enum step wait_again(struct waiter *waiter)
{
    if (waiter->state == WAIT_REQUESTED)
        wait_enter(waiter, WAIT_QUEUED);
    wait_enter(waiter, WAIT_AGAIN);
    waiter->looks = 0;
    alarm_set(inbox_clock(wait_worker(waiter)->inbox), &waiter->alarm, loop_now_ms());
    return SUSPENDED;
}

static enum step wait_act(struct waiter *waiter, struct http_request *req, enum inbox_news news)
{
    switch (news) {
    case INBOX_GRANTED: return wait_claim(waiter, req);
    case INBOX_SUPERSEDED: return wait_superseded(waiter, req);
    case INBOX_SESSION_LOST: return wait_refuse_detail(waiter, req, PROBLEM_SESSION_LOST, NULL);
    case INBOX_HAS_CLOSED:
        if (wait_is_perhaps_granted(waiter))
            return wait_again(waiter);
        return wait_sent_away(waiter, req);
    case INBOX_JUDGED:
    case INBOX_NO_NEWS: break;
    }
    abort();
}

static bool wait_leaves_later(struct waiter *waiter)
{
    struct lease_worker *own = wait_worker(waiter);

    if (own->leaving < LEAVING_MAX)
        return false;
    alarm_set(inbox_clock(own->inbox), &waiter->alarm,
              loop_now_ms() + LATER_MS + waiter->place.wid % LATER_SPREAD_MS);
    return true;
}

/* In the other states it is judged when it is queued, or granted the lease. */
static enum step wait_judged(struct waiter *waiter)
{
    if (waiter->state != WAIT_QUEUED || wait_denied_lease(waiter).len == 0 || wait_leaves_later(waiter))
        return SUSPENDED;
    waiter->is_denied = true;
    return wait_leave(waiter, WAIT_RETURNING);
}

/* -- the inbox has closed, and a release has perhaps granted the lease: again.lua */

static enum step wait_found(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct wait_call *own = container_of(call, struct wait_call, lease.record);
    struct waiter *waiter = own->waiter;
    int64_t waited_ms = own->waited_ms;

    wait_call_end(own);
    wait_worker(waiter)->leaving--;
    if (bad != PROBLEM_NONE)
        return wait_unheard(waiter);
    if (!store_reply_is(reply, "queued"))
        return wait_has(waiter, reply, waited_ms);
    wait_enter(waiter, WAIT_QUEUED);
    if (waiter->early != INBOX_NO_NEWS)
        return wait_act(waiter, NULL, (enum inbox_news)waiter->early);
    if (http_suspended_is_gone(&waiter->parked))
        return wait_leave(waiter, WAIT_RETURNING);
    alarm_set(inbox_clock(wait_worker(waiter)->inbox), &waiter->alarm, wait_late_ms(waiter));
    return wait_judged(waiter);
}

static void wait_rejoin(struct waiter *waiter)
{
    struct inbox *inbox = wait_worker(waiter)->inbox;

    inbox_leave(inbox, &waiter->place); /* messages to the inbox of before find it no more */
    inbox_enter(inbox, &waiter->place);
    waiter->early = INBOX_NO_NEWS;
    if (wait_run(waiter, &script_again, NULL, wait_found) == PROBLEM_NONE)
        wait_worker(waiter)->leaving++;
    else
        wait_unheard(waiter);
}

static void wait_look(struct waiter *waiter)
{
    struct lease_worker *own = wait_worker(waiter);
    bool draining = atomic_load(&waiter->worker->service->draining), is_open = inbox_is_open(own->inbox);

    if (own->leaving >= LEAVING_MAX || (!is_open && !draining && waiter->looks < LOOKS_MAX)) {
        waiter->looks++;
        alarm_set(inbox_clock(own->inbox), &waiter->alarm, loop_now_ms() + LOOK_MS);
    } else if (http_suspended_is_gone(&waiter->parked)) {
        wait_leave(waiter, WAIT_RETURNING);
    } else if (is_open) {
        wait_rejoin(waiter);
    } else if (draining) {
        wait_leave(waiter, WAIT_LEAVING);
    } else {
        wait_unheard(waiter);
    }
}

/* -- what happens to a waiter */

/* While a script is under way its answer will say the same. What was granted early can still be claimed when
 * the inbox has closed since. */
static void wait_notified(struct inbox_place *place, enum inbox_news news)
{
    struct waiter *waiter = container_of(place, struct waiter, place);

    if (news == INBOX_JUDGED)
        wait_judged(waiter);
    else if (waiter->state == WAIT_QUEUED)
        wait_act(waiter, NULL, news);
    else if ((waiter->state == WAIT_REQUESTED || waiter->state == WAIT_AGAIN) &&
             (news != INBOX_HAS_CLOSED || waiter->early == INBOX_NO_NEWS))
        waiter->early = (unsigned char)news;
}

static void wait_late(struct alarm *alarm)
{
    struct waiter *waiter = container_of(alarm, struct waiter, alarm);
    bool returns;

    if (waiter->state == WAIT_AGAIN) {
        wait_look(waiter);
    } else if (!wait_leaves_later(waiter)) {
        waiter->is_denied = wait_denied_lease(waiter).len > 0;
        returns = waiter->is_denied || http_suspended_is_gone(&waiter->parked);
        if (returns || loop_now_ms() >= wait_late_ms(waiter))
            wait_leave(waiter, returns ? WAIT_RETURNING : WAIT_LEAVING);
        else /* it was to leave later, and may have it again */
            alarm_set(inbox_clock(wait_worker(waiter)->inbox), alarm, wait_late_ms(waiter));
    }
}

/* In the other states it is seen when the call that is under way has ended. */
static void wait_gone(struct http_suspended *parked)
{
    struct waiter *waiter = container_of(parked, struct waiter, parked);

    if (waiter->state == WAIT_QUEUED && !wait_leaves_later(waiter))
        wait_leave(waiter, WAIT_RETURNING);
}

enum step wait_begin(struct waiter *waiter, struct http_request *req)
{
    worker_count(waiter->worker, COUNT_WAIT_QUEUED);
    waiter->kept_ms = 0;
    if (waiter->identity != NULL && !waiter->is_counted) { /* beyond its quota, but in a place that it had */
        waiter->is_counted = true;
        service_quota_count(waiter->identity, ACCESS_WAITING);
    }
    if (waiter->early != INBOX_NO_NEWS) {
        if (wait_act(waiter, req, (enum inbox_news)waiter->early) == ANSWERED)
            return ANSWERED;
        http_suspend(req, &waiter->parked);
        return SUSPENDED;
    }
    wait_enter(waiter, WAIT_QUEUED);
    alarm_set(inbox_clock(wait_worker(waiter)->inbox), &waiter->alarm, wait_late_ms(waiter));
    http_suspend(req, &waiter->parked);
    return wait_judged(waiter); /* the rules may have changed while it was queued */
}

struct waiter *wait_new(struct worker *worker, const struct wait_kind *kind,
                        const struct wait_request *request)
{
    struct inbox *inbox = lease_worker_from(worker)->inbox;
    const struct bytes texts[] = {request->name, request->lease_id, request->hold, request->extra};
    size_t len = request->name.len + request->lease_id.len + request->hold.len + request->extra.len;
    struct waiter *waiter;

    if (!inbox_is_open(inbox)) {
        if (request->is_counted)
            service_waiting_give(worker, request->identity, request->name, request->lease_id,
                                 request->kept_ms);
        return NULL;
    }
    waiter = must_have(calloc(1, sizeof(*waiter) + len));
    waiter->place.notify = wait_notified;
    waiter->alarm.rings = wait_late;
    waiter->parked.gone = wait_gone;
    waiter->worker = worker;
    waiter->kind = kind;
    waiter->identity = request->identity;
    waiter->is_counted = request->is_counted;
    waiter->started_us = request->started_us;
    waiter->wait_ms = (uint32_t)request->wait_ms;
    waiter->keep_ms = (uint16_t)request->keep_ms;
    waiter->kept_ms = (uint16_t)request->kept_ms;
    waiter->name_len = (unsigned char)request->name.len;
    waiter->lease_id_len = (unsigned char)request->lease_id.len;
    waiter->hold_len = (unsigned char)request->hold.len;
    waiter->extra_len = (uint32_t)request->extra.len;
    len = 0;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].len > 0)
            memcpy(waiter->texts + len, texts[i].at, texts[i].len);
        len += texts[i].len;
    }
    inbox_enter(inbox, &waiter->place);
    return waiter;
}

/* -- a release here has granted the lease */

/* While a call of it is under way, that will say the same. */
void wait_handed(struct worker *worker, struct bytes name, const struct store_reply *reply, uint64_t sent_us)
{
    struct inbox_place *place = inbox_place_of(lease_worker_from(worker)->inbox,
                                               inbox_wid_read(store_reply_text(reply, WAIT_HANDED_WID)));
    struct waiter *waiter = place != NULL ? container_of(place, struct waiter, place) : NULL;

    if (waiter == NULL) { /* its client got 504, or has gone */
        kept_give_back(worker, name, reply);
    } else if (waiter->state != WAIT_QUEUED) {
        wait_notified(place, INBOX_GRANTED);
    } else if (http_suspended_is_gone(&waiter->parked)) {
        wait_leave(waiter, WAIT_RETURNING);
    } else {
        wait_granted(waiter, reply,
                     sent_us > waiter->started_us ? (int64_t)(sent_us - waiter->started_us) / 1000 : 0);
    }
}
