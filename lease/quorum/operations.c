/* operations.c - acquire, renew, release and look, by rounds to all nodes.
 *
 *   LOCKING    --a majority has locked-->          COMMITTING
 *   LOCKING    --the votes are split-->            PAUSING
 *   COMMITTING --certainly no majority votes-->    PAUSING
 *   PAUSING    --5 to 50 ms later-->               LOCKING
 *
 * An acquire ends out of each of them; the others are one round, a look two. Told is what a majority has,
 * less one percent for clocks that drift, and less the time since the round left. */
#include "lease/quorum/quorum.h"

#include <stdio.h>

#include "scripts.h"

enum { PAUSE_MIN_MS = 5, PAUSE_SPAN_MS = 46 };

/* -- common */

/* Whether anybody was asked. */
static bool call_ask(struct quorum_call *call, const struct store_script *script, unsigned nodes,
                     struct quorum_asker *asker, unsigned arg_count, const struct bytes *args)
{
    uint64_t now_ms = loop_now_ms();

    return quorum_ask(call->quorum,
                      &(struct quorum_question){
                          .script = script,
                          .lease = call->name,
                          .asked = nodes,
                          .needed = quorum_majority(call->quorum),
                          .timeout_ms = call->until_ms > now_ms ? (unsigned)(call->until_ms - now_ms) : 1,
                          .arg_count = arg_count,
                          .args = args,
                      },
                      asker);
}

static enum problem call_begin(struct quorum_call *call)
{
    char detail[READY_DETAIL_SIZE];
    enum problem problem = quorum_problem(call->quorum, detail);

    call->until_ms = loop_now_ms() + call->quorum->options.timeout_ms;
    return problem == PROBLEM_NONE && call->ttl_ms > call->quorum->max_ttl ? PROBLEM_OUT_OF_RANGE : problem;
}

static bool is_majority(const struct quorum_call *call, unsigned set)
{
    return quorum_bits(set) >= quorum_majority(call->quorum);
}

/* Of a call that was begun: why a majority could not be asked. */
static enum problem too_few(const struct quorum_call *call)
{
    char detail[READY_DETAIL_SIZE];
    enum problem problem = quorum_problem(call->quorum, detail);

    return problem != PROBLEM_NONE ? problem : PROBLEM_STORE_UNAVAILABLE;
}

void quorum_call_free(struct quorum_call *call)
{
    json_out_done(&call->found);
}

/* false: nothing is left of it that a holder may count on. */
static bool call_tell(struct quorum_call *call, int64_t left_ms, uint64_t sent_us)
{
    int64_t gone_ms = (int64_t)((loop_now_us() - sent_us) / 1000) + 1;

    call->expires_in_ms = left_ms - left_ms / 100 - 1 - gone_ms;
    return call->expires_in_ms > 0;
}

static void text_keep(char *place, size_t size, struct bytes text)
{
    snprintf(place, size, "%.*s", (int)text.len, text.at != NULL ? text.at : "");
}

/* As lease_told() of node.lua has it. */
static void hold_heard(struct quorum_call *call, unsigned node, const struct store_reply *reply)
{
    struct quorum_heard *heard = &call->heard[node];

    heard->is_own = bytes_equal(store_reply_text(reply, 2), call->lease_id);
    text_keep(heard->attempt, sizeof(heard->attempt), store_reply_text(reply, 3));
    heard->token = store_reply_integer(reply, 4) > 0 ? store_reply_integer(reply, 4) : 0;
    heard->left_ms = store_reply_integer(reply, 5);
    node_seen(call->quorum, node, heard->token);
    if (heard->token == 0)
        return;
    call->held |= 1U << node;
    if (heard->token < call->token)
        return;
    call->token = heard->token;
    call->hold_ttl_ms = store_reply_integer(reply, 6);
    json_out_reset(&call->found);
    json_out_append(&call->found, store_reply_text(reply, 7));
    text_keep(call->found_who, sizeof(call->found_who), store_reply_text(reply, 8));
}

/* The nodes that hold it as this one does. */
static unsigned held_alike(const struct quorum_call *call, unsigned node)
{
    unsigned alike = 0;

    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (call->held >> i & 1 && call->heard[i].token == call->heard[node].token &&
            strcmp(call->heard[i].attempt, call->heard[node].attempt) == 0)
            alike |= 1U << i;
    return alike;
}

