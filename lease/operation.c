/* operation.c - what every operation on leases or sessions has: the name, the keys, the call, the grant. */
#include "lease/operation.h"

#include <assert.h>
#include <string.h>

#include "lease/queue/queue.h"

void lease_call_fill(struct lease_call *call, const struct worker *worker, struct bytes name)
{
    assert(name.len > 0 && name.len <= sizeof(call->name_text));
    memcpy(call->name_text, name.at, name.len);
    call->name = (struct bytes){call->name_text, name.len};
    call->store = bytes_of(epoch_store(member_line_of_worker(worker)->store_epoch));
    call->stripe_number = keys_stripe_of(name);
    call->keys = LEASE_KEYS;
    call->has_access = lease_has_access(worker);
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
        http_note_lease(req, call->name);
    }
    return wrong;
}

void lease_call_arg(struct lease_call *call, unsigned i, struct bytes value)
{
    assert(i > 2 && i <= LEASE_ARGS_MAX);
    call->argv[call->keys + i - 1] = value;
}

void lease_call_secret(struct lease_call *call, struct bytes secret)
{
    digest_secret(call->store, secret, call->secret);
    lease_call_arg(call, 3, bytes_of(call->secret));
}

unsigned lease_call_asker(struct lease_call *call, const char *identity, unsigned args)
{
    if (call->has_access)
        lease_call_arg(call, ++args, bytes_of(identity != NULL ? identity : ""));
    return args;
}

enum problem lease_call_begin(struct lease_call *call, const struct worker *worker,
                              const struct store_script *script, unsigned args, member_done_fn *done)
{
    struct member_line *line = member_line_of_worker(worker);

    assert(args <= LEASE_ARGS_MAX);
    call->record.done = done;
    return call->store.len == 0 ? member_unknown_problem(line)
                                : member_run(line, &call->record, call->stripe_number, script, call->keys,
                                             call->keys + args, call->argv);
}

enum step lease_call_send(struct lease_call *call, const struct store_script *script, unsigned args,
                          member_done_fn *done)
{
    enum problem bad = lease_call_begin(call, worker_of(call->req), script, args, done);

    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(call->req, bad);
}

enum step lease_answer(struct lease_call *call, const struct store_reply *reply,
                       const struct script_answer *answers)
{
    return member_answer(&call->record, call->req, answers, reply);
}

static enum step lease_call_answer(struct member_call *record, enum problem bad,
                                   const struct store_reply *reply)
{
    struct lease_call *call = container_of(record, struct lease_call, record);

    return bad == PROBLEM_NONE ? lease_answer(call, reply, call->answers) : http_refuse(call->req, bad);
}

enum step lease_call_run(struct lease_call *call, const struct store_script *script, unsigned args,
                         const struct script_answer *answers)
{
    call->answers = answers;
    return lease_call_send(call, script, args, lease_call_answer);
}

