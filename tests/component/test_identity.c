/* test_identity.c - callers with identities at one instance or two, on a real Redis: what is whose, what is
 * told of that, and who may not have any more what it waited for. */
#include "tests/component/lease_world.h"

enum { TIMEOUT_MS = 2000 };

#define ADA "ada-------------------"
#define BOB "bob-------------------"
#define CAT "cat-------------------"
#define KEY "\r\nIdempotency-Key: k"
#define OF(id) "{\"lease_id\":\"" id "\"}"

static struct lease_world *access_open(unsigned instances, const char *access)
{
    struct lease_world *world = lease_world_open(instances, TIMEOUT_MS);

    for (unsigned i = 0; i < instances; i++)
        world->instance[i].service.settings.access = access;
    return world;
}

#define TEST_ACCESS(sentence, instances)                                                                     \
    TEST_IN(sentence, struct lease_world *, world, access_open(instances, "access.json"),                    \
            lease_world_close(world))

/* says: of the answer, in this order; NULL: no more. */
struct row {
    const char *who, *method, *lease, *lease_id, *body;
    unsigned status;
    const char *says;
};

static void row_check(struct lease_world *world, const struct row *row)
{
    struct asked asked;

    asked_as = row->who;
    asked_send(&asked, &world->instance[0], row->method, row->lease, row->lease_id, row->body);
    asked_is(&asked, row->status, row->says);
    /* Only `holder` is told to who may not look. */
    CHECK(row->status == 200 || row->status == 201 || !asked_says(&asked, "identity"));
}

