/* nodes.c - what each node is, asked anew for each link; rounds, a script at several of them at once: who
 * counts, and when that is enough; and the end of quarantines.
 *
 *   GONE  --a link stands--------------------> NEW
 *   NEW   --it answers well------------------> WELL
 *   NEW   --it is in quarantine--------------> ILL
 *   NEW   --it is another's------------------> OTHER
 *   WELL  --it says that it is not-----------> ILL, OTHER
 *   ILL   --it is healed, by whomever--------> WELL
 *   OTHER --asked again, it is of this store-> WELL, ILL
 *   any   --the link ends--------------------> GONE
 *
 * Node i of a store with the id S is S/i, counted from 1 in the order of the addresses, which all services
 * name alike: two addresses of one Redis are one node. Which store it is, a majority of nodes says. */
#include "lease/quorum/quorum.h"

#include <stdio.h>

#include "scripts.h"
#include "shared/text/memory.h"

enum { LOOK_MS = 50, AGAIN_MS = 250, WELL_MS = 1000, ILL_ID_CHARS = 20 };

struct quorum_node {
    struct quorum *quorum;
    struct store *store;
    unsigned index;
    enum quorum_node_state state;
    uint64_t link, ask_at_ms, ill_until_ms;
    int64_t seen;
    bool is_asking;            /* call, or the barriers */
    bool wants_access;         /* a service with --access has used it, and this is none */
    char said[QUORUM_ID_SIZE]; /* its id; "": none */
    char ill[ILL_ID_CHARS + 1], of_new[ILL_ID_CHARS + 1];
    struct store_call call;
    struct bytes argv[8];
    char run[STORE_RUN_ID_LEN + 1], seen_text[BYTES_NUMBER_SIZE];
    /* healing */
    struct quorum_asker barriers;
    int64_t highest, max_ttl;
    char numbers[2][BYTES_NUMBER_SIZE];
};

struct quorum {
    struct quorum_options options;
    struct loop_timer look;
    bool is_stopped;
    char store[TOKEN_STORE_CHARS + 1];
    int64_t max_ttl;
    struct quorum_node nodes[QUORUM_NODES_MAX];
    char ids[QUORUM_NODES_MAX][QUORUM_ID_SIZE];
};

static void node_turn(struct quorum_node *node);
static store_done_fn node_named, node_judged, node_healed;

/* -- what others know */

const char *quorum_store(const struct quorum *quorum)
{
    return quorum->store;
}

int64_t quorum_max_ttl(const struct quorum *quorum)
{
    return quorum->max_ttl;
}

const struct quorum_options *quorum_options(const struct quorum *quorum)
{
    return &quorum->options;
}

unsigned quorum_majority(const struct quorum *quorum)
{
    return quorum->options.count / 2 + 1;
}

static bool node_has_its_link(const struct quorum_node *node)
{
    return store_link_stands(node->store) && store_link_number(node->store) == node->link;
}

enum quorum_node_state quorum_node_state(const struct quorum *quorum, unsigned node)
{
    return node_has_its_link(&quorum->nodes[node]) ? quorum->nodes[node].state : NODE_GONE;
}

int64_t quorum_node_ill_for_ms(const struct quorum *quorum, unsigned node)
{
    uint64_t now_ms = loop_now_ms(), until_ms = quorum->nodes[node].ill_until_ms;

    return until_ms > now_ms ? (int64_t)(until_ms - now_ms) : 0;
}

static unsigned nodes_in(const struct quorum *quorum, enum quorum_node_state state)
{
    unsigned set = 0;

    for (unsigned i = 0; i < quorum->options.count; i++)
        if (quorum_node_state(quorum, i) == state)
            set |= 1U << i;
    return set;
}

bool quorum_is_known(const struct quorum *quorum)
{
    return nodes_in(quorum, NODE_GONE) == 0 && (quorum->store[0] == '\0' || nodes_in(quorum, NODE_NEW) == 0);
}

unsigned quorum_well(const struct quorum *quorum)
{
    return nodes_in(quorum, NODE_WELL);
}

