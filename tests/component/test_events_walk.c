/* test_events_walk.c - those who listen to events, on a real Redis: what is heard while the store is asked,
 * accidents in each state, and every arrow of the drawing in stream.c. */
#include "tests/component/lease_world.h"
#include "tests/unit/drawing.h"

enum { ARROWS = 6, TIMEOUT_MS = 2000, SHORT_MS = 200, EARLY_BYTES = 64 * 1024, MANY = EVENT_HUB_KEPT + 50 };

static unsigned events_walked[EVENTS_STATES];

static void world_end(struct lease_world *world)
{
    for (unsigned i = 0; i < world->count; i++)
        for (unsigned from = 0; from < EVENTS_STATES; from++)
            events_walked[from] |= lease_worker_from(&world->instance[i].worker)->events_walked[from];
    lease_world_close(world);
}

#define TEST_WALK(sentence, instances)                                                                       \
    TEST_IN(sentence, struct lease_world *, world, lease_world_open(instances, TIMEOUT_MS), world_end(world))

static bool has_walked(const struct instance *instance, enum events_state from, enum events_state to)
{
    return lease_worker_from(&instance->worker)->events_walked[from] >> to & 1;
}

static int64_t listening(const struct instance *instance)
{
    return (int64_t)metric_total(instance->service.metrics, (unsigned)SERVICE_METRICS + COUNT_LISTENING);
}

/* In NDJSON. */
static void listen_to(struct asked *asked, struct instance *of, const char *query)
{
    char text[ASK_BYTES];
    int len = snprintf(text, sizeof(text),
                       "GET /v1/events%s HTTP/1.1\r\nHost: h\r\nAccept: application/x-ndjson\r\n\r\n", query);

    *asked = (struct asked){.of = of, .fd = loopback_open(of->port)};
    CHECK(send(asked->fd, text, (size_t)len, 0) == len);
}

/* How many times it has been told this. */
static unsigned told(struct asked *asked, const char *what)
{
    unsigned times = 0;

    asked_status(asked);
    for (const char *at = asked->answer; (at = strstr(at, what)) != NULL; at++)
        times++;
    return times;
}

/* Listens, and knows it. */
static void listen_well(struct asked *asked, struct instance *of, const char *query)
{
    listen_to(asked, of, query);
    LEASE_WAIT(of->world, told(asked, "\r\n\r\n1\r\n\n\r\n") == 1);
}

/* letter: of its lease_id, another one each time. */
static void in_and_out(struct instance *of, const char *lease, char letter)
{
    const char *who = textf("%c---------------------", letter);

    lease_take(of, lease, who);
    lease_release(of, lease, who);
}

static void leave(struct asked *asked)
{
    int64_t before = listening(asked->of);

    close(asked->fd);
    LEASE_WAIT(asked->of->world, listening(asked->of) == before - 1);
}

/* An item as Redis tells it. */
static void publish(struct lease_world *world, const char *lease, unsigned seq, unsigned reason_bytes)
{
    static char command[8192];
    int len = snprintf(command, sizeof(command), "PUBLISH pawl:e:%s \"%02x 1.%u.1\\trefused\\t1\\t\\t5\\t",
                       lease, keys_stripe_of(bytes_of(lease)), seq);

    memset(command + len, 'x', reason_bytes);
    snprintf(command + len + reason_bytes, 2, "\"");
    redis_ask(&world->redis, command);
}

/* -- what is heard while the store is asked */

/* Starts to listen to "busy" at the second instance and stops when the store has been asked; way: what does
 * not pass between that store and Redis from then on. The first stays. */
static void listen_and_stop(struct lease_world *world, struct asked *first, struct asked *asked, int way,
                            const char *query)
{
    struct instance *two = &world->instance[1];

    listen_well(first, two, "?lease=busy");
    relay_hold(&two->relay, way);
    listen_to(asked, two, query);
    LEASE_WAIT(world, has_walked(two, EVENTS_SUBSCRIBER, EVENTS_STORE) && listening(two) == 2);
}

