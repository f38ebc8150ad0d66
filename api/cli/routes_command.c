/* routes_command.c - pawl routes [show|adopt]: which route table a gateway has, and that all gateways on its
 * store are to serve it.
 *
 *   routes_read    which of the two            64, or go on
 *   routes_show    GET                         0 | 1
 *   routes_adopt   POST                        0 | 1 (what to do) */
#include <inttypes.h>
#include <string.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "api/cli/suggest.h"

enum { NUMBER_SIZE = 24 };

struct routes {
    const char *gateway_url;
    enum output output;
    bool adopt, trace;
    struct ask ask;
};

static void routes_show(const struct json *json);
static void routes_adopt(const struct json *json);

static int routes_word(struct routes *r, const char *word)
{
    static const char *const words[] = {"show", "adopt", NULL};
    const char *near;

    if (word == NULL || strcmp(word, "show") == 0) {
        return CLI_GO_ON;
    }
    if (strcmp(word, "adopt") == 0) {
        r->adopt = true;
        return CLI_GO_ON;
    }
    near = suggest(word, words);
    if (near != NULL) {
        return cli_fail(CLI_USAGE, "there is no \"pawl routes %s\"; did you mean \"pawl routes %s\"?", word,
                        near);
    }
    return cli_fail(CLI_USAGE, "there is no \"pawl routes %s\"; see pawl routes --help", word);
}

static int routes_read(struct routes *r, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_output(&r->output, "text|json"),
        flag_trace(&r->trace),
        flag_gateway_url(&r->gateway_url),
        {0},
    };
    const struct usage usage = {
        .name = "routes",
        .arguments = "[show|adopt]",
        .examples =
            "  pawl routes                                        # the hash of this gateway's routes\n"
            "  pawl --gateway-url http://10.0.0.7:8701 routes     # and of another's\n"
            "  pawl routes adopt                                  # all are to serve this gateway's\n",
        .summary =
            "All gateways on a store serve the same route table: one that has another answers 503\n"
            "routes-differ. To change it, give all of them the new file (they read it again on SIGHUP), "
            "then\n"
            "adopt it at one of them. That is refused while writes are open that went by the table of\n"
            "before: by other routes another lease may guard what they go to.\n"
            "\n"
            "Exit status 1: this gateway has no routes, or writes are open.",
        .flags = flags,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status == CLI_GO_ON) {
        status = routes_word(r, arguments[0]);
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    r->ask = (struct ask){.what = r->adopt ? "routes adopt" : "routes",
                          .wants = ASK_JSON,
                          .needs = r->adopt ? "hash before" : "hash routes",
                          .output = r->output,
                          .trace = r->trace,
                          .request.method = r->adopt ? "POST" : "GET"};
    return ask_gateway(&r->ask, r->gateway_url, r->adopt ? "/v1/routes/adopt" : "/v1/routes");
}

static void routes_show(const struct json *json)
{
    static const char *const head[] = {"HASH", "ROUTES"};
    struct print_table table = {.head = head, .columns = sizeof(head) / sizeof(head[0])};
    char count[NUMBER_SIZE];

    snprintf(count, sizeof(count), "%" PRId64, ask_int(json, "routes"));
    print_table_add(&table, ask_text(json, "hash"));
    print_table_add(&table, bytes_of(count));
    print_table_end(&table);
}

static void routes_adopt(const struct json *json)
{
    struct bytes hash = ask_text(json, "hash"), before = ask_text(json, "before");

    print_safe(stdout, hash);
    if (bytes_equal(hash, before)) {
        puts(" is served already; nothing was changed");
        return;
    }
    puts(" is served from now on");
    if (before.len > 0) {
        cli_hint("Gateways with other routes answer 503 routes-differ until they have this file.");
    }
}

static int routes_take(const struct routes *r, const struct http_client_answer *answer)
{
    struct json *json = ask_json(&r->ask, answer);

    if (json == NULL) {
        return CLI_BUG;
    }
    if (r->output == OUTPUT_JSON) {
        puts(answer->body);
    } else if (r->adopt) {
        routes_adopt(json);
    } else {
        routes_show(json);
    }
    json_free(json);
    return CLI_OK;
}

/* The refusal says how many there are; this, where to look. */
static void tell_open(void)
{
    cli_hint(
        "pawl resolve LEASE shows what is open for a lease, and of which gateway. What is being sent ends "
        "by itself, a grace too.");
    cli_hint("For the rest look at the upstream, then: pawl resolve LEASE --all. A gateway that never comes "
             "back: pawl resolve --gateway ID --dead.");
}

int cli_routes(int argc, char **argv)
{
    struct routes r = {0};
    struct http_client_answer answer = {0};
    int status = routes_read(&r, argc, argv);

    if (status == CLI_GO_ON) {
        status = ask_send(&r.ask, &answer);
        if (ask_is_problem(&answer, "intents-open")) {
            tell_open();
        }
    }
    if (status == CLI_GO_ON) {
        status = routes_take(&r, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&r.ask);
    return status;
}
