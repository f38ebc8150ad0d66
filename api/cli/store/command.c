/* command.c - pawl store status|forget|registrar|node|marks|history|accept-loss, each of which asks the store
 * itself, and failover (failover.c); init, which is pawl-lease's; and which command of pawl store is meant.
 *
 *   verb_run         flags                       64, or go on
 *   ..._check        what they say               64, or go on
 *   store_inbox_open                             69 | 78, or go on
 *   store_inbox_ask  run the script              69, or go on
 *   ..._answer       say what came of it         0 | 1 | 78, or go on
 *   then             what follows it             0 | 1 | 69 | 78 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/child.h"
#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/store/store.h"
#include "scripts.h"
#include "shared/token/token.h"

enum {
    WAIT_MS = 10000,
    FAILOVER_WAIT_MS = 30000,
    AGAIN_MS = 100,
    LOSS_SIZE = 128 + STORE_NODES_MAX * (STORE_NODE_MAX + STORE_RUN_ID_LEN + 2)
};

/* What the flags and the argument said, of all of them. */
struct asking {
    struct store_inbox inbox;
    enum output output;
    struct store_ask ask;
    struct bytes argv[5]; /* of its script */
    unsigned argc;
    const char
        *word; /* of forget, the member; of history, the mode, "": it is only said; of registrar, the deed */
    const char *id, *by;           /* of registrar; by: of replace, who takes the place of the id, else "" */
    uint64_t wait_ms, deadline_ms; /* of that; deadline_ms 0: it is yet to be added */
    const char *of, *at;           /* of marks, as force */
    bool force;
    const char *to;       /* of failover */
    bool yes;             /* of accept-loss */
    char loss[LOSS_SIZE]; /* of that, as the script names it */
};

/* -- status */

static int status_ask(struct asking *s)
{
    struct store_facts facts = {0};
    struct store_diagnosis diagnosis;
    int status = store_facts_read(&s->inbox, &facts);

    if (status == CLI_GO_ON) {
        store_nodes_ask(&s->inbox, &facts);
        store_diagnosis_make(&facts, &diagnosis);
        status = diagnosis.status;
        (s->output == OUTPUT_JSON ? store_show_json : store_show_text)(&facts, &diagnosis);
    }
    store_facts_done(&facts);
    return status;
}

static int status_of_quorum(struct asking *s)
{
    struct quorum_facts facts;
    struct store_diagnosis diagnosis;
    int status = store_quorum_read(&s->inbox, &facts);

    if (status != CLI_GO_ON)
        return status;
    store_diagnosis_quorum(&facts, &diagnosis);
    store_show_quorum(&facts, &diagnosis, s->output);
    return diagnosis.status;
}

static int no_store_known(const struct store_reply *reply)
{
    return cli_refuse(CLI_CONFIG, "pawl store status says more.", "%s; nothing was changed",
                      store_reply_is(reply, "empty") ? "this Redis has no store"
                                                     : "what is here is no store that this release knows");
}

struct refusal {
    const char *word, *what, *todo;
};

static int refuse(const struct refusal *refusals, size_t count, const char *id, const char *deed,
                  const struct store_reply *reply)
{
    if (store_reply_is(reply, "empty") || store_reply_is(reply, "another"))
        return no_store_known(reply);
    for (size_t i = 0; i < count; i++)
        if (store_reply_is(reply, refusals[i].word))
            return cli_refuse(CLI_REFUSED, refusals[i].todo, "%s was not %s: %s", id, deed, refusals[i].what);
    return cli_fail(CLI_BUG, "the script gave an answer that this program does not know");
}

/* -- forget: a member that is gone for good is not waited for any more */

