/* store_recover_floor.c - pawl store recover --floor N: the operator knows a number that no token is above;
 * and
 * --new-id: the store becomes another one, which has granted nothing yet.
 *
 *   recover_floor     which store, and is it lost?      1 | 78, or go on
 *   floor_compare     N with all that is known          1 (the numbers), or go on
 *   floor_confirm     "yes"                             1 | 64, or go on
 *   floor_ask         run recover.lua
 *   floor_answer      say what came of it               0 | 1 | 78 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/store_recover.h"
#include "cli_scripts.h"
#include "shared/random.h"

enum { NUMBER_SIZE = 24, REASON_SIZE = MEMBER_TEXT_BYTES + 64 };

static int floor_identify(struct recover *r);
static int floor_compare(const struct recover *r);
static int floor_refuse_in_order(const struct recover *r);
static int floor_confirm(const struct recover *r);
static int floor_ask(struct recover *r);
static int floor_answer(struct store_ask *ask, const struct store_reply *reply);

int recover_floor(struct recover *r)
{
    int status = floor_identify(r);

    if (status == CLI_GO_ON && !r->new_id)
        status = floor_compare(r);
    if (status == CLI_GO_ON && !r->new_id)
        status = floor_refuse_in_order(r);
    if (status == CLI_GO_ON)
        status = floor_confirm(r);
    if (status == CLI_GO_ON)
        status = floor_ask(r);
    return status;
}

/* -- which store */

static int floor_identify(struct recover *r)
{
    const char *wanted = recover_wanted_id(r), *id = store_facts_id(&r->facts);

    if (r->facts.kind == FACT_ANOTHER || r->facts.kind == FACT_WRONG_KEY) {
        store_verdict_make(&r->facts, &r->verdict);
        cli_fail(CLI_CONFIG, "nothing was changed");
        store_show_findings(stderr, &r->verdict);
        return CLI_CONFIG;
    }
    if (r->new_id && r->facts.kind == FACT_EMPTY)
        return cli_fail(CLI_REFUSED, "this Redis is empty: there is no copy of a store; nothing was changed");
    if (r->facts.kind == FACT_EMPTY || wanted[0] == '\0' || strcmp(wanted, id) == 0)
        return CLI_GO_ON;
    if (r->store_id != NULL)
        return cli_fail(CLI_REFUSED, "this Redis has the store %s, not %s; nothing was changed", id, wanted);
    cli_fail(CLI_REFUSED, "this Redis has the store %s, but %s belongs to store %s; nothing was changed", id,
             r->facts.machine.path, wanted);
    cli_hint("Name the right Redis with --redis; if you mean this one: --store-id %s.", id);
    return CLI_REFUSED;
}

/* Whether this machine's state directory tells of the store that is recovered. */
static bool machine_counts(const struct recover *r)
{
    const char *id = r->facts.kind == FACT_EMPTY ? recover_wanted_id(r) : store_facts_id(&r->facts);

    return r->facts.machine.found == STATE_OPEN && strcmp(r->facts.machine.store, id) == 0;
}

/* -- N and all that is known */

struct comparison {
    int64_t floor, least;
};

/* Tells a number that N is below. */
static void compare(struct comparison *comparison, int64_t number, const char *who, const char *what)
{
    if (number <= comparison->floor)
        return;
    if (comparison->least == 0)
        cli_fail(CLI_REFUSED, "--floor %" PRId64 " is too low, and nothing was changed:", comparison->floor);
    cli_hint("%" PRId64 ": %s%s", number, what, who);
    comparison->least = number > comparison->least ? number : comparison->least;
}

static int floor_compare(const struct recover *r)
{
    struct comparison comparison = {r->floor, 0};
    const struct store_facts *facts = &r->facts;
    char name[MEMBER_TEXT_BYTES];

    compare(&comparison, facts->top, facts->top_stripe, "granted, says the counter of stripe ");
    compare(&comparison, facts->lease_top, facts->lease, "granted or let through, says the record of lease ");
    compare(&comparison, facts->ceiling, "", "reserved, says the store (ceiling)");
    for (unsigned i = 0; i < facts->member_count; i++) {
        store_verdict_name(name, facts->members[i].id, &facts->members[i]);
        compare(&comparison, facts->members[i].floor, name, "reserved, says the floor of ");
        compare(&comparison, facts->members[i].passed, name, "let through, said ");
    }
    if (machine_counts(r))
        compare(&comparison, facts->machine.floor, facts->machine.path,
                "reserved, says the state directory ");
    for (unsigned i = 0; i < r->seen_count; i++)
        compare(&comparison, r->seen[i].number, "", "seen, you say");
    if (comparison.least == 0)
        return CLI_GO_ON;
    cli_hint("N must be at least %" PRId64 ".", comparison.least);
    return CLI_REFUSED;
}

static int floor_refuse_in_order(const struct recover *r)
{
    if (!r->force && r->facts.asked == 2) {
        cli_fail(CLI_REFUSED,
                 "a lease service has every floor that it needs, and admits this store by itself; "
                 "nothing was changed");
        cli_hint("Look again in a few seconds: pawl store status.");
        return CLI_REFUSED;
    }
    if (r->force || !store_facts_lease_lives(&r->facts) || !store_facts_is_admitted(&r->facts))
        return CLI_GO_ON;
    cli_fail(CLI_REFUSED,
             "this store is in order: it is admitted, and a lease service is alive; nothing was changed");
    cli_hint("--force does it all the same: every hold would end.");
    return CLI_REFUSED;
}

