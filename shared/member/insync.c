/* insync.c - the in-sync set: who is taken out of it, and who gets in (docs/decisions/0047).
 *
 *   insync_tick   each node that copies this Redis is asked of itself, several times a second; then a wish
 *   insync_wish   goes with a heartbeat, and Redis follows it if nothing has changed since (lib/insync.lua)
 *   insync_take   the nodes that must acknowledge, for all workers of the process
 *   insync_behind, insync_said   a primary that was started again: what the other nodes of the set have
 *
 * Each lease service does so, and the first to wish is followed. A wish is of one step, the most urgent:
 *   drop     the one that is being added is away
 *   grown    it has acknowledged what came after it was waited for
 *   shrink   one is away, or does not keep what it acknowledges
 *   gone     the same of one that was started again, if too few are left without it
 *   asked    one has connected, no matter which: all that are there keep what they acknowledge; "-": one does
 *            not, and cannot be taken out
 *   grow     one is in step, and keeps what it acknowledges */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/member/member_internal.h"
#include "shared/text/memory.h"

enum { ASK_MS = 100, WISH_MS = 150, ABSENT_MS = 200, SILENT_MS = 200, GROW_US = 1000000 };

struct insync_probe {
    char name[STORE_NODE_MAX];
    struct store_probe *probe;
    bool is_named;
};

struct insync {
    struct member *member;
    struct epoch_set set;
    struct insync_probe probes[STORE_NODES_SEEN];
    unsigned probe_count;
    uint64_t asked_ms, wished_ms;
    int64_t syncs;          /* how often replicas have connected, as last seen */
    uint64_t synced_us;     /* when it was seen first */
    uint64_t link;          /* the number of the link behind which */
    uint64_t grow_us, goal; /* since when a node is being added; what it must acknowledge, 0: not known yet */
    int64_t grow_epoch;     /* which began with that; another time that it is added begins another one */
    char wish[MEMBER_WISH_SIZE], sent[MEMBER_WISH_SIZE];
    struct insync_probe others[STORE_NODES_MAX]; /* while this Redis is behind */
    unsigned other_count;
    char said[MEMBER_SAID_SIZE];
};

struct insync *insync_new(struct member *member)
{
    struct insync *in = must_have(calloc(1, sizeof(*in)));

    in->member = member;
    in->syncs = -1;
    return in;
}

static void others_close(struct insync *in)
{
    while (in->other_count > 0)
        store_probe_close(in->others[--in->other_count].probe);
}

void insync_free(struct insync *in)
{
    others_close(in);
    for (unsigned i = 0; i < in->probe_count; i++)
        store_probe_close(in->probes[i].probe);
    free(in);
}

/* -- what Redis says */

/* "host:port/RUN_ID"; or, of the one that is forgotten, "-host:port". */
static bool node_take(struct epoch_set *set, struct bytes node)
{
    size_t len = node.len > STORE_RUN_ID_LEN + 1 ? node.len - STORE_RUN_ID_LEN - 1 : 0;

    if (bytes_take(&node, BYTES("-"))) {
        snprintf(set->forgotten, sizeof(set->forgotten), "%.*s", (int)node.len, node.at);
        return true;
    }
    if (len == 0 || len >= STORE_NODE_MAX || node.at[len] != '/' || set->count == STORE_NODES_MAX)
        return false;
    memcpy(set->nodes[set->count], node.at, len);
    memcpy(set->runs[set->count++], node.at + len + 1, STORE_RUN_ID_LEN);
    return true;
}

static void log_set(struct member *member, const struct epoch_set *set)
{
    char names[STORE_NODES_MAX * STORE_NODE_MAX] = "";
    size_t len = 0;

    for (unsigned i = 0; i < set->count - (set->growing ? 1 : 0); i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i > 0 ? " " : "", set->nodes[i]);
    struct log_field fields[] = {LOG_T("kept", bytes_of(names)), LOG_I("copies", set->copies),
                                 LOG_T("joins", bytes_of(set->growing ? set->nodes[set->count - 1] : "")),
                                 LOG_END};
    member->event(member, LOG_WARNING, "store-kept-changed", fields);
}

void insync_take(struct member *member, const struct store_reply *list)
{
    struct epoch_set set, before;
    size_t count = list != NULL ? store_reply_count(list) : 0;

    memset(&set, 0, sizeof(set));
    epoch_nodes(member->store_epoch, &before);
    if (count > 3) {
        int64_t syncs = store_reply_integer(list, 1);

        set.copies = (unsigned)store_reply_integer(list, 0);
        set.growing = store_reply_text(list, 2).len > 0;
        set.syncs = syncs >= 0 ? syncs : STORE_SYNCS_NONE;
    }
    for (size_t i = 3; i < count; i++)
        if (!node_take(&set, store_reply_text(list, i)))
            return; /* a set that is not understood changes nothing: that of before stays */
    if (member->insync != NULL && set.growing && member->insync->grow_epoch != member->listed_epoch) {
        member->insync->grow_epoch = member->listed_epoch;
        member->insync->grow_us = loop_now_us();
        member->insync->goal = 0;
    }
    if (!epoch_set_nodes(member->store_epoch, &set))
        return;
    if (set.count != before.count || set.growing != before.growing ||
        memcmp(set.nodes, before.nodes, sizeof(set.nodes)) != 0)
        log_set(member, &set);
    if (member->insync != NULL)
        member->insync->set = set;
}

