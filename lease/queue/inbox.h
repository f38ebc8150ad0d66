/* inbox.h - where clients wait: one inbox for each worker. What is handed on to somebody who waits here is
 * told to the inbox by a message of Redis (docs/decisions/0013).
 *
 *   CLOSED   --the subscriber listens, the line to the store stands--> OPENING   inbox_heartbeat.lua "open"
 *   OPENING  --the store has it-->                                     OPEN
 *   OPENING  --not so, unknown, the subscriber or the link broke meanwhile--> CLOSED
 *   OPEN     --the subscriber is deaf, the link is another or none-->  CLOSED
 *   OPEN     --a beat is late or unknown, or none taken for 3 s-->     CLOSED
 *   OPEN     --the reply of a release is lost-->                       CLOSED
 *   OPEN     --drained-->                                              CLOSING   inbox_heartbeat.lua "close"
 *   CLOSED   --drained-->                                              SHUT
 *   CLOSING  --answered, however-->                                    SHUT
 *
 * An inbox that closes gets a new id when it opens again: nobody who stood there before is handed anything
 * that this process could claim, so all who wait are told at once that nothing was granted (503), except
 * those whose claim is under way, and those to whom a release may have granted the lease. It beats every
 * INBOX_HEARTBEAT_MS; the store passes over the waiters of an inbox that was silent for INBOX_SILENT_MS. An
 * inbox that is drained is closed in the store first, so that nobody else waits for what would be handed on
 * there; what was handed on before is still claimed. */
#ifndef PAWL_LEASE_INBOX_H
#define PAWL_LEASE_INBOX_H

#include "shared/loop/alarm.h"
#include "shared/member/member.h"
#include "shared/service/service.h"
#include "shared/store/store.h"

enum { INBOX_ID_CHARS = 16, INBOX_HEARTBEAT_MS = 750, INBOX_SILENT_MS = 3000, INBOX_KEY_SIZE = 40 };

enum inbox_state { INBOX_CLOSED, INBOX_OPENING, INBOX_OPEN, INBOX_CLOSING, INBOX_SHUT, INBOX_STATES };

/* What one who waits is told. */
enum inbox_news { INBOX_NO_NEWS, INBOX_GRANTED, INBOX_SUPERSEDED, INBOX_SESSION_LOST, INBOX_HAS_CLOSED };

/* What the inbox knows of one who waits. wid is never 0, and never the same twice in the epoch of an inbox.
 */
struct inbox_place {
    /* What the store has told, or that the inbox has closed; never from inside a call of the inbox's. */
    void (*told)(struct inbox_place *place, enum inbox_news news);
    uint64_t wid; /* the inbox's own */
};

struct inbox;

struct inbox *inbox_new(struct worker *worker, struct member_line *line);
/* All places have been left, and the store is closed. */
void inbox_free(struct inbox *inbox);
bool inbox_is_open(const struct inbox *inbox);
/* Closes for good, also when asked twice: the store is told, then all who wait are told NULL, then it is
 * shut. */
void inbox_drain(struct inbox *inbox);
bool inbox_is_shut(const struct inbox *inbox);

/* A release is about to be sent: key gets the inbox's, which the release names and so may grant the lease to
 * who waits here, in its own step; or "" and false: it must not. */
bool inbox_release_begins(struct inbox *inbox, unsigned stripe, char key[INBOX_KEY_SIZE]);
/* Of one for which that was true. is_heard: its reply was read, or it certainly did not run. */
void inbox_release_ended(struct inbox *inbox, unsigned stripe, bool is_heard);
/* Whether a release of a lease of this stripe is under way, or its reply was lost when the inbox closed: it
 * may have granted the lease to one who waits here. */
bool inbox_has_perhaps_granted(const struct inbox *inbox, unsigned stripe);

/* A message to the inbox of this key, read in a script's reply: who waits here need not wait for the
 * subscriber, which will say the same. Another inbox's: nothing happens. */
void inbox_hear(struct inbox *inbox, struct bytes key, struct bytes message);

/* Takes a place at an inbox that is open; told is set by the caller. */
void inbox_enter(struct inbox *inbox, struct inbox_place *place);
void inbox_leave(struct inbox *inbox, struct inbox_place *place);
/* Who waits under this number; NULL: nobody. */
struct inbox_place *inbox_place_of(const struct inbox *inbox, uint64_t wid);
unsigned inbox_count(const struct inbox *inbox);
/* Key of the inbox's record in the store, which is also the channel: what a script gets as terms' inbox. */
struct bytes inbox_key(const struct inbox *inbox);
/* The clock for deadlines of those who wait here. */
struct alarm_clock *inbox_clock(struct inbox *inbox);

/* inbox_message.c: what a message to an inbox says, and of whom; INBOX_NO_NEWS: nothing that is known here.
 */
enum inbox_news inbox_message_read(struct bytes message, uint64_t *wid);
/* 0: it is none. */
uint64_t inbox_wid_read(struct bytes text);

bool inbox_allows(enum inbox_state from, enum inbox_state to);
/* Whether this inbox has ever gone from one to the other; for the test of the drawing. */
bool inbox_has_gone(const struct inbox *inbox, enum inbox_state from, enum inbox_state to);

#endif
