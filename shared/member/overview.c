/* overview.c - GET /v1/overview: once as JSON, or each second as a stream.
 *
 *   overview_start     one script, which asks no stripe (overview.lua)       suspended
 *   overview_answered  may it still? Also when the store does not answer    200, a stream goes on | 403 | 429
 *   overview_tick      each second the script once, for all streams of the worker; may they still look?
 *   streams_answered   to each what it may see
 *
 * What is the matter with the service itself is what its /readyz says (shared/service/health.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "scripts.h"
#include "shared/http/pieces.h"
#include "shared/member/member_internal.h"
#include "shared/member/overview_walk.h"
#include "shared/text/memory.h"

enum { EACH_MS = 1000, BARS = 120, BAR_KINDS = 3, CODE_SIZE = 32, SILENT_MS = 10000 };
/* Of the reply of overview.lua; the fields of a member stand one behind the other. */
enum { REPLY_NOW = 1, REPLY_STORE, REPLY_EPOCH, REPLY_CEILING, REPLY_DOUBTS, REPLY_MEMBERS, REPLY_BARS };
enum {
    MEMBER_ID,
    MEMBER_ROLE,
    MEMBER_STATE,
    MEMBER_WHO,
    MEMBER_ABOUT,
    MEMBER_HEARD,
    MEMBER_COUNTS,
    MEMBER_FIELDS
};

/* Who looks. */
struct viewer {
    struct worker *worker;
    const char *identity; /* NULL: nobody */
};

enum form { FORM_JSON, FORM_SSE, FORM_NDJSON };

struct overview_stream {
    struct http_response_writer writer;
    struct viewer viewer;
    enum form form;
    LIST_ENTRY(overview_stream) entry;
};

/* Of one worker, on its thread alone. */
struct overview {
    LIST_HEAD(, overview_stream) open;
    struct store_call call;
    struct bytes argv[1];
    bool in_flight;
    uint64_t due_ms;
    unsigned judged_by;   /* worker->judged_by of when they were judged */
    char code[CODE_SIZE]; /* of the condition that it last saw; "": none */
    uint64_t since_ms;
};

struct overview *overview_new(void)
{
    return must_have(calloc(SERVICE_THREADS_MAX, sizeof(struct overview)));
}

static struct member_daemon *daemon_of(const struct worker *worker)
{
    return worker->service->extra;
}

static struct overview *overview_of(const struct worker *worker)
{
    return &daemon_of(worker)->overview[worker->index];
}

/* -- who looks */

static bool is_filtered(const struct viewer *viewer)
{
    const struct access *access = viewer->worker->access;

    return access != NULL && !access_covers(access, viewer->identity, ACCESS_LOOK, BYTES(""));
}

static bool may_observe(const struct viewer *viewer)
{
    const struct access *access = viewer->worker->access;

    return access == NULL || access_allows_some(access, viewer->identity, ACCESS_OBSERVE);
}

/* Which machines there are: for those who look after them. */
static bool may_know_members(const struct viewer *viewer)
{
    return may_observe(viewer) ||
           access_allows_some(viewer->worker->access, viewer->identity, ACCESS_OPERATE);
}

/* Something was counted, and the viewer may look at all of it. */
static bool is_counted_for(const struct viewer *viewer, const struct walk_found *found)
{
    return found->at_ms > 0 && !is_filtered(viewer);
}

/* -- what is the matter */

struct condition {
    const char *code;
    int64_t for_ms; /* -1: nobody knows */
    char detail[READY_DETAIL_SIZE];
    const char *remedy; /* NULL: that of the code */
    char command[64];   /* "": that of the code */
};

/* For how long the worker has known it; 0: it sees it now. */
static int64_t condition_for_ms(const struct overview *overview, const char *code)
{
    return strcmp(overview->code, code) == 0 ? (int64_t)(loop_now_ms() - overview->since_ms) : 0;
}

/* -- who is on the store */

struct seen {
    struct bytes kind, id, who, version, code, state,
        counts; /* code: what it says is the matter with it, "": nothing; counts: overview.lua */
    int64_t heard_ms, up_ms;
    bool is_in;
};

static size_t count_of(const struct store_reply *list)
{
    return list != NULL ? store_reply_count(list) : 0;
}

