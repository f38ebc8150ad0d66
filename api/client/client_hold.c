/* client_hold.c - pawl_renew(), pawl_release(): what can be done with a hold. Both name the very hold by its
 * lease_id and its Fencing-Token, so that doing it again does no harm. */
#include "api/client/client_body.h"

#define GRANT_FIRST (offsetof(struct pawl_grant, deadline_ms) + sizeof(int64_t))

static const char bad_answer[] =
    "It was answered, but the answer cannot be read: it may have happened. Look at the "
    "address of the service.";

static bool is_grant(const struct pawl_grant *grant)
{
    return memchr(grant->name, '\0', sizeof(grant->name)) != NULL &&
           memchr(grant->lease_id, '\0', sizeof(grant->lease_id)) != NULL &&
           memchr(grant->fencing_token, '\0', sizeof(grant->fencing_token)) != NULL &&
           client_is_name(grant->name) && client_is_lease_id(grant->lease_id);
}

static enum pawl_outcome hold_begin(struct call *call, const struct pawl *pawl, const char *method,
                                    const struct pawl_grant *grant, struct pawl_problem *problem)
{
    if (!is_grant(grant)) {
        return problem_say(problem, PAWL_NOT_DONE, "bad-argument", "This is not the grant of a hold.");
    }
    call_init(call, pawl, method, CALL_STATE);
    call_header(call, "Lease-Id", grant->lease_id);
    /* An acquire of unknown end has none. */
    call_header(call, "Fencing-Token", grant->fencing_token);
    if (!call_url(call, pawl->lease_url, "/v1/leases/", grant->name, '\0')) {
        return problem_say(problem, PAWL_NOT_DONE, "out-of-memory", "There is no memory.");
    }
    return PAWL_OK;
}

/* -- renew */

/* It may have been done, at any time from the first attempt on: then a shorter ttl counts from there. */
static void renew_doubt(const struct call *call, struct pawl_grant *grant, uint64_t ttl_ms)
{
    int64_t least_ms = call->first_sent_ms + (int64_t)ttl_ms;

    if (ttl_ms > 0 && least_ms < grant->deadline_ms) {
        grant->deadline_ms = least_ms;
    }
}

static enum pawl_outcome renew_run(struct call *call, struct pawl_grant *grant, uint64_t ttl_ms,
                                   struct pawl_problem *problem)
{
    struct client_body body;
    enum pawl_outcome outcome;

    if (ttl_ms > 0) {
        body_begin(&body);
        body_number(&body, "ttl_ms", ttl_ms);
        body_end(&body);
        call_header(call, "Content-Type", "application/json");
        call->request.body = (struct bytes){body.at, body.len};
    }
    outcome = call_run(call, problem);
    if (outcome == PAWL_OK && !grant_take(call, GRANT_RENEWED, grant)) {
        outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer", bad_answer);
    }
    if (outcome == PAWL_UNKNOWN) {
        renew_doubt(call, grant, ttl_ms);
    }
    return outcome;
}

enum pawl_outcome hold_renew(const struct pawl *pawl, struct pawl_grant *grant, uint64_t ttl_ms,
                             const struct hold_limits *limits, struct pawl_problem *problem)
{
    struct call call = {0};
    enum pawl_outcome outcome;

    if (ttl_ms > CLIENT_TTL_MAX_MS) {
        return problem_say(problem, PAWL_NOT_DONE, "bad-argument", "ttl_ms may be 86,400,000 at most.");
    }
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

static enum pawl_outcome release_run(struct call *call, struct pawl_grant *grant,
                                     struct pawl_problem *problem)
{
    enum pawl_outcome outcome = call_run(call, problem);
    int64_t holds = 0;

    if (outcome != PAWL_OK) {
        return outcome;
    }
    if (call->answer.status != 204) {
        holds = call->answer.status == 200 && call->json != NULL ? client_number(call->json, "holds") : 0;
        if (holds < 1) {
            return problem_say(problem, PAWL_UNKNOWN, "bad-answer", bad_answer);
        }
    }
    grant->holds = (unsigned)holds;
    if (holds == 0) {
        grant->deadline_ms = 0;
    }
    return PAWL_OK;
}

enum pawl_outcome hold_release(const struct pawl *pawl, struct pawl_grant *grant, unsigned attempts,
                               struct pawl_problem *problem)
{
    struct call call = {0};
    char key[CLIENT_LEASE_ID_FRESH + 1];
    enum pawl_outcome outcome = hold_begin(&call, pawl, "DELETE", grant, problem);

    /* Without it a repeat could leave twice a hold that was entered twice. */
    if (outcome == PAWL_OK && !client_random_text(key, CLIENT_LEASE_ID_FRESH)) {
        outcome = problem_say(problem, PAWL_NOT_DONE, "no-resources", "The machine gives no random bytes.");
    }
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

    problem_reset(&why);
    if (pawl == NULL || grant == NULL || !client_size_fits(grant->size, GRANT_FIRST)) {
        outcome = problem_say(&why, PAWL_NOT_DONE, "bad-argument",
                              "A struct is missing, or has no right size.");
        return problem_give(problem, &why, outcome);
    }
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
