/* seen.h - what was observed while a part of a demo was played, and the questions that its judge asks.
 *
 * Everything here is of processes that really did it: a line of a worker, a process that stood or ended, an
 * answer of Redis. Nothing is noted because it was meant to happen. The judges are pure functions of it. */
#ifndef PAWL_CLI_DEMO_SEEN_H
#define PAWL_CLI_DEMO_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEEN_MAX = 160, SEEN_WORD_SIZE = 16, SEEN_TEXT_SIZE = 64 };

struct seen_event {
    uint64_t at_ms;            /* of the monotonic clock, which all processes share */
    const char *label;         /* of the scene in which it happened: "A late" */
    char word[SEEN_WORD_SIZE]; /* worker.h and stage.h say which there are */
    int64_t number;
    char text[SEEN_TEXT_SIZE];
};

struct seen {
    unsigned ttl_ms; /* of the locks and leases of this part */
    size_t count;
    struct seen_event events[SEEN_MAX]; /* as they came; what goes beyond is dropped */
};

void seen_add(struct seen *seen, const struct seen_event *event);

/* The first of this word in the scene of this label; one that is all zero when there is none. */
const struct seen_event *seen_find(const struct seen *seen, const char *label, const char *word);
bool seen_has(const struct seen *seen, const char *label, const char *word);
/* Both happened, the first before the second. */
bool seen_before(const struct seen *seen, const char *label, const char *word, const char *label_then,
                 const char *word_then);
/* What was read there is this text, and nothing more or less. */
bool seen_reads(const struct seen *seen, const char *label, const char *text);
/* What was written there was refused with this status and code. */
bool seen_refused(const struct seen *seen, const char *label, int64_t status, const char *code);
/* The lease or lock was got in both scenes, in the second under the greater token. */
bool seen_token_rose(const struct seen *seen, const char *label, const char *label_then);
/* Who looked at its clock in the first scene found a hold that was still good, by that clock, when the lock
 * was got in the second: two holders. */
bool seen_both_held(const struct seen *seen, const char *label, const char *label_then);
/* What was written in this scene got through while the look at the clock in it was still good. */
bool seen_in_time(const struct seen *seen, const char *label);

/* One thing that must be so, and what is said if it is not. */
struct seen_check {
    bool held;
    const char *otherwise; /* a static sentence */
};

/* NULL: all are so; else the first sentence. */
const char *seen_first_otherwise(const struct seen_check *checks, size_t count);
#define SEEN_FIRST_OTHERWISE(checks) seen_first_otherwise((checks), sizeof(checks) / sizeof((checks)[0]))

#endif
