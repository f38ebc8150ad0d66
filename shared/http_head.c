/* http_head.c - the head of a request: is it exactly one, and what does it say?
 *
 * libmicrohttpd 0.9.75 reads heads laxly (connection.c, parse_initial_message_line and process_header_line):
 * it takes a bare LF for a line end, ends a value at a NUL, glues folded lines together elsewhere, allows any
 * byte in names and before the colon. But it works in place: it only overwrites separators and line ends with
 * NUL and hands out pointers into the one block that came from the socket. So each field must begin exactly
 * two bytes behind the end of the one before it, and the last must end four bytes before the block does; then
 * nothing in the block went unseen. (A NUL directly before a bare LF looks like CR LF and is taken for it: it
 * hides nothing.) 1.0 may trim white space behind values; then this must follow. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/ascii.h"
#include "shared/http_internal.h"

enum { VERSION_CHARS = 8, LENGTH_DIGITS_MAX = 18 };

struct head_scan {
    struct http_request *req;
    const char *lines, *next; /* where the field lines begin; where the next must */
    const char *wrong;
    bool too_many;
};

/* -- keeping */

/* Room for len bytes at req->head, keeping the first kept. */
static void head_grow(struct http_request *req, size_t len, size_t kept)
{
    char *head = req->inline_bytes;

    if (len > sizeof(req->inline_bytes)) {
        head = http_must_alloc(len);
    }
    if (head != req->head) {
        memcpy(head, req->head, kept);
        if (req->head != req->inline_bytes) {
            free(req->head);
        }
        req->head = head;
    }
}

/* libmicrohttpd would now make a record of each member of the query, and when its memory does not suffice for
 * them the connection hangs (0.9.75, connection.c, parse_initial_message_line goes on after an error; tried).
 * The memory is not const, it is about to be cut up in place: so let it find an empty query. */
static void hide_query(const char *target, size_t len)
{
    char *query = memchr((char *)(uintptr_t)target, '?', len);

    if (query != NULL) {
        query[1] = '\0';
    }
}

void http_head_keep(struct http_request *req, struct bytes target)
{
    head_grow(req, target.len + 1, 0);
    memcpy(req->head, target.at, target.len);
    req->head[target.len] = '\0';
    req->head_len = target.len + 1;
    req->path = (struct bytes){req->head, target.len};
}

void http_head_target(struct http_request *req, const char *target)
{
    size_t len = strnlen(target, HEAD_MAX);

    req->line_target = target;
    http_head_keep(req, (struct bytes){target, len});
    hide_query(target, len);
}

/* -- bytes */

static bool is_token_char(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_token_char(text.at[i])) {
            return false;
        }
    }
    return text.len > 0;
}

static bool is_value(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* ASCII without '#', with whole percent escapes. */
static bool is_visible(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f || text.at[i] == '#') {
            return false;
        }
        if (text.at[i] == '%' && (i + 2 >= text.len || ascii_hex_value(text.at[i + 1]) < 0 ||
                                  ascii_hex_value(text.at[i + 2]) < 0)) {
            return false;
        }
    }
    return true;
}

static bool is_target(struct bytes text)
{
    return text.len > 0 && text.at[0] == '/' && is_visible(text);
}

static bool is_host(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f || strchr("/?#@\\\"<>^`{|}", text.at[i]) != NULL) {
            return false;
        }
    }
    return true;
}

static bool is_gap(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t')) {
        from++;
    }
    return from == to;
}

/* -- fields */

static enum MHD_Result field_seen(void *cls, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                  const char *value, size_t value_len)
{
    struct head_scan *scan = cls;
    struct http_request *req = scan->req;
    struct http_field *field = &req->fields[req->field_count];
    static const char coding[] = "Transfer-Encoding";
    size_t base = req->head_len;

    (void)kind;
    if (req->field_count == FIELDS_MAX) {
        scan->too_many = true;
        return MHD_NO;
    }
    if (key != scan->next || value <= key + key_len || !is_gap(key + key_len + 1, value)) {
        scan->wrong = "A header line is folded, or has a NUL byte or a bare line feed in it.";
    } else if (!is_token((struct bytes){key, key_len})) {
        scan->wrong = "The name of a header must be a token, directly followed by the colon.";
    } else if (!is_value((struct bytes){value, value_len})) {
        scan->wrong = "The value of a header has a control character in it.";
    }
    if (scan->wrong != NULL) {
        return MHD_NO;
    }
    scan->next = value + value_len + 2;
    while (value_len > 0 && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t')) {
        value_len--;
    }
    if (value + value_len + 2 != scan->next && key_len == sizeof(coding) - 1 &&
        strncasecmp(key, coding, key_len) == 0) {
        scan->wrong = "White space behind a Transfer-Encoding: not everybody sees the same coding then.";
        return MHD_NO;
    }
    field->name = (struct http_span){(uint16_t)(base + (size_t)(key - scan->lines)), (uint16_t)key_len};
    field->value = (struct http_span){(uint16_t)(base + (size_t)(value - scan->lines)), (uint16_t)value_len};
    req->field_count++;
    return MHD_YES;
}

