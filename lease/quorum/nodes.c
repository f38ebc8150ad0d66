/* nodes.c - what each node is, asked anew for each link; rounds, a script at several of them at once: who
 * counts, and when that is enough; and the end of quarantines.
 *
 *   GONE  --a link stands--------------------> NEW
 *   NEW   --it answers well------------------> WELL
 *   NEW   --it is in quarantine--------------> ILL
 *   NEW   --it is another's------------------> OTHER
 *   WELL  --it says that it is not-----------> ILL, OTHER
 *   ILL   --it is healed, here or elsewhere--> WELL
 *   OTHER --asked again, it is of this store-> WELL, ILL
 *   any   --the link ends--------------------> GONE
 *
 * Node i of a store with the id S is S/i, counted from 1 in the order of the addresses, which all services
 * name alike: two addresses of one Redis are one node. Which store it is, a majority of nodes says. */
#include "lease/quorum/quorum.h"

#include <stdio.h>

#include "scripts.h"
#include "shared/member/epoch.h"
#include "shared/text/memory.h"

enum { LOOK_MS = 50, AGAIN_MS = 250, WELL_MS = 1000, ELSEWHERE_US = 5000000, ILL_ID_CHARS = 20 };

struct quorum_node {
    struct quorum *quorum;
    struct store *store;
    unsigned index;
    enum quorum_node_state state;
    uint64_t link, ask_at_ms, ill_until_ms;
    int64_t seen, highest;               /* highest: that barriers have answered */
    bool is_asking;                      /* a round for it is under way: one at a time */
    bool wants_access;                   /* a service with --access has used it, and this is none */
    const struct store_refusal *refusal; /* when it was last asked what it is; NULL: none */
    char said[TOKEN_NODE_SIZE];          /* its id; "": none */
    char ill[ILL_ID_CHARS + 1];          /* the quarantine that it can be healed of; "": it is asked first */
    struct quorum_asker asker;
};

static void node_turn(struct quorum_node *node);

/* -- what others know */

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
    unsigned count = quorum->options.count, alike = 0;

    for (unsigned first = 0; first < count && alike < quorum_majority(quorum); first++) {
        char text[BYTES_NUMBER_SIZE];
        size_t len = 0;

        alike = 0;
        for (unsigned i = 0; i < count; i++) {
            unsigned number = token_node_number(quorum->nodes[i].said, quorum->nodes[first].said, count);
            struct bytes says = number > 0 ? bytes_of_number(text, number) : BYTES("-");

            alike += number > 0;
            len += (size_t)snprintf(numbers + len, 8, "%s%.*s", i > 0 ? ", " : "", (int)says.len, says.at);
        }
    }
    return alike >= quorum_majority(quorum);
}

const struct store_refusal *quorum_refusal(const struct quorum *quorum)
{
    const struct store_refusal *refusal = NULL;
    unsigned taking = quorum_well(quorum);

    for (unsigned i = 0; i < quorum->options.count; i++)
        if (taking >> i & 1 && quorum->nodes[i].refusal != NULL) {
            refusal = quorum->nodes[i].refusal;
            taking &= ~(1U << i);
        }
    return quorum_bits(taking) < quorum_majority(quorum) ? refusal : NULL;
}

/* Why the first node that is gone is gone; "": none is. */
static const char *why_gone(const struct quorum *quorum)
{
    unsigned gone = nodes_in(quorum, NODE_GONE);
    const char *detail = "";

    if (gone != 0)
        store_not_ready(quorum->nodes[__builtin_ctz(gone)].store, &detail);
    return detail;
}

enum problem quorum_problem(const struct quorum *quorum, char detail[READY_DETAIL_SIZE])
{
    unsigned well = quorum_bits(quorum_well(quorum)), ill = quorum_bits(nodes_in(quorum, NODE_ILL)),
             other = quorum_bits(nodes_in(quorum, NODE_OTHER)), count = quorum->options.count;
    bool is_lost = ill + other > count - quorum_majority(quorum);
    const char *gone;
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
                     "Most of the nodes have no store, or not one and the same, or one of another number of "
                     "nodes: name all of its nodes, or make it with pawl-lease --init-store and the same "
                     "--redis.");
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
    gone = why_gone(quorum);
    snprintf(detail, READY_DETAIL_SIZE,
             "Of %u nodes %u are well, and %u must be; %u are in quarantine, %u are not of this store.%s%s%s",
             count, well, quorum_majority(quorum), ill, other,
             is_lost ? " Too few are left that could say what the others have lost." : "",
             gone[0] != '\0' ? " " : "", gone);
    return is_lost ? PROBLEM_STORE_NOT_OURS : PROBLEM_STORE_UNAVAILABLE;
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

