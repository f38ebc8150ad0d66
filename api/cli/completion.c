/* completion.c - pawl completion bash|zsh|fish: the few lines that a shell needs (completion/).
 *
 * They know no command and no flag: at each Tab they ask the program itself (flags.h), which looks
 * into the tables that --help is made of. Names of leases come from the service: a shell that waits for Tab
 * does not wait longer than a second for them. */
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"

int cli_completion(int argc, char **argv)
{
    const struct option flags[] = {{0}};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read("completion", flags, argc, argv, arguments);

    if (status != CLI_GO_ON)
        return status;
    for (const struct completion *shell = completions; shell->name != NULL; shell++) {
        if (strcmp(shell->name, arguments[0]) == 0) {
            fputs(shell->text, stdout);
            return CLI_OK;
        }
    }
    return cli_fail(CLI_USAGE, "there is no completion for \"%s\": it is bash, zsh or fish", arguments[0]);
}
