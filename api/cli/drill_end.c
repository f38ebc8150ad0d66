/* drill_end.c - counter-end: the counter of a stripe comes to the end of its range.
 *
 *   so many tokens are left: exactly as many grants, then token-exhausted for ever; other stripes go on
 *   use_up        by ourselves, on a spare lease      load_uses_up  by the clients, on a lease of theirs */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill_service.h"
#include "shared/record/keys.h"

enum { WAYS = 4, TTL_MS = 10000, AGAIN_MS = 20, END_GRANTS = 60, RESERVED_MS = 15000 };

static const int64_t token_last = INT64_C(999999999999999);
static const unsigned left[WAYS] = {0, 1, 2, 7};
/* Each in another stripe; the last is one of the load's. */
static const unsigned leases[WAYS] = {DRILL_LEASES, DRILL_LEASES + 1, DRILL_LEASES + 2, 0};

static unsigned stripe_of(unsigned lease)
{
    char name[DRILL_LEASE_NAME_SIZE];

    drill_lease_name(lease, name);
    return keys_stripe_of(bytes_of(name));
}

static bool preset(struct drill *drill, unsigned lease, unsigned count)
{
    char key[KEYS_STRIPE_SIZE], command[128], reply[DRILL_REPLY_SIZE];

    keys_stripe(key, stripe_of(lease));
    snprintf(command, sizeof(command), "HSET %s counter %" PRId64, key, token_last - count);
    return drill_world_ok(drill, drill_world_ask_redis(&drill->world, command, reply));
}

/* One grant and its release. The services first record that they reserve so high a token. */
static bool grant_one(struct drill *drill, struct drill_client *client, unsigned lease, int64_t token)
{
    uint64_t until_ms = cli_now_ms() + RESERVED_MS;
    struct drill_hold hold;

    for (;;) {
        drill_hold_new(client, &hold, lease, TTL_MS);
        if (drill_client_acquire(client, &hold) == DRILL_OK) {
            break;
        }
        if (strcmp(client->code, "floor-reached") != 0 || cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "token %" PRId64 " of the range was not granted: %s", token,
                               client->code);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, AGAIN_MS))) {
            return false;
        }
    }
    if (hold.token != token) {
        return drill_wrong(drill, "token %" PRId64 " was granted where %" PRId64 " was next", hold.token,
                           token);
    }
    return drill_client_release(client, &hold) == DRILL_OK ||
           drill_wrong(drill, "token %" PRId64 " could not be released: %s", token, client->code);
}

static bool is_exhausted(struct drill *drill, const struct drill_service *service, unsigned lease)
{
    char body[DRILL_ANSWER_SIZE];

    if (!drill_await_refusal(drill, service, lease, "token-exhausted", RESERVED_MS)) {
        return false;
    }
    drill_ask_plainly(drill, service, lease, body, sizeof(body));
    return (strstr(body, "\"code\":\"token-exhausted\"") != NULL &&
            strstr(body, "\"retryable\":false") != NULL) ||
           drill_wrong(drill, "token-exhausted is not told as it should: %.400s", body);
}

static bool use_up(struct drill *drill, struct drill_client *client, unsigned lease, unsigned count)
{
    for (unsigned i = count; i > 0; i--) {
        if (!grant_one(drill, client, lease, token_last - i + 1)) {
            return false;
        }
    }
    return true;
}

/* Which of the last tokens of the lease's stripe have been told, a bit for each. */
static unsigned told_of_the_last(struct drill *drill, unsigned lease, unsigned count)
{
    struct drill_history *history = &drill->history;
    unsigned told = 0;

    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->count; i++) {
        const struct drill_event *event = &history->events[i];

        if (event->kind == DRILL_ACQUIRE && event->end == DRILL_OK && event->token > token_last - count &&
            stripe_of(event->lease) == stripe_of(lease)) {
            told |= 1u << (token_last - event->token);
        }
    }
    pthread_mutex_unlock(&history->lock);
    return told;
}

static bool load_uses_up(struct drill *drill, unsigned lease, unsigned count)
{
    uint64_t until_ms = cli_now_ms() + RESERVED_MS;
    unsigned wanted = (1u << count) - 1, told = 0;

    while ((told = told_of_the_last(drill, lease, count)) != wanted) {
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(drill, "of the last %u tokens of a stripe not all were granted: %#x", count,
                               told);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, AGAIN_MS))) {
            return false;
        }
    }
    return true;
}

static bool end_round(struct drill *drill, struct drill_client *client, unsigned way)
{
    struct drill_world *world = &drill->world;
    unsigned lease = leases[way];

    return preset(drill, lease, left[way]) &&
           (lease < DRILL_LEASES ? load_uses_up(drill, lease, left[way])
                                 : use_up(drill, client, lease, left[way])) &&
           is_exhausted(drill, &world->lease[0], lease) && is_exhausted(drill, &world->lease[1], lease) &&
           drill_let_work(drill, END_GRANTS, DRILL_GRANT_MS);
}

enum drill_end drill_play_counter_end(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2};
    bool on = drill_begin(drill, &plan);
    struct drill_client client = drill_main_client(drill, NULL);

    if (drill->rounds >
        WAYS) { /* what was used up once cannot be preset again: that would be a duplicate of ours */
        drill->rounds = WAYS;
        drill_note(drill, "there are no more than %d rounds", WAYS);
    }
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = end_round(drill, &client, i) && drill_round_done(drill);
    }
    return drill_finish(drill, on);
}
