/* adopt.c - GET /v1/routes: which route table this gateway has; POST /v1/routes/adopt: all gateways on this
 * store are to serve that one.
 *
 *   routes_start   tell                     200 | 404
 *   adopt_start    run routes_adopt.lua     404, or suspended
 *   adopt_answer   tell                     200 | 409 | 503 | 504 */
#include "gateway/fenced_call.h"
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
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    const struct table_use *use = gateway_worker_of(req)->use;
    enum problem bad;

    if (use == NULL) {
        return routes_none(req);
    }
    fenced->req = req;
    fenced_add_key(fenced, keys_stripe(fenced->stripe, 0));
    fenced_add(fenced, bytes_of(use->table->hash));
    fenced->record.store.done = adopt_answer;
    bad = member_run(member_line_of(req), &fenced->record, 0, &script_routes_adopt, fenced->keys,
                     fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(req, bad);
}

/* {"adopted", seq, before} | {"open", seq, intents, gateways in doubt} */
static enum step adopt_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct fenced_call *fenced = container_of(call, struct fenced_call, record.store);
    enum problem bad = member_problem(&fenced->record, outcome, reply);
    struct json_out *json;

    if (bad != PROBLEM_NONE) {
        return http_refuse(fenced->req, bad);
    }
    if (store_reply_is(reply, "open")) {
        json = http_problem_begin(fenced->req, PROBLEM_INTENTS_OPEN, NULL);
        json_int(json, "intents", store_reply_integer(reply, 2));
        json_int(json, "gateways_in_doubt", store_reply_integer(reply, 3));
        return http_problem_end(fenced->req, 0);
    }
    if (!store_reply_is(reply, "adopted")) {
        return http_refuse(fenced->req, PROBLEM_INTERNAL);
    }
    json = http_json_begin(fenced->req);
    json_text(json, "hash", fenced->argv[fenced->keys]);
    json_text(json, "before", store_reply_text(reply, 2));
    return http_json_end(fenced->req, 200);
}
