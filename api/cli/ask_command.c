/* ask_command.c - a command that asks one thing about a lease and shows the answer.
 *
 *   command_read   flags         64, or go on
 *   command_show   GET, shown    0 */
#include "api/cli/ask_command.h"

#include <stdio.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"

static int command_read(const struct ask_command *command, struct ask *ask, int argc, char **argv)
{
    const char *lease_url = NULL;
    const struct flag flags[] = {
        flag_output(&ask->output, "text|json|env"),
        flag_trace(&ask->trace),
        flag_lease_url(&lease_url),
        {0},
    };
    struct usage usage = command->usage;
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    usage.arguments = "NAME";
    usage.arguments_min = usage.arguments_max = 1;
    usage.flags = flags;
    status = flags_read(&usage, argc, argv, arguments, NULL);
    return status == CLI_GO_ON ? ask_lease_deed(ask, lease_url, arguments[0], command->deed) : status;
}

static int command_show(const struct ask_command *command, struct ask *ask)
{
    struct http_client_answer answer = {0};
    int status = ask_send(ask, &answer);
    struct json *json = status == CLI_GO_ON ? ask_json(ask, &answer) : NULL;

    if (status == CLI_GO_ON) {
        status = json != NULL ? CLI_OK : CLI_BUG;
    }
    if (json != NULL && ask->output == OUTPUT_JSON) {
        puts(answer.body);
    } else if (json != NULL) {
        command->show(json, ask->output);
    }
    json_free(json);
    http_client_answer_done(&answer);
    return status;
}

int ask_command_run(const struct ask_command *command, int argc, char **argv)
{
    struct ask ask = {
        .what = command->usage.name, .wants = ASK_JSON, .needs = command->needs, .request.method = "GET"};
    int status = command_read(command, &ask, argc, argv);

    if (status == CLI_GO_ON) {
        status = command_show(command, &ask);
    }
    ask_done(&ask);
    return status;
}
