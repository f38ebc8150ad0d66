/* quorum.c - the nodes of a quorum, as pawl store status tells them: what each says of itself, and whether a
 * lease service may ask it (lease/quorum/scripts/lib/node.lua). Changes nothing. */
#include "api/cli/store/store.h"

#include <string.h>

#include "api/cli/cli.h"

enum { TURN_MS = 10, WORDS_MAX = 9 };

struct node_ask {
    struct store_call call;
    struct store *store;
    struct quorum_fact *fact;
    unsigned question; /* the one that is being asked; from QUESTIONS on none is */
    bool is_asking;
    struct bytes words[WORDS_MAX];
};

/* -- what a node says of itself */

static void text_take(char *place, size_t size, struct bytes text)
{
    snprintf(place, size, "%.*s", (int)text.len, text.len > 0 ? text.at : "");
}

static void record_take(struct quorum_fact *fact, const struct store_reply *reply)
{
    int64_t *const numbers[] = {&fact->highest, &fact->epoch, &fact->max_ttl_ms, &fact->since_ms};

    text_take(fact->id, sizeof(fact->id), store_reply_text(reply, 0));
    text_take(fact->run, sizeof(fact->run), store_reply_text(reply, 1));
    text_take(fact->of_run, sizeof(fact->of_run), store_reply_text(reply, 2));
    for (unsigned i = 0; i < 4; i++)
        *numbers[i] = bytes_number(store_reply_text(reply, 3 + i), 18);
}

static void time_take(struct quorum_fact *fact, const struct store_reply *reply)
{
    fact->now_ms = bytes_number(store_reply_text(reply, 0), 18) * 1000 +
                   bytes_number(store_reply_text(reply, 1), 18) / 1000;
    fact->asked_ms = cli_wall_ms();
}

static void info_take(struct quorum_fact *fact, const struct store_reply *reply)
{
    struct bytes info = store_reply_text(reply, 0);

    text_take(fact->own_run, sizeof(fact->own_run), reply_info_field(info, "run_id"));
    text_take(fact->version, sizeof(fact->version), reply_info_field(info, "redis_version"));
    text_take(fact->policy, sizeof(fact->policy), reply_info_field(info, "maxmemory_policy"));
    fact->reached = true;
}

static const struct {
    const char *words[WORDS_MAX + 1];
    void (*take)(struct quorum_fact *fact, const struct store_reply *reply);
} questions[] = {
    {{"HMGET", "pawl:{node}", "id", "run", "of_run", "highest", "epoch", "max_ttl", "since"}, record_take},
    {{"TIME"}, time_take},
    {{"INFO", "server", "memory"}, info_take},
};

enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

static enum step node_heard(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct node_ask *ask = container_of(call, struct node_ask, call);

    if (outcome == STORE_DONE)
        questions[ask->question].take(ask->fact, reply);
    ask->question = outcome == STORE_DONE ? ask->question + 1 : QUESTIONS;
    ask->is_asking = false;
    return ANSWERED;
}

/* Whether there is nothing to wait for any more. */
static bool node_turn(struct node_ask *ask)
{
    unsigned count = 0;

    if (ask->is_asking || ask->question == QUESTIONS || !store_link_stands(ask->store))
        return ask->question == QUESTIONS;
    for (; questions[ask->question].words[count] != NULL; count++)
        ask->words[count] = bytes_of(questions[ask->question].words[count]);
    ask->is_asking = true;
    store_ask(ask->store, &ask->call, count, ask->words);
    return false;
}

/* -- what follows */

/* Whether node i says that it is that of this store, which another one names. */
static bool is_of(const struct quorum_facts *facts, const char *named, unsigned i)
{
    char id[FACT_ID_SIZE];

    snprintf(id, sizeof(id), "%.*s/%u", (int)STORE_ID_CHARS, named, i + 1);
    return strcmp(id, facts->nodes[i].id) == 0;
}

static void store_name(struct quorum_facts *facts)
{
    for (unsigned i = 0; i < facts->count && facts->store[0] == '\0'; i++) {
        unsigned alike = 0;

        for (unsigned k = 0; k < facts->count; k++)
            alike += is_of(facts, facts->nodes[i].id, k);
        if (alike >= facts->majority)
            memcpy(facts->store, facts->nodes[i].id, STORE_ID_CHARS);
    }
}

static const char well[] = "well", quarantine[] = "quarantine";

static const char *state_of(const struct quorum_facts *facts, unsigned i)
{
    const struct quorum_fact *node = &facts->nodes[i];

    if (!node->reached)
        return "gone";
    if (facts->store[0] == '\0')
        return "new";
    if (node->id[0] != '\0' && !is_of(facts, facts->store, i))
        return "not-ours";
    return node->id[0] != '\0' && strcmp(node->run, node->own_run) == 0 ? well : quarantine;
}

static void nodes_judge(struct quorum_facts *facts)
{
    int64_t max_ttl_ms = 0;

    store_name(facts);
    for (unsigned i = 0; i < facts->count; i++) /* one that was wiped does not know */
        max_ttl_ms = facts->nodes[i].max_ttl_ms > max_ttl_ms ? facts->nodes[i].max_ttl_ms : max_ttl_ms;
    for (unsigned i = 0; i < facts->count; i++) {
        struct quorum_fact *node = &facts->nodes[i];
        bool is_begun = strcmp(node->of_run, node->own_run) == 0 && node->since_ms > 0;

        node->state = state_of(facts, i);
        node->for_ms = is_begun ? node->since_ms + max_ttl_ms - node->now_ms : max_ttl_ms;
        node->for_ms = node->state != quarantine ? -1 : node->for_ms < 0 ? 0 : node->for_ms;
        facts->reached += node->reached;
        facts->well += node->state == well;
    }
}

int store_quorum_read(struct store_inbox *inbox, struct quorum_facts *facts)
{
    struct store *stores[STORE_LIST_MAX] = {NULL};
    struct node_ask asks[STORE_LIST_MAX] = {{.store = NULL}};
    int status = store_inbox_open_all(inbox, stores);
    uint64_t deadline_ms = loop_now_ms() + inbox->timeout_ms;
    bool is_over = status != CLI_GO_ON;

    *facts = (struct quorum_facts){.count = inbox->count, .majority = inbox->count / 2 + 1};
    for (unsigned i = 0; i < inbox->count && !is_over; i++) {
        struct quorum_fact *node = &facts->nodes[i];

        store_node_name(stores[i], node->node);
        node->highest = node->epoch = node->max_ttl_ms = node->since_ms = -1;
        asks[i] = (struct node_ask){.call.done = node_heard, .store = stores[i], .fact = node};
    }
    while (!is_over && loop_now_ms() < deadline_ms) {
        is_over = true;
        for (unsigned i = 0; i < inbox->count; i++)
            is_over = node_turn(&asks[i]) && is_over;
        loop_turn(inbox->loop, TURN_MS);
    }
    for (unsigned i = 0; i < inbox->count && stores[i] != NULL; i++)
        store_close(stores[i]);
    nodes_judge(facts);
    return status;
}