/* -- what the nodes say of themselves */

/* Its place in the list; count: it is not there. */
static unsigned probe_find(const struct insync_probe *list, unsigned count, struct bytes name)
{
    unsigned i = 0;

    while (i < count && !bytes_are(name, list[i].name))
        i++;
    return i;
}

/* The one of this name in a list that has room for so many; NULL: it is full. */
static struct insync_probe *probe_name(struct insync *in, struct insync_probe *list, unsigned *count,
                                       unsigned most, struct bytes name)
{
    unsigned i = probe_find(list, *count, name);
    struct insync_probe *one = &list[i];

    if (i < *count || i == most)
        return i == most ? NULL : one;
    (*count)++;
    snprintf(one->name, sizeof(one->name), "%.*s", (int)name.len, name.at);
    one->probe = store_probe_open(in->member->store, one->name);
    return one;
}

static const struct store_probe_answer *answer_of(const struct insync *in, const char *name)
{
    unsigned i = probe_find(in->probes, in->probe_count, bytes_of(name));

    return i < in->probe_count ? store_probe_answer(in->probes[i].probe) : NULL;
}

static void nodes_ask(struct insync *in, const struct store_node *nodes, unsigned seen)
{
    for (unsigned i = 0; i < in->probe_count; i++)
        in->probes[i].is_named = false;
    for (unsigned i = 1; i < seen; i++) {
        const struct store_probe_answer *answer = answer_of(in, nodes[i].name);
        struct insync_probe *one = probe_name(in, in->probes, &in->probe_count, STORE_NODES_SEEN,
                                              bytes_of(nodes[i].name));

        if (one != NULL)
            one->is_named = true;
        store_node_says(in->member->store, i, answer != NULL ? answer->why : NULL);
    }
    for (unsigned i = in->probe_count; i-- > 0;) {
        if (in->probes[i].is_named) {
            store_probe_ask(in->probes[i].probe);
            continue;
        }
        store_probe_close(in->probes[i].probe);
        in->probes[i] = in->probes[--in->probe_count];
    }
}

/* -- what follows */

static bool is_absent(const struct store_node *node)
{
    return node->why != NULL && strcmp(node->why, "absent") == 0;
}

/* Whether it keeps what it has acknowledged since one of them connected last. */
static bool keeps(const struct insync *in, const struct store_node *node, const char *run)
{
    const struct store_probe_answer *answer = answer_of(in, node->name);

    return answer != NULL && answer->why == NULL && answer->asked_us > in->synced_us &&
           (run == NULL || strcmp(answer->run_id, run) == 0);
}

static bool is_restarted(const struct insync *in, const char *name, const char *run)
{
    const struct store_probe_answer *answer = answer_of(in, name);

    return answer != NULL && answer->run_id[0] != '\0' && strcmp(answer->run_id, run) != 0;
}

/* From this very stream: it is going to take over, and without it nobody could. A sentinel that promotes ends
 * all connections to it: one that was promoted, and cannot be reached for a moment, is not known to be
 * anything else. */
static bool is_promoted(const struct insync *in, const struct store_probe_answer *answer)
{
    char stream[EPOCH_STREAM_SIZE];
    const char *id;
    bool is_unknown = answer->why != NULL && strcmp(answer->why, "unreachable") == 0 &&
                      loop_now_ms() - answer->since_ms < in->member->settings->keep_wait_ms;

    (void)epoch_stream(in->member->store_epoch, stream);
    id = strchr(stream, ':');
    return id != NULL && answer->why != NULL && (is_unknown || strcmp(answer->why, "not-a-replica") == 0) &&
           strcmp(answer->before, id + 1) == 0;
}

/* One that was promoted is absent, too: so it is asked first, for as long as one that is silent is waited
 * for. A rewrite matters only where a full resync may have been before it. */
