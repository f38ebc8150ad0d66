/* drill_redis.c - accidents of Redis: emptied, killed. drill_redis_files.c has those of its files. */
#include "api/cli/drill_redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill_aof.h"
#include "shared/record/keys.h"

enum {
    WORK_GRANTS = 6,
    PAUSE_MS = 250, /* between an accident and the operator, at most */
    REWRITE_EVERY = 10,
    REVIVED = DRILL_LEASES + 1,
    REVIVED_TTL_MS = 120000,
    LAST = DRILL_LEASES + 1,
    LAST_TTL_MS = 30000
};

static enum drill_end play_flushall(struct drill *drill);
static enum drill_end play_kill_always(struct drill *drill);
static enum drill_end play_kill_everysec(struct drill *drill);

const struct drill_accident drill_redis_accidents[] = {
    {"flushall", "FLUSHALL: refused until an operator has run pawl store recover", 50,
     DRILL_MAY_LOSE | DRILL_MAY_END_EARLY, 0, play_flushall},
    {"kill-always", "kill -9 of Redis, appendfsync always: nothing is lost, holds survive", 100, 0, 0,
     play_kill_always},
    {"kill-everysec", "kill -9 of Redis, appendfsync everysec: what was written last is lost, a release too",
     100, DRILL_MAY_LOSE | DRILL_MAY_END_EARLY, 0, play_kill_everysec},
    {"cut-aof", "Redis' file is cut at a random place, with aof-load-truncated yes and no", 500,
     DRILL_MAY_LOSE | DRILL_MAY_END_EARLY, 0, drill_play_cut_aof},
    {"restore-backup", "old files of Redis' are put back while holders live", 40,
     DRILL_MAY_LOSE | DRILL_MAY_END_EARLY, 0, drill_play_restore_backup},
    {"foreign-store", "another store's files are put in place, then the right ones again", 20, 0, 0,
     drill_play_foreign_store},
    {NULL, NULL, 0, 0, 0, NULL}};

/* -- what they have in common */

bool drill_redis_return(struct drill *drill)
{
    return drill_world_ok(drill, drill_world_redis_return(&drill->world));
}

bool drill_all_refuse(struct drill *drill, const char *code)
{
    struct drill_world *world = &drill->world;

    for (unsigned i = 0; i < world->services; i++) {
        if (!drill_world_ok(drill,
                            drill_world_await_unready(world, &world->lease[i], code, DRILL_REFUSE_MS)) ||
            !drill_expect_refusal(drill, &world->lease[i], code)) {
            return false;
        }
    }
    return drill_world_ok(drill, drill_world_await_unready(world, &world->gateway, code, DRILL_REFUSE_MS));
}

bool drill_pause_a_moment(struct drill *drill)
{
    return drill_world_ok(
        drill, drill_world_sleep(&drill->world, (unsigned)drill_random_between(&drill->random, 0, PAUSE_MS)));
}

bool drill_all_ready(struct drill *drill)
{
    return drill_world_ok(drill, drill_world_await_all_ready(&drill->world, DRILL_ADMIT_MS));
}

bool drill_take_long(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    drill_hold_new(client, hold, DRILL_LEASES, DRILL_LONG_TTL_MS);
    return (drill_client_acquire(client, hold) == DRILL_OK && drill_client_write(client, hold) == DRILL_OK) ||
           drill_wrong(drill, "a lease that nobody else wants was not granted, or its write refused: %s",
                       drill_client_code(client));
}

bool drill_long_survived(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    /* The read first: what was written before the accident must be there. */
    return (drill_client_read(client, hold->lease) == DRILL_OK &&
            drill_client_renew(client, hold, 0) == DRILL_OK &&
            drill_client_write(client, hold) == DRILL_OK) ||
           drill_wrong(drill, "a hold of an hour did not survive round %u: %s", drill->result.rounds + 1,
                       drill_client_code(client));
}

/* -- flushall */

static bool flushall_round(struct drill *drill)
{
    struct drill_world *world = &drill->world;
    char reply[DRILL_REPLY_SIZE];
    uint64_t since, from_ms = cli_now_ms();

    if (!drill_world_ok(drill, drill_world_ask_redis(world, "FLUSHALL", reply))) {
        return false;
    }
    drill_history_mark(&drill->history, DRILL_ALL_OVER);
    drill_history_mark(&drill->history, DRILL_CLOSED);
    if (!drill_all_refuse(drill, "store-not-ours") || !drill_pause_a_moment(drill)) {
        return false;
    }
    since = drill_history_mark(&drill->history, DRILL_OPENED);
    return drill_world_ok(drill, drill_world_recover(world, &world->lease[0], 0)) &&
           drill_await_grant(drill, since, from_ms, DRILL_ADMIT_MS) && drill_all_ready(drill);
}

static enum drill_end play_flushall(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2};
    bool on = drill_begin(drill, &plan);

    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = drill_let_work(drill, WORK_GRANTS, DRILL_ADMIT_MS) && flushall_round(drill) &&
             drill_round_done(drill);
    }
    return drill_finish(drill, on);
}

/* -- kill-always */

/* The last that is acknowledged before the kill: a grant, and a write with it. */
static bool take_last(struct drill *drill, struct drill_client *client, struct drill_hold *last)
{
    drill_hold_new(client, last, LAST, LAST_TTL_MS);
    return (drill_client_acquire(client, last) == DRILL_OK && drill_client_write(client, last) == DRILL_OK) ||
           drill_wrong(drill, "a lease that nobody else wants was not granted, or its write refused: %s",
                       drill_client_code(client));
}

