/* show.c - the facts of a store and what they mean, for people and for programs. */
#include "api/cli/store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"

__attribute__((format(printf, 2, 3))) static void line(const char *name, const char *format, ...)
{
    va_list args;

    printf("%-10s ", name);
    va_start(args, format);
    print_line_of(stdout, format, args);
    va_end(args);
}

/* As many cells as there are columns. */
static void row(struct print_table *table, const char *const *cells)
{
    for (unsigned i = 0; i < table->columns; i++)
        print_table_add(table, bytes_of(cells[i]));
}

/* One word for programs and people. */
static const char *state_of(const struct store_facts *facts)
{
    switch (facts->kind) {
    case FACT_EMPTY: return "empty";
    case FACT_ANOTHER: return "another";
    case FACT_WRONG_KEY: return "damaged";
    case FACT_STORE: break;
    }
    if (facts->gate[0] != '\0')
        return "gated";
    if (!facts->sound)
        return "damaged";
    return store_facts_is_admitted(facts) ? "admitted" : "restarted";
}

/* -- for people */

static void show_redis(const struct store_facts *facts)
{
    bool same = strcmp(facts->run, facts->redis_run) == 0;

    line("redis", "%s, run %s%s%s", facts->redis_version, facts->redis_run,
         facts->kind != FACT_STORE ? ""
         : same                    ? ", the admitted one"
                                   : ", admitted was ",
         facts->kind != FACT_STORE || same ? ""
         : facts->run[0] != '\0'           ? facts->run
                                           : "none");
    line("primary", "%s, by %s://, stream%s", facts->primary, facts->form,
         facts->redis_run + strcspn(facts->redis_run, " "));
    if (facts->unsafe[0] != '\0')
        line("settings", "%s (role %s, aof_enabled %s, maxmemory-policy %s)", facts->unsafe,
             facts->redis_role, facts->redis_aof, facts->redis_policy);
    else
        line("settings",
             "role %s, appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, "
             "aof-load-truncated no, maxmemory-policy %s",
             facts->redis_role, facts->redis_policy);
}

#define EACH_NODE(node, facts)                                                                               \
    const struct node_fact *node = (facts)->nodes;                                                           \
    node != NULL &&node < (facts)->nodes + (facts)->node_count;                                              \
    node++

/* What a failover would make of them now. */
static void show_failover(const struct store_facts *facts)
{
    for (EACH_NODE(node, facts)) {
        char age[PRINT_DURATION_SIZE] = "";

        if (node == facts->nodes)
            continue;
        if (node->away != NULL && node->away_ms >= 0)
            print_duration(age, node->away_ms);
        if (node->why_not == NULL)
            line("failover", "%s may take over", node->node);
        else
            line("failover", "%s may not (%s%s%s)", node->node, node->why_not,
                 age[0] != '\0' ? ", away for " : "", age);
    }
}

static void show_nodes(const struct store_facts *facts)
{
    struct print_table table = {.head = {"NODE", "ROLE", "IN SYNC", "AWAY", "OFFSET", "LAG", "SETTINGS"},
                                .columns = 7};

    if (facts->copies == 0)
        return;
    line("in sync", "at least %" PRId64 " nodes must have a copy; generation %" PRId64 "%s%s", facts->copies,
         facts->generation, facts->growing[0] != '\0' ? "; joining: " : "", facts->growing);
    show_failover(facts);
    putchar('\n');
    for (EACH_NODE(node, facts)) {
        char offset[PRINT_NUMBER_SIZE], lag[PRINT_DURATION_SIZE];

        row(&table, (const char *const[]){node->node, node->reached ? node->role : "-",
                                          node->kept ? "yes" : "no", node->away != NULL ? node->away : "-",
                                          node->offset >= 0 ? print_number(offset, node->offset).at : "-",
                                          node->lag_ms >= 0 ? print_duration(lag, node->lag_ms) : "-",
                                          !node->reached            ? "-"
                                          : node->unsafe[0] != '\0' ? node->unsafe
                                                                    : "safe"});
    }
    print_table_end(&table);
    putchar('\n');
}

