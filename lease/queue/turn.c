/* turn.c - one all-or-none script at a time. */
#include <assert.h>

#include "lease/queue/queue.h"

enum { SHARE = 4, LOOK_MS = 1 };

static const uint64_t UNDER_WAY = UINT64_MAX;

static bool turn_is_empty(const struct turn *turn)
{
    return STAILQ_EMPTY(&turn->line[TURN_CLAIM]) && STAILQ_EMPTY(&turn->line[TURN_LEAVE]) &&
           STAILQ_EMPTY(&turn->line[TURN_ACQUIRE]);
}

static struct turn_call *turn_pop(struct turn *turn, struct turn_line *line)
{
    struct turn_call *call = STAILQ_FIRST(line);

    STAILQ_REMOVE_HEAD(line, entry);
    turn->acquires -= call->until_ms != UINT64_MAX;
    return call;
}

bool turn_wait(struct turn *turn, struct turn_call *call, enum turn_kind kind)
{
    bool is_first = turn_is_empty(turn);

    if (kind == TURN_ACQUIRE && turn->acquires >= TURN_ACQUIRES_MAX)
        return false;
    turn->acquires += kind == TURN_ACQUIRE;
    call->until_ms = kind == TURN_ACQUIRE ? loop_now_ms() + TURN_WAIT_MS : UINT64_MAX;
    STAILQ_INSERT_TAIL(&turn->line[kind], call, entry);
    if (is_first)
        loop_timer_arm(&turn->timer, 0, 0);
    return true;
}

void turn_done(struct turn *turn, uint64_t network_us)
{
    uint64_t now_us = loop_now_us(), took_us = now_us - turn->began_us;
    uint64_t pause_us = (SHARE - 1) * (took_us > network_us ? took_us - network_us : took_us);
    uint64_t most_us = (uint64_t)TURN_PAUSE_MAX_MS * 1000;

    atomic_store(turn->slot, now_us + (pause_us < most_us ? pause_us : most_us));
}

/* Whether it is this worker's turn now; else when to look again. A worker that has it and a pause that is
 * short are looked for every millisecond: the timer knows nothing shorter. */
static bool turn_take(struct turn *turn, uint64_t *again_ms)
{
    uint64_t now_us = loop_now_us(), free_us = atomic_load(turn->slot);

    *again_ms = LOOK_MS;
    if (free_us > now_us) {
        *again_ms = free_us != UNDER_WAY ? (free_us - now_us) / 1000 + LOOK_MS : LOOK_MS;
        return false;
    }
    turn->began_us = now_us;
    return atomic_compare_exchange_strong(turn->slot, &free_us, UNDER_WAY);
}

static struct turn_line *turn_next(struct turn *turn)
{
    enum turn_kind wanted = turn->acquired_last ? TURN_LEAVE : TURN_ACQUIRE;
    enum turn_kind other = turn->acquired_last ? TURN_ACQUIRE : TURN_LEAVE;
    enum turn_kind kind = !STAILQ_EMPTY(&turn->line[TURN_CLAIM]) ? TURN_CLAIM
                          : !STAILQ_EMPTY(&turn->line[wanted])   ? wanted
                                                                 : other;

    turn->acquired_last = kind == TURN_CLAIM ? turn->acquired_last : kind == TURN_ACQUIRE;
    return &turn->line[kind];
}

/* Acquires wait equally long, so the first of them is the first to be late. */
static void turn_look(struct loop_timer *timer)
{
    struct turn *turn = container_of(timer, struct turn, timer);
    struct turn_call *late;
    uint64_t again_ms = 0;

    while ((late = STAILQ_FIRST(&turn->line[TURN_ACQUIRE])) != NULL && late->until_ms <= loop_now_ms()) {
        turn_pop(turn, &turn->line[TURN_ACQUIRE]);
        late->go(late, PROBLEM_OVERLOADED);
    }
    if (!turn_is_empty(turn) && turn_take(turn, &again_ms)) {
        struct turn_call *call = turn_pop(turn, turn_next(turn));
        call->go(call, PROBLEM_NONE);
    }
    if (!turn_is_empty(turn))
        loop_timer_arm(timer, again_ms, 0);
}

void turn_init(struct turn *turn, struct loop *loop, _Atomic uint64_t *slot)
{
    *turn = (struct turn){.loop = loop};
    turn->slot = slot != NULL ? slot : &turn->own;
    for (unsigned kind = 0; kind < TURN_KINDS; kind++)
        STAILQ_INIT(&turn->line[kind]);
    loop_timer_init(loop, &turn->timer, turn_look);
}

void turn_free(struct turn *turn)
{
    assert(turn_is_empty(turn));
    loop_timer_done(&turn->timer);
}
