/* history_command.c - pawl history: who held a lease, how each hold ended, what was refused. */
#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/event.h"
#include "api/cli/flags.h"

struct history {
    const char *lease_url;
    enum output output;
    bool trace;
    struct ask ask;
};

static int history_read(struct history *h, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_output(&h->output, "text|json|env"),
        flag_trace(&h->trace),
        flag_lease_url(&h->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "history",
        .arguments = "NAME",
        .examples =
            "  pawl history orders:42\n"
            "  pawl history orders:42 -o json | jq -r '.items[] | select(.type == \"forced\") | .reason'\n",
        .summary =
            "Shows who held the lease NAME, how each hold ended, and what was refused; the oldest comes "
            "first.\n"
            "It is kept for a while (--remember of pawl-lease, 10 minutes) after the last hold has ended.\n"
            "Times are the store's.\n\n"
            "  granted         a hold began\n"
            "  released        its holder gave it back\n"
            "  expired         it was not renewed in time\n"
            "  session         its session ended, or was lost\n"
            "  forced          somebody ended it with pawl force-release, for this reason\n"
            "  store-restarted the store may have lost something, so every hold ended\n"
            "  returned        its waiter had gone before it heard of the grant\n"
            "  refused         somebody was refused, for this reason",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    h->ask = (struct ask){
        .what = "history", .wants = ASK_JSON, .needs = "items", .trace = h->trace, .request.method = "GET"};
    return ask_lease_deed(&h->ask, h->lease_url, arguments[0], "/history");
}

static void history_print(const struct history *h, const struct json *json)
{
    struct print_table table = {.head = event_head, .columns = EVENT_COLUMNS};
    enum json_found found;
    size_t count = json_list_count(json, "items", &found);

    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);

        if (item != NULL && h->output == OUTPUT_ENV) {
            event_print_env(item);
        } else if (item != NULL) {
            event_add(&table, item);
        }
    }
    if (h->output == OUTPUT_TEXT) {
        print_table_end(&table);
    }
}

static int history_show(const struct history *h, const struct http_client_answer *answer)
{
    struct json *json = ask_json(&h->ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    if (h->output == OUTPUT_JSON) {
        puts(answer->body);
    } else {
        history_print(h, json);
    }
    json_free(json);
    return CLI_OK;
}

int cli_history(int argc, char **argv)
{
    struct history h = {0};
    struct http_client_answer answer = {0};
    int status = history_read(&h, argc, argv);

    if (status == CLI_GO_ON) {
        status = ask_send(&h.ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = history_show(&h, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&h.ask);
    return status;
}