TEST_WALK(what_is_heard_before_the_store_has_answered_is_told_behind_it, 2)
{
    struct asked first, asked;

    in_and_out(&world->instance[0], "busy", 'a');
    listen_and_stop(world, &first, &asked, RELAY_DOWN, "?lease=busy");
    LEASE_WAIT(world,
               strstr(redis_ask(&world->redis, "INFO commandstats"), "cmdstat_lrange:calls=4,") != NULL);
    in_and_out(&world->instance[0], "busy", 'b');
    LEASE_WAIT(world, told(&first, "\"released\"") == 1);
    CHECK_INT(told(&asked, "200"), 0);
    relay_go_on(&world->instance[1].relay, RELAY_DOWN);
    LEASE_WAIT(world, told(&asked, "\"released\"") >= 1);
    CHECK_INT(told(&asked, "\"granted\""), 1);
    CHECK_INT(told(&asked, "\"released\""), 1);
    CHECK(strstr(asked.answer, "granted") < strstr(asked.answer, "released"));
    leave(&first);
    leave(&asked);
}

TEST_WALK(what_is_heard_and_in_the_stores_answer_too_is_not_told_twice, 2)
{
    struct asked first, asked;

    in_and_out(&world->instance[0], "busy", 'c');
    listen_and_stop(world, &first, &asked, RELAY_UP, "?lease=busy");
    in_and_out(&world->instance[0], "busy", 'd'); /* before the store is asked */
    LEASE_WAIT(world, told(&first, "\"released\"") == 1);
    relay_go_on(&world->instance[1].relay, RELAY_UP);
    LEASE_WAIT(world, told(&asked, "200") >= 1);
    in_and_out(&world->instance[0], "busy", 'e');
    LEASE_WAIT(world, told(&first, "\"released\"") == 2 && told(&asked, "\"released\"") >= 1);
    CHECK_INT(told(&asked, "\"granted\""), 1); /* what came after the answer */
    CHECK_INT(told(&asked, "\"released\""), 1);
    leave(&first);
    leave(&asked);
}

TEST_WALK(more_than_can_be_kept_until_the_store_answers_is_not_skipped, 2)
{
    struct asked first, asked;

    listen_and_stop(world, &first, &asked, RELAY_DOWN, "?lease=busy");
    for (unsigned i = 0; i < EARLY_BYTES / 4000 + 1; i++)
        publish(world, "busy", 1000 + i, 4000);
    LEASE_WAIT(world, listening(&world->instance[1]) == 1);
    relay_go_on(&world->instance[1].relay, RELAY_DOWN);
    asked_is(&asked, 503, "store-unavailable");
    leave(&first);
}

/* -- accidents */

TEST(whoever_is_not_heard_in_time_is_told_so)
{
    struct lease_world *world = lease_world_open(1, 3 * SHORT_MS);
    struct instance *one = &world->instance[0];
    struct asked asked;

    kill(world->redis.pid, SIGSTOP);
    listen_to(&asked, one, "?lease=a");
    uint64_t began_ms = waited_ms();
    asked_is(&asked, 503, "store-unavailable");
    CHECK(waited_ms() - began_ms < 2 * 3 * SHORT_MS + 200);
    CHECK(has_walked(one, EVENTS_SUBSCRIBER, EVENTS_DONE));
    kill(world->redis.pid, SIGCONT);
    LEASE_WAIT(world, inbox_is_open(instance_inbox(one)));
    listen_well(&asked, one, "?lease=a");
    leave(&asked);
    world_end(world);
}

TEST_WALK(whoever_listens_when_the_subscriber_is_deaf_is_cut_off_and_who_only_wants_to_is_not, 1)
{
    struct instance *one = &world->instance[0];
    struct asked asked, late;

    listen_well(&asked, one, "?lease=a");
    kill(world->redis.pid, SIGSTOP);
    listen_to(&late, one, "?lease=b");
    LEASE_WAIT(world, listening(one) == 2);
    redis_kill(&world->redis);
    LEASE_WAIT(world, listening(one) == 1);
    LEASE_WAIT(world, told(&asked, "\r\n0\r\n\r\n") == 1);
    close(asked.fd);
    redis_run(&world->redis, NULL);
    LEASE_WAIT(world, asked_status(&late) != 0);
    CHECK(asked_status(&late) == 200 ||
          asked_says(&late, "store")); /* as soon as the store takes calls again */
    close(late.fd);
    LEASE_WAIT(world, listening(one) == 0);
    LEASE_WAIT(world, inbox_is_open(instance_inbox(one)));
}

