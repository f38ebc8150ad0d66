/* handshake.c - the link's own commands: the greeting, the library, the look at the settings.
 *
 * They stand in the same line as the calls, since Redis answers in the order of asking. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"
#include "shared/text/ascii.h"

/* -- what can be no store at all, and the settings that can lose locks, as CONFIG GET and INFO say them
 *
 * maxmemory-policy counts even while maxmemory is 0: one CONFIG SET between two looks, and leases are
 * evicted. */

/* Each with the sentence that says so and what to do. valkeys: its name for this field of INFO. */
static const struct {
    const char *field, *valkeys, *is, *check, *what, *remedy;
} misled[] = {
    {"redis_mode", "server_mode", "sentinel", "store-sentinel", "this is a Sentinel, which keeps no data",
     "Name the Redis that it watches (redis-cli -p 26379 SENTINEL MASTERS tells its address), and Redis' "
     "port."},
    {"redis_mode", "server_mode", "cluster", "store-cluster",
     "this Redis runs in cluster mode, which this version does not support",
     "Name a Redis of its own, with cluster-enabled no."},
    {"role", "role", "slave", "store-replica", "this is a replica",
     "Name its primary, or promote it: REPLICAOF NO ONE."},
};

enum { MISLED = sizeof(misled) / sizeof(misled[0]), MISLED_TEXT_MAX = 160, LOOK_AGAIN_MS = 100 };

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

static const char *misled_by(struct bytes info, char text[MISLED_TEXT_MAX])
{
    for (unsigned i = 0; i < MISLED; i++) {
        struct bytes host = reply_info_field(info, "master_host"),
                     port = reply_info_field(info, "master_port");
        bool of_whom = host.len > 0 && port.len > 0;

        if (bytes_are(reply_info_field(info, misled[i].field), misled[i].is) ||
            bytes_are(reply_info_field(info, misled[i].valkeys), misled[i].is)) {
            snprintf(text, MISLED_TEXT_MAX, "%s%s%.*s%s%.*s", misled[i].what, of_whom ? " of " : "",
                     (int)(host.len < 80 ? host.len : 80), of_whom ? host.at : "", of_whom ? ":" : "",
                     (int)port.len, of_whom ? port.at : "");
            return misled[i].check;
        }
    }
    return NULL;
}

/* While a link stands it has no check. */
const char *store_misled(const struct store *store)
{
    for (unsigned i = 0; i < MISLED; i++)
        if (store->link.check == misled[i].check)
            return misled[i].remedy;
    return NULL;
}

/* Where the next thing found is written: behind the others. */
static char *found_next(struct store_safety *safety, size_t *room)
{
    size_t len = strlen(safety->found);

    if (len > 0)
        len += (size_t)snprintf(safety->found + len, sizeof(safety->found) - len, "; ");
    len = len < sizeof(safety->found) ? len : sizeof(safety->found) - 1;
    *room = sizeof(safety->found) - len;
    return safety->found + len;
}

static void found_value(struct store_safety *safety, const char *name, struct bytes is, const char *must)
{
    size_t room;
    char *text = found_next(safety, &room);

    snprintf(text, room, "%s is %.*s, must be %s", name, (int)(is.len < 48 ? is.len : 48),
             is.len > 0 ? is.at : "", must);
}

static void found_unreadable(struct store_safety *safety, unsigned i, struct bytes why)
{
    bool is_setting = i < SETTINGS;
    size_t room;

    if (strstr(safety->found, "cannot be read") != NULL)
        return; /* as a rule for one reason */
    char *text = found_next(safety, &room);
    snprintf(text, room, "%s %s cannot be read (%.*s), must be", is_setting ? "CONFIG GET" : "INFO",
             is_setting ? settings[i].name : "persistence", (int)(why.len < 80 ? why.len : 80), why.at);
}

static void take_info(struct store_safety *safety, unsigned look, struct bytes info, const struct rule *rules,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes is = reply_info_field(info, rules[i].name);

        if (is.at == NULL)
            found_unreadable(safety, look, bytes_of(rules[i].name));
        else if (!bytes_are(is, rules[i].must))
            found_value(safety, rules[i].name, is, rules[i].must);
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
    if (reply->type != REDIS_REPLY_ARRAY || value.at == NULL)
        found_unreadable(safety, i, BYTES("this Redis does not know it"));
    else if (!bytes_are(value, settings[i].must))
        found_value(safety, settings[i].name, value, settings[i].must);
}

