/* quota.c - how much identities hold, have open and have stored, in the whole store: what the quotas held,
 * sessions and stored_bytes are judged by (shared/service/limits.c). Each service counts for itself.
 *
 *   quota_tick      every 100 ms, if any identity has such a quota
 *   quota_look      run plan->use_look on the next QUOTA_LOOK stripes     suspended
 *   quota_looked    note them; after the last stripe they are in force
 *   quota_again     then one stripe is counted anew from its records    suspended
 *
 * A round takes about a second. One that fails in the middle begins again: what was in force stays. */
#include "shared/member/quota.h"

#include <stdio.h>
#include <string.h>

static store_done_fn quota_looked, quota_counted;

void quota_start(struct quota *quota, struct worker *worker, const struct member_plan *plan)
{
    *quota = (struct quota){.worker = worker, .plan = plan};
    quota->again = (unsigned)(loop_now_us() % STRIPES); /* several services begin elsewhere */
}

static void quota_run(struct quota *quota, unsigned stripe, const struct store_script *script, unsigned keys,
                      unsigned args, store_done_fn *done)
{
    quota->call.store.done = done;
    quota->argv[0] = keys_stripe(quota->keys[0], stripe);
    quota->is_running = member_run(member_line_of_worker(quota->worker), &quota->call, stripe, script, keys,
                                   args, quota->argv) == PROBLEM_NONE;
}

static void quota_look(struct quota *quota)
{
    if (quota->stripe == 0)
        access_count_begins();
    quota->argv[1] = bytes_of_number(quota->number[0], quota->stripe);
    quota->argv[2] = bytes_of_number(quota->number[1], QUOTA_LOOK);
    quota_run(quota, quota->stripe, quota->plan->use_look, 1, 3, quota_looked);
}

/* KIND IDENTITY: of one that the access file still has. */
static void quota_note(struct quota *quota, struct bytes field, int64_t number)
{
    static const char kinds[] = "hsb";
    static const enum access_quota quotas[] = {ACCESS_HELD, ACCESS_SESSIONS, ACCESS_STORED_BYTES};
    const char *kind = field.len > 1 ? memchr(kinds, field.at[0], sizeof(kinds) - 1) : NULL;
    const char *identity = kind == NULL ? NULL
                                        : access_identity(quota->worker->access,
                                                          (struct bytes){field.at + 1, field.len - 1});

    if (identity != NULL && number > 0)
        access_use(identity)->counting[quotas[kind - kinds]] += number;
}

static enum step quota_looked(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct quota *quota = container_of(call, struct quota, call.store);
    const struct store_reply *found = member_problem(&quota->call, outcome, reply) == PROBLEM_NONE
                                          ? store_reply_list(reply, 2)
                                          : NULL;

    quota->is_running = false;
    if (found == NULL) {
        quota->stripe = 0;
        return ANSWERED;
    }
    for (size_t i = 0; i + 1 < store_reply_count(found); i += 2)
        quota_note(quota, store_reply_text(found, i), store_reply_integer(found, i + 1));
    quota->stripe += QUOTA_LOOK;
    return ANSWERED;
}

static void quota_again(struct quota *quota)
{
    static const struct bytes of_role[] = {[MEMBER_LEASE] = {"due", 3}, [MEMBER_GATEWAY] = {"r:", 2}};
    struct bytes behind = of_role[quota->plan->role];

    quota->again = (quota->again + 1) % STRIPES;
    quota->argv[1] = (struct bytes){
        quota->keys[1],
        (size_t)snprintf(quota->keys[1], sizeof(quota->keys[1]), "pawl:{%02x}:%s", quota->again, behind.at)};
    quota_run(quota, quota->again, quota->plan->use_again, 2, 2, quota_counted);
}

static enum step quota_counted(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct quota *quota = container_of(call, struct quota, call.store);

    quota->is_running = false;
    (void)member_problem(&quota->call, outcome, reply); /* what was not counted is counted the next time */
    return ANSWERED;
}

void quota_tick(struct quota *quota)
{
    const struct access *access = quota->worker->access;

    if (quota->is_running || !access_counts_store(access))
        return;
    if (quota->stripe < STRIPES) {
        quota_look(quota);
        return;
    }
    access_count_ends();
    quota->stripe = 0;
    quota_again(quota);
}
