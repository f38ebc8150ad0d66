/* list.c - GET /v1/intents and /v1/intents/{lease}: what is being sent, or may be, page by page; GET
 * /v1/gateways/doubt: who may have sent what the store has lost.
 *
 *   intents_all_start, intents_start   read the query and the cursor     400 | 422, or go on
 *   list_ask      run intent_list.lua on one stripe       suspended
 *   list_answer   collect; the next stripe, or tell       200 | 503 | 504
 *
 *   doubt_start   run gateways_in_doubt.lua               suspended
 *   doubt_answer  tell                                    200 | 503 | 504
 *
 * The order is that of the stripes, and in each that of intent_list.lua. A cursor (shared/http/http.h) goes
 * on behind the last intent that was told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/fenced_call.h"
#include "gateway/intent/intents.h"
#include "scripts.h"
#include "shared/http/http.h"

enum { ID_SIZE = 24, BEHIND_MAX = 256 };

struct list {
    struct fenced_call fenced;
    struct page page;
    bool is_all;
    char behind[BEHIND_MAX + 1], left[FENCED_NUMBER_SIZE];
};

static enum step list_start(struct list *l);
static enum step list_ask(struct list *l);
static store_done_fn list_answer;
static store_done_fn doubt_answer;

/* -- the query */

static const char *const query_names[] = {"limit", "cursor", NULL};
static const struct page_kind list_kind = {
    .domain = "intents-cursor",
    .query_names = query_names,
    .wrong_query = "The query is limit and cursor, each at most once.",
    .wrong_cursor = "The cursor is not one that a gateway gave for this list.",
};

enum step intents_all_start(struct http_request *req)
{
    struct list *l = HTTP_SCRATCH(req, struct list);

    l->fenced.req = req;
    l->is_all = true;
    return list_start(l);
}

enum step intents_start(struct http_request *req)
{
    struct list *l = HTTP_SCRATCH(req, struct list);
    const char *wrong = fenced_init_lease(&l->fenced, req, http_path_part(req, 0));

    return wrong != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong) : list_start(l);
}

static enum step list_start(struct list *l)
{
    struct http_request *req = l->fenced.req;
    const char *detail;
    enum problem bad;
    struct json_out *json;

    l->page.kind = &list_kind;
    l->page.keys = worker_of(req)->keys;
    l->page.stripe = l->is_all ? 0 : keys_stripe_of(l->fenced.lease);
    snprintf(l->page.of, sizeof(l->page.of), "%.*s", NAME_MAX_BYTES, l->is_all ? "" : l->fenced.text);
    bad = page_read(&l->page, req, &detail);
    if (bad != PROBLEM_NONE) {
        return http_refuse_detail(req, bad, detail);
    }
    l->page.end = l->is_all ? STRIPES : l->page.stripe + 1;
    json = http_json_begin(req);
    if (!l->is_all) {
        json_text(json, "lease", l->fenced.lease);
    }
    json_list(json, "items");
    return list_ask(l);
}

/* -- one stripe after the other */

/* What begins nothing and ends nothing: a list has no verdict, and of all there is no lease to name. */
static enum step list_fail(struct list *l, enum problem bad)
{
    return l->is_all ? http_refuse(l->fenced.req, bad) : fenced_fail(&l->fenced, bad);
}

/* In a cursor the parts have no space between them, which a query would have to encode. */
static void text_exchange(char *to, struct bytes text, char from, char with)
{
    for (size_t i = 0; i < text.len; i++) {
        to[i] = text.at[i] == from ? with : text.at[i];
    }
    to[text.len] = '\0';
}

static enum step list_ask(struct list *l)
{
    struct fenced_call *fenced = &l->fenced;
    enum problem bad;

