/* answer_head.c - the lines of an HTTP answer: what they say, and where the answer will end.
 */
#include <strings.h>

#include "shared/http/answer.h"
#include "shared/text/ascii.h"

enum { LENGTH_DIGITS_MAX = 18, CHUNK_DIGITS_MAX = 15, KEEP_DIGITS_MAX = 6 };

/* What the fields say of the framing and of the connection. */
struct framing {
    unsigned lengths, codings;
    int64_t length;
    bool closes, keeps_alive;
    unsigned keep_ms;
};

static bool are_same_word(struct bytes text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.at, word, text.len) == 0;
}

static struct bytes trimmed(struct bytes text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
        text.at++;
        text.len--;
    }
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t')) {
        text.len--;
    }
    return text;
}

/* The next member of a list with commas; {NULL, 0} behind the last. */
static struct bytes list_next(struct bytes *list)
{
    const char *comma = list->len > 0 ? memchr(list->at, ',', list->len) : NULL;
    struct bytes member = {list->at, comma != NULL ? (size_t)(comma - list->at) : list->len};
    size_t used = member.len + (comma != NULL);

    if (list->len == 0) {
        return (struct bytes){NULL, 0};
    }
    list->at += used;
    list->len -= used;
    return trimmed(member);
}

/* A decimal number of at most so many digits, or -1. */
static int64_t number_of(struct bytes text, size_t digits_max)
{
    int64_t number = 0;

    if (text.len == 0 || text.len > digits_max) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.at[i])) {
            return -1;
        }
        number = number * 10 + (text.at[i] - '0');
    }
    return number;
}

/* -- lines */

const char *answer_status_line(struct answer *answer, struct bytes line)
{
    static const char version[] = "HTTP/1.";
    size_t at = sizeof(version) - 1;
    int64_t status;

    if (line.len < at + 5 || memcmp(line.at, version, at) != 0 ||
        (line.at[at] != '0' && line.at[at] != '1') || line.at[at + 1] != ' ') {
        return "its answer does not begin with HTTP/1.1 or HTTP/1.0 and a status";
    }
    status = number_of((struct bytes){line.at + at + 2, 3}, 3);
    if (status < 100 || status > 599 || (line.len > at + 5 && line.at[at + 5] != ' ')) {
        return "the status of its answer is not a number from 100 to 599";
    }
    answer->minor = (unsigned)(line.at[at] - '0');
    answer->status = (unsigned)status;
    answer->place = ANSWER_AT_FIELD;
    return NULL;
}

const char *answer_field_line(struct answer *answer, struct bytes line)
{
    struct answer_span *field = &answer->fields[answer->field_count];
    const char *colon = memchr(line.at, ':', line.len);
    struct bytes name = {line.at, colon != NULL ? (size_t)(colon - line.at) : 0};
    struct bytes value;

    if (answer->field_count == ANSWER_FIELDS_MAX) {
        return "its answer has too many fields";
    }
    if (line.at[0] == ' ' || line.at[0] == '\t') {
        return "its answer has a folded line";
    }
    if (name.len == 0 || !ascii_is_word(name, BYTES("!#$%&'*+-.^_`|~"))) {
        return "its answer has a line that is not a name directly followed by a colon";
    }
    value = trimmed((struct bytes){colon + 1, line.len - name.len - 1});
    field->name = (uint16_t)(name.at - answer->text);
    field->name_len = (uint16_t)name.len;
    field->value = (uint16_t)(value.at - answer->text);
    field->value_len = (uint16_t)value.len;
    answer->field_count++;
    return NULL;
}

