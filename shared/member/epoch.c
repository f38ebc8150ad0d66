/* epoch.c - what a process knows of the store's present life.
 *
 * The text and the reasons are behind a mutex and are looked at only when something has changed; numbers that
 * every call needs are atomics. What was seen in a stripe is one atomic word, the epoch's low bits above the
 * number, so that an answer that arrives late cannot raise what belongs to the next life. */
#include "shared/member/epoch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/loop/loop.h"
#include "shared/text/memory.h"

enum { SEQ_BITS = 48, FULL_PERCENT = 90, NOT_FULL_PERCENT = 88 };

#define SEQ_MASK ((UINT64_C(1) << SEQ_BITS) - 1)

/* What a worker has last told of its link. */
struct life_line {
    char run[LIFE_RUN_SIZE];
    bool idle; /* has been since calls were last forbidden */
};

struct life {
    atomic_uint changes;
    _Atomic(int64_t) epoch, behind_us, let_through, ceiling, pulse_above;
    atomic_bool pulse_wanted;
    _Atomic(uint64_t) seen[STRIPES], granted[STRIPES];
    pthread_mutex_t lock; /* of all below; identity may be read without it once epoch is not 0 */
    char identity[LIFE_IDENTITY_SIZE], run[LIFE_RUN_SIZE], stream[LIFE_STREAM_SIZE];
    uint64_t confirmed_us;
    enum problem problem;
    const char *check;
    char detail[LIFE_DETAIL_SIZE], trouble[LIFE_DETAIL_SIZE];
    bool doubtful;
    atomic_bool floor_is_lost, full, crowded;
    _Atomic(uint64_t) memory_used, memory_allowed;
    uint64_t memory_max;
    _Atomic(const struct store_refusal *) refusal;
    struct life_line lines[LIFE_WORKERS_MAX];
};

/* behind_us before any sample. */
#define NO_SAMPLE INT64_MIN
/* More is no time: it would be more than 64 bits hold in microseconds. */
#define STORE_MS_MAX (INT64_MAX / 2000)

struct life *life_new(void)
{
    struct life *life = must_have(calloc(1, sizeof(*life)));

    atomic_store(&life->behind_us, NO_SAMPLE);
    atomic_store(&life->pulse_above, INT64_MAX);
    pthread_mutex_init(&life->lock, NULL);
    life->problem = PROBLEM_STORE_UNAVAILABLE;
    life->check = "store-connecting";
    snprintf(life->detail, sizeof(life->detail), "The store has not been asked yet.");
    return life;
}

void life_free(struct life *life)
{
    pthread_mutex_destroy(&life->lock);
    free(life);
}

static void raise_to(_Atomic(int64_t) *number, int64_t value)
{
    int64_t known = atomic_load(number);

    while (known < value && !atomic_compare_exchange_weak(number, &known, value)) {
    }
}

static uint64_t seen_word(int64_t epoch, uint64_t seq)
{
    return (uint64_t)epoch << SEQ_BITS | (seq & SEQ_MASK);
}

static bool seen_is_of(uint64_t word, int64_t epoch)
{
    return word >> SEQ_BITS == seen_word(epoch, 0) >> SEQ_BITS;
}

static uint64_t word_number(const _Atomic(uint64_t) *word, int64_t epoch)
{
    uint64_t now = atomic_load(word);

    return seen_is_of(now, epoch) ? now & SEQ_MASK : 0;
}

/* Only of the epoch that the word is of. */
static void word_raise(_Atomic(uint64_t) *word, int64_t epoch, uint64_t number)
{
    uint64_t now = atomic_load(word);

    while (seen_is_of(now, epoch) && (now & SEQ_MASK) < number &&
           !atomic_compare_exchange_weak(word, &now, seen_word(epoch, number))) {
    }
}

uint64_t life_seen(const struct life *life, unsigned stripe, int64_t epoch)
{
    return word_number(&life->seen[stripe], epoch);
}

void life_saw(struct life *life, unsigned stripe, int64_t epoch, uint64_t seq)
{
    word_raise(&life->seen[stripe], epoch, seq);
}

/* -- told by the member */

/* With the lock held: a worker that tells that it is idle because calls are forbidden must not be able to
 * take what it was allowed before for still true, and call once more. */
static void has_changed(struct life *life)
{
    atomic_fetch_add(&life->changes, 1);
}

