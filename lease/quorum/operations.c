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
#include "shared/member/epoch.h"

enum { PAUSE_MIN_MS = 5, PAUSE_SPAN_MS = 46 };

/* -- common */

/* Of which words `heard` keeps who has said them. */
static const char *const words[QUORUM_WORDS] = {
    [WORD_LOCKED] = "locked",     [WORD_FREE] = "free",   [WORD_HELD] = "held",
    [WORD_RENEWED] = "renewed",   [WORD_VOTED] = "voted", [WORD_RELEASED] = "released",
    [WORD_RAISED] = "raised",     [WORD_LOST] = "lost",   [WORD_NOT_YOURS] = "not-yours",
    [WORD_TOO_LONG] = "too-long",
};

static bool call_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply);

/* Whether anybody was asked. asker NULL: nobody waits for what comes of it. */
static bool call_send(struct quorum_call *call, const struct store_script *script, unsigned nodes,
                      struct quorum_asker *asker, unsigned arg_count, const struct bytes *args)
{
    return quorum_ask(call->quorum,
                      &(struct quorum_question){.script = script,
                                                .lease = call->name,
                                                .asked = nodes,
                                                .until_ms = call->until_ms,
                                                .arg_count = arg_count,
                                                .args = args},
                      asker);
}

/* A round of the call, in which nodes count that answer one of these words. Whether anybody was asked. */
static bool call_ask(struct quorum_call *call, const struct store_script *script, unsigned nodes,
                     unsigned counting, quorum_ended_fn *ended, unsigned arg_count, const struct bytes *args)
{
    memset(call->said, 0, sizeof(call->said));
    call->counting = counting;
    call->asker = (struct quorum_asker){call_heard, ended};
    return call_send(call, script, nodes, &call->asker, arg_count, args);
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
    for (unsigned i = 0; i < QUORUM_NODES_MAX; i++)
        json_out_done(&call->heard[i].about);
    memset(call->heard, 0, sizeof(call->heard));
    call->found = (struct bytes){"", 0};
}

/* false: nothing is left of it that a holder may count on. */
static bool call_tell(struct quorum_call *call, int64_t left_ms, uint64_t sent_us)
{
    int64_t gone_ms = (int64_t)((epoch_clock_us() - sent_us) / 1000) + 1;

    call->expires_in_ms = left_ms - left_ms / 100 - 1 - gone_ms;
    return call->expires_in_ms > 0;
}

static void text_keep(char *place, size_t size, struct bytes text)
{
    snprintf(place, size, "%.*s", (int)text.len, text.at != NULL ? text.at : "");
}

/* As lease_told() of node.lua has it. */
static void hold_heard(const struct quorum_call *call, struct quorum_heard *heard,
                       const struct store_reply *reply)
{
    heard->is_own = bytes_equal(store_reply_text(reply, 2), call->lease_id);
    text_keep(heard->attempt, sizeof(heard->attempt), store_reply_text(reply, 3));
    heard->token = store_reply_integer(reply, 4) > 0 ? store_reply_integer(reply, 4) : 0;
    heard->left_ms = store_reply_integer(reply, 5);
    heard->ttl_ms = store_reply_integer(reply, 6);
    json_out_reset(&heard->about);
    json_out_append(&heard->about, store_reply_text(reply, 7));
    text_keep(heard->who, sizeof(heard->who), store_reply_text(reply, 8));
    heard->held_for_ms = store_reply_integer(reply, 9);
}

static bool call_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    struct quorum_heard *heard = &call->heard[node];
    unsigned word = 0;

    while (word < QUORUM_WORDS && !store_reply_is(reply, words[word]))
        word++;
    if (word == QUORUM_WORDS)
        return false;
    if (word == WORD_LOST) {
        heard->number = store_reply_integer(reply, 1); /* of a renewal */
    } else if (word <= WORD_RENEWED) {
        heard->number = store_reply_integer(reply, 1);
        node_seen(call->quorum, node, heard->number);
        if (heard->number < 0)
            return false;
    }
    if (word == WORD_HELD || word == WORD_RENEWED)
        hold_heard(call, heard, reply);
    if (word == WORD_VOTED)
        node_seen(call->quorum, node, call->token);
    call->said[word] |= 1U << node;
    return call->counting >> word & 1;
}

