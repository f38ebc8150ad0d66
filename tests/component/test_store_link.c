/* test_store_link.c - which Redis is at the other end of the link, the how-manieth link it is, and when one
 * that still works is left. */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdatomic.h>

#include "tests/component/store_relay.h"

enum { STILL_COPY_MS = 1200 };

/* Good until the next one. */
static const char *run_id_of(struct redis *redis)
{
    char *at = strstr(redis_ask(redis, "INFO server"), "\r\nrun_id:");

    if (!CHECK(at != NULL))
        return "";
    at += strlen("\r\nrun_id:");
    at[strcspn(at, "\r")] = '\0';
    return at;
}

static void check_no_link(const struct world *world, uint64_t number)
{
    CHECK(!store_link_stands(world->store));
    CHECK_INT(store_link_number(world->store), number);
    CHECK_TEXT(bytes_of(store_run_id(world->store)), BYTES(""));
}

static void check_link(const struct world *world, struct redis *redis, uint64_t number)
{
    CHECK(store_link_stands(world->store));
    CHECK_INT(store_link_number(world->store), number);
    CHECK_INT(strlen(store_run_id(world->store)), STORE_RUN_ID_LEN);
    CHECK_TEXT(bytes_of(store_run_id(world->store)), bytes_of(run_id_of(redis)));
}

static bool fails(const struct world *world, const char *wanted)
{
    const char *detail;

    return bytes_are(bytes_of(store_not_ready(world->store, &detail)), wanted);
}

static bool tells(const struct world *world, const char *what)
{
    const char *detail = "";

    store_not_ready(world->store, &detail);
    return strstr(detail, what) != NULL;
}

static void open_url(struct world *world, const char *url, bool allow_unsafe)
{
    world_open(world,
               &(struct store_options){
                   .url = url, .timeout_ms = 1000, .allow_unsafe = allow_unsafe, .library = &test_library});
}

TEST_REDIS(each_link_knows_the_run_id_of_its_redis_before_calls_are_taken)
{
    struct world world;
    char before[STORE_RUN_ID_LEN + 1];
    uint64_t since_us;

    for (unsigned i = 0; i < 2; i++) {
        open_url(&world, redis->url, i == 0);
        check_no_link(&world, 0);
        CHECK_INT(store_link_since_us(world.store), 0);
        WAIT(&world, world_ready(&world), 2000);
        check_link(&world, redis, 1);
        since_us = store_link_since_us(world.store);
        CHECK(since_us > 0 && since_us <= loop_now_us());
        snprintf(before, sizeof(before), "%s", store_run_id(world.store));
        redis_kill(redis);
        WAIT(&world, !store_link_stands(world.store), 2000);
        check_no_link(&world, 1);
        CHECK_INT(store_link_since_us(world.store), since_us);
        uint64_t returned_us = loop_now_us();
        redis_run(redis, NULL);
        WAIT(&world, store_link_stands(world.store), 3000);
        check_link(&world, redis, 2);
        CHECK(store_link_since_us(world.store) > returned_us);
        CHECK(strcmp(before, store_run_id(world.store)) != 0);
        CHECK_INT(store_counts(world.store).reconnects, 1);
        world_close(&world);
    }
}

/* A resolver that knows a name only when the other end of a pipe is closed, and gives up on it after a while.
 * At the first of its addresses there is nobody. Another name it finds, later than a link waits. */
enum { SLOW_MS = 20000, LATE_MS = 2500 };
static const char mute_address[] = "127.0.8.2"; /* other programs' clients come from 127.0.0.2 */
static int resolver[2];
static atomic_bool has_given_up;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct pollfd may = {.fd = resolver[0], .events = POLLIN};

    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "late.example") == 0 && (hints->ai_flags & AI_NUMERICHOST) == 0)
        return poll(NULL, 0, LATE_MS) == 0 ? next("127.0.0.1", port, hints, list) : EAI_AGAIN;
    if (strcmp(host, "slow.example") != 0 || hints->ai_flags & AI_NUMERICHOST)
        return next(host, port, hints, list);
    if (poll(&may, 1, SLOW_MS) != 1) {
        atomic_store(&has_given_up, true);
        return EAI_AGAIN;
    }
    CHECK_INT(next(mute_address, port, hints, list), 0);
    return next("127.0.0.1", port, hints, &(*list)->ai_next);
}

