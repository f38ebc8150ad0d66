/* admit.c - a lease service asks the store to begin a new epoch (lease/scripts/admit.lua).
 *
 *   member_admit    with everybody's reports, as they are by now      suspended
 *   admit_answered  admitted: a pulse; something missing: again at the next tick; a list to record: when it
 * is on disk it is reported (daemon.c), and then again; a disk that cannot be written is
 *                   asked for less and less often */
#include <stdio.h>

#include "shared/member/member.h"

/* A link is back within 0.5 s of Redis, and a report comes at once after that. */
enum { WAIT_FOR_MEMBERS_MS = 1400, WAIT_FOR_DISKS_MS = 3000, AGAIN_MS = 50, AGAIN_MAX_MS = 2000 };

static store_done_fn admit_answered;

bool member_may_admit(const struct member *member)
{
    return member->state == MEMBER_GATED && member->reported && member->options.admit != NULL &&
           loop_now_ms() >= member->admit_ms;
}

/* What keeps a disk from being written lasts. */
static void admit_later(struct member *member)
{
    unsigned wait_ms = member->admit_wait_ms > 0 ? 2 * member->admit_wait_ms : AGAIN_MS;

    member->admit_wait_ms = wait_ms < AGAIN_MAX_MS ? wait_ms : AGAIN_MAX_MS;
    member->admit_ms = loop_now_ms() + member->admit_wait_ms;
}

void member_admit(struct member *member)
{
    bool waited = loop_now_ms() >= member->gated_ms + WAIT_FOR_MEMBERS_MS;

    member->argv[0] = BYTES("pawl:{store}");
    member->argv[1] = member_identity(member);
    member->argv[2] = bytes_of(member->run);
    member->argv[3] = bytes_of(member->gate);
    member->argv[4] = bytes_of(member->options.state_file->recorded.member);
    member->argv[5] = waited ? BYTES("now") : BYTES("wait");
    member->in_flight = true;
    member->call.done = admit_answered;
    store_run(member->options.line->store, &member->call, member->options.admit, 1, 6, member->argv);
}

static void tell_of_admission(struct member *member, const struct store_reply *reply)
{
    struct log_field fields[] = {LOG_I("epoch", store_reply_integer(reply, 1)),
                                 LOG_T("proof", store_reply_text(reply, 2)),
                                 LOG_I("counter", store_reply_integer(reply, 3)),
                                 LOG_T("not_asked", store_reply_text(reply, 4)), LOG_END};

    member_log(member, LOG_WARNING, "store-life-begun", fields);
}

/* The gate opens when every state directory has it. Its roll stays: it is of the same members. */
static void doubts_record(struct member *member, const struct store_reply *list)
{
    struct state_record wanted = member->options.state_file->recorded;
    const char *trouble = state_file_trouble(member->options.state_file);
    char detail[EPOCH_DETAIL_SIZE];

    if (member_list_read(list, &wanted)) {
        state_file_want(member->options.state_file, &wanted);
    } else if (list != NULL) {
        struct bytes bad = store_reply_text(list, wanted.member_count + wanted.doubt_count);

        snprintf(detail, sizeof(detail),
                 "The store is not admitted, for this entry of its list of members and of gateways in doubt "
                 "cannot be read: \"%.*s\". Somebody has changed pawl:{store}:doubt or pawl:{store}:m:ID by "
                 "hand: put back what stood there.",
                 bad.len < 100 ? (int)bad.len : 100, bad.at);
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted", detail);
    }
    if (trouble != NULL) {
        snprintf(detail, sizeof(detail), "%s", trouble);
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "state-dir", detail);
        admit_later(member);
    }
}

static void unrecorded_tell(struct member *member, struct bytes whose)
{
    char detail[EPOCH_DETAIL_SIZE];

    admit_later(member);
    if (loop_now_ms() >= member->gated_ms + WAIT_FOR_DISKS_MS) {
        snprintf(detail, sizeof(detail),
                 "The store is closed until lease service %.*s has written into its state directory which "
                 "gateways are in doubt; its /readyz says what keeps it from that.",
                 whose.len < 300 ? (int)whose.len : 300, whose.at);
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted", detail);
    }
}

static enum step admit_answered(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, call);
    struct bytes missing = store_reply_text(reply, 1);
    bool is_known = missing.len > 0 && !bytes_are(missing, "unknown");
    const char *whom = is_known ? missing.at : "a lease service that knows all the others";
    char detail[EPOCH_DETAIL_SIZE];

    member->in_flight = false;
    if (outcome != STORE_DONE) {
        return ANSWERED;
    }
    if (store_reply_is(reply, "floors-missing")) {
        snprintf(detail, sizeof(detail),
                 "The store has begun a new life, which only all lease services together may admit: waiting "
                 "for %.*s. Start it; if its state directory is lost for good: pawl store recover --floor N.",
                 missing.len > 0 && missing.len < 300 ? (int)missing.len : 300, whom);
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted", detail);
    } else if (store_reply_is(reply, "record")) {
        doubts_record(member, store_reply_list(reply, 1));
    } else if (store_reply_is(reply, "unrecorded")) {
        unrecorded_tell(member, missing);
    } else if (store_reply_is(reply, "admitted")) {
        tell_of_admission(member, reply);
        member_pulse(member);
    } else if (store_reply_is(reply, "moved")) {
        member_pulse(member);
    }
    return ANSWERED;
}
