/* diagnosis.c - what the facts of a store mean: what would be refused and why, and what to do. */
#include "api/cli/store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "shared/token/token.h"

enum { MEMORY_WARN_PERCENT = 75, MEMORY_FULL_PERCENT = 90, SILENT_MS = 3000 };

#define FLOOR_HINT "pawl store recover --floor N"
#define PRIMARY_HINT                                                                                         \
    "First of all stop this Redis, for sentinels make what is started copy it; then make a node of the "     \
    "in-sync set the primary, if any of them exists"
#define MAY_LACK                                                                                             \
    "This Redis is not in the in-sync set, or has copied one that is not: it may lack what was answered"

/* -- texts */

__attribute__((format(printf, 3, 4))) static void text_add(char *buf, size_t size, const char *format, ...)
{
    size_t len = strlen(buf);
    va_list args;

    va_start(args, format);
    vsnprintf(buf + len, size - len, format, args);
    va_end(args);
}

#define WHAT(finding, ...) text_add((finding)->what, FINDING_TEXT_SIZE, __VA_ARGS__)
#define ADVISE(finding, ...) text_add((finding)->todo, FINDING_TEXT_SIZE, __VA_ARGS__)

/* status: CLI_OK for a warning. todo as it is; format: what was found. */
__attribute__((format(printf, 4, 5))) static struct store_finding *find(struct store_diagnosis *diagnosis,
                                                                        int status, const char *todo,
                                                                        const char *format, ...)
{
    struct store_finding *finding =
        &diagnosis->findings[diagnosis->count < FINDINGS_MAX ? diagnosis->count++ : FINDINGS_MAX - 1];
    va_list args;

    *finding = (struct store_finding){.weight = status == CLI_OK ? FINDING_WARNING : FINDING_REFUSED};
    ADVISE(finding, "%s", todo);
    va_start(args, format);
    vsnprintf(finding->what, FINDING_TEXT_SIZE, format, args);
    va_end(args);
    if (diagnosis->status < status)
        diagnosis->status = status;
    return finding;
}

const char *store_diagnosis_name(char buf[MEMBER_TEXT_BYTES], const char *id,
                                 const struct member_fact *member)
{
    char age[PRINT_DURATION_SIZE];

    snprintf(buf, MEMBER_TEXT_BYTES, "%s", id);
    if (member == NULL)
        return buf;
    text_add(buf, MEMBER_TEXT_BYTES, " (%s", member->who[0] != '\0' ? member->who : member->role);
    if (member->age_ms >= 0)
        text_add(buf, MEMBER_TEXT_BYTES, ", last seen %s ago", print_duration(age, member->age_ms));
    text_add(buf, MEMBER_TEXT_BYTES, ")");
    return buf;
}

/* Another one in a list of them. */
static void name_add(char names[FINDING_TEXT_SIZE], const char *id, const struct member_fact *member)
{
    char name[MEMBER_TEXT_BYTES];

    text_add(names, FINDING_TEXT_SIZE, "%s%s", names[0] != '\0' ? ", " : "",
             store_diagnosis_name(name, id, member));
}

static bool is_lease(const struct member_fact *member)
{
    return strcmp(member->role, "lease") == 0;
}

static bool state_is(const struct member_fact *member, const char *state)
{
    return strcmp(member->state, state) == 0;
}

#define EACH_MEMBER(member, facts)                                                                           \
    const struct member_fact *member = (facts)->members;                                                     \
    member < (facts)->members + (facts)->member_count;                                                       \
    member++

static const struct member_fact *member_find(const struct store_facts *facts, const char *id)
{
    for (EACH_MEMBER(member, facts))
        if (strcmp(member->id, id) == 0)
            return member;
    return NULL;
}

/* Lease services that take part in this epoch, alive or not. */
static void leases_add(const struct store_facts *facts, char names[FINDING_TEXT_SIZE])
{
    for (EACH_MEMBER(member, facts))
        if (is_lease(member) && !state_is(member, "pending") && !state_is(member, "forgotten"))
            name_add(names, member->id, member);
}

