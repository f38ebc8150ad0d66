/* test_http_exchange.c - the HTTP client of libpawl and the command line, against a server that does as it is
 * told: which of the three ends a request comes to, however it is cut; over plain TCP and over TLS. */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/client/http_internal.h"
#include "tests/component/loopback.h"
#include "tests/component/tls_peer.h"
#include "tests/unit/check.h"

enum { SEEN_SIZE = 4096, PATIENCE_MS = 20000, SHORT_MS = 200, BIG = 8 << 20 };

/* How the server ends it, when it has said its answer. */
enum server_end { END_FIN, END_RESET, END_STAY, END_HOLD /* and it reads nothing more */ };

static bool over_tls;

struct server {
    int listener;
    bool is_tls;
    gnutls_session_t tls; /* NULL: plain */
    unsigned port;
    pthread_t thread;
    /* What it is to do with the one connection that comes. */
    struct bytes answer;
    size_t piece;         /* bytes at a time; 0: all at once */
    bool at_once;         /* before it has read anything */
    int tells;            /* an eventfd, when it has read the request; 0: none */
    int ends_it;          /* an eventfd, when it has said its answer; 0: none */
    bool forks;           /* a child that has a copy of every descriptor */
    struct bytes endless; /* said behind the answer, for as long as somebody listens */
    enum server_end end;
    /* What it saw. */
    char seen[SEEN_SIZE];
    size_t seen_len;
    unsigned pieces; /* in which the request came */
    int left_by;     /* END_STAY: what its last recv() said: 0, or an errno */
};

/* As recv(2). */
static ssize_t server_recv(struct server *server, int fd, char *to, size_t size)
{
    ssize_t n;

    if (server->tls == NULL)
        return TEMP_FAILURE_RETRY(recv(fd, to, size, 0));
    n = gnutls_record_recv(server->tls, to, size);
    if (n < 0 && n != GNUTLS_E_PREMATURE_TERMINATION) {
        errno = n == GNUTLS_E_AGAIN ? EAGAIN : ECONNRESET;
        return -1;
    }
    return n > 0 ? n : 0;
}

/* As send(2). */
static ssize_t server_send(const struct server *server, int fd, const char *at, size_t len)
{
    return server->tls != NULL ? gnutls_record_send(server->tls, at, len) : send(fd, at, len, MSG_NOSIGNAL);
}

/* Until the empty line, and so many bytes of a body as are announced. */
static void request_see(struct server *server, int fd)
{
    for (;;) {
        const char *end = memmem(server->seen, server->seen_len, "\r\n\r\n", 4);
        const char *length = memmem(server->seen, server->seen_len, "Content-Length: ", 16);
        ssize_t len;

        if (end != NULL &&
            (length == NULL || server->seen + server->seen_len >= end + 4 + strtol(length + 16, NULL, 10)))
            return;
        len = server_recv(server, fd, server->seen + server->seen_len, SEEN_SIZE - 1 - server->seen_len);
        if (len <= 0) {
            server->left_by = len < 0 ? errno : 0;
            return;
        }
        server->pieces++;
        server->seen_len += (size_t)len;
        server->seen[server->seen_len] = '\0';
    }
}

static void eventfd_tell(int fd)
{
    static const uint64_t one = 1;

    if (fd > 0 && write(fd, &one, sizeof(one)) < 0)
        abort();
}

static void answer_say(const struct server *server, int fd)
{
    for (size_t sent = 0; sent < server->answer.len;) {
        size_t left = server->answer.len - sent;
        ssize_t len = server_send(server, fd, server->answer.at + sent,
                                  server->piece > 0 && server->piece < left ? server->piece : left);

        if (len < 0)
            break;
        sent += (size_t)len;
    }
    while (server->endless.len > 0 && server_send(server, fd, server->endless.at, server->endless.len) > 0) {
    }
}

