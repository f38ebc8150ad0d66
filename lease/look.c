/* look.c - GET /v1/leases/{name}: who holds the lease.
 *
 *   look_start   run look.lua             400, or suspended
 *   look_answer  tell                     200 | 503 | 504 */
#include "lease/look.h"

#include "lease_scripts.h"

static enum step look_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply);

enum step look_start(struct http_request *req)
{
    struct lease_call *lease = HTTP_SCRATCH(req, struct lease_call);
    const char *bad = lease_call_init(lease, req);

    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    lease->argv[LEASE_KEYS + 1] = lease_call_remember(lease);
    return lease_call_run(lease, &script_look, 2, look_answer);
}

void look_write_held(struct json_out *json, struct bytes name, const struct store_reply *reply, size_t at)
{
    struct bytes meta = store_reply_text(reply, at + 6);

    json_object(json, NULL);
    json_text(json, "lease", name);
    json_text(json, "state", BYTES("held"));
    json_int(json, "token", store_reply_integer(reply, at));
    json_int(json, "epoch", store_reply_integer(reply, at + 1));
    json_text(json, "mode", BYTES("exclusive"));
    json_list(json, "holders");
    json_object(json, NULL);
    json_text(json, "holder", store_reply_text(reply, at + 2));
    json_int(json, "token", store_reply_integer(reply, at));
    json_text(json, "mode", BYTES("exclusive"));
    json_int(json, "holds", store_reply_integer(reply, at + 5));
    json_int(json, "expires_in_ms", store_reply_integer(reply, at + 3));
    json_int(json, "held_for_ms", store_reply_integer(reply, at + 4));
    json_raw(json, "meta", meta.len > 0 ? meta : BYTES("{}"));
    json_object_end(json);
    json_list_end(json);
    json_int(json, "waiting", 0);
    json_object_end(json);
}

static void look_write_free(struct json_out *json, struct bytes name, const struct store_reply *reply)
{
    json_object(json, NULL);
    json_text(json, "lease", name);
    json_text(json, "state", BYTES("free"));
    json_int(json, "token", store_reply_integer(reply, 2));
    json_int(json, "epoch", store_reply_integer(reply, 3));
    json_null(json, "mode");
    json_list(json, "holders");
    json_list_end(json);
    json_int(json, "waiting", 0);
    json_object_end(json);
}

static enum step look_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct lease_call *lease = container_of(call, struct lease_call, record.store);
    enum problem bad = record_problem(&lease->record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return http_refuse(lease->req, bad);
    }
    if (store_reply_is(reply, "held")) {
        look_write_held(http_json(lease->req), lease->name, reply, 2);
    } else if (store_reply_is(reply, "free")) {
        look_write_free(http_json(lease->req), lease->name, reply);
    } else {
        return http_refuse(lease->req, PROBLEM_INTERNAL);
    }
    http_reply_json(lease->req);
    return http_answer(lease->req, 200);
}
