/* call.c - a script on a stripe: what every such call carries and what every answer teaches. */
#include "shared/member/call.h"

#include <string.h>

void record_line_init(struct record_line *line, struct life *life, struct store *store)
{
    *line = (struct record_line){.life = life, .store = store, .problem = PROBLEM_STORE_UNAVAILABLE};
}

const char *record_line_run(struct record_line *line)
{
    uint64_t link = store_link_number(line->store);

    if (link != line->link) {
        line->link = link;
        line->changes = life_changes(line->life) - 1; /* asked anew before the next call */
        life_want_pulse(line->life);
    }
    return store_run_id(line->store);
}

/* What was allowed stays so until the link or the life changes. */
enum problem record_line_problem(struct record_line *line)
{
    const char *run = record_line_run(line);
    unsigned changes = life_changes(line->life);

    if (changes != line->changes) {
        line->epoch = life_stream(line->life, line->stream);
        line->problem = life_allows(line->life, run, store_link_since_us(line->store));
        line->changes = changes;
    }
    return line->problem;
}

enum problem record_store_problem(struct record_line *line, struct bytes store)
{
    const char *own = life_store(line->life);

    if (own[0] == '\0') {
        return record_unknown_problem(line);
    }
    return bytes_are(store, own) ? PROBLEM_NONE : PROBLEM_WRONG_STORE;
}

enum problem record_unknown_problem(struct record_line *line)
{
    enum problem problem = record_line_problem(line);

    return problem != PROBLEM_NONE ? problem : PROBLEM_STORE_NOT_ADMITTED;
}

struct bytes record_may_grant(const struct record_line *line)
{
    bool may = store_unsafe(line->store) == NULL && !life_has_lost_its_floor(line->life);

    if (life_is_full(line->life)) {
        return BYTES("full");
    }
    return may ? BYTES("grant") : BYTES("hold-off");
}

enum problem record_run(struct record_line *line, struct record_call *call, unsigned stripe,
                        const struct store_script *script, unsigned keys, unsigned args, struct bytes *argv)
{
    enum problem problem = record_line_problem(line);
    struct bytes *own = argv + args;

    if (problem != PROBLEM_NONE) {
        return problem;
    }
    call->life = line->life;
    call->stripe = stripe;
    call->epoch = line->epoch;
    memcpy(call->stream, line->stream, sizeof(call->stream)); /* the call may outlive the life */
    own[0] = bytes_of(call->stream);
    own[1] = bytes_of(life_identity(line->life));
    own[2] = bytes_of_number(call->number[0], call->epoch);
    own[3] = bytes_of_number(call->number[1], (int64_t)life_seen(line->life, stripe, call->epoch));
    own[4] = bytes_of_number(call->number[2], life_now_ms(line->life));
    store_run(line->store, &call->store, script, keys, args + RECORD_ARGS, argv);
    return PROBLEM_NONE;
}

static enum problem call_refused(struct record_call *call, enum problem problem)
{
    life_want_pulse(call->life);
    return problem;
}

enum problem record_problem(struct record_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    int64_t seq;

    switch (outcome) {
    case STORE_DONE: break;
    case STORE_NOT_SENT:
        if (call->store.refusal != NULL) {
            life_want_pulse(call->life); /* which says it to everybody */
        }
        return store_call_was_too_much(&call->store) ? PROBLEM_STORE_FULL : PROBLEM_STORE_UNAVAILABLE;
    case STORE_UNKNOWN: return PROBLEM_OUTCOME_UNKNOWN;
    }
    if (store_reply_is(reply, "not-ours")) {
        return call_refused(call, PROBLEM_STORE_NOT_OURS);
    }
    if (store_reply_is(reply, "clock")) {
        return call_refused(call, PROBLEM_STORE_UNAVAILABLE);
    }
    if (store_reply_is(reply, "not-admitted")) {
        return call_refused(call, PROBLEM_STORE_NOT_ADMITTED);
    }
    seq = store_reply_integer(reply, 1);
    if (seq < 0) {
        return PROBLEM_INTERNAL;
    }
    life_saw(call->life, call->stripe, call->epoch, (uint64_t)seq);
    return PROBLEM_NONE;
}
