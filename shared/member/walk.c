/* walk.c - one script on every stripe of the store, one after the other, each page by page. */
#include "shared/member/walk.h"

static member_done_fn walk_answer;

enum problem walk_begin(struct walk *walk)
{
    const struct walk_plan *plan = walk->plan;

    walk->call.done = walk_answer;
    walk->argv[0] = keys_stripe(walk->key, walk->stripe);
    walk->argv[plan->from_at] = (struct bytes){walk->from, walk->from_len};
    if (plan->ask != NULL)
        plan->ask(walk);
    return member_run(walk->line, &walk->call, walk->stripe, plan->script, plan->keys,
                      plan->keys + walk->args, walk->argv);
}

/* Where the stripe goes on, or the next one. False: it is longer than anything that we know. */
static bool walk_go_on(struct walk *walk, struct bytes next)
{
    if (next.len > walk->from_size)
        return false;
    if (next.len > 0)
        memcpy(walk->from, next.at, next.len);
    walk->from_len = next.len;
    walk->stripe += next.len == 0;
    return true;
}

static enum step walk_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct walk *walk = container_of(call, struct walk, call);
    bool wants_more = false;

    if (bad == PROBLEM_NONE && !store_reply_is(reply, walk->plan->word))
        bad = PROBLEM_INTERNAL;
    if (bad == PROBLEM_NONE) {
        wants_more = walk->plan->page(walk, reply);
        bad = walk_go_on(walk, store_reply_text(reply, walk->plan->next_at)) ? PROBLEM_NONE
                                                                             : PROBLEM_INTERNAL;
    }
    if (bad == PROBLEM_NONE && wants_more && walk->stripe < walk->end) {
        bad = walk_begin(walk);
        if (bad == PROBLEM_NONE)
            return SUSPENDED;
    }
    return walk->plan->ended(walk, bad);
}

void walk_page(struct walk *walk, struct page *page)
{
    walk->stripe = page->stripe;
    walk->end = page->end;
    walk->from = page->after;
    walk->from_size = PAGE_AFTER_MAX;
    walk->from_len = strlen(page->after);
}

enum step walk_page_answer(const struct walk *walk, struct page *page, struct http_request *req)
{
    page->after[walk->from_len] = '\0';
    page->stripe = walk->stripe;
    return page_answer(page, req);
}