/* The hold that most nodes have, and at least so many; false: there is none. */
static bool hold_find(struct quorum_call *call, unsigned least, uint64_t sent_us, bool *is_own)
{
    unsigned most = 0;
    const struct quorum_heard *found = NULL;
    int64_t left_ms = INT64_MAX;

    for (unsigned i = 0; i < call->quorum->options.count; i++) {
        unsigned alike = call->held >> i & 1 ? held_alike(call, i) : 0;

        if (quorum_bits(alike) > quorum_bits(most) && quorum_bits(alike) >= least) {
            most = alike;
            found = &call->heard[i];
        }
    }
    if (found == NULL)
        return false;
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (most >> i & 1 && call->heard[i].left_ms < left_ms)
            left_ms = call->heard[i].left_ms;
    if (found->token != call->token)
        json_out_reset(&call->found); /* it is of a higher one, which has no majority */
    snprintf(call->hold, sizeof(call->hold), "%s", found->attempt);
    call->token = found->token;
    *is_own = found->is_own;
    if (!call_tell(call, left_ms, sent_us))
        call->expires_in_ms = 0;
    return true;
}

/* To those that did not count, so that it survives the loss of one that did. Nobody waits. */
static void hold_spread(struct quorum_call *call, unsigned nodes, int64_t ttl_ms, struct bytes about,
                        struct bytes who)
{
    char token[BYTES_NUMBER_SIZE], ttl[BYTES_NUMBER_SIZE];

    call_ask(call, &node_raise, nodes, NULL, 6,
             (struct bytes[]){bytes_of_number(token, call->token), bytes_of(call->hold), call->lease_id,
                              bytes_of_number(ttl, ttl_ms), about, who});
}

static void release_ask(struct quorum_call *call, unsigned nodes, const char *attempt,
                        struct quorum_asker *asker)
{
    call_ask(call, &node_release, nodes, asker, 3,
             (struct bytes[]){call->lease_id, bytes_of(attempt), call->who});
}

/* -- acquire */

static bool lock_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply);
static void lock_ended(struct quorum_asker *asker, const struct quorum_round *round);
static bool commit_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply);
static void commit_ended(struct quorum_asker *asker, const struct quorum_round *round);

static void acquire_goes(struct quorum_call *call, enum acquire_state to)
{
    call->walked[call->state] |= (unsigned char)(1U << to);
    call->state = to;
}

static void acquire_end(struct quorum_call *call, enum problem problem)
{
    loop_timer_done(&call->pause);
    call->done(call, problem);
}

static enum problem acquire_lock(struct quorum_call *call)
{
    unsigned well = quorum_well(call->quorum);
    char ms[BYTES_NUMBER_SIZE];

    if (!is_majority(call, well))
        return too_few(call);
    memset(call->heard, 0, sizeof(call->heard));
    call->held = call->not_yours = call->too_long = 0;
    call->token = call->hold_ttl_ms = call->expires_in_ms = 0;
    call->hold[0] = '\0';
    token_hold_name(call->attempt);
    call->asker = (struct quorum_asker){lock_heard, lock_ended};
    call_ask(call, &node_lock, well, &call->asker, 3,
             (struct bytes[]){bytes_of(call->attempt), call->lease_id,
                              bytes_of_number(ms, call->quorum->options.timeout_ms)});
    return PROBLEM_NONE;
}

static void acquire_pause_over(struct loop_timer *timer)
{
    struct quorum_call *call = container_of(timer, struct quorum_call, pause);
    enum problem problem;

    acquire_goes(call, ACQUIRE_LOCKING);
    problem = acquire_lock(call);
    if (problem != PROBLEM_NONE)
        acquire_end(call, problem);
}

enum problem quorum_acquire(struct quorum_call *call)
{
    enum problem problem = call_begin(call);

    if (problem != PROBLEM_NONE)
        return problem;
    call->state = ACQUIRE_LOCKING;
    loop_timer_init(call->quorum->options.loop, &call->pause, acquire_pause_over);
    problem = acquire_lock(call);
    if (problem != PROBLEM_NONE)
        loop_timer_done(&call->pause);
    return problem;
}

/* What an earlier attempt of this lease_id has left, and no majority has, is in its way. What has been there
 * for one round only may be one that another request of the lease_id is making. */
static void acquire_give_back(struct quorum_call *call)
{
    char left[sizeof(call->left)] = "";

    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (call->held >> i & 1 && call->heard[i].is_own)
            snprintf(left, sizeof(left), "%s", call->heard[i].attempt);
    release_ask(call, quorum_well(call->quorum), call->attempt, NULL);
    if (left[0] != '\0' && strcmp(left, call->left) == 0)
        release_ask(call, quorum_well(call->quorum), left, NULL);
    memcpy(call->left, left, sizeof(left));
}

uint64_t quorum_random_ms(unsigned least, unsigned span)
{
    char random[5];

    random_text(random, 4);
    return least + (unsigned)(random[0] * 64 + random[1]) % span;
}

/* What was split meets again in the same way, unless each waits for a time of its own. */
static void acquire_again(struct quorum_call *call)
{
    uint64_t pause_ms = quorum_random_ms(PAUSE_MIN_MS, PAUSE_SPAN_MS);

    acquire_give_back(call);
    if (loop_now_ms() + pause_ms >= call->until_ms) {
        acquire_end(call, PROBLEM_LEASE_HELD);
        return;
    }
    acquire_goes(call, ACQUIRE_PAUSING);
    loop_timer_arm(&call->pause, pause_ms, 0);
}

