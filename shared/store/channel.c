/* channel.c - the channels that a subscriber listens to, or wants to. */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/store/store_internal.h"

enum { BATCH_MAX = 64 }; /* channels in one SUBSCRIBE */

static int compare(const void *a, const void *b)
{
    struct bytes one = ((const struct subscriber_channel *)a)->name,
                 other = ((const struct subscriber_channel *)b)->name;
    size_t len = one.len < other.len ? one.len : other.len;
    int order = len > 0 ? memcmp(one.at, other.at, len) : 0;

    return order != 0 ? order : (one.len > other.len) - (one.len < other.len);
}

struct subscriber_channel *channel_find(const struct subscriber_channels *channels, struct bytes name)
{
    struct subscriber_channel wanted = {.name = name};
    struct subscriber_channel *const *found = tfind(&wanted, &channels->tree, compare);

    return found != NULL ? *found : NULL;
}

static void *must_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    return memory;
}

struct subscriber_channel *channel_add(struct subscriber_channels *channels, struct bytes name)
{
    struct subscriber_channel *channel = channel_find(channels, name);
    char *at;

    if (channel != NULL) {
        return channel;
    }
    channel = must_have(calloc(1, sizeof(*channel) + name.len));
    at = (char *)(channel + 1);
    if (name.len > 0) {
        memcpy(at, name.at, name.len);
    }
    channel->name = (struct bytes){at, name.len};
    must_have(tsearch(channel, &channels->tree, compare));
    return channel;
}

void channel_remove(struct subscriber_channels *channels, struct subscriber_channel *channel)
{
    tdelete(channel, &channels->tree, compare);
    free(channel);
}

bool channel_is_pattern(struct bytes name)
{
    return name.len > 0 && name.at[name.len - 1] == '*';
}

void channel_put_subscribe(struct store_wire *wire, struct subscriber_channel *channel)
{
    struct bytes word = channel_is_pattern(channel->name) ? BYTES("PSUBSCRIBE") : BYTES("SUBSCRIBE");

    channel->asked++;
    wire_put_command(wire, (struct bytes[]){word, channel->name}, 2);
}

void channel_put_unsubscribe(struct store_wire *wire, struct subscriber_channel *channel)
{
    struct bytes word = channel_is_pattern(channel->name) ? BYTES("PUNSUBSCRIBE") : BYTES("UNSUBSCRIBE");

    channel->listens = false;
    wire_put_command(wire, (struct bytes[]){word, channel->name}, 2);
}

/* -- all of them; tsearch's tree is walked in order, each inner node three times (twalk_r(3)) */

struct batch {
    struct store_wire *wire;
    struct bytes argv[1 + BATCH_MAX];
    unsigned argc;
};

static void batch_put(struct batch *batch)
{
    if (batch->argc > 1) {
        wire_put_command(batch->wire, batch->argv, batch->argc);
        batch->argc = 1;
    }
}

static void subscribe_one(const void *node, VISIT visit, void *closure)
{
    struct subscriber_channel *channel = *(struct subscriber_channel *const *)node;
    struct batch *batch = closure;

    if (visit != postorder && visit != leaf) {
        return;
    }
    if (channel_is_pattern(channel->name)) {
        channel_put_subscribe(batch->wire, channel);
        return;
    }
    channel->asked++;
    batch->argv[batch->argc++] = channel->name;
    if (batch->argc == 1 + BATCH_MAX) {
        batch_put(batch);
    }
}

void channels_begin_link(struct subscriber_channels *channels, struct store_wire *wire)
{
    struct batch batch = {.wire = wire, .argv[0] = BYTES("SUBSCRIBE"), .argc = 1};

    twalk_r(channels->tree, subscribe_one, &batch);
    batch_put(&batch);
}

static void end_one(const void *node, VISIT visit, void *closure)
{
    struct subscriber_channel *channel = *(struct subscriber_channel *const *)node;
    struct subscriber_channel **unwanted = closure;

    if (visit != postorder && visit != leaf) {
        return;
    }
    channel->listens = false;
    channel->asked = 0;
    if (channel->wanted == 0) {
        channel->next = *unwanted;
        *unwanted = channel;
    }
}

void channels_end_link(struct subscriber_channels *channels)
{
    struct subscriber_channel *unwanted = NULL;

    twalk_r(channels->tree, end_one, &unwanted);
    for (struct subscriber_channel *next; unwanted != NULL; unwanted = next) {
        next = unwanted->next;
        channel_remove(channels, unwanted);
    }
}

void channels_free(struct subscriber_channels *channels)
{
    tdestroy(channels->tree, free);
    channels->tree = NULL;
}
