/* fencing_status.c - how the gate tells its verdict: Fencing-Status, and why something was refused.
 *
 * Fencing-Status is a Structured Field List in the style of RFC 9211 (Cache-Status):
 *   pawl; verdict=accepted; token=34; mark=34; guarantee=committed
 *   pawl; verdict=refused; reason=stale-token; token=33; mark=34
 *   pawl; verdict=refused; reason=too-large; token=34; guarantee=ordered;assumes=incomplete
 *   pawl; verdict=unknown; reason=outcome-unknown; token=33 */
#include "gateway/fenced_call.h"

enum { STATUS_SIZE = 192, MARK_UNKNOWN = -1 };

struct status_text {
    char at[STATUS_SIZE];
    size_t len;
};

static void status_add(struct status_text *text, const char *name, struct bytes value)
{
    size_t name_len = strlen(name);

    if (name_len + value.len <= sizeof(text->at) - text->len) {
        memcpy(text->at + text->len, name, name_len);
        memcpy(text->at + text->len + name_len, value.at, value.len);
        text->len += name_len + value.len;
    }
}

static void status_put(struct fenced_call *fenced, const char *fencing_status, const char *reason,
                       int64_t mark, const char *guarantee)
{
    char number[BYTES_NUMBER_SIZE];
    struct status_text text;

    text.len = 0;
    status_add(&text, "pawl; verdict=", bytes_of(fencing_status));
    if (reason != NULL) {
        status_add(&text, "; reason=", bytes_of(reason));
    }
    if (fenced->claimed) {
        status_add(&text, "; token=", bytes_of_number(number, fenced->claim.token.number));
    }
    if (mark != MARK_UNKNOWN) {
        status_add(&text, "; mark=", bytes_of_number(number, mark));
    }
    if (guarantee != NULL) {
        status_add(&text, "; guarantee=", bytes_of(guarantee));
    }
    http_reply_header(fenced->req, "Fencing-Status", (struct bytes){text.at, text.len});
}

void fenced_let_through(const struct fenced_call *fenced)
{
    if (fenced->claimed && !fenced->by_mark) {
        epoch_let_through(member_line_of(fenced->req)->store_epoch, fenced->claim.token.number);
    }
}

void fenced_accept(struct fenced_call *fenced, int64_t mark, const char *guarantee)
{
    fenced_let_through(fenced);
    status_put(fenced, "accepted", NULL, mark, guarantee);
}

/* nginx turns every answer of auth_request but 2xx, 401 and 403 into 500. */
static unsigned status_of(const struct fenced_call *fenced, enum problem problem)
{
    if (fenced->statuses == FENCED_NATIVE || problem_info(problem)->status >= 500) {
        return problem_info(problem)->status;
    }
    return problem == PROBLEM_TOKEN_REQUIRED ? 401 : 403;
}

/* One of many holds is stale when it is over, whether anybody came after it or not. NULL: what the problem
 * says. */
static const char *detail_of(const struct fenced_call *fenced, enum problem problem)
{
    if (problem == PROBLEM_STALE_TOKEN && fenced->claim.mode != TOKEN_EXCLUSIVE) {
        return "Nothing was changed. Your hold is over. Stop; do not retry with this token.";
    }
    return NULL;
}

static struct json_out *problem_members(struct fenced_call *fenced, struct json_out *json)
{
    json_text(json, "lease", fenced->lease);
    if (fenced->resource.len > 0) {
        json_text(json, "resource", fenced->resource);
    }
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

enum step fenced_refuse_reply(struct fenced_call *fenced, const struct store_reply *reply)
{
    enum problem problem = problem_find(store_reply_text(reply, 2));
    int64_t token = store_reply_integer(reply, 3), epoch = store_reply_integer(reply, 4);
    int64_t mark = store_reply_integer(reply, 5);
    struct bytes holder = store_reply_text(reply, 6);

    if (problem == PROBLEM_NONE) {
        return fenced_fail(fenced, PROBLEM_INTERNAL);
    }
    status_put(fenced, "refused", problem_info(problem)->code, mark, NULL);
    struct json_out *json = problem_begin(fenced, problem);
    if (token > 0) {
        json_int(json, "current_token", token);
        json_int(json, "current_epoch", epoch);
    }
    json_int(json, "mark", mark);
    if (holder.len > 0) {
        json_text(json, "holder", holder);
    }
    return http_problem_end(fenced->req, status_of(fenced, problem));
}

static enum step refuse_accepted(struct fenced_call *fenced, enum problem problem, int64_t mark)
{
    status_put(fenced, "refused", problem_info(problem)->code, mark, NULL);
    struct json_out *json = problem_begin(fenced, problem);
    json_int(json, "mark", mark);
    return http_problem_end(fenced->req, status_of(fenced, problem));
}

enum step fenced_refuse_stored(struct fenced_call *fenced, const struct store_reply *reply)
{
    if (store_reply_is(reply, "refused")) {
        return fenced_refuse_reply(fenced, reply);
    }
    if (store_reply_is(reply, "key-reused")) {
        return refuse_accepted(fenced, PROBLEM_KEY_REUSED, store_reply_integer(reply, 2));
    }
    if (store_reply_is(reply, "full")) {
        return refuse_accepted(fenced, PROBLEM_STORE_FULL, store_reply_integer(reply, 2));
    }
    if (store_reply_is(reply, "mismatch")) {
        return refuse_accepted(fenced, PROBLEM_ETAG_MISMATCH, store_reply_integer(reply, 3));
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
