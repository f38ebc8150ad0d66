/* mark.c - GET /v1/marks/{lease}: the highest token that was let through.
 *
 *   mark_start   run mark.lua     400, or suspended
 *   mark_answer  tell             200 | 503 | 504 */
#include "gateway/gate.h"
#include "scripts.h"

static store_done_fn mark_answer;

enum step mark_start(struct http_request *req)
{
    struct gate_call *gate = HTTP_SCRATCH(req, struct gate_call);
    const char *wrong = gate_init_lease(gate, req, http_path_part(req, 0));

    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    gate_add_key(gate, gate_stripe(gate));
    gate_add(gate, gate->lease);
    return gate_run(gate, &script_mark, mark_answer);
}

static enum step mark_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct gate_call *gate = container_of(call, struct gate_call, record.store);
    enum problem bad = record_problem(&gate->record, outcome, reply);
    struct json_out *json;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "mark")) {
        return gate_fail(gate, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    json = http_json_begin(gate->req);
    json_text(json, "lease", gate->lease);
    json_int(json, "mark", store_reply_integer(reply, 2));
    json_int(json, "epoch", store_reply_integer(reply, 3));
    json_int(json, "token", store_reply_integer(reply, 4));
    json_int(json, "resources", store_reply_integer(reply, 5));
    json_int(json, "bytes", store_reply_integer(reply, 6));
    return http_json_end(gate->req, 200);
}
