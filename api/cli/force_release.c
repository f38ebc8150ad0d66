/* force_release.c - pawl force-release: an administrator ends a hold.
 *
 *   force_read      flags                                                      64, or go on
 *   force_look      on a terminal: who would lose it; that very hold is meant  69, or go on
 *   force_confirm   on a terminal: the name, typed                             1, or go on
 *   force_send      POST, once                                                 0 | 1 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/confirm.h"
#include "api/cli/flags.h"
#include "api/cli/look.h"
#include "api/cli/print.h"
#include "shared/json_write.h"
#include "shared/record/name.h"

enum { TOKEN_CHARS_MAX = 15, NUMBER_SIZE = 24 };

struct force {
    const char *lease_url, *name, *reason, *expect_text;
    int64_t expect_token; /* 0: whoever holds it */
    bool yes, trace;
    enum output output;
};

static const char *force_wrong(struct force *f)
{
    const char *digits = f->expect_text;

    if (f->reason != NULL && !name_is_reason(bytes_of(f->reason))) {
        return "--reason takes 1 to 256 bytes of printable UTF-8";
    }
    if (digits == NULL) {
        return NULL;
    }
    f->expect_token = strtoll(digits, NULL, 10);
    if (strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > TOKEN_CHARS_MAX ||
        f->expect_token == 0) {
        return "--expect-token takes a token: a whole number from 1";
    }
    return NULL;
}

static int force_read(struct force *f, int argc, char **argv)
{
    const struct flag flags[] = {
        {.name = "reason",
         .value = "TEXT",
         .help = "why; it stands in the history",
         .text = &f->reason,
         .where = FLAG_COMMAND_LINE},
        {.name = "expect-token",
         .value = "N",
         .help = "only the hold that has this token",
         .text = &f->expect_text,
         .where = FLAG_COMMAND_LINE},
        {.name = "yes", .help = "do not ask", .on = &f->yes},
        flag_output(&f->output, "text|json|env"),
        flag_trace(&f->trace),
        flag_lease_url(&f->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "force-release",
        .arguments = "NAME",
        .examples = "  pawl force-release orders:42 --reason 'host3 is gone'\n"
                    "  pawl force-release orders:42 --reason 'host3 is gone' --expect-token 34 --yes\n",
        .summary =
            "Ends every hold of the lease NAME, or the one that has --expect-token. Whoever held it is told\n"
            "at the next renewal, its token is stale at once, and who waits is served. On a terminal it\n"
            "shows who would lose it, asks for the name once more, and then means that very hold. In a "
            "script\n"
            "say --yes. Exit status 1: nobody holds it with that token, or this was not confirmed.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1], *wrong;
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    f->name = arguments[0];
    wrong = force_wrong(f);
    if (wrong != NULL) {
        return cli_fail(CLI_USAGE, "%s", wrong);
    }
    if (!f->yes && !isatty(STDIN_FILENO)) {
        return cli_fail(CLI_USAGE, "somebody loses the lease by this: say --yes, or do it on a terminal");
    }
    return CLI_GO_ON;
}

/* -- sure? */

/* Who is shown is who is meant: not one who comes while the name is being typed. */
static void force_mean(struct force *f, const struct json *look)
{
    enum json_found found;
    const struct json *holder = json_list_count(look, "holders", &found) == 1
                                    ? json_list_object(look, "holders", 0)
                                    : NULL;

    if (f->expect_token == 0 && holder != NULL) {
        f->expect_token = ask_int(holder, "token");
    }
}

static int force_look(struct force *f)
{
    struct ask ask = {.what = "force-release",
                      .wants = ASK_JSON,
                      .needs = "lease state token holders waiting",
                      .output = f->output,
                      .trace = f->trace,
                      .request.method = "GET"};
    struct http_client_answer answer = {0};
    struct json *json = NULL;
    int status = ask_lease(&ask, f->lease_url, f->name);

    if (status == CLI_GO_ON) {
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        json = ask_json(&ask, &answer);
        status = json != NULL ? CLI_GO_ON : CLI_BUG;
    }
    if (json != NULL) {
        look_print_text(stderr, json);
        force_mean(f, json);
    }
    json_free(json);
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

static int force_confirm(const struct force *f)
{
    fprintf(stderr, "Its holder is told only when it asks; until then it may go on working.\n");
    return confirm_name(f->name);
}

/* -- the deed */

static void force_body(const struct force *f, struct json_out *body)
{
    json_object(body, NULL);
    if (f->reason != NULL) {
        json_text(body, "reason", bytes_of(f->reason));
    }
    if (f->expect_token > 0) {
        json_int(body, "expect_token", f->expect_token);
    }
    json_object_end(body);
}

static int force_show(const struct force *f, const struct ask *ask, const struct http_client_answer *answer)
{
    struct json *json = ask_json(ask, answer);
    int64_t token = json != NULL ? ask_int(json, "released_token") : 0;
    char text[NUMBER_SIZE];

    if (json == NULL) {
        return CLI_BUG;
    }
    snprintf(text, sizeof(text), "%" PRId64, token);
    if (f->output == OUTPUT_JSON) {
        puts(answer->body);
    } else if (f->output == OUTPUT_ENV) {
        print_env("LEASE_RELEASED_TOKEN", bytes_of(text));
    } else if (token == 0) {
        printf("%s: nobody held it\n", f->name);
    } else {
        printf("%s: the hold with token %s has ended\n", f->name, text);
    }
    json_free(json);
    return CLI_OK;
}

static int force_send(const struct force *f)
{
    struct ask ask = {.what = "force-release",
                      .wants = ASK_JSON,
                      .needs = "released_token",
                      .output = f->output,
                      .trace = f->trace,
                      .request.method = "POST"};
    struct http_client_answer answer = {0};
    struct json_out body;
    int status = ask_lease_deed(&ask, f->lease_url, f->name, "/force-release");

    json_out_init(&body);
    if (status == CLI_GO_ON) {
        force_body(f, &body);
        ask.request.body = json_out_bytes(&body);
        ask_header(&ask, "Content-Type", BYTES("application/json"));
        status = ask_send(&ask, &answer);
    }
    if (status == CLI_GO_ON) {
        status = force_show(f, &ask, &answer);
    }
    json_out_done(&body);
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

int cli_force_release(int argc, char **argv)
{
    struct force f = {0};
    int status = force_read(&f, argc, argv);

    if (status == CLI_GO_ON && !f.yes) {
        status = force_look(&f);
    }
    if (status == CLI_GO_ON && !f.yes) {
        status = force_confirm(&f);
    }
    return status == CLI_GO_ON ? force_send(&f) : status;
}
