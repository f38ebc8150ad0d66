/* client_lease.c - pawl_acquire(), pawl_renew(), pawl_release(), pawl_look(): what can be done with a lease.
 *
 *   hold_acquire   what was asked, and the lease_id to propose       PAWL_NOT_DONE, or go on
 *   acquire_run    POST, repeated as long as its end is not known    PAWL_OK | PAWL_HELD | PAWL_LOST |
 *                  (a wait: in slices, over what goes wrong between) PAWL_NOT_DONE
 *   acquire_leave  a place in line that is still kept is given up
 *   hold_release   what may be held is released                      PAWL_UNKNOWN */
#include <errno.h>
#include <sys/random.h>

#include "api/client/client.h"
#include "shared/text/ascii.h"

enum grant_kind { GRANT_NEW, GRANT_RENEWED };

static const char bad_answer[] =
    "It was answered, but the answer cannot be read: it may have happened. Look at the "
    "address of the service.";

/* -- what an answer grants, and until when */

enum { NAME_MAX_BYTES_CLIENT = PAWL_NAME_SIZE - 1, LEASE_ID_MIN = 22, RANDOM_MAX = 64 };

#define TOKEN_MOST 999999999999999

static bool client_is_name(const char *name)
{
    return name != NULL && strlen(name) <= NAME_MAX_BYTES_CLIENT && ascii_is_name(bytes_of(name));
}

static bool client_is_lease_id(const char *text)
{
    size_t len = strlen(text);

    return len >= LEASE_ID_MIN && len < PAWL_LEASE_ID_SIZE && ascii_is_word(bytes_of(text), BYTES("_-"));
}

/* chars of [A-Za-z0-9_-] and a NUL. false: the machine gives no randomness. */
static bool client_random_text(char *buf, size_t chars)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[RANDOM_MAX];
    ssize_t got;

    do {
        got = getrandom(bytes, chars, 0); /* so few bytes come whole or not at all (getrandom(2)) */
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)chars)
        return false;
    for (size_t i = 0; i < chars; i++)
        buf[i] = alphabet[bytes[i] & 63];
    buf[chars] = '\0';
    explicit_bzero(bytes, sizeof(bytes));
    return true;
}

int64_t client_random_between(int64_t low, int64_t high)
{
    uint32_t some = 0;

    if (high <= low)
        return low;
    /* Only for spreading: without randomness they are not spread. */
    return getrandom(&some, sizeof(some), GRND_NONBLOCK) == (ssize_t)sizeof(some)
               ? low + (int64_t)(some % (uint64_t)(high - low + 1))
               : low;
}

static bool read_mode(const struct json *json, enum pawl_mode *mode)
{
    struct bytes text = client_member(json, "mode");

    *mode = bytes_are(text, "shared")    ? PAWL_SHARED
            : bytes_are(text, "permits") ? PAWL_PERMITS
                                         : PAWL_EXCLUSIVE;
    return *mode != PAWL_EXCLUSIVE || bytes_are(text, "exclusive");
}

/* The value goes into a header again. */
static bool read_fencing_token(const struct json *json, struct pawl_grant *grant)
{
    struct bytes text = client_member(json, "fencing_token");

    client_text(grant->fencing_token, sizeof(grant->fencing_token), text);
    return text.len > 0 && text.len < sizeof(grant->fencing_token) && ascii_is_visible(text);
}