/* -1: none is wanted. */
static pid_t child_begin(const struct server *server)
{
    pid_t child = server->forks ? fork() : -1;

    while (child == 0)
        pause();
    return child;
}

static void connection_end(struct server *server, int fd)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    char dropped[64];
    ssize_t len;

    if (server->end == END_STAY) {
        while ((len = server_recv(server, fd, dropped, sizeof(dropped))) > 0) {
        }
        server->left_by = server->left_by > 0 ? server->left_by : len < 0 ? errno : 0;
    } else if (server->end == END_HOLD) {
        poll(&(struct pollfd){.fd = fd, .events = POLLRDHUP}, 1, PATIENCE_MS);
    } else if (server->end == END_RESET) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    if (server->tls != NULL) {
        if (server->end == END_FIN)
            gnutls_bye(server->tls, GNUTLS_SHUT_WR);
        gnutls_deinit(server->tls);
    }
    close(fd);
}

static void *server_work(void *at)
{
    static const struct timeval patience = {.tv_sec = 10};
    const int on = 1;
    struct server *server = at;
    int fd = accept(server->listener, NULL, NULL);
    pid_t child;

    if (fd < 0)
        return NULL;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (server->is_tls) {
        int code;

        server->tls = session_open(safe.identity, fd, "NORMAL");
        while (!session_is_through(server->tls, &code)) {
        }
    }
    if (!server->at_once)
        request_see(server, fd);
    child = child_begin(server);
    eventfd_tell(server->tells);
    answer_say(server, fd);
    eventfd_tell(server->ends_it);
    connection_end(server, fd);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return NULL;
}

static void server_begin(struct server *server)
{
    server->listener = loopback_listen(&server->port, 1, 0);
    server->left_by = -1;
    CHECK(pthread_create(&server->thread, NULL, server_work, server) == 0);
}

/* Somebody came, or is in the queue. */
static void server_end(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* Nobody came: accept() ends. */
static void server_dismiss(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    server_end(server);
}

/* A GET of /x, with what else is set in request. url: another address, with a place for the port; the server
 * speaks no TLS then. */
static enum http_client_outcome ask(struct server *server, struct http_client_request request,
                                    struct http_client_answer *answer)
{
    enum http_client_outcome outcome;

    server->is_tls = over_tls && request.url == NULL;
    server_begin(server);
    if (request.url == NULL)
        request.url = over_tls ? "https://127.0.0.1:%u/x" : "http://127.0.0.1:%u/x";
    request.url = textf(request.url, server->port);
    request.method = request.method != NULL ? request.method : "GET";
    request.timeout_ms = request.timeout_ms > 0 ? request.timeout_ms : PATIENCE_MS;
    outcome = http_client_send(&request, answer);
    if (outcome == HTTP_CLIENT_NOT_SENT)
        server_dismiss(server);
    else
        server_end(server);
    return outcome;
}

/* The same, where only the end counts: the answer has no body any more. */
static struct http_client_answer ends(struct server *server, struct http_client_request request,
                                      enum http_client_outcome wanted)
{
    struct http_client_answer answer;

    CHECK_INT(ask(server, request, &answer), wanted);
    http_client_answer_done(&answer);
    return answer;
}

/* -- whole answers */

TEST(an_answer_is_the_same_however_it_is_cut)
{
    static const struct {
        const char *answer, *method, *body;
        unsigned status;
    } whole[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nETag: \"7\"\r\nRetry-After: 3\r\n\r\nbody", "GET", "body",
         200},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\n\r\n", "GET",
         "body", 200},
        {"HTTP/1.1 200 OK\r\n\r\nbody", "GET", "body", 200},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", "PUT", "no", 503},
        {"HTTP/1.1 204 None\r\n\r\n", "DELETE", "", 204},
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "HEAD", "", 200},
    };

    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        for (size_t piece = 0; piece < 3; piece++) {
            struct server server = {.answer = bytes_of(whole[i].answer), .piece = piece};
            struct http_client_answer answer;

            CHECK_INT(ask(&server, (struct http_client_request){.method = whole[i].method}, &answer),
                      HTTP_CLIENT_ANSWERED);
            CHECK_INT(answer.status, whole[i].status);
            CHECK_TEXT(((struct bytes){answer.body, answer.len}), bytes_of(whole[i].body));
            CHECK_TEXT(bytes_of(answer.etag), bytes_of(i == 0 ? "\"7\"" : ""));
            CHECK_INT(answer.retry_after_s, i == 0 ? 3 : 0);
            http_client_answer_done(&answer);
        }
    }
}

