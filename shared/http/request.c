/* request.c - what handlers read of a request. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"

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
    assert(i < PARTS_MAX && req->parts[i].at != NULL);
    return req->parts[i];
}

struct bytes http_path(const struct http_request *req)
{
    return req->path;
}

struct bytes http_query(const struct http_request *req)
{
    return req->query;
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
    return req->field_count;
}

void http_field_at(const struct http_request *req, unsigned i, struct bytes *name, struct bytes *value)
{
    assert(i < req->field_count);
    *name = (struct bytes){req->head + req->fields[i].name.at, req->fields[i].name.len};
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
    return (struct bytes){req->body, req->body != NULL ? req->body_len : 0};
}

const char *http_request_id(const struct http_request *req)
{
    return req->id;
}

enum problem http_problem(const struct http_request *req)
{
    return req->state >= STATE_ANSWERED ? req->problem : PROBLEM_NONE;
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

    return is_named ? req->parts[0] : req->note_lease;
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

/* The escapes are whole: the head's guard has seen to it. */
static int query_decode(struct bytes value, char *buf, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];

        if (c == '%') {
            c = (char)(ascii_hex_value(value.at[i + 1]) * 16 + ascii_hex_value(value.at[i + 2]));
            i += 2;
        }
        if (len == size) {
            return -2;
        }
        buf[len++] = c;
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
    struct bytes left = req->query;
    int found = -1;

    while (left.len > 0) {
        const char *end = memchr(left.at, '&', left.len);
        struct bytes member = {left.at, end != NULL ? (size_t)(end - left.at) : left.len};
        const char *equals = memchr(member.at, '=', member.len);
        struct bytes key = {member.at, equals != NULL ? (size_t)(equals - member.at) : member.len};
        struct bytes value = {key.at + key.len + 1, equals != NULL ? member.len - key.len - 1 : 0};

        if (!is_known(names_known, key) || (bytes_are(key, name) && found != -1)) {
            return -2;
        }
        if (bytes_are(key, name)) {
            found = query_decode(value, buf, size);
            if (found == -2) {
                return -2;
            }
        }
        if (end != NULL && member.len + 1 == left.len) {
            return -2; /* a '&' with nothing behind it */
        }
        left.at += member.len + (end != NULL);
        left.len -= member.len + (end != NULL);
    }
    return found;
}
