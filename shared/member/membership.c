/* membership.c - this process as a member of the store: when it asks, and what it makes of where it stands.
 *
 *   member_tick      what is due: nothing while the link is down or a call is under way
 *   member_watch     has anything changed? Some commands           suspended
 *   member_watched   then a heartbeat (heartbeat.c), else nothing
 *
 *   AWAY     --the store said that we are in-->                       IN
 *   AWAY     --not yet in every state directory, or not vouched for--> PENDING
 *   AWAY     --no member may act before a new epoch begins-->         GATED
 *   AWAY     --empty, another's, or we were forgotten or superseded--> REFUSED
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
 * Only in IN does the epoch (epoch.h) allow calls. */
#include "shared/member/member_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "shared/token/random.h"

enum {
    TICK_MS = 50,
    HEARTBEAT_MS = 1000,
    LEASED_HEARTBEAT_MS = 500,
    UNLEASED_HEARTBEAT_MS = 100,
    REFUSED_HEARTBEAT_MS = 250
};

static const double ALARM_LAST_MS = 1e15;

static void member_tick(struct loop_timer *timer);
static void member_alarm(struct member *member, int64_t in_ms);
static void member_watch(struct member *member);
static store_done_fn look_took_own, look_took_alarm, member_watched;
static void member_depart(struct member *member);
static store_done_fn member_parted;

bool member_allows(enum member_state from, enum member_state to)
{
    return from != to && from != MEMBER_LEFT &&
           (to != MEMBER_LEFT || from == MEMBER_PENDING || from == MEMBER_IN);
}

void member_enter(struct member *member, enum member_state next)
{
    if (member->state == next)
        return;
    assert(member_allows(member->state, next));
    member->walked[member->state] |= (unsigned char)(1u << next);
    member->state = next;
    if (next != MEMBER_GATED) {
        member->gate[0] = '\0';
        member->reported = false;
    }
}

/* All services of a machine look at the same moment: Redis wakes up once for them, and finds what it needs in
 * its caches. That is most of what a look costs when nothing else happens. */
static void tick_arm(struct member *member)
{
    loop_timer_arm(&member->timer, TICK_MS - loop_now_ms() % TICK_MS, 0);
}

void member_start(struct member *member)
{
    const struct service *service = member->worker->service;

    member->plan = service->plan->own;
    member->settings = &service->settings;
    member->store_epoch = member->line->store_epoch;
    member->store = member->line->store;
    member->block = member->plan->role == MEMBER_LEASE ? (int64_t)member->settings->token_block : 1;
    member->is_leased = store_finder(member->store) != NULL;
    member->began_ms = loop_now_ms();
    random_text(member->incarnation, MEMBER_ID_CHARS);
    snprintf(member->key, sizeof(member->key), "pawl:{store}:m:%s", member->state_file->recorded.member);
    lease_begin(member);
    loop_timer_init(member->worker->loop, &member->timer, member_tick);
    member->insync = member->plan->admit != NULL ? insync_new(member) : NULL;
    member->call.at_once = true; /* a gate is shut and a loss is reported also while nothing can be kept */
    tick_arm(member);
}

void member_stop(struct member *member)
{
    loop_timer_done(&member->timer);
    if (member->insync != NULL)
        insync_free(member->insync);
    member->insync = NULL;
}

bool member_is_settled(const struct member *member)
{
    return member->state == MEMBER_IN || member->state == MEMBER_REFUSED;
}

/* -- what is due */

static bool link_is_away(struct member *member)
{
    const char *run = member_line_run(member->line);

    if (run[0] != '\0') {
        snprintf(member->run, sizeof(member->run), "%s", run);
        return false;
    }
    const char *detail, *check = store_not_ready(member->store, &detail);
    bool stood = member->state != MEMBER_AWAY && member->state != MEMBER_LEFT;

    if (stood)
        member_enter(member, MEMBER_AWAY);
    if (check != NULL && (stood || store_misled(member->store) != NULL))
        member_forbid(member, PROBLEM_STORE_UNAVAILABLE, check, "%s", detail);
    return true;
}

static bool report_is_due(const struct member *member)
{
    bool wants = (member->state == MEMBER_GATED && !member->reported) || member->unsettled;

    return wants && state_file_is_settled(member->state_file) &&
           epoch_is_settled(member->store_epoch, member->settings->threads, member->run);
}

static bool heartbeat_is_due(struct member *member)
{
    unsigned every_ms = member->state == MEMBER_REFUSED            ? REFUSED_HEARTBEAT_MS
                        : epoch_lease_is_over(member->store_epoch) ? UNLEASED_HEARTBEAT_MS
                        : member->is_leased                        ? LEASED_HEARTBEAT_MS
                                                                   : HEARTBEAT_MS;

    return member->line->link != member->asked_link || epoch_wants_heartbeat(member->store_epoch) ||
           loop_now_ms() >= member->heartbeat_ms + every_ms || report_is_due(member);
}

