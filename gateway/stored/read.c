/* read.c - what is read of the store: a resource, a list of them, a mark; and whether a token may act.
 *
 *   read_start        the request itself, then the token if there is one    400 | 403, or go on
 *   read_ask          run read.lua or read_fenced.lua                       suspended
 *   read_answers                                            200 | 304 | 403 | 404 | 412 | 503 | 504
 *
 *   resources_start   read the query and the cursor                         400 | 422, or go on
 *   resources_page    run resource_list.lua on one stripe after the other   suspended
 *   resources_ended                                                         200 | 503 | 504
 *
 *   mark_start        run mark.lua                                          400, or suspended
 *   mark_answers                                                            200 | 503 | 504
 *
 *   check_start       the request itself, then the token                    400 | 401 | 403, or go on
 *   check_ask         run check.lua                                         suspended
 *   check_answers                                                           200 | 403 | 503 | 504 */
#include <inttypes.h>
#include <stdio.h>

#include "gateway/fenced_call.h"
#include "gateway/precondition.h"
#include "gateway/stored/stored.h"
#include "gateway/worker.h"
#include "scripts.h"
#include "shared/service/page.h"
#include "shared/text/ascii.h"

enum { ETAG_MAX = 64 };

struct reading {
    struct fenced_call fenced;
    struct precondition precondition;
};

static enum step read_ask(struct reading *r);
static fenced_then_fn read_found, read_unchanged, read_missing;

static const struct fenced_answer read_answers[] = {
    {"found", read_found},         /* 200 */
    {"unchanged", read_unchanged}, /* 304 */
    {"missing", read_missing},     /* 404 */
    {NULL, fenced_refuse_stored},
};

enum step read_start(struct http_request *req)
{
    struct reading *r = HTTP_SCRATCH(req, struct reading);
    const char *wrong = fenced_init_resource(&r->fenced, req, http_path_part(req, 0));
    enum problem bad;

    wrong = wrong != NULL ? wrong : precondition_read(&r->precondition, req);
    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    if (!fenced_has_token(req))
        return read_ask(r);
    bad = fenced_read_token(&r->fenced);
    return bad != PROBLEM_NONE ? fenced_refuse(&r->fenced, bad) : read_ask(r);
}

static enum step read_ask(struct reading *r)
{
    struct fenced_call *fenced = &r->fenced;

    fenced_begin_lease(fenced);
    fenced_add_key(fenced, keys_resource(fenced->resource_key, fenced->lease, fenced->resource));
    if (fenced->claimed)
        fenced_add_fence(fenced);
    else
        fenced_add(fenced, fenced->lease);
    fenced_add(fenced, r->precondition.if_none_match);
    if (!fenced->claimed && fenced->by_mark)
        fenced_add(fenced, bytes_of(fenced->check));
    return fenced_run(fenced, fenced->claimed ? &script_read_fenced : &script_read, read_answers);
}

/* Whether what a hand may have put into Redis can stand in headers. */
static bool version_is_sound(const struct store_reply *reply)
{
    const struct bytes kept[] = {store_reply_text(reply, 4), store_reply_text(reply, 5)};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        for (size_t j = 0; j < kept[i].len; j++)
            if (kept[i].at[j] == '\0' || kept[i].at[j] == '\r')
                return false;
    return store_reply_text(reply, 3).len <= ETAG_MAX - sizeof("\"\"");
}

/* What every answer about a version says of it. */
static void read_headers(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct http_request *req = fenced->req;
    int64_t mark = store_reply_integer(reply, 2);
    struct bytes tag = store_reply_text(reply, 3);
    char text[ETAG_MAX];
    int len = snprintf(text, sizeof(text), "%" PRId64, mark);

    http_reply_header(req, "Fencing-Mark", (struct bytes){text, (size_t)len});
    if (tag.len > 0) {
        len = snprintf(text, sizeof(text), "\"%.*s\"", (int)tag.len, tag.at);
        http_reply_header(req, "ETag", (struct bytes){text, (size_t)len});
    }
    if (fenced->claimed)
        fenced_accept_stored(fenced, mark);
    worker_count(worker_of(req), fenced->claimed ? COUNT_READ_FENCED : COUNT_READ);
}

static enum step read_found(struct fenced_call *fenced, const struct store_reply *reply)
{
    struct http_request *req = fenced->req;
    struct bytes encoding = store_reply_text(reply, 5);