/* Fills grant from the answer of the call; false: it is not the grant that was asked for. */
static bool grant_take(const struct client_call *call, enum grant_kind kind, struct pawl_grant *grant)
{
    const struct json *json = call->json;
    int64_t token, epoch, expires_in_ms, waited_ms, passed_ms = pawl_now_ms() - call->sent_ms;
    struct pawl_grant fresh = *grant;

    if ((call->answer.status != 200 && (kind != GRANT_NEW || call->answer.status != 201)) || json == NULL ||
        !bytes_are(client_member(json, "lease"), grant->name) ||
        !bytes_are(client_member(json, "lease_id"), grant->lease_id))
        return false;
    token = client_number(json, "token");
    epoch = client_number(json, "epoch");
    expires_in_ms = client_number(json, "expires_in_ms");
    fresh.ttl_ms = client_number(json, "ttl_ms");
    /* Only a hold that is granted now can have waited for it in this very request. */
    waited_ms = call->answer.status == 201 ? client_number(json, "waited_ms") : 0;
    fresh.renew_in_ms = client_number(json, "renew_in_ms");
    fresh.holds = (unsigned)client_number(json, "holds");
    if (token < 1 || token > TOKEN_MOST || epoch < 1 || expires_in_ms < 0 ||
        expires_in_ms > CLIENT_TTL_MAX_MS || waited_ms < 0 || fresh.ttl_ms < 1 ||
        fresh.ttl_ms > CLIENT_TTL_MAX_MS)
        return false;
    /* A hold keeps its token: another one is another hold's. */
    if (kind == GRANT_RENEWED && (token != grant->token || epoch != grant->epoch))
        return false;
    fresh.token = token;
    fresh.waited_ms = kind == GRANT_NEW ? waited_ms : grant->waited_ms;
    fresh.epoch = epoch;
    /* At the earliest: the store's clock is cut to milliseconds. What was waited for lies between question
     * and answer, whatever the answer says. */
    fresh.deadline_ms = call->sent_ms + (waited_ms < passed_ms ? waited_ms : passed_ms) + expires_in_ms - 1;
    if (fresh.least_ttl_ms > 0 && call->sent_ms + fresh.least_ttl_ms < fresh.deadline_ms) {
        fresh.deadline_ms = call->sent_ms + fresh.least_ttl_ms;
        fresh.renew_in_ms = fresh.least_ttl_ms / 3;
    }
    if (!read_mode(json, &fresh.mode) || !read_fencing_token(json, &fresh))
        return false;
    *grant = fresh;
    return true;
}

/* -- acquire
 *
 * A wait is asked for in slices, so that no proxy's time-out ends it (they begin at 30 s), and the place in
 * line is kept between them: also while the service or its store is away, for as long as it is kept. */

enum {
    SLICE_LEAST_MS = 15000,
    SLICE_MOST_MS = 20000,
    AWAY_MOST_MS = 30000,
    WAITED_LEAST_MS = 1000,
    PAUSE_IN_LINE_MS = 800, /* who is offered the lease has 3 s to come for it */
    LEAVE_MOST_MS = 1000
};

struct acquire {
    struct client_call call;
    struct client_body body;
    const struct pawl_ask *ask;
    const char *lease_id;
    int64_t wait_until_ms; /* INT64_MAX: for ever */
    int64_t away_since_ms; /* nobody of Pawl's has answered since then; 0: not so */
    unsigned failures;
    bool fresh;        /* nobody else asks with this lease_id */
    bool joined;       /* it may have a place in line */
    bool leaves;       /* which is not to be kept any more */
    bool granted_late; /* while it left, cancelled: it held nothing before */
    int stops[2];
};

static void acquire_write(struct acquire *a, uint64_t wait_ms)
{
    const struct pawl_ask *ask = a->ask;

    body_begin(&a->body);
    body_text(&a->body, "lease_id", a->lease_id);
    body_text(&a->body, "holder", ask->holder);
    if (ask->ttl_ms > 0)
        body_number(&a->body, "ttl_ms", ask->ttl_ms);
    if (wait_ms > 0)
        body_number(&a->body, "wait_ms", wait_ms);
    if (wait_ms > 0 && !a->leaves)
        body_number(&a->body, "keep_place_ms", ask->keep_place_ms > 0 ? ask->keep_place_ms : AWAY_MOST_MS);
    if (ask->mode == PAWL_PERMITS)
        body_number(&a->body, "permits", ask->permits);
    else if (ask->mode == PAWL_SHARED)
        body_text(&a->body, "mode", "shared");
    if (ask->lock_delay_ms > 0)
        body_number(&a->body, "lock_delay_ms", ask->lock_delay_ms);
    body_raw(&a->body, "meta", ask->meta);
    body_text(&a->body, "session", ask->session);
    a->call.request.body = body_end(&a->body);
}

