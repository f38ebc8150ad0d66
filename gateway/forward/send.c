/* send.c - the exchange with the upstream: sent once, never again, and reported as what it was.
 *
 *   forward_send    the request goes out                          suspended
 *   send_head       the head of the answer: is it the origin's?
 *   send_piece      the body, kept until it is whole when it is short, else passed on as it comes
 *   send_ended      the end is known, or is not                   the upstream's answer | 412 | 502 | 504
 *   forward_late    too late for the client; the exchange goes on 504
 *   given_up_tick   an operator gives up what is being sent: its connection is closed
 *
 * The intent is closed by what is known of the write, whatever the client gets. An answer that comes too
 * late for its client is waited for as long again: it would close the intent.
 *
 * What was checked is what is done: gateway/fields.def has the names of headers that do not pass, and a URI
 * in a header must be of the route and the lease that were checked, and goes on as the upstream has it:
 *
 *   Destination: /orders/41/%78              /api/orders/41/x            the upstream has the prefix /api
 *   Destination: http://HOST/orders/41/x     http://UPSTREAM/api/orders/41/x      where HOST is that of Host
 *   If: </orders/41/x> (<urn:a> ["b"])       </api/orders/41/x> (<urn:a> ["b"])
 *   Lock-Token: </orders/41/x>               </api/orders/41/x>          what is no such URI: 400 */
#include "gateway/forward/forward_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "scripts.h"

/* == heads: of the request as it goes to the upstream, of the answer as it comes back */

static void put_field(struct bytes_out *text, struct bytes name, struct bytes value)
{
    bytes_put(text, name);
    bytes_put(text, BYTES(": "));
    bytes_put(text, value);
    bytes_put(text, BYTES("\r\n"));
}

/* -- the request */

static bool connection_names(const struct http_request *req, struct bytes name)
{
    struct bytes field, value;

    for (unsigned i = 0; i < http_field_count(req); i++) {
        http_field_at(req, i, &field, &value);
        if (bytes_equal_nocase(field, BYTES("Connection")) && bytes_list_has(value, name))
            return true;
    }
    return false;
}

static bool request_field_passes(const struct forward *f, struct bytes name, unsigned kinds)
{
    if (!field_is_plain(name) || (kinds & (FIELD_HOP | FIELD_OWN)) != 0)
        return false;
    if (f->is_write && f->route->aid == ROUTE_AID_IF_MATCH &&
        (bytes_equal_nocase(name, BYTES("If-Match")) || bytes_equal_nocase(name, BYTES("If-None-Match"))))
        return false; /* added anew: which version was there (look.c) */
    if (f->state == FORWARD_LOOKING && (kinds & (FIELD_VERSION | FIELD_TARGET)) != 0)
        return false;
    return route_passes_request(f->route, name) && !connection_names(f->fenced.req, name);
}

static bool text_skip(struct bytes *text, struct bytes begin)
{
    if (begin.len == 0 || text->len < begin.len || strncasecmp(text->at, begin.at, begin.len) != 0)
        return false;
    *text = (struct bytes){text->at + begin.len, text->len - begin.len};
    return true;
}

/* false: it is not of this route and lease, and nothing was put. */
static bool put_uri(const struct forward *f, struct bytes_out *text, struct bytes uri)
{
    const struct route_upstream *upstream = f->route->upstream;
    bool is_absolute = text_skip(&uri, BYTES("http://")) || text_skip(&uri, BYTES("https://"));
    struct route_match match;
    const char *why;

    if (is_absolute && !text_skip(&uri, http_header(f->fenced.req, "Host", NULL)))
        return false;
    if (route_find(f->use->table, uri, &match, &why) != ROUTE_FOUND || match.route != f->route ||
        !bytes_equal((struct bytes){match.lease, match.lease_len}, f->fenced.lease))
        return false;
    if (is_absolute) {
        bytes_put(text, upstream->scheme == ROUTE_HTTPS ? BYTES("https://") : BYTES("http://"));
        bytes_put(text, bytes_of(upstream->authority));
    }
    bytes_put(text, bytes_of(upstream->prefix));
    bytes_put(text, (struct bytes){match.path, match.path_len});
    return true;
}

