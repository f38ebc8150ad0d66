/* requests.c - pawl-lease on a quorum: four operations on a lease; of all else, that it is not there.
 *
 *   quorum_*_start      read the request            400 | 403 | 422 | 501 | 503, or go on
 *   wait_begin          it is held: park, and ask again at random moments       429, or suspended
 *   acquired, renewed   send the grant              201 | 200
 *   released                                        204
 *   looked              send it                     200
 *
 * All others: refused(): 403 | 409 | 410 | 422 | 503 | 504. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lease/operation.h"
#include "lease/quorum/quorum.h"
#include "lease/request.h"
#include "scripts.h"
#include "shared/text/json.h"
#include "shared/text/memory.h"

struct quorum_request {
    struct quorum_call call;
    struct http_request *req;
    enum step (*send)(struct quorum_request *r); /* what was asked for is so */
    struct lease_request body;
    struct json *about;    /* what the nodes keep beside the hold that was found, for the answer; or NULL */
    struct bytes lease_id; /* as it came, or was made */
    uint64_t began_us;     /* of an acquire */
    int64_t waited_ms;     /* until its last attempt was begun */
    char name[NAME_MAX_BYTES + 1], digest[DIGEST_SECRET + 1];
};

/* -- common */

/* NULL, or what is wrong with the name in the path: 400. */
static const char *request_begin(struct quorum_request *r, struct http_request *req)
{
    const char *wrong = name_from_path(http_path_part(req, 0), r->name, &r->call.name);

    r->req = req;
    r->call.quorum = worker_of(req)->extra;
    r->call.who = bytes_of(http_identity(req) != NULL ? http_identity(req) : "");
    return wrong;
}

/* The digest needs the store's id: without it nothing can be asked. */
static enum problem request_secret(struct quorum_request *r)
{
    char detail[READY_DETAIL_SIZE];
    enum problem problem = quorum_problem(r->call.quorum, detail);

    if (problem != PROBLEM_NONE)
        return problem;
    digest_secret(bytes_of(r->call.quorum->store), r->lease_id, r->digest);
    r->call.lease_id = bytes_of(r->digest);
    return PROBLEM_NONE;
}

/* Likewise; and of a Fencing-Token: only that very hold. */
static enum problem request_hold(struct quorum_request *r)
{
    struct token_claim claim = {.hold = {"", 0}};
    enum problem problem = request_secret(r);

    if (problem == PROBLEM_NONE)
        problem = lease_claim_read(r->req, &claim);
    if (problem != PROBLEM_NONE || claim.hold.len == 0)
        return problem;
    if (!bytes_are(claim.store, r->call.quorum->store))
        return PROBLEM_WRONG_STORE;
    snprintf(r->call.attempt, sizeof(r->call.attempt), "%.*s", (int)claim.hold.len, claim.hold.at);
    return bytes_equal(claim.lease, r->call.name) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

/* "": nothing is known. */
static struct bytes about_text(const struct quorum_request *r, const char *name)
{
    struct bytes text = {"", 0};

    if (r->about != NULL)
        json_get_text(r->about, name, &text);
    return text;
}

/* As it was said, or {}; the bytes are r's. */
static struct bytes about_meta(struct quorum_request *r)
{
    size_t len = 0;

    return r->about != NULL && json_get_object_raw(r->about, "meta", r->body.meta, sizeof(r->body.meta),
                                                   &len) == JSON_FOUND
               ? (struct bytes){r->body.meta, len}
               : BYTES("{}");
}

static enum step refused(struct quorum_request *r, enum problem problem)
{
    char detail[96];

