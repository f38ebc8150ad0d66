/* dead.c - POST /v1/gateways/{id}/dead: an operator knows that a gateway is dead. ?incarnation= one of it,
 * else all but this very process; ?settled=true: and that nothing it had sent is still on its way to an
 * upstream; ?force=true: though its pulse is fresh.
 *
 *   dead_start     what is meant?                                    400 | 409, or go on
 *   look_ask       run gateway_look.lua: does it live?               409, or suspended
 *   whose_ask      not known: run intent_whose.lua on each stripe    404, or suspended
 *   dead_ask       run intent_takeover.lua, stripe after stripe
 *   doubt_ask      run unreported_dead.lua
 *   settle_ask     settled: unreported_leave.lua for each of those, SETTLED_MAX at a time; then doubt_ask
 *                                                                    200 | 503 | 504 */
#include <stdio.h>

#include "gateway/fenced_call.h"
#include "gateway/worker.h"
#include "scripts.h"
#include "shared/text/ascii.h"

enum { SETTLED_MAX = 64 };

struct dead {
    struct fenced_call fenced;
    char id[MEMBER_ID_CHARS + 1], incarnation[MEMBER_ID_CHARS + 1];
    char seen[MEMBER_ID_CHARS + 1]; /* who was looked at: an incarnation that joins later is not meant */
    bool is_settled, is_forced;
    bool begun; /* something may have been changed */
    unsigned stripe;
    int64_t epoch; /* of the epoch in which it was looked at: what a later one puts in doubt is not meant */
    int64_t intents;
    size_t from_len;
    char from[INTENT_TEXT_MAX]; /* where a stripe goes on */
    size_t in_doubt;            /* of its incarnations that are meant, as unreported_dead.lua told last */
    unsigned doubts, settled;   /* of these, the ones that are named below, and are settled */
    char doubt[SETTLED_MAX][MEMBER_ID_CHARS + 1];
};

static enum step look_ask(struct dead *d);
static store_done_fn look_answer;
static enum step whose_ask(struct dead *d);
static store_done_fn whose_answer;
static enum step dead_ask(struct dead *d);
static store_done_fn dead_answer;
static enum step doubt_ask(struct dead *d);
static store_done_fn doubt_answer;
static enum step settle_ask(struct dead *d);
static store_done_fn settle_answer;

static bool is_id(struct bytes text)
{
    return text.len == MEMBER_ID_CHARS && ascii_is_word(text, BYTES("_-"));
}

/* A member of the query that is "true" or not there. False: it is something else. */
static bool flag_read(struct http_request *req, const char *const *known, const char *name, bool *is_on)
{
    char text[8];
    int len = http_query_get(req, known, name, text, sizeof(text));

    *is_on = len == 4 && memcmp(text, "true", 4) == 0;
    return *is_on || len == -1;
}

static const char *dead_read(struct dead *d, struct http_request *req)
{
    static const char *const known[] = {"incarnation", "settled", "force", NULL};
    struct bytes id = http_path_part(req, 0);
    bool has_query = http_query(req).at != NULL;
    int incarnation_len = has_query
                              ? http_query_get(req, known, "incarnation", d->incarnation, MEMBER_ID_CHARS)
                              : -1;

    if (!is_id(id) || incarnation_len == -2 || (incarnation_len != -1 && !is_id(bytes_of(d->incarnation)))) {
        return "The id of a gateway, and of an incarnation of it, has 16 characters of A-Z, a-z, 0-9, '_' "
               "and '-', as "
               "the list of intents tells it.";
    }
    if (has_query && (!flag_read(req, known, "settled", &d->is_settled) ||
                      !flag_read(req, known, "force", &d->is_forced))) {
        return "The queries known here are ?incarnation=, ?settled=true and ?force=true.";
    }
    memcpy(d->id, id.at, id.len);
    return NULL;
}

/* This very process lives: its incarnation, or "" when another gateway is meant. */
static struct bytes living(const struct dead *d)
{
    const struct gateway *gateway = gateway_of(worker_of(d->fenced.req)->service);

    return strcmp(d->id, gateway->id) == 0 ? bytes_of(gateway->incarnation) : BYTES("");
}

static enum step lives_tell(struct dead *d, struct bytes incarnation, int64_t pulse_ms, const char *detail)
{
    struct json_out *json = http_problem_begin(d->fenced.req, PROBLEM_GATEWAY_LIVES, detail);

    json_text(json, "incarnation", incarnation);
    json_int(json, "pulse_ms", pulse_ms);
    return http_problem_end(d->fenced.req, 0);
}