/* Each attempt waits for what is left. Slices are not all as long, so that many do not ask as one. */
static bool acquire_prepare(struct client_call *call, struct pawl_problem *problem)
{
    struct acquire *a = container_of(call, struct acquire, call);
    int64_t left_ms = a->wait_until_ms - pawl_now_ms();
    int64_t slice_ms = client_random_between(SLICE_LEAST_MS, SLICE_MOST_MS);

    call->wait_ms = a->leaves ? 1 : left_ms < 0 ? 0 : (unsigned)(left_ms < slice_ms ? left_ms : slice_ms);
    acquire_write(a, call->wait_ms);
    if (a->body.out.is_full)
        problem_wrong(problem, "holder and meta are too long.");
    return !a->body.out.is_full;
}

static enum pawl_outcome acquire_check(const char *name, const struct pawl_ask *ask,
                                       struct pawl_problem *problem)
{
    const char *wrong = NULL;

    if (!client_is_name(name))
        wrong = "The name of a lease is 1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit.";
    else if (ask->lease_id != NULL && !client_is_lease_id(ask->lease_id))
        wrong = "A lease_id is 22 to 64 of A-Z a-z 0-9 _ -, at random.";
    else if (ask->lease_id == NULL && ask->keep_place_ms > 0)
        wrong = "keep_place_ms needs a lease_id of the caller's: by it the place is found again.";
    else if ((ask->session == NULL) != (ask->session_secret == NULL))
        wrong = "A session and its secret come together.";
    else if (ask->mode != PAWL_EXCLUSIVE && ask->mode != PAWL_SHARED && ask->mode != PAWL_PERMITS)
        wrong = "This version knows no such mode.";
    return wrong != NULL ? problem_wrong(problem, wrong) : PAWL_OK;
}

static void acquire_begin(struct acquire *a, const struct pawl *pawl)
{
    struct client_call *call = &a->call;

    call_init(call, pawl, "POST", CALL_STATE);
    call->prepare = acquire_prepare;
    call->attempts = a->ask->wait_ms > 0 ? 1 : call->attempts; /* acquire_waits_on() knows better */
    call_header(call, "Content-Type", "application/json");
    call_header(call, "Session-Secret", a->ask->session_secret);
    if (a->ask->cancel_fd != NULL) {
        a->stops[0] = *a->ask->cancel_fd;
        a->stops[1] = -1;
        call->request.stop_fds = a->stops;
    }
}

/* By what was said last, whatever became of an attempt before it. */
static bool stands_in_line(const struct acquire *a, const struct pawl_problem *problem)
{
    return strcmp(problem->code, "wait-timeout") == 0 ||
           /* by an attempt of our own that came late */
           (strcmp(problem->code, "superseded") == 0 && a->fresh && a->call.unreported);
}

/* Whether the service, or its store, may be back soon. */
static bool may_come_back(const struct acquire *a, enum pawl_outcome outcome,
                          const struct pawl_problem *problem)
{
    return (problem->status == 0 || problem->status >= 500) && !a->call.answer.stopped &&
           (outcome == PAWL_UNKNOWN || (outcome == PAWL_NOT_DONE && problem->retryable != 0));
}

/* Once it may stand in line, the request that leaves the line may yet be granted the lease. */
static bool acquire_cancelled(struct acquire *a, enum pawl_outcome *outcome, struct pawl_problem *problem)
{
    a->call.answer.stopped = true;
    *outcome = problem_say(problem, a->joined ? PAWL_UNKNOWN : PAWL_NOT_DONE, "cancelled",
                           "The caller gave it up.");
    return false;
}