TEST(what_is_cut_anywhere_is_not_known)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
                                          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 "
                                          "OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"};

    for (size_t i = 0; i < 2; i++) {
        /* A handshake takes longer than all else here. */
        for (size_t len = 0; len < strlen(answers[i]); len += over_tls ? 9 : 1) {
            for (int end = END_FIN; end <= END_RESET; end++) {
                struct server server = {.answer = {answers[i], len}, .end = (enum server_end)end};
                struct http_client_answer answer = ends(&server, (struct http_client_request){0},
                                                        HTTP_CLIENT_UNKNOWN);

                CHECK(answer.status == 0 && answer.why[0] != '\0' && !answer.stopped && !answer.no_memory);
            }
        }
    }
}

/* What else can be read in two ways is in test_answer.c. */
TEST(what_can_be_read_in_two_ways_or_is_reset_without_a_length_is_not_known)
{
    static const struct {
        const char *answer;
        enum server_end end;
    } answers[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody", END_FIN},
        {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", END_FIN},
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", END_FIN},
        {"HTTP/1.1 200 OK\r\n\r\nbody", END_RESET},
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct server server = {.answer = bytes_of(answers[i].answer), .end = answers[i].end};

        ends(&server, (struct http_client_request){0}, HTTP_CLIENT_UNKNOWN);
    }
}

static char big[BIG];
static const struct http_client_request put_big = {.method = "PUT", .body = {big, sizeof(big)}};

TEST(a_refusal_that_comes_before_the_whole_request_was_taken_is_an_answer)
{
    struct server server = {
        .answer = BYTES("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"), .at_once = true, .end = END_STAY};

    CHECK_INT(ends(&server, put_big, HTTP_CLIENT_ANSWERED).status, 413);
}

TEST(that_it_was_done_before_the_whole_request_was_taken_is_not_believed)
{
    struct server server = {.answer = BYTES("HTTP/1.1 204 Done\r\n\r\n"), .at_once = true, .end = END_HOLD};

    ends(&server, put_big, HTTP_CLIENT_UNKNOWN);
}

TEST(a_reset_that_sending_has_met_is_not_the_end_of_an_answer)
{
    for (unsigned i = 0; i < 10; i++) {
        struct server server = {
            .answer = BYTES("HTTP/1.1 413 No\r\n\r\n{\"half\":"), .at_once = true, .end = END_RESET};
        struct http_client_answer answer;

        CHECK(ask(&server, put_big, &answer) != HTTP_CLIENT_ANSWERED);
        http_client_answer_done(&answer);
    }
}

TEST(who_never_stops_talking_is_left_in_time)
{
    struct server server = {.answer = BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                            .endless = BYTES("1;an=extension\r\nx\r\n")};
    FILE *sink = fopen("/dev/null", "w");
    struct http_client_request request = {.timeout_ms = SHORT_MS, .sink = sink};

    CHECK_TEXT(bytes_of(ends(&server, request, HTTP_CLIENT_UNKNOWN).why), BYTES("it took too long"));
    fclose(sink);
}

TEST(an_answer_that_is_there_when_it_is_given_up_is_one)
{
    for (unsigned i = 0; i < 20; i++) {
        int stops[] = {eventfd(0, EFD_CLOEXEC), -1};
        struct server server = {
            .answer = BYTES("HTTP/1.1 204 Done\r\n\r\n"), .ends_it = stops[0], .end = END_STAY};

        ends(&server, (struct http_client_request){.stop_fds = stops}, HTTP_CLIENT_ANSWERED);
        CHECK_INT(server.left_by, 0);
        close(stops[0]);
    }
}

TEST(an_answer_that_is_too_large_is_not_known)
{
    size_t size = HTTP_CLIENT_ANSWER_MAX + 200;
    char *large = calloc(1, size);

    for (int over = 1; over >= 0; over--) {
        struct server server = {.end = END_FIN};
        struct http_client_answer answer;

        size = (size_t)(HTTP_CLIENT_ANSWER_MAX + over);
        size += (size_t)snprintf(large, 100, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
        server.answer = (struct bytes){large, size};
        CHECK_INT(ask(&server, (struct http_client_request){0}, &answer),
                  over ? HTTP_CLIENT_UNKNOWN : HTTP_CLIENT_ANSWERED);
        CHECK(over || answer.len == HTTP_CLIENT_ANSWER_MAX);
        http_client_answer_done(&answer);
    }
    free(large);
}

/* -- what is sent */

TEST(a_request_is_sent_as_it_was_asked_for)
{
#define SECRET "pawl_secret"
#define SELF "Host: 127.0.0.1:%u\r\nUser-Agent: pawl/" PAWL_VERSION "\r\nAccept: */*\r\n"
    static const struct {
        const char *method, *body, *fields, *wanted;
    } sent[] = {{"GET", NULL, "", "GET /x HTTP/1.1\r\n" SELF "\r\n"},
                {"DELETE", NULL, "5", "DELETE /x HTTP/1.1\r\n" SELF "Fencing-Token: 5\r\n\r\n"},
                {"POST", NULL, "", "POST /x HTTP/1.1\r\n" SELF "Content-Length: 0\r\n\r\n"},
                {"PUT", "{}", "", "PUT /x HTTP/1.1\r\n" SELF "Content-Length: 2\r\n\r\n{}"}};

    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        struct server server = {.answer = BYTES("HTTP/1.1 204 x\r\n\r\n")};
        struct http_client_request request = {
            .method = sent[i].method,
            .headers = {{"Fencing-Token", bytes_of(sent[i].fields)}, {"Other", {0}}}};

        request.body = sent[i].body != NULL ? bytes_of(sent[i].body) : (struct bytes){0};
        ends(&server, request, HTTP_CLIENT_ANSWERED);
        CHECK_TEXT(((struct bytes){server.seen, server.seen_len}),
                   bytes_of(textf(sent[i].wanted, server.port)));
        /* A server that reads once, and then closes, resets what comes behind. (TLS: a record each.) */
        CHECK_INT(server.pieces, over_tls && request.body.len > 0 ? 2 : 1);
    }
#undef SELF
}

/* -- certainly not sent */

static void is_not_sent(struct http_client_request request, const char *why)
{
    struct http_client_answer answer;

    request.method = "POST";
    CHECK_INT(http_client_send(&request, &answer), HTTP_CLIENT_NOT_SENT);
    if (!CHECK(strstr(answer.why, why) != NULL))
        printf("# %s: %s\n", request.url, answer.why);
    http_client_answer_done(&answer);
}

TEST(what_is_no_plain_address_is_not_sent_anywhere)
{
    static const char *const with_blanks[] = {"", "unix:/p: /", "http://h /x", "http://h/x y"};
    static const char others[] = /* with a blank between two */
        "x ftp://h/ unix: unix:/ unix:relative:/x unix:/p:x HTTP://h/ http:/h http:// http:///x http://h:/x "
        "http://h:0/x http://h:65536/x http://h:123456/x http://u@h/x http://u:p@h/x http://h/x#y http://h?x "
        "http://::1/x http://[::1/x http://[]/x http://h_%2f/x http://h/\r\nX:y http://h:8x/y "
        "http://[localhost]/ http://[1.2.3.4]/ http://[::g]/ https:// https://u@h/";

    for (size_t i = 0; i < sizeof(with_blanks) / sizeof(with_blanks[0]); i++)
        is_not_sent((struct http_client_request){.url = with_blanks[i]}, "address");
    for (const char *rest = others, *url; (url = check_word(&rest)) != NULL;)
        is_not_sent((struct http_client_request){.url = url}, "address");
}

TEST(a_header_that_would_be_two_is_not_sent)
{
    const struct bytes values[] = {BYTES("5\r\nX: y"), BYTES("5\nX"), BYTES("5\0"), BYTES("\x7f")};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        is_not_sent((struct http_client_request){.url = "http://127.0.0.1:1/", .headers = {{"A", values[i]}}},
                    "control character");
    }
}

