/* test_upstream_tls.c - requests to upstreams over https. A process beside takes TLS off and brings the bytes
 * to the test, which is the upstream: "relay", and "cutter", which ends TLS without saying so. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/component/upstream_bodies.h"

enum { PATH_SIZE = 128 };

/* Told on stdin to which port of the test, it says "ok". */
static const char relay[] =
    "import os, select, socket, ssl, struct, sys, threading\n"
    "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
    "context.load_cert_chain(sys.argv[1], sys.argv[2])\n"
    "plain = []\n"
    "def narrow(sock):\n"
    "    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)\n"
    "    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)\n"
    "def reset(sock):\n"
    "    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n"
    "    os.close(sock.detach())\n"
    "def carry(tls, up):\n"
    "    while True:\n"
    "        ready = [tls] if tls.pending() else select.select([tls, up], [], [])[0]\n"
    "        if tls in ready:\n"
    "            data = tls.recv(65536)\n"
    "            if not data:\n"
    "                return up.close()\n"
    "            up.sendall(data)\n"
    "        if up in ready:\n"
    "            data = up.recv(65536)\n"
    "            if not data:\n"
    "                tls.settimeout(2)\n"
    "                return tls.unwrap().close()\n"
    "            tls.sendall(data)\n"
    "def serve(raw):\n"
    "    try:\n"
    "        tls = context.wrap_socket(raw, server_side=True)\n"
    "    except OSError:\n"
    "        return raw.close()\n"
    "    up = socket.socket()\n"
    "    narrow(tls)\n"
    "    narrow(up)\n"
    "    try:\n"
    "        up.connect(('127.0.0.1', plain[-1]))\n"
    "        carry(tls, up)\n"
    "    except OSError:\n"
    "        for sock in (tls, up):\n"
    "            if sock.fileno() >= 0:\n"
    "                reset(sock)\n"
    "def listen(listener):\n"
    "    while True:\n"
    "        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()\n"
    "listener = socket.create_server(('127.0.0.1', 0))\n"
    "threading.Thread(target=listen, args=(listener,), daemon=True).start()\n"
    "sys.stdout.write('%d\\n' % listener.getsockname()[1])\n"
    "sys.stdout.flush()\n"
    "for line in sys.stdin:\n"
    "    plain.append(int(line))\n"
    "    sys.stdout.write('ok\\n')\n"
    "    sys.stdout.flush()\n";

/* -- what the tests share */

/* Two authorities; the upstream's certificate is of the first. */
static struct {
    char dir[64];
    char cert[PATH_SIZE], key[PATH_SIZE], other_cert[PATH_SIZE], other_key[PATH_SIZE];
    pid_t relay;
    unsigned port; /* of the relay */
    FILE *told, *says;
} safe;

static bool run(const char *const *argv)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(quiet, 1);
        dup2(quiet, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Its own authority, for 127.0.0.1 only. */
static bool cert_make(const char *cert, const char *key)
{
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:prime256v1",
                                "-nodes",
                                "-days",
                                "1",
                                "-subj",
                                "/CN=pawl test",
                                "-addext",
                                "subjectAltName=IP:127.0.0.1",
                                "-keyout",
                                key,
                                "-out",
                                cert,
                                NULL};

    return CHECK(run(argv));
}

static void safe_open(void)
{
    const char *dir = getenv("TMPDIR");

    snprintf(safe.dir, sizeof(safe.dir), "%s/tlsXXXXXX", dir != NULL && strlen(dir) < 40 ? dir : "/tmp");
    CHECK(mkdtemp(safe.dir) != NULL);
    snprintf(safe.cert, PATH_SIZE, "%s/cert", safe.dir);
    snprintf(safe.key, PATH_SIZE, "%s/key", safe.dir);
    snprintf(safe.other_cert, PATH_SIZE, "%s/other-cert", safe.dir);
    snprintf(safe.other_key, PATH_SIZE, "%s/other-key", safe.dir);
    cert_make(safe.cert, safe.key);
    cert_make(safe.other_cert, safe.other_key);
}

static void safe_close(void)
{
    unlink(safe.cert);
    unlink(safe.key);
    unlink(safe.other_cert);
    unlink(safe.other_key);
    rmdir(safe.dir);
}

static void relay_run(int hears, int says)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(hears, 0);
    dup2(says, 1);
    execl("/usr/bin/python3", "/usr/bin/python3", "-I", "-c", relay, safe.cert, safe.key, NULL);
    _exit(127);
}

