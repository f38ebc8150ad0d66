/* given_up.c - writes that are being sent, and that an operator gives up.
 *
 *   given_up_look     the number that says whether there is news
 *   given_up_tick     is anything under way, and news or old?     run intent_given_up.lua
 *   given_up_answer   the connections of those are closed */
#include "gateway/intent/given_up.h"

#include "gateway/forward/forward_internal.h"
#include "gateway/forward/sticky.h"
#include "scripts.h"

static bool is_being_sent(const struct forward *f)
{
    return (f->intent != NULL || f->sticky != NULL) &&
           (f->state == FORWARD_SENDING || f->state == FORWARD_TELLING || f->state == FORWARD_LATE);
}

static bool has_older(const struct gateway_worker *own, uint64_t now_ms, uint64_t least_ms)
{
    for (const struct forward *f = own->live; f != NULL; f = f->live_next) {
        if (is_being_sent(f) && now_ms - f->sent_ms >= least_ms) {
            return true;
        }
    }
    return false;
}

static void give_up(struct gateway_worker *own, struct bytes id)
{
    for (struct forward *f = own->live; f != NULL; f = f->live_next) {
        if (is_being_sent(f) && (f->sticky != NULL ? sticky_is(f->sticky, id) : bytes_are(id, f->id))) {
            f->why = "an operator gave it up";
            upstream_abort(&f->call);
        }
    }
}

/* {"given-up", seq, {ids}} */
static enum step given_up_answer(struct store_call *call, enum store_outcome outcome,
                                 const struct store_reply *reply)
{
    struct given_up *given_up = container_of(call, struct given_up, call.store);
    enum problem bad = member_problem(&given_up->call, outcome, reply);
    const struct store_reply *ids = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;

    given_up->in_flight = false;
    for (size_t i = 0; ids != NULL && i < store_reply_count(ids); i++) {
        give_up(given_up->own, store_reply_text(ids, i));
    }
    return ANSWERED;
}

void given_up_look(struct worker *first, int64_t number)
{
    atomic_store(&gateway_worker_from(first)->gateway->given_up, number);
}

void given_up_tick(struct gateway_worker *own)
{
    struct given_up *given_up = &own->given_up;
    struct gateway *gateway = own->gateway;
    uint64_t now_ms = loop_now_ms();
    int64_t number = atomic_load(&gateway->given_up);
    bool has_news = number != given_up->asked;

    if (given_up->in_flight || (!has_news && now_ms - given_up->asked_ms < GIVEN_UP_LOOK_MS) ||
        !has_older(own, now_ms, has_news ? 0 : GIVEN_UP_LOOK_MS) ||
        member_line_problem(&own->record.line) != PROBLEM_NONE) {
        return;
    }
    given_up->own = own;
    given_up->asked = number;
    given_up->asked_ms = now_ms;
    given_up->call.store.done = given_up_answer;
    given_up->argv[0] = keys_stripe(given_up->key, own->worker->index % STRIPES);
    given_up->argv[1] = bytes_of(gateway->id);
    given_up->argv[2] = bytes_of(gateway->incarnation);
    given_up->in_flight = member_run(&own->record.line, &given_up->call, own->worker->index % STRIPES,
                                     &script_intent_given_up, 1, GIVEN_UP_ARGS,
                                     given_up->argv) == PROBLEM_NONE;
}
