/* inbox.c - where clients wait: one inbox for each worker. A lease that is handed on to one of them is
 * announced by a message of Redis (docs/decisions/0013).
 *
 *   inbox_look     several times a second: opens, sends heartbeats, notices that the link is another
 *   inbox_run      run inbox_heartbeat.lua
 *   inbox_answer   OPEN | CLOSED | SHUT
 *   inbox_heard    a message: notify the waiter, if that ends its wait when its copies are there
 *   inbox_announce the inbox has closed: notify all that were there, some in each turn
 *   inbox_judge    the rules have changed: likewise
 *
 *   CLOSED   --the subscriber listens, the line to the store stands--> OPENING   inbox_heartbeat.lua "open"
 *   OPENING  --the store has it-->                                     OPEN
 *   OPENING  --not so, unknown, the subscriber or the link broke meanwhile--> CLOSED
 *   OPEN     --the subscriber is deaf, the link is another or none-->  CLOSED
 *   OPEN     --a heartbeat is late or unknown, or none taken for 3 s--> CLOSED
 *   OPEN     --the reply of a release is lost-->                       CLOSED
 *   OPEN     --a message has no copies in time-->                      CLOSED
 *   OPEN     --drained-->                                              CLOSING   inbox_heartbeat.lua "close"
 *   CLOSED   --drained-->                                              SHUT
 *   CLOSING  --answered, however-->                                    SHUT
 *
 * An inbox that closes gets a new id when it opens again: what is handed on to a waiter of before cannot be
 * claimed by this process, so all that wait are refused at once (503, nothing was granted), except those
 * whose claim is under way, and those to which a release may have granted the lease. It sends a heartbeat
 * every INBOX_HEARTBEAT_MS; the store passes over the waiters of an inbox that was silent for
 * INBOX_SILENT_MS. An inbox that is drained is closed in the store first, so that nobody else waits for what
 * would be handed on there; what was handed on before is still claimed.
 *
 * A wid is SLOT_BITS of the place in the table of slots, and above them a number that only rises: so a late
 * message, to one that has left, finds nobody. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "lease/queue/queue.h"
#include "scripts.h"
#include "shared/member/member.h"
#include "shared/text/memory.h"
#include "shared/token/random.h"

enum {
    SLOT_BITS = 20, /* more than --max-connections can be */
    SLOTS_MAX = 1 << SLOT_BITS,
    SLOTS_FIRST = 64,
    LOOK_MS = 250, /* while open */
    LOOK_CLOSED_MS = 20,
    TELL_MOST = 128,    /* in one turn: an answer takes some 8 KiB while it is written */
    TELL_MS = 20,       /* likewise: to judge one, its certificate or JWT is verified anew */
    NEXT_TURN_MS = 1,   /* 0 would ring in the same turn again (libuv 1.44, uv__run_timers()) */
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
    struct member_held *held; /* messages of which no call of the waiter says the same */
    struct member_held_owner held_owner;
    struct alarm_clock *clock;
    struct loop_timer look, announce, judge;
    enum inbox_state state;
    bool drained, listens, asked, used; /* listens: to its channel; used: its id was sent to the store */
    struct member_call call;
    int64_t epoch;
    uint64_t asked_ms, heartbeat_ms, link; /* heartbeat: when the last one that was taken was sent */
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
    uint64_t announce_until;            /* places up to this number are to learn that the inbox has closed */
    uint32_t announce_from;             /* the next slot of them */
    uint32_t judge_from;                /* the next slot that is to learn that the rules have changed */
    unsigned char walked[INBOX_STATES]; /* bit t of element f: went from f to t */
};

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
        inbox->announce_until = inbox->number;
        inbox->announce_from = 0;
        loop_timer_arm(&inbox->announce, next == INBOX_SHUT ? LAST_WORDS_MS : 0, 0);
    }
    loop_timer_arm(&inbox->look, next == INBOX_OPEN && !inbox->drained ? LOOK_MS : LOOK_CLOSED_MS, 0);
}

bool inbox_is_open(const struct inbox *inbox)
{
    return inbox->state == INBOX_OPEN && !inbox->drained;
}

