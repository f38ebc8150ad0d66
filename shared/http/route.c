/* route.c - which route a request takes, and what speaks against it before its body is read: first what a
 * web page made a browser send, then the route and its body. And what the handler then reads of it. */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"

/* == what a web page makes a browser on this machine send does nothing.
 *
 * A page of any site can have its visitor's browser post to loopback (a form, fetch() with no-cors), and with
 * a name of its own that it points at loopback (DNS rebinding) read the answer, too. The browser says whose
 * page it was in Origin and Sec-Fetch-Site, which no page can set, and by which name it found the service in
 * Host. A program that is no browser sends neither of the first two. */

static const struct bytes schemes[] = {{"http://", 7}, {"https://", 8}};
static const struct bytes default_ports[] = {{":80", 3}, {":443", 4}};

static struct bytes without_end(struct bytes text, struct bytes end)
{
    bool ends = text.len >= end.len && memcmp(text.at + text.len - end.len, end.at, end.len) == 0;

    return (struct bytes){text.at, text.len - (ends ? end.len : 0)};
}

/* -- Host */

/* Without the port; {NULL, 0}: what stands behind the colon is none. */
static struct bytes host_name(struct bytes host)
{
    size_t at = host.len;

    while (at > 0 && ascii_is_digit(host.at[at - 1]))
        at--;
    if (at > 0 && host.at[at - 1] == ':')
        host.len = at - 1;
    return host.len > 0 && (host.at[0] == '[' || memchr(host.at, ':', host.len) == NULL)
               ? host
               : (struct bytes){NULL, 0};
}

/* RFC 6761, 6.3: nobody else can give out a name below localhost. */
static bool is_loopback_name(struct bytes name)
{
    static const struct bytes below = {".localhost", 10};
    char text[HTTP_ADDRESS_SIZE + 4];

    name = without_end(name, BYTES("."));
    if (bytes_are(name, "127.0.0.1") || /* nearly always */
        bytes_equal_nocase(name, BYTES("localhost")) ||
        (name.len > below.len &&
         bytes_equal_nocase((struct bytes){name.at + name.len - below.len, below.len}, below)))
        return true;
    if (name.len > HTTP_ADDRESS_SIZE)
        return false;
    memcpy(text, name.at, name.len);
    memcpy(text + name.len, ":0", 3);
    return http_address_is_loopback(text);
}

bool http_host_is_foreign(const struct http_request *req)
{
    const struct http_options *options = &req->server->options;
    struct bytes host = http_header(req, "Host", NULL), name = host_name(host);

    bool on_loopback = http_is_own(req) ? options->own_on_loopback : options->on_loopback;

    if (host.at == NULL || (!on_loopback && options->allow_hosts == NULL))
        return false; /* HTTP/1.0, which no browser speaks; or its names are not known */
    return name.at == NULL ||
           !(is_loopback_name(name) || bytes_list_has(bytes_of(options->allow_hosts), name));
}

/* -- Origin */

static bool is_own_origin(const struct http_request *req, struct bytes origin)
{
    struct bytes host = http_header(req, "Host", NULL);

    for (unsigned i = 0; i < 2; i++) {
        struct bytes scheme = schemes[i], port = default_ports[i];

        if (origin.len > scheme.len && strncasecmp(origin.at, scheme.at, scheme.len) == 0) {
            struct bytes authority = {origin.at + scheme.len, origin.len - scheme.len};

            return bytes_equal_nocase(without_end(authority, port), without_end(host, port));
        }
    }
    return false; /* "null", too */
}

static const char *browser_why(const struct http_request *req)
{
    bool is_options = req->route == NULL && req->head.asks_options;
    unsigned origins = 0, sites = 0, address = is_options ? req->refusal.allow & HTTP_ANY_SITE : 0;
    unsigned marks = req->route != NULL ? req->route->methods : address;
    struct bytes origin = http_header(req, "Origin", &origins);
    struct bytes site = http_header(req, "Sec-Fetch-Site", &sites);
    bool is_listed = origins == 1 && bytes_list_has(bytes_of(req->server->options.allow_origins), origin);
    bool reads = (req->method == HTTP_GET || req->method == HTTP_HEAD || req->head.asks_options) &&
                 !(marks & HTTP_STREAMS);

    if (marks & HTTP_ANY_SITE)
        return NULL;
    if (http_host_is_foreign(req))
        return "host";
    if (marks & HTTP_COMMAND && req->server->options.shares_origin && !http_is_own(req) &&
        (origins > 0 || (sites > 0 && !bytes_are(site, "none"))))
        return origins > 0 ? "origin" : "site"; /* it may be a page that a route has forwarded */
    if (reads || is_listed)
        return NULL;
    if (origins > 1 || (origins == 1 && !is_own_origin(req, origin)))
        return "origin";
    return sites == 0 || (sites == 1 && (bytes_are(site, "same-origin") || bytes_are(site, "none"))) ? NULL
                                                                                                     : "site";
}

