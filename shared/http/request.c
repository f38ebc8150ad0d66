/* request.c - a request from its head to its answer. libmicrohttpd enters for each request: once with the
 * head, once for each piece of the body, once when it is complete, and, as long as it then gets no answer,
 * again at each of its runs (0.9.75, connection.c, MHD_CONNECTION_FULL_REQ_RECEIVED: "try again next time";
 * tried). That is how a short wait costs no system call; a longer one is suspended, as documented. */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

enum { POLL_MS = 20, POLLED_MAX = 512, BODY_FIRST_BYTES = 4096 };

/* -- the states */

bool http_state_may(enum http_state from, enum http_state to)
{
    static const unsigned next[STATE_COUNT] = {
        [STATE_HEAD] = 1u << STATE_BODY | 1u << STATE_ABORTED,
        [STATE_BODY] = 1u << STATE_RUNNING | 1u << STATE_ABORTED,
        [STATE_RUNNING] = 1u << STATE_SUSPENDED | 1u << STATE_ANSWERED,
        [STATE_SUSPENDED] = 1u << STATE_RUNNING,
        [STATE_ANSWERED] = 1u << STATE_SENDING,
    };

    return next[from] >> to & 1u;
}

void http_state_set(struct http_request *req, enum http_state state)
{
    assert(http_state_may(req->state, state));
    req->state = state;
}

/* -- the body */

const char http_no_body_detail[] = "This request takes no body. Send it without one.";

const char *http_body_max_detail(struct http_request *req)
{
    snprintf((char *)req->scratch, sizeof(req->scratch),
             "The body of this request may have %zu bytes%s, and this one has more. Send less.",
             req->body.max, req->route->body_max == 0 ? " (--max-body)" : "");
    return (const char *)req->scratch;
}

enum problem http_body_reserve(struct http_request *req, size_t size)
{
    struct http_server *server = req->server;
    size_t others = server->body_memory - req->body.reserved;

    if (others > server->options.body_memory_max || size > server->options.body_memory_max - others) {
        return PROBLEM_OVERLOADED;
    }
    server->body_memory = others + size;
    req->body.reserved = size;
    return PROBLEM_NONE;
}

static bool body_fits_inline(const struct http_request *req)
{
    return req->head.length == LENGTH_ANNOUNCED && req->head.text == req->inline_bytes &&
           req->head.announced <= INLINE_BYTES - req->head.len;
}

/* An announced body is given all its room at once, a chunked one more and more. */
static enum problem body_room(struct http_request *req, size_t len)
{
    size_t size = req->body.size > 0 ? req->body.size : BODY_FIRST_BYTES, max = req->body.max;
    char *body;

    if (body_fits_inline(req)) {
        req->body.at = req->inline_bytes + req->head.len; /* body_size stays 0 */
        return PROBLEM_NONE;
    }
    if (len <= req->body.size) {
        return PROBLEM_NONE;
    }
    while (size < len) {
        size *= 2;
    }
    if (req->head.length == LENGTH_ANNOUNCED || size > max) {
        size = req->head.length == LENGTH_ANNOUNCED && req->head.announced < max ? (size_t)req->head.announced
                                                                                 : max;
    }
    if (http_body_reserve(req, size) != PROBLEM_NONE) {
        return PROBLEM_OVERLOADED;
    }
    body = realloc(req->body.at, size);
    if (body == NULL) {
        return PROBLEM_OVERLOADED;
    }
    req->body.at = body;
    req->body.size = size;
    return PROBLEM_NONE;
}

static enum MHD_Result enter_body(struct http_request *req, struct bytes piece)
{
    size_t len = req->body.len + piece.len;
    enum problem problem = PROBLEM_NONE;
    const char *detail = NULL;

