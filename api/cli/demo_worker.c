/* demo_worker.c - a worker of the demo: takes a lease, and writes, as told by demo_worker.h.
 *
 * It is careful in the way in which most programs are: before it writes it looks whether its lease is still
 * running. Its mistake is that time passes between the look and the write. */
#include "api/cli/demo_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/secret.h"

enum { WORK_STEP_MS = 100, ACQUIRE_TIMEOUT_MS = 20000, REQUEST_TIMEOUT_MS = 5000, LINE_SIZE = 256 };

struct worker {
    const char *lease_url, *gateway_url, *name, *lease;
    const char *file; /* NULL: writes go through the gateway */
    uint64_t holds_until_ms;
    char token[SECRET_SIZE]; /* the fencing token header */
};

__attribute__((format(printf, 3, 4))) static void say(const char *word, int64_t number, const char *format,
                                                      ...)
{
    va_list args;

    printf("%" PRIu64 " %s %" PRId64 " ", cli_now_ms(), word, number);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* -- the lease */

static void take_grant(struct worker *w, const struct json *grant, uint64_t sent_at_ms)
{
    struct bytes token = ask_text(grant, "fencing_token");

    snprintf(w->token, sizeof(w->token), "%.*s", (int)token.len, token.at != NULL ? token.at : "");
    w->holds_until_ms = sent_at_ms +
                        (uint64_t)ask_int(grant, "expires_in_ms"); /* from the sending on: never too long */
    say("granted", ask_int(grant, "token"), "-");
}

/* Whether it is worth asking again. */
static bool acquire_once(struct worker *w, struct ask *ask, bool *told)
{
    struct http_client_answer answer;
    uint64_t sent_at_ms = cli_now_ms();
    enum http_client_outcome outcome = http_client_send(&ask->request, &answer);
    struct json *json = outcome == HTTP_CLIENT_ANSWERED ? ask_json(ask, &answer) : NULL;
    bool held = json != NULL && answer.status == 409;

    if (json != NULL && answer.status == 201) {
        take_grant(w, json, sent_at_ms);
    } else if (held && !*told) {
        struct bytes holder = ask_text(json, "holder");

        say("held", ask_int(json, "token"), "%.*s", (int)holder.len, holder.at != NULL ? holder.at : "");
        *told = true;
    } else if (!held) {
        say("failed", answer.status, "acquire");
    }
    json_free(json);
    http_client_answer_done(&answer);
    return held;
}

static void worker_acquire(struct worker *w, const char *ttl_ms)
{
    struct ask ask = {.what = "acquire", .request = {.method = "POST", .timeout_ms = REQUEST_TIMEOUT_MS}};
    uint64_t deadline_ms = cli_now_ms() + ACQUIRE_TIMEOUT_MS;
    char body[LINE_SIZE];
    bool told = false;
    int len = snprintf(body, sizeof(body), "{\"holder\":\"%s\",\"ttl_ms\":%s}", w->name, ttl_ms);

    if (ask_lease(&ask, w->lease_url, w->lease) != CLI_GO_ON) {
        say("failed", 0, "acquire");
        return;
    }
    ask.request.body = (struct bytes){body, (size_t)len};
    ask_header(&ask, "Content-Type", BYTES("application/json"));
    while (acquire_once(w, &ask, &told) && cli_now_ms() < deadline_ms) {
        poll(NULL, 0, WORKER_RETRY_MS);
    }
    ask_done(&ask);
}

/* -- the resource without a fence: a file */

static void file_write(const struct worker *w, const char *text)
{
    int fd = open(w->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) {
        close(fd);
    }
    if (written) {
        say("written", 0, "-");
    } else {
        say("failed", 0, "write: %s", strerror(errno));
    }
}

static void file_read(const struct worker *w)
{
    char text[WORKER_TEXT_SIZE];
    int fd = open(w->file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

    if (fd >= 0) {
        close(fd);
    }
    if (len >= 0) {
        say("reads", 0, "%.*s", (int)len, text);
    } else {
        say("failed", 0, "read: %s", strerror(errno));
    }
}

/* -- the resource behind the gateway */

static void gateway_tell(const struct ask *ask, enum http_client_outcome outcome,
                         const struct http_client_answer *answer)
{
    struct json *json;

    if (outcome != HTTP_CLIENT_ANSWERED) {
        say("failed", 0, "%s: %s", ask->what, answer->why);
    } else if (answer->status == 200) {
        say("reads", 200, "%s", answer->body);
    } else if (answer->status < 300) {
        say("written", answer->status, "-");
    } else {
        json = ask_json(ask, answer);
        struct bytes code = json != NULL ? ask_text(json, "code") : BYTES("unknown");

        say("refused", answer->status, "%.*s", (int)code.len, code.at != NULL ? code.at : "");
        json_free(json);
    }
}

static void gateway_do(const struct worker *w, const char *method, const char *text)
{
    struct ask ask = {.what = method, .request = {.method = method, .timeout_ms = REQUEST_TIMEOUT_MS}};
    struct http_client_answer answer = {0};

    if (ask_resource(&ask, w->gateway_url, w->lease) == CLI_GO_ON) {
        if (text != NULL) {
            ask.request.body = bytes_of(text);
            ask_header(&ask, "Fencing-Token", bytes_of(w->token));
            ask_header(&ask, "Content-Type", BYTES("text/plain"));
        }
        gateway_tell(&ask, http_client_send(&ask.request, &answer), &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
}

/* -- what it is told */

static bool still_holds(const struct worker *w)
{
    if (cli_now_ms() < w->holds_until_ms) {
        return true;
    }
    say("over", 0, "-");
    return false;
}

static void worker_write(const struct worker *w, const char *text)
{
    if (w->file != NULL) {
        file_write(w, text);
    } else {
        gateway_do(w, "PUT", text);
    }
}

/* In steps, so that what is left of the work after a pause still takes its time. */
static void worker_work(const struct worker *w, const char *text)
{
    if (!still_holds(w)) {
        return;
    }
    say("holds", (int64_t)(w->holds_until_ms - cli_now_ms()), "-");
    for (unsigned i = 0; i < WORKER_WORK_STEPS; i++) {
        poll(NULL, 0, WORK_STEP_MS);
    }
    worker_write(w, text);
}

static void worker_obey(struct worker *w, char *line)
{
    char *text = strchr(line, ' ');

    line[strcspn(line, "\n")] = '\0';
    if (text != NULL) {
        *text++ = '\0';
    }
    if (strcmp(line, "acquire") == 0 && text != NULL) {
        worker_acquire(w, text);
    } else if (strcmp(line, "write") == 0 && text != NULL) {
        if (still_holds(w)) {
            worker_write(w, text);
        }
    } else if (strcmp(line, "work") == 0 && text != NULL) {
        worker_work(w, text);
    } else if (strcmp(line, "read") == 0 && w->file != NULL) {
        file_read(w);
    } else if (strcmp(line, "read") == 0) {
        gateway_do(w, "GET", NULL);
    } else {
        say("failed", 0, "not understood: %s", line);
    }
}

int cli_demo_worker(int argc, char **argv)
{
    struct worker w = {0};
    const struct flag flags[] = {flag_lease_url(&w.lease_url), flag_gateway_url(&w.gateway_url), {0}};
    const struct usage usage = {
        .name = "demo-worker",
        .arguments = "NAME LEASE [FILE]",
        .examples = "  pawl demo stale-holder                   # starts its workers itself\n",
        .summary = "A worker of the demo; reads from standard input what to do.",
        .flags = flags,
        .arguments_min = 2,
        .arguments_max = 3,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);
    char line[LINE_SIZE];

    if (status != CLI_GO_ON) {
        return status;
    }
    w.name = arguments[0];
    w.lease = arguments[1];
    w.file = arguments[2];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        worker_obey(&w, line);
    }
    return CLI_OK;
}