static int forget_refuse(const struct asking *f, const struct store_reply *reply)
{
    static const struct refusal refusals[] = {
        {"unknown", "there is no such member", "pawl store status lists them."},
        {"already", "this member is forgotten already", "Its record goes at the next admission."},
        {"gated", "the store is gated, and what this member knows may be needed to admit it",
         "pawl store status says whom it waits for; if that one is lost for good: pawl store recover --floor "
         "N."},
        {"registrar",
         "it is a registrar: a majority of them must be heard, and which they are does not change by "
         "forgetting one",
         "Start it, or replace it: pawl store registrar replace ID OTHER; only when no majority is left: "
         "pawl store recover --floor N."},
        {"open", "it is a gateway that had writes under way, and nobody else says how they ended",
         "Start it again with its state directory, or, if it is dead, first: pawl resolve --gateway ID "
         "--dead"},
        {"last",
         "no other lease service is alive whose floor is as high: this one's floor is the only proof of what "
         "was granted",
         "Start another lease service first; if none can come: pawl store recover --floor N."},
    };

    return refuse(refusals, sizeof(refusals) / sizeof(refusals[0]), f->word, "forgotten", reply);
}

static int forget_answer(struct store_ask *ask, const struct store_reply *reply)
{
    const struct asking *f = container_of(ask, struct asking, ask);
    char age[PRINT_DURATION_SIZE];

    if (store_reply_is(reply, "forgotten")) {
        printf("%s is forgotten (", f->word);
        print_safe(stdout, store_reply_text(reply, 2));
        puts("): the next admission does not wait for it");
        return CLI_OK;
    }
    if (store_reply_is(reply, "fresh"))
        return cli_refuse(CLI_REFUSED, "Stop it: with SIGTERM it leaves by itself.",
                          "%s was not forgotten: it lives, its last heartbeat came %s ago", f->word,
                          print_duration(age, store_reply_integer(reply, 1)));
    return forget_refuse(f, reply);
}

/* -- marks: since this store has lost the marks of another one's tokens, an operator names a token of that
 * one below which nothing is let through */

static int marks_check(struct asking *m)
{
    struct bytes token = bytes_of(m->at), epoch = bytes_cut(&token, '.');

    if (m->of == NULL || m->at == NULL)
        return cli_fail(CLI_USAGE, "--of STORE and --at EPOCH.TOKEN are needed; see pawl store marks --help");
    if (!token_is_store(bytes_of(m->of)))
        return cli_fail(CLI_USAGE, "--of is %d characters of A-Z a-z 0-9 _ -", TOKEN_STORE_CHARS);
    if (recover_token_number(epoch) == 0 || recover_token_number(token) == 0)
        return cli_fail(CLI_USAGE, "--at is an epoch, a dot, and a token's number");
    m->argv[1] = bytes_of(m->of);
    m->argv[2] = epoch;
    m->argv[3] = token;
    m->argv[4] = bytes_of(m->force ? "force" : "");
    m->argc = 5;
    return CLI_GO_ON;
}

static int marks_answer(struct store_ask *ask, const struct store_reply *reply)
{
    const struct asking *m = container_of(ask, struct asking, ask);

    if (store_reply_is(reply, "named")) {
        printf("of store %s nothing below token %.*s of epoch %.*s is let through\n", m->of,
               (int)m->argv[3].len, m->argv[3].at, (int)m->argv[2].len, m->argv[2].at);
        return CLI_OK;
    }
    if (store_reply_is(reply, "not-lost"))
        return cli_fail(CLI_REFUSED, "this store has lost no marks; nothing was changed");
    if (store_reply_is(reply, "own"))
        return cli_fail(
            CLI_REFUSED,
            "%s is this very store: for its own tokens its epoch is the mark; nothing was changed", m->of);
    if (store_reply_is(reply, "lower"))
        return cli_refuse(CLI_REFUSED, "--force lowers it: what is below is let in again.",
                          "token %" PRId64 " of epoch %" PRId64 " was named before; nothing was changed",
                          store_reply_integer(reply, 2), store_reply_integer(reply, 1));
    return no_store_known(reply);
}

/* -- registrar: one more, or one less; or both */

static int registrar_check(struct asking *r)
{
    bool replaces = strcmp(r->word, "replace") == 0;

    if (!replaces && strcmp(r->word, "add") != 0 && strcmp(r->word, "remove") != 0)
        return cli_fail(CLI_USAGE, "\"%s\" is neither add nor remove nor replace", r->word);
    if (replaces != (r->by[0] != '\0'))
        return cli_fail(CLI_USAGE, "%s takes %s", r->word,
                        replaces ? "two registrars, ID and NEW" : "one ID");
    if (strcmp(r->id, r->by) == 0)
        return cli_fail(CLI_USAGE, "ID and NEW are the same");
    r->argv[2] = bytes_of(r->id);
    r->argc = 3;
    if (replaces) {
        r->argv[1] = BYTES("add");
        r->argv[2] = bytes_of(r->by);
        r->argv[r->argc++] = bytes_of(r->id);
    }
    return CLI_GO_ON;
}