TEST_REDIS(a_resolver_that_does_not_answer_holds_up_nobody_and_the_link_is_made_when_it_does)
{
    struct world world;

    CHECK(pipe2(resolver, O_CLOEXEC) == 0);
    open_url(&world, textf("redis://slow.example:%u", redis->port), true);
    WAIT(&world, tells(&world, "its name is not found in 1000 ms"), 15000);
    CHECK(!atomic_load(&has_given_up));
    close(resolver[1]);
    WAIT(&world, world_ready(&world), 15000);
    check_link(&world, redis, 1);
    world_close(&world);
    close(resolver[0]);
}

TEST_REDIS(a_name_that_is_found_later_than_a_link_must_be_made_leads_to_one_all_the_same)
{
    struct world world;
    const char *url = textf("redis://late.example:%u", redis->port);

    open_url(&world, url, true);
    WAIT(&world, world_ready(&world), 30000);
    check_link(&world, redis, 1);
    world_close(&world);
    open_url(&world, url, true);
    WAIT(&world, tells(&world, "its name is not found in 1000 ms"), 15000);
    world_close(&world);
}

static void found_nothing(struct loop_lookup *lookup, const struct addrinfo *list, const char *why)
{
    (void)lookup;
    CHECK(list == NULL && why != NULL);
}

TEST_REDIS(names_that_are_not_found_keep_nobody_from_another)
{
    struct world world;
    struct loop *others = loop_new();
    struct loop_lookup lookups[8] = {{.impl = NULL}};

    CHECK(pipe2(resolver, O_CLOEXEC) == 0);
    atomic_store(&has_given_up, false);
    for (unsigned i = 0; i < 8; i++)
        CHECK(loop_lookup_begin(others, &lookups[i], "slow.example", 1, found_nothing) == NULL);
    open_url(&world, textf("redis://late.example:%u", redis->port), true);
    WAIT(&world, world_ready(&world), 19000);
    CHECK(!atomic_load(&has_given_up));
    for (unsigned i = 0; i < 8; i++)
        loop_lookup_end(&lookups[i]);
    close(resolver[1]);
    world_close(&world);
    loop_free(others);
    close(resolver[0]);
}

/* Whoever connects waits, and is not refused: its queue is full. */
static void open_mute(int fds[8], unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    CHECK_INT(inet_pton(AF_INET, mute_address, &at.sin_addr), 1);
    for (unsigned i = 0; i < 8; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (i > 0 ? SOCK_NONBLOCK : 0), 0);
    CHECK(bind(fds[0], (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fds[0], 0) == 0);
    for (unsigned i = 1; i < 8; i++)
        connect(fds[i], (struct sockaddr *)&at, sizeof(at));
}

TEST_REDIS(an_address_of_a_name_that_says_nothing_does_not_keep_from_the_next)
{
    struct world world;
    int fds[8];

    CHECK(pipe2(resolver, O_CLOEXEC) == 0);
    close(resolver[1]);
    open_mute(fds, redis->port);
    open_url(&world, textf("redis://slow.example:%u", redis->port), true);
    WAIT(&world, world_ready(&world), 30000);
    check_link(&world, redis, 1);
    world_close(&world);
    for (unsigned i = 0; i < 8; i++)
        close(fds[i]);
    close(resolver[0]);
}

TEST_REDIS(a_redis_that_may_not_be_asked_for_its_run_id_is_not_used)
{
    struct world world;

    for (unsigned i = 0; i < 2; i++) {
        redis_does(redis, "ACL SETUSER pawl on >pw ~* +@all -info");
        open_url(&world, textf("redis://pawl:pw@127.0.0.1:%u", redis->port), i == 0);
        WAIT(&world, fails(&world, "store-refused"), 2000);
        CHECK(tells(&world, "refuses INFO server, which tells its run_id: NOPERM"));
        check_no_link(&world, 0);
        CHECK_INT(probe_once(&world, &script_SET, "k", "v").outcome, STORE_NOT_SENT);
        redis_does(redis, "ACL SETUSER pawl +info");
        WAIT(&world, world_ready(&world), 2000);
        check_link(&world, redis, 1);
        world_close(&world);
    }
}

TEST_RELAY(a_redis_without_a_run_id_is_not_used, 1000, true)
{
    static const char cut[] = "run_id:", other[] = "ran_id:";
    char run_id[STORE_RUN_ID_LEN + 1], no_digit[STORE_RUN_ID_LEN + 1], too_short[STORE_RUN_ID_LEN + 1];

    snprintf(run_id, sizeof(run_id), "%s", store_run_id(world->store));
    snprintf(no_digit, sizeof(no_digit), "g%s", run_id + 1);
    snprintf(too_short, sizeof(too_short), "\n%s", run_id + 1);
    too_short[0] = run_id[0];
    too_short[STORE_RUN_ID_LEN - 1] = '\n';
    const char *const replace[] = {cut, run_id, run_id}, *const with[] = {other, no_digit, too_short};
    for (unsigned i = 0; i < 3; i++) {
        relay->replace = replace[i];
        relay->with = with[i];
        relay_hang_up(relay);
        WAIT(world, fails(world, "store-refused"), 2000);
        CHECK(tells(world, "INFO server tells no run_id of 40 hexadecimal digits"));
        check_no_link(world, i + 1);
        CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_NOT_SENT);
        relay->replace = NULL;
        WAIT(world, world_ready(world), 2000);
        check_link(world, redis, i + 2);
    }
}

