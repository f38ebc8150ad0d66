/* operation.c - what every operation on one lease has: the name, the keys, the call. */
#include "lease/operation.h"

#include <assert.h>
#include <string.h>

void lease_call_fill(struct lease_call *call, const struct worker *worker, struct bytes name)
{
    assert(name.len > 0 && name.len <= sizeof(call->name_text));
    memcpy(call->name_text, name.at, name.len);
    call->name = (struct bytes){call->name_text, name.len};
    call->store = bytes_of(epoch_store(member_line_of_worker(worker)->store_epoch));
    call->stripe_number = keys_stripe_of(name);
    call->argv[0] = keys_stripe(call->stripe, call->stripe_number);
    call->argv[1] = keys_due(call->due, call->stripe_number);
    call->argv[LEASE_KEYS] = call->name;
    call->argv[LEASE_KEYS + 1] = bytes_of_number(call->remember,
                                                 (int64_t)worker->service->settings.remember_ms);
}

const char *lease_call_init(struct lease_call *call, struct http_request *req)
{
    char text[NAME_MAX_BYTES + 1];
    struct bytes name;
    const char *wrong = name_from_path(http_path_part(req, 0), text, &name);

    call->req = req;
    if (wrong == NULL) {
        lease_call_fill(call, worker_of(req), name);
    }
    return wrong;
}

void lease_call_arg(struct lease_call *call, unsigned i, struct bytes value)
{
    assert(i > 2 && i <= LEASE_ARGS_MAX);
    call->argv[LEASE_KEYS + i - 1] = value;
}

void lease_call_id(struct lease_call *call, struct bytes lease_id)
{
    digest_secret(call->store, lease_id, call->lease_id);
    lease_call_arg(call, 3, bytes_of(call->lease_id));
}

enum step lease_call_run(struct lease_call *call, const struct store_script *script, unsigned args,
                         store_done_fn *done)
{
    struct member_line *line = member_line_of(call->req);
    enum problem bad;

    assert(args <= LEASE_ARGS_MAX);
    call->record.store.done = done;
    bad = call->store.len == 0 ? record_unknown_problem(line)
                               : member_run(line, &call->record, call->stripe_number, script, LEASE_KEYS,
                                            LEASE_KEYS + args, call->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(call->req, bad);
}

const char *lease_id_read(const struct http_request *req, struct bytes *lease_id)
{
    unsigned count = 0;

    *lease_id = http_header(req, "Lease-Id", &count);
    if (count == 0) {
        return "The header Lease-Id is missing: send the lease_id that the grant gave.";
    }
    if (count > 1) {
        return "The header Lease-Id came more than once: send it once.";
    }
    if (!name_is_lease_id(*lease_id)) {
        return "The header Lease-Id is not a lease_id: it has 22 to 64 characters of A-Z a-z 0-9 _ -.";
    }
    return NULL;
}

enum problem lease_hold_read(const struct lease_call *call, struct bytes *hold)
{
    unsigned count = 0;
    struct bytes header = http_header(call->req, "Fencing-Token", &count);
    struct token_claim claim;
    enum problem problem;

    *hold = (struct bytes){"", 0};
    if (count == 0) {
        return PROBLEM_NONE;
    }
    if (count > 1) {
        return PROBLEM_MALFORMED_TOKEN;
    }
    switch (token_verify(worker_of(call->req)->keys, header, &claim)) {
    case TOKEN_MALFORMED: return PROBLEM_MALFORMED_TOKEN;
    case TOKEN_BAD_SIGNATURE: return PROBLEM_BAD_SIGNATURE;
    case TOKEN_GOOD: break;
    }
    problem = record_store_problem(member_line_of(call->req), claim.store);
    if (problem != PROBLEM_NONE) {
        return problem;
    }
    *hold = claim.hold;
    return bytes_equal(claim.lease, call->name) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

/* -- answers */

void lease_held_write(struct json_out *json, struct bytes name, const struct store_reply *reply, size_t at)
{
    struct bytes holder = store_reply_text(reply, at + 1);

    json_text(json, "lease", name);
    json_int(json, "token", store_reply_integer(reply, at));
    if (holder.len > 0) {
        json_text(json, "holder", holder);
    } else {
        json_null(json, "holder"); /* free, but delayed, or on its way to somebody in line */
    }
    json_int(json, "expires_in_ms", store_reply_integer(reply, at + 2));
}

enum step lease_held_answer(struct http_request *req, enum problem problem, struct bytes name,
                            const struct store_reply *reply, size_t at)
{
    lease_held_write(http_problem_begin(req, problem, NULL), name, reply, at);
    return http_problem_end(req, 0);
}

enum step lease_ended_answer(struct http_request *req, enum problem problem, struct bytes name,
                             struct bytes ended)
{
    struct json_out *json = http_problem_begin(req, problem, NULL);

    json_text(json, "lease", name);
    json_text(json, "ended", ended);
    return http_problem_end(req, 0);
}

enum step lease_refuse(struct http_request *req, enum problem problem, struct bytes name)
{
    json_text(http_problem_begin(req, problem, NULL), "lease", name);
    return http_problem_end(req, 0);
}

enum step lease_keys_full_answer(struct http_request *req)
{
    return http_refuse_detail(
        req, PROBLEM_OUT_OF_RANGE,
        "This hold has seen 1000 Idempotency-Keys, and no more are kept. Nothing was changed. Go "
        "on without a key, or end it with ?all=true and acquire anew.");
}

enum step lease_held_off_answer(struct http_request *req, const struct store_reply *reply)
{
    struct epoch *store_epoch = member_line_of(req)->store_epoch;
    char detail[EPOCH_DETAIL_SIZE];

    if (store_reply_is(reply, "exhausted")) {
        return http_refuse(req, PROBLEM_TOKEN_EXHAUSTED);
    }
    if (store_reply_is(reply, "ceiling")) {
        return http_refuse(req, PROBLEM_FLOOR_REACHED);
    }
    if (epoch_has_lost_its_floor(store_epoch) && epoch_trouble(store_epoch, detail)) {
        return http_refuse_detail(req, PROBLEM_FLOOR_REACHED, detail);
    }
    return http_refuse(req, store_unsafe(member_line_of(req)->store) != NULL ? PROBLEM_STORE_UNSAFE
                                                                             : PROBLEM_STORE_FULL);
}
