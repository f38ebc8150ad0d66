/* test_store_faults.c - a Redis that stops, dies, refuses, or talks nonsense: no call ends twice, wrongly, or
 * never. */
#include "tests/component/store_relay.h"
#include "tests/unit/drawing.h"

enum { SHORT_MS = 150, LARGE = 1024 * 1024, LARGE_CALLS = 60, CUT_CALLS = 40 };

/* Every arrow that a link of these tests has gone: f to t is bit t of element f. */
static unsigned walked[LINK_STATES];

static void walked_add(const struct world *world)
{
    for (unsigned i = 0; i < LINK_STATES; i++)
        walked[i] |= world->store->link.walked[i];
}

TEST_STORE(a_stopped_redis_makes_calls_unknown_after_the_deadline_and_comes_back_by_itself, SHORT_MS)
{
    struct probe first = {0}, later = {0};

    kill(redis->pid, SIGSTOP);
    uint64_t began_ms = loop_now_ms(), waited_before_ms = waited_ms();
    probe_start(world, &first, &script_SET, "first", "v");
    WAIT(world, first.ends == 1, 2000);
    CHECK_INT(first.outcome, STORE_UNKNOWN);
    CHECK(loop_now_ms() - began_ms >= SHORT_MS && waited_ms() - waited_before_ms < SHORT_MS + 100);
    probe_start(world, &later, &script_SET, "later", "v");
    CHECK_INT(later.ends, 0);
    loop_turn(world->loop, 1); /* in the next turn: nothing is waited for */
    CHECK(later.ends == 1 && later.outcome == STORE_NOT_SENT);
    WAIT(world, world->store->link.state == LINK_GREETING, 2000);
    WAIT(world, world->store->link.state == LINK_WAITING, 2000); /* a greeting has its deadline too */
    kill(redis->pid, SIGCONT);
    WAIT(world, world_ready(world), 2000);
    CHECK_INT(probe_once(world, &script_SET, "after", "v").outcome, STORE_DONE);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS later")), BYTES(":0"));
    CHECK_INT(store_counts(world->store).reconnects, 1);
    walked_add(world);
}

TEST_STORE(a_late_call_takes_the_younger_ones_on_its_link_along, 4 * SHORT_MS)
{
    bool came_behind = false;

    for (unsigned tries = 0; tries < 3 && !came_behind; tries++) {
        struct probe old = {0}, young = {0};

        kill(redis->pid, SIGSTOP);
        probe_start(world, &old, &script_SET, "old", "v");
        uint64_t later_ms = loop_now_ms() + SHORT_MS / 4; /* long before the old one's time is up */
        WAIT(world, loop_now_ms() >= later_ms, 2000);
        came_behind = old.ends == 0; /* unless the machine stood still */
        if (came_behind) {
            probe_start(world, &young, &script_SET, "young", "v");
            WAIT(world, old.ends == 1, 2000);
            CHECK(young.ends == 1 && young.outcome == STORE_UNKNOWN && old.outcome == STORE_UNKNOWN);
        }
        kill(redis->pid, SIGCONT);
        if (!came_behind)
            WAIT(world, world_ready(world), 2000);
    }
    CHECK(came_behind);
}

TEST_STORE(a_read_waits_while_others_are_in_flight_and_was_not_sent_when_they_are_late, 4 * SHORT_MS)
{
    enum { READS = HEAVY_LEAST + 3 };
    struct store_script reading = script_ECHO;
    struct probe reads[READS] = {0}, write = {0};

    reading.reads = true;
    for (unsigned round = 0; round < 2; round++) {
        if (round == 1)
            kill(redis->pid, SIGSTOP);
        world->store->link.heavy_may = HEAVY_LEAST;
        for (unsigned i = 0; i < READS; i++)
            probe_start(world, &reads[i], &reading, "k", "v");
        probe_start(world, &write, &script_SET, "k", "v");
        WAIT(world, world->open == 0, 2000);
        CHECK_INT(write.outcome, round == 0 ? STORE_DONE : STORE_UNKNOWN);
        for (unsigned i = 0; i < READS; i++)
            CHECK_INT(reads[i].outcome, round == 0        ? STORE_DONE
                                        : i < HEAVY_LEAST ? STORE_UNKNOWN
                                                          : STORE_NOT_SENT);
    }
    CHECK(world->store->link.heavy == 0 && world->store->link.heavy_may == HEAVY_LEAST);
    kill(redis->pid, SIGCONT);
    WAIT(world, world_ready(world), 2000);
}