static void relay_start(void)
{
    int hears[2], says[2];
    char line[32] = "";

    CHECK(pipe2(hears, O_CLOEXEC) == 0 && pipe2(says, O_CLOEXEC) == 0);
    safe.relay = fork();
    if (safe.relay == 0) {
        relay_run(hears[0], says[1]);
    }
    close(hears[0]);
    close(says[1]);
    safe.told = fdopen(hears[1], "we");
    safe.says = fdopen(says[0], "re");
    CHECK(fgets(line, sizeof(line), safe.says) != NULL);
    safe.port = (unsigned)strtoul(line, NULL, 10);
}

static void relay_stop(void)
{
    fclose(safe.told);
    fclose(safe.says);
    kill(safe.relay, SIGKILL);
    waitpid(safe.relay, NULL, 0);
}

/* A world whose upstream is behind the relay. ca_file: whom the pool trusts. */
static struct world *world_open_veiled(char *ca_file)
{
    struct world *world = world_open();
    char line[32] = "";

    fprintf(safe.told, "%u\n", world->upstream.port);
    fflush(safe.told);
    CHECK(fgets(line, sizeof(line), safe.says) != NULL && strcmp(line, "ok\n") == 0);
    upstream_pool_free(world->pool);
    world->upstream.port = safe.port;
    world->upstream.scheme = ROUTE_HTTPS;
    world->upstream.ca_file = ca_file;
    world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
    return world;
}

/* -- whole */

TEST_UPSTREAM(a_request_goes_out_as_it_is_and_its_answer_comes_back, world_open_veiled(safe.cert))
{
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    ask(asker, world);
    CHECK(!upstream_has_sent(&asker->call));
    peer_accept(peer, world);
    peer_got(peer, world, GET);
    CHECK(upstream_has_sent(&asker->call));
    peer_send(peer, "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 5\r\nX: a "
                    "b\r\n\r\nhello");
    ends_whole(asker, 302, "hello");
    CHECK_INT(asker->length, 5);
    CHECK_INT(asker->fields, 3);
    CHECK_TEXT(bytes_of(asker->field), BYTES("a b"));
}

struct framed {
    struct upstream_request request;
    const char *wanted;
};

TEST_UPSTREAM(the_framing_of_a_request_says_how_long_its_body_is, world_open_veiled(safe.cert))
{
    static const struct framed framed[] = {
        {{.method = {"GET", 3}, .body_is_whole = true}, "GET /x?y HTTP/1.1\r\nHost: h\r\nX:\r\nY: z\r\n\r\n"},
        {{.method = {"DELETE", 6}, .body_is_whole = true},
         "DELETE /x?y HTTP/1.1\r\nHost: h\r\nX:\r\nY: z\r\n\r\n"},
        {{.method = {"POST", 4}, .body_is_whole = true},
         "POST /x?y HTTP/1.1\r\nHost: h\r\nX:\r\nY: z\r\nContent-Length: 0\r\n\r\n"},
        {{.method = {"PATCH", 5}, .body = {"abc", 3}, .body_length = 3, .body_is_whole = true},
         "PATCH /x?y HTTP/1.1\r\nHost: h\r\nX:\r\nY: z\r\nContent-Length: 3\r\n\r\nabc"},
        {{.method = {"GET", 3}, .body = {"abc", 3}, .body_length = 3, .body_is_whole = true},
         "GET /x?y HTTP/1.1\r\nHost: h\r\nX:\r\nY: z\r\nContent-Length: 3\r\n\r\nabc"},
        {{.method = {"POST", 4}, .body = {"0123456789", 10}, .body_length = -1, .body_is_whole = true},
         "POST /x?y HTTP/1.1\r\nHost: h\r\nX:\r\nY: z\r\nTransfer-Encoding: "
         "chunked\r\n\r\na\r\n0123456789\r\n0\r\n"
         "\r\n"},
    };

    for (unsigned i = 0; i < sizeof(framed) / sizeof(framed[0]); i++) {
        struct upstream_request request = framed[i].request;

        request.target = BYTES("/x?y");
        request.fields = BYTES("Host: h\r\nX:\r\nY: z\r\n");
        request.is_write = true;
        ask_request(asker, world, &request);
        peer_accept(peer, world);
        peer_got(peer, world, framed[i].wanted);
        peer_answers(peer, asker);
        UNTIL(world, peer_is_left(peer));
        peer_close(peer);
    }
}