static bool acquire_pause(struct acquire *a, int64_t most_ms, enum pawl_outcome *outcome,
                          struct pawl_problem *problem)
{
    return call_pause(&a->call, a->failures, most_ms) ? pawl_now_ms() < a->wait_until_ms
                                                      : acquire_cancelled(a, outcome, problem);
}

static bool acquire_waits_on(struct acquire *a, enum pawl_outcome *outcome, struct pawl_problem *problem)
{
    int64_t now_ms = pawl_now_ms(), took_ms = now_ms - a->call.sent_ms, left_ms = a->wait_until_ms - now_ms;
    bool in_line = stands_in_line(a, problem), waited = took_ms >= WAITED_LEAST_MS;

    a->joined = a->joined || in_line || *outcome == PAWL_UNKNOWN || problem->status == 503;
    if (a->joined && a->call.answer.stopped && *outcome == PAWL_NOT_DONE)
        return acquire_cancelled(a, outcome, problem);
    if (left_ms <= 0 || *outcome == PAWL_OK || (!in_line && !may_come_back(a, *outcome, problem)))
        return false;
    if (in_line)
        a->away_since_ms = 0;
    else if (a->away_since_ms == 0 ||
             (waited && took_ms < (int64_t)a->call.wait_ms && a->call.sent != HTTP_CLIENT_NOT_SENT))
        a->away_since_ms = now_ms; /* it stood in line until now, as far as one can tell */
    a->failures = waited ? 0 : a->failures + 1;
    if (a->away_since_ms != 0 && now_ms - a->away_since_ms >= AWAY_MOST_MS)
        return false;
    return (in_line && waited) ||
           acquire_pause(a, left_ms < PAUSE_IN_LINE_MS ? left_ms : PAUSE_IN_LINE_MS, outcome, problem);
}

/* With a request that keeps no place: else the lease would be offered to nobody, for seconds. It may be
 * granted just now, too, which counts unless it was cancelled: then acquire_run() gives it back. */
static enum pawl_outcome acquire_leave(struct acquire *a, enum pawl_outcome outcome,
                                       struct pawl_problem *problem)
{
    struct http_client_answer before = a->call.answer;
    struct pawl_problem why;
    enum pawl_outcome left;

    a->call.answer = (struct http_client_answer){0};
    a->call.request.stop_fds = NULL;
    a->call.timeout_ms = LEAVE_MOST_MS;
    a->leaves = true;
    left = call_run(&a->call, &why);
    if (!before.stopped && left != PAWL_NOT_DONE) {
        http_client_answer_done(&before);
        *problem = why;
        return left;
    }
    a->granted_late = a->call.answer.status == 201;
    http_client_answer_done(&a->call.answer);
    a->call.answer = before;
    return outcome;
}

static enum pawl_outcome acquire_run(struct acquire *a, const struct pawl *pawl, struct pawl_grant *grant,
                                     struct pawl_problem *problem)
{
    enum pawl_outcome outcome;

    call_url(&a->call, pawl->lease_url, "/v1/leases/", grant->name, '\0');
    do {
        outcome = call_run(&a->call, problem);
    } while (acquire_waits_on(a, &outcome, problem));
    /* Once superseded the place is another's, whom the leave would drive out. */
    if (outcome != PAWL_OK && a->ask->wait_ms > 0 && a->ask->keep_place_ms == 0 && a->joined &&
        (a->fresh || strcmp(problem->code, "superseded") != 0))
        outcome = acquire_leave(a, outcome, problem);
    if (outcome == PAWL_OK && !grant_take(&a->call, GRANT_NEW, grant))
        outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer", bad_answer);
    /* A lease_id that the library made is nobody else's to use, so nothing is lost by it. One of the caller's
     * may have held the lease before this call. */
    if (outcome == PAWL_UNKNOWN && (a->ask->lease_id == NULL || a->granted_late)) {
        struct pawl_grant copy = *grant;

        hold_release(pawl, &copy, 1, &(struct pawl_problem){0});
    }
    return outcome;
}

