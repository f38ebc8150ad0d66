/* test_quorum.c - leases on three and five Redis that know nothing of each other: tokens over wipes,
 * restarts and pauses, split votes, quarantine, what is told of a hold. */
#include "lease/quorum/quorum.h"

#include <sys/syscall.h>

#include "scripts.h"
#include "tests/component/store_world.h"
#include "tests/unit/drawing.h"

enum { TIMEOUT_MS = 600, MAX_TTL_MS = 300, TTL_MS = 250, WAIT_MS = 5000 };

static const char *const in_memory[] = {"--appendonly", "no", NULL};

/* A service: links and a quorum of its own. */
struct side {
    struct store *stores[QUORUM_NODES_MAX];
    struct quorum *quorum;
};

struct nodes {
    unsigned count;
    struct redis redis[QUORUM_NODES_MAX];
    struct loop *loop;
    struct side sides[2];
    int64_t token; /* the highest granted */
};

/* An operation, and what came of it. */
struct asked {
    struct quorum_call call;
    struct quorum_asker own; /* of the call, while the test stands in between */
    enum problem problem;
    unsigned ends;
    void (*between)(struct asked *asked); /* before the end of the next round is handled */
    struct nodes *nodes;
};

static void create_all(struct nodes *nodes)
{
    static const char make[] =
        "HSET pawl:{node} id AAAAAAAAAAAAAAAAAAAAAAAA/%u/%u run %s highest 0 epoch 0 healed \"\" "
        "max_ttl %u";

    for (unsigned i = 0; i < nodes->count; i++) {
        char run[STORE_RUN_ID_LEN + 1];

        snprintf(run, sizeof(run), "%s", strstr(redis_ask(&nodes->redis[i], "INFO server"), "run_id:") + 7);
        redis_askf(&nodes->redis[i], make, i + 1, nodes->count, run, MAX_TTL_MS);
    }
}

static bool is_settled(const struct nodes *nodes, unsigned well)
{
    for (unsigned s = 0; s < 2; s++)
        for (unsigned i = 0; i < nodes->count; i++)
            if ((well >> i & 1) != (quorum_node_state(nodes->sides[s].quorum, i) == NODE_WELL))
                return false;
    return true;
}

static void wait_until_well(struct nodes *nodes, unsigned well)
{
    WAIT(nodes, is_settled(nodes, well), WAIT_MS);
}

static void nodes_open(struct nodes *nodes, unsigned count)
{
    nodes->count = count;
    nodes->loop = loop_new();
    for (unsigned i = 0; i < count; i++)
        redis_start(&nodes->redis[i], in_memory);
    create_all(nodes);
    for (unsigned s = 0; s < 2; s++) {
        struct side *side = &nodes->sides[s];

        for (unsigned i = 0; i < count; i++)
            side->stores[i] = store_open(nodes->loop, &(struct store_options){.url = nodes->redis[i].url,
                                                                              .timeout_ms = TIMEOUT_MS,
                                                                              .allow_unsafe = true,
                                                                              .library = &node_library});
        side->quorum = quorum_new(&(struct quorum_options){.loop = nodes->loop,
                                                           .stores = side->stores,
                                                           .count = count,
                                                           .timeout_ms = TIMEOUT_MS,
                                                           .heals = true});
    }
    wait_until_well(nodes, (1U << count) - 1);
}

static void nodes_close(struct nodes *nodes)
{
    for (unsigned s = 0; s < 2; s++) {
        quorum_stop(nodes->sides[s].quorum);
        for (unsigned i = 0; i < nodes->count; i++)
            store_close(nodes->sides[s].stores[i]);
        quorum_free(nodes->sides[s].quorum);
    }
    loop_free(nodes->loop);
    for (unsigned i = 0; i < nodes->count; i++)
        redis_stop(&nodes->redis[i]);
}

#define TEST_NODES(sentence, count)                                                                          \
    TEST_WITH(sentence, struct nodes, nodes, nodes_open(nodes, count), nodes_close(nodes))

static void call_done(struct quorum_call *call, enum problem problem)
{
    struct asked *asked = container_of(call, struct asked, call);

    asked->problem = problem;
    asked->ends++;
}

static void between_ended(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct asked *asked = container_of(asker, struct asked, call.asker);

    *asker = asked->own;
    asked->between(asked);
    asker->ended(asker, round);
}