static void show_registrars(const struct store_facts *facts)
{
    unsigned named = 0, live = 0;

    for (unsigned i = 0; i < facts->member_count; i++) {
        named += facts->members[i].registrar;
        live += facts->members[i].registrar && facts->members[i].live;
    }
    if (facts->majority > 0)
        line("registrars", "%u of %" PRId64 " live, %" PRId64 " must be heard", live, facts->registrars,
             facts->majority);
    else if (facts->registrars > 0)
        line("registrars", "%u of %" PRId64 " are named; until then all lease services must be heard", named,
             facts->registrars);
    for (unsigned i = 0; i < facts->registrar_count; i++) {
        const struct registrar_fact *one = &facts->registrar[i];

        line("registrar",
             "%s, %s, has promised epoch %" PRId64 ", has recorded the in-sync set %" PRId64 ".%" PRId64,
             one->id, one->live ? "live" : "silent", one->promise, one->epoch, one->generation);
    }
}

static void show_numbers(const struct store_facts *facts)
{
    line("tokens", "highest counter %" PRId64 "%s%s, reserved up to %" PRId64 " (ceiling)", facts->top,
         facts->top_stripe[0] != '\0' ? " in " : "", facts->top_stripe, facts->ceiling);
    line("clock", "%" PRId64 " ms ahead of Redis' TIME", facts->clock_ms);
    if (facts->maxmemory > 0)
        line("memory", "%" PRId64 " of %" PRId64 " bytes", facts->memory, facts->maxmemory);
    else
        line("memory", "%" PRId64 " bytes, no maxmemory", facts->memory);
    if (facts->ending > 0)
        line("with a TTL", "%" PRId64, facts->ending);
    else
        line("with a TTL", "no key of ours");
}

static void show_machine(const struct machine_facts *machine)
{
    if (machine->found == STATE_OPEN)
        line("state dir", "%s: member %s of store %s, floor %" PRId64 ", roll %" PRId64, machine->path,
             machine->member, machine->store[0] != '\0' ? machine->store : "(none yet)", machine->floor,
             machine->roll);
    else if (machine->found == STATE_FRESH && machine->path[0] != '\0')
        line("state dir", "none at %s", machine->path);
    else
        line("state dir", "%s", machine->why);
}

static void show_members(const struct store_facts *facts)
{
    struct print_table table = {.head = {"MEMBER", "ROLE", "STATE", "FLOOR", "ROLL", "LAST PULSE", "WHO"},
                                .columns = 7};
    bool gated = facts->gate[0] != '\0';

    line("members", "%u, roll %" PRId64, facts->member_count, facts->roll);
    if (facts->member_count > 0)
        putchar('\n');
    for (unsigned i = 0; i < facts->member_count; i++) {
        const struct member_fact *member = &facts->members[i];
        char floor[PRINT_NUMBER_SIZE], roll[PRINT_NUMBER_SIZE], age[PRINT_DURATION_SIZE];

        row(&table, (const char *const[]){
                        member->id, member->role,
                        !gated             ? member->state
                        : member->reported ? "reported"
                                           : "not reported",
                        strcmp(member->role, "lease") == 0 ? print_number(floor, member->floor).at : "-",
                        print_number(roll, member->roll).at,
                        member->age_ms >= 0 ? print_duration(age, member->age_ms) : "never", member->who});
    }
    if (facts->member_count > 0)
        print_table_end(&table);
}