/* Member number i of the reply, NULL: the store has not answered; false: there are no more. */
static bool seen_take(const struct store_reply *reply, size_t i, struct seen *one)
{
    const struct store_reply *members = reply != NULL ? store_reply_list(reply, REPLY_MEMBERS) : NULL;
    size_t at = i * MEMBER_FIELDS;
    struct bytes about, up;

    if (at + MEMBER_FIELDS > count_of(members))
        return false;
    about = store_reply_text(members, at + MEMBER_ABOUT); /* "VERSION MS CODE"; of an older release less */
    *one = (struct seen){.kind = store_reply_text(members, at + MEMBER_ROLE),
                         .id = store_reply_text(members, at + MEMBER_ID),
                         .who = store_reply_text(members, at + MEMBER_WHO),
                         .version = bytes_cut(&about, ' '),
                         .state = store_reply_text(members, at + MEMBER_STATE),
                         .heard_ms = store_reply_integer(members, at + MEMBER_HEARD),
                         .counts = store_reply_text(members, at + MEMBER_COUNTS)};
    up = bytes_cut(&about, ' ');
    one->up_ms = up.len > 0 ? strtoll(up.at, NULL, 10) + one->heard_ms : 0;
    one->code = about;
    one->is_in = bytes_are(one->state, "in");
    return true;
}

static bool is_heard(const struct seen *one)
{
    return one->is_in && one->heard_ms <= SILENT_MS;
}

static void condition_says(struct condition *condition, const struct seen *one, const char *what)
{
    snprintf(condition->detail, sizeof(condition->detail), "%.*s (member %.*s) %s",
             (int)(one->who.len < 200 ? one->who.len : 200), one->who.at,
             (int)(one->id.len < 32 ? one->id.len : 32), one->id.at, what);
}

/* A member that is heard, and says that something is the matter with it; false: none does. */
static bool member_is_unwell(const struct store_reply *reply, struct condition *condition)
{
    char code[MEMBER_CONDITION_SIZE], says[MEMBER_CONDITION_SIZE + 8];
    const char *command;
    struct seen one;
    size_t i = 0;

    while (seen_take(reply, i, &one) && !(is_heard(&one) && one.code.len > 0))
        i++;
    if (!seen_take(reply, i, &one))
        return false;
    snprintf(code, sizeof(code), "%.*s", (int)one.code.len, one.code.at);
    condition->code = "member-condition";
    condition->for_ms = -1;
    condition->remedy = service_condition_remedy(code, &command);
    snprintf(condition->command, sizeof(condition->command), "%s", command != NULL ? command : "");
    snprintf(says, sizeof(says), "says: %s.", code);
    condition_says(condition, &one, says);
    return true;
}

/* Whether the walk has found writes that it had under way; of many leases only some are known. */
static bool has_open(const struct walk_found *found, struct bytes gateway)
{
    unsigned looks = found->looks[LOOK_IN_DOUBT], i = 0;

    while (i < looks && !bytes_are(gateway, found->look[LOOK_IN_DOUBT][i].code))
        i++;
    return i < looks || found->count[WALK_IN_DOUBT] > LOOK_KEPT;
}

/* The member that is in, and has been silent for longest; false: none is. */
static bool member_is_silent(const struct store_reply *reply, const struct walk_found *found,
                             struct condition *condition)
{
    struct seen one, worst = {.heard_ms = SILENT_MS};

    for (size_t i = 0; seen_take(reply, i, &one); i++)
        if (one.is_in && one.heard_ms > worst.heard_ms)
            worst = one;
    if (!worst.is_in)
        return false;
    bool is_gateway = bytes_are(worst.kind, "gateway"), is_open = is_gateway && has_open(found, worst.id);
    bool is_registrar = !is_gateway && bytes_are(worst.counts, "registrar");
    condition->code = "member-silent";
    condition->for_ms = worst.heard_ms;
    condition->remedy = is_open
                            ? "Start it again. If it is gone for good, say that it is dead, and then let the "
                              "store forget it."
                        : is_registrar
                            ? "All else goes on. Start it again. If it is gone for good, let another lease "
                              "service take its place."
                            : NULL;
    snprintf(condition->command, sizeof(condition->command),
             is_open        ? "pawl resolve --gateway %.*s --dead"
             : is_registrar ? "pawl store registrar replace %.*s OTHER"
                            : "pawl store forget %.*s",
             (int)(worst.id.len < 24 ? worst.id.len : 24), worst.id.at);
    condition_says(
        condition, &worst,
        is_open ? "has not been heard. It had writes under way: nobody knows how they ended, and newer "
                  "holders wait behind them."
        : is_gateway || !bytes_are(worst.counts, "all")
            ? "has not been heard. Nothing is lost by that; but if Redis restarts without it, all holds end."
            : "has not been heard. Nothing is lost by that; but if Redis restarts without it, the "
              "store may not be admitted.");
    return true;
}