int64_t quorum_highest(const struct quorum *quorum)
{
    int64_t highest = quorum->options.floor;

    for (unsigned i = 0; i < quorum->options.count; i++)
        if (quorum->nodes[i].seen > highest)
            highest = quorum->nodes[i].seen;
    return highest;
}

static void node_is(struct quorum_node *node, enum quorum_node_state state)
{
    static const char *const events[] = {[NODE_GONE] = "node-gone",
                                         [NODE_WELL] = "node-well",
                                         [NODE_ILL] = "node-in-quarantine",
                                         [NODE_OTHER] = "node-not-ours"};
    const struct log *log = node->quorum->options.log;

    if (state == node->state)
        return;
    node->state = state;
    node->ask_at_ms = 0;
    if (log != NULL && state != NODE_NEW) {
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

/* -- rounds. The calls outlive the round, whose asker has gone on with a majority, so they live in memory of
 * its own; what is answered after the end counts for nothing (0046). */

/* For whom a majority need not wait longer: late answers cost a node's lock, not the grant. */
enum { LATE_MS = 2, KEY_SIZE = 16 + NAME_MAX_BYTES, OWN_ARGS = 5 /* two keys, and those of node.lua */ };

struct node_call {
    struct store_call call;
    struct round *round;
    struct quorum_node *node;
    char id[TOKEN_NODE_SIZE], run[STORE_RUN_ID_LEN + 1], seen[BYTES_NUMBER_SIZE];
    struct bytes argv[OWN_ARGS + QUORUM_ARGS_MAX];
};

struct round {
    struct quorum *quorum;
    struct quorum_asker *asker;
    struct quorum_question question;
    struct quorum_round told;
    unsigned needed, open; /* open: calls */
    bool is_over;
    struct loop_timer timer;
    char key[KEY_SIZE];
    struct node_call calls[QUORUM_NODES_MAX];
    struct bytes args[QUORUM_ARGS_MAX];
    char bytes[]; /* of them */
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

static enum step node_answered(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct node_call *own = container_of(call, struct node_call, call);
    struct round *round = own->round;
    struct quorum_asker *asker = round->asker;
    bool is_well = outcome == STORE_DONE && (round->question.is_of_itself || node_heard(own->node, reply));
    unsigned bit = 1U << own->node->index;

    if (round->question.is_of_itself)
        own->node->refusal = call->refusal;
    round->open--;
    if (!round->is_over) {
        if (is_well &&
            (asker == NULL || asker->heard == NULL || asker->heard(asker, own->node->index, reply)))
            round->told.counted |= bit;
        else if (outcome != STORE_UNKNOWN)
            round->told.refused |= bit;
        round->told.unknown &= ~(round->told.counted | round->told.refused);
        /* Not as soon as enough can no longer count: who asks wants to know why. */
        if (round->open == 0 || quorum_bits(round->told.refused) >= round->needed)
            round_end(round);
        else if (quorum_bits(round->told.counted) == round->needed)
            loop_timer_arm(&round->timer, LATE_MS, 0);
    }
    round_free_if_done(round);
    return ANSWERED;
}

static void round_send(struct round *round, struct quorum_node *node)
{
    const struct quorum_question *question = &round->question;
    struct node_call *own = &round->calls[node->index];
    unsigned count = 0, keys = question->lease.len > 0 ? 2 : 1;

    *own = (struct node_call){.call.done = node_answered, .round = round, .node = node};
    token_node_id(own->id, round->quorum->store, node->index + 1, round->quorum->options.count);
    snprintf(own->run, sizeof(own->run), "%s", store_run_id(node->store));
    if (question->script != NULL) {
        own->argv[count++] = BYTES(QUORUM_NODE_KEY);
        if (keys == 2)
            own->argv[count++] = bytes_of(round->key);
        own->argv[count++] = bytes_of(own->id);
        own->argv[count++] = bytes_of(own->run);
        own->argv[count++] = bytes_of_number(own->seen, node->seen);
    }
    for (unsigned i = 0; i < question->arg_count; i++)
        own->argv[count++] = round->args[i];
    round->told.unknown |= 1U << node->index;
    round->open++;
    if (question->script != NULL)
        store_run(node->store, &own->call, question->script, keys, count, own->argv);
    else
        store_ask(node->store, &own->call, count, own->argv);
}

bool quorum_ask(struct quorum *quorum, const struct quorum_question *question, struct quorum_asker *asker)
{
    unsigned all = (1U << quorum->options.count) - 1,
             nodes = question->asked & (question->is_of_itself ? all : quorum_well(quorum));
    uint64_t now_ms = loop_now_ms(), late_ms = question->until_ms;
    struct round *round;
    size_t size = 0;

    if (nodes == 0)
        return false;
    for (unsigned i = 0; i < question->arg_count; i++)
        size += question->args[i].len;
    round = must_have(calloc(1, sizeof(*round) + size));
    round->quorum = quorum;
    round->asker = asker;
    round->question = *question;
    round->needed = question->is_of_itself ? quorum_bits(nodes) : quorum_majority(quorum);
    round->told.sent_us = epoch_clock_us();
    snprintf(round->key, sizeof(round->key), QUORUM_NODE_KEY ":%.*s", (int)question->lease.len,
             question->lease.at);
    size = 0;
    for (unsigned i = 0; i < question->arg_count; i++) {
        round->args[i] = (struct bytes){round->bytes + size, question->args[i].len};
        if (question->args[i].len > 0)
            memcpy(round->bytes + size, question->args[i].at, question->args[i].len);
        size += question->args[i].len;
    }
    loop_timer_init(quorum->options.loop, &round->timer, round_time_is_up);
    loop_timer_arm(&round->timer,
                   late_ms == 0       ? quorum->options.timeout_ms
                   : late_ms > now_ms ? late_ms - now_ms
                                      : 1,
                   0);
    for (unsigned i = 0; i < quorum->options.count; i++)
        if (nodes >> i & 1)
            round_send(round, &quorum->nodes[i]);
    return true;
}

/* -- what a node is. What is asked for that is a round of this node alone. */

static void node_asked(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, asker);

    node->is_asking = false;
    for (unsigned i = 0; i < node->quorum->options.count && round->counted != 0; i++)
        node_turn(&node->quorum->nodes[i]); /* it may have said which store they are of */
}

static void node_ask(struct quorum_node *node, const struct store_script *script, quorum_heard_fn *heard,
                     unsigned arg_count, const struct bytes *args)
{
    const struct quorum_question question = {.script = script,
                                             .is_of_itself = true,
                                             .asked = 1U << node->index,
                                             .arg_count = arg_count,
                                             .args = args};

    node->asker = (struct quorum_asker){heard, node_asked};
    node->is_asking = quorum_ask(node->quorum, &question, &node->asker);
}

/* Whether a majority says so, each the number of its place. */
static bool quorum_is_named(const struct quorum *quorum, const char *said)
{
    unsigned alike = 0;

    for (unsigned i = 0; i < quorum->options.count; i++)
        alike += token_node_number(quorum->nodes[i].said, said, quorum->options.count) == i + 1;
    return alike >= quorum_majority(quorum);
}

static bool node_named(struct quorum_asker *asker, unsigned index, const struct store_reply *reply)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, asker);
    struct quorum *quorum = node->quorum;
    struct bytes id = store_reply_text(reply, 0);

    (void)index;
    snprintf(node->said, sizeof(node->said), "%.*s", (int)id.len, id.at != NULL ? id.at : "");
    node_is(node, NODE_NEW);
    if (quorum->store[0] == '\0' && token_is_store((struct bytes){node->said, TOKEN_STORE_CHARS}) &&
        quorum_is_named(quorum, node->said))
        snprintf(quorum->store, sizeof(quorum->store), "%.*s", TOKEN_STORE_CHARS, node->said);
    node->ask_at_ms = quorum->store[0] == '\0' ? loop_now_ms() + AGAIN_MS : 0;
    return true;
}