    if (req->route->body == HTTP_BODY_NONE) {
        problem = PROBLEM_INVALID_REQUEST;
        detail = http_no_body_detail;
    } else if (len > req->body.max) {
        problem = PROBLEM_TOO_LARGE;
        detail = http_body_max_detail(req);
    } else if (req->route->body == HTTP_BODY_JSON && !http_has_json_type(req)) {
        problem = PROBLEM_UNSUPPORTED_MEDIA_TYPE; /* known only now that a chunked body is not empty */
    } else if (req->route->body != HTTP_BODY_DROPPED) {
        problem = body_room(req, len);
    }
    if (problem != PROBLEM_NONE) {
        return http_raw_refuse(req, problem, detail);
    }
    if (req->route->body != HTTP_BODY_DROPPED) {
        memcpy(req->body.at + req->body.len, piece.at, piece.len);
    }
    req->body.len = len;
    return MHD_YES;
}

/* Is held up to HTTP_BODY_HELD_BYTES; then, if it is longer, the handler is called. */
static enum MHD_Result enter_streamed(struct http_request *req, struct bytes piece)
{
    size_t room = HTTP_BODY_HELD_BYTES - req->body.len;
    struct bytes held = {piece.at, piece.len < room ? piece.len : room};
    struct bytes rest = {piece.at + held.len, piece.len - held.len};

    req->rest.received += piece.len;
    if (held.len > 0 && enter_body(req, held) == MHD_NO) {
        return MHD_NO;
    }
    if (rest.len > 0 || (req->body.len == HTTP_BODY_HELD_BYTES && req->head.announced > req->rest.received)) {
        return http_body_reader_begin(req, rest);
    }
    return MHD_YES;
}

/* -- the head */

/* Its body shall not even be sent. Of one that is small enough to be held the handler decides soon enough. */
static bool is_refused_by_head(struct http_request *req)
{
    return req->head.length != LENGTH_NONE && req->server->options.refuses != NULL &&
           req->route->body == HTTP_BODY_STREAMED &&
           (http_waits_for_continue(req) || http_body_announced(req) > HTTP_BODY_HELD_BYTES) &&
           req->server->options.refuses(req);
}

static enum step request_start(struct http_request *req)
{
    if (req->refusal.problem == PROBLEM_METHOD_NOT_ALLOWED && req->head.asks_options) {
        return http_answer(req, MHD_HTTP_NO_CONTENT);
    }
    if (req->refusal.problem != PROBLEM_NONE) {
        return http_refuse_detail(req, req->refusal.problem, req->refusal.detail);
    }
    req->server->runs.started++;
    return req->route->handle(req);
}

static enum step request_run(struct http_request *req)
{
    struct http_server *server = req->server;

    http_state_set(req, STATE_RUNNING);
    http_clock_set(server, &req->conn->deadline, PHASE_NONE);
    server->running++;
    server->open++;
    req->started_us = loop_now_us();
    req->in_handler = true;
    return request_start(req);
}

static enum MHD_Result enter_refusal(struct http_request *req)
{
    enum step step = request_run(req);

    assert(step == ANSWERED && req->state == STATE_ANSWERED);
    (void)step;
    return http_raw_answer(req);
}

static enum MHD_Result enter_head(struct http_request *req)
{
    http_route_find(req);
    if (req->refusal.problem != PROBLEM_NONE && (req->head.length != LENGTH_NONE || req->conn->reserved)) {
        return http_raw_refuse(req, req->refusal.problem, req->refusal.detail); /* without reading the body */
    }
    http_state_set(req, STATE_BODY);
    if (req->refusal.problem == PROBLEM_NONE && is_refused_by_head(req)) {
        return enter_refusal(req);
    }
    if (req->head.length != LENGTH_NONE) {
        http_clock_set(req->server, &req->conn->deadline, PHASE_BODY);
    }
    return MHD_YES;
}

/* -- the whole request */

void http_connection_suspend(struct http_request *req)
{
    req->suspended = true;
    MHD_suspend_connection(req->mhd);
}

void http_connection_resume(struct http_request *req)
{
    req->suspended = false;
    MHD_resume_connection(req->mhd);
    http_run_soon(req->server);
}

void http_request_unpoll(struct http_request *req)
{
    req->server->polled -= req->polled;
    req->polled = false;
}

