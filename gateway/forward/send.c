/* send.c - the exchange with the upstream: sent once, never again, and told as what it was.
 *
 *   forward_send    the request goes out                          suspended
 *   send_head       the head of the answer: is it the origin's?
 *   send_piece      the body, kept until it is whole when it is short, else passed on as it comes
 *   send_ended      the end is known, or is not                   the upstream's answer | 412 | 502 | 504
 *   forward_late    too late for the client; the exchange goes on 504
 *
 * The intent is closed by what is known of the write, whatever the client is told. An answer that comes too
 * late for its client is waited for as long again: it would close the intent. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/forward/forward_internal.h"

static void send_head(struct upstream_call *call, const struct upstream_head *head);
static void send_ended(struct upstream_call *call, enum upstream_end end, const char *why);

static void send_room(struct upstream_call *call)
{
    struct forward *f = container_of(call, struct forward, call);

    if (f->body_fd >= 0) {
        forward_put(f);
    } else if (f->takes_body) {
        http_body_reader_more(&f->body_reader);
    }
}

/* -- the request goes out */

static struct upstream_pool *pool_of(const struct forward *f)
{
    return f->use->pools[f->route->upstream->index];
}

static enum step send_too_long(struct forward *f)
{
    forward_intent_end(f, INTENT_CLOSE);
    return forward_over(f, http_refuse_detail(f->fenced.req, PROBLEM_HEADER_TOO_LARGE,
                                              "With what a gateway adds the headers are too long to be "
                                              "forwarded. Send fewer or shorter ones."));
}

static size_t send_piece(struct upstream_call *call, struct bytes piece)
{
    struct forward *f = container_of(call, struct forward, call);

    if (f->state != FORWARD_TELLING || f->looks_again || f->is_unsure) {
        return piece.len;
    }
    forward_alarm(f, f->route->timeout_ms);
    if (f->is_streamed) {
        return http_response_writer_write(&f->response_writer, piece);
    }
    json_out_append(http_json(f->fenced.req), piece);
    return piece.len;
}

enum step forward_send(struct forward *f)
{
    struct http_request *req = f->fenced.req;
    bool is_whole = f->body_fd < 0 && http_body_is_whole(req);
    char fields[FORWARD_HEAD_MAX], target[FORWARD_HEAD_MAX];
    struct upstream_request request = {
        .method = forward_method(f),
        .fields = {fields, 0},
        .target = {target, 0},
        .body = http_body(req),
        .body_length = forward_body_length(f),
        .body_is_whole = is_whole,
        .is_write = f->is_write,
    };

    if (!forward_head_make(f, fields, &request.fields.len, target, &request.target.len)) {
        return send_too_long(f);
    }
    if (http_body_is_broken(req)) { /* the client has left while it waited */
        forward_intent_end(f, INTENT_CLOSE);
        return forward_over(f, http_refuse(req, PROBLEM_REQUEST_TIMEOUT));
    }
    worker_count(f->own->worker, f->is_write ? COUNT_FORWARDED : COUNT_FORWARDED_READ);
    forward_enter(f, FORWARD_SENDING);
    f->sent_ms = loop_now_ms();
    f->file_at = 0;
    f->why = NULL;
    f->call = (struct upstream_call){
        .head = send_head, .piece = send_piece, .room = send_room, .ended = send_ended};
    upstream_begin(pool_of(f), &f->call, &request);
    forward_alarm(f, f->route->timeout_ms);
    if (f->body_fd >= 0) {
        forward_put(f);
    } else if (!is_whole) {
        forward_stream(f);
    }
    return SUSPENDED;
}

/* -- the answer */

static void response_writer_room(struct http_response_writer *response_writer)
{
    upstream_more(&container_of(response_writer, struct forward, response_writer)->call);
}

/* The client has gone; the end of the write is still to be learned. */
static void response_writer_gone(struct http_response_writer *response_writer)
{
    struct forward *f = container_of(response_writer, struct forward, response_writer);

    http_response_writer_end(response_writer, HTTP_RESPONSE_WRITER_CUT);
    f->is_streamed = false;
    forward_enter(f, FORWARD_LATE);
    forward_alarm(f, f->route->timeout_ms);
    if (f->is_write) {
        upstream_more(&f->call);
    } else {
        upstream_abort(&f->call);
    }
}

/* Of a conditional write: the version was another one when it came, so it was not applied. If the client has
 * said which version it means, that is its answer. */
static bool is_overtaken(const struct forward *f, unsigned status)
{
    unsigned own = 0;

    http_header(f->fenced.req, "If-Match", &own);
    return f->is_write && f->route->aid == ROUTE_AID_IF_MATCH && status == 412 && own == 0 &&
           !f->was_streamed && f->looks < LOOKS_MAX;
}

static void answer_stream(struct forward *f, const struct upstream_head *head)
{
    f->response_writer = (struct http_response_writer){.room = response_writer_room,
                                                       .gone = response_writer_gone};
    f->is_streamed = true;
    http_response_writer_begin(f->fenced.req, &f->response_writer, head->status, head->length);
    f->fenced.req = NULL;
    f->takes_body = false; /* what has not come of the request's body by now never goes on */
}

