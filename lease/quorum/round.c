/* round.c - a script at several nodes at once: who counts, and when that is enough.
 *
 * The calls outlive the round, whose asker has gone on with a majority, so they live in memory of its own;
 * what is answered after the end counts for nothing (0046). */
#include "lease/quorum/quorum_internal.h"

#include "shared/text/memory.h"

/* For whom a majority need not wait longer: late answers cost a node's lock, not the grant. */
enum { LATE_MS = 2 };

struct node_call {
    struct store_call call;
    struct quorum_round *round;
    unsigned node;
    char run[STORE_RUN_ID_LEN + 1], seen[BYTES_NUMBER_SIZE];
    struct bytes argv[QUORUM_OWN_ARGS + QUORUM_ARGS_MAX];
};

struct quorum_round {
    struct quorum *quorum;
    struct quorum_asker *asker;
    unsigned asked, needed, counted, refused, open; /* open: calls */
    bool is_over;
    uint64_t sent_us;
    struct loop_timer timer;
    char key[QUORUM_KEY_SIZE];
    struct node_call calls[QUORUM_NODES_MAX];
    char args[]; /* their bytes */
};

unsigned round_counted(const struct quorum_round *round)
{
    return round->counted;
}

unsigned round_refused(const struct quorum_round *round)
{
    return round->refused;
}

unsigned round_unknown(const struct quorum_round *round)
{
    return round->asked & ~round->counted & ~round->refused;
}

uint64_t round_sent_us(const struct quorum_round *round)
{
    return round->sent_us;
}

static void round_free_if_done(struct quorum_round *round)
{
    if (!round->is_over || round->open > 0)
        return;
    loop_timer_done(&round->timer);
    free(round);
}

static void round_end(struct quorum_round *round)
{
    if (round->is_over)
        return;
    round->is_over = true;
    loop_timer_disarm(&round->timer);
    if (round->asker != NULL && !quorum_is_stopped(round->quorum))
        round->asker->ended(round->asker, round);
}

static void round_time_is_up(struct loop_timer *timer)
{
    struct quorum_round *round = container_of(timer, struct quorum_round, timer);

    round_end(round);
    round_free_if_done(round);
}

/* Not as soon as enough can no longer count: who asks wants to know why. */
static void round_judge(struct quorum_round *round)
{
    if (round->open == 0 || quorum_bits(round->refused) >= round->needed)
        round_end(round);
    else if (quorum_bits(round->counted) == round->needed)
        loop_timer_arm(&round->timer, LATE_MS, 0);
}

static enum step node_answered(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct node_call *own = container_of(call, struct node_call, call);
    struct quorum_round *round = own->round;
    bool is_well = outcome == STORE_DONE && node_heard(round->quorum, own->node, reply);

    round->open--;
    if (!round->is_over) {
        if (is_well && round->asker != NULL && round->asker->heard(round->asker, own->node, reply))
            round->counted |= 1U << own->node;
        else if (outcome != STORE_UNKNOWN)
            round->refused |= 1U << own->node;
        round_judge(round);
    }
    round_free_if_done(round);
    return ANSWERED;
}

static void round_send(struct quorum_round *round, unsigned node, const struct quorum_question *question,
                       const struct bytes *args)
{
    struct node_call *own = &round->calls[node];
    unsigned count = 0, keys = question->lease.len > 0 ? 2 : 1;

    own->round = round;
    own->node = node;
    own->argv[count++] = BYTES(QUORUM_NODE_KEY);
    if (keys == 2)
        own->argv[count++] = bytes_of(round->key);
    node_args(round->quorum, node, &own->argv[count], own->run, own->seen);
    count += 3;
    for (unsigned i = 0; i < question->arg_count; i++)
        own->argv[count++] = args[i];
    own->call.done = node_answered;
    round->asked |= 1U << node;
    round->open++;
    store_run(node_store(round->quorum, node), &own->call, question->script, keys, count, own->argv);
}

bool quorum_ask(struct quorum *quorum, const struct quorum_question *question, struct quorum_asker *asker)
{
    unsigned well = quorum_well(quorum) & question->asked;
    struct bytes args[QUORUM_ARGS_MAX];
    struct quorum_round *round;
    size_t size = 0;

    if (well == 0)
        return false;
    for (unsigned i = 0; i < question->arg_count; i++)
        size += question->args[i].len;
    round = must_have(calloc(1, sizeof(*round) + size));
    round->quorum = quorum;
    round->asker = asker;
    round->needed = question->needed;
    round->sent_us = loop_now_us();
    snprintf(round->key, sizeof(round->key), QUORUM_NODE_KEY ":%.*s", (int)question->lease.len,
             question->lease.at);
    size = 0;
    for (unsigned i = 0; i < question->arg_count; i++) {
        args[i] = (struct bytes){round->args + size, question->args[i].len};
        if (args[i].len > 0)
            memcpy(round->args + size, question->args[i].at, args[i].len);
        size += args[i].len;
    }
    loop_timer_init(quorum_loop(quorum), &round->timer, round_time_is_up);
    loop_timer_arm(&round->timer, question->timeout_ms, 0);
    for (unsigned node = 0; node < quorum_count(quorum); node++)
        if (well >> node & 1)
            round_send(round, node, question, args);
    return true;
}