void life_admit(struct life *life, const char *identity, const char *run, struct bytes stream, int64_t epoch,
                const uint64_t seqs[STRIPES], uint64_t confirmed_us)
{
    pthread_mutex_lock(&life->lock);
    if (life->identity[0] == '\0') {
        snprintf(life->identity, sizeof(life->identity), "%s", identity);
    }
    snprintf(life->run, sizeof(life->run), "%s", run);
    snprintf(life->stream, sizeof(life->stream), "master_replid:%.*s", (int)stream.len, stream.at);
    for (unsigned i = 0; i < STRIPES; i++) {
        atomic_store(&life->seen[i], seen_word(epoch, seqs[i]));
        atomic_store(&life->granted[i], seen_word(epoch, 0));
    }
    life->confirmed_us = confirmed_us;
    life->problem = PROBLEM_NONE;
    life->doubtful = false;
    atomic_store(&life->epoch, epoch);
    has_changed(life);
    pthread_mutex_unlock(&life->lock);
}

void life_confirm(struct life *life, const uint64_t seqs[STRIPES], uint64_t confirmed_us)
{
    int64_t epoch = atomic_load(&life->epoch);

    for (unsigned i = 0; i < STRIPES; i++) {
        life_saw(life, i, epoch, seqs[i]);
    }
    pthread_mutex_lock(&life->lock);
    life->confirmed_us = confirmed_us;
    life->problem = PROBLEM_NONE;
    has_changed(life);
    pthread_mutex_unlock(&life->lock);
}

void life_suspend(struct life *life, enum problem problem, const char *check, const char *detail)
{
    pthread_mutex_lock(&life->lock);
    if (life->problem == PROBLEM_NONE) {
        for (unsigned i = 0; i < LIFE_WORKERS_MAX; i++) {
            life->lines[i].idle = false;
        }
    }
    life->problem = problem;
    life->check = check;
    snprintf(life->detail, sizeof(life->detail), "%s", detail);
    has_changed(life);
    pthread_mutex_unlock(&life->lock);
}

void life_clock_sample(struct life *life, int64_t store_ms)
{
    if (store_ms > 0 && store_ms <= STORE_MS_MAX) {
        raise_to(&life->behind_us, store_ms * 1000 - (int64_t)loop_now_us());
    }
}

/* -- for whoever calls */

enum problem life_allows(struct life *life, const char *run, uint64_t stood_us)
{
    enum problem problem;

    pthread_mutex_lock(&life->lock);
    problem = life->problem;
    if (problem == PROBLEM_NONE && run[0] == '\0') {
        problem = PROBLEM_STORE_UNAVAILABLE;
    } else if (problem == PROBLEM_NONE && (strcmp(run, life->run) != 0 || stood_us > life->confirmed_us)) {
        problem = PROBLEM_STORE_NOT_ADMITTED;
    }
    pthread_mutex_unlock(&life->lock);
    return problem;
}

int64_t life_stream(struct life *life, char stream[LIFE_STREAM_SIZE])
{
    pthread_mutex_lock(&life->lock);
    int64_t epoch = atomic_load(&life->epoch);
    memcpy(stream, life->stream, LIFE_STREAM_SIZE);
    pthread_mutex_unlock(&life->lock);
    return epoch;
}

unsigned life_changes(const struct life *life)
{
    return atomic_load(&life->changes);
}

int64_t life_epoch(const struct life *life)
{
    return atomic_load(&life->epoch);
}

const char *life_identity(const struct life *life)
{
    return life->identity;
}

const char *life_store(const struct life *life)
{
    const char *colon = life_epoch(life) > 0 ? strchr(life->identity, ':') : NULL;

    return colon != NULL ? colon + 1 : "";
}

int64_t life_now_ms(const struct life *life)
{
    int64_t behind_us = atomic_load(&life->behind_us);

    return behind_us == NO_SAMPLE ? 0 : (behind_us + (int64_t)loop_now_us()) / 1000;
}

void life_let_through(struct life *life, int64_t token)
{
    raise_to(&life->let_through, token);
}

int64_t life_let_through_most(const struct life *life)
{
    int64_t most = atomic_load(&life->let_through), ceiling = atomic_load(&life->ceiling);

    return most < ceiling ? most : ceiling;
}

void life_want_pulse(struct life *life)
{
    atomic_store(&life->pulse_wanted, true);
}

bool life_wants_pulse(struct life *life)
{
    return atomic_exchange(&life->pulse_wanted, false);
}

void life_set_ceiling(struct life *life, int64_t ceiling, int64_t ahead)
{
    atomic_store(&life->ceiling, ceiling);
    atomic_store(&life->pulse_above, ceiling - ahead);
}