static bool is_out(const struct insync *in, const struct store_node *node, const char *run)
{
    const struct store_probe_answer *answer = answer_of(in, node->name);
    uint64_t now_ms = loop_now_ms(), wait_ms = in->member->settings->keep_wait_ms;

    if (is_restarted(in, node->name, run))
        return true;
    if (answer == NULL || is_promoted(in, answer) ||
        (is_absent(node) && answer->asked_us < node->since_ms * 1000 && now_ms - node->since_ms < wait_ms))
        return false;
    if (node->why != NULL && now_ms - node->since_ms >= (is_absent(node) ? ABSENT_MS : wait_ms))
        return true;
    return answer->why != NULL && now_ms - answer->since_ms >= wait_ms &&
           (in->set.syncs != in->syncs || strcmp(answer->why, "rewriting") != 0);
}

/* A look that began after it was waited for has shown the goal. */
static bool has_caught_up(struct insync *in, const struct store_node *nodes, unsigned last,
                          uint64_t looked_us)
{
    if (in->goal == 0 && looked_us > in->grow_us)
        in->goal = nodes[0].offset;
    return in->goal > 0 && nodes[last].offset >= in->goal;
}

__attribute__((format(printf, 3, 4))) static void wish(struct insync *in, const char *verb, const char *what,
                                                       ...)
{
    int len = snprintf(in->wish, sizeof(in->wish), "%" PRId64 " %s ", in->member->members_version, verb);
    va_list args;

    va_start(args, what);
    vsnprintf(in->wish + len, sizeof(in->wish) - (size_t)len, what, args);
    va_end(args);
    in->wished_ms = loop_now_ms();
    epoch_want_heartbeat(in->member->store_epoch);
}

/* Between two looks one that writes to a disk is often a little behind. */
static bool is_in_step(const struct store_node *node)
{
    return node->why == NULL ||
           (strcmp(node->why, "silent") == 0 && loop_now_ms() - node->since_ms < SILENT_MS);
}

/* Those that are away go when there are enough in step without them, or not at all: they would be waited for
 * all the same, or another one in their place, and could not take over. One that was started again never is
 * what it was: without it there may be too few, until it has joined. */
static bool wish_shrunk(struct insync *in, const struct store_node *nodes)
{
    const struct epoch_set *set = &in->set;
    char out[MEMBER_WISH_SIZE] = "";
    bool is_away[STORE_NODES_MAX] = {false};
    size_t len = 0;
    unsigned stay = 1, left = set->count;

    for (unsigned i = 1; i < set->count; i++) {
        is_away[i] = is_out(in, &nodes[i], set->runs[i]);
        stay += !is_away[i] && nodes[i].heard && is_in_step(&nodes[i]);
    }
    for (unsigned i = 1; i < set->count; i++)
        if (is_restarted(in, set->nodes[i], set->runs[i]) || (is_away[i] && stay >= set->copies)) {
            len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%s/%s", len > 0 ? " " : "",
                                    set->nodes[i], set->runs[i]);
            left--;
        }
    if (len > 0)
        wish(in, left < set->copies ? "gone" : "shrink", "%s", out);
    return len > 0;
}

static bool wish_asked(struct insync *in, const struct store_node *nodes)
{
    if (in->set.syncs == in->syncs || in->syncs < 0)
        return false;
    for (unsigned i = 1; i < in->set.count; i++)
        if (!is_absent(&nodes[i]) && !keeps(in, &nodes[i], in->set.runs[i]))
            return false;
    wish(in, "asked", "%" PRId64, in->syncs);
    return true;
}

/* It acknowledges what its disk does not get; or it copies nobody, and another one has its address. */
static bool is_doubtful(const struct store_node *node, const char *why)
{
    bool copies_nobody = strcmp(why, "link-down") == 0 || strcmp(why, "not-a-replica") == 0;

    return strcmp(why, "no-aof") == 0 || strcmp(why, "aof-failed") == 0 || strcmp(why, "unsafe") == 0 ||
           (copies_nobody && is_in_step(node));
}

/* Without it too few are left: so nothing is answered. At once when one has connected: CONFIG RESETSTAT sets
 * the count back, perhaps to the one for which all were asked. */
static bool wish_doubted(struct insync *in, const struct store_node *nodes)
{
    for (unsigned i = 1; i < in->set.count && in->set.syncs != STORE_SYNCS_NONE; i++) {
        const struct store_probe_answer *answer = answer_of(in, in->set.nodes[i]);

        if (answer == NULL || answer->why == NULL)
            continue;
        bool has_connected = in->syncs >= 0 && in->set.syncs != in->syncs && answer->asked_us > in->synced_us;
        if (has_connected || (loop_now_ms() - answer->since_ms >= in->member->settings->keep_wait_ms &&
                              is_doubtful(&nodes[i], answer->why))) {
            wish(in, "asked", "-");
            return true;
        }
    }
    return false;
}

