/* head.c - the head of a request as it goes to the upstream, and of the answer as it comes back.
 *
 * What was checked is what is done: gateway/fields.def has the names that do not pass, and a URI in a header
 * must be of the route and the lease that were checked, and goes on as the upstream has it:
 *
 *   Destination: /orders/41/%78              /api/orders/41/x            the upstream has the prefix /api
 *   Destination: http://HOST/orders/41/x     http://UPSTREAM/api/orders/41/x      where HOST is that of Host
 *   If: </orders/41/x> (<urn:a> ["b"])       </api/orders/41/x> (<urn:a> ["b"])
 *   Lock-Token: </orders/41/x>               </api/orders/41/x>          what is no such URI: 400 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/fields.h"
#include "gateway/forward/forward_internal.h"

struct head_text {
    char *at;
    size_t len, size;
    bool overflow;
};

static void put(struct head_text *text, struct bytes bytes)
{
    if (text->overflow || bytes.len > text->size - text->len) {
        text->overflow = true;
        return;
    }
    memcpy(text->at + text->len, bytes.at, bytes.len);
    text->len += bytes.len;
}

static void put_field(struct head_text *text, struct bytes name, struct bytes value)
{
    put(text, name);
    put(text, BYTES(": "));
    put(text, value);
    put(text, BYTES("\r\n"));
}

static bool names_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* Whether a list of names, as in Connection, has this one. */
static bool list_has(struct bytes list, struct bytes name)
{
    while (list.len > 0) {
        const char *comma = memchr(list.at, ',', list.len);
        struct bytes one = {list.at, comma != NULL ? (size_t)(comma - list.at) : list.len};
        size_t skip = one.len + (comma != NULL);

        while (one.len > 0 && (one.at[0] == ' ' || one.at[0] == '\t')) {
            one = (struct bytes){one.at + 1, one.len - 1};
        }
        while (one.len > 0 && (one.at[one.len - 1] == ' ' || one.at[one.len - 1] == '\t')) {
            one.len--;
        }
        if (names_equal(one, name)) {
            return true;
        }
        list = (struct bytes){list.at + skip, list.len - skip};
    }
    return false;
}

/* -- the request */

static bool connection_names(const struct http_request *req, struct bytes name)
{
    struct bytes field, value;

    for (unsigned i = 0; i < http_field_count(req); i++) {
        http_field_at(req, i, &field, &value);
        if (names_equal(field, BYTES("Connection")) && list_has(value, name)) {
            return true;
        }
    }
    return false;
}

static bool request_field_passes(const struct forward *f, struct bytes name, unsigned kinds)
{
    if (!field_is_plain(name) || (kinds & (FIELD_HOP | FIELD_OWN)) != 0) {
        return false;
    }
    if (f->is_write && f->route->aid == ROUTE_AID_IF_MATCH &&
        (names_equal(name, BYTES("If-Match")) || names_equal(name, BYTES("If-None-Match")))) {
        return false; /* said anew: which version was there (look.c) */
    }
    if (f->state == FORWARD_LOOKING && (kinds & (FIELD_VERSION | FIELD_TARGET)) != 0) {
        return false;
    }
    return route_passes_request(f->route, name) && !connection_names(f->fenced.req, name);
}

static bool text_skip(struct bytes *text, struct bytes begin)
{
    if (begin.len == 0 || text->len < begin.len || strncasecmp(text->at, begin.at, begin.len) != 0) {
        return false;
    }
    *text = (struct bytes){text->at + begin.len, text->len - begin.len};
    return true;
}

/* false: it is not of this route and lease, and nothing was put. */
static bool put_uri(const struct forward *f, struct head_text *text, struct bytes uri)
{
    const struct route_upstream *upstream = f->route->upstream;
    bool is_absolute = text_skip(&uri, BYTES("http://")) || text_skip(&uri, BYTES("https://"));
    struct route_match match;
    const char *why;

    if (is_absolute && !text_skip(&uri, http_header(f->fenced.req, "Host", NULL))) {
        return false;
    }
    if (route_find(f->use->table, uri, &match, &why) != ROUTE_FOUND || match.route != f->route ||
        !bytes_equal((struct bytes){match.lease, match.lease_len}, f->fenced.lease)) {
        return false;
    }
    if (is_absolute) {
        put(text, upstream->scheme == ROUTE_HTTPS ? BYTES("https://") : BYTES("http://"));
        put(text, bytes_of(upstream->authority));
    }
    put(text, bytes_of(upstream->prefix));
    put(text, (struct bytes){match.path, match.path_len});
    return true;
}

/* RFC 4918, 10.4: lists in "()", each perhaps behind the "<URI>" of what it is about; the URIs in a list are
 * names of locks. Some servers know quotes in it and some do not: only what both read alike is taken. */
static bool put_tagged(const struct forward *f, struct head_text *text, struct bytes value)
{
    bool in_list = false;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        size_t len = 1;

        if (c == '<') {
            while (i + len < value.len && strchr("<>()\"", value.at[i + len]) == NULL) {
                len++;
            }
            if (i + len == value.len || value.at[i + len] != '>') {
                return false;
            }
            len++;
        } else if (c == '(' || c == ')' ? in_list == (c == '(') : !in_list && c != ' ' && c != '\t') {
            return false;
        }
        in_list = c == '(' || (in_list && c != ')');
        if (c != '<' || in_list) {
            put(text, (struct bytes){value.at + i, len});
        } else {
            put(text, BYTES("<"));
            if (!put_uri(f, text, (struct bytes){value.at + i + 1, len - 2})) {
                return false;
            }
            put(text, BYTES(">"));
        }
        i += len - 1;
    }
    return !in_list;
}

