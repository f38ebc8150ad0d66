/* facts.c - what is known of the store: a connection of its own to it, and the facts out of the replies of
 * scan.lua and status.lua, and of the state directory. */
#include "api/cli/store/store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/request.h"
#include "scripts.h"
#include "shared/service/options.h"

/* -- the inbox */

enum {
    TURN_MS = 10,
    LOOKUP_MS = 200, /* for one to end; else the end of the process leaves it */
    TIMEOUT_MS = 2000,
    TIMEOUT_MIN_MS = 10,
    TIMEOUT_MAX_MS = 60000,
    PASSWORD_MAX = 4096
};

static int inbox_check(struct store_inbox *inbox, const char *url)
{
    bool has_password = false, is_flag = inbox->redis != NULL && inbox->redis != getenv("PAWL_REDIS");
    const char *bad = store_url_check(url, &has_password);
    char why[256];
    size_t len = 0;

    if (has_password && is_flag)
        return cli_fail(CLI_CONFIG,
                        "--redis has a password, which everybody on this machine could read: put it into a "
                        "file and name it with --redis-password-file, or set PAWL_REDIS");
    if (bad == NULL)
        bad = store_files_check(url, &inbox->files);
    if (bad != NULL)
        return cli_fail(CLI_CONFIG, "%s: %s", is_flag ? "--redis" : "PAWL_REDIS", bad);
    inbox->timeout_ms = inbox->timeout_ms > 0 ? inbox->timeout_ms : TIMEOUT_MS;
    if (inbox->timeout_ms < TIMEOUT_MIN_MS || inbox->timeout_ms > TIMEOUT_MAX_MS)
        return cli_fail(CLI_USAGE, "--store-timeout is 10ms to 60s");
    if (inbox->files.password == NULL || inbox->password != NULL)
        return CLI_GO_ON;
    inbox->password = options_read_file(inbox->files.password, PASSWORD_MAX, &len, why, sizeof(why));
    if (inbox->password == NULL)
        return cli_fail(CLI_CONFIG, "%s", why);
    inbox->password[strcspn(inbox->password, "\r\n")] = '\0';
    return CLI_GO_ON;
}

int store_inbox_collect(struct store_inbox *inbox, const struct option *flags, int argc, char **argv)
{
    struct options_line line = {.table = flags, .argv = argv, .argc = argc, .at = 1};
    enum options_word found;
    bool has_password;
    const char *bad;
    size_t len = 0;

    while ((found = options_word(&line)) != WORD_END && len < sizeof(inbox->urls))
        if (found == WORD_FLAG && strcmp(line.option->name, "redis") == 0)
            len += (size_t)snprintf(inbox->urls + len, sizeof(inbox->urls) - len, "%s%s", len > 0 ? "," : "",
                                    line.value);
    if (len > 0)
        inbox->redis = inbox->urls;
    inbox->count = 1;
    bad = inbox->redis != NULL ? store_list_check(inbox->redis, &inbox->count, &has_password) : NULL;
    return bad != NULL && inbox->count > 1 ? cli_fail(CLI_CONFIG, "%s", bad) : CLI_GO_ON;
}

int store_inbox_collect_one(struct store_inbox *inbox, const char *verb, const struct option *flags, int argc,
                            char **argv)
{
    int status = store_inbox_collect(inbox, flags, argc, argv);

    return status == CLI_GO_ON && inbox->count > 1
               ? cli_fail(CLI_USAGE, "a quorum has no pawl %s: its nodes know nothing of each other", verb)
               : status;
}

static struct store *inbox_connect(const struct store_inbox *inbox, const char *url)
{
    return store_open(inbox->loop, &(struct store_options){.library = &pawl_library,
                                                           .sends_whole = true,
                                                           .url = url,
                                                           .files = inbox->files,
                                                           .password = inbox->password,
                                                           .timeout_ms = (unsigned)inbox->timeout_ms,
                                                           .allow_unsafe = inbox->count > 1});
}

