/* test_upstream_tls.c - requests to upstreams over https: whom they trust, and what only TLS does. All else
 * is in test_upstream.c. */
#include "tests/component/upstream_world.h"

static const char tls12[] = "NORMAL:-VERS-TLS1.3", tls13[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3";

/* -- whom to trust */

/* An upstream that shows this, and whom the pool trusts; ca_file NULL: the system. */
static struct world *world_open_as(const struct authority *signer, struct certified certified, char *ca_file)
{
    struct world *world = world_open();

    upstream_pool_free(world->pool);
    world->identity = identity_make(signer, certified);
    tls_trust_free(world->upstream.trust);
    world->upstream.trust = trust_of(ca_file);
    world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
    return world;
}

static void world_close_as(struct world *world)
{
    gnutls_certificate_credentials_t identity = world->identity;

    world_close(world);
    gnutls_certificate_free_credentials(identity);
}

/* What the peer has of it: no request, in any case. */
static void check_refused(struct world *world, const char *why)
{
    struct asker asker;
    struct peer peer;

    asker_init(&asker);
    ask_to_write(&asker, world);
    peer_accept_as(&peer, world, "NORMAL");
    ends(&asker, UPSTREAM_NOT_SENT, why);
    CHECK_INT(asker.heads, 0);
    UNTIL(world, peer_is_left(&peer));
    CHECK_INT(peer.len, 0);
    walked_add(world->pool);
    peer_cut(&peer);
    asker_done(&asker);
}

TEST(nothing_is_sent_to_an_upstream_that_cannot_show_who_it_is)
{
    struct authority other;
    const struct {
        const struct authority *signer;
        struct certified certified;
        char *ca_file;
        const char *why;
    } rows[] = {
        {&other, {"localhost", true, -60, 60, NULL}, safe.authority.file, "no authority that is trusted"},
        {&safe.authority, {"localhost", true, -60, 60, NULL}, NULL, "no authority that is trusted"},
        {&safe.authority, {"localhost", false, -60, 60, NULL}, safe.authority.file, "another name"},
        {&safe.authority, {"127.0.0.2", false, -60, 60, NULL}, safe.authority.file, "another name"},
        {&safe.authority, {"localhost", true, -60, -1, NULL}, safe.authority.file, "expired"},
        {&safe.authority, {"localhost", true, 3600, 7200, NULL}, safe.authority.file, "not valid yet"},
        {&safe.authority,
         {"localhost", true, -60, 60, FOR_CLIENTS},
         safe.authority.file,
         "not that of a server"},
    };

    authority_make(&other, safe.dir, "other");
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world *world = world_open_as(rows[i].signer, rows[i].certified, rows[i].ca_file);

        check_refused(world, rows[i].why);
        world_close_as(world);
    }
    authority_done(&other);
}

TEST(the_name_of_the_route_is_what_the_certificate_must_be_for)
{
    static char host[] = "localhost";
    static const char *const names[] = {"localhost", "elsewhere.example"};

    for (unsigned i = 0; i < 2; i++) {
        struct world *world = world_open_as(
            &safe.authority, (struct certified){names[i], false, -60, 60, NULL}, safe.authority.file);
        struct asker asker;
        struct peer peer;

        upstream_pool_free(world->pool);
        world->upstream.host = host;
        world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
        if (i == 1) {
            check_refused(world, "another name");
        } else {
            char shown[32] = "";
            size_t len = sizeof(shown);
            unsigned type;

            asker_init(&asker);
            peer_asked(&peer, &asker, world);
            CHECK_INT(gnutls_server_name_get(peer.tls, shown, &len, &type, 0), 0);
            CHECK_TEXT(bytes_of(shown), BYTES("localhost"));
            peer_answers(&peer, &asker);
            peer_close(&peer);
            asker_done(&asker);
        }
        world_close_as(world);
    }
}

/* -- the handshake */

