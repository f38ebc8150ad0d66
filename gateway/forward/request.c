/* request.c - a request that a route matches: the request itself, its body, and the states of its way.
 *
 *   forward_start       which route, is it a write, the token    400 | 403 | 404 | 405 | 413 | 428, or go on
 *   forward_take_body   TAKING: a long body into a file, before anything is admitted    503, or suspended
 *   take_piece          the next of it                                                  413 | 503, or go on
 *   take_broken         it never comes whole                                            408
 *   forward_admit       it has been taken whole, or need not be
 *   ...                 look.c, admit.c, send.c
 *   forward_over        the end of all of them
 *
 * So a client that drips, or dies, has sent nothing on and makes no write wait. The file has no name, or none
 * by the time that it has a byte where the file system wants one, and stays in the page cache as a rule:
 * writing it does not wait for the disk, unless the kernel has more to write than it wants to hold.
 *
 * What has begun to be streamed is broken off by closing the connection. A last chunk would make a whole
 * request of it. */
#include "gateway/forward/forward_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "gateway/precondition.h"
#include "shared/text/memory.h"

/* DRAIN_MS: a process that ends has 5 s, and the intents are to be closed in the last of them. */
enum { SPARES_MAX = 256, DRAIN_MS = 3500 };

static enum step forward_route(struct forward *f);
static enum step forward_begin(struct forward *f);
static bool rules_allow(const struct gateway_worker *own, const struct route *route, bool is_write,
                        const char *identity, struct bytes lease);
static enum step forward_take_body(struct forward *f);
static enum step forward_admit(struct forward *f);

#define TO(state) (1u << FORWARD_##state)

bool forward_allows(enum forward_state from, enum forward_state to)
{
    static const unsigned arrows[FORWARD_STATES] = {
        [FORWARD_NEW] = TO(SENDING) | TO(LOOKING) | TO(ASKING) | TO(TAKING) | TO(DONE),
        [FORWARD_TAKING] = TO(SENDING) | TO(LOOKING) | TO(ASKING) | TO(DONE),
        [FORWARD_LOOKING] = TO(ASKING) | TO(DONE),
        [FORWARD_ASKING] = TO(ASKING) | TO(SENDING) | TO(QUEUED) | TO(DONE),
        [FORWARD_QUEUED] = TO(ASKING) | TO(PROBING) | TO(DONE),
        [FORWARD_PROBING] = TO(ASKING),
        [FORWARD_SENDING] = TO(TELLING) | TO(LATE) | TO(DONE),
        [FORWARD_TELLING] = TO(LATE) | TO(LOOKING) | TO(DONE),
        [FORWARD_LATE] = TO(DONE),
    };

    return arrows[from] >> to & 1;
}

void forward_enter(struct forward *f, enum forward_state next)
{
    assert(forward_allows(f->state, next));
    if (f->state == FORWARD_QUEUED)
        LIST_REMOVE(f, turn.queue);
    f->state = next;
    alarm_clear(f->own->clock, &f->alarm);
    if (next == FORWARD_QUEUED)
        LIST_INSERT_HEAD(&f->own->waiting, f, turn.queue);
}

void forward_alarm(struct forward *f, uint64_t in_ms)
{
    alarm_set(f->own->clock, &f->alarm, loop_now_ms() + in_ms);
}

void forward_wake_lease(struct gateway_worker *own, struct bytes lease)
{
    for (struct forward *f = LIST_FIRST(&own->waiting), *next; f != NULL; f = next) {
        next = LIST_NEXT(f, turn.queue);
        if (bytes_equal(f->fenced.lease, lease))
            forward_wake(f);
    }
}

/* -- the struct */

static struct forward *forward_take(struct gateway_worker *own)
{
    struct forward *f = LIST_FIRST(&own->spare);

    if (f != NULL) {
        LIST_REMOVE(f, turn.queue);
        own->spares--;
    } else {
        f = must_have(malloc(sizeof(*f)));
    }
    memset(f, 0, offsetof(struct forward, match)); /* the rest is filled before it is read */
    own->forwards++;
    f->own = own;
    f->body.fd = -1;
    LIST_INSERT_HEAD(&own->live, f, live);
    return f;
}

