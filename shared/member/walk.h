/* walk.h - one script on every stripe of the store, one after the other, each page by page.
 *
 *   walk_begin   the first page is asked for
 *   page()       a page has come: go on, or is that enough?
 *   ended()      all was walked, or enough; or what it failed with
 *
 * The owner embeds struct walk. When it has ended, stripe and from are where it would have gone on. */
#ifndef PAWL_SHARED_MEMBER_WALK_H
#define PAWL_SHARED_MEMBER_WALK_H

#include "shared/member/member.h"
#include "shared/service/page.h"
#include "shared/token/keys.h"

struct walk;

/* What all walks of one kind have in common. */
struct walk_plan {
    const struct store_script *script;
    const char *word; /* of a good reply: any other is PROBLEM_INTERNAL */
    unsigned keys;    /* the first is that of the stripe, and the walk's to fill in */
    unsigned from_at; /* place in argv of what a page begins behind, "": at the beginning of its stripe */
    size_t next_at;   /* place in a reply of what the next page begins behind, "": the stripe is done */
    void (*ask)(struct walk *walk); /* fills in what else of argv is another for each page; may be NULL */
    bool (*page)(struct walk *walk, const struct store_reply *reply);
    enum step (*ended)(struct walk *walk, enum problem bad);
};

struct walk {
    const struct walk_plan *plan;
    struct member_line *line;
    struct bytes *argv;   /* keys, then arguments, and room for MEMBER_ARGS more */
    unsigned args;        /* without the keys */
    unsigned stripe, end; /* end: the one behind the last */
    char *from;
    size_t from_size, from_len;
    /* the walk's own */
    struct member_call call;
    char key[KEYS_STRIPE_SIZE];
};

/* A walk from where the page begins to its end, by page->after; and, in ended(), the answer: the page goes on
 * where the walk would have. */
void walk_page(struct walk *walk, struct page *page);
enum step walk_page_answer(const struct walk *walk, struct page *page, struct http_request *req);

/* From stripe and from on. PROBLEM_NONE: ended() is called later; else nothing was asked, and it is not. */
enum problem walk_begin(struct walk *walk);

#endif
