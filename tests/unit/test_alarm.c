/* test_alarm.c - many deadlines on one timer: each rings once, none before its time, the soonest first. */
#include <stdlib.h>

#include "shared/loop/alarm.h"
#include "tests/unit/check.h"
#include "tests/unit/waited.h"

enum { LONG_MS = 5000, MANY = 5000 };

struct world {
    struct loop *loop;
    struct alarm_clock *clock;
    unsigned rang, early, out_of_order;
    uint64_t last_at_ms;
    bool setting; /* inside alarm_set */
};

struct bell {
    struct alarm alarm;
    struct world *world;
    uint64_t at_ms; /* what it was set for */
    unsigned rang;
    unsigned again; /* how often it sets itself anew */
    struct bell *other;
};

static void world_open(struct world *world)
{
    *world = (struct world){.loop = loop_new()};
    world->clock = alarm_clock_new(world->loop);
}

static void world_close(struct world *world)
{
    alarm_clock_free(world->clock);
    loop_free(world->loop);
}

static void turn_until(struct world *world, unsigned rang)
{
    uint64_t till_ms = loop_now_ms() + LONG_MS;

    while (world->rang < rang && loop_now_ms() < till_ms)
        waited_turn(world->loop, 5);
    CHECK_INT(world->rang, rang);
}

static void bell_rings(struct alarm *alarm)
{
    struct bell *bell = container_of(alarm, struct bell, alarm);
    struct world *world = bell->world;

    CHECK(!world->setting);
    CHECK_INT(alarm->place, 0);
    bell->rang++;
    world->rang++;
    world->early += loop_now_ms() < bell->at_ms;
    world->out_of_order += bell->at_ms < world->last_at_ms;
    world->last_at_ms = bell->at_ms;
}

static void bell_set(struct world *world, struct bell *bell, uint64_t at_ms)
{
    if (bell->alarm.rings == NULL)
        bell->alarm.rings = bell_rings;
    bell->world = world;
    bell->at_ms = at_ms;
    world->setting = true;
    alarm_set(world->clock, &bell->alarm, at_ms);
    world->setting = false;
}

#define TEST_WORLD(sentence) TEST_WITH(sentence, struct world, world, world_open(world), world_close(world))

TEST_WORLD(an_alarm_rings_once_and_not_before_its_time)
{
    struct bell bell = {0};

    uint64_t began_ms = waited_ms();
    bell_set(world, &bell, loop_now_ms() + 20);
    CHECK_INT(alarm_count(world->clock), 1);
    turn_until(world, 1);
    CHECK_INT(alarm_count(world->clock), 0);
    CHECK(waited_ms() - began_ms < 20 + 20);
    uint64_t till_ms = loop_now_ms() + 20;
    while (loop_now_ms() < till_ms)
        loop_turn(world->loop, 5);
    CHECK_INT(world->rang, 1);
    CHECK_INT(world->early, 0);
}

TEST_WORLD(an_alarm_whose_time_is_over_rings_soon_but_not_inside_the_call)
{
    struct bell past = {0}, now = {0};

    bell_set(world, &past, 0);
    bell_set(world, &now, loop_now_ms());
    CHECK_INT(world->rang, 0);
    uint64_t began_ms = waited_ms();
    turn_until(world, 2);
    CHECK(waited_ms() - began_ms < 20);
}

TEST_WORLD(thousands_of_alarms_ring_in_the_order_of_their_times)
{
    static struct bell bells[MANY];
    unsigned set = 0;

    srandom(1);
    uint64_t now_ms = loop_now_ms();
    for (unsigned i = 0; i < MANY; i++)
        bell_set(world, &bells[i], now_ms + 200 + (uint64_t)random() % 100);
    for (unsigned i = 0; i < MANY; i += 3) /* moved sooner or later, */
        bell_set(world, &bells[i], now_ms + 200 + (uint64_t)random() % 100);
    for (unsigned i = 0; i < MANY; i += 7) /* or taken out of the middle */
        alarm_clear(world->clock, &bells[i].alarm);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_INT(bells[i].alarm.place != 0, i % 7 != 0);
        set += i % 7 != 0;
    }
    CHECK_INT(alarm_count(world->clock), set);
    turn_until(world, set);
    CHECK_INT(alarm_count(world->clock), 0);
    CHECK_INT(world->early, 0);
    CHECK_INT(world->out_of_order, 0);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_INT(bells[i].rang, i % 7 != 0);
}

