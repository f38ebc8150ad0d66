/* operator.c - what an operator asks and says of what gateways have sent on, and of their route table; and
 * what upstreams have answered to the last probes.
 *
 *   intents_all_start, intents_start   read the query and the cursor          400 | 422, or go on
 *   list_page        run intent_list.lua on one stripe after the other        suspended
 *   list_ended                                                                200 | 503 | 504
 *
 *   doubt_start      run gateways_in_doubt.lua                                suspended
 *   doubt_answers                                                             200 | 503 | 504
 *
 *   resolve_start    run intent_resolve.lua                                   400, or suspended
 *   resolve_answers  with force, and it is being sent: wait                   suspended, or
 *                                                                             200 | 400 | 404 | 503 | 504
 *   resolve_rings    its gateway may have closed the connection: again        504, or suspended
 *
 *   routes_start     which route table this gateway has                       200 | 404
 *   adopt_start      all gateways on this store are to serve it: run routes_adopt.lua   404, or suspended
 *   adopt_answers                                                             200 | 409 | 503 | 504 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/fenced_call.h"
#include "gateway/intent/intent.h"
#include "gateway/worker.h"
#include "scripts.h"
#include "shared/service/page.h"

enum { SEQ_MAX_CHARS = 16 };

/* -- what upstreams have answered to the last probes of this process (forward/look.c): for who looks at open
 * intents. In memory alone, and only the latest: nothing rests on it. */

/* Whose intent it is, and its number there; never that of another. */
static void probe_key(struct bytes text, char key[PROBE_KEY_SIZE])
{
    struct bytes gateway = intent_part(text, INTENT_GATEWAY), id = intent_part(text, INTENT_ID);
    struct bytes incarnation = intent_part(text, INTENT_INCARNATION);

    snprintf(key, PROBE_KEY_SIZE, "%.*s %.*s %.*s", (int)gateway.len, gateway.at, (int)incarnation.len,
             incarnation.at, (int)id.len, id.at);
}

/* The place of this intent; NULL: it was not probed, or too many others since. */
static struct probe *probe_find(struct probes *probes, const char *key)
{
    for (unsigned i = 0; i < PROBES_KEPT; i++)
        if (strcmp(probes->kept[i].key, key) == 0)
            return &probes->kept[i];
    return NULL;
}

void probes_note(struct probes *probes, struct bytes text, int64_t at_ms, const char *said)
{
    char key[PROBE_KEY_SIZE];
    struct probe *probe;

    probe_key(text, key);
    pthread_mutex_lock(&probes->mutex);
    probe = probe_find(probes, key);
    if (probe == NULL)
        probe = &probes->kept[probes->next++ % PROBES_KEPT];
    memcpy(probe->key, key, sizeof(key));
    probe->at_ms = at_ms;
    snprintf(probe->said, sizeof(probe->said), "%s", said);
    pthread_mutex_unlock(&probes->mutex);
}

void probes_write(struct probes *probes, struct bytes text, struct json_out *json)
{
    char key[PROBE_KEY_SIZE];
    const struct probe *probe;

    probe_key(text, key);
    pthread_mutex_lock(&probes->mutex);
    probe = probe_find(probes, key);
    if (probe == NULL) {
        json_null(json, "probe");
    } else {
        json_object(json, "probe");
        json_int(json, "at_ms", probe->at_ms);
        json_text(json, "said", bytes_of(probe->said));
        json_object_end(json);
    }
    pthread_mutex_unlock(&probes->mutex);
}

/* -- GET /v1/intents, /v1/intents/{lease}: what is being sent, or may be, page by page.
 *
 * The order is that of the stripes, and in each that of intent_list.lua. A cursor (shared/http/http.h) goes
 * on behind the last intent that was listed. */

struct list {
    struct fenced_call fenced; /* of all: no lease */
    struct page page;
    struct walk walk; /* from: page.after, with spaces */
};

/* In a cursor the parts have no space between them, which a query would have to encode. */
static void text_exchange(char *text, size_t len, char from, char with)
{
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == from ? with : text[i];
}

/* A letter, and what it means. */
static const char *const states[] = {"qqueued", "ssending", "uunknown", "ddead", NULL};
static const char *const kinds[] = {"oordered", "ccommitted", "kcommitted", "aadmitted", NULL};

