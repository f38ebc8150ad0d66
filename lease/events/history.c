/* history.c - GET /v1/leases/{name}/history: who held it, how each hold ended, what was refused.
 *
 *   history_start   run history.lua     400, or suspended
 *   history_answer  tell                200 | 404 | 503 | 504 */
#include "lease/acquire_options.h"
#include "lease/events/history_item.h"
#include "lease/operation.h"
#include "lease/worker.h"
#include "scripts.h"

static store_done_fn history_answer;

enum step history_start(struct http_request *req)
{
    struct lease_call *lease = HTTP_SCRATCH(req, struct lease_call);
    const char *bad = lease_call_init(lease, req);

    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    lease_call_arg(lease, 3, grant_may(worker_of(req)));
    return lease_call_run(lease, &script_history, 3, history_answer);
}

static enum step history_tell(struct lease_call *lease, const struct store_reply *items)
{
    struct json_out *json = http_json_begin(lease->req);
    struct history_item item;

    json_list(json, "items");
    for (size_t i = 0; i < store_reply_count(items); i++) {
        if (history_item_read(store_reply_text(items, i), &item)) {
            history_item_write(json, lease->name, &item);
        }
    }
    json_list_end(json);
    return http_json_end(lease->req, 200);
}

static enum step history_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct lease_call *lease = container_of(call, struct lease_call, record.store);
    enum problem bad = member_problem(&lease->record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return http_refuse(lease->req, bad);
    }
    if (!store_reply_is(reply, "history")) {
        return http_refuse(lease->req, store_reply_is(reply, "off") ? PROBLEM_HISTORY_OFF : PROBLEM_INTERNAL);
    }
    if (store_reply_text(reply, 2).len > 0) {
        handoff_more(lease_worker_of(lease->req)->handoff, lease->name);
    }
    return history_tell(lease, store_reply_list(reply, 3));
}
