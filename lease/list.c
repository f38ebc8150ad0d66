/* list.c - GET /v1/leases: the leases in one state; GET /v1/sessions: the sessions that live, never a secret.
 * Page by page.
 *
 *   list_start           read the query and the cursor                400 | 422, or go on
 *   session_list_start   the same                                     400 | 422, or go on
 *   list_page            run the script on one stripe after the other; collect   suspended
 *   list_ended           send                                         200 | 503 | 504
 *
 * The order is (stripe, name or id), so what is in that state throughout stands at one place and is listed
 * exactly once. A cursor (shared/service/page.h) goes on behind the last name that was looked at. */
#include <stdio.h>

#include "lease/operation.h"
#include "lease/request.h"
#include "scripts.h"
#include "shared/member/walk.h"

/* SEARCH_SIZE: of what a search goes on with (lease/scripts/lib/lowest.lua), the scripts' last argument. */
enum { LIST_ARGS = 7, REMEMBER_AT = LEASE_KEYS + 1, SEARCH_SIZE = 21 + 1000 + 1 };

struct list {
    struct walk walk; /* from: page.after */
    struct http_request *req;
    struct page page;
    void (*put)(struct list *l, const struct store_reply *item); /* counts it; writes it, if it may be seen */
    bool has_begun;                                              /* the answer: what is in it is known */
    unsigned left_at; /* place in argv of how many are wanted still */
    char due[KEYS_STRIPE_SIZE], left[LEASE_NUMBER_SIZE], remember[LEASE_NUMBER_SIZE];
    char search[SEARCH_SIZE]; /* "": none goes on */
    struct bytes argv[LEASE_KEYS + LIST_ARGS + MEMBER_ARGS];
};

static enum problem list_begin(struct list *l, struct http_request *req, const struct page_kind *kind,
                               const char **detail)
{
    l->req = req;
    l->page.kind = kind;
    l->page.keys = worker_of(req)->keys;
    l->page.end = STRIPES;
    return page_read(&l->page, req, detail);
}

static enum step list_walk(struct list *l, const struct walk_plan *plan, unsigned args, unsigned left_at)
{
    enum problem bad;

    l->left_at = left_at;
    l->argv[REMEMBER_AT] = bytes_of_number(l->remember,
                                           (int64_t)worker_of(l->req)->service->settings.remember_ms);
    l->walk = (struct walk){.plan = plan, .line = member_line_of(l->req), .argv = l->argv, .args = args};
    walk_page(&l->walk, &l->page);
    bad = walk_begin(&l->walk);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(l->req, bad);
}

static void list_ask(struct walk *walk)
{
    struct list *l = container_of(walk, struct list, walk);

    l->argv[1] = keys_due(l->due, walk->stripe);
    l->argv[l->left_at] = bytes_of_number(l->left, l->page.limit - l->page.found);
    l->argv[walk->plan->keys + walk->args - 1] = bytes_of(l->search);
}

/* {"listed", seq, what to go on behind, {item, ...}, store time, of the search or ""} */
static bool list_page(struct walk *walk, const struct store_reply *reply)
{
    struct list *l = container_of(walk, struct list, walk);
    const struct store_reply *items = store_reply_list(reply, 3);
    struct bytes search = store_reply_text(reply, 5);

    snprintf(l->search, sizeof(l->search), "%.*s", (int)search.len, search.at);
    if (!l->has_begun) {
        json_int(http_json(l->req), "now_ms", store_reply_integer(reply, 4));
        json_list(http_json(l->req), "items");
        l->has_begun = true;
    }
    for (size_t i = 0; items != NULL && i < store_reply_count(items); i++)
        l->put(l, store_reply_list(items, i));
    return !page_is_full(&l->page);
}

static enum step list_ended(struct walk *walk, enum problem bad)
{
    struct list *l = container_of(walk, struct list, walk);

    return bad != PROBLEM_NONE ? http_refuse(l->req, bad) : walk_page_answer(walk, &l->page, l->req);
}

/* -- GET /v1/leases */

enum { HOLDER_SIZE = 129 };

struct lease_list {
    struct list list;
    char prefix[NAME_MAX_BYTES + 1], state[16], holder[HOLDER_SIZE];
};

static const char *const lease_names[] = {"prefix", "state", "holder", "limit", "cursor", NULL};
static const struct page_kind lease_kind = {
    .domain = "list-cursor",
    .after_max = NAME_MAX_BYTES,
    .query_names = lease_names,
    .wrong_query = "The query is prefix, state, holder, limit and cursor, each at most once; a prefix is the "
                   "beginning of a lease name, a holder 1 to 128 bytes.",
    .wrong_cursor = "The cursor is not one that this service gave for this prefix, state and holder.",
};

static const char *state_read(const struct http_request *req, char *state, size_t size)
{
    static const char *const states[] = {"held", "waiting", "delayed"};
    int len = http_query_text(req, lease_names, "state", state, size);

    if (len == -1)
        snprintf(state, size, "%s", states[0]);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(state, states[i]) == 0)
            return NULL;
    return "The query member state must be held, waiting or delayed.";
}

