/* page.c - one page of a list: limit and cursor. */
#include <stdio.h>
#include <stdlib.h>

#include "shared/service/page.h"
#include "shared/service/service.h"

/* A page with only what is hidden ends after so much of it: one request does not walk through all. */
enum { HIDDEN_MAX = 10000 };

enum {
    TAG_CHARS = 16,
    AFTER_AT = 3 + TAG_CHARS + 1,
    CURSOR_SIZE = AFTER_AT + PAGE_AFTER_MAX + 1,
    TAGGED_SIZE = 3 + PAGE_AFTER_MAX + 1 + PAGE_OF_MAX + 1
};

int page_query(const struct http_request *req, const struct page_kind *kind, const char *name, char *buf,
               size_t size)
{
    int len = http_query(req).len > 0 ? http_query_get(req, kind->query_names, name, buf, size - 1) : -1;

    buf[len > 0 ? len : 0] = '\0';
    return len > 0 && strlen(buf) != (size_t)len ? -2 : len; /* %00 cuts no value short */
}

/* limit is 0 when it is outside its limits. */
static const char *limit_read(struct page *page, const struct http_request *req)
{
    char text[32];
    char *end = NULL;
    int len = page_query(req, page->kind, "limit", text, sizeof(text));
    unsigned long value;

    page->limit = PAGE_LIMIT_DEFAULT;
    if (len == -1)
        return NULL;
    if (len == -2)
        return page->kind->wrong_query;
    if (len == 0 || text[0] < '0' || text[0] > '9')
        return "The query member limit must be an integer.";
    value = strtoul(text, &end, 10);
    if (*end != '\0')
        return "The query member limit must be an integer.";
    page->limit = value <= PAGE_LIMIT_MAX ? (unsigned)value : 0;
    return NULL;
}

static struct bytes tagged_text(const struct page *page, char buf[TAGGED_SIZE])
{
    int len = snprintf(buf, TAGGED_SIZE, "%02x/%s/%s", page->stripe, page->after, page->of);

    return (struct bytes){buf, (size_t)len};
}

static const char *cursor_read(struct page *page, const struct http_request *req)
{
    char cursor[CURSOR_SIZE], text[TAGGED_SIZE];
    int len = page_query(req, page->kind, "cursor", cursor, sizeof(cursor));

    if (len == -1)
        return NULL;
    if (len < AFTER_AT || cursor[2] != '.' || cursor[AFTER_AT - 1] != '.')
        return page->kind->wrong_cursor;
    page->stripe = (unsigned)strtoul((char[]){cursor[0], cursor[1], '\0'}, NULL, 16);
    snprintf(page->after, sizeof(page->after), "%s", cursor + AFTER_AT);
    struct bytes tagged = tagged_text(page, text);
    bool good = token_tag_check(page->keys, page->kind->domain, tagged,
                                (struct bytes){cursor + 3, TAG_CHARS});
    return good && cursor[0] == text[0] && cursor[1] == text[1] ? NULL : page->kind->wrong_cursor;
}

enum problem page_read(struct page *page, const struct http_request *req, const char **detail)
{
    *detail = limit_read(page, req);
    *detail = *detail != NULL ? *detail : cursor_read(page, req);
    if (*detail != NULL)
        return PROBLEM_INVALID_REQUEST;
    if (page->limit == 0) {
        *detail = "The query member limit must be 1 to 1000.";
        return PROBLEM_OUT_OF_RANGE;
    }
    return PROBLEM_NONE;
}

void page_filter(struct page *page, const struct http_request *req, enum access_verb verb,
                 struct bytes prefix, bool is_whole_name)
{
    page->is_filtered = !(is_whole_name ? service_allows(req, verb, prefix)
                                        : service_covers(req, verb, prefix));
}

bool page_takes(struct page *page, const struct http_request *req, enum access_verb verb, struct bytes lease)
{
    bool takes = !page->is_filtered || service_allows(req, verb, lease);

    page->found += takes;
    page->hidden += !takes;
    return takes;
}

bool page_is_full(const struct page *page)
{
    return page->found >= page->limit || page->hidden >= HIDDEN_MAX;
}

bool page_is_whole(struct page *page)
{
    page->stripe += page->after[0] == '\0';
    return page->stripe == page->end || page_is_full(page);
}

enum step page_answer(const struct page *page, struct http_request *req)
{
    char cursor[CURSOR_SIZE], text[TAGGED_SIZE], tag[TAG_CHARS + 1];
    struct json_out *json = http_json(req);

    json_list_end(json);
    if (service_judges(req))
        json_bool(json, "filtered", page->is_filtered);
    if (page->stripe == page->end) {
        json_null(json, "next_cursor");
    } else {
        token_tag(page->keys, page->kind->domain, tagged_text(page, text), tag);
        snprintf(cursor, sizeof(cursor), "%02x.%s.%s", page->stripe, tag, page->after);
        json_text(json, "next_cursor", bytes_of(cursor));
    }
    return http_json_end(req, 200);
}
