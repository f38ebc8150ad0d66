/* store_command.c - pawl store: which of its commands is meant. */
#include "api/cli/store_command.h"

#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags_complete.h"
#include "api/cli/suggest.h"

struct store_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct store_command commands[] = {
    {"status", cli_store_status, "what the store is, what is refused and why, and what to do"},
    {"recover", cli_store_recover, "begin a new life of a store that has lost everything"},
    {"forget", cli_store_forget, "do not wait any more for a service that is gone for good"},
    {"marks", cli_store_marks, "go on with the tokens of another store, after marks were lost"},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int print_help(void)
{
    puts("Examples:\n"
         "  pawl store status\n"
         "  pawl store status -o json --redis redis://10.0.0.7:6379\n"
         "  pawl store recover                                # Redis is empty; the lease services know the "
         "rest\n"
         "  pawl store recover --floor 50000000               # nobody knows any more how far tokens had "
         "come\n"
         "  pawl store forget M3mb3rIdOf16Char\n"
         "\n"
         "Usage: pawl store COMMAND [arguments] [flags]\n"
         "\n"
         "Looks at the store itself, and not through the services: for when they refuse.\n"
         "\n"
         "Commands (pawl store COMMAND --help says more):");
    for (unsigned i = 0; i < COMMANDS; i++)
        printf("  %-7s  %s\n", commands[i].name, commands[i].help);
    return CLI_OK;
}

static int no_such_command(const char *word)
{
    const char *names[COMMANDS + 1] = {NULL};
    const char *near;

    for (unsigned i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    near = suggest(word, names);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "there is no \"pawl store %s\"; did you mean \"pawl store %s\"?", word,
                        near);
    return cli_fail(CLI_USAGE, "there is no \"pawl store %s\"; see pawl store --help", word);
}

/* argv[1] is FLAGS_COMPLETE: of the command behind it, or which command. */
static int complete(int argc, char **argv)
{
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (argc == 3) {
            flags_complete_word(argv[2], commands[i].name, commands[i].help);
        } else if (strcmp(argv[2], commands[i].name) == 0) {
            argv[2] = argv[1];
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return CLI_OK;
}

int cli_store(int argc, char **argv)
{
    if (flags_complete_wanted(argc, argv))
        return complete(argc, argv);
    if (argc < 2)
        return cli_fail(CLI_USAGE, "pawl store status, recover, forget or marks? See pawl store --help");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    return no_such_command(argv[1]);
}
