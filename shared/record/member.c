/* member.c - this process as a member of the store: when it asks, and what it makes of where it stands.
 *
 *   member_tick      what is due: nothing while the link is down or a call is under way
 *   member_watch     has anything changed?                         suspended
 *   member_watched   then a pulse (member_pulse.c), else nothing */
#include "shared/record/member.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "shared/random.h"

enum { TICK_MS = 50, PULSE_MS = 1000, REFUSED_PULSE_MS = 250 };

static const bool arrows[MEMBER_STATES][MEMBER_STATES] = {
    [MEMBER_AWAY] =
        {[MEMBER_IN] = true, [MEMBER_PENDING] = true, [MEMBER_GATED] = true, [MEMBER_REFUSED] = true},
    [MEMBER_PENDING] = {[MEMBER_IN] = true,
                        [MEMBER_GATED] = true,
                        [MEMBER_REFUSED] = true,
                        [MEMBER_AWAY] = true,
                        [MEMBER_LEFT] = true},
    [MEMBER_IN] = {[MEMBER_GATED] = true,
                   [MEMBER_PENDING] = true,
                   [MEMBER_REFUSED] = true,
                   [MEMBER_AWAY] = true,
                   [MEMBER_LEFT] = true},
    [MEMBER_GATED] =
        {[MEMBER_IN] = true, [MEMBER_PENDING] = true, [MEMBER_REFUSED] = true, [MEMBER_AWAY] = true},
    [MEMBER_REFUSED] =
        {[MEMBER_IN] = true, [MEMBER_PENDING] = true, [MEMBER_GATED] = true, [MEMBER_AWAY] = true},
};

static void member_tick(struct loop_timer *timer);
static void member_watch(struct member *member);
static enum step member_watched(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply);
static void member_say_farewell(struct member *member);
static enum step member_parted(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply);

bool member_allows(enum member_state from, enum member_state to)
{
    return arrows[from][to];
}

void member_enter(struct member *member, enum member_state next)
{
    if (member->state == next) {
        return;
    }
    assert(member_allows(member->state, next));
    member->walked[member->state] |= (unsigned char)(1u << next);
    member->state = next;
    if (next != MEMBER_GATED) {
        member->gate[0] = '\0';
        member->reported = false;
    }
}

void member_start(struct member *member, const struct member_options *options)
{
    memset(member, 0, sizeof(*member));
    member->options = *options;
    random_text(member->incarnation, MEMBER_ID_CHARS);
    snprintf(member->key, sizeof(member->key), "pawl:{store}:m:%s", options->keeper->recorded.member);
    loop_timer_init(options->loop, &member->timer, member_tick);
    loop_timer_arm(&member->timer, TICK_MS, TICK_MS);
}

void member_stop(struct member *member)
{
    loop_timer_done(&member->timer);
}

bool member_is_settled(const struct member *member)
{
    return member->state == MEMBER_IN || member->state == MEMBER_REFUSED;
}

/* -- what is due */

static bool link_is_away(struct member *member)
{
    const char *run = record_line_run(member->options.line);

    if (run[0] != '\0') {
        snprintf(member->run, sizeof(member->run), "%s", run);
        return false;
    }
    const char *detail, *check = store_not_ready(member->options.line->store, &detail);
    bool stood = member->state != MEMBER_AWAY && member->state != MEMBER_LEFT;

    if (stood) {
        member_enter(member, MEMBER_AWAY);
    }
    if (check != NULL && (stood || store_misled(member->options.line->store) != NULL)) {
        member_forbid(member, PROBLEM_STORE_UNAVAILABLE, check, detail);
    }
    return true;
}

static bool report_is_due(const struct member *member)
{
    bool wants = (member->state == MEMBER_GATED && !member->reported) || member->unsettled;

    return wants && keeper_is_settled(member->options.keeper) &&
           life_is_settled(member->options.line->life, member->options.workers, member->run);
}

static bool pulse_is_due(struct member *member)
{
    return member->options.line->link != member->asked_link || life_wants_pulse(member->options.line->life) ||
           loop_now_ms() >=
               member->pulsed_ms + (member->state == MEMBER_REFUSED ? REFUSED_PULSE_MS : PULSE_MS) ||
           report_is_due(member);
}

static void member_tick(struct loop_timer *timer)
{
    struct member *member = container_of(timer, struct member, timer);

    if (member->in_flight || member->state == MEMBER_LEFT) {
        return;
    }
    if (link_is_away(member)) {
        member->left = member->leave_wanted;
        return;
    }
    life_line_tell(member->options.line->life, 0, member->run,
                   store_counts(member->options.line->store).in_flight == 0,
                   store_unsafe(member->options.line->store) != NULL);
    if (member->leave_wanted) {
        member_say_farewell(member);
    } else if (pulse_is_due(member)) {
        member_pulse(member);
    } else if (member->state == MEMBER_GATED && member->reported && member->options.admit != NULL) {
        member_admit(member);
    } else {
        member_watch(member);
    }
}

