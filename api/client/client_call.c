/* client_call.c - a struct pawl, which knows where the services are; and one call to them: sent, repeated
 * where that is safe, and its end believed where that is certain.
 *
 *   call_run   an attempt
 *              its end is known: that is the end of the call, if no attempt before it had an unknown one
 *              its end is not known, and the call is safe to repeat: again
 *              after all attempts: what is certain then; else PAWL_UNKNOWN */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "api/client/client.h"
#include "shared/text/ascii.h"

/* -- a struct pawl */

enum { TIMEOUT_MS = 5000, TIMEOUT_MAX_MS = 3600000, ATTEMPTS = 3, ATTEMPTS_MAX = 100 };

#define OPTIONS_FIRST (offsetof(struct pawl_options, attempts) + sizeof(unsigned))

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

const char *pawl_outcome_text(enum pawl_outcome outcome)
{
    static const char *const texts[] = {[PAWL_OK] = "done",
                                        [PAWL_HELD] = "not granted: it is held",
                                        [PAWL_LOST] = "the hold is over",
                                        [PAWL_NOT_DONE] = "certainly not done",
                                        [PAWL_UNKNOWN] = "not known: it may have happened"};

    return (unsigned)outcome <= PAWL_UNKNOWN ? texts[outcome] : "no outcome";
}

int64_t pawl_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A copy without the slashes at its end, to which a path can be added; NULL: there is no memory, or it is no
 * address, or none for this access. */
static char *base_new(const struct http_client_access *access, const char *given, const char *variable,
                      const char *usual, struct pawl_problem *problem)
{
    const char *base = given != NULL ? given : secure_getenv(variable), *wrong;
    char detail[PAWL_DETAIL_SIZE];
    size_t len, size;
    char *copy;

    if (base == NULL || (given == NULL && *base == '\0'))
        base = usual;
    wrong = http_client_is_base(base) ? http_client_access_wrong(access, base)
                                      : "it must be a plain one, like http://127.0.0.1:8700, or unix:/path";
    if (wrong != NULL) {
        snprintf(detail, sizeof(detail), "The address %s%s cannot be used: %s.",
                 given != NULL ? "that was given in place of " : "in ", variable, wrong);
        problem_wrong(problem, detail);
        return NULL;
    }
    len = strlen(base);
    while (base[len - 1] == '/')
        len--;
    size = len + strlen(http_client_joint(base)) + 1;
    copy = malloc(size);
    if (copy != NULL)
        snprintf(copy, size, "%.*s%s", (int)len, base, http_client_joint(base));
    else
        problem_no_memory(problem);
    return copy;
}

/* -- who asks */

/* What the options say, and else the environment; a token that is given beats a file of the environment. */
static struct http_client_access access_of(const struct pawl_options *options)
{
    const char *given[] = {options->access_token_file, options->access_token, options->ca_file,
                           options->cert_file, options->key_file};
    struct http_client_access access = http_client_access_usual();

    if (options->access_token != NULL)
        access.text[HTTP_ACCESS_TOKEN_FILE] = NULL;
    for (unsigned i = 0; i < HTTP_ACCESS_TEXTS; i++)
        access.text[i] = given[i] != NULL ? given[i] : access.text[i];
    access.plaintext = options->allow_plaintext != 0 || access.plaintext;
    return access;
}

/* Copies in the place of the caller's texts. false: no memory. */
static bool access_keep(struct http_client_access *own)
{
    bool kept = true;

    for (unsigned i = 0; i < HTTP_ACCESS_TEXTS; i++) {
        bool given = own->text[i] != NULL;

        own->text[i] = given ? strdup(own->text[i]) : NULL;
        kept = kept && given == (own->text[i] != NULL);
    }
    return kept;
}

static bool options_read(struct pawl_options *known, const struct pawl_options *options,
                         struct pawl_problem *problem)
{
    *known = (struct pawl_options){.size = sizeof(*known)};
    if (options != NULL) {
        if (!client_size_fits(options->size, OPTIONS_FIRST)) {
            problem_wrong(problem, "The options have no right size.");
            return false;
        }
        client_take(known, options, sizeof(*known));
    }
    known->timeout_ms = known->timeout_ms == 0 ? TIMEOUT_MS : known->timeout_ms;
    known->attempts = known->attempts == 0 ? ATTEMPTS : known->attempts;
    if (known->timeout_ms > TIMEOUT_MAX_MS || known->attempts > ATTEMPTS_MAX) {
        problem_wrong(problem, "timeout_ms may be 3,600,000 at most, attempts 100.");
        return false;
    }
    return true;
}

