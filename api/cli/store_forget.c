/* store_forget.c - pawl store forget ID: a member that is gone for good is not waited for any more.
 *
 *   forget_read     flags                       64, or go on
 *   forget_ask      run forget.lua
 *   forget_answer   say what came of it         0 | 1 | 78 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/store_command.h"
#include "api/cli/store_desk.h"
#include "cli_scripts.h"

struct forget {
    struct store_desk desk;
    const char *id;
    struct store_ask ask;
};

static int forget_answer(struct store_ask *ask, const struct store_reply *reply);

static int forget_read(struct forget *f, int argc, char **argv)
{
    struct flag flags[STORE_DESK_FLAGS + 1] = {{0}};
    const struct usage usage = {
        .name = "store forget",
        .arguments = "ID",
        .examples = "  pawl store status                  # members, and who is gone without a word\n"
                    "  pawl store forget M3mb3rIdOf16Char\n",
        .summary =
            "The member ID (a lease service or a gateway) went away without a word and never comes back: "
            "after\n"
            "the next restart of Redis it is not waited for. If it does come back with its state directory,\n"
            "it is not let in before that.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    store_desk_flags(&f->desk, flags);
    status = flags_read(&usage, argc, argv, arguments, NULL);
    if (status == CLI_GO_ON)
        f->id = arguments[0];
    return status;
}

static int forget_ask(struct forget *f)
{
    const struct bytes argv[] = {BYTES("pawl:{store}"), bytes_of(f->id)};

    f->ask.take = forget_answer;
    return store_desk_ask(&f->desk, &f->ask, &script_forget, 1, 2, argv);
}

static int forget_refuse(const struct forget *f, const struct store_reply *reply)
{
    static const struct {
        const char *word, *what, *todo;
        int status;
    } refusals[] = {
        {"empty", "this Redis has no store", "pawl store status says more.", CLI_CONFIG},
        {"another", "what is here is no store that this release knows", "pawl store status says more.",
         CLI_CONFIG},
        {"unknown", "there is no such member", "pawl store status lists them.", CLI_REFUSED},
        {"already", "this member is forgotten already", "Its record goes at the next admission.",
         CLI_REFUSED},
        {"gated", "the store is gated, and what this member knows may be needed to admit it",
         "pawl store status says whom it waits for; if that one is lost for good: pawl store recover --floor "
         "N.",
         CLI_REFUSED},
        {"last",
         "no other lease service is alive whose floor is as high: this one's floor is the only proof of what "
         "was granted",
         "Start another lease service first; if none can come: pawl store recover --floor N.", CLI_REFUSED},
    };

    for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (store_reply_is(reply, refusals[i].word)) {
            cli_fail(refusals[i].status, "%s was not forgotten: %s", f->id, refusals[i].what);
            cli_hint("%s", refusals[i].todo);
            return refusals[i].status;
        }
    }
    return cli_fail(CLI_BUG, "the script gave an answer that this program does not know");
}

static int forget_answer(struct store_ask *ask, const struct store_reply *reply)
{
    const struct forget *f = container_of(ask, struct forget, ask);
    char age[PRINT_DURATION_SIZE];

    if (store_reply_is(reply, "forgotten")) {
        printf("%s is forgotten (", f->id);
        print_safe(stdout, store_reply_text(reply, 2));
        puts("): the next admission does not wait for it");
        return CLI_OK;
    }
    if (store_reply_is(reply, "fresh")) {
        print_duration(age, store_reply_integer(reply, 1));
        cli_fail(CLI_REFUSED, "%s was not forgotten: it lives, its last pulse came %s ago", f->id, age);
        cli_hint("Stop it: with SIGTERM it leaves by itself.");
        return CLI_REFUSED;
    }
    return forget_refuse(f, reply);
}

int cli_store_forget(int argc, char **argv)
{
    struct forget f = {0};
    int status = forget_read(&f, argc, argv);

    if (status == CLI_GO_ON)
        status = store_desk_open(&f.desk);
    if (status == CLI_GO_ON)
        status = forget_ask(&f);
    store_desk_close(&f.desk);
    return status;
}
