/* test_store.c - calls to a real Redis: what they bring back, that each ends once and later, and by which
 * link; and those of a turn as one: what goes together, and how each of them ends. */
#include "tests/component/store_world.h"

enum { MANY = 20000, LARGE = 1024 * 1024, LARGE_CALLS = 100 };

TEST_STORE(a_call_runs_its_script_and_brings_back_its_reply, 2000)
{
    struct probe probe = probe_once(world, &script_SET, "k", "v");
    CHECK_INT(probe.outcome, STORE_DONE);
    CHECK_TEXT(bytes_of(probe.text), BYTES("set"));
    CHECK_INT(probe.count, 2);
    CHECK_TEXT(bytes_of(redis_ask(redis, "GET k")), BYTES("v"));
    CHECK_INT(probe_once(world, &script_INCR, "n", "").integer, 1);
    CHECK_INT(probe_once(world, &script_INCR, "n", "").integer, 2);
    struct store_counts counts = store_counts(world->store);
    CHECK_INT(counts.calls, 3);
    CHECK_INT(counts.done, 3);
    CHECK_INT(counts.not_sent + counts.unknown + counts.in_flight + counts.reconnects + counts.not_found, 0);
}

static void shapes_list(struct probe *probe, const struct store_reply *reply)
{
    const struct store_reply *in = store_reply_list(reply, 3);

    CHECK_INT(probe->count, 13);
    CHECK(store_reply_is(reply, "word") && !store_reply_is(reply, "wor") && !store_reply_is(reply, ""));
    CHECK_INT(store_reply_integer(reply, 1), 42);
    CHECK(store_reply_text(reply, 1).at == NULL);
    CHECK(store_reply_text(reply, 2).at == NULL && store_reply_integer(reply, 2) == INT64_MIN);
    CHECK(store_reply_text(reply, 3).at == NULL && store_reply_integer(reply, 3) == INT64_MIN);
    CHECK(store_reply_list(reply, 0) == NULL && store_reply_list(reply, 13) == NULL);
    CHECK_INT(store_reply_count(in), 2);
    CHECK(store_reply_is(in, "in"));
    CHECK_INT(store_reply_integer(store_reply_list(in, 1), 1), 2);
    CHECK_INT(store_reply_integer(reply, 4), 17);
    CHECK_INT(store_reply_integer(reply, 5), INT64_MIN);
    CHECK_INT(store_reply_integer(reply, 6), -5);
    CHECK_INT(store_reply_integer(reply, 7), INT64_MIN);
    CHECK(store_reply_text(reply, 8).at != NULL && store_reply_text(reply, 8).len == 0);
    CHECK_INT(store_reply_integer(reply, 8), INT64_MIN);
    CHECK_INT(store_reply_integer(reply, 9), 999999999999999999);
    CHECK_INT(store_reply_integer(reply, 10), INT64_MIN);
    CHECK_INT(store_reply_integer(reply, 11), INT64_MIN);
    CHECK_TEXT(store_reply_text(reply, 12), BYTES("OK"));
    CHECK(store_reply_text(reply, 13).at == NULL && store_reply_integer(reply, 99) == INT64_MIN);
}

TEST_STORE(a_reply_is_a_list_of_integers_texts_nils_and_lists, 2000)
{
    struct probe probe = {.then = shapes_list};

    probe_start(world, &probe, &script_SHAPES, "list", "");
    WAIT(world, probe.ends == 1, 2000);
    CHECK_TEXT(bytes_of(probe_once(world, &script_SHAPES, "status", "").text), BYTES("FINE"));
    probe = probe_once(world, &script_SHAPES, "nil", "");
    CHECK(probe.count == 1 && probe.text[0] == '\0' && probe.integer == INT64_MIN);
    probe = probe_once(world, &script_SHAPES, "one", "");
    CHECK(probe.count == 1 && probe.integer == 7);
    CHECK_INT(probe_once(world, &script_SHAPES, "empty", "").count, 0);
}

static char every_byte[256];

