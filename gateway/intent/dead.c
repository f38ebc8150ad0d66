/* dead.c - POST /v1/gateways/{id}/dead: an operator knows that a gateway is dead. ?incarnation= one of it,
 * else all but this very process; ?settled=true: and that nothing it had sent is still on its way to an
 * upstream; ?force=true: though its heartbeat is fresh.
 *
 *   dead_start       what is meant?                                    400 | 409, or go on
 *   look_ask         run gateway_look.lua: does it live?               409, or suspended
 *   take_begin       run intent_takeover.lua on each stripe, if it may  404, or suspended
 *   unreported_ask   may it still? run unreported_dead.lua             504, or suspended
 *   settle_ask       settled: unreported_leave.lua for each of those, SETTLED_MAX at a time; then
 *                    unreported_ask                                    200 | 503 | 504 */
#include "gateway/fenced_call.h"
#include "gateway/intent/intent.h"
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
    bool is_known;
    int64_t
        epoch; /* of the epoch in which it was looked at: what a later one finds unreported is not meant */
    int64_t intents;
    struct walk walk;
    size_t unreported;       /* of its incarnations that are meant, as unreported_dead.lua said last */
    unsigned named, settled; /* of these, the ones that are named below, and are settled */
    union {                  /* the walks end before anything is settled */
        char from[INTENT_TEXT_MAX];
        char name[SETTLED_MAX][MEMBER_ID_CHARS + 1];
    };
};

static fenced_then_fn look_answer;
static enum step take_begin(struct dead *d);
static enum step unreported_ask(struct dead *d);
static fenced_then_fn unreported_answer;
static enum step settle_ask(struct dead *d);
static fenced_then_fn settle_answer;

static const struct fenced_answer look_answers[] = {
    {"fresh", look_answer},   /* 409, or with force: go on */
    {"known", look_answer},   /* go on */
    {"unknown", look_answer}, /* go on, and see whether anything of it is open */
    {NULL, NULL},
};
static const struct fenced_answer unreported_answers[] = {{"dead", unreported_answer}, {NULL, NULL}};
static const struct fenced_answer settle_answers[] = {{"left", settle_answer}, {NULL, NULL}};

static bool is_id(struct bytes text)
{
    return text.len == MEMBER_ID_CHARS && ascii_is_word(text, BYTES("_-"));
}

static const char *dead_read(struct dead *d, struct http_request *req)
{
    static const char *const known[] = {"incarnation", "settled", "force", NULL};
    struct bytes id = http_path_part(req, 0);
    bool is_one = http_query_text(req, known, "incarnation", d->incarnation, sizeof(d->incarnation)) != -1;

    if (!is_id(id) || (is_one && !is_id(bytes_of(d->incarnation)))) {
        return "The id of a gateway, and of an incarnation of it, has 16 characters of A-Z, a-z, 0-9, '_' "
               "and '-', as "
               "the list of intents tells it.";
    }
    if (!http_query_flag(req, known, "settled", &d->is_settled) ||
        !http_query_flag(req, known, "force", &d->is_forced))
        return "The queries known here are ?incarnation=, ?settled=true and ?force=true.";
    memcpy(d->id, id.at, id.len);
    return NULL;
}

/* This very process lives: its incarnation, or "" when another gateway is meant. */
static struct bytes living(const struct dead *d)
{
    const struct gateway *gateway = gateway_of(worker_of(d->fenced.req)->service);

    return strcmp(d->id, gateway->id) == 0 ? bytes_of(gateway->incarnation) : BYTES("");
}

static enum step refuse_living(struct dead *d, struct bytes incarnation, int64_t heartbeat_ms,
                               const char *detail)
{
    struct json_out *json = http_problem_begin(d->fenced.req, PROBLEM_GATEWAY_LIVES, detail);

    json_text(json, "incarnation", incarnation);
    json_int(json, "pulse_ms", heartbeat_ms);
    return http_problem_end(d->fenced.req, 0);
}

/* What certainly did not happen is reported so only when no part of it has. */
static enum step dead_fail(struct fenced_call *fenced, enum problem bad)
{
    bool begun = container_of(fenced, struct dead, fenced)->begun;

    return fenced_fail(fenced, begun && bad != PROBLEM_INTERNAL ? PROBLEM_OUTCOME_UNKNOWN : bad);
}

/* The first two arguments: the gateway, and the incarnation of it that lives, or another. */
static void dead_begin(struct dead *d, struct bytes incarnation)
{
    fenced_begin(&d->fenced, 0);
    fenced_add(&d->fenced, bytes_of(d->id));
    fenced_add(&d->fenced, incarnation);
}

enum step dead_start(struct http_request *req)
{
    struct dead *d = HTTP_SCRATCH(req, struct dead);
    const char *wrong = dead_read(d, req);

    d->fenced.req = req;
    d->fenced.fail = dead_fail;
    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    if (d->incarnation[0] != '\0' && bytes_are(living(d), d->incarnation)) {
        return refuse_living(
            d, living(d), 0,
            "Nothing was changed: this incarnation is the very process that answers you. Stop "
            "it, then say so to another gateway.");
    }
    /* Does it live, and is there such a one? */
    dead_begin(d, bytes_of(d->incarnation));
    fenced_add(&d->fenced, living(d));
    return fenced_run(&d->fenced, &script_gateway_look, look_answers);
}