static void take_state(struct store_safety *safety, unsigned i, const redisReply *reply)
{
    struct bytes info = store_reply_text(reply_of(reply), 0);

    if (safety->found[0] == '\0') /* else what Redis does follows from its settings, which are named */
        take_info(safety, i, info, persistence, sizeof(persistence) / sizeof(persistence[0]));
    if (info.at != NULL)
        take_rewrite(safety, info);
}

static void safety_take(struct store_safety *safety, unsigned i, const struct redisReply *reply)
{
    struct bytes error = {reply->str, reply->len};

    assert(safety->left > 0);
    if (reply->type != REDIS_REPLY_ERROR)
        (i < SETTINGS ? take_setting : take_state)(safety, i, reply);
    else if (bytes_are(reply_error_code(error), "BUSY"))
        safety->unread = true; /* a long script says nothing about the settings */
    else if (i != LOOK_ADVICE)
        found_unreadable(safety, i, error);
    if (--safety->left > 0 || safety->unread)
        return; /* of the latter the verdict stays as last read */
    memcpy(safety->verdict, safety->found, sizeof(safety->verdict));
    safety->unsafe = safety->verdict[0] != '\0';
    safety->passing = safety->passing_found;
    safety->checked = true;
}

/* -- the commands */

void handshake_new(struct store *store)
{
    for (unsigned i = 0; i < HANDSHAKE_CALLS; i++) {
        store->link.handshake[i] = (struct handshake_call){
            .call.state = CALL_HANDSHAKE,
            .kind = i < HANDSHAKE_LOOK ? (enum handshake_kind)i : HANDSHAKE_LOOK,
            .index = i < HANDSHAKE_LOOK ? 0 : i - HANDSHAKE_LOOK};
    }
}

/* Nothing when sending the one before has shown that the link is broken, or it is being left. */
static void handshake_send(struct store *store, struct handshake_call *handshake)
{
    if (store->dial.context == NULL || store->link.state == LINK_LEAVING)
        return;
    handshake->call.deadline_ms = loop_now_ms() + store->timeout_ms;
    link_send(store, &handshake->call);
}

void handshake_greet(struct store *store)
{
    struct store_link *link = &store->link;

    link->run_id[0] = link->auth_refused[0] = '\0';
    link->greeting_left = 2;
    if (dial_names_itself(&store->dial)) {
        link->greeting_left++;
        handshake_send(store, &link->handshake[HANDSHAKE_AUTH]);
    }
    handshake_send(store, &link->handshake[HANDSHAKE_RUN_ID]);
    handshake_send(store, &link->handshake[HANDSHAKE_ROLE]);
    if (store->dial.url.db != 0) {
        link->greeting_left++;
        handshake_send(store, &link->handshake[HANDSHAKE_SELECT]);
    }
    if (!store->sends_whole) {
        link->greeting_left++;
        handshake_send(store, &link->handshake[HANDSHAKE_LIBRARY]);
    }
    if (!store->allow_unsafe) {
        link->greeting_left += SAFETY_LOOKS;
        handshake_look(store);
    }
}

/* Once, however many calls found out that it is missing. */
void handshake_load(struct store *store)
{
    struct store_link *link = &store->link;

    if (link->is_loading)
        return;
    link->is_loading = true;
    link->greeting_left += link->state == LINK_GREETING;
    handshake_send(store, &link->handshake[HANDSHAKE_LOAD]);
}

void handshake_look(struct store *store)
{
    struct store_safety *safety = &store->safety;

    if (safety->left > 0)
        return;
    safety->found[0] = '\0';
    safety->unread = safety->passing_found = false;
    safety->left = SAFETY_LOOKS;
    for (unsigned i = 0; i < SAFETY_LOOKS; i++)
        handshake_send(store, &store->link.handshake[HANDSHAKE_LOOK + i]);
}

/* The link broke: none of them will be answered. */
void handshake_forget(struct store *store)
{
    store->link.by_name = store->link.is_loading = store->link.replaces = false;
    store->link.greeting_left = 0;
    store->safety.left = 0;
    if (store->safety.aof == AOF_SEEN_WHOLE)
        store->safety.aof = AOF_NOT_SEEN;
}

/* Redis works for 10 ms to replace a library by the same text, and keeps each in its file: where all links
 * find that it is missing, the first one loads it. */
static void handshake_put_load(struct store *store)
{
    struct bytes text = {store->library->text, store->library->len};
    bool replaces = store->link.replaces;

    wire_put_command(
        &store->dial.wire,
        (struct bytes[]){BYTES("FUNCTION"), BYTES("LOAD"), replaces ? BYTES("REPLACE") : text, text},
        replaces ? 4 : 3);
}

