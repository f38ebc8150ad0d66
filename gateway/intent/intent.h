/* intent.h - the intents of this process that are open: what it has recorded in the store as being sent,
 * and has not yet closed there (gateway/scripts/lib/intent.lua has their form).
 *
 *   intents.c     the list, one for each process, and the closer, one for each worker
 *   recovery.c    what this gateway owes the store when an epoch begins; what its former incarnations left
 *   unreported.c  which gateways have not reported what they had sent, since the store lost something
 *   operator.c    GET /v1/intents, /v1/gateways/doubt, /v1/routes; POST .../resolve, .../adopt
 *   dead.c        POST /v1/gateways/{id}/dead
 *
 * An intent is opened by a script (forward/admit.c) before anything is sent, and closed by intent_close.lua
 * when its end is known; nothing waits for that, and it is tried again until the store has done it: what is
 * closed late keeps others waiting, and harms nobody. One whose end will never be known stays in this list
 * until it is seen that the store has it no more, since an operator, another gateway's probe or a conditional
 * write has ended it there: a store that has lost it gets it again (intent_again.lua). */
#ifndef PAWL_GATEWAY_INTENT_H
#define PAWL_GATEWAY_INTENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "shared/loop/loop.h"
#include "shared/member/member.h"
#include "shared/service/service.h"
#include "shared/text/bytes.h"
#include "shared/token/name.h"

struct gateway_worker;

/* INTENT_IDS_MAX: of one that stays open, the numbers of 16 requests whose end is unknown. */
enum {
    INTENT_ID_SIZE = 24,
    INTENT_IDS_MAX = 16 * INTENT_ID_SIZE + 8,
    INTENT_TEXT_MAX = 384 + INTENT_IDS_MAX
};

enum intent_word {
    /* Its admission is on its way to the store, or it is queued there. text is "NAME GATEWAY INCARNATION ID".
     * It is in the list before the store can know of it, and until it is recorded, refused, or to be closed:
     * so whatever the store has of this process, and the list has not, will never be sent any more. */
    INTENT_ASKED,
    INTENT_OPEN,
    INTENT_CLOSE,   /* its end is known, or it was never sent */
    INTENT_SETTLE,  /* the same; a conditional write was applied, so older ones cannot be any more */
    INTENT_UNKNOWN, /* it was sent, and this process will not learn its end */
    INTENT_KEPT,    /* a former incarnation's, whose end is never learned (recovery.c) */
    /* It is not known whether it was recorded: text is "NAME GATEWAY INCARNATION ID". Done twice: the script
     * that would record it may still be on its way in a link that has broken (intent_close.lua). */
    INTENT_FORGET
};

struct intent {
    LIST_ENTRY(intent) all;     /* of the process */
    STAILQ_ENTRY(intent) after; /* in its closer's line */
    enum intent_word word;
    unsigned stripe;
    bool is_copied;  /* copied since intents_again() */
    bool is_second;  /* INTENT_FORGET: for the second time; INTENT_KEPT, INTENT_UNKNOWN: aged */
    bool is_shown;   /* by a probe, before its own end was known */
    uint64_t due_ms; /* of that */
    size_t len;
    char text[INTENT_TEXT_MAX];
};

struct intents {
    pthread_mutex_t mutex;
    LIST_HEAD(, intent) all;
    unsigned count; /* without those that are INTENT_ASKED */
    /* While a store gets again what it has lost nothing is closed: else what was closed in between would come
     * back. */
    atomic_bool again;
    atomic_uint closing; /* calls of closers that are under way */
};

void intents_init(struct intents *intents);
void intents_done(struct intents *intents);
unsigned intents_count(struct intents *intents);
/* All are to be recorded again; then, call for call, at most `most` of one stripe of those that were not yet
 * copied since. How many. */
void intents_again(struct intents *intents);
unsigned intents_copy(struct intents *intents, struct intent *into, unsigned most);

/* INTENT_ASKED: before the store is asked to record it. Then: the store says that it is recorded, to be sent;
 * or that it is queued, and is to be closed under this text. Or intent_end(), or intents_drop() when it
 * certainly is not recorded. INTENT_OPEN: the store has it already. */
struct intent *intent_new(struct intents *intents, unsigned stripe, struct bytes text, enum intent_word word);
void intent_recorded(struct intents *intents, struct intent *intent, struct bytes text);
void intent_text(struct intents *intents, struct intent *intent, struct bytes text);
/* Of one that is open: more behind its kind (forward/admit.c). */
void intent_add_ids(struct intents *intents, struct intent *intent, struct bytes ids);
void intent_set_word(struct intents *intents, struct intent *intent, enum intent_word word);
/* Whether an intent that the store has of this very process is still in the list, in whatever way: what is
 * not has ended, and is not sent any more. The text is to have been listed before this is asked. An unknown
 * one that is listed is not aged any more. */
bool intents_have(struct intents *intents, unsigned stripe, struct bytes text);
/* Its end is known after all, by a probe: the one of this text that was unknown, or will be, is dropped. */
void intents_drop_unknown(struct intents *intents, unsigned stripe, struct bytes text);
/* One of a former incarnation of this gateway, to be recorded again in a store that loses it. False: it is
 * longer than any text of ours, and not kept. */
