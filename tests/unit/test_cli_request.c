/* test_cli_request.c - what the command line makes of names, keys and addresses. */
#include "api/cli/request.h"

#include <stdlib.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "api/cli/verb.h"
#include "tests/unit/check.h"
#include "tests/unit/utf8_text.h"

static void check_resource(const char *base, const char *key, const char *url)
{
    struct request request = {.what = "test"};

    if (CHECK_INT(request_resource(&request, base, key), CLI_GO_ON))
        CHECK_TEXT(bytes_of(request.url), bytes_of(url));
    request_done(&request);
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

static int to_lease(struct request *request, const char *name)
{
    return request_lease(request, NULL, name, "");
}

static int to_resource(struct request *request, const char *key)
{
    return request_resource(request, "http://h", key);
}

static int at_base(struct request *request, const char *base)
{
    return request_service(request, REQUEST_LEASE_SERVICE, base, "/v1/leases");
}

TEST(what_is_no_key_no_name_or_no_address_is_refused_before_it_is_sent)
{
    static const struct {
        int (*of)(struct request *request, const char *text);
        const char *texts[12]; /* up to a NULL */
    } rows[] = {
        {to_resource, {"", "/", "a/", "a//b", "a/../b", "a/.", "-a", "a b", "a/\n", "a/\xFF", "a/\x7F"}},
        {to_lease, {"", "a/b", "a b", ".a", "a%41", "\xC3\xA9"}},
        {at_base,
         {"", "127.0.0.1:8700", "ftp://h", "http://", "http:///x", "http://h?a", "http://me:pw@h:1",
          "http://h#", "http://h\r\nX: y", "file:///etc/passwd"}}};
    struct request good = {.what = "test"};

    CHECK_INT(to_lease(&good, "orders:42"), CLI_GO_ON);
    CHECK_TEXT(bytes_of(good.url), BYTES("http://127.0.0.1:8700/v1/leases/orders:42"));
    request_done(&good);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (const char *const *text = rows[i].texts; *text != NULL; text++) {
            struct request request = {.what = "test"};

            CHECK_INT(rows[i].of(&request, *text), CLI_USAGE);
            request_done(&request);
        }
    }
}

TEST(a_query_is_encoded_and_members_are_put_one_after_the_other)
{
    struct request request = {.what = "test"};

    CHECK_INT(request_service(&request, REQUEST_LEASE_SERVICE, "http://h", "/v1/leases"), CLI_GO_ON);
    request_query(&request, "prefix", BYTES("a&b=c"));
    request_query(&request, "cursor", BYTES("0f.x/y"));
    CHECK_TEXT(bytes_of(request.url), BYTES("http://h/v1/leases?prefix=a%26b%3Dc&cursor=0f.x%2Fy"));
    request_done(&request);
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

/* What print_safe() makes of it. */
static void check_shown(const char *text, const char *wanted)
{
    char *shown = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&shown, &len);

    print_safe(out, bytes_of(text));
    fclose(out);
    CHECK_TEXT(((struct bytes){shown, len}), bytes_of(wanted));
    free(shown);
}

TEST(what_deceives_the_eye_is_not_shown)
{
    static const uint32_t hidden[] = {0x1,    0x7,    0x9,     0xa,     0xd,    0x1b,   0x1f,   0x7f,
                                      0x80,   0x85,   0x9b,    0x9f,    0x61c,  0x200b, 0x200c, 0x200d,
                                      0x200e, 0x200f, 0x2028,  0x2029,  0x202a, 0x202b, 0x202c, 0x202d,
                                      0x202e, 0x2060, 0x2064,  0x2066,  0x2067, 0x2068, 0x2069, 0x206a,
                                      0x206f, 0xfeff, 0xe0001, 0xe0041, 0xe007f};
    static const uint32_t shown[] = {0x20,   0x7e,   0xa0,   0xe9,   0x61b,   0x61d,
                                     0x627,  0x200a, 0x2010, 0x2027, 0x202f,  0x205f,
                                     0x2070, 0x4e2d, 0xfefe, 0xff00, 0x1f600, 0xe0080};
    char text[16], wanted[16];

    for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        char buf[4];

        snprintf(text, sizeof(text), "a%.*sb", (int)utf8_encode(hidden[i], buf), buf);
        check_shown(text, "a?b");
    }
    for (unsigned i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        char buf[4];

        snprintf(wanted, sizeof(wanted), "a%.*sb", (int)utf8_encode(shown[i], buf), buf);
        check_shown(wanted, wanted);
    }
    check_shown("a\x80"
                "b\xC2",
                "a?b?"); /* no UTF-8 at all */
    check_shown("a\xED\xA0\x80", "a???");
}

static bool is_in_doubt(unsigned status, const char *code)
{
    char body[128];
    int len = snprintf(body, sizeof(body), "{\"type\":\"/problems/%s\",\"code\":\"%s\",\"status\":%u}", code,
                       code, status);
    struct request request = {
        .answer = {
            .status = status, .body = body, .len = (size_t)len, .content_type = "application/problem+json"}};

    return request_judge(&request) == PAWL_UNKNOWN;
}

TEST(a_problem_of_a_later_version_is_in_doubt_unless_its_status_says_that_nothing_was_done)
{
    CHECK(is_in_doubt(504, "outcome-unknown"));
    CHECK(is_in_doubt(500, "internal"));
    CHECK(is_in_doubt(502, "of-a-later-version"));
    CHECK(is_in_doubt(507, "of-a-later-version"));
    CHECK(!is_in_doubt(503, "of-a-later-version"));
    CHECK(!is_in_doubt(409, "of-a-later-version"));
    CHECK(!is_in_doubt(503, "store-unavailable"));
    CHECK(!is_in_doubt(502, "upstream-unavailable"));
}

CHECK_MAIN
