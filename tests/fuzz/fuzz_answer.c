/* fuzz_answer.c - the parser of upstreams' answers: however the bytes are cut, it says the same; and
 * what it calls whole, a second reader, built differently, finds to end at the same byte with the same body.
 *
 * The first byte: 'h' for an answer to HEAD. The rest is the answer. */
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/http/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* -- what the parser says, as a number: of the head and of the body; and how it ends */

struct said {
    uint64_t head, body;
    size_t body_len, used; /* used: bytes of the text up to the end of the answer */
    unsigned heads;
    enum answer_event end;
    const char *why;
};

static uint64_t mix(uint64_t sum, struct bytes bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sum = (sum ^ (unsigned char)bytes.at[i]) * UINT64_C(0x100000001b3);
    return (sum ^ bytes.len) * UINT64_C(0x100000001b3);
}

static bool is_trimmed(struct bytes value)
{
    return value.len == 0 ||
           (strchr(" \t", value.at[0]) == NULL && strchr(" \t", value.at[value.len - 1]) == NULL);
}

static void say_head(struct said *said, const struct answer *answer)
{
    struct answer_field fields[ANSWER_FIELDS_MAX];
    unsigned count = answer_fields(answer, fields);

    must(++said->heads == 1 && count <= ANSWER_FIELDS_MAX);
    must(answer->status >= 200 && answer->status <= 599 && answer->length >= -1);
    must(answer->keep_ms <= ANSWER_KEEP_MS);
    said->head = answer->status * 7919u + (uint64_t)answer->length * 31u + answer->keep_ms;
    for (unsigned i = 0; i < count; i++) {
        must(fields[i].name.len > 0 && memchr(fields[i].name.at, ':', fields[i].name.len) == NULL);
        must(is_trimmed(fields[i].value));
        for (size_t j = 0; j < fields[i].value.len; j++) {
            unsigned char c = (unsigned char)fields[i].value.at[j];

            must((c >= 0x20 && c != 0x7f) || c == '\t');
        }
        said->head = mix(mix(said->head, fields[i].name), fields[i].value);
    }
}

static bool give(struct said *said, struct answer *answer, struct bytes in, size_t take_max)
{
    size_t len = in.len;

    for (;;) {
        said->end = answer_next(answer, &in);
        switch (said->end) {
        case ANSWER_MORE:
            must(in.len == 0);
            said->used += len;
            return true;
        case ANSWER_HEAD: say_head(said, answer); break;
        case ANSWER_PIECE: {
            size_t taken = answer->piece.len < take_max ? answer->piece.len : take_max;

            must(taken > 0 && said->heads == 1);
            for (size_t i = 0; i < taken; i++)
                said->body = (said->body ^ (unsigned char)in.at[i]) * UINT64_C(0x100000001b3);
            said->body_len += taken;
            answer_take(answer, &in, taken);
            break;
        }
        case ANSWER_WHOLE:
        case ANSWER_MALFORMED:
            said->used += len - in.len;
            said->why = answer->why;
            must(answer_next(answer, &in) == said->end);
            return false;
        }
    }
}

/* In packets of so many bytes. The end as it is when all is given, before a FIN. */
static struct said parse(enum answer_to to, struct bytes text, size_t packet, size_t take_max)
{
    struct answer answer = {0};
    struct said said = {.end = ANSWER_MORE};
    bool goes_on = true;

    answer_init(&answer, to);
    for (size_t at = 0; goes_on && at < text.len; at += packet) {
        size_t len = text.len - at < packet ? text.len - at : packet;

        goes_on = give(&said, &answer, (struct bytes){text.at + at, len}, take_max);
    }
    if (goes_on) {
        said.end = answer_fin(&answer) == ANSWER_WHOLE ? ANSWER_HEAD : ANSWER_MORE; /* at the end, or not */
        said.why = answer.why;
    }
    answer_done(&answer);
    return said;
}

