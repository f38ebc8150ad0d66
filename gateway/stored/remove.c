/* remove.c - DELETE /v1/resources/{key}: delete a stored resource, if the writer's hold is the live one.
 *
 *   remove_start   the request itself, then the token     400 | 403 | 428, or go on
 *   remove_ask     run remove.lua                         suspended
 *   remove_answer  tell                                   204 | 403 | 404 | 412 | 422 | 503 | 504 */
#include "gateway/gate.h"
#include "gateway/precondition.h"
#include "scripts.h"

struct removal {
    struct gate_call gate;
    struct condition condition;
};

static enum step remove_ask(struct removal *r);
static store_done_fn remove_answer;

enum step remove_start(struct http_request *req)
{
    struct removal *r = HTTP_SCRATCH(req, struct removal);
    const char *wrong = gate_init_resource(&r->gate, req, http_path_part(req, 0));
    enum problem bad;

    wrong = wrong != NULL ? wrong : condition_read(&r->condition, req);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    bad = gate_read_token(&r->gate);
    return bad != PROBLEM_NONE ? gate_refuse(&r->gate, bad) : remove_ask(r);
}

static enum step remove_ask(struct removal *r)
{
    struct gate_call *gate = &r->gate;
    struct bytes none = {"", 0};

    condition_digest(&r->condition, BYTES("DELETE"), none, none, none);
    condition_add(&r->condition, gate);
    gate_add_remember(gate);
    return gate_run(gate, &script_remove, remove_answer);
}

static enum step remove_done(struct removal *r, int64_t mark, unsigned row)
{
    gate_accept(&r->gate, mark, "committed");
    worker_count(worker_of(r->gate.req), row);
    return http_answer(r->gate.req, 204);
}

static enum step remove_answer(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct removal *r = container_of(call, struct removal, gate.record.store);
    enum problem bad = record_problem(&r->gate.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return gate_fail(&r->gate, bad);
    }
    if (store_reply_is(reply, "removed")) {
        return remove_done(r, store_reply_integer(reply, 2), COUNT_REMOVED);
    }
    if (store_reply_is(reply, "repeated")) {
        return remove_done(r, store_reply_integer(reply, 4), COUNT_REPEATED);
    }
    if (store_reply_is(reply, "missing")) {
        gate_accept(&r->gate, store_reply_integer(reply, 2), "committed");
        return http_refuse_detail(r->gate.req, PROBLEM_NOT_FOUND,
                                  "There is no such resource; nothing was deleted.");
    }
    return gate_refuse_stored(&r->gate, reply);
}
