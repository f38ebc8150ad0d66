/* fuzz_route_table.c - "PATH\nTABLE": any text as a table is refused in a sentence, or taken and then the
 * same each time; and the route of a path is the one that a plain walk over all patterns finds. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/route/route.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* -- a plain walk */

static size_t decode(struct bytes text, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned value = (unsigned char)text.at[i];

        if (value == '%') {
            char digits[3] = {text.at[i + 1], text.at[i + 2], '\0'};

            value = (unsigned)strtoul(digits, NULL, 16);
            i += 2;
        }
        out[len++] = (char)(unsigned char)value;
    }
    return len;
}

static bool segment_matches(struct bytes pattern, struct bytes segment)
{
    char a[ROUTE_PATH_MAX], b[ROUTE_PATH_MAX];

    if (pattern.len > 0 && pattern.at[0] == '{')
        return segment.len > 0;
    return bytes_equal((struct bytes){a, decode(pattern, a)}, (struct bytes){b, decode(segment, b)});
}

/* Takes "/segment" off text. */
static struct bytes take(struct bytes *text)
{
    const char *end = memchr(text->at + 1, '/', text->len - 1);
    struct bytes segment = {text->at + 1, end != NULL ? (size_t)(end - text->at - 1) : text->len - 1};

    text->at += segment.len + 1;
    text->len -= segment.len + 1;
    return segment;
}

static bool matches(struct bytes pattern, struct bytes path)
{
    while (pattern.len > 0) {
        struct bytes wanted = take(&pattern);

        if (pattern.len == 0 && bytes_are(wanted, "**"))
            return true;
        if (path.len == 0 || !segment_matches(wanted, take(&path)))
            return false;
    }
    return path.len == 0;
}

static bool is_own(struct bytes path)
{
    static const char *const own[] = {"v1",      "livez",        "readyz",   "metrics",
                                      "version", "openapi.json", "problems", "ui"};
    struct bytes first = take(&path);

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (bytes_are(first, own[i]))
            return true;
    return false;
}

static const struct route *plain_find(const struct route_table *table, struct bytes path)
{
    for (unsigned i = 0; i < table->count && !is_own(path); i++)
        if (matches(bytes_of(table->routes[i].match), path))
            return &table->routes[i];
    return NULL;
}

/* -- what must hold */

static void check_probe(const struct route_match *match)
{
    char path[ROUTE_PATH_MAX], again[ROUTE_PATH_MAX];
    size_t len, again_len = 0;

    if (match->route->unknown != ROUTE_PROBE)
        return;
    len = route_probe_path(match, path);
    assert(route_path_canonical((struct bytes){path, len}, again, &again_len) == NULL);
    assert(len == again_len && memcmp(path, again, len) == 0);
}

static void check_path(const struct route_table *table, struct bytes raw)
{
    struct route_match match = {0};
    const char *why = NULL;
    enum route_found found = route_find(table, raw, &match, &why);
    const struct route *wanted;
    struct bytes path = {match.path, match.path_len};

    assert((found == ROUTE_BAD_PATH || found == ROUTE_BAD_LEASE) == (why != NULL));
    if (found == ROUTE_BAD_PATH)
        return;
    wanted = plain_find(table, path);
    assert(wanted == (found == ROUTE_NONE ? NULL : match.route));
    if (found != ROUTE_FOUND)
        return;
    assert(name_is_lease((struct bytes){match.lease, match.lease_len}) &&
           match.lease[match.lease_len] == '\0');
    check_probe(&match);
    route_reads(match.route, raw);
    route_passes_request(match.route, raw);
    route_passes_answer(match.route, raw);
}

/* Each route is reached by a path of its own pattern: "**" with and without something behind it. */
static void check_own_path(const struct route_table *table, const struct route *route, const char *rest)
{
    char path[ROUTE_PATH_MAX] = "";
    struct bytes left = bytes_of(route->match);
    size_t len = 0;

    while (left.len > 0) {
        struct bytes segment = take(&left);
        bool is_rest = left.len == 0 && bytes_are(segment, "**");

        if (is_rest)
            segment = bytes_of(rest);
        else if (segment.len > 0 && segment.at[0] == '{')
            segment = BYTES("x7");
        path[len++] = '/';
        memcpy(path + len, segment.at, segment.len);
        len += segment.len;
    }
    assert(matches(bytes_of(route->match), (struct bytes){path, len}));
    check_path(table, (struct bytes){path, len});
}

static void check_route(const struct route_table *table, const struct route *route)
{
    assert(route->timeout_ms >= 100 && route->timeout_ms <= 600000);
    assert((route->unknown == ROUTE_GRACE) == (route->grace_ms != 0));
    assert((route->guarantee == ROUTE_COMMITTED) == (route->aid != ROUTE_AID_NONE));
    assert(route->guarantee == ROUTE_ORDERED || (route->unknown == ROUTE_HOLD && !route->serial));
    assert(table->upstreams[route->upstream->index] == route->upstream);
    assert(!route_reads(route, BYTES("PUT")) && !route_reads(route, BYTES("TRACE")));
    assert(route_passes_request(route, BYTES("If-Match")) &&
           route_passes_answer(route, BYTES("content-range")));
    assert(!route_is_final(route, 100) && !route_is_final(route, 600));
    check_own_path(table, route, "");
    check_own_path(table, route, "a/b%3a/");
}

static void check_sentence(const char *why)
{
    assert(strlen(why) > 10 && strlen(why) < ROUTE_WHY_SIZE);
    for (const char *c = why; *c != '\0'; c++)
        assert(*c >= ' ' && *c <= '~');
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct bytes text = {(const char *)data, size}, path = {NULL, 0};
    const char *line = size > 0 ? memchr(data, '\n', size) : NULL;
    char why[ROUTE_WHY_SIZE];
    struct route_table *table, *again;

    if (line != NULL) {
        path = (struct bytes){text.at, (size_t)(line - text.at)};
        text = (struct bytes){line + 1, size - path.len - 1};
    }
    table = route_table_parse(text, false, why);
    again = route_table_parse(text, true, why);
    if (table == NULL) {
        assert(again == NULL);
        check_sentence(why);
        return 0;
    }
    assert(again == NULL || strcmp(again->hash, table->hash) == 0);
    assert(strlen(table->hash) == ROUTE_HASH_CHARS);
    for (unsigned i = 0; i < table->count; i++) {
        assert(again == NULL || table->routes[i].guarantee != ROUTE_ORDERED);
        check_route(table, &table->routes[i]);
    }
    check_path(table, path);
    route_table_free(table);
    route_table_free(again);
    return 0;
}