/* -- what may be found */

static void find_no_store(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    if (facts->kind == FACT_WRONG_KEY)
        find(diagnosis, CLI_CONFIG,
             "Give Pawl a database of its own. If the key may go: RENAME it, and run this again.",
             "the key %s is a %s here, which Pawl never makes of it: somebody else writes into this database",
             facts->wrong_key, facts->wrong_type);
    else if (facts->kind == FACT_ANOTHER && strchr(facts->identity, '/') != NULL)
        find(diagnosis, CLI_CONFIG,
             "Name all nodes of the quorum, each with --redis, in the order in which the store was made.",
             "this Redis is a node of a quorum (%s), and no store by itself", facts->identity);
    else if (facts->kind == FACT_ANOTHER)
        find(diagnosis, CLI_CONFIG, "Use the release of Pawl that made it, or another Redis.",
             "what is here (identity \"%s\") is no store that this release knows; it knows "
             "schema " KEYS_SCHEMA,
             facts->identity);
    else if (facts->machine.found == STATE_OPEN && facts->machine.store[0] != '\0')
        find(diagnosis, CLI_CONFIG,
             "If its append-only file or a backup is there: stop Redis and put it back. If not: pawl store "
             "recover, and the lease services go on above their floors; if their state directories are lost "
             "too: " FLOOR_HINT ".",
             "this Redis has no store: it is new, or it has lost everything; %s belongs to store %s",
             facts->machine.path, facts->machine.store);
    else
        find(diagnosis, CLI_CONFIG,
             "A new store: pawl store init. One that was here before: pawl store recover, on the "
             "machine of a lease service or with --store-id ID.",
             "this Redis has no store: it is new, or it has lost everything");
}

static void find_machine(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    const struct machine_facts *machine = &facts->machine;

    if (machine->found == STATE_DAMAGED)
        find(
            diagnosis, CLI_OK,
            "A service with this state directory does not start. Move its high-water file away, and it comes "
            "as a new member.",
            "%s", machine->why);
    else if (machine->found == STATE_OPEN && machine->store[0] != '\0' &&
             strcmp(machine->store, store_facts_id(facts)) != 0)
        find(diagnosis, CLI_CONFIG,
             "Name the right Redis with --redis, or the right state directory with --state-dir.",
             "this Redis has the store %s, but %s belongs to store %s: a service with it refuses "
             "(store-not-ours)",
             store_facts_id(facts), machine->path, machine->store);
}

/* Also what keeps and gives back: a Redis that is only full takes that. */
static bool refuses_writes(const struct store_facts *facts)
{
    return facts->refusal != NULL && strcmp(facts->refusal->check, STORE_FULL) != 0;
}

static void find_memory(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    int64_t percent = facts->maxmemory > 0 ? facts->memory / (facts->maxmemory / 100 + 1) : 0;
    bool full = percent >= MEMORY_FULL_PERCENT || (facts->refusal != NULL && !refuses_writes(facts));

    if (full || percent >= MEMORY_WARN_PERCENT)
        find(
            diagnosis, full ? CLI_REFUSED : CLI_OK,
            "Give it more (CONFIG SET maxmemory, and in its configuration file), or delete stored resources.",
            "Redis uses %" PRId64 " of the %" PRId64
            " bytes it may (maxmemory): %s %d %% on no new grants, sessions or writes are taken "
            "(store-full); what is held is kept and given back all the same",
            facts->memory, facts->maxmemory, full ? "from" : "it is not far from", MEMORY_FULL_PERCENT);
}