/* Before the end of the round that is under way is handled. */
static void stand_between(struct asked *asked, void (*between)(struct asked *))
{
    asked->own = asked->call.asker;
    asked->between = between;
    asked->call.asker.ended = between_ended;
}

static void ask(struct nodes *nodes, unsigned side, struct asked *asked,
                enum problem (*what)(struct quorum_call *), const char *lease_id)
{
    *asked = (struct asked){.nodes = nodes};
    asked->call.quorum = nodes->sides[side].quorum;
    asked->call.name = BYTES("a");
    asked->call.lease_id = bytes_of(lease_id);
    asked->call.about = BYTES("{}");
    asked->call.ttl_ms = what == quorum_acquire ? TTL_MS : 0;
    asked->call.done = call_done;
    asked->problem = what(&asked->call);
    asked->ends = asked->problem != PROBLEM_NONE;
}

static enum problem finish(struct asked *asked)
{
    WAIT(asked->nodes, asked->ends > 0, WAIT_MS);
    CHECK_INT(asked->ends, 1);
    quorum_call_free(&asked->call);
    return asked->problem;
}

static enum problem once(struct nodes *nodes, enum problem (*what)(struct quorum_call *),
                         const char *lease_id, struct asked *asked)
{
    ask(nodes, 0, asked, what, lease_id);
    return finish(asked);
}

/* Its token must be above all before. */
static bool is_granted(struct nodes *nodes, struct asked *asked)
{
    if (finish(asked) != PROBLEM_NONE)
        return false;
    CHECK(asked->call.token > nodes->token);
    nodes->token = asked->call.token;
    return true;
}

static bool grant(struct nodes *nodes, unsigned side, const char *lease_id)
{
    struct asked asked;

    ask(nodes, side, &asked, quorum_acquire, lease_id);
    return is_granted(nodes, &asked);
}

/* As often as it takes, until a hold of before is over. */
static void grant_and_release(struct nodes *nodes, unsigned side)
{
    struct patience patience = patience_of(WAIT_MS);
    struct asked asked;

    while (!grant(nodes, side, "mine"))
        if (!CHECK(patience_lasts(&patience)))
            return;
    ask(nodes, side, &asked, quorum_release, "mine");
    CHECK_INT(finish(&asked), PROBLEM_NONE);
}

static void redis_signal(struct redis *redis, int number)
{
    kill(redis->pid, number);
}

static void redis_restart(struct redis *redis)
{
    redis_kill(redis);
    redis_run(redis, in_memory);
}

/* -- one lease */

TEST_NODES(a_hold_excludes_others_is_told_again_renewed_seen_and_given_back_also_twice, 3)
{
    struct asked asked;
    int64_t token;

    CHECK_INT(once(nodes, quorum_look, "", &asked), PROBLEM_NONE);
    CHECK_INT(asked.call.number, 0);
    CHECK_INT(once(nodes, quorum_acquire, "one", &asked), PROBLEM_NONE);
    CHECK(!asked.call.is_replay);
    CHECK(asked.call.expires_in_ms <= TTL_MS - TTL_MS / 100 - 1);
    token = asked.call.token;
    CHECK_INT(once(nodes, quorum_acquire, "two", &asked), PROBLEM_LEASE_HELD);
    CHECK_INT(asked.call.token, token);
    CHECK(asked.call.expires_in_ms > 0 && asked.call.expires_in_ms < TTL_MS);
    CHECK_INT(once(nodes, quorum_acquire, "one", &asked), PROBLEM_NONE);
    CHECK(asked.call.is_replay && asked.call.token == token);
    CHECK_INT(once(nodes, quorum_renew, "one", &asked), PROBLEM_NONE);
    CHECK(asked.call.token == token && asked.call.hold_ttl_ms == TTL_MS);
    CHECK_INT(once(nodes, quorum_renew, "two", &asked), PROBLEM_LEASE_LOST);
    CHECK_INT(once(nodes, quorum_look, "", &asked), PROBLEM_NONE);
    CHECK(asked.call.number == token && asked.call.token == token && asked.call.hold[0] != '\0');
    CHECK_INT(once(nodes, quorum_release, "two", &asked), PROBLEM_LEASE_LOST);
    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(once(nodes, quorum_release, "one", &asked), PROBLEM_NONE);
    CHECK_INT(once(nodes, quorum_renew, "one", &asked), PROBLEM_LEASE_LOST);
    CHECK_INT(once(nodes, quorum_acquire, "two", &asked), PROBLEM_NONE);
    CHECK(asked.call.token > token);
    CHECK_INT(once(nodes, quorum_look, "", &asked), PROBLEM_NONE);
    CHECK(asked.call.hold[0] != '\0');
}