/* Those that the viewer may know of: all, or those among what is worth a look. */
static bool writes_are_in_doubt(const struct viewer *viewer, const struct walk_found *found,
                                struct condition *condition)
{
    const struct access *access = viewer->worker->access;
    const struct walk_look *looks = found->look[LOOK_IN_DOUBT];
    unsigned i = 0, count = found->looks[LOOK_IN_DOUBT];

    while (i < count && access != NULL &&
           !access_allows(access, viewer->identity, ACCESS_LOOK, bytes_of(looks[i].lease)))
        i++;
    if (i == count)
        return false;
    condition->for_ms = looks[i].ms + (int64_t)(loop_now_ms() - found->at_ms);
    snprintf(
        condition->detail, sizeof(condition->detail),
        "Nobody knows how a forwarded write under %s has ended; newer holders of that lease wait for it.",
        looks[i].lease);
    return true;
}

static bool condition_find(const struct viewer *viewer, const struct store_reply *reply,
                           const struct walk_found *found, struct condition *condition)
{
    condition->code = service_condition(viewer->worker, condition->detail);
    if (condition->code != NULL) {
        condition->for_ms = condition_for_ms(overview_of(viewer->worker), condition->code);
    } else if (member_is_unwell(reply, condition) || member_is_silent(reply, found, condition)) {
        return true;
    } else if (reply != NULL && store_reply_integer(reply, REPLY_DOUBTS) > 0) {
        condition->code = "in-doubt";
        condition->for_ms = -1;
        snprintf(
            condition->detail, sizeof(condition->detail),
            "The store has lost data, and a gateway has yet to say what it had sent on; pawl store status "
            "says which.");
    } else if (writes_are_in_doubt(viewer, found, condition)) {
        condition->code = "in-doubt";
    }
    return condition->code != NULL;
}

/* The detail, as that of /readyz, is for those who may observe. */
static void condition_write(struct json_out *json, const struct viewer *viewer,
                            const struct store_reply *reply, const struct walk_found *found)
{
    struct condition condition = {0};
    const char *command, *remedy;

    if (!condition_find(viewer, reply, found, &condition)) {
        json_null(json, "condition");
        return;
    }
    remedy = service_condition_remedy(condition.code, &command);
    json_object(json, "condition");
    json_text(json, "code", bytes_of(condition.code));
    json_int_or_null(json, "for_ms", condition.for_ms, -1);
    json_text_or_null(json, "detail", bytes_of(may_observe(viewer) ? condition.detail : NULL));
    json_text_or_null(json, "remedy", bytes_of(condition.remedy != NULL ? condition.remedy : remedy));
    json_text_or_null(
        json, "command",
        bytes_of(condition.command[0] != '\0' && may_know_members(viewer) ? condition.command : command));
    json_object_end(json);
}

/* -- the store and its members. How much others do is not for those who may not look at all. */

static void store_write(struct json_out *json, const struct viewer *viewer, const struct store_reply *reply,
                        const struct walk_found *found)
{
    struct bytes id = reply != NULL ? store_reply_text(reply, REPLY_STORE) : (struct bytes){NULL, 0};
    bool is_whole = !is_filtered(viewer);
    uint64_t used, allowed;

    (void)bytes_cut(&id, ':'); /* the schema */
    if (id.len == 0) {
        json_null(json, "store");
        return;
    }
    epoch_memory(member_line_of_worker(viewer->worker)->store_epoch, &used, &allowed);
    json_object(json, "store");
    json_text(json, "id", id);
    json_int(json, "epoch", store_reply_integer(reply, REPLY_EPOCH));
    json_int_or_null(json, "ceiling", is_whole ? store_reply_integer(reply, REPLY_CEILING) : -1, -1);
    json_int_or_null(json, "top_token", is_counted_for(viewer, found) ? found->top_token : -1, -1);
    json_int_or_null(json, "used_bytes", is_whole ? (int64_t)used : -1, -1);
    json_int_or_null(json, "max_bytes", (int64_t)allowed, 0);
    json_object_end(json);
}

/* "pawl-lease pid 12 on host3", as daemon.c has it: the host. */
static struct bytes host_of(struct bytes who)
{
    const char *on = who.len > 0 ? memmem(who.at, who.len, " on ", 4) : NULL;

