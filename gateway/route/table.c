/* table.c - the whole table: read, checked (what it cannot keep is refused), hashed, freed. */
#include "gateway/route/route_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "shared/service/options.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"
#include "shared/token/random.h"

_Static_assert((int)ROUTE_HASH_CHARS == (int)DIGEST_TEXT, "the hash is what digest_text() writes");

enum { FILE_BYTES_MAX = 1 << 20, LEVELS_MAX = 8, SHOWN_MAX = 120 };

/* -- for all files */

struct route_piece {
    struct route_piece *next;
    max_align_t at[];
};

void *route_alloc(struct route_table *table, size_t count, size_t size)
{
    struct route_piece *piece = must_have(calloc(1, sizeof(*piece) + count * size));

    piece->next = table->memory;
    table->memory = piece;
    return piece->at;
}

char *route_text(struct route_table *table, struct bytes text)
{
    char *copy = route_alloc(table, text.len + 1, 1);

    if (text.len > 0)
        memcpy(copy, text.at, text.len);
    return copy;
}

/* On one line of a terminal, whatever is in it. */
static void show(struct bytes text, char shown[SHOWN_MAX + 1])
{
    size_t len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;

    for (size_t i = 0; i < len; i++)
        shown[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
    shown[len] = '\0';
}

bool route_wrong(struct route_reading *reading, const char *format, ...)
{
    const struct route *route = reading->route;
    char shown[SHOWN_MAX + 1];
    size_t len = 0;
    va_list args;

    if (reading->wrong)
        return false;
    reading->wrong = true;
    if (route != NULL && route->match != NULL) {
        show(bytes_of(route->match), shown);
        len = (size_t)snprintf(reading->why, ROUTE_WHY_SIZE, "routes[%u] (%s): ", route->index, shown);
    } else if (route != NULL) {
        len = (size_t)snprintf(reading->why, ROUTE_WHY_SIZE, "routes[%u]: ", route->index);
    }
    va_start(args, format);
    vsnprintf(reading->why + len, ROUTE_WHY_SIZE - len, format, args);
    va_end(args);
    for (char *c = reading->why + len; *c != '\0'; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    return false;
}

/* == what a table cannot keep */

/* The first segments of gateway/routes.c and of the pages of every daemon (shared/service/health.c). */
static const char *const own_addresses[] = {"v1",           "livez",    "readyz", "metrics", "version",
                                            "openapi.json", "problems", "ui",     NULL};

/* -- one route */

bool route_is_own_address(struct bytes first)
{
    for (const char *const *name = own_addresses; *name != NULL; name++)
        if (bytes_are(first, *name))
            return true;
    return false;
}

static bool check_match(struct route_reading *reading)
{
    const struct route_pattern *pattern = &reading->route->own->pattern;

    if (pattern->count > 0 && pattern->segments[0].text != NULL &&
        route_is_own_address(pattern->segments[0].decoded)) {
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

    for (unsigned i = 0; i < lease->count; i++)
        least += lease->parts[i].text != NULL ? strlen(lease->parts[i].text) : 1;
    if (least > NAME_MAX_BYTES)
        return route_wrong(reading, "lease: the name of a lease has at most %d characters", NAME_MAX_BYTES);
    if (lease->parts[0].text != NULL && !ascii_is_alnum(lease->parts[0].text[0]))
        return route_wrong(reading, "lease: the name of a lease begins with a letter or digit");
    return true;
}

struct rule {
    bool is_broken;
    const char *why;
};

/* Why the first of them that is broken is there; NULL: none is. */
static const char *first_broken(const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].is_broken)
            return rules[i].why;
    return NULL;
}

static bool check_guarantee(struct route_reading *reading)
{
    const struct route *route = reading->route;
    bool committed = route->guarantee == ROUTE_COMMITTED, ordered = route->guarantee == ROUTE_ORDERED;
    const struct rule rules[] = {
        {committed && route->aid == ROUTE_AID_NONE, "guarantee committed needs upstream_checks or if_match: "
                                                    "no proxy alone makes the check and the write "
                                                    "one step; ordered is what it can do"},
        {!committed && route->aid == ROUTE_AID_CHECKS, "upstream_checks is for guarantee committed"},
        {!committed && route->aid == ROUTE_AID_IF_MATCH, "if_match is for guarantee committed"},
        {ordered && reading->unsafe_redis,
         "guarantee ordered needs a store that does not lose: not with --allow-unsafe-redis"},
        {!ordered && route->serial, "serial is for guarantee ordered"},
        {!ordered && route->own->unknown_stated,
         "unknown is for guarantee ordered: nothing else waits for an older write"},
        /* The intents of admitted writes are dropped with their gateway: an older one may land after. */
        {route->guarantee == ROUTE_ADMITTED && route->reads == ROUTE_READS_FENCED,
         "reads fenced needs guarantee ordered or committed: after a fenced read no older write lands, which "
         "admitted cannot keep"},
    };
    const char *why = first_broken(rules, sizeof(rules) / sizeof(rules[0]));

    return why == NULL || route_wrong(reading, "%s", why);
}

static bool check_if_match(struct route_reading *reading)
{
    const struct route_own *own = reading->route->own;
    const char *why = own->pattern.rest ? "match ends with **" : NULL;

    for (unsigned i = 0; i < own->pattern.captures && why == NULL; i++)
        if (!route_template_has(&own->lease, i))
            why = "match has a capture that lease does not have";
    for (unsigned i = 1; i < own->lease.count && why == NULL; i++)
        if (own->lease.parts[i - 1].text == NULL && own->lease.parts[i].text == NULL)
            why = "two captures stand side by side in lease: put a character between them";
    return why == NULL || reading->route->aid != ROUTE_AID_IF_MATCH ||
           route_wrong(reading, "if_match needs one URL for each lease, and %s", why);
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

    if (route->unknown != ROUTE_PROBE)
        return true;
    for (unsigned i = 0; i < probe->count; i++) {
        if (probe->parts[i].text != NULL)
            continue;
        if (!route_template_has(&route->own->lease, probe->parts[i].capture))
            return route_wrong(reading, "unknown: the probe has a capture that lease does not have");
        if (seen & 1U << probe->parts[i].capture)
            return route_wrong(reading, "unknown: the probe has a capture twice");
        seen |= 1U << probe->parts[i].capture;
    }
    if (!probe_is_canonical(probe, &why)) {
        return route_wrong(reading, "unknown: the probe: %s",
                           why != NULL ? why : "its path must be written in its canonical form");
    }
    return true;
}

/* -- two routes */

/* The promises are about a lease and an upstream: what one route lets through, another must have waited for.
 */
static bool check_same_things(struct route_reading *reading, const struct route *before)
{
    const struct route *route = reading->route;
    bool ordered = route->guarantee == ROUTE_ORDERED, fenced = route->reads == ROUTE_READS_FENCED;
    bool fenced_before = before->reads == ROUTE_READS_FENCED;
    const struct rule rules[] = {
        {route->check != before->check,
         "one says check live, the other mark: neither knows the other's mark"},
        {ordered != (before->guarantee == ROUTE_ORDERED),
         "only one of them is ordered: a newer write by the other would not wait"},
        {ordered && route->grace_ms != before->grace_ms,
         "unknown has another grace_ms, or none: the shorter would count for both"},
        {(fenced && before->guarantee == ROUTE_ADMITTED) ||
             (fenced_before && route->guarantee == ROUTE_ADMITTED),
         "one has fenced reads, the other is admitted: older writes could land after a read"},
    };
    const char *why = first_broken(rules, sizeof(rules) / sizeof(rules[0]));

    return why == NULL ||
           route_wrong(reading, "its lease can be that of routes[%u], at the same upstream, and %s",
                       before->index, why);
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
    if (!route_templates_meet(&route->own->lease, &before->own->lease))
        return true;
    /* At any upstream: what is open of a lease is one line, in the order of its tokens. */
    if (strcmp(route->store, before->store) != 0) {
        return route_wrong(reading,
                           "its lease can be that of routes[%u], and they name different stores, whose "
                           "tokens do not compare: let the names begin differently",
                           before->index);
    }
    if (!conditional && !same_server)
        return true;
    if (conditional) {
        return route_wrong(reading,
                           "its lease can be that of routes[%u], and if_match needs one URL for each "
                           "lease: let the names begin differently",
                           before->index);
    }
    return check_same_things(reading, before);
}

/* == the hash: what a table means, as one short text, which all gateways on a store must share
 *
 * The normal form is a list of texts, each with its length in front (digest_text()'s of the whole): defaults
 * are filled in; captures have numbers instead of names; what is a set is sorted. */

/* Another meaning of the same file would be another version. */
static const char version[] = "pawl routes 1";

static void put(FILE *out, const char *text)
{
    fprintf(out, "%zu:%s,", strlen(text), text);
}

static void put_number(FILE *out, uint64_t number)
{
    fprintf(out, "#%" PRIu64 ",", number);
}

/* Where the escapes count (if_match: one spelling only), the text as it is written. */
static void put_pattern(FILE *out, const struct route *route)
{
    const struct route_pattern *pattern = &route->own->pattern;

    put_number(out, pattern->count);
    for (unsigned i = 0; i < pattern->count; i++) {
        const struct route_segment *segment = &pattern->segments[i];

        if (segment->text == NULL)
            fputs("{},", out);
        else
            put(out, route->aid == ROUTE_AID_IF_MATCH ? segment->text : segment->decoded.at);
    }
    put_number(out, pattern->rest);
}

static void put_template(FILE *out, const struct route_template *template)
{
    put_number(out, template->count);
    for (unsigned i = 0; i < template->count; i++)
        if (template->parts[i].text == NULL)
            fprintf(out, "{%u},", template->parts[i].capture);
        else
            put(out, template->parts[i].text);
}

static void put_fields(FILE *out, const struct route_fields *fields)
{
    /* To deny nothing is to say nothing. */
    bool none = fields->kind == ROUTE_LIST_DENY && fields->count == 0;

    put_number(out, none ? ROUTE_LIST_NONE : fields->kind);
    put_number(out, fields->count);
    for (unsigned i = 0; i < fields->count; i++)
        put(out, fields->names[i]);
}

static void put_route(FILE *out, const struct route *route)
{
    const struct route_own *own = route->own;
    const char *ca_file = route->upstream->tls_files[ROUTE_CA_FILE];

    put_pattern(out, route);
    put_template(out, &own->lease);
    put_number(out, route->upstream->scheme);
    put(out, route->upstream->host);
    put_number(out, route->upstream->port);
    put(out, route->upstream->prefix);
    put(out, ca_file != NULL ? ca_file : "");
    put_number(out, route->guarantee);
    put_number(out, route->check);
    if (route->store[0] != '\0')
        put(out, route->store);
    put_number(out, route->reads);
    put_number(out, route->aid);
    put_number(out, route->serial);
    put(out, route->unknown_text);
    put(out, route->probe_method != NULL ? route->probe_method : "");
    put_template(out, &own->probe);
    put_number(out, route->timeout_ms);
    put_number(out, route->max_body);
    put_number(out, own->read_count);
    for (unsigned i = 0; i < own->read_count; i++)
        put(out, own->reads[i]);
    put_fields(out, &own->request);
    put_fields(out, &own->answer);
    for (size_t i = 0; i < sizeof(own->unsure); i++)
        put_number(out, own->unsure[i]);
    if (route->credential == ROUTE_CREDENTIAL_UPSTREAM)
        put(out, "credential upstream");
    if (route->body != ROUTE_BODY_WHOLE) /* texts: what follows a route begins with a number */
        put(out, route->body == ROUTE_BODY_IN_DOUBT ? "stream in-doubt" : "stream never-applied");
    if (route->upstream->tls_files[ROUTE_CERT_FILE] != NULL) {
        put(out, "shows");
        put(out, route->upstream->tls_files[ROUTE_CERT_FILE]);
        put(out, route->upstream->tls_files[ROUTE_KEY_FILE]);
    }
    if (route->authorization_file != NULL) {
        put(out, "authorization");
        put(out, route->authorization_file);
    }
}

static void table_hash(struct route_table *table)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        abort();
    put(out, version);
    for (unsigned i = 0; i < table->count; i++)
        put_route(out, &table->routes[i]);
    if (fclose(out) != 0)
        abort();
    digest_text(&(struct bytes){text, len}, 1, table->hash);
    free(text);
}