struct pawl *pawl_open(const struct pawl_options *options, struct pawl_problem *problem)
{
    struct pawl_options known;
    struct pawl_problem own;
    struct pawl *pawl = calloc(1, sizeof(*pawl));

    problem_no_memory(&own);
    if (pawl != NULL && options_read(&known, options, &own)) {
        pawl->timeout_ms = (unsigned)known.timeout_ms;
        pawl->attempts = known.attempts;
        pawl->access = access_of(&known);
        if (access_keep(&pawl->access)) {
            pawl->lease_url = base_new(&pawl->access, known.lease_url, "PAWL_LEASE_URL",
                                       "http://127.0.0.1:8700", &own);
        }
        if (pawl->lease_url != NULL) {
            pawl->gateway_url = base_new(&pawl->access, known.gateway_url, "PAWL_GATEWAY_URL",
                                         "http://127.0.0.1:8701", &own);
        }
    }
    if (pawl != NULL && pawl->gateway_url == NULL) {
        pawl_close(pawl);
        pawl = NULL;
    }
    problem_give(problem, &own, pawl != NULL ? PAWL_OK : PAWL_NOT_DONE);
    return pawl;
}

void pawl_close(struct pawl *pawl)
{
    if (pawl != NULL) {
        for (unsigned i = 0; i < HTTP_ACCESS_TEXTS; i++) {
            char *text = (char *)(uintptr_t)pawl->access.text[i];

            if (text != NULL)
                explicit_bzero(text, strlen(text));
            free(text);
        }
        free(pawl->lease_url);
        free(pawl->gateway_url);
        free(pawl);
    }
}

/* -- the JSON object of a request */

static void put_quoted(struct bytes_out *out, const char *text)
{
    bytes_put(out, BYTES("\""));
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        char escape[8];

        if (c < 0x20) {
            snprintf(escape, sizeof(escape), "\\u%04x", c);
            bytes_put(out, bytes_of(escape));
            continue;
        }
        if (c == '"' || c == '\\')
            bytes_put(out, BYTES("\\"));
        bytes_put(out, (struct bytes){text, 1});
    }
    bytes_put(out, BYTES("\""));
}

static void put_name(struct client_body *body, const char *name)
{
    if (body->out.len > 1)
        bytes_put(&body->out, BYTES(","));
    put_quoted(&body->out, name);
    bytes_put(&body->out, BYTES(":"));
}

void body_begin(struct client_body *body)
{
    body->out = (struct bytes_out){body->text, 0, sizeof(body->text), false};
    bytes_put(&body->out, BYTES("{"));
}

void body_text(struct client_body *body, const char *name, const char *value)
{
    if (value != NULL) {
        put_name(body, name);
        put_quoted(&body->out, value);
    }
}

void body_number(struct client_body *body, const char *name, uint64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    body_raw(body, name, digits);
}

void body_raw(struct client_body *body, const char *name, const char *value)
{
    if (value != NULL) {
        put_name(body, name);
        bytes_put(&body->out, bytes_of(value));
    }
}

struct bytes body_end(struct client_body *body)
{
    bytes_put(&body->out, BYTES("}"));
    return (struct bytes){body->text, body->out.len};
}

enum { PAUSE_FIRST_MS = 50, PAUSE_MOST_MS = 2000 };

/* -- made */

void call_init(struct client_call *call, const struct pawl *pawl, const char *method, enum call_repeat repeat)
{
    *call = (struct client_call){.pawl = pawl,
                                 .repeat = repeat,
                                 .request = {.method = method, .access = pawl->access},
                                 .timeout_ms = pawl->timeout_ms,
                                 .attempts = pawl->attempts};
}

void call_url(struct client_call *call, const char *base, const char *path, const char *name, char kept)
{
    size_t size = strlen(base) + strlen(path) + 3 * strlen(name) + 1, len;

    call->url = malloc(size);
    if (call->url == NULL)
        return;
    len = (size_t)snprintf(call->url, size, "%s%s", base, path);
    len += ascii_percent_encode(call->url + len, bytes_of(name), kept);
    call->url[len] = '\0';
    call->request.url = call->url;
}

void call_header(struct client_call *call, const char *name, const char *value)
{
    struct http_client_header *header = call->request.headers;

    if (value == NULL)
        return;
    while (header->name != NULL)
        header++; /* no call has more of them than there is room for */
    *header = (struct http_client_header){name, bytes_of(value)};
}

