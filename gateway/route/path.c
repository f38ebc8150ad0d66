/* path.c - paths, the patterns that they match, and the texts that are made of what was captured.
 *
 * The one canonical form: what is matched is what is forwarded. RFC 3986, sections 2.4, 3.3 and 6.2.2: a byte
 * that may stand in a path as it is (pchar) stays as it came, escaped or not, unless it is unreserved, which
 * is never escaped; every other byte is escaped, in upper case. What upstreams are known to read in two ways
 * is refused. */
#include "gateway/route/route_internal.h"

#include <stdlib.h>

#include "shared/text/ascii.h"
#include "shared/text/utf8.h"

static const char bad_start[] = "a path begins with a slash";
static const char bad_percent[] =
    "a % in a path is followed by two hexadecimal digits; write a plain % as %25";
static const char bad_query[] = "a path ends before ? and #; write them as %3F and %23";
static const char bad_slash[] =
    "%2F, %5C and a backslash are not taken in a path: servers read them in two ways";
static const char bad_control[] = "%00 and other control characters are not taken in a path";
static const char bad_utf8[] = "a path is UTF-8 when it is percent-decoded";
static const char bad_dots[] = "a path has no segment . or .., also not escaped or with parameters behind it";
static const char bad_empty[] = "a path has no empty segment but the last: two slashes are one too many";
static const char bad_length[] = "a path has at most 4,095 bytes in its canonical form";

struct canonical {
    struct bytes raw; /* what is left of it */
    char *at;
    size_t len, segment; /* segment: where the present one begins */
    const char *why;
};

static bool fail(struct canonical *path, const char *why)
{
    path->why = why;
    return false;
}

/* A server that takes parameters off a segment (";x=1") reads "..;" as "..". Dots are never escaped here. */
static bool segment_is_good(struct canonical *path)
{
    struct bytes segment = {path->at + path->segment, path->len - path->segment};
    size_t dots = 0;

    while (dots < segment.len && segment.at[dots] == '.')
        dots++;
    if (dots == 0 || dots > 2)
        return true;
    segment = (struct bytes){segment.at + dots, segment.len - dots};
    if (segment.len == 0 || segment.at[0] == ';' || (segment.len >= 3 && memcmp(segment.at, "%3B", 3) == 0))
        return fail(path, bad_dots);
    return true;
}

