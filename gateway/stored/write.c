/* write.c - PUT /v1/resources/{key}: write a stored resource, if the writer's hold is the live one.
 *
 *   write_start   the request itself, then the token     400 | 403 | 428, or go on
 *   write_ask     run write.lua                          suspended
 *   write_answer  tell                                   201 | 204 | 403 | 412 | 422 | 503 | 504 */
#include "gateway/fenced_call.h"
#include "gateway/precondition.h"
#include "scripts.h"
#include "shared/token/random.h"

enum { ETAG_CHARS = 16, TYPE_MAX = 256 };

struct write {
    struct fenced_call fenced;
    struct precondition precondition;
    struct bytes type, encoding;
    char etag[ETAG_CHARS + 1];
};

static enum step write_ask(struct write *w);
static store_done_fn write_answer;

static const char *headers_read(struct write *w)
{
    unsigned types = 0, encodings = 0;

    w->type = http_header(w->fenced.req, "Content-Type", &types);
    w->encoding = http_header(w->fenced.req, "Content-Encoding", &encodings);
    if (types > 1 || encodings > 1) {
        return "The headers Content-Type and Content-Encoding may come once each.";
    }
    if (w->type.len == 0) {
        w->type = BYTES("application/octet-stream");
    }
    return precondition_read(&w->precondition, w->fenced.req);
}

enum step write_start(struct http_request *req)
{
    struct write *w = HTTP_SCRATCH(req, struct write);
    const char *wrong = fenced_init_resource(&w->fenced, req, http_path_part(req, 0));
    enum problem bad;

    wrong = wrong != NULL ? wrong : headers_read(w);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    if (w->type.len > TYPE_MAX || w->encoding.len > TYPE_MAX) {
        return http_refuse_detail(req, PROBLEM_OUT_OF_RANGE,
                                  "The headers Content-Type and Content-Encoding may have 256 bytes each.");
    }
    bad = fenced_read_token(&w->fenced);
    return bad != PROBLEM_NONE ? fenced_refuse(&w->fenced, bad) : write_ask(w);
}

static enum step write_ask(struct write *w)
{
    struct fenced_call *fenced = &w->fenced;
    struct bytes body = http_body(fenced->req);

    precondition_digest(&w->precondition, BYTES("PUT"), w->type, w->encoding, body);
    random_text(w->etag, ETAG_CHARS);
    precondition_add(&w->precondition, fenced);
    fenced_add(fenced, (struct bytes){w->etag, ETAG_CHARS});
    fenced_add(fenced, w->type);
    fenced_add(fenced, w->encoding);
    fenced_add(fenced, body);
    if (epoch_is_full(member_line_of(fenced->req)->store_epoch)) {
        fenced_add(fenced, BYTES("full"));
    }
    return fenced_run(fenced, &script_write, write_answer);
}

/* {"written" | "repeated", seq, status, ETag, mark} */
static enum step write_done(struct write *w, const struct store_reply *reply)
{
    char etag[ETAG_CHARS + 2 + 1] = "\"";
    struct bytes text = store_reply_text(reply, 3);

    if (text.len != ETAG_CHARS) {
        return fenced_fail(&w->fenced, PROBLEM_INTERNAL);
    }
    memcpy(etag + 1, text.at, ETAG_CHARS);
    etag[ETAG_CHARS + 1] = '"';
    fenced_accept(&w->fenced, store_reply_integer(reply, 4), "committed");
    http_reply_header(w->fenced.req, "ETag", (struct bytes){etag, ETAG_CHARS + 2});
    worker_count(worker_of(w->fenced.req), store_reply_is(reply, "written") ? COUNT_WRITTEN : COUNT_REPEATED);
    return http_answer(w->fenced.req, (unsigned)store_reply_integer(reply, 2));
}

static enum step write_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct write *w = container_of(call, struct write, fenced.record.store);
    enum problem bad = member_problem(&w->fenced.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return fenced_fail(&w->fenced, bad);
    }
    if (store_reply_is(reply, "written") || store_reply_is(reply, "repeated")) {
        return write_done(w, reply);
    }
    return fenced_refuse_stored(&w->fenced, reply);
}
