/* test_wait_walk.c - those who wait in line, at one instance or two, on a real Redis; every arrow of the
 * drawing in wait.h. */
#include "tests/unit/drawing.h"
#include "tests/unit/lease_world.h"

enum { ARROWS = 12, TIMEOUT_MS = 2000 };

#define ADA "ada-------------------"
#define BOB "bob-------------------"
#define CAT "cat-------------------"

/* Every arrow that anybody who waited in this program has gone. */
static unsigned waits_walked[WAIT_STATES];

static bool has_walked(const struct instance *instance, enum wait_state from, enum wait_state to)
{
    return lease_worker_from(&instance->worker)->walked[from] >> to & 1;
}

static void world_end(struct lease_world *world)
{
    for (unsigned i = 0; i < world->count; i++) {
        for (unsigned from = 0; from < WAIT_STATES; from++) {
            waits_walked[from] |= lease_worker_from(&world->instance[i].worker)->walked[from];
        }
        LEASE_WAIT(world, desk_count(instance_desk(&world->instance[i])) == 0);
    }
    lease_world_close(world);
}

static void history_has(struct lease_world *world, const char *lease, const char *what)
{
    char command[KEYS_LEASE_SIZE + 32], wanted[32];

    snprintf(command, sizeof(command), "LINDEX %s -1", lease_key('e', lease));
    snprintf(wanted, sizeof(wanted), "\t%s\t", what);
    CHECK(strstr(redis_ask(&world->redis, command), wanted) != NULL);
}

/* Somebody at a desk whom nobody waits for. */
struct listener {
    struct desk_place place;
    bool told;
};

static void listener_told(struct desk_place *place, enum desk_news news)
{
    container_of(place, struct listener, place)->told = news == DESK_GRANTED;
}

TEST(who_need_not_wait_is_granted_at_once)
{
    struct lease_world *world = lease_world_open(1, TIMEOUT_MS);
    struct asked ada;

    asked_acquire(&ada, &world->instance[0], "free", ADA, 10000);
    asked_is(&ada, 201, "\"waited_ms\":0,");
    CHECK(has_walked(&world->instance[0], WAIT_ASKING, WAIT_DONE));
    world_end(world);
}

TEST(a_release_at_one_instance_grants_who_waits_at_the_other)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, &world->instance[1], "x", BOB, 10000);
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&bob, 201, "\"lease_id\":\"" BOB "\"");
    CHECK(asked_says(&bob, "\"expires_in_ms\":60000"));
    CHECK(has_walked(&world->instance[1], WAIT_CLAIMING, WAIT_DONE));
    world_end(world);
}

TEST(waited_ms_ends_when_the_claim_is_sent_and_the_ttl_begins_there)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    uint64_t sent_ms, in_line_ms, released_ms, answered_ms;
    struct asked bob;
    long told_ms;

    lease_take(&world->instance[0], "x", ADA);
    sent_ms = loop_now_ms();
    asked_waits(&bob, &world->instance[1], "x", BOB, 10000);
    in_line_ms = loop_now_ms();
    LEASE_WAIT(world, loop_now_ms() > in_line_ms + 100);
    released_ms = loop_now_ms();
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&bob, 201, "\"expires_in_ms\":60000");
    answered_ms = loop_now_ms();
    told_ms = strtol(strstr(bob.answer, "\"waited_ms\":") + 12, NULL, 10);
    CHECK(told_ms <= (long)(answered_ms - sent_ms));
    CHECK(told_ms >= (long)(released_ms - in_line_ms) - 1); /* rounded down */
    world_end(world);
}

TEST(whose_time_is_up_is_told_who_holds_it_and_stands_in_line_no_more)
{
    struct lease_world *world = lease_world_open(1, TIMEOUT_MS);
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, &world->instance[0], "x", BOB, 50);
    asked_is(&bob, 409, "\"code\":\"wait-timeout\"");
    CHECK(asked_says(&bob, "\"holder\":\"ada-\"") && asked_says(&bob, "\"lease\":\"x\""));
    CHECK(asked_says(&bob, "\"token\":") && asked_says(&bob, "\"expires_in_ms\":"));
    CHECK_INT(lease_waiting(world, "x"), 0);
    CHECK(has_walked(&world->instance[0], WAIT_LEAVING, WAIT_DONE));
    world_end(world);
}

/* The loop of his instance stands still meanwhile, and looks at the clock first when it goes on. */
TEST(whose_time_is_up_when_it_has_just_been_handed_to_him_gets_it)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    uint64_t asked_ms;
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 500);
    LEASE_WAIT(world, has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    asked_ms = loop_now_ms();
    his->held_up = true;
    lease_release(&world->instance[0], "x", ADA);
    LEASE_WAIT(world, loop_now_ms() > asked_ms + 500); /* his time is up */
    his->held_up = false;
    asked_is(&bob, 201, "\"lease_id\":\"" BOB "\"");
    CHECK(has_walked(his, WAIT_LEAVING, WAIT_CLAIMING));
    world_end(world);
}

