/* suspend.c - requests that wait for long, and the memory of all requests.
 *
 * Of one that waits for long the memory goes back, and a struct http_kept stays.
 *
 * libmicrohttpd's pointer for a request cannot be changed from outside, so it is the connection, which lives
 * as long as libmicrohttpd knows the request. */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

static void suspended_gone(struct http_deferred *deferred)
{
    struct http_suspended *suspended = container_of(deferred, struct http_kept, deferred)->suspended;

    if (suspended->gone != NULL)
        suspended->gone(suspended);
}

struct http_kept *http_kept_new(const struct http_request *req)
{
    size_t len = req->head.path.len + req->shown.len;
    struct http_kept *kept = must_have(malloc(sizeof(*kept) + len + req->head.method_len));

    *kept = (struct http_kept){.server = req->server,
                               .conn = req->conn,
                               .route = req->route,
                               .identity = req->identity,
                               .deferred = {.run = suspended_gone},
                               .id = req->id,
                               .started_us = req->started_us,
                               .method = req->method,
                               .judged = req->judged,
                               .path_len = (uint16_t)req->head.path.len,
                               .shown_len = (uint16_t)req->shown.len,
                               .method_len = (uint8_t)req->head.method_len};
    memcpy(kept->text, req->head.path.at, req->head.path.len);
    if (req->shown.len > 0)
        memcpy(kept->text + req->head.path.len, req->shown.at, req->shown.len);
    memcpy(kept->text + len, req->method_text, req->head.method_len);
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
    req->was_handled = true;
    req->identity = kept->identity;
    req->head.method_len = kept->method_len;
    req->judged = kept->judged;
    memcpy(req->method_text, kept->text + kept->path_len + kept->shown_len, kept->method_len);
    http_head_keep(req, (struct bytes){kept->text, kept->path_len},
                   (struct bytes){kept->text + kept->path_len, kept->shown_len});
    http_route_parts(req);
    return req;
}

/* Asked by a request like the one that it stands for; its connection knows nothing of that. */
bool http_kept_stands(struct http_kept *kept)
{
    struct http_request *req;
    bool stands;

    if (kept->conn == NULL || http_is_judged(kept->server, kept->judged))
        return true;
    req = http_kept_request(kept, NULL);
    req->conn = kept->conn;
    stands = http_stands(req);
    kept->judged = req->judged;
    http_request_free(req);
    return stands;
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
    if (conn->left.at != NULL)
        http_disconnect_report(kept);
}

void http_suspend(struct http_request *req, struct http_suspended *suspended)
{
    struct http_kept *kept = http_kept_new(req);

    assert(http_body_is_whole(req));
    http_state_set(req, STATE_SUSPENDED);
    kept->suspended = suspended;
    suspended->kept = kept;
    if (req->conn != NULL)
        suspend_connection(req, kept);
    else
        http_disconnect_report(kept); /* it has left while it was polled */
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
        req->server->disconnect.look = req->server->disconnect.look || kept->conn->left.at != NULL;
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

bool http_suspended_stands(const struct http_suspended *suspended)
{
    return http_kept_stands(suspended->kept);
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

    if (req == NULL)
        return NULL;
    server->pool.free = req->next;
    server->pool.free_count--;
    if (server->pool.free_low > server->pool.free_count)
        server->pool.free_low = server->pool.free_count;
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
    if (server->pool.trims)
        loop_timer_arm(timer, given == TRIM_ONCE ? TRIM_AGAIN_MS : TRIM_AFTER_MS, 0);
}

void http_request_pool_init(struct http_server *server)
{
    loop_timer_init(server->loop, &server->pool.trim, pool_trim);
}

void http_request_pool_done(struct http_server *server)
{
    struct http_request *req;

    loop_timer_done(&server->pool.trim);
    while ((req = pool_pop(server)) != NULL)
        request_unmap(req);
    while (server->pool.out_count > 0)
        json_out_done(&server->pool.outs[--server->pool.out_count]);
}

/* -- requests */

struct http_request *http_request_take(struct http_server *server, struct http_conn *conn)
{
    struct http_request *req = pool_pop(server);

    if (req == NULL)
        req = request_map(server);
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
    if (req->head.text != req->inline_bytes)
        free(req->head.text);
    free(req->reply.copies);
    json_out_done(&req->rest.unshown);
    if (req->body.size > 0) /* else it lies behind the head */
        free(req->body.at);
    if (req->body.reserved > 0) /* the other threads look at it, too */
        server->options.memory->used -= req->body.reserved;
    if (req->reply.untaken > 0)
        server->options.memory->untaken -= req->reply.untaken;
    json_out_reset(&req->reply.out);
    if (req->reply.out.at != NULL && req->reply.out.size <= OUT_BYTES_MAX &&
        server->pool.out_count < POOL_OUTS)
        server->pool.outs[server->pool.out_count++] = req->reply.out;
    else
        json_out_done(&req->reply.out);
    pool_push(req);
}

void http_request_bury(struct http_request *req)
{
    req->conn = NULL;
    req->mhd = NULL;
    req->next = req->server->pool.dead;
    req->server->pool.dead = req;
}