const char *inbox_why(const struct inbox *inbox)
{
    return store_subscriber_why(inbox->subscriber);
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
    return inbox->state == INBOX_SHUT && inbox->announce_from >= inbox->slot_count;
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

/* -- opening, and heartbeats */

static void inbox_take_id(struct inbox *inbox)
{
    if (inbox->key[0] != '\0')
        store_subscriber_unsubscribe(inbox->subscriber, inbox_key(inbox));
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

static enum step inbox_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct inbox *inbox = container_of(call, struct inbox, call);
    bool taken = bad == PROBLEM_NONE && store_reply_is(reply, "beats");
    bool not_sent = bad != PROBLEM_NONE && bad != PROBLEM_OUTCOME_UNKNOWN && bad != PROBLEM_INTERNAL;

    inbox->asked = false;
    if (taken)
        inbox->heartbeat_ms = inbox->asked_ms;
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

/* next: the state when the call is under way. */
static void inbox_run(struct inbox *inbox, const char *what, enum inbox_state next)
{
    inbox->argv[HEARTBEAT_KEYS + 1] = bytes_of(what);
    inbox->call.done = inbox_answer;
    if (member_run(inbox->line, &inbox->call, inbox->stripe_number, &script_inbox_heartbeat, HEARTBEAT_KEYS,
                   HEARTBEAT_KEYS + 2, inbox->argv) != PROBLEM_NONE)
        return; /* the next look tries again */
    inbox->asked = inbox->used = true;
    inbox->asked_ms = loop_now_ms();
    if (next == INBOX_OPENING) {
        inbox->link = store_link_number(inbox->line->store);
        inbox->epoch = epoch_number(inbox->line->store_epoch);
    }
    if (next != inbox->state)
        inbox_enter_state(inbox, next);
}

static void inbox_look_open(struct inbox *inbox)
{
    uint64_t now_ms = loop_now_ms();

    if (!link_is_the_same(inbox) || now_ms - inbox->heartbeat_ms > INBOX_SILENT_MS) {
        inbox_enter_state(inbox, INBOX_CLOSED);
        return;
    }
    loop_timer_arm(&inbox->look, inbox->drained ? LOOK_CLOSED_MS : LOOK_MS, 0);
    if (inbox->drained && !inbox->asked)
        inbox_run(inbox, "close", INBOX_CLOSING);
    else if (!inbox->asked && now_ms + LOOK_MS / 2 >= inbox->asked_ms + INBOX_HEARTBEAT_MS)
        inbox_run(inbox, "beat", INBOX_OPEN);
}

static void inbox_look_closed(struct inbox *inbox)
{
    loop_timer_arm(&inbox->look, LOOK_CLOSED_MS, 0);
    if (inbox->asked || inbox->releases_under_way > 0) {
        return; /* a heartbeat of before: its keys are still in use; a release that is sent again would come
                 * later than what is asked from the next inbox, and its answer name a place that is not there
                 * any more */
    }
    if (inbox->drained) {
        inbox_enter_state(inbox, INBOX_SHUT);
        return;
    }
    if (inbox->used)
        inbox_take_id(inbox);
    if (inbox->listens && store_subscriber_follow(inbox->subscriber, inbox->line->store))
        inbox_run(inbox, "open", INBOX_OPENING);
}

/* The other states wait for an answer, or for nothing any more. */
static void inbox_look(struct loop_timer *timer)
{
    struct inbox *inbox = container_of(timer, struct inbox, look);

    if (inbox->state == INBOX_OPEN)
        inbox_look_open(inbox);
    else if (inbox->state == INBOX_CLOSED)
        inbox_look_closed(inbox);
}

/* -- releases that may grant the lease to a waiter here */

/* One that comes to wait later sends its acquire later, too, and so stands in no line that this one meets. */
bool inbox_release_begins(struct inbox *inbox, unsigned stripe, char key[INBOX_KEY_SIZE])
{
    bool may = inbox->places > 0 && inbox_is_open(inbox) && link_is_the_same(inbox);

    memcpy(key, may ? inbox->key : (const char[INBOX_KEY_SIZE]){""}, INBOX_KEY_SIZE);
    inbox->releases[stripe] += may;
    inbox->releases_under_way += may;
    return may;
}

void inbox_release_ended(struct inbox *inbox, unsigned stripe, bool is_heard)
{
    inbox->releases[stripe]--;
    inbox->releases_under_way--;
    if (is_heard)
        return;
    inbox->is_unheard[stripe] = true;
    if (inbox->state == INBOX_OPEN)
        inbox_enter_state(inbox, INBOX_CLOSED);
}

bool inbox_has_perhaps_granted(const struct inbox *inbox, unsigned stripe)
{
    return inbox->releases[stripe] > 0 || inbox->is_unheard[stripe];
}

/* -- places */

struct inbox_place *inbox_place_of(const struct inbox *inbox, uint64_t wid)
{
    uint32_t slot = wid & (SLOTS_MAX - 1);
    struct inbox_place *place = slot < inbox->slot_count ? inbox->slots[slot].place : NULL;

    return place != NULL && place->wid == wid ? place : NULL;
}

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
    if (inbox->slot_free == UINT32_MAX)
        slots_grow(inbox);
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

/* Those from this slot on whose number is not above last: some in each turn, by this timer. Whether that is
 * all. */
static bool tell_some(struct inbox *inbox, struct loop_timer *timer, uint32_t *from, uint64_t last,
                      enum inbox_news news)
{
    uint64_t until_ms = loop_now_ms() + TELL_MS;

    for (unsigned count = 0; count < TELL_MOST && *from < inbox->slot_count && loop_now_ms() <= until_ms;
         ++*from) {
        struct inbox_place *place = inbox->slots[*from].place;

        if (place != NULL && place->wid >> SLOT_BITS <= last) {
            count++;
            place->notify(place, news);
        }
    }
    if (*from < inbox->slot_count)
        loop_timer_arm(timer, NEXT_TURN_MS, 0);
    return *from >= inbox->slot_count;
}

static void inbox_announce(struct loop_timer *timer)
{
    struct inbox *inbox = container_of(timer, struct inbox, announce);

    if (tell_some(inbox, timer, &inbox->announce_from, inbox->announce_until, INBOX_HAS_CLOSED))
        memset(inbox->is_unheard, 0, sizeof(inbox->is_unheard));
}

static void inbox_judge_some(struct loop_timer *timer)
{
    struct inbox *inbox = container_of(timer, struct inbox, judge);

    tell_some(inbox, timer, &inbox->judge_from, UINT64_MAX, INBOX_JUDGED);
}

void inbox_judge(struct inbox *inbox)
{
    inbox->judge_from = 0;
    loop_timer_arm(&inbox->judge, 0, 0);
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
    if (inbox->state == INBOX_OPEN)
        inbox_enter_state(inbox, INBOX_CLOSED);
}

uint64_t inbox_wid_read(struct bytes text)
{
    uint64_t wid = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || wid > (UINT64_MAX - 9) / 10)
            return 0;
        wid = wid * 10 + (uint64_t)(text.at[i] - '0');
    }
    return wid;
}

