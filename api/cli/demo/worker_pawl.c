/* worker_pawl.c - a worker of a demo that holds a lease of Pawl's and writes through the gateway. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/demo/worker.h"
#include "shared/token/random.h"

/* A write may be kept back by the relay for as long as the demo wants. */
enum {
    TAKE_MS = 8000,
    RELEASE_MS = 8000,
    WRITE_MS = 60000,
    WAIT_MS_MAX = 20000,
    AGAIN_MS = 50,
    ID_CHARS = 24
};

static void copy(char *to, size_t size, struct bytes text)
{
    snprintf(to, size, "%.*s", (int)text.len, text.at != NULL ? text.at : "");
}

static void say_text(const char *word, int64_t number, struct bytes text)
{
    worker_say(word, number, "%.*s", (int)text.len, text.at != NULL ? text.at : "");
}

/* -- the lease */

static enum worker_try take_answer(struct worker *worker, const struct json *json, unsigned status,
                                   uint64_t sent_ms, bool *told)
{
    if (status == 200 || status == 201) {
        copy(worker->token, sizeof(worker->token), ask_text(json, "fencing_token"));
        copy(worker->lease_id, sizeof(worker->lease_id), ask_text(json, "lease_id"));
        worker_granted(worker, ask_int(json, "token"), sent_ms + (uint64_t)ask_int(json, "waited_ms"),
                       ask_int(json, "expires_in_ms"));
        return TRY_GRANTED;
    }
    if (status >= 500) {
        return TRY_LATER;
    }
    if (status != 409) {
        worker_say("failed", status, "acquire");
        return TRY_FAILED;
    }
    if (!*told) {
        say_text("held", 0, ask_text(json, "holder"));
        *told = true;
    }
    return TRY_HELD;
}

enum worker_try worker_pawl_take(struct worker *worker, enum worker_want want, unsigned limit_ms, bool *told)
{
    /* The first try tells who holds it; the next ones stand in line. */
    unsigned wait_ms = !*told ? 0 : limit_ms < WAIT_MS_MAX ? limit_ms : WAIT_MS_MAX;
    struct ask ask = {.what = "acquire", .request = {.method = "POST", .timeout_ms = TAKE_MS + wait_ms}};
    struct http_client_answer answer;
    char body[WORKER_LINE_SIZE], id[ID_CHARS + 1];
    uint64_t sent_ms = cli_now_ms();
    enum worker_try end = TRY_LATER;
    struct json *json;
    int len;

    random_text(id, ID_CHARS);
    len = snprintf(body, sizeof(body),
                   "{\"holder\":\"%s\",\"ttl_ms\":%u,\"wait_ms\":%u,\"mode\":\"%s\",\"lease_id\":\"%s\"}",
                   worker->name, worker->ttl_ms, wait_ms, want == WANT_SHARED ? "shared" : "exclusive", id);
    if (ask_lease(&ask, worker->lease_url, worker->lease) != CLI_GO_ON) {
        worker_say("failed", 0, "acquire");
        return TRY_FAILED;
    }
    ask.request.body = (struct bytes){body, (size_t)len};
    ask_header(&ask, "Content-Type", BYTES("application/json"));
    if (http_client_send(&ask.request, &answer) == HTTP_CLIENT_ANSWERED) {
        json = ask_json(&ask, &answer);
        end = json != NULL ? take_answer(worker, json, answer.status, sent_ms, told) : TRY_LATER;
        json_free(json);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return end;
}

/* -- one request, and what it came to */

static void tell_refusal(const struct ask *ask, const struct http_client_answer *answer, const char *word)
{
    struct json *json = ask_json(ask, answer);

    say_text(word, answer->status, json != NULL ? ask_text(json, "code") : BYTES("unknown"));
    json_free(json);
}

void worker_pawl_release(struct worker *worker)
{
    struct ask ask = {.what = "release", .request = {.method = "DELETE", .timeout_ms = RELEASE_MS}};
    struct http_client_answer answer = {0};

    if (ask_lease(&ask, worker->lease_url, worker->lease) == CLI_GO_ON) {
        ask_header(&ask, "Lease-Id", bytes_of(worker->lease_id));
        if (http_client_send(&ask.request, &answer) != HTTP_CLIENT_ANSWERED) {
            worker_say("failed", 0, "release: %s", answer.why);
        } else if (answer.status < 300) {
            worker_say("released", 0, "-");
        } else {
            tell_refusal(&ask, &answer, "lost");
        }
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
}

static void tell_end(const struct ask *ask, enum http_client_outcome outcome,
                     const struct http_client_answer *answer)
{
    if (outcome != HTTP_CLIENT_ANSWERED) {
        worker_say("failed", 0, "%s: %s", ask->what, answer->why);
    } else if (answer->status == 200) {
        worker_say("reads", 200, "%s", answer->body);
    } else if (answer->status < 300) {
        worker_say("written", answer->status, "-");
    } else {
        tell_refusal(ask, answer, "refused");
    }
}

static void gateway_do(const struct worker *worker, const char *method, const char *text)
{
    struct ask ask = {.what = method, .request = {.method = method, .timeout_ms = WRITE_MS}};
    uint64_t until_ms = cli_now_ms() + RELEASE_MS;
    struct http_client_answer answer = {0};
    enum http_client_outcome outcome = HTTP_CLIENT_NOT_SENT;

    if (ask_resource(&ask, worker->gateway_url, worker->lease) == CLI_GO_ON) {
        if (text != NULL) {
            ask.request.body = bytes_of(text);
            ask_header(&ask, "Fencing-Token", bytes_of(worker->token));
            ask_header(&ask, "Content-Type", BYTES("text/plain"));
        }
        /* 503: certainly not done, and worth asking again. */
        while ((outcome = http_client_send(&ask.request, &answer)) == HTTP_CLIENT_ANSWERED &&
               answer.status == 503 && cli_now_ms() < until_ms) {
            http_client_answer_done(&answer);
            worker_pass_ms(AGAIN_MS);
        }
        tell_end(&ask, outcome, &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
}

void worker_pawl_write(const struct worker *worker, const char *text)
{
    gateway_do(worker, "PUT", text);
}

void worker_pawl_read(const struct worker *worker)
{
    gateway_do(worker, "GET", NULL);
}
