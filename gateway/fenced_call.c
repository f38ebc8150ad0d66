/* fenced_call.c - what every request at the gate has: a resource or a lease, a token, one call to the store.
 */
#include "gateway/fenced_call.h"

#include <assert.h>

static const char *fenced_named(struct fenced_call *fenced, const char *wrong)
{
    if (wrong == NULL) {
        http_note_lease(fenced->req, fenced->lease);
    }
    return wrong;
}

const char *fenced_init_resource(struct fenced_call *fenced, struct http_request *req, struct bytes raw)
{
    fenced->req = req;
    return fenced_named(fenced, resource_key_from_path(raw, fenced->text, &fenced->resource, &fenced->lease));
}

const char *fenced_init_lease(struct fenced_call *fenced, struct http_request *req, struct bytes raw)
{
    fenced->req = req;
    return fenced_named(fenced, name_from_path(raw, fenced->text, &fenced->lease));
}

bool fenced_has_token(const struct http_request *req)
{
    unsigned count = 0;

    http_header(req, "Fencing-Token", &count);
    return count > 0;
}

static enum problem store_problem(const struct fenced_call *fenced)
{
    if (fenced->store.len == 0) {
        return record_store_problem(member_line_of(fenced->req), fenced->claim.store);
    }
    return bytes_equal(fenced->claim.store, fenced->store) ? PROBLEM_NONE : PROBLEM_WRONG_STORE;
}

enum problem fenced_read_token(struct fenced_call *fenced)
{
    unsigned count = 0;
    struct bytes header = http_header(fenced->req, "Fencing-Token", &count);
    enum problem bad;

    if (count == 0) {
        return PROBLEM_TOKEN_REQUIRED;
    }
    if (count > 1) {
        return PROBLEM_MALFORMED_TOKEN;
    }
    switch (token_verify(worker_of(fenced->req)->keys, header, &fenced->claim)) {
    case TOKEN_MALFORMED: return PROBLEM_MALFORMED_TOKEN;
    case TOKEN_BAD_SIGNATURE: fenced->claimed = true; return PROBLEM_BAD_SIGNATURE;
    case TOKEN_GOOD: break;
    }
    fenced->claimed = true;
    bad = store_problem(fenced);
    if (bad != PROBLEM_NONE) {
        return bad;
    }
    return bytes_equal(fenced->claim.lease, fenced->lease) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

/* -- the call */

void fenced_add_key(struct fenced_call *fenced, struct bytes key)
{
    assert(fenced->args == 0 && fenced->keys < FENCED_KEYS_MAX);
    fenced->argv[fenced->keys++] = key;
}

void fenced_add(struct fenced_call *fenced, struct bytes argument)
{
    assert(fenced->args < FENCED_ARGS_MAX);
    fenced->argv[fenced->keys + fenced->args++] = argument;
}

static void fenced_add_number(struct fenced_call *fenced, unsigned slot, int64_t value)
{
    fenced_add(fenced, bytes_of_number(fenced->number[slot], value));
}

void fenced_add_fence(struct fenced_call *fenced)
{
    fenced_add(fenced, fenced->lease);
    fenced_add_number(fenced, 0, fenced->claim.token.number);
    fenced_add_number(fenced, 1, fenced->claim.token.epoch);
    fenced_add(fenced, fenced->claim.hold);
    fenced_add(fenced, bytes_of(token_mode_name(fenced->claim.mode)));
}

void fenced_add_remember(struct fenced_call *fenced)
{
    fenced_add_number(fenced, 2, (int64_t)worker_of(fenced->req)->service->settings.remember_ms);
}

enum step fenced_run(struct fenced_call *fenced, const struct store_script *script, store_done_fn *done)
{
    enum problem bad;

    fenced->record.store.done = done;
    bad = member_run(member_line_of(fenced->req), &fenced->record, keys_stripe_of(fenced->lease), script,
                     fenced->keys, fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : fenced_fail(fenced, bad);
}

struct bytes fenced_stripe(struct fenced_call *fenced)
{
    return keys_stripe(fenced->stripe, keys_stripe_of(fenced->lease));
}

struct bytes fenced_gone(struct fenced_call *fenced)
{
    return keys_gone(fenced->gone, keys_stripe_of(fenced->lease));
}

struct bytes fenced_resource_key(struct fenced_call *fenced)
{
    return keys_resource(fenced->resource_key, fenced->lease, fenced->resource);
}
