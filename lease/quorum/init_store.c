/* init_store.c - pawl-lease --init-store on a quorum: makes a store of empty nodes.
 *
 *   quorum_init_store   connect to all                             69, or go on
 *   all_create          none may have a store                      78, or go on
 *                       each gets its number, and the store's id   0 | 69
 *   all_recover         with --floor: those that have lost their data begin again above it   0 | 1 | 69 */
#include <inttypes.h>
#include <stdio.h>

#include "lease/quorum/quorum.h"
#include "scripts.h"
#include "shared/member/state_file.h"

enum { TURN_MS = 10, REFUSED = 1, MAX_TTL_MS = 300000 };

struct init_node {
    struct store_call call;
    struct store *store;
    struct bytes argv[5];
    char id[QUORUM_ID_SIZE];
    bool is_over, is_good;
};

static enum step node_done(struct store_call *call, enum store_outcome outcome,
                           const struct store_reply *reply)
{
    struct init_node *node = container_of(call, struct init_node, call);

    node->is_over = true;
    node->is_good = outcome == STORE_DONE &&
                    (store_reply_integer(reply, 0) == 0 || store_reply_is(reply, "created"));
    return ANSWERED;
}

/* How many have done it. Each call has a deadline of its own. */
static unsigned all_end(struct init_node *nodes, unsigned count, struct loop *loop)
{
    unsigned good = 0;

    for (unsigned i = 0; i < count; i++)
        while (!nodes[i].is_over)
            loop_turn(loop, TURN_MS);
    for (unsigned i = 0; i < count; i++) {
        good += nodes[i].is_good;
        nodes[i].is_over = false;
    }
    return good;
}

static int fail(const struct service *service, int status, const char *what)
{
    fprintf(stderr, "%s: %s\n", service->plan->name, what);
    return status;
}

/* The same of each node that is not good. */
static int fail_of(const struct service *service, int status, const struct init_node *nodes, unsigned count,
                   const char *what)
{
    char name[STORE_NODE_MAX];

    for (unsigned i = 0; i < count; i++) {
        if (nodes[i].is_good)
            continue;
        store_node_name(nodes[i].store, name);
        fprintf(stderr, "%s: node %u%s%s %s\n", service->plan->name, i + 1, name[0] != '\0' ? ", " : "", name,
                what);
    }
    return status;
}

static int all_create(struct service *service, struct init_node *nodes, unsigned count, struct loop *loop)
{
    uint64_t max_ttl_ms = service->settings.max_ttl_ms > 0 ? service->settings.max_ttl_ms : MAX_TTL_MS;
    char id[STORE_ID_CHARS + 1], max_ttl[BYTES_NUMBER_SIZE];

    for (unsigned i = 0; i < count; i++) {
        nodes[i].argv[0] = BYTES("EXISTS");
        nodes[i].argv[1] = BYTES(QUORUM_NODE_KEY);
        nodes[i].argv[2] = BYTES("pawl:{store}");
        nodes[i].call.done = node_done;
        store_ask(nodes[i].store, &nodes[i].call, 3, nodes[i].argv);
    }
    if (all_end(nodes, count, loop) < count)
        return fail_of(service, SERVICE_CONFIG, nodes, count,
                       "has a store already, or did not say; nothing was created");
    random_text(id, STORE_ID_CHARS);
    for (unsigned i = 0; i < count; i++) {
        snprintf(nodes[i].id, sizeof(nodes[i].id), "%s/%u", id, i + 1);
        nodes[i].argv[0] = BYTES(QUORUM_NODE_KEY);
        nodes[i].argv[1] = bytes_of(nodes[i].id);
        nodes[i].argv[2] = bytes_of(store_run_id(nodes[i].store));
        nodes[i].argv[3] = BYTES("0");
        nodes[i].argv[4] = bytes_of_number(max_ttl, (int64_t)max_ttl_ms);
        store_run(nodes[i].store, &nodes[i].call, &node_create, 1, 5, nodes[i].argv);
    }
    if (all_end(nodes, count, loop) < count)
        return fail_of(service, SERVICE_UNREACHABLE, nodes, count,
                       "did not answer, or is named twice: the store is not whole. Empty all nodes "
                       "(FLUSHALL) and run this again");
    printf("store %s created on %u nodes\n", id, count);
    return SERVICE_OK;
}

