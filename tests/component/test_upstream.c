/* test_upstream.c - requests to upstreams over real sockets, each test over plain TCP and over TLS; the test
 * is the upstream. Every arrow of the drawing in upstream/link.c. */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/resource.h>

#include "tests/component/upstream_world.h"
#include "tests/unit/drawing.h"

enum { ARROWS = 18 };

/* -- whole */

TEST_UPSTREAM_EACH(a_request_goes_out_whole_and_its_answer_comes_back, 2,
                   nth == 0 ? world_open() : world_open_unix())
{
    peer_asked(peer, asker, world);
    CHECK_INT(upstream_pool_open_calls(world->pool), 1);
    CHECK(uplink_has_sent(asker->call.link));
    peer_send(peer, "HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX: a b\r\n\r\nhello");
    ends_whole(asker, 201, "hello");
    CHECK_INT(asker->length, 5);
    CHECK_INT(asker->fields, 2);
    CHECK_TEXT(bytes_of(asker->field), BYTES("a b"));
    CHECK_INT(upstream_pool_open_calls(world->pool), 0);
}

TEST_UPSTREAM(an_answer_in_many_packets_is_put_together, world_open())
{
    static const char answer[] =
        "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n2;x\r\nde\r\n0\r\nY: z\r\n\r\n";

    peer_asked(peer, asker, world);
    for (const char *at = answer; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};

        CHECK_INT(asker->ends, 0);
        peer_send(peer, one);
        loop_turn(world->loop, 10);
    }
    ends_whole(asker, 200, "abcde");
    CHECK_INT(asker->length, -1);
    CHECK_INT(world->pool->idle_count, 1);
}

