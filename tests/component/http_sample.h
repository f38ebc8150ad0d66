/* http_sample.h - a server in a child process, with a route for everything that the HTTP layer can do. */
#ifndef PAWL_TESTS_HTTP_SAMPLE_H
#define PAWL_TESTS_HTTP_SAMPLE_H

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/http/http_server.h"
#ifdef OVER_TLS
#include "tests/component/http_over_tls.h"
#endif

enum { SAMPLE_JSON_MAX = 16384, SAMPLE_BYTES_MAX = 1 << 20, SAMPLE_QUEUE = 16384, SAMPLE_WAITER_BYTES = 250 };

struct sample {
    struct http_owner owner;
    struct loop *loop;
    struct http_server *http;
    struct loop_timer stop_tick;
    unsigned ended;
    /* a round trip through a socket pair stands for one to a store */
    int pair[2];
    struct loop_watch echo, back;
    struct loop_hook flush;
    struct http_request *queue[SAMPLE_QUEUE];
    unsigned queued, queue_first, to_send;
    struct sample_waiter *waiters; /* until the server stops */
};

static inline struct sample *sample_of(const struct http_request *req)
{
    return container_of((char *)(uintptr_t)http_owner(req), struct sample, owner);
}

static inline void sample_ended(const struct http_owner *owner, const struct http_request *req,
                                unsigned status, uint64_t took_us)
{
    (void)req;
    (void)status;
    (void)took_us;
    container_of((char *)(uintptr_t)owner, struct sample, owner)->ended++;
}

/* -- handlers that answer at once */

static enum step sample_hello(struct http_request *req)
{
    struct json_out *json = http_json(req);

    json_object(json, NULL);
    json_text(json, "hello", BYTES("world"));
    json_object_end(json);
    http_reply_json(req);
    return http_answer(req, 200);
}

static enum step sample_echo(struct http_request *req)
{
    http_reply_header(req, "Content-Type", http_header(req, "Content-Type", NULL));
    http_reply_body(req, NULL, http_body(req));
    return http_answer(req, 200);
}

static enum step sample_drop(struct http_request *req)
{
    return http_answer(req, http_body(req).len == 0 ? 204 : 500);
}

/* What the request says, as it was understood. */
static enum step sample_tell(struct http_request *req)
{
    static const char *const names[] = {"a", "b", NULL};
    unsigned count = 0;
    char value[9];
    struct bytes x = http_header(req, "X-Test", &count);
    int len = http_query_text(req, names, "a", value, sizeof(value));
    struct json_out *json = http_json(req);

    json_object(json, NULL);
    json_int(json, "method", (int64_t)http_method(req));
    json_text(json, "path", http_path(req));
    json_text(json, "part", http_path_part(req, 0));
    json_text(json, "query", http_query(req));
    json_int(json, "a_len", len);
    json_text(json, "a", (struct bytes){value, len > 0 ? (size_t)len : 0});
    json_text(json, "x", x);
    json_int(json, "x_count", count);
    json_object_end(json);
    http_reply_json(req);
    return http_answer(req, 200);
}

static enum step sample_two_parts(struct http_request *req)
{
    http_reply_header(req, "X-First", http_path_part(req, 0));
    http_reply_header(req, "X-Rest", http_path_part(req, 1));
    return http_answer(req, 200);
}

static enum step sample_big(struct http_request *req)
{
    struct json_out *out = http_json(req);
    size_t size = strtoul(http_path_part(req, 0).at, NULL, 10);

    json_out_reserve(out, size);
    for (size_t i = 0; i < size; i++)
        out->at[i] = (char)(i * 31 % 251);
    out->len = size;
    http_reply_body(req, "application/octet-stream", json_out_bytes(out));
    return http_answer(req, 200);
}

static enum step sample_unchanged(struct http_request *req)
{
    http_reply_header(req, "ETag", BYTES("\"1\""));
    http_reply_body(req, "text/plain", BYTES("not sent"));
    return http_answer(req, 304);
}

static enum step sample_nothing(struct http_request *req)
{
    http_reply_body(req, "text/plain", BYTES("not sent"));
    return http_answer(req, 204);
}

static enum step sample_problem(struct http_request *req)
{
    struct json_out *json;

    http_reply_header(req, "Content-Type", BYTES("text/plain"));
    json = http_problem_begin(req, PROBLEM_LEASE_HELD, "Held.");
    json_int(json, "current", 34);
    return http_problem_end(req, 403);
}

static enum step sample_headers(struct http_request *req)
{
    char value[1000];

    memset(value, 'x', sizeof(value));
    http_reply_header(req, "X-Long", (struct bytes){value, strtoul(http_path_part(req, 0).at, NULL, 10)});
    return http_answer(req, 200);
}