enum step lease_read(struct http_request *req, const struct store_script *script,
                     const struct script_answer *answers)
{
    struct lease_call *lease = HTTP_SCRATCH(req, struct lease_call);
    const char *bad = lease_call_init(lease, req);

    if (bad != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    lease_call_arg(lease, 3, grant_may(worker_of(req)));
    return lease_call_run(lease, script, 3, answers);
}

const char *lease_id_read(const struct http_request *req, struct bytes *lease_id)
{
    unsigned count = 0;

    *lease_id = http_header(req, "Lease-Id", &count);
    if (count == 0)
        return "The header Lease-Id is missing: send the lease_id that the grant gave.";
    if (count > 1)
        return "The header Lease-Id came more than once: send it once.";
    if (!name_is_lease_id(*lease_id))
        return "The header Lease-Id is not a lease_id: it has 22 to 64 characters of A-Z a-z 0-9 _ -.";
    return NULL;
}

enum problem lease_claim_read(const struct http_request *req, struct token_claim *claim)
{
    enum problem bad = member_token_read(req, claim);

    return bad == PROBLEM_TOKEN_REQUIRED ? PROBLEM_NONE : bad;
}

enum problem lease_hold_read(const struct lease_call *call, struct bytes *hold)
{
    struct token_claim claim = {.hold = {"", 0}};
    enum problem problem = lease_claim_read(call->req, &claim);

    *hold = (struct bytes){"", 0};
    if (problem != PROBLEM_NONE || claim.hold.len == 0)
        return problem;
    problem = member_store_problem(member_line_of(call->req), claim.store);
    if (problem != PROBLEM_NONE)
        return problem;
    *hold = claim.hold;
    return bytes_equal(claim.lease, call->name) ? PROBLEM_NONE : PROBLEM_WRONG_LEASE;
}

/* -- identities */

bool lease_has_access(const struct worker *worker)
{
    return worker->service->settings.access != NULL;
}

void lease_identity_write(struct json_out *json, const struct worker *worker, struct bytes identity)
{
    if (lease_has_access(worker))
        json_text_or_null(json, "identity", identity);
}

/* -- grants */

struct bytes grant_may(const struct worker *worker)
{
    return member_may_grant(member_line_of_worker(worker));
}

struct bytes grant_may_new(const struct worker *worker)
{
    return epoch_is_crowded(member_line_of_worker(worker)->store_epoch) ? BYTES("full") : grant_may(worker);
}

struct grant grant_read(const struct store_reply *reply, struct bytes lease, struct bytes lease_id)
{
    struct bytes mode = store_reply_text(reply, 10);
    struct grant grant = {
        .lease = lease,
        .token = {.number = store_reply_integer(reply, 2), .epoch = store_reply_integer(reply, 3)},
        .hold = store_reply_text(reply, 4),
        .lease_id = lease_id,
        .holder = store_reply_text(reply, 5),
        .identity = store_reply_text(reply, store_reply_is(reply, "handed") ? WAIT_HANDED_IDENTITY : 11),
        .ttl_ms = store_reply_integer(reply, 6),
        .expires_in_ms = store_reply_integer(reply, 7),
        .holds = store_reply_integer(reply, 8),
        .meta = store_reply_text(reply, 9),
    };

    while (grant.mode <= TOKEN_PERMITS && !bytes_are(mode, token_mode_name(grant.mode)))
        grant.mode++;
    if (grant.mode > TOKEN_PERMITS) {
        grant.mode = TOKEN_EXCLUSIVE;
        grant.token.number = 0; /* not sound */
    }
    return grant;
}

bool grant_is_sound(const struct grant *grant)
{
    const struct token *token = &grant->token;

    return token->number >= 1 && token->number <= TOKEN_NUMBER_MAX && token->epoch >= 1 &&
           token->epoch <= TOKEN_NUMBER_MAX && grant->hold.len >= TOKEN_HOLD_MIN &&
           grant->hold.len <= TOKEN_HOLD_MAX;
}

struct bytes grant_write(struct http_request *req, const struct grant *grant, char header[TOKEN_HEADER_SIZE])
{
    struct json_out *json = http_json(req);
    struct token_claim claim = {.token = grant->token,
                                .lease = grant->lease,
                                .store = grant->store.len > 0
                                             ? grant->store
                                             : bytes_of(epoch_store(member_line_of(req)->store_epoch)),
                                .mode = grant->mode,
                                .hold = grant->hold};
    struct bytes fencing_token = {header, token_sign(worker_of(req)->keys, &claim, header)};

    json_object(json, NULL);
    json_text(json, "lease", grant->lease);
    json_int(json, "token", grant->token.number);
    json_text(json, "fencing_token", fencing_token);
    json_text(json, "lease_id", grant->lease_id);
    json_text(json, "holder", grant->holder);
    lease_identity_write(json, worker_of(req), grant->identity);
    json_text(json, "mode", bytes_of(token_mode_name(grant->mode)));
    json_int(json, "holds", grant->holds);
    json_int(json, "epoch", grant->token.epoch);
    json_int(json, "ttl_ms", grant->ttl_ms);
    json_int(json, "expires_in_ms", grant->expires_in_ms);
    json_int(json, "renew_in_ms", grant->ttl_ms / 3);
    json_int(json, "waited_ms", grant->waited_ms);
    json_raw(json, "meta", grant->meta.len > 0 ? grant->meta : BYTES("{}"));
    json_object_end(json);
    return fencing_token;
}

enum step grant_answer(struct http_request *req, const struct grant *grant, unsigned status)
{
    char header[TOKEN_HEADER_SIZE];

    if (!grant_is_sound(grant))
        return http_refuse(req, PROBLEM_INTERNAL);
    json_out_reset(http_json(req));
    http_reply_header(req, "Fencing-Token", grant_write(req, grant, header));
    http_reply_json(req);
    return http_answer(req, status);
}

/* -- answers */

void lease_held_write(struct json_out *json, const struct http_request *req, struct bytes name,
                      const struct store_reply *reply, size_t at)
{
    json_text(json, "lease", name);
    json_int(json, "token", store_reply_integer(reply, at));
    /* null: free, but delayed, or promised to those in line; or not to be shown */
    json_text_or_null(json, "holder", service_holder(req, name, store_reply_text(reply, at + 1)));
    json_int(json, "expires_in_ms", store_reply_integer(reply, at + 2));
}

enum step lease_ended_answer(struct http_request *req, enum problem problem, struct bytes name,
                             struct bytes ended)
{
    struct json_out *json = http_problem_begin(req, problem, NULL);

    json_text(json, "lease", name);
    json_text(json, "ended", ended);
    return http_problem_end(req, 0);
}

enum step lease_lost(struct member_call *call, const struct store_reply *reply)
{
    const struct lease_call *lease = container_of(call, struct lease_call, record);

    return lease_ended_answer(lease->req, PROBLEM_LEASE_LOST, lease->name, store_reply_text(reply, 2));
}

enum step lease_refuse(struct http_request *req, enum problem problem, struct bytes name)
{
    json_text(http_problem_begin(req, problem, NULL), "lease", name);
    return http_problem_end(req, 0);
}