/* -- a look in between, which costs next to nothing */

static void member_watch(struct member *member)
{
    member->argv[0] = BYTES("pawl:{store}");
    member->argv[1] = bytes_of(member->key);
    member->argv[2] = bytes_of(member->run);
    member->in_flight = true;
    member->call.done = member_watched;
    store_run(member->options.line->store, &member->call, member->options.watch, 2, 3, member->argv);
}

static bool is_another_redis(const struct member *member, const struct store_reply *reply)
{
    return member->state == MEMBER_IN && !bytes_are(store_reply_text(reply, 6), "same");
}

/* Only what would make the answer to a pulse another one: many may be waiting, and a pulse is not cheap. Each
 * admission raises the roll. Refused means: asked each second, since only an operator can change it. */
static bool something_changed(const struct member *member, const struct store_reply *reply)
{
    bool new_gate = !bytes_are(store_reply_text(reply, 3), member->gate);
    bool new_roll = store_reply_integer(reply, 2) != member->roll;

    switch (member->state) {
    case MEMBER_IN:
        return new_gate || new_roll || store_reply_integer(reply, 1) != member->epoch ||
               store_reply_integer(reply, 4) != member->ceiling || is_another_redis(member, reply);
    case MEMBER_PENDING: return new_gate || new_roll || bytes_are(store_reply_text(reply, 5), "in");
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
    if (outcome != STORE_DONE) {
        return ANSWERED;
    }
    if (is_another_redis(member, reply)) { /* the pulse takes its time, and as a replica it answers none */
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
                      "Redis is another one than before, or has begun a new replication stream; the lease "
                      "services are about to admit it.");
    }
    if (something_changed(member, reply)) {
        member_pulse(member);
    }
    return ANSWERED;
}

/* -- the end */

void member_leave(struct member *member)
{
    member->leave_wanted = true;
}

bool member_has_left(const struct member *member)
{
    return member->left && keeper_is_idle(member->options.keeper);
}

static void member_say_farewell(struct member *member)
{
    if (member->state != MEMBER_IN && member->state != MEMBER_PENDING) {
        member->left = true;
        return;
    }
    member_forbid(member, PROBLEM_DRAINING, "draining", "The service is stopping.");
    if (store_counts(member->options.line->store).in_flight > 0) {
        return; /* the next tick asks again: what is acknowledged after the farewell would not be asked for */
    }
    snprintf(member->number[0], MEMBER_TEXT_SIZE, "%lld", (long long)member->listed_epoch);
    member->argv[0] = BYTES("pawl:{store}");
    member->argv[1] = member_identity(member);
    member->argv[2] = bytes_of(member->options.keeper->recorded.member);
    member->argv[3] = bytes_of(member->incarnation);
    member->argv[4] = bytes_of(member->number[0]);
    member->argv[5] = bytes_of(member->run);
    member->in_flight = true;
    member->call.done = member_parted;
    store_run(member->options.line->store, &member->call, member->options.leave, 1, 6, member->argv);
}

/* What was there at the end: a store that is put back to before, while nobody is there to see it, shows less.
 */
static void farewell_record(struct member *member, const struct store_reply *reply)
{
    struct high_water wanted = member->options.keeper->recorded;
    int64_t floor = store_reply_integer(reply, 2);

    wanted.roll = store_reply_integer(reply, 1);
    wanted.floor = floor > wanted.floor ? floor : wanted.floor;
    if (member->options.role == MEMBER_LEASE && wanted.roll > 0 &&
        member_list_read(store_reply_list(reply, 3), &wanted)) {
        keeper_want(member->options.keeper, &wanted);
    }
}

static enum step member_parted(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, call);

    /* If it did not get there, the store takes us for one that has crashed: that is safe. */
    if (outcome == STORE_DONE) {
        farewell_record(member, reply);
    }
    member->in_flight = false;
    member->left = true;
    member_enter(member, MEMBER_LEFT);
    return ANSWERED;
}

/* -- what is told */

void member_log(struct member *member, enum log_level level, const char *event,
                const struct log_field *fields)
{
    member->options.event(member, level, event, fields);
}

void member_forbid(struct member *member, enum problem problem, const char *check, const char *detail)
{
    life_suspend(member->options.line->life, problem, check, detail);
    if (strcmp(member->told, detail) != 0) {
        struct log_field fields[] = {LOG_T("check", bytes_of(check)), LOG_T("detail", bytes_of(detail)),
                                     LOG_END};

        snprintf(member->told, sizeof(member->told), "%s", detail);
        if (problem != PROBLEM_DRAINING) {
            member_log(member, LOG_WARNING, "store-suspended", fields);
        }
    }
}
