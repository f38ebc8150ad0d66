/* store_recover_empty.c - pawl store recover without --floor: Redis is empty, and lease services still know
 * their floors. The store is made anew, gated; they report to it and admit it by themselves.
 *
 *   recover_empty   is it empty?               1 (what blocks) | 78, or go on
 *   empty_make      run skeleton.lua           1 | 69, or go on
 *   empty_wait      until it is admitted       0 | 1 (who is missing) */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/store_recover.h"
#include "cli_scripts.h"
#include "shared/random.h"

enum { GATE_CHARS = 16, LOOK_AGAIN_MS = 50, NUMBER_SIZE = 24 };

static int empty_make(struct recover *r);
static int empty_wait(struct recover *r);

static bool is_skeleton(const struct store_facts *facts)
{
    return facts->kind == FACT_STORE && facts->gate[0] != '\0' && strcmp(facts->why, "empty") == 0;
}

static int empty_refuse(struct recover *r)
{
    store_verdict_make(&r->facts, &r->verdict);
    if (r->verdict.status == CLI_CONFIG) {
        cli_fail(CLI_CONFIG, "nothing was changed");
    } else if (store_facts_is_admitted(&r->facts)) {
        cli_fail(CLI_REFUSED, "this store is not lost, and nothing was changed; what is known of it:");
    } else {
        cli_fail(CLI_REFUSED,
                 "this Redis is not empty, and nothing was changed: what is left of the store decides");
    }
    store_show_findings(stderr, &r->verdict);
    if (r->verdict.status != CLI_CONFIG && !store_facts_is_admitted(&r->facts)) {
        cli_hint("With --floor N a new life can be begun by your word:");
        recover_say_floor();
    }
    return r->verdict.status == CLI_CONFIG ? CLI_CONFIG : CLI_REFUSED;
}

int recover_empty(struct recover *r)
{
    const char *wanted = recover_wanted_id(r);
    bool here = is_skeleton(&r->facts);
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

static int empty_made(struct store_ask *ask, const struct store_reply *reply)
{
    (void)ask;
    if (store_reply_is(reply, "made"))
        return CLI_GO_ON;
    cli_fail(CLI_REFUSED, "there is a store by now, and nothing was changed");
    cli_hint("pawl store status says more.");
    return CLI_REFUSED;
}

static int empty_make(struct recover *r)
{
    char identity[RECOVER_IDENTITY_SIZE], epoch[NUMBER_SIZE], gate[GATE_CHARS + 1];
    struct bytes argv[4] = {BYTES("pawl:{store}")};
    int status;

    recover_identity(identity, recover_wanted_id(r));
    snprintf(epoch, sizeof(epoch), "%" PRId64, recover_epoch(r));
    random_text(gate, GATE_CHARS);
    argv[1] = bytes_of(identity);
    argv[2] = bytes_of(epoch);
    argv[3] = bytes_of(gate);
    r->ask.take = empty_made;
    status = store_desk_ask(&r->desk, &r->ask, &script_skeleton, 1, 4, argv);
    if (status == CLI_GO_ON)
        printf("store %s is made anew, and gated until the lease services have told their floors\n",
               recover_wanted_id(r));
    return status;
}

static int empty_wait(struct recover *r)
{
    uint64_t deadline_ms = cli_now_ms() + r->wait_ms;
    int status = store_facts_refresh(&r->desk, &r->facts);

    fflush(stdout);
    while (status == CLI_GO_ON && !store_facts_is_admitted(&r->facts) && cli_now_ms() < deadline_ms) {
        loop_turn(r->desk.loop, LOOK_AGAIN_MS);
        status = store_facts_refresh(&r->desk, &r->facts);
    }
    if (status != CLI_GO_ON)
        return status;
    if (store_facts_is_admitted(&r->facts)) {
        printf("store %s is admitted: epoch %" PRId64 ", tokens go on above %" PRId64 "\n",
               store_facts_id(&r->facts), r->facts.epoch, r->facts.top);
        return CLI_OK;
    }
    store_verdict_make(&r->facts, &r->verdict);
    cli_fail(CLI_REFUSED, "store %s is not admitted yet", store_facts_id(&r->facts));
    store_show_findings(stderr, &r->verdict);
    cli_hint("It will be as soon as they have come; this command need not be given again.");
    return CLI_REFUSED;
}
