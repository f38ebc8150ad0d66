/* test_store_keep.c - an answer is told when every node of the in-sync set has it; real replicas. */
#include "shared/member/member.h"
#include "tests/component/store_relay.h"

enum { REPLICAS = 2, TIMEOUT_MS = 600, FEW = 40 };

struct kept_world {
    struct redis primary, replicas[REPLICAS];
    struct world world;
    char names[1 + REPLICAS][32];
};

static void name_nodes(struct kept_world *kept, unsigned count, unsigned copies)
{
    struct bytes nodes[1 + REPLICAS];

    for (unsigned i = 0; i < count; i++)
        nodes[i] = bytes_of(kept->names[i]);
    store_keep(kept->world.store, nodes, count, 0, copies, STORE_SYNCS_ANY);
}

static unsigned copies_at(struct redis *primary, const struct redis *announced)
{
    unsigned count = 0;

    for (const char *at = redis_ask(primary, "INFO replication");
         (at = strstr(at, textf("port=%u,state=online", announced->port))) != NULL; at++)
        count++;
    return count;
}

static void kept_world_open(struct kept_world *kept)
{
    char port[16];

    redis_start(&kept->primary, (const char *const[]){"--repl-diskless-sync-delay", "0", NULL});
    snprintf(port, sizeof(port), "%u", kept->primary.port);
    snprintf(kept->names[0], sizeof(kept->names[0]), "127.0.0.1:%u", kept->primary.port);
    for (unsigned i = 0; i < REPLICAS; i++) {
        redis_start(&kept->replicas[i], (const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
        snprintf(kept->names[i + 1], sizeof(kept->names[0]), "127.0.0.1:%u", kept->replicas[i].port);
    }
    kept->world.loop = loop_new(); /* the store's is another: the first replica begins a stream */
    for (unsigned i = 0; i < REPLICAS; i++)
        WAIT(&kept->world, copies_at(&kept->primary, &kept->replicas[i]) == 1, 10000);
    loop_free(kept->world.loop);
    world_open_on(&kept->world, &kept->primary, TIMEOUT_MS);
}

static void kept_world_close(struct kept_world *kept)
{
    world_close(&kept->world);
    for (unsigned i = 0; i < REPLICAS; i++)
        redis_stop(&kept->replicas[i]);
    redis_stop(&kept->primary);
}

#define TEST_KEPT(sentence)                                                                                  \
    static void sentence##_on(struct kept_world *kept, struct world *world);                                 \
    TEST_WITH(sentence, struct kept_world, kept, kept_world_open(kept), kept_world_close(kept))              \
    {                                                                                                        \
        sentence##_on(kept, &kept->world);                                                                   \
    }                                                                                                        \
    static void sentence##_on(struct kept_world *kept, struct world *world)

static void wait_until_kept(struct kept_world *kept, unsigned count)
{
    name_nodes(kept, count, 2);
    WAIT(&kept->world, store_not_kept(kept->world.store) == NULL, 10000);
}

/* Returns when it is stopped. */
static void freeze(const struct redis *redis)
{
    kill(redis->pid, SIGSTOP);
    waitpid(redis->pid, NULL, WUNTRACED);
}

/* While it stands still. NOT_SENT when it was silent for the timeout before: the machine, once more. */
static enum store_outcome asked_with_frozen(struct kept_world *kept, const struct redis *replica)
{
    enum store_outcome outcome = STORE_NOT_SENT;

    for (unsigned i = 0; i < 3 && outcome == STORE_NOT_SENT; i++) {
        struct probe probe = {0};

        kill(replica->pid, SIGCONT);
        WAIT(&kept->world, store_not_kept(kept->world.store) == NULL, 10000);
        freeze(replica);
        probe_start(&kept->world, &probe, &script_SET, "k", "v");
        WAIT(&kept->world, probe.ends > 0, 10000);
        outcome = probe.outcome;
    }
    return outcome;
}

/* DONE sooner or later: what the machine holds up for the timeout is another outcome, and asked again. */
static enum store_outcome asked(struct world *world, const struct store_script *script)
{
    struct patience patience = patience_of(30000);
    enum store_outcome outcome;

    do
        outcome = probe_once(world, script, "k", "v").outcome;
    while (outcome != STORE_DONE && patience_lasts(&patience));
    return outcome;
}

/* Whether it has acknowledged all that is in the stream, as it does each second without being asked. */
static bool is_in_step(struct redis *primary, const struct redis *replica)
{
    const char *info = redis_ask(primary, "INFO replication"), *slave, *all;
    char line[64];

    snprintf(line, sizeof(line), "port=%u,state=online,offset=", replica->port);
    slave = strstr(info, line);
    all = strstr(info, "master_repl_offset:");
    return slave != NULL && all != NULL &&
           strtoul(slave + strlen(line), NULL, 10) == strtoul(all + strlen("master_repl_offset:"), NULL, 10);
}

static void told_with(struct probe *probe, const struct store_reply *reply)
{
    struct redis *replica = (struct redis *)(uintptr_t)probe->argv[3].at;

    (void)reply;
    CHECK_TEXT(bytes_of(redis_ask(replica, "GET k")), bytes_of(probe->argv[1].at));
}

TEST_KEPT(an_answer_is_told_when_the_replicas_have_it)
{
    wait_until_kept(kept, 3);
    for (unsigned i = 0; i < FEW; i++) {
        struct probe probe = {.then = told_with};

        probe.argv[3] = (struct bytes){(const char *)&kept->replicas[i % REPLICAS], 0};
        probe_start(world, &probe, &script_SET, "k", textf("%u", i));
        WAIT(world, probe.ends > 0, 10000);
        CHECK_INT(probe.outcome, STORE_DONE);
    }
}

struct turn {
    struct probe probes[FEW];
    unsigned told[FEW], count;
};

static struct turn *turn;

static void note_told(struct probe *probe, const struct store_reply *reply)
{
    (void)reply;
    turn->told[turn->count++] = (unsigned)(probe - turn->probes);
}

TEST_KEPT(what_is_told_late_is_told_in_order_and_whole_also_of_a_batch)
{
    struct turn own = {0};

    turn = &own;
    wait_until_kept(kept, 3);
    for (unsigned i = 0; i < FEW; i++) {
        own.probes[i].then = note_told;
        probe_start(world, &own.probes[i], i % 8 == 7 ? &script_ECHO : &script_PUT, "list", "v");
    }
    WAIT(world, world->open == 0, 10000);
    for (unsigned i = 0; i < FEW; i++) {
        CHECK_INT(own.told[i], i);
        CHECK_INT(own.probes[i].outcome, STORE_DONE);
        CHECK_TEXT(bytes_of(own.probes[i].text), i % 8 == 7 ? BYTES("v") : BYTES("put"));
    }
}

/* Reads do not add to the stream, so a frozen node has acknowledged all that is in it. */
TEST_KEPT(a_frozen_node_holds_up_what_is_told_until_it_goes_on_or_the_deadline)
{
    static const struct store_script *const scripts[] = {&script_SET, &script_ECHO};

    wait_until_kept(kept, 3);
    for (unsigned i = 0, again = 0; i < 2; i++) {
        struct probe late = {0}, lost = {0};
        uint64_t from_ms;
        bool stood_still;

        WAIT(world, is_in_step(&kept->primary, &kept->replicas[1]), 10000);
        freeze(&kept->replicas[1]);
        from_ms = loop_now_ms();
        probe_start(world, &late, scripts[i], "k", "v");
        while (loop_now_ms() < from_ms + TIMEOUT_MS / 2)
            waited_turn(world->loop, 2);
        stood_still = late.ends > 0 && loop_now_ms() >= from_ms + TIMEOUT_MS;
        CHECK(late.ends == 0 || stood_still);
        kill(kept->replicas[1].pid, SIGCONT);
        WAIT(world, late.ends > 0, 10000);
        if (stood_still && again++ < 2) { /* the machine: once more */
            i--;
            WAIT(world, store_not_kept(world->store) == NULL, 10000);
            continue;
        }
        CHECK_INT(late.outcome, STORE_DONE);

        WAIT(world, store_nodes(world->store, &(unsigned){0}, &(unsigned){0})[2].why == NULL, 10000);
        freeze(&kept->replicas[1]);
        from_ms = loop_now_ms();
        probe_start(world, &lost, scripts[i], "k", "v");
        WAIT(world, lost.ends > 0, 10000);
        CHECK(lost.outcome == STORE_UNKNOWN && loop_now_ms() >= from_ms + TIMEOUT_MS);
        CHECK(store_link_stands(world->store));
        WAIT(world, store_not_kept(world->store) != NULL,
             3000); /* silent for the timeout: known beforehand */
        CHECK_INT(probe_once(world, scripts[i], "k", "v").outcome, STORE_NOT_SENT);
        kill(kept->replicas[1].pid, SIGCONT);
        WAIT(world, store_not_kept(world->store) == NULL, 10000);
        CHECK_INT(asked(world, scripts[i]), STORE_DONE);
    }
}

TEST_KEPT(a_copy_that_is_not_in_the_set_counts_for_nothing)
{
    (void)world;
    wait_until_kept(kept, 2);
    CHECK_INT(asked_with_frozen(kept, &kept->replicas[0]), STORE_UNKNOWN); /* the other acknowledges */
    kill(kept->replicas[0].pid, SIGCONT);
}

/* By its copies' addresses Redis cannot tell them apart. */
TEST_KEPT(of_two_copies_that_announce_one_address_each_counts)
{
    redis_does(&kept->replicas[1], textf("CONFIG SET replica-announce-port %u", kept->replicas[0].port));
    redis_does(&kept->replicas[1], "REPLICAOF NO ONE");
    redis_does(&kept->replicas[1], textf("REPLICAOF 127.0.0.1 %u", kept->primary.port));
    WAIT(world, copies_at(&kept->primary, &kept->replicas[0]) == 2, 10000);
    wait_until_kept(kept, 2);
    for (unsigned i = 0; i < REPLICAS; i++) {
        CHECK_INT(asked_with_frozen(kept, &kept->replicas[i]), STORE_UNKNOWN); /* the other acknowledges */
        WAIT(world, store_not_kept(world->store) != NULL, 10000);
        kill(kept->replicas[i].pid, SIGCONT);
        WAIT(world, store_not_kept(world->store) == NULL, 10000);
    }
    CHECK_INT(asked(world, &script_SET), STORE_DONE);
}

TEST_KEPT(what_cannot_be_kept_is_not_sent)
{
    unsigned seen, in_set;
    const struct store_node *nodes;
    struct probe probe;

    redis_does(&kept->primary, "SET k before");
    wait_until_kept(kept, 3);
    redis_kill(&kept->replicas[0]);
    WAIT(world, store_not_kept(world->store) != NULL, 10000);
    probe = probe_once(world, &script_SET, "k", "v");
    CHECK(probe.outcome == STORE_NOT_SENT && store_call_was_not_kept(&probe.call));
    CHECK_INT(member_problem(&(struct member_call){.store = probe.call}, STORE_NOT_SENT, NULL),
              PROBLEM_STORE_NOT_KEPT);
    CHECK(strstr(store_not_kept(world->store), kept->names[1]) != NULL);
    nodes = store_nodes(world->store, &seen, &in_set);
    CHECK(seen == 3 && in_set == 3 && nodes[2].why == NULL && nodes[1].offset == 0);
    CHECK_TEXT(bytes_of(nodes[1].why), BYTES("absent"));
    CHECK(nodes[1].since_ms > 0 && nodes[1].since_ms <= loop_now_ms());

    store_keep(world->store, (const struct bytes[]){bytes_of(kept->names[1]), bytes_of(kept->names[0])}, 2, 0,
               2, STORE_SYNCS_ANY);
    nodes = store_nodes(world->store, &seen, &in_set);
    CHECK(nodes[0].why == NULL); /* as the primary it is not away, and may be anew */

    name_nodes(kept, 1, 2); /* fewer than copies */
    probe = probe_once(world, &script_SET, "k", "v");
    CHECK(probe.outcome == STORE_NOT_SENT && store_call_was_not_kept(&probe.call));
    CHECK_TEXT(bytes_of(redis_ask(&kept->primary, "GET k")), BYTES("before"));

    name_nodes(kept, 1, 1);
    probe = probe_once(world, &script_SET, "k", "v");
    CHECK_INT(probe.outcome, STORE_DONE);
    redis_run(&kept->replicas[0], NULL); /* so that it can be stopped */
}

TEST_KEPT(what_keeps_it_unknown_is_named)
{
    const char *why;

    wait_until_kept(kept, 2);
    redis_does(&kept->primary, "ACL SETUSER default -wait");
    WAIT(world, (why = store_not_kept(world->store)) != NULL && strstr(why, "let this user") != NULL, 10000);
    redis_does(&kept->primary, "ACL SETUSER default +wait -role");
    WAIT(world, store_not_kept(world->store) == NULL, 10000);
    probe_once(world, &script_SET, "k", "v");
    CHECK_TEXT(bytes_of(store_not_ready(world->store, &why)), BYTES("store-refused"));
    CHECK(strstr(why, "NOPERM") != NULL);
}

TEST_KEPT(an_answer_of_another_stream_is_unknown)
{
    struct probe probe = {0};
    char stream[STORE_RUN_ID_LEN + 1];

    wait_until_kept(kept, 2);
    snprintf(stream, sizeof(stream), "%s", world->store->link.stream);
    freeze(&kept->replicas[0]);
    probe_start(world, &probe, &script_SET, "k", "v");
    uint64_t till_ms = loop_now_ms() + TIMEOUT_MS / 3;
    while (loop_now_ms() < till_ms)
        loop_turn(world->loop, 2);
    CHECK_INT(probe.ends, 0);
    redis_does(&kept->primary, "REPLICAOF 127.0.0.1 1");
    redis_does(&kept->primary, "REPLICAOF NO ONE");
    kill(kept->replicas[0].pid, SIGCONT); /* and it acknowledges all of the new stream */
    WAIT(world, probe.ends > 0, 10000);
    CHECK_INT(probe.outcome, STORE_UNKNOWN);
    WAIT(world, store_link_stands(world->store), 10000);
    CHECK_INT(store_link_number(world->store), 2);
    CHECK(strcmp(stream, world->store->link.stream) != 0);
    WAIT(world, store_not_kept(world->store) == NULL, 10000);
    CHECK_INT(asked(world, &script_SET), STORE_DONE);
}

TEST_KEPT(who_is_at_once_waits_for_nobody)
{
    struct probe probe = {.call.at_once = true};

    wait_until_kept(kept, 3);
    freeze(&kept->replicas[1]);
    probe_start(world, &probe, &script_SET, "k", "v");
    WAIT(world, probe.ends > 0, TIMEOUT_MS / 2);
    CHECK_INT(probe.outcome, STORE_DONE);
    kill(kept->replicas[1].pid, SIGCONT);
    redis_kill(&kept->replicas[1]);
    WAIT(world, store_not_kept(world->store) != NULL, 10000);
    probe = (struct probe){.call.at_once = true};
    probe_start(world, &probe, &script_SET, "k", "v");
    WAIT(world, probe.ends > 0, TIMEOUT_MS / 2);
    CHECK_INT(probe.outcome, STORE_DONE);
    redis_run(&kept->replicas[1], NULL);
}

TEST_KEPT(a_store_that_ends_while_answers_wait_says_that_they_are_unknown)
{
    struct probe probe = {0};

    wait_until_kept(kept, 3);
    freeze(&kept->replicas[1]);
    probe_start(world, &probe, &script_SET, "k", "v");
    WAIT(world, !STAILQ_EMPTY(&world->store->keep->named), 2000);
    store_close(world->store);
    CHECK(probe.ends == 1 && probe.outcome == STORE_UNKNOWN);
    kill(kept->replicas[1].pid, SIGCONT);
    world->store = store_open(world->loop, &(struct store_options){.url = kept->primary.url,
                                                                   .timeout_ms = TIMEOUT_MS,
                                                                   .library = &test_library});
}

static uint64_t synced(struct kept_world *kept)
{
    uint64_t looked_us;
    int64_t syncs;

    WAIT(&kept->world, (syncs = store_keep_syncs(kept->world.store, &looked_us)) >= 0, 10000);
    return (uint64_t)syncs;
}

TEST_KEPT(what_is_acknowledged_after_another_connect_counts_when_the_nodes_were_asked_again)
{
    struct bytes nodes[] = {bytes_of(kept->names[0]), bytes_of(kept->names[1])};
    struct probe probe = {0};
    int64_t before;

    wait_until_kept(kept, 2);
    before = (int64_t)synced(kept);
    store_keep(world->store, nodes, 2, 0, 2, before);
    CHECK_INT(asked(world, &script_SET), STORE_DONE);
    redis_does(&kept->replicas[1], "REPLICAOF NO ONE"); /* any of them, be it not in the set */
    redis_does(&kept->replicas[1], "SET other content");
    redis_does(&kept->replicas[1], textf("REPLICAOF 127.0.0.1 %u", kept->primary.port));
    WAIT(world, (int64_t)synced(kept) > before, 10000);
    probe_start(world, &probe, &script_SET, "k", "w");
    WAIT(world, probe.ends > 0, 10000);
    CHECK_INT(probe.outcome, STORE_UNKNOWN);
    store_keep(world->store, nodes, 2, 0, 2, (int64_t)synced(kept));
    CHECK_INT(asked(world, &script_SET), STORE_DONE);
}

static const char *said_by(struct kept_world *kept, struct store_probe *node, const char *wanted)
{
    uint64_t till_ms = loop_now_ms() + 5000;

    for (;;) {
        const char *why = store_probe_answer(node)->why;

        if ((why == NULL ? wanted == NULL : wanted != NULL && strcmp(why, wanted) == 0) ||
            loop_now_ms() > till_ms)
            return why;
        store_probe_ask(node);
        loop_turn(kept->world.loop, 5);
    }
}

TEST_KEPT(a_node_says_itself_whether_its_disk_has_what_it_acknowledges)
{
    static const char *const cases[][3] = {
        {"CONFIG SET replica-priority 0", "priority-0", "CONFIG SET replica-priority 100"},
        {"CONFIG SET appendonly no", "no-aof", "CONFIG SET appendonly yes"},
        {"CONFIG SET rdb-key-save-delay 500000", "rewriting", "CONFIG SET rdb-key-save-delay 0"},
        {"REPLICAOF NO ONE", "not-a-replica", NULL},
    };
    struct store_probe *node = store_probe_open(world->store, kept->names[1]);

    for (unsigned i = 0; i < FEW; i++) /* which a rewrite takes its time for */
        redis_does(&kept->primary, i % 2 == 0 ? "SET a 1" : "SET b 2");
    CHECK(said_by(kept, node, NULL) == NULL);
    CHECK(strlen(store_probe_answer(node)->run_id) == STORE_RUN_ID_LEN &&
          store_probe_answer(node)->asked_us > 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        redis_does(&kept->replicas[0], cases[i][0]);
        if (strcmp(cases[i][1], "rewriting") == 0)
            redis_ask(&kept->replicas[0], "BGREWRITEAOF");
        CHECK_TEXT(bytes_of(said_by(kept, node, cases[i][1])), bytes_of(cases[i][1]));
        if (cases[i][2] != NULL) {
            redis_does(&kept->replicas[0], cases[i][2]);
            CHECK(said_by(kept, node, NULL) == NULL); /* before that a rewrite is the first after no-aof */
        }
    }
    store_probe_close(node);
    node = store_probe_open(world->store, "127.0.0.1:1");
    CHECK_TEXT(bytes_of(said_by(kept, node, "unreachable")), BYTES("unreachable"));
    store_probe_close(node);
    for (unsigned i = 0; i < 2; i++) {
        redis_does(&kept->replicas[1],
                   i == 0 ? "CONFIG SET replica-announce-port 7"
                          : "CONFIG SET replica-announce-port 0 replica-announce-ip 127.0.0.9");
        node = store_probe_open(world->store, kept->names[2]);
        CHECK_TEXT(bytes_of(said_by(kept, node, "announces-another")), BYTES("announces-another"));
        store_probe_close(node);
    }
}

TEST_STORE(with_one_node_redis_is_asked_nothing_more, 2000)
{
    const char *stats;

    store_keep(world->store, &BYTES("127.0.0.1:6379"), 1, 0, 1, STORE_SYNCS_ANY);
    for (unsigned i = 0; i < FEW; i++)
        CHECK_INT(probe_once(world, &script_ECHO, "k", "v").outcome, STORE_DONE);
    stats = redis_ask(redis, "INFO commandstats");
    CHECK(strstr(stats, "cmdstat_fcall:") != NULL);
    for (unsigned i = 0; i < 3; i++)
        CHECK(strstr(stats, ((const char *[]){"cmdstat_wait:", "cmdstat_role:", "cmdstat_publish:"})[i]) ==
              NULL);
}

CHECK_MAIN_AT_ONCE(3)