TEST(a_client_that_goes_while_it_waits_is_out_of_the_line)
{
    struct lease_world *world = lease_world_open(1, TIMEOUT_MS);
    struct asked bob, cat;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, &world->instance[0], "x", BOB, 60000);
    asked_waits(&cat, &world->instance[0], "x", CAT, 60000);
    close(bob.fd);
    LEASE_WAIT(world, lease_waiting(world, "x") == 1);
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&cat, 201, CAT);
    world_end(world);
}

/* Of the waiter who was handed the lease, but has not claimed it. */
static bool is_unclaimed(struct lease_world *world, const char *lease)
{
    char command[KEYS_LEASE_SIZE + 16];

    snprintf(command, sizeof(command), "HGET %s c", lease_key('l', lease));
    return redis_ask(&world->redis, command)[0] == 'p'; /* the key of his desk */
}

/* It goes when the answer to the claim has arrived, and has not been read. */
TEST(a_client_that_goes_before_it_is_told_of_its_claim_gives_the_lease_back)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob;

    lease_take(&world->instance[0], "y", ADA);
    asked_waits(&bob, his, "y", BOB, 10000); /* then Redis knows the script, and needs no second message */
    lease_release(&world->instance[0], "y", ADA);
    asked_is(&bob, 201, BOB);
    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    LEASE_WAIT(world, store_counts(his->worker.store).in_flight == 0);
    loop_watch_set(&his->relay.watch[RELAY_UP], 0);
    lease_release(&world->instance[0], "x", ADA);
    LEASE_WAIT(world, !is_unclaimed(world, "x"));
    relay_pass(&his->relay, RELAY_DOWN); /* the answer is there, but his loop has not turned since */
    close(bob.fd);
    loop_watch_set(&his->relay.watch[RELAY_UP], LOOP_READ);
    LEASE_WAIT(world, has_walked(his, WAIT_RETURNING, WAIT_DONE));
    CHECK(has_walked(his, WAIT_CLAIMING, WAIT_RETURNING));
    history_has(world, "x", "returned");
    lease_take(&world->instance[0], "x", CAT);
    world_end(world);
}

TEST(of_two_who_wait_under_one_lease_id_the_second_has_the_place)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct asked first, cat, second;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&first, &world->instance[0], "x", BOB, 10000);
    asked_waits(&cat, &world->instance[0], "x", CAT, 10000);
    asked_acquire(&second, &world->instance[1], "x", BOB, 10000);
    asked_is(&first, 409, "\"code\":\"superseded\"");
    CHECK_INT(lease_waiting(world, "x"), 2);
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&second, 201, BOB);
    lease_release(&world->instance[0], "x", BOB);
    asked_is(&cat, 201, CAT);
    world_end(world);
}

/* Whatever was published before has been heard by the desk. */
static void wait_heard(struct instance *instance)
{
    struct desk *desk = instance_desk(instance);
    struct listener listener = {.place.told = listener_told};
    char command[160];

    desk_enter(desk, &listener.place);
    snprintf(command, sizeof(command), "PUBLISH %.*s \"granted %" PRIu64 "\"", (int)desk_key(desk).len,
             desk_key(desk).at, listener.place.wid);
    redis_ask(&instance->world->redis, command);
    LEASE_WAIT(instance->world, listener.told);
    desk_leave(desk, &listener.place);
}

/* The reply "queued" is held back until the message has come. */
TEST(a_grant_that_is_told_before_it_is_known_that_he_waits_is_not_lost)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    loop_watch_set(&his->relay.watch[RELAY_UP], 0);
    asked_waits(&bob, his, "x", BOB, 10000);
    lease_release(&world->instance[0], "x", ADA);
    wait_heard(his);
    loop_watch_set(&his->relay.watch[RELAY_UP], LOOP_READ);
    asked_is(&bob, 201, BOB);
    CHECK(has_walked(his, WAIT_ASKING, WAIT_CLAIMING));
    CHECK(!has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    world_end(world);
}

TEST(that_his_place_was_taken_is_not_lost_when_it_is_told_before_it_is_known_that_he_waits)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked first, second;

    lease_take(&world->instance[0], "x", ADA);
    loop_watch_set(&his->relay.watch[RELAY_UP], 0);
    asked_waits(&first, his, "x", BOB, 10000);
    asked_acquire(&second, &world->instance[0], "x", BOB, 10000);
    LEASE_WAIT(world, has_walked(&world->instance[0], WAIT_ASKING, WAIT_QUEUED));
    wait_heard(his);
    loop_watch_set(&his->relay.watch[RELAY_UP], LOOP_READ);
    asked_is(&first, 409, "\"code\":\"superseded\"");
    CHECK(!has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&second, 201, BOB);
    world_end(world);
}

TEST(that_the_desk_has_closed_is_not_lost_when_it_closes_before_it_is_known_that_he_waits)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    loop_watch_set(&his->relay.watch[RELAY_UP], 0);
    asked_waits(&bob, his, "x", BOB, 10000);
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    LEASE_WAIT(world, desk_has_gone(instance_desk(his), DESK_OPEN, DESK_CLOSED));
    lease_world_turn(world);
    loop_watch_set(&his->relay.watch[RELAY_UP], LOOP_READ);
    asked_is(&bob, 503, "Nothing was granted");
    CHECK(!has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    world_end(world);
}

