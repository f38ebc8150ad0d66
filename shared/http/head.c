/* head.c - the head of a request: is it exactly one, and what does it say?
 *
 * RFC 9112, 2 to 6, and nothing that its grammar has not: what two readers might understand in two ways is
 * refused. libmicrohttpd sees nothing of it but what http_head_short() makes of it (receive.c). */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"

enum { LENGTH_DIGITS_MAX = 18 };

/* -- its end */

size_t http_head_end(struct http_scan *scan, struct bytes text)
{
    const char *feed;

    while ((feed = memchr(text.at + scan->at, '\n', text.len - scan->at)) != NULL) {
        size_t end = (size_t)(feed + 1 - text.at), len = end - scan->line;
        bool is_crlf = len >= 2 && feed[-1] == '\r';

        scan->at = (uint32_t)end;
        if (!is_crlf || (len == 2 && scan->line > 0)) {
            return end;
        }
        scan->line = (uint32_t)end;
    }
    scan->at = (uint32_t)text.len;
    return 0;
}

/* -- keeping */

/* With a NUL behind it, which is neither a token's nor a value's: who reads ends there. */
static void head_copy(struct http_request *req, struct bytes text)
{
    if (text.len >= sizeof(req->inline_bytes)) {
        req->head = http_must_alloc(text.len + 1);
    }
    memcpy(req->head, text.at, text.len);
    req->head[text.len] = '\0';
    req->head_len = text.len;
}

