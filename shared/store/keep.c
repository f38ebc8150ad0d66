/* keep.c - group commit by offset: an answer is handed on when every node of the in-sync set has it.
 *
 * The calls' link is never blocked. ROLE ends each flush of it and names the offset of the stream that the
 * calls before it need. A second connection, the witness, asks in a loop while an answer is held:
 *
 *   keep_begin   PUBLISH, so that something new is in the stream; WAIT, which has Redis ask for
 *                acknowledgements; INFO replication, which names who has acknowledged what
 *   keep_take    what each node has; what all nodes of the set have, of the stream of the link, is handed on
 *   keep_go_on   the next cycle: at once, or after a pause when nothing is held or nothing moved
 *
 * An answer that comes meanwhile has one more cycle asked for behind it: Redis begins that as soon as the
 * nodes have acknowledged, without a word of ours.
 *
 * WAIT's own count is worth nothing here: it counts replicas that nobody may promote. An acknowledgement must
 * be of more than an answer's offset: a read adds nothing to the stream, so that only what came into it later
 * proves that a node was still a copy of this Redis when the answer was made. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"
#include "shared/text/memory.h"

enum { AGAIN_MS = 10, IDLE_MS = 1000 };

static const struct store_refusal not_kept = {
    "", STORE_NOT_KEPT, "Too few nodes of Redis have a copy of what is answered",
    "Bring the nodes back that are away. Nothing was done.", STORE_REFUSED_BEFORE_START};

static bool is_on(const struct store_keep *keep)
{
    return keep != NULL && (keep->count > 1 || keep->copies > 1);
}

bool store_keeps(const struct store *store)
{
    return is_on(store->keep);
}

bool keep_waits(const struct store *store, const struct store_call *call)
{
    return store_keeps(store) && !call->at_once && (call->script != NULL || call->is_kept);
}

/* -- what is known of the nodes */

static void node_becomes(struct store_node *node, const char *why)
{
    if (why != NULL && (node->why == NULL || strcmp(node->why, why) != 0))
        node->since_ms = loop_now_ms();
    node->why = why;
}

static struct store_node *node_find(struct store_keep *keep, const char *name, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        if (strcmp(keep->nodes[i].name, name) == 0)
            return &keep->nodes[i];
    return NULL;
}

/* "ip=10.0.0.7,port=6379,state=online,offset=8123,lag=0" */
static struct bytes slave_field(struct bytes line, const char *name)
{
    size_t len = strlen(name);

    for (;;) {
        const char *comma = line.len > 0 ? memchr(line.at, ',', line.len) : NULL;
        size_t part = comma != NULL ? (size_t)(comma - line.at) : line.len;

        if (part > len && memcmp(line.at, name, len) == 0 && line.at[len] == '=')
            return (struct bytes){line.at + len + 1, part - len - 1};
        if (comma == NULL)
            return (struct bytes){NULL, 0};
        line = (struct bytes){comma + 1, line.len - part - 1};
    }
}

static uint64_t offset_of(struct bytes text)
{
    int64_t offset = bytes_number(text, 18);

    return offset > 0 ? (uint64_t)offset : 0;
}

/* Two copies may announce one address (a router, a setting that was copied): which of them is of the set is
 * not known, so both must have it. Redis sends an online replica nothing before its first acknowledgement
 * (replication.c of 7.0.15). */
static void see_slave(struct store_keep *keep, struct bytes line)
{
    struct bytes ip = slave_field(line, "ip"), port = slave_field(line, "port");
    bool is_online = bytes_are(slave_field(line, "state"), "online");
    uint64_t offset = is_online ? offset_of(slave_field(line, "offset")) : 0;
    char name[STORE_NODE_MAX];
    struct store_node *node;

    snprintf(name, sizeof(name), "%.*s:%.*s", (int)ip.len, ip.len > 0 ? ip.at : "", (int)port.len,
             port.len > 0 ? port.at : "");
    node = node_find(keep, name, 1, keep->seen);
    if (node == NULL && keep->seen == STORE_NODES_SEEN)
        return;
    if (node == NULL) {
        node = &keep->nodes[keep->seen++];
        *node = (struct store_node){0};
        memcpy(node->name, name, sizeof(name));
    }
    node->offset = node->heard && node->offset < offset ? node->offset : offset;
    node->lag_s = (unsigned)offset_of(slave_field(line, "lag"));
    node->heard = true;
}

