/* test_request.c - what a client may ask of the lease service: every member at its limits, how others are
 * refused, and the rarer parts of an acquire as the JSON that the scripts read. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "lease/request.h"
#include "shared/text/json.h"
#include "shared/token/keys.h"
#include "tests/unit/check.h"

enum reads { ACQUIRE, SEVERAL, RENEW, SESSION, FORCE };

/* What all of them read into. */
static struct {
    struct lease_request request;
    struct lease_names names;
    struct force_request force;
    struct request_fault fault;
} got;

static void read_as(enum reads reads, const char *body)
{
    struct bytes text = bytes_of(body);

    memset(&got, 0, sizeof(got));
    switch (reads) {
    case ACQUIRE: lease_request_read(text, &got.request, &got.fault); return;
    case SEVERAL: lease_request_several_read(text, &got.request, &got.names, &got.fault); return;
    case RENEW: renew_request_read(text, &got.request.ttl_ms, &got.fault); return;
    case SESSION: session_request_read(text, &got.request, &got.fault); return;
    case FORCE: force_request_read(text, &got.force, &got.fault); return;
    }
}

/* detail: a part of it. */
static void check_fault(enum reads reads, const char *body, enum problem problem, const char *detail)
{
    read_as(reads, body);
    if (!CHECK_INT(got.fault.problem, problem) ||
        !CHECK(problem == PROBLEM_NONE || strstr(got.fault.detail, detail) != NULL))
        printf("# %.300s: %s\n", body, problem != PROBLEM_NONE ? got.fault.detail : "nothing wrong");
}

static struct lease_request request_of(const char *body)
{
    check_fault(ACQUIRE, body, PROBLEM_NONE, NULL);
    return got.request;
}

static void *gives_none(size_t size)
{
    (void)size;
    return NULL;
}

TEST(without_memory_nothing_is_wrong_with_the_body)
{
    cJSON_InitHooks(&(cJSON_Hooks){gives_none, free});
    check_fault(RENEW, "{\"ttl_ms\":1000}", PROBLEM_OVERLOADED, "no memory");
    cJSON_InitHooks(NULL);
}