enum MHD_Result http_enter_leave(struct http_conn *conn, struct http_request *req)
{
    struct http_server *server = conn->server;

    if (conn->req == NULL) { /* suspended: the request's memory is not ours any more */
        return MHD_YES;
    }
    req->in_handler = false;
    if (req->state == STATE_ANSWERED) {
        return http_reply_queue(req);
    }
    if (server->options.suspend_always || server->polled >= POLLED_MAX) {
        http_connection_suspend(req);
        return MHD_YES;
    }
    server->polled++;
    req->polled = true;
    req->waiting_ms = server->clock.now_ms;
    return MHD_YES;
}

enum MHD_Result http_enter_run(struct http_request *req, struct bytes rest)
{
    struct http_conn *conn = req->conn;
    enum step step = request_run(req);

    assert(conn->req == NULL ? step == SUSPENDED : (step == ANSWERED) == (req->state == STATE_ANSWERED));
    if (step == SUSPENDED && conn->req != NULL && !http_body_is_whole(req)) {
        req->in_handler = false;
        return http_body_reader_held(req, rest);
    }
    return http_enter_leave(conn, req);
}

static enum MHD_Result enter_wait(struct http_request *req)
{
    if (req->server->clock.now_ms - req->waiting_ms > POLL_MS) {
        http_request_unpoll(req);
        http_connection_suspend(req);
    }
    return MHD_YES;
}

enum MHD_Result http_enter(struct http_conn *conn, const char *upload, size_t *upload_len)
{
    struct http_request *req = conn->req;
    struct bytes piece = {upload, *upload_len};

    if (conn->over) {
        return http_early_over(conn);
    }
    *upload_len = 0;
    if (req == NULL) { /* its early answer is being sent */
        assert(conn->kept != NULL && piece.len > 0);
        return MHD_YES;
    }
    switch (req->state) {
    case STATE_HEAD: return enter_head(req);
    case STATE_BODY:
        if (piece.len == 0) {
            return http_enter_run(req, piece);
        }
        req->server->runs.moved++;
        return req->route->body == HTTP_BODY_STREAMED ? enter_streamed(req, piece) : enter_body(req, piece);
    case STATE_RUNNING: return http_body_is_whole(req) ? enter_wait(req) : http_body_reader_enter(req, piece);
    case STATE_ANSWERED: http_request_unpoll(req); return http_reply_queue(req);
    case STATE_SUSPENDED:
    case STATE_SENDING:
    case STATE_ABORTED:
    case STATE_COUNT: break;
    }
    return MHD_NO; /* refused already: libmicrohttpd closes */
}

/* == what handlers read of a request. */

void *http_scratch(struct http_request *req)
{
    return req->scratch;
}

enum http_method http_method(const struct http_request *req)
{
    return req->method;
}

struct bytes http_path_part(const struct http_request *req, unsigned i)
{
    assert(i < PARTS_MAX && req->head.parts[i].at != NULL);
    return req->head.parts[i];
}

struct bytes http_path(const struct http_request *req)
{
    return req->head.path;
}

struct bytes http_query(const struct http_request *req)
{
    return req->head.query;
}

struct bytes http_header(const struct http_request *req, const char *name, unsigned *count)
{
    unsigned found = 0;
    const struct http_field *field = http_field_find(req, name, &found);

    if (count != NULL) {
        *count = found;
    }
    return field != NULL ? http_field_value(req, field) : (struct bytes){NULL, 0};
}

unsigned http_field_count(const struct http_request *req)
{
    return req->head.field_count;
}

void http_field_at(const struct http_request *req, unsigned i, struct bytes *name, struct bytes *value)
{
    assert(i < req->head.field_count);
    *name = (struct bytes){req->head.text + req->fields[i].name.at, req->fields[i].name.len};
    *value = http_field_value(req, &req->fields[i]);
}

