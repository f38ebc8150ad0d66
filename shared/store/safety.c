/* safety.c - what can be no store at all, and the settings that can lose locks, as CONFIG GET and
 * INFO tell them.
 *
 * maxmemory-policy counts even while maxmemory is 0: one CONFIG SET between two looks, and leases are
 * evicted. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

/* Each with the sentence that says so and what to do. */
static const struct {
    const char *field, *is, *check, *what, *remedy;
} misled[] = {
    {"redis_mode", "sentinel", "store-sentinel", "this is a Sentinel, which keeps no data",
     "Name the Redis that it watches (redis-cli -p 26379 SENTINEL MASTERS tells its address), and Redis' "
     "port."},
    {"redis_mode", "cluster", "store-cluster",
     "this Redis runs in cluster mode, which this version does not support",
     "Name a Redis of its own, with cluster-enabled no."},
    {"role", "slave", "store-replica", "this is a replica",
     "Name its primary, or promote it: REPLICAOF NO ONE."},
};

enum { MISLED = sizeof(misled) / sizeof(misled[0]) };

struct rule {
    const char *name, *must;
};

static const struct rule settings[] = {
    {"maxmemory-policy", "noeviction"},  {"appendonly", "yes"},        {"appendfsync", "always"},
    {"no-appendfsync-on-rewrite", "no"}, {"aof-load-truncated", "no"}, {"repl-backlog-ttl", "0"},
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]), LOOK_ADVICE = SETTINGS - 1, LOOK_PERSISTENCE };

_Static_assert(SAFETY_LOOKS == LOOK_PERSISTENCE + 1, "one command for each setting, and one of INFO");

/* What Redis is doing, whatever its settings say. */
static const struct rule persistence[] = {{"aof_enabled", "1"}, {"aof_last_write_status", "ok"}};

const char *misled_by(struct bytes info, char text[MISLED_TEXT_MAX])
{
    for (unsigned i = 0; i < MISLED; i++) {
        struct bytes host = reply_info_field(info, "master_host"),
                     port = reply_info_field(info, "master_port");
        bool of_whom = host.len > 0 && port.len > 0;

        if (bytes_are(reply_info_field(info, misled[i].field), misled[i].is)) {
            snprintf(text, MISLED_TEXT_MAX, "%s%s%.*s%s%.*s", misled[i].what, of_whom ? " of " : "",
                     (int)(host.len < 80 ? host.len : 80), of_whom ? host.at : "", of_whom ? ":" : "",
                     (int)port.len, of_whom ? port.at : "");
            return misled[i].check;
        }
    }
    return NULL;
}

const char *misled_remedy(const char *check)
{
    for (unsigned i = 0; i < MISLED; i++) {
        if (check == misled[i].check) {
            return misled[i].remedy;
        }
    }
    return NULL;
}

unsigned safety_command(unsigned i, struct bytes argv[3])
{
    if (i < SETTINGS) {
        argv[0] = BYTES("CONFIG");
        argv[1] = BYTES("GET");
        argv[2] = bytes_of(settings[i].name);
        return 3;
    }
    argv[0] = BYTES("INFO");
    argv[1] = BYTES("persistence");
    return 2;
}

void safety_begin(struct store_safety *safety)
{
    safety->found[0] = '\0';
    safety->unread = false;
    safety->passing_found = false;
    safety->left = SAFETY_LOOKS;
}

void safety_forget(struct store_safety *safety)
{
    safety->left = 0;
    if (safety->aof == AOF_SEEN_WHOLE) {
        safety->aof = AOF_NOT_SEEN;
    }
}

/* The first thing found is what is told; mending it shows the next. */
static void found_value(struct store_safety *safety, const char *name, struct bytes is, const char *must)
{
    if (safety->found[0] == '\0') {
        snprintf(safety->found, sizeof(safety->found), "%s is %.*s, must be %s", name, (int)is.len,
                 is.len > 0 ? is.at : "", must);
    }
}

