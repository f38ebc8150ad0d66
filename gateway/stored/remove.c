/* remove.c - DELETE /v1/resources/{key}: delete a stored resource, if the writer's hold is the live one.
 *
 *   remove_start   the request itself, then the token     400 | 403 | 428, or go on
 *   remove_ask     run remove.lua                         suspended
 *   remove_answer  tell                                   204 | 403 | 404 | 412 | 422 | 503 | 504 */
#include "gateway/fenced_call.h"
#include "gateway/precondition.h"
#include "scripts.h"

struct removal {
    struct fenced_call fenced;
    struct precondition precondition;
};

static enum step remove_ask(struct removal *r);
static store_done_fn remove_answer;

enum step remove_start(struct http_request *req)
{
    struct removal *r = HTTP_SCRATCH(req, struct removal);
    const char *wrong = fenced_init_resource(&r->fenced, req, http_path_part(req, 0));
    enum problem bad;

    wrong = wrong != NULL ? wrong : precondition_read(&r->precondition, req);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    bad = fenced_read_token(&r->fenced);
    return bad != PROBLEM_NONE ? fenced_refuse(&r->fenced, bad) : remove_ask(r);
}

static enum step remove_ask(struct removal *r)
{
    struct fenced_call *fenced = &r->fenced;
    struct bytes none = {"", 0};

    precondition_digest(&r->precondition, BYTES("DELETE"), none, none, none);
    precondition_add(&r->precondition, fenced);
    fenced_add_remember(fenced);
    return fenced_run(fenced, &script_remove, remove_answer);
}

static enum step remove_done(struct removal *r, int64_t mark, unsigned row)
{
    fenced_accept(&r->fenced, mark, "committed");
    worker_count(worker_of(r->fenced.req), row);
    return http_answer(r->fenced.req, 204);
}

static enum step remove_answer(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct removal *r = container_of(call, struct removal, fenced.record.store);
    enum problem bad = member_problem(&r->fenced.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return fenced_fail(&r->fenced, bad);
    }
    if (store_reply_is(reply, "removed")) {
        return remove_done(r, store_reply_integer(reply, 2), COUNT_REMOVED);
    }
    if (store_reply_is(reply, "repeated")) {
        return remove_done(r, store_reply_integer(reply, 4), COUNT_REPEATED);
    }
    if (store_reply_is(reply, "missing")) {
        fenced_accept(&r->fenced, store_reply_integer(reply, 2), "committed");
        return http_refuse_detail(r->fenced.req, PROBLEM_NOT_FOUND,
                                  "There is no such resource; nothing was deleted.");
    }
    return fenced_refuse_stored(&r->fenced, reply);
}