static void find_gate(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    static const char *const reasons[][2] = {
        {"restarted",
         "Redis was restarted, is another one than before, or goes on with another replication stream"},
        {"behind", "the store knows less than a service does: it was put back, or has lost its last writes"},
        {"damaged", "a part of the store was missing, or did not fit the rest"},
        {"empty", "pawl store recover made it in an empty Redis"},
    };
    const char *reason = facts->why;
    char names[FINDING_TEXT_SIZE] = "";
    struct store_finding *finding;

    for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        reason = strcmp(facts->why, reasons[i][0]) == 0 ? reasons[i][1] : reason;
    finding = find(diagnosis, CLI_REFUSED, facts->outside && facts->asked < 2 ? PRIMARY_HINT ". " : "",
                   "gated: %s. %s", reason, facts->outside && facts->asked < 2 ? MAY_LACK ". " : "");
    if (facts->asked == 2) {
        WHAT(finding, "A lease service is about to admit it");
        ADVISE(finding, "Look again in a second.");
    } else if (facts->asked == 3) {
        WHAT(finding, MAY_LACK);
        ADVISE(finding, PRIMARY_HINT ": /readyz names them. If not: pawl store accept-loss NODE, which goes "
                                     "on with what this one has.");
    } else if (facts->asked == 1 && facts->waiting_count > 0) {
        for (unsigned i = 0; i < facts->waiting_count; i++)
            name_add(names, facts->waiting[i], member_find(facts, facts->waiting[i]));
        if (facts->majority > 0)
            WHAT(finding, "Waiting until %" PRId64 " of %" PRId64 " registrars are heard; missing are %s",
                 facts->majority, facts->registrars, names);
        else
            WHAT(finding, "Waiting for the floor%s of lease service %s", facts->waiting_count > 1 ? "s" : "",
                 names);
        ADVISE(finding, "Start %s; if a state directory is lost for good: " FLOOR_HINT ".",
               facts->waiting_count > 1 ? "them" : "it");
    } else if (facts->asked == 1) {
        WHAT(finding, "The lease services that have come know of no others: their state directories are new");
        ADVISE(finding,
               "Start those that were here before; if their state directories are lost for good: " FLOOR_HINT
               ".");
    } else {
        leases_add(facts, names);
        WHAT(finding, "No lease service has come that could admit it");
        ADVISE(finding,
               "Start the lease services, each with its state directory%s%s. If all state directories are "
               "lost for good: " FLOOR_HINT ".",
               names[0] != '\0' ? ": " : "", names);
    }
}

/* Nobody has noticed yet. */
static void find_not_gated(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = find(
        diagnosis, CLI_REFUSED,
        "Nothing, if the services run: look again in a second. Else start the lease services.", "%s", "");

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
}

static void find_no_lease(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    struct store_finding *finding = find(diagnosis, CLI_REFUSED, "",
                                         "no lease service is alive, so no lease is granted");
    char names[FINDING_TEXT_SIZE] = "";

    leases_add(facts, names);
    if (facts->open)
        ADVISE(finding, "Start one: after the recovery the first that comes may join.");
    else if (names[0] != '\0')
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
    char name[MEMBER_TEXT_BYTES];

    if (facts->unaware[0] != '\0') {
        find(diagnosis, CLI_REFUSED,
             "Start them, or those that come back; if none of them ever will: pawl store recover --floor N "
             "--force.",
             "nothing is granted: lease services that lived when this store was recovered do not know of it "
             "yet: %s",
             facts->unaware);
        return;
    }
    if (facts->top < facts->ceiling)
        return;
    if (facts->top >= TOKEN_NUMBER_MAX) {
        find(diagnosis, CLI_REFUSED, "A new store, and resources that know nothing of the old tokens.",
             "the range of tokens is used up: stripe %s has granted the last one (token-exhausted)",
             facts->top_stripe);
        return;
    }
    for (EACH_MEMBER(member, facts))
        if (store_facts_is_live_lease(member) && (lowest == NULL || member->floor < lowest->floor))
            lowest = member;
    finding = find(diagnosis, CLI_REFUSED, "",
                   "no token above %" PRId64 " is reserved, and stripe %s has come to it (floor-reached)",
                   facts->ceiling, facts->top_stripe);
    if (lowest != NULL)
        ADVISE(finding, "If it lasts, see the state directory of lease service %s: full, read-only, or gone?",
               store_diagnosis_name(name, lowest->id, lowest));
}

