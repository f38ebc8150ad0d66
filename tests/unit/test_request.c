/* test_request.c - what a client may ask of the lease service: every member at its limits, and how others are
 * refused. */
#include "lease/request.h"

#include "tests/unit/check.h"

struct wanted {
    const char *body;
    enum problem problem;
    const char *detail; /* a part of it; NULL when nothing is wrong */
};

static void check_wrong(const struct request_fault *fault, const struct wanted *wanted)
{
    if (!CHECK_INT(fault->problem, wanted->problem) ||
        (wanted->detail != NULL && !CHECK(strstr(fault->detail, wanted->detail) != NULL))) {
        printf("# %s: %s\n", wanted->body, fault->problem != PROBLEM_NONE ? fault->detail : "nothing wrong");
    }
}

static struct lease_request request_of(const char *body)
{
    struct lease_request request = {0};
    struct request_fault fault;

    lease_request_read(bytes_of(body), &request, &fault);
    CHECK_INT(fault.problem, PROBLEM_NONE);
    return request;
}

TEST(an_empty_body_says_nothing_and_the_defaults_fill_it)
{
    struct lease_request request = request_of(""), plain = {0}, other;

    CHECK(memcmp(&request, &plain, sizeof(request)) == 0);
    lease_request_defaults(&request);
    CHECK_INT(request.ttl_ms, 30000);
    CHECK(!request.ttl_stated);
    CHECK_TEXT(((struct bytes){request.holder, request.holder_len}), BYTES("anonymous"));
    CHECK_INT(request.lease_id_len, 22);
    CHECK(name_is_lease_id((struct bytes){request.lease_id, request.lease_id_len}));
    other = request_of("{}");
    lease_request_defaults(&other);
    CHECK(strcmp(request.lease_id, other.lease_id) != 0);
}

TEST(every_member_is_read)
{
    struct lease_request request = request_of(
        "{\"holder\":\"ada\",\"ttl_ms\":100,\"wait_ms\":600000,\"mode\":\"shared\",\"lease_id\":"
        "\"aaaaaaaaaaaaaaaaaaaaaa\",\"reentrant\":true,\"lock_delay_ms\":5,\"meta\":{\"a\": 1},"
        "\"keep_place_ms\":60000,\"session\":\"ssssssssssssssss\"}");

    CHECK_TEXT(((struct bytes){request.holder, request.holder_len}), BYTES("ada"));
    CHECK_TEXT(((struct bytes){request.lease_id, request.lease_id_len}), BYTES("aaaaaaaaaaaaaaaaaaaaaa"));
    CHECK_TEXT(((struct bytes){request.session, request.session_len}), BYTES("ssssssssssssssss"));
    CHECK_TEXT(((struct bytes){request.meta, request.meta_len}), BYTES("{\"a\":1}"));
    CHECK_INT(request.ttl_ms, 100);
    CHECK(request.ttl_stated && request.reentrant);
    CHECK_INT(request.wait_ms, 600000);
    CHECK_INT(request.lock_delay_ms, 5);
    CHECK_INT(request.keep_place_ms, 60000);
    CHECK_INT(request.mode, TOKEN_SHARED);
    CHECK_INT(request.permits, 0);
    lease_request_defaults(&request);
    CHECK_INT(request.ttl_ms, 100);
    CHECK_INT(request.holder_len, 3);
    CHECK_TEXT(((struct bytes){request.lease_id, request.lease_id_len}), BYTES("aaaaaaaaaaaaaaaaaaaaaa"));
}

TEST(one_permit_is_an_exclusive_hold)
{
    struct lease_request one = request_of("{\"permits\":1}"), two = request_of("{\"permits\":2}");

    CHECK_INT(one.mode, TOKEN_EXCLUSIVE);
    CHECK_INT(one.permits, 0);
    CHECK_INT(two.mode, TOKEN_PERMITS);
    CHECK_INT(two.permits, 2);
    CHECK_INT(request_of("{\"permits\":1000000}").permits, 1000000);
    CHECK_INT(request_of("{\"mode\":\"exclusive\"}").mode, TOKEN_EXCLUSIVE);
}

