/* drill_service.c - accidents of services: killed between reserving and granting, idle or stopped for long.
 */
#include "api/cli/drill_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"

static enum drill_end play_kill_service(struct drill *drill);
static enum drill_end play_idle_instance(struct drill *drill);

const struct drill_accident drill_service_accidents[] = {
    {"kill-service", "a lease service is killed -9 between reserving tokens and granting them", 200, 0, 0,
     play_kill_service},
    {"idle-instance", "an instance that was stopped or gone for long wakes up alone on a store set back", 10,
     DRILL_MAY_LOSE | DRILL_MAY_END_EARLY, 0, play_idle_instance},
    {"lost-directory", "the state directory is deleted: of one of two, then of all", 4, DRILL_MAY_END_EARLY,
     0, drill_play_lost_directory},
    {"full-disk", "the disk of the state directory is full, read-only, or fails to sync", 12, 0, 0,
     drill_play_full_disk},
    {"clock-jump", "Redis' clock jumps by a day or a second, forward and back", 200, DRILL_MAY_END_EARLY,
     3000, drill_play_clock_jump},
    {"counter-end", "the counter of a stripe comes to the end of its range", 4, 0, 0, drill_play_counter_end},
    {NULL, NULL, 0, 0, 0, NULL}};

/* -- kill-service */

enum { MOMENT_MS = 120, HOLD_TTL_MS = 120000, OLD_GRANTS = 3 };

/* Small enough that a block is used up more than once between two kills. */
#define SMALL_BLOCK "4"

static bool kill_them(struct drill *drill, bool both, unsigned one)
{
    struct drill_world *world = &drill->world;

    return drill_world_ok(drill, drill_world_kill(world, &world->lease[one].process) &&
                                     (!both || drill_world_kill(world, &world->lease[1 - one].process))) &&
           drill_check_reserved(drill, world->lease[0].state) &&
           drill_check_reserved(drill, world->lease[1].state);
}

static bool start_them(struct drill *drill, bool both, unsigned one)
{
    struct drill_world *world = &drill->world;

    return drill_world_ok(drill, drill_world_start(world, &world->lease[one]) &&
                                     (!both || drill_world_start(world, &world->lease[1 - one])));
}

/* The hold of a client that has nothing to do with the service that dies. */
static bool hold_is_unaffected(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    return drill_client_renew(client, hold, HOLD_TTL_MS) == DRILL_OK ||
           drill_wrong(drill, "a hold of %d s did not survive the death of a lease service: %s",
                       HOLD_TTL_MS / 1000, client->code);
}

static bool kill_service_round(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    struct drill_world *world = &drill->world;
    unsigned one = (unsigned)drill_random_between(&drill->random, 0, 1);
    bool both = drill_random_between(&drill->random, 0, 3) == 0;
    uint64_t since, from_ms;

    if (!drill_world_ok(
            drill, drill_world_sleep(world, (unsigned)drill_random_between(&drill->random, 0, MOMENT_MS))) ||
        !kill_them(drill, both, one)) {
        return false;
    }
    since = drill_history_place(&drill->history);
    from_ms = cli_now_ms();
    return start_them(drill, both, one) && drill_await_grant(drill, since, from_ms, DRILL_GRANT_MS) &&
           drill_world_ok(drill, drill_world_await_all_ready(world, DRILL_READY_MS)) &&
           hold_is_unaffected(drill, client, hold) && drill_let_work(drill, OLD_GRANTS, DRILL_GRANT_MS);
}

/* A service that dies is no reason for the store to begin a new life. */
static bool is_same_life(struct drill *drill, int64_t epoch)
{
    int64_t now = 0;

    return drill_store_number(drill, "epoch", &now) &&
           (now == epoch ||
            drill_wrong(drill,
                        "the epoch rose from %" PRId64 " to %" PRId64 " though Redis ran all the while",
                        epoch, now));
}

static enum drill_end play_kill_service(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2, .token_block = SMALL_BLOCK};
    bool on = drill_begin(drill, &plan);
    struct drill_client client = drill_main_client(drill, NULL);
    struct drill_hold hold;
    int64_t epoch = 0;

    drill_hold_new(&client, &hold, DRILL_LEASES, HOLD_TTL_MS);
    on = on && drill_store_number(drill, "epoch", &epoch) &&
         (drill_client_acquire(&client, &hold) == DRILL_OK ||
          drill_wrong(drill, "a spare lease was not granted: %s", client.code));
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = kill_service_round(drill, &client, &hold) && drill_round_done(drill);
    }
    return drill_finish(drill, on && is_same_life(drill, epoch));
}