/* Whether what the nodes acknowledge is known to be on their disks. */
static bool is_sure(const struct store_keep *keep)
{
    return keep->count == 1 || keep->syncs == STORE_SYNCS_ANY || keep->syncs == keep->syncs_seen;
}

/* Each time that a replica connects one of them rises. */
static int64_t syncs_of(struct bytes info)
{
    int64_t full = bytes_number(reply_info_field(info, "sync_full"), 17),
            partial = bytes_number(reply_info_field(info, "sync_partial_ok"), 17);

    return full >= 0 && partial >= 0 ? full + partial : -1;
}

static void see_syncs(struct store_keep *keep)
{
    if (is_sure(keep))
        keep->unsure_ms = 0;
    else if (keep->unsure_ms == 0)
        keep->unsure_ms = loop_now_ms();
}

/* Those that were in the set stay known, also while they are away. */
static void forget_others(struct store_keep *keep)
{
    unsigned seen = keep->seen;

    keep->seen = keep->count;
    for (unsigned i = keep->count; i < seen; i++)
        if (keep->nodes[i].was_in)
            keep->nodes[keep->seen++] = keep->nodes[i];
}

static void keep_see(struct store_keep *keep, const struct keep_cycle *cycle, struct bytes info)
{
    uint64_t goal = keep->nodes[0].offset; /* what was in the stream at the end of the cycle before */
    char name[16] = "slave0";

    forget_others(keep);
    for (unsigned i = 0; i < keep->seen; i++)
        keep->nodes[i].heard = false;
    for (unsigned i = 0; reply_info_field(info, name).at != NULL; i++) {
        see_slave(keep, reply_info_field(info, name));
        snprintf(name, sizeof(name), "slave%u", i + 1);
    }
    for (unsigned i = 1; i < keep->seen; i++) {
        struct store_node *node = &keep->nodes[i];

        node->offset = node->heard ? node->offset : 0;
        node_becomes(node, !node->heard          ? "absent"
                           : node->offset == 0   ? "not-online"
                           : node->offset < goal ? "silent"
                                                 : NULL);
    }
    keep->syncs_seen = syncs_of(info);
    see_syncs(keep);
    keep->looked_us = cycle->began_us;
    keep->nodes[0].offset = offset_of(reply_info_field(info, "master_repl_offset"));
    keep->seen_ms = loop_now_ms();
}

/* A silent node may only be slow: what is under way waits for it, and for as long new calls are sent. */
const char *store_not_kept(const struct store *store)
{
    struct store_keep *keep = store->keep;
    uint64_t now_ms = loop_now_ms();

    if (!is_on(keep))
        return NULL;
    if (keep->count - keep->joins < keep->copies) {
        snprintf(keep->not_kept, sizeof(keep->not_kept), "%u of at least %u nodes are in sync",
                 keep->count - keep->joins, keep->copies);
        return keep->not_kept;
    }
    if (keep->seen_ms == 0 || now_ms - keep->seen_ms > store->timeout_ms) {
        snprintf(keep->not_kept, sizeof(keep->not_kept), "it is not known what the nodes have%s%s",
                 keep->refusal != NULL ? ": " : "", keep->refusal != NULL ? keep->refusal->what : "");
        return keep->not_kept;
    }
    if (keep->unsure_ms > 0 && now_ms - keep->unsure_ms > store->timeout_ms)
        return "it is not known whether what the nodes have is on their disks";
    for (unsigned i = 1; i < keep->count; i++) {
        const struct store_node *node = &keep->nodes[i];
        bool is_slow = node->why != NULL && strcmp(node->why, "silent") == 0;

        if (node->why == NULL || (is_slow && now_ms - node->since_ms <= store->timeout_ms))
            continue;
        snprintf(keep->not_kept, sizeof(keep->not_kept), "%s is %s, and has to have a copy", node->name,
                 node->why);
        return keep->not_kept;
    }
    return NULL;
}

bool keep_refuses(struct store *store, struct store_call *call)
{
    bool refuses = keep_waits(store, call) && store_not_kept(store) != NULL;

    if (refuses)
        call->refusal = &not_kept;
    return refuses;
}

bool store_call_was_not_kept(const struct store_call *call)
{
    return call->refusal == &not_kept;
}

