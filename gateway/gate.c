/* gate.c - what every request at the gate has: a resource or a lease, a token, one call to the store. */
#include "gateway/gate.h"

#include <assert.h>

static const char *gate_named(struct gate_call *gate, const char *wrong)
{
    if (wrong == NULL) {
        http_note_lease(gate->req, gate->lease);
    }
    return wrong;
}

const char *gate_init_resource(struct gate_call *gate, struct http_request *req, struct bytes raw)
{
    gate->req = req;
    return gate_named(gate, resource_key_from_path(raw, gate->text, &gate->resource, &gate->lease));
}

const char *gate_init_lease(struct gate_call *gate, struct http_request *req, struct bytes raw)
{
    gate->req = req;
    return gate_named(gate, name_from_path(raw, gate->text, &gate->lease));
}

bool gate_has_token(const struct http_request *req)
{
    unsigned count = 0;

    http_header(req, "Fencing-Token", &count);
    return count > 0;
}

static enum problem store_problem(const struct gate_call *gate)
{
    if (gate->store.len == 0) {
        return record_store_problem(record_line_of(gate->req), gate->claim.store);
    }
    return bytes_equal(gate->claim.store, gate->store) ? PROBLEM_NONE : PROBLEM_WRONG_STORE;
}

enum problem gate_read_token(struct gate_call *gate)
{
    unsigned count = 0;
    struct bytes header = http_header(gate->req, "Fencing-Token", &count);
    enum problem bad;

    if (count == 0) {
        return PROBLEM_TOKEN_REQUIRED;
    }
    if (count > 1) {
        return PROBLEM_MALFORMED_TOKEN;
    }
    switch (token_verify(worker_of(gate->req)->keys, header, &gate->claim)) {
    case TOKEN_MALFORMED: return PROBLEM_MALFORMED_TOKEN;
    case TOKEN_BAD_SIGNATURE: gate->claimed = true; return PROBLEM_BAD_SIGNATURE;
    case TOKEN_GOOD: break;
    }
    gate->claimed = true;
    bad = store_problem(gate);
    if (bad != PROBLEM_NONE) {
        return bad;
    }
    return bytes_equal(gate->claim.lease, gate->lease) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

/* -- the call */

void gate_add_key(struct gate_call *gate, struct bytes key)
{
    assert(gate->args == 0 && gate->keys < GATE_KEYS_MAX);
    gate->argv[gate->keys++] = key;
}

void gate_add(struct gate_call *gate, struct bytes argument)
{
    assert(gate->args < GATE_ARGS_MAX);
    gate->argv[gate->keys + gate->args++] = argument;
}

static void gate_add_number(struct gate_call *gate, unsigned slot, int64_t value)
{
    gate_add(gate, bytes_of_number(gate->number[slot], value));
}

void gate_add_fence(struct gate_call *gate)
{
    gate_add(gate, gate->lease);
    gate_add_number(gate, 0, gate->claim.token.number);
    gate_add_number(gate, 1, gate->claim.token.epoch);
    gate_add(gate, gate->claim.hold);
    gate_add(gate, bytes_of(token_mode_name(gate->claim.mode)));
}

void gate_add_remember(struct gate_call *gate)
{
    gate_add_number(gate, 2, (int64_t)worker_of(gate->req)->service->settings.remember_ms);
}

enum step gate_run(struct gate_call *gate, const struct store_script *script, store_done_fn *done)
{
    enum problem bad;

    gate->record.store.done = done;
    bad = record_run(record_line_of(gate->req), &gate->record, keys_stripe_of(gate->lease), script,
                     gate->keys, gate->keys + gate->args, gate->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : gate_fail(gate, bad);
}

struct bytes gate_stripe(struct gate_call *gate)
{
    return keys_stripe(gate->stripe, keys_stripe_of(gate->lease));
}

struct bytes gate_gone(struct gate_call *gate)
{
    return keys_gone(gate->gone, keys_stripe_of(gate->lease));
}

struct bytes gate_resource_key(struct gate_call *gate)
{
    return keys_resource(gate->resource_key, gate->lease, gate->resource);
}
