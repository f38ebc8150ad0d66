/* member.h - this process as a member of the store: joins, pulses, reports, leaves. One for each process, on
 * its first worker's thread.
 *
 *   AWAY     --the store said that we are in-->                       IN
 *   AWAY     --not yet in every state directory, or not vouched for--> PENDING
 *   AWAY     --nobody may act before a new epoch begins-->            GATED
 *   AWAY     --empty, another's, or we are somebody of the past-->    REFUSED
 *   PENDING  --recorded, vouched for-->                               IN
 *   PENDING  --gated-->                                               GATED
 *   PENDING  --refused-->                                             REFUSED
 *   PENDING  --the link broke-->                                      AWAY
 *   IN       --gated-->                                               GATED
 *   IN       --a new epoch in which we are not known yet-->           PENDING
 *   IN       --refused-->                                             REFUSED
 *   IN       --the link broke-->                                      AWAY
 *   IN       --the daemon ends-->                                     LEFT
 *   PENDING  --the daemon ends-->                                     LEFT
 *   GATED    --a lease service has admitted the store-->              IN
 *   GATED    --admitted, but we are new-->                            PENDING
 *   GATED    --refused-->                                             REFUSED
 *   GATED    --the link broke-->                                      AWAY
 *   REFUSED  --the store is ours again-->                             IN
 *   REFUSED  --the store is ours again, but we are new-->             PENDING
 *   REFUSED  --it is being recovered-->                               GATED
 *   REFUSED  --the link broke-->                                      AWAY
 *
 * Only in IN does the epoch (epoch.h) allow calls. Scripts: shared/member/scripts/heartbeat.lua,
 * member_leave.lua; a lease service also has lease/scripts/admit.lua. The protocol: docs/decisions/0009. */
#ifndef PAWL_SHARED_RECORD_MEMBER_H
#define PAWL_SHARED_RECORD_MEMBER_H

#include "shared/member/call.h"
#include "shared/member/state_file.h"
#include "shared/service/log.h"

enum member_state {
    MEMBER_AWAY,
    MEMBER_PENDING,
    MEMBER_IN,
    MEMBER_GATED,
    MEMBER_REFUSED,
    MEMBER_LEFT,
    MEMBER_STATES
};

enum {
    MEMBER_PULSE_ARGS = 21,
    MEMBER_TEXT_SIZE = 24,
    MEMBER_SEQS_SIZE = STRIPES * 16,
    MEMBER_LIST_SIZE = STATE_MEMBERS_MAX * 44 + STATE_DOUBTS_MAX * 56
};

struct member;

struct member_options {
    enum member_role role;
    struct loop *loop;
    struct member_line *line; /* the first worker's */
    struct state_file *state_file;
    unsigned workers;
    int64_t block;   /* tokens to reserve ahead; a gateway's is 1 */
    const char *who; /* for people: "pawl-lease pid 12 on host3"; lives as long as the member */
    const struct store_script *pulse, *leave;
    const struct store_script *admit; /* NULL: never admits (a gateway) */
    /* When the next alarm of the store rings, in ms; -1: none is set; 0: now, or it is not known, since a
     * pulse took the place of the look. Called at each look on the loop's thread; NULL: nobody asks. */
    void (*alarm)(struct member *member, int64_t in_ms);
    /* A number that is another one when somebody gives up what a gateway sends; as alarm. */
    void (*given_up)(struct member *member, int64_t number);
    /* What happened that deserves a line in the log; called on the loop's thread. */
    void (*event)(struct member *member, enum log_level level, const char *event,
                  const struct log_field *fields);
};

struct member {
    struct member_options options;
    enum member_state state;
    struct loop_timer timer;
    struct store_call call; /* one at a time, the last command of a look among them */
    struct store_call aside[2];
    struct { /* what the commands before the last have told */
        bool is_same, is_in;
        int64_t alarm_ms;
    } look;
    bool in_flight, leave_wanted, left;
    char incarnation[MEMBER_ID_CHARS + 1], run[EPOCH_RUN_SIZE];
    uint64_t asked_link, asked_us, pulsed_ms;
    /* as the last pulse told it */
    int64_t epoch, beats, ceiling, goal, roll;
    int64_t listed_epoch; /* of our entry in the store, whether in or pending */
    char gate[MEMBER_ID_CHARS + 1];
    bool settled_asked, unsettled, reported; /* a whole report for this gate was taken */
    uint64_t gated_ms, admit_ms;             /* admit_ms: not asked to begin a new epoch before that */
    unsigned admit_wait_ms;
    char told[EPOCH_DETAIL_SIZE]; /* the last that was logged of why nothing happens: each is logged once */
    /* arguments in flight */
    char number[8][MEMBER_TEXT_SIZE], identity[EPOCH_IDENTITY_SIZE], nonce[MEMBER_ID_CHARS + 1], key[64];
    char seqs[MEMBER_SEQS_SIZE], granted[MEMBER_SEQS_SIZE], list[MEMBER_LIST_SIZE];
    struct bytes argv[MEMBER_PULSE_ARGS];
    /* bit t of element f: went from f to t; what the test of the drawing reads */
    unsigned char walked[MEMBER_STATES];
};

/* Begins; the options are copied. The state file has been opened. */
void member_start(struct member *member, const struct member_options *options);
/* Whether it is known where the process stands: in, or not to be for a reason that waiting will not mend
 * soon. Readiness is said after that, or after a time-out. */
bool member_is_settled(const struct member *member);
/* An orderly end: says so to the store, once no call is in flight. member_has_left(): it was answered, or
 * there is nobody to tell. */
void member_leave(struct member *member);
bool member_has_left(const struct member *member);
void member_stop(struct member *member);

/* -- between the files of this module */
bool member_allows(enum member_state from, enum member_state to);
/* The only place where the state changes. */
void member_enter(struct member *member, enum member_state next);
/* heartbeat.c: asks; what the answer means. member_identity(): "SCHEMA:ID" of the store that this process
 * belongs to: as it has learned, else as its state directory says, else "". */
void member_pulse(struct member *member);
struct bytes member_identity(struct member *member);
/* list.c: the list of members and doubts as text for the store, and from its reply. */
struct bytes member_list_print(const struct state_record *record, char text[MEMBER_LIST_SIZE]);
/* False: no list, too many, one that is malformed or there twice; record then has those in front of it. */
bool member_list_read(const struct store_reply *list, struct state_record *record);
/* admit.c: asks the store to begin a new epoch; whether it is time to. */
bool member_may_admit(const struct member *member);
void member_admit(struct member *member);
void member_log(struct member *member, enum log_level level, const char *event,
                const struct log_field *fields);
/* No call of the process may go to a stripe: why, for the answers and for readyz. Logged when it is news. */
void member_forbid(struct member *member, enum problem problem, const char *check, const char *detail);

#endif