static void send_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct forward *f = container_of(call, struct forward, call);
    bool has_body = !f->is_head && head->status != 204 && head->status != 304;

    f->status = head->status;
    if (f->state == FORWARD_LATE) {
        return;
    }
    forward_enter(f, FORWARD_TELLING);
    forward_alarm(f, f->route->timeout_ms);
    f->looks_again = is_overtaken(f, head->status);
    /* 202 is the origin's own word, and passed on; its intent stays open all the same. */
    f->is_unsure = f->is_write && !route_is_final(f->route, head->status) && head->status != 202;
    if (f->looks_again || f->is_unsure) {
        snprintf(f->status_text, sizeof(f->status_text), "its status %u is not final", head->status);
        f->why = f->status_text;
        return;
    }
    if (f->is_fenced) {
        fenced_accept(&f->fenced, f->mark, forward_guarantee(f));
    }
    if (!forward_head_tell(f, head)) {
        f->is_unsure = true; /* it ended, but how cannot be passed on */
        f->why = "the head of its answer is too long to be passed on";
    } else if (has_body ? head->length < 0 || head->length > FORWARD_HELD_MAX : f->is_head) {
        answer_stream(f, head); /* of HEAD the length is told, if there is one, and nothing follows */
    }
}

/* -- the end */

static enum intent_word word_of_end(const struct forward *f, enum upstream_end end)
{
    bool is_final = end == UPSTREAM_WHOLE && route_is_final(f->route, f->status);

    if (end == UPSTREAM_NOT_SENT || forward_never_applied(f)) {
        return INTENT_CLOSE;
    }
    if (is_final && f->route->aid == ROUTE_AID_IF_MATCH && f->status < 300) {
        return INTENT_SETTLE;
    }
    /* Where the upstream compares tokens, or nothing is promised, nobody waits for the end of a write. */
    if (is_final || f->route->aid == ROUTE_AID_CHECKS || f->route->guarantee == ROUTE_ADMITTED) {
        return INTENT_CLOSE;
    }
    return INTENT_UNKNOWN;
}

enum { DETAIL_SIZE = 512 };

static const char *why_of(const struct forward *f)
{
    return f->why != NULL ? f->why : "it broke off";
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
    enum problem problem = f->cut != PROBLEM_NONE ? f->cut : PROBLEM_UPSTREAM_UNAVAILABLE;
    char detail[DETAIL_SIZE];

    snprintf(detail, sizeof(detail), "%s (%s)", problem_info(problem)->detail, why_of(f));
    http_note_why(f->fenced.req, why_of(f));
    if (forward_never_applied(f)) {
        f->fenced.assumes = forward_guarantee(f);
    }
    return fenced_fail_detail(&f->fenced, problem, detail);
}

static enum step answer_failed(struct forward *f, enum upstream_end end)
{
    bool is_nothing = end == UPSTREAM_NOT_SENT || !f->is_write || forward_never_applied(f);

    if (f->state == FORWARD_TELLING) {
        http_reply_forget(f->fenced.req);
    }
    return forward_over(f, is_nothing ? tell_nothing(f) : tell_unknown(f));
}

static enum step answer_whole(struct forward *f)
{
    struct http_request *req = f->fenced.req;

    if (f->is_unsure) {
        return answer_failed(f, UPSTREAM_UNKNOWN);
    }
    http_reply_body(req, NULL, json_out_bytes(http_json(req)));
    return forward_over(f, http_answer(req, f->status));
}

static void stream_end(struct forward *f, enum upstream_end end)
{
    http_response_writer_end(&f->response_writer,
                             end == UPSTREAM_WHOLE ? HTTP_RESPONSE_WRITER_WHOLE : HTTP_RESPONSE_WRITER_CUT);
    f->is_streamed = false;
    forward_over(f, ANSWERED);
}

static void send_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct forward *f = container_of(call, struct forward, call);

    f->why = f->why != NULL ? f->why : why;
    forward_intent_end(f, word_of_end(f, end));
    if (f->state == FORWARD_LATE) {
        forward_over(f, ANSWERED);
    } else if (f->is_streamed) {
        stream_end(f, end);
    } else if (end != UPSTREAM_WHOLE) {
        answer_failed(f, end);
    } else if (f->looks_again) {
        forward_look(f);
    } else {
        answer_whole(f);
    }
}

/* -- too late */

void forward_late(struct forward *f)
{
    f->why = f->state == FORWARD_TELLING ? "the answer stood still for the route's timeout_ms"
                                         : "no answer began within the route's timeout_ms";
    if (f->state == FORWARD_LATE || f->takes_body || !f->is_write) {
        upstream_abort(
            &f->call); /* a body that stops half-way will not end by itself; a read changes nothing */
        return;
    }
    if (f->is_streamed) {
        http_response_writer_end(&f->response_writer, HTTP_RESPONSE_WRITER_CUT);
        f->is_streamed = false;
    } else {
        if (f->state == FORWARD_TELLING) {
            http_reply_forget(f->fenced.req);
        }
        tell_unknown(f);
        f->why = NULL;
        f->fenced.req = NULL;
    }
    forward_enter(f, FORWARD_LATE);
    forward_alarm(f, f->route->timeout_ms);
    upstream_more(&f->call);
}