const char *http_client_address(const struct http_request *req, char text[HTTP_ADDRESS_SIZE])
{
    const struct http_conn *conn = req->conn;
    const union MHD_ConnectionInfo *info;
    struct in6_addr own = in6addr_any;
    const struct in6_addr *address = &own;

    if (conn != NULL && conn->client != NULL && !IN6_IS_ADDR_UNSPECIFIED(conn->client)) {
        address = conn->client;
    } else if (conn != NULL) {
        info = MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        own = info != NULL ? http_peer_address(info->client_addr) : own;
    }
    return http_peer_text(address, text);
}

struct bytes http_body(const struct http_request *req)
{
    return (struct bytes){req->body.at, req->body.at != NULL ? req->body.len : 0};
}

const char *http_request_id(const struct http_request *req, char id[HTTP_ID_SIZE])
{
    snprintf(id, HTTP_ID_SIZE, "%s%0*" PRIx64, req->server->id_prefix, ID_DIGITS, req->id);
    return id;
}

enum problem http_problem(const struct http_request *req)
{
    return req->state >= STATE_ANSWERED ? req->reply.problem : PROBLEM_NONE;
}

void http_note_lease(struct http_request *req, struct bytes lease)
{
    req->note_lease = lease;
}

void http_note_why(struct http_request *req, const char *why)
{
    req->note_why = why;
}

struct bytes http_noted_lease(const struct http_request *req)
{
    bool is_named = req->note_lease.len == 0 && req->route != NULL && strstr(req->route->path, "/{name}");

    return is_named ? req->head.parts[0] : req->note_lease;
}

const char *http_noted_why(const struct http_request *req)
{
    return req->note_why != NULL ? req->note_why : "";
}

const struct http_owner *http_owner(const struct http_request *req)
{
    return req->server->options.owner;
}

/* -- the query */

/* The escapes are whole, as the check of the target has found. */
static int query_decode(struct bytes value, char *buf, size_t size)
{
    size_t len = 0;

    while (value.len > 0) {
        char c;
        size_t taken = ascii_percent_decode(value, &c);

        if (len == size || taken == 0) {
            return -2;
        }
        buf[len++] = c;
        value = (struct bytes){value.at + taken, value.len - taken};
    }
    return (int)len;
}

static bool is_known(const char *const *names, struct bytes name)
{
    for (; *names != NULL; names++) {
        if (bytes_are(name, *names)) {
            return true;
        }
    }
    return false;
}

int http_query_get(const struct http_request *req, const char *const *names_known, const char *name,
                   char *buf, size_t size)
{
    struct bytes left = req->head.query;
    int found = -1;

    while (left.len > 0) {
        struct bytes value = bytes_cut(&left, '&'), key = bytes_cut(&value, '=');

        if (!is_known(names_known, key) || (bytes_are(key, name) && found != -1)) {
            return -2;
        }
        if (bytes_are(key, name)) {
            found = query_decode(value, buf, size);
            if (found == -2) {
                return -2;
            }
        }
        if (left.at != NULL && left.len == 0) {
            return -2; /* a '&' with nothing behind it */
        }
    }
    return found;
}

/* == requests that wait for long: their memory goes back, and a struct http_kept stays.
 *
 * libmicrohttpd's pointer for a request cannot be changed from outside, so it is the connection, which lives
 * as long as libmicrohttpd knows the request. */

static void suspended_gone(struct http_deferred *deferred)
{
    struct http_suspended *suspended = container_of(deferred, struct http_kept, deferred)->suspended;

    if (suspended->gone != NULL) {
        suspended->gone(suspended);
    }
}

struct http_kept *http_kept_new(const struct http_request *req)
{
    struct http_kept *kept = must_have(malloc(sizeof(*kept) + req->head.path.len + req->head.method_len));

    *kept = (struct http_kept){.server = req->server,
                               .conn = req->conn,
                               .route = req->route,
                               .deferred = {.run = suspended_gone},
                               .id = req->id,
                               .started_us = req->started_us,
                               .method = req->method,
                               .path_len = (uint16_t)req->head.path.len,
                               .method_len = (uint8_t)req->head.method_len};
    memcpy(kept->text, req->head.path.at, req->head.path.len);
    memcpy(kept->text + req->head.path.len, req->method_text, req->head.method_len);
    return kept;
}

