/* env_failure.c - what -o env prints when there is nothing to assign.
 *
 * eval of an empty text is a success, and the variables of an earlier hold would still stand there. */
#include "api/cli/env_failure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"

enum { STATUS_LOST = 76 };

#define OF_A_HOLD "PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN"

/* ls, history and watch are not here: they print an item a line, which is no one eval. */
static const struct {
    const char *command, *variables;
    bool of_its_hold; /* they stand until the hold is known to be lost */
} known[] = {
    {"acquire", OF_A_HOLD " LEASE_GRANT LEASE_HOLDS", false},
    {"renew", OF_A_HOLD " PAWL_LEASE_ID", true},
    {"release", OF_A_HOLD " PAWL_LEASE_ID", true},
    {"get", "LEASE LEASE_STATE LEASE_TOKEN LEASE_WAITING LEASE_HOLDER LEASE_EXPIRES_IN_MS", false},
    {"force-release", "LEASE_RELEASED_TOKEN", false},
    {"put", "RESOURCE_KEY RESOURCE_ETAG", false},
};

static bool wants_env(int argc, char **argv)
{
    const char *output = getenv("PAWL_OUTPUT");

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool apart = strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0;

        if (apart) {
            output = argv[i + 1]; /* NULL behind the last */
        } else if (strncmp(argv[i], "-o", 2) == 0) {
            output = argv[i] + 2;
        } else if (strncmp(argv[i], "--output=", 9) == 0) {
            output = argv[i] + 9;
        }
    }
    return output != NULL && strcmp(output, "env") == 0;
}

static int command_of(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        for (int k = 0; k < (int)(sizeof(known) / sizeof(known[0])); k++) {
            if (strcmp(argv[i], known[k].command) == 0) {
                return k;
            }
        }
    }
    return -1;
}

/* Asking again with the same lease_id is the way on when the end is not known. */
static const char *and_lease_id(int command, int status)
{
    return strcmp(known[command].command, "acquire") == 0 && status != CLI_UNREACHABLE && status != CLI_USAGE
               ? " PAWL_LEASE_ID"
               : "";
}

void env_failure(int argc, char **argv, int status)
{
    int command = wants_env(argc, argv) ? command_of(argc, argv) : -1;

    if (command < 0) {
        return;
    }
    if (!known[command].of_its_hold || status == STATUS_LOST) {
        printf("unset %s%s; ", known[command].variables, and_lease_id(command, status));
    }
    printf("(exit %d)\n", status);
}
