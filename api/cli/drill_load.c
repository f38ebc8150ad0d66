/* drill_load.c - the clients of a drill, as threads.
 *
 *   turn_take      once and again: something that clients do
 *     read         look at a resource
 *     write_old    try a write with the token of a hold of long ago
 *     hold_lease   acquire; write, now and then renew; then one of: release, release and write all the same,
 * pause longer than the ttl and write all the same, leave it to expire */
#include "api/cli/drill_load.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cli/cli.h"

enum {
    OLD_HOLDS = 24, /* that a client remembers, of whatever age */
    TTL_MIN_MS = 300,
    TTL_SHORT_MS = 600,
    TTL_MAX_MS = 2000,
    THINK_MIN_MS = 1,
    THINK_MAX_MS = 12,
    RETRY_MIN_MS = 5,
    RETRY_MAX_MS = 40,
    REPEATS = 8 /* of an acquire without a known end */
};

struct load_client {
    struct drill_client client;
    struct drill_load *load;
    pthread_t thread;
    struct drill_hold old[OLD_HOLDS];
    unsigned old_count;
};

enum load_state { LOAD_RUNS, LOAD_PAUSES, LOAD_STOPS };

struct drill_load {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum load_state state;
    unsigned count, busy;
    struct load_client clients[DRILL_CLIENTS_MAX];
};

/* -- time */

static struct timespec time_of(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

/* false: the load stops. */
static bool pause_ms(struct load_client *one, uint64_t ms)
{
    struct drill_load *load = one->load;
    const struct timespec until = time_of(cli_now_ms() + ms);
    bool stops;

    pthread_mutex_lock(&load->lock);
    while (load->state != LOAD_STOPS &&
           pthread_cond_timedwait(&load->changed, &load->lock, &until) != ETIMEDOUT) {
    }
    stops = load->state == LOAD_STOPS;
    pthread_mutex_unlock(&load->lock);
    return !stops;
}

static uint64_t choose(struct load_client *one, uint64_t low, uint64_t high)
{
    return drill_random_between(&one->client.random, low, high);
}

static bool think(struct load_client *one)
{
    return pause_ms(one, choose(one, THINK_MIN_MS, THINK_MAX_MS));
}

static bool wait_and_retry(struct load_client *one)
{
    return pause_ms(one, choose(one, RETRY_MIN_MS, RETRY_MAX_MS));
}

/* -- holds of long ago */

static void remember(struct load_client *one, const struct drill_hold *hold)
{
    unsigned at = one->old_count < OLD_HOLDS ? one->old_count++ : (unsigned)choose(one, 0, OLD_HOLDS - 1);

    one->old[at] = *hold;
}

static void write_old(struct load_client *one)
{
    if (one->old_count > 0) {
        drill_client_write(&one->client, &one->old[choose(one, 0, one->old_count - 1)]);
    }
}

/* -- a hold */

static uint64_t choose_ttl_ms(struct load_client *one)
{
    return choose(one, TTL_MIN_MS, choose(one, 0, 3) == 0 ? TTL_MAX_MS : TTL_SHORT_MS);
}

/* An acquire without a known end is repeated: with the same lease_id it is the same hold. */
static bool acquire(struct load_client *one, struct drill_hold *hold)
{
    enum drill_event_end end = drill_client_acquire(&one->client, hold);
    bool unknown = end == DRILL_UNKNOWN;

    for (unsigned i = 0; unknown && i < REPEATS && wait_and_retry(one); i++) {
        end = drill_client_acquire(&one->client, hold);
        unknown = end == DRILL_UNKNOWN || end == DRILL_NOT_DONE;
    }
    if (end != DRILL_OK && !wait_and_retry(one)) {
        return false;
    }
    return end == DRILL_OK;
}

static void work(struct load_client *one, struct drill_hold *hold)
{
    uint64_t writes = choose(one, 1, 3);

    for (uint64_t i = 0; i < writes && think(one); i++) {
        drill_client_write(&one->client, hold);
    }
    if (choose(one, 0, 4) == 0) {
        drill_client_renew(&one->client, hold, 0);
    }
}

static void outlive(struct load_client *one, struct drill_hold *hold)
{
    uint64_t now = cli_now_ms();
    uint64_t left_ms = hold->until_ms > now ? hold->until_ms - now : 0;

    if (pause_ms(one, left_ms + choose(one, 1, 400))) {
        drill_client_write(&one->client, hold);
    }
}

static void give_up(struct load_client *one, struct drill_hold *hold)
{
    uint64_t how = choose(one, 0, 99);

    if (how < 70) {
        drill_client_release(&one->client, hold);
    } else if (how < 82) {
        drill_client_release(&one->client, hold);
        drill_client_write(&one->client, hold);
    } else if (how < 94 && hold->ttl_ms <= TTL_SHORT_MS) {
        outlive(one, hold);
    }
}

static void hold_lease(struct load_client *one)
{
    struct drill_hold hold;

    drill_hold_new(&one->client, &hold, (unsigned)choose(one, 0, DRILL_LEASES - 1), choose_ttl_ms(one));
    if (acquire(one, &hold)) {
        work(one, &hold);
        give_up(one, &hold);
        remember(one, &hold);
    }
}

/* -- a client */

static void turn_take(struct load_client *one)
{
    uint64_t what = choose(one, 0, 99);

    if (what < 8) {
        drill_client_read(&one->client, (unsigned)choose(one, 0, DRILL_LEASES - 1));
    } else if (what < 18) {
        write_old(one);
    } else {
        hold_lease(one);
    }
}

/* false: the load stops. */
static bool turn_begin(struct drill_load *load)
{
    bool stops;

    pthread_mutex_lock(&load->lock);
    while (load->state == LOAD_PAUSES) {
        pthread_cond_wait(&load->changed, &load->lock);
    }
    stops = load->state == LOAD_STOPS;
    load->busy += !stops;
    pthread_mutex_unlock(&load->lock);
    return !stops;
}

static void turn_end(struct drill_load *load)
{
    pthread_mutex_lock(&load->lock);
    load->busy--;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->lock);
}

