/* answer.c - an HTTP answer as it comes: lines, and the bytes between them.
 *
 * Whatever is a line is first gathered whole, its bytes checked on the way, and only then understood, in
 * line_understand(): so it does not matter how the answer was cut into packets. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/answer.h"
#include "shared/text/ascii.h"

/* == lines: what they say, and where the answer will end */

enum { LENGTH_DIGITS_MAX = 18, CHUNK_DIGITS_MAX = 15, KEEP_DIGITS_MAX = 6, TLS_ALERT = 0x15 };

/* What the fields say of the framing and of the connection. */
struct framing {
    unsigned lengths, codings;
    int64_t length;
    bool closes, keeps_alive;
    unsigned keep_ms;
};

/* -- lines */

static const char *read_status_line(struct answer *answer, struct bytes line)
{
    static const char version[] = "HTTP/1.";
    size_t at = sizeof(version) - 1;
    int64_t status;

    if (line.len < at + 5 || memcmp(line.at, version, at) != 0 ||
        (line.at[at] != '0' && line.at[at] != '1') || line.at[at + 1] != ' ')
        return "its answer does not begin with HTTP/1.1 or HTTP/1.0 and a status";
    status = bytes_number((struct bytes){line.at + at + 2, 3}, 3);
    if (status < 100 || status > 599 || (line.len > at + 5 && line.at[at + 5] != ' '))
        return "the status of its answer is not a number from 100 to 599";
    answer->minor = (unsigned)(line.at[at] - '0');
    answer->status = (unsigned)status;
    answer->place = ANSWER_AT_FIELD;
    return NULL;
}

static const char *read_field_line(struct answer *answer, struct bytes line)
{
    struct answer_span *field = &answer->fields[answer->field_count];
    const char *colon = memchr(line.at, ':', line.len);
    struct bytes name = {line.at, colon != NULL ? (size_t)(colon - line.at) : 0};
    struct bytes value;

    if (answer->field_count == ANSWER_FIELDS_MAX)
        return "its answer has too many fields";
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return "its answer has a folded line";
    if (colon == NULL || !ascii_is_token(name))
        return "its answer has a line that is not a name directly followed by a colon";
    value = bytes_trim((struct bytes){colon + 1, line.len - name.len - 1});
    field->name = (uint16_t)(name.at - answer->text);
    field->name_len = (uint16_t)name.len;
    field->value = (uint16_t)(value.at - answer->text);
    field->value_len = (uint16_t)value.len;
    answer->field_count++;
    return NULL;
}

static const char *read_chunk_line(struct answer *answer, struct bytes line)
{
    int64_t size = 0;
    size_t digits = 0, at;

    for (; digits < line.len && ascii_hex_value(line.at[digits]) >= 0; digits++) {
        if (digits == CHUNK_DIGITS_MAX)
            return "the size of a chunk of its answer has too many digits";
        size = size * 16 + ascii_hex_value(line.at[digits]);
    }
    at = digits;
    while (at < line.len && (line.at[at] == ' ' || line.at[at] == '\t'))
        at++;
    if (digits == 0 || (digits < line.len && (at == line.len || line.at[at] != ';')))
        return "the size of a chunk of its answer is not a hexadecimal number";
    answer->left = size;
    answer->place = size > 0 ? ANSWER_AT_CHUNK : ANSWER_AT_TRAILER;
    answer->field_count = 0; /* the trailer's, now */
    return NULL;
}

/* -- framing */

/* Half of the time after which the other side closes: in the other half it would be a race. */
static void keep_alive_read(struct framing *framing, struct bytes value)
{
    static const char timeout[] = "timeout=";
    size_t len = sizeof(timeout) - 1;

    while (value.len > 0) {
        struct bytes member = bytes_trim(bytes_cut(&value, ','));

        if (member.len > len && strncasecmp(member.at, timeout, len) == 0) {
            int64_t seconds = bytes_number((struct bytes){member.at + len, member.len - len},
                                           KEEP_DIGITS_MAX);

            if (seconds >= 0 && seconds * 500 < framing->keep_ms)
                framing->keep_ms = (unsigned)(seconds * 500);
        }
    }
}

/* NULL, or what is wrong. */
static const char *framing_read(const struct answer *answer, struct framing *framing)
{
    struct answer_field fields[ANSWER_FIELDS_MAX];
    unsigned count = answer_fields(answer, fields);

    for (unsigned i = 0; i < count; i++) {
        struct bytes name = fields[i].name, value = fields[i].value;

        if (bytes_equal_nocase(name, BYTES("Content-Length"))) {
            framing->lengths++;
            framing->length = bytes_number(value, LENGTH_DIGITS_MAX);
        } else if (bytes_equal_nocase(name, BYTES("Transfer-Encoding"))) {
            framing->codings++;
            if (!bytes_equal_nocase(value, BYTES("chunked")))
                return "its answer has a Transfer-Encoding other than chunked";
        } else if (bytes_equal_nocase(name, BYTES("Connection"))) {
            framing->closes = framing->closes || bytes_list_has(value, BYTES("close"));
            framing->keeps_alive = framing->keeps_alive || bytes_list_has(value, BYTES("keep-alive"));
        } else if (bytes_equal_nocase(name, BYTES("Keep-Alive"))) {
            keep_alive_read(framing, value);
        }
    }
    if (framing->lengths + framing->codings > 1)
        return "its answer has more than one Content-Length or Transfer-Encoding";
    if (framing->codings > 0 && answer->minor == 0)
        return "its answer has a Transfer-Encoding in HTTP/1.0";
    return framing->length >= 0 ? NULL : "the Content-Length of its answer is not a number";
}