/* RFC 4918, 10.4: lists in "()", each perhaps behind the "<URI>" of what it is about; the URIs in a list are
 * names of locks. Some servers know quotes in it and some do not: only what both read alike is taken. */
static bool put_tagged(const struct forward *f, struct bytes_out *text, struct bytes value)
{
    bool in_list = false;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        size_t len = 1;

        if (c == '<') {
            while (i + len < value.len && strchr("<>()\"", value.at[i + len]) == NULL)
                len++;
            if (i + len == value.len || value.at[i + len] != '>')
                return false;
            len++;
        } else if (c == '(' || c == ')' ? in_list == (c == '(') : !in_list && c != ' ' && c != '\t') {
            return false;
        }
        in_list = c == '(' || (in_list && c != ')');
        if (c != '<' || in_list) {
            bytes_put(text, (struct bytes){value.at + i, len});
        } else {
            bytes_put(text, BYTES("<"));
            if (!put_uri(f, text, (struct bytes){value.at + i + 1, len - 2}))
                return false;
            bytes_put(text, BYTES(">"));
        }
        i += len - 1;
    }
    return !in_list;
}

/* The value of a header that has a URI, as the upstream has it; false: it leads elsewhere. */
static bool put_target(const struct forward *f, struct bytes_out *text, struct bytes name, struct bytes value)
{
    if (bytes_equal_nocase(name, BYTES("Destination")))
        return put_uri(f, text, value);
    return put_tagged(f, text, value) && (bytes_equal_nocase(name, BYTES("If")) || value.len > 0);
}

bool forward_head_leads_elsewhere(const struct forward *f)
{
    struct bytes name, value;

    for (unsigned i = 0; i < http_field_count(f->fenced.req); i++) {
        char space[FORWARD_HEAD_MAX];
        struct bytes_out text = {space, 0, sizeof(space), false};

        http_field_at(f->fenced.req, i, &name, &value);
        if ((bytes_equal_nocase(name, BYTES("Destination")) || bytes_equal_nocase(name, BYTES("If")) ||
             bytes_equal_nocase(name, BYTES("Lock-Token"))) &&
            !put_target(f, &text, name, value))
            return true;
    }
    return false;
}

/* These may prove who asks for all that comes on the connection (RFC 4559, 6): it is for nobody else then. */
static bool proves_connection(struct bytes name, struct bytes value)
{
    return bytes_equal_nocase(name, BYTES("Authorization")) &&
           (text_skip(&value, BYTES("NTLM")) || text_skip(&value, BYTES("Negotiate")));
}

static void put_passed(struct forward *f, struct bytes_out *text)
{
    bool hides_authorization = f->route->authorization != NULL ||
                               (service_judges(f->fenced.req) &&
                                f->route->credential == ROUTE_CREDENTIAL_OWN);
    struct bytes name, value;

    for (unsigned i = 0; i < http_field_count(f->fenced.req); i++) {
        unsigned kinds;

        http_field_at(f->fenced.req, i, &name, &value);
        kinds = field_kinds(name);
        if (!request_field_passes(f, name, kinds) ||
            (hides_authorization && bytes_equal_nocase(name, BYTES("Authorization"))))
            continue;
        f->up.is_last |= proves_connection(name, value);
        if ((kinds & FIELD_TARGET) == 0) {
            put_field(text, name, value);
            continue;
        }
        bytes_put(text, name);
        bytes_put(text, BYTES(": "));
        text->is_full |= !put_target(f, text, name, value);
        bytes_put(text, BYTES("\r\n"));
    }
}