static int registrar_answer(struct store_ask *ask, const struct store_reply *reply)
{
    static const struct refusal refusals[] = {
        {"none", "no majority of registrars counts in this store",
         "It is said when a store is made: pawl store init --registrars 3."},
        {"gated", "the store is gated", "pawl store status says whom it waits for."},
        {"already", "it is a registrar already, or none", "pawl store status lists them."},
        {"other", "the one whose place it is to take is no registrar", "pawl store status lists them."},
        {"unknown", "no lease service with this id is in", "pawl store status lists them."},
        {"last", "it is the only one", "Add another one first."},
        {"full", "there are 6 already", "Remove another one first."},
        {"unrecorded", "too few of those that would be registrars live and have recorded all that counts",
         "Start those that are away; if all run: again in a second."},
    };
    const struct asking *r = container_of(ask, struct asking, ask);
    bool is_added = r->deadline_ms > 0, adds_first = r->by[0] != '\0' && !is_added;
    int status;

    if (is_added && store_reply_is(reply, "unrecorded") && loop_now_ms() < r->deadline_ms)
        return CLI_GO_ON;
    if (store_reply_is(reply, "changed")) {
        printf("there are %" PRId64 " registrars now, of which %" PRId64 " must be heard\n",
               store_reply_integer(reply, 1), store_reply_integer(reply, 2));
        if (adds_first)
            return CLI_GO_ON;
        if (store_reply_integer(reply, 1) == store_reply_integer(reply, 2))
            cli_hint("None of them may be away at an admission. Have 3 or 5: pawl store registrar add ID.");
        return CLI_OK;
    }
    status = refuse(refusals, sizeof(refusals) / sizeof(refusals[0]), adds_first ? r->by : r->id, "changed",
                    reply);
    if (adds_first && store_reply_is(reply, "already"))
        cli_hint("If this was interrupted before, what is left to do: pawl store registrar remove %s", r->id);
    return status;
}

/* It is removed when those that are now have recorded that the new one is of them: in one step a majority of
 * before, and one of after, need not meet. */
static int registrar_replace(struct asking *r)
{
    int status = CLI_GO_ON;

    r->deadline_ms = loop_now_ms() + r->wait_ms;
    r->argv[1] = BYTES("remove");
    r->argv[2] = bytes_of(r->id);
    while (status == CLI_GO_ON) {
        loop_turn(r->inbox.loop, AGAIN_MS);
        status = store_inbox_ask(&r->inbox, &r->ask, &script_registrar, 1, 3, r->argv);
    }
    if (status != CLI_OK)
        cli_hint("%s is a registrar now; what is left to do: pawl store registrar remove %s", r->by, r->id);
    return status;
}

/* -- node: one of Redis, that is gone for good */

static int node_check(struct asking *n)
{
    if (strcmp(n->word, "forget") != 0)
        return cli_fail(CLI_USAGE, "\"%s\" is not forget", n->word);
    n->argv[1] = bytes_of(n->id);
    return CLI_GO_ON;
}

static int node_answer(struct store_ask *ask, const struct store_reply *reply)
{
    static const struct refusal refusals[] = {
        {"none", "this store was made without --copies", "Nobody waits for a node."},
        {"gated", "the store is gated", "pawl store status says whom it waits for."},
        {"connected", "it is connected, and would join again", "Stop it, or its copying, first."},
        {"changing", "the in-sync set is changing", "Again in a second."},
        {"few", "without it fewer nodes than --copies would be in sync", "Let another one join first."},
        {"unknown", "it is not in the in-sync set, and is not among the last that were",
         "/readyz has the nodes' names."},
    };
    const struct asking *n = container_of(ask, struct asking, ask);

    if (store_reply_is(reply, "forgotten")) {
        printf("%s is %s\n", n->id,
               store_reply_integer(reply, 1) == 1
                   ? "out of the in-sync set when the lease services have recorded that"
                   : "not named as away any more");
        return CLI_OK;
    }
    return refuse(refusals, sizeof(refusals) / sizeof(refusals[0]), n->id, "forgotten", reply);
}

