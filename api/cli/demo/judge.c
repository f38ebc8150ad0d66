/* judge.c - the timeline of a part, and the checks that are evaluated on it. */
#include <stdlib.h>
#include <string.h>

#include "api/cli/demo/demo.h"

enum { STATUS_STALE = 412 };

void timeline_add(struct timeline *timeline, const struct timeline_event *event)
{
    if (timeline->count < TIMELINE_MAX)
        timeline->events[timeline->count++] = *event;
}

static bool event_is(const struct timeline_event *event, const char *name)
{
    size_t len = strlen(event->label);

    return strncmp(name, event->label, len) == 0 && name[len] == ':' &&
           strcmp(name + len + strlen(": "), event->word) == 0;
}

const struct timeline_event *timeline_find(const struct timeline *timeline, const char *name)
{
    for (size_t i = 0; i < timeline->count; i++)
        if (event_is(&timeline->events[i], name))
            return &timeline->events[i];
    return NULL;
}

static int64_t readers_between(const struct timeline *timeline, uint64_t from_ms, uint64_t to_ms)
{
    int64_t count = 0;

    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_event *event = &timeline->events[i];

        count += event_is(event, "reader: granted") && event->at_ms >= from_ms && event->at_ms <= to_ms;
    }
    return count;
}

static bool check_holds(const struct check *check, const struct timeline *timeline)
{
    const struct timeline_event *first = timeline_find(timeline, check->first);
    const struct timeline_event *then = check->then != NULL ? timeline_find(timeline, check->then) : NULL;
    bool both = first != NULL && then != NULL;
    uint64_t number = (uint64_t)check->number;

    switch (check->kind) {
    case CHECKS_END: return true;
    case HAPPENED: return first != NULL;
    case NEVER: return first == NULL;
    case BEFORE: return both && first->at_ms <= then->at_ms;
    case IN_TIME: return both && first->number > 0 && then->at_ms < first->at_ms + (uint64_t)first->number;
    case NUMBER_IS: return first != NULL && first->number == check->number;
    case NUMBER_MIN: return first != NULL && first->number >= check->number;
    case TEXT_IS: return first != NULL && strcmp(first->text, check->then) == 0;
    case STALE:
        return first != NULL && first->number == STATUS_STALE && strcmp(first->text, "stale-token") == 0 &&
               then == NULL;
    case TOKEN_ROSE: return both && first->number > 0 && then->number > first->number;
    case TTLS_LATER: return both && then->at_ms >= first->at_ms + number * timeline->ttl_ms;
    case SOON_AFTER: return both && then->at_ms <= first->at_ms + timeline->ttl_ms + number;
    case OVERWRITTEN: return both && first->number > 0 && then->number - first->number > check->number;
    case PASSED_BY: return both && readers_between(timeline, first->at_ms, then->at_ms) >= check->number;
    }
    abort();
}

const char *judge(const struct hazard_part *part, const struct timeline *timeline)
{
    for (const struct check *const *list = part->with.checks; *list != NULL; list++) {
        for (const struct check *check = *list; check->kind != CHECKS_END; check++)
            if (!check_holds(check, timeline))
                return check->otherwise;
    }
    return NULL;
}