/* The numbers that the nodes of one and the same store say, when a majority is in another order than here. */
static bool numbers_say(const struct quorum *quorum, char numbers[QUORUM_NODES_MAX * 8])
{
    char store[TOKEN_STORE_CHARS + 1] = "";
    unsigned alike = 0;
    size_t len = 0;

    for (unsigned first = 0; first < quorum->options.count && alike < quorum_majority(quorum); first++) {
        alike = 0;
        snprintf(store, sizeof(store), "%s", quorum->nodes[first].said);
        for (unsigned i = 0; i < quorum->options.count && store[0] != '\0'; i++)
            alike += strncmp(quorum->nodes[i].said, store, TOKEN_STORE_CHARS) == 0;
    }
    for (unsigned i = 0; i < quorum->options.count; i++) {
        bool is_its = strncmp(quorum->nodes[i].said, store, TOKEN_STORE_CHARS) == 0;
        const char *slash = is_its ? strchr(quorum->nodes[i].said, '/') : NULL;

        len += (size_t)snprintf(numbers + len, 8, "%s%.4s", i > 0 ? ", " : "",
                                slash != NULL ? slash + 1 : "-");
    }
    return alike >= quorum_majority(quorum);
}

enum problem quorum_problem(const struct quorum *quorum, char detail[READY_DETAIL_SIZE])
{
    unsigned well = quorum_bits(quorum_well(quorum)), ill = quorum_bits(nodes_in(quorum, NODE_ILL)),
             other = quorum_bits(nodes_in(quorum, NODE_OTHER)), count = quorum->options.count;
    bool is_lost = ill + other > count - quorum_majority(quorum);
    char numbers[QUORUM_NODES_MAX * 8];

    if (well >= quorum_majority(quorum))
        return PROBLEM_NONE;
    if (quorum->store[0] == '\0' && quorum_bits(nodes_in(quorum, NODE_NEW)) >= quorum_majority(quorum)) {
        if (numbers_say(quorum, numbers))
            snprintf(detail, READY_DETAIL_SIZE,
                     "The nodes are named in another order than that in which their store was made: they say "
                     "that they are numbers %s. Put --redis into the order of these.",
                     numbers);
        else
            snprintf(detail, READY_DETAIL_SIZE,
                     "Most of the nodes have no store, or not one and the same: make it with "
                     "pawl-lease --init-store and the same --redis, in the same order.");
        return PROBLEM_STORE_NOT_OURS;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!quorum->nodes[i].wants_access)
            continue;
        snprintf(detail, READY_DETAIL_SIZE,
                 "A service with --access has used these nodes, and this one would let everybody do "
                 "everything: give it --access FILE, or --allow-anonymous if that is meant.");
        return PROBLEM_STORE_NOT_OURS;
    }
    snprintf(detail, READY_DETAIL_SIZE,
             "Of %u nodes %u are well, and %u must be; %u are in quarantine, %u are not of this store.%s",
             count, well, quorum_majority(quorum), ill, other,
             is_lost ? " Too few are left that could say what the others have lost." : "");
    return is_lost ? PROBLEM_STORE_NOT_OURS : PROBLEM_STORE_UNAVAILABLE;
}

/* -- calls */

/* The three arguments that node.lua wants. */
static void node_args(const struct quorum_node *node, struct bytes args[3], char run[STORE_RUN_ID_LEN + 1],
                      char seen[BYTES_NUMBER_SIZE])
{
    snprintf(run, STORE_RUN_ID_LEN + 1, "%s", store_run_id(node->store));
    args[0] = bytes_of(node->quorum->ids[node->index]);
    args[1] = bytes_of(run);
    args[2] = bytes_of_number(seen, node->seen);
}

void node_seen(struct quorum *quorum, unsigned node, int64_t number)
{
    if (number > quorum->nodes[node].seen)
        quorum->nodes[node].seen = number;
}

int64_t quorum_node_highest(const struct quorum *quorum, unsigned node)
{
    return quorum->nodes[node].seen;
}

static void node_is(struct quorum_node *node, enum quorum_node_state state)
{
    static const char *const events[] = {
        [NODE_WELL] = "node-well", [NODE_ILL] = "node-in-quarantine", [NODE_OTHER] = "node-not-ours"};
    const struct log *log = node->quorum->options.log;

    if (state == node->state)
        return;
    node->state = state;
    node->ask_at_ms = 0;
    if (log != NULL && state >= NODE_WELL) {
        struct log_field fields[] = {LOG_I("node", node->index + 1), LOG_END};

        log_event(log, state == NODE_WELL ? LOG_INFO : LOG_WARNING, events[state], fields);
    }
}

/* Whether it answered as one that is well; who does not is asked nothing from then on. */
static bool node_heard(struct quorum_node *node, const struct store_reply *reply)
{
    if (store_reply_is(reply, "quarantine"))
        node_is(node, NODE_ILL);
    else if (store_reply_is(reply, "not-ours"))
        node_is(node, NODE_OTHER);
    else
        return true;
    return false;
}