static enum problem list_read(struct lease_list *l, struct http_request *req, const char **detail)
{
    int holder_len = http_query_text(req, lease_names, "holder", l->holder, sizeof(l->holder));

    *detail = NULL;
    if (http_query_text(req, lease_names, "prefix", l->prefix, sizeof(l->prefix)) < -1 ||
        !name_is_prefix(bytes_of(l->prefix)) || holder_len < -1 || holder_len == 0)
        *detail = lease_kind.wrong_query;
    *detail = *detail != NULL ? *detail : state_read(req, l->state, sizeof(l->state));
    if (*detail != NULL)
        return PROBLEM_INVALID_REQUEST;
    snprintf(l->list.page.of, sizeof(l->list.page.of), "%s/%s/%s", l->prefix, l->state, l->holder);
    return list_begin(&l->list, req, &lease_kind, detail);
}

static void lease_put(struct list *l, const struct store_reply *item)
{
    struct bytes name = store_reply_text(item, 0);

    if (page_takes(&l->page, l->req, ACCESS_LOOK, name))
        look_write(l->req, name, item, 1);
}

enum step list_start(struct http_request *req)
{
    static const struct walk_plan plan = {&script_list, "listed",  LEASE_KEYS, LEASE_KEYS + 2, 2,
                                          list_ask,     list_page, list_ended};
    struct lease_list *l = HTTP_SCRATCH(req, struct lease_list);
    struct list *list = &l->list;
    const char *detail;
    enum problem bad = list_read(l, req, &detail);

    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    page_filter(&list->page, req, ACCESS_LOOK, bytes_of(l->prefix), false);
    http_json_begin(req);
    if (list->page.stripe == list->page.end) {
        json_list(http_json(req), "items"); /* no store was asked for its time */
        return page_answer(&list->page, req);
    }
    list->put = lease_put;
    list->argv[LEASE_KEYS] = bytes_of(l->prefix);
    list->argv[LEASE_KEYS + 4] = bytes_of(l->state);
    list->argv[LEASE_KEYS + 5] = bytes_of(l->holder);
    return list_walk(list, &plan, LIST_ARGS, LEASE_KEYS + 3);
}

/* -- GET /v1/sessions. With --access each identity sees its own and those of nobody; who may operate sees
 * all. */

enum { SESSION_LIST_ARGS = 4 };

/* {id, identity or "", holder, meta or "", ttl_ms, expires in ms, for how long it lives, leases, lost} */
static void session_put(struct list *l, const struct store_reply *item)
{
    struct json_out *json = http_json(l->req);
    struct bytes identity = store_reply_text(item, 1), meta = store_reply_text(item, 3);
    const char *asker = http_identity(l->req);
    bool sees_all = service_allows_some(l->req, ACCESS_OPERATE); /* by the rules of now, as page_takes() */
    bool sees = sees_all || identity.len == 0 || (asker != NULL && bytes_are(identity, asker));

    l->page.is_filtered |= !sees_all;
    l->page.found += sees;
    l->page.hidden += !sees;
    if (!sees)
        return;
    json_object(json, NULL);
    json_text(json, "session", store_reply_text(item, 0));
    json_text(json, "holder", store_reply_text(item, 2));
    lease_identity_write(json, worker_of(l->req), identity);
    json_int(json, "ttl_ms", store_reply_integer(item, 4));
    json_int(json, "expires_in_ms", store_reply_integer(item, 5));
    json_int(json, "open_for_ms", store_reply_integer(item, 6));
    json_int(json, "leases", store_reply_integer(item, 7));
    json_int(json, "lost", store_reply_integer(item, 8));
    json_raw(json, "meta", meta.len > 0 ? meta : BYTES("{}"));
    json_object_end(json);
}

enum step session_list_start(struct http_request *req)
{
    static const char *const query_names[] = {"limit", "cursor", NULL};
    static const struct page_kind kind = {
        .domain = "sessions-cursor",
        .after_max = REQUEST_SESSION_MAX,
        .query_names = query_names,
        .wrong_query = "The query is limit and cursor, each at most once.",
        .wrong_cursor = "The cursor is not one that this service gave for this list.",
    };
    static const struct walk_plan plan = {
        &script_session_list, "listed", LEASE_KEYS, LEASE_KEYS, 2, list_ask, list_page, list_ended};
    struct list *l = HTTP_SCRATCH(req, struct list);
    const char *detail;
    enum problem bad = list_begin(l, req, &kind, &detail);

    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    l->page.verb = ACCESS_LOOK;
    l->page.is_filtered = !service_allows_some(req, ACCESS_OPERATE);
    l->put = session_put;
    http_json_begin(req);
    return list_walk(l, &plan, SESSION_LIST_ARGS, LEASE_KEYS + 2);
}
