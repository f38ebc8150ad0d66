/* reply.c - what handlers answer, and how it gets to libmicrohttpd, or past it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shared/http/http_internal.h"
#include "shared/text/memory.h"

enum { OUT_FIRST_BYTES = 8192, STATUS_CHARS = 3 };

static const char problem_type[] = "application/problem+json";

/* -- headers */

/* A field whose name is NULL is left out. */
static void reply_header_forget(struct http_request *req, const char *name)
{
    for (unsigned i = 0; i < req->reply.field_count; i++) {
        if (req->reply.fields[i].name != NULL && strcasecmp(req->reply.fields[i].name, name) == 0) {
            req->reply.fields[i].name = NULL;
        }
    }
}

void http_reply_header(struct http_request *req, const char *name, struct bytes value)
{
    size_t bytes = strlen(name) + value.len + 4;

    for (size_t i = 0; i < value.len; i++) {
        assert(value.at[i] != '\0' && value.at[i] != '\r' && value.at[i] != '\n');
    }
    if (value.len == 0) {
        return; /* libmicrohttpd has no empty values (response.c, add_response_entry) */
    }
    if (strcasecmp(name, "Content-Type") == 0) {
        reply_header_forget(req, name);
    }
    if (req->reply.values_len + value.len + 1 > REPLY_VALUES_BYTES ||
        req->reply.bytes + bytes > req->server->reply_bytes_max ||
        req->reply.field_count == REPLY_FIELDS_MAX) {
        req->reply.overflow = true;
        return;
    }
    req->reply.fields[req->reply.field_count++] = (struct http_reply_field){name,
                                                                            (uint16_t)req->reply.values_len};
    memcpy(req->reply_values + req->reply.values_len, value.at, value.len);
    req->reply_values[req->reply.values_len + value.len] = '\0';
    req->reply.values_len += value.len + 1;
    req->reply.bytes += bytes;
}

/* Whether libmicrohttpd would take it (response.c, add_response_entry), and it is not one of the server's. */
static bool is_field(struct bytes name, struct bytes value)
{
    static const char *const ours[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (bytes_equal_nocase(name, bytes_of(ours[i]))) {
            return false;
        }
    }
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] <= ' ' || name.at[i] >= 0x7f || name.at[i] == ':') {
            return false;
        }
    }
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '\0' || value.at[i] == '\r' || value.at[i] == '\n') {
            return false;
        }
    }
    return name.len > 0;
}

static uint16_t copies_add(struct http_reply_copies *copies, struct bytes text)
{
    size_t at = copies->len;

    memcpy(copies->text + at, text.at, text.len);
    copies->text[at + text.len] = '\0';
    copies->len += text.len + 1;
    return (uint16_t)at;
}

bool http_reply_is_early(const struct http_request *req)
{
    return !http_body_is_whole(req) || req->reply.bytes > req->server->reply_pool_bytes;
}

void http_reply_foreign(struct http_request *req)
{
    if (req->reply.copies == NULL) {
        req->reply.copies = must_have(malloc(sizeof(*req->reply.copies) + req->server->reply_bytes_max));
        req->reply.copies->count = 0;
        req->reply.copies->len = 0;
    }
}

bool http_reply_field(struct http_request *req, struct bytes name, struct bytes value)
{
    size_t bytes = name.len + value.len + 4, max = req->server->reply_bytes_max;
    struct http_reply_copies *copies;

    http_reply_foreign(req);
    copies = req->reply.copies;
    if (!is_field(name, value) || bytes > max - req->reply.bytes || copies->count == REPLY_COPIES_MAX) {
        return false;
    }
    if (value.len == 0) {
        return true; /* as in http_reply_header() */
    }
    copies->name_at[copies->count] = copies_add(copies, name);
    copies->value_at[copies->count++] = copies_add(copies, value);
    req->reply.bytes += bytes;
    return true;
}

void http_reply_forget(struct http_request *req)
{
    free(req->reply.copies);
    req->reply.copies = NULL;
    req->reply.field_count = 0;
    req->reply.values_len = 0;
    req->reply.bytes = 0;
    req->reply.overflow = false;
}

/* -- bodies */

struct json_out *http_json(struct http_request *req)
{
    struct http_server *server = req->server;

    if (req->reply.out.at == NULL && server->pool.out_count > 0) {
        req->reply.out = server->pool.outs[--server->pool.out_count];
    } else if (req->reply.out.at == NULL) {
        json_out_reserve(&req->reply.out, OUT_FIRST_BYTES);
    }
    return &req->reply.out;
}

