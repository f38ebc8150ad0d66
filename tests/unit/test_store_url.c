/* test_store_url.c - where a store is: what is accepted, what it means, what is refused. */
#include "shared/store/dial.h"
#include "tests/unit/check.h"

static const struct {
    const char *text;
    struct store_url url;
} good[] = {
    {"redis://localhost:6379", {.host = "localhost", .port = 6379}},
    {"rediss://u:p@h:7/1", {.host = "h", .port = 7, .db = 1, .user = "u", .password = "p", .is_tls = true}},
    {"redis://localhost", {.host = "localhost", .port = 6379}},
    {"redis://127.0.0.1:1/", {.host = "127.0.0.1", .port = 1}},
    {"redis://h:65535/15", {.host = "h", .port = 65535, .db = 15}},
    {"redis://[::1]:7000/0", {.host = "::1", .port = 7000}},
    {"redis://[fe80::1]", {.host = "fe80::1", .port = 6379}},
    {"redis://u:p@h:1", {.host = "h", .port = 1, .user = "u", .password = "p"}},
    {"redis://:p@h", {.host = "h", .port = 6379, .password = "p"}},
    {"redis://u@h", {.host = "h", .port = 6379, .user = "u"}},
    {"redis://u:@h", {.host = "h", .port = 6379, .user = "u"}},
    {"redis://u:p:q@h", {.host = "h", .port = 6379, .user = "u", .password = "p:q"}},
    {"redis://u:p@q@h", {.host = "h", .port = 6379, .user = "u", .password = "p@q"}},
    {"redis://%75:%40%2F%3a%25@h/1", {.host = "h", .port = 6379, .db = 1, .user = "u", .password = "@/:%"}},
    {"redis://:p%C3%A4ss@my_host-1.example:2",
     {.host = "my_host-1.example", .port = 2, .password = "p\xc3\xa4ss"}},
    {"unix:///run/redis.sock", {.path = "/run/redis.sock", .port = 6379}},
    {"unix:///a?db=65535", {.path = "/a", .port = 6379, .db = 65535}},
    {"unix:///a%20b%3Fc?db=0", {.path = "/a b?c", .port = 6379}},
    {"unix:///a:b@c", {.path = "/a:b@c", .port = 6379}},
    {"sentinel://a/main", {.port = 6379, .sentinels = {{"a", 26379}}, .sentinel_count = 1, .name = "main"}},
    {"sentinels://u:p/q@a:1,[::1],b:2/m.y-1_",
     {.port = 6379,
      .user = "u",
      .password = "p/q",
      .is_tls = true,
      .sentinels = {{"a", 1}, {"::1", 26379}, {"b", 2}},
      .sentinel_count = 3,
      .name = "m.y-1_"}},
    {"sentinel://a,b,c,d,e,f,g,h,i/n",
     {.port = 6379, .sentinels = {{"a", 26379}}, .sentinel_count = 9, .name = "n"}},
};

TEST(a_good_url_is_taken_apart)
{
    struct store_url url;
    bool has_password;

    for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK(store_url_check(good[i].text, &has_password) == NULL);
        CHECK(store_url_read(good[i].text, &url) == NULL);
        CHECK_TEXT(bytes_of(url.host), bytes_of(good[i].url.host));
        CHECK_TEXT(bytes_of(url.path), bytes_of(good[i].url.path));
        CHECK_TEXT(bytes_of(url.user), bytes_of(good[i].url.user));
        CHECK_TEXT(bytes_of(url.password), bytes_of(good[i].url.password));
        CHECK_INT(url.port, good[i].url.port);
        CHECK_INT(url.db, good[i].url.db);
        CHECK_INT(url.is_tls, good[i].url.is_tls);
        CHECK_INT(url.sentinel_count, good[i].url.sentinel_count);
        CHECK_TEXT(bytes_of(url.name), bytes_of(good[i].url.name));
        for (unsigned k = 0; k < SENTINELS_MAX && good[i].url.sentinels[k].port > 0; k++) {
            CHECK_TEXT(bytes_of(url.sentinels[k].host), bytes_of(good[i].url.sentinels[k].host));
            CHECK_INT(url.sentinels[k].port, good[i].url.sentinels[k].port);
        }
    }
}

