/* test_inbox_walk.c - the inbox on a real Redis, through everything that can happen to it; every arrow of the
 * drawing in queue/inbox.c. */
#include "tests/component/lease_world.h"
#include "tests/unit/drawing.h"

enum { ARROWS = 7, TIMEOUT_MS = 2000, PLACES = 1000 };

/* Every arrow that any inbox of this program has gone. */
static unsigned inboxes_walked[INBOX_STATES];

static void world_end(struct lease_world *world)
{
    for (unsigned from = 0; from < INBOX_STATES; from++) {
        for (unsigned to = 0; to < INBOX_STATES; to++)
            if (inbox_has_gone(instance_inbox(&world->instance[0]), (enum inbox_state)from,
                               (enum inbox_state)to))
                inboxes_walked[from] |= 1u << to;
    }
    lease_world_close(world);
}

/* One who waits without a request. */
struct place {
    struct inbox_place place;
    enum inbox_news news;
    unsigned told;
};

static void place_told(struct inbox_place *place, enum inbox_news news)
{
    struct place *own = container_of(place, struct place, place);

    own->news = news;
    own->told++;
}

static void place_take(struct inbox *inbox, struct place *place)
{
    *place = (struct place){.place.notify = place_told};
    inbox_enter(inbox, &place->place);
}

static const char *key_of(const struct inbox *inbox)
{
    static char key[INBOX_KEY_SIZE];

    snprintf(key, sizeof(key), "%.*s", (int)inbox_key(inbox).len, inbox_key(inbox).at);
    return key;
}

static void tell(struct lease_world *world, const struct inbox *inbox, const char *word, uint64_t wid)
{
    redis_askf(&world->redis, "PUBLISH %s \"%s %" PRIu64 "\"", key_of(inbox), word, wid);
}

/* The inbox closes: its waiter learns it, and leaves when it is open again. */
static void place_closes(struct lease_world *world, struct inbox *inbox, struct place *place)
{
    LEASE_WAIT(world, place->told == 1);
    CHECK_INT(place->news, INBOX_HAS_CLOSED);
    LEASE_WAIT(world, inbox_is_open(inbox));
    inbox_leave(inbox, &place->place);
}

/* With one instance, and its inbox. */
#define TEST_INBOX(sentence)                                                                                 \
    static void sentence##_with(struct lease_world *world, struct inbox *inbox);                             \
    TEST_IN(sentence, struct lease_world *, world, lease_world_open(1, TIMEOUT_MS), world_end(world))        \
    {                                                                                                        \
        sentence##_with(world, instance_inbox(&world->instance[0]));                                         \
    }                                                                                                        \
    static void sentence##_with(struct lease_world *world, struct inbox *inbox)

TEST_INBOX(who_waits_is_told_what_is_said_to_him_and_nobody_else_is)
{
    struct place a, b, c;

    place_take(inbox, &a);
    place_take(inbox, &b);
    place_take(inbox, &c);
    CHECK_INT(inbox_count(inbox), 3);
    tell(world, inbox, "granted", b.place.wid);
    tell(world, inbox, "superseded", c.place.wid);
    tell(world, inbox, "session-lost", a.place.wid);
    LEASE_WAIT(world, a.told == 1);
    CHECK_INT(a.news, INBOX_SESSION_LOST);
    CHECK_INT(b.news, INBOX_GRANTED);
    CHECK_INT(c.news, INBOX_SUPERSEDED);
    CHECK_INT(a.told + b.told + c.told, 3);
    inbox_leave(inbox, &a.place);
    inbox_leave(inbox, &b.place);
    inbox_leave(inbox, &c.place);
}

TEST_INBOX(what_is_told_late_to_one_who_has_left_finds_nobody_also_not_who_has_his_place_now)
{
    struct place old, young, other;
    uint64_t wid;

    place_take(inbox, &old);
    wid = old.place.wid;
    inbox_leave(inbox, &old.place);
    place_take(inbox, &young);
    place_take(inbox, &other);
    CHECK(young.place.wid != wid);
    tell(world, inbox, "granted", wid);
    tell(world, inbox, "granted", other.place.wid);
    LEASE_WAIT(world, other.told == 1);
    CHECK_INT(old.told + young.told, 0);
    inbox_leave(inbox, &young.place);
    inbox_leave(inbox, &other.place);
}

TEST_INBOX(what_is_no_message_of_ours_is_ignored)
{
    static const char *const strange[] = {
        "\"\"",         "granted",        "\"granted \"", "\"granted -1\"",
        "\"stolen 1\"", "\"granted 1x\"", "\" \"",        "\"granted 99999999999999999999999999\""};
    struct place place;

    place_take(inbox, &place);
    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++)
        redis_askf(&world->redis, "PUBLISH %s %s", key_of(inbox), strange[i]);
    tell(world, inbox, "seized", place.place.wid);
    tell(world, inbox, "granted", place.place.wid);
    LEASE_WAIT(world, place.told > 0);
    CHECK_INT(place.told, 1);
    inbox_leave(inbox, &place.place);
}