TEST_STORE(what_carries_much_waits_too_and_nothing_of_its_key_overtakes_it, 5000)
{
    enum { WRITES = HEAVY_LEAST + 1, READS = 200 };
    static char much[LARGE];
    static struct probe reads[READS];
    struct store_script reading = script_ECHO;
    struct probe writes[WRITES] = {0}, behind = {0}, other = {0};

    memset(much, 'x', sizeof(much) - 1);
    for (unsigned i = 0; i < WRITES; i++)
        probe_start(world, &writes[i], &script_SET, "k", much);
    CHECK(world->store->link.heavy == HEAVY_LEAST);
    reading.reads = true;
    for (unsigned i = 0; i < READS; i++)
        probe_start(world, &reads[i], &reading, "o", "v");
    probe_start(world, &behind, &script_SET, "k", "small");
    probe_start(world, &other, &script_SET, "o", "small");
    CHECK(behind.call.state == CALL_NOT_YET && other.call.state != CALL_NOT_YET);
    WAIT(world, writes[WRITES - 1].call.state != CALL_NOT_YET, 5000);
    CHECK(behind.call.state != CALL_NOT_YET && reads[READS - 1].call.state == CALL_NOT_YET);
    WAIT(world, world->open == 0, 5000);
    for (unsigned i = 0; i < WRITES; i++)
        CHECK_INT(writes[i].outcome, STORE_DONE);
    CHECK(behind.outcome == STORE_DONE && other.outcome == STORE_DONE && world->store->link.heavy == 0);
    CHECK_TEXT(bytes_of(redis_ask(redis, "GET k")), BYTES("small"));
}

TEST_STORE(an_answer_that_came_while_the_process_was_held_up_counts, SHORT_MS)
{
    struct probe probe = {0};

    probe_start(world, &probe, &script_SET, "k", "v");
    store_turn_end(&world->store->turn_end);
    /* Held up: the loop does not turn, Redis answers, the deadline passes. */
    while (loop_now_ms() < probe.call.deadline_ms + 20)
        poll(NULL, 0, 5);
    WAIT(world, probe.ends == 1, 2000);
    CHECK_INT(probe.outcome, STORE_DONE);
    CHECK_INT(store_counts(world->store).reconnects, 0);
    CHECK(world_ready(world));
}

TEST_STORE(what_the_kernel_never_took_is_not_sent_and_never_happens, SHORT_MS)
{
    static struct probe probes[LARGE_CALLS];
    char *large = calloc(1, LARGE);
    unsigned kept = 0, left = 0;

    kill(redis->pid, SIGSTOP);
    for (unsigned i = 0; i < LARGE_CALLS; i++) {
        probes[i] = (struct probe){0};
        snprintf(probes[i].key, sizeof(probes[i].key), "k%u", i);
        probes[i].argv[0] = bytes_of(probes[i].key);
        probes[i].argv[1] = (struct bytes){large, LARGE};
        probe_run(world, &probes[i], &script_SET, 1, 2);
    }
    WAIT(world, world->open == 0, 3000);
    kill(redis->pid, SIGCONT);
    WAIT(world, world_ready(world), 3000);
    /* Redis goes on reading the broken link: at its end there is only the test's and the new one. */
    WAIT(world, strstr(redis_ask(redis, "INFO clients"), "connected_clients:2\r") != NULL, 3000);
    for (unsigned i = 0; i < LARGE_CALLS; i++) {
        CHECK_INT(probes[i].ends, 1);
        left += probes[i].outcome == STORE_UNKNOWN;
        if (probes[i].outcome == STORE_NOT_SENT) {
            kept++;
            CHECK_TEXT(bytes_of(redis_askf(redis, "EXISTS k%u", i)), BYTES(":0"));
        }
    }
    CHECK(left > 0 && kept > 0 && left + kept == LARGE_CALLS);
    free(large);
}

/* Calls until one is answered. */
static void until_done(struct world *world, unsigned wait_ms)
{
    uint64_t deadline_ms = loop_now_ms() + wait_ms;
    struct probe probe;

    do {
        probe = probe_once(world, &script_SET, "back", "v");
    } while (probe.outcome != STORE_DONE && loop_now_ms() < deadline_ms);
    CHECK_INT(probe.outcome, STORE_DONE);
}

