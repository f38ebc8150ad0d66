/* drill_state.c - what the accidents of services look at: state directories, tokens, the store's numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill_service.h"
#include "api/client/http_client.h"

enum {
    LOOK_AGAIN_MS = 20,
    ASK_MS = 5000,
    STORE_WORDS = 12,
    INSIST_MS = 25000,
    INSIST_AGAIN_MS = 500,
    USE_TTL_MS = 1000
};

/* -- state directories and tokens */

bool drill_state_read(struct drill *drill, const char *state, struct high_water *water)
{
    char why[STATE_WHY_MAX] = "there is nothing in it";

    return state_dir_peek(state, water, why) == STATE_OPEN ||
           drill_wrong(drill, "the state directory %s cannot be read: %s", state, why);
}

int64_t drill_highest_token(struct drill *drill)
{
    struct drill_history *history = &drill->history;
    int64_t highest = 0;

    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->count; i++) {
        const struct drill_event *event = &history->events[i];

        if (event->kind == DRILL_ACQUIRE && event->end == DRILL_OK && event->token > highest) {
            highest = event->token;
        }
    }
    pthread_mutex_unlock(&history->lock);
    return highest;
}

bool drill_check_reserved(struct drill *drill, const char *state)
{
    int64_t highest = drill_highest_token(
        drill); /* first: the floor may rise meanwhile, and then that is right */
    struct high_water water;

    return drill_state_read(drill, state, &water) &&
           (highest <= water.floor ||
            drill_wrong(drill, "token %" PRId64 " was told, but %s has recorded no more than %" PRId64,
                        highest, state, water.floor));
}

bool drill_await_token_above(struct drill *drill, int64_t token, unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;

    while (drill_highest_token(drill) <= token) {
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "no token above %" PRId64 " was granted within %u ms", token, limit_ms);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, LOOK_AGAIN_MS))) {
            return false;
        }
    }
    return true;
}

/* -- the store and its services */

bool drill_store_number(struct drill *drill, const char *field, int64_t *value)
{
    char command[64], reply[DRILL_REPLY_SIZE];

    snprintf(command, sizeof(command), "HGET pawl:{store} %s", field);
    if (!drill_world_ask_redis(&drill->world, command, reply)) {
        return drill_wrong(drill, "%s: %.200s", command, reply);
    }
    *value = strtoll(reply, NULL, 10);
    return true;
}

bool drill_service_return(struct drill *drill, struct drill_service *service)
{
    return drill_world_ok(drill, drill_world_start(&drill->world, service) &&
                                     drill_world_await_ready(&drill->world, service, DRILL_READY_MS));
}

unsigned drill_ask_plainly(struct drill *drill, const struct drill_service *service, unsigned lease,
                           char *body, size_t size)
{
    static const char ask[] = "{\"ttl_ms\":1000,\"holder\":\"drill\"}";
    char url[DRILL_URL_SIZE], name[DRILL_LEASE_NAME_SIZE], page[DRILL_URL_SIZE + DRILL_LEASE_NAME_SIZE + 16];
    struct http_client_request request = {.method = "POST",
                                          .url = page,
                                          .headers = {{"Content-Type", BYTES("application/json")}},
                                          .body = {ask, sizeof(ask) - 1},
                                          .timeout_ms = ASK_MS};
    struct http_client_answer answer;
    unsigned status = 0;

    drill_world_url(&drill->world, service, url);
    drill_lease_name(lease, name);
    snprintf(page, sizeof(page), "%s/v1/leases/%s", url, name);
    body[0] = '\0';
    if (http_client_send(&request, &answer) == HTTP_CLIENT_ANSWERED) {
        status = answer.status;
        snprintf(body, size, "%s", answer.body);
    }
    http_client_answer_done(&answer);
    return status;
}

bool drill_await_refusal(struct drill *drill, const struct drill_service *service, unsigned lease,
                         const char *code, unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;
    char body[DRILL_ANSWER_SIZE], wanted[64];

    snprintf(wanted, sizeof(wanted), "\"code\":\"%s\"", code);
    for (;;) {
        unsigned status = drill_ask_plainly(drill, service, lease, body, sizeof(body));

        if (status == 503 && strstr(body, wanted) != NULL) {
            return true;
        }
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "%s did not come to refuse with %s within %u ms, but says: %u %.300s",
                               service->process.name, code, limit_ms, status, body);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, LOOK_AGAIN_MS))) {
            return false;
        }
    }
}

bool drill_run_store(struct drill *drill, const struct drill_service *service, const char *const *words,
                     char said[DRILL_REPLY_SIZE])
{
    const char *argv[STORE_WORDS] = {"pawl", "store"};
    unsigned count = 2;

    while (*words != NULL && count < STORE_WORDS - 5) {
        argv[count++] = *words++;
    }
    argv[count++] = "--redis";
    argv[count++] = drill->world.redis_url;
    argv[count++] = "--state-dir";
    argv[count++] = service->state;
    return drill_world_run(&drill->world, argv, said);
}

bool drill_insist(struct drill *drill, const struct drill_service *service, const char *const *words)
{
    uint64_t until_ms = cli_now_ms() + INSIST_MS;
    char said[DRILL_REPLY_SIZE];

    while (!drill_run_store(drill, service, words, said)) {
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "pawl store %s is refused: %.500s", words[0], said);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, INSIST_AGAIN_MS))) {
            return false;
        }
    }
    return true;
}

/* -- one fast client */

bool drill_use_tokens(struct drill *drill, struct drill_client *client, unsigned lease, int64_t above,
                      unsigned limit_ms)
{
    uint64_t until_ms = cli_now_ms() + limit_ms;
    struct drill_hold hold;

    do {
        drill_hold_new(client, &hold, lease, USE_TTL_MS);
        if (drill_client_acquire(client, &hold) == DRILL_OK) {
            drill_client_release(client, &hold);
        } else if (!drill_world_ok(drill, drill_world_sleep(&drill->world, LOOK_AGAIN_MS))) {
            return false;
        }
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "no token above %" PRId64 " was granted within %u ms: %" PRId64 " %s",
                               above, limit_ms, hold.token, client->code);
        }
    } while (hold.token <= above);
    return true;
}
