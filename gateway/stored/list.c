/* list.c - GET /v1/resources: what is stored, page by page.
 *
 *   resources_start   read the query and the cursor          400 | 422, or go on
 *   resources_ask     run resource_list.lua on one stripe    suspended
 *   resources_answer  collect; the next stripe, or tell      200 | 503 | 504
 *
 * The order is (stripe, key), so what is stored throughout is listed exactly once. A prefix with a slash
 * names its lease: then one stripe is asked. A cursor (shared/http/http.h) goes on behind the last key, which
 * it has in hexadecimal digits: a key may have any character. */
#include <stdio.h>

#include "gateway/fenced_call.h"
#include "scripts.h"
#include "shared/http/http.h"
#include "shared/text/ascii.h"

enum { ETAG_MAX = 64 };

struct resources {
    struct fenced_call fenced; /* text: the key after which to go on, or "" */
    struct page page;          /* of: the prefix */
    char left[FENCED_NUMBER_SIZE];
};

_Static_assert(PAGE_AFTER_MAX >= 2 * RESOURCE_KEY_MAX_BYTES && (int)PAGE_OF_MAX >= RESOURCE_KEY_MAX_BYTES,
               "a key fits into a cursor");

static enum step resources_ask(struct resources *r);
static store_done_fn resources_answer;

static const char *const query_names[] = {"prefix", "limit", "cursor", NULL};
static const struct page_kind resources_kind = {
    .domain = "resources-cursor",
    .query_names = query_names,
    .wrong_query =
        "The query is prefix, limit and cursor, each at most once; a prefix is the beginning of a resource "
        "key.",
    .wrong_cursor = "The cursor is not one that a gateway gave for this prefix.",
};

static enum problem resources_read(struct resources *r, const char **detail)
{
    struct http_request *req = r->fenced.req;
    const char *slash;

    *detail = resources_kind.wrong_query;
    if (page_query(req, &resources_kind, "prefix", r->page.of, RESOURCE_KEY_MAX_BYTES + 1) < -1) {
        return PROBLEM_INVALID_REQUEST;
    }
    slash = strchr(r->page.of, '/');
    r->page.kind = &resources_kind;
    r->page.keys = worker_of(req)->keys;
    if (slash != NULL) {
        r->page.stripe = keys_stripe_of((struct bytes){r->page.of, (size_t)(slash - r->page.of)});
    }
    r->page.end = slash != NULL ? r->page.stripe + 1 : STRIPES;
    return page_read(&r->page, req, detail);
}

/* Only of a cursor that was ours, or of what the store has said. */
static void after_take(struct resources *r)
{
    size_t len = strlen(r->page.after) / 2;

    for (size_t i = 0; i < len; i++) {
        const char *digits = r->page.after + 2 * i;
        r->fenced.text[i] = (char)(ascii_hex_value(digits[0]) * 16 + ascii_hex_value(digits[1]));
    }
    r->fenced.text[len] = '\0';
}

enum step resources_start(struct http_request *req)
{
    struct resources *r = HTTP_SCRATCH(req, struct resources);
    const char *detail;
    enum problem bad;

    r->fenced.req = req;
    bad = resources_read(r, &detail);
    if (bad != PROBLEM_NONE) {
        return http_refuse_detail(req, bad, detail);
    }
    after_take(r);
    json_list(http_json_begin(req), "items");
    return resources_ask(r);
}

static enum step resources_ask(struct resources *r)
{
    struct fenced_call *fenced = &r->fenced;
    enum problem bad;

    fenced->keys = fenced->args = 0;
    snprintf(fenced->resource_key, sizeof(fenced->resource_key), "pawl:{%02x}:r:", r->page.stripe);
    fenced_add_key(fenced, keys_stripe(fenced->stripe, r->page.stripe));
    fenced_add_key(fenced, bytes_of(fenced->resource_key));
    fenced_add(fenced, bytes_of(r->page.of));
    fenced_add(fenced, bytes_of(r->fenced.text));
    snprintf(r->left, sizeof(r->left), "%u", r->page.limit - r->page.found);
    fenced_add(fenced, bytes_of(r->left));
    fenced->record.store.done = resources_answer;
    bad = member_run(member_line_of(fenced->req), &fenced->record, r->page.stripe, &script_resource_list,
                     fenced->keys, fenced->keys + fenced->args, fenced->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(fenced->req, bad);
}

/* {key, bytes, ETag, Content-Type} */
static void resource_put(struct json_out *json, const struct store_reply *one)
{
    struct bytes key = store_reply_text(one, 0), tag = store_reply_text(one, 2);
    const char *slash = memchr(key.at, '/', key.len);
    char etag[ETAG_MAX];
    int len = snprintf(etag, sizeof(etag), "\"%.*s\"", (int)tag.len, tag.at);

    json_object(json, NULL);
    json_text(json, "resource", key);
    json_text(json, "lease", (struct bytes){key.at, slash != NULL ? (size_t)(slash - key.at) : key.len});
    json_int(json, "bytes", store_reply_integer(one, 1));
    json_text(json, "etag", (struct bytes){etag, (size_t)len < sizeof(etag) ? (size_t)len : 0});
    json_text(json, "content_type", store_reply_text(one, 3));
    json_object_end(json);
}

static enum step resources_answer(struct store_call *call, enum store_outcome outcome,
                                  const struct store_reply *reply)
{
    struct resources *r = container_of(call, struct resources, fenced.record.store);
    enum problem bad = member_problem(&r->fenced.record, outcome, reply);
    const struct store_reply *items = bad == PROBLEM_NONE ? store_reply_list(reply, 3) : NULL;
    struct bytes after;

    if (bad != PROBLEM_NONE || items == NULL || store_reply_text(reply, 2).len > RESOURCE_KEY_MAX_BYTES) {
        return http_refuse(r->fenced.req, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    for (size_t i = 0; i < store_reply_count(items); i++) {
        resource_put(http_json(r->fenced.req), store_reply_list(items, i));
        r->page.found++;
    }
    after = store_reply_text(reply, 2);
    r->page.after[0] = '\0';
    for (size_t i = 0; i < after.len; i++) {
        snprintf(r->page.after + 2 * i, 3, "%02x", (unsigned char)after.at[i]);
    }
    after_take(r);
    return page_is_whole(&r->page) ? page_answer(&r->page, r->fenced.req) : resources_ask(r);
}