const struct store_node *store_nodes(const struct store *store, unsigned *count, unsigned *in_set)
{
    *count = store->keep != NULL ? store->keep->seen : 0;
    *in_set = store->keep != NULL ? store->keep->count : 0;
    return store->keep != NULL ? store->keep->nodes : NULL;
}

/* -- the cycle */

static unsigned cycles_under_way(const struct store_keep *keep)
{
    return (unsigned)keep->cycles[0].under_way + keep->cycles[1].under_way;
}

static void cycle_begin(struct store_keep *keep)
{
    struct keep_cycle *cycle = &keep->cycles[keep->cycles[0].under_way ? 1 : 0];

    cycle->under_way = cycle->whole = true;
    loop_timer_disarm(&keep->pause);
    cycle->began_us = loop_now_us();
    cycle->waits_for = !STAILQ_EMPTY(&keep->named) ? STAILQ_FIRST(&keep->named)->number : 0;
    keep->words[4] = bytes_of_number(keep->wait_for, keep->count - 1);
    for (unsigned i = 0; i < KEEP_CALLS; i++)
        store_ask(keep->witness, &cycle->calls[i].call, 3, keep->words + (size_t)3 * i);
}

static void keep_begin(struct store_keep *keep)
{
    if (cycles_under_way(keep) == 0)
        cycle_begin(keep);
}

static void keep_go_on(struct store_keep *keep, const struct keep_cycle *cycle)
{
    const struct store_call *first = STAILQ_FIRST(&keep->named);
    unsigned timeout_ms = keep->store->timeout_ms;

    if (cycles_under_way(keep) > 0)
        return;
    if (!is_on(keep) && keep->syncs == STORE_SYNCS_ANY && first == NULL && STAILQ_EMPTY(&keep->answered))
        return;
    if (cycle->whole && first != NULL && first->number != cycle->waits_for)
        keep_begin(keep);
    else if (first != NULL || store_not_kept(keep->store) != NULL)
        loop_timer_arm(&keep->pause, AGAIN_MS, 0);
    else
        loop_timer_arm(&keep->pause, timeout_ms / 2 < IDLE_MS ? timeout_ms / 2 : IDLE_MS, 0);
}

/* Of all nodes of the set. */
static uint64_t keep_acknowledged(const struct store_keep *keep)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 1; i < keep->count; i++)
        least = keep->nodes[i].offset < least ? keep->nodes[i].offset : least;
    return keep->count - keep->joins < keep->copies || !is_sure(keep) ? 0 : least;
}

static void keep_tell(struct store_keep *keep)
{
    uint64_t acknowledged = keep_acknowledged(keep);

    while (!STAILQ_EMPTY(&keep->named) && STAILQ_FIRST(&keep->named)->place < acknowledged) {
        struct store_call *call = call_list_take(&keep->named);
        redisReply *reply = call->reply;

        if (keep->store->owner != NULL && keep->store->owner->kept != NULL)
            keep->store->owner->kept(keep->store->owner, loop_now_us() - call->held_us);
        store_tell(keep->store, call, STORE_DONE, reply);
        freeReplyObject(reply);
    }
}

/* A stream's name never comes back: if it is the link's now, it was when the calls ran. A link that stands
 * since this cycle began may be of another one. */
static void keep_take(struct store_keep *keep, const struct keep_cycle *cycle, struct bytes info)
{
    struct store *store = keep->store;

    keep->refusal = NULL;
    keep_see(keep, cycle, info);
    if (!store_link_stands(store) || cycle->began_us < store->link.ready_us)
        return;
    if (bytes_are(reply_info_field(info, "role"), "master") &&
        bytes_are(reply_info_field(info, "master_replid"), store->link.stream)) {
        keep_tell(keep);
        return;
    }
    link_drop(store, "store-connecting", "the stream that the nodes copy is not any more that of the link");
    if (store_link_stands(keep->witness)) /* either may have been led to another Redis */
        link_drop(keep->witness, "store-connecting", "as the link");
}

static enum step asked_done(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct keep_cycle *cycle = container_of(call, struct keep_call, call)->cycle;

    (void)reply;
    if (call->refusal != NULL)
        cycle->keep->refusal = call->refusal;
    cycle->whole = cycle->whole && outcome == STORE_DONE;
    return ANSWERED;
}