    return on != NULL ? (struct bytes){on + 4, who.len - (size_t)(on + 4 - who.at)} : who;
}

/* --ui-peer says where the pages of the other kind of daemon are. */
static const char *pages_of(const struct service *service, struct bytes kind)
{
    const struct member_plan *plan = service->plan->own;

    return bytes_are(kind, plan->role == MEMBER_LEASE ? "gateway" : "lease") ? service->settings.ui_peer
                                                                             : NULL;
}

/* To others a member has its place in the list for an id. */
static void members_write(struct json_out *json, const struct viewer *viewer, const struct store_reply *reply)
{
    const struct service *service = viewer->worker->service;
    bool is_known = may_know_members(viewer);
    char place[BYTES_NUMBER_SIZE];
    struct seen one;

    json_list(json, "members");
    for (size_t i = 0; seen_take(reply, i, &one); i++) {
        json_object(json, NULL);
        json_text(json, "kind", one.kind);
        json_text(json, "id", is_known ? one.id : bytes_of_number(place, (int64_t)i + 1));
        json_text_or_null(json, "name", is_known ? host_of(one.who) : bytes_of(NULL));
        json_text_or_null(json, "version", is_known ? one.version : bytes_of(NULL));
        json_int(json, "heard_ms", one.heard_ms);
        json_int(json, "up_ms", one.up_ms);
        json_text(json, "state", one.state);
        json_text_or_null(json, "condition", one.code);
        json_text_or_null(json, "ui", bytes_of(pages_of(service, one.kind)));
        json_object_end(json);
    }
    json_list_end(json);
}

/* How many of each kind are in and heard: without a gateway nobody writes. */
static void services_write(struct json_out *json, const struct store_reply *reply)
{
    static const char *const kinds[] = {"lease", "gateway"};
    struct seen one;

    json_object(json, "services");
    for (unsigned kind = 0; kind < 2; kind++) {
        int64_t count = reply != NULL ? 0 : -1;

        for (size_t i = 0; seen_take(reply, i, &one); i++)
            count += is_heard(&one) && bytes_are(one.kind, kinds[kind]);
        json_int_or_null(json, kinds[kind], count, -1);
    }
    json_object_end(json);
}

/* The version is everybody's (/version). */
static void self_write(struct json_out *json, const struct viewer *viewer)
{
    const struct member_plan *plan = viewer->worker->service->plan->own;
    struct member_self self = member_self(viewer->worker->service);
    bool is_known = may_know_members(viewer);

    json_object(json, "service");
    json_text(json, "kind", plan->role == MEMBER_LEASE ? BYTES("lease") : BYTES("gateway"));
    json_text_or_null(json, "id", bytes_of(is_known ? self.id : NULL));
    json_text_or_null(json, "name", is_known ? host_of(bytes_of(self.who)) : bytes_of(NULL));
    json_text(json, "version", BYTES(PAWL_VERSION));
    json_object_end(json);
}

/* -- the bars: {bar, grants, refused, waiting, ...}, in any order */

static void bars_take(const struct store_reply *list, int64_t last, int64_t bars[BAR_KINDS][BARS])
{
    for (size_t at = 0; at + BAR_KINDS < count_of(list); at += BAR_KINDS + 1) {
        int64_t number = store_reply_integer(list, at);

        for (size_t kind = 0; number <= last && number > last - BARS && kind < BAR_KINDS; kind++)
            bars[kind][BARS - 1 - (last - number)] = store_reply_integer(list, at + 1 + kind);
    }
}

static void bars_write(struct json_out *json, const struct viewer *viewer, const struct store_reply *reply)
{
    static const char *const kinds[BAR_KINDS] = {"grants", "refused", "waiting"};
    int64_t bars[BAR_KINDS][BARS] = {0}, last;

    if (reply == NULL || is_filtered(viewer)) {
        json_null(json, "bars");
        return;
    }
    last = store_reply_integer(reply, REPLY_NOW) / MEMBER_BAR_MS;
    bars_take(store_reply_list(reply, REPLY_BARS), last, bars);
    json_object(json, "bars");
    json_int(json, "step_ms", MEMBER_BAR_MS);
    json_int(json, "end_ms", (last + 1) * MEMBER_BAR_MS);
    for (unsigned kind = 0; kind < BAR_KINDS; kind++) {
        json_list(json, kinds[kind]);
        for (unsigned i = 0; i < BARS; i++)
            json_int(json, NULL, bars[kind][i]);
        json_list_end(json);
    }
    json_object_end(json);
}

