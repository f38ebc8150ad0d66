/* inbox.c - where clients wait: one inbox for each worker.
 *
 *   inbox_look     several times a second: opens, beats, notices that the link is another
 *   inbox_ask      run inbox_heartbeat.lua
 *   inbox_answer   OPEN | CLOSED | SHUT
 *   inbox_heard    a message: tell the one who waits
 *   inbox_tell     the inbox has closed: tell all who were there, some in each turn
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
    LAST_WORDS_MS = 20, /* what was handed on before the store closed the inbox has been heard by then */
    HEARTBEAT_KEYS = 3
};

struct inbox_slot {
    struct inbox_place *place; /* NULL: free */
    uint32_t next_free;
};

struct inbox {
    struct worker *worker;
    struct member_line *line;
    struct store_subscriber *subscriber;
    struct store_subscriber_owner subscriber_owner;
    struct alarm_clock *clock;
    struct loop_timer look, tell;
    enum inbox_state state;
    bool drained, listens, asked, used; /* listens: to its channel; used: its id was sent to the store */
    struct member_call call;
    int64_t epoch;
    uint64_t asked_ms, beaten_ms, link; /* beaten: when the last beat that was taken was sent */
    unsigned stripe_number;
    char id[INBOX_ID_CHARS + 1], key[INBOX_KEY_SIZE], stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE];
    struct bytes argv[HEARTBEAT_KEYS + 2 + MEMBER_ARGS];
    struct inbox_slot *slots;
    uint32_t slot_count, slot_free;
    unsigned places;
    unsigned releases_under_way;
    unsigned releases[STRIPES];         /* of them, by stripe; they have named this inbox or the one before */
    bool is_unheard[STRIPES];           /* the reply of one was lost, and not all who were here know it */
    uint64_t number;                    /* of the last place that was taken */
    uint64_t tell_until;                /* places up to this number are told that the inbox has closed */
    uint32_t tell_from;                 /* the next slot of them */
    unsigned char walked[INBOX_STATES]; /* bit t of element f: went from f to t */
};

static void inbox_look(struct loop_timer *timer);
static void inbox_ask(struct inbox *inbox, const char *what, enum inbox_state next);
static store_done_fn inbox_answer;
static void inbox_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message);
static void inbox_listens(struct store_subscriber_owner *owner, struct bytes channel);
static void inbox_deaf(struct store_subscriber_owner *owner);
static void inbox_tell(struct loop_timer *timer);

bool inbox_allows(enum inbox_state from, enum inbox_state to)
{
    static const bool arrows[INBOX_STATES][INBOX_STATES] = {
        [INBOX_CLOSED] = {[INBOX_OPENING] = true, [INBOX_SHUT] = true},
        [INBOX_OPENING] = {[INBOX_OPEN] = true, [INBOX_CLOSED] = true},
        [INBOX_OPEN] = {[INBOX_CLOSED] = true, [INBOX_CLOSING] = true},
        [INBOX_CLOSING] = {[INBOX_SHUT] = true},
    };

    return arrows[from][to];
}

bool inbox_has_gone(const struct inbox *inbox, enum inbox_state from, enum inbox_state to)
{
    return inbox->walked[from] >> to & 1;
}

/* The only place where the state changes. */
static void inbox_enter_state(struct inbox *inbox, enum inbox_state next)
{
    bool was_open = inbox->state == INBOX_OPEN || inbox->state == INBOX_CLOSING;

    assert(inbox_allows(inbox->state, next));
    inbox->walked[inbox->state] |= (unsigned char)(1u << next);
    inbox->state = next;
    if (was_open && next != INBOX_CLOSING) {
        inbox->tell_until = inbox->number;
        inbox->tell_from = 0;
        loop_timer_arm(&inbox->tell, next == INBOX_SHUT ? LAST_WORDS_MS : 0, 0);
    }
    loop_timer_arm(&inbox->look, next == INBOX_OPEN && !inbox->drained ? LOOK_MS : LOOK_CLOSED_MS, 0);
}

