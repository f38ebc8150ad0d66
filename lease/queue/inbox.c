/* inbox.c - where clients wait: one desk for each worker.
 *
 *   desk_look      several times a second: opens, beats, notices that the link is another
 *   desk_ask       run beat.lua
 *   desk_answer    OPEN | CLOSED | SHUT
 *   desk_heard     a message: tell the one who waits
 *   desk_tell      the desk has closed: tell all who were there, some in each turn
 *
 * A wid is SLOT_BITS of the place in the table of slots, and above them a number that only rises: so what is
 * told late, to one who has left, finds nobody. */
#include "lease/queue/inbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "scripts.h"
#include "shared/text/memory.h"
#include "shared/token/random.h"

enum {
    SLOT_BITS = 20, /* more than --max-connections can be */
    SLOTS_MAX = 1 << SLOT_BITS,
    SLOTS_FIRST = 64,
    LOOK_MS = 250, /* while open */
    LOOK_CLOSED_MS = 20,
    TELL_MOST = 256,    /* in one turn: an answer takes some 8 KiB while it is written */
    LAST_WORDS_MS = 20, /* what was handed on before the store closed the desk has been heard by then */
    BEAT_KEYS = 3
};

struct desk_slot {
    struct desk_place *place; /* NULL: free */
    uint32_t next_free;
};

struct desk {
    struct worker *worker;
    struct record_line *line;
    struct store_ear *ear;
    struct store_ear_owner ear_owner;
    struct alarm_clock *clock;
    struct loop_timer look, tell;
    enum desk_state state;
    bool drained, listens, asked, used; /* listens: to its channel; used: its id was sent to the store */
    struct record_call call;
    int64_t epoch;
    uint64_t asked_ms, beaten_ms, link; /* beaten: when the last beat that was taken was sent */
    unsigned stripe_number;
    char id[DESK_ID_CHARS + 1], key[DESK_KEY_SIZE], stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE];
    struct bytes argv[BEAT_KEYS + 2 + RECORD_ARGS];
    struct desk_slot *slots;
    uint32_t slot_count, slot_free;
    unsigned places;
    unsigned releases_under_way;
    unsigned releases[STRIPES];        /* of them, by stripe; they have named this desk or the one before */
    bool is_unheard[STRIPES];          /* the reply of one was lost, and not all who were here know it */
    uint64_t number;                   /* of the last place that was taken */
    uint64_t tell_until;               /* places up to this number are told that the desk has closed */
    uint32_t tell_from;                /* the next slot of them */
    unsigned char walked[DESK_STATES]; /* bit t of element f: went from f to t */
};

static void desk_look(struct loop_timer *timer);
static void desk_ask(struct desk *desk, const char *what, enum desk_state next);
static store_done_fn desk_answer;
static void desk_heard(struct store_ear_owner *owner, struct bytes channel, struct bytes message);
static void desk_listens(struct store_ear_owner *owner, struct bytes channel);
static void desk_deaf(struct store_ear_owner *owner);
static void desk_tell(struct loop_timer *timer);

bool desk_allows(enum desk_state from, enum desk_state to)
{
    static const bool arrows[DESK_STATES][DESK_STATES] = {
        [DESK_CLOSED] = {[DESK_OPENING] = true, [DESK_SHUT] = true},
        [DESK_OPENING] = {[DESK_OPEN] = true, [DESK_CLOSED] = true},
        [DESK_OPEN] = {[DESK_CLOSED] = true, [DESK_CLOSING] = true},
        [DESK_CLOSING] = {[DESK_SHUT] = true},
    };

    return arrows[from][to];
}

bool desk_has_gone(const struct desk *desk, enum desk_state from, enum desk_state to)
{
    return desk->walked[from] >> to & 1;
}

