/* page.h - one page of a list that goes over the stripes of the store: how many items the client wants, and
 * the cursor by which it goes on: the stripe and what to go on behind, sealed (token_seal()) for this list,
 * what it is of, and whose it is. */
#ifndef PAWL_SHARED_PAGE_H
#define PAWL_SHARED_PAGE_H

#include "shared/access/access.h"
#include "shared/http/http.h"
#include "shared/token/token.h"

enum { PAGE_LIMIT_DEFAULT = 100, PAGE_LIMIT_MAX = 1000, PAGE_OF_MAX = 512, PAGE_AFTER_MAX = 1024 };

/* What all pages of one kind of list have in common. */
struct page_kind {
    const char *domain;             /* of the tags */
    const char *const *query_names; /* all that the route knows, limit and cursor among them */
    size_t after_max;               /* of what stands in a cursor, at most PAGE_AFTER_MAX */
    const char *wrong_query;        /* the sentences for a query that cannot be read, */
    const char *wrong_cursor;       /* and for a cursor that is none of ours */
};

struct page {
    const struct page_kind *kind;
    const struct token_keys *keys;
    unsigned limit, stripe;
    unsigned end, found;            /* end: the stripe behind the last; found: items so far */
    unsigned hidden;                /* items that the caller may not see, so far */
    bool is_filtered;               /* by the rules, whatever exists: page_filter() */
    unsigned char verb;             /* enum access_verb: what the rules are asked for: page_filter() */
    char of[PAGE_OF_MAX + 1];       /* what the list is of: a cursor is good for no other */
    char after[PAGE_AFTER_MAX + 1]; /* "": from the beginning of the stripe. No '/', and nothing that a query
                                       would have to encode */
};

/* Reads limit and cursor; kind, keys and of are set before. PROBLEM_NONE, or INVALID_REQUEST or OUT_OF_RANGE
 * and a static sentence. */
enum problem page_read(struct page *page, const struct http_request *req, const char **detail);
/* The caller sees only leases on which it may do this; prefix: of the names that were asked for.
 * is_whole_name: there is one. Where it sees none, the page is at its end, and answered at once. */
void page_filter(struct page *page, const struct http_request *req, enum access_verb verb,
                 struct bytes prefix, bool is_whole_name);
/* Counts an item; false: the caller may not see it. */
bool page_takes(struct page *page, const struct http_request *req, enum access_verb verb, struct bytes lease);
/* Whether it has all that it may have. */
bool page_is_full(const struct page *page);
/* Ends the list and the object that are open, with next_cursor in it, and answers 200; 403 if its credential
 * was taken out since. */
enum step page_answer(const struct page *page, struct http_request *req);

#endif
