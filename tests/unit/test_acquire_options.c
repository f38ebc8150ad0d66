/* test_acquire_options.c - the rarer parts of an acquire, as the JSON that the scripts read. */
#include "lease/request.h"

#include "shared/text/json.h"
#include "shared/token/keys.h"
#include "tests/unit/check.h"

static struct json_out out;

static struct bytes written(const struct acquire_options *options, const struct lease_request *request,
                            struct bytes inbox, uint64_t wid)
{
    return acquire_options_write(options, request, inbox, wid, NULL, &out);
}

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

TEST(each_thing_asked_for_is_a_member)
{
    struct acquire_options acquire_options = {0};
    struct lease_request request = {.mode = TOKEN_SHARED};

    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0), BYTES("{\"mode\":\"shared\"}"));
    request = (struct lease_request){.mode = TOKEN_PERMITS, .permits = 3};
    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0),
               BYTES("{\"mode\":\"permits\",\"permits\":3}"));
    request = (struct lease_request){.lock_delay_ms = 250};
    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0), BYTES("{\"delay\":250}"));
    request = (struct lease_request){.reentrant = true, .ttl_ms = 30000};
    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0), BYTES("{\"reentrant\":true}"));
    request.ttl_stated = true;
    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0),
               BYTES("{\"reentrant\":true,\"own_ttl\":true}"));
}

/* As a number a double would take it, and Lua's JSON has only those. */
TEST(who_waits_is_named_by_a_text)
{
    struct acquire_options acquire_options = {0};
    struct lease_request request = {.wait_ms = 5000};

    CHECK_TEXT(written(&acquire_options, &request, BYTES("pawl:{0a}:d:x"), 18446744073709551615u),
               BYTES("{\"desk\":\"pawl:{0a}:d:x\",\"wid\":\"18446744073709551615\",\"wait\":5000}"));
    request.keep_place_ms = 60000;
    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0), BYTES("{}"));
    CHECK_TEXT(written(&acquire_options, &request, BYTES("d"), 1),
               BYTES("{\"desk\":\"d\",\"wid\":\"1\",\"wait\":5000,\"keep\":60000}"));
}

TEST(a_session_is_named_by_the_key_of_its_record)
{
    struct acquire_options acquire_options = {.secret = "0123456789012345678901"};
    struct lease_request request = {.session = "ssssssssssssssss", .session_len = 16};
    char key[ACQUIRE_OPTIONS_SESSION_KEY_SIZE], wanted[128];
    struct bytes id = {request.session, request.session_len};

    snprintf(key, sizeof(key), "pawl:{%02x}:s:ssssssssssssssss", keys_stripe_of(id));
    snprintf(wanted, sizeof(wanted), "{\"session\":\"%s\",\"secret\":\"0123456789012345678901\"}", key);
    CHECK_TEXT(written(&acquire_options, &request, BYTES(""), 0), bytes_of(wanted));
}

TEST(the_names_of_several_come_with_their_stripes)
{
    static struct lease_names names;
    struct acquire_options acquire_options = {0};
    struct lease_request request = {.mode = TOKEN_SHARED};
    char wanted[128];

    names.count = 2;
    names.name[0] = BYTES("a");
    names.name[1] = BYTES("b");
    snprintf(wanted, sizeof(wanted),
             "{\"mode\":\"shared\",\"all\":[[\"pawl:{%02x}\",\"a\"],[\"pawl:{%02x}\",\"b\"]]}",
             keys_stripe_of(BYTES("a")), keys_stripe_of(BYTES("b")));
    CHECK_TEXT(acquire_options_write(&acquire_options, &request, BYTES(""), 0, &names, &out),
               bytes_of(wanted));
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