struct inbox *inbox_new(struct worker *worker, struct member_line *line)
{
    struct inbox *inbox = must_have(calloc(1, sizeof(*inbox)));
    struct store_options options = service_store_options(worker->service);

    inbox->worker = worker;
    inbox->line = line;
    inbox->used = true; /* there is no id yet */
    inbox->slot_free = UINT32_MAX;
    inbox->clock = alarm_clock_new(worker->loop);
    inbox->subscriber_owner = (struct store_subscriber_owner){inbox_heard, inbox_listens, inbox_deaf};
    inbox->subscriber = store_subscriber_open(worker->loop, &options, &inbox->subscriber_owner);
    loop_timer_init(worker->loop, &inbox->tell, inbox_tell);
    loop_timer_init(worker->loop, &inbox->look, inbox_look);
    loop_timer_arm(&inbox->look, 0, 0);
    return inbox;
}

void inbox_free(struct inbox *inbox)
{
    assert(inbox->places == 0);
    loop_timer_done(&inbox->look);
    loop_timer_done(&inbox->tell);
    store_subscriber_close(inbox->subscriber);
    alarm_clock_free(inbox->clock);
    free(inbox->slots);
    free(inbox);
}

bool inbox_is_open(const struct inbox *inbox)
{
    return inbox->state == INBOX_OPEN && !inbox->drained;
}

void inbox_drain(struct inbox *inbox)
{
    if (!inbox->drained) {
        inbox->drained = true;
        loop_timer_arm(&inbox->look, 0, 0);
    }
}

bool inbox_is_shut(const struct inbox *inbox)
{
    return inbox->state == INBOX_SHUT && inbox->tell_from >= inbox->slot_count;
}

unsigned inbox_count(const struct inbox *inbox)
{
    return inbox->places;
}

struct bytes inbox_key(const struct inbox *inbox)
{
    return bytes_of(inbox->key);
}

struct alarm_clock *inbox_clock(struct inbox *inbox)
{
    return inbox->clock;
}

/* -- opening and beating */

static void inbox_take_id(struct inbox *inbox)
{
    if (inbox->key[0] != '\0') {
        store_subscriber_unsubscribe(inbox->subscriber, inbox_key(inbox));
    }
    random_text(inbox->id, INBOX_ID_CHARS);
    inbox->stripe_number = keys_stripe_of(bytes_of(inbox->id));
    inbox->argv[0] = keys_stripe(inbox->stripe, inbox->stripe_number);
    inbox->argv[1] = keys_due(inbox->due, inbox->stripe_number);
    snprintf(inbox->key, sizeof(inbox->key), "%s:d:%s", inbox->stripe, inbox->id);
    inbox->argv[2] = inbox_key(inbox);
    inbox->argv[HEARTBEAT_KEYS] = bytes_of(inbox->id);
    inbox->listens = inbox->used = false;
    store_subscriber_subscribe(inbox->subscriber, inbox_key(inbox));
}

/* And the epoch: one may end and another begin while the link stands. All holds may be over then, long before
 * any alarm rings, and who left meanwhile was refused and still stands in line. */
static bool link_is_the_same(const struct inbox *inbox)
{
    return store_link_stands(inbox->line->store) && store_link_number(inbox->line->store) == inbox->link &&
           epoch_number(inbox->line->store_epoch) == inbox->epoch;
}

static void inbox_look_open(struct inbox *inbox)
{
    uint64_t now_ms = loop_now_ms();

    if (!link_is_the_same(inbox) || now_ms - inbox->beaten_ms > INBOX_SILENT_MS) {
        inbox_enter_state(inbox, INBOX_CLOSED);
        return;
    }
    loop_timer_arm(&inbox->look, inbox->drained ? LOOK_CLOSED_MS : LOOK_MS, 0);
    if (inbox->drained && !inbox->asked) {
        inbox_ask(inbox, "close", INBOX_CLOSING);
    } else if (!inbox->asked && now_ms + LOOK_MS / 2 >= inbox->asked_ms + INBOX_HEARTBEAT_MS) {
        inbox_ask(inbox, "beat", INBOX_OPEN);
    }
}