/* -- a Redis that is no master any more */

struct later {
    struct probe first, later;
    bool stood;
};

static void ask_later(struct probe *probe, const struct store_reply *reply)
{
    struct later *later = container_of(probe, struct later, first);

    (void)reply;
    later->stood = store_link_stands(probe->world->store) || *store_run_id(probe->world->store) != '\0';
    probe_start(probe->world, &later->later, &script_ECHO, "later", "v");
}

TEST_STORE(a_redis_that_became_a_copy_is_greeted_anew_when_its_replies_are_taken, 2000)
{
    struct later ask = {.first = {.then = ask_later}, .stood = true};
    struct probe second = {0}, reads = {0};

    redis_does(redis, "REPLICAOF 127.0.0.1 1");
    probe_start(world, &ask.first, &script_SET, "k1", "v");
    probe_start(world, &second, &script_SET, "k2", "v");
    probe_start(world, &reads, &script_ECHO, "k3", "v");
    WAIT(world, world->open == 0, 2000);
    CHECK_INT(ask.first.outcome, STORE_NOT_SENT);
    CHECK_INT(second.outcome, STORE_NOT_SENT);
    CHECK_INT(reads.outcome, STORE_NOT_SENT); /* it might write */
    CHECK(!ask.stood && ask.later.ends == 1 && ask.later.outcome == STORE_NOT_SENT);
    check_no_link(world, 1);
    CHECK(fails(world, "store-refused") && tells(world, "READONLY"));
    redis_does(redis, "REPLICAOF NO ONE");
    WAIT(world, world_ready(world), 2000);
    check_link(world, redis, 2);
    CHECK_INT(probe_once(world, &script_SET, "k1", "v").outcome, STORE_DONE);
    CHECK_INT(store_link_number(world->store), 2);
}

TEST_STORE(a_script_that_a_left_redis_has_forgotten_is_not_sent_again, 2000)
{
    struct probe refused = {0}, forgotten = {0};

    redis_does(redis, "FUNCTION FLUSH");
    CHECK_TEXT(
        bytes_of(redis_ask(redis, "FUNCTION LOAD \"#!lua name=one\\nredis.register_function('test_SET', "
                                  "function() end)\"")),
        BYTES("one"));
    redis_does(redis, "REPLICAOF 127.0.0.1 1");
    probe_start(world, &refused, &script_SET, "k", "v");
    probe_start(world, &forgotten, &script_ECHO, "k", "v");
    WAIT(world, world->open == 0, 2000);
    CHECK_INT(refused.outcome, STORE_NOT_SENT);
    CHECK_INT(forgotten.outcome, STORE_NOT_SENT);
    CHECK_INT(store_counts(world->store).not_found, 0);
    check_no_link(world, 1);
}

