/* lease.c - the lease on the epoch: until when this process answers what it reads from its primary.
 *
 * Sentinel may have promoted another node of which this process knows nothing, while the former primary goes
 * on answering it. So heartbeats are numbered; a lease service says with each of its own which ones of all
 * members it has read of (its echo); and a process answers only for 3 s from *sending* the heartbeat that a
 * majority of the registrars has echoed. Who admits another epoch without having heard this process waits
 * until a majority has echoed nothing for longer than that (lease/scripts/admit.lua). Only the rates of
 * clocks matter. */
#include <stdio.h>

#include "shared/member/member_internal.h"

enum { LEASE_US = 3000 * 1000, REPLY_SENT = 17, REPLY_ECHOED = 18 };

/* A process of before with this state directory may have sent an echo just now. */
void lease_begin(struct member *member)
{
    member->lease.echoed_us = epoch_clock_us();
    if (member->is_leased)
        epoch_lease_until(member->store_epoch, 0);
}

void lease_put(struct member *member, struct bytes args[3])
{
    uint64_t now_us = epoch_clock_us();

    args[0] = args[1] = args[2] = BYTES("");
    if (!member->is_leased)
        return;
    if (member->state != MEMBER_IN)
        member->lease.echo[0] = '\0';
    member->lease.sent_us[++member->lease.number % MEMBER_SENT_MAX] = now_us;
    if (member->lease.echo[0] != '\0')
        member->lease.echoed_us = now_us;
    args[0] = bytes_of_number(member->lease.text[0], member->lease.number);
    args[1] = bytes_of(member->lease.echo);
    args[2] = bytes_of_number(member->lease.text[1], (int64_t)((now_us - member->lease.echoed_us) / 1000));
}

void lease_take(struct member *member, const struct store_reply *reply)
{
    struct bytes sent = store_reply_text(reply, REPLY_SENT);
    int64_t echoed = store_reply_integer(reply, REPLY_ECHOED);

    if (!member->is_leased)
        return;
    if (member->plan->role == MEMBER_LEASE && sent.len < sizeof(member->lease.echo))
        snprintf(member->lease.echo, sizeof(member->lease.echo), "%.*s", (int)sent.len, sent.at);
    member->lease.was_echoed = member->lease.was_echoed || echoed > 0;
    if (echoed > member->lease.number - MEMBER_SENT_MAX && echoed > 0 && echoed <= member->lease.number)
        epoch_lease_until(member->store_epoch, member->lease.sent_us[echoed % MEMBER_SENT_MAX] + LEASE_US);
    lease_watch(member);
}

/* A process that has just come is no reason for a line in the log. */
void lease_watch(struct member *member)
{
    struct epoch *store_epoch = member->store_epoch;

    if (member->state != MEMBER_IN || !epoch_lease_is_over(store_epoch))
        return;
    if (!member->lease.was_echoed) {
        epoch_suspend(store_epoch, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
                      "The lease services have yet to read of the first heartbeats of this process.");
        return;
    }
    member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
                  "No majority of the registrars has read of a heartbeat of this process in the last 3 s: "
                  "another node may be primary. Is the way to the lease services cut, or are too few of them "
                  "running?");
}