enum step dead_start(struct http_request *req)
{
    struct dead *d = HTTP_SCRATCH(req, struct dead);
    const char *wrong = dead_read(d, req);

    d->fenced.req = req;
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    if (d->incarnation[0] != '\0' && bytes_are(living(d), d->incarnation)) {
        return lives_tell(d, living(d), 0,
                          "Nothing was changed: this incarnation is the very process that answers you. Stop "
                          "it, then say so to another gateway.");
    }
    return look_ask(d);
}

/* What certainly did not happen is told so only when no part of it has. */
static enum step dead_refuse(struct dead *d, enum problem bad)
{
    bool begun = d->begun;

    return http_refuse(d->fenced.req, begun && bad != PROBLEM_INTERNAL ? PROBLEM_OUTCOME_UNKNOWN : bad);
}

static enum step dead_run(struct dead *d, const struct store_script *script, unsigned stripe,
                          store_done_fn *done)
{
    struct fenced_call *fenced = &d->fenced;
    enum problem bad;

    fenced->record.store.done = done;
    bad = member_run(member_line_of(fenced->req), &fenced->record, stripe, script, fenced->keys,
                     fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : dead_refuse(d, bad);
}

static void dead_keys(struct dead *d, unsigned stripe)
{
    d->fenced.keys = d->fenced.args = 0;
    fenced_add_key(&d->fenced, keys_stripe(d->fenced.stripe, stripe));
    fenced_add(&d->fenced, bytes_of(d->id));
    fenced_add(&d->fenced, living(d));
}

/* NONE, or what ends it; false also when it is another answer than this word. */
static enum problem dead_told(struct dead *d, enum store_outcome outcome, const struct store_reply *reply,
                              const char *word)
{
    enum problem bad = member_problem(&d->fenced.record, outcome, reply);

    return bad != PROBLEM_NONE || store_reply_is(reply, word) ? bad : PROBLEM_INTERNAL;
}

/* -- does it live, and is there such a one? */

static enum step look_ask(struct dead *d)
{
    d->fenced.keys = d->fenced.args = 0;
    fenced_add_key(&d->fenced, keys_stripe(d->fenced.stripe, 0));
    fenced_add(&d->fenced, bytes_of(d->id));
    fenced_add(&d->fenced, bytes_of(d->incarnation));
    fenced_add(&d->fenced, living(d));
    return dead_run(d, &script_gateway_look, 0, look_answer);
}

static void seen_take(struct dead *d, struct bytes incarnation)
{
    size_t len = is_id(incarnation) ? incarnation.len : 0;

    memcpy(d->seen, incarnation.at != NULL ? incarnation.at : "", len);
    d->seen[len] = '\0';
}

/* {"fresh" | "known" | "unknown", seq, ms, incarnation} */
static enum step look_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, fenced.record.store);
    enum problem bad = member_problem(&d->fenced.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    d->epoch = d->fenced.record.epoch;
    seen_take(d, store_reply_text(reply, 3));
    if (store_reply_is(reply, "unknown")) {
        return whose_ask(d);
    }
    if (store_reply_is(reply, "fresh")) {
        return d->is_forced ? dead_ask(d)
                            : lives_tell(d, store_reply_text(reply, 3), store_reply_integer(reply, 2), NULL);
    }
    return store_reply_is(reply, "known") ? dead_ask(d) : dead_refuse(d, PROBLEM_INTERNAL);
}

static enum step whose_ask(struct dead *d)
{
    d->fenced.keys = d->fenced.args = 0;
    fenced_add_key(&d->fenced, keys_stripe(d->fenced.stripe, d->stripe));
    fenced_add(&d->fenced, bytes_of(d->id));
    fenced_add(&d->fenced, bytes_of(d->incarnation));
    fenced_add(&d->fenced, (struct bytes){d->from, d->from_len});
    fenced_add(&d->fenced, BYTES("1000"));
    return dead_run(d, &script_intent_whose, d->stripe, whose_answer);
}

/* Where the stripe goes on, or the next one. */
static void from_take(struct dead *d, struct bytes from)
{
    d->from_len = from.len <= sizeof(d->from) ? from.len : 0;
    memcpy(d->from, from.at != NULL ? from.at : "", d->from_len);
    d->stripe += d->from_len == 0;
}