TEST(an_empty_body_says_nothing_and_the_defaults_fill_it)
{
    struct lease_request request = request_of(""), plain = {0}, other;

    CHECK(memcmp(&request, &plain, sizeof(request)) == 0);
    lease_request_defaults(&request, NULL);
    CHECK_INT(request.ttl_ms, 30000);
    CHECK(!request.ttl_stated);
    CHECK_TEXT(((struct bytes){request.holder, request.holder_len}), BYTES("anonymous"));
    CHECK_INT(request.lease_id_len, 22);
    CHECK(name_is_lease_id((struct bytes){request.lease_id, request.lease_id_len}));
    request.holder_len = 0;
    lease_request_defaults(&request, "billing");
    CHECK_TEXT(((struct bytes){request.holder, request.holder_len}), BYTES("billing"));
    other = request_of("{}");
    lease_request_defaults(&other, NULL);
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
    lease_request_defaults(&request, "billing");
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

TEST(what_may_not_be_asked_is_named)
{
    static const struct {
        enum reads reads;
        const char *body;
        enum problem problem;
        const char *detail;
    } cases[] = {
        {ACQUIRE, "[]", PROBLEM_INVALID_REQUEST, "one JSON object"},
        {ACQUIRE, "{\"x\":1}", PROBLEM_INVALID_REQUEST, "The member x is not known"},
        {ACQUIRE, "{\"names\":[\"a\"]}", PROBLEM_INVALID_REQUEST, "names"},
        {ACQUIRE, "{\"mode\":\"permits\"}", PROBLEM_INVALID_REQUEST, "mode"},
        {ACQUIRE, "{\"mode\":1}", PROBLEM_INVALID_REQUEST, "mode"},
        {ACQUIRE, "{\"mode\":\"shared\",\"permits\":3}", PROBLEM_INVALID_REQUEST, "not both"},
        {ACQUIRE, "{\"mode\":\"exclusive\",\"permits\":1}", PROBLEM_INVALID_REQUEST, "not both"},
        {ACQUIRE, "{\"permits\":0}", PROBLEM_OUT_OF_RANGE, "permits"},
        {ACQUIRE, "{\"permits\":1000001}", PROBLEM_OUT_OF_RANGE, "permits"},
        {ACQUIRE, "{\"wait_ms\":-1}", PROBLEM_OUT_OF_RANGE, "wait_ms"},
        {ACQUIRE, "{\"wait_ms\":600001}", PROBLEM_OUT_OF_RANGE, "wait_ms"},
        {ACQUIRE, "{\"lock_delay_ms\":600001}", PROBLEM_OUT_OF_RANGE, "lock_delay_ms"},
        {ACQUIRE, "{\"keep_place_ms\":60001}", PROBLEM_OUT_OF_RANGE, "keep_place_ms"},
        {ACQUIRE, "{\"ttl_ms\":0}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {ACQUIRE, "{\"ttl_ms\":99}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {ACQUIRE, "{\"ttl_ms\":86400001}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {ACQUIRE, "{\"reentrant\":1}", PROBLEM_INVALID_REQUEST, "reentrant"},
        {ACQUIRE, "{\"session\":1}", PROBLEM_INVALID_REQUEST, "session"},
        {ACQUIRE, "{\"session\":\"sssssssssssssss\"}", PROBLEM_OUT_OF_RANGE, "session"},
        {ACQUIRE, "{\"session\":\"ssssssssssssssss/\"}", PROBLEM_OUT_OF_RANGE, "session"},
        {ACQUIRE, "{\"lease_id\":\"aaaaaaaaaaaaaaaaaaaaa\"}", PROBLEM_OUT_OF_RANGE, "lease_id"},
        {ACQUIRE, "{\"holder\":\"a\\tb\"}", PROBLEM_OUT_OF_RANGE, "holder"},
        {ACQUIRE, "{\"meta\":[]}", PROBLEM_INVALID_REQUEST, "meta"},
        {ACQUIRE, "{\"ttl_ms\":1,\"holder\":\"\"}", PROBLEM_OUT_OF_RANGE, "ttl_ms"}, /* the first fault */
        {SEVERAL, "", PROBLEM_INVALID_REQUEST, "names"},
        {SEVERAL, "{}", PROBLEM_INVALID_REQUEST, "names"},
        {SEVERAL, "{\"names\":\"a\"}", PROBLEM_INVALID_REQUEST, "names"},
        {SEVERAL, "{\"names\":[1]}", PROBLEM_INVALID_REQUEST, "texts"},
        {SEVERAL, "{\"names\":[\"a\",null]}", PROBLEM_INVALID_REQUEST, "texts"},
        {SEVERAL, "{\"names\":[]}", PROBLEM_OUT_OF_RANGE, "1 to 100"},
        {SEVERAL, "{\"names\":[\"\"]}", PROBLEM_OUT_OF_RANGE, "names"},
        {SEVERAL, "{\"names\":[\"-a\"]}", PROBLEM_OUT_OF_RANGE, "names"},
        {SEVERAL, "{\"names\":[\"a\",\"b\",\"a\"]}", PROBLEM_OUT_OF_RANGE, "a comes twice"},
        {SEVERAL, "{\"names\":[\"a\"],\"x\":1}", PROBLEM_INVALID_REQUEST, "The member x"},
        {SEVERAL, "{\"names\":[\"a\"],\"ttl_ms\":1}", PROBLEM_OUT_OF_RANGE, "ttl_ms"},
        {RENEW, "{\"holder\":\"a\"}", PROBLEM_INVALID_REQUEST, "holder"},
        {SESSION, "{\"wait_ms\":1}", PROBLEM_INVALID_REQUEST, "wait_ms"},
        {FORCE, "{\"reason\":\"\"}", PROBLEM_OUT_OF_RANGE, "reason"},
        {FORCE, "{\"reason\":\"a\\tb\"}", PROBLEM_OUT_OF_RANGE, "reason"},
        {FORCE, "{\"reason\":1}", PROBLEM_INVALID_REQUEST, "reason"},
        {FORCE, "{\"expect_token\":0}", PROBLEM_OUT_OF_RANGE, "expect_token"},
        {FORCE, "{\"expect_token\":1000000000000000}", PROBLEM_OUT_OF_RANGE, "expect_token"},
        {FORCE, "{\"expect_token\":\"1\"}", PROBLEM_INVALID_REQUEST, "expect_token"},
        {FORCE, "{\"ttl_ms\":100}", PROBLEM_INVALID_REQUEST, "ttl_ms"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_fault(cases[i].reads, cases[i].body, cases[i].problem, cases[i].detail);
}

TEST(names_are_read_in_their_order_with_everything_else)
{
    check_fault(SEVERAL, "{\"names\":[\"b\",\"a:1\",\"\\u0063\"],\"ttl_ms\":500,\"mode\":\"shared\"}",
                PROBLEM_NONE, NULL);
    if (CHECK_INT(got.names.count, 3)) {
        CHECK_TEXT(got.names.name[0], BYTES("b"));
        CHECK_TEXT(got.names.name[1], BYTES("a:1"));
        CHECK_TEXT(got.names.name[2], BYTES("c"));
    }
    CHECK_INT(got.request.ttl_ms, 500);
    CHECK_INT(got.request.mode, TOKEN_SHARED);
}

TEST(a_hundred_names_of_128_bytes_fit_and_one_more_does_not)
{
    static char body[REQUEST_BODY_MAX];

    for (unsigned count = 100; count <= 101; count++) {
        size_t len = (size_t)snprintf(body, sizeof(body), "{\"names\":[");

        for (unsigned i = 0; i < count; i++)
            len += (size_t)snprintf(body + len, sizeof(body) - len, "%s\"%0128u\"", i > 0 ? "," : "", i);
        snprintf(body + len, sizeof(body) - len, "]}");
        check_fault(SEVERAL, body, count > 100 ? PROBLEM_OUT_OF_RANGE : PROBLEM_NONE, "1 to 100");
        CHECK_INT(got.names.count, count > 100 ? 0 : 100);
        if (count == 100) {
            CHECK_INT(got.names.name[99].len, 128);
            CHECK(memcmp(got.names.name[99].at + 125, "099", 3) == 0);
        }
    }
}

TEST(a_renewal_takes_a_ttl_a_session_a_holder_and_meta_too)
{
    check_fault(RENEW, "{\"ttl_ms\":250}", PROBLEM_NONE, NULL);
    CHECK_INT(got.request.ttl_ms, 250);
    check_fault(SESSION, "{\"ttl_ms\":15000,\"holder\":\"n\",\"meta\":{}}", PROBLEM_NONE, NULL);
    CHECK_INT(got.request.ttl_ms, 15000);
    CHECK_INT(got.request.holder_len, 1);
    CHECK_INT(got.request.meta_len, 2);
}

TEST(a_force_release_takes_a_token_and_a_reason_of_256_bytes)
{
    check_fault(FORCE, "{\"reason\":\"it hangs\",\"expect_token\":34}", PROBLEM_NONE, NULL);
    CHECK_TEXT(((struct bytes){got.force.reason, got.force.reason_len}), BYTES("it hangs"));
    CHECK_INT(got.force.expect_token, 34);
    for (int len = 256; len <= 257; len++) {
        check_fault(FORCE, textf("{\"reason\":\"%0*d\"}", len, 7),
                    len > 256 ? PROBLEM_OUT_OF_RANGE : PROBLEM_NONE, "reason");
    }
}

/* -- the rarer parts, as the scripts read them */

static struct json_out out;

TEST(an_acquire_that_asks_nothing_in_particular_has_nothing_to_write)
{
    struct acquire_options nothing = {0}, key = {.key.key = BYTES("k")};
    const struct {
        struct lease_request request;
        bool are_asked;
    } samples[] = {
        {{.ttl_ms = 500, .ttl_stated = true, .wait_ms = 5, .keep_place_ms = 5}, false},
        {{.mode = TOKEN_SHARED}, true},
        {{.lock_delay_ms = 1}, true},
        {{.session_len = 16}, true},
        {{.reentrant = true}, true},
    };

    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        CHECK_INT(acquire_options_are_asked(&nothing, &samples[i].request), samples[i].are_asked);
        CHECK(acquire_options_are_asked(&key, &samples[i].request));
    }
}

/* The desk's number comes as a text: as a number a double would take it, and Lua's JSON has only those. */
TEST(each_thing_asked_for_is_a_member)
{
    static const struct lease_names both = {.count = 2, .name = {{"a", 1}, {"b", 1}}};
    const struct {
        struct lease_request request;
        const char *inbox;
        uint64_t wid;
        const char *secret;
        const struct lease_names *names;
        const char *wanted;
    } rows[] = {
        {{.mode = TOKEN_SHARED}, "", 0, "", NULL, "{\"mode\":\"shared\"}"},
        {{.mode = TOKEN_PERMITS, .permits = 3}, "", 0, "", NULL, "{\"mode\":\"permits\",\"permits\":3}"},
        {{.lock_delay_ms = 250}, "", 0, "", NULL, "{\"delay\":250}"},
        {{.reentrant = true, .ttl_ms = 30000}, "", 0, "", NULL, "{\"reentrant\":true}"},
        {{.reentrant = true, .ttl_stated = true}, "", 0, "", NULL, "{\"reentrant\":true,\"own_ttl\":true}"},
        {{.wait_ms = 5000},
         "pawl:{0a}:d:x",
         UINT64_MAX,
         "",
         NULL,
         "{\"desk\":\"pawl:{0a}:d:x\",\"wid\":\"18446744073709551615\",\"wait\":5000}"},
        {{.wait_ms = 5000, .keep_place_ms = 60000}, "", 0, "", NULL, "{}"},
        {{.wait_ms = 5000, .keep_place_ms = 60000},
         "d",
         1,
         "",
         NULL,
         "{\"desk\":\"d\",\"wid\":\"1\",\"wait\":5000,\"keep\":60000}"},
        {{.session = "ssssssssssssssss", .session_len = 16},
         "",
         0,
         "0123456789012345678901",
         NULL,
         textf("{\"session\":\"pawl:{%02x}:s:ssssssssssssssss\",\"secret\":\"0123456789012345678901\"}",
               keys_stripe_of(BYTES("ssssssssssssssss")))},
        {{.mode = TOKEN_SHARED},
         "",
         0,
         "",
         &both,
         textf("{\"mode\":\"shared\",\"all\":[[\"pawl:{%02x}\",\"a\"],[\"pawl:{%02x}\",\"b\"]]}",
               keys_stripe_of(BYTES("a")), keys_stripe_of(BYTES("b")))},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct acquire_options options = {0};

        snprintf(options.secret, sizeof(options.secret), "%s", rows[i].secret);
        CHECK_TEXT(acquire_options_write(&options, &rows[i].request, bytes_of(rows[i].inbox), rows[i].wid,
                                         rows[i].names, &out),
                   bytes_of(rows[i].wanted));
    }
}

/* Everything at its longest; and an Idempotency-Key that is nothing but what must be escaped. */
TEST(the_most_that_can_be_asked_reads_back)
{
    static struct lease_names names = {.count = REQUEST_NAMES_MAX};
    static char long_name[NAME_MAX_BYTES], key[128];
    struct lease_request request = {.mode = TOKEN_PERMITS,
                                    .permits = 1000000,
                                    .lock_delay_ms = 600000,
                                    .keep_place_ms = 60000,
                                    .reentrant = true,
                                    .ttl_stated = true,
                                    .ttl_ms = 86400000,
                                    .session_len = REQUEST_SESSION_MAX};
    struct acquire_options acquire_options = {
        {{key, sizeof(key)}, "dddddddddddddddddddddddd"}, "ssssssssssssssssssssss", NULL};
    const struct bytes inbox = BYTES("pawl:{00}:d:0123456789012345678901234567");
    struct json *json;
    struct bytes read;

    memset(long_name, 'n', sizeof(long_name));
    memset(request.session, 'i', REQUEST_SESSION_MAX);
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = i % 2 == 0 ? '"' : '\\';
    for (unsigned i = 0; i < names.count; i++)
        names.name[i] = (struct bytes){long_name, sizeof(long_name)};
    read = acquire_options_write(&acquire_options, &request, inbox, UINT64_MAX, &names, &out);
    json = json_parse(read, 4, NULL);
    if (CHECK(json != NULL)) {
        CHECK_INT(json_get_text(json, "key", &read), JSON_FOUND);
        CHECK_TEXT(read, acquire_options.key.key);
        CHECK_INT(json_list_count(json, "all", &(enum json_found){JSON_ABSENT}), REQUEST_NAMES_MAX);
    }
    json_free(json);
}

CHECK_MAIN
