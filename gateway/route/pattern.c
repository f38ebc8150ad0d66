/* pattern.c - what a route matches: "/orders/{id}/lines". */
#include <stdlib.h>

#include "gateway/route/route_internal.h"
#include "shared/text/ascii.h"

static const struct bytes rest_mark = {"**", 2};

static bool segments_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern);
static bool segment_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern);

bool route_pattern_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    if (text.len == 0 || text.at[0] != '/') {
        return route_wrong(reading, "match must begin with a slash");
    }
    if (text.len > ROUTE_PATTERN_MAX) {
        return route_wrong(reading, "match must have at most %d bytes", ROUTE_PATTERN_MAX);
    }
    return segments_read(reading, text, pattern);
}

static bool segments_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    struct bytes segments[ROUTE_SEGMENTS_MAX + 1];
    size_t count = route_path_split(text, segments, ROUTE_SEGMENTS_MAX + 1);

    if (count > ROUTE_SEGMENTS_MAX) {
        return route_wrong(reading, "match must have at most %d segments", ROUTE_SEGMENTS_MAX);
    }
    pattern->segments = route_alloc(count, sizeof(*pattern->segments));
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;

        if (last && bytes_equal(segments[i], rest_mark)) {
            pattern->rest = true;
        } else if (segments[i].len == 0 && !last) {
            return route_wrong(reading, "match has an empty segment that is not the last");
        } else if (!segment_read(reading, segments[i], pattern)) {
            return false;
        }
    }
    return true;
}

static bool is_capture_name(struct bytes name)
{
    if (name.len == 0 || name.len > ROUTE_CAPTURE_NAME_MAX || name.at[0] < 'a' || name.at[0] > 'z') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];

        if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '_') {
            return false;
        }
    }
    return true;
}

static bool capture_read(struct route_reading *reading, struct bytes name, struct route_pattern *pattern)
{
    if (!is_capture_name(name)) {
        return route_wrong(reading, "match: the name of a capture is [a-z][a-z0-9_]{0,31}");
    }
    if (route_pattern_capture(pattern, name) < ROUTE_CAPTURES_MAX) {
        return route_wrong(reading, "match has the capture {%.*s} twice", (int)name.len, name.at);
    }
    if (pattern->captures == ROUTE_CAPTURES_MAX) {
        return route_wrong(reading, "match must have at most %d captures", ROUTE_CAPTURES_MAX);
    }
    memcpy(pattern->segments[pattern->count].name, name.at, name.len);
    pattern->places[pattern->captures++] = pattern->count++;
    return true;
}

/* Canonical by itself, so that it can be found in a canonical path. */
static bool literal_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    struct route_segment *segment = &pattern->segments[pattern->count];
    char raw[ROUTE_PATTERN_MAX + 1] = "/", path[ROUTE_PATH_MAX];
    size_t len = 0;
    const char *why;

    memcpy(raw + 1, text.at, text.len);
    why = route_path_canonical((struct bytes){raw, text.len + 1}, path, &len);
    if (why != NULL) {
        return route_wrong(reading, "match: %s", why);
    }
    if (!bytes_equal((struct bytes){path + 1, len - 1}, text)) {
        return route_wrong(reading, "match must be written in its canonical form, here as %.200s", path + 1);
    }
    segment->text = route_text(text);
    segment->decoded = route_alloc(text.len + 1, 1);
    route_segment_decode(text, segment->decoded);
    pattern->count++;
    return true;
}

static bool segment_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern)
{
    bool open = text.len > 0 && text.at[0] == '{', closed = text.len > 0 && text.at[text.len - 1] == '}';

    if (open && closed) {
        return capture_read(reading, (struct bytes){text.at + 1, text.len - 2}, pattern);
    }
    if (text.len > 0 && (memchr(text.at, '{', text.len) != NULL || memchr(text.at, '}', text.len) != NULL)) {
        return route_wrong(reading, "match: a capture {x} is a whole segment");
    }
    if (text.len > 0 && memchr(text.at, '*', text.len) != NULL) {
        return route_wrong(reading, "match: ** is the last segment, and * stands nowhere else (%%2A is one)");
    }
    return literal_read(reading, text, pattern);
}

void route_pattern_done(struct route_pattern *pattern)
{
    for (unsigned i = 0; i < pattern->count; i++) {
        free(pattern->segments[i].text);
        free(pattern->segments[i].decoded);
    }
    free(pattern->segments);
}

unsigned route_pattern_capture(const struct route_pattern *pattern, struct bytes name)
{
    for (unsigned i = 0; i < pattern->captures; i++) {
        if (bytes_are(name, pattern->segments[pattern->places[i]].name)) {
            return i;
        }
    }
    return ROUTE_CAPTURES_MAX;
}

/* A capture takes no empty segment. */
static bool segment_covers(const struct route_segment *wide, const struct route_segment *narrow)
{
    if (narrow->text == NULL) {
        return wide->text == NULL;
    }
    return wide->text == NULL ? narrow->text[0] != '\0' : strcmp(wide->decoded, narrow->decoded) == 0;
}

bool route_pattern_covers(const struct route_pattern *wide, const struct route_pattern *narrow)
{
    if (wide->rest ? narrow->count < wide->count : narrow->rest || narrow->count != wide->count) {
        return false;
    }
    for (unsigned i = 0; i < wide->count; i++) {
        if (!segment_covers(&wide->segments[i], &narrow->segments[i])) {
            return false;
        }
    }
    return true;
}