/* The highest number that a node has said. is_told: each above the floor is told. */
static int64_t highest_of(const struct service *service, const struct quorum *quorum, bool is_told)
{
    int64_t highest = 0;

    for (unsigned i = 0; i < quorum->options.count; i++) {
        int64_t number = quorum_node_highest(quorum, i);

        highest = number > highest ? number : highest;
        if (is_told && number > quorum->options.floor)
            fprintf(stderr, "%s: node %u knows of token %" PRId64 ", above --floor\n", service->plan->name,
                    i + 1, number);
    }
    return highest;
}

static void say_how_long(const struct service *service, const struct quorum *quorum)
{
    int64_t longest_ms = 0;

    for (unsigned i = 0; i < quorum->options.count; i++)
        if (quorum_node_state(quorum, i) == NODE_ILL && quorum_node_ill_for_ms(quorum, i) > longest_ms)
            longest_ms = quorum_node_ill_for_ms(quorum, i);
    fprintf(stderr,
            "%s: the nodes are in quarantine until the longest ttl is over: this takes %" PRId64
            " s, and as long again if they restart\n",
            service->plan->name, longest_ms / 1000 + 1);
}

/* All nodes that can be reached, each when the longest ttl is over, until a majority is well. */
static int all_recover(const struct service *service, struct quorum *quorum, struct loop *loop)
{
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    int64_t floor = (int64_t)service->settings.floor, highest;
    char detail[READY_DETAIL_SIZE];
    enum problem problem;

    while (!quorum_is_known(quorum) && loop_now_ms() < deadline_ms)
        loop_turn(loop, TURN_MS);
    problem = quorum_problem(quorum, detail);
    if (problem == PROBLEM_NONE)
        return fail(service, REFUSED, "most nodes are well; nothing was changed");
    if (problem == PROBLEM_STORE_NOT_OURS && quorum->store[0] == '\0')
        return fail(service, REFUSED, detail);
    if (highest_of(service, quorum, true) > floor)
        return fail(service, REFUSED, "--floor N must not be below what is known; nothing was changed");
    quorum->options.heals = true; /* not before: nothing was changed until here */
    if (problem == PROBLEM_STORE_NOT_OURS)
        say_how_long(service, quorum);
    while (problem == PROBLEM_STORE_NOT_OURS) {
        loop_turn(loop, TURN_MS);
        problem = quorum_problem(quorum, detail);
    }
    if (problem != PROBLEM_NONE)
        return fail(service, SERVICE_UNREACHABLE, detail);
    highest = highest_of(service, quorum, false); /* of one that came meanwhile */
    printf("store %s goes on above %" PRId64 "\n", quorum->store, highest > floor ? highest : floor);
    return SERVICE_OK;
}

int quorum_init_store(struct service *service)
{
    struct loop *loop = loop_new();
    struct init_node nodes[QUORUM_NODES_MAX] = {{.store = NULL}};
    struct store *stores[QUORUM_NODES_MAX];
    unsigned count = service_stores_open(service, loop, NULL, stores), standing = 0;
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    struct quorum *quorum = NULL;
    int status;

    if (service->settings.floor > 0)
        quorum = quorum_new(
            &(struct quorum_options){.loop = loop,
                                     .access = "open",
                                     .stores = stores,
                                     .count = count,
                                     .timeout_ms = (unsigned)service->settings.store_timeout_ms,
                                     .floor = (int64_t)service->settings.floor});
    while (quorum == NULL && standing < count && loop_now_ms() < deadline_ms) {
        loop_turn(loop, TURN_MS);
        standing = 0;
        for (unsigned i = 0; i < count; i++)
            standing += store_link_stands(stores[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        nodes[i].store = stores[i];
        nodes[i].is_good = store_link_stands(stores[i]);
    }
    if (quorum != NULL)
        status = all_recover(service, quorum, loop);
    else
        status = standing == count ? all_create(service, nodes, count, loop)
                                   : fail_of(service, SERVICE_UNREACHABLE, nodes, count,
                                             "cannot be reached; nothing was created");
    if (quorum != NULL)
        quorum_stop(quorum);
    for (unsigned i = 0; i < count; i++)
        store_close(stores[i]);
    quorum_free(quorum);
    loop_free(loop);
    return status;
}