void handshake_put(struct store *store, const struct handshake_call *handshake)
{
    struct store_wire *wire = &store->dial.wire;

    switch (handshake->kind) {
    case HANDSHAKE_AUTH: dial_put_auth(&store->dial); return;
    case HANDSHAKE_SELECT: wire_put_words(wire, "SELECT %u", store->dial.url.db); return;
    case HANDSHAKE_RUN_ID: wire_put_words(wire, "INFO server"); return;
    case HANDSHAKE_ROLE: wire_put_words(wire, "INFO replication"); return;
    case HANDSHAKE_LIBRARY:
        wire_put_words(wire, "FUNCTION LIST LIBRARYNAME %s WITHCODE", store->library->name);
        return;
    case HANDSHAKE_LOAD: handshake_put_load(store); return;
    case HANDSHAKE_LOOK:
        if (handshake->index < SETTINGS)
            wire_put_words(wire, "CONFIG GET %s", settings[handshake->index].name);
        else
            wire_put_words(wire, "INFO persistence");
        return;
    }
    abort();
}

static const char *const names[] = {
    [HANDSHAKE_AUTH] = "AUTH",
    [HANDSHAKE_SELECT] = "SELECT",
    [HANDSHAKE_RUN_ID] = "INFO server, which tells its run_id",
    [HANDSHAKE_ROLE] = "INFO replication, which tells its role",
    [HANDSHAKE_LIBRARY] = "FUNCTION LIST",
    [HANDSHAKE_LOAD] = "FUNCTION LOAD",
    [HANDSHAKE_LOOK] = "the look at its settings",
};

static void handshake_refused(struct store *store, const struct handshake_call *handshake, struct bytes error)
{
    const struct store_refusal *refusal = reply_refusal(reply_error_code(error));
    const char *check = handshake->kind == HANDSHAKE_AUTH ? "store-auth"
                        : refusal != NULL                 ? refusal->check
                                                          : "store-refused";

    link_drop(store, check, "Redis refuses %s: %.*s", names[handshake->kind],
              (int)(error.len < 160 ? error.len : 160), error.at);
}