/* -- history: what is noted of what happens to leases */

static const struct {
    const char *mode, *says;
} modes[] = {
    {"all", "grants, ends and refusals are noted"},
    {"ends", "ends of holds are noted, no grants and no refusals"},
    {"off", "nothing is noted: the history and the events are 404 history-off"},
};

enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static int history_check(struct asking *h)
{
    h->ask.reads = h->word[0] == '\0';
    for (unsigned i = 0; i < MODES; i++)
        if (h->word[0] == '\0' || strcmp(h->word, modes[i].mode) == 0)
            return CLI_GO_ON;
    return cli_fail(CLI_USAGE, "\"%s\" is none of all, ends and off", h->word);
}

static int history_answer(struct store_ask *ask, const struct store_reply *reply)
{
    (void)ask;
    for (unsigned i = 0; i < MODES && store_reply_is(reply, "history"); i++) {
        if (bytes_are(store_reply_text(reply, 1), modes[i].mode)) {
            printf("%s: %s%s\n", modes[i].mode, modes[i].says,
                   store_reply_integer(reply, 2) == 1 ? "; what was noted before is not told any more" : "");
            return CLI_OK;
        }
    }
    return no_store_known(reply);
}

/* -- accept-loss: by an operator's word a node that is behind the in-sync set is the store. The script looks
 * for the loss, and then, when the name of the node was typed again, orders that very one */

static int loss_check(struct asking *l)
{
    if (!l->yes && !isatty(STDIN_FILENO))
        return cli_fail(CLI_USAGE, "what was answered is lost by this: say --yes, or do it on a terminal");
    l->ask.reads = true;
    l->argv[l->argc++] = BYTES("");
    return CLI_GO_ON;
}

static void loss_show(const struct asking *l, struct bytes nodes, int64_t missing)
{
    bytes_cut(&nodes, ' ');
    printf("%s is behind the in-sync set: ", l->word);
    print_safe(stdout, nodes);
    if (missing < 0)
        puts("\nIt lacks all that was done in a later epoch.");
    else
        printf("\nIt lacks %" PRId64 " changes that services have seen, and perhaps more.\n", missing);
    puts("All holds end; tokens go on above all that were granted.");
}

static int loss_answer(struct store_ask *ask, const struct store_reply *reply)
{
    struct asking *l = container_of(ask, struct asking, ask);
    struct bytes what = store_reply_text(reply, 1);

    if (store_reply_is(reply, "behind")) {
        snprintf(l->loss, sizeof(l->loss), "%.*s", (int)what.len, what.at);
        loss_show(l, store_reply_text(reply, 2), store_reply_integer(reply, 3));
        return CLI_GO_ON;
    }
    if (store_reply_is(reply, "ordered"))
        return CLI_GO_ON;
    if (store_reply_is(reply, "primary"))
        return cli_fail(CLI_REFUSED, "%s is not the primary, that is %.*s; nothing was changed", l->word,
                        (int)what.len, what.at);
    if (store_reply_is(reply, "in-step"))
        return cli_fail(CLI_REFUSED, "the primary was not found to be behind; nothing was changed");
    if (store_reply_is(reply, "moved"))
        return cli_fail(CLI_REFUSED, "what would be lost is something else by now; nothing was changed");
    return cli_fail(CLI_CONFIG, "here is no store that this release knows; nothing was changed");
}

static int loss_tell(const struct asking *l, const struct store_facts *facts)
{
    char sentence[FACT_TEXT_SIZE];

    if (store_facts_is_admitted(facts) && strcmp(facts->how, "accepted") == 0) {
        printf("%s is the store: epoch %" PRId64 ", tokens go on above %" PRId64 ", all holds have ended\n",
               l->word, facts->epoch, facts->top);
        return CLI_OK;
    }
    if (store_facts_is_admitted(facts))
        return cli_fail(CLI_REFUSED, "the store was admitted, but not by this word (%s)", facts->how);
    snprintf(sentence, sizeof(sentence), "%s is not admitted yet", l->word);
    store_refuse(facts, CLI_REFUSED, sentence);
    cli_hint(
        "It will be when they have come; if another one of the set has been heard of since, look again.");
    return CLI_REFUSED;
}

