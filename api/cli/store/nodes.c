/* nodes.c - nodes of Redis, each asked of itself: those that have, or could have, a copy of the store, and
 * what a failover would make of them now; those of a quorum, and whether a lease service may ask them
 * (lease/quorum/scripts/lib/node.lua). Changes nothing. */
#include "api/cli/store/store.h"

#include <string.h>

#include "api/cli/cli.h"
#include "scripts.h"
#include "shared/token/token.h"

enum { TURN_MS = 10, WORDS_MAX = 9 };

/* A command, or else a script on the store's key; and who takes the answer. */
struct question {
    const char *words[WORDS_MAX];
    void (*take)(void *fact, const struct store_reply *reply);
    const struct store_script *script;
};

struct node_ask {
    struct store_call call;
    struct store *store;
    void *fact;
    const struct question *next; /* NULL: none any more; take NULL behind the last */
    bool is_asking;
    struct bytes words[WORDS_MAX];
    const struct store_refusal *refusal; /* of the last one that was asked, if it was not done */
};

static enum step node_heard(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct node_ask *ask = container_of(call, struct node_ask, call);

    if (outcome == STORE_DONE)
        ask->next->take(ask->fact, reply);
    ask->refusal = outcome == STORE_NOT_SENT ? call->refusal : NULL;
    ask->next = outcome == STORE_DONE && ask->next[1].take != NULL ? ask->next + 1 : NULL;
    ask->is_asking = false;
    return ANSWERED;
}

/* Whether there is nothing to wait for any more. */
static bool node_turn(struct node_ask *ask)
{
    unsigned count = 0;

    if (ask->is_asking || ask->next == NULL || !store_link_stands(ask->store))
        return ask->next == NULL;
    for (; count < WORDS_MAX && ask->next->words[count] != NULL; count++)
        ask->words[count] = bytes_of(ask->next->words[count]);
    ask->is_asking = true;
    if (ask->next->script != NULL) {
        ask->words[0] = BYTES("pawl:{store}");
        store_run(ask->store, &ask->call, ask->next->script, 1, 1, ask->words);
    } else {
        store_ask(ask->store, &ask->call, count, ask->words);
    }
    return false;
}

/* -- of a store with an in-sync set */

struct copy_ask {
    struct node_ask ask;
    struct store_probe *probe; /* NULL: it is the primary, on the inbox's own link */
};

static void copy_info_take(void *at, const struct store_reply *reply)
{
    struct node_fact *fact = at;
    struct bytes info = store_reply_text(reply, 0);

    fact->reached = info.len > 0;
    fact->asked_ms = (uint64_t)cli_wall_ms();
    for (const struct fact_field *field = own_fields; fact->reached && field->name != NULL; field++)
        fact_take(field, reply_info_field(info, field->name), fact);
}

static void copy_setting_take(void *at, const struct store_reply *reply)
{
    struct bytes value = store_reply_text(reply, 1);
    struct node_fact *fact = at;

    if (store_reply_is(reply, "repl-backlog-size"))
        fact->backlog = bytes_number(value, 18);
    else
        fact_copy(value, fact->diskless_load, sizeof(fact->diskless_load));
}

static const struct question copy_questions[] = {
    {{"INFO", "server", "replication", "persistence"}, copy_info_take, NULL},
    {{"CONFIG", "GET", "repl-diskless-load"}, copy_setting_take, NULL},
    {{"CONFIG", "GET", "repl-backlog-size"}, copy_setting_take, NULL},
    {{NULL}, NULL, NULL},
};

static bool copy_turn(struct copy_ask *copy)
{
    struct node_ask *ask = &copy->ask;
    bool is_first = ask->next == copy_questions && !ask->is_asking;

    if (is_first && !(store_link_stands(ask->store) && store_checked(ask->store)))
        return false;
    if (is_first && copy->probe != NULL)
        store_probe_ask(copy->probe);
    return node_turn(ask) && (copy->probe == NULL || store_probe_answer(copy->probe)->asked_us > 0);
}