static void forward_free(struct forward *f)
{
    struct gateway_worker *own = f->own;

    if (f->body.fd >= 0) {
        close(f->body.fd);
        atomic_fetch_sub(&own->gateway->body_disk, f->body.len);
    }
    table_use_drop(own, f->use);
    own->forwards--;
    LIST_REMOVE(f, live);
    if (own->spares == SPARES_MAX) {
        free(f);
        return;
    }
    LIST_INSERT_HEAD(&own->spare, f, turn.queue);
    own->spares++;
}

void forward_worker_free(struct gateway_worker *own)
{
    while (!LIST_EMPTY(&own->spare)) {
        struct forward *one = LIST_FIRST(&own->spare);

        LIST_REMOVE(one, turn.queue);
        free(one);
    }
    stickies_free(own);
}

enum step forward_over(struct forward *f, enum step step)
{
    assert(f->by.intent == NULL && f->by.sticky == NULL && f->turn.queued_len == 0);
    forward_enter(f, FORWARD_DONE);
    forward_free(f);
    return step;
}

const char *forward_guarantee(struct forward *f)
{
    static const char *const names[] = {
        [ROUTE_COMMITTED] = "committed", [ROUTE_ORDERED] = "ordered", [ROUTE_ADMITTED] = "admitted"};
    bool grace = f->route->unknown == ROUTE_GRACE, incomplete = f->route->body == ROUTE_BODY_NEVER_APPLIED,
         mark = f->route->check == ROUTE_MARK;

    if (!grace && !incomplete && !mark)
        return names[f->route->guarantee];
    snprintf(f->up.promise, sizeof(f->up.promise), "%s;assumes=%s%s%s%s%s", names[f->route->guarantee],
             grace ? "grace" : "", grace && incomplete ? "+" : "", incomplete ? "incomplete" : "",
             (grace || incomplete) && mark ? "+" : "", mark ? "mark" : "");
    return f->up.promise;
}

static void forward_rings(struct alarm *alarm)
{
    struct forward *f = container_of(alarm, struct forward, alarm);

    switch (f->state) {
    case FORWARD_QUEUED: forward_wake(f); break;
    case FORWARD_LOOKING:
    case FORWARD_PROBING: upstream_abort(&f->up.call); break;
    case FORWARD_SENDING:
    case FORWARD_TELLING:
    case FORWARD_LATE: forward_late(f); break;
    case FORWARD_NEW:
    case FORWARD_TAKING:
    case FORWARD_ASKING:
    case FORWARD_DONE:
    case FORWARD_STATES: abort();
    }
}

/* -- the request itself */

/* NULL, or what this gateway does not forward: 400. */
static const char *request_wrong(const struct http_request *req)
{
    unsigned upgrades = 0;

    http_header(req, "Upgrade", &upgrades);
    if (upgrades > 0)
        return "Upgrades are not forwarded: nothing could be checked after one. Send it without Upgrade.";
    return bytes_are(http_method_text(req), "TRACE") ? "TRACE is not forwarded." : NULL;
}

/* The index of the service stands where no route wants to be; as any address of Pawl's own it wants a Host
 * that is known. */
static enum step forward_nowhere(struct http_request *req)
{
    bool reads = http_method(req) & (HTTP_GET | HTTP_HEAD);

    if (!bytes_are(http_path(req), "/"))
        return http_refuse(req, PROBLEM_NOT_FOUND);
    if (http_host_is_foreign(req)) {
        struct json_out *json = http_problem_begin(req, PROBLEM_FOREIGN_ORIGIN, NULL);

        json_text(json, "why", BYTES("host"));
        return http_problem_end(req, 0);
    }
    if (!reads)
        http_reply_header(req, "Allow", BYTES("GET, HEAD, OPTIONS"));
    if (bytes_are(http_method_text(req), "OPTIONS"))
        return http_answer(req, 204);
    if (!reads)
        return http_refuse(req, PROBLEM_METHOD_NOT_ALLOWED);
    return http_query(req).at != NULL
               ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST,
                                    "This request takes no query. Send it without '?'.")
               : service_index(req);
}

/* Nobody learns which addresses there are: 401 for those that are not, too. */
static bool is_told_nothing(const struct http_request *req)
{
    return service_judges(req) && http_identity(req) == NULL && !bytes_are(http_path(req), "/");
}

enum step forward_start(struct http_request *req)
{
    struct gateway_worker *own = gateway_worker_of(req);
    const char *wrong = own->use != NULL ? request_wrong(req) : NULL;
    struct forward *f;