static void member_tick(struct loop_timer *timer)
{
    struct member *member = container_of(timer, struct member, timer);

    tick_arm(member);
    lease_watch(member);
    if (member->in_flight || member->state == MEMBER_LEFT)
        return;
    if (member->is_superseded || link_is_away(member)) {
        member->left = member->leave_wanted;
        return;
    }
    epoch_line_report(member->store_epoch, 0, member->run, store_counts(member->store).in_flight == 0,
                      store_unsafe(member->store) != NULL);
    if (member->state == MEMBER_IN && member->insync != NULL)
        insync_tick(member->insync);
    if (member->leave_wanted) {
        member_depart(member);
    } else if (heartbeat_is_due(member)) {
        member_alarm(member, 0);
        member_heartbeat(member);
    } else if (member_may_admit(member)) {
        member_admit(member);
    } else {
        member_watch(member);
    }
}

/* -- a look in between. Commands and no script: of an idle Redis a script takes twice as much. */

static void member_alarm(struct member *member, int64_t in_ms)
{
    if (member->plan->alarm != NULL)
        member->plan->alarm(member->worker, in_ms);
}

static void look_send(struct member *member, struct store_call *call, store_done_fn *done, unsigned first,
                      unsigned end)
{
    call->done = done;
    store_ask(member->store, call, end - first, &member->argv[first]);
}

/* Redis answers in the order of asking: what the record is judged with is there before it. */
static void member_watch(struct member *member)
{
    enum { STREAM = 0, STATE = 2, ALARM = 5, RECORD = 10, END = 17 };
    const char *const words[END] = {
        "INFO", "replication", "HGET",       member->key, "state",        "ZRANGE", "pawl:{store}:alarm",
        "0",    "0",           "WITHSCORES", "HMGET",     "pawl:{store}", "epoch",  "roll",
        "gate", "ceiling",     "given-up"};

    for (unsigned i = 0; i < END; i++)
        member->argv[i] = bytes_of(words[i]);
    member->in_flight = true;
    member->look.is_same = member->look.is_in = false;
    member->look.alarm_ms = -1;
    if (member->state == MEMBER_IN)
        look_send(member, &member->aside[0], look_took_own, STREAM, STATE);
    else if (member->state == MEMBER_PENDING)
        look_send(member, &member->aside[0], look_took_own, STATE, ALARM);
    if (member->plan->alarm != NULL)
        look_send(member, &member->aside[1], look_took_alarm, ALARM, RECORD);
    look_send(member, &member->call, member_watched, RECORD, END);
}

/* Of one that is in: whether this is a primary that goes on with the admitted stream, as stream_goes_on() in
 * stripe.lua has it; else whether it is in by now. */
static enum step look_took_own(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, aside[0]);
    struct bytes said = store_reply_text(reply, 0), master = BYTES("\nrole:master\r");
    char stream[EPOCH_STREAM_SIZE];

    (void)epoch_stream(member->store_epoch, stream);
    member->look.is_in = outcome == STORE_DONE && store_reply_is(reply, "in");
    member->look.is_same = outcome == STORE_DONE && said.len > 0 && stream[0] != '\0' &&
                           memmem(said.at, said.len, master.at, master.len) != NULL &&
                           memmem(said.at, said.len, stream, strlen(stream)) != NULL;
    return ANSWERED;
}

/* The score of the first alarm: a hand may have put in any number, and what is behind it must be found. Less
 * than 0: there is none. */
static int64_t alarm_at_ms(struct bytes score)
{
    char text[64];
    double at_ms;

    if (score.len == 0 || score.len >= sizeof(text))
        return -1;
    memcpy(text, score.at, score.len);
    text[score.len] = '\0';
    at_ms = strtod(text, NULL);
    return at_ms < ALARM_LAST_MS ? (at_ms > 0 ? (int64_t)at_ms : 0) : -1;
}

/* Beside a key that is something else the look goes on. */
static enum step look_took_alarm(struct store_call *call, enum store_outcome outcome,
                                 const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, aside[1]);
    int64_t at_ms = outcome == STORE_DONE ? alarm_at_ms(store_reply_text(reply, 1)) : -1;

    if (at_ms >= 0) {
        int64_t in_ms = at_ms - epoch_now_ms(member->store_epoch);

        member->look.alarm_ms = in_ms > 0 ? in_ms : 0;
    }
    return ANSWERED;
}

static bool is_another_redis(const struct member *member)
{
    return member->state == MEMBER_IN && !member->look.is_same;
}