    if (!version_is_sound(reply))
        return fenced_fail(fenced, PROBLEM_STORE_NOT_OURS);
    read_headers(fenced, reply);
    http_reply_header(req, "Content-Type", store_reply_text(reply, 4));
    if (encoding.len > 0)
        http_reply_header(req, "Content-Encoding", encoding);
    /* What a client writes here is no page of this origin, whatever its type says. */
    http_reply_header(req, "X-Content-Type-Options", BYTES("nosniff"));
    http_reply_header(req, "Content-Security-Policy", BYTES("sandbox"));
    http_reply_body(req, NULL, store_reply_text(reply, 6));
    return http_answer(req, 200);
}

static enum step read_unchanged(struct fenced_call *fenced, const struct store_reply *reply)
{
    if (!version_is_sound(reply))
        return fenced_fail(fenced, PROBLEM_STORE_NOT_OURS);
    read_headers(fenced, reply);
    return http_answer(fenced->req, 304);
}

static enum step read_missing(struct fenced_call *fenced, const struct store_reply *reply)
{
    read_headers(fenced, reply);
    return http_refuse_detail(fenced->req, PROBLEM_NOT_FOUND, "There is no resource under this key.");
}

/* -- GET /v1/resources: what is stored, page by page.
 *
 * The order is (stripe, key), so what is stored throughout is listed exactly once. A prefix with a slash
 * names its lease: then one stripe is asked. A cursor (shared/http/http.h) goes on behind the last key, which
 * it has in hexadecimal digits: a key may have any character. */

struct resources {
    struct fenced_call fenced; /* text: the key after which to go on, or "" */
    struct page page;          /* of: the prefix */
    struct walk walk;
};

_Static_assert(PAGE_AFTER_MAX >= 2 * RESOURCE_KEY_MAX_BYTES && (int)PAGE_OF_MAX >= RESOURCE_KEY_MAX_BYTES,
               "a key fits into a cursor");

static const char *const query_names[] = {"prefix", "limit", "cursor", NULL};
static const struct page_kind resources_kind = {
    .domain = "resources-cursor",
    .after_max = 2 * RESOURCE_KEY_MAX_BYTES,
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
    if (http_query_text(req, query_names, "prefix", r->page.of, RESOURCE_KEY_MAX_BYTES + 1) < -1)
        return PROBLEM_INVALID_REQUEST;
    slash = strchr(r->page.of, '/');
    r->page.kind = &resources_kind;
    r->page.keys = worker_of(req)->keys;
    if (slash != NULL)
        r->page.stripe = keys_stripe_of((struct bytes){r->page.of, (size_t)(slash - r->page.of)});
    r->page.end = slash != NULL ? r->page.stripe + 1 : STRIPES;
    return page_read(&r->page, req, detail);
}

/* {key, bytes, ETag, Content-Type} */
static void resource_put(struct json_out *json, const struct store_reply *one)
{
    struct bytes key = store_reply_text(one, 0), rest = key, tag = store_reply_text(one, 2);
    char etag[ETAG_MAX];
    int len = snprintf(etag, sizeof(etag), "\"%.*s\"", (int)tag.len, tag.at);

    json_object(json, NULL);
    json_text(json, "resource", key);
    json_text(json, "lease", bytes_cut(&rest, '/'));
    json_int(json, "bytes", store_reply_integer(one, 1));
    json_text(json, "etag", (struct bytes){etag, (size_t)len < sizeof(etag) ? (size_t)len : 0});
    json_text(json, "content_type", store_reply_text(one, 3));
    json_object_end(json);
}

static void resources_ask(struct walk *walk)
{
    struct resources *r = container_of(walk, struct resources, walk);
    struct fenced_call *fenced = &r->fenced;

    snprintf(fenced->resource_key, sizeof(fenced->resource_key), "pawl:{%02x}:r:", walk->stripe);
    fenced->argv[1] = bytes_of(fenced->resource_key);
    fenced->argv[4] = bytes_of_number(fenced->number[0], r->page.limit - r->page.found);
}

static bool resources_page(struct walk *walk, const struct store_reply *reply)
{
    struct resources *r = container_of(walk, struct resources, walk);
    const struct store_reply *items = store_reply_list(reply, 3);

    for (size_t i = 0; items != NULL && i < store_reply_count(items); i++) {
        const struct store_reply *one = store_reply_list(items, i);
        struct bytes key = store_reply_text(one, 0);

        if (page_takes(&r->page, r->fenced.req, ACCESS_READ, bytes_cut(&key, '/')))
            resource_put(http_json(r->fenced.req), one);
    }
    return !page_is_full(&r->page);
}

static enum step resources_ended(struct walk *walk, enum problem bad)
{
    struct resources *r = container_of(walk, struct resources, walk);

    if (bad != PROBLEM_NONE)
        return fenced_fail(&r->fenced, bad);
    for (size_t i = 0; i < walk->from_len; i++)
        snprintf(r->page.after + 2 * i, 3, "%02x", (unsigned char)walk->from[i]);
    r->page.after[2 * walk->from_len] = '\0';
    r->page.stripe = walk->stripe;
    return page_answer(&r->page, r->fenced.req);
}

