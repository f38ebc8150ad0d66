/* intent_closer.h - closes intents in the store (intents.h): one for each worker.
 *
 * What ends is gathered for 2 ms, or until there are as many as one call takes; then it goes out, however
 * many calls are under way: what closes must not fall behind what opens, else the list grows, and newer
 * holders wait. A call that fails, or whose end is not known, is made again 50 ms later: closing twice does
 * no harm. */
#ifndef PAWL_GATEWAY_CLOSER_H
#define PAWL_GATEWAY_CLOSER_H

#include "gateway/intent/intents.h"
#include "shared/loop/loop.h"

enum { CLOSE_MAX = 32 };

struct intent_closer {
    struct intents *intents;
    struct member_line *line;
    struct loop *loop;
    /* Called when intents of a lease have been closed in the store: who waits for it may look. May be NULL.
     */
    void (*closed)(struct intent_closer *closer, struct bytes lease);
    struct loop_timer timer; /* to go on */
    struct loop_hook hook;   /* all of a turn go out together */
    struct intent *first, **end;
    struct intent *later, **later_end; /* to be forgotten once more */
    unsigned waiting, in_flight;       /* intents in the line; calls */
    bool stopped;
    bool gathers; /* the timer runs for that */
    bool rests;   /* the timer runs, since a call could not be made or did not succeed */
    bool hurries; /* at the end of this turn */
};

void intent_closer_init(struct intent_closer *closer, struct loop *loop, struct member_line *line,
                        struct intents *intents);
/* Nothing is tried again; what is open stays open in the store. */
void intent_closer_stop(struct intent_closer *closer);
/* Whether all that was given to it is done. */
bool intent_closer_is_idle(const struct intent_closer *closer);

/* Its end; it is the closer's from now on. */
void intent_end(struct intent_closer *closer, struct intent *intent, enum intent_word word);
/* What was ended in this turn is closed at its end, alone if need be: somebody who waited has gone. */
void intent_closer_hurry(struct intent_closer *closer);
/* At the end of a turn; or now, so that what is hurried is in front of what is asked next. */
void intent_closer_poke(struct intent_closer *closer);

#endif