static enum step info_done(struct store_call *call, enum store_outcome outcome,
                           const struct store_reply *reply)
{
    struct keep_cycle *cycle = container_of(call, struct keep_call, call)->cycle;
    struct store_keep *keep = cycle->keep;

    asked_done(call, outcome, reply);
    cycle->under_way = false;
    if (cycle->whole)
        keep_take(keep, cycle, store_reply_text(reply, 0));
    /* A witness that stands at another Redis than the link, to which the address has led before, and which is
     * no primary any more: as a replica it refuses to WAIT. */
    else if (store_link_stands(keep->store) && store_link_stands(keep->witness) &&
             strcmp(store_run_id(keep->witness), store_run_id(keep->store)) != 0)
        link_drop(keep->witness, "store-connecting", "it is another Redis than that of the link");
    if (!keep->closing)
        keep_go_on(keep, cycle);
    return ANSWERED;
}

static void pause_over(struct loop_timer *timer)
{
    keep_begin(container_of(timer, struct store_keep, pause));
}

/* -- what is held */

static void arm_due(struct store_keep *keep, uint64_t deadline_ms)
{
    uint64_t now_ms = loop_now_ms();

    if (deadline_ms >= keep->due_ms)
        return;
    keep->due_ms = deadline_ms;
    loop_timer_arm(&keep->due, deadline_ms > now_ms ? deadline_ms - now_ms : 1, 0);
}

void keep_hold(struct store *store, struct store_call *call, redisReply *reply)
{
    redisReply *own = must_have(malloc(sizeof(*own)));

    *own = *reply;
    *reply = (redisReply){.type = REDIS_REPLY_NIL};
    call->reply = own;
    call->held_us = loop_now_us();
    STAILQ_INSERT_TAIL(&store->keep->answered, call, next);
    arm_due(store->keep, call->deadline_ms);
}

void keep_ask(struct store *store)
{
    struct store_link *link = &store->link;
    struct store_call *role;

    if (store->keep == NULL || !store->keep->unasked || link->state != LINK_READY)
        return;
    store->keep->unasked = false;
    role = must_have(calloc(1, sizeof(*role)));
    role->state = CALL_OFFSET;
    role->deadline_ms = loop_now_ms() + store->timeout_ms;
    wire_put_command(&store->dial.wire, &BYTES("ROLE"), 1);
    STAILQ_INSERT_TAIL(&link->flight, role, next);
}

void keep_name(struct store *store, struct store_call *role, const redisReply *reply)
{
    struct store_keep *keep = store->keep;
    int64_t offset = store_reply_integer(reply_of(reply), 1);

    free(role);
    if (!store_reply_is(reply_of(reply), "master") || offset < 0) {
        bool is_refused = reply->type == REDIS_REPLY_ERROR;
        link_drop(store, is_refused ? "store-refused" : "store-connecting",
                  "ROLE names no offset of a master%s%.160s", is_refused ? ": " : "",
                  is_refused ? reply->str : "");
        return;
    }
    for (struct store_call *call; (call = call_list_take(&keep->answered)) != NULL;) {
        call->place = (uint64_t)offset;
        STAILQ_INSERT_TAIL(&keep->named, call, next);
    }
    if (!STAILQ_EMPTY(&keep->named) && cycles_under_way(keep) < KEEP_CYCLES)
        cycle_begin(keep);
}

static void end_unknown(struct store_keep *keep, struct call_list *list, uint64_t till_ms)
{
    struct call_list all = *list;

    STAILQ_INIT(list);
    for (struct store_call *call; (call = call_list_take(&all)) != NULL;) {
        if (call->deadline_ms > till_ms) {
            STAILQ_INSERT_TAIL(list, call, next);
            arm_due(keep, call->deadline_ms);
            continue;
        }
        freeReplyObject(call->reply);
        store_end_later(keep->store, call, STORE_UNKNOWN);
    }
}

void keep_lose(struct store *store)
{
    if (store->keep == NULL)
        return;
    store->keep->unasked = false;
    end_unknown(store->keep, &store->keep->named, UINT64_MAX);
    end_unknown(store->keep, &store->keep->answered, UINT64_MAX);
}

static void due_fired(struct loop_timer *timer)
{
    struct store_keep *keep = container_of(timer, struct store_keep, due);

    keep->due_ms = UINT64_MAX;
    if (store_link_stands(keep->witness))
        link_read(keep->witness); /* a process that was held up finds what has come in time */
    end_unknown(keep, &keep->named, loop_now_ms());
    end_unknown(keep, &keep->answered, loop_now_ms());
}