void call_done(struct client_call *call)
{
    json_free(call->json);
    http_client_answer_done(&call->answer);
    free(call->url);
    *call = (struct client_call){0};
}

/* -- run */

/* What the end of a call is worth once an earlier attempt is unreported. */
static bool call_believes(enum call_repeat repeat, enum pawl_outcome outcome)
{
    switch (repeat) {
    case CALL_READ: return outcome != PAWL_UNKNOWN;
    case CALL_STATE: return outcome == PAWL_OK || outcome == PAWL_LOST;
    case CALL_KEYED: return outcome == PAWL_OK;
    case CALL_ONCE: return false;
    }
    return false;
}

static enum pawl_outcome call_try(struct client_call *call, struct pawl_problem *problem)
{
    enum pawl_outcome outcome;

    json_free(call->json);
    call->json = NULL;
    http_client_answer_done(&call->answer);
    call->request.timeout_ms = call->timeout_ms + call->wait_ms;
    call->sent_ms = pawl_now_ms();
    if (call->first_sent_ms == 0)
        call->first_sent_ms = call->sent_ms;
    if (call->pawl->sending != NULL)
        call->pawl->sending(&call->request);
    call->sent = http_client_send(&call->request, &call->answer);
    outcome = judge_answer(call->sent, &call->answer, problem);
    if (outcome == PAWL_OK && call->answer.status != 204 && call->repeat == CALL_STATE) {
        call->json = json_parse((struct bytes){call->answer.body, call->answer.len}, CLIENT_JSON_LEVELS,
                                NULL);
    }
    return outcome;
}

bool call_pause(const struct client_call *call, unsigned failures, int64_t most_ms)
{
    int64_t usual_ms = (int64_t)PAUSE_FIRST_MS << (failures < 6 ? failures : 6);
    int64_t left_ms = client_random_between(usual_ms / 2, usual_ms < most_ms ? usual_ms : most_ms);
    int64_t until_ms = pawl_now_ms() + left_ms;
    struct pollfd ready[HTTP_CLIENT_STOPS_MAX];
    nfds_t count = 0;
    int stopped;

    for (const int *fd = call->request.stop_fds; fd != NULL && *fd >= 0 && count < HTTP_CLIENT_STOPS_MAX;
         fd++)
        ready[count++] = (struct pollfd){.fd = *fd, .events = POLLIN};
    do { /* a signal makes it no shorter */
        stopped = poll(ready, count, (int)left_ms);
        left_ms = until_ms - pawl_now_ms();
    } while (stopped < 0 && left_ms > 0);
    return stopped <= 0;
}

/* What became of a repeat, refused or not even sent, says nothing about the attempt before it, and must not
 * sound as if it did. */
static void unreported_say(struct pawl_problem *problem)
{
    char last[PAWL_DETAIL_SIZE];

    snprintf(last, sizeof(last), "%s", problem->detail);
    snprintf(problem->detail, sizeof(problem->detail),
             "It is not known how an earlier attempt ended; it may have happened. %s: %.*s",
             problem->status != 0 ? "To the last one was said" : "Of the last one", (int)sizeof(last) - 128,
             last);
    if (strcmp(problem->code, "not-sent") == 0)
        snprintf(problem->code, sizeof(problem->code), "no-answer");
}

enum pawl_outcome call_run(struct client_call *call, struct pawl_problem *problem)
{
    enum pawl_outcome outcome = PAWL_UNKNOWN;
    bool again = true;

    if (call->url == NULL)
        return problem_no_memory(problem);
    for (unsigned attempt = 0; again; attempt++) {
        if (call->prepare != NULL && !call->prepare(call, problem))
            return call->unreported ? PAWL_UNKNOWN : PAWL_NOT_DONE;
        outcome = call_try(call, problem);
        if (!call->unreported && outcome != PAWL_UNKNOWN)
            return outcome;
        if (call->unreported && call_believes(call->repeat, outcome))
            return outcome;
        if (call->unreported && outcome != PAWL_UNKNOWN)
            unreported_say(problem);
        call->unreported = true;
        again = call->repeat != CALL_ONCE && attempt + 1 < call->attempts && !call->answer.stopped &&
                (outcome == PAWL_UNKNOWN || problem->retryable) && outcome != PAWL_HELD;
        again = again && call_pause(call, attempt, PAUSE_MOST_MS);
    }
    return PAWL_UNKNOWN;
}