int store_inbox_open_all(struct store_inbox *inbox, struct store *stores[STORE_LIST_MAX])
{
    struct bytes list = bytes_of(inbox->redis);
    char url[STORE_URL_SIZE];
    int status = CLI_GO_ON;

    inbox->loop = loop_new();
    for (unsigned i = 0; i < inbox->count && status == CLI_GO_ON && store_url_take(&list, url); i++) {
        status = inbox_check(inbox, url);
        stores[i] = status == CLI_GO_ON ? inbox_connect(inbox, url) : NULL;
    }
    explicit_bzero(url, sizeof(url));
    return status;
}

/* What is not ready because it can lose locks takes calls all the same. */
static int inbox_wait_ready(struct store_inbox *inbox)
{
    uint64_t deadline_ms = loop_now_ms() + inbox->timeout_ms;
    const char *detail = NULL, *misled, *check;

    while ((!store_checked(inbox->store) || !store_link_stands(inbox->store)) &&
           store_misled(inbox->store) == NULL && loop_now_ms() < deadline_ms)
        loop_turn(inbox->loop, TURN_MS);
    if (store_link_stands(inbox->store) && store_checked(inbox->store))
        return CLI_GO_ON;
    check = store_not_ready(inbox->store, &detail);
    misled = store_misled(inbox->store);
    doubt_tell(DOUBT_NOT_DONE, inbox->output, "%s%s",
               misled != NULL ? "" : "the store cannot be reached: ", detail);
    if (misled != NULL)
        cli_hint("%s", misled);
    else if (check != NULL && strcmp(check, "store-auth") == 0)
        cli_hint("Name its password: --redis-password-file FILE.");
    else if (check == NULL || strcmp(check, "store-refused") != 0)
        cli_hint("Is Redis running, and is this its address? --redis URL names another one.");
    return misled != NULL ? CLI_CONFIG : CLI_UNREACHABLE;
}

int store_inbox_open(struct store_inbox *inbox)
{
    const char *url = inbox->redis == NULL ? STORE_REDIS_DEFAULT : inbox->redis;
    int status = inbox_check(inbox, url);

    inbox->redis = url;
    if (status != CLI_GO_ON)
        return status;
    inbox->loop = loop_new();
    inbox->store = inbox_connect(inbox, url);
    return inbox_wait_ready(inbox);
}

void store_inbox_close(struct store_inbox *inbox)
{
    uint64_t deadline_ms = loop_now_ms() + LOOKUP_MS;

    if (inbox->store != NULL)
        store_close(inbox->store);
    while (inbox->loop != NULL && loop_is_looking_up(inbox->loop) && loop_now_ms() < deadline_ms)
        loop_turn(inbox->loop, TURN_MS);
    if (inbox->loop != NULL && !loop_is_looking_up(inbox->loop))
        loop_free(inbox->loop);
    if (inbox->password != NULL)
        explicit_bzero(inbox->password, strlen(inbox->password));
    free(inbox->password);
    inbox->store = NULL;
    inbox->loop = NULL;
    inbox->password = NULL;
}

/* -- one script */

static enum step script_done(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct store_ask *ask = container_of(call, struct store_ask, call);

    ask->over = true;
    ask->outcome = outcome;
    if (outcome == STORE_DONE)
        ask->status = ask->take != NULL ? ask->take(ask, reply) : CLI_GO_ON;
    return ANSWERED;
}

int store_inbox_ask(struct store_inbox *inbox, struct store_ask *ask, const struct store_script *script,
                    unsigned key_count, unsigned arg_count, const struct bytes *argv)
{
    const char *detail = NULL;

    ask->over = false;
    ask->call.done = script_done;
    store_run(inbox->store, &ask->call, script, key_count, arg_count, argv);
    while (!ask->over)
        loop_turn(inbox->loop, TURN_MS); /* the call has a deadline of its own */
    if (ask->outcome == STORE_DONE) {
        inbox->changed = inbox->changed || !ask->reads;
        return ask->status;
    }
    if (ask->is_quiet)
        return CLI_UNREACHABLE;
    if (ask->may_be_refused && ask->call.refusal != NULL && ask->call.refusal->what != NULL)
        return CLI_GO_ON;
    store_not_ready(inbox->store, &detail);
    detail = ask->call.refusal != NULL && ask->call.refusal->what != NULL ? ask->call.refusal->what : detail;
    if (ask->outcome == STORE_NOT_SENT)
        return doubt_tell(inbox->changed ? DOUBT_UNKNOWN : DOUBT_NOT_DONE, inbox->output,
                          "the store did not take %s: %s", script->name, detail);
    doubt_tell(inbox->changed || !ask->reads ? DOUBT_UNKNOWN : DOUBT_NOT_DONE, inbox->output,
               "the store did not run %s to its end: %s", script->name, detail);
    if (!ask->reads)
        cli_hint("Look with pawl store status.");
    if (ask->call.refusal != NULL)
        cli_hint("The services' user has no SCAN, HSCAN and TYPE, the user pawl-operator of deploy/redis.acl "
                 "has them (--redis redis://pawl-operator@HOST:PORT).");
    return CLI_UNREACHABLE;
}

