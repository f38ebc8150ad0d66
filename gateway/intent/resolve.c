/* resolve.c - POST /v1/intents/{lease}/resolve: an operator knows how what was sent has ended.
 *
 *   resolve_start    run intent_resolve.lua                       400, or suspended
 *   resolve_answer   with force, and it is being sent: wait       suspended, or
 *                    tell                                         200 | 404 | 503 | 504
 *   resolve_rings    its gateway may have closed the connection: run intent_resolve.lua again */
#include "gateway/fenced_call.h"
#include "gateway/intent/given_up.h"
#include "gateway/worker.h"
#include "scripts.h"

enum { SEQ_MAX_CHARS = 16 };

struct resolve {
    struct fenced_call fenced;
    char id[SEQ_MAX_CHARS + 1];
    bool has_id, forces;
    uint64_t until_ms; /* waits for the gateway that is sending; 0: not yet */
    struct alarm alarm;
};

static store_done_fn resolve_answer;

static const char *query_read(struct resolve *r)
{
    static const char *const known[] = {"id", "force", NULL};
    bool has_query = http_query(r->fenced.req).at != NULL;
    int len = has_query ? http_query_get(r->fenced.req, known, "id", r->id, SEQ_MAX_CHARS) : -1;
    char word[sizeof("true") - 1];
    int force = has_query ? http_query_get(r->fenced.req, known, "force", word, sizeof(word)) : -1;

    r->has_id = len > 0;
    r->forces = force == (int)sizeof(word) && memcmp(word, "true", sizeof(word)) == 0;
    for (int i = 0; i < len; i++) {
        if (r->id[i] < '0' || r->id[i] > '9') {
            return "The id of an intent is a number, as the list of intents tells it.";
        }
    }
    if (len == -2 || len == 0 || (len == -1 && has_query && http_query(r->fenced.req).len > 0) ||
        (force != -1 && !r->forces)) {
        return "The only query known here is ?id=, once, with the id of an intent, and with it force=true.";
    }
    return NULL;
}

static enum step resolve_run(struct resolve *r)
{
    r->fenced.keys = r->fenced.args = 0;
    fenced_add_key(&r->fenced, fenced_stripe(&r->fenced));
    fenced_add(&r->fenced, r->fenced.lease);
    fenced_add(&r->fenced, bytes_of(r->id));
    fenced_add(&r->fenced, r->forces ? BYTES("force") : BYTES(""));
    return fenced_run(&r->fenced, &script_intent_resolve, resolve_answer);
}

static void resolve_rings(struct alarm *alarm)
{
    resolve_run(container_of(alarm, struct resolve, alarm));
}

enum step resolve_start(struct http_request *req)
{
    struct resolve *r = HTTP_SCRATCH(req, struct resolve);
    const char *wrong = fenced_init_lease(&r->fenced, req, http_path_part(req, 0));

    wrong = wrong != NULL ? wrong : query_read(r);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    return resolve_run(r);
}

/* Whether there is time to ask once more. */
static bool resolve_waits(struct resolve *r)
{
    uint64_t now_ms = loop_now_ms();

    r->until_ms = r->until_ms > 0 ? r->until_ms : now_ms + GIVEN_UP_WAIT_MS;
    if (now_ms >= r->until_ms) {
        return false;
    }
    r->alarm = (struct alarm){.rings = resolve_rings};
    alarm_set(gateway_worker_of(r->fenced.req)->clock, &r->alarm, now_ms + GIVEN_UP_AGAIN_MS);
    return true;
}

/* {"resolved", seq, how many, {texts of those that are being sent}} */
static enum step resolve_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct resolve *r = container_of(call, struct resolve, fenced.record.store);
    enum problem bad = member_problem(&r->fenced.record, outcome, reply);
    const struct store_reply *sending;
    struct json_out *json;
    int64_t resolved;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "resolved")) {
        return fenced_fail(&r->fenced, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    sending = store_reply_list(reply, 3);
    resolved = store_reply_integer(reply, 2);
    if (r->forces && sending != NULL && store_reply_count(sending) > 0 && resolve_waits(r)) {
        return SUSPENDED;
    }
    if (r->has_id && resolved == 0 && (sending == NULL || store_reply_count(sending) == 0)) {
        resolved = r->until_ms > 0; /* it has ended meanwhile */
    }
    if (r->has_id && resolved == 0 && (sending == NULL || store_reply_count(sending) == 0)) {
        return http_refuse_detail(
            r->fenced.req, PROBLEM_NOT_FOUND,
            "No intent of this lease has this id, or it is closed by now. Look at the list.");
    }
    json = http_json_begin(r->fenced.req);
    json_int(json, "resolved", resolved);
    json_int(json, "sending", sending != NULL ? (int64_t)store_reply_count(sending) : 0);
    return http_json_end(r->fenced.req, 200);
}