/* Writes, one after the other: the connection is kept and used again. */
TEST_UPSTREAM(the_framing_of_a_request_says_how_long_its_body_is, world_open())
{
    static const struct {
        struct upstream_request request;
        const char *wanted;
    } framed[] = {
        {{.method = {"GET", 3}, .body_is_whole = true}, "GET /x?y HTTP/1.1\r\nHost: h\r\n\r\n"},
        {{.method = {"DELETE", 6}, .body_is_whole = true}, "DELETE /x?y HTTP/1.1\r\nHost: h\r\n\r\n"},
        {{.method = {"POST", 4}, .body_is_whole = true},
         "POST /x?y HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
        {{.method = {"PUT", 3}, .body_is_whole = true},
         "PUT /x?y HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
        {{.method = {"PATCH", 5}, .body = {"abc", 3}, .body_length = 3, .body_is_whole = true},
         "PATCH /x?y HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"},
        {{.method = {"GET", 3}, .body = {"abc", 3}, .body_length = 3, .body_is_whole = true},
         "GET /x?y HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"},
        {{.method = {"POST", 4}, .body = {"0123456789", 10}, .body_length = -1, .body_is_whole = true},
         "POST /x?y HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n"},
        {{.method = {"POST", 4}, .body_length = -1, .body_is_whole = true},
         "POST /x?y HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    };

    for (unsigned i = 0; i < sizeof(framed) / sizeof(framed[0]); i++) {
        struct upstream_request request = framed[i].request;

        request.target = BYTES("/x?y");
        request.fields = HOST;
        request.is_write = true;
        ask_request(asker, world, &request);
        if (i == 0)
            peer_accept(peer, world);
        peer_got(peer, world, framed[i].wanted);
        peer_answers(peer, asker);
    }
    CHECK(is_nobody_there(world));
}

struct begun {
    struct world *world;
    struct upstream_request request;
};

static void request_begin(const void *of)
{
    const struct begun *begun = of;
    struct upstream_call call = {.ended = NULL};

    upstream_begin(begun->world->pool, &call, &begun->request);
}

/* The module would rather end the process than send it. */
TEST(a_request_that_smuggles_something_is_never_sent)
{
#define OTHER(method, target, fields, length)                                                                \
    {                                                                                                        \
        BYTES(method), BYTES(target), BYTES(fields), length                                                  \
    }
#define FIELDS(text) OTHER("GET", "/x", text, 0)
#define TARGET(text) OTHER("GET", text, "Host: h\r\n", 0)
    const struct {
        struct bytes method, target, fields;
        int64_t length;
    } requests[] = {
        FIELDS("Host: h\r\n"), /* the only good one */
        FIELDS("Host: h"),
        FIELDS("Host: h\n"),
        FIELDS("Host: h\r\n\r\n"),
        FIELDS("Host: h\r\nX: a\nY: b\r\n"),
        FIELDS("Host : h\r\n"),
        FIELDS("Host\r\n"),
        FIELDS(": h\r\n"),
        FIELDS("Host: h\r\ncontent-length: 5\r\n"),
        FIELDS("Host: h\r\nTransfer-Encoding: chunked\r\n"),
        FIELDS("connection: close\r\n"),
        FIELDS("Expect: 100-continue\r\n"),
        TARGET(""),
        TARGET("/x y"),
        TARGET("/x\r\nX: y"),
        TARGET("/x\x7f"),
        OTHER("GET /", "/x", "Host: h\r\n", 0),
        OTHER("GET", "/x", "Host: h\r\n", 1),
    };
    struct begun begun = {.world = world_open(), .request.body_is_whole = true};

    for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        begun.request.method = requests[i].method;
        begun.request.target = requests[i].target;
        begun.request.fields = requests[i].fields;
        begun.request.body_length = requests[i].length;
        CHECK_INT(check_aborts(request_begin, &begun), i > 0);
    }
    world_close(begun.world);
}

TEST_UPSTREAM(an_answer_to_HEAD_has_no_body, world_open())
{
    ask_request(asker, world,
                &(struct upstream_request){
                    .method = BYTES("HEAD"), .target = BYTES("/x"), .fields = HOST, .body_is_whole = true});
    peer_accept(peer, world);
    peer_got(peer, world, "HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
    peer_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
    ends_whole(asker, 200, "");
    CHECK_INT(asker->length, 7);
    CHECK_INT(world->pool->idle_count, 1);
}

TEST_UPSTREAM_EACH(an_answer_until_close_is_whole_with_a_fin_and_unknown_with_a_reset, 2, world_open())
{
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\n\r\nhel");
    UNTIL(world, asker->body_len == 3);
    if (nth == 0) {
        peer_send(peer, "lo");
        peer_close(peer);
        ends_whole(asker, 200, "hello");
    } else {
        peer_reset(peer);
        ends(asker, UPSTREAM_UNKNOWN, "reset");
        CHECK_INT(asker->heads, 1);
    }
    CHECK_INT(world->pool->idle_count, 0);
}

/* -- kept connections */

TEST_UPSTREAM(requests_at_the_same_time_have_connections_of_their_own, world_open())
{
    struct asker second;
    struct peer other;

    asker_init(&second);
    peer_asked(peer, asker, world);
    peer_asked(&other, &second, world);
    CHECK_INT(upstream_pool_open_calls(world->pool), 2);
    peer_answers(peer, asker);
    peer_answers(&other, &second);
    CHECK_INT(world->pool->idle_count, 2);
    peer_close(peer);
    peer_close(&other);
    UNTIL(world, world->pool->idle_count == 0);
    asker_done(&second);
}

TEST_UPSTREAM(a_connection_is_not_kept_when_one_side_will_close_it, world_open())
{
    static const char *const answers[] = {
        "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n",
        "HTTP/1.0 204 No\r\n\r\n",
        "HTTP/1.1 204 No\r\nKeep-Alive: timeout=0\r\n\r\n",
        "HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\n",
        NO_CONTENT "H",
    };

    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        peer_asked(peer, asker, world);
        peer_send(peer, answers[i]);
        ends_whole(asker, 204, "");
        CHECK_INT(world->pool->idle_count, 0);
        UNTIL(world, peer_is_left(peer));
        peer_close(peer);
    }
}

/* It is closed, it is reset, it speaks; and the loop gets a turn before the next request, or does not. */
TEST_UPSTREAM_EACH(a_kept_connection_that_ends_or_speaks_is_noticed_at_once_or_when_it_is_to_be_used, 6,
                   world_open())
{
    struct peer old;

    peer_kept(&old, asker, world, NO_CONTENT);
    switch (nth / 2) {
    case 0: peer_close(&old); break;
    case 1: peer_reset(&old); break;
    default: peer_send(&old, NO_CONTENT); break;
    }
    if (nth % 2 == 0)
        UNTIL(world, world->pool->idle_count == 0);
    peer_asked(peer, asker, world);
    CHECK_INT(asker->ends, 0);
    peer_send(peer, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    ends_whole(asker, 404, "");
    if (nth / 2 == 2)
        peer_close(&old);
}

TEST_UPSTREAM(an_answer_that_comes_with_a_fin_is_whole_and_its_connection_not_used_again, world_open())
{
    peer_asked(peer, asker, world);
    peer_send(peer, NO_CONTENT);
    peer_close(peer);
    ends_whole(asker, 204, "");
    peer_asked(peer, asker, world);
    peer_answers(peer, asker);
}

TEST_UPSTREAM(a_connection_is_kept_no_longer_than_half_of_what_the_upstream_says, world_open())
{
    uint64_t since_ms = loop_now_ms(), waited_before_ms = waited_ms();

    peer_kept(peer, asker, world, "HTTP/1.1 204 No\r\nKeep-Alive: timeout=1\r\n\r\n");
    UNTIL(world, world->pool->idle_count == 0);
    CHECK(loop_now_ms() - since_ms >= 500 && waited_ms() - waited_before_ms < 900);
    UNTIL(world, peer_is_left(peer));
    CHECK(peer->ended && !peer->reset);
}

/* A busy one, too: else it would never meet an authority that is not trusted any more, or another address. */
TEST_UPSTREAM_EACH(a_connection_is_kept_no_longer_than_a_minute_however_busy_it_is, 2, world_open())
{
    uint64_t since_ms = loop_now_ms(), left_ms = nth * 300, waited_before_ms = waited_ms();
    struct upstream_link *link;

    peer_asked(peer, asker, world);
    link = asker->call.link;
    CHECK(link->ms.keep_by >= since_ms + UPSTREAM_KEPT_MS && link->ms.keep_by <= loop_now_ms() + 60000);
    link->ms.keep_by = loop_now_ms() + left_ms;
    peer_answers(peer, asker);
    CHECK_INT(world->pool->idle_count, nth);
    UNTIL(world, world->pool->idle_count == 0);
    CHECK(waited_ms() - waited_before_ms < left_ms + 400);
    UNTIL(world, peer_is_left(peer));
    CHECK(peer->ended && !peer->reset);
}

TEST_UPSTREAM(a_write_uses_only_a_connection_that_was_used_just_now, world_open())
{
    struct peer old;
    uint64_t since_ms;

    peer_kept(&old, asker, world, NO_CONTENT);
    since_ms = loop_now_ms();
    UNTIL(world, loop_now_ms() > since_ms + UPSTREAM_IDLE_WRITE_MS);
    CHECK_INT(world->pool->idle_count, 1);
    ask_to_write(asker, world);
    peer_accept(peer, world);
    peer_got(peer, world, GET);
    CHECK_INT(old.len, 0);
    peer_send(peer, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
    ends_whole(asker, 204, "");
    ask(asker, world);
    peer_got(&old, world, GET);
    peer_answers(&old, asker);
    peer_close(peer);
    peer_close(&old);
}

TEST_UPSTREAM(a_pool_that_is_drained_keeps_nothing, world_open())
{
    struct asker second;
    struct peer idle, used;

    asker_init(&second);
    peer_asked(&used, &second, world);
    peer_kept(&idle, asker, world, NO_CONTENT);
    upstream_pool_drain(world->pool);
    CHECK_INT(world->pool->idle_count, 0);
    UNTIL(world, peer_is_left(&idle));
    CHECK_INT(second.ends, 0);
    peer_answers(&used, &second);
    UNTIL(world, peer_is_left(&used));
    ask(asker, world);
    peer_accept(peer, world);
    peer_got(peer, world, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    peer_answers(peer, asker);
    CHECK_INT(world->pool->idle_count, 0);
    peer_close(&idle);
    peer_close(&used);
    asker_done(&second);
}

/* -- not sent */

TEST_UPSTREAM_EACH(nothing_is_sent_where_nobody_listens, 2, nth == 0 ? world_open() : world_open_unix())
{
    close(world->listener);
    world->listener = -1;
    ask(asker, world);
    CHECK(!uplink_has_sent(asker->call.link));
    ends(asker, UPSTREAM_NOT_SENT, "refused");
    CHECK_INT(asker->heads, 0);
}

/* The upstream is also at another address, which comes first. */
static void also_at(struct world *world, unsigned port)
{
    struct upstream_place *addresses = &world->pool->place;
    struct sockaddr_in *first = (struct sockaddr_in *)(void *)&addresses->list[0].at;

    addresses->list[1] = addresses->list[0];
    addresses->count = 2;
    first->sin_port = htons((uint16_t)port);
}

TEST_UPSTREAM(the_next_address_is_tried_when_the_first_refuses, world_open())
{
    unsigned port;

    close(loopback_listen(&port, 1, 0));
    also_at(world, port);
    peer_asked(peer, asker, world);
    peer_answers(peer, asker);
}

static bool is_at_second(const struct asker *asker)
{
    return asker->ends > 0 || asker->call.link->left == 0;
}

TEST_UPSTREAM(
    an_address_that_takes_too_long_gives_way_to_the_next_for_later_requests_too_and_the_last_to_the_end,
    world_open())
{
    struct loopback_full full;

    loopback_full_open(&full);
    also_at(world, full.port);
    ask(asker, world);
    late_now(asker);
    peer_accept(peer, world);
    peer_send(peer, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
    ends(asker, UPSTREAM_WHOLE, NULL);
    peer_close(peer);
    peer_kept(peer, asker, world, NO_CONTENT); /* at once: it begins behind the one that took too long */
    upstream_pool_drain(world->pool);
    world->pool->place.list[1] = world->pool->place.list[0];
    ask(asker, world);
    late_now(asker);
    UNTIL(world, is_at_second(asker));
    CHECK_INT(asker->ends, 0);
    late_now(asker);
    ends(asker, UPSTREAM_NOT_SENT, "in time");
    loopback_full_close(&full);
}

/* By a process that stood still meanwhile: the connection stands before any alarm has rung. */
TEST_UPSTREAM(nothing_is_sent_when_the_connection_stands_too_late, world_open())
{
    ask(asker, world);
    asker->call.link->dialed_us -= UPSTREAM_CONNECT_MS * 1000;
    if (world_over_tls)
        peer_accept(peer, world);
    ends(asker, UPSTREAM_NOT_SENT, "too late");
}

TEST_UPSTREAM(nothing_is_sent_without_a_descriptor, world_open())
{
    struct rlimit limit, few;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    few = limit;
    few.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    ask(asker, world);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    ends(asker, UPSTREAM_NOT_SENT, "Too many open files");
}

/* -- names */

static struct world *world_open_name(const char *name)
{
    struct world *world = world_open();

    upstream_pool_free(world->pool);
    world->upstream.host = (char *)(uintptr_t)name;
    world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
    return world;
}

TEST_UPSTREAM(a_name_is_looked_up_once_in_a_while, world_open_name("localhost"))
{
    for (unsigned i = 0; i < 2; i++) {
        ask(asker, world);
        CHECK_INT(asker->call.link->state, i == 0 ? UPLINK_NAMING : UPLINK_CONNECTING);
        peer_accept(peer, world);
        peer_got(peer, world, GET);
        peer_send(peer, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
        ends_whole(asker, 204, "");
        peer_close(peer);
    }
    world->pool->place.until_ms = loop_now_ms();
    ask(asker, world);
    CHECK_INT(asker->call.link->state, UPLINK_NAMING);
    asker_abort(asker);
    ends(asker, UPSTREAM_NOT_SENT, "broken off");
}

/* A part of a name has at most 63 characters, so no resolver is asked. */
TEST_UPSTREAM(nothing_is_sent_to_a_name_that_nobody_has,
              world_open_name("a-name-that-is-so-long-that-it-cannot-be-one-at-all-whoever-is-asked-for-it"))
{
    for (unsigned i = 0; i < 2; i++) {
        ask(asker, world);
        CHECK_INT(asker->call.link->state, UPLINK_NAMING);
        ends(asker, UPSTREAM_NOT_SENT, "");
    }
}

/* A resolver that knows a name only when the other end of a pipe is closed. */
static int resolver[2];

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    char byte;

    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "slow.example") != 0 || (hints != NULL && hints->ai_flags & AI_NUMERICHOST))
        return next(host, port, hints, list);
    CHECK_INT(read(resolver[0], &byte, 1), 0);
    return next("127.0.0.1", port, hints, list);
}

TEST(a_name_that_is_not_found_in_time_is_given_up_and_may_still_be_looked_for)
{
    struct world *world = world_open_name("slow.example");
    struct asker asker;

    CHECK(pipe2(resolver, O_CLOEXEC) == 0);
    asker_init(&asker);
    ask(&asker, world);
    late_now(&asker);
    ends(&asker, UPSTREAM_NOT_SENT, "in time");
    CHECK(world->pool->place.lookup.impl != NULL);
    walked_add(world->pool);
    upstream_pool_free(world->pool);
    close(resolver[1]);
    asker_done(&asker);
    world_free(world);
    close(resolver[0]);
}

/* -- unknown */

/* What else is malformed is in test_answer.c. */
TEST_UPSTREAM(an_answer_that_is_not_complete_or_malformed_is_unknown, world_open())
{
    static const struct {
        const char *answer, *why;
    } broken[] = {
        {"", "without an answer"},
        {"HTTP/1.1 200 OK\r\nContent", "within the head"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "within the body"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "more than one"},
    };

    for (unsigned i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        peer_asked(peer, asker, world);
        peer_send(peer, broken[i].answer);
        peer_close(peer);
        ends(asker, UPSTREAM_UNKNOWN, broken[i].why);
    }
}

TEST_UPSTREAM(a_request_on_a_kept_connection_that_turns_out_dead_is_unknown_and_not_repeated, world_open())
{
    peer_kept(peer, asker, world, NO_CONTENT);
    ask(asker, world);
    peer_reset(peer);
    ends(asker, UPSTREAM_UNKNOWN, "");
    CHECK(is_nobody_there(world));
}

TEST_UPSTREAM(a_request_that_is_broken_off_is_unknown_and_its_connection_reset, world_open())
{
    peer_asked(peer, asker, world);
    asker_abort(asker);
    asker_abort(asker);
    CHECK_INT(asker->ends, 0);
    ends(asker, UPSTREAM_UNKNOWN, "broken off");
    UNTIL(world, peer_is_left(peer));
    CHECK(peer->reset);
    asker_abort(asker);
}

TEST_UPSTREAM(a_request_that_is_broken_off_before_it_was_sent_is_not_sent, world_open())
{
    ask(asker, world);
    CHECK(!uplink_has_sent(asker->call.link));
    asker_abort(asker);
    ends(asker, UPSTREAM_NOT_SENT, "broken off");
    peer_accept_raw(peer, world);
    UNTIL(world, peer_is_left(peer));
    CHECK_INT(peer->len, 0);
}

/* -- long bodies */

TEST_UPSTREAM_EACH(a_long_body_goes_out_in_order_and_waits_for_an_upstream_that_does_not_read, 2,
                   world_open())
{
    const char *head = nth ? "PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                           : "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 6291456\r\n\r\n";
    size_t all = 6291456, at, begin = strlen(head), got;
    uint64_t until_ms = deadline_ms();

    ask_body(asker, world, nth ? -1 : (int64_t)all);
    peer_accept(peer, world);
    at = write_until_full(asker, all);
    while ((at < all || uplink_unsent(asker->call.link) > 0) && loop_now_ms() < until_ms) {
        peer_look(peer);
        loop_turn(world->loop, 1);
        at = write_more(asker, at, all);
    }
    upstream_body_end(&asker->call);
    UNTIL(world, peer_has(peer, begin + all) && asker->call.link->state == UPLINK_RECEIVING);
    UNTIL(world, (peer_look(peer), memcmp(peer->text + peer->len - 5, "0\r\n\r\n", 5) == 0 || !nth));
    CHECK(memcmp(peer->text, head, begin) == 0);
    got = nth ? chunks_join(peer->text, peer->len, begin) : peer->len - begin;
    CHECK_INT(got, all);
    check_pattern(peer->text + begin, got);
    peer_answers(peer, asker);
    CHECK_INT(world->pool->idle_count, 1);
}

TEST_UPSTREAM(an_answer_that_is_complete_before_the_request_was_sent_is_whole, world_open())
{
    ask_body(asker, world, LARGE * 4);
    peer_accept(peer, world);
    write_until_full(asker, LARGE * 4);
    peer_send(peer, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    ends_whole(asker, 413, "no");
    CHECK_INT(upstream_write(&asker->call, BYTES("more")), 4);
    upstream_body_end(&asker->call);
    CHECK_INT(world->pool->idle_count, 0);
    UNTIL(world, peer_is_left(peer));
}

/* The upstream has answered and closed while it was still being written to: a send fails, in the hook of the
 * turn, before the loop has looked. The end of a broken connection completes no answer until close. */
TEST_UPSTREAM_EACH(what_an_upstream_said_before_it_broke_off_is_read, 4, world_open())
{
    static const struct {
        const char *answer, *why;
    } said[] = {
        {"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", NULL},
        {"HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nno", "broke"},
        {"", "broke"},
        {"HTTP/1.1 200 OK\r\n\r\nno", "broke"},
    };

    ask_body(asker, world, LARGE);
    peer_accept(peer, world);
    peer_got(peer, world, "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3145728\r\n\r\n");
    peer_send(peer, said[nth].answer);
    peer_reset(peer);
    CHECK_INT(write_more(asker, 0, 1000), 1000);
    loop_turn(world->loop, 0);
    CHECK(asker->ends == 1 || asker->call.link->state == UPLINK_LISTENING);
    CHECK_INT(write_more(asker, 1000, 300000), 300000);
    ends(asker, said[nth].why == NULL ? UPSTREAM_WHOLE : UPSTREAM_UNKNOWN, said[nth].why);
    CHECK(world->pool->walked[UPLINK_SENDING] >> UPLINK_LISTENING & 1);
}

/* Over a unix socket an upstream can take no more and still speak. */
TEST_UPSTREAM_EACH(an_upstream_that_takes_no_more_is_listened_to, 2, world_open_unix())
{
    ask_body(asker, world, LARGE);
    peer_accept(peer, world);
    UNTIL(world, peer_has(peer, 1));
    CHECK(shutdown(peer->fd, SHUT_RD) == 0);
    write_more(asker, 0, 1000);
    UNTIL(world, asker->call.link->state == UPLINK_LISTENING);
    if (nth) {
        asker_abort(asker);
        ends(asker, UPSTREAM_UNKNOWN, "broken off");
    } else {
        peer_send(peer, "HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n");
        UNTIL(world, asker->heads == 1);
        peer_send(peer, "no");
        ends_whole(asker, 400, "no");
    }
}

TEST_UPSTREAM(an_owner_that_waits_for_room_is_told_when_the_upstream_takes_no_more, world_open_unix())
{
    size_t at;

    ask_body(asker, world, LARGE);
    peer_accept(peer, world);
    UNTIL(world, peer_has(peer, 1));
    CHECK(shutdown(peer->fd, SHUT_RD) == 0);
    at = write_more(asker, 0, LARGE);
    CHECK_INT(at, UPSTREAM_UNSENT_MAX);
    UNTIL(world, asker->rooms > 0);
    CHECK_INT(write_more(asker, at, LARGE), LARGE);
    peer_answers(peer, asker);
}

TEST_UPSTREAM(a_long_request_that_is_broken_off_is_unknown, world_open())
{
    ask_body(asker, world, -1);
    peer_accept(peer, world);
    write_until_full(asker, LARGE * 4);
    asker_abort(asker);
    CHECK_INT(write_more(asker, 0, 1000), 1000);
    ends(asker, UPSTREAM_UNKNOWN, "broken off");
}

TEST_UPSTREAM(an_upstream_is_not_read_from_while_its_answer_is_not_taken, world_open())
{
    size_t all = 6291456, at = 0, before;

    asker->take_max = 1000;
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 6291456\r\n\r\n");
    do {
        before = at;
        at = peer_pour(peer, at, all);
        for (unsigned i = 0; i < 20; i++)
            loop_turn(world->loop, 1);
    } while (at > before);
    CHECK_INT(asker->body_len, 1000);
    CHECK_INT(asker->call.link->socket.watched, 0);
    asker->take_max = 1001;
    upstream_more(&asker->call);
    upstream_more(&asker->call);
    UNTIL(world, asker->body_len == 1001);
    asker->take_max = BODY_MAX;
    upstream_more(&asker->call);
    UNTIL(world, (at = peer_pour(peer, at, all)) == all);
    ends(asker, UPSTREAM_WHOLE, NULL);
    CHECK_INT(asker->body_len, all);
    check_pattern(asker->body, asker->body_len);
}

static void take_all_now(struct asker *asker)
{
    asker->take_max = BODY_MAX;
    upstream_more(&asker->call);
}

TEST_UPSTREAM(an_owner_may_ask_for_more_while_it_takes_less, world_open())
{
    asker->take_max = 1;
    asker->at_piece = take_all_now;
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    ends_whole(asker, 200, "ok");
    CHECK_INT(world->pool->idle_count, 1);
}

/* -- from within callbacks */

TEST_UPSTREAM_EACH(an_owner_may_break_off_from_within_and_hears_nothing_more_but_the_end, 2, world_open())
{
    asker->at_head = nth == 0 ? asker_abort : NULL;
    asker->at_piece = nth == 1 ? asker_abort : NULL;
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\nok\r\n0\r\n\r\n");
    ends(asker, UPSTREAM_UNKNOWN, "broken off");
    CHECK_INT(asker->body_len, nth == 0 ? 0 : 2);
}

static struct asker next; /* of the one whose end has come */

static void ask_next(struct asker *asker)
{
    asker_init(&next);
    ask(&next, asker->world);
}

TEST_UPSTREAM(an_owner_may_ask_again_from_within_the_end_and_gets_the_same_connection, world_open())
{
    asker->at_end = ask_next;
    peer_asked(peer, asker, world);
    peer_answers(peer, asker);
    peer_got(peer, world, GET);
    peer_answers(peer, &next);
    CHECK(is_nobody_there(world));
    asker_done(&next);
}

static void the_machine_is_the_one_that_is_drawn(void)
{
    static const char *const names[] = {"FRESH",     "NAMING",    "CONNECTING", "HANDSHAKE", "SENDING",
                                        "RECEIVING", "LISTENING", "IDLE",       "OVER"};

    CHECK_INT(drawing_check("gateway/upstream/link.c", names, UPLINK_STATES, uplink_allows, walked), ARROWS);
}

int main(void)
{
    safe_open();
    check_all_as(NULL);
    world_over_tls = true;
    check_all_as("over_TLS");
    RUN(the_machine_is_the_one_that_is_drawn);
    safe_close();
    return check_done();
}