static enum step sample_stats(struct http_request *req)
{
    struct sample *sample = sample_of(req);
    struct json_out *json = http_json(req);
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    json_object(json, NULL);
    json_int(json, "connections", http_server_connections(sample->http));
    json_int(json, "open", http_server_open_requests(sample->http));
    json_int(json, "ended", sample->ended);
    json_int(json, "cpu_us",
             usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1000000 +
                 usage.ru_stime.tv_usec);
    json_object_end(json);
    http_reply_json(req);
    return http_answer(req, 200);
}

/* -- handlers that answer later */

struct sample_later {
    struct http_request *req;
    struct loop_timer timer;
};

static void sample_later_fire(struct loop_timer *timer)
{
    struct sample_later *later = container_of(timer, struct sample_later, timer);

    loop_timer_done(timer);
    if (http_body(later->req).len > 0) {
        sample_echo(later->req);
    } else {
        http_reply_body(later->req, "text/plain", http_path_part(later->req, 0));
        http_answer(later->req, 200);
    }
}

static enum step sample_later(struct http_request *req)
{
    struct sample_later *later = HTTP_SCRATCH(req, struct sample_later);

    later->req = req;
    loop_timer_init(sample_of(req)->loop, &later->timer, sample_later_fire);
    loop_timer_arm(&later->timer, strtoul(http_path_part(req, 0).at, NULL, 10), 0);
    return SUSPENDED;
}

static enum step sample_turn(struct http_request *req)
{
    struct sample *sample = sample_of(req);

    if (sample->queued == SAMPLE_QUEUE)
        return http_refuse(req, PROBLEM_OVERLOADED);
    sample->queue[(sample->queue_first + sample->queued++) % SAMPLE_QUEUE] = req;
    sample->to_send++;
    return SUSPENDED;
}

/* As much as one who waits for a lease has. */
struct sample_waiter {
    struct http_suspended suspended;
    struct sample_waiter *next;
    char more[SAMPLE_WAITER_BYTES - 3 * sizeof(void *)];
};

static enum step sample_suspend(struct http_request *req)
{
    struct sample *sample = sample_of(req);
    struct sample_waiter *waiter = calloc(1, sizeof(*waiter));

    waiter->next = sample->waiters;
    sample->waiters = waiter;
    http_suspend(req, &waiter->suspended);
    return SUSPENDED;
}

static inline void sample_resume_all(struct sample *sample)
{
    while (sample->waiters != NULL) {
        struct sample_waiter *waiter = sample->waiters;

        sample->waiters = waiter->next;
        http_refuse(http_resume(&waiter->suspended), PROBLEM_DRAINING);
        free(waiter);
    }
}

/* All calls of a turn go out in one write. */
static void sample_flush(struct loop_hook *hook)
{
    static const char marks[SAMPLE_QUEUE];
    struct sample *sample = container_of(hook, struct sample, flush);

    if (sample->to_send > 0 && write(sample->pair[0], marks, sample->to_send) == (ssize_t)sample->to_send)
        sample->to_send = 0;
}

static void sample_echo_ready(struct loop_watch *watch, int events)
{
    struct sample *sample = container_of(watch, struct sample, echo);
    char marks[SAMPLE_QUEUE];
    ssize_t got = read(sample->pair[1], marks, sizeof(marks));

    (void)events;
    if (got > 0 && write(sample->pair[1], marks, (size_t)got) != got)
        abort();
}

static void sample_back_ready(struct loop_watch *watch, int events)
{
    struct sample *sample = container_of(watch, struct sample, back);
    char marks[SAMPLE_QUEUE];
    ssize_t got = read(sample->pair[0], marks, sizeof(marks));

    (void)events;
    for (ssize_t i = 0; i < got; i++) {
        struct http_request *req = sample->queue[sample->queue_first % SAMPLE_QUEUE];

        sample->queue_first = (sample->queue_first + 1) % SAMPLE_QUEUE;
        sample->queued--;
        if (http_method(req) == HTTP_PUT)
            sample_suspend(req);
        else
            sample_hello(req);
    }
}

/* -- the end */

static void sample_stop_tick(struct loop_timer *timer)
{
    struct sample *sample = container_of(timer, struct sample, stop_tick);

    http_server_drain(sample->http);
    sample_resume_all(sample);
    if (http_server_open_requests(sample->http) == 0)
        loop_stop(sample->loop);
}

static enum step sample_stop(struct http_request *req)
{
    loop_timer_arm(&sample_of(req)->stop_tick, 1, 10);
    return http_answer(req, 204);
}