    if (own->use == NULL || http_is_own(req))
        return is_told_nothing(req) ? service_forbid(req, ACCESS_READ, (struct bytes){NULL, 0})
                                    : forward_nowhere(req);
    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    f = forward_take(own);
    f->use = table_use_take(own);
    f->fenced.req = req;
    f->fenced.fail = forward_ask_failed;
    f->alarm.rings = forward_rings;
    return forward_route(f);
}

/* 400: the end. */
static enum step forward_wrong(struct forward *f, const char *detail)
{
    return forward_over(f, http_refuse_detail(f->fenced.req, PROBLEM_INVALID_REQUEST, detail));
}

enum step forward_too_large(struct forward *f, const char *limit, uint64_t max)
{
    char detail[128];

    http_note_why(f->fenced.req, limit);
    snprintf(detail, sizeof(detail),
             "The body of this request may have %llu bytes (%s), and this one has more. Send less.",
             (unsigned long long)max, limit);
    return fenced_fail_detail(&f->fenced, PROBLEM_TOO_LARGE, detail);
}

static enum step forward_route(struct forward *f)
{
    struct http_request *req = f->fenced.req;
    struct precondition expected;
    const char *why = NULL;
    enum route_found found = route_find(f->use->table, http_path(req), &f->match, &why);

    if (found != ROUTE_FOUND && is_told_nothing(req))
        return forward_over(f, service_forbid(req, ACCESS_READ, (struct bytes){NULL, 0}));
    switch (found) {
    case ROUTE_NONE: return forward_over(f, forward_nowhere(req));
    case ROUTE_BAD_PATH:
    case ROUTE_BAD_LEASE: return forward_wrong(f, why);
    case ROUTE_FOUND: break;
    }
    f->route = f->match.route;
    f->fenced.lease = (struct bytes){f->match.lease, f->match.lease_len};
    f->fenced.resource = (struct bytes){f->match.path, f->match.path_len};
    http_note_lease(req, f->fenced.lease);
    f->fenced.store = bytes_of(f->route->store);
    f->fenced.by_mark = f->route->check == ROUTE_MARK;
    f->is_write = !route_reads(f->route, http_method_text(req));
    if (!rules_allow(f->own, f->route, f->is_write, http_identity(req), f->fenced.lease))
        return forward_forbid(f);
    if (f->is_write)
        fenced_judge_write(&f->fenced);
    if (f->route->credential == ROUTE_CREDENTIAL_UPSTREAM && service_sends_away_token(req)) {
        return forward_wrong(f,
                             "Nothing was sent on: an access token of Pawl's stands in Authorization, which "
                             "is the upstream's on this route. Send it as Pawl-Authorization, and have this "
                             "one replaced if it went to anybody else.");
    }
    f->up.is_head = http_method(req) == HTTP_HEAD;
    if (f->route->max_body > 0 &&
        (http_body_announced(req) > (int64_t)f->route->max_body || http_body(req).len > f->route->max_body))
        return forward_over(f, forward_too_large(f, FORWARD_MAX_BODY, f->route->max_body));
    if (f->route->aid == ROUTE_AID_IF_MATCH && http_query(req).at != NULL)
        return forward_wrong(f, "This route stands for one URL for each lease: it takes no query. Send it "
                                "without '?'.");
    if (f->is_write && f->route->aid == ROUTE_AID_IF_MATCH)
        why = precondition_read_tags(&expected, req);
    if (why != NULL)
        return forward_wrong(f, why);
    if (forward_head_leads_elsewhere(f)) {
        return forward_wrong(f, "Nothing was sent on. A URI in Destination, If or Lock-Token must be of the "
                                "same route and lease as the path, on the same host as Host.");
    }
    return forward_begin(f);
}

void forward_number(struct forward *f)
{
    const struct gateway *gateway = f->own->gateway;
    struct bytes_out id = {f->by.id, 0, sizeof(f->by.id), false};
    struct bytes_out whole = {f->by.request_id, 0, sizeof(f->by.request_id), false};
    char number[BYTES_NUMBER_SIZE];

    bytes_put(&id, bytes_of_number(number, f->own->worker->index));
    bytes_put(&id, BYTES("."));
    bytes_put(&id, bytes_of_number(number, (int64_t)++f->own->numbers));
    bytes_put(&id, BYTES("\0"));
    bytes_put(&whole, bytes_of(gateway->id));
    bytes_put(&whole, BYTES("-"));
    bytes_put(&whole, bytes_of(gateway->incarnation));
    bytes_put(&whole, BYTES("-"));
    bytes_put(&whole, (struct bytes){id.at, id.len});
}