static void show_doubts(const struct store_facts *facts)
{
    struct print_table table = {.head = {"GATEWAY IN DOUBT", "INCARNATION", "STATE", "KNOWN TO BE DEAD FOR"},
                                .columns = 4};

    if (facts->doubt_count == 0)
        return;
    putchar('\n');
    for (unsigned i = 0; i < facts->doubt_count; i++) {
        const struct doubt_fact *doubt = &facts->doubts[i];
        char age[PRINT_DURATION_SIZE];

        row(&table, (const char *const[]){doubt->gateway, doubt->incarnation, doubt->state,
                                          doubt->dead_ms >= 0 ? print_duration(age, doubt->dead_ms) : "-"});
    }
    print_table_end(&table);
}

static void show_findings(FILE *out, const struct store_diagnosis *diagnosis)
{
    for (unsigned i = 0; i < diagnosis->count; i++) {
        const struct store_finding *finding = &diagnosis->findings[i];

        fputc('\n', out);
        print_line(out, "%s: %s", finding->weight == FINDING_REFUSED ? "REFUSED" : "warning", finding->what);
        print_line(out, "  %s", finding->todo);
    }
}

int store_refuse(const struct store_facts *facts, int status, const char *sentence)
{
    struct store_diagnosis diagnosis;

    store_diagnosis_make(facts, &diagnosis);
    cli_fail(status, "%s", sentence);
    show_findings(stderr, &diagnosis);
    return status;
}

void store_show_text(const struct store_facts *facts, const struct store_diagnosis *diagnosis)
{
    bool gated = facts->gate[0] != '\0';

    if (facts->kind == FACT_STORE) {
        line("store", "%s", store_facts_id(facts));
        line("state", "%s%s%s%s, epoch %" PRId64 ", last admission: %s", state_of(facts), gated ? " (" : "",
             gated ? facts->why : "", gated ? ")" : "", facts->epoch,
             facts->how[0] != '\0' ? facts->how : "not known");
        show_redis(facts);
        show_nodes(facts);
        show_numbers(facts);
        show_registrars(facts);
        show_machine(&facts->machine);
        show_members(facts);
        show_doubts(facts);
    } else {
        line("store", "%s", facts->kind == FACT_EMPTY ? "none" : facts->identity);
        if (facts->kind != FACT_WRONG_KEY)
            show_redis(facts);
        show_machine(&facts->machine);
    }
    show_findings(stdout, diagnosis);
    if (diagnosis->status == 0)
        puts("\nGrants and writes are possible.");
}

/* -- for programs */

static void json_fields(struct json_out *out, const struct fact_field *field, const void *facts)
{
    for (; field->name != NULL; field++) {
        const void *place = (const char *)facts + field->at;

        if (field->json == NULL)
            continue;
        if (field->kind == FIELD_TEXT)
            json_text(out, field->json, bytes_of(place));
        else if (field->kind == FIELD_OPTIONAL)
            json_text_or_null(out, field->json, bytes_of(place));
        else if (field->kind == FIELD_FLAG)
            json_bool(out, field->json, *(const bool *)place);
        else if (field->kind == FIELD_AGE && *(const int64_t *)place < 0)
            json_null(out, field->json);
        else
            json_int(out, field->json, *(const int64_t *)place);
    }
}

static void json_items(struct json_out *out, const char *name, const struct fact_field *fields,
                       const void *first, unsigned count, size_t size)
{
    json_list(out, name);
    for (unsigned i = 0; i < count; i++) {
        json_object(out, NULL);
        json_fields(out, fields, (const char *)first + i * size);
        json_object_end(out);
    }
    json_list_end(out);
}

static void json_run(struct json_out *out, const char *run_id, const char *replid, const char *run)
{
    size_t len = strcspn(run, " ");

    json_text(out, run_id, (struct bytes){run, len});
    json_text(out, replid, bytes_of(run + len + (run[len] != '\0')));
}

static void json_away(struct json_out *out, const struct node_fact *node)
{
    json_object(out, NULL);
    json_text(out, "node", bytes_of(node->node));
    json_text(out, "why", bytes_of(node->away));
    json_int_or_null(out, "since_ms", node->away_ms, -1);
    json_object_end(out);
}

