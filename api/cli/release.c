/* release.c - pawl release: give a lease back.
 *
 *   release_read   flags and the lease_id    64, or go on
 *   cli_release    DELETE                    0 | 76 */
#include <inttypes.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/secret.h"

struct release {
    const char *lease_url, *lease_id_file, *name;
    enum output output;
    bool trace;
    char lease_id[SECRET_SIZE];
    struct ask ask;
};

static int release_read(struct release *r, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_lease_id_file(&r->lease_id_file),
        flag_output(&r->output, "text|json|env"),
        flag_trace(&r->trace),
        flag_lease_url(&r->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "release",
        .arguments = "NAME",
        .examples = "  pawl release orders:42                 # PAWL_LEASE_ID says which hold\n"
                    "  pawl release orders:42 --lease-id-file /run/me/orders:42\n"
                    "  eval \"$(pawl release orders:42 -o env)\"   # and the variables are gone\n",
        .summary = "Gives the lease NAME back. Doing it again does no harm. Exit status 76: the hold was "
                   "lost before.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status == CLI_GO_ON) {
        r->name = arguments[0];
        r->ask = (struct ask){
            .what = "release", .wants = ASK_RELEASED, .output = r->output, .trace = r->trace};
        status = ask_lease(&r->ask, r->lease_url, r->name);
    }
    return status == CLI_GO_ON ? secret_lease_id(r->lease_id_file, r->lease_id) : status;
}

static int release_show(const struct release *r, const struct http_client_answer *answer)
{
    struct json *json = answer->len > 0 ? ask_json(&r->ask, answer) : NULL;

    if (answer->len > 0 && json == NULL) {
        return CLI_BUG;
    }
    if (r->output == OUTPUT_JSON && json != NULL) {
        puts(answer->body);
    } else if (r->output == OUTPUT_ENV && json == NULL) {
        puts("unset PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN PAWL_LEASE_ID");
    } else if (r->output == OUTPUT_TEXT && json != NULL) {
        printf("%s released once; %" PRId64 " more to go\n", r->name, ask_int(json, "holds"));
    } else if (r->output == OUTPUT_TEXT) {
        printf("%s released\n", r->name);
    }
    json_free(json);
    return CLI_OK;
}

int cli_release(int argc, char **argv)
{
    struct release r = {0};
    struct http_client_answer answer = {0};
    int status = release_read(&r, argc, argv);

    if (status == CLI_GO_ON) {
        r.ask.request.method = "DELETE";
        ask_header(&r.ask, "Lease-Id", bytes_of(r.lease_id));
        status = ask_send(&r.ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = release_show(&r, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&r.ask);
    return status;
}