static bool lock_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    struct quorum_heard *heard = &call->heard[node];
    struct bytes who = store_reply_text(reply, 8);

    if (store_reply_is(reply, "locked")) {
        heard->number = store_reply_integer(reply, 1);
        node_seen(call->quorum, node, heard->number);
        return heard->number >= 0;
    }
    hold_heard(call, node, reply);
    if (heard->is_own && heard->token > 0 && who.len > 0 && !bytes_equal(who, call->who))
        call->not_yours |= 1U << node;
    return false;
}

/* Only to those whose lock has counted: a lock that was answered later may have been made after a number
 * that this attempt does not know (0046). */
static void acquire_commit(struct quorum_call *call, unsigned locked)
{
    char token[BYTES_NUMBER_SIZE], ttl[BYTES_NUMBER_SIZE];

    call->token = 0;
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (locked >> i & 1 && call->heard[i].number > call->token)
            call->token = call->heard[i].number;
    if (++call->token > TOKEN_NUMBER_MAX) {
        acquire_end(call, PROBLEM_TOKEN_EXHAUSTED);
        return;
    }
    acquire_goes(call, ACQUIRE_COMMITTING);
    call->asker = (struct quorum_asker){commit_heard, commit_ended};
    if (!call_ask(call, &node_commit, locked, &call->asker, 5,
                  (struct bytes[]){bytes_of(call->attempt), bytes_of_number(token, call->token),
                                   bytes_of_number(ttl, call->ttl_ms), call->about, call->who}))
        acquire_end(call, too_few(call));
}

/* A majority has it already: this lease_id, or another one. */
static void acquire_held(struct quorum_call *call, bool is_own)
{
    if (!is_own)
        release_ask(call, quorum_well(call->quorum), call->attempt, NULL);
    call->is_replay = is_own;
    acquire_end(call, !is_own                                           ? PROBLEM_LEASE_HELD
                      : is_majority(call, call->not_yours & call->held) ? PROBLEM_NOT_YOURS
                      : call->expires_in_ms > 0                         ? PROBLEM_NONE
                                                                        : PROBLEM_OUTCOME_UNKNOWN);
}

static void lock_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned counted = round->counted;
    bool is_own = false;

    if (is_majority(call, counted))
        acquire_commit(call, counted);
    else if (hold_find(call, quorum_majority(call->quorum), round->sent_us, &is_own))
        acquire_held(call, is_own);
    else if (is_majority(call, counted | round->refused))
        acquire_again(call);
    else
        acquire_end(call, too_few(call));
}

static bool commit_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);

    if (store_reply_is(reply, "too-long"))
        call->too_long |= 1U << node;
    if (!store_reply_is(reply, "voted"))
        return false;
    node_seen(call->quorum, node, call->token);
    return true;
}

static void commit_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned voted = round->counted;

    if (is_majority(call, voted) && call_tell(call, call->ttl_ms, round->sent_us)) {
        snprintf(call->hold, sizeof(call->hold), "%s", call->attempt);
        call->hold_ttl_ms = call->ttl_ms;
        if (voted != quorum_well(call->quorum))
            hold_spread(call, ~voted, call->ttl_ms, call->about, call->who);
        acquire_end(call, PROBLEM_NONE);
    } else if (is_majority(call, voted | round->unknown)) {
        acquire_end(call, PROBLEM_OUTCOME_UNKNOWN);
    } else if (call->too_long != 0) {
        release_ask(call, quorum_well(call->quorum), call->attempt, NULL);
        acquire_end(call, PROBLEM_OUT_OF_RANGE);
    } else {
        acquire_again(call);
    }
}

/* -- renew, release: a majority has done it, or it is certain that none will, or nobody knows */

/* lost, of how many nodes: the hold has no majority any more. */
static enum problem round_problem(struct quorum_call *call, const struct quorum_round *round)
{
    if (is_majority(call, call->not_yours))
        return PROBLEM_NOT_YOURS;
    if (is_majority(call, call->too_long))
        return PROBLEM_OUT_OF_RANGE;
    if (is_majority(call, call->lost))
        return PROBLEM_LEASE_LOST;
    return round->unknown != 0 ? PROBLEM_OUTCOME_UNKNOWN : too_few(call);
}

static bool hold_is_not_there(struct quorum_call *call, unsigned node, const struct store_reply *reply)
{
    unsigned *set = store_reply_is(reply, "lost")        ? &call->lost
                    : store_reply_is(reply, "not-yours") ? &call->not_yours
                    : store_reply_is(reply, "too-long")  ? &call->too_long
                                                         : NULL;

    if (set != NULL)
        *set |= 1U << node;
    return set != NULL;
}