/* A run_id and a replid are so many hexadecimal digits. */
static bool is_hex(struct bytes text, size_t len)
{
    if (text.len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (ascii_hex_value(text.at[i]) < 0)
            return false;
    return true;
}

/* An error that ends a greeting. That a setting cannot be read is an answer too, unless a script is in the
 * way; and so is that the library cannot be loaded, for want of room, of a disk or of the right, or since
 * another library has a function of ours. A Redis that knows no functions says so to FUNCTION LIST. */
static bool is_refusal(const struct store *store, const struct handshake_call *handshake,
                       const redisReply *reply)
{
    struct bytes error = {reply->str, reply->len}, code = reply_error_code(error);

    if (reply->type != REDIS_REPLY_ERROR || store->link.state != LINK_GREETING)
        return false;
    switch (handshake->kind) {
    case HANDSHAKE_AUTH:
    case HANDSHAKE_RUN_ID: return false;
    case HANDSHAKE_LOOK: return bytes_are(code, "BUSY");
    case HANDSHAKE_LIBRARY:
    case HANDSHAKE_LOAD:
        return !reply_error_is_of_writes(error) && !bytes_are(code, "NOPERM") &&
               !(handshake->kind == HANDSHAKE_LOAD && bytes_are(code, "ERR"));
    case HANDSHAKE_ROLE:
    case HANDSHAKE_SELECT: return true;
    }
    abort();
}

static struct bytes bulk_of(const redisReply *reply)
{
    bool bulk = reply->type == REDIS_REPLY_STRING;

    return bulk ? (struct bytes){reply->str, reply->len} : (struct bytes){NULL, 0};
}

/* The takers are false when the link is no more. */

/* A Sentinel without a password refuses AUTH and answers INFO: what the address leads to is said first. Of
 * the error only its code is kept: Redis may quote what it was sent. */
static bool take_auth(struct store *store, const redisReply *reply)
{
    struct bytes code = reply_error_code((struct bytes){reply->str, reply->len});

    if (reply->type == REDIS_REPLY_ERROR)
        snprintf(store->link.auth_refused, sizeof(store->link.auth_refused), "%.*s", (int)code.len, code.at);
    return true;
}

static bool is_misled(struct store *store, const redisReply *reply)
{
    char why[MISLED_TEXT_MAX];
    const char *check = store->is_probe ? NULL : misled_by(bulk_of(reply), why);

    if (check != NULL)
        link_drop(store, check, "%s", why);
    return check != NULL;
}

static bool take_run_id(struct store *store, const struct handshake_call *handshake, const redisReply *reply)
{
    struct store_link *link = &store->link;
    struct bytes run_id = reply_info_field(bulk_of(reply), "run_id");

    if (is_misled(store, reply))
        return false;
    if (link->auth_refused[0] != '\0') {
        handshake_refused(store, &link->handshake[HANDSHAKE_AUTH], bytes_of(link->auth_refused));
        return false;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        handshake_refused(store, handshake, (struct bytes){reply->str, reply->len});
        return false;
    }
    if (!is_hex(run_id, STORE_RUN_ID_LEN)) {
        link_drop(store, "store-refused", "INFO server tells no run_id of %d hexadecimal digits",
                  STORE_RUN_ID_LEN);
        return false;
    }
    memcpy(link->run_id, run_id.at, run_id.len);
    link->run_id[run_id.len] = '\0';
    return true;
}

/* The replid itself is for the scripts to compare (shared/member/scripts/lib/stripe.lua), and for keep.c. */
static bool take_role(struct store *store, const redisReply *reply)
{
    struct bytes info = bulk_of(reply), stream = reply_info_field(info, "master_replid");

    if (is_misled(store, reply))
        return false;
    bool is_master = bytes_are(reply_info_field(info, "role"), "master");

    if ((!is_master && !store->is_probe) || !is_hex(stream, STORE_RUN_ID_LEN)) {
        link_drop(store, "store-refused", "INFO replication tells no role and master_replid");
        return false;
    }
    memcpy(store->link.stream, stream.at, stream.len);
    return true;
}

/* The text of the one library in a list of libraries, each a list of names and values; {NULL, 0}: none. */
static struct bytes library_code(const redisReply *reply)
{
    const struct store_reply *one = store_reply_list(reply_of(reply), 0);

    for (size_t i = 0; one != NULL && i + 1 < store_reply_count(one); i += 2)
        if (bytes_are(store_reply_text(one, i), "library_code"))
            return store_reply_text(one, i + 1);
    return (struct bytes){NULL, 0};
}

/* A hand or a backup may have put another text under this name. */
static void take_library(struct store *store, const redisReply *reply)
{
    struct bytes code = reply->type == REDIS_REPLY_ARRAY ? library_code(reply) : (struct bytes){NULL, 0};

    store->link.by_name = code.len == store->library->len &&
                          memcmp(code.at, store->library->text, code.len) == 0;
    if (store->link.by_name)
        store->link.replaces = false;
    else
        handshake_load(store);
}

static void take_load(struct store *store, const redisReply *reply)
{
    struct bytes said = {reply->str, reply->type == REDIS_REPLY_ERROR ? reply->len : 0};

    store->link.is_loading = false;
    store->link.replaces = !store->link.replaces && bytes_take(&said, BYTES("ERR Library '"));
    if (store->link.replaces) { /* by another link, as a rule */
        store->link.greeting_left += store->link.state == LINK_GREETING;
        handshake_send(store, &store->link.handshake[HANDSHAKE_LIBRARY]);
        return;
    }
    store->link.by_name = reply->type != REDIS_REPLY_ERROR;
    if (!store->link.by_name) {
        snprintf(store->link.not_loaded, sizeof(store->link.not_loaded),
                 "Redis does not load the functions, so each call carries all of them: %.90s", reply->str);
    }
}

static bool handshake_take(struct store *store, const struct handshake_call *handshake,
                           const redisReply *reply)
{
    if (is_refusal(store, handshake, reply)) {
        handshake_refused(store, handshake, (struct bytes){reply->str, reply->len});
        return false;
    }
    switch (handshake->kind) {
    case HANDSHAKE_AUTH: return take_auth(store, reply);
    case HANDSHAKE_RUN_ID: return take_run_id(store, handshake, reply);
    case HANDSHAKE_ROLE: return take_role(store, reply);
    case HANDSHAKE_SELECT: return true;
    case HANDSHAKE_LIBRARY: take_library(store, reply); return true;
    case HANDSHAKE_LOAD: take_load(store, reply); return true;
    case HANDSHAKE_LOOK:
        safety_take(&store->safety, handshake->index, reply);
        if (store->safety.left == 0 && store->safety.passing) /* a rewrite is over soon */
            loop_timer_arm(&store->look_timer, LOOK_AGAIN_MS, store->look_period_ms);
        return true;
    }
    abort();
}

void handshake_answer(struct store *store, struct handshake_call *handshake, const struct redisReply *reply)
{
    if (!handshake_take(store, handshake, reply) || store->link.state != LINK_GREETING)
        return;
    assert(store->link.greeting_left > 0);
    if (--store->link.greeting_left == 0)
        link_ready(store);
}