static void find_pending(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    char name[MEMBER_TEXT_BYTES];

    for (EACH_MEMBER(member, facts)) {
        bool lease = is_lease(member);

        if (state_is(member, "pending") && member->live)
            find(diagnosis, CLI_REFUSED,
                 "This takes a second or two; if it lasts, see the logs of the lease services.",
                 "not let in yet: %s: %s", store_diagnosis_name(name, member->id, member),
                 lease && member->roll < member->since
                     ? "it has not yet recorded the list of members in its state directory"
                 : lease && member->floor < facts->ceiling
                     ? "it has not yet recorded its floor in its state directory"
                 : store_facts_lease_lives(facts) ? "not every lease service has recorded it yet"
                                                  : "no lease service lives that could vouch for it");
    }
}

/* In step as the primary sees it, and all the same not waited for with success: as shared/member/insync.c
 * doubts it, or silent for longer than one that acknowledges each second is. That it is not reached from here
 * says nothing. */
static bool is_doubtful(const struct store_facts *facts, const struct node_fact *node)
{
    static const char *const doubts[] = {"no-aof", "aof-failed", "unsafe", "link-down", "not-a-replica"};

    for (unsigned i = 0; node->away != NULL && i < sizeof(doubts) / sizeof(doubts[0]); i++)
        if (strcmp(node->away, doubts[i]) == 0)
            return true;
    return node->lag_ms >= SILENT_MS ||
           (facts->unasked && node->away != NULL && strcmp(node->away, "rewriting") == 0);
}

/* Of who has gone the others wait for nobody; but the next may be one too many. */
static void find_copies(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    char names[FINDING_TEXT_SIZE] = "";
    int64_t well = 0;

    for (unsigned i = 0; i < facts->node_count; i++) {
        const struct node_fact *node = &facts->nodes[i];
        bool is_well = node->kept && (i == 0 || (node->online && !is_doubtful(facts, node)));

        well += is_well;
        if (!is_well && (node->kept || node->gone_ms >= 0))
            text_add(names, sizeof(names), "%s%s (%s)", names[0] != '\0' ? ", " : "", node->node,
                     node->away != NULL ? node->away : "not in step");
    }
    if (well < facts->copies)
        find(diagnosis, CLI_REFUSED,
             "Bring the nodes back that are away, or other replicas: they are taken in by themselves.",
             "what is answered must have %" PRId64 " copies, and there are nodes for %" PRId64
             ": nothing is answered (store-not-kept); away: %s",
             facts->copies, well, names);
    else if (names[0] != '\0')
        find(diagnosis, CLI_OK, "Bring them back, and they are taken in by themselves.",
             "away: %s; what is answered has %" PRId64 " copies, and must have %" PRId64, names, well,
             facts->copies);
}

static void find_settings(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    bool several = facts->ending > 1;

    if (facts->unsafe[0] != '\0')
        find(diagnosis, CLI_REFUSED,
             "Set it, also in Redis' configuration file; or run the services with --allow-unsafe-redis.",
             "this Redis can lose locks: %s; new grants are refused", facts->unsafe);
    if (facts->ending > 0)
        find(diagnosis, CLI_OK,
             "Take it away with PERSIST, and find out who did it; the services do so for stripes.",
             "%" PRId64 " key%s of ours %s a TTL, %s for one: somebody else has set it", facts->ending,
             several ? "s" : "", several ? "have" : "has", facts->ending_key);
}

/* Where sentinels watch, a majority of the registrars must hear each service all the time (shared/member/
 * lease.c); elsewhere only an admission waits for one. True: they are too few, and that is said. */