void http_reply_json(struct http_request *req)
{
    req->reply.body = json_out_bytes(&req->reply.out);
    http_reply_header(req, "Content-Type", BYTES("application/json"));
}

struct json_out *http_json_begin(struct http_request *req)
{
    struct json_out *json = http_json(req);

    json_out_reset(json);
    json_object(json, NULL);
    return json;
}

enum step http_json_end(struct http_request *req, unsigned status)
{
    json_object_end(&req->reply.out);
    http_reply_json(req);
    return http_answer(req, status);
}

void http_reply_body(struct http_request *req, const char *type, struct bytes body)
{
    if (body.len > 0 && body.at == req->reply.out.at) {
        req->reply.body = body;
    } else {
        json_out_reset(&req->reply.out);
        json_out_reserve(&req->reply.out, body.len);
        json_out_append(&req->reply.out, body);
        req->reply.body = json_out_bytes(&req->reply.out);
    }
    if (type != NULL) {
        http_reply_header(req, "Content-Type", bytes_of(type));
    }
}

/* -- problems */

static struct json_out *problem_open(struct http_request *req, const struct problem_info *info,
                                     const char *detail)
{
    struct json_out *out = http_json_begin(req);
    char type[64] = "/problems/", id[HTTP_ID_SIZE];
    size_t prefix = strlen(type), code = strlen(info->code);

    assert(prefix + code < sizeof(type));
    memcpy(type + prefix, info->code, code);
    json_text(out, "type", (struct bytes){type, prefix + code});
    json_text(out, "title", bytes_of(info->title));
    json_int(out, "status", info->status);
    req->reply.status_at = out->len - STATUS_CHARS;
    json_text(out, "detail", bytes_of(detail != NULL ? detail : info->detail));
    json_text(out, "code", bytes_of(info->code));
    json_bool(out, "retryable", info->retryable);
    json_text(out, "instance", bytes_of(http_request_id(req, id)));
    if (req->refusal.problem == PROBLEM_FOREIGN_ORIGIN) {
        json_text(out, "why", bytes_of(req->refusal.foreign));
    }
    return out;
}

struct json_out *http_problem_begin(struct http_request *req, enum problem problem, const char *detail)
{
    req->reply.problem = problem;
    return problem_open(req, problem_info(problem), detail);
}

struct json_out *http_problem_begin_final(struct http_request *req, enum problem problem, const char *detail)
{
    struct problem_info info = *problem_info(problem);

    info.retryable = false;
    req->reply.problem = problem;
    return problem_open(req, &info, detail);
}

enum step http_problem_end(struct http_request *req, unsigned status)
{
    unsigned number = status != 0 ? status : problem_info(req->reply.problem)->status;
    char *digits = req->reply.out.at + req->reply.status_at;

    assert(number >= 100 && number <= 999);
    digits[0] = (char)('0' + number / 100);
    digits[1] = (char)('0' + number / 10 % 10);
    digits[2] = (char)('0' + number % 10);
    json_object_end(&req->reply.out);
    req->reply.body = json_out_bytes(&req->reply.out);
    http_reply_header(req, "Content-Type", bytes_of(problem_type));
    return http_answer(req, number);
}

static void problem_write(struct http_request *req, enum problem problem, const char *detail)
{
    http_problem_begin(req, problem, detail);
    json_object_end(&req->reply.out);
    req->reply.body = json_out_bytes(&req->reply.out);
    http_reply_header(req, "Content-Type", bytes_of(problem_type));
}

enum step http_refuse_detail(struct http_request *req, enum problem problem, const char *detail)
{
    http_problem_begin(req, problem, detail);
    return http_problem_end(req, 0);
}

enum step http_refuse(struct http_request *req, enum problem problem)
{
    return http_refuse_detail(req, problem, NULL);
}

/* -- the end of a request */

static void reply_report(struct http_request *req)
{
    const struct http_owner *owner = req->server->options.owner;

    if (owner != NULL && owner->ended != NULL) {
        owner->ended(owner, req, req->reply.status, loop_now_us() - req->started_us);
    }
}

enum step http_answer(struct http_request *req, unsigned status)
{
    struct http_server *server = req->server;

    assert(req->state == STATE_RUNNING);
    if (req->reply.overflow) {
        http_reply_forget(req);
        return http_refuse_detail(req, PROBLEM_INTERNAL,
                                  "The headers of the answer are longer than this service sends.");
    }
    if (status == MHD_HTTP_NO_CONTENT) {
        req->reply.body = (struct bytes){NULL, 0};
    }
    if (status == MHD_HTTP_NO_CONTENT || status == MHD_HTTP_NOT_MODIFIED) {
        reply_header_forget(req, "Content-Type");
    }
    http_body_reader_leave(req);
    http_state_set(req, STATE_ANSWERED);
    req->reply.status = status;
    server->running--;
    reply_report(req);
    if (req->mhd == NULL) { /* the client has left */
        http_request_bury(req);
    } else if (http_reply_is_early(req)) {
        http_early_answer(req);
    } else if (req->suspended) {
        http_reply_queue(req);
    }
    if (!req->in_handler) {
        http_run_soon(server);
    }
    return ANSWERED;
}