static bool last_survived(struct drill *drill, struct drill_client *client, struct drill_hold *last)
{
    return (drill_client_read(client, last->lease) == DRILL_OK &&
            drill_client_write(client, last) == DRILL_OK && drill_client_release(client, last) == DRILL_OK) ||
           drill_wrong(drill, "the last grant before the kill did not survive round %u: %s",
                       drill->result.rounds + 1, drill_client_code(client));
}

static bool kill_always_round(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    struct drill_hold last;
    uint64_t since;

    if (!drill_pause_a_moment(drill) || !take_last(drill, client, &last) ||
        !drill_world_ok(drill, drill_world_kill(&drill->world, &drill->world.redis))) {
        return false;
    }
    since = drill_history_place(&drill->history);
    return drill_redis_return(drill) &&
           drill_await_grant(drill, since, cli_now_ms(), (unsigned)drill->return_ms) &&
           drill_all_ready(drill) && last_survived(drill, client, &last) &&
           drill_long_survived(drill, client, hold);
}

static enum drill_end play_kill_always(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2};
    bool on = drill_begin(drill, &plan);
    struct drill_client client = drill_main_client(drill, NULL);
    struct drill_hold hold;

    on = on && drill_take_long(drill, &client, &hold);
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = drill_let_work(drill, WORK_GRANTS, DRILL_ADMIT_MS) && kill_always_round(drill, &client, &hold) &&
             drill_round_done(drill);
    }
    return drill_finish(drill, on);
}

/* -- kill-everysec
 *
 * A killed process loses nothing that it has written: the kernel has it. So the file is cut back to what it
 * was right before a release, as if the machine had died: up to a second of acknowledged writes is gone with
 * it. */

/* Whether the store, as Redis has read it, takes the released hold for a live one. */
static bool hold_is_back(struct drill *drill, const struct drill_hold *hold, bool *back)
{
    char name[DRILL_LEASE_NAME_SIZE], key[KEYS_LEASE_SIZE], command[KEYS_LEASE_SIZE + 32],
        reply[DRILL_REPLY_SIZE], wanted[64];

    drill_lease_name(hold->lease, name);
    snprintf(command, sizeof(command), "HMGET %s s t", keys_lease(key, bytes_of(name)).at);
    snprintf(wanted, sizeof(wanted), "held\n%" PRId64, hold->token);
    if (!drill_world_ok(drill, drill_world_ask_redis(&drill->world, command, reply))) {
        return false;
    }
    *back = strcmp(reply, wanted) == 0;
    return true;
}

/* Released, acknowledged, and then the release is lost. */
static bool lose_a_release(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    struct drill_world *world = &drill->world;
    struct drill_aof before, after;

    drill_hold_new(client, hold, REVIVED, REVIVED_TTL_MS);
    if (drill_client_acquire(client, hold) != DRILL_OK || drill_client_write(client, hold) != DRILL_OK) {
        return drill_wrong(drill, "a lease that nobody else wants was not granted, or its write refused: %s",
                           drill_client_code(client));
    }
    if (!drill_world_ok(drill, drill_aof_await(world, &before, hold->lease_id, DRILL_ADMIT_MS))) {
        return false;
    }
    if (drill_client_release(client, hold) != DRILL_OK) {
        return drill_wrong(drill, "a release was refused: %s", drill_client_code(client));
    }
    if (!drill_world_ok(drill, drill_world_kill(world, &world->redis) && drill_aof_find(world, &after))) {
        return false;
    }
    if (strcmp(before.path, after.path) != 0) {
        return drill_wrong(drill, "Redis rewrote its file in between");
    }
    return drill_world_ok(drill, drill_aof_cut(world, &before, before.size));
}

static bool everysec_round(struct drill *drill, struct drill_client *client, unsigned *revived)
{
    struct drill_hold hold;
    uint64_t since, from_ms;
    bool back = false;

    if (!lose_a_release(drill, client, &hold)) {
        return false;
    }
    since = drill_history_place(&drill->history);
    from_ms = cli_now_ms();
    if (!drill_redis_return(drill) || !hold_is_back(drill, &hold, &back)) {
        return false;
    }
    *revived += back;
    drill_client_write(client, &hold); /* at once; the judge sees what came of it */
    if (!drill_await_grant(drill, since, from_ms, DRILL_ADMIT_MS) || !drill_all_ready(drill)) {
        return false;
    }
    return drill_client_write(client, &hold) == DRILL_OVER ||
           drill_wrong(drill, "a released hold that came back from the dead was not refused: %s",
                       drill_client_code(client));
}

static enum drill_end play_kill_everysec(struct drill *drill)
{
    struct drill_world_plan plan = {
        .services = 2, .appendfsync = "everysec", .service_flag = "--allow-unsafe-redis"};
    bool on;
    struct drill_client client;
    unsigned revived = 0;

    on = drill_begin(drill, &plan);
    client = drill_main_client(drill, NULL);
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = drill_let_work(drill, WORK_GRANTS, DRILL_ADMIT_MS) && everysec_round(drill, &client, &revived) &&
             (i % REWRITE_EVERY != 0 ||
              drill_world_ok(drill, drill_aof_rewrite(&drill->world, DRILL_ADMIT_MS))) &&
             drill_round_done(drill);
    }
    drill_note(drill, "a released hold came back in %u of %u rounds, and could not write", revived,
               drill->result.rounds);
    if (on && revived == 0) {
        on = drill_wrong(drill, "no released hold came back: nothing was shown");
    }
    return drill_finish(drill, on);
}
