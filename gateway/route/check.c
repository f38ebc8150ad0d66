/* check.c - what a table cannot keep is refused when it is read. */
#include "gateway/route/route_internal.h"
#include "shared/text/ascii.h"

/* The first segments of gateway/routes.c and of the pages of every daemon (shared/service/health.c). */
static const char *const own_addresses[] = {"v1",      "livez",        "readyz",   "metrics",
                                            "version", "openapi.json", "problems", NULL};

/* -- one route */

bool route_is_own_address(struct bytes first)
{
    for (const char *const *name = own_addresses; *name != NULL; name++) {
        if (bytes_are(first, *name)) {
            return true;
        }
    }
    return false;
}

static bool check_match(struct route_reading *reading)
{
    const struct route_pattern *pattern = &reading->route->own->pattern;

    if (pattern->count > 0 && pattern->segments[0].text != NULL &&
        route_is_own_address(bytes_of(pattern->segments[0].decoded))) {
        return route_wrong(reading, "match is an address of Pawl itself: /%s is never forwarded",
                           pattern->segments[0].text);
    }
    return true;
}

/* The literal parts have good characters: route_template_read() looked. */
static bool check_lease(struct route_reading *reading)
{
    const struct route_template *lease = &reading->route->own->lease;
    size_t least = 0;

    for (unsigned i = 0; i < lease->count; i++) {
        least += lease->parts[i].text != NULL ? strlen(lease->parts[i].text) : 1;
    }
    if (least > NAME_MAX_BYTES) {
        return route_wrong(reading, "lease: the name of a lease has at most %d characters", NAME_MAX_BYTES);
    }
    if (lease->parts[0].text != NULL && !ascii_is_alnum(lease->parts[0].text[0])) {
        return route_wrong(reading, "lease: the name of a lease begins with a letter or digit");
    }
    return true;
}

static bool check_guarantee(struct route_reading *reading)
{
    const struct route *route = reading->route;

    if (route->guarantee == ROUTE_COMMITTED && route->aid == ROUTE_AID_NONE) {
        return route_wrong(reading,
                           "guarantee committed needs upstream_checks or if_match: no proxy alone makes "
                           "the check and the write one step; ordered is what it can do");
    }
    if (route->guarantee != ROUTE_COMMITTED && route->aid != ROUTE_AID_NONE) {
        return route_wrong(reading, "%s is for guarantee committed",
                           route->aid == ROUTE_AID_CHECKS ? "upstream_checks" : "if_match");
    }
    if (route->guarantee == ROUTE_ORDERED && reading->unsafe_redis) {
        return route_wrong(reading, "guarantee ordered needs a store that does not lose: not with "
                                    "--allow-unsafe-redis");
    }
    if (route->guarantee != ROUTE_ORDERED && route->serial) {
        return route_wrong(reading, "serial is for guarantee ordered");
    }
    if (route->guarantee != ROUTE_ORDERED && route->own->unknown_stated) {
        return route_wrong(reading,
                           "unknown is for guarantee ordered: nothing else waits for an older write");
    }
    /* The intents of admitted writes are dropped with their gateway: an older one may land after the read. */
    if (route->guarantee == ROUTE_ADMITTED && route->reads == ROUTE_READS_FENCED) {
        return route_wrong(reading,
                           "reads fenced needs guarantee ordered or committed: after a fenced read no "
                           "older write lands, which admitted cannot keep");
    }
    return true;
}

static bool refuse_urls(struct route_reading *reading, const char *why)
{
    return route_wrong(reading, "if_match needs one URL for each lease, and %s", why);
}

static bool check_if_match(struct route_reading *reading)
{
    const struct route_own *own = reading->route->own;

    if (reading->route->aid != ROUTE_AID_IF_MATCH) {
        return true;
    }
    if (own->pattern.rest) {
        return refuse_urls(reading, "match ends with **");
    }
    for (unsigned i = 0; i < own->pattern.captures; i++) {
        if (!route_template_has(&own->lease, i)) {
            return refuse_urls(reading, "match has a capture that lease does not have");
        }
    }
    for (unsigned i = 1; i < own->lease.count; i++) {
        if (own->lease.parts[i - 1].text == NULL && own->lease.parts[i].text == NULL) {
            return refuse_urls(reading,
                               "two captures stand side by side in lease: put a character between them");
        }
    }
    return true;
}