/* -- idle-instance
 *
 * One is silent, the other grants past several blocks and dies; the store is put back to before all that. The
 * silent one knows of no token of that time: if it admitted the store alone, they would come a second time.
 */

enum silence { SILENT_STOPPED, SILENT_ENDED, SILENT_NOT, SILENCES };

enum { BLOCKS = 4, BLOCK = 50, ALONE_MS = 3000, SILENT_MS = 40000, BEFORE_GRANTS = 60 };

#define MIDDLE_BLOCK "50"

static bool fall_silent(struct drill *drill, struct drill_service *idle, enum silence how)
{
    switch (how) {
    case SILENT_STOPPED: return drill_world_ok(drill, drill_world_stop(&drill->world, &idle->process));
    case SILENT_ENDED: return drill_world_ok(drill, drill_world_end(&drill->world, &idle->process));
    case SILENT_NOT:
    case SILENCES: return true;
    }
    return false;
}

static bool wake_up(struct drill *drill, struct drill_service *idle, enum silence how)
{
    switch (how) {
    case SILENT_STOPPED: return drill_world_ok(drill, drill_world_continue(&drill->world, &idle->process));
    case SILENT_ENDED: return drill_world_ok(drill, drill_world_start(&drill->world, idle));
    case SILENT_NOT:
    case SILENCES: return true;
    }
    return false;
}

/* The active one and Redis die; Redis comes back as it was long ago. No client is under way when the mark is
 * set. */
static bool set_back(struct drill *drill, struct drill_service *active)
{
    struct drill_world *world = &drill->world;

    if (!drill_world_ok(drill, drill_world_kill(world, &active->process) &&
                                   drill_world_kill(world, &world->redis))) {
        return false;
    }
    drill_load_pause(drill->load);
    drill_history_mark(&drill->history, DRILL_ALL_OVER);
    drill_history_mark(&drill->history, DRILL_CLOSED);
    drill_load_resume(drill->load);
    return drill_world_ok(drill,
                          drill_world_data_put_back(world, "before") && drill_world_redis_return(world));
}

/* It must wait for the other, by name, as long as the other is away. */
static bool stays_out(struct drill *drill, struct drill_service *idle, const char *missing)
{
    int64_t before = 0, after = 0;

    return drill_store_number(drill, "epoch", &before) &&
           drill_world_ok(drill, drill_world_await_unready(&drill->world, idle, missing, DRILL_READY_MS) &&
                                     drill_world_sleep(&drill->world, ALONE_MS)) &&
           drill_expect_refusal(drill, idle, "store-not-admitted") &&
           drill_store_number(drill, "epoch", &after) &&
           (before == after ||
            drill_wrong(drill, "%s admitted the store alone: epoch %" PRId64 " to %" PRId64,
                        idle->process.name, before, after));
}

static bool idle_round(struct drill *drill, enum silence how, unsigned one)
{
    struct drill_world *world = &drill->world;
    struct drill_service *idle = &world->lease[one], *active = &world->lease[1 - one];
    struct drill_client client = drill_main_client(drill, active);
    struct high_water idle_water, active_water;
    uint64_t since;

    if (!drill_let_work(drill, BEFORE_GRANTS, DRILL_GRANT_MS) ||
        !drill_world_ok(drill, drill_world_data_copy(world, "before")) || !fall_silent(drill, idle, how) ||
        !drill_state_read(drill, idle->state, &idle_water) ||
        !drill_use_tokens(drill, &client, DRILL_LEASES, idle_water.floor + BLOCKS * BLOCK, SILENT_MS) ||
        !set_back(drill, active) || !drill_state_read(drill, active->state, &active_water) ||
        !wake_up(drill, idle, how) || !stays_out(drill, idle, active_water.member)) {
        return false;
    }
    drill_history_mark(&drill->history, DRILL_OPENED);
    since = drill_history_place(&drill->history);
    return drill_world_ok(drill, drill_world_start(world, active)) &&
           drill_await_grant(drill, since, cli_now_ms(), DRILL_GRANT_MS) &&
           drill_world_ok(drill, drill_world_await_all_ready(world, DRILL_READY_MS)) &&
           drill_use_tokens(drill, &client, DRILL_LEASES, active_water.floor, DRILL_GRANT_MS);
}

static enum drill_end play_idle_instance(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2, .token_block = MIDDLE_BLOCK};
    bool on = drill_begin(drill, &plan);

    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = idle_round(drill, (enum silence)(i % SILENCES),
                        (unsigned)drill_random_between(&drill->random, 0, 1)) &&
             drill_round_done(drill);
    }
    return drill_finish(drill, on);
}