/* -- on and off */

static struct store_keep *keep_new(struct store *store)
{
    struct bytes words[] = {BYTES("PUBLISH"), BYTES("pawl:{kept}"), BYTES("x"),
                            BYTES("WAIT"),    BYTES("0"),           BYTES("100"),
                            BYTES("INFO"),    BYTES("replication"), BYTES("stats")};
    struct store_keep *keep = must_have(calloc(1, sizeof(*keep)));

    keep->store = store;
    keep->due_ms = UINT64_MAX;
    keep->syncs_seen = -1;
    for (struct keep_cycle *cycle = keep->cycles; cycle < keep->cycles + KEEP_CYCLES; cycle++) {
        cycle->keep = keep;
        for (unsigned i = 0; i < KEEP_CALLS; i++)
            cycle->calls[i] = (struct keep_call){.call.done = i + 1 < KEEP_CALLS ? asked_done : info_done,
                                                 .cycle = cycle};
    }
    memcpy(keep->words, words, sizeof(words));
    STAILQ_INIT(&keep->answered);
    STAILQ_INIT(&keep->named);
    loop_timer_init(store->loop, &keep->pause, pause_over);
    loop_timer_init(store->loop, &keep->due, due_fired);
    keep->witness = store_open_beside(store);
    return keep;
}

/* Those of before that are not among the first count any more go behind them. */
static unsigned follow_former(const struct store_keep *keep, struct store_node nodes[STORE_NODES_SEEN],
                              unsigned count)
{
    for (unsigned i = 1; i < keep->seen && count < STORE_NODES_SEEN; i++) {
        unsigned k = 0;

        while (k < count && strcmp(nodes[k].name, keep->nodes[i].name) != 0)
            k++;
        if (k == count) {
            nodes[count] = keep->nodes[i];
            nodes[count++].was_in |= i < keep->count;
        }
    }
    return count;
}

void store_keep(struct store *store, const struct bytes *nodes, unsigned count, unsigned joins,
                unsigned copies, int64_t syncs)
{
    struct store_node set[STORE_NODES_SEEN] = {{.name = ""}};
    struct store_keep *keep = store->keep;

    assert(count >= 1 && count <= STORE_NODES_MAX);
    if (keep == NULL && count == 1 && copies <= 1 && syncs == STORE_SYNCS_ANY)
        return;
    if (keep == NULL)
        keep = store->keep = keep_new(store);
    for (unsigned i = 0; i < count; i++) {
        assert(nodes[i].len < STORE_NODE_MAX);
        memcpy(set[i].name, nodes[i].at, nodes[i].len);
        const struct store_node *known = node_find(keep, set[i].name, 0, keep->seen);
        if (known != NULL)
            set[i] = *known;
        else
            keep->seen_ms = 0;
    }
    node_becomes(&set[0], NULL); /* what it was as a replica is over */
    keep->seen = follow_former(keep, set, count);
    memcpy(keep->nodes, set, sizeof(set));
    keep->count = count;
    keep->joins = joins;
    keep->copies = copies;
    keep->syncs = syncs;
    see_syncs(keep);
    keep->unasked = true; /* of what is under way no offset may have been asked for */
    keep_begin(keep);
}

void store_node_forget(struct store *store, const char *name)
{
    struct store_node *node = store->keep != NULL
                                  ? node_find(store->keep, name, store->keep->count, store->keep->seen)
                                  : NULL;

    if (node != NULL)
        node->was_in = false; /* the next look forgets it, unless it shows it */
}

void store_node_says(struct store *store, unsigned i, const char *why)
{
    store->keep->nodes[i].says = why;
}

void store_keep_look(struct store *store)
{
    if (store->keep != NULL)
        keep_begin(store->keep);
}

int64_t store_keep_syncs(const struct store *store, uint64_t *began_us)
{
    *began_us = store->keep != NULL ? store->keep->looked_us : 0;
    return store->keep != NULL ? store->keep->syncs_seen : -1;
}

void keep_close(struct store *store)
{
    struct store_keep *keep = store->keep;

    if (keep == NULL)
        return;
    keep->closing = true;
    store_close(keep->witness);
    loop_timer_done(&keep->pause);
    loop_timer_done(&keep->due);
    free(keep);
    store->keep = NULL;
}
