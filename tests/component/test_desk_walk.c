/* test_desk_walk.c - the desk on a real Redis, through everything that can happen to it; every arrow of the
 * drawing in queue/inbox.h. */
#include "tests/component/lease_world.h"
#include "tests/unit/drawing.h"

enum { ARROWS = 7, TIMEOUT_MS = 2000, PLACES = 1000 };

/* Every arrow that any desk of this program has gone. */
static unsigned desks_walked[DESK_STATES];

static void desk_note(const struct instance *instance)
{
    for (unsigned from = 0; from < DESK_STATES; from++) {
        for (unsigned to = 0; to < DESK_STATES; to++) {
            if (desk_has_gone(instance_desk(instance), (enum desk_state)from, (enum desk_state)to)) {
                desks_walked[from] |= 1u << to;
            }
        }
    }
}

/* One who waits without a request. */
struct place {
    struct desk_place place;
    enum desk_news news;
    unsigned told;
};

static void place_told(struct desk_place *place, enum desk_news news)
{
    struct place *own = container_of(place, struct place, place);

    own->news = news;
    own->told++;
}

static void place_take(struct desk *desk, struct place *place)
{
    *place = (struct place){.place.told = place_told};
    desk_enter(desk, &place->place);
}

static void tell(struct lease_world *world, const char *channel, const char *word, uint64_t wid)
{
    char command[160];

    snprintf(command, sizeof(command), "PUBLISH %s \"%s %" PRIu64 "\"", channel, word, wid);
    redis_ask(&world->redis, command);
}

static const char *key_of(const struct desk *desk)
{
    static char key[DESK_KEY_SIZE];

    snprintf(key, sizeof(key), "%.*s", (int)desk_key(desk).len, desk_key(desk).at);
    return key;
}

#define TEST_WALK(sentence, instances)                                                                       \
    TEST_IN(sentence, struct lease_world *, world, lease_world_open(instances, TIMEOUT_MS),                  \
            lease_world_close(world))

TEST_WALK(a_desk_opens_and_the_store_knows_it, 1)
{
    struct instance *instance = &world->instance[0];
    char command[64];

    CHECK(desk_is_open(instance_desk(instance)));
    snprintf(command, sizeof(command), "HEXISTS %s at", key_of(instance_desk(instance)));
    CHECK_TEXT(bytes_of(redis_ask(&world->redis, command)), BYTES(":1"));
    desk_note(instance);
}

TEST_WALK(who_waits_is_told_what_is_said_to_him_and_nobody_else_is, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    struct place a, b, c;

    place_take(desk, &a);
    place_take(desk, &b);
    place_take(desk, &c);
    CHECK_INT(desk_count(desk), 3);
    tell(world, key_of(desk), "granted", b.place.wid);
    tell(world, key_of(desk), "superseded", c.place.wid);
    tell(world, key_of(desk), "session-lost", a.place.wid);
    LEASE_WAIT(world, a.told == 1);
    CHECK_INT(a.news, DESK_SESSION_LOST);
    CHECK_INT(b.news, DESK_GRANTED);
    CHECK_INT(c.news, DESK_SUPERSEDED);
    CHECK_INT(a.told + b.told + c.told, 3);
    desk_leave(desk, &a.place);
    desk_leave(desk, &b.place);
    desk_leave(desk, &c.place);
}

TEST_WALK(what_is_told_late_to_one_who_has_left_finds_nobody_also_not_who_has_his_place_now, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    struct place old, young, other;
    uint64_t wid;

    place_take(desk, &old);
    wid = old.place.wid;
    desk_leave(desk, &old.place);
    place_take(desk, &young);
    place_take(desk, &other);
    CHECK(young.place.wid != wid);
    tell(world, key_of(desk), "granted", wid);
    tell(world, key_of(desk), "granted", other.place.wid);
    LEASE_WAIT(world, other.told == 1);
    CHECK_INT(old.told + young.told, 0);
    desk_leave(desk, &young.place);
    desk_leave(desk, &other.place);
}

