/* probe.c - another node of the same Redis, asked of itself what its primary cannot know: whether what it
 * acknowledges is on its disk.
 *
 * After a full resync a replica acknowledges what is in its memory; on its disk is what was there before,
 * until the rewrite that follows has ended (restartAOFAfterSYNC() in replication.c of Redis 7.0.15). An
 * address may lead to another node than the one that announces it (a name in the DNS, a router), whose run_id
 * would stand for what this one acknowledges: so each new link is asked for what is announced, too. */
#include <stdlib.h>
#include <string.h>

#include "shared/store/store_internal.h"
#include "shared/text/memory.h"

enum { LOOK_EACH_MS = 1000 };

struct store_probe {
    struct store *store;
    struct store_call call, eval, name;
    struct bytes words[4], eval_words[3], name_words[3];
    char *said;
    bool is_asking, is_naming;
    uint64_t link;   /* the number of the one that was asked for its name */
    bool is_another; /* it announces another one */
    bool was_off;    /* its file, and the rewrite with which it begins has not ended yet */
    uint64_t sent_us;
    struct store_probe_answer answer;
};

/* In this order. */
static const struct {
    const char *field, *must, *must_not, *why;
} asked[] = {
    {"role", "slave", NULL, "not-a-replica"},
    {"master_link_status", "up", NULL, "link-down"},
    {"loading", "0", NULL, "link-down"},
    {"slave_priority", NULL, "0", "priority-0"},
    {"aof_enabled", "1", NULL, "no-aof"},
    {"aof_last_write_status", "ok", NULL, "aof-failed"},
    {"aof_rewrite_in_progress", "0", NULL, "rewriting"},
    {"aof_rewrite_scheduled", "0", NULL, "rewriting"},
    {"aof_last_bgrewrite_status", "ok", NULL, "rewriting"},
};

static const char *info_why(struct bytes info)
{
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct bytes is = reply_info_field(info, asked[i].field);

        if (is.at == NULL || (asked[i].must != NULL && !bytes_are(is, asked[i].must)) ||
            (asked[i].must_not != NULL && bytes_are(is, asked[i].must_not)))
            return asked[i].why;
    }
    return NULL;
}

static enum step probe_said(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct store_probe *probe = container_of(call, struct store_probe, eval);
    struct bytes said = store_reply_text(reply, 0);

    probe->is_asking = false;
    free(probe->said);
    probe->said = outcome == STORE_DONE ? must_have(strndup(said.at, said.len)) : NULL;
    probe->answer.said = probe->said;
    return ANSWERED;
}

static enum step probe_named(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct store_probe *probe = container_of(call, struct store_probe, name);
    const struct store_url *url = &probe->store->dial.url;

    probe->is_naming = false;
    if (outcome != STORE_DONE)
        return ANSWERED;
    probe->link = store_link_number(probe->store);
    probe->is_another = false;
    for (size_t i = 0; i + 1 < store_reply_count(reply); i += 2) {
        struct bytes is = store_reply_text(reply, i + 1);
        bool is_host = bytes_are(store_reply_text(reply, i), "replica-announce-ip");

        probe->is_another |= is_host ? is.len > 0 && !bytes_are(is, url->host)
                                     : !bytes_are(is, "0") && bytes_number(is, 5) != url->port;
    }
    return ANSWERED;
}

static enum step probe_done(struct store_call *call, enum store_outcome outcome,
                            const struct store_reply *reply)
{
    struct store_probe *probe = container_of(call, struct store_probe, call);
    struct bytes info = store_reply_text(reply, 0), run_id = reply_info_field(info, "run_id");
    struct bytes before = reply_info_field(info, "master_replid2");
    const char *why = outcome != STORE_DONE || run_id.len != STORE_RUN_ID_LEN ? "unreachable"
                                                                              : info_why(info);

    probe->is_asking = false;
    if (why == NULL || strcmp(why, "no-aof") == 0)
        probe->was_off = why != NULL;
    else if (probe->was_off && strcmp(why, "rewriting") == 0)
        why = "no-aof";
    if (why == NULL && store_unsafe(probe->store) != NULL)
        why = "unsafe";
    if (why == NULL && probe->link != store_link_number(probe->store))
        why = "asking";
    else if (why == NULL && probe->is_another)
        why = "announces-another";
    if (run_id.len == STORE_RUN_ID_LEN)
        memcpy(probe->answer.run_id, run_id.at, run_id.len);
    if (before.len == STORE_RUN_ID_LEN)
        memcpy(probe->answer.before, before.at, before.len);
    if ((why == NULL) != (probe->answer.why == NULL) || (why != NULL && strcmp(why, probe->answer.why) != 0))
        probe->answer.since_ms = loop_now_ms();
    probe->answer.why = why;
    probe->answer.asked_us = probe->sent_us;
    probe->is_asking = probe->eval_words[1].len > 0;
    if (probe->is_asking)
        store_ask(probe->store, &probe->eval, 3, probe->eval_words);
    return ANSWERED;
}

struct store_probe *store_probe_open(const struct store *store, const char *node)
{
    struct store_probe *probe = must_have(calloc(1, sizeof(*probe)));

    probe->store = store_open_at(store, node);
    store_look_every(probe->store, LOOK_EACH_MS);
    probe->call.done = probe_done;
    probe->name.done = probe_named;
    probe->eval.done = probe_said;
    probe->words[0] = BYTES("INFO");
    probe->words[1] = BYTES("server");
    probe->words[2] = BYTES("replication");
    probe->words[3] = BYTES("persistence");
    probe->name_words[0] = BYTES("CONFIG");
    probe->name_words[1] = BYTES("GET");
    probe->name_words[2] = BYTES("replica-announce-*");
    probe->answer.why = "asking";
    probe->answer.since_ms = loop_now_ms();
    return probe;
}

void store_probe_close(struct store_probe *probe)
{
    store_close(probe->store);
    free(probe->said);
    free(probe);
}

void store_probe_hear(struct store_probe *probe, struct bytes script)
{
    probe->eval_words[0] = BYTES("EVAL");
    probe->eval_words[1] = script;
    probe->eval_words[2] = BYTES("0");
}

void store_probe_ask(struct store_probe *probe)
{
    if (probe->is_asking)
        return;
    probe->is_asking = true;
    probe->sent_us = loop_now_us();
    if (!probe->is_naming && probe->link != store_link_number(probe->store)) {
        probe->is_naming = true; /* answered before the other one */
        store_ask(probe->store, &probe->name, 3, probe->name_words);
    }
    store_ask(probe->store, &probe->call, 4, probe->words);
}

const struct store_probe_answer *store_probe_answer(const struct store_probe *probe)
{
    return &probe->answer;
}

struct store *store_probe_store(struct store_probe *probe)
{
    return probe->store;
}