TEST(nobody_there_is_not_sent)
{
    unsigned port;

    close(loopback_listen(&port, 1, 0));
    is_not_sent((struct http_client_request){.url = textf("http://127.0.0.1:%u/", port)},
                "Connection refused");
    is_not_sent((struct http_client_request){.url = textf("http://localhost:%u/", port)}, "localhost");
    is_not_sent((struct http_client_request){.url = "http://no-such-host.invalid/"}, "no-such-host.invalid");
}

TEST(who_does_not_take_the_connection_in_time_was_not_sent_to)
{
    struct loopback_full full;

    loopback_full_open(&full);
    is_not_sent(
        (struct http_client_request){.url = textf("http://127.0.0.1:%u/", full.port), .timeout_ms = SHORT_MS},
        "too long");
    loopback_full_close(&full);
}

TEST(a_handshake_that_is_not_answered_in_time_or_given_up_sends_nothing)
{
    int stops[] = {eventfd(0, EFD_CLOEXEC), -1};

    for (unsigned i = 0; i < 2; i++) {
        struct server server = {.at_once = true, .end = END_STAY, .tells = i == 0 ? 0 : stops[0]};
        struct http_client_request request = {.url = "https://127.0.0.1:%u/",
                                              .method = "POST",
                                              .stop_fds = stops,
                                              .timeout_ms = i == 0 ? SHORT_MS : PATIENCE_MS};
        struct http_client_answer answer = ends(&server, request, HTTP_CLIENT_NOT_SENT);

        CHECK_INT(answer.stopped, i == 1);
        CHECK(i == 1 || strstr(answer.why, "too long") != NULL);
    }
    close(stops[0]);
}

