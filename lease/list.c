/* list.c - GET /v1/leases: the leases in one state, page by page.
 *
 *   list_start   read the query and the cursor       400 | 422, or go on
 *   list_page    run list.lua on one stripe after the other; collect   suspended
 *   list_ended   send                                                  200 | 503 | 504
 *
 * The order is (stripe, name), so a lease that is in that state throughout stands at one place and is listed
 * exactly once. A cursor (shared/http/http.h) goes on behind the last name that was looked at. */
#include <stdio.h>

#include "lease/operation.h"
#include "scripts.h"
#include "shared/member/walk.h"

enum { LIST_ARGS = 6, HOLDER_SIZE = 129 };

struct list {
    struct walk walk; /* from: page.after */
    struct http_request *req;
    struct page page;
    bool has_begun; /* the answer: what is in it is known */
    char prefix[NAME_MAX_BYTES + 1], state[16], holder[HOLDER_SIZE];
    char due[KEYS_STRIPE_SIZE], left[LEASE_NUMBER_SIZE], remember[LEASE_NUMBER_SIZE];
    struct bytes argv[LEASE_KEYS + LIST_ARGS + MEMBER_ARGS];
};

/* -- the query */

static const char *const query_names[] = {"prefix", "state", "holder", "limit", "cursor", NULL};
static const struct page_kind list_kind = {
    .domain = "list-cursor",
    .after_max = NAME_MAX_BYTES,
    .query_names = query_names,
    .wrong_query = "The query is prefix, state, holder, limit and cursor, each at most once; a prefix is the "
                   "beginning of a lease name, a holder 1 to 128 bytes.",
    .wrong_cursor = "The cursor is not one that this service gave for this prefix, state and holder.",
};

static const char *state_read(struct list *l)
{
    static const char *const states[] = {"held", "waiting", "delayed"};
    int len = http_query_text(l->req, query_names, "state", l->state, sizeof(l->state));

    if (len == -1)
        snprintf(l->state, sizeof(l->state), "%s", states[0]);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(l->state, states[i]) == 0)
            return NULL;
    return "The query member state must be held, waiting or delayed.";
}

static enum problem list_read(struct list *l, const char **detail)
{
    int holder_len = http_query_text(l->req, query_names, "holder", l->holder, sizeof(l->holder));

    *detail = NULL;
    if (http_query_text(l->req, query_names, "prefix", l->prefix, sizeof(l->prefix)) < -1 ||
        !name_is_prefix(bytes_of(l->prefix)) || holder_len < -1 || holder_len == 0)
        *detail = list_kind.wrong_query;
    *detail = *detail != NULL ? *detail : state_read(l);
    if (*detail != NULL)
        return PROBLEM_INVALID_REQUEST;
    l->page.kind = &list_kind;
    l->page.keys = worker_of(l->req)->keys;
    snprintf(l->page.of, sizeof(l->page.of), "%s/%s/%s", l->prefix, l->state, l->holder);
    l->page.end = STRIPES;
    return page_read(&l->page, l->req, detail);
}

/* -- the walk */

static void list_ask(struct walk *walk)
{
    struct list *l = container_of(walk, struct list, walk);

    l->argv[1] = keys_due(l->due, walk->stripe);
    l->argv[5] = bytes_of_number(l->left, l->page.limit - l->page.found);
}

/* {"listed", seq, what to go on behind, {item, ...}, store time} */
static bool list_page(struct walk *walk, const struct store_reply *reply)
{
    struct list *l = container_of(walk, struct list, walk);
    const struct store_reply *items = store_reply_list(reply, 3);

    if (!l->has_begun) {
        json_int(http_json(l->req), "now_ms", store_reply_integer(reply, 4));
        json_list(http_json(l->req), "items");
        l->has_begun = true;
    }
    for (size_t i = 0; items != NULL && i < store_reply_count(items); i++) {
        const struct store_reply *item = store_reply_list(items, i);

        if (page_takes(&l->page, l->req, ACCESS_LOOK, store_reply_text(item, 0)))
            look_write(l->req, store_reply_text(item, 0), item, 1);
    }
    return !page_is_full(&l->page);
}

static enum step list_ended(struct walk *walk, enum problem bad)
{
    struct list *l = container_of(walk, struct list, walk);

    return bad != PROBLEM_NONE ? http_refuse(l->req, bad) : walk_page_answer(walk, &l->page, l->req);
}

enum step list_start(struct http_request *req)
{
    static const struct walk_plan plan = {&script_list, "listed",  LEASE_KEYS, 4, 2,
                                          list_ask,     list_page, list_ended};
    struct list *l = HTTP_SCRATCH(req, struct list);
    const char *detail;
    enum problem bad;

    l->req = req;
    bad = list_read(l, &detail);
    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    page_filter(&l->page, req, ACCESS_LOOK, bytes_of(l->prefix), false);
    http_json_begin(req);
    if (l->page.stripe == l->page.end) {
        json_list(http_json(req), "items"); /* no store was asked for its time */
        return page_answer(&l->page, req);
    }
    l->argv[2] = bytes_of(l->prefix);
    l->argv[3] = bytes_of_number(l->remember, (int64_t)worker_of(req)->service->settings.remember_ms);
    l->argv[6] = bytes_of(l->state);
    l->argv[7] = bytes_of(l->holder);
    l->walk = (struct walk){.plan = &plan, .line = member_line_of(req), .argv = l->argv, .args = LIST_ARGS};
    walk_page(&l->walk, &l->page);
    bad = walk_begin(&l->walk);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(req, bad);
}
