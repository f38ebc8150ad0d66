/* drill.c - pawl drill: accidents, played against a private Redis under load.
 *
 *   drill_read     flags and the names of accidents
 *   drill_run      one after the other, in the order of the tables
 *   the report     drill_report.c */
#include "api/cli/drill.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/cli/cli.h"
#include "api/cli/drill_command.h"
#include "api/cli/drill_report.h"
#include "api/cli/suggest.h"

enum {
    ACCIDENTS_MAX = 32,
    CLIENTS_DEFAULT = 8,
    CLIENTS_MIN = 1,
    PART = 10,
    RETURN_MS = 2000,
    SEED_MAX = 999999999
};

struct drill_command {
    unsigned rounds, seed, clients;
    uint64_t return_ms;
    bool full, list, verbose;
    enum output output;
    const char *keep, *shim;
    const struct drill_accident *all[ACCIDENTS_MAX];
    bool chosen[ACCIDENTS_MAX];
    unsigned all_count, chosen_count;
};

/* -- which */

static void table_take(struct drill_command *command, const struct drill_accident *table)
{
    for (; table->name != NULL; table++) {
        assert(command->all_count < ACCIDENTS_MAX);
        command->all[command->all_count++] = table;
    }
}

static int choose(struct drill_command *command, const char *name)
{
    const char *names[ACCIDENTS_MAX + 1] = {NULL};
    const char *near;

    for (unsigned i = 0; i < command->all_count; i++) {
        names[i] = command->all[i]->name;
        if (strcmp(names[i], name) == 0) {
            command->chosen_count += !command->chosen[i];
            command->chosen[i] = true;
            return CLI_GO_ON;
        }
    }
    near = suggest(name, names);
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "there is no accident \"%s\"; did you mean \"pawl drill %s\"?", name,
                        near);
    }
    return cli_fail(CLI_USAGE, "there is no accident \"%s\"; see pawl drill --list", name);
}

static int list(const struct drill_command *command)
{
    for (unsigned i = 0; i < command->all_count; i++) {
        printf("%-15s %4u  %s\n", command->all[i]->name, command->all[i]->full, command->all[i]->what);
    }
    return CLI_OK;
}

/* -- flags, which may stand between the names */

static const char examples[] = "  pawl drill --list\n"
                               "  pawl drill\n"
                               "  pawl drill flushall kill-always --rounds 5\n"
                               "  pawl drill --full --seed 42 -o json\n";

static const char summary[] =
    "Plays accidents against a private Redis, lease services and a gateway, while clients acquire, write,\n"
    "pause and release, and reads afterwards what they were told. Exit status 0: every accident was\n"
    "played to its end, no token came twice or went back, no stale write was let in.";

static int drill_flags(struct drill_command *command, int argc, char **argv, int *used)
{
    const struct flag flags[] = {
        {.name = "rounds",
         .value = "N",
         .help = "of each accident (default: a tenth of the full count)",
         .number = &command->rounds,
         .where = FLAG_COMMAND_LINE},
        {.name = "full",
         .help = "the full count of each (--list shows it): about 20 minutes for all",
         .on = &command->full},
        {.name = "seed",
         .value = "N",
         .help = "the choices of a drill of before",
         .number = &command->seed,
         .where = FLAG_COMMAND_LINE},
        {.name = "clients",
         .value = "N",
         .help = "that acquire and write all the while (default 8)",
         .number = &command->clients,
         .where = FLAG_COMMAND_LINE},
        {.name = "return-within",
         .value = "DURATION",
         .help = "how soon there must be grants after Redis has returned complete (2s)",
         .ms = &command->return_ms,
         .where = FLAG_COMMAND_LINE},
        {.name = "output",
         .letter = 'o',
         .value = "text|json",
         .help = "json: all counts, in one object",
         .output = &command->output,
         .where = FLAG_COMMAND_LINE},
        {.name = "keep",
         .value = "DIR",
         .help = "keep logs, Redis' files and what clients were told in DIR",
         .text = &command->keep,
         .where = FLAG_COMMAND_LINE},
        {.name = "shim",
         .value = "FILE",
         .help = "what make shim builds: for accidents of clocks and disks",
         .text = &command->shim,
         .where = FLAG_COMMAND_LINE},
        {.name = "list", .help = "the accidents and their full counts", .on = &command->list},
        {.name = "verbose", .letter = 'v', .help = "a line for each round", .on = &command->verbose},
        {0},
    };
    const struct usage usage = {.name = "drill",
                                .arguments = "[ACCIDENT...]",
                                .examples = examples,
                                .summary = summary,
                                .flags = flags,
                                .order = FLAGS_FIRST};

    return flags_read(&usage, argc, argv, NULL, used);
}

