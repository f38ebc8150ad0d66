/* demo.c - pawl demo: shows a hazard with real processes, without and with the fence. */
#include "api/cli/demo.h"

#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/suggest.h"

static const struct {
    const char *name;
    int (*play)(void);
} hazards[] = {{"stale-holder", demo_stale_holder}};

enum { HAZARDS = sizeof(hazards) / sizeof(hazards[0]) };

static int no_such_hazard(const char *name)
{
    const char *names[HAZARDS + 1] = {NULL};
    const char *near;

    for (unsigned i = 0; i < HAZARDS; i++) {
        names[i] = hazards[i].name;
    }
    near = suggest(name, names);
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "there is no demo of \"%s\"; did you mean \"%s\"?", name, near);
    }
    return cli_fail(CLI_USAGE, "there is no demo of \"%s\"; there is: stale-holder", name);
}

int cli_demo(int argc, char **argv)
{
    const struct flag flags[] = {{0}};
    const struct usage usage = {
        .name = "demo",
        .arguments = "HAZARD",
        .examples = "  pawl demo stale-holder\n",
        .summary =
            "Shows a hazard with real processes, first without the fence, then with it; about 10 seconds.\n"
            "Exit status 0: the harm was done without the fence, and none with it.\n\n"
            "  stale-holder   a worker is stopped for so long that its lease expires and another takes "
            "over;\n"
            "                 then it goes on and writes, still believing that it holds the lease",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    for (unsigned i = 0; status == CLI_GO_ON && i < HAZARDS; i++) {
        if (strcmp(arguments[0], hazards[i].name) == 0) {
            return hazards[i].play();
        }
    }
    return status == CLI_GO_ON ? no_such_hazard(arguments[0]) : status;
}