static struct bytes letter_word(struct bytes text, const char *const *words)
{
    while (*words != NULL && (text.len == 0 || text.at[0] != **words))
        words++;
    return *words != NULL ? bytes_of(*words + 1) : BYTES("?");
}

static int64_t number_of(struct bytes text)
{
    return bytes_number(text, 18);
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
    if (ids.len == 0)
        json_text(json, NULL, BYTES("any write of this token through this gateway"));
    while (ids.len > 0)
        json_text(json, NULL, bytes_cut(&ids, ','));
    json_list_end(json);
}

static void intent_put(struct list *l, struct bytes text)
{
    struct json_out *json = http_json(l->fenced.req);
    char id[BYTES_NUMBER_SIZE];

    json_object(json, NULL);
    if (l->fenced.lease.len == 0)
        json_text(json, "lease", intent_part(text, INTENT_NAME));
    json_text(json, "id", bytes_of_number(id, number_of(intent_part(text, INTENT_SEQ))));
    json_text(json, "state", letter_word(intent_part(text, INTENT_STATE), states));
    json_text(json, "guarantee", letter_word(intent_part(text, INTENT_KIND), kinds));
    json_int(json, "token", number_of(intent_part(text, INTENT_TOKEN)));
    json_int(json, "epoch", number_of(intent_part(text, INTENT_EPOCH)));
    if (service_judges(l->fenced.req))
        json_text_or_null(json, "identity", intent_part(text, INTENT_IDENTITY));
    json_text(json, "gateway", intent_part(text, INTENT_GATEWAY));
    json_text(json, "incarnation", intent_part(text, INTENT_INCARNATION));
    requests_put(json, text);
    json_int(json, "at_ms", number_of(intent_part(text, INTENT_AT)));
    probes_write(&gateway_worker_of(l->fenced.req)->gateway->probes, text, json);
    json_object_end(json);
}

static void list_ask(struct walk *walk)
{
    struct list *l = container_of(walk, struct list, walk);

    l->fenced.argv[3] = bytes_of_number(l->fenced.number[0], l->page.limit - l->page.found);
}

/* {"listed", seq, what to go on behind, {texts}} */
static bool list_page(struct walk *walk, const struct store_reply *reply)
{
    struct list *l = container_of(walk, struct list, walk);
    const struct store_reply *texts = store_reply_list(reply, 3);

    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        struct bytes text = store_reply_text(texts, i);

        if (page_takes(&l->page, l->fenced.req, ACCESS_RESOLVE, intent_part(text, INTENT_NAME)))
            intent_put(l, text);
    }
    return !page_is_full(&l->page);
}

static enum step list_ended(struct walk *walk, enum problem bad)
{
    struct list *l = container_of(walk, struct list, walk);

    if (bad != PROBLEM_NONE)
        return fenced_fail(&l->fenced, bad);
    text_exchange(l->page.after, walk->from_len, ' ', '~');
    return walk_page_answer(walk, &l->page, l->fenced.req);
}

/* fenced.lease: of which lease; empty: of all. */
static enum step list_start(struct list *l)
{
    static const char *const query_names[] = {"limit", "cursor", NULL};
    static const struct page_kind kind = {
        .domain = "intents-cursor",
        .after_max = PAGE_AFTER_MAX,
        .query_names = query_names,
        .wrong_query = "The query is limit and cursor, each at most once.",
        .wrong_cursor = "The cursor is not one that a gateway gave for this list.",
    };
    static const struct walk_plan plan = {&script_intent_list, "listed",  1, 2, 2, list_ask,
                                          list_page,           list_ended};
    struct http_request *req = l->fenced.req;
    bool is_all = l->fenced.lease.len == 0;
    const char *detail;
    enum problem bad;

    l->page.kind = &kind;
    l->page.keys = worker_of(req)->keys;
    l->page.stripe = is_all ? 0 : keys_stripe_of(l->fenced.lease);
    snprintf(l->page.of, sizeof(l->page.of), "%s", l->fenced.text);
    bad = page_read(&l->page, req, &detail);
    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    page_filter(&l->page, req, ACCESS_RESOLVE, l->fenced.lease, !is_all);
    text_exchange(l->page.after, strlen(l->page.after), '~', ' ');
    l->page.end = is_all ? STRIPES : l->page.stripe + 1;
    walk_page(&l->walk, &l->page);
    fenced_begin(&l->fenced, l->page.stripe);
    fenced_add(&l->fenced, l->fenced.lease);
    fenced_add(&l->fenced, BYTES("")); /* the walk's */
    fenced_add(&l->fenced, BYTES("")); /* how many: list_ask() */
    struct json_out *json = http_json_begin(req);
    if (!is_all)
        json_text(json, "lease", l->fenced.lease);
    json_list(json, "items");
    return fenced_walk(&l->fenced, &l->walk, &plan);
}

