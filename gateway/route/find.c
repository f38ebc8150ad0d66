/* find.c - what a request is to the table: canonical path, the first route that matches, captures, lease. */
#include "gateway/route/route_internal.h"

#include <assert.h>

static const char bad_lease[] = "what stands in the path makes no lease name: 1 to 128 characters of A-Z a-z "
                                "0-9 . _ : -, beginning with a "
                                "letter or digit";
static const char bad_spelling[] = "a path of this route is written in one way only: without % for what may "
                                   "stand there as it is";
static const char bad_separator[] = "a part of the path has the character that parts it from the next in the "
                                    "lease's name: two paths would have "
                                    "one lease";

struct segments {
    struct bytes at[ROUTE_SEGMENTS_MAX + 1], decoded[ROUTE_SEGMENTS_MAX + 1];
    size_t count;
    char text[ROUTE_PATH_MAX]; /* of those that are not as they stand there */
};

/* More segments than a pattern can have are not looked at: only a "**" takes them. */
static void segments_take(struct bytes path, struct segments *segments)
{
    size_t used = 0;

    segments->count = route_path_split(path, segments->at, ROUTE_SEGMENTS_MAX + 1);
    for (size_t i = 0; i < segments->count; i++) {
        struct bytes segment = segments->at[i];

        if (segment.len > 0 && memchr(segment.at, '%', segment.len) != NULL) {
            char *text = segments->text + used;

            segment.len = route_segment_decode(segment, text);
            segment.at = text;
            used += segment.len;
        }
        segments->decoded[i] = segment;
    }
}

/* A capture takes no empty segment; "**" takes nothing, too. */
static bool matches(const struct route_pattern *pattern, const struct segments *segments)
{
    if (pattern->rest ? segments->count < pattern->count : segments->count != pattern->count)
        return false;
    for (unsigned i = 0; i < pattern->count; i++) {
        const struct route_segment *wanted = &pattern->segments[i];

        if (wanted->text == NULL ? segments->decoded[i].len == 0
                                 : !bytes_equal(segments->decoded[i], wanted->decoded))
            return false;
    }
    return true;
}

/* Under if_match one lease is one URL. Two paths could have one lease: by an escape that is the same lease
 * ("a%3Ab", "a:b"), or by parts that are put together in another way ("1:2" and "3", "1" and "2:3"). */
static const char *one_url(const struct route_match *match, const struct segments *segments)
{
    const struct route_own *own = match->route->own;
    const struct route_part *parts = own->lease.parts;

    for (unsigned i = 0; i < own->pattern.count; i++) {
        const char *literal = own->pattern.segments[i].text;

        if (literal != NULL ? !bytes_are(segments->at[i], literal)
                            : memchr(segments->at[i].at, '%', segments->at[i].len) != NULL)
            return bad_spelling;
    }
    for (unsigned i = 0; i + 2 < own->lease.count; i++) {
        struct bytes capture;

        if (parts[i].text != NULL)
            continue;
        capture = match->captures[parts[i].capture];
        if (memchr(capture.at, parts[i + 1].text[0], capture.len) != NULL)
            return bad_separator;
    }
    return NULL;
}

enum route_found route_find(const struct route_table *table, struct bytes raw_path, struct route_match *match,
                            const char **why)
{
    struct segments segments;
    unsigned index = 0;

    *why = route_path_canonical(raw_path, match->path, &match->path_len);
    if (*why != NULL)
        return ROUTE_BAD_PATH;
    segments_take((struct bytes){match->path, match->path_len}, &segments);
    while (index < table->count && !matches(&table->routes[index].own->pattern, &segments))
        index++;
    if (index == table->count || route_is_own_address(segments.decoded[0]))
        return ROUTE_NONE;
    match->route = &table->routes[index];
    for (unsigned i = 0; i < match->route->own->pattern.captures; i++)
        match->captures[i] = segments.at[match->route->own->pattern.places[i]];
    if (!route_lease_expand(&match->route->own->lease, match->captures, match->lease, &match->lease_len) ||
        !name_is_lease((struct bytes){match->lease, match->lease_len}))
        *why = bad_lease;
    else if (match->route->aid == ROUTE_AID_IF_MATCH)
        *why = one_url(match, &segments);
    return *why == NULL ? ROUTE_FOUND : ROUTE_BAD_LEASE;
}

size_t route_probe_path(const struct route_match *match, char path[ROUTE_PATH_MAX])
{
    const struct route_template *probe = &match->route->own->probe;
    size_t len = 0;

    for (unsigned i = 0; i < probe->count; i++) {
        struct bytes piece = probe->parts[i].text != NULL ? bytes_of(probe->parts[i].text)
                                                          : match->captures[probe->parts[i].capture];

        /* The captures are in the lease too, so they are short; each stands here once. */
        assert(len + piece.len < ROUTE_PATH_MAX);
        memcpy(path + len, piece.at, piece.len);
        len += piece.len;
    }
    path[len] = '\0';
    return len;
}