/* RFC 7239: an address of IPv6 stands in brackets and quotes; a host is quoted always. */
static void put_forwarded(struct forward *f, struct bytes_out *text)
{
    char address[HTTP_ADDRESS_SIZE];
    const char *client = http_client_address(f->fenced.req, address);
    struct bytes host = http_header(f->fenced.req, "Host", NULL);
    bool is_v6 = strchr(client, ':') != NULL;
    struct bytes scheme = http_is_over_tls(f->fenced.req) ? BYTES("https") : BYTES("http");

    if (client[0] == '\0')
        client = "unknown";
    bytes_put(text, is_v6 ? BYTES("Forwarded: for=\"[") : BYTES("Forwarded: for="));
    bytes_put(text, bytes_of(client));
    bytes_put(text, is_v6 ? BYTES("]\";host=\"") : BYTES(";host=\""));
    bytes_put(text, (struct bytes){host.at, host.len < 256 ? host.len : 0});
    bytes_put(text, BYTES("\";proto="));
    bytes_put(text, scheme);
    bytes_put(text, BYTES("\r\n"));
    put_field(text, BYTES("X-Forwarded-For"), bytes_of(client));
    if (host.len > 0)
        put_field(text, BYTES("X-Forwarded-Host"), host);
    put_field(text, BYTES("X-Forwarded-Proto"), scheme);
}

static void put_precondition(struct forward *f, struct bytes_out *text)
{
    if (!f->is_write || f->route->aid != ROUTE_AID_IF_MATCH || f->state == FORWARD_LOOKING)
        return;
    if (f->look.etag_len > 0)
        put_field(text, BYTES("If-Match"), (struct bytes){f->look.etag, f->look.etag_len});
    else
        put_field(text, BYTES("If-None-Match"), BYTES("*"));
}

bool forward_head_make(struct forward *f, char fields[FORWARD_HEAD_MAX], size_t *fields_len,
                       char target[FORWARD_HEAD_MAX], size_t *target_len)
{
    struct bytes_out head = {fields, 0, FORWARD_HEAD_MAX, false};
    struct bytes_out where = {target, 0, FORWARD_HEAD_MAX, false};
    struct bytes query = http_query(f->fenced.req);

    bytes_put(&where, bytes_of(f->route->upstream->prefix));
    bytes_put(&where, (struct bytes){f->match.path, f->match.path_len});
    if (query.at != NULL) {
        bytes_put(&where, BYTES("?"));
        bytes_put(&where, query);
    }
    put_field(&head, BYTES("Host"), bytes_of(f->route->upstream->authority));
    put_passed(f, &head);
    if (f->route->authorization != NULL)
        put_field(&head, BYTES("Authorization"), bytes_of(f->route->authorization));
    put_forwarded(f, &head);
    put_precondition(f, &head);
    if (f->is_fenced && f->state != FORWARD_LOOKING)
        put_field(&head, BYTES("Fencing-Token"), http_header(f->fenced.req, "Fencing-Token", NULL));
    put_field(&head, BYTES("Pawl-Request-Id"), bytes_of(f->by.request_id));
    if (http_identity(f->fenced.req) != NULL)
        put_field(&head, BYTES("Pawl-Identity"), bytes_of(http_identity(f->fenced.req)));
    *fields_len = head.len;
    *target_len = where.len;
    return !head.is_full && !where.is_full;
}

/* -- the answer */

static bool is_fenced_read(const struct forward *f)
{
    return f->is_fenced && !f->is_write;
}

static bool answer_field_passes(const struct forward *f, const struct upstream_head *head, struct bytes name)
{
    static const char *const lifetimes[] = {"Cache-Control", "CDN-Cache-Control", "Surrogate-Control",
                                            "X-Accel-Expires", NULL};

    if ((field_kinds(name) & (FIELD_HOP | FIELD_ANSWER)) != 0 || !route_passes_answer(f->route, name))
        return false;
    if (is_fenced_read(f) && bytes_are_among(name, lifetimes))
        return false; /* made anew */
    for (unsigned i = 0; i < head->field_count; i++)
        if (bytes_equal_nocase(head->fields[i].name, BYTES("Connection")) &&
            bytes_list_has(head->fields[i].value, name))
            return false;
    return true;
}