static void binary_came_back(struct probe *probe, const struct store_reply *reply)
{
    (void)probe;
    CHECK_TEXT(store_reply_text(reply, 0), ((struct bytes){every_byte, sizeof(every_byte)}));
    CHECK_TEXT(store_reply_text(reply, 1), BYTES(""));
    CHECK_TEXT(store_reply_text(reply, 2), BYTES("\r\n$5\r\n"));
}

TEST_STORE(every_byte_travels_unchanged, 2000)
{
    struct probe probe = {.then = binary_came_back};

    for (unsigned i = 0; i < sizeof(every_byte); i++)
        every_byte[i] = (char)i;
    probe.argv[0] = BYTES("key");
    probe.argv[1] = (struct bytes){every_byte, sizeof(every_byte)};
    probe.argv[2] = (struct bytes){NULL, 0};
    probe.argv[3] = BYTES("\r\n$5\r\n");
    probe_run(world, &probe, &script_ECHO, 1, 4);
    WAIT(world, probe.ends == 1, 2000);
    CHECK_INT(probe.count, 3);
}

TEST_STORE(twenty_thousand_calls_in_flight_all_end_once_and_in_order, 30000)
{
    struct probe *probes = calloc(MANY, sizeof(*probes));
    unsigned good = 0;

    for (unsigned i = 0; i < MANY; i++)
        probe_start(world, &probes[i], &script_INCR, "n", "");
    CHECK_INT(store_counts(world->store).in_flight, MANY);
    WAIT(world, world->open == 0, 30000);
    for (unsigned i = 0; i < MANY; i++)
        good += probes[i].ends == 1 && probes[i].outcome == STORE_DONE && probes[i].integer == (int64_t)i + 1;
    CHECK_INT(good, MANY);
    CHECK_INT(store_counts(world->store).done, MANY);
    free(probes);
}

TEST_STORE(a_hundred_large_values_of_one_turn_arrive_whole, 30000)
{
    static struct probe probes[LARGE_CALLS];
    char *large = malloc(LARGE);
    unsigned good = 0;

    memset(large, 'x', LARGE);
    large[LARGE - 1] = 'z';
    kill(redis->pid, SIGSTOP);
    for (unsigned i = 0; i < LARGE_CALLS; i++) {
        probes[i] = (struct probe){.argv = {BYTES("k"), {large, LARGE}}};
        probe_run(world, &probes[i], &script_LENGTH, 1, 2);
    }
    CHECK(wire_waiting(&world->store->dial.wire) > 0); /* more than the kernel takes at once */
    kill(redis->pid, SIGCONT);
    WAIT(world, world->open == 0, 30000);
    for (unsigned i = 0; i < LARGE_CALLS; i++)
        good += probes[i].ends == 1 && probes[i].outcome == STORE_DONE && probes[i].integer == LARGE;
    CHECK_INT(good, LARGE_CALLS);
    CHECK_INT(world->store->dial.wire.size, 0); /* and their memory is given back */
    free(large);
}

enum { CHAIN = 100 };

/* argv[3].len counts the links of the chain. */
static void chain_next(struct probe *probe, const struct store_reply *reply)
{
    (void)reply;
    if (probe->ends < CHAIN)
        probe_run(probe->world, probe, &script_INCR, 1, 2);
}

TEST_STORE(a_continuation_may_call_again, 2000)
{
    struct probe probe = {.then = chain_next};

    probe_start(world, &probe, &script_INCR, "n", "");
    WAIT(world, world->open == 0, 5000);
    CHECK_INT(probe.ends, CHAIN);
    CHECK_INT(probe.integer, CHAIN);
    redis_kill(redis);
    WAIT(world, !world_ready(world), 2000);
    probe = (struct probe){.then = chain_next};
    probe_start(world, &probe, &script_INCR, "n", "");
    WAIT(world, world->open == 0, 5000);
    CHECK_INT(probe.ends, CHAIN);
    CHECK_INT(probe.outcome, STORE_NOT_SENT);
    redis_run(redis, NULL); /* so that it can be stopped */
}

