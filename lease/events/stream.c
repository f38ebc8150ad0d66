/* stream.c - GET /v1/events: what happens to one lease, or to all, as it happens. SSE (WHATWG HTML,
 * "Server-sent events"), or JSON, one object a line.
 *
 *   events_start    read the request                                 400 | 410, or go on
 *   events_listen   the subscriber                                   suspended, or go on | 503
 *   events_before   of one lease: what was before (history.lua)      suspended
 *   events_answer   begin the stream with what was missed            200 | 410 | 503 | 504
 *   events_heard    go on with what happens; of one lease until that is behind what the store had, then
 *   events_text     the same, written once for many
 *
 *   SUBSCRIBER --one lease: the subscriber listens-->            STORE   history.lua
 *   SUBSCRIBER --all leases: the subscriber listens-->           STREAM  200
 *   SUBSCRIBER --not in time, or the service is to end-->        DONE    503
 *   SUBSCRIBER --the store notes nothing-->                      DONE    404
 *   STORE   --what was before is known-->                        STREAM  200
 *   STORE   --it is not, or `since` is too old-->                DONE    410 | 503 | 504
 *   STREAM  --the client has gone or does not read-->            DONE
 *   STREAM  --the subscriber is deaf, or the service is to end--> DONE   (Last-Event-ID: it returns)
 *
 * One lease: what the store has is asked for when the subscriber listens, so nothing lies between
 * the two, and what is in both is known by its id: those of one lease rise. What is heard before the answer
 * is kept until then.
 *
 * `since` must be proven, so that nothing is ever skipped in silence. Of one lease: it is an item that is
 * kept, or the newest that was dropped, of either list (grants and ends; refusals), and neither list has
 * dropped one that came after it. A list goes only with the lease and the other list, so one that has that
 * item has had everything since. Of all leases: it is an item that the hub has kept, and the hub keeps
 * without a gap. Every other id, one of another lease too, is 410. */
#include <assert.h>
#include <stdlib.h>

#include "lease/events/events.h"
#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/http/pieces.h"

enum { ALIVE_MS = 15 * 1000, EARLY_MAX = 64 * 1024 };
#define NDJSON "application/x-ndjson"

struct listening {
    struct event_listener subscriber;
    struct http_response_writer stream;
    struct alarm alarm; /* SUBSCRIBER: the deadline; STREAM: a sign of life */
    enum events_state state;
    struct worker *worker;
    struct http_request *req;    /* until the stream has begun */
    bool forgotten;              /* the hub has lost it while the store was asked */
    bool is_filtered;            /* of all leases it hears only those that it may look at */
    const char *identity;        /* whose it is; NULL: nobody's */
    LIST_ENTRY(listening) entry; /* of those in STREAM */
    bool has_last;
    struct history_id last; /* of one lease: what is not above it has been sent, or is not to be */
    struct json_out early;  /* items that were heard while the store was asked, a line each */
    char since[HISTORY_ID_SIZE], name[NAME_MAX_BYTES + 1]; /* empty: none; all */
    struct bytes lease;                                    /* name */
};

struct events_call {
    struct lease_call lease;
    struct listening *listening;
};

bool events_allows(enum events_state from, enum events_state to)
{
    static const bool arrows[EVENTS_STATES][EVENTS_STATES] = {
        [EVENTS_SUBSCRIBER] = {[EVENTS_STORE] = true, [EVENTS_STREAM] = true, [EVENTS_DONE] = true},
        [EVENTS_STORE] = {[EVENTS_STREAM] = true, [EVENTS_DONE] = true},
        [EVENTS_STREAM] = {[EVENTS_DONE] = true},
    };

    return arrows[from][to];
}

static struct lease_worker *own(const struct listening *l)
{
    return lease_worker_from(l->worker);
}

