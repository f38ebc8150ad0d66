/* client_call.c - one call: sent, repeated where that is safe, and its end believed where that is certain.
 *
 *   call_run   an attempt       its end is known: that is the end of the call, if no attempt before it is in
 * doubt again            its end is not known, and the call is safe to repeat the end          what is
 * certain after all attempts; else PAWL_UNKNOWN */
#include <poll.h>
#include <stdlib.h>

#include "api/client/client.h"

enum { PAUSE_FIRST_MS = 50, PAUSE_MOST_MS = 2000 };

static const char unreserved[] = "-._~:";

/* -- made */

void call_init(struct call *call, const struct pawl *pawl, const char *method, enum call_repeat repeat)
{
    *call = (struct call){.pawl = pawl,
                          .repeat = repeat,
                          .request.method = method,
                          .timeout_ms = pawl->timeout_ms,
                          .attempts = pawl->attempts};
}

static bool stands_for_itself(unsigned char c, char kept)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr(unreserved, c) != NULL || (char)c == kept;
}

bool call_url(struct call *call, const char *base, const char *path, const char *name, char kept)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t size = strlen(base) + strlen(path) + 3 * strlen(name) + 1, len;

    call->url = malloc(size);
    if (call->url == NULL) {
        return false;
    }
    len = (size_t)snprintf(call->url, size, "%s%s", base, path);
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;

        if (stands_for_itself(c, kept)) {
            call->url[len++] = (char)c;
        } else {
            call->url[len++] = '%';
            call->url[len++] = digits[c >> 4];
            call->url[len++] = digits[c & 15];
        }
    }
    call->url[len] = '\0';
    call->request.url = call->url;
    return true;
}

void call_header(struct call *call, const char *name, const char *value)
{
    struct http_client_header *header = call->request.headers;

    if (value == NULL) {
        return;
    }
    while (header->name != NULL) {
        header++; /* no call has more of them than there is room for */
    }
    *header = (struct http_client_header){name, bytes_of(value)};
}

void call_done(struct call *call)
{
    json_free(call->json);
    http_client_answer_done(&call->answer);
    free(call->url);
    *call = (struct call){0};
}

/* -- run */

bool call_believes(enum call_repeat repeat, enum pawl_outcome outcome)
{
    switch (repeat) {
    case CALL_READ: return outcome != PAWL_UNKNOWN;
    case CALL_STATE: return outcome == PAWL_OK || outcome == PAWL_LOST;
    case CALL_KEYED: return outcome == PAWL_OK;
    case CALL_ONCE: return false;
    }
    return false;
}

static enum pawl_outcome call_try(struct call *call, struct pawl_problem *problem)
{
    enum pawl_outcome outcome;
    const char *why = NULL;

    json_free(call->json);
    call->json = NULL;
    http_client_answer_done(&call->answer);
    call->request.timeout_ms = call->timeout_ms + call->wait_ms;
    call->sent_ms = pawl_now_ms();
    if (call->first_sent_ms == 0) {
        call->first_sent_ms = call->sent_ms;
    }
    if (call->pawl->sending != NULL) {
        call->pawl->sending(&call->request);
    }
    outcome = judge_answer(http_client_send(&call->request, &call->answer), &call->answer, problem);
    if (outcome == PAWL_OK && call->answer.status != 204 && call->repeat == CALL_STATE) {
        call->json = json_parse((struct bytes){call->answer.body, call->answer.len}, CLIENT_JSON_LEVELS,
                                &why);
    }
    return outcome;
}

/* false: cancelled meanwhile. */
static bool call_pause(const struct call *call, unsigned attempt)
{
    int64_t most = (int64_t)PAUSE_FIRST_MS << (attempt < 6 ? attempt : 6);
    int64_t left_ms = client_random_between(most / 2, most < PAUSE_MOST_MS ? most : PAUSE_MOST_MS);
    int64_t until_ms = pawl_now_ms() + left_ms;
    struct pollfd ready[HTTP_CLIENT_STOPS_MAX];
    nfds_t count = 0;
    int stopped;

    for (const int *fd = call->request.stop_fds; fd != NULL && *fd >= 0 && count < HTTP_CLIENT_STOPS_MAX;
         fd++) {
        ready[count++] = (struct pollfd){.fd = *fd, .events = POLLIN};
    }
    do { /* a signal makes it no shorter */
        stopped = poll(ready, count, (int)left_ms);
        left_ms = until_ms - pawl_now_ms();
    } while (stopped < 0 && left_ms > 0);
    return stopped <= 0;
}

/* What became of a repeat, refused or not even sent, says nothing about the attempt before it, and must not
 * sound as if it did. */
static void doubt_tell(struct pawl_problem *problem)
{
    char last[PAWL_DETAIL_SIZE];

    snprintf(last, sizeof(last), "%s", problem->detail);
    snprintf(problem->detail, sizeof(problem->detail),
             "It is not known how an earlier attempt ended; it may have happened. %s: %.*s",
             problem->status != 0 ? "To the last one was said" : "Of the last one", (int)sizeof(last) - 128,
             last);
    if (strcmp(problem->code, "not-sent") == 0) {
        snprintf(problem->code, sizeof(problem->code), "no-answer");
    }
}

enum pawl_outcome call_run(struct call *call, struct pawl_problem *problem)
{
    enum pawl_outcome outcome = PAWL_UNKNOWN;
    bool doubt = false, again = true;

    for (unsigned attempt = 0; again; attempt++) {
        if (call->prepare != NULL && !call->prepare(call, problem)) {
            return doubt ? PAWL_UNKNOWN : PAWL_NOT_DONE;
        }
        outcome = call_try(call, problem);
        if (!doubt && outcome != PAWL_UNKNOWN) {
            return outcome;
        }
        if (doubt && call_believes(call->repeat, outcome)) {
            return outcome;
        }
        if (doubt && outcome != PAWL_UNKNOWN) {
            doubt_tell(problem);
        }
        doubt = true;
        again = call->repeat != CALL_ONCE && attempt + 1 < call->attempts && !call->answer.stopped &&
                (outcome == PAWL_UNKNOWN || problem->retryable) && outcome != PAWL_HELD;
        again = again && call_pause(call, attempt);
    }
    return PAWL_UNKNOWN;
}
