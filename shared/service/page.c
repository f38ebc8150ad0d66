/* page.c - one page of a list: limit and cursor. */
#include <stdio.h>
#include <stdlib.h>

#include "shared/service/page.h"
#include "shared/service/service.h"

/* A page with only what is hidden ends after so much of it: one request does not walk through all. */
enum { HIDDEN_MAX = 10000 };

enum {
    CURSOR_SIZE = TOKEN_SEALED_CHARS(1 + PAGE_AFTER_MAX) + 2,
    CONTEXT_SIZE = ACCESS_IDENTITY_MAX + 1 + PAGE_OF_MAX + 1
};

/* limit is 0 when it is outside its limits. */
static const char *limit_read(struct page *page, const struct http_request *req)
{
    char text[32];
    char *end = NULL;
    int len = http_query_text(req, page->kind->query_names, "limit", text, sizeof(text));
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

/* -- a cursor: it may be behind a name that its caller may not see, so it can be read by nobody, has always
 * the same length, and is good for its identity only */

static struct bytes sealed_context(const struct page *page, const struct http_request *req,
                                   char buf[CONTEXT_SIZE])
{
    const char *identity = http_identity(req);
    int len = snprintf(buf, CONTEXT_SIZE, "%s/%s", identity != NULL ? identity : "", page->of);

    return (struct bytes){buf, (size_t)len};
}

static bool cursor_open(struct page *page, const struct http_request *req, struct bytes cursor)
{
    char text[CONTEXT_SIZE];
    unsigned char plain[1 + PAGE_AFTER_MAX + 1];
    size_t len = 1 + page->kind->after_max;

    if (!token_open(page->keys, page->kind->domain, sealed_context(page, req, text), cursor, plain, len))
        return false;
    plain[len] = '\0';
    page->stripe = plain[0];
    snprintf(page->after, sizeof(page->after), "%s", (const char *)plain + 1);
    return true;
}

static void cursor_seal(const struct page *page, const struct http_request *req, char cursor[CURSOR_SIZE])
{
    char text[CONTEXT_SIZE], plain[1 + PAGE_AFTER_MAX] = {(char)page->stripe};

    memcpy(plain + 1, page->after, strlen(page->after));
    token_seal(page->keys, page->kind->domain, sealed_context(page, req, text),
               (struct bytes){plain, 1 + page->kind->after_max}, cursor);
}

static const char *cursor_read(struct page *page, const struct http_request *req)
{
    char cursor[CURSOR_SIZE];
    int len = http_query_text(req, page->kind->query_names, "cursor", cursor, sizeof(cursor));

    return len == -1 || (len >= 0 && cursor_open(page, req, (struct bytes){cursor, (size_t)len}))
               ? NULL
               : page->kind->wrong_cursor;
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
    page->verb = (unsigned char)verb;
    page->is_filtered = !(is_whole_name ? service_allows(req, verb, prefix)
                                        : service_covers(req, verb, prefix));
    if (page->is_filtered &&
        (is_whole_name || !access_reaches(worker_of(req)->access, http_identity(req), verb, prefix)))
        page->stripe = page->end; /* looking would take the longer the more there is */
}

bool page_takes(struct page *page, const struct http_request *req, enum access_verb verb, struct bytes lease)
{
    /* By the rules of now: they may be others than when it began. */
    bool takes = service_allows(req, verb, lease);

    page->found += takes;
    page->hidden += !takes;
    page->is_filtered |= !takes;
    return takes;
}

bool page_is_full(const struct page *page)
{
    return page->found >= page->limit || page->hidden >= HIDDEN_MAX;
}

enum step page_answer(const struct page *page, struct http_request *req)
{
    char cursor[CURSOR_SIZE];
    struct json_out *json = http_json(req);

    if (!http_stands(req))
        return service_forbid(req, (enum access_verb)page->verb, (struct bytes){NULL, 0});
    json_list_end(json);
    if (service_judges(req))
        json_bool(json, "filtered", page->is_filtered);
    if (page->stripe == page->end) {
        json_null(json, "next_cursor");
    } else {
        cursor_seal(page, req, cursor);
        json_text(json, "next_cursor", bytes_of(cursor));
    }
    return http_json_end(req, 200);
}