enum pawl_outcome hold_acquire(const struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                               struct pawl_grant *grant, struct hold_told *told, struct pawl_problem *problem)
{
    struct acquire a = {.ask = ask, .fresh = ask->lease_id == NULL || (told != NULL && told->fresh)};
    enum pawl_outcome outcome = acquire_check(name, ask, problem);
    int64_t now_ms = pawl_now_ms();

    if (outcome != PAWL_OK)
        return outcome;
    *grant = (struct pawl_grant){.size = sizeof(*grant)};
    client_text(grant->name, sizeof(grant->name), bytes_of(name));
    if (ask->lease_id != NULL)
        client_text(grant->lease_id, sizeof(grant->lease_id), bytes_of(ask->lease_id));
    else if (!client_random_text(grant->lease_id, CLIENT_LEASE_ID_FRESH))
        return problem_say(problem, PAWL_NOT_DONE, "no-resources", "The machine gives no random bytes.");
    a.lease_id = grant->lease_id;
    a.wait_until_ms = ask->wait_ms > (uint64_t)(INT64_MAX - now_ms) ? INT64_MAX
                                                                    : now_ms + (int64_t)ask->wait_ms;
    acquire_begin(&a, pawl);
    outcome = acquire_run(&a, pawl, grant, problem);
    if (told != NULL) {
        told->unreported = a.call.unreported;
        told->answer = a.call.answer;
        a.call.answer = (struct http_client_answer){0};
    }
    call_done(&a.call);
    explicit_bzero(a.body.text, sizeof(a.body.text));
    return outcome;
}

enum pawl_outcome pawl_acquire(struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                               struct pawl_grant *grant, struct pawl_problem *problem)
{
    struct pawl_ask known = {.size = sizeof(known)};
    struct pawl_grant own = {.size = sizeof(own)};
    struct pawl_problem why;
    enum pawl_outcome outcome;

    if (pawl == NULL || grant == NULL || !client_size_fits(grant->size, GRANT_FIRST) ||
        (ask != NULL && !client_size_fits(ask->size, ASK_FIRST)))
        return problem_give_wrong(problem, "A struct is missing, or has no right size.");
    if (ask != NULL)
        client_take(&known, ask, sizeof(known));
    outcome = hold_acquire(pawl, name, &known, &own, NULL, &why);
    if (outcome == PAWL_OK || outcome == PAWL_UNKNOWN)
        client_give(grant, &own, sizeof(own));
    explicit_bzero(&own, sizeof(own));
    return problem_give(problem, &why, outcome);
}

/* -- renew, release. Both name the hold by its lease_id and its Fencing-Token: a repeat does no harm */

static bool is_grant(const struct pawl_grant *grant)
{
    return memchr(grant->name, '\0', sizeof(grant->name)) != NULL &&
           memchr(grant->lease_id, '\0', sizeof(grant->lease_id)) != NULL &&
           memchr(grant->fencing_token, '\0', sizeof(grant->fencing_token)) != NULL &&
           client_is_name(grant->name) && client_is_lease_id(grant->lease_id);
}

static enum pawl_outcome hold_begin(struct client_call *call, const struct pawl *pawl, const char *method,
                                    const struct pawl_grant *grant, struct pawl_problem *problem)
{
    if (!is_grant(grant))
        return problem_wrong(problem, "This is not the grant of a hold.");
    call_init(call, pawl, method, CALL_STATE);
    call_header(call, "Lease-Id", grant->lease_id);
    /* An acquire of unknown end has none. */
    call_header(call, "Fencing-Token", grant->fencing_token);
    call_url(call, pawl->lease_url, "/v1/leases/", grant->name, '\0');
    return PAWL_OK;
}

/* -- renew */

static enum pawl_outcome renew_run(struct client_call *call, struct pawl_grant *grant, uint64_t ttl_ms,
                                   struct pawl_problem *problem)
{
    struct client_body body;
    enum pawl_outcome outcome;
    int64_t least_ms;