TEST_STORE(a_killed_redis_that_returns_is_used_again_within_a_second, 2000)
{
    struct probe probe = {0};

    kill(redis->pid, SIGSTOP);
    probe_start(world, &probe, &script_SET, "k", "v");
    loop_turn(world->loop, 1);
    redis_kill(redis);
    WAIT(world, probe.ends == 1, 1000); /* at once, not at the deadline */
    CHECK_INT(probe.outcome, STORE_UNKNOWN);
    /* As after a long absence: it returns in the middle of the longest pause. */
    world->store->link.attempts = 20;
    WAIT(world, world->store->link.attempts == 21, 2000);
    redis_run(redis, NULL);
    uint64_t returned_ms = waited_ms();
    until_done(world, 5000);
    uint64_t took_ms = waited_ms() - returned_ms;
    CHECK(took_ms < 1000);
    printf("# calls are taken %u ms after Redis has returned\n", (unsigned)took_ms);
    CHECK_INT(store_counts(world->store).reconnects, 1);
    walked_add(world);
}

/* Cuts after so many bytes in that direction; then what each call was told must agree with what Redis holds.
 */
static void cut(struct world *world, struct relay *relay, struct redis *redis, int way, int64_t after,
                const struct store_script *script)
{
    static struct probe probes[CUT_CALLS];

    world->store->link.attempts = 0; /* short pauses: it is cut on purpose */
    redis_ask(redis, "FLUSHALL");
    WAIT(world, world_ready(world), 3000);
    relay->cut_after[way] = after;
    for (unsigned i = 0; i < CUT_CALLS; i++) {
        probes[i] = (struct probe){0};
        probe_start(world, &probes[i], script, textf("k%u", i), "value");
    }
    WAIT(world, world->open == 0, 3000);
    redis_ask(redis, "PING"); /* after which Redis has read what the cut link brought it */
    for (unsigned i = 0; i < CUT_CALLS; i++) {
        bool exists = strcmp(redis_askf(redis, "EXISTS k%u", i), ":1") == 0;
        CHECK_INT(probes[i].ends, 1);
        CHECK(probes[i].outcome != STORE_NOT_SENT || !exists);
        CHECK(probes[i].outcome != STORE_DONE || exists);
    }
}

TEST_RELAY(a_link_cut_anywhere_ends_each_call_once_and_truly, 1000, true)
{
    static const int64_t after[] = {1, 2, 5, 13, 47, 60, 100, 128, 129, 500, 1000, 1900, 4000};

    for (unsigned i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        cut(world, relay, redis, RELAY_UP, after[i], &script_SET);
        cut(world, relay, redis, RELAY_DOWN, after[i] / 7 + 1, &script_SET);
        cut(world, relay, redis, RELAY_UP, after[i] / 3 + 1, &script_PUT); /* of one batch */
        cut(world, relay, redis, RELAY_DOWN, after[i] / 20 + 1, &script_PUT);
    }
    CHECK(relay->cuts >= 40);
}

TEST_RELAY(a_greeting_cut_anywhere_is_begun_anew, 1000, false)
{
    static const int64_t after[] = {1, 10, 40, 100, 200, 333};

    for (unsigned i = 0; i < 2 * sizeof(after) / sizeof(after[0]); i++) {
        relay_hang_up(relay);
        world->store->link.attempts = 0;
        relay->cut_after[i % 2] = after[i / 2];
        WAIT(world, relay->cuts == i + 1, 3000);
        WAIT(world, world_ready(world), 3000);
    }
    CHECK_INT(probe_once(world, &script_INCR, "n", "").integer, 1);
}

TEST_RELAY(nonsense_in_the_reply_breaks_the_link_and_makes_the_call_unknown, 1000, true)
{
    relay->replace = "$3\r\nset";
    relay->with = "!3\r\nset";
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_UNKNOWN);
    relay->replace = NULL;
    until_done(world, 3000);
    WAIT(world, world_ready(world), 3000);
    CHECK(send(relay->fd[RELAY_DOWN], "+hello\r\n", 8, MSG_NOSIGNAL) == 8); /* nobody asked */
    WAIT(world, store_counts(world->store).reconnects == 2, 3000);
    until_done(world, 3000);
}

