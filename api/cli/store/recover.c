/* recover.c - pawl store recover: begin a new epoch of a store that has lost everything.
 *
 *   recover_read      flags                                     64 | 78, or go on
 *   store_inbox_open                                            69 | 78, or go on
 *   store_facts_read  all that is known                         69, or go on
 *   recover_empty     without --floor                           0 | 1 | 78
 *   recover_floor     with it, or --new-id                      0 | 1 | 78 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/store/store.h"
#include "scripts.h"
#include "shared/token/random.h"
#include "shared/token/token.h"

enum {
    RECOVER_SEEN_MAX = 64,
    RECOVER_IDENTITY_SIZE = STORE_ID_CHARS + sizeof(KEYS_SCHEMA ":"),
    WAIT_MS = 10000,
    GATE_CHARS = 16,
    LOOK_AGAIN_MS = 50
};

struct recover {
    struct store_inbox inbox;
    const char *store_id, *floor_text, *seen_text; /* NULL: not given */
    bool force, yes, new_id;
    uint64_t wait_ms;
    int64_t floor;                       /* 0: not given */
    struct token seen[RECOVER_SEEN_MAX]; /* epoch 0: not known */
    unsigned seen_count;
    struct store_facts facts;
    struct store_ask ask;
};

/* -- flags */

int64_t recover_token_number(struct bytes text)
{
    int64_t number = bytes_number(text, TOKEN_DIGITS_MAX);

    return number > 0 && text.at[0] != '0' ? number : 0;
}

static int seen_add(struct recover *r, const char *text)
{
    struct token_claim claim = {.token.number = recover_token_number(bytes_of(text))};
    struct bytes kid;

    if (claim.token.number == 0 && !token_read(bytes_of(text), &claim, &kid))
        return cli_fail(CLI_USAGE,
                        "--seen takes a token's number, or the whole value of a Fencing-Token header");
    if (r->seen_count == RECOVER_SEEN_MAX)
        return cli_fail(CLI_USAGE, "--seen can be given %d times: name the highest", RECOVER_SEEN_MAX);
    r->seen[r->seen_count++] = claim.token;
    return CLI_GO_ON;
}

/* A flag that is given again replaces its value (flags.h); of this one every value counts. */
static int seen_collect(struct recover *r, const struct option *flags, int argc, char **argv)
{
    struct options_line line = {.table = flags, .argv = argv, .argc = argc, .at = 1};
    enum options_word found;
    int status = CLI_GO_ON;

    while (status == CLI_GO_ON && (found = options_word(&line)) != WORD_END)
        if (found == WORD_FLAG && strcmp(line.option->name, "seen") == 0)
            status = seen_add(r, line.value);
    return status;
}

static int recover_check(struct recover *r)
{
    r->floor = recover_token_number(bytes_of(r->floor_text));
    if (r->floor_text != NULL && r->floor == 0)
        return cli_fail(CLI_USAGE, "--floor is a whole number from 1 to %" PRId64, (int64_t)TOKEN_NUMBER_MAX);
    if (r->new_id && (r->floor_text != NULL || r->seen_count > 0 || r->force))
        return cli_fail(CLI_USAGE, "--new-id finds the floor itself, and nothing forces it: give it alone");
    if (r->floor_text == NULL && (r->seen_count > 0 || r->force))
        return cli_fail(CLI_USAGE, "--seen and --force go with --floor N; see pawl store recover --help");
    if (r->store_id != NULL && !token_is_store(bytes_of(r->store_id)))
        return cli_fail(CLI_USAGE, "--store-id is %d characters of A-Z a-z 0-9 _ -", (int)STORE_ID_CHARS);
    return CLI_GO_ON;
}

static int recover_read(struct recover *r, int argc, char **argv)
{
    const struct option flags[] = {
        STORE_INBOX_ROWS(&r->inbox),
        FLAG_TEXT("floor", "N", "no token above N was ever granted", &r->floor_text),
        FLAG_TEXT("seen", "TOKEN", "a token that was; repeatable; N must not be below", &r->seen_text),
        FLAG_TEXT("store-id", "ID", "of the store (default: as the state directory says)", &r->store_id),
        FLAG_MS("wait", "DUR", "without --floor: for the lease services (default 10s)", &r->wait_ms),
        FLAG_ON("new-id", "this is a copy: make it another store", &r->new_id),
        FLAG_ON("force", "also a store that is in order", &r->force),
        FLAG_ON("yes", "do not ask", &r->yes),
        {0},
    };
    int status = seen_collect(r, flags, argc, argv);

    if (status == CLI_GO_ON)
        status = flags_read("store recover", flags, argc, argv, NULL);
    if (status == CLI_GO_ON)
        status = store_inbox_collect(&r->inbox, flags, argc, argv);
    return status == CLI_GO_ON ? recover_check(r) : status;
}

