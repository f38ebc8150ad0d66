/* test_cli_ask.c - what the command line makes of names, keys and addresses, and of a word that was mistyped.
 */
#include "api/cli/ask.h"

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/suggest.h"
#include "tests/unit/check.h"

static void check_resource(const char *base, const char *key, const char *url)
{
    struct ask ask = {.what = "test"};

    if (CHECK_INT(ask_resource(&ask, base, key), CLI_GO_ON)) {
        CHECK_TEXT(bytes_of(ask.url), bytes_of(url));
    }
    ask_done(&ask);
}

TEST(a_key_is_percent_encoded_once_and_its_slashes_stay)
{
    check_resource(NULL, "orders:42", "http://127.0.0.1:8701/v1/resources/orders:42");
    check_resource("http://h:1", "a/b c", "http://h:1/v1/resources/a/b%20c");
    check_resource("http://h:1/", "a/100%", "http://h:1/v1/resources/a/100%25");
    check_resource("http://h:1//", "a/%2F", "http://h:1/v1/resources/a/%252F");
    check_resource("https://h/pawl", "a/?x=1#y", "https://h/pawl/v1/resources/a/%3Fx%3D1%23y");
    check_resource("http://h", "a/\xC3\xA9", "http://h/v1/resources/a/%C3%A9");
}

TEST(a_key_that_no_gateway_takes_is_refused_before_it_is_sent)
{
    static const char *const keys[] = {"",   "/",   "a/",   "a//b",   "a/../b", "a/.",
                                       "-a", "a b", "a/\n", "a/\xFF", "a/\x7F"};

    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct ask ask = {.what = "test"};

        CHECK_INT(ask_resource(&ask, "http://h", keys[i]), CLI_USAGE);
        ask_done(&ask);
    }
}

TEST(a_name_that_is_none_is_refused_before_it_is_sent)
{
    static const char *const names[] = {"", "a/b", "a b", ".a", "a%41", "\xC3\xA9"};
    struct ask good = {.what = "test"};

    CHECK_INT(ask_lease(&good, NULL, "orders:42"), CLI_GO_ON);
    CHECK_TEXT(bytes_of(good.url), BYTES("http://127.0.0.1:8700/v1/leases/orders:42"));
    ask_done(&good);
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct ask ask = {.what = "test"};

        CHECK_INT(ask_lease(&ask, NULL, names[i]), CLI_USAGE);
        ask_done(&ask);
    }
}

TEST(an_address_with_a_query_a_user_or_another_scheme_is_refused)
{
    static const char *const bases[] = {
        "",           "127.0.0.1:8700",   "ftp://h",   "http://",          "http:///x",
        "http://h?a", "http://me:pw@h:1", "http://h#", "http://h\r\nX: y", "file:///etc/passwd"};

    for (unsigned i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        struct ask ask = {.what = "test"};

        CHECK_INT(ask_leases(&ask, bases[i]), CLI_USAGE);
        ask_done(&ask);
    }
}

TEST(a_query_is_encoded_and_members_are_put_one_after_the_other)
{
    struct ask ask = {.what = "test"};

    CHECK_INT(ask_leases(&ask, "http://h"), CLI_GO_ON);
    ask_query(&ask, "prefix", BYTES("a&b=c"));
    ask_query(&ask, "cursor", BYTES("0f.x/y"));
    CHECK_TEXT(bytes_of(ask.url), BYTES("http://h/v1/leases?prefix=a%26b%3Dc&cursor=0f.x%2Fy"));
    ask_done(&ask);
}

TEST(a_word_is_suggested_when_it_is_near_and_none_when_it_is_not)
{
    static const char *const names[] = {"acquire", "release", "renew", "ls", "rm", NULL};

    CHECK_TEXT(bytes_of(suggest("acquier", names)), BYTES("acquire"));
    CHECK_TEXT(bytes_of(suggest("relese", names)), BYTES("release"));
    CHECK_TEXT(bytes_of(suggest("sl", names)), BYTES("ls"));
    CHECK_TEXT(bytes_of(suggest("renwe", names)), BYTES("renew"));
    CHECK(suggest("xyzzy", names) == NULL);
    CHECK(suggest("", names) == NULL);
    CHECK(suggest("ab", names) == NULL);
    CHECK(suggest("a-word-that-is-longer-than-every-name-of-a-command", names) == NULL);
}

static void check_duration(int64_t ms, const char *wanted)
{
    char text[PRINT_DURATION_SIZE];

    print_duration(text, ms);
    CHECK_TEXT(bytes_of(text), bytes_of(wanted));
}

TEST(durations_are_rounded_down_to_what_a_person_wants_to_know)
{
    check_duration(0, "0.0 s");
    check_duration(999, "0.9 s");
    check_duration(9999, "9.9 s");
    check_duration(59999, "59 s");
    check_duration(60000, "1 m 0 s");
    check_duration(3599999, "59 m 59 s");
    check_duration(86400000, "24 h 0 m");
}

int main(void)
{
    RUN(a_key_is_percent_encoded_once_and_its_slashes_stay);
    RUN(a_key_that_no_gateway_takes_is_refused_before_it_is_sent);
    RUN(a_name_that_is_none_is_refused_before_it_is_sent);
    RUN(an_address_with_a_query_a_user_or_another_scheme_is_refused);
    RUN(a_query_is_encoded_and_members_are_put_one_after_the_other);
    RUN(a_word_is_suggested_when_it_is_near_and_none_when_it_is_not);
    RUN(durations_are_rounded_down_to_what_a_person_wants_to_know);
    return check_done();
}