TEST_STORE(functions_that_are_gone_are_loaded_and_called_once_more, 2000)
{
    struct probe probes[20] = {0};

    redis_does(redis, "FUNCTION FLUSH SYNC");
    for (unsigned i = 0; i < 20; i++)
        probe_start(world, &probes[i], &script_INCR, textf("n%u", i), "");
    WAIT(world, world->open == 0, 2000);
    for (unsigned i = 0; i < 20; i++)
        CHECK(probes[i].ends == 1 && probes[i].outcome == STORE_DONE);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS n0 n19")), BYTES(":2"));
    CHECK_INT(store_counts(world->store).not_found, 20);
    CHECK(world->store->link.by_name && !world->store->link.is_loading);
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_DONE);
    CHECK_INT(store_counts(world->store).not_found, 20);
    CHECK_INT(store_counts(world->store).reconnects, 0);
}

TEST_STORE(functions_that_several_links_miss_are_loaded_by_one, 2000)
{
    struct probe probes[2] = {0};
    struct world other;
    const char *loads;

    world_open_on(&other, redis, 2000);
    redis_does(redis, "FUNCTION FLUSH SYNC");
    redis_does(redis, "CONFIG RESETSTAT");
    kill(redis->pid, SIGSTOP);
    CHECK_INT(waitpid(redis->pid, NULL, WUNTRACED), redis->pid); /* it has stopped */
    probe_start(world, &probes[0], &script_INCR, "n", "");
    probe_start(&other, &probes[1], &script_INCR, "n", "");
    loop_turn(world->loop, 1);
    loop_turn(other.loop, 1);
    kill(redis->pid, SIGCONT);
    WAIT(world, world->open == 0, 2000);
    WAIT(&other, other.open == 0 && other.store->link.by_name, 2000);
    CHECK(probes[0].outcome == STORE_DONE && probes[1].outcome == STORE_DONE);
    loads = strstr(redis_ask(redis, "INFO commandstats"), "cmdstat_function|load:calls=2,");
    CHECK(loads != NULL && strstr(loads, "failed_calls=1") != NULL);
    world_close(&other);
}

/* The later one may find what somebody else has loaded. */
TEST_STORE(a_call_is_not_sent_again_behind_a_later_one_with_a_key_of_it, 2000)
{
    struct probe early = {.argv = {BYTES("a"), BYTES("b"), BYTES("early")}}, other = {0}, late = {0};

    redis_does(redis, "FUNCTION FLUSH SYNC");
    probe_run(world, &early, &script_SET, 2, 3);
    probe_start(world, &other, &script_SET, "c", "v");
    probe_start(world, &late, &script_SET, "b", "late");
    WAIT(world, world->open == 0, 2000);
    CHECK_INT(early.outcome, STORE_NOT_SENT);
    CHECK(other.outcome == STORE_DONE && late.outcome == STORE_DONE);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS a b c")), BYTES(":2"));
}

TEST_REDIS(another_text_under_the_librarys_name_is_replaced)
{
    struct world world;

    CHECK_TEXT(bytes_of(redis_ask(redis, "FUNCTION LOAD \"#!lua name=pawl_test\\nredis.register_function("
                                         "'test_SET', function() return 'not ours' end)\"")),
               BYTES("pawl_test"));
    for (unsigned i = 0; i < 2; i++) {
        world_open_on(&world, redis, 2000);
        CHECK_TEXT(bytes_of(probe_once(&world, &script_SET, "k", "v").text), BYTES("set"));
        CHECK_INT(store_counts(world.store).not_found, 0);
        world_close(&world);
        /* What is there is not loaded again. */
        redis_does(redis, "ACL SETUSER default -function|load");
    }
}

static void put_once_more(struct probe *probe, const struct store_reply *reply)
{
    (void)reply;
    if (probe->ends == 1)
        probe_run(probe->world, probe, &script_PUT, 1, 2);
}

TEST_REDIS(closing_ends_what_left_unknown_and_what_did_not_as_not_sent)
{
    struct world world;
    struct probe left = {0}, kept = {0}, again = {.then = put_once_more};

    world_open_on(&world, redis, 2000);
    kill(redis->pid, SIGSTOP);
    probe_start(&world, &left, &script_SET, "left", "v");
    loop_turn(world.loop, 1);
    probe_start(&world, &kept, &script_SET, "kept", "v");
    probe_start(&world, &again, &script_SET, "again", "v");
    world_close(&world);
    CHECK(left.ends == 1 && left.outcome == STORE_UNKNOWN);
    CHECK(kept.ends == 1 && kept.outcome == STORE_NOT_SENT);
    CHECK(again.ends == 2 && again.outcome == STORE_NOT_SENT);
    kill(redis->pid, SIGCONT);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS kept again")), BYTES(":0"));
}