void http_kept_free(struct http_kept *kept)
{
    http_deferred_remove(&kept->deferred);
    free(kept);
}

struct http_request *http_kept_request(const struct http_kept *kept, struct http_conn *conn)
{
    struct http_request *req = http_request_take(kept->server, conn);

    req->state = STATE_SUSPENDED;
    req->id = kept->id;
    req->started_us = kept->started_us;
    req->method = kept->method;
    req->route = kept->route;
    req->head.method_len = kept->method_len;
    memcpy(req->method_text, kept->text + kept->path_len, kept->method_len);
    http_head_keep(req, (struct bytes){kept->text, kept->path_len});
    http_route_parts(req);
    return req;
}

/* A polled one is suspended here, between two runs of libmicrohttpd. Its documentation calls only the handler
 * a safe place; all that the call does is to take the connection out of the lists of those that are looked at
 * (0.9.75, daemon.c, internal_suspend_connection_; tried). */
static void suspend_connection(struct http_request *req, struct http_kept *kept)
{
    struct http_conn *conn = req->conn;

    if (!req->suspended) {
        MHD_suspend_connection(req->mhd);
        http_request_unpoll(req);
    }
    conn->req = NULL;
    conn->kept = kept;
    if (conn->left_at != NULL) {
        http_disconnect_report(kept);
    }
}

void http_suspend(struct http_request *req, struct http_suspended *suspended)
{
    struct http_kept *kept = http_kept_new(req);

    assert(http_body_is_whole(req));
    http_state_set(req, STATE_SUSPENDED);
    kept->suspended = suspended;
    suspended->kept = kept;
    if (req->conn != NULL) {
        suspend_connection(req, kept);
    } else {
        http_disconnect_report(kept); /* it has left while it was polled */
    }
    http_request_free(req);
}

struct http_request *http_resume(struct http_suspended *suspended)
{
    struct http_kept *kept = suspended->kept;
    struct http_request *req;

    assert(kept != NULL && kept->suspended == suspended);
    req = http_kept_request(kept, kept->conn);
    req->suspended = kept->conn != NULL;
    if (kept->conn != NULL) {
        kept->conn->kept = NULL;
        req->server->disconnect.look = req->server->disconnect.look || kept->conn->left_at != NULL;
    }
    http_state_set(req, STATE_RUNNING);
    suspended->kept = NULL;
    http_kept_free(kept);
    return req;
}

/* What the kernel knows already counts, though `gone` was not called yet. */
bool http_suspended_is_gone(const struct http_suspended *suspended)
{
    const struct http_kept *kept = suspended->kept;
    struct pollfd end = {.fd = kept->conn != NULL ? kept->conn->fd : -1, .events = POLLRDHUP};

    return kept->is_gone || poll(&end, 1, 0) > 0;
}

/* == the memory of requests: taken, kept for the next one, and given back when it is not needed.
 *
 * Thousands may come at once and be suspended a moment later. So their memory is mapped, a few pages for
 * each, and not malloced: what lies between other things in the heap would stay with the process. What nobody
 * used for a whole second goes back, TRIM_ONCE at a time. */

enum { PAGE_BYTES = 4096, MAP_BYTES = 8192, LINE_BYTES = 64 };
enum { POOL_MIN = 64, TRIM_AFTER_MS = 1000, TRIM_ONCE = 128, TRIM_AGAIN_MS = 10, OUT_BYTES_MAX = 16384 };

_Static_assert(sizeof(struct http_request) + LINE_BYTES <= MAP_BYTES, "a request fits into its pages");

/* -- pages */

/* Not all at the same place in their pages: a processor's cache has few places for each offset in a page. */
static struct http_request *request_map(struct http_server *server)
{
    static const unsigned places = (MAP_BYTES - sizeof(struct http_request)) / LINE_BYTES;
    char *at = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must_have(at != MAP_FAILED ? at : NULL);
    return (struct http_request *)(void *)(at + (size_t)(server->pool.mapped++ % places) * LINE_BYTES);
}

