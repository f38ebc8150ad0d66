/* overview_walk.c - how many leases are held, waited for, delayed, in doubt, and which are worth a look.
 *
 *   overview_walk_tick  somebody wants it, and it is time: from the first stripe on
 *   step_begin          a page of overview_walk.lua, at most 0.5 ms of Redis    suspended
 *   step_page           count it
 *   step_ended          the next page after a pause; all stripes are done: that is what others see */
#include "shared/member/overview_walk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "shared/member/walk.h"
#include "shared/text/memory.h"

/* PAUSE_MS: so a walk takes a tenth of Redis' time at most. */
enum { PAUSE_MS = 5, AGAIN_MS = 1000, FROM_SIZE = 1024, WALK_ARGS = 2 };
enum { REPLY_BEHIND = 2, REPLY_COUNTS, REPLY_TOP = REPLY_COUNTS + WALK_COUNTS, REPLY_LOOK };
enum { ITEM_KIND, ITEM_LEASE, ITEM_HOLDER, ITEM_MS, ITEM_CODE, ITEM_FIELDS };

struct overview_walk {
    struct walk walk;
    struct loop_timer timer;
    bool running, stopped;
    uint64_t due_ms;
    atomic_uint_fast64_t wanted_ms; /* when it was last looked at; 0: never */
    struct walk_found next;         /* so far */
    pthread_mutex_t mutex;
    struct walk_found found;
    char from[FROM_SIZE];
    struct bytes argv[WALK_ARGS + MEMBER_ARGS];
};

const char *walk_kind_name(enum walk_kind kind)
{
    static const char *const names[] = {[LOOK_IN_DOUBT] = "in-doubt",
                                        [LOOK_REFUSED] = "refused",
                                        [LOOK_WAITING] = "waiting",
                                        [LOOK_DELAYED] = "delayed"};

    return names[kind];
}

/* What was refused is worth it when it is new, all else when it lasts. */
static bool is_worth_more(enum walk_kind kind, int64_t ms, int64_t than_ms)
{
    return kind == LOOK_REFUSED ? ms < than_ms : ms > than_ms;
}

static void text_put(char *buf, size_t size, struct bytes text)
{
    snprintf(buf, size, "%.*s", (int)(text.len < size ? text.len : size - 1), text.len > 0 ? text.at : "");
}

/* A lease that came twice (ZSCAN) stands there once. */
static void look_keep(struct walk_found *found, enum walk_kind kind, const struct walk_look *one)
{
    struct walk_look *list = found->look[kind];
    unsigned at = found->looks[kind];

    for (unsigned i = 0; i < at; i++)
        if (strcmp(list[i].lease, one->lease) == 0)
            return;
    while (at > 0 && is_worth_more(kind, one->ms, list[at - 1].ms))
        at--;
    if (at == LOOK_KEPT)
        return;
    found->looks[kind] += found->looks[kind] < LOOK_KEPT;
    memmove(&list[at + 1], &list[at], (found->looks[kind] - at - 1) * sizeof(*list));
    list[at] = *one;
}

static void looks_take(struct walk_found *found, const struct store_reply *list)
{
    size_t count = list != NULL ? store_reply_count(list) : 0;

    for (size_t at = 0; at + ITEM_FIELDS <= count; at += ITEM_FIELDS) {
        struct walk_look one = {.ms = store_reply_integer(list, at + ITEM_MS)};
        enum walk_kind kind = 0;

        text_put(one.lease, sizeof(one.lease), store_reply_text(list, at + ITEM_LEASE));
        text_put(one.holder, sizeof(one.holder), store_reply_text(list, at + ITEM_HOLDER));
        text_put(one.code, sizeof(one.code), store_reply_text(list, at + ITEM_CODE));
        while (kind < LOOK_KINDS && !bytes_are(store_reply_text(list, at + ITEM_KIND), walk_kind_name(kind)))
            kind++;
        if (kind < LOOK_KINDS && one.ms >= 0)
            look_keep(found, kind, &one);
    }
}

/* -- step by step */

static bool is_wanted(const struct overview_walk *walk)
{
    uint64_t wanted_ms = atomic_load(&walk->wanted_ms);

    return !walk->stopped && wanted_ms > 0 && loop_now_ms() < wanted_ms + WALK_WANTED_MS;
}

static void step_begin(struct loop_timer *timer)
{
    struct overview_walk *walk = container_of(timer, struct overview_walk, timer);

    walk->running = is_wanted(walk) && walk_begin(&walk->walk) == PROBLEM_NONE;
}

static bool step_page(struct walk *steps, const struct store_reply *reply)
{
    struct overview_walk *walk = container_of(steps, struct overview_walk, walk);
    int64_t top = store_reply_integer(reply, REPLY_TOP);

    for (unsigned i = 0; i < WALK_COUNTS; i++)
        walk->next.count[i] += store_reply_integer(reply, REPLY_COUNTS + i);
    walk->next.top_token = top > walk->next.top_token ? top : walk->next.top_token;
    looks_take(&walk->next, store_reply_list(reply, REPLY_LOOK));
    return false;
}

static enum step step_ended(struct walk *steps, enum problem bad)
{
    struct overview_walk *walk = container_of(steps, struct overview_walk, walk);

    if (bad == PROBLEM_NONE && steps->stripe < steps->end && !walk->stopped) {
        loop_timer_arm(&walk->timer, PAUSE_MS, 0);
        return ANSWERED;
    }
    walk->running = false;
    walk->due_ms = loop_now_ms() + AGAIN_MS;
    if (bad == PROBLEM_NONE && steps->stripe == steps->end) {
        walk->next.at_ms = loop_now_ms();
        pthread_mutex_lock(&walk->mutex);
        walk->found = walk->next;
        pthread_mutex_unlock(&walk->mutex);
    }
    return ANSWERED;
}

void overview_walk_tick(struct overview_walk *walk)
{
    if (walk->running || !is_wanted(walk) || loop_now_ms() < walk->due_ms)
        return;
    walk->next = (struct walk_found){0};
    walk->walk.stripe = 0;
    walk->walk.from_len = 0;
    step_begin(&walk->timer);
}

void overview_walk_look(struct overview_walk *walk, struct walk_found *found)
{
    atomic_store(&walk->wanted_ms, loop_now_ms());
    pthread_mutex_lock(&walk->mutex);
    *found = walk->found;
    pthread_mutex_unlock(&walk->mutex);
}

/* -- its begin and end */

struct overview_walk *overview_walk_new(struct worker *first, struct member_line *line)
{
    static const struct walk_plan plan = {.script = &script_overview_walk,
                                          .word = "walked",
                                          .keys = 1,
                                          .from_at = 1,
                                          .next_at = REPLY_BEHIND,
                                          .page = step_page,
                                          .ended = step_ended};
    struct overview_walk *walk = must_have(calloc(1, sizeof(*walk)));

    walk->walk = (struct walk){.plan = &plan,
                               .line = line,
                               .argv = walk->argv,
                               .args = 1,
                               .end = STRIPES,
                               .from = walk->from,
                               .from_size = sizeof(walk->from)};
    pthread_mutex_init(&walk->mutex, NULL);
    loop_timer_init(first->loop, &walk->timer, step_begin);
    return walk;
}

void overview_walk_stop(struct overview_walk *walk)
{
    walk->stopped = true;
    loop_timer_done(&walk->timer);
}

void overview_walk_free(struct overview_walk *walk)
{
    if (walk != NULL)
        pthread_mutex_destroy(&walk->mutex);
    free(walk);
}