enum step intents_all_start(struct http_request *req)
{
    struct list *l = HTTP_SCRATCH(req, struct list);

    l->fenced.req = req;
    return list_start(l);
}

enum step intents_start(struct http_request *req)
{
    struct list *l = HTTP_SCRATCH(req, struct list);
    const char *wrong = fenced_init_lease(&l->fenced, req, http_path_part(req, 0));

    return wrong != NULL ? http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong) : list_start(l);
}

/* -- GET /v1/gateways/doubt: which gateways may have sent what the store has lost */

/* {"doubt", seq, how many, {{gateway, incarnation, state, since}, ...}} */
static enum step doubt_tell(struct fenced_call *fenced, const struct store_reply *reply)
{
    const struct store_reply *list = store_reply_list(reply, 3);
    struct json_out *json = http_json_begin(fenced->req);

    json_int(json, "in_doubt", store_reply_integer(reply, 2));
    json_list(json, "gateways");
    for (size_t i = 0; list != NULL && i < store_reply_count(list); i++) {
        const struct store_reply *one = store_reply_list(list, i);

        json_object(json, NULL);
        json_text(json, "gateway", store_reply_text(one, 0));
        json_text(json, "incarnation", store_reply_text(one, 1));
        json_text(json, "state", store_reply_text(one, 2));
        json_int_or_null(json, "since_ms", number_of(store_reply_text(one, 3)), -1);
        json_object_end(json);
    }
    json_list_end(json);
    return http_json_end(fenced->req, 200);
}

enum step doubt_start(struct http_request *req)
{
    static const struct fenced_answer doubt_answers[] = {{"doubt", doubt_tell}, {NULL, NULL}};
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);

    fenced->req = req;
    fenced_begin(fenced, 0);
    fenced_add(fenced, BYTES("1000"));
    for (unsigned i = 0; i < 4; i++)
        fenced_add(fenced, BYTES("")); /* a request is of no gateway, and takes tokens of no store */
    return fenced_run(fenced, &script_gateways_in_doubt, doubt_answers);
}

/* -- POST /v1/intents/{lease}/resolve: an operator knows how what was sent has ended */

struct resolve {
    struct fenced_call fenced;
    char id[SEQ_MAX_CHARS + 1];
    bool has_id, forces;
    uint64_t until_ms; /* waits for the gateway that is sending; 0: not yet */
    struct alarm alarm;
};

static fenced_then_fn resolve_answer, resolve_several;

static const struct fenced_answer resolve_answers[] = {
    {"resolved", resolve_answer}, {"several", resolve_several}, {NULL, NULL}};

static const char *query_read(struct resolve *r)
{
    static const char *const known[] = {"id", "force", NULL};
    int len = http_query_text(r->fenced.req, known, "id", r->id, sizeof(r->id));
    bool is_flag = http_query_flag(r->fenced.req, known, "force", &r->forces);

    r->has_id = len > 0;
    for (int i = 0; i < len; i++)
        if (r->id[i] < '0' || r->id[i] > '9')
            return "The id of an intent is a number, as the list of intents tells it.";
    if (len == -2 || len == 0 || (len == -1 && http_query(r->fenced.req).len > 0) || !is_flag)
        return "The only query known here is ?id=, once, with the id of an intent, and with it force=true.";
    return NULL;
}

static enum step resolve_run(struct resolve *r)
{
    fenced_begin_lease(&r->fenced);
    fenced_add(&r->fenced, r->fenced.lease);
    fenced_add(&r->fenced, bytes_of(r->id));
    fenced_add(&r->fenced, r->forces ? BYTES("force") : BYTES(""));
    return fenced_run(&r->fenced, &script_intent_resolve, resolve_answers);
}

static void resolve_rings(struct alarm *alarm)
{
    static const char stopped[] =
        "The gateway that is sending it was asked to give it up, and may do so; you may not resolve it any "
        "more. Somebody who may has to look at the intent.";
    struct resolve *r = container_of(alarm, struct resolve, alarm);

    if (service_still_allows(r->fenced.req, ACCESS_RESOLVE, r->fenced.lease))
        resolve_run(r);
    else
        fenced_fail_detail(&r->fenced, PROBLEM_OUTCOME_UNKNOWN, stopped);
}

