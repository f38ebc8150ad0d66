/* test_wait_walk.c - those who wait in line, at one instance or two, on a real Redis; every arrow of the
 * drawing in waiter.c. */
#include "tests/component/lease_world.h"
#include "tests/unit/drawing.h"

enum { ARROWS = 17, TIMEOUT_MS = 2000, AT_ONCE = 4 };
enum { MANY_LEAVE = 1000, LATER_AT_MOST_MS = 600 }; /* waiter.c has 256, and 517 ms */

#define ADA "ada-------------------"
#define BOB "bob-------------------"
#define CAT "cat-------------------"

/* Every arrow that anybody who waited in this program has gone. */
static unsigned *waits_walked;

static bool has_walked(const struct instance *instance, enum wait_state from, enum wait_state to)
{
    return lease_worker_from(&instance->worker)->walked[from] >> to & 1;
}

static void world_end(struct lease_world *world)
{
    for (unsigned i = 0; i < world->count; i++) {
        for (unsigned from = 0; from < WAIT_STATES; from++) {
            __atomic_fetch_or(&waits_walked[from],
                              lease_worker_from(&world->instance[i].worker)->walked[from], __ATOMIC_RELAXED);
        }
        LEASE_WAIT(world, inbox_count(instance_inbox(&world->instance[i])) == 0);
    }
    lease_world_close(world);
}

#define TEST_WALK(sentence, instances)                                                                       \
    TEST_IN(sentence, struct lease_world *, world, lease_world_open(instances, TIMEOUT_MS), world_end(world))

static void history_has(struct lease_world *world, const char *lease, const char *what)
{
    CHECK(strstr(redis_askf(&world->redis, "LINDEX %s -1", lease_key('e', lease)), textf("\t%s\t", what)) !=
          NULL);
}

/* Somebody at an inbox whom nobody waits for. */
struct listener {
    struct inbox_place place;
    bool told;
};

static void listener_told(struct inbox_place *place, enum inbox_news news)
{
    container_of(place, struct listener, place)->told = news == INBOX_GRANTED;
}

/* -1: the answer does not say it. */
static long waited_told(const struct asked *asked)
{
    const char *told = strstr(asked->answer, "\"waited_ms\":");

    return told != NULL ? strtol(told + 12, NULL, 10) : -1;
}

TEST_WALK(who_is_granted_by_a_release_at_another_instance_has_waited_until_its_claim_and_its_ttl_begins_there,
          2)
{
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
    CHECK(asked_says(&bob, "\"lease_id\":\"" BOB "\""));
    answered_ms = loop_now_ms();
    told_ms = waited_told(&bob);
    CHECK(told_ms <= (long)(answered_ms - sent_ms));
    CHECK(told_ms >= (long)(released_ms - in_line_ms) - 1); /* rounded down */
}

TEST_WALK(whose_time_is_up_is_told_who_holds_it_and_stands_in_line_no_more, 1)
{
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, &world->instance[0], "x", BOB, 50);
    asked_is(&bob, 409, "\"code\":\"wait-timeout\"");
    CHECK(asked_says(&bob, "\"holder\":\"ada-\"") && asked_says(&bob, "\"lease\":\"x\""));
    CHECK(asked_says(&bob, "\"token\":") && asked_says(&bob, "\"expires_in_ms\":"));
    CHECK_INT(lease_waiting(world, "x"), 0);
    CHECK(has_walked(&world->instance[0], WAIT_LEAVING, WAIT_DONE));
}

/* The loop of his instance stands still meanwhile, and looks at the clock first when it goes on. */
TEST_WALK(whose_time_is_up_when_it_has_just_been_handed_to_him_gets_it, 2)
{
    struct instance *his = &world->instance[1];
    uint64_t asked_ms;
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 500);
    LEASE_WAIT(world, has_walked(his, WAIT_REQUESTED, WAIT_QUEUED));
    asked_ms = loop_now_ms();
    his->held_up = true;
    lease_release(&world->instance[0], "x", ADA);
    LEASE_WAIT(world, loop_now_ms() > asked_ms + 500); /* his time is up */
    his->held_up = false;
    asked_is(&bob, 201, "\"lease_id\":\"" BOB "\"");
    CHECK(has_walked(his, WAIT_LEAVING, WAIT_CLAIMING));
}