static bool find_registrars(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    bool is_watched = strncmp(facts->form, "sentinel", strlen("sentinel")) == 0;
    char names[FINDING_TEXT_SIZE] = "";
    int64_t heard = 0;

    for (EACH_MEMBER(member, facts)) {
        bool is_heard = member->live && !(is_watched && member->age_ms > SILENT_MS);

        heard += member->registrar && is_heard;
        if (member->registrar && !is_heard)
            name_add(names, member->id, member);
    }
    if (facts->gate[0] != '\0' || heard >= facts->majority || !store_facts_lease_lives(facts))
        return false;
    find(diagnosis, is_watched ? CLI_REFUSED : CLI_OK,
         "Start them; if too few of them exist any more: " FLOOR_HINT " --force.",
         "%" PRId64 " of %" PRId64 " registrars %s heard, and %" PRId64 " must be: %s%s", heard,
         facts->registrars, heard == 1 ? "is" : "are", facts->majority,
         is_watched ? "nothing is answered (store-not-admitted); missing are "
                    : "after the next restart of Redis nobody can admit the store: ",
         names);
    return true;
}

/* Who went away without a word is asked at the next admission, and cannot answer. Of lease services, when
 * none lives, more has been said already, and of registrars that are too few. */
static void find_gone(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    bool are_too_few = find_registrars(facts, diagnosis);
    char name[MEMBER_TEXT_BYTES];

    for (EACH_MEMBER(member, facts)) {
        struct store_finding *finding;

        if (facts->gate[0] != '\0' || member->live || state_is(member, "out") ||
            state_is(member, "forgotten") || (is_lease(member) && !store_facts_lease_lives(facts)) ||
            (are_too_few && member->registrar))
            continue;
        finding = find(diagnosis, CLI_OK,
                       member->registrar
                           ? "Start it, or, if it never comes back: pawl store registrar replace "
                           : "Start it, or, if it never comes back: pawl store forget ",
                       "gone without a word: %s; after the next restart of Redis %s",
                       store_diagnosis_name(name, member->id, member),
                       is_lease(member) && facts->majority == 0 ? "nobody can admit the store without it"
                                                                : "all holds end, since it cannot be asked");
        ADVISE(finding, "%s%s%s", member->id[0] == '-' ? "-- " : "", member->id, /* of an earlier release */
               member->registrar ? " OTHER" : "");
    }
}

/* All of them in one: what to do is the same. */
static void find_doubts(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    const struct doubt_fact *first = facts->doubts;
    bool several = facts->doubt_count > 1;

    if (facts->doubt_count == 0)
        return;
    ADVISE(
        find(diagnosis, CLI_OK, "",
             "ordered routes answer 503 in-doubt: the store has lost data, and %u incarnation%s of "
             "gateways, first of all %s of gateway %s, %s yet to say what %s had sent on",
             facts->doubt_count, several ? "s" : "", first->incarnation, first->gateway,
             several ? "have" : "has", several ? "they" : "it"),
        "One that runs tells the store by itself. One that is dead: pawl resolve --gateway %s --incarnation "
        "%s --dead; routes with a grace go on when that has passed, the others when you have seen that "
        "nothing it had sent is still on its way to an upstream, and say so: --dead --settled",
        first->gateway, first->incarnation);
}

static void find_routes(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    char name[MEMBER_TEXT_BYTES];

    for (EACH_MEMBER(member, facts)) {
        if (facts->routes[0] != '\0' && member->live && member->routes[0] != '\0' &&
            strcmp(member->routes, facts->routes) != 0)
            find(diagnosis, CLI_REFUSED,
                 "When all gateways have the right file: pawl routes adopt, at one that has it.",
                 "all that gateway %s forwards is answered 503 routes-differ: its table is %.12s, and the "
                 "gateways of this store have agreed on %.12s. Its file was changed and not adopted, or the "
                 "store was put back",
                 store_diagnosis_name(name, member->id, member), member->routes, facts->routes);
    }
    if (facts->marks_lost[0] != '\0')
        ADVISE(find(diagnosis, CLI_OK, "",
                    "what goes by the check mark of store \"%s\" is answered 503 marks-lost: this store "
                    "has lost which of its tokens had been let through",
                    facts->marks_lost),
               "Look at that one (pawl store status there), then here: pawl store marks --of %s --at "
               "EPOCH.TOKEN",
               facts->marks_lost);
}

