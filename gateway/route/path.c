/* path.c - the one canonical form of a path: what is matched is what is forwarded.
 *
 * RFC 3986, sections 2.4, 3.3 and 6.2.2: a byte that may stand in a path as it is (pchar) stays as it came,
 * escaped or not, unless it is unreserved, which is never escaped; every other byte is escaped, in upper
 * case. What upstreams are known to read in two ways is refused. */
#include "gateway/route/route_internal.h"
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

static bool take_character(struct canonical *path);

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

    while (dots < segment.len && segment.at[dots] == '.') {
        dots++;
    }
    if (dots == 0 || dots > 2) {
        return true;
    }
    segment = (struct bytes){segment.at + dots, segment.len - dots};
    if (segment.len == 0 || segment.at[0] == ';' || (segment.len >= 3 && memcmp(segment.at, "%3B", 3) == 0)) {
        return fail(path, bad_dots);
    }
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

    while (len < raw->len && is_unreserved((unsigned char)raw->at[len])) {
        len++;
    }
    if (len > ROUTE_PATH_MAX - 1 - path->len) {
        return fail(path, bad_length);
    }
    memcpy(path->at + path->len, raw->at, len);
    path->len += len;
    *raw = (struct bytes){raw->at + len, raw->len - len};
    return true;
}

const char *route_path_canonical(struct bytes raw, char path[ROUTE_PATH_MAX], size_t *len)
{
    struct canonical canonical = {.raw = raw, .at = path, .why = NULL};

    if (raw.len == 0 || raw.at[0] != '/') {
        return bad_start;
    }
    while (canonical.raw.len > 0) {
        if (!take_plain(&canonical) || (canonical.raw.len > 0 && !take_character(&canonical))) {
            return canonical.why;
        }
    }
    if (canonical.len > canonical.segment && !segment_is_good(&canonical)) {
        return canonical.why;
    }
    path[canonical.len] = '\0';
    *len = canonical.len;
    return NULL;
}

/* -- what comes in */

/* The byte that raw begins with, decoded once, taken off raw. */
static bool take_byte(struct canonical *path, unsigned char *byte, bool *escaped)
{
    struct bytes *raw = &path->raw;
    size_t taken = 1;

    *byte = (unsigned char)raw->at[0];
    *escaped = *byte == '%';
    if (*escaped) {
        int high = raw->len >= 3 ? ascii_hex_value(raw->at[1]) : -1;
        int low = raw->len >= 3 ? ascii_hex_value(raw->at[2]) : -1;

        if (high < 0 || low < 0) {
            return fail(path, bad_percent);
        }
        *byte = (unsigned char)(high << 4 | low);
        taken = 3;
    }
    raw->at += taken;
    raw->len -= taken;
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
    if (path->len == ROUTE_PATH_MAX - 1) {
        return fail(path, bad_length);
    }
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
    if (path->len > 0 && !segment_is_good(path)) {
        return false;
    }
    if (path->len > 0 && path->len == path->segment) {
        return fail(path, bad_empty);
    }
    if (!put(path, '/')) {
        return false;
    }
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

        if (len == sizeof(text) || path->raw.len == 0) {
            return fail(path, bad_utf8);
        }
        if (!take_byte(path, &byte, &escaped)) {
            return false;
        }
        text[len++] = (char)byte;
    }
    if (character <= 0x9F) {
        return fail(path, bad_control);
    }
    for (size_t i = 0; i < len; i++) {
        if (!put_escaped(path, (unsigned char)text[i])) {
            return false;
        }
    }
    return true;
}

static bool take_character(struct canonical *path)
{
    unsigned char byte;
    bool escaped;

    if (!take_byte(path, &byte, &escaped)) {
        return false;
    }
    if (is_unreserved(byte) || (is_reserved(byte) && !escaped)) {
        return put(path, (char)byte);
    }
    if (byte == '/' && !escaped) {
        return put_slash(path);
    }
    if (byte == '/' || byte == '\\') {
        return fail(path, bad_slash);
    }
    if ((byte == '?' || byte == '#') && !escaped) {
        return fail(path, bad_query);
    }
    if (byte < 0x20 || byte == 0x7F) {
        return fail(path, bad_control);
    }
    return byte < 0x80 ? put_escaped(path, byte) : put_beyond_ascii(path, byte);
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
        if (slash == NULL) {
            break;
        }
        at = slash + 1;
    }
    return count;
}

size_t route_segment_decode(struct bytes segment, char *text)
{
    size_t len = 0;

    for (size_t i = 0; i < segment.len; i++) {
        if (segment.at[i] == '%') {
            text[len++] = (char)(16 * ascii_hex_value(segment.at[i + 1]) +
                                 ascii_hex_value(segment.at[i + 2]));
            i += 2;
        } else {
            text[len++] = segment.at[i];
        }
    }
    return len;
}