/* -- facts */

#define RECORD_KEY "pawl:{store}"

struct facts_ask {
    struct store_ask ask;
    struct store_facts *facts;
    char cursor[FACT_WORD_SIZE];
};

/* -- replies: lists of a name and its value, again and again */

static size_t named_at(const struct store_reply *list, const char *name)
{
    size_t i = 0, count = store_reply_count(list);

    while (i + 1 < count && !bytes_are(store_reply_text(list, i), name))
        i += 2;
    assert(i + 1 < count); /* our own script names it */
    return i + 1;
}

void fact_copy(struct bytes text, char *place, size_t size)
{
    size_t len = text.len < size ? text.len : size - 1;

    if (len > 0)
        memcpy(place, text.at, len);
    place[len] = '\0';
}

static bool is_text(const struct fact_field *field)
{
    return field->kind == FIELD_TEXT || field->kind == FIELD_OPTIONAL;
}

void fact_take(const struct fact_field *field, struct bytes text, void *facts)
{
    char *place = (char *)facts + field->at;

    if (is_text(field))
        fact_copy(text, place, field->size);
    else
        *(int64_t *)(void *)place = bytes_number(text, 18);
}

static void fields_take(const struct fact_field *field, const struct store_reply *list, void *facts)
{
    for (; field->name != NULL; field++) {
        char *place = (char *)facts + field->at;
        size_t at = named_at(list, field->name);
        int64_t number = store_reply_integer(list, at);

        if (is_text(field))
            fact_take(field, store_reply_text(list, at), facts);
        else if (field->kind == FIELD_FLAG)
            *(bool *)place = number == 1;
        else
            *(int64_t *)(void *)place = number == INT64_MIN ? 0 : number; /* "": the script found no number */
    }
}

/* -- all keys */

static int scan_take(struct store_ask *ask, const struct store_reply *reply)
{
    struct facts_ask *scan = container_of(ask, struct facts_ask, ask);
    struct store_facts *facts = scan->facts;
    int64_t top = store_reply_integer(reply, 2), epoch = store_reply_integer(reply, 4);

    fact_copy(store_reply_text(reply, 1), scan->cursor, sizeof(scan->cursor));
    if (top > facts->lease_top) {
        facts->lease_top = top;
        fact_copy(store_reply_text(reply, 3), facts->lease, sizeof(facts->lease));
    }
    facts->lease_epoch = epoch > facts->lease_epoch ? epoch : facts->lease_epoch;
    if (store_reply_integer(reply, 5) > 0) {
        facts->ending += store_reply_integer(reply, 5);
        fact_copy(store_reply_text(reply, 6), facts->ending_key, sizeof(facts->ending_key));
    }
    if (store_reply_text(reply, 7).len > 0) {
        fact_copy(store_reply_text(reply, 7), facts->wrong_key, sizeof(facts->wrong_key));
        fact_copy(store_reply_text(reply, 8), facts->wrong_type, sizeof(facts->wrong_type));
    }
    return CLI_GO_ON;
}

static int scan(struct store_inbox *inbox, struct store_facts *facts, const char *how)
{
    struct facts_ask all = {
        .ask = {.take = scan_take, .reads = strcmp(how, "look") == 0}, .facts = facts, .cursor = "0"};
    char cursor[FACT_WORD_SIZE];
    int status;

    do {
        struct bytes argv[] = {bytes_of(cursor), bytes_of(how)};

        memcpy(cursor, all.cursor, sizeof(cursor));
        argv[0] = bytes_of(cursor);
        status = store_inbox_ask(inbox, &all.ask, &script_scan, 0, 2, argv);
    } while (status == CLI_GO_ON && strcmp(all.cursor, "0") != 0);
    return status;
}

