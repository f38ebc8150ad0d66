/* test_store_batch.c - the calls of a turn as one: what goes together, and how each of them ends. */
#include "tests/component/store_world.h"

enum { MANY = 200, ROW = 5 };

struct batch_world {
    struct redis redis;
    struct world world;
    struct probe probes[MANY];
};

static void batch_world_open(struct batch_world *batch)
{
    redis_start(&batch->redis, NULL);
    world_open_on(&batch->world, &batch->redis, 5000);
}

static void batch_world_close(struct batch_world *batch)
{
    world_close(&batch->world);
    redis_stop(&batch->redis);
}

/* How many FCALLs Redis has had. */
static unsigned long fcalls(struct batch_world *batch)
{
    const char *told = strstr(redis_ask(&batch->redis, "INFO commandstats"), "cmdstat_fcall:calls=");

    return told != NULL ? strtoul(told + strlen("cmdstat_fcall:calls="), NULL, 10) : 0;
}

static void start(struct batch_world *batch, unsigned i, const struct store_script *script, const char *key,
                  const char *value)
{
    batch->probes[i] = (struct probe){0};
    probe_start(&batch->world, &batch->probes[i], script, key, value);
}

static void all_end(struct batch_world *batch)
{
    WAIT(&batch->world, batch->world.open == 0, 5000);
}

/* In one turn; at most ROW. */
struct row {
    struct {
        const struct store_script *script;
        const char *key, *value;
        enum store_outcome outcome;
        const char *text; /* the first word of its reply; NULL: none */
    } calls[ROW];
    unsigned fcalls;        /* that it takes */
    const char *key, *list; /* what stands there then, by what LRANGE tells of it */
};

static void check_row(struct batch_world *batch, const struct row *row)
{
    unsigned long before;

    redis_ask(&batch->redis, "FLUSHALL");
    before = fcalls(batch);
    for (unsigned i = 0; i < ROW && row->calls[i].script != NULL; i++)
        start(batch, i, row->calls[i].script, row->calls[i].key, row->calls[i].value);
    all_end(batch);
    CHECK_INT(fcalls(batch) - before, row->fcalls);
    for (unsigned i = 0; i < ROW && row->calls[i].script != NULL; i++) {
        const struct probe *probe = &batch->probes[i];

        CHECK_INT(probe->ends, 1);
        CHECK_INT(probe->outcome, row->calls[i].outcome);
        CHECK(row->calls[i].text == NULL || strcmp(probe->text, row->calls[i].text) == 0);
    }
    if (row->key != NULL) {
        const char *list = redis_askf(
            &batch->redis, "EVAL \"return table.concat(redis.call('LRANGE','%s',0,-1),' ')\" 0", row->key);

        CHECK_TEXT(bytes_of(list), bytes_of(row->list));
    }
}

static const struct row rows[] = {
    /* One leaves as it is, and so in its place does one that may not be batched. */
    {{{&script_LATER, "k", "a", STORE_DONE, "ran"}}, 1, "k", "a"},
    {{{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_PUT, "k", "b", STORE_DONE, "put"},
      {&script_GET, "k", "-1", STORE_DONE, "b"}},
     1,
     "k",
     "a b"},
    {{{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_PUT, "k", "b", STORE_DONE, "put"},
      {&script_ECHO, "k", "c", STORE_DONE, "c"},
      {&script_PUT, "k", "d", STORE_DONE, "put"},
      {&script_GET, "k", "-1", STORE_DONE, "d"}},
     3,
     "k",
     "a b d"},
    /* One that fails fails alone; it has written, whatever it says. */
    {{{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_FAIL, "k", "OOM command not allowed", STORE_UNKNOWN, NULL},
      {&script_FAIL, "k", "ERR Function not found", STORE_UNKNOWN, NULL},
      {&script_FAIL, "k", "LOADING", STORE_UNKNOWN, NULL},
      {&script_PUT, "k", "b", STORE_DONE, "put"}},
     1,
     "k",
     "a half half half b"},
    /* Nobody knows of any when the whole ends so, though its words are those of a refusal. */
    {{{&script_PUT, "k", "a", STORE_UNKNOWN, NULL},
      {&script_WHOLE, "k", "OOM no", STORE_UNKNOWN, NULL},
      {&script_PUT, "k", "b", STORE_UNKNOWN, NULL}},
     1,
     "k",
     "a"},
    {{{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_SHORT, "k", "", STORE_UNKNOWN, NULL},
      {&script_PUT, "k", "b", STORE_UNKNOWN, NULL}},
     1,
     "k",
     "a"},
    /* What did not run runs alone, but not behind a later one. */
    {{{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_LATER, "k", "b", STORE_DONE, "ran"},
      {&script_LATER, "k", "c", STORE_DONE, "ran"}},
     3,
     "k",
     "a b c"},
    {{{&script_PUT, "k", "a", STORE_DONE, "put"},
      {&script_LATER, "k", "b", STORE_NOT_SENT, NULL},
      {&script_LATER, "o", "c", STORE_DONE, "ran"},
      {&script_ECHO, "k", "d", STORE_DONE, "d"}},
     3,
     "k",
     "a"},
};