    /* Held; or it was held as long as the request could wait. */
    if (problem == PROBLEM_LEASE_HELD || problem == PROBLEM_WAIT_TIMEOUT) {
        struct json_out *json = http_problem_begin(r->req, problem, NULL);

        json_text(json, "lease", r->call.name);
        json_int(json, "token", r->call.token);
        json_text_or_null(json, "holder", service_holder(r->req, r->call.name, about_text(r, "holder")));
        json_int(json, "expires_in_ms", r->call.expires_in_ms);
        return http_problem_end(r->req, 0);
    }
    if (problem == PROBLEM_LEASE_LOST)
        return lease_ended_answer(r->req, problem, r->call.name, BYTES("unknown"));
    snprintf(detail, sizeof(detail), "The member ttl_ms must be at most %lld: --max-ttl of this store.",
             (long long)r->call.quorum->max_ttl);
    return http_refuse_detail(r->req, problem, problem == PROBLEM_OUT_OF_RANGE ? detail : NULL);
}

/* Answers, and frees what the call has kept. */
static enum step request_end(struct quorum_request *r, enum problem problem)
{
    enum step step;

    r->about = r->call.found.len > 0 ? json_parse(r->call.found, REQUEST_LEVELS, NULL) : NULL;
    step = problem == PROBLEM_NONE ? r->send(r) : refused(r, problem);
    json_free(r->about);
    quorum_call_free(&r->call);
    return step;
}

static void request_done(struct quorum_call *call, enum problem problem)
{
    request_end(container_of(call, struct quorum_request, call), problem);
}

/* problem: so far. */
static enum step request_goes(struct quorum_request *r, enum problem problem,
                              enum problem (*what)(struct quorum_call *),
                              enum step (*send)(struct quorum_request *))
{
    if (r->call.done == NULL)
        r->call.done = request_done;
    r->send = send;
    if (problem == PROBLEM_NONE)
        problem = what(&r->call);
    return problem == PROBLEM_NONE ? SUSPENDED : request_end(r, problem);
}

/* The grant is what the request says; or, if the nodes have kept something, that. */
static enum step request_grant(struct quorum_request *r, unsigned status)
{
    const struct quorum_call *call = &r->call;
    bool is_kept = r->about != NULL;
    struct grant grant = {
        .lease = call->name,
        .store = bytes_of(call->quorum->store),
        .token = {QUORUM_EPOCH, call->token},
        .hold = bytes_of(call->hold),
        .lease_id = r->lease_id,
        .holder = is_kept ? about_text(r, "holder") : (struct bytes){r->body.holder, r->body.holder_len},
        .identity = is_kept ? about_text(r, "identity") : call->who,
        .meta = is_kept ? about_meta(r) : (struct bytes){r->body.meta, r->body.meta_len},
        .holds = 1,
        .ttl_ms = call->hold_ttl_ms,
        .expires_in_ms = call->expires_in_ms,
        .waited_ms = call->is_replay ? 0 : r->waited_ms,
    };

    return grant_answer(r->req, &grant, status);
}

/* -- acquire */

static const char *acquire_not_there(const struct quorum_request *r, const struct acquire_options *options)
{
    const struct lease_request *body = &r->body;

    return body->mode != TOKEN_EXCLUSIVE ? "mode and permits"
           : body->reentrant             ? "reentrant"
           : body->lock_delay_ms > 0     ? "lock_delay_ms"
           : body->session_len > 0       ? "session"
           : options->key.key.len > 0    ? "Idempotency-Key"
                                         : NULL;
}

static enum step not_there(struct http_request *req, const char *what)
{
    char detail[160];

    snprintf(detail, sizeof(detail),
             "Not there in quorum mode, which has exclusive leases: %s. Nothing was changed.", what);
    return http_refuse_detail(req, PROBLEM_NOT_IN_QUORUM_MODE, detail);
}

/* Lies where the answer will be written. */
static struct bytes about_write(struct quorum_request *r)
{
    struct json_out *json = http_json(r->req);

    json_out_reset(json);
    json_object(json, NULL);
    json_text(json, "holder", (struct bytes){r->body.holder, r->body.holder_len});
    json_text(json, "identity", r->call.who);
    json_raw(json, "meta",
             r->body.meta_len > 0 ? (struct bytes){r->body.meta, r->body.meta_len} : BYTES("{}"));
    json_object_end(json);
    return json_out_bytes(json);
}

static enum step acquired(struct quorum_request *r)
{
    bool is_replay = r->call.is_replay;

