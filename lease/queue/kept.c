/* kept.c - those who have left: the places in line that are kept for them, and what is granted to them here.
 *
 * A place is kept in the store, which knows no rules. When these change, the worker at which its client stood
 * takes it out, if its identity may not have the lease any more: else it would be offered, and keep others
 * waiting. */
#include <stdio.h>
#include <stdlib.h>

#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/text/memory.h"

enum { LEAVING_MAX = 256 }; /* at once */

struct kept_place {
    TAILQ_ENTRY(kept_place) entry;
    const char *identity;
    uint64_t until_ms;
    unsigned char name_len, lease_id_len, hold_len;
    char texts[]; /* name, lease_id, hold */
};

/* -- leave.lua, whose reply nobody waits for */

struct leaving {
    struct lease_call lease;
    struct worker *worker;
    char hold[TOKEN_HOLD_MAX + 1], keep[LEASE_NUMBER_SIZE];
};

static enum step leaving_done(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct leaving *one = container_of(call, struct leaving, lease.record);

    if (bad == PROBLEM_NONE && bytes_are(store_reply_text(reply, 2), "more"))
        handoff_more(lease_worker_from(one->worker)->handoff, one->lease.name);
    free(one);
    return ANSWERED;
}

static struct leaving *leaving_new(struct worker *worker, struct bytes name, struct bytes hold,
                                   int64_t keep_ms)
{
    struct leaving *one = must_have(calloc(1, sizeof(*one)));

    one->worker = worker;
    lease_call_fill(&one->lease, worker, name);
    snprintf(one->hold, sizeof(one->hold), "%.*s", (int)hold.len, hold.at);
    lease_call_arg(&one->lease, 4, bytes_of(one->hold));
    lease_call_arg(&one->lease, 5, grant_may(worker));
    lease_call_arg(&one->lease, 6, BYTES("gone"));
    lease_call_arg(&one->lease, 7, bytes_of_number(one->keep, keep_ms));
    return one;
}

static void leaving_send(struct leaving *one)
{
    if (lease_call_begin(&one->lease, one->worker, &script_leave, 7, leaving_done) != PROBLEM_NONE)
        free(one);
}

void kept_give_back(struct worker *worker, struct bytes name, const struct store_reply *reply)
{
    struct leaving *one = leaving_new(worker, name, store_reply_text(reply, 4),
                                      store_reply_integer(reply, WAIT_HANDED_KEEP));
    struct bytes id = store_reply_text(reply, WAIT_HANDED_ID);

    snprintf(one->lease.secret, sizeof(one->lease.secret), "%.*s", (int)id.len, id.at); /* its digest */
    lease_call_arg(&one->lease, 3, bytes_of(one->lease.secret));
    leaving_send(one);
}

/* -- the places that are kept */

static void kept_drop(struct kept_places *places, struct kept_place *place)
{
    TAILQ_REMOVE(&places->list, place, entry);
    places->count--;
    free(place);
}

/* None is kept for longer than PLACE_MS_MAX of line.lua: what is over stays no longer than that. */
static void kept_forget(struct kept_places *places, uint64_t until_ms)
{
    struct kept_place *first = TAILQ_FIRST(&places->list), *next;

    for (; first != NULL && first->until_ms <= until_ms; first = next) {
        next = TAILQ_NEXT(first, entry);
        kept_drop(places, first);
    }
}

void kept_add(struct worker *worker, const struct wait_request *request, uint64_t ms)
{
    struct lease_worker *own = lease_worker_from(worker);
    const struct bytes texts[] = {request->name, request->lease_id, request->hold};
    struct kept_place *place;
    char *to;

    if (own->may_have == NULL)
        return;
    kept_forget(&own->kept, loop_now_ms());
    if (own->kept.count == KEPT_MAX)
        kept_drop(&own->kept, TAILQ_FIRST(&own->kept.list));
    place = must_have(calloc(1, sizeof(*place) + texts[0].len + texts[1].len + texts[2].len));
    place->identity = request->identity;
    place->until_ms = loop_now_ms() + ms;
    place->name_len = (unsigned char)texts[0].len;
    place->lease_id_len = (unsigned char)texts[1].len;
    place->hold_len = (unsigned char)texts[2].len;
    to = place->texts;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        to = mempcpy(to, texts[i].at, texts[i].len);
    TAILQ_INSERT_TAIL(&own->kept.list, place, entry);
    own->kept.count++;
}

void kept_judge(struct worker *worker)
{
    struct lease_worker *own = lease_worker_from(worker);
    struct kept_place *place, *next;
    unsigned leaving = 0;

    kept_forget(&own->kept, loop_now_ms());
    for (place = TAILQ_FIRST(&own->kept.list); place != NULL && leaving < LEAVING_MAX; place = next) {
        struct bytes name = {place->texts, place->name_len}, id = {name.at + name.len, place->lease_id_len};
        struct leaving *one;

        next = TAILQ_NEXT(place, entry);
        if (own->may_have(worker, place->identity, name))
            continue;
        one = leaving_new(worker, name, (struct bytes){id.at + id.len, place->hold_len}, 0);
        lease_call_secret(&one->lease, id);
        leaving_send(one);
        leaving++;
        kept_drop(&own->kept, place);
    }
    own->kept.has_more = leaving == LEAVING_MAX;
}

void kept_free(struct kept_places *places)
{
    kept_forget(places, UINT64_MAX);
}
