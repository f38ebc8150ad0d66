/* http_exchange.c - one HTTP request, sent once: connect, send, receive, and which of the three ends it came
 * to. */
#include "api/client/http_client.h"

#include <errno.h>
#include <stdlib.h>

#include "api/client/http_internal.h"
#include "shared/http/answer.h"

enum { BODY_SIZE_FIRST = 4096, RECEIVE_SIZE = 8192, RECEIVES_MAX = 8 };

/* One request under way. */
struct exchange {
    const struct http_client_request *request;
    struct http_client_answer *answer;
    struct http_place place;
    struct http_wire wire;
    struct answer parser;
    char *head;
    size_t head_len, sent; /* of head and body together */
    bool is_dialled;       /* there was a connection */
    bool may_have_left;    /* a byte of it */
    bool takes_no_more;    /* the other side, of the request; it may still say something */
    bool may_be_more;      /* than what was received */
    bool to_sink;
    size_t size; /* of answer->body */
    int64_t until_ms;
    const char *why; /* NULL, when it did not go well: there is no memory */
};

/* What came of it is for the caller as the wire says it, with the wire's reason. */
static enum http_wait wire_said(struct exchange *exchange, enum http_wait went)
{
    exchange->why = exchange->wire.why;
    return went;
}

static enum http_wait failed(struct exchange *exchange, const char *why)
{
    exchange->why = why;
    return HTTP_FAILED;
}

/* -- the request */

static bool all_sent(const struct exchange *exchange)
{
    return exchange->takes_no_more || exchange->sent >= exchange->head_len + exchange->request->body.len;
}

/* What of a piece is left, when so much of the request is sent and the piece begins at begin. */
static struct bytes left_of(struct bytes piece, size_t begin, size_t sent)
{
    size_t gone = sent <= begin ? 0 : sent - begin < piece.len ? sent - begin : piece.len;

    return (struct bytes){gone > 0 ? piece.at + gone : piece.at, piece.len - gone};
}

/* As much as is taken now, head and body together: a peer that reads once has a small request whole. TLS may
 * have sent some of what it says it has not taken. */
static void request_send(struct exchange *exchange)
{
    struct bytes head = {exchange->head, exchange->head_len};

    while (!all_sent(exchange)) {
        ssize_t len;

        exchange->may_have_left = exchange->may_have_left || exchange->place.is_tls;
        len = http_wire_send(&exchange->wire, left_of(head, 0, exchange->sent),
                             left_of(exchange->request->body, exchange->head_len, exchange->sent));
        if (len <= 0) {
            exchange->takes_no_more = len == 0 || errno != EAGAIN;
            return;
        }
        exchange->may_have_left = true;
        exchange->sent += (size_t)len;
    }
}

/* -- the answer */

/* Room for so many bytes and a NUL. What was there is wiped when it moves: a lease_id may be in it. */
static bool body_room(struct exchange *exchange, size_t len)
{
    struct http_client_answer *answer = exchange->answer;
    size_t size = exchange->size;
    char *body;

    while (len >= size)
        size *= 2;
    if (size == exchange->size)
        return true;
    body = malloc(size);
    if (body == NULL)
        return false;
    memcpy(body, answer->body, answer->len);
    explicit_bzero(answer->body, answer->len);
    free(answer->body);
    answer->body = body;
    exchange->size = size;
    return true;
}

static enum http_wait body_take(struct exchange *exchange, struct bytes piece)
{
    struct http_client_answer *answer = exchange->answer;

    if (exchange->to_sink) {
        bool written = fwrite(piece.at, 1, piece.len, exchange->request->sink) == piece.len;

        return written ? HTTP_READY : failed(exchange, "what it answers cannot be written");
    }
    if (answer->len + piece.len > HTTP_CLIENT_ANSWER_MAX)
        return failed(exchange, "its answer is too large");
    if (!body_room(exchange, answer->len + piece.len))
        return failed(exchange, NULL);
    memcpy(answer->body + answer->len, piece.at, piece.len);
    answer->len += piece.len;
    answer->body[answer->len] = '\0';
    return HTTP_READY;
}

/* An answer that is not what was asked for must not come out as if it were. */
static bool is_for_the_sink(const struct http_client_request *request, unsigned status,
                            const struct answer_field *fields, unsigned count)
{
    const struct http_client_header *needs = &request->sink_needs;
    const struct answer_field *field = needs->name != NULL ? answer_field_find(fields, count, needs->name)
                                                           : NULL;
    struct bytes value = field != NULL ? field->value : BYTES("");

    return request->sink != NULL && status == 200 &&
           (needs->name == NULL || (field != NULL && bytes_take(&value, needs->value)));
}