static bool is_open_read(const struct route *route, const struct http_request *req)
{
    return route_reads(route, http_method_text(req)) && route->reads == ROUTE_READS_OPEN &&
           !fenced_has_token(req);
}

static enum step forward_begin(struct forward *f)
{
    enum problem bad;

    forward_number(f);
    f->is_fenced = !is_open_read(f->route, f->fenced.req);
    bad = f->is_fenced ? fenced_read_token(&f->fenced) : PROBLEM_NONE;
    if (bad != PROBLEM_NONE)
        return forward_over(f, fenced_refuse(&f->fenced, bad));
    /* A read without a token makes no write wait; and no client without one fills the disk. */
    if (f->is_fenced && !http_body_is_whole(f->fenced.req) && f->route->body == ROUTE_BODY_WHOLE)
        return forward_take_body(f);
    return forward_admit(f);
}

/* It is as the fence wants it, and all of it is there, or its route streams. */
static enum step forward_admit(struct forward *f)
{
    if (!f->is_fenced)
        return forward_send(f);
    f->turn.until_ms = loop_now_ms() + f->route->timeout_ms;
    return f->is_write && f->route->aid == ROUTE_AID_IF_MATCH ? forward_look(f) : forward_ask(f);
}

/* Where only marks are known there is no hold to be one's own. */
static bool rules_allow(const struct gateway_worker *own, const struct route *route, bool is_write,
                        const char *identity, struct bytes lease)
{
    const struct access *access = own->worker->access;

    return access == NULL || access_allows(access, identity, is_write ? ACCESS_WRITE : ACCESS_READ, lease) ||
           (is_write && route->check != ROUTE_MARK && identity != NULL &&
            access_allows(access, identity, ACCESS_WRITE_OWN, lease));
}

enum step forward_forbid(struct forward *f)
{
    return forward_over(
        f, service_forbid(f->fenced.req, f->is_write ? ACCESS_WRITE : ACCESS_READ, f->fenced.lease));
}

bool forward_authorization_is_upstreams(struct http_request *req)
{
    const struct gateway_worker *own = gateway_worker_of(req);
    struct route_match match;
    const char *why;

    return http_route(req) != NULL && http_route(req)->handle == forward_start && own->use != NULL &&
           own->use->table->has_credentials &&
           route_find(own->use->table, http_path(req), &match, &why) == ROUTE_FOUND &&
           match.route->credential == ROUTE_CREDENTIAL_UPSTREAM;
}

bool forward_refuses(struct http_request *req)
{
    const struct gateway_worker *own = gateway_worker_of(req);
    struct fenced_call fenced = {.req = req};
    struct route_match match;
    const char *why;

    if (own->use == NULL || request_wrong(req) != NULL ||
        route_find(own->use->table, http_path(req), &match, &why) != ROUTE_FOUND)
        return true;
    if (match.route->max_body > 0 && http_body_announced(req) > (int64_t)match.route->max_body)
        return true;
    fenced.lease = (struct bytes){match.lease, match.lease_len};
    fenced.store = bytes_of(match.route->store);
    if (!rules_allow(own, match.route, !route_reads(match.route, http_method_text(req)), http_identity(req),
                     fenced.lease))
        return true;
    return !is_open_read(match.route, req) && fenced_read_token(&fenced) != PROBLEM_NONE;
}

/* -- the rules, or credentials, have changed: in a state that is not named here it is refused when it is
 * left */

static bool forward_stands(struct forward *f)
{
    bool is_sent = f->state == FORWARD_SENDING || f->state == FORWARD_TELLING;

    if (f->up.is_streamed)
        return http_response_writer_stands(&f->up.writer) &&
               rules_allow(f->own, f->route, f->is_write, f->up.identity, f->fenced.lease);
    if (!http_stands(f->fenced.req) ||
        !rules_allow(f->own, f->route, f->is_write, http_identity(f->fenced.req), f->fenced.lease))
        return false;
    if (f->is_write)
        fenced_judge_write(&f->fenced);
    return !is_sent || forward_is_its_own(f);
}