/* That it is none comes out at the claim. */
TEST(a_grant_that_is_none_is_not_announced)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob;
    char command[160];

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    LEASE_WAIT(world, has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    snprintf(command, sizeof(command), "PUBLISH %.*s \"granted 1048576\"",
             (int)desk_key(instance_desk(his)).len, desk_key(instance_desk(his)).at);
    redis_ask(&world->redis, command);
    asked_is(&bob, 503, "\"code\":\"store-unavailable\"");
    CHECK(has_walked(his, WAIT_QUEUED, WAIT_CLAIMING));
    world_end(world);
}

TEST(who_was_cut_off_from_the_store_is_told_that_nothing_was_granted_and_finds_his_place_again)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob, cat, again;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    LEASE_WAIT(world, has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    asked_is(&bob, 503, "\"code\":\"store-unavailable\"");
    CHECK(asked_says(&bob, "Nothing was granted"));
    CHECK(has_walked(his, WAIT_QUEUED, WAIT_DONE));
    LEASE_WAIT(world, desk_is_open(instance_desk(his)) && desk_is_open(instance_desk(&world->instance[0])));
    asked_waits(&cat, his, "x", CAT, 10000);
    asked_acquire(&again, his, "x", BOB, 10000);
    LEASE_WAIT(world, desk_count(instance_desk(his)) == 2);
    CHECK_INT(lease_waiting(world, "x"), 2);
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&again, 201, BOB);
    lease_release(&world->instance[0], "x", BOB);
    asked_is(&cat, 201, CAT);
    world_end(world);
}

/* An instance that stood still past a hand-off finds out at the claim, or closes its desk by itself. */
TEST(a_grant_that_has_gone_on_is_not_announced)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob, cat;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 20000);
    asked_waits(&cat, &world->instance[0], "x", CAT, 20000);
    LEASE_WAIT(world, has_walked(his, WAIT_ASKING, WAIT_QUEUED));
    his->held_up = true;
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&cat, 201, CAT);
    his->held_up = false;
    asked_is(&bob, 503, "\"code\":\"store-unavailable\"");
    world_end(world);
}

TEST(who_waits_when_the_service_is_drained_is_told_so_and_the_next_is_served_at_once)
{
    struct lease_world *world = lease_world_open(2, TIMEOUT_MS);
    struct instance *his = &world->instance[1];
    struct asked bob, cat;
    uint64_t begun_ms;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    asked_waits(&cat, &world->instance[0], "x", CAT, 10000);
    atomic_store(&his->service.draining, true);
    LEASE_WAIT(world, lease_worker_drain(&his->worker));
    asked_is(&bob, 503, "\"code\":\"draining\"");
    begun_ms = waited_ms();
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&cat, 201, CAT);
    CHECK(waited_ms() - begun_ms < 1000);
    world_end(world);
}

/* -- the drawing */

static bool table_allows(unsigned from, unsigned to)
{
    return wait_allows((enum wait_state)from, (enum wait_state)to);
}

static bool has_gone(unsigned from, unsigned to)
{
    return waits_walked[from] >> to & 1;
}

TEST(the_drawing_the_table_and_where_waiters_went_agree)
{
    static const char *const names[WAIT_STATES] = {"ASKING",  "QUEUED",    "CLAIMING",
                                                   "LEAVING", "RETURNING", "DONE"};

    CHECK_INT(drawing_check("lease/wait.h", names, WAIT_STATES, table_allows, has_gone), ARROWS);
}

int main(void)
{
    RUN(who_need_not_wait_is_granted_at_once);
    RUN(a_release_at_one_instance_grants_who_waits_at_the_other);
    RUN(waited_ms_ends_when_the_claim_is_sent_and_the_ttl_begins_there);
    RUN(whose_time_is_up_is_told_who_holds_it_and_stands_in_line_no_more);
    RUN(whose_time_is_up_when_it_has_just_been_handed_to_him_gets_it);
    RUN(a_client_that_goes_while_it_waits_is_out_of_the_line);
    RUN(a_client_that_goes_before_it_is_told_of_its_claim_gives_the_lease_back);
    RUN(of_two_who_wait_under_one_lease_id_the_second_has_the_place);
    RUN(a_grant_that_is_told_before_it_is_known_that_he_waits_is_not_lost);
    RUN(that_his_place_was_taken_is_not_lost_when_it_is_told_before_it_is_known_that_he_waits);
    RUN(that_the_desk_has_closed_is_not_lost_when_it_closes_before_it_is_known_that_he_waits);
    RUN(a_grant_that_is_none_is_not_announced);
    RUN(who_was_cut_off_from_the_store_is_told_that_nothing_was_granted_and_finds_his_place_again);
    RUN(a_grant_that_has_gone_on_is_not_announced);
    RUN(who_waits_when_the_service_is_drained_is_told_so_and_the_next_is_served_at_once);
    RUN(the_drawing_the_table_and_where_waiters_went_agree);
    return check_done();
}
