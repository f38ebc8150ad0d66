/* fencing_status.c - how the gate tells its verdict: Fencing-Status, and why something was refused.
 *
 * Fencing-Status is a Structured Field List in the style of RFC 9211 (Cache-Status):
 *   pawl; verdict=accepted; token=34; mark=34; guarantee=committed
 *   pawl; verdict=refused; reason=stale-token; token=33; mark=34
 *   pawl; verdict=refused; reason=too-large; token=34; guarantee=ordered;assumes=incomplete
 *   pawl; verdict=unknown; reason=outcome-unknown; token=33 */
#include "gateway/gate.h"

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

static void status_put(struct gate_call *gate, const char *verdict, const char *reason, int64_t mark,
                       const char *guarantee)
{
    char number[BYTES_NUMBER_SIZE];
    struct status_text text;

    text.len = 0;
    status_add(&text, "pawl; verdict=", bytes_of(verdict));
    if (reason != NULL) {
        status_add(&text, "; reason=", bytes_of(reason));
    }
    if (gate->claimed) {
        status_add(&text, "; token=", bytes_of_number(number, gate->claim.token.number));
    }
    if (mark != MARK_UNKNOWN) {
        status_add(&text, "; mark=", bytes_of_number(number, mark));
    }
    if (guarantee != NULL) {
        status_add(&text, "; guarantee=", bytes_of(guarantee));
    }
    http_reply_header(gate->req, "Fencing-Status", (struct bytes){text.at, text.len});
}

void gate_let_through(const struct gate_call *gate)
{
    if (gate->claimed && !gate->by_mark) {
        life_let_through(record_line_of(gate->req)->life, gate->claim.token.number);
    }
}

void gate_accept(struct gate_call *gate, int64_t mark, const char *guarantee)
{
    gate_let_through(gate);
    status_put(gate, "accepted", NULL, mark, guarantee);
}

/* nginx turns every answer of auth_request but 2xx, 401 and 403 into 500. */
static unsigned status_of(const struct gate_call *gate, enum problem problem)
{
    if (gate->statuses == GATE_NATIVE || problem_info(problem)->status >= 500) {
        return problem_info(problem)->status;
    }
    return problem == PROBLEM_TOKEN_REQUIRED ? 401 : 403;
}

/* One of many holds is stale when it is over, whether anybody came after it or not. NULL: what the problem
 * says. */
static const char *detail_of(const struct gate_call *gate, enum problem problem)
{
    if (problem == PROBLEM_STALE_TOKEN && gate->claim.mode != TOKEN_EXCLUSIVE) {
        return "Nothing was changed. Your hold is over. Stop; do not retry with this token.";
    }
    return NULL;
}

static struct json_out *problem_members(struct gate_call *gate, struct json_out *json)
{
    json_text(json, "lease", gate->lease);
    if (gate->resource.len > 0) {
        json_text(json, "resource", gate->resource);
    }
    if (gate->claimed) {
        json_int(json, "presented_token", gate->claim.token.number);
        json_int(json, "presented_epoch", gate->claim.token.epoch);
    }
    return json;
}

static struct json_out *problem_begin(struct gate_call *gate, enum problem problem)
{
    return problem_members(gate, http_problem_begin(gate->req, problem, detail_of(gate, problem)));
}

enum step gate_refuse(struct gate_call *gate, enum problem problem)
{
    status_put(gate, "refused", problem_info(problem)->code, MARK_UNKNOWN, NULL);
    problem_begin(gate, problem);
    return http_problem_end(gate->req, status_of(gate, problem));
}

enum step gate_refuse_reply(struct gate_call *gate, const struct store_reply *reply)
{
    enum problem problem = problem_find(store_reply_text(reply, 2));
    int64_t token = store_reply_integer(reply, 3), epoch = store_reply_integer(reply, 4);
    int64_t mark = store_reply_integer(reply, 5);
    struct bytes holder = store_reply_text(reply, 6);

    if (problem == PROBLEM_NONE) {
        return gate_fail(gate, PROBLEM_INTERNAL);
    }
    status_put(gate, "refused", problem_info(problem)->code, mark, NULL);
    struct json_out *json = problem_begin(gate, problem);
    if (token > 0) {
        json_int(json, "current_token", token);
        json_int(json, "current_epoch", epoch);
    }
    json_int(json, "mark", mark);
    if (holder.len > 0) {
        json_text(json, "holder", holder);
    }
    return http_problem_end(gate->req, status_of(gate, problem));
}

static enum step refuse_accepted(struct gate_call *gate, enum problem problem, int64_t mark)
{
    status_put(gate, "refused", problem_info(problem)->code, mark, NULL);
    struct json_out *json = problem_begin(gate, problem);
    json_int(json, "mark", mark);
    return http_problem_end(gate->req, status_of(gate, problem));
}

enum step gate_refuse_stored(struct gate_call *gate, const struct store_reply *reply)
{
    if (store_reply_is(reply, "refused")) {
        return gate_refuse_reply(gate, reply);
    }
    if (store_reply_is(reply, "key-reused")) {
        return refuse_accepted(gate, PROBLEM_KEY_REUSED, store_reply_integer(reply, 2));
    }
    if (store_reply_is(reply, "full")) {
        return refuse_accepted(gate, PROBLEM_STORE_FULL, store_reply_integer(reply, 2));
    }
    if (store_reply_is(reply, "mismatch")) {
        return refuse_accepted(gate, PROBLEM_ETAG_MISMATCH, store_reply_integer(reply, 3));
    }
    return gate_fail(gate, PROBLEM_INTERNAL);
}

enum step gate_fail(struct gate_call *gate, enum problem problem)
{
    return gate_fail_detail(gate, problem, NULL);
}

static void status_put_failed(struct gate_call *gate, enum problem problem)
{
    bool unknown = problem == PROBLEM_OUTCOME_UNKNOWN || problem == PROBLEM_INTERNAL;

    if (gate->claimed || gate->statuses == GATE_FORWARD_AUTH) {
        status_put(gate, unknown ? "unknown" : "refused", problem_info(problem)->code, MARK_UNKNOWN,
                   gate->assumes);
    }
}

enum step gate_fail_detail(struct gate_call *gate, enum problem problem, const char *detail)
{
    status_put_failed(gate, problem);
    problem_members(
        gate, http_problem_begin(gate->req, problem, detail != NULL ? detail : detail_of(gate, problem)));
    return http_problem_end(gate->req, status_of(gate, problem));
}

enum step gate_fail_final(struct gate_call *gate, enum problem problem, const char *detail)
{
    status_put_failed(gate, problem);
    problem_members(gate, http_problem_begin_final(gate->req, problem, detail));
    return http_problem_end(gate->req, status_of(gate, problem));
}
