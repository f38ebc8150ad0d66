/* receive.c - what libmicrohttpd receives: for each request a short head, and exactly its body.
 *
 * Its recv() is ours (socket.c). A head is gathered here until it is whole, read once, and libmicrohttpd gets
 * one in its place with nothing in it but what it must know (head_short()): of the fields of a long one it
 * would keep a record each in the memory that it clears for every connection behind each request (0.9.75,
 * MHD_pool_reset()), and it is lax about all of it.
 *
 * What comes behind a request waits in conn->unread. libmicrohttpd takes a read that is shorter than it asked
 * for as the last until its socket becomes readable again (daemon.c, recv_param_adapter; it watches
 * edges). So as much is read as fits, and a connection that may have more when its request is over is
 * suspended and resumed, because a resumed one is read from in any case (resume_suspended_connections()). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

static const char chunks_detail[] = "The request is not framed as HTTP/1.1 has it: the sizes of chunks in "
                                    "hexadecimal, and each line ends with CR LF.";

/* -- what libmicrohttpd has not got; it counts as memory of bodies */

enum { HEAD_PIECES_SHORT = 4096 };

/* before: how much room it had when it was counted last. */
static void unread_count(struct http_conn *conn, size_t before)
{
    struct http_memory *memory = conn->server->options.memory;

    memory->used += conn->unread.size - before;
    memory->unread += conn->unread.size - before;
}

static bool unread_add(struct http_conn *conn, struct bytes more)
{
    const struct http_memory *memory = conn->server->options.memory;

    size_t before = conn->unread.size;

    if (memory->used + more.len > memory->max)
        return false;
    json_out_append(&conn->unread, more);
    unread_count(conn, before);
    return true;
}

/* Nobody knows yet whose a head is: long ones that come in pieces leave half of the memory to bodies. */
static bool unread_add_head(struct http_conn *conn, struct bytes more)
{
    const struct http_memory *memory = conn->server->options.memory;
    bool is_short = conn->unread.len + more.len <= HEAD_PIECES_SHORT;

    return (is_short || memory->unread + more.len <= memory->max / 2) && unread_add(conn, more);
}

void http_recv_forget(struct http_conn *conn)
{
    size_t before = conn->unread.size;

    json_out_done(&conn->unread);
    unread_count(conn, before);
}

/* The rest may stay for as long as a request is suspended: it does not keep the room of a whole head. */
static void unread_drop(struct http_conn *conn, size_t len)
{
    struct json_out all = conn->unread;

    conn->scan = (struct http_scan){0, 0};
    json_out_init(&conn->unread);
    json_out_append(&conn->unread, (struct bytes){all.at + len, all.len - len});
    unread_count(conn, all.size);
    json_out_done(&all);
}

/* == the head of a request: is it exactly one, and what does it say?
 *
 * RFC 9112, 2 to 6, and nothing that its grammar has not: what two readers might understand in two ways is
 * refused. libmicrohttpd sees nothing of it but what head_short() makes of it. */

enum { LENGTH_DIGITS_MAX = 18 };

/* -- its end */

/* The length of the head with which the text begins, with an empty line in front of it; 0: it is not whole.
 * One with a bare line feed ends there. scan is {0, 0} at first. */
static size_t head_end(struct http_scan *scan, struct bytes text)
{
    const char *feed;

    while ((feed = memchr(text.at + scan->at, '\n', text.len - scan->at)) != NULL) {
        size_t end = (size_t)(feed + 1 - text.at), len = end - scan->line;
        bool is_crlf = len >= 2 && feed[-1] == '\r';

        scan->at = (uint32_t)end;
        if (!is_crlf || (len == 2 && scan->line > 0))
            return end;
        scan->line = (uint32_t)end;
    }
    scan->at = (uint32_t)text.len;
    return 0;
}

/* -- keeping */

/* With a NUL behind it, which is neither a token's nor a value's: who reads ends there. */
static void head_copy(struct http_request *req, struct bytes text)
{
    if (text.len >= sizeof(req->inline_bytes))
        req->head.text = must_have(malloc(text.len + 1));
    memcpy(req->head.text, text.at, text.len);
    req->head.text[text.len] = '\0';
    req->head.len = text.len;
}

void http_head_keep(struct http_request *req, struct bytes path, struct bytes shown)
{
    head_copy(req, (struct bytes){path.at, path.len + shown.len});
    req->head.path = (struct bytes){req->head.text, path.len};
    req->shown = (struct bytes){req->head.text + path.len, shown.len};
}

