/* session_list.c - GET /v1/sessions: the sessions that live, page by page, never a secret.
 *
 *   session_list_start   read the query and the cursor                400 | 422, or go on
 *   session_list_page    collect what session_list.lua says of one stripe; the next
 *   session_list_ended   send                                         200 | 503 | 504
 *
 * With --access each identity sees its own and those of nobody; who may operate sees all. */
#include <stdio.h>

#include "lease/operation.h"
#include "lease/request.h"
#include "scripts.h"
#include "shared/member/walk.h"

/* What a search goes on with: a cursor, and ids with a blank in front of each (session_list.lua). */
enum { SESSION_LIST_ARGS = 4, SESSION_SEARCH_SIZE = 24 + 48 * 23 };

struct session_list {
    struct walk walk; /* from: page.after */
    struct http_request *req;
    struct page page;
    bool has_begun;                   /* the answer: what is in it is known */
    char search[SESSION_SEARCH_SIZE]; /* "": none goes on */
    char due[KEYS_STRIPE_SIZE], left[LEASE_NUMBER_SIZE], remember[LEASE_NUMBER_SIZE];
    struct bytes argv[LEASE_KEYS + SESSION_LIST_ARGS + MEMBER_ARGS];
};

static void session_list_ask(struct walk *walk)
{
    struct session_list *l = container_of(walk, struct session_list, walk);

    l->argv[1] = keys_due(l->due, walk->stripe);
    l->argv[4] = bytes_of_number(l->left, l->page.limit - l->page.found);
    l->argv[5] = bytes_of(l->search);
}

/* {id, identity or "", holder, meta or "", ttl_ms, expires in ms, for how long it lives, leases, lost} */
static void session_put(struct session_list *l, const struct store_reply *item)
{
    struct json_out *json = http_json(l->req);
    struct bytes meta = store_reply_text(item, 3);

    json_object(json, NULL);
    json_text(json, "session", store_reply_text(item, 0));
    json_text(json, "holder", store_reply_text(item, 2));
    lease_identity_write(json, worker_of(l->req), store_reply_text(item, 1));
    json_int(json, "ttl_ms", store_reply_integer(item, 4));
    json_int(json, "expires_in_ms", store_reply_integer(item, 5));
    json_int(json, "open_for_ms", store_reply_integer(item, 6));
    json_int(json, "leases", store_reply_integer(item, 7));
    json_int(json, "lost", store_reply_integer(item, 8));
    json_raw(json, "meta", meta.len > 0 ? meta : BYTES("{}"));
    json_object_end(json);
}

/* {"listed", seq, what to go on behind, {item, ...}, store time, of the search or ""} */
static bool session_list_page(struct walk *walk, const struct store_reply *reply)
{
    struct session_list *l = container_of(walk, struct session_list, walk);
    const struct store_reply *items = store_reply_list(reply, 3);
    struct bytes search = store_reply_text(reply, 5), identity;
    const char *asker = http_identity(l->req);

    snprintf(l->search, sizeof(l->search), "%.*s", (int)search.len, search.at);
    if (!l->has_begun) {
        json_int(http_json(l->req), "now_ms", store_reply_integer(reply, 4));
        json_list(http_json(l->req), "items");
        l->has_begun = true;
    }
    for (size_t i = 0; items != NULL && i < store_reply_count(items); i++) {
        const struct store_reply *item = store_reply_list(items, i);
        bool sees;

        identity = store_reply_text(item, 1);
        sees = !l->page.is_filtered || identity.len == 0 || (asker != NULL && bytes_are(identity, asker));
        l->page.found += sees;
        l->page.hidden += !sees;
        if (sees)
            session_put(l, item);
    }
    return !page_is_full(&l->page);
}

static enum step session_list_ended(struct walk *walk, enum problem bad)
{
    struct session_list *l = container_of(walk, struct session_list, walk);

    return bad != PROBLEM_NONE ? http_refuse(l->req, bad) : walk_page_answer(walk, &l->page, l->req);
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
        &script_session_list, "listed",          LEASE_KEYS,        LEASE_KEYS, 2,
        session_list_ask,     session_list_page, session_list_ended};
    struct session_list *l = HTTP_SCRATCH(req, struct session_list);
    const char *detail;
    enum problem bad;

    l->req = req;
    l->page.kind = &kind;
    l->page.keys = worker_of(req)->keys;
    l->page.end = STRIPES;
    bad = page_read(&l->page, req, &detail);
    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    l->page.is_filtered = !service_allows_some(req, ACCESS_OPERATE);
    l->argv[3] = bytes_of_number(l->remember, (int64_t)worker_of(req)->service->settings.remember_ms);
    l->walk = (struct walk){
        .plan = &plan, .line = member_line_of(req), .argv = l->argv, .args = SESSION_LIST_ARGS};
    walk_page(&l->walk, &l->page);
    http_json_begin(req);
    bad = walk_begin(&l->walk);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(req, bad);
}
