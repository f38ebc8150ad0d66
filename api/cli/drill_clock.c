/* drill_clock.c - clock-jump: Redis' clock of the day jumps, while the machine's monotonic one runs on.
 *
 *   a hold is taken; the clock jumps; then another client asks for the same lease until it has it: never
 * before the store says that the first is over, and never later than the first's ttl and a little; what the
 * first is told then, and after later jumps, is that it is over, for ever */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/drill_service.h"

enum {
    JUMPS = 4,
    TTL_LEAST_MS = 200,
    TTL_MOST_MS = 1500,
    TTL_RESTART_MS = 5000, /* more than a hold may outlive its ttl */
    BEFORE_MS = 200,
    BETWEEN_MS = 50,
    OUTLIVES_MS = 3000, /* the issue's: no hold outlives its ttl by more */
    LONG_MS = 600000,
    AGAIN_MS = 20,
    OLD = 8, /* holds that are over and are tried again and again */
    GRANTS = 10,
    BACK_EACH = 4,
    RESTART_EACH = 10,
    TAKE_TRIES = 40,
    TAKE_AGAIN_MS = 50
};

static const int64_t day_ns = INT64_C(86400000000000);
static const int64_t jumps_ns[JUMPS] = {INT64_C(86400000000000), INT64_C(-86400000000000),
                                        INT64_C(1000000000), INT64_C(-1000000000)};

struct clocks {
    struct drill_shim shim;
    struct drill_client one, two;
    struct drill_hold old[OLD]; /* told to be over */
    unsigned olds;
    uint64_t slowest_ms; /* from the end of a ttl to the next grant */
};

/* Another client, until it has the lease. Taken: when it was told so. */
static bool take_over(struct drill *drill, struct clocks *clocks, struct drill_hold *hold, uint64_t until_ms,
                      uint64_t *taken_ms)
{
    enum drill_event_end end;

    while ((end = drill_client_acquire(&clocks->two, hold)) != DRILL_OK) {
        if (cli_now_ms() > until_ms) {
            return drill_wrong(drill,
                               "the lease was not free %d ms after the end of its ttl, after a jump: %s",
                               OUTLIVES_MS, clocks->two.code);
        }
        if (end != DRILL_UNKNOWN) { /* else it may be ours already */
            drill_hold_new(&clocks->two, hold, hold->lease, LONG_MS);
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, AGAIN_MS))) {
            return false;
        }
    }
    *taken_ms = cli_now_ms();
    return true;
}

/* Whatever the clock does later, these stay over. The judge sees it, too; here it is asked for on purpose. */
static bool old_ones_stay_over(struct drill *drill, struct clocks *clocks)
{
    for (unsigned i = 0; i < clocks->olds && i < OLD; i++) {
        struct drill_hold *hold = &clocks->old[i];

        if (drill_client_write(&clocks->one, hold) == DRILL_OK ||
            drill_client_renew(&clocks->one, hold, 0) == DRILL_OK) {
            return drill_wrong(drill, "the hold with token %" PRId64 " lives again after a jump of the clock",
                               hold->token);
        }
    }
    return true;
}

static void jump(struct clocks *clocks, int64_t ns)
{
    atomic_fetch_add(&clocks->shim.page->clock_ns, ns);
}

static bool sleep_up_to(struct drill *drill, unsigned ms)
{
    return drill_world_ok(
        drill, drill_world_sleep(&drill->world, (unsigned)drill_random_between(&drill->random, 0, ms)));
}

/* -- ways to jump; each takes the hold */

static bool take(struct drill *drill, struct clocks *clocks, struct drill_hold *hold, unsigned lease,
                 uint64_t ttl_ms)
{
    /* A time that nobody has noted yet is refused: a pulse comes within a tick. */
    for (unsigned i = 0; i < TAKE_TRIES; i++) {
        drill_hold_new(&clocks->one, hold, lease, ttl_ms);
        if (drill_client_acquire(&clocks->one, hold) == DRILL_OK) {
            return true;
        }
        if (!drill_world_ok(drill, drill_world_sleep(&drill->world, TAKE_AGAIN_MS))) {
            return false;
        }
    }
    return drill_wrong(drill, "a free lease was not granted: %s", clocks->one.code);
}

static bool jump_plainly(struct drill *drill, struct clocks *clocks, struct drill_hold *hold, unsigned lease)
{
    uint64_t ttl_ms = drill_random_between(&drill->random, TTL_LEAST_MS, TTL_MOST_MS);
    int64_t ns = jumps_ns[drill_random_between(&drill->random, 0, JUMPS - 1)];

    if (!take(drill, clocks, hold, lease, ttl_ms) || !sleep_up_to(drill, BEFORE_MS)) {
        return false;
    }
    jump(clocks, ns);
    return true;
}

