/* drill_lost.c - lost-directory: a state directory is deleted, of one of two lease services or of all.
 *
 *   lost_running   of one, while it runs; it is restarted; then the old member is forgotten, then Redis
 * restarts lost_killed    of one, while it is down; Redis restarts first, and waits for the old member until
 * it is forgotten all_killed     of all, while they are down: nobody may act before pawl store recover
 *   all_running    of all, while they run */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill_service.h"

enum { WAYS = 4, LOST_GRANTS = 50, NOTICE_MS = 5000, REFUSE_MS = 2000, GENEROUS = 1000000, BUSY_LEASE = 0 };
enum { OVER_MS = 2500 }; /* all holds that the load has taken are over */

#define LOST_BLOCK "40"

/* -- of one */

/* It has come back as somebody else. */
static bool is_newcomer(struct drill *drill, const struct drill_service *service,
                        const struct high_water *old)
{
    struct high_water now;

    return drill_state_read(drill, service->state, &now) &&
           (strcmp(now.member, old->member) != 0 ||
            drill_wrong(drill, "%s came back as the member %s, whose directory is lost",
                        service->process.name, old->member));
}

static bool is_listed(const struct high_water *water, const char *member)
{
    for (unsigned i = 0; i < water->member_count; i++) {
        if (strcmp(water->members[i].id, member) == 0) {
            return true;
        }
    }
    return false;
}

/* Forgotten, and no state directory lists it any more: before that a restart of Redis would still wait for
 * it. */
static bool forget(struct drill *drill, const char *member)
{
    struct drill_world *world = &drill->world;
    uint64_t until_ms = cli_now_ms() + NOTICE_MS;
    bool listed = true;

    if (!drill_insist(drill, &world->lease[0], (const char *const[]){"forget", member, NULL})) {
        return false;
    }
    while (listed) {
        listed = false;
        for (unsigned i = 0; i < world->services; i++) {
            struct high_water water;

            if (!drill_state_read(drill, world->lease[i].state, &water)) {
                return false;
            }
            listed = listed || is_listed(&water, member);
        }
        if (cli_now_ms() >= until_ms) {
            return drill_wrong(
                drill, "the member %s is still listed in a state directory %d ms after it was forgotten",
                member, NOTICE_MS);
        }
    }
    return true;
}

/* While the old member is not forgotten, nobody admits; its floor may be above all others. */
static bool restart_waits_for(struct drill *drill, const char *member)
{
    struct drill_world *world = &drill->world;

    if (!drill_world_ok(drill, drill_world_kill(world, &world->redis))) {
        return false;
    }
    drill_load_pause(drill->load);
    drill_history_mark(&drill->history, DRILL_CLOSED);
    drill_load_resume(drill->load);
    if (!drill_world_ok(drill,
                        drill_world_redis_return(world) &&
                            drill_world_await_unready(world, &world->lease[0], member, DRILL_READY_MS) &&
                            drill_world_sleep(world, REFUSE_MS))) {
        return false;
    }
    return drill_expect_refusal(drill, &world->lease[0], "store-not-admitted");
}

static bool goes_on(struct drill *drill)
{
    uint64_t since = drill_history_place(&drill->history);

    return drill_await_grant(drill, since, cli_now_ms(), DRILL_READY_MS) &&
           drill_world_ok(drill, drill_world_await_all_ready(&drill->world, DRILL_READY_MS)) &&
           drill_let_work(drill, LOST_GRANTS, DRILL_GRANT_MS);
}

/* What an operator would try: first a floor that is too low, then one above everything that was seen. */
static bool recover(struct drill *drill)
{
    struct drill_service *host = &drill->world.lease[0];
    int64_t highest = drill_highest_token(drill);
    char low[32], high[32], said[DRILL_REPLY_SIZE];

    snprintf(low, sizeof(low), "%" PRId64, highest / 2);
    snprintf(high, sizeof(high), "%" PRId64, highest + GENEROUS);
    if (drill_run_store(drill, host, (const char *const[]){"recover", "--yes", "--floor", low, NULL}, said)) {
        return drill_wrong(drill,
                           "pawl store recover took floor %s though token %" PRId64 " was granted: %.200s",
                           low, highest, said);
    }
    drill_history_mark(&drill->history, DRILL_OPENED);
    return drill_insist(drill, host, (const char *const[]){"recover", "--yes", "--floor", high, NULL});
}

/* What the old member knows may be needed now. */
static bool forget_is_too_late(struct drill *drill, const char *member)
{
    char said[DRILL_REPLY_SIZE];

    return !drill_run_store(drill, &drill->world.lease[0], (const char *const[]){"forget", member, NULL},
                            said) ||
           drill_wrong(drill, "the member %s was forgotten though the store waits for it: %.200s", member,
                       said);
}