TEST_WALK(a_client_that_goes_while_it_waits_is_out_of_the_line, 1)
{
    struct asked bob, cat;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, &world->instance[0], "x", BOB, 60000);
    asked_waits(&cat, &world->instance[0], "x", CAT, 60000);
    close(bob.fd);
    LEASE_WAIT(world, lease_waiting(world, "x") == 1);
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&cat, 201, CAT);
}

static bool nobody_may_have(const struct worker *worker, const char *identity, struct bytes lease)
{
    (void)worker, (void)identity, (void)lease;
    return false;
}

TEST_WALK(no_more_than_so_many_places_of_clients_that_left_are_remembered, 1)
{
    struct worker *worker = &world->instance[0].worker;
    struct lease_worker *own = lease_worker_from(worker);
    const struct wait_request left = {.name = BYTES("x"), .lease_id = BYTES(BOB), .hold = BYTES("hold")};

    own->may_have = nobody_may_have;
    for (unsigned i = 0; i < 2 * KEPT_MAX; i++)
        kept_add(worker, &left, 60000);
    CHECK_INT(own->kept.count, KEPT_MAX);
    kept_judge(worker); /* some of them leave the line */
    CHECK(own->kept.count < KEPT_MAX);
    kept_free(&own->kept);
    CHECK_INT(own->kept.count, 0);
}

/* So many leave just then that it is to leave in its turn. */
TEST_WALK(who_may_have_it_again_before_it_has_left_waits_on, 1)
{
    struct instance *his = &world->instance[0];
    struct lease_worker *own = lease_worker_from(&his->worker);
    uint64_t judged_ms;
    struct asked bob;

    lease_take(his, "x", ADA);
    asked_waits(&bob, his, "x", BOB, 60000);
    LEASE_WAIT(world, has_walked(his, WAIT_REQUESTED, WAIT_QUEUED));
    own->may_have = nobody_may_have;
    own->leaving += MANY_LEAVE;
    inbox_judge(own->inbox);
    own->leaving -= MANY_LEAVE;
    own->may_have = NULL;
    judged_ms = loop_now_ms();
    LEASE_WAIT(world, loop_now_ms() > judged_ms + LATER_AT_MOST_MS);
    CHECK_INT(lease_waiting(world, "x"), 1);
    lease_release(his, "x", ADA);
    asked_is(&bob, 201, BOB);
}

/* Of the waiter who was handed the lease, but has not claimed it. */
static bool is_unclaimed(struct lease_world *world, const char *lease)
{
    return strstr(redis_askf(&world->redis, "HGET pawl:{%02x} l:%s", keys_stripe_of(bytes_of(lease)), lease),
                  "\tc=p") != NULL; /* the key of his inbox */
}

/* It goes when the answer to the claim has arrived, and has not been read. */
TEST_WALK(a_client_that_goes_before_it_is_told_of_its_claim_gives_the_lease_back, 2)
{
    struct instance *his = &world->instance[1];
    struct asked bob;

    lease_take(&world->instance[0], "y", ADA);
    asked_waits(&bob, his, "y", BOB, 10000); /* then Redis knows the script, and needs no second message */
    lease_release(&world->instance[0], "y", ADA);
    asked_is(&bob, 201, BOB);
    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    LEASE_WAIT(world, store_counts(his->worker.store).in_flight == 0);
    relay_hold(&his->relay, RELAY_DOWN);
    lease_release(&world->instance[0], "x", ADA);
    LEASE_WAIT(world, !is_unclaimed(world, "x"));
    relay_pass(&his->relay, RELAY_DOWN); /* the answer is there, but his loop has not turned since */
    close(bob.fd);
    relay_go_on(&his->relay, RELAY_DOWN);
    LEASE_WAIT(world, has_walked(his, WAIT_RETURNING, WAIT_DONE));
    CHECK(has_walked(his, WAIT_CLAIMING, WAIT_RETURNING));
    history_has(world, "x", "returned");
    lease_take(&world->instance[0], "x", CAT);
}

TEST_WALK(of_two_who_wait_under_one_lease_id_the_second_has_the_place, 2)
{
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
}

