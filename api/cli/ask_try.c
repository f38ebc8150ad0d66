/* ask_try.c - one question, asked once more where that is safe, and what its end is worth then. */
#include "api/cli/ask_judge.h"
#include "api/cli/trace.h"

enum { JSON_LEVELS = 16 };

bool ask_is_problem(const struct http_client_answer *answer, const char *code)
{
    const char *why = NULL;
    struct json *json = answer->status >= 400
                            ? json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why)
                            : NULL;
    bool is = json != NULL && bytes_are(ask_text(json, "code"), code);

    json_free(json);
    return is;
}

static void try_prepare(struct ask *ask)
{
    if (ask->prepare != NULL) {
        ask->prepare(ask);
    }
}

static enum http_client_outcome try_once(const struct ask *ask, struct http_client_answer *answer)
{
    enum http_client_outcome outcome = http_client_send(&ask->request, answer);

    if (outcome == HTTP_CLIENT_ANSWERED && !ask_is_pawls(ask, answer)) {
        snprintf(answer->why, sizeof(answer->why), "it was answered %u, and not as Pawl does",
                 answer->status);
        return HTTP_CLIENT_UNKNOWN;
    }
    return outcome;
}

/* What was said to the repeat is no word about the attempt before it. */
static enum http_client_outcome try_refused(struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    struct bytes code = json != NULL ? ask_text(json, "code") : BYTES("");

    snprintf(answer->why, sizeof(answer->why), "the first attempt has no known end; the second was told %.*s",
             (int)code.len, code.len > 0 ? code.at : "");
    json_free(json);
    return HTTP_CLIENT_UNKNOWN;
}

enum http_client_outcome ask_try(struct ask *ask, struct http_client_answer *answer)
{
    enum http_client_outcome outcome;
    bool known;

    try_prepare(ask);
    if (ask->trace) {
        trace_curl(stderr, &ask->request, ask->body_from);
    }
    outcome = try_once(ask, answer);
    known = outcome == HTTP_CLIENT_NOT_SENT ||
            (outcome == HTTP_CLIENT_ANSWERED && ask_doubt_of(answer) != ASK_IN_DOUBT);
    if (known || ask->repeat == ASK_ONCE) {
        return outcome;
    }
    http_client_answer_done(answer);
    ask->repeated = true;
    try_prepare(ask);
    outcome = try_once(ask, answer);
    if (outcome == HTTP_CLIENT_ANSWERED && ask_doubt_of(answer) == ASK_REFUSED) {
        return try_refused(answer);
    }
    /* The first may have happened: that the second did not leave does not make it certain. */
    return outcome == HTTP_CLIENT_NOT_SENT ? HTTP_CLIENT_UNKNOWN : outcome;
}
