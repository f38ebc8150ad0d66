/* test_turn.c - all-or-none scripts: one at a time, a quarter of the time at most, and no queue without a
 * bound. */
#include "lease/queue/queue.h"
#include "tests/unit/check.h"
#include "tests/unit/waited.h"

enum { CALLS = TURN_ACQUIRES_MAX + 4, LONG_MS = 10000 };

struct asker {
    struct turn_call call;
    unsigned place; /* in the order in which they went; 0: not yet */
    enum problem bad;
};

struct world {
    struct loop *loop;
    struct turn turn[2];
    struct asker asker[CALLS];
};

static unsigned gone; /* one test program is one process with one thread */

static void asker_goes(struct turn_call *call, enum problem bad)
{
    struct asker *asker = container_of(call, struct asker, call);

    CHECK_INT(asker->place, 0);
    asker->place = ++gone;
    asker->bad = bad;
}

static void world_open(struct world *world)
{
    *world = (struct world){.loop = loop_new()};
    turn_init(&world->turn[0], world->loop, NULL);
    turn_init(&world->turn[1], world->loop, &world->turn[0].own);
    for (unsigned i = 0; i < CALLS; i++)
        world->asker[i].call.go = asker_goes;
    gone = 0;
}

static void world_close(struct world *world)
{
    turn_free(&world->turn[0]);
    turn_free(&world->turn[1]);
    loop_free(world->loop);
}

static void turn_until(struct world *world, unsigned count)
{
    struct patience patience = patience_of(LONG_MS);

    while (gone < count && patience_lasts(&patience))
        waited_turn(world->loop, 5);
    CHECK_INT(gone, count);
}

static void turn_for(struct world *world, uint64_t ms)
{
    for (uint64_t till_ms = loop_now_ms() + ms; loop_now_ms() < till_ms;)
        waited_turn(world->loop, 1);
}

#define TEST_WORLD(sentence) TEST_WITH(sentence, struct world, world, world_open(world), world_close(world))

TEST_WORLD(one_at_a_time_in_all_workers_and_the_next_waits_three_times_as_long_as_it_took)
{
    uint64_t began_us, took_us;

    CHECK(turn_wait(&world->turn[0], &world->asker[0].call, TURN_ACQUIRE));
    CHECK_INT(gone, 0); /* later, never from inside */
    turn_until(world, 1);
    began_us = loop_now_us();
    CHECK(turn_wait(&world->turn[0], &world->asker[1].call, TURN_ACQUIRE));
    CHECK(turn_wait(&world->turn[1], &world->asker[2].call, TURN_CLAIM));
    turn_for(world, 20);
    CHECK_INT(gone, 1);
    took_us = loop_now_us() - began_us;
    turn_done(&world->turn[0], 0);
    turn_until(world, 2);
    CHECK(loop_now_us() - began_us >= 4 * took_us);
    turn_for(world, 20);
    CHECK_INT(gone, 2); /* whichever worker it was, the other still waits */
    turn_done(&world->turn[world->asker[1].place == 2 ? 0 : 1], 0);
    turn_until(world, 3);
}

TEST_WORLD(what_the_network_takes_is_not_the_stores_time)
{
    uint64_t began_us, took_us;

    for (unsigned i = 0; i < 3; i++)
        CHECK(turn_wait(&world->turn[0], &world->asker[i].call, TURN_ACQUIRE));
    began_us = loop_now_us();
    turn_until(world, 1);
    turn_for(world, 100);
    took_us = loop_now_us() - began_us;
    began_us = loop_now_us();
    turn_done(&world->turn[0], took_us * 9 / 10);
    turn_until(world, 2);
    CHECK(loop_now_us() - began_us < 2 * took_us); /* not 3 */
    began_us = loop_now_us();
    turn_for(world, 20);
    took_us = loop_now_us() - began_us;
    turn_done(&world->turn[0], UINT64_MAX); /* that of another link: nothing is known */
    turn_until(world, 3);
    CHECK(loop_now_us() - began_us >= 4 * took_us);
    turn_done(&world->turn[0], 0);
}

TEST_WORLD(what_must_be_claimed_goes_first_and_who_leaves_and_who_asks_go_by_turns)
{
    static const struct {
        enum turn_kind kind;
        unsigned place;
    } calls[] = {{TURN_LEAVE, 3},   {TURN_LEAVE, 5},   {TURN_LEAVE, 6},
                 {TURN_ACQUIRE, 2}, {TURN_ACQUIRE, 4}, {TURN_CLAIM, 1}};
    enum { COUNT = sizeof(calls) / sizeof(calls[0]) };

    for (unsigned i = 0; i < COUNT; i++)
        turn_wait(&world->turn[0], &world->asker[i].call, calls[i].kind);
    for (unsigned i = 1; i <= COUNT; i++) {
        turn_until(world, i);
        turn_done(&world->turn[0], 0);
    }
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_INT(world->asker[i].place, calls[i].place);
}

TEST_WORLD(who_asks_is_sent_away_when_many_wait_or_when_it_has_waited_long_enough)
{
    uint64_t began_ms = loop_now_ms();

    turn_wait(&world->turn[1], &world->asker[0].call, TURN_LEAVE);
    turn_until(world, 1); /* it is under way, and stays so */
    for (unsigned i = 1; i <= TURN_ACQUIRES_MAX; i++)
        CHECK(turn_wait(&world->turn[0], &world->asker[i].call, TURN_ACQUIRE));
    CHECK(!turn_wait(&world->turn[0], &world->asker[TURN_ACQUIRES_MAX + 1].call, TURN_ACQUIRE));
    CHECK(turn_wait(&world->turn[0], &world->asker[TURN_ACQUIRES_MAX + 2].call, TURN_LEAVE));
    CHECK(turn_wait(&world->turn[0], &world->asker[TURN_ACQUIRES_MAX + 3].call, TURN_CLAIM));
    turn_until(world, 1 + TURN_ACQUIRES_MAX);
    CHECK(loop_now_ms() >= began_ms + TURN_WAIT_MS);
    for (unsigned i = 1; i <= TURN_ACQUIRES_MAX; i++)
        CHECK(world->asker[i].bad == PROBLEM_OVERLOADED);
    CHECK_INT(world->asker[TURN_ACQUIRES_MAX + 1].place, 0);
    turn_done(&world->turn[1], 0);
    turn_until(world, 2 + TURN_ACQUIRES_MAX);
    turn_done(&world->turn[0], 0);
    turn_until(world, 3 + TURN_ACQUIRES_MAX);
    CHECK(world->asker[TURN_ACQUIRES_MAX + 3].place < world->asker[TURN_ACQUIRES_MAX + 2].place);
    CHECK(world->asker[TURN_ACQUIRES_MAX + 2].bad == PROBLEM_NONE);
}

CHECK_MAIN