/* Whatever was published before has been heard by the inbox. */
static void wait_heard(struct instance *instance)
{
    struct inbox *inbox = instance_inbox(instance);
    struct listener listener = {.place.notify = listener_told};

    inbox_enter(inbox, &listener.place);
    redis_askf(&instance->world->redis, "PUBLISH %.*s \"granted %" PRIu64 "\"", (int)inbox_key(inbox).len,
               inbox_key(inbox).at, listener.place.wid);
    LEASE_WAIT(instance->world, listener.told);
    inbox_leave(inbox, &listener.place);
}

/* The reply "queued" is held back until the message has come: of a grant, that his place was taken, that the
 * inbox has closed. */
TEST_WALK(what_is_told_before_it_is_known_that_he_waits_is_not_lost, 2)
{
    struct instance *his = &world->instance[1];
    struct asked bob, again;

    for (const char *lease = "xyz"; *lease != '\0'; lease++) {
        const char name[] = {*lease, '\0'};

        lease_take(&world->instance[0], name, ADA);
        relay_hold(&his->relay, RELAY_DOWN);
        asked_waits(&bob, his, name, BOB, 10000);
        if (*lease == 'x') {
            lease_release(&world->instance[0], name, ADA);
            wait_heard(his);
        } else if (*lease == 'y') {
            asked_acquire(&again, &world->instance[0], name, BOB, 10000);
            LEASE_WAIT(world, has_walked(&world->instance[0], WAIT_REQUESTED, WAIT_QUEUED));
            wait_heard(his);
        } else {
            redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
            LEASE_WAIT(world, inbox_has_gone(instance_inbox(his), INBOX_OPEN, INBOX_CLOSED));
            lease_world_turn(world);
        }
        relay_go_on(&his->relay, RELAY_DOWN);
        asked_is(&bob,
                 *lease == 'x'   ? 201
                 : *lease == 'y' ? 409
                                 : 503,
                 *lease == 'x'   ? BOB
                 : *lease == 'y' ? "\"code\":\"superseded\""
                                 : "Nothing was granted");
        CHECK(!has_walked(his, WAIT_REQUESTED, WAIT_QUEUED));
        CHECK(has_walked(his, WAIT_REQUESTED, WAIT_CLAIMING));
        if (*lease == 'y') {
            lease_release(&world->instance[0], name, ADA);
            asked_is(&again, 201, BOB);
        }
    }
}

/* That it is none comes out at the claim. */
TEST_WALK(a_grant_that_is_none_is_not_announced, 2)
{
    struct instance *his = &world->instance[1];
    struct asked bob;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    LEASE_WAIT(world, has_walked(his, WAIT_REQUESTED, WAIT_QUEUED));
    redis_askf(&world->redis, "PUBLISH %.*s \"granted 1048576\"", (int)inbox_key(instance_inbox(his)).len,
               inbox_key(instance_inbox(his)).at);
    asked_is(&bob, 503, "\"code\":\"store-unavailable\"");
    CHECK(has_walked(his, WAIT_QUEUED, WAIT_CLAIMING));
}

TEST_WALK(who_was_cut_off_from_the_store_is_told_that_nothing_was_granted_and_finds_his_place_again, 2)
{
    struct instance *his = &world->instance[1];
    struct asked bob, cat, again;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 10000);
    LEASE_WAIT(world, has_walked(his, WAIT_REQUESTED, WAIT_QUEUED));
    redis_ask(&world->redis, "CLIENT KILL TYPE pubsub");
    asked_is(&bob, 503, "\"code\":\"store-unavailable\"");
    CHECK(asked_says(&bob, "Nothing was granted"));
    CHECK(has_walked(his, WAIT_QUEUED, WAIT_DONE));
    LEASE_WAIT(world,
               inbox_is_open(instance_inbox(his)) && inbox_is_open(instance_inbox(&world->instance[0])));
    asked_waits(&cat, his, "x", CAT, 10000);
    asked_acquire(&again, his, "x", BOB, 10000);
    LEASE_WAIT(world, inbox_count(instance_inbox(his)) == 2);
    CHECK_INT(lease_waiting(world, "x"), 2);
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&again, 201, BOB);
    lease_release(&world->instance[0], "x", BOB);
    asked_is(&cat, 201, CAT);
}

