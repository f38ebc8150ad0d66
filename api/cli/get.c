/* get.c - pawl get: who holds a lease. */
#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/look.h"

struct get {
    const char *lease_url;
    enum output output;
    bool trace;
    struct ask ask;
};

static int get_read(struct get *g, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_output(&g->output, "text|json|env"),
        flag_trace(&g->trace),
        flag_lease_url(&g->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "get",
        .arguments = "NAME",
        .examples = "  pawl get orders:42\n"
                    "  pawl get orders:42 -o json | jq -r .state\n"
                    "  eval \"$(pawl get orders:42 -o env)\"; echo \"$LEASE_HOLDER\"\n",
        .summary = "Shows whether the lease NAME is held, by whom and for how long yet. A lease that nobody "
                   "has ever\n"
                   "taken is free.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    g->ask = (struct ask){
        .what = "get", .wants = ASK_JSON, .needs = "state", .trace = g->trace, .request.method = "GET"};
    return ask_lease(&g->ask, g->lease_url, arguments[0]);
}

static int get_show(const struct get *g, const struct http_client_answer *answer)
{
    struct json *json = ask_json(&g->ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    if (g->output == OUTPUT_JSON) {
        puts(answer->body);
    } else if (g->output == OUTPUT_ENV) {
        look_print_env(json);
    } else {
        look_print_text(stdout, json);
    }
    json_free(json);
    return CLI_OK;
}

int cli_get(int argc, char **argv)
{
    struct get g = {0};
    struct http_client_answer answer = {0};
    int status = get_read(&g, argc, argv);

    if (status == CLI_GO_ON) {
        status = ask_send(&g.ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = get_show(&g, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&g.ask);
    return status;
}