static bool forward_head_tell(struct forward *f, const struct upstream_head *head)
{
    http_reply_foreign(f->fenced.req); /* how it may be cached is the upstream's to say */
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct answer_field *field = &head->fields[i];

        if (answer_field_passes(f, head, field->name) &&
            !http_reply_field(f->fenced.req, field->name, field->value))
            return false;
    }
    /* But no cache on the way has a fence, or knows by itself that these headers tell readers apart. */
    if (is_fenced_read(f))
        return http_reply_field(f->fenced.req, BYTES("Cache-Control"), BYTES("no-store"));
    return f->is_write ||
           http_reply_field(f->fenced.req, BYTES("Vary"), BYTES("Fencing-Token, Pawl-Authorization"));
}

/* == the exchange */

/* HELD_MAX: an answer of at most so many bytes goes to the client when it is whole. */
enum { HELD_MAX = 16384, DETAIL_SIZE = 512 };

static void send_head(struct upstream_call *call, const struct upstream_head *head);
static void send_ended(struct upstream_call *call, enum upstream_end end, const char *why);

static void send_room(struct upstream_call *call)
{
    struct forward *f = container_of(call, struct forward, up.call);

    if (f->body.fd >= 0)
        forward_put(f);
    else if (f->body.is_being_taken)
        http_body_reader_more(&f->body.reader);
}

/* -- the request goes out */

static size_t send_piece(struct upstream_call *call, struct bytes piece)
{
    struct forward *f = container_of(call, struct forward, up.call);

    if (f->state != FORWARD_TELLING || f->look.is_due || f->up.is_unsure)
        return piece.len;
    forward_alarm(f, f->route->timeout_ms);
    if (f->up.is_streamed)
        return http_response_writer_write(&f->up.writer, piece);
    json_out_append(http_json(f->fenced.req), piece);
    return piece.len;
}

enum step forward_send(struct forward *f)
{
    struct http_request *req = f->fenced.req;
    bool is_whole = f->body.fd < 0 && http_body_is_whole(req);
    char fields[FORWARD_HEAD_MAX], target[FORWARD_HEAD_MAX];
    struct upstream_request request = {
        .method = http_method_text(req),
        .fields = {fields, 0},
        .target = {target, 0},
        .body = http_body(req),
        .body_length = forward_body_length(f),
        .body_is_whole = is_whole,
        .is_write = f->is_write,
    };

    if (!forward_head_make(f, fields, &request.fields.len, target, &request.target.len)) {
        forward_intent_end(f, INTENT_CLOSE);
        return forward_over(f, fenced_fail_detail(&f->fenced, PROBLEM_HEADER_TOO_LARGE,
                                                  "With what a gateway adds the headers are too long to be "
                                                  "forwarded. Send fewer or shorter ones."));
    }
    if (f->is_barred || !forward_is_its_own(f)) {
        forward_intent_end(f, INTENT_CLOSE);
        return forward_forbid(f);
    }
    if (http_body_is_broken(req)) { /* the client has left while it waited */
        forward_intent_end(f, INTENT_CLOSE);
        return forward_over(f, fenced_fail(&f->fenced, PROBLEM_REQUEST_TIMEOUT));
    }
    /* Not every upstream takes a body of these off its connection (RFC 9110, 9.3.1). What is left there it
     * would take for the next request, which nobody has checked; behind "close" it reads none. */
    request.is_last = f->up.is_last ||
                      (request.body_length != 0 && (!f->is_write || bytes_are(request.method, "DELETE")));
    worker_count(f->own->worker, f->is_write ? COUNT_FORWARDED : COUNT_FORWARDED_READ);
    forward_enter(f, FORWARD_SENDING);
    f->up.sent_ms = loop_now_ms();
    f->body.at = 0;
    f->up.why = NULL;
    f->up.call = (struct upstream_call){
        .head = send_head, .piece = send_piece, .room = send_room, .ended = send_ended};
    upstream_begin(f->use->pools[f->route->upstream->index], &f->up.call, &request);
    forward_alarm(f, f->route->timeout_ms);
    if (f->body.fd >= 0)
        forward_put(f);
    else if (!is_whole)
        forward_stream(f);
    return SUSPENDED;
}

