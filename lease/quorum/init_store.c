/* init_store.c - pawl-lease --init-store on a quorum: makes a store of empty nodes.
 *
 *   quorum_init_store   ask all what they are, until --store-timeout is over
 *   all_create          all can be reached                         69, or go on
 *                       none may have a store                      78, or go on
 *                       each gets its number, and the store's id   0 | 69
 *   all_recover         with --floor: those that have lost their data begin again above it   0 | 1 | 69 */
#include <inttypes.h>
#include <stdio.h>

#include "lease/quorum/quorum.h"
#include "scripts.h"
#include "shared/member/state_file.h"

enum { TURN_MS = 10, REFUSED = 1, MAX_TTL_MS = 300000 };

static int fail(const struct service *service, int status, const char *what)
{
    fprintf(stderr, "%s: %s\n", service->plan->name, what);
    return status;
}

/* The same of each node that is not good. */
static int fail_of(const struct service *service, int status, const struct quorum *quorum, unsigned good,
                   const char *what)
{
    char name[STORE_NODE_MAX];

    for (unsigned i = 0; i < quorum->options.count; i++) {
        if (good >> i & 1)
            continue;
        store_node_name(quorum->options.stores[i], name);
        fprintf(stderr, "%s: node %u%s%s %s\n", service->plan->name, i + 1, name[0] != '\0' ? ", " : "", name,
                what);
    }
    return status;
}

/* -- create */

struct init_round {
    struct quorum_asker asker;
    unsigned good, there; /* there: they had a store when they were to be given one */
    bool is_over;
};

static bool init_heard(struct quorum_asker *asker, unsigned node, const struct store_reply *reply)
{
    struct init_round *own = container_of(asker, struct init_round, asker);

    own->there |= (unsigned)store_reply_is(reply, "there") << node;
    return store_reply_integer(reply, 0) == 0 || store_reply_is(reply, "created");
}

static void init_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct init_round *own = container_of(asker, struct init_round, asker);

    own->good = round->counted;
    own->is_over = true;
}

/* script NULL: a command. At which nodes all was well; there: and which had a store. */
static unsigned all_ask(struct quorum *quorum, const struct store_script *script, unsigned arg_count,
                        const struct bytes *args, unsigned *there)
{
    struct init_round round = {.asker = {init_heard, init_ended}};

    quorum_ask(
        quorum,
        &(struct quorum_question){
            .script = script, .is_of_itself = true, .asked = ~0U, .arg_count = arg_count, .args = args},
        &round.asker);
    while (!round.is_over)
        loop_turn(quorum->options.loop, TURN_MS);
    *there = round.there;
    return round.good;
}

static int all_create(const struct service *service, struct quorum *quorum)
{
    uint64_t max_ttl_ms = service->settings.max_ttl_ms > 0 ? service->settings.max_ttl_ms : MAX_TTL_MS;
    unsigned count = quorum->options.count, good = 0, there;
    char max_ttl[BYTES_NUMBER_SIZE];

    for (unsigned i = 0; i < count; i++)
        good |= (unsigned)(quorum_node_state(quorum, i) != NODE_GONE) << i;
    if (quorum_bits(good) < count)
        return fail_of(service, SERVICE_UNREACHABLE, quorum, good, "cannot be reached; nothing was created");
    good = all_ask(quorum, NULL, 3,
                   (struct bytes[]){BYTES("EXISTS"), BYTES(QUORUM_NODE_KEY), BYTES("pawl:{store}")}, &there);
    if (quorum_bits(good) < count)
        return fail_of(service, SERVICE_CONFIG, quorum, good,
                       "has a store already, or did not say; nothing was created");
    random_text(quorum->store, STORE_ID_CHARS);
    good = all_ask(quorum, &node_create, 1, (struct bytes[]){bytes_of_number(max_ttl, (int64_t)max_ttl_ms)},
                   &there);
    if (quorum_bits(there) == count)
        return fail_of(service, SERVICE_CONFIG, quorum, 0,
                       "has a store by now, which somebody else has made; nothing was created");
    if (quorum_bits(good) < count)
        return fail_of(service, SERVICE_UNREACHABLE, quorum, good,
                       "did not answer, is named twice, or was given a store by somebody else just now: the "
                       "store is not whole. If nobody else makes or uses one here, empty all nodes "
                       "(FLUSHALL) and run this again");
    printf("store %s created on %u nodes\n", quorum->store, count);
    return SERVICE_OK;
}