TEST_STORE(an_error_of_a_script_is_unknown, 2000)
{
    CHECK_INT(probe_once(world, &script_REFUSE, "k", "").outcome, STORE_UNKNOWN);
    CHECK_INT(probe_once(world, &script_BREAK, "k", "").outcome, STORE_UNKNOWN);
    CHECK_TEXT(bytes_of(redis_ask(redis, "GET k")), BYTES("half"));
    redis_ask(redis, "LPUSH list 1");
    CHECK_INT(probe_once(world, &script_INCR, "list", "").outcome, STORE_UNKNOWN);
    redis_ask(redis, "ACL SETUSER default -set");
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_UNKNOWN);
    redis_ask(redis, "ACL SETUSER default +set");
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_DONE);
    CHECK_INT(store_counts(world->store).reconnects, 0);
}

/* What a Redis in a bad state refuses was not done. code: of a Redis that is no master; NULL: the link stays.
 */
static const struct {
    const char *spoil[2], *mend, *code, *check;
} refusals[] = {
    {{"CONFIG SET maxmemory 1"}, "CONFIG SET maxmemory 0", NULL, STORE_FULL},
    {{"REPLICAOF 127.0.0.1 1"}, "REPLICAOF NO ONE", "READONLY", "store-refused"},
    {{"CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"},
     "REPLICAOF NO ONE",
     "READONLY", /* what may write is told of that first */
     "store-refused"},
    {{"CONFIG SET min-replicas-to-write 1"},
     "CONFIG SET min-replicas-to-write 0",
     NULL,
     "store-refuses-writes"},
    {{"ACL SETUSER default -fcall"}, "ACL SETUSER default +fcall", NULL, "store-refused"},
};

/* That the link stands, or that it has been left because of this code; waits for the next one. */
static void check_left(struct world *world, uint64_t number, const char *code)
{
    const char *detail;

    CHECK_INT(store_link_stands(world->store), code == NULL);
    if (code != NULL) {
        CHECK_TEXT(bytes_of(store_not_ready(world->store, &detail)), BYTES("store-refused"));
        CHECK(strstr(detail, code) != NULL);
    }
    WAIT(world, store_link_stands(world->store), 2000);
    CHECK_INT(store_link_number(world->store), number + (code != NULL));
}

TEST_STORE(what_redis_refuses_before_the_first_write_is_not_sent, 2000)
{
    for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        for (unsigned j = 0; j < 2 && refusals[i].spoil[j] != NULL; j++)
            redis_does(redis, refusals[i].spoil[j]);
        uint64_t number = store_link_number(world->store);
        struct probe probe = probe_once(world, &script_SET, "k", "v");
        CHECK_INT(probe.outcome, STORE_NOT_SENT);
        CHECK(probe.call.refusal != NULL && strcmp(probe.call.refusal->check, refusals[i].check) == 0);
        CHECK_INT(store_call_was_too_much(&probe.call), strcmp(refusals[i].check, STORE_FULL) == 0);
        redis_does(redis, refusals[i].mend);
        CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS k")), BYTES(":0"));
        check_left(world, number, refusals[i].code);
    }
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_DONE);
    CHECK_INT(store_counts(world->store).reconnects, 2);
    walked_add(world);
}

/* What is certain on a full Redis, however the functions are called: one may write all the same, one has an
 * answer that needs no write, one is refused. */
static void check_on_full(struct world *world, struct redis *redis)
{
    CHECK_INT(probe_once(world, &script_SET_ON_FULL, "full", "v").outcome, STORE_DONE);
    CHECK_TEXT(bytes_of(redis_ask(redis, "GETDEL full")), BYTES("v"));
    struct probe echo = probe_once(world, &script_ECHO, "k", "said");
    CHECK(echo.outcome == STORE_DONE && strcmp(echo.text, "said") == 0 &&
          store_call_was_too_much(&echo.call) == world->store->link.by_name);
    struct probe set = probe_once(world, &script_SET, "k", "v");
    CHECK(set.outcome == STORE_NOT_SENT && store_call_was_too_much(&set.call));
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS k")), BYTES(":0"));
}

TEST_STORE(a_full_redis_is_asked_what_needs_no_write, 2000)
{
    redis_does(redis, "CONFIG SET maxmemory 1");
    check_on_full(world, redis);
    CHECK(world->store->link.by_name);
}