static const char *interim_end(struct answer *answer, const struct framing *framing)
{
    if (answer->status == 101)
        return "it changes to a protocol that nobody asked for";
    if (framing->codings > 0 || framing->length > 0)
        return "its answer has a body behind a head that can have none";
    if (++answer->interim > ANSWER_INTERIM_MAX)
        return "its answer has too many heads";
    answer->place = ANSWER_AT_STATUS;
    return NULL;
}

static const char *answer_frame(struct answer *answer)
{
    struct framing framing = {.keep_ms = ANSWER_KEEP_MS};
    const char *why = framing_read(answer, &framing);
    bool keeps = !framing.closes && (answer->minor == 1 || framing.keeps_alive);

    if (why != NULL)
        return why;
    if (answer->status < 200)
        return interim_end(answer, &framing);
    answer->keep_ms = keeps ? framing.keep_ms : 0;
    if (answer->to == ANSWER_TO_HEAD) {
        answer->length = framing.lengths > 0 ? framing.length : -1;
        answer->place = ANSWER_AT_END;
    } else if (answer->status == 204 || answer->status == 304) {
        answer->place = ANSWER_AT_END;
        /* Not every server leaves out what it announces here, and that would be the next answer. */
        if (framing.codings > 0 || framing.length > 0)
            answer->keep_ms = 0;
    } else if (framing.codings > 0) {
        answer->length = -1;
        answer->place = ANSWER_AT_CHUNK_LINE;
    } else if (framing.lengths > 0) {
        answer->length = answer->left = framing.length;
        answer->place = framing.length > 0 ? ANSWER_AT_LENGTH : ANSWER_AT_END;
    } else {
        answer->length = -1;
        answer->place = ANSWER_AT_CLOSE;
        answer->keep_ms = 0;
    }
    return NULL;
}

/* == the answer */

/* What the gathering of a line has come to. */
enum line { LINE_OPEN, LINE_WHOLE, LINE_BAD };

static void text_clear(struct answer *answer)
{
    answer->line = answer->len = 0;
}

void answer_init(struct answer *answer, enum answer_to to)
{
    answer_done(answer);
    answer->place = ANSWER_AT_STATUS;
    answer->to = to;
    answer->status = answer->minor = answer->interim = answer->field_count = answer->keep_ms = 0;
    answer->length = answer->left = 0;
    answer->after_cr = answer->head_told = false;
    text_clear(answer);
    answer->piece = (struct bytes){NULL, 0};
    answer->why = NULL;
}

void answer_done(struct answer *answer)
{
    if (answer->text != answer->near)
        free(answer->text);
    answer->text = answer->near;
}

void answer_take(struct answer *answer, struct bytes *in, size_t len)
{
    assert(len <= answer->piece.len && in->at == answer->piece.at);
    in->at += len;
    in->len -= len;
    answer->piece = (struct bytes){NULL, 0};
    if (answer->place == ANSWER_AT_CLOSE)
        return;
    answer->left -= (int64_t)len;
    if (answer->left == 0)
        answer->place = answer->place == ANSWER_AT_CHUNK ? ANSWER_AT_CHUNK_END : ANSWER_AT_END;
}

static enum answer_event fault(struct answer *answer, const char *why)
{
    answer->place = ANSWER_AT_FAULT;
    answer->why = why;
    return ANSWER_MALFORMED;
}

enum answer_event answer_fin(struct answer *answer)
{
    if (answer->place == ANSWER_AT_CLOSE)
        answer->place = ANSWER_AT_END;
    if (answer->place == ANSWER_AT_END)
        return ANSWER_WHOLE;
    if (answer->place == ANSWER_AT_FAULT)
        return ANSWER_MALFORMED;
    return fault(answer, answer->place == ANSWER_AT_STATUS ? "it closed the connection without an answer"
                         : answer->place == ANSWER_AT_FIELD
                             ? "it closed the connection within the head of its answer"
                             : "it closed the connection within the body of its answer");
}

unsigned answer_fields(const struct answer *answer, struct answer_field fields[ANSWER_FIELDS_MAX])
{
    for (unsigned i = 0; i < answer->field_count; i++) {
        const struct answer_span *field = &answer->fields[i];

        fields[i].name = (struct bytes){answer->text + field->name, field->name_len};
        fields[i].value = (struct bytes){answer->text + field->value, field->value_len};
    }
    return answer->field_count;
}