/* A head that comes from elsewhere says itself how its body may be cached. */
static bool reply_at(const struct http_request *req, unsigned i, const char **name, const char **value)
{
    const struct http_reply_copies *copies = req->reply.copies;

    if (i < req->reply.field_count) {
        *name = req->reply.fields[i].name;
        *value = req->reply_values + req->reply.fields[i].value_at;
        return true;
    }
    i -= req->reply.field_count;
    if (copies == NULL) {
        *name = "Cache-Control";
        *value = "no-store";
        return i == 0;
    }
    if (i < copies->count) {
        *name = copies->text + copies->name_at[i];
        *value = copies->text + copies->value_at[i];
    }
    return i < copies->count;
}

void http_reply_fields(const struct http_request *req, struct MHD_Response *response)
{
    enum MHD_Result good = response != NULL;
    const char *name, *value;

    if (good != MHD_NO && req->server->draining) {
        good = MHD_add_response_header(response, "Connection", "close");
    }
    for (unsigned i = 0; good != MHD_NO && reply_at(req, i, &name, &value); i++) {
        if (name != NULL) {
            good = MHD_add_response_header(response, name, value);
        }
    }
    if (good == MHD_NO) {
        abort(); /* out of memory, or a header name that is none */
    }
}

enum MHD_Result http_reply_queue(struct http_request *req)
{
    struct http_server *server = req->server;
    /* The library does not write to the body, it only lacks the const. */
    char *body = req->reply.body.len > 0 ? (char *)(uintptr_t)req->reply.body.at : (char *)(uintptr_t) "";
    struct MHD_Response *response;
    enum MHD_Result good;

    if (req->reply.response != NULL) {
        return http_response_queue(req);
    }
    response = MHD_create_response_from_buffer(req->reply.body.len, body, MHD_RESPMEM_PERSISTENT);
    http_reply_fields(req, response);
    http_state_set(req, STATE_SENDING);
    http_clock_set(server, &req->conn->deadline, PHASE_SEND);
    req->queued_run = server->runs.is_on ? server->runs.count : server->runs.count + 1;
    (*(server->runs.is_on ? &server->runs.unsent : &server->runs.unsent_next))++;
    good = MHD_queue_response(req->mhd, req->reply.status, response);
    MHD_destroy_response(response);
    if (req->suspended) {
        MHD_resume_connection(req->mhd);
    }
    return good;
}

/* == refusals past libmicrohttpd, and what becomes of the connection.
 *
 * libmicrohttpd takes an answer only before the body or behind it (connection.c, MHD_queue_response), never
 * in its middle, and needs room in its memory for it. A refusal that ends the connection is therefore written
 * by us: all earlier answers are in the kernel by then, because libmicrohttpd reads one request at a time.
 *
 * A socket that is closed with unread bytes sends a reset, which may overtake the refusal. So the connection
 * lingers: we keep a descriptor of our own, drop what still comes, and close when the client has, or after
 * two seconds. */

enum { LINGER_CONNECTIONS = 256, LINGER_BYTES = 64 << 20, LINGER_READ = 16384, RAW_HEAD_BYTES = 512 };

struct http_linger {
    struct http_deadline deadline;
    struct http_server *server;
    struct loop_watch watch;
    int fd;
    size_t left;
};

/* -- lingering */

void http_linger_end(struct http_deadline *deadline)
{
    struct http_linger *linger = container_of(deadline, struct http_linger, deadline);

    http_clock_set(linger->server, deadline, PHASE_NONE);
    loop_watch_done(&linger->watch);
    close(linger->fd);
    linger->server->lingering--;
    free(linger);
}

static void linger_ready(struct loop_watch *watch, int events)
{
    struct http_linger *linger = container_of(watch, struct http_linger, watch);
    char dropped[LINGER_READ];
    ssize_t got = recv(linger->fd, dropped, sizeof(dropped), MSG_DONTWAIT);

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return; /* libmicrohttpd has read it in this very turn */
    }
    if (got <= 0 || (size_t)got >= linger->left) {
        http_linger_end(&linger->deadline);
        return;
    }
    linger->left -= (size_t)got;
}