static const struct http_route sample_routes[] = {
    {HTTP_GET, "/hello", HTTP_BODY_NONE, 0, false, sample_hello, NULL, 0},
    {HTTP_GET | HTTP_POST, "/turn", HTTP_BODY_JSON, SAMPLE_JSON_MAX, false, sample_turn, NULL, 0},
    {HTTP_PUT, "/turn/{name}", HTTP_BODY_JSON, SAMPLE_JSON_MAX, false, sample_turn, NULL,
     0}, /* and then suspended */
    {HTTP_PUT | HTTP_POST, "/echo", HTTP_BODY_BYTES, SAMPLE_BYTES_MAX, false, sample_echo, NULL, 0},
    {HTTP_POST, "/json", HTTP_BODY_JSON, SAMPLE_JSON_MAX, false, sample_echo, NULL, 0},
    {HTTP_POST, "/drop", HTTP_BODY_DROPPED, 0, false, sample_drop, NULL, 0},
    {HTTP_GET | HTTP_PUT, "/later/{ms}", HTTP_BODY_BYTES, SAMPLE_BYTES_MAX, false, sample_later, NULL, 0},
    {HTTP_GET | HTTP_DELETE, "/tell/{name}", HTTP_BODY_NONE, 0, true, sample_tell, NULL, 0},
    {HTTP_GET, "/plain/{name}", HTTP_BODY_NONE, 0, false, sample_tell, NULL, 0},
    {HTTP_PUT, "/plain/{name}", HTTP_BODY_NONE, 0, false, sample_nothing, NULL, 0},
    {HTTP_GET, "/two/{first}/x/{rest**}", HTTP_BODY_NONE, 0, false, sample_two_parts, NULL, 0},
    {HTTP_GET, "/big/{size}", HTTP_BODY_NONE, 0, false, sample_big, NULL, 0},
    {HTTP_GET, "/unchanged", HTTP_BODY_NONE, 0, false, sample_unchanged, NULL, 0},
    {HTTP_GET, "/nothing", HTTP_BODY_NONE, 0, false, sample_nothing, NULL, 0},
    {HTTP_GET, "/problem", HTTP_BODY_NONE, 0, false, sample_problem, NULL, 0},
    {HTTP_GET, "/headers/{bytes}", HTTP_BODY_NONE, 0, false, sample_headers, NULL, 0},
    {HTTP_GET, "/stats", HTTP_BODY_NONE, 0, false, sample_stats, NULL, 0},
    {HTTP_POST, "/stop", HTTP_BODY_NONE, 0, false, sample_stop, NULL, 0},
    {HTTP_ANY, "/any/{rest**}", HTTP_BODY_DROPPED, 0, true, sample_tell, NULL, 0},
    {0, NULL, HTTP_BODY_NONE, 0, false, NULL, NULL, 0},
};

static struct http_options sample_options(void)
{
    static struct http_memory memory = {.max = 64 << 20};

    return (struct http_options){
        .routes = sample_routes,
        .connections_max = 2000,
        .body_max_default = SAMPLE_BYTES_MAX,
        .memory = &memory,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 30000,
    };
}

static inline int sample_main(struct http_options options)
{
    struct sample sample = {.owner = {.ended = sample_ended}, .loop = loop_new()};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sample.pair) != 0)
        return 1;
    options.owner = &sample.owner;
    loop_hook_add(sample.loop, &sample.flush, sample_flush);
    loop_watch_init(sample.loop, &sample.echo, sample.pair[1], sample_echo_ready, LOOP_READ);
    loop_watch_init(sample.loop, &sample.back, sample.pair[0], sample_back_ready, LOOP_READ);
    loop_timer_init(sample.loop, &sample.stop_tick, sample_stop_tick);
    sample.http = http_server_new(sample.loop, &options);
    loop_run(sample.loop);
    http_server_free(sample.http);
    loop_timer_done(&sample.stop_tick);
    loop_watch_done(&sample.echo);
    loop_watch_done(&sample.back);
    loop_hook_remove(sample.loop, &sample.flush);
    loop_free(sample.loop);
    close(sample.pair[0]);
    close(sample.pair[1]);
    return 0;
}

struct sample_child {
    pid_t pid;
    unsigned port;
};

static inline struct sample_child sample_start(struct http_options options)
{
    struct sample_child child = {0, 0};
    const char *why = NULL;
    pid_t parent = getpid();

#ifdef OVER_TLS
    options.tls = over_tls_server();
#endif
    options.listen_fd = http_listen("127.0.0.1:0", &child.port, &why);
    fflush(stdout);
    child.pid = fork();
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        exit(sample_main(options));
    }
    close(options.listen_fd);
    return child;
}

/* The exit status of a child that was asked to stop. */
static inline int sample_wait(struct sample_child child)
{
    int status = -1;

    return waitpid(child.pid, &status, 0) == child.pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