TEST_WALK(when_the_service_ends_nobody_listens_whatever_he_waits_for, 1)
{
    struct instance *one = &world->instance[0];
    struct asked streams, asks, waits;

    listen_well(&streams, one, "?lease=a");
    kill(world->redis.pid, SIGSTOP);
    listen_to(&asks, one, "?lease=a");
    listen_to(&waits, one, "?lease=b");
    LEASE_WAIT(world, listening(one) == 3);
    atomic_store(&one->service.draining, true);
    event_hub_drain(lease_worker_from(&one->worker)->event_hub);
    CHECK_INT(listening(one), 0);
    asked_is(&waits, 503, "draining");
    LEASE_WAIT(world, told(&streams, "\r\n0\r\n\r\n") == 1);
    CHECK_INT(told(&asks, "HTTP"), 0);
    kill(world->redis.pid, SIGCONT);
    asked_is(&asks, 503, "store-unavailable");
    close(streams.fd);
    atomic_store(&one->service.draining, false);
}

TEST_WALK(an_id_that_cannot_be_proven_is_refused_and_nobody_listens, 1)
{
    struct asked asked;

    listen_to(&asked, &world->instance[0], "?lease=a&since=43.1.1.1");
    asked_is(&asked, 410, "cursor-expired");
    CHECK(has_walked(&world->instance[0], EVENTS_STORE, EVENTS_DONE));
    CHECK_INT(listening(&world->instance[0]), 0);
}

/* -- what is kept for those who listen to all */

/* Whether who listens anew, when nobody has for a moment, has what was told meanwhile; a machine that stands
 * still may take longer than it is kept. */
static bool comes_back(struct lease_world *world, struct event_hub *event_hub, struct asked *asked)
{
    listen_well(asked, &world->instance[0], "");
    uint64_t from_ms = loop_now_ms();
    close(asked->fd); /* still listened for, for a while */
    LEASE_WAIT(world, listening(&world->instance[0]) == 0);
    for (unsigned i = 1; i <= 3; i++)
        publish(world, "a", i, 1);
    LEASE_WAIT(world, event_hub_has(event_hub, BYTES("43.1.3.1")) || loop_now_ms() > from_ms + SHORT_MS);
    listen_to(asked, &world->instance[0], "?since=43.1.1.1");
    LEASE_WAIT(world, told(asked, "43.1.3.1") == 1 || told(asked, "cursor-expired") == 1);
    if (told(asked, "43.1.3.1") == 1)
        return true;
    CHECK(loop_now_ms() > from_ms + SHORT_MS);
    close(asked->fd);
    return false;
}

TEST_WALK(the_last_items_are_kept_for_those_who_come_back_and_not_for_ever, 1)
{
    struct event_hub *event_hub = lease_worker_from(&world->instance[0].worker)->event_hub;
    struct asked asked;
    unsigned tries;

    event_hub_linger(event_hub, SHORT_MS);
    for (tries = 0; tries < 3 && !comes_back(world, event_hub, &asked);)
        tries++;
    CHECK(tries < 3);
    CHECK(has_walked(&world->instance[0], EVENTS_SUBSCRIBER, EVENTS_STREAM));
    CHECK(told(&asked, "43.1.2.1") == 1 && told(&asked, "43.1.1.1") == 0);
    uint64_t till_ms = loop_now_ms() + 2 * SHORT_MS;
    LEASE_WAIT(world, loop_now_ms() >= till_ms); /* who came back in time is no reason to stop */
    CHECK(event_hub_has(event_hub, BYTES("43.1.1.1")));
    CHECK_TEXT(bytes_of(redis_ask(&world->redis, "PUBSUB NUMPAT")), BYTES(":1"));
    leave(&asked);
    LEASE_WAIT(world, !event_hub_has(event_hub, BYTES("43.1.3.1")));
    LEASE_WAIT(world, strcmp(redis_ask(&world->redis, "PUBSUB NUMPAT"), ":0") == 0);
    listen_to(&asked, &world->instance[0], "?since=43.1.3.1");
    asked_is(&asked, 410, "cursor-expired");
}

