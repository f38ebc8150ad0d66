/* reply.c - what handlers answer, and how it gets to libmicrohttpd. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/flow.h"
#include "shared/text/ascii.h"

enum { OUT_FIRST_BYTES = 8192, STATUS_CHARS = 3 };

static const char problem_type[] = "application/problem+json";

/* -- headers */

/* A field whose name is NULL is left out. */
static void reply_header_forget(struct http_request *req, const char *name)
{
    for (unsigned i = 0; i < req->reply_field_count; i++) {
        if (req->reply_fields[i].name != NULL && strcasecmp(req->reply_fields[i].name, name) == 0) {
            req->reply_fields[i].name = NULL;
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
    if (req->reply_values_len + value.len + 1 > REPLY_VALUES_BYTES ||
        req->reply_bytes + bytes > req->server->reply_bytes_max ||
        req->reply_field_count == REPLY_FIELDS_MAX) {
        req->reply_overflow = true;
        return;
    }
    req->reply_fields[req->reply_field_count++] = (struct http_reply_field){name,
                                                                            (uint16_t)req->reply_values_len};
    memcpy(req->reply_values + req->reply_values_len, value.at, value.len);
    req->reply_values[req->reply_values_len + value.len] = '\0';
    req->reply_values_len += value.len + 1;
    req->reply_bytes += bytes;
}

/* Whether libmicrohttpd would take it (response.c, add_response_entry), and it is not one of the server's. */
static bool is_field(struct bytes name, struct bytes value)
{
    static const char *const ours[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (name.len == strlen(ours[i]) && strncasecmp(name.at, ours[i], name.len) == 0) {
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
    return !http_body_is_whole(req) || req->reply_bytes > req->server->reply_pool_bytes;
}

void http_reply_foreign(struct http_request *req)
{
    if (req->reply_copies == NULL) {
        req->reply_copies = http_must_alloc(sizeof(*req->reply_copies) + req->server->reply_bytes_max);
        req->reply_copies->count = 0;
        req->reply_copies->len = 0;
    }
}

bool http_reply_field(struct http_request *req, struct bytes name, struct bytes value)
{
    size_t bytes = name.len + value.len + 4, max = req->server->reply_bytes_max;
    struct http_reply_copies *copies;

    http_reply_foreign(req);
    copies = req->reply_copies;
    if (!is_field(name, value) || bytes > max - req->reply_bytes || copies->count == REPLY_COPIES_MAX) {
        return false;
    }
    if (value.len == 0) {
        return true; /* as in http_reply_header() */
    }
    copies->name_at[copies->count] = copies_add(copies, name);
    copies->value_at[copies->count++] = copies_add(copies, value);
    req->reply_bytes += bytes;
    return true;
}

void http_reply_forget(struct http_request *req)
{
    free(req->reply_copies);
    req->reply_copies = NULL;
    req->reply_field_count = 0;
    req->reply_values_len = 0;
    req->reply_bytes = 0;
    req->reply_overflow = false;
}

/* -- bodies */

struct json_out *http_json(struct http_request *req)
{
    struct http_server *server = req->server;

    if (req->out.at == NULL && server->spare_count > 0) {
        req->out = server->spare[--server->spare_count];
    } else if (req->out.at == NULL) {
        json_out_reserve(&req->out, OUT_FIRST_BYTES);
    }
    return &req->out;
}

void http_reply_json(struct http_request *req)
{
    req->reply = json_out_bytes(&req->out);
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
    json_object_end(&req->out);
    http_reply_json(req);
    return http_answer(req, status);
}

void http_reply_body(struct http_request *req, const char *type, struct bytes body)
{
    if (body.len > 0 && body.at == req->out.at) {
        req->reply = body;
    } else {
        json_out_reset(&req->out);
        json_out_reserve(&req->out, body.len);
        json_out_append(&req->out, body);
        req->reply = json_out_bytes(&req->out);
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
    char type[64] = "/problems/";
    size_t prefix = strlen(type), code = strlen(info->code);

    assert(prefix + code < sizeof(type));
    memcpy(type + prefix, info->code, code);
    json_text(out, "type", (struct bytes){type, prefix + code});
    json_text(out, "title", bytes_of(info->title));
    json_int(out, "status", info->status);
    req->status_at = out->len - STATUS_CHARS;
    json_text(out, "detail", bytes_of(detail != NULL ? detail : info->detail));
    json_text(out, "code", bytes_of(info->code));
    json_bool(out, "retryable", info->retryable);
    json_text(out, "instance", bytes_of(req->id));
    if (req->refusal == PROBLEM_FOREIGN_ORIGIN) {
        json_text(out, "why", bytes_of(req->foreign));
    }
    return out;
}

struct json_out *http_problem_begin(struct http_request *req, enum problem problem, const char *detail)
{
    req->problem = problem;
    return problem_open(req, problem_info(problem), detail);
}

struct json_out *http_problem_begin_final(struct http_request *req, enum problem problem, const char *detail)
{
    struct problem_info info = *problem_info(problem);

    info.retryable = false;
    req->problem = problem;
    return problem_open(req, &info, detail);
}

enum step http_problem_end(struct http_request *req, unsigned status)
{
    unsigned told = status != 0 ? status : problem_info(req->problem)->status;
    char *digits = req->out.at + req->status_at;

    assert(told >= 100 && told <= 999);
    digits[0] = (char)('0' + told / 100);
    digits[1] = (char)('0' + told / 10 % 10);
    digits[2] = (char)('0' + told % 10);
    json_object_end(&req->out);
    req->reply = json_out_bytes(&req->out);
    http_reply_header(req, "Content-Type", bytes_of(problem_type));
    return http_answer(req, told);
}

void http_problem_write(struct http_request *req, enum problem problem, const char *detail)
{
    http_problem_begin(req, problem, detail);
    json_object_end(&req->out);
    req->reply = json_out_bytes(&req->out);
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

static void reply_tell_owner(struct http_request *req)
{
    const struct http_owner *owner = req->server->options.owner;

    if (owner != NULL && owner->ended != NULL) {
        owner->ended(owner, req, req->status, loop_now_us() - req->started_us);
    }
}

enum step http_answer(struct http_request *req, unsigned status)
{
    struct http_server *server = req->server;

    assert(req->state == STATE_RUNNING);
    if (req->reply_overflow) {
        http_reply_forget(req);
        return http_refuse_detail(req, PROBLEM_INTERNAL,
                                  "The headers of the answer are longer than this service sends.");
    }
    if (status == MHD_HTTP_NO_CONTENT) {
        req->reply = (struct bytes){NULL, 0};
    }
    if (status == MHD_HTTP_NO_CONTENT || status == MHD_HTTP_NOT_MODIFIED) {
        reply_header_forget(req, "Content-Type");
    }
    http_body_reader_leave(req);
    http_state_set(req, STATE_ANSWERED);
    req->status = status;
    server->running--;
    reply_tell_owner(req);
    if (req->mhd == NULL) { /* the client has left */
        http_request_bury(req);
    } else if (http_reply_is_early(req)) {
        http_early_answer(req);
    } else if (req->suspended) {
        http_reply_queue(req);
    }
    if (!req->in_handler) {
        server->must_run = true;
        loop_again(server->loop); /* if this is the end of the turn, and our hook has already had its go */
    }
    return ANSWERED;
}

/* A head that comes from elsewhere says itself how its body may be cached. */
bool http_reply_at(const struct http_request *req, unsigned i, const char **name, const char **value)
{
    const struct http_reply_copies *copies = req->reply_copies;

    if (i < req->reply_field_count) {
        *name = req->reply_fields[i].name;
        *value = req->reply_values + req->reply_fields[i].value_at;
        return true;
    }
    i -= req->reply_field_count;
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
    for (unsigned i = 0; good != MHD_NO && http_reply_at(req, i, &name, &value); i++) {
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
    char *body = req->reply.len > 0 ? (char *)(uintptr_t)req->reply.at : (char *)(uintptr_t) "";
    struct MHD_Response *response;
    enum MHD_Result good;

    if (req->flow != NULL) {
        return req->flow->early ? http_early_queue(req) : http_flow_queue(req);
    }
    response = MHD_create_response_from_buffer(req->reply.len, body, MHD_RESPMEM_PERSISTENT);
    http_reply_fields(req, response);
    http_state_set(req, STATE_SENDING);
    http_clock_set(server, &req->conn->deadline, PHASE_SEND);
    req->queued_run = server->in_run ? server->run : server->run + 1;
    (*(server->in_run ? &server->unsent : &server->unsent_next))++;
    good = MHD_queue_response(req->mhd, req->status, response);
    MHD_destroy_response(response);
    if (req->suspended) {
        MHD_resume_connection(req->mhd);
    }
    return good;
}