static void must_agree(const struct said *a, const struct said *b)
{
    must(a->end == b->end && a->why == b->why && a->heads == b->heads);
    must(a->head == b->head && a->body == b->body && a->body_len == b->body_len);
    must(a->end == ANSWER_MALFORMED || a->used == b->used);
}

/* -- the second reader: looks at the whole text, again and again. How long the answer is; 0: it has no known
 * end in this text. Only of texts that the parser calls whole. */

static size_t line_length(struct bytes text)
{
    const char *end = memmem(text.at, text.len, "\r\n", 2);

    must(end != NULL);
    return (size_t)(end - text.at) + 2;
}

static struct bytes behind(struct bytes text, size_t len)
{
    must(len <= text.len);
    return (struct bytes){text.at + len, text.len - len};
}

/* The value of the only field of this name in the head; {NULL, 0}: none. */
static struct bytes field_of(struct bytes head, const char *name)
{
    struct bytes value = {NULL, 0};
    size_t name_len = strlen(name);

    for (head = behind(head, line_length(head)); head.len > 2; head = behind(head, line_length(head))) {
        size_t len = line_length(head) - 2;

        must(len > 0);
        if (len > name_len && strncasecmp(head.at, name, name_len) == 0 && head.at[name_len] == ':') {
            must(value.at == NULL);
            value = (struct bytes){head.at + name_len + 1, len - name_len - 1};
        }
    }
    return value;
}

static size_t chunks_length(struct bytes text, size_t *body_len)
{
    size_t all = text.len;

    for (;;) {
        char size_text[24] = {0};
        size_t len = line_length(text), size;

        memcpy(size_text, text.at, len < 20 ? len : 20);
        size = strtoul(size_text, NULL, 16);
        text = behind(text, len);
        if (size == 0)
            break;
        *body_len += size;
        text = behind(text, size);
        must(text.len >= 2 && memcmp(text.at, "\r\n", 2) == 0);
        text = behind(text, 2);
    }
    while (memcmp(text.at, "\r\n", 2) != 0)
        text = behind(text, line_length(text));
    return all - text.len + 2;
}

static size_t second_reader(enum answer_to to, struct bytes text, size_t *body_len)
{
    struct bytes at = text, head, length;
    size_t head_len;

    *body_len = 0;
    do {
        const char *end = memmem(at.at, at.len, "\r\n\r\n", 4);

        must(end != NULL && at.len > 12);
        head_len = (size_t)(end - at.at) + 4;
        head = (struct bytes){at.at, head_len};
        at = behind(at, head_len);
    } while (head.at[9] == '1');
    if (to == ANSWER_TO_HEAD || memcmp(head.at + 9, "204", 3) == 0 || memcmp(head.at + 9, "304", 3) == 0)
        return text.len - at.len;
    if (field_of(head, "Transfer-Encoding").at != NULL) {
        must(field_of(head, "Content-Length").at == NULL);
        return text.len - at.len + chunks_length(at, body_len);
    }
    length = field_of(head, "Content-Length");
    must(length.at != NULL);
    *body_len = strtoul(length.at, NULL, 10);
    return text.len - at.len + *body_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct said at_once, other;
    enum answer_to to;
    struct bytes text;
    size_t body_len;

    if (size < 2)
        return 0;
    to = data[0] == 'h' ? ANSWER_TO_HEAD : ANSWER_TO_OTHER;
    text = (struct bytes){(const char *)data + 1, size - 1};
    at_once = parse(to, text, text.len, text.len);
    other = parse(to, text, 1, 1);
    must_agree(&at_once, &other);
    other = parse(to, text, 7, 3);
    must_agree(&at_once, &other);
    must((at_once.why != NULL) == (at_once.end == ANSWER_MALFORMED || at_once.end == ANSWER_MORE));
    if (at_once.end == ANSWER_WHOLE)
        must(at_once.used == second_reader(to, text, &body_len) && at_once.body_len == body_len);
    return 0;
}