void http_linger_begin(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_linger *linger;
    int fd = server->lingering < LINGER_CONNECTIONS ? fcntl(conn->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd < 0) {
        return;
    }
    linger = must_have(malloc(sizeof(*linger)));
    *linger = (struct http_linger){.server = server, .fd = fd, .left = LINGER_BYTES};
    server->lingering++;
    loop_watch_init(server->loop, &linger->watch, fd, linger_ready, LOOP_READ);
    http_clock_set(server, &linger->deadline, PHASE_LINGER);
}

/* -- heads */

static void head_field(struct json_out *out, const char *name, const char *value)
{
    json_out_append(out, bytes_of(name));
    json_out_append(out, BYTES(": "));
    json_out_append(out, bytes_of(value));
    json_out_append(out, BYTES("\r\n"));
}

static void head_line(struct json_out *out, unsigned status)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;

    json_out_reserve(out, RAW_HEAD_BYTES);
    json_out_append(out, BYTES("HTTP/1.1 "));
    json_out_append_int(out, status);
    json_out_append(out, BYTES(" "));
    json_out_append(out, bytes_of(MHD_get_reason_phrase_for(status)));
    json_out_append(out, BYTES("\r\n"));
    gmtime_r(&now, &utc);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &utc); /* no setlocale(): English */
    head_field(out, "Date", date);
    head_field(out, "Connection", "close");
}

void http_raw_head(const struct http_request *req, unsigned status, int64_t length, struct json_out *out)
{
    const char *name, *value;

    head_line(out, status);
    for (unsigned i = 0; reply_at(req, i, &name, &value); i++) {
        if (name != NULL) {
            head_field(out, name, value);
        }
    }
    if (length >= 0 && status != MHD_HTTP_NO_CONTENT) {
        json_out_append(out, BYTES("Content-Length: "));
        json_out_append_int(out, length);
        json_out_append(out, BYTES("\r\n"));
    } else if (length < 0 && !req->head.is_1_0) {
        head_field(out, "Transfer-Encoding", "chunked");
    }
    json_out_append(out, BYTES("\r\n"));
}

/* -- the refusal */

static void raw_send(const struct http_request *req, unsigned status, int fd)
{
    struct json_out head = {.at = NULL};

    http_raw_head(req, status, (int64_t)req->reply.body.len, &head);
    struct iovec parts[2] = {{head.at, head.len},
                             {(char *)(uintptr_t)req->reply.body.at, req->reply.body.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = req->method == HTTP_HEAD ? 1 : 2};
    /* A client whose socket is full gets no answer; the connection ends in any case. */
    (void)!sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    json_out_done(&head);
}

static void raw_write(struct http_request *req, enum problem problem, const char *detail)
{
    const struct http_owner *owner = req->server->options.owner;

    req->reply.status = problem_info(problem)->status;
    problem_write(req, problem, detail);
    raw_send(req, req->reply.status, req->conn->fd);
    http_state_set(req, STATE_ABORTED);
    if (owner != NULL && owner->ended != NULL) {
        owner->ended(owner, req, req->reply.status, 0);
    }
}

void http_raw_say(const struct http_request *req, enum problem problem)
{
    struct http_request *words = http_request_take(req->server, NULL);

    words->method = req->method;
    words->id = req->id;
    problem_write(words, problem, NULL);
    raw_send(words, problem_info(problem)->status, req->conn->fd);
    http_request_free(words);
}

enum MHD_Result http_raw_refuse(struct http_request *req, enum problem problem, const char *detail)
{
    raw_write(req, problem, detail);
    http_linger_begin(req->conn);
    http_clock_set(req->server, &req->conn->deadline, PHASE_NONE);
    return MHD_NO;
}

enum MHD_Result http_raw_answer(struct http_request *req)
{
    raw_send(req, req->reply.status, req->conn->fd);
    req->conn->over = true;
    http_linger_begin(req->conn);
    http_clock_set(req->server, &req->conn->deadline, PHASE_NONE);
    return MHD_NO;
}

void http_raw_timeout(struct http_conn *conn)
{
    /* Without a request line the client may just have nothing to say: it must not take an answer for that to
     * its next request. */
    struct http_request *req = http_recv_cut(conn);

    if (req != NULL && req->state <= STATE_BODY) {
        raw_write(req, PROBLEM_REQUEST_TIMEOUT, NULL);
    }
    shutdown(conn->fd, SHUT_RDWR);
}

/* Linux, net/ipv4/tcp.c, tcp_disconnect(); a close would send what is still in the socket, and then an end.
 */
void http_raw_reset(int fd)
{
    static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    (void)connect(fd, &nobody, sizeof(nobody));
}
