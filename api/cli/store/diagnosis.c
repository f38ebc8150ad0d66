/* diagnosis.c - what the facts of a store mean: what would be refused and why, and what to do. */
#include "api/cli/store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"

enum { MEMORY_WARN_PERCENT = 75, MEMORY_FULL_PERCENT = 90 };

#define FLOOR_HINT "pawl store recover --floor N"

/* -- texts */

__attribute__((format(printf, 3, 4))) static void text_add(char *buf, size_t size, const char *format, ...)
{
    size_t len = strlen(buf);
    va_list args;

    va_start(args, format);
    vsnprintf(buf + len, size - len, format, args);
    va_end(args);
}

static struct store_finding *finding_add(struct store_diagnosis *diagnosis, int status)
{
    struct store_finding *finding =
        &diagnosis->findings[diagnosis->count < FINDINGS_MAX ? diagnosis->count++ : FINDINGS_MAX - 1];

    *finding = (struct store_finding){.weight = status == CLI_OK ? FINDING_WARNING : FINDING_REFUSED};
    if (diagnosis->status < status)
        diagnosis->status = status;
    return finding;
}

#define WHAT(finding, ...) text_add((finding)->what, FINDING_TEXT_SIZE, __VA_ARGS__)
#define ADVISE(finding, ...) text_add((finding)->todo, FINDING_TEXT_SIZE, __VA_ARGS__)

void store_diagnosis_name(char buf[MEMBER_TEXT_BYTES], const char *id, const struct member_fact *member)
{
    char age[PRINT_DURATION_SIZE];

    if (member == NULL) {
        snprintf(buf, MEMBER_TEXT_BYTES, "%s", id);
        return;
    }
    snprintf(buf, MEMBER_TEXT_BYTES, "%s (%s", id, member->who[0] != '\0' ? member->who : member->role);
    if (member->age_ms >= 0) {
        print_duration(age, member->age_ms);
        text_add(buf, MEMBER_TEXT_BYTES, ", last seen %s ago", age);
    }
    text_add(buf, MEMBER_TEXT_BYTES, ")");
}

static void name_add(char *buf, const char *before, const char *id, const struct member_fact *member)
{
    char name[MEMBER_TEXT_BYTES];

    store_diagnosis_name(name, id, member);
    text_add(buf, FINDING_TEXT_SIZE, "%s%s", before, name);
}

static bool is_lease(const struct member_fact *member)
{
    return strcmp(member->role, "lease") == 0;
}

static bool state_is(const struct member_fact *member, const char *state)
{
    return strcmp(member->state, state) == 0;
}

/* Lease services that take part in this epoch, alive or not. */
static unsigned leases_add(const struct store_facts *facts, char *buf)
{
    unsigned count = 0;

    for (unsigned i = 0; i < facts->member_count; i++) {
        const struct member_fact *member = &facts->members[i];

        if (is_lease(member) && !state_is(member, "pending") && !state_is(member, "forgotten"))
            name_add(buf, count++ > 0 ? ", " : "", member->id, member);
    }
    return count;
}

/* -- what may be found */

/* Also what keeps and gives back: a Redis that is only full takes that. */
static bool refuses_writes(const struct store_facts *facts)
{
    return facts->refusal != NULL && strcmp(facts->refusal->check, STORE_FULL) != 0;
}

static void find_refusal(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = finding_add(diagnosis, CLI_REFUSED);

    WHAT(finding, "%s; while that is so nobody can act, and no service can say that it lives",
         facts->refusal->what);
    ADVISE(finding, "%s", facts->refusal->todo);
}

static void find_memory(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    int64_t percent = facts->maxmemory > 0 ? facts->memory / (facts->maxmemory / 100 + 1) : 0;
    bool full = percent >= MEMORY_FULL_PERCENT || (facts->refusal != NULL && !refuses_writes(facts));
    struct store_finding *finding;

    if (!full && percent < MEMORY_WARN_PERCENT)
        return;
    finding = finding_add(diagnosis, full ? CLI_REFUSED : CLI_OK);
    WHAT(finding,
         "Redis uses %" PRId64 " of the %" PRId64
         " bytes it may (maxmemory): %s %d %% on no new grants, sessions or writes are taken (store-full); "
         "what is held is kept and given back all the same",
         facts->memory, facts->maxmemory, full ? "from" : "it is not far from", MEMORY_FULL_PERCENT);
    ADVISE(finding,
           "Give it more (CONFIG SET maxmemory, and in its configuration file), or delete stored resources.");
}