static char detail[400]; /* of what was tried last */

/* Opens, runs one SET, closes. "", or the failing check. */
static struct bytes try_url(const char *url, const char *password)
{
    struct world world;
    const char *why, *check;

    world_open(&world, &(struct store_options){.url = url,
                                               .password = password,
                                               .timeout_ms = 1000,
                                               .allow_unsafe = true,
                                               .library = &test_library});
    for (unsigned i = 0; i < 300 && (check = store_not_ready(world.store, &why)) != NULL &&
                         (strcmp(check, "store-connecting") == 0 || i < 50);
         i++)
        loop_turn(world.loop, 2);
    check = store_not_ready(world.store, &why);
    snprintf(detail, sizeof(detail), "%s", why);
    if (check == NULL)
        CHECK_INT(probe_once(&world, &script_SET, "k", "v").outcome, STORE_DONE);
    world_close(&world);
    return bytes_of(check != NULL ? check : "");
}

TEST_REDIS(a_store_is_reached_by_unix_socket_by_address_by_name_and_in_its_database)
{
    CHECK_TEXT(try_url(textf("unix://%s?db=3", redis->socket), NULL), BYTES(""));
    CHECK_TEXT(try_url(textf("redis://127.0.0.1:%u/4", redis->port), NULL), BYTES(""));
    CHECK_TEXT(try_url(textf("redis://localhost:%u", redis->port), NULL), BYTES(""));
    CHECK_TEXT(bytes_of(redis_ask(redis, "DBSIZE")), BYTES(":1"));
    redis_ask(redis, "SELECT 3");
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS k")), BYTES(":1"));
    redis_ask(redis, "SELECT 4");
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS k")), BYTES(":1"));
    CHECK_TEXT(try_url(textf("redis://127.0.0.1:%u/4444", redis->port), NULL), BYTES("store-refused"));
    CHECK(strstr(detail, "SELECT") != NULL);
}

TEST_REDIS_AS(a_password_opens_from_the_url_or_the_options_and_is_never_told, "--requirepass", "se/cr@t")
{
    const char *url = textf("redis://127.0.0.1:%u", redis->port);

    CHECK_TEXT(try_url(url, NULL), BYTES("store-auth"));
    CHECK(strstr(detail, "required.") != NULL && strstr(detail, "..") == NULL);
    CHECK_TEXT(try_url(url, "se/cr@t"), BYTES(""));
    CHECK_TEXT(try_url(url, "wr0ng"), BYTES("store-auth"));
    CHECK(strstr(detail, "WRONGPASS") != NULL && strstr(detail, "wr0ng") == NULL);
    url = textf("redis://:se%%2fcr%%40t@127.0.0.1:%u", redis->port);
    CHECK_TEXT(try_url(url, NULL), BYTES(""));
    CHECK_TEXT(try_url(url, "wr0ng"), BYTES("store-auth"));
    CHECK(strstr(detail, "se/cr@t") == NULL && strstr(detail, "2fcr") == NULL);
    redis_ask(redis, "AUTH se/cr@t");
    redis_does(redis, "ACL SETUSER pawl on >other ~* +@all");
    CHECK_TEXT(try_url(textf("redis://pawl:other@127.0.0.1:%u", redis->port), NULL), BYTES(""));
    url = textf("redis://pawl@127.0.0.1:%u", redis->port);
    CHECK_TEXT(try_url(url, "other"), BYTES(""));
    CHECK_TEXT(try_url(url, NULL), BYTES("store-auth"));
}

/* -- the calls of a turn as one */

enum { BATCHED_CALLS = 200, ROW = 5 };

static struct probe probes[BATCHED_CALLS];

/* How many FCALLs Redis has had. */
static unsigned long fcalls(struct redis *redis)
{
    const char *told = strstr(redis_ask(redis, "INFO commandstats"), "cmdstat_fcall:calls=");

    return told != NULL ? strtoul(told + strlen("cmdstat_fcall:calls="), NULL, 10) : 0;
}