static void head_take(struct exchange *exchange)
{
    struct http_client_answer *answer = exchange->answer;
    const struct {
        const char *name;
        char *to;
    } kept[] = {{"ETag", answer->etag},
                {"Content-Type", answer->content_type},
                {"Date", answer->date},
                {"Fencing-Status", answer->fencing_status},
                {"Fencing-Mark", answer->fencing_mark}};
    struct answer_field fields[ANSWER_FIELDS_MAX];
    unsigned count = answer_fields(&exchange->parser, fields);
    const struct answer_field *again = answer_field_find(fields, count, "Retry-After");
    int64_t seconds = again != NULL ? bytes_number(again->value, 18) : 0;

    answer->status = exchange->parser.status;
    answer->retry_after_s = seconds > 0 && seconds < UINT16_MAX ? (unsigned)seconds : 0;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const struct answer_field *field = answer_field_find(fields, count, kept[i].name);

        if (field != NULL && field->value.len < HTTP_CLIENT_HEADER_SIZE) {
            memcpy(kept[i].to, field->value.at, field->value.len);
            kept[i].to[field->value.len] = '\0';
        }
    }
    exchange->to_sink = is_for_the_sink(exchange->request, answer->status, fields, count);
}

static enum http_wait answer_understand(struct exchange *exchange, struct bytes in, bool *whole)
{
    for (;;) {
        enum http_wait went;

        switch (answer_next(&exchange->parser, &in)) {
        case ANSWER_MORE: return HTTP_READY;
        case ANSWER_HEAD: head_take(exchange); break;
        case ANSWER_PIECE:
            went = body_take(exchange, exchange->parser.piece);
            if (went != HTTP_READY)
                return went;
            answer_take(&exchange->parser, &in, exchange->parser.piece.len);
            break;
        case ANSWER_WHOLE: *whole = true; return HTTP_READY;
        case ANSWER_MALFORMED: return failed(exchange, exchange->parser.why);
        }
    }
}

/* What has no length ends with the connection, and that must be certain. (With TLS an end that was not
 * announced never comes here: tls_read() calls it an error.) A send() that met a reset has taken its error
 * away: what recv() says then is no FIN. */
static enum http_wait answer_ends(struct exchange *exchange, bool *whole)
{
    if (exchange->parser.place == ANSWER_AT_CLOSE && exchange->takes_no_more)
        return failed(exchange, "its answer has no length, nor chunks");
    *whole = answer_fin(&exchange->parser) == ANSWER_WHOLE;
    return *whole ? HTTP_READY : failed(exchange, exchange->parser.why);
}

/* What is there, or a good piece of it: a server that never stops talking must not keep us from looking at
 * the clock. */
static enum http_wait answer_receive(struct exchange *exchange, bool *whole)
{
    char in[RECEIVE_SIZE];
    enum http_wait went = HTTP_READY;
    bool more = true;

    for (unsigned i = 0; i < RECEIVES_MAX && more && went == HTTP_READY && !*whole; i++) {
        ssize_t len = http_wire_receive(&exchange->wire, in, sizeof(in));

        if (len > 0) {
            went = answer_understand(exchange, (struct bytes){in, (size_t)len}, whole);
            explicit_bzero(in, (size_t)len); /* a lease_id may have been in it */
        } else if (len == 0) {
            went = answer_ends(exchange, whole);
        } else if (errno == EAGAIN) {
            more = false;
        } else {
            went = wire_said(exchange, HTTP_FAILED);
        }
    }
    exchange->may_be_more = more;
    return went;
}

/* Whether a whole answer is one to this request. A refusal may come before all of it was sent; that it was
 * done may not. */
static enum http_wait answered(struct exchange *exchange)
{
    bool is_refusal = exchange->answer->status >= 300;
    bool all_sent = exchange->sent >= exchange->head_len + exchange->request->body.len;

    return is_refusal || all_sent ? HTTP_READY
                                  : failed(exchange, "it was answered before the whole request was sent");
}

static enum http_wait talk_wait(struct exchange *exchange)
{
    struct pollfd ready = {.fd = exchange->wire.fd, .events = POLLIN};
    enum http_wait went;

    if (exchange->may_be_more) { /* within the TLS library, too: nothing to wait for */
        went = http_wire_wait(&exchange->wire, NULL, 0, 0);
        return went == HTTP_LATE && pawl_now_ms() < exchange->until_ms ? HTTP_READY : went;
    }
    ready.events |= all_sent(exchange) ? 0 : POLLOUT;
    return http_wire_wait(&exchange->wire, &ready, 1, exchange->until_ms);
}