/* -- the answer */

static void response_writer_room(struct http_response_writer *response_writer)
{
    upstream_more(&container_of(response_writer, struct forward, up.writer)->up.call);
}

/* The client has gone; the end of the write is still to be learned. */
static void response_writer_gone(struct http_response_writer *response_writer)
{
    struct forward *f = container_of(response_writer, struct forward, up.writer);

    http_response_writer_end(response_writer, HTTP_RESPONSE_WRITER_CUT);
    f->up.is_streamed = false;
    forward_enter(f, FORWARD_LATE);
    forward_alarm(f, f->route->timeout_ms);
    if (f->is_write)
        upstream_more(&f->up.call);
    else
        upstream_abort(&f->up.call);
}

void forward_bar(struct forward *f)
{
    if (f->up.is_streamed) {
        response_writer_gone(&f->up.writer);
    } else if (!f->is_write || f->body.is_being_taken) {
        f->up.why = "its credential, or its rule, was taken out";
        upstream_abort(&f->up.call);
    }
}

/* Of a conditional write: the version was another one when it came, so it was not applied. If the client has
 * said which version it means, that is its answer. */
static bool is_overtaken(const struct forward *f, unsigned status)
{
    unsigned own = 0;

    http_header(f->fenced.req, "If-Match", &own);
    return f->is_write && f->route->aid == ROUTE_AID_IF_MATCH && status == 412 &&
           route_is_final(f->route, status) && own == 0 && !f->body.was_streamed && f->look.count < LOOKS_MAX;
}

static void answer_stream(struct forward *f, const struct upstream_head *head)
{
    f->up.writer = (struct http_response_writer){.room = response_writer_room, .gone = response_writer_gone};
    f->up.is_streamed = true;
    f->up.identity = http_identity(f->fenced.req);
    http_response_writer_begin(f->fenced.req, &f->up.writer, head->status, head->length);
    f->fenced.req = NULL;
    f->body.is_being_taken = false; /* what has not come of the request's body by now never goes on */
    if (f->is_barred)
        response_writer_gone(&f->up.writer); /* how the write ended it may learn, and no more */
}

static void send_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct forward *f = container_of(call, struct forward, up.call);
    bool has_body = !f->up.is_head && head->status != 204 && head->status != 304;

    f->up.status = head->status;
    if (f->state == FORWARD_LATE)
        return;
    forward_enter(f, FORWARD_TELLING);
    forward_alarm(f, f->route->timeout_ms);
    f->look.is_due = is_overtaken(f, head->status);
    /* 202 is the origin's own word, and passed on; its intent stays open all the same. */
    f->up.is_unsure = f->is_write && !route_is_final(f->route, head->status) && head->status != 202;
    if (f->look.is_due || f->up.is_unsure) {
        snprintf(f->up.status_text, sizeof(f->up.status_text), "its status %u is not final", head->status);
        f->up.why = f->up.status_text;
        return;
    }
    if (f->is_fenced)
        fenced_accept(&f->fenced, f->by.mark, forward_guarantee(f));
    if (!forward_head_tell(f, head)) {
        f->up.is_unsure = true; /* it ended, but how cannot be passed on */
        f->up.why = "the head of its answer is too long to be passed on";
    } else if (has_body ? head->length < 0 || head->length > HELD_MAX : f->up.is_head) {
        answer_stream(f, head); /* of HEAD the length is passed on, if there is one, and nothing follows */
    }
}