enum step resources_start(struct http_request *req)
{
    static const struct walk_plan plan = {&script_resource_list, "listed",       2, 3, 2, resources_ask,
                                          resources_page,        resources_ended};
    struct resources *r = HTTP_SCRATCH(req, struct resources);
    struct bytes prefix, name;
    const char *detail;
    enum problem bad;

    r->fenced.req = req;
    bad = resources_read(r, &detail);
    if (bad != PROBLEM_NONE)
        return http_refuse_detail(req, bad, detail);
    prefix = bytes_of(r->page.of);
    name = bytes_cut(&prefix, '/');
    page_filter(&r->page, req, ACCESS_READ, name, prefix.at != NULL);
    json_list(http_json_begin(req), "items");
    if (r->page.stripe == r->page.end)
        return page_answer(&r->page, req);
    r->walk = (struct walk){.stripe = r->page.stripe,
                            .end = r->page.end,
                            .from = r->fenced.text,
                            .from_size = RESOURCE_KEY_MAX_BYTES,
                            .from_len = strlen(r->page.after) / 2};
    for (size_t i = 0; i < r->walk.from_len; i++) { /* of a cursor that was ours */
        const char *digits = r->page.after + 2 * i;

        r->fenced.text[i] = (char)(ascii_hex_value(digits[0]) * 16 + ascii_hex_value(digits[1]));
    }
    fenced_begin(&r->fenced, r->page.stripe);
    fenced_add_key(&r->fenced, BYTES("")); /* this, the walk's, and how many: resources_ask() */
    fenced_add(&r->fenced, bytes_of(r->page.of));
    fenced_add(&r->fenced, BYTES(""));
    fenced_add(&r->fenced, BYTES(""));
    return fenced_walk(&r->fenced, &r->walk, &plan);
}

/* -- GET /v1/marks/{lease}: the highest token that was let through */

/* {"mark", seq, mark, epoch, token, resources, bytes} */
static enum step mark_tell(struct fenced_call *fenced, const struct store_reply *reply)
{
    static const char *const names[] = {"mark", "epoch", "token", "resources", "bytes"};
    struct json_out *json = http_json_begin(fenced->req);

    json_text(json, "lease", fenced->lease);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        json_int(json, names[i], store_reply_integer(reply, 2 + i));
    return http_json_end(fenced->req, 200);
}

enum step mark_start(struct http_request *req)
{
    static const struct fenced_answer mark_answers[] = {{"mark", mark_tell}, {NULL, NULL}};
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    const char *wrong = fenced_init_lease(fenced, req, http_path_part(req, 0));

    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    fenced_begin_lease(fenced);
    fenced_add(fenced, fenced->lease);
    return fenced_run(fenced, &script_mark, mark_answers);
}

/* -- any method, /v1/check/{lease}[/...]: may this token act? For a proxy that will do the deed itself.
 *
 * What is promised is only "admitted": the check and the deed are two steps. */

static fenced_then_fn check_accepted;

static const struct fenced_answer check_answers[] = {
    {"accepted", check_accepted}, /* 200 */
    {NULL, fenced_refuse_stored},
};

enum step check_start(struct http_request *req)
{
    struct fenced_call *fenced = HTTP_SCRATCH(req, struct fenced_call);
    struct bytes path = http_path_part(req, 0);
    const char *wrong = fenced_init_lease(fenced, req, bytes_cut(&path, '/'));
    enum problem bad;

    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    /* A proxy may append the path and the query of the request that it asks about (Envoy does): only its very
     * own member means something, and a stranger who sends it changes the number of a refusal, never the
     * verdict. */
    fenced->statuses = bytes_are(http_query(req), "deny=native") ? FENCED_NATIVE : FENCED_FORWARD_AUTH;
    bad = fenced_read_token(fenced);
    if (bad != PROBLEM_NONE)
        return fenced_refuse(fenced, bad);
    fenced_begin_lease(fenced);
    fenced_add_fence(fenced);
    return fenced_run(fenced, &script_check, check_answers);
}

static enum step check_accepted(struct fenced_call *fenced, const struct store_reply *reply)
{
    char text[FENCED_NUMBER_SIZE];

    fenced_accept(fenced, store_reply_integer(reply, 2),
                  fenced->by_mark ? "admitted;assumes=mark" : "admitted");
    http_reply_header(fenced->req, "Fencing-Token-Verified",
                      bytes_of_number(text, fenced->claim.token.number));
    worker_count(worker_of(fenced->req), COUNT_CHECKED);
    return http_answer(fenced->req, 200);
}
