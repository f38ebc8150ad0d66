/* drill.c - pawl drill: executes pawl-drill, which belongs to the tests (tests/drill) and comes with the
 * package pawl-lab. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/child.h"
#include "api/cli/cli.h"

int cli_drill(int argc, char **argv)
{
    char path[CHILD_PATH_SIZE], programs[CHILD_PATH_SIZE];

    (void)argc; /* argv ends with NULL */
    if (!child_find_beside("pawl-drill", X_OK, path) &&
        !child_find_beside("../lib/pawl/pawl-drill", X_OK, path)) {
        return cli_fail(CLI_CONFIG, "pawl-drill is not installed: the package pawl-lab has it");
    }
    if (child_find_beside(".", X_OK, programs)) {
        setenv("PAWL_BUILD", programs, 1);
    }
    execv(path, argv);
    return cli_fail(CLI_CONFIG, "%s cannot be run: %s", path, strerror(errno));
}
