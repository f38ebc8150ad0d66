/* renew.c - pawl renew: hold a lease longer.
 *
 *   renew_read   flags and the lease_id    64, or go on
 *   cli_renew    PUT; once more when its end is not known, which is safe */
#include <inttypes.h>

#include "api/cli/cli.h"
#include "api/cli/grant.h"
#include "api/cli/secret.h"

struct renew {
    const char *lease_url, *lease_id_file;
    uint64_t ttl_ms;
    enum output output;
    bool trace;
    char lease_id[SECRET_SIZE], body[64];
    struct ask ask;
};

static int renew_read(struct renew *r, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_ttl(&r->ttl_ms),
        flag_lease_id_file(&r->lease_id_file),
        flag_output(&r->output, "text|json|env"),
        flag_trace(&r->trace),
        flag_lease_url(&r->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "renew",
        .arguments = "NAME",
        .examples =
            "  pawl renew orders:42                   # PAWL_LEASE_ID says which hold; the ttl of before\n"
            "  pawl renew orders:42 --ttl 1h --lease-id-file /run/me/orders:42\n",
        .summary =
            "Holds the lease NAME for its ttl from now, longer or shorter. Exit status 76: the hold is lost.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status == CLI_GO_ON) {
        r->ask = (struct ask){.what = "renew",
                              .wants = ASK_GRANT,
                              .lease_id = r->lease_id,
                              .output = r->output,
                              .trace = r->trace,
                              .repeat = ASK_TWICE};
        status = ask_lease(&r->ask, r->lease_url, arguments[0]);
    }
    return status == CLI_GO_ON ? secret_lease_id(r->lease_id_file, r->lease_id) : status;
}

int cli_renew(int argc, char **argv)
{
    struct renew r = {0};
    struct http_client_answer answer = {0};
    int status = renew_read(&r, argc, argv);

    if (status == CLI_GO_ON) {
        int len = r.ttl_ms > 0 ? snprintf(r.body, sizeof(r.body), "{\"ttl_ms\":%" PRIu64 "}", r.ttl_ms) : 0;

        r.ask.request.method = "PUT";
        r.ask.request.body = (struct bytes){r.body, (size_t)len};
        ask_header(&r.ask, "Lease-Id", bytes_of(r.lease_id));
        ask_header(&r.ask, "Content-Type", len > 0 ? BYTES("application/json") : BYTES(""));
        status = ask_send(&r.ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = grant_show(&r.ask, &answer, GRANT_RENEWED);
    }
    http_client_answer_done(&answer);
    ask_done(&r.ask);
    return status;
}