/* As lease/scripts/admit.lua decides. */
static const char *why_not(const struct store_facts *facts, const struct node_fact *node)
{
    if (!node->kept && strcmp(node->node, facts->growing) == 0)
        return "joining";
    if (!node->reached)
        return "unreachable";
    if (!node->kept)
        return node->away != NULL ? node->away : "not-in-set";
    if (strcmp(node->own_run, node->run) != 0)
        return "restarted";
    if (strcmp(node->stream, facts->set_stream) != 0)
        return "another-stream";
    return node->priority == 0 ? "priority-0" : NULL;
}

static void copy_end(struct copy_ask *copy, const struct store_facts *facts)
{
    struct node_fact *fact = copy->ask.fact;
    const char *unsafe = store_unsafe(copy->ask.store);

    if (fact->reached) {
        snprintf(fact->unsafe, sizeof(fact->unsafe), "%s", unsafe != NULL ? unsafe : "");
        snprintf(fact->advice, sizeof(fact->advice), "%s", store_advice(copy->ask.store));
    }
    fact->away_ms = -1;
    if (copy->probe == NULL)
        return;
    fact->away = fact->reached ? store_probe_answer(copy->probe)->why : "unreachable";
    fact->why_not = why_not(facts, fact);
    fact->away = fact->away == NULL && !fact->kept ? fact->why_not : fact->away;
    fact->away_ms = fact->gone_ms >= 0                  ? fact->gone_ms
                    : fact->reached && fact->down_s > 0 ? fact->down_s * 1000
                                                        : -1;
    store_probe_close(copy->probe);
}

void store_nodes_ask(struct store_inbox *inbox, struct store_facts *facts)
{
    struct copy_ask *asks = cli_alloc(facts->node_count * sizeof(*asks));
    uint64_t deadline_ms = loop_now_ms() + inbox->timeout_ms;
    bool is_over = false;

    for (unsigned i = 0; i < facts->node_count; i++) {
        asks[i].probe = i == 0 ? NULL : store_probe_open(inbox->store, facts->nodes[i].node);
        asks[i].ask = (struct node_ask){.call.done = node_heard,
                                        .store = i == 0 ? inbox->store : store_probe_store(asks[i].probe),
                                        .fact = &facts->nodes[i],
                                        .next = copy_questions};
    }
    while (!is_over && loop_now_ms() < deadline_ms) {
        is_over = true;
        for (unsigned i = 0; i < facts->node_count; i++)
            is_over = copy_turn(&asks[i]) && is_over;
        if (!is_over)
            loop_turn(inbox->loop, TURN_MS);
    }
    for (unsigned i = 0; i < facts->node_count; i++)
        copy_end(&asks[i], facts);
    while (facts->node_count > 0 && asks[0].ask.is_asking)
        loop_turn(inbox->loop, TURN_MS); /* the call has a deadline of its own */
    free(asks);
}

/* -- of a quorum */

static void record_take(void *at, const struct store_reply *reply)
{
    struct quorum_fact *fact = at;
    int64_t *const numbers[] = {&fact->highest, &fact->max_ttl_ms, &fact->since_ms};

    fact_copy(store_reply_text(reply, 0), fact->id, sizeof(fact->id));
    fact_copy(store_reply_text(reply, 1), fact->run, sizeof(fact->run));
    fact_copy(store_reply_text(reply, 2), fact->of_run, sizeof(fact->of_run));
    for (unsigned i = 0; i < 3; i++)
        *numbers[i] = bytes_number(store_reply_text(reply, 3 + i), 18);
    fact->epoch = fact->highest >= 0 ? 1 : -1; /* of all tokens of a quorum: the contract */
}

static void time_take(void *at, const struct store_reply *reply)
{
    struct quorum_fact *fact = at;

    fact->now_ms = bytes_number(store_reply_text(reply, 0), 18) * 1000 +
                   bytes_number(store_reply_text(reply, 1), 18) / 1000;
    fact->asked_ms = cli_wall_ms();
}

