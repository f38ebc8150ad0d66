/* worker_recipe.c - locks on Redis as they are widely used; docs/hazards.md says where each comes from, and
 * what is wrong with it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cli/cli.h"
#include "api/cli/demo/worker.h"
#include "shared/token/random.h"

enum { NUMBER_SIZE = 24, KEY_SIZE = 160, EXPIRE_PART = 4, LOOK_PART = 4, DRIFT_PART = 100, DRIFT_MS = 2 };

/* Deletes the lock only when it has the value of this holder. */
static const char release_script[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('del', KEYS[1]) else return 0 end";
/* Readers are a sorted set with the end of each; a writer is a key of its own. */
static const char reader_script[] = "if redis.call('exists', KEYS[1]) == 1 then return 0 end "
                                    "redis.call('zadd', KEYS[2], ARGV[3], ARGV[1]) return 1";
static const char writer_script[] = "redis.call('zremrangebyscore', KEYS[2], '-inf', ARGV[2]) "
                                    "if redis.call('zcard', KEYS[2]) > 0 then return 0 end "
                                    "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[4]) "
                                    "and 1 or 0";
static const char reader_leave_script[] = "return redis.call('zrem', KEYS[2], ARGV[1]) + "
                                          "(redis.call('get', KEYS[1]) == ARGV[1] and "
                                          "redis.call('del', KEYS[1]) or 0)";

static void number_put(char text[NUMBER_SIZE], int64_t number)
{
    snprintf(text, NUMBER_SIZE, "%" PRId64, number);
}

/* The time of day, as this process believes it to be. */
static int64_t day_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool says(const char *address, const char *const *words, const char *wanted)
{
    char reply[WORKER_REPLY_SIZE];

    return worker_ask(address, words, reply) && strcmp(reply, wanted) == 0;
}

static int64_t number_of(const char *address, const char *const *words)
{
    char reply[WORKER_REPLY_SIZE];

    return worker_ask(address, words, reply) ? strtoll(reply, NULL, 10) : -1;
}

/* -- SET NX PX */

static bool set_nx_px(const struct worker *worker, const char *address)
{
    char ttl[NUMBER_SIZE];
    const char *const words[] = {"SET", worker->lease, worker->value, "NX", "PX", ttl, NULL};

    number_put(ttl, worker->ttl_ms);
    return says(address, words, "OK");
}

static int64_t release_by_script(const struct worker *worker, const char *address)
{
    const char *const words[] = {"EVAL", release_script, "1", worker->lease, worker->value, NULL};

    return number_of(address, words);
}

static enum worker_try take_px(struct worker *worker)
{
    uint64_t asked_ms = cli_now_ms();

    if (!set_nx_px(worker, worker->nodes[0])) {
        return TRY_HELD;
    }
    worker_granted(worker, 0, asked_ms, worker->ttl_ms);
    return TRY_GRANTED;
}

/* -- SETNX, then EXPIRE */

static enum worker_try take_expire(struct worker *worker)
{
    char ttl[NUMBER_SIZE];
    const char *const set[] = {"SETNX", worker->lease, worker->value, NULL};
    const char *const expire[] = {"PEXPIRE", worker->lease, ttl, NULL};
    uint64_t asked_ms = cli_now_ms();

    number_put(ttl, worker->ttl_ms);
    if (number_of(worker->nodes[0], set) != 1) {
        return TRY_HELD;
    }
    worker_say("set", 0, "-");
    worker_pass_ms(worker->ttl_ms / EXPIRE_PART); /* whatever the program does between the two */
    if (number_of(worker->nodes[0], expire) != 1) {
        return TRY_HELD;
    }
    worker_granted(worker, 0, asked_ms, worker->ttl_ms);
    return TRY_GRANTED;
}

/* -- SETNX with the end as value */

static enum worker_try take_timestamp(struct worker *worker)
{
    const char *const set[] = {"SETNX", worker->lease, worker->value, NULL};
    const char *const get[] = {"GET", worker->lease, NULL};
    const char *const get_set[] = {"GETSET", worker->lease, worker->value, NULL};
    uint64_t asked_ms = cli_now_ms();

    number_put(worker->value, day_ms() + (int64_t)worker->ttl_ms + 1);
    if (number_of(worker->nodes[0], set) != 1 &&
        (number_of(worker->nodes[0], get) >= day_ms() || number_of(worker->nodes[0], get_set) >= day_ms())) {
        return TRY_HELD;
    }
    worker_granted(worker, 0, asked_ms, worker->ttl_ms);
    return TRY_GRANTED;
}

void worker_recipe_extend(struct worker *worker)
{
    const char *const set[] = {"SET", worker->lease, worker->value, NULL};

    number_put(worker->value, day_ms() + (int64_t)worker->ttl_ms + 1);
    if (says(worker->nodes[0], set, "OK")) {
        worker->holds_until_ms = cli_now_ms() + worker->ttl_ms;
        worker_say("extended", 0, "-");
    } else {
        worker_say("failed", 0, "extend");
    }
}

/* -- a majority of several servers */

static enum worker_try take_redlock(struct worker *worker)
{
    uint64_t asked_ms = cli_now_ms();
    unsigned got = 0;
    int64_t left_ms;

    for (unsigned i = 0; i < worker->node_count; i++) {
        got += set_nx_px(worker, worker->nodes[i]);
    }
    left_ms = (int64_t)worker->ttl_ms - (int64_t)(cli_now_ms() - asked_ms) -
              (int64_t)worker->ttl_ms / DRIFT_PART - DRIFT_MS;
    if (got > worker->node_count / 2 && left_ms > 0) {
        worker_granted(worker, 0, asked_ms, (int64_t)(cli_now_ms() - asked_ms) + left_ms);
        return TRY_GRANTED;
    }
    for (unsigned i = 0; i < worker->node_count; i++) {
        release_by_script(worker, worker->nodes[i]);
    }
    return TRY_HELD;
}

static int64_t release_redlock(const struct worker *worker)
{
    int64_t released = 0;

    for (unsigned i = 0; i < worker->node_count; i++) {
        released += release_by_script(worker, worker->nodes[i]) == 1;
    }
    return released > worker->node_count / 2;
}

/* -- readers, and a writer */

static int64_t readers_do(const struct worker *worker, const char *script)
{
    char readers[KEY_SIZE], now[NUMBER_SIZE], end[NUMBER_SIZE], ttl[NUMBER_SIZE];
    const char *const words[] = {"EVAL",        script, "2", worker->lease, readers,
                                 worker->value, now,    end, ttl,           NULL};

    snprintf(readers, sizeof(readers), "%.128s:readers", worker->lease);
    number_put(now, day_ms());
    number_put(end, day_ms() + (int64_t)worker->ttl_ms);
    number_put(ttl, worker->ttl_ms);
    return number_of(worker->nodes[0], words);
}

static enum worker_try take_readers(struct worker *worker, enum worker_want want)
{
    uint64_t asked_ms = cli_now_ms();

    if (readers_do(worker, want == WANT_SHARED ? reader_script : writer_script) != 1) {
        return TRY_HELD;
    }
    worker_granted(worker, 0, asked_ms, worker->ttl_ms);
    return TRY_GRANTED;
}

/* -- any of them */

static bool lock_is(const struct worker *worker, const char *lock)
{
    return strcmp(worker->lock, lock) == 0;
}

enum worker_try worker_recipe_take(struct worker *worker, enum worker_want want)
{
    random_text(worker->value, WORKER_VALUE_SIZE - 8);
    if (lock_is(worker, "expire")) {
        return take_expire(worker);
    }
    if (lock_is(worker, "timestamp")) {
        return take_timestamp(worker);
    }
    if (lock_is(worker, "redlock")) {
        return take_redlock(worker);
    }
    return lock_is(worker, "readers") ? take_readers(worker, want) : take_px(worker);
}

/* DEL, whoever has it. */
static void release_by_del(const struct worker *worker)
{
    const char *const words[] = {"DEL", worker->lease, NULL};

    worker_say("deleted", number_of(worker->nodes[0], words), "-");
}

static void release_by_get_del(const struct worker *worker)
{
    const char *const get[] = {"GET", worker->lease, NULL};

    if (!says(worker->nodes[0], get, worker->value)) {
        worker_say("lost", 0, "-");
        return;
    }
    worker_say("looked", 0, "-");
    worker_pass_ms(worker->ttl_ms / LOOK_PART); /* the way from one command to the next */
    release_by_del(worker);
}

void worker_recipe_release(struct worker *worker)
{
    int64_t released;

    if (lock_is(worker, "del")) {
        release_by_del(worker);
        return;
    }
    if (lock_is(worker, "get-del")) {
        release_by_get_del(worker);
        return;
    }
    if (lock_is(worker, "readers")) {
        released = readers_do(worker, reader_leave_script);
    } else if (lock_is(worker, "redlock")) {
        released = release_redlock(worker);
    } else {
        released = release_by_script(worker, worker->nodes[0]);
    }
    if (released == 1) {
        worker_say("released", 0, "-");
    } else {
        worker_say("lost", 0, "-");
    }
}
