/* fenced_call.c - what every request at the gate has: a resource or a lease, a token, a call to the store;
 * how the gate says what it found: Fencing-Status, and why something was refused. */
#include "gateway/fenced_call.h"

#include <assert.h>
#include <stdio.h>

#include "scripts.h"

static const char *fenced_named(struct fenced_call *fenced, const char *wrong)
{
    const struct service_settings *settings = &worker_of(fenced->req)->service->settings;

    if (wrong == NULL)
        http_note_lease(fenced->req, fenced->lease);
    if (settings->check > 0) {
        fenced->by_mark = true;
        fenced->store = bytes_of(settings->check_store != NULL ? settings->check_store : "");
        snprintf(fenced->check, sizeof(fenced->check), "mark%s%s", fenced->store.len > 0 ? " " : "",
                 fenced->store.at);
    }
    return wrong;
}

const char *fenced_init_resource(struct fenced_call *fenced, struct http_request *req, struct bytes raw)
{
    fenced->req = req;
    return fenced_named(fenced, resource_key_from_path(raw, fenced->text, &fenced->resource, &fenced->lease));
}

const char *fenced_init_lease(struct fenced_call *fenced, struct http_request *req, struct bytes raw)
{
    fenced->req = req;
    return fenced_named(fenced, name_from_path(raw, fenced->text, &fenced->lease));
}

bool fenced_has_token(const struct http_request *req)
{
    unsigned count = 0;

    http_header(req, "Fencing-Token", &count);
    return count > 0;
}

static enum problem store_problem(const struct fenced_call *fenced)
{
    if (fenced->store.len == 0)
        return member_store_problem(member_line_of(fenced->req), fenced->claim.store);
    return bytes_equal(fenced->claim.store, fenced->store) ? PROBLEM_NONE : PROBLEM_WRONG_STORE;
}

enum problem fenced_read_token(struct fenced_call *fenced)
{
    enum problem bad = member_token_read(fenced->req, &fenced->claim);

