/* call_bare.c - stands in for shared/record/call.c in the pawl-lease that is measured "without": a call
 * carries and an answer teaches nothing, as before the restart gate (tests/bench/stripe_bare.lua). */
#include <stdlib.h>

#include "shared/record/call.h"

void record_line_init(struct record_line *line, struct life *life, struct store *store)
{
    *line = (struct record_line){.life = life, .store = store, .problem = PROBLEM_STORE_UNAVAILABLE};
}

/* The member asks for it: that this process joins the store and keeps its floor is the same on both sides. */
const char *record_line_run(struct record_line *line)
{
    uint64_t link = store_link_number(line->store);

    if (link != line->link) {
        line->link = link;
        life_want_pulse(line->life);
    }
    return store_run_id(line->store);
}

enum problem record_line_problem(struct record_line *line)
{
    (void)line;
    return PROBLEM_NONE;
}

enum problem record_store_problem(struct record_line *line, struct bytes store)
{
    return bytes_are(store, life_store(line->life)) ? PROBLEM_NONE : PROBLEM_WRONG_STORE;
}

/* As it is: the floor and the settings are looked at on both sides. */
struct bytes record_may_grant(const struct record_line *line)
{
    bool may = store_unsafe(line->store) == NULL && !life_has_lost_its_floor(line->life);

    return may ? BYTES("grant") : BYTES("hold-off");
}

enum problem record_run(struct record_line *line, struct record_call *call, unsigned stripe,
                        const struct store_script *script, unsigned keys, unsigned args, struct bytes *argv)
{
    (void)stripe;
    store_run(line->store, &call->store, script, keys, args, argv);
    return PROBLEM_NONE;
}

enum problem record_problem(struct record_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    (void)call;
    switch (outcome) {
    case STORE_DONE: break;
    case STORE_NOT_SENT: return PROBLEM_STORE_UNAVAILABLE;
    case STORE_UNKNOWN: return PROBLEM_OUTCOME_UNKNOWN;
    }
    return store_reply_is(reply, "not-ours") ? PROBLEM_STORE_NOT_OURS : PROBLEM_NONE;
}