/* -- the diagnosis */

void store_diagnosis_make(const struct store_facts *facts, struct store_diagnosis *diagnosis)
{
    memset(diagnosis, 0, sizeof(*diagnosis));
    if (facts->kind != FACT_STORE) {
        find_no_store(facts, diagnosis);
        find_settings(facts, diagnosis);
        return;
    }
    find_machine(facts, diagnosis);
    find_memory(facts, diagnosis);
    if (refuses_writes(facts)) {
        /* Nobody can say that it lives: of that nothing follows. */
        find(diagnosis, CLI_REFUSED, facts->refusal->todo,
             "%s; while that is so nobody can act, and no service can say that it lives",
             facts->refusal->what);
        find_settings(facts, diagnosis);
        return;
    }
    if (facts->gate[0] != '\0') {
        find_gate(facts, diagnosis);
    } else if (!store_facts_is_admitted(facts)) {
        find_not_gated(facts, diagnosis);
    } else {
        (store_facts_lease_lives(facts) ? find_ceiling : find_no_lease)(facts, diagnosis);
        find_pending(facts, diagnosis);
        find_copies(facts, diagnosis);
    }
    find_settings(facts, diagnosis);
    find_gone(facts, diagnosis);
    find_doubts(facts, diagnosis);
    find_routes(facts, diagnosis);
}

void store_diagnosis_quorum(const struct quorum_facts *facts, struct store_diagnosis *diagnosis)
{
    static const struct {
        const char *state, *todo;
    } remedies[] = {
        {"gone",
         "Start it, or mend what it says. If its machine is gone for good, give its name to an empty Redis."},
        {"quarantine", "Wait: a lease service ends it when the time is over and most nodes are well."},
        {"new", "If all are empty: pawl store init with the same --redis, in the same order."},
        {"not-ours", "Name the right nodes, in the order in which the store was made."},
    };
    char wait[PRINT_DURATION_SIZE];

    memset(diagnosis, 0, sizeof(*diagnosis));
    for (unsigned i = 0; i < facts->count; i++) {
        const struct quorum_fact *node = &facts->nodes[i];

        for (unsigned k = 0; k < sizeof(remedies) / sizeof(remedies[0]); k++) {
            if (strcmp(node->state, remedies[k].state) != 0)
                continue;
            find(diagnosis, CLI_OK, remedies[k].todo, "node %u, %s, is %s%s%s%s%s", i + 1, node->node,
                 node->state, node->for_ms >= 0 ? ", at least for another " : "",
                 node->for_ms >= 0 ? print_duration(wait, node->for_ms) : "",
                 node->why[0] != '\0' ? ": " : "", node->why);
        }
        if (node->refusal != NULL)
            find(diagnosis, CLI_OK, node->refusal->todo, "node %u, %s: %s", i + 1, node->node,
                 node->refusal->what);
    }
    if (facts->reached < facts->majority)
        find(diagnosis, CLI_UNREACHABLE, "Start them.", "only %u of %u nodes can be reached, and %u must be",
             facts->reached, facts->count, facts->majority);
    else if (facts->store[0] == '\0')
        find(diagnosis, CLI_CONFIG,
             "One that was here before: name all of its nodes in the order in which it was made. A new one: "
             "pawl store init with the same --redis.",
             "most of the nodes have no store, or not one and the same");
    else if (facts->well < facts->majority)
        find(diagnosis, CLI_REFUSED,
             "If this many are in quarantine, nobody is left who knows what they have lost: pawl store "
             "recover "
             "--floor N, with the same --redis.",
             "%u of %u nodes are well, and %u must be: nothing is granted", facts->well, facts->count,
             facts->majority);
    else if (facts->taking < facts->majority)
        find(diagnosis, CLI_REFUSED, "Mend what is said of each.",
             "%u of %u nodes are well and take writes, and %u must: nothing is granted", facts->taking,
             facts->count, facts->majority);
}