TEST_ACCESS(what_is_anothers_is_not_yours_and_answers_say_whose_it_is, 1)
{
    static const struct row rows[] = {
        {"ada", "POST", "x", "", OF(ADA), 201, "\"holder\":\"ada\",\"identity\":\"ada\""},
        {"bob", "PUT", "x", ADA, "", 403, "\"code\":\"not-yours\""},
        {"", "DELETE", "x", ADA, "", 403, "\"code\":\"not-yours\""},
        {"ada", "PUT", "x", ADA, "", 200, "\"holder\":\"ada\",\"identity\":\"ada\""},
        {"bob", "GET", "x", "", "", 200, "\"holder\":\"ada\",\"identity\":\"ada\""},
        {"bob", "GET", "/v1/leases", "", "", 200, "\"holder\":\"ada\",\"identity\":\"ada\""},
        {"bob", "POST", "x", "", OF(ADA), 403, "\"code\":\"not-yours\""},
        {"bob", "POST", "x", "", OF(BOB), 409, "\"holder\":\"ada\",\"expires_in_ms\""},
        {"ada", "DELETE", "x", ADA, "", 204, ""},
        {"bob", "DELETE", "x", ADA, "", 403, "\"code\":\"not-yours\""},
        {"bob", "GET", "x/history", "", "", 200, "\"holder\":\"ada\",\"identity\":\"ada\",\"at_ms\""},
        {"", "POST", "y", "", OF(BOB), 201, "\"holder\":\"anonymous\",\"identity\":null"},
        {"bob", "PUT", "y", BOB, "", 200, "\"holder\":\"anonymous\",\"identity\":null"},
        {"bob", "DELETE", "y", BOB KEY, "", 204, ""},
        {"bob", "DELETE", "y", BOB KEY, "", 204, ""},
        {"ada", "DELETE", "y", BOB KEY, "", 422, "\"code\":\"key-reused\""},
        {"ada", "POST", "/v1/leases", "", "{\"names\":[\"a\",\"b\"],\"lease_id\":\"" CAT "\"}", 201,
         "\"identity\":\"ada\""},
        {"bob", "POST", "/v1/leases", "", "{\"names\":[\"b\"],\"lease_id\":\"" CAT "\"}", 403, "not-yours"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        row_check(world, &rows[i]);
}

TEST_ACCESS(a_session_is_its_own_identitys, 1)
{
    char path[64] = "/v1/sessions/", *end;
    struct asked asked;

    asked_as = "ada";
    asked_send(&asked, &world->instance[0], "POST", "/v1/sessions", "", "");
    asked_is(&asked, 201, "\"session\":\"");
    snprintf(path + strlen(path), 23, "%s", strstr(asked.answer, "\"session\":\"") + 11);
    row_check(world,
              &(struct row){"ada", "GET", path, "", "", 200, "\"holder\":\"ada\",\"identity\":\"ada\""});
    row_check(world, &(struct row){"bob", "GET", path, "", "", 403, "\"code\":\"not-yours\""});
    end = strstr(asked.answer, "\"session_secret\":\"") + 18;
    for (unsigned i = 0; i < 2; i++) {
        const char *id = textf(ADA "\r\nSession-Secret: %.22s", end);

        row_check(world, &(struct row){"bob", i == 0 ? "PUT" : "DELETE", path, id, "", 403, "not-yours"});
        row_check(world,
                  &(struct row){"ada", i == 0 ? "PUT" : "DELETE", path, id, "", i == 0 ? 200 : 204, ""});
    }
}

TEST_IN(without_access_nobody_has_an_identity, struct lease_world *, world, access_open(1, NULL),
        lease_world_close(world))
{
    static const char *const paths[] = {"x", "/v1/leases", "x/history"};
    struct asked asked;

    asked_acquire(&asked, &world->instance[0], "x", ADA, 0);
    asked_is(&asked, 201, "");
    CHECK(!asked_says(&asked, "identity"));
    for (unsigned i = 0; i < 3; i++) {
        asked_send(&asked, &world->instance[0], "GET", paths[i], "", "");
        asked_is(&asked, 200, "\"holder\"");
        CHECK(!asked_says(&asked, "identity"));
    }
}

/* -- waiting */

TEST_ACCESS(a_place_in_line_is_its_own_identitys_and_nobody_else_supersedes_it, 1)
{
    struct asked bob;

    asked_as = "ada";
    lease_take(&world->instance[0], "x", ADA);
    asked_as = "bob";
    asked_waits(&bob, &world->instance[0], "x", BOB, 10000);
    row_check(world, &(struct row){"cat", "POST", "x", "", "{\"lease_id\":\"" BOB "\",\"wait_ms\":9}", 403,
                                   "\"code\":\"not-yours\""});
    asked_as = "ada";
    lease_release(&world->instance[0], "x", ADA);
    asked_is(&bob, 201, "\"identity\":\"bob\"");
}

static bool bob_may_not_have_b(const struct worker *worker, const char *identity, struct bytes lease)
{
    (void)worker;
    return !(identity != NULL && strcmp(identity, "bob") == 0 && bytes_are(lease, "b"));
}

static void judge(struct lease_world *world)
{
    for (unsigned i = 0; i < world->count; i++)
        lease_worker_from(&world->instance[i].worker)->may_have = bob_may_not_have_b;
}

/* Bob waits at the second instance, Cat behind it; the lease is released at one of the two. */
static void bob_is_denied(struct lease_world *world, unsigned release_at)
{
    struct instance *his = &world->instance[1];
    struct asked bob, cat;
    uint64_t begun_ms;

    asked_as = "ada";
    lease_take(&world->instance[0], "b", ADA);
    asked_as = "bob";
    asked_send(&bob, his, "POST", "b", "",
               "{\"lease_id\":\"" BOB "\",\"wait_ms\":10000,\"ttl_ms\":60000,\"keep_place_ms\":60000}");
    LEASE_WAIT(world, lease_waiting(world, "b") == 1);
    asked_as = "cat";
    asked_waits(&cat, his, "b", CAT, 10000);
    judge(world);
    asked_as = "ada";
    begun_ms = waited_ms();
    lease_release(&world->instance[release_at], "b", ADA);
    asked_is(&bob, 403, "\"identity\":\"bob\",\"verb\":\"acquire\",\"lease\":\"b\"");
    CHECK(asked_says(&bob, "\"code\":\"forbidden\""));
    asked_is(&cat, 201, CAT);
    CHECK(waited_ms() - begun_ms < 2500); /* it was not offered to bob for 3 s, whose place was to be kept */
}

TEST_ACCESS(who_claims_what_it_may_not_have_any_more_gives_it_back, 2)
{
    bob_is_denied(world, 0);
}

TEST_ACCESS(who_is_handed_what_it_may_not_have_any_more_gives_it_back, 2)
{
    bob_is_denied(world, 1);
}

TEST_ACCESS(who_is_judged_before_it_waits_does_not_wait, 1)
{
    struct asked bob;

    judge(world);
    asked_as = "ada";
    lease_take(&world->instance[0], "b", ADA);
    asked_as = "bob";
    asked_send(&bob, &world->instance[0], "POST", "b", "", "{\"wait_ms\":60000}");
    asked_is(&bob, 403, "\"identity\":\"bob\",\"verb\":\"acquire\",\"lease\":\"b\"");
    LEASE_WAIT(world, lease_waiting(world, "b") == 0);
}

TEST_ACCESS(of_several_it_is_told_which_one, 1)
{
    struct instance *only = &world->instance[0];
    struct asked bob;

    asked_as = "ada";
    lease_take(only, "c", ADA);
    asked_as = "bob";
    asked_send(&bob, only, "POST", "/v1/leases", "",
               "{\"names\":[\"a\",\"b\",\"c\"],\"lease_id\":\"" BOB "\",\"wait_ms\":10000}");
    LEASE_WAIT(world, lease_waiting(world, "c") == 1);
    judge(world);
    asked_as = "ada";
    lease_release(only, "c", ADA);
    asked_is(&bob, 403, "\"verb\":\"acquire\",\"lease\":\"b\"");
    asked_as = "cat";
    lease_take(only, "a", CAT);
    lease_take(only, "c", CAT);
}

CHECK_MAIN_AT_ONCE(3)