/* The nodes that hold it as this one does. */
static unsigned held_alike(const struct quorum_call *call, const struct quorum_heard *heard)
{
    unsigned alike = 0;

    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (heard->token > 0 && call->heard[i].token == heard->token &&
            strcmp(call->heard[i].attempt, heard->attempt) == 0)
            alike |= 1U << i;
    return alike;
}

/* The hold that most nodes have, the newest of these, and at least so many; NULL: there is none. */
static const struct quorum_heard *hold_find(struct quorum_call *call, unsigned least, uint64_t sent_us)
{
    const struct quorum_heard *found = NULL;
    unsigned most = 0;
    int64_t left_ms = INT64_MAX;

    for (unsigned i = 0; i < call->quorum->options.count; i++) {
        const struct quorum_heard *heard = &call->heard[i];
        unsigned alike = held_alike(call, heard), more = quorum_bits(alike);

        if (more < least || more < quorum_bits(most) ||
            (found != NULL && more == quorum_bits(most) && heard->token <= found->token))
            continue;
        most = alike;
        found = heard;
    }
    if (found == NULL)
        return NULL;
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (most >> i & 1 && call->heard[i].left_ms < left_ms)
            left_ms = call->heard[i].left_ms;
    snprintf(call->hold, sizeof(call->hold), "%s", found->attempt);
    call->token = found->token;
    call->hold_ttl_ms = found->ttl_ms;
    call->held_for_ms = found->held_for_ms;
    call->found = json_out_bytes(&found->about);
    if (!call_tell(call, left_ms, sent_us))
        call->expires_in_ms = 0;
    return found;
}

/* To those that did not count, so that it survives the loss of one that did. Nobody waits. A node that was
 * healed has a higher number of every lease: it takes the hold if it has answered that in this round. */
static void hold_spread(struct quorum_call *call, unsigned nodes, struct bytes about, struct bytes who)
{
    char token[BYTES_NUMBER_SIZE], ttl[BYTES_NUMBER_SIZE], told[BYTES_NUMBER_SIZE];

    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (nodes >> i & 1)
            call_send(call, &node_raise, 1U << i, NULL, 7,
                      (struct bytes[]){bytes_of_number(token, call->token), bytes_of(call->hold),
                                       call->lease_id, bytes_of_number(ttl, call->hold_ttl_ms), about, who,
                                       bytes_of_number(told, call->heard[i].number)});
}

/* Likewise. */
static void hold_give_back(struct quorum_call *call, unsigned nodes, const char *attempt)
{
    call_send(call, &node_release, nodes, NULL, 3,
              (struct bytes[]){call->lease_id, bytes_of(attempt), call->who});
}

/* -- acquire */