/* The only place where the state changes; with DONE it is freed. */
static void events_enter(struct listening *l, enum events_state next)
{
    enum events_state before = l->state;

    assert(events_allows(before, next));
    own(l)->events_walked[before] |= (unsigned char)(1u << next);
    l->state = next;
    alarm_clear(inbox_clock(own(l)->inbox), &l->alarm);
    if (next == EVENTS_STREAM)
        LIST_INSERT_HEAD(&own(l)->streams, l, entry);
    if (before == EVENTS_STREAM) {
        LIST_REMOVE(l, entry);
        service_quota_give(l->identity, ACCESS_STREAMS);
    }
    if (next == EVENTS_STREAM)
        alarm_set(inbox_clock(own(l)->inbox), &l->alarm, loop_now_ms() + ALIVE_MS);
    if (next != EVENTS_DONE)
        return;
    if (!l->forgotten)
        event_hub_forget(own(l)->event_hub, &l->subscriber);
    if (before == EVENTS_STREAM)
        http_response_writer_end(&l->stream, HTTP_RESPONSE_WRITER_WHOLE);
    json_out_done(&l->early);
    free(l);
}

static enum step events_refuse(struct listening *l, enum problem problem)
{
    struct http_request *req = l->req;

    events_enter(l, EVENTS_DONE);
    return http_refuse(req, problem);
}

/* -- who may hear it */

static bool events_may(const struct listening *l, struct bytes lease)
{
    return l->worker->access == NULL || access_allows(l->worker->access, l->identity, ACCESS_LOOK, lease);
}

/* What it has shown was taken out; or what it may hear of all leases has changed: what is gathered for many
 * is for those who may hear all. */
static bool events_stands(const struct listening *l)
{
    const struct access *access = l->worker->access;

    if (!(l->req != NULL ? http_stands(l->req) : http_response_writer_stands(&l->stream)))
        return false;
    return l->lease.len > 0 ? events_may(l, l->lease)
                            : access == NULL || access_covers(access, l->identity, ACCESS_LOOK, BYTES("")) ||
                                  (l->is_filtered && access_allows_some(access, l->identity, ACCESS_LOOK));
}

/* -- what is written */

static void put(struct json_out *text, const char *before, struct bytes value, const char *after)
{
    json_out_append(text, bytes_of(before));
    json_out_append(text, value);
    json_out_append(text, bytes_of(after));
}

/* With the members of every other item, so that nothing that reads them stumbles; but no id as the stream's
 * own: the client comes back with that of the last item that it got. */
#define ITEM_BEGIN(type, identity)                                                                           \
    "{\"id\":\"\",\"type\":\"" type "\",\"lease\":\"\",\"token\":0,\"holder\":\"\"," identity                \
    "\"at_ms\":0,\"reason\":\""
#define LAST_ITEM(type, identity, why) ITEM_BEGIN(type, identity) why "\"}\n"
#define NULL_IDENTITY "\"identity\":null,"

/* The first bytes leave at once, so that a client knows that it listens. last: "SS.EPOCH.SEQ.N" of what came
 * before, or empty: an SSE client that is cut off before anything happens goes on from there (an id without
 * data is no event). false, as of all that write: the stream does not take it, and is to be ended. */
static bool events_write_begin(struct listening *l, struct bytes last)
{
    struct http_response_writer *stream = &l->stream;
    const char *filtered = l->is_filtered ? "true" : "false";
    struct json_out text;
    bool taken, judges = l->worker->access != NULL;
    char number[BYTES_NUMBER_SIZE];
    struct bytes now = bytes_of_number(number, event_hub_now_ms(own(l)->event_hub));

    if (l->subscriber.form == EVENTS_NDJSON && !judges)
        return http_stream_write(stream, BYTES("\n"));
    json_out_init(&text);
    if (l->subscriber.form == EVENTS_NDJSON)
        put(&text, ITEM_BEGIN("listening", NULL_IDENTITY) "\",\"now_ms\":", now, ",\"filtered\":");
    else
        put(&text, ": listening, now_ms: ", now, judges ? ", filtered: " : "");
    if (judges)
        json_out_append(&text, bytes_of(filtered));
    json_out_append(&text, l->subscriber.form == EVENTS_NDJSON ? BYTES("}") : BYTES("\n"));
    if (last.len > 0 && l->subscriber.form == EVENTS_SSE)
        put(&text, "id: ", last, "\n");
    json_out_append(&text, BYTES("\n"));
    taken = http_stream_write(stream, json_out_bytes(&text));
    json_out_done(&text);
    return taken;
}

