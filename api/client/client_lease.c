/* client_lease.c - pawl_acquire(): take a lease.
 *
 *   hold_acquire     what was asked, and the lease_id to propose     PAWL_NOT_DONE, or go on
 *   acquire_round    POST, repeated as long as its end is not known  PAWL_OK | PAWL_HELD | PAWL_LOST |
 * PAWL_NOT_DONE who waits longer than a request may: again acquire_undo     PAWL_UNKNOWN: what may be held is
 * released */
#include "api/client/client_body.h"

struct acquire {
    struct call call;
    struct client_body body;
    const struct pawl_ask *ask;
    const char *lease_id;
    int64_t wait_until_ms; /* INT64_MAX: for ever */
    int stops[2];
};

#define ASK_FIRST (offsetof(struct pawl_ask, cancel_fd) + sizeof(const int *))
#define GRANT_FIRST (offsetof(struct pawl_grant, deadline_ms) + sizeof(int64_t))

static const char bad_answer[] =
    "It was answered, but the answer cannot be read: it may have happened. Look at the "
    "address of the service.";

static void acquire_write(struct acquire *a, uint64_t wait_ms)
{
    const struct pawl_ask *ask = a->ask;

    body_begin(&a->body);
    body_text(&a->body, "lease_id", a->lease_id);
    body_text(&a->body, "holder", ask->holder);
    if (ask->ttl_ms > 0) {
        body_number(&a->body, "ttl_ms", ask->ttl_ms);
    }
    if (wait_ms > 0) {
        body_number(&a->body, "wait_ms", wait_ms);
    }
    if (ask->mode == PAWL_PERMITS) {
        body_number(&a->body, "permits", ask->permits);
    } else if (ask->mode == PAWL_SHARED) {
        body_text(&a->body, "mode", "shared");
    }
    if (ask->lock_delay_ms > 0) {
        body_number(&a->body, "lock_delay_ms", ask->lock_delay_ms);
    }
    body_raw(&a->body, "meta", ask->meta);
    body_text(&a->body, "session", ask->session);
    body_end(&a->body);
    a->call.request.body = (struct bytes){a->body.at, a->body.len};
}

/* Each attempt waits for what is left. */
static bool acquire_prepare(struct call *call, struct pawl_problem *problem)
{
    struct acquire *a = container_of(call, struct acquire, call);
    int64_t left_ms = a->wait_until_ms - pawl_now_ms();

    left_ms = left_ms < 0 ? 0 : left_ms > CLIENT_WAIT_MAX_MS ? CLIENT_WAIT_MAX_MS : left_ms;
    call->wait_ms = (unsigned)left_ms;
    acquire_write(a, (uint64_t)left_ms);
    if (a->body.full) {
        problem_say(problem, PAWL_NOT_DONE, "bad-argument", "holder and meta are too long.");
        return false;
    }
    return true;
}

static enum pawl_outcome acquire_check(const char *name, const struct pawl_ask *ask,
                                       struct pawl_problem *problem)
{
    const char *wrong = NULL;

    if (!client_is_name(name)) {
        wrong = "The name of a lease is 1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit.";
    } else if (ask->lease_id != NULL && !client_is_lease_id(ask->lease_id)) {
        wrong = "A lease_id is 22 to 64 of A-Z a-z 0-9 _ -, at random.";
    } else if ((ask->session == NULL) != (ask->session_secret == NULL)) {
        wrong = "A session and its secret come together.";
    } else if (ask->mode != PAWL_EXCLUSIVE && ask->mode != PAWL_SHARED && ask->mode != PAWL_PERMITS) {
        wrong = "This version knows no such mode.";
    }
    return wrong != NULL ? problem_say(problem, PAWL_NOT_DONE, "bad-argument", wrong) : PAWL_OK;
}

static void acquire_begin(struct acquire *a, const struct pawl *pawl)
{
    struct call *call = &a->call;

    call_init(call, pawl, "POST", CALL_STATE);
    call->prepare = acquire_prepare;
    call_header(call, "Content-Type", "application/json");
    call_header(call, "Session-Secret", a->ask->session_secret);
    if (a->ask->cancel_fd != NULL) {
        a->stops[0] = *a->ask->cancel_fd;
        a->stops[1] = -1;
        call->request.stop_fds = a->stops;
    }
}