TEST_UPSTREAM(an_answer_to_HEAD_and_one_in_chunks_are_whole, world_open_veiled(safe.cert))
{
    ask_request(asker, world,
                &(struct upstream_request){
                    .method = BYTES("HEAD"), .target = BYTES("/x"), .fields = HOST, .body_is_whole = true});
    peer_accept(peer, world);
    peer_got(peer, world, "HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
    peer_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
    ends_whole(asker, 200, "");
    CHECK_INT(asker->length, 7);
    ask(asker, world); /* a read, on the same connection */
    peer_got(peer, world, GET);
    peer_send(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n");
    UNTIL(world, asker->body_len == 5);
    CHECK_INT(asker->ends, 0);
    peer_send(peer, "0\r\nY: z\r\n\r\n");
    ends_whole(asker, 200, "abcde");
    CHECK(is_nobody_there(world));
}

TEST_UPSTREAM(an_answer_until_close_is_never_whole, world_open_veiled(safe.cert))
{
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\n\r\nhello");
    UNTIL(world, asker->body_len == 5);
    peer_close(peer);
    ends(asker, UPSTREAM_UNKNOWN, "no length, nor chunks");
}

TEST_UPSTREAM(each_write_has_a_connection_of_its_own, world_open_veiled(safe.cert))
{
    struct peer old;

    peer_asked(&old, asker, world);
    peer_answers(&old, asker);
    for (unsigned i = 0; i < 2; i++) {
        ask_to_write(asker, world);
        peer_accept(peer, world);
        peer_got(peer, world, GET);
        peer_answers(peer, asker);
        UNTIL(world, peer_is_left(peer));
        peer_close(peer);
    }
    peer_close(&old);
}

/* -- not sent */

TEST(nothing_is_sent_to_one_who_cannot_show_who_it_is)
{
    static char by_name[] = "localhost";

    for (unsigned i = 0; i < 3; i++) {
        struct world *world = world_open_veiled(i == 0 ? safe.other_cert : i == 1 ? NULL : safe.cert);
        struct asker asker;

        if (i == 2) { /* the certificate is for 127.0.0.1 */
            upstream_pool_free(world->pool);
            world->upstream.host = by_name;
            world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
        }
        asker_init(&asker);
        ask_to_write(&asker, world);
        ends(&asker, UPSTREAM_NOT_SENT, "");
        CHECK_INT(asker.heads, 0);
        asker_done(&asker);
        world_close(world);
    }
}

TEST_UPSTREAM(nothing_is_sent_where_nobody_speaks_tls, world_open_https(safe.cert))
{
    ask(asker, world);
    peer_accept(peer, world);
    UNTIL(world, peer_has(peer, 1));
    peer_send(peer, "HTTP/1.1 400 TLS?\r\nContent-Length: 0\r\n\r\n");
    ends(asker, UPSTREAM_NOT_SENT, "SSL");
}

TEST_UPSTREAM(a_request_that_is_broken_off_before_it_was_sent_is_not_sent, world_open_https(safe.cert))
{
    ask(asker, world);
    peer_accept(peer, world);
    UNTIL(world, peer_has(peer, 1));
    asker_abort(asker);
    ends(asker, UPSTREAM_NOT_SENT, "broken off");
    UNTIL(world, peer_is_left(peer));
}

/* -- unknown */

struct broken {
    const char *answer, *why;
};

TEST_UPSTREAM(an_answer_that_is_not_complete_or_malformed_is_unknown_and_its_request_not_repeated,
              world_open_veiled(safe.cert))
{
    static const struct broken broken[] = {
        {"", ""},
        {"HTTP/1.1 200 OK\r\nContent", ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "more than one"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "more than one"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
         "more than one"},
        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", "folded"},
        {"HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n", "directly followed"},
        {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "control"},
        {"HTTP/1.1 101 Switching\r\n\r\n", "nobody asked for"},
        {"SSH-2.0-x\r\n", ""},
    };

    for (unsigned i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        ask_to_write(asker, world);
        peer_accept(peer, world);
        peer_got(peer, world, GET);
        peer_send(peer, broken[i].answer);
        peer_close(peer);
        ends(asker, UPSTREAM_UNKNOWN, broken[i].why);
        CHECK(is_nobody_there(world));
    }
}

TEST_UPSTREAM(a_request_that_is_broken_off_is_unknown_and_its_connection_closed, world_open_veiled(safe.cert))
{
    ask_to_write(asker, world);
    peer_accept(peer, world);
    peer_got(peer, world, GET);
    asker_abort(asker);
    CHECK_INT(asker->ends, 0);
    ends(asker, UPSTREAM_UNKNOWN, "broken off");
    UNTIL(world, peer_is_left(peer));
}

/* -- long bodies */

TEST(a_long_body_goes_out_in_order_and_waits_for_an_upstream_that_does_not_read)
{
    for (unsigned chunked = 0; chunked < 2; chunked++) {
        const char *head = chunked ? "PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   : "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 6291456\r\n\r\n";
        size_t all = 6291456, at, begin = strlen(head), got;
        struct world *world = world_open_veiled(safe.cert);
        uint64_t until_ms = deadline_ms();
        struct asker asker;
        struct peer peer;

        asker_init(&asker);
        ask_body(&asker, world, chunked ? -1 : (int64_t)all);
        peer_accept(&peer, world);
        at = write_until_full(&asker, all);
        while ((at < all || uplink_unsent(asker.call.link) > 0) && loop_now_ms() < until_ms) {
            peer_look(&peer);
            loop_turn(world->loop, 1);
            at = write_more(&asker, at, all);
        }
        upstream_body_end(&asker.call);
        UNTIL(world, peer_has(&peer, begin + all));
        UNTIL(world, (peer_look(&peer), memcmp(peer.text + peer.len - 5, "0\r\n\r\n", 5) == 0 || !chunked));
        CHECK(memcmp(peer.text, head, begin) == 0);
        got = chunked ? chunks_join(peer.text, peer.len, begin) : peer.len - begin;
        CHECK_INT(got, all);
        check_pattern(peer.text + begin, got);
        peer_answers(&peer, &asker);
        all_close(&peer, &asker, world);
    }
}

TEST_UPSTREAM(an_upstream_is_not_read_from_while_its_answer_is_not_taken, world_open_veiled(safe.cert))
{
    size_t all = 6291456, at = 0, before;

    asker->take_max = 1000;
    peer_asked(peer, asker, world);
    peer_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 6291456\r\n\r\n");
    do {
        before = at;
        at = peer_pour(peer, at, all);
        for (unsigned i = 0; i < 50; i++) {
            loop_turn(world->loop, 1);
        }
    } while (at > before);
    CHECK(at < all);
    CHECK_INT(asker->body_len, 1000);
    CHECK(asker->call.link->rest.len < 2 * UPLINK_IN_SIZE);
    asker->take_max = 1001;
    upstream_more(&asker->call);
    UNTIL(world, asker->body_len == 1001);
    asker->take_max = BODY_MAX;
    upstream_more(&asker->call);
    UNTIL(world, (at = peer_pour(peer, at, all)) == all);
    ends(asker, UPSTREAM_WHOLE, NULL);
    CHECK_INT(asker->body_len, all);
    check_pattern(asker->body, asker->body_len);
}

static void abort_now(struct asker *asker)
{
    asker_abort(asker);
}

static void free_pool(struct asker *asker)
{
    upstream_pool_free(asker->world->pool);
}

TEST(an_owner_may_break_off_from_within_and_free_the_pool_at_the_end)
{
    struct world *world = world_open_veiled(safe.cert);
    struct asker asker;
    struct peer peer;

    asker_init(&asker);
    asker.at_piece = abort_now;
    asker.at_end = free_pool;
    peer_asked(&peer, &asker, world);
    peer_send(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    ends(&asker, UPSTREAM_UNKNOWN, "broken off");
    CHECK_INT(asker.body_len, 2);
    peer_close(&peer);
    asker_done(&asker);
    world->pool = upstream_pool_new(world->loop, &world->upstream, USER_TIMEOUT_MS);
    world_close(world);
}

int main(void)
{
    safe_open();
    relay_start();
    RUN(a_request_goes_out_as_it_is_and_its_answer_comes_back);
    RUN(the_framing_of_a_request_says_how_long_its_body_is);
    RUN(an_answer_to_HEAD_and_one_in_chunks_are_whole);
    RUN(an_answer_until_close_is_never_whole);
    RUN(each_write_has_a_connection_of_its_own);
    RUN(nothing_is_sent_to_one_who_cannot_show_who_it_is);
    RUN(nothing_is_sent_where_nobody_speaks_tls);
    RUN(a_request_that_is_broken_off_before_it_was_sent_is_not_sent);
    RUN(an_answer_that_is_not_complete_or_malformed_is_unknown_and_its_request_not_repeated);
    RUN(a_request_that_is_broken_off_is_unknown_and_its_connection_closed);
    RUN(a_long_body_goes_out_in_order_and_waits_for_an_upstream_that_does_not_read);
    RUN(an_upstream_is_not_read_from_while_its_answer_is_not_taken);
    RUN(an_owner_may_break_off_from_within_and_free_the_pool_at_the_end);
    relay_stop();
    safe_close();
    return check_done();
}