/* -- the end */

static enum intent_word word_of_end(const struct forward *f, enum upstream_end end)
{
    bool is_final = end == UPSTREAM_WHOLE && route_is_final(f->route, f->up.status);

    if (end == UPSTREAM_NOT_SENT || forward_never_applied(f))
        return INTENT_CLOSE;
    if (is_final && f->route->aid == ROUTE_AID_IF_MATCH && f->up.status < 300)
        return INTENT_SETTLE;
    /* Where the upstream compares tokens, or nothing is promised, no write waits for the end of another. */
    if (is_final || f->route->aid == ROUTE_AID_CHECKS || f->route->guarantee == ROUTE_ADMITTED)
        return INTENT_CLOSE;
    return INTENT_UNKNOWN;
}

static const char *why_of(const struct forward *f)
{
    return f->up.why != NULL ? f->up.why : "it broke off";
}

static enum step tell_unknown(struct forward *f)
{
    char detail[DETAIL_SIZE];

    snprintf(
        detail, sizeof(detail),
        "The server behind the gateway gave no whole answer in time, or one that does not say how the "
        "write ended (%s). It may have been applied, or be applied later. Look at the resource before you "
        "decide; until its end is known, newer holders may have to wait.",
        why_of(f));
    /* No Idempotency-Key is kept of what is forwarded: the same again might be applied twice. */
    http_note_why(f->fenced.req, why_of(f));
    return fenced_fail_final(&f->fenced, PROBLEM_OUTCOME_UNKNOWN, detail);
}

/* Certainly nothing was changed; that may rest on the word of the upstream's owner. */
static enum step tell_nothing(struct forward *f)
{
    enum problem problem = f->body.cut != PROBLEM_NONE ? f->body.cut : PROBLEM_UPSTREAM_UNAVAILABLE;
    char detail[DETAIL_SIZE];

    if (forward_never_applied(f))
        f->fenced.assumes = forward_guarantee(f);
    if (problem == PROBLEM_TOO_LARGE)
        return forward_too_large(f, FORWARD_MAX_BODY, f->route->max_body);
    snprintf(detail, sizeof(detail), "%s (%s)", problem_info(problem)->detail, why_of(f));
    http_note_why(f->fenced.req, why_of(f));
    return fenced_fail_detail(&f->fenced, problem, detail);
}

static enum step answer_failed(struct forward *f, enum upstream_end end)
{
    bool is_nothing = end == UPSTREAM_NOT_SENT || !f->is_write || forward_never_applied(f);

    if (f->state == FORWARD_TELLING)
        http_reply_forget(f->fenced.req);
    if (is_nothing && f->is_barred)
        return forward_forbid(f);
    return forward_over(f, is_nothing ? tell_nothing(f) : tell_unknown(f));
}

static void send_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct forward *f = container_of(call, struct forward, up.call);

    f->up.why = f->up.why != NULL ? f->up.why : why;
    forward_intent_end(f, word_of_end(f, end));
    if (f->state == FORWARD_LATE) {
        forward_over(f, ANSWERED);
    } else if (f->up.is_streamed) {
        http_response_writer_end(&f->up.writer, end == UPSTREAM_WHOLE ? HTTP_RESPONSE_WRITER_WHOLE
                                                                      : HTTP_RESPONSE_WRITER_CUT);
        f->up.is_streamed = false;
        forward_over(f, ANSWERED);
    } else if (end != UPSTREAM_WHOLE) {
        answer_failed(f, end);
    } else if (f->look.is_due) {
        forward_look(f);
    } else if (f->up.is_unsure) {
        answer_failed(f, UPSTREAM_UNKNOWN);
    } else {
        http_reply_body(f->fenced.req, NULL, json_out_bytes(http_json(f->fenced.req)));
        forward_over(f, http_answer(f->fenced.req, f->up.status));
    }
}

