/* nodes.c - the nodes of Redis that have, or could have, a copy of the store: each asked of itself, and what
 * a failover would make of it now. */
#include "api/cli/store/store.h"

#include <string.h>

#include "api/cli/cli.h"

enum { TURN_MS = 10 };

struct node_ask {
    struct store_call call, setting;
    struct store_probe *probe; /* NULL: it is the primary, on the inbox's own link */
    struct store *store;
    struct node_fact *fact;
    struct bytes words[4], of_setting[3];
    bool is_sent, is_heard, is_set;
};

static enum step setting_heard(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct node_ask *ask = container_of(call, struct node_ask, setting);
    struct bytes value = outcome == STORE_DONE ? store_reply_text(reply, 1) : (struct bytes){NULL, 0};

    ask->is_set = true;
    snprintf(ask->fact->diskless_load, sizeof(ask->fact->diskless_load), "%.*s", (int)value.len,
             value.len > 0 ? value.at : "");
    return ANSWERED;
}

static enum step node_heard(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct node_ask *ask = container_of(call, struct node_ask, call);
    struct bytes info = outcome == STORE_DONE ? store_reply_text(reply, 0) : (struct bytes){NULL, 0};

    ask->is_heard = true;
    ask->fact->reached = info.len > 0;
    ask->fact->asked_ms = (uint64_t)cli_wall_ms();
    for (const struct fact_field *field = own_fields; ask->fact->reached && field->name != NULL; field++)
        fact_take(field, reply_info_field(info, field->name), ask->fact);
    return ANSWERED;
}

static void node_open(struct node_ask *ask, const struct store_inbox *inbox, struct node_fact *fact,
                      bool is_primary)
{
    *ask = (struct node_ask){
        .call.done = node_heard,
        .setting.done = setting_heard,
        .of_setting = {BYTES("CONFIG"), BYTES("GET"), BYTES("repl-diskless-load")},
        .probe = is_primary ? NULL : store_probe_open(inbox->store, fact->node),
        .fact = fact,
        .words = {BYTES("INFO"), BYTES("server"), BYTES("replication"), BYTES("persistence")}};
    ask->store = is_primary ? inbox->store : store_probe_store(ask->probe);
}

/* Whether there is nothing to wait for any more. */
static bool node_turn(struct node_ask *ask)
{
    if (!ask->is_sent && store_link_stands(ask->store) && store_checked(ask->store)) {
        ask->is_sent = true;
        store_ask(ask->store, &ask->call, 4, ask->words);
        store_ask(ask->store, &ask->setting, 3, ask->of_setting);
        if (ask->probe != NULL)
            store_probe_ask(ask->probe);
    }
    return ask->is_heard && ask->is_set &&
           (ask->probe == NULL || store_probe_answer(ask->probe)->asked_us > 0);
}

/* -- what follows */

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

static void node_end(struct node_ask *ask, const struct store_facts *facts)
{
    struct node_fact *fact = ask->fact;
    const char *unsafe = store_unsafe(ask->store);

    if (fact->reached) {
        snprintf(fact->unsafe, sizeof(fact->unsafe), "%s", unsafe != NULL ? unsafe : "");
        snprintf(fact->advice, sizeof(fact->advice), "%s", store_advice(ask->store));
    }
    fact->away_ms = -1;
    if (ask->probe == NULL)
        return;
    fact->away = fact->reached ? store_probe_answer(ask->probe)->why : "unreachable";
    fact->why_not = why_not(facts, fact);
    fact->away = fact->away == NULL && !fact->kept ? fact->why_not : fact->away;
    fact->away_ms = fact->gone_ms >= 0                  ? fact->gone_ms
                    : fact->reached && fact->down_s > 0 ? fact->down_s * 1000
                                                        : -1;
    store_probe_close(ask->probe);
}

void store_nodes_ask(struct store_inbox *inbox, struct store_facts *facts)
{
    struct node_ask *asks = cli_alloc(facts->node_count * sizeof(*asks));
    uint64_t deadline_ms = loop_now_ms() + inbox->timeout_ms;
    bool is_over = false;

    for (unsigned i = 0; i < facts->node_count; i++)
        node_open(&asks[i], inbox, &facts->nodes[i], i == 0);
    while (!is_over && loop_now_ms() < deadline_ms) {
        is_over = true;
        for (unsigned i = 0; i < facts->node_count; i++)
            is_over = node_turn(&asks[i]) && is_over;
        if (!is_over)
            loop_turn(inbox->loop, TURN_MS);
    }
    for (unsigned i = 0; i < facts->node_count; i++)
        node_end(&asks[i], facts);
    while (facts->node_count > 0 && asks[0].is_sent && !(asks[0].is_heard && asks[0].is_set))
        loop_turn(inbox->loop, TURN_MS); /* the call has a deadline of its own */
    free(asks);
}