static quorum_ended_fn lock_ended, commit_ended;

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
    quorum_call_free(call);
    call->token = call->expires_in_ms = 0;
    call->hold[0] = '\0';
    token_hold_name(call->attempt);
    call_ask(call, &node_lock, well, 1U << WORD_LOCKED, lock_ended, 3,
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

/* What an earlier attempt of this lease_id has left, and no majority has, is in its way. What nobody knows of
 * a node may be a vote for it: then its holder counts on it. What has been there for one round only may be
 * one that another request of the lease_id is making. */
static void acquire_give_back(struct quorum_call *call)
{
    unsigned answered = call->said[WORD_LOCKED] | call->said[WORD_HELD];
    char left[sizeof(call->left)] = "";

    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (call->heard[i].token > 0 && call->heard[i].is_own)
            snprintf(left, sizeof(left), "%s", call->heard[i].attempt);
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (strcmp(call->heard[i].attempt, left) == 0)
            answered &= ~(1U << i);
    hold_give_back(call, ~0U, call->attempt);
    call->token = 0; /* nobody was granted it */
    if (left[0] != '\0' && strcmp(left, call->left) == 0 && is_majority(call, answered))
        hold_give_back(call, ~0U, left);
    memcpy(call->left, left, sizeof(left));
}

uint64_t quorum_random_ms(unsigned least, unsigned span)
{
    char random[5];

    random_text(random, 4);
    return least + (unsigned)(random[0] * 64 + random[1]) % span;
}

/* Whether most have said in this round what is there. Of who has answered with an error nobody knows. */
static bool acquire_is_told(const struct quorum_call *call)
{
    const unsigned *said = call->said;

    return is_majority(call, said[WORD_LOCKED] | said[WORD_HELD] | said[WORD_VOTED] | said[WORD_LOST]);
}

/* What was split meets again in the same way, unless each waits for a time of its own. */
static void acquire_again(struct quorum_call *call)
{
    uint64_t pause_ms = quorum_random_ms(PAUSE_MIN_MS, PAUSE_SPAN_MS);

    acquire_give_back(call);
    if (loop_now_ms() + pause_ms >= call->until_ms) {
        acquire_end(call, acquire_is_told(call) ? PROBLEM_LEASE_HELD : too_few(call));
        return;
    }
    acquire_goes(call, ACQUIRE_PAUSING);
    loop_timer_arm(&call->pause, pause_ms, 0);
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
    if (!call_ask(call, &node_commit, locked, 1U << WORD_VOTED, commit_ended, 5,
                  (struct bytes[]){bytes_of(call->attempt), bytes_of_number(token, call->token),
                                   bytes_of_number(ttl, call->ttl_ms), call->about, call->who}))
        acquire_end(call, too_few(call));
}

/* A majority has it already: this lease_id, or another one. */
static void acquire_held(struct quorum_call *call, const struct quorum_heard *held)
{
    bool is_yours = held->who[0] == '\0' || bytes_are(call->who, held->who);

    if (!held->is_own)
        hold_give_back(call, ~0U, call->attempt);
    call->is_replay = held->is_own;
    acquire_end(call, !held->is_own             ? PROBLEM_LEASE_HELD
                      : !is_yours               ? PROBLEM_NOT_YOURS
                      : call->expires_in_ms > 0 ? PROBLEM_NONE
                                                : PROBLEM_OUTCOME_UNKNOWN);
}

static void lock_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    const struct quorum_heard *held;

    if (is_majority(call, round->counted))
        acquire_commit(call, round->counted);
    else if ((held = hold_find(call, quorum_majority(call->quorum), round->sent_us)) != NULL)
        acquire_held(call, held);
    else if (acquire_is_told(call)) {
        acquire_again(call);
    } else { /* what has been locked is nobody's */
        hold_give_back(call, ~0U, call->attempt);
        acquire_end(call, too_few(call));
    }
}

static void commit_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned voted = round->counted;

    if (is_majority(call, voted) && call_tell(call, call->ttl_ms, round->sent_us)) {
        snprintf(call->hold, sizeof(call->hold), "%s", call->attempt);
        call->hold_ttl_ms = call->ttl_ms;
        hold_spread(call, ~voted, call->about, call->who);
        acquire_end(call, PROBLEM_NONE);
    } else if (is_majority(call, voted | round->unknown)) {
        acquire_end(call, PROBLEM_OUTCOME_UNKNOWN);
    } else if (call->said[WORD_TOO_LONG] != 0) {
        hold_give_back(call, ~0U, call->attempt);
        acquire_end(call, PROBLEM_OUT_OF_RANGE);
    } else {
        acquire_again(call);
    }
}

/* -- renew, release: a majority has done it, or it is certain that none will, or nobody knows */