TEST_WORLD(a_sooner_one_that_is_set_later_does_not_wait_for_the_others)
{
    struct bell late = {0}, soon = {0};

    bell_set(world, &late, loop_now_ms() + 60 * 1000);
    loop_turn(world->loop, 0);
    bell_set(world, &soon, loop_now_ms() + 10);
    turn_until(world, 1);
    CHECK_INT(soon.rang, 1);
    uint64_t began_ms = waited_ms();
    bell_set(world, &late, loop_now_ms() + 10); /* moved sooner */
    turn_until(world, 2);
    CHECK(late.rang == 1 && waited_ms() - began_ms < 10 + 50);
}

TEST_WORLD(a_cleared_alarm_is_silent_and_clearing_it_again_does_nothing)
{
    struct bell cleared = {0}, other = {0};

    alarm_clear(world->clock, &cleared.alarm);
    bell_set(world, &cleared, loop_now_ms() + 5);
    alarm_clear(world->clock, &cleared.alarm);
    alarm_clear(world->clock, &cleared.alarm);
    CHECK_INT(alarm_count(world->clock), 0);
    bell_set(world, &other, loop_now_ms() + 20);
    turn_until(world, 1);
    CHECK(cleared.rang == 0 && other.rang == 1);
    bell_set(world, &cleared, loop_now_ms() + 5); /* the timer still comes for whoever is set next */
    turn_until(world, 2);
    CHECK_INT(cleared.rang, 1);
}

static void set_itself_again(struct alarm *alarm)
{
    struct bell *bell = container_of(alarm, struct bell, alarm);

    bell_rings(alarm);
    if (bell->again > 0) {
        bell->again--;
        bell_set(bell->world, bell, 0);
    }
}

TEST_WORLD(one_that_sets_itself_anew_at_once_lets_the_others_and_the_loop_have_their_turn)
{
    struct bell again = {.alarm.rings = set_itself_again, .again = UINT32_MAX}, other = {0};
    unsigned turns = 0;

    bell_set(world, &again, 0);
    bell_set(world, &other, loop_now_ms() + 5);
    for (uint64_t till_ms = loop_now_ms() + LONG_MS;
         (other.rang == 0 || again.rang < 2) && loop_now_ms() < till_ms; turns++)
        loop_turn(world->loop, 1);
    CHECK_INT(other.rang, 1);
    CHECK(again.rang >= 2 && again.rang <= 2 * (turns + 1));
    alarm_clear(world->clock, &again.alarm);
}

static void free_itself(struct alarm *alarm)
{
    struct bell *bell = container_of(alarm, struct bell, alarm);

    bell->world->rang++;
    if (bell->other != NULL) {
        alarm_clear(bell->world->clock, &bell->other->alarm);
        free(bell->other);
    }
    free(bell);
}

TEST_WORLD(one_that_rings_may_free_itself_and_others_that_are_due)
{
    struct bell *first = calloc(1, sizeof(*first)), *second = calloc(1, sizeof(*second));
    struct bell last = {0};

    uint64_t at_ms = loop_now_ms() + 5;
    first->alarm.rings = second->alarm.rings = free_itself;
    first->other = second;
    bell_set(world, first, at_ms);
    bell_set(world, second, at_ms + 1);
    bell_set(world, &last, at_ms + 2);
    while (loop_now_ms() < at_ms + 5) { /* so that all are due in one turn */
    }
    turn_until(world, 2);
    CHECK_INT(last.rang, 1);
    CHECK_INT(alarm_count(world->clock), 0);
}

TEST(a_clock_that_is_freed_forgets_what_is_set)
{
    struct world world;
    struct bell bells[3] = {{.rang = 0}};

    world_open(&world);
    for (unsigned i = 0; i < 3; i++)
        bell_set(&world, &bells[i], loop_now_ms() + 5 * i);
    world_close(&world);
    for (unsigned i = 0; i < 3; i++)
        CHECK(bells[i].alarm.place == 0 && bells[i].rang == 0);
}

CHECK_MAIN