/* The only place where the state changes. */
static void desk_enter_state(struct desk *desk, enum desk_state next)
{
    bool was_open = desk->state == DESK_OPEN || desk->state == DESK_CLOSING;

    assert(desk_allows(desk->state, next));
    desk->walked[desk->state] |= (unsigned char)(1u << next);
    desk->state = next;
    if (was_open && next != DESK_CLOSING) {
        desk->tell_until = desk->number;
        desk->tell_from = 0;
        loop_timer_arm(&desk->tell, next == DESK_SHUT ? LAST_WORDS_MS : 0, 0);
    }
    loop_timer_arm(&desk->look, next == DESK_OPEN && !desk->drained ? LOOK_MS : LOOK_CLOSED_MS, 0);
}

struct desk *desk_new(struct worker *worker, struct record_line *line)
{
    struct desk *desk = must_have(calloc(1, sizeof(*desk)));
    struct store_options options = service_store_options(worker->service);

    desk->worker = worker;
    desk->line = line;
    desk->used = true; /* there is no id yet */
    desk->slot_free = UINT32_MAX;
    desk->clock = alarm_clock_new(worker->loop);
    desk->ear_owner = (struct store_ear_owner){desk_heard, desk_listens, desk_deaf};
    desk->ear = store_ear_open(worker->loop, &options, &desk->ear_owner);
    loop_timer_init(worker->loop, &desk->tell, desk_tell);
    loop_timer_init(worker->loop, &desk->look, desk_look);
    loop_timer_arm(&desk->look, 0, 0);
    return desk;
}

void desk_free(struct desk *desk)
{
    assert(desk->places == 0);
    loop_timer_done(&desk->look);
    loop_timer_done(&desk->tell);
    store_ear_close(desk->ear);
    alarm_clock_free(desk->clock);
    free(desk->slots);
    free(desk);
}

bool desk_is_open(const struct desk *desk)
{
    return desk->state == DESK_OPEN && !desk->drained;
}

void desk_drain(struct desk *desk)
{
    if (!desk->drained) {
        desk->drained = true;
        loop_timer_arm(&desk->look, 0, 0);
    }
}

bool desk_is_shut(const struct desk *desk)
{
    return desk->state == DESK_SHUT && desk->tell_from >= desk->slot_count;
}

unsigned desk_count(const struct desk *desk)
{
    return desk->places;
}

struct bytes desk_key(const struct desk *desk)
{
    return bytes_of(desk->key);
}

struct alarm_clock *desk_clock(struct desk *desk)
{
    return desk->clock;
}

/* -- opening and beating */

static void desk_take_id(struct desk *desk)
{
    if (desk->key[0] != '\0') {
        store_ear_unsubscribe(desk->ear, desk_key(desk));
    }
    random_text(desk->id, DESK_ID_CHARS);
    desk->stripe_number = keys_stripe_of(bytes_of(desk->id));
    desk->argv[0] = keys_stripe(desk->stripe, desk->stripe_number);
    desk->argv[1] = keys_due(desk->due, desk->stripe_number);
    snprintf(desk->key, sizeof(desk->key), "%s:d:%s", desk->stripe, desk->id);
    desk->argv[2] = desk_key(desk);
    desk->argv[BEAT_KEYS] = bytes_of(desk->id);
    desk->listens = desk->used = false;
    store_ear_subscribe(desk->ear, desk_key(desk));
}

/* And the life: one may end and another begin while the link stands. All holds may be over then, long before
 * any alarm rings, and who left meanwhile was refused and still stands in line. */
static bool link_is_the_same(const struct desk *desk)
{
    return store_link_stands(desk->line->store) && store_link_number(desk->line->store) == desk->link &&
           life_epoch(desk->line->life) == desk->epoch;
}