static enum problem round_problem(const struct quorum_call *call, const struct quorum_round *round)
{
    if (is_majority(call, call->said[WORD_NOT_YOURS]))
        return PROBLEM_NOT_YOURS;
    if (is_majority(call, call->said[WORD_TOO_LONG]))
        return PROBLEM_OUT_OF_RANGE;
    if (is_majority(call, call->said[WORD_LOST]))
        return PROBLEM_LEASE_LOST;
    return round->unknown != 0 ? PROBLEM_OUTCOME_UNKNOWN : too_few(call);
}

/* Those of one attempt must be a majority: two that were abandoned may have as many votes together. */
static void renew_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned other = call->said[WORD_LOST];
    const struct quorum_heard *held;

    if (!is_majority(call, round->counted)) {
        call->done(call, round_problem(call, round));
        return;
    }
    held = hold_find(call, quorum_majority(call->quorum), round->sent_us);
    if (held == NULL || call->expires_in_ms == 0) {
        call->done(call, PROBLEM_OUTCOME_UNKNOWN);
        return;
    }
    for (unsigned i = 0; i < call->quorum->options.count; i++) {
        if (!(round->counted >> i & 1) || strcmp(call->heard[i].attempt, call->hold) == 0)
            continue;
        hold_give_back(call, 1U << i, call->heard[i].attempt);
        other |= 1U << i;
    }
    hold_spread(call, other, call->found, bytes_of(held->who));
    call->done(call, PROBLEM_NONE);
}

enum problem quorum_renew(struct quorum_call *call)
{
    enum problem problem = call_begin(call);
    char ttl[BYTES_NUMBER_SIZE];

    if (problem == PROBLEM_NONE)
        call_ask(call, &node_renew, ~0U, 1U << WORD_RENEWED, renew_ended, 4,
                 (struct bytes[]){call->lease_id,
                                  call->ttl_ms > 0 ? bytes_of_number(ttl, call->ttl_ms) : BYTES(""),
                                  bytes_of(call->attempt), call->who});
    return problem;
}

static void release_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    bool is_free = is_majority(call, round->counted) && !is_majority(call, call->said[WORD_LOST]);

    call->done(call, is_free ? PROBLEM_NONE : round_problem(call, round));
}

/* A node that has not got it is as good as one that has given it back. */
enum problem quorum_release(struct quorum_call *call)
{
    enum problem problem = call_begin(call);

    if (problem == PROBLEM_NONE)
        call_ask(call, &node_release, ~0U, 1U << WORD_RELEASED | 1U << WORD_LOST, release_ended, 3,
                 (struct bytes[]){call->lease_id, bytes_of(call->attempt), call->who});
    return problem;
}

/* -- look */

static void raise_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);

    call->done(call, is_majority(call, round->counted) ? PROBLEM_NONE : too_few(call));
}

/* A number that a minority has may be lost again: a majority has it before anybody hears of it. */
static void look_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_call *call = container_of(asker, struct quorum_call, asker);
    unsigned counted = round->counted, highest = 0, majority = quorum_majority(call->quorum),
             unheard = call->quorum->options.count - quorum_bits(counted);
    char number[BYTES_NUMBER_SIZE];

    if (!is_majority(call, counted)) {
        call->done(call, too_few(call));
        return;
    }
    hold_find(call, majority > unheard ? majority - unheard : 1, round->sent_us);
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (counted >> i & 1 && call->heard[i].number > call->number)
            call->number = call->heard[i].number;
    for (unsigned i = 0; i < call->quorum->options.count; i++)
        if (counted >> i & 1 && call->heard[i].number == call->number)
            highest |= 1U << i;
    if (is_majority(call, highest))
        call->done(call, PROBLEM_NONE);
    else if (!call_ask(call, &node_raise, counted, 1U << WORD_RAISED, raise_ended, 1,
                       (struct bytes[]){bytes_of_number(number, call->number)}))
        call->done(call, too_few(call));
}

enum problem quorum_look(struct quorum_call *call)
{
    enum problem problem = call_begin(call);

    if (problem == PROBLEM_NONE)
        call_ask(call, &node_look, ~0U, 1U << WORD_FREE | 1U << WORD_HELD, look_ended, 0, NULL);
    return problem;
}