static void info_take(void *at, const struct store_reply *reply)
{
    struct quorum_fact *fact = at;
    struct bytes info = store_reply_text(reply, 0);

    fact_copy(reply_info_field(info, "run_id"), fact->own_run, sizeof(fact->own_run));
    fact_copy(reply_info_field(info, "redis_version"), fact->version, sizeof(fact->version));
    fact_copy(reply_info_field(info, "maxmemory_policy"), fact->policy, sizeof(fact->policy));
    fact->reached = true;
}

static void writable_take(void *at, const struct store_reply *reply)
{
    (void)at;
    (void)reply;
}

static const struct question quorum_questions[] = {
    {{"HMGET", "pawl:{node}", "id", "run", "of_run", "highest", "max_ttl", "since"}, record_take, NULL},
    {{"TIME"}, time_take, NULL},
    {{"INFO", "server", "memory"}, info_take, NULL},
    {{NULL}, writable_take, &script_writable},
    {{NULL}, NULL, NULL},
};

static void store_name(struct quorum_facts *facts)
{
    for (unsigned i = 0; i < facts->count && facts->store[0] == '\0'; i++) {
        unsigned alike = 0;

        for (unsigned k = 0; k < facts->count; k++)
            alike += token_node_number(facts->nodes[k].id, facts->nodes[i].id, facts->count) == k + 1;
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
    if (facts->store[0] == '\0') /* of most, another store or order; of fewer nobody knows which is right */
        return node->id[0] != '\0' && facts->reached >= facts->majority ? "not-ours" : "new";
    if (node->id[0] != '\0' && token_node_number(node->id, facts->store, facts->count) != i + 1)
        return "not-ours";
    return node->id[0] != '\0' && strcmp(node->run, node->own_run) == 0 ? well : quarantine;
}

static void nodes_judge(struct quorum_facts *facts)
{
    int64_t max_ttl_ms = 0;

    store_name(facts);
    for (unsigned i = 0; i < facts->count; i++)
        facts->reached += facts->nodes[i].reached;
    for (unsigned i = 0; i < facts->count; i++) /* one that was wiped does not know */
        max_ttl_ms = facts->nodes[i].max_ttl_ms > max_ttl_ms ? facts->nodes[i].max_ttl_ms : max_ttl_ms;
    for (unsigned i = 0; i < facts->count; i++) {
        struct quorum_fact *node = &facts->nodes[i];
        bool is_begun = strcmp(node->of_run, node->own_run) == 0 && node->since_ms > 0;

        node->state = state_of(facts, i);
        node->for_ms = is_begun ? node->since_ms + max_ttl_ms - node->now_ms : max_ttl_ms;
        node->for_ms = node->state != quarantine ? -1 : node->for_ms < 0 ? 0 : node->for_ms;
        facts->well += node->state == well;
        facts->taking += node->state == well && node->refusal == NULL;
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
        asks[i] = (struct node_ask){
            .call.done = node_heard, .store = stores[i], .fact = node, .next = quorum_questions};
    }
    while (!is_over && loop_now_ms() < deadline_ms) {
        is_over = true;
        for (unsigned i = 0; i < inbox->count; i++)
            is_over = node_turn(&asks[i]) && is_over;
        loop_turn(inbox->loop, TURN_MS);
    }
    for (unsigned i = 0; i < inbox->count && stores[i] != NULL; i++) {
        const struct store_refusal *refusal = asks[i].refusal;
        const char *why = NULL;

        if (!facts->nodes[i].reached && store_not_ready(stores[i], &why) != NULL)
            fact_copy(bytes_of(why), facts->nodes[i].why, FACT_TEXT_SIZE);
        if (facts->nodes[i].reached && refusal != NULL && refusal->when == STORE_REFUSED_FIRST_WRITE)
            facts->nodes[i].refusal = refusal;
        store_close(stores[i]);
    }
    nodes_judge(facts);
    return status;
}
