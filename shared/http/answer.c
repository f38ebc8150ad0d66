/* answer.c - an HTTP answer as it comes: lines, and the bytes between them.
 *
 * Whatever is a line is first gathered whole, its bytes checked on the way, and only then understood, in
 * answer_head.c: so it does not matter how the answer was cut into packets. */
#include <assert.h>
#include <stdlib.h>

#include "shared/http/answer.h"

/* What the gathering of a line has come to. */
enum line { LINE_OPEN, LINE_WHOLE, LINE_BAD };

static enum line line_gather(struct answer *answer, struct bytes *in);
static enum answer_event line_understand(struct answer *answer);

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
    if (answer->text != answer->near) {
        free(answer->text);
    }
    answer->text = answer->near;
}

enum answer_event answer_next(struct answer *answer, struct bytes *in)
{
    if (answer->head_told) {
        answer->head_told = false;
        text_clear(answer);
    }
    for (;;) {
        enum answer_event event = ANSWER_MORE;

        switch (answer->place) {
        case ANSWER_AT_STATUS:
        case ANSWER_AT_FIELD:
        case ANSWER_AT_CHUNK_LINE:
        case ANSWER_AT_CHUNK_END:
        case ANSWER_AT_TRAILER:
            switch (line_gather(answer, in)) {
            case LINE_OPEN: return ANSWER_MORE;
            case LINE_BAD: return ANSWER_MALFORMED;
            case LINE_WHOLE: event = line_understand(answer);
            }
            if (event != ANSWER_MORE) {
                return event;
            }
            break;
        case ANSWER_AT_LENGTH:
        case ANSWER_AT_CHUNK:
        case ANSWER_AT_CLOSE:
            answer->piece = *in;
            if (answer->place != ANSWER_AT_CLOSE && (int64_t)in->len > answer->left) {
                answer->piece.len = (size_t)answer->left;
            }
            return in->len > 0 ? ANSWER_PIECE : ANSWER_MORE;
        case ANSWER_AT_END: return ANSWER_WHOLE;
        case ANSWER_AT_FAULT: return ANSWER_MALFORMED;
        }
    }
}

void answer_take(struct answer *answer, struct bytes *in, size_t len)
{
    assert(len <= answer->piece.len && in->at == answer->piece.at);
    in->at += len;
    in->len -= len;
    answer->piece = (struct bytes){NULL, 0};
    if (answer->place == ANSWER_AT_CLOSE) {
        return;
    }
    answer->left -= (int64_t)len;
    if (answer->left == 0) {
        answer->place = answer->place == ANSWER_AT_CHUNK ? ANSWER_AT_CHUNK_END : ANSWER_AT_END;
    }
}

static enum answer_event fault(struct answer *answer, const char *why)
{
    answer->place = ANSWER_AT_FAULT;
    answer->why = why;
    return ANSWER_MALFORMED;
}