static void found_unreadable(struct store_safety *safety, unsigned i, struct bytes why)
{
    struct bytes argv[3] = {0};

    if (safety->found[0] == '\0') {
        safety_command(i, argv);
        snprintf(safety->found, sizeof(safety->found), "%s %s%s%s cannot be read (%.*s), must be", argv[0].at,
                 argv[1].at, argv[2].len > 0 ? " " : "", argv[2].len > 0 ? argv[2].at : "",
                 (int)(why.len < 80 ? why.len : 80), why.at);
    }
}

static void take_info(struct store_safety *safety, unsigned look, struct bytes info, const struct rule *rules,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes is = reply_info_field(info, rules[i].name);

        if (is.at == NULL) {
            found_unreadable(safety, look, bytes_of(rules[i].name));
        } else if (!bytes_are(is, rules[i].must)) {
            found_value(safety, rules[i].name, is, rules[i].must);
        }
    }
}

/* After CONFIG SET appendonly yes nothing is durable before the first rewrite is over (AOF_WAIT_REWRITE in
 * aof.c of Redis 7.0.15), but INFO says aof_enabled:1 at once, and a rewrite in progress or scheduled as it
 * does for any later one. It is the first if the file was seen switched off before. Seen from the start, a
 * rewrite with no base size may be the first, so it is held to be: it may also be the first of a server that
 * began with an empty file, which is over soon. */
static void take_rewrite(struct store_safety *safety, struct bytes info)
{
    bool enabled = bytes_are(reply_info_field(info, "aof_enabled"), "1");
    bool rewriting = bytes_are(reply_info_field(info, "aof_rewrite_in_progress"), "1") ||
                     bytes_are(reply_info_field(info, "aof_rewrite_scheduled"), "1");
    bool baseless = bytes_are(reply_info_field(info, "aof_base_size"), "0");

    if (!enabled) {
        safety->aof = AOF_SEEN_OFF;
    } else if (!rewriting) {
        safety->aof = AOF_SEEN_WHOLE;
    } else if (safety->aof == AOF_SEEN_OFF || (safety->aof == AOF_NOT_SEEN && baseless)) {
        safety->aof = AOF_SEEN_OFF;
        safety->passing_found = safety->found[0] == '\0';
        found_value(safety, "appendonly", BYTES("yes, but its first rewrite is not over"), "rewritten first");
    }
}

static void take_setting(struct store_safety *safety, unsigned i, const redisReply *reply)
{
    struct bytes value = store_reply_text(reply_of(reply), 1);

    if (i == LOOK_ADVICE) {
        safety->advice[0] = '\0';
        if (value.at != NULL && !bytes_are(value, settings[i].must)) {
            snprintf(safety->advice, sizeof(safety->advice), "%s is %.*s", settings[i].name, (int)value.len,
                     value.at);
        }
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || value.at == NULL) {
        found_unreadable(safety, i, BYTES("this Redis does not know it"));
    } else if (!bytes_are(value, settings[i].must)) {
        found_value(safety, settings[i].name, value, settings[i].must);
    }
}

static void take_state(struct store_safety *safety, unsigned i, const redisReply *reply)
{
    struct bytes info = store_reply_text(reply_of(reply), 0);

    take_info(safety, i, info, persistence, sizeof(persistence) / sizeof(persistence[0]));
    if (info.at != NULL) {
        take_rewrite(safety, info);
    }
}

static void conclude(struct store_safety *safety)
{
    if (safety->unread) {
        return; /* the verdict stays as last read */
    }
    memcpy(safety->verdict, safety->found, sizeof(safety->verdict));
    safety->unsafe = safety->verdict[0] != '\0';
    safety->passing = safety->passing_found;
    safety->checked = true;
}

void safety_take(struct store_safety *safety, unsigned i, const struct redisReply *reply)
{
    struct bytes error = {reply->str, reply->len};

    assert(safety->left > 0);
    if (reply->type != REDIS_REPLY_ERROR) {
        (i < SETTINGS ? take_setting : take_state)(safety, i, reply);
    } else if (bytes_are(reply_error_code(error), "BUSY")) {
        safety->unread = true; /* a long script says nothing about the settings */
    } else if (i != LOOK_ADVICE) {
        found_unreadable(safety, i, error);
    }
    if (--safety->left == 0) {
        conclude(safety);
    }
}