/* -- given up */

TEST(a_request_without_an_answer_in_time_or_given_up_is_not_known_and_reset_or_was_never_sent)
{
    static const struct {
        const char *answer;
        bool forks, stops, stopped_before;
    } rows[] = {{.answer = "HTTP/1.1 200 OK\r\nContent-Le"},
                {.forks = true},
                {.stops = true},
                {.stopped_before = true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool stops = rows[i].stops || rows[i].stopped_before;
        int fds[] = {eventfd(rows[i].stopped_before, EFD_CLOEXEC), -1};
        struct server server = {.answer = bytes_of(rows[i].answer != NULL ? rows[i].answer : ""),
                                .end = END_STAY,
                                .forks = rows[i].forks, /* a child has its socket */
                                .tells = rows[i].stops ? fds[0] : 0};
        struct http_client_request request = {.stop_fds = stops ? fds : NULL,
                                              .timeout_ms = stops ? 0 : SHORT_MS};

        CHECK_INT(ends(&server, request, rows[i].stopped_before ? HTTP_CLIENT_NOT_SENT : HTTP_CLIENT_UNKNOWN)
                      .stopped,
                  stops);
        CHECK(rows[i].stopped_before ? server.seen_len == 0 : server.left_by == ECONNRESET);
        close(fds[0]);
    }
}

/* -- the sink */

TEST(a_body_goes_into_the_sink_only_when_it_is_what_was_asked_for)
{
    static const struct {
        const char *answer, *sunk, *kept;
    } told[] = {{"HTTP/1.1 200 OK\r\nMark: ab\r\nContent-Length: 4\r\n\r\nbody", "body", ""},
                {"HTTP/1.1 200 OK\r\nmark: a\r\nContent-Length: 4\r\n\r\nbody", "body", ""},
                {"HTTP/1.1 200 OK\r\nMark: b\r\nContent-Length: 4\r\n\r\nbody", "", "body"},
                {"HTTP/1.1 200 OK\r\nMark:\r\nContent-Length: 4\r\n\r\nbody", "", "body"},
                {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "", "body"},
                {"HTTP/1.1 201 OK\r\nMark: a\r\nContent-Length: 4\r\n\r\nbody", "", "body"}};

    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        struct server server = {.answer = bytes_of(told[i].answer)};
        struct http_client_answer answer;
        char *sunk = NULL;
        size_t len = 0;
        FILE *sink = open_memstream(&sunk, &len);

        CHECK_INT(ask(&server, (struct http_client_request){.sink = sink, .sink_needs = {"Mark", BYTES("a")}},
                      &answer),
                  HTTP_CLIENT_ANSWERED);
        fclose(sink);
        CHECK_TEXT(((struct bytes){sunk, len}), bytes_of(told[i].sunk));
        CHECK_TEXT(((struct bytes){answer.body, answer.len}), bytes_of(told[i].kept));
        http_client_answer_done(&answer);
        free(sunk);
    }
}

