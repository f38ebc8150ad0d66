/* environment.c - the PAWL_ variables: all that the three programs know, in one place. */
#include "api/cli/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/suggest.h"
#include "shared/service/options.h"

#define PREFIX "PAWL_"

enum { PREFIX_LEN = sizeof(PREFIX) - 1, NAME_SIZE = 64 };

static const char *const known[] = {
#define VARIABLE(name) name,
#include "api/variables.def"
#undef VARIABLE
    NULL};

bool environment_knows(const char *name)
{
    for (const char *const *at = known; *at != NULL; at++) {
        if (strcmp(*at, name) == 0) {
            return true;
        }
    }
    return false;
}

int environment_check(void)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        char name[NAME_SIZE] = {0};
        size_t len = strcspn(*variable, "=");
        const char *near;

        if (strncmp(*variable, PREFIX, PREFIX_LEN) != 0) {
            continue;
        }
        memcpy(name, *variable, len < sizeof(name) ? len : sizeof(name) - 1);
        if (environment_knows(name)) {
            continue;
        }
        near = suggest(name, known);
        return cli_fail(CLI_CONFIG, "the environment has %s, which no program of Pawl knows; %s%s", name,
                        near != NULL ? "did you mean " : "unset it", near != NULL ? near : "");
    }
    return CLI_GO_ON;
}

char **environment_for_child(void)
{
    size_t count = 0, kept = 0;
    char **copy;

    while (environ[count] != NULL) {
        count++;
    }
    copy = cli_alloc((count + 1) * sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], PREFIX, PREFIX_LEN) != 0 && strncmp(environ[i], "NOTIFY_SOCKET=", 14) != 0) {
            copy[kept++] = environ[i];
        }
    }
    copy[kept] = NULL;
    return copy;
}

/* -- what -o env prints when there is nothing to assign
 *
 * eval of an empty text is a success, and the variables of an earlier hold would still stand there. */

enum { STATUS_LOST = 76 };

#define OF_A_HOLD "PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN"

/* ls, history and watch are not here: they print an item a line, which is no one eval. */
static const struct {
    const char *command, *variables;
    bool of_its_hold; /* they stand until the hold is known to be lost */
} assigning[] = {
    {"acquire", OF_A_HOLD " LEASE_GRANT LEASE_HOLDS", false},
    {"renew", OF_A_HOLD " PAWL_LEASE_ID", true},
    {"release", OF_A_HOLD " PAWL_LEASE_ID", true},
    {"get", "LEASE LEASE_STATE LEASE_TOKEN LEASE_WAITING LEASE_HOLDER LEASE_EXPIRES_IN_MS", false},
    {"force-release", "LEASE_RELEASED_TOKEN", false},
    {"put", "RESOURCE_KEY RESOURCE_ETAG", false},
};

static bool wants_env(int argc, char **argv)
{
    const struct option table[] = {{.name = "output", .letter = 'o', .kind = OPTION_TEXT}, {0}};
    struct options_line line = {.table = table, .argv = argv, .argc = argc, .at = 1};
    const char *output = getenv("PAWL_OUTPUT");
    enum options_word found;

    while ((found = options_word(&line)) != WORD_END) {
        output = found == WORD_FLAG ? line.value : found == WORD_NO_VALUE ? NULL : output;
    }
    return output != NULL && strcmp(output, "env") == 0;
}

static int command_of(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        for (int k = 0; k < (int)(sizeof(assigning) / sizeof(assigning[0])); k++) {
            if (strcmp(argv[i], assigning[k].command) == 0) {
                return k;
            }
        }
    }
    return -1;
}

void environment_failure(int argc, char **argv, int status)
{
    int command = wants_env(argc, argv) ? command_of(argc, argv) : -1;
    /* Asking again with the same lease_id is the way on when the end is not known. */
    bool is_over = status != CLI_UNREACHABLE && status != CLI_USAGE;

    if (command < 0) {
        return;
    }
    if (!assigning[command].of_its_hold || status == STATUS_LOST) {
        printf("unset %s%s; ", assigning[command].variables,
               is_over && strcmp(assigning[command].command, "acquire") == 0 ? " PAWL_LEASE_ID" : "");
    }
    printf("(exit %d)\n", status);
}