static void json_nodes(struct json_out *out, const struct store_facts *facts)
{
    json_list(out, "kept");
    for (EACH_NODE(node, facts))
        if (node->kept)
            json_text(out, NULL, bytes_of(node->node));
    json_list_end(out);
    json_list(out, "away");
    for (EACH_NODE(node, facts))
        if (node->away != NULL)
            json_away(out, node);
    json_list_end(out);
    json_list(out, "nodes");
    for (EACH_NODE(node, facts)) {
        json_object(out, NULL);
        json_fields(out, node_fields, node);
        json_fields(out, own_fields, node);
        json_text_or_null(out, "unsafe", bytes_of(node->unsafe));
        json_object_end(out);
    }
    json_list_end(out);
    json_object(out, "failover");
    json_list(out, "may");
    for (EACH_NODE(node, facts))
        if (node != facts->nodes && node->why_not == NULL)
            json_text(out, NULL, bytes_of(node->node));
    json_list_end(out);
    json_list(out, "may_not");
    for (EACH_NODE(node, facts))
        if (node->why_not != NULL) {
            json_object(out, NULL);
            json_text(out, "node", bytes_of(node->node));
            json_text(out, "why", bytes_of(node->why_not));
            json_object_end(out);
        }
    json_list_end(out);
    json_object_end(out);
}

static void json_machine(struct json_out *out, const struct machine_facts *machine)
{
    static const char *const found[] = {[STATE_OPEN] = "read",
                                        [STATE_FRESH] = "none",
                                        [STATE_IN_USE] = "in-use",
                                        [STATE_DAMAGED] = "damaged",
                                        [STATE_FAILED] = "unreadable"};

    json_object(out, "state_dir");
    json_text(out, "path", bytes_of(machine->path));
    json_text(out, "found", bytes_of(found[machine->found]));
    if (machine->found == STATE_OPEN) {
        json_text(out, "member", bytes_of(machine->member));
        json_text(out, "store", bytes_of(machine->store));
        json_int(out, "floor", machine->floor);
        json_int(out, "epoch", machine->epoch);
        json_int(out, "roll", machine->roll);
    }
    json_object_end(out);
}

static void json_findings(struct json_out *out, const struct store_diagnosis *diagnosis)
{
    json_list(out, "findings");
    for (unsigned i = 0; i < diagnosis->count; i++) {
        json_object(out, NULL);
        json_bool(out, "refused", diagnosis->findings[i].weight == FINDING_REFUSED);
        json_text(out, "what", bytes_of(diagnosis->findings[i].what));
        json_text(out, "todo", bytes_of(diagnosis->findings[i].todo));
        json_object_end(out);
    }
    json_list_end(out);
}

void store_show_json(const struct store_facts *facts, const struct store_diagnosis *diagnosis)
{
    struct json_out out;

    print_json_begin(&out);
    json_text(&out, "state", bytes_of(state_of(facts)));
    json_text(&out, "store", bytes_of(store_facts_id(facts)));
    json_text(&out, "identity", bytes_of(facts->identity));
    json_text(&out, "why", bytes_of(facts->gate[0] != '\0' ? facts->why : ""));
    json_fields(&out, store_fields, facts);
    json_int(&out, "keys_with_ttl", facts->ending);
    json_text(&out, "form", bytes_of(facts->form));
    json_text(&out, "primary", bytes_of(facts->primary));
    json_text(&out, "stream",
              bytes_of(facts->redis_run + strcspn(facts->redis_run, " ") + (facts->redis_run[0] != '\0')));
    json_nodes(&out, facts);
    json_items(&out, "registrars", registrar_fields, facts->registrar, facts->registrar_count,
               sizeof(*facts->registrar));
    json_object(&out, "redis");
    json_run(&out, "run_id", "replid", facts->redis_run);
    json_run(&out, "admitted_run_id", "admitted_replid", facts->run);
    json_fields(&out, redis_fields, facts);
    json_text_or_null(&out, "unsafe", bytes_of(facts->unsafe));
    json_object_end(&out);
    json_items(&out, "members", member_fields, facts->members, facts->member_count, sizeof(*facts->members));
    json_list(&out, "waiting_for");
    for (unsigned i = 0; i < facts->waiting_count; i++)
        json_text(&out, NULL, bytes_of(facts->waiting[i]));
    json_list_end(&out);
    json_items(&out, "in_doubt", doubt_fields, facts->doubts, facts->doubt_count, sizeof(*facts->doubts));
    json_machine(&out, &facts->machine);
    json_findings(&out, diagnosis);
    print_json_end(&out);
}

