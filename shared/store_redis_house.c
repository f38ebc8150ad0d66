/* store_redis_house.c - the link's own commands: the greeting, the scripts, the look at the settings.
 *
 * They stand in the same line as the calls, since Redis answers in the order of asking. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/ascii.h"
#include "shared/store_redis_internal.h"

enum { AT_AUTH, AT_RUN_ID, AT_ROLE, AT_SELECT, AT_SCRIPTS };

static struct house_call *house_scripts(struct store *store)
{
    return store->link.house + AT_SCRIPTS;
}

static struct house_call *house_looks(struct store *store)
{
    return house_scripts(store) + store->script_count;
}

static void house_fill(struct house_call *house, unsigned count, enum house_kind kind)
{
    for (unsigned i = 0; i < count; i++) {
        house[i] = (struct house_call){.call.state = CALL_HOUSE, .kind = kind, .index = i};
    }
}

void house_new(struct store *store)
{
    struct store_link *link = &store->link;

    link->house = calloc(AT_SCRIPTS + (size_t)store->script_count + SAFETY_LOOKS, sizeof(*link->house));
    link->scripts = calloc((size_t)store->script_count + 1, sizeof(*link->scripts));
    if (link->house == NULL || link->scripts == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    house_fill(link->house + AT_AUTH, 1, HOUSE_AUTH);
    house_fill(link->house + AT_RUN_ID, 1, HOUSE_RUN_ID);
    house_fill(link->house + AT_ROLE, 1, HOUSE_ROLE);
    house_fill(link->house + AT_SELECT, 1, HOUSE_SELECT);
    house_fill(house_scripts(store), store->script_count, HOUSE_LOAD);
    house_fill(house_looks(store), SAFETY_LOOKS, HOUSE_LOOK);
}

void house_free(struct store *store)
{
    free(store->link.house);
    free(store->link.scripts);
}

/* Nothing when sending the one before has shown that the link is broken. */
static void house_send(struct store *store, struct house_call *house)
{
    if (store->link.context == NULL) {
        return;
    }
    house->call.deadline_ms = loop_now_ms() + store->timeout_ms;
    link_send(store, &house->call);
}

void house_greet(struct store *store)
{
    struct store_link *link = &store->link;

    link->run_id[0] = link->auth_refused[0] = '\0';
    link->greeting_left = 2 + store->script_count;
    if (dial_names_itself(&store->url, store->password)) {
        link->greeting_left++;
        house_send(store, &link->house[AT_AUTH]);
    }
    house_send(store, &link->house[AT_RUN_ID]);
    house_send(store, &link->house[AT_ROLE]);
    if (store->url.db != 0) {
        link->greeting_left++;
        house_send(store, &link->house[AT_SELECT]);
    }
    house_load(store);
    if (!store->allow_unsafe) {
        link->greeting_left += SAFETY_LOOKS;
        house_look(store);
    }
}

/* Also when Redis has forgotten the scripts; once, however many calls found that out. */
void house_load(struct store *store)
{
    struct store_link *link = &store->link;

    if (link->loads_left > 0) {
        return;
    }
    link->loads_left = store->script_count;
    for (unsigned i = 0; i < store->script_count; i++) {
        house_send(store, &house_scripts(store)[i]);
    }
}

void house_look(struct store *store)
{
    if (store->safety.left > 0) {
        return;
    }
    safety_begin(&store->safety);
    for (unsigned i = 0; i < SAFETY_LOOKS; i++) {
        house_send(store, &house_looks(store)[i]);
    }
}

/* The link broke: none of them will be answered. */
void house_forget(struct store *store)
{
    store->link.loads_left = 0;
    store->link.greeting_left = 0;
    safety_forget(&store->safety);
}

static void put_select(struct store *store)
{
    char db[16];

    snprintf(db, sizeof(db), "%u", store->url.db);
    wire_put_command(&store->link.wire, (struct bytes[]){BYTES("SELECT"), bytes_of(db)}, 2);
}

void house_put(struct store *store, const struct house_call *house)
{
    struct bytes argv[3] = {0};
    const struct store_script *script;
    unsigned argc;

    switch (house->kind) {
    case HOUSE_AUTH: dial_put_auth(&store->link.wire, &store->url, store->password); return;
    case HOUSE_SELECT: put_select(store); return;
    case HOUSE_RUN_ID:
    case HOUSE_ROLE:
        argv[0] = BYTES("INFO");
        argv[1] = house->kind == HOUSE_ROLE ? BYTES("replication") : BYTES("server");
        wire_put_command(&store->link.wire, argv, 2);
        return;
    case HOUSE_LOAD:
        script = store->scripts[house->index];
        argv[0] = BYTES("SCRIPT");
        argv[1] = BYTES("LOAD");
        argv[2] = (struct bytes){script->source, script->len};
        wire_put_command(&store->link.wire, argv, 3);
        return;
    case HOUSE_LOOK:
        argc = safety_command(house->index, argv);
        wire_put_command(&store->link.wire, argv, argc);
        return;
    }
    abort();
}