    worker_count(worker_of(r->req), is_replay ? COUNT_REPLAYED : COUNT_GRANTED);
    return request_grant(r, is_replay ? 200 : 201);
}

/* -- who waits: there is no line, so it asks again, at moments of its own, until its time is up. */

enum { WAIT_MIN_MS = 50, WAIT_SPAN_MS = 451 };

/* The request's scratch space does not outlive http_suspend(). */
struct quorum_wait {
    struct quorum_request r; /* its req: resumed */
    struct http_suspended suspended;
    struct loop_timer pause;
    struct worker *worker;
    const char *identity;
    struct json_out about;
    bool is_counted;
};

/* Once, and no attempt is under way. INVALID_REQUEST: its client has gone. */
static void wait_end(struct quorum_wait *w, enum problem problem)
{
    struct quorum_request *r = &w->r;

    loop_timer_done(&w->pause);
    r->req = http_resume(&w->suspended);
    if (w->is_counted)
        service_waiting_give(w->worker, w->identity, r->call.name, r->lease_id, 0);
    worker_count(w->worker, problem == PROBLEM_NONE              ? COUNT_WAIT_GRANTED
                            : problem == PROBLEM_WAIT_TIMEOUT    ? COUNT_WAIT_TIMED_OUT
                            : problem == PROBLEM_INVALID_REQUEST ? COUNT_WAIT_GONE
                                                                 : COUNT_WAIT_SENT_AWAY);
    if (problem == PROBLEM_NONE)
        metric_observe_us(w->worker->metrics, (unsigned)SERVICE_METRICS + COUNT_WAIT_TIME,
                          1000 * (uint64_t)r->waited_ms);
    if (problem == PROBLEM_FORBIDDEN)
        service_forbid(r->req, ACCESS_ACQUIRE, r->call.name);
    else if (problem == PROBLEM_INVALID_REQUEST)
        http_refuse_detail(r->req, problem, LEASE_WAIT_CLOSED);
    else
        request_end(r, problem);
    quorum_call_free(&r->call);
    json_out_done(&w->about);
    free(w);
}

/* 0: its time is up. */
static uint64_t wait_left_ms(const struct quorum_wait *w)
{
    uint64_t late_us = w->r.began_us + 1000 * (uint64_t)w->r.body.wait_ms, now_us = loop_now_us();

    return late_us > now_us ? (late_us - now_us) / 1000 + 1 : 0;
}

static void wait_pause(struct quorum_wait *w)
{
    uint64_t pause_ms = quorum_random_ms(WAIT_MIN_MS, WAIT_SPAN_MS), left_ms = wait_left_ms(w);

    loop_timer_arm(&w->pause, pause_ms < left_ms ? pause_ms : left_ms, 0);
}

/* Its credential, or its rule, was taken out while it waited. */
static bool wait_is_denied(const struct quorum_wait *w)
{
    return !http_suspended_stands(&w->suspended) ||
           (w->worker->access != NULL &&
            !access_allows(w->worker->access, w->identity, ACCESS_ACQUIRE, w->r.call.name));
}

/* If not, or if nobody knows, it may hold it until its ttl ends. */
static void wait_given_back(struct quorum_call *call, enum problem problem)
{
    bool is_over = problem == PROBLEM_NONE || problem == PROBLEM_LEASE_LOST;

    wait_end(container_of(call, struct quorum_wait, r.call),
             is_over ? PROBLEM_FORBIDDEN : PROBLEM_OUTCOME_UNKNOWN);
}

static void wait_done(struct quorum_call *call, enum problem problem)
{
    struct quorum_wait *w = container_of(call, struct quorum_wait, r.call);

    if (problem == PROBLEM_NONE && wait_is_denied(w)) {
        call->done = wait_given_back;
        problem = quorum_release(call);
        if (problem != PROBLEM_NONE)
            wait_given_back(call, problem);
        return;
    }
    if (problem != PROBLEM_LEASE_HELD)
        wait_end(w, problem);
    else if (wait_left_ms(w) == 0)
        wait_end(w, PROBLEM_WAIT_TIMEOUT);
    else
        wait_pause(w);
}

/* PROBLEM_NONE: it may ask once more. What was asked for when its client left may yet be granted: then it is
 * its lease_id's, for the ttl, as of any acquire that comes late. */
static enum problem wait_may_go_on(const struct quorum_wait *w)
{
    if (atomic_load(&w->worker->service->draining))
        return PROBLEM_DRAINING;
    if (http_suspended_is_gone(&w->suspended))
        return PROBLEM_INVALID_REQUEST;
    return wait_is_denied(w) ? PROBLEM_FORBIDDEN : PROBLEM_NONE;
}

static void wait_ask(struct loop_timer *timer)
{
    struct quorum_wait *w = container_of(timer, struct quorum_wait, pause);
    enum problem problem = wait_may_go_on(w);

    w->r.waited_ms = (int64_t)((loop_now_us() - w->r.began_us) / 1000);
    if (problem == PROBLEM_NONE)
        problem = quorum_acquire(&w->r.call);
    if (problem != PROBLEM_NONE)
        wait_end(w, problem);
}

static enum step wait_begin(struct quorum_request *r)
{
    struct worker *worker = worker_of(r->req);
    const char *identity = http_identity(r->req);
    bool is_limited = service_judges(r->req) && identity != NULL;
    uint64_t kept_ms; /* no place is */
    struct quorum_wait *w;