struct bytes http_field_value(const struct http_request *req, const struct http_field *field)
{
    return (struct bytes){req->head + field->value.at, field->value.len};
}

const struct http_field *http_field_find(const struct http_request *req, const char *name, unsigned *count)
{
    const struct http_field *found = NULL;
    size_t len = strlen(name);

    *count = 0;
    for (unsigned i = 0; i < req->field_count; i++) {
        const struct http_field *field = &req->fields[i];

        if (field->name.len == len && strncasecmp(req->head + field->name.at, name, len) == 0) {
            found = *count == 0 ? field : found;
            (*count)++;
        }
    }
    return found;
}

/* -- the parts of the check, in the order of the head */

static const struct {
    const char *text;
    enum http_method method;
} methods[] = {{"GET", HTTP_GET},   {"POST", HTTP_POST},     {"PUT", HTTP_PUT},
               {"HEAD", HTTP_HEAD}, {"DELETE", HTTP_DELETE}, {"PATCH", HTTP_PATCH}};

static enum http_method method_of(const char *text)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(text, methods[i].text) == 0) {
            return methods[i].method;
        }
    }
    return HTTP_OTHER;
}

struct bytes http_method_text(const struct http_request *req)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (methods[i].method == req->method) {
            return bytes_of(methods[i].text);
        }
    }
    return (struct bytes){req->method_text, req->method_len};
}

/* RFC 9112, 3.2.2: a target with scheme and authority is the path behind them; host_check() compares. */
static void absolute_form_split(struct http_request *req)
{
    static const struct bytes scheme = {"http://", 7};
    struct bytes target = req->path;
    size_t at = scheme.len;

    if (target.len <= scheme.len || strncasecmp(target.at, scheme.at, scheme.len) != 0) {
        return;
    }
    while (at < target.len && target.at[at] != '/' && target.at[at] != '?') {
        at++;
    }
    req->authority = (struct bytes){target.at + scheme.len, at - scheme.len};
    req->path = (struct bytes){target.at + at, target.len - at};
    if (at == target.len || target.at[at] == '?') { /* an empty path is "/", and one stands in front */
        req->path.at = target.at + scheme.len - 1;
        req->path.len = 1;
        req->query = (struct bytes){target.at + at + 1, at < target.len ? target.len - at - 1 : 0};
        req->query.at = at < target.len ? req->query.at : NULL;
    }
}

static const char *line_check(struct http_request *req, const char *method, const char *version)
{
    size_t method_len = strnlen(method, METHOD_MAX + 1), target_len = req->path.len;
    const char *query;

    if (method_len > METHOD_MAX || !is_token((struct bytes){method, method_len})) {
        return "The method must be a token of at most 32 characters.";
    }
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        return "This service speaks HTTP/1.1 and HTTP/1.0.";
    }
    if (method + method_len + 1 != req->line_target || req->line_target + target_len + 1 != version) {
        return "The parts of the request line must be separated by one space each.";
    }
    if (strcmp(method, "CONNECT") == 0) {
        return "This is not a proxy: CONNECT is not taken.";
    }
    absolute_form_split(req);
    if (!is_target(req->path) || !is_visible(req->query)) {
        return "The target must be a path that begins with '/', or http://, the Host and a path, in visible "
               "ASCII, "
               "without '#', with whole percent escapes.";
    }
    req->method = method_of(method);
    if (req->method == HTTP_OTHER) {
        memcpy(req->method_text, method, method_len);
        req->method_len = (unsigned)method_len;
    }
    req->is_1_0 = strcmp(version, "HTTP/1.0") == 0;
    req->asks_options = strcmp(method, "OPTIONS") == 0;
    query = memchr(req->path.at, '?', req->path.len);
    if (query != NULL) {
        req->query = (struct bytes){query + 1, req->path.len - (size_t)(query + 1 - req->path.at)};
        req->path.len = (size_t)(query - req->path.at);
    }
    return NULL;
}

/* What is left of libmicrohttpd's memory must hold the head of the answer. */
static bool head_fits(const struct http_request *req, size_t head_len)
{
    size_t pool = req->server->pool_bytes;
    size_t block = head_len + 128 > pool / 2 ? head_len + 128 : pool / 2;
    size_t reply = POOL_REPLY_BYTES + req->server->reply_pool_bytes - REPLY_VALUES_BYTES;
    size_t records = req->field_count;
    unsigned cookies = 0;
    const struct http_field *cookie = http_field_find(req, "Cookie", &cookies);

    if (cookie != NULL) { /* of which libmicrohttpd makes a copy, and a record for each */
        records += (size_t)MHD_get_connection_values_n(req->mhd, MHD_COOKIE_KIND, NULL, NULL);
        block += cookie->value.len + 16u;
    }
    return block + records * POOL_RECORD_BYTES + reply <= pool;
}