static void stop_two_nodes(struct asked *asked)
{
    redis_signal(&asked->nodes->redis[1], SIGSTOP);
    redis_signal(&asked->nodes->redis[2], SIGSTOP);
}

TEST_NODES(where_a_commit_may_have_reached_a_majority_nobody_knows_and_a_lock_alone_grants_nothing, 3)
{
    struct asked asked;

    ask(nodes, 0, &asked, quorum_acquire, "one");
    stand_between(&asked, stop_two_nodes);
    CHECK_INT(finish(&asked), PROBLEM_OUTCOME_UNKNOWN);
    ask(nodes, 1, &asked, quorum_acquire, "two");
    CHECK_INT(finish(&asked), PROBLEM_STORE_UNAVAILABLE);
    redis_signal(&nodes->redis[1], SIGCONT);
    redis_signal(&nodes->redis[2], SIGCONT);
    wait_until_well(nodes, 7);
    grant_and_release(nodes, 0);
}

static void fill_two_nodes(struct asked *asked)
{
    redis_does(&asked->nodes->redis[1], "CONFIG SET maxmemory 1");
    redis_does(&asked->nodes->redis[2], "CONFIG SET maxmemory 1");
}

TEST_NODES(most_nodes_that_answer_with_an_error_say_nothing_of_who_holds, 3)
{
    struct asked asked;

    ask(nodes, 0, &asked, quorum_acquire, "one");
    stand_between(&asked, fill_two_nodes);
    CHECK_INT(finish(&asked), PROBLEM_STORE_UNAVAILABLE);
    CHECK_INT(once(nodes, quorum_acquire, "two", &asked), PROBLEM_STORE_UNAVAILABLE);
}

static void end_locks(struct asked *asked)
{
    redis_ask(&asked->nodes->redis[0], "HINCRBY pawl:{node} epoch 1");
    redis_ask(&asked->nodes->redis[2], "HINCRBY pawl:{node} epoch 1");
}

TEST_NODES(what_a_barrier_has_ended_is_tried_again, 3)
{
    struct asked asked;

    ask(nodes, 0, &asked, quorum_acquire, "one");
    stand_between(&asked, end_locks);
    CHECK(is_granted(nodes, &asked));
    CHECK_INT(asked.call.walked[ACQUIRE_COMMITTING], 1U << ACQUIRE_PAUSING);
}

static void wait_a_while(struct asked *asked)
{
    (void)asked;
    poll(NULL, 0, 50);
}

static void commit_then(struct quorum_asker *asker, const struct quorum_round *round)
{
    struct asked *asked = container_of(asker, struct asked, call.asker);

    *asker = asked->own;
    asker->ended(asker, round); /* the commit is under way */
    stand_between(asked, asked->between);
}

/* Before the end of the commit is handled. */
static void stand_behind_the_commit(struct asked *asked, void (*between)(struct asked *))
{
    stand_between(asked, between);
    asked->call.asker.ended = commit_then;
}

TEST_NODES(the_time_that_the_answers_took_is_not_told_to_the_holder, 3)
{
    struct asked asked;

    ask(nodes, 0, &asked, quorum_acquire, "one");
    stand_behind_the_commit(&asked, wait_a_while);
    CHECK(is_granted(nodes, &asked));
    CHECK(asked.call.expires_in_ms <= TTL_MS - TTL_MS / 100 - 50);
    ask(nodes, 0, &asked, quorum_renew, "one");
    stand_between(&asked, wait_a_while);
    CHECK_INT(finish(&asked), PROBLEM_NONE);
    CHECK(asked.call.expires_in_ms <= TTL_MS - TTL_MS / 100 - 50);
}

static time_t suspended_s;