TEST_INBOX(a_thousand_places_are_found_each_by_its_number)
{
    static struct place places[PLACES];
    unsigned told = 0;

    for (unsigned i = 0; i < PLACES; i++)
        place_take(inbox, &places[i]);
    for (unsigned i = 0; i < PLACES; i += 2) { /* some in the middle come and go */
        inbox_leave(inbox, &places[i].place);
        place_take(inbox, &places[i]);
    }
    for (unsigned i = 0; i < PLACES; i++)
        tell(world, inbox, "granted", places[i].place.wid);
    LEASE_WAIT(world, places[PLACES - 1].told == 1);
    for (unsigned i = 0; i < PLACES; i++) {
        told += places[i].told;
        inbox_leave(inbox, &places[i].place);
    }
    CHECK_INT(told, PLACES);
    CHECK_INT(inbox_count(inbox), 0);
}

/* Whether a turn of the loop has ended when some were told, and others not yet. */
struct turns {
    struct loop_hook hook;
    const struct place *places;
    bool were_some;
};

static void turn_ended(struct loop_hook *hook)
{
    struct turns *turns = container_of(hook, struct turns, hook);

    turns->were_some = turns->were_some || (turns->places[0].told > 0 && turns->places[PLACES - 1].told == 0);
}

static void all_are_told(struct lease_world *world, struct inbox *inbox, struct place *places,
                         enum inbox_news news)
{
    struct turns turns = {.places = places};
    unsigned told = 0;

    loop_hook_add(world->instance[0].worker.loop, &turns.hook, turn_ended);
    LEASE_WAIT(world, places[PLACES - 1].told == 1);
    loop_hook_remove(world->instance[0].worker.loop, &turns.hook);
    for (unsigned i = 0; i < PLACES; i++) {
        told += places[i].told == 1 && places[i].news == news;
        inbox_leave(inbox, &places[i].place);
    }
    CHECK_INT(told, PLACES);
    CHECK(turns.were_some);
}

TEST_INBOX(a_thousand_learn_that_the_rules_have_changed_some_in_each_turn)
{
    static struct place places[PLACES];

    for (unsigned i = 0; i < PLACES; i++)
        place_take(inbox, &places[i]);
    inbox_judge(inbox);
    all_are_told(world, inbox, places, INBOX_JUDGED);
}

TEST_INBOX(an_inbox_that_has_gone_deaf_sends_away_all_who_wait_and_opens_under_another_id)
{
    static struct place places[PLACES];
    char before[INBOX_KEY_SIZE];

    for (unsigned i = 0; i < PLACES; i++)
        place_take(inbox, &places[i]);
    snprintf(before, sizeof(before), "%s", key_of(inbox));
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    all_are_told(world, inbox, places, INBOX_HAS_CLOSED);
    LEASE_WAIT(world, inbox_is_open(inbox));
    CHECK(strcmp(before, key_of(inbox)) != 0);
}

/* The first place of an inbox that has opened again is not told what was meant for those of before. */
TEST_INBOX(who_comes_to_an_inbox_that_has_opened_again_is_not_sent_away_with_those_of_before)
{
    struct place old, young;

    place_take(inbox, &old);
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    LEASE_WAIT(world, old.told == 1 && inbox_is_open(inbox));
    place_take(inbox, &young);
    tell(world, inbox, "granted", young.place.wid);
    LEASE_WAIT(world, young.told == 1);
    CHECK_INT(young.news, INBOX_GRANTED);
    CHECK_INT(old.told, 1);
    inbox_leave(inbox, &old.place);
    inbox_leave(inbox, &young.place);
}

TEST_INBOX(another_link_to_the_store_closes_the_inbox)
{
    struct place place;

    place_take(inbox, &place);
    redis_ask(&world->redis, "CLIENT KILL TYPE normal SKIPME yes");
    place_closes(world, inbox, &place);
}

TEST_INBOX(a_release_names_the_inbox_only_while_somebody_waits_it_is_open_and_the_link_is_its_own)
{
    struct store *store = world->instance[0].worker.store;
    uint64_t link = store_link_number(store);
    char key[INBOX_KEY_SIZE];
    struct place place;

    CHECK(!inbox_release_begins(inbox, 1, key) && key[0] == '\0');
    place_take(inbox, &place);
    CHECK(inbox_release_begins(inbox, 1, key) && strcmp(key, key_of(inbox)) == 0);
    CHECK(inbox_has_perhaps_granted(inbox, 1) && !inbox_has_perhaps_granted(inbox, 2));
    inbox_release_ended(inbox, 1, true);
    CHECK(!inbox_has_perhaps_granted(inbox, 1));
    redis_ask(&world->redis, "CLIENT KILL TYPE normal SKIPME yes");
    LEASE_WAIT(world, store_link_number(store) != link && store_link_stands(store));
    CHECK(!inbox_release_begins(inbox, 1, key) && key[0] == '\0');
    LEASE_WAIT(world, inbox_has_gone(inbox, INBOX_OPEN, INBOX_CLOSED) && inbox_is_open(inbox));
    inbox_leave(inbox, &place.place);
    place_take(inbox, &place);
    inbox_drain(inbox);
    CHECK(!inbox_release_begins(inbox, 1, key) && key[0] == '\0');
    inbox_leave(inbox, &place.place);
}