/* == all of it */

/* NULL: reported. */
static struct json *table_json(struct route_reading *reading, struct bytes text, size_t *count)
{
    static const char *const names[] = {"routes", NULL};
    struct json_fault fault;
    enum json_found found;
    struct json *json = json_parse(text, LEVELS_MAX, &fault);

    if (json == NULL) {
        route_wrong(reading, "a route table is one JSON object: %s", fault.why);
        return NULL;
    }
    *count = json_list_count(json, "routes", &found);
    if (json_unknown(json, names) != NULL) {
        route_wrong(reading, "the member %.64s is not known here; a route table is {\"routes\":[...]}",
                    json_unknown(json, names));
    } else if (found != JSON_FOUND) {
        route_wrong(reading, "a route table is {\"routes\":[...]}");
    } else if (*count > ROUTES_MAX) {
        route_wrong(reading, "a route table has at most %d routes", ROUTES_MAX);
    }
    if (reading->wrong) {
        json_free(json);
        return NULL;
    }
    return json;
}

static bool table_fill(struct route_reading *reading, const struct json *json, size_t count)
{
    struct route_table *table = reading->table;

    table->routes = route_alloc(table, count + 1, sizeof(*table->routes));
    table->upstreams = route_alloc(table, count + 1, sizeof(struct route_upstream *));
    for (size_t i = 0; i < count; i++) {
        const struct json *object = json_list_object(json, "routes", i);

        reading->route = &table->routes[i];
        reading->route->index = (unsigned)i;
        reading->route->own = route_alloc(table, 1, sizeof(*reading->route->own));
        table->count++;
        if (object == NULL)
            return route_wrong(reading, "a route is an object");
        if (!route_read(reading, object) || !check_match(reading) || !check_lease(reading) ||
            !check_guarantee(reading) || !check_if_match(reading) || !check_probe(reading))
            return false;
        table->has_credentials |= reading->route->credential == ROUTE_CREDENTIAL_UPSTREAM;
    }
    for (unsigned i = 0; i < table->count; i++) {
        reading->route = &table->routes[i];
        for (unsigned j = 0; j < i; j++)
            if (!check_pair(reading, &table->routes[j]))
                return false;
    }
    return true;
}

