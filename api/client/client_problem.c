/* client_problem.c - what an answer says, by itself. Nothing that may have happened is ever called a
 * refusal. */
#include "api/client/client.h"
#include "shared/text/utf8.h"

enum { STATUS_HELD = 75, STATUS_LOST = 76 };

/* All that a problem of the first version had. */
#define PROBLEM_FIRST (offsetof(struct pawl_problem, retry_after_ms) + sizeof(int64_t))

/* The exit status of the command line tells the kinds of refusal apart: 75 held by another, 76 lost. */
static const struct known {
    const char *code;
    unsigned status;
    int retryable, kind;
} known_problems[] = {
#define PROBLEM(name, code, status, retryable, exit, title, detail) {code, status, retryable, exit},
#include "api/problems.def"
#undef PROBLEM
};

/* -- the caller's structs */

bool client_size_fits(size_t size, size_t first)
{
    return size >= first && size < 65536;
}

static size_t size_of(const void *of)
{
    size_t size;

    memcpy(&size, of, sizeof(size)); /* each of them begins with it */
    return size;
}

void client_give(void *to, const void *from, size_t known)
{
    size_t size = size_of(to);

    memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
           (size < known ? size : known) - sizeof(size));
}

void client_take(void *to, const void *from, size_t known)
{
    size_t size = size_of(from);

    memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
           (size < known ? size : known) - sizeof(size));
}

/* -- filling */

void problem_reset(struct pawl_problem *problem)
{
    *problem = (struct pawl_problem){.size = sizeof(*problem)};
}

void client_text(char *to, size_t size, struct bytes text)
{
    size_t len = utf8_cut(text, size - 1).len;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.at[i];

        to[i] = c < 0x20 || c == 0x7f ? '?' : text.at[i];
    }
    to[len] = '\0';
}

enum pawl_outcome problem_say(struct pawl_problem *problem, enum pawl_outcome outcome, const char *code,
                              const char *detail)
{
    problem_reset(problem);
    client_text(problem->code, sizeof(problem->code), bytes_of(code));
    client_text(problem->detail, sizeof(problem->detail), bytes_of(detail));
    return outcome;
}

enum pawl_outcome problem_wrong(struct pawl_problem *problem, const char *detail)
{
    return problem_say(problem, PAWL_NOT_DONE, "bad-argument", detail);
}

enum pawl_outcome problem_no_memory(struct pawl_problem *problem)
{
    return problem_say(problem, PAWL_NOT_DONE, "out-of-memory", "There is no memory.");
}

enum pawl_outcome problem_give(struct pawl_problem *to, const struct pawl_problem *from,
                               enum pawl_outcome outcome)
{
    struct pawl_problem none;

    if (to != NULL && client_size_fits(to->size, PROBLEM_FIRST)) {
        problem_reset(&none);
        client_give(to, outcome == PAWL_OK ? &none : from, sizeof(*from));
    }
    return outcome;
}

enum pawl_outcome problem_give_wrong(struct pawl_problem *to, const char *detail)
{
    struct pawl_problem why;

    return problem_give(to, &why, problem_wrong(&why, detail));
}

struct bytes client_member(const struct json *json, const char *name)
{
    struct bytes value = {NULL, 0};

    return json_get_text(json, name, &value) == JSON_FOUND ? value : (struct bytes){NULL, 0};
}

int64_t client_number(const struct json *json, const char *name)
{
    int64_t value = 0;

    return json_get_int(json, name, &value) == JSON_FOUND ? value : 0;
}

/* -- what it means */

static const struct known *known_find(struct bytes code, unsigned status)
{
    for (size_t i = 0; i < sizeof(known_problems) / sizeof(known_problems[0]); i++)
        if (bytes_are(code, known_problems[i].code) && known_problems[i].status == status)
            return &known_problems[i];
    return NULL;
}