    fenced->claimed = bad == PROBLEM_NONE || bad == PROBLEM_BAD_SIGNATURE;
    if (bad == PROBLEM_NONE)
        bad = store_problem(fenced);
    if (bad != PROBLEM_NONE)
        return bad;
    return bytes_equal(fenced->claim.lease, fenced->lease) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

void fenced_judge_write(struct fenced_call *fenced)
{
    fenced->own = (struct bytes){NULL, 0};
    if (service_allows(fenced->req, ACCESS_WRITE, fenced->lease))
        return;
    assert(http_identity(fenced->req) != NULL); /* else write was refused */
    fenced->own = bytes_of(http_identity(fenced->req));
}

bool fenced_may_write(struct fenced_call *fenced)
{
    fenced_judge_write(fenced);
    return !fenced->by_mark || fenced->own.len == 0;
}

/* -- the call */

void fenced_begin(struct fenced_call *fenced, unsigned stripe)
{
    fenced->on = stripe;
    fenced->keys = fenced->args = 0;
    fenced_add_key(fenced, keys_stripe(fenced->stripe, stripe));
}

void fenced_begin_lease(struct fenced_call *fenced)
{
    fenced_begin(fenced, keys_stripe_of(fenced->lease));
}

void fenced_add_key(struct fenced_call *fenced, struct bytes key)
{
    assert(fenced->args == 0 && fenced->keys < FENCED_KEYS_MAX);
    fenced->argv[fenced->keys++] = key;
}

void fenced_add(struct fenced_call *fenced, struct bytes argument)
{
    assert(fenced->args < FENCED_ARGS_MAX);
    fenced->argv[fenced->keys + fenced->args++] = argument;
}

void fenced_add_fence(struct fenced_call *fenced)
{
    struct bytes_out mode = {fenced->mode, 0, sizeof(fenced->mode), false};

    assert(fenced->own.len == 0 || !fenced->by_mark);
    fenced_add(fenced, fenced->lease);
    fenced_add(fenced, bytes_of_number(fenced->number[0], fenced->claim.token.number));
    fenced_add(fenced, bytes_of_number(fenced->number[1], fenced->claim.token.epoch));
    fenced_add(fenced, fenced->claim.hold);
    bytes_put(&mode, bytes_of(token_mode_name(fenced->claim.mode)));
    bytes_put(&mode, fenced->own.len > 0 ? BYTES(" ") : BYTES(""));
    bytes_put(&mode, fenced->own);
    bytes_put(&mode, *fenced->check != '\0' ? BYTES("\n") : BYTES(""));
    bytes_put(&mode, bytes_of(fenced->check));
    fenced_add(fenced, (struct bytes){mode.at, mode.len});
}

static enum step fenced_failed(struct fenced_call *fenced, enum problem problem)
{
    return fenced->fail != NULL ? fenced->fail(fenced, problem) : fenced_fail(fenced, problem);
}

static enum step fenced_answered(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct fenced_call *fenced = container_of(call, struct fenced_call, record);
    const struct fenced_answer *answer = fenced->answers;

    if (bad != PROBLEM_NONE)
        return fenced_failed(fenced, bad);
    while (answer->word != NULL && !store_reply_is(reply, answer->word))
        answer++;
    return answer->then != NULL ? answer->then(fenced, reply) : fenced_failed(fenced, PROBLEM_INTERNAL);
}

enum step fenced_run(struct fenced_call *fenced, const struct store_script *script,
                     const struct fenced_answer *answers)
{
    enum problem bad;

    fenced->answers = answers;
    fenced->record.done = fenced_answered;
    bad = member_run(member_line_of(fenced->req), &fenced->record, fenced->on, script, fenced->keys,
                     fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : fenced_failed(fenced, bad);
}

enum step fenced_walk(struct fenced_call *fenced, struct walk *walk, const struct walk_plan *plan)
{
    enum problem bad;

    assert(fenced->keys == plan->keys);
    walk->plan = plan;
    walk->line = member_line_of(fenced->req);
    walk->argv = fenced->argv;
    walk->args = fenced->args;
    bad = walk_begin(walk);
    return bad == PROBLEM_NONE ? SUSPENDED : fenced_failed(fenced, bad);
}

/* -- Fencing-Status, a Structured Field List in the style of RFC 9211 (Cache-Status):
 *
 *   pawl; verdict=accepted; token=34; mark=34; guarantee=committed
 *   pawl; verdict=refused; reason=stale-token; token=33; mark=34
 *   pawl; verdict=refused; reason=too-large; token=34; guarantee=ordered;assumes=incomplete
 *   pawl; verdict=unknown; reason=outcome-unknown; token=33 */

enum { STATUS_SIZE = 192, MARK_UNKNOWN = -1 };

static void status_add(struct bytes_out *text, const char *name, struct bytes value)
{
    bytes_put(text, bytes_of(name));
    bytes_put(text, value);
}

static void status_put(struct fenced_call *fenced, const char *fencing_status, const char *reason,
                       int64_t mark, const char *guarantee)
{
    char number[BYTES_NUMBER_SIZE], space[STATUS_SIZE];
    struct bytes_out text = {space, 0, sizeof(space), false};

    status_add(&text, "pawl; verdict=", bytes_of(fencing_status));
    if (reason != NULL)
        status_add(&text, "; reason=", bytes_of(reason));
    if (fenced->claimed)
        status_add(&text, "; token=", bytes_of_number(number, fenced->claim.token.number));
    if (mark != MARK_UNKNOWN)
        status_add(&text, "; mark=", bytes_of_number(number, mark));
    if (guarantee != NULL)
        status_add(&text, "; guarantee=", bytes_of(guarantee));
    http_reply_header(fenced->req, "Fencing-Status", (struct bytes){text.at, text.len});
}

void fenced_let_through(const struct fenced_call *fenced)
{
    if (fenced->claimed && !fenced->by_mark)
        epoch_let_through(member_line_of(fenced->req)->store_epoch, fenced->claim.token.number);
}

void fenced_accept(struct fenced_call *fenced, int64_t mark, const char *guarantee)
{
    fenced_let_through(fenced);
    status_put(fenced, "accepted", NULL, mark, guarantee);
}

void fenced_accept_stored(struct fenced_call *fenced, int64_t mark)
{
    fenced_accept(fenced, mark, fenced->by_mark ? "committed;assumes=mark" : "committed");
}

/* nginx turns every answer of auth_request but 2xx, 401 and 403 into 500. */
static unsigned status_of(const struct fenced_call *fenced, enum problem problem)
{
    if (fenced->statuses == FENCED_NATIVE || problem_info(problem)->status >= 500)
        return problem_info(problem)->status;
    return problem == PROBLEM_TOKEN_REQUIRED ? 401 : 403;
}

/* One of many holds is stale when it is over, whether a newer one was granted or not. NULL: what the problem
 * says. */
static const char *detail_of(const struct fenced_call *fenced, enum problem problem)
{
    if (problem == PROBLEM_STALE_TOKEN && fenced->claim.mode != TOKEN_EXCLUSIVE)
        return "Nothing was changed. Your hold is over. Stop; do not retry with this token.";
    return NULL;
}

static struct json_out *problem_members(struct fenced_call *fenced, struct json_out *json)
{
    if (fenced->lease.len > 0)
        json_text(json, "lease", fenced->lease);
    if (fenced->resource.len > 0)
        json_text(json, "resource", fenced->resource);
    if (fenced->claimed) {
        json_int(json, "presented_token", fenced->claim.token.number);
        json_int(json, "presented_epoch", fenced->claim.token.epoch);
    }
    return json;
}

static struct json_out *problem_begin(struct fenced_call *fenced, enum problem problem)
{
    return problem_members(fenced, http_problem_begin(fenced->req, problem, detail_of(fenced, problem)));
}

enum step fenced_refuse(struct fenced_call *fenced, enum problem problem)
{
    status_put(fenced, "refused", problem_info(problem)->code, MARK_UNKNOWN, NULL);
    problem_begin(fenced, problem);
    return http_problem_end(fenced->req, status_of(fenced, problem));
}

static enum step refusal_answer(struct fenced_call *fenced)
{
    const struct fenced_refusal *refusal = &fenced->refusal;
    enum problem problem = refusal->problem;
    struct json_out *json;
    enum step step;

    status_put(fenced, "refused", problem_info(problem)->code, refusal->mark, NULL);
    json = problem_begin(fenced, problem);
    if (refusal->token > 0) {
        json_int(json, "current_token", refusal->token);
        json_int(json, "current_epoch", refusal->epoch);
    }
    json_int(json, "mark", refusal->mark);
    if (refusal->holder_len > 0)
        json_text(json, "holder", (struct bytes){refusal->holder, refusal->holder_len});
    step = http_problem_end(fenced->req, status_of(fenced, problem));
    return fenced->over != NULL ? fenced->over(fenced, step) : step;
}

static enum step refusal_noted(struct fenced_call *fenced, const struct store_reply *reply)
{
    (void)reply;
    return refusal_answer(fenced);
}

static enum step refusal_not_noted(struct fenced_call *fenced, enum problem problem)
{
    (void)problem;
    return refusal_answer(fenced);
}

static enum step refusal_note(struct fenced_call *fenced)
{
    static const struct fenced_answer answers[] = {{NULL, refusal_noted}};
    struct fenced_refusal *refusal = &fenced->refusal;
    struct bytes asked = fenced->resource;

    asked.len = asked.len < FENCED_ASKED_MAX ? asked.len : FENCED_ASKED_MAX;
    *fenced->check = '\0'; /* nothing passes */
    fenced_begin_lease(fenced);
    fenced_add_fence(fenced);
    fenced_add(fenced, bytes_of(problem_info(refusal->problem)->code));
    fenced_add(fenced, bytes_of_number(fenced->number[2], refusal->token));
    fenced_add(fenced, bytes_of(member_self(worker_of(fenced->req)->service).id));
    fenced_add(fenced, bytes_of(http_request_id(fenced->req, refusal->instance) + sizeof("urn:uuid:") - 1));
    fenced_add(fenced, asked);
    fenced->fail = refusal_not_noted;
    return fenced_run(fenced, &script_refusal_note, answers);
}

enum step fenced_refuse_reply(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct bytes holder = service_holder(fenced->req, fenced->lease, store_reply_text(reply, 6));
    struct fenced_refusal *refusal = &fenced->refusal;

    refusal->problem = problem_find(store_reply_text(reply, 2));
    if (refusal->problem == PROBLEM_NONE || holder.len > FENCED_HOLDER_MAX)
        return fenced_failed(fenced, PROBLEM_INTERNAL);
    refusal->token = store_reply_integer(reply, 3);
    refusal->epoch = store_reply_integer(reply, 4);
    refusal->mark = store_reply_integer(reply, 5);
    refusal->holder_len = (unsigned)holder.len;
    if (holder.len > 0)
        memcpy(refusal->holder, holder.at, holder.len);
    return store_reply_text(reply, 7).len > 0 ? refusal_note(fenced) : refusal_answer(fenced);
}

enum step fenced_refuse_stored(struct fenced_call *fenced, const struct store_reply *reply)
{
    static const struct {
        const char *word;
        enum problem problem;
        size_t mark_at;
    } refusals[] = {
        {"key-reused", PROBLEM_KEY_REUSED, 2},
        {"full", PROBLEM_STORE_FULL, 2},
        {"quota", PROBLEM_QUOTA_EXCEEDED, 2},
        {"mismatch", PROBLEM_ETAG_MISMATCH, 3},
    };

    if (store_reply_is(reply, "refused"))
        return fenced_refuse_reply(fenced, reply);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (store_reply_is(reply, refusals[i].word)) {
            int64_t mark = store_reply_integer(reply, refusals[i].mark_at);

            status_put(fenced, "refused", problem_info(refusals[i].problem)->code, mark, NULL);
            struct json_out *json = problem_begin(fenced, refusals[i].problem);
            json_int(json, "mark", mark);
            if (refusals[i].problem == PROBLEM_QUOTA_EXCEEDED)
                service_quota_write(fenced->req, json, ACCESS_STORED_BYTES);
            return http_problem_end(fenced->req, status_of(fenced, refusals[i].problem));
        }
    }
    return fenced_fail(fenced, PROBLEM_INTERNAL);
}

enum step fenced_fail(struct fenced_call *fenced, enum problem problem)
{
    return fenced_fail_detail(fenced, problem, NULL);
}

static void status_put_failed(struct fenced_call *fenced, enum problem problem)
{
    bool unknown = problem == PROBLEM_OUTCOME_UNKNOWN || problem == PROBLEM_INTERNAL;

    if (fenced->claimed || fenced->statuses == FENCED_FORWARD_AUTH) {
        status_put(fenced, unknown ? "unknown" : "refused", problem_info(problem)->code, MARK_UNKNOWN,
                   fenced->assumes);
    }
}

enum step fenced_fail_detail(struct fenced_call *fenced, enum problem problem, const char *detail)
{
    status_put_failed(fenced, problem);
    problem_members(fenced, http_problem_begin(fenced->req, problem,
                                               detail != NULL ? detail : detail_of(fenced, problem)));
    return http_problem_end(fenced->req, status_of(fenced, problem));
}

enum step fenced_fail_final(struct fenced_call *fenced, enum problem problem, const char *detail)
{
    status_put_failed(fenced, problem);
    problem_members(fenced, http_problem_begin_final(fenced->req, problem, detail));
    return http_problem_end(fenced->req, status_of(fenced, problem));
}
