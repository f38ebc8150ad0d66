/* mark.c - GET /v1/marks/{lease}: the highest token that was let through.
 *
 *   mark_start   run mark.lua     400, or suspended
 *   mark_answer  tell             200 | 503 | 504 */
#include "gateway/fenced_call.h"
#include "scripts.h"

static store_done_fn mark_answer;

enum step mark_start(struct http_request *req)
{
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    const char *wrong = fenced_init_lease(fenced, req, http_path_part(req, 0));

    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    fenced_add_key(fenced, fenced_stripe(fenced));
    fenced_add(fenced, fenced->lease);
    return fenced_run(fenced, &script_mark, mark_answer);
}

static enum step mark_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct fenced_call *fenced = container_of(call, struct fenced_call, record.store);
    enum problem bad = member_problem(&fenced->record, outcome, reply);
    struct json_out *json;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "mark")) {
        return fenced_fail(fenced, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    json = http_json_begin(fenced->req);
    json_text(json, "lease", fenced->lease);
    json_int(json, "mark", store_reply_integer(reply, 2));
    json_int(json, "epoch", store_reply_integer(reply, 3));
    json_int(json, "token", store_reply_integer(reply, 4));
    json_int(json, "resources", store_reply_integer(reply, 5));
    json_int(json, "bytes", store_reply_integer(reply, 6));
    return http_json_end(fenced->req, 200);
}
