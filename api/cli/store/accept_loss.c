/* accept_loss.c - pawl store accept-loss: by an operator's word a node that is behind the in-sync set is the
 * store.
 *
 *   loss_read        flags                                                  64, or go on
 *   store_inbox_open                                                        69 | 78, or go on
 *   loss_ask         what is lost by it, as far as anybody knows            1 | 69 | 78, or go on
 *   cli_confirm      the name of the node, typed again                      1, or go on
 *   loss_ask         the order, of that very loss, into the node            1 | 69, or go on
 *   loss_wait        until the lease services have admitted it              0 | 1 | 69 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/store/store.h"
#include "scripts.h"

enum { WAIT_MS = 10000, LOSS_SIZE = 128 + STORE_NODES_MAX * (STORE_NODE_MAX + STORE_RUN_ID_LEN + 2) };

struct loss {
    struct store_inbox inbox;
    struct store_facts facts;
    struct store_ask ask;
    const char *node;
    bool yes;
    uint64_t wait_ms;
    char what[LOSS_SIZE]; /* as the script names it; "": not looked for yet */
};

/* -- flags */

static int loss_read(struct loss *l, int argc, char **argv)
{
    const struct option flags[] = {
        STORE_INBOX_ROWS(&l->inbox),
        FLAG_MS("wait", "DUR", "for the lease services (default 10s)", &l->wait_ms),
        FLAG_ON("yes", "do not ask", &l->yes),
        {0},
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read("store accept-loss", flags, argc, argv, arguments);

    if (status == CLI_GO_ON)
        status = store_inbox_collect_one(&l->inbox, "store accept-loss", flags, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    l->node = arguments[0];
    if (!l->yes && !isatty(STDIN_FILENO))
        return cli_fail(CLI_USAGE, "what was answered is lost by this: say --yes, or do it on a terminal");
    return CLI_GO_ON;
}

/* -- what is lost */

static void loss_show(const struct loss *l, struct bytes nodes, int64_t missing)
{
    bytes_cut(&nodes, ' ');
    printf("%s is behind the in-sync set: ", l->node);
    print_safe(stdout, nodes);
    if (missing < 0)
        puts("\nIt lacks all that was done in a later epoch.");
    else
        printf("\nIt lacks %" PRId64 " changes that services have seen, and perhaps more.\n", missing);
    puts("All holds end; tokens go on above all that were granted.");
}

static int loss_answer(struct store_ask *ask, const struct store_reply *reply)
{
    struct loss *l = container_of(ask, struct loss, ask);
    struct bytes what = store_reply_text(reply, 1);

    if (store_reply_is(reply, "behind")) {
        snprintf(l->what, sizeof(l->what), "%.*s", (int)what.len, what.at);
        loss_show(l, store_reply_text(reply, 2), store_reply_integer(reply, 3));
        return CLI_GO_ON;
    }
    if (store_reply_is(reply, "ordered"))
        return CLI_GO_ON;
    if (store_reply_is(reply, "primary"))
        return cli_fail(CLI_REFUSED, "%s is not the primary, that is %.*s; nothing was changed", l->node,
                        (int)what.len, what.at);
    if (store_reply_is(reply, "in-step"))
        return cli_fail(CLI_REFUSED, "the primary was not found to be behind; nothing was changed");
    if (store_reply_is(reply, "moved"))
        return cli_fail(CLI_REFUSED, "what would be lost is something else by now; nothing was changed");
    return cli_fail(CLI_CONFIG, "here is no store that this release knows; nothing was changed");
}

/* Looks for it, and orders what was found. */
static int loss_ask(struct loss *l)
{
    char what[LOSS_SIZE];

    memcpy(what, l->what, sizeof(what));
    l->ask = (struct store_ask){.take = loss_answer, .reads = what[0] == '\0'};
    return store_inbox_ask(&l->inbox, &l->ask, &script_accept_loss, 1, 3,
                           (const struct bytes[]){BYTES("pawl:{store}"), bytes_of(l->node), bytes_of(what)});
}

/* -- until it is admitted */

static int loss_wait(struct loss *l)
{
    struct store_diagnosis diagnosis;
    int status = recover_wait(&l->inbox, &l->facts, l->wait_ms);

    if (status != CLI_GO_ON)
        return status;
    if (store_facts_is_admitted(&l->facts) && strcmp(l->facts.how, "accepted") == 0) {
        printf("%s is the store: epoch %" PRId64 ", tokens go on above %" PRId64 ", all holds have ended\n",
               l->node, l->facts.epoch, l->facts.top);
        return CLI_OK;
    }
    if (store_facts_is_admitted(&l->facts))
        return cli_fail(CLI_REFUSED, "the store was admitted, but not by this word (%s)", l->facts.how);
    store_diagnosis_make(&l->facts, &diagnosis);
    cli_fail(CLI_REFUSED, "%s is not admitted yet", l->node);
    store_show_findings(stderr, &diagnosis);
    cli_hint(
        "It will be when they have come; if another one of the set has been heard of since, look again.");
    return CLI_REFUSED;
}

/* -- all of it */

int cli_store_accept_loss(int argc, char **argv)
{
    struct loss l = {.wait_ms = WAIT_MS};
    int status = loss_read(&l, argc, argv);

    if (status == CLI_GO_ON)
        status = store_inbox_open(&l.inbox);
    if (status == CLI_GO_ON)
        status = loss_ask(&l);
    if (status == CLI_GO_ON && !l.yes)
        status = cli_confirm(l.node);
    if (status == CLI_GO_ON)
        status = loss_ask(&l);
    if (status == CLI_GO_ON)
        status = loss_wait(&l);
    store_facts_done(&l.facts);
    store_inbox_close(&l.inbox);
    return status;
}