bool problem_is_pawls(const struct http_client_answer *answer, const struct json *json)
{
    static const char kind[] = "application/problem+json", types[] = "/problems/";
    struct bytes code = json != NULL ? client_member(json, "code") : (struct bytes){NULL, 0};
    struct bytes type = json != NULL ? client_member(json, "type") : (struct bytes){NULL, 0};
    size_t len = sizeof(types) - 1;

    return strncmp(answer->content_type, kind, sizeof(kind) - 1) == 0 && code.len > 0 &&
           type.len == len + code.len && memcmp(type.at, types, len) == 0 &&
           memcmp(type.at + len, code.at, code.len) == 0 && client_number(json, "status") == answer->status;
}

static enum pawl_outcome known_outcome(const struct known *known)
{
    if (known->status == 500 || known->status == 504)
        return PAWL_UNKNOWN;
    return known->kind == STATUS_HELD ? PAWL_HELD : known->kind == STATUS_LOST ? PAWL_LOST : PAWL_NOT_DONE;
}

static void problem_fill(struct pawl_problem *problem, const struct json *json)
{
    client_text(problem->code, sizeof(problem->code), client_member(json, "code"));
    client_text(problem->detail, sizeof(problem->detail), client_member(json, "detail"));
    client_text(problem->ended, sizeof(problem->ended), client_member(json, "ended"));
    client_text(problem->holder, sizeof(problem->holder), client_member(json, "holder"));
    problem->token = client_number(json, "token");
    if (problem->token == 0)
        problem->token = client_number(json, "current_token");
    problem->expires_in_ms = client_number(json, "expires_in_ms");
}

static enum pawl_outcome judge_refusal(const struct http_client_answer *answer, struct pawl_problem *problem)
{
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, CLIENT_JSON_LEVELS, NULL);
    bool pawls = problem_is_pawls(answer, json);
    const struct known *known = pawls ? known_find(client_member(json, "code"), answer->status) : NULL;
    enum pawl_outcome outcome = PAWL_UNKNOWN;
    bool retryable = false;

    /* A proxy may have answered, which does not know what became of the request. */
    if (known != NULL) {
        outcome = known_outcome(known);
        retryable = known->retryable != 0;
    } else if (pawls && ((answer->status >= 400 && answer->status < 500) || answer->status == 503)) {
        /* A later version's code: these are said of what was not done (docs/contract.md, section 3). */
        outcome = PAWL_NOT_DONE;
    }
    problem_say(problem, outcome, "bad-answer",
                "The answer is not one of Pawl's, so it may have happened. Look at the address, and at what "
                "stands between.");
    if (pawls) {
        problem_fill(problem, json);
        json_get_bool(json, "retryable", &retryable);
    }
    problem->status = (int)answer->status;
    problem->retryable = retryable;
    problem->retry_after_ms = (int64_t)answer->retry_after_s * 1000;
    json_free(json);
    return outcome;
}

static enum pawl_outcome judge_silence(enum http_client_outcome outcome,
                                       const struct http_client_answer *answer, struct pawl_problem *problem)
{
    bool sent = outcome != HTTP_CLIENT_NOT_SENT;
    const char *code = answer->stopped     ? "cancelled"
                       : answer->no_memory ? "out-of-memory"
                       : sent              ? "no-answer"
                                           : "not-sent";
    char detail[PAWL_DETAIL_SIZE];

    snprintf(detail, sizeof(detail), "%s: %s.",
             sent ? "It was sent, but no whole answer came; it may have happened"
                  : "It certainly did not happen: nothing was sent",
             answer->stopped ? "the caller gave it up" : answer->why);
    problem_say(problem, PAWL_NOT_DONE, code, detail);
    problem->retryable = !answer->stopped;
    return sent ? PAWL_UNKNOWN : PAWL_NOT_DONE;
}

enum pawl_outcome judge_answer(enum http_client_outcome outcome, const struct http_client_answer *answer,
                               struct pawl_problem *problem)
{
    if (outcome != HTTP_CLIENT_ANSWERED)
        return judge_silence(outcome, answer, problem);
    if (answer->status >= 200 && answer->status < 300) {
        problem_reset(problem);
        return PAWL_OK;
    }
    return judge_refusal(answer, problem);
}
