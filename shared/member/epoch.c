/* epoch.c - what a process knows of the store's present epoch.
 *
 * The text and the reasons are behind a mutex and are looked at only when something has changed; numbers that
 * every call needs are atomics. What was seen in a stripe is one atomic word, the epoch's low bits above the
 * number, so that an answer that arrives late cannot raise what belongs to the next epoch. */
#include "shared/member/epoch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shared/loop/loop.h"
#include "shared/text/memory.h"

enum { SEQ_BITS = 48, FULL_PERCENT = 90, NOT_FULL_PERCENT = 88 };

#define SEQ_MASK ((UINT64_C(1) << SEQ_BITS) - 1)

/* What a worker has last reported of its link. */
struct epoch_line {
    char run[EPOCH_RUN_SIZE];
    bool idle; /* has been since calls were last forbidden */
};

struct epoch {
    atomic_uint changes;
    _Atomic(int64_t) epoch, began, behind_us, let_through, ceiling, heartbeat_above;
    atomic_bool heartbeat_wanted;
    _Atomic(uint64_t) seen[STRIPES], granted[STRIPES];
    pthread_mutex_t lock; /* of all below; identity may be read without it once epoch is not 0 */
    char identity[EPOCH_IDENTITY_SIZE], run[EPOCH_RUN_SIZE], stream[EPOCH_STREAM_SIZE];
    uint64_t confirmed_us;
    enum problem problem;
    const char *check;
    char detail[EPOCH_DETAIL_SIZE], trouble[EPOCH_DETAIL_SIZE];
    bool doubtful;
    atomic_bool floor_is_lost, full, crowded;
    _Atomic(uint64_t) memory_used, memory_allowed;
    atomic_uint registrars, registrars_heard;
    uint64_t memory_max;
    _Atomic(const struct store_refusal *) refusal;
    _Atomic(uint64_t) lease_ends_us; /* UINT64_MAX: never */
    struct epoch_line lines[EPOCH_WORKERS_MAX];
    struct epoch_set set;
    unsigned set_number;
};

/* behind_us before any sample. */
#define NO_SAMPLE INT64_MIN
/* More is no time: it would be more than 64 bits hold in microseconds. */
#define STORE_MS_MAX (INT64_MAX / 2000)

struct epoch *epoch_new(void)
{
    struct epoch *store_epoch = must_have(calloc(1, sizeof(*store_epoch)));

    atomic_store(&store_epoch->behind_us, NO_SAMPLE);
    atomic_store(&store_epoch->heartbeat_above, INT64_MAX);
    atomic_store(&store_epoch->lease_ends_us, UINT64_MAX);
    pthread_mutex_init(&store_epoch->lock, NULL);
    store_epoch->problem = PROBLEM_STORE_UNAVAILABLE;
    store_epoch->check = "store-connecting";
    snprintf(store_epoch->detail, sizeof(store_epoch->detail), "The store has not been asked yet.");
    return store_epoch;
}