/* -- in common */

/* The id that the store must have: as the flag says, else as this machine's state directory does; "": any. */
static const char *recover_wanted_id(const struct recover *r)
{
    if (r->store_id != NULL)
        return r->store_id;
    return r->facts.machine.found == STATE_OPEN ? r->facts.machine.store : "";
}

/* Not below any epoch that this machine has heard of, nor below the Unix time in seconds: a store that is
 * lost with everything around it does not begin again below the tokens of its former epoch. */
static int64_t recover_epoch(const struct recover *r)
{
    int64_t epoch = (int64_t)time(NULL);

    epoch = r->facts.machine.epoch > epoch ? r->facts.machine.epoch : epoch;
    epoch = r->facts.lease_epoch > epoch ? r->facts.lease_epoch : epoch;
    for (unsigned i = 0; i < r->seen_count; i++)
        epoch = r->seen[i].epoch > epoch ? r->seen[i].epoch : epoch;
    return epoch;
}

static void recover_say_floor(void)
{
    cli_hint("N must not be below any token that this store ever granted. Look for the highest one in the "
             "logs of");
    cli_hint(
        "the services and of the clients, in what clients hold, in the protected resources and what they");
    cli_hint(
        "remember, in backups, in pawl get NAME. A generous N costs nothing but numbers: there are 10^15.");
    cli_hint("--seen TOKEN compares N with tokens that you have found.");
}

/* -- Redis is empty, and the lease services still know their floors: the store is made anew, gated; they
 * report to it and admit it by themselves */

static int empty_refuse(struct recover *r)
{
    struct store_diagnosis diagnosis;

    store_diagnosis_make(&r->facts, &diagnosis);
    if (diagnosis.status == CLI_CONFIG)
        return store_refuse(&r->facts, CLI_CONFIG, "nothing was changed");
    if (store_facts_is_admitted(&r->facts))
        return store_refuse(&r->facts, CLI_REFUSED,
                            "this store is not lost, and nothing was changed; what is known of it:");
    store_refuse(&r->facts, CLI_REFUSED,
                 "this Redis is not empty, and nothing was changed: what is left of the store decides");
    cli_hint("With --floor N a new epoch can be begun by your word:");
    recover_say_floor();
    return CLI_REFUSED;
}

static int empty_made(struct store_ask *ask, const struct store_reply *reply)
{
    (void)ask;
    if (store_reply_is(reply, "made"))
        return CLI_GO_ON;
    return cli_refuse(CLI_REFUSED, "pawl store status says more.",
                      "there is a store by now, and nothing was changed");
}

static int empty_make(struct recover *r)
{
    char identity[RECOVER_IDENTITY_SIZE], epoch[PRINT_NUMBER_SIZE], gate[GATE_CHARS + 1];
    int status;

    snprintf(identity, sizeof(identity), KEYS_SCHEMA ":%s", recover_wanted_id(r));
    random_text(gate, GATE_CHARS);
    r->ask.take = empty_made;
    status = store_inbox_ask(&r->inbox, &r->ask, &script_skeleton, 1, 4,
                             (const struct bytes[]){BYTES("pawl:{store}"), bytes_of(identity),
                                                    print_number(epoch, recover_epoch(r)), bytes_of(gate)});
    if (status == CLI_GO_ON)
        printf("store %s is made anew, and gated until the lease services have told their floors\n",
               recover_wanted_id(r));
    return status;
}

int recover_wait(struct store_inbox *inbox, struct store_facts *facts, uint64_t wait_ms)
{
    uint64_t deadline_ms = loop_now_ms() + wait_ms;
    int status = store_facts_refresh(inbox, facts);

    fflush(stdout);
    while (status == CLI_GO_ON && !store_facts_is_admitted(facts) && loop_now_ms() < deadline_ms) {
        loop_turn(inbox->loop, LOOK_AGAIN_MS);
        status = store_facts_refresh(inbox, facts);
    }
    return status;
}