static void find_routes(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    for (unsigned i = 0; i < facts->member_count && facts->routes[0] != '\0'; i++) {
        const struct member_fact *member = &facts->members[i];
        struct store_finding *finding;

        if (!member->live || member->routes[0] == '\0' || strcmp(member->routes, facts->routes) == 0)
            continue;
        finding = finding_add(diagnosis, CLI_REFUSED);
        name_add(finding->what, "all that gateway ", member->id, member);
        WHAT(finding,
             " forwards is answered 503 routes-differ: its table is %.12s, and the gateways of this store "
             "have agreed on %.12s. Its file was changed and not adopted, or the store was put back",
             member->routes, facts->routes);
        ADVISE(finding, "When all gateways have the right file: pawl routes adopt, at one that has it.");
    }
}

static void find_marks(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding;

    if (facts->marks_lost[0] == '\0')
        return;
    finding = finding_add(diagnosis, CLI_OK);
    WHAT(finding,
         "routes with \"check\":\"mark\" and \"store\":\"%s\" answer 503 marks-lost: this store has lost "
         "which of its tokens had been let through",
         facts->marks_lost);
    ADVISE(finding,
           "Look at that one (pawl store status there), then here: pawl store marks --of %s --at EPOCH.TOKEN",
           facts->marks_lost);
}

static void find_no_store(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = finding_add(diagnosis, CLI_CONFIG);

    if (facts->kind == FACT_WRONG_KEY) {
        WHAT(finding,
             "the key %s is a %s here, which Pawl never makes of it: somebody else writes into this database",
             facts->wrong_key, facts->wrong_type);
        ADVISE(finding, "Give Pawl a database of its own. If the key may go: RENAME it, and run this again.");
    } else if (facts->kind == FACT_ANOTHER) {
        WHAT(finding,
             "what is here (identity \"%s\") is no store that this release knows; it knows "
             "schema " KEYS_SCHEMA,
             facts->identity);
        ADVISE(finding, "Use the release of Pawl that made it, or another Redis.");
    } else if (facts->machine.found == STATE_OPEN && facts->machine.store[0] != '\0') {
        WHAT(finding, "this Redis has no store: it is new, or it has lost everything; %s belongs to store %s",
             facts->machine.path, facts->machine.store);
        ADVISE(finding, "If its append-only file or a backup is there: stop Redis and put it back. If not: "
                        "pawl store recover, and the lease services go on above their floors; if their state "
                        "directories are lost too: " FLOOR_HINT ".");
    } else {
        WHAT(finding, "this Redis has no store: it is new, or it has lost everything");
        ADVISE(finding, "A new store: pawl store init. One that was here before: pawl store recover, "
                        "on the machine of a lease service or with --store-id ID.");
    }
}

static void find_machine(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    const struct machine_facts *machine = &facts->machine;
    struct store_finding *finding;

    if (machine->found == STATE_DAMAGED) {
        finding = finding_add(diagnosis, CLI_OK);
        WHAT(finding, "%s", machine->why);
        ADVISE(finding, "A service with this state directory does not start. Move its high-water file away, "
                        "and it comes as a new member.");
    } else if (machine->found == STATE_OPEN && machine->store[0] != '\0' &&
               strcmp(machine->store, store_facts_id(facts)) != 0) {
        finding = finding_add(diagnosis, CLI_CONFIG);
        WHAT(finding,
             "this Redis has the store %s, but %s belongs to store %s: a service with it refuses "
             "(store-not-ours)",
             store_facts_id(facts), machine->path, machine->store);
        ADVISE(finding, "Name the right Redis with --redis, or the right state directory with --state-dir.");
    }
}

static const char *gate_reason(const char *why)
{
    static const char *const reasons[][2] = {
        {"restarted",
         "Redis was restarted, is another one than before, or goes on with another replication stream"},
        {"behind", "the store knows less than a service does: it was put back, or has lost its last writes"},
        {"damaged", "a part of the store was missing, or did not fit the rest"},
        {"empty", "pawl store recover made it in an empty Redis"},
    };

    for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (strcmp(why, reasons[i][0]) == 0)
            return reasons[i][1];
    }
    return why;
}

