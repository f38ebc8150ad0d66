/* write.c - PUT, DELETE /v1/resources/{key}: write or delete a stored resource, if the token may.
 *
 *   write_start     the request itself, then the token     400 | 403 | 428, or go on
 *   write_ask       run write.lua                          suspended
 *   write_answers                                          201 | 204 | 403 | 412 | 422 | 503 | 504
 *
 *   remove_start    the same                               400 | 403 | 428, or go on
 *   remove_ask      run remove.lua                         suspended
 *   remove_answers                                         204 | 403 | 404 | 412 | 422 | 503 | 504 */
#include "gateway/fenced_call.h"
#include "gateway/precondition.h"
#include "gateway/stored/stored.h"
#include "scripts.h"
#include "shared/token/random.h"

enum { ETAG_CHARS = 16, TYPE_MAX = 256 };

struct write { /* or a removal */
    struct fenced_call fenced;
    struct precondition precondition;
    struct bytes type, encoding;
    char etag[ETAG_CHARS + 1];
};

static enum step write_ask(struct write *w);
static fenced_then_fn write_done;
static enum step remove_ask(struct write *w);
static fenced_then_fn remove_done, remove_missing;

static const struct fenced_answer write_answers[] = {
    {"written", write_done},  /* 201 | 204 */
    {"repeated", write_done}, /* what the first one was answered */
    {NULL, fenced_refuse_stored},
};
static const struct fenced_answer remove_answers[] = {
    {"removed", remove_done},    /* 204 */
    {"repeated", remove_done},   /* 204 */
    {"missing", remove_missing}, /* 404 */
    {NULL, fenced_refuse_stored},
};

/* wrong: what is wrong with it so far, or NULL. */
static enum step write_begin(struct write *w, const char *wrong, enum step (*ask)(struct write *w))
{
    enum problem bad;

    if (wrong != NULL)
        return http_refuse_detail(w->fenced.req, PROBLEM_INVALID_REQUEST, wrong);
    if (!fenced_may_write(&w->fenced))
        return service_forbid(w->fenced.req, ACCESS_WRITE, w->fenced.lease);
    bad = fenced_read_token(&w->fenced);
    return bad != PROBLEM_NONE ? fenced_refuse(&w->fenced, bad) : ask(w);
}

static const char *headers_read(struct write *w)
{
    unsigned types = 0, encodings = 0;

    w->type = http_header(w->fenced.req, "Content-Type", &types);
    w->encoding = http_header(w->fenced.req, "Content-Encoding", &encodings);
    if (types > 1 || encodings > 1)
        return "The headers Content-Type and Content-Encoding may come once each.";
    if (w->type.len > TYPE_MAX || w->encoding.len > TYPE_MAX)
        return "The headers Content-Type and Content-Encoding may have 256 bytes each.";
    if (w->type.len == 0)
        w->type = BYTES("application/octet-stream");
    return precondition_read(&w->precondition, w->fenced.req);
}

enum step write_start(struct http_request *req)
{
    struct write *w = HTTP_SCRATCH(req, struct write);
    const char *wrong = fenced_init_resource(&w->fenced, req, http_path_part(req, 0));

    return write_begin(w, wrong != NULL ? wrong : headers_read(w), write_ask);
}

static enum step write_ask(struct write *w)
{
    struct fenced_call *fenced = &w->fenced;
    struct bytes body = http_body(fenced->req);
    bool is_full = epoch_is_full(member_line_of(fenced->req)->store_epoch);

    precondition_digest(&w->precondition, http_identity(fenced->req), BYTES("PUT"), w->type, w->encoding,
                        body);
    random_text(w->etag, ETAG_CHARS);
    precondition_add(&w->precondition, fenced);
    fenced_add(fenced, (struct bytes){w->etag, ETAG_CHARS});
    fenced_add(fenced, w->type);
    fenced_add(fenced, w->encoding);
    fenced_add(fenced, body);
    if (is_full || service_judges(fenced->req))
        fenced_add(fenced, is_full ? BYTES("full") : BYTES(""));
    if (service_judges(fenced->req)) { /* whose bytes they are, and how many more it may have */
        const char *identity = http_identity(fenced->req);
        int64_t room = service_quota_room(fenced->req, ACCESS_STORED_BYTES);

        fenced_add(fenced, bytes_of(identity != NULL ? identity : ""));
        fenced_add(fenced, room == INT64_MAX ? BYTES("") : bytes_of_number(fenced->number[2], room));
    }
    return fenced_run(fenced, &script_write, write_answers);
}

/* {"written" | "repeated", seq, status, ETag, mark} */
static enum step write_done(struct fenced_call *fenced, const struct store_reply *reply)
{
    char etag[ETAG_CHARS + 2 + 1] = "\"";
    struct bytes text = store_reply_text(reply, 3);

    if (text.len != ETAG_CHARS)
        return fenced_fail(fenced, PROBLEM_INTERNAL);
    memcpy(etag + 1, text.at, ETAG_CHARS);
    etag[ETAG_CHARS + 1] = '"';
    fenced_accept_stored(fenced, store_reply_integer(reply, 4));
    http_reply_header(fenced->req, "ETag", (struct bytes){etag, ETAG_CHARS + 2});
    worker_count(worker_of(fenced->req), store_reply_is(reply, "written") ? COUNT_WRITTEN : COUNT_REPEATED);
    return http_answer(fenced->req, (unsigned)store_reply_integer(reply, 2));
}

/* -- DELETE */

enum step remove_start(struct http_request *req)
{
    struct write *w = HTTP_SCRATCH(req, struct write);
    const char *wrong = fenced_init_resource(&w->fenced, req, http_path_part(req, 0));

    return write_begin(w, wrong != NULL ? wrong : precondition_read(&w->precondition, req), remove_ask);
}

static enum step remove_ask(struct write *w)
{
    struct bytes none = {"", 0};
    uint64_t remember_ms = worker_of(w->fenced.req)->service->settings.remember_ms;

    precondition_digest(&w->precondition, http_identity(w->fenced.req), BYTES("DELETE"), none, none, none);
    precondition_add(&w->precondition, &w->fenced);
    fenced_add(&w->fenced, bytes_of_number(w->fenced.number[2], (int64_t)remember_ms));
    return fenced_run(&w->fenced, &script_remove, remove_answers);
}

/* {"removed", seq, mark} | {"repeated", seq, status, ETag, mark} */
static enum step remove_done(struct fenced_call *fenced, const struct store_reply *reply)
{
    bool is_repeated = store_reply_is(reply, "repeated");

    fenced_accept_stored(fenced, store_reply_integer(reply, is_repeated ? 4 : 2));
    worker_count(worker_of(fenced->req), is_repeated ? COUNT_REPEATED : COUNT_REMOVED);
    return http_answer(fenced->req, 204);
}

static enum step remove_missing(struct fenced_call *fenced, const struct store_reply *reply)
{
    fenced_accept_stored(fenced, store_reply_integer(reply, 2));
    return http_refuse_detail(fenced->req, PROBLEM_NOT_FOUND,
                              "There is no such resource; nothing was deleted.");
}