/* Of the whole program: as if its machine had been suspended. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, clock, now);

    if (clock == CLOCK_BOOTTIME)
        now->tv_sec += suspended_s;
    return status;
}

static void suspend_the_machine(struct asked *asked)
{
    (void)asked;
    suspended_s += 60;
}

TEST_NODES(nothing_is_left_of_a_hold_when_the_machine_was_suspended_before_it_was_told, 3)
{
    struct asked asked;

    ask(nodes, 0, &asked, quorum_acquire, "one");
    stand_behind_the_commit(&asked, suspend_the_machine);
    CHECK_INT(finish(&asked), PROBLEM_OUTCOME_UNKNOWN);
    ask(nodes, 0, &asked, quorum_renew, "one");
    stand_between(&asked, suspend_the_machine);
    CHECK_INT(finish(&asked), PROBLEM_OUTCOME_UNKNOWN);
}

static bool has_number(struct redis *redis, const char *field, long number)
{
    return strtol(redis_askf(redis, "HGET pawl:{node}:a %s", field), NULL, 10) == number;
}

/* How often this script has run since its SLOWLOG was emptied. */
static long scripts_run(struct redis *redis, const char *name)
{
    const char *found = redis_askf(
        redis,
        "EVAL \"local n = 0 for _, one in ipairs(redis.call('SLOWLOG', 'GET', '100')) do "
        "n = n + (one[4][2] and string.find(one[4][2], '_%s') and 1 or 0) end return n\" 0",
        name);

    return strtol(found + 1, NULL, 10);
}

TEST_NODES(a_node_whose_lock_came_too_late_gets_no_commit_and_the_hold_all_the_same, 3)
{
    struct redis *late = &nodes->redis[2];

    redis_does(late, "CONFIG SET slowlog-log-slower-than 0");
    redis_does(late, "SLOWLOG RESET");
    redis_signal(late, SIGSTOP);
    CHECK(grant(nodes, 0, "one"));
    redis_signal(late, SIGCONT);
    WAIT(nodes, has_number(late, "token", 1), WAIT_MS);
    CHECK_INT(scripts_run(late, "lock"), 1);
    CHECK_INT(scripts_run(late, "commit"), 0);
}

/* Whether it does; a machine that stands still for a ttl ends the hold. */
static bool outlives_all(struct nodes *nodes, bool may_end)
{
    struct asked asked;
    uint64_t renewed_ms = loop_now_ms();

    CHECK(grant(nodes, 0, "one"));
    for (unsigned i = 0; i < nodes->count; i++)
        redis_ask(&nodes->redis[i], "HSET pawl:{node} highest 9"); /* another lease has */
    for (unsigned i = 0; i < nodes->count; i++) {
        uint64_t until_ms = loop_now_ms() + WAIT_MS;

        redis_restart(&nodes->redis[i]);
        do {
            enum problem problem = once(nodes, quorum_renew, "one", &asked);

            if (problem != PROBLEM_NONE && may_end && loop_now_ms() >= renewed_ms + TTL_MS)
                return false;
            if (!CHECK_INT(problem, PROBLEM_NONE))
                return true;
            renewed_ms = loop_now_ms();
            waited_turn(nodes->loop, 20);
        } while (loop_now_ms() < until_ms &&
                 (!is_settled(nodes, 7) || !has_number(&nodes->redis[i], "token", 1)));
    }
    CHECK_INT(once(nodes, quorum_renew, "one", &asked), PROBLEM_NONE);
    return true;
}

TEST(a_renewal_brings_the_hold_to_a_node_that_has_lost_it_and_so_it_outlives_all_of_them)
{
    bool done = false;

    for (unsigned tries = 3; tries > 0 && !done; tries--) {
        struct nodes nodes = {0};

        nodes_open(&nodes, 3);
        done = outlives_all(&nodes, tries > 1);
        nodes_close(&nodes);
    }
}

TEST_NODES(a_renewal_needs_a_majority_of_one_attempt_and_brings_the_hold_to_the_others, 3)
{
    struct asked asked;

    CHECK(grant(nodes, 0, "one"));
    for (unsigned i = 0; i < 3; i++) /* who did not vote in time gets it later */
        WAIT(nodes, has_number(&nodes->redis[i], "token", 1), WAIT_MS);
    redis_ask(&nodes->redis[0], "HSET pawl:{node}:a attempt another-one1");
    CHECK_INT(once(nodes, quorum_renew, "one", &asked), PROBLEM_NONE);
    WAIT(nodes, strcmp(redis_ask(&nodes->redis[0], "HGET pawl:{node}:a attempt"), asked.call.hold) == 0,
         WAIT_MS);
    redis_ask(&nodes->redis[0], "HSET pawl:{node}:a attempt another-one1");
    redis_ask(&nodes->redis[1], "HSET pawl:{node}:a attempt another-one2");
    CHECK_INT(once(nodes, quorum_renew, "one", &asked), PROBLEM_OUTCOME_UNKNOWN);
}