static bool is_over(const struct acquire *a, enum pawl_outcome outcome, const struct pawl_problem *problem)
{
    return outcome != PAWL_HELD || strcmp(problem->code, "wait-timeout") != 0 ||
           pawl_now_ms() >= a->wait_until_ms;
}

/* A lease_id that the library made is nobody else's to use, so nothing is lost by it. One of the caller's may
 * have held the lease before this call. */
static void acquire_undo(const struct pawl *pawl, const struct pawl_grant *grant)
{
    struct pawl_problem problem;
    struct pawl_grant copy = *grant;

    hold_release(pawl, &copy, 1, &problem);
}

static enum pawl_outcome acquire_run(struct acquire *a, const struct pawl *pawl, struct pawl_grant *grant,
                                     struct pawl_problem *problem)
{
    enum pawl_outcome outcome;

    if (!call_url(&a->call, pawl->lease_url, "/v1/leases/", grant->name, '\0')) {
        return problem_say(problem, PAWL_NOT_DONE, "out-of-memory", "There is no memory.");
    }
    do {
        outcome = call_run(&a->call, problem);
    } while (!is_over(a, outcome, problem));
    if (outcome == PAWL_OK && !grant_take(&a->call, GRANT_NEW, grant)) {
        outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer", bad_answer);
    }
    if (outcome == PAWL_UNKNOWN && a->ask->lease_id == NULL) {
        acquire_undo(pawl, grant);
    }
    return outcome;
}

enum pawl_outcome hold_acquire(const struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                               struct pawl_grant *grant, struct pawl_problem *problem)
{
    struct acquire a = {.ask = ask};
    enum pawl_outcome outcome = acquire_check(name, ask, problem);
    int64_t now_ms = pawl_now_ms();

    if (outcome != PAWL_OK) {
        return outcome;
    }
    *grant = (struct pawl_grant){.size = sizeof(*grant)};
    client_text(grant->name, sizeof(grant->name), bytes_of(name));
    if (ask->lease_id != NULL) {
        client_text(grant->lease_id, sizeof(grant->lease_id), bytes_of(ask->lease_id));
    } else if (!client_random_text(grant->lease_id, CLIENT_LEASE_ID_FRESH)) {
        return problem_say(problem, PAWL_NOT_DONE, "no-resources", "The machine gives no random bytes.");
    }
    a.lease_id = grant->lease_id;
    a.wait_until_ms = ask->wait_ms > (uint64_t)(INT64_MAX - now_ms) ? INT64_MAX
                                                                    : now_ms + (int64_t)ask->wait_ms;
    acquire_begin(&a, pawl);
    outcome = acquire_run(&a, pawl, grant, problem);
    call_done(&a.call);
    explicit_bzero(a.body.at, sizeof(a.body.at));
    return outcome;
}

enum pawl_outcome pawl_acquire(struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                               struct pawl_grant *grant, struct pawl_problem *problem)
{
    struct pawl_ask known = {.size = sizeof(known)};
    struct pawl_grant own = {.size = sizeof(own)};
    struct pawl_problem why;
    enum pawl_outcome outcome;

    problem_reset(&why);
    if (pawl == NULL || grant == NULL || !client_size_fits(grant->size, GRANT_FIRST) ||
        (ask != NULL && !client_size_fits(ask->size, ASK_FIRST))) {
        return problem_give(
            problem, &why,
            problem_say(&why, PAWL_NOT_DONE, "bad-argument", "A struct is missing, or has no right size."));
    }
    if (ask != NULL) {
        client_take(&known, ask, sizeof(known));
    }
    outcome = hold_acquire(pawl, name, &known, &own, &why);
    if (outcome == PAWL_OK || outcome == PAWL_UNKNOWN) {
        client_give(grant, &own, sizeof(own));
    }
    explicit_bzero(&own, sizeof(own));
    return problem_give(problem, &why, outcome);
}
