/* client_open.c - a struct pawl: where the services are. */
#include <stdlib.h>
#include <time.h>

#include "api/client/client.h"
#include "api/client/http_client.h"

enum { TIMEOUT_MS = 5000, TIMEOUT_MAX_MS = 3600000, ATTEMPTS = 3, ATTEMPTS_MAX = 100 };

#define OPTIONS_FIRST (offsetof(struct pawl_options, attempts) + sizeof(unsigned))

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

const char *pawl_outcome_text(enum pawl_outcome outcome)
{
    switch (outcome) {
    case PAWL_OK: return "done";
    case PAWL_HELD: return "not granted: it is held";
    case PAWL_LOST: return "the hold is over";
    case PAWL_NOT_DONE: return "certainly not done";
    case PAWL_UNKNOWN: return "not known: it may have happened";
    }
    return "no outcome";
}

int64_t pawl_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A copy without the slashes at its end; NULL: there is no memory, or it is no address. */
static char *base_new(const char *given, const char *variable, const char *usual,
                      struct pawl_problem *problem)
{
    const char *base = given != NULL ? given : getenv(variable);
    char detail[PAWL_DETAIL_SIZE];
    size_t len;
    char *copy;

    if (base == NULL || (given == NULL && *base == '\0')) {
        base = usual;
    }
    if (!http_client_is_base(base)) {
        snprintf(detail, sizeof(detail), "The address %s%s cannot be used. It must be a plain one, like %s.",
                 given != NULL ? "that was given in place of " : "in ", variable, usual);
        problem_say(problem, PAWL_NOT_DONE, "bad-argument", detail);
        return NULL;
    }
    len = strlen(base);
    while (base[len - 1] == '/') {
        len--;
    }
    copy = malloc(len + 1);
    if (copy == NULL) {
        problem_say(problem, PAWL_NOT_DONE, "out-of-memory", "There is no memory.");
        return NULL;
    }
    memcpy(copy, base, len);
    copy[len] = '\0';
    return copy;
}

static bool options_read(struct pawl_options *known, const struct pawl_options *options,
                         struct pawl_problem *problem)
{
    *known = (struct pawl_options){.size = sizeof(*known)};
    if (options != NULL) {
        if (!client_size_fits(options->size, OPTIONS_FIRST)) {
            problem_say(problem, PAWL_NOT_DONE, "bad-argument", "The options have no right size.");
            return false;
        }
        client_take(known, options, sizeof(*known));
    }
    known->timeout_ms = known->timeout_ms == 0 ? TIMEOUT_MS : known->timeout_ms;
    known->attempts = known->attempts == 0 ? ATTEMPTS : known->attempts;
    if (known->timeout_ms > TIMEOUT_MAX_MS || known->attempts > ATTEMPTS_MAX) {
        problem_say(problem, PAWL_NOT_DONE, "bad-argument",
                    "timeout_ms may be 3,600,000 at most, attempts 100.");
        return false;
    }
    return true;
}

struct pawl *pawl_open(const struct pawl_options *options, struct pawl_problem *problem)
{
    struct pawl_options known;
    struct pawl_problem own;
    struct pawl *pawl = calloc(1, sizeof(*pawl));

    problem_reset(&own);
    if (pawl == NULL) {
        problem_say(&own, PAWL_NOT_DONE, "out-of-memory", "There is no memory.");
    } else if (options_read(&known, options, &own)) {
        pawl->timeout_ms = (unsigned)known.timeout_ms;
        pawl->attempts = known.attempts;
        pawl->lease_url = base_new(known.lease_url, "PAWL_LEASE_URL", "http://127.0.0.1:8700", &own);
        pawl->gateway_url = pawl->lease_url != NULL ? base_new(known.gateway_url, "PAWL_GATEWAY_URL",
                                                               "http://127.0.0.1:8701", &own)
                                                    : NULL;
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
        free(pawl->lease_url);
        free(pawl->gateway_url);
        free(pawl);
    }
}
