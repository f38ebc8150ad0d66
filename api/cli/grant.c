/* grant.c - a grant as it is shown. */
#include "api/cli/grant.h"

#include <inttypes.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"

static void grant_show_env(const struct json *json)
{
    char token[24];
    int len = snprintf(token, sizeof(token), "%" PRId64, ask_int(json, "token"));

    print_env("PAWL_LEASE", ask_text(json, "lease"));
    print_env("PAWL_TOKEN", (struct bytes){token, (size_t)len});
    print_env("PAWL_FENCING_TOKEN", ask_text(json, "fencing_token"));
    print_env("PAWL_LEASE_ID", ask_text(json, "lease_id"));
    puts("export PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN PAWL_LEASE_ID");
}

static void grant_show_text(const struct json *json, const char *done)
{
    char duration[PRINT_DURATION_SIZE];

    print_duration(duration, ask_int(json, "expires_in_ms"));
    print_safe(stdout, ask_text(json, "lease"));
    printf(" %s: token %" PRId64 ", %s left\n", done, ask_int(json, "token"), duration);
}

int grant_show(const struct ask *ask, const struct http_client_answer *answer, enum output output,
               const char *done)
{
    struct json *json = ask_json(ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    switch (output) {
    case OUTPUT_JSON: puts(answer->body); break;
    case OUTPUT_ENV: grant_show_env(json); break;
    case OUTPUT_TEXT: grant_show_text(json, done); break;
    }
    json_free(json);
    return CLI_OK;
}
