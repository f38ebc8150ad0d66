/* release.c - DELETE /v1/leases/{name}: end the hold of this lease_id.
 *
 *   release_start   read the ask             400 | 403, or go on
 *   release_ask     run release.lua          suspended
 *   release_answer  tell the holder          204 | 410 | 503 | 504 */
#include "lease/operation.h"
#include "lease_scripts.h"

struct release {
    struct lease_call lease;
    struct bytes lease_id, hold;
};

static enum step release_ask(struct release *r);
static enum step release_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply);

/* ?all=true ends every hold of the lease_id; a hold is entered once in this version, so it changes
 * nothing yet. */
static const char *query_wrong(const struct http_request *req)
{
    static const char *const known[] = {"all", NULL};
    char all[8];
    int len = http_query(req).at != NULL ? http_query_get(req, known, "all", all, sizeof(all)) : -1;

    if (len == -1 && http_query(req).len == 0) {
        return NULL;
    }
    return len == 4 && memcmp(all, "true", 4) == 0 ? NULL : "The only query known here is ?all=true.";
}

static const char *idempotency_wrong(const struct http_request *req)
{
    unsigned count = 0;
    struct bytes key = http_header(req, "Idempotency-Key", &count);

    if (count > 1 || (count == 1 && !name_is_idempotency_key(key))) {
        return "The header Idempotency-Key must come once, with 1 to 128 visible ASCII characters.";
    }
    return NULL;
}

enum step release_start(struct http_request *req)
{
    struct release *r = HTTP_SCRATCH(req, struct release);
    const char *bad = lease_call_init(&r->lease, req);
    enum problem wrong;

    bad = bad != NULL ? bad : query_wrong(req);
    bad = bad != NULL ? bad : lease_id_read(req, &r->lease_id);
    bad = bad != NULL ? bad : idempotency_wrong(req);
    if (bad != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, bad);
    }
    wrong = lease_hold_read(&r->lease, &r->hold);
    if (wrong != PROBLEM_NONE) {
        return http_refuse(req, wrong);
    }
    return release_ask(r);
}

static enum step release_ask(struct release *r)
{
    struct bytes *args = &r->lease.argv[LEASE_KEYS];

    args[1] = r->lease_id;
    args[2] = lease_call_remember(&r->lease);
    args[3] = r->hold;
    return lease_call_run(&r->lease, &script_release, 4, release_answer);
}

static enum step release_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct release *r = container_of(call, struct release, lease.record.store);
    enum problem bad = record_problem(&r->lease.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return http_refuse(r->lease.req, bad);
    }
    if (store_reply_is(reply, "released")) {
        worker_count(worker_of(r->lease.req), COUNT_RELEASED);
        return http_answer(r->lease.req, 204);
    }
    if (store_reply_is(reply, "lost")) {
        return lease_lost_answer(&r->lease, reply);
    }
    return http_refuse(r->lease.req, PROBLEM_INTERNAL);
}