static const char *const with_blanks[] = {"", "redis://h h", " redis://h", "sentinel://a/x y"};
static const char bad[] = /* with a blank between two */
    "redis redis: redis:/h redis:// redis://:1 redis:///0 redis://u:p@ redis://u:p@:1 redis://h: "
    "redis://h:0 redis://h:65536 redis://h:99999999999999999999 redis://h:01 redis://h:+1 redis://h:1x "
    "redis://h:1:2 redis://h/x redis://h/0/ redis://h/00 redis://h/65536 redis://h/-1 redis://h?db=1 "
    "redis://h/1?db=1 redis://h#x redis://h\n redis://%68 redis://[::1 redis://[]:1 redis://[::1]x "
    "redis://[::g] redis://::1 redis://u:%@h redis://u:%4@h redis://u:%4g@h redis://u:%00@h "
    "redis://u:%0a@h redis://u%7f:p@h REDIS://h rediss:// http://h unix:// unix://a unix://host/a "
    "unix:///a? unix:///a?db unix:///a?db= unix:///a?db=x unix:///a?db=1&x=2 unix:///a?DB=1 "
    "unix:///a?db=1?db=2 unix:///a% unix:///a%00b sentinel://a sentinel://a/ sentinel://a/0/main "
    "sentinel:///main sentinel://a,/main sentinel://,a/main sentinel://a:0/main sentinel://a,b,a/main "
    "sentinel://a,a:26379/main sentinel://a,b,c,d,e,f,g,h,i,j/main sentinels://[::1/main";

static void check_bad(const char *url)
{
    bool has_password;
    const char *why = store_url_check(url, &has_password);

    if (!CHECK(why != NULL && why[0] != '\0'))
        printf("# %s\n", url);
}

TEST(a_bad_url_is_refused_in_a_sentence)
{
    for (unsigned i = 0; i < sizeof(with_blanks) / sizeof(with_blanks[0]); i++)
        check_bad(with_blanks[i]);
    for (const char *rest = bad, *url; (url = check_word(&rest)) != NULL;)
        check_bad(url);
}

static const char *url_of(const char *before, char c, unsigned count, const char *after)
{
    static char text[4096];

    snprintf(text, sizeof(text), "%s%*s%s", before, (int)count, "", after);
    memset(text + strlen(before), c, count);
    return text;
}

TEST(every_part_has_its_longest)
{
    struct store_url url;

    CHECK(store_url_read(url_of("unix:///", 'a', STORE_PATH_MAX - 1, ""), &url) == NULL);
    CHECK_INT(strlen(url.path), STORE_PATH_MAX);
    CHECK(store_url_read(url_of("unix:///", 'a', STORE_PATH_MAX, ""), &url) != NULL);
    CHECK(store_url_read(url_of("redis://", 'h', STORE_HOST_MAX, ":1"), &url) == NULL);
    CHECK(store_url_read(url_of("redis://", 'h', STORE_HOST_MAX + 1, ":1"), &url) != NULL);
    CHECK(store_url_read(url_of("redis://", 'u', STORE_USER_MAX, ":p@h"), &url) == NULL);
    CHECK(store_url_read(url_of("redis://", 'u', STORE_USER_MAX + 1, ":p@h"), &url) != NULL);
    CHECK(store_url_read(url_of("redis://:", 'p', STORE_PASSWORD_MAX, "@h"), &url) == NULL);
    CHECK(store_url_read(url_of("redis://:", 'p', STORE_PASSWORD_MAX + 1, "@h"), &url) != NULL);
}

static const struct {
    const char *text;
    bool has;
} passwords[] = {
    {"redis://u:p@h:1", true},       {"redis://:p@h", true},
    {"redis://h:1", false},          {"redis://u@h:1", false},
    {"redis://u:p@", true},          {"redis://u:pa/ss@h", true},
    {"redis:/u:p@h", true},          {"u:p@h", true},
    {"unix:///a:b@c", false},        {"", false},
    {"redis://u:%zz@h:1/x", true},   {"rediss://u:p@h", true},
    {"sentinel://u@a:1,b/m", false}, {"sentinels://u:p@a/m", true},
};

TEST(a_password_is_noticed_in_good_and_in_mistyped_urls)
{
    for (unsigned i = 0; i < sizeof(passwords) / sizeof(passwords[0]); i++) {
        bool has = !passwords[i].has;

        store_url_check(passwords[i].text, &has);
        if (!CHECK_INT(has, passwords[i].has))
            printf("# %s\n", passwords[i].text);
    }
}

CHECK_MAIN
