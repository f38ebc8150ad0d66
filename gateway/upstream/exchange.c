/* exchange.c - requests to the servers behind the gateway: begun, written to, broken off.
 *
 * None of these calls the owner back: what it is to be told is told at the end of the turn, or from the
 * loop. */
#include <assert.h>

#include "gateway/upstream/upstream_internal.h"

void upstream_begin(struct upstream_pool *pool, struct upstream_call *call,
                    const struct upstream_request *request)
{
    struct upstream_link *link;

    assert(!pool->freed);
    link = upstream_pool_take(pool, request);
    if (link == NULL) {
        link = uplink_new(pool);
    }
    pool->calls++;
    call->link = link;
    link->call = call;
    uplink_put_request(link, request);
    if (link->state == UPLINK_IDLE) {
        uplink_reuse(link);
    } else {
        uplink_dial(link);
    }
    uplink_watch(link);
    if (link->state == UPLINK_OVER) {
        uplink_due(link);
    }
}

/* What takes no more of the request lets all that comes pass: the owner is told the end, or has been. */
static bool takes_no_more(const struct upstream_link *link)
{
    return link == NULL || link->state == UPLINK_OVER || link->state == UPLINK_LISTENING ||
           link->state == UPLINK_IDLE;
}

size_t upstream_write(struct upstream_call *call, struct bytes piece)
{
    struct upstream_link *link = call->link;
    size_t unsent, room;
    struct bytes taken;

    if (takes_no_more(link)) {
        return piece.len;
    }
    unsent = uplink_unsent(link);
    room = unsent < UPSTREAM_UNSENT_MAX ? UPSTREAM_UNSENT_MAX - unsent : 0;
    taken = (struct bytes){piece.at, piece.len < room ? piece.len : room};
    uplink_put_body(link, taken);
    link->wants_room = taken.len < piece.len;
    uplink_due(link);
    return taken.len;
}

void upstream_body_end(struct upstream_call *call)
{
    if (!takes_no_more(call->link)) {
        uplink_put_body_end(call->link);
        uplink_due(call->link);
    }
}

void upstream_more(struct upstream_call *call)
{
    struct upstream_link *link = call->link;

    if (link != NULL && uplink_is_open(link) && link->taking == UPLINK_PAUSED) {
        link->taking = UPLINK_RESUMES;
        uplink_due(link);
    }
}

void upstream_abort(struct upstream_call *call)
{
    struct upstream_link *link = call->link;

    if (link != NULL && link->state != UPLINK_OVER && link->state != UPLINK_IDLE) {
        uplink_broken(link, "it was broken off");
        uplink_due(link);
    }
}

bool upstream_has_sent(const struct upstream_call *call)
{
    return uplink_has_sent(call->link);
}
