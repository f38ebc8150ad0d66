/* read.c - GET, HEAD /v1/resources/{key}: show a stored resource; with a Fencing-Token the read is
 * fenced.
 *
 *   read_start   the request itself, then the token if there is one     400 | 403, or go on
 *   read_ask     run read.lua or read_fenced.lua                        suspended
 *   read_answer  tell                                                   200 | 304 | 403 | 404 |
 *                412 | 503 | 504 */
#include <inttypes.h>
#include <stdio.h>

#include "gateway/fenced_call.h"
#include "gateway/precondition.h"
#include "scripts.h"

enum { ETAG_MAX = 64 };

struct reading {
    struct fenced_call fenced;
    struct precondition precondition;
};

static enum step read_ask(struct reading *r);
static enum step read_ask_fenced(struct reading *r);
static store_done_fn read_answer;

enum step read_start(struct http_request *req)
{
    struct reading *r = HTTP_SCRATCH(req, struct reading);
    const char *wrong = fenced_init_resource(&r->fenced, req, http_path_part(req, 0));
    enum problem bad;

    wrong = wrong != NULL ? wrong : precondition_read(&r->precondition, req);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    if (!fenced_has_token(req)) {
        return read_ask(r);
    }
    bad = fenced_read_token(&r->fenced);
    return bad != PROBLEM_NONE ? fenced_refuse(&r->fenced, bad) : read_ask_fenced(r);
}

static enum step read_ask(struct reading *r)
{
    struct fenced_call *fenced = &r->fenced;

    fenced_add_key(fenced, fenced_stripe(fenced));
    fenced_add_key(fenced, fenced_resource_key(fenced));
    fenced_add(fenced, fenced->lease);
    fenced_add(fenced, r->precondition.if_none_match);
    return fenced_run(fenced, &script_read, read_answer);
}

static enum step read_ask_fenced(struct reading *r)
{
    struct fenced_call *fenced = &r->fenced;

    fenced_add_key(fenced, fenced_stripe(fenced));
    fenced_add_key(fenced, fenced_resource_key(fenced));
    fenced_add_fence(fenced);
    fenced_add(fenced, r->precondition.if_none_match);
    return fenced_run(fenced, &script_read_fenced, read_answer);
}

/* What every answer about a version says of it. */
static void read_headers(struct reading *r, const struct store_reply *reply)
{
    struct http_request *req = r->fenced.req;
    int64_t mark = store_reply_integer(reply, 2);
    struct bytes tag = store_reply_text(reply, 3);
    char text[ETAG_MAX];
    int len = snprintf(text, sizeof(text), "%" PRId64, mark);

    http_reply_header(req, "Fencing-Mark", (struct bytes){text, (size_t)len});
    if (tag.len > 0) {
        len = snprintf(text, sizeof(text), "\"%.*s\"", (int)tag.len, tag.at);
        http_reply_header(req, "ETag", (struct bytes){text, (size_t)len});
    }
    if (r->fenced.claimed) {
        fenced_accept(&r->fenced, mark, "committed");
    }
    worker_count(worker_of(req), r->fenced.claimed ? COUNT_READ_FENCED : COUNT_READ);
}

static enum step read_found(struct reading *r, const struct store_reply *reply)
{
    struct http_request *req = r->fenced.req;
    struct bytes encoding = store_reply_text(reply, 5);

    read_headers(r, reply);
    http_reply_header(req, "Content-Type", store_reply_text(reply, 4));
    if (encoding.len > 0) {
        http_reply_header(req, "Content-Encoding", encoding);
    }
    /* Whoever writes here makes no page of this origin, whatever it says it is. */
    http_reply_header(req, "X-Content-Type-Options", BYTES("nosniff"));
    http_reply_header(req, "Content-Security-Policy", BYTES("sandbox"));
    http_reply_body(req, NULL, store_reply_text(reply, 6));
    return http_answer(req, 200);
}

static enum step read_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct reading *r = container_of(call, struct reading, fenced.record.store);
    enum problem bad = member_problem(&r->fenced.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return fenced_fail(&r->fenced, bad);
    }
    if (store_reply_is(reply, "found")) {
        return read_found(r, reply);
    }
    if (store_reply_is(reply, "unchanged")) {
        read_headers(r, reply);
        return http_answer(r->fenced.req, 304);
    }
    if (store_reply_is(reply, "missing")) {
        read_headers(r, reply);
        return http_refuse_detail(r->fenced.req, PROBLEM_NOT_FOUND, "There is no resource under this key.");
    }
    return fenced_refuse_stored(&r->fenced, reply);
}