static void node_name(struct quorum_node *node)
{
    node->link = store_link_number(node->store);
    node_ask(node, NULL, node_named, 3,
             (struct bytes[]){BYTES("HMGET"), BYTES(QUORUM_NODE_KEY), BYTES("id")});
}

static bool node_judged(struct quorum_asker *asker, unsigned index, const struct store_reply *reply)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, asker);
    struct bytes ill = store_reply_text(reply, 3);
    int64_t max_ttl = store_reply_integer(reply, 2); /* a wiped one may not know */

    if (store_reply_is(reply, "well"))
        node_is(node, NODE_WELL);
    node_heard(node, reply);
    node_seen(node->quorum, index, store_reply_integer(reply, 1));
    node->quorum->max_ttl = max_ttl > node->quorum->max_ttl ? max_ttl : node->quorum->max_ttl;
    node->wants_access = bytes_are(store_reply_text(reply, 1), "access");
    node->ask_at_ms = loop_now_ms() + (node->state == NODE_WELL ? WELL_MS : AGAIN_MS);
    if (node->state == NODE_ILL && ill.len == ILL_ID_CHARS) {
        node->ill_until_ms = (uint64_t)((int64_t)loop_now_ms() + node->quorum->max_ttl -
                                        store_reply_integer(reply, 4));
        memcpy(node->ill, ill.at, ill.len);
    }
    return true;
}

