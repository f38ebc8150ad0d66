/* check.c - any method, /v1/check/{lease}[/...]: may this token act? For a proxy that will do the deed
 * itself.
 *
 *   check_start   the request itself, then the token     400 | 401 | 403, or go on
 *   check_ask     run check.lua                          suspended
 *   check_answer  tell                                   200 | 403 | 503 | 504
 *
 * What is promised is only "admitted": the check and the deed are two steps. */
#include "gateway/gate.h"
#include "scripts.h"

static enum step check_ask(struct gate_call *gate);
static store_done_fn check_answer;

/* A proxy may append the path and the query of the request that it asks about (Envoy does): only its very
 * own member means something, and a stranger who sends it changes the number of a refusal, never the
 * verdict. */
static enum gate_status statuses_wanted(const struct http_request *req)
{
    return bytes_are(http_query(req), "deny=native") ? GATE_NATIVE : GATE_FORWARD_AUTH;
}

static struct bytes first_segment(struct bytes path)
{
    const char *slash = path.len > 0 ? memchr(path.at, '/', path.len) : NULL;

    return slash != NULL ? (struct bytes){path.at, (size_t)(slash - path.at)} : path;
}

enum step check_start(struct http_request *req)
{
    struct gate_call *gate = HTTP_SCRATCH(req, struct gate_call);
    const char *wrong = gate_init_lease(gate, req, first_segment(http_path_part(req, 0)));
    enum problem bad;

    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    gate->statuses = statuses_wanted(req);
    bad = gate_read_token(gate);
    return bad != PROBLEM_NONE ? gate_refuse(gate, bad) : check_ask(gate);
}

static enum step check_ask(struct gate_call *gate)
{
    gate_add_key(gate, gate_stripe(gate));
    gate_add_fence(gate);
    return gate_run(gate, &script_check, check_answer);
}

static enum step check_accepted(struct gate_call *gate, int64_t mark)
{
    char text[GATE_NUMBER_SIZE];

    gate_accept(gate, mark, "admitted");
    http_reply_header(gate->req, "Fencing-Token-Verified", bytes_of_number(text, gate->claim.token.number));
    worker_count(worker_of(gate->req), COUNT_CHECKED);
    return http_answer(gate->req, 200);
}

static enum step check_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct gate_call *gate = container_of(call, struct gate_call, record.store);
    enum problem bad = record_problem(&gate->record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return gate_fail(gate, bad);
    }
    if (store_reply_is(reply, "accepted")) {
        return check_accepted(gate, store_reply_integer(reply, 2));
    }
    return gate_refuse_stored(gate, reply);
}