static void judge_one(struct forward *f)
{
    if (f->state == FORWARD_LATE || f->is_barred || forward_stands(f))
        return;
    f->is_barred = true;
    if (f->state == FORWARD_TAKING)
        forward_forbid(f);
    else if (f->state == FORWARD_QUEUED)
        forward_wake(f);
    else if (f->state == FORWARD_LOOKING)
        upstream_abort(&f->up.call);
    else if (f->state == FORWARD_SENDING || f->state == FORWARD_TELLING)
        forward_bar(f);
}

void forward_judge(struct worker *worker)
{
    for (struct forward *f = LIST_FIRST(&gateway_worker_from(worker)->live), *next; f != NULL; f = next) {
        next = LIST_NEXT(f, live);
        judge_one(f);
    }
}

/* -- the end of the process */

static void drain_one(struct forward *f, bool is_last)
{
    switch (f->state) {
    case FORWARD_TAKING: forward_over(f, fenced_fail(&f->fenced, PROBLEM_DRAINING)); break;
    case FORWARD_QUEUED: forward_away(f, PROBLEM_DRAINING); break;
    case FORWARD_LATE:
    case FORWARD_LOOKING:
    case FORWARD_PROBING: upstream_abort(&f->up.call); break;
    case FORWARD_SENDING:
    case FORWARD_TELLING:
        if (is_last)
            upstream_abort(&f->up.call);
        break;
    case FORWARD_NEW:
    case FORWARD_ASKING:
    case FORWARD_DONE:
    case FORWARD_STATES: break;
    }
}

void forward_drain(struct gateway_worker *own)
{
    uint64_t now_ms = loop_now_ms();
    bool is_last;

    own->drains_ms = own->drains_ms == 0 ? now_ms : own->drains_ms;
    is_last = now_ms - own->drains_ms >= DRAIN_MS;
    for (struct forward *f = LIST_FIRST(&own->live), *next; f != NULL; f = next) {
        next = LIST_NEXT(f, live);
        drain_one(f, is_last);
    }
}

/* -- a long body, in a file */