static void find_gate(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = finding_add(diagnosis, CLI_REFUSED);
    char names[FINDING_TEXT_SIZE] = "";

    WHAT(finding, "gated: %s. ", gate_reason(facts->why));
    if (facts->asked == 2) {
        WHAT(finding, "A lease service is about to admit it");
        ADVISE(finding, "Look again in a second.");
    } else if (facts->asked == 1 && facts->waiting_count > 0) {
        WHAT(finding, "Waiting for the floor%s of lease service ", facts->waiting_count > 1 ? "s" : "");
        for (unsigned i = 0; i < facts->waiting_count; i++)
            name_add(finding->what, i > 0 ? ", " : "", facts->waiting[i],
                     store_facts_member(facts, facts->waiting[i]));
        ADVISE(finding, "Start %s; if a state directory is lost for good: " FLOOR_HINT ".",
               facts->waiting_count > 1 ? "them" : "it");
    } else if (facts->asked == 1) {
        WHAT(finding, "The lease services that have come know of no others: their state directories are new");
        ADVISE(finding,
               "Start those that were here before; if their state directories are lost for good: " FLOOR_HINT
               ".");
    } else {
        WHAT(finding, "No lease service has come that could admit it");
        ADVISE(finding, "Start the lease services, each with its state directory");
        if (leases_add(facts, names) > 0)
            ADVISE(finding, ": %s", names);
        ADVISE(finding, ". If all state directories are lost for good: " FLOOR_HINT ".");
    }
}

/* Nobody has noticed yet. */
static void find_not_gated(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = finding_add(diagnosis, CLI_REFUSED);

    if (!facts->has_record)
        WHAT(finding, "the record pawl:{store} is missing");
    else if (facts->absent > 0)
        WHAT(finding, "%" PRId64 " of the 256 stripes are missing (%s first)", facts->absent,
             facts->first_absent);
    else if (facts->shut > 0)
        WHAT(finding, "%" PRId64 " of the 256 stripes are shut, but the record knows of no gating",
             facts->shut);
    else if (!facts->sound)
        WHAT(finding, "the stripes and the record do not agree, or a number in them is none");
    else if (strncmp(facts->run, facts->redis_run, FACT_RUN_ID_LEN) == 0)
        WHAT(finding, "Redis has begun a new replication stream: a replica was attached or has gone, "
                      "redis-cli --rdb, or it has been a replica itself");
    else
        WHAT(finding,
             "Redis was restarted, or is another one than the one that was admitted (run %.8s, now %.8s)",
             facts->run, facts->redis_run);
    WHAT(finding, "; the first service that notices gates the store, then a lease service admits it");
    ADVISE(finding, "Nothing, if the services run: look again in a second. Else start the lease services.");
}

static const char *pending_reason(const struct store_facts *facts, const struct member_fact *newcomer)
{
    if (is_lease(newcomer) && newcomer->roll < newcomer->since)
        return "it has not yet recorded the list of members in its state directory";
    if (is_lease(newcomer) && newcomer->floor < facts->ceiling)
        return "it has not yet recorded its floor in its state directory";
    return store_facts_lease_lives(facts) ? "not every lease service has recorded it yet"
                                          : "no lease service lives that could vouch for it";
}

static void find_pending(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    for (unsigned i = 0; i < facts->member_count; i++) {
        const struct member_fact *member = &facts->members[i];
        struct store_finding *finding;

        if (!state_is(member, "pending") || !member->live)
            continue;
        finding = finding_add(diagnosis, CLI_REFUSED);
        name_add(finding->what, "not let in yet: ", member->id, member);
        WHAT(finding, ": %s", pending_reason(facts, member));
        ADVISE(finding, "This takes a second or two; if it lasts, see the logs of the lease services.");
    }
}

static void find_no_lease(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = finding_add(diagnosis, CLI_REFUSED);
    char names[FINDING_TEXT_SIZE] = "";
    unsigned count = leases_add(facts, names);

    WHAT(finding, "no lease service is alive, so no lease is granted");
    if (facts->open)
        ADVISE(finding, "Start one: after the recovery the first that comes may join.");
    else if (count > 0)
        ADVISE(finding,
               "Start one of these, with its state directory: %s. If they are lost for good: " FLOOR_HINT ".",
               names);
    else
        ADVISE(finding, "None is listed that could vouch for another: " FLOOR_HINT ".");
}