    if (is_limited && !service_waiting_take(worker, identity, r->call.name, r->lease_id, &kept_ms)) {
        quorum_call_free(&r->call);
        return service_quota_refuse(r->req, ACCESS_WAITING);
    }
    w = must_have(calloc(1, sizeof(*w)));
    w->r = *r;
    w->r.call.name.at = w->r.name;
    w->r.call.lease_id.at = w->r.digest;
    w->r.lease_id.at = w->r.body.lease_id;
    json_out_append(&w->about, r->call.about);
    w->r.call.about = json_out_bytes(&w->about);
    w->r.call.done = wait_done;
    w->worker = worker;
    w->identity = identity;
    w->is_counted = is_limited;
    loop_timer_init(worker->loop, &w->pause, wait_ask);
    worker_count(worker, COUNT_WAIT_QUEUED);
    http_suspend(r->req, &w->suspended);
    wait_pause(w);
    return SUSPENDED;
}

static void acquire_done(struct quorum_call *call, enum problem problem)
{
    struct quorum_request *r = container_of(call, struct quorum_request, call);

    if (problem == PROBLEM_LEASE_HELD && r->body.wait_ms > 0)
        wait_begin(r);
    else
        request_done(call, problem);
}

static enum step quorum_acquire_start(struct http_request *req)
{
    struct quorum_request *r = HTTP_SCRATCH(req, struct quorum_request);
    struct acquire_options options = {.over = NULL};
    struct request_fault fault;
    const char *detail = request_begin(r, req), *missing;
    int64_t max_ttl = r->call.quorum->max_ttl;

    if (detail != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, detail);
    lease_request_read(http_body(req), &r->body, &fault);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    detail = r->body.session_len > 0 ? NULL : acquire_options_read(&options, &r->body, req);
    if (detail != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, detail);
    missing = acquire_not_there(r, &options);
    if (missing != NULL)
        return not_there(req, missing);
    lease_request_defaults(&r->body, http_identity(req));
    r->call.ttl_ms = r->body.ttl_stated || r->body.ttl_ms < max_ttl ? r->body.ttl_ms : max_ttl;
    r->lease_id = (struct bytes){r->body.lease_id, r->body.lease_id_len};
    r->call.about = about_write(r);
    r->call.done = acquire_done;
    r->began_us = loop_now_us();
    return request_goes(r, request_secret(r), quorum_acquire, acquired);
}

/* -- renew */

static enum step renewed(struct quorum_request *r)
{
    worker_count(worker_of(r->req), COUNT_RENEWED);
    return request_grant(r, 200);
}

static enum step quorum_renew_start(struct http_request *req)
{
    struct quorum_request *r = HTTP_SCRATCH(req, struct quorum_request);
    struct request_fault fault;
    const char *detail = request_begin(r, req);