static const char *house_what(const struct store *store, const struct house_call *house)
{
    switch (house->kind) {
    case HOUSE_AUTH: return "AUTH";
    case HOUSE_SELECT: return "SELECT";
    case HOUSE_RUN_ID: return "INFO server, which tells its run_id";
    case HOUSE_ROLE: return "INFO replication, which tells its role";
    case HOUSE_LOAD: return store->scripts[house->index]->name;
    case HOUSE_LOOK: return "the look at its settings";
    }
    abort();
}

/* Which check fails, told by the error's code. */
static const char *house_check(const struct house_call *house, struct bytes code)
{
    const struct store_refusal *refusal = reply_refusal(code);

    if (house->kind == HOUSE_AUTH) {
        return "store-auth";
    }
    return refusal != NULL ? refusal->check : "store-refused";
}

static void house_refused(struct store *store, const struct house_call *house, struct bytes error)
{
    link_drop(store, house_check(house, reply_error_code(error)), "Redis refuses %s: %.*s",
              house_what(store, house), (int)(error.len < 160 ? error.len : 160), error.at);
}

/* A script's digest and a run_id are so many hexadecimal digits. */
static bool is_hex(struct bytes text, size_t len)
{
    if (text.len != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (ascii_hex_value(text.at[i]) < 0) {
            return false;
        }
    }
    return true;
}

/* An error that ends a greeting. That a setting cannot be read is an answer too, unless a script is in the
 * way. */
static bool is_refusal(const struct store *store, const struct house_call *house, const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && store->link.state == LINK_GREETING &&
           house->kind != HOUSE_AUTH && house->kind != HOUSE_RUN_ID &&
           (house->kind != HOUSE_LOOK ||
            bytes_are(reply_error_code((struct bytes){reply->str, reply->len}), "BUSY"));
}

static struct bytes bulk_of(const redisReply *reply)
{
    bool bulk = reply->type == REDIS_REPLY_STRING;

    return bulk ? (struct bytes){reply->str, reply->len} : (struct bytes){NULL, 0};
}

/* The takers are false when the link is no more. */

/* A Sentinel without a password refuses AUTH and answers INFO: what the address leads to is told first. Of
 * the error only its code is kept: Redis may quote what it was sent. */
static bool take_auth(struct store *store, const redisReply *reply)
{
    struct bytes code = reply_error_code((struct bytes){reply->str, reply->len});

    if (reply->type == REDIS_REPLY_ERROR) {
        snprintf(store->link.auth_refused, sizeof(store->link.auth_refused), "%.*s", (int)code.len, code.at);
    }
    return true;
}

static bool is_misled(struct store *store, const redisReply *reply)
{
    char told[MISLED_TEXT_MAX];
    const char *check = misled_by(bulk_of(reply), told);

    if (check != NULL) {
        link_drop(store, check, "%s", told);
    }
    return check != NULL;
}

static bool take_run_id(struct store *store, const struct house_call *house, const redisReply *reply)
{
    struct store_link *link = &store->link;
    struct bytes run_id = reply_info_field(bulk_of(reply), "run_id");

    if (is_misled(store, reply)) {
        return false;
    }
    if (link->auth_refused[0] != '\0') {
        house_refused(store, &link->house[AT_AUTH], bytes_of(link->auth_refused));
        return false;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        house_refused(store, house, (struct bytes){reply->str, reply->len});
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

/* The replid itself is for the scripts to compare (shared/record/stream.lua). */
static bool take_role(struct store *store, const redisReply *reply)
{
    struct bytes info = bulk_of(reply);

    if (is_misled(store, reply)) {
        return false;
    }
    if (!bytes_are(reply_info_field(info, "role"), "master") ||
        !is_hex(reply_info_field(info, "master_replid"), STORE_RUN_ID_LEN)) {
        link_drop(store, "store-refused", "INFO replication tells no role and master_replid");
        return false;
    }
    return true;
}

static bool take_load(struct store *store, const struct house_call *house, const redisReply *reply)
{
    store->link.loads_left--;
    if (reply->type == REDIS_REPLY_ERROR) {
        return true; /* the calls are being sent whole, and the next NOSCRIPT loads again */
    }
    if (!is_hex(bulk_of(reply), WIRE_SHA_LEN)) {
        link_drop(store, "store-connecting", "SCRIPT LOAD was not answered with a digest");
        return false;
    }
    wire_script_set(&store->link.scripts[house->index], reply->str);
    return true;
}

static bool house_take(struct store *store, const struct house_call *house, const redisReply *reply)
{
    if (is_refusal(store, house, reply)) {
        house_refused(store, house, (struct bytes){reply->str, reply->len});
        return false;
    }
    switch (house->kind) {
    case HOUSE_AUTH: return take_auth(store, reply);
    case HOUSE_RUN_ID: return take_run_id(store, house, reply);
    case HOUSE_ROLE: return take_role(store, reply);
    case HOUSE_SELECT: return true;
    case HOUSE_LOAD: return take_load(store, house, reply);
    case HOUSE_LOOK:
        safety_take(&store->safety, house->index, reply);
        if (store->safety.left == 0) {
            store_looked(store);
        }
        return true;
    }
    abort();
}

void house_answer(struct store *store, struct house_call *house, const struct redisReply *reply)
{
    if (!house_take(store, house, reply) || store->link.state != LINK_GREETING) {
        return;
    }
    assert(store->link.greeting_left > 0);
    if (--store->link.greeting_left == 0) {
        link_ready(store);
    }
}