/* -- what a walk has counted, and what of it is worth a look */

enum { LOOKS_SHOWN = 10 };

static void counts_write(struct json_out *json, const struct viewer *viewer, const struct walk_found *found)
{
    static const char *const names[WALK_COUNTS] = {"held", "waiting", "delayed", "sessions", "in_doubt"};
    bool is_known = is_counted_for(viewer, found);

    json_object(json, "counts");
    for (unsigned i = 0; i < WALK_COUNTS; i++)
        json_int_or_null(json, names[i], is_known ? found->count[i] : -1, -1);
    json_object_end(json);
    json_int_or_null(json, "counted_ms_ago", found->at_ms > 0 ? (int64_t)(loop_now_ms() - found->at_ms) : -1,
                     -1);
}

/* The first of each kind, then the second of each. */
static void looks_write(struct json_out *json, const struct viewer *viewer, const struct walk_found *found)
{
    const struct access *access = viewer->worker->access;
    unsigned shown = 0;

    json_list(json, "look");
    for (unsigned i = 0; i < LOOK_KEPT; i++) {
        for (enum walk_kind kind = 0; kind < LOOK_KINDS && shown < LOOKS_SHOWN; kind++) {
            const struct walk_look *one = &found->look[kind][i];

            if (i >= found->looks[kind] ||
                (access != NULL &&
                 !access_allows(access, viewer->identity, ACCESS_LOOK, bytes_of(one->lease))))
                continue;
            json_object(json, NULL);
            json_text(json, "kind", bytes_of(walk_kind_name(kind)));
            json_text(json, "lease", bytes_of(one->lease));
            json_text_or_null(json, "holder", bytes_of(one->holder));
            json_int(json, "for_ms", one->ms);
            if (kind == LOOK_REFUSED)
                json_text(json, "code", bytes_of(one->code));
            json_object_end(json);
            shown++;
        }
    }
    json_list_end(json);
}

/* -- all of it; reply NULL: the store has not answered */

static void overview_write(struct json_out *json, const struct viewer *viewer,
                           const struct store_reply *reply)
{
    struct walk_found found;

    overview_walk_look(daemon_of(viewer->worker)->overview_walk, &found);
    json_int_or_null(json, "now_ms", reply != NULL ? store_reply_integer(reply, REPLY_NOW) : 0, 0);
    self_write(json, viewer);
    condition_write(json, viewer, reply, &found);
    store_write(json, viewer, reply, &found);
    services_write(json, reply);
    members_write(json, viewer, reply);
    counts_write(json, viewer, &found);
    bars_write(json, viewer, reply);
    looks_write(json, viewer, &found);
    json_bool(json, "filtered", is_filtered(viewer));
}

static const struct store_reply *reply_of(enum store_outcome outcome, const struct store_reply *reply)
{
    return outcome == STORE_DONE && store_reply_is(reply, "overview") ? reply : NULL;
}

static void overview_ask(struct worker *worker, struct store_call *call, struct bytes argv[1],
                         store_done_fn *done)
{
    argv[0] = BYTES("pawl:{store}");
    call->done = done;
    store_run(worker->store, call, &script_overview, 1, 1, argv);
}

/* -- streams */

static void stream_end(struct overview_stream *stream)
{
    LIST_REMOVE(stream, entry);
    service_quota_give(stream->viewer.identity, ACCESS_STREAMS);
    http_response_writer_end(&stream->writer, HTTP_RESPONSE_WRITER_WHOLE);
    free(stream);
}

static void stream_gone(struct http_response_writer *writer)
{
    stream_end(container_of(writer, struct overview_stream, writer));
}

/* A client that is too slow for one a second is to come again. */
static void stream_write(struct overview_stream *stream, const struct store_reply *reply)
{
    bool is_sse = stream->form == FORM_SSE, taken;
    struct json_out text;

    json_out_init(&text);
    json_out_append(&text, is_sse ? BYTES("event: overview\ndata: ") : BYTES(""));
    json_object(&text, NULL);
    overview_write(&text, &stream->viewer, reply);
    json_object_end(&text);
    json_out_append(&text, is_sse ? BYTES("\n\n") : BYTES("\n"));
    taken = http_stream_write(&stream->writer, json_out_bytes(&text));
    json_out_done(&text);
    if (!taken)
        stream_end(stream);
}