int store_facts_persist(struct store_inbox *inbox)
{
    struct store_facts unused = {0};

    return scan(inbox, &unused, "persist");
}

/* -- the store */

#define FIELD(type, kind, member, name, json)                                                                \
    {                                                                                                        \
        name, json, kind, offsetof(struct type, member), sizeof(((struct type *)NULL)->member)               \
    }
#define OF_STORE(kind, member, json) FIELD(store_facts, kind, member, #member, json)
#define OF_MEMBER(kind, member, json) FIELD(member_fact, kind, member, #member, json)

const struct fact_field store_fields[] = {
    OF_STORE(FIELD_TEXT, identity, NULL),
    OF_STORE(FIELD_TEXT, how, "last_admission"),
    OF_STORE(FIELD_NUMBER, epoch, "epoch"),
    OF_STORE(FIELD_NUMBER, roll, "roll"),
    OF_STORE(FIELD_NUMBER, top, "counter"),
    OF_STORE(FIELD_NUMBER, ceiling, "ceiling"),
    OF_STORE(FIELD_TEXT, unaware, NULL),
    OF_STORE(FIELD_NUMBER, registrars, "registrars_wanted"),
    OF_STORE(FIELD_NUMBER, majority, "majority"),
    OF_STORE(FIELD_NUMBER, copies, "copies"),
    OF_STORE(FIELD_NUMBER, generation, "generation"),
    OF_STORE(FIELD_TEXT, set_stream, NULL),
    OF_STORE(FIELD_TEXT, growing, NULL),
    FIELD(store_facts, FIELD_NUMBER, clock_ms, "clock", "clock_offset_ms"),
    FIELD(store_facts, FIELD_NUMBER, now_ms, "now", NULL),
    OF_STORE(FIELD_NUMBER, absent, NULL),
    OF_STORE(FIELD_NUMBER, shut, NULL),
    OF_STORE(FIELD_TEXT, first_absent, NULL),
    OF_STORE(FIELD_TEXT, top_stripe, NULL),
    OF_STORE(FIELD_TEXT, run, NULL),
    OF_STORE(FIELD_TEXT, gate, NULL),
    OF_STORE(FIELD_TEXT, why, NULL),
    OF_STORE(FIELD_TEXT, redis_run, NULL),
    OF_STORE(FIELD_TEXT, routes, NULL),
    OF_STORE(FIELD_TEXT, marks_lost, NULL),
    OF_STORE(FIELD_FLAG, sound, NULL),
    OF_STORE(FIELD_FLAG, outside, NULL),
    OF_STORE(FIELD_FLAG, unasked, NULL),
    FIELD(store_facts, FIELD_FLAG, has_record, "record", NULL),
    OF_STORE(FIELD_FLAG, open, NULL),
    {0},
};
const struct fact_field redis_fields[] = {
    OF_STORE(FIELD_TEXT, redis_version, "version"),
    OF_STORE(FIELD_TEXT, redis_role, "role"),
    OF_STORE(FIELD_TEXT, redis_aof, "aof_enabled"),
    OF_STORE(FIELD_TEXT, redis_policy, "maxmemory_policy"),
    OF_STORE(FIELD_NUMBER, memory, "memory_bytes"),
    OF_STORE(FIELD_NUMBER, maxmemory, "maxmemory_bytes"),
    {0},
};
const struct fact_field member_fields[] = {
    OF_MEMBER(FIELD_TEXT, id, "id"),
    OF_MEMBER(FIELD_TEXT, role, "role"),
    OF_MEMBER(FIELD_TEXT, state, "state"),
    OF_MEMBER(FIELD_NUMBER, floor, "floor"),
    OF_MEMBER(FIELD_NUMBER, roll, "roll"),
    FIELD(member_fact, FIELD_AGE, age_ms, "age", "last_pulse_ms"),
    OF_MEMBER(FIELD_FLAG, live, "live"),
    OF_MEMBER(FIELD_FLAG, reported, "reported"),
    OF_MEMBER(FIELD_FLAG, registrar, "registrar"),
    OF_MEMBER(FIELD_TEXT, who, "who"),
    OF_MEMBER(FIELD_TEXT, routes, NULL),
    OF_MEMBER(FIELD_NUMBER, passed, NULL),
    OF_MEMBER(FIELD_NUMBER, since, NULL),
    {0},
};
const struct fact_field doubt_fields[] = {
    FIELD(doubt_fact, FIELD_TEXT, gateway, "gateway", "gateway"),
    FIELD(doubt_fact, FIELD_TEXT, incarnation, "incarnation", "incarnation"),
    FIELD(doubt_fact, FIELD_TEXT, state, "state", "state"),
    FIELD(doubt_fact, FIELD_AGE, dead_ms, "age", "dead_ms"),
    {0},
};