static void start(struct world *world, unsigned i, const struct store_script *script, const char *key,
                  const char *value)
{
    probes[i] = (struct probe){0};
    probe_start(world, &probes[i], script, key, value);
}

/* In one turn; at most ROW. */
struct row {
    struct {
        unsigned fcalls;        /* that it takes */
        const char *key, *list; /* what stands there then, by what LRANGE tells of it */
    } comes_to;
    struct {
        const struct store_script *script;
        const char *key, *value;
        enum store_outcome outcome;
        const char *text; /* the first word of its reply; NULL: none */
    } calls[ROW];
};

static void check_row(struct redis *redis, struct world *world, const struct row *row)
{
    unsigned long before;

    redis_ask(redis, "FLUSHALL");
    before = fcalls(redis);
    for (unsigned i = 0; i < ROW && row->calls[i].script != NULL; i++)
        start(world, i, row->calls[i].script, row->calls[i].key, row->calls[i].value);
    WAIT(world, world->open == 0, 5000);
    CHECK_INT(fcalls(redis) - before, row->comes_to.fcalls);
    for (unsigned i = 0; i < ROW && row->calls[i].script != NULL; i++) {
        const struct probe *probe = &probes[i];

        CHECK_INT(probe->ends, 1);
        CHECK_INT(probe->outcome, row->calls[i].outcome);
        CHECK(row->calls[i].text == NULL || strcmp(probe->text, row->calls[i].text) == 0);
    }
    if (row->comes_to.key != NULL) {
        const char *list = redis_askf(
            redis, "EVAL \"return table.concat(redis.call('LRANGE','%s',0,-1),' ')\" 0", row->comes_to.key);

        CHECK_TEXT(bytes_of(list), bytes_of(row->comes_to.list));
    }
}

static const struct row rows[] = {
    /* One leaves as it is, and so in its place does one that may not be batched. */
    {{1, "k", "a"}, {{&script_LATER, "k", "a", STORE_DONE, "ran"}}},
    {{1, "k", "a b"},
     {{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_PUT, "k", "b", STORE_DONE, "put"},
      {&script_GET, "k", "-1", STORE_DONE, "b"}}},
    {{3, "k", "a b d"},
     {{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_PUT, "k", "b", STORE_DONE, "put"},
      {&script_ECHO, "k", "c", STORE_DONE, "c"},
      {&script_PUT, "k", "d", STORE_DONE, "put"},
      {&script_GET, "k", "-1", STORE_DONE, "d"}}},
    /* One that fails fails alone; it has written, whatever it says. */
    {{1, "k", "a half half half b"},
     {{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_FAIL, "k", "OOM command not allowed", STORE_UNKNOWN, NULL},
      {&script_FAIL, "k", "ERR Function not found", STORE_UNKNOWN, NULL},
      {&script_FAIL, "k", "LOADING", STORE_UNKNOWN, NULL},
      {&script_PUT, "k", "b", STORE_DONE, "put"}}},
    /* Nobody knows of any when the whole ends so, though its words are those of a refusal. */
    {{1, "k", "a"},
     {{&script_PUT, "k", "a", STORE_UNKNOWN, NULL},
      {&script_WHOLE, "k", "OOM no", STORE_UNKNOWN, NULL},
      {&script_PUT, "k", "b", STORE_UNKNOWN, NULL}}},
    {{1, "k", "a"},
     {{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_SHORT, "k", "", STORE_UNKNOWN, NULL},
      {&script_PUT, "k", "b", STORE_UNKNOWN, NULL}}},
    /* What did not run runs alone, but not behind a later one. */
    {{3, "k", "a b c"},
     {{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_LATER, "k", "b", STORE_DONE, "ran"},
      {&script_LATER, "k", "c", STORE_DONE, "ran"}}},
    {{3, "k", "a"},
     {{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_LATER, "k", "b", STORE_NOT_SENT, NULL},
      {&script_LATER, "o", "c", STORE_DONE, "ran"},
      {&script_ECHO, "k", "d", STORE_DONE, "d"}}},
};

