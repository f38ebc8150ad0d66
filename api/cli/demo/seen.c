/* seen.c - what was observed while a part of a demo was played. */
#include "api/cli/demo/seen.h"

#include <string.h>

void seen_add(struct seen *seen, const struct seen_event *event)
{
    if (seen->count < SEEN_MAX) {
        seen->events[seen->count++] = *event;
    }
}

const struct seen_event *seen_find(const struct seen *seen, const char *label, const char *word)
{
    static const struct seen_event nothing = {.label = ""};

    for (size_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->events[i].label, label) == 0 && strcmp(seen->events[i].word, word) == 0) {
            return &seen->events[i];
        }
    }
    return &nothing;
}

bool seen_has(const struct seen *seen, const char *label, const char *word)
{
    return *seen_find(seen, label, word)->label != '\0';
}

bool seen_before(const struct seen *seen, const char *label, const char *word, const char *label_then,
                 const char *word_then)
{
    const struct seen_event *first = seen_find(seen, label, word);
    const struct seen_event *then = seen_find(seen, label_then, word_then);

    return *first->label != '\0' && *then->label != '\0' && first->at_ms <= then->at_ms;
}

bool seen_reads(const struct seen *seen, const char *label, const char *text)
{
    return seen_has(seen, label, "reads") && strcmp(seen_find(seen, label, "reads")->text, text) == 0;
}

bool seen_refused(const struct seen *seen, const char *label, int64_t status, const char *code)
{
    const struct seen_event *refused = seen_find(seen, label, "refused");

    return *refused->label != '\0' && refused->number == status && strcmp(refused->text, code) == 0 &&
           !seen_has(seen, label, "written");
}

bool seen_token_rose(const struct seen *seen, const char *label, const char *label_then)
{
    int64_t token = seen_find(seen, label, "granted")->number;
    int64_t token_then = seen_find(seen, label_then, "granted")->number;

    return token > 0 && token_then > token;
}

bool seen_both_held(const struct seen *seen, const char *label, const char *label_then)
{
    const struct seen_event *look = seen_find(seen, label, "holds");
    const struct seen_event *granted = seen_find(seen, label_then, "granted");

    return look->number > 0 && *granted->label != '\0' &&
           granted->at_ms < look->at_ms + (uint64_t)look->number;
}

bool seen_in_time(const struct seen *seen, const char *label)
{
    const struct seen_event *look = seen_find(seen, label, "holds"),
                            *written = seen_find(seen, label, "written");

    return look->number > 0 && *written->label != '\0' &&
           written->at_ms < look->at_ms + (uint64_t)look->number;
}

const char *seen_first_otherwise(const struct seen_check *checks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!checks[i].held) {
            return checks[i].otherwise;
        }
    }
    return NULL;
}
