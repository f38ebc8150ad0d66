/* check.c - any method, /v1/check/{lease}[/...]: may this token act? For a proxy that will do the deed
 * itself.
 *
 *   check_start   the request itself, then the token     400 | 401 | 403, or go on
 *   check_ask     run check.lua                          suspended
 *   check_answer  tell                                   200 | 403 | 503 | 504
 *
 * What is promised is only "admitted": the check and the deed are two steps. */
#include "gateway/fenced_call.h"
#include "scripts.h"

static enum step check_ask(struct fenced_call *fenced);
static store_done_fn check_answer;

/* A proxy may append the path and the query of the request that it asks about (Envoy does): only its very
 * own member means something, and a stranger who sends it changes the number of a refusal, never the
 * verdict. */
static enum fenced_status statuses_wanted(const struct http_request *req)
{
    return bytes_are(http_query(req), "deny=native") ? FENCED_NATIVE : FENCED_FORWARD_AUTH;
}

static struct bytes first_segment(struct bytes path)
{
    const char *slash = path.len > 0 ? memchr(path.at, '/', path.len) : NULL;

    return slash != NULL ? (struct bytes){path.at, (size_t)(slash - path.at)} : path;
}

enum step check_start(struct http_request *req)
{
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    const char *wrong = fenced_init_lease(fenced, req, first_segment(http_path_part(req, 0)));
    enum problem bad;

    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    fenced->statuses = statuses_wanted(req);
    bad = fenced_read_token(fenced);
    return bad != PROBLEM_NONE ? fenced_refuse(fenced, bad) : check_ask(fenced);
}

static enum step check_ask(struct fenced_call *fenced)
{
    fenced_add_key(fenced, fenced_stripe(fenced));
    fenced_add_fence(fenced);
    return fenced_run(fenced, &script_check, check_answer);
}

static enum step check_accepted(struct fenced_call *fenced, int64_t mark)
{
    char text[FENCED_NUMBER_SIZE];

    fenced_accept(fenced, mark, "admitted");
    http_reply_header(fenced->req, "Fencing-Token-Verified",
                      bytes_of_number(text, fenced->claim.token.number));
    worker_count(worker_of(fenced->req), COUNT_CHECKED);
    return http_answer(fenced->req, 200);
}

static enum step check_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct fenced_call *fenced = container_of(call, struct fenced_call, record.store);
    enum problem bad = member_problem(&fenced->record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return fenced_fail(fenced, bad);
    }
    if (store_reply_is(reply, "accepted")) {
        return check_accepted(fenced, store_reply_integer(reply, 2));
    }
    return fenced_refuse_stored(fenced, reply);
}
