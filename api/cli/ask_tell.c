/* ask_tell.c - what became of a question, as it is told: the refusal, or that nobody knows. */
#include <stdlib.h>

#include "api/cli/ask_judge.h"
#include "api/cli/cli.h"
#include "api/cli/doubt.h"
#include "api/cli/print.h"
#include "shared/problem.h"

enum { JSON_LEVELS = 16, WHAT_SIZE = 640 };

/* "acquire orders:42" */
static const char *what_of(const struct ask *ask, char buf[WHAT_SIZE])
{
    snprintf(buf, WHAT_SIZE, "%s%s%s", ask->what, ask->name != NULL ? " " : "",
             ask->name != NULL ? ask->name : "");
    return buf;
}

/* A read changes nothing, whatever became of it; but a fenced one keeps older writes from landing. */
static bool changes_nothing(const struct http_client_request *request)
{
    for (unsigned i = 0; i < HTTP_CLIENT_HEADERS_MAX && request->headers[i].name != NULL; i++) {
        if (strcmp(request->headers[i].name, "Fencing-Token") == 0 && request->headers[i].value.len > 0) {
            return false;
        }
    }
    return strcmp(request->method, "GET") == 0;
}

/* -- a refusal */

/* What it says beyond its sentence, if it does. */
static void tell_member(const struct json *json, const char *name, const char *label)
{
    struct bytes text = ask_text(json, name);

    if (text.len > 0) {
        fprintf(stderr, "  %s: ", label);
        print_safe(stderr, text);
        fputc('\n', stderr);
    }
}

static void tell_number(const struct json *json, const char *name, const char *label)
{
    int64_t number = 0;

    if (json_get_int(json, name, &number) == JSON_FOUND) {
        fprintf(stderr, "  %s: %lld\n", label, (long long)number);
    }
}

static void tell_members(const struct json *json)
{
    char duration[PRINT_DURATION_SIZE];
    int64_t ms = 0;

    tell_member(json, "holder", "holder");
    tell_number(json, "token", "token");
    tell_number(json, "presented_token", "token sent");
    tell_number(json, "current_token", "current token");
    tell_member(json, "ended", "the hold ended");
    tell_number(json, "intents", "writes that are open");
    tell_number(json, "gateways_in_doubt", "gateways that have yet to say what they have sent");
    if (json_get_int(json, "expires_in_ms", &ms) == JSON_FOUND) {
        print_duration(duration, ms);
        fprintf(stderr, "  free in: %s, if it is not renewed\n", duration);
    }
    tell_member(json, "code", "code");
    tell_member(json, "instance", "request");
}

/* A problem that this program does not know is a newer service's. */
static int status_of(unsigned http_status, struct bytes code)
{
    enum problem problem = problem_find(code);

    if (problem != PROBLEM_NONE) {
        return problem_info(problem)->exit_status;
    }
    return http_status >= 500 ? CLI_UNREACHABLE : CLI_REFUSED;
}

static int tell_refusal(const struct ask *ask, const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    bool in_doubt = ask_doubt_of(answer) == ASK_IN_DOUBT && !changes_nothing(&ask->request);
    enum doubt doubt = in_doubt ? DOUBT_UNKNOWN : DOUBT_NOT_DONE;
    struct bytes code = json != NULL ? ask_text(json, "code") : BYTES("");
    int status = status_of(answer->status, code);
    char what[WHAT_SIZE];

    if (json == NULL) {
        return cli_fail(CLI_BUG, "%s: the answer cannot be read: %s", what_of(ask, what), why);
    }
    if (status == CLI_UNREACHABLE || in_doubt) {
        doubt_say(doubt);
        doubt_show(doubt, ask->output, code, ask_text(json, "detail"));
    } else {
        fputs("pawl: ", stderr);
    }
    print_safe(stderr, bytes_of(what_of(ask, what)));
    fputs(": ", stderr);
    print_safe(stderr, ask_text(json, "title"));
    fputs("\n  ", stderr);
    print_safe(stderr, ask_text(json, "detail"));
    fputc('\n', stderr);
    tell_members(json);
    json_free(json);
    return status;
}

/* -- no answer */

static int tell_unknown(const struct ask *ask, const struct http_client_answer *answer)
{
    enum doubt doubt = changes_nothing(&ask->request) ? DOUBT_NOT_DONE : DOUBT_UNKNOWN;
    char what[WHAT_SIZE];

    doubt_tell(doubt, ask->output, "%s: %s%s", what_of(ask, what),
               answer->status == 0 ? "no whole answer came: " : "", answer->why);
    cli_hint("%s %s right, and what stands between?",
             doubt == DOUBT_UNKNOWN ? "Look before you go on: is" : "Is", ask->flag);
    return CLI_UNREACHABLE;
}

int ask_tell(const struct ask *ask, enum http_client_outcome outcome, const struct http_client_answer *answer)
{
    char what[WHAT_SIZE];

    switch (outcome) {
    case HTTP_CLIENT_NOT_SENT:
        doubt_tell(DOUBT_NOT_DONE, ask->output, "%s: %s cannot be reached: %s", what_of(ask, what),
                   ask->service, answer->why);
        cli_hint("Is it running (pawl dev starts one), and is %s right?", ask->flag);
        return CLI_UNREACHABLE;
    case HTTP_CLIENT_UNKNOWN: return tell_unknown(ask, answer);
    case HTTP_CLIENT_ANSWERED:
        return answer->status >= 200 && answer->status < 300 ? CLI_GO_ON : tell_refusal(ask, answer);
    }
    abort();
}

int ask_send(struct ask *ask, struct http_client_answer *answer)
{
    return ask_tell(ask, ask_try(ask, answer), answer);
}