TEST_STORE(the_calls_of_a_turn_go_as_one_in_their_order_and_each_gets_its_own_answer, 5000)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(redis, world, &rows[i]);
    CHECK_INT(store_counts(world->store).reconnects, 0);
    CHECK_INT(store_counts(world->store).in_flight, 0);
}

/* An idle Redis gets the first sixteen at once, and whole batches while it is at work. How many there are
 * while the kernel takes nothing must not make a batch larger than Redis may be held up. */
TEST_STORE(two_hundred_calls_are_batches_of_sixteen_or_of_thirty_two_that_answer_in_order, 5000)
{
    for (unsigned blocked = 0; blocked < 2; blocked++) {
        unsigned long before = fcalls(redis);

        redis_ask(redis, "FLUSHALL");
        world->store->dial.blocked = blocked == 1;
        for (unsigned i = 0; i < BATCHED_CALLS; i++) {
            start(world, i, &script_PUT, "k", "v");
            CHECK_INT(world->store->link.unflushed, blocked == 1 ? i + 1 : i < 15 ? i + 1 : (i - 15) % 32);
        }
        world->store->dial.blocked = false;
        WAIT(world, world->open == 0, 5000);
        CHECK_INT(fcalls(redis) - before, 7);
        for (unsigned i = 0; i < BATCHED_CALLS; i++)
            CHECK(probes[i].ends == 1 && probes[i].outcome == STORE_DONE);
        CHECK_TEXT(bytes_of(redis_ask(redis, "LLEN k")), BYTES(":200"));
    }
    CHECK_INT(store_counts(world->store).calls, 2 * BATCHED_CALLS);
    CHECK_INT(store_counts(world->store).done, 2 * BATCHED_CALLS);
}

/* Every length at which MessagePack changes its form. */
TEST_STORE(every_byte_and_length_travels_unchanged_in_a_batch, 5000)
{
    static const unsigned lens[] = {0, 1, 31, 32, 255, 256, 65535, 65536, 100000};
    static char large[100000];

    for (unsigned i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 7);
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        probes[i] = (struct probe){.argv = {BYTES("k"), {large, lens[i]}}};
        probe_run(world, &probes[i], &script_PUT, 1, 2);
    }
    WAIT(world, world->open == 0, 5000);
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        const char *len = redis_askf(redis, "EVAL \"return #redis.call('LINDEX','k',%u)\" 0", i);

        CHECK_INT(strtoul(len + 1, NULL, 10), lens[i]);
        CHECK_INT(probes[i].outcome, STORE_DONE);
    }
    CHECK(memcmp(redis_ask(redis, "LINDEX k 5"), large, 256) == 0);
}