static void request_unmap(struct http_request *req)
{
    char *at = (char *)req;

    munmap(at - ((uintptr_t)at & (PAGE_BYTES - 1)), MAP_BYTES);
}

/* -- the pool */

static struct http_request *pool_pop(struct http_server *server)
{
    struct http_request *req = server->pool.free;

    if (req == NULL) {
        return NULL;
    }
    server->pool.free = req->next;
    server->pool.free_count--;
    if (server->pool.free_low > server->pool.free_count) {
        server->pool.free_low = server->pool.free_count;
    }
    return req;
}

static void pool_push(struct http_request *req)
{
    struct http_server *server = req->server;

    req->next = server->pool.free;
    server->pool.free = req;
    server->pool.free_count++;
    if (server->pool.free_count > POOL_MIN && !server->pool.trims) {
        server->pool.trims = true;
        server->pool.free_low = 0; /* nothing has been unused for a second yet */
        loop_timer_arm(&server->pool.trim, TRIM_AFTER_MS, 0);
    }
}

static void pool_trim(struct loop_timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, pool.trim);
    unsigned given = 0;

    while (given < TRIM_ONCE && given < server->pool.free_low && server->pool.free_count > POOL_MIN) {
        struct http_request *req = server->pool.free;

        server->pool.free = req->next;
        server->pool.free_count--;
        request_unmap(req);
        given++;
    }
    server->pool.free_low = given == TRIM_ONCE ? server->pool.free_low - given : server->pool.free_count;
    server->pool.trims = server->pool.free_count > POOL_MIN;
    if (server->pool.trims) {
        loop_timer_arm(timer, given == TRIM_ONCE ? TRIM_AGAIN_MS : TRIM_AFTER_MS, 0);
    }
}

void http_request_pool_init(struct http_server *server)
{
    loop_timer_init(server->loop, &server->pool.trim, pool_trim);
}

void http_request_pool_done(struct http_server *server)
{
    struct http_request *req;

    loop_timer_done(&server->pool.trim);
    while ((req = pool_pop(server)) != NULL) {
        request_unmap(req);
    }
    while (server->pool.out_count > 0) {
        json_out_done(&server->pool.outs[--server->pool.out_count]);
    }
}

/* -- requests */

struct http_request *http_request_take(struct http_server *server, struct http_conn *conn)
{
    struct http_request *req = pool_pop(server);

    if (req == NULL) {
        req = request_map(server);
    }
    memset(req, 0, offsetof(struct http_request, reply_values));
    memset(req->scratch, 0, sizeof(req->scratch));
    req->server = server;
    req->conn = conn;
    req->head.text = req->inline_bytes;
    if (conn != NULL) {
        req->mhd = conn->mhd;
        conn->req = req;
    }
    return req;
}

struct http_request *http_request_new(struct http_conn *conn)
{
    struct http_request *req = http_request_take(conn->server, conn);

    req->id = conn->server->id_next++;
    return req;
}

void http_request_free(struct http_request *req)
{
    struct http_server *server = req->server;

    http_body_reader_leave(req);
    if (req->head.text != req->inline_bytes) {
        free(req->head.text);
    }
    free(req->reply.copies);
    json_out_done(&req->rest.unshown);
    if (req->body.size > 0) { /* else it lies behind the head */
        free(req->body.at);
    }
    server->body_memory -= req->body.reserved;
    json_out_reset(&req->reply.out);
    if (req->reply.out.at != NULL && req->reply.out.size <= OUT_BYTES_MAX &&
        server->pool.out_count < POOL_OUTS) {
        server->pool.outs[server->pool.out_count++] = req->reply.out;
    } else {
        json_out_done(&req->reply.out);
    }
    pool_push(req);
}

void http_request_bury(struct http_request *req)
{
    req->conn = NULL;
    req->mhd = NULL;
    req->next = req->server->pool.dead;
    req->server->pool.dead = req;
}
