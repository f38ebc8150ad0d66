/* failover.c - pawl store failover: another node of the in-sync set becomes the primary, in good order.
 *
 *   failover_read       flags                                                64, or go on
 *   store_inbox_open                                                         69 | 78, or go on
 *   failover_outsiders  does anybody copy the primary who may not take over? 1 | 69, or go on
 *   failover_ask        shuts the gate: nothing is answered any more         1 | 69 | 78, or go on
 *   failover_step       until the node has all that was done                 1, the gate open again; or go on
 *   failover_promote    a sentinel begins, or perhaps                        1, the same; or go on
 *   failover_follow     until another node is admitted and has its copies    0 | 1 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/store/store.h"
#include "scripts.h"
#include "shared/token/random.h"

enum { GATE_MS = 10000, GATE_CHARS = 16, TURN_MS = 20, PROBE_MS = 1500, OUTSIDERS_SIZE = 1024 };

struct failover {
    struct store_inbox *inbox;
    struct store_facts facts;
    struct store_ask ask;
    const char *node; /* "": any of the set */
    uint64_t deadline_ms;
    char gate[GATE_CHARS + 1], run[STORE_RUN_ID_LEN + 1], former[STORE_RUN_ID_LEN + 1];
    bool is_shut; /* and the connection may break */
    /* as of the last look */
    int64_t epoch, serves, offset, least, keeps;
    char outsiders[OUTSIDERS_SIZE];
};

/* -- the script */

static int failover_answer(struct store_ask *ask, const struct store_reply *reply)
{
    static const struct {
        const char *word, *says;
    } refusals[] = {
        {"gated", "the store is gated; nothing was changed"},
        {"changing", "the in-sync set is changing: again in a second; nothing was changed"},
        {"outside", "that is no node of the in-sync set beside the primary; nothing was changed"},
        {"none", "this store was made without --copies; nothing was changed"},
    };
    struct failover *f = container_of(ask, struct failover, ask);
    struct bytes first = store_reply_text(reply, 1), outsiders = store_reply_text(reply, 5);

    if (store_reply_is(reply, "shut")) {
        snprintf(f->run, sizeof(f->run), "%.*s", (int)first.len, first.at);
        f->is_shut = true;
    }
    if (store_reply_is(reply, "shut") || store_reply_is(reply, "opened"))
        return CLI_GO_ON;
    if (store_reply_is(reply, "at")) {
        f->epoch = store_reply_integer(reply, 1);
        f->serves = store_reply_integer(reply, 2);
        f->offset = store_reply_integer(reply, 3);
        f->least = store_reply_integer(reply, 4);
        f->keeps = store_reply_integer(reply, 6);
        snprintf(f->outsiders, sizeof(f->outsiders), "%.*s", (int)outsiders.len, outsiders.at);
        return CLI_GO_ON;
    }
    if (store_reply_is(reply, "away"))
        return cli_fail(CLI_REFUSED, "%.*s does not copy the primary; nothing was changed", (int)first.len,
                        first.at);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (store_reply_is(reply, refusals[i].word))
            return cli_fail(CLI_REFUSED, "%s", refusals[i].says);
    return cli_fail(CLI_CONFIG, "here is no store that this release knows; nothing was changed");
}

static int failover_ask(struct failover *f, const char *what)
{
    char gate_ms[PRINT_NUMBER_SIZE];
    bool reads = strcmp(what, "look") == 0;

    f->ask = (struct store_ask){.take = failover_answer, .reads = reads, .is_quiet = reads && f->is_shut};
    return store_inbox_ask(f->inbox, &f->ask, &script_failover, 1, 5,
                           (const struct bytes[]){BYTES("pawl:{store}"), bytes_of(f->node), bytes_of(what),
                                                  bytes_of(f->gate), print_number(gate_ms, GATE_MS)});
}

/* -- who else could be chosen */

/* One that copies the primary and is not in the set: it is chosen by nobody only with priority 0. */
static bool outsider_is_never_chosen(struct failover *f, const char *node)
{
    struct store_probe *probe = store_probe_open(f->inbox->store, node);
    const struct store_probe_answer *answer = store_probe_answer(probe);
    uint64_t deadline_ms = loop_now_ms() + PROBE_MS;
    bool is_never;

    do {
        store_probe_ask(probe);
        loop_turn(f->inbox->loop, TURN_MS);
    } while (answer->asked_us == 0 && loop_now_ms() < deadline_ms);
    is_never = answer->why != NULL && strcmp(answer->why, "priority-0") == 0;
    store_probe_close(probe);
    return is_never;
}