/* {"fresh" | "known" | "unknown", seq, ms, incarnation} */
static enum step look_answer(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct dead *d = container_of(fenced, struct dead, fenced);
    struct bytes incarnation = store_reply_text(reply, 3);

    d->epoch = fenced->record.epoch;
    d->is_known = !store_reply_is(reply, "unknown");
    if (is_id(incarnation))
        memcpy(d->seen, incarnation.at, incarnation.len);
    if (store_reply_is(reply, "fresh") && !d->is_forced)
        return refuse_living(d, incarnation, store_reply_integer(reply, 2), NULL);
    return take_begin(d);
}

/* -- its intents */

/* Whether its caller may still say so. */
static bool dead_may(const struct dead *d)
{
    return http_stands(d->fenced.req) && service_allows_some(d->fenced.req, ACCESS_OPERATE);
}

/* {"taken", seq, {texts of theirs that are open now}, where to go on, how many were taken out} */
static bool take_page(struct walk *walk, const struct store_reply *reply)
{
    struct dead *d = container_of(walk, struct dead, walk);
    const struct store_reply *texts = store_reply_list(reply, 2);

    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        struct bytes text = store_reply_text(texts, i);

        d->is_known |= d->incarnation[0] == '\0' ||
                       bytes_are(intent_part(text, INTENT_INCARNATION), d->incarnation);
        d->intents += bytes_are(intent_part(text, INTENT_STATE), "d");
    }
    d->is_known |= store_reply_integer(reply, 4) > 0;
    d->begun |= d->is_known;
    return dead_may(d);
}

static enum step take_ended(struct walk *walk, enum problem bad)
{
    struct dead *d = container_of(walk, struct dead, walk);

    if (bad != PROBLEM_NONE)
        return dead_fail(&d->fenced, bad);
    if (d->is_known || !dead_may(d))
        return unreported_ask(d);
    return http_refuse_detail(d->fenced.req, PROBLEM_NOT_FOUND,
                              "Nothing was changed: no gateway with this id (or no such incarnation of it) "
                              "is a member of the store, has a write open, or is in doubt. The ids are in "
                              "GET /v1/intents and GET /v1/gateways/doubt (pawl resolve), and in pawl store "
                              "status.");
}

static enum step take_begin(struct dead *d)
{
    static const struct walk_plan plan = {
        &script_intent_takeover, "taken", 1, 3, 3, NULL, take_page, take_ended};

    dead_begin(d, living(d));
    fenced_add(&d->fenced, BYTES("")); /* the walk's */
    fenced_add(&d->fenced, BYTES("100"));
    if (d->incarnation[0] != '\0') {
        fenced_add(&d->fenced, bytes_of(d->incarnation));
    } else {
        fenced_add(&d->fenced, BYTES("seen"));
        fenced_add(&d->fenced, bytes_of(d->seen));
    }
    d->walk = (struct walk){.end = STRIPES, .from = d->from, .from_size = sizeof(d->from)};
    return fenced_walk(&d->fenced, &d->walk, &plan);
}

/* -- what a store may have lost of it */

static enum step unreported_ask(struct dead *d)
{
    if (!dead_may(d))
        return dead_fail(&d->fenced, PROBLEM_OUTCOME_UNKNOWN);
    dead_begin(d, living(d));
    fenced_add(&d->fenced, d->incarnation[0] != '\0' ? BYTES("these") : BYTES("all"));
    fenced_add(&d->fenced, bytes_of(d->incarnation[0] != '\0' ? d->incarnation : d->seen));
    return fenced_run(&d->fenced, &script_unreported_dead, unreported_answers);
}

static enum step unreported_answer(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct dead *d = container_of(fenced, struct dead, fenced);
    const struct store_reply *dead = store_reply_list(reply, 2);
    size_t before = d->unreported;

    d->unreported = d->named = 0;
    for (size_t i = 0; dead != NULL && i < store_reply_count(dead); i++) {
        struct bytes one = store_reply_text(dead, i);
        bool is_meant = d->incarnation[0] == '\0' || bytes_are(one, d->incarnation);

        d->unreported += is_meant;
        if (is_meant && d->named < SETTLED_MAX && is_id(one)) {
            memcpy(d->name[d->named], one.at, one.len);
            d->name[d->named++][one.len] = '\0';
        }
    }
    /* The second time and later: what did not become fewer never will. */
    if (d->settled > 0 && d->unreported >= before)
        d->named = 0;
    d->settled = 0;
    return settle_ask(d);
}

static enum step settle_ask(struct dead *d)
{
    struct fenced_call *fenced = &d->fenced;

    if (!d->is_settled || d->named == 0) {
        struct json_out *json = http_json_begin(fenced->req);

        json_int(json, "intents", d->intents);
        json_int(json, "in_doubt", (int64_t)d->unreported);
        return http_json_end(fenced->req, 200);
    }
    if (d->settled == d->named || !dead_may(d))
        return unreported_ask(d); /* what is left? */
    dead_begin(d, bytes_of(d->name[d->settled]));
    fenced_add(fenced, BYTES("")); /* whichever routes it had: nothing that went by them is under way */
    fenced_add(fenced, bytes_of_number(fenced->number[0], d->epoch));
    fenced_add(fenced, BYTES("0"));
    return fenced_run(fenced, &script_unreported_leave, settle_answers);
}

static enum step settle_answer(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct dead *d = container_of(fenced, struct dead, fenced);

    (void)reply;
    d->settled++;
    return settle_ask(d);
}
