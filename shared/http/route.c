/* route.c - which route a request takes, and what speaks against it before its body is read. */
#include <assert.h>
#include <strings.h>

#include "shared/http/http_internal.h"

enum { METHODS_SHOWN = 7 };

static bool is_capture(struct bytes segment)
{
    return segment.len >= 2 && segment.at[0] == '{' && segment.at[segment.len - 1] == '}';
}

static bool takes_rest(struct bytes segment)
{
    return segment.len >= 4 && memcmp(segment.at + segment.len - 3, "**}", 3) == 0;
}

static bool is_the_rest(const char *pattern)
{
    return bytes_are(bytes_of(pattern), "/**");
}

/* Takes the next segment, with the '/' before it, off the text. */
static struct bytes segment_take(struct bytes *text)
{
    const char *from = text->at + 1;
    size_t left = text->len - 1;
    const char *slash = memchr(from, '/', left);
    struct bytes segment = {from, slash != NULL ? (size_t)(slash - from) : left};

    text->at = from + segment.len;
    text->len = left - segment.len;
    return segment;
}

/* Both begin with '/'. Fills the parts of the request. */
static bool path_matches(struct http_request *req, const char *pattern_text)
{
    struct bytes pattern = bytes_of(pattern_text), path = req->path;
    unsigned part = 0;

    if (is_the_rest(pattern_text)) {
        return true;
    }
    while (pattern.len > 0 && path.len > 0) {
        struct bytes wanted = segment_take(&pattern), rest = {path.at + 1, path.len - 1};
        struct bytes segment = segment_take(&path);

        if (!is_capture(wanted)) {
            if (!bytes_equal(wanted, segment)) {
                return false;
            }
            continue;
        }
        assert(part < PARTS_MAX);
        if (takes_rest(wanted)) {
            req->parts[part] = rest;
            return rest.len > 0;
        }
        if (segment.len == 0) {
            return false;
        }
        req->parts[part++] = segment;
    }
    return pattern.len == 0 && path.len == 0;
}

static unsigned methods_of(const struct http_route *route)
{
    return route->methods & HTTP_GET ? route->methods | HTTP_HEAD : route->methods;
}

void http_reply_allow(struct http_request *req)
{
    static const struct {
        unsigned method;
        const char *text;
    } shown[METHODS_SHOWN] = {{HTTP_GET, "GET, "},      {HTTP_HEAD, "HEAD, "},     {HTTP_POST, "POST, "},
                              {HTTP_PUT, "PUT, "},      {HTTP_DELETE, "DELETE, "}, {HTTP_PATCH, "PATCH, "},
                              {HTTP_ANY + 1, "OPTIONS"}};
    char text[64];
    size_t len = 0;

    for (unsigned i = 0; i < METHODS_SHOWN; i++) {
        if ((req->allow | (HTTP_ANY + 1)) & shown[i].method) {
            memcpy(text + len, shown[i].text, strlen(shown[i].text));
            len += strlen(shown[i].text);
        }
    }
    http_reply_header(req, "Allow", (struct bytes){text, len});
}

/* -- the body */

bool http_has_json_type(const struct http_request *req)
{
    static const struct bytes json = {"application/json", 16};
    unsigned count = 0;
    struct bytes type = http_header(req, "Content-Type", &count);

    if (count != 1 || type.len < json.len || strncasecmp(type.at, json.at, json.len) != 0) {
        return false;
    }
    return type.len == json.len || strchr("; \t", type.at[json.len]) != NULL;
}

static void refuse_later(struct http_request *req, enum problem problem, const char *detail)
{
    req->refusal = problem;
    req->refusal_detail = detail;
}

static void body_rules(struct http_request *req)
{
    const struct http_route *route = req->route;
    bool streamed = route->body == HTTP_BODY_STREAMED;
    unsigned types = 0;
    size_t held = streamed && req->announced > HTTP_BODY_HELD_BYTES ? HTTP_BODY_HELD_BYTES
                                                                    : (size_t)req->announced;

    req->body_max = route->body_max > 0 ? route->body_max
                    : streamed          ? SIZE_MAX
                                        : req->server->options.body_max_default;
    (void)http_header(req, "Content-Type", &types);
    if (route->methods & HTTP_COMMAND && !http_has_json_type(req) &&
        (types > 0 || req->length != LENGTH_NONE)) {
        refuse_later(req, PROBLEM_UNSUPPORTED_MEDIA_TYPE, NULL);
        return;
    }
    if (req->length != LENGTH_ANNOUNCED) {
        return;
    }
    if (route->body == HTTP_BODY_NONE) {
        refuse_later(req, PROBLEM_INVALID_REQUEST, http_no_body_detail);
    } else if (req->announced > req->body_max) {
        refuse_later(req, PROBLEM_TOO_LARGE, NULL);
    } else if (route->body == HTTP_BODY_JSON && !http_has_json_type(req)) {
        refuse_later(req, PROBLEM_UNSUPPORTED_MEDIA_TYPE, NULL);
    } else if (route->body != HTTP_BODY_DROPPED && http_body_reserve(req, held) != PROBLEM_NONE) {
        refuse_later(req, PROBLEM_OVERLOADED, NULL);
    }
}

void http_route_parts(struct http_request *req)
{
    bool matches = path_matches(req, req->route->path);

    assert(matches);
    (void)matches;
}

void http_route_find(struct http_request *req)
{
    const struct http_route *route = req->server->options.routes;

    for (; route->path != NULL && req->route == NULL; route++) {
        if (!path_matches(req, route->path) || (req->allow != 0 && is_the_rest(route->path))) {
            continue; /* an address that is listed is not the rest's with another method */
        }
        if (methods_of(route) & req->method) {
            req->route = route;
        }
        req->allow |= methods_of(route);
    }
    req->foreign = http_browser_why(req);
    if (req->server->draining) {
        refuse_later(req, PROBLEM_DRAINING, NULL);
    } else if (req->foreign != NULL) {
        refuse_later(req, PROBLEM_FOREIGN_ORIGIN, NULL);
    } else if (req->conn->reserved && !(req->route != NULL && req->route->methods & HTTP_KEEPS)) {
        refuse_later(
            req, PROBLEM_OVERLOADED,
            "The last connections are kept for renewals, releases and health. Nothing was done. Send it "
            "again, on another connection.");
    } else if (!http_peer_forwarded(req)) {
        refuse_later(
            req, PROBLEM_OVERLOADED,
            "Too many requests of this address are under way. Nothing was done. Send it again later.");
    } else if (req->allow == 0) {
        refuse_later(req, PROBLEM_NOT_FOUND, NULL);
    } else if (req->route == NULL) {
        refuse_later(req, PROBLEM_METHOD_NOT_ALLOWED, NULL);
        http_reply_allow(req);
    } else if (req->query.at != NULL && !req->route->query) {
        refuse_later(req, PROBLEM_INVALID_REQUEST, "This request takes no query. Send it without '?'.");
    } else {
        body_rules(req);
    }
}