    if (detail == NULL)
        detail = lease_id_read(req, &r->lease_id);
    if (detail != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, detail);
    renew_request_read(http_body(req), &r->call.ttl_ms, &fault);
    if (fault.problem != PROBLEM_NONE)
        return http_refuse_detail(req, fault.problem, fault.detail);
    return request_goes(r, request_hold(r), quorum_renew, renewed);
}

/* -- release */

static enum step released(struct quorum_request *r)
{
    worker_count(worker_of(r->req), COUNT_RELEASED);
    return http_answer(r->req, 204);
}

static enum step quorum_release_start(struct http_request *req)
{
    struct quorum_request *r = HTTP_SCRATCH(req, struct quorum_request);
    struct acquire_options_key key; /* a hold is entered once: its lease_id makes a repeat safe by itself */
    const char *detail = request_begin(r, req);
    bool is_all;

    if (detail == NULL)
        detail = release_all_read(req, &is_all);
    if (detail == NULL)
        detail = lease_id_read(req, &r->lease_id);
    if (detail == NULL)
        detail = acquire_options_key_read(&key, req);
    if (detail != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, detail);
    if (is_all)
        return not_there(req, "?all=true");
    return request_goes(r, request_hold(r), quorum_release, released);
}

/* -- look */

static void look_holder(struct json_out *json, struct quorum_request *r)
{
    const struct quorum_call *call = &r->call;

    json_object(json, NULL);
    json_text(json, "holder", r->about != NULL ? about_text(r, "holder") : BYTES("anonymous"));
    lease_identity_write(json, worker_of(r->req), about_text(r, "identity"));
    json_int(json, "token", call->token);
    json_text(json, "mode", BYTES("exclusive"));
    json_text(json, "hold", bytes_of(call->hold));
    json_null(json, "session");
    json_int(json, "holds", 1);
    json_int(json, "ttl_ms", call->hold_ttl_ms);
    json_int(json, "expires_in_ms", call->expires_in_ms);
    json_int(json, "held_for_ms", call->held_for_ms);
    json_int(json, "renewed_ms_ago",
             call->hold_ttl_ms > call->expires_in_ms ? call->hold_ttl_ms - call->expires_in_ms : 0);
    json_int(json, "waited_ms", 0);
    json_raw(json, "meta", about_meta(r));
    json_object_end(json);
}

static enum step looked(struct quorum_request *r)
{
    const struct quorum_call *call = &r->call;
    bool is_held = call->hold[0] != '\0';
    static const char *const nothing[] = {"waiting", "delayed_for_ms", "permits", "refused"};
    struct json_out *json;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    json = http_json_begin(r->req);
    json_int(json, "now_ms", now.tv_sec * 1000 + now.tv_nsec / 1000000);
    json_text(json, "lease", call->name);
    json_text(json, "state", is_held ? BYTES("held") : BYTES("free"));
    json_int(json, "token", call->number);
    json_int(json, "epoch", QUORUM_EPOCH);
    json_text_or_null(json, "mode", is_held ? BYTES("exclusive") : BYTES(""));
    json_list(json, "holders");
    if (is_held)
        look_holder(json, r);
    json_list_end(json);
    for (unsigned i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
        json_int(json, nothing[i], 0);
    json_list(json, "line");
    json_list_end(json);
    return http_json_end(r->req, 200);
}

static enum step quorum_look_start(struct http_request *req)
{
    struct quorum_request *r = HTTP_SCRATCH(req, struct quorum_request);
    const char *detail = request_begin(r, req);

