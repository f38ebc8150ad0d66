/* grant.c - a grant as it is shown. */
#include "api/cli/grant.h"

#include <inttypes.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"

enum { NUMBER_SIZE = 24 };

static const struct {
    const char *done, *word;
} kinds[] = {
    [GRANT_NEW] = {"acquired", "new"},
    [GRANT_SAME] = {"is held already", "same"},
    [GRANT_RENEWED] = {"renewed", NULL},
};

static void env_number(const struct json *json, const char *name, const char *variable)
{
    char text[NUMBER_SIZE];
    int len = snprintf(text, sizeof(text), "%" PRId64, ask_int(json, name));

    print_env(variable, (struct bytes){text, (size_t)len});
}

/* LEASE_...: what is PAWL_... would speak to the next command. */
static void grant_show_env(const struct json *json, enum grant_kind kind)
{
    print_env("PAWL_LEASE", ask_text(json, "lease"));
    env_number(json, "token", "PAWL_TOKEN");
    print_env("PAWL_FENCING_TOKEN", ask_text(json, "fencing_token"));
    print_env("PAWL_LEASE_ID", ask_text(json, "lease_id"));
    if (kinds[kind].word != NULL) {
        print_env("LEASE_GRANT", bytes_of(kinds[kind].word));
        env_number(json, "holds", "LEASE_HOLDS");
    }
    puts("export PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN PAWL_LEASE_ID");
}

static void grant_show_text(const struct json *json, enum grant_kind kind)
{
    char duration[PRINT_DURATION_SIZE];

    print_duration(duration, ask_int(json, "expires_in_ms"));
    print_safe(stdout, ask_text(json, "lease"));
    printf(" %s: token %" PRId64 ", %s left\n", kinds[kind].done, ask_int(json, "token"), duration);
}

/* The object as it came, with one member more at its end. */
static void grant_show_json(const struct http_client_answer *answer, enum grant_kind kind)
{
    const char *end = memrchr(answer->body, '}', answer->len); /* it has been parsed: there is one */

    if (kinds[kind].word == NULL || end == NULL) {
        puts(answer->body);
    } else {
        printf("%.*s,\"grant\":\"%s\"}\n", (int)(end - answer->body), answer->body, kinds[kind].word);
    }
}

int grant_show(const struct ask *ask, const struct http_client_answer *answer, enum grant_kind kind)
{
    struct json *json = ask_json(ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    switch (ask->output) {
    case OUTPUT_JSON: grant_show_json(answer, kind); break;
    case OUTPUT_ENV: grant_show_env(json, kind); break;
    case OUTPUT_TEXT: grant_show_text(json, kind); break;
    }
    json_free(json);
    return CLI_OK;
}