void http_head_keep(struct http_request *req, struct bytes path)
{
    head_copy(req, path);
    req->path = (struct bytes){req->head, path.len};
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

static bool is_value_char(char c)
{
    return ((unsigned char)c >= ' ' && c != 0x7f) || c == '\t';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
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

/* -- fields */

struct bytes http_field_value(const struct http_request *req, const struct http_field *field)
{
    return (struct bytes){req->head + field->value.at, field->value.len};
}

static bool field_is(const struct http_request *req, const struct http_field *field, struct bytes name)
{
    return field->name.len == name.len && strncasecmp(req->head + field->name.at, name.at, name.len) == 0;
}

const struct http_field *http_field_find(const struct http_request *req, const char *name, unsigned *count)
{
    const struct http_field *found = NULL;
    struct bytes wanted = bytes_of(name);

    *count = 0;
    for (unsigned i = 0; i < req->field_count; i++) {
        if (field_is(req, &req->fields[i], wanted)) {
            found = *count == 0 ? &req->fields[i] : found;
            (*count)++;
        }
    }
    return found;
}

/* Whether one of its lists has it. */
static bool connection_has(const struct http_request *req, struct bytes option)
{
    for (unsigned i = 0; i < req->field_count; i++) {
        struct bytes list = http_field_value(req, &req->fields[i]);

        for (size_t at = 0, len; field_is(req, &req->fields[i], BYTES("Connection")) && at < list.len;
             at += len + 1) {
            for (len = 0; at + len < list.len && list.at[at + len] != ',' && !is_space(list.at[at + len]);) {
                len++;
            }
            if (len == option.len && strncasecmp(list.at + at, option.at, len) == 0) {
                return true;
            }
        }
    }
    return false;
}

static const char *field_read(struct http_request *req, const char **line)
{
    struct http_field *field = &req->fields[req->field_count++];
    const char *name = *line, *at = name, *value;

    while (is_token_char(*at)) {
        at++;
    }
    if (is_space(*name)) {
        return "A header line is folded.";
    }
    if (at == name || *at != ':') {
        return "The name of a header must be a token, directly followed by the colon.";
    }
    field->name = (struct http_span){(uint16_t)(name - req->head), (uint16_t)(at - name)};
    for (at++; is_space(*at);) {
        at++;
    }
    for (value = at; is_value_char(*at);) {
        at++;
    }
    if (at[0] != '\r' || at[1] != '\n') {
        return "A header line has a control character in it, or ends without CR LF.";
    }
    *line = at + 2;
    while (at > value && is_space(at[-1])) {
        at--;
    }
    field->value = (struct http_span){(uint16_t)(value - req->head), (uint16_t)(at - value)};
    return NULL;
}

/* -- the parts of the check, in the order of the head */

static const struct {
    const char *text;
    enum http_method method;
} methods[] = {{"GET", HTTP_GET},   {"POST", HTTP_POST},     {"PUT", HTTP_PUT},
               {"HEAD", HTTP_HEAD}, {"DELETE", HTTP_DELETE}, {"PATCH", HTTP_PATCH}};

static enum http_method method_of(struct bytes text)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (bytes_are(text, methods[i].text)) {
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

/* The next word of a line; what is behind its space stays. */
static struct bytes word_cut(struct bytes *line)
{
    const char *space = memchr(line->at, ' ', line->len);
    struct bytes word = {line->at, space != NULL ? (size_t)(space - line->at) : line->len};
    size_t skip = word.len + (space != NULL);

    *line = (struct bytes){line->at + skip, line->len - skip};
    return word;
}

static const char *line_read(struct http_request *req, struct bytes line)
{
    struct bytes method = word_cut(&line), target = word_cut(&line);
    const char *query;

    req->path = target; /* for the log, if it is wrong */
    if (method.len > METHOD_MAX || !is_token(method)) {
        return "The method must be a token of at most 32 characters.";
    }
    req->method = method_of(method);
    req->is_1_0 = bytes_are(line, "HTTP/1.0\r");
    if (!req->is_1_0 && !bytes_are(line, "HTTP/1.1\r")) {
        return "The request line is a method, a target and HTTP/1.1 or HTTP/1.0, with one space between "
               "them, and CR LF.";
    }
    if (bytes_are(method, "CONNECT")) {
        return "This is not a proxy: CONNECT is not taken.";
    }
    absolute_form_split(req);
    if (!is_target(req->path) || !is_visible(req->query)) {
        return "The target must be a path that begins with '/', or http://, the Host and a path, in visible "
               "ASCII, "
               "without '#', with whole percent escapes.";
    }
    if (req->method == HTTP_OTHER) {
        memcpy(req->method_text, method.at, method.len);
        req->method_len = (unsigned)method.len;
    }
    req->asks_options = bytes_are(method, "OPTIONS");
    query = memchr(req->path.at, '?', req->path.len);
    if (query != NULL) {
        req->query = (struct bytes){query + 1, req->path.len - (size_t)(query + 1 - req->path.at)};
        req->path.len = (size_t)(query - req->path.at);
    }
    return NULL;
}

static const char *length_check(struct http_request *req)
{
    unsigned lengths = 0, codings = 0;
    const struct http_field *length = http_field_find(req, "Content-Length", &lengths);
    const struct http_field *coding = http_field_find(req, "Transfer-Encoding", &codings);
    struct bytes text = {NULL, 0};

    if (lengths > 1 || codings > 1 || (lengths > 0 && codings > 0)) {
        return "A request has one Content-Length or one Transfer-Encoding, not more.";
    }
    if (lengths + codings > 0) {
        text = http_field_value(req, length != NULL ? length : coding);
    }
    if (text.at != NULL && is_space(text.at[text.len])) {
        return "White space behind a length or a coding: not everybody sees the same one then.";
    }
    if (codings > 0) {
        req->length = LENGTH_CHUNKED;
        return text.len == 7 && strncasecmp(text.at, "chunked", 7) == 0 && !req->is_1_0
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
    req->chunks.left = req->announced;
    req->length = req->announced > 0 ? LENGTH_ANNOUNCED : LENGTH_NONE;
    return NULL;
}

static const char *host_check(struct http_request *req)
{
    unsigned hosts = 0;
    const struct http_field *host = http_field_find(req, "Host", &hosts);

    if (hosts > 1 || (hosts == 0 && !req->is_1_0)) {
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

static enum problem fields_read(struct http_request *req, const char *line, const char **detail)
{
    while (line[0] != '\r' || line[1] != '\n') {
        if (req->field_count == FIELDS_MAX) {
            *detail =
                "A request may have 128 header fields, and this one has more, though not too many bytes. "
                "Send fewer.";
            return PROBLEM_HEADER_TOO_LARGE;
        }
        *detail = field_read(req, &line);
        if (*detail != NULL) {
            return PROBLEM_INVALID_REQUEST;
        }
    }
    return PROBLEM_NONE;
}

enum problem http_head_read(struct http_request *req, struct bytes text, const char **detail)
{
    size_t blank = text.len >= 2 && memcmp(text.at, "\r\n", 2) == 0 ? 2 : 0;
    enum problem problem;
    struct bytes line;

    head_copy(req, (struct bytes){text.at + blank, text.len - blank});
    line = (struct bytes){req->head, req->head_len};
    if (memchr(line.at, '\n', line.len) != NULL) {
        line.len = (size_t)((const char *)memchr(line.at, '\n', line.len) - line.at);
    }
    *detail = line_read(req, line);
    if (req->head_len > req->server->options.head_max) {
        *detail = req->server->head_max_detail;
        return PROBLEM_HEADER_TOO_LARGE;
    }
    if (*detail != NULL) {
        return PROBLEM_INVALID_REQUEST;
    }
    problem = fields_read(req, line.at + line.len + 1, detail);
    if (problem == PROBLEM_NONE) {
        *detail = length_check(req);
        *detail = *detail == NULL ? host_check(req) : *detail;
        problem = *detail == NULL ? PROBLEM_NONE : PROBLEM_INVALID_REQUEST;
    }
    return problem;
}

/* -- what libmicrohttpd gets of it */

static size_t put(char *text, size_t len, struct bytes part)
{
    memcpy(text + len, part.at, part.len);
    return len + part.len;
}

bool http_waits_for_continue(const struct http_request *req)
{
    struct bytes expects = http_header(req, "Expect", NULL);

    return expects.len == 12 && strncasecmp(expects.at, "100-continue", expects.len) == 0;
}

size_t http_head_short(const struct http_request *req, char text[HEAD_SHORT_MAX])
{
    size_t len = put(text, 0, http_method_text(req));

    len = put(text, len, req->is_1_0 ? BYTES(" / HTTP/1.0\r\n") : BYTES(" / HTTP/1.1\r\n"));
    if (req->length == LENGTH_CHUNKED) {
        len = put(text, len, BYTES("Transfer-Encoding:chunked\r\n"));
    } else if (req->length == LENGTH_ANNOUNCED) {
        len = put(text, len, BYTES("Content-Length:"));
        len = put(text, len, http_header(req, "Content-Length", NULL));
        len = put(text, len, BYTES("\r\n"));
    }
    if (req->length != LENGTH_NONE && http_waits_for_continue(req)) {
        len = put(text, len, BYTES("Expect:100-continue\r\n"));
    }
    if (connection_has(req, BYTES("close"))) {
        len = put(text, len, BYTES("Connection:close\r\n"));
    } else if (req->is_1_0 && connection_has(req, BYTES("keep-alive"))) {
        len = put(text, len, BYTES("Connection:keep-alive\r\n"));
    }
    return put(text, len, BYTES("\r\n"));
}