static void find_ceiling(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    const struct member_fact *lowest = NULL;
    struct store_finding *finding;

    if (facts->top < facts->ceiling)
        return;
    finding = finding_add(diagnosis, CLI_REFUSED);
    if (facts->top >= FACT_TOKEN_LAST) {
        WHAT(finding, "the range of tokens is used up: stripe %s has granted the last one (token-exhausted)",
             facts->top_stripe);
        ADVISE(finding, "A new store, and resources that know nothing of the old tokens.");
        return;
    }
    for (unsigned i = 0; i < facts->member_count; i++) {
        if (store_facts_is_live_lease(&facts->members[i]) &&
            (lowest == NULL || facts->members[i].floor < lowest->floor))
            lowest = &facts->members[i];
    }
    WHAT(finding, "no token above %" PRId64 " is reserved, and stripe %s has come to it (floor-reached)",
         facts->ceiling, facts->top_stripe);
    if (lowest != NULL)
        name_add(finding->todo, "If it lasts, see the state directory of lease service ", lowest->id, lowest);
    ADVISE(finding, ": full, read-only, or gone?");
}

static void find_grants(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    if (store_facts_lease_lives(facts))
        find_ceiling(facts, diagnosis);
    else
        find_no_lease(facts, diagnosis);
    find_pending(facts, diagnosis);
}

static void find_settings(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding;

    if (facts->unsafe[0] != '\0') {
        finding = finding_add(diagnosis, CLI_REFUSED);
        WHAT(finding, "this Redis can lose locks: %s; new grants are refused", facts->unsafe);
        ADVISE(finding,
               "Set it, also in Redis' configuration file; or run the services with --allow-unsafe-redis.");
    }
    if (facts->ending > 0) {
        finding = finding_add(diagnosis, CLI_OK);
        WHAT(finding, "%" PRId64 " key%s of ours %s a TTL, %s for one: somebody else has set it",
             facts->ending, facts->ending > 1 ? "s" : "", facts->ending > 1 ? "have" : "has",
             facts->ending_key);
        ADVISE(finding,
               "Take it away with PERSIST, and find out who did it; the services do so for stripes.");
    }
}

/* Who went away without a word is asked at the next admission, and cannot answer. Of lease services, when
 * none lives, more has been said already. */
static void find_gone(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    for (unsigned i = 0; i < facts->member_count; i++) {
        const struct member_fact *member = &facts->members[i];
        struct store_finding *finding;

        if (facts->gate[0] != '\0' || member->live || state_is(member, "out") ||
            state_is(member, "forgotten") || (is_lease(member) && !store_facts_lease_lives(facts)))
            continue;
        finding = finding_add(diagnosis, CLI_OK);
        name_add(finding->what, "gone without a word: ", member->id, member);
        WHAT(finding, "; after the next restart of Redis %s",
             is_lease(member) ? "nobody can admit the store without it"
                              : "all holds end, since it cannot be asked");
        ADVISE(finding, "Start it, or, if it never comes back: pawl store forget %s", member->id);
    }
}

/* All of them in one: what to do is the same. */
static void find_doubts(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding;
    const struct doubt_fact *first = facts->doubts;

    if (facts->doubt_count == 0)
        return;
    finding = finding_add(diagnosis, CLI_OK);
    WHAT(finding,
         "ordered routes answer 503 in-doubt: the store has lost data, and %u incarnation%s of gateways, "
         "first of all %s of gateway %s, %s yet to say what %s had sent on",
         facts->doubt_count, facts->doubt_count > 1 ? "s" : "", first->incarnation, first->gateway,
         facts->doubt_count > 1 ? "have" : "has", facts->doubt_count > 1 ? "they" : "it");
    ADVISE(
        finding,
        "One that runs tells the store by itself. One that is dead: pawl resolve --gateway %s --incarnation "
        "%s --dead; routes with a grace go on when that has passed, the others when you have seen that "
        "nothing it had sent is still on its way to an upstream, and say so: --dead --settled",
        first->gateway, first->incarnation);
}

/* -- the diagnosis */

void store_diagnosis_make(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    memset(diagnosis, 0, sizeof(*diagnosis));
    if (facts->kind != FACT_STORE) {
        find_no_store(facts, diagnosis);
        return;
    }
    find_machine(facts, diagnosis);
    find_memory(facts, diagnosis);
    if (refuses_writes(facts)) {
        find_refusal(facts, diagnosis); /* nobody can say that it lives: of that nothing follows */
        find_settings(facts, diagnosis);
        return;
    }
    if (facts->gate[0] != '\0')
        find_gate(facts, diagnosis);
    else if (!store_facts_is_admitted(facts))
        find_not_gated(facts, diagnosis);
    else
        find_grants(facts, diagnosis);
    find_settings(facts, diagnosis);
    find_gone(facts, diagnosis);
    find_doubts(facts, diagnosis);
    find_routes(facts, diagnosis);
    find_marks(facts, diagnosis);
}