static bool is_unreserved(unsigned char byte)
{
    return ascii_is_alnum((char)byte) || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* All that a path mostly consists of, at once. */
static bool take_plain(struct canonical *path)
{
    struct bytes *raw = &path->raw;
    size_t len = 0;

    while (len < raw->len && is_unreserved((unsigned char)raw->at[len]))
        len++;
    if (len > ROUTE_PATH_MAX - 1 - path->len)
        return fail(path, bad_length);
    memcpy(path->at + path->len, raw->at, len);
    path->len += len;
    *raw = (struct bytes){raw->at + len, raw->len - len};
    return true;
}

/* -- what comes in */

/* The byte that raw begins with, decoded once, taken off raw. */
static bool take_byte(struct canonical *path, unsigned char *byte, bool *escaped)
{
    struct bytes *raw = &path->raw;
    char c;
    size_t taken = ascii_percent_decode(*raw, &c);

    if (taken == 0)
        return fail(path, bad_percent);
    *byte = (unsigned char)c;
    *escaped = taken > 1;
    *raw = (struct bytes){raw->at + taken, raw->len - taken};
    return true;
}

/* sub-delims, ":" and "@": may stand there as they are, and mean something else than when they are escaped.
 */
static bool is_reserved(unsigned char byte)
{
    return byte != '\0' && strchr("!$&'()*+,;=:@", byte) != NULL;
}

/* -- what goes out */

static bool put(struct canonical *path, char c)
{
    if (path->len == ROUTE_PATH_MAX - 1)
        return fail(path, bad_length);
    path->at[path->len++] = c;
    return true;
}

static bool put_escaped(struct canonical *path, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";

    return put(path, '%') && put(path, digits[byte >> 4]) && put(path, digits[byte & 15]);
}

static bool put_slash(struct canonical *path)
{
    if (path->len > 0 && !segment_is_good(path))
        return false;
    if (path->len > 0 && path->len == path->segment)
        return fail(path, bad_empty);
    if (!put(path, '/'))
        return false;
    path->segment = path->len;
    return true;
}

/* A character beyond ASCII: it is one if all its bytes come, each escaped or not. */
static bool put_beyond_ascii(struct canonical *path, unsigned char first)
{
    char text[4] = {(char)first};
    size_t len = 1;
    uint32_t character;

    while (utf8_decode((struct bytes){text, len}, &character) == 0) {
        unsigned char byte;
        bool escaped;

        if (len == sizeof(text) || path->raw.len == 0)
            return fail(path, bad_utf8);
        if (!take_byte(path, &byte, &escaped))
            return false;
        text[len++] = (char)byte;
    }
    if (character <= 0x9F)
        return fail(path, bad_control);
    for (size_t i = 0; i < len; i++)
        if (!put_escaped(path, (unsigned char)text[i]))
            return false;
    return true;
}

static bool take_character(struct canonical *path)
{
    unsigned char byte;
    bool escaped;

    if (!take_byte(path, &byte, &escaped))
        return false;
    if (is_unreserved(byte) || (is_reserved(byte) && !escaped))
        return put(path, (char)byte);
    if (byte == '/' && !escaped)
        return put_slash(path);
    if (byte == '/' || byte == '\\')
        return fail(path, bad_slash);
    if ((byte == '?' || byte == '#') && !escaped)
        return fail(path, bad_query);
    if (byte < 0x20 || byte == 0x7F)
        return fail(path, bad_control);
    return byte < 0x80 ? put_escaped(path, byte) : put_beyond_ascii(path, byte);
}

const char *route_path_canonical(struct bytes raw, char path[ROUTE_PATH_MAX], size_t *len)
{
    struct canonical canonical = {.raw = raw, .at = path, .why = NULL};

    if (raw.len == 0 || raw.at[0] != '/')
        return bad_start;
    while (canonical.raw.len > 0)
        if (!take_plain(&canonical) || (canonical.raw.len > 0 && !take_character(&canonical)))
            return canonical.why;
    if (canonical.len > canonical.segment && !segment_is_good(&canonical))
        return canonical.why;
    path[canonical.len] = '\0';
    *len = canonical.len;
    return NULL;
}

/* -- parts of a canonical path */

size_t route_path_split(struct bytes path, struct bytes *segments, size_t max)
{
    const char *at = path.at + 1, *end = path.at + path.len;
    size_t count = 0;

    while (count < max) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash != NULL ? slash : end;

        segments[count++] = (struct bytes){at, (size_t)(stop - at)};
        if (slash == NULL)
            break;
        at = slash + 1;
    }
    return count;
}

size_t route_segment_decode(struct bytes segment, char *text)
{
    size_t len = 0;

    while (segment.len > 0) {
        size_t taken = ascii_percent_decode(segment, &text[len++]);

        segment = (struct bytes){segment.at + taken, segment.len - taken};
    }
    return len;
}

/* == patterns: what a route matches, "/orders/{id}/lines" */

static const struct bytes rest_mark = {"**", 2};

static bool is_capture_name(struct bytes name)
{
    if (name.len == 0 || name.len > ROUTE_CAPTURE_NAME_MAX || name.at[0] < 'a' || name.at[0] > 'z')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];

        if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '_')
            return false;
    }
    return true;
}

/* The number of the capture of this name, or ROUTE_CAPTURES_MAX. */
static unsigned pattern_capture(const struct route_pattern *pattern, struct bytes name)
{
    for (unsigned i = 0; i < pattern->captures; i++)
        if (bytes_are(name, pattern->segments[pattern->places[i]].name))
            return i;
    return ROUTE_CAPTURES_MAX;
}

static bool pattern_capture_read(struct route_reading *reading, struct bytes name,
                                 struct route_pattern *pattern)
{
    if (!is_capture_name(name))
        return route_wrong(reading, "match: the name of a capture is [a-z][a-z0-9_]{0,31}");
    if (pattern_capture(pattern, name) < ROUTE_CAPTURES_MAX)
        return route_wrong(reading, "match has the capture {%.*s} twice", (int)name.len, name.at);
    if (pattern->captures == ROUTE_CAPTURES_MAX)
        return route_wrong(reading, "match must have at most %d captures", ROUTE_CAPTURES_MAX);
    memcpy(pattern->segments[pattern->count].name, name.at, name.len);
    pattern->places[pattern->captures++] = pattern->count++;
    return true;
}