TEST_UPSTREAM(a_handshake_that_does_not_come_to_its_end_is_not_sent, world_open())
{
    enum { NO_TLS, CUT, RESET, LATE, ABORTED, WAYS };
    static const char *const says[WAYS] = {"does not speak TLS", "", "reset", "in time", "broken off"};

    for (unsigned way = 0; way < WAYS; way++) {
        ask(asker, world);
        peer_accept_raw(peer, world);
        UNTIL(world, peer_has(peer, 1));
        CHECK(asker->call.link->state == UPLINK_HANDSHAKE && asker->call.link->alarm.place > 0);
        CHECK(!uplink_has_sent(asker->call.link));
        switch (way) {
        case NO_TLS: peer_send(peer, "HTTP/1.1 400 TLS?\r\nContent-Length: 0\r\n\r\n"); break;
        case CUT: peer_cut(peer); break;
        case RESET: peer_reset(peer); break;
        case LATE: late_now(asker); break;
        default: asker_abort(asker); break;
        }
        ends(asker, UPSTREAM_NOT_SENT, says[way]);
        CHECK_INT(asker->heads, 0);
        CHECK_INT(world->pool->place.first, way + 1); /* another address is next, if there is one */
        if (way >= LATE)
            UNTIL(world, peer_is_left(peer));
        if (way != CUT && way != RESET)
            peer_cut(peer);
    }
}

/* The kernel takes the beginning of the first record and no more. */
TEST_UPSTREAM(a_request_of_which_a_part_of_a_record_left_is_unknown, world_open())
{
    const int narrow = 1;

    CHECK(setsockopt(world->listener, SOL_SOCKET, SO_RCVBUF, &narrow, sizeof(narrow)) == 0);
    ask_body(asker, world, 60000);
    CHECK_INT(write_more(asker, 0, 60000), 60000);
    UNTIL(world, asker->call.link->state == UPLINK_HANDSHAKE);
    CHECK(setsockopt(asker->call.link->socket.fd, SOL_SOCKET, SO_SNDBUF, &narrow, sizeof(narrow)) == 0);
    peer_accept(peer, world);
    UNTIL(world, asker->call.link->request.blocked);
    CHECK_INT(asker->call.link->request.sent, 0);
    CHECK(uplink_has_sent(asker->call.link));
    asker_abort(asker);
    ends(asker, UPSTREAM_UNKNOWN, "broken off");
}

/* -- the end */

TEST_UPSTREAM(an_end_that_tls_does_not_announce_completes_nothing, world_open())
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    };

    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        peer_asked(peer, asker, world);
        peer_send(peer, answers[i]);
        UNTIL(world, asker->body_len == 5);
        peer_cut(peer);
        ends(asker, UPSTREAM_UNKNOWN, "without TLS' word");
    }
}

TEST_UPSTREAM(an_answer_with_a_length_is_whole_also_when_the_connection_is_cut_behind_it, world_open())
{
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    peer_cut(peer);
    ends_whole(asker, 200, "hello");
    UNTIL(world, world->pool->idle_count == 0);
}

/* The upstream hears the end from TLS, unless the request was broken off. */
TEST_UPSTREAM(the_end_is_announced_where_it_is_in_order, world_open())
{
    for (unsigned i = 0; i < 2; i++) {
        char byte;

        peer_asked(peer, asker, world);
        if (i == 0)
            peer_send(peer, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
        else
            asker_abort(asker);
        ends(asker, i == 0 ? UPSTREAM_WHOLE : UPSTREAM_UNKNOWN, NULL);
        CHECK_INT(gnutls_record_recv(peer->tls, &byte, 1), i == 0 ? 0 : GNUTLS_E_PULL_ERROR);
        peer_cut(peer);
    }
}

/* -- new keys */

TEST_UPSTREAM(new_keys_and_tickets_are_no_word_of_the_upstream, world_open())
{
    ask(asker, world);
    CHECK_INT(peer_accept_as(peer, world, tls13), 0);
    peer_got(peer, world, GET);
    peer_answers(peer, asker);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_INT(i % 2 == 0 ? gnutls_session_key_update(peer->tls, GNUTLS_KU_PEER)
                             : gnutls_session_ticket_send(peer->tls, 1, 0),
                  0);
        if (i < 2) { /* noticed by the loop; else by the look before the next request */
            uint64_t until_ms = loop_now_ms() + 20;

            UNTIL(world, loop_now_ms() >= until_ms);
        }
        CHECK_INT(world->pool->idle_count, 1);
        ask_to_write(asker, world);
        peer_got(peer, world, GET);
        peer_answers(peer, asker);
    }
    CHECK(is_nobody_there(world));
}