/* -- the lists, as an operator gave them */

const char *http_browser_lists_check(const char *hosts, const char *origins)
{
    for (struct bytes left = bytes_of(hosts); left.len > 0;) {
        struct bytes one = bytes_cut(&left, ','), name = host_name(one);

        if (one.len == 0 || name.len != one.len || memchr(one.at, '/', one.len) != NULL)
            return "--allow-host takes a name or an address as it stands in Host, without a port";
    }
    for (struct bytes left = bytes_of(origins); left.len > 0;) {
        struct bytes one = bytes_cut(&left, ',');
        size_t scheme = strncmp(one.at, "https://", 8) == 0 ? 8 : strncmp(one.at, "http://", 7) == 0 ? 7 : 0;

        if (scheme == 0 || one.len == scheme || memchr(one.at + scheme, '/', one.len - scheme) != NULL)
            return "--allow-origin takes https://NAME, as a browser says it in Origin";
    }
    return NULL;
}

/* == routes */

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
    return pattern[1] == '*'; /* no other begins so */
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
    struct bytes path = req->head.path, pattern;
    unsigned part = 0, alike = 0;

    if (is_the_rest(pattern_text))
        return true;
    while (alike < path.len && path.at[alike] == pattern_text[alike] && pattern_text[alike] != '{')
        alike++;
    if (pattern_text[alike] != '{' && pattern_text[alike] != '\0')
        return false; /* as almost every route */
    pattern = bytes_of(pattern_text);
    while (pattern.len > 0 && path.len > 0) {
        struct bytes wanted = segment_take(&pattern), rest = {path.at + 1, path.len - 1};
        struct bytes segment = segment_take(&path);

        if (!is_capture(wanted)) {
            if (!bytes_equal(wanted, segment))
                return false;
            continue;
        }
        assert(part < PARTS_MAX);
        if (takes_rest(wanted)) {
            req->head.parts[part] = rest;
            return rest.len > 0;
        }
        if (segment.len == 0)
            return false;
        req->head.parts[part++] = segment;
    }
    return pattern.len == 0 && path.len == 0;
}

static unsigned methods_of(const struct http_route *route)
{
    return route->methods & HTTP_GET ? route->methods | HTTP_HEAD : route->methods;
}

static void reply_allow(struct http_request *req)
{
    char text[64];
    int len = 0;

    for (unsigned i = 0; http_method_name(i) != NULL; i++)
        if (req->refusal.allow >> i & 1)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s, ", http_method_name(i));
    len += snprintf(text + len, sizeof(text) - (size_t)len, "OPTIONS");
    http_reply_header(req, "Allow", (struct bytes){text, (size_t)len});
}

/* -- the body */

bool http_has_json_type(const struct http_request *req)
{
    static const struct bytes json = {"application/json", 16};
    unsigned count = 0;
    struct bytes type = http_header(req, "Content-Type", &count);

    if (count != 1 || type.len < json.len || strncasecmp(type.at, json.at, json.len) != 0)
        return false;
    return type.len == json.len || strchr("; \t", type.at[json.len]) != NULL;
}

void http_refusal_detail(struct http_request *req, const char *detail)
{
    req->refusal.detail = detail;
}

void http_refusal_member(struct http_request *req, const char *name, struct bytes value)
{
    assert(req->refusal.member_count < HTTP_REFUSAL_MEMBERS);
    req->refusal.members[req->refusal.member_count].name = name;
    req->refusal.members[req->refusal.member_count++].value = value;
}

static void refuse_later(struct http_request *req, enum problem problem, const char *detail)
{
    req->refusal.problem = problem;
    req->refusal.detail = detail;
}

