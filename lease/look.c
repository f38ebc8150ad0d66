/* look.c - GET /v1/leases/{name}: who holds the lease.
 *
 *   look_start  run look.lua      400, or suspended
 *   looked      send it           200
 *
 * All others: 503 | 504. */
#include "lease/operation.h"
#include "scripts.h"

static void holder_write(struct http_request *req, struct bytes mode, const struct store_reply *holder)
{
    struct json_out *json = http_json(req);
    struct bytes meta = store_reply_text(holder, 5);

    json_object(json, NULL);
    json_text(json, "holder", store_reply_text(holder, 1));
    lease_identity_write(json, worker_of(req), store_reply_text(holder, 6));
    json_int(json, "token", store_reply_integer(holder, 0));
    json_text(json, "mode", mode);
    json_text(json, "hold", store_reply_text(holder, 7));
    json_text_or_null(json, "session", store_reply_text(holder, 8));
    json_int(json, "holds", store_reply_integer(holder, 4));
    json_int(json, "ttl_ms", store_reply_integer(holder, 9));
    json_int(json, "expires_in_ms", store_reply_integer(holder, 2));
    json_int(json, "held_for_ms", store_reply_integer(holder, 3));
    json_int(json, "renewed_ms_ago", store_reply_integer(holder, 10));
    json_int(json, "waited_ms", store_reply_integer(holder, 11));
    json_raw(json, "meta", meta.len > 0 ? meta : BYTES("{}"));
    json_object_end(json);
}

static void look_write_members(struct http_request *req, struct bytes name, const struct store_reply *reply,
                               size_t at)
{
    struct json_out *json = http_json(req);
    struct bytes mode = store_reply_text(reply, at + 3);
    const struct store_reply *holders = store_reply_list(reply, at + 5);
    size_t count = holders != NULL ? store_reply_count(holders) : 0;

    json_text(json, "lease", name);
    json_text(json, "state", store_reply_text(reply, at));
    json_int(json, "token", store_reply_integer(reply, at + 1));
    json_int(json, "epoch", store_reply_integer(reply, at + 2));
    json_text_or_null(json, "mode", mode);
    json_list(json, "holders");
    for (size_t i = 0; i < count; i++)
        holder_write(req, mode, store_reply_list(holders, i));
    json_list_end(json);
    json_int(json, "waiting", store_reply_integer(reply, at + 4));
    json_int(json, "delayed_for_ms", store_reply_integer(reply, at + 6));
    json_int(json, "permits", store_reply_integer(reply, at + 7));
    json_int(json, "refused", store_reply_integer(reply, at + 8));
}

void look_write(struct http_request *req, struct bytes name, const struct store_reply *reply, size_t at)
{
    struct json_out *json = http_json(req);

    json_object(json, NULL);
    look_write_members(req, name, reply, at);
    json_object_end(json);
}

void look_line_write(struct json_out *json, const struct worker *worker, const struct store_reply *line,
                     int64_t now_ms)
{
    size_t count = line != NULL ? store_reply_count(line) : 0;

    json_list(json, "line");
    for (size_t i = 0; i < count; i++) {
        const struct store_reply *one = store_reply_list(line, i);
        int64_t until_ms = store_reply_integer(one, 4);

        json_object(json, NULL);
        json_text(json, "holder", store_reply_text(one, 0));
        lease_identity_write(json, worker, store_reply_text(one, 1));
        json_text(json, "mode", store_reply_text(one, 2));
        json_int(json, "waits_ms", now_ms - store_reply_integer(one, 3));
        json_int(json, "gives_up_in_ms", until_ms > now_ms ? until_ms - now_ms : 0);
        json_object_end(json);
    }
    json_list_end(json);
}

static enum step looked(struct member_call *call, const struct store_reply *reply)
{
    const struct lease_call *lease = container_of(call, struct lease_call, record);
    struct json_out *json = http_json_begin(lease->req);
    int64_t now_ms = store_reply_integer(reply, 11);

    json_int(json, "now_ms", now_ms);
    look_write_members(lease->req, lease->name, reply, 2);
    look_line_write(json, worker_of(lease->req), store_reply_list(reply, 12), now_ms);
    return http_json_end(lease->req, 200);
}

enum step look_start(struct http_request *req)
{
    static const struct script_answer answers[] = {{.word = "looked", .ends = looked}, ANSWER_OTHER};

    return lease_read(req, &script_look, answers);
}