static bool jump_and_back(struct drill *drill, struct clocks *clocks, struct drill_hold *hold, unsigned lease)
{
    uint64_t ttl_ms = drill_random_between(&drill->random, TTL_LEAST_MS, TTL_MOST_MS);
    bool taken;

    jump(clocks, day_ns);
    taken = take(drill, clocks, hold, lease, ttl_ms) && sleep_up_to(drill, BETWEEN_MS);
    jump(clocks, -day_ns);
    return taken;
}

static bool jump_restart(struct drill *drill, struct clocks *clocks, struct drill_hold *hold, unsigned lease)
{
    struct drill_world *world = &drill->world;

    if (!take(drill, clocks, hold, lease, TTL_RESTART_MS)) {
        return false;
    }
    jump(clocks, -day_ns);
    return drill_world_ok(
        drill,
        drill_world_sleep(world, TTL_RESTART_MS) && drill_world_kill(world, &world->lease[0].process) &&
            drill_world_kill(world, &world->lease[1].process) &&
            drill_world_kill(world, &world->gateway.process) && drill_world_start(world, &world->lease[0]) &&
            drill_world_start(world, &world->lease[1]) && drill_world_start(world, &world->gateway) &&
            drill_world_await_all_ready(world, DRILL_READY_MS));
}

static bool jump_somehow(struct drill *drill, struct clocks *clocks, struct drill_hold *hold, unsigned lease)
{
    unsigned number = drill->result.rounds;

    if (number % RESTART_EACH == RESTART_EACH / 2) {
        return jump_restart(drill, clocks, hold, lease);
    }
    return number % BACK_EACH == BACK_EACH - 1 ? jump_and_back(drill, clocks, hold, lease)
                                               : jump_plainly(drill, clocks, hold, lease);
}

/* -- a round */

static bool jump_round(struct drill *drill, struct clocks *clocks)
{
    unsigned lease = DRILL_LEASES + (unsigned)drill_random_between(&drill->random, 0, DRILL_LEASES_SPARE - 1);
    struct drill_hold first = {0}, second;
    uint64_t over_ms, taken_ms = 0;

    if (!jump_somehow(drill, clocks, &first, lease)) {
        return false;
    }
    over_ms = first.until_ms + OUTLIVES_MS < cli_now_ms() ? cli_now_ms() : first.until_ms;
    drill_hold_new(&clocks->two, &second, lease, LONG_MS);
    if (!take_over(drill, clocks, &second, over_ms + OUTLIVES_MS, &taken_ms)) {
        return false;
    }
    if (taken_ms > over_ms && taken_ms - over_ms > clocks->slowest_ms) {
        clocks->slowest_ms = taken_ms - over_ms;
    }
    clocks->old[clocks->olds++ % OLD] = first;
    return old_ones_stay_over(drill, clocks) && drill_let_work(drill, GRANTS, DRILL_GRANT_MS) &&
           (drill_client_release(&clocks->two, &second) == DRILL_OK ||
            drill_wrong(drill, "a hold of %d s could not be released: %s", LONG_MS / 1000, clocks->two.code));
}

enum drill_end drill_play_clock_jump(struct drill *drill)
{
    struct drill_world_plan plan = {.services = 2};
    struct clocks clocks;
    char why[DRILL_WHY_SIZE];
    bool on;

    memset(&clocks, 0, sizeof(clocks));
    if (drill->shim == NULL) {
        drill_cannot(drill, "needs the shim (--shim FILE), which is built by make shim");
        return drill->end;
    }
    if (!drill_shim_open(&clocks.shim, drill->shim, NULL, why, sizeof(why))) {
        drill_cannot(drill, "%s", why);
        return drill->end;
    }
    drill_shim_wrap(&clocks.shim, plan.redis_wrap);
    on = drill_begin(drill, &plan);
    clocks.one = drill_main_client(drill, NULL);
    clocks.two = drill_main_client(drill, NULL);
    for (unsigned i = 0; on && i < drill->rounds; i++) {
        on = jump_round(drill, &clocks) && drill_round_done(drill);
    }
    if (on && atomic_load(&clocks.shim.page->clock_reads) == 0) {
        on = drill_wrong(drill, "Redis never read a clock that had jumped");
    }
    drill_note(drill, "the longest that a hold kept another waiting beyond its ttl: %" PRIu64 " ms",
               clocks.slowest_ms);
    drill_finish(drill, on);
    drill_shim_close(&clocks.shim);
    return drill->end;
}