static void body_rules(struct http_request *req)
{
    const struct http_route *route = req->route;
    bool streamed = route->body == HTTP_BODY_STREAMED;
    unsigned types = 0;
    size_t max = streamed              ? HTTP_BODY_HELD_BYTES
                 : route->body_max > 0 ? route->body_max
                                       : req->server->options.body_max_default;
    size_t held, memory = req->server->options.memory->max;

    if (max > memory && !streamed && route->body != HTTP_BODY_DROPPED)
        max = memory; /* it would never fit, whatever others hold */
    held = req->head.announced < max ? (size_t)req->head.announced : max;
    req->body.max = max;
    (void)http_header(req, "Content-Type", &types);
    if (route->methods & HTTP_COMMAND && !http_has_json_type(req) &&
        (types > 0 || req->head.length != LENGTH_NONE)) {
        refuse_later(req, PROBLEM_UNSUPPORTED_MEDIA_TYPE, NULL);
        return;
    }
    if (req->head.length != LENGTH_ANNOUNCED)
        return;
    if (route->body == HTTP_BODY_NONE)
        refuse_later(req, PROBLEM_INVALID_REQUEST, http_no_body_detail);
    else if (req->head.announced > max && !streamed)
        refuse_later(req, PROBLEM_TOO_LARGE, http_body_max_detail(req));
    else if (route->body == HTTP_BODY_JSON && !http_has_json_type(req))
        refuse_later(req, PROBLEM_UNSUPPORTED_MEDIA_TYPE, NULL);
    else if (route->body != HTTP_BODY_DROPPED && http_body_reserve(req, held) != PROBLEM_NONE)
        refuse_later(req, PROBLEM_OVERLOADED, NULL);
}

void http_route_parts(struct http_request *req)
{
    bool matches = path_matches(req, req->route->path);

    assert(matches);
    (void)matches;
}

void http_identify(struct http_request *req, const char *identity, const char *by, struct bytes shown)
{
    req->identity = identity;
    req->identified_by = by;
    req->shown = shown;
}

/* What speaks against the request before anybody asks whose it is. */
static void refuse_any(struct http_request *req)
{
    bool has_room = http_peer_forwarded(req); /* first: whatever is refused is its client's */
    const char *foreign = browser_why(req);

    if (req->server->draining) {
        refuse_later(req, PROBLEM_DRAINING, NULL);
    } else if (foreign != NULL) {
        http_refusal_member(req, "why", bytes_of(foreign));
        refuse_later(req, PROBLEM_FOREIGN_ORIGIN, NULL);
    } else if (req->conn->reserved && !(req->route != NULL && req->route->methods & HTTP_KEEPS)) {
        refuse_later(
            req, PROBLEM_OVERLOADED,
            "The last connections are kept for renewals, releases and health. Nothing was done. Send it "
            "again, on another connection.");
    } else if (!has_room) {
        refuse_later(
            req, PROBLEM_OVERLOADED,
            "Too many requests of this address are under way. Nothing was done. Send it again later.");
    }
}

void http_judge_again(struct http_request *req)
{
    const struct http_options *options = &req->server->options;

    if (http_is_judged(req->server, req->judged))
        return;
    req->judged = *options->judged_by;
    req->refusal.problem = options->enter(req);
    if (req->refusal.problem == PROBLEM_NONE)
        req->refusal.problem = options->permits(req);
}

bool http_stands(struct http_request *req)
{
    const struct http_options *options = &req->server->options;

    if (http_is_judged(req->server, req->judged))
        return true;
    if (!options->stands(req))
        return false;
    req->judged = *options->judged_by;
    return true;
}

void http_route_find(struct http_request *req)
{
    const struct http_options *options = &req->server->options;
    const struct http_route *route = options->routes;

    for (; route->path != NULL && req->route == NULL; route++) {
        if (!path_matches(req, route->path) || (req->refusal.allow != 0 && is_the_rest(route->path)))
            continue; /* an address that is listed is not the rest's with another method */
        if (methods_of(route) & req->method)
            req->route = route;
        req->refusal.allow |= methods_of(route);
    }
    bool is_options = req->route == NULL && req->refusal.allow != 0 && req->head.asks_options;

    req->judged = options->judged_by != NULL ? *options->judged_by : 0;
    refuse_any(req);
    if (req->refusal.problem == PROBLEM_NONE && options->enter != NULL && !is_options)
        req->refusal.problem = options->enter(req);
    if (req->refusal.problem != PROBLEM_NONE)
        return;
    if (req->refusal.allow == 0) {
        refuse_later(req, PROBLEM_NOT_FOUND, NULL);
    } else if (is_options && req->head.length != LENGTH_NONE) {
        refuse_later(req, PROBLEM_INVALID_REQUEST, http_no_body_detail);
    } else if (req->route == NULL) {
        refuse_later(req, PROBLEM_METHOD_NOT_ALLOWED, NULL);
        reply_allow(req);
    } else if (options->permits != NULL) {
        req->refusal.problem = options->permits(req);
    }
    if (req->refusal.problem != PROBLEM_NONE)
        return;
    if (req->head.query.at != NULL && !req->route->query)
        refuse_later(req, PROBLEM_INVALID_REQUEST, "This request takes no query. Send it without '?'.");
    else
        body_rules(req);
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

    if (count != NULL)
        *count = found;
    return field != NULL ? http_field_value(req, field) : (struct bytes){NULL, 0};
}

