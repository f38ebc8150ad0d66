/* command.c - pawl demo: shows hazards with real processes, with a recipe that is widely used and with Pawl.
 */
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/demo/play.h"
#include "api/cli/flags.h"
#include "api/cli/suggest.h"

enum { TTL_MS = 2000, TTL_MS_MIN = 300, TTL_MS_MAX = 60000, HAZARDS_MAX = 16 };

const struct hazard *const hazards[] = {
    &hazard_stale_holder,
    &hazard_clock_jump,
    &hazard_slow_network,
    &hazard_crash_before_expire,
    &hazard_timestamp_lock,
    &hazard_wrong_release,
    &hazard_failover,
    &hazard_redlock_pause,
    &hazard_late_unlock,
    &hazard_read_lock_starvation,
    NULL,
};

static int list(void)
{
    for (unsigned i = 0; hazards[i] != NULL; i++) {
        printf("%-22s %s\n", hazards[i]->name, hazards[i]->line);
    }
    return CLI_OK;
}

static int no_such_hazard(const char *name)
{
    const char *names[HAZARDS_MAX + 2] = {"all"};
    const char *near;

    for (unsigned i = 0; i < HAZARDS_MAX && hazards[i] != NULL; i++) {
        names[i + 1] = hazards[i]->name;
    }
    near = suggest(name, names);
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "there is no demo of \"%s\"; did you mean \"%s\"?", name, near);
    }
    cli_fail(CLI_USAGE, "there is no demo of \"%s\"", name);
    for (unsigned i = 0; hazards[i] != NULL; i++) {
        cli_hint("%s", hazards[i]->name);
    }
    return CLI_USAGE;
}

/* Each, whatever came of the others; an interruption ends them all. */
static int play_all(const struct play_plan *plan)
{
    unsigned good = 0, count = 0;

    for (; hazards[count] != NULL; count++) {
        int status;

        printf("%s%s\n\n", count > 0 ? "\n\n" : "", hazards[count]->name);
        status = play(hazards[count], plan);
        if (status == CLI_CONFIG) {
            return status;
        }
        good += status == CLI_OK;
    }
    printf("\n%u of %u hazards: the recipe failed, and Pawl held\n", good, count);
    return good == count ? CLI_OK : cli_fail(CLI_REFUSED, "%u went otherwise than they should", count - good);
}

static int play_named(const char *name, const struct play_plan *plan)
{
    if (strcmp(name, "all") == 0) {
        return play_all(plan);
    }
    for (unsigned i = 0; hazards[i] != NULL; i++) {
        if (strcmp(name, hazards[i]->name) == 0) {
            return play(hazards[i], plan);
        }
    }
    return no_such_hazard(name);
}

int cli_demo(int argc, char **argv)
{
    uint64_t ttl_ms = TTL_MS;
    struct play_plan plan = {0};
    bool listed = false;
    const struct option flags[] = {
        FLAG_MS("ttl", "DURATION", "how long the locks run: everything takes so much longer or shorter (2s)",
                &ttl_ms),
        FLAG_TEXT("shim", "FILE", "what shifts a clock (default: where make or make install has put it)",
                  &plan.shim),
        FLAG_ON("list", "the hazards, a line each (the same as no HAZARD)", &listed),
        {0},
    };
    const struct usage usage = {
        .name = "demo",
        .arguments = "[HAZARD]",
        .examples = "  pawl demo                        # which hazards there are\n"
                    "  pawl demo stale-holder\n"
                    "  pawl demo all --ttl 600ms\n",
        .summary =
            "Shows a hazard with real processes: first with a recipe that is widely used, then with Pawl.\n"
            "Without HAZARD: lists them. With \"all\": plays one after the other.\n"
            "Exit status 0: the recipe was seen to fail, and Pawl was seen to hold.",
        .flags = flags,
        .arguments_min = 0,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    if (ttl_ms < TTL_MS_MIN || ttl_ms > TTL_MS_MAX) {
        return cli_fail(CLI_USAGE, "--ttl is to be %d ms to %d s", TTL_MS_MIN, TTL_MS_MAX / 1000);
    }
    plan.ttl_ms = (unsigned)ttl_ms;
    return listed || arguments[0] == NULL ? list() : play_named(arguments[0], &plan);
}
