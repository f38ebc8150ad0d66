/* history_command.c - pawl history: who held a lease, how each hold ended, what was refused. */
#include "api/cli/ask.h"
#include "api/cli/ask_command.h"
#include "api/cli/cli.h"
#include "api/cli/event.h"

static void history_show(const struct json *json, enum output output)
{
    struct print_table table = {.head = event_head, .columns = EVENT_COLUMNS};
    enum json_found found;
    size_t count = json_list_count(json, "items", &found);

    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);

        if (item != NULL && output == OUTPUT_ENV) {
            event_print_env(item);
        } else if (item != NULL) {
            event_add(&table, item);
        }
    }
    if (output == OUTPUT_TEXT) {
        print_table_end(&table);
    }
}

int cli_history(int argc, char **argv)
{
    static const struct ask_command command = {
        .usage =
            {
                .name = "history",
                .examples = "  pawl history orders:42\n"
                            "  pawl history orders:42 -o json | jq -r '.items[] | select(.type == "
                            "\"forced\") | .reason'\n",
                .summary = "Shows who held the lease NAME, how each hold ended, and what was refused; the "
                           "oldest comes "
                           "first.\n"
                           "It is kept for a while (--remember of pawl-lease, 10 minutes) after the last "
                           "hold has ended.\n"
                           "Times are the store's.\n\n"
                           "  granted         a hold began\n"
                           "  released        its holder gave it back\n"
                           "  expired         it was not renewed in time\n"
                           "  session         its session ended, or was lost\n"
                           "  forced          somebody ended it with pawl force-release, for this reason\n"
                           "  store-restarted the store may have lost something, so every hold ended\n"
                           "  returned        its waiter had gone before it heard of the grant\n"
                           "  refused         somebody was refused, for this reason",
            },
        .deed = "/history",
        .needs = "items",
        .show = history_show,
    };

    return ask_command_run(&command, argc, argv);
}