bool http_accepts(const struct http_request *req, const char *type)
{
    struct bytes accept = http_header(req, "Accept", NULL);

    while (accept.len > 0) {
        struct bytes one = bytes_cut(&accept, ',');

        if (bytes_equal_nocase(bytes_trim(bytes_cut(&one, ';')), bytes_of(type)))
            return true;
    }
    return false;
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

static struct in6_addr client_of(const struct http_request *req)
{
    const struct http_conn *conn = req->conn;
    const union MHD_ConnectionInfo *info;

    if (conn == NULL)
        return in6addr_any;
    if (conn->client != NULL && !IN6_IS_ADDR_UNSPECIFIED(conn->client))
        return *conn->client;
    info = MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info != NULL ? http_peer_address(info->client_addr) : in6addr_any;
}

const char *http_client_address(const struct http_request *req, char text[HTTP_ADDRESS_SIZE])
{
    struct in6_addr address = client_of(req);

    return http_peer_text(&address, text);
}

uint64_t http_client_hash(const struct http_request *req)
{
    struct in6_addr address = client_of(req);
    uid_t uid;

    if (http_client_uid(req, &uid))
        address = http_unix_peer(req->conn->fd);
    return http_peers_hash(req->server->options.peers, &address);
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

void http_note_lease(struct http_request *req, struct bytes lease)
{
    req->note_lease = lease;
}

void http_note_why(struct http_request *req, const char *why)
{
    req->note_why = why;
}

void http_note_reason(struct http_request *req, struct bytes reason)
{
    req->note_reason = reason;
}

struct http_ending http_ending(const struct http_request *req)
{
    bool is_named = req->note_lease.len == 0 && req->route != NULL && strstr(req->route->path, "/{name}");

    return (struct http_ending){.problem = req->state >= STATE_ANSWERED ? req->reply.problem : PROBLEM_NONE,
                                .was_handled = req->was_handled,
                                .lease = is_named ? req->head.parts[0] : req->note_lease,
                                .reason = req->note_reason,
                                .why = req->note_why != NULL ? req->note_why : ""};
}

const struct http_route *http_route(const struct http_request *req)
{
    return req->route;
}

const char *http_identity(const struct http_request *req)
{
    return req->identity;
}

struct bytes http_shown(const struct http_request *req)
{
    return req->shown;
}

const char *http_identified_by(const struct http_request *req)
{
    return req->identified_by;
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

        if (len == size || taken == 0)
            return -2;
        buf[len++] = c;
        value = (struct bytes){value.at + taken, value.len - taken};
    }
    return (int)len;
}

static bool is_known(const char *const *names, struct bytes name)
{
    for (; *names != NULL; names++)
        if (bytes_are(name, *names))
            return true;
    return false;
}

static int query_member(const struct http_request *req, const char *const *names_known, const char *name,
                        char *buf, size_t size)
{
    struct bytes left = req->head.query;
    int found = -1;

    while (left.len > 0) {
        struct bytes value = bytes_cut(&left, '&'), key = bytes_cut(&value, '=');

        if (!is_known(names_known, key) || (bytes_are(key, name) && found != -1))
            return -2;
        if (bytes_are(key, name)) {
            found = query_decode(value, buf, size);
            if (found == -2)
                return -2;
        }
        if (left.at != NULL && left.len == 0)
            return -2; /* a '&' with nothing behind it */
    }
    return found;
}

int http_query_text(const struct http_request *req, const char *const *names_known, const char *name,
                    char *buf, size_t size)
{
    int len = query_member(req, names_known, name, buf, size - 1);

    buf[len > 0 ? len : 0] = '\0';
    return len > 0 && strlen(buf) != (size_t)len ? -2 : len; /* %00 cuts no value short */
}

bool http_query_flag(const struct http_request *req, const char *const *names_known, const char *name,
                     bool *is_on)
{
    char text[sizeof("true")];
    int len = http_query_text(req, names_known, name, text, sizeof(text));

    *is_on = len >= 0 && strcmp(text, "true") == 0;
    return *is_on || len == -1;
}