#define OF_NODE(kind, member, name, json) FIELD(node_fact, kind, member, name, json)
const struct fact_field node_fields[] = {
    OF_NODE(FIELD_TEXT, node, "node", "node"),      OF_NODE(FIELD_TEXT, run, "run", NULL),
    OF_NODE(FIELD_FLAG, kept, "kept", "kept"),      OF_NODE(FIELD_FLAG, online, "online", NULL),
    OF_NODE(FIELD_AGE, offset, "offset", "offset"), OF_NODE(FIELD_AGE, lag_ms, "lag", "lag_ms"),
    OF_NODE(FIELD_AGE, gone_ms, "gone", NULL),      {0},
};
/* Of INFO. */
const struct fact_field own_fields[] = {
    OF_NODE(FIELD_OPTIONAL, role, "role", "role"),
    OF_NODE(FIELD_OPTIONAL, version, "redis_version", "version"),
    OF_NODE(FIELD_OPTIONAL, own_run, "run_id", "run_id"),
    OF_NODE(FIELD_OPTIONAL, stream, "master_replid", "replid"),
    OF_NODE(FIELD_AGE, priority, "slave_priority", "priority"),
    OF_NODE(FIELD_AGE, clock_us, "server_time_usec", NULL),
    OF_NODE(FIELD_AGE, down_s, "master_link_down_since_seconds", NULL),
    {0},
};
const struct fact_field registrar_fields[] = {
    FIELD(registrar_fact, FIELD_TEXT, id, "id", "id"),
    FIELD(registrar_fact, FIELD_NUMBER, promise, "promise", "promise"),
    FIELD(registrar_fact, FIELD_NUMBER, epoch, "epoch", "epoch"),
    FIELD(registrar_fact, FIELD_NUMBER, generation, "generation", "generation"),
    FIELD(registrar_fact, FIELD_FLAG, live, "live", "live"),
    FIELD(registrar_fact, FIELD_TEXT, address, "address", NULL),
    {0},
};

/* A list of lists, each of these fields; how many. The caller frees. */
static unsigned list_take(const struct store_reply *list, const struct fact_field *fields, size_t size,
                          void **facts)
{
    unsigned count = list != NULL ? (unsigned)store_reply_count(list) : 0;

    *facts = cli_alloc(count * size);
    memset(*facts, 0, count * size);
    for (unsigned i = 0; i < count; i++)
        fields_take(fields, store_reply_list(list, i), (char *)*facts + i * size);
    return count;
}

static int facts_take(struct store_ask *ask, const struct store_reply *reply)
{
    struct store_facts *facts = container_of(ask, struct facts_ask, ask)->facts;
    const struct store_reply *list = store_reply_list(reply, 1), *waiting = store_reply_list(reply, 4);
    struct bytes kind = store_reply_text(list, named_at(list, "kind"));

    store_facts_done(facts);
    facts->kind = bytes_are(kind, "empty")   ? FACT_EMPTY
                  : bytes_are(kind, "store") ? FACT_STORE
                                             : FACT_ANOTHER;
    fields_take(store_fields, list, facts);
    fields_take(redis_fields, list, facts);
#define TAKE(i, fields, place, count)                                                                        \
    facts->count = list_take(store_reply_list(reply, i), fields, sizeof(*facts->place),                      \
                             (void **)&facts->place)
    TAKE(2, member_fields, members, member_count);
    TAKE(5, doubt_fields, doubts, doubt_count);
    TAKE(6, node_fields, nodes, node_count);
    TAKE(7, registrar_fields, registrar, registrar_count);
#undef TAKE
    facts->asked = store_reply_integer(reply, 3);
    facts->waiting_count = 0;
    for (size_t i = 0; waiting != NULL && i < store_reply_count(waiting) && i < FACT_WAITING_MAX; i++)
        fact_copy(store_reply_text(waiting, i), facts->waiting[facts->waiting_count++], FACT_ID_SIZE);
    return CLI_GO_ON;
}