TEST_REDIS(calls_are_sent_whole_where_the_library_cannot_be_loaded)
{
    struct world world;

    for (unsigned i = 0; i < 2; i++) { /* never there; gone */
        redis_does(redis, "CONFIG SET maxmemory 1");
        if (i == 0)
            world_open_on(&world, redis, 2000);
        else
            redis_does(redis, "FUNCTION FLUSH SYNC");
        check_on_full(&world, redis);
        CHECK(store_not_loaded(world.store) != NULL && strstr(store_not_loaded(world.store), "OOM") != NULL);
        redis_does(redis, "CONFIG SET maxmemory 0");
        store_look_every(world.store, 20);
        WAIT(&world, store_not_loaded(world.store) == NULL, 2000);
        CHECK_INT(probe_once(&world, &script_SET, "k", "v").outcome, STORE_DONE);
        redis_ask(redis, "DEL k");
    }
    CHECK_INT(store_counts(world.store).reconnects, 0);
    world_close(&world);
    redis_does(redis, "FUNCTION FLUSH SYNC");
    redis_does(redis, "ACL SETUSER default -function|load -function|list");
    world_open_on(&world, redis, 2000);
    CHECK_INT(probe_once(&world, &script_SET, "k", "v").outcome, STORE_DONE);
    CHECK(strstr(store_not_loaded(world.store), "NOPERM") != NULL);
    world_close(&world);
    redis_does(redis, "ACL SETUSER default +function|load +function|list");
    CHECK_TEXT(
        bytes_of(redis_ask(redis, "FUNCTION LOAD \"#!lua name=one\\nredis.register_function('test_SET', "
                                  "function() return 'not ours' end)\"")),
        BYTES("one"));
    world_open_on(&world, redis, 2000);
    CHECK_TEXT(bytes_of(probe_once(&world, &script_SET, "k", "v").text), BYTES("set"));
    CHECK(store_not_loaded(world.store) != NULL &&
          strstr(store_not_loaded(world.store), "already exists") != NULL);
    world_close(&world);
}

TEST_STORE_AS(a_redis_that_cannot_save_refuses_and_nothing_happens, 2000, "--save", "3600 1000000",
              "--appendonly", "no")
{
    uint64_t deadline_ms = loop_now_ms() + 5000;

    remove_tree(redis->data); /* it cannot save into a directory that is gone, not even as root */
    redis_ask(redis, "BGSAVE");
    while (strcmp(redis_ask(redis, "SET probe 1"), "+OK") == 0 && loop_now_ms() < deadline_ms)
        poll(NULL, 0, 5);
    CHECK(strncmp(redis_ask(redis, "SET probe 1"), "-MISCONF", 8) == 0);
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_NOT_SENT);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS k")), BYTES(":0"));
}

TEST_STORE_AS(a_redis_busy_with_anothers_script_was_not_asked, 2000, "--busy-reply-threshold", "20")
{
    redis_make_busy(redis, 1000);
    struct probe probe = probe_once(world, &script_SET, "k", "v");
    CHECK_INT(probe.outcome, STORE_NOT_SENT);
    WAIT(world, probe_once(world, &script_SET, "k", "w").outcome == STORE_DONE, 5000);
}

TEST_STORE(a_script_that_overruns_the_deadline_is_unknown_and_done_once, SHORT_MS)
{
    CHECK_INT(probe_once(world, &script_SLOW, "k", "300").outcome, STORE_UNKNOWN);
    WAIT(world, world_ready(world), 3000);
    CHECK(store_counts(world->store).unknown == 1 && store_counts(world->store).done == 0);
}

TEST_REDIS_AS(a_redis_that_is_still_loading_is_waited_for, "--appendonly", "no", "--rdbcompression", "no")
{
    struct world world;
    const char *detail;

    /* Of an RDB file Redis loads 1 KiB at a time, 20 ms here, and answers in between. */
    redis_ask(redis, "EVAL 'for i = 1, 300 do redis.call(\"SET\", i, string.rep(\"x\", 100)) end' 0");
    redis_ask(redis, "SHUTDOWN SAVE");
    redis_kill(redis);
    redis_run(redis, (const char *const[]){"--appendonly", "no", "--key-load-delay", "2000",
                                           "--loading-process-events-interval-bytes", "1024", NULL});
    world_open_at(&world, redis->url, 2000);
    WAIT(&world, bytes_are(bytes_of(store_not_ready(world.store, &detail)), "store-loading"), 2000);
    CHECK(strstr(detail, "LOADING") != NULL);
    CHECK(!store_link_stands(world.store) && store_link_number(world.store) == 0);
    CHECK_TEXT(bytes_of(store_run_id(world.store)), BYTES(""));
    CHECK_INT(probe_once(&world, &script_SET, "k", "v").outcome, STORE_NOT_SENT);
    WAIT(&world, world_ready(&world), 5000);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS 1 300")), BYTES(":2"));
    world_close(&world);
}