static bool restart_redis(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    return drill_world_ok(drill, drill_world_kill(world, &world->redis) && drill_world_redis_return(world));
}

/* What it had recorded is all that may be granted, though nobody can read it any more. */
static bool grants_stop(struct drill *drill, const struct drill_service *loser, const char *member)
{
    char command[96], reply[DRILL_REPLY_SIZE];
    int64_t floor;

    snprintf(command, sizeof(command), "HGET pawl:{store}:m:%s floor", member);
    if (!drill_await_refusal(drill, loser, BUSY_LEASE, "floor-reached", DRILL_GRANT_MS) ||
        !drill_world_ok(drill, drill_world_ask_redis(&drill->world, command, reply))) {
        return false;
    }
    floor = strtoll(reply, NULL, 10);
    return drill_highest_token(drill) <= floor ||
           drill_wrong(drill, "token %" PRId64 " was granted, above the lost floor %" PRId64,
                       drill_highest_token(drill), floor);
}

static bool lost_running(struct drill *drill)
{
    struct drill_world *world = &drill->world;
    struct drill_service *loser = &world->lease[1];
    struct high_water old;

    return drill_state_read(drill, loser->state, &old) &&
           drill_world_ok(drill, drill_world_delete(world, loser->state) &&
                                     drill_world_await_unready(world, loser, "state-dir", NOTICE_MS)) &&
           grants_stop(drill, loser, old.member) &&
           drill_world_ok(drill, drill_world_kill(world, &loser->process)) &&
           drill_service_return(drill, loser) && is_newcomer(drill, loser, &old) && goes_on(drill) &&
           forget(drill, old.member) && restart_redis(drill) && goes_on(drill);
}

static bool lost_killed(struct drill *drill)
{
    struct drill_world *world = &drill->world;
    struct drill_service *loser = &world->lease[1];
    struct high_water old;

    return drill_state_read(drill, loser->state, &old) &&
           drill_world_ok(drill, drill_world_kill(world, &loser->process) &&
                                     drill_world_delete(world, loser->state)) &&
           drill_service_return(drill, loser) && is_newcomer(drill, loser, &old) && goes_on(drill) &&
           restart_waits_for(drill, old.member) && forget_is_too_late(drill, old.member) && recover(drill) &&
           goes_on(drill);
}

/* -- of all */

static bool kill_all(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_ok(drill, drill_world_kill(world, &world->lease[i].process))) {
            return false;
        }
    }
    return true;
}

static bool delete_all(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_ok(drill, drill_world_delete(world, world->lease[i].state))) {
            return false;
        }
    }
    return true;
}

static bool start_all(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_ok(drill, drill_world_start(world, &world->lease[i]))) {
            return false;
        }
    }
    return true;
}

static bool nobody_acts(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_ok(drill, drill_world_await_unready(world, &world->lease[i], "store-not-admitted",
                                                             DRILL_READY_MS)) ||
            !drill_expect_refusal(drill, &world->lease[i], "store-not-admitted")) {
            return false;
        }
    }
    return drill_world_ok(drill, drill_world_sleep(world, REFUSE_MS));
}

static bool close_and_start_all(struct drill *drill)
{
    drill_load_pause(drill->load);
    /* Redis has lost nothing: under a hold that is still live the gateway rightly writes. */
    if (!drill_world_ok(drill, drill_world_sleep(&drill->world, OVER_MS))) {
        return false;
    }
    drill_history_mark(&drill->history, DRILL_CLOSED);
    drill_load_resume(drill->load);
    return start_all(drill) && nobody_acts(drill) && recover(drill) && goes_on(drill);
}

static bool all_killed(struct drill *drill)
{
    return kill_all(drill) && delete_all(drill) && close_and_start_all(drill);
}

static bool all_running(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    if (!delete_all(drill)) {
        return false;
    }
    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_ok(drill,
                            drill_world_await_unready(world, &world->lease[i], "state-dir", NOTICE_MS))) {
            return false;
        }
    }
    return kill_all(drill) && close_and_start_all(drill);
}

/* -- the accident */

static bool lost_round(struct drill *drill, unsigned way)
{
    if (!drill_let_work(drill, LOST_GRANTS, DRILL_GRANT_MS)) {
        return false;
    }
    switch (way) {
    case 0: return lost_running(drill);
    case 1: return lost_killed(drill);
    case 2: return all_killed(drill);
    default: return all_running(drill);
    }
}

enum drill_end drill_play_lost_directory(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2, .token_block = LOST_BLOCK};
    bool on = drill_begin(drill, &plan);

    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = lost_round(drill, i % WAYS) && drill_round_done(drill);
    }
    return drill_finish(drill, on);
}