/* -- bytes */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* ASCII without '#', with whole percent escapes. */
static bool is_visible(struct bytes text)
{
    char byte;

    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f || text.at[i] == '#')
            return false;
        if (text.at[i] == '%' && ascii_percent_decode((struct bytes){text.at + i, text.len - i}, &byte) == 0)
            return false;
    }
    return true;
}

/* Behind the first words of eight bytes that are printable ASCII. */
static const char *skip_words(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101u;

    for (uint64_t word; (size_t)(end - at) >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (((word | (word - ones * ' ') | (word + ones)) & ones * 0x80) != 0)
            break;
    }
    return at;
}

static bool is_host(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f ||
            (!ascii_is_alnum(text.at[i]) && strchr("/?#@\\\"<>^`{|}", text.at[i]) != NULL))
            return false;
    return true;
}

/* -- fields */

struct bytes http_field_value(const struct http_request *req, const struct http_field *field)
{
    return (struct bytes){req->head.text + field->value.at, field->value.len};
}

static bool field_is(const struct http_request *req, const struct http_field *field, struct bytes name)
{
    return bytes_equal_nocase((struct bytes){req->head.text + field->name.at, field->name.len}, name);
}

const struct http_field *http_field_find(const struct http_request *req, const char *name, unsigned *count)
{
    const struct http_field *found = NULL;
    struct bytes wanted = bytes_of(name);

    *count = 0;
    for (unsigned i = 0; i < req->head.field_count; i++) {
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
    for (unsigned i = 0; i < req->head.field_count; i++)
        if (field_is(req, &req->fields[i], BYTES("Connection")) &&
            bytes_list_has(http_field_value(req, &req->fields[i]), option))
            return true;
    return false;
}

static const char *field_read(struct http_request *req, const char **line)
{
    struct http_field *field = &req->fields[req->head.field_count++];
    const char *name = *line, *at = name, *value;

    while (ascii_is_token_char(*at))
        at++;
    if (is_space(*name))
        return "A header line is folded.";
    if (at == name || *at != ':')
        return "The name of a header must be a token, directly followed by the colon.";
    field->name = (struct http_span){(uint16_t)(name - req->head.text), (uint16_t)(at - name)};
    for (at++; is_space(*at);)
        at++;
    value = at;
    for (at = skip_words(at, req->head.text + req->head.len); ascii_is_field_char(*at);)
        at++;
    if (at[0] != '\r' || at[1] != '\n')
        return "A header line has a control character in it, or ends without CR LF.";
    *line = at + 2;
    while (at > value && is_space(at[-1]))
        at--;
    field->value = (struct http_span){(uint16_t)(value - req->head.text), (uint16_t)(at - value)};
    return NULL;
}

/* -- the parts of the check, in the order of the head */

/* In the order of their bits. */
static const char *const method_names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"};

enum { METHODS = sizeof(method_names) / sizeof(method_names[0]) };

_Static_assert(HTTP_OTHER == 1 << METHODS, "each bit below has its name");

static enum http_method method_of(struct bytes text)
{
    unsigned i = 0;

    while (i < METHODS && !bytes_are(text, method_names[i]))
        i++;
    return (enum http_method)(1u << i);
}

const char *http_method_name(unsigned bit)
{
    return bit < METHODS ? method_names[bit] : NULL;
}

/* Of a request that was refused before its line was read, or for its method, there is none. */
struct bytes http_method_text(const struct http_request *req)
{
    unsigned i = 0;

    while (i < METHODS && req->method != 1u << i)
        i++;
    return i < METHODS ? bytes_of(method_names[i]) : (struct bytes){req->method_text, req->head.method_len};
}

/* RFC 9112, 3.2.2: a target with scheme and authority is the path behind them; host_check() compares. */
static void absolute_form_split(struct http_request *req)
{
    struct bytes scheme = req->conn->tls != NULL ? BYTES("https://") : BYTES("http://");
    struct bytes target = req->head.path;
    size_t at = scheme.len;

    if (target.len <= scheme.len || strncasecmp(target.at, scheme.at, scheme.len) != 0)
        return;
    while (at < target.len && target.at[at] != '/' && target.at[at] != '?')
        at++;
    req->head.authority = (struct bytes){target.at + scheme.len, at - scheme.len};
    req->head.path = (struct bytes){target.at + at, target.len - at};
    if (at == target.len || target.at[at] == '?') { /* an empty path is "/", and one stands in front */
        req->head.path.at = target.at + scheme.len - 1;
        req->head.path.len = 1;
        req->head.query = (struct bytes){target.at + at + 1, at < target.len ? target.len - at - 1 : 0};
        req->head.query.at = at < target.len ? req->head.query.at : NULL;
    }
}

static const char *line_read(struct http_request *req, struct bytes line)
{
    struct bytes method = bytes_cut(&line, ' '), target = bytes_cut(&line, ' ');
    const char *query;

    req->head.path = target; /* for the log, if it is wrong */
    if (method.len > METHOD_MAX || !ascii_is_token(method))
        return "The method must be a token of at most 32 characters.";
    req->method = method_of(method);
    req->head.is_1_0 = bytes_are(line, "HTTP/1.0\r");
    if (!req->head.is_1_0 && !bytes_are(line, "HTTP/1.1\r")) {
        return "The request line is a method, a target and HTTP/1.1 or HTTP/1.0, with one space between "
               "them, and CR LF.";
    }
    if (bytes_are(method, "CONNECT"))
        return "This is not a proxy: CONNECT is not taken.";
    absolute_form_split(req);
    if (req->head.path.len == 0 || req->head.path.at[0] != '/' || !is_visible(req->head.path) ||
        !is_visible(req->head.query)) {
        return "The target must be a path that begins with '/', or http:// (in TLS https://), the "
               "Host and a path, in visible ASCII, without '#', with whole percent escapes.";
    }
    if (req->method == HTTP_OTHER) {
        memcpy(req->method_text, method.at, method.len);
        req->head.method_len = (unsigned)method.len;
    }
    req->head.asks_options = bytes_are(method, "OPTIONS");
    query = memchr(req->head.path.at, '?', req->head.path.len);
    if (query != NULL) {
        req->head.query = (struct bytes){query + 1,
                                         req->head.path.len - (size_t)(query + 1 - req->head.path.at)};
        req->head.path.len = (size_t)(query - req->head.path.at);
    }
    return NULL;
}

static const char *length_check(struct http_request *req)
{
    unsigned lengths = 0, codings = 0;
    const struct http_field *length = http_field_find(req, "Content-Length", &lengths);
    const struct http_field *coding = http_field_find(req, "Transfer-Encoding", &codings);
    struct bytes text = {NULL, 0};
    int64_t announced;

    if (lengths > 1 || codings > 1 || (lengths > 0 && codings > 0))
        return "A request has one Content-Length or one Transfer-Encoding, not more.";
    if (lengths + codings > 0)
        text = http_field_value(req, length != NULL ? length : coding);
    if (text.at != NULL && is_space(text.at[text.len]))
        return "White space behind a length or a coding: not everybody sees the same one then.";
    if (codings > 0) {
        req->head.length = LENGTH_CHUNKED;
        return bytes_equal_nocase(text, BYTES("chunked")) && !req->head.is_1_0
                   ? NULL
                   : "The only Transfer-Encoding that is understood is chunked, in HTTP/1.1.";
    }
    if (lengths > 0 && (text.len == 0 || text.len > LENGTH_DIGITS_MAX))
        return "The Content-Length must be a decimal number of at most 18 digits.";
    announced = lengths > 0 ? bytes_number(text, LENGTH_DIGITS_MAX) : 0;
    if (announced < 0)
        return "The Content-Length must be a decimal number.";
    req->head.announced = (uint64_t)announced;
    req->head.chunks.left = req->head.announced;
    req->head.length = req->head.announced > 0 ? LENGTH_ANNOUNCED : LENGTH_NONE;
    return NULL;
}

static const char *host_check(struct http_request *req)
{
    unsigned hosts = 0;
    const struct http_field *host = http_field_find(req, "Host", &hosts);

    if (hosts > 1 || (hosts == 0 && !req->head.is_1_0))
        return "A request has exactly one Host header.";
    if (host != NULL && !is_host(http_field_value(req, host)))
        return "The Host header is not a host.";
    if (req->head.authority.at == NULL)
        return NULL;
    struct bytes named = host != NULL ? http_field_value(req, host) : (struct bytes){NULL, 0};
    return named.len > 0 && bytes_equal_nocase(named, req->head.authority)
               ? NULL
               : "The target names another host than the Host header.";
}

static enum problem fields_read(struct http_request *req, const char *line, const char **detail)
{
    while (line[0] != '\r' || line[1] != '\n') {
        if (req->head.field_count == FIELDS_MAX) {
            *detail =
                "A request may have 128 header fields, and this one has more, though not too many bytes. "
                "Send fewer.";
            return PROBLEM_HEADER_TOO_LARGE;
        }
        *detail = field_read(req, &line);
        if (*detail != NULL)
            return PROBLEM_INVALID_REQUEST;
    }
    return PROBLEM_NONE;
}

/* Reads and checks a head, of which too long ones need not be whole. PROBLEM_NONE, or what is wrong, with a
 * detail. */
static enum problem head_read(struct http_request *req, struct bytes text, const char **detail)
{
    size_t blank = text.len >= 2 && memcmp(text.at, "\r\n", 2) == 0 ? 2 : 0;
    enum problem problem;
    struct bytes line;

    head_copy(req, (struct bytes){text.at + blank, text.len - blank});
    line = (struct bytes){req->head.text, req->head.len};
    if (memchr(line.at, '\n', line.len) != NULL)
        line.len = (size_t)((const char *)memchr(line.at, '\n', line.len) - line.at);
    *detail = line_read(req, line);
    if (req->head.len > req->server->options.head_max) {
        *detail = req->server->head_max_detail;
        return PROBLEM_HEADER_TOO_LARGE;
    }
    if (*detail != NULL)
        return PROBLEM_INVALID_REQUEST;
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
    return bytes_equal_nocase(http_header(req, "Expect", NULL), BYTES("100-continue"));
}

static size_t head_short(const struct http_request *req, char text[HEAD_SHORT_MAX])
{
    size_t len = put(text, 0, http_method_text(req));

    len = put(text, len, req->head.is_1_0 ? BYTES(" / HTTP/1.0\r\n") : BYTES(" / HTTP/1.1\r\n"));
    if (req->head.length == LENGTH_CHUNKED) {
        len = put(text, len, BYTES("Transfer-Encoding:chunked\r\n"));
    } else if (req->head.length == LENGTH_ANNOUNCED) {
        len = put(text, len, BYTES("Content-Length:"));
        len = put(text, len, http_header(req, "Content-Length", NULL));
        len = put(text, len, BYTES("\r\n"));
    }
    if (req->head.length != LENGTH_NONE && http_waits_for_continue(req))
        len = put(text, len, BYTES("Expect:100-continue\r\n"));
    if (connection_has(req, BYTES("close")))
        len = put(text, len, BYTES("Connection:close\r\n"));
    else if (req->head.is_1_0 && connection_has(req, BYTES("keep-alive")))
        len = put(text, len, BYTES("Connection:keep-alive\r\n"));
    return put(text, len, BYTES("\r\n"));
}

/* == the framing of chunked requests, read byte by byte, before libmicrohttpd does.
 *
 * RFC 9112, 7.1, ends every line of it with CR LF. libmicrohttpd 0.9.75 takes a bare LF, too (connection.c,
 * process_request_body), and a proxy in front that does not would see other requests than we do. */

/* Sizes of 15 digits; extensions and trailers are forgotten, so not much is taken of them: less than
 * libmicrohttpd has room for, which keeps a record of each trailer (0.9.75,
 * MHD_set_connection_value_n_nocheck_) and has an answer of its own when that does not fit. */
enum { CHUNK_DIGITS_MAX = 15, CHUNK_LINES_MAX = POOL_BYTES / 2, TRAILER_RECORD_BYTES = 64 };

static enum http_chunk_place size_next(struct http_chunks *chunks, char c)
{
    int digit = ascii_hex_value(c);

    if (digit >= 0) {
        chunks->left = chunks->left * 16 + (uint64_t)digit;
        return ++chunks->digits <= CHUNK_DIGITS_MAX ? CHUNK_SIZE : CHUNK_WRONG;
    }
    if (chunks->digits == 0)
        return CHUNK_WRONG;
    return c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXTENSION : CHUNK_WRONG;
}

/* The place behind one byte that is none of a chunk's data. */
static enum http_chunk_place chunk_next(struct http_chunks *chunks, char c)
{
    switch (chunks->place) {
    case CHUNK_SIZE: return size_next(chunks, c);
    case CHUNK_EXTENSION:
        return c == '\r' ? CHUNK_SIZE_LF : ascii_is_field_char(c) ? CHUNK_EXTENSION : CHUNK_WRONG;
    case CHUNK_SIZE_LF:
        chunks->digits = 0;
        return c != '\n' ? CHUNK_WRONG : chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    case CHUNK_DATA_CR: return c == '\r' ? CHUNK_DATA_LF : CHUNK_WRONG;
    case CHUNK_DATA_LF: return c == '\n' ? CHUNK_SIZE : CHUNK_WRONG;
    case CHUNK_TRAILER:
        return c == '\r' ? CHUNK_END_LF : ascii_is_token_char(c) ? CHUNK_TRAILER_NAME : CHUNK_WRONG;
    case CHUNK_TRAILER_NAME:
        return c == ':' ? CHUNK_TRAILER_VALUE : ascii_is_token_char(c) ? CHUNK_TRAILER_NAME : CHUNK_WRONG;
    case CHUNK_TRAILER_VALUE:
        return c == '\r' ? CHUNK_TRAILER_LF : ascii_is_field_char(c) ? CHUNK_TRAILER_VALUE : CHUNK_WRONG;
    case CHUNK_TRAILER_LF:
        chunks->lines += TRAILER_RECORD_BYTES;
        return c == '\n' ? CHUNK_TRAILER : CHUNK_WRONG;
    case CHUNK_END_LF: return c == '\n' ? CHUNK_END : CHUNK_WRONG;
    case CHUNK_DATA:
    case CHUNK_END:
    case CHUNK_WRONG: break;
    }
    return chunks->place;
}

static size_t chunks_feed(struct http_chunks *chunks, struct bytes block)
{
    size_t at = 0;

    while (at < block.len && chunks->place != CHUNK_END && chunks->place != CHUNK_WRONG) {
        if (chunks->place == CHUNK_DATA) {
            size_t len = block.len - at < chunks->left ? block.len - at : (size_t)chunks->left;

            at += len;
            chunks->left -= len;
            chunks->place = chunks->left > 0 ? CHUNK_DATA : CHUNK_DATA_CR;
            continue;
        }
        chunks->lines = chunks->place == CHUNK_DATA_LF ? 0 : chunks->lines + 1;
        chunks->place = chunks->lines > CHUNK_LINES_MAX ? CHUNK_WRONG : chunk_next(chunks, block.at[at++]);
    }
    return at;
}

/* -- reading */

/* What its owner has begun ends as if the client had gone, and if something may have been done, the client is
 * gets no answer: it does not know either. */
static ssize_t refuse(struct http_request *req, enum problem problem, const char *detail)
{
    if (req->state <= STATE_BODY) {
        (void)http_raw_refuse(req, problem, detail);
    } else {
        if (req->rest.reader != NULL && req->rest.reader->keeps)
            http_raw_say(req, problem);
        http_linger_begin(req->conn);
    }
    errno = ECONNRESET;
    return -1;
}

static bool body_is_open(const struct http_request *req)
{
    return req->head.length == LENGTH_CHUNKED ? req->head.chunks.place != CHUNK_END
                                              : req->head.chunks.left > 0;
}

/* What is behind the body stays unread. */
static ssize_t body_read(struct http_conn *conn, char *block, size_t size)
{
    struct http_request *req = conn->req;
    bool is_kept = conn->unread.len > 0;
    ssize_t got = (ssize_t)(conn->unread.len < size ? conn->unread.len : size);
    size_t len;

    if (is_kept)
        memcpy(block, conn->unread.at, (size_t)got);
    else
        got = http_socket_read(conn, block, size);
    if (got <= 0)
        return got;
    if (req->head.length == LENGTH_CHUNKED) {
        len = chunks_feed(&req->head.chunks, (struct bytes){block, (size_t)got});
    } else {
        len = (size_t)got < req->head.chunks.left ? (size_t)got : (size_t)req->head.chunks.left;
        req->head.chunks.left -= len;
    }
    if (req->head.chunks.place == CHUNK_WRONG)
        return refuse(req, PROBLEM_INVALID_REQUEST, chunks_detail);
    if (is_kept)
        unread_drop(conn, len);
    else if (len < (size_t)got && !unread_add(conn, (struct bytes){block + len, (size_t)got - len}))
        return refuse(req, PROBLEM_OVERLOADED, NULL);
    return (ssize_t)len;
}

/* Of a block that has so many bytes already: as much more as there is room for, or has come. */
static ssize_t body_receive(struct http_conn *conn, char *block, size_t size, size_t at)
{
    ssize_t got = 0;

    while (at < size && body_is_open(conn->req) && (at == 0 || conn->more || conn->unread.len > 0)) {
        got = body_read(conn, block + at, size - at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    return at > 0 && (got >= 0 || errno == EAGAIN) ? (ssize_t)at : got;
}

/* The head at the begin of text, which is the block, or unread. */
static ssize_t head_take(struct http_conn *conn, struct bytes text, size_t head_len, char *block, size_t size)
{
    struct http_request *req = http_request_new(conn);
    struct bytes rest = {text.at + head_len, text.len - head_len};
    const char *detail = NULL;
    enum problem problem = head_read(req, (struct bytes){text.at, head_len}, &detail);

    conn->scan = (struct http_scan){0, 0};
    if (problem != PROBLEM_NONE)
        return refuse(req, problem, detail);
    if (conn->unread.len > 0)
        unread_drop(conn, head_len);
    else if (rest.len > 0 && !unread_add(conn, rest))
        return refuse(req, PROBLEM_OVERLOADED, NULL);
    assert(size >= HEAD_SHORT_MAX);
    return body_receive(conn, block, size, head_short(req, block));
}

/* Reads until a head is whole, or longer than it may be. */
static ssize_t head_receive(struct http_conn *conn, char *block, size_t size)
{
    const struct json_out *unread = &conn->unread;
    size_t most = conn->server->options.head_max + 2; /* an empty line may stand in front */
    size_t len = unread->len > 0 ? head_end(&conn->scan, (struct bytes){unread->at, unread->len}) : 0;

    while (len == 0) {
        ssize_t got = http_socket_read(conn, block, size);
        struct bytes came = {block, (size_t)got};

        if (got <= 0)
            return got;
        len = unread->len == 0 ? head_end(&conn->scan, came) : 0;
        if (len > 0)
            return head_take(conn, came, len, block, size);
        if (!unread_add_head(conn, came))
            return refuse(http_request_new(conn), PROBLEM_OVERLOADED, NULL);
        len = head_end(&conn->scan, (struct bytes){unread->at, unread->len});
        if (len == 0 && unread->len > most)
            len = unread->len;
        if (len == 0 && !conn->more) {
            errno = EAGAIN;
            return -1;
        }
    }
    return head_take(conn, (struct bytes){unread->at, unread->len}, len, block, size);
}

ssize_t http_receive(struct http_conn *conn, char *block, size_t len)
{
    if (conn->over) { /* libmicrohttpd would close at once where it is no chunk */
        ssize_t got = http_socket_read(conn, block, len);

        if (got <= 0)
            return got;
        (void)http_early_over(conn);
        errno = ECONNRESET;
        return -1;
    }
    if (conn->req == NULL && conn->kept == NULL)
        return head_receive(conn, block, len);
    if (conn->req != NULL && conn->req->state == STATE_ABORTED)
        return 0;
    if (conn->req != NULL && body_is_open(conn->req))
        return body_receive(conn, block, len, 0);
    errno = EAGAIN; /* a resumed connection is read from in any state, and this is the next request's */
    return -1;
}

/* -- around it */

/* Those whose requests are over stand at the end of the list. */
void http_recv_run(struct http_server *server)
{
    http_socket_run(server);
    for (struct http_deadline *last = TAILQ_LAST(&server->clock.lists[PHASE_HEAD], http_deadlines);
         last != NULL && last->since_ms == server->clock.now_ms;
         last = TAILQ_PREV(last, http_deadlines, place)) {
        struct http_conn *conn = container_of(last, struct http_conn, deadline);

        if (conn->req == NULL && conn->more) {
            MHD_suspend_connection(conn->mhd);
            MHD_resume_connection(conn->mhd);
            server->runs.shown++; /* another run at once */
            http_run_soon(server);
        }
    }
}

struct http_request *http_recv_cut(struct http_conn *conn)
{
    const char *detail;

    if (conn->req == NULL && conn->scan.line > 2)
        (void)head_read(http_request_new(conn), (struct bytes){conn->unread.at, conn->unread.len}, &detail);
    return conn->req;
}

void http_recv_watch(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    if (conn->fd >= server->fd_count) {
        int count = conn->fd + 1024;
        size_t size = (size_t)count * sizeof(void *), before = (size_t)server->fd_count * sizeof(void *);
        struct http_conn **more = must_have(malloc(size));

        memset(more, 0, size);
        if (before > 0)
            memcpy(more, server->by_fd, before);
        free(server->by_fd);
        server->by_fd = more;
        server->fd_count = count;
    }
    server->by_fd[conn->fd] = conn;
}