/* The value of a header that has a URI, as the upstream has it; false: it leads elsewhere. */
static bool put_target(const struct forward *f, struct head_text *text, struct bytes name, struct bytes value)
{
    if (names_equal(name, BYTES("Destination"))) {
        return put_uri(f, text, value);
    }
    return put_tagged(f, text, value) && (names_equal(name, BYTES("If")) || value.len > 0);
}

bool forward_head_leads_elsewhere(const struct forward *f)
{
    struct bytes name, value;

    for (unsigned i = 0; i < http_field_count(f->fenced.req); i++) {
        char space[FORWARD_HEAD_MAX];
        struct head_text text = {space, 0, sizeof(space), false};

        http_field_at(f->fenced.req, i, &name, &value);
        if ((names_equal(name, BYTES("Destination")) || names_equal(name, BYTES("If")) ||
             names_equal(name, BYTES("Lock-Token"))) &&
            !put_target(f, &text, name, value)) {
            return true;
        }
    }
    return false;
}

static void put_passed(struct forward *f, struct head_text *text)
{
    struct bytes name, value;

    for (unsigned i = 0; i < http_field_count(f->fenced.req); i++) {
        unsigned kinds;

        http_field_at(f->fenced.req, i, &name, &value);
        kinds = field_kinds(name);
        if (!request_field_passes(f, name, kinds)) {
            continue;
        }
        if ((kinds & FIELD_TARGET) == 0) {
            put_field(text, name, value);
            continue;
        }
        put(text, name);
        put(text, BYTES(": "));
        text->overflow |= !put_target(f, text, name, value);
        put(text, BYTES("\r\n"));
    }
}

/* RFC 7239: an address of IPv6 stands in brackets and quotes; a host is quoted always. */
static void put_forwarded(struct forward *f, struct head_text *text)
{
    char address[HTTP_ADDRESS_SIZE], line[HTTP_ADDRESS_SIZE + 320];
    const char *client = http_client_address(f->fenced.req, address);
    struct bytes host = http_header(f->fenced.req, "Host", NULL);
    bool is_v6 = strchr(client, ':') != NULL;
    int len;

    if (client[0] == '\0') {
        client = "unknown";
    }
    len = snprintf(line, sizeof(line), "for=%s%s%s;host=\"%.*s\";proto=http", is_v6 ? "\"[" : "", client,
                   is_v6 ? "]\"" : "", host.len < 256 ? (int)host.len : 0, host.len > 0 ? host.at : "");
    put_field(text, BYTES("Forwarded"), (struct bytes){line, (size_t)len});
    put_field(text, BYTES("X-Forwarded-For"), bytes_of(client));
    if (host.len > 0) {
        put_field(text, BYTES("X-Forwarded-Host"), host);
    }
    put_field(text, BYTES("X-Forwarded-Proto"), BYTES("http"));
}

static void put_precondition(struct forward *f, struct head_text *text)
{
    if (!f->is_write || f->route->aid != ROUTE_AID_IF_MATCH || f->state == FORWARD_LOOKING) {
        return;
    }
    if (f->etag_len > 0) {
        put_field(text, BYTES("If-Match"), (struct bytes){f->etag, f->etag_len});
    } else {
        put_field(text, BYTES("If-None-Match"), BYTES("*"));
    }
}

bool forward_head_make(struct forward *f, char fields[FORWARD_HEAD_MAX], size_t *fields_len,
                       char target[FORWARD_HEAD_MAX], size_t *target_len)
{
    struct head_text head = {fields, 0, FORWARD_HEAD_MAX, false};
    struct head_text where = {target, 0, FORWARD_HEAD_MAX, false};
    struct bytes query = http_query(f->fenced.req);

    put(&where, bytes_of(f->route->upstream->prefix));
    put(&where, (struct bytes){f->match.path, f->match.path_len});
    if (query.at != NULL) {
        put(&where, BYTES("?"));
        put(&where, query);
    }
    put_field(&head, BYTES("Host"), bytes_of(f->route->upstream->authority));
    put_passed(f, &head);
    put_forwarded(f, &head);
    put_precondition(f, &head);
    if (f->is_fenced && f->state != FORWARD_LOOKING) {
        put_field(&head, BYTES("Fencing-Token"), http_header(f->fenced.req, "Fencing-Token", NULL));
    }
    put_field(&head, BYTES("Pawl-Request-Id"), bytes_of(f->request_id));
    *fields_len = head.len;
    *target_len = where.len;
    return !head.overflow && !where.overflow;
}

/* -- the answer */

struct bytes upstream_field_find(const struct upstream_head *head, const char *name)
{
    for (unsigned i = 0; i < head->field_count; i++) {
        if (names_equal(head->fields[i].name, bytes_of(name))) {
            return head->fields[i].value;
        }
    }
    return (struct bytes){NULL, 0};
}

static bool answer_field_passes(const struct forward *f, const struct upstream_head *head, struct bytes name)
{
    if ((field_kinds(name) & (FIELD_HOP | FIELD_ANSWER)) != 0 || !route_passes_answer(f->route, name)) {
        return false;
    }
    for (unsigned i = 0; i < head->field_count; i++) {
        if (names_equal(head->fields[i].name, BYTES("Connection")) && list_has(head->fields[i].value, name)) {
            return false;
        }
    }
    return true;
}

bool forward_head_tell(struct forward *f, const struct upstream_head *head)
{
    http_reply_foreign(f->fenced.req); /* how it may be cached is the upstream's to say */
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct answer_field *field = &head->fields[i];

        if (answer_field_passes(f, head, field->name) &&
            !http_reply_field(f->fenced.req, field->name, field->value)) {
            return false;
        }
    }
    return true;
}
