/* drill_redis_files.c - accidents of Redis' files: cut, old ones put back, another store's put in place. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/cli/cli.h"
#include "api/cli/drill_aof.h"
#include "api/cli/drill_redis.h"

enum {
    CUT_GRANTS = 3,
    RESTORE_GRANTS = 10,
    TAIL_BYTES = 16384,
    LOOK_AGAIN_MS = 5,
    BACKUPS = 4, /* "0" is from before the first grant */
    REFUSALS_MAX = 400
};

/* -- cut-aof */

struct cuts {
    unsigned refused, fixed, recovered;
};

/* Anywhere, or near the end, where the last commands lie. */
static int64_t choose_place(struct drill *drill, int64_t size)
{
    int64_t from = size > TAIL_BYTES && drill_random_between(&drill->random, 0, 1) ? size - TAIL_BYTES : 0;

    return (int64_t)drill_random_between(&drill->random, (uint64_t)from, (uint64_t)size);
}

/* Redis has refused to start: the file is repaired, or the whole one is put back, by turns. */
static bool repair(struct drill *drill, struct cuts *cuts)
{
    struct drill_world *world = &drill->world;
    bool fix = cuts->refused++ % 2 == 0;

    cuts->fixed += fix;
    return drill_world_ok(drill, fix ? drill_aof_fix(world) : drill_world_data_put_back(world, "whole")) &&
           drill_redis_return(drill);
}

static bool start_after_cut(struct drill *drill, struct cuts *cuts)
{
    switch (drill_world_redis_start(&drill->world)) {
    case DRILL_REDIS_UP: return true;
    case DRILL_REDIS_REFUSED: return repair(drill, cuts);
    case DRILL_REDIS_FAILED: break;
    }
    return drill_world_ok(drill, false);
}

/* The services admit by themselves what is left of the store; when nothing is, an operator must act. */
static bool admitted_or_recovered(struct drill *drill, struct cuts *cuts)
{
    struct drill_world *world = &drill->world;
    char reply[DRILL_REPLY_SIZE];

    if (!drill_world_ok(drill, drill_world_ask_redis(world, "DBSIZE", reply))) {
        return false;
    }
    if (strcmp(reply, "0") == 0) {
        cuts->recovered++;
        return drill_all_refuse(drill, "store-not-ours") &&
               drill_world_ok(drill, drill_world_recover(world, &world->lease[0], 0));
    }
    return true;
}

static bool cut_round(struct drill *drill, struct cuts *cuts)
{
    struct drill_world *world = &drill->world;
    struct drill_aof aof;
    uint64_t since, from_ms;

    world->load_truncated = drill->result.rounds % 2 == 0 ? "yes" : "no";
    if (!drill_world_ok(drill, drill_world_kill(world, &world->redis) &&
                                   drill_world_data_copy(world, "whole") && drill_aof_find(world, &aof) &&
                                   drill_aof_cut(world, &aof, choose_place(drill, aof.size)))) {
        return false;
    }
    since = drill_history_place(&drill->history);
    from_ms = cli_now_ms();
    return start_after_cut(drill, cuts) && admitted_or_recovered(drill, cuts) &&
           drill_await_grant(drill, since, from_ms, DRILL_ADMIT_MS) && drill_all_ready(drill);
}

enum drill_end drill_play_cut_aof(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2, .service_flag = "--allow-unsafe-redis"};
    bool on = drill_begin(drill, &plan);
    struct cuts cuts = {0};

    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = drill_let_work(drill, CUT_GRANTS, DRILL_ADMIT_MS) && cut_round(drill, &cuts) &&
             drill_round_done(drill);
    }
    drill_note(drill,
               "Redis refused to start %u times: %u repaired with redis-check-aof, %u put back; %u times "
               "nothing was "
               "left and pawl store recover was run",
               cuts.refused, cuts.fixed, cuts.refused - cuts.fixed, cuts.recovered);
    return drill_finish(drill, on);
}

/* -- restore-backup */

/* Redis dies; what there is now is kept as a backup, and one of before is put in its place. */
static bool put_back_old(struct drill *drill, unsigned *backups)
{
    struct drill_world *world = &drill->world;
    char chosen[2] = {(char)('0' + drill_random_between(&drill->random, 0, *backups - 1)), '\0'};
    char now[2] = {(char)('0' + 1 + drill->result.rounds % (BACKUPS - 1)), '\0'};

    if (!drill_world_ok(drill, drill_world_kill(world, &world->redis))) {
        return false;
    }
    drill_history_mark(&drill->history, DRILL_ALL_OVER);
    if (!drill_world_ok(drill, drill_world_data_copy(world, "now") &&
                                   drill_world_data_put_back(world, chosen) &&
                                   drill_world_data_rename(world, "now", now))) {
        return false;
    }
    *backups = *backups < BACKUPS ? *backups + 1 : BACKUPS;
    return true;
}

/* Asks until somebody knows: a holder of before is told that its hold is over, never anything else. */
static bool holder_is_refused(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    enum drill_event_end end = drill_client_renew(client, hold, 0); /* the first request */
    enum drill_event_end write = drill_client_write(client, hold);

    for (unsigned i = 0; i < REFUSALS_MAX && end != DRILL_OK && write == DRILL_NOT_DONE; i++) {
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, LOOK_AGAIN_MS))) {
            return false;
        }
        write = drill_client_write(client, hold);
    }
    if (end == DRILL_OK || write != DRILL_OVER) {
        return drill_wrong(drill, "a hold of before the backup was %s",
                           end == DRILL_OK ? "renewed" : "not refused");
    }
    return true;
}