    fenced->keys = fenced->args = 0;
    fenced_add_key(fenced, keys_stripe(fenced->stripe, l->page.stripe));
    fenced_add(fenced, fenced->lease);
    text_exchange(l->behind, bytes_of(l->page.after), '~', ' ');
    fenced_add(fenced, bytes_of(l->behind));
    snprintf(l->left, sizeof(l->left), "%u", l->page.limit - l->page.found);
    fenced_add(fenced, bytes_of(l->left));
    fenced->record.store.done = list_answer;
    bad = member_run(member_line_of(fenced->req), &fenced->record, l->page.stripe, &script_intent_list,
                     fenced->keys, fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : list_fail(l, bad);
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

/* One that stays open is of many requests: those whose end is unknown, or any. */
static void requests_put(struct json_out *json, struct bytes text)
{
    struct bytes kind = intent_part(text, INTENT_KIND), ids;

    if (kind.len < 2 || kind.at[1] != '~' || bytes_are(intent_part(text, INTENT_STATE), "q")) {
        json_text(json, "request", intent_part(text, INTENT_ID));
        return;
    }
    ids = (struct bytes){kind.at + 2, kind.len - 2};
    json_bool(json, "sticky", true);
    json_list(json, "requests");
    if (ids.len == 0) {
        json_text(json, NULL, BYTES("any write of this token through this gateway"));
    }
    while (ids.len > 0) {
        const char *comma = memchr(ids.at, ',', ids.len);
        size_t len = comma != NULL ? (size_t)(comma - ids.at) : ids.len;

        json_text(json, NULL, (struct bytes){ids.at, len});
        len += comma != NULL;
        ids = (struct bytes){ids.at + len, ids.len - len};
    }
    json_list_end(json);
}

static void intent_put(struct list *l, struct bytes text)
{
    struct json_out *json = http_json(l->fenced.req);
    char id[ID_SIZE];
    int len = snprintf(id, sizeof(id), "%" PRId64, number_of(intent_part(text, INTENT_SEQ)));

    json_object(json, NULL);
    if (l->is_all) {
        json_text(json, "lease", intent_part(text, INTENT_NAME));
    }
    json_text(json, "id", (struct bytes){id, (size_t)len});
    json_text(json, "state", bytes_of(state_word(intent_part(text, INTENT_STATE))));
    json_text(json, "guarantee", bytes_of(kind_word(intent_part(text, INTENT_KIND))));
    json_int(json, "token", number_of(intent_part(text, INTENT_TOKEN)));
    json_int(json, "epoch", number_of(intent_part(text, INTENT_EPOCH)));
    json_text(json, "gateway", intent_part(text, INTENT_GATEWAY));
    json_text(json, "incarnation", intent_part(text, INTENT_INCARNATION));
    requests_put(json, text);
    json_int(json, "at_ms", number_of(intent_part(text, INTENT_AT)));
    json_object_end(json);
}

/* {"listed", seq, what to go on behind, {texts}} */
static enum step list_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct list *l = container_of(call, struct list, fenced.record.store);
    enum problem bad = member_problem(&l->fenced.record, outcome, reply);
    const struct store_reply *texts = bad == PROBLEM_NONE ? store_reply_list(reply, 3) : NULL;
    struct bytes behind;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "listed")) {
        return list_fail(l, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        intent_put(l, store_reply_text(texts, i));
        l->page.found++;
    }
    behind = store_reply_text(reply, 2);
    if (behind.len > BEHIND_MAX) {
        return list_fail(l, PROBLEM_INTERNAL);
    }
    text_exchange(l->page.after, behind, ' ', '~');
    return page_is_whole(&l->page) ? page_answer(&l->page, l->fenced.req) : list_ask(l);
}

/* -- who is in doubt */

enum step doubt_start(struct http_request *req)
{
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    enum problem bad;

    fenced->req = req;
    fenced_add_key(fenced, keys_stripe(fenced->stripe, 0));
    fenced_add(fenced, BYTES("1000"));
    fenced->record.store.done = doubt_answer;
    bad = member_run(member_line_of(req), &fenced->record, 0, &script_gateways_in_doubt, fenced->keys,
                     fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(req, bad);
}

/* {"doubt", seq, how many, {{gateway, incarnation, state, since}, ...}} */
static enum step doubt_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct fenced_call *fenced = container_of(call, struct fenced_call, record.store);
    enum problem bad = member_problem(&fenced->record, outcome, reply);
    const struct store_reply *list = bad == PROBLEM_NONE ? store_reply_list(reply, 3) : NULL;
    struct json_out *json;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "doubt")) {
        return http_refuse(fenced->req, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    json = http_json_begin(fenced->req);
    json_int(json, "in_doubt", store_reply_integer(reply, 2));
    json_list(json, "gateways");
    for (size_t i = 0; list != NULL && i < store_reply_count(list); i++) {
        const struct store_reply *one = store_reply_list(list, i);
        struct bytes since = store_reply_text(one, 3);

        json_object(json, NULL);
        json_text(json, "gateway", store_reply_text(one, 0));
        json_text(json, "incarnation", store_reply_text(one, 1));
        json_text(json, "state", store_reply_text(one, 2));
        if (since.len > 0) {
            json_int(json, "since_ms", number_of(since));
        } else {
            json_null(json, "since_ms");
        }
        json_object_end(json);
    }
    json_list_end(json);
    return http_json_end(fenced->req, 200);
}