/* One of the node's own calls, which are made one at a time. */
static void node_run(struct quorum_node *node, const struct store_script *script, unsigned args,
                     store_done_fn *done)
{
    node->argv[0] = BYTES(QUORUM_NODE_KEY);
    node_args(node, &node->argv[1], node->run, node->seen_text);
    node->is_asking = true;
    node->call.done = done;
    store_run(node->store, &node->call, script, 1, 4 + args, node->argv);
}

/* -- which store */

static void node_name(struct quorum_node *node)
{
    static const char *const words[] = {"HMGET", QUORUM_NODE_KEY, "id", "max_ttl", "highest"};

    for (unsigned i = 0; i < 5; i++)
        node->argv[i] = bytes_of(words[i]);
    node->is_asking = true;
    node->link = store_link_number(node->store);
    node->call.done = node_named;
    store_ask(node->store, &node->call, 5, node->argv);
}

/* Whether a majority says so, each the number of its place. */
static bool quorum_is_named(const struct quorum *quorum, const char *said)
{
    unsigned alike = 0;

    for (unsigned i = 0; i < quorum->options.count; i++) {
        char id[QUORUM_ID_SIZE];

        snprintf(id, sizeof(id), "%.*s/%u", TOKEN_STORE_CHARS, said, i + 1);
        alike += strcmp(id, quorum->nodes[i].said) == 0;
    }
    return alike >= quorum_majority(quorum);
}

static enum step node_named(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct quorum_node *node = container_of(call, struct quorum_node, call);
    struct quorum *quorum = node->quorum;
    struct bytes id;

    node->is_asking = false;
    if (outcome != STORE_DONE)
        return ANSWERED;
    id = store_reply_text(reply, 0);
    snprintf(node->said, sizeof(node->said), "%.*s", (int)id.len, id.at != NULL ? id.at : "");
    node_is(node, NODE_NEW);
    node_seen(quorum, node->index, store_reply_integer(reply, 2));
    if (store_reply_integer(reply, 1) > quorum->max_ttl) /* a wiped one does not know */
        quorum->max_ttl = store_reply_integer(reply, 1);
    if (quorum->store[0] == '\0' && token_is_store((struct bytes){node->said, TOKEN_STORE_CHARS}) &&
        quorum_is_named(quorum, node->said)) {
        snprintf(quorum->store, sizeof(quorum->store), "%.*s", TOKEN_STORE_CHARS, node->said);
        for (unsigned i = 0; i < quorum->options.count; i++)
            snprintf(quorum->ids[i], sizeof(quorum->ids[i]), "%s/%u", quorum->store, i + 1);
    }
    node->ask_at_ms = quorum->store[0] == '\0' ? loop_now_ms() + AGAIN_MS : 0;
    for (unsigned i = 0; i < quorum->options.count; i++)
        node_turn(&quorum->nodes[i]);
    return ANSWERED;
}

/* -- well or not */

static void node_judge(struct quorum_node *node)
{
    random_text(node->of_new, ILL_ID_CHARS);
    node->argv[4] = bytes_of(node->of_new);
    node->argv[5] = bytes_of(node->quorum->options.access);
    node->argv[6] = bytes_of_number(node->numbers[0], node->quorum->max_ttl);
    node_run(node, &node_quarantine, 3, node_judged);
}

static enum step node_judged(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct quorum_node *node = container_of(call, struct quorum_node, call);
    struct bytes ill = outcome == STORE_DONE ? store_reply_text(reply, 1) : BYTES("");

    node->is_asking = false;
    if (outcome != STORE_DONE)
        return ANSWERED;
    if (store_reply_is(reply, "well"))
        node_is(node, NODE_WELL);
    node->wants_access = store_reply_is(reply, "not-ours") && bytes_are(ill, "access");
    node_heard(node, reply);
    node->ask_at_ms = loop_now_ms() + (node->state == NODE_WELL ? WELL_MS : AGAIN_MS);
    if (node->state != NODE_ILL || ill.len != ILL_ID_CHARS)
        return ANSWERED;
    if (!bytes_are(ill, node->ill))
        node->ill_until_ms = (uint64_t)((int64_t)loop_now_ms() + node->quorum->max_ttl -
                                        store_reply_integer(reply, 2));
    memcpy(node->ill, ill.at, ill.len);
    return ANSWERED;
}

/* -- rounds. The calls outlive the round, whose asker has gone on with a majority, so they live in memory of
 * its own; what is answered after the end counts for nothing (0046). */

/* For whom a majority need not wait longer: late answers cost a node's lock, not the grant. */
enum { LATE_MS = 2 };

