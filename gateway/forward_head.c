/* forward_head.c - the head of a request as it goes to the upstream, and of the answer as it comes back.
 *
 * What belongs to one connection only (RFC 9110, 7.6.1) is dropped, framing is made anew, what this gateway
 * says in its own name (Fencing-Status, Pawl-Request-Id, X-Forwarded-*) nobody else can say in its place, and
 * a header that would make another method of a request does not pass: what was checked is what is done. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/forward_internal.h"

/* Of one connection, or of the framing. */
static const char *const of_one_hop[] = {"Connection",
                                         "Keep-Alive",
                                         "Proxy-Connection",
                                         "Proxy-Authenticate",
                                         "Proxy-Authorization",
                                         "Proxy-Authentication-Info",
                                         "TE",
                                         "Trailer",
                                         "Transfer-Encoding",
                                         "Upgrade",
                                         "Content-Length",
                                         NULL};
/* Made anew, or nobody's to say but this gateway's; or another method, or another path, in disguise. */
static const char *const of_requests[] = {"Host",
                                          "Expect",
                                          "Fencing-Token",
                                          "Fencing-Status",
                                          "Fencing-Mark",
                                          "Fencing-Token-Verified",
                                          "Pawl-Request-Id",
                                          "Pawl-Applied",
                                          "X-Forwarded-For",
                                          "X-Forwarded-Host",
                                          "X-Forwarded-Proto",
                                          "Forwarded",
                                          "X-HTTP-Method",
                                          "X-HTTP-Method-Override",
                                          "X-Method-Override",
                                          "X-Original-URL",
                                          "X-Rewrite-URL",
                                          NULL};
/* What says something of a body, or which part of it is meant: not for a look at the version. */
static const char *const of_writes[] = {"Content-Type",
                                        "Content-Encoding",
                                        "Content-Language",
                                        "Content-Location",
                                        "Content-MD5",
                                        "Digest",
                                        "Range",
                                        "If-Range",
                                        "If-Modified-Since",
                                        "If-Unmodified-Since",
                                        "Idempotency-Key",
                                        NULL};
static const char *const of_answers[] = {"Fencing-Status", "Fencing-Mark", "Fencing-Token-Verified",
                                         "Pawl-Applied",   "Date",         NULL};

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

/* CGI and what came after it make one variable of '-' and '_': nobody gets past by the other. */
static bool is_same_variable(const char *wanted, struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i] == '_' ? '-' : name.at[i];

        if (strncasecmp(&c, wanted + i, 1) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_named(struct bytes name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strlen(*names) == name.len && is_same_variable(*names, name)) {
            return true;
        }
    }
    return false;
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

static bool request_field_passes(const struct forward *f, struct bytes name)
{
    if (is_named(name, of_one_hop) || is_named(name, of_requests)) {
        return false;
    }
    if (f->is_write && f->route->aid == ROUTE_AID_IF_MATCH &&
        (names_equal(name, BYTES("If-Match")) || names_equal(name, BYTES("If-None-Match")))) {
        return false; /* said anew: which version was there (forward_look.c) */
    }
    if (f->state == FORWARD_LOOKING && is_named(name, of_writes)) {
        return false;
    }
    return route_passes_request(f->route, name) && !connection_names(f->gate.req, name);
}

static void put_passed(struct forward *f, struct head_text *text)
{
    struct bytes name, value;

    for (unsigned i = 0; i < http_field_count(f->gate.req); i++) {
        http_field_at(f->gate.req, i, &name, &value);
        if (request_field_passes(f, name)) {
            put_field(text, name, value);
        }
    }
}

/* Values of all fields of this name, in their order, and then one more. */
static void put_list(const struct forward *f, struct head_text *text, const char *name, struct bytes last)
{
    struct bytes field, value;

    put(text, bytes_of(name));
    put(text, BYTES(": "));
    for (unsigned i = 0; i < http_field_count(f->gate.req); i++) {
        http_field_at(f->gate.req, i, &field, &value);
        if (names_equal(field, bytes_of(name)) && value.len > 0) {
            put(text, value);
            put(text, BYTES(", "));
        }
    }
    put(text, last);
    put(text, BYTES("\r\n"));
}

/* RFC 7239: an address of IPv6 stands in brackets and quotes; a host is quoted always. */
static void put_forwarded(struct forward *f, struct head_text *text)
{
    char address[HTTP_ADDRESS_SIZE], line[HTTP_ADDRESS_SIZE + 320];
    const char *client = http_client_address(f->gate.req, address);
    struct bytes host = http_header(f->gate.req, "Host", NULL);
    bool is_v6 = strchr(client, ':') != NULL;
    int len;

    if (client[0] == '\0') {
        client = "unknown";
    }
    len = snprintf(line, sizeof(line), "for=%s%s%s;host=\"%.*s\";proto=http", is_v6 ? "\"[" : "", client,
                   is_v6 ? "]\"" : "", host.len < 256 ? (int)host.len : 0, host.len > 0 ? host.at : "");
    put_list(f, text, "Forwarded", (struct bytes){line, (size_t)len});
    put_list(f, text, "X-Forwarded-For", bytes_of(client));
    if (host.len > 0) {
        put_field(text, BYTES("X-Forwarded-Host"), host);
    }
    put_field(text, BYTES("X-Forwarded-Proto"), BYTES("http"));
}

static void put_condition(struct forward *f, struct head_text *text)
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
    struct bytes query = http_query(f->gate.req);

    put(&where, bytes_of(f->route->upstream->prefix));
    put(&where, (struct bytes){f->match.path, f->match.path_len});
    if (query.at != NULL) {
        put(&where, BYTES("?"));
        put(&where, query);
    }
    put_field(&head, BYTES("Host"), bytes_of(f->route->upstream->authority));
    put_passed(f, &head);
    put_forwarded(f, &head);
    put_condition(f, &head);
    if (f->is_fenced && f->state != FORWARD_LOOKING) {
        put_field(&head, BYTES("Fencing-Token"), http_header(f->gate.req, "Fencing-Token", NULL));
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
    if (is_named(name, of_one_hop) || is_named(name, of_answers) || !route_passes_answer(f->route, name)) {
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
    http_reply_foreign(f->gate.req); /* how it may be cached is the upstream's to say */
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct answer_field *field = &head->fields[i];

        if (answer_field_passes(f, head, field->name) &&
            !http_reply_field(f->gate.req, field->name, field->value)) {
            return false;
        }
    }
    return true;
}