#define TEST_BATCH(sentence)                                                                                 \
    TEST_WITH(sentence, struct batch_world, batch, batch_world_open(batch), batch_world_close(batch))

TEST_BATCH(the_calls_of_a_turn_go_as_one_in_their_order_and_each_gets_its_own_answer)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(batch, &rows[i]);
    CHECK_INT(store_counts(batch->world.store).reconnects, 0);
    CHECK_INT(store_counts(batch->world.store).in_flight, 0);
}

/* An idle Redis gets the first sixteen at once, and whole batches while it is at work. How many there are
 * while the kernel takes nothing must not make a batch larger than Redis may be held up. */
TEST_BATCH(two_hundred_calls_are_batches_of_sixteen_or_of_thirty_two_that_answer_in_order)
{
    for (unsigned blocked = 0; blocked < 2; blocked++) {
        unsigned long before = fcalls(batch);

        redis_ask(&batch->redis, "FLUSHALL");
        batch->world.store->dial.blocked = blocked == 1;
        for (unsigned i = 0; i < MANY; i++) {
            start(batch, i, &script_PUT, "k", "v");
            CHECK_INT(batch->world.store->link.unflushed, blocked == 1 ? i + 1
                                                          : i < 15     ? i + 1
                                                                       : (i - 15) % 32);
        }
        batch->world.store->dial.blocked = false;
        all_end(batch);
        CHECK_INT(fcalls(batch) - before, 7);
        for (unsigned i = 0; i < MANY; i++)
            CHECK(batch->probes[i].ends == 1 && batch->probes[i].outcome == STORE_DONE);
        CHECK_TEXT(bytes_of(redis_ask(&batch->redis, "LLEN k")), BYTES(":200"));
    }
    CHECK_INT(store_counts(batch->world.store).calls, 2 * MANY);
    CHECK_INT(store_counts(batch->world.store).done, 2 * MANY);
}

/* Every length at which MessagePack changes its form. */
TEST_BATCH(every_byte_and_length_travels_unchanged_in_a_batch)
{
    static const unsigned lens[] = {0, 1, 31, 32, 255, 256, 65535, 65536, 100000};
    static char large[100000];

    for (unsigned i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 7);
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        batch->probes[i] = (struct probe){.argv = {BYTES("k"), {large, lens[i]}}};
        probe_run(&batch->world, &batch->probes[i], &script_PUT, 1, 2);
    }
    all_end(batch);
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        const char *len = redis_askf(&batch->redis, "EVAL \"return #redis.call('LINDEX','k',%u)\" 0", i);

        CHECK_INT(strtoul(len + 1, NULL, 10), lens[i]);
        CHECK_INT(batch->probes[i].outcome, STORE_DONE);
    }
    CHECK(memcmp(redis_ask(&batch->redis, "LINDEX k 5"), large, 256) == 0);
}

TEST_BATCH(as_many_arguments_as_are_allowed_arrive_in_a_batch)
{
    struct bytes argv[STORE_ARGS_MAX];

    for (unsigned i = 0; i < STORE_ARGS_MAX; i++)
        argv[i] = BYTES("x");
    for (unsigned i = 0; i < 3; i++) {
        batch->probes[i] = (struct probe){.world = &batch->world, .call.done = probe_done};
        batch->world.open++;
        store_run(batch->world.store, &batch->probes[i].call, &script_PUT, 1 + i * 20, STORE_ARGS_MAX, argv);
    }
    all_end(batch);
    CHECK_TEXT(bytes_of(redis_ask(&batch->redis, "LLEN x")), BYTES(":3"));
}