TEST(a_body_that_cannot_be_written_is_not_known)
{
    struct server server = {.answer = BYTES("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")};
    struct http_client_request request = {.sink = fopen("/dev/full", "w")};

    setvbuf(request.sink, NULL, _IONBF, 0);
    CHECK_TEXT(bytes_of(ends(&server, request, HTTP_CLIENT_UNKNOWN).why),
               BYTES("what it answers cannot be written"));
    fclose(request.sink);
}

/* -- places */

TEST(a_place_is_read_from_its_url)
{
    static const struct {
        const char *url, *host, *port, *authority, *target;
    } places[] = {{"http://h", "h", "80", "h", ""},
                  {"https://h/", "h", "443", "h", "/"},
                  {"http://10.0.0.1:8700/v1/leases/a%2Fb?wait_ms=1", "10.0.0.1", "8700", "10.0.0.1:8700",
                   "/v1/leases/a%2Fb?wait_ms=1"},
                  {"http://[::1]:80/x", "::1", "80", "[::1]:80", "/x"},
                  {"http://[fe80::1]/", "fe80::1", "80", "[fe80::1]", "/"},
                  {"https://a-b.example_1:65535/p", "a-b.example_1", "65535", "a-b.example_1:65535", "/p"},
                  {"unix:/run/p.sock:/v1/x:y", "/run/p.sock", "", "/run/p.sock", "/v1/x:y"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct http_place place;

        CHECK(http_place_read(&place, places[i].url) == NULL);
        CHECK_INT(place.is_tls, places[i].url[4] == 's');
        CHECK_INT(place.is_unix, places[i].url[0] == 'u');
        CHECK_TEXT(bytes_of(place.host), bytes_of(places[i].host));
        CHECK_TEXT(bytes_of(place.port), bytes_of(places[i].port));
        CHECK_TEXT(place.authority, bytes_of(places[i].authority));
        CHECK_TEXT(place.target, bytes_of(places[i].target));
    }
}

TEST(an_access_token_is_sent_where_nobody_else_hears_it)
{
    static const struct {
        const char *url;
        bool is_sent;
    } places[] = {{"https://example.org", true},        {"unix:/run/p.sock", true},
                  {"http://LocalHost:8700", true},      {"http://127.0.0.1", true},
                  {"http://127.255.0.9:1", true},       {"http://[::1]:8700/x", true},
                  {"http://example.org", false},        {"http://127.0.0.1.example.org", false},
                  {"http://localhost.example", false},  {"http://127.1", false},
                  {"http://128.0.0.1", false},          {"http://0.0.0.0", false},
                  {"http://[::]:8700", false},          {"http://[fe80::1]", false},
                  {"http://localhost:1@example", false}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct http_client_access access = {.text[HTTP_ACCESS_TOKEN] = SECRET};

        if (!CHECK((http_client_access_wrong(&access, places[i].url) == NULL) == places[i].is_sent))
            printf("# %s\n", places[i].url);
        if (!places[i].is_sent)
            is_not_sent((struct http_client_request){.url = places[i].url, .access = access}, "");
        access = (struct http_client_access){.text[HTTP_ACCESS_TOKEN_FILE] = "x", .plaintext = true};
        CHECK(http_client_access_wrong(&access, "http://example.org") == NULL);
    }
}

TEST(an_access_token_is_the_one_that_is_in_the_file_now_and_in_no_sentence)
{
    static const struct {
        const char *text, *sent; /* NULL: it is not */
    } files[] = {{SECRET "\n", SECRET}, {"new\r\n\n", "new"}, {"", NULL},        {"\n", NULL},
                 {"a b", NULL},         {"a\nb", NULL},       {"\xC3\xA9", NULL}};
    char path[] = "/tmp/pawl-access-XXXXXX";
    int fd = mkstemp(path);

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct http_client_request request = {.access.text = {path, "another"}};
        struct server server = {.answer = BYTES("HTTP/1.1 204 x\r\n\r\n")};

        CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, files[i].text, strlen(files[i].text), 0) >= 0);
        if (files[i].sent == NULL) {
            request.url = "http://127.0.0.1:1/";
            is_not_sent(request, "the access token ");
            continue;
        }
        ends(&server, request, HTTP_CLIENT_ANSWERED);
        CHECK(strstr(server.seen, textf("\r\nAuthorization: Bearer %s\r\n", files[i].sent)) != NULL);
    }
    close(fd);
    unlink(path);
    is_not_sent((struct http_client_request){.url = "http://127.0.0.1:1/",
                                             .access.text[HTTP_ACCESS_TOKEN_FILE] = path},
                "the file of the access token cannot be read");
}