TEST(what_an_acquire_may_not_ask_is_named)
{
    static const struct wanted cases[] = {
        {"[]", PROBLEM_INVALID_REQUEST, "one JSON object"},
        {"{\"x\":1}", PROBLEM_INVALID_REQUEST, "The member x is not known"},
        {"{\"names\":[\"a\"]}", PROBLEM_INVALID_REQUEST, "names"},
        {"{\"mode\":\"permits\"}", PROBLEM_INVALID_REQUEST, "mode"},
        {"{\"mode\":1}", PROBLEM_INVALID_REQUEST, "mode"},
        {"{\"mode\":\"shared\",\"permits\":3}", PROBLEM_INVALID_REQUEST, "not both"},
        {"{\"mode\":\"exclusive\",\"permits\":1}", PROBLEM_INVALID_REQUEST, "not both"},
        {"{\"permits\":0}", PROBLEM_OUT_OF_RANGE, "permits"},
        {"{\"permits\":1000001}", PROBLEM_OUT_OF_RANGE, "permits"},
        {"{\"wait_ms\":-1}", PROBLEM_OUT_OF_RANGE, "wait_ms"},
        {"{\"wait_ms\":600001}", PROBLEM_OUT_OF_RANGE, "wait_ms"},
        {"{\"lock_delay_ms\":600001}", PROBLEM_OUT_OF_RANGE, "lock_delay_ms"},
        {"{\"keep_place_ms\":60001}", PROBLEM_OUT_OF_RANGE, "keep_place_ms"},
        {"{\"ttl_ms\":0}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {"{\"ttl_ms\":99}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {"{\"ttl_ms\":86400001}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {"{\"reentrant\":1}", PROBLEM_INVALID_REQUEST, "reentrant"},
        {"{\"session\":1}", PROBLEM_INVALID_REQUEST, "session"},
        {"{\"session\":\"sssssssssssssss\"}", PROBLEM_OUT_OF_RANGE, "session"},
        {"{\"session\":\"ssssssssssssssss/\"}", PROBLEM_OUT_OF_RANGE, "session"},
        {"{\"lease_id\":\"aaaaaaaaaaaaaaaaaaaaa\"}", PROBLEM_OUT_OF_RANGE, "lease_id"},
        {"{\"holder\":\"a\\tb\"}", PROBLEM_OUT_OF_RANGE, "holder"},
        {"{\"meta\":[]}", PROBLEM_INVALID_REQUEST, "meta"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lease_request request = {0};
        struct request_fault fault;

        lease_request_read(bytes_of(cases[i].body), &request, &fault);
        check_wrong(&fault, &cases[i]);
    }
}

TEST(the_first_fault_is_the_one_that_is_told)
{
    static const struct wanted both = {"{\"ttl_ms\":1,\"holder\":\"\"}", PROBLEM_OUT_OF_RANGE, "ttl_ms"};
    struct lease_request request = {0};
    struct request_fault fault;

    lease_request_read(bytes_of(both.body), &request, &fault);
    check_wrong(&fault, &both);
}

/* -- several names */

static void all_of(const char *body, struct lease_names *names, struct request_fault *fault)
{
    struct lease_request request = {0};

    *names = (struct lease_names){0};
    lease_request_several_read(bytes_of(body), &request, names, fault);
}

TEST(names_are_read_in_their_order_with_everything_else)
{
    static struct lease_names names;
    struct lease_request request = {0};
    struct request_fault fault;

    lease_request_several_read(
        BYTES("{\"names\":[\"b\",\"a:1\",\"\\u0063\"],\"ttl_ms\":500,\"mode\":\"shared\"}"), &request, &names,
        &fault);
    CHECK_INT(fault.problem, PROBLEM_NONE);
    if (CHECK_INT(names.count, 3)) {
        CHECK_TEXT(names.name[0], BYTES("b"));
        CHECK_TEXT(names.name[1], BYTES("a:1"));
        CHECK_TEXT(names.name[2], BYTES("c"));
    }
    CHECK_INT(request.ttl_ms, 500);
    CHECK_INT(request.mode, TOKEN_SHARED);
}

TEST(names_that_are_not_1_to_100_different_ones_are_refused)
{
    static const struct wanted cases[] = {
        {"", PROBLEM_INVALID_REQUEST, "names"},
        {"{}", PROBLEM_INVALID_REQUEST, "names"},
        {"{\"names\":\"a\"}", PROBLEM_INVALID_REQUEST, "names"},
        {"{\"names\":[1]}", PROBLEM_INVALID_REQUEST, "texts"},
        {"{\"names\":[\"a\",null]}", PROBLEM_INVALID_REQUEST, "texts"},
        {"{\"names\":[]}", PROBLEM_OUT_OF_RANGE, "1 to 100"},
        {"{\"names\":[\"\"]}", PROBLEM_OUT_OF_RANGE, "names"},
        {"{\"names\":[\"-a\"]}", PROBLEM_OUT_OF_RANGE, "names"},
        {"{\"names\":[\"a\",\"b\",\"a\"]}", PROBLEM_OUT_OF_RANGE, "a comes twice"},
        {"{\"names\":[\"a\"],\"x\":1}", PROBLEM_INVALID_REQUEST, "The member x"},
        {"{\"names\":[\"a\"],\"ttl_ms\":1}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
    };
    static struct lease_names names;
    struct request_fault fault;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        all_of(cases[i].body, &names, &fault);
        check_wrong(&fault, &cases[i]);
    }
}

TEST(a_hundred_names_of_128_bytes_fit_and_one_more_does_not)
{
    static char body[REQUEST_BODY_MAX];
    static struct lease_names names;
    struct request_fault fault;
    const struct wanted too_many = {"101 names", PROBLEM_OUT_OF_RANGE, "1 to 100"};

    for (unsigned count = 100; count <= 101; count++) {
        size_t len = (size_t)snprintf(body, sizeof(body), "{\"names\":[");

        for (unsigned i = 0; i < count; i++) {
            len += (size_t)snprintf(body + len, sizeof(body) - len, "%s\"%0128u\"", i > 0 ? "," : "", i);
        }
        snprintf(body + len, sizeof(body) - len, "]}");
        all_of(body, &names, &fault);
        if (count > 100) {
            check_wrong(&fault, &too_many);
        } else if (CHECK_INT(fault.problem, PROBLEM_NONE) && CHECK_INT(names.count, 100)) {
            CHECK_INT(names.name[99].len, 128);
            CHECK(memcmp(names.name[99].at + 125, "099", 3) == 0);
        }
    }
}

/* -- the others */

TEST(a_renewal_takes_a_ttl_and_nothing_else)
{
    int64_t ttl_ms = 0;
    struct request_fault fault;
    const struct wanted other = {"{\"holder\":\"a\"}", PROBLEM_INVALID_REQUEST, "holder"};

    renew_request_read(BYTES("{\"ttl_ms\":250}"), &ttl_ms, &fault);
    CHECK_INT(fault.problem, PROBLEM_NONE);
    CHECK_INT(ttl_ms, 250);
    renew_request_read(bytes_of(other.body), &ttl_ms, &fault);
    check_wrong(&fault, &other);
}

TEST(a_session_takes_a_ttl_a_holder_and_meta)
{
    struct lease_request request = {0};
    struct request_fault fault;
    const struct wanted other = {"{\"wait_ms\":1}", PROBLEM_INVALID_REQUEST, "wait_ms"};

    session_request_read(BYTES("{\"ttl_ms\":15000,\"holder\":\"n\",\"meta\":{}}"), &request, &fault);
    CHECK_INT(fault.problem, PROBLEM_NONE);
    CHECK_INT(request.ttl_ms, 15000);
    CHECK_INT(request.holder_len, 1);
    CHECK_INT(request.meta_len, 2);
    session_request_read(bytes_of(other.body), &request, &fault);
    check_wrong(&fault, &other);
}

TEST(a_force_release_takes_a_reason_and_a_token)
{
    static const struct wanted cases[] = {
        {"{\"reason\":\"\"}", PROBLEM_OUT_OF_RANGE, "reason"},
        {"{\"reason\":\"a\\tb\"}", PROBLEM_OUT_OF_RANGE, "reason"},
        {"{\"reason\":1}", PROBLEM_INVALID_REQUEST, "reason"},
        {"{\"expect_token\":0}", PROBLEM_OUT_OF_RANGE, "expect_token"},
        {"{\"expect_token\":1000000000000000}", PROBLEM_OUT_OF_RANGE, "expect_token"},
        {"{\"expect_token\":\"1\"}", PROBLEM_INVALID_REQUEST, "expect_token"},
        {"{\"ttl_ms\":100}", PROBLEM_INVALID_REQUEST, "ttl_ms"},
    };
    struct force_request request = {0};
    struct request_fault fault;
    char body[320] = "";

    force_request_read(BYTES("{\"reason\":\"it hangs\",\"expect_token\":34}"), &request, &fault);
    CHECK_INT(fault.problem, PROBLEM_NONE);
    CHECK_TEXT(((struct bytes){request.reason, request.reason_len}), BYTES("it hangs"));
    CHECK_INT(request.expect_token, 34);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        force_request_read(bytes_of(cases[i].body), &request, &fault);
        check_wrong(&fault, &cases[i]);
    }
    for (int len = 256; len <= 257; len++) {
        snprintf(body, sizeof(body), "{\"reason\":\"%0*d\"}", len, 7);
        force_request_read(bytes_of(body), &request, &fault);
        CHECK_INT(fault.problem, len > 256 ? PROBLEM_OUT_OF_RANGE : PROBLEM_NONE);
    }
}

CHECK_MAIN