struct node_call {
    struct store_call call;
    struct round *round;
    struct quorum_node *node;
    char run[STORE_RUN_ID_LEN + 1], seen[BYTES_NUMBER_SIZE];
    struct bytes argv[QUORUM_OWN_ARGS + QUORUM_ARGS_MAX];
};

struct round {
    struct quorum *quorum;
    struct quorum_asker *asker;
    struct quorum_round told;
    unsigned needed, open; /* open: calls */
    bool is_over;
    struct loop_timer timer;
    char key[QUORUM_KEY_SIZE];
    struct node_call calls[QUORUM_NODES_MAX];
    char args[]; /* their bytes */
};

static void round_free_if_done(struct round *round)
{
    if (!round->is_over || round->open > 0)
        return;
    loop_timer_done(&round->timer);
    free(round);
}

static void round_end(struct round *round)
{
    if (round->is_over)
        return;
    round->is_over = true;
    loop_timer_disarm(&round->timer);
    if (round->asker != NULL && !round->quorum->is_stopped)
        round->asker->ended(round->asker, &round->told);
}

static void round_time_is_up(struct loop_timer *timer)
{
    struct round *round = container_of(timer, struct round, timer);

    round_end(round);
    round_free_if_done(round);
}

/* Not as soon as enough can no longer count: who asks wants to know why. */
static void round_judge(struct round *round)
{
    if (round->open == 0 || quorum_bits(round->told.refused) >= round->needed)
        round_end(round);
    else if (quorum_bits(round->told.counted) == round->needed)
        loop_timer_arm(&round->timer, LATE_MS, 0);
}

static enum step node_answered(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct node_call *own = container_of(call, struct node_call, call);
    struct round *round = own->round;
    bool is_well = outcome == STORE_DONE && node_heard(own->node, reply);
    unsigned bit = 1U << own->node->index;

    round->open--;
    if (!round->is_over) {
        if (is_well && round->asker != NULL && round->asker->heard(round->asker, own->node->index, reply))
            round->told.counted |= bit;
        else if (outcome != STORE_UNKNOWN)
            round->told.refused |= bit;
        round->told.unknown &= ~(round->told.counted | round->told.refused);
        round_judge(round);
    }
    round_free_if_done(round);
    return ANSWERED;
}

static void round_send(struct round *round, struct quorum_node *node, const struct quorum_question *question,
                       const struct bytes *args)
{
    struct node_call *own = &round->calls[node->index];
    unsigned count = 0, keys = question->lease.len > 0 ? 2 : 1;

    own->round = round;
    own->node = node;
    own->argv[count++] = BYTES(QUORUM_NODE_KEY);
    if (keys == 2)
        own->argv[count++] = bytes_of(round->key);
    node_args(node, &own->argv[count], own->run, own->seen);
    count += 3;
    for (unsigned i = 0; i < question->arg_count; i++)
        own->argv[count++] = args[i];
    own->call.done = node_answered;
    round->told.unknown |= 1U << node->index;
    round->open++;
    store_run(node->store, &own->call, question->script, keys, count, own->argv);
}

bool quorum_ask(struct quorum *quorum, const struct quorum_question *question, struct quorum_asker *asker)
{
    unsigned well = quorum_well(quorum) & question->asked;
    struct bytes args[QUORUM_ARGS_MAX];
    struct round *round;
    size_t size = 0;

    if (well == 0)
        return false;
    for (unsigned i = 0; i < question->arg_count; i++)
        size += question->args[i].len;
    round = must_have(calloc(1, sizeof(*round) + size));
    round->quorum = quorum;
    round->asker = asker;
    round->needed = question->needed;
    round->told.sent_us = loop_now_us();
    snprintf(round->key, sizeof(round->key), QUORUM_NODE_KEY ":%.*s", (int)question->lease.len,
             question->lease.at);
    size = 0;
    for (unsigned i = 0; i < question->arg_count; i++) {
        args[i] = (struct bytes){round->args + size, question->args[i].len};
        if (args[i].len > 0)
            memcpy(round->args + size, question->args[i].at, args[i].len);
        size += args[i].len;
    }
    loop_timer_init(quorum->options.loop, &round->timer, round_time_is_up);
    loop_timer_arm(&round->timer, question->timeout_ms, 0);
    for (unsigned i = 0; i < quorum->options.count; i++)
        if (well >> i & 1)
            round_send(round, &quorum->nodes[i], question, args);
    return true;
}

/* -- healing: barriers at a majority of well nodes, and the highest that they answer to the ill one */