    return detail != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, detail)
                          : request_goes(r, PROBLEM_NONE, quorum_look, looked);
}

/* -- the rest */

static enum step quorum_not_there(struct http_request *req)
{
    return http_refuse(req, PROBLEM_NOT_IN_QUORUM_MODE);
}

/* The rows of lease_routes in a copy of them: what is there, and what is not. */
static void take_routes(struct http_route *routes)
{
    static const struct {
        enum step (*of_one)(struct http_request *req), (*of_quorum)(struct http_request *req);
    } there[] = {{acquire_start, quorum_acquire_start},
                 {renew_start, quorum_renew_start},
                 {release_start, quorum_release_start},
                 {look_start, quorum_look_start}};

    for (unsigned i = 0; lease_routes[i].path != NULL; i++) {
        routes[i].handle = quorum_not_there;
        for (unsigned one = 0; one < sizeof(there) / sizeof(there[0]); one++)
            if (lease_routes[i].handle == there[one].of_one)
                routes[i].handle = there[one].of_quorum;
    }
}

/* -- the worker. Each has links of its own; the first one's heals. */

void quorum_worker_open(struct worker *worker)
{
    const struct quorum_options options = {
        .loop = worker->loop,
        .stores = worker->stores,
        .count = worker->store_count,
        .timeout_ms = (unsigned)worker->service->settings.store_timeout_ms,
        .heals = worker->index == 0,
        .access = worker->access != NULL                      ? "judged"
                  : worker->service->settings.allow_anonymous ? "open"
                                                              : "",
        .log = worker->index == 0 ? &worker->service->log : NULL,
    };

    if (worker->index == 0)
        take_routes(worker->service->routes);
    worker->extra = quorum_new(&options);
}

void quorum_worker_close(struct worker *worker)
{
    quorum_stop(worker->extra);
}

void quorum_worker_free(struct worker *worker)
{
    quorum_free(worker->extra);
}

/* A node that is gone costs the start --store-timeout. */
bool quorum_settled(const struct service *service)
{
    for (unsigned i = 0; i < service->settings.threads; i++)
        if (!quorum_is_known(service->workers[i].extra))
            return false;
    return true;
}

/* Then what is held is renewed and released. */
static bool is_of_memory(const struct store_refusal *refusal)
{
    return refusal != NULL && strcmp(refusal->check, STORE_FULL) == 0;
}

const char *quorum_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE])
{
    const struct store_refusal *refusal = quorum_refusal(worker->extra);

    *problem = quorum_problem(worker->extra, detail);
    if (*problem == PROBLEM_NONE && refusal != NULL && !is_of_memory(refusal)) {
        *problem = PROBLEM_STORE_UNAVAILABLE;
        snprintf(detail, READY_DETAIL_SIZE, "At most nodes: %s. %s", refusal->what, refusal->todo);
        return refusal->check;
    }
    return *problem == PROBLEM_NONE             ? NULL
           : *problem == PROBLEM_STORE_NOT_OURS ? "store-not-ours"
                                                : "store-connecting";
}

static const char *const states[] = {
    [NODE_GONE] = "gone",      [NODE_NEW] = "new",        [NODE_WELL] = "well",
    [NODE_ILL] = "quarantine", [NODE_OTHER] = "not-ours", [NODE_OTHER + 1] = NULL};

void quorum_stand(struct worker *worker, struct service_stand *stand)
{
    const struct quorum *quorum = worker->extra;

    stand->node_states = states;
    stand->is_full = is_of_memory(quorum_refusal(quorum));
    for (unsigned i = 0; i < quorum->options.count; i++)
        stand->nodes[quorum_node_state(quorum, i)]++;
}

void quorum_tell(struct worker *worker, struct json_out *json)
{
    const struct quorum *quorum = worker->extra;

    json_list(json, "nodes");
    for (unsigned i = 0; i < quorum->options.count; i++)
        json_text(json, NULL, bytes_of(states[quorum_node_state(quorum, i)]));
    json_list_end(json);
    json_list(json, "quarantine");
    for (unsigned i = 0; i < quorum->options.count; i++) {
        if (quorum_node_state(quorum, i) != NODE_ILL)
            continue;
        json_object(json, NULL);
        json_int(json, "node", i + 1);
        json_int(json, "for_ms", quorum_node_ill_for_ms(quorum, i));
        json_object_end(json);
    }
    json_list_end(json);
}