static int empty_wait(struct recover *r)
{
    char sentence[FACT_TEXT_SIZE];
    int status = recover_wait(&r->inbox, &r->facts, r->wait_ms);

    if (status != CLI_GO_ON)
        return status;
    if (store_facts_is_admitted(&r->facts)) {
        printf("store %s is admitted: epoch %" PRId64 ", tokens go on above %" PRId64 "\n",
               store_facts_id(&r->facts), r->facts.epoch, r->facts.top);
        return CLI_OK;
    }
    snprintf(sentence, sizeof(sentence), "store %s is not admitted yet", store_facts_id(&r->facts));
    store_refuse(&r->facts, CLI_REFUSED, sentence);
    cli_hint("It will be as soon as they have come; this command need not be given again.");
    return CLI_REFUSED;
}

static int recover_empty(struct recover *r)
{
    const char *wanted = recover_wanted_id(r);
    bool here = r->facts.kind == FACT_STORE && r->facts.gate[0] != '\0' && strcmp(r->facts.why, "empty") == 0;
    int status = CLI_GO_ON;

    if (r->facts.kind != FACT_EMPTY && !here)
        return empty_refuse(r);
    if (!here && wanted[0] == '\0') {
        cli_fail(CLI_REFUSED, "which store is it? No state directory of this machine says so%s%s",
                 r->facts.machine.path[0] != '\0' ? ": " : "", r->facts.machine.path);
        cli_hint("Do this on the machine of a lease service, name its directory with --state-dir, or give "
                 "the id with");
        cli_hint("--store-id. If all state directories are lost: pawl store recover --floor N.");
        recover_say_floor();
        return CLI_REFUSED;
    }
    if (!here || (wanted[0] != '\0' && strcmp(wanted, store_facts_id(&r->facts)) != 0))
        status = empty_make(r);
    return status == CLI_GO_ON ? empty_wait(r) : status;
}

/* -- the operator knows a number that no token is above; or the store becomes another one, which has granted
 * nothing yet */

/* -- which store */

static int floor_identify(struct recover *r)
{
    const char *wanted = recover_wanted_id(r), *id = store_facts_id(&r->facts);

    if (r->facts.kind == FACT_ANOTHER || r->facts.kind == FACT_WRONG_KEY)
        return store_refuse(&r->facts, CLI_CONFIG, "nothing was changed");
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
    const char *id = facts->kind == FACT_EMPTY ? recover_wanted_id(r) : store_facts_id(facts);
    char name[MEMBER_TEXT_BYTES];

    compare(&comparison, facts->top, facts->top_stripe, "granted, says the counter of stripe ");
    compare(&comparison, facts->lease_top, facts->lease, "granted or let through, says the record of lease ");
    compare(&comparison, facts->ceiling, "", "reserved, says the store (ceiling)");
    for (unsigned i = 0; i < facts->member_count; i++) {
        store_diagnosis_name(name, facts->members[i].id, &facts->members[i]);
        compare(&comparison, facts->members[i].floor, name, "reserved, says the floor of ");
        compare(&comparison, facts->members[i].passed, name, "let through, said ");
    }
    if (facts->machine.found == STATE_OPEN && strcmp(facts->machine.store, id) == 0)
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
    if (!r->force && r->facts.asked == 2)
        return cli_refuse(CLI_REFUSED, "Look again in a few seconds: pawl store status.",
                          "a lease service has every floor that it needs, and admits this store by itself; "
                          "nothing was changed");
    if (r->force || !store_facts_lease_lives(&r->facts) || !store_facts_is_admitted(&r->facts))
        return CLI_GO_ON;
    return cli_refuse(
        CLI_REFUSED, "--force does it all the same: every hold would end.",
        "this store is in order: it is admitted, and a lease service is alive; nothing was changed");
}

/* -- sure? */

static void floor_warn(const struct recover *r)
{
    int64_t left = TOKEN_NUMBER_MAX - r->floor;

    if (!r->new_id && left < TOKEN_NUMBER_MAX / 10)
        cli_fail(CLI_OK, "only %" PRId64 " tokens will be left in each stripe", left);
    if (r->facts.machine.found == STATE_DAMAGED || r->facts.machine.found == STATE_FAILED)
        cli_fail(CLI_OK, "not compared with this machine's state directory: %s", r->facts.machine.why);
    if (r->facts.outside)
        cli_fail(CLI_OK,
                 "this Redis is not in the in-sync set, or has copied one that is not: what was answered "
                 "and is not here is lost, though a node of the set may have it (pawl store status)");
    if (r->facts.unsafe[0] != '\0')
        cli_fail(CLI_OK, "this Redis can lose locks: %s", r->facts.unsafe);
}