    if (ttl_ms > 0) {
        body_begin(&body);
        body_number(&body, "ttl_ms", ttl_ms);
        call_header(call, "Content-Type", "application/json");
        call->request.body = body_end(&body);
    }
    outcome = call_run(call, problem);
    if (outcome == PAWL_OK && !grant_take(call, GRANT_RENEWED, grant))
        outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer", bad_answer);
    /* It may have been done, at any time from the first attempt on: then a shorter ttl counts from there. */
    least_ms = call->first_sent_ms + (int64_t)ttl_ms;
    if ((outcome == PAWL_UNKNOWN || call->unreported) && ttl_ms > 0 &&
        (grant->least_ttl_ms == 0 || (int64_t)ttl_ms < grant->least_ttl_ms))
        grant->least_ttl_ms = (int64_t)ttl_ms;
    if (outcome == PAWL_UNKNOWN && ttl_ms > 0 && least_ms < grant->deadline_ms)
        grant->deadline_ms = least_ms;
    return outcome;
}

enum pawl_outcome hold_renew(const struct pawl *pawl, struct pawl_grant *grant, uint64_t ttl_ms,
                             const struct hold_limits *limits, struct pawl_problem *problem)
{
    struct client_call call = {0};
    enum pawl_outcome outcome;

    if (ttl_ms > CLIENT_TTL_MAX_MS)
        return problem_wrong(problem, "ttl_ms may be 86,400,000 at most.");
    outcome = hold_begin(&call, pawl, "PUT", grant, problem);
    if (outcome == PAWL_OK) {
        call.attempts = limits->attempts;
        call.timeout_ms = limits->timeout_ms;
        call.request.stop_fds = limits->stop_fds;
        outcome = renew_run(&call, grant, ttl_ms, problem);
    }
    call_done(&call);
    return outcome;
}

/* -- release */

static enum pawl_outcome release_run(struct client_call *call, struct pawl_grant *grant,
                                     struct pawl_problem *problem)
{
    enum pawl_outcome outcome = call_run(call, problem);
    int64_t holds = 0;

    if (outcome != PAWL_OK)
        return outcome;
    if (call->answer.status != 204) {
        holds = call->answer.status == 200 && call->json != NULL ? client_number(call->json, "holds") : 0;
        if (holds < 1)
            return problem_say(problem, PAWL_UNKNOWN, "bad-answer", bad_answer);
    }
    grant->holds = (unsigned)holds;
    if (holds == 0)
        grant->deadline_ms = 0;
    return PAWL_OK;
}

enum pawl_outcome hold_release(const struct pawl *pawl, struct pawl_grant *grant, unsigned attempts,
                               struct pawl_problem *problem)
{
    struct client_call call = {0};
    char key[CLIENT_LEASE_ID_FRESH + 1];
    enum pawl_outcome outcome = hold_begin(&call, pawl, "DELETE", grant, problem);

    /* Without it a repeat could leave twice a hold that was entered twice. */
    if (outcome == PAWL_OK && !client_random_text(key, CLIENT_LEASE_ID_FRESH))
        outcome = problem_say(problem, PAWL_NOT_DONE, "no-resources", "The machine gives no random bytes.");
    if (outcome == PAWL_OK) {
        call_header(&call, "Idempotency-Key", key);
        call.attempts = attempts;
        outcome = release_run(&call, grant, problem);
    }
    call_done(&call);
    return outcome;
}

/* -- with the structs of a caller, who may know another version of them */

enum deed { DEED_RENEW, DEED_RELEASE };