const struct answer_field *answer_field_find(const struct answer_field *fields, unsigned count,
                                             const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (bytes_equal_nocase(fields[i].name, bytes_of(name)))
            return &fields[i];
    return NULL;
}

/* -- lines */

static size_t text_limit(const struct answer *answer)
{
    return answer->place == ANSWER_AT_CHUNK_END    ? 2
           : answer->place == ANSWER_AT_CHUNK_LINE ? ANSWER_CHUNK_LINE_MAX
                                                   : ANSWER_HEAD_MAX;
}

static const char *too_long(const struct answer *answer)
{
    return answer->place == ANSWER_AT_CHUNK_END    ? "a chunk of its answer is not followed by a line end"
           : answer->place == ANSWER_AT_CHUNK_LINE ? "the line of a chunk of its answer is too long"
                                                   : "the head or the trailer of its answer is too long";
}

/* Appends bytes that are within the limit; false: there is no memory. */
static bool text_add(struct answer *answer, const char *at, size_t len)
{
    if (answer->text == answer->near && answer->len + len > sizeof(answer->near)) {
        char *text = malloc(ANSWER_HEAD_MAX);

        if (text == NULL)
            return false;
        memcpy(text, answer->near, answer->len);
        answer->text = text;
    }
    memcpy(answer->text + answer->len, at, len);
    answer->len += len;
    return true;
}

static enum line line_gather(struct answer *answer, struct bytes *in)
{
    size_t room = text_limit(answer) - answer->len, len = 0;
    bool end = answer->after_cr;

    if (in->len == 0)
        return LINE_OPEN;
    while (!end && len < in->len && len < room && ascii_is_field_char(in->at[len]))
        len++;
    if (!end && len < in->len && len < room && in->at[len] == '\r') {
        answer->after_cr = end = true;
        len++;
    }
    if (end && len < in->len && len < room && in->at[len] == '\n') {
        answer->after_cr = false;
        len++;
    }
    if (!text_add(answer, in->at, len)) {
        fault(answer, "there is no memory for the head of its answer");
        return LINE_BAD;
    }
    in->at += len;
    in->len -= len;
    if (end && !answer->after_cr)
        return LINE_WHOLE;
    if (in->len == 0)
        return LINE_OPEN;
    fault(answer, len == room ? too_long(answer)
                  : answer->place == ANSWER_AT_STATUS && answer->len == 0 && *in->at == TLS_ALERT
                      ? "it answers with TLS, not HTTP: its address begins with https://"
                  : end ? "its answer has a carriage return that ends no line"
                        : "its answer has a control character in it");
    return LINE_BAD;
}

static enum answer_event head_end(struct answer *answer)
{
    const char *why = answer_frame(answer);

    if (why != NULL)
        return fault(answer, why);
    if (answer->place == ANSWER_AT_STATUS) {
        answer->field_count = 0;
        text_clear(answer);
        return ANSWER_MORE;
    }
    answer->head_told = true;
    return ANSWER_HEAD;
}

static enum answer_event line_understand(struct answer *answer)
{
    struct bytes line = {answer->text + answer->line, answer->len - answer->line - 2};
    enum answer_place place = answer->place;
    const char *why = NULL;

    answer->line = answer->len;
    if (place == ANSWER_AT_FIELD && line.len == 0)
        return head_end(answer);
    if (place == ANSWER_AT_STATUS)
        why = read_status_line(answer, line);
    else if (place == ANSWER_AT_CHUNK_LINE)
        why = read_chunk_line(answer, line);
    else if (place == ANSWER_AT_CHUNK_END)
        answer->place = ANSWER_AT_CHUNK_LINE;
    else if (line.len > 0)
        why = read_field_line(answer, line);
    else
        answer->place = ANSWER_AT_END; /* behind the trailer */
    if (place == ANSWER_AT_CHUNK_LINE || place == ANSWER_AT_CHUNK_END)
        text_clear(answer);
    return why != NULL ? fault(answer, why) : ANSWER_MORE;
}

/* -- all of it */

enum answer_event answer_next(struct answer *answer, struct bytes *in)
{
    if (answer->head_told) {
        answer->head_told = false;
        text_clear(answer);
    }
    while (answer->place <= ANSWER_AT_TRAILER) {
        enum line line = line_gather(answer, in);
        enum answer_event event = line == LINE_WHOLE ? line_understand(answer) : ANSWER_MORE;

        if (line == LINE_OPEN || event != ANSWER_MORE)
            return event;
    }
    if (answer->place >= ANSWER_AT_END)
        return answer->place == ANSWER_AT_END ? ANSWER_WHOLE : ANSWER_MALFORMED;
    answer->piece = *in;
    if (answer->place != ANSWER_AT_CLOSE && (int64_t)in->len > answer->left)
        answer->piece.len = (size_t)answer->left;
    return in->len > 0 ? ANSWER_PIECE : ANSWER_MORE;
}
