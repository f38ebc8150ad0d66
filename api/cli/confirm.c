/* confirm.c - "type the name to go on". */
#include "api/cli/confirm.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"

enum { TYPED_SIZE = 256 };

static bool is_typed(const char *name)
{
    char typed[TYPED_SIZE] = "";
    size_t len = strlen(name);

    if (fgets(typed, sizeof(typed), stdin) == NULL || strncmp(typed, name, len) != 0 ||
        strcmp(typed + len, "\n") != 0) {
        return false;
    }
    return true;
}

int confirm_name(const char *name)
{
    fflush(stdout);
    fprintf(stderr, "Type \"%s\" to go on: ", name);
    fflush(stderr);
    return is_typed(name) ? CLI_GO_ON : cli_fail(CLI_REFUSED, "nothing was changed");
}