static void inbox_look_closed(struct inbox *inbox)
{
    loop_timer_arm(&inbox->look, LOOK_CLOSED_MS, 0);
    if (inbox->asked || inbox->releases_under_way > 0) {
        return; /* a beat of before: its keys are still in use; a release that is sent again would come later
                 * than what is asked from the next inbox, and its answer name a place that is not there any
                 * more */
    }
    if (inbox->drained) {
        inbox_enter_state(inbox, INBOX_SHUT);
        return;
    }
    if (inbox->used) {
        inbox_take_id(inbox);
    }
    if (inbox->listens) {
        inbox_ask(inbox, "open", INBOX_OPENING);
    }
}

/* The other states wait for an answer, or for nothing any more. */
static void inbox_look(struct loop_timer *timer)
{
    struct inbox *inbox = container_of(timer, struct inbox, look);

    if (inbox->state == INBOX_OPEN) {
        inbox_look_open(inbox);
    } else if (inbox->state == INBOX_CLOSED) {
        inbox_look_closed(inbox);
    }
}

/* next: the state when the call is under way. */
static void inbox_ask(struct inbox *inbox, const char *what, enum inbox_state next)
{
    inbox->argv[HEARTBEAT_KEYS + 1] = bytes_of(what);
    inbox->call.store.done = inbox_answer;
    if (member_run(inbox->line, &inbox->call, inbox->stripe_number, &script_inbox_heartbeat, HEARTBEAT_KEYS,
                   HEARTBEAT_KEYS + 2, inbox->argv) != PROBLEM_NONE) {
        return; /* the next look tries again */
    }
    inbox->asked = inbox->used = true;
    inbox->asked_ms = loop_now_ms();
    if (next == INBOX_OPENING) {
        inbox->link = store_link_number(inbox->line->store);
        inbox->epoch = epoch_number(inbox->line->store_epoch);
    }
    if (next != inbox->state) {
        inbox_enter_state(inbox, next);
    }
}

static enum step inbox_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct inbox *inbox = container_of(call, struct inbox, call.store);
    enum problem bad = member_problem(&inbox->call, outcome, reply);
    bool taken = bad == PROBLEM_NONE && store_reply_is(reply, "beats");
    bool not_sent = bad != PROBLEM_NONE && bad != PROBLEM_OUTCOME_UNKNOWN && bad != PROBLEM_INTERNAL;

    inbox->asked = false;
    if (taken) {
        inbox->beaten_ms = inbox->asked_ms;
    }
    if (inbox->state == INBOX_OPENING) {
        inbox_enter_state(inbox,
                          taken && inbox->listens && link_is_the_same(inbox) ? INBOX_OPEN : INBOX_CLOSED);
    } else if (inbox->state == INBOX_OPEN && !taken && !not_sent) {
        inbox_enter_state(inbox, INBOX_CLOSED); /* those who wait there may have been passed over */
    } else if (inbox->state == INBOX_CLOSING) {
        inbox_enter_state(inbox, INBOX_SHUT);
    }
    return ANSWERED;
}

/* -- the subscriber */

static void inbox_listens(struct store_subscriber_owner *owner, struct bytes channel)
{
    struct inbox *inbox = container_of(owner, struct inbox, subscriber_owner);

    inbox->listens = inbox->listens || bytes_equal(channel, inbox_key(inbox));
}

static void inbox_deaf(struct store_subscriber_owner *owner)
{
    struct inbox *inbox = container_of(owner, struct inbox, subscriber_owner);

    inbox->listens = false;
    if (inbox->state == INBOX_OPEN) {
        inbox_enter_state(inbox, INBOX_CLOSED);
    }
}

/* -- releases that may grant the lease to who waits here */