void events_put_item(struct json_out *text, const struct worker *worker, enum events_form form,
                     struct bytes lease, const struct history_item *item)
{
    char id[HISTORY_ID_SIZE];
    struct json_out json;

    json_out_init(&json);
    history_item_write(&json, worker, lease, item);
    if (form == EVENTS_SSE) {
        put(text, "id: ", history_id_write(id, lease, item->id_text), "\n");
        put(text, "event: ", item->type, "\n");
        put(text, "data: ", json_out_bytes(&json), "\n\n");
    } else {
        put(text, "", json_out_bytes(&json), "\n");
    }
    json_out_done(&json);
}

void events_put_line(struct json_out *text, const struct worker *worker, enum events_form form,
                     struct bytes lease, const struct store_reply *reply)
{
    int64_t now_ms = store_reply_integer(reply, 4);
    struct json_out json;

    json_out_init(&json);
    json_object(&json, NULL);
    json_text(&json, "id", BYTES(""));
    json_text(&json, "type", BYTES("line"));
    json_text(&json, "lease", lease);
    json_int(&json, "token", 0);
    json_text(&json, "holder", BYTES(""));
    lease_identity_write(&json, worker, BYTES(""));
    json_int(&json, "at_ms", now_ms);
    json_text(&json, "reason", BYTES(""));
    json_int(&json, "waiting", store_reply_integer(reply, 2));
    look_line_write(&json, worker, store_reply_list(reply, 3), now_ms);
    json_object_end(&json);
    put(text, form == EVENTS_SSE ? "event: line\ndata: " : "", json_out_bytes(&json),
        form == EVENTS_SSE ? "\n\n" : "\n");
    json_out_done(&json);
}

#define LAGGING(identity) LAST_ITEM("lagging", identity, "too slow")
#define FORBIDDEN LAST_ITEM("forbidden", NULL_IDENTITY, "not allowed any more")

/* One item or several. A client that is too slow learns so, if it ever reads again. */
static bool events_write_text(struct listening *l, struct bytes text)
{
    static const char *const lagging[][EVENTS_FORMS] = {
        {"event: lagging\ndata: " LAGGING("") "\n", LAGGING("")},
        {"event: lagging\ndata: " LAGGING(NULL_IDENTITY) "\n", LAGGING(NULL_IDENTITY)},
    };

    if (http_stream_write(&l->stream, text))
        return true;
    http_stream_write(&l->stream, bytes_of(lagging[lease_has_access(l->worker)][l->subscriber.form]));
    return false;
}

void events_judge(struct lease_worker *worker)
{
    struct listening *l = LIST_FIRST(&worker->streams), *next;

    for (; l != NULL; l = next) {
        next = LIST_NEXT(l, entry);
        if (events_stands(l))
            continue;
        http_stream_write(&l->stream, l->subscriber.form == EVENTS_SSE
                                          ? BYTES("event: forbidden\ndata: " FORBIDDEN "\n")
                                          : BYTES(FORBIDDEN));
        events_enter(l, EVENTS_DONE);
    }
}

/* -- the stream */

/* Whether it goes on; else it is no more. */
static bool events_go_on(struct listening *l, bool taken)
{
    if (!taken)
        events_enter(l, EVENTS_DONE);
    return taken;
}

static bool events_begin(struct listening *l, struct bytes last)
{
    struct http_request *req = l->req;

    if (!events_stands(l)) {
        events_refuse(l, service_forbidden(req, ACCESS_LOOK, (struct bytes){NULL, 0}));
        return false;
    }
    if (!service_quota_take(l->worker, l->identity, ACCESS_STREAMS)) {
        events_enter(l, EVENTS_DONE);
        service_quota_refuse(req, ACCESS_STREAMS);
        return false;
    }
    l->req = NULL;
    http_stream_begin(req, &l->stream, l->subscriber.form == EVENTS_NDJSON ? NDJSON : "text/event-stream");
    events_enter(l, EVENTS_STREAM);
    return events_go_on(l, events_write_begin(l, last));
}

