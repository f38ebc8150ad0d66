/* drill_history.c - what the clients of a drill were told, in the order in which they were told it. */
#include "api/cli/drill_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cli/cli.h"

enum { FIRST_ROOM = 1 << 14 };

void drill_history_open(struct drill_history *history)
{
    pthread_condattr_t attributes;

    memset(history, 0, sizeof(*history));
    history->room = FIRST_ROOM;
    history->events = cli_alloc(history->room * sizeof(*history->events));
    pthread_mutex_init(&history->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* as cli_now_ms() */
    pthread_cond_init(&history->granted, &attributes);
    pthread_condattr_destroy(&attributes);
}

void drill_history_close(struct drill_history *history)
{
    pthread_cond_destroy(&history->granted);
    pthread_mutex_destroy(&history->lock);
    free(history->events);
    history->events = NULL;
}

static uint64_t next_of(struct drill_history *history, uint64_t *number)
{
    uint64_t next;

    pthread_mutex_lock(&history->lock);
    next = ++*number;
    pthread_mutex_unlock(&history->lock);
    return next;
}

uint64_t drill_history_place(struct drill_history *history)
{
    return next_of(history, &history->place);
}

uint64_t drill_history_new_hold(struct drill_history *history)
{
    return next_of(history, &history->holds);
}

uint64_t drill_history_new_value(struct drill_history *history)
{
    return next_of(history, &history->values);
}

/* With the lock. */
static void event_keep(struct drill_history *history, const struct drill_event *event)
{
    if (history->count == history->room) {
        history->room *= 2;
        history->events = cli_realloc(history->events, history->room * sizeof(*history->events));
    }
    history->events[history->count++] = *event;
}

void drill_history_tell(struct drill_history *history, struct drill_event *event)
{
    pthread_mutex_lock(&history->lock);
    event->told = ++history->place;
    event->told_ms = cli_now_ms();
    event_keep(history, event);
    if (event->kind == DRILL_ACQUIRE && event->end == DRILL_OK) {
        history->grants++;
        if (event->begun > history->last_grant_begun) {
            history->last_grant_begun = event->begun;
        }
        pthread_cond_broadcast(&history->granted);
    }
    pthread_mutex_unlock(&history->lock);
}

uint64_t drill_history_mark(struct drill_history *history, enum drill_event_kind kind)
{
    struct drill_event event = {.kind = kind, .end = DRILL_OK, .begun_ms = cli_now_ms()};

    pthread_mutex_lock(&history->lock);
    event.begun = event.told = ++history->place;
    event.told_ms = event.begun_ms;
    event_keep(history, &event);
    pthread_mutex_unlock(&history->lock);
    return event.told;
}

/* With the lock: when the first grant that was asked for after since was told. */
static uint64_t first_grant_ms(const struct drill_history *history, uint64_t since)
{
    uint64_t told_ms = 0;

    for (size_t i = history->count; i > 0 && history->events[i - 1].told > since; i--) {
        const struct drill_event *event = &history->events[i - 1];

        if (event->kind == DRILL_ACQUIRE && event->end == DRILL_OK && event->begun > since) {
            told_ms = event->told_ms;
        }
    }
    return told_ms;
}

uint64_t drill_history_await_grant(struct drill_history *history, uint64_t since, uint64_t until_ms)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * 1000000};
    uint64_t told_ms;
    int end = 0;

    pthread_mutex_lock(&history->lock);
    while (history->last_grant_begun <= since && end != ETIMEDOUT) {
        end = pthread_cond_timedwait(&history->granted, &history->lock, &until);
    }
    told_ms = first_grant_ms(history, since);
    pthread_mutex_unlock(&history->lock);
    return told_ms;
}

uint64_t drill_history_grants(struct drill_history *history)
{
    uint64_t grants;

    pthread_mutex_lock(&history->lock);
    grants = history->grants;
    pthread_mutex_unlock(&history->lock);
    return grants;
}
