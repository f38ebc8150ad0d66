/* resolve.c - GET /v1/intents/{lease}: what is being sent for a lease, or may be; POST
 * /v1/intents/{lease}/resolve: an operator knows how it ended.
 *
 *   intents_start    run intent_list.lua       400, or suspended
 *   intents_answer   tell                      200 | 503 | 504
 *   resolve_start    run intent_resolve.lua    400, or suspended
 *   resolve_answer   tell                      200 | 404 | 503 | 504 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/gate.h"
#include "gateway/intents.h"
#include "gateway_scripts.h"

enum { LIST_MAX = 1000, SEQ_MAX_CHARS = 16 };

struct resolve {
    struct gate_call gate;
    char id[SEQ_MAX_CHARS + 1];
    bool has_id;
};

static enum step intents_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply);
static enum step resolve_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply);

/* -- the list */

enum step intents_start(struct http_request *req)
{
    struct gate_call *gate = HTTP_SCRATCH(req, struct gate_call);
    const char *wrong = gate_init_lease(gate, req, http_path_part(req, 0));

    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    gate_add_key(gate, gate_stripe(gate));
    gate_add(gate, gate->lease);
    gate_add(gate, BYTES(""));
    gate_add(gate, BYTES("1000"));
    return gate_run(gate, &script_intent_list, intents_answer);
}

static const char *state_word(struct bytes state)
{
    switch (state.len == 1 ? state.at[0] : '\0') {
    case 'q': return "queued";
    case 's': return "sending";
    case 'u': return "unknown";
    case 'd': return "dead";
    default: return "?";
    }
}

static const char *kind_word(struct bytes kind)
{
    switch (kind.len > 0 ? kind.at[0] : '\0') {
    case 'o': return "ordered";
    case 'c':
    case 'k': return "committed";
    case 'a': return "admitted";
    default: return "?";
    }
}

static int64_t number_of(struct bytes text)
{
    char digits[32] = "";

    memcpy(digits, text.at, text.len < sizeof(digits) ? text.len : sizeof(digits) - 1);
    return strtoll(digits, NULL, 10);
}

static void intent_put(struct json_out *json, struct bytes text)
{
    char id[SEQ_MAX_CHARS + 8];
    int len = snprintf(id, sizeof(id), "%" PRId64, number_of(intent_part(text, INTENT_SEQ)));

    json_object(json, NULL);
    json_text(json, "id", (struct bytes){id, (size_t)len});
    json_text(json, "state", bytes_of(state_word(intent_part(text, INTENT_STATE))));
    json_text(json, "guarantee", bytes_of(kind_word(intent_part(text, INTENT_KIND))));
    json_int(json, "token", number_of(intent_part(text, INTENT_TOKEN)));
    json_int(json, "epoch", number_of(intent_part(text, INTENT_EPOCH)));
    json_text(json, "gateway", intent_part(text, INTENT_GATEWAY));
    json_text(json, "incarnation", intent_part(text, INTENT_INCARNATION));
    json_text(json, "request", intent_part(text, INTENT_ID));
    json_int(json, "at_ms", number_of(intent_part(text, INTENT_AT)));
    json_object_end(json);
}

static enum step intents_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct gate_call *gate = container_of(call, struct gate_call, record.store);
    enum problem bad = record_problem(&gate->record, outcome, reply);
    const struct store_reply *list = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;
    struct json_out *json;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "listed")) {
        return gate_fail(gate, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    json = http_json(gate->req);
    json_object(json, NULL);
    json_text(json, "lease", gate->lease);
    json_list(json, "items");
    for (size_t i = 0; list != NULL && i < store_reply_count(list); i++) {
        intent_put(json, store_reply_text(list, i));
    }
    json_list_end(json);
    json_object_end(json);
    http_reply_json(gate->req);
    return http_answer(gate->req, 200);
}

/* -- resolving */

static const char *id_read(struct resolve *r)
{
    static const char *const known[] = {"id", NULL};
    int len = http_query(r->gate.req).at != NULL
                  ? http_query_get(r->gate.req, known, "id", r->id, SEQ_MAX_CHARS)
                  : -1;

    r->has_id = len > 0;
    for (int i = 0; i < len; i++) {
        if (r->id[i] < '0' || r->id[i] > '9') {
            return "The id of an intent is a number, as the list of intents tells it.";
        }
    }
    if (len == -2 || len == 0 || (len == -1 && http_query(r->gate.req).len > 0)) {
        return "The only query known here is ?id=, once, with the id of an intent.";
    }
    return NULL;
}

enum step resolve_start(struct http_request *req)
{
    struct resolve *r = HTTP_SCRATCH(req, struct resolve);
    const char *wrong = gate_init_lease(&r->gate, req, http_path_part(req, 0));

    wrong = wrong != NULL ? wrong : id_read(r);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    gate_add_key(&r->gate, gate_stripe(&r->gate));
    gate_add(&r->gate, r->gate.lease);
    gate_add(&r->gate, bytes_of(r->id));
    return gate_run(&r->gate, &script_intent_resolve, resolve_answer);
}

/* {"resolved", seq, how many, {texts of those that are being sent}} */
static enum step resolve_answer(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct resolve *r = container_of(call, struct resolve, gate.record.store);
    enum problem bad = record_problem(&r->gate.record, outcome, reply);
    const struct store_reply *sending;
    struct json_out *json;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "resolved")) {
        return gate_fail(&r->gate, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    sending = store_reply_list(reply, 3);
    if (r->has_id && store_reply_integer(reply, 2) == 0 &&
        (sending == NULL || store_reply_count(sending) == 0)) {
        return http_refuse_detail(
            r->gate.req, PROBLEM_NOT_FOUND,
            "No intent of this lease has this id, or it is closed by now. Look at the list.");
    }
    json = http_json(r->gate.req);
    json_object(json, NULL);
    json_int(json, "resolved", store_reply_integer(reply, 2));
    json_int(json, "sending", sending != NULL ? (int64_t)store_reply_count(sending) : 0);
    json_object_end(json);
    http_reply_json(r->gate.req);
    return http_answer(r->gate.req, 200);
}