static void desk_look_open(struct desk *desk)
{
    uint64_t now_ms = loop_now_ms();

    if (!link_is_the_same(desk) || now_ms - desk->beaten_ms > DESK_SILENT_MS) {
        desk_enter_state(desk, DESK_CLOSED);
        return;
    }
    loop_timer_arm(&desk->look, desk->drained ? LOOK_CLOSED_MS : LOOK_MS, 0);
    if (desk->drained && !desk->asked) {
        desk_ask(desk, "close", DESK_CLOSING);
    } else if (!desk->asked && now_ms + LOOK_MS / 2 >= desk->asked_ms + DESK_BEAT_MS) {
        desk_ask(desk, "beat", DESK_OPEN);
    }
}

static void desk_look_closed(struct desk *desk)
{
    loop_timer_arm(&desk->look, LOOK_CLOSED_MS, 0);
    if (desk->asked || desk->releases_under_way > 0) {
        return; /* a beat of before: its keys are still in use; a release that is sent again would come later
                 * than what is asked from the next desk, and its answer name a place that is not there any
                 * more */
    }
    if (desk->drained) {
        desk_enter_state(desk, DESK_SHUT);
        return;
    }
    if (desk->used) {
        desk_take_id(desk);
    }
    if (desk->listens) {
        desk_ask(desk, "open", DESK_OPENING);
    }
}

/* The other states wait for an answer, or for nothing any more. */
static void desk_look(struct loop_timer *timer)
{
    struct desk *desk = container_of(timer, struct desk, look);

    if (desk->state == DESK_OPEN) {
        desk_look_open(desk);
    } else if (desk->state == DESK_CLOSED) {
        desk_look_closed(desk);
    }
}

/* next: the state when the call is under way. */
static void desk_ask(struct desk *desk, const char *what, enum desk_state next)
{
    desk->argv[BEAT_KEYS + 1] = bytes_of(what);
    desk->call.store.done = desk_answer;
    if (record_run(desk->line, &desk->call, desk->stripe_number, &script_beat, BEAT_KEYS, BEAT_KEYS + 2,
                   desk->argv) != PROBLEM_NONE) {
        return; /* the next look tries again */
    }
    desk->asked = desk->used = true;
    desk->asked_ms = loop_now_ms();
    if (next == DESK_OPENING) {
        desk->link = store_link_number(desk->line->store);
        desk->epoch = life_epoch(desk->line->life);
    }
    if (next != desk->state) {
        desk_enter_state(desk, next);
    }
}

static enum step desk_answer(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct desk *desk = container_of(call, struct desk, call.store);
    enum problem bad = record_problem(&desk->call, outcome, reply);
    bool taken = bad == PROBLEM_NONE && store_reply_is(reply, "beats");
    bool not_sent = bad != PROBLEM_NONE && bad != PROBLEM_OUTCOME_UNKNOWN && bad != PROBLEM_INTERNAL;

    desk->asked = false;
    if (taken) {
        desk->beaten_ms = desk->asked_ms;
    }
    if (desk->state == DESK_OPENING) {
        desk_enter_state(desk, taken && desk->listens && link_is_the_same(desk) ? DESK_OPEN : DESK_CLOSED);
    } else if (desk->state == DESK_OPEN && !taken && !not_sent) {
        desk_enter_state(desk, DESK_CLOSED); /* those who wait there may have been passed over */
    } else if (desk->state == DESK_CLOSING) {
        desk_enter_state(desk, DESK_SHUT);
    }
    return ANSWERED;
}

/* -- the ear */

static void desk_listens(struct store_ear_owner *owner, struct bytes channel)
{
    struct desk *desk = container_of(owner, struct desk, ear_owner);

    desk->listens = desk->listens || bytes_equal(channel, desk_key(desk));
}

static void desk_deaf(struct store_ear_owner *owner)
{
    struct desk *desk = container_of(owner, struct desk, ear_owner);

    desk->listens = false;
    if (desk->state == DESK_OPEN) {
        desk_enter_state(desk, DESK_CLOSED);
    }
}

/* -- releases that may grant the lease to who waits here */

