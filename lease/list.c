/* list.c - GET /v1/leases: the leases in one state, page by page.
 *
 *   list_start   read the query and the cursor       400 | 422, or go on
 *   list_ask     run list.lua on one stripe          suspended
 *   list_answer  collect; the next stripe, or tell   200 | 503 | 504
 *
 * The order is (stripe, name), so a lease that is in that state throughout stands at one place and is listed
 * exactly once. A cursor is "SS.TAG.NAME": go on in stripe SS behind NAME; TAG proves that it is one of
 * ours, for this prefix and state. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lease/look.h"
#include "lease/operation.h"
#include "lease_scripts.h"

enum {
    LIST_ARGS = 5,
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
    TAG_CHARS = 16,
    CURSOR_NAME_AT = 3 + TAG_CHARS + 1
};

#define CURSOR_DOMAIN "list-cursor"

struct list {
    struct record_call call;
    struct http_request *req;
    unsigned stripe, limit, found;
    char prefix[NAME_MAX_BYTES + 1], after[NAME_MAX_BYTES + 1], state[16];
    char keys[3][KEYS_STRIPE_SIZE];
    char left[LEASE_NUMBER_SIZE], remember[LEASE_NUMBER_SIZE];
    struct bytes argv[LEASE_KEYS + LIST_ARGS + RECORD_ARGS];
};

static const char *list_read(struct list *l);
static enum step list_ask(struct list *l);
static enum step list_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply);
static enum step list_end(struct list *l, bool more);

/* -- the query */

static const char *const query_names[] = {"prefix", "state", "limit", "cursor", NULL};

static int query(struct list *l, const char *name, char *buf, size_t size)
{
    int len = http_query(l->req).len > 0 ? http_query_get(l->req, query_names, name, buf, size - 1) : -1;

    buf[len > 0 ? len : 0] = '\0';
    return len > 0 && strlen(buf) != (size_t)len ? -2 : len; /* %00 cuts no value short */
}

static const char *limit_read(struct list *l)
{
    char text[32];
    char *end = NULL;
    int len = query(l, "limit", text, sizeof(text));
    unsigned long value;

    l->limit = LIMIT_DEFAULT;
    if (len == -1) {
        return NULL;
    }
    if (len <= 0 || text[0] < '0' || text[0] > '9') {
        return "The query member limit must be an integer.";
    }
    value = strtoul(text, &end, 10);
    if (*end != '\0') {
        return "The query member limit must be an integer.";
    }
    l->limit = value <= LIMIT_MAX ? (unsigned)value : 0;
    return NULL;
}

static const char *state_read(struct list *l)
{
    static const char *const states[] = {"held", "waiting", "delayed"};
    int len = query(l, "state", l->state, sizeof(l->state));

    if (len == -1) {
        snprintf(l->state, sizeof(l->state), "%s", states[0]);
    }
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (strcmp(l->state, states[i]) == 0) {
            return NULL;
        }
    }
    return "The query member state must be held, waiting or delayed.";
}

static size_t cursor_text(const struct list *l, char *buf, size_t size)
{
    return (size_t)snprintf(buf, size, "%02x/%s/%s/%s", l->stripe, l->after, l->prefix, l->state);
}

static const char *cursor_read(struct list *l)
{
    static const char wrong[] = "The cursor is not one that this service gave for this prefix and state.";
    char cursor[CURSOR_NAME_AT + NAME_MAX_BYTES + 1], text[3 * NAME_MAX_BYTES];
    int len = query(l, "cursor", cursor, sizeof(cursor));

    if (len == -1) {
        return NULL;
    }
    if (len < CURSOR_NAME_AT || cursor[2] != '.' || cursor[CURSOR_NAME_AT - 1] != '.') {
        return wrong;
    }
    l->stripe = (unsigned)strtoul((char[]){cursor[0], cursor[1], '\0'}, NULL, 16);
    snprintf(l->after, sizeof(l->after), "%s", cursor + CURSOR_NAME_AT);
    struct bytes tagged = {text, cursor_text(l, text, sizeof(text))};
    bool good = token_tag_check(worker_of(l->req)->keys, CURSOR_DOMAIN, tagged,
                                (struct bytes){cursor + 3, TAG_CHARS});
    return good && cursor[0] == text[0] && cursor[1] == text[1] ? NULL : wrong;
}

