/* rm.c - pawl rm: delete a resource, fenced. */
#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "api/cli/secret.h"
#include "shared/record/name.h"

struct rm {
    const char *gateway_url, *token_file, *if_match, *idempotency_key, *key;
    bool trace;
    char token[SECRET_SIZE];
    struct ask ask;
};

static int rm_read(struct rm *r, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_if_match(&r->if_match),       flag_idempotency_key(&r->idempotency_key),
        flag_token_file(&r->token_file),   flag_trace(&r->trace),
        flag_gateway_url(&r->gateway_url), {0},
    };
    const struct usage usage = {
        .name = "rm",
        .arguments = "KEY",
        .examples = "  pawl rm orders:42/invoice.pdf            # PAWL_FENCING_TOKEN proves the hold of "
                    "lease orders:42\n",
        .summary =
            "Deletes the resource KEY. Exit status 1: there is none; 76: you are not the holder any more.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status == CLI_GO_ON) {
        r->key = arguments[0];
        r->ask = (struct ask){
            .what = "rm", .wants = ASK_DELETED, .trace = r->trace, .request.method = "DELETE"};
        status = ask_resource(&r->ask, r->gateway_url, r->key);
    }
    if (status == CLI_GO_ON && r->idempotency_key != NULL &&
        !name_is_idempotency_key(bytes_of(r->idempotency_key))) {
        status = cli_fail(CLI_USAGE, "--idempotency-key takes 1 to 128 visible ASCII characters");
    }
    if (status == CLI_GO_ON) {
        status = flags_check_line("--if-match", r->if_match);
    }
    return status == CLI_GO_ON ? secret_token(r->token_file, r->token) : status;
}

int cli_rm(int argc, char **argv)
{
    struct rm r = {0};
    struct http_client_answer answer = {0};
    int status = rm_read(&r, argc, argv);

    if (status == CLI_GO_ON) {
        ask_header(&r.ask, "Fencing-Token", bytes_of(r.token));
        ask_header(&r.ask, "If-Match", bytes_of(r.if_match));
        ask_header(&r.ask, "Idempotency-Key", bytes_of(r.idempotency_key));
        status = ask_send(&r.ask, &answer);
    }
    if (status == CLI_GO_ON) {
        print_safe(stdout, bytes_of(r.key));
        puts(" deleted");
        status = CLI_OK;
    }
    http_client_answer_done(&answer);
    ask_done(&r.ask);
    return status;
}