/* left: so is the link, for it is no master, or has no data yet. */
static const struct {
    const char *error;
    enum store_outcome outcome;
    bool left;
} errors[] = {
    {"ERR Function not found", STORE_NOT_SENT, false},
    {"ERR Function not found script: ab, on @user_function:1.", STORE_UNKNOWN, false},
    {"LOADING Redis is loading the dataset in memory", STORE_NOT_SENT, true},
    {"READONLY You can't write against a read only replica.", STORE_NOT_SENT, true},
    {"READONLY You can't write against a read only replica. script: ab, on @user_script:1.", STORE_NOT_SENT,
     true},
    {"BUSY Redis is busy running a script.", STORE_NOT_SENT, false},
    {"BUSYKEY Target key name already exists.", STORE_UNKNOWN, false},
    {"BUSYGROUP Consumer Group name already exists script: ab, on @user_script:1.", STORE_UNKNOWN, false},
    {"MASTERDOWN Link with MASTER is down", STORE_NOT_SENT, true},
    {"NOREPLICAS Not enough good replicas to write. script: ab, on @user_script:1.", STORE_NOT_SENT, false},
    {"NOAUTH Authentication required.", STORE_NOT_SENT, false},
    {"NOPERM this user has no permissions to run the 'fcall' command", STORE_NOT_SENT, false},
    {"NOPERM ACL failure in it script: ab, on @user_script:1.", STORE_UNKNOWN, false},
    {"OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:1.", STORE_NOT_SENT,
     false},
    {"MISCONF Errors writing to the AOF file: No space left on device", STORE_NOT_SENT, false},
    {"ERR Error running script: -OOM command not allowed", STORE_UNKNOWN, false},
    {"ERR user_script:1: boom script: ab, on @user_script:1.", STORE_UNKNOWN, false},
    {"WRONGTYPE Operation against a key", STORE_UNKNOWN, false},
    {"OOMPH", STORE_UNKNOWN, false},
    {"READONLYX", STORE_UNKNOWN, false},
    {"READ", STORE_UNKNOWN, false},
    {"OOM", STORE_NOT_SENT, false},
    {"", STORE_UNKNOWN, false},
};

TEST(an_error_says_not_sent_and_that_the_link_is_left_only_by_its_whole_first_word)
{
    for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        const char *rest = errors[i].error, *code = check_word(&rest);

        if (!CHECK_INT(reply_error_outcome(bytes_of(errors[i].error)), errors[i].outcome) ||
            !CHECK_INT(reply_code_is_of_no_master(bytes_of(code != NULL ? code : "")), errors[i].left))
            printf("# %s\n", errors[i].error);
    }
}

/* -- the drawing */

static const char *const state_names[LINK_STATES] = {
    [LINK_IDLE] = "IDLE",   [LINK_CONNECTING] = "CONNECTING", [LINK_GREETING] = "GREETING",
    [LINK_READY] = "READY", [LINK_LEAVING] = "LEAVING",       [LINK_WAITING] = "WAITING",
};

static void close_at_once(const char *url, enum link_state state)
{
    struct world world;

    world_open_at(&world, url, 1000);
    if (state != LINK_CONNECTING)
        WAIT(&world, world.store->link.state == state, 2000);
    CHECK_INT(world.store->link.state, state); /* from where closing goes to IDLE */
    walked_add(&world);
    world_close(&world);
    walked[state] |= 1u << LINK_IDLE;
}

TEST_REDIS(the_drawing_of_the_link_the_table_and_what_links_do_agree)
{
    close_at_once(redis->url, LINK_CONNECTING);
    close_at_once(redis->url, LINK_READY);
    kill(redis->pid, SIGSTOP);
    close_at_once(redis->url, LINK_GREETING);
    close_at_once("unix:///nowhere/at/all", LINK_WAITING);
    CHECK_INT(drawing_check("shared/store/link.c", state_names, LINK_STATES, link_allows, walked), 13);
}

CHECK_MAIN