static void wish_grown(struct insync *in, const struct store_node *nodes, unsigned seen)
{
    if (in->set.count == STORE_NODES_MAX ||
        loop_now_us() - in->grow_us < GROW_US) /* else the epoch outruns the clock, by which it begins */
        return;
    for (unsigned i = in->set.count; i < seen; i++) {
        if (!is_in_step(&nodes[i]) || !keeps(in, &nodes[i], NULL) || strpbrk(nodes[i].name, " ,") != NULL)
            continue;
        wish(in, "grow", "%s/%s", nodes[i].name, answer_of(in, nodes[i].name)->run_id);
        return;
    }
}

static void wish_find(struct insync *in, const struct store_node *nodes, unsigned seen, uint64_t looked_us)
{
    unsigned last = in->set.count - 1;

    if (in->set.growing && is_out(in, &nodes[last], in->set.runs[last]))
        wish(in, "drop", "%s/%s", in->set.nodes[last], in->set.runs[last]);
    else if (in->set.growing && has_caught_up(in, nodes, last, looked_us))
        wish(in, "grown", "%s/%s", in->set.nodes[last], in->set.runs[last]);
    else if (!wish_asked(in, nodes) && !in->set.growing && !wish_shrunk(in, nodes) &&
             !wish_doubted(in, nodes))
        wish_grown(in, nodes, seen);
}

/* Whether the link goes by this set already: the nodes are in its order. */
static bool is_applied(const struct insync *in, const struct store_node *nodes, unsigned in_set)
{
    bool is_same = in_set == in->set.count;

    for (unsigned i = 0; is_same && i < in_set; i++)
        is_same = strcmp(nodes[i].name, in->set.nodes[i]) == 0;
    return is_same;
}

/* Behind a new link there may be another Redis, to which as many have connected: what was seen and asked
 * before says nothing of it. Nor does what was seen before this process stood still. */
void insync_tick(struct insync *in)
{
    struct store *store = in->member->store;
    uint64_t now_ms = loop_now_ms(), link = store_link_number(store), looked_us;
    int64_t syncs = store_keep_syncs(store, &looked_us);
    unsigned seen, in_set;
    const struct store_node *nodes = store_nodes(store, &seen, &in_set);
    bool has_looked = looked_us >= store_link_since_us(store);

    others_close(in);
    if (nodes == NULL || in->set.count == 0 || !is_applied(in, nodes, in_set))
        return;
    syncs = has_looked && link == in->link ? syncs : -1;
    if (syncs != in->syncs)
        in->synced_us = loop_now_us();
    in->syncs = syncs;
    in->link = link;
    if (now_ms >= in->asked_ms + ASK_MS) {
        in->asked_ms = now_ms;
        store_keep_look(store);
        nodes_ask(in, nodes, seen);
    }
    if (has_looked && now_ms >= in->wished_ms + WISH_MS &&
        loop_now_us() < looked_us + (in->member->settings->keep_wait_ms + ABSENT_MS) * 1000)
        wish_find(in, nodes, seen, looked_us);
}

struct bytes insync_wish(struct insync *in)
{
    memcpy(in->sent, in->wish, sizeof(in->sent));
    in->wish[0] = '\0';
    return bytes_of(in->sent);
}

/* -- a primary that was started again: what the other nodes of the set have */

/* text: this Redis and the nodes of the set, "host:port/RUN_ID" each. */
void insync_behind(struct insync *in, struct bytes text)
{
    static const char script[] =
        "local all = {redis.call('HGET', 'pawl:{store}', 'id') or ''} for i = 0, 255 do "
        "all[#all + 1] = redis.call('HGET', string.format('pawl:{%02x}', i), 'seq') or '0' end "
        "return table.concat(all, ' ')";

    bytes_cut(&text, ' ');
    while (text.len > 0) {
        struct bytes node = bytes_cut(&text, ' ');
        struct insync_probe *one;

        if (node.len <= STORE_RUN_ID_LEN + 1 || node.len >= STORE_NODE_MAX)
            continue;
        node.len -= STORE_RUN_ID_LEN + 1;
        one = bytes_are(node, in->member->node)
                  ? NULL
                  : probe_name(in, in->others, &in->other_count, STORE_NODES_MAX, node);
        if (one == NULL)
            continue;
        store_probe_hear(one->probe, bytes_of(script));
        store_probe_ask(one->probe);
    }
}

struct bytes insync_said(struct insync *in)
{
    size_t len = 0;

    for (unsigned i = 0; i < in->other_count; i++) {
        const struct store_probe_answer *answer = store_probe_answer(in->others[i].probe);

        if (answer->said != NULL && answer->asked_us / 1000 >= in->member->gated_ms &&
            len + strlen(answer->said) + STORE_NODE_MAX + 2 < sizeof(in->said))
            len += (size_t)snprintf(in->said + len, sizeof(in->said) - len, "%s%s %s", len > 0 ? "," : "",
                                    in->others[i].name, answer->said);
    }
    return (struct bytes){in->said, len};
}