static int loss_order(struct asking *l)
{
    struct store_facts facts = {0};
    int status = l->yes ? CLI_GO_ON : cli_confirm(l->word);

    l->ask.reads = false;
    l->argv[2] = bytes_of(l->loss);
    if (status == CLI_GO_ON)
        status = store_inbox_ask(&l->inbox, &l->ask, &script_accept_loss, 1, l->argc, l->argv);
    if (status == CLI_GO_ON)
        status = recover_wait(&l->inbox, &facts, l->wait_ms);
    if (status == CLI_GO_ON)
        status = loss_tell(l, &facts);
    store_facts_done(&facts);
    return status;
}

/* -- failover */

static int failover(struct asking *f)
{
    return store_failover(&f->inbox, f->to != NULL ? f->to : "", f->wait_ms);
}

/* -- the table */

static const struct store_verb {
    const char *name;
    unsigned first, count;               /* of the flags that are not the inbox's */
    int (*check)(struct asking *asking); /* NULL: nothing to check. CLI_GO_ON, or the exit status */
    const struct store_script *script;   /* NULL: none to begin with */
    int (*take)(struct store_ask *ask, const struct store_reply *reply);
    int (*then)(struct asking *asking); /* NULL: take never goes on */
} verbs[] = {
    {"store status", 3, 1, .then = status_ask},
    {"store forget", 0, 0, NULL, &script_forget_member, forget_answer, NULL},
    {"store registrar", 4, 1, registrar_check, &script_registrar, registrar_answer, registrar_replace},
    {"store node", 0, 0, node_check, &script_node_forget, node_answer, NULL},
    {"store marks", 0, 3, marks_check, &script_marks, marks_answer, NULL},
    {"store history", 0, 0, history_check, &script_set_history, history_answer, NULL},
    {"store failover", 5, 2, .then = failover},
    {"store accept-loss", 7, 2, loss_check, &script_accept_loss, loss_answer, loss_order},
};