/* -- a quorum */

static void quorum_text(const struct quorum_facts *facts, const struct store_diagnosis *diagnosis)
{
    struct print_table table = {.head = {"NODE", "STATE", "FOR", "EPOCH", "HIGHEST", "EVICTION", "REDIS"},
                                .columns = 7};

    line("store", "%s", facts->store[0] != '\0' ? facts->store : "none");
    line("form", "quorum, %u of %u nodes are well, and %u must be", facts->well, facts->count,
         facts->majority);
    putchar('\n');
    for (unsigned i = 0; i < facts->count; i++) {
        const struct quorum_fact *node = &facts->nodes[i];
        char name[STORE_NODE_MAX + 4], wait[PRINT_DURATION_SIZE], numbers[2][PRINT_NUMBER_SIZE];

        snprintf(name, sizeof(name), "%u %s", i + 1, node->node);
        row(&table, (const char *const[]){
                        name, node->state, node->for_ms >= 0 ? print_duration(wait, node->for_ms) : "-",
                        node->epoch >= 0 ? print_number(numbers[0], node->epoch).at : "-",
                        node->highest >= 0 ? print_number(numbers[1], node->highest).at : "-",
                        node->reached ? node->policy : "-", node->reached ? node->version : "-"});
    }
    print_table_end(&table);
    show_findings(stdout, diagnosis);
    if (diagnosis->status == 0)
        puts("\nGrants are possible.");
}

static const struct fact_field quorum_fields[] = {
    {"", "node", FIELD_TEXT, offsetof(struct quorum_fact, node), 0},
    {"", "for_ms", FIELD_AGE, offsetof(struct quorum_fact, for_ms), 0},
    {"", "epoch", FIELD_AGE, offsetof(struct quorum_fact, epoch), 0},
    {"", "highest", FIELD_AGE, offsetof(struct quorum_fact, highest), 0},
    {"", "max_ttl_ms", FIELD_AGE, offsetof(struct quorum_fact, max_ttl_ms), 0},
    {"", "maxmemory_policy", FIELD_OPTIONAL, offsetof(struct quorum_fact, policy), 0},
    {"", "version", FIELD_OPTIONAL, offsetof(struct quorum_fact, version), 0},
    {0},
};

static void quorum_json(const struct quorum_facts *facts, const struct store_diagnosis *diagnosis)
{
    struct json_out out;

    print_json_begin(&out);
    json_text(&out, "form", BYTES("quorum"));
    json_text(&out, "store", bytes_of(facts->store));
    json_int(&out, "majority", facts->majority);
    json_int(&out, "well", facts->well);
    json_list(&out, "nodes");
    for (unsigned i = 0; i < facts->count; i++) {
        json_object(&out, NULL);
        json_int(&out, "number", i + 1);
        json_text(&out, "state", bytes_of(facts->nodes[i].state));
        json_fields(&out, quorum_fields, &facts->nodes[i]);
        json_object_end(&out);
    }
    json_list_end(&out);
    json_findings(&out, diagnosis);
    print_json_end(&out);
}

void store_show_quorum(const struct quorum_facts *facts, const struct store_diagnosis *diagnosis,
                       enum output output)
{
    (output == OUTPUT_JSON ? quorum_json : quorum_text)(facts, diagnosis);
}