static enum pawl_outcome hold_do(const struct pawl *pawl, enum deed deed, struct pawl_grant *grant,
                                 uint64_t ttl_ms, struct pawl_problem *problem)
{
    struct pawl_grant own = {.size = sizeof(own)};
    struct hold_limits limits;
    struct pawl_problem why;
    enum pawl_outcome outcome;

    if (pawl == NULL || grant == NULL || !client_size_fits(grant->size, GRANT_FIRST))
        return problem_give_wrong(problem, "A struct is missing, or has no right size.");
    client_take(&own, grant, sizeof(own));
    limits = (struct hold_limits){.attempts = pawl->attempts, .timeout_ms = pawl->timeout_ms};
    outcome = deed == DEED_RENEW ? hold_renew(pawl, &own, ttl_ms, &limits, &why)
                                 : hold_release(pawl, &own, pawl->attempts, &why);
    client_give(grant, &own, sizeof(own));
    explicit_bzero(&own, sizeof(own));
    return problem_give(problem, &why, outcome);
}

enum pawl_outcome pawl_renew(struct pawl *pawl, struct pawl_grant *grant, uint64_t ttl_ms,
                             struct pawl_problem *problem)
{
    return hold_do(pawl, DEED_RENEW, grant, ttl_ms, problem);
}

enum pawl_outcome pawl_release(struct pawl *pawl, struct pawl_grant *grant, struct pawl_problem *problem)
{
    return hold_do(pawl, DEED_RELEASE, grant, 0, problem);
}

/* -- look */

#define VIEW_FIRST (offsetof(struct pawl_view, held_for_ms) + sizeof(int64_t))

static bool view_state(const struct json *json, enum pawl_state *state)
{
    struct bytes text = client_member(json, "state");

    *state = bytes_are(text, "held") ? PAWL_TAKEN : bytes_are(text, "delayed") ? PAWL_DELAYED : PAWL_FREE;
    return *state != PAWL_FREE || bytes_are(text, "free");
}

static bool view_take(const struct json *json, const char *name, struct pawl_view *view)
{
    const struct json *first;
    enum json_found found;

    if (json == NULL || !bytes_are(client_member(json, "lease"), name) || !view_state(json, &view->state))
        return false;
    view->token = client_number(json, "token");
    view->epoch = client_number(json, "epoch");
    view->waiting = (unsigned)client_number(json, "waiting");
    view->holders = (unsigned)json_list_count(json, "holders", &found);
    first = view->holders > 0 ? json_list_object(json, "holders", 0) : NULL;
    if (first != NULL) {
        client_text(view->holder, sizeof(view->holder), client_member(first, "holder"));
        read_mode(first, &view->mode);
        view->holder_token = client_number(first, "token");
        view->expires_in_ms = client_number(first, "expires_in_ms");
        view->held_for_ms = client_number(first, "held_for_ms");
    }
    return true;
}

static enum pawl_outcome look(const struct pawl *pawl, const char *name, struct pawl_view *view,
                              struct pawl_problem *problem)
{
    enum pawl_outcome outcome;
    struct client_call call;

    call_init(&call, pawl, "GET", CALL_READ);
    call_url(&call, pawl->lease_url, "/v1/leases/", name, '\0');
    outcome = call_run(&call, problem);
    if (outcome == PAWL_OK) {
        call.json = json_parse((struct bytes){call.answer.body, call.answer.len}, CLIENT_JSON_LEVELS, NULL);
        if (call.answer.status != 200 || !view_take(call.json, name, view)) {
            outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer",
                                  "The answer cannot be read. Look at the address of the service.");
        }
    }
    call_done(&call);
    return outcome;
}

enum pawl_outcome pawl_look(struct pawl *pawl, const char *name, struct pawl_view *view,
                            struct pawl_problem *problem)
{
    struct pawl_view own = {.size = sizeof(own)};
    struct pawl_problem why;
    enum pawl_outcome outcome;

    if (pawl == NULL || !client_is_name(name) || view == NULL || !client_size_fits(view->size, VIEW_FIRST))
        return problem_give_wrong(problem, "This is not the name of a lease, or a struct has no right size.");
    outcome = look(pawl, name, &own, &why);
    if (outcome == PAWL_OK)
        client_give(view, &own, sizeof(own));
    return problem_give(problem, &why, outcome);
}