static enum step whose_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, fenced.record.store);
    enum problem bad = dead_told(d, outcome, reply, "whose");

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    if (store_reply_integer(reply, 2) == 1) {
        d->stripe = 0;
        d->from_len = 0;
        return dead_ask(d);
    }
    from_take(d, store_reply_text(reply, 3));
    if (d->stripe < STRIPES) {
        return whose_ask(d);
    }
    return http_refuse_detail(d->fenced.req, PROBLEM_NOT_FOUND,
                              "Nothing was changed: no gateway with this id (or no such incarnation of it) "
                              "is a member of the store, has a write open, or is in doubt. The ids are in "
                              "GET /v1/intents and GET /v1/gateways/doubt (pawl resolve), and in pawl store "
                              "status.");
}

/* -- its intents */

static enum step dead_ask(struct dead *d)
{
    dead_keys(d, d->stripe);
    fenced_add(&d->fenced, (struct bytes){d->from, d->from_len});
    fenced_add(&d->fenced, BYTES("100"));
    if (d->incarnation[0] != '\0') {
        fenced_add(&d->fenced, bytes_of(d->incarnation));
    } else {
        fenced_add(&d->fenced, BYTES("seen"));
        fenced_add(&d->fenced, bytes_of(d->seen));
    }
    return dead_run(d, &script_intent_takeover, d->stripe, dead_answer);
}

static enum step dead_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, fenced.record.store);
    enum problem bad = dead_told(d, outcome, reply, "taken");
    const struct store_reply *texts;

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    d->begun = true;
    texts = store_reply_list(reply, 2);
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        d->intents += bytes_are(intent_part(store_reply_text(texts, i), INTENT_STATE), "d");
    }
    from_take(d, store_reply_text(reply, 3));
    return d->stripe < STRIPES ? dead_ask(d) : doubt_ask(d);
}

/* -- what a store may have lost of it */

static enum step doubt_ask(struct dead *d)
{
    dead_keys(d, 0);
    fenced_add(&d->fenced, d->incarnation[0] != '\0' ? BYTES("these") : BYTES("all"));
    fenced_add(&d->fenced, bytes_of(d->incarnation[0] != '\0' ? d->incarnation : d->seen));
    return dead_run(d, &script_unreported_dead, 0, doubt_answer);
}

static enum step doubt_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, fenced.record.store);
    enum problem bad = dead_told(d, outcome, reply, "dead");
    const struct store_reply *dead = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;
    size_t before = d->in_doubt;

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    d->in_doubt = d->doubts = 0;
    for (size_t i = 0; dead != NULL && i < store_reply_count(dead); i++) {
        struct bytes one = store_reply_text(dead, i);
        bool is_meant = d->incarnation[0] == '\0' || bytes_are(one, d->incarnation);

        d->in_doubt += is_meant;
        if (is_meant && d->doubts < SETTLED_MAX && is_id(one)) {
            memcpy(d->doubt[d->doubts++], one.at, one.len);
        }
    }
    /* The second time and later: what did not become fewer never will. */
    if (d->settled > 0 && d->in_doubt >= before) {
        d->doubts = 0;
    }
    d->settled = 0;
    return settle_ask(d);
}

static enum step dead_tell(struct dead *d)
{
    struct json_out *json = http_json_begin(d->fenced.req);

    json_int(json, "intents", d->intents);
    json_int(json, "in_doubt", (int64_t)d->in_doubt);
    return http_json_end(d->fenced.req, 200);
}

static enum step settle_ask(struct dead *d)
{
    if (!d->is_settled || d->doubts == 0) {
        return dead_tell(d);
    }
    if (d->settled == d->doubts) {
        return doubt_ask(d); /* what is left? */
    }
    d->fenced.keys = d->fenced.args = 0;
    fenced_add_key(&d->fenced, keys_stripe(d->fenced.stripe, 0));
    fenced_add(&d->fenced, bytes_of(d->id));
    fenced_add(&d->fenced, bytes_of(d->doubt[d->settled]));
    fenced_add(&d->fenced, BYTES("")); /* whichever routes it had: nothing that went by them is under way */
    snprintf(d->fenced.number[0], FENCED_NUMBER_SIZE, "%lld", (long long)d->epoch);
    fenced_add(&d->fenced, bytes_of(d->fenced.number[0]));
    fenced_add(&d->fenced, BYTES("0"));
    return dead_run(d, &script_unreported_leave, 0, settle_answer);
}

static enum step settle_answer(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct dead *d = container_of(call, struct dead, fenced.record.store);
    enum problem bad = dead_told(d, outcome, reply, "left");

    if (bad != PROBLEM_NONE) {
        return dead_refuse(d, bad);
    }
    d->settled++;
    return settle_ask(d);
}