static void *client_run(void *user)
{
    struct load_client *one = user;

    while (turn_begin(one->load)) {
        turn_take(one);
        think(one);
        turn_end(one->load);
    }
    return NULL;
}

/* -- all of them */

struct drill_load *drill_load_start(struct drill_world *world, struct drill_history *history,
                                    unsigned clients, uint64_t seed)
{
    struct drill_load *load = cli_alloc(sizeof(*load));
    pthread_condattr_t attributes;

    assert(clients > 0 && clients <= DRILL_CLIENTS_MAX);
    memset(load, 0, sizeof(*load));
    load->count = clients;
    pthread_mutex_init(&load->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* as cli_now_ms() */
    pthread_cond_init(&load->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    for (unsigned i = 0; i < clients; i++) {
        struct load_client *one = &load->clients[i];

        one->load = load;
        one->client = (struct drill_client){
            .number = i + 1, .random = drill_random_split(seed, i + 1), .world = world, .history = history};
        if (pthread_create(&one->thread, NULL, client_run, one) != 0) {
            abort();
        }
    }
    return load;
}

static void load_change(struct drill_load *load, enum load_state state)
{
    pthread_mutex_lock(&load->lock);
    load->state = state;
    pthread_cond_broadcast(&load->changed);
    pthread_mutex_unlock(&load->lock);
}

void drill_load_pause(struct drill_load *load)
{
    load_change(load, LOAD_PAUSES);
    pthread_mutex_lock(&load->lock);
    while (load->busy > 0) {
        pthread_cond_wait(&load->changed, &load->lock);
    }
    pthread_mutex_unlock(&load->lock);
}

void drill_load_resume(struct drill_load *load)
{
    load_change(load, LOAD_RUNS);
}

void drill_load_stop(struct drill_load *load)
{
    if (load == NULL) {
        return;
    }
    load_change(load, LOAD_STOPS);
    for (unsigned i = 0; i < load->count; i++) {
        pthread_join(load->clients[i].thread, NULL);
    }
    pthread_cond_destroy(&load->changed);
    pthread_mutex_destroy(&load->lock);
    free(load);
}