enum step resolve_start(struct http_request *req)
{
    struct resolve *r = HTTP_SCRATCH(req, struct resolve);
    const char *wrong = fenced_init_lease(&r->fenced, req, http_path_part(req, 0));

    wrong = wrong != NULL ? wrong : query_read(r);
    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    return resolve_run(r);
}

/* Whether there is time to ask once more. */
static bool resolve_waits(struct resolve *r)
{
    uint64_t now_ms = loop_now_ms();

    r->until_ms = r->until_ms > 0 ? r->until_ms : now_ms + GIVEN_UP_WAIT_MS;
    if (now_ms >= r->until_ms)
        return false;
    r->alarm = (struct alarm){.rings = resolve_rings};
    alarm_set(gateway_worker_of(r->fenced.req)->clock, &r->alarm, now_ms + GIVEN_UP_AGAIN_MS);
    return true;
}

/* {"several", seq} */
static enum step resolve_several(struct fenced_call *fenced, const struct store_reply *reply)
{
    (void)reply;
    return http_refuse_detail(fenced->req, PROBLEM_INVALID_REQUEST,
                              "Several open intents of this lease have this id, since the store was set "
                              "back. Nothing was resolved: "
                              "look at all of them, and then resolve without an id.");
}

/* {"resolved", seq, how many, {texts of those that are being sent}} */
static enum step resolve_answer(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct resolve *r = container_of(fenced, struct resolve, fenced);
    const struct store_reply *list = store_reply_list(reply, 3);
    int64_t resolved = store_reply_integer(reply, 2),
            sending = list != NULL ? (int64_t)store_reply_count(list) : 0;
    struct json_out *json;

    if (r->forces && sending > 0 && resolve_waits(r))
        return SUSPENDED;
    if (r->has_id && resolved == 0 && sending == 0) {
        if (r->until_ms == 0) {
            return http_refuse_detail(
                fenced->req, PROBLEM_NOT_FOUND,
                "No intent of this lease has this id, or it is closed by now. Look at the list.");
        }
        resolved = 1; /* it has ended meanwhile */
    }
    json = http_json_begin(fenced->req);
    json_int(json, "resolved", resolved);
    json_int(json, "sending", sending);
    return http_json_end(fenced->req, 200);
}

/* -- GET /v1/routes; POST /v1/routes/adopt */

static enum step routes_none(struct http_request *req)
{
    return http_refuse_detail(req, PROBLEM_NOT_FOUND,
                              "This gateway has no routes: it was started without --routes.");
}

enum step routes_start(struct http_request *req)
{
    const struct table_use *use = table_use_follow(gateway_worker_of(req));
    struct json_out *json;

    if (use == NULL)
        return routes_none(req);
    json = http_json_begin(req);
    json_text(json, "hash", bytes_of(use->table->hash));
    json_int(json, "routes", (int64_t)use->table->count);
    return http_json_end(req, 200);
}

/* {"open", seq, intents, gateways in doubt} */
static enum step adopt_refused(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct json_out *json = http_problem_begin(fenced->req, PROBLEM_INTENTS_OPEN, NULL);

    json_int(json, "intents", store_reply_integer(reply, 2));
    json_int(json, "gateways_in_doubt", store_reply_integer(reply, 3));
    return http_problem_end(fenced->req, 0);
}

/* {"adopted", seq, before} */
static enum step adopt_done(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct json_out *json = http_json_begin(fenced->req);

    json_text(json, "hash", fenced->argv[fenced->keys]);
    json_text(json, "before", store_reply_text(reply, 2));
    return http_json_end(fenced->req, 200);
}

enum step adopt_start(struct http_request *req)
{
    static const struct fenced_answer adopt_answers[] = {
        {"adopted", adopt_done}, /* 200 */
        {"open", adopt_refused}, /* 409 */
        {NULL, NULL},
    };
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    const struct table_use *use = table_use_follow(gateway_worker_of(req));

    if (use == NULL)
        return routes_none(req);
    fenced->req = req;
    fenced_begin(fenced, 0);
    fenced_add(fenced, bytes_of(use->table->hash));
    return fenced_run(fenced, &script_routes_adopt, adopt_answers);
}