/* -- sure? */

static void floor_warn(const struct recover *r)
{
    int64_t left = FACT_TOKEN_LAST - r->floor;

    if (!r->new_id && left < FACT_TOKEN_LAST / 10)
        fprintf(stderr, "pawl: only %" PRId64 " tokens will be left in each stripe\n", left);
    if (r->facts.machine.found == STATE_DAMAGED || r->facts.machine.found == STATE_FAILED) {
        fputs("pawl: not compared with this machine's state directory: ", stderr);
        print_safe(stderr, bytes_of(r->facts.machine.why));
        fputc('\n', stderr);
    }
    if (r->facts.unsafe[0] != '\0')
        fprintf(stderr, "pawl: this Redis can lose locks: %s\n", r->facts.unsafe);
}

static int floor_confirm(const struct recover *r)
{
    char answer[8] = "";

    floor_warn(r);
    if (r->yes)
        return CLI_GO_ON;
    if (!isatty(STDIN_FILENO))
        return cli_fail(CLI_USAGE, "every hold would end: say --yes, or do this in a terminal");
    if (r->new_id)
        printf(
            "Store %s becomes another store: every hold ends, and its services come anew, with empty state "
            "directories.\nType \"yes\" to go on: ",
            store_facts_id(&r->facts));
    else
        printf("Store %s begins a new life: every hold ends, tokens go on above %" PRId64
               ", all services come anew.\n"
               "If a token above %" PRId64 " was ever granted, it can come twice. Type \"yes\" to go on: ",
               r->facts.kind == FACT_EMPTY ? recover_wanted_id(r) : store_facts_id(&r->facts), r->floor,
               r->floor);
    fflush(stdout);
    if (fgets(answer, sizeof(answer), stdin) == NULL || strcmp(answer, "yes\n") != 0)
        return cli_fail(CLI_REFUSED, "nothing was changed");
    return CLI_GO_ON;
}

/* -- do it */

static int floor_ask(struct recover *r)
{
    char expected[RECOVER_IDENTITY_SIZE], fresh[RECOVER_IDENTITY_SIZE], floor[NUMBER_SIZE],
        epoch[NUMBER_SIZE];
    char id[STORE_ID_CHARS + 1];
    const char *wanted = recover_wanted_id(r);
    struct bytes argv[6] = {BYTES("pawl:{store}")};
    int status;

    random_text(id, STORE_ID_CHARS);
    recover_identity(expected, wanted);
    recover_identity(fresh, wanted[0] != '\0' && !r->new_id ? wanted : id);
    snprintf(floor, sizeof(floor), "%" PRId64, r->new_id ? r->facts.lease_top : r->floor);
    snprintf(epoch, sizeof(epoch), "%" PRId64, recover_epoch(r));
    argv[1] = bytes_of(wanted[0] != '\0' ? expected : "");
    argv[2] = bytes_of(fresh);
    argv[3] = bytes_of(floor);
    argv[4] = bytes_of(epoch);
    argv[5] = bytes_of(r->new_id ? "new-id" : r->force ? "force" : "");
    r->ask.take = floor_answer;
    status = store_desk_ask(&r->desk, &r->ask, &script_recover, 1, 6, argv);
    return status == CLI_OK ? (store_facts_persist(&r->desk) == CLI_GO_ON ? CLI_OK : CLI_UNREACHABLE)
                            : status;
}

static int floor_answer(struct store_ask *ask, const struct store_reply *reply)
{
    const struct recover *r = container_of(ask, struct recover, ask);
    struct bytes identity = store_reply_text(reply, 2);

    if (store_reply_is(reply, "recovered")) {
        printf("store %.*s is recovered: epoch %" PRId64 ", tokens go on above %" PRId64
               ", all holds have ended\n",
               (int)(identity.len - sizeof(KEYS_SCHEMA)), identity.at + sizeof(KEYS_SCHEMA),
               store_reply_integer(reply, 1), store_reply_integer(reply, 4));
        if (r->new_id)
            puts("Empty the state directories of its services before you start them.");
        puts("The first lease service that comes may join by itself; those that run do so within seconds.");
        return CLI_OK;
    }
    if (store_reply_is(reply, "too-low"))
        return cli_fail(CLI_REFUSED,
                        "--floor %" PRId64 " is too low by now: it must be at least %" PRId64
                        "; nothing was changed",
                        r->floor, store_reply_integer(reply, 1));
    if (store_reply_is(reply, "alive")) {
        cli_fail(CLI_REFUSED, "services are at work on this store; nothing was changed");
        cli_hint("Is it the copy? Stop all services of the copy, wait 10 s, and try again.");
        return CLI_REFUSED;
    }
    cli_fail(CLI_REFUSED, store_reply_is(reply, "in-order")
                              ? "the store is in order by now; nothing was changed"
                              : "another store is here by now; nothing was changed");
    cli_hint("pawl store status says more.");
    return CLI_REFUSED;
}
