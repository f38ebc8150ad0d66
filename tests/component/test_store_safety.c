/* test_store_safety.c - every setting that can lose locks is found and named, at start and when it is
 * changed. */
#include "tests/component/store_relay.h"

enum { LOOK_MS = 15 };

static const struct {
    const char *spoil, *mend, *told;
} settings[] = {
    {"CONFIG SET maxmemory-policy allkeys-lru", "CONFIG SET maxmemory-policy noeviction",
     "maxmemory-policy is allkeys-lru, must be noeviction"},
    {"CONFIG SET appendfsync everysec", "CONFIG SET appendfsync always",
     "appendfsync is everysec, must be always"},
    {"CONFIG SET no-appendfsync-on-rewrite yes", "CONFIG SET no-appendfsync-on-rewrite no",
     "no-appendfsync-on-rewrite is yes, must be no"},
    {"CONFIG SET aof-load-truncated yes", "CONFIG SET aof-load-truncated no",
     "aof-load-truncated is yes, must be no"},
    {"CONFIG SET appendonly no", "CONFIG SET appendonly yes", "appendonly is no, must be yes"},
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static void open_looking(struct world *world, const char *url)
{
    world_open(world, &(struct store_options){.url = url, .timeout_ms = 1000, .library = &test_library});
    store_look_every(world->store, LOOK_MS);
    CHECK(!store_checked(world->store));
    WAIT(world, store_checked(world->store) && world_ready(world), 2000);
}

static bool tells(const struct world *world, const char *told)
{
    const char *unsafe = store_unsafe(world->store);

    return unsafe != NULL ? told != NULL && strstr(unsafe, told) != NULL : told == NULL;
}

static void check_told(struct world *world, const char *told)
{
    const char *detail = NULL;

    WAIT(world, tells(world, told), 3000);
    if (!tells(world, told)) {
        printf("# told: %s\n", store_unsafe(world->store) != NULL ? store_unsafe(world->store) : "nothing");
        return;
    }
    CHECK_TEXT(bytes_of(store_not_ready(world->store, &detail)),
               bytes_of(told != NULL ? "store-unsafe" : NULL));
    CHECK(detail != NULL && (told == NULL || strcmp(detail, store_unsafe(world->store)) == 0));
}

TEST_REDIS(all_bad_settings_are_named_at_once_at_start_and_calls_are_taken_all_the_same)
{
    struct world world;

    for (unsigned i = 0; i < SETTINGS; i++)
        redis_does(redis, settings[i].spoil);
    open_looking(&world, redis->url);
    for (unsigned i = 0; i < SETTINGS; i++)
        CHECK(tells(&world, settings[i].told));
    CHECK(!tells(&world, "aof_enabled"));
    CHECK_INT(probe_once(&world, &script_ECHO, "k", "v").outcome, STORE_DONE);
    redis_ask(redis, settings[0].mend);
    WAIT(&world, !tells(&world, settings[0].told), 2000);
    CHECK(tells(&world, settings[1].told));
    world_close(&world);
}

TEST_REDIS(a_setting_changed_for_the_worse_is_found_and_mended_is_forgotten)
{
    struct world world;

    open_looking(&world, redis->url);
    check_told(&world, NULL);
    for (unsigned i = 0; i < SETTINGS; i++) {
        redis_ask(redis, settings[i].spoil);
        check_told(&world, settings[i].told);
        redis_ask(redis, settings[i].mend);
        check_told(&world, NULL);
    }
    CHECK_INT(store_counts(world.store).reconnects, 0);
    world_close(&world);
}

TEST_STORE_AS(with_allow_unsafe_nothing_is_looked_at, 1000, "--appendonly", "no", "--appendfsync", "no")
{
    CHECK(store_unsafe(world->store) == NULL && store_checked(world->store));
    CHECK(strstr(redis_ask(redis, "INFO commandstats"), "cmdstat_config") == NULL);
}

/* A rewrite of five keys that takes half a second. */
static void slow_rewrites(struct redis *redis)
{
    redis_ask(redis, "EVAL 'for i = 1, 5 do redis.call(\"SET\", i, i) end' 0");
    redis_does(redis, "CONFIG SET rdb-key-save-delay 100000");
}

static const char first_rewrite[] =
    "appendonly is yes, but its first rewrite is not over, must be rewritten first";

TEST_REDIS_AS(until_its_first_rewrite_is_over_the_append_only_file_does_not_count, "--appendonly", "no")
{
    struct world world;

    slow_rewrites(redis);
    open_looking(&world, redis->url);
    check_told(&world, "appendonly is no");
    redis_ask(redis, "CONFIG SET appendonly yes");
    check_told(&world, first_rewrite);
    world_close(&world);
    open_looking(&world, redis->url); /* also seen for the first time in the middle of it */
    CHECK(tells(&world, first_rewrite));
    check_told(&world, NULL);
    CHECK(strstr(redis_ask(redis, "INFO persistence"), "aof_rewrite_in_progress:0") != NULL);
    /* Switched off and on again it has a base, but an old one. */
    redis_ask(redis, "CONFIG SET appendonly no");
    check_told(&world, "appendonly is no");
    redis_ask(redis, "CONFIG SET appendonly yes");
    check_told(&world, first_rewrite);
    check_told(&world, NULL);
    world_close(&world);
}

TEST_REDIS(a_later_rewrite_is_nothing_bad)
{
    struct world world;

    slow_rewrites(redis);
    open_looking(&world, redis->url);
    check_told(&world, NULL);
    redis_ask(redis, "BGREWRITEAOF");
    while (strstr(redis_ask(redis, "INFO persistence"), "aof_rewrite_in_progress:1") != NULL) {
        loop_turn(world.loop, 5);
        CHECK(store_unsafe(world.store) == NULL);
    }
    world_close(&world);
    redis_ask(redis, "BGREWRITEAOF"); /* now there is a base: good also for one who comes in the middle */
    open_looking(&world, redis->url);
    CHECK(strstr(redis_ask(redis, "INFO persistence"), "aof_rewrite_in_progress:1") != NULL);
    CHECK(store_unsafe(world.store) == NULL);
    world_close(&world);
}

/* Whatever is allowed; the others that can be no store are real ones in tests/service/test_replica.py. */
TEST_REDIS(to_a_replica_no_link_stands_until_it_is_promoted)
{
    struct world world;
    const char *detail = NULL;

    redis_ask(redis, "REPLICAOF 127.0.0.1 1");
    world_open_at(&world, redis->url, 1000);
    WAIT(&world, store_misled(world.store) != NULL, 2000);
    CHECK_TEXT(bytes_of(store_not_ready(world.store, &detail)), BYTES("store-replica"));
    CHECK(strstr(detail, "this is a replica of 127.0.0.1:1.") != NULL);
    CHECK_INT(store_link_number(world.store), 0);
    redis_ask(redis, "REPLICAOF NO ONE");
    WAIT(&world, store_link_stands(world.store), 2000);
    CHECK(store_misled(world.store) == NULL);
    world_close(&world);
}

/* What no Redis can be brought to say in a test: the relay says it. */
static const struct {
    const char *replace, *with, *told;
} states[] = {
    {"aof_last_write_status:ok", "aof_last_write_status:er", "aof_last_write_status is er, must be ok"},
    {"aof_enabled:1", "aof_enabled:0", "aof_enabled is 0, must be 1"},
    {"aof_enabled:1", "aof_disable:1", "INFO persistence cannot be read (aof_enabled)"},
    {"\r\nappendfsync\r\n$6\r\nalways", "\r\nappendfsync\r\n:12345\r\n:7",
     "CONFIG GET appendfsync cannot be read"},
};

TEST_RELAY(what_redis_says_of_its_state_counts_beside_its_settings, 1000, false)
{
    store_look_every(world->store, LOOK_MS);
    for (unsigned i = 0; i < 3; i++) {
        relay->replace = states[i].replace;
        relay->with = states[i].with;
        check_told(world, states[i].told);
        relay->replace = NULL;
        check_told(world, NULL);
    }
    CHECK_INT(store_counts(world->store).reconnects, 0);
}

TEST_REDIS(settings_that_may_not_be_read_are_held_to_be_bad_and_break_nothing)
{
    struct world world;

    redis_does(redis, "ACL SETUSER pawl on >pw ~* +@all -config");
    open_looking(&world, textf("redis://pawl:pw@127.0.0.1:%u", redis->port));
    check_told(&world, "CONFIG GET maxmemory-policy cannot be read (NOPERM");
    CHECK_INT(probe_once(&world, &script_SET, "k", "v").outcome, STORE_DONE);
    redis_ask(redis, "ACL SETUSER pawl +config");
    check_told(&world, NULL);
    CHECK_INT(store_counts(world.store).reconnects, 0);
    world_close(&world);
}

TEST_REDIS_AS(a_busy_redis_keeps_the_verdict_of_before, "--busy-reply-threshold", "10")
{
    struct world world;

    open_looking(&world, redis->url);
    redis_make_busy(redis, 10000);
    WAIT(&world, world.store->safety.unread, 5000);
    CHECK(store_unsafe(world.store) == NULL);
    redis_end_script(redis);
    WAIT(&world, !world.store->safety.unread && world.store->safety.left == 0, 2000);
    CHECK(store_unsafe(world.store) == NULL);
    CHECK_INT(store_counts(world.store).reconnects, 0);
    world_close(&world);
}

TEST_REDIS(another_redis_in_the_same_place_is_looked_at_anew)
{
    struct world world;

    open_looking(&world, redis->url);
    check_told(&world, NULL);
    store_look_every(world.store, 60000);
    redis_kill(redis);
    redis_run(redis, (const char *const[]){"--appendfsync", "everysec", NULL});
    WAIT(&world, store_counts(world.store).reconnects == 1, 3000);
    CHECK(tells(&world, "appendfsync is everysec, must be always"));
    world_close(&world);
}

CHECK_MAIN