/* Once is enough: the answer to the pulse sets the next bound. */
uint64_t life_granted_most(const struct life *life, unsigned stripe, int64_t epoch)
{
    return word_number(&life->granted[stripe], epoch);
}

void life_granted(struct life *life, unsigned stripe, int64_t epoch, int64_t token)
{
    word_raise(&life->granted[stripe], epoch, (uint64_t)token);
    if (token > atomic_load(&life->pulse_above)) {
        atomic_store(&life->pulse_above, INT64_MAX);
        life_want_pulse(life);
    }
}

void life_line_tell(struct life *life, unsigned worker, const char *run, bool idle, bool unsafe)
{
    struct life_line *line = &life->lines[worker];

    pthread_mutex_lock(&life->lock);
    snprintf(line->run, sizeof(line->run), "%s", run);
    line->idle = line->idle || (idle && life->problem != PROBLEM_NONE);
    life->doubtful = life->doubtful || (unsafe && life->problem == PROBLEM_NONE);
    pthread_mutex_unlock(&life->lock);
}

bool life_is_settled(struct life *life, unsigned workers, const char *run)
{
    bool settled;

    pthread_mutex_lock(&life->lock);
    settled = life->problem != PROBLEM_NONE; /* what was told when calls were last forbidden is over */
    for (unsigned i = 0; i < workers; i++) {
        settled = settled && life->lines[i].idle && strcmp(life->lines[i].run, run) == 0;
    }
    pthread_mutex_unlock(&life->lock);
    return settled;
}

bool life_is_doubtful(struct life *life)
{
    pthread_mutex_lock(&life->lock);
    bool doubtful = life->doubtful;
    pthread_mutex_unlock(&life->lock);
    return doubtful;
}

void life_set_trouble(struct life *life, const char *trouble, bool lost)
{
    pthread_mutex_lock(&life->lock);
    snprintf(life->trouble, sizeof(life->trouble), "%s", trouble);
    pthread_mutex_unlock(&life->lock);
    atomic_store(&life->floor_is_lost, lost);
}

bool life_has_lost_its_floor(struct life *life)
{
    return atomic_load(&life->floor_is_lost);
}

bool life_trouble(struct life *life, char detail[LIFE_DETAIL_SIZE])
{
    pthread_mutex_lock(&life->lock);
    snprintf(detail, LIFE_DETAIL_SIZE, "%s", life->trouble);
    pthread_mutex_unlock(&life->lock);
    return detail[0] != '\0';
}

void life_set_memory_max(struct life *life, uint64_t most)
{
    life->memory_max = most;
    life_set_memory(life, 0, 0);
}

bool life_set_memory(struct life *life, uint64_t used, uint64_t maxmemory)
{
    bool is_lower = life->memory_max > 0 && (maxmemory == 0 || life->memory_max < maxmemory);
    uint64_t allowed = is_lower ? life->memory_max : maxmemory;
    bool was_full = atomic_load(&life->full);
    uint64_t bound = allowed / 100 * (was_full ? NOT_FULL_PERCENT : FULL_PERCENT);
    bool is_full = allowed > 0 && used >= bound;

    atomic_store(&life->memory_used, used);
    atomic_store(&life->memory_allowed, allowed);
    atomic_store(&life->full, is_full);
    return is_full != was_full;
}

void life_memory(const struct life *life, uint64_t *used, uint64_t *allowed)
{
    *used = atomic_load(&life->memory_used);
    *allowed = atomic_load(&life->memory_allowed);
}

bool life_is_full(const struct life *life)
{
    return atomic_load(&life->full);
}

bool life_set_crowded(struct life *life, bool crowded)
{
    return atomic_exchange(&life->crowded, crowded) != crowded;
}

bool life_is_crowded(const struct life *life)
{
    return atomic_load(&life->crowded);
}

bool life_set_refusal(struct life *life, const struct store_refusal *refusal)
{
    return atomic_exchange(&life->refusal, refusal) != refusal;
}

const struct store_refusal *life_refusal(const struct life *life)
{
    return atomic_load(&life->refusal);
}

const char *life_check(struct life *life, enum problem *problem, char detail[LIFE_DETAIL_SIZE])
{
    const char *check;

    pthread_mutex_lock(&life->lock);
    check = life->problem != PROBLEM_NONE ? life->check : NULL;
    *problem = life->problem;
    snprintf(detail, LIFE_DETAIL_SIZE, "%s", life->detail);
    pthread_mutex_unlock(&life->lock);
    return check;
}