/* Its rest may be an answer that nobody has asked for, and would be taken for that to the next request. */
TEST_UPSTREAM(a_kept_connection_on_which_a_part_of_a_record_has_come_is_used_no_more, world_open())
{
    ask(asker, world);
    CHECK_INT(peer_accept_as(peer, world, tls13), 0);
    peer_got(peer, world, GET);
    peer_answers(peer, asker);
    CHECK_INT(world->pool->idle_count, 1);
    CHECK_INT(send(peer->fd, "\x17\x03\x03", 3, MSG_NOSIGNAL), 3);
    for (unsigned i = 0; i < 20; i++)
        loop_turn(world->loop, 1); /* not until it has been idle for too long */
    CHECK_INT(world->pool->idle_count, 0);
}

/* Nor if that stands behind what is no word of the upstream, and nobody has looked since. */
TEST_UPSTREAM(nor_is_one_with_a_part_of_a_record_behind_new_keys, world_open())
{
    struct peer other = {.fd = -1};

    ask(asker, world);
    CHECK_INT(peer_accept_as(peer, world, tls13), 0);
    peer_got(peer, world, GET);
    peer_answers(peer, asker);
    CHECK_INT(gnutls_session_key_update(peer->tls, 0), 0);
    CHECK_INT(send(peer->fd, "\x17\x03\x03", 3, MSG_NOSIGNAL), 3);
    CHECK_INT(world->pool->idle_count, 1);
    ask_to_write(asker, world);
    CHECK_INT(peer_accept_as(&other, world, tls13), 0);
    peer_got(&other, world, GET);
    peer_answers(&other, asker);
    peer_cut(&other);
}

TEST_UPSTREAM(new_keys_in_the_middle_of_a_body_lose_and_double_nothing, world_open())
{
    static const char head[] = "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 6291456\r\n\r\n";
    size_t all = 6291456, at;
    uint64_t until_ms = deadline_ms();

    ask_body(asker, world, (int64_t)all);
    CHECK_INT(peer_accept_as(peer, world, tls13), 0);
    at = write_until_full(asker, all); /* and a record is half-way in the kernel */
    CHECK_INT(gnutls_session_key_update(peer->tls, GNUTLS_KU_PEER), 0);
    for (unsigned i = 0; i < 20; i++)
        loop_turn(world->loop, 1);
    while (at < all && loop_now_ms() < until_ms) {
        peer_look(peer);
        loop_turn(world->loop, 1);
        at = write_more(asker, at, all);
    }
    UNTIL(world, peer_has(peer, sizeof(head) - 1 + all));
    CHECK_INT(peer->len, sizeof(head) - 1 + all);
    check_pattern(peer->text + sizeof(head) - 1, all);
    peer_answers(peer, asker);
}

/* It goes on with its answer, as it may (RFC 5246, 7.4.1.1): what a write came to must not be lost. */
TEST_UPSTREAM(an_upstream_that_asks_for_another_handshake_of_tls_1_2_is_not_followed, world_open())
{
    ask(asker, world);
    CHECK_INT(peer_accept_as(peer, world, tls12), 0);
    for (unsigned i = 0; i < 3; i++) {
        peer_got(peer, world, GET);
        CHECK_INT(gnutls_rehandshake(peer->tls), 0);
        peer_answers(peer, asker);
        ask_to_write(asker, world);
    }
    peer_got(peer, world, GET);
    peer_answers(peer, asker);
    CHECK(is_nobody_there(world));
}

int main(void)
{
    safe_open();
    world_over_tls = true;
    check_all_as(NULL);
    safe_close();
    return check_done();
}
