/* list.c - GET /v1/leases: the leases in one state, page by page.
 *
 *   list_start   read the query and the cursor       400 | 422, or go on
 *   list_run     run list.lua on one stripe          suspended
 *   list_answer  collect; the next stripe, or send   200 | 503 | 504
 *
 * The order is (stripe, name), so a lease that is in that state throughout stands at one place and is listed
 * exactly once. A cursor (shared/http/http.h) goes on behind the last name that was looked at. */
#include <stdio.h>

#include "lease/operation.h"
#include "scripts.h"
#include "shared/service/page.h"

enum { LIST_ARGS = 6, HOLDER_SIZE = 129 };

struct list {
    struct member_call call;
    struct http_request *req;
    struct page page;
    bool has_begun; /* the answer: what is in it is known */
    char prefix[NAME_MAX_BYTES + 1], state[16], holder[HOLDER_SIZE];
    char keys[LEASE_KEYS][KEYS_STRIPE_SIZE];
    char left[LEASE_NUMBER_SIZE], remember[LEASE_NUMBER_SIZE];
    struct bytes argv[LEASE_KEYS + LIST_ARGS + MEMBER_ARGS];
};

static store_done_fn list_answer;

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

static enum step list_run(struct list *l)
{
    enum problem bad;

    l->argv[0] = keys_stripe(l->keys[0], l->page.stripe);
    l->argv[1] = keys_due(l->keys[1], l->page.stripe);
    l->argv[2] = bytes_of(l->prefix);
    l->argv[3] = bytes_of_number(l->remember, (int64_t)worker_of(l->req)->service->settings.remember_ms);
    l->argv[4] = bytes_of(l->page.after);
    l->argv[5] = bytes_of_number(l->left, l->page.limit - l->page.found);
    l->argv[6] = bytes_of(l->state);
    l->argv[7] = bytes_of(l->holder);
    l->call.store.done = list_answer;
    bad = member_run(member_line_of(l->req), &l->call, l->page.stripe, &script_list, LEASE_KEYS,
                     LEASE_KEYS + LIST_ARGS, l->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(l->req, bad);
}

static void list_collect(struct list *l, const struct store_reply *reply)
{
    const struct store_reply *items = store_reply_list(reply, 3);
    size_t count = items != NULL ? store_reply_count(items) : 0;

    if (!l->has_begun) {
        json_int(http_json(l->req), "now_ms", store_reply_integer(reply, 4));
        json_list(http_json(l->req), "items");
        l->has_begun = true;
    }

    for (size_t i = 0; i < count; i++) {
        const struct store_reply *item = store_reply_list(items, i);

        if (page_takes(&l->page, l->req, ACCESS_LOOK, store_reply_text(item, 0)))
            look_write(l->req, store_reply_text(item, 0), item, 1);
    }
}

static enum step list_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct list *l = container_of(call, struct list, call.store);
    enum problem bad = member_problem(&l->call, outcome, reply);
    struct bytes after;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "listed"))
        return http_refuse(l->req, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    after = store_reply_text(reply, 2);
    list_collect(l, reply);
    if (after.len > 0 && after.len < sizeof(l->page.after)) {
        memcpy(l->page.after, after.at, after.len);
        l->page.after[after.len] = '\0';
    } else {
        l->page.after[0] = '\0';
    }
    return page_is_whole(&l->page) ? page_answer(&l->page, l->req) : list_run(l);
}

enum step list_start(struct http_request *req)
{
    struct list *l = HTTP_SCRATCH(req, struct list);
    const char *detail;
    enum problem bad;
    struct json_out *json;

    l->req = req;
    bad = list_read(l, &detail);
    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    page_filter(&l->page, req, ACCESS_LOOK, bytes_of(l->prefix), false);
    json = http_json_begin(req);
    if (l->page.stripe < l->page.end)
        return list_run(l);
    json_list(json, "items"); /* no store was asked for its time */
    return page_answer(&l->page, req);
}
