/* adopt.c - GET /v1/routes: which route table this gateway has; POST /v1/routes/adopt: all gateways on this
 * store are to serve that one.
 *
 *   routes_start   tell                     200 | 404
 *   adopt_start    run routes_adopt.lua     404, or suspended
 *   adopt_answer   tell                     200 | 409 | 503 | 504 */
#include "gateway/gate.h"
#include "gateway/worker.h"
#include "scripts.h"

static store_done_fn adopt_answer;

static enum step routes_none(struct http_request *req)
{
    return http_refuse_detail(req, PROBLEM_NOT_FOUND,
                              "This gateway has no routes: it was started without --routes.");
}

enum step routes_start(struct http_request *req)
{
    const struct table_use *use = gateway_worker_of(req)->use;
    struct json_out *json;

    if (use == NULL) {
        return routes_none(req);
    }
    json = http_json_begin(req);
    json_text(json, "hash", bytes_of(use->table->hash));
    json_int(json, "routes", (int64_t)use->table->count);
    return http_json_end(req, 200);
}

enum step adopt_start(struct http_request *req)
{
    struct gate_call *gate = HTTP_SCRATCH(req, struct gate_call);
    const struct table_use *use = gateway_worker_of(req)->use;
    enum problem bad;

    if (use == NULL) {
        return routes_none(req);
    }
    gate->req = req;
    gate_add_key(gate, keys_stripe(gate->stripe, 0));
    gate_add(gate, bytes_of(use->table->hash));
    gate->record.store.done = adopt_answer;
    bad = record_run(record_line_of(req), &gate->record, 0, &script_routes_adopt, gate->keys,
                     gate->keys + gate->args, gate->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(req, bad);
}

/* {"adopted", seq, before} | {"open", seq, intents, gateways in doubt} */
static enum step adopt_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct gate_call *gate = container_of(call, struct gate_call, record.store);
    enum problem bad = record_problem(&gate->record, outcome, reply);
    struct json_out *json;

    if (bad != PROBLEM_NONE) {
        return http_refuse(gate->req, bad);
    }
    if (store_reply_is(reply, "open")) {
        json = http_problem_begin(gate->req, PROBLEM_INTENTS_OPEN, NULL);
        json_int(json, "intents", store_reply_integer(reply, 2));
        json_int(json, "gateways_in_doubt", store_reply_integer(reply, 3));
        return http_problem_end(gate->req, 0);
    }
    if (!store_reply_is(reply, "adopted")) {
        return http_refuse(gate->req, PROBLEM_INTERNAL);
    }
    json = http_json_begin(gate->req);
    json_text(json, "hash", gate->argv[gate->keys]);
    json_text(json, "before", store_reply_text(reply, 2));
    return http_json_end(gate->req, 200);
}