static enum http_wait talk(struct exchange *exchange)
{
    enum http_wait waited = HTTP_READY;
    bool whole = false;

    answer_init(&exchange->parser,
                strcmp(exchange->request->method, "HEAD") == 0 ? ANSWER_TO_HEAD : ANSWER_TO_OTHER);
    for (;;) {
        enum http_wait went;

        if (waited == HTTP_READY)
            request_send(exchange);
        went = answer_receive(exchange, &whole);
        if (whole)
            return answered(exchange);
        if (went != HTTP_READY || waited != HTTP_READY)
            return went != HTTP_READY ? went : wire_said(exchange, waited);
        waited = talk_wait(exchange); /* when it is over: what is there by then is still read */
    }
}

static enum http_wait exchange_run(struct exchange *exchange)
{
    const struct http_client_request *request = exchange->request;
    const char *why = http_place_read(&exchange->place, request->url);
    int64_t connect_by_ms = pawl_now_ms() + HTTP_CLIENT_CONNECT_TIMEOUT_MS;
    enum http_wait went;

    if (why != NULL) {
        exchange->place.authority = BYTES(""); /* nobody was asked */
        return failed(exchange, why);
    }
    exchange->head = http_head_new(request, &exchange->place, &exchange->head_len, &why);
    if (exchange->head == NULL)
        return failed(exchange, why);
    went = http_wire_wait(&exchange->wire, NULL, 0, 0);
    if (went != HTTP_LATE)
        return wire_said(exchange, went);
    connect_by_ms = connect_by_ms < exchange->until_ms ? connect_by_ms : exchange->until_ms;
    went = http_dial(&exchange->wire, &exchange->place, connect_by_ms);
    if (went == HTTP_READY && exchange->place.is_tls)
        went = http_wire_secure(&exchange->wire, exchange->place.host, &request->access, connect_by_ms);
    exchange->is_dialled = went == HTTP_READY;
    return exchange->is_dialled ? talk(exchange) : wire_said(exchange, went);
}

/* -- the three ends */

static enum http_client_outcome outcome_of(struct exchange *exchange, enum http_wait went)
{
    struct http_client_answer *answer = exchange->answer;
    const char *why = exchange->why;
    struct bytes where = exchange->is_dialled ? BYTES("") : exchange->place.authority;

    if (went == HTTP_READY)
        return HTTP_CLIENT_ANSWERED;
    answer->status = 0;
    answer->stopped = went == HTTP_STOPPED;
    answer->no_memory = went == HTTP_FAILED && why == NULL;
    snprintf(answer->why, sizeof(answer->why), "%.*s%s%s", (int)where.len, where.at,
             where.len > 0 ? ": " : "",
             went == HTTP_STOPPED ? "it was given up"
             : went == HTTP_LATE  ? "it took too long"
             : why == NULL        ? "there is no memory for it"
                                  : why);
    return exchange->may_have_left ? HTTP_CLIENT_UNKNOWN : HTTP_CLIENT_NOT_SENT;
}

enum http_client_outcome http_client_send(const struct http_client_request *request,
                                          struct http_client_answer *answer)
{
    unsigned timeout_ms = request->timeout_ms > 0 ? request->timeout_ms : HTTP_CLIENT_TIMEOUT_MS;
    struct exchange exchange = {.request = request,
                                .answer = answer,
                                .size = BODY_SIZE_FIRST,
                                .wire = {.stop_fds = request->stop_fds, .fd = -1},
                                .until_ms = pawl_now_ms() + timeout_ms};
    enum http_wait went = HTTP_FAILED;
    enum http_client_outcome outcome;

    *answer = (struct http_client_answer){.body = malloc(exchange.size)};
    if (answer->body != NULL) {
        answer->body[0] = '\0';
        went = exchange_run(&exchange);
    }
    outcome = outcome_of(&exchange, went);
    http_wire_close(&exchange.wire, outcome == HTTP_CLIENT_UNKNOWN ? HTTP_RESET : HTTP_CLOSE);
    answer_done(&exchange.parser);
    if (exchange.head != NULL) {
        explicit_bzero(exchange.head, exchange.head_len);
        free(exchange.head);
    }
    return outcome;
}

void http_client_answer_done(struct http_client_answer *answer)
{
    if (answer->body != NULL) {
        explicit_bzero(answer->body, answer->len); /* a lease_id may have been in it */
        free(answer->body);
    }
    answer->body = NULL;
    answer->len = 0;
}