static bool events_send(struct listening *l, struct bytes lease, struct bytes packed)
{
    struct history_item item;
    struct json_out text;
    bool taken;

    if (l->is_filtered && !events_may(l, lease))
        return true;
    if (!history_item_read(packed, &item) || (l->has_last && history_id_compare(&item.id, &l->last) <= 0))
        return true;
    if (l->lease.len > 0) {
        l->last = item.id;
        l->has_last = true;
    }
    json_out_init(&text);
    events_put_item(&text, l->worker, l->subscriber.form, lease, &item);
    taken = events_write_text(l, json_out_bytes(&text));
    json_out_done(&text);
    return events_go_on(l, taken);
}

static bool events_text(struct event_listener *subscriber, struct bytes text)
{
    struct listening *l = container_of(subscriber, struct listening, subscriber);

    return l->state != EVENTS_STREAM || events_go_on(l, events_write_text(l, text));
}

static bool events_again(struct event_listener *subscriber, struct bytes lease, struct bytes packed)
{
    return events_send(container_of(subscriber, struct listening, subscriber), lease, packed);
}

/* The hub has no more to do with it, and the store still has to answer. */
static void events_forget(struct listening *l)
{
    event_hub_forget(own(l)->event_hub, &l->subscriber);
    l->forgotten = true;
}

static void events_heard(struct event_listener *subscriber, struct bytes lease, struct bytes packed)
{
    struct listening *l = container_of(subscriber, struct listening, subscriber);

    if (l->state == EVENTS_STREAM) {
        /* What the store had may be heard after its answer; from the first new item on all are new. */
        bool had_last = l->has_last;
        struct history_id last = l->last;

        if (events_send(l, lease, packed) && l->has_last &&
            (!had_last || history_id_compare(&l->last, &last) > 0))
            event_hub_gather(&l->subscriber);
    } else if (l->early.len + packed.len >= EARLY_MAX) {
        events_forget(l);
    } else {
        json_out_append(&l->early, packed);
        json_out_append(&l->early, BYTES("\n"));
    }
}

static void events_lost(struct event_listener *subscriber)
{
    struct listening *l = container_of(subscriber, struct listening, subscriber);
    bool draining = atomic_load(&l->worker->service->draining);
    enum problem why = draining                              ? PROBLEM_DRAINING
                       : event_hub_is_off(own(l)->event_hub) ? PROBLEM_HISTORY_OFF
                                                             : PROBLEM_STORE_UNAVAILABLE;

    switch (l->state) {
    case EVENTS_SUBSCRIBER: events_refuse(l, why); return;
    case EVENTS_STORE: events_forget(l); return;
    case EVENTS_STREAM: events_enter(l, EVENTS_DONE); return;
    case EVENTS_DONE:
    case EVENTS_STATES: return;
    }
}

static void events_gone(struct http_response_writer *stream)
{
    events_enter(container_of(stream, struct listening, stream), EVENTS_DONE);
}

static void events_alarm(struct alarm *alarm)
{
    struct listening *l = container_of(alarm, struct listening, alarm);

    if (l->state == EVENTS_SUBSCRIBER)
        events_refuse(l, PROBLEM_STORE_UNAVAILABLE);
    else if (events_go_on(l, http_stream_write(&l->stream, l->subscriber.form == EVENTS_NDJSON
                                                               ? BYTES("\n")
                                                               : BYTES(": alive\n\n"))))
        alarm_set(inbox_clock(own(l)->inbox), &l->alarm, loop_now_ms() + ALIVE_MS);
}

/* -- what was before */

/* Which of the ids, of items or such alone, is this one, or -1; later: whether one comes after it. */
static bool has_id(const struct store_reply *ids, const struct history_id *wanted, bool *later)
{
    struct history_item item;
    bool found = false;

    *later = false;
    for (size_t i = 0; i < store_reply_count(ids); i++) {
        struct bytes text = store_reply_text(ids, i);

        if (history_item_read(text, &item) || history_id_read(text, &item.id)) {
            int order = history_id_compare(&item.id, wanted);
            found = found || order == 0;
            *later = *later || order > 0;
        }
    }
    return found;
}