/* Only what would make the answer to a heartbeat another one: many calls may wait behind it, and a
 * heartbeat is not cheap. Each admission raises the version of the list. Refused means: asked each second,
 * since only an operator can change it. */
static bool something_changed(const struct member *member, const struct store_reply *reply)
{
    bool new_gate = !bytes_are(store_reply_text(reply, 2), member->gate);
    bool is_new_version = store_reply_integer(reply, 1) != member->members_version;

    switch (member->state) {
    case MEMBER_IN:
        return new_gate || is_new_version || store_reply_integer(reply, 0) != member->epoch ||
               store_reply_integer(reply, 3) != member->ceiling || is_another_redis(member);
    case MEMBER_PENDING: return new_gate || is_new_version || member->look.is_in;
    case MEMBER_GATED: return new_gate;
    case MEMBER_AWAY:
    case MEMBER_REFUSED:
    case MEMBER_LEFT:
    case MEMBER_STATES: break;
    }
    return false;
}

static enum step member_watched(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, call);

    member->in_flight = false;
    if (outcome != STORE_DONE)
        return ANSWERED;
    if (is_another_redis(member)) { /* the heartbeat takes its time, and as a replica it answers none */
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
                      "Redis is another one than before, or has begun a new replication stream; the lease "
                      "services are about to admit it.");
    }
    member_alarm(member, member->look.alarm_ms);
    if (member->plan->given_up != NULL) {
        int64_t number = store_reply_integer(reply, 4);

        member->plan->given_up(member->worker, number < 0 ? 0 : number);
    }
    if (something_changed(member, reply))
        member_heartbeat(member);
    return ANSWERED;
}

/* -- the end */

void member_leave(struct member *member)
{
    member->leave_wanted = true;
}

bool member_has_left(const struct member *member)
{
    return member->left && !member->state_file->is_busy;
}

static void member_depart(struct member *member)
{
    if (member->state != MEMBER_IN && member->state != MEMBER_PENDING) {
        member->left = true;
        return;
    }
    member_forbid(member, PROBLEM_DRAINING, "draining", "The service is stopping.");
    /* The next tick asks again: what is acknowledged after leaving would not be asked for, and a newcomer
     * that has yet to note whose member it is cannot say so. */
    if (store_counts(member->store).in_flight > 0 || member->state_file->is_busy)
        return;
    member->argv[0] = BYTES("pawl:{store}");
    member->argv[1] = member_identity(member);
    member->argv[2] = bytes_of(member->state_file->recorded.member);
    member->argv[3] = bytes_of(member->incarnation);
    member->argv[4] = bytes_of_number(member->number[0], member->listed_epoch);
    member->argv[5] = bytes_of(member->run);
    member->in_flight = true;
    member->call.done = member_parted;
    store_run(member->store, &member->call, &script_member_leave, 1, 6, member->argv);
}

/* What was there at the end: a store that is put back to before, while no member is there to see it, shows
 * less. */
static void leave_record(struct member *member, const struct store_reply *reply)
{
    struct state_record wanted = member->state_file->recorded;
    int64_t floor = store_reply_integer(reply, 2);

    wanted.members_version = store_reply_integer(reply, 1);
    wanted.floor = floor > wanted.floor ? floor : wanted.floor;
    if (member->plan->role == MEMBER_LEASE && wanted.members_version > 0 &&
        member_list_read(store_reply_list(reply, 3), &wanted))
        state_file_want(member->state_file, &wanted);
}

static enum step member_parted(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, call);

    /* If it did not get there, the store takes us for one that has crashed: that is safe. */
    if (outcome == STORE_DONE)
        leave_record(member, reply);
    member->in_flight = false;
    member->left = true;
    member_enter(member, MEMBER_LEFT);
    return ANSWERED;
}

/* -- log and readyz */

void member_forbid(struct member *member, enum problem problem, const char *check, const char *detail, ...)
{
    char text[EPOCH_DETAIL_SIZE];
    va_list args;

    va_start(args, detail);
    vsnprintf(text, sizeof(text), detail, args);
    va_end(args);
    epoch_suspend(member->store_epoch, problem, check, text);
    if (strcmp(member->logged, text) != 0) {
        struct log_field fields[] = {LOG_T("check", bytes_of(check)), LOG_T("detail", bytes_of(text)),
                                     LOG_END};

        memcpy(member->logged, text, sizeof(member->logged));
        if (problem != PROBLEM_DRAINING) {
            /* Each gateway that is new to the store is so for a moment. */
            bool joins = member->state == MEMBER_PENDING && member->plan->role == MEMBER_GATEWAY;

            member->event(member, joins ? LOG_INFO : LOG_WARNING, "store-suspended", fields);
        }
    }
}