enum answer_event answer_fin(struct answer *answer)
{
    switch (answer->place) {
    case ANSWER_AT_CLOSE: answer->place = ANSWER_AT_END; return ANSWER_WHOLE;
    case ANSWER_AT_END: return ANSWER_WHOLE;
    case ANSWER_AT_FAULT: return ANSWER_MALFORMED;
    case ANSWER_AT_STATUS: return fault(answer, "it closed the connection without an answer");
    case ANSWER_AT_FIELD: return fault(answer, "it closed the connection within the head of its answer");
    case ANSWER_AT_LENGTH:
    case ANSWER_AT_CHUNK_LINE:
    case ANSWER_AT_CHUNK:
    case ANSWER_AT_CHUNK_END:
    case ANSWER_AT_TRAILER: break;
    }
    return fault(answer, "it closed the connection within the body of its answer");
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

/* -- lines */

/* What can stand within a line. */
static bool is_text(char c)
{
    return ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\t';
}

static size_t text_limit(const struct answer *answer)
{
    switch (answer->place) {
    case ANSWER_AT_CHUNK_END: return 2;
    case ANSWER_AT_CHUNK_LINE: return ANSWER_CHUNK_LINE_MAX;
    case ANSWER_AT_STATUS:
    case ANSWER_AT_FIELD:
    case ANSWER_AT_TRAILER:
    case ANSWER_AT_LENGTH:
    case ANSWER_AT_CLOSE:
    case ANSWER_AT_CHUNK:
    case ANSWER_AT_END:
    case ANSWER_AT_FAULT: break;
    }
    return ANSWER_HEAD_MAX;
}

static const char *too_long(const struct answer *answer)
{
    switch (text_limit(answer)) {
    case 2: return "a chunk of its answer is not followed by a line end";
    case ANSWER_CHUNK_LINE_MAX: return "the line of a chunk of its answer is too long";
    default: return "the head or the trailer of its answer is too long";
    }
}

/* Appends bytes that are within the limit; false: there is no memory. */
static bool text_add(struct answer *answer, const char *at, size_t len)
{
    if (answer->text == answer->near && answer->len + len > sizeof(answer->near)) {
        char *text = malloc(ANSWER_HEAD_MAX);

        if (text == NULL) {
            return false;
        }
        memcpy(text, answer->near, answer->len);
        answer->text = text;
    }
    memcpy(answer->text + answer->len, at, len);
    answer->len += len;
    return true;
}

static enum line line_bad(struct answer *answer, const char *why)
{
    fault(answer, why);
    return LINE_BAD;
}

static enum line line_gather(struct answer *answer, struct bytes *in)
{
    size_t room = text_limit(answer) - answer->len, len = 0;
    bool end = answer->after_cr;

    if (in->len == 0) {
        return LINE_OPEN;
    }
    while (!end && len < in->len && len < room && is_text(in->at[len])) {
        len++;
    }
    if (!end && len < in->len && len < room && in->at[len] == '\r') {
        answer->after_cr = end = true;
        len++;
    }
    if (end && len < in->len && len < room && in->at[len] == '\n') {
        answer->after_cr = false;
        len++;
    }
    if (!text_add(answer, in->at, len)) {
        return line_bad(answer, "there is no memory for the head of its answer");
    }
    in->at += len;
    in->len -= len;
    if (end && !answer->after_cr) {
        return LINE_WHOLE;
    }
    if (in->len == 0) {
        return LINE_OPEN;
    }
    return line_bad(answer, len == room ? too_long(answer)
                            : end       ? "its answer has a carriage return that ends no line"
                                        : "its answer has a control character in it");
}

static enum answer_event head_end(struct answer *answer)
{
    const char *why = answer_frame(answer);

    if (why != NULL) {
        return fault(answer, why);
    }
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
    switch (place) {
    case ANSWER_AT_STATUS: why = answer_status_line(answer, line); break;
    case ANSWER_AT_FIELD:
        if (line.len == 0) {
            return head_end(answer);
        }
        why = answer_field_line(answer, line);
        break;
    case ANSWER_AT_CHUNK_LINE: why = answer_chunk_line(answer, line); break;
    case ANSWER_AT_CHUNK_END: answer->place = ANSWER_AT_CHUNK_LINE; break;
    case ANSWER_AT_TRAILER:
        if (line.len == 0) {
            answer->place = ANSWER_AT_END;
        } else {
            why = answer_field_line(answer, line);
        }
        break;
    case ANSWER_AT_LENGTH:
    case ANSWER_AT_CLOSE:
    case ANSWER_AT_CHUNK:
    case ANSWER_AT_END:
    case ANSWER_AT_FAULT: why = "its answer is not at a line"; break; /* it is, by answer_next() */
    }
    if (place == ANSWER_AT_CHUNK_LINE || place == ANSWER_AT_CHUNK_END) {
        text_clear(answer);
    }
    return why != NULL ? fault(answer, why) : ANSWER_MORE;
}