/* A full Redis refuses the batch; each is asked alone, and the next ones from the beginning. */
TEST_BATCH(a_full_redis_is_asked_for_each_of_a_batch_alone)
{
    static const struct row full[] = {
        {{{&script_PUT_ON_FULL, "k", "a", STORE_DONE, "put"},
          {&script_GET, "k", "0", STORE_DONE, "a"},
          {&script_PUT, "k", "b", STORE_NOT_SENT, NULL},
          {&script_PUT_ON_FULL, "k", "c", STORE_DONE, "put"}},
         4, /* the batch itself is not counted: it was not begun */
         "k",
         "a c"},
        {{{&script_PUT_ON_FULL, "k", "a", STORE_DONE, "put"},
          {&script_PUT_ON_FULL, "k", "b", STORE_DONE, "put"}},
         2,
         "k",
         "a b"},
        /* Behind a later one nothing is sent again, and it is not for want of memory. */
        {{{&script_PUT_ON_FULL, "k", "a", STORE_NOT_SENT, NULL},
          {&script_PUT_ON_FULL, "o", "b", STORE_DONE, "put"},
          {&script_SET_ON_FULL, "k", "c", STORE_DONE, NULL}},
         2,
         NULL,
         NULL},
    };

    redis_does(&batch->redis, "CONFIG SET maxmemory 1");
    check_row(batch, &full[0]);
    CHECK(store_call_was_too_much(&batch->probes[2].call) &&
          !store_call_was_too_much(&batch->probes[3].call));
    check_row(batch, &full[1]);
    batch->world.store->link.alone_ms = 0;
    check_row(batch, &full[2]);
    CHECK(batch->probes[0].call.refusal == NULL);
    redis_does(&batch->redis, "CONFIG SET maxmemory 0");
}

TEST_BATCH(functions_that_are_gone_are_loaded_and_each_of_a_batch_called_once_more)
{
    static const struct row gone[] = {
        {{{&script_PUT, "k", "a", STORE_DONE, "put"},
          {&script_PUT, "k", "b", STORE_DONE, "put"},
          {&script_GET, "k", "0", STORE_DONE, "a"}},
         4,
         "k",
         "a b"},
        {{{&script_PUT, "k", "a", STORE_NOT_SENT, NULL},
          {&script_PUT, "o", "b", STORE_DONE, "put"},
          {&script_ECHO, "k", "c", STORE_DONE, "c"}},
         4,
         "o",
         "b"},
    };

    for (unsigned i = 0; i < 2; i++) {
        redis_does(&batch->redis, "FUNCTION FLUSH SYNC");
        check_row(batch, &gone[i]);
        CHECK_INT(store_counts(batch->world.store).not_found, 3 + 3 * i);
    }
    CHECK_INT(store_counts(batch->world.store).reconnects, 0);
}

TEST_BATCH(what_a_redis_that_is_no_master_refuses_was_not_done_and_its_link_is_left)
{
    redis_does(&batch->redis, "REPLICAOF 127.0.0.1 1");
    for (unsigned i = 0; i < 3; i++)
        start(batch, i, i == 1 ? &script_PUT_ON_FULL : &script_PUT, "k", "v");
    all_end(batch);
    for (unsigned i = 0; i < 3; i++)
        CHECK(batch->probes[i].ends == 1 && batch->probes[i].outcome == STORE_NOT_SENT);
    CHECK(!store_link_stands(batch->world.store));
    redis_does(&batch->redis, "REPLICAOF NO ONE");
    CHECK_TEXT(bytes_of(redis_ask(&batch->redis, "EXISTS k")), BYTES(":0"));
    WAIT(&batch->world, store_link_stands(batch->world.store), 3000);
}

static void put_once_more(struct probe *probe, const struct store_reply *reply)
{
    (void)reply;
    if (probe->ends == 1)
        probe_run(probe->world, probe, &script_PUT, 1, 2);
}

TEST(an_answer_may_lead_to_a_call_that_comes_behind_the_batch_and_closing_ends_what_is_gathered)
{
    static struct batch_world batch;

    batch_world_open(&batch);
    for (unsigned i = 0; i < 3; i++) {
        start(&batch, i, &script_PUT, "k", i == 0 ? "a" : i == 1 ? "b" : "c");
        batch.probes[i].then = i == 0 ? put_once_more : NULL;
    }
    all_end(&batch);
    CHECK_INT(batch.probes[0].ends, 2);
    CHECK_TEXT(
        bytes_of(redis_ask(&batch.redis, "EVAL \"return table.concat(redis.call('LRANGE','k',0,-1))\" 0")),
        BYTES("abca"));
    for (unsigned i = 0; i < 3; i++)
        start(&batch, i, &script_PUT, "late", "v");
    world_close(&batch.world);
    for (unsigned i = 0; i < 3; i++)
        CHECK(batch.probes[i].ends == 1 && batch.probes[i].outcome == STORE_NOT_SENT);
    CHECK_TEXT(bytes_of(redis_ask(&batch.redis, "EXISTS late")), BYTES(":0"));
    redis_stop(&batch.redis);
}

CHECK_MAIN
