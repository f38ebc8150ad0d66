/* dead.c - POST /v1/gateways/{id}/dead: an operator knows that a gateway is dead. ?incarnation= one of it,
 * else all but this very process; ?settled=true: and that nothing it had sent is still on its way to an
 * upstream.
 *
 *   dead_start     what is meant?                                    400, or go on
 *   dead_ask       run intent_takeover.lua, stripe after stripe      suspended
 *   doubt_ask      run doubt_dead.lua
 *   settle_ask     settled: doubt_leave.lua for each of those        200 | 503 | 504 */
#include "gateway/gate.h"
#include "gateway/worker.h"
#include "gateway_scripts.h"

enum { SETTLED_MAX = 64 };

struct dead {
    struct gate_call gate;
    char id[MEMBER_ID_CHARS + 1], incarnation[MEMBER_ID_CHARS + 1];
    bool is_settled;
    unsigned stripe;
    int64_t intents;
    size_t from_len;
    char from[NAME_MAX_BYTES + 64]; /* where a stripe goes on */
    unsigned doubts, settled;
    char doubt[SETTLED_MAX][MEMBER_ID_CHARS + 1];
};

typedef enum step answer_fn(struct store_call *, enum store_outcome, const struct store_reply *);
static enum step dead_ask(struct dead *d);
static answer_fn dead_answer;
static enum step doubt_ask(struct dead *d);
static answer_fn doubt_answer;
static enum step settle_ask(struct dead *d);
static answer_fn settle_answer;

static bool is_id(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '-')) {
            return false;
        }
    }
    return text.len == MEMBER_ID_CHARS;
}

static const char *dead_read(struct dead *d, struct http_request *req)
{
    static const char *const known[] = {"incarnation", "settled", NULL};
    struct bytes id = http_path_part(req, 0);
    char settled[8];
    int incarnation_len = -1, settled_len = -1;

    if (http_query(req).at != NULL) {
        incarnation_len = http_query_get(req, known, "incarnation", d->incarnation, MEMBER_ID_CHARS);
        settled_len = http_query_get(req, known, "settled", settled, sizeof(settled));
    }
    d->is_settled = settled_len == 4 && memcmp(settled, "true", 4) == 0;
    if (!is_id(id) || incarnation_len == -2 || (incarnation_len != -1 && !is_id(bytes_of(d->incarnation)))) {
        return "The id of a gateway, and of an incarnation of it, has 16 characters of A-Z, a-z, 0-9, '_' "
               "and '-', as "
               "the list of intents tells it.";
    }
    if (settled_len != -1 && !d->is_settled) {
        return "The queries known here are ?incarnation= and ?settled=true.";
    }
    memcpy(d->id, id.at, id.len);
    return NULL;
}

enum step dead_start(struct http_request *req)
{
    struct dead *d = HTTP_SCRATCH(req, struct dead);
    const char *wrong = dead_read(d, req);

    d->gate.req = req;
    return wrong != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong) : dead_ask(d);
}

/* What certainly did not happen is told so only when no part of it has. */
static enum step dead_refuse(struct dead *d, enum problem bad)
{
    bool begun = d->stripe > 0 || d->from_len > 0;

    return http_refuse(d->gate.req, begun && bad != PROBLEM_INTERNAL ? PROBLEM_OUTCOME_UNKNOWN : bad);
}

static enum step dead_run(struct dead *d, const struct store_script *script, unsigned stripe, answer_fn *done)
{
    struct gate_call *gate = &d->gate;
    enum problem bad;

    gate->record.store.done = done;
    bad = record_run(record_line_of(gate->req), &gate->record, stripe, script, gate->keys,
                     gate->keys + gate->args, gate->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : dead_refuse(d, bad);
}

/* This very process lives. */
static struct bytes living(const struct dead *d)
{
    const struct gateway *gateway = gateway_of(worker_of(d->gate.req)->service);