/* Canonical by itself, so that it can be found in a canonical path. */
static bool literal_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    struct route_segment *segment = &pattern->segments[pattern->count];
    char raw[ROUTE_PATTERN_MAX + 1] = "/", path[ROUTE_PATH_MAX], *decoded;
    size_t len = 0;
    const char *why;

    memcpy(raw + 1, text.at, text.len);
    why = route_path_canonical((struct bytes){raw, text.len + 1}, path, &len);
    if (why != NULL)
        return route_wrong(reading, "match: %s", why);
    if (!bytes_equal((struct bytes){path + 1, len - 1}, text))
        return route_wrong(reading, "match must be written in its canonical form, here as %.200s", path + 1);
    segment->text = route_text(reading->table, text);
    decoded = route_alloc(reading->table, text.len + 1, 1);
    segment->decoded = (struct bytes){decoded, route_segment_decode(text, decoded)};
    pattern->count++;
    return true;
}

static bool segment_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    bool open = text.len > 0 && text.at[0] == '{', closed = text.len > 0 && text.at[text.len - 1] == '}';

    if (open && closed)
        return pattern_capture_read(reading, (struct bytes){text.at + 1, text.len - 2}, pattern);
    if (text.len > 0 && (memchr(text.at, '{', text.len) != NULL || memchr(text.at, '}', text.len) != NULL))
        return route_wrong(reading, "match: a capture {x} is a whole segment");
    if (text.len > 0 && memchr(text.at, '*', text.len) != NULL)
        return route_wrong(reading, "match: ** is the last segment, and * stands nowhere else (%%2A is one)");
    return literal_read(reading, text, pattern);
}

static bool segments_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    struct bytes segments[ROUTE_SEGMENTS_MAX + 1];
    size_t count = route_path_split(text, segments, ROUTE_SEGMENTS_MAX + 1);

    if (count > ROUTE_SEGMENTS_MAX)
        return route_wrong(reading, "match must have at most %d segments", ROUTE_SEGMENTS_MAX);
    pattern->segments = route_alloc(reading->table, count, sizeof(*pattern->segments));
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;

        if (last && bytes_equal(segments[i], rest_mark))
            pattern->rest = true;
        else if (segments[i].len == 0 && !last)
            return route_wrong(reading, "match has an empty segment that is not the last");
        else if (!segment_read(reading, segments[i], pattern))
            return false;
    }
    return true;
}

bool route_pattern_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    if (text.len == 0 || text.at[0] != '/')
        return route_wrong(reading, "match must begin with a slash");
    if (text.len > ROUTE_PATTERN_MAX)
        return route_wrong(reading, "match must have at most %d bytes", ROUTE_PATTERN_MAX);
    return segments_read(reading, text, pattern);
}

/* A capture takes no empty segment. */
static bool segment_covers(const struct route_segment *wide, const struct route_segment *narrow)
{
    if (narrow->text == NULL)
        return wide->text == NULL;
    return wide->text == NULL ? narrow->text[0] != '\0' : bytes_equal(wide->decoded, narrow->decoded);
}

bool route_pattern_covers(const struct route_pattern *wide, const struct route_pattern *narrow)
{
    if (wide->rest ? narrow->count < wide->count : narrow->rest || narrow->count != wide->count)
        return false;
    for (unsigned i = 0; i < wide->count; i++)
        if (!segment_covers(&wide->segments[i], &narrow->segments[i]))
            return false;
    return true;
}

/* == templates: texts with captures in them, "order:{id}", "/orders/{id}/last" */

enum {
    /* What a template is made of when two are compared, beside the characters of its texts: a capture is one
     * character and then any number of them. */
    ANY_ONE = 1,
    ANY_MORE = 2,
    TOKENS_MAX = ROUTE_PATTERN_MAX + 2 * ROUTE_CAPTURES_MAX
};