TEST(localhost_is_not_looked_up_and_its_first_address_that_answers_is_taken)
{
    struct server server = {.answer = BYTES("HTTP/1.1 204 x\r\n\r\n")};

    ends(&server, (struct http_client_request){.url = "http://LocalHost:%u/"}, HTTP_CLIENT_ANSWERED);
}

TEST(an_address_that_does_not_answer_gives_way_to_the_next)
{
    struct server server = {.answer = BYTES("HTTP/1.1 204 x\r\n\r\n")};
    struct http_addresses addresses = {.count = 2};
    struct http_wire wire = {.fd = -1};
    struct loopback_full full;

    server_begin(&server);
    loopback_full_open(&full);
    for (unsigned i = 0; i < 2; i++) {
        const struct sockaddr_in at = loopback_at(i == 0 ? full.port : server.port);

        memcpy(&addresses.list[i].at, &at, sizeof(at));
        addresses.list[i].len = sizeof(at);
    }
    CHECK_INT(http_dial_any(&wire, &addresses, pawl_now_ms() + PATIENCE_MS), HTTP_READY);
    CHECK(http_wire_send(&wire, BYTES("GET / HTTP/1.1\r\n\r\n"), BYTES("")) > 0);
    http_wire_close(&wire, HTTP_CLOSE);
    server_end(&server);
    CHECK(server.seen_len > 0);
    loopback_full_close(&full);
}

int main(void)
{
    safe_open();
    setenv("SSL_CERT_FILE", safe.authority.file, 1);
    check_all_as(NULL);
    over_tls = true;
    check_all_as("over_TLS");
    safe_close();
    return check_done();
}