TEST_INBOX(a_release_whose_reply_is_lost_closes_the_inbox_at_once_and_is_known_until_all_are_told)
{
    struct place place;
    char key[INBOX_KEY_SIZE];

    place_take(inbox, &place);
    CHECK(inbox_release_begins(inbox, 1, key));
    inbox_release_ended(inbox, 1, false);
    CHECK(!inbox_is_open(inbox) && inbox_has_perhaps_granted(inbox, 1));
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, INBOX_HAS_CLOSED);
    LEASE_WAIT(world, !inbox_has_perhaps_granted(inbox, 1) && inbox_is_open(inbox));
    CHECK(strcmp(key, key_of(inbox)) != 0);
    inbox_leave(inbox, &place.place);
}

TEST_INBOX(an_inbox_that_the_store_calls_late_closes)
{
    uint64_t begun_ms = waited_ms();
    struct place place;

    place_take(inbox, &place);
    redis_askf(&world->redis, "HSET %s at 1", key_of(inbox));
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, INBOX_HAS_CLOSED);
    CHECK(waited_ms() - begun_ms <
          INBOX_SILENT_MS - INBOX_HEARTBEAT_MS); /* not only because nothing was taken for long */
    LEASE_WAIT(world, inbox_is_open(inbox));
    inbox_leave(inbox, &place.place);
}

TEST_INBOX(an_inbox_whose_beats_the_store_does_not_take_closes_before_its_waiters_can_be_passed_over_unseen)
{
    uint64_t begun_ms = loop_now_ms(), waited_before_ms = waited_ms();
    struct place place;

    place_take(inbox, &place);
    redis_ask(&world->redis, "CONFIG SET min-replicas-to-write 1"); /* a write certainly does not happen */
    LEASE_WAIT(world, place.told == 1);
    CHECK_INT(place.news, INBOX_HAS_CLOSED);
    CHECK(loop_now_ms() - begun_ms > INBOX_SILENT_MS - 2 * INBOX_HEARTBEAT_MS);
    CHECK(waited_ms() - waited_before_ms < INBOX_SILENT_MS + INBOX_HEARTBEAT_MS);
    LEASE_WAIT(world, inbox_has_gone(inbox, INBOX_OPENING, INBOX_CLOSED));
    CHECK(!inbox_is_open(inbox));
    redis_ask(&world->redis, "CONFIG SET min-replicas-to-write 0");
    LEASE_WAIT(world, inbox_is_open(inbox));
    inbox_leave(inbox, &place.place);
}

TEST_INBOX(an_inbox_that_is_drained_is_dead_in_the_store_before_anybody_is_sent_away)
{
    char command[200];
    struct place place;

    place_take(inbox, &place);
    snprintf(command, sizeof(command),
             "EVAL \"local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 > "
             "redis.call('HGET', KEYS[1], 'at') + 3000\" 1 %s",
             key_of(inbox));
    inbox_drain(inbox);
    inbox_drain(inbox);
    CHECK(!inbox_is_open(inbox));
    LEASE_WAIT(world, place.told == 1);
    CHECK_TEXT(bytes_of(redis_ask(&world->redis, command)), BYTES(":1"));
    LEASE_WAIT(world, inbox_is_shut(inbox));
    inbox_leave(inbox, &place.place);
}

TEST_INBOX(an_inbox_that_cannot_reach_the_store_is_shut_all_the_same)
{
    redis_kill(&world->redis);
    LEASE_WAIT(world, !inbox_is_open(inbox));
    inbox_drain(inbox);
    LEASE_WAIT(world, inbox_is_shut(inbox));
    CHECK(inbox_has_gone(inbox, INBOX_CLOSED, INBOX_SHUT));
    redis_run(&world->redis, NULL);
}

/* -- the drawing */

TEST(the_drawing_the_table_and_where_inboxes_went_agree)
{
    static const char *const names[INBOX_STATES] = {"CLOSED", "OPENING", "OPEN", "CLOSING", "SHUT"};

    CHECK_INT(drawing_check("lease/queue/inbox.c", names, INBOX_STATES, inbox_allows, inboxes_walked),
              ARROWS);
}

CHECK_MAIN