/* -- recover */

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

static int refuse_floor(const struct service *service, const struct quorum *quorum)
{
    for (unsigned i = 0; i < quorum->options.count; i++)
        if (quorum_node_highest(quorum, i) > quorum->options.floor)
            fprintf(stderr, "%s: node %u knows of token %" PRId64 ", above --floor\n", service->plan->name,
                    i + 1, quorum_node_highest(quorum, i));
    return fail(service, REFUSED, "--floor N must not be below what is known; nothing was changed");
}

/* Whether most nodes can be reached; is_known: and of all that can be it is known what they are. */
static bool most_are_reached(const struct quorum *quorum, bool is_known)
{
    unsigned reached = 0;

    for (unsigned i = 0; i < quorum->options.count; i++) {
        enum quorum_node_state state = quorum_node_state(quorum, i);

        if (is_known && state == NODE_NEW)
            return false;
        reached += state == NODE_WELL || state == NODE_ILL || state == NODE_NEW;
    }
    return reached >= quorum_majority(quorum);
}

/* All nodes that can be reached, each when the longest ttl is over, until a majority is well. */
static int all_recover(const struct service *service, struct quorum *quorum)
{
    char detail[READY_DETAIL_SIZE];
    enum problem problem = quorum_problem(quorum, detail);

    if (problem == PROBLEM_NONE)
        return fail(service, REFUSED, "most nodes are well; nothing was changed");
    if (problem == PROBLEM_STORE_NOT_OURS && quorum->store[0] == '\0')
        return fail(service, REFUSED, detail);
    if (quorum_highest(quorum) > quorum->options.floor)
        return refuse_floor(service, quorum);
    if (!most_are_reached(quorum, problem != PROBLEM_STORE_NOT_OURS))
        return fail(service, SERVICE_UNREACHABLE, detail);
    quorum->options.heals = true; /* not before: nothing was changed until here */
    /* One that somebody else heals meanwhile by a lower number is behind, and so is each that has not heard
     * of this one: they are in quarantine again, else most of them could go on below it. */
    for (unsigned i = 0; i < quorum->options.count; i++)
        node_seen(quorum, i, quorum->options.floor);
    say_how_long(service, quorum);
    while (problem != PROBLEM_NONE && most_are_reached(quorum, false)) {
        loop_turn(quorum->options.loop, TURN_MS);
        problem = quorum_problem(quorum, detail);
    }
    if (problem != PROBLEM_NONE)
        return fail(service, SERVICE_UNREACHABLE, detail);
    printf("store %s goes on above %" PRId64 "\n", quorum->store, quorum_highest(quorum));
    return SERVICE_OK;
}

int quorum_init_store(struct service *service)
{
    struct store *stores[QUORUM_NODES_MAX];
    struct quorum_options options = {.loop = loop_new(),
                                     .access = "open",
                                     .stores = stores,
                                     .timeout_ms = (unsigned)service->settings.store_timeout_ms,
                                     .floor = (int64_t)service->settings.floor};
    uint64_t deadline_ms = loop_now_ms() + options.timeout_ms;
    struct quorum *quorum;
    int status;

    options.count = service_stores_open(service, options.loop, NULL, stores);
    quorum = quorum_new(&options);
    while (!quorum_is_known(quorum) && loop_now_ms() < deadline_ms)
        loop_turn(options.loop, TURN_MS);
    status = options.floor > 0 ? all_recover(service, quorum) : all_create(service, quorum);
    quorum_stop(quorum);
    for (unsigned i = 0; i < options.count; i++)
        store_close(stores[i]);
    quorum_free(quorum);
    if (!loop_is_looking_up(options.loop)) /* the end of the process leaves that */
        loop_free(options.loop);
    return status;
}
