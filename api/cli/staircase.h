/* staircase.h - the picture of a fence: time to the right, above a lane for each holder, below the token as
 * height.
 *
 * The stairs rise with every grant. A write with the present token lies on them; one with an older token lies
 * below, and whatever lies below the stairs is refused. */
#ifndef PAWL_CLI_STAIRCASE_H
#define PAWL_CLI_STAIRCASE_H

#include <stddef.h>
#include <stdint.h>

enum stair_event_kind {
    STAIR_GRANTED,   /* the holder got the token, and those that held before hold no more */
    STAIR_SHARED,    /* the holder got the token, beside others */
    STAIR_WAITING,   /* the holder wants it and does not have it */
    STAIR_STOPPED,   /* it falls silent */
    STAIR_CONTINUED, /* it is back; if another was granted meanwhile, it only believes that it holds */
    STAIR_ACCEPTED,  /* a write of it got through */
    STAIR_REFUSED,   /* a write of it did not, by which it knows that it is over */
    STAIR_RELEASED   /* it holds no more, and knows it */
};

struct stair_event {
    uint64_t at_ms; /* from the beginning; events are in this order */
    enum stair_event_kind kind;
    const char *holder; /* ASCII; the first few characters are shown */
    int64_t token;      /* of a grant or a write */
};

/* Whether there are tokens. Without them there are no stairs, and writes lie on the lanes. */
enum stair_ground { STAIR_STEPS, STAIR_FLAT };

enum stair_style { STAIR_PLAIN = 0, STAIR_UNICODE = 1, STAIR_COLOUR = 2 }; /* or'ed */

enum { STAIR_WIDTH_MIN = 60, STAIR_WIDTH_MAX = 200, STAIR_GRANTS_MAX = 8, STAIR_HOLDERS_MAX = 6 };

/* Lines of at most width places, without spaces at their ends. The text is the caller's to free. What goes
 * beyond the limits is left out; width is brought within them. */
char *staircase_draw(const struct stair_event *events, size_t count, unsigned width, unsigned style,
                     enum stair_ground ground);

#endif