TEST_STORE(as_many_arguments_as_are_allowed_arrive_with_and_without_keys_alone_and_in_a_batch, 5000)
{
    struct bytes argv[STORE_ARGS_MAX];
    static const unsigned keys[] = {0, 1, 9, 10, STORE_ARGS_MAX};

    for (unsigned i = 0; i < STORE_ARGS_MAX; i++)
        argv[i] = BYTES("x");
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct probe probe = {.world = world, .call.done = probe_done};

        world->open++;
        store_run(world->store, &probe.call, &script_ECHO, keys[i], STORE_ARGS_MAX, argv);
        WAIT(world, probe.ends == 1, 2000);
        CHECK_INT(probe.count, STORE_ARGS_MAX - keys[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        probes[i] = (struct probe){.world = world, .call.done = probe_done};
        world->open++;
        store_run(world->store, &probes[i].call, &script_PUT, 1 + i * 20, STORE_ARGS_MAX, argv);
    }
    WAIT(world, world->open == 0, 5000);
    CHECK_TEXT(bytes_of(redis_ask(redis, "LLEN x")), BYTES(":3"));
}

/* A full Redis refuses the batch; each is asked alone, and the next ones from the beginning. */
TEST_STORE(a_full_redis_is_asked_for_each_of_a_batch_alone, 5000)
{
    static const struct row full[] = {
        {{4, "k", "a c"}, /* the batch itself is not counted: it was not begun */
         {{&script_PUT_ON_FULL, "k", "a", STORE_DONE, "put"},
          {&script_GET, "k", "0", STORE_DONE, "a"},
          {&script_PUT, "k", "b", STORE_NOT_SENT, NULL},
          {&script_PUT_ON_FULL, "k", "c", STORE_DONE, "put"}}},
        {{2, "k", "a b"},
         {{&script_PUT_ON_FULL, "k", "a", STORE_DONE, "put"},
          {&script_PUT_ON_FULL, "k", "b", STORE_DONE, "put"}}},
        /* Behind a later one nothing is sent again, and it is not for want of memory. */
        {{2, NULL, NULL},
         {{&script_PUT_ON_FULL, "k", "a", STORE_NOT_SENT, NULL},
          {&script_PUT_ON_FULL, "o", "b", STORE_DONE, "put"},
          {&script_SET_ON_FULL, "k", "c", STORE_DONE, NULL}}},
    };

    redis_does(redis, "CONFIG SET maxmemory 1");
    check_row(redis, world, &full[0]);
    CHECK(store_call_was_too_much(&probes[2].call) && !store_call_was_too_much(&probes[3].call));
    check_row(redis, world, &full[1]);
    world->store->link.alone_ms = 0;
    check_row(redis, world, &full[2]);
    CHECK(probes[0].call.refusal == NULL);
    redis_does(redis, "CONFIG SET maxmemory 0");
}

TEST_STORE(functions_that_are_gone_are_loaded_and_each_of_a_batch_called_once_more, 5000)
{
    static const struct row gone[] = {
        {{4, "k", "a b"},
         {{&script_PUT, "k", "a", STORE_DONE, "put"},
          {&script_PUT, "k", "b", STORE_DONE, "put"},
          {&script_GET, "k", "0", STORE_DONE, "a"}}},
        {{4, "o", "b"},
         {{&script_PUT, "k", "a", STORE_NOT_SENT, NULL},
          {&script_PUT, "o", "b", STORE_DONE, "put"},
          {&script_ECHO, "k", "c", STORE_DONE, "c"}}},
    };

    for (unsigned i = 0; i < 2; i++) {
        redis_does(redis, "FUNCTION FLUSH SYNC");
        check_row(redis, world, &gone[i]);
        CHECK_INT(store_counts(world->store).not_found, 3 + 3 * i);
    }
    CHECK_INT(store_counts(world->store).reconnects, 0);
}

TEST_STORE(what_a_redis_that_is_no_master_refuses_was_not_done_and_its_link_is_left, 5000)
{
    redis_does(redis, "REPLICAOF 127.0.0.1 1");
    for (unsigned i = 0; i < 3; i++)
        start(world, i, i == 1 ? &script_PUT_ON_FULL : &script_PUT, "k", "v");
    WAIT(world, world->open == 0, 5000);
    for (unsigned i = 0; i < 3; i++)
        CHECK(probes[i].ends == 1 && probes[i].outcome == STORE_NOT_SENT);
    CHECK(!store_link_stands(world->store));
    redis_does(redis, "REPLICAOF NO ONE");
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS k")), BYTES(":0"));
    WAIT(world, store_link_stands(world->store), 3000);
}

TEST_REDIS(an_answer_may_lead_to_a_call_that_comes_behind_the_batch_and_closing_ends_what_is_gathered)
{
    struct world world;

    world_open_on(&world, redis, 5000);
    for (unsigned i = 0; i < 3; i++) {
        start(&world, i, &script_PUT, "k", i == 0 ? "a" : i == 1 ? "b" : "c");
        probes[i].then = i == 0 ? put_once_more : NULL;
    }
    WAIT(&world, world.open == 0, 5000);
    CHECK_INT(probes[0].ends, 2);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EVAL \"return table.concat(redis.call('LRANGE','k',0,-1))\" 0")),
               BYTES("abca"));
    for (unsigned i = 0; i < 3; i++)
        start(&world, i, &script_PUT, "late", "v");
    world_close(&world);
    for (unsigned i = 0; i < 3; i++)
        CHECK(probes[i].ends == 1 && probes[i].outcome == STORE_NOT_SENT);
    CHECK_TEXT(bytes_of(redis_ask(redis, "EXISTS late")), BYTES(":0"));
}

CHECK_MAIN