/* Takes one part off text. */
static bool part_read(struct route_reading *reading, const char *member, struct bytes *text,
                      bool (*literal)(struct bytes), struct route_part *part)
{
    bool capture = text->at[0] == '{';
    const char *end = memchr(text->at, capture ? '}' : '{', text->len);
    struct bytes piece = {text->at, end != NULL ? (size_t)(end - text->at) : text->len};
    size_t taken = piece.len;

    if (capture && end == NULL)
        return route_wrong(reading, "%s has a { without a }", member);
    if (capture) {
        taken++;
        piece = (struct bytes){piece.at + 1, piece.len - 1};
        part->capture = pattern_capture(&reading->route->own->pattern, piece);
        if (part->capture == ROUTE_CAPTURES_MAX)
            return route_wrong(reading, "%s has a capture {...} that match does not have", member);
    } else {
        if (!literal(piece))
            return route_wrong(reading, "%s has a character that cannot stand there", member);
        part->text = route_text(reading->table, piece);
    }
    *text = (struct bytes){text->at + taken, text->len - taken};
    return true;
}

bool route_template_read(struct route_reading *reading, const char *member, struct bytes text,
                         bool (*literal)(struct bytes), struct route_template *template)
{
    if (text.len == 0 || text.len > ROUTE_PATTERN_MAX)
        return route_wrong(reading, "%s must have 1 to %d bytes", member, ROUTE_PATTERN_MAX);
    while (text.len > 0) {
        if (template->count == ROUTE_PARTS_MAX)
            return route_wrong(reading, "%s has too many captures", member);
        if (!part_read(reading, member, &text, literal, &template->parts[template->count]))
            return false;
        template->count++;
    }
    return true;
}

bool route_template_has(const struct route_template *template, unsigned capture)
{
    for (unsigned i = 0; i < template->count; i++)
        if (template->parts[i].text == NULL && template->parts[i].capture == capture)
            return true;
    return false;
}

/* -- filling in */

/* Of a segment of a canonical path at most max bytes, decoded; how many, or max + 1: more. */
static size_t decode_at_most(struct bytes segment, char *text, size_t max)
{
    char decoded[3 * NAME_MAX_BYTES];
    size_t len;

    if (segment.len > sizeof(decoded))
        return max + 1;
    len = route_segment_decode(segment, decoded);
    if (len > max)
        return max + 1;
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
            if (length <= room)
                memcpy(lease + *len, part->text, length);
        } else {
            length = decode_at_most(captures[part->capture], lease + *len, room);
        }
        if (length > room)
            return false;
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
        for (size_t j = 0; text != NULL && text[j] != '\0'; j++)
            tokens[count++] = (unsigned char)text[j];
    }
    return count;
}

/* Row by row from the end: at[j] is whether a from i on and b from j on can be the same text. */
static bool tokens_meet(const unsigned char *a, size_t a_count, const unsigned char *b, size_t b_count)
{
    bool below[TOKENS_MAX + 1] = {false}, at[TOKENS_MAX + 1];

    for (size_t i = a_count + 1; i-- > 0;) {
        for (size_t j = b_count + 1; j-- > 0;) {
            bool a_more = i < a_count && a[i] == ANY_MORE, b_more = j < b_count && b[j] == ANY_MORE;

            if (a_more && b_more)
                at[j] = below[j] || at[j + 1];
            else if (a_more)
                at[j] = below[j] || (j < b_count && at[j + 1]);
            else if (b_more)
                at[j] = at[j + 1] || (i < a_count && below[j]);
            else if (i == a_count || j == b_count)
                at[j] = i == a_count && j == b_count;
            else
                at[j] = (a[i] == b[j] || a[i] == ANY_ONE || b[j] == ANY_ONE) && below[j + 1];
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
        if (*(*a)++ != *(*b)++)
            return false;
        (*a_count)--;
        (*b_count)--;
    }
    while (*a_count > 0 && *b_count > 0 && (*a)[*a_count - 1] > ANY_MORE && (*b)[*b_count - 1] > ANY_MORE)
        if ((*a)[--*a_count] != (*b)[--*b_count])
            return false;
    return true;
}

bool route_templates_meet(const struct route_template *a, const struct route_template *b)
{
    unsigned char a_tokens[TOKENS_MAX], b_tokens[TOKENS_MAX];
    const unsigned char *a_left = a_tokens, *b_left = b_tokens;
    size_t a_count = tokens_of(a, a_tokens), b_count = tokens_of(b, b_tokens);

    return ends_strip(&a_left, &a_count, &b_left, &b_count) && tokens_meet(a_left, a_count, b_left, b_count);
}
