/* operation.c - what every operation on one lease has: the name, the keys, the call. */
#include "lease/operation.h"

#include <inttypes.h>
#include <stdio.h>

const char *lease_call_init(struct lease_call *call, struct http_request *req)
{
    const char *wrong = name_from_path(http_path_part(req, 0), call->name_text, &call->name);

    call->req = req;
    if (wrong != NULL) {
        return wrong;
    }
    call->stripe_number = keys_stripe_of(call->name);
    call->argv[0] = keys_stripe(call->stripe, call->stripe_number);
    call->argv[1] = keys_due(call->due, call->stripe_number);
    call->argv[2] = keys_lease(call->key, call->name);
    call->argv[LEASE_KEYS] = call->name;
    return NULL;
}

enum step lease_call_run(struct lease_call *call, const struct store_script *script, unsigned args,
                         enum step (*done)(struct store_call *, enum store_outcome,
                                           const struct store_reply *))
{
    enum problem bad;

    call->record.store.done = done;
    bad = record_run(record_line_of(call->req), &call->record, call->stripe_number, script, LEASE_KEYS,
                     LEASE_KEYS + args, call->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(call->req, bad);
}

struct bytes lease_call_remember(struct lease_call *call)
{
    uint64_t remember_ms = worker_of(call->req)->service->settings.remember_ms;
    int len = snprintf(call->remember, sizeof(call->remember), "%" PRIu64, remember_ms);

    return (struct bytes){call->remember, (size_t)len};
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
    *hold = claim.hold;
    return bytes_equal(claim.lease, call->name) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

enum step lease_lost_answer(struct lease_call *call, const struct store_reply *reply)
{
    struct json_out *json = http_problem_begin(call->req, PROBLEM_LEASE_LOST, NULL);

    json_text(json, "lease", call->name);
    json_text(json, "ended", store_reply_text(reply, 2));
    return http_problem_end(call->req, 0);
}