/* An instance that stood still past a hand-off finds out at the claim, or closes its inbox by itself. */
TEST_WALK(a_grant_that_has_gone_on_is_not_announced, 2)
{
    struct instance *his = &world->instance[1];
    struct asked bob, cat;

    lease_take(&world->instance[0], "x", ADA);
    asked_waits(&bob, his, "x", BOB, 20000);
    asked_waits(&cat, &world->instance[0], "x", CAT, 20000);
    LEASE_WAIT(world, has_walked(his, WAIT_REQUESTED, WAIT_QUEUED));
    his->held_up = true;
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&cat, 201, CAT);
    his->held_up = false;
    asked_is(&bob, 503, "\"code\":\"store-unavailable\"");
}

TEST_WALK(who_waits_when_the_service_is_drained_is_told_so_and_the_next_is_served_at_once, 2)
{
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
}

/* -- a release at the inbox where it waits */

/* Ada holds, Bob waits where she releases; Cat behind him, if there is one. */
static struct instance *line_at_one_inbox(struct lease_world *world, struct asked *bob, struct asked *cat)
{
    struct instance *his = &world->instance[1];

    lease_take(his, "x", ADA);
    asked_waits(bob, his, "x", BOB, 60000);
    if (cat != NULL)
        asked_waits(cat, his, "x", CAT, 60000);
    return his;
}

/* Redis has run the release, and nobody has read its reply. */
static void release_unheard(struct instance *his, struct asked *release)
{
    struct lease_world *world = his->world;
    long before = lease_waiting(world, "x");

    LEASE_WAIT(world, store_counts(his->worker.store).in_flight == 0); /* that they wait was read */
    relay_hold(&his->relay, RELAY_DOWN);
    asked_send(release, his, "DELETE", "x", ADA, "");
    LEASE_WAIT(world, lease_waiting(world, "x") == before - 1);
}

/* A test in which such a release is under way from the beginning; answered: what it comes to in the end. */
#define TEST_UNHEARD(sentence, cat_waits, answered)                                                          \
    static void sentence##_when(struct lease_world *world, struct instance *his, struct asked *bob,          \
                                struct asked *cat);                                                          \
    TEST_WALK(sentence, 2)                                                                                   \
    {                                                                                                        \
        struct asked bob, cat, release;                                                                      \
        struct instance *his = line_at_one_inbox(world, &bob, (cat_waits) ? &cat : NULL);                    \
                                                                                                             \
        release_unheard(his, &release);                                                                      \
        sentence##_when(world, his, &bob, &cat);                                                             \
        asked_is(&release, answered, "");                                                                    \
    }                                                                                                        \
    static void sentence##_when(struct lease_world *world __attribute__((unused)), struct instance *his,     \
                                struct asked *bob, struct asked *cat __attribute__((unused)))

static void inbox_goes_deaf(struct instance *his)
{
    redis_ask(&his->world->redis, "CLIENT KILL TYPE pubsub");
    LEASE_WAIT(his->world, has_walked(his, WAIT_QUEUED, WAIT_AGAIN));
}

TEST_WALK(a_release_where_he_waits_grants_him_the_lease_in_its_own_step_and_waited_ms_ends_when_it_was_sent,
          2)
{
    struct asked bob, release;
    uint64_t waits_ms = loop_now_ms(), released_ms, heard_ms;
    struct instance *his = line_at_one_inbox(world, &bob, NULL);
    long told_ms;

    released_ms = loop_now_ms();
    release_unheard(his, &release);
    LEASE_WAIT(world, loop_now_ms() > released_ms + 200);
    heard_ms = loop_now_ms();
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(&release, 204, "");
    asked_is(&bob, 201, "\"expires_in_ms\":60000");
    told_ms = waited_told(&bob);
    CHECK(told_ms >= 0 &&
          told_ms <= (long)(heard_ms - waits_ms) - 200 + 20); /* by when it was sent, not heard */
    CHECK(!has_walked(his, WAIT_QUEUED, WAIT_CLAIMING));
}

TEST_UNHEARD(a_client_that_goes_before_it_is_told_of_what_a_release_granted_gives_it_back, true, 204)
{
    relay_pass(&his->relay, RELAY_DOWN); /* the reply is there, but his loop has not turned since */
    close(bob->fd);
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(cat, 201, CAT);
    CHECK(has_walked(his, WAIT_RETURNING, WAIT_DONE));
}