/* The vote of an attempt of this lease_id, for ever. */
static void leave_a_vote(struct redis *redis, const char *lease_id)
{
    redis_ask(redis, "HSET pawl:{node} highest 1");
    redis_askf(redis,
               "HSET pawl:{node}:a attempt attempt-of-%s lease_id %s number 1 token 1 ttl 99999999999999 "
               "until 99999999999999 about {} who \"\" healed \"\"",
               lease_id, lease_id);
}

/* On a busy machine a node of two may be late. */
static enum problem once_of_two(struct nodes *nodes, const char *lease_id, struct asked *asked)
{
    enum problem problem;

    do
        problem = once(nodes, quorum_acquire, lease_id, asked);
    while (problem == PROBLEM_STORE_UNAVAILABLE);
    return problem;
}

TEST_NODES(what_an_earlier_attempt_has_left_is_given_back_if_most_nodes_say_that_they_have_not_got_it, 3)
{
    struct asked asked;

    leave_a_vote(&nodes->redis[2], "one");
    redis_kill(&nodes->redis[0]); /* who knows whether it has it, too? */
    wait_until_well(nodes, 6);
    CHECK_INT(once_of_two(nodes, "two", &asked), PROBLEM_LEASE_HELD);
    CHECK_INT(asked.call.token, 0); /* no majority was granted it */
    CHECK_INT(once_of_two(nodes, "one", &asked), PROBLEM_LEASE_HELD);
    CHECK(has_number(&nodes->redis[2], "until", 99999999999999));
    redis_run(&nodes->redis[0], in_memory);
    wait_until_well(nodes, 7);
    leave_a_vote(&nodes->redis[1], "two");
    CHECK(grant(nodes, 0, "one"));
}

TEST_NODES(a_number_that_one_node_has_is_at_a_majority_before_it_is_told, 3)
{
    struct asked asked;
    unsigned known = 0;

    redis_ask(&nodes->redis[0], "HSET pawl:{node}:a number 9 healed \"\"");
    redis_ask(&nodes->redis[0], "HSET pawl:{node} highest 9");
    CHECK_INT(once(nodes, quorum_look, "", &asked), PROBLEM_NONE);
    CHECK_INT(asked.call.number, 9);
    for (unsigned i = 0; i < 3; i++)
        known += has_number(&nodes->redis[i], "number", 9);
    CHECK(known >= 2);
    CHECK(grant(nodes, 0, "one"));
    CHECK_INT(nodes->token, 10);
}

TEST_NODES(while_a_node_is_gone_two_say_all_that_three_do, 3)
{
    struct asked asked;

    redis_kill(&nodes->redis[1]);
    wait_until_well(nodes, 5);
    CHECK(grant(nodes, 0, "one"));
    CHECK_INT(once(nodes, quorum_acquire, "two", &asked), PROBLEM_LEASE_HELD);
    CHECK_INT(asked.call.token, nodes->token);
    CHECK_INT(once(nodes, quorum_renew, "one", &asked), PROBLEM_NONE);
    CHECK_INT(once(nodes, quorum_renew, "two", &asked), PROBLEM_LEASE_LOST);
    CHECK_INT(once(nodes, quorum_release, "one", &asked), PROBLEM_NONE);
    CHECK_INT(once(nodes, quorum_look, "", &asked), PROBLEM_NONE);
    CHECK(asked.call.hold[0] == '\0');
    redis_run(&nodes->redis[1], in_memory);
}

/* -- accidents */

TEST_NODES(tokens_rise_while_one_node_at_a_time_is_wiped_killed_or_stopped, 3)
{
    for (unsigned i = 0; i < 9; i++) {
        struct redis *redis = &nodes->redis[i % 3];

        grant_and_release(nodes, 0);
        if (i / 3 == 0)
            CHECK_TEXT(bytes_of(redis_ask(redis, "FLUSHALL")), BYTES("+OK"));
        else if (i / 3 == 1)
            redis_restart(redis);
        else
            redis_signal(redis, SIGSTOP);
        grant_and_release(nodes, 1);
        grant_and_release(nodes, 0);
        redis_signal(redis, SIGCONT);
        wait_until_well(nodes, 7);
        grant_and_release(nodes, 1);
    }
}