TEST_WALK(what_is_no_message_of_ours_is_ignored, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    static const char *const strange[] = {
        "\"\"",         "granted",        "\"granted \"", "\"granted -1\"",
        "\"stolen 1\"", "\"granted 1x\"", "\" \"",        "\"granted 99999999999999999999999999\""};
    struct place place;
    char command[160];

    place_take(desk, &place);
    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
        snprintf(command, sizeof(command), "PUBLISH %s %s", key_of(desk), strange[i]);
        redis_ask(&world->redis, command);
    }
    tell(world, key_of(desk), "seized", place.place.wid);
    tell(world, key_of(desk), "granted", place.place.wid);
    LEASE_WAIT(world, place.told > 0);
    CHECK_INT(place.told, 1);
    desk_leave(desk, &place.place);
}

TEST_WALK(a_thousand_places_are_found_each_by_its_number, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    static struct place places[PLACES];
    unsigned told = 0;

    for (unsigned i = 0; i < PLACES; i++) {
        place_take(desk, &places[i]);
    }
    for (unsigned i = 0; i < PLACES; i += 2) { /* some in the middle come and go */
        desk_leave(desk, &places[i].place);
        place_take(desk, &places[i]);
    }
    for (unsigned i = 0; i < PLACES; i++) {
        tell(world, key_of(desk), "granted", places[i].place.wid);
    }
    LEASE_WAIT(world, places[PLACES - 1].told == 1);
    for (unsigned i = 0; i < PLACES; i++) {
        told += places[i].told;
        desk_leave(desk, &places[i].place);
    }
    CHECK_INT(told, PLACES);
    CHECK_INT(desk_count(desk), 0);
}

TEST_WALK(a_desk_that_has_gone_deaf_sends_away_all_who_wait_and_opens_under_another_id, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    static struct place places[PLACES];
    char before[DESK_KEY_SIZE];
    unsigned told = 0;

    for (unsigned i = 0; i < PLACES; i++) {
        place_take(desk, &places[i]);
    }
    snprintf(before, sizeof(before), "%s", key_of(desk));
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    LEASE_WAIT(world, places[PLACES - 1].told == 1);
    for (unsigned i = 0; i < PLACES; i++) {
        told += places[i].told == 1 && places[i].news == DESK_HAS_CLOSED;
        desk_leave(desk, &places[i].place);
    }
    CHECK_INT(told, PLACES);
    LEASE_WAIT(world, desk_is_open(desk));
    CHECK(strcmp(before, key_of(desk)) != 0);
    desk_note(&world->instance[0]);
}

/* The first place of a desk that has opened again is not told what was meant for those of before. */
TEST_WALK(who_comes_to_a_desk_that_has_opened_again_is_not_sent_away_with_those_of_before, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    struct place old, young;

    place_take(desk, &old);
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    LEASE_WAIT(world, old.told == 1 && desk_is_open(desk));
    place_take(desk, &young);
    tell(world, key_of(desk), "granted", young.place.wid);
    LEASE_WAIT(world, young.told == 1);
    CHECK_INT(young.news, DESK_GRANTED);
    CHECK_INT(old.told, 1);
    desk_leave(desk, &old.place);
    desk_leave(desk, &young.place);
}

TEST_WALK(another_link_to_the_store_closes_the_desk, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    struct place place;

    place_take(desk, &place);
    redis_ask(&world->redis, "CLIENT KILL TYPE normal SKIPME yes");
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, DESK_HAS_CLOSED);
    LEASE_WAIT(world, desk_is_open(desk));
    desk_leave(desk, &place.place);
    desk_note(&world->instance[0]);
}

TEST_WALK(a_release_names_the_desk_only_while_it_is_open_and_the_link_is_its_own, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    struct store *store = world->instance[0].worker.store;
    uint64_t link = store_link_number(store);
    char key[DESK_KEY_SIZE];

    CHECK(desk_release_begins(desk, 1, key) && strcmp(key, key_of(desk)) == 0);
    CHECK(desk_has_perhaps_granted(desk, 1) && !desk_has_perhaps_granted(desk, 2));
    desk_release_ended(desk, 1, true);
    CHECK(!desk_has_perhaps_granted(desk, 1));
    redis_ask(&world->redis, "CLIENT KILL TYPE normal SKIPME yes");
    LEASE_WAIT(world, store_link_number(store) != link && store_link_stands(store));
    CHECK(!desk_release_begins(desk, 1, key) && key[0] == '\0');
    LEASE_WAIT(world, desk_has_gone(desk, DESK_OPEN, DESK_CLOSED) && desk_is_open(desk));
    desk_drain(desk);
    CHECK(!desk_release_begins(desk, 1, key) && key[0] == '\0');
}