bool inbox_release_begins(struct inbox *inbox, unsigned stripe, char key[INBOX_KEY_SIZE])
{
    bool may = inbox_is_open(inbox) && link_is_the_same(inbox);

    snprintf(key, INBOX_KEY_SIZE, "%s", may ? inbox->key : "");
    inbox->releases[stripe] += may;
    inbox->releases_under_way += may;
    return may;
}

void inbox_release_ended(struct inbox *inbox, unsigned stripe, bool is_heard)
{
    inbox->releases[stripe]--;
    inbox->releases_under_way--;
    if (is_heard) {
        return;
    }
    inbox->is_unheard[stripe] = true;
    if (inbox->state == INBOX_OPEN) {
        inbox_enter_state(inbox, INBOX_CLOSED);
    }
}

bool inbox_has_perhaps_granted(const struct inbox *inbox, unsigned stripe)
{
    return inbox->releases[stripe] > 0 || inbox->is_unheard[stripe];
}

struct inbox_place *inbox_place_of(const struct inbox *inbox, uint64_t wid)
{
    uint32_t slot = wid & (SLOTS_MAX - 1);
    struct inbox_place *place = slot < inbox->slot_count ? inbox->slots[slot].place : NULL;

    return place != NULL && place->wid == wid ? place : NULL;
}

static void inbox_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    inbox_hear(container_of(owner, struct inbox, subscriber_owner), channel, message);
}

void inbox_hear(struct inbox *inbox, struct bytes channel, struct bytes message)
{
    uint64_t wid = 0;
    enum inbox_news news = inbox_message_read(message, &wid);
    struct inbox_place *place = news != INBOX_NO_NEWS ? inbox_place_of(inbox, wid) : NULL;

    if (inbox->state != INBOX_CLOSED && inbox->state != INBOX_OPENING && place != NULL &&
        bytes_equal(channel, inbox_key(inbox))) {
        place->told(place, news);
    }
}

/* -- those who wait */

static void slots_grow(struct inbox *inbox)
{
    uint32_t count = inbox->slot_count == 0 ? SLOTS_FIRST : inbox->slot_count * 2;

    assert(count <= SLOTS_MAX);
    inbox->slots = must_have(realloc(inbox->slots, count * sizeof(*inbox->slots)));
    for (uint32_t i = count; i > inbox->slot_count; i--) {
        inbox->slots[i - 1] = (struct inbox_slot){NULL, inbox->slot_free};
        inbox->slot_free = i - 1;
    }
    inbox->slot_count = count;
}

void inbox_enter(struct inbox *inbox, struct inbox_place *place)
{
    uint32_t slot;

    assert(inbox_is_open(inbox));
    if (inbox->slot_free == UINT32_MAX) {
        slots_grow(inbox);
    }
    slot = inbox->slot_free;
    inbox->slot_free = inbox->slots[slot].next_free;
    inbox->slots[slot].place = place;
    place->wid = ++inbox->number << SLOT_BITS | slot;
    inbox->places++;
}

void inbox_leave(struct inbox *inbox, struct inbox_place *place)
{
    uint32_t slot = place->wid & (SLOTS_MAX - 1);

    assert(inbox_place_of(inbox, place->wid) == place);
    inbox->slots[slot] = (struct inbox_slot){NULL, inbox->slot_free};
    inbox->slot_free = slot;
    inbox->places--;
}

static void inbox_tell(struct loop_timer *timer)
{
    struct inbox *inbox = container_of(timer, struct inbox, tell);

    for (unsigned told = 0; told < TELL_MOST && inbox->tell_from < inbox->slot_count; inbox->tell_from++) {
        struct inbox_place *place = inbox->slots[inbox->tell_from].place;

        if (place != NULL && place->wid >> SLOT_BITS <= inbox->tell_until) {
            told++;
            place->told(place, INBOX_HAS_CLOSED);
        }
    }
    if (inbox->tell_from < inbox->slot_count) {
        loop_timer_arm(&inbox->tell, 0, 0);
    } else {
        memset(inbox->is_unheard, 0, sizeof(inbox->is_unheard));
    }
}