bool intents_keep(struct intents *intents, unsigned stripe, struct bytes text);
/* INTENT_KEPT, INTENT_UNKNOWN (those that the store has as u): before a stripe is looked through those of
 * before are aged; when all that is there now is kept, or intents_have() it, the aged are forgotten. */
void intents_age(struct intents *intents, unsigned stripe, enum intent_word word);
void intents_forget_aged(struct intents *intents, unsigned stripe, enum intent_word word);
/* The store has it as u by now, and so has its text; freed when a probe had shown its end before. */
void intents_unknown(struct intents *intents, struct intent *intent);
/* Out of the list, and freed. */
void intents_drop(struct intents *intents, struct intent *intent);

/* A part of a text: 0 name, 1 epoch, 2 token, 3 seq, 4 state, 5 kind, 6 gateway, 7 incarnation, 8 id,
 * 9 unknown, 10 at; and the identity behind 9; empty when there is none. */
enum intent_part {
    INTENT_NAME,
    INTENT_EPOCH,
    INTENT_TOKEN,
    INTENT_SEQ,
    INTENT_STATE,
    INTENT_KIND,
    INTENT_GATEWAY,
    INTENT_INCARNATION,
    INTENT_ID,
    INTENT_POLICY,
    INTENT_AT,
    INTENT_IDENTITY
};
struct bytes intent_part(struct bytes text, enum intent_part part);

/* -- the closer
 *
 * What ends is gathered for 2 ms, or until there are as many as one call takes; then it goes out, however
 * many calls are under way: what closes must not fall behind what opens, else the list grows, and newer
 * holders wait. A call that fails, or whose end is not known, is made again 50 ms later: closing twice does
 * no harm. */
enum { CLOSE_MAX = 32 };

struct intent_line {
    STAILQ_HEAD(, intent) queue;
    unsigned count;
};

struct intent_closer {
    struct intents *intents;
    struct member_line *line;
    struct loop *loop;
    /* Called when intents of a lease have been closed in the store: writes that wait may ask again. */
    void (*closed)(struct intent_closer *closer, struct bytes lease);
    struct loop_timer timer;           /* to go on */
    struct loop_hook hook;             /* all of a turn go out together */
    struct intent_line waiting, later; /* later: to be forgotten once more */
    unsigned in_flight;                /* calls */
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
/* What was ended in this turn is closed at its end, alone if need be: a write that waited has gone. */
void intent_closer_hurry(struct intent_closer *closer);
/* At the end of a turn; or now, so that what is hurried is in front of what is asked next. */
void intent_closer_poke(struct intent_closer *closer);

/* -- recovery.c: one for each process, on its first worker, until the closer of that has stopped. Freed by
 * free(3) when the store has ended its calls. _tick: every 100 ms. */
struct recovery *recovery_new(struct gateway_worker *own);
void recovery_tick(struct recovery *recovery);
/* The last incarnation that the state directory names, this one, has nothing open and sends nothing more:
 * that is written there. Blocks as the disk does; where it fails, less is proven. */
void incarnations_end(int dir_fd, const char *incarnation);

/* -- unreported.c: the same. Looks which gateways have not reported since the store lost something
 * (docs/guarantees.md), whether this gateway's route table is the one that is served, and which marks of
 * other stores are lost, for /readyz, the metrics and the log: when an epoch of the store begins for this
 * process, then every second for as long as a gateway has not reported or the tables differ, and every five
 * otherwise; at once when a request was refused since they differ. */
struct unreported *unreported_new(struct gateway_worker *own);
void unreported_tick(struct unreported *unreported);

enum { UNREPORTED_DETAIL_SIZE = READY_DETAIL_SIZE };
/* What is to be said of one of them ("GATEWAY INCARNATION"), and what ends it. begin: a sentence in front. */
void unreported_detail(char detail[UNREPORTED_DETAIL_SIZE], const char *begin, struct bytes who);
/* service_plan: lacking. Any thread. */
const char *unreported_lacking(struct worker *worker, const char **member, char detail[READY_DETAIL_SIZE]);

/* -- operator.c: what upstreams have answered to the last probes. Of the process; any thread. text: of the
 * intent. */
enum {
    PROBES_KEPT = 64,
    PROBE_KEY_SIZE = 2 * MEMBER_ID_CHARS + 2 + INTENT_ID_SIZE + 1,
    PROBE_SAID_SIZE = 128
};
struct probe {
    char key[PROBE_KEY_SIZE], said[PROBE_SAID_SIZE];
    int64_t at_ms;
};
struct probes {
    pthread_mutex_t mutex; /* initialised and destroyed by the owner */
    struct probe kept[PROBES_KEPT];
    unsigned next;
};
/* at_ms: the store's time. */
void probes_note(struct probes *probes, struct bytes text, int64_t at_ms, const char *said);
/* The member "probe": when and what, or null. */
void probes_write(struct probes *probes, struct bytes text, struct json_out *json);

/* -- operator.c, dead.c */
enum step intents_all_start(struct http_request *req);
enum step intents_start(struct http_request *req);
enum step doubt_start(struct http_request *req);
enum step resolve_start(struct http_request *req);
enum step dead_start(struct http_request *req);
enum step routes_start(struct http_request *req);
enum step adopt_start(struct http_request *req);

#endif