TEST_WALK(whose_time_is_up_while_the_release_that_grants_it_to_him_is_under_way_gets_it, 2)
{
    struct instance *his = &world->instance[1];
    struct asked bob, release;

    lease_take(his, "x", ADA);
    asked_waits(&bob, his, "x", BOB, 300);
    release_unheard(his, &release);
    LEASE_WAIT(world, lease_worker_from(&his->worker)->leaving > 0);
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(&bob, 201, BOB);
    CHECK(has_walked(his, WAIT_LEAVING, WAIT_CLAIMING));
    asked_is(&release, 204, "");
}

TEST_UNHEARD(of_a_release_whose_reply_is_lost_all_are_asked_for_and_nobody_is_sent_away, true, 504)
{
    relay_hang_up(&his->relay);
    asked_is(bob, 201, BOB);
    LEASE_WAIT(world, has_walked(his, WAIT_AGAIN, WAIT_QUEUED));
    CHECK(has_walked(his, WAIT_AGAIN, WAIT_DONE));
    lease_release(his, "x", BOB);
    asked_is(cat, 201, CAT);
}

TEST_WALK(who_is_perhaps_granted_when_the_inbox_closes_is_asked_for_and_nobody_else, 2)
{
    struct asked bob, other, release;
    struct instance *his = line_at_one_inbox(world, &bob, NULL);

    lease_take(his, "y", ADA);
    asked_waits(&other, his, "y", CAT, 60000);
    release_unheard(his, &release);
    inbox_goes_deaf(his);
    asked_is(&other, 503, "Nothing was granted");
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(&bob, 201, BOB);
    asked_is(&release, 204, "");
}

TEST_UNHEARD(who_is_perhaps_granted_and_goes_gives_it_back_when_the_inbox_is_open, true, 204)
{
    inbox_goes_deaf(his);
    close(bob->fd);
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(cat, 201, CAT);
    CHECK(has_walked(his, WAIT_AGAIN, WAIT_RETURNING));
}

TEST_UNHEARD(who_is_perhaps_granted_when_the_service_is_stopped_leaves_and_gets_it, false, 204)
{
    inbox_goes_deaf(his);
    atomic_store(&his->service.draining, true);
    lease_worker_drain(&his->worker);
    LEASE_WAIT(world, has_walked(his, WAIT_AGAIN, WAIT_LEAVING));
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(bob, 201, BOB);
}

TEST_UNHEARD(who_is_perhaps_granted_and_cannot_be_asked_for_is_told_that_nobody_knows, false, 504)
{
    redis_kill(&world->redis);
    relay_hang_up(&his->relay);
    asked_is(bob, 504, "\"code\":\"outcome-unknown\"");
    redis_run(&world->redis, NULL);
}

/* The store has fallen back: what it counts from now on was granted before. */
TEST_UNHEARD(a_token_that_comes_again_in_a_releases_step_is_not_announced, false, 204)
{
    struct epoch *store_epoch = lease_worker_from(&his->worker)->record.line.store_epoch;

    epoch_granted(store_epoch, keys_stripe_of(BYTES("x")), epoch_number(store_epoch), 1000000);
    relay_go_on(&his->relay, RELAY_DOWN);
    asked_is(bob, 504, "\"code\":\"outcome-unknown\"");
}

/* It stands in line, and nobody is there: its own way out of the line was cut off. */
TEST_WALK(what_a_release_grants_to_one_who_waits_here_no_more_goes_on_at_once, 2)
{
    struct asked bob, cat;
    struct instance *his = line_at_one_inbox(world, &bob, &cat);
    struct inbox_place *place = inbox_place_of(instance_inbox(his), 1 << 20);

    if (CHECK(place != NULL))
        place->notify(place, INBOX_SUPERSEDED);
    asked_is(&bob, 409, "");
    lease_release(his, "x", ADA);
    asked_is(&cat, 201, CAT);
}

/* -- the drawing */

TEST(the_drawing_the_table_and_where_waiters_went_agree)
{
    static const char *const names[WAIT_STATES] = {"REQUESTED", "QUEUED", "CLAIMING", "LEAVING",
                                                   "RETURNING", "AGAIN",  "DONE"};

    CHECK_INT(drawing_check("lease/queue/waiter.c", names, WAIT_STATES, wait_allows, waits_walked), ARROWS);
}

int main(void)
{
    waits_walked = check_shared(WAIT_STATES * sizeof(*waits_walked));
    return check_all_in_children(AT_ONCE);
}
