/* quota.c - how much identities hold, have open and have stored, in the whole store: what the quotas held,
 * sessions and stored_bytes are judged by (shared/service/limits.c). Each service counts for itself.
 *
 *   quota_tick      every 100 ms, if any identity has such a quota
 *   quota_looked    use_look.lua: note them; after the last stripe they are in force
 *   quota_counted   then plan->use_again: one stripe was counted anew from its records; all, one after
 *                   another, where nobody has looked until now, so that nothing was counted, and when an
 *                   epoch has begun, which may have ended what was
 *
 * A round takes about a second. */
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "shared/member/member_internal.h"
#include "shared/text/memory.h"

enum { QUOTA_LOOK = 32, COUNTED_MS = 2000 };

struct quota {
    struct worker *worker;
    struct member_call call;
    bool is_running;
    unsigned stripe, again; /* the next to be looked at; the next to be counted anew */
    unsigned left;          /* how many are to be counted anew before the next look */
    int64_t epoch;          /* in which that was begun */
    uint64_t counted_ms;    /* when the last of all were counted anew; 0: never */
    char key[KEYS_STRIPE_SIZE], number[2][MEMBER_NUMBER_SIZE];
    struct bytes argv[5 + MEMBER_ARGS];
};

struct quota *quota_new(struct worker *worker)
{
    struct quota *quota = must_have(calloc(1, sizeof(*quota)));

    quota->worker = worker;
    quota->again = (unsigned)(loop_now_us() % STRIPES); /* several services begin elsewhere */
    return quota;
}

/* KIND IDENTITY: of one that the access file still has. */
static void quota_note(struct quota *quota, struct bytes field, int64_t number)
{
    static const char kinds[] = "hsb";
    static const enum access_quota quotas[] = {ACCESS_HELD, ACCESS_SESSIONS, ACCESS_STORED_BYTES};
    const char *kind = field.len > 1 ? memchr(kinds, field.at[0], sizeof(kinds) - 1) : NULL;
    const char *identity = NULL;

    if (kind != NULL && number > 0)
        identity = access_identity(quota->worker->access, (struct bytes){field.at + 1, field.len - 1});
    if (identity != NULL)
        access_use(identity)->counting[quotas[kind - kinds]] += number;
}

static enum step quota_looked(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct quota *quota = container_of(call, struct quota, call.store);
    bool is_good = member_problem(&quota->call, outcome, reply) == PROBLEM_NONE;
    const struct store_reply *found = is_good ? store_reply_list(reply, 2) : NULL;

    quota->is_running = false;
    quota->left = found != NULL ? 0 : STRIPES;
    for (size_t i = 0; found != NULL && i + 1 < store_reply_count(found); i += 2)
        quota_note(quota, store_reply_text(found, i), store_reply_integer(found, i + 1));
    quota->stripe += found != NULL ? QUOTA_LOOK : 0;
    return ANSWERED;
}

static enum step quota_counted(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct quota *quota = container_of(call, struct quota, call.store);

    quota->is_running = false;
    if (member_problem(&quota->call, outcome, reply) == PROBLEM_NONE) {
        quota->again = (quota->again + 1) % STRIPES;
        quota->left--;
        if (quota->left > 0) {
            quota->counted_ms = loop_now_ms();
            quota_tick(quota);
        }
    }
    return ANSWERED;
}

static void quota_run(struct quota *quota, unsigned stripe, const struct store_script *script,
                      store_done_fn *done)
{
    quota->call.store.done = done;
    quota->argv[0] = keys_stripe(quota->key, stripe);
    quota->argv[1] = bytes_of_number(quota->number[0], stripe);
    quota->argv[2] = bytes_of_number(quota->number[1], QUOTA_LOOK);
    quota->argv[3] = bytes_of(((const struct member_plan *)quota->worker->service->plan->own)->use_kinds);
    quota->argv[4] = store_not_loaded(quota->worker->store) != NULL &&
                             quota->counted_ms + COUNTED_MS > loop_now_ms()
                         ? BYTES("counted")
                         : BYTES("");
    quota->is_running = member_run(member_line_of_worker(quota->worker), &quota->call, stripe, script, 1, 5,
                                   quota->argv) == PROBLEM_NONE;
}

void quota_tick(struct quota *quota)
{
    const struct member_plan *plan = quota->worker->service->plan->own;
    int64_t epoch = epoch_number(member_line_of_worker(quota->worker)->store_epoch);

    if (quota->is_running || !access_counts_store(quota->worker->access))
        return;
    if (quota->epoch != epoch)
        quota->left = STRIPES;
    quota->epoch = epoch;
    if (quota->left > 0) {
        quota_run(quota, quota->again, plan->use_again, quota_counted);
    } else if (quota->stripe < STRIPES) {
        quota_run(quota, quota->stripe, &script_use_look, quota_looked);
    } else {
        access_count_ends();
        quota->stripe = 0;
        quota->left = 1;
    }
}
