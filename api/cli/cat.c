/* cat.c - pawl cat: read a resource, byte for byte. */
#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/secret.h"

struct cat {
    const char *gateway_url, *token_file;
    bool fenced, trace;
    char token[SECRET_SIZE];
    struct ask ask;
};

static int cat_read(struct cat *c, int argc, char **argv)
{
    const struct flag flags[] = {
        {.name = "fenced",
         .help = "send the fencing token: refused when stale, and no older write lands after it",
         .on = &c->fenced},
        flag_token_file(&c->token_file),
        flag_trace(&c->trace),
        flag_gateway_url(&c->gateway_url),
        {0},
    };
    const struct usage usage = {
        .name = "cat",
        .arguments = "KEY",
        .examples = "  pawl cat orders:42\n"
                    "  pawl cat orders:42/invoice.pdf >invoice.pdf\n"
                    "  pawl cat orders:42 --fenced              # PAWL_FENCING_TOKEN proves the hold\n",
        .summary = "Writes the resource KEY to standard output. Exit status 1: there is none.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status == CLI_GO_ON) {
        c->ask = (struct ask){
            .what = "cat",
            .wants = ASK_CONTENT,
            .trace = c->trace,
            .request = {.method = "GET", .sink = stdout, .sink_needs = {.name = "Fencing-Mark"}}};
        status = ask_resource(&c->ask, c->gateway_url, arguments[0]);
    }
    return status == CLI_GO_ON && c->fenced ? secret_token(c->token_file, c->token) : status;
}

int cli_cat(int argc, char **argv)
{
    struct cat c = {0};
    struct http_client_answer answer = {0};
    int status = cat_read(&c, argc, argv);

    if (status == CLI_GO_ON) {
        ask_header(&c.ask, "Fencing-Token", bytes_of(c.token));
        status = ask_send(&c.ask, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&c.ask);
    return status == CLI_GO_ON ? CLI_OK : status;
}