const char *answer_chunk_line(struct answer *answer, struct bytes line)
{
    int64_t size = 0;
    size_t digits = 0, at;

    for (; digits < line.len && ascii_hex_value(line.at[digits]) >= 0; digits++) {
        if (digits == CHUNK_DIGITS_MAX) {
            return "the size of a chunk of its answer has too many digits";
        }
        size = size * 16 + ascii_hex_value(line.at[digits]);
    }
    at = digits;
    while (at < line.len && (line.at[at] == ' ' || line.at[at] == '\t')) {
        at++;
    }
    if (digits == 0 || (digits < line.len && (at == line.len || line.at[at] != ';'))) {
        return "the size of a chunk of its answer is not a hexadecimal number";
    }
    answer->left = size;
    answer->place = size > 0 ? ANSWER_AT_CHUNK : ANSWER_AT_TRAILER;
    answer->field_count = 0; /* the trailer's, now */
    return NULL;
}

/* -- framing */

static void connection_read(struct framing *framing, struct bytes value)
{
    for (struct bytes member; (member = list_next(&value)).at != NULL;) {
        framing->closes = framing->closes || are_same_word(member, "close");
        framing->keeps_alive = framing->keeps_alive || are_same_word(member, "keep-alive");
    }
}

/* Half of the time after which the other side closes: in the other half it would be a race. */
static void keep_alive_read(struct framing *framing, struct bytes value)
{
    static const char timeout[] = "timeout=";
    size_t len = sizeof(timeout) - 1;

    for (struct bytes member; (member = list_next(&value)).at != NULL;) {
        if (member.len > len && strncasecmp(member.at, timeout, len) == 0) {
            int64_t seconds = number_of((struct bytes){member.at + len, member.len - len}, KEEP_DIGITS_MAX);

            if (seconds >= 0 && seconds * 500 < framing->keep_ms) {
                framing->keep_ms = (unsigned)(seconds * 500);
            }
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

        if (are_same_word(name, "Content-Length")) {
            framing->lengths++;
            framing->length = number_of(value, LENGTH_DIGITS_MAX);
        } else if (are_same_word(name, "Transfer-Encoding")) {
            framing->codings++;
            if (!are_same_word(value, "chunked")) {
                return "its answer has a Transfer-Encoding other than chunked";
            }
        } else if (are_same_word(name, "Connection")) {
            connection_read(framing, value);
        } else if (are_same_word(name, "Keep-Alive")) {
            keep_alive_read(framing, value);
        }
    }
    if (framing->lengths + framing->codings > 1) {
        return "its answer has more than one Content-Length or Transfer-Encoding";
    }
    if (framing->codings > 0 && answer->minor == 0) {
        return "its answer has a Transfer-Encoding in HTTP/1.0";
    }
    return framing->length >= 0 ? NULL : "the Content-Length of its answer is not a number";
}

static const char *interim_end(struct answer *answer, const struct framing *framing)
{
    if (answer->status == 101) {
        return "it changes to a protocol that nobody asked for";
    }
    if (framing->codings > 0 || framing->length > 0) {
        return "its answer has a body behind a head that can have none";
    }
    if (++answer->interim > ANSWER_INTERIM_MAX) {
        return "its answer has too many heads";
    }
    answer->place = ANSWER_AT_STATUS;
    return NULL;
}

const char *answer_frame(struct answer *answer)
{
    struct framing framing = {.keep_ms = ANSWER_KEEP_MS};
    const char *why = framing_read(answer, &framing);
    bool keeps = !framing.closes && (answer->minor == 1 || framing.keeps_alive);

    if (why != NULL) {
        return why;
    }
    if (answer->status < 200) {
        return interim_end(answer, &framing);
    }
    answer->keep_ms = keeps ? framing.keep_ms : 0;
    if (answer->to == ANSWER_TO_HEAD) {
        answer->length = framing.lengths > 0 ? framing.length : -1;
        answer->place = ANSWER_AT_END;
    } else if (answer->status == 204 || answer->status == 304) {
        answer->place = ANSWER_AT_END;
        if (answer->status == 204 && (framing.codings > 0 || framing.length > 0)) {
            answer->keep_ms = 0;
        }
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