/* -- too late */

void forward_late(struct forward *f)
{
    f->up.why = f->state == FORWARD_TELLING ? "the answer stood still for the route's timeout_ms"
                                            : "no answer began within the route's timeout_ms";
    if (f->state == FORWARD_LATE || f->body.is_being_taken || !f->is_write) {
        upstream_abort(
            &f->up.call); /* a body that stops half-way will not end by itself; a read changes nothing */
        return;
    }
    if (f->up.is_streamed) {
        http_response_writer_end(&f->up.writer, HTTP_RESPONSE_WRITER_CUT);
        f->up.is_streamed = false;
    } else {
        if (f->state == FORWARD_TELLING)
            http_reply_forget(f->fenced.req);
        tell_unknown(f);
        f->up.why = NULL;
        f->fenced.req = NULL;
    }
    forward_enter(f, FORWARD_LATE);
    forward_alarm(f, f->route->timeout_ms);
    upstream_more(&f->up.call);
}

/* == writes that are being sent, and that an operator gives up (worker.h) */

static bool is_being_sent(const struct forward *f)
{
    return (f->by.intent != NULL || f->by.sticky != NULL) &&
           (f->state == FORWARD_SENDING || f->state == FORWARD_TELLING || f->state == FORWARD_LATE);
}

static bool has_older(const struct gateway_worker *own, uint64_t now_ms, uint64_t least_ms)
{
    const struct forward *f;

    LIST_FOREACH(f, &own->live, live)
    {
        if (is_being_sent(f) && now_ms - f->up.sent_ms >= least_ms)
            return true;
    }
    return false;
}

static void give_up(struct gateway_worker *own, struct bytes id)
{
    struct forward *f;

    LIST_FOREACH(f, &own->live, live)
    {
        if (is_being_sent(f) &&
            (f->by.sticky != NULL ? sticky_is(f->by.sticky, id) : bytes_are(id, f->by.id))) {
            f->up.why = "an operator gave it up";
            upstream_abort(&f->up.call);
        }
    }
}

/* {"given-up", seq, {ids}} */
static enum step given_up_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct given_up *given_up = container_of(call, struct given_up, call);
    const struct store_reply *ids = bad == PROBLEM_NONE ? store_reply_list(reply, 2) : NULL;

    given_up->in_flight = false;
    for (size_t i = 0; ids != NULL && i < store_reply_count(ids); i++)
        give_up(given_up->own, store_reply_text(ids, i));
    return ANSWERED;
}

void given_up_look(struct worker *first, int64_t number)
{
    atomic_store(&gateway_worker_from(first)->gateway->given_up, number);
}

void given_up_tick(struct gateway_worker *own)
{
    struct given_up *given_up = &own->given_up;
    struct gateway *gateway = own->gateway;
    uint64_t now_ms = loop_now_ms();
    int64_t number = atomic_load(&gateway->given_up);
    bool has_news = number != given_up->asked;

    if (given_up->in_flight || (!has_news && now_ms - given_up->asked_ms < GIVEN_UP_LOOK_MS) ||
        !has_older(own, now_ms, has_news ? 0 : GIVEN_UP_LOOK_MS) ||
        member_line_problem(&own->record.line) != PROBLEM_NONE)
        return;
    given_up->own = own;
    given_up->asked = number;
    given_up->asked_ms = now_ms;
    given_up->call.done = given_up_answer;
    given_up->argv[0] = keys_stripe(given_up->key, own->worker->index % STRIPES);
    given_up->argv[1] = bytes_of(gateway->id);
    given_up->argv[2] = bytes_of(gateway->incarnation);
    given_up->in_flight = member_run(&own->record.line, &given_up->call, own->worker->index % STRIPES,
                                     &script_intent_given_up, 1, GIVEN_UP_ARGS,
                                     given_up->argv) == PROBLEM_NONE;
}