static int verb_run(int argc, char **argv)
{
    struct asking asking = {.word = NULL};
    const struct store_verb *verb = verbs;
    const struct option own[] = {
        FLAG_TEXT("of", "STORE", "id of the store whose tokens they are", &asking.of),
        FLAG_TEXT("at", "EPOCH.TOKEN", "nothing below this is let through", &asking.at),
        FLAG_ON("force", "also below what was named before", &asking.force),
        FLAG_OUTPUT_OBJECT(&asking.output),
        FLAG_MS("wait", "DUR", "of replace: for the new one to be recorded (default 10s)", &asking.wait_ms),
        FLAG_TEXT("to", "NODE", "the one that is to be, as /readyz spells it", &asking.to),
        FLAG_MS("wait", "DUR", "for the other node to be admitted (default 30s)", &asking.wait_ms),
        FLAG_MS("wait", "DUR", "for the lease services (default 10s)", &asking.wait_ms),
        FLAG_ON("yes", "do not ask", &asking.yes),
    };
    struct option flags[STORE_INBOX_FLAGS + sizeof(own) / sizeof(own[0]) + 1] = {
        STORE_INBOX_ROWS(&asking.inbox)};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    while (strcmp(verb->name + strlen("store "), argv[0]) != 0)
        verb++; /* commands calls this for what stands in the table */
    memcpy(flags + STORE_INBOX_FLAGS, own + verb->first, verb->count * sizeof(own[0]));
    asking.wait_ms = verb->then == failover ? FAILOVER_WAIT_MS : WAIT_MS;
    status = flags_read(verb->name, flags, argc, argv, arguments);
    if (status == CLI_GO_ON)
        status = verb->then == status_ask
                     ? store_inbox_collect(&asking.inbox, flags, argc, argv)
                     : store_inbox_collect_one(&asking.inbox, verb->name, flags, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    asking.word = arguments[0] != NULL ? arguments[0] : "";
    asking.id = asking.word[0] != '\0' && arguments[1] != NULL ? arguments[1] : "";
    asking.by = asking.id[0] != '\0' && arguments[2] != NULL ? arguments[2] : "";
    asking.inbox.output = asking.output;
    asking.ask.take = verb->take;
    asking.argv[0] = BYTES("pawl:{store}");
    asking.argv[1] = bytes_of(asking.word);
    asking.argc = 2;
    status = verb->check != NULL ? verb->check(&asking) : CLI_GO_ON;
    if (status == CLI_GO_ON && asking.inbox.count > 1)
        status = status_of_quorum(&asking);
    else if (status == CLI_GO_ON)
        status = store_inbox_open(&asking.inbox);
    if (status == CLI_GO_ON && verb->script != NULL)
        status = store_inbox_ask(&asking.inbox, &asking.ask, verb->script, 1, asking.argc, asking.argv);
    if (status == CLI_GO_ON)
        status = verb->then(&asking);
    store_inbox_close(&asking.inbox);
    return status;
}

/* -- init: pawl-lease makes the store, with the flags of this command, which it reads itself */

int cli_store_exec_lease(char **argv, int argc)
{
    char program[CHILD_PATH_SIZE], name[] = "pawl-lease", what[] = "--init-store", **words;

    if (!child_find(name, program)) {
        return cli_fail(CLI_CONFIG,
                        "pawl-lease makes the store, and is not installed: the package pawl-lease");
    }
    words = cli_alloc(((size_t)argc + 2) * sizeof(*words));
    words[0] = name;
    words[1] = what;
    memcpy(words + 2, argv + 1, (size_t)argc * sizeof(*words)); /* and the NULL behind them */
    execv(program, words);
    free(words);
    return cli_fail(CLI_CONFIG, "%s cannot be run: %s", program, strerror(errno));
}

static int init_run(int argc, char **argv)
{
    struct store_inbox inbox = {0};
    bool unsafe = false;
    unsigned registrars = 0, copies = 0;
    uint64_t max_ttl_ms = 0;
    const struct option flags[] = {
        STORE_INBOX_ROWS(&inbox),
        FLAG_ON("allow-unsafe-redis", "though Redis can lose what it acknowledged", &unsafe),
        FLAG_UP_TO("registrars", "a majority of the first N lease services counts: 1, 3 or 5", 5, NULL,
                   &registrars),
        FLAG_UP_TO("copies",
                   "with fewer nodes of Redis nothing is answered: 1 to 5; not said: 2 with sentinel://, "
                   "else nobody waits for replicas",
                   STORE_NODES_MAX, NULL, &copies),
        FLAG_MS("max-ttl", "DUR", "of a quorum: no ttl is longer (5m); as long is a node in quarantine",
                &max_ttl_ms),
        {0},
    };
    char path[STATE_PATH_MAX], why[STATE_WHY_MAX];
    struct state_file file = {.dir = {.fd = -1, .lock_fd = -1}};
    int status = flags_read("store init", flags, argc, argv, NULL);

    if (status != CLI_GO_ON)
        return status;
    if (state_path(inbox.state_dir, path) == NULL && state_file_open(&file, path, why) == STATE_IN_USE)
        status = cli_refuse(CLI_CONFIG, "Stop it first: a store is made before its lease service runs.", "%s",
                            why);
    state_file_close(&file);
    return status == CLI_GO_ON ? cli_store_exec_lease(argv, argc) : status;
}

/* -- which of them */

static const struct command commands[] = {
    {"init", init_run, "make a store in an empty Redis"},
    {"status", verb_run, "what the store is, what is refused and why, and what to do"},
    {"recover", cli_store_recover, "begin a new epoch of a store that has lost everything"},
    {"accept-loss", verb_run, "a node that may lack what was answered is the store all the same"},
    {"failover", verb_run, "another node of the in-sync set becomes the primary, in good order"},
    {"forget", verb_run, "do not wait any more for a service that is gone for good"},
    {"registrar", verb_run, "one registrar more, or less, or another, of a store that a majority admits"},
    {"node", verb_run, "a node of Redis that is gone for good is not waited for any more"},
    {"marks", verb_run, "go on with the tokens of another store, after marks were lost"},
    {"history", verb_run, "what is noted of what happens to leases: all, ends, or nothing"},
    {0},
};

int cli_store(int argc, char **argv)
{
    return command_group(commands, "store ", argc, argv);
}
