/* get.c - pawl get: who holds a lease. */
#include <inttypes.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"

struct get {
    const char *lease_url;
    enum output output;
    struct ask ask;
};

static int get_read(struct get *g, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_output(&g->output, "text|json"),
        flag_lease_url(&g->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "get",
        .arguments = "NAME",
        .examples = "  pawl get orders:42\n"
                    "  pawl get orders:42 -o json | jq -r .state\n",
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
    g->ask = (struct ask){.what = "get", .request.method = "GET"};
    return ask_lease(&g->ask, g->lease_url, arguments[0]);
}

static void get_show_holder(const struct json *holder)
{
    char left[PRINT_DURATION_SIZE], since[PRINT_DURATION_SIZE], meta[2048];
    size_t len = 0;

    print_duration(left, ask_int(holder, "expires_in_ms"));
    print_duration(since, ask_int(holder, "held_for_ms"));
    printf("  ");
    print_safe(stdout, ask_text(holder, "holder"));
    printf(", token %" PRId64 ", ", ask_int(holder, "token"));
    print_safe(stdout, ask_text(holder, "mode"));
    printf(": for %s, %s left", since, left);
    if (json_get_object_raw(holder, "meta", meta, sizeof(meta), &len) == JSON_FOUND && len > 2 &&
        len <= sizeof(meta)) {
        printf(", ");
        print_safe(stdout, (struct bytes){meta, len});
    }
    putchar('\n');
}

static void get_show_text(const struct json *json)
{
    enum json_found found;
    size_t count = json_list_count(json, "holders", &found);

    print_safe(stdout, ask_text(json, "lease"));
    printf(" is ");
    print_safe(stdout, ask_text(json, "state"));
    if (ask_int(json, "token") > 0) {
        printf(", last token %" PRId64, ask_int(json, "token"));
    }
    if (ask_int(json, "waiting") > 0) {
        printf(", %" PRId64 " waiting", ask_int(json, "waiting"));
    }
    putchar('\n');
    for (size_t i = 0; i < count; i++) {
        const struct json *holder = json_list_object(json, "holders", i);

        if (holder != NULL) {
            get_show_holder(holder);
        }
    }
}

static int get_show(const struct get *g, const struct http_client_answer *answer)
{
    struct json *json = ask_json(&g->ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    if (g->output == OUTPUT_JSON) {
        puts(answer->body);
    } else {
        get_show_text(json);
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