static bool renew_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);

    if (hold_is_not_there(call, node, reply) || !store_reply_is(reply, "renewed"))
        return false;
    hold_heard(call, node, reply);
    return true;
}

/* Those of one attempt must be a majority: two that were abandoned may have as many votes together. */
static void renew_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned other = call->lost;
    bool is_own;

    if (!is_majority(call, round->counted)) {
        call->done(call, round_problem(call, round));
        return;
    }
    if (!hold_find(call, quorum_majority(call->quorum), round->sent_us, &is_own) ||
        call->expires_in_ms == 0) {
        call->done(call, PROBLEM_OUTCOME_UNKNOWN);
        return;
    }
    for (unsigned i = 0; i < call->quorum->options.count; i++) {
        if (!(call->held >> i & 1) || strcmp(call->heard[i].attempt, call->hold) == 0)
            continue;
        release_ask(call, 1U << i, call->heard[i].attempt, NULL);
        other |= 1U << i;
    }
    if (other != 0)
        hold_spread(call, other, call->hold_ttl_ms, json_out_bytes(&call->found), bytes_of(call->found_who));
    call->done(call, PROBLEM_NONE);
}

enum problem quorum_renew(struct quorum_call *call)
{
    enum problem problem = call_begin(call);
    char ttl[BYTES_NUMBER_SIZE];

    if (problem != PROBLEM_NONE)
        return problem;
    call->asker = (struct quorum_asker){renew_heard, renew_ended};
    call_ask(call, &node_renew, quorum_well(call->quorum), &call->asker, 4,
             (struct bytes[]){call->lease_id,
                              call->ttl_ms > 0 ? bytes_of_number(ttl, call->ttl_ms) : BYTES(""),
                              bytes_of(call->attempt), call->who});
    return PROBLEM_NONE;
}

/* A node that has not got it is as good as one that has given it back. */
static bool release_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);

    return hold_is_not_there(call, node, reply) ? (call->lost >> node & 1) != 0
                                                : store_reply_is(reply, "released");
}

static void release_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    bool is_free = is_majority(call, round->counted) && !is_majority(call, call->lost);

    call->done(call, is_free ? PROBLEM_NONE : round_problem(call, round));
}

enum problem quorum_release(struct quorum_call *call)
{
    enum problem problem = call_begin(call);

    if (problem != PROBLEM_NONE)
        return problem;
    call->asker = (struct quorum_asker){release_heard, release_ended};
    release_ask(call, quorum_well(call->quorum), call->attempt, &call->asker);
    return PROBLEM_NONE;
}

/* -- look */

static bool look_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);

    if (store_reply_is(reply, "held"))
        hold_heard(call, node, reply);
    else if (!store_reply_is(reply, "free"))
        return false;
    if (store_reply_integer(reply, 9) > call->held_for_ms)
        call->held_for_ms = store_reply_integer(reply, 9);
    call->heard[node].number = store_reply_integer(reply, 1);
    node_seen(call->quorum, node, call->heard[node].number);
    return call->heard[node].number >= 0;
}

static bool raise_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    (void)asker;
    (void)node;
    return store_reply_is(reply, "raised");
}

static void raise_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);

    call->done(call, is_majority(call, round->counted) ? PROBLEM_NONE : too_few(call));
}

/* A number that a minority has may be lost again: a majority has it before anybody hears of it. */
static void look_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned counted = round->counted, highest = 0,
             unheard = call->quorum->options.count - quorum_bits(counted);
    char number[BYTES_NUMBER_SIZE];
    bool is_own;

    if (!is_majority(call, counted)) {
        call->done(call, too_few(call));
        return;
    }
    hold_find(call, quorum_majority(call->quorum) > unheard ? quorum_majority(call->quorum) - unheard : 1,
              round->sent_us, &is_own);
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (counted >> i & 1 && call->heard[i].number > call->number)
            call->number = call->heard[i].number;
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (counted >> i & 1 && call->heard[i].number == call->number)
            highest |= 1U << i;
    call->asker = (struct quorum_asker){raise_heard, raise_ended};
    if (is_majority(call, highest))
        call->done(call, PROBLEM_NONE);
    else if (!call_ask(call, &node_raise, counted, &call->asker, 1,
                       (struct bytes[]){bytes_of_number(number, call->number)}))
        call->done(call, too_few(call));
}

enum problem quorum_look(struct quorum_call *call)
{
    enum problem problem = call_begin(call);

    if (problem != PROBLEM_NONE)
        return problem;
    call->asker = (struct quorum_asker){look_heard, look_ended};
    call_ask(call, &node_look, quorum_well(call->quorum), &call->asker, 0, NULL);
    return PROBLEM_NONE;
}