static const char *list_read(struct list *l)
{
    const char *wrong = NULL;

    if (query(l, "prefix", l->prefix, sizeof(l->prefix)) < -1 || !name_is_prefix(bytes_of(l->prefix))) {
        wrong = "The query is prefix, state, limit and cursor, each at most once; a prefix is the beginning "
                "of a lease name.";
    }
    wrong = wrong != NULL ? wrong : state_read(l);
    wrong = wrong != NULL ? wrong : limit_read(l);
    return wrong != NULL ? wrong : cursor_read(l);
}

enum step list_start(struct http_request *req)
{
    struct list *l = HTTP_SCRATCH(req, struct list);
    const char *wrong;
    struct json_out *json = http_json(req);

    l->req = req;
    wrong = list_read(l);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    if (l->limit == 0) {
        return http_refuse_detail(req, PROBLEM_OUT_OF_RANGE, "The query member limit must be 1 to 1000.");
    }
    json_object(json, NULL);
    json_list(json, "items");
    return list_ask(l);
}

static enum step list_ask(struct list *l)
{
    uint64_t remember_ms = worker_of(l->req)->service->settings.remember_ms;
    enum problem bad;

    l->argv[0] = keys_stripe(l->keys[0], l->stripe);
    l->argv[1] = keys_due(l->keys[1], l->stripe);
    snprintf(l->keys[2], sizeof(l->keys[2]), "pawl:{%02x}:l:", l->stripe);
    l->argv[2] = bytes_of(l->keys[2]);
    l->argv[3] = bytes_of(l->prefix);
    snprintf(l->remember, sizeof(l->remember), "%" PRIu64, remember_ms);
    l->argv[4] = bytes_of(l->remember);
    l->argv[5] = bytes_of(l->after);
    snprintf(l->left, sizeof(l->left), "%u", l->limit - l->found);
    l->argv[6] = bytes_of(l->left);
    l->argv[7] = bytes_of(l->state);
    l->call.store.done = list_answer;
    bad = record_run(record_line_of(l->req), &l->call, l->stripe, &script_list, LEASE_KEYS,
                     LEASE_KEYS + LIST_ARGS, l->argv);
    return bad == PROBLEM_NONE ? SUSPENDED : http_refuse(l->req, bad);
}

static void list_collect(struct list *l, const struct store_reply *items)
{
    size_t count = items != NULL ? store_reply_count(items) : 0;

    for (size_t i = 0; i < count; i++) {
        const struct store_reply *item = store_reply_list(items, i);

        look_write(http_json(l->req), store_reply_text(item, 0), item, 1);
    }
    l->found += (unsigned)count;
}

static enum step list_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct list *l = container_of(call, struct list, call.store);
    enum problem bad = record_problem(&l->call, outcome, reply);
    struct bytes after;

    if (bad != PROBLEM_NONE || !store_reply_is(reply, "listed")) {
        return http_refuse(l->req, bad != PROBLEM_NONE ? bad : PROBLEM_INTERNAL);
    }
    after = store_reply_text(reply, 2);
    list_collect(l, store_reply_list(reply, 3));
    if (after.len > 0 && after.len < sizeof(l->after)) {
        memcpy(l->after, after.at, after.len);
        l->after[after.len] = '\0';
    } else {
        l->after[0] = '\0';
        l->stripe++;
    }
    if (l->stripe == STRIPES) {
        return list_end(l, false);
    }
    return l->found >= l->limit ? list_end(l, true) : list_ask(l);
}

static enum step list_end(struct list *l, bool more)
{
    struct json_out *json = http_json(l->req);
    char cursor[CURSOR_NAME_AT + NAME_MAX_BYTES + 1], text[3 * NAME_MAX_BYTES], tag[TAG_CHARS + 1];

    json_list_end(json);
    if (more) {
        struct bytes tagged = {text, cursor_text(l, text, sizeof(text))};

        token_tag(worker_of(l->req)->keys, CURSOR_DOMAIN, tagged, tag);
        snprintf(cursor, sizeof(cursor), "%02x.%s.%s", l->stripe, tag, l->after);
        json_text(json, "next_cursor", bytes_of(cursor));
    } else {
        json_null(json, "next_cursor");
    }
    json_object_end(json);
    http_reply_json(l->req);
    return http_answer(l->req, 200);
}
