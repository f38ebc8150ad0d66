/* store_marks.c - pawl store marks: since this store has lost the marks of another one's tokens, an operator
 * names a token of that one below which nothing is let through.
 *
 *   marks_read     flags                       64, or go on
 *   marks_ask      run marks.lua
 *   marks_answer   say what came of it         0 | 1 | 78 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/store_command.h"
#include "api/cli/store_recover.h"
#include "cli_scripts.h"
#include "shared/token.h"

enum { MARKS_FLAGS = STORE_DESK_FLAGS + 3, NUMBER_SIZE = 24 };

struct marks {
    struct store_desk desk;
    const char *of, *at;
    bool force;
    char epoch[NUMBER_SIZE], token[NUMBER_SIZE];
    struct store_ask ask;
};

static int marks_answer(struct store_ask *ask, const struct store_reply *reply);

/* EPOCH.TOKEN */
static bool at_read(struct marks *m)
{
    const char *dot = strchr(m->at, '.');

    if (dot == NULL || dot - m->at > TOKEN_DIGITS_MAX)
        return false;
    snprintf(m->epoch, sizeof(m->epoch), "%.*s", (int)(dot - m->at), m->at);
    snprintf(m->token, sizeof(m->token), "%s", dot + 1);
    return recover_token_number(m->epoch) > 0 && recover_token_number(dot + 1) > 0;
}

static int marks_read(struct marks *m, int argc, char **argv)
{
    struct flag flags[MARKS_FLAGS + 1] = {
        [STORE_DESK_FLAGS] = {.name = "of",
                              .value = "STORE",
                              .where = FLAG_COMMAND_LINE,
                              .help = "id of the store whose tokens they are",
                              .text = &m->of},
        {.name = "at",
         .value = "EPOCH.TOKEN",
         .where = FLAG_COMMAND_LINE,
         .help = "nothing below this is let through",
         .text = &m->at},
        {.name = "force",
         .where = FLAG_COMMAND_LINE,
         .help = "also below what was named before",
         .on = &m->force},
    };
    const struct usage usage = {
        .name = "store marks",
        .arguments = "",
        .examples = "  pawl store marks --of Zk3v9a1BQ2x8Zk3v9a1BQ2x8 --at 1795262644.48211907\n",
        .summary =
            "This store has lost content, and a route with \"check\":\"mark\" and \"store\":\"STORE\" "
            "answers "
            "503\n"
            "marks-lost. Look at the store STORE (pawl store status there says its epoch and the highest "
            "token\n"
            "granted) and name it: older tokens are refused from then on, and the route goes on. If nobody "
            "knows it,\n"
            "let that store begin a new life (pawl store recover --floor N there), and name its new epoch, "
            "and N.",
        .flags = flags,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    store_desk_flags(&m->desk, flags);
    status = flags_read(&usage, argc, argv, arguments, NULL);
    if (status != CLI_GO_ON)
        return status;
    if (m->of == NULL || m->at == NULL)
        return cli_fail(CLI_USAGE, "--of STORE and --at EPOCH.TOKEN are needed; see pawl store marks --help");
    if (!token_is_store(bytes_of(m->of)))
        return cli_fail(CLI_USAGE, "--of is %d characters of A-Z a-z 0-9 _ -", TOKEN_STORE_CHARS);
    if (!at_read(m))
        return cli_fail(CLI_USAGE, "--at is an epoch, a dot, and a token's number");
    return CLI_GO_ON;
}

static int marks_ask(struct marks *m)
{
    const struct bytes argv[] = {BYTES("pawl:{store}"), bytes_of(m->of), bytes_of(m->epoch),
                                 bytes_of(m->token), bytes_of(m->force ? "force" : "")};

    m->ask.take = marks_answer;
    return store_desk_ask(&m->desk, &m->ask, &script_marks, 1, 5, argv);
}

static int marks_answer(struct store_ask *ask, const struct store_reply *reply)
{
    const struct marks *m = container_of(ask, struct marks, ask);

    if (store_reply_is(reply, "named")) {
        printf("of store %s nothing below token %s of epoch %s is let through\n", m->of, m->token, m->epoch);
        return CLI_OK;
    }
    if (store_reply_is(reply, "not-lost"))
        return cli_fail(CLI_REFUSED, "this store has lost no marks; nothing was changed");
    if (store_reply_is(reply, "own"))
        return cli_fail(CLI_REFUSED,
                        "%s is this very store: for its own tokens its epoch is the mark; "
                        "nothing was changed",
                        m->of);
    if (store_reply_is(reply, "lower")) {
        cli_fail(CLI_REFUSED, "token %" PRId64 " of epoch %" PRId64 " was named before; nothing was changed",
                 store_reply_integer(reply, 2), store_reply_integer(reply, 1));
        cli_hint("--force lowers it: what is below is let in again.");
        return CLI_REFUSED;
    }
    cli_fail(CLI_CONFIG, "what is here is no store that this release knows; nothing was changed");
    cli_hint("pawl store status says more.");
    return CLI_CONFIG;
}

int cli_store_marks(int argc, char **argv)
{
    struct marks m = {0};
    int status = marks_read(&m, argc, argv);

    if (status == CLI_GO_ON)
        status = store_desk_open(&m.desk);
    if (status == CLI_GO_ON)
        status = marks_ask(&m);
    store_desk_close(&m.desk);
    return status;
}