static enum step streams_answered(struct store_call *call, enum store_outcome outcome,
                                  const struct store_reply *reply)
{
    struct overview *own = container_of(call, struct overview, call);
    struct overview_stream *one = LIST_FIRST(&own->open), *next;

    own->in_flight = false;
    for (; one != NULL; one = next) {
        next = LIST_NEXT(one, entry);
        stream_write(one, reply_of(outcome, reply));
    }
    return ANSWERED;
}

/* All when the service is to end, and those that may not look any more. */
static void streams_judge(struct worker *worker, struct overview *own)
{
    bool is_end = atomic_load(&worker->service->draining);
    struct overview_stream *one = LIST_FIRST(&own->open), *next;

    for (; one != NULL; one = next) {
        bool may = worker->access == NULL ||
                   (access_allows_some(worker->access, one->viewer.identity, ACCESS_LOOK) &&
                    http_response_writer_stands(&one->writer));

        next = LIST_NEXT(one, entry);
        if (!may)
            http_stream_write(&one->writer,
                              one->form == FORM_SSE
                                  ? BYTES("event: forbidden\ndata: {\"code\":\"forbidden\"}\n\n")
                                  : BYTES("{\"code\":\"forbidden\"}\n"));
        if (!may || is_end)
            stream_end(one);
    }
    own->judged_by = worker->judged_by;
}

static enum step stream_begin(struct http_request *req, enum form form, const struct store_reply *reply)
{
    struct worker *worker = worker_of(req);
    struct overview *own = overview_of(worker);
    const char *identity = http_identity(req);
    struct overview_stream *stream;

    if (!service_quota_take(worker, identity, ACCESS_STREAMS))
        return service_quota_refuse(req, ACCESS_STREAMS);
    stream = must_have(calloc(1, sizeof(*stream)));
    *stream = (struct overview_stream){
        .writer.gone = stream_gone, .viewer = {worker, identity}, .form = form};
    http_stream_begin(req, &stream->writer, form == FORM_SSE ? "text/event-stream" : "application/x-ndjson");
    if (LIST_EMPTY(&own->open))
        own->due_ms = loop_now_ms() + EACH_MS;
    LIST_INSERT_HEAD(&own->open, stream, entry);
    stream_write(stream, reply);
    return ANSWERED;
}

void overview_tick(struct worker *worker)
{
    struct overview *own = overview_of(worker);
    char detail[READY_DETAIL_SIZE];
    const char *code;

    code = service_condition(worker, detail);
    code = code != NULL ? code : "";
    if (strcmp(own->code, code) != 0) {
        snprintf(own->code, sizeof(own->code), "%s", code);
        own->since_ms = loop_now_ms();
    }
    if (LIST_EMPTY(&own->open))
        return;
    if (own->judged_by != worker->judged_by || atomic_load(&worker->service->draining))
        streams_judge(worker, own);
    if (own->in_flight || loop_now_ms() < own->due_ms || LIST_EMPTY(&own->open))
        return;
    own->in_flight = true;
    own->due_ms = loop_now_ms() + EACH_MS;
    overview_ask(worker, &own->call, own->argv, streams_answered);
}

/* -- the request */

struct overview_call {
    struct store_call call;
    struct http_request *req;
    enum form form;
    struct bytes argv[1];
};

static enum step overview_answered(struct store_call *call, enum store_outcome outcome,
                                   const struct store_reply *reply)
{
    const struct overview_call *own = container_of(call, struct overview_call, call);
    struct http_request *req = own->req;
    const struct viewer viewer = {worker_of(req), http_identity(req)};

    if (!http_stands(req) || !service_allows_some(req, ACCESS_LOOK))
        return service_forbid(req, ACCESS_LOOK, (struct bytes){NULL, 0});
    if (own->form != FORM_JSON)
        return stream_begin(req, own->form, reply_of(outcome, reply));
    overview_write(http_json_begin(req), &viewer, reply_of(outcome, reply));
    return http_json_end(req, 200);
}

enum step overview_start(struct http_request *req)
{
    struct overview_call *call = HTTP_SCRATCH(req, struct overview_call);

    call->req = req;
    call->form = http_accepts(req, "text/event-stream")      ? FORM_SSE
                 : http_accepts(req, "application/x-ndjson") ? FORM_NDJSON
                                                             : FORM_JSON;
    overview_ask(worker_of(req), &call->call, call->argv, overview_answered);
    return SUSPENDED;
}