/* "WORD WID" (lease/scripts/lib/line.lua). */
static enum inbox_news message_read(struct bytes message, uint64_t *wid)
{
    static const char *const words[] = {[INBOX_GRANTED] = "granted",
                                        [INBOX_SUPERSEDED] = "superseded",
                                        [INBOX_SESSION_LOST] = "session-lost"};
    const char *space = message.len > 0 ? memchr(message.at, ' ', message.len) : NULL;
    size_t len = space != NULL ? (size_t)(space - message.at) : 0;

    if (space == NULL)
        return INBOX_NO_NEWS;
    *wid = inbox_wid_read((struct bytes){space + 1, message.len - len - 1});
    for (enum inbox_news news = INBOX_GRANTED; *wid != 0 && news <= INBOX_SESSION_LOST; news++)
        if (bytes_are((struct bytes){message.at, len}, words[news]))
            return news;
    return INBOX_NO_NEWS;
}

void inbox_hear(struct inbox *inbox, struct bytes channel, struct bytes message)
{
    uint64_t wid = 0;
    enum inbox_news news = message_read(message, &wid);
    struct inbox_place *place = news != INBOX_NO_NEWS ? inbox_place_of(inbox, wid) : NULL;

    if (inbox->state != INBOX_CLOSED && inbox->state != INBOX_OPENING && place != NULL &&
        bytes_equal(channel, inbox_key(inbox)))
        place->notify(place, news);
}

static void inbox_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct inbox *inbox = container_of(owner, struct inbox, subscriber_owner);
    uint64_t wid = 0;
    enum inbox_news news = message_read(message, &wid);

    if (news == INBOX_GRANTED)
        inbox_hear(inbox, channel, message); /* what claims it waits for the copies */
    else if (news != INBOX_NO_NEWS)
        member_held_take(inbox->held, channel, message);
}

static void inbox_kept(struct member_held_owner *owner, struct bytes channel, struct bytes message)
{
    inbox_hear(container_of(owner, struct inbox, held_owner), channel, message);
}

static void inbox_missed(struct member_held_owner *owner)
{
    struct inbox *inbox = container_of(owner, struct inbox, held_owner);

    if (inbox->state == INBOX_OPEN)
        inbox_enter_state(inbox, INBOX_CLOSED);
}

struct inbox *inbox_new(struct worker *worker)
{
    struct inbox *inbox = must_have(calloc(1, sizeof(*inbox)));
    struct store_options options = service_store_options(worker->service);

    inbox->worker = worker;
    inbox->line = member_line_of_worker(worker);
    inbox->used = true; /* there is no id yet */
    inbox->slot_free = UINT32_MAX;
    inbox->held_owner = (struct member_held_owner){inbox_kept, inbox_missed};
    inbox->held = member_held_new(inbox->line, &inbox->held_owner);
    inbox->clock = alarm_clock_new(worker->loop);
    inbox->subscriber_owner = (struct store_subscriber_owner){inbox_heard, inbox_listens, inbox_deaf};
    inbox->subscriber = store_subscriber_open(worker->loop, &options, &inbox->subscriber_owner);
    loop_timer_init(worker->loop, &inbox->announce, inbox_announce);
    loop_timer_init(worker->loop, &inbox->judge, inbox_judge_some);
    loop_timer_init(worker->loop, &inbox->look, inbox_look);
    loop_timer_arm(&inbox->look, 0, 0);
    return inbox;
}

void inbox_free(struct inbox *inbox)
{
    assert(inbox->places == 0);
    loop_timer_done(&inbox->look);
    loop_timer_done(&inbox->announce);
    loop_timer_done(&inbox->judge);
    store_subscriber_close(inbox->subscriber);
    member_held_free(inbox->held);
    alarm_clock_free(inbox->clock);
    free(inbox->slots);
    free(inbox);
}