TEST_STORE(calls_that_have_no_reply_yet_when_a_redis_is_left_end_truly, 2000)
{
    struct probe refused = {0}, left = {0}, kept = {0};
    int status = 0;

    redis_does(redis, "REPLICAOF 127.0.0.1 1");
    probe_start(world, &refused, &script_SET, "k1", "v");
    store_turn_end(&world->store->turn_end);
    redis_ask(redis, "PING"); /* the second is answered when the refusal has been */
    redis_ask(redis, "PING");
    kill(redis->pid, SIGSTOP);
    CHECK_INT(waitpid(redis->pid, &status, WUNTRACED), redis->pid);
    probe_start(world, &left, &script_SET, "k2", "v");
    store_turn_end(&world->store->turn_end);
    probe_start(world, &kept, &script_SET, "k3", "v");
    link_read(world->store);
    CHECK(refused.ends == 1 && refused.outcome == STORE_NOT_SENT);
    CHECK(left.ends == 0 && kept.ends == 0); /* later, as ever */
    CHECK_INT(world->store->link.state, LINK_WAITING);
    loop_turn(world->loop, 1);
    CHECK(left.ends == 1 && left.outcome == STORE_UNKNOWN);
    CHECK(kept.ends == 1 && kept.outcome == STORE_NOT_SENT);
    kill(redis->pid, SIGCONT);
}

TEST_STORE(a_redis_that_stays_a_copy_is_not_greeted_in_a_hurry, 2000)
{
    redis_does(redis, "REPLICAOF 127.0.0.1 1");
    uint64_t till_ms = loop_now_ms() + STILL_COPY_MS;
    while (loop_now_ms() < till_ms) {
        struct probe probe = probe_once(world, &script_SET, "k", "v");
        CHECK_INT(probe.outcome, STORE_NOT_SENT);
    }
    /* The pauses last at least 10, 20, 40, 80, 160, 250, 250, 250 and 250 ms. */
    CHECK(world->store->link.attempts >= 4 && world->store->link.attempts <= 9);
    CHECK_INT(store_link_number(world->store), 1);
    CHECK(fails(world, "store-replica") && tells(world, "this is a replica of 127.0.0.1:1"));
    redis_does(redis, "REPLICAOF NO ONE");
    WAIT(world, world_ready(world), 2000);
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_DONE);
}

TEST_STORE_AS(a_redis_that_loads_its_data_again_is_left, 2000, "--appendonly", "no", "--rdbcompression", "no",
              "--loading-process-events-interval-bytes", "1024")
{
    uint64_t till_ms = loop_now_ms() + 5000;

    /* Of an RDB file Redis loads 1 KiB at a time, 20 ms here, and answers in between. */
    redis_ask(redis, "EVAL 'for i = 1, 300 do redis.call(\"SET\", i, string.rep(\"x\", 100)) end' 0");
    redis_does(redis, "CONFIG SET key-load-delay 2000");
    redis_tell(redis, "DEBUG RELOAD");
    while (probe_once(world, &script_SET, "k", "v").outcome == STORE_DONE && loop_now_ms() < till_ms) {
    }
    check_no_link(world, 1);
    CHECK(fails(world, "store-loading") && tells(world, "LOADING"));
    WAIT(world, world_ready(world), 5000);
    CHECK_INT(store_link_number(world->store), 2);
    CHECK_INT(probe_once(world, &script_SET, "k", "v").outcome, STORE_DONE);
    CHECK_INT(store_counts(world->store).unknown, 0);
}

TEST(the_longest_pause_between_attempts_is_half_a_second)
{
    struct world world;

    open_url(&world, "unix:///nowhere/at/all", true);
    world.store->link.attempts = 20;
    uint64_t began_ms = 0, waited_before_ms = 0;
    for (unsigned turns = 0; turns < 1000 && world.store->link.attempts < 21; turns++) {
        began_ms = loop_now_ms();
        waited_before_ms = waited_ms();
        waited_turn(world.loop, 2);
    }
    CHECK_INT(world.store->link.attempts, 21);
    WAIT(&world, world.store->link.attempts == 24, 4000);
    /* three of them, each from a half to the whole */
    CHECK(loop_now_ms() - began_ms >= 3 * 250 && waited_ms() - waited_before_ms <= 3 * 560);
    world_close(&world);
}

CHECK_MAIN_AT_ONCE(4)