static int floor_confirm(const struct recover *r)
{
    floor_warn(r);
    if (r->yes)
        return CLI_GO_ON;
    if (!isatty(STDIN_FILENO))
        return cli_fail(CLI_USAGE, "every hold would end: say --yes, or do this in a terminal");
    if (r->inbox.count > 1)
        printf("Tokens of this quorum go on above %" PRId64
               ". If a token above it was ever granted, it can come twice. ",
               r->floor);
    else if (r->new_id)
        printf("Store %s becomes another store: every hold ends, and its services come anew, with empty "
               "state directories.\n",
               store_facts_id(&r->facts));
    else
        printf("Store %s begins a new epoch: every hold ends, tokens go on above %" PRId64
               ", all services come anew.\n"
               "If a token above %" PRId64 " was ever granted, it can come twice. ",
               r->facts.kind == FACT_EMPTY ? recover_wanted_id(r) : store_facts_id(&r->facts), r->floor,
               r->floor);
    return cli_confirm("yes");
}

/* -- do it */

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
    if (store_reply_is(reply, "alive"))
        return cli_refuse(CLI_REFUSED,
                          "Is it the copy? Stop all services of the copy, wait 10 s, and try again.",
                          "services are at work on this store; nothing was changed");
    return cli_refuse(CLI_REFUSED, "pawl store status says more.",
                      store_reply_is(reply, "in-order")
                          ? "the store is in order by now; nothing was changed"
                          : "another store is here by now; nothing was changed");
}

static int floor_ask(struct recover *r)
{
    char expected[RECOVER_IDENTITY_SIZE], fresh[RECOVER_IDENTITY_SIZE], id[STORE_ID_CHARS + 1];
    char floor[PRINT_NUMBER_SIZE], epoch[PRINT_NUMBER_SIZE];
    const char *wanted = recover_wanted_id(r);
    int status;

    random_text(id, STORE_ID_CHARS);
    snprintf(expected, sizeof(expected), "%s%s", wanted[0] != '\0' ? KEYS_SCHEMA ":" : "", wanted);
    snprintf(fresh, sizeof(fresh), KEYS_SCHEMA ":%s", wanted[0] != '\0' && !r->new_id ? wanted : id);
    r->ask.take = floor_answer;
    status = store_inbox_ask(
        &r->inbox, &r->ask, &script_recover, 1, 6,
        (const struct bytes[]){BYTES("pawl:{store}"), bytes_of(expected), bytes_of(fresh),
                               print_number(floor, r->new_id ? r->facts.lease_top : r->floor),
                               print_number(epoch, recover_epoch(r)),
                               bytes_of(r->new_id  ? "new-id"
                                        : r->force ? "force"
                                                   : "")});
    return status == CLI_OK ? (store_facts_persist(&r->inbox) == CLI_GO_ON ? CLI_OK : CLI_UNREACHABLE)
                            : status;
}

static int recover_floor(struct recover *r)
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

/* -- a quorum, of which most nodes have lost their data: pawl-lease ends it, which knows how */

static int recover_quorum(const struct recover *r, int argc, char **argv)
{
    int kept = 0, status;

    if (r->floor == 0 || r->seen_count > 0 || r->store_id != NULL || r->new_id || r->force ||
        r->wait_ms != WAIT_MS)
        return cli_fail(CLI_USAGE, "of a quorum it is pawl store recover --floor N, and nothing beside it");
    status = floor_confirm(r);
    if (status != CLI_GO_ON)
        return status;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--yes") != 0)
            argv[kept++] = argv[i];
    argv[kept] = NULL;
    return cli_store_exec_lease(argv, kept);
}

/* -- all of it */

int cli_store_recover(int argc, char **argv)
{
    struct recover r = {.wait_ms = WAIT_MS};
    int status = recover_read(&r, argc, argv);

    if (status == CLI_GO_ON && r.inbox.count > 1)
        return recover_quorum(&r, argc, argv);
    if (status == CLI_GO_ON)
        status = store_inbox_open(&r.inbox);
    if (status == CLI_GO_ON)
        status = store_facts_read(&r.inbox, &r.facts);
    if (status == CLI_GO_ON)
        status = r.floor > 0 || r.new_id ? recover_floor(&r) : recover_empty(&r);
    store_facts_done(&r.facts);
    store_inbox_close(&r.inbox);
    return status;
}
