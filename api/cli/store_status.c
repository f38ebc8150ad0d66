/* store_status.c - pawl store status: what the store is, what is refused and why, and what to do.
 *
 *   status_read       flags                           64 | 78, or go on
 *   store_desk_open                                   69 | 78, or go on
 *   store_facts_read  all that is known               69, or go on
 *   status_show       what it means                   0 | 1 | 78 */
#include "api/cli/cli.h"
#include "api/cli/store_command.h"
#include "api/cli/store_show.h"

struct status {
    struct store_desk desk;
    enum output output;
    struct store_facts facts;
    struct store_verdict verdict;
};

static int status_read(struct status *s, int argc, char **argv)
{
    struct flag flags[STORE_DESK_FLAGS + 2] = {{0}};
    const struct usage usage = {
        .name = "store status",
        .arguments = "",
        .examples =
            "  pawl store status\n"
            "  pawl store status -o json | jq -r '.findings[].what'\n"
            "  pawl store status --redis redis://10.0.0.7:6379 --redis-password-file /etc/pawl/redis\n",
        .summary =
            "Shows the store as it is in Redis, its members, what would be refused and why, and what to do.\n"
            "Changes nothing. Exit status: 0 grants and writes are possible, 1 something is refused,\n"
            "69 Redis cannot be reached, 78 there is no store, not the one that belongs here, or what can be "
            "none.",
        .flags = flags,
    };
    const char *arguments[ARGUMENTS_MAX + 1];

    store_desk_flags(&s->desk, flags);
    flags[STORE_DESK_FLAGS] = (struct flag){.name = "output",
                                            .letter = 'o',
                                            .value = "text|json",
                                            .help = "json: one object, for programs",
                                            .output = &s->output};
    return flags_read(&usage, argc, argv, arguments, NULL);
}

static int status_show(struct status *s)
{
    store_verdict_make(&s->facts, &s->verdict);
    if (s->output == OUTPUT_JSON)
        store_show_json(&s->facts, &s->verdict);
    else
        store_show_text(&s->facts, &s->verdict);
    return s->verdict.status;
}

int cli_store_status(int argc, char **argv)
{
    struct status s = {.output = OUTPUT_TEXT};
    int status = status_read(&s, argc, argv);

    s.desk.output = s.output;
    if (status == CLI_GO_ON)
        status = store_desk_open(&s.desk);
    if (status == CLI_GO_ON)
        status = store_facts_read(&s.desk, &s.facts);
    if (status == CLI_GO_ON)
        status = status_show(&s);
    store_facts_done(&s.facts);
    store_desk_close(&s.desk);
    return status;
}
