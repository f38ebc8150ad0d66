/* call.c - a script on a stripe: what every such call carries and what every answer teaches. */
#include "shared/member/member.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void member_line_init(struct member_line *line, struct epoch *store_epoch, struct store *store)
{
    *line = (struct member_line){
        .store_epoch = store_epoch, .store = store, .problem = PROBLEM_STORE_UNAVAILABLE};
}

const char *member_line_run(struct member_line *line)
{
    uint64_t link = store_link_number(line->store);

    if (link != line->link) {
        line->link = link;
        line->changes = epoch_changes(line->store_epoch) - 1; /* asked anew before the next call */
        epoch_want_heartbeat(line->store_epoch);
    }
    return store_run_id(line->store);
}

/* Behind the epoch: its calls go by no older set. */
static void line_keep(struct member_line *line)
{
    struct epoch_set set;
    struct bytes nodes[STORE_NODES_MAX];
    unsigned number = epoch_nodes(line->store_epoch, &set);

    if (number == line->set || set.count == 0)
        return;
    for (unsigned i = 0; i < set.count; i++)
        nodes[i] = bytes_of(set.nodes[i]);
    store_keep(line->store, nodes, set.count, set.growing, set.copies, set.syncs);
    store_node_forget(line->store, set.forgotten);
    line->set = number;
}

/* What was allowed stays so until the link or the epoch changes. */
enum problem member_line_problem(struct member_line *line)
{
    const char *run = member_line_run(line);
    unsigned changes = epoch_changes(line->store_epoch);

    if (changes != line->changes) {
        char stream[EPOCH_STREAM_SIZE];

        line->epoch = epoch_stream(line->store_epoch, stream);
        snprintf(line->admitted, sizeof(line->admitted), "%s %s %" PRId64, stream,
                 epoch_identity(line->store_epoch), line->epoch);
        line->problem = epoch_allows(line->store_epoch, run, store_link_since_us(line->store));
        line_keep(line);
        line->changes = changes;
    }
    if (line->problem == PROBLEM_NONE && epoch_lease_is_over(line->store_epoch))
        return PROBLEM_STORE_NOT_ADMITTED;
    return line->problem;
}

enum problem member_store_problem(struct member_line *line, struct bytes store)
{
    const char *own = epoch_store(line->store_epoch);

    if (own[0] == '\0')
        return member_unknown_problem(line);
    return bytes_are(store, own) ? PROBLEM_NONE : PROBLEM_WRONG_STORE;
}

enum problem member_token_read(const struct http_request *req, struct token_claim *claim)
{
    unsigned count = 0;
    struct bytes header = http_header(req, "Fencing-Token", &count);

    if (count != 1)
        return count == 0 ? PROBLEM_TOKEN_REQUIRED : PROBLEM_MALFORMED_TOKEN;
    switch (token_verify(worker_of(req)->keys, header, claim)) {
    case TOKEN_MALFORMED: return PROBLEM_MALFORMED_TOKEN;
    case TOKEN_BAD_SIGNATURE: return PROBLEM_BAD_SIGNATURE;
    case TOKEN_GOOD: break;
    }
    return PROBLEM_NONE;
}

enum problem member_unknown_problem(struct member_line *line)
{
    enum problem problem = member_line_problem(line);

    return problem != PROBLEM_NONE ? problem : PROBLEM_STORE_NOT_ADMITTED;
}

struct bytes member_may_grant(const struct member_line *line)
{
    bool may = store_unsafe(line->store) == NULL && !epoch_has_lost_its_floor(line->store_epoch);

    if (epoch_is_full(line->store_epoch))
        return BYTES("full");
    return may ? BYTES("grant") : BYTES("hold-off");
}

static enum step call_answered(struct store_call *store, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct member_call *call = container_of(store, struct member_call, store);

    return call->done(call, member_problem(call, outcome, reply), reply);
}

enum problem member_run(struct member_line *line, struct member_call *call, unsigned stripe,
                        const struct store_script *script, unsigned keys, unsigned args, struct bytes *argv)
{
    enum problem problem = member_line_problem(line);
    struct bytes *own = argv + args;

    if (problem != PROBLEM_NONE)
        return problem;
    if (call->done != NULL)
        call->store.done = call_answered;
    call->store_epoch = line->store_epoch;
    call->stripe = stripe;
    call->epoch = line->epoch;
    memcpy(call->admitted, line->admitted, sizeof(call->admitted)); /* the call may outlive the epoch */
    own[0] = bytes_of(call->admitted);
    own[1] = bytes_of_number(call->number[0], (int64_t)epoch_seen(line->store_epoch, stripe, call->epoch));
    own[2] = bytes_of_number(call->number[1], epoch_now_ms(line->store_epoch));
    call->store.numbers = 2;
    store_run(line->store, &call->store, script, keys, args + MEMBER_ARGS, argv);
    return PROBLEM_NONE;
}

static enum problem call_refused(struct member_call *call, enum problem problem)
{
    epoch_want_heartbeat(call->store_epoch);
    return problem;
}

enum problem member_problem(struct member_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    int64_t seq;

    switch (outcome) {
    case STORE_DONE:
        if (epoch_lease_is_over(call->store_epoch)) /* another primary may have begun an epoch */
            return PROBLEM_OUTCOME_UNKNOWN;
        break;
    case STORE_NOT_SENT:
        if (store_call_was_not_kept(&call->store))
            return PROBLEM_STORE_NOT_KEPT;
        if (store_call_was_overload(&call->store))
            return PROBLEM_OVERLOADED;
        if (call->store.refusal != NULL)
            epoch_want_heartbeat(call->store_epoch); /* which then says it to all workers */
        return store_call_was_too_much(&call->store) ? PROBLEM_STORE_FULL : PROBLEM_STORE_UNAVAILABLE;
    case STORE_UNKNOWN: return PROBLEM_OUTCOME_UNKNOWN;
    }
    if (store_reply_is(reply, "not-ours"))
        return call_refused(call, PROBLEM_STORE_NOT_OURS);
    if (store_reply_is(reply, "clock"))
        return call_refused(call, PROBLEM_STORE_UNAVAILABLE);
    if (store_reply_is(reply, "not-admitted"))
        return call_refused(call, PROBLEM_STORE_NOT_ADMITTED);
    seq = store_reply_integer(reply, 1);
    if (seq < 0)
        return PROBLEM_INTERNAL;
    epoch_saw(call->store_epoch, call->stripe, call->epoch, (uint64_t)seq);
    return PROBLEM_NONE;
}

enum step member_answer(struct member_call *call, struct http_request *req,
                        const struct script_answer *answers, const struct store_reply *reply)
{
    while (answers->word != NULL && !store_reply_is(reply, answers->word))
        answers++;
    return answers->ends != NULL ? answers->ends(call, reply)
                                 : http_refuse_detail(req, answers->problem, answers->detail);
}