int store_facts_refresh(struct store_inbox *inbox, struct store_facts *facts)
{
    struct facts_ask ask = {.ask = {.take = facts_take, .reads = true}, .facts = facts};
    const struct bytes key = BYTES(RECORD_KEY);
    const char *unsafe = store_unsafe(inbox->store);

    store_node_name(inbox->store, facts->primary);
    fact_copy((struct bytes){inbox->redis, strcspn(inbox->redis, ":")}, facts->form, sizeof(facts->form));
    fact_copy(bytes_of(unsafe != NULL ? unsafe : ""), facts->unsafe, sizeof(facts->unsafe));
    struct store_ask writable = {.reads = true, .may_be_refused = true};
    int status = store_inbox_ask(inbox, &ask.ask, &script_status, 1, 2,
                                 (const struct bytes[]){key, bytes_of(facts->primary)});

    if (status == CLI_GO_ON)
        status = store_inbox_ask(inbox, &writable, &script_writable, 1, 1, &key);
    facts->refusal = writable.call.refusal;
    return status;
}

/* -- this machine */

static void facts_take_machine(const struct store_inbox *inbox, struct machine_facts *machine)
{
    struct state_record record;
    const char *bad = state_path(inbox->state_dir, machine->path);

    if (bad != NULL) {
        machine->found = inbox->state_dir != NULL ? STATE_FAILED : STATE_FRESH;
        machine->path[0] = '\0';
        fact_copy(bytes_of(bad), machine->why, sizeof(machine->why));
        return;
    }
    machine->found = state_file_peek(machine->path, &record, machine->why);
    if (machine->found != STATE_OPEN)
        return;
    memcpy(machine->member, record.member, sizeof(machine->member));
    memcpy(machine->store, record.store, sizeof(machine->store));
    machine->floor = record.floor;
    machine->epoch = record.epoch;
    machine->roll = record.members_version;
}

/* -- all of it */

int store_facts_read(struct store_inbox *inbox, struct store_facts *facts)
{
    int status = scan(inbox, facts, "look");

    facts_take_machine(inbox, &facts->machine);
    if (status == CLI_GO_ON && facts->wrong_key[0] != '\0') {
        facts->kind = FACT_WRONG_KEY; /* a script that looks into it would fail */
        return CLI_GO_ON;
    }
    return status == CLI_GO_ON ? store_facts_refresh(inbox, facts) : status;
}

void store_facts_done(struct store_facts *facts)
{
    free(facts->members);
    free(facts->doubts);
    free(facts->nodes);
    free(facts->registrar);
    facts->members = NULL;
    facts->doubts = NULL;
    facts->nodes = NULL;
    facts->registrar = NULL;
    facts->member_count = facts->doubt_count = facts->node_count = facts->registrar_count = 0;
}

const char *store_facts_id(const struct store_facts *facts)
{
    const char *colon = strchr(facts->identity, ':');

    return colon != NULL ? colon + 1 : "";
}

bool store_facts_is_admitted(const struct store_facts *facts)
{
    return facts->kind == FACT_STORE && facts->sound && facts->gate[0] == '\0' &&
           strcmp(facts->run, facts->redis_run) == 0;
}

bool store_facts_is_live_lease(const struct member_fact *member)
{
    return member->live && strcmp(member->role, "lease") == 0 && strcmp(member->state, "in") == 0;
}

bool store_facts_lease_lives(const struct store_facts *facts)
{
    for (unsigned i = 0; i < facts->member_count; i++)
        if (store_facts_is_live_lease(&facts->members[i]))
            return true;
    return false;
}
