/* call.c - what every operation on one session has: the id, the keys, the call. */
#include "lease/session/call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

void session_call_fill(struct session_call *call, struct http_request *req, struct bytes id)
{
    uint64_t remember_ms = worker_of(req)->service->settings.remember_ms;
    struct bytes key = acquire_options_session_key(call->key, id);
    int len = snprintf(call->remember, sizeof(call->remember), "%" PRIu64, remember_ms);

    call->req = req;
    call->store = bytes_of(epoch_store(member_line_of(req)->store_epoch));
    call->id = (struct bytes){key.at + key.len - id.len, id.len};
    call->stripe_number = keys_stripe_of(id);
    call->argv[0] = keys_stripe(call->stripe, call->stripe_number);
    call->argv[1] = keys_due(call->due, call->stripe_number);
    call->argv[2] = key;
    call->argv[SESSION_KEYS] = call->id;
    call->argv[SESSION_KEYS + 1] = (struct bytes){call->remember, (size_t)len};
}

const char *session_call_init(struct session_call *call, struct http_request *req)
{
    struct bytes id = http_path_part(req, 0);

    if (!request_is_session_id(id)) {
        return "The path does not end in the id of a session: 16 to 64 characters of A-Z a-z 0-9 _ -.";
    }
    session_call_fill(call, req, id);
    return NULL;
}

void session_call_arg(struct session_call *call, unsigned i, struct bytes value)
{
    assert(i > 2 && i <= SESSION_ARGS_MAX);
    call->argv[SESSION_KEYS + i - 1] = value;
}

enum step session_call_run(struct session_call *call, const struct store_script *script, unsigned args,
                           store_done_fn *done)
{
    struct member_line *line = member_line_of(call->req);
    enum problem bad;

    call->record.store.done = done;
    bad = call->store.len == 0 ? record_unknown_problem(line)
                               : member_run(line, &call->record, call->stripe_number, script, SESSION_KEYS,
                                            SESSION_KEYS + args, call->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(call->req, bad);
}

/* -- what is told */

/* One hold is "NAME/LEASE_ID", behind a slash while it is not claimed; what was lost is "NAME". */
enum session_hold { HELD, UNCLAIMED, LOST };

static enum session_hold hold_read(struct bytes packed, struct bytes *name)
{
    const char *slash = packed.len > 0 ? memchr(packed.at, '/', packed.len) : NULL;

    *name = packed;
    if (slash == NULL) {
        return LOST;
    }
    name->len = (size_t)(slash - packed.at);
    return slash == packed.at ? UNCLAIMED : HELD;
}

static void write_names(struct json_out *json, const char *member, const struct store_reply *holds,
                        enum session_hold kind)
{
    size_t count = holds != NULL ? store_reply_count(holds) : 0;
    struct bytes name;

    json_list(json, member);
    for (size_t i = 0; i < count; i++) {
        if (hold_read(store_reply_text(holds, i), &name) == kind) {
            json_text(json, NULL, name);
        }
    }
    json_list_end(json);
}

enum step session_tell(struct session_call *call, const struct store_reply *reply)
{
    struct json_out *json = http_json_begin(call->req);
    struct bytes meta = store_reply_text(reply, 6);
    const struct store_reply *holds = store_reply_list(reply, 7);

    json_text(json, "session", call->id);
    json_text(json, "holder", store_reply_text(reply, 5));
    json_int(json, "ttl_ms", store_reply_integer(reply, 2));
    json_int(json, "expires_in_ms", store_reply_integer(reply, 3));
    json_int(json, "open_for_ms", store_reply_integer(reply, 4));
    json_raw(json, "meta", meta.len > 0 ? meta : BYTES("{}"));
    write_names(json, "leases", holds, HELD);
    write_names(json, "lost", holds, LOST);
    return http_json_end(call->req, 200);
}

enum step session_refuse(struct session_call *call, const struct store_reply *reply)
{
    struct json_out *json;

    if (store_reply_is(reply, "forbidden")) {
        return http_refuse_detail(
            call->req, PROBLEM_FORBIDDEN,
            "The Session-Secret is not the one of this session; nothing was changed. Send the "
            "session_secret that came when it was opened.");
    }
    if (!store_reply_is(reply, "lost")) {
        return http_refuse(call->req, PROBLEM_INTERNAL);
    }
    json = http_problem_begin(call->req, PROBLEM_SESSION_LOST, NULL);
    json_text(json, "session", call->id);
    json_text(json, "ended", store_reply_text(reply, 2));
    return http_problem_end(call->req, 0);
}