static int check(struct drill_command *command)
{
    if (command->full && command->rounds > 0) {
        return cli_fail(CLI_USAGE, "--full or --rounds: one of them");
    }
    if (command->clients < CLIENTS_MIN || command->clients > DRILL_CLIENTS_MAX) {
        return cli_fail(CLI_USAGE, "--clients takes 1 to %d", DRILL_CLIENTS_MAX);
    }
    if (command->seed == 0) {
        if (getrandom(&command->seed, sizeof(command->seed), 0) != sizeof(command->seed)) {
            abort();
        }
        command->seed = command->seed % SEED_MAX + 1;
    }
    if (command->chosen_count == 0) {
        memset(command->chosen, true, sizeof(command->chosen));
        command->chosen_count = command->all_count;
    }
    return CLI_GO_ON;
}

static int drill_read(struct drill_command *command, int argc, char **argv)
{
    int used = 0, status = drill_flags(command, argc, argv, &used);

    table_take(command, drill_redis_accidents);
    table_take(command, drill_service_accidents);
    while (status == CLI_GO_ON && used < argc) {
        argc -= used;
        argv += used;
        status = choose(command, argv[0]);
        if (status == CLI_GO_ON) {
            status = drill_flags(command, argc, argv,
                                 &used); /* argv[0] is passed over, as a command's name is */
        }
    }
    return status == CLI_GO_ON ? check(command) : status;
}

/* -- playing */

static enum drill_end drill_one(const struct drill_command *command, const struct drill_accident *accident,
                                struct drill_report *report)
{
    struct drill *drill = cli_alloc(sizeof(*drill));
    enum drill_end end;

    memset(drill, 0, sizeof(*drill));
    drill->accident = accident;
    drill->rounds = command->rounds > 0 ? command->rounds : (accident->full + PART - 1) / PART;
    drill->rounds = command->full ? accident->full : drill->rounds;
    drill->clients = command->clients;
    drill->seed = command->seed;
    drill->return_ms = command->return_ms;
    drill->keep = command->keep;
    drill->shim = command->shim;
    drill->verbose = command->verbose;
    drill->random = drill_random_split(command->seed, 0);
    drill_history_open(&drill->history);
    end = drill->end = accident->play(drill);
    drill_report_add(report, drill);
    drill_history_close(&drill->history);
    free(drill);
    return end;
}

static int drill_run(const struct drill_command *command)
{
    struct drill_report report = {
        .output = command->output, .seed = command->seed, .chosen = command->chosen_count};

    drill_report_begin(&report);
    for (unsigned i = 0; i < command->all_count; i++) {
        if (command->chosen[i] && drill_one(command, command->all[i], &report) == DRILL_INTERRUPTED) {
            break;
        }
    }
    return drill_report_end(&report);
}

int cli_drill(int argc, char **argv)
{
    struct drill_command command = {.clients = CLIENTS_DEFAULT, .return_ms = RETURN_MS};
    int status = drill_read(&command, argc, argv);

    if (status != CLI_GO_ON) {
        return status;
    }
    return command.list ? list(&command) : drill_run(&command);
}
