/* template.c - texts with captures in them: "order:{id}", "/orders/{id}/last". */
#include <stdlib.h>

#include "gateway/route/route_internal.h"
#include "shared/text/ascii.h"

enum {
    /* What a template is made of when two are compared, beside the characters of its texts: a capture is one
     * character and then any number of them. */
    ANY_ONE = 1,
    ANY_MORE = 2,
    TOKENS_MAX = ROUTE_PATTERN_MAX + 2 * ROUTE_CAPTURES_MAX
};

static bool capture_read(struct route_reading *reading, const char *member, struct bytes name,
                         struct route_part *part)
{
    part->capture = route_pattern_capture(&reading->route->own->pattern, name);
    if (part->capture == ROUTE_CAPTURES_MAX) {
        return route_wrong(reading, "%s has a capture {...} that match does not have", member);
    }
    return true;
}

/* Takes one part off text. */
static bool part_read(struct route_reading *reading, const char *member, struct bytes *text,
                      bool (*literal)(struct bytes), struct route_part *part)
{
    bool capture = text->at[0] == '{';
    const char *end = memchr(text->at, capture ? '}' : '{', text->len);
    struct bytes piece = {text->at, end != NULL ? (size_t)(end - text->at) : text->len};
    size_t taken = piece.len;

    if (capture && end == NULL) {
        return route_wrong(reading, "%s has a { without a }", member);
    }
    if (capture) {
        taken++;
        piece = (struct bytes){piece.at + 1, piece.len - 1};
        if (!capture_read(reading, member, piece, part)) {
            return false;
        }
    } else {
        if (!literal(piece)) {
            return route_wrong(reading, "%s has a character that cannot stand there", member);
        }
        part->text = route_text(piece);
    }
    *text = (struct bytes){text->at + taken, text->len - taken};
    return true;
}

bool route_template_read(struct route_reading *reading, const char *member, struct bytes text,
                         bool (*literal)(struct bytes), struct route_template *template)
{
    if (text.len == 0 || text.len > ROUTE_PATTERN_MAX) {
        return route_wrong(reading, "%s must have 1 to %d bytes", member, ROUTE_PATTERN_MAX);
    }
    while (text.len > 0) {
        if (template->count == ROUTE_PARTS_MAX) {
            return route_wrong(reading, "%s has too many captures", member);
        }
        if (!part_read(reading, member, &text, literal, &template->parts[template->count])) {
            return false;
        }
        template->count++;
    }
    return true;
}

void route_template_done(struct route_template *template)
{
    for (unsigned i = 0; i < template->count; i++) {
        free(template->parts[i].text);
    }
}

bool route_template_has(const struct route_template *template, unsigned capture)
{
    for (unsigned i = 0; i < template->count; i++) {
        if (template->parts[i].text == NULL && template->parts[i].capture == capture) {
            return true;
        }
    }
    return false;
}

/* -- filling in */

/* Of a segment of a canonical path at most max bytes, decoded; how many, or max + 1: more. */
static size_t decode_at_most(struct bytes segment, char *text, size_t max)
{
    char decoded[3 * NAME_MAX_BYTES];
    size_t len;

    if (segment.len > sizeof(decoded)) {
        return max + 1;
    }
    len = route_segment_decode(segment, decoded);
    if (len > max) {
        return max + 1;
    }
    memcpy(text, decoded, len);
    return len;
}

bool route_lease_expand(const struct route_template *template, const struct bytes *captures,
                        char lease[NAME_MAX_BYTES + 1], size_t *len)
{
    *len = 0;
    for (unsigned i = 0; i < template->count; i++) {
        const struct route_part *part = &template->parts[i];
        size_t room = NAME_MAX_BYTES - *len, length;

        if (part->text != NULL) {
            length = strlen(part->text);
            if (length <= room) {
                memcpy(lease + *len, part->text, length);
            }
        } else {
            length = decode_at_most(captures[part->capture], lease + *len, room);
        }
        if (length > room) {
            return false;
        }
        *len += length;
    }
    lease[*len] = '\0';
    return true;
}

/* -- comparing */

static size_t tokens_of(const struct route_template *template, unsigned char tokens[TOKENS_MAX])
{
    size_t count = 0;

    for (unsigned i = 0; i < template->count; i++) {
        const char *text = template->parts[i].text;

        if (text == NULL) {
            tokens[count++] = ANY_ONE;
            tokens[count++] = ANY_MORE;
        }
        for (size_t j = 0; text != NULL && text[j] != '\0'; j++) {
            tokens[count++] = (unsigned char)text[j];
        }
    }
    return count;
}

static bool tokens_agree(unsigned char a, unsigned char b)
{
    return a == b || a == ANY_ONE || b == ANY_ONE;
}

/* Row by row from the end: at[j] is whether a from i on and b from j on can be the same text. */
static bool tokens_meet(const unsigned char *a, size_t a_count, const unsigned char *b, size_t b_count)
{
    bool below[TOKENS_MAX + 1] = {false}, at[TOKENS_MAX + 1];

    for (size_t i = a_count + 1; i-- > 0;) {
        for (size_t j = b_count + 1; j-- > 0;) {
            bool a_more = i < a_count && a[i] == ANY_MORE, b_more = j < b_count && b[j] == ANY_MORE;

            if (a_more && b_more) {
                at[j] = below[j] || at[j + 1];
            } else if (a_more) {
                at[j] = below[j] || (j < b_count && at[j + 1]);
            } else if (b_more) {
                at[j] = at[j + 1] || (i < a_count && below[j]);
            } else if (i == a_count || j == b_count) {
                at[j] = i == a_count && j == b_count;
            } else {
                at[j] = tokens_agree(a[i], b[j]) && below[j + 1];
            }
        }
        memcpy(below, at, (b_count + 1) * sizeof(below[0]));
    }
    return below[0];
}

/* Takes what is the same text at both ends off; false: the ends differ, so the whole does. Mostly they do,
 * and the square of the lengths is spared. */
static bool ends_strip(const unsigned char **a, size_t *a_count, const unsigned char **b, size_t *b_count)
{
    while (*a_count > 0 && *b_count > 0 && **a > ANY_MORE && **b > ANY_MORE) {
        if (*(*a)++ != *(*b)++) {
            return false;
        }
        (*a_count)--;
        (*b_count)--;
    }
    while (*a_count > 0 && *b_count > 0 && (*a)[*a_count - 1] > ANY_MORE && (*b)[*b_count - 1] > ANY_MORE) {
        if ((*a)[--*a_count] != (*b)[--*b_count]) {
            return false;
        }
    }
    return true;
}

bool route_templates_meet(const struct route_template *a, const struct route_template *b)
{
    unsigned char a_tokens[TOKENS_MAX], b_tokens[TOKENS_MAX];
    const unsigned char *a_left = a_tokens, *b_left = b_tokens;
    size_t a_count = tokens_of(a, a_tokens), b_count = tokens_of(b, b_tokens);

    return ends_strip(&a_left, &a_count, &b_left, &b_count) && tokens_meet(a_left, a_count, b_left, b_count);
}