static bool barrier_heard(struct quorum_asker *asker, unsigned index, const struct store_reply *reply)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, barriers);
    int64_t highest = store_reply_integer(reply, 1), max_ttl = store_reply_integer(reply, 2);

    if (!store_reply_is(reply, "barred") || highest < 0 || max_ttl < 0)
        return false;
    node_seen(node->quorum, index, highest);
    node->highest = highest > node->highest ? highest : node->highest;
    node->max_ttl = max_ttl > node->max_ttl ? max_ttl : node->max_ttl;
    return true;
}

static void node_heal_by(struct quorum_node *node)
{
    node->argv[4] = bytes_of(node->ill);
    node->argv[5] = bytes_of_number(node->numbers[0], node->highest);
    node->argv[6] = bytes_of_number(node->numbers[1], node->max_ttl);
    node_run(node, &node_heal, 3, node_healed);
}

static void barriers_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, barriers);

    node->is_asking = false;
    if (quorum_bits(round->counted) < quorum_majority(node->quorum) || !node_has_its_link(node))
        node->ill[0] = '\0'; /* it is asked again: somebody else may have healed it */
    else
        node_heal_by(node);
}

static void node_begin_to_heal(struct quorum_node *node)
{
    struct quorum *quorum = node->quorum;
    struct quorum_question question = {.script = &node_barrier,
                                       .asked = quorum_well(quorum),
                                       .needed = quorum_majority(quorum),
                                       .timeout_ms = quorum->options.timeout_ms};

    node->highest = quorum->options.floor;
    node->max_ttl = quorum->options.floor > 0 ? quorum->max_ttl : 0;
    for (unsigned i = 0; i < quorum->options.count && quorum->options.floor > 0; i++)
        if (quorum->nodes[i].seen > node->highest)
            node->highest = quorum->nodes[i].seen;
    node->ask_at_ms = loop_now_ms() + AGAIN_MS;
    if (quorum->options.floor > 0)
        node_heal_by(node);
    else if (quorum_ask(quorum, &question, &node->barriers))
        node->is_asking = true;
    else
        node->ill[0] = '\0';
}

static enum step node_healed(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct quorum_node *node = container_of(call, struct quorum_node, call);

    node->is_asking = false;
    node->ask_at_ms = 0; /* it says itself whether it is well */
    if (outcome == STORE_DONE && store_reply_is(reply, "wait"))
        node->ill_until_ms = loop_now_ms() + (uint64_t)store_reply_integer(reply, 1);
    else
        node->ill[0] = '\0';
    return ANSWERED;
}

/* -- every LOOK_MS */

static void node_turn(struct quorum_node *node)
{
    uint64_t now_ms = loop_now_ms();

    if (node->is_asking || node->quorum->is_stopped)
        return;
    if (!store_link_stands(node->store)) {
        node_is(node, NODE_GONE);
    } else if (!node_has_its_link(node)) {
        node->state = NODE_GONE;
        node_name(node);
    } else if (now_ms < node->ask_at_ms) {
        return;
    } else if (node->quorum->store[0] == '\0') {
        node_name(node);
    } else if (node->state == NODE_ILL && node->ill[0] != '\0' && node->quorum->options.heals &&
               now_ms >= node->ill_until_ms) {
        node_begin_to_heal(node);
    } else {
        node_judge(node);
    }
}

static void quorum_look_at_nodes(struct loop_timer *timer)
{
    struct quorum *quorum = container_of(timer, struct quorum, look);

    for (unsigned i = 0; i < quorum->options.count; i++)
        node_turn(&quorum->nodes[i]);
}

struct quorum *quorum_new(const struct quorum_options *options)
{
    struct quorum *quorum = must_have(calloc(1, sizeof(*quorum)));

    quorum->options = *options;
    for (unsigned i = 0; i < options->count; i++)
        quorum->nodes[i] = (struct quorum_node){.quorum = quorum,
                                                .store = options->stores[i],
                                                .index = i,
                                                .barriers = {barrier_heard, barriers_ended}};
    loop_timer_init(options->loop, &quorum->look, quorum_look_at_nodes);
    loop_timer_arm(&quorum->look, 1, LOOK_MS);
    return quorum;
}

void quorum_heal(struct quorum *quorum)
{
    quorum->options.heals = true;
}

void quorum_stop(struct quorum *quorum)
{
    quorum->is_stopped = true;
    loop_timer_done(&quorum->look);
}

void quorum_free(struct quorum *quorum)
{
    free(quorum);
}