/* Whether everything that came after since is among the items; the head of this file says why. */
static bool since_is_proven(struct listening *l, const struct store_reply *items,
                            const struct store_reply *dropped)
{
    unsigned stripe;
    bool later_kept, later_dropped, kept, is_dropped;

    if (!history_id_read_user(bytes_of(l->since), &stripe, &l->last) || stripe != keys_stripe_of(l->lease))
        return false;
    kept = has_id(items, &l->last, &later_kept);
    is_dropped = has_id(dropped, &l->last, &later_dropped);
    return (kept || is_dropped) && !later_dropped;
}

/* The id of the newest item: what came before is not sent to one that did not say since when. */
static struct bytes begin_now(struct listening *l, const struct store_reply *items, char buf[HISTORY_ID_SIZE])
{
    struct history_item item;
    size_t count = store_reply_count(items);

    l->has_last = count > 0 && history_item_read(store_reply_text(items, count - 1), &item);
    if (!l->has_last)
        return (struct bytes){NULL, 0};
    l->last = item.id;
    return history_id_write(buf, l->lease, item.id_text);
}

/* What was missed, and what was heard since the store was asked. */
static void events_catch_up(struct listening *l, const struct store_reply *items)
{
    struct json_out early = l->early;
    const char *at = early.at, *end;

    l->early = (struct json_out){0};
    for (size_t i = 0; i < store_reply_count(items); i++) {
        if (!events_send(l, l->lease, store_reply_text(items, i))) {
            json_out_done(&early);
            return;
        }
    }
    for (; at != NULL && at < early.at + early.len; at = end + 1) {
        end = memchr(at, '\n', (size_t)(early.at + early.len - at));
        if (!events_send(l, l->lease, (struct bytes){at, (size_t)(end - at)}))
            break;
    }
    json_out_done(&early);
}

static enum step events_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct events_call *ask = container_of(call, struct events_call, lease.record);
    struct listening *l = ask->listening;
    const struct store_reply *items = store_reply_list(reply, 3);
    char id[HISTORY_ID_SIZE];
    struct bytes last = {NULL, 0};

    if (bad == PROBLEM_NONE && (!store_reply_is(reply, "history") || items == NULL))
        bad = store_reply_is(reply, "off") ? PROBLEM_HISTORY_OFF : PROBLEM_INTERNAL;
    if (bad != PROBLEM_NONE || l->forgotten)
        return events_refuse(l, bad != PROBLEM_NONE ? bad : PROBLEM_STORE_UNAVAILABLE);
    if (store_reply_text(reply, 2).len > 0)
        handoff_more(own(l)->handoff, l->lease);
    if (l->since[0] == '\0')
        last = begin_now(l, items, id);
    else if (!since_is_proven(l, items, store_reply_list(reply, 4)))
        return events_refuse(l, PROBLEM_CURSOR_EXPIRED);
    else
        l->has_last = true;
    if (events_begin(l, last)) {
        event_hub_line(&l->subscriber);
        events_catch_up(l, items);
    }
    return ANSWERED;
}

static enum step events_before(struct listening *l)
{
    struct events_call *call = HTTP_SCRATCH(l->req, struct events_call);
    struct lease_call *lease = &call->lease;
    enum problem bad;

    if (l->lease.len == 0) {
        if (events_begin(l, (struct bytes){NULL, 0})) {
            if (!l->is_filtered)
                event_hub_gather(&l->subscriber);
            if (l->since[0] != '\0')
                event_hub_replay(own(l)->event_hub, bytes_of(l->since), &l->subscriber, events_again);
        }
        return ANSWERED;
    }
    call->listening = l;
    lease->req = l->req;
    lease_call_fill(lease, l->worker, l->lease);
    lease_call_arg(lease, 3, grant_may(l->worker));
    bad = lease_call_begin(lease, l->worker, &script_history, 3, events_answer);
    if (bad != PROBLEM_NONE)
        return events_refuse(l, bad);
    events_enter(l, EVENTS_STORE);
    return SUSPENDED;
}

