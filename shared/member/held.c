/* held.c - messages of Redis that tell a client something wait for the in-sync set, as answers do.
 *
 *   member_held_take   handed on at once while answers wait for nobody; else behind those that wait
 *   held_ask           one command for all that have come: its answer is kept when they are
 *   held_asked         what had come before it is handed on; or all that waits is missed */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "shared/member/member.h"
#include "shared/text/memory.h"

enum { HELD_BYTES_MAX = 4 * 1024 * 1024 };

struct held_message {
    STAILQ_ENTRY(held_message) entry;
    size_t channel_len, len;
    char text[]; /* both */
};

struct member_held {
    struct member_line *line;
    struct member_held_owner *owner;
    struct store_call call;
    bool is_asked;
    unsigned count, asked; /* asked: how many of the first ones had come when it was asked */
    size_t bytes;
    STAILQ_HEAD(, held_message) messages;
};

static store_done_fn held_asked;

static void held_ask(struct member_held *held)
{
    static const struct bytes ping = {"PING", 4};

    if (held->is_asked || held->count == 0)
        return;
    held->is_asked = true;
    held->asked = held->count;
    held->call = (struct store_call){.done = held_asked, .is_kept = true};
    store_ask(held->line->store, &held->call, 1, &ping);
}

static struct held_message *held_pop(struct member_held *held)
{
    struct held_message *one = STAILQ_FIRST(&held->messages);

    STAILQ_REMOVE_HEAD(&held->messages, entry);
    held->count--;
    held->bytes -= one->channel_len + one->len;
    return one;
}

void member_held_forget(struct member_held *held)
{
    held->asked = 0;
    while (held->count > 0)
        free(held_pop(held));
}

static void held_miss(struct member_held *held)
{
    member_held_forget(held);
    held->owner->missed(held->owner);
}

static enum step held_asked(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct member_held *held = container_of(call, struct member_held, call);

    (void)reply;
    held->is_asked = false;
    if (outcome != STORE_DONE || epoch_lease_is_over(held->line->store_epoch)) {
        held_miss(held);
        return ANSWERED;
    }
    while (held->asked > 0) { /* who gets it may have all that waits forgotten */
        struct held_message *one = held_pop(held);

        held->asked--;
        held->owner->kept(held->owner, (struct bytes){one->text, one->channel_len},
                          (struct bytes){one->text + one->channel_len, one->len});
        free(one);
    }
    held_ask(held);
    return ANSWERED;
}

void member_held_take(struct member_held *held, struct bytes channel, struct bytes message)
{
    struct held_message *one;

    member_line_problem(held->line); /* has the link go by the newest set */
    if (held->bytes >= HELD_BYTES_MAX || epoch_lease_is_over(held->line->store_epoch)) {
        held_miss(held); /* it may be of a primary that is none any more */
        return;
    }
    if (held->count == 0 && !store_keeps(held->line->store)) {
        held->owner->kept(held->owner, channel, message);
        return;
    }
    one = must_have(malloc(sizeof(*one) + channel.len + message.len));
    *one = (struct held_message){.channel_len = channel.len, .len = message.len};
    memcpy(one->text, channel.at, channel.len);
    memcpy(one->text + channel.len, message.at, message.len);
    STAILQ_INSERT_TAIL(&held->messages, one, entry);
    held->count++;
    held->bytes += channel.len + message.len;
    held_ask(held);
}

struct member_held *member_held_new(struct member_line *line, struct member_held_owner *owner)
{
    struct member_held *held = must_have(calloc(1, sizeof(*held)));

    held->line = line;
    held->owner = owner;
    STAILQ_INIT(&held->messages);
    return held;
}

void member_held_free(struct member_held *held)
{
    member_held_forget(held);
    free(held);
}
