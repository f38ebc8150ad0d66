/* environment.c - the PAWL_ variables: all that the three programs know, in one place. */
#include "api/cli/environment.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/suggest.h"

#define PREFIX "PAWL_"

enum { PREFIX_LEN = sizeof(PREFIX) - 1, NAME_SIZE = 64 };

static const char *const known[] = {
#define VARIABLE(name) name,
#include "api/variables.def"
#undef VARIABLE
    NULL};

void environment_name(const char *flag, char *buf, size_t size)
{
    size_t len = PREFIX_LEN;

    memcpy(buf, PREFIX, PREFIX_LEN);
    for (; *flag != '\0' && len + 1 < size; flag++) {
        buf[len++] = (char)(*flag == '-' ? '_' : toupper((unsigned char)*flag));
    }
    buf[len] = '\0';
}

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
