/* ask_command.h - a command that asks one thing about a lease and shows the answer: pawl get, pawl history.
 */
#ifndef PAWL_CLI_ASK_COMMAND_H
#define PAWL_CLI_ASK_COMMAND_H

#include "api/cli/flags.h"
#include "shared/json.h"

struct ask_command {
    struct usage usage; /* without its flags, which are the same for all */
    const char *deed;   /* what is below the lease ("/history"); "": the lease itself */
    const char *needs;  /* struct ask */
    void (*show)(const struct json *json, enum output output); /* text or env; json is the answer as it is */
};

/* The exit status. */
int ask_command_run(const struct ask_command *command, int argc, char **argv);

#endif