/* -- the request */

static const char *const query_names[] = {"lease", "since", NULL};

/* An id that is not ours is 400, wherever it stands; the header wins. */
static const char *since_read(const struct http_request *req, char since[HISTORY_ID_SIZE])
{
    unsigned count = 0, stripe;
    struct bytes header = http_header(req, "Last-Event-ID", &count);
    struct history_id id;
    int len = http_query_text(req, query_names, "since", since, HISTORY_ID_SIZE);

    if (len != -1 && (len < 0 || !history_id_read_user(bytes_of(since), &stripe, &id)))
        return "The query is lease and since, each at most once; since is the id of an event.";
    if (count == 0)
        return NULL;
    if (count > 1 || header.len >= HISTORY_ID_SIZE || !history_id_read_user(header, &stripe, &id))
        return "The header Last-Event-ID is the id of an event, and comes at most once.";
    memcpy(since, header.at, header.len);
    since[header.len] = '\0';
    return NULL;
}

/* name: of the one lease, or empty; since: "SS.EPOCH.SEQ.N", or empty: from now on. Last-Event-ID wins over
 * the query. NULL, or what is wrong: 400, also of an id that is none of ours. */
static const char *events_read(const struct http_request *req, char name[NAME_MAX_BYTES + 1],
                               char since[HISTORY_ID_SIZE])
{
    int len = http_query_text(req, query_names, "lease", name, NAME_MAX_BYTES + 1);

    if (len == -2)
        return "The query is lease and since, each at most once; lease is the name of a lease.";
    if (len != -1 && !name_is_lease(bytes_of(name))) {
        return "The query member lease is not the name of a lease: 1 to 128 characters of A-Z a-z 0-9 . _ : "
               "-, the "
               "first a letter or a digit.";
    }
    return since_read(req, since);
}

static void events_listens(struct event_listener *subscriber)
{
    events_before(container_of(subscriber, struct listening, subscriber));
}

enum step events_start(struct http_request *req)
{
    char name[NAME_MAX_BYTES + 1], since[HISTORY_ID_SIZE];
    const char *wrong = events_read(req, name, since);
    struct worker *worker = worker_of(req);
    struct listening *l;

    if (wrong != NULL)
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    if (name[0] != '\0' && !service_allows(req, ACCESS_LOOK, bytes_of(name)))
        return service_forbid(req, ACCESS_LOOK, bytes_of(name));
    if (name[0] == '\0' && since[0] != '\0' &&
        !event_hub_has(lease_worker_from(worker)->event_hub, bytes_of(since)))
        return http_refuse(req, PROBLEM_CURSOR_EXPIRED);
    l = calloc(1, sizeof(*l)); /* it outlives the request, which a stream ends when it begins */
    if (l == NULL)
        return http_refuse(req, PROBLEM_OVERLOADED);
    /* The contract does not say what becomes of types that it does not name: they get SSE, as does a request
     * without the header. */
    l->subscriber = (struct event_listener){.item = events_heard,
                                            .text = events_text,
                                            .listens = events_listens,
                                            .lost = events_lost,
                                            .form = http_accepts(req, NDJSON) ? EVENTS_NDJSON : EVENTS_SSE};
    l->stream.gone = events_gone;
    l->alarm.rings = events_alarm;
    l->worker = worker;
    l->identity = http_identity(req);
    l->is_filtered = name[0] == '\0' && !service_covers(req, ACCESS_LOOK, BYTES(""));
    l->req = req;
    memcpy(l->name, name, sizeof(name));
    memcpy(l->since, since, sizeof(since));
    l->lease = bytes_of(l->name);
    json_out_init(&l->early);
    if (event_hub_listen(own(l)->event_hub, &l->subscriber, l->lease))
        return events_before(l);
    alarm_set(inbox_clock(own(l)->inbox), &l->alarm,
              loop_now_ms() + worker->service->settings.store_timeout_ms);
    return SUSPENDED;
}