/* With a capture of one character each it is canonical: so it is with every other one. */
static bool probe_is_canonical(const struct route_template *probe, const char **why)
{
    char raw[ROUTE_PATTERN_MAX + 1], path[ROUTE_PATH_MAX];
    size_t len = 0, path_len = 0;

    for (unsigned i = 0; i < probe->count; i++) {
        const char *text = probe->parts[i].text != NULL ? probe->parts[i].text : "x";

        memcpy(raw + len, text, strlen(text));
        len += strlen(text);
    }
    *why = route_path_canonical((struct bytes){raw, len}, path, &path_len);
    return *why == NULL && bytes_equal((struct bytes){raw, len}, (struct bytes){path, path_len});
}

static bool check_probe(struct route_reading *reading)
{
    const struct route *route = reading->route;
    const struct route_template *probe = &route->own->probe;
    unsigned seen = 0;
    const char *why;

    if (route->unknown != ROUTE_PROBE) {
        return true;
    }
    for (unsigned i = 0; i < probe->count; i++) {
        if (probe->parts[i].text != NULL) {
            continue;
        }
        if (!route_template_has(&route->own->lease, probe->parts[i].capture)) {
            return route_wrong(reading, "unknown: the probe has a capture that lease does not have");
        }
        if (seen & 1U << probe->parts[i].capture) {
            return route_wrong(reading, "unknown: the probe has a capture twice");
        }
        seen |= 1U << probe->parts[i].capture;
    }
    if (!probe_is_canonical(probe, &why)) {
        return route_wrong(reading, "unknown: the probe: %s",
                           why != NULL ? why : "its path must be written in its canonical form");
    }
    return true;
}

bool route_check_one(struct route_reading *reading)
{
    return check_match(reading) && check_lease(reading) && check_guarantee(reading) &&
           check_if_match(reading) && check_probe(reading);
}

/* -- two routes */

static bool refuse_pair(struct route_reading *reading, const struct route *before, const char *why)
{
    return route_wrong(reading, "its lease can be that of routes[%u], at the same upstream, and %s",
                       before->index, why);
}

/* The promises are about a lease and an upstream: what one route lets through, another must have waited for.
 */
static bool check_same_things(struct route_reading *reading, const struct route *before)
{
    const struct route *route = reading->route;
    bool ordered = route->guarantee == ROUTE_ORDERED, fenced = route->reads == ROUTE_READS_FENCED;

    if (route->check != before->check) {
        return refuse_pair(reading, before,
                           "one says check live, the other mark: neither knows the other's mark");
    }
    if (strcmp(route->store, before->store) != 0) {
        return refuse_pair(reading, before, "they name different stores: neither knows the other's mark");
    }
    if (ordered != (before->guarantee == ROUTE_ORDERED)) {
        return refuse_pair(reading, before,
                           "only one of them is ordered: a newer write by the other would not wait");
    }
    if (ordered && route->grace_ms != before->grace_ms) {
        return refuse_pair(reading, before,
                           "unknown has another grace_ms, or none: the shorter would count for both");
    }
    if ((fenced && before->guarantee == ROUTE_ADMITTED) ||
        (before->reads == ROUTE_READS_FENCED && route->guarantee == ROUTE_ADMITTED)) {
        return refuse_pair(reading, before,
                           "one has fenced reads, the other is admitted: older writes could land "
                           "after a read");
    }
    return true;
}

static bool check_pair(struct route_reading *reading, const struct route *before)
{
    const struct route *route = reading->route;
    bool conditional = route->aid == ROUTE_AID_IF_MATCH || before->aid == ROUTE_AID_IF_MATCH;
    bool same_server = route_upstream_same_server(route->upstream, before->upstream);

    if (route_pattern_covers(&before->own->pattern, &route->own->pattern)) {
        return route_wrong(reading, "it is never reached: routes[%u] matches all that it would",
                           before->index);
    }
    if ((!conditional && !same_server) || !route_templates_meet(&route->own->lease, &before->own->lease)) {
        return true;
    }
    if (conditional) {
        return route_wrong(reading,
                           "its lease can be that of routes[%u], and if_match needs one URL for each "
                           "lease: let the names begin differently",
                           before->index);
    }
    return check_same_things(reading, before);
}

bool route_check_all(struct route_reading *reading)
{
    struct route_table *table = reading->table;

    for (unsigned i = 0; i < table->count; i++) {
        reading->route = &table->routes[i];
        for (unsigned j = 0; j < i; j++) {
            if (!check_pair(reading, &table->routes[j])) {
                return false;
            }
        }
    }
    return true;
}