struct route_table *route_table_parse(struct bytes text, bool unsafe_redis, char why[ROUTE_WHY_SIZE])
{
    struct route_table *table = must_have(calloc(1, sizeof(*table)));
    struct route_reading reading = {.table = table, .unsafe_redis = unsafe_redis, .why = why};
    size_t count = 0;
    struct json *json = table_json(&reading, text, &count);
    bool good = json != NULL && table_fill(&reading, json, count);

    json_free(json);
    if (!good) {
        route_table_free(table);
        return NULL;
    }
    table_hash(table);
    why[0] = '\0';
    return table;
}

struct route_table *route_table_load(const char *path, bool unsafe_redis, char why[ROUTE_WHY_SIZE])
{
    char wrong[ROUTE_WHY_SIZE];
    struct route_table *table;
    size_t len = 0;
    char *text = options_read_file(path, FILE_BYTES_MAX, &len, why, ROUTE_WHY_SIZE);

    if (text == NULL)
        return NULL;
    table = route_table_parse((struct bytes){text, len}, unsafe_redis, wrong);
    if (table != NULL && !route_proofs_load(table, wrong)) {
        route_table_free(table);
        table = NULL;
    }
    if (table == NULL)
        snprintf(why, ROUTE_WHY_SIZE, "%.200s: %.300s", path, wrong);
    free(text);
    return table;
}

void route_table_empty(struct route_table *table)
{
    route_table_forget(table);
    table->count = table->upstream_count = 0;
    while (table->memory != NULL) {
        struct route_piece *piece = table->memory;

        table->memory = piece->next;
        free(piece);
    }
}

void route_table_free(struct route_table *table)
{
    if (table != NULL)
        route_table_empty(table);
    free(table);
}