static const char *length_check(struct http_request *req, const char *version)
{
    unsigned lengths = 0, codings = 0;
    const struct http_field *length = http_field_find(req, "Content-Length", &lengths);
    const struct http_field *coding = http_field_find(req, "Transfer-Encoding", &codings);
    struct bytes text = length != NULL ? http_field_value(req, length) : (struct bytes){NULL, 0};

    if (lengths > 1 || codings > 1 || (lengths > 0 && codings > 0)) {
        return "A request has one Content-Length or one Transfer-Encoding, not more.";
    }
    if (codings > 0) {
        struct bytes value = http_field_value(req, coding);

        req->length = LENGTH_CHUNKED;
        return value.len == 7 && strncasecmp(value.at, "chunked", 7) == 0 && strcmp(version, "HTTP/1.1") == 0
                   ? NULL
                   : "The only Transfer-Encoding that is understood is chunked, in HTTP/1.1.";
    }
    if (lengths > 0 && (text.len == 0 || text.len > LENGTH_DIGITS_MAX)) {
        return "The Content-Length must be a decimal number of at most 18 digits.";
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.at[i])) {
            return "The Content-Length must be a decimal number.";
        }
        req->announced = req->announced * 10 + (uint64_t)(text.at[i] - '0');
    }
    req->length = req->announced > 0 ? LENGTH_ANNOUNCED : LENGTH_NONE;
    return NULL;
}

static const char *host_check(struct http_request *req, const char *version)
{
    unsigned hosts = 0;
    const struct http_field *host = http_field_find(req, "Host", &hosts);

    if (hosts > 1 || (hosts == 0 && strcmp(version, "HTTP/1.1") == 0)) {
        return "A request has exactly one Host header.";
    }
    if (host != NULL && !is_host(http_field_value(req, host))) {
        return "The Host header is not a host.";
    }
    if (req->authority.at == NULL) {
        return NULL;
    }
    struct bytes named = host != NULL ? http_field_value(req, host) : (struct bytes){NULL, 0};
    return named.len > 0 && named.len == req->authority.len &&
                   strncasecmp(named.at, req->authority.at, named.len) == 0
               ? NULL
               : "The target names another host than the Host header.";
}

/* What is too long, in words that say what to shorten; NULL: those of the problem. The target was kept up to
 * HEAD_MAX only. */
static const char *too_long(const struct http_request *req)
{
    return req->path.len < HEAD_MAX
               ? NULL
               : "Request line and headers together may have 4 KiB, and the request line "
                 "alone is longer. Send a shorter path or query.";
}

static const char too_many_detail[] = "The request has too many headers and cookies, not too many bytes. "
                                      "Send fewer of them.";

enum problem http_head_read(struct http_request *req, const char *method, const char *version,
                            const char **detail)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(req->mhd,
                                                                   MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct head_scan scan = {.req = req};

    assert(info != NULL && req->line_target != NULL);
    *detail = line_check(req, method, version);
    if (*detail != NULL && info->header_size > HEAD_MAX) {
        *detail = too_long(req);
        return PROBLEM_HEADER_TOO_LARGE;
    }
    if (*detail != NULL) {
        return PROBLEM_INVALID_REQUEST;
    }
    scan.lines = scan.next = version + VERSION_CHARS + 2;
    MHD_get_connection_values_n(req->mhd, MHD_HEADER_KIND, field_seen, &scan);
    if (!scan.too_many && scan.wrong == NULL && scan.next + 2 != method + info->header_size) {
        scan.wrong = "The head of the request has lines that cannot be told apart.";
    }
    *detail = scan.wrong;
    if (scan.wrong != NULL) {
        return PROBLEM_INVALID_REQUEST;
    }
    if (info->header_size > HEAD_MAX) {
        return PROBLEM_HEADER_TOO_LARGE;
    }
    if (scan.too_many) {
        *detail = too_many_detail;
        return PROBLEM_HEADER_TOO_LARGE;
    }
    size_t lines_len = (size_t)(scan.next - scan.lines), target_len = req->head_len;
    struct bytes *const parts[] = {&req->path, &req->query, &req->authority};
    size_t at[sizeof(parts) / sizeof(parts[0])];
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        at[i] = parts[i]->at != NULL ? (size_t)(parts[i]->at - req->head) : 0;
    }
    head_grow(req, target_len + lines_len, target_len);
    memcpy(req->head + target_len, scan.lines, lines_len);
    req->head_len += lines_len;
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        parts[i]->at = parts[i]->at != NULL ? req->head + at[i] : NULL;
    }
    if (!head_fits(req, info->header_size)) {
        *detail = too_many_detail;
        return PROBLEM_HEADER_TOO_LARGE;
    }
    *detail = length_check(req, version);
    if (*detail == NULL) {
        *detail = host_check(req, version);
    }
    if (*detail != NULL) {
        return PROBLEM_INVALID_REQUEST;
    }
    *detail = http_chunks_detail;
    return http_chunks_begin(req, method, info->header_size);
}