TEST_NODES(of_five_nodes_two_may_be_empty_at_once_and_do_not_heal_each_other, 5)
{
    for (unsigned i = 0; i < 5; i++) {
        grant_and_release(nodes, 0);
        redis_does(&nodes->redis[i], "FLUSHALL");
        redis_does(&nodes->redis[(i + 1) % 5], "FLUSHALL");
        grant_and_release(nodes, 1);
        wait_until_well(nodes, 31);
        grant_and_release(nodes, 0);
    }
}

TEST_NODES(a_node_is_in_quarantine_for_the_longest_ttl_and_when_most_are_nobody_heals_them, 3)
{
    struct asked asked;
    uint64_t began_ms;

    CHECK(grant(nodes, 0, "one"));
    began_ms = loop_now_ms();
    redis_does(&nodes->redis[0], "FLUSHALL");
    CHECK_INT(once(nodes, quorum_look, "", &asked), PROBLEM_NONE);
    CHECK_INT(quorum_node_state(nodes->sides[0].quorum, 0), NODE_ILL);
    WAIT(nodes, quorum_node_state(nodes->sides[0].quorum, 0) == NODE_WELL, WAIT_MS);
    CHECK(loop_now_ms() - began_ms >= MAX_TTL_MS);
    redis_does(&nodes->redis[0], "FLUSHALL");
    redis_restart(&nodes->redis[1]);
    ask(nodes, 0, &asked, quorum_look, "");
    finish(&asked);
    wait_until_well(nodes, 4);
    for (uint64_t until_ms = loop_now_ms() + 3 * (uint64_t)MAX_TTL_MS; loop_now_ms() < until_ms;)
        waited_turn(nodes->loop, 10);
    CHECK(is_settled(nodes, 4));
    CHECK_INT(once(nodes, quorum_acquire, "two", &asked), PROBLEM_STORE_NOT_OURS);
}

TEST_NODES(two_addresses_of_one_redis_are_one_node, 3)
{
    struct store *stores[3];
    struct quorum *quorum;

    for (unsigned i = 0; i < 3; i++)
        stores[i] = store_open(nodes->loop, &(struct store_options){.url = nodes->redis[i == 2 ? 1 : i].url,
                                                                    .timeout_ms = TIMEOUT_MS,
                                                                    .allow_unsafe = true,
                                                                    .library = &node_library});
    quorum = quorum_new(&(struct quorum_options){
        .loop = nodes->loop, .stores = stores, .count = 3, .timeout_ms = TIMEOUT_MS});
    WAIT(nodes, quorum_node_state(quorum, 2) == NODE_OTHER && quorum_node_state(quorum, 1) == NODE_WELL,
         WAIT_MS);
    quorum_stop(quorum);
    for (unsigned i = 0; i < 3; i++)
        store_close(stores[i]);
    quorum_free(quorum);
}

/* -- split votes, and the drawing */

static bool acquire_allows(unsigned from, unsigned to)
{
    static const unsigned ways[] = {1U << ACQUIRE_COMMITTING | 1U << ACQUIRE_PAUSING, 1U << ACQUIRE_PAUSING,
                                    1U << ACQUIRE_LOCKING};

    return ways[from] >> to & 1;
}

TEST_NODES(of_many_that_ask_at_once_one_is_granted_and_acquires_go_as_they_are_drawn, 3)
{
    static const char *const names[] = {"LOCKING", "COMMITTING", "PAUSING"};
    static struct asked asked[8];
    unsigned gone[ACQUIRE_STATES] = {0};
    char ids[8][4];

    for (unsigned round = 0; round < 10; round++) {
        unsigned granted = 0;

        for (unsigned i = 0; i < 8; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%u", i);
            ask(nodes, i % 2, &asked[i], quorum_acquire, ids[i]);
            if (round == 0 && i == 0)
                stand_between(&asked[i], end_locks);
        }
        for (unsigned i = 0; i < 8; i++) {
            granted += is_granted(nodes, &asked[i]);
            CHECK(asked[i].problem == PROBLEM_NONE || asked[i].problem == PROBLEM_LEASE_HELD);
            for (unsigned s = 0; s < ACQUIRE_STATES; s++)
                gone[s] |= asked[i].call.walked[s];
        }
        CHECK(granted <= 1 + TIMEOUT_MS / TTL_MS);
        grant_and_release(nodes, 0);
    }
    CHECK_INT(drawing_check("lease/quorum/operations.c", names, ACQUIRE_STATES, acquire_allows, gone), 4);
}

CHECK_MAIN_AT_ONCE(3)