void epoch_free(struct epoch *store_epoch)
{
    pthread_mutex_destroy(&store_epoch->lock);
    free(store_epoch);
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

/* Of an epoch that was only raised since the admission: the one that began with it, whose words go on. */
static int64_t begun(const struct epoch *store_epoch, int64_t epoch)
{
    int64_t began = atomic_load(&store_epoch->began);

    return epoch >= began && epoch <= atomic_load(&store_epoch->epoch) ? began : epoch;
}

uint64_t epoch_seen(const struct epoch *store_epoch, unsigned stripe, int64_t epoch)
{
    return word_number(&store_epoch->seen[stripe], begun(store_epoch, epoch));
}

void epoch_saw(struct epoch *store_epoch, unsigned stripe, int64_t epoch, uint64_t seq)
{
    word_raise(&store_epoch->seen[stripe], begun(store_epoch, epoch), seq);
}

/* -- learned by the member */

/* With the lock held: a worker that reports that it is idle because calls are forbidden must not be able to
 * take what it was allowed before for still true, and call once more. */
static void has_changed(struct epoch *store_epoch)
{
    atomic_fetch_add(&store_epoch->changes, 1);
}

void epoch_admit(struct epoch *store_epoch, const char *identity, const char *run, struct bytes stream,
                 int64_t epoch, const uint64_t seqs[STRIPES], uint64_t confirmed_us)
{
    pthread_mutex_lock(&store_epoch->lock);
    if (store_epoch->identity[0] == '\0')
        snprintf(store_epoch->identity, sizeof(store_epoch->identity), "%s", identity);
    snprintf(store_epoch->run, sizeof(store_epoch->run), "%s", run);
    snprintf(store_epoch->stream, sizeof(store_epoch->stream), "master_replid:%.*s", (int)stream.len,
             stream.at);
    if (seqs != NULL)
        atomic_store(&store_epoch->began, epoch);
    for (unsigned i = 0; seqs != NULL && i < STRIPES; i++) {
        atomic_store(&store_epoch->seen[i], seen_word(epoch, seqs[i]));
        atomic_store(&store_epoch->granted[i], seen_word(epoch, 0));
    }
    store_epoch->confirmed_us = confirmed_us;
    store_epoch->problem = PROBLEM_NONE;
    store_epoch->doubtful = false;
    atomic_store(&store_epoch->epoch, epoch);
    has_changed(store_epoch);
    pthread_mutex_unlock(&store_epoch->lock);
}

void epoch_confirm(struct epoch *store_epoch, const uint64_t seqs[STRIPES], uint64_t confirmed_us)
{
    int64_t epoch = atomic_load(&store_epoch->epoch);

    for (unsigned i = 0; seqs != NULL && i < STRIPES; i++)
        epoch_saw(store_epoch, i, epoch, seqs[i]);
    pthread_mutex_lock(&store_epoch->lock);
    store_epoch->confirmed_us = confirmed_us;
    store_epoch->problem = PROBLEM_NONE;
    has_changed(store_epoch);
    pthread_mutex_unlock(&store_epoch->lock);
}

static bool is_same_set(const struct epoch_set *a, const struct epoch_set *b)
{
    bool is_same = a->copies == b->copies && a->count == b->count && a->growing == b->growing &&
                   a->syncs == b->syncs && strcmp(a->forgotten, b->forgotten) == 0;

    for (unsigned i = 0; is_same && i < a->count; i++)
        is_same = strcmp(a->nodes[i], b->nodes[i]) == 0 && strcmp(a->runs[i], b->runs[i]) == 0;
    return is_same;
}

bool epoch_set_nodes(struct epoch *store_epoch, const struct epoch_set *set)
{
    bool is_other;

    pthread_mutex_lock(&store_epoch->lock);
    is_other = !is_same_set(&store_epoch->set, set);
    if (is_other) {
        memcpy(&store_epoch->set, set, sizeof(*set));
        store_epoch->set_number++;
        has_changed(store_epoch);
    }
    pthread_mutex_unlock(&store_epoch->lock);
    return is_other;
}

unsigned epoch_nodes(struct epoch *store_epoch, struct epoch_set *set)
{
    unsigned number;

    pthread_mutex_lock(&store_epoch->lock);
    memcpy(set, &store_epoch->set, sizeof(*set));
    number = store_epoch->set_number;
    pthread_mutex_unlock(&store_epoch->lock);
    return number;
}

void epoch_suspend(struct epoch *store_epoch, enum problem problem, const char *check, const char *detail)
{
    pthread_mutex_lock(&store_epoch->lock);
    if (store_epoch->problem == PROBLEM_NONE)
        for (unsigned i = 0; i < EPOCH_WORKERS_MAX; i++)
            store_epoch->lines[i].idle = false;
    store_epoch->problem = problem;
    store_epoch->check = check;
    snprintf(store_epoch->detail, sizeof(store_epoch->detail), "%s", detail);
    has_changed(store_epoch);
    pthread_mutex_unlock(&store_epoch->lock);
}

void epoch_clock_sample(struct epoch *store_epoch, int64_t store_ms)
{
    if (store_ms > 0 && store_ms <= STORE_MS_MAX)
        raise_to(&store_epoch->behind_us, store_ms * 1000 - (int64_t)loop_now_us());
}

/* -- for calls */

enum problem epoch_allows(struct epoch *store_epoch, const char *run, uint64_t stood_us)
{
    enum problem problem;

    pthread_mutex_lock(&store_epoch->lock);
    problem = store_epoch->problem;
    if (problem == PROBLEM_NONE && run[0] == '\0')
        problem = PROBLEM_STORE_UNAVAILABLE;
    else if (problem == PROBLEM_NONE &&
             (strcmp(run, store_epoch->run) != 0 || stood_us > store_epoch->confirmed_us))
        problem = PROBLEM_STORE_NOT_ADMITTED;
    pthread_mutex_unlock(&store_epoch->lock);
    return problem;
}

int64_t epoch_stream(struct epoch *store_epoch, char stream[EPOCH_STREAM_SIZE])
{
    pthread_mutex_lock(&store_epoch->lock);
    int64_t epoch = atomic_load(&store_epoch->epoch);
    memcpy(stream, store_epoch->stream, EPOCH_STREAM_SIZE);
    pthread_mutex_unlock(&store_epoch->lock);
    return epoch;
}

unsigned epoch_changes(const struct epoch *store_epoch)
{
    return atomic_load(&store_epoch->changes);
}

int64_t epoch_number(const struct epoch *store_epoch)
{
    return atomic_load(&store_epoch->epoch);
}

const char *epoch_identity(const struct epoch *store_epoch)
{
    return store_epoch->identity;
}

const char *epoch_store(const struct epoch *store_epoch)
{
    const char *colon = epoch_number(store_epoch) > 0 ? strchr(store_epoch->identity, ':') : NULL;

    return colon != NULL ? colon + 1 : "";
}

int64_t epoch_now_ms(const struct epoch *store_epoch)
{
    int64_t behind_us = atomic_load(&store_epoch->behind_us);

    return behind_us == NO_SAMPLE ? 0 : (behind_us + (int64_t)loop_now_us()) / 1000;
}

void epoch_let_through(struct epoch *store_epoch, int64_t token)
{
    raise_to(&store_epoch->let_through, token);
}

int64_t epoch_let_through_most(const struct epoch *store_epoch)
{
    int64_t most = atomic_load(&store_epoch->let_through), ceiling = atomic_load(&store_epoch->ceiling);

    return most < ceiling ? most : ceiling;
}

void epoch_want_heartbeat(struct epoch *store_epoch)
{
    atomic_store(&store_epoch->heartbeat_wanted, true);
}

bool epoch_wants_heartbeat(struct epoch *store_epoch)
{
    return atomic_exchange(&store_epoch->heartbeat_wanted, false);
}

void epoch_set_ceiling(struct epoch *store_epoch, int64_t ceiling, int64_t ahead)
{
    atomic_store(&store_epoch->ceiling, ceiling);
    atomic_store(&store_epoch->heartbeat_above, ceiling - ahead);
}

/* Once is enough: the answer to the heartbeat sets the next bound. */
uint64_t epoch_granted_most(const struct epoch *store_epoch, unsigned stripe, int64_t epoch)
{
    return word_number(&store_epoch->granted[stripe], begun(store_epoch, epoch));
}

void epoch_granted(struct epoch *store_epoch, unsigned stripe, int64_t epoch, int64_t token)
{
    word_raise(&store_epoch->granted[stripe], begun(store_epoch, epoch), (uint64_t)token);
    if (token > atomic_load(&store_epoch->heartbeat_above)) {
        atomic_store(&store_epoch->heartbeat_above, INT64_MAX);
        epoch_want_heartbeat(store_epoch);
    }
}

bool epoch_line_report(struct epoch *store_epoch, unsigned worker, const char *run, bool idle, bool unsafe)
{
    struct epoch_line *line = &store_epoch->lines[worker];
    const char *first = store_epoch->lines[0].run;
    bool is_apart;

    pthread_mutex_lock(&store_epoch->lock);
    snprintf(line->run, sizeof(line->run), "%s", run);
    line->idle = line->idle || (idle && store_epoch->problem != PROBLEM_NONE);
    /* Of another Redis it says nothing of this epoch: no call of it was made there. */
    if (unsafe && store_epoch->problem == PROBLEM_NONE && strcmp(run, store_epoch->run) == 0)
        store_epoch->doubtful = true;
    is_apart = run[0] != '\0' && first[0] != '\0' && strcmp(run, first) != 0;
    pthread_mutex_unlock(&store_epoch->lock);
    return !is_apart;
}

bool epoch_is_settled(struct epoch *store_epoch, unsigned workers, const char *run)
{
    bool settled;

    pthread_mutex_lock(&store_epoch->lock);
    settled = store_epoch->problem !=
              PROBLEM_NONE; /* what was reported when calls were last forbidden is over */
    for (unsigned i = 0; i < workers; i++)
        settled = settled && store_epoch->lines[i].idle && strcmp(store_epoch->lines[i].run, run) == 0;
    pthread_mutex_unlock(&store_epoch->lock);
    return settled;
}

bool epoch_is_doubtful(struct epoch *store_epoch)
{
    pthread_mutex_lock(&store_epoch->lock);
    bool doubtful = store_epoch->doubtful;
    pthread_mutex_unlock(&store_epoch->lock);
    return doubtful;
}

void epoch_set_trouble(struct epoch *store_epoch, const char *trouble, bool lost)
{
    pthread_mutex_lock(&store_epoch->lock);
    snprintf(store_epoch->trouble, sizeof(store_epoch->trouble), "%s", trouble);
    pthread_mutex_unlock(&store_epoch->lock);
    atomic_store(&store_epoch->floor_is_lost, lost);
}

bool epoch_has_lost_its_floor(struct epoch *store_epoch)
{
    return atomic_load(&store_epoch->floor_is_lost);
}

bool epoch_trouble(struct epoch *store_epoch, char detail[EPOCH_DETAIL_SIZE])
{
    pthread_mutex_lock(&store_epoch->lock);
    snprintf(detail, EPOCH_DETAIL_SIZE, "%s", store_epoch->trouble);
    pthread_mutex_unlock(&store_epoch->lock);
    return detail[0] != '\0';
}

void epoch_set_memory_max(struct epoch *store_epoch, uint64_t most)
{
    store_epoch->memory_max = most;
    epoch_set_memory(store_epoch, 0, 0);
}

bool epoch_set_memory(struct epoch *store_epoch, uint64_t used, uint64_t maxmemory)
{
    bool is_lower = store_epoch->memory_max > 0 && (maxmemory == 0 || store_epoch->memory_max < maxmemory);
    uint64_t allowed = is_lower ? store_epoch->memory_max : maxmemory;
    bool was_full = atomic_load(&store_epoch->full);
    uint64_t bound = allowed / 100 * (was_full ? NOT_FULL_PERCENT : FULL_PERCENT);
    bool is_full = allowed > 0 && used >= bound;

    atomic_store(&store_epoch->memory_used, used);
    atomic_store(&store_epoch->memory_allowed, allowed);
    atomic_store(&store_epoch->full, is_full);
    return is_full != was_full;
}

void epoch_memory(const struct epoch *store_epoch, uint64_t *used, uint64_t *allowed)
{
    *used = atomic_load(&store_epoch->memory_used);
    *allowed = atomic_load(&store_epoch->memory_allowed);
}

bool epoch_is_full(const struct epoch *store_epoch)
{
    return atomic_load(&store_epoch->full);
}

bool epoch_set_crowded(struct epoch *store_epoch, bool crowded)
{
    return atomic_exchange(&store_epoch->crowded, crowded) != crowded;
}

bool epoch_is_crowded(const struct epoch *store_epoch)
{
    return atomic_load(&store_epoch->crowded);
}

void epoch_set_registrars(struct epoch *store_epoch, unsigned count, unsigned heard)
{
    atomic_store(&store_epoch->registrars, count);
    atomic_store(&store_epoch->registrars_heard, heard);
}

void epoch_registrars(const struct epoch *store_epoch, unsigned *count, unsigned *heard)
{
    *count = atomic_load(&store_epoch->registrars);
    *heard = atomic_load(&store_epoch->registrars_heard);
}

bool epoch_set_refusal(struct epoch *store_epoch, const struct store_refusal *refusal)
{
    return atomic_exchange(&store_epoch->refusal, refusal) != refusal;
}

const struct store_refusal *epoch_refusal(const struct epoch *store_epoch)
{
    return atomic_load(&store_epoch->refusal);
}

uint64_t epoch_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void epoch_lease_until(struct epoch *store_epoch, uint64_t ends_us)
{
    atomic_store(&store_epoch->lease_ends_us, ends_us);
}

bool epoch_lease_is_over(const struct epoch *store_epoch)
{
    uint64_t ends_us = atomic_load(&store_epoch->lease_ends_us);

    return ends_us != UINT64_MAX && epoch_clock_us() >= ends_us;
}

const char *epoch_check(struct epoch *store_epoch, enum problem *problem, char detail[EPOCH_DETAIL_SIZE])
{
    const char *check;

    pthread_mutex_lock(&store_epoch->lock);
    check = store_epoch->problem != PROBLEM_NONE ? store_epoch->check : NULL;
    *problem = store_epoch->problem;
    snprintf(detail, EPOCH_DETAIL_SIZE, "%s", store_epoch->detail);
    pthread_mutex_unlock(&store_epoch->lock);
    return check;
}
