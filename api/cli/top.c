/* top.c - pawl top: how things stand, anew each second, until Ctrl-C.
 *
 *   top_once   the overview, and the leases if they can be had          69 | 77 ..., or go on
 *   top_show   what is the matter, numbers, services, what is worth a look, leases
 *
 * It asks each second and does not follow the stream: what cannot be asked is seen not to be of now. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/verb.h"

enum { EACH_MS = 1000, ANSWER_MS = 3000 };

static const struct show_column member_columns[] = {
    {"SERVICE", NULL, "kind", SHOW_TEXT},    {"NAME", NULL, "name", SHOW_TEXT},
    {"VERSION", NULL, "version", SHOW_TEXT}, {"HEARD", NULL, "heard_ms", SHOW_DURATION},
    {"UP", NULL, "up_ms", SHOW_DURATION},    {"STATE", NULL, "state", SHOW_TEXT},
    {"ID", NULL, "id", SHOW_TEXT},           {0},
};
static const struct show_column look_columns[] = {
    {"WORTH A LOOK", NULL, "lease", SHOW_TEXT},    {"WHY", NULL, "kind", SHOW_TEXT},
    {"FOR", NULL, "for_ms", SHOW_DURATION},        {"CODE", NULL, "code", SHOW_TEXT_OR_DASH},
    {"HOLDER", NULL, "holder", SHOW_TEXT_OR_DASH}, {0},
};
static const struct show_column lease_columns[] = {
    {"LEASE", NULL, "lease", SHOW_TEXT},
    {"HOLDER", NULL, "holders.holder", SHOW_TEXT_OR_DASH},
    {"TOKEN", NULL, "token", SHOW_NUMBER},
    {"HELD FOR", NULL, "holders.held_for_ms", SHOW_DURATION},
    {"LEFT", NULL, "holders.expires_in_ms", SHOW_DURATION},
    {"WAITING", NULL, "waiting", SHOW_NUMBER},
    {0},
};

static const struct verb top = {
    .name = "top",
    .flags = "once output trace lease-url",
    .outputs = "text|json",
    .asks = {OF_ITS_OWN, "GET", NULL, REQUEST_JSON, "members counts look"},
};

/* -- asking */

static int top_address(const struct call *call, struct request *request, const char *path, const char *needs)
{
    *request = call->request;
    request->needs = needs;
    request->http.timeout_ms = ANSWER_MS;
    return request_service(request, REQUEST_LEASE_SERVICE, call->given.lease_url, path);
}

/* -- showing */

static void condition_show(const struct json *overview)
{
    enum json_found found, counted;
    const struct json *condition = json_get_object(overview, "condition", &found);
    struct bytes detail = request_text(condition, "detail"), remedy = request_text(condition, "remedy");
    struct bytes command = request_text(condition, "command");
    char duration[PRINT_DURATION_SIZE];
    int64_t number;

    if (condition == NULL) {
        const struct json *counts = json_get_object(overview, "counts", &counted);
        bool is_counted = json_get_int(counts, "in_doubt", &number) == JSON_FOUND;

        puts(is_counted ? "All is well." : "Nothing is known to be wrong.");
        return;
    }
    print_safe(stdout, request_text(condition, "code"));
    if (json_get_int(condition, "for_ms", &number) == JSON_FOUND)
        printf(" for %s", print_duration(duration, number));
    print_line(stdout, "%s%.*s", detail.len > 0 ? ": " : "", (int)detail.len, detail.at);
    print_line(stdout, "%.*s%s%.*s", (int)remedy.len, remedy.at, command.len > 0 ? " Command: " : "",
               (int)command.len, command.at);
}

static void counts_show(const struct json *overview)
{
    static const char *const names[] = {"held", "waiting", "delayed", "sessions", "in_doubt"};
    static const char *const words[] = {"held", "waiting", "delayed", "sessions", "in doubt"};
    enum json_found found;
    const struct json *counts = json_get_object(overview, "counts", &found);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int64_t count;

        if (json_get_int(counts, names[i], &count) == JSON_FOUND)
            printf("%s%" PRId64 " %s", i > 0 ? "   " : "", count, words[i]);
        else
            printf("%s- %s", i > 0 ? "   " : "", words[i]);
    }
    putchar('\n');
}

static void top_show(const struct call *call, const struct request *overview, const struct request *leases)
{
    if (call->given.output == OUTPUT_JSON) {
        printf("%.*s\n", (int)overview->answer.len, overview->answer.body);
        return;
    }
    condition_show(overview->json);
    counts_show(overview->json);
    show_table(member_columns, overview->json, "members", "\n");
    show_table(look_columns, overview->json, "look", "\n");
    if (leases->answer.status == 200)
        show_table(lease_columns, leases->json, "items", "\n");
}

/* -- until Ctrl-C */

/* The picture of before goes also when there is no new one: old data never look live. */
static int top_once(const struct call *call)
{
    struct request overview = {0}, leases = {0};
    bool clears = !call->given.once && call->given.output != OUTPUT_JSON && isatty(STDOUT_FILENO);
    int status = top_address(call, &overview, "/v1/overview", "members counts look");

    status = status == CLI_GO_ON ? request_send(&overview) : status;
    if (status == CLI_GO_ON && call->given.output != OUTPUT_JSON &&
        top_address(call, &leases, "/v1/leases?limit=20", "items") == CLI_GO_ON)
        request_try(&leases); /* a store that is away stands above */
    if (clears)
        fputs("\033[H\033[J", stdout);
    if (status == CLI_GO_ON)
        top_show(call, &overview, &leases);
    else if (clears)
        puts("no news: standard error says why");
    fflush(stdout);
    request_done(&overview);
    request_done(&leases);
    return status;
}

int cli_top(int argc, char **argv)
{
    struct call call = {.verb = &top};
    int status = verb_read(&call, argc, argv);
    bool ever = false;

    if (status != CLI_GO_ON)
        return status;
    cli_until_interrupted();
    do {
        status = top_once(&call);
        ever = ever || status == CLI_GO_ON;
        if (!call.given.once && !ferror(stdout))
            poll(NULL, 0, EACH_MS);
    } while (!call.given.once && !ferror(stdout) &&
             (status == CLI_GO_ON || (ever && status == CLI_UNREACHABLE)));
    return status == CLI_GO_ON ? CLI_OK : status;
}
