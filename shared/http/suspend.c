/* suspend.c - requests that wait for long: their memory goes back, and a struct http_kept stays.
 *
 * libmicrohttpd's pointer for a request cannot be changed from outside, so it is the connection, which lives
 * as long as libmicrohttpd knows the request. */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>

#include "shared/http/http_internal.h"

static void parked_told(struct http_deferred *told)
{
    struct http_parked *parked = container_of(told, struct http_kept, told)->parked;

    if (parked->gone != NULL) {
        parked->gone(parked);
    }
}

struct http_kept *http_kept_new(const struct http_request *req)
{
    struct http_kept *kept = http_must_alloc(sizeof(*kept) + req->path.len + req->method_len);

    *kept = (struct http_kept){.server = req->server,
                               .conn = req->conn,
                               .route = req->route,
                               .told = {.tell = parked_told},
                               .started_us = req->started_us,
                               .method = req->method,
                               .path_len = (uint16_t)req->path.len,
                               .method_len = (uint8_t)req->method_len};
    memcpy(kept->id, req->id, sizeof(kept->id));
    memcpy(kept->text, req->path.at, req->path.len);
    memcpy(kept->text + req->path.len, req->method_text, req->method_len);
    return kept;
}

void http_kept_free(struct http_kept *kept)
{
    http_deferred_remove(&kept->told);
    free(kept);
}

struct http_request *http_kept_request(const struct http_kept *kept, struct http_conn *conn)
{
    struct http_request *req = http_request_take(kept->server, conn);

    req->state = STATE_PARKED;
    req->started_us = kept->started_us;
    req->method = kept->method;
    req->route = kept->route;
    req->method_len = kept->method_len;
    memcpy(req->method_text, kept->text + kept->path_len, kept->method_len);
    memcpy(req->id, kept->id, sizeof(req->id));
    http_head_keep(req, (struct bytes){kept->text, kept->path_len});
    http_route_parts(req);
    return req;
}

/* A polled one is suspended here, between two runs of libmicrohttpd. Its documentation calls only the handler
 * a safe place; all that the call does is to take the connection out of the lists of those that are looked at
 * (0.9.75, daemon.c, internal_suspend_connection_; tried). */
static void park_connection(struct http_request *req, struct http_kept *kept)
{
    struct http_conn *conn = req->conn;

    if (!req->suspended) {
        MHD_suspend_connection(req->mhd);
        http_request_unpoll(req);
    }
    conn->req = NULL;
    conn->kept = kept;
    if (conn->hung_at != NULL) {
        http_disconnect_tell(kept);
    }
}

void http_park(struct http_request *req, struct http_parked *parked)
{
    struct http_kept *kept = http_kept_new(req);

    assert(http_body_is_whole(req));
    http_state_set(req, STATE_PARKED);
    kept->parked = parked;
    parked->kept = kept;
    if (req->conn != NULL) {
        park_connection(req, kept);
    } else {
        http_disconnect_tell(kept); /* it has left while it was polled */
    }
    http_request_free(req);
}

struct http_request *http_unpark(struct http_parked *parked)
{
    struct http_kept *kept = parked->kept;
    struct http_request *req;

    assert(kept != NULL && kept->parked == parked);
    req = http_kept_request(kept, kept->conn);
    req->suspended = kept->conn != NULL;
    if (kept->conn != NULL) {
        kept->conn->kept = NULL;
        req->server->disconnect.look = req->server->disconnect.look || kept->conn->hung_at != NULL;
    }
    http_state_set(req, STATE_RUNNING);
    parked->kept = NULL;
    http_kept_free(kept);
    return req;
}

/* What the kernel knows already counts, though nobody was told yet. */
bool http_parked_is_gone(const struct http_parked *parked)
{
    const struct http_kept *kept = parked->kept;
    struct pollfd end = {.fd = kept->conn != NULL ? kept->conn->fd : -1, .events = POLLRDHUP};

    return kept->is_gone || poll(&end, 1, 0) > 0;
}