static int failover_outsiders(struct failover *f)
{
    int status = failover_ask(f, "look");
    struct bytes all = bytes_of(f->outsiders);

    while (status == CLI_GO_ON && all.len > 0) {
        struct bytes one = bytes_cut(&all, ' ');
        char node[STORE_NODE_MAX];

        snprintf(node, sizeof(node), "%.*s", (int)one.len, one.at);
        if (!outsider_is_never_chosen(f, node)) {
            status = cli_refuse(
                CLI_REFUSED,
                "Wait until it is in the set (/readyz says what keeps it out), or set its "
                "replica-priority to 0.",
                "%s copies the primary, is not in the in-sync set, and may be chosen; nothing was changed",
                node);
        }
    }
    return status;
}

/* -- the steps */

static int failover_reopen(struct failover *f, const char *why)
{
    cli_fail(CLI_REFUSED, "%s; the services go on with the primary that is", why);
    (void)failover_ask(f, "open"); /* else they do in 10 s */
    return CLI_REFUSED;
}

/* What is done after the gate was shut is no answer to anybody: heartbeats, reports. */
static int failover_step(struct failover *f)
{
    uint64_t deadline_ms = loop_now_ms() + GATE_MS / 2;
    int status = failover_ask(f, "look");
    int64_t goal = f->offset;

    while (status == CLI_GO_ON && f->least < goal && loop_now_ms() < deadline_ms) {
        loop_turn(f->inbox->loop, TURN_MS);
        status = failover_ask(f, "look");
    }
    return status == CLI_GO_ON && f->least >= goal ? CLI_GO_ON
                                                   : failover_reopen(f, "it did not come into step in 5 s");
}

static int failover_promote(struct failover *f)
{
    char why[STORE_PROMOTION_WHY_MAX], says[STORE_PROMOTION_WHY_MAX + 64];
    enum store_promotion end;

    store_promote(f->inbox->store);
    while ((end = store_promotion(f->inbox->store, why)) == STORE_PROMOTION_ASKED)
        loop_turn(f->inbox->loop, TURN_MS); /* each question has a deadline */
    if (end == STORE_PROMOTION_BEGUN)
        return CLI_GO_ON;
    snprintf(says, sizeof(says), "no sentinel begins a failover: %s", why);
    return failover_reopen(f, says);
}

static int failover_end(struct failover *f, bool is_over)
{
    char node[STORE_NODE_MAX] = "";

    store_node_name(f->inbox->store, node);
    if (is_over && strcmp(store_run_id(f->inbox->store), f->former) == 0)
        return cli_fail(CLI_REFUSED, "no other node was promoted: %s is the store as before", node);
    if (is_over)
        printf("%s is the store: epoch %" PRId64 "\n", node, f->epoch);
    if (is_over && f->run[0] != '\0' && strcmp(store_run_id(f->inbox->store), f->run) != 0)
        return cli_fail(CLI_REFUSED, "the sentinels have chosen another one than %s", f->node);
    if (is_over && f->keeps != 1)
        cli_hint("Until the nodes that are needed have a copy, nothing is answered (store-not-kept): pawl "
                 "store status says who is away.");
    if (is_over)
        return CLI_OK;
    if (store_link_stands(f->inbox->store) && store_facts_refresh(f->inbox, &f->facts) == CLI_GO_ON)
        return store_refuse(&f->facts, CLI_REFUSED, "no node is admitted yet");
    return cli_fail(CLI_REFUSED, "no node is admitted yet");
}

static int failover_follow(struct failover *f, int64_t before)
{
    bool is_over = false;

    while (!(is_over && f->keeps == 1) && loop_now_ms() < f->deadline_ms) {
        loop_turn(f->inbox->loop, TURN_MS);
        if (store_link_stands(f->inbox->store) && failover_ask(f, "look") == CLI_GO_ON)
            is_over = f->serves == 1 && f->epoch > before;
    }
    return failover_end(f, is_over);
}

/* -- all of it */

static int failover_run(struct failover *f)
{
    struct store_election now;
    int64_t before;
    int status;

    if (!store_election(f->inbox->store, &now))
        return cli_fail(CLI_CONFIG, "--redis has to be sentinel://..., for a sentinel is to begin it");
    snprintf(f->former, sizeof(f->former), "%s", store_run_id(f->inbox->store));
    random_text(f->gate, GATE_CHARS);
    status = failover_outsiders(f);
    before = f->epoch;
    if (status == CLI_GO_ON)
        status = failover_ask(f, "shut");
    if (status == CLI_GO_ON)
        status = failover_step(f);
    if (status == CLI_GO_ON)
        status = failover_promote(f);
    return status == CLI_GO_ON ? failover_follow(f, before) : status;
}

int store_failover(struct store_inbox *inbox, const char *node, uint64_t wait_ms)
{
    struct failover f = {.inbox = inbox, .node = node, .deadline_ms = loop_now_ms() + wait_ms};
    int status = failover_run(&f);

    store_facts_done(&f.facts);
    return status;
}