TEST_WALK(a_release_whose_reply_is_lost_closes_the_desk_at_once_and_is_known_until_all_are_told, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    struct place place;
    char key[DESK_KEY_SIZE];

    place_take(desk, &place);
    CHECK(desk_release_begins(desk, 1, key));
    desk_release_ended(desk, 1, false);
    CHECK(!desk_is_open(desk) && desk_has_perhaps_granted(desk, 1));
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, DESK_HAS_CLOSED);
    LEASE_WAIT(world, !desk_has_perhaps_granted(desk, 1) && desk_is_open(desk));
    CHECK(strcmp(key, key_of(desk)) != 0);
    desk_leave(desk, &place.place);
}

TEST_WALK(a_desk_that_the_store_calls_late_closes, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    uint64_t begun_ms = waited_ms();
    struct place place;
    char command[80];

    place_take(desk, &place);
    snprintf(command, sizeof(command), "HSET %s at 1", key_of(desk));
    redis_ask(&world->redis, command);
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, DESK_HAS_CLOSED);
    CHECK(waited_ms() - begun_ms <
          DESK_SILENT_MS - DESK_BEAT_MS); /* not only because nothing was taken for long */
    LEASE_WAIT(world, desk_is_open(desk));
    desk_leave(desk, &place.place);
}

TEST_WALK(a_desk_whose_beats_the_store_does_not_take_closes_before_its_waiters_can_be_passed_over_unseen, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    uint64_t begun_ms = loop_now_ms(), waited_before_ms = waited_ms();
    struct place place;

    place_take(desk, &place);
    redis_ask(&world->redis, "CONFIG SET min-replicas-to-write 1"); /* a write certainly does not happen */
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, DESK_HAS_CLOSED);
    CHECK(loop_now_ms() - begun_ms > DESK_SILENT_MS - 2 * DESK_BEAT_MS);
    CHECK(waited_ms() - waited_before_ms < DESK_SILENT_MS + DESK_BEAT_MS);
    LEASE_WAIT(world, desk_has_gone(desk, DESK_OPENING, DESK_CLOSED));
    CHECK(!desk_is_open(desk));
    redis_ask(&world->redis, "CONFIG SET min-replicas-to-write 0");
    LEASE_WAIT(world, desk_is_open(desk));
    desk_leave(desk, &place.place);
    desk_note(&world->instance[0]);
}

TEST_WALK(a_desk_that_is_drained_is_dead_in_the_store_before_anybody_is_sent_away, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);
    char command[200];
    struct place place;

    place_take(desk, &place);
    snprintf(command, sizeof(command),
             "EVAL \"local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 > "
             "redis.call('HGET', KEYS[1], 'at') + 3000\" 1 %s",
             key_of(desk));
    desk_drain(desk);
    desk_drain(desk);
    CHECK(!desk_is_open(desk));
    LEASE_WAIT(world, place.told == 1);
    CHECK_TEXT(bytes_of(redis_ask(&world->redis, command)), BYTES(":1"));
    LEASE_WAIT(world, desk_is_shut(desk));
    desk_leave(desk, &place.place);
    desk_note(&world->instance[0]);
}

TEST_WALK(a_desk_that_cannot_reach_the_store_is_shut_all_the_same, 1)
{
    struct desk *desk = instance_desk(&world->instance[0]);

    redis_kill(&world->redis);
    LEASE_WAIT(world, !desk_is_open(desk));
    desk_drain(desk);
    LEASE_WAIT(world, desk_is_shut(desk));
    CHECK(desk_has_gone(desk, DESK_CLOSED, DESK_SHUT));
    desk_note(&world->instance[0]);
    redis_run(&world->redis, NULL);
}

/* -- the drawing */

TEST(the_drawing_the_table_and_where_desks_went_agree)
{
    static const char *const names[DESK_STATES] = {"CLOSED", "OPENING", "OPEN", "CLOSING", "SHUT"};

    CHECK_INT(drawing_check("lease/queue/inbox.h", names, DESK_STATES, desk_allows, desks_walked), ARROWS);
}

CHECK_MAIN