/* -- healing: barriers at a majority of well nodes, and the highest that they answer to the ill one */

/* Whatever comes of it, the node is asked then whether it is well. */
static void node_heal_by(struct quorum_node *node, int64_t highest)
{
    char number[BYTES_NUMBER_SIZE], max_ttl[BYTES_NUMBER_SIZE];

    node_ask(node, &node_heal, NULL, 3,
             (struct bytes[]){bytes_of(node->ill), bytes_of_number(number, highest),
                              bytes_of_number(max_ttl, node->quorum->max_ttl)});
    node->ill[0] = '\0';
    node->ask_at_ms = 0;
}

static bool barrier_heard(struct quorum_asker *asker, unsigned index, const struct store_reply *reply)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, asker);
    int64_t highest = store_reply_integer(reply, 1);

    if (!store_reply_is(reply, "barred") || highest < 0)
        return false;
    node_seen(node->quorum, index, highest);
    node->highest = highest > node->highest ? highest : node->highest;
    return true;
}

static void barriers_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct quorum_node *node = container_of(asker, struct quorum_node, asker);

    node->is_asking = false;
    if (quorum_bits(round->counted) < quorum_majority(node->quorum) || !node_has_its_link(node))
        node->ill[0] = '\0'; /* it is asked again: somebody else may have healed it */
    else
        node_heal_by(node, node->highest);
}

static void node_begin_to_heal(struct quorum_node *node)
{
    struct quorum *quorum = node->quorum;
    const struct quorum_question question = {.script = &node_barrier, .asked = ~0U};

    node->ask_at_ms = loop_now_ms() + AGAIN_MS;
    if (quorum->options.floor > 0) {
        node_heal_by(node, quorum_highest(quorum));
        return;
    }
    node->highest = 0;
    node->asker = (struct quorum_asker){barrier_heard, barriers_ended};
    node->is_asking = quorum_ask(quorum, &question, &node->asker);
    if (!node->is_asking)
        node->ill[0] = '\0';
}

/* -- every LOOK_MS */

static void node_turn(struct quorum_node *node)
{
    char ill[ILL_ID_CHARS + 1], max_ttl[BYTES_NUMBER_SIZE];
    uint64_t now_ms = loop_now_ms();

    if (node->is_asking || node->quorum->is_stopped)
        return;
    if (!node_has_its_link(node)) {
        node_is(node, NODE_GONE);
        if (store_link_stands(node->store))
            node_name(node);
    } else if (now_ms < node->ask_at_ms) {
        return;
    } else if ((node->state == NODE_OTHER || node->state == NODE_NEW) &&
               loop_now_us() - store_link_since_us(node->store) >= ELSEWHERE_US) {
        store_reconnect(node->store); /* by now its address may lead to the right one */
    } else if (node->quorum->store[0] == '\0') {
        node_name(node);
    } else if (node->state == NODE_ILL && node->ill[0] != '\0' && node->quorum->options.heals &&
               now_ms >= node->ill_until_ms) {
        node_begin_to_heal(node);
    } else {
        random_text(ill, ILL_ID_CHARS);
        node_ask(node, &node_quarantine, node_judged, 3,
                 (struct bytes[]){bytes_of(ill), bytes_of(node->quorum->options.access),
                                  bytes_of_number(max_ttl, node->quorum->max_ttl)});
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
    quorum->nodes = must_have(calloc(options->count, sizeof(*quorum->nodes)));
    for (unsigned i = 0; i < options->count; i++)
        quorum->nodes[i] = (struct quorum_node){.quorum = quorum, .store = options->stores[i], .index = i};
    loop_timer_init(options->loop, &quorum->look, quorum_look_at_nodes);
    loop_timer_arm(&quorum->look, 1, LOOK_MS);
    return quorum;
}

void quorum_stop(struct quorum *quorum)
{
    quorum->is_stopped = true;
    loop_timer_done(&quorum->look);
}

void quorum_free(struct quorum *quorum)
{
    free(quorum->nodes);
    free(quorum);
}
