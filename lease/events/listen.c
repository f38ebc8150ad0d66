/* listen.c - the store publishes what happens to leases only while somebody listens.
 *
 *   listen_ask      run listen.lua: now, and LISTEN_AGAIN_MS after it was confirmed
 *   listen_answer   it stands; or ask again soon */
#include "lease/events/listen.h"

#include <stdio.h>

#include "scripts.h"

static void listen_ask(struct listen *listen);
static void listen_again(struct loop_timer *timer);
static enum step listen_answer(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply);

void listen_init(struct listen *listen, struct loop *loop, struct member_line *line)
{
    listen->line = line;
    loop_timer_init(loop, &listen->timer, listen_again);
    listen->argv[0] = keys_stripe(listen->stripe, 0);
    listen->argv[1] = bytes_of_number(listen->ms, LISTEN_MS);
}

void listen_stop(struct listen *listen)
{
    listen_leave(listen);
    listen->is_stopped = true;
    loop_timer_done(&listen->timer);
}

bool listen_want(struct listen *listen)
{
    listen->wanted = !listen->is_stopped;
    if (listen->wanted && listen->until == 0 && !listen->asked) {
        listen_ask(listen);
    }
    return listen->until > 0;
}

void listen_leave(struct listen *listen)
{
    listen->wanted = false;
    listen_forget(listen);
}

void listen_forget(struct listen *listen)
{
    listen->until = 0;
    listen->is_stale = listen->asked;
    loop_timer_disarm(&listen->timer);
}

static void listen_ask(struct listen *listen)
{
    listen->call.store.done = listen_answer;
    listen->is_stale = false;
    listen->asked = member_run(listen->line, &listen->call, 0, &script_listen, 1, 2, listen->argv) ==
                    PROBLEM_NONE;
    if (!listen->asked) {
        loop_timer_arm(&listen->timer, LISTEN_RETRY_MS, 0);
    }
}

static void listen_again(struct loop_timer *timer)
{
    struct listen *listen = container_of(timer, struct listen, timer);

    if (listen->wanted && !listen->asked) {
        listen_ask(listen);
    }
}

/* {"listens", seq, until before, now, until, noted} */
static void listen_confirmed(struct listen *listen, const struct store_reply *reply)
{
    int64_t before = store_reply_integer(reply, 2), now = store_reply_integer(reply, 3);
    struct bytes noted = store_reply_text(reply, 5);
    bool has_gap = listen->until > 0 &&
                   (before < listen->until || now > listen->until || !bytes_are(noted, listen->noted));

    listen->until = store_reply_integer(reply, 4);
    snprintf(listen->noted, sizeof(listen->noted), "%.*s", (int)noted.len, noted.at);
    loop_timer_arm(&listen->timer, LISTEN_AGAIN_MS, 0);
    if (has_gap) {
        listen->missed(listen);
    }
    if (listen->until > 0) { /* whoever was told that he missed something may have been the last */
        listen->stands(listen);
    }
}

static enum step listen_answer(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct listen *listen = container_of(call, struct listen, call.store);
    enum problem bad = member_problem(&listen->call, outcome, reply);

    listen->asked = false;
    if (!listen->wanted) {
        return ANSWERED;
    }
    if (bad == PROBLEM_NONE && store_reply_is(reply, "listens") && !listen->is_stale) {
        listen_confirmed(listen, reply);
    } else if (bad == PROBLEM_NONE && store_reply_is(reply, "off") && !listen->is_stale) {
        listen_leave(listen);
        listen->off(listen);
    } else {
        loop_timer_arm(&listen->timer, listen->is_stale ? 0 : LISTEN_RETRY_MS, 0);
    }
    return ANSWERED;
}