bool desk_release_begins(struct desk *desk, unsigned stripe, char key[DESK_KEY_SIZE])
{
    bool may = desk_is_open(desk) && link_is_the_same(desk);

    snprintf(key, DESK_KEY_SIZE, "%s", may ? desk->key : "");
    desk->releases[stripe] += may;
    desk->releases_under_way += may;
    return may;
}

void desk_release_ended(struct desk *desk, unsigned stripe, bool is_heard)
{
    desk->releases[stripe]--;
    desk->releases_under_way--;
    if (is_heard) {
        return;
    }
    desk->is_unheard[stripe] = true;
    if (desk->state == DESK_OPEN) {
        desk_enter_state(desk, DESK_CLOSED);
    }
}

bool desk_has_perhaps_granted(const struct desk *desk, unsigned stripe)
{
    return desk->releases[stripe] > 0 || desk->is_unheard[stripe];
}

struct desk_place *desk_place_of(const struct desk *desk, uint64_t wid)
{
    uint32_t slot = wid & (SLOTS_MAX - 1);
    struct desk_place *place = slot < desk->slot_count ? desk->slots[slot].place : NULL;

    return place != NULL && place->wid == wid ? place : NULL;
}

static void desk_heard(struct store_ear_owner *owner, struct bytes channel, struct bytes message)
{
    desk_hear(container_of(owner, struct desk, ear_owner), channel, message);
}

void desk_hear(struct desk *desk, struct bytes channel, struct bytes message)
{
    uint64_t wid = 0;
    enum desk_news news = desk_message_read(message, &wid);
    struct desk_place *place = news != DESK_NO_NEWS ? desk_place_of(desk, wid) : NULL;

    if (desk->state != DESK_CLOSED && desk->state != DESK_OPENING && place != NULL &&
        bytes_equal(channel, desk_key(desk))) {
        place->told(place, news);
    }
}

/* -- those who wait */

static void slots_grow(struct desk *desk)
{
    uint32_t count = desk->slot_count == 0 ? SLOTS_FIRST : desk->slot_count * 2;

    assert(count <= SLOTS_MAX);
    desk->slots = must_have(realloc(desk->slots, count * sizeof(*desk->slots)));
    for (uint32_t i = count; i > desk->slot_count; i--) {
        desk->slots[i - 1] = (struct desk_slot){NULL, desk->slot_free};
        desk->slot_free = i - 1;
    }
    desk->slot_count = count;
}

void desk_enter(struct desk *desk, struct desk_place *place)
{
    uint32_t slot;

    assert(desk_is_open(desk));
    if (desk->slot_free == UINT32_MAX) {
        slots_grow(desk);
    }
    slot = desk->slot_free;
    desk->slot_free = desk->slots[slot].next_free;
    desk->slots[slot].place = place;
    place->wid = ++desk->number << SLOT_BITS | slot;
    desk->places++;
}

void desk_leave(struct desk *desk, struct desk_place *place)
{
    uint32_t slot = place->wid & (SLOTS_MAX - 1);

    assert(desk_place_of(desk, place->wid) == place);
    desk->slots[slot] = (struct desk_slot){NULL, desk->slot_free};
    desk->slot_free = slot;
    desk->places--;
}

static void desk_tell(struct loop_timer *timer)
{
    struct desk *desk = container_of(timer, struct desk, tell);

    for (unsigned told = 0; told < TELL_MOST && desk->tell_from < desk->slot_count; desk->tell_from++) {
        struct desk_place *place = desk->slots[desk->tell_from].place;

        if (place != NULL && place->wid >> SLOT_BITS <= desk->tell_until) {
            told++;
            place->told(place, DESK_HAS_CLOSED);
        }
    }
    if (desk->tell_from < desk->slot_count) {
        loop_timer_arm(&desk->tell, 0, 0);
    } else {
        memset(desk->is_unheard, 0, sizeof(desk->is_unheard));
    }
}
