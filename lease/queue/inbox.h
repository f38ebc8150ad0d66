/* inbox.h - where clients wait: one desk for each worker. What is handed on to somebody who waits here is
 * told to the desk by a message of Redis (docs/decisions/0013).
 *
 *   CLOSED   --the ear listens, the line to the store stands-->        OPENING   beat.lua "open"
 *   OPENING  --the store has it-->                                     OPEN
 *   OPENING  --not so, unknown, the ear or the link broke meanwhile--> CLOSED
 *   OPEN     --the ear is deaf, the link is another or none-->         CLOSED
 *   OPEN     --a beat is late or unknown, or none taken for 3 s-->     CLOSED
 *   OPEN     --the reply of a release is lost-->                       CLOSED
 *   OPEN     --drained-->                                              CLOSING   beat.lua "close"
 *   CLOSED   --drained-->                                              SHUT
 *   CLOSING  --answered, however-->                                    SHUT
 *
 * A desk that closes gets a new id when it opens again: nobody who stood there before is handed anything that
 * this process could claim, so all who wait are told at once that nothing was granted (503), except those
 * whose claim is under way, and those to whom a release may have granted the lease. It beats every
 * DESK_BEAT_MS; the store passes over the waiters of a desk that was silent for DESK_SILENT_MS. A desk that
 * is drained is closed in the store first, so that nobody else waits for what would be handed on there; what
 * was handed on before is still claimed. */
#ifndef PAWL_LEASE_DESK_H
#define PAWL_LEASE_DESK_H

#include "shared/loop/alarm.h"
#include "shared/member/call.h"
#include "shared/service/service.h"
#include "shared/store/store.h"

enum { DESK_ID_CHARS = 16, DESK_BEAT_MS = 750, DESK_SILENT_MS = 3000, DESK_KEY_SIZE = 40 };

enum desk_state { DESK_CLOSED, DESK_OPENING, DESK_OPEN, DESK_CLOSING, DESK_SHUT, DESK_STATES };

/* What one who waits is told. */
enum desk_news { DESK_NO_NEWS, DESK_GRANTED, DESK_SUPERSEDED, DESK_SESSION_LOST, DESK_HAS_CLOSED };

/* What the desk knows of one who waits. wid is never 0, and never the same twice in the life of a desk. */
struct desk_place {
    /* What the store has told, or that the desk has closed; never from inside a call of the desk's. */
    void (*told)(struct desk_place *place, enum desk_news news);
    uint64_t wid; /* the desk's own */
};

struct desk;

struct desk *desk_new(struct worker *worker, struct record_line *line);
/* All places have been left, and the store is closed. */
void desk_free(struct desk *desk);
bool desk_is_open(const struct desk *desk);
/* Closes for good, also when asked twice: the store is told, then all who wait are told NULL, then it is
 * shut. */
void desk_drain(struct desk *desk);
bool desk_is_shut(const struct desk *desk);

/* A release is about to be sent: key gets the desk's, which the release names and so may grant the lease to
 * who waits here, in its own step; or "" and false: it must not. */
bool desk_release_begins(struct desk *desk, unsigned stripe, char key[DESK_KEY_SIZE]);
/* Of one for which that was true. is_heard: its reply was read, or it certainly did not run. */
void desk_release_ended(struct desk *desk, unsigned stripe, bool is_heard);
/* Whether a release of a lease of this stripe is under way, or its reply was lost when the desk closed: it
 * may have granted the lease to one who waits here. */
bool desk_has_perhaps_granted(const struct desk *desk, unsigned stripe);

/* A message to the desk of this key, read in a script's reply: who waits here need not wait for the ear,
 * which will say the same. Another desk's: nothing happens. */
void desk_hear(struct desk *desk, struct bytes key, struct bytes message);

/* Takes a place at a desk that is open; told is set by the caller. */
void desk_enter(struct desk *desk, struct desk_place *place);
void desk_leave(struct desk *desk, struct desk_place *place);
/* Who waits under this number; NULL: nobody. */
struct desk_place *desk_place_of(const struct desk *desk, uint64_t wid);
unsigned desk_count(const struct desk *desk);
/* Key of the desk's record in the store, which is also the channel: what a script gets as terms' desk. */
struct bytes desk_key(const struct desk *desk);
/* The clock for deadlines of those who wait here. */
struct alarm_clock *desk_clock(struct desk *desk);

/* inbox_message.c: what a message to a desk says, and of whom; DESK_NO_NEWS: nothing that is known here. */
enum desk_news desk_message_read(struct bytes message, uint64_t *wid);
/* 0: it is none. */
uint64_t desk_wid_read(struct bytes text);

bool desk_allows(enum desk_state from, enum desk_state to);
/* Whether this desk has ever gone from one to the other; for the test of the drawing. */
bool desk_has_gone(const struct desk *desk, enum desk_state from, enum desk_state to);

#endif