    return strcmp(d->id, gateway->id) == 0 ? bytes_of(gateway->incarnation) : BYTES("");
}

static void dead_keys(struct dead *d, unsigned stripe)
{
    d->gate.keys = d->gate.args = 0;
    gate_add_key(&d->gate, keys_stripe(d->gate.stripe, stripe));
    gate_add(&d->gate, bytes_of(d->id));
    gate_add(&d->gate, living(d));
}

/* NONE, or what ends it; false also when it is another answer than this word. */
static enum problem dead_told(struct dead *d, enum store_outcome outcome, const struct store_reply *reply,
                              const char *word)
{
    enum problem bad = record_problem(&d->gate.record, outcome, reply);

    return bad != PROBLEM_NONE || store_reply_is(reply, word) ? bad : PROBLEM_INTERNAL;
}

static enum step dead_ask(struct dead *d)
{
    dead_keys(d, d->stripe);
    gate_add(&d->gate, (struct bytes){d->from, d->from_len});
    gate_add(&d->gate, BYTES("100"));
    if (d->incarnation[0] != '\0') {
        gate_add(&d->gate, bytes_of(d->incarnation));
    }
    return dead_run(d, &script_intent_takeover, d->stripe, dead_answer);
}

static enum step dead_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, gate.record.store);
    enum problem bad = dead_told(d, outcome, reply, "taken");
    const struct store_reply *texts;
    struct bytes from;

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    texts = store_reply_list(reply, 2);
    from = store_reply_text(reply, 3);
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        d->intents += bytes_are(intent_part(store_reply_text(texts, i), INTENT_STATE), "d");
    }
    d->from_len = from.len <= sizeof(d->from) ? from.len : 0;
    memcpy(d->from, from.at != NULL ? from.at : "", d->from_len);
    d->stripe += d->from_len == 0;
    return d->stripe < STRIPES ? dead_ask(d) : doubt_ask(d);
}

/* -- what a store may have lost of it */

static enum step doubt_ask(struct dead *d)
{
    dead_keys(d, 0);
    gate_add(&d->gate, d->incarnation[0] != '\0' ? BYTES("these") : BYTES("all"));
    if (d->incarnation[0] != '\0') {
        gate_add(&d->gate, bytes_of(d->incarnation));
    }
    return dead_run(d, &script_doubt_dead, 0, doubt_answer);
}

static enum step doubt_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, gate.record.store);
    enum problem bad = dead_told(d, outcome, reply, "dead");
    const struct store_reply *dead = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    for (size_t i = 0; dead != NULL && i < store_reply_count(dead) && d->doubts < SETTLED_MAX; i++) {
        struct bytes one = store_reply_text(dead, i);

        if (is_id(one) && (d->incarnation[0] == '\0' || bytes_are(one, d->incarnation))) {
            memcpy(d->doubt[d->doubts++], one.at, one.len);
        }
    }
    return settle_ask(d);
}

static enum step dead_tell(struct dead *d)
{
    struct json_out *json = http_json(d->gate.req);

    json_object(json, NULL);
    json_int(json, "intents", d->intents);
    json_int(json, "in_doubt", (int64_t)(d->doubts - d->settled));
    json_object_end(json);
    http_reply_json(d->gate.req);
    return http_answer(d->gate.req, 200);
}

static enum step settle_ask(struct dead *d)
{
    if (!d->is_settled || d->settled == d->doubts) {
        return dead_tell(d);
    }
    d->gate.keys = d->gate.args = 0;
    gate_add_key(&d->gate, keys_stripe(d->gate.stripe, 0));
    gate_add(&d->gate, bytes_of(d->id));
    gate_add(&d->gate, bytes_of(d->doubt[d->settled]));
    gate_add(&d->gate, BYTES(""));
    gate_add(&d->gate, BYTES("")); /* whichever routes it had: nothing that went by them is under way */
    return dead_run(d, &script_doubt_leave, 0, settle_answer);
}

static enum step settle_answer(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, gate.record.store);
    enum problem bad = dead_told(d, outcome, reply, "left");

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    d->settled++;
    return settle_ask(d);
}