TEST_WALK(no_more_than_so_many_items_are_kept, 1)
{
    struct event_hub *event_hub = lease_worker_from(&world->instance[0].worker)->event_hub;
    struct asked asked;

    listen_well(&asked, &world->instance[0], "");
    close(asked.fd);
    redis_ask(&world->redis, "EVAL 'for i = 1, 10050 do redis.call(\"PUBLISH\", \"pawl:e:a\", "
                             "\"43 1.\" .. i .. \".1\\trefused\\t1\\t\\t5\\tx\") end' 0");
    LEASE_WAIT(world, event_hub_has(event_hub, bytes_of(textf("43.1.%u.1", (unsigned)MANY))));
    CHECK(event_hub_has(event_hub, BYTES("43.1.51.1")) && !event_hub_has(event_hub, BYTES("43.1.50.1")));
    CHECK(!event_hub_has(event_hub, BYTES("43.1.51")) && !event_hub_has(event_hub, BYTES("44.1.51.1")));
}

/* -- items and ids */

TEST(an_item_is_read_as_it_was_packed)
{
    static const char *const wrong[] = {"",
                                        "1.2.3",
                                        "1.2\tgranted\t7\tada\t5\t",
                                        "1.2.3\tgranted\tx\tada\t5\t",
                                        "1.2.3\tgranted\t7\tada\t\t",
                                        "1.2.3\t\t7\tada\t5\t",
                                        "-1.2.3\tgranted\t7\tada\t5\t",
                                        "01.2.3\tgranted\t7\tada\t5\t"};
    struct history_item item;
    char id[HISTORY_ID_SIZE];

    CHECK(
        history_item_read(BYTES("12.3456.7\tforced\t999999999999999\ta d,a\t1700000000000\twhy not"), &item));
    CHECK(item.id.epoch == 12 && item.id.seq == 3456 && item.id.n == 7);
    CHECK_TEXT(item.type, BYTES("forced"));
    CHECK_TEXT(item.holder, BYTES("a d,a"));
    CHECK_TEXT(item.reason, BYTES("why not"));
    CHECK(item.token == 999999999999999 && item.at_ms == 1700000000000);
    CHECK_TEXT(history_id_write(id, BYTES("orders:42"), item.id_text), BYTES("c5.12.3456.7"));
    CHECK(history_item_read(BYTES("1.2.3\trefused\t7\t\t5\t"), &item) && item.holder.len == 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (!CHECK(!history_item_read(bytes_of(wrong[i]), &item)))
            printf("# %s\n", wrong[i]);
}

TEST(ids_are_compared_as_numbers)
{
    static const char *const rising[] = {"1.1.1", "1.1.2", "1.1.10", "1.2.1", "1.10.1", "2.1.1", "10.1.1"};
    struct history_id a, b;

    for (size_t i = 0; i < sizeof(rising) / sizeof(rising[0]); i++) {
        for (size_t j = 0; j < sizeof(rising) / sizeof(rising[0]); j++) {
            CHECK(history_id_read(bytes_of(rising[i]), &a) && history_id_read(bytes_of(rising[j]), &b));
            int order = history_id_compare(&a, &b);
            CHECK_INT((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

/* -- the drawing */

TEST(the_drawing_the_table_and_where_listeners_went_agree)
{
    static const char *const names[EVENTS_STATES] = {"SUBSCRIBER", "STORE", "STREAM", "DONE"};

    CHECK_INT(drawing_check("lease/events/stream.c", names, EVENTS_STATES, events_allows, events_walked),
              ARROWS);
}

CHECK_MAIN
