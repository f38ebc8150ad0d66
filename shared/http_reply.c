/* http_reply.c - what handlers answer, and how it gets to libmicrohttpd. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http_internal.h"

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
    if (req->reply_bytes + bytes > REPLY_VALUES_BYTES || req->reply_field_count == REPLY_FIELDS_MAX) {
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

static void reply_headers_forget(struct http_request *req)
{
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

struct json_out *http_problem_begin(struct http_request *req, enum problem problem, const char *detail)
{
    const struct problem_info *info = problem_info(problem);
    struct json_out *out = http_json(req);
    char type[64] = "/problems/";
    size_t prefix = strlen(type), code = strlen(info->code);

    assert(prefix + code < sizeof(type));
    memcpy(type + prefix, info->code, code);
    req->problem = problem;
    json_out_reset(out);
    json_object(out, NULL);
    json_text(out, "type", (struct bytes){type, prefix + code});
    json_text(out, "title", bytes_of(info->title));
    json_int(out, "status", info->status);
    req->status_at = out->len - STATUS_CHARS;
    json_text(out, "detail", bytes_of(detail != NULL ? detail : info->detail));
    json_text(out, "code", bytes_of(info->code));
    json_bool(out, "retryable", info->retryable);
    json_text(out, "instance", bytes_of(req->id));
    return out;
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
        reply_headers_forget(req);
        return http_refuse_detail(req, PROBLEM_INTERNAL,
                                  "The headers of the answer are longer than this service sends.");
    }
    if (status == MHD_HTTP_NO_CONTENT) {
        req->reply = (struct bytes){NULL, 0};
    }
    if (status == MHD_HTTP_NO_CONTENT || status == MHD_HTTP_NOT_MODIFIED) {
        reply_header_forget(req, "Content-Type");
    }
    http_state_set(req, STATE_ANSWERED);
    req->status = status;
    server->running--;
    reply_tell_owner(req);
    if (req->mhd == NULL) { /* the client has left; the caller may still look at the request */
        req->next = server->dead;
        server->dead = req;
    } else if (req->suspended) {
        http_reply_queue(req);
    }
    if (!req->in_handler) {
        server->must_run = true;
        loop_again(server->loop); /* if this is the end of the turn, and our hook has already had its go */
    }
    return ANSWERED;
}

void http_reply_fields(const struct http_request *req, struct MHD_Response *response)
{
    enum MHD_Result good = response != NULL;

    if (good != MHD_NO) {
        good = MHD_add_response_header(response, "Cache-Control", "no-store");
    }
    if (good != MHD_NO && (req->server->draining || req->flow != NULL)) {
        good = MHD_add_response_header(response, "Connection", "close");
    }
    for (unsigned i = 0; i < req->reply_field_count && good != MHD_NO; i++) {
        const struct http_reply_field *field = &req->reply_fields[i];

        if (field->name != NULL) {
            good = MHD_add_response_header(response, field->name, req->reply_values + field->value_at);
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
        return http_stream_queue(req);
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