static bool restore_round(struct drill *drill, struct drill_client *client, unsigned *backups)
{
    struct drill_hold hold;
    uint64_t since, from_ms;

    if (!drill_take_long(drill, client, &hold) || !put_back_old(drill, backups)) {
        return false;
    }
    since = drill_history_place(&drill->history);
    from_ms = cli_now_ms();
    return drill_redis_return(drill) && holder_is_refused(drill, client, &hold) &&
           drill_await_grant(drill, since, from_ms, DRILL_ADMIT_MS) && drill_all_ready(drill);
}

/* As an operator would: with Redis at rest. */
static bool back_up_first(struct drill *drill)
{
    struct drill_world *world = &drill->world;

    return drill_world_ok(drill,
                          drill_world_kill(world, &world->redis) && drill_world_data_copy(world, "0")) &&
           drill_redis_return(drill) && drill_all_ready(drill);
}

enum drill_end drill_play_restore_backup(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2};
    bool on = drill_begin_world(drill, &plan) && back_up_first(drill) && drill_begin_load(drill);
    struct drill_client client = drill_main_client(drill, NULL);
    unsigned backups = 1;

    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = drill_let_work(drill, RESTORE_GRANTS, DRILL_ADMIT_MS) &&
             restore_round(drill, &client, &backups) && drill_round_done(drill);
    }
    return drill_finish(drill, on);
}

/* -- foreign-store */

/* A store of somebody else's, made beside ours: its files are kept as "foreign". */
static bool make_foreign(struct drill *drill)
{
    struct drill_world *world = &drill->world;
    struct drill_service stranger = {.program = "pawl-lease"};
    bool made;

    made = drill_world_path(world, stranger.state, world->dir, "stranger") &&
           drill_world_kill(world, &world->redis) && drill_world_data_copy(world, "ours") &&
           drill_world_delete(world, world->data) &&
           (mkdir(world->data, 0700) == 0 || drill_world_wrong(world, "%s cannot be made", world->data)) &&
           drill_world_redis_return(world) && drill_world_init_store(world, &stranger) &&
           drill_world_kill(world, &world->redis) && drill_world_data_copy(world, "foreign") &&
           drill_world_data_put_back(world, "ours");
    return drill_world_ok(drill, made) && drill_redis_return(drill) && drill_all_ready(drill);
}

static bool is_untouched(struct drill *drill, const char *keys_before)
{
    char keys[DRILL_REPLY_SIZE];

    return drill_world_ok(drill, drill_world_ask_redis(&drill->world, "DBSIZE", keys)) &&
           (strcmp(keys, keys_before) == 0 ||
            drill_wrong(drill, "the other store had %s keys, and has %s now", keys_before, keys));
}

/* Nothing is granted, written or left in it. */
static bool foreign_is_refused(struct drill *drill, struct drill_client *client,
                               const struct drill_hold *hold)
{
    char keys[DRILL_REPLY_SIZE];

    return drill_world_ok(drill, drill_world_ask_redis(&drill->world, "DBSIZE", keys)) &&
           drill_all_refuse(drill, "store-not-ours") &&
           ((drill_client_write(client, hold) == DRILL_NOT_DONE &&
             strcmp(drill_client_code(client), "store-not-ours") == 0) ||
            drill_wrong(drill, "the gateway was to refuse with store-not-ours; it said \"%s\"",
                        drill_client_code(client))) &&
           drill_pause_a_moment(drill) && is_untouched(drill, keys);
}

static bool foreign_round(struct drill *drill, struct drill_client *client, struct drill_hold *hold)
{
    struct drill_world *world = &drill->world;
    uint64_t since, from_ms = cli_now_ms();

    if (!drill_world_ok(drill, drill_world_kill(world, &world->redis) &&
                                   drill_world_data_copy(world, "ours") &&
                                   drill_world_data_put_back(world, "foreign"))) {
        return false;
    }
    drill_history_mark(&drill->history, DRILL_CLOSED);
    if (!drill_redis_return(drill) || !foreign_is_refused(drill, client, hold) ||
        !drill_world_ok(drill,
                        drill_world_kill(world, &world->redis) && drill_world_data_put_back(world, "ours"))) {
        return false;
    }
    since = drill_history_mark(&drill->history, DRILL_OPENED);
    return drill_redis_return(drill) && drill_await_grant(drill, since, from_ms, DRILL_ADMIT_MS) &&
           drill_all_ready(drill) && drill_long_survived(drill, client, hold);
}

enum drill_end drill_play_foreign_store(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2};
    bool on = drill_begin_world(drill, &plan) && make_foreign(drill) && drill_begin_load(drill);
    struct drill_client client = drill_main_client(drill, NULL);
    struct drill_hold hold;

    on = on && drill_take_long(drill, &client, &hold);
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = drill_let_work(drill, CUT_GRANTS, DRILL_ADMIT_MS) && foreign_round(drill, &client, &hold) &&
             drill_round_done(drill);
    }
    return drill_finish(drill, on);
}
