/* request_pool.c - the memory of requests: taken, kept for the next one, and given back when it is not
 * needed.
 *
 * Thousands may come at once and be parked a moment later. So their memory is mapped, a few pages for each,
 * and not malloced: what lies between other things in the heap would stay with the process. What was spare
 * for a whole second goes back, a part at a time. */
#include <sys/mman.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

enum { PAGE_BYTES = 4096, MAP_BYTES = 8192, LINE_BYTES = 64 };
enum { SPARE_MIN = 64, TRIM_AFTER_MS = 1000, TRIM_ONCE = 128, TRIM_AGAIN_MS = 10, OUT_BYTES_MAX = 16384 };

_Static_assert(sizeof(struct http_request) + LINE_BYTES <= MAP_BYTES, "a request fits into its pages");

void *http_must_alloc(size_t size)
{
    return must_have(malloc(size));
}

/* -- pages */

/* Not all at the same place in their pages: a processor's cache has few places for each offset in a page. */
static struct http_request *request_map(struct http_server *server)
{
    static const unsigned places = (MAP_BYTES - sizeof(struct http_request)) / LINE_BYTES;
    char *at = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must_have(at != MAP_FAILED ? at : NULL);
    return (struct http_request *)(void *)(at + (size_t)(server->mapped++ % places) * LINE_BYTES);
}

static void request_unmap(struct http_request *req)
{
    char *at = (char *)req;

    munmap(at - ((uintptr_t)at & (PAGE_BYTES - 1)), MAP_BYTES);
}

/* -- those to spare */

static struct http_request *spare_pop(struct http_server *server)
{
    struct http_request *req = server->free;

    if (req == NULL) {
        return NULL;
    }
    server->free = req->next;
    server->free_count--;
    if (server->free_low > server->free_count) {
        server->free_low = server->free_count;
    }
    return req;
}

static void spare_push(struct http_request *req)
{
    struct http_server *server = req->server;

    req->next = server->free;
    server->free = req;
    server->free_count++;
    if (server->free_count > SPARE_MIN && !server->trims) {
        server->trims = true;
        server->free_low = 0; /* nothing has been spare for a second yet */
        loop_timer_arm(&server->trim, TRIM_AFTER_MS, 0);
    }
}

static void spare_trim(struct loop_timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, trim);
    unsigned given = 0;

    while (given < TRIM_ONCE && given < server->free_low && server->free_count > SPARE_MIN) {
        struct http_request *req = server->free;

        server->free = req->next;
        server->free_count--;
        request_unmap(req);
        given++;
    }
    server->free_low = given == TRIM_ONCE ? server->free_low - given : server->free_count;
    server->trims = server->free_count > SPARE_MIN;
    if (server->trims) {
        loop_timer_arm(timer, given == TRIM_ONCE ? TRIM_AGAIN_MS : TRIM_AFTER_MS, 0);
    }
}

void http_request_pool_init(struct http_server *server)
{
    loop_timer_init(server->loop, &server->trim, spare_trim);
}

void http_request_pool_done(struct http_server *server)
{
    struct http_request *req;

    loop_timer_done(&server->trim);
    while ((req = spare_pop(server)) != NULL) {
        request_unmap(req);
    }
    while (server->spare_count > 0) {
        json_out_done(&server->spare[--server->spare_count]);
    }
}

/* -- requests */

static void id_write(struct http_server *server, char *id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    uint64_t number = server->id_next++;

    memcpy(id, server->id_prefix, ID_PREFIX_CHARS);
    for (unsigned i = ID_CHARS; i-- > ID_PREFIX_CHARS; number >>= 5) {
        id[i] = digits[number & 31];
    }
    id[ID_CHARS] = '\0';
}

struct http_request *http_request_take(struct http_server *server, struct http_conn *conn)
{
    struct http_request *req = spare_pop(server);

    if (req == NULL) {
        req = request_map(server);
    }
    memset(req, 0, offsetof(struct http_request, reply_values));
    memset(req->scratch, 0, sizeof(req->scratch));
    req->server = server;
    req->conn = conn;
    req->head = req->inline_bytes;
    if (conn != NULL) {
        req->mhd = conn->mhd;
        conn->req = req;
    }
    return req;
}

struct http_request *http_request_new(struct http_conn *conn)
{
    struct http_request *req = http_request_take(conn->server, conn);

    id_write(conn->server, req->id);
    return req;
}

void http_request_free(struct http_request *req)
{
    struct http_server *server = req->server;

    http_body_reader_leave(req);
    if (req->head != req->inline_bytes) {
        free(req->head);
    }
    free(req->reply_copies);
    json_out_done(&req->unshown);
    if (req->body_size > 0) { /* else it lies behind the head */
        free(req->body);
    }
    server->body_memory -= req->reserved;
    json_out_reset(&req->out);
    if (req->out.at != NULL && req->out.size <= OUT_BYTES_MAX && server->spare_count < SPARE_OUTS) {
        server->spare[server->spare_count++] = req->out;
    } else {
        json_out_done(&req->out);
    }
    spare_push(req);
}

void http_request_bury(struct http_request *req)
{
    req->conn = NULL;
    req->mhd = NULL;
    req->next = req->server->dead;
    req->server->dead = req;
}