int forward_body_file(int folder, const char *request_id)
{
    char name[sizeof("body-") + FORWARD_REQUEST_ID_SIZE];
    int fd = openat(folder, ".", O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { /* open(2): the file system has none */
        snprintf(name, sizeof(name), "body-%s", request_id);
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            unlinkat(folder, name, 0);
    }
    return fd;
}

/* In the state directory, or else where temporary files are. */
static bool body_open(struct forward *f)
{
    const char *path = getenv("TMPDIR");
    int folder = member_self(f->own->gateway->service).state_dir, own = -1;

    if (folder < 0)
        own = folder = open(path != NULL && path[0] == '/' ? path : "/var/tmp",
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->body.fd = folder >= 0 ? forward_body_file(folder, f->by.request_id) : -1;
    if (own >= 0)
        close(own);
    return f->body.fd >= 0;
}

static bool body_add(struct forward *f, struct bytes piece)
{
    struct gateway *gateway = f->own->gateway;
    uint64_t before = atomic_fetch_add(&gateway->body_disk, piece.len);

    f->body.len += piece.len;
    if (before + piece.len > gateway->service->settings.body_disk_max) {
        errno = EDQUOT;
        return false;
    }
    for (size_t done = 0; done < piece.len;) {
        ssize_t n = pwrite(f->body.fd, piece.at + done, piece.len - done,
                           (off_t)(f->body.len - piece.len + done));

        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* -- taken whole */

/* Certainly nothing was sent. */
static enum step take_refuse(struct forward *f, enum problem problem, const char *why)
{
    http_note_why(f->fenced.req, why);
    return forward_over(f, fenced_fail(&f->fenced, problem));
}

static enum step take_fails(struct forward *f)
{
    return take_refuse(f, PROBLEM_OVERLOADED,
                       errno == EDQUOT ? "--max-body-disk is reached" : strerrordesc_np(errno));
}

static size_t take_piece(struct http_body_reader *body_reader, struct bytes piece)
{
    struct forward *f = container_of(body_reader, struct forward, body.reader);
    uint64_t max = f->route->max_body, len = http_body(f->fenced.req).len + f->body.len + piece.len;

    if (max > 0 && len > max)
        forward_over(f, forward_too_large(f, FORWARD_MAX_BODY, max));
    else if (!body_add(f, piece))
        take_fails(f);
    return piece.len;
}

static void take_whole(struct http_body_reader *body_reader)
{
    forward_admit(container_of(body_reader, struct forward, body.reader));
}

static void take_broken(struct http_body_reader *body_reader)
{
    struct forward *f = container_of(body_reader, struct forward, body.reader);

    take_refuse(f, PROBLEM_REQUEST_TIMEOUT, "its body did not come whole");
}

static enum step forward_take_body(struct forward *f)
{
    size_t max = f->own->gateway->service->settings.body_disk_max;

    forward_enter(f, FORWARD_TAKING);
    if (http_body_announced(f->fenced.req) > (int64_t)max)
        return forward_over(f, forward_too_large(f, "--max-body-disk", max));
    if (!body_open(f))
        return take_fails(f);
    f->body.reader = (struct http_body_reader){
        .piece = take_piece, .whole = take_whole, .broken = take_broken, .keeps = true};
    http_body_take(f->fenced.req, &f->body.reader);
    return SUSPENDED;
}

/* -- goes out */

int64_t forward_body_length(const struct forward *f)
{
    if (f->body.fd >= 0 || http_body_is_whole(f->fenced.req))
        return (int64_t)(http_body(f->fenced.req).len + f->body.len);
    return http_body_announced(f->fenced.req);
}

/* The time for the answer has not begun. */
static void put_took(struct forward *f, size_t taken)
{
    if (taken > 0 && f->state != FORWARD_LATE)
        forward_alarm(f, f->route->timeout_ms);
}

/* More than the upstream's client ever has room for is offered: what takes all of it takes no more of the
 * request, and all the rest may pass. */
void forward_put(struct forward *f)
{
    char piece[UPSTREAM_UNSENT_MAX + 1];

    while (f->body.at < f->body.len) {
        uint64_t left = f->body.len - f->body.at;
        ssize_t n = pread(f->body.fd, piece, left < sizeof(piece) ? left : sizeof(piece), (off_t)f->body.at);
        size_t taken;

        if (n <= 0) {
            f->up.why = "the file with the request's body could not be read";
            upstream_abort(&f->up.call);
            return;
        }
        taken = upstream_write(&f->up.call, (struct bytes){piece, (size_t)n});
        f->body.at += taken;
        put_took(f, taken);
        if (taken < (size_t)n || (size_t)n == sizeof(piece))
            return;
    }
}

/* -- streamed */

/* The upstream has a part of the request, and gets no more. */
static void stream_cut(struct forward *f, enum problem problem, const char *why)
{
    if (f->up.call.link != NULL) {
        f->body.cut = problem;
        f->up.why = why;
        upstream_abort(&f->up.call);
    }
}

static size_t stream_piece(struct http_body_reader *body_reader, struct bytes piece)
{
    struct forward *f = container_of(body_reader, struct forward, body.reader);
    size_t taken;

    if (f->up.call.link == NULL)
        return piece.len; /* the upstream has said all that it had to say */
    if (f->route->max_body > 0 && piece.len > f->route->max_body - f->body.given) {
        stream_cut(f, PROBLEM_TOO_LARGE, FORWARD_MAX_BODY);
        return piece.len;
    }
    taken = upstream_write(&f->up.call, piece);
    f->body.given += taken;
    put_took(f, taken);
    return taken;
}

static void stream_whole(struct http_body_reader *body_reader)
{
    struct forward *f = container_of(body_reader, struct forward, body.reader);

    f->body.is_being_taken = false;
    if (f->up.call.link != NULL) {
        upstream_body_end(&f->up.call);
        forward_alarm(f, f->route->timeout_ms);
    }
}

static void stream_broken(struct http_body_reader *body_reader)
{
    stream_cut(container_of(body_reader, struct forward, body.reader), PROBLEM_REQUEST_TIMEOUT,
               "the request's body did not come whole");
}

void forward_stream(struct forward *f)
{
    f->body.reader = (struct http_body_reader){
        .piece = stream_piece, .whole = stream_whole, .broken = stream_broken};
    f->body.given = http_body(f->fenced.req).len;
    f->body.is_being_taken = f->body.was_streamed = true;
    http_body_take(f->fenced.req, &f->body.reader);
}

bool forward_never_applied(const struct forward *f)
{
    return f->route->body == ROUTE_BODY_NEVER_APPLIED && f->state == FORWARD_SENDING &&
           f->body.is_being_taken && (int64_t)f->body.given != http_body_announced(f->fenced.req);
}
